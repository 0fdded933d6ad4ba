/* The tables of the plan while they grow. Every add_* returns the index, or 0 with the arena marked
 * failed. */
#include "compiler/internal.h"

#include <string.h>

/* Room for one more item of `size` bytes; the old array stays in the arena. */
static void *room(struct pnet_compilation *c, void *items, int count, int *capacity, size_t size)
{
    if (count < *capacity) return items;
    int wanted = *capacity ? 2 * *capacity : 16;
    void *bigger = pnet_arena_array(&c->arena, (size_t)wanted, size);
    if (!bigger) return NULL;
    if (count) memcpy(bigger, items, (size_t)count * size);
    *capacity = wanted;
    return bigger;
}

#define ADD(field, counter, cap, item)                                                             \
    do {                                                                                           \
        void *bigger =                                                                             \
            room(c, c->plan.field, c->plan.counter, &c->capacity.cap, sizeof *c->plan.field);      \
        if (!bigger) return 0;                                                                     \
        c->plan.field = bigger;                                                                    \
        c->plan.field[c->plan.counter] = item;                                                     \
        return c->plan.counter++;                                                                  \
    } while (0)

int pnet_plan_add_level(struct pnet_compilation *c, struct pnet_level_info l)
{
    ADD(levels, level_count, levels, l);
}

int pnet_plan_add_tensor(
    struct pnet_compilation *c, struct pnet_plan_tensor t, struct pnet_span span)
{
    t.shares = c->plan.tensor_count;
    t.first = t.last = -1;
    struct pnet_span *spans =
        room(c, c->tensor_spans, c->plan.tensor_count, &c->tensor_span_capacity, sizeof *spans);
    if (!spans) return 0;
    c->tensor_spans = spans;
    spans[c->plan.tensor_count] = span;
    ADD(tensors, tensor_count, tensors, t);
}

int pnet_plan_add_node(struct pnet_compilation *c, struct pnet_node n)
{
    ADD(nodes, node_count, nodes, n);
}

int pnet_plan_add_param(struct pnet_compilation *c, struct pnet_plan_param p)
{
    int *uses = room(c, c->param_use, c->plan.param_count, &c->param_use_capacity, sizeof *uses);
    if (!uses) return 0;
    c->param_use = uses;
    uses[c->plan.param_count] = 0;
    ADD(params, param_count, params, p);
}

int pnet_plan_add_step(struct pnet_compilation *c, struct pnet_step s)
{
    ADD(steps, step_count, steps, s);
}

int pnet_plan_add_geo(struct pnet_compilation *c, struct pnet_geo_request q)
{
    struct pnet_geo_item item = {.request = q};
    ADD(geo, geo_count, geo, item);
}

int pnet_plan_add_objective(struct pnet_compilation *c, struct pnet_objective o)
{
    ADD(objectives, objective_count, objectives, o);
}

int pnet_plan_add_fold(struct pnet_compilation *c, struct pnet_plan_fold f)
{
    ADD(folds, fold_count, folds, f);
}
