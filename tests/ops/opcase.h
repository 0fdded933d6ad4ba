/* One row of the op table, run by hand on a small world of levels: forward against the row's
   reference in double, backward against central differences of that reference.

     world:  points -> fine -> coarse (each the parent of some of the finer rows, some of none),
             one row a sample, one row in all. Samples have the sizes the test chooses.
     opcase: attributes, inputs, parameters, and what forward and backward made of them. */
#ifndef PNET_TESTS_OPS_OPCASE_H
#define PNET_TESTS_OPS_OPCASE_H

#include "kernels/conv.h"
#include "runtime/plan/op.h"
#include "tests/check.h"

#include <omp.h>

enum { POINTS, FINE, COARSE, SAMPLE, SCALAR, LEVELS };
enum { MAX_SAMPLES = 8 };

static inline void *take(size_t size)
{
    void *p = calloc(size ? size : 1, 1);
    if (!p) abort();
    return p;
}

/* Deterministic numbers. */
static inline float draw(uint64_t seed, uint64_t i)
{
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    return pnet_rand_unit(&r, i);
}

struct world {
    struct pnet_level_info levels[LEVELS];
    int32_t samples;
    int64_t rows[LEVELS];
    int64_t splits[LEVELS][MAX_SAMPLES + 1]; /* not of SCALAR */
    int32_t *parent[2];                      /* of points in fine, of fine in coarse */
    float *xyz[3];
};

static inline void world_level(struct world *w, int level, int64_t divisor)
{
    int64_t total = 0;
    for (int32_t s = 0; s < w->samples; s++) {
        int64_t n = w->splits[level - 1][s + 1] - w->splits[level - 1][s];
        w->splits[level][s] = total;
        total += n ? (n + divisor - 1) / divisor : 0;
    }
    w->splits[level][w->samples] = w->rows[level] = total;
}

static inline struct world world_make(int32_t samples, const int64_t *sizes)
{
    struct world w = {.samples = samples};
    w.levels[POINTS] = (struct pnet_level_info){.kind = PNET_GEO_INPUT, .finer = -1, .name = "p"};
    w.levels[FINE] = (struct pnet_level_info){
        .kind = PNET_GEO_GRID, .finer = 0, .cell = 0.1, .grid = {0.1f, 10, 1}, .name = "g[0]"};
    w.levels[COARSE] = (struct pnet_level_info){
        .kind = PNET_GEO_GRID, .finer = 1, .cell = 0.2, .grid = {0.1f, 10, 2}, .name = "g[1]"};
    w.levels[SAMPLE] = (struct pnet_level_info){
        .kind = PNET_GEO_SAMPLE, .input = -1, .finer = -1, .name = "sample"};
    w.levels[SCALAR] = (struct pnet_level_info){
        .kind = PNET_GEO_SCALAR, .input = -1, .finer = -1, .name = "scalar"};
    for (int32_t s = 0; s < samples; s++) {
        w.splits[POINTS][s + 1] = w.splits[POINTS][s] + sizes[s];
        w.splits[SAMPLE][s + 1] = s + 1;
    }
    w.rows[POINTS] = w.splits[POINTS][samples];
    w.rows[SAMPLE] = samples;
    w.rows[SCALAR] = 1;
    world_level(&w, FINE, 2);
    world_level(&w, COARSE, 3);
    for (int level = 0; level < 3; level++) {
        w.xyz[level] = take((size_t)w.rows[level] * 3 * sizeof(float));
        for (int64_t i = 0; i < w.rows[level] * 3; i++)
            w.xyz[level][i] = draw(100 + (uint64_t)level, (uint64_t)i);
        if (level == 2) continue;
        w.parent[level] = take((size_t)w.rows[level] * sizeof(int32_t));
        for (int32_t s = 0; s < samples; s++) {
            const int64_t *up = w.splits[level + 1];
            for (int64_t row = w.splits[level][s]; row < w.splits[level][s + 1]; row++)
                w.parent[level][row] =
                    (int32_t)(up[s] + (int64_t)(draw(7 + (uint64_t)level, (uint64_t)row) *
                                                (float)(up[s + 1] - up[s])));
        }
    }
    return w;
}

static inline void world_free(struct world *w)
{
    for (int i = 0; i < 3; i++) free(w->xyz[i]);
    for (int i = 0; i < 2; i++) free(w->parent[i]);
}

/* Brute force: k nearest rows of level b for each of level a. */
static inline void world_nearest(
    const struct world *w, int a, int b, int32_t k, int32_t *nearest, float *distance2)
{
    for (int32_t s = 0; s < w->samples; s++)
        for (int64_t row = w->splits[a][s]; row < w->splits[a][s + 1]; row++) {
            int32_t *index = nearest + row * k;
            float *d2 = distance2 + row * k;
            for (int32_t m = 0; m < k; m++) index[m] = -1, d2[m] = INFINITY;
            for (int64_t other = w->splits[b][s]; other < w->splits[b][s + 1]; other++) {
                const float *p = w->xyz[a] + row * 3, *q = w->xyz[b] + other * 3;
                float dx = q[0] - p[0], dy = q[1] - p[1], dz = q[2] - p[2];
                float d = (dx * dx + dy * dy) + dz * dz;
                int32_t at = k;
                while (at > 0 && d < d2[at - 1]) at--;
                if (at == k) continue;
                for (int32_t m = k - 1; m > at; m--) index[m] = index[m - 1], d2[m] = d2[m - 1];
                index[at] = (int32_t)other;
                d2[at] = d;
            }
        }
}

static inline struct pnet_geo_view world_geo(const struct world *w, struct pnet_geo_request q)
{
    struct pnet_geo_view v = {.a = q.a, .b = q.b, .a_rows = w->rows[q.a], .b_rows = w->rows[q.b]};
    size_t n = (size_t)v.a_rows;
    if (q.kind == PNET_GEO_NEAREST) {
        int32_t *nearest = take(n * (size_t)q.nearest.k * sizeof *nearest);
        float *distance2 = take(n * (size_t)q.nearest.k * sizeof *distance2);
        world_nearest(w, q.a, q.b, q.nearest.k, nearest, distance2);
        v.k = q.nearest.k;
        v.nearest = nearest;
        v.distance2 = distance2;
        return v;
    }
    int32_t *parent = take(n * sizeof *parent), *child = take(n * sizeof *child);
    int64_t *start = take((size_t)(v.b_rows + 1) * sizeof *start), at = 0;
    for (int64_t row = 0; row < v.a_rows; row++) {
        parent[row] = (int32_t)row;
        for (int level = q.a; level < q.b; level++) parent[row] = w->parent[level][parent[row]];
    }
    for (int64_t coarse = 0; coarse < v.b_rows; coarse++) {
        start[coarse] = at;
        if (v.a_rows > 4096) continue; /* counted below */
        for (int64_t row = 0; row < v.a_rows; row++)
            if (parent[row] == coarse) child[at++] = (int32_t)row;
    }
    if (v.a_rows > 4096) {
        int64_t *count = calloc((size_t)v.b_rows, sizeof *count);
        if (!count) abort();
        for (int64_t row = 0; row < v.a_rows; row++) count[parent[row]]++;
        for (int64_t coarse = 0; coarse < v.b_rows; coarse++) {
            start[coarse] = at;
            at += count[coarse];
            count[coarse] = start[coarse];
        }
        for (int64_t row = 0; row < v.a_rows; row++) child[count[parent[row]]++] = (int32_t)row;
        free(count);
    }
    start[v.b_rows] = at;
    v.parent = parent;
    v.child_start = start;
    v.child = child;
    return v;
}

struct opcase {
    const struct pnet_op *op;
    const struct world *world;
    struct pnet_attr attr[PNET_MAX_ARGS];
    struct pnet_type in[PNET_MAX_IN];
    int in_count;
    struct pnet_rule rule; /* what it filled in */
    struct pnet_geo_view geo[PNET_MAX_GEO];
    void *in_data[PNET_MAX_IN];           /* float or int32_t */
    double *in_double[PNET_MAX_IN];       /* the same numbers; labels: NULL */
    float *param[PNET_MAX_PARAMS];        /* copies of param_start while a step runs */
    double *param_start[PNET_MAX_PARAMS]; /* values before forward */
    float *out, *gout, *gin[PNET_MAX_IN], *gparam[PNET_MAX_PARAMS];
    void *saved[PNET_MAX_SAVED];
    bool sum; /* what stands behind the inputs of the row is added to the result */
    int act;
    float slope;
    bool inference;
    const float *seeds;              /* gout of backward; NULL: seed_of */
    const char *label;               /* for messages */
    struct pnet_constants constants; /* of the reference */
};

static inline int opcase_arg(const struct opcase *c, const char *name)
{
    for (int i = 0; i < PNET_MAX_ARGS && c->op->args[i].name; i++)
        if (strcmp(c->op->args[i].name, name) == 0) return i;
    fprintf(stderr, "%s has no argument %s\n", c->op->name, name);
    abort();
}

static inline struct pnet_attr attr_of_text(const struct pnet_arg *a)
{
    struct pnet_attr v = {0};
    if (!a->standard || !*a->standard) return v;
    v.set = true;
    switch (a->type) {
    case PNET_ARG_INT: v.i = atoll(a->standard); break;
    case PNET_ARG_BOOL: v.i = strcmp(a->standard, "yes") == 0; break;
    case PNET_ARG_CHOICE:
        for (const char *p = a->choices; strncmp(p, a->standard, strlen(a->standard)) != 0; v.i++)
            p = strchr(p, '|') + 1;
        break;
    case PNET_ARG_ANGLE: v.r = strtod(a->standard, NULL) * (M_PI / 180); break;
    default: v.r = strtod(a->standard, NULL); break;
    }
    return v;
}

static inline struct opcase opcase_of(const struct world *w, const char *name)
{
    struct opcase c = {.op = pnet_op_find(name), .world = w, .label = name};
    if (!c.op) {
        fprintf(stderr, "no op %s\n", name);
        abort();
    }
    for (int i = 0; i < PNET_MAX_ARGS && c.op->args[i].name; i++)
        c.attr[i] = attr_of_text(&c.op->args[i]);
    return c;
}

static inline void opcase_int(struct opcase *c, const char *arg, int64_t v)
{
    struct pnet_attr *a = &c->attr[opcase_arg(c, arg)];
    a->set = true;
    a->i = v;
}

static inline void opcase_real(struct opcase *c, const char *arg, double v)
{
    struct pnet_attr *a = &c->attr[opcase_arg(c, arg)];
    a->set = true;
    a->r = v;
}

static inline void opcase_list(struct opcase *c, const char *arg, const double *items, int count)
{
    struct pnet_attr *a = &c->attr[opcase_arg(c, arg)];
    a->set = true;
    a->list.items = items;
    a->list.count = count;
}

static inline void opcase_in(struct opcase *c, int32_t width, int level)
{
    c->in[c->in_count++] = (struct pnet_type){PNET_F32, width, level, 0, false};
}

static inline void opcase_label(struct opcase *c, int32_t classes, int level)
{
    c->in[c->in_count++] = (struct pnet_type){PNET_I32, 1, level, classes, false};
}

static inline bool opcase_rule(struct opcase *c)
{
    c->rule = (struct pnet_rule){.attr = c->attr,
        .in = c->in,
        .in_count = c->in_count,
        .levels = c->world->levels,
        .level_count = LEVELS,
        .sample_level = SAMPLE,
        .scalar_level = SCALAR,
        .error_arg = -1,
        .error_in = -1};
    return c->op->rule(&c->rule);
}

static inline size_t type_count(const struct world *w, struct pnet_type t)
{
    return (size_t)w->rows[t.level] * (size_t)t.width;
}

static inline size_t param_count(const struct pnet_param_info *p)
{
    size_t n = 1;
    for (int i = 0; i < p->dims; i++) n *= (size_t)p->shape[i];
    return n;
}

static inline size_t bytes_of(const struct world *w, struct pnet_type t)
{
    return type_count(w, t) * (t.type == PNET_F64 ? sizeof(double) : sizeof(float));
}

/* Another value of the type of the result, behind the inputs: an input where c->sum. */
static inline void opcase_fill_added(struct opcase *c)
{
    int i = c->in_count;
    size_t n = type_count(c->world, c->rule.out);
    c->in[i] = c->rule.out;
    c->in_data[i] = take(n * sizeof(float));
    c->in_double[i] = take(n * sizeof(double));
    c->gin[i] = take(n * sizeof(float));
    for (size_t k = 0; k < n; k++) {
        float v = draw(35, k) * 4 - 2;
        ((float *)c->in_data[i])[k] = v;
        c->in_double[i][k] = (double)v;
    }
}

/* The inputs that the row's kernels see. */
static inline int opcase_inputs(const struct opcase *c)
{
    return c->in_count + c->sum;
}

/* Runs the rule, which must agree, and fills inputs and parameters. */
static inline void opcase_fill(struct opcase *c)
{
    bool fits = opcase_rule(c);
    CHECKF(fits, "%s: %s", c->label, c->rule.error);
    if (!fits) abort();
    for (int i = 0; i < c->in_count; i++) {
        size_t n = type_count(c->world, c->in[i]);
        c->in_data[i] = take(n * sizeof(float));
        if (c->in[i].type == PNET_I32) {
            int32_t *label = c->in_data[i];
            for (size_t k = 0; k < n; k++) /* one in some is ignored */
                label[k] = (int32_t)(draw(11, k) * (float)(c->in[i].classes + 1)) - 1;
            continue;
        }
        c->in_double[i] = take(n * sizeof(double));
        for (size_t k = 0; k < n; k++) {
            float v = draw(20 + (uint64_t)i, k) * 4 - 2;
            ((float *)c->in_data[i])[k] = v;
            c->in_double[i][k] = (double)v;
        }
    }
    if (c->op->flags & PNET_FUSES_SUM) opcase_fill_added(c);
    for (int i = 0; i < c->rule.param_count; i++) {
        size_t n = param_count(&c->rule.params[i]);
        c->param[i] = take(n * sizeof(float));
        c->gparam[i] = take(n * sizeof(float));
        c->param_start[i] = take(n * sizeof(double));
        for (size_t k = 0; k < n; k++) /* positive where a variance must be */
            c->param_start[i][k] = (double)(draw(40 + (uint64_t)i, k) + (i == 3 ? 0.5f : -0.4f));
    }
    for (int i = 0; i < c->rule.geo_count; i++) c->geo[i] = world_geo(c->world, c->rule.geo[i]);
    for (int i = 0; i < c->rule.saved_count; i++)
        c->saved[i] = take(bytes_of(c->world, c->rule.saved[i].type));
    for (int i = 0; i < c->in_count; i++)
        c->gin[i] = take(type_count(c->world, c->in[i]) * sizeof(float));
    c->out = take(bytes_of(c->world, c->rule.out));
    c->gout = take(bytes_of(c->world, c->rule.out));
}

static inline void opcase_free(struct opcase *c)
{
    for (int i = 0; i < PNET_MAX_IN; i++) {
        free(c->in_data[i]);
        free(c->in_double[i]);
        free(c->gin[i]);
    }
    for (int i = 0; i < PNET_MAX_PARAMS; i++) {
        free(c->param[i]);
        free(c->param_start[i]);
        free(c->gparam[i]);
    }
    for (int i = 0; i < PNET_MAX_GEO; i++) {
        free((void *)(uintptr_t)c->geo[i].parent);
        free((void *)(uintptr_t)c->geo[i].child_start);
        free((void *)(uintptr_t)c->geo[i].child);
        free((void *)(uintptr_t)c->geo[i].nearest);
        free((void *)(uintptr_t)c->geo[i].distance2);
    }
    for (int i = 0; i < PNET_MAX_SAVED; i++) free(c->saved[i]);
    free(c->constants.value);
    free(c->out);
    free(c->gout);
}

static inline struct pnet_tensor tensor_of(const struct world *w, struct pnet_type t, void *data)
{
    return (struct pnet_tensor){.data = data,
        .rows = w->rows[t.level],
        .width = t.width,
        .type = t.type,
        .level = t.level,
        .samples = w->samples,
        .row_splits = t.level == SCALAR ? NULL : w->splits[t.level]};
}

/* What both directions get. */
static inline struct pnet_exec opcase_exec(const struct opcase *c)
{
    const struct world *w = c->world;
    struct pnet_exec x = {.attr = c->attr,
        .in_count = opcase_inputs(c),
        .act = c->act,
        .slope = c->slope,
        .training = !c->inference,
        .rand = {.seed = 99, .purpose = PNET_DRAW_DROPOUT, .a = 3, .b = 5}};
    for (int i = 0; i < opcase_inputs(c); i++) x.in[i] = tensor_of(w, c->in[i], c->in_data[i]);
    x.out = tensor_of(w, c->rule.out, c->out);
    for (int i = 0; i < c->rule.saved_count; i++)
        x.saved[i] = tensor_of(w, c->rule.saved[i].type,
            c->inference && c->rule.saved[i].training_only ? NULL : c->saved[i]);
    for (int i = 0; i < c->rule.param_count; i++) x.param[i] = c->param[i];
    for (int i = 0; i < c->rule.geo_count; i++) x.geo[i] = &c->geo[i];
    return x;
}

static inline void poison(void *data, size_t bytes)
{
    memset(data, 0xff, bytes); /* NaN, and -1 */
}

/* Runs a kernel with exactly the workspace the row asks for, watching the bytes on both sides. */
static inline void opcase_step(
    const struct opcase *c, pnet_kernel *kernel, struct pnet_exec *x, bool backward)
{
    enum { GUARD = 64 };
    size_t size = c->op->work(x, backward);
    unsigned char *block = aligned_alloc(64, (size + 2 * GUARD + 63) / 64 * 64);
    if (!block) abort();
    memset(block, 0xff, size + 2 * GUARD);
    x->work = block + GUARD;
    kernel(x);
    bool whole = true;
    for (int i = 0; i < GUARD; i++)
        whole &= block[i] == 0xff && block[GUARD + size + (size_t)i] == 0xff;
    CHECKF(whole, "%s: writes beyond its workspace", c->label);
    free(block);
}

static inline void opcase_forward(struct opcase *c)
{
    for (int i = 0; i < c->rule.param_count; i++)
        for (size_t k = 0; k < param_count(&c->rule.params[i]); k++)
            c->param[i][k] = (float)c->param_start[i][k];
    poison(c->out, bytes_of(c->world, c->rule.out));
    for (int i = 0; i < c->rule.saved_count; i++)
        poison(c->saved[i], bytes_of(c->world, c->rule.saved[i].type));
    struct pnet_exec x = opcase_exec(c);
    opcase_step(c, c->op->forward, &x, false);
}

/* The seed of element k of gout, and what was in a gradient before it is added to. */
static inline float seed_of(uint64_t k)
{
    return draw(60, k) * 2 - 0.9f;
}
static inline float before_of(uint64_t k)
{
    return draw(61, k) - 0.3f;
}

/* Backward after forward. With `add` every gradient is added to before_of; else memory is poisoned.
   With `shared` gin[0] lives in the memory of gout, and ends up in c->gout. */
static inline void opcase_backward(struct opcase *c, bool add, bool shared)
{
    const struct world *w = c->world;
    struct pnet_exec x = opcase_exec(c);
    for (size_t k = 0; k < type_count(w, c->rule.out); k++)
        c->gout[k] = c->seeds ? c->seeds[k] : seed_of(k);
    x.gout = tensor_of(w, c->rule.out, c->gout);
    for (int i = 0; i < opcase_inputs(c); i++) {
        if (!(c->op->keep & (1u << i))) x.in[i].data = NULL;
        bool wanted = c->in[i].type == PNET_F32;
        float *to = shared && i == 0 ? c->gout : c->gin[i];
        x.gin[i] = tensor_of(w, c->in[i], wanted ? to : NULL);
        x.gin_add[i] = add;
        for (size_t k = 0; k < type_count(w, c->in[i]); k++)
            c->gin[i][k] = add ? before_of(k) : NAN;
    }
    if (!(c->op->keep & PNET_KEEP_OUT) && !c->act) x.out.data = NULL;
    for (int i = 0; i < c->rule.param_count; i++) {
        if (c->rule.params[i].trained) x.gparam[i] = c->gparam[i];
        x.gparam_add[i] = add;
        for (size_t k = 0; k < param_count(&c->rule.params[i]); k++)
            c->gparam[i][k] = add ? before_of(k) : NAN;
    }
    opcase_step(c, c->op->backward, &x, true);
}

/* The next run of the reference is a first one. */
static inline void opcase_let_go(struct opcase *c)
{
    free(c->constants.value);
    c->constants = (struct pnet_constants){NULL, 0};
}

/* The reference's result in double: [type_count of out], to be freed. What is fused, the sum and the
   activation, is applied to it here. */
static inline double *opcase_reference(struct opcase *c)
{
    struct pnet_exec x = opcase_exec(c);
    x.constants = &c->constants;
    size_t n = type_count(c->world, c->rule.out);
    double *out = take(n * sizeof *out);
    for (int i = 0; i < c->in_count; i++)
        if (c->in_double[i]) x.in[i].data = c->in_double[i];
    for (int i = 0; i < c->rule.param_count; i++) x.param[i] = c->param_start[i];
    poison(out, n * sizeof *out);
    x.out.data = out;
    c->op->reference(&x);
    for (size_t k = 0; c->sum && k < n; k++) out[k] += c->in_double[c->in_count][k];
    double below = c->act == PNET_ACT_LEAKY ? (double)c->slope : 0;
    for (size_t k = 0; c->act && k < n; k++)
        if (out[k] < 0) out[k] *= below;
    return out;
}

/* sum over out of seed * reference: what is differentiated. */
static inline double opcase_objective(struct opcase *c)
{
    double *out = opcase_reference(c), sum = 0;
    for (size_t k = 0; k < type_count(c->world, c->rule.out); k++)
        sum += (double)seed_of(k) * out[k];
    free(out);
    return sum;
}

/* |got - want| / |want| over all elements; absolute where want is all 0. */
static inline double distance(size_t n, const float *got, const double *want)
{
    double error = 0, size = 0;
    for (size_t k = 0; k < n; k++) {
        error += ((double)got[k] - want[k]) * ((double)got[k] - want[k]);
        size += want[k] * want[k];
    }
    return sqrt(error) / (size > 0 ? sqrt(size) : 1);
}

/* One gradient, in float, against central differences by the numbers in `at`. */
static inline void check_gradient(
    struct opcase *c, const char *of, int index, size_t n, double *at, float *got, bool add)
{
    enum { MOST = 400 };
    const double step = 1e-6;
    size_t stride = n > MOST ? n / MOST + 1 : 1, count = 0;
    float *some = take((n / stride + 1) * sizeof *some);
    double *want = take((n / stride + 1) * sizeof *want);
    for (size_t k = 0; k < n; k += stride, count++) {
        double v = at[k];
        at[k] = v + step;
        double above = opcase_objective(c);
        at[k] = v - step;
        double below = opcase_objective(c);
        at[k] = v;
        want[count] = (above - below) / (2 * step);
        some[count] = add ? got[k] - before_of(k) : got[k];
    }
    double error = distance(count, some, want);
    CHECKF(error < 2e-5, "%s: gradient of %s %d is off by %g (act %d, add %d)", c->label, of, index,
        error, c->act, add);
    free(some);
    free(want);
}

static inline void check_gradients(struct opcase *c)
{
    for (int add = 0; add < 2; add++) {
        opcase_forward(c);
        opcase_backward(c, add, false);
        for (int i = 0; i < opcase_inputs(c); i++)
            if (c->in_double[i])
                check_gradient(
                    c, "input", i, type_count(c->world, c->in[i]), c->in_double[i], c->gin[i], add);
        for (int i = 0; i < c->rule.param_count; i++)
            if (c->rule.params[i].trained)
                check_gradient(c, "parameter", i, param_count(&c->rule.params[i]),
                    c->param_start[i], c->gparam[i], add);
    }
}

/* Forward against the reference, for floats, labels and counts. */
static inline void check_forward(struct opcase *c)
{
    opcase_forward(c);
    opcase_let_go(c);
    size_t n = type_count(c->world, c->rule.out);
    double *want = opcase_reference(c);
    if (c->rule.out.type == PNET_F32) {
        double error = distance(n, c->out, want);
        CHECKF(error < 3e-6, "%s: result is off by %g (act %d)", c->label, error, c->act);
    } else {
        CHECKF(memcmp(c->out, want, bytes_of(c->world, c->rule.out)) == 0, "%s: other result",
            c->label);
    }
    free(want);
}

/* In place where the row allows: the same bits. */
static inline void check_sharing(struct opcase *c)
{
    size_t out = bytes_of(c->world, c->rule.out);
    float *kept = take(out);
    if (c->op->flags & PNET_IN_PLACE) {
        opcase_forward(c);
        struct pnet_exec x = opcase_exec(c);
        for (int i = 0; i < c->rule.param_count; i++)
            for (size_t k = 0; k < param_count(&c->rule.params[i]); k++)
                c->param[i][k] = (float)c->param_start[i][k];
        memcpy(kept, c->in_data[0], out);
        x.out.data = c->in_data[0];
        opcase_step(c, c->op->forward, &x, false);
        CHECKF(memcmp(c->in_data[0], c->out, out) == 0, "%s: other bits in place", c->label);
        memcpy(c->in_data[0], kept, out);
    }
    if (c->op->flags & PNET_GRAD_IN_PLACE) {
        opcase_forward(c);
        opcase_backward(c, false, false);
        memcpy(kept, c->gin[0], out);
        opcase_backward(c, false, true);
        CHECKF(memcmp(kept, c->gout, out) == 0, "%s: other gradient in place", c->label);
    }
    free(kept);
}

/* Everything a row promises, at each fused activation, and in inference. */
static inline void check_op(struct opcase *c)
{
    opcase_fill(c);
    int last = c->op->flags & PNET_FUSES_ACT ? PNET_ACT_LEAKY : PNET_ACT_NONE;
    c->slope = 0.2f;
    int sums = c->op->flags & PNET_FUSES_SUM ? 2 : 1;
    for (int of = 0; of < sums * (last + 1); of++) {
        c->sum = of > last;
        c->act = of % (last + 1);
        check_forward(c);
        if (c->op->backward && c->rule.out.type == PNET_F32) {
            check_gradients(c);
            check_sharing(c);
        }
    }
    c->act = PNET_ACT_NONE;
    c->inference = true;
    for (int sum = 0; sum < sums; sum++) {
        c->sum = sum;
        check_forward(c);
    }
    c->sum = false;
    opcase_free(c);
}

/* The same bits for 1, 2 and 3 threads, in both directions; and the reference's result. */
static inline void check_threads(struct opcase *c)
{
    opcase_fill(c);
    c->sum = c->op->flags & PNET_FUSES_SUM;
    size_t out = bytes_of(c->world, c->rule.out);
    void *first_out = take(out), *first_gin[PNET_MAX_IN] = {0},
         *first_gparam[PNET_MAX_PARAMS] = {0};
    bool back = c->op->backward && c->rule.out.type == PNET_F32;
    int before = omp_get_max_threads();
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        opcase_forward(c);
        if (threads == 1) memcpy(first_out, c->out, out);
        CHECKF(memcmp(first_out, c->out, out) == 0, "%s: %d threads", c->label, threads);
        if (!back) continue;
        opcase_backward(c, true, false);
        for (int i = 0; i < opcase_inputs(c); i++) {
            size_t size = type_count(c->world, c->in[i]) * sizeof(float);
            if (threads == 1) memcpy(first_gin[i] = take(size), c->gin[i], size);
            CHECKF(memcmp(first_gin[i], c->gin[i], size) == 0,
                "%s: gradient of input %d, %d threads", c->label, i, threads);
        }
        for (int i = 0; i < c->rule.param_count; i++) {
            size_t size = param_count(&c->rule.params[i]) * sizeof(float);
            if (threads == 1) memcpy(first_gparam[i] = take(size), c->gparam[i], size);
            CHECKF(memcmp(first_gparam[i], c->gparam[i], size) == 0,
                "%s: gradient of parameter %d, %d threads", c->label, i, threads);
        }
    }
    omp_set_num_threads(before);
    free(first_out);
    for (int i = 0; i < PNET_MAX_IN; i++) free(first_gin[i]);
    for (int i = 0; i < PNET_MAX_PARAMS; i++) free(first_gparam[i]);
    opcase_free(c);
}

#endif
