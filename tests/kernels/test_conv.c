/* MVMR and VVOR against their definitions in double, on random triplet sets. */
#include <omp.h>
#include "kernels/conv.h"
#include "tests/kernels/layer_case.h"

static const double TOLERANCE = 1e-6;

static void check_mvmr(const struct layer *l, const struct pnet_triplets *t, bool transposed,
    bool add, bool with_bias, enum pnet_activation act)
{
    struct pnet_conv_shape s = l->shape;
    size_t in_size = (size_t)t->others * (size_t)s.cin, out_size = (size_t)t->rows * (size_t)s.cout;
    float *in = conv_random_floats(in_size, 1), *weight = conv_random_floats(layer_weights(l), 2);
    float *bias = conv_random_floats((size_t)s.cout, 3), *old = conv_random_floats(out_size, 4);
    double *in64 = conv_widen(in, in_size), *weight64 = conv_widen(weight, layer_weights(l));
    double *bias64 = conv_widen(bias, (size_t)s.cout), *want = conv_alloc(out_size * sizeof *want);
    pnet_ref_mvmr(t, s, in64, weight64, with_bias ? bias64 : NULL, transposed, want);
    layer_activate(want, out_size, act, 0.125);
    float *first = NULL;
    int32_t *row = conv_mixed_rows(t->rows);
    struct pnet_triplets mixed = *t;
    mixed.row = row;
    char text[160];
    layer_describe(l, pnet_cpu_isa(), text);
    for (int threads = 1; threads <= 4; threads++) { /* the last ones with rows in another order */
        const struct pnet_triplets *set = threads == 4 ? &mixed : t;
        size_t width = (size_t)s.cout * sizeof(float);
        omp_set_num_threads(threads);
        float *out = conv_poison(out_size);
        if (add) memcpy(out, old, out_size * sizeof *out);
        if (add && threads == 4) {
            free(out);
            out = conv_mix(old, row, t->rows, width);
        }
        struct conv_work work = conv_work(pnet_cpu_mvmr_work(set, s, PNET_FP32));
        struct pnet_mvmr m = {.triplets = set,
            .shape = s,
            .in = in,
            .weight = weight,
            .bias = with_bias ? bias : NULL,
            .out = out,
            .transposed = transposed,
            .add = add,
            .act = act,
            .slope = 0.125f,
            .precision = PNET_FP32};
        pnet_cpu_mvmr(&m, conv_work_use(&work));
        CHECKF(conv_work_end(&work), "%s: wrote beyond the workspace", text);
        if (first) {
            float *as = threads == 4 ? conv_mix(first, row, t->rows, width) : first;
            CHECKF(!out_size || memcmp(out, as, out_size * sizeof *out) == 0,
                "%s: %d threads differ from one", text, threads);
            if (as != first) free(as);
            free(out);
            continue;
        }
        first = out;
        if (add) {
            for (size_t i = 0; i < out_size; i++) want[i] += (double)old[i];
        }
        double error = conv_error(out, want, out_size);
        CHECKF(error <= TOLERANCE, "%s: mvmr error %g (transposed %d, add %d, bias %d, act %d)",
            text, error, transposed, add, with_bias, (int)act);
    }
    free(first);
    free(row);
    free(in), free(weight), free(bias), free(old), free(in64), free(weight64), free(bias64),
        free(want);
}

static void check_vvor(const struct layer *l, const struct pnet_triplets *t, bool swapped, bool add)
{
    struct pnet_conv_shape s = l->shape;
    size_t in_size = (size_t)(swapped ? t->rows : t->others) * (size_t)s.cin;
    size_t gout_size = (size_t)(swapped ? t->others : t->rows) * (size_t)s.cout;
    float *in = conv_random_floats(in_size, 5), *gout = conv_random_floats(gout_size, 6);
    float *old = conv_random_floats(layer_weights(l), 7);
    double *in64 = conv_widen(in, in_size), *gout64 = conv_widen(gout, gout_size);
    double *want = conv_alloc(layer_weights(l) * sizeof *want);
    pnet_ref_vvor(t, s, in64, gout64, swapped, want);
    if (add) {
        for (size_t i = 0; i < layer_weights(l); i++) want[i] += (double)old[i];
    }
    float *first = NULL;
    int32_t *row = conv_mixed_rows(t->rows);
    struct pnet_triplets mixed = *t;
    mixed.row = row;
    char text[160];
    layer_describe(l, pnet_cpu_isa(), text);
    float *rows = conv_mix(
        swapped ? in : gout, row, t->rows, (size_t)(swapped ? s.cin : s.cout) * sizeof *rows);
    for (int threads = 1; threads <= 4; threads++) { /* the last ones with rows in another order */
        bool other = threads == 4;
        omp_set_num_threads(threads);
        float *gweight = conv_poison(layer_weights(l));
        if (add) memcpy(gweight, old, layer_weights(l) * sizeof *gweight);
        struct conv_work work = conv_work(pnet_cpu_vvor_work(t, s, PNET_FP32));
        pnet_cpu_vvor(&(struct pnet_vvor){.triplets = other ? &mixed : t,
                          .shape = s,
                          .in = other && swapped ? rows : in,
                          .gout = other && !swapped ? rows : gout,
                          .gweight = gweight,
                          .swapped = swapped,
                          .add = add,
                          .precision = PNET_FP32},
            conv_work_use(&work));
        CHECKF(conv_work_end(&work), "%s: wrote beyond the workspace", text);
        double error = conv_error(gweight, want, layer_weights(l));
        CHECKF(error <= TOLERANCE, "%s: vvor error %g (swapped %d, add %d, other rows %d)", text,
            error, swapped, add, other);
        CHECKF(!first || memcmp(gweight, first, layer_weights(l) * sizeof *gweight) == 0,
            "%s: %d threads differ from one", text, threads);
        if (first)
            free(gweight);
        else
            first = gweight;
    }
    free(first);
    free(row);
    free(in), free(gout), free(rows), free(old), free(in64), free(gout64), free(want);
}

static const struct layer_checks checks = {check_mvmr, check_vvor};

/* Layers that need several strips of weights, several passes over dW, several chunks. */
static void check_sizes(void)
{
    struct layer wide = {30, 40, 27, 4, {640, 320, 1}}, cells = {20, 30, 1000, 20, {96, 128, 1}};
    struct layer chunks = {9000, 3000, 27, 3, {8, 24, 1}},
                 passes = {3000, 700, 125, 3, {160, 80, 1}};
    layer_check(&checks, &wide, false);
    layer_check(&checks, &cells, false);
    layer_check(&checks, &chunks, false);
    layer_check(&checks, &passes, false);
    struct layer depthwise = {9000, 3000, 27, 3, {24, 24, 24}};
    layer_check(&checks, &depthwise, false);
}

/* More rows, others or triplets never need less memory: a workspace bound for a capacity class
   serves every batch of the class. */
static void check_monotone(void)
{
    static const struct pnet_conv_shape shapes[] = {
        {3, 32, 1}, {128, 128, 1}, {512, 512, 1}, {64, 64, 64}, {96, 96, 8}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        size_t mvmr = 0, vvor = 0;
        for (int64_t rows = 0; rows < 200000; rows += 1 + rows / 3) {
            struct pnet_triplets t = {.rows = rows, .others = rows, .count = 7 * rows, .cells = 27};
            size_t m = pnet_cpu_mvmr_work(&t, shapes[s], PNET_FP32),
                   v = pnet_cpu_vvor_work(&t, shapes[s], PNET_FP32);
            CHECKF(
                m >= mvmr && v >= vvor, "%d channels, %lld rows", shapes[s].cin, (long long)rows);
            mvmr = m;
            vvor = v;
        }
        CHECKF(mvmr <= 64u << 20 && vvor <= 64u << 20, "%d channels: %zu, %zu bytes", shapes[s].cin,
            mvmr, vvor);
    }
}

/* A NaN reaches the rows that read it and no other ones. */
static void check_nan(void)
{
    struct conv_set set = conv_set_random(300, 200, 27, 5, 3);
    struct pnet_conv_shape s = {20, 24, 1};
    float *in = conv_random_floats(200 * 20, 1), *weight = conv_random_floats(27 * 20 * 24, 2);
    float *out = conv_alloc(300 * 24 * sizeof *out);
    in[77 * 20 + 19] = NAN;
    struct conv_work work = conv_work(pnet_cpu_mvmr_work(&set.t, s, PNET_FP32));
    pnet_cpu_mvmr(&(struct pnet_mvmr){.triplets = &set.t,
                      .shape = s,
                      .in = in,
                      .weight = weight,
                      .out = out,
                      .act = PNET_ACT_RELU},
        conv_work_use(&work));
    CHECK(conv_work_end(&work));
    int readers = 0;
    for (int64_t r = 0; r < 300; r++) {
        bool reads = false;
        for (int64_t i = set.start[r]; i < set.start[r + 1]; i++)
            reads = reads || set.other[i] == 77;
        readers += reads;
        for (int c = 0; c < 24; c++) CHECK(isnan(out[r * 24 + c]) == reads);
    }
    CHECK(readers > 0 && readers < 300);
    free(in), free(weight), free(out);
    conv_set_free(&set);
}

int main(void)
{
    const char *names[3];
    int n = conv_isa_list(names);
    CHECK(n >= 1 && strcmp(names[0], "base") == 0);
    for (int i = 0; i < n; i++) {
        pnet_cpu_isa_limit(names[i]);
        layer_check_shapes(
            &checks, (struct layer){41, 37, 8, 4, {0}}, (struct layer){53, 61, 27, 6, {0}});
        check_sizes();
        check_monotone();
        check_nan();
    }
    return check_end();
}
