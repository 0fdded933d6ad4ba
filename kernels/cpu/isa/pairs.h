/* Inner loops over all pairs of one point and the points of a set (kernels/emd.h, kernels/sinkhorn.h), compiled for each
   instruction set. */
#ifndef PNET_KERNELS_CPU_ISA_PAIRS_H
#define PNET_KERNELS_CPU_ISA_PAIRS_H

#include <stdint.h>

/* Points in panels of so many; all counts below are multiples of it. */
enum { PNET_PAIR_LANES = 16 };

/* Points as arrays of coordinates, and a number of each. */
struct pnet_pair_points {
    const float *at[3];
    const float *value;
};

/* A key orders by a number of at least 0, then by an index. */
static inline uint64_t pnet_pair_key(float number, int32_t index)
{
    union {
        float number;
        uint32_t bits;
    } u = {number};
    return (uint64_t)u.bits << 32 | (uint32_t)index;
}
static inline float pnet_pair_number(uint64_t key)
{
    union {
        uint32_t bits;
        float number;
    } u = {(uint32_t)(key >> 32)};
    return u.number;
}
static inline int32_t pnet_pair_index(uint64_t key)
{
    return (int32_t)(uint32_t)key;
}

struct pnet_pairs_isa {
    /* Writes the keys (v, j) of the points j from `first` on with v = |x - y_j| + value_j <= limit, in ascending j; key has
       room for `count`. Returns how many these are. The same bits in every instruction set:
       v = sqrtf((dx * dx + dy * dy) + dz * dz) + value_j in float32, without contraction. */
    int32_t (*keys_of_sums)(const float x[3], const struct pnet_pair_points *y, int32_t first,
        int32_t count, float limit, uint64_t *key);
    /* The same of the points with v = |x - y_j| <= min(limit, value_j). */
    int32_t (*keys_up_to)(const float x[3], const struct pnet_pair_points *y, int32_t first,
        int32_t count, float limit, uint64_t *key);
    /* log2 of the sum over j of 2^(value_j - c |x - y_j|^2). A point with the value PNET_PAIR_NOTHING adds nothing. */
    double (*log_sum)(const float x[3], const struct pnet_pair_points *y, int64_t count, float c);
    /* The sums over j of w_j and w_j (x - y_j), with w_j = 2^(value_j - c |x - y_j|^2 - top): w_j must stay below 2^100. */
    void (*pull)(const float x[3], const struct pnet_pair_points *y, int64_t count, float c,
        float top, double sum[4]);
};

#define PNET_PAIR_NOTHING (-1e30f)

#endif
