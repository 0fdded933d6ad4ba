#include "kernels/cuda/conv/tiles/conv_tiles_mvmr.cuh"

void pnet_cuda_conv_tiles_split(const conv_product &p, void *work)
{
    launch_tile_form<CONV_SPLIT>(p, work);
}
