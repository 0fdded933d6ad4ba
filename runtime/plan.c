#include "runtime/plan.h"

#include <string.h>

int pnet_plan_param_find(const struct pnet_plan *p, const char *name)
{
    for (int i = 0; i < p->param_count; i++)
        if (strcmp(p->params[i].name, name) == 0) return i;
    return -1;
}

enum pnet_storage pnet_plan_storage(const struct pnet_plan *p, int tensor)
{
    (void)p;
    (void)tensor;
    return PNET_STORE_F32;
}
