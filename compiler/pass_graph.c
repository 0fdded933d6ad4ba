/* Passes on the forward graph: prune, fold, fuse. */
#include "compiler/internal.h"

#include <string.h>

/* Nodes come after the tensors they read, so one sweep backwards finds all nodes that the marked tensors need. */
static void mark_needed(const struct pnet_plan *p, bool *needed)
{
    for (int n = p->node_count - 1; n >= 0; n--) {
        const struct pnet_node *node = &p->nodes[n];
        if (!needed[node->out]) continue;
        for (int i = 0; i < node->in_count; i++) needed[node->in[i]] = true;
    }
}

static void keep(struct pnet_plan *p, bool *needed, int tensor)
{
    needed[tensor] = true;
    p->tensors[tensor].kept = true;
}

/* A model without losses and metrics is for inference: every value that no layer reads is a
   result. */
static void keep_ends(struct pnet_plan *p, bool *needed)
{
    for (int n = 0; n < p->node_count; n++)
        for (int i = 0; i < p->nodes[n].in_count; i++) needed[p->nodes[n].in[i]] = true;
    for (int n = 0; n < p->node_count; n++)
        if (!needed[p->nodes[n].out]) keep(p, needed, p->nodes[n].out);
}

static void use_input(struct pnet_plan *p, int tensor)
{
    struct pnet_input *in = &p->inputs[p->tensors[tensor].input];
    in->fields[p->tensors[tensor].field].unused = false;
    if (p->tensors[tensor].type.pose)
        in->unused = false; /* a pose has no points by which to see its use */
}

/* A batch needs a cloud, also for a result that reads none. */
static void use_some_input(struct pnet_plan *p)
{
    int first = -1;
    for (int i = p->input_count - 1; i >= 0; i--) {
        if (pnet_input_is_pose(&p->inputs[i])) continue;
        if (!p->inputs[i].unused) return;
        first = i;
    }
    if (p->result_input >= 0) first = p->result_input;
    if (first >= 0) p->inputs[first].unused = false;
}

/* Requires objectives, outputs and result. Guarantees that every live node is needed by one of them, if there is
   any, and that inputs and fields that no node reads are marked unused. */
void pnet_pass_prune(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    bool *needed = pnet_arena_array(&c->arena, (size_t)p->tensor_count + 1, sizeof *needed);
    if (!needed) return;
    for (int i = 0; i < p->objective_count; i++) keep(p, needed, p->objectives[i].tensor);
    if (p->result >= 0) keep(p, needed, p->result);
    for (int i = 0; i < p->output_count; i++) keep(p, needed, p->outputs[i].tensor);
    if (!p->objective_count && !p->output_count && p->result < 0) keep_ends(p, needed);
    mark_needed(p, needed);
    for (int n = 0; n < p->node_count; n++) p->nodes[n].dead = !needed[p->nodes[n].out];
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *tensor = &p->tensors[t];
        if (tensor->role == PNET_ROLE_INPUT && needed[t]) use_input(p, t);
        if (needed[t] && p->levels[tensor->type.level].input >= 0)
            p->inputs[p->levels[tensor->type.level].input].unused = false;
    }
    for (int n = 0; n < p->node_count; n++)
        for (int i = 0; i < p->nodes[n].geo_count && !p->nodes[n].dead; i++) {
            const struct pnet_geo_request *q = &p->geo[p->nodes[n].geo[i]].request;
            const struct pnet_geo_kind *kind = pnet_geo_kind(q->kind);
            if (kind->reads) use_input(p, kind->reads(q));
        }
    if (p->result >= 0 || p->output_count) use_some_input(p);
}

/* The live nodes that read a tensor or parameter: how many (a node that reads it twice counts twice), and the sum of their
   numbers, which is the number of the reader if there is one. */
struct readers {
    int count;
    int64_t sum;
};

struct uses {
    struct readers *tensors;
    int *params; /* of those there were when the pass began */
};

static void count_node(const struct pnet_plan *p, struct uses *u, int node, int by)
{
    const struct pnet_node *n = &p->nodes[node];
    for (int i = 0; i < n->in_count; i++) {
        u->tensors[n->in[i]].count += by;
        u->tensors[n->in[i]].sum += by * node;
    }
    for (int i = 0; i < n->param_count; i++) u->params[n->param[i]] += by;
}

/* False where memory is out. */
static bool count_uses(struct pnet_compilation *c, struct uses *u)
{
    const struct pnet_plan *p = &c->plan;
    u->tensors = pnet_arena_array(&c->arena, (size_t)p->tensor_count + 1, sizeof *u->tensors);
    /* a fold may give each node one parameter more */
    u->params = pnet_arena_array(
        &c->arena, (size_t)p->param_count + (size_t)p->node_count + 1, sizeof *u->params);
    if (!u->tensors || !u->params) return false;
    for (int n = 0; n < p->node_count; n++)
        if (!p->nodes[n].dead) count_node(p, u, n, 1);
    return true;
}

/* The only live node that reads the tensor; -1 where there are none or several, or the caller reads
 * it. */
static int sole_reader(const struct pnet_plan *p, const struct uses *u, int tensor)
{
    return p->tensors[tensor].kept || u->tensors[tensor].count != 1 ? -1
                                                                    : (int)u->tensors[tensor].sum;
}

static int arg_index(const struct pnet_op *op, const char *name)
{
    for (int i = 0; i < PNET_MAX_ARGS && op->args[i].name; i++)
        if (strcmp(op->args[i].name, name) == 0) return i;
    return -1;
}

/* The producer takes over the result of its only reader, and the reader becomes dead. */
static void absorb(struct pnet_plan *p, struct uses *u, int producer, int node)
{
    count_node(p, u, node, -1);
    p->nodes[producer].out = p->nodes[node].out;
    p->tensors[p->nodes[producer].out].node = producer;
    p->nodes[node].dead = true;
}

static void fold_norm(struct pnet_compilation *c, struct uses *u, int producer, int norm)
{
    struct pnet_plan *p = &c->plan;
    struct pnet_node *n = &p->nodes[producer];
    const struct pnet_node *bn = &p->nodes[norm];
    const struct pnet_param_info *weight = &p->params[n->param[0]].info;
    bool out_first = weight->dims == 2;
    struct pnet_plan_fold f = {.weight = n->param[0],
        .bias_was_there = n->param_count > 1,
        .out_first = out_first,
        .scale = bn->param[0],
        .shift = bn->param[1],
        .mean = bn->param[2],
        .var = bn->param[3]};
    f.eps = bn->attr[arg_index(bn->op, "eps")].r;
    if (f.bias_was_there) {
        f.bias = n->param[1];
    } else {
        int64_t width = p->tensors[n->out].type.width;
        struct pnet_param_info info = {
            .suffix = "bias", .dims = 1, .shape = {width}, .init = PNET_INIT_ZERO, .fan = 1};
        const char *name = pnet_arena_printf(&c->arena, "%s.folded_bias", n->path);
        f.bias = pnet_plan_add_param(c,
            (struct pnet_plan_param){.info = info, .name = name, .count = width, .last_use = -1});
        if (c->arena.failed) return;
        n->param[n->param_count++] = f.bias;
        u->params[f.bias]++;
    }
    pnet_plan_add_fold(c, f);
    absorb(p, u, producer, norm);
}

/* Inference only. Requires a pruned graph. Guarantees that a batch norm behind a linear layer whose
   weights serve that place alone is part of those weights. */
void pnet_pass_fold(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    struct uses u;
    if (c->options.purpose != PNET_FOR_INFERENCE || c->options.no_fusion || !count_uses(c, &u))
        return;
    for (int n = 0; n < p->node_count && !c->arena.failed; n++) {
        const struct pnet_node *bn = &p->nodes[n];
        if (bn->dead || !(bn->op->flags & PNET_FOLDS)) continue;
        int producer = p->tensors[bn->in[0]].node;
        if (producer < 0 || !(p->nodes[producer].op->flags & PNET_LINEAR_OUT) ||
            p->nodes[producer].act)
            continue;
        if (sole_reader(p, &u, bn->in[0]) == n && u.params[p->nodes[producer].param[0]] == 1)
            fold_norm(c, &u, producer, n);
    }
}

/* Fuses the node `sum` into the node that makes one of its operands, if that node can add the other operand and the other
   operand is computed before it. */
static void fuse_sum(struct pnet_plan *p, struct uses *u, int sum)
{
    const struct pnet_node *n = &p->nodes[sum];
    int scale = arg_index(n->op, "scale");
    if (scale >= 0 && n->attr[scale].r != 1) return;
    for (int side = 0; side < 2; side++) {
        int producer = p->tensors[n->in[side]].node, other = n->in[1 - side];
        if (producer < 0 || sole_reader(p, u, n->in[side]) != sum) continue;
        struct pnet_node *by = &p->nodes[producer];
        bool free = (by->op->flags & PNET_FUSES_SUM) && !by->sums && !by->act;
        if (!free || p->tensors[other].node >= producer || other == by->in[0]) continue;
        by->sums = true;
        count_node(p, u, producer, -1);
        by->in[by->in_count++] = other;
        count_node(p, u, producer, 1);
        absorb(p, u, producer, sum);
        return;
    }
}

/* Removes a node that no other node reads any more, and those that only it read. */
static void drop_unread(struct pnet_plan *p, struct uses *u, int node)
{
    const struct pnet_node *n = &p->nodes[node];
    if (n->dead || p->tensors[n->out].kept || u->tensors[n->out].count) return;
    count_node(p, u, node, -1);
    p->nodes[node].dead = true;
    for (int i = 0; i < n->in_count; i++)
        if (p->tensors[n->in[i]].node >= 0) drop_unread(p, u, p->tensors[n->in[i]].node);
}

/* The value among those joined that is repeated from a coarser level; -1: there is none. */
static int find_repeated(const struct pnet_plan *p, const struct pnet_node *join)
{
    for (int i = 0; i < join->in_count; i++) {
        int by = p->tensors[join->in[i]].node;
        if (by >= 0 && (p->nodes[by].op->flags & PNET_REPEATS)) return i;
    }
    return -1;
}

/* A node that reads values side by side, one of them repeated from a coarser level, reads the values themselves: what it does
   to the repeated one, it does once for each coarse row. */
static void take_apart(struct pnet_plan *p, struct uses *u, int node)
{
    struct pnet_node *n = &p->nodes[node];
    int join = n->op->parts ? p->tensors[n->in[0]].node : -1;
    if (join < 0 || !(p->nodes[join].op->flags & PNET_JOINS)) return;
    const struct pnet_node *j = &p->nodes[join];
    int repeated = find_repeated(p, j);
    if (repeated < 0 || j->in_count < 2) return;
    const struct pnet_node *by = &p->nodes[p->tensors[j->in[repeated]].node];
    int64_t at = 0;
    for (int i = 0; i < repeated; i++) at += p->tensors[j->in[i]].type.width;
    count_node(p, u, node, -1);
    n->op = n->op->parts;
    n->attr[arg_index(n->op, "at")] = (struct pnet_attr){.set = true, .i = at};
    n->in_count = 0;
    for (int i = 0; i < j->in_count; i++)
        if (i != repeated) n->in[n->in_count++] = j->in[i];
    n->in[n->in_count++] = by->in[0];
    n->geo_count = by->geo_count;
    for (int i = 0; i < by->geo_count; i++) {
        n->geo[i] = by->geo[i];
        n->forward_forms[i] = by->forward_forms[i];
        n->backward_forms[i] = by->backward_forms[i];
    }
    count_node(p, u, node, 1);
    drop_unread(p, u, join);
}

static void fuse_act(struct pnet_plan *p, struct uses *u, int act)
{
    const struct pnet_node *n = &p->nodes[act];
    int producer = p->tensors[n->in[0]].node;
    if (producer < 0 || !(p->nodes[producer].op->flags & PNET_FUSES_ACT) || p->nodes[producer].act)
        return;
    if (sole_reader(p, u, n->in[0]) != act) return;
    int slope = arg_index(n->op, "slope");
    p->nodes[producer].act = n->op->act;
    p->nodes[producer].slope = slope >= 0 ? (float)n->attr[slope].r : 0;
    absorb(p, u, producer, act);
}

/* Requires a pruned graph. Guarantees that no node multiplies a value once for each row that it is repeated to, and that a sum,
   and then an activation, that follow a node which can compute them are part of that node. */
void pnet_pass_fuse(struct pnet_compilation *c)
{
    struct pnet_plan *p = &c->plan;
    struct uses u;
    if (c->options.no_fusion || !count_uses(c, &u)) return;
    for (int n = 0; n < p->node_count; n++) {
        if (p->nodes[n].dead) continue;
        take_apart(p, &u, n);
        if (p->nodes[n].op->flags & PNET_SUMS) fuse_sum(p, &u, n);
        if (p->nodes[n].op->act) fuse_act(p, &u, n);
    }
}
