/* Sets of triplets, convolution and pools on the caller's arrays, without a model. A part of pnet.h, which programs include. */
#ifndef PNET_API_SETS_H
#define PNET_API_SETS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A set of triplets (i, j, k): row i of the output reads row j of the input with the weights of tap k. Its triplets are stored
   in both orders, by output and by input, so that nothing is added to it later: 12 bytes a triplet, 8 a row of either side, and
   4 for each number of a voxel, or each row of points. An inverse set takes none of these. On a GPU some 10 bytes a triplet more,
   for tiles of 256 rows, where its kernels read those; all arrays and workspaces of calls are memory of that GPU. Work is put on
   the call's stream, that of a new set too, and other streams must wait for it. Errors of launches are reported by the call that
   launches, as PNET_NO_DEVICE; so is one of the program's own that it has not cleared. The thread's current GPU stays. */
struct pnet_set;

/* Which voxels are joined. On each axis, with the kernel's size K, stride s, padding p and dilation d, the voxel x of one side
   and y of the other meet in tap t, 0 <= t < K, where  y s + t d - p = x:  a cross-correlation, as in PyTorch. The number of a
   tap is  k = (t0 K1 + t1) K2 + t2,  of the axes in the order of the indices. D: the extent of the input. */
enum pnet_set_kind {
    /* Outputs are the inputs, in their order. K is odd, s = 1, and p = (K - 1) / 2 d: other values of these two are ignored */
    PNET_SET_SUBMANIFOLD = 0,
    /* x is the input. Outputs: every y that meets an input, inside of the extent floor((D + 2 p - d (K - 1) - 1) / s) + 1 */
    PNET_SET_STRIDED = 1,
    /* y is the input. Outputs: every x that meets one, inside of the extent (D - 1) s - 2 p + d (K - 1) + output padding + 1 */
    PNET_SET_TRANSPOSED = 2
};

struct pnet_voxel_options {
    size_t size;
    enum pnet_set_kind kind;
    /* Axis by axis in the order of the indices; those of axes that are not there are not read. */
    int32_t extent[3];         /* of the input: 0 <= index < extent; 1 to 1048576 */
    int32_t kernel[3];         /* 1 to 31 */
    int32_t stride[3];         /* 0: 1 */
    int32_t padding[3];        /* 0 or more */
    int32_t dilation[3];       /* 0: 1 */
    int32_t output_padding[3]; /* TRANSPOSED: 0 or more */
    int32_t batches;           /* samples; they may be empty. 0: 1 */
    const char *device;        /* where the set and `indices` lie: "cpu" (NULL), "cuda", "cuda:1" */
    void *stream;              /* GPU: a cudaStream_t; NULL: the default stream */
    /* GPU: for the set, and calls without a workspace. NULL: cudaMalloc, cudaFree, which wait for the GPU */
    const struct pnet_allocator *allocator;
};

/* Makes the set of voxels `indices`, int32 [n, 1 + axes]: the sample, then one to three indices, for example (batch, z, y, x),
   rows in any order. Input row r is row r of `indices`. The outputs of STRIDED and TRANSPOSED are ordered by sample, then by
   index, the first axis slowest. The same arguments give the same set, for any number of threads.
   PNET_USAGE: the options are wrong, or an output extent is below 1 or above 1048576. PNET_BAD_DATA: a voxel lies outside of the
   extent or the samples, or two rows have the same one; the message names the rows. PNET_NO_DEVICE: the device is not there, or
   this library was built without it. On a GPU the call waits for the stream, because counts must come to the host, and no CUDA
   graph can record it; with an allocator the stream must live as long as the set. */
PNET_API enum pnet_status pnet_set_voxels(const struct pnet_array *indices,
    const struct pnet_voxel_options *o, struct pnet_set **set, struct pnet_error *e);
/* The same triplets with i and j exchanged: from the outputs of `of` back to its inputs, in their order. It keeps `of`, which may
   be freed before it. */
PNET_API enum pnet_status pnet_set_inverse(
    const struct pnet_set *of, struct pnet_set **set, struct pnet_error *e);
/* A set from the caller's own triplets: i, j, k int32 [n, 1], in any order; 0 <= i < rows_out, 0 <= j < rows_in,
   0 <= k < taps, 1 to 65536 taps. A triplet that is there twice counts twice, and several j may share i and k. `o` may be NULL.
   PNET_BAD_DATA names the first triplet that is outside. On a GPU as pnet_set_voxels. */
struct pnet_triplet_options {
    size_t size;
    const char *device; /* as struct pnet_voxel_options */
    void *stream;
    const struct pnet_allocator *allocator;
};
PNET_API enum pnet_status pnet_set_triplets(const struct pnet_array *i, const struct pnet_array *j,
    const struct pnet_array *k, int64_t rows_out, int64_t rows_in, int32_t taps,
    const struct pnet_triplet_options *o, struct pnet_set **set, struct pnet_error *e);
/* NULL is allowed. On a GPU, work that reads the set is over, or the stream that it was made on waits for it. */
PNET_API void pnet_set_free(struct pnet_set *set);

struct pnet_set_info {
    size_t size;
    int64_t rows_in, rows_out, triplets;
    int32_t taps;
    int32_t axes;                        /* of its voxels; 0: it has none */
    int32_t batches;                     /* samples */
    int32_t extent_in[3], extent_out[3]; /* of axes that are not there, 1 */
};
PNET_API enum pnet_status pnet_set_counts(
    const struct pnet_set *set, struct pnet_set_info *info, struct pnet_error *e);
/* Copies the voxels of the outputs, [rows_out, 1 + axes] as `indices` above; `count` is the number of elements. PNET_USAGE: the
   set has no voxels. On a GPU this and the next one use the stream that the set was made on. */
PNET_API enum pnet_status pnet_set_indices(
    const struct pnet_set *set, int32_t *to, int64_t count, struct pnet_error *e);
/* Copies the triplets, sorted by (i, k, j); `count` is their number. An array may be NULL. The call takes
   memory and gives it back: 8 bytes for each row, and on a GPU 6 bytes a triplet. */
PNET_API enum pnet_status pnet_set_get_triplets(const struct pnet_set *set, int32_t *i, int32_t *j,
    int32_t *k, int64_t count, struct pnet_error *e);

/* The three sums of a convolution from `in` to `out` channels in groups. W [taps, in / groups, out] is row-major; as an array it
   has taps * in / groups rows. Input channels of group g are g in / groups and on, output channels likewise. */
enum pnet_conv_sum_kind {
    PNET_CONV_FORWARD = 0,    /* result[i] = bias + sum over (i, j, k) of W[k]^T features[j] */
    PNET_CONV_GRAD_INPUT = 1, /* result[j] = sum over (i, j, k) of W[k] gradient[i] */
    PNET_CONV_GRAD_WEIGHT = 2 /* result[k] = sum over (i, j, k) of features[j] gradient[i]^T */
};
enum pnet_products { /* the precision to which operands are rounded (docs/gpu.md of the sources) */
    PNET_PRODUCTS_AS_STORED = 0, /* as features are stored: FP32, BF16 or FP16 */
    PNET_PRODUCTS_FP32 = 1,
    PNET_PRODUCTS_TF32 = 2,
    PNET_PRODUCTS_BF16 = 3,
    PNET_PRODUCTS_FP16 = 4
};
struct pnet_conv_options {
    size_t size;
    int32_t groups;    /* 0: 1; it divides both numbers of channels */
    const float *bias; /* FORWARD: [out]; NULL: none */
    int accumulate;    /* add to what the result holds */
    void *workspace;   /* NULL: the call takes memory and gives it back */
    size_t workspace_bytes;
    void *stream;                 /* GPU: as in pnet_voxel_options */
    enum pnet_products precision; /* GPU. Features in 16 bits are multiplied as they are stored */
};

/* The bytes of workspace that a sum needs, on the CPU for the number of threads that OpenMP gives the calling thread. */
PNET_API enum pnet_status pnet_conv_workspace(const struct pnet_set *set,
    enum pnet_conv_sum_kind sum, int32_t in, int32_t out, int32_t groups, size_t *bytes,
    struct pnet_error *e);

/* From the caller's arrays as they are, which are contiguous (stride 0 or their width) and PNET_DTYPE_F32. Arrays and workspace
   must not overlap. Features have rows_in rows and `in` channels, gradients of outputs rows_out and `out`, and so have the
   results. `o` may be NULL. The same arguments give the same bits for any number of threads. Rows of voxels in another order give
   the same bits row by row, and of gradients of weights; for points `cell` of pnet_points_options says when. Infinities and NaN
   spread to the rows that read them; where groups are narrower than 16 channels (on a GPU 64), also to their neighbour groups.
   On a GPU features, results and gradients of rows may all be PNET_DTYPE_BF16, or all PNET_DTYPE_F16; arrays and workspace are
   aligned to 16 bytes. Rows of voxels and points may lie in any order without a loss of speed, because their triplets lie along a
   curve; those of pnet_set_triplets lie as rows do, so that rows near each other in space should be near each other there. A call
   that gets a workspace takes no memory and waits for nothing: a CUDA graph can record it, after a first call, in which the
   driver loads kernels. Until the recording ends, the thread makes no other calls, and no thread uses the default stream of that
   GPU.
   PNET_USAGE: an array has another type or shape, or lies elsewhere, or the workspace is too small. PNET_NO_MEMORY. */
PNET_API enum pnet_status pnet_conv_forward(const struct pnet_set *set,
    const struct pnet_array *features, const struct pnet_array *weights,
    const struct pnet_conv_options *o, const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_conv_grad_input(const struct pnet_set *set,
    const struct pnet_array *gradient, const struct pnet_array *weights,
    const struct pnet_conv_options *o, const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_conv_grad_weight(const struct pnet_set *set,
    const struct pnet_array *features, const struct pnet_array *gradient,
    const struct pnet_conv_options *o, const struct pnet_array_out *result, struct pnet_error *e);

/* ---- pools over a set, and sets in the caller's memory ---- */

/* Over all (i, j, k), channel by channel; 0 where a row i has no triplet. */
enum pnet_pooling {
    PNET_POOLING_MAX = 0,  /* the largest features[j]; of equal ones the first by (k, j) */
    PNET_POOLING_MEAN = 1, /* their sum, divided by the number of triplets of row i */
    PNET_POOLING_SUM = 2
};

struct pnet_pool_options {
    size_t size;
    void *stream; /* GPU: as in pnet_voxel_options */
};

/* From contiguous arrays as those of convolutions, in PNET_DTYPE_F32. Features have rows_in rows, the result rows_out, with as
   many channels. `argmax`, of MAX alone, is filled with the row j that each number came from, int32 [rows_out, channels], -1:
   from none; NULL: it is not wanted. A NaN is the largest number only where it comes first. `o` may be NULL. The same arguments
   give the same bits for any number of threads, and results of rows do not depend on the order of the rows of a set of voxels.
   On a GPU features and results may both be PNET_DTYPE_BF16, or PNET_DTYPE_F16; arrays are aligned to 16 bytes. A call takes no
   memory and waits for nothing: a CUDA graph can record it as it records a convolution. Maxima and their rows are the bits of the
   CPU, sums are formed in double precision.
   PNET_USAGE: an array has another type or shape, or lies elsewhere. PNET_NO_MEMORY. */
PNET_API enum pnet_status pnet_pool_forward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *features, const struct pnet_pool_options *o,
    const struct pnet_array_out *result, const struct pnet_array_out *argmax, struct pnet_error *e);
/* The gradient of the features, from that of the results and, for MAX, from `argmax`; of other kinds it is NULL. PNET_BAD_DATA:
   a row of `argmax` is not there; on a GPU nothing is added then. */
PNET_API enum pnet_status pnet_pool_backward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *gradient, const struct pnet_array *argmax,
    const struct pnet_pool_options *o, const struct pnet_array_out *result, struct pnet_error *e);

/* The triplets of a set in the caller's memory, which a framework's allocator may own: a block of bytes for either order in
   which the set has them. Blocks may be copied, between devices too, and another process may use them that runs on a machine
   with the same byte order. Voxels are not in them. */
struct pnet_packed {
    size_t size;
    int64_t rows_in, rows_out, triplets;
    int32_t taps;
    size_t by_out_bytes, by_in_bytes;
    void *by_out,
        *by_in; /* aligned to 16 bytes; of a set on a GPU its memory. Exchanged, with the numbers: the inverse set */
    const char *
        device; /* unpack: where the blocks and the set lie, as struct pnet_voxel_options; pack reads none of these */
    void *stream;
    const struct pnet_allocator *allocator; /* for calls without a workspace */
};
/* Sets all members but `size` to those of the set: numbers, and the bytes that its blocks need; NULL the others. */
PNET_API enum pnet_status pnet_set_packed_sizes(
    const struct pnet_set *set, struct pnet_packed *packed, struct pnet_error *e);
/* Writes the blocks to `by_out` and `by_in`. On a GPU the stream that the set was made on does it, and nothing waits. */
PNET_API enum pnet_status pnet_set_pack(
    const struct pnet_set *set, const struct pnet_packed *packed, struct pnet_error *e);
/* The set of two blocks, which are read where they lie: they must stay as they are until the set and its inverse sets are freed.
   Takes no memory for the triplets. On the CPU the time of reading them once: all numbers are checked, so that no block makes a
   sum read or write outside of its arrays; PNET_BAD_DATA: the bytes are no blocks, or have other numbers than pnet_set_pack
   writes. On a GPU nothing is read, hence nothing waits, and nothing but the numbers of bytes is checked: blocks must be those of
   a set with these numbers. Blocks of the CPU work there, more slowly, because they have no tiles. */
PNET_API enum pnet_status pnet_set_unpack(
    const struct pnet_packed *packed, struct pnet_set **set, struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
