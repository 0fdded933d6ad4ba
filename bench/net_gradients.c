#include "bench/net_gradients.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/measure.h"

double pnet_bench_net_sums_error(const struct net_sums *s)
{
    return sqrt(s->want > 0 ? s->difference / s->want : s->difference);
}

double pnet_bench_net_sums_cosine(const struct net_sums *s)
{
    return s->product / sqrt(s->want * s->x);
}

double pnet_bench_net_gradient_share(
    const struct net_gradient *part, const struct net_gradient *all, enum pnet_precision p)
{
    double whole = all->sums[p].difference;
    return whole > 0 ? part->sums[p].difference / whole : 0;
}

static void add_sums(struct net_gradient *to, const struct net_gradient *part)
{
    to->parameters += part->parameters;
    for (int p = 0; p < NET_PRECISIONS; p++) {
        to->sums[p].difference += part->sums[p].difference;
        to->sums[p].want += part->sums[p].want;
        to->sums[p].x += part->sums[p].x;
        to->sums[p].product += part->sums[p].product;
    }
}

static struct net_sums sums_of(const float *x, const float *want, int64_t count)
{
    struct net_sums s = {0, 0, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        double a = (double)x[i], b = (double)want[i];
        s.difference += (a - b) * (a - b);
        s.want += b * b;
        s.x += a * a;
        s.product += a * b;
    }
    return s;
}

/* Returns the layer that a parameter belongs to. */
static const struct pnet_node *layer_of(const struct pnet_plan *p, int param)
{
    for (int n = 0; n < p->node_count; n++)
        for (int i = 0; i < p->nodes[n].param_count && !p->nodes[n].dead; i++)
            if (p->nodes[n].param[i] == param) return &p->nodes[n];
    return NULL;
}

static struct net_gradient *level_of(struct net_gradients *g, const struct net_gradient *part)
{
    for (int i = 0; i < g->level_count; i++)
        if (g->levels[i].level == part->level) return &g->levels[i];
    struct net_gradient *level = &g->levels[g->level_count++];
    *level = (struct net_gradient){
        .name = g->plain.plan->levels[part->level].name, .level = part->level, .rows = part->rows};
    return level;
}

/* A value with its index, because qsort takes no context. */
struct ranked {
    double share;
    struct net_gradient gradient;
};

static int compare_shares(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->share != y->share) return x->share < y->share ? 1 : -1;
    return strcmp(x->gradient.name, y->gradient.name);
}

static void sort_by_share(const struct net_gradients *g, struct net_gradient *parts, int count)
{
    struct ranked *r = bench_alloc(((size_t)count + 1) * sizeof *r);
    for (int i = 0; i < count; i++)
        r[i] =
            (struct ranked){pnet_bench_net_gradient_share(&parts[i], &g->all, g->sorted), parts[i]};
    qsort(r, (size_t)count, sizeof *r, compare_shares);
    for (int i = 0; i < count; i++) parts[i] = r[i].gradient;
    free(r);
}

void pnet_bench_net_gradients_add_up(struct net_gradients *g)
{
    const struct pnet_plan *p = g->plain.plan;
    const struct pnet_slot *slot = pnet_runner_slot(g->plain.runner, 0);
    g->params = bench_alloc((size_t)p->param_count * sizeof *g->params);
    g->levels = bench_alloc((size_t)p->level_count * sizeof *g->levels);
    g->all = (struct net_gradient){.name = "all", .level = -1};
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_node *layer = layer_of(p, i);
        const struct pnet_plan_param *q = &p->params[i];
        if (!layer || !q->info.trained || q->offset < 0) continue;
        int level = p->tensors[layer->out].type.level;
        struct net_gradient *part = &g->params[g->param_count++];
        *part = (struct net_gradient){.name = q->name,
            .op = layer->op->name,
            .level = level,
            .rows = slot->counts.rows[level],
            .parameters = 1};
        for (int k = 0; k < NET_PRECISIONS; k++)
            if (g->has[k])
                part->sums[k] = sums_of(g->x[k] + q->offset, g->want + q->offset, q->count);
        add_sums(level_of(g, part), part);
        add_sums(&g->all, part);
    }
    sort_by_share(g, g->params, g->param_count);
    sort_by_share(g, g->levels, g->level_count);
}

void pnet_bench_net_gradients_free(struct net_gradients *g)
{
    for (int k = 0; k < NET_PRECISIONS; k++) free(g->x[k]);
    free(g->want);
    free(g->weights.data);
    free(g->params);
    free(g->levels);
    pnet_bench_net_close(&g->plain);
}

static enum pnet_status take_precision(const struct net_options *o, const struct scene *piece,
    enum pnet_precision precision, struct net_gradients *g, struct pnet_error *e)
{
    struct net_options as = *o;
    struct network n;
    as.precision = precision;
    enum pnet_status st = pnet_bench_net_open(&as, piece, true, &g->weights, &n, e);
    if (!st)
        st = pnet_bench_net_gradients_of(
            &n, g->plain.plan, &g->losses[precision], &g->x[precision], e);
    pnet_bench_net_close(&n);
    g->has[precision] = st == PNET_OK;
    return st;
}

int pnet_bench_net_gradients_run(const struct net_options *o, const struct scene *piece)
{
    struct net_gradients g = {.sorted = o->precision};
    struct pnet_error e = {0};
    enum pnet_status st = pnet_bench_net_open(o, piece, true, NULL, &g.plain, &e);
    if (!st) st = pnet_bench_net_weights_take(&g.plain, &g.weights, &e);
    if (!st) st = pnet_bench_net_gradients_of(&g.plain, g.plain.plan, &g.loss, &g.want, &e);
    for (int k = PNET_FP32; k < NET_PRECISIONS && !st; k++)
        if (k == PNET_FP32 || o->where.kind != PNET_CPU)
            st = take_precision(o, piece, (enum pnet_precision)k, &g, &e);
    if (!st) pnet_bench_net_gradients_add_up(&g);
    if (!st && o->json) st = pnet_bench_net_gradients_print_json(o, piece, &g, &e);
    if (!st && !o->json) pnet_bench_net_gradients_print(o, piece, &g);
    if (!st && o->write) st = pnet_bench_net_write(o->write, o, &g, &e);
    if (st) fprintf(stderr, "pnet-bench net: %s\n", e.message);
    for (int k = 0; k < NET_PRECISIONS && !st; k++)
        if (g.has[k] && !pnet_bench_net_near((enum pnet_precision)k, bench_off(g.losses[k], g.loss),
                            pnet_bench_net_sums_error(&g.all.sums[k])))
            st = PNET_FAILED;
    pnet_bench_net_gradients_free(&g);
    return (int)st;
}
