/* What writing LAS is made of: las_place.c decides where the fields go, las_write.c writes the records. */
#ifndef PNET_RUNTIME_IO_LAS_WRITE_H
#define PNET_RUNTIME_IO_LAS_WRITE_H

#include "runtime/base/error.h"
#include "runtime/io/cloud.h"
#include "runtime/io/las.h"

#include <stdbool.h>

/* Where the values of a part come from. */
struct pnet_las_source {
    const struct pnet_field *field; /* NULL: the coordinates of the axis, kept bytes, or zeros */
    double factor;                  /* of the values */
};

struct pnet_las_writer {
    const struct pnet_cloud *c;
    const struct pnet_las_kept *k;   /* c->las, or NULL */
    const char *path;                /* of the output, for messages */
    struct pnet_las_layout layout;   /* of the records that are written */
    struct pnet_las_source *sources; /* of each part */
    uint8_t *extras;                 /* [layout.extras, LAS_EXTRA_SIZE] descriptions */
    bool *placed;                    /* fields that have a part */
    bool relaid;                     /* the layout is not that of the file that was read */
    struct pnet_las_summary summary;
};

/* Sets the layout and what belongs to it; coordinates of a cloud that was not read from LAS have no scale yet. The caller
   frees the members. PNET_NO_MEMORY; PNET_USAGE: a class, a name or a number of dimensions that LAS has no place for. */
enum pnet_status pnet_las_place(struct pnet_las_writer *w, struct pnet_error *e);

/* Returns the row of the file that a row was read from. */
static inline int64_t pnet_las_file_row(const struct pnet_cloud *c, int64_t row)
{
    return c->file_row ? c->file_row[row] : row;
}

#endif
