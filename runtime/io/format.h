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

/* Read a whole file from memory into the empty cloud `c`; `path` stands in messages and gives the ending. On failure `c` is
   empty. */
enum pnet_status pnet_ply_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_pcd_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_las_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
/* Writes that more records follow than the header counts, compressed ones too, or "". */
enum pnet_status pnet_las_doubt(
    struct pnet_file_parts *f, int names, char text[120], struct pnet_error *e);
enum pnet_status pnet_npy_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_npz_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_hdf5_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_kitti_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
/* The same with what is known of the file. Of names of columns, records of KITTI have one float32 each. */
enum pnet_status pnet_npy_cloud_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_npz_cloud_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_hdf5_cloud_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_kitti_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e);
/* Writes the reason why the bytes are unlikely to be such records, or "": the file itself does not say what it holds. `names`
   is the number of columns that are named, 0: none. */
enum pnet_status pnet_kitti_doubt(
    struct pnet_file_parts *f, int names, char text[120], struct pnet_error *e);
enum pnet_status pnet_sydney_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_off_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_obj_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_table_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);

/* Tell by its first bytes whether the content has that format. */
bool pnet_ply_probe(const struct pnet_bytes *b);
bool pnet_pcd_probe(const struct pnet_bytes *b);
bool pnet_las_probe(const struct pnet_bytes *b);
bool pnet_laz_probe(
    const struct pnet_bytes *b); /* LAS with compressed points, which pnet_las_read reads too */
bool pnet_npy_probe(const struct pnet_bytes *b);
bool pnet_npz_probe(const struct pnet_bytes *b);
bool pnet_hdf5_probe(const struct pnet_bytes *b);
bool pnet_sydney_probe(const struct pnet_bytes *b);
bool pnet_off_probe(const struct pnet_bytes *b);
bool pnet_table_probe(const struct pnet_bytes *b);

/* Add the fields that the first bytes of a file declare to the empty cloud `c`, which has no points; of LAS the colours alone.
   Return false if they do not tell. */
bool pnet_ply_peek(const struct pnet_bytes *b, const char *path, struct pnet_cloud *c);
bool pnet_las_peek(const struct pnet_bytes *b, const char *path, struct pnet_cloud *c);

/* Makes the empty cloud that readers fill. */
void pnet_cloud_begin(struct pnet_cloud *c, const struct pnet_cloud_hints *hints);
/* Checks that the file states a length where its unit was asked for: PNET_BAD_DATA. */
enum pnet_status pnet_cloud_check_unit(const struct pnet_cloud *c,
    const struct pnet_cloud_hints *hints, const char *path, struct pnet_error *e);

/* Writes why a file that has been read is unlikely to be what it is read as, or "". `names`: the number of columns that are
   named. The first 256 KiB are loaded; it loads what else it looks at. PNET_NO_MEMORY; PNET_FAILED: the file cannot be read any
   more, or has changed. */
typedef enum pnet_status pnet_doubt_file(
    struct pnet_file_parts *f, int names, char text[120], struct pnet_error *e);
/* Recognises a file, of which the first 4 KiB and the last 64 bytes are loaded, and opens it in its format, which may have
   something to doubt: *doubt, or NULL. PNET_BAD_DATA; PNET_USAGE: the format is read as a whole. */
struct pnet_rows;
enum pnet_status pnet_format_open(struct pnet_file_parts *parts,
    const struct pnet_cloud_hints *hints, struct pnet_rows *r, struct pnet_cloud *c,
    pnet_doubt_file **doubt, struct pnet_error *e);

/* Checks that liblaszip is there. PNET_USAGE: the message says what to install. */
enum pnet_status pnet_laz_check_output(const char *path, struct pnet_error *e);

/* Tells whether the name has that ending, in upper or lower case. */
bool pnet_path_ends(const char *path, const char *ending);
/* Sets the message "path: byte N: ..." and returns PNET_BAD_DATA. */
enum pnet_status pnet_byte_error(const char *path, uint64_t offset, struct pnet_error *e,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
