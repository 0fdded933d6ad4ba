#include "runtime/plan/plan.h"

#include "runtime/plan/geo_look.h"

#include <string.h>

int pnet_plan_param_find(const struct pnet_plan *p, const char *name)
{
    for (int i = 0; i < p->param_count; i++)
        if (strcmp(p->params[i].name, name) == 0) return i;
    return -1;
}

bool pnet_plan_convolves(const struct pnet_plan *p, int node)
{
    const struct pnet_node *n = &p->nodes[node];
    return !n->dead && (n->op->flags & PNET_CONVOLVES) && n->geo_count > 0;
}

struct pnet_algos pnet_plan_algos(const struct pnet_plan *p, int node)
{
    return p->algos ? p->algos[node] : (struct pnet_algos){{p->algo, p->algo, p->algo}};
}

/* What a step tells its op before there are counts. */
static struct pnet_exec exec_of(
    const struct pnet_plan *p, const struct pnet_step *s, struct pnet_geo_view views[PNET_MAX_GEO])
{
    static char wanted;
    const struct pnet_node *n = &p->nodes[s->node];
    struct pnet_exec x = {.device = p->device,
        .precision = p->precision,
        .algos = pnet_plan_algos(p, s->node),
        .attr = n->attr,
        .in_count = n->in_count};
    for (int i = 0; i < n->in_count; i++) {
        const struct pnet_type *t = &p->tensors[n->in[i]].type;
        x.in[i] = (struct pnet_tensor){.width = t->width, .type = t->type, .level = t->level};
        if (s->backward && s->gin[i] >= 0) x.gin[i].data = &wanted;
    }
    const struct pnet_type *out = &p->tensors[n->out].type;
    x.out = (struct pnet_tensor){.width = out->width, .type = out->type, .level = out->level};
    for (int i = 0; i < n->geo_count; i++) {
        views[i] = pnet_geo_view_of(&(struct pnet_geo_look){
            .plan = p, .q = &p->geo[n->geo[i]].request, .item = n->geo[i], .device = p->device});
        x.geo[i] = &views[i];
    }
    return x;
}

/* The forms that a step reads of each of its geometry items. */
static unsigned step_forms(const struct pnet_plan *p, const struct pnet_step *s)
{
    const struct pnet_node *n = &p->nodes[s->node];
    struct pnet_geo_view views[PNET_MAX_GEO];
    struct pnet_exec x = exec_of(p, s, views);
    return n->op->forms(&x, s->backward);
}

static unsigned with_choices(const struct pnet_plan *p, unsigned forms)
{
    if (p->choosing && forms & PNET_FORM_FORWARD_TILES) forms |= PNET_FORM_FORWARD;
    if (p->choosing && forms & PNET_FORM_TRANSPOSED_TILES) forms |= PNET_FORM_TRANSPOSED;
    return forms;
}

unsigned pnet_plan_forms(const struct pnet_plan *p, int item)
{
    unsigned forms = p->geo[item].forms;
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_node *n = &p->nodes[p->steps[s].node];
        for (int i = 0; i < n->geo_count && n->op->forms; i++)
            if (n->geo[i] == item) forms |= step_forms(p, &p->steps[s]);
    }
    return with_choices(p, forms);
}

void pnet_plan_all_forms(const struct pnet_plan *p, unsigned *forms)
{
    for (int g = 0; g < p->geo_count; g++) forms[g] = p->geo[g].forms;
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_node *n = &p->nodes[p->steps[s].node];
        for (int i = 0; i < n->geo_count && n->op->forms; i++)
            forms[n->geo[i]] |= step_forms(p, &p->steps[s]);
    }
    for (int g = 0; g < p->geo_count; g++) forms[g] = with_choices(p, forms[g]);
}

enum pnet_storage pnet_plan_storage(const struct pnet_plan *p, int tensor)
{
    const struct pnet_plan_tensor *t = &p->tensors[tensor];
    bool features = t->type.type == PNET_F32 && !t->type.pose && t->role != PNET_ROLE_SAVED &&
                    t->type.level != p->scalar_level;
    return features && p->device == PNET_CUDA ? pnet_storage_of(p->precision) : PNET_STORE_F32;
}
