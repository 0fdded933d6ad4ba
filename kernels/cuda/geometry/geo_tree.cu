#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_tree.h"

enum { WARPS = GEO_THREADS / 32 };

/* Writes the box around the intervals of all lanes, and the least of their rows. */
static __device__ void write_box(
    const uint32_t low[3], const uint32_t high[3], int32_t least, struct geo_box *box)
{
    struct geo_box all = {};
    for (int a = 0; a < 3; a++) {
        all.low[a] = rank_float(__reduce_min_sync(WARP_ALL, low[a]));
        all.high[a] = rank_float(__reduce_max_sync(WARP_ALL, high[a]));
    }
    all.least = __reduce_min_sync(WARP_ALL, least);
    all.centre2 = INFINITY;
    if (threadIdx.x % 32 == 0) *box = all;
}

static __global__ void box_leaves(
    struct geo_points p, bool voxel, struct geo_box *box, int64_t nodes)
{
    int64_t node = thread_index() / 32, place = thread_index();
    uint32_t low[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, high[3] = {0, 0, 0};
    int32_t least = INT32_MAX;
    if (node >= nodes) return;
    if (place < (p.live ? *p.live : p.rows)) {
        float at[3];
        point_at(p, place, voxel, at);
        least = row_at(p, place);
        for (int a = 0; a < 3; a++) low[a] = high[a] = float_rank(at[a]);
    }
    write_box(low, high, least, &box[node]);
}

static __global__ void box_groups(
    const struct geo_box *below, int64_t members, struct geo_box *box, int64_t nodes)
{
    int64_t node = thread_index() / 32, member = thread_index();
    uint32_t low[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, high[3] = {0, 0, 0};
    int32_t least = member < members ? below[member].least : INT32_MAX;
    if (node >= nodes) return;
    if (member < members)
        for (int a = 0; a < 3; a++) {
            low[a] = float_rank(below[member].low[a]);
            high[a] = float_rank(below[member].high[a]);
        }
    write_box(low, high, least, &box[node]);
}

static unsigned warp_blocks(int64_t warps)
{
    return (unsigned)((warps + WARPS - 1) / WARPS);
}

void pnet_cuda_geo_tree_build(const struct geo_tree *t, const struct geo_points *points, bool voxel)
{
    if (points->rows <= 0) return;
    box_leaves<<<warp_blocks(t->nodes[0]), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        *points, voxel, t->box[0], t->nodes[0]);
    for (int l = 1; l < t->depth; l++)
        box_groups<<<warp_blocks(t->nodes[l]), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            t->box[l - 1], t->nodes[l - 1], t->box[l], t->nodes[l]);
}

struct geo_points pnet_cuda_geo_points_of(
    const struct pnet_level *level, int32_t *order, void *work)
{
    struct geo_points p = {};
    p.rows = level->rows;
    p.samples = level->samples;
    p.row_splits = level->row_splits;
    p.xyz = level->xyz;
    p.grid = level->grid;
    if (level->key) return p;
    pnet_cuda_geo_curve(level, order, work);
    p.order = order;
    return p;
}
