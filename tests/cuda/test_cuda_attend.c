/* Attention on a GPU against its definition in double: errors by precision, the same bits each time, in any batch and any
   capacity, nothing written behind the rows that are there. With the number of a head's channels, the cases of that width alone;
   with the argument `time` times alone (of a precision, of a width: `time bf16 64`). */
#include "tests/attend/attend_exact.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/levels_case.h"

#include <time.h>

/* By enum pnet_storage: of results, in 2-norms; twice that of gradients. */
static const double tolerance[] = {
    [PNET_STORE_F32] = 8e-7, [PNET_STORE_BF16] = 5e-3, [PNET_STORE_FP16] = 1e-3};
static double worst[2][3]; /* of results and gradients, by storage */

/* What a problem has on the device. */
struct on_device {
    struct pnet_attend a;
    float *qkv, *gout;
    struct result out, log_sum, gqkv;
    void *work;
};

static int64_t rows_in(const struct problem *p)
{
    return p->splits[p->a.samples];
}

static struct on_device put(const struct problem *p, bool add)
{
    int64_t n = rows_in(p), most = n + SLACK, c = (int64_t)p->a.heads * p->a.width;
    struct on_device d = {.a = p->a};
    d.a.rows = device_count(n, 1);
    d.a.splits = device_offsets(p->splits, p->a.samples + 1, p->a.samples + 1);
    d.a.order = p->a.order ? device_ints(p->order, n, most) : NULL;
    d.qkv = device_features(p->qkv, 3 * n * c, 3 * most * c);
    d.gout = device_features(p->gout, n * c, most * c);
    d.out = make_features(NULL, n * c, most * c);
    d.log_sum = make_result(NULL, n * p->a.heads, most * p->a.heads, sizeof(float));
    d.gqkv = make_features(add ? p->qkv : NULL, 3 * n * c, 3 * most * c);
    size_t forward = pnet_cuda_attend_work(&d.a, false),
           backward = pnet_cuda_attend_work(&d.a, true);
    CHECK(forward <= backward && backward <= 64 << 20);
    d.work = device_work(backward);
    return d;
}

/* Forward and backward, twice. */
static void run(struct on_device *d, bool add)
{
    for (int turn = 0; turn < 2; turn++) {
        float *log_sum = d->log_sum.device;
        pnet_cuda_attend(&d->a, d->qkv, d->out.device, log_sum, d->work);
        pnet_cuda_attend_backward(
            &d->a, d->qkv, d->out.device, log_sum, d->gout, add, d->gqkv.device, d->work);
        collect(&d->out, turn, name);
        collect(&d->log_sum, turn, name);
        collect(&d->gqkv, turn, name);
    }
}

static double error_of(const struct result *r, const double *want)
{
    int64_t n = (int64_t)(r->live / (size_t)pnet_storage_bytes(storage));
    float *x = room(n, sizeof *x);
    from_storage(storage, r->first, n, x);
    double error = difference(n, x, want);
    free(x);
    return error;
}

static void note(int gradient, double error, double bound)
{
    bool usual = bound <= 4 * tolerance[storage];
    CHECKF(error <= bound, "%s, %s: %s off by %g, at most %g", name, storage_names[storage],
        gradient ? "gradient" : "result", error, bound);
    if (usual && error > worst[gradient][storage]) worst[gradient][storage] = error;
}

/* log2 of the sum of powers, from the definition. */
static void check_log_sums(const struct problem *p, const struct result *got)
{
    int32_t *row = room(rows_in(p), sizeof *row);
    double off = 0;
    for (int s = 0; s < p->a.samples; s++)
        for (int64_t t = 0; t < pnet_scope_count(&p->a.scopes, p->splits[s + 1] - p->splits[s]);
             t++) {
            int64_t count = rows_of(p, s, t, row);
            for (int64_t i = 0; i < count; i++) {
                double sum = 0, top = -INFINITY;
                for (int turn = 0; turn < 2; turn++)
                    for (int64_t j = 0; j < count; j++) {
                        double x = (double)p->a.scale * dot(p->a.width, part(p, row[i], 0, 0), NULL,
                                                            part(p, row[j], 1, 0));
                        if (turn)
                            sum += exp(x - top);
                        else
                            top = fmax(top, x);
                    }
                double have = (double)((float *)got->first)[row[i] * p->a.heads];
                double want = (top + log(sum)) / log(2);
                off = fmax(off, fabs(have - want) / fmax(1, fabs(want)));
            }
        }
    /* in 16 bits some powers are made by a polynomial */
    CHECKF(off < (storage == PNET_STORE_F32 ? 1e-5 : 5e-5), "%s: log_sum is off by %g", name, off);
    free(row);
}

static void check_case(struct problem *p, double times, bool add)
{
    int64_t n = rows_in(p), c = (int64_t)p->a.heads * p->a.width;
    double *out = room(n * c, sizeof *out), *g = room(3 * n * c, sizeof *g);
    p->a.splits = p->splits;
    p->a.rows.storage = storage;
    round_to_storage(storage, p->qkv, 3 * n * c);
    round_to_storage(storage, p->gout, n * c);
    struct on_device d = put(p, add);
    run(&d, add);
    define_all(p, out, g);
    for (int64_t i = 0; add && i < 3 * n * c; i++) g[i] += (double)p->qkv[i];
    note(0, error_of(&d.out, out), times * tolerance[storage]);
    note(1, error_of(&d.gqkv, g), 2 * times * tolerance[storage]);
    check_log_sums(p, &d.log_sum);
    free(out);
    free(g);
    release(name);
}

/* Sizes around those of tiles, of every width; a negative scale, as none is refused. */
static void test_values(bool small, int32_t width)
{
    static const int64_t sizes[] = {1, 15, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257, 700};
    static const int32_t widths[] = {8, 16, 32, 64, 128};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += 1 + 3 * (size_t)small)
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
            if (width && widths[k] != width) continue;
            for (int form = 0; form < 5; form++) {
                struct pnet_scopes s = {
                    form ? 16 : 512, form ? 3 : 8, form, form ? 1 + form % 3 : 1, form == 4};
                struct problem p =
                    make((int64_t[]){sizes[i], 0, 20}, 3, k < 3 ? 3 : 1, widths[k], s, form != 1);
                if (form == 2) p.a.scale = -p.a.scale;
                snprintf(name, sizeof name, "%lld rows, width %d, form %d", (long long)sizes[i],
                    widths[k], form);
                check_case(&p, 1, form == 3);
                drop(&p);
            }
        }
}

/* Of the cases whose results are known: what the device makes of what it stores of them. */
static void run_exact(struct problem *p)
{
    p->a.splits = p->splits;
    p->a.rows.storage = storage;
    snprintf(name, sizeof name, "a known result, width %d", p->a.width);
    struct on_device d = put(p, false);
    int64_t n = rows_in(p) * p->a.heads * p->a.width;
    run(&d, false);
    from_storage(storage, d.out.first, n, p->out);
    from_storage(storage, d.gqkv.first, 3 * n, p->gqkv);
    release(name);
}

/* A sample alone has the bits that it has in a batch. */
static void test_alone(int32_t width)
{
    struct pnet_scopes s = {32, 2, 1, 2, false};
    struct problem p = make((int64_t[]){150, 333, 40}, 3, 2, width, s, true),
                   q = make((int64_t[]){333}, 1, 2, width, s, true);
    int64_t c = 2 * width;
    size_t size = (size_t)pnet_storage_bytes(storage);
    snprintf(name, sizeof name, "alone, width %d", width);
    p.a.rows.storage = q.a.rows.storage = storage;
    memcpy(q.qkv, p.qkv + 150 * 3 * c, (size_t)(333 * 3 * c) * sizeof(float));
    memcpy(q.gout, p.gout + 150 * c, (size_t)(333 * c) * sizeof(float));
    struct on_device all = put(&p, false), one = put(&q, false);
    run(&all, false);
    run(&one, false);
    CHECKF(!memcmp((char *)all.out.first + 150 * (size_t)c * size, one.out.first, one.out.live),
        "%s: result", name);
    CHECKF(!memcmp((char *)all.gqkv.first + 450 * (size_t)c * size, one.gqkv.first, one.gqkv.live),
        "%s: gradient", name);
    release(name);
    drop(&p);
    drop(&q);
}

/* Products of +-1e4 leave one key, or several equal ones; what is not finite stays in its own sample. */
static void test_extremes(int32_t width)
{
    struct pnet_scopes s = {512, 8, 0, 1, false};
    struct problem p = make((int64_t[]){100, 70}, 2, 1, width, s, false);
    int64_t c = width, wrong = 0;
    for (int i = 0; i < 170; i++)
        for (int k = 0; k < 2 * c; k++) p.qkv[3 * c * i + k] *= 60;
    p.a.rows.storage = storage;
    snprintf(name, sizeof name, "large products, width %d", width);
    if (storage == PNET_STORE_F32)
        check_case(&p, 1e4, false); /* float32 has steps of 1e-3 at 1e4 */
    p.qkv[3 * c * 3] = NAN;
    struct on_device d = put(&p, false);
    run(&d, false);
    float *out = room(170 * c, sizeof *out);
    from_storage(storage, d.out.first, 170 * c, out);
    for (int k = 0; k < c; k++) wrong += !isnan(out[c * 3 + k]);
    for (int64_t i = 100 * c; i < 170 * c; i++) wrong += !isfinite(out[i]);
    CHECKF(!wrong, "%s: %lld numbers", name, (long long)wrong);
    free(out);
    release(name);
    drop(&p);
}

/* A key whose products are far above those of all keys before it takes all of each row: its power is beyond float32 when it comes
   by. Wherever it stands in a stage. */
static void test_late(int32_t width, bool small)
{
    struct pnet_scopes s = {512, 8, 0, 1, false};
    int64_t c = width, rows = 130;
    for (int64_t late = 64; late < 96; late += small ? 9 : 1) {
        struct problem p = make((int64_t[]){rows}, 1, 1, width, s, false);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < 2 * c; k++)
                p.qkv[3 * c * i + k] = k == 0 ? 16 : k == c && i == late ? 64 : 0;
        p.a.scale = 0.125F; /* products of 128, with log2(e) 185 */
        snprintf(name, sizeof name, "late key %lld, width %d", (long long)late, width);
        /* gradients of products are differences of equal numbers, which float32 leaves some of, times 64 */
        check_case(&p, storage == PNET_STORE_F32 ? 10 : 1, false);
        drop(&p);
    }
}

/* So many tiles that the gradient takes one head at a time, and not all of its tiles. The kernels for the CPU, which
   test_attend holds to the definition, give what is wanted. */
static void test_windows(int64_t rows)
{
    struct pnet_scopes s = {16, 1, 3, 1, false};
    struct problem p = make((int64_t[]){rows - 100000, 100000}, 2, 2, 8, s, true);
    int64_t n = rows_in(&p), c = 16;
    p.a.splits = p.splits;
    p.a.rows.storage = storage;
    snprintf(name, sizeof name, "windows, %lld rows", (long long)rows);
    round_to_storage(storage, p.qkv, 3 * n * c);
    round_to_storage(storage, p.gout, n * c);
    struct on_device d = put(&p, false);
    CHECK(pnet_cuda_attend_work(&d.a, true) > 32 << 20);
    run(&d, false);
    p.a.rows = pnet_count(n);
    void *work = room((int64_t)pnet_cpu_attend_work(&p.a, true), 1);
    pnet_cpu_attend(&p.a, p.qkv, p.out, p.log_sum, work);
    pnet_cpu_attend_backward(&p.a, p.qkv, p.out, p.log_sum, p.gout, false, p.gqkv, work);
    double *want = room(3 * n * c, sizeof *want);
    for (int64_t i = 0; i < n * c; i++) want[i] = (double)p.out[i];
    note(0, error_of(&d.out, want), 2 * tolerance[storage]);
    for (int64_t i = 0; i < 3 * n * c; i++) want[i] = (double)p.gqkv[i];
    note(1, error_of(&d.gqkv, want), 4 * tolerance[storage]);
    free(want);
    free(work);
    release(name);
    drop(&p);
}

static void test_nothing(void)
{
    struct pnet_scopes s = {16, 2, 1, 1, false};
    struct problem p = make((int64_t[]){0, 0}, 2, 1, 8, s, false);
    snprintf(name, sizeof name, "nothing");
    check_case(&p, 1, false);
    drop(&p);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The median of runs, in ms. */
static double time_ms(struct on_device *d, bool backward)
{
    enum { RUNS = 7 };
    double ms[RUNS];
    for (int i = -1; i < RUNS; i++) {
        pnet_cuda_sync();
        double begin = now();
        if (backward)
            pnet_cuda_attend_backward(&d->a, d->qkv, d->out.device, d->log_sum.device, d->gout,
                false, d->gqkv.device, d->work);
        else
            pnet_cuda_attend(&d->a, d->qkv, d->out.device, d->log_sum.device, d->work);
        pnet_cuda_sync();
        double time = 1e3 * (now() - begin);
        int at = i;
        for (; at > 0 && ms[at - 1] > time; at--) ms[at] = ms[at - 1];
        if (i >= 0) ms[at] = time;
    }
    return ms[RUNS / 2];
}

static void print_times(int64_t rows, int32_t width)
{
    static const int32_t widths[] = {8, 16, 32, 64, 128};
    for (int k = 0; k < 5; k++) {
        if (width && widths[k] != width) continue;
        for (int form = 0; form < 3; form++) {
            struct pnet_scopes s = {512, 8, form ? 3 : 0, form == 2 ? 2 : 1, false};
            int32_t heads = widths[k] < 64 ? 64 / widths[k] : 1;
            struct problem p = make((int64_t[]){rows}, 1, heads, widths[k], s, form > 0);
            p.a.rows.storage = storage;
            snprintf(name, sizeof name, "times");
            struct on_device d = put(&p, false);
            double forward = time_ms(&d, false), backward = time_ms(&d, true);
            printf("%s, %lld rows, %d heads of %d, scopes of 4096, %s: forward %.2f ms, backward "
                   "%.2f ms\n",
                storage_names[storage], (long long)rows, heads, widths[k],
                form == 0   ? "rows as they are"
                : form == 1 ? "gathered, shift 3"
                            : "gathered, shift 3, stride 2",
                forward, backward);
            fflush(stdout);
            release(name);
            drop(&p);
        }
    }
}

/* PNET_SHORT: a few sizes, for tools that watch each access. */
int main(int argc, char **argv)
{
    const char *why;
    const bool small = getenv("PNET_SHORT") || (argc > 1 && !strcmp(argv[1], "small"));
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (argc > 1 && !strcmp(argv[1], "time")) {
        storage = argc > 2 && !strcmp(argv[2], "fp32") ? PNET_STORE_F32 : PNET_STORE_BF16;
        print_times(storage == PNET_STORE_F32 ? 61440 : 614400, argc > 3 ? atoi(argv[3]) : 0);
        return 0;
    }
    int32_t only = argc > 1 ? atoi(argv[1]) : 0;
    for (int s = PNET_STORE_FP16; s >= PNET_STORE_F32; s--) {
        storage = (enum pnet_storage)s;
        test_nothing();
        test_values(small, only);
        if (!only || only == 8)
            exact_all(&(struct exact){run_exact, tolerance[s], 2 * tolerance[s]});
        for (int32_t width = 8; width <= 128; width *= 2) {
            if (only && only != width) continue;
            test_alone(width);
            test_extremes(width);
            test_late(width, small);
        }
        if (!small && !only) test_windows(s ? 1300000 : 700000);
    }
    for (int s = 0; s < 3; s++)
        printf("%s: results at most %.2g off, gradients %.2g\n", storage_names[s], worst[0][s],
            worst[1][s]);
    return check_end();
}
#endif
