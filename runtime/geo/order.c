/* The rows of a level along an order from which attention takes buckets (kernels/order.h). */
#include "kernels/geometry_stage.h"
#include "kernels/order.h"
#include "runtime/base/number.h"
#include "runtime/geo/walk.h"

enum { ORDER_ROW };

static bool same(const struct pnet_geo_request *q, const struct pnet_geo_request *r)
{
    return q->order.kind == r->order.kind && q->order.bucket == r->order.bucket &&
           q->order.cell == r->order.cell;
}

static uint32_t mix(const struct pnet_geo_request *q)
{
    return (uint32_t)q->order.kind * 31 + (uint32_t)q->order.bucket;
}

/* The grid that makes voxels: that of the level, or one of the request's cells, in whose key range all points must lie. */
static struct pnet_grid grid_of(struct pnet_geo_walk *w, const struct pnet_level *level, void *work)
{
    double cell = w->q->order.cell;
    if (!(cell > 0)) return level->grid;
    struct pnet_grid grid = (struct pnet_grid){(float)cell, (float)(1 / cell), 1};
    int64_t outside = PNET_KERNEL(w, keys)(level->rows, level->xyz, grid, work);
    if (outside)
        pnet_geo_fail(w, PNET_BAD_DATA,
            "%lld of %lld points of level '%s' are more than 2^20 cells of %g m from the origin",
            (long long)outside, (long long)level->rows, w->plan->levels[w->q->a].name, cell);
    return grid;
}

static void walk(struct pnet_geo_walk *w)
{
    struct pnet_level level = pnet_geo_level(w, w->q->a), room = pnet_geo_room(w, w->q->a);
    int32_t *row = pnet_geo_buffer(w, ORDER_ROW, level.rows, 1, 0, sizeof *row);
    size_t keys = (size_t)room.rows * sizeof(uint64_t),
           bytes = PNET_WORK(w->device, bucket_order_work)(&room);
    void *work = pnet_geo_scratch(w, bytes > keys ? bytes : keys);
    if (!pnet_geo_builds(w)) return;
    struct pnet_grid grid = grid_of(w, &level, work);
    if (!pnet_geo_builds(w)) return; /* points lie outside */
    PNET_KERNEL(w, bucket_order)
    (&level, grid, (enum pnet_order)w->q->order.kind, w->q->order.bucket, row, work);
}

static void print(const struct pnet_plan *p, const struct pnet_geo_request *q, FILE *out)
{
    static const char *const names[PNET_ORDERS] = {
        "z", "z_trans", "hilbert", "hilbert_trans", "xor_div", "xor_mod", "z_mod"};
    (void)p;
    fprintf(out, "  %s", names[q->order.kind]);
    if (q->order.bucket) fprintf(out, " bucket=%d", (int)q->order.bucket);
    if (q->order.cell > 0) pnet_number_write(out, " cell=%gm", q->order.cell);
}

const struct pnet_geo_kind pnet_geo_order = {
    .name = "order",
    .part = {[ORDER_ROW] = PNET_PART_MAPS},
    .same = same,
    .mix = mix,
    .walk = walk,
    .print = print,
};
