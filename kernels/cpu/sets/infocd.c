#include "kernels/cpu/sets/near_terms.h"

#include <math.h>

enum { SMALL = 8192 }; /* rows below which threads cost more than they save */

static const double least = 1e-9; /* of a squared distance */

struct direction {
    const struct pnet_infocd *info;
    const double *sum; /* [samples]: S */
};

static struct pnet_near_term term(const void *args, const struct pnet_near_point *p)
{
    const struct direction *d = args;
    const struct pnet_infocd *info = d->info;
    double n = (double)p->rows, share = info->sums ? 0.5 : 0.5 / n, sum = d->sum[p->sample],
           a = sqrt(fmax(p->square, least));
    double slope = 1 / info->tau - info->lambda * n * exp(-a / info->tau) / (info->tau * sum);
    return (struct pnet_near_term){share * (a / info->tau + info->lambda * log(sum)),
        p->square > least ? share * slope / a : 0};
}

static const double *sum_samples(const struct pnet_point_set *a, const struct pnet_point_set *b,
    const int32_t *near, double tau, double *sum)
{
#pragma omp parallel for schedule(dynamic) if (a->rows.most > SMALL)
    for (int32_t s = 0; s < a->samples; s++) {
        sum[s] = 0;
        for (int64_t i = a->splits[s]; i < a->splits[s + 1]; i++)
            if (near[i] >= 0)
                sum[s] +=
                    1e-7 +
                    exp(-sqrt(fmax(pnet_near_square(a->xyz + 3 * i, b->xyz + 3 * (int64_t)near[i]),
                            least)) /
                        tau);
    }
    return sum;
}

size_t pnet_cpu_infocd_work(const struct pnet_set_pair *p)
{
    return pnet_near_pair_work(p) + 2 * (size_t)p->x.samples * sizeof(double);
}

void pnet_cpu_infocd(const struct pnet_set_pair *p, const struct pnet_infocd *d, float *loss,
    float *x_pull, float *y_pull, void *work)
{
    double *sum = work, *parts = sum + 2 * p->x.samples;
    struct direction x = {d, sum_samples(&p->x, &p->y, p->x_near, d->tau, sum)},
                     y = {d, sum_samples(&p->y, &p->x, p->y_near, d->tau, sum + p->x.samples)};
    pnet_near_pair(p, term, &x, &y, loss, x_pull, y_pull, parts);
}
