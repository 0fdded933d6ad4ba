/* The k nearest rows of a coarser level for each row of a finer one. */
#include "runtime/geo/walk.h"

#include "kernels/geometry_stage.h"

enum { NEAR_INDEX, NEAR_DISTANCE };

static bool same(const struct pnet_geo_request *q, const struct pnet_geo_request *r)
{
    return q->nearest.k == r->nearest.k;
}

/* A map that no layer reads is needed while other items are built. */
static enum pnet_geo_owner owner(const struct pnet_plan *p, int item, unsigned forms, int which)
{
    (void)forms;
    (void)which;
    return p->geo[item].users ? PNET_OWNER_SLOT : PNET_OWNER_SHARED;
}

static void walk(struct pnet_geo_walk *w)
{
    int32_t k = w->q->nearest.k;
    struct pnet_level fine = pnet_geo_level(w, w->q->a), coarse = pnet_geo_level(w, w->q->b),
                      fine_room = pnet_geo_room(w, w->q->a),
                      coarse_room = pnet_geo_room(w, w->q->b);
    int32_t *index = pnet_geo_buffer(w, NEAR_INDEX, fine.rows, k, 0, sizeof *index);
    float *distance2 = pnet_geo_buffer(w, NEAR_DISTANCE, fine.rows, k, 0, sizeof *distance2);
    void *work =
        pnet_geo_scratch(w, PNET_WORK(w->device, nearest_work)(&fine_room, &coarse_room, k));
    if (pnet_geo_builds(w)) PNET_KERNEL(w, nearest)(&fine, &coarse, k, index, distance2, work);
}

static void view(const struct pnet_geo_look *l, struct pnet_geo_view *v)
{
    v->k = l->q->nearest.k;
    v->nearest = pnet_look_data(l, l->item, NEAR_INDEX);
    v->distance2 = pnet_look_data(l, l->item, NEAR_DISTANCE);
}

const struct pnet_geo_kind pnet_geo_nearest = {
    .name = "nearest",
    .flags = PNET_GEO_SEARCHES,
    .part = {PNET_PART_MAPS, PNET_PART_MAPS},
    .same = same,
    .owner = owner,
    .walk = walk,
    .view = view,
};
