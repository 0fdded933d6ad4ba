/* Dense products, their gradients and column sums on the GPU, of features in every storage, against their definitions in
   double. */
#include "tests/check.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/conv.h"
#include "kernels/cuda/base/cuda.h"
#include "tests/cuda/feature_case.h"
#include "tests/kernels/product_case.h"

/* Rows bound on the host are more than there are. */
static struct pnet_count device_count(int64_t n, enum pnet_storage storage)
{
    return (struct pnet_count){n + SPARE_ROWS, device_copy(&n, sizeof n), 1, storage};
}

/* Does a precision go with features that are stored like that? */
static bool goes_with(int precision, enum pnet_storage storage)
{
    return storage == PNET_STORE_F32 || storage == pnet_storage_of((enum pnet_precision)precision);
}

/* Random features as they are left by the storage. */
static float *stored_floats(enum pnet_storage storage, size_t n, uint64_t seed)
{
    float *x = conv_random_floats(n, seed);
    round_to_storage(storage, x, (int64_t)n);
    return x;
}

typedef void gemm_kernel(const struct pnet_gemm *g, void *work);

/* As rows are few or many, and as if they were many. */
static gemm_kernel *const gemm_kernels[] = {pnet_cuda_gemm, pnet_cuda_gemm_whole};

/* What one product leaves in the rows that there are. */
static float *run_gemm(gemm_kernel *kernel, struct pnet_gemm g, const float *old, size_t y_size)
{
    size_t spare = SPARE_ROWS * (size_t)g.cout;
    g.y = g.add ? device_features(g.storage, old, y_size, spare)
                : device_alloc(storage_bytes(g.storage, (int64_t)(y_size + spare)));
    struct device_work work = device_work(pnet_cuda_gemm_work(g.n, g.cin, g.cout, g.precision));
    kernel(&g, work.memory);
    float *y = host_features(g.storage, g.y, y_size);
    device_work_end(&work, __func__);
    device_free(g.y);
    return y;
}

static void check_gemm(struct product p, enum pnet_storage storage, bool transposed, bool add,
    bool with_bias, enum pnet_activation act)
{
    size_t x_size = (size_t)p.n * (size_t)p.cin, y_size = (size_t)p.n * (size_t)p.cout,
           w_size = (size_t)p.cin * (size_t)p.cout;
    float *x = stored_floats(storage, x_size, 1), *w = conv_random_floats(w_size, 2);
    float *bias = conv_random_floats((size_t)p.cout, 3), *old = stored_floats(storage, y_size, 4);
    double *want =
        product_gemm(p, x, w, transposed, with_bias ? bias : NULL, add ? old : NULL, act);
    struct pnet_gemm g = {.n = device_count(p.n, storage),
        .cin = p.cin,
        .cout = p.cout,
        .x = device_features(storage, x, x_size, SPARE_ROWS * (size_t)p.cin),
        .w = device_floats(w, w_size),
        .bias = with_bias ? device_floats(bias, (size_t)p.cout) : NULL,
        .transposed = transposed,
        .add = add,
        .act = act,
        .slope = 0.25f,
        .storage = storage};
    for (int i = 0; i < 2 * PRECISIONS; i++) {
        int k = i / 2;
        if (!goes_with(k, storage)) continue;
        g.precision = (enum pnet_precision)k;
        float *y = run_gemm(gemm_kernels[i % 2], g, old, y_size);
        double error = conv_error(y, want, y_size);
        CHECKF(error <= tolerance[k], "%s gemm %lld x %d x %d, storage %s: error %g",
            precision_name[k], (long long)p.n, p.cin, p.cout, storage_names[storage], error);
        free(y);
    }
    device_free(g.x), device_free(g.w), device_free(g.bias), device_free(g.n.live);
    free(x), free(w), free(bias), free(old), free(want);
}

/* gw, twice: the bits must be the same. */
static float *run_outer(struct pnet_outer o, const float *old, size_t size)
{
    float *gw[2];
    for (int i = 0; i < 2; i++) {
        o.gw = o.add ? device_floats(old, size) : device_alloc(size * sizeof(float));
        struct device_work work =
            device_work(pnet_cuda_outer_work(o.n, o.cin, o.cout, o.precision));
        pnet_cuda_outer(&o, work.memory);
        gw[i] = host_floats(o.gw, size);
        device_work_end(&work, __func__);
        device_free(o.gw);
    }
    CHECKF(memcmp(gw[0], gw[1], size * sizeof(float)) == 0, "outer: a second run differs");
    free(gw[1]);
    return gw[0];
}

/* Rounding of sums alone: operands that are stored in 16 bits are multiplied as they are. */
static const double sums_error = 1e-4;

static void check_outer(struct product p, enum pnet_storage storage, bool transposed, bool add)
{
    size_t size = (size_t)p.cin * (size_t)p.cout;
    size_t x_size = (size_t)p.n * (size_t)p.cin, g_size = (size_t)p.n * (size_t)p.cout;
    float *x = stored_floats(storage, x_size, 5), *g = stored_floats(storage, g_size, 6),
          *old = conv_random_floats(size, 7);
    double *want = product_outer(p, x, g, transposed, add ? old : NULL);
    struct pnet_outer o = {.n = device_count(p.n, PNET_STORE_F32),
        .cin = p.cin,
        .cout = p.cout,
        .x = device_features(storage, x, x_size, SPARE_ROWS * (size_t)p.cin),
        .g = device_features(storage, g, g_size, SPARE_ROWS * (size_t)p.cout),
        .transposed = transposed,
        .add = add,
        .storage = storage};
    for (int k = 0; k < PRECISIONS; k++) {
        if (!goes_with(k, storage)) continue;
        o.precision = (enum pnet_precision)k;
        float *gw = run_outer(o, old, size);
        double error = conv_error(gw, want, size);
        CHECKF(error <= (storage == PNET_STORE_F32 ? tolerance[k] : sums_error),
            "%s outer %lld x %d x %d, storage %s: error %g", precision_name[k], (long long)p.n,
            p.cin, p.cout, storage_names[storage], error);
        free(gw);
    }
    device_free(o.x), device_free(o.g), device_free(o.n.live);
    free(x), free(g), free(old), free(want);
}

/* Sums of many rows, in fp32, whose errors would add up in one float32. A few rows of gw are compared: the others are summed
   alike. */
static void check_long_outer(void)
{
    enum { ROWS = 65536, CHANNELS = 1536, SEEN = 3 };
    static const int32_t seen[SEEN] = {0, 701, CHANNELS - 1};
    size_t size = (size_t)ROWS * CHANNELS;
    float *x = conv_random_floats(size, 10), *g = conv_random_floats(size, 11),
          *some = conv_alloc((size_t)ROWS * SEEN * sizeof *some);
    for (int64_t i = 0; i < ROWS; i++)
        for (int a = 0; a < SEEN; a++) some[i * SEEN + a] = x[i * CHANNELS + seen[a]];
    double *want = product_outer((struct product){ROWS, SEEN, CHANNELS}, some, g, false, NULL);
    struct pnet_outer o = {.n = device_count(ROWS, PNET_STORE_F32),
        .cin = CHANNELS,
        .cout = CHANNELS,
        .x = device_floats(x, size),
        .g = device_floats(g, size),
        .precision = PNET_FP32};
    float *gw = run_outer(o, NULL, (size_t)CHANNELS * CHANNELS);
    for (int a = 0; a < SEEN; a++) {
        double error = conv_error(gw + seen[a] * CHANNELS, want + a * CHANNELS, CHANNELS);
        CHECKF(error <= 1e-6, "outer of %d rows, row %d: error %g", ROWS, seen[a], error);
    }
    device_free(o.x), device_free(o.g), device_free(o.n.live);
    free(x), free(g), free(some), free(want), free(gw);
}

/* Features that begin at an address of their own size alone: no wider access fits. */
static void check_unaligned_outer(enum pnet_storage storage)
{
    struct product p = {20011, 64, 128};
    size_t x_size = (size_t)p.n * 64, g_size = (size_t)p.n * 128, size = 64 * 128,
           one = storage_bytes(storage, 1);
    float *x = stored_floats(storage, x_size + 1, 12), *g = stored_floats(storage, g_size + 1, 13);
    double *want = product_outer(p, x + 1, g + 1, false, NULL);
    const char *x_there = (const char *)device_features(storage, x, x_size + 1, 0),
               *g_there = (const char *)device_features(storage, g, g_size + 1, 0);
    struct pnet_outer o = {.n = {p.n, device_copy(&p.n, sizeof p.n), 1, PNET_STORE_F32},
        .cin = p.cin,
        .cout = p.cout,
        .x = (const void *)(x_there + one),
        .g = (const void *)(g_there + one),
        .storage = storage};
    for (int k = 0; k < PRECISIONS; k++) {
        if (!goes_with(k, storage)) continue;
        o.precision = (enum pnet_precision)k;
        float *gw = run_outer(o, NULL, size);
        double error = conv_error(gw, want, size);
        CHECKF(error <= (storage == PNET_STORE_F32 ? tolerance[k] : sums_error),
            "%s outer of features at odd addresses, storage %s: error %g", precision_name[k],
            storage_names[storage], error);
        free(gw);
    }
    device_free(x_there), device_free(g_there), device_free(o.n.live);
    free(x), free(g), free(want);
}

static void check_column_sum(int64_t n, int32_t c, enum pnet_storage storage, bool add)
{
    size_t size = (size_t)n * (size_t)c;
    float *x = stored_floats(storage, size, 8), *old = conv_random_floats((size_t)c, 9);
    double *want = conv_widen(old, (size_t)c);
    for (int32_t i = 0; i < c && !add; i++) want[i] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int32_t i = 0; i < c; i++) want[i] += (double)x[r * c + i];
    struct pnet_count count = device_count(n, storage);
    float *from = device_features(storage, x, size, SPARE_ROWS * (size_t)c),
          *to = device_floats(old, (size_t)c);
    struct device_work work = device_work(pnet_cuda_column_sum_work(count, c));
    pnet_cuda_column_sum(count, c, from, add, to, work.memory);
    float *sum = host_floats(to, (size_t)c);
    double error = conv_error(sum, want, (size_t)c);
    CHECKF(error <= tolerance[PNET_FP32], "column sum %lld x %d, storage %s: error %g",
        (long long)n, c, storage_names[storage], error);
    device_work_end(&work, __func__);
    device_free(from), device_free(to), device_free(count.live);
    free(sum), free(x), free(old), free(want);
}

static void check_dense(enum pnet_storage storage)
{
    static const struct product products[] = {{0, 4, 5}, {1, 1, 1}, {1, 512, 40}, {7, 3, 20},
        {13, 20, 3}, {64, 64, 64}, {257, 33, 129}, {100, 130, 17}, {600, 128, 128}, {40, 700, 300},
        {3000, 16, 1}, {2500, 1, 16}, {5000, 68, 36}};
    for (size_t p = 0; p < sizeof products / sizeof *products; p++) {
        check_gemm(products[p], storage, false, false, true, PNET_ACT_NONE);
        check_gemm(products[p], storage, true, false, true, PNET_ACT_RELU);
        check_gemm(products[p], storage, true, true, false, PNET_ACT_NONE);
        check_gemm(products[p], storage, false, false, false, PNET_ACT_LEAKY);
        check_outer(products[p], storage, false, false);
        check_outer(products[p], storage, true, true);
    }
    /* several batches a block of threads, more than are on their way at once, of every depth; several tiles;
       more input channels than a block of threads keeps weights of */
    static const struct product many[] = {{140003, 32, 8}, {80001, 72, 5}, {60011, 136, 8},
        {40000, 200, 8}, {17003, 96, 13}, {17003, 13, 96}, {129, 127, 99}, {1001, 256, 200},
        {1, 264, 8}, {257, 264, 72}, {128, 512, 64}, {1000, 1000, 136}, {300, 2048, 256}};
    for (size_t p = 0; p < sizeof many / sizeof *many; p++) {
        check_gemm(many[p], storage, true, false, true, PNET_ACT_LEAKY);
        check_gemm(many[p], storage, false, true, false, PNET_ACT_NONE);
    }
    /* more shares than one, of more rows than are summed at once */
    static const struct product outers[] = {{20011, 128, 96}, {40000, 64, 32}, {150000, 8, 24},
        {150001, 3, 5}, {9000, 260, 72}, {20011, 96, 13}, {20011, 20, 96}, {5003, 127, 126},
        {70000, 63, 65}, {3000, 132, 136}};
    for (size_t p = 0; p < sizeof outers / sizeof *outers; p++) {
        check_outer(outers[p], storage, false, true);
        check_outer(outers[p], storage, true, false);
    }
    check_unaligned_outer(storage);
    if (storage == PNET_STORE_F32) check_long_outer();
    static const int64_t rows[] = {0, 1, 256, 257, 16384, 50000, 200000};
    static const int32_t columns[] = {1, 3, 64, 65, 200};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            if (storage != PNET_STORE_F32 && rows[r] > 50000) continue; /* the same sums */
            check_column_sum(rows[r], columns[c], storage, false);
            check_column_sum(rows[r], columns[c], storage, true);
        }
    }
}

/* A few sizes, for tools that watch each access. */
static void check_some(enum pnet_storage storage)
{
    check_gemm((struct product){257, 33, 129}, storage, true, false, true, PNET_ACT_RELU);
    check_gemm((struct product){257, 64, 96}, storage, false, true, false, PNET_ACT_NONE);
    check_gemm((struct product){17003, 96, 13}, storage, true, false, true, PNET_ACT_NONE);
    check_gemm((struct product){1003, 13, 96}, storage, false, true, false, PNET_ACT_NONE);
    check_gemm((struct product){300, 127, 20}, storage, false, true, true, PNET_ACT_NONE);
    check_gemm((struct product){301, 200, 136}, storage, true, false, true, PNET_ACT_RELU);
    check_gemm((struct product){301, 328, 72}, storage, true, false, true, PNET_ACT_RELU);
    check_gemm((struct product){130, 512, 136}, storage, false, true, false, PNET_ACT_NONE);
    check_outer((struct product){257, 33, 129}, storage, true, true);
    check_outer((struct product){257, 64, 96}, storage, false, false);
    check_outer((struct product){18001, 96, 13}, storage, true, false);
    check_outer((struct product){1003, 127, 20}, storage, false, true);
    check_unaligned_outer(storage);
    check_column_sum(1000, 65, storage, true);
}

int main(void)
{
    const char *why = NULL;
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    for (int s = PNET_STORE_F32; s <= PNET_STORE_FP16; s++)
        getenv("PNET_SHORT") ? check_some((enum pnet_storage)s) : check_dense((enum pnet_storage)s);
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    return check_end();
}
#else
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#endif
