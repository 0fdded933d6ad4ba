/* Inference with batch norms folded into the layers before them, and sums and activations fused, gives what the network
   node by node gives: both against the plain references of the layers, in double. */
#include "tests/models/batch.h"
#include "tests/ops/reference.h"

#include <glob.h>
#include <math.h>

/* argv[1]: "cpu" (default) or "cuda". */
static struct pnet_device device;

/* How far rounding may lead from the references, relative to the result: one layer or a few, and a whole model. Products on a
   GPU are rounded more often. */
static double few_layers(void)
{
    return device.kind == PNET_CPU ? 5e-7 : 3e-6;
}

static double whole_model(void)
{
    return device.kind == PNET_CPU ? 5e-6 : 3e-5;
}

/* Of values x (4 channels, g[0]), z (4 channels, g[1]) and t (4 channels, a row a sample). */
static const struct {
    const char *expression;
    int norms, folded; /* how many batch norms there are, and how many of them go */
} cases[] = {
    {"x -> conv(5) -> bn", 1, 1},
    {"x -> conv(5, bias=yes) -> bn(eps=1e-2)", 1, 1},
    {"x -> conv(8, groups=2) -> bn", 1, 1},
    {"x -> conv(4, groups=4, kernel=5) -> bn -> relu", 1, 1},
    {"x -> conv(6, kernel=2, to=g[1]) -> bn", 1, 1},
    {"z -> conv(6, kernel=2, to=g[0]) -> bn -> relu", 1, 1},
    {"x -> conv(4, knn=5) -> bn", 1, 1},
    {"x -> conv(4, kernel=1) -> bn", 1, 1},
    {"x -> linear(5) -> bn", 1, 1},
    {"x -> linear(5, bias=no) -> bn(eps=1e-2) -> leaky_relu(0.2)", 1, 1},
    {"t -> linear(7) -> bn -> relu", 1, 1},
    {"p.f -> linear(1) -> bn", 1, 1},
    /* several, and what is fused behind them */
    {"(x -> conv(4) -> bn) + x -> relu", 1, 1},
    {"(x -> conv(4) -> bn) + (x -> linear(4) -> bn -> relu) -> leaky_relu", 2, 2},
    {"x -> conv(8) -> bn -> relu -> conv(4) -> bn -> relu -> linear(3)", 2, 2},
    {"x -> conv(5) -> bn -> bn(eps=0.1)", 2, 2},
    {"x -> linear(5) -> bn -> bn -> relu -> bn", 3, 2},
    /* norms that stay, and do more */
    {"x -> bn -> relu", 1, 0},
    {"(x -> conv(4) -> relu -> bn) + x -> relu", 1, 0},
    {"x -> conv(4) -> instancenorm -> bn", 1, 0},
};

/* Weights as training leaves them: norms are not at their symmetric start. */
static void draw_weights(struct pnet_runner *s)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct pnet_error e;
    need(pnet_runner_init_params(s, &e), &e, "weights");
    float *block = must(calloc((size_t)p->param_elements + 1, sizeof *block));
    need(pnet_runner_read(s, PNET_BLOCK_PARAMS, 0, p->param_elements, block, &e), &e, "weights");
    for (int i = 0; i < p->param_count; i++) {
        const struct pnet_plan_param *q = &p->params[i];
        if (q->offset < 0 || q->info.init == PNET_INIT_KAIMING) continue;
        for (int64_t k = 0; k < q->count; k++) {
            float u = cloud_unit(77 + (uint64_t)i, (uint64_t)k) - 0.5f;
            block[q->offset + k] += q->info.init == PNET_INIT_ONE ? u : 0.4f * u;
        }
    }
    need(pnet_runner_write(s, PNET_BLOCK_PARAMS, 0, p->param_elements, block, &e), &e, "weights");
    free(block);
}

static struct pnet_runner *open_runner(
    const struct pnet_plan *p, const struct pnet_batch *b, struct pnet_device where)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 3};
    struct pnet_target target = {.where = where};
    struct pnet_bound *bound;
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_bound_new(p, &target, &bound, &e), &e, "binding");
    need(pnet_runner_new(bound, &o, &s, &e), &e, "runner");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    return s;
}

static void forward(struct pnet_runner *s)
{
    struct pnet_error e;
    need(pnet_runner_forward(s, 0, false, 0, &e), &e, "forward");
    need(pnet_runner_wait(s, &e), &e, "waiting");
}

/* For pnet_runner_load_params: out of a runner on the CPU. */
static const float *weights_of(void *context, const char *name, int64_t count)
{
    struct pnet_runner *s = context;
    const struct pnet_plan *p = pnet_runner_plan(s);
    int i = pnet_plan_param_find(p, name);
    return i >= 0 && p->params[i].count == count ? pnet_runner_params(s) + p->params[i].offset
                                                 : NULL;
}

/* How far the runner's result is from that of the reference, relative to it. */
static double distance_of(struct pnet_runner *s, const struct reference *r)
{
    const double *want = r->values[r->plan->result];
    size_t n = reference_elements(r, r->plan->result);
    struct pnet_error e;
    double error = 0, scale = 0;
    int64_t rows;
    void *to;
    need(pnet_runner_copy_tensor(s, 0, pnet_runner_plan(s)->result, &to, &rows, &e), &e, "result");
    const float *got = to;
    for (size_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        scale += want[i] * want[i];
    }
    CHECKF(n > 0 && scale > 0, "no result to compare");
    free(to);
    return sqrt(error / scale);
}

static int live_norms(const struct pnet_plan *p)
{
    int count = 0;
    for (int n = 0; n < p->node_count; n++)
        count += !p->nodes[n].dead && (p->nodes[n].op->flags & PNET_FOLDS);
    return count;
}

/* `most`: the distance that rounding may make. */
static void compare(const char *what, const struct pnet_plan *apart, const struct pnet_plan *folded,
    const struct cloud *clouds, int32_t count, double most)
{
    struct pnet_batch *b = batch_of(apart, clouds, count), *same = batch_of(folded, clouds, count);
    struct pnet_runner *plain = open_runner(apart, b, (struct pnet_device){0});
    struct pnet_runner *s = open_runner(folded, same, device);
    struct pnet_error e;
    struct reference r;
    draw_weights(plain);
    need(pnet_runner_load_params(s, weights_of, plain, &e), &e, "loading");
    forward(plain);
    forward(s);
    reference_init(&r, plain);
    reference_run(&r, false);
    double by_node = distance_of(plain, &r), by_fold = distance_of(s, &r);
    CHECKF(by_node <= most && by_fold <= most, "%s: off by %g unfolded, %g folded", what, by_node,
        by_fold);
    CHECKF(by_node != by_fold || !folded->fold_count,
        "%s: to the bit the same, as if no folded layer reached the result", what);
    CHECK(live_norms(apart) - live_norms(folded) == folded->fold_count && apart->fold_count == 0);
    reference_free(&r);
    runner_end(plain);
    runner_end(s);
    pnet_batch_free(b);
    pnet_batch_free(same);
}

static struct pnet_compilation *compile_case(const char *expression, bool apart)
{
    static const char around[] = "pnet 1\n"
                                 "input cloud { xyz : position  f : feature[4] }\n"
                                 "net n(p: cloud) {\n"
                                 "  g = grid(p, 10cm * [1, 2])\n"
                                 "  x = p.f -> pool(mean, to=g[0])\n"
                                 "  z = p.f -> pool(mean, to=g[1])\n"
                                 "  t = p.f -> pool(mean, to=sample)\n"
                                 "  return %s\n"
                                 "}\n"
                                 "r = n(cloud)\n";
    char text[1024];
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .no_fusion = apart};
    snprintf(text, sizeof text, around, expression);
    return need_plan(pnet_compile_text("folding.pnet", text, strlen(text), &o), expression);
}

/* The layers that took up a norm, by their places in the table. */
static void note_folds(const struct pnet_plan *p, bool *seen)
{
    for (int f = 0; f < p->fold_count; f++)
        for (int n = 0; n < p->node_count; n++)
            for (int i = 0; i < pnet_op_count && !p->nodes[n].dead; i++)
                seen[i] |= pnet_ops[i] == p->nodes[n].op && p->nodes[n].param_count &&
                           p->nodes[n].param[0] == p->folds[f].weight;
}

static void test_cases(const struct cloud *clouds, int32_t count)
{
    bool *seen = must(calloc((size_t)pnet_op_count, sizeof *seen));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *what = cases[i].expression;
        struct pnet_compilation *a = compile_case(what, true), *c = compile_case(what, false);
        const struct pnet_plan *apart = pnet_compilation_plan(a), *p = pnet_compilation_plan(c);
        CHECKF(live_norms(apart) == cases[i].norms && p->fold_count == cases[i].folded,
            "%s: %d of %d norms folded", what, p->fold_count, live_norms(apart));
        compare(what, apart, p, clouds, count, few_layers());
        note_folds(p, seen);
        pnet_compilation_free(a);
        pnet_compilation_free(c);
    }
    for (int i = 0; i < pnet_op_count; i++)
        CHECKF(seen[i] == !!(pnet_ops[i]->flags & PNET_LINEAR_OUT),
            "no case folds a norm into %s, or it cannot be folded into", pnet_ops[i]->name);
    free(seen);
}

/* A param that makes a model small enough for double: 46 million weights, or 16,384 generated points, take half a minute. */
static const char *smaller_of(const char *path)
{
    if (strstr(path, "flash3d") || strstr(path, "ptv3")) return "c=16";
    if (strstr(path, "pcn")) return "coarse=64";
    return strstr(path, "foldingnet") ? "count=1024" : NULL;
}

static void test_models(const struct cloud *clouds, int32_t count)
{
    glob_t models;
    CHECK(glob("models/*.pnet", 0, NULL, &models) == 0);
    for (size_t i = 0; i < models.gl_pathc; i++) {
        const char *path = models.gl_pathv[i];
        struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .no_fusion = true};
        const char *smaller = smaller_of(path);
        o.sets = &smaller;
        o.set_count = smaller != NULL;
        struct pnet_compilation *a = need_plan(pnet_compile_file(path, &o), path);
        o.no_fusion = false;
        struct pnet_compilation *c = need_plan(pnet_compile_file(path, &o), path);
        const struct pnet_plan *p = pnet_compilation_plan(c);
        CHECKF(p->fold_count > 0, "%s has no norm to fold", path);
        compare(path, pnet_compilation_plan(a), p, clouds, count, whole_model());
        pnet_compilation_free(a);
        pnet_compilation_free(c);
    }
    CHECKF(models.gl_pathc >= 5, "only %zu models", models.gl_pathc);
    globfree(&models);
}

int main(int argc, char **argv)
{
    struct pnet_error e;
    if ((argc > 1 && pnet_device_parse(argv[1], &device, &e)) || pnet_device_check(device, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    struct cloud clouds[2] = {cloud_corner(160, 0.8f, 5), cloud_corner(60, 0.6f, 6)};
    test_cases(clouds, 2);
    /* so that levels of large cells have several rows too */
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < clouds[i].n; k++)
            clouds[i].xyz[3 * k] += 12 * (float)(k * 4 / clouds[i].n);
    test_models(clouds, 2);
    for (int i = 0; i < 2; i++) cloud_free(&clouds[i]);
    return check_end();
}
