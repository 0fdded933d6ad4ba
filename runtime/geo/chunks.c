/* A level whose rows are chunks of a finer level's rows, in their order. How many it has follows from the rows of each sample
   alone. It has no cells; its rows are ordered along the finer level's grid, as that level's are. */
#include "runtime/geo/levels.h"

#include "kernels/chunks.h"
#include "kernels/geometry_stage.h"

static void walk(struct pnet_geo_walk *w)
{
    int level = w->q->a;
    const struct pnet_level_info *info = &w->plan->levels[level];
    struct pnet_level fine = pnet_geo_level(w, info->finer);
    int64_t *splits = pnet_geo_splits(w, level);
    int32_t *parent = pnet_geo_buffer(w, LEVEL_PARENT, fine.rows, 1, 0, sizeof *parent);
    if (pnet_geo_builds(w))
        w->counts->rows[level] =
            PNET_KERNEL(w, chunk_splits)(fine.samples, fine.row_splits, info->count, splits);
    int64_t rows = w->counts->rows[level];
    struct pnet_level_points to = pnet_level_buffers(w, level, rows);
    if (!pnet_geo_builds(w)) return;
    PNET_KERNEL(w, chunk_points)(&fine, info->count, rows, splits, to.xyz, parent);
    if (to.key) PNET_KERNEL(w, keys)(rows, to.xyz, fine.grid, to.key);
    pnet_geo_set_grid(w, fine.grid);
}

/* Samples of one size. */
static void assume(const struct pnet_plan *p, int item, unsigned forms, struct pnet_counts *c)
{
    (void)forms;
    const struct pnet_level_info *info = &p->levels[p->geo[item].request.a];
    int64_t samples = c->samples > 0 ? c->samples : 1, each = samples * info->count;
    c->rows[p->geo[item].request.a] = samples * ((c->rows[info->finer] + each - 1) / each);
}

static void print(const struct pnet_plan *p, const struct pnet_geo_request *q, FILE *out)
{
    const struct pnet_level_info *l = &p->levels[q->a];
    fprintf(out, "  chunks of %d rows of %s", (int)l->count, p->levels[l->finer].name);
}

static void describe(const struct pnet_plan *p, int item, const struct pnet_counts *c, FILE *out)
{
    const struct pnet_level_info *l = &p->levels[p->geo[item].request.a];
    fprintf(out, "  %-12s %12lld points   chunks of %d rows of %s\n", l->name,
        (long long)c->rows[p->geo[item].request.a], (int)l->count, p->levels[l->finer].name);
}

const struct pnet_geo_kind pnet_geo_chunks = {
    .name = "level",
    .flags = PNET_GEO_LEVEL,
    .part = {[LEVEL_PARENT] = PNET_PART_MAPS},
    .owner = pnet_level_owner,
    .walk = walk,
    .view = pnet_level_view,
    .assume = assume,
    .print = print,
    .heading = "levels:",
    .describe = describe,
};
