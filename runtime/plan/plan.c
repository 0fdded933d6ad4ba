#include "runtime/plan/plan.h"

#include <math.h>
#include <string.h>

int pnet_plan_param_find(const struct pnet_plan *p, const char *name)
{
    int low = 0, high = p->param_count;
    while (low < high) { /* the first that does not precede it */
        int middle = low + (high - low) / 2;
        if (strcmp(p->params[p->params_by_name[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    int param = low < p->param_count ? p->params_by_name[low] : -1;
    return param >= 0 && strcmp(p->params[param].name, name) == 0 ? param : -1;
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

bool pnet_plan_is_label(const struct pnet_plan *p, int tensor)
{
    const struct pnet_type *t = &p->tensors[tensor].type;
    return t->type == PNET_I32 && t->classes;
}

static double number_of(const struct pnet_node *n, const char *argument)
{
    int i = 0;
    while (strcmp(n->op->args[i].name, argument) != 0) i++;
    return n->attr[i].r;
}

static void add_factor(double *factor, double by)
{
    *factor = isnan(*factor) ? by : *factor + by;
}

void pnet_plan_terms(const struct pnet_plan *p, int tensor, double *factor)
{
    for (int t = 0; t < p->tensor_count; t++) factor[t] = (double)NAN;
    factor[tensor] = 1;
    /* nodes come after what they read */
    for (int i = p->tensors[tensor].node; i >= 0; i--) {
        const struct pnet_node *n = &p->nodes[i];
        bool sum = n->op->flags & PNET_SUMS, scales = strcmp(n->op->name, "scale") == 0;
        double by = factor[n->out];
        if (n->dead || n->act || isnan(by) || !(sum || scales)) continue;
        factor[n->out] = (double)NAN;
        add_factor(&factor[n->in[0]], scales ? by * number_of(n, "by") : by);
        if (sum) add_factor(&factor[n->in[1]], by * number_of(n, "scale"));
    }
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
