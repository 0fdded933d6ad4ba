/* Every algorithm of MVMR and VVOR on the GPU against their definitions in double; PNET_SHORT: a few sizes. */
#include "tests/kernels/algo_case.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/conv.h"
#include "kernels/cuda/conv_algo.h"
#include "kernels/cuda/cuda.h"

/* Rows bound on the host beyond those there are, and triplets likewise. */
enum { SPARE_ROWS = 3, SPARE_TRIPLETS = 150, CANARY = 256 };

static void *device_alloc(size_t bytes)
{
    void *p = pnet_cuda_alloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "out of device memory\n");
        exit(1);
    }
    pnet_cuda_fill_bytes(p, 0xFF, bytes); /* NaN, and indices that lead nowhere */
    return p;
}

/* `size` bytes of device memory, of which the first ones are copied. */
static void *device_copy(const void *from, size_t bytes, size_t size)
{
    void *p = device_alloc(size);
    pnet_cuda_copy_in(p, from, bytes);
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    return p;
}

static float *device_floats(const float *from, size_t n)
{
    return from ? device_copy(from, n * sizeof *from, n * sizeof *from) : NULL;
}

static void device_free(const void *p)
{
    pnet_cuda_free((void *)(uintptr_t)p);
}

struct device_work {
    unsigned char *memory;
    size_t bytes;
};

static struct device_work device_work(size_t bytes)
{
    struct device_work w = {device_alloc(bytes + CANARY), bytes};
    pnet_cuda_fill_bytes(w.memory, 0xA5, bytes + CANARY);
    return w;
}

static void device_work_end(struct device_work *w, const char *text)
{
    unsigned char after[CANARY];
    bool whole = true;
    pnet_cuda_copy_out(after, w->memory + w->bytes, CANARY);
    for (int i = 0; i < CANARY; i++) whole = whole && after[i] == 0xA5;
    CHECKF(whole, "%s: wrote beyond the workspace", text);
    pnet_cuda_free(w->memory);
}

/* A set as a schedule knows it: rows and triplets of its capacity class, the true number in device memory, starts of rows
   that are not there leading nowhere. */
static struct pnet_triplets device_set(const struct pnet_triplets *t)
{
    int64_t spare = t->rows + SPARE_ROWS;
    size_t count = (size_t)t->count, most = count + SPARE_TRIPLETS;
    int64_t *start = conv_alloc((size_t)(spare + 1) * sizeof *start);
    memcpy(start, t->start, (size_t)(t->rows + 1) * sizeof *start);
    for (int64_t r = t->rows + 1; r <= spare; r++) start[r] = INT64_C(1) << 60;
    struct pnet_triplets d = *t;
    size_t starts = (size_t)(spare + 1) * sizeof *start;
    d.rows = spare;
    d.count = (int64_t)most;
    d.start = device_copy(start, starts, starts);
    d.other = device_copy(t->other, count * sizeof *t->other, most * sizeof *t->other);
    d.cell = device_copy(t->cell, count * sizeof *t->cell, most * sizeof *t->cell);
    d.live = device_copy(&t->rows, sizeof t->rows, sizeof t->rows);
    free(start);
    return d;
}

static void device_set_free(struct pnet_triplets *d)
{
    device_free(d->start);
    device_free(d->other);
    device_free(d->cell);
    device_free(d->live);
}

struct listed {
    struct pnet_conv_list list;
    struct device_work memory;
};

static struct listed make_list(
    const struct pnet_triplets *t, enum pnet_conv_algo algo, const char *text)
{
    struct listed l = {.memory = device_work(pnet_cuda_conv_list_bytes(t->count))};
    struct device_work work = device_work(pnet_cuda_conv_list_work(t->count));
    l.list = pnet_cuda_conv_list(t, algo, 0, t->count, l.memory.memory, work.memory);
    device_work_end(&work, text);
    return l;
}

/* Float atomics add in any order; all else has one. */
static bool repeats(enum pnet_conv_algo algo)
{
    return pnet_conv_algo_is_usual(algo) || algo == PNET_ALGO_IM2COL;
}

/* Runs twice from what `result` holds, `size` floats of which `live` are compared; the second result stays there. */
#define RUN(product, given, result, live, size)                                                    \
    do {                                                                                           \
        size_t bytes = (live) * sizeof(float);                                                     \
        float *before = conv_alloc(bytes), *first = conv_alloc(bytes);                             \
        struct listed l = {0};                                                                     \
        memcpy(before, result, bytes);                                                             \
        float *host = result;                                                                      \
        if (listed) {                                                                              \
            l = make_list((given).triplets, (given).algo, text);                                   \
            (given).list = &l.list;                                                                \
        }                                                                                          \
        for (int i = 0; i < 2; i++) {                                                              \
            struct device_work work = device_work(pnet_cuda_##product##_algo_work(                 \
                (given).algo, (given).triplets, (given).shape, PNET_FP32));                        \
            result = device_copy(before, bytes, (size) * sizeof(float));                           \
            pnet_cuda_##product(&(given), work.memory);                                            \
            pnet_cuda_copy_out(host, result, bytes);                                               \
            device_work_end(&work, text);                                                          \
            pnet_cuda_free(result);                                                                \
            if (i == 0) memcpy(first, host, bytes);                                                \
        }                                                                                          \
        if (repeats((given).algo))                                                                 \
            CHECKF(memcmp(first, host, bytes) == 0, "%s: a second run differs", text);             \
        if (listed) device_work_end(&l.memory, text);                                              \
        const char *wrong = pnet_cuda_sync();                                                      \
        CHECKF(!wrong, "%s: %s", text, wrong);                                                     \
        free(before), free(first);                                                                 \
    } while (0)

static void run_mvmr(const struct pnet_mvmr *given, bool listed, const char *text)
{
    struct pnet_mvmr m = *given;
    struct pnet_conv_shape s = m.shape;
    const struct pnet_triplets *t = given->triplets;
    struct pnet_triplets set = device_set(t);
    size_t live = (size_t)t->rows * (size_t)s.cout, size = (size_t)set.rows * (size_t)s.cout;
    m.triplets = &set;
    m.in = device_floats(given->in, (size_t)t->others * (size_t)s.cin);
    m.weight = device_floats(
        given->weight, (size_t)t->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout);
    m.bias = device_floats(given->bias, (size_t)s.cout);
    RUN(mvmr, m, m.out, live, size);
    device_free(m.in), device_free(m.weight), device_free(m.bias);
    device_set_free(&set);
}

static void run_vvor(const struct pnet_vvor *given, bool listed, const char *text)
{
    struct pnet_vvor v = *given;
    struct pnet_conv_shape s = v.shape;
    const struct pnet_triplets *t = given->triplets;
    struct pnet_triplets set = device_set(t);
    size_t size = (size_t)t->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout;
    v.triplets = &set;
    v.in = device_floats(given->in, (size_t)(v.swapped ? t->rows : t->others) * (size_t)s.cin);
    v.gout = device_floats(given->gout, (size_t)(v.swapped ? t->others : t->rows) * (size_t)s.cout);
    RUN(vvor, v, v.gweight, size, size);
    device_free(v.in), device_free(v.gout);
    device_set_free(&set);
}

/* Bound for a capacity class, a workspace serves every batch of it; below 64 MiB where the matrices are not large. */
static void check_work(void)
{
    static const struct pnet_conv_shape shapes[] = {
        {3, 32, 1}, {128, 128, 1}, {64, 64, 64}, {96, 96, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * PNET_ALGO_COUNT; i++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)(i % PNET_ALGO_COUNT);
        struct pnet_conv_shape s = shapes[i / PNET_ALGO_COUNT];
        size_t mvmr = 0, vvor = 0;
        for (int64_t rows = 0; rows < 3000000; rows += 1 + rows / 3) {
            struct pnet_triplets t = {.rows = rows, .others = rows, .count = 7 * rows, .cells = 27};
            size_t m = pnet_cuda_mvmr_algo_work(algo, &t, s, PNET_FP32),
                   v = pnet_cuda_vvor_algo_work(algo, &t, s, PNET_FP32);
            CHECKF(m >= mvmr && v >= vvor, "%s: %d channels, %lld rows", pnet_conv_algo_names[algo],
                s.cin, (long long)rows);
            mvmr = m;
            vvor = v;
        }
        CHECKF(mvmr <= 64u << 20 && vvor <= 64u << 20, "%s: %d channels: %zu, %zu bytes",
            pnet_conv_algo_names[algo], s.cin, mvmr, vvor);
    }
}

int main(void)
{
    const char *why = NULL;
    check_work();
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return check_failed ? 1 : 77;
    }
    bool brief = getenv("PNET_SHORT") != NULL;
    struct algo_device gpu = {"cuda", run_mvmr, run_vvor};
    algo_check_shapes(&gpu, brief);
    if (!brief) algo_check_sizes(&gpu);
    return check_end();
}
#else
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#endif
