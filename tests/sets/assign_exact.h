/* The least mean distance of an assignment of points, for the tests of what an auction finds. */
#ifndef PNET_TESTS_SETS_ASSIGN_EXACT_H
#define PNET_TESTS_SETS_ASSIGN_EXACT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { ASSIGN_EXACT_MOST = 600 };

static inline double assign_exact_distance(const float *x, const float *y)
{
    double sum = 0;
    for (int k = 0; k < 3; k++)
        sum += ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k]);
    return sqrt(sum);
}

/* x, y [n, 3], 1 to ASSIGN_EXACT_MOST points: by shortest augmenting paths in double (Kuhn: The Hungarian method for the
   assignment problem, 1955; Munkres: Algorithms for the assignment and transportation problems, 1957). Index 0 is none. */
static inline double assign_exact(int64_t n, const float *x, const float *y)
{
    enum { MOST = ASSIGN_EXACT_MOST + 1 };
    double u[MOST] = {0}, v[MOST] = {0}, sum = 0;
    int64_t held[MOST] = {0}, way[MOST];
    for (int64_t i = 1; i <= n; i++) {
        double least[MOST];
        bool used[MOST] = {false};
        int64_t at = 0;
        held[0] = i;
        for (int64_t j = 0; j <= n; j++) least[j] = INFINITY;
        do {
            int64_t person = held[at], next = 0;
            double delta = INFINITY;
            used[at] = true;
            for (int64_t j = 1; j <= n; j++) {
                if (used[j]) continue;
                double slack =
                    assign_exact_distance(x + 3 * (person - 1), y + 3 * (j - 1)) - u[person] - v[j];
                if (slack < least[j]) {
                    least[j] = slack;
                    way[j] = at;
                }
                if (least[j] < delta) {
                    delta = least[j];
                    next = j;
                }
            }
            for (int64_t j = 0; j <= n; j++)
                if (used[j]) {
                    u[held[j]] += delta;
                    v[j] -= delta;
                } else {
                    least[j] -= delta;
                }
            at = next;
        } while (held[at] != 0);
        for (; at; at = way[at]) held[at] = held[way[at]];
    }
    for (int64_t j = 1; j <= n; j++)
        sum += assign_exact_distance(x + 3 * (held[j] - 1), y + 3 * (j - 1));
    return sum / (double)n;
}

#endif
