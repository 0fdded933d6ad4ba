/* One convolution layer of 32 channels on as many points as asked for: PNET_HUGE=100000000 (2,000,000 otherwise). Levels,
   triplets, product and gradient on the GPU; rows all over the result against a sum in double, those beyond element 2^31
   among them. Points, features and gradients are functions of their number, so that nothing large is kept on the host. */
#include "kernels/conv.h"
#include "kernels/rows.h"
#include "kernels/geometry_stage.h"
#include "kernels/philox.h"
#include "runtime/device/device.h"
#include "tests/check.h"

#ifdef PNET_CUDA_BUILT

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHANNELS = 32, KERNEL = 3, CELLS = KERNEL * KERNEL * KERNEL, PROBES = 3000 };

static const struct pnet_device gpu = {PNET_CUDA, 0};

static void must(enum pnet_status st, const struct pnet_error *e)
{
    if (!st) return;
    fprintf(stderr, "%s\n", e->message);
    exit(1);
}

static void *take(size_t bytes)
{
    void *p = pnet_device_alloc(gpu, bytes + 64);
    if (p) return p;
    fprintf(stderr, "the GPU has no %zu bytes more\n", bytes);
    exit(1);
}

static uint32_t scramble(uint64_t i, uint64_t purpose)
{
    i = (i + purpose * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 31) * 0x94d049bb133111ebu;
    return (uint32_t)(i >> 32);
}

static float number(uint64_t i, uint64_t purpose)
{
    return (float)(scramble(i, purpose) >> 8) * 0x1p-24f - 0.5f;
}

/* Floors of 20 by 20 metres above each other, 4 million points each: some 13 points within 2 cm. */
static void point(uint64_t i, float xyz[3])
{
    xyz[0] = 10 + 20 * number(i, 1);
    xyz[1] = 10 + 20 * number(i, 2);
    xyz[2] = 3 * (float)(i / 4000000) + 0.01f * number(i, 3);
}

/* `count` floats of the device, made by chunks: of points where purpose is 0. */
static void fill(float *to, int64_t count, uint64_t purpose)
{
    enum { CHUNK = 12 << 20 };
    float *chunk = malloc(CHUNK * sizeof *chunk);
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = count - at < CHUNK ? count - at : CHUNK;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < n; i++) {
            if (purpose) {
                chunk[i] = number((uint64_t)(at + i), purpose);
            } else if (i % 3 == 0) {
                point((uint64_t)(at + i) / 3, &chunk[i]);
            }
        }
        struct pnet_error e;
        pnet_device_put(gpu, to + at, chunk, (size_t)n * sizeof *chunk);
        must(pnet_device_wait(gpu, &e), &e);
    }
    free(chunk);
}

static double seconds(void)
{
    struct timespec t;
    struct pnet_error e;
    must(pnet_device_wait(gpu, &e), &e);
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct pnet_level make_level(int64_t rows, int64_t *splits)
{
    struct pnet_grid grid = {0.02f, (float)(1 / 0.02), 1};
    float *raw = take((size_t)rows * 12), *xyz = take((size_t)rows * 12);
    uint64_t *key = take((size_t)rows * 8);
    int32_t *order = take((size_t)rows * 4);
    void *work = take(pnet_cuda_order_points_work(rows));
    const int64_t ends[2] = {0, rows};
    fill(raw, 3 * rows, 0);
    pnet_device_put(gpu, splits, ends, sizeof ends);
    double begin = seconds();
    CHECK(pnet_cuda_order_points(rows, 1, splits, raw, grid, order, xyz, work) == 0);
    pnet_cuda_gather(rows, 3, raw, order, xyz);
    pnet_cuda_keys(rows, xyz, grid, key);
    printf("level of %lld points: %.1f ms\n", (long long)rows, 1e3 * (seconds() - begin));
    pnet_device_free(gpu, raw);
    pnet_device_free(gpu, order);
    pnet_device_free(gpu, work);
    return (struct pnet_level){rows, 1, splits, xyz, key, grid};
}

static struct pnet_triplets make_triplets(const struct pnet_level *l)
{
    struct pnet_neighbourhood nb = {.kernel = KERNEL, .radius = 0.02f, .shape = PNET_BALL};
    int64_t *start = take((size_t)(l->rows + 1) * 8);
    void *work = take(pnet_cuda_triplets_work(l, l, &nb));
    double begin = seconds();
    int64_t count = pnet_cuda_triplets_count(l, l, &nb, NULL, start, work);
    int32_t *other = take((size_t)count * 4);
    uint16_t *cell = take((size_t)count * 2);
    pnet_cuda_triplets_write(l, l, &nb, NULL, start, other, cell, work);
    printf("%lld triplets: %.1f ms\n", (long long)count, 1e3 * (seconds() - begin));
    pnet_device_free(gpu, work);
    return (struct pnet_triplets){.rows = l->rows,
        .others = l->rows,
        .count = count,
        .cells = CELLS,
        .start = start,
        .other = other,
        .cell = cell};
}

/* One row of the product in double, from the triplets of the device. */
static void reference(const struct pnet_triplets *t, int64_t row, const float *weight, double *want)
{
    int64_t ends[2];
    pnet_device_get(gpu, ends, t->start + row, sizeof ends);
    size_t n = (size_t)(ends[1] - ends[0]);
    int32_t *other = malloc(n * sizeof *other + 1);
    uint16_t *cell = malloc(n * sizeof *cell + 1);
    pnet_device_get(gpu, other, t->other + ends[0], n * sizeof *other);
    pnet_device_get(gpu, cell, t->cell + ends[0], n * sizeof *cell);
    memset(want, 0, CHANNELS * sizeof *want);
    for (size_t m = 0; m < n; m++)
        for (int c = 0; c < CHANNELS; c++) {
            double f = (double)number((uint64_t)other[m] * CHANNELS + (uint64_t)c, 4);
            for (int o = 0; o < CHANNELS; o++)
                want[o] += f * (double)weight[(cell[m] * CHANNELS + c) * CHANNELS + o];
        }
    free(other);
    free(cell);
}

static void check_rows(const struct pnet_triplets *t, const float *weight, const float *out)
{
    double error = 0, size = 0;
    for (int64_t p = 0; p < PROBES; p++) {
        int64_t row = (int64_t)((double)(t->rows - 1) * (double)p / (PROBES - 1));
        double want[CHANNELS];
        float got[CHANNELS];
        reference(t, row, weight, want);
        pnet_device_get(gpu, got, out + row * CHANNELS, sizeof got);
        for (int o = 0; o < CHANNELS; o++) {
            error += ((double)got[o] - want[o]) * ((double)got[o] - want[o]);
            size += want[o] * want[o];
        }
    }
    CHECKF(size > 0 && sqrt(error / size) < 1e-6, "off by %g", sqrt(error / size));
    printf("%d rows checked, relative error %.1e, largest element %lld\n", PROBES,
        sqrt(error / size), (long long)(t->rows * CHANNELS));
}

static void run(int64_t rows)
{
    struct pnet_conv_shape shape = {CHANNELS, CHANNELS, 1};
    int64_t *splits = take(16);
    struct pnet_level level = make_level(rows, splits);
    struct pnet_triplets t = make_triplets(&level);
    float weight[CELLS * CHANNELS * CHANNELS];
    for (int i = 0; i < CELLS * CHANNELS * CHANNELS; i++) weight[i] = number((uint64_t)i, 5);
    float *in = take((size_t)rows * CHANNELS * 4), *out = take((size_t)rows * CHANNELS * 4),
          *w = take(sizeof weight), *gw = take(sizeof weight);
    size_t mvmr = pnet_cuda_mvmr_work(&t, shape, PNET_FP32),
           vvor = pnet_cuda_vvor_work(&t, shape, PNET_FP32);
    void *work = take(mvmr > vvor ? mvmr : vvor);
    fill(in, rows * CHANNELS, 4);
    pnet_device_put(gpu, w, weight, sizeof weight);
    pnet_device_fill(gpu, out, 0xff, (size_t)rows * CHANNELS * 4);
    double begin = seconds();
    pnet_cuda_mvmr(
        &(struct pnet_mvmr){.triplets = &t, .shape = shape, .in = in, .weight = w, .out = out},
        work);
    printf("forward: %.1f ms\n", 1e3 * (seconds() - begin));
    check_rows(&t, weight, out);
    begin = seconds();
    pnet_cuda_vvor(
        &(struct pnet_vvor){.triplets = &t, .shape = shape, .in = in, .gout = out, .gweight = gw},
        work);
    printf("weight gradient: %.1f ms\n", 1e3 * (seconds() - begin));
    pnet_device_get(gpu, weight, gw, sizeof weight);
    double sum = 0;
    for (int i = 0; i < CELLS * CHANNELS * CHANNELS; i++) sum += fabs((double)weight[i]);
    CHECKF(isfinite(sum) && sum > 0, "the weight gradient sums to %g", sum);
    void *all[] = {splits, (void *)(uintptr_t)level.xyz, (void *)(uintptr_t)level.key,
        (void *)(uintptr_t)t.start, (void *)(uintptr_t)t.other, (void *)(uintptr_t)t.cell, in, out,
        w, gw, work};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pnet_device_free(gpu, all[i]);
}

int main(void)
{
    struct pnet_error e;
    const char *huge = getenv("PNET_HUGE");
    if (pnet_device_check(gpu, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    must(pnet_device_enter(gpu, &e), &e);
    run(huge ? atoll(huge) : getenv("PNET_SHORT") ? 20000 : 2000000);
    return check_end();
}
#else
int main(void)
{
    fprintf(stderr, "skipped: built without the CUDA backend\n");
    return 77;
}
#endif
