/* The loss apml on a GPU against its CPU twin: the same supports, exactly; the plan, the loss and gradients within float32. Its
   rounds against rounds in long double. */
#include "kernels/apml.h"
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/sets_case.h"
#include "tests/sets/apml_rounds.h"

#include <time.h>

static const double PLAN_BOUND = 1e-5;   /* of P and the loss: rounds magnify roundings */
static const double ROUNDS_BOUND = 3e-5; /* where a row has some thousand entries, too */

static const struct pnet_apml standard = {
    .p = 0.8, .tau = 1e-8, .rounds = 10, .most = 64, .entries = 12};

/* Places beyond those of tests/cuda/sets_case.h. */
enum shapes {
    AS_MADE,
    ON_A_SURFACE, /* both sets on a sphere, the first with noise */
    TWINS,        /* rows of both sets at the same places, as far as both have them */
    SHAPES
};
static const char *const shape_names[SHAPES] = {"", "on a surface, ", "equal sets, "};

/* Moves the points of both sets, on either device. */
static void reshape(struct sets *s, enum shapes shape)
{
    for (int side = 0; side < 2 && shape; side++) {
        float *xyz = (float *)(uintptr_t)s->cpu[side].xyz;
        const float *first = s->cpu[0].xyz;
        for (int64_t i = 0; i < s->rows[side]; i++) {
            float *at = xyz + 3 * i;
            float norm = sqrtf((at[0] * at[0] + at[1] * at[1]) + at[2] * at[2]) + 1e-9f;
            for (int c = 0; c < 3; c++) {
                if (shape == ON_A_SURFACE)
                    at[c] = at[c] / norm + (side ? 0 : 1e-4f * (float)random_below(100));
                if (shape == TWINS && side == 1 && i < s->rows[0]) at[c] = first[3 * i + c];
            }
        }
        pnet_cuda_copy_in(
            (float *)(uintptr_t)s->gpu[side].xyz, xyz, (size_t)(3 * s->rows[side]) * sizeof *xyz);
    }
    pnet_cuda_sync(); /* release() tells of errors */
}

/* A plan on both devices. */
enum { ENDS, BY_ROW, BY_COLUMN, PLAN_PARTS };
struct plans {
    struct pnet_apml cpu, gpu;
    struct pnet_apml_plan want, got;
    struct result part[PLAN_PARTS];
    int64_t most[PLAN_PARTS]; /* bytes, with those of rows that are not there */
};

static void add_part(struct plans *p, int part, int64_t live, int64_t most, size_t size)
{
    p->part[part] = make_result(NULL, live, most, size);
    p->most[part] = most * (int64_t)size;
}

static struct plans make_plans(const struct sets *s, const struct pnet_apml *a)
{
    struct plans p = {.cpu = *a, .gpu = *a};
    const int64_t n = s->rows[0], m = s->rows[1], each = a->entries;
    p.cpu.sets = (struct pnet_set_pair){.x = s->cpu[0], .y = s->cpu[1]};
    p.gpu.sets = (struct pnet_set_pair){.x = s->gpu[0], .y = s->gpu[1]};
    p.want.end = host_bytes((size_t)(2 * n) * sizeof *p.want.end);
    p.want.by_row = host_bytes((size_t)(each * n) * sizeof *p.want.by_row);
    p.want.by_column = host_bytes((size_t)(each * m) * sizeof *p.want.by_column);
    add_part(&p, ENDS, 2 * n, 2 * (n + SLACK), sizeof *p.got.end);
    add_part(&p, BY_ROW, each * n, each * (n + SLACK), sizeof *p.got.by_row);
    add_part(&p, BY_COLUMN, each * m, each * (m + SLACK), sizeof *p.got.by_column);
    p.got = (struct pnet_apml_plan){
        p.part[ENDS].device, p.part[BY_ROW].device, p.part[BY_COLUMN].device};
    return p;
}

/* The CPU adds up the entries of a row one by one, in float32: the more, the larger its error. */
static double bound_for(const struct plans *p, double bound)
{
    const int64_t n = p->cpu.sets.x.rows.most, m = p->cpu.sets.y.rows.most;
    const struct pnet_apml_entry *list[] = {p->want.by_row, p->want.by_column};
    int64_t *of_y = host_bytes((size_t)(2 * m) * sizeof *of_y), longest = 0;
    memset(of_y, 0, (size_t)(2 * m) * sizeof *of_y);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0, at = 0, begin = 0; i < n; i++, begin = at) {
            for (; at < p->want.end[2 * i + k]; at++) of_y[2 * list[k][at].other + k]++;
            if (at - begin > longest) longest = at - begin;
        }
    for (int64_t j = 0; j < 2 * m; j++)
        if (of_y[j] > longest) longest = of_y[j];
    return bound * (1 + (double)longest / 64);
}

/* Entries of one list: the same rows of y, and near weights. */
static void check_entries(
    const struct result *r, const struct pnet_apml_entry *want, int64_t n, double bound)
{
    const struct pnet_apml_entry *got = r->first;
    float *p = host_bytes((size_t)(2 * n) * sizeof *p);
    int64_t differ = 0;
    for (int64_t k = 0; k < n; k++) {
        differ += got[k].other != want[k].other;
        p[k] = got[k].p;
        p[n + k] = want[k].p;
    }
    CHECKF(!differ, "%s: %lld of %lld entries lead to another row", name, (long long)differ,
        (long long)n);
    check_near(name, p, p + n, n, bound, 0);
}

static void check_plan(const struct plans *p)
{
    const int64_t n = p->cpu.sets.x.rows.most;
    const double bound = bound_for(p, PLAN_BOUND);
    bool same = !memcmp(p->part[ENDS].first, p->want.end, p->part[ENDS].live);
    CHECKF(same, "%s: rows of the plan end elsewhere than on the CPU", name);
    if (same && n > 0) {
        check_entries(&p->part[BY_ROW], p->want.by_row, p->want.end[2 * n - 2], bound);
        check_entries(&p->part[BY_COLUMN], p->want.by_column, p->want.end[2 * n - 1], bound);
    }
    for (int part = 0; part < PLAN_PARTS; part++)
        check_untouched(name, &p->part[part], (size_t)p->most[part]);
}

static void test_forward(struct plans *p)
{
    struct result value = make_result(NULL, 1, 1, sizeof(float));
    float want;
    void *work = device_work(pnet_cuda_apml_work(&p->gpu, false));
    pnet_cpu_apml(&p->cpu, &p->want, &want, host_bytes(pnet_cpu_apml_work(&p->cpu, false)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_apml(&p->gpu, &p->got, value.device, work);
        collect(&value, turn, name);
        for (int part = 0; part < PLAN_PARTS; part++) collect(&p->part[part], turn, name);
    }
    check_plan(p);
    CHECKF(isnan(want) == isnan(*(float *)value.first), "%s: loss %g, on the CPU %g", name,
        (double)*(float *)value.first, (double)want);
    check_floats(name, &value, &want, bound_for(p, PLAN_BOUND));
}

/* Gradients of the CPU's plan, on both devices. `add`: they are added to those of x, else to those of y. */
static void test_backward(struct plans *p, bool x_wanted, bool y_wanted, bool add)
{
    const int64_t n = p->cpu.sets.x.rows.most, m = p->cpu.sets.y.rows.most;
    const int64_t rows[2] = {n, m};
    const bool wanted[2] = {x_wanted, y_wanted}, adds[2] = {add, !add};
    float gloss = -0.75f, *want[2];
    const float *on_device = device_floats(&gloss, 1, 1);
    struct result g[2];
    void *work = device_work(pnet_cuda_apml_work(&p->gpu, true));
    for (int part = 0; part < PLAN_PARTS; part++) {
        const void *from[] = {p->want.end, p->want.by_row, p->want.by_column};
        pnet_cuda_copy_in(p->part[part].device, from[part], p->part[part].live);
    }
    for (int side = 0; side < 2; side++) {
        want[side] = random_floats(3 * rows[side], true);
        if (!adds[side]) memset(want[side], 0xFF, (size_t)(3 * rows[side]) * sizeof(float));
        g[side] = make_result(want[side], 3 * rows[side], 3 * (rows[side] + SLACK), sizeof(float));
    }
    struct pnet_apml_gradients cpu = {
        wanted[0] ? want[0] : NULL, wanted[1] ? want[1] : NULL, adds[0], adds[1]};
    struct pnet_apml_gradients gpu = {
        wanted[0] ? g[0].device : NULL, wanted[1] ? g[1].device : NULL, adds[0], adds[1]};
    pnet_cpu_apml_backward(
        &p->cpu, &p->want, &gloss, &cpu, host_bytes(pnet_cpu_apml_work(&p->cpu, true)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_apml_backward(&p->gpu, &p->got, on_device, &gpu, work);
        for (int side = 0; side < 2; side++) collect(&g[side], turn, name);
    }
    for (int side = 0; side < 2; side++) {
        check_floats(name, &g[side], want[side], bound_for(p, BOUND));
        check_untouched(name, &g[side], (size_t)(3 * (rows[side] + SLACK)) * sizeof(float));
    }
}

static void test_both(enum places places, enum shapes shape, enum sizes sizes, bool small,
    const struct pnet_apml *a, const char *what)
{
    struct sets s = make_sets(places, sizes, small);
    snprintf(name, sizeof name, "%s%s, %s, %s", shape_names[shape], place_names[places],
        size_names[sizes], what);
    reshape(&s, shape);
    struct plans p = make_plans(&s, a);
    test_forward(&p);
    test_backward(&p, true, true, false);
    test_backward(&p, true, true, true);
    test_backward(&p, sizes % 2, !(sizes % 2), true);
    release(name);
}

static void test_places(bool small)
{
    for (int sizes = 0; sizes < SIZES_; sizes++) {
        for (int places = 0; places < PLACES; places += every(6))
            test_both((enum places)places, AS_MADE, (enum sizes)sizes, small, &standard, "");
        for (int shape = AS_MADE + 1; shape < SHAPES; shape += every(2))
            test_both(ANYWHERE, (enum shapes)shape, (enum sizes)sizes, small, &standard, "");
    }
}

/* Arguments, and limits that bind: what each set keeps is the most that fits. */
static void test_arguments(bool small)
{
    static const struct pnet_apml args[] = {
        {.p = 0.6, .tau = 1e-12, .rounds = 3, .most = 64, .entries = 12},
        {.p = 0.8, .tau = 1e-30, .rounds = 2, .most = 64, .entries = 40},
        {.p = 0.95, .tau = 1e-4, .rounds = 0, .most = 4, .entries = 2},
        {.p = 0.8, .tau = 1e-8, .rounds = 40, .most = 1024, .entries = 6},
        {.p = 0.8, .tau = 1e-16, .rounds = 10, .most = 2, .entries = 2},
        {.p = 0.8, .tau = 1e-16, .rounds = 1, .most = 33, .entries = 33},
    };
    static const int16_t room[] = {2, 3, 4, 6, 8, 12, 16, 32};
    static const enum sizes of[] = {ONE_LARGE, EVEN, MANY_SMALL};
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < sizeof args / sizeof *args; i += (size_t)every(3)) {
            char what[64];
            snprintf(what, sizeof what, "arguments %zu", i);
            test_both(ANYWHERE, AS_MADE, of[k], small, &args[i], what);
            test_both(ON_A_GRID, AS_MADE, of[k], small, &args[i], what);
        }
        for (size_t i = 0; i < sizeof room / sizeof *room; i += small ? 3 * (size_t)every(2) : 1) {
            struct pnet_apml a = standard;
            char what[64];
            a.tau = 1e-30;
            a.entries = room[i];
            snprintf(what, sizeof what, "%d entries", room[i]);
            test_both(ANYWHERE, AS_MADE, of[k], true, &a, what);
            test_both(AT_ONE_PLACE, AS_MADE, of[k], true, &a, what);
        }
    }
}

/* The plan of a GPU after `rounds` rounds, and the loss, which is returned. */
static float gpu_forward(struct plans *p, int32_t rounds)
{
    struct result value = make_result(NULL, 1, 1, sizeof(float));
    void *work = device_work(pnet_cuda_apml_work(&p->gpu, false));
    p->gpu.rounds = rounds;
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_apml(&p->gpu, &p->got, value.device, work);
        collect(&value, turn, name);
        for (int part = 0; part < PLAN_PARTS; part++) collect(&p->part[part], turn, name);
    }
    return *(float *)value.first;
}

static void check_doubles(
    const char *what, const float *x, const double *want, int64_t n, double bound)
{
    float *rounded = host_bytes((size_t)n * sizeof *rounded);
    for (int64_t i = 0; i < n; i++) rounded[i] = (float)want[i];
    check_near(what, x, rounded, n, bound, 0);
}

/* Loss, plan and gradients after rounds that begin with the plan that the GPU gives for none. */
static void check_rounds(struct plans *p, const struct apml_rounds *want, int32_t rounds)
{
    const int64_t rows[2] = {p->cpu.sets.x.rows.most, p->cpu.sets.y.rows.most};
    const double bound = ROUNDS_BOUND;
    const float one = 1, loss = gpu_forward(p, rounds);
    struct result g[2];
    for (int side = 0; side < 2; side++)
        g[side] = make_result(NULL, 3 * rows[side], 3 * (rows[side] + SLACK), sizeof(float));
    struct pnet_apml_gradients to = {.x = g[0].device, .y = g[1].device};
    const float *gloss = device_floats(&one, 1, 1);
    void *work = device_work(pnet_cuda_apml_work(&p->gpu, true));
    CHECKF(fabs((double)loss - want->loss) <= bound * want->loss, "%s: loss %.9g, not %.9g", name,
        (double)loss, want->loss);
    for (int k = 0; k < 2; k++) {
        const struct pnet_apml_entry *e = p->part[BY_ROW + k].first;
        const int64_t n = p->want.end[2 * (rows[0] - 1) + k];
        float *plan = host_bytes((size_t)n * sizeof *plan);
        for (int64_t i = 0; i < n; i++) plan[i] = e[i].p;
        check_doubles(name, plan, want->entry[k], n, bound);
    }
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_apml_backward(&p->gpu, &p->got, gloss, &to, work);
        for (int side = 0; side < 2; side++) collect(&g[side], turn, name);
    }
    for (int side = 0; side < 2; side++)
        check_doubles(name, g[side].first, want->gradient[side], 3 * rows[side], bound);
}

/* Two sets of up to two samples. n: [side][sample] */
static struct sets make_two(enum places places, int32_t samples, const int64_t n[2][2])
{
    int64_t *splits[2];
    for (int side = 0; side < 2; side++) {
        splits[side] = host_bytes(3 * sizeof *splits[side]);
        splits[side][0] = 0;
        for (int k = 0; k < 2; k++) splits[side][k + 1] = splits[side][k] + n[side][k];
    }
    return sets_of_splits(places, samples, splits);
}

/* Rounds where factors leave float32, from collapsed to equal sets: of small samples, of one whose factors do not fit into
   shared memory, of sets so large that half a round is a launch. */
static void test_rounds(bool small)
{
    static const struct {
        int32_t samples, most_rounds;
        int64_t n[2][2];
        const char *what;
    } of[] = {{2, 1000, {{600, 40}, {500, 300}}, "small samples"},
        {2, 64, {{7000, 10}, {6500, 10}}, "a sample beyond shared memory"},
        {1, 64, {{9000, 0}, {9000, 0}}, "a large sample"},
        {1, 1000, {{9000, 0}, {400, 0}}, "large, of different sizes"}};
    static const struct {
        enum places places;
        enum shapes shape;
    } at[] = {{ANYWHERE, AS_MADE}, {ANYWHERE, ON_A_SURFACE}, {ANYWHERE, TWINS},
        {ON_A_GRID, AS_MADE}, {FAR_APART, AS_MADE}, {AT_ONE_PLACE, AS_MADE},
        {ALL_AT_ONE_PLACE, AS_MADE}, {COLLAPSED, AS_MADE}, {ON_A_SPHERE, AS_MADE}};
    static const int32_t rounds[] = {1, 20, 64, 1000};
    for (size_t i = 0; i < sizeof of / sizeof *of; i += small ? 3 : 1)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            struct sets s = make_two(at[k].places, of[i].samples, of[i].n);
            snprintf(name, sizeof name, "rounds, %s%s, %s", shape_names[at[k].shape],
                place_names[at[k].places], of[i].what);
            reshape(&s, at[k].shape);
            struct plans p = make_plans(&s, &standard);
            void *start[] = {p.want.end, p.want.by_row, p.want.by_column};
            gpu_forward(&p, 0);
            for (int part = 0; part < PLAN_PARTS; part++)
                memcpy(start[part], p.part[part].first, p.part[part].live);
            for (size_t t = 0; t < sizeof rounds / sizeof *rounds; t++) {
                if (rounds[t] > (small ? 64 : of[i].most_rounds)) break;
                struct apml_rounds want = apml_rounds_of(&p.cpu.sets, &p.want, rounds[t]);
                check_rounds(&p, &want, rounds[t]);
                apml_rounds_free(&want);
            }
            release(name);
        }
}

/* Where the pieces of a recording lie on the device. */
struct recorded {
    struct pnet_apml_gradients g;
    struct result value, gradient[2];
    float *gloss;
    void *work[2];
};

static struct recorded make_recorded(const struct sets *s, const struct pnet_apml *a)
{
    struct recorded d = {.gloss = NULL};
    float gloss = 2;
    d.gloss = device_floats(&gloss, 1, 1);
    d.value = make_result(NULL, 1, 1, sizeof(float));
    for (int side = 0; side < 2; side++)
        d.gradient[side] =
            make_result(NULL, 3 * s->rows[side], 3 * (s->rows[side] + SLACK), sizeof(float));
    d.g = (struct pnet_apml_gradients){.x = d.gradient[0].device, .y = d.gradient[1].device};
    for (int backward = 0; backward < 2; backward++)
        d.work[backward] = device_work(pnet_cuda_apml_work(a, backward));
    return d;
}

enum { FORWARD = 1, BACKWARD = 2 };

static void *record(const struct recorded *d, const struct plans *p, int steps, int times)
{
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    for (int i = 0; i < times; i++) {
        if (steps & FORWARD) pnet_cuda_apml(&p->gpu, &p->got, d->value.device, d->work[0]);
        if (steps & BACKWARD)
            pnet_cuda_apml_backward(&p->gpu, &p->got, d->gloss, &d->g, d->work[1]);
    }
    void *recording = pnet_cuda_record_end();
    CHECKF(recording, "%s", pnet_cuda_error());
    return recording;
}

/* A recorded launch goes on with the numbers and points that stand in device memory when it is replayed. */
static void test_replay(enum places places, enum sizes sizes)
{
    struct sets s = make_sets(places, sizes, true);
    struct plans p = make_plans(&s, &standard);
    struct recorded d = make_recorded(&s, &p.gpu);
    snprintf(name, sizeof name, "replay, %s, %s", place_names[places], size_names[sizes]);
    void *recording = record(&d, &p, FORWARD | BACKWARD, 1);
    for (int64_t by = 0; recording && by < 2000; by = 3 * by + 100) {
        float want, gloss = 2, *back[2];
        if (by) shrink_sets(&s, by);
        p.cpu.sets = (struct pnet_set_pair){.x = s.cpu[0], .y = s.cpu[1]};
        p.part[ENDS].live = (size_t)(2 * s.rows[0]) * sizeof *p.want.end;
        p.part[BY_ROW].live = (size_t)(standard.entries * s.rows[0]) * sizeof *p.want.by_row;
        p.part[BY_COLUMN].live = (size_t)(standard.entries * s.rows[1]) * sizeof *p.want.by_row;
        for (int side = 0; side < 2; side++) {
            back[side] = host_bytes((size_t)(3 * s.rows[side]) * sizeof(float));
            d.gradient[side].live = (size_t)(3 * s.rows[side]) * sizeof(float);
        }
        struct pnet_apml_gradients g = {.x = back[0], .y = back[1]};
        pnet_cpu_apml(&p.cpu, &p.want, &want, host_bytes(pnet_cpu_apml_work(&p.cpu, false)));
        pnet_cpu_apml_backward(
            &p.cpu, &p.want, &gloss, &g, host_bytes(pnet_cpu_apml_work(&p.cpu, true)));
        for (int part = 0; part < PLAN_PARTS; part++)
            pnet_cuda_fill_bytes(p.part[part].device, 0xFF, (size_t)p.most[part]);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_replay(recording);
            collect(&d.value, turn, name);
            for (int part = 0; part < PLAN_PARTS; part++) collect(&p.part[part], turn, name);
            for (int side = 0; side < 2; side++) collect(&d.gradient[side], turn, name);
        }
        check_plan(&p);
        check_floats(name, &d.value, &want, bound_for(&p, PLAN_BOUND));
        for (int side = 0; side < 2; side++)
            check_floats(name, &d.gradient[side], back[side], bound_for(&p, PLAN_BOUND));
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

/* The mean time of replays of a recording of `times` times some steps. */
static double time_ms(const struct recorded *d, const struct plans *p, int steps)
{
    enum { TIMES = 10, REPLAYS = 10 };
    void *recording = record(d, p, steps, TIMES);
    double begin = 0;
    for (int i = -1; recording && i < REPLAYS; i++) {
        if (i == 0) {
            pnet_cuda_sync();
            begin = seconds();
        }
        pnet_cuda_replay(recording);
    }
    pnet_cuda_sync();
    double ms = (seconds() - begin) * 1e3 / (TIMES * REPLAYS);
    pnet_cuda_record_free(recording);
    return ms;
}

static void print_times(void)
{
    static const struct {
        int32_t samples;
        int64_t points;
        int32_t entries;
    } of[] = {{32, 2048, 12}, {1, 2048, 12}, {1, 16384, 12}, {1, 65536, 12}, {1, 262144, 12},
        {1, 1000000, 12}, {1, 1000000, 6}};
    static const struct {
        enum places places;
        enum shapes shape;
        const char *name;
    } at[] = {{ANYWHERE, AS_MADE, "anywhere"}, {ANYWHERE, ON_A_SURFACE, "on a surface"},
        {COLLAPSED, AS_MADE, "collapsed"}, {ALL_AT_ONE_PLACE, AS_MADE, "at one place"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            struct pnet_apml a = standard;
            struct sets s = even_sets(at[k].places, of[i].samples, of[i].points);
            a.entries = of[i].entries;
            reshape(&s, at[k].shape);
            struct plans p = make_plans(&s, &a);
            struct recorded d = make_recorded(&s, &p.gpu);
            double forward = time_ms(&d, &p, FORWARD), both = time_ms(&d, &p, FORWARD | BACKWARD);
            size_t plan = 0;
            for (int part = 0; part < PLAN_PARTS; part++) plan += (size_t)p.most[part];
            printf("%d x %lld, %s, %d entries: forward %.4f ms, with the gradients of both sets "
                   "%.4f ms; plan %.1f MB, workspaces %.1f and %.1f MB\n",
                of[i].samples, (long long)of[i].points, at[k].name, of[i].entries, forward, both,
                1e-6 * (double)plan, 1e-6 * (double)pnet_cuda_apml_work(&p.gpu, false),
                1e-6 * (double)pnet_cuda_apml_work(&p.gpu, true));
            release("times");
        }
}

/* With the argument `places`, `arguments`, `rounds` or `replays` that part alone; with `time` times alone. PNET_SHORT: what a
   sanitizer gets through. */
int main(int argc, char **argv)
{
    const char *why;
    const bool small = getenv("PNET_SHORT");
    const char *part = argc > 1 ? argv[1] : "";
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (!strcmp(part, "time")) {
        print_times();
        return check_failed ? 1 : 0;
    }
    if (!*part || !strcmp(part, "places")) test_places(small);
    if (!*part || !strcmp(part, "arguments")) test_arguments(small);
    if (!*part || !strcmp(part, "rounds")) test_rounds(small);
    for (int sizes = 0; (!*part || !strcmp(part, "replays")) && sizes <= EVEN; sizes++) {
        test_replay(ANYWHERE, (enum sizes)sizes);
        test_replay(ON_A_GRID, (enum sizes)sizes);
    }
    return check_end();
}
#endif
