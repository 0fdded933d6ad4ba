/* The kernels of VVOR on the matrix unit, among which pnet_cuda_conv_choose chooses. */
#ifndef PNET_KERNELS_CUDA_CONV_VVOR_CUH
#define PNET_KERNELS_CUDA_CONV_VVOR_CUH

#include "kernels/cuda/conv/conv_common.cuh"

/* Of a set's triplets, from its tiles, and from its tiles in float32 by kernel cell; `work` holds partial sums. */
void pnet_cuda_triplets_vvor(const conv_outer &o, enum pnet_precision precision, void *work);
void pnet_cuda_tiles_vvor(const conv_outer &o, enum pnet_precision precision, void *work);
void pnet_cuda_cells_vvor(const conv_outer &o, void *work);
/* From tiles in 16 bits: of triplets sorted by kernel cell; of layers with few input channels. */
void pnet_cuda_sorted_vvor(const conv_outer &o, enum pnet_precision precision, void *work);
void pnet_cuda_warps_vvor(const conv_outer &o, enum pnet_precision precision, void *work);
void pnet_cuda_narrow_vvor(const conv_outer &o, enum pnet_precision precision, void *work);
/* Of dense products. */
void pnet_cuda_dense_vvor(const conv_outer &o, enum pnet_precision precision, void *work);

#endif
