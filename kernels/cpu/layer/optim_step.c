#include "kernels/optim.h"

#include <math.h>

static void sgd_plain(
    int64_t n, const struct pnet_sgd_step *s, const float *restrict g, float *restrict w)
{
    for (int64_t i = 0; i < n; i++) w[i] -= s->lr * (s->scale * g[i] + s->decay * w[i]);
}

static void sgd_momentum(int64_t n, const struct pnet_sgd_step *s, const float *restrict g,
    float *restrict w, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        float step = s->scale * g[i] + s->decay * w[i];
        v[i] = s->momentum * v[i] + step;
        w[i] -= s->lr * (s->nesterov ? step + s->momentum * v[i] : v[i]);
    }
}

static void adam(int64_t n, const struct pnet_adam_step *s, const float *restrict g,
    float *restrict w, float *restrict m, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        float step = s->scale * g[i] + s->decay * w[i];
        float mean = m[i] + s->beta1_rest * (step - m[i]);
        float square = s->beta2 * v[i] + s->beta2_rest * (step * step);
        m[i] = mean;
        v[i] = square;
        w[i] = s->keep * w[i] - s->rate * mean / (sqrtf(square) * s->inverse_root + s->eps);
    }
}

/* Eight sums side by side, so that they fit vector registers in any instruction set. */
static double square_sum(int64_t n, const float *g)
{
    enum { LANES = 8 };
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)g[i + l] * (double)g[i + l];
    for (int l = 0; i < n; i++, l++) lane[l] += (double)g[i] * (double)g[i];
    double sum = 0;
    for (int l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

size_t pnet_cpu_optim_update_work(int64_t chunk_count)
{
    return (size_t)chunk_count * sizeof(double);
}

void pnet_cpu_optim_squares(
    const struct pnet_optim_update *u, int64_t first, int64_t count, void *work)
{
    const struct pnet_optim_chunk *chunks = u->chunks;
    double *part = work;
#pragma omp parallel for schedule(static) if (count > 1)
    for (int64_t i = first; i < first + count; i++)
        part[i] = square_sum(chunks[i].count, u->g + chunks[i].offset);
}

void pnet_cpu_optim_update(const struct pnet_optim_update *u, void *work)
{
    const struct pnet_optim_chunk *chunks = u->chunks;
    const struct pnet_optim_record *r = u->record;
    const double *part = work;
    double sum = 0;
    bool finite = true;
    pnet_cpu_optim_squares(u, u->squared, u->chunk_count - u->squared, work);
    for (int64_t i = 0; i < u->chunk_count; i++) sum += part[i];
    for (int32_t i = 0; i < u->loss_count; i++) finite = finite && isfinite(u->losses[i]);
    struct pnet_adam_powers power = {
        pow(u->rule.beta1, r->step + 1), pow(u->rule.beta2, r->step + 1)};
    pnet_optim_decide(&u->rule, sum, finite, power, u->record);
    if (r->skipped) return;
#pragma omp parallel for schedule(static) if (u->chunk_count > 1)
    for (int64_t i = 0; i < u->chunk_count; i++) {
        int64_t n = chunks[i].count, at = chunks[i].offset;
        int decays = chunks[i].decays;
        struct pnet_sgd_step sgd = pnet_sgd_step_at(r->sgd[decays], chunks[i].rate);
        const float *g = u->g + at;
        float *w = u->w + at;
        if (u->rule.formula == PNET_STEP_ADAM) {
            struct pnet_adam_step s = pnet_adam_step_at(r->adam[decays], chunks[i].rate);
            adam(n, &s, g, w, u->state[0] + at, u->state[1] + at);
        } else if (u->state[0]) {
            sgd_momentum(n, &sgd, g, w, u->state[0] + at);
        } else {
            sgd_plain(n, &sgd, g, w);
        }
    }
}

void pnet_cpu_loss_add(const float *loss, double weight, bool add, double *sum)
{
    *sum = (add ? *sum : 0) + weight * (double)*loss;
}
