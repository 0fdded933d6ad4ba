/* Losses and metrics of nearest distances on a GPU against their CPU twins. Nearest rows are the same on both, bit for bit. */
#include "kernels/cuda/sets/set_tree.h"
#include "kernels/emd.h"
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

/* Nearest rows of either side, on both devices. */
struct near {
    int32_t *cpu[2];
    struct result gpu[2];
};

/* Both ways to search, whichever set_near takes. */
static void test_ways(const struct sets *s, int side, const int32_t *want)
{
    static size_t (*const works[])(const struct pnet_point_set *, const struct pnet_point_set *) = {
        pnet_cuda_near_pairs_work, pnet_cuda_near_tree_work};
    static void (*const ways[])(const struct pnet_point_set *, const struct pnet_point_set *,
        int32_t *, void *) = {pnet_cuda_near_pairs, pnet_cuda_near_tree};
    const struct pnet_point_set *a = &s->gpu[side], *b = &s->gpu[1 - side];
    int64_t n = s->rows[side];
    for (int way = 0; way < 2; way++) {
        struct result r = make_result(NULL, n, n + SLACK, sizeof *want);
        void *work = device_work(works[way](a, b));
        for (int turn = 0; turn < 2; turn++) {
            ways[way](a, b, r.device, work);
            collect(&r, turn, name);
        }
        int64_t differ = 0;
        for (int64_t i = 0; i < n; i++) differ += ((const int32_t *)r.first)[i] != want[i];
        CHECKF(!differ, "%s, by %s: %lld of %lld rows have another nearest row", name,
            way ? "a tree" : "pairs", (long long)differ, (long long)n);
        check_untouched(name, &r, (size_t)(n + SLACK) * sizeof *want);
    }
}

static void test_near(const struct sets *s, struct near *near)
{
    for (int side = 0; side < 2; side++) {
        const struct pnet_point_set *a = &s->cpu[side], *b = &s->cpu[1 - side];
        const struct pnet_point_set *ga = &s->gpu[side], *gb = &s->gpu[1 - side];
        int64_t n = s->rows[side];
        int32_t *want = near->cpu[side] = host_bytes((size_t)n * sizeof *want);
        struct result *r = &near->gpu[side];
        *r = make_result(NULL, n, n + SLACK, sizeof *want);
        void *work = device_work(pnet_cuda_set_near_work(ga, gb));
        pnet_cpu_set_near(a, b, want, host_bytes(pnet_cpu_set_near_work(a, b)));
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_set_near(ga, gb, r->device, work);
            collect(r, turn, name);
        }
        int64_t differ = 0;
        for (int64_t i = 0; i < n; i++) differ += ((const int32_t *)r->first)[i] != want[i];
        CHECKF(!differ, "%s: %lld of %lld rows have another nearest row", name, (long long)differ,
            (long long)n);
        check_untouched(name, r, (size_t)(n + SLACK) * sizeof *want);
        test_ways(s, side, want);
        pnet_cuda_copy_in(r->device, want, r->live); /* losses are compared on the same rows */
    }
}

enum loss { L1, L2, DCD, DCD_AT_LEAST_ONE, HYPERCD, INFOCD, INFOCD_SUMS, LOSSES };
static const char *const loss_names[LOSSES] = {
    "l1", "l2", "dcd", "dcd, at least one", "hypercd", "infocd", "infocd, sums"};
static const struct pnet_dcd dcd[2] = {{3, 1, false}, {0.5, 0.5, true}};
static const struct pnet_infocd infocd[2] = {{2, 1e-7, false}, {0.5, 0.3, true}};
static const double ALPHA = 0.7;

static size_t cpu_work(enum loss loss, const struct pnet_set_pair *p)
{
    if (loss <= L2) return pnet_cpu_chamfer_work(p);
    if (loss <= DCD_AT_LEAST_ONE) return pnet_cpu_dcd_work(p);
    return loss == HYPERCD ? pnet_cpu_hypercd_work(p) : pnet_cpu_infocd_work(p);
}

static size_t gpu_work(enum loss loss, const struct pnet_set_pair *p)
{
    if (loss <= L2) return pnet_cuda_chamfer_work(p);
    if (loss <= DCD_AT_LEAST_ONE) return pnet_cuda_dcd_work(p);
    return loss == HYPERCD ? pnet_cuda_hypercd_work(p) : pnet_cuda_infocd_work(p);
}

static void run_cpu(
    enum loss loss, const struct pnet_set_pair *p, float *value, float *x, float *y, void *work)
{
    if (loss <= L2) pnet_cpu_chamfer(p, loss == L2, value, x, y, work);
    if (loss == DCD || loss == DCD_AT_LEAST_ONE)
        pnet_cpu_dcd(p, &dcd[loss - DCD], value, x, y, work);
    if (loss == HYPERCD) pnet_cpu_hypercd(p, ALPHA, value, x, y, work);
    if (loss >= INFOCD) pnet_cpu_infocd(p, &infocd[loss - INFOCD], value, x, y, work);
}

static void run_gpu(
    enum loss loss, const struct pnet_set_pair *p, float *value, float *x, float *y, void *work)
{
    if (loss <= L2) pnet_cuda_chamfer(p, loss == L2, value, x, y, work);
    if (loss == DCD || loss == DCD_AT_LEAST_ONE)
        pnet_cuda_dcd(p, &dcd[loss - DCD], value, x, y, work);
    if (loss == HYPERCD) pnet_cuda_hypercd(p, ALPHA, value, x, y, work);
    if (loss >= INFOCD) pnet_cuda_infocd(p, &infocd[loss - INFOCD], value, x, y, work);
}

static struct pnet_set_pair cpu_pair(const struct sets *s, const struct near *near)
{
    return (struct pnet_set_pair){s->cpu[0], s->cpu[1], near->cpu[0], near->cpu[1]};
}

static struct pnet_set_pair gpu_pair(const struct sets *s, const struct near *near)
{
    return (struct pnet_set_pair){s->gpu[0], s->gpu[1], near->gpu[0].device, near->gpu[1].device};
}

/* Gradients of one side from what the loss keeps, which is the CPU's on both devices. */
static void test_pull(
    const struct sets *s, const struct near *near, int side, float *const pull[2], bool add)
{
    int other = 1 - side;
    int64_t n = s->rows[side], m = s->rows[other];
    float gloss = -0.75f, *want = random_floats(3 * n, true);
    if (!add) memset(want, 0xFF, (size_t)(3 * n) * sizeof *want);
    struct result r = make_result(want, 3 * n, 3 * (n + SLACK), sizeof *want);
    struct pnet_set_pull cpu = {s->cpu[side], s->cpu[other], near->cpu[side], near->cpu[other],
                             pull[side], pull[other]},
                         gpu = {s->gpu[side], s->gpu[other], near->gpu[side].device,
                             near->gpu[other].device, device_floats(pull[side], n, n + SLACK),
                             device_floats(pull[other], m, m + SLACK)};
    const float *on_device = device_floats(&gloss, 1, 1);
    void *work = device_work(pnet_cuda_set_pull_work(&gpu));
    pnet_cpu_set_pull(&cpu, &gloss, add, want, host_bytes(pnet_cpu_set_pull_work(&cpu)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_set_pull(&gpu, on_device, add, r.device, work);
        collect(&r, turn, name);
    }
    check_floats(name, &r, want, BOUND);
    check_untouched(name, &r, (size_t)(3 * (n + SLACK)) * sizeof *want);
}

/* Distances that float32 just holds may have a mean that it does not hold. */
static void check_loss(const struct result *r, float want)
{
    if (isinf(want))
        check_bytes(name, r, &want);
    else
        check_floats(name, r, &want, BOUND);
}

static void test_loss(enum loss loss, const struct sets *s, const struct near *near)
{
    struct pnet_set_pair cpu = cpu_pair(s, near), gpu = gpu_pair(s, near);
    struct result value = make_result(NULL, 1, 1, sizeof(float)), pull[2];
    float want, *own[2];
    void *work = device_work(gpu_work(loss, &gpu));
    for (int side = 0; side < 2; side++) {
        own[side] = host_bytes((size_t)s->rows[side] * sizeof(float));
        pull[side] = make_result(NULL, s->rows[side], s->rows[side] + SLACK, sizeof(float));
    }
    run_cpu(loss, &cpu, &want, own[0], own[1], host_bytes(cpu_work(loss, &cpu)));
    for (int turn = 0; turn < 2; turn++) {
        run_gpu(loss, &gpu, value.device, pull[0].device, pull[1].device, work);
        collect(&value, turn, name);
        for (int side = 0; side < 2; side++) collect(&pull[side], turn, name);
    }
    check_loss(&value, want);
    for (int side = 0; side < 2; side++) {
        check_floats(name, &pull[side], own[side], BOUND);
        check_untouched(name, &pull[side], (size_t)(s->rows[side] + SLACK) * sizeof(float));
    }
    run_gpu(loss, &gpu, value.device, NULL, NULL, work);
    collect(&value, 1, name);
    for (int side = 0; side < 2; side++) test_pull(s, near, side, own, loss % 2);
}

/* Sums in double, in another order; NaN and infinite where those of the other device are. */
static void check_sums(const struct result *r, const double *want, int n)
{
    const double *got = r->first;
    for (int i = 0; i < n; i++)
        CHECKF((isnan(got[i]) && isnan(want[i])) || got[i] == want[i] ||
                   fabs(got[i] - want[i]) <= 1e-11 * fabs(want[i]),
            "%s: number %d is %.17g, on the CPU %.17g", name, i, got[i], want[i]);
}

/* For each row of x some row of y in the same sample, of some told that the rounds left it, or -1. */
static int32_t *random_partners(const struct sets *s)
{
    int32_t *partner = host_bytes((size_t)s->rows[0] * sizeof *partner);
    for (int32_t k = 0; k < s->samples; k++) {
        int64_t m = s->splits[1][k + 1] - s->splits[1][k];
        for (int64_t i = s->splits[0][k]; i < s->splits[0][k + 1]; i++) {
            int32_t row = m > 0 ? (int32_t)(s->splits[1][k] + random_below(m)) : -1;
            if (random_below(5000) == 0) row = -1;
            partner[i] = row >= 0 && random_below(2000) == 0 ? PNET_EMD_LEFT - row : row;
        }
    }
    return partner;
}

static void test_completion(
    const struct sets *s, const struct near *near, bool labelled, bool assigned)
{
    enum { CLASSES = 3, NUMBERS = CLASSES * PNET_COMPLETION_SUMS };
    struct pnet_completion c = {.at = 0.3, .classes = labelled ? CLASSES : 1}, on_device = c;
    if (labelled) c.label = random_labels(s->samples, CLASSES);
    if (labelled) on_device.label = device_ints(c.label, s->samples, s->samples);
    if (assigned) c.partner = random_partners(s);
    if (assigned) on_device.partner = device_ints(c.partner, s->rows[0], s->rows[0] + SLACK);
    struct pnet_set_pair cpu = cpu_pair(s, near), gpu = gpu_pair(s, near);
    int32_t numbers = c.classes * PNET_COMPLETION_SUMS;
    double want[NUMBERS];
    struct result r = make_result(NULL, numbers, numbers, sizeof(double));
    void *work = device_work(pnet_cuda_completion_work(&gpu));
    pnet_cpu_completion(&cpu, &c, want, host_bytes(pnet_cpu_completion_work(&cpu)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_completion(&gpu, &on_device, r.device, work);
        collect(&r, turn, name);
    }
    check_sums(&r, want, numbers);
}

/* `small`: all on the same sets. */
static void test_sets(enum places places, enum sizes sizes, bool small)
{
    struct sets s;
    struct near near;
    for (int loss = 0; loss <= LOSSES; loss++) {
        bool last = loss == LOSSES;
        snprintf(name, sizeof name, "%s, %s, %s", last ? "completion" : loss_names[loss],
            place_names[places], size_names[sizes]);
        if (loss == 0 || !small) {
            s = make_sets(places, sizes, small);
            test_near(&s, &near);
        }
        if (!last)
            test_loss((enum loss)loss, &s, &near);
        else
            for (int k = 0; k < 4; k++) test_completion(&s, &near, k % 2, k / 2);
        if (last || !small) release(name);
    }
}

/* Where the pieces of a recording lie on the device. */
struct recorded {
    struct pnet_set_pair pair;
    int32_t *near[2];
    float *pull[2], *gloss;
    struct result value, gradient;
    void *work[4];
};

static void launch_recorded(const struct recorded *d, enum loss loss)
{
    struct pnet_set_pull pull = {
        d->pair.y, d->pair.x, d->near[1], d->near[0], d->pull[1], d->pull[0]};
    pnet_cuda_set_near(&d->pair.x, &d->pair.y, d->near[0], d->work[0]);
    pnet_cuda_set_near(&d->pair.y, &d->pair.x, d->near[1], d->work[1]);
    run_gpu(loss, &d->pair, d->value.device, d->pull[0], d->pull[1], d->work[2]);
    pnet_cuda_set_pull(&pull, d->gloss, false, d->gradient.device, d->work[3]);
}

static struct recorded make_recorded(const struct sets *s, enum loss loss)
{
    struct recorded d = {.pair = {s->gpu[0], s->gpu[1], NULL, NULL}};
    float gloss = 2;
    int64_t m = s->rows[1];
    for (int side = 0; side < 2; side++) {
        d.near[side] = device_ints(NULL, 0, s->rows[side] + SLACK);
        d.pull[side] = device_floats(NULL, 0, s->rows[side] + SLACK);
    }
    d.pair.x_near = d.near[0];
    d.pair.y_near = d.near[1];
    struct pnet_set_pull pull = {.a = d.pair.y, .b = d.pair.x};
    d.gloss = device_floats(&gloss, 1, 1);
    d.value = make_result(NULL, 1, 1, sizeof(float));
    d.gradient = make_result(NULL, 3 * m, 3 * (m + SLACK), sizeof(float));
    d.work[0] = device_work(pnet_cuda_set_near_work(&d.pair.x, &d.pair.y));
    d.work[1] = device_work(pnet_cuda_set_near_work(&d.pair.y, &d.pair.x));
    d.work[2] = device_work(gpu_work(loss, &d.pair));
    d.work[3] = device_work(pnet_cuda_set_pull_work(&pull));
    return d;
}

static void *record(const struct recorded *d, enum loss loss)
{
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    launch_recorded(d, loss);
    void *recording = pnet_cuda_record_end();
    CHECKF(recording, "%s", pnet_cuda_error());
    return recording;
}

/* A recorded launch goes on with the numbers and points that stand in device memory when it is replayed. */
static void test_replay(enum loss loss)
{
    struct sets s = make_sets(ANYWHERE, EVEN, false);
    struct recorded d = make_recorded(&s, loss);
    snprintf(name, sizeof name, "replay, %s", loss_names[loss]);
    void *recording = record(&d, loss);
    for (int64_t by = 0; recording && by < 2000; by = 3 * by + 100) {
        if (by) shrink_sets(&s, by);
        struct pnet_set_pair p = {s.cpu[0], s.cpu[1], NULL, NULL};
        float want, gloss = 2, *pull[2], *back = host_bytes((size_t)(3 * s.rows[1]) * sizeof *back);
        for (int side = 0; side < 2; side++) {
            int32_t *near = host_bytes((size_t)s.rows[side] * sizeof *near);
            pnet_cpu_set_near(&s.cpu[side], &s.cpu[1 - side], near,
                host_bytes(pnet_cpu_set_near_work(&s.cpu[side], &s.cpu[1 - side])));
            *(side ? &p.y_near : &p.x_near) = near;
            pull[side] = host_bytes((size_t)s.rows[side] * sizeof(float));
        }
        run_cpu(loss, &p, &want, pull[0], pull[1], host_bytes(cpu_work(loss, &p)));
        struct pnet_set_pull cpu = {p.y, p.x, p.y_near, p.x_near, pull[1], pull[0]};
        pnet_cpu_set_pull(&cpu, &gloss, false, back, host_bytes(pnet_cpu_set_pull_work(&cpu)));
        d.gradient.live = (size_t)(3 * s.rows[1]) * sizeof(float);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_replay(recording);
            collect(&d.value, turn, name);
            collect(&d.gradient, turn, name);
        }
        check_floats(name, &d.value, &want, BOUND);
        check_floats(name, &d.gradient, back, 2 * BOUND);
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

/* The mean time of replays of a recording of `launches` launches each. */
static double time_ms(const struct recorded *d, bool all)
{
    enum { LAUNCHES = 10, REPLAYS = 10 };
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    for (int i = 0; i < LAUNCHES; i++) {
        if (all) {
            launch_recorded(d, L2);
            continue;
        }
        pnet_cuda_set_near(&d->pair.x, &d->pair.y, d->near[0], d->work[0]);
        pnet_cuda_set_near(&d->pair.y, &d->pair.x, d->near[1], d->work[1]);
    }
    void *recording = pnet_cuda_record_end();
    CHECKF(recording, "%s", pnet_cuda_error());
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

static void print_times(void)
{
    static const struct {
        int32_t samples;
        int64_t points;
    } of[] = {{32, 2048}, {1, 2048}, {1, 16384}, {1, 65536}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct sets s = even_sets(ANYWHERE, of[i].samples, of[i].points);
        struct recorded d = make_recorded(&s, L2);
        double near = time_ms(&d, false), all = time_ms(&d, true);
        printf("%d x %lld: nearest rows in both directions %.4f ms; with the loss chamfer and the "
               "gradient of one set %.4f ms\n",
            of[i].samples, (long long)of[i].points, near, all);
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
        print_times();
        return check_failed ? 1 : 0;
    }
    for (int places = 0; places < PLACES; places += every(6))
        for (int sizes = 0; sizes < SIZES_; sizes++)
            test_sets((enum places)places, (enum sizes)sizes, small);
    for (int loss = 0; loss < LOSSES; loss++) test_replay((enum loss)loss);
    return check_end();
}
#endif
