/* Runners on a GPU: a recorded schedule gives the bits of one that is run step by step, for other batches of its class
   too, and whenever it is replayed, with what a training adds up within it; the CPU's losses and gradients within
   rounding, in precisions that store features in 16 bits too; what does not fit is refused before anything ran.
   PNET_SHORT: two small networks, native, for tools under which every launch takes long. */
#include "runtime/run/peak.h"
#include "runtime/run/updater.h"
#include "tests/models/batch.h"

#include <math.h>

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

/* The model as it is, or with a smooth function in place of every relu and every maximum. */
static struct pnet_compilation *compile(const char *model, unsigned degrade, bool smooth)
{
    /* of kitti a cell that has neighbours in a small cloud, of resnet18 one that leaves several rows at the end */
    static const char *const sets[] = {"v=10cm", "ransac=500"}, *const fine[] = {"v=5mm"};
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING, .degrade = degrade};
    if (strstr(model, "kitti")) {
        o.sets = sets;
        o.set_count = 2;
    } else if (strstr(model, "resnet18")) {
        o.sets = fine;
        o.set_count = 1;
    }
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

/* Gradients and losses of a GPU and of the CPU. A relu's derivative jumps at zero: where one of a network's values lies
   there within rounding, the gradients of two right computations differ by up to a hundredth, in deep levels of few rows
   most of all (so do those of two algorithms on the CPU). A maximum decides too: on the CPU, weights that are off by half a
   unit of fp16 leave gradients of resnet18 off by 0.004 or, where they turn such a decision, by 0.05 to 0.12. With smooth
   functions they differ by 5e-6 at most. */
static void test_gradients(
    const char *model, unsigned degrade, int64_t points, enum pnet_precision precision)
{
    struct pnet_compilation *c = compile(model, degrade, true);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_runner *gpus = open_runner(p, gpu, precision, false),
                       *host = open_runner(p, cpu, PNET_FP32, false);
    struct cloud cloud = cloud_corner(points, 2, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    int64_t n = p->trained_elements, zeros = 0;
    float *r = run(gpus, b, 0, false), *h = run(host, b, 0, false);
    CHECKF(distance(n, r, h) < bounds[precision].smooth,
        "%s, degraded %u, %s: gradients are off by %g", model, degrade, bounds[precision].name,
        distance(n, r, h));
    for (int64_t i = 0; i < n; i++) zeros += h[i] == 0;
    CHECKF(zeros < n / 2, "%s: %lld of %lld gradients are zero", model, (long long)zeros,
        (long long)n);
    free(r);
    free(h);
    pnet_batch_free(b);
    cloud_free(&cloud);
    runner_end(gpus);
    runner_end(host);
    pnet_compilation_free(c);
}

/* Two clouds by turns, a few points apart, so that they are of one class as a rule: the second run of a class is the
   recorded one, the later ones replay it. */
static void test_recording(
    const char *model, unsigned degrade, int64_t points, enum pnet_precision precision)
{
    const struct bounds *bound = &bounds[precision];
    struct pnet_compilation *c = compile(model, degrade, false);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_runner *recorded = open_runner(p, gpu, precision, false),
                       *plain = open_runner(p, gpu, precision, true),
                       *host = open_runner(p, cpu, PNET_FP32, false);
    struct cloud whole = cloud_corner(points + 5, 2, 4), less = whole;
    less.n = points;
    const struct cloud *clouds[2] = {&whole, &less};
    char what[160];
    size_t used = 0;
    for (uint32_t step = 0; step < 6; step++) {
        struct pnet_batch *b = batch_of(p, clouds[step & 1], 1);
        int64_t n = p->trained_elements, all = n + p->objective_count;
        bool accumulate = step == 5;
        snprintf(
            what, sizeof what, "%s, degraded %u, %s, step %u", model, degrade, bound->name, step);
        float *r = run(recorded, b, step, accumulate), *q = run(plain, b, step, accumulate),
              *h = run(host, b, step, accumulate);
        CHECKF(memcmp(r, q, (size_t)all * sizeof *r) == 0,
            "%s: a recorded schedule gives other bits", what);
        CHECKF(distance(n, r, h) < bound->gradients, "%s: gradients are off by %g", what,
            distance(n, r, h));
        for (int64_t i = n; i < all; i++) {
            /* metrics take decisions, which rounding to 16 bits changes */
            if (precision != PNET_FP32 && p->objectives[i - n].metric) continue;
            CHECKF(fabs((double)r[i] - (double)h[i]) <= bound->loss * fabs((double)h[i]),
                "%s: objective %d is %g, the CPU's %g", what, (int)(i - n), (double)r[i],
                (double)h[i]);
        }
        if (step == 1) used = pnet_runner_memory(recorded)->used;
        if (step > 1) CHECK(pnet_runner_memory(recorded)->used == used);
        free(r);
        free(q);
        free(h);
        pnet_batch_free(b);
    }
    cloud_free(&whole);
    runner_end(recorded);
    runner_end(plain);
    runner_end(host);
    pnet_compilation_free(c);
}

/* Concurrent steps of a recording may overlap in another way each time. The bits are still those of a runner that ran step by
   step: of the losses, of all gradients, metrics, and running statistics that evaluation reads. */
static void test_replays(const char *model, int64_t points, int replays)
{
    struct pnet_compilation *compiled = compile(model, 0, false);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct pnet_runner *plain = open_runner(p, gpu, PNET_BF16, true),
                       *recorded = open_runner(p, gpu, PNET_BF16, false);
    struct cloud cloud = cloud_corner(points, 12, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    int64_t all = p->trained_elements + p->objective_count;
    for (int i = 0; i < replays; i++) {
        float *q = run(plain, b, (uint32_t)i, false), *r = run(recorded, b, (uint32_t)i, false);
        CHECKF(memcmp(r, q, (size_t)all * sizeof *r) == 0, "%s, %lld points: run %d has other bits",
            model, (long long)points, i);
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
static void test_watched(const char *model, int64_t points)
{
    enum { STEPS = 6 };
    struct pnet_compilation *compiled = compile(model, 0, false);
    const struct pnet_plan *p = pnet_compilation_plan(compiled);
    struct cloud cloud = cloud_corner(points, 12, 4);
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    double *watched = train(p, b, STEPS, true), *plain = train(p, b, STEPS, false);
    for (int i = 0; i < STEPS; i++)
        CHECKF(watched[i] == plain[i], "%s, step %d: norm %.17g instead of %.17g", model, i,
            watched[i], plain[i]);
    CHECK(memcmp(watched, plain, (size_t)(STEPS + p->param_elements) * sizeof *plain) == 0);
    free(watched);
    free(plain);
    pnet_batch_free(b);
    cloud_free(&cloud);
    pnet_compilation_free(compiled);
}

/* More than the GPU has, found before the first kernel. */
static void test_too_much(void)
{
    struct pnet_compilation *c = compile("models/rooms.pnet", 0, false);
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
    static const struct {
        const char *model;
        int64_t points;
        bool stored; /* in 16 bits too */
    } models[] = {{"models/rooms.pnet", 3000, true}, {"models/shapes.pnet", 1500, true},
        {"models/fcgf.pnet", 2000, false}, {"models/minkunet18a.pnet", 2000, false},
        {"models/resnet18.pnet", 2000, true}, {"models/fcgf_kitti.pnet", 1500, false}};
    bool brief = getenv("PNET_SHORT") != NULL;
    size_t count = brief ? 2 : sizeof models / sizeof models[0];
    for (size_t m = 0; m < count; m++)
        for (int way = 0; way < (brief ? 1 : 2); way++) {
            unsigned degrade = way ? PNET_VOXEL : 0;
            test_gradients(models[m].model, degrade, models[m].points, PNET_FP32);
            test_recording(models[m].model, degrade, models[m].points, PNET_FP32);
        }
    for (size_t m = 0; m < count; m++)
        for (int precision = PNET_BF16; models[m].stored && precision <= PNET_FP16; precision++) {
            test_gradients(models[m].model, 0, models[m].points, (enum pnet_precision)precision);
            test_recording(models[m].model, 0, models[m].points, (enum pnet_precision)precision);
        }
    test_replays("models/resnet18.pnet", brief ? 2000 : 200000, brief ? 4 : 16);
    if (!brief) test_replays("models/minkunet18a.pnet", 200000, 16);
    if (!brief) test_replays("models/fcgf.pnet", 200000, 16);
    if (!brief) test_watched("models/resnet18.pnet", 100000);
    test_too_much();
    return check_end();
}
