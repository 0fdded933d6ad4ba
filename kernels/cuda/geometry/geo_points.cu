/* Rows that a network generates: so many for each row of another level. */
#include "kernels/geometry_stage.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"

static __global__ void block_parents(int64_t n, int64_t each, int32_t *parent)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) parent[i] = (int32_t)(i / each);
}

extern "C" void pnet_cuda_block_parents(int64_t n, int64_t each, int32_t *parent)
{
    if (n > 0)
        block_parents<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(n, each, parent);
}

static __global__ void scale_splits(int64_t n, int64_t each, const int64_t *from, int64_t *to)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) to[i] = from[i] * each;
}

extern "C" void pnet_cuda_scale_splits(int64_t n, int64_t each, const int64_t *from, int64_t *to)
{
    if (n > 0)
        scale_splits<<<geo_blocks(n), GEO_THREADS, 0, pnet_cuda_stream()>>>(n, each, from, to);
}
