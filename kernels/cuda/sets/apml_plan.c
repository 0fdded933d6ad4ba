#include "kernels/cuda/sets/apml_plan.h"

#include "kernels/cuda/geometry/geo_work.h"
#include "kernels/cuda/sets/apml_search.h"
#include "kernels/cuda/sets/sets_work.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many rows of a set of `rows` can have long lists. */
static int64_t long_rows(const struct pnet_apml *a, int64_t rows)
{
    int64_t entries = a->entries * (a->sets.x.rows.most + a->sets.y.rows.most),
            most = entries / PNET_APML_LONG;
    return most < rows ? most : rows;
}

size_t pnet_cuda_apml_room(const struct pnet_apml *a, void *work, struct pnet_cuda_apml_room *p)
{
    struct geo_purse purse = {work, 0};
    const int64_t rows[2] = {a->sets.x.rows.most, a->sets.y.rows.most},
                  starts = larger(rows[0], rows[1]) + 2;
    p->finite = geo_take(&purse, 1, sizeof *p->finite);
    for (int k = 0; k < 2; k++) {
        p->long_count[k] = geo_take(&purse, 1, sizeof *p->long_count[k]);
        p->long_row[k] = geo_take(&purse, (size_t)long_rows(a, rows[k]), sizeof *p->long_row[k]);
    }
    p->slice = geo_take(&purse, 2 * SLICES, sizeof *p->slice);
    p->sums = geo_take(&purse, pnet_cuda_geo_scan_sums(starts), sizeof *p->sums);
    p->start = geo_take(&purse, (size_t)starts, sizeof *p->start);
    p->start_y = geo_take(&purse, (size_t)(rows[1] + 1), sizeof *p->start_y);
    p->search = geo_take(&purse, 0, 1);
    size_t searched = purse.used + pnet_cuda_apml_search_work(a);
    for (int k = 0; k < 2; k++)
        p->by_y[k] = geo_take(&purse, (size_t)(a->entries * rows[k]), sizeof *p->by_y[k]);
    p->begin_split = geo_take(&purse, 1, sizeof *p->begin_split);
    for (int k = 0; k < 2; k++) {
        p->part[k] = geo_take(&purse, (size_t)rows[k], sizeof *p->part[k]);
        p->steps[k] = geo_take(&purse, (size_t)rows[k], sizeof *p->steps[k]);
    }
    return purse.used > searched ? purse.used : searched;
}

size_t pnet_cuda_apml_backward_room(
    const struct pnet_apml *a, void *work, struct pnet_cuda_apml_backward_room *p)
{
    struct geo_purse purse = {work, 0};
    const int64_t x = a->sets.x.rows.most, y = a->sets.y.rows.most;
    const int32_t samples = a->sets.x.samples;
    p->finite = geo_take(&purse, 1, sizeof *p->finite);
    p->long_count = geo_take(&purse, 1, sizeof *p->long_count);
    p->long_row = geo_take(&purse, (size_t)long_rows(a, larger(x, y)), sizeof *p->long_row);
    p->box =
        geo_take(&purse, (size_t)((int64_t)samples * parts_of_sample(samples)), sizeof *p->box);
    p->sums = geo_take(&purse, pnet_cuda_geo_scan_sums(y + 2), sizeof *p->sums);
    p->start = geo_take(&purse, (size_t)(y + 2), sizeof *p->start);
    p->longer = geo_take(&purse, (size_t)y, sizeof *p->longer);
    p->by_y = geo_take(&purse, (size_t)(a->entries * larger(x, y)), sizeof *p->by_y);
    return purse.used;
}

size_t pnet_cuda_apml_work(const struct pnet_apml *a, bool backward)
{
    struct pnet_cuda_apml_room forward_room;
    struct pnet_cuda_apml_backward_room backward_room;
    if (backward) return pnet_cuda_apml_backward_room(a, NULL, &backward_room);
    return pnet_cuda_apml_room(a, NULL, &forward_room);
}
