/* Builds the tree over two sets. A point is sorted by its sample, then along a curve through the box of its sample in its own
   set, so that sets that lie far apart are sorted as finely as others. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_tree.h"
#include "kernels/cuda/sets/points.cuh"
#include "kernels/cuda/sets/tree_walk.cuh"

/* The two sets of a tree. */
struct both_sets {
    struct pnet_point_set of[SIDES];
};

/* Enters the box of a block's points into that of their sample. Boxes only grow: one that holds the block's box needs no atomic
   operation. */
static __device__ void join_box(
    const struct set_tree &t, int64_t sample, const uint32_t low[3], const uint32_t high[3])
{
    for (int c = 0; c < 3; c++) {
        uint32_t least = __reduce_min_sync(WARP_ALL, low[c]),
                 most = __reduce_max_sync(WARP_ALL, high[c]);
        if (threadIdx.x % WARP != 0) continue;
        if (least < t.low[3 * sample + c]) atomicMin(&t.low[3 * sample + c], least);
        if (most > t.high[3 * sample + c]) atomicMax(&t.high[3 * sample + c], most);
    }
}

/* Grid: stretches of samples, sides. */
static __global__ void __launch_bounds__(THREADS)
    find_boxes(const __grid_constant__ struct both_sets sets,
        const __grid_constant__ struct set_tree t, int32_t parts)
{
    const int side = (int)blockIdx.y;
    const struct pnet_point_set &s = sets.of[side];
    const int64_t first = sets.of[0].splits[t.samples];
    for (int64_t k = FLAT_BEGIN; k <= t.samples; k += FLAT_STEP)
        t.splits[side * t.samples + k] = side * first + s.splits[k];
    for (int64_t task = blockIdx.x; task < (int64_t)t.samples * parts; task += gridDim.x) {
        const int32_t sample = (int32_t)(task / parts);
        const struct stretch rows = stretch_of(s, sample, (int32_t)(task % parts), parts);
        uint32_t low[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, high[3] = {0, 0, 0};
        for (int64_t row = rows.begin + threadIdx.x; row < rows.end; row += THREADS)
            for (int c = 0; c < 3; c++) {
                float x = s.xyz[3 * row + c];
                if (!isfinite(x)) {
                    *t.broken = 1;
                    continue;
                }
                low[c] = min(low[c], float_rank(x));
                high[c] = max(high[c], float_rank(x));
            }
        join_box(t, side * (int64_t)t.samples + sample, low, high);
    }
}

/* Items of rows that are not there stand behind all others. */
static __global__ void __launch_bounds__(THREADS)
    make_items(const __grid_constant__ struct both_sets sets,
        const __grid_constant__ struct set_tree t, int bits, uint64_t *item)
{
    const int64_t first = sets.of[0].rows.most;
    for (int64_t i = FLAT_BEGIN; i < t.places; i += FLAT_STEP) {
        const int side = i >= first;
        const struct pnet_point_set &s = sets.of[side];
        const int64_t row = i - side * first;
        t.row[i] = (int32_t)row;
        item[i] = (uint64_t)(2 * (int64_t)t.samples) << (3 * bits);
        if (row >= pnet_live(s.rows)) continue;
        const int64_t sample = side * (int64_t)t.samples + sample_of(s, row);
        float low[3], edge = 0;
        for (int c = 0; c < 3; c++) {
            low[c] = rank_float(t.low[3 * sample + c]);
            edge = fmaxf(edge, rank_float(t.high[3 * sample + c]) - low[c]);
        }
        item[i] = (uint64_t)sample << (3 * bits) | curve_place(s.xyz + 3 * row, low, edge, bits);
    }
}

static __global__ void __launch_bounds__(THREADS) place_points(
    const __grid_constant__ struct both_sets sets, const __grid_constant__ struct set_tree t)
{
    const int64_t first = t.splits[t.samples], places = t.splits[2 * (int64_t)t.samples];
    for (int64_t place = FLAT_BEGIN; place < places; place += FLAT_STEP) {
        const float *from = sets.of[place >= first].xyz + 3 * (int64_t)t.row[place];
        for (int c = 0; c < 3; c++) t.placed[3 * place + c] = from[c];
    }
}

/* Sets centre2 of all nodes with points of a sample that is searched from a small one. A warp has the places of a leaf. */
static __global__ void __launch_bounds__(THREADS)
    measure_from_centres(const __grid_constant__ struct set_tree t)
{
    const int64_t places = t.splits[2 * (int64_t)t.samples],
                  end = (places + WARP - 1) / WARP * WARP;
    for (int64_t place = FLAT_BEGIN; place < end; place += FLAT_STEP) {
        float square = INFINITY;
        if (place < places) {
            const int32_t own = sample_of(t.splits, 2 * t.samples, place);
            const struct centre c = centre_of_sample(t.low, t.high, t.broken, t.samples,
                own < t.samples ? own + t.samples : own - t.samples);
            if (c.there) {
                float d[3];
                for (int a = 0; a < 3; a++) d[a] = t.placed[3 * place + a] - c.at[a];
                square = (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2];
            }
        }
        const uint32_t least = __reduce_min_sync(WARP_ALL, __float_as_uint(square));
        if (threadIdx.x % WARP != 0 || !(__uint_as_float(least) < INFINITY)) continue;
        for (int l = 0; l < t.tree.depth; l++) {
            unsigned *node = (unsigned *)&t.tree.box[l][place >> 5 * (l + 1)].centre2;
            if (least < *(volatile unsigned *)node) atomicMin(node, least);
        }
    }
}

void pnet_cuda_set_tree_build(
    const struct set_tree *t, const struct pnet_point_set *a, const struct pnet_point_set *b)
{
    const struct both_sets sets = {{*a, *b}};
    const size_t box = 6 * (size_t)t->samples * sizeof *t->low;
    const int bits = pnet_cuda_set_curve_bits(t->samples);
    const unsigned stretches = t->samples > 0 ? stretch_blocks(t->samples) : 1;
    cudaStream_t stream = pnet_cuda_stream();
    geo_purse sorting(t->sorter);
    struct geo_points points = places_of(t);
    cudaMemsetAsync(t->low, 0xff, box, stream);
    cudaMemsetAsync(t->high, 0, box + sizeof *t->broken, stream);
    find_boxes<<<dim3(stretches, SIDES), THREADS, 0, stream>>>(
        sets, *t, parts_of_sample(t->samples));
    if (t->places <= 0) return;
    make_items<<<element_blocks(t->places), THREADS, 0, stream>>>(
        sets, *t, bits, (uint64_t *)t->items);
    pnet_cuda_geo_sort_items(
        t->places, 3 * bits + pnet_cuda_set_sample_bits(t->samples), t->row, t->items, &sorting);
    place_points<<<element_blocks(t->places), THREADS, 0, stream>>>(sets, *t);
    pnet_cuda_geo_tree_build(&t->tree, &points, false);
    measure_from_centres<<<element_blocks(t->places), THREADS, 0, stream>>>(*t);
}
