/* MVMR on tiles: which of the kernels, a file each, since they take long to compile. */
#include "kernels/cuda/conv/conv_tiles_mvmr.cuh"

bool conv_tiles_serves(const conv_set &s)
{
    return (!s.start || s.tiles.tile) && conv_fast_serves(s);
}

void conv_tiles_mvmr(const conv_product &p, enum pnet_precision precision, void *work)
{
    if (p.set.rows.most == 0) return;
    if (conv_tiles_wide_serves(p, precision)) return conv_tiles_wide(p, precision, work);
    switch (conv_form_of(precision)) {
    case CONV_SPLIT: conv_tiles_split(p, work); break;
    case CONV_SCALED: conv_tiles_scaled(p, work); break;
    case CONV_BFLOAT: conv_tiles_bfloat(p, work); break;
    case CONV_HALF: conv_tiles_half(p, work); break;
    }
}
