/* Transposes a list of entries. Integer atomics count the entries of each row and give them places in no particular order; then
   each row is sorted, so that the result does not depend on that order. No row has two entries with the same other row. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_parts.h"
#include "kernels/cuda/sets/apml_lists.cuh"

enum { SORTED_BY_THREAD = 24 /* entries of a row that one thread sorts */ };

/* How the sorting of the geometry stage sees an entry. */
static_assert(sizeof(struct pnet_apml_entry) == sizeof(uint64_t), "an entry is a pair of words");

__global__ static void __launch_bounds__(THREADS)
    count_entries(const __grid_constant__ struct apml_list from, unsigned long long *count)
{
    const int64_t entries = list_entries(from);
    for (int64_t at = FLAT_BEGIN; at < entries; at += FLAT_STEP)
        atomicAdd(count + from.entry[at].other, 1ull);
}

/* next[j] is the end of row j, and is lowered to its begin. */
__global__ static void __launch_bounds__(THREADS)
    deal_out(const __grid_constant__ struct apml_list from, unsigned long long *next,
        struct pnet_apml_entry *to)
{
    for_entries(from, 0, list_entries(from), FLAT_BEGIN / WARP, FLAT_STEP / WARP,
        [&](int64_t row, int64_t at) {
            struct pnet_apml_entry e = entry_at(from.entry + at);
            put_entry(to + (atomicAdd(next + e.other, ~0ull) - 1), {(int32_t)row, e.p});
        });
}

/* Sorts short rows, and lists the others. */
__global__ static void __launch_bounds__(THREADS) sort_short(struct pnet_count rows,
    const int64_t *start, struct pnet_apml_entry *entry, int32_t *count, int32_t *longer)
{
    const int64_t live = pnet_live(rows);
    for (int64_t row = FLAT_BEGIN; row < live; row += FLAT_STEP) {
        const int64_t begin = start[row], n = start[row + 1] - begin;
        if (n > SORTED_BY_THREAD) {
            longer[atomicAdd(count, 1)] = (int32_t)row;
            continue;
        }
        struct pnet_apml_entry *list = entry + begin;
        for (int i = 1; i < (int)n; i++) {
            struct pnet_apml_entry own = entry_at(list + i);
            int to = i;
            for (; to > 0; to--) {
                struct pnet_apml_entry before = entry_at(list + to - 1);
                if (before.other < own.other) break;
                put_entry(list + to, before);
            }
            if (to < i) put_entry(list + to, own);
        }
    }
}

void pnet_cuda_apml_transpose(const struct apml_list *from, struct pnet_count others,
    int64_t *start, struct pnet_apml_entry *to, int32_t *longer, int64_t *sums)
{
    cudaStream_t stream = pnet_cuda_stream();
    int32_t *count = (int32_t *)(start + others.most + 1);
    cudaMemsetAsync(start, 0, ((size_t)others.most + 2) * sizeof *start, stream);
    if (from->rows.most <= 0 || others.most <= 0) return;
    const unsigned blocks = blocks_for(2 * from->rows.most, THREADS);
    unsigned long long *next = (unsigned long long *)start;
    count_entries<<<blocks, THREADS, 0, stream>>>(*from, next);
    pnet_cuda_geo_scan(others.most + 1, start, sums);
    deal_out<<<blocks, THREADS, 0, stream>>>(*from, next, to);
    sort_short<<<element_blocks(others.most), THREADS, 0, stream>>>(
        others, start, to, count, longer);
    pnet_cuda_geo_sort_pairs(others.most, start, (uint64_t *)to, count, longer);
}
