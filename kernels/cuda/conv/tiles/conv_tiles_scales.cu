/* Features are scaled to the range of half tile by tile: a tile's scale follows from the largest exponent of the rows that
   it gathers. The exponent of each row is found once a product, because a row is a neighbour of several tiles. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/tiles/conv_tiles_scales.cuh"
#include "kernels/cuda/conv/vvor/conv_vvor_fast.cuh"

enum { SCALE_THREADS = 256, SCALE_BLOCKS = 8 * CONV_PROCESSORS, WEIGHT_BLOCKS = 64 };

/* Finds the exponent of a row: that of its largest finite number, as in the bits of a float. 0: all numbers are zero or
   subnormal. One warp a row. */
static __global__ __launch_bounds__(SCALE_THREADS) void row_exponents(
    const float *in, int width, const vvor_measures *measures, uint8_t *exponent)
{
    int lane = threadIdx.x % 32;
    int64_t rows = measures->others, step = (int64_t)gridDim.x * (SCALE_THREADS / 32);
    bool wide = ((uintptr_t)in | (unsigned)width * 4) % 16 == 0;
    for (int64_t row = (blockIdx.x * (int64_t)SCALE_THREADS + threadIdx.x) / 32; row < rows;
         row += step) {
        const float *x = in + row * width;
        float most = 0;
        if (wide) {
            for (int i = lane; i < width / 4; i += 32) {
                float4 v = ((const float4 *)x)[i];
                most = fmaxf(fmaxf(fmaxf(most, conv_finite_size(v.x)), conv_finite_size(v.y)),
                    fmaxf(conv_finite_size(v.z), conv_finite_size(v.w)));
            }
        } else {
            for (int i = lane; i < width; i += 32) most = fmaxf(most, conv_finite_size(x[i]));
        }
        uint32_t bits = __reduce_max_sync(~0u, __float_as_uint(most));
        if (lane == 0) exponent[row] = (uint8_t)(bits >> 23);
    }
}

static __global__ __launch_bounds__(SCALE_THREADS) void measure_weights(
    const float *weight, int64_t count, uint32_t *size)
{
    float most = 0;
    for (int64_t i = blockIdx.x * (int64_t)SCALE_THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * SCALE_THREADS)
        most = fmaxf(most, conv_finite_size(weight[i]));
    uint32_t bits = __reduce_max_sync(~0u, __float_as_uint(most));
    if (threadIdx.x % 32 == 0) atomicMax(size, bits);
}

/* Finds the scale of a tile. One warp a tile. The scale of a tile without a list is not used. */
static __global__ __launch_bounds__(SCALE_THREADS) void scale_tiles(
    const conv_set s, const uint8_t *exponent, float *scale)
{
    int lane = threadIdx.x % 32;
    int64_t tile = (blockIdx.x * (int64_t)SCALE_THREADS + threadIdx.x) / 32;
    if (tile * PNET_TILE_ROWS >= pnet_live(s.rows)) return;
    const pnet_tile &t = s.tiles.tile[tile];
    const int32_t *neighbour = (const int32_t *)(s.tiles.list + t.at);
    uint32_t most = 0;
    for (int i = lane; i < t.neighbours; i += 32)
        most = max(most, (uint32_t)exponent[neighbour[i]]);
    most = __reduce_max_sync(~0u, most);
    if (lane == 0) scale[tile] = conv_scale(__uint_as_float(most << 23), tile_top(t.longest));
}

tile_scales pnet_cuda_conv_tile_scales(const conv_product &p, const conv_blocks &b, void *work)
{
    tile_scales_plan plan = pnet_cuda_conv_tile_scales_plan(&b, p.set.rows.most, 0);
    vvor_measures *measures = (vvor_measures *)((char *)work + plan.measures);
    uint32_t *weight = (uint32_t *)((char *)work + plan.weight);
    float *tile = (float *)((char *)work + plan.tile);
    uint8_t *exponent = (uint8_t *)work + plan.exponent;
    int64_t weights = (int64_t)p.set.cells * (p.groups.cin1) * p.cout,
            tiles = (p.set.rows.most + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
    cudaMemsetAsync(weight, 0, sizeof *weight, pnet_cuda_stream());
    measure_weights<<<WEIGHT_BLOCKS, SCALE_THREADS, 0, pnet_cuda_stream()>>>(
        p.weight, weights, weight);
    pnet_cuda_vvor_measure_set(p.set, measures);
    row_exponents<<<SCALE_BLOCKS, SCALE_THREADS, 0, pnet_cuda_stream()>>>(
        p.in, p.cin, measures, exponent);
    scale_tiles<<<(unsigned)((tiles * 32 + SCALE_THREADS - 1) / SCALE_THREADS), SCALE_THREADS, 0,
        pnet_cuda_stream()>>>(p.set, exponent, tile);
    return {tile, weight};
}
