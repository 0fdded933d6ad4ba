/* What must not change a network's output: the mode where points lie on voxel centres, the company
   of a batch, the order of the points, a shift by whole cells. */
#include "tests/models/batch.h"

/* Two levels down and up again, every convolution on a cube, as voxel windows are. Half a metre:
   cells and their halves are exact in float32. */
static const char model[] =
    "pnet 1\n"
    "input cloud {\n"
    "  xyz   : position\n"
    "  rgb   : feature[3]\n"
    "  label : class[12] per point\n"
    "}\n"
    "net small(p: cloud) {\n"
    "  g = grid(p, 50cm * [1, 2, 4])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=5, shape=cube) -> bn -> relu\n"
    "  b = a -> conv(12, kernel=3, shape=cube, to=g[1]) -> bn -> relu\n"
    "  c = b -> conv(16, kernel=2, shape=cube, to=g[2]) -> relu -> conv(16, kernel=3, "
    "shape=cube)\n"
    "  d = c -> conv(12, kernel=2, shape=cube, to=g[1]) -> bn -> relu\n"
    "  e = cat(d, b) -> conv(8, kernel=3, shape=cube, to=g[0]) -> relu\n"
    "  return cat(e, a) -> linear(12)\n"
    "}\n"
    "y = small(cloud)\n"
    "loss ce = cross_entropy(y, cloud.label)\n";

/* One level alone. */
static const char single[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"
    "net small(p: cloud) {\n"
    "  a = p.rgb -> pool(mean, to=grid(p, 50cm)) -> conv(8, kernel=5, shape=cube) -> bn -> relu\n"
    "  return a -> conv(8, kernel=3, shape=cube) -> conv(12, kernel=7, shape=cube, bias=yes)\n"
    "}\n"
    "y = small(cloud)\n"
    "loss ce = cross_entropy(y, cloud.label)\n";

struct result {
    float *rows;
    int64_t count;
    int width;
};

/* The same for voxels on their centres: odd kernels alone, as an even one has no centre cell. Of
   two levels, because points of a third one are not whole cells apart. */
static const char centred[] =
    "pnet 1\n"
    "input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"
    "net small(p: cloud) {\n"
    "  g = grid(p, 50cm * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=5, shape=cube) -> bn -> relu\n"
    "  b = a -> conv(12, kernel=3, shape=cube, to=g[1]) -> bn -> relu\n"
    "  c = b -> conv(12, kernel=3, shape=cube) -> conv(8, kernel=3, shape=cube, to=g[0]) -> relu\n"
    "  return cat(c, a) -> linear(12)\n"
    "}\n"
    "y = small(cloud)\n"
    "loss ce = cross_entropy(y, cloud.label)\n";

static struct pnet_compilation *compile(const char *text, unsigned degrade)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE, .degrade = degrade};
    return need_plan(pnet_compile_text("small.pnet", text, strlen(text), &o), "the model");
}

/* Weights by name, whatever the plan: fusion must not keep a variance from being positive. */
static const float *give(void *context, const char *name, int64_t count)
{
    float *data = context;
    uint64_t seed = 7;
    for (const char *c = name; *c; c++) seed = seed * 31 + (uint8_t)*c;
    bool variance = strstr(name, "running_var") != NULL;
    for (int64_t i = 0; i < count; i++)
        data[i] = (cloud_unit(seed, (uint64_t)i) - 0.5f) * 0.4f + (variance ? 1 : 0);
    return data;
}

static struct result infer(const struct pnet_plan *p, const struct cloud *clouds, int32_t count)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct pnet_runner *s;
    struct pnet_error e;
    struct result r = {.width = p->tensors[p->result].type.width};
    float *weights = must(malloc(sizeof(float) * 1000000));
    struct pnet_batch *b = batch_of(p, clouds, count);
    need(pnet_runner_new(need_bound(p, (struct pnet_device){0}, PNET_FP32), &o, &s, &e), &e,
        "runner");
    need(pnet_runner_load_params(s, give, weights, &e), &e, "weights");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, false, 0, &e), &e, "forward");
    need(pnet_runner_result(s, 0, &r.rows, &r.count, &e), &e, "result");
    runner_end(s);
    pnet_batch_free(b);
    free(weights);
    return r;
}

/* The largest difference of two results, relative to the largest value there is. */
static double difference(const struct result *a, const float *b)
{
    double most = 0, scale = 1e-30;
    for (int64_t i = 0; i < a->count * a->width; i++) {
        most = fmax(most, fabs((double)a->rows[i] - (double)b[i]));
        scale = fmax(scale, fabs((double)a->rows[i]));
        if (!isfinite(a->rows[i]) || !isfinite(b[i])) return INFINITY;
    }
    return most / scale;
}

static bool varied(const struct result *r)
{
    for (int64_t i = r->width; i < r->count * r->width; i++)
        if (r->rows[i] != r->rows[i % r->width]) return true;
    return false;
}

/* Points at the centres of random voxels of the fine grid. `firsts`: where a coarse voxel holds any, its
   first child is there: of those equally near its centre that one is kept, which is also where a
   coarse voxel looks from. So points of either level are whole cells of it apart. */
static struct cloud on_centres(int32_t edge, int share, bool firsts, uint64_t seed)
{
    int32_t volume = edge * edge * edge;
    bool *full = must(calloc((size_t)volume, 1));
    struct cloud c = cloud_new(volume);
    for (int32_t v = 0; v < volume; v++) {
        if (cloud_unit(seed, (uint64_t)v) * 100 >= (float)share) continue;
        int32_t x = v / (edge * edge), y = v / edge % edge, z = v % edge;
        for (int32_t s = 1; s <= 1 + firsts; s++)
            full[((x - x % s) * edge + y - y % s) * edge + z - z % s] = true;
    }
    c.n = 0;
    for (int32_t v = 0; v < volume; v++) {
        int32_t at[3] = {v / (edge * edge), v / edge % edge, v % edge};
        if (!full[v]) continue;
        for (int k = 0; k < 3; k++) c.xyz[3 * c.n + k] = 0.5f * (float)(at[k] - edge / 2) + 0.25f;
        c.n++;
    }
    free(full);
    cloud_paint(&c, seed);
    return c;
}

static void test_modes(void)
{
    struct pnet_compilation *c[2];
    for (int voxel = 0; voxel < 2; voxel++) c[voxel] = compile(centred, voxel ? PNET_VOXEL : 0);
    for (int share = 1; share <= 31; share += 6) {
        struct cloud cloud = on_centres(16, share, true, (uint64_t)share);
        struct result native = infer(pnet_compilation_plan(c[0]), &cloud, 1);
        struct result voxel = infer(pnet_compilation_plan(c[1]), &cloud, 1);
        CHECK(native.count == cloud.n && voxel.count == cloud.n && varied(&native));
        CHECKF(difference(&native, voxel.rows) < 1e-6, "%g at %d of 100 voxels",
            difference(&native, voxel.rows), share);
        free(native.rows);
        free(voxel.rows);
        cloud_free(&cloud);
    }
    /* off the centres the modes do differ: the check above can fail */
    struct cloud off = cloud_corner(300, 4, 3);
    struct result native = infer(pnet_compilation_plan(c[0]), &off, 1);
    struct result voxel = infer(pnet_compilation_plan(c[1]), &off, 1);
    CHECK(difference(&native, voxel.rows) > 1e-3);
    free(native.rows);
    free(voxel.rows);
    cloud_free(&off);
    pnet_compilation_free(c[0]);
    pnet_compilation_free(c[1]);
}

/* On one level the modes give the same bits wherever voxels are full; between levels they do not, even there. */
static void test_one_level(void)
{
    for (int levels = 1; levels <= 2; levels++)
        for (int share = 5; share <= 65; share += 30) {
            struct cloud cloud = on_centres(16, share, false, (uint64_t)share);
            struct result r[2];
            for (int voxel = 0; voxel < 2; voxel++) {
                struct pnet_compilation *c =
                    compile(levels == 1 ? single : centred, voxel ? PNET_VOXEL : 0);
                r[voxel] = infer(pnet_compilation_plan(c), &cloud, 1);
                pnet_compilation_free(c);
            }
            CHECK(r[0].count == cloud.n && r[1].count == cloud.n && varied(&r[0]));
            double d = difference(&r[0], r[1].rows);
            CHECKF(levels == 1 ? memcmp(r[0].rows, r[1].rows,
                                     (size_t)(r[0].count * r[0].width) * sizeof(float)) == 0
                               : d > 1e-3,
                "%d levels, %d of 100 voxels: %g", levels, share, d);
            free(r[0].rows);
            free(r[1].rows);
            cloud_free(&cloud);
        }
}

/* Samples know nothing of each other: a batch gives the rows of its samples by themselves. */
static void test_splitting(unsigned degrade)
{
    struct pnet_compilation *c = compile(model, degrade);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct cloud clouds[4] = {
        cloud_corner(400, 6, 1), cloud_corner(1, 6, 2), cloud_new(0), cloud_corner(333, 6, 3)};
    struct result all = infer(p, clouds, 4);
    const float *rows = all.rows;
    CHECK(all.count == 734 && varied(&all));
    for (int i = 0; i < 4; i++) {
        struct result one = infer(p, &clouds[i], 1);
        CHECK(one.count == clouds[i].n);
        CHECKF(!one.count || memcmp(one.rows, rows, (size_t)(one.count * one.width) * 4) == 0,
            "sample %d differs by %g", i, difference(&one, rows));
        rows += one.count * one.width;
        free(one.rows);
        cloud_free(&clouds[i]);
    }
    free(all.rows);
    pnet_compilation_free(c);
}

/* order[i] is the row that goes to place i: Fisher and Yates. */
static int64_t *shuffle(int64_t n, uint64_t seed)
{
    int64_t *order = must(malloc((size_t)n * sizeof *order + 1));
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = (int64_t)(cloud_unit(seed, (uint64_t)i) * (float)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    return order;
}

/* Points of one cell are ordered by their rows, so sums of a pool round differently: a tolerance.
 */
static void test_permutation(unsigned degrade)
{
    struct pnet_compilation *c = compile(model, degrade);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct cloud cloud = cloud_corner(900, 5, 11);
    struct result before = infer(p, &cloud, 1);
    CHECK(varied(&before));
    for (uint64_t seed = 1; seed <= 3; seed++) {
        int64_t *order = shuffle(cloud.n, seed);
        struct cloud mixed = cloud_pick(&cloud, order, cloud.n);
        struct result after = infer(p, &mixed, 1);
        float *want = must(malloc((size_t)(before.count * before.width) * sizeof *want));
        for (int64_t i = 0; i < cloud.n; i++)
            memcpy(want + i * before.width, before.rows + order[i] * before.width,
                (size_t)before.width * sizeof *want);
        CHECKF(difference(&after, want) < 1e-5, "%g", difference(&after, want));
        CHECK(difference(&after, before.rows) > 1e-3);
        free(want);
        free(after.rows);
        free(order);
        cloud_free(&mixed);
    }
    free(before.rows);
    cloud_free(&cloud);
    pnet_compilation_free(c);
}

/* Coordinates on a grid of 2^-10 m and shifts by whole cells of the coarsest level: every sum and
   difference is exact and the grids fall onto themselves. The order along the curve may change, and
   rounding with it. */
static void test_translation(unsigned degrade)
{
    static const float shifts[][3] = {{2, 0, 0}, {-4, 6, 2}, {128, -64, 30}};
    struct pnet_compilation *c = compile(model, degrade);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct cloud cloud = cloud_corner(800, 5, 21);
    for (int64_t i = 0; i < 3 * cloud.n; i++) cloud.xyz[i] = rintf(cloud.xyz[i] * 1024) / 1024;
    struct result before = infer(p, &cloud, 1);
    CHECK(varied(&before));
    for (size_t t = 0; t < sizeof shifts / sizeof shifts[0]; t++) {
        struct cloud moved = cloud_new(cloud.n);
        memcpy(moved.features, cloud.features, (size_t)cloud.n * CLOUD_FEATURES * sizeof(float));
        memcpy(moved.labels, cloud.labels, (size_t)cloud.n * sizeof(int32_t));
        for (int64_t i = 0; i < 3 * cloud.n; i++) moved.xyz[i] = cloud.xyz[i] + shifts[t][i % 3];
        struct result after = infer(p, &moved, 1);
        CHECKF(difference(&after, before.rows) < 1e-5, "shift %zu: %g", t,
            difference(&after, before.rows));
        free(after.rows);
        cloud_free(&moved);
    }
    free(before.rows);
    cloud_free(&cloud);
    pnet_compilation_free(c);
}

int main(void)
{
    test_modes();
    test_one_level();
    for (int voxel = 0; voxel < 2; voxel++) {
        unsigned degrade = voxel ? PNET_VOXEL : 0;
        test_splitting(degrade);
        test_permutation(degrade);
        test_translation(degrade);
    }
    return check_end();
}
