/* The rounds of apml as the definition has them, each entry divided, in long double: nothing overflows, and what underflows is
   0. They begin with the plan that a device gives for no rounds. */
#ifndef PNET_TESTS_SETS_APML_ROUNDS_H
#define PNET_TESTS_SETS_APML_ROUNDS_H

#include "kernels/apml.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* To be freed. The entries are in the order of the plan. */
struct apml_rounds {
    double *entry[2]; /* of by_row, of by_column */
    double loss, *gradient[2];
};

static inline void *apml_zeros(int64_t n, size_t size)
{
    void *p = calloc((size_t)n + 1, size);
    if (!p) abort();
    return p;
}

/* Divides the rows of x by their sums, or those of y. `list`, `entry`: of by_row and by_column; sum [rows of the set]. */
static inline void apml_rounds_divide(const struct pnet_apml_plan *plan, int64_t n, int64_t m,
    bool columns, long double *const entry[2], long double *sum)
{
    const struct pnet_apml_entry *list[] = {plan->by_row, plan->by_column};
    for (int64_t k = 0; k < (columns ? m : n); k++) sum[k] = 1e-8L;
    for (int step = 0; step < 2; step++) /* adds up, divides */
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0, e = 0; i < n; i++)
                for (; e < plan->end[2 * i + k]; e++) {
                    int64_t of = columns ? list[k][e].other : i;
                    if (step == 0)
                        sum[of] += entry[k][e];
                    else
                        entry[k][e] /= sum[of];
                }
}

/* Adds what entries of `row` carry, and their pull, to the loss and the gradients. */
static inline void apml_rounds_pull(
    const struct pnet_set_pair *sets, int64_t i, int64_t j, double p, struct apml_rounds *r)
{
    const float *x = sets->x.xyz + 3 * i, *y = sets->y.xyz + 3 * j;
    double d[3], samples = sets->x.samples;
    for (int a = 0; a < 3; a++) d[a] = (double)x[a] - (double)y[a];
    double length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    r->loss += p * length / samples;
    for (int a = 0; a < 3; a++) {
        double f = p * d[a] / fmax(length, 1e-6) / samples;
        r->gradient[0][3 * i + a] += f;
        r->gradient[1][3 * j + a] -= f;
    }
}

/* What the plan of no rounds becomes in `rounds` of them. Sets and plan lie on the host. */
static inline struct apml_rounds apml_rounds_of(
    const struct pnet_set_pair *sets, const struct pnet_apml_plan *plan, int32_t rounds)
{
    const int64_t n = sets->x.rows.most, m = sets->y.rows.most;
    const struct pnet_apml_entry *list[] = {plan->by_row, plan->by_column};
    long double *entry[2], *sum = apml_zeros(n > m ? n : m, sizeof *sum);
    struct apml_rounds r = {
        .gradient = {apml_zeros(3 * n, sizeof(double)), apml_zeros(3 * m, sizeof(double))}};
    for (int k = 0; k < 2; k++) {
        int64_t count = n > 0 ? plan->end[2 * (n - 1) + k] : 0;
        entry[k] = apml_zeros(count, sizeof *entry[k]);
        r.entry[k] = apml_zeros(count, sizeof *r.entry[k]);
        for (int64_t e = 0; e < count; e++) entry[k][e] = (long double)list[k][e].p;
    }
    for (int32_t t = 0; t < rounds; t++)
        for (int half = 0; half < 2; half++) apml_rounds_divide(plan, n, m, half == 0, entry, sum);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0, e = 0; i < n; i++)
            for (; e < plan->end[2 * i + k]; e++) {
                r.entry[k][e] = (double)entry[k][e];
                apml_rounds_pull(sets, i, list[k][e].other, r.entry[k][e], &r);
            }
    for (int k = 0; k < 2; k++) free(entry[k]);
    free(sum);
    return r;
}

static inline void apml_rounds_free(struct apml_rounds *r)
{
    for (int k = 0; k < 2; k++) {
        free(r->entry[k]);
        free(r->gradient[k]);
    }
}

#endif
