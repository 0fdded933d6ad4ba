/* Pools over sets against their definition in double, and sets that went through a block of bytes. */
#include "tests/library/sets.h"

#include <omp.h>

enum { CHANNELS = 19 };

/* The triplets of a set, and what a pool over them takes and gives. */
struct pooled {
    struct pnet_set *set;
    struct pnet_set_info info;
    int32_t *i, *j, *k;
    float *features, *result, *gradient, *to_features;
    int32_t *argmax;
};

static struct pooled take(struct pnet_set *set)
{
    struct pooled p = {.set = set, .info = sets_info(set)};
    size_t n = (size_t)p.info.triplets;
    p.i = sets_room(n, sizeof *p.i);
    p.j = sets_room(n, sizeof *p.j);
    p.k = sets_room(n, sizeof *p.k);
    NEED(pnet_set_get_triplets(set, p.i, p.j, p.k, p.info.triplets, &e));
    p.features = sets_floats(p.info.rows_in * CHANNELS);
    for (int64_t x = 0; x < p.info.rows_in * CHANNELS; x++) /* many are equal */
        p.features[x] = floorf(p.features[x] * 4) / 4;
    p.result = sets_floats(p.info.rows_out * CHANNELS);
    p.gradient = sets_floats(p.info.rows_out * CHANNELS);
    p.to_features = sets_floats(p.info.rows_in * CHANNELS);
    p.argmax = sets_room((size_t)p.info.rows_out * CHANNELS, sizeof *p.argmax);
    return p;
}

static void drop(struct pooled *p)
{
    pnet_set_free(p->set);
    free(p->i);
    free(p->j);
    free(p->k);
    free(p->features);
    free(p->result);
    free(p->gradient);
    free(p->to_features);
    free(p->argmax);
}

static enum pnet_status run(struct pooled *p, enum pnet_pooling kind, struct pnet_error *why)
{
    bool top = kind == PNET_POOLING_MAX;
    struct pnet_array f = sets_array(p->features, p->info.rows_in, CHANNELS),
                      g = sets_array(p->gradient, p->info.rows_out, CHANNELS),
                      from = {p->argmax, PNET_DTYPE_I32, p->info.rows_out, CHANNELS, 0};
    struct pnet_array_out y = sets_out(p->result, p->info.rows_out, CHANNELS),
                          x = sets_out(p->to_features, p->info.rows_in, CHANNELS),
                          to = {p->argmax, PNET_DTYPE_I32, p->info.rows_out, CHANNELS, 0};
    enum pnet_status st = pnet_pool_forward(p->set, kind, &f, NULL, &y, top ? &to : NULL, why);
    if (!st) st = pnet_pool_backward(p->set, kind, &g, top ? &from : NULL, NULL, &x, why);
    return st;
}

/* By the definition: each triplet, each channel. */
static void check_pool(struct pooled *p, enum pnet_pooling kind)
{
    int64_t rows = p->info.rows_out, in = p->info.rows_in;
    double *y = sets_room((size_t)rows * CHANNELS, sizeof *y);
    double *x = sets_room((size_t)in * CHANNELS, sizeof *x);
    int32_t *from = sets_room((size_t)rows * CHANNELS, sizeof *from);
    int64_t *count = sets_room((size_t)rows, sizeof *count);
    for (int64_t n = 0; n < rows * CHANNELS; n++) from[n] = -1;
    for (int64_t t = 0; t < p->info.triplets; t++) { /* sorted by (i, k, j) */
        count[p->i[t]]++;
        for (int c = 0; c < CHANNELS; c++) {
            int64_t to = (int64_t)p->i[t] * CHANNELS + c;
            double f = (double)p->features[(int64_t)p->j[t] * CHANNELS + c];
            if (kind != PNET_POOLING_MAX) {
                y[to] += f;
            } else if (from[to] < 0 || f > y[to]) {
                y[to] = f;
                from[to] = p->j[t];
            }
        }
    }
    for (int64_t t = 0; t < p->info.triplets && kind != PNET_POOLING_MAX; t++)
        for (int c = 0; c < CHANNELS; c++) {
            int64_t at = (int64_t)p->i[t] * CHANNELS + c;
            double part = kind == PNET_POOLING_MEAN ? (double)count[p->i[t]] : 1;
            x[(int64_t)p->j[t] * CHANNELS + c] += (double)p->gradient[at] / part;
        }
    for (int64_t n = 0; n < rows * CHANNELS; n++) {
        if (kind == PNET_POOLING_MEAN && count[n / CHANNELS]) y[n] /= (double)count[n / CHANNELS];
        if (from[n] >= 0) x[(int64_t)from[n] * CHANNELS + n % CHANNELS] += (double)p->gradient[n];
    }
    NEED(run(p, kind, &e));
    CHECK(sets_error(p->result, y, rows * CHANNELS) < 1e-6);
    CHECK(sets_error(p->to_features, x, in * CHANNELS) < 1e-6);
    if (kind == PNET_POOLING_MAX)
        CHECK(!memcmp(from, p->argmax, (size_t)(rows * CHANNELS) * sizeof *from));
    free(y);
    free(x);
    free(from);
    free(count);
}

/* The same bits with another number of threads. */
static void check_threads(struct pooled *p, enum pnet_pooling kind)
{
    size_t ys = (size_t)p->info.rows_out * CHANNELS * sizeof(float),
           xs = (size_t)p->info.rows_in * CHANNELS * sizeof(float);
    float *y = sets_room(ys, 1), *x = sets_room(xs, 1);
    memcpy(y, p->result, ys);
    memcpy(x, p->to_features, xs);
    for (int threads = 1; threads <= 5; threads += 2) {
        omp_set_num_threads(threads);
        NEED(run(p, kind, &e));
        CHECK(!memcmp(y, p->result, ys) && !memcmp(x, p->to_features, xs));
    }
    omp_set_num_threads(2);
    free(y);
    free(x);
}

static void test_pools(struct pnet_set *set)
{
    struct pooled p = take(set);
    for (int kind = PNET_POOLING_MAX; kind <= PNET_POOLING_SUM; kind++) {
        check_pool(&p, (enum pnet_pooling)kind);
        check_threads(&p, (enum pnet_pooling)kind);
    }
    drop(&p);
}

static struct sets_case layer_of(enum pnet_set_kind kind, uint32_t of)
{
    struct sets_case c = {.o = {.size = sizeof c.o,
                              .kind = kind,
                              .kernel = {3, 2 + (kind == PNET_SET_SUBMANIFOLD), 3},
                              .stride = {2, 2, 1},
                              .padding = {1, 0, 1},
                              .extent = {9, 8, 11},
                              .batches = 3},
        .axes = 3,
        .in = 5,
        .out = 6,
        .groups = 1};
    sets_fill(&c, of, 1);
    return c;
}

static void test_listed(void)
{
    /* rows without triplets, pairs that are there twice, by one tap and by two */
    static const int32_t i[] = {3, 0, 3, 3, 0, 3}, j[] = {1, 2, 1, 4, 2, 1},
                         k[] = {1, 0, 0, 0, 1, 0};
    struct pnet_array of[] = {
        {i, PNET_DTYPE_I32, 6, 1, 0}, {j, PNET_DTYPE_I32, 6, 1, 0}, {k, PNET_DTYPE_I32, 6, 1, 0}};
    struct pnet_set *set = NULL;
    NEED(pnet_set_triplets(&of[0], &of[1], &of[2], 5, 6, 2, NULL, &set, &e));
    test_pools(set);
    struct pnet_array none = {NULL, PNET_DTYPE_I32, 0, 1, 0};
    NEED(pnet_set_triplets(&none, &none, &none, 0, 0, 1, NULL, &set, &e));
    test_pools(set);
}

static void test_wrong(void)
{
    struct sets_case c = layer_of(PNET_SET_STRIDED, 4);
    struct pooled p = take(sets_make(&c));
    struct pnet_array f = sets_array(p.features, p.info.rows_in, CHANNELS), narrow = f, other = f,
                      g = sets_array(p.gradient, p.info.rows_out, CHANNELS),
                      from = {p.argmax, PNET_DTYPE_I32, p.info.rows_out, CHANNELS, 0};
    struct pnet_array_out y = sets_out(p.result, p.info.rows_out, CHANNELS),
                          x = sets_out(p.to_features, p.info.rows_in, CHANNELS),
                          to = {p.argmax, PNET_DTYPE_I32, p.info.rows_out, CHANNELS, 0};
    narrow.rows--;
    other.dtype = PNET_DTYPE_I64;
    enum pnet_pooling none = (enum pnet_pooling)3, top = PNET_POOLING_MAX, sum = PNET_POOLING_SUM;
    REFUSED(pnet_pool_forward(p.set, none, &f, NULL, &y, NULL, &e), PNET_USAGE, "kind 3");
    REFUSED(pnet_pool_forward(p.set, top, &narrow, NULL, &y, NULL, &e), PNET_USAGE, "features: [");
    REFUSED(
        pnet_pool_forward(p.set, top, &other, NULL, &y, NULL, &e), PNET_USAGE, "features: dtype 2");
    REFUSED(pnet_pool_forward(p.set, top, &f, NULL, &x, NULL, &e), PNET_USAGE, "result: [");
    REFUSED(
        pnet_pool_forward(p.set, sum, &f, NULL, &y, &to, &e), PNET_USAGE, "argmax: the maximum");
    REFUSED(pnet_pool_forward(p.set, top, &f, NULL, &y, &y, &e), PNET_USAGE, "argmax: dtype 0");
    REFUSED(
        pnet_pool_backward(p.set, top, &g, NULL, NULL, &x, &e), PNET_USAGE, "argmax: the maximum");
    REFUSED(
        pnet_pool_backward(p.set, sum, &g, &from, NULL, &x, &e), PNET_USAGE, "argmax: the maximum");
    NEED(run(&p, top, &e));
    p.argmax[CHANNELS + 3] = (int32_t)p.info.rows_in;
    REFUSED(
        pnet_pool_backward(p.set, top, &g, &from, NULL, &x, &e), PNET_BAD_DATA, "argmax: row 1: ");
    p.argmax[CHANNELS + 3] = -2;
    REFUSED(pnet_pool_backward(p.set, top, &g, &from, NULL, &x, &e), PNET_BAD_DATA, "-2 is none");
    CHECK(pnet_pool_forward(p.set, top, &narrow, NULL, &y, NULL, NULL) == PNET_USAGE);
    drop(&p);
    free(c.index);
}

/* The blocks of a set, in one piece of memory. */
struct blocks {
    struct pnet_packed p;
    char *memory;
    size_t bytes;
};

static struct blocks pack(const struct pnet_set *set)
{
    struct blocks b = {.p = {.size = sizeof b.p}};
    NEED(pnet_set_packed_sizes(set, &b.p, &e));
    CHECK(!b.p.by_out && !b.p.by_in && b.p.by_out_bytes % 16 == 0);
    b.bytes = b.p.by_out_bytes + b.p.by_in_bytes;
    b.memory = sets_room(b.bytes, 1);
    memset(b.memory, 0x55, b.bytes);
    b.p.by_out = b.memory;
    b.p.by_in = b.memory + b.p.by_out_bytes;
    NEED(pnet_set_pack(set, &b.p, &e));
    return b;
}

/* Two sets of the same triplets: the same bits of all sums. */
static void check_same(const struct sets_case *c, struct pnet_set *one, struct pnet_set *two)
{
    struct sets_sums s = sets_take(c, one);
    struct sets_sums same = s; /* the same arrays, with results of its own */
    sets_run(c, one, &s);
    same.result = sets_floats(s.result_count);
    same.to_features = sets_floats(s.feature_count);
    same.to_weights = sets_floats(s.weight_count);
    sets_run(c, two, &same);
    CHECK(!memcmp(s.result, same.result, (size_t)s.result_count * sizeof(float)));
    CHECK(!memcmp(s.to_features, same.to_features, (size_t)s.feature_count * sizeof(float)));
    CHECK(!memcmp(s.to_weights, same.to_weights, (size_t)s.weight_count * sizeof(float)));
    free(same.result);
    free(same.to_features);
    free(same.to_weights);
    sets_drop(&s);
}

/* The set of blocks gives the bits of the set that they were made of; so do their inverse sets, and blocks exchanged. */
static void test_packed(enum pnet_set_kind kind)
{
    struct sets_case c = layer_of(kind, 3);
    struct pnet_set *first = sets_make(&c), *second = NULL, *back[3] = {NULL, NULL, NULL};
    struct blocks b = pack(first);
    NEED(pnet_set_unpack(&b.p, &second, &e));
    struct blocks again = pack(second);
    CHECK(b.bytes == again.bytes && !memcmp(b.memory, again.memory, b.bytes));
    NEED(pnet_set_inverse(first, &back[0], &e));
    NEED(pnet_set_inverse(second, &back[1], &e));
    struct pnet_packed turned = {.size = sizeof turned,
        .rows_in = b.p.rows_out,
        .rows_out = b.p.rows_in,
        .triplets = b.p.triplets,
        .taps = b.p.taps,
        .by_out = b.p.by_in,
        .by_out_bytes = b.p.by_in_bytes,
        .by_in = b.p.by_out,
        .by_in_bytes = b.p.by_out_bytes};
    NEED(pnet_set_unpack(&turned, &back[2], &e));
    check_same(&c, first, second);
    check_same(&c, back[0], back[1]);
    check_same(&c, back[0], back[2]);
    struct pnet_error why;
    CHECK(pnet_set_indices(second, c.index, c.rows * 4, &why) == PNET_USAGE);
    pnet_set_free(second); /* the inverse set keeps it */
    for (int i = 0; i < 3; i++) pnet_set_free(back[i]);
    pnet_set_free(first);
    free(b.memory);
    free(again.memory);
    free(c.index);
}

/* Whatever the bytes are, the blocks are refused or their sums stay inside of their arrays. */
static void test_damaged(void)
{
    struct sets_case c = layer_of(PNET_SET_STRIDED, 40);
    struct pnet_set *set = sets_make(&c);
    struct pooled p = take(set);
    struct pnet_error why;
    struct blocks b = pack(set);
    long taken = 0, refusals = 0;
    for (size_t at = 0; at < b.bytes; at++)
        for (int bit = 0; bit < 8; bit += 7) {
            struct pnet_set *other = NULL;
            b.memory[at] = (char)(b.memory[at] ^ (1 << bit));
            enum pnet_status st = pnet_set_unpack(&b.p, &other, &why);
            CHECK(st == PNET_BAD_DATA || (st == PNET_OK && other));
            if (st) refusals++;
            if (!st) {
                struct sets_sums s = sets_take(&c, other);
                sets_run(&c, other, &s);
                sets_drop(&s);
                p.set = other;
                NEED(run(&p, PNET_POOLING_MAX, &e));
                taken++;
            }
            pnet_set_free(other);
            b.memory[at] = (char)(b.memory[at] ^ (1 << bit));
        }
    CHECKF(refusals > 100 && taken > 10, "%ld refused, %ld taken", refusals, taken);
    p.set = set;
    drop(&p);
    free(b.memory);
    free(c.index);
}

/* Wrong numbers and places. */
static void test_wrong_blocks(void)
{
    struct sets_case c = layer_of(PNET_SET_STRIDED, 40);
    struct pnet_set *set = sets_make(&c), *other = NULL;
    struct blocks b = pack(set);
    struct pnet_packed w;
#define WRONG(change, status, part)                                                                \
    do {                                                                                           \
        w = b.p;                                                                                   \
        change;                                                                                    \
        REFUSED(pnet_set_unpack(&w, &other, &e), status, part);                                    \
    } while (0)
    w = b.p;
    w.triplets = 0;
    w.by_out_bytes = 0;
    REFUSED(pnet_set_unpack(&w, &other, &e), PNET_BAD_DATA, "too few");
    WRONG(w.by_out_bytes -= 64, PNET_BAD_DATA, "too few");
    WRONG(w.by_in_bytes += 64, PNET_BAD_DATA, "more or fewer");
    WRONG(w.triplets -= 1, PNET_BAD_DATA, "other numbers");
    WRONG(w.triplets = INT64_MAX, PNET_BAD_DATA, "outside");
    WRONG(w.rows_in = -1, PNET_BAD_DATA, "outside");
    WRONG(w.taps = 0, PNET_BAD_DATA, "outside");
    WRONG(w.by_in = w.by_out, PNET_BAD_DATA, "other numbers");
    WRONG(w.by_out = b.memory + 4, PNET_USAGE, "by_out: it is not aligned");
    WRONG(w.by_in = NULL, PNET_USAGE, "by_in: it is NULL");
    WRONG(w.device = "gpu", PNET_USAGE, "device");
#undef WRONG
    w = b.p;
    w.by_in_bytes -= 64;
    REFUSED(pnet_set_pack(set, &w, &e), PNET_USAGE, "by_in: ");
    w = b.p;
    w.by_out = b.memory + 4;
    REFUSED(pnet_set_pack(set, &w, &e), PNET_USAGE, "aligned");
    CHECK(!other && pnet_set_pack(set, &w, NULL) == PNET_USAGE);
    pnet_set_free(set);
    free(b.memory);
    free(c.index);
}

int main(void)
{
    omp_set_num_threads(2);
    for (int kind = PNET_SET_SUBMANIFOLD; kind <= PNET_SET_TRANSPOSED; kind++) {
        struct sets_case c = layer_of((enum pnet_set_kind)kind, 3);
        struct pnet_set *set = sets_make(&c), *back = NULL;
        NEED(pnet_set_inverse(set, &back, &e));
        test_pools(set);
        test_pools(back);
        free(c.index);
        test_packed((enum pnet_set_kind)kind);
    }
    test_listed();
    test_wrong();
    test_damaged();
    test_wrong_blocks();
    return check_end();
}
