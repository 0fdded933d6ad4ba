/* The launches of the kernels of convolution: what the rows of the table in conv_choice.c name. They put work on the calling
   thread's stream (pnet_cuda_stream) and return. `work` holds packed weights or partial sums: as many bytes as the row says. */
#ifndef PNET_KERNELS_CUDA_CONV_LAUNCH_H
#define PNET_KERNELS_CUDA_CONV_LAUNCH_H

#include "kernels/cuda/conv/conv_work.h"

#ifdef __cplusplus
extern "C" {
#endif

/* MVMR and dense products. */
typedef void conv_mvmr_launch(
    const struct conv_product *p, enum pnet_precision precision, void *work);
conv_mvmr_launch pnet_cuda_conv_plain_mvmr, pnet_cuda_conv_slim_mvmr, pnet_cuda_conv_depthwise_mvmr,
    pnet_cuda_conv_triplets_mvmr, pnet_cuda_conv_tiles_mvmr, pnet_cuda_conv_wide_mvmr,
    pnet_cuda_conv_by_tile_mvmr, pnet_cuda_conv_dense_mvmr, pnet_cuda_conv_deep_mvmr,
    pnet_cuda_conv_few_mvmr, pnet_cuda_conv_warps_mvmr, pnet_cuda_conv_warps_tiles_mvmr;

/* VVOR and outer products. */
typedef void conv_vvor_launch(
    const struct conv_outer *o, enum pnet_precision precision, void *work);
conv_vvor_launch pnet_cuda_conv_plain_vvor, pnet_cuda_conv_slim_vvor, pnet_cuda_conv_depthwise_vvor,
    pnet_cuda_conv_triplets_vvor, pnet_cuda_conv_tiles_vvor, pnet_cuda_conv_cells_vvor,
    pnet_cuda_conv_sorted_vvor, pnet_cuda_conv_narrow_vvor, pnet_cuda_conv_dense_vvor,
    pnet_cuda_conv_warps_vvor;

/* Were the kernels for these instructions (enum conv_unit) compiled for the GPU at hand? */
bool pnet_cuda_conv_has_warpgroup(void);
bool pnet_cuda_conv_has_warp(void);

#ifdef __cplusplus
}
#endif

#endif
