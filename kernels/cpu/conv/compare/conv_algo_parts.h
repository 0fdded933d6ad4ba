/* What the algorithms of kernels/conv_algo.h share on the CPU. */
#ifndef PNET_KERNELS_CPU_CONV_ALGO_PARTS_H
#define PNET_KERNELS_CPU_CONV_ALGO_PARTS_H

#include "kernels/conv_compare.h"
#include "kernels/cpu/conv/conv_row_block.h"

/* A workspace that is handed out piece by piece. */
static inline void *conv_piece(char **at, size_t bytes)
{
    void *piece = *at;
    *at += pnet_align64(bytes);
    return piece;
}

static inline float *conv_floats(char **at, int64_t count)
{
    return conv_piece(at, (size_t)count * sizeof(float));
}

/* dense[a][b] = W[k] as one matrix [cin, cout], zero between groups. */
void pnet_conv_widen_cell(
    const float *weight, struct pnet_conv_shape s, bool transposed, int64_t k, float *dense);
/* gweight[k] += the blocks of the groups in `dense`, whose rows are `stride` floats apart. */
void pnet_conv_narrow_cell(
    const float *dense, int64_t stride, struct pnet_conv_shape s, int64_t k, float *gweight);

/* out += the sums of one list; gweight likewise. `work`: *_work bytes, aligned to 64. */
void pnet_conv_listing_mvmr(
    const struct pnet_mvmr *m, const struct pnet_conv_list *list, const float *weight);
void pnet_conv_listing_vvor(const struct pnet_vvor *v, const struct pnet_conv_list *list);
size_t pnet_conv_gather_mvmr_work(int64_t most, struct pnet_conv_shape s);
void pnet_conv_gather_mvmr(
    const struct pnet_mvmr *m, const struct pnet_conv_list *list, char *work);
size_t pnet_conv_gather_vvor_work(int64_t most, struct pnet_conv_shape s);
void pnet_conv_gather_vvor(
    const struct pnet_vvor *v, const struct pnet_conv_list *list, char *work);

/* All of it. */
size_t pnet_conv_im2col_mvmr_work(const struct pnet_triplets *t, struct pnet_conv_shape s);
void pnet_conv_im2col_mvmr(const struct pnet_mvmr *m, char *work);
size_t pnet_conv_im2col_vvor_work(const struct pnet_triplets *t, struct pnet_conv_shape s);
void pnet_conv_im2col_vvor(const struct pnet_vvor *v, char *work);

#endif
