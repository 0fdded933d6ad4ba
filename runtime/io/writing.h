/* How clouds are written: in passes over their rows, each in pieces of some rows. Of a whole cloud there is one piece, so that a
   file has the same bytes in whichever pieces it was written. */
#ifndef PNET_RUNTIME_IO_WRITING_H
#define PNET_RUNTIME_IO_WRITING_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct pnet_writing_kind;

/* One file while it is written. */
struct pnet_writing {
    const struct pnet_writing_kind *kind;
    const struct pnet_cloud *like; /* what the pieces have in common; its rows are not looked at */
    const char *path;              /* gives the ending, and stands in messages */
    FILE *f;                       /* whose owner handles its errors */
    int64_t rows;                  /* of all pieces */
    int64_t done, file_done; /* rows before the next piece; of the files they were read from */
    int measures;            /* passes over the rows before they are written */
    int pass;                /* the present one, from 0 on; `measures`: rows are written */
    void *own;               /* of the kind */
};

/* How one format is written. Members may be NULL, but for `head` and `put`. */
struct pnet_writing_kind {
    size_t size; /* of `own`, which is zeroed */
    /* Sets w->measures, which is 0, and what `own` has. */
    enum pnet_status (*begin)(struct pnet_writing *w, struct pnet_error *e);
    /* Looks at the rows of a piece, for what the format chooses by the values of all rows. */
    enum pnet_status (*see)(
        struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e);
    /* Called after each pass that measures, w->pass, and then w->file_done is the number of all rows of the file. */
    enum pnet_status (*seen)(struct pnet_writing *w, struct pnet_error *e);
    /* Write to w->f what stands before the rows, the rows of a piece, and what follows them. */
    enum pnet_status (*head)(struct pnet_writing *w, struct pnet_error *e);
    enum pnet_status (*put)(
        struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e);
    enum pnet_status (*tail)(struct pnet_writing *w, struct pnet_error *e);
    void (*free)(struct pnet_writing *w); /* what `own` owns; called after any failure too */
};

extern const struct pnet_writing_kind pnet_ply_writing, pnet_pcd_writing, pnet_las_writing,
    pnet_laz_writing, pnet_npy_writing, pnet_kitti_writing, pnet_table_writing;

/* Returns how a file of that name is written. NULL: as no format, with the message of pnet_cloud_check_output. */
const struct pnet_writing_kind *pnet_format_writing(const char *path, struct pnet_error *e);

/* Writes a whole cloud to `f`, whose owner handles its errors. */
enum pnet_status pnet_writing_all(const struct pnet_writing_kind *kind, const struct pnet_cloud *c,
    const char *path, FILE *f, struct pnet_error *e);

#endif
