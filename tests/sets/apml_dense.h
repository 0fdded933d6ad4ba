/* The plan of apml over all pairs, in float64: as the papers define it, and as their code has it. */
#ifndef PNET_TESTS_SETS_APML_DENSE_H
#define PNET_TESTS_SETS_APML_DENSE_H

#include "tests/sets/apml_case.h"

/* What the code of the papers does otherwise. Which pairs take part is decided by `tau` alone; 0: all. */
struct apml_dense {
    double p, tau;
    int32_t rounds;
    bool without_p; /* the temperature is ln((K - 1) / (1 - p)) / g */
    bool
        whole; /* an entry that only its row or only its column has keeps its weight, which is halved elsewhere */
    bool rows_first; /* a round divides rows, then columns */
};

static inline double apml_away(const struct sets *s, int64_t i, int64_t j)
{
    double sum = 0;
    for (int a = 0; a < 3; a++)
        sum += pow((double)s->xyz[X][3 * i + a] - (double)s->xyz[Y][3 * j + a], 2);
    return sqrt(sum);
}

/* The weights [n, m] of one side's rows, which add up to 1. */
static inline void apml_dense_weights(
    const struct apml_dense *a, const struct sets *s, int side, double *weights)
{
    int64_t own = s->splits[side][1], others = s->splits[1 - side][1], m = s->splits[Y][1],
            own_step = side == X ? m : 1, step = side == X ? 1 : m;
    for (int64_t i = 0; i < own; i++) {
        double first = INFINITY, second = INFINITY, sum = 0, *w = weights + i * own_step;
        for (int64_t j = 0; j < others; j++) {
            double d = w[j * step] = side == X ? apml_away(s, i, j) : apml_away(s, j, i);
            second = fmin(second, fmax(d, first));
            first = fmin(first, d);
        }
        double odds = (double)(others - 1) / (1 - a->p) * (a->without_p ? 1 : a->p),
               steep = others > 1 ? log(odds) / fmax(second - first, 1e-8) : 0;
        for (int64_t j = 0; j < others; j++) {
            double alike = exp(-(w[j * step] - first) * steep);
            sum += w[j * step] = alike >= a->tau ? alike : 0;
        }
        for (int64_t j = 0; j < others; j++) w[j * step] /= sum;
    }
}

/* Divides rows, or columns, by their sums. */
static inline void apml_dense_divide(double *plan, int64_t n, int64_t m, bool rows)
{
    int64_t own = rows ? n : m, others = rows ? m : n, own_step = rows ? m : 1, step = rows ? 1 : m;
    for (int64_t i = 0; i < own; i++) {
        double sum = 1e-8;
        for (int64_t j = 0; j < others; j++) sum += plan[i * own_step + j * step];
        for (int64_t j = 0; j < others; j++) plan[i * own_step + j * step] /= sum;
    }
}

/* The plan of one sample, [n, m], to be freed. */
static inline double *apml_dense_plan(const struct apml_dense *a, const struct sets *s)
{
    int64_t n = s->splits[X][1], m = s->splits[Y][1];
    double *plan = calloc((size_t)(n * m) + 1, sizeof *plan),
           *other = calloc((size_t)(n * m) + 1, sizeof *other);
    if (!plan || !other) abort();
    apml_dense_weights(a, s, X, plan);
    apml_dense_weights(a, s, Y, other);
    for (int64_t k = 0; k < n * m; k++) {
        bool one = a->whole && (plan[k] == 0) != (other[k] == 0);
        plan[k] = (plan[k] + other[k]) / (one ? 1 : 2);
    }
    for (int32_t k = 0; k < a->rounds; k++)
        for (int half = 0; half < 2; half++)
            apml_dense_divide(plan, n, m, (half == 0) == a->rows_first);
    free(other);
    return plan;
}

static inline double apml_dense_loss(const struct apml_dense *a, const struct sets *s)
{
    int64_t n = s->splits[X][1], m = s->splits[Y][1];
    double *plan = apml_dense_plan(a, s), loss = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) loss += plan[i * m + j] * apml_away(s, i, j);
    free(plan);
    return loss;
}

#endif
