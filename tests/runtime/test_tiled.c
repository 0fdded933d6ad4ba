/* Results of tiles have the bits of those of the whole cloud where the margin is the receptive field, and others where it is
   smaller; blended ones are those of the whole cloud where each tile reads all of it. */
#include "runtime/train/tiled.h"
#include "tests/models/batch.h"

#include <math.h>

#define HEAD "pnet 1\ninput cloud { xyz : position  rgb : feature[3] }\nnet test(p: cloud) {\n"
#define TAIL "\n}\ny = test(cloud)\n"

static const float *give(void *context, const char *name, int64_t count)
{
    float *data = context;
    uint64_t seed = 7;
    for (const char *c = name; *c; c++) seed = seed * 31 + (uint8_t)*c;
    bool variance = strstr(name, "running_var") != NULL;
    float size = count > 4096 ? 0.2f : 1; /* so that sums of many products stay finite */
    for (int64_t i = 0; i < count; i++)
        data[i] = size * (cloud_unit(seed, (uint64_t)i) - 0.5f) + (variance ? 1 : 0);
    return data;
}

/* Clusters of points in a cube, so that all levels find neighbours; rows at random. */
static struct cloud clusters(int64_t n, double edge, double size, double from)
{
    enum { EACH = 20, SEED = 5 };
    struct cloud c = cloud_new(n);
    for (int64_t i = 0; i < 3 * n; i++) {
        uint64_t cluster = (uint64_t)(i / 3 % (n / EACH));
        double at = (double)cloud_unit(SEED, 3 * cluster + (uint64_t)(i % 3)) - 0.5,
               off = (double)cloud_unit(SEED + 1, (uint64_t)i) - 0.5;
        c.xyz[i] = (float)(from + edge / 2 + (edge - size) * at + size * off);
    }
    cloud_paint(&c, SEED);
    return c;
}

/* A model with weights at hand, and a cloud. */
struct scene {
    struct pnet_compilation *compilation;
    const struct pnet_plan *plan;
    struct cloud cloud;
    struct pnet_batch *batch;
    struct pnet_runner *runner;
    float *whole; /* the result of the whole cloud */
    size_t width;
    double margin;
    const char *behind;
};

static struct scene open_scene(
    const char *name, const char *text, const char *set, unsigned degrade, struct cloud cloud)
{
    enum { WEIGHTS_MOST = 4000000 };
    struct pnet_compile_options co = {
        .purpose = PNET_FOR_INFERENCE, .degrade = degrade, .sets = &set, .set_count = set != NULL};
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct pnet_error e;
    int64_t count;
    float *weights = must(malloc(sizeof(float) * WEIGHTS_MOST));
    struct scene s = {.cloud = cloud,
        .compilation = need_plan(
            text ? pnet_compile_text(name, text, strlen(text), &co) : pnet_compile_file(name, &co),
            name)};
    const struct pnet_plan *p = s.plan = pnet_compilation_plan(s.compilation);
    s.width = (size_t)p->tensors[p->result].type.width;
    s.batch = batch_of(p, &s.cloud, 1);
    struct pnet_bound *bound = need_bound(p, (struct pnet_device){0}, PNET_FP32);
    need(pnet_runner_new(bound, &o, &s.runner, &e), &e, "runner");
    need(pnet_runner_load_params(s.runner, give, weights, &e), &e, "weights");
    free(weights);
    need(pnet_runner_prepare(s.runner, 0, s.batch, &e), &e, "geometry");
    need(pnet_runner_forward(s.runner, 0, false, 0, &e), &e, "forward");
    need(pnet_runner_result(s.runner, 0, &s.whole, &count, &e), &e, "result");
    need(pnet_tiled_margin(p, &s.margin, &s.behind, &e), &e, "margin");
    return s;
}

static void close_scene(struct scene *s)
{
    free(s->whole);
    runner_end(s->runner);
    pnet_batch_free(s->batch);
    cloud_free(&s->cloud);
    pnet_compilation_free(s->compilation);
}

/* Runs tiles; the number of points whose results have other bits than those of the whole cloud. */
static int64_t others(const struct scene *s, double edge, double margin, struct pnet_tiled_work *w)
{
    struct pnet_tiled_options o = {.tiling = pnet_tiling_new(s->plan, edge)};
    struct pnet_error e;
    float *tiled;
    int64_t count = 0;
    o.tiling.margin = margin;
    need(pnet_tiled_result(s->runner, s->batch, 0, &o, &tiled, w, &e), &e, "tiles");
    for (size_t i = 0; i < (size_t)s->cloud.n; i++)
        count +=
            memcmp(s->whole + i * s->width, tiled + i * s->width, s->width * sizeof *tiled) != 0;
    free(tiled);
    return count;
}

struct tiled_case {
    const char *name, *text; /* NULL: a file */
    const char *set;
    int64_t points;
    double edge, cluster, from; /* of the cloud, metres; where it begins on each axis */
};

static void check_case(const struct tiled_case *k, unsigned degrade)
{
    struct scene s = open_scene(
        k->name, k->text, k->set, degrade, clusters(k->points, k->edge, k->cluster, k->from));
    struct pnet_tiled_work w;
    CHECKF(isfinite(s.margin) && s.margin < k->edge / 4, "%s: a margin of %g m in a cloud of %g m",
        k->name, s.margin, k->edge);
    int64_t wrong = others(&s, k->edge / 2.9, s.margin, &w);
    CHECKF(!wrong, "%s, degraded %u: %lld of %lld points have other bits in %lld tiles", k->name,
        degrade, (long long)wrong, (long long)k->points, (long long)w.tiles);
    CHECKF(w.tiles >= 27, "%s: %lld tiles", k->name, (long long)w.tiles);
    CHECKF(w.points == k->points && w.computed > w.points && w.largest < w.points,
        "%s: %lld points, %lld computed, %lld at most", k->name, (long long)w.points,
        (long long)w.computed, (long long)w.largest);
    if (!degrade)
        CHECKF(others(&s, k->edge / 2.9, s.margin / 20, &w) > 0,
            "%s: a twentieth of the margin is enough", k->name);
    close_scene(&s);
}

/* Each tile reads the whole cloud: means of equal results. A net whose field has no bound. */
static void check_blend(void)
{
    struct scene s = open_scene("blend.pnet",
        HEAD "  g = grid(p, 10cm * [1, 2])\n"
             "  return p.rgb -> pool(mean, to=g[0]) -> conv(5, kernel=3, knn=8) -> instancenorm -> "
             "upsample(to=level(p))" TAIL,
        NULL, 0, clusters(2000, 2, 0.2, -1));
    struct pnet_tiled_options o = {.blend = true, .tiling = pnet_tiling_new(s.plan, 0.9)};
    struct pnet_tiled_work w;
    struct pnet_error e;
    double far = 0;
    float *tiled;
    CHECKF(isinf(s.margin) && s.behind && strcmp(s.behind, "test.out.conv") == 0,
        "a margin of %g m behind %s", s.margin, s.behind ? s.behind : "nothing");
    o.tiling.margin = 2.1;
    need(pnet_tiled_result(s.runner, s.batch, 0, &o, &tiled, &w, &e), &e, "blend");
    CHECKF(w.computed == w.tiles * s.cloud.n && w.tiles >= 8, "%lld points in %lld tiles",
        (long long)w.computed, (long long)w.tiles);
    for (int64_t i = 0; i < 5 * s.cloud.n; i++)
        far = fmax(far, fabs((double)(s.whole[i] - tiled[i])));
    CHECKF(far < 1e-6, "blended results are off by %g", far);
    free(tiled);
    close_scene(&s);
}

static bool stop_at_third(void *context, int64_t done, int64_t points)
{
    int *calls = context;
    CHECK(done > 0 && done <= points);
    return ++*calls < 3;
}

static void check_stop(void)
{
    struct scene s = open_scene(
        "stop.pnet", HEAD "  return p.rgb -> linear(2)" TAIL, NULL, 0, clusters(400, 2, 0.2, -1));
    int calls = 0;
    struct pnet_tiled_options o = {
        .go_on = stop_at_third, .context = &calls, .tiling = pnet_tiling_new(s.plan, 0.5)};
    struct pnet_tiled_work w;
    struct pnet_error e;
    float *tiled;
    CHECK(pnet_tiled_result(s.runner, s.batch, 0, &o, &tiled, &w, &e) == PNET_INTERRUPTED &&
          !tiled && calls == 3);
    close_scene(&s);
}

static const struct tiled_case cases[] = {
    {"models/minkunet18a.pnet", NULL, "v=3mm", 5000, 6, 0.1, 0},
    {"models/fcgf.pnet", NULL, "v=1cm", 6000, 6, 0.2, 0},
    {"strides of 3",
        HEAD "  g = grid(p, 4cm * [1, 3, 9])\n"
             "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=3) -> relu\n"
             "  b = a -> conv(12, kernel=3, to=g[1]) -> relu -> conv(12, kernel=3)\n"
             "  c = b -> conv(16, kernel=3, to=g[2]) -> relu -> conv(12, kernel=3, to=g[1])\n"
             "  return cat(b, c) -> conv(8, kernel=3, to=g[0]) -> upsample(to=level(p)) -> "
             "linear(5)" TAIL,
        NULL, 6000, 14, 0.4, 0},
};

/* Rows that no grid orders; two chains of grids; coordinates that are read. */
static const struct tiled_case native[] = {
    {"no grid",
        HEAD "  return p.rgb -> conv(8, kernel=3, radius=12cm) -> relu -> conv(5, kernel=5, "
             "radius=20cm)" TAIL,
        NULL, 6000, 4, 0.2, -2},
    {"two chains",
        HEAD "  g = grid(p, 5cm * [1, 2])\n"
             "  h = grid(p, 13cm)\n"
             "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=2, to=g[1]) -> "
             "interpolate(to=level(p))\n"
             "  b = cat(p.rgb, p.xyz) -> pool(max, to=h) -> conv(6, kernel=3) -> "
             "upsample(to=level(p))\n"
             "  return cat(a, b) -> linear(4)" TAIL,
        NULL, 6000, 5, 0.3, -2},
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case(&cases[i], 0);
        check_case(&cases[i], PNET_VOXEL);
    }
    for (size_t i = 0; i < sizeof native / sizeof *native; i++) check_case(&native[i], 0);
    check_blend();
    check_stop();
    return check_end();
}
