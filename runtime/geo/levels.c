#include "runtime/geo/levels.h"
#include "runtime/base/number.h"

struct pnet_level_points pnet_level_buffers(struct pnet_geo_walk *w, int level, int64_t n)
{
    struct pnet_level_points p = {pnet_geo_buffer(w, LEVEL_XYZ, n, 1, 0, 3 * sizeof(float)), NULL};
    if (pnet_geo_searched(w->plan, level))
        p.key = pnet_geo_buffer(w, LEVEL_KEY, n, 1, 0, sizeof(uint64_t));
    return p;
}

bool pnet_level_unread(const struct pnet_plan *p, int level)
{
    if (p->levels[level].kind != PNET_GEO_INPUT || !p->training) return false;
    for (int l = 0; l < p->level_count; l++)
        if (p->levels[l].finer == level) return false;
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[i].request;
        bool own = q->kind == PNET_GEO_INPUT && q->a == level;
        if (own ? p->geo[i].users > 0 : q->a == level || q->b == level) return false;
    }
    return true;
}

/* Does a layer read the map from a level to the one that was sampled from it? */
static bool parent_read(const struct pnet_plan *p, int level)
{
    int item =
        pnet_geo_find(p, &(struct pnet_geo_request){
                             .kind = PNET_GEO_PARENT, .a = p->levels[level].finer, .b = level});
    return item >= 0 && (p->geo[item].forms & PNET_FORM_PARENT);
}

/* In training nobody but layers reads points and maps; what an inference reads, results in the order of the batch, has one
   slot. */
enum pnet_geo_owner pnet_level_owner(const struct pnet_plan *p, int item, unsigned forms, int which)
{
    const struct pnet_geo_item *g = &p->geo[item];
    (void)forms;
    if (which == LEVEL_ORDER || !p->training) return PNET_OWNER_SLOT;
    bool kept = which == LEVEL_PARENT ? parent_read(p, g->request.a) : g->users > 0;
    return kept ? PNET_OWNER_SLOT : PNET_OWNER_SHARED;
}

void pnet_level_view(const struct pnet_geo_look *l, struct pnet_geo_view *v)
{
    const struct pnet_geo_places *at = l->places;
    v->level = (struct pnet_level){.rows = v->a_rows,
        .samples = l->counts ? l->counts->samples : 0,
        .row_splits = at ? at->splits(at->context, v->a) : NULL,
        .xyz = pnet_look_data(l, l->item, LEVEL_XYZ),
        .key = pnet_geo_searched(l->plan, v->a) ? pnet_look_data(l, l->item, LEVEL_KEY) : NULL,
        .grid = at ? at->grid(at->context, v->a) : l->plan->levels[v->a].grid};
}

void pnet_level_describe(
    const struct pnet_plan *p, int item, const struct pnet_counts *c, FILE *out)
{
    const struct pnet_level_info *l = &p->levels[p->geo[item].request.a];
    fprintf(out, "  %-12s %12lld points", l->name, (long long)c->rows[p->geo[item].request.a]);
    if (l->cell > 0) pnet_number_write(out, "   cell %g m", l->cell);
    fputc('\n', out);
}
