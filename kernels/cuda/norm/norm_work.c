/* Workspaces of norms. */
#include "kernels/cuda/base/feature_work.h"
#include "kernels/norm.h"

size_t pnet_cuda_norm_work(const struct pnet_norm *n)
{
    size_t m = (size_t)n->segments.count * (size_t)n->c;
    return m * (2 * sizeof(double) + 2 * sizeof(float)) + norm_parts(n) * sizeof(double);
}

size_t pnet_cuda_segment_sums_work(struct pnet_segments s, int32_t c)
{
    return column_parts(s.rows, s.count, c) * sizeof(double);
}

/* Workspace: the sums of chunks; of wide rows the moments of each row, the two sums of each channel, the sums of chunks. */
size_t pnet_cuda_layernorm_backward_work(struct pnet_count rows, int32_t c)
{
    size_t one_pass = (size_t)layer_chunks(rows.most, c) * (size_t)c * 2 * sizeof(double),
           three = (size_t)rows.most * 2 * sizeof(float) +
                   ((size_t)c * 2 + column_parts(rows.most, 1, c)) * sizeof(double);
    return one_pass > three ? one_pass : three;
}
