/* The nearest row of another set, by a tree. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/sets/points.cuh"
#include "kernels/cuda/sets/tree_walk.cuh"

enum { NEAR_WARPS = 4 };

/* A candidate is (distance^2, row) from the highest bit down, as in near.cu. Whatever is not below this is none: a distance that
   is not finite. */
static const uint64_t NONE = (uint64_t)0x7f800000u << 32;

static __global__ void __launch_bounds__(NEAR_WARPS *WARP)
    walk_to_near(const __grid_constant__ struct set_search s, int32_t *near)
{
    __shared__ __align__(16) struct walk_room rooms[NEAR_WARPS];
    struct walk_room &room = rooms[threadIdx.x / WARP];
    auto broken = [&](int32_t row) { near[row] = -1; };
    for_parts(s, s.in.row_splits[s.in.samples / 2], broken, [&](const struct part &p) {
        uint64_t best = NONE;
        walk_part(
            s, p, room, [&] { return (uint32_t)(best >> 32); },
            [&](int, uint32_t, const struct geo_box &box, uint32_t gap) {
                return ((uint64_t)gap << 32 | (uint32_t)box.least) < best;
            },
            [&](uint32_t distance2, int32_t row) {
                uint64_t own = (uint64_t)distance2 << 32 | (uint32_t)row;
                best = own < best ? own : best;
            });
        if (has_point(p)) near[p.own.row] = best == NONE ? -1 : (int32_t)best;
    });
}

void pnet_cuda_near_tree(
    const struct pnet_point_set *a, const struct pnet_point_set *b, int32_t *near, void *work)
{
    geo_purse purse(work);
    struct set_tree t;
    if (a->rows.most <= 0) return;
    pnet_cuda_set_tree_take(a, b, &purse, &t);
    pnet_cuda_set_tree_build(&t, a, b);
    const int64_t tiles = (a->rows.most + NEAR_WARPS * WARP - 1) / (NEAR_WARPS * WARP);
    walk_to_near<<<(unsigned)tiles, NEAR_WARPS * WARP, 0, pnet_cuda_stream()>>>(
        search_of(&t), near);
}
