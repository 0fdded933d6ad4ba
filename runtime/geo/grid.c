/* A level sampled from a finer one: one point a cell of a grid. */
#include "runtime/geo/levels.h"

#include "kernels/rows.h"
#include "kernels/geometry_stage.h"

#include <math.h>

static void walk(struct pnet_geo_walk *w)
{
    int level = w->q->a;
    const struct pnet_level_info *info = &w->plan->levels[level];
    struct pnet_level fine = pnet_geo_level(w, info->finer);
    int64_t room = pnet_capacity(fine.rows);
    bool ordered = pnet_geo_stretches(w->plan, info->finer, level);
    size_t sample_work = pnet_round_bytes(PNET_WORK(w->device, sample_work)(room, ordered));
    int32_t *parent = pnet_geo_buffer(w, LEVEL_PARENT, fine.rows, 1, 0, sizeof *parent);
    char *work = pnet_geo_scratch(w, sample_work + (size_t)room * sizeof(int32_t));
    int32_t *keep = NULL;
    if (pnet_geo_builds(w)) {
        keep = (int32_t *)(void *)(work + sample_work);
        w->counts->rows[level] = PNET_KERNEL(w, sample)(
            &fine, info->grid, ordered, keep, parent, pnet_geo_splits(w, level), work);
    }
    int64_t rows = w->counts->rows[level];
    struct pnet_level_points to = pnet_level_buffers(w, level, rows);
    if (!pnet_geo_builds(w)) return;
    PNET_KERNEL(w, gather)(rows, 3, fine.xyz, keep, to.xyz);
    if (to.key) PNET_KERNEL(w, keys)(rows, to.xyz, info->grid, to.key);
}

/* A level keeps a third of the rows of a level half as coarse, as surfaces with some noise do. */
static void assume(const struct pnet_plan *p, int item, unsigned forms, struct pnet_counts *c)
{
    (void)forms;
    int level = p->geo[item].request.a;
    const struct pnet_level_info *info = &p->levels[level];
    double fine = p->levels[info->finer].cell, ratio = fine > 0 ? info->cell / fine : 2;
    c->rows[level] = pnet_geo_assumed((double)c->rows[info->finer] * pow(ratio, -1.6));
}

/* Whether a row is there and which point it keeps, the points of its cell decide. */
static struct pnet_geo_reach reach(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    int finest = q->a;
    while (p->levels[finest].kind == PNET_GEO_GRID) finest = p->levels[finest].finer;
    if (p->levels[finest].kind != PNET_GEO_INPUT) return pnet_geo_anywhere();
    struct pnet_geo_reach r = pnet_geo_parent_reach(p, finest, q->a);
    return (struct pnet_geo_reach){r.apart, {r.beyond[1], r.beyond[1]}};
}

const struct pnet_geo_kind pnet_geo_grid = {
    .name = "level",
    .flags = PNET_GEO_LEVEL,
    .part = {[LEVEL_PARENT] = PNET_PART_MAPS},
    .owner = pnet_level_owner,
    .reach = reach,
    .walk = walk,
    .view = pnet_level_view,
    .assume = assume,
    .heading = "levels:",
    .describe = pnet_level_describe,
};
