#include "kernels/cpu/sets/pairs.h"

#include <math.h>
#include <string.h>

#include "kernels/conv.h"

enum { LANES = PNET_PAIR_LANES };

extern const struct pnet_pairs_isa pnet_pairs_isa_base;
#if defined(__x86_64__)
extern const struct pnet_pairs_isa pnet_pairs_isa_avx2, pnet_pairs_isa_avx512;
#endif

const struct pnet_pairs_isa *pnet_pairs_isa(void)
{
#if defined(__x86_64__)
    const char *name = pnet_cpu_isa();
    if (strcmp(name, "avx512") == 0) return &pnet_pairs_isa_avx512;
    if (strcmp(name, "avx2") == 0) return &pnet_pairs_isa_avx2;
#endif
    return &pnet_pairs_isa_base;
}

/* Rows 0 .. n - 1 in `samples` samples take at most n / LANES + samples panels, however they are split. */
int64_t pnet_pairs_room(const struct pnet_point_set *s)
{
    return (s->rows.most / LANES + s->samples) * LANES;
}

int64_t pnet_pairs_begin(const struct pnet_point_set *s, int32_t sample)
{
    return (s->splits[sample] / LANES + sample) * LANES;
}

int64_t pnet_pairs_padded(const struct pnet_point_set *s, int32_t sample)
{
    return (pnet_pairs_points(s, sample) + LANES - 1) / LANES * LANES;
}

int32_t pnet_pairs_sample(const struct pnet_point_set *s, int64_t row)
{
    int32_t first = 0, last = s->samples; /* splits[first] <= row < splits[last] */
    while (first + 1 < last) {
        int32_t middle = first + (last - first) / 2;
        if (s->splits[middle] <= row)
            first = middle;
        else
            last = middle;
    }
    return first;
}

struct pnet_pairs_box pnet_pairs_box(const struct pnet_set_pair *p, int32_t sample)
{
    const struct pnet_point_set *set[2] = {&p->x, &p->y};
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    double nothing = 0; /* NaN as soon as a coordinate is not finite */
    for (int side = 0; side < 2; side++)
        for (int64_t i = set[side]->splits[sample]; i < set[side]->splits[sample + 1]; i++)
            for (int a = 0; a < 3; a++) {
                double v = (double)set[side]->xyz[3 * i + a];
                low[a] = v < low[a] ? v : low[a];
                high[a] = v > high[a] ? v : high[a];
                nothing += v * 0;
            }
    struct pnet_pairs_box box = {.diagonal = 0};
    for (int a = 0; a < 3; a++) {
        box.centre[a] = (low[a] + high[a]) / 2;
        box.diagonal += (high[a] - low[a]) * (high[a] - low[a]);
    }
    box.diagonal = sqrt(box.diagonal) + nothing;
    return box;
}

void *pnet_pairs_take(struct pnet_pairs_work *w, int64_t count, size_t each)
{
    void *at = w->begin ? w->begin + w->bytes : NULL;
    w->bytes += ((size_t)count * each + 63) / 64 * 64;
    return at;
}
