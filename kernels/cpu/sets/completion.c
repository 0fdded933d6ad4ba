#include "kernels/cpu/sets/near_terms.h"
#include "kernels/emd.h"

#include <math.h>
#include <string.h>

struct side {
    double distance, square, near; /* means of a, of a^2, and the share of a < at */
};

static struct side judge(const struct pnet_point_set *a, const struct pnet_point_set *b,
    const int32_t *near, int32_t sample, double at)
{
    struct side sum = {0, 0, 0};
    double n = (double)(a->splits[sample + 1] - a->splits[sample]);
    for (int64_t i = a->splits[sample]; i < a->splits[sample + 1]; i++) {
        double square = near[i] < 0
                            ? (double)NAN
                            : pnet_near_square(a->xyz + 3 * i, b->xyz + 3 * (int64_t)near[i]);
        sum.square += square / n;
        sum.distance += sqrt(square) / n;
        sum.near += (sqrt(square) < at) / n;
    }
    return sum;
}

static double covered(const struct pnet_set_pair *p, int32_t sample, uint8_t *hit)
{
    int64_t begin = p->y.splits[sample], end = p->y.splits[sample + 1], count = 0;
    memset(hit + begin, 0, (size_t)(end - begin));
    for (int64_t i = p->x.splits[sample]; i < p->x.splits[sample + 1]; i++)
        if (p->x_near[i] >= 0) hit[p->x_near[i]] = 1;
    for (int64_t j = begin; j < end; j++) count += hit[j];
    return (double)count / (double)(end - begin);
}

/* The mean distance of a sample's points to their partners, and whether the rounds left one. */
static void judge_partners(
    const struct pnet_set_pair *p, int32_t sample, const int32_t *partner, double *out)
{
    int64_t begin = p->x.splits[sample], end = p->x.splits[sample + 1];
    double sum = 0;
    for (int64_t i = begin; i < end; i++) {
        bool left = partner[i] <= PNET_EMD_LEFT;
        int64_t j = left ? PNET_EMD_LEFT - partner[i] : partner[i];
        sum += j < 0 ? (double)NAN : sqrt(pnet_near_square(p->x.xyz + 3 * i, p->y.xyz + 3 * j));
        if (left) out[PNET_COMPLETION_LEFT] = 1;
    }
    out[PNET_COMPLETION_EMD] = sum / (double)(end - begin);
}

static void judge_sample(const struct pnet_set_pair *p, int32_t s, const struct pnet_completion *c,
    uint8_t *hit, double *out)
{
    memset(out, 0, PNET_COMPLETION_SUMS * sizeof *out);
    if (p->x.splits[s] == p->x.splits[s + 1] || p->y.splits[s] == p->y.splits[s + 1]) return;
    struct side x = judge(&p->x, &p->y, p->x_near, s, c->at),
                y = judge(&p->y, &p->x, p->y_near, s, c->at);
    out[PNET_COMPLETION_CLOUDS] = 1;
    out[PNET_COMPLETION_L1] = (x.distance + y.distance) / 2;
    out[PNET_COMPLETION_L2] = x.square + y.square;
    out[PNET_COMPLETION_PRECISION] = x.near;
    out[PNET_COMPLETION_RECALL] = y.near;
    out[PNET_COMPLETION_F] = x.near + y.near > 0 ? 2 * x.near * y.near / (x.near + y.near) : 0;
    out[PNET_COMPLETION_COVERED] = covered(p, s, hit);
    if (c->partner) judge_partners(p, s, c->partner, out);
}

size_t pnet_cpu_completion_work(const struct pnet_set_pair *p)
{
    return (size_t)p->x.samples * PNET_COMPLETION_SUMS * sizeof(double) + (size_t)p->y.rows.most;
}

void pnet_cpu_completion(
    const struct pnet_set_pair *p, const struct pnet_completion *c, double *sums, void *work)
{
    double *own = work;
    int32_t samples = p->x.samples;
    uint8_t *hit = (uint8_t *)(own + (int64_t)samples * PNET_COMPLETION_SUMS);
#pragma omp parallel for schedule(dynamic)
    for (int32_t s = 0; s < samples; s++)
        judge_sample(p, s, c, hit, own + (int64_t)s * PNET_COMPLETION_SUMS);
    memset(sums, 0, (size_t)c->classes * PNET_COMPLETION_SUMS * sizeof *sums);
    for (int32_t s = 0; s < samples; s++) {
        int32_t class = c->label ? c->label[s] : 0;
        if (class < 0 || class >= c->classes) continue;
        for (int k = 0; k < PNET_COMPLETION_SUMS; k++)
            sums[(int64_t) class * PNET_COMPLETION_SUMS + k] +=
                own[(int64_t)s * PNET_COMPLETION_SUMS + k];
    }
}
