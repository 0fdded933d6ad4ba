/* Attention on features in float32. A block of 16 x 16 threads has a tile of rows of one head; the rows of the scope come by in
   tiles of the same size. Each thread has R x R products of the two. A tile's sum is formed first, then added to the total. */
extern "C" {
#include "kernels/attend.h"
}
#include "kernels/cuda/attend/attend_kernels.h"
#include "kernels/cuda/attend/attend_scope.cuh"
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/launch.cuh"

enum { SIDE = 16 };

/* D: channels of a head. */
template <int D> struct exact {
    static const int TILE = D > 32 ? 32 : 64, R = TILE / SIDE, PER = D > SIDE ? D / SIDE : 1,
                     STRIDE = TILE + 4;
    using matrix = float[D][STRIDE]; /* of the rows of a tile, channel by channel */

    struct memory {
        struct scope_rows scope;
        int32_t own_row[TILE], row[TILE];
        float less[TILE], mean[TILE]; /* of passing queries: log_sum, D */
        alignas(16) matrix own[2];
        alignas(16) matrix passing[2];
        alignas(16) float share[2][TILE][STRIDE]; /* [passing row][own row] */
    };
    struct sums {
        float of[R][PER];
    };
};

static __device__ __forceinline__ int side_x()
{
    return threadIdx.x % SIDE;
}
static __device__ __forceinline__ int side_y()
{
    return threadIdx.x / SIDE;
}

/* Rows of a tile that begins at a place of the scope; -1 behind its end. */
template <int TILE>
static __device__ void find_rows(
    const struct scope_rows &s, const int32_t *order, int first, int32_t *row)
{
    struct row_walk walk = {0};
    if (threadIdx.x < TILE) row[threadIdx.x] = walk.row(s, order, first + (int)threadIdx.x);
}

/* Zeros for rows that are not there. */
template <int D>
static __device__ void fetch_rows(const int32_t *row, const float *from, int64_t stride,
    float factor, typename exact<D>::matrix &to)
{
    for (int i = (int)threadIdx.x; i < exact<D>::TILE * D; i += THREADS) {
        int r = i / D, c = i % D;
        to[c][r] = row[r] < 0 ? 0 : from[row[r] * stride + c] * factor;
    }
}

/* product[i][j] = own row side_y R + i times passing row side_x R + j. Sums of up to 32 channels are added up: one sum of 128 has
   errors of above 1e-6. */
template <int D>
static __device__ __forceinline__ void multiply(const typename exact<D>::matrix &own,
    const typename exact<D>::matrix &passing, float (&product)[exact<D>::R][exact<D>::R])
{
    const int R = exact<D>::R, PART = D < 32 ? D : 32;
    for (int i = 0; i < R; i++)
        for (int j = 0; j < R; j++) product[i][j] = 0;
    for (int first = 0; first < D; first += PART) {
        float sum[R][R] = {};
#pragma unroll 8
        for (int c = first; c < first + PART; c++) {
            float a[R], b[R];
            load_wide<R>(own[c] + side_y() * R, a);
            load_wide<R>(passing[c] + side_x() * R, b);
            for (int i = 0; i < R; i++)
                for (int j = 0; j < R; j++) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
        for (int i = 0; i < R; i++)
            for (int j = 0; j < R; j++) product[i][j] += sum[i][j];
    }
}

template <int D>
static __device__ __forceinline__ void put_shares(
    const float (&value)[exact<D>::R][exact<D>::R], float (*to)[exact<D>::STRIDE])
{
    const int R = exact<D>::R;
    for (int j = 0; j < R; j++) {
        float column[R];
        for (int i = 0; i < R; i++) column[i] = value[i][j];
        store_wide<R>(to[side_x() * R + j] + side_y() * R, column);
    }
}

/* The sum over passing rows of share times channel side_x + 16 k of them, for own rows side_y R + i. */
template <int D>
static __device__ __forceinline__ typename exact<D>::sums add_up(
    int count, float (*share)[exact<D>::STRIDE], const typename exact<D>::matrix &passing)
{
    typename exact<D>::sums s = {};
    if (side_x() >= D) return s;
#pragma unroll 4
    for (int n = 0; n < count; n++) {
        float w[exact<D>::R];
        load_wide<exact<D>::R>(share[n] + side_y() * exact<D>::R, w);
        for (int k = 0; k < exact<D>::PER; k++) {
            float v = passing[side_x() + SIDE * k][n];
            for (int i = 0; i < exact<D>::R; i++) s.of[i][k] = fmaf(w[i], v, s.of[i][k]);
        }
    }
    return s;
}

/* Writes, or adds, sums of own rows to where the head's channels begin. */
template <int D>
static __device__ void write_sums(const int32_t *own_row, const typename exact<D>::sums &s,
    float factor, bool add, int64_t stride, float *to)
{
    if (side_x() >= D) return;
    for (int i = 0; i < exact<D>::R; i++) {
        int32_t row = own_row[side_y() * exact<D>::R + i];
        if (row < 0) continue;
        for (int k = 0; k < exact<D>::PER; k++) {
            float *at = to + row * stride + side_x() + SIDE * k;
            *at = add ? *at + factor * s.of[i][k] : factor * s.of[i][k];
        }
    }
}

static __device__ __forceinline__ float side_max(float v)
{
    return group_max(v, SIDE);
}
static __device__ __forceinline__ float side_sum(float v)
{
    for (int o = SIDE / 2; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/* A row's largest product so far, and the sum of powers relative to it. */
template <int D> struct running {
    float top[exact<D>::R], sum[exact<D>::R];
    typename exact<D>::sums total;
};

/* Turns products into powers of 2 relative to the largest one so far; `count` passing rows are there. */
template <int D>
static __device__ __forceinline__ void soften(
    int count, float (&s)[exact<D>::R][exact<D>::R], struct running<D> &run)
{
    const int R = exact<D>::R;
    for (int i = 0; i < R; i++) {
        float top = run.top[i], sum = 0;
        for (int j = 0; j < R; j++)
            if (side_x() * R + j < count) top = fmaxf(top, s[i][j]);
        top = side_max(top);
        float scale = exp2f(run.top[i] - top);
        for (int j = 0; j < R; j++) {
            s[i][j] = side_x() * R + j < count ? exp2f(s[i][j] - top) : 0;
            sum += s[i][j];
        }
        run.top[i] = top;
        run.sum[i] = fmaf(run.sum[i], scale, sum);
        for (int k = 0; k < exact<D>::PER; k++) run.total.of[i][k] *= scale;
    }
}

template <int D>
static __global__ void __launch_bounds__(THREADS) forward(
    const __grid_constant__ struct attend_launch l, const float *qkv, float *out, float *log_sum)
{
    const int TILE = exact<D>::TILE, R = exact<D>::R;
    extern __shared__ __align__(16) char raw_memory[];
    auto &m = *reinterpret_cast<typename exact<D>::memory *>(raw_memory);
    if (!find_scope(l, TILE, &m.scope)) return;
    int head = l.head + (int)blockIdx.y;
    struct head_channels o = channels_of(l, head);
    struct running<D> run = {
    };
    for (int i = 0; i < R; i++) run.top[i] = -3e38f;
    find_rows<TILE>(m.scope, l.a.order, m.scope.tile * TILE, m.own_row);
    __syncthreads();
    fetch_rows<D>(m.own_row, qkv + o.q, o.in, (float)((double)l.a.scale * LOG2_E), m.own[0]);
    for (int at = 0; at < m.scope.rows; at += TILE) {
        int count = min(TILE, m.scope.rows - at);
        float s[R][R];
        find_rows<TILE>(m.scope, l.a.order, at, m.row);
        __syncthreads();
        fetch_rows<D>(m.row, qkv + o.k, o.in, 1, m.passing[0]);
        fetch_rows<D>(m.row, qkv + o.v, o.in, 1, m.passing[1]);
        __syncthreads();
        multiply<D>(m.own[0], m.passing[0], s);
        soften<D>(count, s, run);
        put_shares<D>(s, m.share[0]);
        __syncthreads();
        typename exact<D>::sums part = add_up<D>(count, m.share[0], m.passing[1]);
        for (int i = 0; i < R; i++)
            for (int k = 0; k < exact<D>::PER; k++) run.total.of[i][k] += part.of[i][k];
    }
    for (int i = 0; i < R; i++) {
        float sum = side_sum(run.sum[i]);
        int32_t row = m.own_row[side_y() * R + i];
        for (int k = 0; k < exact<D>::PER; k++) run.total.of[i][k] /= sum;
        if (log_sum && side_x() == 0 && row >= 0)
            log_sum[(int64_t)row * l.a.heads + head] = run.top[i] + log2f(sum);
    }
    write_sums<D>(m.own_row, run.total, 1, false, o.out, out + o.q);
}

/* Of own queries, by the first TILE threads: log_sum and D, which go to the pairs too. */
template <int D>
static __device__ void find_pairs(const struct attend_launch &l, const struct attend_gradient &g,
    int head, typename exact<D>::memory &m)
{
    int r = (int)threadIdx.x;
    if (r >= exact<D>::TILE) return;
    struct head_channels o = channels_of(l, head);
    int64_t row = m.own_row[r];
    float less = INFINITY, mean = 0;
    if (row >= 0) {
        const float *a = g.gout + row * o.out + o.q, *b = g.out + row * o.out + o.q;
        double sum = 0;
        for (int c = 0; c < D; c++) sum += (double)a[c] * (double)b[c];
        less = g.log_sum[row * l.a.heads + head];
        mean = (float)sum;
    }
    float *pair = g.pair + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * 2 * exact<D>::TILE;
    m.less[r] = pair[r] = less;
    m.mean[r] = mean;
    pair[exact<D>::TILE + r] = -mean;
}

template <int D>
static __global__ void __launch_bounds__(THREADS)
    queries(const __grid_constant__ struct attend_launch l,
        const __grid_constant__ struct attend_gradient g)
{
    const int TILE = exact<D>::TILE, R = exact<D>::R;
    extern __shared__ __align__(16) char raw_memory[];
    auto &m = *reinterpret_cast<typename exact<D>::memory *>(raw_memory);
    if (!find_scope(l, TILE, &m.scope)) return;
    int head = l.head + (int)blockIdx.y;
    struct head_channels o = channels_of(l, head);
    typename exact<D>::sums total = {};
    find_rows<TILE>(m.scope, l.a.order, m.scope.tile * TILE, m.own_row);
    __syncthreads();
    fetch_rows<D>(m.own_row, g.qkv + o.q, o.in, (float)((double)l.a.scale * LOG2_E), m.own[0]);
    fetch_rows<D>(m.own_row, g.gout + o.q, o.out, 1, m.own[1]);
    find_pairs<D>(l, g, head, m);
    for (int at = 0; at < m.scope.rows; at += TILE) {
        int count = min(TILE, m.scope.rows - at);
        float s[R][R], d[R][R];
        find_rows<TILE>(m.scope, l.a.order, at, m.row);
        __syncthreads();
        fetch_rows<D>(m.row, g.qkv + o.k, o.in, 1, m.passing[0]);
        fetch_rows<D>(m.row, g.qkv + o.v, o.in, 1, m.passing[1]);
        __syncthreads();
        multiply<D>(m.own[0], m.passing[0], s);
        multiply<D>(m.own[1], m.passing[1], d);
        for (int i = 0; i < R; i++) {
            float less = m.less[side_y() * R + i], mean = m.mean[side_y() * R + i];
            for (int j = 0; j < R; j++)
                s[i][j] = side_x() * R + j < count ? exp2f(s[i][j] - less) * (d[i][j] - mean) : 0;
        }
        put_shares<D>(s, m.share[0]);
        __syncthreads();
        typename exact<D>::sums part = add_up<D>(count, m.share[0], m.passing[0]);
        for (int i = 0; i < R; i++)
            for (int k = 0; k < exact<D>::PER; k++) total.of[i][k] += part.of[i][k];
    }
    write_sums<D>(m.own_row, total, l.a.scale, g.add, o.in, g.gqkv + o.q);
}

template <int D>
static __global__ void __launch_bounds__(THREADS)
    keys(const __grid_constant__ struct attend_launch l,
        const __grid_constant__ struct attend_gradient g)
{
    const int TILE = exact<D>::TILE, R = exact<D>::R;
    extern __shared__ __align__(16) char raw_memory[];
    auto &m = *reinterpret_cast<typename exact<D>::memory *>(raw_memory);
    if (!find_scope(l, TILE, &m.scope)) return;
    struct head_channels o = channels_of(l, l.head + (int)blockIdx.y);
    typename exact<D>::sums of_keys = {}, of_values = {};
    const float *pair =
        g.pair + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x - m.scope.tile) * 2 * TILE;
    find_rows<TILE>(m.scope, l.a.order, m.scope.tile * TILE, m.own_row);
    __syncthreads();
    fetch_rows<D>(m.own_row, g.qkv + o.k, o.in, (float)((double)l.a.scale * LOG2_E), m.own[0]);
    fetch_rows<D>(m.own_row, g.qkv + o.v, o.in, 1, m.own[1]);
    for (int at = 0; at < m.scope.rows; at += TILE) {
        int count = min(TILE, m.scope.rows - at);
        float s[R][R], d[R][R];
        find_rows<TILE>(m.scope, l.a.order, at, m.row);
        if (threadIdx.x < TILE) {
            m.less[threadIdx.x] = pair[2 * at + threadIdx.x];
            m.mean[threadIdx.x] = -pair[2 * at + TILE + threadIdx.x];
        }
        __syncthreads();
        fetch_rows<D>(m.row, g.qkv + o.q, o.in, 1, m.passing[0]);
        fetch_rows<D>(m.row, g.gout + o.q, o.out, 1, m.passing[1]);
        __syncthreads();
        multiply<D>(m.own[0], m.passing[0], s);
        multiply<D>(m.own[1], m.passing[1], d);
        for (int j = 0; j < R; j++) {
            float less = m.less[side_x() * R + j], mean = m.mean[side_x() * R + j];
            for (int i = 0; i < R; i++) {
                s[i][j] = exp2f(s[i][j] - less); /* 0 of queries that are not there */
                d[i][j] = s[i][j] * (d[i][j] - mean);
            }
        }
        put_shares<D>(s, m.share[0]);
        put_shares<D>(d, m.share[1]);
        __syncthreads();
        typename exact<D>::sums to_values = add_up<D>(count, m.share[0], m.passing[1]),
                                to_keys = add_up<D>(count, m.share[1], m.passing[0]);
        for (int i = 0; i < R; i++)
            for (int k = 0; k < exact<D>::PER; k++) {
                of_values.of[i][k] += to_values.of[i][k];
                of_keys.of[i][k] += to_keys.of[i][k];
            }
    }
    write_sums<D>(m.own_row, of_keys, l.a.scale, g.add, o.in, g.gqkv + o.k);
    write_sums<D>(m.own_row, of_values, 1, g.add, o.in, g.gqkv + o.v);
}

/* Calls f with an exact<D>. */
template <class F> static void by_width(int width, F f)
{
    switch (width) {
    case 8: f(exact<8>()); break;
    case 16: f(exact<16>()); break;
    case 32: f(exact<32>()); break;
    case 64: f(exact<64>()); break;
    default: f(exact<128>()); break;
    }
}

template <class M, class K, class... A>
static void launch(K *kernel, dim3 grid, const A &...arguments)
{
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(M));
    kernel<<<grid, THREADS, sizeof(M), pnet_cuda_stream()>>>(arguments...);
}

template <int D> static constexpr int width_of(struct exact<D>)
{
    return D;
}

void pnet_cuda_attend_exact(
    const struct attend_launch *l, dim3 grid, const float *qkv, float *out, float *log_sum)
{
    by_width(l->a.width, [&](auto e) {
        launch<typename decltype(e)::memory>(forward<width_of(e)>, grid, *l, qkv, out, log_sum);
    });
}

void pnet_cuda_attend_exact_queries(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    by_width(l->a.width,
        [&](auto e) { launch<typename decltype(e)::memory>(queries<width_of(e)>, grid, *l, *g); });
}

void pnet_cuda_attend_exact_keys(
    const struct attend_launch *l, dim3 grid, const struct attend_gradient *g)
{
    by_width(l->a.width,
        [&](auto e) { launch<typename decltype(e)::memory>(keys<width_of(e)>, grid, *l, *g); });
}
