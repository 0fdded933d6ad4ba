/* MVMR on tiles of float32 features in tf32. One scale for each tile brings its gathered features into the range of half,
   and one scale for the layer brings the weights there. So sums stay in the matrix unit, and runs are summed in half. */
#include "kernels/cuda/conv/tiles/conv_tiles_mvmr.cuh"

void pnet_cuda_conv_by_tile_mvmr(const struct conv_product *sum, enum pnet_precision, void *work)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    launch_tile_form<CONV_TILE_SCALED>(p, work);
}
