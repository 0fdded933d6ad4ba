/* Losses that assign points to points, on a GPU against their CPU twins: the auction's assignment is the same, bit for bit. */
#include "kernels/emd.h"
#include "kernels/sinkhorn.h"
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/sets_case.h"

#include <time.h>

/* Where the points of x lie, and those of y. */
enum shapes {
    RANDOM,
    SURFACES,   /* both on a sphere */
    DUPLICATES, /* many coincide, and many distances are equal */
    ONE_PLACE,  /* x */
    CLOSE,      /* x within a thousandth */
    DISTANT,    /* y is 10^4 away */
    ALL_EQUAL,  /* both in one place */
    SAME,       /* y is x, where a sample has as many points in both */
    SMALL,      /* squares of differences are at the end of float32's range, or below */
    NOT_FINITE, /* some coordinates of some samples */
    TOO_LARGE,  /* squares of differences are above float32 */
    SHAPES
};
static const char *const shape_names[SHAPES] = {"random", "surfaces", "duplicates", "collapsed",
    "close", "distant", "all equal", "same", "small", "not finite", "too large"};

/* How many points samples have. */
enum counts {
    ONE,     /* sample */
    SEVERAL, /* and some of them are empty, or have one point */
    MANY,    /* of up to 7 points, and a larger one */
    UNLIKE,  /* and unlike numbers in x and y */
    EMPTY_X,
    EMPTY_Y,
    NONE_,
    COUNTS_
};
static const char *const count_names[COUNTS_] = {"one sample", "several samples", "many samples",
    "sets of unlike sizes", "no points in x", "no points in y", "no samples"};

static int64_t points_in(enum counts counts, int side, int32_t sample, bool small)
{
    static const int64_t several[] = {701, 0, 1, 33, 0, 128, 129, 2, 257, 900};
    static const int64_t unlike[2][6] = {{300, 1, 64, 0, 5, 1025}, {350, 70, 1, 9, 5, 40}};
    switch (counts) {
    case ONE: return small ? 300 : 1500;
    case SEVERAL: return small ? several[sample] / 5 : several[sample];
    case MANY: return sample == 299 ? (small ? 150 : 1100) : sample * 7919 % 8;
    case UNLIKE: return small ? (unlike[side][sample] + 4) / 5 : unlike[side][sample];
    case EMPTY_X: return side == 0 ? 0 : 40;
    default: return side == 1 ? 0 : 40;
    }
}

static int32_t samples_in(enum counts counts)
{
    static const int32_t samples[COUNTS_] = {1, 10, 300, 6, 3, 3, 0};
    return samples[counts];
}

static void place(enum shapes shape, int side, int64_t row, float *at)
{
    static const float broken[] = {NAN, INFINITY, -INFINITY};
    float norm = sqrtf((at[0] * at[0] + at[1] * at[1]) + at[2] * at[2]) + 1e-9f;
    for (int c = 0; c < 3; c++) {
        if (shape == SURFACES) at[c] /= norm;
        if (shape == DUPLICATES) at[c] = floorf(at[c]);
        if ((shape == ONE_PLACE && side == 0) || shape == ALL_EQUAL) at[c] = 0.25f * (float)c;
        if (shape == CLOSE && side == 0) at[c] *= 0.001f;
        if (shape == DISTANT && side == 1) at[c] += 1e4f;
        if (shape == SMALL) at[c] *= 3e-22f;
        if (shape == TOO_LARGE) at[c] *= 1e19f;
        if (shape == NOT_FINITE && row % 997 == 400 && c == side) at[c] = broken[row / 997 % 3];
    }
}

static struct sets make_case(enum shapes shape, enum counts counts, bool small)
{
    struct sets s = {.samples = samples_in(counts)};
    float *xyz[2];
    for (int side = 0; side < 2; side++) {
        int64_t *splits = s.splits[side] = host_bytes((size_t)(s.samples + 1) * sizeof *splits);
        splits[0] = 0;
        for (int32_t k = 0; k < s.samples; k++)
            splits[k + 1] = splits[k] + points_in(counts, side, k, small);
        xyz[side] = random_floats(3 * splits[s.samples], false);
        for (int64_t i = 0; i < splits[s.samples]; i++)
            if (shape != SAME || counts == UNLIKE || side == 0)
                place(shape, side, i, xyz[side] + 3 * i);
            else
                memcpy(xyz[1] + 3 * i, xyz[0] + 3 * i, 3 * sizeof(float));
    }
    put_sets(&s, xyz);
    snprintf(name, sizeof name, "%s, %s", shape_names[shape], count_names[counts]);
    return s;
}

static struct pnet_set_pair pair_of(const struct pnet_point_set of[2])
{
    return (struct pnet_set_pair){.x = of[0], .y = of[1]};
}

/* Gradients of both sides on the host, from the same numbers on both devices; those of y are added to. */
struct gradients {
    float *want[2], *on_device, gloss;
    struct result got[2];
    struct pnet_set_gradients cpu, gpu;
};

static struct gradients make_gradients(const struct sets *s)
{
    struct gradients g = {.gloss = -0.75f};
    for (int side = 0; side < 2; side++) {
        int64_t n = 3 * s->rows[side];
        g.want[side] = random_floats(n, true);
        g.got[side] = make_result(g.want[side], n, n + 3 * SLACK, sizeof(float));
    }
    g.on_device = device_floats(&g.gloss, 1, 1);
    g.cpu = (struct pnet_set_gradients){g.want[0], g.want[1], false, true};
    g.gpu = (struct pnet_set_gradients){g.got[0].device, g.got[1].device, false, true};
    return g;
}

static void collect_gradients(struct gradients *g, int turn)
{
    for (int side = 0; side < 2; side++) collect(&g->got[side], turn, name);
}

static void check_gradients(const struct sets *s, const struct gradients *g, double bound)
{
    for (int side = 0; side < 2; side++) {
        check_floats(name, &g->got[side], g->want[side], bound);
        check_untouched(name, &g->got[side], (size_t)(3 * (s->rows[side] + SLACK)) * sizeof(float));
    }
}

static bool near(double got, double want, double bound)
{
    return (isnan(got) && isnan(want)) || fabs(got - want) <= bound;
}

/* Loss and gradients of the CPU's assignment, on both devices. */
static void test_value(const struct sets *s, const int32_t *partner)
{
    struct pnet_set_pair cpu = pair_of(s->cpu), gpu = pair_of(s->gpu);
    int32_t samples = s->samples;
    double *want = host_bytes((size_t)samples * sizeof *want);
    const int32_t *there = device_ints(partner, s->rows[0], s->rows[0] + SLACK);
    struct result mean = make_result(NULL, samples, samples, sizeof(double)),
                  loss = make_result(NULL, 1, 1, sizeof(float));
    struct gradients g = make_gradients(s);
    float value;
    pnet_cpu_emd(&cpu, partner, want, &value);
    pnet_cpu_emd_backward(&cpu, partner, &g.gloss, &g.cpu);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_emd(&gpu, there, mean.device, loss.device);
        pnet_cuda_emd_backward(&gpu, there, g.on_device, &g.gpu);
        collect(&mean, turn, name);
        collect(&loss, turn, name);
        collect_gradients(&g, turn);
    }
    const double *got = mean.first;
    for (int32_t k = 0; k < samples; k++)
        CHECKF(near(got[k], want[k], 1e-12 * fabs(want[k])), "%s: mean %d is %.17g, not %.17g",
            name, k, got[k], want[k]);
    check_floats(name, &loss, &value, BOUND);
    check_gradients(s, &g, BOUND);
    pnet_cuda_emd(&gpu, there, mean.device, NULL);
    collect(&mean, 1, name);
}

/* Assignments, completed and not; of a scaled auction, those that tell who was left. */
static void test_emd(
    enum shapes shape, enum counts counts, bool small, double eps, int32_t rounds, bool scaled)
{
    struct sets s = make_case(shape, counts, small);
    size_t used = strlen(name);
    for (int complete = 0; complete < 2; complete++) {
        snprintf(name + used, sizeof name - used, ", eps %g, %d rounds%s%s", eps, rounds,
            complete ? "" : ", not completed", scaled ? ", scaled" : "");
        struct pnet_emd cpu = {pair_of(s.cpu), eps, rounds, complete, scaled, .tell = scaled},
                        gpu = {pair_of(s.gpu), eps, rounds, complete, scaled, .tell = scaled};
        int64_t n = s.rows[0], differ = 0;
        int32_t *want = host_bytes((size_t)n * sizeof *want);
        struct result r = make_result(NULL, n, n + SLACK, sizeof *want);
        void *work = device_work(pnet_cuda_emd_assign_work(&gpu));
        pnet_cpu_emd_assign(&cpu, want, host_bytes(pnet_cpu_emd_assign_work(&cpu)));
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_emd_assign(&gpu, r.device, work);
            collect(&r, turn, name);
        }
        for (int64_t i = 0; i < n; i++) differ += ((const int32_t *)r.first)[i] != want[i];
        CHECKF(!differ, "%s: %lld of %lld persons have another partner", name, (long long)differ,
            (long long)n);
        check_untouched(name, &r, (size_t)(n + SLACK) * sizeof *want);
        if (complete && !scaled) test_value(&s, want);
    }
    release(name);
}

/* Two equal sets, in the same order: exactly nothing. */
static void check_nothing(const struct result *loss, const struct gradients *g)
{
    bool nothing = *(const float *)loss->first == 0;
    for (int side = 0; side < 2; side++) {
        const float *at = side ? g->got[1].start : NULL, *got = g->got[side].first;
        for (size_t i = 0; i < g->got[side].live / sizeof *got; i++)
            nothing &= got[i] == (at ? at[i] : 0);
    }
    CHECKF(nothing, "%s: loss or gradients are not exactly 0", name);
}

/* Potentials are in units of the box. Those of the CPU go on to the gradients. */
static void test_potentials(
    const struct pnet_sinkhorn *cpu, const struct pnet_sinkhorn *gpu, struct result potential[2])
{
    const struct pnet_point_set *set[2] = {&cpu->sets.x, &cpu->sets.y};
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    void *work = device_work(pnet_cuda_sinkhorn_work(gpu, false));
    float value, *want[2], box = 0;
    for (int side = 0; side < 2; side++) want[side] = host_bytes(potential[side].live);
    pnet_cpu_sinkhorn(
        cpu, want[0], want[1], &value, host_bytes(pnet_cpu_sinkhorn_work(cpu, false)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_sinkhorn(gpu, potential[0].device, potential[1].device, loss.device, work);
        collect(&loss, turn, name);
        for (int side = 0; side < 2; side++) collect(&potential[side], turn, name);
    }
    for (int side = 0; side < 2; side++) {
        int64_t rows = set[side]->rows.most;
        for (int64_t i = 0; i < 3 * rows; i++)
            box = isfinite(set[side]->xyz[i]) ? fmaxf(box, fabsf(set[side]->xyz[i])) : box;
        check_near(name, potential[side].first, want[side], 4 * rows, 0, 1e-6 * sqrt((double)rows));
        check_untouched(name, &potential[side], (size_t)(4 * (rows + SLACK)) * sizeof(float));
        pnet_cuda_copy_in(potential[side].device, want[side], potential[side].live);
    }
    double got = (double)*(const float *)loss.first, square = 12 * (double)box * (double)box;
    CHECKF(near(got, (double)value, 1e-5 * fabs((double)value) + 3e-7 * square),
        "%s: %.9g, on the CPU %.9g", name, got, (double)value);
    pnet_cuda_sinkhorn(gpu, NULL, NULL, loss.device, work);
    collect(&loss, 1, name);
}

static void test_sinkhorn(
    enum shapes shape, enum counts counts, bool small, double blur, double scaling)
{
    struct sets s = make_case(shape, counts, small);
    size_t used = strlen(name);
    snprintf(name + used, sizeof name - used, ", blur %g, scaling %g", blur, scaling);
    struct pnet_sinkhorn cpu = {pair_of(s.cpu), blur, scaling},
                         gpu = {pair_of(s.gpu), blur, scaling};
    struct result potential[2];
    for (int side = 0; side < 2; side++)
        potential[side] =
            make_result(NULL, 4 * s.rows[side], 4 * (s.rows[side] + SLACK), sizeof(float));
    test_potentials(&cpu, &gpu, potential);
    struct gradients g = make_gradients(&s);
    float *kept[2];
    for (int side = 0; side < 2; side++) {
        kept[side] = host_bytes(potential[side].live);
        pnet_cuda_copy_out(kept[side], potential[side].device, potential[side].live);
    }
    void *work = device_work(pnet_cuda_sinkhorn_work(&gpu, true));
    pnet_cpu_sinkhorn_backward(
        &cpu, kept[0], kept[1], &g.gloss, &g.cpu, host_bytes(pnet_cpu_sinkhorn_work(&cpu, true)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_sinkhorn_backward(
            &gpu, potential[0].device, potential[1].device, g.on_device, &g.gpu, work);
        collect_gradients(&g, turn);
    }
    check_gradients(
        &s, &g, blur < 0.05 ? 4e-4 : 4e-5); /* exponents are of the size of 1 / blur^2 */
    struct result loss = make_result(NULL, 1, 1, sizeof(float));
    work = device_work(pnet_cuda_sinkhorn_work(&gpu, false));
    pnet_cuda_sinkhorn(&gpu, potential[0].device, potential[1].device, loss.device, work);
    collect(&loss, 0, name);
    g.gpu.y = NULL;
    pnet_cuda_sinkhorn_backward(
        &gpu, potential[0].device, potential[1].device, g.on_device, &g.gpu, work);
    collect(&g.got[0], 0, name);
    if (shape == SAME && counts != UNLIKE) check_nothing(&loss, &g);
    release(name);
}

/* The pieces of a recording of both losses with their gradients. */
struct recorded {
    struct pnet_emd emd;
    struct pnet_sinkhorn sinkhorn;
    struct result partner, loss[2];
    struct gradients g[2];
    double *mean;
    float *potential[2];
    void *work[3];
};

static struct recorded make_recorded(const struct sets *s, int32_t rounds)
{
    struct recorded d = {
        .emd = {.sets = pair_of(s->gpu), .eps = 0.005, .rounds = rounds, .complete = true},
        .sinkhorn = {pair_of(s->gpu), 0.05, 0.5}};
    d.partner = make_result(NULL, s->rows[0], s->rows[0] + SLACK, sizeof(int32_t));
    d.mean = device_bytes(NULL, 0, (size_t)s->samples * sizeof *d.mean, 0xFF);
    for (int k = 0; k < 2; k++) {
        d.loss[k] = make_result(NULL, 1, 1, sizeof(float));
        d.g[k] = make_gradients(s);
        d.g[k].gpu.add_y = d.g[k].cpu.add_y = false;
        d.potential[k] = device_floats(NULL, 0, 4 * (s->rows[k] + SLACK));
        d.work[1 + k] = device_work(pnet_cuda_sinkhorn_work(&d.sinkhorn, k));
    }
    d.work[0] = device_work(pnet_cuda_emd_assign_work(&d.emd));
    return d;
}

static void launch_emd(const struct recorded *d, bool backward)
{
    pnet_cuda_emd_assign(&d->emd, d->partner.device, d->work[0]);
    pnet_cuda_emd(&d->emd.sets, d->partner.device, d->mean, d->loss[0].device);
    if (backward)
        pnet_cuda_emd_backward(&d->emd.sets, d->partner.device, d->g[0].on_device, &d->g[0].gpu);
}

static void launch_sinkhorn(const struct recorded *d, bool backward)
{
    pnet_cuda_sinkhorn(
        &d->sinkhorn, d->potential[0], d->potential[1], d->loss[1].device, d->work[1]);
    if (backward)
        pnet_cuda_sinkhorn_backward(&d->sinkhorn, d->potential[0], d->potential[1],
            d->g[1].on_device, &d->g[1].gpu, d->work[2]);
}

static void *record(const struct recorded *d, bool emd, bool sinkhorn, bool backward, int times)
{
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    for (int i = 0; i < times; i++) {
        if (emd) launch_emd(d, backward);
        if (sinkhorn) launch_sinkhorn(d, backward);
    }
    void *recording = pnet_cuda_record_end();
    CHECKF(recording, "%s", pnet_cuda_error());
    return recording;
}

/* What the recording gives for the sets as they are now. */
static void check_replay(const struct sets *s, struct recorded *d)
{
    struct pnet_emd emd = d->emd;
    struct pnet_sinkhorn sinkhorn = d->sinkhorn;
    emd.sets = sinkhorn.sets = pair_of(s->cpu);
    int32_t *partner = host_bytes((size_t)s->rows[0] * sizeof *partner);
    double *mean = host_bytes((size_t)s->samples * sizeof *mean);
    float value[2], *potential[2];
    for (int k = 0; k < 2; k++) potential[k] = host_bytes((size_t)(4 * s->rows[k]) * sizeof(float));
    pnet_cpu_emd_assign(&emd, partner, host_bytes(pnet_cpu_emd_assign_work(&emd)));
    pnet_cpu_emd(&emd.sets, partner, mean, &value[0]);
    pnet_cpu_emd_backward(&emd.sets, partner, &d->g[0].gloss, &d->g[0].cpu);
    pnet_cpu_sinkhorn(&sinkhorn, potential[0], potential[1], &value[1],
        host_bytes(pnet_cpu_sinkhorn_work(&sinkhorn, false)));
    pnet_cpu_sinkhorn_backward(&sinkhorn, potential[0], potential[1], &d->g[1].gloss, &d->g[1].cpu,
        host_bytes(pnet_cpu_sinkhorn_work(&sinkhorn, true)));
    check_bytes(name, &d->partner, partner);
    for (int k = 0; k < 2; k++) {
        check_floats(name, &d->loss[k], &value[k], k ? 1e-4 : BOUND);
        for (int side = 0; side < 2; side++)
            check_floats(name, &d->g[k].got[side], d->g[k].want[side], k ? 2e-4 : BOUND);
    }
}

/* A recorded launch goes on with the numbers and points that stand in device memory when it is replayed. */
static void test_replay(bool small)
{
    struct sets s = make_case(RANDOM, SEVERAL, small);
    struct recorded d = make_recorded(&s, 20);
    void *recording = record(&d, true, true, true, 1);
    for (int64_t by = 0; recording && by < 2000; by = 3 * by + 100) {
        if (by) shrink_sets(&s, by);
        snprintf(name, sizeof name, "replay, %lld points", (long long)s.rows[0]);
        d.partner.live = (size_t)s.rows[0] * sizeof(int32_t);
        for (int k = 0; k < 2; k++)
            for (int side = 0; side < 2; side++)
                d.g[k].got[side].live = (size_t)(3 * s.rows[side]) * sizeof(float);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_replay(recording);
            collect(&d.partner, turn, name);
            for (int k = 0; k < 2; k++) {
                collect(&d.loss[k], turn, name);
                collect_gradients(&d.g[k], turn);
            }
        }
        check_replay(&s, &d);
    }
    pnet_cuda_record_free(recording);
    release(name);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The mean time of a loss in replays of a recording. */
static double time_ms(const struct recorded *d, bool emd, bool backward)
{
    enum { LAUNCHES = 2, REPLAYS = 4 };
    void *recording = record(d, emd, !emd, backward, LAUNCHES);
    if (!recording) return 0;
    double begin = 0;
    for (int i = -1; i < REPLAYS; i++) {
        if (i == 0) {
            pnet_cuda_sync();
            begin = seconds();
        }
        pnet_cuda_replay(recording);
    }
    pnet_cuda_sync();
    double ms = (seconds() - begin) * 1e3 / (LAUNCHES * REPLAYS);
    pnet_cuda_record_free(recording);
    return ms;
}

static struct sets timed_sets(enum shapes shape, int32_t samples, int64_t points)
{
    struct sets s = {.samples = samples};
    float *xyz[2];
    for (int side = 0; side < 2; side++) {
        int64_t *splits = s.splits[side] = host_bytes((size_t)(samples + 1) * sizeof *splits);
        for (int32_t k = 0; k <= samples; k++) splits[k] = k * points;
        xyz[side] = random_floats(3 * samples * points, false);
        for (int64_t i = 0; i < samples * points; i++) place(shape, side, i, xyz[side] + 3 * i);
    }
    put_sets(&s, xyz);
    return s;
}

static void print_times(void)
{
    static const struct {
        int32_t samples;
        int64_t points;
    } of[] = {{32, 2048}, {1, 2048}, {1, 16384}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (enum shapes shape = RANDOM; shape < DISTANT; shape++) {
            if (shape == DUPLICATES) continue;
            struct sets s = timed_sets(shape, of[i].samples, of[i].points);
            struct recorded d = make_recorded(&s, 50);
            printf("%d x %lld, %s: emd of 50 rounds %.3f ms, with gradients %.3f ms; sinkhorn "
                   "%.3f ms, with gradients %.3f ms\n",
                of[i].samples, (long long)of[i].points, shape_names[shape],
                time_ms(&d, true, false), time_ms(&d, true, true), time_ms(&d, false, false),
                time_ms(&d, false, true));
            d.emd.rounds = 10000;
            d.emd.eps = 0.002;
            if (shape < DUPLICATES)
                printf(
                    "    emd until all are assigned, eps 0.002, 10,000 rounds at most: %.3f ms\n",
                    time_ms(&d, true, false));
            release("times");
        }
}

/* The auction of the metric `completion`, which assigns all. */
static void print_scaled_times(void)
{
    static const struct {
        int32_t samples;
        int64_t points;
    } of[] = {{1, 1024}, {1, 4096}, {32, 2048}, {1, 16384}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (enum shapes shape = RANDOM; shape < SMALL; shape++) {
            if (shape == DISTANT) continue; /* eps is of the size of roundings */
            struct sets s = timed_sets(shape, of[i].samples, of[i].points);
            struct recorded d = make_recorded(&s, 100000);
            d.emd.eps = 0.002;
            d.emd.scaled = true;
            d.work[0] = device_work(pnet_cuda_emd_assign_work(&d.emd));
            printf("%d x %lld, %s: scaled, until all are assigned, eps 0.002: %.3f ms\n",
                of[i].samples, (long long)of[i].points, shape_names[shape],
                time_ms(&d, true, false));
            release("times");
        }
}

/* With the argument `small` only what a sanitizer gets through in seconds; with `time` times alone. */
int main(int argc, char **argv)
{
    const char *why;
    const bool small = getenv("PNET_SHORT") || (argc > 1 && !strcmp(argv[1], "small"));
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (argc > 1 && !strcmp(argv[1], "time")) {
        print_scaled_times();
        print_times();
        return check_failed ? 1 : 0;
    }
    const int32_t most = small ? 100 : 3000; /* rounds */
    for (enum shapes shape = 0; shape < SHAPES; shape += (enum shapes)every(3))
        for (enum counts counts = 0; counts < COUNTS_; counts++) {
            test_emd(shape, counts, small, 0.005, 50, false);
            test_emd(shape, counts, small, 0.002, most, true);
            test_sinkhorn(shape, counts, small, 0.05, 0.5);
        }
    for (enum shapes shape = 0; shape < SHAPES; shape += (enum shapes)every(3)) {
        test_emd(shape, SEVERAL, small, 0.005, 1, false);
        test_emd(shape, SEVERAL, small, 1e-9, most / 10, false);
        test_emd(shape, SEVERAL, small, 1, most, false);
        test_emd(shape, SEVERAL, small, 0.002, 7, true); /* ends in an early phase */
        test_emd(shape, SEVERAL, small, 1e-9, most / 10, true);
        test_emd(shape, SEVERAL, small, 1, most, true);
        test_sinkhorn(shape, SEVERAL, small, 0.01, 0.8);
        test_sinkhorn(shape, UNLIKE, small, 1, 0.5);
    }
    test_replay(small);
    return check_end();
}
#endif
