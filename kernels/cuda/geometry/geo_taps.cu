/* Triplets of voxels and taps, and of lists (kernels/taps.h). A thread takes a coarse voxel; what its taps lead it to has
   ascending keys, so that each search begins where the one before ended. */
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/geometry/geo_grid.h"
#include "kernels/cuda/geometry/geo_parts.h"
#include "kernels/cuda/geometry/geo_sites.h"
#include "kernels/taps.h"

/* What a search reads, and where its results go: with `other` they are written, else `start` gets their numbers. */
struct tap_search {
    struct pnet_sites coarse, fine;
    struct pnet_taps taps;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

/* The indices of tap 0 on each axis, and the fine voxels of the sample. */
struct tap_place {
    int64_t at[3], begin, end;
};

static __device__ struct tap_place place_of(const struct tap_search &s, int64_t place)
{
    struct tap_place p;
    int32_t sample = sample_of(s.coarse.splits, s.coarse.samples, place);
    for (int a = 0; a < 3; a++)
        p.at[a] =
            (int64_t)pnet_site_index(s.coarse.key[place], a) * s.taps.stride[a] - s.taps.padding[a];
    p.begin = s.fine.splits[sample];
    p.end = s.fine.splits[sample + 1];
    return p;
}

/* Adds the triplets of one voxel, from `next` on; returns where the next ones would go. */
static __device__ int64_t walk(const struct tap_search &s, struct tap_place p, int64_t next)
{
    uint16_t tap = 0;
    uint64_t e0 = (uint64_t)s.fine.extent[0], e1 = (uint64_t)s.fine.extent[1],
             e2 = (uint64_t)s.fine.extent[2];
    for (int i = 0; i < s.taps.kernel[0]; i++)
        for (int j = 0; j < s.taps.kernel[1]; j++)
            for (int k = 0; k < s.taps.kernel[2]; k++, tap++) {
                uint64_t a = (uint64_t)(p.at[0] + (int64_t)i * s.taps.dilation[0]),
                         b = (uint64_t)(p.at[1] + (int64_t)j * s.taps.dilation[1]),
                         c = (uint64_t)(p.at[2] + (int64_t)k * s.taps.dilation[2]);
                if (a >= e0 || b >= e1 || c >= e2) continue; /* below 0, too */
                uint64_t key = pnet_site_key((int64_t)a, (int64_t)b, (int64_t)c);
                p.begin = pnet_site_find(s.fine.key, p.begin, p.end, key);
                if (p.begin == p.end) return next;
                if (s.fine.key[p.begin] != key) continue;
                if (s.other) {
                    s.other[next] = s.fine.row ? s.fine.row[p.begin] : (int32_t)p.begin;
                    s.cell[next] = tap;
                }
                next++;
            }
    return next;
}

static __global__ void __launch_bounds__(GEO_THREADS)
    walk_taps(const __grid_constant__ struct tap_search s)
{
    for (int64_t i = thread_index(); i < s.coarse.rows; i += thread_count()) {
        int64_t row = s.coarse.row ? s.coarse.row[i] : i;
        struct tap_place p = place_of(s, i);
        if (s.other)
            walk(s, p, s.start[row]);
        else
            s.start[row + 1] = walk(s, p, 0);
    }
}

void pnet_cuda_taps_count(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, int64_t *start, void *work)
{
    cudaMemsetAsync(start, 0, sizeof *start, pnet_cuda_stream());
    if (coarse->rows <= 0) return;
    struct tap_search s = {*coarse, *fine, *t, start, nullptr, nullptr};
    walk_taps<<<geo_blocks(coarse->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(s);
    pnet_cuda_geo_scan(coarse->rows, start + 1, (int64_t *)work);
}

void pnet_cuda_taps_write(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, const int64_t *start, int32_t *other, uint16_t *cell)
{
    struct tap_search s = {*coarse, *fine, *t, (int64_t *)start, other, cell};
    if (coarse->rows > 0)
        walk_taps<<<geo_blocks(coarse->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(s);
}

/* A block takes so many rows, and its threads their triplets side by side. */
static __global__ void __launch_bounds__(GEO_THREADS)
    turn_taps(const struct pnet_triplets t, int32_t *other, uint16_t *cell)
{
    __shared__ int64_t start[GEO_THREADS + 1];
    int64_t first = (int64_t)blockIdx.x * GEO_THREADS;
    for (int i = (int)threadIdx.x; i <= GEO_THREADS; i += GEO_THREADS)
        start[i] = t.start[first + i < t.rows ? first + i : t.rows];
    __syncthreads();
    for (int64_t n = start[0] + threadIdx.x; n < start[GEO_THREADS]; n += GEO_THREADS) {
        int row = 0;
        for (int step = GEO_THREADS / 2; step > 0; step /= 2)
            if (start[row + step] <= n) row += step;
        int64_t to = start[row] + start[row + 1] - 1 - n;
        other[to] = t.other[n];
        cell[to] = (uint16_t)(t.cells - 1 - t.cell[n]);
    }
}

void pnet_cuda_taps_turn(const struct pnet_triplets *t, int32_t *other, uint16_t *cell)
{
    if (t->rows > 0)
        turn_taps<<<(unsigned)((t->rows + GEO_THREADS - 1) / GEO_THREADS), GEO_THREADS, 0,
            pnet_cuda_stream()>>>(*t, other, cell);
}

static __global__ void find_outside(
    int64_t count, const int32_t *list, int64_t end, unsigned long long *first)
{
    for (int64_t n = thread_index(); n < count; n += thread_count())
        if (list[n] < 0 || list[n] >= end) atomicMin(first, (unsigned long long)n);
}

int64_t pnet_cuda_list_outside(int64_t count, const int32_t *list, int64_t end, void *work)
{
    if (count <= 0) return -1;
    pnet_cuda_geo_least_begin(work);
    find_outside<<<geo_blocks(count), GEO_THREADS, 0, pnet_cuda_stream()>>>(
        count, list, end, (unsigned long long *)work);
    return pnet_cuda_geo_least(work);
}

enum { CELL_SHIFT = 31 };

static __global__ void list_items(const struct pnet_listed l, uint64_t *item, int32_t *order)
{
    for (int64_t n = thread_index(); n < l.count; n += thread_count()) {
        item[n] = (uint64_t)l.k[n] << CELL_SHIFT | (uint64_t)l.j[n];
        order[n] = (int32_t)n;
    }
}

static __global__ void list_rows(const struct pnet_listed l, const int32_t *order, uint64_t *item)
{
    for (int64_t n = thread_index(); n < l.count; n += thread_count())
        item[n] = (uint64_t)l.i[order[n]];
}

static __global__ void count_rows(const struct pnet_listed l, int64_t *start)
{
    for (int64_t n = thread_index(); n < l.count; n += thread_count())
        atomicAdd((unsigned long long *)&start[l.i[n] + 1], 1ull);
}

static __global__ void place_list(
    const struct pnet_listed l, const int32_t *order, int32_t *other, uint16_t *cell)
{
    for (int64_t n = thread_index(); n < l.count; n += thread_count()) {
        other[n] = l.j[order[n]];
        cell[n] = (uint16_t)l.k[order[n]];
    }
}

/* Sorts by tap and neighbour, then by row, each time stable. Triplets that are equal stay behind each other. */
void pnet_cuda_listed(const struct pnet_listed *l, int64_t rows, int64_t *start, int32_t *other,
    uint16_t *cell, void *work)
{
    geo_purse purse(work);
    int64_t *sums = purse.take<int64_t>(pnet_cuda_geo_scan_sums(rows));
    int32_t *order = purse.take<int32_t>((size_t)l->count);
    uint64_t *item = (uint64_t *)purse.take<char>(CURVE_BYTES * (size_t)l->count);
    unsigned blocks = geo_blocks(l->count);
    cudaMemsetAsync(start, 0, ((size_t)rows + 1) * sizeof *start, pnet_cuda_stream());
    if (l->count <= 0) return;
    geo_purse once = purse;
    list_items<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*l, item, order);
    pnet_cuda_geo_sort_items(l->count, CELL_SHIFT + 16, order, item, &once);
    list_rows<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*l, order, item);
    if (rows > 1) pnet_cuda_geo_sort_items(l->count, bits_below(rows), order, item, &purse);
    count_rows<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*l, start);
    pnet_cuda_geo_scan(rows, start + 1, sums);
    place_list<<<blocks, GEO_THREADS, 0, pnet_cuda_stream()>>>(*l, order, other, cell);
}

static __global__ void list_triplets(
    const struct pnet_triplets t, int32_t *i, int32_t *j, int32_t *k)
{
    for (int64_t row = thread_index(); row < t.rows; row += thread_count())
        for (int64_t n = t.start[row]; n < t.start[row + 1]; n++) {
            if (i) i[n] = (int32_t)row;
            if (j) j[n] = t.other[n];
            if (k) k[n] = t.cell[n];
        }
}

void pnet_cuda_triplets_list(const struct pnet_triplets *t, int32_t *i, int32_t *j, int32_t *k)
{
    if (t->rows > 0)
        list_triplets<<<geo_blocks(t->rows), GEO_THREADS, 0, pnet_cuda_stream()>>>(*t, i, j, k);
}
