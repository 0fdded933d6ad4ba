#include "runtime/train/loss_terms.h"

#include <math.h>
#include <stdlib.h>

/* Appends the terms of a loss. `factor` [tensor_count]: scratch. False: memory is out. */
static bool add_terms(
    struct pnet_loss_terms *t, const struct pnet_plan *p, int objective, double *factor)
{
    int count = t->count;
    pnet_plan_terms(p, p->objectives[objective].tensor, factor);
    for (int i = 0; i < p->tensor_count; i++) count += !isnan(factor[i]);
    struct pnet_loss_term *items = realloc(t->items, (size_t)count * sizeof *items + 1);
    if (!items) return false;
    t->items = items;
    for (int i = 0; i < p->tensor_count; i++)
        if (!isnan(factor[i])) items[t->count++] = (struct pnet_loss_term){objective, i, factor[i]};
    return true;
}

enum pnet_status pnet_loss_terms_find(
    const struct pnet_plan *p, struct pnet_loss_terms *t, struct pnet_error *e)
{
    double *factor = malloc((size_t)p->tensor_count * sizeof *factor + 1);
    bool found = factor != NULL;
    *t = (struct pnet_loss_terms){.count = 0};
    for (int i = 0; found && i < p->objective_count; i++)
        found = p->objectives[i].metric || add_terms(t, p, i, factor);
    free(factor);
    if (found) return PNET_OK;
    pnet_loss_terms_free(t);
    return pnet_error_memory(e);
}

void pnet_loss_terms_free(struct pnet_loss_terms *t)
{
    free(t->items);
    *t = (struct pnet_loss_terms){.count = 0};
}

/* Returns the labels that a batch brings, from which labels were pooled or interpolated. */
static struct pnet_tensor labels_of(
    const struct pnet_plan *p, const struct pnet_batch *b, int tensor)
{
    while (p->tensors[tensor].role == PNET_ROLE_RESULT)
        tensor = p->nodes[p->tensors[tensor].node].in[0];
    const struct pnet_plan_tensor *t = &p->tensors[tensor];
    const struct pnet_batch_input *in = &b->inputs[t->input];
    return (struct pnet_tensor){.data = in->fields[t->field],
        .rows = t->type.level == p->sample_level ? b->samples : in->rows,
        .width = 1,
        .type = PNET_I32};
}

/* Has a term nothing to count? Of losses that count neither labels nor matches this is false. */
static bool is_idle(const struct pnet_plan *p, const struct pnet_batch *b,
    const struct pnet_counts *counts, int tensor)
{
    const struct pnet_node *n = &p->nodes[p->tensors[tensor].node];
    struct pnet_exec x = {.attr = n->attr, .in_count = n->in_count};
    bool labels = false;
    if (n->op->class_ != PNET_LOSS || !n->op->mean) return false;
    for (int i = 0; i < n->in_count; i++) {
        x.in[i].width = p->tensors[n->in[i]].type.width;
        if (!pnet_plan_is_label(p, n->in[i])) continue;
        x.in[i] = labels_of(p, b, n->in[i]);
        labels = true;
    }
    if (labels) return !(n->op->mean(&x, 0).count > 0);
    for (int i = 0; i < n->geo_count; i++)
        if (p->geo[n->geo[i]].request.kind == PNET_GEO_MATCHES) return !counts->of[n->geo[i]][0];
    return false;
}

uint64_t pnet_loss_terms_idle(const struct pnet_plan *p, const struct pnet_loss_terms *t,
    const struct pnet_batch *b, const struct pnet_counts *counts)
{
    uint64_t idle = 0, busy = 0;
    for (int i = 0; i < t->count; i++) {
        uint64_t bit = UINT64_C(1) << t->items[i].objective;
        if (is_idle(p, b, counts, t->items[i].tensor))
            idle |= bit;
        else
            busy |= bit;
    }
    return idle & ~busy;
}
