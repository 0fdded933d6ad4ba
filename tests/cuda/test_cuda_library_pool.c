/* Pools over sets on a GPU against those of the CPU: maxima and their rows bit for bit, sums and gradients within rounding; in
   float32 and 16 bits, on the caller's stream, recorded in a CUDA graph. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/library_case.h"

/* A GPU forms sums in double and rounds them once to what is stored; the CPU adds up hundreds of gradients in float32. */
static const struct stored {
    const char *name;
    enum pnet_dtype dtype;
    double limit;
} types[] = {{"float32", PNET_DTYPE_F32, 5e-6}, {"bf16", PNET_DTYPE_BF16, 4e-3},
    {"fp16", PNET_DTYPE_F16, 5e-4}};

/* A set on both devices, and arrays of its pools; those that begin with d_ lie on the GPU. */
struct both {
    struct pnet_set *cpu, *gpu;
    struct pnet_set_info info;
    int64_t channels, in, out; /* in, out: numbers of features and of results */
    const struct stored *type;
    float *features, *gradient, *result, *to_features;
    int32_t *argmax;
    void *d_features, *d_gradient, *d_result, *d_to_features;
    int32_t *d_argmax;
};

/* Takes both sets. Many features are equal; `special` puts NaN and -infinity among
   them, in float32. */
static struct both begin(struct pnet_set *cpu, struct pnet_set *gpu, int64_t channels,
    const struct stored *type, bool special)
{
    struct both b = {
        .cpu = cpu, .gpu = gpu, .info = sets_info(cpu), .channels = channels, .type = type};
    b.in = b.info.rows_in * channels;
    b.out = b.info.rows_out * channels;
    b.features = sets_floats(b.in);
    b.gradient = sets_floats(b.out);
    b.result = sets_floats(b.out);
    b.to_features = sets_floats(b.in);
    b.argmax = sets_room((size_t)b.out, sizeof *b.argmax);
    for (int64_t i = 0; i < b.in; i++) {
        b.features[i] = floorf(b.features[i] * 4) / 4;
        if (special && sets_random(4) == 0) b.features[i] = sets_random(2) ? -INFINITY : NAN;
    }
    b.d_features = gpu_put_floats(b.features, b.in, type->dtype);
    b.d_gradient = gpu_put_floats(b.gradient, b.out, type->dtype);
    b.d_result = gpu_room((size_t)b.out * 4);
    b.d_to_features = gpu_room((size_t)b.in * 4);
    b.d_argmax = gpu_room((size_t)b.out * sizeof(int32_t));
    GPU_NEED(cudaDeviceSynchronize());
    return b;
}

static void end(struct both *b)
{
    void *d[] = {b->d_features, b->d_gradient, b->d_result, b->d_to_features, b->d_argmax};
    for (int i = 0; i < 5; i++) gpu_free(d[i]);
    free(b->features);
    free(b->gradient);
    free(b->result);
    free(b->to_features);
    free(b->argmax);
}

static enum pnet_status run_gpu(
    const struct both *b, enum pnet_pooling kind, void *stream, struct pnet_error *e)
{
    bool top = kind == PNET_POOLING_MAX;
    enum pnet_dtype t = b->type->dtype;
    int64_t c = b->channels, in = b->info.rows_in, out = b->info.rows_out;
    struct pnet_array f = {b->d_features, t, in, c, 0}, g = {b->d_gradient, t, out, c, 0},
                      from = {b->d_argmax, PNET_DTYPE_I32, out, c, 0};
    struct pnet_array_out y = {b->d_result, t, out, c, 0}, x = {b->d_to_features, t, in, c, 0},
                          to = {b->d_argmax, PNET_DTYPE_I32, out, c, 0};
    struct pnet_pool_options o = {sizeof o, stream};
    enum pnet_status st = pnet_pool_forward(b->gpu, kind, &f, &o, &y, top ? &to : NULL, e);
    return st ? st : pnet_pool_backward(b->gpu, kind, &g, top ? &from : NULL, &o, &x, e);
}

static void run_cpu(const struct both *b, enum pnet_pooling kind)
{
    bool top = kind == PNET_POOLING_MAX;
    int64_t c = b->channels, in = b->info.rows_in, out = b->info.rows_out;
    struct pnet_array f = sets_array(b->features, in, c), g = sets_array(b->gradient, out, c),
                      from = {b->argmax, PNET_DTYPE_I32, out, c, 0};
    struct pnet_array_out y = sets_out(b->result, out, c), x = sets_out(b->to_features, in, c),
                          to = {b->argmax, PNET_DTYPE_I32, out, c, 0};
    NEED(pnet_pool_forward(b->cpu, kind, &f, NULL, &y, top ? &to : NULL, &e));
    NEED(pnet_pool_backward(b->cpu, kind, &g, top ? &from : NULL, NULL, &x, &e));
}

/* Are numbers on the GPU these? Exactly, a NaN for a NaN; or their relative error. */
static bool same(const void *d, const float *want, int64_t count, enum pnet_dtype dtype)
{
    float *got = sets_room((size_t)count, sizeof *got);
    bool all = true;
    gpu_get_floats(got, d, count, dtype);
    for (int64_t i = 0; i < count; i++)
        all = all && (got[i] == want[i] || (isnan(got[i]) && isnan(want[i])));
    free(got);
    return all;
}

static double error_of(const void *d, const float *want, int64_t count, enum pnet_dtype dtype)
{
    float *got = sets_room((size_t)count, sizeof *got);
    double difference = 0, norm = 1e-30;
    gpu_get_floats(got, d, count, dtype);
    for (int64_t i = 0; i < count; i++) {
        double a = (double)got[i] - (double)want[i];
        difference += a * a;
        norm += (double)want[i] * (double)want[i];
    }
    free(got);
    return sqrt(difference / norm);
}

static void check(const struct both *b, enum pnet_pooling kind, const char *what)
{
    enum pnet_dtype t = b->type->dtype;
    double x = error_of(b->d_to_features, b->to_features, b->in, t);
    if (kind == PNET_POOLING_MAX) {
        int32_t *from = sets_room((size_t)b->out, sizeof *from);
        gpu_get(from, b->d_argmax, (size_t)b->out * sizeof *from);
        CHECKF(same(b->d_result, b->result, b->out, t) &&
                   memcmp(from, b->argmax, (size_t)b->out * sizeof *from) == 0,
            "%s: %d channels, %s: maxima differ", what, (int)b->channels, b->type->name);
        free(from);
    } else {
        double y = error_of(b->d_result, b->result, b->out, t);
        CHECKF(y < b->type->limit, "%s: kind %d, %d channels, %s: results differ by %g", what,
            (int)kind, (int)b->channels, b->type->name, y);
    }
    CHECKF(x < b->type->limit, "%s: kind %d, %d channels, %s: gradients differ by %g", what,
        (int)kind, (int)b->channels, b->type->name, x);
}

/* All kinds, widths and types of one pair of sets; PNET_SHORT: each type with a quarter of the widths. */
static void compare(struct pnet_set *cpu, struct pnet_set *gpu, const char *what)
{
    static const int64_t widths[] = {1, 2, 3, 4, 8, 19, 32, 100};
    for (int w = 0; w < 8; w++)
        for (int t = 0; t < 3; t++) {
            if (getenv("PNET_SHORT") && (w + t) % 4) continue;
            struct both b = begin(cpu, gpu, widths[w], &types[t], false);
            for (int kind = 0; kind < 3; kind++) {
                NEED(run_gpu(&b, (enum pnet_pooling)kind, NULL, &e));
                run_cpu(&b, (enum pnet_pooling)kind);
                check(&b, (enum pnet_pooling)kind, what);
            }
            end(&b);
        }
    /* NaN and infinities, forward: a NaN counts where it comes first */
    struct both b = begin(cpu, gpu, 7, &types[0], true);
    NEED(run_gpu(&b, PNET_POOLING_MAX, NULL, &e));
    run_cpu(&b, PNET_POOLING_MAX);
    check(&b, PNET_POOLING_MAX, what);
    end(&b);
}

/* Compares sets and their inverse sets, and frees them. */
static void compare_both(struct pnet_set *cpu, struct pnet_set *gpu, const char *what)
{
    struct pnet_set *cpu_back, *gpu_back;
    NEED(pnet_set_inverse(cpu, &cpu_back, &e));
    NEED(pnet_set_inverse(gpu, &gpu_back, &e));
    compare(cpu, gpu, what);
    compare(cpu_back, gpu_back, what);
    pnet_set_free(cpu);
    pnet_set_free(gpu);
    pnet_set_free(cpu_back);
    pnet_set_free(gpu_back);
}

static struct sets_case layer(enum pnet_set_kind kind)
{
    struct sets_case c = {.o = {.size = sizeof c.o,
                              .kind = kind,
                              .kernel = {3, 3, 3},
                              .stride = {2, 2, 2},
                              .padding = {1, 1, 1},
                              .extent = {14, 15, 12},
                              .batches = 2},
        .axes = 3};
    sets_fill(&c, 3, -1);
    return c;
}

static void test_voxels(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct sets_case c = layer((enum pnet_set_kind)kind);
        compare_both(sets_make(&c), gpu_make(&c, NULL, NULL), "voxels");
        free(c.index);
    }
}

/* No rows, rows without triplets, rows of many triplets that several warps share, triplets that are there twice. */
static void test_lists(void)
{
    static const int32_t sizes[][4] = {{0, 5, 4, 3}, {0, 0, 0, 1}, {3000, 70, 90, 27},
        {9000, 1, 50, 4}, {20000, 6, 3000, 300}, {4000, 3000, 2, 9}};
    for (int n = 0; n < 6; n++) {
        const int32_t *of = sizes[n];
        int32_t *list[3], *d[3];
        struct pnet_array host[3], device[3];
        for (int k = 0; k < 3; k++) {
            list[k] = sets_room((size_t)of[0], sizeof **list);
            for (int32_t i = 0; i < of[0]; i++)
                list[k][i] = (int32_t)sets_random((uint32_t)of[k + 1]);
            d[k] = gpu_copy(list[k], (size_t)of[0] * sizeof **list);
            host[k] = (struct pnet_array){list[k], PNET_DTYPE_I32, of[0], 1, 0};
            device[k] = (struct pnet_array){d[k], PNET_DTYPE_I32, of[0], 1, 0};
        }
        struct pnet_triplet_options o = {.size = sizeof o, .device = "cuda"};
        struct pnet_set *cpu, *gpu;
        NEED(pnet_set_triplets(&host[0], &host[1], &host[2], of[1], of[2], of[3], NULL, &cpu, &e));
        NEED(pnet_set_triplets(
            &device[0], &device[1], &device[2], of[1], of[2], of[3], &o, &gpu, &e));
        compare_both(cpu, gpu, "lists");
        for (int k = 0; k < 3; k++) {
            free(list[k]);
            gpu_free(d[k]);
        }
    }
}

/* Recorded once and replayed on other features, in the order of the stream; and no memory is taken. */
static void test_recorded(enum pnet_pooling kind, const struct stored *type)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gpu_counts counts = {.stream = stream};
    struct pnet_allocator a = {sizeof a, &counts, gpu_take, gpu_give};
    struct sets_case c = layer(PNET_SET_STRIDED);
    struct both b = begin(sets_make(&c), gpu_make(&c, stream, &a), 32, type, false);
    size_t bytes = (size_t)b.in * gpu_element(type->dtype);
    NEED(run_gpu(&b, kind, stream, &e)); /* the driver loads the kernels */
    long taken = counts.taken;
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NEED(run_gpu(&b, kind, stream, &e));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphInstantiate(&exec, graph, 0));
    for (int replay = 0; replay < 3; replay++) {
        for (int64_t i = 0; i < b.in; i++) b.features[i] = floorf(sets_float() * 4) / 4;
        void *other = gpu_put_floats(b.features, b.in, type->dtype);
        GPU_NEED(cudaDeviceSynchronize());
        GPU_NEED(cudaMemcpyAsync(b.d_features, other, bytes, cudaMemcpyDeviceToDevice, stream));
        GPU_NEED(cudaGraphLaunch(exec, stream));
        run_cpu(&b, kind);
        check(&b, kind, "replayed");
        gpu_free(other);
    }
    CHECK(counts.taken == taken);
    GPU_NEED(cudaGraphExecDestroy(exec));
    GPU_NEED(cudaGraphDestroy(graph));
    pnet_set_free(b.cpu);
    pnet_set_free(b.gpu);
    CHECK(counts.taken == counts.given && !counts.bytes && !counts.wrong);
    end(&b);
    free(c.index);
    GPU_NEED(cudaStreamDestroy(stream));
}

static void test_refused(void)
{
    struct sets_case c = layer(PNET_SET_STRIDED);
    struct both b = begin(sets_make(&c), gpu_make(&c, NULL, NULL), 8, &types[0], false);
    int64_t in = b.info.rows_in, out = b.info.rows_out;
    struct pnet_array f = {b.d_features, PNET_DTYPE_F32, in, 8, 0}, bad = f,
                      g = {b.d_gradient, PNET_DTYPE_F32, out, 8, 0},
                      from = {b.argmax, PNET_DTYPE_I32, out, 8, 0};
    struct pnet_array_out y = {b.d_result, PNET_DTYPE_F32, out, 8, 0},
                          x = {b.d_to_features, PNET_DTYPE_F32, in, 8, 0};
    struct pnet_pool_options o = {.size = 8};
    const enum pnet_pooling top = PNET_POOLING_MAX;
    bad.data = b.features;
    REFUSED(pnet_pool_forward(b.gpu, top, &bad, NULL, &y, NULL, &e), PNET_USAGE,
        "features: `data` is no memory of GPU 0");
    bad.data = (char *)b.d_features + 4;
    REFUSED(
        pnet_pool_forward(b.gpu, top, &bad, NULL, &y, NULL, &e), PNET_USAGE, "aligned to 16 bytes");
    bad = f;
    bad.dtype = PNET_DTYPE_I32;
    REFUSED(
        pnet_pool_forward(b.gpu, top, &bad, NULL, &y, NULL, &e), PNET_USAGE, "features: dtype 1");
    bad.dtype = PNET_DTYPE_F16;
    REFUSED(pnet_pool_forward(b.gpu, top, &bad, NULL, &y, NULL, &e), PNET_USAGE, "result: dtype 0");
    REFUSED(pnet_pool_forward(b.gpu, top, &f, &o, &y, NULL, &e), PNET_USAGE,
        "struct pnet_pool_options: `size` is 8");
    REFUSED(pnet_pool_backward(b.gpu, top, &g, &from, NULL, &x, &e), PNET_USAGE,
        "argmax: `data` is no memory of GPU 0");
    REFUSED(pnet_pool_backward(b.gpu, top, &g, NULL, NULL, &x, &e), PNET_USAGE,
        "argmax: the maximum has one");
    if (!getenv("PNET_SHORT")) { /* tools that watch each call would report this one */
        CHECK(cudaSetDevice(1000) != cudaSuccess); /* an error that the program leaves behind */
        REFUSED(pnet_pool_forward(b.gpu, top, &f, NULL, &y, NULL, &e), PNET_NO_DEVICE,
            "GPU 0: an earlier call of the program failed");
        CHECK(cudaGetLastError() != cudaSuccess);
    }
    /* rows that are not there: nothing is added */
    int32_t *rows = sets_room((size_t)b.out, sizeof *rows);
    for (int64_t i = 0; i < b.out; i++) rows[i] = i % 2 ? INT32_MAX : -5;
    GPU_NEED(cudaMemcpy(b.d_argmax, rows, (size_t)b.out * sizeof *rows, cudaMemcpyHostToDevice));
    from.data = b.d_argmax;
    NEED(pnet_pool_backward(b.gpu, top, &g, &from, NULL, &x, &e));
    memset(b.to_features, 0, (size_t)b.in * sizeof(float));
    CHECK(same(b.d_to_features, b.to_features, b.in, PNET_DTYPE_F32));
    free(rows);
    pnet_set_free(b.cpu);
    pnet_set_free(b.gpu);
    end(&b);
    free(c.index);
}

int main(void)
{
    if (!gpu_there()) return 77;
    test_refused();
    test_voxels();
    test_lists();
    for (int kind = 0; kind < 3; kind++)
        for (int t = 0; t < 3; t++) test_recorded((enum pnet_pooling)kind, &types[t]);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
