extern "C" {
#include "kernels/optim.h"
}
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/base/launch.cuh"

enum { WARPS = THREADS / WARP, JOINERS = 1024 };

/* The sum over a block's threads, in one order; thread 0 has it. `shared` has room for one number a warp. */
static __device__ double block_sum(double v, double *shared)
{
    v = group_sum(v, WARP);
    if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = v;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (unsigned warp = 0; warp < blockDim.x / WARP; warp++) sum += shared[warp];
    __syncthreads();
    return sum;
}

template <int V> static __device__ __forceinline__ bool is_packed(const pnet_optim_chunk &c)
{
    return c.offset % V == 0;
}

/* N packs of a thread on their way at once. */
template <int V, int N> static __device__ double square_sum(const float *g, int32_t packs)
{
    double sum = 0;
    for (int32_t first = threadIdx.x; first < packs; first += N * THREADS) {
        fetched<float, V> f[N];
#pragma unroll
        for (int n = 0; n < N; n++) {
            int32_t i = first + n * THREADS;
            f[n] = fetch_if<V>(i < packs, g, i);
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            pack<V> p = opened(f[n]);
            for (int k = 0; k < V; k++) sum += (double)p.at[k] * (double)p.at[k];
        }
    }
    return sum;
}

static __global__ void __launch_bounds__(THREADS) square_kernel(
    const pnet_optim_chunk *chunks, int64_t chunk_count, bool packed, const float *g, double *part)
{
    __shared__ double shared[WARPS];
    for (int64_t i = blockIdx.x; i < chunk_count; i += gridDim.x) {
        pnet_optim_chunk c = chunks[i];
        int32_t packs = packed && is_packed<4>(c) ? c.count / 4 : 0;
        double sum = square_sum<4, 4>(g + c.offset, packs);
        sum += square_sum<1, 1>(g + c.offset + packs * 4, c.count - packs * 4);
        sum = block_sum(sum, shared);
        if (threadIdx.x == 0) part[i] = sum;
    }
}

/* Everything is asked for before anything is waited for; warps of their own make the powers meanwhile. */
static __global__ void __launch_bounds__(JOINERS)
    decide_kernel(pnet_optim_update u, const double *part)
{
    enum { AHEAD = 8 };
    __shared__ double shared[JOINERS / WARP];
    __shared__ pnet_adam_powers power;
    pnet_optim_record record;
    bool finite = true;
    let_next_come();
    wait_for_earlier();
    if (threadIdx.x == 0) {
        record = *u.record;
        for (int32_t i = 0; i < u.loss_count; i++) finite = finite && isfinite(u.losses[i]);
    }
    double sum = 0;
    for (int64_t from = threadIdx.x; from < u.chunk_count; from += AHEAD * JOINERS) {
        double next[AHEAD];
#pragma unroll
        for (int n = 0; n < AHEAD; n++)
            next[n] = from + n * JOINERS < u.chunk_count ? part[from + n * JOINERS] : 0;
#pragma unroll
        for (int n = 0; n < AHEAD; n++) sum += next[n];
    }
    if (threadIdx.x == WARP) power.first = pow(u.rule.beta1, u.record->step + 1);
    if (threadIdx.x == 2 * WARP) power.second = pow(u.rule.beta2, u.record->step + 1);
    sum = block_sum(sum, shared);
    if (threadIdx.x > 0) return;
    pnet_optim_decide(&u.rule, sum, finite, power, &record);
    *u.record = record;
}

/* The formulas of kernels/optim.h for one element; m and v are its state, as far as there is one. */
struct sgd_plain {
    enum { STATES = 0 };
    pnet_sgd_step s;
    __device__ void operator()(float g, float &w, float &, float &) const
    {
        w -= s.lr * (s.scale * g + s.decay * w);
    }
};

struct sgd_momentum {
    enum { STATES = 1 };
    pnet_sgd_step s;
    __device__ void operator()(float g, float &w, float &v, float &) const
    {
        float step = s.scale * g + s.decay * w;
        v = s.momentum * v + step;
        w -= s.lr * (s.nesterov ? step + s.momentum * v : v);
    }
};

struct adam {
    enum { STATES = 2 };
    pnet_adam_step s;
    __device__ void operator()(float g, float &w, float &m, float &v) const
    {
        float step = s.scale * g + s.decay * w;
        m += s.beta1_rest * (step - m);
        v = s.beta2 * v + s.beta2_rest * (step * step);
        w = s.keep * w - s.rate * m / (sqrtf(v) * s.inverse_root + s.eps);
    }
};

template <int V, int N, class F>
static __device__ __forceinline__ void update_chunk(
    F f, const pnet_optim_update &u, const pnet_optim_chunk &c, int32_t first, int32_t packs)
{
    const float *g = u.g + c.offset + first;
    float *w = u.w + c.offset + first, *m = u.state[0] + c.offset + first,
          *v = u.state[1] + c.offset + first;
    for (int32_t from = threadIdx.x; from < packs; from += N * THREADS) {
        fetched<float, V> fg[N], fw[N], fm[N], fv[N];
#pragma unroll
        for (int n = 0; n < N; n++) {
            int32_t i = from + n * THREADS;
            fg[n] = fetch_if<V>(i < packs, g, i);
            fw[n] = fetch_if<V>(i < packs, w, i);
            if (F::STATES > 0) fm[n] = fetch_if<V>(i < packs, m, i);
            if (F::STATES > 1) fv[n] = fetch_if<V>(i < packs, v, i);
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            int32_t i = from + n * THREADS;
            if (i >= packs) break;
            pack<V> pg = opened(fg[n]), pw = opened(fw[n]), pm = {}, pv = {};
            if (F::STATES > 0) pm = opened(fm[n]);
            if (F::STATES > 1) pv = opened(fv[n]);
            for (int k = 0; k < V; k++) f(pg.at[k], pw.at[k], pm.at[k], pv.at[k]);
            store<V>(w, i, pw);
            if (F::STATES > 0) store<V>(m, i, pm);
            if (F::STATES > 1) store<V>(v, i, pv);
        }
    }
}

static __device__ sgd_plain formula_of(
    const pnet_optim_record *r, const pnet_optim_chunk &c, sgd_plain)
{
    return {pnet_sgd_step_at(r->sgd[c.decays], c.rate)};
}

static __device__ sgd_momentum formula_of(
    const pnet_optim_record *r, const pnet_optim_chunk &c, sgd_momentum)
{
    return {pnet_sgd_step_at(r->sgd[c.decays], c.rate)};
}

static __device__ adam formula_of(const pnet_optim_record *r, const pnet_optim_chunk &c, adam)
{
    return {pnet_adam_step_at(r->adam[c.decays], c.rate)};
}

/* From the last chunk to the first: the cache still holds the gradients that square_kernel read last. */
template <class F>
static __global__ void __launch_bounds__(THREADS) update_kernel(pnet_optim_update u, bool packed)
{
    wait_for_earlier();
    bool skipped = u.record->skipped;
    for (int64_t i = u.chunk_count - 1 - (int64_t)blockIdx.x; i >= 0; i -= gridDim.x) {
        pnet_optim_chunk c = u.chunks[i]; /* asked for together with `skipped` */
        if (skipped) return;
        F f = formula_of(u.record, c, F{});
        int32_t packs = packed && is_packed<4>(c) ? c.count / 4 : 0;
        update_chunk<4, 2>(f, u, c, 0, packs);
        update_chunk<1, 1>(f, u, c, packs * 4, c.count - packs * 4);
    }
}

/* A chunk a block. Blocks that go through several leave a processor with one or two of them for the last ones, as it has
   no room for the registers of as many as it has threads for, and those do not keep the memory busy. */
static unsigned blocks_of_chunks(int64_t chunks)
{
    const int64_t most = 1 << 20;
    return (unsigned)(chunks < most ? chunks : most);
}

extern "C" void pnet_cuda_optim_squares(
    const struct pnet_optim_update *u, int64_t first, int64_t count, void *work)
{
    if (count > 0)
        square_kernel<<<blocks_of_chunks(count), THREADS, 0, pnet_cuda_stream()>>>(
            u->chunks + first, count, is_aligned(u->g), u->g, (double *)work + first);
}

extern "C" void pnet_cuda_optim_update(const struct pnet_optim_update *u, void *work)
{
    bool packed =
        is_aligned(u->g) && is_aligned(u->w) && is_aligned(u->state[0]) && is_aligned(u->state[1]);
    unsigned blocks = blocks_of_chunks(u->chunk_count);
    pnet_cuda_optim_squares(u, u->squared, u->chunk_count - u->squared, work);
    bool squares = u->squared < u->chunk_count;
    launch_waiting(squares, decide_kernel, dim3(1), dim3(JOINERS), 0, 1, *u, (const double *)work);
    auto *kernel = u->rule.formula == PNET_STEP_ADAM ? update_kernel<adam>
                   : u->state[0]                     ? update_kernel<sgd_momentum>
                                                     : update_kernel<sgd_plain>;
    if (blocks) launch_waiting(true, kernel, dim3(blocks), dim3(THREADS), 0, 1, *u, packed);
}

static __global__ void loss_kernel(const float *loss, double weight, bool add, double *sum)
{
    *sum = (add ? *sum : 0) + weight * (double)*loss;
}

extern "C" void pnet_cuda_loss_add(const float *loss, double weight, bool add, double *sum)
{
    loss_kernel<<<1, 1, 0, pnet_cuda_stream()>>>(loss, weight, add, sum);
}
