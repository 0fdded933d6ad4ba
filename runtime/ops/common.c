#include "runtime/ops/common.h"

#include "runtime/device/memory.h"

#include <stdlib.h>

size_t pnet_op_no_work(const struct pnet_exec *x, bool backward)
{
    (void)x;
    (void)backward;
    return 0;
}

size_t pnet_op_backward_work(const struct pnet_exec *x, size_t input, size_t params)
{
    size_t both = pnet_round_bytes(input) + params;
    if (x->device == PNET_CUDA && both <= PNET_WORK_MOST) return both;
    return input > params ? input : params;
}

void pnet_op_backward_both(const struct pnet_exec *x, size_t input, size_t params,
    void (*to_input)(const struct pnet_exec *x, void *work),
    void (*to_params)(const struct pnet_exec *x, void *work))
{
    size_t begin = pnet_round_bytes(input);
    bool learns = false;
    for (int i = 0; i < PNET_MAX_PARAMS; i++) learns |= x->gparam[i] != NULL;
    bool fork =
        x->gin[0].data && learns && x->device == PNET_CUDA && begin + params <= x->work_bytes;
    if (fork) pnet_device_fork(x->device);
    if (x->gin[0].data) to_input(x, x->work);
    if (fork) pnet_device_branch(x->device);
    if (learns) to_params(x, fork ? (char *)x->work + begin : x->work);
    if (fork) pnet_device_join(x->device);
}

struct pnet_conv_sum pnet_op_dense_sum(const struct pnet_exec *x, enum pnet_direction direction)
{
    int32_t in = x->in[0].width, out = x->out.width;
    bool back = direction == PNET_DF;
    return (struct pnet_conv_sum){.shape = {back ? out : in, back ? in : out, 1},
        .cells = 1,
        .rows = x->out.rows,
        .count = x->out.rows,
        .form = PNET_CONV_DENSE,
        .weights = direction == PNET_DW,
        .precision = x->precision,
        .storage = x->out.storage,
        .algo = PNET_ALGO_DEFAULT,
        .architecture = x->architecture};
}

double *pnet_op_constants(const struct pnet_exec *x, size_t count, bool *first)
{
    struct pnet_constants *c = x->constants;
    *first = !c->value;
    if (*first) *c = (struct pnet_constants){calloc(count + 1, sizeof *c->value), count};
    if (!c->value || c->count != count) abort();
    return c->value;
}

bool pnet_op_rule_like_input(struct pnet_rule *r)
{
    r->out = r->in[0];
    return true;
}

void pnet_op_rule_move_help(struct pnet_rule *r, int from, int to)
{
    const struct pnet_level_info *a = &r->levels[from], *b = &r->levels[to];
    char text[96];
    const char *name = pnet_level_written(b, text);
    bool up = pnet_level_reaches(r->levels, to, from),
         down = pnet_level_reaches(r->levels, from, to);
    if (a->kind == PNET_GEO_SCALAR || b->kind == PNET_GEO_SCALAR) return;
    if (b->kind == PNET_GEO_SAMPLE)
        pnet_rule_help(r, "move it with -> pool(max, to=%s)", name);
    else if (a->kind == PNET_GEO_SAMPLE || (b->kind == PNET_GEO_POINTS && up))
        pnet_rule_help(r, "move it with -> expand(to=%s)", name);
    else if (a->kind == PNET_GEO_POINTS && down)
        pnet_rule_help(r, "move it with -> pool(max, to=%s)", name);
    else if (a->kind == PNET_GEO_POINTS || b->kind == PNET_GEO_POINTS)
        return;
    else if ((up && b->cell > 0) || (down && a->cell > 0)) /* conv has a radius there */
        pnet_rule_help(r, "move it with -> conv(.., to=%s)", name);
    else if (down)
        pnet_rule_help(r, "move it with -> pool(mean, to=%s)", name);
    else if (up)
        pnet_rule_help(r, "move it with -> upsample(to=%s)", name);
    else if (a->kind == PNET_GEO_GRID && a->input == b->input)
        pnet_rule_help(r, "move it with -> interpolate(to=%s)", name);
}

bool pnet_op_rule_same_type(struct pnet_rule *r, const char *name, int other, bool width)
{
    struct pnet_type a = r->in[0], b = r->in[other];
    char first[96], second[96];
    if (a.level == b.level && (!width || a.width == b.width)) return true;
    r->error_in = other;
    pnet_type_text(r->levels, a, first);
    pnet_type_text(r->levels, b, second);
    if (a.level != b.level) {
        pnet_op_rule_move_help(r, b.level, a.level);
        return pnet_rule_fail(
            r, other, "%s() joins points of different levels: %s and %s", name, first, second);
    }
    pnet_rule_help(r, "bring it to the same width with -> linear(%d)", (int)a.width);
    return pnet_rule_fail(r, other, "%s() joins different widths: %s and %s", name, first, second);
}

int pnet_op_rule_vector(
    struct pnet_rule *r, const char *suffix, int32_t c, enum pnet_init init, bool trained)
{
    return pnet_rule_param(r,
        (struct pnet_param_info){
            .suffix = suffix, .dims = 1, .shape = {c}, .init = init, .fan = c, .trained = trained});
}

struct pnet_mean pnet_op_elements_mean(const struct pnet_exec *x, double value)
{
    double count = (double)pnet_op_count_of(&x->in[0]);
    return (struct pnet_mean){value * count, count};
}

struct pnet_cells pnet_op_cells(const struct pnet_geo_view *g, enum pnet_storage storage)
{
    return (struct pnet_cells){.fine_rows = {g->a_rows, g->a_live, 1, storage},
        .coarse_rows = {g->b_rows, g->b_live, 1, storage},
        .parent = g->parent,
        .start = g->child_start,
        .child = g->child};
}

struct pnet_segments pnet_op_samples(const struct pnet_tensor *t)
{
    return (struct pnet_segments){
        .rows = t->rows, .count = t->samples, .splits = t->row_splits, .storage = t->storage};
}
