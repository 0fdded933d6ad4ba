/* Lists of corners as a runner makes them, for the tests of both devices. */
#ifndef PNET_TESTS_GEOMETRY_CORNERS_H
#define PNET_TESTS_GEOMETRY_CORNERS_H

#include "kernels/corners.h"
#include "tests/geometry/cloud.h"

/* Both forms of the lists; they own their arrays. */
struct corners {
    struct set set, back;
    float *weight, *back_weight;
};

static inline struct corners corners_make(const struct pnet_level *queries,
    const struct pnet_level *source, enum pnet_corner_kind kind, bool outside)
{
    struct corners c = {.set = set_room(queries->rows, source->rows, PNET_CORNERS)};
    int32_t *nearest = NULL;
    if (outside) {
        void *near_work = memory(pnet_cpu_nearest_work(queries, source, 1));
        float *d2 = memory((size_t)queries->rows * sizeof *d2);
        nearest = memory((size_t)queries->rows * sizeof *nearest);
        pnet_cpu_nearest(queries, source, 1, nearest, d2, near_work);
        free(d2);
        free(near_work);
    }
    void *work = memory(pnet_cpu_corners_work(queries, source, kind));
    set_room_for(&c.set, pnet_cpu_corners_count(queries, source, kind, nearest, c.set.start, work));
    size_t bytes = (size_t)c.set.t.count * sizeof(float);
    c.weight = memory(bytes);
    c.back_weight = memory(bytes);
    memset(c.weight, 0xff, bytes);
    memset(c.back_weight, 0xff, bytes);
    pnet_cpu_corners_write(
        queries, source, kind, nearest, c.set.start, c.set.other, c.set.cell, c.weight, work);
    c.back = set_transposed(&c.set);
    pnet_cpu_corners_transpose(&c.set.t, c.weight, &c.back.t, c.back_weight);
    free(work);
    free(nearest);
    return c;
}

static inline void corners_free(struct corners *c)
{
    set_free(&c->set);
    set_free(&c->back);
    free(c->weight);
    free(c->back_weight);
}

/* Sums by the lists, and the gradients' sums by the transposed ones. */
static inline struct pnet_weighted corners_weighted(const struct corners *c, bool back)
{
    const struct set *s = back ? &c->back : &c->set;
    return (struct pnet_weighted){.rows = pnet_count(s->t.rows),
        .start = s->start,
        .other = s->other,
        .weight = back ? c->back_weight : c->weight};
}

#endif
