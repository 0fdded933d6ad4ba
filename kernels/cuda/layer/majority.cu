/* The most frequent label of each cell: labels are sorted by cell, then by value, and the runs of
   equal ones compete. Cells may be of any size, and nothing is known about the number of classes. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/levels.cuh"
#include "kernels/pool.h"
#include "kernels/cuda/base/sort.h"

struct majority {
    uint64_t *key[2]; /* [fine rows] cell << 32 | label */
    uint64_t *best;   /* [coarse rows] count << 32 | ~label of the best run so far */
    void *sort;
};

static struct majority majority_of(const struct pnet_cells *cells, void *work)
{
    struct carver w = {(char *)work};
    struct majority m;
    m.key[0] = w.take<uint64_t>(cells->fine_rows.most);
    m.key[1] = w.take<uint64_t>(cells->fine_rows.most);
    m.best = w.take<uint64_t>(cells->coarse_rows.most);
    m.sort = w.at;
    return m;
}

/* The cell that holds a row, where cells are stretches of rows. */
static __device__ int64_t cell_of(const struct pnet_cells &cells, int64_t row)
{
    if (cells.parent) return cells.parent[row];
    int64_t low = 0, high = pnet_live(cells.coarse_rows);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (cells.start[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* What does not count gets a cell behind the last one. */
__global__ static void make_keys(struct pnet_cells cells, const int32_t *label, uint64_t *key)
{
    int64_t rows = pnet_live(cells.fine_rows);
    for (int64_t row = FLAT_BEGIN; row < cells.fine_rows.most; row += FLAT_STEP) {
        int32_t l = row < rows ? label[row] : -1;
        key[row] = l < 0 ? (uint64_t)cells.coarse_rows.most << 32
                         : (uint64_t)cell_of(cells, row) << 32 | (uint32_t)l;
    }
}

/* The first key of each run finds the run's end. */
__global__ static void rate_runs(
    int64_t n, int64_t most_cells, const uint64_t *key, unsigned long long *best)
{
    for (int64_t at = FLAT_BEGIN; at < n; at += FLAT_STEP) {
        uint64_t own = key[at];
        int64_t cell = (int64_t)(own >> 32), low = at + 1, high, step = 1;
        if (cell >= most_cells || (at > 0 && key[at - 1] == own)) continue;
        while (low + step <= n && key[low + step - 1] == own) {
            low += step;
            step *= 2;
        }
        high = low + step - 1 < n ? low + step - 1 : n; /* the end is in low .. high */
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (key[middle] == own)
                low = middle + 1;
            else
                high = middle;
        }
        atomicMax(best + cell, (unsigned long long)(low - at) << 32 | (uint32_t) ~(uint32_t)own);
    }
}

__global__ static void write_labels(struct pnet_count cells, const uint64_t *best, int32_t *y)
{
    int64_t most = pnet_live(cells);
    for (int64_t cell = FLAT_BEGIN; cell < most; cell += FLAT_STEP)
        y[cell] = best[cell] ? (int32_t) ~(uint32_t)best[cell] : -1;
}

void pnet_cuda_cells_majority(
    const struct pnet_cells *cells, const int32_t *label, int32_t *y, void *work)
{
    struct majority m = majority_of(cells, work);
    int64_t fine = cells->fine_rows.most, coarse = cells->coarse_rows.most;
    if (coarse <= 0) return;
    cudaMemsetAsync(m.best, 0, (size_t)coarse * sizeof *m.best, pnet_cuda_stream());
    if (fine > 0) {
        unsigned grid = blocks_for(fine, THREADS);
        make_keys<<<grid, THREADS, 0, pnet_cuda_stream()>>>(*cells, label, m.key[0]);
        const uint64_t *sorted = pnet_cuda_sort_keys(
            fine, m.key[0], m.key[1], 0, 32 + pnet_cuda_sort_bits(coarse), m.sort);
        rate_runs<<<grid, THREADS, 0, pnet_cuda_stream()>>>(
            fine, coarse, sorted, (unsigned long long *)m.best);
    }
    write_labels<<<blocks_for(coarse, THREADS), THREADS, 0, pnet_cuda_stream()>>>(
        cells->coarse_rows, m.best, y);
}
