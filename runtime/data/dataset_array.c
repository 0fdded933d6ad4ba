#include "runtime/data/dataset_array.h"
#include "runtime/io/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum pnet_status check(const char *path, const struct pnet_array *a, struct pnet_error *e)
{
    const struct pnet_npy *p = &a->points, *l = &a->labels;
    if (a->kind == PNET_ARRAY_POINTS && (p->dims != 3 || p->shape[2] < 3))
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: an array of clouds has the shape [n, points, 3 or more], this one has %d "
            "dimensions%s",
            path, p->dims, p->dims == 4 ? " (kind: voxels?)" : "");
    if (a->kind == PNET_ARRAY_VOXELS && p->dims != 4)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: an array of voxel grids has the shape [n, x, y, z], this one has %d dimensions",
            path, p->dims);
    /* The size of the file does not bound the number of clouds without points. */
    if (p->shape[0] && !p->count)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: %" PRId64 " clouds without a point: an array of clouds has no dimension of 0 "
            "after the first",
            path, p->shape[0]);
    if (!l->dims) return PNET_OK;
    bool clouds = l->count == p->shape[0];
    bool points = a->kind == PNET_ARRAY_POINTS && l->dims >= 2 && l->shape[0] == p->shape[0] &&
                  l->count == p->shape[0] * p->shape[1];
    if (!clouds && !points)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: %" PRId64 " labels for %" PRId64 " clouds: expected one a cloud%s", path, l->count,
            p->shape[0], a->kind == PNET_ARRAY_POINTS ? ", or one a point" : "");
    return PNET_OK;
}

enum pnet_status pnet_array_read(const char *path, const char *points, const char *labels,
    enum pnet_array_kind kind, double cell_m, struct pnet_array *a, struct pnet_error *e)
{
    *a = (struct pnet_array){.kind = kind, .cell_m = cell_m};
    bool archive = pnet_is_archive(path);
    char name[PNET_ARRAY_NAME];
    enum pnet_status status = PNET_OK;
    if (!archive && points)
        return pnet_error_set(
            e, PNET_BAD_DATA, "%s: is no .npz archive, it has no member `%s`", path, points);
    if (archive && !points)
        status = pnet_archive_find(path, kind == PNET_ARRAY_VOXELS ? 4 : 3, name, e);
    if (!status)
        status = archive ? pnet_archive_read(path, points ? points : name, &a->points, e)
                         : pnet_npy_read(path, &a->points, e);
    if (!status && labels)
        status = archive ? pnet_archive_read(path, labels, &a->labels, e)
                         : pnet_npy_read(labels, &a->labels, e);
    if (!status) status = check(path, a, e);
    if (status) pnet_array_free(a);
    return status;
}

void pnet_array_free(struct pnet_array *a)
{
    pnet_npy_free(&a->points);
    pnet_npy_free(&a->labels);
    *a = (struct pnet_array){.kind = PNET_ARRAY_POINTS};
}

static double value(const struct pnet_npy *n, int64_t i)
{
    struct pnet_field f = {.type = n->type, .data = n->data};
    return pnet_field_get(&f, i);
}

bool pnet_array_labels_points(const struct pnet_array *a)
{
    return a->labels.dims >= 2 && a->labels.count != a->points.shape[0];
}

static enum pnet_status make_points(const struct pnet_array *a, int64_t row, struct pnet_cloud *c,
    double *xyz, struct pnet_error *e)
{
    int64_t n = a->points.shape[1], width = a->points.shape[2], at = row * n * width;
    size_t size = pnet_scalar_size(a->points.type);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < 3; k++) xyz[3 * i + k] = value(&a->points, at + i * width + k);
    c->rows = n;
    for (int64_t k = 3; k < width; k++) {
        char name[32];
        snprintf(name, sizeof name, "c%" PRId64, k);
        struct pnet_field *f = pnet_cloud_add(c, name, a->points.type);
        if (!f) return pnet_error_memory(e);
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)f->data + (size_t)i * size,
                (const char *)a->points.data + (size_t)(at + i * width + k) * size, size);
    }
    return pnet_cloud_place(c, n, xyz, e);
}

/* Writes the centres of the cells that are not 0, unless xyz is NULL. Returns their number. */
static int64_t find_voxels(const struct pnet_array *a, int64_t row, double *xyz)
{
    const int64_t *s = a->points.shape;
    int64_t n = 0, at = row * s[1] * s[2] * s[3];
    for (int64_t x = 0; x < s[1]; x++)
        for (int64_t y = 0; y < s[2]; y++)
            for (int64_t z = 0; z < s[3]; z++) {
                if (value(&a->points, at++) == 0) continue;
                if (xyz) {
                    xyz[3 * n] = ((double)x + 0.5) * a->cell_m;
                    xyz[3 * n + 1] = ((double)y + 0.5) * a->cell_m;
                    xyz[3 * n + 2] = ((double)z + 0.5) * a->cell_m;
                }
                n++;
            }
    return n;
}

enum pnet_status pnet_array_cloud(const struct pnet_array *a, int64_t row,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e)
{
    bool voxels = a->kind == PNET_ARRAY_VOXELS;
    int64_t n = voxels ? find_voxels(a, row, NULL) : a->points.shape[1];
    *c = (struct pnet_cloud){.xyz_type = PNET_F32};
    for (int i = 0; i < 2 && !voxels; i++)
        c->metres[i] = hints->unit.axes[i] ? hints->unit.axes[i]->metres : 0;
    double *xyz = malloc(n ? (size_t)n * 3 * sizeof *xyz : 1);
    if (!xyz) return pnet_error_memory(e);
    enum pnet_status status;
    if (voxels) {
        find_voxels(a, row, xyz);
        status = pnet_cloud_place(c, n, xyz, e);
    } else {
        status = make_points(a, row, c, xyz, e);
    }
    free(xyz);
    if (!status && hints->origin) status = pnet_cloud_move_offset(c, hints->origin, e);
    if (status) pnet_cloud_free(c);
    return status;
}
