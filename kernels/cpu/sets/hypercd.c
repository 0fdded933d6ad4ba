#include "kernels/cpu/sets/near_terms.h"

#include <math.h>

static struct pnet_near_term term(const void *args, const struct pnet_near_point *p)
{
    const double *alpha = args;
    double z = *alpha * p->square, least = 1e-5, n = (double)p->rows;
    double slope = z > least ? 2 * *alpha / sqrt(z * (z + 2)) : 0;
    z = z > least ? z : isnan(z) ? z : least;
    return (struct pnet_near_term){log1p(z + sqrt(z * (z + 2))) / n, slope / n};
}

size_t pnet_cpu_hypercd_work(const struct pnet_set_pair *p)
{
    return pnet_near_pair_work(p);
}

void pnet_cpu_hypercd(const struct pnet_set_pair *p, double alpha, float *loss, float *x_pull,
    float *y_pull, void *work)
{
    pnet_near_pair(p, term, &alpha, &alpha, loss, x_pull, y_pull, work);
}
