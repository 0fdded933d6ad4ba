/* What the tests of the algorithms of convolution share: every algorithm against the definitions in double, by a way to
   run one on some device. */
#ifndef PNET_TESTS_KERNELS_ALGO_CASE_H
#define PNET_TESTS_KERNELS_ALGO_CASE_H

#include "tests/kernels/conv_case.h"

/* Runs on arrays of the host. `out` and `gweight` hold what is added to, else NaN. With `listed` the list is made beforehand.
   `text` describes the case. */
struct algo_device {
    const char *name;
    void (*mvmr)(const struct pnet_mvmr *m, bool listed, const char *text);
    void (*vvor)(const struct pnet_vvor *v, bool listed, const char *text);
};

struct algo_layer {
    int64_t rows, others;
    int32_t cells;
    int64_t degree;
    struct pnet_conv_shape shape;
};

static const double ALGO_TOLERANCE = 1e-6;

static inline size_t algo_weights(const struct algo_layer *l)
{
    return (size_t)l->cells * (size_t)(l->shape.cin / l->shape.groups) * (size_t)l->shape.cout;
}

static inline void algo_describe(const struct algo_device *d, const struct algo_layer *l,
    enum pnet_conv_algo algo, bool listed, char text[200])
{
    snprintf(text, 200, "%s, %s%s: %lld x %lld rows, %d cells, %d -> %d, %d groups", d->name,
        pnet_conv_algo_names[algo], listed ? " with its list" : "", (long long)l->rows,
        (long long)l->others, l->cells, l->shape.cin, l->shape.cout, l->shape.groups);
}

/* What is done to a set besides the plain sum. */
struct algo_use {
    bool transposed, add, bias;
    enum pnet_activation act;
};

static inline void algo_finish(double *want, size_t n, const struct algo_use *u, const float *old)
{
    for (size_t i = 0; i < n; i++) {
        if (want[i] < 0 && u->act == PNET_ACT_RELU) want[i] = 0;
        if (want[i] < 0 && u->act == PNET_ACT_LEAKY) want[i] *= 0.125;
        if (u->add) want[i] += (double)old[i];
    }
}

static inline void algo_check_mvmr(const struct algo_device *d, const struct algo_layer *l,
    const struct pnet_triplets *t, struct algo_use use)
{
    struct pnet_conv_shape s = l->shape;
    size_t in_size = (size_t)t->others * (size_t)s.cin, out_size = (size_t)t->rows * (size_t)s.cout;
    float *in = conv_random_floats(in_size, 1), *weight = conv_random_floats(algo_weights(l), 2);
    float *bias = conv_random_floats((size_t)s.cout, 3), *old = conv_random_floats(out_size, 4);
    double *in64 = conv_widen(in, in_size), *weight64 = conv_widen(weight, algo_weights(l));
    double *bias64 = conv_widen(bias, (size_t)s.cout), *want = conv_alloc(out_size * sizeof *want);
    pnet_ref_mvmr(t, s, in64, weight64, use.bias ? bias64 : NULL, use.transposed, want);
    algo_finish(want, out_size, &use, old);
    for (int i = 0; i < 2 * PNET_ALGO_COUNT; i++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)(i / 2);
        bool listed = i % 2;
        if (listed && !pnet_conv_algo_lists(algo)) continue;
        char text[200];
        algo_describe(d, l, algo, listed, text);
        float *out = conv_poison(out_size);
        if (use.add && out_size) memcpy(out, old, out_size * sizeof *out);
        struct pnet_mvmr m = {.triplets = t,
            .shape = s,
            .in = in,
            .weight = weight,
            .bias = use.bias ? bias : NULL,
            .out = out,
            .transposed = use.transposed,
            .add = use.add,
            .act = use.act,
            .slope = 0.125f,
            .algo = algo};
        d->mvmr(&m, listed, text);
        double error = conv_error(out, want, out_size);
        CHECKF(error <= ALGO_TOLERANCE,
            "%s: mvmr error %g (transposed %d, add %d, bias %d, act %d)", text, error,
            use.transposed, use.add, use.bias, (int)use.act);
        free(out);
    }
    free(in), free(weight), free(bias), free(old);
    free(in64), free(weight64), free(bias64), free(want);
}

static inline void algo_check_vvor(const struct algo_device *d, const struct algo_layer *l,
    const struct pnet_triplets *t, bool swapped, bool add)
{
    struct pnet_conv_shape s = l->shape;
    size_t in_size = (size_t)(swapped ? t->rows : t->others) * (size_t)s.cin;
    size_t gout_size = (size_t)(swapped ? t->others : t->rows) * (size_t)s.cout;
    size_t size = algo_weights(l);
    float *in = conv_random_floats(in_size, 5), *gout = conv_random_floats(gout_size, 6);
    float *old = conv_random_floats(size, 7);
    double *in64 = conv_widen(in, in_size), *gout64 = conv_widen(gout, gout_size);
    double *want = conv_alloc(size * sizeof *want);
    pnet_ref_vvor(t, s, in64, gout64, swapped, want);
    for (size_t i = 0; i < size && add; i++) want[i] += (double)old[i];
    /* the listings add float by float: rounding grows with the root of the number of terms */
    double terms = (double)t->count / t->cells, tolerance = ALGO_TOLERANCE * (1 + sqrt(terms) / 32);
    for (int i = 0; i < 2 * PNET_ALGO_COUNT; i++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)(i / 2);
        bool listed = i % 2;
        if (listed && !pnet_conv_algo_lists(algo)) continue;
        char text[200];
        algo_describe(d, l, algo, listed, text);
        float *gweight = conv_poison(size);
        if (add) memcpy(gweight, old, size * sizeof *gweight);
        struct pnet_vvor v = {.triplets = t,
            .shape = s,
            .in = in,
            .gout = gout,
            .gweight = gweight,
            .swapped = swapped,
            .add = add,
            .algo = algo};
        d->vvor(&v, listed, text);
        double error = conv_error(gweight, want, size);
        CHECKF(error <= tolerance, "%s: vvor error %g (swapped %d, add %d)", text, error, swapped,
            add);
        free(gweight);
    }
    free(in), free(gout), free(old), free(in64), free(gout64), free(want);
}

static inline void algo_check_layer(const struct algo_device *d, struct algo_layer l, bool thorough)
{
    struct conv_set set = conv_set_random(l.rows, l.others, l.cells, l.degree, 11);
    algo_check_mvmr(d, &l, &set.t, (struct algo_use){.bias = true, .act = PNET_ACT_RELU});
    algo_check_mvmr(d, &l, &set.t, (struct algo_use){.transposed = true});
    algo_check_vvor(d, &l, &set.t, false, false);
    algo_check_vvor(d, &l, &set.t, true, true);
    if (thorough) {
        algo_check_mvmr(d, &l, &set.t, (struct algo_use){.add = true, .bias = true});
        algo_check_mvmr(d, &l, &set.t, (struct algo_use){.transposed = true, .add = true});
        algo_check_mvmr(d, &l, &set.t, (struct algo_use){.act = PNET_ACT_LEAKY});
        algo_check_vvor(d, &l, &set.t, false, true);
        algo_check_vvor(d, &l, &set.t, true, false);
    }
    conv_set_free(&set);
}

/* Widths, groups, empty sets. `brief`: a few of them. */
static inline void algo_check_shapes(const struct algo_device *d, bool brief)
{
    static const int32_t widths[] = {1, 3, 20, 32, 64, 128};
    enum { WIDTHS = sizeof widths / sizeof *widths };
    for (int a = 0; a < WIDTHS; a++)
        for (int b = 0; b < WIDTHS; b++)
            if (brief ? a + b == WIDTHS - 1 && a < b : a == b || (a - b) % 2)
                algo_check_layer(
                    d, (struct algo_layer){61, 47, 27, 5, {widths[a], widths[b], 1}}, a == b);
    static const struct pnet_conv_shape grouped[] = {
        {12, 6, 3}, {64, 64, 64}, {64, 32, 2}, {48, 16, 16}, {96, 96, 2}, {14, 42, 7}, {3, 3, 3}};
    for (size_t i = 0; i < (brief ? 2 : sizeof grouped / sizeof *grouped); i++)
        algo_check_layer(d, (struct algo_layer){83, 61, 8, 6, grouped[i]}, i == 0);
    algo_check_layer(d, (struct algo_layer){0, 3, 27, 3, {4, 8, 1}}, true);
    algo_check_layer(d, (struct algo_layer){70, 0, 27, 3, {4, 8, 1}}, true);
    algo_check_layer(d, (struct algo_layer){70, 20, 1, 0, {4, 8, 2}}, false);
    algo_check_layer(d, (struct algo_layer){1, 1, 1, 9, {5, 7, 1}}, false);
}

/* Sets of several stretches: of rows laid out, of gathered rows, of triplets; and of more others than one digit of a sort
   holds. */
static inline void algo_check_sizes(const struct algo_device *d)
{
    algo_check_layer(d, (struct algo_layer){260, 130, 1000, 9, {96, 24, 1}}, false);
    algo_check_layer(d, (struct algo_layer){1500, 900, 27, 9, {1024, 4, 1}}, false);
    algo_check_layer(d, (struct algo_layer){9000, 5000, 27, 10, {32, 40, 1}}, false);
    algo_check_layer(d, (struct algo_layer){300000, 90000, 8, 10, {1, 2, 1}}, false);
}

typedef size_t algo_work(
    enum pnet_conv_algo, const struct pnet_triplets *, struct pnet_conv_shape, enum pnet_precision);

/* Bound for a capacity class, a workspace serves every batch of it. Lists, and what is laid out, stay below 64 MiB
   together. */
static inline void algo_check_work(algo_work *mvmr_work, algo_work *vvor_work)
{
    static const struct pnet_conv_shape shapes[] = {
        {3, 32, 1}, {128, 128, 1}, {64, 64, 64}, {96, 96, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * PNET_ALGO_COUNT; i++) {
        enum pnet_conv_algo algo = (enum pnet_conv_algo)(i % PNET_ALGO_COUNT);
        struct pnet_conv_shape s = shapes[i / PNET_ALGO_COUNT];
        size_t mvmr = 0, vvor = 0;
        for (int64_t rows = 0; rows < 3000000; rows += 1 + rows / 3) {
            struct pnet_triplets t = {.rows = rows, .others = rows, .count = 7 * rows, .cells = 27};
            size_t m = mvmr_work(algo, &t, s, PNET_FP32), v = vvor_work(algo, &t, s, PNET_FP32);
            CHECKF(m >= mvmr && v >= vvor, "%s: %d channels, %lld rows", pnet_conv_algo_names[algo],
                s.cin, (long long)rows);
            mvmr = m;
            vvor = v;
        }
        CHECKF(mvmr <= 64u << 20 && vvor <= 64u << 20, "%s: %d channels: %zu, %zu bytes",
            pnet_conv_algo_names[algo], s.cin, mvmr, vvor);
    }
}

#endif
