/* MVMR from tiles in 16 bits for wide layers: 256 columns at a time. The product of 64 rows takes as long as gathering the
   next 64 rows, and both run at the same time. A cluster of two blocks of threads shares a tile, so that its weights are
   read from L2 once for both halves. */
#include "kernels/cuda/conv/tiles/conv_tiles_mvmr.cuh"

template <conv_form FORM> using wide_config = tile_config<FORM, 2, 256, true>;

void pnet_cuda_conv_wide_mvmr(
    const struct conv_product *sum, enum pnet_precision precision, void *work)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    if (pnet_cuda_conv_form_of(precision) == CONV_BFLOAT)
        launch_tiles<wide_config<CONV_BFLOAT>>(p, work);
    else
        launch_tiles<wide_config<CONV_HALF>>(p, work);
}
