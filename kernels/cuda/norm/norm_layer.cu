/* Layer norm. Where lanes can keep their parts of a row, it is read once. For the gradient a block has a chunk of rows, writes
   their gradients, and leaves the sums of the chunk, which a second launch adds in order. Wider rows are read several times. */
extern "C" {
#include "kernels/norm.h"
}
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/norm/norm.cuh"
#include "kernels/cuda/norm/norm_rows.cuh"

/* The type in which numbers of a row are added. Features in 16 bits are rounded much more than sums in float are, and conversions
   to double would take longer than all else. */
template <class T> using row_sum = typename std::conditional<sizeof(T) == 4, double, float>::type;

/* Returns the sum over groups of `width` lanes. */
template <class S> static __device__ __forceinline__ S lane_sum(S v, int width)
{
    for (int o = width >> 1; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/* Subtracts the mean of a row from a lane's part of it, and returns 1 / the row's standard deviation. All lanes of a warp
   take part. */
template <class T, int V, int PACKS>
static __device__ __forceinline__ float centred_row(const fetched<T, V> (&from)[PACKS], int lane,
    int width, int packs, double eps, pack<V> (&x)[PACKS])
{
    using S = row_sum<T>;
    S share = (S)1 / (S)(packs * V), total = 0, squares = 0;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        x[p] = opened(from[p]);
#pragma unroll
        for (int k = 0; k < V; k++) total += (S)x[p].at[k];
    }
    S mean = lane_sum(total, width) * share;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        bool there = lane + p * width < packs;
#pragma unroll
        for (int k = 0; k < V; k++) {
            S off = there ? (S)x[p].at[k] - mean : 0;
            x[p].at[k] = (float)off;
            squares += off * off;
        }
    }
    return (float)((S)1 / sqrt(lane_sum(squares, width) * share + (S)eps));
}

/* Lanes of a row of so many packs: each has as few as possible. */
static int layer_width(int32_t packs)
{
    int width = 1;
    while (width < packs && width < WARP) width *= 2;
    return width;
}

/* Calls f(form, packs of a lane) for rows of c numbers at these places. Returns false, and does nothing, if a lane cannot keep
   its part of a row. */
template <class F, class... P>
static bool by_kept(struct pnet_count rows, int32_t c, F f, const P *...p)
{
    bool kept = true;
    by_form(
        rows.storage, c,
        [&](auto form) {
            const int V = decltype(form)::V, MOST = V < 8 ? 4 : 2;
            int32_t packs = c / V;
            int each = (int)divide_up(packs, layer_width(packs));
            if (each == 1)
                f(form, std::integral_constant<int, 1>());
            else if (each == 2)
                f(form, std::integral_constant<int, 2>());
            else if (each <= MOST)
                f(form, std::integral_constant<int, MOST>());
            else
                kept = false;
        },
        p...);
    return kept;
}

template <int V, class T>
static __device__ __forceinline__ float2 moments_of(
    const group &g, bool there, int32_t packs, double eps, const T *x)
{
    double sum = 0, squares = 0, c = (double)packs * V;
    if (there)
        each_pack<V>(g, packs, x, [&](int32_t, pack<V> p) {
            for (int k = 0; k < V; k++) {
                sum += (double)p.at[k];
                squares += (double)p.at[k] * (double)p.at[k];
            }
        });
    double mean = group_sum(sum, g.width) / c;
    double variance = group_sum(squares, g.width) / c - mean * mean;
    if (variance < 0) variance = 0;
    return {(float)mean, (float)(1 / sqrt(variance + eps))};
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    layernorm_kernel(struct pnet_count count, int32_t packs, int width, double eps, const T *x,
        const float *weight, const float *bias, float below, T *y)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float2 m = moments_of<V>(g, there, packs, eps, x);
        if (!there) continue;
        each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
            for (int k = 0; k < V; k++) {
                float v = (p.at[k] - m.x) * m.y * weight[i * V + k] + bias[i * V + k];
                p.at[k] = v < 0 ? below * v : v;
            }
            store<V>(y, g.row() * packs + i, p);
        });
    }
}

/* Parameters of the result where lanes keep their parts of rows. */
struct layer_result {
    struct pnet_count rows;
    int32_t c;
    int width; /* lanes of a row */
    double eps;
    const float *x, *weight, *bias;
    float below; /* by which the activation multiplies numbers below 0 */
    float *y;
};

template <class T, int V, int PACKS>
static __global__ void __launch_bounds__(THREADS)
    layer_result_kernel(const __grid_constant__ layer_result d)
{
    wait_for_earlier();
    let_next_come();
    int64_t rows = pnet_live(d.rows);
    int packs = d.c / V;
    group g(d.width);
    if (g.base >= rows) return;
    fetched<T, V> part[PACKS], next[PACKS];
    float weight[PACKS][V], bias[PACKS][V];
    auto fetch_row = [&](fetched<T, V>(&to)[PACKS], int64_t row) {
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int i = g.lane + p * d.width;
            to[p] = fetch_if<V>(row < rows && i < packs, (const T *)d.x, row * packs + i);
        }
    };
    fetch_row(part, g.row());
#pragma unroll
    for (int p = 0; p < PACKS; p++)
#pragma unroll
        for (int k = 0; k < V; k++) {
            int i = g.lane + p * d.width;
            weight[p][k] = i < packs ? __ldg(d.weight + i * V + k) : 0;
            bias[p][k] = i < packs ? __ldg(d.bias + i * V + k) : 0;
        }
    for (; g.base < rows; g.next()) {
        pack<V> x[PACKS];
        fetch_row(next, g.row() + g.step);
        float inverse = centred_row<T>(part, g.lane, d.width, packs, d.eps, x);
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int i = g.lane + p * d.width;
#pragma unroll
            for (int k = 0; k < V; k++)
                x[p].at[k] = activated(x[p].at[k] * inverse * weight[p][k] + bias[p][k], d.below);
            if (g.row() < rows && i < packs) store<V>((T *)d.y, g.row() * packs + i, x[p]);
            part[p] = next[p];
        }
    }
}

extern "C" void pnet_cuda_layernorm(struct pnet_count rows, int32_t c, double eps, const float *x,
    const float *weight, const float *bias, enum pnet_activation act, float slope, float *y)
{
    float below = act == PNET_ACT_NONE ? 1 : act == PNET_ACT_LEAKY ? slope : 0;
    if (rows.most == 0) return;
    layer_result d = {rows, c, 0, eps, x, weight, bias, below, y};
    bool kept = by_kept(
        rows, c,
        [&](auto form, auto packs) {
            using F = decltype(form);
            d.width = layer_width(c / F::V);
            launch_early(layer_result_kernel<typename F::T, F::V, decltype(packs)::value>,
                dim3(group_blocks(rows.most, d.width)), dim3(THREADS), 0, 1, d);
        },
        x, y);
    if (kept) return;
    by_rows(
        rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            layernorm_kernel<T, decltype(form)::V><<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, l.packs, l.width, eps, as<T>(x), weight, bias, below, as<T>(y));
        },
        x, y);
}

/* Parameters of the gradient in one pass. */
struct layer_gradient {
    struct pnet_count rows;
    int32_t c;
    int width;           /* lanes of a row */
    int64_t most, least; /* chunks, at most; rows of a chunk, at least */
    double eps;
    const float *x, *weight, *gout;
    bool add;
    float *gx;    /* or NULL */
    double *part; /* [2, most, c]: sums of a chunk of the gradients of bias and weight; or NULL */
    __device__ int64_t chunk_rows(int64_t live) const
    {
        int64_t size = (live + most - 1) / most;
        return size > least ? size : least;
    }
};

/* A lane's part of a row of x and of the gradient, as it comes from memory. */
template <class T, int V, int PACKS> struct row_part {
    fetched<T, V> x[PACKS], g[PACKS];
    __device__ __forceinline__ void fetch(
        const layer_gradient &d, int lane, int64_t row, bool there)
    {
        int packs = d.c / V;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int i = lane + p * d.width;
            x[p] = fetch_if<V>(there && i < packs, (const T *)d.x, row * packs + i);
            g[p] = fetch_if<V>(there && i < packs, (const T *)d.gout, row * packs + i);
        }
    }
};

/* Writes the gradient of a row, gx = inverse (g weight - A - x^ B), A and B the means of g weight and g weight x^ over the row,
   and adds g and g x^ to the sums. All lanes of a warp take part. */
template <class T, int V, int PACKS, class S>
static __device__ __forceinline__ void layer_row(const layer_gradient &d,
    const row_part<T, V, PACKS> &part, const float (&weight)[PACKS][V], int lane, int64_t row,
    bool there, S (&sum)[PACKS][2 * V])
{
    int packs = d.c / V;
    S share = (S)1 / (S)d.c, a = 0, b = 0;
    pack<V> x[PACKS], g[PACKS];
    float inverse = centred_row<T>(part.x, lane, d.width, packs, d.eps, x);
#pragma unroll
    for (int p = 0; p < PACKS; p++) g[p] = opened(part.g[p]);
#pragma unroll
    for (int p = 0; p < PACKS; p++)
#pragma unroll
        for (int k = 0; k < V; k++) {
            x[p].at[k] *= inverse;
            S v = (S)g[p].at[k] * (S)weight[p][k], unit = (S)x[p].at[k];
            a += v;
            b += v * unit;
            sum[p][k] += (S)g[p].at[k];
            sum[p][V + k] += (S)g[p].at[k] * unit;
        }
    float mean_a = (float)(lane_sum(a, d.width) * share),
          mean_b = (float)(lane_sum(b, d.width) * share);
    if (!d.gx || !there) return;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int i = lane + p * d.width;
        if (i >= packs) break;
#pragma unroll
        for (int k = 0; k < V; k++)
            x[p].at[k] = inverse * (g[p].at[k] * weight[p][k] - mean_a - x[p].at[k] * mean_b);
        put<V>((T *)d.gx, row * packs + i, x[p], d.add);
    }
}

/* Adds the sums of all threads of a block that have the same columns, and writes them. A warp has one sum of each column. */
template <int V, int PACKS, class S>
static __device__ __forceinline__ void leave_chunk(
    const layer_gradient &d, const S (&sum)[PACKS][2 * V])
{
    __shared__ S shared[2 * V][THREADS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, packs = d.c / V;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 2 * V; k++) shared[k][threadIdx.x] = sum[p][k];
        __syncthreads();
        for (int k = warp; k < 2 * V; k += THREADS / WARP) {
            double v = 0;
#pragma unroll
            for (int i = 0; i < THREADS; i += WARP) v += (double)shared[k][i + lane];
            for (int o = d.width; o < WARP; o *= 2) v += __shfl_xor_sync(~0u, v, o);
            int column = (lane + p * d.width) * V + k % V;
            if (lane >= d.width || lane + p * d.width >= packs) continue;
            d.part[((k < V ? 0 : d.most) + blockIdx.x) * d.c + column] = v;
        }
    }
}

/* Two blocks a processor, where sums in double leave enough registers. */
template <class T, int V, int PACKS>
static __global__ void __launch_bounds__(THREADS, sizeof(T) * V * PACKS < 64 ? 2 : 1)
    layer_gradient_kernel(const __grid_constant__ layer_gradient d)
{
    wait_for_earlier();
    let_next_come();
    int64_t live = pnet_live(d.rows), size = d.chunk_rows(live), begin = blockIdx.x * size,
            end = begin + size < live ? begin + size : live;
    if (begin >= end) return;
    int lane = threadIdx.x % d.width, slots = THREADS / d.width, packs = d.c / V;
    row_part<T, V, PACKS> part, next;
    float weight[PACKS][V];
    row_sum<T> sum[PACKS][2 * V] = {};
    int64_t row = begin + threadIdx.x / d.width;
    part.fetch(d, lane, row, row < end);
#pragma unroll
    for (int p = 0; p < PACKS; p++)
#pragma unroll
        for (int k = 0; k < V; k++)
            weight[p][k] =
                lane + p * d.width < packs ? __ldg(d.weight + (lane + p * d.width) * V + k) : 0;
    for (int64_t first = begin; first < end; first += slots, row += slots) {
        next.fetch(d, lane, row + slots, row + slots < end);
        layer_row(d, part, weight, lane, row, row < end, sum);
        part = next;
    }
    if (d.part) leave_chunk<V, PACKS>(d, sum);
}

/* Writes the gradients of weight and bias; a block has JOIN_COLUMNS columns. */
static __global__ void __launch_bounds__(THREADS)
    layer_weights_kernel(const __grid_constant__ layer_gradient d, pnet_norm_gradient g)
{
    wait_for_earlier();
    let_next_come();
    int32_t column = (int32_t)(blockIdx.x * JOIN_COLUMNS + threadIdx.x % JOIN_COLUMNS);
    int lane = threadIdx.x / JOIN_COLUMNS;
    int64_t live = pnet_live(d.rows), size = d.chunk_rows(live);
    double2 sum = join_parts(d.part + column, d.part + d.most * d.c + column, 0,
        column < d.c ? (live + size - 1) / size : 0, d.c, lane);
    if (lane > 0 || column >= d.c) return;
    if (g.gbias) write_sum(g.gbias + column, g.gbias_add, sum.x);
    if (g.gweight) write_sum(g.gweight + column, g.gweight_add, sum.y);
}

template <class T, int V, int PACKS> static void run_layer_gradient(layer_gradient &d)
{
    d.width = layer_width(d.c / V);
    int64_t rows = 2 * THREADS / d.width;
    d.least = rows < LAYER_ROWS   ? (int64_t)LAYER_ROWS
              : rows < CHUNK_ROWS ? rows
                                  : (int64_t)CHUNK_ROWS;
    int64_t chunks = divide_up(d.rows.most, d.least);
    if (chunks == 0) return;
    launch_early(layer_gradient_kernel<T, V, PACKS>,
        dim3((unsigned)(chunks < d.most ? chunks : d.most)), dim3(THREADS), 0, 1, d);
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS) moments_kernel(
    struct pnet_count count, int32_t packs, int width, double eps, const T *x, float2 *moments)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float2 m = moments_of<V>(g, there, packs, eps, x);
        if (there && g.lane == 0) moments[g.row()] = m;
    }
}

/* gx = inverse (g weight - A - x^ B), A and B the means of g weight and g weight x^ over the row. */
template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    layernorm_backward_kernel(struct pnet_count count, int32_t packs, int width, const T *x,
        const float *weight, const float2 *moments, const T *gout, bool add, T *gx)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        bool there = g.row() < rows;
        float2 m = there ? moments[g.row()] : float2{0, 0};
        double a = 0, b = 0, c = (double)packs * V;
        if (there)
            each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
                pack<V> u = load<V>(gout, g.row() * packs + i);
                for (int k = 0; k < V; k++) {
                    double v = (double)u.at[k] * (double)weight[i * V + k];
                    a += v;
                    b += v * (double)((p.at[k] - m.x) * m.y);
                }
            });
        float mean_a = (float)(group_sum(a, width) / c), mean_b = (float)(group_sum(b, width) / c);
        if (!there) continue;
        each_pack<V>(g, packs, x, [&](int32_t i, pack<V> p) {
            pack<V> u = load<V>(gout, g.row() * packs + i);
            for (int k = 0; k < V; k++)
                p.at[k] =
                    m.y * (u.at[k] * weight[i * V + k] - mean_a - (p.at[k] - m.x) * m.y * mean_b);
            put<V>(gx, g.row() * packs + i, p, add);
        });
    }
}

/* Computes the gradients of weight and bias, [c] each, from sums. */
struct finish_layernorm {
    pnet_norm_gradient g;
    __device__ void operator()(
        const column_sums &m, int32_t, int32_t channel, int32_t, int lane) const
    {
        if (lane > 0) return;
        float weight = (float)m.sum_ab[channel], bias = (float)m.sum[channel];
        if (g.gweight) g.gweight[channel] = (g.gweight_add ? g.gweight[channel] : 0) + weight;
        if (g.gbias) g.gbias[channel] = (g.gbias_add ? g.gbias[channel] : 0) + bias;
    }
};

static void three_passes(const layer_gradient &d, const pnet_norm_gradient &g, void *work)
{
    int32_t c = d.c;
    float2 *moments = (float2 *)work;
    double *sum = (double *)(moments + d.rows.most);
    by_rows(
        d.rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            moments_kernel<T, decltype(form)::V><<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(
                d.rows, l.packs, l.width, d.eps, as<T>(d.x), moments);
        },
        d.x);
    if (d.part) {
        pnet_segments all = {d.rows.most, 1, nullptr, 1, d.rows.storage};
        column_sums m = {{all, d.rows, sum_chunks_of(c)}, c, d.gout, d.x, moments, sum, sum + c,
            sum + 2 * (int64_t)c, {}};
        sum_columns(m, c, finish_layernorm{g});
    }
    if (!d.gx) return;
    by_rows(
        d.rows, c,
        [&](auto form, const row_launch &l) {
            using T = typename decltype(form)::T;
            layernorm_backward_kernel<T, decltype(form)::V>
                <<<l.blocks, THREADS, 0, pnet_cuda_stream()>>>(d.rows, l.packs, l.width, as<T>(d.x),
                    d.weight, moments, as<T>(d.gout), d.add, as<T>(d.gx));
        },
        d.x, d.gout, d.gx);
}

extern "C" void pnet_cuda_layernorm_backward(struct pnet_count rows, int32_t c, double eps,
    const float *x, const float *weight, const struct pnet_norm_gradient *g, void *work)
{
    bool sums = g->gweight || g->gbias;
    layer_gradient d = {rows, c, 0, layer_chunks(rows.most, c), 0, eps, x, weight, g->gout,
        g->gx_add, g->gx, sums ? (double *)work : NULL};
    bool kept = by_kept(
        rows, c,
        [&](auto form, auto packs) {
            using F = decltype(form);
            run_layer_gradient<typename F::T, F::V, decltype(packs)::value>(d);
        },
        x, g->gout, g->gx);
    if (!kept)
        three_passes(d, *g, work);
    else if (sums)
        launch_early(layer_weights_kernel, dim3((unsigned)divide_up(c, JOIN_COLUMNS)),
            dim3(THREADS), 0, 1, d, *g);
}
