/* MVMR on tiles of float32 features in tf32: what a tile gathers is scaled to half by one scale for the tile, and all weights by
   one, so that sums stay in the matrix unit and runs are summed in half. */
#include "kernels/cuda/conv/conv_tiles_mvmr.cuh"

void pnet_cuda_conv_tiles_by_tile(const conv_product &p, void *work)
{
    if (p.set.rows.most == 0) return;
    launch_tile_form<CONV_TILE_SCALED>(p, work);
}
