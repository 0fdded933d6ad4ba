#include "kernels/cuda/conv_fast.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum { THREADS = 256, TOP = 15 /* half ends at 2^16 */, PART_BYTES = 60 << 20 };

/* How many of `whole` blocks of columns a part has, of `bytes` each: parts are even. */
static int part_of(int whole, size_t bytes)
{
    int most = bytes < PART_BYTES ? (int)(PART_BYTES / (bytes > 0 ? bytes : 1)) : 1,
        parts = (whole + most - 1) / most;
    return parts > 0 ? (whole + parts - 1) / parts : 0;
}

conv_blocks conv_block_weights(conv_form form, int64_t cells, const conv_groups &g, int depth,
    int columns, int unit, bool units)
{
    conv_blocks b = {form, depth, columns, unit, units, (g.cin + depth - 1) / depth,
        (g.cout + columns - 1) / columns, 0, 1, cells * g.count, 0};
    b.count *= b.deep;
    b.bytes = (size_t)depth * (size_t)columns * 2 * (form == CONV_SPLIT ? 2 : 1);
    b.wide = part_of(b.whole, conv_blocks_bytes(b));
    b.count *= b.wide;
    return b;
}

conv_blocks conv_blocks_part(conv_blocks b, int first)
{
    int wide = b.whole - first < b.wide ? b.whole - first : b.wide;
    b.count = b.count / b.wide * wide;
    b.first = first;
    b.wide = wide;
    return b;
}

size_t conv_blocks_bytes(const conv_blocks &b)
{
    return (size_t)b.count * (b.bytes + sizeof(float));
}

/* Which channel stands at position `at` of a block: lane t of four gives the matrix unit positions 2t, 2t + 1, 2t + 8 and
   2t + 9 of 16, in which it holds channels 4t to 4t + 3 of 16, or half of channels 8t to 8t + 7 of 32. */
static __device__ int channel_at(int at, int unit)
{
    int p = at % 16, inside = p / 8 * 2 + p % 2, lane = p % 8 / 2;
    if (unit == 4) return at / 16 * 16 + lane * 4 + inside;
    return at / 32 * 32 + lane * 8 + at % 32 / 16 * 4 + inside;
}

/* Byte of position p of row n. */
static __device__ int place(int n, int p, int depth)
{
    int row = depth * 2, swizzle = row == 128 ? n % 8 : row == 64 ? n / 2 % 4 : n / 4 % 2;
    return n * row + ((p / 8 ^ swizzle) * 16) + p % 8 * 2;
}

static __global__ __launch_bounds__(THREADS) void pack(
    conv_blocks b, conv_product p, unsigned char *blocks, float *scales)
{
    __shared__ float sizes[THREADS / 32];
    int64_t id = blockIdx.x;
    int wide = b.first + (int)(id % b.wide), deep = (int)(id / b.wide % b.deep);
    id /= (int64_t)b.wide * b.deep;
    int group = (int)(id % p.groups.count);
    int64_t k = id / p.groups.count;
    int elements = b.depth * b.columns;
    float size = 0;
    for (int i = threadIdx.x; i < elements; i += THREADS)
        size = fmaxf(
            size, conv_finite_size(conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed, k,
                      group, deep * b.depth + i / b.columns, wide * b.columns + i % b.columns)));
    size = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(size)));
    if (threadIdx.x % 32 == 0) sizes[threadIdx.x / 32] = size;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) size = fmaxf(size, sizes[w]);
    bool scaled = b.form == CONV_SPLIT || b.form == CONV_SCALED;
    float scale = scaled ? conv_scale(size, TOP) : 1;
    if (threadIdx.x == 0) scales[blockIdx.x] = 1 / scale;
    unsigned char *to = blocks + blockIdx.x * b.bytes;
    for (int i = threadIdx.x; i < elements; i += THREADS) {
        int n = i % b.columns, at = i / b.columns, c = channel_at(at, b.unit);
        float w =
            scale * conv_weight(p.weight, p.groups, p.cin, p.cout, p.transposed, k, group,
                        deep * b.depth + c, wide * b.columns + (b.units ? conv_column_at(n) : n));
        unsigned char *here = to + place(n, at, b.depth);
        if (b.form == CONV_BFLOAT) {
            *(__nv_bfloat16 *)here = __float2bfloat16_rn(w);
        } else {
            __half high = __float2half_rn(w);
            *(__half *)here = high;
            if (b.form == CONV_SPLIT)
                *(__half *)(here + 2 * elements) = __float2half_rn(w - __half2float(high));
        }
    }
}

void conv_pack_weights(const conv_blocks &b, const conv_product &p, void *blocks)
{
    if (b.count == 0) return;
    pack<<<(unsigned)b.count, THREADS, 0, cudaStreamPerThread>>>(
        b, p, (unsigned char *)blocks, (float *)((char *)blocks + (size_t)b.count * b.bytes));
}
