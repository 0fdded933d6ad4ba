/* Workspaces of searches between point sets by a tree. */
#include "kernels/cuda/sets/set_tree.h"

enum { ITEM_BITS = 40 /* five passes of a radix sort */, MOST_CURVE_BITS = 16 };

/* What searches cost on an H100, in pairs that are compared by near.cu (0.35 ps each): the launches and the passes that sort, and
   a row that walks through the tree. Counted, not measured. */
static const double TREE_PAIRS = 2e8, ROW_PAIRS = 3500;

int pnet_cuda_set_sample_bits(int32_t samples)
{
    int bits = 0;
    while (INT64_C(1) << bits <= 2 * (int64_t)samples) bits++;
    return bits;
}

int pnet_cuda_set_curve_bits(int32_t samples)
{
    int bits = (ITEM_BITS - pnet_cuda_set_sample_bits(samples)) / 3;
    return bits < MOST_CURVE_BITS ? bits : MOST_CURVE_BITS;
}

size_t pnet_cuda_set_tree_take(const struct pnet_point_set *a, const struct pnet_point_set *b,
    struct geo_purse *purse, struct set_tree *t)
{
    size_t samples = 2 * (size_t)a->samples, places;
    t->samples = a->samples;
    t->places = a->rows.most + b->rows.most;
    places = (size_t)t->places;
    t->splits = geo_take(purse, samples + 1, sizeof *t->splits);
    t->low = geo_take(purse, 3 * samples, sizeof *t->low);
    t->high = geo_take(purse, 3 * samples + 1, sizeof *t->high);
    t->broken = t->high ? t->high + 3 * samples : NULL;
    t->row = geo_take(purse, places, sizeof *t->row);
    struct geo_purse sorting = *purse;
    t->items = geo_take(&sorting, CURVE_BYTES * places, 1);
    t->sorter = geo_take(&sorting, pnet_cuda_geo_sorter_bytes(t->places), 1);
    t->placed = geo_take(purse, 3 * places, sizeof *t->placed);
    pnet_cuda_geo_tree_take(&t->tree, t->places, purse);
    return sorting.used;
}

bool pnet_cuda_near_by_tree(const struct pnet_point_set *a, const struct pnet_point_set *b)
{
    double rows = (double)a->rows.most,
           others = a->samples ? (double)b->rows.most / a->samples : 0; /* of a sample */
    return rows * others > TREE_PAIRS + ROW_PAIRS * rows;
}

size_t pnet_cuda_near_tree_work(const struct pnet_point_set *a, const struct pnet_point_set *b)
{
    struct geo_purse purse = {NULL, 0};
    struct set_tree t;
    size_t sorted = pnet_cuda_set_tree_take(a, b, &purse, &t);
    return sorted > purse.used ? sorted : purse.used;
}
