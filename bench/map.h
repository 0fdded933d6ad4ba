/* Algorithms that find the neighbours of voxels, for pnet-bench ablate map: by searching sorted keys, or in a hash table. */
#ifndef PNET_BENCH_MAP_H
#define PNET_BENCH_MAP_H

#include "kernels/geometry.h"
#include "kernels/morton.h"

/* Rows of both levels are in the order of their keys, one a voxel. */
struct map_task {
    struct pnet_level out,
        in;               /* centres and neighbours; a neighbour's voxel is `step` times finer */
    int32_t kernel, step; /* step 1: one level, and an odd kernel */
    bool hash;            /* by the table, else by binary search of in.key */
    bool half;            /* one level: look up each pair once, and write both of its triplets */
    int bits;             /* of the table's size */
    int32_t *table;       /* [2^bits] rows of `in`; -1: none */
    int32_t *slot;        /* [kernel^3, out.rows] neighbours; -1: none */
};

/* The functions of a device. `work` is as large as `work` says, from the rows of the levels. */
struct map_device {
    size_t (*work)(const struct map_task *t);
    void (*build)(const struct map_task *t, void *work); /* the table */
    void (*find)(const struct map_task *t);              /* slot */
    /* From slot to triplets, sorted by row and cell: start [out.rows + 1]; returns their number. */
    int64_t (*count)(const struct map_task *t, int64_t *start, void *work);
    void (*write)(const struct map_task *t, const int64_t *start, int32_t *other, uint16_t *cell);
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct map_device pnet_bench_map_cpu, pnet_bench_map_cuda;
#ifdef __cplusplus
}
#endif

PNET_HD int32_t map_cells(const struct map_task *t)
{
    return t->kernel * t->kernel * t->kernel;
}

/* The finaliser of MurmurHash3 for 64 bits (Appleby, public domain), of a key and its sample; its upper bits. */
PNET_HD uint32_t map_home(uint64_t key, int32_t sample, int bits)
{
    uint64_t h = key ^ (uint64_t)sample * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)((h ^ h >> 33) >> (64 - bits));
}

/* Takes every third bit of a key, from bit 0 on. */
PNET_HD uint32_t map_gather(uint64_t x)
{
    x &= UINT64_C(0x1249249249249249);
    x = (x | x >> 2) & UINT64_C(0x10c30c30c30c30c3);
    x = (x | x >> 4) & UINT64_C(0x100f00f00f00f00f);
    x = (x | x >> 8) & UINT64_C(0x001f0000ff0000ff);
    x = (x | x >> 16) & UINT64_C(0x001f00000000ffff);
    return (uint32_t)((x | x >> 32) & 0x1fffff);
}

/* A centre: its sample and row, the sample's rows of `in`, and the voxel of `in` at which its cell (0, 0, 0) lies, plus the
   bias. */
struct map_centre {
    int32_t sample;
    int64_t row, begin, end;
    int64_t first[3];
};

PNET_HD struct map_centre map_centre(const struct map_task *t, int32_t sample, int64_t row)
{
    struct map_centre c = {
        sample, row, t->in.row_splits[sample], t->in.row_splits[sample + 1], {0, 0, 0}};
    int32_t shift = t->kernel % 2 ? (t->kernel - 1) / 2 : 0;
    for (int a = 0; a < 3; a++) {
        int64_t u = (int64_t)map_gather(t->out.key[row] >> (2 - a)) - PNET_KEY_BIAS;
        c.first[a] = u * t->step - shift + PNET_KEY_BIAS;
    }
    return c;
}

/* Sets the key of the neighbour in a cell. Returns false where that is beyond the range of voxels. */
PNET_HD bool map_neighbour(
    const struct map_centre *c, int32_t x, int32_t y, int32_t z, uint64_t *neighbour)
{
    int64_t at[3] = {c->first[0] + x, c->first[1] + y, c->first[2] + z};
    for (int a = 0; a < 3; a++)
        if (at[a] < 0 || at[a] >= PNET_KEY_LIMIT) return false;
    *neighbour = pnet_key_join((uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
    return true;
}

/* Returns the row of that key among rows [begin, end); -1: there is none. */
PNET_HD int32_t map_search(const uint64_t *key, int64_t begin, int64_t end, uint64_t wanted)
{
    int64_t low = begin, high = end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (key[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && key[low] == wanted ? (int32_t)low : -1;
}

PNET_HD int32_t map_look_up(const struct map_task *t, const struct map_centre *c, uint64_t wanted)
{
    uint32_t at = map_home(wanted, c->sample, t->bits), last = (1u << t->bits) - 1;
    for (;; at = (at + 1) & last) {
        int32_t row = t->table[at];
        if (row < 0 || (t->in.key[row] == wanted && row >= c->begin && row < c->end)) return row;
    }
}

/* Finds the neighbour in cell (x, y, z) of a centre, and writes it to its slot; with `half` also to that of the other row. */
PNET_HD void map_find(
    const struct map_task *t, const struct map_centre *c, int32_t x, int32_t y, int32_t z)
{
    int32_t K = t->kernel, last = K * K * K - 1, v = (x * K + y) * K + z, row = -1;
    uint64_t wanted;
    if (t->step == 1 && 2 * v == last)
        row = (int32_t)c->row;
    else if (map_neighbour(c, x, y, z, &wanted))
        row = t->hash ? map_look_up(t, c, wanted) : map_search(t->in.key, c->begin, c->end, wanted);
    if (!t->half || row >= 0) t->slot[v * t->out.rows + c->row] = row;
    if (t->half && row >= 0) t->slot[(last - v) * t->out.rows + row] = (int32_t)c->row;
}

#endif
