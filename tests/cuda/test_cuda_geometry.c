/* The geometry stage of a GPU against the CPU's, bit for bit: clouds of every kind, every
   neighbourhood and degradation, rows along the curve or shuffled. With a folder as argument it then
   prints times for the benchmark rooms in it; with anything behind the folder it does that alone.
   With the word `little`, or PNET_SHORT, it runs a small part, for tools that watch every access. */
#ifndef PNET_CUDA_BUILT
#include <stdio.h>

int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#else

#include "kernels/chunks.h"
#include "kernels/order.h"
#include "tests/geometry/neighbourhoods.h"
#include "tests/cuda/geometry.h"
#include "tests/cuda/geometry_times.h"

static const float cell = 0.05f;

/* Keys on a grid, and the order by them. */
static void check_order(struct arena *a, const struct pnet_level *l, struct pnet_grid grid)
{
    size_t n = (size_t)l->rows;
    uint64_t *want_key = memory(n * sizeof *want_key);
    int32_t *want = memory(n * sizeof *want);
    void *work = memory(pnet_cpu_order_work(l->rows));
    int64_t want_outside = pnet_cpu_keys(l->rows, l->xyz, grid, want_key);
    pnet_cpu_order(l->rows, l->samples, l->row_splits, want_key, want, work);

    struct pnet_level d = level_on_device(a, l);
    uint64_t *key = arena_take(a, n * sizeof *key);
    int32_t *order = arena_take(a, n * sizeof *order);
    int64_t outside = pnet_cuda_keys(l->rows, d.xyz, grid, key);
    CHECKF(outside == want_outside, "%lld points outside for %lld", (long long)outside,
        (long long)want_outside);
    CHECK(device_holds(key, want_key, n * sizeof *key));
    CHECK(pnet_cuda_order_points(l->rows, l->samples, d.row_splits, d.xyz, grid, order,
              arena_take(a, 12 * n),
              arena_take(a, pnet_cuda_order_points_work(l->rows))) == want_outside);
    CHECKF(device_holds(order, want, n * sizeof *order), "order of %lld rows", (long long)l->rows);
    CHECK(arena_close(a));
    free(work);
    free(want);
    free(want_key);
}

/* Orders that attention takes buckets from. */
static void check_buckets(struct arena *a, const struct pnet_level *l, struct pnet_grid grid)
{
    size_t n = (size_t)l->rows;
    int32_t *want = memory(n * sizeof *want);
    void *work = memory(pnet_cpu_bucket_order_work(l));
    for (int kind = PNET_ORDER_Z_TRANS; kind < PNET_ORDERS; kind++)
        for (int32_t bucket = 16; bucket <= 512; bucket *= 32) {
            enum pnet_order order = (enum pnet_order)kind;
            pnet_cpu_bucket_order(l, grid, order, bucket, want, work);
            struct pnet_level d = level_on_device(a, l);
            int32_t *row = arena_take(a, n * sizeof *row);
            pnet_cuda_bucket_order(
                &d, grid, order, bucket, row, arena_take(a, pnet_cuda_bucket_order_work(l)));
            CHECKF(device_holds(row, want, n * sizeof *row), "order %d of %lld rows, bucket %d",
                kind, (long long)l->rows, bucket);
            CHECK(arena_close(a));
        }
    free(work);
    free(want);
}

static void check_children(
    struct arena *a, int64_t fine, int64_t coarse, const int32_t *parent, bool ascend)
{
    int64_t *want_start = memory(((size_t)coarse + 1) * sizeof *want_start);
    int32_t *want = memory((size_t)fine * sizeof *want);
    pnet_cpu_children(fine, coarse, parent, want_start, want);
    int64_t *start = arena_take(a, ((size_t)coarse + 1) * sizeof *start);
    int32_t *child = arena_take(a, (size_t)fine * sizeof *child);
    pnet_cuda_children(
        fine, coarse, arena_copy(a, parent, (size_t)fine * sizeof *parent), start, child);
    CHECK(device_holds(start, want_start, ((size_t)coarse + 1) * sizeof *start));
    CHECKF(device_holds(child, want, (size_t)fine * sizeof *child), "children of %lld in %lld",
        (long long)fine, (long long)coarse);
    if (ascend) {
        int64_t *stretch = arena_take(a, ((size_t)coarse + 1) * sizeof *stretch);
        pnet_cuda_children(
            fine, coarse, arena_copy(a, parent, (size_t)fine * sizeof *parent), stretch, NULL);
        CHECK(device_holds(stretch, want_start, ((size_t)coarse + 1) * sizeof *stretch));
    }
    free(want);
    free(want_start);
}

/* `ordered`: rows are in the order of their keys on `grid`. */
static void check_sample(
    struct arena *a, const struct pnet_level *l, struct pnet_grid grid, bool ordered)
{
    size_t n = (size_t)l->rows, splits_bytes = ((size_t)l->samples + 1) * sizeof(int64_t);
    int32_t *want_keep = memory(n * sizeof *want_keep), *want_parent = memory(n * sizeof(int32_t));
    int64_t *want_splits = memory(splits_bytes);
    void *work = memory(pnet_cpu_sample_work(l->rows, false));
    int64_t want = pnet_cpu_sample(l, grid, false, want_keep, want_parent, want_splits, work);

    struct pnet_level d = level_on_device(a, l);
    int32_t *keep = arena_take(a, n * sizeof *keep), *parent = arena_take(a, n * sizeof *parent);
    int64_t *splits = arena_take(a, splits_bytes);
    int64_t rows = pnet_cuda_sample(&d, grid, ordered, keep, parent, splits,
        arena_take(a, pnet_cuda_sample_work(l->rows, ordered)));
    CHECKF(rows == want, "%lld coarse rows for %lld", (long long)rows, (long long)want);
    CHECK(rows == want && device_holds(keep, want_keep, (size_t)want * sizeof *keep));
    CHECK(device_holds(parent, want_parent, n * sizeof *parent));
    CHECK(device_holds(splits, want_splits, splits_bytes));
    check_children(a, l->rows, want, want_parent, ordered);
    CHECK(arena_close(a));
    free(work);
    free(want_splits);
    free(want_parent);
    free(want_keep);
}

static void check_chunks(struct arena *a, const struct pnet_level *l, int32_t size)
{
    size_t n = (size_t)l->rows, splits_bytes = ((size_t)l->samples + 1) * sizeof(int64_t);
    int32_t *want_parent = memory(n * sizeof *want_parent);
    int64_t *want_splits = memory(splits_bytes);
    int64_t want = pnet_cpu_chunk_splits(l->samples, l->row_splits, size, want_splits);
    size_t points = (size_t)want * 3 * sizeof(float);
    float *want_xyz = memory(points);
    pnet_cpu_chunk_points(l, size, want, want_splits, want_xyz, want_parent);

    struct pnet_level d = level_on_device(a, l);
    int64_t *splits = arena_take(a, splits_bytes);
    float *xyz = arena_take(a, points);
    int32_t *parent = arena_take(a, n * sizeof *parent);
    int64_t rows = pnet_cuda_chunk_splits(l->samples, d.row_splits, size, splits);
    CHECKF(rows == want, "%lld chunks for %lld", (long long)rows, (long long)want);
    if (rows == want) pnet_cuda_chunk_points(&d, size, rows, splits, xyz, parent);
    CHECK(device_holds(splits, want_splits, splits_bytes));
    CHECKF(device_holds(xyz, want_xyz, points), "points of chunks of %d", (int)size);
    CHECK(device_holds(parent, want_parent, n * sizeof *parent));
    CHECK(arena_close(a));
    free(want_xyz);
    free(want_splits);
    free(want_parent);
}

/* One set, its transposed form and that transposed again. */
static void check_set(struct arena *a, const char *what, const struct pnet_level *out,
    const struct pnet_level *in, const struct pnet_neighbourhood *nb, const int32_t *parent)
{
    struct set want = set_make(out, in, nb, parent), want_back = set_transposed(&want);
    struct pnet_level in_device = level_on_device(a, in), out_device = in_device;
    const int32_t *parent_device = NULL;
    if (out != in) out_device = level_on_device(a, out);
    if (parent) parent_device = arena_copy(a, parent, (size_t)in->rows * sizeof *parent);
    struct device_set s =
        device_set_make(a, &out_device, out == in ? &out_device : &in_device, nb, parent_device);
    CHECKF(device_set_is(&s, &want),
        "%s, K=%d r=%g knn=%d shape %d degrade %u: %lld and %lld rows, "
        "%lld triplets for %lld",
        what, nb->kernel, (double)nb->radius, nb->knn, (int)nb->shape, nb->degrade,
        (long long)out->rows, (long long)in->rows, (long long)s.t.count, (long long)want.t.count);
    if (s.t.count == want.t.count) {
        CHECK(pnet_cuda_cell_runs(&s.t) == pnet_cpu_cell_runs(&want.t));
        struct device_set back = device_set_transposed(a, &s.t);
        CHECKF(device_set_is(&back, &want_back), "%s, K=%d r=%g knn=%d degrade %u transposed", what,
            nb->kernel, (double)nb->radius, nb->knn, nb->degrade);
        struct device_set again = device_set_transposed(a, &back.t);
        CHECK(device_set_is(&again, &want));
        if (out == in && pnet_cuda_triplets_mutual(nb)) {
            struct device_set mutual = device_set_back(a, &out_device, nb, &s);
            CHECKF(device_set_is(&mutual, &want_back), "%s, K=%d r=%g degrade %u back", what,
                nb->kernel, (double)nb->radius, nb->degrade);
        }
    }
    CHECKF(arena_close(a), "%s: bytes beyond a buffer", what);
    set_free(&want_back);
    set_free(&want);
}

static void check_nearest(
    struct arena *a, const struct pnet_level *out, const struct pnet_level *in, int32_t k)
{
    size_t count = (size_t)(out->rows * k);
    int32_t *want = memory(count * sizeof *want);
    float *want_distance2 = memory(count * sizeof *want_distance2);
    void *work = memory(pnet_cpu_nearest_work(out, in, k));
    pnet_cpu_nearest(out, in, k, want, want_distance2, work);
    struct pnet_level out_device = level_on_device(a, out), in_device = level_on_device(a, in);
    int32_t *index = arena_take(a, count * sizeof *index);
    float *distance2 = arena_take(a, count * sizeof *distance2);
    pnet_cuda_nearest(&out_device, &in_device, k, index, distance2,
        arena_take(a, pnet_cuda_nearest_work(out, in, k)));
    CHECKF(device_holds(index, want, count * sizeof *index), "k=%d of %lld in %lld", (int)k,
        (long long)out->rows, (long long)in->rows);
    CHECK(device_holds(distance2, want_distance2, count * sizeof *distance2));
    CHECK(arena_close(a));
    free(work);
    free(want_distance2);
    free(want);
}

/* A level by itself, and from it to a coarser one. */
static void check_level(
    struct arena *a, const char *what, const struct cloud *fine, int32_t factor, bool sorted)
{
    int32_t *parent;
    struct cloud *coarse = cloud_coarser(fine, grid_of(cell, factor), &parent);
    check_order(a, &fine->level, fine->level.grid);
    check_buckets(a, &fine->level, fine->level.grid);
    check_sample(a, &fine->level, grid_of(cell, factor), false);
    check_chunks(a, &fine->level, factor);
    check_chunks(a, &fine->level, 16);
    if (sorted && pnet_grid_follows(fine->level.grid, grid_of(cell, factor)))
        check_sample(a, &fine->level, grid_of(cell, factor), true);
    for (int n = 0; n < NEIGHBOURHOODS; n++) {
        const struct pnet_neighbourhood *nb = &neighbourhoods[n];
        if (nb->kernel % 2) check_set(a, what, &fine->level, &fine->level, nb, NULL);
        check_set(a, what, &coarse->level, &fine->level, nb, parent);
    }
    static const int32_t ks[] = {1, 3, 17, 300};
    for (int k = 0; k < 4; k++) check_nearest(a, &fine->level, &coarse->level, ks[k]);
    cloud_free(coarse);
    free(parent);
}

static void check_cloud(
    struct arena *a, enum cloud_kind kind, int32_t samples, int64_t rows, int32_t factor)
{
    char what[64];
    snprintf(what, sizeof what, "kind %d", (int)kind);
    int32_t *parent;
    struct cloud *raw = cloud_random(kind, samples, rows, grid_of(cell, 1), (uint32_t)rows);
    struct cloud *level = cloud_coarser(raw, grid_of(cell, 1), &parent),
                 *sorted = cloud_sorted(raw);
    check_level(a, what, level, factor, true);
    check_level(a, what, sorted, factor, true);
    check_level(a, what, raw, factor, false);
    raw->level.key = NULL;
    check_level(a, what, raw, factor, false);
    cloud_free(sorted);
    cloud_free(level);
    cloud_free(raw);
    free(parent);
}

/* Little of everything, for tools that watch every access. */
static void check_little(struct arena *a)
{
    check_cloud(a, SURFACE, 2, 130, 2);
    check_cloud(a, DUPLICATES, 1, 70, 3);
}

static void check_clouds(struct arena *a)
{
    for (int kind = 0; kind < CLOUD_KINDS; kind++)
        check_cloud(a, (enum cloud_kind)kind, 1 + kind % 5, 90 + 40 * kind, 2 + kind % 3);
    check_cloud(a, UNIFORM, 1, 1, 2);
    check_cloud(a, UNIFORM, 4, 0, 2);
    check_cloud(a, SURFACE, 1, 2500, 2);
    check_cloud(a, CLUMPS, 7, 1500, 3);
}

/* Points beyond the range of keys, and on the borders of voxels. */
static void check_key_range(struct arena *a)
{
    enum { ROWS = 3000 };
    struct pnet_rand r = {.seed = 4, .purpose = PNET_DRAW_TEST};
    static const float reach[] = {0.3f, 100.0f, 20000.0f, 1e9f, 3e38f};
    static const int32_t factors[] = {1, 2, 3, 192};
    const int64_t splits[] = {0, ROWS / 4, ROWS / 4, ROWS};
    float *xyz = memory(ROWS * 3 * sizeof *xyz);
    for (int t = 0; t < 20; t++) {
        for (int i = 0; i < 3 * ROWS; i++)
            xyz[i] = (2 * pnet_rand_unit(&r, (uint64_t)(i + t * 3 * ROWS)) - 1) * reach[t / 4];
        for (int i = 0; i < 8; i++) xyz[3 * i] = (float)(i - 4) * cell;
        xyz[30] = -0.0f;
        struct cloud *c = cloud_of(3, splits, xyz, grid_of(cell, 1));
        check_order(a, &c->level, grid_of(cell, factors[t % 4]));
        check_buckets(a, &c->level, grid_of(cell, factors[t % 4]));
        check_sample(a, &c->level, grid_of(cell, factors[t % 4]), false);
        cloud_free(c);
    }
    free(xyz);
}

/* More samples than a warp has lanes, most of them empty or of one point. */
static void check_many_samples(struct arena *a)
{
    enum { ROWS = 700, SAMPLES = 900 };
    struct cloud *c = cloud_random(UNIFORM, 1, ROWS, grid_of(cell, 1), 9);
    int64_t splits[SAMPLES + 1];
    for (int s = 0; s <= SAMPLES; s++) {
        splits[s] = (int64_t)s * s * ROWS / (SAMPLES * SAMPLES) / 3 + (s > 500 ? 300 : 0);
        if (splits[s] > ROWS || s == SAMPLES) splits[s] = ROWS;
    }
    struct pnet_level l = c->level;
    l.samples = SAMPLES;
    l.row_splits = splits;
    const struct pnet_neighbourhood wide = {.kernel = 3, .radius = 0.4f},
                                    knn = {.kernel = 3, .knn = 5};
    for (int keyed = 0; keyed < 2; keyed++) {
        l.key = keyed ? c->key : NULL;
        check_order(a, &l, l.grid);
        check_buckets(a, &l, l.grid);
        check_sample(a, &l, grid_of(cell, 4), false);
        check_chunks(a, &l, 2);
        check_set(a, "many samples", &l, &l, &wide, NULL);
        check_set(a, "many samples", &l, &l, &knn, NULL);
        check_nearest(a, &l, &l, 4);
    }
    cloud_free(c);
}

/* Rows longer than any buffer: a thousand and more points in reach of a centre; and a coarse point
   with all others for children. */
static void check_long_rows(struct arena *a, int64_t rows)
{
    struct cloud *raw = cloud_random(UNIFORM, 1, rows, grid_of(cell, 1), 5),
                 *fine = cloud_sorted(raw);
    int32_t *parent, *only_parent;
    struct cloud *coarse = cloud_coarser(fine, grid_of(cell, 18), &parent),
                 *only = cloud_coarser(raw, grid_of(cell, 100000), &only_parent);
    const struct pnet_neighbourhood nb[] = {{.kernel = 3, .radius = 5},
        {.kernel = 9, .radius = 0.45f}, {.kernel = 3, .radius = 0.3f},
        {.kernel = 3, .radius = 0.01f}, {.kernel = 3, .knn = 20}};
    CHECK(coarse->level.rows > 1 && coarse->level.rows < 30 && only->level.rows <= 8);
    for (int n = 0; n < 5; n++) {
        check_set(a, "long rows", &coarse->level, &fine->level, &nb[n], parent);
        check_set(a, "one coarse point", &only->level, &raw->level, &nb[n], only_parent);
    }
    check_set(a, "rows of several hundreds", &fine->level, &fine->level, &nb[2], NULL);
    check_sample(a, &raw->level, grid_of(cell, 100000), false);
    check_sample(a, &fine->level, grid_of(cell, 1 << 20), true);
    cloud_free(coarse);
    cloud_free(only);
    cloud_free(fine);
    cloud_free(raw);
    free(parent);
    free(only_parent);
}

static void check_pointwise(struct arena *a)
{
    struct cloud *c = cloud_random(DUPLICATES, 3, 5000, grid_of(cell, 1), 2);
    const struct pnet_neighbourhood nb = {.kernel = 1, .pointwise = true};
    check_set(a, "pointwise", &c->level, &c->level, &nb, NULL);
    cloud_free(c);
}

/* As many points as a real batch has. */
static void check_large(struct arena *a)
{
    const float fine_cell = 0.002f;
    int32_t *parent, *up;
    struct cloud *raw = cloud_random(SURFACE, 3, 300000, grid_of(fine_cell, 1), 3),
                 *level = cloud_coarser(raw, grid_of(fine_cell, 1), &parent),
                 *coarse = cloud_coarser(level, grid_of(fine_cell, 2), &up);
    const struct pnet_level *l = &level->level;
    const struct pnet_neighbourhood nb[] = {{.kernel = 3, .radius = 0.004f},
        {.kernel = 5, .radius = 0.006f}, {.kernel = 3, .radius = 0.003f, .degrade = PNET_VOXEL},
        {.kernel = 3, .radius = 0.004f, .shape = PNET_CUBE}, {.kernel = 3, .knn = 16}};
    check_order(a, &raw->level, raw->level.grid);
    check_buckets(a, &raw->level, raw->level.grid);
    check_sample(a, &raw->level, grid_of(fine_cell, 1), false);
    check_sample(a, l, grid_of(fine_cell, 2), false);
    check_sample(a, l, grid_of(fine_cell, 2), true);
    for (int32_t size = 2; size <= 1024; size *= 8) check_chunks(a, l, size);
    for (int n = 0; n < 5; n++) {
        check_set(a, "large", l, l, &nb[n], NULL);
        check_set(a, "large, coarser", &coarse->level, l, &nb[n], up);
    }
    raw->level.key = NULL;
    check_set(a, "large, no keys", &raw->level, &raw->level, &nb[0], NULL);
    check_nearest(a, l, &coarse->level, 3);
    cloud_free(coarse);
    cloud_free(level);
    cloud_free(raw);
    free(parent);
    free(up);
}

int main(int argc, char **argv)
{
    const char *why;
    struct arena a;
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    bool little = getenv("PNET_SHORT") || (argc == 2 && strcmp(argv[1], "little") == 0);
    /* tools that watch memory go through all of it again and again */
    arena_open(&a, (size_t)(little ? 192 : argc > 1 ? 6144 : 2048) << 20);
    if (little) {
        check_little(&a);
        check_many_samples(&a);
        check_long_rows(&a, 1500);
    } else if (argc < 3) {
        check_clouds(&a);
        check_key_range(&a);
        check_many_samples(&a);
        check_long_rows(&a, 9000);
        check_pointwise(&a);
        check_large(&a);
    }
    if (argc > 1 && !little) print_times(&a, argv[1]);
    pnet_cuda_free(a.base);
    return check_end();
}
#endif
