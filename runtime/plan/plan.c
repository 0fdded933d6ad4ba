#include "runtime/plan/plan.h"

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

bool pnet_plan_is_cloud(const struct pnet_plan *p, int tensor)
{
    const struct pnet_type *t = &p->tensors[tensor].type;
    return t->type == PNET_F32 && t->width == 3 && p->levels[t->level].kind == PNET_GEO_POINTS;
}

bool pnet_plan_one_frame(const struct pnet_plan *p)
{
    for (int i = 0; i < p->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[i].request;
        int a = p->levels[q->a].input, b = p->levels[q->b].input;
        if (a >= 0 && b >= 0 && a != b && !pnet_geo_kind(q->kind)->reads) return true;
    }
    return false;
}
