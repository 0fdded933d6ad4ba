/* The map from a level to a coarser one: the sampling's own, or several of them in sequence; from generated points to what they
   were generated for, by counting; and the children of each coarse row. */
#include "runtime/geo/levels.h"

#include "kernels/rows.h"
#include "kernels/geometry_stage.h"

enum { MAP_PARENT, MAP_START, MAP_CHILD };

/* Is the map the sampling's own? */
static bool one_step(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    return p->levels[q->b].finer == q->a;
}

static const int32_t *sampled(const struct pnet_geo_walk *w, int level)
{
    return pnet_geo_data(w, pnet_geo_level_item(w->plan, level), LEVEL_PARENT);
}

/* The level that was sampled from `level`, on the way from there to `coarse`, which it must reach and not be. */
static int next_coarser(const struct pnet_plan *p, int coarse, int level)
{
    int l = coarse;
    while (p->levels[l].finer != level) l = p->levels[l].finer;
    return l;
}

static void follow(const struct pnet_geo_walk *w, int64_t n, int32_t *parent)
{
    const struct pnet_plan *p = w->plan;
    int64_t each;
    int level = pnet_level_root(p->levels, w->q->a, w->q->b, &each);
    const int32_t *row = parent;
    if (level != w->q->a) { /* not `each > 1`: a row may have one point */
        PNET_KERNEL(w, block_parents)(n, each, parent);
    } else {
        level = next_coarser(p, w->q->b, level);
        row = sampled(w, level);
    }
    while (level != w->q->b) {
        level = next_coarser(p, w->q->b, level);
        PNET_KERNEL(w, gather)(n, 1, sampled(w, level), row, parent);
        row = parent;
    }
}

static void walk(struct pnet_geo_walk *w)
{
    const struct pnet_geo_request *q = w->q;
    int64_t n = w->counts->rows[q->a], m = w->counts->rows[q->b];
    const int32_t *parent = NULL;
    if (!one_step(w->plan, q)) {
        int32_t *own = pnet_geo_buffer(w, MAP_PARENT, n, 1, 0, sizeof *own);
        if (pnet_geo_builds(w)) follow(w, n, own);
        parent = own;
    } else if (pnet_geo_builds(w)) {
        parent = sampled(w, q->b);
    }
    if (!(w->forms & PNET_FORM_CHILDREN)) return;
    int64_t *start = pnet_geo_buffer(w, MAP_START, m, 1, 1, sizeof *start);
    int32_t *child = NULL;
    if (!pnet_geo_stretches(w->plan, q->a, q->b))
        child = pnet_geo_buffer(w, MAP_CHILD, n, 1, 0, sizeof *child);
    if (pnet_geo_builds(w)) PNET_KERNEL(w, children)(n, m, parent, start, child);
}

static enum pnet_geo_owner owner(const struct pnet_plan *p, int item, unsigned forms, int which)
{
    (void)item;
    bool kept = which != MAP_PARENT || !p->training || forms & PNET_FORM_PARENT;
    return kept ? PNET_OWNER_SLOT : PNET_OWNER_SHARED;
}

static void view(const struct pnet_geo_look *l, struct pnet_geo_view *v)
{
    bool one = one_step(l->plan, l->q);
    v->parent = pnet_look_data(l, one ? pnet_geo_level_item(l->plan, l->q->b) : l->item,
        one ? (int)LEVEL_PARENT : (int)MAP_PARENT);
    if (!(l->forms & PNET_FORM_CHILDREN)) return;
    v->child_start = pnet_look_data(l, l->item, MAP_START);
    if (!pnet_geo_stretches(l->plan, l->q->a, l->q->b))
        v->child = pnet_look_data(l, l->item, MAP_CHILD);
}

static struct pnet_geo_reach reach(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    return pnet_geo_parent_reach(p, q->a, q->b);
}

const struct pnet_geo_kind pnet_geo_parent = {
    .name = "parent",
    .part = {PNET_PART_MAPS, PNET_PART_MAPS, PNET_PART_MAPS},
    .owner = owner,
    .reach = reach,
    .walk = walk,
    .view = view,
};
