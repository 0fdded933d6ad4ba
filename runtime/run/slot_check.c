/* What a layer asks of the sizes of a batch, which no rule knows. */
#include "runtime/run/slot_build.h"

#include <stdlib.h>

/* Copies the row splits of a level to the host. */
static void bring(const struct pnet_slot *s, int level, int64_t *to)
{
    pnet_device_get(s->memory->device, to, pnet_slot_splits(s, level),
        (size_t)(s->counts.samples + 1) * sizeof *to);
}

static enum pnet_status check_node(
    const struct pnet_slot *s, const struct pnet_node *n, int64_t *splits, struct pnet_error *e)
{
    const struct pnet_plan_tensor *t = s->plan->tensors;
    int64_t *x = splits, *y = splits + s->counts.samples + 1;
    bring(s, t[n->in[0]].type.level, x);
    bring(s, t[n->in[1]].type.level, y);
    for (int32_t i = 0; i < s->counts.samples; i++) {
        int64_t of_x = x[i + 1] - x[i], of_y = y[i + 1] - y[i];
        if (of_x != of_y && of_x && of_y)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%s: %s() needs as many points in %s as in %s, but sample %d of the batch has %lld "
                "and "
                "%lld (samples count from 0)",
                n->path, n->op->name, n->op->args[0].name, n->op->args[1].name, i, (long long)of_x,
                (long long)of_y);
    }
    return PNET_OK;
}

enum pnet_status pnet_slot_check_sizes(const struct pnet_slot *s, struct pnet_error *e)
{
    const struct pnet_plan *p = s->plan;
    int64_t *splits = NULL;
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < p->node_count && !st; i++) {
        const struct pnet_node *n = &p->nodes[i];
        if (n->dead || !(n->op->flags & PNET_SAME_SIZES)) continue;
        if (!splits) splits = malloc(2 * (size_t)(s->counts.samples + 1) * sizeof *splits);
        st = splits ? check_node(s, n, splits, e) : pnet_error_memory(e);
    }
    free(splits);
    return st;
}
