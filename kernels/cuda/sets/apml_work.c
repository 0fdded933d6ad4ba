/* Workspaces of APML's search. */
#include "kernels/cuda/sets/apml_parts.h"

int64_t pnet_cuda_apml_chunks(int64_t rows)
{
    return rows > 0 ? (rows + APML_CHUNK - 1) / APML_CHUNK : 1;
}

size_t pnet_cuda_apml_take(const struct pnet_apml *a, bool metric, void *work, struct apml_parts *p)
{
    const struct pnet_point_set *set[SIDES] = {&a->sets.x, &a->sets.y};
    struct geo_purse purse = {work, 0};
    size_t samples = 2 * (size_t)a->sets.x.samples;
    *p = (struct apml_parts){0};
    p->slope = geo_take(&purse, samples, sizeof *p->slope);
    p->kappa = geo_take(&purse, samples, sizeof *p->kappa);
    p->limit = geo_take(&purse, SIDES, sizeof *p->limit);
    for (int side = 0; side < SIDES; side++)
        p->sums[side] =
            geo_take(&purse, (size_t)pnet_cuda_apml_chunks(set[side]->rows.most) * APML_LIMITS,
                sizeof *p->sums[side]);
    for (int side = 0; side < SIDES && metric; side++)
        p->count[side] = geo_take(&purse, (size_t)set[side]->rows.most, sizeof *p->count[side]);
    if (metric) p->tally = geo_take(&purse, PNET_APML_SUMS, sizeof *p->tally);
    if (metric) p->finite = geo_take(&purse, 1, sizeof *p->finite);
    size_t sorted = pnet_cuda_set_tree_take(set[0], set[1], &purse, &p->tree);
    p->near = geo_take(&purse, 2 * (size_t)p->tree.places, sizeof *p->near);
    return sorted > purse.used ? sorted : purse.used;
}

size_t pnet_cuda_apml_search_work(const struct pnet_apml *a)
{
    struct apml_parts p;
    return pnet_cuda_apml_take(a, false, NULL, &p);
}

size_t pnet_cuda_apml_support_work(const struct pnet_apml *a)
{
    struct apml_parts p;
    return pnet_cuda_apml_take(a, true, NULL, &p);
}
