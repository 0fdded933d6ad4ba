/* Keys, order, sampling, children and nearest points against the plain reference. */
#include <limits.h>
#include <math.h>
#include <omp.h>

#include "tests/check.h"
#include "kernels/chunks.h"
#include "kernels/cpu/geometry/ref_geometry.h"
#include "tests/geometry/cloud.h"

static void check_keys(void)
{
    enum { ROWS = 3000 };
    struct pnet_rand r = {.seed = 4, .purpose = PNET_DRAW_TEST};
    static const float reach[] = {0.3f, 100.0f, 20000.0f, 1e9f};
    static const int32_t factors[] = {1, 2, 3, 192};
    float *xyz = memory(ROWS * 3 * sizeof *xyz);
    uint64_t *key = memory(ROWS * sizeof *key);
    for (int t = 0; t < 16; t++) {
        struct pnet_grid grid = grid_of(0.05f, factors[t % 4]);
        int64_t outside = 0, differ = 0;
        for (int i = 0; i < 3 * ROWS; i++)
            xyz[i] =
                (2 * pnet_rand_unit(&r, (uint64_t)i + (uint64_t)t * 3 * ROWS) - 1) * reach[t / 4];
        for (int i = 0; i < 8; i++)
            xyz[3 * i] = (float)(i - 4) * 0.05f; /* on the borders of voxels */
        xyz[30] = -0.0f;
        int64_t counted = pnet_cpu_keys(ROWS, xyz, grid, key);
        for (int i = 0; i < ROWS; i++) {
            int32_t v[3];
            bool inside = true;
            for (int a = 0; a < 3; a++) {
                double base = floor((double)(xyz[3 * i + a] * grid.inverse_base));
                double index = floor(base / grid.factor);
                inside &= fabs(base) < 0x1p30 && index >= -PNET_KEY_BIAS && index < PNET_KEY_BIAS;
            }
            outside += !inside;
            pnet_ref_voxel(xyz + 3 * i, grid, v);
            differ += key[i] != pnet_ref_key(v);
        }
        CHECKF(differ == 0, "%d keys differ, reach %g, factor %d", (int)differ,
            (double)reach[t / 4], (int)grid.factor);
        CHECKF(counted == outside, "%d points outside, counted %d", (int)outside, (int)counted);
    }
    const float wild[] = {INFINITY, 0, 0, 0, -INFINITY, 0, 0, 0, NAN, 1e38f, 1, 1, -3e38f, 0, 0};
    CHECK(pnet_cpu_keys(5, wild, grid_of(0.05f, 2), key) == 5);
    for (int i = 0; i < 5; i++) CHECK(key[i] >> 63 == 0);
    free(key);
    free(xyz);
}

struct item {
    uint64_t key;
    int32_t row;
};

static int compare_items(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->row - b->row;
}

/* Keys of `bits` random bits, shifted up, some of them equal. */
static void check_order_of(int64_t rows, int32_t samples, int bits, int shift, bool sorted)
{
    struct pnet_rand r = {
        .seed = 8, .purpose = PNET_DRAW_TEST, .a = (uint32_t)bits, .b = (uint32_t)shift};
    uint64_t *key = memory((size_t)rows * sizeof *key);
    int32_t *order = memory((size_t)rows * sizeof *order);
    struct item *items = memory((size_t)rows * sizeof *items);
    int64_t splits[MAX_SAMPLES + 1] = {0}, differ = 0;
    for (int64_t i = 0; i < rows; i++) {
        uint64_t wide = (uint64_t)pnet_rand_bits(&r, (uint64_t)(2 * i)) << 32 |
                        pnet_rand_bits(&r, (uint64_t)(2 * i + 1));
        key[i] = (sorted ? (uint64_t)i / 3 : wide >> (64 - bits)) << shift;
    }
    for (int32_t s = 1; s <= samples; s++)
        splits[s] = s == 2 && samples > 2 ? splits[1] : rows * s / samples;
    void *work = memory(pnet_cpu_order_work(rows));
    pnet_cpu_order(rows, samples, splits, key, order, work);
    for (int32_t s = 0; s < samples; s++) {
        for (int64_t i = splits[s]; i < splits[s + 1]; i++)
            items[i] = (struct item){key[i], (int32_t)i};
        qsort(items + splits[s], (size_t)(splits[s + 1] - splits[s]), sizeof *items, compare_items);
    }
    for (int64_t i = 0; i < rows; i++) differ += order[i] != items[i].row;
    CHECKF(differ == 0, "%d of %d rows, %d bits << %d", (int)differ, (int)rows, bits, shift);
    free(work);
    free(items);
    free(order);
    free(key);
}

static void check_order(void)
{
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        check_order_of(5000, 1, 63, 0, false);
        check_order_of(5000, 4, 7, 30, false);
        check_order_of(70000, 1, 63, 0, false); /* more than one round, several threads */
        check_order_of(70000, 2, 40, 13, false);
        check_order_of(70000, 1, 12, 51, false);
        check_order_of(40000, 1, 1, 0, true);
        check_order_of(0, 3, 5, 0, false);
        check_order_of(1, 1, 63, 0, false);
    }
}

/* Signed indices make keys whose upper bits all differ; they sort like the triples of bits that
 * they are. */
static void check_order_around_zero(void)
{
    struct cloud *c = cloud_random(UNIFORM, 1, 50000, grid_of(0.01f, 1), 77), *s = cloud_sorted(c);
    int64_t falls = 0;
    for (int64_t i = 1; i < s->level.rows; i++) falls += s->key[i] < s->key[i - 1];
    CHECK(falls == 0 && s->key[0] < s->key[s->level.rows - 1]);
    cloud_free(s);
    cloud_free(c);
}

static void check_children(int64_t fine, int64_t coarse, const int32_t *parent, bool ascend)
{
    int64_t *start = memory(((size_t)coarse + 1) * sizeof *start);
    int32_t *child = memory((size_t)fine * sizeof *child);
    int64_t wrong = 0, seen = 0;
    pnet_cpu_children(fine, coarse, parent, start, child);
    CHECK(start[0] == 0 && start[coarse] == fine);
    for (int64_t i = 0; i < coarse; i++)
        for (int64_t n = start[i]; n < start[i + 1]; n++, seen++)
            wrong += parent[child[n]] != i || (n > start[i] && child[n] <= child[n - 1]);
    CHECK(seen == fine && wrong == 0);
    int64_t *stretch = memory(((size_t)coarse + 1) * sizeof *stretch);
    if (ascend) {
        pnet_cpu_children(fine, coarse, parent, stretch, NULL);
        CHECK(memcmp(stretch, start, ((size_t)coarse + 1) * sizeof *start) == 0);
        for (int64_t j = 0; j < fine; j++) CHECK(child[j] == j);
    }
    free(stretch);
    free(child);
    free(start);
}

/* `ordered`: so are the rows already. */
static void check_sample_of(const struct cloud *c, struct pnet_grid grid, bool ordered)
{
    int64_t rows = c->level.rows, splits[MAX_SAMPLES + 1], want_splits[MAX_SAMPLES + 1];
    size_t bytes = (size_t)rows * sizeof(int32_t);
    int32_t *keep = memory(bytes), *parent = memory(bytes), *want_keep = memory(bytes),
            *want_parent = memory(bytes);
    void *work = memory(pnet_cpu_sample_work(rows, ordered));
    int64_t count = pnet_cpu_sample(&c->level, grid, ordered, keep, parent, splits, work);
    int64_t want = pnet_ref_sample(&c->level, grid, want_keep, want_parent, want_splits);
    CHECKF(count == want, "%d coarse rows for %d", (int)count, (int)want);
    CHECK(count != want || memcmp(keep, want_keep, (size_t)count * sizeof *keep) == 0);
    CHECK(memcmp(parent, want_parent, bytes) == 0);
    CHECK(memcmp(splits, want_splits, ((size_t)c->level.samples + 1) * sizeof *splits) == 0);
    for (int64_t i = 0; i < count; i++) CHECK(parent[keep[i]] == i);
    check_children(rows, count, parent, ordered);
    free(work);
    free(keep);
    free(parent);
    free(want_keep);
    free(want_parent);
}

static void check_sample(void)
{
    static const int32_t factors[] = {1, 2, 3, 100000, 64};
    for (int kind = 0; kind < CLOUD_KINDS; kind++)
        for (int f = 0; f < 5; f++) {
            omp_set_num_threads(1 + (kind + f) % 3);
            struct cloud *raw = cloud_random(
                (enum cloud_kind)kind, 1 + (kind + f) % 6, 120, grid_of(0.05f, 1), (uint32_t)f);
            struct cloud *sorted = cloud_sorted(raw);
            struct pnet_grid grid = grid_of(0.05f, factors[f]);
            check_sample_of(raw, grid, false);
            check_sample_of(sorted, grid, false);
            CHECK(pnet_grid_follows(sorted->level.grid, grid) == (f < 2 || f == 4));
            if (f < 2 || f == 4) check_sample_of(sorted, grid, true);
            cloud_free(sorted);
            cloud_free(raw);
        }
    struct cloud *none = cloud_random(UNIFORM, 3, 0, grid_of(0.05f, 1), 0);
    check_sample_of(none, grid_of(0.05f, 1), false);
    check_sample_of(none, grid_of(0.05f, 1), true);
    CHECK(!pnet_grid_follows(grid_of(0.05f, 1), grid_of(0.1f, 1)));
    CHECK(!pnet_grid_follows((struct pnet_grid){0, 0, 1}, (struct pnet_grid){0, 0, 2}));
    CHECK(!pnet_grid_follows(grid_of(0.05f, 4), grid_of(0.05f, 2)));
    CHECK(pnet_grid_follows(grid_of(0.05f, 3), grid_of(0.05f, 6)));
    cloud_free(none);
}

/* The nearest point to a centre is the one that lies there, whichever comes first. */
static void check_centres(void)
{
    for (int n = 0; n < 2 * VOXEL_CENTRES; n++) {
        const struct voxel_centre *v = &voxel_centres[n / 2];
        float xyz[6];
        int64_t splits[2] = {0, 2}, coarse[2];
        int32_t keep[2] = {-1, -1}, parent[2], voxel[3];
        struct pnet_grid grid = grid_of(v->base, v->factor);
        voxel_centre_points(v, n % 2 == 0, xyz);
        struct cloud *c = cloud_of(1, splits, xyz, grid);
        void *work = memory(pnet_cpu_sample_work(2, false));
        pnet_ref_voxel(xyz, grid, voxel);
        CHECK(voxel[0] == v->index && voxel[1] == v->index);
        CHECK(pnet_cpu_sample(&c->level, grid, false, keep, parent, coarse, work) == 1);
        CHECKF(keep[0] == n % 2, "cells of %g times %d, voxel %d: row %d", (double)v->base,
            (int)v->factor, (int)v->index, (int)keep[0]);
        check_sample_of(c, grid, false);
        free(work);
        cloud_free(c);
    }
}

/* Voxels that reach over the parts that are numbered side by side. */
static void check_large_sample(void)
{
    struct cloud *raw = cloud_random(SURFACE, 2, 60000, grid_of(0.02f, 1), 6), *first = NULL;
    int32_t *parents[4] = {NULL};
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        struct cloud *c = cloud_coarser(raw, grid_of(0.02f, 16), &parents[threads]);
        if (threads == 1) {
            first = c;
            CHECK(c->level.rows > 10 && c->level.rows < 200);
            continue;
        }
        CHECK(c->level.rows == first->level.rows);
        CHECK(memcmp(c->xyz, first->xyz, (size_t)first->level.rows * 3 * sizeof(float)) == 0);
        CHECK(memcmp(parents[threads], parents[1], 60000 * sizeof(int32_t)) == 0);
        cloud_free(c);
    }
    int64_t wrong = 0;
    for (int64_t i = 0; i < raw->level.rows; i++) {
        int32_t own[3], kept[3];
        pnet_ref_voxel(raw->xyz + 3 * i, grid_of(0.02f, 16), own);
        pnet_ref_voxel(first->xyz + 3 * (int64_t)parents[1][i], grid_of(0.02f, 16), kept);
        wrong += memcmp(own, kept, sizeof own) != 0;
    }
    CHECK(wrong == 0);
    for (int t = 1; t <= 3; t++) free(parents[t]);
    cloud_free(first);
    cloud_free(raw);
}

/* Does a level of chunks hold what the reference says? */
static void check_chunks_of(const struct cloud *c, int32_t size)
{
    int64_t rows = c->level.rows, splits[MAX_SAMPLES + 1], want_splits[MAX_SAMPLES + 1], wrong = 0;
    size_t bytes = (size_t)rows * sizeof(int32_t);
    int32_t *parent = memory(bytes), *keep = memory(bytes), *want = memory(bytes);
    int64_t count = pnet_cpu_chunk_splits(c->level.samples, c->splits, size, splits);
    float *xyz = memory((size_t)count * 3 * sizeof *xyz);
    pnet_cpu_chunk_points(&c->level, size, count, splits, xyz, parent);
    CHECK(pnet_ref_chunks(&c->level, size, keep, want, want_splits) == count);
    CHECK(memcmp(splits, want_splits, ((size_t)c->level.samples + 1) * sizeof *splits) == 0);
    CHECK(memcmp(parent, want, bytes) == 0);
    for (int64_t i = 0; i < count; i++)
        wrong += memcmp(xyz + 3 * i, c->xyz + 3 * (int64_t)keep[i], 3 * sizeof *xyz) != 0;
    CHECKF(wrong == 0, "%d of %d points, chunks of %d", (int)wrong, (int)count, (int)size);
    check_children(rows, count, parent, true);
    free(xyz);
    free(parent);
    free(keep);
    free(want);
}

/* Rows of chunks and their points, by hand: the nearest to the mean, among equals and of two the first. */
static void check_chunks_by_hand(void)
{
    const float xyz[] = {0, 0, 0, 9, 0, 0, 4, 0, 0, /* mean 13/3 */
        1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0,         /* a square */
        200, 0, 0, 0x1p60f, 0, 0 /* whose mean is rounded towards the second */};
    const int64_t splits[] = {0, 3, 3, 7, 9};
    const int64_t want_splits[] = {0, 1, 1, 2, 3};
    const int32_t kept[] = {2, 3, 7}, want_parent[] = {0, 0, 0, 1, 1, 1, 1, 2, 2};
    struct cloud *c = cloud_of(4, splits, xyz, grid_of(0.05f, 1));
    int64_t found[5];
    int32_t parent[9];
    float points[9];
    CHECK(pnet_cpu_chunk_splits(4, splits, 4, found) == 3);
    CHECK(memcmp(found, want_splits, sizeof found) == 0);
    pnet_cpu_chunk_points(&c->level, 4, 3, found, points, parent);
    CHECK(memcmp(parent, want_parent, sizeof parent) == 0);
    for (int i = 0; i < 3; i++)
        CHECKF(memcmp(points + 3 * i, xyz + 3 * kept[i], 12) == 0, "chunk %d", i);
    CHECK(pnet_cpu_chunk_splits(4, splits, 2, found) == 5 && found[1] == 2 && found[3] == 4);
    cloud_free(c);
}

static void check_chunks(void)
{
    static const int32_t sizes[] = {2, 3, 4, 16, 65536};
    check_chunks_by_hand();
    for (int kind = 0; kind < CLOUD_KINDS; kind++)
        for (int n = 0; n < 5; n++) {
            omp_set_num_threads(1 + (kind + n) % 3);
            struct cloud *c = cloud_random(
                (enum cloud_kind)kind, 1 + (kind + n) % 6, 250, grid_of(0.05f, 1), (uint32_t)n);
            check_chunks_of(c, sizes[n]);
            cloud_free(c);
        }
    struct cloud *none = cloud_random(UNIFORM, 3, 0, grid_of(0.05f, 1), 0),
                 *many = cloud_random(SURFACE, 5, 40000, grid_of(0.05f, 1), 3);
    omp_set_num_threads(3);
    check_chunks_of(none, 2);
    for (int n = 0; n < 4; n++) check_chunks_of(many, sizes[n]);
    cloud_free(many);
    cloud_free(none);
}

static void check_nearest_of(const struct cloud *out, const struct cloud *in, int32_t k)
{
    size_t count = (size_t)(out->level.rows * k);
    int32_t *index = memory(count * sizeof *index), *want = memory(count * sizeof *want);
    float *distance2 = memory(count * sizeof *distance2),
          *want_distance2 = memory(count * sizeof *want_distance2);
    void *work = memory(pnet_cpu_nearest_work(&out->level, &in->level, k));
    pnet_cpu_nearest(&out->level, &in->level, k, index, distance2, work);
    CHECK(pnet_ref_nearest(&out->level, &in->level, k, want, want_distance2));
    CHECKF(memcmp(index, want, count * sizeof *index) == 0, "k %d", (int)k);
    CHECKF(memcmp(distance2, want_distance2, count * sizeof *distance2) == 0, "k %d", (int)k);
    free(work);
    free(index);
    free(want);
    free(distance2);
    free(want_distance2);
}

static void check_nearest(void)
{
    static const int32_t ks[] = {1, 3, 17, 300};
    for (int kind = 0; kind < CLOUD_KINDS; kind++) {
        int32_t *parent;
        omp_set_num_threads(1 + kind % 3);
        struct cloud *raw =
            cloud_random((enum cloud_kind)kind, 1 + kind % 4, 250, grid_of(0.05f, 1), 31);
        struct cloud *coarse = cloud_coarser(raw, grid_of(0.05f, 3), &parent);
        for (int n = 0; n < 4; n++) {
            check_nearest_of(raw, coarse, ks[n]);
            check_nearest_of(raw, raw, ks[n]);
        }
        cloud_free(coarse);
        cloud_free(raw);
        free(parent);
    }
}

int main(void)
{
    check_keys();
    check_order();
    check_order_around_zero();
    check_sample();
    check_centres();
    check_large_sample();
    check_chunks();
    check_nearest();
    return check_end();
}
