/* The geometry recipe: which levels and sets a batch needs, each distinct one once. */
#include "compiler/internal.h"

#include <string.h>

/* Returns the index of the request's item. A missing item is appended, after the items it is built from. `known` maps kind,
   levels and mix to items; several items with one mix are numbered. */
static int find_item(
    struct pnet_compilation *c, struct map *known, const struct pnet_geo_request *q)
{
    const struct pnet_geo_kind *kind = pnet_geo_kind(q->kind);
    struct pnet_geo_request needed;
    if (kind->needs && kind->needs(q, &needed)) find_item(c, known, &needed);
    for (int number = 0;; number++) {
        char text[96];
        snprintf(text, sizeof text, "%d %d %d %08x %d", (int)q->kind, q->a, q->b,
            kind->mix ? kind->mix(q) : 0, number);
        int *item = pnet_map_find(known, text);
        if (item && pnet_geo_same(&c->plan.geo[*item].request, q)) return *item;
        if (item) continue;
        const char *key = pnet_arena_printf(&c->arena, "%s", text);
        if (key) pnet_map_get(&c->arena, known, key, c->plan.geo_count);
        return pnet_plan_add_geo(c, *q);
    }
}

static void need_level(const struct pnet_plan *p, bool *needed, int level)
{
    while (level >= 0 && !needed[level]) {
        const struct pnet_level_info *l = &p->levels[level];
        needed[level] = true;
        level = l->kind == PNET_GEO_POINTS ? l->from : l->finer;
    }
}

static bool *needed_levels(struct pnet_compilation *c, const struct pnet_geo_item *asked)
{
    struct pnet_plan *p = &c->plan;
    bool *needed = pnet_arena_array(&c->arena, (size_t)p->level_count, sizeof *needed);
    if (!needed) return NULL;
    for (int n = 0; n < p->node_count; n++) {
        const struct pnet_node *node = &p->nodes[n];
        if (node->dead) continue;
        need_level(p, needed, p->tensors[node->out].type.level);
        for (int i = 0; i < node->in_count; i++)
            need_level(p, needed, p->tensors[node->in[i]].type.level);
        for (int i = 0; i < node->geo_count; i++) {
            need_level(p, needed, asked[node->geo[i]].request.a);
            need_level(p, needed, asked[node->geo[i]].request.b);
        }
    }
    for (int l = 0; l < p->level_count; l++)
        if (p->levels[l].kind == PNET_GEO_INPUT && !p->inputs[p->levels[l].input].unused)
            needed[l] = true;
    return needed;
}

/* The rows of an input are ordered along the finest grid that is sampled from it. */
static void order_inputs(struct pnet_plan *p)
{
    for (int l = 0; l < p->level_count; l++)
        for (int g = 0; g < p->level_count; g++) {
            struct pnet_level_info *in = &p->levels[l];
            const struct pnet_level_info *grid = &p->levels[g];
            if (in->kind != PNET_GEO_INPUT || grid->kind != PNET_GEO_GRID || grid->finer != l)
                continue;
            if (in->grid.base == 0 || grid->grid.base < in->grid.base)
                in->grid = (struct pnet_grid){grid->grid.base, grid->grid.inverse_base, 1};
        }
}

/* Requires the schedule, which says which nodes run backward. Guarantees the items in an order in
   which they can be built, each with the forms this plan reads, and node->geo pointing at them. */
void pnet_pass_geometry(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    int asked_count = p->geo_count;
    struct pnet_geo_item *asked =
        pnet_arena_array(&c->arena, (size_t)asked_count + 1, sizeof *asked);
    if (!asked) return;
    if (asked_count) memcpy(asked, p->geo, (size_t)asked_count * sizeof *asked);
    p->geo_count = 0;
    bool *needed = needed_levels(c, asked);
    if (!needed) return;
    struct map known = {0};
    order_inputs(p);
    for (int l = 0; l < p->level_count; l++)
        if (needed[l] && pnet_geo_kind(p->levels[l].kind)->walk)
            find_item(
                c, &known, &(struct pnet_geo_request){.kind = p->levels[l].kind, .a = l, .b = l});
    for (int s = 0; s < p->step_count && !c->arena.failed; s++) {
        struct pnet_node *n = &p->nodes[p->steps[s].node];
        for (int i = 0; i < n->geo_count; i++) {
            if (!p->steps[s].backward) {
                n->geo[i] = find_item(c, &known, &asked[n->geo[i]].request);
                if (c->arena.failed) return;
                p->geo[n->geo[i]].users++;
            }
            p->geo[n->geo[i]].forms |=
                p->steps[s].backward ? n->backward_forms[i] : n->forward_forms[i];
        }
    }
    if (p->result >= 0) { /* from the result's level back to the points of the file */
        int level = p->tensors[p->result].type.level;
        if (p->levels[level].finer >= 0) {
            int input = level;
            while (p->levels[input].finer >= 0) input = p->levels[input].finer;
            find_item(c, &known,
                &(struct pnet_geo_request){.kind = PNET_GEO_PARENT, .a = input, .b = level});
        }
    }
}
