/* Sets of the library on a GPU: the same bits as on the CPU, the same errors, the caller's stream and memory. */
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/library_case.h"

static void compare(const struct sets_case *c, const char *what)
{
    struct pnet_set *cpu = sets_make(c), *gpu = gpu_make(c, NULL, NULL), *cpu_back, *gpu_back;
    CHECKF(gpu_same(gpu, cpu), "%s: kind %d, %d axes, %d rows differ", what, (int)c->o.kind,
        c->axes, (int)c->rows);
    NEED(pnet_set_inverse(cpu, &cpu_back, &e));
    NEED(pnet_set_inverse(gpu, &gpu_back, &e));
    pnet_set_free(gpu); /* the inverse keeps it */
    CHECKF(gpu_same(gpu_back, cpu_back), "%s: inverse of kind %d differs", what, (int)c->o.kind);
    pnet_set_free(cpu);
    pnet_set_free(cpu_back);
    pnet_set_free(gpu_back);
}

static void choose_axis(struct sets_case *c, int a, int32_t spare)
{
    bool same = c->o.kind == PNET_SET_SUBMANIFOLD;
    c->o.kernel[a] = (int32_t)(same ? 1 + 2 * sets_random(3) : 1 + sets_random(5));
    c->o.stride[a] = (int32_t)sets_random(4);
    c->o.dilation[a] = (int32_t)sets_random(3);
    c->o.padding[a] = (int32_t)sets_random(3);
    c->o.output_padding[a] = (int32_t)sets_random(3);
    int32_t reach = (c->o.kernel[a] - 1) * (c->o.dilation[a] ? c->o.dilation[a] : 1), least = 1;
    if (c->o.kind == PNET_SET_STRIDED) least = reach + 1 - 2 * c->o.padding[a];
    if (c->o.kind == PNET_SET_TRANSPOSED) least = 1 + 2 * c->o.padding[a];
    c->o.extent[a] = (least > 1 ? least : 1) + (int32_t)sets_random((uint32_t)spare);
}

static struct sets_case choose(int n, int32_t spare)
{
    struct sets_case c = {.o = {.size = sizeof c.o, .kind = (enum pnet_set_kind)(n % 3)},
        .axes = n % 10 == 9  ? 1
                : n % 5 == 4 ? 2
                             : 3};
    for (int a = 0; a < c.axes; a++) choose_axis(&c, a, spare);
    c.o.batches = (int32_t)sets_random(4);
    return c;
}

/* All kinds, kernels, strides, paddings, dilations; samples, some of them empty. */
static void test_random(void)
{
    for (int n = 0; n < 150; n++) {
        struct sets_case c = choose(n, n % 30 == 0 ? 40 : 6);
        sets_fill(&c, 1 + sets_random(8), (int32_t)sets_random(4));
        compare(&c, "random");
        free(c.index);
    }
}

/* Few voxels far from each other in the largest extents, in many samples: keys have all their bits. */
static void test_far(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct sets_case c = {.o = {.size = sizeof c.o,
                                  .kind = (enum pnet_set_kind)kind,
                                  .kernel = {3, 3, 3},
                                  .stride = {1, 1, 1},
                                  .padding = {1, 1, 1},
                                  .extent = {1 << 20, 1 << 20, 1 << 20},
                                  .batches = 3000},
            .axes = 3,
            .rows = 20000};
        c.index = sets_room((size_t)c.rows * 4, sizeof *c.index);
        for (int64_t i = 0; i < c.rows; i++) {
            int32_t *at = c.index + 4 * i, corner = (int32_t)sets_random(8);
            at[0] = (int32_t)(i * 7919 % 3000);
            for (int a = 0; a < 3; a++) {
                int32_t near = (int32_t)sets_random(2 + 4 * (uint32_t)a);
                at[a + 1] = corner >> a & 1 ? (1 << 20) - 1 - near : near;
            }
            at[3] = (int32_t)(i / 3000 + (at[3] > 100 ? (1 << 20) - 40 : 0)); /* once */
        }
        compare(&c, "far");
        free(c.index);
    }
}

/* The same voxel in every sample: the last of one is the first of the next. */
static void test_same(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct sets_case c = {.o = {.size = sizeof c.o,
                                  .kind = (enum pnet_set_kind)kind,
                                  .kernel = {1, 3, 1},
                                  .stride = {1, 3, 2},
                                  .extent = {8, 9, 8},
                                  .batches = 600},
            .axes = 3,
            .rows = 600};
        c.index = sets_room((size_t)c.rows * 4, sizeof *c.index);
        for (int32_t i = 0; i < 600; i++) {
            const int32_t at[] = {599 - i, 5, 4, 6};
            memcpy(c.index + 4 * i, at, sizeof at);
        }
        compare(&c, "same");
        free(c.index);
    }
}

/* None, one, all of a grid. */
static void test_few(void)
{
    for (int kind = 0; kind < 3; kind++)
        for (int few = 0; few < 3; few++) {
            struct sets_case c = {.o = {.size = sizeof c.o,
                                      .kind = (enum pnet_set_kind)kind,
                                      .kernel = {3, 3, 3},
                                      .padding = {1, 1, 1},
                                      .extent = {21, 34, 26},
                                      .batches = 2},
                .axes = 3};
            sets_fill(&c, 1, -1);
            if (few < 2) c.rows = few;
            compare(&c, "few");
            free(c.index);
        }
}

/* Triplets that are there several times, several j for one i and k. */
static void test_lists(void)
{
    static const int32_t sizes[][4] = {{0, 5, 4, 3}, {0, 0, 0, 1}, {5000, 70, 90, 27},
        {90000, 3, 2, 4}, {40000, 9000, 1, 65536}, {60000, 2000, 3000, 1000}};
    for (int n = 0; n < 6; n++) {
        const int32_t *of = sizes[n];
        size_t bytes = (size_t)of[0] * sizeof(int32_t);
        int32_t *list[3], *d[3];
        struct pnet_array host[3], device[3];
        for (int k = 0; k < 3; k++) {
            list[k] = sets_room((size_t)of[0], sizeof **list);
            for (int32_t i = 0; i < of[0]; i++)
                list[k][i] = (int32_t)sets_random((uint32_t)of[k + 1]);
            d[k] = gpu_copy(list[k], bytes);
            host[k] = (struct pnet_array){list[k], PNET_DTYPE_I32, of[0], 1, 0};
            device[k] = (struct pnet_array){d[k], PNET_DTYPE_I32, of[0], 1, 0};
        }
        struct pnet_triplet_options o = {.size = sizeof o, .device = "cuda:0"};
        struct pnet_set *cpu, *gpu, *cpu_back, *gpu_back;
        NEED(pnet_set_triplets(&host[0], &host[1], &host[2], of[1], of[2], of[3], NULL, &cpu, &e));
        NEED(pnet_set_triplets(
            &device[0], &device[1], &device[2], of[1], of[2], of[3], &o, &gpu, &e));
        CHECKF(gpu_same(gpu, cpu), "list %d differs", n);
        NEED(pnet_set_inverse(cpu, &cpu_back, &e));
        NEED(pnet_set_inverse(gpu, &gpu_back, &e));
        CHECKF(gpu_same(gpu_back, cpu_back), "inverse of list %d differs", n);
        pnet_set_free(cpu);
        pnet_set_free(gpu);
        pnet_set_free(cpu_back);
        pnet_set_free(gpu_back);
        for (int k = 0; k < 3; k++) {
            free(list[k]);
            gpu_free(d[k]);
        }
    }
}

/* Both devices refuse the voxels of a case with the same words. */
static void refuse(struct sets_case *c, const char *says)
{
    struct pnet_error cpu, gpu;
    struct pnet_set *set = NULL;
    int32_t *index = gpu_copy(c->index, (size_t)c->rows * 4 * sizeof *index);
    struct pnet_array host = {c->index, PNET_DTYPE_I32, c->rows, 4, 0},
                      device = {index, PNET_DTYPE_I32, c->rows, 4, 0};
    c->o.device = NULL;
    enum pnet_status want = pnet_set_voxels(&host, &c->o, &set, &cpu);
    c->o.device = "cuda";
    enum pnet_status got = pnet_set_voxels(&device, &c->o, &set, &gpu);
    CHECKF(got == want && want == PNET_BAD_DATA && !set && !strcmp(cpu.message, gpu.message) &&
               strstr(cpu.message, says),
        "\"%s\" on the CPU, \"%s\" on the GPU", cpu.message, gpu.message);
    gpu_free(index);
}

static void test_bad_voxels(void)
{
    struct sets_case c = {
        .o = {.size = sizeof c.o, .kernel = {3, 3, 3}, .extent = {30, 20, 10}, .batches = 2},
        .axes = 3};
    sets_fill(&c, 2, -1);
    int32_t *far = c.index + 4 * 700, *later = c.index + 4 * 2000, old = far[2];
    far[2] = 20;
    later[0] = -1;
    refuse(&c, "row 700: index 20 of axis 1");
    far[2] = old;
    refuse(&c, "row 2000: sample -1");
    memcpy(later, c.index + 4 * 1500, 4 * sizeof *later);
    memcpy(far, c.index + 4 * 600, 4 * sizeof *far);
    refuse(&c, "rows 600 and 700 are");
    free(c.index);
}

static void test_bad_arguments(void)
{
    static int32_t on_host[3][4];
    int32_t *d = gpu_room(1024);
    struct pnet_set *set = NULL;
    struct pnet_triplet_options o = {.size = sizeof o, .device = "cuda"};
    struct pnet_voxel_options v = {
        .size = sizeof v, .kernel = {3, 3, 3}, .extent = {9, 9, 9}, .device = "cuda"};
    struct pnet_array host = {on_host, PNET_DTYPE_I32, 3, 4, 0},
                      gaps = {d, PNET_DTYPE_I32, 3, 4, 5},
                      odd = {(char *)d + 2, PNET_DTYPE_I32, 3, 4, 0},
                      list = {d, PNET_DTYPE_I32, 3, 1, 0};
    REFUSED(pnet_set_voxels(&host, &v, &set, &e), PNET_USAGE, "is no memory of GPU 0");
    REFUSED(pnet_set_voxels(&gaps, &v, &set, &e), PNET_USAGE, "only contiguous rows");
    REFUSED(pnet_set_voxels(&odd, &v, &set, &e), PNET_USAGE, "not aligned to 4 bytes");
    REFUSED(pnet_set_triplets(&list, &list, &list, 4, 4, 4, &o, &set, &e), PNET_BAD_DATA,
        "i: row 0: -1 is none of 0 .. 3");
    v.device = "cuda:1000";
    REFUSED(pnet_set_voxels(&host, &v, &set, &e), PNET_NO_DEVICE, "there are GPUs 0 to");
    CHECK(!set);
    gpu_free(d);
}

/* Voxels that the stream still has to copy; memory of an allocator, all of which comes back. */
static void test_stream(void)
{
    cudaStream_t stream;
    GPU_NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct gpu_counts counts = {.stream = stream};
    struct pnet_allocator a = {sizeof a, &counts, gpu_take, gpu_give};
    struct sets_case c = {.o = {.size = sizeof c.o,
                              .kind = PNET_SET_STRIDED,
                              .kernel = {3, 3, 3},
                              .stride = {2, 2, 2},
                              .padding = {1, 1, 1},
                              .extent = {80, 90, 70},
                              .batches = 2,
                              .device = "cuda",
                              .stream = stream,
                              .allocator = &a},
        .axes = 3};
    sets_fill(&c, 3, -1);
    size_t bytes = (size_t)c.rows * 4 * sizeof *c.index, large = 64 << 20;
    char *busy = gpu_room(2 * large);
    int32_t *index = gpu_room(bytes), *pinned;
    GPU_NEED(cudaMallocHost((void **)&pinned, bytes));
    memcpy(pinned, c.index, bytes);
    GPU_NEED(cudaDeviceSynchronize());
    for (int i = 0; i < 50; i++)
        GPU_NEED(cudaMemcpyAsync(busy, busy + large, large, cudaMemcpyDeviceToDevice, stream));
    GPU_NEED(cudaMemcpyAsync(index, pinned, bytes, cudaMemcpyHostToDevice, stream));
    struct pnet_array indices = {index, PNET_DTYPE_I32, c.rows, 4, 0};
    struct pnet_set *gpu, *cpu;
    NEED(pnet_set_voxels(&indices, &c.o, &gpu, &e));
    long kept = counts.taken - counts.given;
    CHECKF(kept >= 8 && kept <= 16, "%ld pieces of memory for a set", kept);
    GPU_NEED(cudaMemsetAsync(index, 0xFF, bytes, stream)); /* it does not read them later */
    c.o.device = NULL;
    c.o.stream = NULL;
    c.o.allocator = NULL;
    cpu = sets_make(&c);
    CHECK(gpu_same(gpu, cpu));
    pnet_set_free(gpu);
    pnet_set_free(cpu);
    CHECKF(counts.taken == counts.given && !counts.bytes && !counts.wrong,
        "%ld taken, %ld given, %zu bytes are left, %ld on other streams", counts.taken,
        counts.given, counts.bytes, counts.wrong);
    /* what cannot be recorded says so, and leaves the recording alone */
    cudaGraph_t graph;
    struct pnet_set *set = NULL;
    c.o.device = "cuda";
    c.o.stream = stream;
    GPU_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    REFUSED(pnet_set_voxels(&indices, &c.o, &set, &e), PNET_USAGE, "records a CUDA graph");
    GPU_NEED(cudaStreamEndCapture(stream, &graph));
    GPU_NEED(cudaGraphDestroy(graph));
    GPU_NEED(cudaFreeHost(pinned));
    gpu_free(index);
    gpu_free(busy);
    GPU_NEED(cudaStreamDestroy(stream));
    free(c.index);
}

/* An allocator that has no memory from its n-th call on: each call ends with a status, and all comes back. */
static long left;
static void *take_some(void *context, size_t bytes, void *stream)
{
    return left-- > 0 ? gpu_take(context, bytes, stream) : NULL;
}

static void test_no_memory(void)
{
    struct gpu_counts counts = {.taken = 0};
    struct pnet_allocator a = {sizeof a, &counts, take_some, gpu_give};
    struct sets_case c = {.o = {.size = sizeof c.o,
                              .kind = PNET_SET_TRANSPOSED,
                              .kernel = {2, 3, 3},
                              .padding = {1, 1, 1},
                              .extent = {20, 20, 20},
                              .device = "cuda",
                              .allocator = &a},
        .axes = 3};
    sets_fill(&c, 4, -1);
    int32_t *index = gpu_copy(c.index, (size_t)c.rows * 4 * sizeof *index);
    struct pnet_array indices = {index, PNET_DTYPE_I32, c.rows, 4, 0};
    long n = 0;
    for (enum pnet_status st = PNET_NO_MEMORY; st == PNET_NO_MEMORY; n++) {
        struct pnet_set *set = NULL;
        struct pnet_error why = {PNET_OK, ""};
        left = n;
        st = pnet_set_voxels(&indices, &c.o, &set, &why);
        CHECKF(st == PNET_OK || (st == PNET_NO_MEMORY && !set), "%ld pieces: %d: %s", n, (int)st,
            why.message);
        pnet_set_free(set);
        CHECKF(counts.taken == counts.given, "%ld pieces: %ld are left", n,
            counts.taken - counts.given);
    }
    CHECKF(n > 10, "a set takes %ld pieces", n - 1);
    gpu_free(index);
    free(c.index);
}

int main(void)
{
    if (!gpu_there()) return 77;
    test_random();
    test_far();
    test_same();
    test_few();
    test_lists();
    test_bad_voxels();
    test_bad_arguments();
    test_stream();
    test_no_memory();
    int device = -1;
    GPU_NEED(cudaGetDevice(&device));
    CHECK(device == 0 && cudaPeekAtLastError() == cudaSuccess);
    return check_end();
}
#endif
