/* Triplet sets of sparse convolution libraries: voxels that hold something, joined by the taps of a kernel; and sets from lists.
   Integers alone: the same bits on either device, for any number of threads. Nothing is allocated.

   GPU: as kernels/both.h has it. The work functions give bytes, and are in every build. Counts are below 2^31. */
#ifndef PNET_KERNELS_TAPS_H
#define PNET_KERNELS_TAPS_H

#include "kernels/geometry.h"
#include "kernels/philox.h" /* PNET_HD */

enum { PNET_SITE_BITS = 20, PNET_SITE_LIMIT = 1 << PNET_SITE_BITS };

/* Voxels of a batch, at most one row each. Axis 0 is the slowest; axes that are not there have the extent 1. */
struct pnet_sites {
    int64_t rows; /* below 2^31 */
    int32_t samples;
    int32_t extent[3]; /* 1 .. PNET_SITE_LIMIT; 0 <= index < extent */
    const int64_t
        *splits;         /* [samples + 1]: sample s has the places splits[s] .. splits[s + 1] - 1 */
    const uint64_t *key; /* [rows] by place, ascending in each sample (pnet_site_key) */
    const int32_t *row;  /* [rows]: the row at each place; NULL: rows are places */
};

PNET_HD uint64_t pnet_site_key(int64_t a, int64_t b, int64_t c)
{
    return (uint64_t)a << 2 * PNET_SITE_BITS | (uint64_t)b << PNET_SITE_BITS | (uint64_t)c;
}

PNET_HD int32_t pnet_site_index(uint64_t key, int axis)
{
    return (int32_t)(key >> (2 - axis) * PNET_SITE_BITS & (PNET_SITE_LIMIT - 1));
}

/* The first place of [from, end) whose key is at least `key`, by growing steps. */
PNET_HD int64_t pnet_site_find(const uint64_t *keys, int64_t from, int64_t end, uint64_t key)
{
    int64_t step = 1;
    while (from < end && keys[from] < key) {
        int64_t next = from + step;
        if (next >= end || keys[next] >= key) {
            int64_t high = next < end ? next : end;
            for (from++; from < high;) {
                int64_t middle = from + (high - from) / 2;
                if (keys[middle] < key)
                    from = middle + 1;
                else
                    high = middle;
            }
            return from;
        }
        from = next;
        step *= 2;
    }
    return from;
}

/* A coarse voxel y and a fine voxel x meet in tap t, 0 <= t < kernel, where on every axis
     y stride + t dilation - padding = x.
   The tap's number is (t0 K1 + t1) K2 + t2. kernel <= PNET_KERNEL_LIMIT, the others <= PNET_SITE_LIMIT. */
struct pnet_taps {
    int32_t kernel[3], stride[3], padding[3], dilation[3];
};
static inline int32_t pnet_taps_count(const struct pnet_taps *t)
{
    return t->kernel[0] * t->kernel[1] * t->kernel[2];
}

/* How many voxels one is led to at most: a coarse one by a fine one (`up`), or the opposite. */
static inline int64_t pnet_taps_leads(const struct pnet_taps *t, bool up)
{
    int64_t leads = 1;
    for (int a = 0; a < 3; a++) {
        int32_t common = t->stride[a], rest = t->dilation[a];
        while (rest) {
            int32_t next = common % rest;
            common = rest;
            rest = next;
        }
        int32_t step = up ? t->stride[a] / common : 1; /* between taps that lead to a voxel */
        leads *= (t->kernel[a] + step - 1) / step;
    }
    return leads;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts voxels: index[rows, stride] has the sample, then `axes` indices, all inside. Writes the arrays of struct pnet_sites.
   Equal voxels stay in the order of rows. */
size_t pnet_cpu_sites_sort_work(int64_t rows);
void pnet_cpu_sites_sort(int64_t rows, int32_t samples, int axes, const int32_t *index,
    int64_t stride, int64_t *splits, uint64_t *key, int32_t *row, void *work);

/* The order in which the triplets of a set lie, so that rows near each other in space follow each other: sample by sample, along
   a Morton curve of blocks of 4 x 4 x 4 voxels, inside of a block by key. along[s->rows]: the place there of each voxel of `s`;
   row[s->rows]: the row at each place there; place[s->rows]: the place of each row. */
enum { PNET_SITE_BLOCK_BITS = 2 };
size_t pnet_cpu_sites_curve_work(int64_t rows);
void pnet_cpu_sites_curve(
    const struct pnet_sites *s, int32_t *along, int32_t *row, int32_t *place, void *work);

/* The voxels that meet one of `from` in some tap on one axis, the other axes as they are; inside of `extent` on that axis.
   `up`: `from` is fine and the result coarse, else the opposite. All three axes after each other give the voxels that meet one
   of `from` in some tap. Writes splits[samples + 1], and key[splits[samples]] unless it is NULL: first count, then write. */
void pnet_cpu_sites_reach(const struct pnet_sites *from, const struct pnet_taps *t, int axis,
    bool up, int32_t extent, int64_t *splits, uint64_t *key);

/* The triplets (row of `coarse`, row of `fine`, tap) of two sides with the same samples, sorted by the coarse row, in two steps:
     count: start[coarse->rows + 1] gets the prefix sums; returns their number
     write: other, cell [that number], each row sorted by its tap: a tap of a row has one other at most */
int64_t pnet_cpu_taps_count(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, int64_t *start);
void pnet_cpu_taps_write(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, const int64_t *start, int32_t *other, uint16_t *cell);

/* Triplets (i, j, k) in any order as a set sorted by (i, k, j): start[rows + 1], other and cell [count]. i is below `rows`. */
void pnet_cpu_listed(int64_t count, const int32_t *i, const int32_t *j, const int32_t *k,
    int64_t rows, int64_t *start, int32_t *other, uint16_t *cell);

/* GPU. Brings numbers at device addresses to the host, at most 16, and waits. 0 each where the GPU failed. */
void pnet_cuda_numbers(int count, const int64_t *const *device, int64_t *to);

/* GPU. Voxels from the caller: index[rows, 1 + axes] as above. Nothing waits.

   found[0] gets the first row that is not inside of the samples and the extent; -1: all are. */
void pnet_cuda_sites_outside(int64_t rows, int32_t samples, int axes, const int32_t extent[3],
    const int32_t *index, int64_t *found);
/* Sorts them, as pnet_cpu_sites_sort does. Indices outside of the extent and the samples count as the nearest one inside. */
size_t pnet_cuda_sites_sort_work(int64_t rows);
void pnet_cuda_sites_sort(int64_t rows, int32_t samples, int axes, const int32_t extent[3],
    const int32_t *index, int64_t *splits, uint64_t *key, int32_t *row, void *work);
/* found[0] gets, of the rows whose voxel an earlier row has, the first one, in the upper 32 bits, and the row before it with that
   voxel; -1: there is none. */
void pnet_cuda_sites_twice(const struct pnet_sites *s, int64_t *found);
/* Writes the sample and indices of each place, index[rows, 1 + axes]. */
void pnet_cuda_sites_list(const struct pnet_sites *s, int axes, int32_t *index);

/* As pnet_cpu_sites_curve; nothing waits. */
size_t pnet_cuda_sites_curve_work(int64_t rows);
void pnet_cuda_sites_curve(
    const struct pnet_sites *s, int32_t *along, int32_t *row, int32_t *place, void *work);

/* GPU. What pnet_cpu_sites_reach finds, in four steps:
     reach: start[from->rows + 1] gets the prefix sums of what each voxel is led to; returns their number, `led`
     lead: those voxels, key and sample [led], in any order and several times
     merge: sorts them; order [led] and mark [led] say which are different; returns their number
     merged: splits[samples + 1], to[that number] */
size_t pnet_cuda_sites_reach_work(int64_t rows);
int64_t pnet_cuda_sites_reach(const struct pnet_sites *from, const struct pnet_taps *t, int axis,
    bool up, int32_t extent, int64_t *start, void *work);
void pnet_cuda_sites_lead(const struct pnet_sites *from, const struct pnet_taps *t, int axis,
    bool up, int32_t extent, const int64_t *start, uint64_t *key, int32_t *sample);
struct pnet_led {
    int64_t count;
    int32_t samples;
    const uint64_t *key;
    const int32_t *sample;
    int32_t *order;
    int64_t *mark;
};
size_t pnet_cuda_sites_merge_work(int64_t led);
int64_t pnet_cuda_sites_merge(const struct pnet_led *l, const int32_t extent[3], void *work);
void pnet_cuda_sites_merged(const struct pnet_led *l, int64_t *splits, uint64_t *to);

/* GPU. The same on all axes at once, where `spreads` says that a voxel is led to few. Writes splits[samples + 1], and key, which
   has room for from->rows * pnet_taps_leads() of them. Returns the place of their number in `work`. Nothing waits. */
bool pnet_cuda_sites_spreads(
    const struct pnet_taps *t, bool up, int64_t rows, int32_t samples, const int32_t extent[3]);
size_t pnet_cuda_sites_spread_work(int64_t rows, const struct pnet_taps *t, bool up);
const int64_t *pnet_cuda_sites_spread(const struct pnet_sites *from, const struct pnet_taps *t,
    bool up, const int32_t extent[3], int64_t *splits, uint64_t *key, void *work);

/* GPU. As on the CPU; nothing waits: the number is start[coarse->rows]. */
size_t pnet_cuda_taps_work(int64_t rows);
void pnet_cuda_taps_count(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, int64_t *start, void *work);
void pnet_cuda_taps_write(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, const int64_t *start, int32_t *other, uint16_t *cell);
/* GPU. The transposed form of a submanifold set, which begins each row where the set does: with (i, j, k) the set has
   (j, i, taps - 1 - k), too. */
void pnet_cuda_taps_turn(const struct pnet_triplets *t, int32_t *other, uint16_t *cell);

/* GPU. Lists from the caller: the first of count numbers that is none of 0 .. end - 1; -1: all are. work: 8 bytes */
int64_t pnet_cuda_list_outside(int64_t count, const int32_t *list, int64_t end, void *work);
/* As pnet_cpu_listed. A triplet may be there several times. */
struct pnet_listed {
    int64_t count;
    const int32_t *i, *j, *k;
};
size_t pnet_cuda_listed_work(int64_t count, int64_t rows);
void pnet_cuda_listed(const struct pnet_listed *l, int64_t rows, int64_t *start, int32_t *other,
    uint16_t *cell, void *work);
/* The opposite: writes the row, other and cell of each triplet; an array may be NULL. */
void pnet_cuda_triplets_list(const struct pnet_triplets *t, int32_t *i, int32_t *j, int32_t *k);

#ifdef __cplusplus
}
#endif

#endif
