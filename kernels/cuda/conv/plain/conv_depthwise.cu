/* Depthwise layers: each channel by itself, bound by memory. A thread has as many neighbouring channels of a row as can
   be read at once. It requests several neighbours before it uses the first, to hide the latency of memory. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/plain/conv_pairs.cuh"

enum { THREADS = 256, AT_ONCE = 4 };

/* AT_ONCE triplets of a row from the n-th on, with V channels of each; where fewer are left, the last one again. */
template <class T, int V> struct triplets_read {
    int cell[AT_ONCE];
    stored<T, V> x[AT_ONCE];
};

/* `others`: a row of `width` of them, at its first channel. */
template <class T, int V>
static __device__ __forceinline__ triplets_read<T, V> read_triplets(
    const conv_set &s, const T *others, int width, int64_t n, int64_t last)
{
    triplets_read<T, V> r;
    int64_t other[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        int64_t at = min(n + i, last - 1);
        other[i] = conv_other(s, at);
        r.cell[i] = conv_cell(s, at);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
        r.x[i] = *reinterpret_cast<const stored<T, V> *>(others + other[i] * width);
    return r;
}

/* Writes V channels of a row from column c on. */
template <class T, int V>
static __device__ __forceinline__ void write_sums(
    const conv_end &e, int64_t row, int width, int c, float (&sum)[V])
{
    T *to = (T *)e.out + row * width + c;
    float old[V] = {};
    if (e.add) load_wide<V>(to, old);
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (e.bias) sum[v] += e.bias[c + v];
        sum[v] = e.add ? old[v] + sum[v] : conv_activate(sum[v], e.act, e.slope);
    }
    store_wide<V>(to, sum);
}

/* Rows of a block of threads: close to each other, so that they find their neighbours in the cache. */
static int64_t rows_of_block(int units)
{
    enum { ROWS = 64, ITEMS = 4 * THREADS };
    return units * ROWS < ITEMS ? (ITEMS + units - 1) / units : ROWS;
}

/* A thread makes V channels of a row at a time. */
template <class T, int V>
static __global__ __launch_bounds__(THREADS) void mvmr(conv_product p, const T *in, int rows)
{
    int units = p.cout / V;
    int64_t row0 = (int64_t)blockIdx.x * rows;
    int64_t left = pnet_live(p.set.rows) - row0;
    int items = (int)min((int64_t)rows, left) * units;
    for (int i = threadIdx.x; i < items; i += THREADS) {
        int64_t row = row0 + i / units;
        int c = i % units * V;
        int64_t last = conv_start(p.set, row + 1);
        float sum[V] = {};
        for (int64_t n = conv_start(p.set, row); n < last; n += AT_ONCE) {
            auto r = read_triplets<T, V>(p.set, in + c, p.cin, n, last);
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                if (n + j >= last) break;
                float w[V];
                load_wide<V>(p.weight + (int64_t)r.cell[j] * p.cout + c, w);
#pragma unroll
                for (int v = 0; v < V; v++) sum[v] += w[v] * widen(r.x[j].at[v]);
            }
        }
        write_sums<T, V>(p.end, conv_row(p.set, row), p.cout, c, sum);
    }
}

/* Calls f(form): V is 4 where rows and weights can be read that way, else 1. */
template <class F, class... P>
static void by_four(enum pnet_storage storage, int channels, F f, const P *...p)
{
    by_storage(storage, [&](auto one) {
        using T = typename decltype(one)::T;
        if (fits<T, 4>(channels, p...))
            f(form<T, 4>());
        else
            f(one);
    });
}

void pnet_cuda_conv_depthwise_mvmr(const struct conv_product *sum, enum pnet_precision, void *)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    /* weights are float32 whatever features are */
    bool whole = fits<float, 4>(p.cout, p.weight);
    by_four(
        p.set.rows.storage, whole ? p.cout : 1,
        [&](auto form) {
            using T = typename decltype(form)::T;
            constexpr int V = decltype(form)::V;
            int64_t rows = rows_of_block(p.cout / V);
            mvmr<T, V><<<(unsigned)((p.set.rows.most + rows - 1) / rows), THREADS, 0,
                pnet_cuda_stream()>>>(p, as<T>(p.in), (int)rows);
        },
        p.in, p.end.out);
}

/* Sums of a lane in shared memory: so many that two blocks of threads fit on a processor. */
enum { SUMS = 112 };

/* Kernel cells that a block of threads sums V channels of. */
static __host__ __device__ constexpr int cells_of_block(int V)
{
    return SUMS / V;
}

/* How the lanes of a warp are assigned: `lanes`, a power of two, share the channels of a row. */
struct row_team {
    int lanes, slices; /* parts of a row, where lanes are too few */
};

static row_team make_team(int units)
{
    row_team t = {1, 1};
    while (t.lanes < 32 && t.lanes < units) t.lanes *= 2;
    t.slices = (units + t.lanes - 1) / t.lanes;
    return t;
}

/* Adds run times g to the sums of a cell. */
template <int V>
static __device__ __forceinline__ void add_run(
    float (*sums)[32][V], int cell, const float (&run)[V], const float (&g)[V])
{
    float *to = sums[cell][threadIdx.x % 32], sum[V];
    load_wide<V>(to, sum);
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] += run[v] * g[v];
    store_wide<V>(to, sum);
}

/* Adds the runs of a row's triplets [n, last), whose first cell is `first` or higher. */
template <class T, int V>
static __device__ __forceinline__ void add_runs(float (*sums)[32][V], const conv_set &s,
    const T *others, int width, int64_t n, int64_t last, int first, const float (&g)[V])
{
    float run[V] = {};
    int cell = -1;
    for (; n < last; n += AT_ONCE) {
        auto r = read_triplets<T, V>(s, others, width, n, last);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (n + j >= last) break;
            bool other = r.cell[j] != cell;
            if (other && cell >= 0) add_run<V>(sums, cell - first, run, g);
#pragma unroll
            for (int v = 0; v < V; v++) run[v] = (other ? 0 : run[v]) + widen(r.x[j].at[v]);
            cell = r.cell[j];
        }
    }
    if (cell >= 0) add_run<V>(sums, cell - first, run, g);
}

/* partial[chunk][cell][channel]. A block of threads sums some cells of a team's channels over a chunk of rows: each team
   over rows of its own, then the teams in order. */
template <class T, int V>
static __global__ __launch_bounds__(THREADS) void vvor(conv_outer o, const T *in, const T *gout,
    row_team team, int cells, int64_t chunk, float *partial)
{
    extern __shared__ __align__(16) float memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, width = o.cin;
    int first = (int)blockIdx.z * cells, many = min(cells, o.set.cells - first);
    int from = (int)blockIdx.y * team.lanes * V, c = from + lane % team.lanes * V;
    float(*all)[32][V] = (float(*)[32][V])memory, (*sums)[32][V] = all + warp * many;
    float zero[V] = {};
    for (int k = 0; k < many; k++) store_wide<V>(sums[k][lane], zero);
    const T *rows = o.swapped ? in : gout, *others = o.swapped ? gout : in;
    int64_t live = pnet_live(o.set.rows), row = blockIdx.x * chunk, end = min(row + chunk, live);
    int teams = THREADS / team.lanes;
    for (row += threadIdx.x / team.lanes; row < end && c < width; row += teams) {
        int64_t n = conv_start(o.set, row), last = conv_start(o.set, row + 1);
        if (first > 0) n = conv_find_cell(o.set, n, last, first);
        if (first + many < o.set.cells) last = conv_find_cell(o.set, n, last, first + many);
        float g[V];
        load_wide<V>(rows + conv_row(o.set, row) * width + c, g);
        add_runs<T, V>(sums, o.set, others + c, width, n, last, first, g);
    }
    __syncthreads();
    int channels = min(team.lanes * V, width - from);
    for (int i = threadIdx.x; i < many * channels; i += THREADS) {
        int k = i / channels, at = i % channels;
        float sum = 0;
        for (int t = 0; t < teams; t++) {
            int l = t * team.lanes + at / V;
            sum += all[l / 32 * many + k][l % 32][at % V];
        }
        partial[((int64_t)blockIdx.x * o.set.cells + first + k) * width + from + at] = sum;
    }
}

void pnet_cuda_conv_depthwise_vvor(const struct conv_outer *sum, enum pnet_precision, void *work)
{
    const conv_outer &o = *sum;
    conv_splits s = pnet_cuda_conv_depthwise_split(&o.set, o.cin);
    by_four(
        o.set.rows.storage, o.cin,
        [&](auto form) {
            using T = typename decltype(form)::T;
            constexpr int V = decltype(form)::V;
            int parts = (o.set.cells + cells_of_block(V) - 1) / cells_of_block(V),
                cells = (o.set.cells + parts - 1) / parts;
            row_team team = make_team(o.cin / V);
            size_t bytes = (size_t)cells * THREADS * V * sizeof(float);
            cudaFuncSetAttribute(
                vvor<T, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
            vvor<T, V><<<dim3((unsigned)s.count, (unsigned)team.slices, (unsigned)parts), THREADS,
                bytes, pnet_cuda_stream()>>>(
                o, as<T>(o.in), as<T>(o.gout), team, cells, s.rows, (float *)work);
        },
        o.in, o.gout);
    pnet_cuda_conv_reduce(o, (const float *)work, s.count);
}
