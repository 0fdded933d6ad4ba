/* What writing LAS is made of: las_place.c decides where the fields go, las_write.c writes the records. */
#ifndef PNET_RUNTIME_IO_LAS_WRITE_H
#define PNET_RUNTIME_IO_LAS_WRITE_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"
#include "runtime/io/las.h"

#include <stdbool.h>

struct pnet_laz_packer;

/* Where the values of a part come from. */
struct pnet_las_source {
    const struct pnet_field
        *field;    /* of `like`; NULL: the coordinates of the axis, kept bytes, or zeros */
    double factor; /* of the values */
};

/* Whether the dimension of point formats that has the name of a field holds all its values. */
struct pnet_las_fit {
    bool depends;              /* on the values */
    struct pnet_las_part part; /* the dimension */
    int64_t row; /* of the file, the first one with a value that it does not hold; -1: none */
    double value;
};

/* Coordinates on an axis, in the unit of the file. */
struct pnet_las_reach {
    double low, high;
    int64_t without; /* the first row of the file that has none; -1: each has one */
};

struct pnet_las_writer {
    const struct pnet_cloud *like; /* what all rows have in common */
    const struct pnet_las_kept *k; /* like->las, or NULL */
    const char *path;              /* of the output, for messages */
    struct pnet_las_fit *fits;     /* of each field */
    struct pnet_las_reach reach[3];
    struct pnet_las_layout layout;   /* of the records that are written */
    struct pnet_las_source *sources; /* of each part */
    uint8_t *extras;                 /* [layout.extras, LAS_EXTRA_SIZE] descriptions */
    bool *placed;                    /* fields that have a part */
    bool relaid;                     /* the layout is not that of the file that was read */
    struct pnet_las_summary summary;
    struct pnet_laz_packer *packer; /* of LAZ, like the next line */
    uint8_t *head;                  /* [head_size] of the LAS file */
    size_t head_size;
};

/* Rows that are written: those of a piece. */
struct pnet_las_piece {
    const struct pnet_cloud *c;
    int64_t first; /* where the rows of the file begin that it was read from */
};

/* Returns the row of the file that a row was read from, counted from the first one of the piece. */
static inline int64_t pnet_las_row(const struct pnet_las_piece *p, int64_t row)
{
    return p->c->file_row ? p->c->file_row[row] : row;
}

/* Begins w->fits. PNET_NO_MEMORY. */
enum pnet_status pnet_las_fit_begin(struct pnet_las_writer *w, struct pnet_error *e);
/* Looks at the values of a piece. */
void pnet_las_fit_add(struct pnet_las_writer *w, const struct pnet_las_piece *piece);

/* Sets the layout and what belongs to it, when the fits are known; coordinates of a cloud that was not read from LAS have no
   scale yet. The caller frees the members. PNET_NO_MEMORY; PNET_USAGE: a class, a name or a number of dimensions that LAS has
   no place for. */
enum pnet_status pnet_las_place(struct pnet_las_writer *w, struct pnet_error *e);

#endif
