/* The supports of apml on a GPU against those of the CPU: limits, pairs and the metric are the same, weights are near. */
#include "kernels/apml.h"
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/cpu/sets/apml.h"
#include "kernels/cuda/sets/apml_search.h"
#include "tests/cuda/sets_case.h"

#include <time.h>

/* Relative errors of a weight: two exponentials, of up to 3 roundings each, and sums of up to 1024 of them, whose roundings add
   up where distances are equal. */
static const float WEIGHT_BOUND = 2e-5f;

/* The lists of a side, by the CPU. */
struct wanted {
    int64_t *start;
    struct pnet_apml_entry *entry;
    int32_t limit;
};

static void want_lists(const struct pnet_apml *a, struct wanted want[2])
{
    struct pnet_apml_search s;
    struct pnet_geo_purse purse = pnet_geo_open(NULL);
    const struct pnet_point_set *set[2] = {&a->sets.x, &a->sets.y};
    uint64_t *slots[2];
    bool finite = pnet_apml_finite(a);
    for (int k = 0; k < 2; k++) {
        size_t rows = (size_t)set[k]->rows.most, entries = rows * (size_t)a->entries;
        want[k].start = host_bytes((rows + 1) * sizeof *want[k].start);
        want[k].entry = host_bytes(entries * sizeof *want[k].entry);
        slots[k] = host_bytes(entries * sizeof *slots[k]);
        for (size_t i = 0; i <= rows; i++) want[k].start[i] = 0;
    }
    if (!finite) return;
    pnet_apml_search_take(&s, a, &purse);
    purse = pnet_geo_open(aligned_alloc(64, (purse.used + 127) / 64 * 64));
    held.host[held.hosts++] = purse.base;
    pnet_apml_search_take(&s, a, &purse);
    pnet_apml_find(&s, slots);
    for (int k = 0; k < 2; k++) {
        want[k].limit = s.side[k].limit;
        pnet_apml_write(&s, k, slots[k], want[k].start, want[k].entry);
    }
}

/* The results of a search on the device. */
struct found {
    struct result start[2], entry[2], finite;
    struct pnet_cuda_apml_list list[2];
    int64_t room[2]; /* entries */
};

static struct found make_found(const struct pnet_apml *a, const int64_t rows[2])
{
    struct found f = {.finite = make_result(NULL, 1, 1, sizeof(int32_t))};
    for (int k = 0; k < 2; k++) {
        f.room[k] = rows[k] * a->entries;
        f.start[k] = make_result(NULL, rows[k] + 1, rows[k] + 1 + SLACK, sizeof(int64_t));
        f.entry[k] = make_result(
            NULL, f.room[k], (rows[k] + SLACK) * a->entries, sizeof(struct pnet_apml_entry));
        f.list[k] = (struct pnet_cuda_apml_list){f.start[k].device, f.entry[k].device};
    }
    return f;
}

static void collect_found(struct found *f, int turn)
{
    collect(&f->finite, turn, name);
    for (int k = 0; k < 2; k++) {
        collect(&f->start[k], turn, name);
        collect(&f->entry[k], turn, name);
    }
}

static void check_list(const struct found *f, int side, int64_t rows, const struct wanted *want)
{
    const int64_t *start = f->start[side].first;
    const struct pnet_apml_entry *entry = f->entry[side].first;
    int64_t starts = 0, others = 0, weights = 0, behind = 0;
    float worst = 0;
    for (int64_t i = 0; i <= rows; i++) starts += start[i] != want->start[i];
    CHECKF(!starts, "%s, side %d: %lld of %lld lists begin elsewhere", name, side,
        (long long)starts, (long long)rows);
    if (starts) return;
    for (int64_t n = 0; n < want->start[rows]; n++) {
        float p = want->entry[n].p, error = fabsf(entry[n].p - p) / p;
        others += entry[n].other != want->entry[n].other;
        weights += !(error <= WEIGHT_BOUND) && entry[n].p != p;
        worst = error > worst ? error : worst;
    }
    CHECKF(!others, "%s, side %d: %lld of %lld entries lead to another row", name, side,
        (long long)others, (long long)want->start[rows]);
    CHECKF(!weights, "%s, side %d: %lld of %lld weights differ, by up to %g", name, side,
        (long long)weights, (long long)want->start[rows], (double)worst);
    const unsigned char *bytes = (const unsigned char *)(entry + want->start[rows]);
    for (size_t b = 0; b < (size_t)(f->room[side] - want->start[rows]) * sizeof *entry; b++)
        behind += bytes[b] != 0xFF;
    CHECKF(!behind, "%s, side %d: entries are written behind the lists", name, side);
}

static void check_found(const struct pnet_apml *a, const struct found *f, const int64_t rows[2])
{
    struct wanted want[2];
    want_lists(a, want);
    CHECKF(*(const int32_t *)f->finite.first == pnet_apml_finite(a), "%s: finite is %d", name,
        *(const int32_t *)f->finite.first);
    for (int k = 0; k < 2; k++) check_list(f, k, rows[k], &want[k]);
}

static void check_metric(const struct pnet_apml *cpu, const struct result *r)
{
    double want[PNET_APML_SUMS];
    const double *got = r->first;
    pnet_cpu_apml_support(cpu, want, host_bytes(pnet_cpu_apml_support_work(cpu)));
    for (int k = 0; k < PNET_APML_SUMS; k++)
        CHECKF((isnan(want[k]) && isnan(got[k])) || want[k] == got[k],
            "%s: sum %d is %.17g, on the CPU %.17g", name, k, got[k], want[k]);
}

/* Rows behind the live ones of a start are as they were. */
static void check_starts_untouched(struct found *f, const int64_t rows[2])
{
    for (int k = 0; k < 2; k++)
        check_untouched(name, &f->start[k], (size_t)(rows[k] + 1 + SLACK) * sizeof(int64_t));
}

static struct pnet_apml loss_of(const struct sets *s, bool gpu, int32_t most, int32_t entries)
{
    const struct pnet_point_set *set = gpu ? s->gpu : s->cpu;
    return (struct pnet_apml){.sets = {set[0], set[1], NULL, NULL},
        .p = 0.8,
        .tau = 1e-8,
        .rounds = 10,
        .most = most,
        .entries = entries};
}

/* Limits with room for all, and such that the limit falls to some of those below. */
static const int32_t limits[][2] = {{64, 12}, {1024, 1024}, {1024, 20}, {64, 3}, {20, 2}, {5, 4}};
enum { LIMITS = sizeof limits / sizeof *limits };

static void test_search(enum places places, enum sizes sizes, bool small, int limit, double tau)
{
    struct sets s = make_sets(places, sizes, small);
    struct pnet_apml cpu = loss_of(&s, false, limits[limit][0], limits[limit][1]),
                     gpu = loss_of(&s, true, limits[limit][0], limits[limit][1]);
    cpu.tau = gpu.tau = tau;
    snprintf(name, sizeof name, "%s, %s, at most %d, %d on average, tau %g", place_names[places],
        size_names[sizes], limits[limit][0], limits[limit][1], tau);
    struct found f = make_found(&gpu, s.rows);
    struct result sum = make_result(NULL, PNET_APML_SUMS, PNET_APML_SUMS, sizeof(double));
    void *work = device_work(pnet_cuda_apml_search_work(&gpu)),
         *metric = device_work(pnet_cuda_apml_support_work(&gpu));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_apml_search(&gpu, f.list, f.finite.device, work);
        collect_found(&f, turn);
        pnet_cuda_apml_support(&gpu, sum.device, metric);
        collect(&sum, turn, name);
    }
    check_found(&cpu, &f, s.rows);
    check_metric(&cpu, &sum);
    check_starts_untouched(&f, s.rows);
    release(name);
}

/* Every limit for samples of some hundred points. The CPU looks at all pairs of points that lie in one place, so there are fewer
   of them. */
static void test_sizes(enum places places, enum sizes sizes, bool small)
{
    bool few = small || places == AT_ONE_PLACE || places == ALL_AT_ONE_PLACE;
    test_search(places, sizes, few, 0, 1e-8);
    test_search(places, sizes, true, 3, 1e-20);
    /* rows that keep 1024 of more points, and a limit below */
    for (int limit = 1; limit < 3 && sizes == ONE_LARGE && few; limit++)
        test_search(places, sizes, true, limit, 1e-8);
    for (int limit = 1; limit < LIMITS && sizes == EVEN; limit++)
        test_search(places, sizes, few, limit, limit % 2 ? 1e-8 : 1e-20);
}

/* A recorded search goes on with the numbers and points that stand in device memory when it is replayed. */
static void test_replay(bool small)
{
    struct sets s = make_sets(ANYWHERE, small ? MANY_SMALL : EVEN, small);
    struct pnet_apml gpu = loss_of(&s, true, 24, 5);
    struct found f = make_found(&gpu, s.rows);
    struct result sum = make_result(NULL, PNET_APML_SUMS, PNET_APML_SUMS, sizeof(double));
    void *work = device_work(pnet_cuda_apml_search_work(&gpu)),
         *metric = device_work(pnet_cuda_apml_support_work(&gpu));
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    pnet_cuda_apml_search(&gpu, f.list, f.finite.device, work);
    pnet_cuda_apml_support(&gpu, sum.device, metric);
    void *recording = pnet_cuda_record_end();
    CHECKF(recording, "%s", pnet_cuda_error());
    for (int64_t by = 0; recording && by < 2000; by = 4 * by + 100) {
        if (by) shrink_sets(&s, by);
        snprintf(name, sizeof name, "replay, %lld points less", (long long)by);
        for (int k = 0; k < 2; k++) {
            f.room[k] = s.rows[k] * gpu.entries;
            f.start[k].live = (size_t)(s.rows[k] + 1) * sizeof(int64_t);
            f.entry[k].live = (size_t)f.room[k] * sizeof(struct pnet_apml_entry);
            pnet_cuda_copy_in(f.entry[k].device, f.entry[k].start, f.entry[k].live);
        }
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_replay(recording);
            collect_found(&f, turn);
            collect(&sum, turn, name);
        }
        struct pnet_apml cpu = loss_of(&s, false, 24, 5);
        check_found(&cpu, &f, s.rows);
        check_metric(&cpu, &sum);
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

/* A sphere, and points on it with noise of 1 % or, collapsed, in its middle. */
static void place_timed(float *xyz[2], int64_t rows, bool collapsed)
{
    for (int side = 0; side < 2; side++) {
        float *x = xyz[side] = random_floats(3 * rows, false), *noise = random_floats(3, false);
        for (int64_t i = 0; i < rows; i++) {
            float *at = x + 3 * i;
            float norm = sqrtf((at[0] * at[0] + at[1] * at[1]) + at[2] * at[2]) + 1e-9f;
            for (int c = 0; c < 3; c++) {
                noise[c] = (float)random_below(1 << 20) * 0x1p-20f - 0.5f;
                at[c] = side == 1 ? at[c] / norm : collapsed ? 0.01f * at[c] : at[c] / norm;
                if (side == 0) at[c] += 0.03f * noise[c] * (collapsed ? 0 : 1);
            }
        }
    }
}

static double time_ms(const struct pnet_apml *a, const struct found *f, void *work)
{
    enum { LAUNCHES = 5, REPLAYS = 5 };
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    for (int i = 0; i < LAUNCHES; i++) pnet_cuda_apml_search(a, f->list, f->finite.device, work);
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
    } of[] = {{32, 2048}, {1, 2048}, {1, 16384}, {1, 65536}, {1, 1000000}};
    for (size_t i = 0; i < 2 * sizeof of / sizeof *of; i++) {
        struct sets s = {.samples = of[i / 2].samples};
        int64_t rows = s.samples * of[i / 2].points;
        float *xyz[2];
        place_timed(xyz, rows, i % 2);
        for (int side = 0; side < 2; side++) {
            int64_t *splits = host_bytes((size_t)(s.samples + 1) * sizeof *splits);
            for (int32_t k = 0; k <= s.samples; k++) splits[k] = k * of[i / 2].points;
            s.rows[side] = rows;
            s.gpu[side] = (struct pnet_point_set){device_count(rows, 1), s.samples,
                device_offsets(splits, s.samples + 1, s.samples + 1),
                device_floats(xyz[side], 3 * rows, 3 * (rows + SLACK))};
        }
        struct pnet_apml a = loss_of(&s, true, 64, 12);
        struct found f = make_found(&a, s.rows);
        size_t bytes = pnet_cuda_apml_search_work(&a);
        double ms = time_ms(&a, &f, device_work(bytes));
        printf("%d x %lld, %s: search %.4f ms, workspace %.2f MB, %.2f bytes a row\n", s.samples,
            (long long)of[i / 2].points, i % 2 ? "collapsed" : "a sphere with noise", ms,
            (double)bytes * 1e-6, (double)bytes / (2.0 * (double)(rows + SLACK)));
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
            test_sizes((enum places)places, (enum sizes)sizes, small);
    test_replay(small);
    return check_end();
}
#endif
