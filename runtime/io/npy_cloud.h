/* Which arrays hold points, and their columns: what clouds in NPY and in NPZ share. */
#ifndef PNET_RUNTIME_IO_NPY_CLOUD_H
#define PNET_RUNTIME_IO_NPY_CLOUD_H

#include "runtime/io/npy_header.h"

/* Tells whether arrays and fields of that name hold coordinates: xyz, points ..., in upper or lower case. */
bool pnet_names_coordinates(struct pnet_span name);

/* Returns the header without its first dimension if that is 1 and not the only one. Its columns are those of `h`. */
struct pnet_npy_header pnet_npy_without_lead(const struct pnet_npy_header *h);
/* Tells whether the array is a matrix [points, 3 or more], or a list of records with coordinates. */
bool pnet_npy_holds_points(const struct pnet_npy_header *h);
/* Tells whether the array is a list of records with a field of that name that has three values. */
bool pnet_npy_has_field(const struct pnet_npy_header *h, const char *name);

/* Adds the columns of a plain array of one or two dimensions; those of a matrix without a name have none. */
enum pnet_status pnet_npy_add_matrix(struct pnet_columns *t, const struct pnet_npy_header *h,
    struct pnet_span name, const char *path, struct pnet_error *e);
/* Adds the columns of an array that holds points, and sets axis[0..2] to those of the coordinates. `choice` (or NULL) names
   the field of records that holds them, if they have such a field. PNET_BAD_DATA: records without coordinates, or with two kinds
   of them; a matrix that has a column for each point. `path` begins the message. */
enum pnet_status pnet_npy_add_points(struct pnet_columns *t, const struct pnet_npy_header *h,
    const char *choice, int axis[3], const char *path, struct pnet_error *e);

#endif
