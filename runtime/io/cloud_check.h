/* What writing a cloud would refuse, found before the work on it: what does not depend on the values that are computed. */
#ifndef PNET_RUNTIME_IO_CLOUD_CHECK_H
#define PNET_RUNTIME_IO_CLOUD_CHECK_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"

#include <stdint.h>

/* Checks names, number and types of the fields, and the point format of LAS; the rows of `like` are not looked at. Errors are
   those of pnet_cloud_write. */
enum pnet_status pnet_cloud_check_like(
    const char *path, const struct pnet_cloud *like, struct pnet_error *e);

/* Checks that the format has a place for points that lack coordinates, if some rows were dropped, c->file_row. `first`: the row
   of the file where the rows of `c` begin. Errors are those of pnet_cloud_write for the cloud with all rows. */
enum pnet_status pnet_cloud_check_missing(
    const char *path, const struct pnet_cloud *c, int64_t first, struct pnet_error *e);
/* Checks the coordinates, and what pnet_cloud_check_missing checks. `c` has all points of the file. */
enum pnet_status pnet_cloud_check_points(
    const char *path, const struct pnet_cloud *c, struct pnet_error *e);

#endif
