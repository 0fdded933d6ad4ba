extern "C" {
#include "kernels/act.h"
}
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/launch.cuh"

/* y[i] = f(a[i], b[i]), or y[i] += that. The memory may be the same: everything is read before it is written. */
template <class T, int V, bool TWO, bool ADD, class F>
static __global__ void __launch_bounds__(THREADS)
    map_kernel(struct pnet_count n, F f, const T *a, const T *b, T *y)
{
    let_next_come();
    wait_for_earlier();
    int64_t live = pnet_live(n), packs = live / V, step = (int64_t)gridDim.x * THREADS;
    int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    for (int64_t i = first; i < packs; i += step) {
        pack<V> p = load<V>(a, i), q = {}, r = {};
        if (TWO) q = load<V>(b, i);
        if (ADD) r = load<V>(y, i);
        for (int k = 0; k < V; k++) {
            float v = f(p.at[k], q.at[k]);
            r.at[k] = ADD ? r.at[k] + v : v;
        }
        store<V>(y, i, r);
    }
    if (packs * V + first < live) { /* fewer than V are left */
        int64_t i = packs * V + first;
        float v = f(widen(a[i]), TWO ? widen(b[i]) : 0);
        narrow(ADD ? widen(y[i]) + v : v, y + i);
    }
}

template <bool TWO, bool ADD, class F>
static void map_packed(struct pnet_count n, F f, const float *a, const float *b, float *y)
{
    if (n.most == 0) return;
    by_form_flat(
        n.storage,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            unsigned blocks = blocks_for(divide_up(n.most, V * THREADS));
            launch_early(map_kernel<T, V, TWO, ADD, F>, dim3(blocks), dim3(THREADS), 0, 1, n, f,
                as<T>(a), as<T>(b), as<T>(y));
        },
        a, b, y);
}

template <class F> static void map_one(struct pnet_count n, F f, const float *a, bool add, float *y)
{
    if (add)
        map_packed<false, true>(n, f, a, nullptr, y);
    else
        map_packed<false, false>(n, f, a, nullptr, y);
}

template <class F>
static void map_two(struct pnet_count n, F f, const float *a, const float *b, bool add, float *y)
{
    if (add)
        map_packed<true, true>(n, f, a, b, y);
    else
        map_packed<true, false>(n, f, a, b, y);
}

/* 0 times -infinity would not be 0 */
static __device__ __forceinline__ float rectify(float v, float below)
{
    return v < 0 ? (below == 0 ? 0 : below * v) : v;
}

struct rectified {
    float below;
    __device__ float operator()(float x, float) const
    {
        return rectify(x, below);
    }
};

struct rectified_gradient {
    float below;
    __device__ float operator()(float y, float g) const
    {
        return y > 0 ? g : below * g;
    }
};

struct scaled {
    float scale;
    __device__ float operator()(float x, float) const
    {
        return scale * x;
    }
};

struct added {
    float scale, below;
    __device__ float operator()(float a, float b) const
    {
        return rectify(a + scale * b, below);
    }
};

struct multiplied {
    __device__ float operator()(float a, float b) const
    {
        return a * b;
    }
};

struct gelu {
    __device__ float operator()(float x, float) const
    {
        return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
    }
};

/* erfc keeps the relative accuracy of the left tail, where 1 + erf would cancel. */
struct gelu_gradient {
    __device__ float operator()(float x, float g) const
    {
        return g * (0.5f * erfcf(-x * 0.70710678118654752f) +
                       x * 0.398942280401432678f * expf(-0.5f * x * x));
    }
};

struct sigmoid {
    __device__ float operator()(float x, float) const
    {
        return 1 / (1 + expf(-x));
    }
};

struct sigmoid_gradient {
    __device__ float operator()(float y, float g) const
    {
        return g * y * (1 - y);
    }
};

static float below_of(enum pnet_activation act, float slope)
{
    return act == PNET_ACT_NONE ? 1 : act == PNET_ACT_LEAKY ? slope : 0;
}

extern "C" void pnet_cuda_act(
    struct pnet_count n, enum pnet_activation act, float slope, const float *x, float *y)
{
    if (act == PNET_ACT_NONE)
        pnet_cuda_scale(n, 1, x, false, y);
    else
        map_one(n, rectified{below_of(act, slope)}, x, false, y);
}

extern "C" void pnet_cuda_act_gradient(struct pnet_count n, enum pnet_activation act, float slope,
    const float *y, const float *g, bool add, float *gx)
{
    if (act == PNET_ACT_NONE)
        pnet_cuda_scale(n, 1, g, add, gx);
    else
        map_two(n, rectified_gradient{below_of(act, slope)}, y, g, add, gx);
}

extern "C" void pnet_cuda_act_backward(
    struct pnet_count n, enum pnet_activation act, float slope, const float *y, float *g)
{
    if (act != PNET_ACT_NONE) pnet_cuda_act_gradient(n, act, slope, y, g, false, g);
}

extern "C" void pnet_cuda_gelu(struct pnet_count n, const float *x, float *y)
{
    map_one(n, gelu{}, x, false, y);
}

extern "C" void pnet_cuda_gelu_backward(
    struct pnet_count n, const float *x, const float *g, bool add, float *gx)
{
    map_two(n, gelu_gradient{}, x, g, add, gx);
}

extern "C" void pnet_cuda_sigmoid(struct pnet_count n, const float *x, float *y)
{
    map_one(n, sigmoid{}, x, false, y);
}

extern "C" void pnet_cuda_sigmoid_backward(
    struct pnet_count n, const float *y, const float *g, bool add, float *gx)
{
    map_two(n, sigmoid_gradient{}, y, g, add, gx);
}

extern "C" void pnet_cuda_scale(
    struct pnet_count n, float scale, const float *x, bool add, float *y)
{
    if (!add && x == y && scale == 1) return;
    map_one(n, scaled{scale}, x, add, y);
}

extern "C" void pnet_cuda_add(struct pnet_count n, const float *a, const float *b, float scale,
    enum pnet_activation act, float slope, float *y)
{
    map_two(n, added{scale, below_of(act, slope)}, a, b, false, y);
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    fill_kernel(struct pnet_count n, float value, T *y)
{
    int64_t live = pnet_live(n), packs = live / V, step = (int64_t)gridDim.x * THREADS;
    int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    pack<V> v;
    for (int k = 0; k < V; k++) v.at[k] = value;
    for (int64_t i = first; i < packs; i += step) store<V>(y, i, v);
    if (packs * V + first < live) narrow(value, y + packs * V + first);
}

extern "C" void pnet_cuda_fill(struct pnet_count n, float value, float *y)
{
    if (n.most == 0) return;
    by_form_flat(
        n.storage,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            unsigned blocks = blocks_for(divide_up(n.most, V * THREADS));
            fill_kernel<T, V><<<blocks, THREADS, 0, pnet_cuda_stream()>>>(n, value, as<T>(y));
        },
        y);
}

/* One factor a row. */
template <class T, int V, bool ADD>
static __global__ void __launch_bounds__(THREADS)
    gate_kernel(struct pnet_count count, int32_t packs, int width, const T *a, const T *b, T *y)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.row() < rows; g.next()) {
        float factor = widen(b[g.row()]);
        for (int32_t i = g.lane; i < packs; i += width) {
            pack<V> p = load<V>(a, g.row() * packs + i), r = {};
            if (ADD) r = load<V>(y, g.row() * packs + i);
            for (int k = 0; k < V; k++) {
                float v = p.at[k] * factor;
                r.at[k] = ADD ? r.at[k] + v : v;
            }
            store<V>(y, g.row() * packs + i, r);
        }
    }
}

template <bool ADD>
static void gate(struct pnet_count rows, int32_t width, const float *a, const float *b, float *y)
{
    by_form(
        rows.storage, width,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            int32_t packs = width / V;
            int lanes = group_width(packs);
            unsigned blocks = group_blocks(rows.most, lanes);
            gate_kernel<T, V, ADD><<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, packs, lanes, as<T>(a), as<T>(b), as<T>(y));
        },
        a, y);
}

extern "C" void pnet_cuda_mul(struct pnet_count rows, int32_t width, const float *a, const float *b,
    int32_t b_width, bool add, float *y)
{
    struct pnet_count elements = {rows.most * width, rows.live, rows.each * width, rows.storage};
    if (rows.most == 0) return;
    if (b_width == width)
        map_two(elements, multiplied{}, a, b, add, y);
    else if (add)
        gate<true>(rows, width, a, b, y);
    else
        gate<false>(rows, width, a, b, y);
}

template <class T, int V>
static __global__ void __launch_bounds__(THREADS) row_dot_kernel(
    struct pnet_count count, int32_t packs, int width, const T *a, const T *b, bool add, T *y)
{
    int64_t rows = pnet_live(count);
    for (group g(width); g.base < rows; g.next()) {
        double sum = 0;
        if (g.row() < rows)
            for (int32_t i = g.lane; i < packs; i += width) {
                pack<V> p = load<V>(a, g.row() * packs + i), q = load<V>(b, g.row() * packs + i);
                for (int k = 0; k < V; k++) sum += (double)p.at[k] * (double)q.at[k];
            }
        sum = group_sum(sum, width);
        if (g.row() < rows && g.lane == 0)
            narrow(add ? widen(y[g.row()]) + (float)sum : (float)sum, y + g.row());
    }
}

extern "C" void pnet_cuda_row_dot(
    struct pnet_count rows, int32_t width, const float *a, const float *b, bool add, float *y)
{
    if (rows.most == 0) return;
    by_form(
        rows.storage, width,
        [&](auto form) {
            using T = typename decltype(form)::T;
            const int V = decltype(form)::V;
            int32_t packs = width / V;
            int lanes = group_width(packs);
            unsigned blocks = group_blocks(rows.most, lanes);
            row_dot_kernel<T, V><<<blocks, THREADS, 0, pnet_cuda_stream()>>>(
                rows, packs, lanes, as<T>(a), as<T>(b), add, as<T>(y));
        },
        a, b);
}

/* Four elements share a block of random bits: one thread has them all. */
template <class T, int V, bool ADD>
static __global__ void __launch_bounds__(THREADS)
    dropout_kernel(struct pnet_count n, float p, float scale, pnet_rand rand, const T *x, T *y)
{
    let_next_come();
    wait_for_earlier();
    int64_t live = pnet_live(n), step = (int64_t)gridDim.x * THREADS;
    if (rand.live) rand.a = *rand.live;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i * 4 < live; i += step) {
        uint32_t bits[4];
        float v[4];
        pnet_philox(&rand, (uint64_t)i, bits);
        if (V == 4 && i * 4 + 4 <= live) {
            pack<4> in = load<4>(x, i), out = {};
            if (ADD) out = load<4>(y, i);
            for (int k = 0; k < 4; k++) {
                v[k] = (float)(bits[k] >> 8) * 0x1p-24f < p ? 0 : scale * in.at[k];
                out.at[k] = ADD ? out.at[k] + v[k] : v[k];
            }
            store<4>(y, i, out);
            continue;
        }
        for (int k = 0; k < 4 && i * 4 + k < live; k++) {
            int64_t at = i * 4 + k;
            v[k] = (float)(bits[k] >> 8) * 0x1p-24f < p ? 0 : scale * widen(x[at]);
            narrow(ADD ? widen(y[at]) + v[k] : v[k], y + at);
        }
    }
}

extern "C" void pnet_cuda_dropout(
    struct pnet_count n, float p, const struct pnet_rand *rand, const float *x, bool add, float *y)
{
    float scale = p < 1 ? 1 / (1 - p) : 0;
    unsigned blocks = blocks_for(divide_up(n.most, 4 * THREADS));
    if (n.most == 0) return;
    by_storage(n.storage, [&](auto form) {
        using T = typename decltype(form)::T;
        bool packed = fits<T, 4>(0, x, y);
        auto *kernel = packed ? (add ? dropout_kernel<T, 4, true> : dropout_kernel<T, 4, false>)
                              : (add ? dropout_kernel<T, 1, true> : dropout_kernel<T, 1, false>);
        launch_early(
            kernel, dim3(blocks), dim3(THREADS), 0, 1, n, p, scale, *rand, as<T>(x), as<T>(y));
    });
}
