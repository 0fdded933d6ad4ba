/* Runners on a GPU: a recorded schedule gives the bits of one that is run step by step, for other batches of its class
   too, and whenever it is replayed, with what a training adds up within it; the CPU's losses and gradients within
   rounding, in precisions that store features in 16 bits too; what does not fit is refused before anything ran.
   PNET_SHORT: two small networks, native, for tools under which every launch takes long. */
#include "runtime/run/peak.h"
#include "runtime/run/updater.h"
#include "tests/models/batch.h"

#include <math.h>
#include <time.h>

static const struct pnet_device cpu = {PNET_CPU, 0}, gpu = {PNET_CUDA, 0};

/* To be freed with runner_end. */
static struct pnet_runner *open_runner(const struct pnet_plan *p, struct pnet_device where,
    enum pnet_precision precision, bool no_recording)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 3, .no_recording = no_recording};
    struct pnet_bound *b = need_bound(p, where, precision);
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_runner_new(b, &o, &s, &e), &e, "runner");
    need(pnet_runner_init_params(s, &e), &e, "parameters");
    return s;
}

/* Gradients, then the losses of one step and the metrics' first numbers behind it; to be freed. */
static float *run(struct pnet_runner *s, const struct pnet_batch *b, uint32_t step, bool accumulate)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct pnet_error e;
    int64_t n = p->trained_elements;
    float *result = must(malloc((size_t)(n + p->objective_count) * sizeof *result));
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    need(pnet_runner_forward(s, 0, true, step, &e), &e, "forward");
    need(pnet_runner_backward(s, 0, 0.5f, accumulate, &e), &e, "backward");
    need(pnet_runner_wait(s, &e), &e, "waiting");
    need(pnet_runner_read(s, PNET_BLOCK_GRADS, 0, n, result, &e), &e, "gradients");
    for (int metrics = 0; metrics < 2; metrics++) {
        for (int i = 0; i < p->objective_count; i++)
            if (p->objectives[i].metric == metrics)
                result[n + i] = (float)pnet_runner_objective(s, i, NULL);
        if (metrics) break;
        need(pnet_runner_forward(s, 0, false, step, &e), &e, "evaluation");
        need(pnet_runner_wait(s, &e), &e, "waiting");
    }
    return result;
}

static double distance(int64_t n, const float *a, const float *b)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(error / (size > 0 ? size : 1));
}

/* Puts `to` in the place of every `from`. */
static void replace(char *text, size_t size, const char *from, const char *to)
{
    size_t old = strlen(from), new = strlen(to);
    for (char *p = text; (p = strstr(p, from)) != NULL; p += new) {
        CHECKF(strlen(text) + new < size + old, "no room for %s", to);
        memmove(p + new, p + old, strlen(p + old) + 1);
        memcpy(p, to, new);
    }
}

/* The CPU's float32 is what all of them are compared with: it runs once for them. */
enum { PRECISIONS = 3 };
static const enum pnet_precision tested[PRECISIONS] = {PNET_FP32, PNET_BF16, PNET_FP16};

/* A model small enough that the CPU computes it in a moment. */
enum { SETS = 2 };
struct model {
    const char *file, *sets[SETS]; /* NULL: no more */
    int64_t points;
    int precisions; /* the first ones of `tested` */
};

/* Of kitti a cell that has neighbours in a small cloud, of resnet18 one that leaves several rows at the end, of attention
   several buckets. pcn in 16 bits: test_predicted. */
static const struct model models[] = {{"models/rooms.pnet", {NULL}, 3000, PRECISIONS},
    {"models/shapes.pnet", {NULL}, 1500, PRECISIONS}, {"models/fcgf.pnet", {NULL}, 2000, 1},
    {"models/minkunet18a.pnet", {NULL}, 2000, 1},
    {"models/resnet18.pnet", {"v=5mm"}, 2000, PRECISIONS},
    {"models/fcgf_kitti.pnet", {"v=10cm", "ransac=500"}, 1500, 1},
    {"models/flash3d.pnet", {"c=16"}, 1000, PRECISIONS},
    {"models/flash3d_wide.pnet", {"c=16", "bucket=64"}, 700, 1},
    {"models/ptv3.pnet", {"c=16", "patch=64"}, 700, PRECISIONS},
    {"models/pcn.pnet", {"coarse=64"}, 500, 1},
    {"models/pcn.pnet", {"coarse=16", "way=\"apml\""}, 500, 1},
    {"models/foldingnet.pnet", {"count=1024"}, 500, 1}};

static const struct model *find(const char *name)
{
    size_t i = 0;
    while (!strstr(models[i].file, name)) i++;
    return &models[i];
}

/* The model as it is, or with a smooth function in place of every relu and every maximum. */
static struct pnet_compilation *compile(const struct model *m, unsigned degrade, bool smooth)
{
    const char *model = m->file;
    struct pnet_compile_options o = {
        .purpose = PNET_FOR_TRAINING, .degrade = degrade, .sets = m->sets};
    while (o.set_count < SETS && m->sets[o.set_count]) o.set_count++;
    if (!smooth) return need_plan(pnet_compile_file(model, &o), model);
    char text[16384];
    FILE *f = fopen(model, "r");
    size_t length = f ? fread(text, 1, sizeof text, f) : 0;
    CHECKF(length > 0 && length < sizeof text, "%s has %zu bytes", model, length);
    if (f) fclose(f);
    text[length < sizeof text ? length : 0] = 0;
    replace(text, sizeof text, "-> relu", "-> gelu");
    replace(text, sizeof text, "pool(max", "pool(mean");
    return need_plan(pnet_compile_text(model, text, strlen(text), &o), model);
}

/* How far a network's losses and gradients may be from the CPU's: relative, gradients in the 2-norm of all of them. The
   norms of a few rows in resnet18's last levels make 0.3 of what bf16 rounds, 0.005 of what fp16 does. */
struct bounds {
    const char *name;
    double loss, gradients, smooth;
};
static const struct bounds bounds[] = {[PNET_FP32] = {"fp32", 1e-4, 2e-2, 5e-5},
    [PNET_BF16] = {"bf16", 5e-2, 0.5, 0.5},
    [PNET_FP16] = {"fp16", 1e-2, 0.2, 0.02}};

/* Gradients and losses of a GPU and of the CPU, in the first `precisions` of `tested`. A relu's derivative jumps at zero:
   where one of a network's values lies there within rounding, the gradients of two right computations differ by up to a
   hundredth, in deep levels of few rows most of all (so do those of two algorithms on the CPU). A maximum decides too: on the
   CPU, weights that are off by half a unit of fp16 leave gradients of resnet18 off by 0.004 or, where they turn such a
   decision, by 0.05 to 0.12. With smooth functions they differ by 5e-6 at most. */
static void test_gradients(const struct model *m, unsigned degrade, int precisions)
{
    struct pnet_compilation *c = compile(m, degrade, true);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_runner *host = open_runner(p, cpu, PNET_FP32, false);
    struct cloud cloud = cloud_corner(m->points, 2, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    int64_t n = p->trained_elements, zeros = 0;
    float *h = run(host, b, 0, false);
    for (int64_t i = 0; i < n; i++) zeros += h[i] == 0;
    CHECKF(zeros < n / 2, "%s: %lld of %lld gradients are zero", m->file, (long long)zeros,
        (long long)n);
    for (int k = 0; k < precisions; k++) {
        const struct bounds *bound = &bounds[tested[k]];
        struct pnet_runner *gpus = open_runner(p, gpu, tested[k], false);
        float *r = run(gpus, b, 0, false);
        CHECKF(distance(n, r, h) < bound->smooth, "%s, degraded %u, %s: gradients are off by %g",
            m->file, degrade, bound->name, distance(n, r, h));
        free(r);
        runner_end(gpus);
    }
    free(h);
    pnet_batch_free(b);
    cloud_free(&cloud);
    runner_end(host);
    pnet_compilation_free(c);
}

/* What a recorded schedule gave, one that ran step by step, and the CPU. */
static void compare(const struct pnet_plan *p, const float *recorded, const float *plain,
    const float *host, enum pnet_precision precision, const char *what)
{
    const struct bounds *bound = &bounds[precision];
    const int64_t n = p->trained_elements, all = n + p->objective_count;
    CHECKF(memcmp(recorded, plain, (size_t)all * sizeof *plain) == 0,
        "%s: a recorded schedule gives other bits", what);
    CHECKF(distance(n, recorded, host) < bound->gradients, "%s: gradients are off by %g", what,
        distance(n, recorded, host));
    for (int64_t i = n; i < all; i++) {
        /* metrics take decisions, which rounding to 16 bits changes */
        if (precision != PNET_FP32 && p->objectives[i - n].metric) continue;
        CHECKF(fabs((double)recorded[i] - (double)host[i]) <= bound->loss * fabs((double)host[i]),
            "%s: objective %d is %g, the CPU's %g", what, (int)(i - n), (double)recorded[i],
            (double)host[i]);
    }
}

/* Two clouds by turns, a few points apart, so that they are of one class as a rule: the second run of a class is the
   recorded one, the later ones replay it. */
static void test_recording(const struct model *m, unsigned degrade, int precisions)
{
    struct pnet_compilation *c = compile(m, degrade, false);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_runner *host = open_runner(p, cpu, PNET_FP32, false), *recorded[PRECISIONS],
                       *plain[PRECISIONS];
    struct cloud whole = cloud_corner(m->points + 5, 2, 4), less = whole;
    less.n = m->points;
    const struct cloud *clouds[2] = {&whole, &less};
    size_t used[PRECISIONS] = {0};
    for (int k = 0; k < precisions; k++) {
        recorded[k] = open_runner(p, gpu, tested[k], false);
        plain[k] = open_runner(p, gpu, tested[k], true);
    }
    for (uint32_t step = 0; step < 6; step++) {
        struct pnet_batch *b = batch_of(p, clouds[step & 1], 1);
        float *h = run(host, b, step, step == 5);
        for (int k = 0; k < precisions; k++) {
            float *r = run(recorded[k], b, step, step == 5), *q = run(plain[k], b, step, step == 5);
            char what[160];
            snprintf(what, sizeof what, "%s, degraded %u, %s, step %u", m->file, degrade,
                bounds[tested[k]].name, step);
            compare(p, r, q, h, tested[k], what);
            if (step == 1) used[k] = pnet_runner_memory(recorded[k])->used;
            if (step > 1) CHECK(pnet_runner_memory(recorded[k])->used == used[k]);
            free(r);
            free(q);
        }
        free(h);
        pnet_batch_free(b);
    }
    for (int k = 0; k < precisions; k++) {
        runner_end(recorded[k]);
        runner_end(plain[k]);
    }
    cloud_free(&whole);
    runner_end(host);
    pnet_compilation_free(c);
}

/* Concurrent steps of a recording may overlap in another way each time. The bits are still those of a runner that ran step by
   step: of the losses, of all gradients, metrics, and running statistics that evaluation reads. */
static void test_replays(const struct model *m, int64_t points, int replays)
{
    struct pnet_compilation *compiled = compile(m, 0, false);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_runner *plain = open_runner(p, gpu, PNET_BF16, true),
                       *recorded = open_runner(p, gpu, PNET_BF16, false);
    struct cloud cloud = cloud_corner(points, 12, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    int64_t all = p->trained_elements + p->objective_count;
    for (int i = 0; i < replays; i++) {
        float *q = run(plain, b, (uint32_t)i, false), *r = run(recorded, b, (uint32_t)i, false);
        CHECKF(memcmp(r, q, (size_t)all * sizeof *r) == 0, "%s, %lld points: run %d has other bits",
            m->file, (long long)points, i);
        free(r);
        free(q);
    }
    cloud_free(&cloud);
    pnet_batch_free(b);
    runner_end(plain);
    runner_end(recorded);
    pnet_compilation_free(compiled);
}

/* Steps of a training, recorded: the norms of all gradients, then all parameters; to be freed. */
static double *train(const struct pnet_plan *p, const struct pnet_batch *b, int steps, bool watched)
{
    struct pnet_optim optim = pnet_optim_default(PNET_ADAMW);
    struct pnet_bound *bound = need_bound(p, gpu, PNET_BF16);
    struct pnet_runner_options o = {
        .slots = 1, .seed = 3, .extra_bytes = (int64_t)pnet_updater_bytes(bound, &optim)};
    struct pnet_runner *s;
    struct pnet_updater u;
    struct pnet_error e;
    double *result = must(calloc((size_t)(steps + p->param_elements), sizeof *result)), losses[64];
    float *params = must(malloc((size_t)p->param_elements * sizeof *params));
    need(pnet_runner_new(bound, &o, &s, &e), &e, "runner");
    need(pnet_runner_init_params(s, &e), &e, "parameters");
    need(pnet_updater_open(&u, s, &optim, 0, &e), &e, "updater");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    for (int i = 0; i < steps; i++) {
        struct pnet_optim_record record;
        need(pnet_runner_forward(s, 0, true, (uint32_t)i, &e), &e, "forward");
        pnet_updater_watch(&u, watched);
        need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
        pnet_updater_note_losses(&u, 1, false);
        need(pnet_updater_step(&u, 1e-3, 1, 1, &record, losses, &e), &e, "update");
        CHECK(!record.skipped && record.norm > 0);
        result[i] = record.norm;
    }
    CHECKF(!watched || u.squared > 0, "no gradient was told to be ready");
    need(pnet_runner_read(s, PNET_BLOCK_PARAMS, 0, p->param_elements, params, &e), &e, "reading");
    for (int64_t i = 0; i < p->param_elements; i++) result[steps + i] = (double)params[i];
    free(params);
    pnet_updater_close(&u);
    runner_end(s);
    return result;
}

/* Squares of gradients that are added up within backward are those of the gradients as they are in the end. */
static void test_watched(const struct model *m, int64_t points)
{
    enum { STEPS = 6 };
    struct pnet_compilation *compiled = compile(m, 0, false);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct cloud cloud = cloud_corner(points, 12, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    double *watched = train(p, b, STEPS, true), *plain = train(p, b, STEPS, false);
    for (int i = 0; i < STEPS; i++)
        CHECKF(watched[i] == plain[i], "%s, step %d: norm %.17g instead of %.17g", m->file, i,
            watched[i], plain[i]);
    CHECK(memcmp(watched, plain, (size_t)(STEPS + p->param_elements) * sizeof *plain) == 0);
    free(watched);
    free(plain);
    pnet_batch_free(b);
    cloud_free(&cloud);
    pnet_compilation_free(compiled);
}

/* Points that a network predicts far from the origin, and losses between them and others that are there, in an edge of 20 cm:
   stored in bf16 a point would move by up to 25 cm along each axis, and the first loss, 0.018, grow to some ten times that.
   What bf16 rounds in the layers before is a share of where points are apart from the bias: a few thousandths of a loss. Only the
   first stage is compared: the norms of the second one take away the mean over rows, which is nearly all that one sample has
   there, so that what bf16 rounds of it is as large as the rest. */
static void test_predicted(void)
{
    enum { COARSE = 64 };
    const float far = 100.3f;
    struct pnet_compilation *c = compile(find("pcn"), 0, false);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_runner *s[2] = {
        open_runner(p, gpu, PNET_BF16, false), open_runner(p, cpu, PNET_FP32, false)};
    struct cloud cloud = cloud_corner(500, 0.2f, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    float bias[3 * COARSE], *results[2];
    int found = -1, compared = 0;
    struct pnet_error e;
    for (int i = 0; i < 3 * COARSE; i++) bias[i] = far;
    for (int i = 0; i < p->param_count; i++) {
        if (p->params[i].count != 3 * COARSE) continue;
        CHECKF(found < 0, "two parameters have the size of the points' bias");
        found = i;
    }
    CHECK(found >= 0);
    for (int64_t i = 0; i < 3 * cloud.n; i++) b->inputs[1].xyz[i] += far;
    for (int k = 0; k < 2 && found >= 0; k++) {
        int64_t at = p->params[found].offset;
        need(pnet_runner_write(s[k], PNET_BLOCK_PARAMS, at, 3 * COARSE, bias, &e), &e, "bias");
        results[k] = run(s[k], b, 0, false);
    }
    for (int64_t i = p->trained_elements; i < p->trained_elements + p->objective_count; i++) {
        double got = (double)results[0][i], want = (double)results[1][i];
        if (strcmp(p->objectives[i - p->trained_elements].name, "rough") != 0) continue;
        compared++;
        printf("points at %g m: a loss of %g, in bf16 %g\n", (double)far, want, got);
        CHECKF(fabs(got - want) <= 0.1 * want, "points at %g m: a loss of %g, in bf16 %g",
            (double)far, want, got);
    }
    CHECK(compared == 1);
    for (int k = 0; k < 2; k++) {
        free(results[k]);
        runner_end(s[k]);
    }
    pnet_batch_free(b);
    cloud_free(&cloud);
    pnet_compilation_free(c);
}

/* More than the GPU has, found before the first kernel. */
static void test_too_much(void)
{
    struct pnet_compilation *c = compile(find("rooms"), 0, false);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct cloud cloud = cloud_corner(4000, 2, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    struct pnet_runner *s = open_runner(p, gpu, PNET_FP32, false);
    struct pnet_error e;
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    size_t held = pnet_runner_memory(s)->used;
    runner_end(s);
    struct pnet_runner_options o = {.slots = 1, .memory_limit = held + 4096};
    need(pnet_runner_new(need_bound(p, gpu, PNET_FP32), &o, &s, &e), &e, "runner");
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    CHECK(pnet_runner_forward(s, 0, true, 0, &e) == PNET_NO_MEMORY);
    CHECKF(strstr(e.message, "alive at the peak") && strstr(e.message, "rooms."), "%s", e.message);
    need(pnet_runner_wait(s, &e), &e, "waiting");
    runner_end(s);
    pnet_batch_free(b);
    cloud_free(&cloud);
    pnet_compilation_free(c);
}

int main(void)
{
    struct pnet_error e;
    if (pnet_device_check(gpu, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    bool brief = getenv("PNET_SHORT") != NULL;
    size_t count = brief ? 2 : sizeof models / sizeof models[0];
    for (size_t m = 0; m < count; m++)
        for (int way = 0; way < (brief ? 1 : 2); way++) {
            int precisions = way ? 1 : models[m].precisions;
            time_t begin = time(NULL);
            test_gradients(&models[m], way ? PNET_VOXEL : 0, precisions);
            test_recording(&models[m], way ? PNET_VOXEL : 0, precisions);
            printf("%s, degraded %d: %d s\n", models[m].file, way ? PNET_VOXEL : 0,
                (int)(time(NULL) - begin));
        }
    test_replays(find("resnet18"), brief ? 2000 : 200000, brief ? 4 : 16);
    if (!brief) test_replays(find("minkunet18a"), 200000, 16);
    if (!brief) test_replays(find("/fcgf.pnet"), 200000, 16);
    if (!brief) test_watched(find("resnet18"), 100000);
    test_predicted();
    test_too_much();
    return check_end();
}
