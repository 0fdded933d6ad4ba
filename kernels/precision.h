/* In which precision a layer multiplies, and in how many bits features are stored. Sums are float32 in every precision. */
#ifndef PNET_KERNELS_PRECISION_H
#define PNET_KERNELS_PRECISION_H

/* The precision to which operands are rounded before they are multiplied. The relative error of a tensor (2-norms) stays below:
     PNET_FP32  1e-6, on a GPU by split tensor-core products
     PNET_TF32  1e-3: 11 significant bits
     PNET_BF16  1e-2: 8 significant bits
     PNET_FP16  1e-3: 11 significant bits, values beyond 65504 are infinite
   The CPU computes in float32 for every value. */
enum pnet_precision { PNET_FP32, PNET_TF32, PNET_BF16, PNET_FP16 };

/* How the features of a network and their gradients are stored: in 16 bits on a GPU with bf16 or fp16, else as float32. A
   kernel that takes `float *` for features reads them as this type. These are always float32: weights and their gradients,
   statistics, values kept for backward, losses, distances, poses, and everything on the CPU. */
enum pnet_storage { PNET_STORE_F32, PNET_STORE_BF16, PNET_STORE_FP16 };

static inline enum pnet_storage pnet_storage_of(enum pnet_precision p)
{
    return p == PNET_BF16 ? PNET_STORE_BF16 : p == PNET_FP16 ? PNET_STORE_FP16 : PNET_STORE_F32;
}

static inline int pnet_storage_bytes(enum pnet_storage s)
{
    return s == PNET_STORE_F32 ? 4 : 2;
}

/* Channels, at most, of a matrix of coordinates that is float32 beside one stored in 16 bits: what exact_x, exact_y and exact_g
   of dense products (kernels/conv.h) are for. Such products are formed in float32, from 16 bits as they lie in memory. */
enum { PNET_EXACT_CHANNELS = 8 };

#endif
