/* When each tensor is needed, and which ones can live in another's memory. */
#include "compiler/internal.h"

#include <math.h>

static void touch(struct pnet_plan *p, int tensor, int step)
{
    struct pnet_plan_tensor *t = &p->tensors[tensor];
    if (t->first < 0 || step < t->first) t->first = step;
    if (step > t->last) t->last = step;
}

static void touch_forward(struct pnet_plan *p, const struct pnet_node *n, int step)
{
    for (int i = 0; i < n->in_count; i++) touch(p, n->in[i], step);
    touch(p, n->out, step);
    for (int i = 0; i < n->saved_count; i++)
        if (p->tensors[n->saved[i]].type.width &&
            (p->training || !p->tensors[n->saved[i]].training_only))
            touch(p, n->saved[i], step);
}

static void touch_backward(
    struct pnet_plan *p, const struct pnet_node *n, const struct pnet_step *s, int step)
{
    for (int i = 0; i < n->in_count; i++) {
        if (n->op->keep & (1u << i)) touch(p, n->in[i], step);
        if (s->gin[i] >= 0) touch(p, s->gin[i], step);
    }
    if ((n->op->keep & PNET_KEEP_OUT) || n->act) touch(p, n->out, step);
    for (int i = 0; i < n->saved_count; i++)
        if (p->tensors[n->saved[i]].first >= 0) touch(p, n->saved[i], step);
    touch(p, s->gout, step);
}

/* Is `b` on points that are generated for the rows of `a`, of which it has as many elements? */
static bool is_split(const struct pnet_plan *p, struct pnet_type a, struct pnet_type b)
{
    const struct pnet_level_info *l = &p->levels[b.level];
    return l->kind == PNET_GEO_POINTS && l->from == a.level &&
           (int64_t)b.width * l->count == a.width;
}

/* Is it stored in float32 in every precision? */
static bool is_exact(const struct pnet_plan *p, const struct pnet_plan_tensor *t)
{
    return t->role == PNET_ROLE_GRAD ? p->tensors[t->of].exact : t->exact;
}

static bool same_size(
    const struct pnet_plan *p, const struct pnet_plan_tensor *x, const struct pnet_plan_tensor *y)
{
    struct pnet_type a = x->type, b = y->type;
    if (a.type != b.type || is_exact(p, x) != is_exact(p, y)) return false;
    return (a.level == b.level && a.width == b.width) || is_split(p, a, b) || is_split(p, b, a);
}

/* `guest` is first written in the step in which `host` dies: it may take over the memory. */
static void share(struct pnet_plan *p, int host, int guest, int step)
{
    struct pnet_plan_tensor *root = &p->tensors[p->tensors[host].shares], *g = &p->tensors[guest];
    bool owned =
        root->role != PNET_ROLE_INPUT && g->shares == guest && g->first == step && !root->kept;
    if (!owned || root->last != step || !same_size(p, root, g)) return;
    g->shares = p->tensors[host].shares;
    root->last = g->last;
    root->kept = g->kept;
}

static int times_read(const struct pnet_node *n, int tensor)
{
    int count = 0;
    for (int i = 0; i < n->in_count; i++) count += n->in[i] == tensor;
    return count;
}

/* Keeps what evaluation reads of a loss: its value, its labels, and without a backward part what it saves of its counts. */
static void keep_loss(struct pnet_plan *p, int tensor)
{
    if (p->tensors[tensor].node < 0) return;
    const struct pnet_node *n = &p->nodes[p->tensors[tensor].node];
    p->tensors[tensor].kept = true;
    for (int i = 0; i < n->in_count && n->op->mean; i++)
        if (pnet_plan_is_label(p, n->in[i]) && p->tensors[n->in[i]].role == PNET_ROLE_RESULT)
            p->tensors[n->in[i]].kept = true;
    for (int i = 0; i < n->saved_count && n->op->mean && !p->training; i++)
        if (p->tensors[n->saved[i]].type.level == p->scalar_level)
            p->tensors[n->saved[i]].kept = true;
}

static void keep_losses(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    double *factor = pnet_arena_array(&c->arena, (size_t)p->tensor_count + 1, sizeof *factor);
    for (int i = 0; i < p->objective_count && factor; i++) {
        if (p->objectives[i].metric) continue;
        pnet_plan_terms(p, p->objectives[i].tensor, factor);
        for (int t = 0; t < p->tensor_count; t++)
            if (!isnan(factor[t])) keep_loss(p, t);
    }
}

/* Requires the schedule. Guarantees first and last of every tensor, and `shares` for those that
   need no memory of their own; a root's lifetime covers all that live in it. */
void pnet_pass_lifetimes(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    keep_losses(c);
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_node *n = &p->nodes[p->steps[s].node];
        if (p->steps[s].backward)
            touch_backward(p, n, &p->steps[s], s);
        else
            touch_forward(p, n, s);
    }
    for (int t = 0; t < p->tensor_count; t++) {
        struct pnet_plan_tensor *tensor = &p->tensors[t];
        if (tensor->kept && tensor->first >= 0) tensor->last = p->step_count - 1;
        /* the gradient of a loss is set before the backward part begins */
        if (tensor->role == PNET_ROLE_GRAD &&
            p->tensors[tensor->of].type.level == p->scalar_level && tensor->first >= 0)
            tensor->first = p->forward_steps;
        /* gradients of inputs are read by the caller */
        if (tensor->role == PNET_ROLE_GRAD && p->tensors[tensor->of].role == PNET_ROLE_INPUT) {
            tensor->kept = true;
            tensor->last = p->step_count - 1;
        }
    }
    /* likewise those that the caller gives */
    for (int i = 0; i < p->output_count; i++)
        if (p->outputs[i].gradient >= 0)
            p->tensors[p->outputs[i].gradient].first = p->forward_steps;
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_step *step = &p->steps[s];
        const struct pnet_node *n = &p->nodes[step->node];
        if (!step->backward && (n->op->flags & PNET_IN_PLACE) && times_read(n, n->in[0]) == 1)
            share(p, n->in[0], n->out, s);
        if (step->backward && (n->op->flags & PNET_GRAD_IN_PLACE) && step->gin[0] >= 0 &&
            !step->gin_add[0] && times_read(n, n->in[0]) == 1)
            share(p, step->gout, step->gin[0], s);
    }
}

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    const unsigned char *b = data;
    for (size_t i = 0; i < size; i++) h = (h ^ b[i]) * 1099511628211u;
    return h;
}

/* What two plans must share to give the same results from the same weights. */
void pnet_pass_hash(struct pnet_compilation *c)
{
    const struct pnet_plan *p = &c->plan;
    const int32_t version = PNET_GEOMETRY_VERSION;
    uint64_t h = mix(14695981039346656037u, &version, sizeof version);
    for (int s = 0; s < p->step_count; s++) {
        const struct pnet_node *n = &p->nodes[p->steps[s].node];
        for (const char *t = n->path; *t; t++) h = mix(h, t, 1);
        for (int i = 0; n->op->args[i].name && i < PNET_MAX_ARGS; i++) {
            const struct pnet_attr *a = &n->attr[i];
            if (!a->set) continue;
            if (n->op->args[i].type == PNET_ARG_REALS)
                h = mix(h, a->list.items, (size_t)a->list.count * sizeof *a->list.items);
            else if (n->op->args[i].type == PNET_ARG_MATCHES)
                h = mix(h, a->matches, sizeof *a->matches);
            else
                h = mix(h, &a->i, sizeof a->i);
        }
        h = mix(h, n->in, (size_t)n->in_count * sizeof n->in[0]);
        h = mix(h, &n->act, sizeof n->act);
    }
    for (int l = 0; l < p->level_count; l++) {
        h = mix(h, &p->levels[l].grid, sizeof p->levels[l].grid);
        if (p->levels[l].kind == PNET_GEO_POINTS || p->levels[l].kind == PNET_GEO_CHUNKS)
            h = mix(h, &p->levels[l].count, sizeof p->levels[l].count);
    }
    h = mix(h, &p->degrade, sizeof p->degrade);
    c->plan.hash = h;
}
