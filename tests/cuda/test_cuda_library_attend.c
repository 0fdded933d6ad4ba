/* Attention in buckets on a GPU against that of the CPU: every order, forward and backward, in float32 and 16 bits; the caller's
   stream, workspaces and memory; recordings in a CUDA graph. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/points_case.h"

/* Limits of the 2-norm of differences: twice those of the kernels (test_cuda_attend.c), whose backward reads results that were
   rounded. */
static const struct stored {
    const char *name;
    enum pnet_dtype dtype;
    double limit;
} types[] = {{"float32", PNET_DTYPE_F32, 2e-6}, {"bf16", PNET_DTYPE_BF16, 1e-2},
    {"fp16", PNET_DTYPE_F16, 2e-3}};

/* Buckets on both devices, and arrays of a call. */
struct both {
    const struct pnet_buckets *cpu, *gpu;
    const struct stored *type;
    int64_t rows;
    int32_t heads, channels;
    float *qkv, *out, *gradient, *back, *log_sum;
    void *d_qkv, *d_out, *d_gradient, *d_back, *d_log_sum;
};

static struct both begin(const struct pnet_buckets *cpu, const struct pnet_buckets *gpu,
    int64_t rows, int32_t heads, int32_t channels, const struct stored *type)
{
    struct both b = {
        .cpu = cpu, .gpu = gpu, .type = type, .rows = rows, .heads = heads, .channels = channels};
    int64_t n = rows * channels;
    b.qkv = sets_floats(3 * n);
    b.out = sets_floats(n);
    b.gradient = sets_floats(n);
    b.back = sets_floats(3 * n);
    b.log_sum = sets_floats(rows * heads);
    b.d_qkv = gpu_put_floats(b.qkv, 3 * n, type->dtype);
    b.d_gradient = gpu_put_floats(b.gradient, n, type->dtype);
    b.d_back = gpu_put_floats(b.back, 3 * n, type->dtype);
    b.d_out = gpu_room((size_t)n * 4);
    b.d_log_sum = gpu_room((size_t)(rows * heads) * 4);
    GPU_NEED(cudaDeviceSynchronize());
    return b;
}

static void end(struct both *b)
{
    void *d[] = {b->d_qkv, b->d_out, b->d_gradient, b->d_back, b->d_log_sum};
    for (int i = 0; i < 5; i++) gpu_free(d[i]);
    free(b->qkv);
    free(b->out);
    free(b->gradient);
    free(b->back);
    free(b->log_sum);
}

static enum pnet_status run_gpu(
    const struct both *b, const struct pnet_attend_options *options, bool add, struct pnet_error *e)
{
    struct pnet_attend_options o = *options;
    enum pnet_dtype t = b->type->dtype;
    int64_t c = b->channels;
    struct pnet_array qkv = {b->d_qkv, t, b->rows, 3 * c, 0}, out = {b->d_out, t, b->rows, c, 0},
                      g = {b->d_gradient, t, b->rows, c, 0};
    struct pnet_array_out to = {b->d_out, t, b->rows, c, 0},
                          into = {b->d_back, t, b->rows, 3 * c, 0};
    o.heads = b->heads;
    o.log_sum = b->d_log_sum;
    enum pnet_status st = pnet_attend_forward(b->gpu, &qkv, &o, &to, e);
    o.accumulate = add;
    return st ? st : pnet_attend_backward(b->gpu, &qkv, &out, &g, &o, &into, e);
}

static void run_cpu(const struct both *b, bool add)
{
    struct pnet_attend_options o = {.size = sizeof o, .heads = b->heads, .log_sum = b->log_sum};
    int64_t c = b->channels;
    struct pnet_array qkv = sets_array(b->qkv, b->rows, 3 * c),
                      out = sets_array(b->out, b->rows, c), g = sets_array(b->gradient, b->rows, c);
    struct pnet_array_out to = sets_out(b->out, b->rows, c),
                          into = sets_out(b->back, b->rows, 3 * c);
    NEED(pnet_attend_forward(b->cpu, &qkv, &o, &to, &e));
    o.accumulate = add;
    NEED(pnet_attend_backward(b->cpu, &qkv, &out, &g, &o, &into, &e));
}

static void check(const struct both *b, const char *what)
{
    enum pnet_dtype t = b->type->dtype;
    int64_t n = b->rows * b->channels;
    double out = gpu_difference(b->d_out, b->out, n, t),
           back = gpu_difference(b->d_back, b->back, 3 * n, t);
    CHECKF(out < b->type->limit && back < 2 * b->type->limit,
        "%s: %d heads of %d channels, %s: %g, gradients %g", what, (int)b->heads,
        (int)(b->channels / b->heads), b->type->name, out, back);
}

#define BUCKETS(...)                                                                               \
    {                                                                                              \
        .size = sizeof(struct pnet_buckets_options), __VA_ARGS__                                   \
    }
static const struct pnet_buckets_options ways[] = {BUCKETS(.order = PNET_BUCKETS_Z),
    BUCKETS(.order = PNET_BUCKETS_Z, .bucket = 16, .scope = 3, .shift = 4, .stride = 2),
    BUCKETS(.order = PNET_BUCKETS_Z_TRANS, .bucket = 32, .scope = 1, .cell = 0.02),
    BUCKETS(.order = PNET_BUCKETS_HILBERT, .bucket = 64, .scope = 2, .shift = 1, .wrap = 1,
        .cell = 0.03),
    BUCKETS(.order = PNET_BUCKETS_HILBERT_TRANS, .bucket = 48, .cell = 0.05),
    BUCKETS(.order = PNET_BUCKETS_XOR_DIV, .bucket = 128, .scope = 2, .cell = 0.02),
    BUCKETS(.order = PNET_BUCKETS_XOR_MOD, .bucket = 128, .scope = 3, .stride = 2, .cell = 0.04),
    BUCKETS(.order = PNET_BUCKETS_Z_MOD, .bucket = 256, .cell = 0.02)};
enum { WAYS = sizeof ways / sizeof ways[0] };

static struct pnet_buckets *buckets_of(
    const struct pnet_points *p, const struct pnet_buckets_options *o)
{
    struct pnet_buckets *b = NULL;
    NEED(pnet_buckets_new(p, o, &b, &e));
    return b;
}

static struct points_cloud cloud_of(int64_t rows, bool mixed)
{
    struct points_cloud c = points_fill(rows);
    int64_t *moved = sets_room((size_t)rows, sizeof *moved);
    if (mixed) points_shuffle(&c, moved);
    free(moved);
    return c;
}

/* Each order on points and, with its own cells, on a level. */
static void test_ways(int64_t rows, bool mixed)
{
    static const int32_t heads[] = {1, 2, 4, 1, 2, 3, 1, 2},
                         channels[] = {16, 32, 32, 32, 128, 24, 128, 16};
    struct points_cloud c = cloud_of(rows, mixed);
    struct gpu_points p = gpu_make_points(&c, mixed ? GPU_COLUMN : GPU_SPLITS, 0, NULL, NULL),
                      g = gpu_grid_points(&p, 0.04);
    struct pnet_attend_options run = {.size = sizeof run};
    for (int k = 0; k < 2 * WAYS; k++)
        for (int t = 0; t < 3; t++) {
            struct pnet_buckets_options o = ways[k / 2];
            const struct gpu_points *on = k % 2 ? &g : &p;
            if (k % 2) o.cell = 0;
            struct pnet_buckets *cpu = buckets_of(on->cpu, &o), *gpu = buckets_of(on->gpu, &o);
            struct both b = begin(
                cpu, gpu, points_info(on->cpu).rows, heads[k / 2], channels[k / 2], &types[t]);
            NEED(run_gpu(&b, &run, k % 4 == 0, &e));
            run_cpu(&b, k % 4 == 0);
            check(&b, k % 2 ? "level" : "points");
            end(&b);
            pnet_buckets_free(cpu);
            pnet_buckets_free(gpu);
        }
    gpu_free_points(&p);
    gpu_free_points(&g);
    points_drop(&c);
}

/* Recorded once and replayed on other features, in the order of the stream; memory is that of an allocator. */
static void test_recorded(const struct pnet_buckets_options *way, const struct stored *type)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gpu_counts counts = {.stream = stream};
    struct pnet_allocator a = {sizeof a, &counts, gpu_take, gpu_give};
    struct points_cloud c = cloud_of(2500, true);
    struct gpu_points p = gpu_make_points(&c, GPU_COLUMN, 0, stream, &a);
    struct pnet_buckets *cpu = buckets_of(p.cpu, way), *gpu = buckets_of(p.gpu, way);
    gpu_free_points(&p); /* the buckets keep nothing of them */
    struct both b = begin(cpu, gpu, c.rows, 2, 32, type);
    struct pnet_attend_options o = {.size = sizeof o, .stream = stream};
    size_t bytes = (size_t)(3 * b.rows * b.channels) * gpu_element(type->dtype);
    NEED(pnet_attend_workspace(gpu, 1, 2, 32, &o.workspace_bytes, &e));
    size_t forward, work = o.workspace_bytes;
    NEED(pnet_attend_workspace(gpu, 0, 2, 32, &forward, &e));
    CHECK(forward <= work);
    o.workspace = gpu_room(work + 256);
    GPU_NEED(cudaDeviceSynchronize());
    NEED(run_gpu(&b, &o, false, &e)); /* the driver loads the kernels */
    long taken = counts.taken;
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NEED(run_gpu(&b, &o, false, &e));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphInstantiate(&exec, graph, 0));
    for (int replay = 0; replay < 2; replay++) {
        for (int64_t i = 0; i < 3 * b.rows * b.channels; i++) b.qkv[i] = sets_float();
        void *other = gpu_put_floats(b.qkv, 3 * b.rows * b.channels, type->dtype);
        GPU_NEED(cudaDeviceSynchronize());
        GPU_NEED(cudaMemcpyAsync(b.d_qkv, other, bytes, cudaMemcpyDeviceToDevice, stream));
        GPU_NEED(cudaGraphLaunch(exec, stream));
        run_cpu(&b, false);
        check(&b, "replayed");
        gpu_free(other);
    }
    CHECK(counts.taken == taken);
    unsigned char after[256];
    bool whole = true;
    gpu_get(after, (char *)o.workspace + work, sizeof after);
    for (int i = 0; i < 256; i++) whole = whole && after[i] == 0xFF;
    CHECKF(whole, "%s: wrote beyond the workspace", type->name);
    gpu_free(o.workspace);
    o.workspace = NULL;
    NEED(run_gpu(&b, &o, false, &e));
    check(&b, "with memory of an allocator");
    CHECK(counts.taken == taken + 2);
    GPU_NEED(cudaGraphExecDestroy(exec));
    GPU_NEED(cudaGraphDestroy(graph));
    pnet_buckets_free(cpu);
    pnet_buckets_free(gpu);
    CHECKF(counts.taken == counts.given && !counts.bytes && !counts.wrong, "%ld taken, %ld given",
        counts.taken, counts.given);
    end(&b);
    points_drop(&c);
    GPU_NEED(cudaStreamDestroy(stream));
}

static void test_refused(void)
{
    struct points_cloud c = cloud_of(40, false);
    c.xyz[0] = 2000;
    struct gpu_points p = gpu_make_points(&c, GPU_SPLITS, 0, NULL, NULL);
    struct pnet_buckets_options o = BUCKETS(.order = PNET_BUCKETS_HILBERT, .cell = 1e-3);
    struct pnet_buckets *none = NULL, *b = buckets_of(p.gpu, NULL);
    struct pnet_error cpu, gpu;
    CHECK(pnet_buckets_new(p.cpu, &o, &none, &cpu) == PNET_BAD_DATA &&
          pnet_buckets_new(p.gpu, &o, &none, &gpu) == PNET_BAD_DATA && !none &&
          strcmp(cpu.message, gpu.message) == 0);
    float *d = gpu_room(40 * 48 * 4);
    struct pnet_array host = sets_array(c.f, 40, 24), x = sets_array(d, 40, 24), bad = x;
    struct pnet_array_out to = sets_out(d, 40, 8);
    struct pnet_attend_options run = {.size = sizeof run, .workspace = d, .workspace_bytes = 1};
    REFUSED(pnet_attend_forward(b, &host, NULL, &to, &e), PNET_USAGE,
        "qkv: `data` is no memory of GPU 0");
    bad.dtype = PNET_DTYPE_I64;
    REFUSED(pnet_attend_forward(b, &bad, NULL, &to, &e), PNET_USAGE, "qkv: dtype 2");
    bad.dtype = PNET_DTYPE_BF16;
    REFUSED(pnet_attend_forward(b, &bad, NULL, &to, &e), PNET_USAGE, "result: dtype 0");
    REFUSED(pnet_attend_forward(b, &x, &run, &to, &e), PNET_USAGE, "pnet_attend_workspace");
    run = (struct pnet_attend_options){.size = sizeof run, .log_sum = c.f};
    REFUSED(pnet_attend_forward(b, &x, &run, &to, &e), PNET_USAGE,
        "log_sum: `data` is no memory of GPU 0");
    pnet_buckets_free(b);
    gpu_free(d);
    gpu_free_points(&p);
    points_drop(&c);
}

int main(void)
{
    if (!gpu_there()) return 77;
    test_refused();
    test_ways(1, false);
    test_ways(50, true);
    test_ways(2000, false);
    test_ways(2000, true);
    for (int t = 0; t < 3; t++) {
        test_recorded(&ways[1], &types[t]);
        test_recorded(&ways[3], &types[t]);
    }
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
