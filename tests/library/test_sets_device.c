/* What sets say about devices, without one: options that are refused, a GPU that is not there or cannot read the arrays. */
#include "tests/library/sets.h"

static int32_t voxels[3][4] = {{0, 1, 1, 1}, {0, 1, 1, 2}, {0, 2, 2, 2}};
static const struct pnet_array indices = {voxels, PNET_DTYPE_I32, 3, 4, 0};
static const struct pnet_array list = {voxels, PNET_DTYPE_I32, 3, 1, 4};

static void *take(void *context, size_t bytes, void *stream)
{
    (void)context;
    (void)bytes;
    (void)stream;
    return NULL;
}

static void give(void *context, void *memory, size_t bytes, void *stream)
{
    (void)context;
    (void)memory;
    (void)bytes;
    (void)stream;
}

/* Both kinds of sets refuse the same options with the same words. */
static void refuse(
    const char *device, void *stream, const struct pnet_allocator *allocator, const char *says)
{
    struct pnet_voxel_options v = {.size = sizeof v,
        .kernel = {3, 3, 3},
        .extent = {4, 4, 4},
        .device = device,
        .stream = stream,
        .allocator = allocator};
    struct pnet_triplet_options t = {
        .size = sizeof t, .device = device, .stream = stream, .allocator = allocator};
    struct pnet_set *set = NULL;
    REFUSED(pnet_set_voxels(&indices, &v, &set, &e), PNET_USAGE, says);
    CHECK(!set);
    REFUSED(pnet_set_triplets(&list, &list, &list, 3, 3, 3, &t, &set, &e), PNET_USAGE, says);
    CHECK(!set);
}

static void test_options(void)
{
    struct pnet_allocator a = {sizeof a, NULL, take, give};
    refuse("gpu", NULL, NULL, "device: expected cpu, cuda or cuda:N, not 'gpu'");
    refuse("cuda:x", NULL, NULL, "not 'cuda:x'");
    refuse(NULL, voxels, NULL, "stream: the set lies on the CPU");
    refuse("cpu", NULL, &a, "allocator: the set lies on the CPU");
    a.size = 8;
    refuse("cuda", NULL, &a, "struct pnet_allocator: `size` is 8");
    a.size = sizeof a;
    a.take = NULL;
    refuse("cuda", NULL, &a, "allocator: `take` is NULL");
    a.take = take;
    a.give = NULL;
    refuse("cuda", NULL, &a, "allocator: `give` is NULL");
    struct pnet_triplet_options t = {.size = 8};
    struct pnet_set *set = NULL;
    REFUSED(pnet_set_triplets(&list, &list, &list, 3, 3, 3, &t, &set, &e), PNET_USAGE,
        "struct pnet_triplet_options: `size` is 8");
}

/* Without a GPU both kinds say what is missing; with one they cannot read these arrays. */
static void test_gpu(void)
{
    struct pnet_voxel_options v = {
        .size = sizeof v, .kernel = {3, 3, 3}, .extent = {4, 4, 4}, .device = "cuda"};
    struct pnet_triplet_options t = {.size = sizeof t, .device = "cuda"};
    struct pnet_error e = {PNET_OK, ""}, other = {PNET_OK, ""};
    struct pnet_set *set = NULL;
    enum pnet_status st = pnet_set_voxels(&indices, &v, &set, &e);
    CHECK(!set && pnet_set_triplets(&list, &list, &list, 3, 3, 3, &t, &set, &other) == st && !set);
#ifdef PNET_CUDA_BUILT
    CHECKF(st == PNET_NO_DEVICE ? strstr(e.message, "no usable GPU") != NULL
                                : st == PNET_USAGE && strstr(e.message, "is no memory of GPU 0"),
        "%d: %s", (int)st, e.message);
#else
    CHECKF(st == PNET_NO_DEVICE && strstr(e.message, "built without the CUDA backend"), "%d: %s",
        (int)st, e.message);
#endif
}

/* On the CPU: float32, multiplied as such. */
static void test_precision(void)
{
    struct sets_case c = {
        .o = {.size = sizeof c.o, .kernel = {3, 3, 3}, .extent = {6, 6, 6}, .device = "cpu"},
        .axes = 3,
        .in = 4,
        .out = 6,
        .groups = 1};
    sets_fill(&c, 2, -1);
    struct pnet_set *set = sets_make(&c);
    struct sets_sums s = sets_take(&c, set);
    size_t bytes = (size_t)s.result_count * sizeof *s.result;
    float *before = sets_room((size_t)s.result_count, sizeof *before);
    struct pnet_conv_options o = {.size = sizeof o};
    NEED(sets_try(&c, set, &o, &s, &e));
    memcpy(before, s.result, bytes);
    o.precision = PNET_PRODUCTS_FP32;
    NEED(sets_try(&c, set, &o, &s, &e));
    CHECK(memcmp(before, s.result, bytes) == 0);
    for (int p = PNET_PRODUCTS_TF32; p <= PNET_PRODUCTS_FP16; p++) {
        o.precision = (enum pnet_products)p;
        REFUSED(sets_try(&c, set, &o, &s, &e), PNET_USAGE, "the CPU computes in fp32");
    }
    o.precision = (enum pnet_products)5;
    REFUSED(sets_try(&c, set, &o, &s, &e), PNET_USAGE, "precision 5: expected a value of enum");
    struct pnet_array f = {s.features, PNET_DTYPE_BF16, c.rows, 4, 0},
                      w = sets_array(s.weights, 27 * 4, 6);
    struct pnet_array_out y = sets_out(s.result, c.rows, 6);
    REFUSED(pnet_conv_forward(set, &f, &w, NULL, &y, &e), PNET_USAGE,
        "features: dtype 3: only PNET_DTYPE_F32");
    free(before);
    sets_drop(&s);
    pnet_set_free(set);
    free(c.index);
}

int main(void)
{
    test_options();
    test_gpu();
    test_precision();
    return check_end();
}
