/* Pooling of samples: few of them, with many rows each. The rows are joined in blocks of
   PNET_SEGMENT_BLOCK first, each block's part of each segment apart, then the parts of a segment;
   part block + segment belongs to that pair alone. Threads take rows and parts in a fixed pattern
   and are joined in order. */
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/levels.cuh"
#include "kernels/pool.h"

/* What a thread gathers of one channel. */
struct sums {
    double v;
    __device__ void take(const sums &other)
    {
        v += other.v;
    }
};

struct maxima {
    float v;
    int32_t from;
    /* NaN in a segment's first row stays, elsewhere it is passed over: every thread starts from that row. */
    __device__ void take(const maxima &other)
    {
        if (other.v > v || (other.v == v && other.from < from)) *this = other;
    }
};

/* An operation names the rows and parts it reads and writes:
     none(segment, i)        to start from
     row(row, i)             an element of the matrix
     part(at, i) and keep()  a block's part of a segment
     write(segment, i, r)    the result */
template <class T> struct sum_segments {
    typedef sums part_type;
    struct pnet_segments s;
    int32_t c;
    const T *x;
    bool mean, add;
    T *y;
    double *parts; /* [blocks + segments, c] */

    __device__ sums none(int32_t, int32_t) const
    {
        return {0};
    }
    __device__ sums row(int64_t row, int32_t i) const
    {
        return {(double)widen(x[row * c + i])};
    }
    __device__ sums part(int64_t at, int32_t i) const
    {
        return {parts[at * c + i]};
    }
    __device__ void keep(int64_t at, int32_t i, sums r) const
    {
        parts[at * c + i] = r.v;
    }
    __device__ void write(int32_t segment, int32_t i, sums r) const
    {
        int64_t rows = pnet_segment_split(s, segment + 1) - pnet_segment_split(s, segment);
        float v = (float)(r.v * (mean && rows > 0 ? 1 / (double)rows : 1));
        T *to = y + (int64_t)segment * c + i;
        narrow(add ? widen(*to) + v : v, to);
    }
};

template <class T> struct max_segments {
    typedef maxima part_type;
    struct pnet_segments s;
    int32_t c;
    const T *x;
    T *y;
    int32_t *argmax;
    float *tops; /* [blocks + segments, c] */
    int32_t *rows;

    __device__ maxima none(int32_t segment, int32_t i) const
    {
        int64_t first = pnet_segment_split(s, segment);
        if (first >= pnet_segment_split(s, segment + 1)) return {0, -1};
        return row(first, i);
    }
    __device__ maxima row(int64_t row, int32_t i) const
    {
        return {widen(x[row * c + i]), (int32_t)row};
    }
    __device__ maxima part(int64_t at, int32_t i) const
    {
        return {tops[at * c + i], rows[at * c + i]};
    }
    __device__ void keep(int64_t at, int32_t i, maxima r) const
    {
        tops[at * c + i] = r.v;
        rows[at * c + i] = r.from;
    }
    __device__ void write(int32_t segment, int32_t i, maxima r) const
    {
        narrow(r.v, y + (int64_t)segment * c + i);
        if (argmax) argmax[(int64_t)segment * c + i] = r.from;
    }
};

/* Joins the block's threads of each column in order; the result is in those with threadIdx.y == 0. */
template <class T> static __device__ T join_lines(T own)
{
    __shared__ T shared[THREADS];
    shared[threadIdx.y * blockDim.x + threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.y == 0)
        for (unsigned y = 1; y < blockDim.y; y++) own.take(shared[y * blockDim.x + threadIdx.x]);
    __syncthreads();
    return own;
}

/* blockIdx.y: tile of blockDim.x channels. */
template <class Op> __global__ static void __launch_bounds__(THREADS) join_rows(Op op)
{
    const int32_t i = (int32_t)(blockIdx.y * blockDim.x + threadIdx.x);
    let_next_come();
    wait_for_earlier();
    const int64_t rows = pnet_segment_split(op.s, op.s.count);
    const int64_t blocks = (rows + PNET_SEGMENT_BLOCK - 1) / PNET_SEGMENT_BLOCK;
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        int64_t begin = block * PNET_SEGMENT_BLOCK, last = begin + PNET_SEGMENT_BLOCK;
        if (last > rows) last = rows;
        for (int32_t segment = pnet_segment_of(op.s, begin); begin < last; segment++) {
            int64_t end = pnet_segment_split(op.s, segment + 1) < last
                              ? pnet_segment_split(op.s, segment + 1)
                              : last;
            if (begin == end) continue; /* an empty segment, in all threads alike */
            typename Op::part_type r = {};
            if (i < op.c) {
                r = op.none(segment, i);
#pragma unroll 4
                for (int64_t row = begin + threadIdx.y; row < end; row += blockDim.y)
                    r.take(op.row(row, i));
            }
            r = join_lines(r);
            if (threadIdx.y == 0 && i < op.c) op.keep(block + segment, i, r);
            begin = end;
        }
    }
}

template <class Op> __global__ static void __launch_bounds__(THREADS) join_parts(Op op)
{
    const int32_t i = (int32_t)(blockIdx.y * blockDim.x + threadIdx.x);
    let_next_come();
    wait_for_earlier();
    for (int32_t segment = (int32_t)blockIdx.x; segment < op.s.count; segment += gridDim.x) {
        int64_t begin = pnet_segment_split(op.s, segment),
                end = pnet_segment_split(op.s, segment + 1);
        typename Op::part_type r = {};
        if (i < op.c) {
            r = op.none(segment, i);
            if (begin < end)
                for (int64_t block = begin / PNET_SEGMENT_BLOCK + threadIdx.y;
                     block <= (end - 1) / PNET_SEGMENT_BLOCK; block += blockDim.y)
                    r.take(op.part(block + segment, i));
        }
        r = join_lines(r);
        if (threadIdx.y == 0 && i < op.c) op.write(segment, i, r);
    }
}

template <class Op> static void launch_join(const Op &op)
{
    int x = lanes_for(op.c, WARP);
    dim3 block((unsigned)x, (unsigned)(THREADS / x));
    unsigned tiles = (unsigned)((op.c + x - 1) / x);
    int64_t blocks = pnet_segment_blocks(op.s.rows);
    if (op.s.count <= 0) return;
    if (blocks > 0)
        launch_early(join_rows<Op>, dim3(blocks_for(blocks, 1), tiles), block, 0, 1, op);
    launch_early(join_parts<Op>, dim3(blocks_for(op.s.count, 1), tiles), block, 0, 1, op);
}

void pnet_cuda_segments_sum(
    struct pnet_segments s, int32_t c, const float *x, bool mean, bool add, float *y, void *work)
{
    by_storage(s.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        struct sum_segments<T> op = {
            s, c, as<T>(x), mean, add, as<T>(y), (double *)work
        };
        launch_join(op);
    });
}

void pnet_cuda_segments_max(
    struct pnet_segments s, int32_t c, const float *x, float *y, int32_t *argmax, void *work)
{
    int64_t parts = (pnet_segment_blocks(s.rows) + s.count) * c;
    struct carver w = {(char *)work};
    float *tops = w.take<float>(parts);
    int32_t *rows = w.take<int32_t>(parts);
    by_storage(s.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        struct max_segments<T> op = {
            s, c, as<T>(x), as<T>(y), argmax, tops, rows
        };
        launch_join(op);
    });
}

template <class T, int V>
__global__ static void spread_segments(
    struct pnet_segments s, int32_t c, const T *x, bool mean, bool add, T *y)
{
    int64_t rows = pnet_segment_split(s, s.count);
    let_next_come();
    wait_for_earlier();
    for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) {
        int32_t segment = pnet_segment_of(s, row);
        float factor =
            mean ? 1 / (float)(pnet_segment_split(s, segment + 1) - pnet_segment_split(s, segment))
                 : 1;
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            vector<V> r = load<V>(x + (int64_t)segment * c + i);
            for (int k = 0; k < V; k++) r.v[k] *= factor;
            store_or_add<V>(y + row * c + i, add, r);
        }
    }
}

void pnet_cuda_segments_spread(
    struct pnet_segments s, int32_t c, const float *x, bool mean, bool add, float *y)
{
    if (s.rows <= 0) return;
    by_form(
        s.storage, c,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(s.rows, c / V);
            launch_early(
                spread_segments<T, V>, l.grid, l.block, 0, 1, s, c, as<T>(x), mean, add, as<T>(y));
        },
        x, y);
}

template <class T, int V>
__global__ static void max_segments_backward(
    struct pnet_segments s, int32_t c, const int32_t *argmax, const T *g, bool add, T *gx)
{
    int64_t rows = pnet_segment_split(s, s.count);
    let_next_come();
    wait_for_earlier();
    for (int64_t row = ROW_BEGIN; row < rows; row += ROW_STEP) {
        int32_t segment = pnet_segment_of(s, row);
        for (int32_t i = (int32_t)threadIdx.x * V; i < c; i += (int32_t)blockDim.x * V) {
            vector<V> r = load<V>(g + (int64_t)segment * c + i);
            rows_of<V> from = load_rows<V>(argmax + (int64_t)segment * c + i);
            for (int k = 0; k < V; k++) r.v[k] = from.v[k] == (int32_t)row ? r.v[k] : 0;
            store_or_add<V>(gx + row * c + i, add, r);
        }
    }
}

void pnet_cuda_segments_max_backward(
    struct pnet_segments s, int32_t c, const int32_t *argmax, const float *g, bool add, float *gx)
{
    if (s.rows <= 0) return;
    by_form_with_rows(
        s.storage, c, argmax,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            struct layout l = layout_for(s.rows, c / V);
            launch_early(max_segments_backward<T, V>, l.grid, l.block, 0, 1, s, c, argmax, as<T>(g),
                add, as<T>(gx));
        },
        g, gx);
}
