/* How far the points lie that a result depends on. Two bounds are kept for each tensor, since either may be the closer one: balls
   add up from row to row, and windows from cell to cell. */
#include "runtime/plan/plan.h"

#include <math.h>
#include <stdlib.h>

/* What a row of a tensor depends on, on each axis. */
struct field {
    double metres; /* from where the row lies */
    double beyond; /* from the cell of the row */
    int node;      /* where the first of them became infinite; -1 */
};

static struct field either(const struct pnet_plan *p, struct field f, int level)
{
    f.metres = fmin(f.metres, f.beyond + p->levels[level].cell);
    f.beyond = fmin(f.beyond, f.metres);
    return f;
}

static struct field both(struct field a, struct field b)
{
    struct field f = {
        fmax(a.metres, b.metres), fmax(a.beyond, b.beyond), a.node < 0 ? b.node : a.node};
    return f;
}

/* The points that decide where the rows of a level lie. */
static struct field of_level(const struct pnet_plan *p, int level, int node)
{
    struct pnet_geo_reach r = pnet_geo_level_reach(p, level);
    struct field f = either(p, (struct field){r.apart, r.beyond[0], -1}, level);
    if (isinf(f.metres)) f.node = node;
    return f;
}

/* How far the rows of an input lie from those of the result. */
static struct pnet_geo_reach joins(const struct pnet_plan *p, const struct pnet_node *n, int input)
{
    int from = p->tensors[n->in[input]].type.level, to = p->tensors[n->out].type.level;
    struct pnet_geo_reach all = {0, {0, 0}};
    if (n->op->flags & PNET_OF_SAMPLE) return pnet_geo_anywhere();
    if (n->sums && input == 1) return all; /* fused behind the layer, and added row by row */
    if (n->geo_count == 0 && from != to) return pnet_geo_anywhere();
    for (int i = 0; i < n->geo_count; i++) {
        const struct pnet_geo_request *q = &p->geo[n->geo[i]].request;
        struct pnet_geo_reach r = pnet_geo_reach(p, q);
        /* the cell of a row of the input, beyond that of the row of the result */
        double beyond = q->a == to && q->b == from   ? r.beyond[0]
                        : q->b == to && q->a == from ? r.beyond[1]
                                                     : (double)INFINITY;
        all.apart = fmax(all.apart, r.apart);
        all.beyond[0] = fmax(all.beyond[0], beyond);
    }
    return all;
}

static struct field of_node(const struct pnet_plan *p, int node, const struct field *fields)
{
    const struct pnet_node *n = &p->nodes[node];
    int level = p->tensors[n->out].type.level;
    struct field f = {0, 0, -1};
    for (int i = 0; i < n->in_count; i++) {
        int from = p->tensors[n->in[i]].type.level;
        struct field in = both(fields[n->in[i]], of_level(p, from, node));
        struct pnet_geo_reach r = joins(p, n, i);
        bool bounded = isfinite(in.metres);
        in.metres += r.apart;
        in.beyond += r.beyond[0];
        in = either(p, in, level);
        if (bounded && isinf(in.metres)) in.node = node;
        f = both(f, in);
    }
    return both(f, of_level(p, level, node));
}

enum pnet_status pnet_plan_receptive_field(
    const struct pnet_plan *p, int tensor, struct pnet_receptive_field *field, struct pnet_error *e)
{
    struct field *fields = malloc((size_t)p->tensor_count * sizeof *fields + 1);
    if (!fields) return pnet_error_memory(e);
    for (int t = 0; t < p->tensor_count; t++) fields[t] = (struct field){0, 0, -1};
    for (int i = 0; i < p->node_count; i++)
        if (!p->nodes[i].dead) fields[p->nodes[i].out] = of_node(p, i, fields);
    struct field f = both(fields[tensor], of_level(p, p->tensors[tensor].type.level, -1));
    *field = (struct pnet_receptive_field){f.metres, isinf(f.metres) ? f.node : -1};
    free(fields);
    return PNET_OK;
}
