/* Sums over the rows of a matrix, channel by channel and segment by segment, in two stages: rows are cut into chunks, each
   of which is summed alone; then the chunks' sums are added in order.

   The ends of chunks depend only on the true number of rows and on the width. So the bits depend neither on the machine nor
   on the capacity class that a launch was sized for. Only matrices that are not aligned to 16 bytes are added in another
   order. */
#ifndef PNET_KERNELS_CUDA_COLUMNS_CUH
#define PNET_KERNELS_CUDA_COLUMNS_CUH

#include "kernels/count.h"
#include "kernels/segments.h"
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/feature_work.h"
#include "kernels/cuda/base/launch.cuh"

#include <type_traits>

enum {
    MAP_CHUNKS = 2048, /* most chunks of a kernel that writes every row */
    JOIN_COLUMNS = 8,  /* of a block that joins chunks */
    JOINED = 8,        /* chunks that a thread loads at once */
    JOIN_LANES = THREADS / JOIN_COLUMNS,
};

/* Segments of rows, as kernels read them. Without splits there is one segment, of `rows` rows. */
struct row_segments {
    pnet_segments s;
    struct pnet_count rows;
    int64_t most_chunks;
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
        int64_t size = (total() + most_chunks - 1) / most_chunks;
        return size > CHUNK_ROWS ? size : (int64_t)CHUNK_ROWS;
    }
    /* The size of a chunk rounded up to a multiple of `rows`, for kernels whose result does not depend on the chunks. */
    __device__ int64_t chunk_size(int rows) const
    {
        return (chunk_size() + rows - 1) / rows * rows;
    }
};

/* A chunk's rows, segment by segment: for (; at.begin < at.last; at.next()). A chunk and a segment have one stretch of rows
   in common. The sum of their numbers is the number of the stretch: it is unique, because both ascend along the rows. */
struct chunk_rows {
    row_segments at;
    int64_t begin, end, last, total;
    int32_t segment;
    __device__ chunk_rows(const row_segments &r, int64_t chunk, int64_t size)
        : at(r), end(0), total(r.total()), segment(0)
    {
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
        end = segment + 1 < at.s.count ? at.split(segment + 1) : total;
        if (end > last) end = last;
    }
};

/* A thread's place in a tiling. */
struct column_place {
    int32_t column; /* of packs of channels */
    int lane;
    bool active;
    __device__ column_place(const tiling &t, int32_t packs)
    {
        column = (int32_t)(blockIdx.y * t.columns + threadIdx.x % t.columns);
        lane = threadIdx.x / t.columns;
        active = lane < t.lanes && column < packs;
    }
};

/* A norm and the activation after it, which multiplies negative numbers by `below`; `weight` NULL: no norm. */
struct activated_norm {
    const float *mean, *inverse; /* [segments, groups] */
    const float *weight, *bias;  /* [c] */
    int32_t groups;
    float below;
};

/* Sums over the rows of each segment: `sum` of a; `sum_ab`, unless NULL, of a * b, or with `moments` (mean and inverse of each
   row) of a * (b - mean) * inverse. With `norm`, whose input is b, a is the gradient after its activation, and the gradient
   before the activation is summed instead. */
struct column_sums {
    row_segments at; /* the storage is that of a and b */
    int32_t c;
    const float *a, *b;
    const float2 *moments;
    double *sum, *sum_ab; /* [segments, c] */
    double *part;         /* [column_parts] */
    activated_norm norm;
};

enum summand { PLAIN, SQUARE, PRODUCT, UNIT, UNDONE };

/* Returns the gradient before the activation, rounded as act.cu stores it. The callback tells whether result i of the
   activation is above 0. */
template <class T, int V, class F>
static __device__ __forceinline__ pack<V> gradient_before(
    const fetched<T, V> &gradient, float below, F above)
{
    pack<V> v = opened(gradient), less;
    for (int i = 0; i < V; i++) less.at[i] = below * v.at[i];
    less = opened(closed<T, V>(less));
    for (int i = 0; i < V; i++) v.at[i] = above(i) ? v.at[i] : less.at[i];
    return v;
}

/* Returns y of x before the activation, with the same bits in every kernel. */
static __device__ __forceinline__ float normal_of(float x, float mean, float k, float bias)
{
    return fmaf(x - mean, k, bias);
}

static __device__ __forceinline__ float activated(float v, float below)
{
    return v < 0 ? (below == 0 ? 0 : below * v) : v;
}

/* Returns the largest number that becomes 0 when it is stored: half of the smallest number of the type. */
template <class T>
constexpr float LEAST = sizeof(T) == 4                   ? 0
                        : std::is_same<T, __half>::value ? 0x1p-25f
                                                         : 0x1p-134f;

/* A thread's columns of a norm, in one segment. */
template <int V> struct norm_columns {
    float mean[V], k[V], bias[V];
    norm_columns() = default;
    __device__ norm_columns(const activated_norm &n, int32_t c, int32_t segment, int32_t column)
    {
        for (int i = 0; i < V; i++) {
            int32_t channel = column * V + i;
            int64_t group = (int64_t)segment * n.groups + channel / (c / n.groups);
            mean[i] = n.mean[group];
            k[i] = n.inverse[group] * n.weight[channel];
            bias[i] = n.bias[channel];
        }
    }
    __device__ __forceinline__ float normal(int i, float x) const
    {
        return normal_of(x, mean[i], k[i], bias[i]);
    }
    __device__ __forceinline__ float of(int i, float x, float below) const
    {
        return activated(normal(i, x), below);
    }
    /* Returns the gradient before the activation, from the gradient after it and from x. */
    template <class T>
    __device__ __forceinline__ pack<V> before(
        const fetched<T, V> &gradient, const pack<V> &x, float below) const
    {
        return gradient_before(
            gradient, below, [&](int i) { return of(i, x.at[i], below) > LEAST<T>; });
    }
};

/* Sums rows `first` to `end`, every `step`-th, in order. Rows beyond the end count as zeros: they change no bit of a sum
   that begins with 0. */
template <class T, int V, summand KIND>
static __device__ __forceinline__ void add_rows(const column_sums &m, int64_t first, int64_t end,
    int step, int32_t packs, int32_t column, int32_t segment, double *sum, double *sum_ab)
{
    const int ROWS = KIND == PLAIN || KIND == SQUARE ? 4 : 2;
    const bool TWO = KIND == PRODUCT || KIND == UNIT || KIND == UNDONE;
    norm_columns<V> norm;
    if constexpr (KIND == UNDONE) norm = norm_columns<V>(m.norm, m.c, segment, column);
    for (int64_t row = first; row < end; row += ROWS * step) {
        fetched<T, V> as[ROWS], bs[ROWS];
        float2 moments[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t at = row + r * step, place = at * packs + column;
            bool there = at < end;
            as[r] = fetch_if<V>(there, (const T *)m.a, place);
            if (TWO) bs[r] = fetch_if<V>(there, (const T *)m.b, place);
            moments[r] = {0, 0};
            if (KIND == UNIT && there) moments[r] = m.moments[at];
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            pack<V> p = opened(as[r]), q = p;
            if (TWO) q = opened(bs[r]);
            if constexpr (KIND == UNDONE) p = norm.before(as[r], q, m.norm.below);
            for (int i = 0; i < V; i++) {
                double a = (double)p.at[i];
                float b = q.at[i];
                if (KIND == UNIT) b = (b - moments[r].x) * moments[r].y;
                sum[i] += a;
                if (KIND != PLAIN) sum_ab[i] += a * (double)b;
            }
        }
    }
}

/* Adds the V numbers of all lanes of each column, pair by pair; lane 0 gets the sums. */
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

template <class T, int V, summand KIND>
static __global__ void __launch_bounds__(THREADS, 3) chunk_kernel(column_sums m, tiling t)
{
    int32_t packs = m.c / V;
    column_place p(t, packs);
    int64_t parts = (int64_t)gridDim.x + m.at.s.count;
    for (chunk_rows at(m.at, blockIdx.x, m.at.chunk_size()); at.begin < at.last; at.next()) {
        double sum[2 * V] = {}, *sum_ab = sum + V;
        if (at.begin == at.end) continue;
        if (p.active)
            add_rows<T, V, KIND>(
                m, at.begin + p.lane, at.end, t.lanes, packs, p.column, at.segment, sum, sum_ab);
        join_lanes<KIND == PLAIN ? V : 2 * V>(t, p.lane, sum);
        if (!p.active || p.lane > 0) continue;
        int64_t to = (blockIdx.x + (int64_t)at.segment) * m.c + p.column * V;
        for (int i = 0; i < V; i++) {
            m.part[to + i] = sum[i];
            if (KIND != PLAIN) m.part[parts * m.c + to + i] = sum_ab[i];
        }
    }
}

/* Adds two columns of the sums of chunks `first` to `end`, rows of c numbers, by JOIN_LANES lanes. All threads of a block take
   part; those of lane 0 get the result. */
static __device__ __forceinline__ double2 join_parts(
    const double *a, const double *b, int64_t first, int64_t end, int32_t c, int lane)
{
    __shared__ double2 shared[JOIN_LANES][JOIN_COLUMNS];
    double2 sum = {0, 0};
    for (int64_t chunk = first + lane; chunk < end; chunk += JOINED * JOIN_LANES) {
        double as[JOINED], bs[JOINED];
#pragma unroll
        for (int i = 0; i < JOINED; i++) {
            int64_t at = (chunk + i * JOIN_LANES) * c;
            bool there = chunk + i * JOIN_LANES < end;
            as[i] = there ? a[at] : 0;
            bs[i] = there ? b[at] : 0;
        }
#pragma unroll
        for (int i = 0; i < JOINED; i++) {
            sum.x += as[i];
            sum.y += bs[i];
        }
    }
    shared[lane][threadIdx.x % JOIN_COLUMNS] = sum;
    for (int half = JOIN_LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane >= half) continue;
        double2 other = shared[lane + half][threadIdx.x % JOIN_COLUMNS];
        sum.x += other.x;
        sum.y += other.y;
        shared[lane][threadIdx.x % JOIN_COLUMNS] = sum;
    }
    return sum;
}

/* Adds the sums of a column's chunks within a segment; the threads of lane 0 get the result. */
static __device__ __forceinline__ double2 join_chunks(
    const column_sums &m, int64_t parts, int32_t segment, int32_t column, int lane, bool active)
{
    int64_t begin = m.at.split(segment), end = m.at.split(segment + 1), size = m.at.chunk_size();
    const double *part = m.part + (int64_t)segment * m.c + column;
    active = active && begin < end;
    return join_parts(part, part + (m.sum_ab ? parts * m.c : 0), active ? begin / size : 0,
        active ? (end - 1) / size + 1 : 0, m.c, lane);
}

/* Adds the chunks' sums of some columns in one segment; one block each. With `whole` the columns are whole groups, and each
   warp finishes one group. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    join_kernel(column_sums m, int64_t parts, int32_t groups, bool whole, F finish)
{
    int32_t segment = (int32_t)blockIdx.x, first = (int32_t)blockIdx.y * JOIN_COLUMNS;
    int32_t column = first + (int32_t)(threadIdx.x % JOIN_COLUMNS), per = m.c / groups;
    int lane = threadIdx.x / JOIN_COLUMNS;
    double2 sum = join_chunks(m, parts, segment, column, lane, column < m.c);
    if (column < m.c && lane == 0) {
        m.sum[(int64_t)segment * m.c + column] = sum.x;
        if (m.sum_ab) m.sum_ab[(int64_t)segment * m.c + column] = sum.y;
    }
    if (!whole) return;
    __syncthreads();
    int32_t warp = (int32_t)(threadIdx.x / WARP), group = first / per + warp;
    if (warp < JOIN_COLUMNS / per && group < groups)
        finish(m, segment, group, groups, (int)(threadIdx.x % WARP));
}

/* Finishes a group whose columns several blocks have summed; one warp a group. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    group_kernel(column_sums m, int32_t groups, F finish)
{
    int32_t group = (int32_t)(blockIdx.y * (THREADS / WARP) + threadIdx.x / WARP);
    if (group < groups) finish(m, (int32_t)blockIdx.x, group, groups, (int)(threadIdx.x % WARP));
}

struct leave_sums {
    __device__ void operator()(const column_sums &, int32_t, int32_t, int32_t, int) const {}
};

template <class T, int V> static void sum_chunks(const column_sums &m, dim3 grid, const tiling &t)
{
    if (!m.sum_ab)
        chunk_kernel<T, V, PLAIN><<<grid, THREADS, 0, pnet_cuda_stream()>>>(m, t);
    else if (m.moments)
        chunk_kernel<T, V, UNIT><<<grid, THREADS, 0, pnet_cuda_stream()>>>(m, t);
    else if (m.norm.weight)
        chunk_kernel<T, V, UNDONE><<<grid, THREADS, 0, pnet_cuda_stream()>>>(m, t);
    else if (m.a == m.b)
        chunk_kernel<T, V, SQUARE><<<grid, THREADS, 0, pnet_cuda_stream()>>>(m, t);
    else
        chunk_kernel<T, V, PRODUCT><<<grid, THREADS, 0, pnet_cuda_stream()>>>(m, t);
}

/* Runs both stages, then `finish` for each segment and group of channels, called by a warp that has the group's sums. */
template <class F> static void sum_columns(const column_sums &m, int32_t groups, F finish)
{
    int64_t rows = m.at.s.rows;
    int64_t chunks = chunks_of(rows, m.at.most_chunks);
    if (m.at.s.count == 0) return;
    if (rows > 0)
        by_form(
            m.at.s.storage, m.c,
            [&](auto form) {
                using T = typename decltype(form)::T;
                const int V = decltype(form)::V;
                tiling t = tile(m.c / V);
                sum_chunks<T, V>(m, dim3((unsigned)chunks, (unsigned)t.tiles), t);
            },
            m.a, m.b);
    unsigned segments = (unsigned)m.at.s.count;
    int64_t parts = chunks + segments;
    bool whole = JOIN_COLUMNS % (m.c / groups) == 0;
    dim3 join(segments, (unsigned)divide_up(m.c, JOIN_COLUMNS));
    join_kernel<<<join, THREADS, 0, pnet_cuda_stream()>>>(m, parts, groups, whole, finish);
    dim3 finishing(segments, (unsigned)divide_up(groups, THREADS / WARP));
    if (!whole) group_kernel<<<finishing, THREADS, 0, pnet_cuda_stream()>>>(m, groups, finish);
}

#endif
