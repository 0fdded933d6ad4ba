/* The source rows around queries: against the plain reference, by hand, and what must hold of any of them. */
#include <omp.h>

#include "kernels/cpu/geometry/ref_geometry.h"
#include "tests/check.h"
#include "tests/geometry/corners.h"

static const enum pnet_corner_kind kinds[] = {PNET_CORNERS_TRILINEAR, PNET_CORNERS_NEAREST};

/* Bit for bit, and the transposed form holds the same entries. */
static void check_lists(const struct corners *c, int64_t rows, const int32_t *row,
    const float *weight, const char *what)
{
    int64_t at = 0, wrong = 0;
    for (int64_t i = 0; i < rows; i++) {
        wrong += c->set.start[i] != at;
        for (int e = 0; e < PNET_CORNERS; e++) {
            if (row[i * PNET_CORNERS + e] < 0) continue;
            if (at < c->set.t.count)
                wrong += c->set.other[at] != row[i * PNET_CORNERS + e] || c->set.cell[at] != e ||
                         c->weight[at] != weight[i * PNET_CORNERS + e];
            at++;
        }
    }
    CHECKF(at == c->set.t.count && wrong == 0, "%s: %lld entries, not %lld; %lld wrong", what,
        (long long)c->set.t.count, (long long)at, (long long)wrong);
    wrong = 0;
    for (int64_t j = 0; j < c->back.t.rows; j++)
        for (int64_t t = c->back.start[j]; t < c->back.start[j + 1]; t++) {
            int64_t of = c->back.other[t] * PNET_CORNERS + c->back.cell[t];
            wrong += row[of] != j || weight[of] != c->back_weight[t];
        }
    CHECKF(wrong == 0, "%s: %lld transposed entries are wrong", what, (long long)wrong);
}

static void check_pair(const struct cloud *queries, const struct cloud *source, const char *what)
{
    size_t n = (size_t)queries->level.rows * PNET_CORNERS;
    int32_t *row = memory(n * sizeof *row);
    float *weight = memory(n * sizeof *weight);
    for (int k = 0; k < 4; k++) {
        enum pnet_corner_kind kind = kinds[k / 2];
        bool ref = pnet_ref_corners(&queries->level, &source->level, kind, k % 2, row, weight);
        CHECK(ref);
        for (int threads = 1; threads <= 3 && ref; threads++) {
            omp_set_num_threads(threads);
            struct corners c = corners_make(&queries->level, &source->level, kind, k % 2);
            check_lists(&c, queries->level.rows, row, weight, what);
            corners_free(&c);
        }
    }
    free(row);
    free(weight);
}

/* Queries of all kinds of clouds, around levels of several cells; they have the samples of the source, and other points. */
static void test_reference(void)
{
    static const int32_t factors[] = {1, 2, 3, 8};
    char what[80];
    for (int kind = 0; kind < CLOUD_KINDS; kind++)
        for (int f = 0; f < 4; f++) {
            int32_t *parent, samples = 1 + (kind + f) % 5;
            struct pnet_grid fine = grid_of(0.05f, 1), grid = grid_of(0.05f, factors[f]);
            struct cloud *points = cloud_random((enum cloud_kind)kind, samples, 330, fine, 7);
            struct cloud *source = cloud_coarser(points, grid, &parent);
            struct cloud *other =
                cloud_random((enum cloud_kind)kind, samples, 250, fine, 8 + (uint32_t)f);
            struct cloud *sorted = cloud_sorted(other);
            snprintf(what, sizeof what, "clouds %d, factor %d", kind, (int)factors[f]);
            check_pair(points, source, what);
            check_pair(other, source, what);
            check_pair(sorted, source, what);
            check_pair(source, source, what);
            cloud_free(points);
            cloud_free(source);
            cloud_free(other);
            cloud_free(sorted);
            free(parent);
        }
}

/* The value at one query of a level with rows of one channel. */
static float value_at(const struct cloud *source, const float *f, float x, float y, float z,
    enum pnet_corner_kind kind, bool outside)
{
    int64_t splits[2] = {0, 1};
    float p[3] = {x, y, z}, v = NAN;
    struct cloud *query = cloud_of(1, splits, p, source->level.grid);
    struct corners c = corners_make(&query->level, &source->level, kind, outside);
    struct pnet_weighted w = corners_weighted(&c, false);
    pnet_cpu_weighted_rows(&w, 1, f, false, &v);
    corners_free(&c);
    cloud_free(query);
    return v;
}

static float trilinear_at(const struct cloud *source, const float *f, float x, float y, float z)
{
    return value_at(source, f, x, y, z, PNET_CORNERS_TRILINEAR, false);
}

/* Voxels (-1, 0, 0), (0, 0, 0) and (1, 0, 0) of 1 m, or the last two. */
static void test_by_hand(void)
{
    const float xyz[] = {-0.6f, 0.4f, 0.7f, 0.1f, 0.2f, 0.3f, 1.9f, 0.5f, 0.5f}, f[] = {5, 1, 3};
    int64_t two[] = {0, 2}, three[] = {0, 3};
    struct cloud *s = cloud_of(1, two, xyz + 3, grid_of(1, 1));
    CHECK(trilinear_at(s, f + 1, 1, 0.5f, 0.5f) == 2);
    CHECK(trilinear_at(s, f + 1, 0.75f, 0.5f, 0.5f) == 1.5f);
    CHECK(trilinear_at(s, f + 1, 0.25f, 0.5f, 0.5f) == 1);    /* the corner at -1 is absent */
    CHECK(trilinear_at(s, f + 1, 0.75f, 0.1f, 0.9f) == 1.5f); /* six corners are absent */
    CHECK(trilinear_at(s, f + 1, 5, 5, 5) == 0);
    CHECK(trilinear_at(s, f + 1, 1e30f, 0, 0) == 0);
    CHECK(trilinear_at(s, f + 1, -1e9f, -1e9f, -1e9f) == 0);
    CHECK(value_at(s, f + 1, 5, 5, 5, PNET_CORNERS_TRILINEAR, true) == 3);
    CHECK(value_at(s, f + 1, -1e30f, 0, 0, PNET_CORNERS_TRILINEAR, true) == 1);
    CHECK(value_at(s, f + 1, 0.01f, 0.99f, 0.5f, PNET_CORNERS_NEAREST, false) == 1);
    CHECK(value_at(s, f + 1, 1, 0, 0, PNET_CORNERS_NEAREST, false) == 3);
    CHECK(value_at(s, f + 1, -0.01f, 0.5f, 0.5f, PNET_CORNERS_NEAREST, false) == 0);
    CHECK(value_at(s, f + 1, -0.01f, 0.5f, 0.5f, PNET_CORNERS_NEAREST, true) == 1);
    cloud_free(s);
    s = cloud_of(1, three, xyz, grid_of(1, 1));
    CHECK(trilinear_at(s, f, 0.25f, 0.5f, 0.5f) == 2);  /* 0.25 * 5 + 0.75 * 1 */
    CHECK(trilinear_at(s, f, -0.25f, 0.5f, 0.5f) == 4); /* indices floor, and are not truncated */
    CHECK(trilinear_at(s, f, -0.5f, 0.5f, 0.5f) == 5);
    CHECK(trilinear_at(s, f, -1.25f, 0.5f, 0.5f) == 5);
    CHECK(value_at(s, f, -0.75f, 0.5f, 0.5f, PNET_CORNERS_NEAREST, false) == 5);
    cloud_free(s);
}

/* A full grid of 12 x 12 x 12 voxels of factor 3, with the centres as features, and a constant. */
static void test_properties(void)
{
    enum { EDGE = 12, ROWS = EDGE * EDGE * EDGE, QUERIES = 4000, C = 4 };
    struct pnet_grid grid = grid_of(0.02f, 3);
    float *xyz = memory(ROWS * 3 * sizeof *xyz), *f = memory(ROWS * C * sizeof *f);
    float *at = memory(QUERIES * 3 * sizeof *at), *y = memory(QUERIES * C * sizeof *y);
    int64_t splits[] = {0, ROWS}, query_splits[] = {0, QUERIES}, inner = 0, wrong = 0;
    struct pnet_rand r = {.seed = 3, .purpose = PNET_DRAW_TEST};
    for (int i = 0; i < ROWS; i++)
        for (int a = 0; a < 3; a++)
            xyz[3 * i + a] = 0.06f * ((float)(i /
                                              (a == 0      ? EDGE * EDGE
                                                  : a == 1 ? EDGE
                                                           : 1) %
                                              EDGE) -
                                         5.5f);
    struct cloud *shuffled = cloud_of(1, splits, xyz, grid), *source = cloud_sorted(shuffled);
    for (int i = 0; i < ROWS * C; i++) f[i] = i % C == 3 ? 7 : source->xyz[3 * (i / C) + i % C];
    for (int i = 0; i < 3 * QUERIES; i++)
        at[i] = i < 3 * ROWS ? source->xyz[i] : 0.8f * (pnet_rand_unit(&r, (uint64_t)i) - 0.5f);
    struct cloud *queries = cloud_of(1, query_splits, at, grid);
    struct corners c = corners_make(&queries->level, &source->level, PNET_CORNERS_TRILINEAR, false);
    struct pnet_weighted w = corners_weighted(&c, false);
    pnet_cpu_weighted_rows(&w, C, f, false, y);
    for (int64_t i = 0; i < QUERIES; i++) {
        double sum = 0, error = 0;
        int64_t count = c.set.start[i + 1] - c.set.start[i];
        bool inside = true;
        for (int64_t t = c.set.start[i]; t < c.set.start[i + 1]; t++) sum += (double)c.weight[t];
        wrong += fabs(sum - (count > 0)) > 1e-6 || fabs((double)y[C * i + 3] - 7 * sum) > 1e-5;
        for (int a = 0; a < 3; a++) {
            inside &= fabsf(at[3 * i + a]) < 0.329f;
            error = fmax(error, fabs((double)y[C * i + a] - (double)at[3 * i + a]));
        }
        inner += inside;
        wrong += inside && error > 1e-6;
    }
    CHECKF(wrong == 0 && inner > 2000, "%lld of %lld wrong", (long long)wrong, (long long)inner);
    corners_free(&c);
    cloud_free(queries);
    cloud_free(source);
    cloud_free(shuffled);
    free(xyz);
    free(f);
    free(at);
    free(y);
}

/* Queries in another order have the same lists; samples by themselves too. */
static void test_order(void)
{
    enum { QUERIES = 3000 };
    int32_t *parent;
    struct pnet_grid fine = grid_of(0.05f, 1);
    struct cloud *points = cloud_random(SURFACE, 1, 2000, fine, 3);
    struct cloud *source = cloud_coarser(points, grid_of(0.05f, 2), &parent);
    struct cloud *queries = cloud_random(SURFACE, 1, QUERIES, fine, 4), *turned;
    int32_t row[QUERIES];
    for (int i = 0; i < QUERIES; i++) row[i] = (int32_t)((int64_t)i * 1009 % QUERIES);
    turned = cloud_pick(queries, row, queries->splits, fine);
    for (int k = 0; k < 2; k++) {
        struct corners a = corners_make(&queries->level, &source->level, kinds[k], true),
                       b = corners_make(&turned->level, &source->level, kinds[k], true);
        int64_t wrong = 0;
        for (int i = 0; i < QUERIES; i++) {
            int64_t from = a.set.start[row[i]], n = a.set.start[row[i] + 1] - from,
                    to = b.set.start[i];
            wrong += b.set.start[i + 1] - to != n ||
                     memcmp(a.set.other + from, b.set.other + to, (size_t)n * 4) != 0 ||
                     memcmp(a.weight + from, b.weight + to, (size_t)n * 4) != 0;
        }
        CHECKF(wrong == 0, "%lld queries depend on the order", (long long)wrong);
        corners_free(&a);
        corners_free(&b);
    }
    cloud_free(points);
    cloud_free(source);
    cloud_free(queries);
    cloud_free(turned);
    free(parent);
}

/* Levels without rows, and samples in which one side has none. */
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

/* A query on the centre of a voxel has a weight of 1 there, as far as float32 holds its place: exactly where cells are a power
   of two, else within half a step of q a side. */
static void test_centres(void)
{
    static const float bases[] = {0.5F, 0.1F, 0.07F, 0.05F};
    for (int b = 0; b < 4; b++)
        for (int32_t factor = 1; factor <= 3; factor++) {
            struct pnet_grid grid = grid_of(bases[b], factor);
            int inexact = 0, wrong = 0;
            for (int32_t i = -2000; i < 2000; i++) {
                float at = ((float)i + 0.5F) * (grid.base * (float)factor), weight[3][2];
                float p[3] = {at, at, at};
                int32_t low[3];
                bool there = pnet_corners_of(p, grid, low, weight);
                if (!there || (low[0] != i && low[0] != i - 1)) {
                    wrong++;
                    continue;
                }
                float own = weight[0][i - low[0]];
                inexact += own < 1;
                wrong += own < 1 - 0x1p-13F || weight[0][1 - (i - low[0])] > 0x1p-13F;
            }
            CHECKF(wrong == 0 && (inexact > 0) == (b > 0), "cells of %g times %d: %d, %d",
                (double)bases[b], (int)factor, wrong, inexact);
        }
}

int main(void)
{
    test_by_hand();
    test_centres();
    test_properties();
    test_order();
    test_nothing();
    test_reference();
    return check_end();
}
