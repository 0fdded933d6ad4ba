/* Triplet sets: selects the kind of search, and divides its workspace. */
#include <string.h>

#include "kernels/geometry_stage.h"
#include "kernels/cpu/geometry/geo_set.h"

/* Takes what the set needs from a workspace and returns its size in bytes. With base NULL only the size is computed. */
static size_t lay_out(struct pnet_geo_set *s, void *work, int64_t **in_start, int64_t **out_start,
    int32_t **in_order, int32_t **out_order, void **scratch)
{
    const struct pnet_level *out = s->out, *in = s->in;
    bool same = out == in;
    struct pnet_geo_purse purse = pnet_geo_open(work);
    *in_start = pnet_geo_take(&purse, ((size_t)in->samples + 1) * sizeof **in_start);
    *in_order = pnet_geo_take(&purse, (size_t)in->rows * sizeof **in_order);
    *out_start = pnet_geo_take(&purse, same ? 0 : ((size_t)out->samples + 1) * sizeof **out_start);
    *out_order = pnet_geo_take(&purse, same ? 0 : (size_t)out->rows * sizeof **out_order);
    s->child_start =
        pnet_geo_take(&purse, same ? 0 : ((size_t)out->rows + 1) * sizeof *s->child_start);
    s->child = pnet_geo_take(&purse, same ? 0 : (size_t)in->rows * sizeof *s->child);
    /* the order's memory is free before the tree is built */
    struct pnet_geo_purse shared = purse;
    *scratch =
        pnet_geo_take(&shared, pnet_geo_curve_work(in->rows > out->rows ? in->rows : out->rows));
    pnet_geo_tree_take(&s->tree, in, &purse);
    if (s->pair_in_voxels != s->cell_in_voxels)
        s->cell_at = pnet_geo_take(&purse, (size_t)pnet_geo_blocks_bound(in) * sizeof *s->cell_at);
    return shared.used > purse.used ? shared.used : purse.used;
}

static struct pnet_geo_set describe(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent)
{
    struct pnet_geo_set s = {.out = out, .in = in, .kernel = nb->kernel, .knn = nb->knn};
    int32_t window_low = nb->kernel % 2 ? -(nb->kernel - 1) / 2 : 0;
    s.pair_in_voxels = nb->degrade & PNET_NEIGHBOUR;
    s.cell_in_voxels = nb->degrade & PNET_KERNEL;
    s.snap = nb->degrade & PNET_CENTRE;
    s.parent = s.pair_in_voxels ? NULL : parent;
    s.ball = !s.pair_in_voxels && nb->shape == PNET_BALL;
    s.radius2 = nb->radius * nb->radius;
    s.low = s.pair_in_voxels ? (float)window_low : -nb->radius;
    s.high = s.pair_in_voxels ? (float)(window_low + nb->kernel - 1) : nb->radius;
    if (s.cell_in_voxels) {
        s.shift = -(float)window_low;
        s.scale = 1;
        s.fixed = -1;
    } else {
        pnet_geo_set_cells(&s, nb->radius);
    }
    return s;
}

static void fill_cell_places(struct pnet_geo_set *s)
{
    int64_t leaves = s->points.start[s->in->samples];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < leaves; i++)
        for (int l = 0; l < WIDE; l++) {
            float at[3] = {0, 0, 0};
            int32_t row = s->tree.leaf[i].row[l];
            if (row >= 0) pnet_geo_place(s->in, row, s->cell_in_voxels, at);
            for (int a = 0; a < 3; a++) s->cell_at[i][a][l] = at[a];
        }
}

static void prepare(struct pnet_geo_set *s, void *work)
{
    int64_t *in_start, *out_start;
    int32_t *in_order, *out_order;
    void *scratch;
    s->step = s->pair_in_voxels || s->cell_in_voxels || s->snap
                  ? s->out->grid.factor / s->in->grid.factor
                  : 1;
    lay_out(s, work, &in_start, &out_start, &in_order, &out_order, &scratch);
    pnet_geo_blocks_make(&s->points, s->in, in_order, in_start, scratch);
    if (s->out == s->in)
        s->queries = s->points;
    else
        pnet_geo_blocks_make(&s->queries, s->out, out_order, out_start, scratch);
    pnet_geo_tree_build(&s->tree, &s->points, s->pair_in_voxels);
    if (s->cell_at) fill_cell_places(s);
    if (s->parent)
        pnet_cpu_children(s->in->rows, s->out->rows, s->parent, s->child_start, s->child);
}

static void search(const struct pnet_geo_set *s, const struct pnet_geo_results *to)
{
    if (s->knn)
        pnet_geo_nearest_search(s, to);
    else
        pnet_geo_window_search(s, to);
}

size_t pnet_cpu_triplets_work(
    const struct pnet_level *out, const struct pnet_level *in, const struct pnet_neighbourhood *nb)
{
    if (nb->pointwise) return 0;
    struct pnet_geo_set s = describe(out, in, nb, NULL);
    int64_t *starts[2];
    int32_t *orders[2];
    void *scratch;
    return lay_out(&s, NULL, &starts[0], &starts[1], &orders[0], &orders[1], &scratch);
}

int64_t pnet_cpu_triplets_count(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, int64_t *start, void *work)
{
    if (nb->pointwise) {
        for (int64_t i = 0; i <= out->rows; i++) start[i] = i;
        return out->rows;
    }
    struct pnet_geo_set s = describe(out, in, nb, parent);
    prepare(&s, work);
    start[0] = 0;
    search(&s, &(struct pnet_geo_results){.count = start});
    for (int64_t i = 0; i < out->rows; i++) start[i + 1] += start[i];
    return start[out->rows];
}

void pnet_cpu_triplets_write(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, const int64_t *start,
    int32_t *other, uint16_t *cell, void *work)
{
    if (nb->pointwise) {
        for (int64_t i = 0; i < out->rows; i++) {
            other[i] = (int32_t)i;
            cell[i] = 0;
        }
        return;
    }
    struct pnet_geo_set s = describe(out, in, nb, parent);
    prepare(&s, work);
    search(&s, &(struct pnet_geo_results){NULL, start, other, cell});
}
