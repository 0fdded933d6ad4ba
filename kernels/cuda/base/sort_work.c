#include "kernels/cuda/base/sort.h"

/* The library sorts in tiles of at least 2048 keys and keeps 256 counters of 4 bytes for each tile
   of at most 2^28 keys, and 256 counters of 8 bytes for each of up to 8 passes over each such
   portion. */
size_t pnet_cuda_sort_work(int64_t n)
{
    const int64_t portion = INT64_C(1) << 28;
    size_t portions = (size_t)(n / portion) + 2;
    return (size_t)(n < portion ? n : portion) / 2 + portions * 8 * (256 * 8 + 8) + 8192;
}
