/* Losses between points on a GPU against those of the CPU, and their gradients; the caller's stream, workspaces and memory;
   recordings in a CUDA graph. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/points_case.h"

enum { DEFAULTS = 7, LOSSES = DEFAULTS + 4 };

/* Every kind with what a model takes by default, then with other numbers. */
static void list_losses(struct pnet_loss_options losses[LOSSES])
{
    static const enum pnet_loss_kind others[LOSSES - DEFAULTS] = {
        PNET_LOSS_CHAMFER, PNET_LOSS_DCD, PNET_LOSS_INFOCD, PNET_LOSS_APML};
    for (int i = 0; i < LOSSES; i++) {
        losses[i].size = sizeof losses[i];
        NEED(pnet_loss_default(
            i < DEFAULTS ? (enum pnet_loss_kind)i : others[i - DEFAULTS], &losses[i], &e));
    }
    struct pnet_loss_options *l = losses + DEFAULTS;
    l[0].squares = 0;
    l[1].alpha = 3;
    l[1].lambda = 0.5;
    l[1].at_least_one = 1;
    l[2].tau = 0.5;
    l[2].sums = 1;
    l[3].p = 0.6;
    l[3].rounds = 3;
    l[3].most = 8;
    l[3].entries = 3;
}

/* A loss of two sets on both devices, with its gradients; those that begin with d_ lie on the GPU. */
struct both {
    const struct gpu_points *x, *y;
    const struct pnet_loss_options *o;
    struct pnet_loss_bytes bytes; /* on the GPU */
    int64_t of_x, of_y;
    float loss, *to_x, *to_y;
    float *d_loss, *d_x, *d_y, *d_factor;
    void *kept;
};

static const float GRADIENT = 0.75F, FACTOR = -2;

static struct both begin(
    const struct gpu_points *x, const struct gpu_points *y, const struct pnet_loss_options *o)
{
    struct both b = {.x = x, .y = y, .o = o, .bytes = {.size = sizeof b.bytes}};
    b.of_x = points_info(x->cpu).rows;
    b.of_y = points_info(y->cpu).rows;
    b.to_x = sets_floats(3 * b.of_x);
    b.to_y = sets_floats(3 * b.of_y);
    b.d_x = gpu_copy(b.to_x, (size_t)b.of_x * 12);
    b.d_y = gpu_copy(b.to_y, (size_t)b.of_y * 12);
    b.d_loss = gpu_room(sizeof *b.d_loss);
    b.d_factor = gpu_copy(&FACTOR, sizeof FACTOR);
    NEED(pnet_loss_workspace(x->gpu, y->gpu, o, &b.bytes, &e));
    b.kept = gpu_room(b.bytes.kept);
    GPU_NEED(cudaDeviceSynchronize());
    return b;
}

static void end(struct both *b)
{
    void *d[] = {b->d_loss, b->d_x, b->d_y, b->d_factor, b->kept};
    for (int i = 0; i < 5; i++) gpu_free(d[i]);
    free(b->to_x);
    free(b->to_y);
}

/* Forward, and the backward on top of what gradients hold; by a factor in memory. */
static enum pnet_status run_gpu(const struct both *b, const struct pnet_loss_run *run, bool add,
    bool by_factor, struct pnet_error *e)
{
    struct pnet_loss_run r = *run;
    struct pnet_array_out to_x = sets_out(b->d_x, b->of_x, 3), to_y = sets_out(b->d_y, b->of_y, 3);
    r.kept = b->kept;
    r.kept_bytes = b->bytes.kept;
    enum pnet_status st = pnet_loss_forward(b->x->gpu, b->y->gpu, b->o, &r, b->d_loss, e);
    r.accumulate = add;
    r.factor = by_factor ? b->d_factor : NULL;
    return st ? st : pnet_loss_backward(b->x->gpu, b->y->gpu, b->o, &r, GRADIENT, &to_x, &to_y, e);
}

static void run_cpu(struct both *b, bool add, bool by_factor)
{
    struct pnet_loss_bytes bytes = {.size = sizeof bytes};
    NEED(pnet_loss_workspace(b->x->cpu, b->y->cpu, b->o, &bytes, &e));
    struct pnet_loss_run r = {
        .size = sizeof r, .kept = sets_room(bytes.kept, 1), .kept_bytes = bytes.kept};
    struct pnet_array_out to_x = sets_out(b->to_x, b->of_x, 3),
                          to_y = sets_out(b->to_y, b->of_y, 3);
    NEED(pnet_loss_forward(b->x->cpu, b->y->cpu, b->o, &r, &b->loss, &e));
    r.accumulate = add;
    r.factor = by_factor ? &FACTOR : NULL;
    NEED(pnet_loss_backward(b->x->cpu, b->y->cpu, b->o, &r, GRADIENT, &to_x, &to_y, &e));
    free(r.kept);
}

/* Sinkhorn and APML compute exponentials in float32, and the former is a difference of numbers of the size of the clouds; the
   others sum terms in double. */
static void check(const struct both *b, const char *what)
{
    bool soft = b->o->kind >= PNET_LOSS_SINKHORN;
    double limit = soft ? 2e-4 : 4e-6;
    float loss;
    gpu_get(&loss, b->d_loss, sizeof loss);
    double error = fabs((double)loss - (double)b->loss), allowed = soft ? 3e-6 : 1e-9,
           x = gpu_difference(b->d_x, b->to_x, 3 * b->of_x, PNET_DTYPE_F32),
           y = gpu_difference(b->d_y, b->to_y, 3 * b->of_y, PNET_DTYPE_F32);
    allowed += limit * fabs((double)b->loss);
    CHECKF(error < allowed && x < 10 * limit && y < 10 * limit,
        "%s: kind %d: %g, not %g; gradients %g and %g", what, (int)b->o->kind, (double)loss,
        (double)b->loss, x, y);
}

static struct points_cloud cloud_of(int64_t rows, bool mixed)
{
    struct points_cloud c = points_fill(rows);
    int64_t *moved = sets_room((size_t)rows, sizeof *moved);
    if (mixed) points_shuffle(&c, moved);
    free(moved);
    return c;
}

/* Both sets have `rows` points; without the mover's distance y may be a level of x. */
static void test_losses(int64_t rows, bool mixed)
{
    enum gpu_given given = mixed ? GPU_COLUMN : GPU_SPLITS;
    struct pnet_loss_options losses[LOSSES];
    struct points_cloud c = cloud_of(rows, mixed), other = cloud_of(rows, mixed);
    struct gpu_points p = gpu_make_points(&c, given, 0, NULL, NULL),
                      q = gpu_make_points(&other, given, 0, NULL, NULL),
                      g = gpu_grid_points(&q, 0.05);
    struct pnet_loss_run run = {.size = sizeof run};
    list_losses(losses);
    for (int k = 0; k < 2 * LOSSES; k++) {
        const struct pnet_loss_options *o = &losses[k / 2];
        bool level = k % 2;
        if (level && o->kind == PNET_LOSS_EMD) continue;
        struct both b = begin(&p, level ? &g : &q, o);
        NEED(run_gpu(&b, &run, level, !level, &e));
        run_cpu(&b, level, !level);
        check(&b, level ? "a level" : "points");
        end(&b);
    }
    gpu_free_points(&p);
    gpu_free_points(&q);
    gpu_free_points(&g);
    points_drop(&c);
    points_drop(&other);
}

/* Recorded once and replayed, with another factor; memory is that of an allocator. */
static void test_recorded(const struct pnet_loss_options *o)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gpu_counts counts = {.stream = stream};
    struct pnet_allocator a = {sizeof a, &counts, gpu_take, gpu_give};
    struct points_cloud c = cloud_of(400, true), other = c;
    other.xyz = sets_floats(3 * c.rows); /* with samples of the same sizes */
    struct gpu_points p = gpu_make_points(&c, GPU_COLUMN, 0, stream, &a),
                      q = gpu_make_points(&other, GPU_COLUMN, 0, stream, &a);
    struct both b = begin(&p, &q, o);
    size_t work = b.bytes.forward > b.bytes.backward ? b.bytes.forward : b.bytes.backward;
    struct pnet_loss_run run = {.size = sizeof run,
        .stream = stream,
        .workspace = gpu_room(work + 256),
        .workspace_bytes = work};
    GPU_NEED(cudaDeviceSynchronize());
    NEED(run_gpu(&b, &run, false, true, &e)); /* the driver loads the kernels */
    long taken = counts.taken;
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NEED(run_gpu(&b, &run, false, true, &e));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphInstantiate(&exec, graph, 0));
    GPU_NEED(cudaMemsetAsync(b.d_x, 0xFF, (size_t)b.of_x * 12, stream));
    GPU_NEED(cudaMemsetAsync(b.d_loss, 0xFF, sizeof *b.d_loss, stream));
    GPU_NEED(cudaGraphLaunch(exec, stream));
    run_cpu(&b, false, true);
    check(&b, "replayed");
    CHECK(counts.taken == taken);
    unsigned char after[256];
    bool whole = true;
    gpu_get(after, (char *)run.workspace + work, sizeof after);
    for (int i = 0; i < 256; i++) whole = whole && after[i] == 0xFF;
    CHECKF(whole, "kind %d: wrote beyond the workspace", (int)o->kind);
    gpu_free(run.workspace);
    run.workspace = NULL;
    NEED(run_gpu(&b, &run, false, true, &e));
    check(&b, "with memory of an allocator");
    CHECK(counts.taken == taken + 2);
    GPU_NEED(cudaGraphExecDestroy(exec));
    GPU_NEED(cudaGraphDestroy(graph));
    gpu_free_points(&p);
    gpu_free_points(&q);
    CHECKF(counts.taken == counts.given && !counts.bytes && !counts.wrong,
        "kind %d: %ld taken, %ld given", (int)o->kind, counts.taken, counts.given);
    end(&b);
    free(other.xyz);
    points_drop(&c);
    GPU_NEED(cudaStreamDestroy(stream));
}

static void test_refused(void)
{
    struct points_cloud c = cloud_of(60, false), other = cloud_of(61, false);
    struct gpu_points p = gpu_make_points(&c, GPU_SPLITS, 0, NULL, NULL),
                      q = gpu_make_points(&other, GPU_SPLITS, 0, NULL, NULL);
    struct pnet_loss_options o = {.size = sizeof o};
    struct pnet_loss_run r = {.size = sizeof r};
    float loss, *d = gpu_room(60 * 12);
    struct pnet_array_out host = sets_out(c.xyz, 60, 3), device = sets_out(d, 60, 3);
    NEED(pnet_loss_default(PNET_LOSS_EMD, &o, &e));
    REFUSED(pnet_loss_forward(p.gpu, q.gpu, &o, NULL, d, &e), PNET_BAD_DATA,
        "this loss needs as many points in y as in x");
    NEED(pnet_loss_default(PNET_LOSS_CHAMFER, &o, &e));
    REFUSED(pnet_loss_forward(p.gpu, q.cpu, &o, NULL, d, &e), PNET_USAGE, "on different devices");
    REFUSED(pnet_loss_forward(p.gpu, q.gpu, &o, NULL, &loss, &e), PNET_USAGE,
        "loss: `data` is no memory of GPU 0");
    r.kept = c.xyz;
    r.kept_bytes = 1 << 20;
    REFUSED(pnet_loss_forward(p.gpu, q.gpu, &o, &r, d, &e), PNET_USAGE,
        "kept: `data` is no memory of GPU 0");
    REFUSED(pnet_loss_backward(p.gpu, q.gpu, &o, &r, 1, &host, NULL, &e), PNET_USAGE,
        "to_x: `data` is no memory of GPU 0");
    r.kept = NULL;
    REFUSED(pnet_loss_backward(p.gpu, q.gpu, &o, &r, 1, &device, NULL, &e), PNET_USAGE, "kept:");
    r.factor = d;
    REFUSED(
        pnet_loss_forward(p.gpu, q.gpu, &o, &r, d, &e), PNET_USAGE, "factor: the backward alone");
    gpu_free(d);
    gpu_free_points(&p);
    gpu_free_points(&q);
    points_drop(&c);
    points_drop(&other);
}

int main(void)
{
    struct pnet_loss_options losses[LOSSES];
    if (!gpu_there()) return 77;
    test_refused();
    test_losses(3, false);
    test_losses(90, true);
    test_losses(1200, false);
    test_losses(1200, true);
    list_losses(losses);
    for (int k = 0; k < LOSSES; k++) test_recorded(&losses[k]);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
