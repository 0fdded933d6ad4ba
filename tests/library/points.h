/* Clouds, their levels, and models on them; shared by the tests of points. */
#ifndef PNET_TESTS_LIBRARY_POINTS_H
#define PNET_TESTS_LIBRARY_POINTS_H

#include "tests/library/sets.h"

enum { POINTS_FEATURES = 5, POINTS_SAMPLES = 3 };

/* A batch whose rows are in no order; its middle sample is empty. */
struct points_cloud {
    int64_t rows;
    int32_t width;                      /* channels */
    float *xyz, *f;                     /* [rows, 3], [rows, width] */
    int64_t splits[POINTS_SAMPLES + 1]; /* rows of a sample are together */
    int32_t *sample;                    /* [rows] */
};

/* Points of a box of a metre around the origin; one in four lies on a lattice, so that many are equally near to a centre, and
   some are there twice. */
static inline struct points_cloud points_fill_wide(int64_t rows, int32_t width)
{
    struct points_cloud c = {.rows = rows,
        .width = width,
        .xyz = sets_floats(3 * rows),
        .f = sets_floats(rows * width),
        .splits = {0, rows / 3, rows / 3, rows},
        .sample = sets_room((size_t)rows, sizeof *c.sample)};
    for (int64_t i = 0; i < rows; i++) {
        c.sample[i] = i < rows / 3 ? 0 : 2;
        for (int a = 0; a < 3; a++) {
            float *x = c.xyz + 3 * i + a;
            *x *= 0.5F;
            if (i % 4 == 0) *x = roundf(*x * 32) / 32;
        }
    }
    return c;
}

static inline struct points_cloud points_fill(int64_t rows)
{
    return points_fill_wide(rows, POINTS_FEATURES);
}

static inline void points_drop(struct points_cloud *c)
{
    free(c->xyz);
    free(c->f);
    free(c->sample);
}

static inline struct pnet_array points_ints(const int32_t *x, int64_t rows)
{
    return (struct pnet_array){x, PNET_DTYPE_I32, rows, 1, 0};
}

static inline struct pnet_array_out points_ints_out(int32_t *x, int64_t rows)
{
    return (struct pnet_array_out){x, PNET_DTYPE_I32, rows, 1, 0};
}

/* The points of a cloud, along a grid with these cells. */
static inline struct pnet_points *points_make(const struct points_cloud *c, double cell)
{
    struct pnet_array at = sets_array(c->xyz, c->rows, 3),
                      splits = {c->splits, PNET_DTYPE_I64, POINTS_SAMPLES + 1, 1, 0};
    struct pnet_points_options o = {.size = sizeof o, .row_splits = &splits, .cell = cell};
    struct pnet_points *p = NULL;
    NEED(pnet_points_new(&at, &o, &p, &e));
    return p;
}

static inline struct pnet_points *points_grid(const struct pnet_points *of, double cell)
{
    struct pnet_points *l = NULL;
    NEED(pnet_points_grid(of, cell, &l, &e));
    return l;
}

static inline struct pnet_points_info points_info(const struct pnet_points *p)
{
    struct pnet_points_info i = {.size = sizeof i};
    NEED(pnet_points_counts(p, &i, &e));
    return i;
}

/* What can be read of points, for the caller to free. */
static inline float *points_positions(const struct pnet_points *p)
{
    int64_t n = points_info(p).rows;
    float *x = sets_room((size_t)n, 3 * sizeof *x);
    struct pnet_array_out to = sets_out(x, n, 3);
    NEED(pnet_points_positions(p, &to, &e));
    return x;
}

static inline int32_t *points_samples(const struct pnet_points *p)
{
    int64_t n = points_info(p).rows;
    int32_t *x = sets_room((size_t)n, sizeof *x);
    struct pnet_array_out to = points_ints_out(x, n);
    NEED(pnet_points_samples(p, &to, &e));
    return x;
}

static inline int32_t *points_sources(const struct pnet_points *p)
{
    int64_t n = points_info(p).rows;
    int32_t *x = sets_room((size_t)n, sizeof *x);
    struct pnet_array_out to = points_ints_out(x, n);
    NEED(pnet_points_sources(p, &to, &e));
    return x;
}

static inline int32_t *points_parents(
    const struct pnet_points *fine, const struct pnet_points *coarse)
{
    int64_t n = points_info(fine).rows;
    int32_t *x = sets_room((size_t)n, sizeof *x);
    struct pnet_array_out to = points_ints_out(x, n);
    NEED(pnet_points_parents(fine, coarse, &to, &e));
    return x;
}

/* Draws an order of rows; moved[r] is the old row at r. */
static inline void points_draw_order(int64_t rows, int64_t *moved)
{
    for (int64_t i = 0; i < rows; i++) moved[i] = i;
    for (int64_t i = rows - 1; i > 0; i--) {
        int64_t j = sets_random((uint32_t)i + 1), old = moved[i];
        moved[i] = moved[j];
        moved[j] = old;
    }
}

/* Puts the rows of a cloud in that order. */
static inline void points_move(struct points_cloud *c, const int64_t *moved)
{
    float *xyz = sets_room((size_t)c->rows, 3 * sizeof *xyz),
          *f = sets_room((size_t)c->rows, (size_t)c->width * sizeof *f);
    int32_t *sample = sets_room((size_t)c->rows, sizeof *sample);
    for (int64_t i = 0; i < c->rows; i++) {
        memcpy(xyz + 3 * i, c->xyz + 3 * moved[i], 3 * sizeof *xyz);
        memcpy(f + c->width * i, c->f + c->width * moved[i], (size_t)c->width * sizeof *f);
        sample[i] = c->sample[moved[i]];
    }
    points_drop(c);
    c->xyz = xyz;
    c->f = f;
    c->sample = sample;
}

static inline void points_shuffle(struct points_cloud *c, int64_t *moved)
{
    points_draw_order(c->rows, moved);
    points_move(c, moved);
}

static inline bool points_share_cell(
    const struct points_cloud *c, double cell, int64_t i, int64_t j)
{
    bool same = c->sample[i] == c->sample[j];
    for (int a = 0; a < 3; a++)
        same &= floorf(c->xyz[3 * i + a] * (float)(1 / cell)) ==
                floorf(c->xyz[3 * j + a] * (float)(1 / cell));
    return same;
}

/* Puts the rows in another order, in which those that share a cell follow each other as before. */
static inline void points_shuffle_cells(struct points_cloud *c, double cell, int64_t *moved)
{
    bool *taken = sets_room((size_t)c->rows, sizeof *taken);
    points_draw_order(c->rows, moved);
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t first = 0;
        while (taken[first] || !points_share_cell(c, cell, first, moved[i])) first++;
        taken[first] = true;
        moved[i] = first;
    }
    free(taken);
    points_move(c, moved);
}

/* The points of a cloud whose samples are not together. */
static inline struct pnet_points *points_make_mixed(const struct points_cloud *c, double cell)
{
    struct pnet_array at = sets_array(c->xyz, c->rows, 3), sample = points_ints(c->sample, c->rows);
    struct pnet_points_options o = {
        .size = sizeof o, .sample = &sample, .batches = POINTS_SAMPLES, .cell = cell};
    struct pnet_points *p = NULL;
    NEED(pnet_points_new(&at, &o, &p, &e));
    return p;
}

/* The result of a net of `text` on a cloud, a row for each point, for the caller to free. Weights by name are set first. */
struct points_weight {
    const char *name;
    const float *x;
    int64_t count;
};
static inline float *points_run_net(const struct points_cloud *c, const char *text,
    const char *mode, const struct points_weight *weights, int count, int64_t *numbers)
{
    struct pnet_model_options o = {.size = sizeof o, .mode = mode};
    struct pnet_model *m = NULL;
    struct pnet_value v[] = {{"cloud", {c->splits, PNET_DTYPE_I64, POINTS_SAMPLES + 1, 1, 0}},
        {"cloud.xyz", {c->xyz, PNET_DTYPE_F32, c->rows, 3, 0}},
        {"cloud.f", {c->f, PNET_DTYPE_F32, c->rows, c->width, 0}}};
    NEED(pnet_model_compile("points.pnet", text, strlen(text), &o, &m, &e));
    struct pnet_session *s = api_session(m, NULL);
    NEED(pnet_session_init(s, &e));
    for (int i = 0; i < count; i++)
        NEED(pnet_session_set_weight(s, weights[i].name, weights[i].x, weights[i].count, &e));
    NEED(pnet_session_bind(s, v, 3, &e));
    float *x = api_result(s, numbers);
    pnet_session_free(s);
    pnet_model_free(m);
    return x;
}

/* Compares the rows of a level, as its points have them, with a row for each point, bit for bit. */
static inline void points_same(const struct pnet_points *points, const struct pnet_points *level,
    const float *got, const float *want, int64_t width, const char *what)
{
    int32_t *parent = points_parents(points, level);
    int64_t n = points_info(points).rows, wrong = 0;
    double size = 0;
    for (int64_t i = 0; i < n; i++) {
        wrong += memcmp(got + parent[i] * width, want + i * width, (size_t)width * 4) != 0;
        for (int64_t a = 0; a < width; a++) size += fabs((double)want[i * width + a]);
    }
    CHECKF(n > 0 && wrong == 0 && size > 1e-3 * (double)n, "%s: %d of %d rows differ; size %g",
        what, (int)wrong, (int)n, size);
    free(parent);
}

/* The voxel of a point by docs/geometry.md. */
static inline void points_voxel_of(const float *p, double base, int factor, int voxel[3])
{
    for (int a = 0; a < 3; a++) {
        volatile float quotient = p[a] * (float)(1 / base);
        voxel[a] = (int)floor(floor((double)quotient) / factor);
    }
}

static inline float points_square(const float *p, const float *q)
{
    volatile float d[3];
    for (int a = 0; a < 3; a++) {
        d[a] = p[a] - q[a];
        d[a] = d[a] * d[a];
    }
    d[0] = d[0] + d[1];
    d[0] = d[0] + d[2];
    return d[0];
}

static inline bool points_same_voxel(const int a[3], const int b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

#endif
