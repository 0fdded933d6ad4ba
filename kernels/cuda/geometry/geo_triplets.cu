/* Triplet sets: selects the kind of search. */
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_blocks.h"

#include <cfloat>
#include <cmath>

/* Squares are rounded, and small ones vanish: |d|^2 <= r^2 holds for coordinates slightly larger than r; for some up to
   1e-19, however small r is; and for all if the square of r is infinite. */
static float slack_of(float radius2, float radius)
{
    return radius2 <= FLT_MAX ? radius * 1e-6f + 1e-18f : INFINITY;
}

static struct geo_set describe(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent)
{
    struct geo_set s = {};
    int32_t window_low = nb->kernel % 2 ? -(nb->kernel - 1) / 2 : 0;
    s.knn = nb->knn;
    s.pair_in_voxels = nb->degrade & PNET_NEIGHBOUR;
    s.cell_in_voxels = nb->degrade & PNET_KERNEL;
    s.snap = nb->degrade & PNET_CENTRE;
    s.step = nb->degrade ? out->grid.factor / in->grid.factor : 1;
    s.parent = s.pair_in_voxels ? nullptr : parent;
    s.ball = !s.pair_in_voxels && nb->shape == PNET_BALL;
    s.radius2 = nb->radius * nb->radius;
    s.low = s.pair_in_voxels ? (float)window_low : -nb->radius;
    s.high = s.pair_in_voxels ? (float)(window_low + nb->kernel - 1) : nb->radius;
    s.slack = slack_of(s.radius2, s.high);
    s.cells = cells_of(nb->kernel, nb->radius);
    if (s.cell_in_voxels) s.cells = {nb->kernel, 1, -(float)window_low, -1};
    return s;
}

static __global__ void grow_boxes(int64_t n, const float *xyz, const int32_t *parent, uint32_t *box)
{
    int64_t rounds = (n + thread_count() - 1) / thread_count();
    for (int64_t round = 0; round < rounds; round++) {
        int64_t j = round * thread_count() + thread_index();
        int64_t row = j < n ? parent[j] : -1;
        int64_t common = __shfl_sync(WARP_ALL, row, 0);
        bool whole = common >= 0 && __all_sync(WARP_ALL, row == common || row < 0);
        for (int a = 0; a < 3; a++) {
            uint32_t low = row < 0 ? UINT32_MAX : float_rank(xyz[3 * j + a]);
            uint32_t high = row < 0 ? 0 : low;
            if (whole) {
                low = __reduce_min_sync(WARP_ALL, low);
                high = __reduce_max_sync(WARP_ALL, high);
            }
            if (row < 0 || (whole && threadIdx.x % 32 != 0)) continue;
            atomicMin(&box[6 * row + a], low);
            atomicMax(&box[6 * row + 3 + a], high);
        }
    }
}

static __global__ void empty_boxes(int64_t n, uint32_t *box)
{
    for (int64_t i = thread_index(); i < 6 * n; i += thread_count())
        box[i] = i % 6 < 3 ? UINT32_MAX : 0;
}

void pnet_cuda_geo_child_boxes(
    int64_t fine_rows, const float *xyz, const int32_t *parent, int64_t coarse_rows, uint32_t *box)
{
    empty_boxes<<<geo_blocks(6 * coarse_rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        coarse_rows, box);
    if (fine_rows > 0)
        grow_boxes<<<geo_blocks(fine_rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            fine_rows, xyz, parent, box);
}

static struct geo_set prepare(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, void *work,
    struct geo_triplets_work *p)
{
    struct geo_set s = describe(out, in, nb, parent);
    pnet_cuda_geo_triplets_take(out, in, nb, work, p, &s.tree);
    s.in = pnet_cuda_geo_points_of(in, p->in_order, p->sorting);
    s.out = out == in ? s.in : pnet_cuda_geo_points_of(out, p->out_order, p->sorting);
    pnet_cuda_geo_tree_build(&s.tree, &s.in, s.pair_in_voxels);
    if (s.parent && s.knn)
        pnet_cuda_children(in->rows, out->rows, parent, p->child_start, p->child);
    else if (s.parent)
        pnet_cuda_geo_child_boxes(in->rows, in->xyz, parent, out->rows, p->child_box);
    if (pnet_cuda_geo_blocks_serve(out, in, nb)) {
        s.blocks = p->blocks;
        s.blocks.key = in->key;
        pnet_cuda_geo_blocks_build(&s.blocks, in);
    }
    s.child_box = p->child_box;
    s.child_start = p->child_start;
    s.child = p->child;
    return s;
}

static __global__ void point_to_itself(int64_t n, int64_t *start, int32_t *other, uint16_t *cell)
{
    for (int64_t i = thread_index(); i < n + 1; i += thread_count()) {
        if (start) start[i] = i;
        if (i == n || !other) continue;
        other[i] = (int32_t)i;
        cell[i] = 0;
    }
}

extern "C" int64_t pnet_cuda_triplets_count(const struct pnet_level *out,
    const struct pnet_level *in, const struct pnet_neighbourhood *nb, const int32_t *parent,
    int64_t *start, void *work)
{
    int64_t rows = out->rows;
    struct geo_triplets_work p;
    if (nb->pointwise) {
        point_to_itself<<<geo_blocks(rows + 1), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            rows, start, nullptr, nullptr);
        return rows;
    }
    cudaMemsetAsync(start, 0, sizeof *start, pnet_cuda_stream());
    if (rows <= 0) return 0;
    struct geo_set s = prepare(out, in, nb, parent, work, &p);
    if (s.knn)
        pnet_cuda_geo_nearest_count(&s, start);
    else
        pnet_cuda_geo_window_count(&s, start);
    if (s.blocks.missing) pnet_cuda_geo_blocks_count(&s, start);
    pnet_cuda_geo_scan(rows, start + 1, p.sums);
    return pnet_cuda_geo_read(start + rows);
}

extern "C" void pnet_cuda_triplets_write(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent, const int64_t *start,
    int32_t *other, uint16_t *cell, void *work)
{
    int64_t rows = out->rows, limit = ROW_LIMIT;
    struct geo_triplets_work p;
    if (rows <= 0) return;
    if (nb->pointwise) {
        point_to_itself<<<geo_blocks(rows + 1), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            rows, nullptr, other, cell);
        return;
    }
    struct geo_set s = prepare(out, in, nb, parent, work, &p);
    struct geo_results to = {nullptr, start, other, cell};
    if (s.knn && s.knn <= FEW_LIMIT && !s.parent)
        pnet_cuda_geo_few_write(&s, &to);
    else if (s.knn)
        limit = pnet_cuda_geo_nearest_write(&s, &to);
    else
        pnet_cuda_geo_window_write(&s, &to);
    if (s.blocks.missing) pnet_cuda_geo_blocks_write(&s, &to);
    pnet_cuda_geo_sort_long(rows, start, limit, other, cell);
}

extern "C" void pnet_cuda_triplets_back(const struct pnet_level *level,
    const struct pnet_neighbourhood *nb, const int64_t *start, int32_t *other, uint16_t *cell,
    void *work)
{
    struct geo_triplets_work p;
    if (level->rows <= 0) return;
    if (nb->pointwise) {
        pnet_cuda_triplets_write(level, level, nb, nullptr, start, other, cell, work);
        return;
    }
    struct geo_set s = prepare(level, level, nb, nullptr, work, &p);
    struct geo_results to = {nullptr, start, other, cell};
    s.backward = true;
    pnet_cuda_geo_window_write(&s, &to);
    if (s.blocks.missing) pnet_cuda_geo_blocks_write(&s, &to);
    pnet_cuda_geo_sort_long(level->rows, start, ROW_LIMIT, other, cell);
}
