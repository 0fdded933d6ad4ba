#include "kernels/cpu/loss/matched.h"

#include <string.h>

size_t pnet_matched_gradient_bytes(const struct pnet_matched *p, int32_t each)
{
    size_t entries = (size_t)p->samples * 2 * (size_t)each;
    return entries * ((size_t)p->width * sizeof(float) + sizeof(int32_t));
}

struct matched_entries pnet_matched_entries_of(
    const struct pnet_matched *p, int32_t each, void *work)
{
    float *gradient = work;
    int64_t numbers = (int64_t)p->samples * 2 * each * p->width;
    return (struct matched_entries){each, gradient, (int32_t *)(gradient + numbers)};
}

void pnet_matched_add_entries(const struct pnet_matched *p, const struct matched_entries *e,
    const struct pnet_matched_gradients *g)
{
    float *to[2] = {g->a, g->b};
    if (g->a && !g->add_a) memset(g->a, 0, (size_t)(p->a_rows.most * p->width) * sizeof *g->a);
    if (g->b && !g->add_b) memset(g->b, 0, (size_t)(p->b_rows.most * p->width) * sizeof *g->b);
        /* the rows of a sample are nobody else's */
#pragma omp parallel for schedule(static)
    for (int32_t part = 0; part < 2 * p->samples; part++) {
        float *side = to[part % 2];
        for (int64_t k = (int64_t)part * e->each; side && k < (int64_t)(part + 1) * e->each; k++) {
            const float *from = e->gradient + k * p->width;
            if (e->row[k] < 0) continue;
            float *row = side + (int64_t)e->row[k] * p->width;
            for (int32_t c = 0; c < p->width; c++) row[c] += from[c];
        }
    }
}
