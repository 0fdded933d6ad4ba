#include "bench/net_gradients.h"

#include "bench/bench.h"
#include "bench/measure.h"
#include "runtime/base/json.h"

enum { FEW = 10 }; /* lines of parameters, unless all are asked for */

/* Returns the name of a level: "g[3]" for "g[3] (40cm)", because the plan's own listings print the size. */
static const char *level_name(const struct net_gradients *g, const struct net_gradient *part)
{
    return part->level < 0 ? "" : g->plain.plan->levels[part->level].name;
}

static void print_errors(const struct net_gradients *g, const struct net_gradient *part)
{
    for (int k = 0; k < NET_PRECISIONS; k++)
        if (g->has[k]) printf(" %8.1e", pnet_bench_net_sums_error(&part->sums[k]));
}

static void print_heading(const struct net_gradients *g, const char *first, const char *second)
{
    printf("\n%-44s %-10s %8s %9s", first, second, "rows", "norm");
    for (int k = 0; k < NET_PRECISIONS; k++)
        if (g->has[k]) printf(" %8s", pnet_bench_precision_names[k]);
    printf("  share, %s\n", pnet_bench_precision_names[g->sorted]);
}

static void print_part(const struct net_gradients *g, const struct net_gradient *part,
    const char *first, const char *second)
{
    printf("%-44s %-10s %8lld %9.2e", first, second, (long long)part->rows,
        sqrt(part->sums[g->sorted].want));
    print_errors(g, part);
    printf("  %5.1f%%\n", 100 * pnet_bench_net_gradient_share(part, &g->all, g->sorted));
}

static void print_rest(const struct net_gradients *g, int from)
{
    struct net_sums rest[NET_PRECISIONS] = {{0, 0, 0, 0}};
    char text[64];
    double share = 0;
    for (int i = from; i < g->param_count; i++) {
        share += pnet_bench_net_gradient_share(&g->params[i], &g->all, g->sorted);
        for (int k = 0; k < NET_PRECISIONS; k++) {
            rest[k].difference += g->params[i].sums[k].difference;
            rest[k].want += g->params[i].sums[k].want;
        }
    }
    snprintf(text, sizeof text, "%d others (--all)", g->param_count - from);
    printf("%-44s %-10s %8s %9.2e", text, "", "", sqrt(rest[g->sorted].want));
    for (int k = 0; k < NET_PRECISIONS; k++)
        if (g->has[k]) printf(" %8.1e", pnet_bench_net_sums_error(&rest[k]));
    printf("  %5.1f%%\n", 100 * share);
}

void pnet_bench_net_gradients_print(
    const struct net_options *o, const struct scene *piece, const struct net_gradients *g)
{
    int lines = o->all || g->param_count <= FEW ? g->param_count : FEW;
    char text[64];
    printf("%s, %s, %s: gradients at %lld points, loss %.6g\n", o->model,
        o->where.kind == PNET_CPU ? "cpu" : "cuda", o->degrade ? "voxel" : "native",
        (long long)piece->level.rows, g->loss);
    for (int k = 0; k < NET_PRECISIONS; k++)
        if (g->has[k])
            printf("%-6s loss off by %.1e, gradients by %.1e, cosine %.6f\n",
                pnet_bench_precision_names[k], bench_off(g->losses[k], g->loss),
                pnet_bench_net_sums_error(&g->all.sums[k]),
                pnet_bench_net_sums_cosine(&g->all.sums[k]));
    print_heading(g, "level", "parameters");
    for (int i = 0; i < g->level_count; i++) {
        snprintf(text, sizeof text, "%d", g->levels[i].parameters);
        print_part(g, &g->levels[i], g->levels[i].name, text);
    }
    print_heading(g, "parameter", "level");
    for (int i = 0; i < lines; i++)
        print_part(g, &g->params[i], g->params[i].name, level_name(g, &g->params[i]));
    if (lines < g->param_count) print_rest(g, lines);
}

/* Writes an object by precision, with those that were measured. */
static void json_precisions(struct pnet_json *j, const char *key, const struct net_gradients *g,
    const struct net_gradient *part, double (*value)(const struct net_sums *s))
{
    pnet_json_begin(j, key, '{');
    for (int k = 0; k < NET_PRECISIONS; k++)
        if (g->has[k]) pnet_json_double(j, pnet_bench_precision_names[k], value(&part->sums[k]));
    pnet_json_end(j, '}');
}

static void json_part(
    struct pnet_json *j, const struct net_gradients *g, const struct net_gradient *part)
{
    pnet_json_string(j, "level", level_name(g, part));
    pnet_json_int(j, "rows", part->rows);
    pnet_json_int(j, "parameters", part->parameters);
    pnet_json_double(j, "norm", sqrt(part->sums[g->sorted].want));
    json_precisions(j, "error", g, part, pnet_bench_net_sums_error);
    json_precisions(j, "cosine", g, part, pnet_bench_net_sums_cosine);
    pnet_json_begin(j, "share", '{');
    for (int k = 0; k < NET_PRECISIONS; k++)
        if (g->has[k])
            pnet_json_double(j, pnet_bench_precision_names[k],
                pnet_bench_net_gradient_share(part, &g->all, (enum pnet_precision)k));
    pnet_json_end(j, '}');
}

enum pnet_status pnet_bench_net_gradients_print_json(const struct net_options *o,
    const struct scene *piece, const struct net_gradients *g, struct pnet_error *e)
{
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "model", o->model);
    pnet_json_string(&j, "device", o->where.kind == PNET_CPU ? "cpu" : "cuda");
    pnet_json_string(&j, "mode", o->degrade ? "voxel" : "native");
    pnet_json_int(&j, "points", piece->level.rows);
    pnet_json_double(&j, "loss", g->loss);
    pnet_json_begin(&j, "losses", '{');
    for (int k = 0; k < NET_PRECISIONS; k++)
        if (g->has[k]) pnet_json_double(&j, pnet_bench_precision_names[k], g->losses[k]);
    pnet_json_end(&j, '}');
    json_precisions(&j, "error", g, &g->all, pnet_bench_net_sums_error);
    json_precisions(&j, "cosine", g, &g->all, pnet_bench_net_sums_cosine);
    pnet_json_begin(&j, "levels", '[');
    for (int i = 0; i < g->level_count; i++) {
        pnet_json_begin(&j, NULL, '{');
        json_part(&j, g, &g->levels[i]);
        pnet_json_end(&j, '}');
    }
    pnet_json_end(&j, ']');
    pnet_json_begin(&j, "parameters", '[');
    for (int i = 0; i < g->param_count; i++) {
        pnet_json_begin(&j, NULL, '{');
        pnet_json_string(&j, "parameter", g->params[i].name);
        pnet_json_string(&j, "op", g->params[i].op);
        json_part(&j, g, &g->params[i]);
        pnet_json_end(&j, '}');
    }
    pnet_json_end(&j, ']');
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}
