#include "kernels/cuda/conv/tiles/conv_tiles_mvmr.cuh"

void pnet_cuda_conv_tiles_bfloat(const conv_product &p, void *work)
{
    launch_tile_form<CONV_BFLOAT>(p, work);
}
