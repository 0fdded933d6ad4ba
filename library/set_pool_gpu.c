/* Pools over a set on a GPU. */
#include "library/set.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/pool.h"

/* result[row] = the sum, or mean, of x[other]. The kernel needs no workspace. */
static void add_up(const struct pnet_triplets *t, const struct pnet_pool_arrays *p, const float *x,
    bool mean, float *result)
{
    struct pnet_cells cells = {.fine_rows = {.most = t->count},
        .coarse_rows = {.most = t->rows, .storage = p->storage},
        .start = t->start,
        .child = t->other,
        .row = t->row};
    pnet_cuda_cells_sum(&cells, p->channels, x, mean, false, result, NULL);
}

enum pnet_status pnet_pool_forward_on_gpu(const struct pnet_set *set,
    const struct pnet_pool_arrays *p, const void *features, void *result, int32_t *argmax,
    struct pnet_error *e)
{
    const struct pnet_triplets *t = &set->by_out.triplets;
    int before;
    enum pnet_status st = pnet_home_enter(&set->home, p->stream, &before, e);
    if (st) return st;
    if (p->kind == PNET_POOLING_MAX)
        pnet_cuda_triplets_max(t, p->channels, p->storage, features, result, argmax);
    else
        add_up(t, p, features, p->kind == PNET_POOLING_MEAN, result);
    return pnet_home_leave(&set->home, p->stream, before, st, e);
}

enum pnet_status pnet_pool_backward_on_gpu(const struct pnet_set *set,
    const struct pnet_pool_arrays *p, const void *gradient, const int32_t *argmax, void *result,
    struct pnet_error *e)
{
    const struct pnet_triplets *back = &set->by_in.triplets;
    int before;
    enum pnet_status st = pnet_home_enter(&set->home, p->stream, &before, e);
    if (st) return st;
    if (p->kind == PNET_POOLING_MAX)
        pnet_cuda_triplets_max_back(
            back, set->several, p->channels, p->storage, argmax, gradient, result);
    else if (p->kind == PNET_POOLING_MEAN)
        pnet_cuda_triplets_mean_back(
            back, &set->by_out.triplets, p->channels, p->storage, gradient, result);
    else
        add_up(back, p, gradient, false, result);
    return pnet_home_leave(&set->home, p->stream, before, st, e);
}
#endif
