/* The source rows around queries and weighted sums of rows on a GPU: lists bit for bit those of the CPU, sums within rounding.
   The number of rows of a sum is known on the device alone. */
#include "kernels/corners.h"
#include "tests/check.h"

#ifndef PNET_CUDA_BUILT
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else
#include "tests/cuda/levels_case.h"
#include "tests/geometry/corners.h"

static struct pnet_level put_level(const struct pnet_level *l)
{
    struct pnet_level d = *l;
    size_t splits = ((size_t)l->samples + 1) * sizeof *l->row_splits, xyz = (size_t)l->rows * 12;
    d.row_splits = device_bytes(l->row_splits, splits, splits, 0x7F);
    d.xyz = device_bytes(l->xyz, xyz, xyz, 0xFF);
    d.key = NULL;
    return d;
}

static void check_array(const char *what, const void *device, const void *want, size_t bytes)
{
    char text[200];
    void *got = host_bytes(bytes);
    snprintf(text, sizeof text, "%s, %s", name, what);
    if (bytes) pnet_cuda_copy_out(got, device, bytes);
    CHECKF(memcmp(got, want, bytes) == 0, "%s differ", text);
}

/* Weights of kind nearest are made, and not made, in turn. */
static void check_lists(const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, const int32_t *nearest, const struct corners *want, bool weighs)
{
    struct pnet_level q = put_level(queries), s = put_level(source);
    size_t rows = (size_t)queries->rows, others = (size_t)source->rows,
           count = (size_t)want->set.t.count;
    int64_t *start = device_work((rows + 1) * 8), *back_start = device_work((others + 1) * 8);
    int32_t *other = device_work(count * 4), *back_other = device_work(count * 4);
    uint16_t *cell = device_work(count * 2), *back_cell = device_work(count * 2);
    float *weight = weighs ? device_work(count * 4) : NULL, *back = device_work(count * 4);
    const int32_t *near = nearest ? device_bytes(nearest, rows * 4, rows * 4, 0x7F) : NULL;
    void *work = device_work(pnet_cuda_corners_work(&q, &s, kind));
    int64_t got = pnet_cuda_corners_count(&q, &s, kind, near, start, work);
    CHECKF(got == want->set.t.count, "%s: %lld entries, the CPU's %lld", name, (long long)got,
        (long long)want->set.t.count);
    check_array("starts", start, want->set.start, (rows + 1) * 8);
    if (got != want->set.t.count) return;
    pnet_cuda_corners_write(&q, &s, kind, near, start, other, cell, weight, work);
    check_array("rows", other, want->set.other, count * 4);
    check_array("corners", cell, want->set.cell, count * 2);
    if (!weighs) return;
    check_array("weights", weight, want->weight, count * 4);
    struct pnet_triplets t = want->set.t, b = want->back.t;
    t.start = start;
    t.other = other;
    t.cell = cell;
    pnet_cuda_transpose(
        &t, back_start, back_other, back_cell, device_work(pnet_cuda_transpose_work(&t)));
    b.start = back_start;
    b.other = back_other;
    b.cell = back_cell;
    pnet_cuda_corners_transpose(&t, weight, &b, back);
    check_array("transposed rows", back_other, want->back.other, count * 4);
    check_array("transposed weights", back, want->back_weight, count * 4);
}

static void check_pair(const struct cloud *queries, const struct cloud *source, const char *what)
{
    size_t rows = (size_t)queries->level.rows;
    for (int k = 0; k < 4; k++) {
        enum pnet_corner_kind kind = k / 2 ? PNET_CORNERS_NEAREST : PNET_CORNERS_TRILINEAR;
        int32_t *nearest = NULL;
        snprintf(name, sizeof name, "%s, kind %d%s", what, k / 2, k % 2 ? ", outside" : "");
        struct corners want = corners_make(&queries->level, &source->level, kind, k % 2);
        if (k % 2) {
            void *work = memory(pnet_cpu_nearest_work(&queries->level, &source->level, 1));
            float *d2 = host_bytes(rows * 4);
            nearest = host_bytes(rows * 4);
            pnet_cpu_nearest(&queries->level, &source->level, 1, nearest, d2, work);
            free(work);
        }
        for (int weighs = kind == PNET_CORNERS_TRILINEAR; weighs < 2; weighs++)
            check_lists(&queries->level, &source->level, kind, nearest, &want, weighs);
        corners_free(&want);
        release(name);
    }
}

static void test_levels(int64_t rows)
{
    static const int32_t factors[] = {1, 2, 3, 8};
    char what[80];
    for (int kind = 0; kind < CLOUD_KINDS; kind++)
        for (int f = 0; f < 4; f++) {
            int32_t *parent, samples = 1 + (kind + f) % 5;
            struct pnet_grid fine = grid_of(0.05f, 1), grid = grid_of(0.05f, factors[f]);
            struct cloud *points = cloud_random((enum cloud_kind)kind, samples, rows, fine, 7);
            struct cloud *source = cloud_coarser(points, grid, &parent);
            struct cloud *other =
                cloud_random((enum cloud_kind)kind, samples, rows / 2 + 3, fine, 9);
            snprintf(what, sizeof what, "clouds %d, factor %d", kind, (int)factors[f]);
            check_pair(points, source, what);
            check_pair(other, source, what);
            cloud_free(points);
            cloud_free(source);
            cloud_free(other);
            free(parent);
        }
}

static void test_nothing(void)
{
    const float xyz[] = {0.5f, 0.5f, 0.5f, 0.6f, 0.5f, 0.5f, 1.5f, 0.5f, 0.5f};
    int64_t none[] = {0, 0, 0}, first[] = {0, 2, 2}, last[] = {0, 0, 1};
    struct cloud *sides[] = {cloud_of(2, none, xyz, grid_of(1, 1)),
        cloud_of(2, first, xyz, grid_of(1, 1)), cloud_of(2, last, xyz + 6, grid_of(1, 1))};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b += 2) check_pair(sides[a], sides[b], "empty samples");
    for (int i = 0; i < 3; i++) cloud_free(sides[i]);
}

/* Lists of 0 to 2 * mean - 1 entries, and one of `longest`. */
static void test_sums(int64_t rows, int64_t others, int64_t mean, int64_t longest, int32_t c)
{
    snprintf(name, sizeof name, "%lld lists of %lld and %lld, %d channels", (long long)rows,
        (long long)mean, (long long)longest, (int)c);
    int64_t *start = host_bytes((size_t)(rows + 1) * 8), at = 0;
    for (int64_t row = 0; row < rows; row++) {
        start[row] = at;
        at += row == rows / 2 ? longest : random_below(2 * mean);
    }
    start[rows] = at;
    int32_t *other = host_bytes((size_t)at * 4), *label = host_bytes((size_t)others * 4);
    float *weight = random_floats(at, false), *x = random_features(others * c, false);
    for (int64_t i = 0; i < at; i++) other[i] = (int32_t)random_below(others);
    for (int64_t i = 0; i < others; i++) label[i] = (int32_t)random_below(20) - 1;
    struct pnet_weighted cpu = {
        .rows = pnet_count(rows), .start = start, .other = other, .weight = weight};
    struct pnet_weighted gpu = {.rows = device_count(rows, 1),
        .start = device_offsets(start, rows + 1, rows + 1 + SLACK),
        .other = device_ints(other, at, at + SLACK),
        .weight = device_floats(weight, at, at + SLACK)};
    float *gx = device_features(x, others * c, (others + SLACK) * c);
    for (int way = 0; way < 4; way++) {
        bool add = way & 1;
        float *want = random_features(rows * c, false);
        struct result y = make_features(want, rows * c, (rows + SLACK) * c);
        struct pnet_weighted on_cpu = cpu, on_gpu = gpu;
        if (way & 2) on_cpu.weight = on_gpu.weight = NULL;
        pnet_cpu_weighted_rows(&on_cpu, c, x, add, want);
        for (int turn = 0; turn < 2; turn++) {
            pnet_cuda_weighted_rows(&on_gpu, c, gx, add, y.device);
            collect(&y, turn, name);
        }
        check_features(name, &y, want, longest > 10000 ? 1e-4 : BOUND);
    }
    int32_t *want = host_bytes((size_t)rows * 4);
    struct result y = make_result(NULL, rows, rows + SLACK, 4);
    pnet_cpu_weighted_labels(&cpu, label, want);
    pnet_cuda_weighted_labels(&gpu, device_ints(label, others, others), y.device);
    collect(&y, 0, name);
    check_bytes(name, &y, want);
    release(name);
}

/* With an argument, or PNET_SHORT, only what a sanitizer gets through in seconds. */
int main(int argc, char **argv)
{
    static const int32_t channels[] = {1, 3, 20, 33, 64, 512};
    const char *why;
    const bool small = getenv("PNET_SHORT") || (argc > 1 && !strcmp(argv[1], "small"));
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    test_nothing();
    test_levels(small ? 300 : 20000);
    for (int s = PNET_STORE_FP16; s >= PNET_STORE_F32; s--)
        for (int i = small; i < 6; i += 1 + small) {
            storage = (enum pnet_storage)s;
            test_sums(0, 4, 3, 0, channels[i]);
            test_sums(1, 1, 1, 1, channels[i]);
            test_sums(small ? 500 : 50000, 300, 4, 8, channels[i]); /* forward */
            test_sums(small ? 50 : 5000, 300, 40, 3000, channels[i]);
            if (!small) test_sums(3, 1000, 4, 300000, channels[i]);
        }
    return check_end();
}
#endif
