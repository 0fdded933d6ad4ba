/* Scales of features by tile and of the weights of a layer (CONV_TILE_SCALED), measured before the product. */
#ifndef PNET_KERNELS_CUDA_CONV_TILES_SCALES_CUH
#define PNET_KERNELS_CUDA_CONV_TILES_SCALES_CUH

#include "kernels/cuda/conv/conv_fast.cuh"

/* Scales bring gathered features below 2^TILE_TOP, so that sums of TILE_TOP_RUN features stay below 2^(TILE_TOP + 8). The
   range of half ends at 2^16. */
enum { TILE_TOP = 7, TILE_TOP_RUN = 256, WEIGHT_TOP = 15 };

/* Returns the exponent in the place of TILE_TOP for a tile whose longest run has `longest` triplets. */
static __device__ __forceinline__ int tile_top(int longest)
{
    int top = TILE_TOP;
    for (int n = longest / TILE_TOP_RUN; n > 0; n /= 2) top--;
    return top;
}

/* Addresses of scales in device memory. */
struct tile_scales {
    const float *tile;           /* [tiles] */
    const uint32_t *weight_size; /* the largest weight, as bits of a float */
};
tile_scales pnet_cuda_conv_tile_scales(const conv_product &p, const conv_blocks &b, void *work);

#endif
