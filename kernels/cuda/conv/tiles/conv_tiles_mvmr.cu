/* MVMR from tiles: chooses the form of operands. Each form has a file of its own, because it takes long to compile. */
#include "kernels/cuda/conv/tiles/conv_tiles_mvmr.cuh"

void pnet_cuda_conv_tiles_mvmr(
    const struct conv_product *sum, enum pnet_precision precision, void *work)
{
    const conv_product &p = *sum;
    if (p.set.rows.most == 0) return;
    switch (pnet_cuda_conv_form_of(precision)) {
    case CONV_SPLIT: pnet_cuda_conv_tiles_split(p, work); break;
    case CONV_SCALED: pnet_cuda_conv_tiles_scaled(p, work); break;
    case CONV_BFLOAT: pnet_cuda_conv_tiles_bfloat(p, work); break;
    case CONV_HALF: pnet_cuda_conv_tiles_half(p, work); break;
    case CONV_TILE_SCALED: break; /* pnet_cuda_conv_by_tile_mvmr */
    }
}
