/* The receptive field of a plan: by hand for small models; and what it promises, that the result of a point has the same bits
   where all points beyond are missing, and other bits where points within are. */
#include "tests/models/batch.h"

#include <math.h>

static const char harness[] = "pnet 1\n"
                              "input cloud { xyz : position  rgb : feature[3] }\n"
                              "net test(p: cloud) {\n"
                              "  g = grid(p, 10cm * [1, 2, 6])\n"
                              "  h = grid(p, 25cm)\n"
                              "  a = p.rgb -> pool(mean, to=g[0])\n"
                              "  return %s\n"
                              "}\n"
                              "y = test(cloud)\n";

struct field_case {
    const char *expression;
    double native, voxel; /* metres, by hand; 0: the bits alone are checked; NAN: no voxel mode */
};

/* By radius: a cell to the coarse level and one back, and the radius between. By window: the voxel of the point, and the voxels
   of windows beyond it. */
static const struct field_case bounded[] = {
    {"p.rgb -> linear(5)", 0, 0},
    {"a -> upsample(to=level(p))", 0.1, 0.1},
    {"a -> conv(5, kernel=3) -> upsample(to=level(p))", 0.35, 0.2},
    {"a -> conv(5, kernel=3, radius=37cm) -> upsample(to=level(p))", 0.57, 0.2},
    {"a -> conv(5, kernel=5, shape=cube) -> upsample(to=level(p))", 0.45, 0.3},
    {"a -> conv(5, kernel=2, to=g[1]) -> upsample(to=level(p))", 0.5, 0.2},
    {"a -> conv(5, kernel=3, to=g[2]) -> upsample(to=level(p))", 1.3, 0.7},
    {"a -> conv(5, kernel=2, to=g[1]) -> conv(5, kernel=2, to=g[0]) -> upsample(to=level(p))", 0,
        0},
    {"p.rgb -> pool(max, to=h) -> conv(5, kernel=3) -> upsample(to=level(p))", 0.875, 0.5},
    {"a -> pool(max, to=g[1]) -> interpolate(to=level(p))", 0, 0},
    {"a -> conv(3, kernel=3) -> interpolate(to=level(p), kind=nearest)", 0.35, 0.2},
    {"p.rgb -> conv(5, kernel=3, radius=15cm) -> relu -> conv(5, kernel=1)", 0.15, NAN},
    {"cat(a, (a -> conv(5, kernel=3) -> bn -> relu) + (a -> linear(5))) -> upsample(to=level(p))",
        0.35, 0.2},
    {"cat(a, a -> conv(6, kernel=2, to=g[1]) -> conv(6, kernel=3) -> conv(6, kernel=3, to=g[2]) -> "
     "conv(5, kernel=3, to=g[0])) -> conv(4, kernel=3) -> upsample(to=level(p)) -> linear(3)",
        0, 0},
};

static const struct {
    const char *expression, *behind;
} unbounded[] = {
    {"a -> conv(5, kernel=3, knn=8) -> upsample(to=level(p))", "test.out.conv"},
    {"a -> instancenorm -> upsample(to=level(p))", "test.out.instancenorm"},
    {"a -> linear(8) -> groupnorm(groups=4) -> upsample(to=level(p))", "test.out.groupnorm"},
    {"a -> upsample(to=level(p), kind=inverse_distance)", "test.out.upsample"},
    {"a -> pool(max, to=sample) -> expand(to=level(p))", "test.out.pool"},
    {"a -> pool(max, to=sample) -> linear(5) -> relu", "test.out.pool"},
    {"a -> pool(max, to=chunks(g[0], 8)) -> upsample(to=level(p))", "test.out.pool"},
    {"a -> linear(48) -> attend(heads=2, bucket=64) -> upsample(to=level(p))", "test.out.attend"},
};

static struct pnet_compilation *compile(const char *expression, unsigned degrade)
{
    char text[2048];
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .degrade = degrade};
    snprintf(text, sizeof text, harness, expression);
    return need_plan(pnet_compile_text("field.pnet", text, strlen(text), &o), expression);
}

static struct pnet_receptive_field field_of(const struct pnet_plan *p)
{
    struct pnet_receptive_field f;
    struct pnet_error e;
    need(pnet_plan_receptive_field(p, p->result, &f, &e), &e, "field");
    return f;
}

static const float *give(void *context, const char *name, int64_t count)
{
    float *data = context;
    uint64_t seed = 7;
    for (const char *c = name; *c; c++) seed = seed * 31 + (uint8_t)*c;
    bool variance = strstr(name, "running_var") != NULL;
    for (int64_t i = 0; i < count; i++)
        data[i] = cloud_unit(seed, (uint64_t)i) - 0.5f + (variance ? 1 : 0);
    return data;
}

/* The result for the points of the cloud, to be freed. */
static float *infer(const struct pnet_plan *p, const struct cloud *c)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct pnet_runner *s;
    struct pnet_error e;
    float *rows, *weights = must(malloc(sizeof(float) * 1000000));
    int64_t count;
    struct pnet_batch *b = batch_of(p, c, 1);
    need(pnet_runner_new(need_bound(p, (struct pnet_device){0}, PNET_FP32), &o, &s, &e), &e,
        "runner");
    need(pnet_runner_load_params(s, give, weights, &e), &e, "weights");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, false, 0, &e), &e, "forward");
    need(pnet_runner_result(s, 0, &rows, &count, &e), &e, "result");
    CHECKF(
        count == c->n, "%lld rows of a result for %lld points", (long long)count, (long long)c->n);
    runner_end(s);
    pnet_batch_free(b);
    free(weights);
    return rows;
}

/* A beam along x, so that a field covers it in the other directions. */
static struct cloud beam(double length, uint64_t seed)
{
    int64_t n = (int64_t)fmin(2000 + length * 700, 20000);
    struct cloud c = cloud_new(n);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            c.xyz[3 * i + k] =
                (k ? 0.5f : (float)length) * cloud_unit(seed, (uint64_t)(3 * i + k)) - 1;
    cloud_paint(&c, seed);
    return c;
}

/* Does the result of a point have the same bits without all points farther away than `far` on an axis? */
static bool same_within(
    const struct pnet_plan *p, const struct cloud *c, const float *whole, int64_t point, double far)
{
    int64_t *keep = must(malloc((size_t)c->n * sizeof *keep)), count = 0, at = 0;
    size_t width = (size_t)p->tensors[p->result].type.width;
    for (int64_t i = 0; i < c->n; i++) {
        double away = 0;
        for (int k = 0; k < 3; k++)
            away = fmax(away, fabs((double)c->xyz[3 * i + k] - (double)c->xyz[3 * point + k]));
        if (i == point) at = count;
        if (away <= far) keep[count++] = i;
    }
    CHECKF(count < c->n, "all %lld points lie within %g m", (long long)count, far);
    struct cloud part = cloud_pick(c, keep, count);
    float *rows = infer(p, &part);
    bool same =
        memcmp(rows + (size_t)at * width, whole + (size_t)point * width, width * sizeof *rows) == 0;
    cloud_free(&part);
    free(rows);
    free(keep);
    return same;
}

static void check_bounded(const char *expression, double by_hand, unsigned degrade)
{
    enum { POINTS = 4, TRIES = 12 };
    struct pnet_compilation *compilation = compile(expression, degrade);
    const struct pnet_plan *p = pnet_compilation_plan(compilation);
    struct pnet_receptive_field f = field_of(p);
    CHECKF(isfinite(f.metres) && f.node < 0, "%s, degraded %u: no bound", expression, degrade);
    if (by_hand > 0)
        CHECKF(fabs(f.metres - by_hand) < 1e-6, "%s, degraded %u: %.9g m, by hand %.9g", expression,
            degrade, f.metres, by_hand);
    double far = f.metres * (1 + 1e-6) + 1e-5;
    struct cloud c = beam(fmax(5 * f.metres, 1), 3 + degrade);
    float *whole = infer(p, &c);
    int other = 0, seen = 0;
    for (int64_t i = 0; i < c.n && seen < TRIES; i += 97) {
        /* away from both ends */
        if (fabs((double)c.xyz[3 * i] + 1 - 2.5 * f.metres) > f.metres / 2 + 0.2) continue;
        if (seen++ < POINTS)
            CHECKF(same_within(p, &c, whole, i, far),
                "%s, degraded %u: point %lld needs more than %g m", expression, degrade,
                (long long)i, far);
        if (f.metres > 0) other += !same_within(p, &c, whole, i, 0.35 * f.metres);
    }
    CHECKF(seen >= POINTS, "%s: %d points seen", expression, seen);
    if (f.metres > 0)
        CHECKF(
            other > 0, "%s, degraded %u: a third of %g m is enough", expression, degrade, f.metres);
    free(whole);
    cloud_free(&c);
    pnet_compilation_free(compilation);
}

int main(void)
{
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded; i++) {
        check_bounded(bounded[i].expression, bounded[i].native, 0);
        if (isnan(bounded[i].voxel)) continue;
        check_bounded(bounded[i].expression, bounded[i].voxel, PNET_VOXEL);
        for (unsigned d = PNET_CENTRE; d < PNET_VOXEL; d++)
            if (i % 2) check_bounded(bounded[i].expression, 0, d);
    }
    for (size_t i = 0; i < sizeof unbounded / sizeof *unbounded; i++) {
        struct pnet_compilation *c = compile(unbounded[i].expression, 0);
        const struct pnet_plan *p = pnet_compilation_plan(c);
        struct pnet_receptive_field f = field_of(p);
        CHECKF(isinf(f.metres) && f.node >= 0 &&
                   strcmp(p->nodes[f.node].path, unbounded[i].behind) == 0,
            "%s: %g m behind %s", unbounded[i].expression, f.metres,
            f.node < 0 ? "nothing" : p->nodes[f.node].path);
        pnet_compilation_free(c);
    }
    return check_end();
}
