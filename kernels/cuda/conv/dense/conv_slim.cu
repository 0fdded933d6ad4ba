/* Dense products between a few channels of coordinates, which are float32, and features in 16 bits: a linear layer that gives
   coordinates, and its gradients. Each kernel reads or writes the features once, as they lie in memory, and multiplies in
   float32; so it takes as long as memory takes to move them. Sums depend on the widths and on the true number of rows alone. */
#include "kernels/cuda/base/dense.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/conv_common.cuh"

enum {
    ROWS =
        4, /* that a group of lanes sums at once: so often is a weight used that was read from shared memory */
    DEEP = 1024,  /* channels of features whose weights lie there */
    AT_ONCE = 16, /* numbers of coordinates of the rows of a thread that are on their way at once */
    LANES = 8,    /* of an element, where shares are added */
};

/* What kernels work on. C: channels of coordinates that a kernel sums, of which `slim` are there. */
template <class T> struct slim_product {
    struct pnet_count rows;
    int slim, wide; /* channels of the coordinates and of the features */
    const float *weight;
    int64_t slim_step, wide_step; /* between weights */
};

template <class T>
static __device__ __forceinline__ float weight_at(const slim_product<T> &s, int c, int k)
{
    return c < s.slim ? __ldg(s.weight + c * s.slim_step + k * s.wide_step) : 0;
}

/* The weights of DEEP channels of features in shared memory, in planes of vectors: neighbouring lanes read neighbouring ones. */
template <int V, int C> struct weights {
    static constexpr int VECTOR = V < 4 ? V : 4, PLANES = V / VECTOR;
    float at[C][PLANES][DEEP / V][VECTOR];

    template <class T> __device__ __forceinline__ void lay(const slim_product<T> &s, int first)
    {
        int count = min((int)DEEP, s.wide - first);
        for (int i = threadIdx.x; i < C * count; i += THREADS) {
            int c = i / count, k = i % count;
            at[c][k % V / VECTOR][k / V][k % VECTOR] = weight_at(s, c, first + k);
        }
    }
    __device__ __forceinline__ void take(int c, int pack, float (&w)[V]) const
    {
#pragma unroll
        for (int p = 0; p < PLANES; p++) {
            stored<float, VECTOR> v =
                *reinterpret_cast<const stored<float, VECTOR> *>(at[c][p][pack]);
#pragma unroll
            for (int i = 0; i < VECTOR; i++) w[p * VECTOR + i] = v.at[i];
        }
    }
};

/* Adds what a lane has of ROWS rows from row0 on, of channels [first, first + count). */
template <class T, int V, int C>
static __device__ __forceinline__ void sum_channels(float (&sum)[ROWS][C], const slim_product<T> &s,
    const weights<V, C> &w, const T *x, int64_t row0, int64_t live, int first, int lane, int lanes)
{
    int packs = min((int)DEEP, s.wide - first) / V;
#pragma unroll 2
    for (int p = lane; p < packs; p += lanes) {
        fetched<T, V> f[ROWS];
        float v[ROWS][V];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            f[r] = fetch_if<V>(row0 + r < live, x + (row0 + r) * s.wide + first, p);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            pack<V> o = opened<T, V>(f[r]);
#pragma unroll
            for (int i = 0; i < V; i++) v[r][i] = o.at[i];
        }
#pragma unroll
        for (int c = 0; c < C; c++) {
            float at[V];
            w.take(c, p, at);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int i = 0; i < V; i++) sum[r][c] += v[r][i] * at[i];
        }
    }
}

/* Adds up the lanes of a group and writes its rows: lane i has every number i. */
template <class T, int C>
static __device__ __forceinline__ void write_rows(const float (&sum)[ROWS][C],
    const slim_product<T> &s, const conv_end &e, int64_t row0, int64_t live, int lane, int lanes)
{
    float all[ROWS * C];
#pragma unroll
    for (int i = 0; i < ROWS * C; i++) {
        all[i] = sum[i / C][i % C];
        for (int d = lanes / 2; d > 0 && i % C < s.slim; d /= 2)
            all[i] += __shfl_xor_sync(~0u, all[i], d);
    }
    for (int first = 0; first < ROWS * C; first += lanes) {
        int mine = first + lane;
        float v = 0;
#pragma unroll
        for (int i = 0; i < ROWS * C; i++)
            if (i == mine) v = all[i];
        if (mine < ROWS * C && mine % C < s.slim && row0 + mine / C < live)
            conv_finish<float>(e, row0 + mine / C, s.slim, mine % C, v);
    }
}

/* Coordinates from features. A group of `lanes` lanes has ROWS rows at a time. */
template <class T, int V, int C>
static __global__ void __launch_bounds__(THREADS, 2)
    gather_rows(const __grid_constant__ slim_product<T> s, const T *x,
        const __grid_constant__ conv_end e, int lanes)
{
    __shared__ __align__(16) weights<V, C> w;
    int64_t live = pnet_live(s.rows);
    int block_rows = THREADS / lanes * ROWS, lane = (int)threadIdx.x % lanes;
    bool laid = false; /* all weights */
    for (int64_t base = (int64_t)blockIdx.x * block_rows; base < live;
         base += (int64_t)gridDim.x * block_rows) {
        int64_t row0 = base + (int)threadIdx.x / lanes * ROWS;
        float sum[ROWS][C] = {};
        for (int first = 0; first < s.wide; first += DEEP) {
            if (!laid) {
                __syncthreads();
                w.lay(s, first);
                __syncthreads();
                laid = s.wide <= DEEP;
            }
            sum_channels<T, V, C>(sum, s, w, x, row0, live, first, lane, lanes);
        }
        write_rows<T, C>(sum, s, e, row0, live, lane, lanes);
    }
}

/* The channels of features that a thread has, of every t.lanes-th row. False: none. */
template <int V>
static __device__ __forceinline__ bool take_place(int wide, const tiling &t, int *first, int *lane)
{
    *first = ((int)blockIdx.y * t.columns + (int)threadIdx.x % t.columns) * V;
    *lane = (int)threadIdx.x / t.columns;
    return *lane < t.lanes && *first < wide;
}

/* The coordinates of a row, for each channel that a kernel sums. */
template <class T, int C>
static __device__ __forceinline__ void take_row(
    const slim_product<T> &s, const float *g, int64_t row, int64_t end, float (&to)[C])
{
#pragma unroll
    for (int c = 0; c < C; c++) to[c] = c < s.slim && row < end ? __ldg(g + row * s.slim + c) : 0;
}

/* Features from coordinates. A thread keeps the weights of its channels. */
template <class T, int V, int C>
static __global__ void __launch_bounds__(THREADS, 2)
    spread_rows(const __grid_constant__ slim_product<T> s, const float *g,
        const __grid_constant__ conv_end e, const __grid_constant__ tiling t)
{
    constexpr int TURNS = AT_ONCE / C;
    int first, lane;
    int64_t live = pnet_live(s.rows), step = (int64_t)gridDim.x * t.lanes;
    float w[C][V], bias[V];
    if (!take_place<V>(s.wide, t, &first, &lane)) return;
#pragma unroll
    for (int i = 0; i < V; i++) {
        bias[i] = e.bias ? __ldg(e.bias + first + i) : 0;
#pragma unroll
        for (int c = 0; c < C; c++) w[c][i] = weight_at(s, c, first + i);
    }
    for (int64_t row = (int64_t)blockIdx.x * t.lanes + lane; row < live; row += TURNS * step) {
        float at[TURNS][C];
        fetched<T, V> old[TURNS];
        T *to = (T *)e.out + row * s.wide + first;
#pragma unroll
        for (int n = 0; n < TURNS; n++) {
            take_row(s, g, row + n * step, live, at[n]);
            old[n] = fetch_if<V>(e.add && row + n * step < live, to + n * step * s.wide, 0);
        }
#pragma unroll
        for (int n = 0; n < TURNS; n++) {
            pack<V> v = opened<T, V>(old[n]);
            if (row + n * step >= live) break;
#pragma unroll
            for (int i = 0; i < V; i++) {
                float sum = bias[i];
#pragma unroll
                for (int c = 0; c < C; c++) sum += at[n][c] * w[c][i];
                v.at[i] = e.add ? v.at[i] + sum : conv_activate(sum, e.act, e.slope);
            }
            store<V>(to + n * step * s.wide, 0, v);
        }
    }
}

/* How many shares the rows have; the rows of one. */
static __device__ __forceinline__ int64_t shares_of(int64_t rows, int most)
{
    int64_t shares = (rows + SLIM_SHARE_ROWS - 1) / SLIM_SHARE_ROWS;
    return shares < most ? shares : most;
}

/* The sums of a share (blockIdx.x): partial [shares][slim][wide]. */
template <class T, int V, int C>
static __global__ void __launch_bounds__(THREADS, 2)
    sum_share(const __grid_constant__ slim_product<T> s, const T *x, const float *g,
        const __grid_constant__ tiling t, int most, float *partial)
{
    constexpr int TURNS = AT_ONCE / C;
    __shared__ float part[THREADS * V];
    int first, lane;
    int64_t live = pnet_live(s.rows), shares = shares_of(live, most), share = blockIdx.x;
    if (share >= shares) return;
    int64_t begin = live * share / shares, end = live * (share + 1) / shares;
    bool there = take_place<V>(s.wide, t, &first, &lane);
    float sum[C][V] = {};
    for (int64_t row = begin + lane; there && row < end; row += TURNS * t.lanes) {
        float at[TURNS][C];
        fetched<T, V> f[TURNS];
#pragma unroll
        for (int n = 0; n < TURNS; n++) {
            f[n] =
                fetch_if<V>(row + n * t.lanes < end, x + (row + n * t.lanes) * s.wide + first, 0);
            take_row(s, g, row + n * t.lanes, end, at[n]);
        }
#pragma unroll
        for (int n = 0; n < TURNS; n++) {
            pack<V> v = opened<T, V>(f[n]);
#pragma unroll
            for (int c = 0; c < C; c++)
#pragma unroll
                for (int i = 0; i < V; i++) sum[c][i] += v.at[i] * at[n][c];
        }
    }
#pragma unroll
    for (int c = 0; c < C; c++) {
        if (c >= s.slim) break;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < V; i++) part[threadIdx.x * V + i] = sum[c][i];
        __syncthreads();
        int width = t.columns * V, column = (int)blockIdx.y * width;
        for (int k = threadIdx.x; k < width && column + k < s.wide; k += THREADS) {
            float all = 0;
            for (int l = 0; l < t.lanes; l++) all += part[l * width + k];
            partial[(share * s.slim + c) * s.wide + column + k] = all;
        }
    }
}

/* The gradient (+)= the sum of all shares. Of each element a thread adds every LANES-th share. */
template <class T>
static __global__ void __launch_bounds__(THREADS) add_shares(
    const __grid_constant__ slim_product<T> s, int most, const float *partial, bool add, float *to)
{
    __shared__ double sums[LANES][THREADS / LANES];
    const int across = THREADS / LANES;
    int lane = (int)threadIdx.x / across, at = (int)threadIdx.x % across;
    int64_t elements = (int64_t)s.slim * s.wide, n = (int64_t)blockIdx.x * across + at;
    int64_t shares = shares_of(pnet_live(s.rows), most);
    double sum = 0;
    if (n < elements)
#pragma unroll 8
        for (int64_t k = lane; k < shares; k += LANES) sum += (double)partial[k * elements + n];
    sums[lane][at] = sum;
    __syncthreads();
    if (lane > 0 || n >= elements) return;
    for (int l = 1; l < LANES; l++) sum += sums[l][at];
    to += n / s.wide * s.slim_step + n % s.wide * s.wide_step;
    *to = add ? *to + (float)sum : (float)sum;
}

/* Calls f(form, columns) for the features at `p`; columns::value is C. */
template <int C> struct columns_of {
    static constexpr int value = C;
};
template <class F>
static void by_width(enum pnet_storage storage, int slim, int wide, F f, const float *p)
{
    by_form(
        storage, wide,
        [&](auto form) {
            if constexpr (sizeof(typename decltype(form)::T) == 2) {
                if (slim <= 4)
                    f(form, columns_of<4>());
                else
                    f(form, columns_of<PNET_EXACT_CHANNELS>());
            }
        },
        p);
}

static void gather(const conv_product &p)
{
    by_width(
        p.set.rows.storage, p.cout, p.cin,
        [&](auto form, auto columns) {
            using T = typename decltype(form)::T;
            constexpr int V = decltype(form)::V, C = decltype(columns)::value;
            slim_product<T> s = {p.set.rows, p.cout, p.cin, p.weight, p.transposed ? p.cin : 1,
                p.transposed ? 1 : p.cout};
            int lanes = group_width(p.cin / V);
            unsigned blocks = blocks_for(divide_up(p.set.rows.most, THREADS / lanes * ROWS));
            gather_rows<T, V, C>
                <<<blocks, THREADS, 0, pnet_cuda_stream()>>>(s, as<T>(p.in), p.end, lanes);
        },
        p.in);
}

static void spread(const conv_product &p)
{
    by_width(
        p.set.rows.storage, p.cin, p.cout,
        [&](auto form, auto columns) {
            using T = typename decltype(form)::T;
            constexpr int V = decltype(form)::V, C = decltype(columns)::value;
            slim_product<T> s = {p.set.rows, p.cin, p.cout, p.weight, p.transposed ? 1 : p.cout,
                p.transposed ? p.cin : 1};
            tiling t = tile(p.cout / V);
            unsigned blocks = blocks_for(divide_up(p.set.rows.most, t.lanes * (AT_ONCE / C)));
            spread_rows<T, V, C>
                <<<dim3(blocks, (unsigned)t.tiles), THREADS, 0, pnet_cuda_stream()>>>(
                    s, p.in, p.end, t);
        },
        p.end.out);
}

void pnet_cuda_conv_slim_mvmr(const struct conv_product *sum, enum pnet_precision, void *)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    if (p.exact_in)
        spread(p);
    else
        gather(p);
}

void pnet_cuda_conv_slim_vvor(const struct conv_outer *sum, enum pnet_precision, void *work)
{
    const conv_outer &o = *sum;
    slim_plan plan = pnet_cuda_conv_slim_plan(o.set.rows, o.cin, o.cout);
    by_width(
        o.set.rows.storage, o.cout, o.cin,
        [&](auto form, auto columns) {
            using T = typename decltype(form)::T;
            constexpr int V = decltype(form)::V, C = decltype(columns)::value;
            slim_product<T> s = {o.set.rows, o.cout, o.cin, NULL, o.transposed ? o.cin : 1,
                o.transposed ? 1 : o.cout};
            tiling t = tile(o.cin / V);
            float *partial = (float *)work;
            if (plan.shares > 0)
                sum_share<T, V, C><<<dim3((unsigned)plan.shares, (unsigned)t.tiles), THREADS, 0,
                    pnet_cuda_stream()>>>(s, as<T>(o.in), o.gout, t, plan.most, partial);
            int64_t elements = (int64_t)o.cin * o.cout;
            add_shares<T><<<(unsigned)divide_up(elements, THREADS / LANES), THREADS, 0,
                pnet_cuda_stream()>>>(s, plan.most, partial, o.add, o.gweight);
        },
        o.in);
}
