/* Dense products between few channels in float32 and features in 16 bits on a GPU: against their definitions in double, the same
   bits each time and for any capacity, nothing written behind the rows that are there. */
#include "tests/check.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/conv.h"
#include "kernels/cuda/base/cuda.h"
#include "tests/cuda/feature_case.h"
#include "tests/kernels/product_case.h"

#include <time.h>

static char what[160];

static struct pnet_count device_count(int64_t n, int64_t spare, enum pnet_storage storage)
{
    return (struct pnet_count){n + spare, device_copy(&n, sizeof n), 1, storage};
}

static float *stored_floats(enum pnet_storage storage, size_t n, uint64_t seed)
{
    float *x = conv_random_floats(n, seed);
    round_to_storage(storage, x, (int64_t)n);
    return x;
}

/* Bytes behind those of a result are as they were. */
static void check_untouched(const void *from, size_t bytes, size_t all)
{
    unsigned char *behind = conv_alloc(all - bytes);
    bool whole = true;
    pnet_cuda_copy_out(behind, (const unsigned char *)from + bytes, all - bytes);
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    for (size_t i = 0; i < all - bytes; i++) whole &= behind[i] == 0xFF;
    CHECKF(whole, "%s: written behind the rows that are there", what);
    free(behind);
}

/* The result of a product whose count, x and w are set, with room for `spare` rows more. */
static float *run_gemm(struct pnet_gemm g, const float *old, int64_t n, size_t spare)
{
    enum pnet_storage storage = g.exact_y ? PNET_STORE_F32 : g.storage;
    size_t size = (size_t)n * (size_t)g.cout, more = spare * (size_t)g.cout,
           bytes = storage_bytes(storage, (int64_t)size);
    g.y = g.add ? device_features(storage, old, size, more)
                : device_alloc(storage_bytes(storage, (int64_t)(size + more)));
    pnet_cuda_gemm(&g, NULL);
    float *y = host_features(storage, g.y, size);
    check_untouched(g.y, bytes, storage_bytes(storage, (int64_t)(size + more)));
    device_free(g.y);
    return y;
}

/* `exact_x`: the matrix that is multiplied is float32, and the result is not; else the other way round. */
static void check_gemm(
    struct product p, enum pnet_storage storage, bool exact_x, bool transposed, bool add, int act)
{
    enum pnet_storage of_x = exact_x ? PNET_STORE_F32 : storage,
                      of_y = exact_x ? storage : PNET_STORE_F32;
    size_t x_size = (size_t)p.n * (size_t)p.cin, y_size = (size_t)p.n * (size_t)p.cout;
    float *x = stored_floats(of_x, x_size, 1), *old = stored_floats(of_y, y_size, 4),
          *w = conv_random_floats((size_t)p.cin * (size_t)p.cout, 2),
          *bias = conv_random_floats((size_t)p.cout, 3);
    bool with_bias = act != PNET_ACT_NONE || !add;
    double *want = product_gemm(
        p, x, w, transposed, with_bias ? bias : NULL, add ? old : NULL, (enum pnet_activation)act);
    snprintf(what, sizeof what, "gemm %lld x %d x %d, %s, exact %s, transposed %d, add %d, act %d",
        (long long)p.n, p.cin, p.cout, storage_names[storage], exact_x ? "x" : "y", transposed, add,
        act);
    struct pnet_gemm g = {.cin = p.cin,
        .cout = p.cout,
        .x = device_features(of_x, x, x_size, SPARE_ROWS * (size_t)p.cin),
        .w = device_floats(w, (size_t)p.cin * (size_t)p.cout),
        .bias = with_bias ? device_floats(bias, (size_t)p.cout) : NULL,
        .transposed = transposed,
        .add = add,
        .act = (enum pnet_activation)act,
        .slope = 0.25f,
        .precision = storage == PNET_STORE_BF16 ? PNET_BF16 : PNET_FP16,
        .storage = storage,
        .exact_x = exact_x,
        .exact_y = !exact_x};
    float *first = NULL;
    for (int turn = 0; turn < 2; turn++) {
        int64_t spare = turn * SPARE_ROWS;
        g.n = device_count(p.n, spare, storage);
        float *y = run_gemm(g, old, p.n, (size_t)spare);
        double error = conv_error(y, want, y_size);
        CHECKF(error <= (exact_x ? tolerance[g.precision] : tolerance[PNET_FP32]), "%s: error %g",
            what, error);
        CHECKF(!first || memcmp(first, y, y_size * sizeof *y) == 0,
            "%s: other bits with more capacity", what);
        free(first);
        first = y;
        device_free(g.n.live);
    }
    device_free(g.x), device_free(g.w), device_free(g.bias);
    free(first), free(x), free(w), free(bias), free(old), free(want);
}

static void check_outer(struct product p, enum pnet_storage storage, bool transposed, bool add)
{
    size_t x_size = (size_t)p.n * (size_t)p.cin, g_size = (size_t)p.n * (size_t)p.cout,
           size = (size_t)p.cin * (size_t)p.cout;
    float *x = stored_floats(storage, x_size, 5), *g = conv_random_floats(g_size, 6),
          *old = conv_random_floats(size, 7), *first = NULL;
    double *want = product_outer(p, x, g, transposed, add ? old : NULL);
    snprintf(what, sizeof what, "outer %lld x %d x %d, %s, transposed %d, add %d", (long long)p.n,
        p.cin, p.cout, storage_names[storage], transposed, add);
    struct pnet_outer o = {.cin = p.cin,
        .cout = p.cout,
        .x = device_features(storage, x, x_size, SPARE_ROWS * (size_t)p.cin),
        .g = device_features(PNET_STORE_F32, g, g_size, SPARE_ROWS * (size_t)p.cout),
        .transposed = transposed,
        .add = add,
        .precision = storage == PNET_STORE_BF16 ? PNET_BF16 : PNET_FP16,
        .storage = storage,
        .exact_g = true};
    for (int turn = 0; turn < 2; turn++) {
        o.n = device_count(p.n, turn * 200, PNET_STORE_F32);
        o.gw = add ? device_floats(old, size) : device_alloc(size * sizeof *o.gw);
        struct device_work work =
            device_work(pnet_cuda_outer_work(o.n, o.cin, o.cout, o.precision));
        pnet_cuda_outer(&o, work.memory);
        float *gw = host_floats(o.gw, size);
        double error = conv_error(gw, want, size);
        CHECKF(error <= tolerance[PNET_FP32], "%s: error %g", what, error);
        CHECKF(!first || memcmp(first, gw, size * sizeof *gw) == 0,
            "%s: other bits with more capacity", what);
        device_work_end(&work, what);
        free(first);
        first = gw;
        device_free(o.gw), device_free(o.n.live);
    }
    device_free(o.x), device_free(o.g);
    free(first), free(x), free(g), free(old), free(want);
}

/* Forward and both gradients of a layer from `wide` to `slim` channels. */
static void check_layer(int64_t n, int32_t wide, int32_t slim, enum pnet_storage storage)
{
    struct product there = {n, wide, slim}, back = {n, slim, wide};
    check_gemm(there, storage, false, true, false, PNET_ACT_NONE);
    check_gemm(there, storage, false, false, false, PNET_ACT_LEAKY);
    check_gemm(there, storage, false, true, true, PNET_ACT_NONE);
    check_gemm(back, storage, true, false, false, PNET_ACT_NONE);
    check_gemm(back, storage, true, true, true, PNET_ACT_NONE);
    check_gemm(back, storage, true, false, false, PNET_ACT_RELU);
    check_outer(there, storage, true, false);
    check_outer(there, storage, false, true);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The mean time of a replay in which each product is launched ten times. */
static double time_ms(const struct pnet_gemm *g, const struct pnet_outer *o, void *work)
{
    enum { LAUNCHES = 10, REPLAYS = 10 };
    pnet_cuda_sync();
    pnet_cuda_record_begin();
    for (int i = 0; i < LAUNCHES; i++)
        if (g)
            pnet_cuda_gemm(g, work);
        else
            pnet_cuda_outer(o, work);
    void *recording = pnet_cuda_record_end();
    CHECKF(recording, "%s", pnet_cuda_error());
    if (!recording) return 0;
    double begin = 0;
    for (int i = -1; i < REPLAYS; i++) {
        if (i == 0) {
            pnet_cuda_sync();
            begin = now();
        }
        pnet_cuda_replay(recording);
    }
    pnet_cuda_sync();
    double ms = (now() - begin) * 1e3 / (LAUNCHES * REPLAYS);
    pnet_cuda_record_free(recording);
    return ms;
}

/* A linear layer from 512 channels to coordinates, of 32 samples with 16,384 points. */
static void print_times(void)
{
    enum { N = 32 * 16384, WIDE = 512, SLIM = 3 };
    float *features = device_alloc((size_t)N * WIDE * 2),
          *spread = device_alloc((size_t)N * WIDE * 2),
          *coordinates = device_alloc((size_t)N * SLIM * sizeof(float)),
          *weight = device_alloc((size_t)WIDE * SLIM * sizeof(float));
    pnet_cuda_fill_bytes(features, 0, (size_t)N * WIDE * 2);
    pnet_cuda_fill_bytes(coordinates, 0, (size_t)N * SLIM * sizeof(float));
    pnet_cuda_fill_bytes(weight, 0, (size_t)WIDE * SLIM * sizeof(float));
    struct pnet_gemm to = {.n = pnet_count(N),
                         .cin = WIDE,
                         .cout = SLIM,
                         .x = features,
                         .w = weight,
                         .y = coordinates,
                         .transposed = true,
                         .precision = PNET_BF16,
                         .storage = PNET_STORE_BF16,
                         .exact_y = true},
                     from = {.n = pnet_count(N),
                         .cin = SLIM,
                         .cout = WIDE,
                         .x = coordinates,
                         .w = weight,
                         .y = spread,
                         .precision = PNET_BF16,
                         .storage = PNET_STORE_BF16,
                         .exact_x = true};
    struct pnet_outer o = {.n = pnet_count(N),
        .cin = WIDE,
        .cout = SLIM,
        .x = features,
        .g = coordinates,
        .gw = weight,
        .transposed = true,
        .precision = PNET_BF16,
        .storage = PNET_STORE_BF16,
        .exact_g = true};
    size_t bytes = pnet_cuda_outer_work(o.n, o.cin, o.cout, o.precision);
    void *work = device_alloc(bytes);
    double forward = time_ms(&to, NULL, work), dx = time_ms(&from, NULL, work),
           dw = time_ms(NULL, &o, work), gigabytes = (double)N * WIDE * 2 * 1e-9;
    printf(
        "%d x %d to %d channels, bf16, %.2f GB of features: forward %.3f ms (%.2f TB/s), dX %.3f "
        "ms (%.2f TB/s), dW %.3f ms (%.2f TB/s), workspace of dW %.1f MiB\n",
        N, WIDE, SLIM, gigabytes, forward, gigabytes / forward, dx, gigabytes / dx, dw,
        gigabytes / dw, (double)bytes / 1048576);
    device_free(features), device_free(spread), device_free(coordinates), device_free(weight),
        device_free(work);
}

/* With the argument `time` times alone. PNET_SHORT: a few sizes, for tools that watch each access. */
int main(int argc, char **argv)
{
    const char *why = NULL;
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (argc > 1 && strcmp(argv[1], "time") == 0) {
        print_times();
        return check_end();
    }
    /* every width of reads, every number of channels; weights that do not all fit shared memory; several turns of a block */
    static const struct product layers[] = {{0, 8, 3}, {1, 1, 1}, {1, 512, 3}, {5, 24, 2},
        {63, 512, 8}, {64, 40, 4}, {65, 36, 3}, {300, 33, 5}, {257, 3, 3}, {1003, 264, 7},
        {300, 2056, 3}, {77, 1030, 6}, {20011, 64, 3}, {9001, 512, 3}, {40003, 20, 2},
        {70001, 8, 1}};
    const size_t count = getenv("PNET_SHORT") ? 11 : sizeof layers / sizeof *layers;
    for (int s = PNET_STORE_BF16; s <= PNET_STORE_FP16; s++)
        for (size_t i = 0; i < count; i++)
            check_layer(layers[i].n, layers[i].cin, layers[i].cout, (enum pnet_storage)s);
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
