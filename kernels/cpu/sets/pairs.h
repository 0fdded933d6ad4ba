/* What losses over all pairs of two sets share: where a sample's points lie in arrays of whole panels, and the inner loops. */
#ifndef PNET_KERNELS_CPU_SETS_PAIRS_H
#define PNET_KERNELS_CPU_SETS_PAIRS_H

#include "kernels/cpu/isa/pairs.h"
#include "kernels/sets.h"

/* The inner loops of the instruction set that runs. */
const struct pnet_pairs_isa *pnet_pairs_isa(void);

/* A set in arrays has room for so many points: those of each sample begin on a panel, and fill whole ones. */
int64_t pnet_pairs_room(const struct pnet_point_set *s);
/* Where the points of a sample begin, and how many with those that fill the last panel. */
int64_t pnet_pairs_begin(const struct pnet_point_set *s, int32_t sample);
int64_t pnet_pairs_padded(const struct pnet_point_set *s, int32_t sample);
/* The sample of a row. */
int32_t pnet_pairs_sample(const struct pnet_point_set *s, int64_t row);

static inline int64_t pnet_pairs_points(const struct pnet_point_set *s, int32_t sample)
{
    return s->splits[sample + 1] - s->splits[sample];
}

/* The box around the points of both sets in a sample, which are there. The diagonal is NaN where a coordinate is not finite. */
struct pnet_pairs_box {
    double centre[3], diagonal;
};
struct pnet_pairs_box pnet_pairs_box(const struct pnet_set_pair *p, int32_t sample);

/* Takes consecutive pieces of a workspace. Where `begin` is NULL, only bytes are counted. */
struct pnet_pairs_work {
    char *begin;
    size_t bytes;
};
void *pnet_pairs_take(struct pnet_pairs_work *w, int64_t count, size_t each);

#endif
