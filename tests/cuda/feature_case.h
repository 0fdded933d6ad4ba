/* Features in device memory as they are stored, and how close sums of their products come, for the tests of convolution
   and of dense products. */
#ifndef PNET_TESTS_CUDA_FEATURE_CASE_H
#define PNET_TESTS_CUDA_FEATURE_CASE_H

#include "tests/cuda/device_case.h"
#include "tests/cuda/storage_case.h"

/* By enum pnet_precision: what kernels/precision.h promises. */
static const double tolerance[] = {1e-6, 1e-3, 1e-2, 1e-3};
static const char *const precision_name[] = {"fp32", "tf32", "bf16", "fp16"};
/* SPARE_ROWS: a capacity class has that many rows more than there are */
enum { PRECISIONS = 4, SPARE_ROWS = 3 };

static inline float *host_floats(const float *from, size_t n)
{
    float *x = conv_alloc(n * sizeof *x);
    pnet_cuda_copy_out(x, from, n * sizeof *x);
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    return x;
}

/* n numbers, `spare` ones that are none behind them, and such up to whole units of 16 bytes: where a copy takes a part of
   its unit, initcheck counts all of it. */
static inline float *device_features(
    enum pnet_storage storage, const float *from, size_t n, size_t spare)
{
    size_t bytes = storage_bytes(storage, (int64_t)n);
    size_t all = bytes + storage_bytes(storage, (int64_t)spare);
    void *x = conv_alloc(bytes);
    to_storage(storage, from, (int64_t)n, x);
    float *d = device_copy_into(x, bytes, (all + 15) / 16 * 16);
    free(x);
    return d;
}

static inline float *host_features(enum pnet_storage storage, const float *from, size_t n)
{
    void *bits = conv_alloc(storage_bytes(storage, (int64_t)n));
    float *x = conv_alloc(n * sizeof *x);
    pnet_cuda_copy_out(bits, from, storage_bytes(storage, (int64_t)n));
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    from_storage(storage, bits, (int64_t)n, x);
    free(bits);
    return x;
}

#endif
