/* The three sums of sets on a GPU against those of the CPU: all precisions, features in 16 bits, bias, accumulation, groups, the
   caller's stream, workspaces, and recordings in a CUDA graph. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/library_case.h"

/* How a case is computed. */
struct way {
    const char *name;
    enum pnet_products products;
    enum pnet_dtype stored;
    double
        limit; /* of relative errors, by kernels/precision.h, and of rounding results to 16 bits */
};
static const struct way ways[] = {{"fp32", PNET_PRODUCTS_AS_STORED, PNET_DTYPE_F32, 2e-6},
    {"tf32", PNET_PRODUCTS_TF32, PNET_DTYPE_F32, 1e-3},
    {"bf16 from float32", PNET_PRODUCTS_BF16, PNET_DTYPE_F32, 1e-2},
    {"fp16 from float32", PNET_PRODUCTS_FP16, PNET_DTYPE_F32, 1e-3},
    {"bf16", PNET_PRODUCTS_AS_STORED, PNET_DTYPE_BF16, 1e-2},
    {"fp16", PNET_PRODUCTS_FP16, PNET_DTYPE_F16, 2e-3}};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* A case on both devices. */
struct both {
    struct sets_case c;
    struct pnet_set *cpu, *gpu;
    struct pnet_set_info info;
    struct sets_sums s; /* of the CPU; its results hold numbers before */
    float *bias;
    void *features, *weights, *gradient, *result, *to_features, *to_weights, *d_bias; /* GPU */
    enum pnet_dtype stored;
};

static void begin(struct both *b, const struct way *w, void *stream)
{
    b->cpu = sets_make(&b->c);
    b->gpu = gpu_make(&b->c, stream, NULL);
    b->info = sets_info(b->cpu);
    b->s = sets_take(&b->c, b->cpu);
    b->bias = sets_floats(b->c.out);
    b->stored = w->stored;
    b->features = gpu_put_floats(b->s.features, b->s.feature_count, w->stored);
    b->gradient = gpu_put_floats(b->s.gradient, b->s.result_count, w->stored);
    b->result = gpu_put_floats(b->s.result, b->s.result_count, w->stored);
    b->to_features = gpu_put_floats(b->s.to_features, b->s.feature_count, w->stored);
    b->weights = gpu_copy(b->s.weights, (size_t)b->s.weight_count * sizeof(float));
    b->to_weights = gpu_copy(b->s.to_weights, (size_t)b->s.weight_count * sizeof(float));
    b->d_bias = gpu_copy(b->bias, (size_t)b->c.out * sizeof(float));
    GPU_NEED(cudaDeviceSynchronize());
}

static void end(struct both *b)
{
    const void *d[] = {
        b->features, b->weights, b->gradient, b->result, b->to_features, b->to_weights, b->d_bias};
    for (int i = 0; i < 7; i++) gpu_free(d[i]);
    sets_drop(&b->s);
    free(b->bias);
    pnet_set_free(b->cpu);
    pnet_set_free(b->gpu);
}

/* The three sums on the GPU. */
static enum pnet_status run(
    struct both *b, const struct pnet_conv_options *given, bool bias, struct pnet_error *e)
{
    struct pnet_conv_options o = *given;
    int64_t taps = (int64_t)b->info.taps * (b->c.in / b->c.groups);
    int32_t in = b->c.in, out = b->c.out;
    struct pnet_array f = {b->features, b->stored, b->info.rows_in, in, 0},
                      g = {b->gradient, b->stored, b->info.rows_out, out, 0},
                      w = {b->weights, PNET_DTYPE_F32, taps, out, 0};
    struct pnet_array_out y = {b->result, b->stored, b->info.rows_out, out, 0},
                          x = {b->to_features, b->stored, b->info.rows_in, in, 0},
                          dw = {b->to_weights, PNET_DTYPE_F32, taps, out, 0};
    o.bias = bias ? b->d_bias : NULL;
    enum pnet_status st = pnet_conv_forward(b->gpu, &f, &w, &o, &y, e);
    o.bias = NULL;
    if (!st) st = pnet_conv_grad_input(b->gpu, &g, &w, &o, &x, e);
    return st ? st : pnet_conv_grad_weight(b->gpu, &f, &g, &o, &dw, e);
}

/* The same on the CPU. */
static void run_cpu(struct both *b, bool bias, bool accumulate)
{
    struct pnet_conv_options o = {
        .size = sizeof o, .groups = b->c.groups, .accumulate = accumulate};
    int64_t taps = (int64_t)b->info.taps * (b->c.in / b->c.groups);
    struct pnet_array f = sets_array(b->s.features, b->info.rows_in, b->c.in),
                      w = sets_array(b->s.weights, taps, b->c.out),
                      g = sets_array(b->s.gradient, b->info.rows_out, b->c.out);
    struct pnet_array_out y = sets_out(b->s.result, b->info.rows_out, b->c.out),
                          x = sets_out(b->s.to_features, b->info.rows_in, b->c.in),
                          dw = sets_out(b->s.to_weights, taps, b->c.out);
    o.bias = bias ? b->bias : NULL;
    NEED(pnet_conv_forward(b->cpu, &f, &w, &o, &y, &e));
    o.bias = NULL;
    NEED(pnet_conv_grad_input(b->cpu, &g, &w, &o, &x, &e));
    NEED(pnet_conv_grad_weight(b->cpu, &f, &g, &o, &dw, &e));
}

static double difference(const void *d, const float *want, int64_t count, enum pnet_dtype dtype)
{
    float *got = sets_room((size_t)count, sizeof *got);
    double sum = 0, norm = 1e-30;
    gpu_get_floats(got, d, count, dtype);
    for (int64_t i = 0; i < count; i++) {
        double a = (double)got[i] - (double)want[i];
        sum += a * a;
        norm += (double)want[i] * (double)want[i];
    }
    free(got);
    return sqrt(sum / norm);
}

static void check(const struct both *b, const struct way *w, const char *what)
{
    double y = difference(b->result, b->s.result, b->s.result_count, w->stored),
           x = difference(b->to_features, b->s.to_features, b->s.feature_count, w->stored),
           dw = difference(b->to_weights, b->s.to_weights, b->s.weight_count, PNET_DTYPE_F32);
    CHECKF(y <= w->limit && x <= w->limit && dw <= w->limit,
        "%s, %s: kind %d, %d to %d channels, %d groups, %d rows: errors %g %g %g", what, w->name,
        (int)b->c.o.kind, (int)b->c.in, (int)b->c.out, (int)b->c.groups, (int)b->info.rows_out, y,
        x, dw);
}

static struct sets_case layer(enum pnet_set_kind kind, int32_t in, int32_t out, int32_t groups)
{
    struct sets_case c = {.o = {.size = sizeof c.o,
                              .kind = kind,
                              .kernel = {3, 3, 3},
                              .stride = {2, 2, 1},
                              .padding = {1, 1, 1},
                              .extent = {32, 30, 20},
                              .batches = 2},
        .axes = 3,
        .in = in,
        .out = out,
        .groups = groups};
    return c;
}

/* Channels that are no multiples of anything, wide ones, groups, depthwise; without and with bias and accumulation; few rows and
   many. */
static void test_sums(void)
{
    static const int32_t channels[][3] = {{1, 1, 1}, {3, 32, 1}, {32, 32, 1}, {64, 96, 1},
        {5, 7, 1}, {128, 256, 1}, {160, 130, 1}, {64, 64, 4}, {24, 24, 24}};
    for (int n = 0; n < 9; n++)
        for (int how = 0; how < 4 * WAYS; how++) {
            const struct way *w = &ways[how / 4];
            const int32_t *of = channels[n];
            bool bias = how & 1, accumulate = how & 2;
            struct both b = {.c = layer((enum pnet_set_kind)((n + how) % 3), of[0], of[1], of[2])};
            sets_fill(&b.c, (n + how) % 7 ? 3 : 60, -1);
            begin(&b, w, NULL);
            struct pnet_conv_options o = {.size = sizeof o,
                .groups = of[2],
                .accumulate = accumulate,
                .precision = w->products};
            NEED(run(&b, &o, bias, &e));
            run_cpu(&b, bias, accumulate);
            check(&b, w, bias ? "with bias" : accumulate ? "added" : "plain");
            end(&b);
            free(b.c.index);
        }
}

/* Nothing on either side; outputs without inputs; kernels whose sets have no tiles; one axis. */
static void test_odd(void)
{
    for (int n = 0; n < 6 * WAYS; n++) {
        struct both b = {.c = layer(n % 2 ? PNET_SET_STRIDED : PNET_SET_SUBMANIFOLD, 16, 24, 1)};
        for (int a = 0; a < 3 && n % 6 > 2; a++) b.c.o.kernel[a] = 11, b.c.o.padding[a] = 5;
        if (n % 6 == 5) b.c.axes = 1, b.c.o.extent[0] = 900;
        sets_fill(&b.c, 4, -1);
        if (n % 6 < 2) b.c.rows = n % 6;
        begin(&b, &ways[n / 6], NULL);
        struct pnet_conv_options o = {.size = sizeof o, .precision = ways[n / 6].products};
        NEED(run(&b, &o, true, &e));
        run_cpu(&b, true, false);
        check(&b, &ways[n / 6], "odd");
        end(&b);
        free(b.c.index);
    }
}

/* Rows of the first matrix, `moved` of them NULL or where row r comes from, as `b` stores them. */
static void *put_moved(
    const float *from, const int64_t *moved, int64_t count, int32_t width, enum pnet_dtype dtype)
{
    float *to = sets_room((size_t)count, sizeof *to);
    for (int64_t r = 0; r < count / width; r++)
        memcpy(to + r * width, from + (moved ? moved[r] : r) * width, (size_t)width * sizeof *to);
    void *d = gpu_put_floats(to, count, dtype);
    free(to);
    return d;
}

/* How many rows of two results have other bits. */
static int64_t count_others(const void *got, const void *of, const int64_t *moved, int64_t count,
    int32_t width, enum pnet_dtype dtype)
{
    size_t row = (size_t)width * gpu_element(dtype), bytes = (size_t)(count / width) * row;
    char *a = sets_room(bytes, 1), *b = sets_room(bytes, 1);
    int64_t wrong = 0;
    gpu_get(a, got, bytes);
    gpu_get(b, of, bytes);
    for (int64_t r = 0; r < count / width; r++)
        wrong += memcmp(a + (size_t)r * row, b + (size_t)(moved ? moved[r] : r) * row, row) != 0;
    free(a);
    free(b);
    return wrong;
}

/* Rows shuffled give the shuffled results, bit for bit, and the same gradients of weights. */
static void test_rows(const int32_t of[3], const struct way *w, enum pnet_set_kind kind)
{
    struct both a = {.c = layer(kind, of[0], of[1], of[2])}, b;
    sets_fill(&a.c, 3, -1);
    int64_t *moved = sets_room((size_t)a.c.rows, sizeof *moved),
            *outs = kind == PNET_SET_SUBMANIFOLD ? moved : NULL;
    begin(&a, w, NULL);
    b = (struct both){.c = a.c};
    b.c.index = sets_room((size_t)a.c.rows * 4, sizeof *b.c.index);
    memcpy(b.c.index, a.c.index, (size_t)a.c.rows * 4 * sizeof *b.c.index);
    sets_shuffle(&b.c, moved);
    begin(&b, w, NULL);
    gpu_free(b.features);
    gpu_free(b.gradient);
    gpu_free(b.weights);
    b.features = put_moved(a.s.features, moved, a.s.feature_count, of[0], w->stored);
    b.gradient = put_moved(a.s.gradient, outs, a.s.result_count, of[1], w->stored);
    b.weights = gpu_copy(a.s.weights, (size_t)a.s.weight_count * sizeof(float));
    struct pnet_conv_options o = {.size = sizeof o, .groups = of[2], .precision = w->products};
    NEED(run(&a, &o, false, &e));
    NEED(run(&b, &o, false, &e));
    int64_t y = count_others(b.result, a.result, outs, a.s.result_count, of[1], w->stored),
            x = count_others(
                b.to_features, a.to_features, moved, a.s.feature_count, of[0], w->stored),
            dw = count_others(
                b.to_weights, a.to_weights, NULL, a.s.weight_count, of[1], PNET_DTYPE_F32);
    CHECKF(moved[0] != 0 && !y && !x && !dw,
        "%s, kind %d, %d to %d channels, %d groups: %lld, %lld, %lld rows differ", w->name,
        (int)kind, (int)of[0], (int)of[1], (int)of[2], (long long)y, (long long)x, (long long)dw);
    end(&a);
    end(&b);
    free(a.c.index);
    free(b.c.index);
    free(moved);
}

static void test_all_rows(void)
{
    static const int32_t channels[][3] = {
        {3, 32, 1}, {64, 96, 1}, {5, 7, 1}, {128, 256, 1}, {64, 64, 4}, {24, 24, 24}};
    for (int n = 0; n < 6; n++)
        for (int way = 0; way < WAYS; way++)
            test_rows(channels[n], &ways[way], (enum pnet_set_kind)((n + way) % 3));
}

/* A workspace that all three sums share, and a canary behind it. */
static size_t share_workspace(struct both *b, struct pnet_conv_options *o)
{
    size_t most = 0;
    for (int sum = 0; sum < 3; sum++) {
        size_t bytes;
        NEED(pnet_conv_workspace(
            b->gpu, (enum pnet_conv_sum_kind)sum, b->c.in, b->c.out, b->c.groups, &bytes, &e));
        if (bytes > most) most = bytes;
    }
    o->workspace = gpu_room(most + 256);
    o->workspace_bytes = most;
    return most;
}

/* Recorded once, and replayed on other features: nothing is taken, nothing waits, all is in the stream's order. */
static void test_recorded(const struct way *w)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct both b = {.c = layer(PNET_SET_STRIDED, 64, 64, 1)};
    sets_fill(&b.c, 2, -1);
    begin(&b, w, stream);
    struct pnet_conv_options o = {
        .size = sizeof o, .groups = 1, .precision = w->products, .stream = stream};
    size_t bytes = (size_t)b.s.feature_count * gpu_element(w->stored);
    struct pnet_error why;
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(run(&b, &o, true, &why) == PNET_USAGE && strstr(why.message, "workspace"));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphDestroy(graph));
    size_t work = share_workspace(&b, &o);
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NEED(run(&b, &o, true, &e));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphInstantiate(&exec, graph, 0));
    for (int replay = 0; replay < 3; replay++) {
        for (int64_t i = 0; i < b.s.feature_count; i++) b.s.features[i] = sets_float();
        void *other = gpu_put_floats(b.s.features, b.s.feature_count, w->stored);
        GPU_NEED(cudaDeviceSynchronize());
        GPU_NEED(cudaMemcpyAsync(b.features, other, bytes, cudaMemcpyDeviceToDevice, stream));
        GPU_NEED(cudaGraphLaunch(exec, stream));
        run_cpu(&b, true, false);
        check(&b, w, "replayed");
        gpu_free(other);
    }
    unsigned char after[256];
    bool whole = true;
    gpu_get(after, (char *)o.workspace + work, sizeof after);
    for (int i = 0; i < 256; i++) whole = whole && after[i] == 0xFF;
    CHECKF(whole, "%s: wrote beyond the workspace", w->name);
    GPU_NEED(cudaGraphExecDestroy(exec));
    GPU_NEED(cudaGraphDestroy(graph));
    gpu_free(o.workspace);
    end(&b);
    free(b.c.index);
    GPU_NEED(cudaStreamDestroy(stream));
}

/* Features that the stream still has to copy, results that it copies on: the sums are between. And an allocator gives the
   workspace on the call's stream. */
static void test_order(void)
{
    cudaStream_t stream;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct both b = {.c = layer(PNET_SET_SUBMANIFOLD, 32, 32, 1)};
    sets_fill(&b.c, 2, -1);
    begin(&b, &ways[0], stream);
    struct gpu_counts counts = {.stream = stream};
    struct pnet_allocator a = {sizeof a, &counts, gpu_take, gpu_give};
    pnet_set_free(b.gpu);
    b.gpu = gpu_make(&b.c, stream, &a);
    long taken = counts.taken, given = counts.given;
    size_t bytes = (size_t)b.s.feature_count * sizeof(float), large = 64 << 20;
    char *busy = gpu_room(2 * large);
    void *later = gpu_copy(b.s.features, bytes), *result = b.result,
         *moved = gpu_room((size_t)b.s.result_count * sizeof(float));
    GPU_NEED(cudaMemset(b.features, 0xFF, bytes));
    GPU_NEED(cudaDeviceSynchronize());
    for (int i = 0; i < 50; i++)
        GPU_NEED(cudaMemcpyAsync(busy, busy + large, large, cudaMemcpyDeviceToDevice, stream));
    GPU_NEED(cudaMemcpyAsync(b.features, later, bytes, cudaMemcpyDeviceToDevice, stream));
    struct pnet_conv_options o = {.size = sizeof o, .stream = stream};
    share_workspace(&b, &o);
    NEED(run(&b, &o, false, &e));
    GPU_NEED(cudaMemcpyAsync(
        moved, result, (size_t)b.s.result_count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    GPU_NEED(cudaMemsetAsync(b.features, 0xFF, bytes, stream));
    run_cpu(&b, false, false);
    b.result = moved;
    check(&b, &ways[0], "in order");
    CHECK(counts.taken == taken && counts.given == given);
    b.result = result;
    GPU_NEED(cudaMemcpyAsync(b.features, later, bytes, cudaMemcpyDeviceToDevice, stream));
    gpu_free(o.workspace);
    o.workspace = NULL;
    NEED(run(&b, &o, false, &e));
    check(&b, &ways[0], "with memory of an allocator");
    CHECK(counts.taken == taken + 3 && counts.given == given + 3 && !counts.wrong);
    gpu_free(moved);
    gpu_free(later);
    gpu_free(busy);
    end(&b);
    CHECK(counts.taken == counts.given && !counts.bytes);
    free(b.c.index);
    GPU_NEED(cudaStreamDestroy(stream));
}

static void test_refused(void)
{
    struct both b = {.c = layer(PNET_SET_SUBMANIFOLD, 8, 8, 1)};
    sets_fill(&b.c, 4, -1);
    begin(&b, &ways[0], NULL);
    int64_t n = b.info.rows_in;
    struct pnet_array f = {b.features, PNET_DTYPE_F32, n, 8, 0}, bad = f,
                      w = {b.weights, PNET_DTYPE_F32, 27 * 8, 8, 0};
    struct pnet_array_out y = {b.result, PNET_DTYPE_F32, n, 8, 0};
    struct pnet_conv_options o = {.size = sizeof o};
    bad.data = b.s.features;
    REFUSED(pnet_conv_forward(b.gpu, &bad, &w, NULL, &y, &e), PNET_USAGE,
        "features: `data` is no memory of GPU 0");
    bad.data = (char *)b.features + 4;
    REFUSED(pnet_conv_forward(b.gpu, &bad, &w, NULL, &y, &e), PNET_USAGE, "aligned to 16 bytes");
    bad = f;
    bad.dtype = PNET_DTYPE_I32;
    REFUSED(pnet_conv_forward(b.gpu, &bad, &w, NULL, &y, &e), PNET_USAGE, "features: dtype 1");
    bad.dtype = PNET_DTYPE_F16;
    REFUSED(pnet_conv_forward(b.gpu, &bad, &w, NULL, &y, &e), PNET_USAGE, "both are stored alike");
    y.dtype = PNET_DTYPE_F16;
    o.precision = PNET_PRODUCTS_BF16;
    REFUSED(pnet_conv_forward(b.gpu, &bad, &w, &o, &y, &e), PNET_USAGE, "as they are stored");
    o.precision = PNET_PRODUCTS_AS_STORED;
    w.dtype = PNET_DTYPE_F16;
    REFUSED(pnet_conv_forward(b.gpu, &bad, &w, &o, &y, &e), PNET_USAGE, "weights: dtype 4");
    w.dtype = y.dtype = PNET_DTYPE_F32;
    o.workspace = b.to_weights;
    o.workspace_bytes = 16;
    size_t need = 0;
    NEED(pnet_conv_workspace(b.gpu, PNET_CONV_FORWARD, 8, 8, 1, &need, &e));
    if (need > 16) /* else 16 bytes are enough */
        REFUSED(pnet_conv_forward(b.gpu, &f, &w, &o, &y, &e), PNET_USAGE, "workspace_bytes: 16");
    if (!getenv("PNET_SHORT")) { /* tools that watch each call would report this one */
        CHECK(cudaSetDevice(1000) != cudaSuccess); /* an error that the program leaves behind */
        REFUSED(pnet_conv_forward(b.gpu, &f, &w, NULL, &y, &e), PNET_NO_DEVICE,
            "GPU 0: an earlier call of the program failed");
        CHECK(cudaGetLastError() != cudaSuccess);
    }
    NEED(pnet_conv_forward(b.gpu, &f, &w, NULL, &y, &e));
    end(&b);
    free(b.c.index);
}

int main(void)
{
    if (!gpu_there()) return 77;
    test_refused();
    test_sums();
    test_odd();
    test_all_rows();
    for (int i = 0; i < WAYS; i++) test_recorded(&ways[i]);
    test_order();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
