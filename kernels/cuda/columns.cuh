/* Sums over the rows of a matrix, channel by channel and segment by segment, in two stages: rows are cut into chunks
   that are summed apart, then the chunks' sums are added in order.

   Where the chunks end depends on the true number of rows and on nothing else, so the bits do not depend on the
   machine, nor on the capacity class that a launch was sized for. */
#ifndef PNET_KERNELS_CUDA_COLUMNS_CUH
#define PNET_KERNELS_CUDA_COLUMNS_CUH

#include "kernels/count.h"
#include "kernels/cpu/segment.h"
#include "kernels/cuda/dense.cuh"

enum {
    CHUNK_ROWS = 64, /* of a chunk, at least */
    CHUNKS = 2048,   /* at most */
    JOIN_LANES = 16, /* threads that share the chunks of a column */
};

/* Chunks of at most `rows` rows: never fewer than there will be of fewer rows. */
static inline int64_t chunks_of(int64_t rows)
{
    int64_t chunks = divide_up(rows, CHUNK_ROWS);
    return chunks < CHUNKS ? chunks : (int64_t)CHUNKS;
}

/* Segments of rows, as kernels see them. Without splits `rows` counts them. */
struct row_segments {
    pnet_segments s;
    struct pnet_count rows;
    __device__ int64_t split(int32_t segment) const
    {
        if (!s.splits && rows.most > 0) return segment > 0 ? pnet_live(rows) : 0;
        return pnet_segment_split(s, segment);
    }
    __device__ int64_t total() const
    {
        return split(s.count);
    }
    __device__ int64_t rows_of(int32_t segment) const
    {
        return split(segment + 1) - split(segment);
    }
    __device__ int64_t chunk_size() const
    {
        int64_t size = (total() + CHUNKS - 1) / CHUNKS;
        return size > CHUNK_ROWS ? size : (int64_t)CHUNK_ROWS;
    }
};

/* A chunk's rows, segment by segment: for (; at.begin < at.last; at.next()). Chunk and segment meet in one stretch of
   rows; their sum numbers the stretches without clash, as either only grows along the rows. */
struct chunk_rows {
    row_segments at;
    int64_t begin, end, last;
    int32_t segment;
    __device__ chunk_rows(const row_segments &r, int64_t chunk) : at(r), end(0), segment(0)
    {
        int64_t size = r.chunk_size(), total = r.total();
        begin = chunk * size;
        last = begin + size < total ? begin + size : total;
        if (begin >= last) return;
        segment = pnet_segment_of(r.s, begin);
        set_end();
    }
    __device__ void next()
    {
        begin = end;
        segment++;
        if (begin < last) set_end();
    }
    __device__ void set_end()
    {
        end = at.split(segment + 1);
        if (end > last) end = last;
    }
};

/* A thread's place in a tiling. */
struct column_place {
    int32_t column; /* of packs */
    int lane;
    bool active;
    __device__ column_place(const tiling &t, int32_t packs)
    {
        column = (int32_t)(blockIdx.y * t.columns + threadIdx.x % t.columns);
        lane = threadIdx.x / t.columns;
        active = lane < t.lanes && column < packs;
    }
};

/* What is summed: sum of a, and with sum_ab: of a * b, or with `moments` (mean and inverse of each row): of
   a * (b - mean) * inverse. */
struct column_sums {
    row_segments at;
    int32_t c;
    const float *a, *b;
    const float2 *moments;
    double *sum, *sum_ab; /* [segments, c] */
    double *part;         /* [column_parts] */
};

enum summand { PLAIN, SQUARE, PRODUCT, UNIT };

/* Doubles in `part`. */
static inline size_t column_parts(int64_t rows, int32_t segments, int32_t c)
{
    return (size_t)(chunks_of(rows) + segments) * (size_t)c * 2;
}

template <int V, summand KIND>
static __device__ __forceinline__ void add_row(
    const column_sums &m, int64_t row, int32_t packs, int32_t column, double *sum, double *sum_ab)
{
    pack<V> p = load<V>(m.a, row * packs + column), q = p;
    float2 moments = {0, 1};
    if (KIND == PRODUCT || KIND == UNIT) q = load<V>(m.b, row * packs + column);
    if (KIND == UNIT) moments = m.moments[row];
    for (int i = 0; i < V; i++) {
        double a = (double)p.at[i];
        sum[i] += a;
        if (KIND == SQUARE) sum_ab[i] += a * a;
        if (KIND == PRODUCT) sum_ab[i] += a * (double)q.at[i];
        if (KIND == UNIT) sum_ab[i] += a * (double)((q.at[i] - moments.x) * moments.y);
    }
}

/* Adds the lanes of each column, pair by pair; lane 0 has the sum. */
template <int V>
static __device__ __forceinline__ void join_lanes(const tiling &t, int lane, double *sum)
{
    __shared__ double shared[THREADS * V];
    int half = 1;
    while (half < t.lanes) half *= 2;
    __syncthreads();
    for (int i = 0; i < V; i++) shared[i * THREADS + threadIdx.x] = sum[i];
    for (half /= 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half && lane + half < t.lanes)
            for (int i = 0; i < V; i++) {
                sum[i] += shared[i * THREADS + threadIdx.x + half * t.columns];
                shared[i * THREADS + threadIdx.x] = sum[i];
            }
    }
}

template <int V, summand KIND>
static __global__ void __launch_bounds__(THREADS) chunk_kernel(column_sums m, tiling t)
{
    int32_t packs = m.c / V;
    column_place p(t, packs);
    int64_t parts = (int64_t)gridDim.x + m.at.s.count;
    for (chunk_rows at(m.at, blockIdx.x); at.begin < at.last; at.next()) {
        double sum[V] = {}, sum_ab[V] = {};
        if (at.begin == at.end) continue;
        if (p.active) {
#pragma unroll 4
            for (int64_t row = at.begin + p.lane; row < at.end; row += t.lanes)
                add_row<V, KIND>(m, row, packs, p.column, sum, sum_ab);
        }
        join_lanes<V>(t, p.lane, sum);
        if (KIND != PLAIN) join_lanes<V>(t, p.lane, sum_ab);
        if (!p.active || p.lane > 0) continue;
        int64_t to = (blockIdx.x + (int64_t)at.segment) * m.c + p.column * V;
        for (int i = 0; i < V; i++) {
            m.part[to + i] = sum[i];
            if (KIND != PLAIN) m.part[parts * m.c + to + i] = sum_ab[i];
        }
    }
}

/* The sum of a column's chunks within a segment; threads of lane 0 have it. */
static __device__ __forceinline__ double join_chunks(const column_sums &m, const double *part,
    int32_t segment, int32_t column, int lane, bool active)
{
    __shared__ double shared[JOIN_LANES][WARP];
    int64_t begin = m.at.split(segment), end = m.at.split(segment + 1);
    double sum = 0;
    if (active && begin < end) {
        int64_t size = m.at.chunk_size(), last = (end - 1) / size;
#pragma unroll 4
        for (int64_t chunk = begin / size + lane; chunk <= last; chunk += JOIN_LANES)
            sum += part[(chunk + segment) * m.c + column];
    }
    __syncthreads();
    shared[lane][threadIdx.x % WARP] = sum;
    for (int half = JOIN_LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half)
            shared[lane][threadIdx.x % WARP] = sum += shared[lane + half][threadIdx.x % WARP];
    }
    return sum;
}

/* A block joins the chunks of some groups of channels in one segment; then each warp finishes a group. */
template <class F>
static __global__ void __launch_bounds__(WARP *JOIN_LANES)
    join_kernel(column_sums m, int64_t parts, int32_t groups, int32_t groups_a_block, F finish)
{
    int32_t per = m.c / groups, segment = blockIdx.x;
    int32_t first = blockIdx.y * groups_a_block;
    int32_t last = first + groups_a_block < groups ? first + groups_a_block : groups;
    int lane = threadIdx.x / WARP;
    for (int32_t base = first * per; base < last * per; base += WARP) {
        int32_t column = base + (int32_t)(threadIdx.x % WARP);
        bool active = column < last * per;
        double sum = join_chunks(m, m.part, segment, column, lane, active), sum_ab = 0;
        if (m.sum_ab) sum_ab = join_chunks(m, m.part + parts * m.c, segment, column, lane, active);
        if (!active || lane > 0) continue;
        m.sum[(int64_t)segment * m.c + column] = sum;
        if (m.sum_ab) m.sum_ab[(int64_t)segment * m.c + column] = sum_ab;
    }
    __syncthreads();
    for (int32_t group = first + lane; group < last; group += JOIN_LANES)
        finish(m, segment, group, groups, (int)(threadIdx.x % WARP));
}

struct leave_sums {
    __device__ void operator()(const column_sums &, int32_t, int32_t, int32_t, int) const {}
};

template <int V> static void sum_chunks(const column_sums &m, dim3 grid, const tiling &t)
{
    if (!m.sum_ab)
        chunk_kernel<V, PLAIN><<<grid, THREADS, 0, cudaStreamPerThread>>>(m, t);
    else if (m.moments)
        chunk_kernel<V, UNIT><<<grid, THREADS, 0, cudaStreamPerThread>>>(m, t);
    else if (m.a == m.b)
        chunk_kernel<V, SQUARE><<<grid, THREADS, 0, cudaStreamPerThread>>>(m, t);
    else
        chunk_kernel<V, PRODUCT><<<grid, THREADS, 0, cudaStreamPerThread>>>(m, t);
}

/* Both stages, and `finish` for each segment and group of channels, called by a warp that sees the group's sums. */
template <class F> static void sum_columns(const column_sums &m, int32_t groups, F finish)
{
    int64_t rows = m.at.s.rows;
    bool packed = fits_packs(m.c, m.a, m.b);
    tiling t = tile(packed ? m.c / 4 : m.c);
    dim3 grid((unsigned)chunks_of(rows), (unsigned)t.tiles);
    if (m.at.s.count == 0) return;
    if (rows > 0) {
        if (packed)
            sum_chunks<4>(m, grid, t);
        else
            sum_chunks<1>(m, grid, t);
    }
    int32_t per = m.c / groups, groups_a_block = per < WARP ? WARP / per : 1;
    dim3 join((unsigned)m.at.s.count, (unsigned)divide_up(groups, groups_a_block));
    join_kernel<<<join, WARP * JOIN_LANES, 0, cudaStreamPerThread>>>(
        m, chunks_of(rows) + m.at.s.count, groups, groups_a_block, finish);
}

#endif
