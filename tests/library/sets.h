/* Sets of voxels with their sums in double, by the definition, on dense grids; shared by the tests of sets. */
#ifndef PNET_TESTS_LIBRARY_SETS_H
#define PNET_TESTS_LIBRARY_SETS_H

#include "tests/library/api.h"

/* Numbers that differ from case to case. */
static uint64_t sets_state = 1;
static inline uint32_t sets_random(uint32_t below)
{
    sets_state = sets_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((sets_state >> 33) % below);
}
static inline float sets_float(void)
{
    return (float)sets_random(1 << 20) / (1 << 19) - 1;
}

static inline void *sets_room(size_t count, size_t each)
{
    void *room = calloc(count + 1, each);
    if (!room) exit(1);
    return room;
}

static inline float *sets_floats(int64_t count)
{
    float *x = sets_room((size_t)count, sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = sets_float();
    return x;
}

/* A layer on voxels: the options, channels, and the voxels themselves. */
struct sets_case {
    struct pnet_voxel_options o;
    int axes;
    int32_t in, out, groups;
    int64_t rows;
    int32_t *index; /* [rows, 1 + axes] */
};

static inline struct pnet_set *sets_make(const struct sets_case *c)
{
    struct pnet_array indices = {c->index, PNET_DTYPE_I32, c->rows, 1 + c->axes, 0};
    struct pnet_set *set = NULL;
    NEED(pnet_set_voxels(&indices, &c->o, &set, &e));
    return set;
}

static inline struct pnet_set_info sets_info(const struct pnet_set *set)
{
    struct pnet_set_info i = {.size = sizeof i};
    NEED(pnet_set_counts(set, &i, &e));
    return i;
}

/* Shuffles rows of indices; moved[r] is the old row at r. */
static inline void sets_shuffle(struct sets_case *c, int64_t *moved)
{
    int width = 1 + c->axes;
    for (int64_t i = 0; i < c->rows; i++) moved[i] = i;
    for (int64_t i = c->rows - 1; i > 0; i--) {
        int64_t j = sets_random((uint32_t)i + 1), old = moved[i];
        moved[i] = moved[j];
        moved[j] = old;
        for (int a = 0; a < width; a++) {
            int32_t at = c->index[i * width + a];
            c->index[i * width + a] = c->index[j * width + a];
            c->index[j * width + a] = at;
        }
    }
}

/* Fills a part of the extent, `of` parts in all, of all samples but `empty`, in a random order. */
static inline void sets_fill(struct sets_case *c, uint32_t of, int32_t empty)
{
    int32_t n[3] = {1, 1, 1};
    for (int a = 0; a < c->axes; a++) n[a] = c->o.extent[a];
    int32_t samples = c->o.batches ? c->o.batches : 1;
    int64_t cells = (int64_t)n[0] * n[1] * n[2];
    c->index = sets_room((size_t)(cells * samples) * 4, sizeof *c->index);
    c->rows = 0;
    for (int64_t i = 0; i < cells * samples; i++) {
        if (sets_random(of) || i / cells == empty) continue;
        const int32_t at[] = {(int32_t)(i / cells), (int32_t)(i / (n[1] * n[2]) % n[0]),
            (int32_t)(i / n[2] % n[1]), (int32_t)(i % n[2])};
        memcpy(c->index + c->rows++ * (1 + c->axes), at, sizeof *at * (size_t)(1 + c->axes));
    }
    int64_t *moved = sets_room((size_t)c->rows, sizeof *moved);
    sets_shuffle(c, moved);
    free(moved);
}

/* The three sums of a set on arrays of its own. */
struct sets_sums {
    float *features, *weights, *gradient; /* what is given */
    float *result, *to_features, *to_weights;
    int64_t feature_count, weight_count, result_count;
};

static inline struct sets_sums sets_take(const struct sets_case *c, const struct pnet_set *set)
{
    struct pnet_set_info i = sets_info(set);
    struct sets_sums s = {.feature_count = i.rows_in * c->in,
        .weight_count = (int64_t)i.taps * (c->in / c->groups) * c->out,
        .result_count = i.rows_out * c->out};
    s.features = sets_floats(s.feature_count);
    s.weights = sets_floats(s.weight_count);
    s.gradient = sets_floats(s.result_count);
    s.result = sets_floats(s.result_count); /* to be overwritten */
    s.to_features = sets_floats(s.feature_count);
    s.to_weights = sets_floats(s.weight_count);
    return s;
}

static inline void sets_drop(struct sets_sums *s)
{
    free(s->features);
    free(s->weights);
    free(s->gradient);
    free(s->result);
    free(s->to_features);
    free(s->to_weights);
}

static inline struct pnet_array sets_array(const float *x, int64_t rows, int64_t width)
{
    return (struct pnet_array){x, PNET_DTYPE_F32, rows, width, 0};
}

static inline struct pnet_array_out sets_out(float *x, int64_t rows, int64_t width)
{
    return (struct pnet_array_out){x, PNET_DTYPE_F32, rows, width, 0};
}

static inline enum pnet_status sets_try(const struct sets_case *c, const struct pnet_set *set,
    const struct pnet_conv_options *o, struct sets_sums *s, struct pnet_error *e)
{
    struct pnet_set_info i = {.size = sizeof i};
    enum pnet_status st = pnet_set_counts(set, &i, e);
    int64_t taps = (int64_t)i.taps * (c->in / c->groups);
    struct pnet_array f = sets_array(s->features, i.rows_in, c->in),
                      w = sets_array(s->weights, taps, c->out),
                      g = sets_array(s->gradient, i.rows_out, c->out);
    struct pnet_array_out y = sets_out(s->result, i.rows_out, c->out),
                          x = sets_out(s->to_features, i.rows_in, c->in),
                          dw = sets_out(s->to_weights, taps, c->out);
    if (!st) st = pnet_conv_forward(set, &f, &w, o, &y, e);
    if (!st) st = pnet_conv_grad_input(set, &g, &w, o, &x, e);
    if (!st) st = pnet_conv_grad_weight(set, &f, &g, o, &dw, e);
    return st;
}

static inline void sets_run(
    const struct sets_case *c, const struct pnet_set *set, struct sets_sums *s)
{
    struct pnet_conv_options o = {.size = sizeof o, .groups = c->groups};
    NEED(sets_try(c, set, &o, s, &e));
}

/* The 2-norm of the difference of two tensors over that of the second one, of elements of at least 1: they may cancel. */
static inline double sets_error(const float *got, const double *want, int64_t count)
{
    double difference = 0, norm = (double)count;
    for (int64_t i = 0; i < count; i++) {
        difference += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return difference == 0 ? 0 : sqrt(difference / norm);
}

/* Adds one triplet to the three sums in double: input row j, output row i, tap k. */
static inline void sets_add(const struct sets_case *c, const struct sets_sums *s, int64_t i,
    int64_t j, int64_t k, double *y, double *x, double *w)
{
    int32_t in = c->in / c->groups, out = c->out / c->groups;
    for (int32_t b = 0; b < c->out; b++)
        for (int32_t a = 0; a < in; a++) {
            int64_t from = j * c->in + b / out * in + a, to = i * c->out + b,
                    at = (k * in + a) * c->out + b;
            y[to] += (double)s->weights[at] * (double)s->features[from];
            x[from] += (double)s->weights[at] * (double)s->gradient[to];
            w[at] += (double)s->features[from] * (double)s->gradient[to];
        }
}

#endif
