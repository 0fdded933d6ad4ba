#include "kernels/cpu/geometry/geo_tree.h"

#include <math.h>
#include "kernels/geometry_stage.h"

enum { LINE = 64, MIN_SPREAD = WIDE };

struct pnet_geo_purse pnet_geo_open(void *work)
{
    size_t skip = work ? (LINE - (uintptr_t)work % LINE) % LINE : 0;
    return (struct pnet_geo_purse){work ? (char *)work + skip : NULL, LINE};
}

void *pnet_geo_take(struct pnet_geo_purse *purse, size_t bytes)
{
    /* `used` counts LINE bytes that align the base */
    void *piece = purse->base ? purse->base + purse->used - LINE : NULL;
    purse->used += (bytes + LINE - 1) / LINE * LINE;
    return piece;
}

int64_t pnet_geo_blocks_bound(const struct pnet_level *level)
{
    return level->rows / WIDE + level->samples;
}

size_t pnet_geo_curve_work(int64_t rows)
{
    return (size_t)rows * sizeof(uint64_t) + pnet_cpu_order_work(rows);
}

/* Tells whether rows already follow a curve: keys ascend within each sample and distinguish enough points. Points that share
   a voxel are in no particular order. */
static bool follows_curve(const struct pnet_level *level)
{
    if (!level->key) return false;
    int64_t falls = 0, changes = 0;
    for (int32_t s = 0; s < level->samples; s++) {
        const uint64_t *key = level->key;
        int64_t begin = level->row_splits[s], end = level->row_splits[s + 1];
        changes += end > begin;
#pragma omp parallel for schedule(static) reduction(+ : falls, changes)
        for (int64_t i = begin + 1; i < end; i++) {
            falls += key[i] < key[i - 1];
            changes += key[i] != key[i - 1];
        }
    }
    return falls == 0 && changes >= level->rows / MIN_SPREAD;
}

/* Sorts rows along a curve through the box of all points, with 2^21 steps on its longest edge. */
static void order_by_curve(const struct pnet_level *level, int32_t *order, void *scratch)
{
    uint64_t *key = scratch;
    float low[3] = {INFINITY, INFINITY, INFINITY}, edge = 0;
    for (int a = 0; a < 3; a++) {
        float least = INFINITY, most = -INFINITY;
#pragma omp parallel for schedule(static) reduction(min : least) reduction(max : most)
        for (int64_t i = 0; i < level->rows; i++) {
            float p = level->xyz[3 * i + a];
            least = p < least ? p : least;
            most = p > most ? p : most;
        }
        low[a] = least;
        edge = most - least > edge ? most - least : edge;
    }
    float steps = edge > 0 ? (float)(PNET_KEY_LIMIT - 1) / edge : 0;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < level->rows; i++) {
        uint32_t index[3];
        for (int a = 0; a < 3; a++) {
            float x = (level->xyz[3 * i + a] - low[a]) * steps;
            index[a] = x < (float)(PNET_KEY_LIMIT - 1) ? (uint32_t)x : PNET_KEY_LIMIT - 1;
        }
        key[i] = pnet_key_join(index[0], index[1], index[2]);
    }
    pnet_cpu_order(level->rows, level->samples, level->row_splits, key, order, key + level->rows);
}

void pnet_geo_blocks_make(struct pnet_geo_blocks *b, const struct pnet_level *level, int32_t *order,
    int64_t *start, void *scratch)
{
    *b = (struct pnet_geo_blocks){.level = level, .start = start};
    start[0] = 0;
    for (int32_t s = 0; s < level->samples; s++)
        start[s + 1] =
            start[s] + (level->row_splits[s + 1] - level->row_splits[s] + WIDE - 1) / WIDE;
    if (follows_curve(level)) return;
    order_by_curve(level, order, scratch);
    b->order = order;
}

void pnet_geo_block_get(const struct pnet_geo_blocks *b, int64_t block, struct pnet_geo_block *out)
{
    int32_t low = 0, high = b->level->samples - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (b->start[middle + 1] > block)
            high = middle;
        else
            low = middle + 1;
    }
    int64_t place = b->level->row_splits[low] + (block - b->start[low]) * WIDE;
    int64_t left = b->level->row_splits[low + 1] - place;
    out->sample = low;
    out->count = left < WIDE ? (int)left : WIDE;
    for (int q = 0; q < out->count; q++)
        out->row[q] = b->order ? b->order[place + q] : (int32_t)(place + q);
}

void pnet_geo_tree_take(
    struct pnet_geo_tree *t, const struct pnet_level *level, struct pnet_geo_purse *purse)
{
    int64_t count = pnet_geo_blocks_bound(level);
    *t = (struct pnet_geo_tree){.level = level};
    t->leaf = pnet_geo_take(purse, (size_t)count * sizeof *t->leaf);
    do {
        count = (count + WIDE - 1) / WIDE;
        t->group[t->depth++] = pnet_geo_take(purse, (size_t)count * sizeof(struct pnet_geo_boxes));
    } while (count > 1);
}

static void fill_leaf(struct pnet_geo_leaf *leaf, const struct pnet_level *level,
    const struct pnet_geo_block *b, bool voxel)
{
    for (int l = 0; l < WIDE; l++) {
        float at[3] = {NAN, NAN, NAN};
        if (l < b->count) pnet_geo_place(level, b->row[l], voxel, at);
        for (int a = 0; a < 3; a++) leaf->at[a][l] = at[a];
        leaf->row[l] = l < b->count ? b->row[l] : -1;
    }
}

/* Computes the box of WIDE boxes or points, without padding, which is NaN in leaves and empty in groups. */
static void join(
    const float low[3][WIDE], const float high[3][WIDE], struct pnet_geo_boxes *to, int member)
{
    for (int a = 0; a < 3; a++) {
        float least = INFINITY, most = -INFINITY;
        for (int l = 0; l < WIDE; l++) {
            least = low[a][l] < least ? low[a][l] : least;
            most = high[a][l] > most ? high[a][l] : most;
        }
        to->low[a][member] = least;
        to->high[a][member] = most;
    }
}

/* Computes the boxes of groups from the `count` members below them, which are leaves at level 0. */
static void build_groups(struct pnet_geo_tree *t, int level, int64_t count)
{
    int64_t groups = (count + WIDE - 1) / WIDE;
#pragma omp parallel for schedule(static)
    for (int64_t g = 0; g < groups; g++) {
        struct pnet_geo_boxes *to = &t->group[level][g];
        for (int a = 0; a < 3; a++)
            for (int l = 0; l < WIDE; l++) {
                to->low[a][l] = INFINITY;
                to->high[a][l] = -INFINITY;
            }
        for (int m = 0; m < WIDE && g * WIDE + m < count; m++) {
            int64_t below = g * WIDE + m;
            if (level == 0)
                join(t->leaf[below].at, t->leaf[below].at, to, m);
            else
                join(t->group[level - 1][below].low, t->group[level - 1][below].high, to, m);
        }
    }
}

void pnet_geo_tree_build(struct pnet_geo_tree *t, const struct pnet_geo_blocks *blocks, bool voxel)
{
    int64_t count = blocks->start[blocks->level->samples];
    t->level = blocks->level;
    t->leaf_start = blocks->start;
    t->ascending = !blocks->order;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) {
        struct pnet_geo_block b;
        pnet_geo_block_get(blocks, i, &b);
        fill_leaf(&t->leaf[i], t->level, &b, voxel);
    }
    t->depth = 0;
    do {
        build_groups(t, t->depth++, count);
        count = (count + WIDE - 1) / WIDE;
    } while (count > 1);
}
