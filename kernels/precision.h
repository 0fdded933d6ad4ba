/* How the products of a layer are formed. Sums are float32 in every one of them. */
#ifndef PNET_KERNELS_PRECISION_H
#define PNET_KERNELS_PRECISION_H

/* Operands are rounded to this before they are multiplied; the relative error of a tensor (2-norms) stays below:
     PNET_FP32  1e-6, on a GPU by split tensor-core products
     PNET_TF32  1e-3: 11 significant bits
     PNET_BF16  1e-2: 8 significant bits
     PNET_FP16  1e-3: 11 significant bits, values beyond 65504 are infinite
   The CPU computes float32 whatever is asked for. */
enum pnet_precision { PNET_FP32, PNET_TF32, PNET_BF16, PNET_FP16 };

/* How the features of a network and their gradients lie in memory: on a GPU with the last two precisions in 16 bits. Where
   a kernel takes `float *` for features, this says what they are in truth. Always float32: weights and their gradients,
   statistics, what is kept for backward, losses, distances, poses, everything on the CPU. */
enum pnet_storage { PNET_STORE_F32, PNET_STORE_BF16, PNET_STORE_FP16 };

static inline enum pnet_storage pnet_storage_of(enum pnet_precision p)
{
    return p == PNET_BF16 ? PNET_STORE_BF16 : p == PNET_FP16 ? PNET_STORE_FP16 : PNET_STORE_F32;
}

static inline int pnet_storage_bytes(enum pnet_storage s)
{
    return s == PNET_STORE_F32 ? 4 : 2;
}

#endif
