/* Which features are coordinates, so that they are stored in float32 in every precision. */
#include "compiler/internal.h"

#include <string.h>

extern const struct pnet_op pnet_op_narrow;

static bool has_features(const struct pnet_plan *p, int tensor)
{
    const struct pnet_type *t = &p->tensors[tensor].type;
    return t->type == PNET_F32 && !t->pose && t->level != p->scalar_level;
}

/* From the nodes that read coordinates, and the points that are the result, back to those that may write float32 from 16 bits. */
static void mark(struct pnet_plan *p)
{
    if (p->result >= 0 && pnet_plan_is_cloud(p, p->result)) p->tensors[p->result].exact = true;
    for (int i = p->node_count - 1; i >= 0; i--) {
        const struct pnet_node *n = &p->nodes[i];
        bool passes = p->tensors[n->out].exact && !(n->op->flags & PNET_WIDENS);
        if (n->dead || (!passes && !(n->op->flags & PNET_READS_EXACT))) continue;
        for (int k = 0; k < n->in_count; k++)
            if (has_features(p, n->in[k])) p->tensors[n->in[k]].exact = true;
    }
}

/* The generated points that the first metric of point sets reads, else the last loss; -1: there are none. */
static int find_prediction(const struct pnet_plan *p)
{
    int found = -1;
    for (int i = 0; i < p->node_count; i++) {
        const struct pnet_node *n = &p->nodes[i];
        int points = -1;
        if (n->dead || n->op->class_ == PNET_LAYER || !(n->op->flags & PNET_READS_EXACT)) continue;
        for (int k = n->in_count - 1; k >= 0; k--)
            if (pnet_plan_is_cloud(p, n->in[k])) points = n->in[k];
        if (points < 0) continue;
        if (n->op->class_ == PNET_METRIC) return points;
        found = points;
    }
    return found;
}

/* Must a node get its coordinates as other features are stored? Kernels take features of one storage. */
static bool needs_narrow(const struct pnet_plan *p, const struct pnet_node *n)
{
    bool exact = false, other = has_features(p, n->out) && !p->tensors[n->out].exact;
    if (n->dead || n->op->flags & (PNET_READS_EXACT | PNET_ON_HOST)) return false;
    if (p->tensors[n->out].exact) return false; /* so are its inputs, or it widens them */
    for (int k = 0; k < n->in_count; k++) {
        if (!has_features(p, n->in[k])) continue;
        exact |= p->tensors[n->in[k]].exact;
        other |= !p->tensors[n->in[k]].exact;
    }
    return exact && other;
}

/* Appends a node that stores a tensor as other features are stored, and returns its result; `narrowed` remembers it. */
static int narrow(struct pnet_compilation *c, struct pnet_node *to, int *count, int tensor,
    uint32_t line, int *narrowed)
{
    if (narrowed[tensor] >= 0) return narrowed[tensor];
    const struct pnet_plan_tensor *t = &c->plan.tensors[tensor];
    const char *path = pnet_arena_printf(&c->arena, "%s.narrow", t->name);
    struct pnet_plan_tensor out = {
        .type = t->type, .role = PNET_ROLE_RESULT, .name = path, .node = *count, .of = -1};
    struct pnet_node n = {.op = &pnet_op_narrow, .in_count = 1, .path = path, .line = line};
    n.in[0] = tensor;
    n.out = narrowed[tensor] = pnet_plan_add_tensor(c, out, c->tensor_spans[tensor]);
    to[(*count)++] = n;
    return n.out;
}

/* Copies the nodes to `to`, each behind the narrowed tensors that it needs. `place`: the new number of each. */
static int insert(struct pnet_compilation *c, struct pnet_node *to, int *narrowed, int *place)
{
    int count = 0;
    for (int i = 0; i < c->plan.node_count && !c->arena.failed; i++) {
        struct pnet_node n = c->plan.nodes[i];
        bool narrows = needs_narrow(&c->plan, &n);
        for (int k = 0; k < n.in_count && narrows; k++)
            if (has_features(&c->plan, n.in[k]) && c->plan.tensors[n.in[k]].exact)
                n.in[k] = narrow(c, to, &count, n.in[k], n.line, narrowed);
        place[i] = count;
        to[count++] = n;
    }
    return count;
}

/* Requires a graph that is not fused any further. Guarantees that tensors read, or given, as coordinates are marked exact, and
   that the features of each node, but for coordinates that it reads or widens, are all exact or none; the predicted points of
   training and evaluation are kept. */
void pnet_pass_exact(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    bool any = false;
    mark(p);
    p->prediction = p->result < 0 ? find_prediction(p) : -1;
    if (p->prediction >= 0) p->tensors[p->prediction].kept = true;
    for (int i = 0; i < p->node_count; i++) any |= needs_narrow(p, &p->nodes[i]);
    if (!any) return;
    int tensors = p->tensor_count;
    /* a tensor is narrowed once */
    struct pnet_node *to =
        pnet_arena_array(&c->arena, (size_t)p->node_count + (size_t)tensors, sizeof *to);
    int *narrowed = pnet_arena_array(&c->arena, (size_t)tensors, sizeof *narrowed);
    int *place = pnet_arena_array(&c->arena, (size_t)p->node_count, sizeof *place);
    if (!to || !narrowed || !place) return;
    for (int t = 0; t < tensors; t++) narrowed[t] = -1;
    int count = insert(c, to, narrowed, place);
    if (c->arena.failed) return;
    for (int t = 0; t < tensors; t++)
        if (p->tensors[t].node >= 0) p->tensors[t].node = place[p->tensors[t].node];
    for (int i = 0; i < p->objective_count; i++)
        if (p->objectives[i].node >= 0) p->objectives[i].node = place[p->objectives[i].node];
    p->nodes = to;
    p->node_count = c->capacity.nodes = count;
}
