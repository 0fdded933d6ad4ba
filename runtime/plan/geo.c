#include "runtime/plan/geo_look.h"
#include "runtime/device/memory.h"

#include <math.h>

#define PNET_GEO(ID, row, arguments) extern const struct pnet_geo_kind pnet_geo_##row;
#include "runtime/plan/geo.def"
#undef PNET_GEO

static const struct pnet_geo_kind *const kinds[] = {
#define PNET_GEO(ID, row, arguments) &pnet_geo_##row,
#include "runtime/plan/geo.def"
#undef PNET_GEO
};

const struct pnet_geo_kind *pnet_geo_kind(enum pnet_geo_id id)
{
    return kinds[id];
}

bool pnet_geo_same(const struct pnet_geo_request *q, const struct pnet_geo_request *r)
{
    if (q->kind != r->kind || q->a != r->a || q->b != r->b) return false;
    const struct pnet_geo_kind *kind = pnet_geo_kind(q->kind);
    return !kind->same || kind->same(q, r);
}

int pnet_geo_find(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    for (int i = 0; i < p->geo_count; i++)
        if (pnet_geo_same(&p->geo[i].request, q)) return i;
    return -1;
}

int pnet_geo_level_item(const struct pnet_plan *p, int level)
{
    enum pnet_geo_id kind = p->levels[level].kind;
    return pnet_geo_find(p, &(struct pnet_geo_request){.kind = kind, .a = level, .b = level});
}

bool pnet_geo_searched(const struct pnet_plan *p, int level)
{
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[i].request;
        bool searches = pnet_geo_kind(q->kind)->flags & PNET_GEO_SEARCHES;
        if (searches && (q->a == level || q->b == level)) return true;
    }
    return false;
}

struct pnet_geo_reach pnet_geo_anywhere(void)
{
    double far = (double)INFINITY;
    return (struct pnet_geo_reach){far, {far, far}};
}

struct pnet_geo_reach pnet_geo_reach(const struct pnet_plan *p, const struct pnet_geo_request *q)
{
    const struct pnet_geo_kind *kind = pnet_geo_kind(q->kind);
    return kind->reach ? kind->reach(p, q) : pnet_geo_anywhere();
}

struct pnet_geo_reach pnet_geo_level_reach(const struct pnet_plan *p, int level)
{
    return pnet_geo_reach(
        p, &(struct pnet_geo_request){.kind = p->levels[level].kind, .a = level, .b = level});
}

struct pnet_geo_reach pnet_geo_parent_reach(const struct pnet_plan *p, int fine, int coarse)
{
    double inner = p->levels[fine].kind == PNET_GEO_GRID ? p->levels[fine].cell : 0,
           outer = p->levels[coarse].cell;
    for (int l = coarse; l != fine; l = p->levels[l].finer) {
        const struct pnet_level_info *level = &p->levels[l];
        if (level->kind != PNET_GEO_GRID) return pnet_geo_anywhere();
        const struct pnet_level_info *below = &p->levels[level->finer];
        bool nests = below->kind == PNET_GEO_INPUT ||
                     (below->kind == PNET_GEO_GRID && below->grid.base == level->grid.base &&
                         level->grid.factor % below->grid.factor == 0);
        if (!nests) return pnet_geo_anywhere();
    }
    if (fine == coarse) return (struct pnet_geo_reach){0, {0, 0}};
    return (struct pnet_geo_reach){
        outer, {outer - inner, 0}}; /* both rows lie in the coarse cell */
}

int64_t pnet_generated_rows(const struct pnet_level_info *l, const struct pnet_counts *c)
{
    int64_t rows = c->rows[l->from];
    return rows > PNET_MAX_ROWS ? rows : rows * l->count;
}

int64_t pnet_geo_assumed(double count)
{
    return count > 0 ? (int64_t)ceil(fmin(count, 1e15)) : 0; /* NaN is not */
}

bool pnet_geo_stretches(const struct pnet_plan *p, int fine, int coarse)
{
    int64_t each;
    fine = pnet_level_root(p->levels, fine, coarse, &each);
    for (int l = coarse; l != fine; l = p->levels[l].finer)
        if (p->levels[l].kind != PNET_GEO_CHUNKS &&
            !pnet_grid_follows(p->levels[p->levels[l].finer].grid, p->levels[l].grid))
            return false;
    return true;
}

/* Looks. */

int64_t pnet_look_rows(const struct pnet_geo_look *l, int level)
{
    int64_t rows = l->counts ? l->counts->rows[level] : 0;
    return l->capacity ? pnet_capacity(rows) : rows;
}

int64_t pnet_look_count(const struct pnet_geo_look *l, int which)
{
    int64_t n = l->counts ? l->counts->of[l->item][which] : 0;
    return l->capacity ? pnet_capacity(n) : n;
}

const void *pnet_look_data(const struct pnet_geo_look *l, int item, int which)
{
    return l->places ? l->places->data(l->places->context, item, which) : NULL;
}

static const int64_t *live_of(const struct pnet_geo_look *l, int level)
{
    return l->places && l->capacity ? l->places->live(l->places->context, level) : NULL;
}

struct pnet_geo_view pnet_geo_view_of(const struct pnet_geo_look *l)
{
    const struct pnet_geo_kind *kind = pnet_geo_kind(l->q->kind);
    struct pnet_geo_view v = {.kind = l->q->kind,
        .a = l->q->a,
        .b = l->q->b,
        .forms = l->forms,
        .a_rows = pnet_look_rows(l, l->q->a),
        .b_rows = pnet_look_rows(l, l->q->b),
        .a_live = live_of(l, l->q->a),
        .b_live = live_of(l, l->q->b)};
    for (int i = 0; i < kind->counts; i++) v.count[i] = pnet_look_count(l, i);
    if (kind->view) {
        kind->view(l, &v);
        return v;
    }
    for (int i = 0; i < PNET_GEO_BUFFERS; i++) v.array[i] = pnet_look_data(l, l->item, i);
    return v;
}
