/* Triplet sets against the plain reference, bit for bit: clouds of every kind, every neighbourhood
   and degradation, any number of threads, every instruction set, rows along the curve or shuffled.
 */
#include <omp.h>

#include "kernels/conv.h"
#include "tests/geometry/neighbourhoods.h"
#include "tests/check.h"
#include "tests/geometry/cloud.h"
#include "kernels/cpu/geometry/ref_geometry.h"

static const float cell = 0.05f;

static bool same_triplets(const struct set *s, int64_t count, const struct pnet_ref_triplet *t)
{
    if (s->t.count != count || s->start[0] != 0 || s->start[s->t.rows] != count) return false;
    for (int64_t i = 0; i < s->t.rows; i++)
        for (int64_t n = s->start[i]; n < s->start[i + 1]; n++)
            if (t[n].i != i || t[n].j != s->other[n] || t[n].k != s->cell[n]) return false;
    return true;
}

static int64_t cell_runs(int64_t count, const struct pnet_ref_triplet *t)
{
    int64_t runs = 0;
    for (int64_t n = 0; n < count; n++)
        runs += n == 0 || t[n].i != t[n - 1].i || t[n].k != t[n - 1].k;
    return runs;
}

/* One set, its transposed form and that transposed again. */
static void check_set(const char *what, const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent)
{
    int64_t count;
    struct pnet_ref_triplet *t = pnet_ref_triplets(out, in, nb, parent, &count);
    CHECK(t != NULL);
    if (!t) return;
    struct set s = set_make(out, in, nb, parent);
    int at = (int)(nb - neighbourhoods);
    CHECKF(same_triplets(&s, count, t),
        "%s, neighbourhood %d, %d and %d rows, %lld triplets for %lld", what, at, (int)out->rows,
        (int)in->rows, (long long)s.t.count, (long long)count);
    CHECK(pnet_cpu_cell_runs(&s.t) == cell_runs(count, t));
    struct set back = set_transposed(&s), again = set_transposed(&back);
    pnet_ref_transpose(count, t);
    CHECKF(same_triplets(&back, count, t), "%s, neighbourhood %d transposed", what, at);
    CHECKF(set_equal(&s, &again), "%s, neighbourhood %d transposed twice", what, at);
    set_free(&again);
    set_free(&back);
    set_free(&s);
    free(t);
}

/* On one level, and from it to coarser ones. */
static void check_levels(const char *what, const struct cloud *fine, int32_t factor)
{
    int32_t *parent;
    struct cloud *coarse = cloud_coarser(fine, grid_of(cell, factor), &parent);
    for (int n = 0; n < NEIGHBOURHOODS; n++) {
        const struct pnet_neighbourhood *nb = &neighbourhoods[n];
        if (nb->kernel % 2) check_set(what, &fine->level, &fine->level, nb, NULL);
        check_set(what, &coarse->level, &fine->level, nb, parent);
    }
    cloud_free(coarse);
    free(parent);
}

/* The level as it is kept (one point a voxel, in the order of keys), and points as they come. */
static void check_cloud(enum cloud_kind kind, int32_t samples, int64_t rows, int32_t factor)
{
    char what[64];
    snprintf(what, sizeof what, "kind %d", (int)kind);
    int32_t *parent;
    struct cloud *raw = cloud_random(kind, samples, rows, grid_of(cell, 1), (uint32_t)rows);
    struct cloud *level = cloud_coarser(raw, grid_of(cell, 1), &parent),
                 *sorted = cloud_sorted(raw);
    check_levels(what, level, factor);
    check_levels(what, sorted, factor);
    check_levels(what, raw, factor);
    raw->level.key = NULL;
    raw->level.grid = grid_of(cell, 1);
    check_set(what, &raw->level, &raw->level, &neighbourhoods[0], NULL);
    cloud_free(sorted);
    cloud_free(level);
    cloud_free(raw);
    free(parent);
}

static void check_everywhere(void)
{
    static const char *const isa[] = {"base", "avx2", "avx512"};
    for (int i = 0; i < 3; i++) {
        pnet_cpu_isa_limit(isa[i]);
        omp_set_num_threads(i == 1 ? 2 : 1);
        for (int kind = 0; kind < CLOUD_KINDS; kind++) {
            check_cloud(
                (enum cloud_kind)kind, 1 + (i + kind) % 5, 90 + 15 * kind, 2 + (i + kind) % 3);
            check_cloud((enum cloud_kind)kind, 1, 1, 2);
        }
        check_cloud(UNIFORM, 4, 0, 2);
    }
    pnet_cpu_isa_limit(NULL);
}

/* Rows longer than any buffer: a thousand and more points in reach of each centre. */
static void check_long_rows(void)
{
    struct cloud *raw = cloud_random(UNIFORM, 1, 9000, grid_of(cell, 1), 5),
                 *fine = cloud_sorted(raw);
    int32_t *parent;
    struct cloud *coarse = cloud_coarser(fine, grid_of(cell, 18), &parent);
    const struct pnet_neighbourhood all = {.kernel = 3, .radius = 5},
                                    most = {.kernel = 9, .radius = 0.45f};
    CHECK(coarse->level.rows > 1 && coarse->level.rows < 30);
    const struct pnet_neighbourhood *const nb[] = {&all, &most};
    for (int n = 0; n < 2; n++) {
        int64_t count;
        struct pnet_ref_triplet *t =
            pnet_ref_triplets(&coarse->level, &fine->level, nb[n], parent, &count);
        struct set s = set_make(&coarse->level, &fine->level, nb[n], parent);
        CHECK(t && same_triplets(&s, count, t));
        set_free(&s);
        free(t);
    }
    cloud_free(coarse);
    cloud_free(fine);
    cloud_free(raw);
    free(parent);
}

/* Any number of threads gives the same bits, on a cloud that is large enough to be shared out. */
static void check_threads(void)
{
    struct cloud *raw = cloud_random(SURFACE, 3, 40000, grid_of(0.01f, 1), 3), *first = NULL;
    struct set sets[4] = {0};
    for (int threads = 1; threads <= 3; threads++) {
        int32_t *parent;
        omp_set_num_threads(threads);
        struct cloud *level = cloud_coarser(raw, grid_of(0.01f, 1), &parent);
        const struct pnet_neighbourhood nb = {.kernel = 3, .radius = 0.02f},
                                        knn = {.kernel = 3, .knn = 6};
        struct set s = set_make(&level->level, &level->level, &nb, NULL), back = set_transposed(&s);
        struct set near = set_make(&level->level, &level->level, &knn, NULL);
        if (threads == 1) {
            first = level;
            sets[0] = s;
            sets[1] = back;
            sets[2] = near;
            CHECK(s.t.count > 3 * s.t.rows);
        } else {
            CHECK(first && level->level.rows == first->level.rows &&
                  memcmp(level->xyz, first->xyz, (size_t)level->level.rows * 12) == 0);
            CHECKF(set_equal(&s, &sets[0]), "%d threads", threads);
            CHECKF(set_equal(&back, &sets[1]), "%d threads", threads);
            CHECKF(set_equal(&near, &sets[2]), "%d threads", threads);
            set_free(&s);
            set_free(&back);
            set_free(&near);
            cloud_free(level);
        }
        free(parent);
    }
    for (int n = 0; n < 3; n++) set_free(&sets[n]);
    if (first) cloud_free(first);
    cloud_free(raw);
}

/* Points on voxel centres: native with shape=cube and the default radius is the voxel mode. */
static void check_voxel_property(int32_t kernel)
{
    int32_t *parent;
    struct cloud *raw = cloud_random(ON_CENTRES, 2, 700, grid_of(cell, 1), 11);
    struct cloud *level = cloud_coarser(raw, grid_of(cell, 1), &parent);
    struct pnet_neighbourhood native = {
        .kernel = kernel, .radius = (float)(kernel / 2.0 * 0.05), .shape = PNET_CUBE};
    struct pnet_neighbourhood voxel = native;
    voxel.degrade = PNET_VOXEL;
    struct set a = set_make(&level->level, &level->level, &native, NULL);
    struct set b = set_make(&level->level, &level->level, &voxel, NULL);
    CHECK(kernel == 1 || a.t.count > 2 * level->level.rows);
    CHECKF(set_equal(&a, &b), "kernel %d: %d native, %d voxel triplets", (int)kernel,
        (int)a.t.count, (int)b.t.count);
    set_free(&a);
    set_free(&b);
    cloud_free(level);
    cloud_free(raw);
    free(parent);
}

/* Where centres are those of voxels, a cube of next to no size holds what lies on them, bit for bit. */
static void check_centres(void)
{
    const struct pnet_neighbourhood nb = {
        .kernel = 3, .radius = 1e-9F, .shape = PNET_CUBE, .degrade = PNET_CENTRE};
    for (int n = 0; n < 2 * VOXEL_CENTRES; n++) {
        const struct voxel_centre *v = &voxel_centres[n / 2];
        float xyz[6];
        const int64_t splits[2] = {0, 2};
        voxel_centre_points(v, n % 2 == 0, xyz);
        struct cloud *c = cloud_of(1, splits, xyz, grid_of(v->base, v->factor));
        struct set s = set_make(&c->level, &c->level, &nb, NULL);
        CHECKF(s.t.count == 2 && s.start[1] == 1 && s.other[0] == n % 2 && s.other[1] == n % 2 &&
                   s.cell[0] == 13,
            "cells of %g times %d, voxel %d: %d triplets", (double)v->base, (int)v->factor,
            (int)v->index, (int)s.t.count);
        set_free(&s);
        cloud_free(c);
    }
}

/* Shuffled points make the shuffled set: i and j go through the permutation, k stays. */
static void check_permutation(void)
{
    enum { ROWS = 400 };
    struct cloud *a = cloud_random(UNIFORM, 1, ROWS, grid_of(cell, 1), 21);
    int32_t from[ROWS];
    for (int32_t i = 0; i < ROWS; i++) from[i] = (int32_t)((int64_t)i * 149 % ROWS);
    struct cloud *b = cloud_pick(a, from, a->splits, a->level.grid);
    const struct pnet_neighbourhood nb = {.kernel = 3, .radius = 0.15f};
    struct set sa = set_make(&a->level, &a->level, &nb, NULL),
               sb = set_make(&b->level, &b->level, &nb, NULL);
    bool same = sa.t.count == sb.t.count && sa.t.count > 2 * ROWS;
    for (int32_t i = 0; i < ROWS && same; i++) {
        int64_t begin = sa.start[from[i]], end = sa.start[from[i] + 1];
        same = sb.start[i + 1] - sb.start[i] == end - begin;
        for (int64_t n = sb.start[i]; n < sb.start[i + 1] && same; n++) {
            bool found = false;
            for (int64_t m = begin; m < end; m++)
                found |= sa.other[m] == from[sb.other[n]] && sa.cell[m] == sb.cell[n];
            same = found;
        }
    }
    CHECK(same);
    set_free(&sa);
    set_free(&sb);
    cloud_free(a);
    cloud_free(b);
}

static void check_pointwise(void)
{
    struct cloud *c = cloud_random(DUPLICATES, 3, 50, grid_of(cell, 1), 2);
    const struct pnet_neighbourhood nb = {.kernel = 1, .pointwise = true};
    struct set s = set_make(&c->level, &c->level, &nb, NULL);
    CHECK(s.t.count == 50);
    for (int32_t i = 0; i < 50; i++) CHECK(s.start[i] == i && s.other[i] == i && s.cell[i] == 0);
    set_free(&s);
    cloud_free(c);
}

int main(void)
{
    check_everywhere();
    check_long_rows();
    check_threads();
    check_voxel_property(1);
    check_voxel_property(3);
    check_voxel_property(5);
    check_centres();
    check_permutation();
    check_pointwise();
    return check_end();
}
