/* A level of the points of an input cloud, put along a curve. */
#include "runtime/geo/grids.h"
#include "runtime/geo/levels.h"

#include "kernels/rows.h"
#include "kernels/geometry_stage.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/given.h"

#include <math.h>
#endif

/* The grid of a level from which no grid is sampled. */
static struct pnet_grid grid_of(
    const struct pnet_geo_walk *w, const struct pnet_batch_input *in, int64_t n, void *work)
{
    const float *xyz = in->xyz;
    if (in->largest > 0) return pnet_grid_of_largest(in->largest);
#ifdef PNET_CUDA_BUILT
    float largest;
    if (w->batch->there) {
        pnet_cuda_positions_beyond(n, xyz, INFINITY, &largest, work);
        return pnet_grid_of_largest(largest);
    }
#endif
    (void)w;
    (void)work;
    return pnet_grid_of_extent(n, xyz);
}

static void order(struct pnet_geo_walk *w, const struct pnet_batch_input *in, const void *arrived,
    struct pnet_level_points to, int32_t *order, void *work)
{
    int level = w->q->a;
    int64_t n = in->rows, *splits = pnet_geo_splits(w, level);
    struct pnet_grid grid = w->plan->levels[level].grid;
    if (!(grid.base > 0)) grid = grid_of(w, in, n, work);
    int64_t outside = PNET_KERNEL(w, order_points)(
        n, w->batch->samples, splits, arrived, grid, order, to.xyz, work);
    if (outside) {
        pnet_geo_fail(w, PNET_BAD_DATA,
            "%lld points of input '%s' are not finite, or lie beyond the %d cells of %g m that a "
            "grid reaches from the origin",
            (long long)outside, w->plan->inputs[w->plan->levels[level].input].name, PNET_KEY_BIAS,
            (double)grid.base);
        return;
    }
    if (!pnet_level_unread(w->plan, level)) PNET_KERNEL(w, gather)(n, 3, arrived, order, to.xyz);
    if (to.key) PNET_KERNEL(w, keys)(n, to.xyz, grid, to.key);
    pnet_geo_set_grid(w, grid);
}

static void walk(struct pnet_geo_walk *w)
{
    int level = w->q->a;
    const struct pnet_batch_input *in =
        w->batch ? &w->batch->inputs[w->plan->levels[level].input] : NULL;
    int64_t n = in ? in->rows : w->counts->rows[level];
    void *work;
    if (n > INT32_MAX) {
        pnet_geo_fail(
            w, PNET_BAD_DATA, "a batch holds at most 2147483647 points, not %lld", (long long)n);
        return;
    }
    bool unread = pnet_level_unread(w->plan, level);
    struct pnet_level_points to = {NULL, NULL};
    if (!unread) to = pnet_level_buffers(w, level, n);
    int32_t *rows = pnet_geo_buffer(w, LEVEL_ORDER, n, 1, 0, sizeof *rows);
    size_t ordering = pnet_round_bytes(PNET_WORK(w->device, order_points_work)(pnet_capacity(n))),
           points = unread ? (size_t)pnet_capacity(n) * 3 * sizeof(float) : 0;
    const void *arrived =
        pnet_geo_arrive(w, ordering + points, &work, in ? in->xyz : NULL, n, 3 * sizeof(float));
    if (!in || !pnet_geo_builds(w)) return;
    if (unread) to.xyz = (float *)(void *)((char *)work + ordering);
    pnet_geo_put_splits(w, level, in->row_splits);
    w->counts->rows[level] = n;
    order(w, in, arrived, to, rows, work);
}

static struct pnet_geo_reach reach(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    (void)p;
    (void)q;
    return (struct pnet_geo_reach){0, {0, 0}};
}

const struct pnet_geo_kind pnet_geo_input = {
    .name = "level",
    .flags = PNET_GEO_LEVEL,
    .part = {[LEVEL_PARENT] = PNET_PART_MAPS},
    .owner = pnet_level_owner,
    .reach = reach,
    .walk = walk,
    .view = pnet_level_view,
    .heading = "levels:",
    .describe = pnet_level_describe,
};
