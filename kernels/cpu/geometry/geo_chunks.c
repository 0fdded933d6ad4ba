/* Levels of chunks: stretches of a finer level's rows. */
#include "kernels/chunks.h"
#include "kernels/segments.h"

#include <string.h>

enum { SMALL = 1 << 14 }; /* rows below which threads cost more than they save */

int64_t pnet_cpu_chunk_splits(
    int32_t samples, const int64_t *fine_splits, int32_t size, int64_t *row_splits)
{
    row_splits[0] = 0;
    for (int32_t s = 0; s < samples; s++)
        row_splits[s + 1] = row_splits[s] + (fine_splits[s + 1] - fine_splits[s] + size - 1) / size;
    return row_splits[samples];
}

void pnet_cpu_chunk_points(const struct pnet_level *fine, int32_t size, int64_t rows,
    const int64_t *row_splits, float *xyz, int32_t *parent)
{
    const struct pnet_segments samples = {
        .rows = rows, .count = fine->samples, .splits = row_splits};
#pragma omp parallel for schedule(static) if (fine->rows > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        int32_t s = pnet_segment_of(samples, row);
        int64_t begin = fine->row_splits[s] + (row - row_splits[s]) * size, end = begin + size;
        if (end > fine->row_splits[s + 1]) end = fine->row_splits[s + 1];
        int64_t kept = begin + pnet_chunk_centre(fine->xyz + 3 * begin, end - begin);
        memcpy(xyz + 3 * row, fine->xyz + 3 * kept, 3 * sizeof *xyz);
        for (int64_t i = begin; i < end; i++) parent[i] = (int32_t)row;
    }
}
