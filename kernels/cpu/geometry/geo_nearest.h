/* Searches around one point: the nearest points, and all points within a radius. */
#ifndef PNET_KERNELS_CPU_GEO_NEAREST_H
#define PNET_KERNELS_CPU_GEO_NEAREST_H

#include "kernels/cpu/geometry/geo_isa.h"
#include "kernels/geometry.h"

/* The least of the keys that are offered. A key has the bits of a float that is not negative above 32 bits that break ties. */
struct pnet_geo_nearest {
    int count, limit;             /* limit: at most PNET_KNN_LIMIT */
    float reach2;                 /* points beyond this squared distance are not wanted */
    uint64_t key[PNET_KNN_LIMIT]; /* a heap, the largest on top */
};

void pnet_geo_keep(struct pnet_geo_nearest *best, uint64_t key);
static inline void pnet_geo_offer(struct pnet_geo_nearest *best, uint64_t key)
{
    if (best->count < best->limit || key < best->key[0]) pnet_geo_keep(best, key);
}

/* Sorts the keys; no key can be offered afterwards. */
void pnet_geo_sort_nearest(struct pnet_geo_nearest *best);

static inline float pnet_geo_key_float(uint64_t key)
{
    union {
        uint32_t bits;
        float value;
    } upper = {.bits = (uint32_t)(key >> 32)};
    return upper.value;
}

static inline int32_t pnet_geo_key_row(uint64_t key)
{
    return (int32_t)(key & 0x7fffffffu);
}

static inline uint64_t pnet_geo_key(float value, uint32_t tie)
{
    union {
        float value;
        uint32_t bits;
    } upper = {.value = value};
    return (uint64_t)upper.bits << 32 | tie;
}

/* The previous query of the same sample: the points near it give a bound for the next query. */
struct pnet_geo_earlier {
    bool there;
    float at[3];
    float farthest; /* distance of the farthest of its nearest points */
};

/* Finds the best->limit nearest points of a sample to `at`, by (squared distance, row); `self`: the row that precedes others
   at the same distance, or -1. */
void pnet_geo_find_nearest(const struct pnet_geo_isa *isa, const struct pnet_geo_tree *t,
    int32_t sample, const float at[3], int32_t self, struct pnet_geo_earlier *earlier,
    struct pnet_geo_nearest *best);

/* Finds the points of a sample at squared distances of at most best->reach2, which is finite, and keeps the best->limit first of
   them by (distance, row), as keys of both. Distances are the rounded roots of squared distances. Returns the number of
   points found. */
int64_t pnet_geo_find_within(const struct pnet_geo_isa *isa, const struct pnet_geo_tree *t,
    int32_t sample, const float at[3], struct pnet_geo_nearest *best);

/* The largest squared distance whose root, rounded to float, is at most `radius`: a comparison with it is a comparison of
   the rounded distance with the radius. */
float pnet_geo_square(float radius);

#endif
