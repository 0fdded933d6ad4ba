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

#endif
