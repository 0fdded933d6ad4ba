/* MVMR on tiles: which of the kernels, a file each, since they take long to compile. */
#include "kernels/cuda/conv_tiles_mvmr.cuh"

#include <algorithm>

bool conv_tiles_serves(const conv_set &s)
{
    return (!s.start || s.tiles.tile) && conv_fast_serves(s);
}

size_t conv_tiles_work(const conv_set &s, const conv_groups &g, enum pnet_precision precision)
{
    conv_form form = conv_form_of(precision);
    int unit = form == CONV_SPLIT || form == CONV_SCALED ? 4 : 8;
    int columns[] = {tile_columns(g.cout), tile_wide(form, s.cells, g) ? 256 : 0};
    size_t most = 0;
    for (int n : columns) {
        if (n == 0) continue;
        conv_blocks b = conv_block_weights(
            form, s.cells, g, tile_pieces(form, g.cin) * 4 * unit, n, unit, true);
        most = std::max(most, tiles_taken_at(b) + sizeof(unsigned long long));
    }
    return most;
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
