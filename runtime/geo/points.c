/* A level of points that a network generates: so many for each row of another level, in the order of its rows. It has rows,
   and no coordinates: the places of its points are features. */
#include "runtime/geo/levels.h"

#include "kernels/geometry_stage.h"

static void walk(struct pnet_geo_walk *w)
{
    int level = w->q->a;
    const struct pnet_level_info *info = &w->plan->levels[level];
    if (!pnet_geo_builds(w)) return;
    int64_t rows = w->counts->rows[info->from] * info->count;
    if (rows > PNET_MAX_ROWS) {
        pnet_geo_fail(w, PNET_BAD_DATA, "level '%s' has %lld rows in this batch: at most %d",
            info->name, (long long)rows, PNET_MAX_ROWS);
        return;
    }
    w->counts->rows[level] = rows;
    PNET_KERNEL(w, scale_splits)
    (w->counts->samples + 1, info->count, pnet_geo_splits(w, info->from),
        pnet_geo_splits(w, level));
}

static void assume(const struct pnet_plan *p, int item, unsigned forms, struct pnet_counts *c)
{
    (void)forms;
    int level = p->geo[item].request.a;
    c->rows[level] = pnet_generated_rows(&p->levels[level], c);
}

const struct pnet_geo_kind pnet_geo_points = {
    .name = "level",
    .flags = PNET_GEO_LEVEL,
    .walk = walk,
    .view = pnet_level_view,
    .assume = assume,
    .heading = "levels:",
    .describe = pnet_level_describe,
};
