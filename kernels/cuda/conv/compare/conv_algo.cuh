/* What the algorithms of kernels/conv_algo.h share on the GPU. */
#ifndef PNET_KERNELS_CUDA_CONV_ALGO_CUH
#define PNET_KERNELS_CUDA_CONV_ALGO_CUH

#include "kernels/cuda/conv/conv_common.cuh"

#include "kernels/conv_compare.h"

/* A workspace that is handed out piece by piece. */
struct conv_pieces {
    char *at;
    template <typename T> T *take(int64_t count)
    {
        T *piece = (T *)at;
        at += pnet_cuda_conv_piece((size_t)count * sizeof(T));
        return piece;
    }
};

/* Elements in flight of a kernel that walks them all with one thread each. */
static inline unsigned conv_algo_blocks(int64_t elements, int threads)
{
    int64_t blocks = (elements + threads - 1) / threads, most = 1 << 16;
    return (unsigned)(blocks < most ? blocks : most);
}

static __device__ __forceinline__ int64_t conv_list_live(const pnet_conv_list &list)
{
    return list.live ? *list.live : list.most;
}

/* *live = how many of the rows or triplets [first, first + most) there are. */
void pnet_cuda_conv_algo_live(struct pnet_count n, int64_t first, int64_t most, int64_t *live);

/* Sums start: out[r] = bias, or 0, or (`add`) out[r] + bias. */
void pnet_cuda_conv_algo_begin(const struct pnet_mvmr *m);
/* Sums end: the activation, unless they were added to what was there. */
void pnet_cuda_conv_algo_end(const struct pnet_mvmr *m);
/* gweight = 0, unless it is added to. */
void pnet_cuda_conv_algo_begin(const struct pnet_vvor *v);

/* One list each: the listings, with the weight as [V, cin / groups, cout]; gathering, with room for the rows of both
   sides. */
void pnet_cuda_conv_listing_mvmr(
    const struct pnet_mvmr *m, const float *weight, const pnet_conv_list &list);
void pnet_cuda_conv_listing_vvor(const struct pnet_vvor *v, const pnet_conv_list &list);
void pnet_cuda_conv_gather_mvmr(const struct pnet_mvmr *m, const pnet_conv_list &list, void *work);
void pnet_cuda_conv_gather_vvor(const struct pnet_vvor *v, const pnet_conv_list &list, void *work);

void pnet_cuda_conv_im2col_mvmr(const struct pnet_mvmr *m, void *work);
void pnet_cuda_conv_im2col_vvor(const struct pnet_vvor *v, void *work);

#endif
