/* Dense products of rows in 16 bits with one matrix. A block of threads keeps the weights of up to 128 output channels in
   shared memory. It copies batches of 128 rows there while two warpgroups multiply and write earlier ones. Rows whose
   width is no multiple of 16 bytes are read and written as contiguous memory (conv_flat.cuh). */
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/conv/conv_flat.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/conv/conv_steps.cuh"

enum {
    THREADS = 256,
    ROWS = 128,         /* of a batch, FLAT_ROWS of them a warpgroup's */
    PANEL = ROWS * 128, /* bytes of 64 channels of a batch */
    MOST_COLUMNS = 128, /* of a block of threads */
};

/* STEPS: of 16 input channels, 4 of them a panel. */
template <bool BFLOAT_, int STEPS_, int COLUMNS_> struct config {
    static constexpr bool BFLOAT = BFLOAT_;
    static constexpr int STEPS = STEPS_, COLUMNS = COLUMNS_, DEEP = (STEPS + 3) / 4;
    static constexpr int STAGE = DEEP * PANEL, STAGES = DEEP == 1 ? 6 : 6 - DEEP;
    static constexpr int BLOCK = COLUMNS * 128; /* bytes of 64 channels of the weights */
    /* Offsets in shared memory: stages of rows, weights, panels laid out from flat rows, flat rows to be written. */
    static constexpr int WEIGHTS = STAGES * STAGE, LAID = WEIGHTS + DEEP * BLOCK;
    static constexpr int LEAVING = LAID + (DEEP * 64 <= CONV_DENSE_UNEVEN ? STAGE : 0);
    static constexpr int BYTES = LEAVING + ROWS * COLUMNS * 2;
};

/* What a launch works on. */
template <typename T> struct dense {
    struct pnet_count rows;
    const T *x; /* [rows, cin] */
    int cin, cout;
    const float *weight;
    bool transposed;
    bool quads; /* of transposed weights, input channels: are they read four at a time? */
    int tiles;  /* of the output channels */
    struct conv_end end;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Do rows have whole units of 16 bytes? */
static __device__ __forceinline__ bool is_even(int width)
{
    return width % 8 == 0;
}

/* Starts copies of rows [row0, row0 + ROWS); rows from `live` on become zeros. */
template <class C, typename T>
static __device__ __forceinline__ void copy_rows(
    const dense<T> &d, uint32_t to, int64_t row0, int64_t live)
{
    const T *from = d.x + row0 * d.cin;
    int64_t left = live - row0;
    if (!is_even(d.cin)) {
        flat_copy(to, from, ROWS, d.cin, left, threadIdx.x, THREADS);
        return;
    }
    int unit = threadIdx.x % 8, row = threadIdx.x / 8;
    to += (uint32_t)(row * 128 + (unit ^ row % 8) * 16);
#pragma unroll
    for (int panel = 0; panel < C::DEEP; panel++) {
        int c = panel * 64 + unit * 8;
#pragma unroll
        for (int i = 0; i < ROWS; i += THREADS / 8) {
            bool there = c < d.cin && row + i < left;
            copy16_any(to + (uint32_t)(panel * PANEL + i * 128),
                there ? from + (int64_t)(row + i) * d.cin + c : d.x, there);
        }
    }
}

/* Reads input channels c to c + 8 of a column. */
template <bool QUADS, typename T>
static __device__ __forceinline__ void read_weights(
    const dense<T> &d, int column, int c, float (&w)[8])
{
    if constexpr (QUADS) {
        const float *from = d.weight + (int64_t)column * d.cin + c;
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
            float4 v = {0, 0, 0, 0};
            if (column < d.cout && c + k < d.cin)
                v = __ldg(reinterpret_cast<const float4 *>(from + k));
            w[k] = v.x, w[k + 1] = v.y, w[k + 2] = v.z, w[k + 3] = v.w;
        }
    } else {
        const float *from =
            d.weight + (d.transposed ? (int64_t)column * d.cin + c : (int64_t)c * d.cout + column);
        int64_t step = d.transposed ? 1 : d.cout;
#pragma unroll
        for (int k = 0; k < 8; k++)
            w[k] = column < d.cout && c + k < d.cin ? __ldg(from + k * step) : 0;
    }
}

/* Rounds the weights and stores them as the matrix unit reads them: one row of input channels a column, zeros where there
   are none. */
template <class C, bool QUADS, typename T>
static __device__ __forceinline__ void pack_weights(
    const dense<T> &d, unsigned char *weights, int column0)
{
    const int units = C::DEEP * 8;
    bool in_units = is_even(d.cout);
#pragma unroll 4
    for (int i = threadIdx.x; i < C::COLUMNS * units; i += THREADS) {
        /* neighbouring threads read neighbours in memory */
        int n = d.transposed ? i / units : i % C::COLUMNS,
            unit = d.transposed ? i % units : i / C::COLUMNS;
        int column = column0 + (in_units ? conv_column_at(n) : n);
        float w[8];
        read_weights<QUADS>(d, column, unit * 8, w);
        store_wide<8>((T *)(weights + unit / 8 * C::BLOCK + n * 128 + (unit % 8 ^ n % 8) * 16), w);
    }
}

/* The product of a warpgroup's 64 rows. */
template <class C>
static __device__ __forceinline__ void multiply(
    float (&sum)[C::COLUMNS / 2], uint32_t rows, uint32_t weights)
{
    product_touch(sum);
    product_fence();
#pragma unroll
    for (int i = 0; i < C::STEPS; i++) {
        uint64_t a = product_matrix<128>(rows + i / 4 * PANEL),
                 b = product_matrix<128>(weights + i / 4 * C::BLOCK);
        product_shared<C::COLUMNS, C::BFLOAT>(sum, a + i % 4 * 2, b + i % 4 * 2, i == 0 ? 1 : 0);
    }
    product_commit();
}

/* Adds the bias and applies the activation. `place(i)`: the column of sum i. */
template <class C, class F>
static __device__ __forceinline__ void finish_sums(
    const conv_end &e, float (&sum)[C::COLUMNS / 2], const float *bias, F place)
{
    if (e.bias) {
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++) sum[i] += bias[place(i)];
    }
    if (e.act != PNET_ACT_NONE && !e.add) { /* conv_activate without a branch for each */
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++) {
            float below = e.act == PNET_ACT_LEAKY ? e.slope * sum[i] : 0;
            sum[i] = sum[i] < 0 ? below : sum[i];
        }
    }
}

/* Writes rows that are made of units of 16 bytes. A lane has 8 channels of every 32, of two rows. */
template <class C, typename T>
static __device__ __forceinline__ void write_units(const dense<T> &d, float (&sum)[C::COLUMNS / 2],
    const float *bias, int64_t row0, int64_t live, int column0)
{
    const conv_end &e = d.end;
    int64_t row = row0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    int first = threadIdx.x % 4 * 8, left = d.cout - column0 - first;
    T *to = (T *)e.out + row * d.cout + column0 + first;
    finish_sums<C>(
        e, sum, bias, [&](int i) { return i / 16 * 32 + first + i / 4 % 4 * 2 + i % 2; });
#pragma unroll
    for (int half = 0; half < 2; half++, to += 8 * d.cout) {
        if (row + half * 8 >= live) break;
        /* sum i of unit u */
        auto at = [&](int u, int i) { return u * 16 + i / 2 * 4 + half * 2 + i % 2; };
        if (e.add) {
            float old[C::COLUMNS / 32][8];
#pragma unroll
            for (int u = 0; u < C::COLUMNS / 32; u++)
                if (u * 32 < left) load_wide<8>(to + u * 32, old[u]);
#pragma unroll
            for (int i = 0; i < C::COLUMNS / 4; i++)
                if (i / 8 * 32 < left) sum[at(i / 8, i % 8)] += old[i / 8][i % 8];
        }
#pragma unroll
        for (int u = 0; u < C::COLUMNS / 32; u++) {
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; i++) v[i] = sum[at(u, i)];
            if (u * 32 < left) store_wide<8>(to + u * 32, v);
        }
    }
}

/* A barrier of the threads of a warpgroup. */
static __device__ __forceinline__ void warpgroup_sync()
{
    asm volatile("bar.sync %0, 128;" ::"r"(1 + threadIdx.x / 128) : "memory");
}

/* A warpgroup moves `count` numbers, 16 bytes at a time as far as possible. Both addresses are aligned to 16 bytes. */
template <typename T>
static __device__ __forceinline__ void move_contiguous(T *to, const T *from, int count)
{
    int thread = threadIdx.x % 128, whole = count / 8;
    for (int i = thread; i < whole; i += 128) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
    if (thread < count % 8) to[whole * 8 + thread] = from[whole * 8 + thread];
}

/* Writes rows of any width: a warpgroup puts its 64 rows side by side in shared memory and moves them from there. Where
   the result is added to the output, the output is brought there first. */
template <class C, typename T>
static __device__ __forceinline__ void write_contiguous(const dense<T> &d,
    float (&sum)[C::COLUMNS / 2], const float *bias, T *leaving, int64_t row0, int64_t live)
{
    const conv_end &e = d.end;
    int warpgroup = threadIdx.x / 128, row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4,
        first = threadIdx.x % 4 * 2;
    row0 += warpgroup * FLAT_ROWS;
    if (row0 >= live) return;
    int rows = live - row0 < FLAT_ROWS ? (int)(live - row0) : FLAT_ROWS;
    T *out = (T *)e.out + row0 * d.cout;
    leaving += warpgroup * FLAT_ROWS * C::COLUMNS;
    T *to = leaving + row * d.cout + first;
    finish_sums<C>(e, sum, bias, [&](int i) { return i / 4 * 8 + first + i % 2; });
    if (e.add) {
        move_contiguous(leaving, out, rows * d.cout);
        warpgroup_sync();
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++)
            if (i / 4 * 8 + first + i % 2 < d.cout)
                sum[i] += widen(to[i / 2 % 2 * 8 * d.cout + i / 4 * 8 + i % 2]);
    }
    /* all 64 rows: there is room */
    if (d.cout % 2 == 0) {
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i += 2)
            if (i / 4 * 8 + first < d.cout)
                store_wide<2>(to + i / 2 % 2 * 8 * d.cout + i / 4 * 8, sum + i);
    } else {
#pragma unroll
        for (int i = 0; i < C::COLUMNS / 2; i++)
            if (i / 4 * 8 + first + i % 2 < d.cout)
                narrow(sum[i], to + i / 2 % 2 * 8 * d.cout + i / 4 * 8 + i % 2);
    }
    warpgroup_sync();
    move_contiguous(out, (const T *)leaving, rows * d.cout);
}
#endif

template <class C, typename T>
static __global__ __launch_bounds__(THREADS, 1) void dense_rows(const __grid_constant__ dense<T> d)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ float bias[C::COLUMNS];
    wait_for_earlier();
    int64_t live = pnet_live(d.rows), step = (int64_t)(gridDim.x / d.tiles) * ROWS;
    int64_t row0 = (int64_t)(blockIdx.x / d.tiles) * ROWS;
    int column0 = (int)(blockIdx.x % d.tiles) * C::COLUMNS;
    uint32_t shared = shared_base(memory), warpgroup = threadIdx.x / 128;
    bool flat = !is_even(d.cin);
    if (row0 >= live) return;
    auto copy = [&](int batch) {
        int64_t row = row0 + batch * step;
        if (row < live)
            copy_rows<C>(d, shared + (uint32_t)(batch % C::STAGES * C::STAGE), row, live);
        copies_commit();
    };
    for (int i = 0; i < C::STAGES - 1; i++) copy(i);
    if (d.quads)
        pack_weights<C, true>(d, memory + C::WEIGHTS, column0);
    else
        pack_weights<C, false>(d, memory + C::WEIGHTS, column0);
    for (int i = threadIdx.x; i < C::COLUMNS; i += THREADS)
        bias[i] = d.end.bias && column0 + i < d.cout ? d.end.bias[column0 + i] : 0;
    if (C::LAID < C::LEAVING && flat) /* the channels beyond the last ones stay zeros */
        for (int i = threadIdx.x * 16; i < C::STAGE; i += THREADS * 16)
            shared_store(shared + C::LAID + i, uint4{0, 0, 0, 0});
    float sum[C::COLUMNS / 2] = {};
    for (int batch = 0; row0 + batch * step < live; batch++) {
        uint32_t rows = shared + (uint32_t)(batch % C::STAGES * C::STAGE);
        copies_wait_but<C::STAGES - 2>();
        fence_async();
        __syncthreads();
        if (C::LAID < C::LEAVING && flat) {
            flat_lay(rows + warpgroup * FLAT_ROWS * d.cin * 2,
                shared + C::LAID + warpgroup * FLAT_ROWS * 128, d.cin, PANEL, threadIdx.x % 128,
                128);
            rows = shared + C::LAID;
            fence_async();
            warpgroup_sync();
        }
        multiply<C>(sum, rows + warpgroup * FLAT_ROWS * 128, shared + C::WEIGHTS);
        copy(batch + C::STAGES - 1); /* to where the batch before this one was */
        product_wait();
        product_touch(sum);
        if (row0 + (batch + 1) * step >= live) let_next_come();
        if (is_even(d.cout))
            write_units<C>(d, sum, bias, row0 + batch * step, live, column0);
        else
            write_contiguous<C>(
                d, sum, bias, (T *)(memory + C::LEAVING), row0 + batch * step, live);
    }
#endif
}

template <class C, typename T> static void launch(const conv_product &p)
{
    int processors = 0, device = 0, tiles = (p.cout + C::COLUMNS - 1) / C::COLUMNS;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    int64_t batches = (p.set.rows.most + ROWS - 1) / ROWS,
            most = processors > tiles ? processors / tiles : 1;
    dense<T> d = {p.set.rows, as<T>(p.in), p.cin, p.cout, p.weight, p.transposed,
        p.transposed && fits<float, 4>(p.cin, p.weight), tiles, p.end};
    cudaFuncSetAttribute(dense_rows<C, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
    launch_early(dense_rows<C, T>, dim3((unsigned)(tiles * (batches < most ? batches : most))),
        dim3(THREADS), C::BYTES, 1, d);
}

template <bool BFLOAT, int COLUMNS, typename T> static void launch_deep(const conv_product &p)
{
    if (p.cin > 192)
        launch<config<BFLOAT, 16, COLUMNS>, T>(p);
    else if (p.cin > 128)
        launch<config<BFLOAT, 12, COLUMNS>, T>(p);
    else if (p.cin > 64)
        launch<config<BFLOAT, 8, COLUMNS>, T>(p);
    else if (p.cin > 32)
        launch<config<BFLOAT, 4, COLUMNS>, T>(p);
    else
        launch<config<BFLOAT, 2, COLUMNS>, T>(p);
}

template <bool BFLOAT, typename T> static void launch_columns(const conv_product &p)
{
    if (p.cout > 64)
        launch_deep<BFLOAT, MOST_COLUMNS, T>(p);
    else if (p.cout > 32)
        launch_deep<BFLOAT, 64, T>(p);
    else
        launch_deep<BFLOAT, 32, T>(p);
}

void pnet_cuda_conv_dense_mvmr(
    const struct conv_product *sum, enum pnet_precision precision, void *)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    if (pnet_cuda_conv_form_of(precision) == CONV_BFLOAT)
        launch_columns<true, __nv_bfloat16>(p);
    else
        launch_columns<false, __half>(p);
}
