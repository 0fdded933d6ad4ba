/* Which features are coordinates, so that they are stored in float32 in every precision: those that a network predicts, and
   those that it reads. */
#include "compiler/internal.h"

#include <string.h>

extern const struct pnet_op pnet_op_narrow, pnet_op_widen;

static bool has_features(const struct pnet_plan *p, int tensor)
{
    const struct pnet_type *t = &p->tensors[tensor].type;
    return t->type == PNET_F32 && !t->pose && t->level != p->scalar_level;
}

/* From the nodes that read coordinates, and the points that the caller reads, back to those that may write float32 from 16
   bits. */
static void mark(struct pnet_plan *p)
{
    if (p->result >= 0 && pnet_plan_is_cloud(p, p->result)) p->tensors[p->result].exact = true;
    for (int i = 0; i < p->output_count; i++)
        if (pnet_plan_is_cloud(p, p->outputs[i].tensor))
            p->tensors[p->outputs[i].tensor].exact = true;
    for (int i = p->node_count - 1; i >= 0; i--) {
        const struct pnet_node *n = &p->nodes[i];
        bool passes = p->tensors[n->out].exact && !(n->op->flags & PNET_WIDENS);
        if (n->dead || (!passes && !(n->op->flags & PNET_READS_EXACT))) continue;
        for (int k = 0; k < n->in_count; k++)
            if (has_features(p, n->in[k])) p->tensors[n->in[k]].exact = true;
    }
}

/* Does a node take features of either storage, side by side? */
static bool takes_any(const struct pnet_node *n)
{
    return n->op->flags & (PNET_READS_EXACT | PNET_ON_HOST);
}

static bool reads_any(const struct pnet_node *n, const bool *tensors)
{
    for (int i = 0; i < n->in_count; i++)
        if (tensors[n->in[i]]) return true;
    return false;
}

/* A field that a node reads beside positions is uploaded in float32 for it. */
static void mark_fields(struct pnet_plan *p, const struct pnet_node *n)
{
    for (int i = 0; i < n->in_count; i++)
        if (has_features(p, n->in[i]) && p->tensors[n->in[i]].role == PNET_ROLE_INPUT)
            p->tensors[n->in[i]].exact = true;
}

static bool is_position(const struct pnet_plan *p, const struct pnet_plan_tensor *t)
{
    return t->role == PNET_ROLE_INPUT && !t->type.pose &&
           p->inputs[t->input].fields[t->field].kind == PNET_INPUT_POSITION;
}

/* From the positions of clouds on to the layers that multiply first. The result of such a layer is stored as other features
   are if the layer can read few channels in float32 and write 16 bits; else it is float32 too, and what follows narrows it.
   `positions` [tensor_count]: what is computed from positions without such a layer. */
static void mark_positions(struct pnet_plan *p, bool *positions)
{
    for (int t = 0; t < p->tensor_count; t++) positions[t] = is_position(p, &p->tensors[t]);
    for (int i = 0; i < p->node_count; i++) {
        struct pnet_node *n = &p->nodes[i];
        if (n->dead || takes_any(n) || !reads_any(n, positions)) continue;
        n->exact = true;
        mark_fields(p, n);
        if (!has_features(p, n->out)) continue;
        bool multiplies = n->op->flags & PNET_LINEAR_OUT,
             few = p->tensors[n->in[0]].type.width <= PNET_EXACT_CHANNELS;
        positions[n->out] = !multiplies;
        if (!(n->op->flags & PNET_NARROWS) || !few) p->tensors[n->out].exact = true;
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
    if (n->dead || n->exact || takes_any(n)) return false;
    if (p->tensors[n->out].exact) return false; /* so are its inputs, or it widens them */
    for (int k = 0; k < n->in_count; k++) {
        if (!has_features(p, n->in[k])) continue;
        exact |= p->tensors[n->in[k]].exact;
        other |= !p->tensors[n->in[k]].exact;
    }
    return exact && other;
}

/* Must a node get other features as its positions are stored? */
static bool needs_wide(const struct pnet_plan *p, const struct pnet_node *n)
{
    if (n->dead || !n->exact) return false;
    for (int k = 0; k < n->in_count; k++)
        if (has_features(p, n->in[k]) && !p->tensors[n->in[k]].exact) return true;
    return false;
}

/* The nodes as they become. */
struct rewrite {
    struct pnet_compilation *c;
    struct pnet_node *nodes;
    int count;
    int *converted; /* [tensors]: a tensor in the other storage; -1: nothing reads it so */
};

/* Appends a node that stores a tensor in the other of the two ways, and returns its result. */
static int convert(struct rewrite *r, int tensor, uint32_t line)
{
    if (r->converted[tensor] >= 0) return r->converted[tensor];
    struct pnet_compilation *c = r->c;
    const struct pnet_plan_tensor *t = &c->plan.tensors[tensor];
    const struct pnet_op *op = t->exact ? &pnet_op_narrow : &pnet_op_widen;
    const char *path = pnet_arena_printf(&c->arena, "%s.%s", t->name, op->name);
    struct pnet_plan_tensor out = {.type = t->type,
        .role = PNET_ROLE_RESULT,
        .name = path,
        .node = r->count,
        .of = -1,
        .exact = !t->exact};
    struct pnet_node n = {.op = op, .in_count = 1, .path = path, .line = line};
    n.in[0] = tensor;
    n.out = r->converted[tensor] = pnet_plan_add_tensor(c, out, c->tensor_spans[tensor]);
    r->nodes[r->count++] = n;
    return n.out;
}

/* Appends the nodes, each behind the converted tensors that it needs. `place`: the new number of each. */
static void rewrite(struct rewrite *r, int *place)
{
    const struct pnet_plan *p = &r->c->plan;
    for (int i = 0; i < p->node_count && !r->c->arena.failed; i++) {
        struct pnet_node n = p->nodes[i];
        bool narrows = needs_narrow(p, &n), widens = needs_wide(p, &n);
        for (int k = 0; k < n.in_count && (narrows || widens); k++)
            if (has_features(p, n.in[k]) && p->tensors[n.in[k]].exact == narrows)
                n.in[k] = convert(r, n.in[k], n.line);
        place[i] = r->count;
        r->nodes[r->count++] = n;
    }
}

/* Puts conversions before the nodes that need them. */
static void convert_inputs(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    bool any = false;
    for (int i = 0; i < p->node_count; i++)
        any |= needs_narrow(p, &p->nodes[i]) || needs_wide(p, &p->nodes[i]);
    if (!any) return;
    int tensors = p->tensor_count;
    /* a tensor is converted once */
    struct rewrite r = {.c = c,
        .nodes =
            pnet_arena_array(&c->arena, (size_t)p->node_count + (size_t)tensors, sizeof *r.nodes),
        .converted = pnet_arena_array(&c->arena, (size_t)tensors, sizeof *r.converted)};
    int *place = pnet_arena_array(&c->arena, (size_t)p->node_count, sizeof *place);
    if (!r.nodes || !r.converted || !place) return;
    for (int t = 0; t < tensors; t++) r.converted[t] = -1;
    rewrite(&r, place);
    if (c->arena.failed) return;
    for (int t = 0; t < tensors; t++)
        if (p->tensors[t].node >= 0) p->tensors[t].node = place[p->tensors[t].node];
    for (int i = 0; i < p->objective_count; i++)
        if (p->objectives[i].node >= 0) p->objectives[i].node = place[p->objectives[i].node];
    p->nodes = r.nodes;
    p->node_count = c->capacity.nodes = r.count;
}

/* Requires a graph that is not fused any further. Guarantees that tensors read, or given, as coordinates are marked exact, and so
   are positions of clouds, and what is computed from them, up to the layers that multiply first; that the nodes which read those
   are marked; that the features of each node, but for coordinates that it reads, widens or narrows, are all exact or none; and
   that the predicted points of training and evaluation are kept. */
void pnet_pass_exact(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    bool *positions = pnet_arena_array(&c->arena, (size_t)p->tensor_count + 1, sizeof *positions);
    if (!positions) return;
    mark(p);
    mark_positions(p, positions);
    p->prediction = p->result < 0 ? find_prediction(p) : -1;
    if (p->prediction >= 0) p->tensors[p->prediction].kept = true;
    convert_inputs(c);
}
