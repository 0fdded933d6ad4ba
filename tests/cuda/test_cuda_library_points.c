/* Points, levels and sets between them on a GPU: the same bits as on the CPU, the same errors, the caller's stream and memory. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/points_case.h"

/* A cloud whose samples are together or not, as `given` needs it. */
static struct points_cloud cloud_for(enum gpu_given given, int64_t rows)
{
    struct points_cloud c = points_fill(rows);
    if (given == GPU_COLUMN || given == GPU_WIDE_COLUMN) {
        int64_t *moved = sets_room((size_t)rows, sizeof *moved);
        points_shuffle(&c, moved);
        free(moved);
    }
    return c;
}

/* All ways to give samples, along both curves; no point, one, few, many. */
static void test_points(void)
{
    static const int64_t sizes[] = {0, 1, 5, 700, 30000};
    static const double cells[] = {0, 0.05};
    for (int n = 0; n < 5; n++)
        for (int given = 0; given < GPU_GIVEN; given++)
            for (int k = 0; k < 2; k++) {
                struct points_cloud c = cloud_for((enum gpu_given)given, sizes[n]);
                struct gpu_points p =
                    gpu_make_points(&c, (enum gpu_given)given, cells[k], NULL, NULL);
                CHECKF(gpu_same_points(&p) && gpu_same_parents(&p, &p),
                    "%d points given by %d, cell %g, differ", (int)sizes[n], given, cells[k]);
                gpu_free_points(&p);
                points_drop(&c);
            }
    /* points that lie along the curve already */
    struct points_cloud c = points_fill(2000);
    struct gpu_points p = gpu_make_points(&c, GPU_SPLITS, 0.1, NULL, NULL);
    struct gpu_points level = gpu_grid_points(&p, 0.1);
    struct points_cloud along = points_fill(points_info(level.cpu).rows);
    float *xyz = points_positions(level.cpu);
    memcpy(along.xyz, xyz, (size_t)along.rows * 12);
    free(xyz);
    struct gpu_points q = gpu_make_points(&along, GPU_ONE, 0, NULL, NULL);
    CHECK(gpu_same_points(&q));
    gpu_free_points(&p);
    gpu_free_points(&level);
    gpu_free_points(&q);
    points_drop(&c);
    points_drop(&along);
}

enum { LEVELS = 4 };

/* A chain of levels on points along the grid `along`: each sampled from the one before, the last one from the points. */
static void test_levels(enum gpu_given given, int64_t rows, double along)
{
    static const double cells[LEVELS] = {0.06, 0.12, 0.36, 0.09};
    struct points_cloud c = cloud_for(given, rows);
    struct gpu_points p = gpu_make_points(&c, given, along, NULL, NULL), level[LEVELS];
    for (int n = 0; n < LEVELS; n++) {
        level[n] = gpu_grid_points(n == 0 || n == LEVELS - 1 ? &p : &level[n - 1], cells[n]);
        CHECKF(gpu_same_points(&level[n]) && gpu_same_parents(&p, &level[n]),
            "%d points given by %d along %g: level %d differs", (int)rows, given, along, n);
        if (n > 0 && n < LEVELS - 1) CHECK(gpu_same_parents(&level[0], &level[n]));
    }
    /* the level itself once more */
    struct pnet_points *again = NULL;
    NEED(pnet_points_grid(level[1].gpu, 0.12, &again, &e));
    CHECK(again == level[1].gpu);
    pnet_points_free(again);
    gpu_free_points(&p); /* levels keep what they were sampled from */
    for (int n = 0; n < LEVELS; n++) {
        CHECK(gpu_same_points(&level[n]));
        gpu_free_points(&level[n]);
    }
    points_drop(&c);
}

/* A set on both devices, and its inverse; and its convolution. */
static void compare(const struct gpu_points *out, const struct gpu_points *in,
    const struct pnet_near_options *o, const char *what)
{
    struct pnet_set *cpu = NULL, *gpu = NULL, *back[2];
    struct pnet_error why[2] = {{PNET_OK, ""}, {PNET_OK, ""}};
    enum pnet_status want = pnet_set_points(out->cpu, in->cpu, o, &cpu, &why[0]),
                     got = pnet_set_points(out->gpu, in->gpu, o, &gpu, &why[1]);
    CHECKF(got == want && strcmp(why[0].message, why[1].message) == 0, "%s: \"%s\" and \"%s\"",
        what, why[0].message, why[1].message);
    if (want || got) return;
    CHECKF(gpu_same(gpu, cpu),
        "%s: kernel %d, radius %g, knn %d, shape %d, degrade %d: sets differ", what, (int)o->kernel,
        o->radius, (int)o->knn, (int)o->shape, (int)o->degrade);
    NEED(pnet_set_inverse(cpu, &back[0], &e));
    NEED(pnet_set_inverse(gpu, &back[1], &e));
    CHECKF(gpu_same(back[1], back[0]), "%s: kernel %d: inverse sets differ", what, (int)o->kernel);
    struct pnet_set_info i = sets_info(cpu);
    int64_t taps = 8 * (int64_t)i.taps;
    float *x = sets_floats(i.rows_in * 8), *w = sets_floats(taps * 16),
          *y = sets_floats(i.rows_out * 16);
    float *dx = gpu_copy(x, (size_t)i.rows_in * 8 * 4), *dw = gpu_copy(w, (size_t)taps * 16 * 4),
          *dy = gpu_room((size_t)i.rows_out * 16 * 4);
    struct pnet_array from = sets_array(x, i.rows_in, 8), weights = sets_array(w, taps, 16),
                      d_from = sets_array(dx, i.rows_in, 8), d_weights = sets_array(dw, taps, 16);
    struct pnet_array_out to = sets_out(y, i.rows_out, 16), d_to = sets_out(dy, i.rows_out, 16);
    NEED(pnet_conv_forward(cpu, &from, &weights, NULL, &to, &e));
    NEED(pnet_conv_forward(gpu, &d_from, &d_weights, NULL, &d_to, &e));
    double error = gpu_difference(dy, y, i.rows_out * 16, PNET_DTYPE_F32);
    CHECKF(error < 2e-6, "%s: sums differ by %g", what, error);
    pnet_set_free(cpu);
    pnet_set_free(gpu); /* the inverse sets keep them */
    pnet_set_free(back[0]);
    pnet_set_free(back[1]);
    free(x);
    free(w);
    free(y);
    gpu_free(dx);
    gpu_free(dw);
    gpu_free(dy);
}

static void test_sets(enum gpu_given given, int64_t rows)
{
    static const struct pnet_near_options options[] = {
        {sizeof options[0], 3, 0.08, 0, PNET_NEAR_BALL, 0},
        {sizeof options[0], 5, 0.06, 0, PNET_NEAR_CUBE, 0},
        {sizeof options[0], 3, 0, 12, PNET_NEAR_BALL, 0},
        {sizeof options[0], 3, 0, 70, PNET_NEAR_BALL, 0},
        {sizeof options[0], 1, 0, 0, PNET_NEAR_BALL, 0},
        {sizeof options[0], 3, 0, 0, PNET_NEAR_BALL, 0},
        {sizeof options[0], 3, 0, 0, PNET_NEAR_BALL, PNET_DEGRADE_VOXEL},
        {sizeof options[0], 3, 0, 0, PNET_NEAR_CUBE, PNET_DEGRADE_CENTRE},
        {sizeof options[0], 2, 0.1, 0, PNET_NEAR_BALL, 0},
        {sizeof options[0], 2, 0, 0, PNET_NEAR_BALL, PNET_DEGRADE_VOXEL},
        {sizeof options[0], 1, 0, 4, PNET_NEAR_BALL, 0},
        {sizeof options[0], 32, 1, 4, PNET_NEAR_BALL, 0}};
    struct points_cloud c = cloud_for(given, rows);
    struct gpu_points p = gpu_make_points(&c, given, 0.05, NULL, NULL),
                      g = gpu_grid_points(&p, 0.05), h = gpu_grid_points(&g, 0.1);
    for (size_t n = 0; n < sizeof options / sizeof options[0]; n++) {
        const struct pnet_near_options *o = &options[n];
        compare(&p, &p, o, "points");
        compare(&g, &g, o, "level");
        compare(&g, &p, o, "points to level");
        compare(&p, &g, o, "level to points");
        compare(&h, &g, o, "level to level");
        compare(&g, &h, o, "level to finer level");
        compare(&h, &p, o, "points to the second level");
    }
    gpu_free_points(&p);
    gpu_free_points(&g);
    gpu_free_points(&h);
    points_drop(&c);
}

/* Both devices refuse a cloud with the same words. */
static void refuse(
    const struct points_cloud *c, enum gpu_given given, double cell, const char *says)
{
    struct pnet_error cpu = {PNET_OK, ""}, gpu = {PNET_OK, ""};
    struct pnet_points_options o = {.size = sizeof o, .cell = cell};
    struct pnet_points *p = NULL;
    enum pnet_status want = gpu_try_points(c, given, &o, &p, &cpu);
    o.device = "cuda";
    enum pnet_status got = gpu_try_points(c, given, &o, &p, &gpu);
    CHECKF(got == want && want == PNET_BAD_DATA && !p && !strcmp(cpu.message, gpu.message) &&
               strstr(cpu.message, says),
        "\"%s\" on the CPU, \"%s\" on the GPU", cpu.message, gpu.message);
}

static void test_bad_points(void)
{
    struct points_cloud c = points_fill(3000);
    float *x = c.xyz + 3 * 2000 + 1, old = *x;
    const float bad[] = {NAN, INFINITY, -2e37F};
    c.xyz[3 * 2500] = NAN; /* a later one */
    for (int i = 0; i < 3; i++) {
        *x = bad[i];
        refuse(&c, GPU_SPLITS, 0, "positions: row 2000: ");
    }
    *x = old;
    c.xyz[3 * 2500] = 0;
    c.sample[1234] = 3;
    refuse(&c, GPU_COLUMN, 0, "sample: row 1234: 3 is none of 0 .. 2");
    c.sample[77] = -1;
    refuse(&c, GPU_WIDE_COLUMN, 0, "sample: row 77: -1 is none");
    c.splits[1] = 2999;
    c.splits[2] = 5;
    refuse(&c, GPU_SPLITS, 0, "row_splits: row 2");
    c.splits[1] = 0;
    c.splits[3] = 2999;
    refuse(&c, GPU_NARROW_SPLITS, 0, "the last of the row splits is 2999");
    c.splits[3] = 3000;
    c.xyz[3 * 17] = 5000;
    c.xyz[3 * 18 + 2] = -6000;
    refuse(&c, GPU_SPLITS, 1e-3, "2 points lie beyond");
    struct gpu_points p = gpu_make_points(&c, GPU_SPLITS, 0.5, NULL, NULL);
    struct pnet_points *level = NULL;
    REFUSED(pnet_points_grid(p.gpu, 1e-3, &level, &e), PNET_BAD_DATA, "2 points lie beyond");
    REFUSED(pnet_points_grid(p.gpu, 1e-7, &level, &e), PNET_USAGE, "cell 1e-07");
    CHECK(!level);
    gpu_free_points(&p);
    points_drop(&c);
}

static void test_bad_arguments(void)
{
    struct points_cloud c = points_fill(40);
    struct gpu_points p = gpu_make_points(&c, GPU_SPLITS, 0, NULL, NULL);
    float *d = gpu_copy(c.xyz, 40 * 12);
    struct pnet_points *q = NULL;
    struct pnet_points_options o = {.size = sizeof o, .device = "cuda"};
    struct pnet_array host = sets_array(c.xyz, 40, 3), gaps = {d, PNET_DTYPE_F32, 20, 3, 6},
                      odd = {(char *)d + 2, PNET_DTYPE_F32, 20, 3, 0}, good = sets_array(d, 40, 3),
                      column = points_ints(c.sample, 40);
    struct pnet_array_out to = sets_out(c.xyz, 40, 3);
    struct pnet_map_options mean = {.size = sizeof mean, .kind = PNET_MAP_INVERSE_DISTANCE};
    struct pnet_map *map = NULL;
    struct pnet_set *set = NULL;
    REFUSED(
        pnet_points_new(&host, &o, &q, &e), PNET_USAGE, "positions: `data` is no memory of GPU 0");
    REFUSED(pnet_points_new(&gaps, &o, &q, &e), PNET_USAGE, "only contiguous rows");
    REFUSED(pnet_points_new(&odd, &o, &q, &e), PNET_USAGE, "not aligned to 4 bytes");
    o.sample = &column;
    REFUSED(pnet_points_new(&good, &o, &q, &e), PNET_USAGE, "sample: `data` is no memory of GPU 0");
    o.sample = NULL;
    o.device = "cpu";
    o.stream = &o;
    REFUSED(pnet_points_new(&host, &o, &q, &e), PNET_USAGE, "stream: the points lie on the CPU");
    REFUSED(pnet_points_positions(p.gpu, &to, &e), PNET_USAGE, "to: `data` is no memory of GPU 0");
    REFUSED(pnet_map_new(p.gpu, p.cpu, &mean, &map, &e), PNET_USAGE, "on different devices");
    REFUSED(pnet_set_points(p.gpu, p.cpu, NULL, &set, &e), PNET_USAGE, "neither of");
    CHECK(!q && !map && !set);
    gpu_free_points(&p);
    gpu_free(d);
    points_drop(&c);
}

/* Makes all there is of a cloud with memory of an allocator, and gives it back. */
static enum pnet_status make_all(
    const struct points_cloud *c, const struct pnet_points_options *o, struct pnet_error *e)
{
    struct pnet_points *p = NULL, *g = NULL;
    struct pnet_set *set = NULL;
    struct pnet_near_options near = {.size = sizeof near, .radius = 0.1};
    enum pnet_status st = gpu_try_points(c, GPU_COLUMN, o, &p, e);
    if (!st) st = pnet_points_grid(p, 0.07, &g, e);
    if (!st) st = pnet_set_points(g, p, &near, &set, e);
    pnet_set_free(set);
    pnet_points_free(p);
    pnet_points_free(g);
    return st;
}

static long left;
static void *take_some(void *context, size_t bytes, void *stream)
{
    return left-- > 0 ? gpu_take(context, bytes, stream) : NULL;
}

/* Memory that ends at any piece: each call ends with a status, and all comes back. What cannot be recorded says so. */
static void test_memory(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gpu_counts counts = {.stream = stream};
    struct pnet_allocator a = {sizeof a, &counts, take_some, gpu_give};
    struct points_cloud c = cloud_for(GPU_COLUMN, 900);
    struct pnet_points_options o = {
        .size = sizeof o, .cell = 0.05, .device = "cuda", .stream = stream, .allocator = &a};
    long n = 0;
    for (enum pnet_status st = PNET_NO_MEMORY; st == PNET_NO_MEMORY; n++) {
        struct pnet_error why = {PNET_OK, ""};
        left = n;
        st = make_all(&c, &o, &why);
        CHECKF(
            st == PNET_OK || st == PNET_NO_MEMORY, "%ld pieces: %d: %s", n, (int)st, why.message);
        CHECKF(counts.taken == counts.given && !counts.bytes && !counts.wrong,
            "%ld pieces: %ld are left", n, counts.taken - counts.given);
    }
    CHECKF(n > 20, "all of it takes %ld pieces", n - 1);
    left = 1000;
    struct pnet_points *p = NULL, *g = NULL;
    NEED(gpu_try_points(&c, GPU_COLUMN, &o, &p, &e));
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    REFUSED(pnet_points_grid(p, 0.1, &g, &e), PNET_USAGE, "records a CUDA graph");
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphDestroy(graph));
    pnet_points_free(p);
    CHECK(!g && counts.taken == counts.given);
    points_drop(&c);
    GPU_NEED(cudaStreamDestroy(stream));
}

/* Triplets and parents need memory to be put in order: in a recording of an allocator alone. */
static void test_recorded(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct points_cloud c = points_fill(300);
    struct gpu_points p = gpu_make_points(&c, GPU_SPLITS, 0.1, stream, NULL),
                      g = gpu_grid_points(&p, 0.1);
    struct pnet_set *set = NULL;
    struct pnet_near_options near = {.size = sizeof near, .radius = 0.1};
    NEED(pnet_set_points(p.gpu, p.gpu, &near, &set, &e));
    int64_t n = sets_info(set).triplets;
    int32_t *d = gpu_room((size_t)(n > 300 ? n : 300) * sizeof *d);
    struct pnet_array_out to = points_ints_out(d, 300);
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    REFUSED(pnet_set_get_triplets(set, NULL, d, NULL, n, &e), PNET_USAGE, "an allocator alone");
    REFUSED(pnet_points_parents(p.gpu, g.gpu, &to, &e), PNET_USAGE, "an allocator alone");
    NEED(pnet_points_sources(p.gpu, &to, &e));
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphDestroy(graph));
    pnet_set_free(set);
    gpu_free(d);
    gpu_free_points(&p);
    gpu_free_points(&g);
    points_drop(&c);
    GPU_NEED(cudaStreamDestroy(stream));
}

/* Positions that the stream still has to copy. */
static void test_stream(void)
{
    cudaStream_t stream;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct points_cloud c = points_fill(5000);
    size_t bytes = (size_t)c.rows * 12, large = 64 << 20;
    char *busy = gpu_room(2 * large);
    float *d = gpu_room(bytes), *from = gpu_copy(c.xyz, bytes);
    struct pnet_points_options o = {.size = sizeof o};
    struct gpu_points p = {NULL, NULL};
    struct pnet_array host = sets_array(c.xyz, c.rows, 3), device = sets_array(d, c.rows, 3);
    NEED(pnet_points_new(&host, &o, &p.cpu, &e));
    GPU_NEED(cudaDeviceSynchronize());
    for (int i = 0; i < 50; i++)
        GPU_NEED(cudaMemcpyAsync(busy, busy + large, large, cudaMemcpyDeviceToDevice, stream));
    GPU_NEED(cudaMemcpyAsync(d, from, bytes, cudaMemcpyDeviceToDevice, stream));
    o.device = "cuda";
    o.stream = stream;
    NEED(pnet_points_new(&device, &o, &p.gpu, &e));
    GPU_NEED(cudaMemsetAsync(d, 0xFF, bytes, stream)); /* they are not read later */
    struct gpu_points g = gpu_grid_points(&p, 0.05);
    CHECK(gpu_same_points(&p) && gpu_same_points(&g));
    gpu_free_points(&p);
    gpu_free_points(&g);
    gpu_free(busy);
    gpu_free(d);
    gpu_free(from);
    points_drop(&c);
    GPU_NEED(cudaStreamDestroy(stream));
}

int main(void)
{
    static const int64_t sizes[] = {0, 1, 60, 6000};
    static const double along[] = {0, 0.06, 0.05};
    if (!gpu_there()) return 77;
    test_points();
    for (int given = 0; given < GPU_GIVEN; given++)
        for (int n = 0; n < 4; n++)
            for (int k = 0; k < 3; k++) test_levels((enum gpu_given)given, sizes[n], along[k]);
    for (int n = 0; n < 4; n++) test_sets(n == 2 ? GPU_SPLITS : GPU_COLUMN, sizes[n]);
    test_bad_points();
    test_bad_arguments();
    test_memory();
    test_recorded();
    test_stream();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
