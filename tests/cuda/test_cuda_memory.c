/* A training step of ResNet-18 on one cloud of as many points as asked for: PNET_HUGE=200000000 (2,000,000 otherwise),
   rooms side by side of 200,000 points each. What it takes is what the plan says, to the byte; and two slots do not
   disturb each other. */
#include "runtime/base/clock.h"
#include "runtime/run/peak.h"
#include "tests/models/batch.h"

#include <math.h>
#include <time.h>

enum { ROOM_POINTS = 200000 };

static const struct pnet_device gpu = {PNET_CUDA, 0};

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static float number(uint64_t i, uint64_t k)
{
    return (float)(scramble(i * 16 + k) >> 40) * 0x1p-24f;
}

/* On the six faces of a room of 6 by 5 by 3 metres, 1 cm thick. */
static void room_point(uint64_t i, float xyz[3])
{
    static const float size[3] = {6, 5, 3};
    static const int face[16] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    int axis = face[scramble(i) % 16];
    uint64_t room = i / ROOM_POINTS;
    for (int a = 0; a < 3; a++) xyz[a] = size[a] * number(i, (uint64_t)a + 1);
    xyz[axis] = (xyz[axis] < size[axis] / 2 ? 0 : size[axis]) + 0.01f * number(i, 4);
    xyz[0] += 6.5f * (float)(room % 40) - 130;
    xyz[1] += 5.5f * (float)(room / 40 % 40) - 110;
    xyz[2] += 4 * (float)(room / 1600);
}

/* The `first` point tells one batch from another. */
static struct pnet_batch *rooms(const struct pnet_plan *p, int64_t points, uint64_t first)
{
    const int64_t splits[2] = {0, points}, *all[1] = {splits};
    struct pnet_batch *b;
    struct pnet_error e;
    need(pnet_batch_new(p->inputs, p->input_count, 1, all, &b, &e), &e, "batch");
    struct pnet_batch_input *in = &b->inputs[0];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < points; i++) room_point((uint64_t)i + first, in->xyz + 3 * i);
    for (int f = 0; f < p->inputs[0].field_count; f++) {
        const struct pnet_input_field *field = &p->inputs[0].fields[f];
        float *reals = in->fields[f];
        if (field->kind != PNET_INPUT_FEATURE || !reals) continue;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < points * field->width; i++)
            reals[i] = number((uint64_t)i + first, 5);
    }
    return b;
}

/* To be freed with runner_end. */
static struct pnet_runner *open_runner(
    const struct pnet_plan *p, enum pnet_precision precision, int slots, int64_t extra)
{
    struct pnet_runner_options o = {
        .slots = slots, .seed = 3, .extra_bytes = extra, .no_recording = true};
    struct pnet_runner *s;
    struct pnet_error e;
    need(pnet_runner_new(need_bound(p, gpu, precision), &o, &s, &e), &e, "runner");
    need(pnet_runner_init_params(s, &e), &e, "parameters");
    return s;
}

/* Gradients of a step on slot 0, to be freed. */
static float *step(struct pnet_runner *s)
{
    int64_t n = pnet_runner_plan(s)->trained_elements;
    float *grads = must(malloc((size_t)n * sizeof *grads));
    struct pnet_error e;
    need(pnet_runner_forward(s, 0, true, 1, &e), &e, "forward");
    need(pnet_runner_backward(s, 0, 1, false, &e), &e, "backward");
    need(pnet_runner_wait(s, &e), &e, "waiting");
    need(pnet_runner_read(s, PNET_BLOCK_GRADS, 0, n, grads, &e), &e, "gradients");
    return grads;
}

static size_t planned(const struct pnet_runner *s, int64_t points, size_t extra)
{
    const struct pnet_bound *b = pnet_runner_bound(s);
    const struct pnet_counts *c = &pnet_runner_slot(s, 0)->counts;
    struct pnet_layout l;
    struct pnet_error e;
    need(pnet_layout_make(b, c, true, &l, &e), &e, "layout");
    struct pnet_peak k = pnet_peak_of(b, c, &l, 2, extra);
    const struct pnet_slot_sizes *g = &k.geometry;
    printf("%lld points; MB: inputs 2x%zu levels 2x%zu maps 2x%zu triplets 2x%zu tiles 2x%zu, "
           "building %zu + %zu, features %zu, parameters and optimiser %zu\n",
        (long long)points, g->fields / 1000000, g->levels / 1000000, g->maps / 1000000,
        g->triplets / 1000000, g->tiles / 1000000, g->passing / 1000000, g->scratch / 1000000,
        k.features / 1000000, (k.parameters + k.gradients + k.optimizer) / 1000000);
    pnet_layout_free(&l);
    return k.total;
}

static void test_step(const char *model, enum pnet_precision precision, int64_t points)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    struct pnet_compilation *c = need_plan(pnet_compile_file(model, &o), model);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    int64_t extra = 2 * p->trained_elements * (int64_t)sizeof(float);
    struct pnet_runner *s = open_runner(p, precision, 2, extra);
    struct pnet_batch *b = rooms(p, points, 0);
    struct pnet_error e;
    double begin = pnet_seconds();
    need(pnet_runner_prepare(s, 0, b, &e), &e, "geometry");
    double prepared = pnet_seconds();
    float *want = step(s);
    double stepped = pnet_seconds();
    need(pnet_runner_prepare(s, 1, b, &e), &e, "geometry");
    double again = pnet_seconds();
    size_t peak = pnet_runner_memory(s)->peak, plan = planned(s, points, (size_t)extra);
    CHECKF(peak == plan, "%s: planned %zu, taken %zu", model, plan, peak);
    pnet_batch_free(b);
    b = rooms(p, points * 7 / 8, 12345);
    need(pnet_runner_prepare(s, 1, b, &e), &e, "geometry");
    pnet_batch_free(b);
    float *grads = step(s);
    int64_t differ = 0;
    for (int64_t i = 0; i < p->trained_elements; i++) differ += grads[i] != want[i];
    CHECKF(differ == 0, "%s: %lld gradients are others once the next batch is there", model,
        (long long)differ);
    printf("%s: peak %.3f GB; geometry %.3f and %.3f s with the copy from the host, first step "
           "%.3f s\n",
        model, 1e-9 * (double)peak, prepared - begin, again - stepped, stepped - prepared);
    free(want);
    free(grads);
    runner_end(s);
    pnet_compilation_free(c);
}

int main(void)
{
    const char *huge = getenv("PNET_HUGE");
    int64_t points = huge ? atoll(huge) : getenv("PNET_SHORT") ? 20000 : 2000000;
    struct pnet_error e;
    if (pnet_device_check(gpu, &e)) {
        printf("skipped: %s\n", e.message);
        return 77;
    }
    test_step("models/resnet18.pnet", PNET_BF16, points);
    if (!huge) test_step("models/resnet18.pnet", PNET_FP32, points / 2);
    return check_end();
}
