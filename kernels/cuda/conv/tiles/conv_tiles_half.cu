#include "kernels/cuda/conv/tiles/conv_tiles_mvmr.cuh"

void pnet_cuda_conv_tiles_half(const conv_product &p, void *work)
{
    launch_tile_form<CONV_HALF>(p, work);
}
