/* The kernels of VVOR on the matrix unit, among which conv.cu chooses. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_CUH

#include "kernels/cuda/conv_common.cuh"

/* VVOR of a set, where conv_fast_serves says so; `work` holds partial sums. */
size_t vvor_fast_work(const conv_set &s, const conv_groups &g);
void vvor_fast(const conv_outer &o, enum pnet_precision precision, void *work);

/* VVOR of dense products, one group of channels, wherever a set would be served so (conv_vvor_dense.cu). */
size_t dense_vvor_work(struct pnet_count rows, int cin, int cout);
void dense_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

/* VVOR of a set from its tiles (conv_tiles_vvor.cu). */
bool tiles_vvor_serves(const conv_set &s, enum pnet_precision precision);
size_t tiles_vvor_work(const conv_set &s, const conv_groups &g);
void tiles_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

/* Likewise in float32, for layers wider than 64 channels (conv_tiles_vvor_cells.cu). */
bool cells_vvor_serves(const conv_outer &o, enum pnet_precision precision);
size_t cells_vvor_work(const conv_set &s, const conv_groups &g);
void cells_vvor(const conv_outer &o, void *work);

/* Likewise in 16 bits, features stored so (conv_tiles_vvor_lists.cu). */
bool lists_vvor_serves(const conv_outer &o, enum pnet_precision precision);
size_t lists_vvor_work(const conv_set &s, const conv_groups &g);
void lists_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

/* Likewise in 16 bits, for layers with few input channels (conv_vvor_narrow.cu); 0: it is none. */
bool narrow_vvor_serves(const conv_outer &o, enum pnet_precision precision);
size_t narrow_vvor_work(const conv_set &s, const conv_groups &g, enum pnet_precision precision);
void narrow_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

#endif
