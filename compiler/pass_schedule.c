/* The schedule: forward in source order, then the explicit backward, parameters in the order it
 * finishes them. */
#include "compiler/internal.h"

#include <stdlib.h>
#include <string.h>

static bool trains(const struct pnet_plan *p, const struct pnet_node *n)
{
    for (int i = 0; i < n->param_count; i++)
        if (p->params[n->param[i]].info.trained) return true;
    return false;
}

/* wants[t]: a gradient with respect to tensor t leads to something that learns. */
static bool *wanted_gradients(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    bool *wants = pnet_arena_array(&c->arena, (size_t)p->tensor_count + 1, sizeof *wants);
    if (!wants) return NULL;
    for (int t = 0; t < p->tensor_count; t++)
        wants[t] = c->options.input_gradients && p->tensors[t].role == PNET_ROLE_INPUT &&
                   p->tensors[t].type.type == PNET_F32;
    for (int n = 0; n < p->node_count; n++) {
        const struct pnet_node *node = &p->nodes[n];
        if (node->dead || (node->op->flags & PNET_NO_GRAD) || !node->op->backward) continue;
        bool any = trains(p, node);
        for (int i = 0; i < node->in_count; i++) any |= wants[node->in[i]];
        wants[node->out] = any;
    }
    return wants;
}

/* gradient[t]: the tensor that holds the gradient of t; -1 none yet. */
static int gradient_of(struct pnet_compilation *c, int *gradient, int tensor, bool *fresh)
{
    *fresh = gradient[tensor] < 0;
    if (!*fresh) return gradient[tensor];
    struct pnet_plan_tensor t = c->plan.tensors[tensor];
    t = (struct pnet_plan_tensor){
        .type = t.type, .role = PNET_ROLE_GRAD, .name = t.name, .node = -1, .of = tensor};
    gradient[tensor] = pnet_plan_add_tensor(c, t, c->tensor_spans[tensor]);
    return gradient[tensor];
}

static void backward_step(struct pnet_compilation *c, int n, const bool *wants, int *gradient)
{
    struct pnet_plan *p = &c->plan;
    struct pnet_step s = {.node = n, .backward = true, .gout = gradient[p->nodes[n].out]};
    for (int i = 0; i < p->nodes[n].in_count; i++) {
        int in = p->nodes[n].in[i];
        s.gin[i] = -1;
        if (!wants[in]) continue;
        bool fresh;
        s.gin[i] = gradient_of(c, gradient, in, &fresh);
        s.gin_add[i] = !fresh;
    }
    for (int i = 0; i < p->nodes[n].param_count; i++) {
        struct pnet_plan_param *q = &p->params[p->nodes[n].param[i]];
        s.gparam_add[i] = q->last_use >= 0;
        if (q->info.trained) q->last_use = p->step_count;
    }
    pnet_plan_add_step(c, s);
}

/* Requires a graph that no pass changes any more. Guarantees the schedule, with what each backward
 * step writes or adds to. */
void pnet_pass_schedule(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    /* nothing reads a metric, so metrics on the host may come last */
    for (int host = 0; host < 2; host++)
        for (int n = 0; n < p->node_count; n++) {
            bool on_host = p->nodes[n].op->flags & PNET_ON_HOST;
            if (!p->nodes[n].dead && on_host == host)
                pnet_plan_add_step(c, (struct pnet_step){.node = n, .gout = -1});
        }
    p->forward_steps = p->step_count;
    p->training = c->options.purpose == PNET_FOR_TRAINING;
    if (!p->training || c->arena.failed) return;
    bool *wants = wanted_gradients(c);
    /* every tensor gets at most one gradient, so the arrays never see more than these */
    int *gradient = pnet_arena_array(&c->arena, (size_t)p->tensor_count + 1, sizeof *gradient);
    if (!wants || !gradient) return;
    for (int t = 0; t < p->tensor_count; t++) gradient[t] = -1;
    for (int i = 0; i < p->objective_count; i++) {
        bool fresh;
        if (!p->objectives[i].metric && wants[p->objectives[i].tensor])
            gradient_of(c, gradient, p->objectives[i].tensor, &fresh);
    }
    for (int i = 0; i < p->output_count; i++) {
        bool fresh;
        if (wants[p->outputs[i].tensor])
            p->outputs[i].gradient = gradient_of(c, gradient, p->outputs[i].tensor, &fresh);
    }
    for (int n = p->node_count - 1; n >= 0 && !c->arena.failed; n--)
        if (!p->nodes[n].dead && gradient[p->nodes[n].out] >= 0)
            backward_step(c, n, wants, gradient);
}

struct order {
    const char *name;
    int param, last_use;
    bool trained;
};

static int by_name(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->param - y->param;
}

static int by_finish(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->trained != y->trained) return x->trained ? -1 : 1;
    if (x->last_use != y->last_use) return x->last_use < y->last_use ? -1 : 1;
    return x->param - y->param;
}

/* Requires the schedule. Guarantees offsets: trained parameters first, in the order backward
   finishes their gradients; parameters of dead nodes have offset -1 and no node. Guarantees params_by_name. */
void pnet_pass_parameters(struct pnet_compilation *c)
{
    enum { ALIGN = 32 }; /* elements: a cache line of a GPU; two of a CPU */
    struct pnet_plan *p = &c->plan;
    struct order *order = pnet_arena_array(&c->arena, (size_t)p->param_count + 1, sizeof *order);
    p->params_by_name =
        pnet_arena_array(&c->arena, (size_t)p->param_count + 1, sizeof *p->params_by_name);
    if (!order || !p->params_by_name) return;
    int count = 0;
    for (int i = 0; i < p->param_count; i++) {
        p->params[i].offset = p->params[i].node = -1;
        order[i] = (struct order){.name = p->params[i].name, .param = i};
    }
    qsort(order, (size_t)p->param_count, sizeof *order, by_name);
    for (int i = 0; i < p->param_count; i++) p->params_by_name[i] = order[i].param;
    for (int n = p->node_count; n-- > 0;) /* the first node of each is set last */
        for (int k = 0; k < p->nodes[n].param_count && !p->nodes[n].dead; k++)
            p->params[p->nodes[n].param[k]].node = n;
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        if (q->node >= 0) order[count++] = (struct order){q->name, i, q->last_use, q->info.trained};
    }
    qsort(order, (size_t)count, sizeof *order, by_finish);
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        struct pnet_plan_param *q = &p->params[order[i].param];
        q->offset = at;
        at += (q->count + ALIGN - 1) / ALIGN * ALIGN;
        if (q->info.trained) {
            p->trained_elements = at;
            p->parameter_count += q->count;
        }
    }
    for (int f = 0; f < p->fold_count;
         f++) /* what was folded away is still what the network is made of */
        p->parameter_count +=
            p->params[p->folds[f].scale].count + p->params[p->folds[f].shift].count;
    p->param_elements = at;
}
