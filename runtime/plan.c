#include "runtime/plan.h"

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

bool pnet_plan_reads_tiles(const struct pnet_plan *p, int item)
{
    if (!p->algos) return pnet_conv_algo_reads_tiles(p->algo);
    for (int n = 0; n < p->node_count; n++) {
        if (!pnet_plan_convolves(p, n) || p->nodes[n].geo[0] != item) continue;
        for (int d = PNET_FORWARD; d < (p->training ? PNET_DIRECTIONS : PNET_DF); d++)
            if (pnet_conv_algo_reads_tiles(p->algos[n].of[d])) return true;
    }
    return false;
}

enum pnet_storage pnet_plan_storage(const struct pnet_plan *p, int tensor)
{
    const struct pnet_plan_tensor *t = &p->tensors[tensor];
    bool features = t->type.type == PNET_F32 && !t->type.pose && t->role != PNET_ROLE_SAVED &&
                    t->type.level != p->scalar_level;
    return features && p->device == PNET_CUDA ? pnet_storage_of(p->precision) : PNET_STORE_F32;
}
