#include "compiler/cli/plan_kernels.h"

#include <stdio.h>
#include <stdlib.h>

/* By enum pnet_direction; NULL: the schedule has no such sum. */
struct layer_kernels {
    const char *of[PNET_DIRECTIONS];
};

struct layers {
    const struct pnet_bound *bound;
    const struct pnet_counts *counts;
    struct pnet_geo_view *views; /* [geo_count] */
};

static enum pnet_status open_layers(
    struct layers *l, const struct pnet_bound *b, const struct pnet_counts *c, struct pnet_error *e)
{
    *l = (struct layers){b, c, calloc((size_t)b->plan->geo_count + 1, sizeof *l->views)};
    if (!l->views) return pnet_error_memory(e);
    pnet_bound_views(b, c, true, l->views);
    return PNET_OK;
}

static void add_step(const struct layers *l, int step, struct layer_kernels *k)
{
    const struct pnet_plan *p = l->bound->plan;
    const struct pnet_step *s = &p->steps[step];
    const struct pnet_node *n = &p->nodes[s->node];
    struct pnet_exec x;
    pnet_bound_exec(l->bound, step, l->counts, true, l->views, &x);
    if (!s->backward) {
        k->of[PNET_FORWARD] = n->op->kernel(&x, PNET_FORWARD);
        return;
    }
    if (s->gin[0] >= 0) k->of[PNET_DF] = n->op->kernel(&x, PNET_DF);
    if (p->params[n->param[0]].info.trained) k->of[PNET_DW] = n->op->kernel(&x, PNET_DW);
}

/* false: the layer has no such kernels. */
static bool find_kernels(const struct layers *l, int node, struct layer_kernels *k)
{
    const struct pnet_plan *p = l->bound->plan;
    *k = (struct layer_kernels){{NULL}};
    if (p->nodes[node].dead || !p->nodes[node].op->kernel) return false;
    for (int s = 0; s < p->step_count; s++)
        if (p->steps[s].node == node) add_step(l, s, k);
    return k->of[PNET_FORWARD] != NULL;
}

static const char *const device_names[] = {[PNET_CPU] = "cpu", [PNET_CUDA] = "cuda"};

enum pnet_status pnet_cli_print_kernels(
    const struct pnet_bound *b, const struct pnet_counts *c, struct pnet_error *e)
{
    struct layers l;
    struct layer_kernels k;
    enum pnet_status st = open_layers(&l, b, c, e);
    if (st) return st;
    printf("kernels: %s", device_names[b->device]);
    if (b->architecture) printf(", architecture %d", b->architecture);
    putchar('\n');
    for (int n = 0; n < b->plan->node_count; n++) {
        if (!find_kernels(&l, n, &k)) continue;
        printf("  %-36s", b->plan->nodes[n].path);
        for (int d = 0; d < PNET_DIRECTIONS; d++)
            if (k.of[d]) printf("  %s %s", pnet_direction_names[d], k.of[d]);
        putchar('\n');
    }
    free(l.views);
    return PNET_OK;
}

enum pnet_status pnet_cli_print_json_kernels(const struct pnet_bound *b,
    const struct pnet_counts *c, struct pnet_json *j, struct pnet_error *e)
{
    struct layers l;
    struct layer_kernels k;
    enum pnet_status st = open_layers(&l, b, c, e);
    if (st) return st;
    pnet_json_begin(j, "kernels", '{');
    pnet_json_string(j, "device", device_names[b->device]);
    if (b->architecture) pnet_json_int(j, "architecture", b->architecture);
    pnet_json_begin(j, "layers", '[');
    for (int n = 0; n < b->plan->node_count; n++) {
        if (!find_kernels(&l, n, &k)) continue;
        pnet_json_begin(j, NULL, '{');
        pnet_json_string(j, "layer", b->plan->nodes[n].path);
        for (int d = 0; d < PNET_DIRECTIONS; d++)
            if (k.of[d]) pnet_json_string(j, pnet_direction_names[d], k.of[d]);
        pnet_json_end(j, '}');
    }
    pnet_json_end(j, ']');
    pnet_json_end(j, '}');
    free(l.views);
    return PNET_OK;
}
