/* Sets of voxels: what dense grids do not show. Far voxels, inverse sets, the caller's triplets, options, errors. */
#include "tests/library/sets.h"

#include <omp.h>
#include <pthread.h>

struct triplets {
    int64_t count;
    int32_t *i, *j, *k;
};

static struct triplets read_triplets(const struct pnet_set *set)
{
    size_t n = (size_t)sets_info(set).triplets;
    struct triplets t = {(int64_t)n, sets_room(n, 4), sets_room(n, 4), sets_room(n, 4)};
    NEED(pnet_set_get_triplets(set, t.i, t.j, t.k, t.count, &e));
    return t;
}

static void drop_triplets(struct triplets *t)
{
    free(t->i);
    free(t->j);
    free(t->k);
}

static bool ascend(const struct triplets *t)
{
    for (int64_t n = 1; n < t->count; n++) {
        if (t->i[n] != t->i[n - 1]   ? t->i[n] < t->i[n - 1]
            : t->k[n] != t->k[n - 1] ? t->k[n] < t->k[n - 1]
                                     : t->j[n] < t->j[n - 1])
            return false;
    }
    return true;
}

/* A layer of a dense corner of its extent. */
static struct sets_case layer(enum pnet_set_kind kind, int32_t edge)
{
    struct sets_case c = {.o = {.size = sizeof c.o,
                              .kind = kind,
                              .kernel = {3, 3, 3},
                              .stride = {2, 2, 2},
                              .padding = {1, 1, 1},
                              .extent = {edge, edge, edge},
                              .batches = 2},
        .axes = 3,
        .in = 4,
        .out = 6,
        .groups = 2};
    sets_fill(&c, 3, -1);
    return c;
}

/* Every triplet of two lists of voxels, from all pairs and taps. */
static int64_t count_pairs(const struct sets_case *c, const int32_t *y, int64_t ys,
    const int32_t *x, int64_t xs, int64_t padding, int64_t stride)
{
    int64_t count = 0;
    for (int64_t i = 0; i < ys; i++)
        for (int64_t j = 0; j < xs; j++) {
            bool meet = y[4 * i] == x[4 * j];
            for (int a = 1; a < 4 && meet; a++) {
                int64_t t = x[4 * j + a] - y[4 * i + a] * stride + padding,
                        d = c->o.dilation[a - 1];
                meet = t >= 0 && t % d == 0 && t / d < c->o.kernel[a - 1];
            }
            count += meet;
        }
    return count;
}

/* The largest extents: voxels at both ends, and dilations that reach from one to the other. */
static void test_far(void)
{
    enum { EDGE = 1 << 20, ROWS = 200 };
    static const int32_t near_ends[] = {
        0, 1, 2, 3, EDGE / 2, EDGE - 4, EDGE - 3, EDGE - 2, EDGE - 1};
    for (int n = 0; n < 6; n++) {
        struct sets_case c = {.o = {.size = sizeof c.o,
                                  .kind = n < 3 ? PNET_SET_SUBMANIFOLD : PNET_SET_STRIDED,
                                  .kernel = {3, 3, 3},
                                  .extent = {EDGE, EDGE, EDGE},
                                  .batches = 2},
            .axes = 3};
        c.index = sets_room(ROWS * 4, sizeof *c.index);
        for (int a = 0; a < 3; a++) {
            c.o.dilation[a] = n % 3 == 0 ? 1 : n % 3 == 1 ? EDGE / 2 - 1 : 2;
            c.o.stride[a] = n < 3 ? 1 : 3;
        }
        for (; c.rows < ROWS; c.rows++) {
            int32_t *at = c.index + 4 * c.rows;
            bool there = true;
            while (there) {
                at[0] = (int32_t)sets_random(2);
                for (int a = 1; a < 4; a++) at[a] = near_ends[sets_random(9)];
                there = false;
                for (int64_t r = 0; r < c.rows; r++) there |= memcmp(c.index + 4 * r, at, 16) == 0;
            }
        }
        struct pnet_set *set = sets_make(&c);
        struct pnet_set_info info = sets_info(set);
        int32_t *out = sets_room((size_t)info.rows_out * 4, sizeof *out);
        NEED(pnet_set_indices(set, out, info.rows_out * 4, &e));
        int64_t padding = n < 3 ? c.o.dilation[0] : 0;
        int64_t pairs = count_pairs(&c, out, info.rows_out, c.index, ROWS, padding, c.o.stride[0]);
        CHECKF(pairs == info.triplets && pairs > 1, "%d: %d triplets, expected %d", n,
            (int)info.triplets, (int)pairs);
        free(out);
        free(c.index);
        pnet_set_free(set);
    }
}

/* The inverse of a set: triplets exchanged, voxels of the other side; also when the set itself is freed. */
static void test_inverse(void)
{
    struct sets_case c = layer(PNET_SET_STRIDED, 9);
    struct pnet_set *set = sets_make(&c), *back = NULL, *again = NULL;
    NEED(pnet_set_inverse(set, &back, &e));
    NEED(pnet_set_inverse(back, &again, &e));
    struct triplets t = read_triplets(set), same = read_triplets(again);
    struct pnet_set_info there = sets_info(set);
    pnet_set_free(set);
    pnet_set_free(again);
    struct triplets u = read_triplets(back);
    struct pnet_set_info info = sets_info(back);
    size_t bytes = (size_t)t.count * 4, indices = (size_t)c.rows * 4;
    CHECK(same.count == t.count && !memcmp(same.i, t.i, bytes) && !memcmp(same.j, t.j, bytes) &&
          !memcmp(same.k, t.k, bytes));
    CHECK(info.rows_in == there.rows_out && info.rows_out == c.rows && info.triplets == t.count);
    CHECK(info.extent_in[0] == 5 && info.extent_out[0] == 9 && ascend(&t) && ascend(&u));
    int32_t *got = sets_room(indices, sizeof *got);
    NEED(pnet_set_indices(back, got, (int64_t)indices, &e));
    CHECK(memcmp(got, c.index, indices * sizeof *got) == 0);
    struct sets_sums s = sets_take(&c, back);
    double *y = sets_room((size_t)s.result_count, sizeof *y),
           *x = sets_room((size_t)s.feature_count, sizeof *x),
           *w = sets_room((size_t)s.weight_count, sizeof *w);
    for (int64_t n = 0; n < t.count; n++) sets_add(&c, &s, t.j[n], t.i[n], t.k[n], y, x, w);
    sets_run(&c, back, &s);
    CHECK(sets_error(s.result, y, s.result_count) < 1e-6);
    CHECK(sets_error(s.to_features, x, s.feature_count) < 1e-6);
    CHECK(sets_error(s.to_weights, w, s.weight_count) < 1e-6);
    sets_drop(&s);
    free(y);
    free(x);
    free(w);
    free(got);
    free(c.index);
    drop_triplets(&t);
    drop_triplets(&u);
    drop_triplets(&same);
    pnet_set_free(back);
}

static struct pnet_array column(const int32_t *x, int64_t rows, int64_t stride)
{
    return (struct pnet_array){x, PNET_DTYPE_I32, rows, 1, stride};
}

/* Triplets of the caller: any order, any stride, several with one (i, k), some twice; rows without triplets get 0. */
static void test_triplets(void)
{
    enum { COUNT = 5000, OUT = 700, IN = 300, TAPS = 40 };
    struct sets_case c = {.in = 6, .out = 4, .groups = 2};
    static int32_t list[COUNT][3];
    for (int n = 0; n < COUNT; n++) {
        list[n][0] = (int32_t)sets_random(OUT / 2) * 2; /* odd rows have none */
        list[n][1] = (int32_t)sets_random(IN);
        list[n][2] = (int32_t)sets_random(TAPS);
        if (n % 50 == 1) memcpy(list[n], list[n - 1], sizeof list[n]);
    }
    struct pnet_array i = column(list[0], COUNT, 3), j = column(list[0] + 1, COUNT, 3),
                      k = column(list[0] + 2, COUNT, 3);
    struct pnet_set *set = NULL;
    NEED(pnet_set_triplets(&i, &j, &k, OUT, IN, TAPS, NULL, &set, &e));
    struct triplets t = read_triplets(set);
    CHECK(
        t.count == COUNT && ascend(&t) && sets_info(set).axes == 0 && sets_info(set).taps == TAPS);
    struct sets_sums s = sets_take(&c, set);
    double *y = sets_room((size_t)s.result_count, sizeof *y),
           *x = sets_room((size_t)s.feature_count, sizeof *x),
           *w = sets_room((size_t)s.weight_count, sizeof *w);
    for (int n = 0; n < COUNT; n++) sets_add(&c, &s, list[n][0], list[n][1], list[n][2], y, x, w);
    sets_run(&c, set, &s);
    CHECK(sets_error(s.result, y, s.result_count) < 1e-6 && s.result[c.out] == 0);
    CHECK(sets_error(s.to_features, x, s.feature_count) < 1e-6);
    CHECK(sets_error(s.to_weights, w, s.weight_count) < 1e-6);
    REFUSED(pnet_set_indices(set, t.i, 0, &e), PNET_USAGE, "it has no voxels");
    sets_drop(&s);
    free(y);
    free(x);
    free(w);
    drop_triplets(&t);
    pnet_set_free(set);
    list[17][1] = IN;
    REFUSED(pnet_set_triplets(&i, &j, &k, OUT, IN, TAPS, NULL, &set, &e), PNET_BAD_DATA,
        "j: row 17: 300 is none of 0 .. 299");
    list[9][0] = -1;
    REFUSED(pnet_set_triplets(&i, &j, &k, OUT, IN, TAPS, NULL, &set, &e), PNET_BAD_DATA,
        "i: row 9: -1");
    CHECK(!set);
    k.rows--;
    list[9][0] = list[17][1] = 0;
    REFUSED(pnet_set_triplets(&i, &j, &k, OUT, IN, TAPS, NULL, &set, &e), PNET_USAGE,
        "k has 4999 rows");
    REFUSED(
        pnet_set_triplets(&i, &j, &k, OUT, IN, 65537, NULL, &set, &e), PNET_USAGE, "1 to 65536");
    REFUSED(pnet_set_triplets(&i, &j, &k, -1, IN, TAPS, NULL, &set, &e), PNET_USAGE, "-1 rows out");
}

/* Bias, accumulation, the caller's workspace. */
static void test_options(void)
{
    struct sets_case c = layer(PNET_SET_STRIDED, 8);
    struct pnet_set *set = sets_make(&c);
    struct sets_sums s = sets_take(&c, set);
    struct pnet_conv_options o = {.size = sizeof o, .groups = 2};
    sets_run(&c, set, &s);
    struct pnet_set_info info = sets_info(set);
    float *plain = sets_room((size_t)s.result_count, sizeof *plain), bias[6];
    memcpy(plain, s.result, (size_t)s.result_count * sizeof *plain);
    for (int b = 0; b < 6; b++) bias[b] = sets_float();
    struct pnet_array f = sets_array(s.features, info.rows_in, 4),
                      w = sets_array(s.weights, 27 * 2L, 6);
    struct pnet_array_out y = sets_out(s.result, info.rows_out, 6);
    size_t bytes = 0;
    NEED(pnet_conv_workspace(set, PNET_CONV_FORWARD, 4, 6, 2, &bytes, &e));
    o.bias = bias;
    o.accumulate = 1;
    o.workspace = malloc(bytes);
    o.workspace_bytes = bytes;
    NEED(pnet_conv_forward(set, &f, &w, &o, &y, &e));
    double worst = 0;
    for (int64_t n = 0; n < s.result_count; n++)
        worst = fmax(worst, fabs((double)s.result[n] - 2 * (double)plain[n] - (double)bias[n % 6]));
    CHECKF(worst < 2e-6 && s.result_count > 100, "%g", worst);
    o.workspace_bytes = bytes - 1;
    REFUSED(pnet_conv_forward(set, &f, &w, &o, &y, &e), PNET_USAGE, "workspace_bytes");
    free(o.workspace);
    free(plain);
    sets_drop(&s);
    free(c.index);
    pnet_set_free(set);
}

/* What one of several threads does with a set that all of them use. */
struct user {
    const struct pnet_set *set;
    const struct sets_case *c;
    struct sets_sums own;
    bool failed;
};

static void *use(void *of)
{
    struct user *u = of;
    struct pnet_conv_options o = {.size = sizeof o, .groups = u->c->groups};
    omp_set_num_threads(1);
    for (int n = 0; n < 20 && !u->failed; n++) {
        struct pnet_set *back = NULL;
        u->failed = sets_try(u->c, u->set, &o, &u->own, NULL) != PNET_OK ||
                    pnet_set_inverse(u->set, &back, NULL) != PNET_OK;
        pnet_set_free(back);
    }
    return NULL;
}

/* Threads use one set at the same time. */
static void test_shared(void)
{
    enum { THREADS = 4 };
    struct sets_case c = layer(PNET_SET_STRIDED, 12);
    struct pnet_set *set = sets_make(&c);
    struct user user[THREADS];
    pthread_t thread[THREADS];
    for (int n = 0; n < THREADS; n++) {
        sets_state = 9; /* the same numbers */
        user[n] = (struct user){.set = set, .c = &c, .own = sets_take(&c, set)};
    }
    for (int n = 0; n < THREADS; n++)
        if (pthread_create(&thread[n], NULL, use, &user[n])) exit(1);
    for (int n = 0; n < THREADS; n++) {
        const struct sets_sums *a = &user[n].own, *b = &user[0].own;
        pthread_join(thread[n], NULL);
        CHECK(!user[n].failed && memcmp(a->result, b->result, (size_t)a->result_count * 4) == 0);
        CHECK(memcmp(a->to_features, b->to_features, (size_t)a->feature_count * 4) == 0);
        CHECK(memcmp(a->to_weights, b->to_weights, (size_t)a->weight_count * 4) == 0);
    }
    struct sets_sums once = user[0].own;
    sets_run(&c, set, &user[1].own);
    CHECK(memcmp(once.result, user[1].own.result, (size_t)once.result_count * 4) == 0);
    for (int n = 0; n < THREADS; n++) sets_drop(&user[n].own);
    free(c.index);
    pnet_set_free(set);
}

static enum pnet_status try_set(
    const struct sets_case *c, enum pnet_dtype dtype, struct pnet_set **set, struct pnet_error *e)
{
    struct pnet_array indices = {c->index, dtype, c->rows, 1 + c->axes, 0};
    return pnet_set_voxels(&indices, &c->o, set, e);
}

#define NO_SET(part_of_case, value, status, text)                                                  \
    do {                                                                                           \
        struct sets_case c = good;                                                                 \
        c.part_of_case = (value);                                                                  \
        REFUSED(try_set(&c, PNET_DTYPE_I32, &set, &e), status, text);                              \
        CHECK(!set);                                                                               \
    } while (0)

static void test_wrong_options(void)
{
    struct sets_case good = layer(PNET_SET_STRIDED, 8);
    struct pnet_set *set = NULL;
    NO_SET(o.size, 3, PNET_USAGE, "sizeof(struct pnet_voxel_options)");
    NO_SET(o.kind, (enum pnet_set_kind)7, PNET_USAGE, "kind 7");
    NO_SET(o.batches, -1, PNET_USAGE, "batches -1");
    NO_SET(o.kernel[1], 0, PNET_USAGE, "axis 1: kernel 0: expected 1 to 31");
    NO_SET(o.kernel[2], 32, PNET_USAGE, "axis 2: kernel 32");
    NO_SET(o.stride[0], -1, PNET_USAGE, "axis 0: stride -1");
    NO_SET(o.padding[0], -1, PNET_USAGE, "axis 0: padding -1");
    NO_SET(o.dilation[2], -2, PNET_USAGE, "axis 2: dilation -2");
    NO_SET(o.dilation[2], 5, PNET_USAGE, "axis 2: the extent of the output would be 0");
    NO_SET(o.extent[1], 0, PNET_USAGE, "axis 1: extent 0");
    NO_SET(o.extent[1], 1 << 21, PNET_USAGE, "axis 1: extent 2097152: expected 1 to 1048576");
    NO_SET(axes, 4, PNET_USAGE, "indices: width 5");
    NO_SET(axes, 0, PNET_USAGE, "indices: width 1");
    REFUSED(try_set(&good, PNET_DTYPE_I64, &set, &e), PNET_USAGE, "expected PNET_DTYPE_I32");
    REFUSED(pnet_set_voxels(&(struct pnet_array){NULL, PNET_DTYPE_I32, 1, 4, 0}, &good.o, &set, &e),
        PNET_USAGE, "`data` is NULL");
    good.o.kind = PNET_SET_TRANSPOSED;
    NO_SET(o.stride[0], 1 << 19, PNET_USAGE, "axis 0: the extent of the output would be 3670");
    NO_SET(o.output_padding[1], -1, PNET_USAGE, "axis 1: output_padding -1");
    good.o.kind = PNET_SET_SUBMANIFOLD;
    good.o.padding[0] = good.o.stride[1] = good.o.output_padding[2] = -1; /* are not read */
    CHECK(try_set(&good, PNET_DTYPE_I32, &set, NULL) == PNET_OK);
    pnet_set_free(set);
    set = NULL;
    NO_SET(o.kernel[0], 2, PNET_USAGE, "axis 0: kernel 2: a submanifold kernel is odd");
    free(good.index);
}

static void test_wrong_voxels(void)
{
    struct sets_case good = layer(PNET_SET_STRIDED, 8);
    struct pnet_set *set = NULL;
    CHECK(good.rows > 100);
    int32_t *at = good.index + 4 * 33L, old[4];
    memcpy(old, at, sizeof old);
    NO_SET(index[4 * 33 + 2], 8, PNET_BAD_DATA,
        "indices: row 33: index 8 of axis 1 is none of 0 .. 7");
    NO_SET(index[4 * 33 + 2], -1, PNET_BAD_DATA, "row 33: index -1 of axis 1");
    memcpy(at, old, sizeof old);
    NO_SET(index[4 * 33], 2, PNET_BAD_DATA, "indices: row 33: sample 2 is none of 0 .. 1");
    NO_SET(index[4 * 33], -1, PNET_BAD_DATA, "row 33: sample -1");
    memcpy(at, old, sizeof old);
    memcpy(good.index + 4 * 90L, at, sizeof old); /* the first row that is there twice is 80 */
    memcpy(good.index + 4 * 80L, good.index + 4 * 7L, sizeof old);
    REFUSED(try_set(&good, PNET_DTYPE_I32, &set, &e), PNET_BAD_DATA,
        "indices: rows 7 and 80 are the same voxel");
    free(good.index);
}

static void test_wrong_arrays(void)
{
    struct sets_case c = layer(PNET_SET_STRIDED, 8);
    struct pnet_set *set = sets_make(&c);
    struct pnet_set_info info = sets_info(set);
    struct sets_sums s = sets_take(&c, set);
    struct pnet_array f = sets_array(s.features, info.rows_in, 4),
                      w = sets_array(s.weights, 27 * 2L, 6),
                      g = sets_array(s.gradient, info.rows_out, 6), wrong = f;
    struct pnet_array_out y = sets_out(s.result, info.rows_out, 6);
    struct pnet_conv_options o = {.size = sizeof o, .groups = 2}, p = o;
    size_t bytes;
    wrong.rows--;
    REFUSED(pnet_conv_forward(set, &wrong, &w, &o, &y, &e), PNET_USAGE, "features: [");
    wrong = w;
    wrong.rows++;
    REFUSED(pnet_conv_forward(set, &f, &wrong, &o, &y, &e), PNET_USAGE,
        "weights: [55, 6], expected [54, 6]");
    wrong = f;
    wrong.dtype = PNET_DTYPE_I32;
    REFUSED(pnet_conv_forward(set, &wrong, &w, &o, &y, &e), PNET_USAGE, "only PNET_DTYPE_F32");
    wrong = f;
    wrong.stride = 8;
    REFUSED(pnet_conv_forward(set, &wrong, &w, &o, &y, &e), PNET_USAGE, "only contiguous rows");
    wrong = g;
    wrong.data = NULL;
    REFUSED(pnet_conv_grad_weight(set, &f, &wrong, &o, &y, &e), PNET_USAGE, "result: [");
    p.groups = 3;
    REFUSED(pnet_conv_forward(set, &f, &w, &p, &y, &e), PNET_USAGE, "3 groups do not divide");
    p = o;
    p.bias = s.features;
    REFUSED(pnet_conv_grad_input(set, &g, &w, &p,
                &(struct pnet_array_out){s.to_features, PNET_DTYPE_F32, info.rows_in, 4, 0}, &e),
        PNET_USAGE, "bias: the forward sum alone");
    REFUSED(pnet_conv_workspace(set, (enum pnet_conv_sum_kind)3, 4, 6, 2, &bytes, &e), PNET_USAGE,
        "sum 3");
    REFUSED(pnet_conv_workspace(set, PNET_CONV_FORWARD, 4, 0, 2, &bytes, &e), PNET_USAGE, "0 out");
    REFUSED(pnet_set_get_triplets(set, NULL, NULL, NULL, 3, &e), PNET_USAGE, "triplets, not 3");
    REFUSED(pnet_set_indices(set, (int32_t[3]){0}, 3, &e), PNET_USAGE, "numbers, not 3");
    sets_drop(&s);
    free(c.index);
    pnet_set_free(set);
}

int main(void)
{
    test_far();
    test_inverse();
    test_triplets();
    test_options();
    test_shared();
    test_wrong_options();
    test_wrong_voxels();
    test_wrong_arrays();
    pnet_set_free(NULL);
    return check_end();
}
