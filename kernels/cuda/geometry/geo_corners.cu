/* The source rows around queries (kernels/corners.h). Eight threads take a query, one a corner. */
#include "kernels/corners.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

/* What both calls share. */
struct corner_search {
    struct pnet_level queries, source;
    const int32_t *nearest;
    struct geo_corners_work at;
};

static struct corner_search search_of(const struct pnet_level *queries,
    const struct pnet_level *source, enum pnet_corner_kind kind, const int32_t *nearest, void *work)
{
    struct corner_search s = {*queries, *source, nearest, {}};
    int corners = kind == PNET_CORNERS_TRILINEAR ? PNET_CORNERS : 1;
    pnet_cuda_geo_corners_take(queries, source, corners, work, &s.at);
    return s;
}

static __global__ void make_keys(const struct pnet_level source, uint64_t *key)
{
    bool inside = true;
    for (int64_t i = thread_index(); i < source.rows; i += thread_count())
        key[i] = point_key(source.xyz + 3 * i, source.grid, inside);
}

/* Returns the source row of a voxel in the sample of a query; -1: none. */
static __device__ int32_t row_of_voxel(
    const struct corner_search &s, int64_t query, const int32_t voxel[3])
{
    uint32_t at[3];
    for (int a = 0; a < 3; a++) {
        if (voxel[a] < -PNET_KEY_BIAS || voxel[a] >= PNET_KEY_BIAS) return -1;
        at[a] = (uint32_t)(voxel[a] + PNET_KEY_BIAS);
    }
    uint64_t wanted = pnet_key_join(at[0], at[1], at[2]);
    int32_t sample = sample_of(s.queries.row_splits, s.queries.samples, query);
    int64_t low = s.source.row_splits[sample], end = s.source.row_splits[sample + 1], high = end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s.at.key[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && s.at.key[low] == wanted ? (int32_t)low : -1;
}

/* The weight of corner e of a query, before it is divided, and its voxel; 0: it has none. */
static __device__ float weight_of(
    const struct corner_search &s, int64_t query, int e, int32_t voxel[3])
{
    float of_axis[3][2], p[3];
    for (int a = 0; a < 3; a++) p[a] = s.queries.xyz[3 * query + a];
    if (!pnet_corners_of(p, s.source.grid, voxel, of_axis)) return 0;
    for (int a = 0; a < 3; a++) voxel[a] += e >> (2 - a) & 1;
    return pnet_corner_weight(of_axis, e);
}

/* The lanes of a query that are set, from its corner 0 on. */
static __device__ __forceinline__ uint32_t of_query(uint32_t lanes)
{
    return lanes >> (threadIdx.x % 32 & ~(PNET_CORNERS - 1)) & 0xff;
}

static __device__ __forceinline__ int64_t count_of(
    const struct corner_search &s, int64_t query, int found)
{
    return found || !s.nearest ? found : s.nearest[query] >= 0;
}

static __global__ void __launch_bounds__(GEO_THREADS)
    find_corners(const __grid_constant__ struct corner_search s, int64_t *start)
{
    int lane = threadIdx.x % 32, e = lane % PNET_CORNERS;
    int64_t all = s.queries.rows * PNET_CORNERS;
    for (int64_t first = thread_index() - lane; first < all; first += thread_count()) {
        int64_t at = first + lane, query = at / PNET_CORNERS;
        int32_t row = -1, voxel[3];
        if (at < all && weight_of(s, query, e, voxel) > 0) row = row_of_voxel(s, query, voxel);
        uint32_t present = __ballot_sync(WARP_ALL, row >= 0);
        if (at >= all) continue;
        s.at.found[at] = row;
        if (e == 0) start[query + 1] = count_of(s, query, __popc(of_query(present)));
    }
}

static __global__ void __launch_bounds__(GEO_THREADS)
    find_voxels(const __grid_constant__ struct corner_search s, int64_t *start)
{
    for (int64_t i = thread_index(); i < s.queries.rows; i += thread_count()) {
        int32_t voxel[3], row = -1;
        bool inside = true;
        for (int a = 0; a < 3; a++)
            voxel[a] = voxel_index(s.queries.xyz[3 * i + a], s.source.grid, inside);
        if (inside) row = row_of_voxel(s, i, voxel);
        s.at.found[i] = row;
        start[i + 1] = count_of(s, i, row >= 0);
    }
}

extern "C" int64_t pnet_cuda_corners_count(const struct pnet_level *queries,
    const struct pnet_level *source, enum pnet_corner_kind kind, const int32_t *nearest,
    int64_t *start, void *work)
{
    struct corner_search s = search_of(queries, source, kind, nearest, work);
    cudaStream_t stream = pnet_cuda_stream();
    cudaMemsetAsync(start, 0, sizeof *start, stream);
    if (queries->rows <= 0) return 0;
    if (source->rows > 0)
        make_keys<<<geo_blocks(source->rows), GEO_THREADS, 0, stream>>>(*source, s.at.key);
    if (kind == PNET_CORNERS_TRILINEAR)
        find_corners<<<geo_blocks(queries->rows * PNET_CORNERS), GEO_THREADS, 0, stream>>>(
            s, start);
    else
        find_voxels<<<geo_blocks(queries->rows), GEO_THREADS, 0, stream>>>(s, start);
    pnet_cuda_geo_scan(queries->rows, start + 1, s.at.sums);
    return pnet_cuda_geo_read(start + queries->rows);
}

/* Where results go. */
struct corner_lists {
    const int64_t *start;
    int32_t *other;
    uint16_t *cell;
    float *weight; /* or NULL */
};

static __device__ __forceinline__ void put(
    const struct corner_lists &to, int64_t at, int32_t row, int e, float weight)
{
    to.other[at] = row;
    to.cell[at] = (uint16_t)e;
    if (to.weight) to.weight[at] = weight;
}

/* Each lane adds up the weights of the present corners of its query, in their order. */
static __global__ void __launch_bounds__(GEO_THREADS)
    write_corners(const __grid_constant__ struct corner_search s, const struct corner_lists to)
{
    int lane = threadIdx.x % 32, e = lane % PNET_CORNERS;
    int64_t all = s.queries.rows * PNET_CORNERS;
    for (int64_t first = thread_index() - lane; first < all; first += thread_count()) {
        int64_t at = first + lane, query = at / PNET_CORNERS;
        int32_t row = at < all ? s.at.found[at] : -1, voxel[3];
        float weight = row >= 0 ? weight_of(s, query, e, voxel) : 0, sum = 0;
        uint32_t present = of_query(__ballot_sync(WARP_ALL, row >= 0));
        for (int k = 0; k < PNET_CORNERS; k++)
            sum += __shfl_sync(WARP_ALL, weight, k, PNET_CORNERS); /* 0 of absent ones */
        if (at >= all) continue;
        int64_t begin = to.start[query];
        if (row >= 0)
            put(to, begin + __popc(present & ((1u << e) - 1)), row, e,
                weight / (sum > 1e-12f ? sum : 1e-12f));
        else if (e == 0 && !present && to.start[query + 1] > begin)
            put(to, begin, s.nearest[query], 0, 1);
    }
}

static __global__ void __launch_bounds__(GEO_THREADS)
    write_voxels(const __grid_constant__ struct corner_search s, const struct corner_lists to)
{
    for (int64_t i = thread_index(); i < s.queries.rows; i += thread_count()) {
        int32_t row = s.at.found[i];
        if (to.start[i + 1] > to.start[i])
            put(to, to.start[i], row >= 0 ? row : s.nearest[i], 0, 1);
    }
}

extern "C" void pnet_cuda_corners_write(const struct pnet_level *queries,
    const struct pnet_level *source, enum pnet_corner_kind kind, const int32_t *nearest,
    const int64_t *start, int32_t *other, uint16_t *cell, float *weight, void *work)
{
    struct corner_search s = search_of(queries, source, kind, nearest, work);
    struct corner_lists to = {start, other, cell, weight};
    cudaStream_t stream = pnet_cuda_stream();
    if (queries->rows <= 0) return;
    if (kind == PNET_CORNERS_TRILINEAR)
        write_corners<<<geo_blocks(queries->rows * PNET_CORNERS), GEO_THREADS, 0, stream>>>(s, to);
    else
        write_voxels<<<geo_blocks(queries->rows), GEO_THREADS, 0, stream>>>(s, to);
}

static __global__ void __launch_bounds__(GEO_THREADS)
    transpose_weights(const struct pnet_triplets of, const float *weight,
        const struct pnet_triplets back_of, float *back)
{
    for (int64_t t = thread_index(); t < back_of.count; t += thread_count()) {
        int64_t at = of.start[back_of.other[t]];
        while (of.cell[at] != back_of.cell[t]) at++;
        back[t] = weight[at];
    }
}

extern "C" void pnet_cuda_corners_transpose(const struct pnet_triplets *of, const float *weight,
    const struct pnet_triplets *back_of, float *back)
{
    if (back_of->count > 0)
        transpose_weights<<<geo_blocks(back_of->count), GEO_THREADS, 0, pnet_cuda_stream()>>>(
            *of, weight, *back_of, back);
}
