/* One layer with its data, its three products, and the checks of their results. */
#ifndef PNET_BENCH_CONV_LAYER_H
#define PNET_BENCH_CONV_LAYER_H

#include <string.h>
#include "bench/bench.h"
#include "kernels/conv.h"

struct layer {
    const struct pnet_triplets *forward, *backward; /* sorted by i, by j */
    struct pnet_conv_shape shape, back;             /* of the layer, of its feature gradient */
    float *in, *weight, *gout, *out, *gin, *gweight;
    size_t weights;
    void *work;
    size_t work_bytes; /* of the workspace that the three products share */
};

static inline struct layer layer_make(const struct pnet_triplets *forward,
    const struct pnet_triplets *backward, struct pnet_conv_shape s)
{
    struct layer l = {
        .forward = forward, .backward = backward, .shape = s, .back = {s.cout, s.cin, s.groups}};
    size_t in = (size_t)forward->others * (size_t)s.cin,
           out = (size_t)forward->rows * (size_t)s.cout;
    l.weights = (size_t)forward->cells * (size_t)(s.cin / s.groups) * (size_t)s.cout;
    l.in = bench_floats(in, 1);
    l.weight = bench_floats(l.weights, 2);
    l.gout = bench_floats(out, 3);
    l.out = bench_floats(out, 4);
    l.gin = bench_floats(in, 5);
    l.gweight = bench_floats(l.weights, 6);
    size_t need[] = {pnet_cpu_mvmr_work(forward, s, PNET_FP32),
        pnet_cpu_mvmr_work(backward, l.back, PNET_FP32), pnet_cpu_vvor_work(forward, s, PNET_FP32)};
    for (int i = 0; i < 3; i++) l.work_bytes = need[i] > l.work_bytes ? need[i] : l.work_bytes;
    l.work = bench_alloc(l.work_bytes);
    return l;
}

static inline void layer_free(struct layer *l)
{
    free(l->in);
    free(l->weight);
    free(l->gout);
    free(l->out);
    free(l->gin);
    free(l->gweight);
    free(l->work);
}

static inline void layer_forward(struct layer *l)
{
    pnet_cpu_mvmr(&(struct pnet_mvmr){.triplets = l->forward,
                      .shape = l->shape,
                      .in = l->in,
                      .weight = l->weight,
                      .out = l->out},
        l->work);
}

static inline void layer_feature_gradient(struct layer *l)
{
    pnet_cpu_mvmr(&(struct pnet_mvmr){.triplets = l->backward,
                      .shape = l->back,
                      .in = l->gout,
                      .weight = l->weight,
                      .out = l->gin,
                      .transposed = true},
        l->work);
}

static inline void layer_weight_gradient(struct layer *l)
{
    pnet_cpu_vvor(&(struct pnet_vvor){.triplets = l->forward,
                      .shape = l->shape,
                      .in = l->in,
                      .gout = l->gout,
                      .gweight = l->gweight},
        l->work);
}

/* out[i] for rows [first, end) the obvious way: one triplet after the other. What a layer is
 * compared with. */
static inline void layer_plain(
    const struct layer *l, int64_t first, int64_t end, float *restrict out)
{
    const struct pnet_triplets *t = l->forward;
    int32_t groups = l->shape.groups, cin = l->shape.cin / groups, cout = l->shape.cout / groups;
    memset(out, 0, (size_t)(end - first) * (size_t)l->shape.cout * sizeof *out);
    for (int64_t i = first; i < end; i++) {
        for (int64_t n = t->start[i]; n < t->start[i + 1]; n++) {
            for (int32_t a = 0; a < l->shape.cin; a++) {
                int32_t column = a / cin * cout;
                float x = l->in[(int64_t)t->other[n] * l->shape.cin + a];
                const float *restrict w =
                    l->weight + ((int64_t)t->cell[n] * cin + a % cin) * l->shape.cout + column;
                float *restrict to = out + (i - first) * l->shape.cout + column;
                for (int32_t b = 0; b < cout; b++) to[b] += x * w[b];
            }
        }
    }
}

/* How far the row of `out` at a place is from the reference in double. */
static inline struct bench_error layer_check_row(const struct pnet_triplets *t,
    struct pnet_conv_shape s, const float *in, const double *weight64, bool transposed,
    const float *out, int64_t place)
{
    struct bench_error error = {0, 0};
    int64_t begin = t->start[place], count = t->start[place + 1] - begin,
            row = pnet_triplets_row(t, place);
    /* A set of this row alone, whose other side is its triplets one by one. */
    double *in64 = bench_alloc((size_t)(count * s.cin) * sizeof *in64),
           *want = bench_alloc((size_t)s.cout * sizeof *want);
    int32_t *other = bench_alloc((size_t)count * sizeof *other);
    for (int64_t i = 0; i < count; i++) {
        other[i] = (int32_t)i;
        for (int32_t a = 0; a < s.cin; a++)
            in64[i * s.cin + a] = (double)in[(int64_t)t->other[begin + i] * s.cin + a];
    }
    int64_t start[2] = {0, count};
    struct pnet_triplets one = {.rows = 1,
        .others = count,
        .count = count,
        .cells = t->cells,
        .start = start,
        .other = other,
        .cell = t->cell + begin};
    pnet_ref_mvmr(&one, s, in64, weight64, NULL, transposed, want);
    for (int32_t b = 0; b < s.cout; b++)
        bench_error_add(&error, (double)out[row * s.cout + b], want[b]);
    free(in64);
    free(other);
    free(want);
    return error;
}

/* The relative error of some rows of `out`, against the reference in double. */
static inline double layer_check_rows(const struct pnet_triplets *t, struct pnet_conv_shape s,
    const float *in, const float *weight, size_t weights, bool transposed, const float *out)
{
    enum { SAMPLE = 64 };
    struct bench_error error[SAMPLE] = {{0, 0}};
    double *weight64 = bench_alloc(weights * sizeof *weight64);
    int64_t rows = t->rows < SAMPLE ? t->rows : SAMPLE;
#pragma omp parallel for
    for (size_t i = 0; i < weights; i++) weight64[i] = (double)weight[i];
#pragma omp parallel for schedule(dynamic)
    for (int64_t n = 0; n < rows; n++)
        error[n] = layer_check_row(
            t, s, in, weight64, transposed, out, n * (t->rows / SAMPLE + 1) % t->rows);
    for (int64_t n = 1; n < rows; n++) {
        error[0].difference += error[n].difference;
        error[0].norm += error[n].norm;
    }
    free(weight64);
    return bench_error_value(&error[0]);
}

/* The relative error of a few entries of dW[k], for every k: each is a sum over all triplets. */
static inline double layer_check_weight_gradient(const struct layer *l)
{
    enum { SAMPLE = 4 };
    const struct pnet_triplets *t = l->forward;
    struct pnet_conv_shape s = l->shape;
    int32_t cin = s.cin / s.groups, cout = s.cout / s.groups;
    struct bench_error error = {0, 0};
    double *want = bench_alloc((size_t)t->cells * sizeof *want);
    for (int32_t n = 0; n < SAMPLE; n++) {
        int32_t a = n * (cin - 1) / (SAMPLE - 1),
                b = (SAMPLE - 1 - n) * (s.cout - 1) / (SAMPLE - 1);
        int32_t channel = b / cout * cin + a;
        memset(want, 0, (size_t)t->cells * sizeof *want);
#pragma omp parallel for reduction(+ : want[:t->cells])
        for (int64_t i = 0; i < t->rows; i++) {
            double g = (double)l->gout[pnet_triplets_row(t, i) * s.cout + b];
            for (int64_t m = t->start[i]; m < t->start[i + 1]; m++)
                want[t->cell[m]] += g * (double)l->in[(int64_t)t->other[m] * s.cin + channel];
        }
        for (int64_t k = 0; k < t->cells; k++)
            bench_error_add(&error, (double)l->gweight[(k * cin + a) * s.cout + b], want[k]);
    }
    free(want);
    return bench_error_value(&error);
}

#endif
