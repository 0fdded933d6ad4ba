/* Dense products of few rows in 16 bits with a matrix of many input channels, which does not fit in shared memory. A block of
   threads has 128 rows and 64 output channels; input channels come by 64 at a time, rows in stages of shared memory, weights
   through registers, where they are narrowed. */
#include "kernels/cuda/base/early.cuh"
#include "kernels/cuda/conv/conv_fast.cuh"
#include "kernels/cuda/base/hopper.cuh"
#include "kernels/cuda/conv/conv_steps.cuh"

enum {
    THREADS = 256,
    ROWS = 128,
    COLUMNS = 64,
    DEPTH = 64, /* input channels at a time: 128 bytes */
    STAGES = 4,
    STAGE = ROWS * DEPTH * 2,
    WEIGHTS = STAGES * STAGE, /* offset of two stages of weights */
    WEIGHT_STAGE = COLUMNS * DEPTH * 2,
    BYTES = WEIGHTS + 2 * WEIGHT_STAGE,
    PARTS = COLUMNS * DEPTH / 4 / THREADS, /* of weights, four a thread */
};

template <typename T> struct deep {
    struct pnet_count rows;
    const T *x; /* [rows, cin] */
    int cin, cout;
    const float *weight; /* [cin, cout], or [cout, cin] */
    struct conv_end end;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Where 16 bytes of a row of 128 lie. */
static __device__ __forceinline__ uint32_t unit_at(int row, int unit)
{
    return (uint32_t)(row * 128 + (unit ^ row % 8) * 16);
}

template <typename T>
static __device__ __forceinline__ void copy_rows(
    const deep<T> &d, uint32_t to, int64_t row0, int64_t live, int channel)
{
    int unit = threadIdx.x % 8;
    channel += unit * 8;
#pragma unroll
    for (int row = threadIdx.x / 8; row < ROWS; row += THREADS / 8)
        copy16_or_zeros(to + unit_at(row, unit), d.x + (row0 + row) * d.cin + channel, d.x,
            row0 + row < live && channel < d.cin);
}

/* Weights lie as in memory: rows of input channels, or of output channels where TRANSPOSED. */
template <bool TRANSPOSED, typename T>
static __device__ __forceinline__ void fetch_weights(
    const deep<T> &d, int column0, int channel0, float4 (&w)[PARTS])
{
    int row0 = TRANSPOSED ? column0 : channel0, rows = TRANSPOSED ? d.cout : d.cin,
        at = (TRANSPOSED ? channel0 : column0) + (int)threadIdx.x % 16 * 4,
        width = TRANSPOSED ? d.cin : d.cout;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        int row = row0 + (int)threadIdx.x / 16 + i * 16;
        w[i] = {0, 0, 0, 0};
        if (row < rows && at < width)
            w[i] = *reinterpret_cast<const float4 *>(d.weight + (int64_t)row * width + at);
    }
}

template <typename T>
static __device__ __forceinline__ void put_weights(const float4 (&w)[PARTS], unsigned char *to)
{
    int part = (int)threadIdx.x % 16;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        uint2 two = {narrow_pair<T>(w[i].x, w[i].y), narrow_pair<T>(w[i].z, w[i].w)};
        *reinterpret_cast<uint2 *>(
            to + unit_at((int)threadIdx.x / 16 + i * 16, part / 2) + part % 2 * 8) = two;
    }
}

/* A warp has 32 rows and 32 columns. */
template <bool BFLOAT, bool TRANSPOSED>
static __device__ __forceinline__ void multiply(
    float (&sum)[2][4][4], uint32_t rows, uint32_t weights)
{
    int lane = threadIdx.x % 32, row0 = (int)threadIdx.x / 64 * 32,
        column0 = (int)threadIdx.x / 32 % 2 * 32;
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        uint32_t a[2][4], b[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++)
            load_matrices(a[m], rows + unit_at(row0 + 16 * m + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int n = 0; n < 2; n++) {
            int column = column0 + 16 * n;
            if (TRANSPOSED)
                load_matrices(b[n],
                    weights + unit_at(column + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
            else
                load_matrices_turned(
                    b[n], weights + unit_at(16 * k + lane % 16, column / 8 + lane / 16));
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int n = 0; n < 4; n++) {
                uint32_t part[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
                step_short<BFLOAT>(sum[m][n], a[m], part);
            }
    }
}

template <typename T>
static __device__ __forceinline__ void write(
    const deep<T> &d, const float (&sum)[2][4][4], int64_t row0, int64_t live, int column0)
{
    int lane = threadIdx.x % 32;
    row0 += (int)threadIdx.x / 64 * 32 + lane / 4;
    column0 += (int)threadIdx.x / 32 % 2 * 32 + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int64_t row = row0 + 16 * m + 8 * h;
            if (row >= live) continue;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                int column = column0 + 8 * n;
                if (column >= d.cout) continue;
                auto *to = reinterpret_cast<uint32_t *>((T *)d.end.out + row * d.cout + column);
                float v = sum[m][n][2 * h], w = sum[m][n][2 * h + 1];
                if (d.end.bias) {
                    v += d.end.bias[column];
                    w += d.end.bias[column + 1];
                }
                if (d.end.add) {
                    float2 old = widen_pair<T>(*to);
                    v += old.x;
                    w += old.y;
                } else {
                    v = conv_activate(v, d.end.act, d.end.slope);
                    w = conv_activate(w, d.end.act, d.end.slope);
                }
                *to = narrow_pair<T>(v, w);
            }
        }
}
#endif

template <bool BFLOAT, bool TRANSPOSED, typename T>
static __global__ __launch_bounds__(THREADS, 2) void deep_rows(const __grid_constant__ deep<T> d)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char memory[];
    wait_for_earlier();
    int64_t live = pnet_live(d.rows), row0 = (int64_t)blockIdx.x * ROWS;
    int column0 = (int)blockIdx.y * COLUMNS, steps = (d.cin + DEPTH - 1) / DEPTH;
    uint32_t shared = shared_base(memory);
    float4 weights[PARTS];
    float sum[2][4][4] = {};
    if (row0 >= live) return;
    auto copy = [&](int step) {
        if (step < steps)
            copy_rows(d, shared + (uint32_t)(step % STAGES * STAGE), row0, live, step * DEPTH);
        copies_commit();
    };
    for (int i = 0; i < STAGES - 1; i++) copy(i);
    fetch_weights<TRANSPOSED>(d, column0, 0, weights);
    for (int step = 0; step < steps; step++) {
        put_weights<T>(weights, memory + WEIGHTS + step % 2 * WEIGHT_STAGE);
        copies_wait_but<STAGES - 2>();
        __syncthreads();
        if (step + 1 < steps) fetch_weights<TRANSPOSED>(d, column0, (step + 1) * DEPTH, weights);
        copy(step + STAGES - 1);
        multiply<BFLOAT, TRANSPOSED>(sum, shared + (uint32_t)(step % STAGES * STAGE),
            shared + WEIGHTS + (uint32_t)(step % 2 * WEIGHT_STAGE));
    }
    copies_wait_but<0>();
    let_next_come();
    write(d, sum, row0, live, column0);
#endif
}

template <bool BFLOAT, bool TRANSPOSED, typename T> static void launch(const conv_product &p)
{
    deep<T> d = {p.set.rows, as<T>(p.in), p.cin, p.cout, p.weight, p.end};
    dim3 grid((unsigned)((p.set.rows.most + ROWS - 1) / ROWS),
        (unsigned)((p.cout + COLUMNS - 1) / COLUMNS));
    auto *kernel = deep_rows<BFLOAT, TRANSPOSED, T>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    launch_early(kernel, grid, dim3(THREADS), BYTES, 1, d);
}

template <bool BFLOAT, typename T> static void launch_either(const conv_product &p)
{
    if (p.transposed)
        launch<BFLOAT, true, T>(p);
    else
        launch<BFLOAT, false, T>(p);
}

void pnet_cuda_conv_deep_mvmr(const struct conv_product *sum, enum pnet_precision precision, void *)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    if (pnet_cuda_conv_form_of(precision) == CONV_BFLOAT)
        launch_either<true, __nv_bfloat16>(p);
    else
        launch_either<false, __half>(p);
}
