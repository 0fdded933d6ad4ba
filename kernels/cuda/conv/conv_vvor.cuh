/* The kernels of VVOR on the matrix unit, among which conv.cu chooses. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_CUH

#include "kernels/cuda/conv/conv_common.cuh"

/* VVOR of a set, where conv_fast_serves says so; `work` holds partial sums. */
void vvor_fast(const conv_outer &o, enum pnet_precision precision, void *work);

/* VVOR of dense products, one group of channels, wherever a set would be served so (conv_vvor_dense.cu). */
void dense_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

/* VVOR of a set from its tiles (conv_tiles_vvor.cu). */
bool tiles_vvor_serves(const conv_set &s, enum pnet_precision precision);
void tiles_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

/* Likewise in float32, for layers wider than 64 channels (conv_tiles_vvor_cells.cu). */
bool cells_vvor_serves(const conv_outer &o, enum pnet_precision precision);
void cells_vvor(const conv_outer &o, void *work);

/* Likewise in 16 bits, features stored so (conv_tiles_vvor_lists.cu). */
bool lists_vvor_serves(const conv_outer &o, enum pnet_precision precision);
void lists_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

/* Likewise in 16 bits, for layers with few input channels (conv_vvor_narrow.cu). */
bool narrow_vvor_serves(const conv_outer &o, enum pnet_precision precision);
void narrow_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

#endif
