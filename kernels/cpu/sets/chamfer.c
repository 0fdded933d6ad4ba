#include "kernels/cpu/sets/near_terms.h"

#include <math.h>

static struct pnet_near_term distance(const void *args, const struct pnet_near_point *p)
{
    (void)args;
    double a = sqrt(p->square), share = 0.5 / (double)p->rows;
    return (struct pnet_near_term){share * a, share / fmax(a, 1e-6)};
}

static struct pnet_near_term square(const void *args, const struct pnet_near_point *p)
{
    (void)args;
    return (struct pnet_near_term){p->square / (double)p->rows, 2 / (double)p->rows};
}

size_t pnet_cpu_chamfer_work(const struct pnet_set_pair *p)
{
    return pnet_near_pair_work(p);
}

void pnet_cpu_chamfer(const struct pnet_set_pair *p, bool squares, float *loss, float *x_pull,
    float *y_pull, void *work)
{
    pnet_near_pair(p, squares ? square : distance, NULL, NULL, loss, x_pull, y_pull, work);
}
