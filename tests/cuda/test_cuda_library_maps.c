/* Maps between points on a GPU against those of the CPU: pooling, upsampling, interpolation, forward and backward, in float32 and
   16 bits; the caller's stream, workspaces and memory; recordings in a CUDA graph. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/points_case.h"

/* Sums of float32 are formed in other orders, and 16 bits are rounded to once. */
static const struct stored {
    const char *name;
    enum pnet_dtype dtype;
    double limit;
} types[] = {{"float32", PNET_DTYPE_F32, 4e-6}, {"bf16", PNET_DTYPE_BF16, 8e-3},
    {"fp16", PNET_DTYPE_F16, 1e-3}};

/* A map on both devices, and arrays of a call; those that begin with d_ lie on the GPU. */
struct both {
    const struct pnet_map *cpu, *gpu;
    const struct stored *type;
    enum pnet_map_kind kind;
    int64_t rows_in, rows_out, width;
    float *x, *y, *g, *gx;
    int32_t *argmax;
    void *d_x, *d_y, *d_g, *d_gx;
    int32_t *d_argmax;
};

static struct both begin(const struct gpu_points *out, const struct gpu_points *in,
    const struct pnet_map *cpu, const struct pnet_map *gpu, enum pnet_map_kind kind, int64_t width,
    const struct stored *type)
{
    struct both b = {.cpu = cpu, .gpu = gpu, .type = type, .kind = kind, .width = width};
    b.rows_in = points_info(in->cpu).rows;
    b.rows_out = points_info(out->cpu).rows;
    int64_t of_in = b.rows_in * width, of_out = b.rows_out * width;
    b.x = sets_floats(of_in);
    b.gx = sets_floats(of_in);
    b.y = sets_floats(of_out);
    b.g = sets_floats(of_out);
    for (int64_t i = 0; i < of_in; i++) b.x[i] = floorf(b.x[i] * 8) / 8; /* many are equal */
    b.argmax = sets_room((size_t)of_out, sizeof *b.argmax);
    b.d_x = gpu_put_floats(b.x, of_in, type->dtype);
    b.d_gx = gpu_put_floats(b.gx, of_in, type->dtype);
    b.d_g = gpu_put_floats(b.g, of_out, type->dtype);
    b.d_y = gpu_room((size_t)of_out * 4);
    b.d_argmax = gpu_room((size_t)of_out * sizeof(int32_t));
    GPU_NEED(cudaDeviceSynchronize());
    return b;
}

static void end(struct both *b)
{
    void *d[] = {b->d_x, b->d_y, b->d_g, b->d_gx, b->d_argmax};
    for (int i = 0; i < 5; i++) gpu_free(d[i]);
    free(b->x);
    free(b->y);
    free(b->g);
    free(b->gx);
    free(b->argmax);
}

/* Forward, and the backward on top of what its result holds. */
static enum pnet_status run_gpu(
    const struct both *b, const struct pnet_map_run *options, bool add, struct pnet_error *e)
{
    struct pnet_map_run o = *options;
    enum pnet_dtype t = b->type->dtype;
    struct pnet_array from = {b->d_x, t, b->rows_in, b->width, 0},
                      of = {b->d_g, t, b->rows_out, b->width, 0};
    struct pnet_array_out to = {b->d_y, t, b->rows_out, b->width, 0},
                          into = {b->d_gx, t, b->rows_in, b->width, 0};
    o.argmax = b->kind == PNET_MAP_MAX ? b->d_argmax : NULL;
    enum pnet_status st = pnet_map_forward(b->gpu, &from, &o, &to, e);
    o.accumulate = add;
    return st ? st : pnet_map_backward(b->gpu, &of, &o, &into, e);
}

static void run_cpu(const struct both *b, bool add)
{
    struct pnet_map_run o = {.size = sizeof o, .argmax = b->argmax};
    struct pnet_array from = sets_array(b->x, b->rows_in, b->width),
                      of = sets_array(b->g, b->rows_out, b->width);
    struct pnet_array_out to = sets_out(b->y, b->rows_out, b->width),
                          into = sets_out(b->gx, b->rows_in, b->width);
    NEED(pnet_map_forward(b->cpu, &from, &o, &to, &e));
    o.accumulate = add;
    NEED(pnet_map_backward(b->cpu, &of, &o, &into, &e));
}

static void check(const struct both *b, const char *what)
{
    enum pnet_dtype t = b->type->dtype;
    double y = gpu_difference(b->d_y, b->y, b->rows_out * b->width, t),
           x = gpu_difference(b->d_gx, b->gx, b->rows_in * b->width, t);
    /* maxima, and rows of cells, are picked, not computed */
    double limit = b->kind == PNET_MAP_MAX || b->kind == PNET_MAP_PARENT ? 1e-30 : b->type->limit;
    CHECKF(y < limit && x < b->type->limit, "%s: kind %d, %d channels, %s: %g, gradients %g", what,
        (int)b->kind, (int)b->width, b->type->name, y, x);
    if (b->kind != PNET_MAP_MAX) return;
    size_t bytes = (size_t)(b->rows_out * b->width) * sizeof(int32_t);
    int32_t *from = sets_room(bytes, 1);
    gpu_get(from, b->d_argmax, bytes);
    CHECKF(memcmp(from, b->argmax, bytes) == 0, "%s: %d channels, %s: rows of maxima differ", what,
        (int)b->width, b->type->name);
    free(from);
}

static struct pnet_map *map_of(
    const struct pnet_points *out, const struct pnet_points *in, const struct pnet_map_options *o)
{
    struct pnet_map *map = NULL;
    NEED(pnet_map_new(out, in, o, &map, &e));
    return map;
}

/* All widths and types of a map. */
static void compare(const struct gpu_points *out, const struct gpu_points *in,
    const struct pnet_map_options *o, const char *what)
{
    static const int64_t widths[] = {1, 3, 4, 8, 21, 64};
    struct pnet_map *cpu = map_of(out->cpu, in->cpu, o), *gpu = map_of(out->gpu, in->gpu, o);
    struct pnet_map_run run = {.size = sizeof run};
    for (int w = 0; w < 6; w++)
        for (int t = 0; t < 3; t++) {
            struct both b = begin(out, in, cpu, gpu, o->kind, widths[w], &types[t]);
            NEED(run_gpu(&b, &run, w % 2 == 0, &e));
            run_cpu(&b, w % 2 == 0);
            check(&b, what);
            end(&b);
        }
    pnet_map_free(cpu);
    pnet_map_free(gpu);
}

static struct points_cloud cloud_of(int64_t rows, bool mixed)
{
    struct points_cloud c = points_fill(rows);
    int64_t *moved = sets_room((size_t)rows, sizeof *moved);
    if (mixed) points_shuffle(&c, moved);
    free(moved);
    return c;
}

static void test_maps(int64_t rows, bool mixed)
{
    enum gpu_given given = mixed ? GPU_COLUMN : GPU_SPLITS;
    struct points_cloud c = cloud_of(rows, mixed), other = cloud_of(rows / 2 + 1, mixed);
    struct gpu_points p = gpu_make_points(&c, given, 0.08, NULL, NULL),
                      q = gpu_make_points(&other, given, 0, NULL, NULL),
                      g = gpu_grid_points(&p, 0.08), h = gpu_grid_points(&g, 0.16);
    for (int kind = PNET_MAP_MEAN; kind <= PNET_MAP_SUM; kind++) {
        struct pnet_map_options o = {.size = sizeof o, .kind = (enum pnet_map_kind)kind};
        compare(&g, &p, &o, "points to level");
        compare(&h, &g, &o, "level to level");
        compare(&h, &p, &o, "points to the second level"); /* cells of hundreds */
    }
    struct pnet_map_options o = {.size = sizeof o, .kind = PNET_MAP_PARENT};
    compare(&p, &g, &o, "level to points");
    compare(&g, &h, &o, "level to finer level");
    for (int k = 0; k < 3; k++) {
        o = (struct pnet_map_options){
            .size = sizeof o, .kind = PNET_MAP_INVERSE_DISTANCE, .k = k == 2 ? 20 : k};
        compare(&p, &g, &o, "nearest of a level");
        compare(&g, &p, &o, "nearest points");
        compare(&q, &p, &o, "nearest points of another cloud");
    }
    for (int kind = PNET_MAP_TRILINEAR; kind <= PNET_MAP_NEAREST; kind++)
        for (int outside = 0; outside < 2; outside++) {
            o = (struct pnet_map_options){
                .size = sizeof o, .kind = (enum pnet_map_kind)kind, .outside_nearest = outside};
            compare(&p, &g, &o, "corners at points");
            compare(&q, &h, &o, "corners at points of another cloud");
            compare(&h, &g, &o, "corners at a level");
        }
    gpu_free_points(&p);
    gpu_free_points(&q);
    gpu_free_points(&g);
    gpu_free_points(&h);
    points_drop(&c);
    points_drop(&other);
}

static const struct pnet_map_options kinds[] = {{sizeof kinds[0], PNET_MAP_MEAN, 0, 0},
    {sizeof kinds[0], PNET_MAP_MAX, 0, 0}, {sizeof kinds[0], PNET_MAP_SUM, 0, 0},
    {sizeof kinds[0], PNET_MAP_PARENT, 0, 0}, {sizeof kinds[0], PNET_MAP_INVERSE_DISTANCE, 5, 0},
    {sizeof kinds[0], PNET_MAP_TRILINEAR, 0, 1}, {sizeof kinds[0], PNET_MAP_NEAREST, 0, 0}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* A workspace for both directions, and a canary behind it. */
static size_t take_workspace(const struct both *b, struct pnet_map_run *o)
{
    size_t forward, backward;
    NEED(pnet_map_workspace(b->gpu, 0, (int32_t)b->width, &forward, &e));
    NEED(pnet_map_workspace(b->gpu, 1, (int32_t)b->width, &backward, &e));
    o->workspace_bytes = forward > backward ? forward : backward;
    o->workspace = gpu_room(o->workspace_bytes + 256);
    return o->workspace_bytes;
}

/* Recorded once and replayed on other features, in the order of the stream; memory is that of an allocator. */
static void test_recorded(const struct pnet_map_options *kind, const struct stored *type)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gpu_counts counts = {.stream = stream};
    struct pnet_allocator a = {sizeof a, &counts, gpu_take, gpu_give};
    struct points_cloud c = cloud_of(3000, true);
    struct gpu_points p = gpu_make_points(&c, GPU_COLUMN, 0.08, stream, &a),
                      g = gpu_grid_points(&p, 0.08);
    bool up = kind->kind >= PNET_MAP_PARENT;
    const struct gpu_points *out = up ? &p : &g, *in = up ? &g : &p;
    struct pnet_map *cpu = map_of(out->cpu, in->cpu, kind), *gpu = map_of(out->gpu, in->gpu, kind);
    struct both b = begin(out, in, cpu, gpu, kind->kind, 32, type);
    gpu_free_points(&p); /* the map keeps nothing of them */
    gpu_free_points(&g);
    struct pnet_map_run o = {.size = sizeof o, .stream = stream};
    size_t bytes = (size_t)(b.rows_in * b.width) * gpu_element(type->dtype);
    size_t work = take_workspace(&b, &o);
    GPU_NEED(cudaDeviceSynchronize());
    NEED(run_gpu(&b, &o, false, &e)); /* the driver loads the kernels */
    long taken = counts.taken;
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NEED(run_gpu(&b, &o, false, &e));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphInstantiate(&exec, graph, 0));
    for (int replay = 0; replay < 2; replay++) {
        for (int64_t i = 0; i < b.rows_in * b.width; i++) b.x[i] = floorf(sets_float() * 8) / 8;
        void *other = gpu_put_floats(b.x, b.rows_in * b.width, type->dtype);
        GPU_NEED(cudaDeviceSynchronize());
        GPU_NEED(cudaMemcpyAsync(b.d_x, other, bytes, cudaMemcpyDeviceToDevice, stream));
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
    CHECKF(whole, "kind %d: wrote beyond the workspace", (int)kind->kind);
    gpu_free(o.workspace);
    o.workspace = NULL;
    NEED(run_gpu(&b, &o, false, &e));
    check(&b, "with memory of an allocator");
    GPU_NEED(cudaGraphExecDestroy(exec));
    GPU_NEED(cudaGraphDestroy(graph));
    pnet_map_free(cpu);
    pnet_map_free(gpu);
    CHECKF(counts.taken == counts.given && !counts.bytes && !counts.wrong,
        "kind %d: %ld taken, %ld given", (int)kind->kind, counts.taken, counts.given);
    end(&b);
    points_drop(&c);
    GPU_NEED(cudaStreamDestroy(stream));
}

static void test_refused(void)
{
    struct points_cloud c = cloud_of(500, false);
    struct gpu_points p = gpu_make_points(&c, GPU_SPLITS, 0.1, NULL, NULL),
                      g = gpu_grid_points(&p, 0.1);
    struct pnet_map *map = map_of(p.gpu, g.gpu, &kinds[4]), *none = NULL;
    int64_t in = points_info(g.cpu).rows;
    float *d = gpu_room(500 * 8 * 4), *r = gpu_room(500 * 8 * 4);
    struct pnet_array from = sets_array(d, 500, 8), bad = from;
    struct pnet_array_out to = sets_out(r, in, 8);
    struct pnet_map_run o = {.size = sizeof o, .workspace = d, .workspace_bytes = 16};
    bad.data = c.f;
    REFUSED(pnet_map_backward(map, &bad, NULL, &to, &e), PNET_USAGE,
        "gradient: `data` is no memory of GPU 0");
    bad.data = d + 1;
    REFUSED(pnet_map_backward(map, &bad, NULL, &to, &e), PNET_USAGE, "aligned to 16 bytes");
    bad = from;
    bad.dtype = PNET_DTYPE_I32;
    REFUSED(pnet_map_backward(map, &bad, NULL, &to, &e), PNET_USAGE, "gradient: dtype 1");
    bad.dtype = PNET_DTYPE_F16;
    REFUSED(pnet_map_backward(map, &bad, NULL, &to, &e), PNET_USAGE, "result: dtype 0");
    REFUSED(pnet_map_backward(map, &from, &o, &to, &e), PNET_USAGE, "workspace_bytes: 16");
    REFUSED(pnet_map_new(p.gpu, g.gpu, &kinds[0], &none, &e), PNET_USAGE, "`out` was not sampled");
    CHECK(!none);
    pnet_map_free(map);
    gpu_free(d);
    gpu_free(r);
    gpu_free_points(&p);
    gpu_free_points(&g);
    points_drop(&c);
}

int main(void)
{
    if (!gpu_there()) return 77;
    test_refused();
    test_maps(1, false);
    test_maps(40, true);
    test_maps(3000, false);
    test_maps(3000, true);
    for (int kind = 0; kind < KINDS; kind++)
        for (int t = 0; t < 3; t++) test_recorded(&kinds[kind], &types[t]);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
