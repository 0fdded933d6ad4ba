#include "kernels/cpu/sets/near_terms.h"

#include <math.h>

struct direction {
    const struct pnet_dcd *dcd;
    const int32_t
        *count; /* of each row of the other set: points of this one to which it is nearest */
};

static struct pnet_near_term term(const void *args, const struct pnet_near_point *p)
{
    const struct direction *d = args;
    double share = (double)p->rows / (double)p->others, n = (double)p->rows;
    if (d->dcd->at_least_one) share = fmax(share, 1);
    double weight = share / (pow((double)d->count[p->near], d->dcd->lambda) + 1e-6),
           e = exp(-d->dcd->alpha * p->square);
    return (struct pnet_near_term){0.5 * (1 - weight * e) / n, weight * d->dcd->alpha * e / n};
}

static const int32_t *count_near(
    const struct pnet_point_set *a, const int32_t *near, int64_t others, int32_t *count)
{
    for (int64_t j = 0; j < others; j++) count[j] = 0;
    for (int64_t i = 0; i < a->rows.most; i++)
        if (near[i] >= 0) count[near[i]]++;
    return count;
}

static size_t parts_bytes(const struct pnet_set_pair *p)
{
    return (pnet_near_pair_work(p) + 7) / 8 * 8;
}

size_t pnet_cpu_dcd_work(const struct pnet_set_pair *p)
{
    return parts_bytes(p) + (size_t)(p->x.rows.most + p->y.rows.most) * sizeof(int32_t);
}

void pnet_cpu_dcd(const struct pnet_set_pair *p, const struct pnet_dcd *d, float *loss,
    float *x_pull, float *y_pull, void *work)
{
    int64_t n = p->x.rows.most, m = p->y.rows.most;
    int32_t *count = (int32_t *)((char *)work + parts_bytes(p));
    struct direction x = {d, count_near(&p->x, p->x_near, m, count)},
                     y = {d, count_near(&p->y, p->y_near, n, count + m)};
    pnet_near_pair(p, term, &x, &y, loss, x_pull, y_pull, work);
}
