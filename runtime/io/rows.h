/* The points of a file as rows: what its head tells, from which a reader makes a cloud of all rows or of some. A format that is
   read in pieces has one function that makes this; its reader of whole files uses the same. */
#ifndef PNET_RUNTIME_IO_ROWS_H
#define PNET_RUNTIME_IO_ROWS_H

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/io/cloud.h"
#include "runtime/io/column.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pnet_rows;

/* What a format does besides. Members may be NULL. */
struct pnet_rows_kind {
    /* Of records that are not in the file as they are. `reserve` makes room for records: `rows.columns` describe the first of
       them. `decode` replaces the records there by the next ones of the file, and `rewind` goes back to the first one. */
    enum pnet_status (*reserve)(struct pnet_rows *r, int64_t rows, struct pnet_error *e);
    enum pnet_status (*decode)(struct pnet_rows *r, int64_t rows, struct pnet_error *e);
    void (*rewind)(struct pnet_rows *r);
    /* Sees all records of the file once, in order. */
    void (*see)(struct pnet_rows *r, const uint8_t *records, int64_t rows);
    /* Adds what the file has besides to `c`, which has its fields, and no points. `dropped`: some points of the file are not
       kept. Called once, after all records have been seen. */
    enum pnet_status (*keep_file)(
        struct pnet_rows *r, bool dropped, struct pnet_cloud *c, struct pnet_error *e);
    /* Adds what the records of a piece have besides to `c`, a cloud of c->file_rows of them. */
    enum pnet_status (*keep_rows)(const struct pnet_rows *r, const uint8_t *records,
        struct pnet_cloud *c, struct pnet_error *e);
    void (*close)(struct pnet_rows *r);
};

/* Owns the columns, and what its kind closes. Zeroed: no rows. */
struct pnet_rows {
    struct pnet_columns columns; /* begin at the first row */
    int axis[3];
    int64_t count;
    const uint8_t
        *records;  /* the first one, in the bytes of the file, or in the room of `reserve` */
    size_t record; /* bytes of one */
    bool apart;    /* the columns lie apart from each other, each without gaps */
    const struct pnet_rows_kind *kind; /* NULL: records lie in the file, and that is all */
    void *own;                         /* of the kind */
};

/* Finds the rows of a file, and sets in `c`, an empty cloud, what the head tells of it. Loads what it looks at. A file that is
   not in memory must have its records there as they are, or be decoded in order: else PNET_USAGE, by pnet_rows_whole. Close `r`
   in any case. */
typedef enum pnet_status pnet_rows_open(struct pnet_file_parts *f,
    const struct pnet_cloud_hints *hints, struct pnet_rows *r, struct pnet_cloud *c,
    struct pnet_error *e);

pnet_rows_open pnet_ply_open, pnet_pcd_open, pnet_las_open, pnet_npy_open, pnet_kitti_open;

/* PNET_USAGE: "path: WHAT is read as a whole, not in pieces". */
enum pnet_status pnet_rows_whole(const char *path, const char *what, struct pnet_error *e);

/* Reads a whole file that is in memory into the empty cloud `c`, for formats whose records lie in the file. On failure `c` is
   empty. */
enum pnet_status pnet_rows_read(pnet_rows_open *open, const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e);
void pnet_rows_close(struct pnet_rows *r);

#endif
