/* Pooling and interpolation on a GPU against their CPU twins, on random data. The number of rows is
   known on the device alone, and smaller than what the buffers have room for. */
#include "kernels/pool.h"
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/levels_case.h"

static void test_cells_sum(const struct cells *s, int32_t c, const float *x, const float *gx)
{
    for (int way = 0; way < 4; way++) {
        bool mean = way & 1, add = way & 2;
        float *want = random_features(s->coarse * c, false);
        struct result r = make_features(want, s->coarse * c, (s->coarse + SLACK) * c);
        void *work = device_work(pnet_cuda_cells_sum_work(c));
        pnet_cpu_cells_sum(&s->cpu, c, x, mean, add, want, host_bytes(pnet_cpu_cells_sum_work(c)));
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_cells_sum(&s->gpu, c, gx, mean, add, r.device, work);
            collect(&r, turn, name);
        }
        check_features(name, &r, want, BOUND);
    }
}

static void test_cells_max(const struct cells *s, int32_t c, const float *x, const float *gx)
{
    float *want = host_bytes((size_t)(s->coarse * c) * sizeof *want);
    int32_t *from = host_bytes((size_t)(s->coarse * c) * sizeof *from);
    struct result y = make_features(NULL, s->coarse * c, (s->coarse + SLACK) * c);
    struct result a = make_result(NULL, s->coarse * c, (s->coarse + SLACK) * c, sizeof(int32_t));
    pnet_cpu_cells_max(&s->cpu, c, x, want, from);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_cells_max(&s->gpu, c, gx, y.device, a.device);
        collect(&a, turn, name);
        collect(&y, turn, name);
    }
    check_features(name, &y, want, 0);
    check_bytes(name, &a, from);
    pnet_cuda_cells_max(&s->gpu, c, gx, y.device, NULL);
    collect(&y, 1, name);

    pnet_cuda_copy_in(a.device, from, a.live);
    for (int add = 0; add < 2; add++) {
        float *back = random_features(s->fine * c, false);
        struct result r = make_features(back, s->fine * c, (s->fine + SLACK) * c);
        pnet_cpu_cells_max_backward(&s->cpu, c, from, want, add, back);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_cells_max_backward(&s->gpu, c, a.device, y.device, add, r.device);
            collect(&r, turn, name);
        }
        check_features(name, &r, back, 0);
    }
}

static void test_cells_spread(const struct cells *s, int32_t c)
{
    float *x = random_features(s->coarse * c, false);
    float *gx = device_features(x, s->coarse * c, (s->coarse + SLACK) * c);
    for (int way = 0; way < 4; way++) {
        bool mean = way & 1, add = way & 2;
        float *want = random_features(s->fine * c, false);
        struct result r = make_features(want, s->fine * c, (s->fine + SLACK) * c);
        pnet_cpu_cells_spread(&s->cpu, c, x, mean, add, want);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_cells_spread(&s->gpu, c, gx, mean, add, r.device);
            collect(&r, turn, name);
        }
        check_features(name, &r, want, BOUND);
    }
}

static void test_cells(int64_t fine, int64_t coarse, int32_t c)
{
    snprintf(name, sizeof name, "cells %lld in %lld, %d channels", (long long)fine,
        (long long)coarse, (int)c);
    struct cells s = make_cells(fine, coarse);
    float *x = random_features(fine * c, true);
    if (fine > 4) x[fine * c / 2] = NAN; /* somewhere in a cell */
    float *gx = device_features(x, fine * c, (fine + SLACK) * c);
    test_cells_max(&s, c, x, gx);
    if (fine > 4) x[fine * c / 2] = 1;
    put_features(gx, x, fine * c);
    test_cells_sum(&s, c, x, gx);
    test_cells_spread(&s, c);
    release(name);
}

/* Many lists of all lengths, most of them short; also of rows as they stand. */
static void test_many_sums(int64_t fine, int64_t coarse, int32_t c)
{
    snprintf(name, sizeof name, "sums of %lld in %lld, %d channels", (long long)fine,
        (long long)coarse, (int)c);
    struct cells s = make_cells(fine, coarse);
    float *x = random_features(fine * c, true);
    float *gx = device_features(x, fine * c, (fine + SLACK) * c);
    test_cells_sum(&s, c, x, gx);
    s.cpu.child = s.gpu.child = NULL;
    test_cells_sum(&s, c, x, gx);
    release(name);
}

/* Sums that depend on their order are the same bits in any capacity class. */
static void test_sums_in_room(int64_t fine, int64_t coarse, int32_t c)
{
    snprintf(name, sizeof name, "sums of %lld in %lld with room, %d channels", (long long)fine,
        (long long)coarse, (int)c);
    struct cells s = make_cells(fine, coarse);
    float *x = random_floats(fine * c, false);
    for (int64_t i = 0; i < fine * c; i++) x[i] = ldexpf(x[i], (int)random_below(80) - 40);
    float *gx = device_floats(x, fine * c, (fine + SLACK) * c);
    struct result r = make_result(NULL, coarse * c, (coarse + SLACK) * c, sizeof(float));
    s.gpu.coarse_rows.storage = PNET_STORE_F32;
    for (int turn = 0; turn < 2; turn++) {
        s.gpu.coarse_rows.most = turn ? 50 * coarse : coarse;
        pnet_cuda_cells_sum(&s.gpu, c, gx, true, false, r.device, NULL);
        collect(&r, turn, name);
    }
    release(name);
}

static void test_majority_of(
    const struct pnet_cells *cpu, const struct pnet_cells *gpu, int32_t classes)
{
    int64_t fine = cpu->fine_rows.most, coarse = cpu->coarse_rows.most;
    int32_t *label = random_labels(fine, classes);
    int32_t *want = host_bytes((size_t)coarse * sizeof *want);
    int32_t *on_device = device_ints(label, fine, fine + SLACK);
    struct result r = make_result(NULL, coarse, coarse + SLACK, sizeof(int32_t));
    void *work = device_work(pnet_cuda_cells_majority_work(gpu));
    pnet_cpu_cells_majority(cpu, label, want, host_bytes(pnet_cpu_cells_majority_work(cpu)));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_cells_majority(gpu, on_device, r.device, work);
        collect(&r, turn, name);
    }
    check_bytes(name, &r, want);
}

static void test_majority(int64_t fine, int64_t coarse, int32_t classes)
{
    snprintf(name, sizeof name, "majority %lld in %lld", (long long)fine, (long long)coarse);
    struct cells s = make_cells(fine, coarse);
    test_majority_of(&s.cpu, &s.gpu, classes);
    s.cpu.parent = s.cpu.child = s.gpu.parent = s.gpu.child = NULL; /* stretches of rows */
    test_majority_of(&s.cpu, &s.gpu, classes);
    release(name);
}

static void test_segments(int64_t rows, int32_t count, int32_t c)
{
    snprintf(name, sizeof name, "%d segments of %lld rows, %d channels", (int)count,
        (long long)rows, (int)c);
    int64_t *splits = host_bytes((size_t)(count + 1) * sizeof *splits);
    for (int32_t s = 0; s <= count; s++) /* small, empty and large ones */
        splits[s] = s == count ? rows : s == 0 ? 0 : s % 2 ? rows * s / count / 3 : splits[s - 1];
    struct pnet_segments cpu = {.rows = rows, .count = count, .splits = splits};
    struct pnet_segments gpu = cpu;
    gpu.storage = storage;
    gpu.rows = rows + SLACK;
    gpu.splits = device_offsets(splits, count + 1, count + 1);
    float *x = random_features(rows * c, true), *back;
    if (rows > 4) x[rows * c / 2] = NAN;
    float *gx = device_features(x, rows * c, (rows + SLACK) * c);
    void *work = device_work(pnet_cuda_segments_pool_work(gpu, c));
    void *cpu_work = host_bytes(pnet_cpu_segments_pool_work(cpu, c));
    float *want = host_bytes((size_t)count * (size_t)c * sizeof *want);
    int32_t *from = host_bytes((size_t)count * (size_t)c * sizeof *from);
    struct result y = make_features(NULL, count * c, count * c);
    struct result a = make_result(NULL, count * c, count * c, sizeof(int32_t));
    pnet_cpu_segments_max(cpu, c, x, want, from, cpu_work);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_segments_max(gpu, c, gx, y.device, a.device, work);
        collect(&y, turn, name);
        collect(&a, turn, name);
    }
    check_features(name, &y, want, 0);
    check_bytes(name, &a, from);
    if (rows > 4) x[rows * c / 2] = 1;
    put_features(gx, x, rows * c);
    for (int way = 0; way < 4; way++) {
        bool mean = way & 1, add = way & 2;
        want = random_features(count * c, false);
        y = make_features(want, count * c, count * c);
        float *g = random_features(count * c, false);
        float *on_device = device_features(g, count * c, count * c);
        pnet_cpu_segments_sum(cpu, c, x, mean, add, want, cpu_work);
        back = random_features(rows * c, false);
        struct result r = make_features(back, rows * c, (rows + SLACK) * c);
        pnet_cpu_segments_spread(cpu, c, g, mean, add, back);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_segments_sum(gpu, c, gx, mean, add, y.device, work);
            collect(&y, turn, name);
            pnet_cuda_segments_spread(gpu, c, on_device, mean, add, r.device);
            collect(&r, turn, name);
        }
        check_features(name, &y, want, BOUND);
        check_features(name, &r, back, BOUND);
        if (mean) continue;
        pnet_cpu_segments_max_backward(cpu, c, from, g, false, back);
        pnet_cuda_segments_max_backward(gpu, c, a.device, on_device, false, r.device);
        collect(&r, 0, name);
        check_features(name, &r, back, 0);
    }
    release(name);
}

static void test_interpolate(int64_t fine, int64_t coarse, int32_t k, int32_t c)
{
    snprintf(name, sizeof name, "%d nearest of %lld for %lld, %d channels", (int)k,
        (long long)coarse, (long long)fine, (int)c);
    int32_t *index = host_bytes((size_t)(fine * k) * sizeof *index);
    float *distance2 = host_bytes((size_t)(fine * k) * sizeof *distance2);
    for (int64_t at = 0; at < fine * k; at++) {
        bool none = random_below(8) == 0 || at / k == fine / 2;
        index[at] = none ? -1 : (int32_t)random_below(random_below(2) ? coarse : 1 + coarse / 8);
        distance2[at] = (float)random_below(1000) * 0.001f;
    }
    struct pnet_nearest cpu = {.fine_rows = pnet_count(fine),
        .coarse_rows = pnet_count(coarse),
        .k = k,
        .index = index,
        .distance2 = distance2};
    struct pnet_nearest gpu = {.fine_rows = device_count(fine, 1),
        .coarse_rows = device_count(coarse, 1),
        .k = k,
        .index = device_ints(index, fine * k, (fine + SLACK) * k),
        .distance2 = device_floats(distance2, fine * k, (fine + SLACK) * k)};
    float *x = random_features(coarse * c, false);
    float *gx = device_features(x, coarse * c, (coarse + SLACK) * c);
    float *want = host_bytes((size_t)(fine * c) * sizeof *want);
    struct result y = make_features(NULL, fine * c, (fine + SLACK) * c);
    pnet_cpu_interpolate(&cpu, c, x, want);
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_interpolate(&gpu, c, gx, y.device);
        collect(&y, turn, name);
    }
    check_features(name, &y, want, BOUND);
    void *work = device_work(pnet_cuda_interpolate_backward_work(&gpu, c));
    void *cpu_work = host_bytes(pnet_cpu_interpolate_backward_work(&cpu, c));
    round_to_storage(storage, want, fine * c);
    put_features(y.device, want, fine * c);
    for (int add = 0; add < 2; add++) {
        float *back = random_features(coarse * c, false);
        struct result r = make_features(back, coarse * c, (coarse + SLACK) * c);
        pnet_cpu_interpolate_backward(&cpu, c, want, add, back, cpu_work);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_interpolate_backward(&gpu, c, y.device, add, r.device, work);
            collect(&r, turn, name);
        }
        check_features(name, &r, back, BOUND);
    }
    release(name);
}

/* More than 2^31 elements: what is spread over the cells comes back as their sum. */
static void test_beyond_32_bits(void)
{
    enum { FINE = (1 << 22) + 1000, COARSE = 3, C = 512 };
    snprintf(name, sizeof name, "beyond 2^31 elements");
    struct cells s = make_cells(FINE, COARSE);
    float *x = random_floats(COARSE * C, false), *row = host_bytes(C * sizeof *row);
    float *want = host_bytes(COARSE * C * sizeof *want);
    float *gx = device_floats(x, COARSE * C, (COARSE + SLACK) * C);
    float *large = device_floats(NULL, 0, ((int64_t)FINE + SLACK) * C);
    struct result r = make_result(NULL, COARSE * C, (COARSE + SLACK) * C, sizeof(float));
    pnet_cuda_cells_spread(&s.gpu, C, gx, false, false, large);
    for (int turn = 0; turn < 100; turn++) {
        int64_t at = turn ? FINE - 1 - random_below(FINE / (turn % 2 ? 1 : 1000)) : FINE - 1;
        pnet_cuda_copy_out(row, large + at * C, C * sizeof *row);
        CHECKF(!memcmp(row, x + (int64_t)s.cpu.parent[at] * C, C * sizeof *row), "row %lld",
            (long long)at);
    }
    for (int64_t i = 0; i < COARSE * C; i++)
        want[i] = (float)((double)x[i] * (double)(s.cpu.start[i / C + 1] - s.cpu.start[i / C]));
    for (int turn = 0; turn < 2; turn++) {
        pnet_cuda_cells_sum(&s.gpu, C, large, false, false, r.device, NULL);
        collect(&r, turn, name);
    }
    check_floats(name, &r, want, BOUND);
    release(name);
}

static void test_all(bool small)
{
    static const int32_t channels[] = {1, 3, 20, 33, 64, 512};
    const int64_t many = small || storage != PNET_STORE_F32 ? 3000 : 100000;
    for (int i = small; i < 6; i += 1 + small) {
        int32_t c = channels[i];
        int64_t rows = c > 64 ? many / 5 : many;
        test_cells(0, 5, c);
        test_cells(1, 1, c);
        test_cells(5, 3, c);
        test_cells(1000, 200, c);
        test_cells(rows, rows / 11, c);
        test_segments(0, 3, c);
        test_segments(1, 1, c);
        test_segments(700, 5, c);
        test_segments(rows, 4, c);
        test_interpolate(1, 1, 1, c);
        test_interpolate(900, 100, 3, c);
        test_interpolate(rows, 1000, 5, c);
    }
    test_cells(9000, 1, 3); /* a long list */
    for (int32_t c = 1; c <= 4; c++) test_many_sums(small ? 30000 : 300000, 17001, c);
    test_interpolate(0, 4, 3, 6);
}

/* With an argument, or PNET_SHORT, only what a sanitizer gets through in seconds; every kernel is among it. */
int main(int argc, char **argv)
{
    const char *why;
    const bool small = getenv("PNET_SHORT") || (argc > 1 && !strcmp(argv[1], "small"));
    const int64_t many = small ? 3000 : 100000;
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    for (int s = PNET_STORE_FP16; s >= PNET_STORE_F32; s--) {
        storage = (enum pnet_storage)s;
        test_all(small);
    }
    for (int32_t c = 1; c <= 3; c++) {
        test_sums_in_room(9000, 1000, c);
        test_sums_in_room(30000, 400, c);
    }
    test_majority(0, 5, 4);
    test_majority(1, 1, 4);
    test_majority(1000, 170, 5);
    test_majority(many, 7, 40);
    test_majority(many, many / 3, 4);
    struct pnet_cuda_info info;
    if (!small && !pnet_cuda_describe(0, &info) && info.free_memory > (size_t)12 << 30)
        test_beyond_32_bits();
    return check_end();
}
#endif
