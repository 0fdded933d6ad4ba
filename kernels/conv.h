/* Convolution on either device: MVMR and VVOR, and the dense products built on the same kernels. Output-stationary: the
   same bits for any number of threads. Products are in the precision that is asked for, sums in float32; the CPU computes
   float32 whatever is asked for. The structs themselves, and struct pnet_triplets that they point to, lie on the host.

   Workspaces: the *_work functions give bytes that are enough for any alignment of `work` and, on the CPU, for OpenMP's
   current number of threads. They never shrink when rows, others or the number of triplets grow, so the bound of a
   capacity class serves all its batches. They read the sizes of a set, not its arrays, and are in every build. A workspace
   is at most some 64 MiB, unless a layer is wider than that allows: 128 input channels times V times the output channels of
   a group (VVOR), or 32 output channels (on a GPU 128) times V times the input channels of a group (MVMR), take more.
   Infinite and NaN inputs spread to the rows that read them; where groups are narrower than 16 channels (on a GPU 64),
   also to their neighbour groups. */
#ifndef PNET_KERNELS_CONV_H
#define PNET_KERNELS_CONV_H

#include "kernels/act.h"
#include "kernels/both.h"
#include "kernels/conv_algo.h"
#include "kernels/count.h"
#include "kernels/geometry.h"
#include "kernels/precision.h"

struct pnet_conv_shape {
    int32_t cin, cout, groups; /* cin: width of `in` below; cout: width of `out` */
};

/* One matrix of channels a kernel cell: each channel by itself. Such layers have kernels of their own. */
static inline bool pnet_conv_is_depthwise(struct pnet_conv_shape s)
{
    return s.groups > 1 && s.groups == s.cin && s.groups == s.cout;
}

/* out[i] (+)= act(bias + sum over (i,j,k) of W[k]^T in[j])            (MVMR)
     t       sorted by i (`rows`), other = j
     weight  [V, cin/groups, cout]; with `transposed` the weight of the opposite direction, [V, cout/groups, cin],
             used as W[k]: that is dF from g with the transposed triplets
     bias    [cout] or NULL;  add: add to `out` (then no activation) */
struct pnet_mvmr {
    const struct pnet_triplets *triplets;
    struct pnet_conv_shape shape;
    const float *in; /* [t->others, cin] */
    const float *weight;
    const float *bias;
    float *out; /* [t->rows, cout] */
    bool transposed, add;
    enum pnet_activation act;
    float slope;
    enum pnet_precision precision;
    enum pnet_storage storage; /* of the matrices that are not weights */
    /* Others than the usual ones take float32 alone, triplets without `row`, and the workspace of kernels/conv_compare.h. */
    enum pnet_conv_algo algo;
    /* Made beforehand for the algorithm, of the whole set; NULL: it is made in the workspace, chunk by chunk. */
    const struct pnet_conv_list *list;
};
PNET_BOTH(size_t, mvmr_work, const struct pnet_triplets *t, struct pnet_conv_shape s,
    enum pnet_precision precision);
PNET_BOTH(void, mvmr, const struct pnet_mvmr *m, void *work);

/* dW[k] (+)= sum over (i,j,k) of in[j] gout[i]^T, group by group       (VVOR)
   t sorted by i, other = j; in [t->others, cin], gout [t->rows, cout], gweight [V, cin/groups, cout].
   With `swapped`, t is sorted by j: rows are j, others i (used for finer convolutions, whose set is stored transposed):
   in [t->rows, cin], gout [t->others, cout]. */
struct pnet_vvor {
    const struct pnet_triplets *triplets;
    struct pnet_conv_shape shape;
    const float *in, *gout;
    float *gweight;
    bool swapped, add;
    enum pnet_precision precision;
    enum pnet_storage storage; /* of the matrices that are not weights */
    /* Others than the usual ones take float32 alone, triplets without `row`, and the workspace of kernels/conv_compare.h. */
    enum pnet_conv_algo algo;
    /* Made beforehand for the algorithm, of the whole set; NULL: it is made in the workspace, chunk by chunk. */
    const struct pnet_conv_list *list;
};
PNET_BOTH(size_t, vvor_work, const struct pnet_triplets *t, struct pnet_conv_shape s,
    enum pnet_precision precision);
PNET_BOTH(void, vvor, const struct pnet_vvor *v, void *work);

/* y[n, cout] (+)= act(x[n, cin] W + bias), W [cin, cout]; with `transposed` W is stored [cout, cin] (a linear layer's). */
struct pnet_gemm {
    struct pnet_count n;
    int32_t cin, cout;
    const float *x, *w;
    const float *bias; /* [cout] or NULL */
    float *y;
    bool transposed, add; /* add: to `y` (then no activation) */
    enum pnet_activation act;
    float slope;
    enum pnet_precision precision;
    enum pnet_storage storage; /* of the matrices that are not weights */
    /* One of them is float32 instead, which has at most PNET_EXACT_CHANNELS; then there is no workspace. */
    bool exact_x, exact_y;
};
PNET_BOTH(size_t, gemm_work, struct pnet_count n, int32_t cin, int32_t cout,
    enum pnet_precision precision);
PNET_BOTH(void, gemm, const struct pnet_gemm *g, void *work);

/* gw[cin, cout] (+)= x[n, cin]^T g[n, cout]; with `transposed` gw is [cout, cin]. */
struct pnet_outer {
    struct pnet_count n;
    int32_t cin, cout;
    const float *x, *g;
    float *gw;
    bool transposed, add;
    enum pnet_precision precision;
    enum pnet_storage storage; /* of the matrices that are not weights */
    bool exact_g;              /* g is float32 instead, with at most PNET_EXACT_CHANNELS */
};
PNET_BOTH(size_t, outer_work, struct pnet_count n, int32_t cin, int32_t cout,
    enum pnet_precision precision);
PNET_BOTH(void, outer, const struct pnet_outer *o, void *work);

/* sum[c] (+)= sum over rows of x[n, c], in fixed chunks of rows. */
PNET_BOTH(size_t, column_sum_work, struct pnet_count n, int32_t c);
PNET_BOTH(void, column_sum, struct pnet_count n, int32_t c, const float *x, bool add, float *sum,
    void *work);

/* How the triplets of a sum are read: there are none (a dense product), one by one, or as tiles. */
enum pnet_conv_form { PNET_CONV_DENSE, PNET_CONV_TRIPLETS, PNET_CONV_TILES };

/* One of the three sums of a layer: what the choice of its kernel depends on. Sizes are those of the capacity class. */
struct pnet_conv_sum {
    struct pnet_conv_shape
        shape; /* of the sum: dF reads the channels of the output and writes those of the input */
    int32_t cells;
    int64_t rows, count; /* of the side that the set is sorted by; triplets */
    enum pnet_conv_form form;
    bool weights; /* VVOR or the outer product, else MVMR or the dense product */
    enum pnet_precision precision;
    enum pnet_storage storage;
    bool exact; /* a dense product of which one side is float32 (exact_x, exact_y, exact_g) */
    enum pnet_conv_algo algo;
    int architecture; /* of the GPU: 80, 86, 89, 90; 0: the one at hand, or 90 where there is none */
};
/* The name of the kernel that forms it; kernels/cuda/conv/README.md lists those of a GPU. */
PNET_BOTH(const char *, conv_kernel, const struct pnet_conv_sum *s);

#ifdef __cplusplus
extern "C" {
#endif

/* Which instruction set runs on the CPU: "avx512", "avx2" or "base". */
const char *pnet_cpu_isa(void);
/* Limits the process to a lower instruction set, "base" or "avx2"; anything else, or NULL: the best one. Programs take the name
   from PNET_ISA when they start; a library does not read the environment. */
void pnet_cpu_isa_limit(const char *name);

/* Plain references in double, serial: for tests and benchmarks. Same meaning as above. */
void pnet_ref_mvmr(const struct pnet_triplets *t, struct pnet_conv_shape s, const double *in,
    const double *weight, const double *bias, bool transposed, double *out);
void pnet_ref_vvor(const struct pnet_triplets *t, struct pnet_conv_shape s, const double *in,
    const double *gout, bool swapped, double *gweight);

/* MVMR and the dense product by the kernels for many rows, however few there are: for tests. */
void pnet_cuda_mvmr_whole(const struct pnet_mvmr *m, void *work);
void pnet_cuda_gemm_whole(const struct pnet_gemm *g, void *work);

/* Does the kernel that forms this sum read the set's tiles where it has them, and the triplets only where a tile lists
   nothing? From the layer, cells, precision, algorithm and architecture of `s`. */
bool pnet_cuda_conv_reads_tiles(const struct pnet_conv_sum *s);

#ifdef __cplusplus
}
#endif

#endif
