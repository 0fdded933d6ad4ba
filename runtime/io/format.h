/* The table of point-cloud formats. A new one is one file and one row in format.c. */
#ifndef PNET_RUNTIME_IO_FORMAT_H
#define PNET_RUNTIME_IO_FORMAT_H

#include "runtime/io/cloud.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads a whole file from memory into the empty cloud `c`; `path` gives the name for messages and
   the ending. On failure `c` is empty. */
enum pnet_status pnet_ply_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_pcd_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_las_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_npy_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_npz_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_kitti_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
/* The same in records of so many float32. */
enum pnet_status pnet_kitti_read_columns(const struct pnet_bytes *b, const char *path,
    char *const *columns, int column_count, struct pnet_cloud *c, struct pnet_error *e);
/* The reason why the bytes are unlikely to be records of this kind, or "": the file itself does not say what it holds. */
void pnet_kitti_doubt(const struct pnet_bytes *b, const char *path, char text[120]);
enum pnet_status pnet_sydney_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_off_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_obj_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_table_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);

/* Whether the content is of that format, from its first bytes. */
bool pnet_ply_probe(const struct pnet_bytes *b);
bool pnet_pcd_probe(const struct pnet_bytes *b);
bool pnet_las_probe(const struct pnet_bytes *b);
bool pnet_npy_probe(const struct pnet_bytes *b);
bool pnet_npz_probe(const struct pnet_bytes *b);
bool pnet_sydney_probe(const struct pnet_bytes *b);
bool pnet_off_probe(const struct pnet_bytes *b);
bool pnet_table_probe(const struct pnet_bytes *b);

/* Writes a whole file to `f`; errors of the stream are left to its owner. PNET_NO_MEMORY. */
enum pnet_status pnet_ply_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e);
enum pnet_status pnet_pcd_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e);
enum pnet_status pnet_npy_cloud_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e);
enum pnet_status pnet_kitti_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e);
enum pnet_status pnet_table_write(
    const struct pnet_cloud *c, const char *path, FILE *f, struct pnet_error *e);

/* Whether the name ends so, in either case. */
bool pnet_path_ends(const char *path, const char *ending);
/* PNET_BAD_DATA, "path: byte N: ...". */
enum pnet_status pnet_byte_error(const char *path, uint64_t offset, struct pnet_error *e,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
