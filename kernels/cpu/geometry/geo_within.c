/* All points within a radius that each query brings along. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/geometry/geo_nearest.h"

float pnet_geo_square(float radius)
{
    float square = radius * radius;
    if (!(square <= FLT_MAX)) return FLT_MAX;
    while (sqrtf(square) > radius) square = nextafterf(square, 0);
    for (float next = nextafterf(square, FLT_MAX); next > square && sqrtf(next) <= radius;
         next = nextafterf(square, FLT_MAX))
        square = next;
    return square;
}

int64_t pnet_geo_find_within(const struct pnet_geo_isa *isa, const struct pnet_geo_tree *t,
    int32_t sample, const float at[3], struct pnet_geo_nearest *best)
{
    _Alignas(64) float distance2[WIDE];
    struct pnet_geo_walk w = pnet_geo_walk_begin(t, sample);
    int64_t found = 0;
    best->count = 0;
    if (w.last < w.first) return 0;
    const struct pnet_geo_boxes *b = t->group[w.level];
    w.left[w.level] = pnet_geo_walk_members(&w, w.level, 0) &
                      isa->near_point(b->low, b->high, at, best->reach2, distance2);
    while (w.level < t->depth) {
        uint32_t left = w.left[w.level];
        if (!left) {
            w.level++;
            continue;
        }
        int64_t member = w.group[w.level] * WIDE + __builtin_ctz(left);
        w.left[w.level] = left & (left - 1);
        if (w.level) {
            b = &t->group[--w.level][member];
            w.group[w.level] = member;
            w.left[w.level] = isa->near_point(b->low, b->high, at, best->reach2, distance2) &
                              pnet_geo_walk_members(&w, w.level, member);
            continue;
        }
        const struct pnet_geo_leaf *leaf = &t->leaf[member];
        uint32_t near = isa->near_point(leaf->at, leaf->at, at, best->reach2, distance2) &
                        pnet_geo_walk_points(&w, member);
        found += __builtin_popcount(near);
        for (; near; near &= near - 1) {
            int l = __builtin_ctz(near);
            pnet_geo_offer(best, pnet_geo_key(sqrtf(distance2[l]), (uint32_t)leaf->row[l]));
        }
    }
    return found;
}
