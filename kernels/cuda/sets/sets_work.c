/* Workspaces of losses and metrics between point sets. */
#include "kernels/cuda/sets/sets_work.h"

#include "kernels/cuda/base/sort.h"
#include "kernels/cuda/sets/set_tree.h"

size_t pnet_cuda_near_pairs_work(const struct pnet_point_set *a, const struct pnet_point_set *b)
{
    (void)b;
    return (size_t)a->rows.most * sizeof(uint64_t);
}

size_t pnet_cuda_set_near_work(const struct pnet_point_set *a, const struct pnet_point_set *b)
{
    return pnet_cuda_near_by_tree(a, b) ? pnet_cuda_near_tree_work(a, b)
                                        : pnet_cuda_near_pairs_work(a, b);
}

/* The sums of each slice of either side. */
static size_t terms_bytes(void)
{
    return round_up(SIDES * SLICES * sizeof(double));
}

size_t pnet_cuda_chamfer_work(const struct pnet_set_pair *p)
{
    (void)p;
    return terms_bytes();
}

size_t pnet_cuda_hypercd_work(const struct pnet_set_pair *p)
{
    (void)p;
    return terms_bytes();
}

/* Beside the sums, how many points have each row of the other set as their nearest one. */
size_t pnet_cuda_dcd_work(const struct pnet_set_pair *p)
{
    return terms_bytes() + round_up((size_t)p->x.rows.most * sizeof(int32_t)) +
           round_up((size_t)p->y.rows.most * sizeof(int32_t));
}

/* Beside the sums, one for each sample of either side, and those of its parts. */
size_t pnet_cuda_infocd_work(const struct pnet_set_pair *p)
{
    size_t sums = SIDES * (size_t)p->x.samples;
    return terms_bytes() + round_up(sums * sizeof(double)) +
           round_up(sums * (size_t)parts_of_sample(p->x.samples) * sizeof(double));
}

size_t pnet_cuda_completion_work(const struct pnet_set_pair *p)
{
    size_t samples = (size_t)p->x.samples;
    return round_up((size_t)p->y.rows.most) +
           round_up(
               SIDES * samples * (size_t)parts_of_sample(p->x.samples) * sizeof(struct judged)) +
           round_up(samples * PNET_COMPLETION_SUMS * sizeof(double));
}

size_t pnet_cuda_set_pull_work(const struct pnet_set_pull *p)
{
    size_t rows = (size_t)p->b.rows.most;
    return 2 * round_up(rows * sizeof(uint64_t)) +
           round_up((size_t)(p->a.rows.most + 1) * sizeof(int64_t)) +
           pnet_cuda_sort_work(p->b.rows.most);
}
