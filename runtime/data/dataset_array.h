/* Entries of a data set that are rows of one large array. */
#ifndef PNET_RUNTIME_DATASET_ARRAY_H
#define PNET_RUNTIME_DATASET_ARRAY_H

#include "runtime/data/dataset.h"
#include "runtime/io/npy.h"

enum pnet_array_kind {
    PNET_ARRAY_POINTS, /* [n, p, c]: x y z and c - 3 fields c3 c4 ... */
    PNET_ARRAY_VOXELS, /* [n, a, b, c]: occupied where not 0; axes x, y, z */
};

struct pnet_array {
    enum pnet_array_kind kind;
    double cell_m; /* VOXELS: edge of a cell */
    struct pnet_npy points;
    struct pnet_npy labels; /* [n] or [n, p]; count 0: none */
};

/* Reads the member `points` (NULL: the file is an .npy, or the member that pnet_archive_find finds) of `path`, and the
   labels: a member of the same archive, or an .npy of its own; NULL: none. Checks their shapes. On
   failure `a` is empty. */
enum pnet_status pnet_array_read(const char *path, const char *points, const char *labels,
    enum pnet_array_kind kind, double cell_m, struct pnet_array *a, struct pnet_error *e);
void pnet_array_free(struct pnet_array *a);

/* Tells whether there is one label for each point. */
bool pnet_array_labels_points(const struct pnet_array *a);
/* Makes the cloud of row `row`, which the caller frees; empty on failure. Of the hints the unit, which is that of points, and the
   origin count; `cell_m` places voxels. */
enum pnet_status pnet_array_cloud(const struct pnet_array *a, int64_t row,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e);

#endif
