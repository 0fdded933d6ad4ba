/* Points, levels and sets by their definitions, plainly: each voxel and each pair is looked at. And what does not change them:
   the order of rows, threads, the way samples are told. */
#include "tests/library/points.h"

#include <omp.h>
#include <pthread.h>

enum { ROWS = 700, THREADS = 4 };

/* A level against what it was sampled from, whose rows decide between equals by `rank`. */
static void check_level(const struct pnet_points *fine, const struct pnet_points *level,
    double base, int factor, const int32_t *rank)
{
    int64_t n = points_info(fine).rows, rows = points_info(level).rows, wrong = 0, kept = 0;
    float *at = points_positions(fine), *to = points_positions(level);
    int32_t *sample = points_samples(fine), *of = points_samples(level),
            *parent = points_parents(fine, level);
    float cell = (float)factor * (float)base;
    for (int64_t i = 0; i < n; i++) {
        int own[3], other[3];
        points_voxel_of(at + 3 * i, base, factor, own);
        float centre[3];
        for (int a = 0; a < 3; a++) centre[a] = ((float)own[a] + 0.5F) * cell;
        int64_t best = i;
        for (int64_t k = 0; k < n; k++) {
            points_voxel_of(at + 3 * k, base, factor, other);
            bool same = sample[k] == sample[i] && points_same_voxel(own, other);
            wrong += same != (parent[k] == parent[i]);
            if (!same) continue;
            float d = points_square(at + 3 * k, centre),
                  least = points_square(at + 3 * best, centre);
            if (d < least || (d == least && rank[k] < rank[best])) best = k;
        }
        wrong += parent[i] < 0 || parent[i] >= rows || of[parent[i]] != sample[i] ||
                 memcmp(to + 3 * parent[i], at + 3 * best, 12) != 0;
        kept += best == i;
    }
    CHECKF(wrong == 0 && kept == rows && rows < n, "%d wrong, %d of %d rows", (int)wrong, (int)kept,
        (int)rows);
    for (int64_t i = 1; i < rows; i++) wrong += of[i] < of[i - 1];
    CHECK(wrong == 0 && fabs(points_info(level).cell - base * factor) < 1e-12);
    free(at);
    free(to);
    free(sample);
    free(of);
    free(parent);
}

/* Levels do not depend on the order inside of the points: `cell` 0 and that of the level give the same. */
static void test_levels(void)
{
    struct points_cloud c = points_fill(ROWS);
    int32_t *rank = sets_room(ROWS, sizeof *rank);
    for (int i = 0; i < ROWS; i++) rank[i] = i;
    for (int turn = 0; turn < 3; turn++) {
        struct pnet_points *p = points_make(&c, turn == 0   ? 0
                                                : turn == 1 ? 0.125
                                                            : 0.03),
                           *g0 = points_grid(p, 0.125), *g1 = points_grid(g0, 0.25),
                           *g2 = points_grid(g1, 0.75), *again = points_grid(g1, 0.25);
        check_level(p, g0, 0.125, 1, rank);
        check_level(g0, g1, 0.125, 2, rank);
        check_level(g1, g2, 0.125, 6, rank);
        CHECK(again == g1);
        int32_t *one = points_parents(p, g0), *two = points_parents(g0, g1),
                *three = points_parents(g1, g2), *all = points_parents(p, g2),
                *none = points_parents(g1, g1), *source = points_sources(g2);
        float *at = points_positions(g2);
        int wrong = 0;
        for (int i = 0; i < ROWS; i++) wrong += all[i] != three[two[one[i]]];
        for (int64_t i = 0; i < points_info(g1).rows; i++) wrong += none[i] != i;
        for (int64_t i = 0; i < points_info(g2).rows; i++)
            wrong += memcmp(at + 3 * i, c.xyz + 3 * source[i], 12) != 0;
        CHECK(wrong == 0);
        free(one);
        free(two);
        free(three);
        free(all);
        free(none);
        free(source);
        free(at);
        pnet_points_free(p); /* levels keep what they were sampled from */
        pnet_points_free(g0);
        pnet_points_free(g1);
        CHECK(points_info(g2).batches == POINTS_SAMPLES);
        pnet_points_free(again);
        pnet_points_free(g2);
    }
    free(rank);
    points_drop(&c);
}

/* Is (i, j) a pair by radius, and in which cell? */
static int cell_of(const float *p, const float *q, int kernel, float radius, bool cube, bool child)
{
    float d[3];
    int k = 0;
    for (int a = 0; a < 3; a++) d[a] = q[a] - p[a];
    bool near = cube ? fabsf(d[0]) <= radius && fabsf(d[1]) <= radius && fabsf(d[2]) <= radius
                     : points_square(q, p) <= radius * radius;
    if (!near && !child) return -1;
    for (int a = 0; a < 3; a++) {
        volatile float scaled = d[a] * (float)((double)kernel / (2 * (double)radius));
        volatile float moved = scaled + (float)kernel / 2;
        float cell = floorf(moved);
        k = k * kernel + (int)fmaxf(0, fminf(cell, (float)kernel - 1));
    }
    return k;
}

/* The sums over a set, from its triplets in double. */
static void check_sums(
    const struct pnet_set *set, const int32_t *i, const int32_t *j, const int32_t *k)
{
    struct sets_case layer = {.in = 4, .out = 6, .groups = 2};
    struct sets_sums s = sets_take(&layer, set);
    double *y = sets_room((size_t)s.result_count, sizeof *y),
           *x = sets_room((size_t)s.feature_count, sizeof *x),
           *w = sets_room((size_t)s.weight_count, sizeof *w);
    for (int64_t n = 0; n < sets_info(set).triplets; n++)
        sets_add(&layer, &s, i[n], j[n], k[n], y, x, w);
    sets_run(&layer, set, &s);
    double of_y = sets_error(s.result, y, s.result_count),
           of_x = sets_error(s.to_features, x, s.feature_count),
           of_w = sets_error(s.to_weights, w, s.weight_count);
    CHECKF(of_y < 1e-6 && of_x < 1e-6 && of_w < 1e-6, "%g, %g, %g", of_y, of_x, of_w);
    free(y);
    free(x);
    free(w);
    sets_drop(&s);
}

static void check_set(const struct pnet_points *out, const struct pnet_points *in,
    const struct pnet_near_options *o, float radius)
{
    struct pnet_set *set = NULL;
    NEED(pnet_set_points(out, in, o, &set, &e));
    struct pnet_set_info info = sets_info(set);
    size_t n = (size_t)info.triplets;
    int32_t *i = sets_room(n, 4), *j = sets_room(n, 4), *k = sets_room(n, 4);
    NEED(pnet_set_get_triplets(set, i, j, k, info.triplets, &e));
    float *p = points_positions(out), *q = points_positions(in);
    int32_t *of_p = points_samples(out), *of_q = points_samples(in), *parent = NULL;
    if (out != in) parent = points_parents(in, out);
    int64_t at = 0, wrong = 0;
    int kernel = o->kernel ? o->kernel : 3;
    for (int64_t a = 0; a < info.rows_out; a++)
        for (int c = 0; c < kernel * kernel * kernel; c++)
            for (int64_t b = 0; b < info.rows_in; b++) {
                bool child = parent && parent[b] == a;
                if (of_p[a] != of_q[b] || cell_of(p + 3 * a, q + 3 * b, kernel, radius,
                                              o->shape == PNET_NEAR_CUBE, child) != c)
                    continue;
                wrong += at >= info.triplets || i[at] != a || j[at] != b || k[at] != c;
                at++;
            }
    CHECKF(!wrong && at == info.triplets && at > info.rows_out, "%d wrong, %d of %d", (int)wrong,
        (int)at, (int)info.triplets);
    check_sums(set, i, j, k);
    free(i);
    free(j);
    free(k);
    free(p);
    free(q);
    free(of_p);
    free(of_q);
    free(parent);
    pnet_set_free(set);
}

static void test_sets(void)
{
    struct points_cloud c = points_fill(ROWS);
    struct pnet_points *p = points_make(&c, 0), *g0 = points_grid(p, 0.125),
                       *g1 = points_grid(g0, 0.25);
    struct pnet_near_options ball = {.size = sizeof ball, .radius = 0.2},
                             cube = {.size = sizeof cube,
                                 .kernel = 5,
                                 .radius = 0.15,
                                 .shape = PNET_NEAR_CUBE},
                             even = {.size = sizeof even, .kernel = 2, .radius = 0.1},
                             usual = {.size = sizeof usual};
    check_set(p, p, &ball, 0.2F);
    check_set(p, p, &cube, 0.15F);
    check_set(g0, g0, &usual, (float)(1.5 * 0.125));
    check_set(g0, p, &even, 0.1F);
    check_set(g1, g0, &usual, (float)(1.5 * 0.125));
    check_set(g1, p, &cube, 0.15F);
    pnet_points_free(g1);
    pnet_points_free(g0);
    pnet_points_free(p);
    points_drop(&c);
}

/* Which rows of a second set are which of a first one: NULL: the same. */
struct shuffled {
    const struct pnet_set *one, *two;
    const int64_t *in, *out;
};

static int64_t old_row(const int64_t *moved, int64_t row)
{
    return moved ? moved[row] : row;
}

static void move_rows(
    float *to, const float *from, const int64_t *moved, int64_t count, int32_t width)
{
    for (int64_t r = 0; r < count / width; r++)
        memcpy(to + r * width, from + old_row(moved, r) * width, (size_t)width * sizeof *to);
}

static int64_t count_others(
    const float *got, const float *of, const int64_t *moved, int64_t count, int32_t width)
{
    int64_t wrong = 0;
    for (int64_t r = 0; r < count / width; r++)
        wrong += memcmp(got + r * width, of + old_row(moved, r) * width,
                     (size_t)width * sizeof *got) != 0;
    return wrong;
}

/* How many rows of the three sums have other bits, for channels that different kernels work on; of gradients of weights all count
   as one. */
static int64_t count_moved(const struct shuffled *p)
{
    static const int32_t channels[][3] = {{5, 6, 1}, {8, 8, 2}, {8, 8, 8}, {160, 40, 1}};
    int64_t others = 0;
    for (size_t k = 0; k < sizeof channels / sizeof *channels; k++) {
        struct sets_case layer = {
            .in = channels[k][0], .out = channels[k][1], .groups = channels[k][2]};
        struct sets_sums s = sets_take(&layer, p->one), t = sets_take(&layer, p->two);
        memcpy(t.weights, s.weights, (size_t)s.weight_count * 4);
        move_rows(t.features, s.features, p->in, s.feature_count, layer.in);
        move_rows(t.gradient, s.gradient, p->out, s.result_count, layer.out);
        sets_run(&layer, p->one, &s);
        sets_run(&layer, p->two, &t);
        others += count_others(t.result, s.result, p->out, s.result_count, layer.out) +
                  count_others(t.to_features, s.to_features, p->in, s.feature_count, layer.in) +
                  (memcmp(t.to_weights, s.to_weights, (size_t)s.weight_count * 4) != 0);
        sets_drop(&s);
        sets_drop(&t);
    }
    return others;
}

/* The same of the set that the blocks of `two` make: they keep the order in which triplets lie. Damaged blocks are
   refused. */
static int64_t count_packed(const struct shuffled *p)
{
    struct pnet_packed b = {.size = sizeof b};
    struct pnet_set *set = NULL, *other = NULL;
    NEED(pnet_set_packed_sizes(p->two, &b, &e));
    b.by_out = sets_room(b.by_out_bytes, 1);
    b.by_in = sets_room(b.by_in_bytes, 1);
    NEED(pnet_set_pack(p->two, &b, &e));
    NEED(pnet_set_unpack(&b, &set, &e));
    int64_t others = count_moved(&(struct shuffled){p->one, set, p->in, p->out});
    pnet_set_free(set);
    if (b.by_out_bytes %
        64) { /* the end: rows by place, places by row, and 16 bytes more than a multiple of 64 */
        size_t stretch = ((size_t)b.rows_out * 4 + 63) / 64 * 64, end = b.by_out_bytes / 64 * 64;
        for (int list = 1; list <= 2; list++) {
            int32_t *at = (int32_t *)(void *)((char *)b.by_out + end - (size_t)list * stretch);
            const int32_t wrong[] = {-1, INT32_MAX, at[1]};
            int32_t first = at[0];
            for (int i = 0; i < 3; i++) {
                at[0] = wrong[i];
                REFUSED(pnet_set_unpack(&b, &other, &e), PNET_BAD_DATA, "rows and places");
            }
            at[0] = first;
        }
        NEED(pnet_set_unpack(&b, &other, &e));
        pnet_set_free(other);
        other = NULL;
        b.by_out_bytes -= 16;
        REFUSED(pnet_set_unpack(&b, &other, &e), PNET_BAD_DATA, "more or fewer");
    }
    free(b.by_out);
    free(b.by_in);
    return others;
}

/* Levels, and sums over sets from and to the points, of a cloud in two orders: how many sums of rows have other bits. `cell`: of
   the points; 0: none but those in one place share one. `keep`: points of one cell stay in their order. */
static int64_t count_in_order(double cell, bool keep)
{
    struct points_cloud c = points_fill(ROWS), mixed = points_fill(ROWS);
    int64_t moved[ROWS], others = 0;
    memcpy(mixed.xyz, c.xyz, ROWS * 12);
    if (keep)
        points_shuffle_cells(&mixed, cell, moved);
    else
        points_shuffle(&mixed, moved);
    omp_set_num_threads(1);
    struct pnet_points *a = points_make(&c, cell), *a1 = points_grid(a, 0.1);
    omp_set_num_threads(3);
    struct pnet_points *b = points_make_mixed(&mixed, cell), *b1 = points_grid(b, 0.1);
    float *of_a = points_positions(a1), *of_b = points_positions(b1);
    CHECK(points_info(a1).rows == points_info(b1).rows &&
          !memcmp(of_a, of_b, (size_t)points_info(a1).rows * 12));
    free(of_a);
    free(of_b);
    struct pnet_near_options o = {.size = sizeof o, .radius = 0.17};
    for (int kind = 0; kind < 3; kind++) { /* on the points, to the level, back */
        struct pnet_points *pairs[][4] = {{a, a, b, b}, {a1, a, b1, b}, {a, a1, b, b1}};
        struct pnet_set *one = NULL, *two = NULL;
        NEED(pnet_set_points(pairs[kind][0], pairs[kind][1], &o, &one, &e));
        NEED(pnet_set_points(pairs[kind][2], pairs[kind][3], &o, &two, &e));
        struct shuffled both = {one, two, kind != 2 ? moved : NULL, kind != 1 ? moved : NULL};
        others += count_moved(&both) + count_packed(&both);
        pnet_set_free(one);
        pnet_set_free(two);
    }
    pnet_points_free(a);
    pnet_points_free(a1);
    pnet_points_free(b);
    pnet_points_free(b1);
    points_drop(&c);
    points_drop(&mixed);
    return others;
}

static void test_orders(void)
{
    CHECK(count_in_order(0, false) == 0);
    CHECK(count_in_order(0.25, true) == 0);
    CHECK(count_in_order(0.25, false) > 0); /* the order of the caller is that of the sums */
}

/* Points that lie along the curve already: those of a level, whose set is the level's. */
static void test_as_given(void)
{
    struct points_cloud c = points_fill(ROWS);
    struct pnet_points *p = points_make(&c, 0), *g = points_grid(p, 0.125), *q = NULL;
    int64_t rows = points_info(g).rows;
    float *at = points_positions(g);
    int32_t *sample = points_samples(g);
    struct pnet_array xyz = sets_array(at, rows, 3), of = points_ints(sample, rows);
    struct pnet_points_options o = {
        .size = sizeof o, .sample = &of, .batches = POINTS_SAMPLES, .cell = 0.125};
    struct pnet_near_options near = {.size = sizeof near, .radius = 0.2};
    NEED(pnet_points_new(&xyz, &o, &q, &e));
    struct pnet_set *one = NULL, *two = NULL;
    NEED(pnet_set_points(g, g, &near, &one, &e));
    NEED(pnet_set_points(q, q, &near, &two, &e));
    CHECK(count_moved(&(struct shuffled){one, two, NULL, NULL}) == 0);
    check_set(q, q, &near, 0.2F);
    pnet_set_free(one);
    pnet_set_free(two);
    pnet_points_free(p);
    pnet_points_free(g);
    pnet_points_free(q);
    points_drop(&c);
    free(at);
    free(sample);
}

/* Maps, attention and losses of a batch without points: there is nothing to compute, and that is no error. */
static void check_nothing(const struct pnet_points *p, const struct pnet_points *g)
{
    struct pnet_array none = {NULL, PNET_DTYPE_F32, 0, 24, 0},
                      eight = {NULL, PNET_DTYPE_F32, 0, 8, 0};
    struct pnet_array_out to = {NULL, PNET_DTYPE_F32, 0, 24, 0},
                          to_eight = {NULL, PNET_DTYPE_F32, 0, 8, 0},
                          three = {NULL, PNET_DTYPE_F32, 0, 3, 0};
    int32_t row = 0;
    float number = 1;
    for (int kind = PNET_MAP_MEAN; kind <= PNET_MAP_NEAREST; kind++) {
        struct pnet_map_options o = {
            .size = sizeof o, .kind = (enum pnet_map_kind)kind, .outside_nearest = 1};
        struct pnet_map_run r = {.size = sizeof r, .argmax = &row};
        struct pnet_map *map = NULL;
        bool up = kind >= PNET_MAP_PARENT;
        NEED(pnet_map_new(up ? p : g, up ? g : p, &o, &map, &e));
        NEED(pnet_map_forward(map, &none, &r, &to, &e));
        NEED(pnet_map_backward(map, &none, &r, &to, &e));
        pnet_map_free(map);
    }
    struct pnet_buckets_options hilbert = {.size = sizeof hilbert, .order = PNET_BUCKETS_HILBERT};
    struct pnet_buckets *b = NULL;
    NEED(pnet_buckets_new(g, &hilbert, &b, &e));
    NEED(pnet_attend_forward(b, &none, NULL, &to_eight, &e));
    NEED(pnet_attend_backward(b, &none, &eight, &eight, NULL, &to, &e));
    pnet_buckets_free(b);
    for (int kind = PNET_LOSS_CHAMFER; kind <= PNET_LOSS_APML; kind++) {
        struct pnet_loss_options o = {.size = sizeof o};
        struct pnet_loss_run r = {.size = sizeof r, .kept = &number};
        NEED(pnet_loss_default((enum pnet_loss_kind)kind, &o, &e));
        number = 1;
        NEED(pnet_loss_forward(p, g, &o, NULL, &number, &e));
        CHECKF(number == 0, "kind %d: %g", kind, (double)number);
        NEED(pnet_loss_backward(p, g, &o, &r, 1, &three, &three, &e));
    }
}

static void test_nothing(void)
{
    struct pnet_array none = {NULL, PNET_DTYPE_F32, 0, 3, 0};
    struct pnet_points *p = NULL;
    struct pnet_set *set = NULL;
    struct pnet_near_options o = {.size = sizeof o, .radius = 1};
    NEED(pnet_points_new(&none, NULL, &p, &e));
    struct pnet_points *g = points_grid(p, 1);
    NEED(pnet_set_points(g, p, &o, &set, &e));
    CHECK(points_info(g).rows == 0 && points_info(p).batches == 1 && sets_info(set).triplets == 0);
    check_nothing(p, g);
    pnet_set_free(set);
    pnet_points_free(g);
    pnet_points_free(p);
    pnet_points_free(NULL);
}

static void test_errors_of_points(void)
{
    float xyz[] = {0, 0, 0, 1, 2, 3, 4, 5, 6};
    int32_t sample[] = {0, 2, 1};
    int64_t splits[] = {0, 2, 3};
    struct pnet_array at = {xyz, PNET_DTYPE_F32, 3, 3, 0}, wrong = at,
                      of = {sample, PNET_DTYPE_I32, 3, 1, 0},
                      by = {splits, PNET_DTYPE_I64, 3, 1, 0};
    struct pnet_points *p = (struct pnet_points *)&at;
    struct pnet_points_options o = {.size = sizeof o, .sample = &of, .batches = 2};
    REFUSED(pnet_points_new(&at, &o, &p, &e), PNET_BAD_DATA, "sample: row 1: 2 is none of 0 .. 1");
    CHECK(!p);
    o.row_splits = &by;
    REFUSED(pnet_points_new(&at, &o, &p, &e), PNET_USAGE, "both there");
    o.sample = NULL;
    o.batches = 3;
    REFUSED(pnet_points_new(&at, &o, &p, &e), PNET_USAGE, "batches 3, but there are 2 samples");
    splits[2] = 4;
    REFUSED(pnet_points_new(&at, &o, &p, &e), PNET_BAD_DATA, "expected 3, the rows of positions");
    o = (struct pnet_points_options){.size = sizeof o, .cell = -1};
    REFUSED(pnet_points_new(&at, &o, &p, &e), PNET_USAGE, "cell -1");
    wrong.width = 4;
    REFUSED(pnet_points_new(&wrong, NULL, &p, &e), PNET_USAGE, "expected [3, 3]");
    wrong = at;
    wrong.dtype = PNET_DTYPE_I32;
    REFUSED(pnet_points_new(&wrong, NULL, &p, &e), PNET_USAGE, "expected PNET_DTYPE_F32");
    wrong = at;
    wrong.data = NULL;
    REFUSED(pnet_points_new(&wrong, NULL, &p, &e), PNET_USAGE, "`data` is NULL");
    o = (struct pnet_points_options){.size = 3};
    REFUSED(pnet_points_new(&at, &o, &p, &e), PNET_USAGE, "struct pnet_points_options");
    o = (struct pnet_points_options){.size = sizeof o, .cell = 1e-6};
    REFUSED(pnet_points_new(&at, &o, &p, &e), PNET_BAD_DATA, "2 points lie beyond");
    NEED(pnet_points_new(&at, NULL, &p, &e));
    struct pnet_points *g = p;
    REFUSED(pnet_points_grid(p, 1e-6, &g, &e), PNET_BAD_DATA, "2 points lie beyond");
    CHECK(!g);
    pnet_points_free(p);
    xyz[4] = NAN;
    REFUSED(pnet_points_new(&at, NULL, &p, &e), PNET_BAD_DATA, "row 1: 1 nan 3 is not finite");
    xyz[4] = 1.1e18F;
    REFUSED(pnet_points_new(&at, NULL, &p, &e), PNET_BAD_DATA, "beyond 1e18 m");
}

static void test_errors_of_sets(void)
{
    struct points_cloud c = points_fill(30);
    struct pnet_points *p = points_make(&c, 0), *g = points_grid(p, 0.2), *h = points_grid(p, 0.3),
                       *none = p;
    struct pnet_set *set = NULL;
    int32_t rows[30];
    struct pnet_array_out few = points_ints_out(rows, 29), all = points_ints_out(rows, 30);
    REFUSED(pnet_points_grid(g, 0.3, &none, &e), PNET_USAGE, "do not nest");
    REFUSED(pnet_points_grid(g, 0.1, &none, &e), PNET_USAGE, "do not nest");
    REFUSED(pnet_points_grid(g, NAN, &none, &e), PNET_USAGE, "expected 1e-6");
    REFUSED(pnet_points_samples(p, &few, &e), PNET_USAGE, "expected [30, 1]");
    REFUSED(pnet_points_positions(p, &all, &e), PNET_USAGE, "PNET_DTYPE_F32");
    all.rows = points_info(g).rows;
    REFUSED(pnet_points_parents(g, h, &all, &e), PNET_USAGE, "was not sampled");
#define TRY(out, in, status, part, ...)                                                            \
    do {                                                                                           \
        struct pnet_near_options o = {.size = sizeof o, __VA_ARGS__};                              \
        REFUSED(pnet_set_points(out, in, &o, &set, &e), status, part);                             \
    } while (0)
    TRY(g, h, PNET_USAGE, "neither of", .kernel = 3);
    TRY(p, p, PNET_USAGE, "radius: it is needed", .kernel = 3);
    TRY(p, p, PNET_USAGE, "an even kernel", .kernel = 2, .radius = 1);
    TRY(p, p, PNET_USAGE, "kernel 32", .kernel = 32, .radius = 1);
    TRY(p, p, PNET_USAGE, "knn chooses", .knn = 3, .radius = 1);
    TRY(p, p, PNET_USAGE, "knn 1025", .knn = 1025);
    TRY(g, g, PNET_USAGE, "knn has no voxel mode", .knn = 3, .degrade = PNET_DEGRADE_VOXEL);
    TRY(g, p, PNET_USAGE, "have no voxel mode", .radius = 1, .degrade = PNET_DEGRADE_KERNEL);
    TRY(g, g, PNET_USAGE, "degrade 8", .degrade = 8);
    TRY(g, g, PNET_USAGE, "shape 2", .shape = (enum pnet_near_shape)2);
    TRY(g, g, PNET_USAGE, "radius -1", .radius = -1);
    CHECK(!set);
    pnet_points_free(p);
    pnet_points_free(g);
    pnet_points_free(h);
    points_drop(&c);
}

/* What threads make of the same points: the numbers of each. */
struct turn {
    const struct pnet_points *points;
    int64_t rows, triplets;
    float loss, top[ROWS];
};

static void *take_turn(void *given)
{
    struct turn *t = given;
    struct pnet_points *g = points_grid(t->points, 0.125), *again = points_grid(g, 0.125);
    struct pnet_near_options ball = {.size = sizeof ball, .radius = 0.1};
    struct pnet_map_options max = {.size = sizeof max, .kind = PNET_MAP_MAX};
    struct pnet_loss_options how = {.size = sizeof how};
    struct pnet_set *set = NULL;
    struct pnet_map *map = NULL;
    float *at = points_positions(t->points);
    t->rows = points_info(g).rows;
    struct pnet_array x = sets_array(at, ROWS, 3);
    struct pnet_array_out y = sets_out(sets_room((size_t)t->rows, 12), t->rows, 3);
    NEED(pnet_set_points(again, t->points, &ball, &set, &e));
    NEED(pnet_map_new(again, t->points, &max, &map, &e));
    NEED(pnet_map_forward(map, &x, NULL, &y, &e));
    NEED(pnet_loss_default(PNET_LOSS_CHAMFER, &how, &e));
    NEED(pnet_loss_forward(g, t->points, &how, NULL, &t->loss, &e));
    t->triplets = sets_info(set).triplets;
    memcpy(t->top, y.data, (size_t)t->rows * sizeof *t->top);
    free(y.data);
    free(at);
    pnet_points_free(g);
    pnet_points_free(again);
    pnet_set_free(set);
    pnet_map_free(map);
    return NULL;
}

static void test_threads(void)
{
    struct points_cloud c = points_fill(ROWS);
    struct pnet_points *p = points_make(&c, 0);
    static struct turn turns[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        turns[i].points = p;
        if (pthread_create(&threads[i], NULL, take_turn, &turns[i])) exit(1);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        CHECK(turns[i].rows == turns[0].rows && turns[i].triplets == turns[0].triplets &&
              turns[i].triplets > 0 && turns[i].loss == turns[0].loss &&
              !memcmp(turns[i].top, turns[0].top, sizeof turns[0].top));
    pnet_points_free(p);
    points_drop(&c);
}

/* More threads than libgomp can start. */
static void test_too_many_threads(void)
{
    struct points_cloud c = points_fill(ROWS);
    int usual = omp_get_max_threads();
    omp_set_num_threads(100000);
    struct pnet_points *p = points_make(&c, 0), *g = points_grid(p, 0.2);
    int threads = omp_get_max_threads();
    CHECKF(threads >= 1 && threads <= 4096 && points_info(g).rows > 1, "%d threads", threads);
    omp_set_num_threads(usual);
    pnet_points_free(g);
    pnet_points_free(p);
    points_drop(&c);
}

int main(void)
{
    test_too_many_threads();
    test_levels();
    test_sets();
    test_orders();
    test_threads();
    test_as_given();
    test_nothing();
    test_errors_of_points();
    test_errors_of_sets();
    return check_end();
}
