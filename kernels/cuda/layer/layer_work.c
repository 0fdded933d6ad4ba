/* Workspaces of pools, interpolation and the optimiser. */
#include "kernels/cuda/base/feature_work.h"
#include "kernels/cuda/base/sort.h"
#include "kernels/optim.h"
#include "kernels/pool.h"

size_t pnet_cuda_optim_update_work(int64_t chunk_count)
{
    return (size_t)chunk_count * sizeof(double);
}

size_t pnet_cuda_cells_sum_work(int32_t c)
{
    (void)c;
    return 0;
}

size_t pnet_cuda_cells_majority_work(const struct pnet_cells *cells)
{
    size_t fine = (size_t)cells->fine_rows.most, coarse = (size_t)cells->coarse_rows.most;
    return 2 * round_up(fine * 8) + round_up(coarse * 8) +
           pnet_cuda_sort_work(cells->fine_rows.most);
}

size_t pnet_cuda_segments_pool_work(struct pnet_segments s, int32_t c)
{
    size_t parts = (size_t)(pnet_segment_blocks(s.rows) + s.count) * (size_t)c;
    return 2 * round_up(parts * sizeof(double)); /* a maximum needs a float and a row: no more */
}

size_t pnet_cuda_interpolate_backward_work(const struct pnet_nearest *n, int32_t c)
{
    int64_t pairs = n->fine_rows.most * n->k;
    (void)c;
    return 2 * round_up((size_t)pairs * 8) + round_up((size_t)(n->coarse_rows.most + 1) * 8) +
           pnet_cuda_sort_work(pairs);
}
