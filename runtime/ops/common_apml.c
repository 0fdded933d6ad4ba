#include "runtime/ops/common_apml.h"

#include "runtime/ops/common.h"

#include <math.h>

bool pnet_op_apml_rule(struct pnet_rule *r, const char *name)
{
    if (!pnet_op_sets_rule(r, name)) return false;
    if (!(r->attr[PNET_APML_P].r > 0.5 && r->attr[PNET_APML_P].r < 1))
        return pnet_rule_fail(r, PNET_APML_P, "p=%g of %s() does not lie between 0.5 and 1",
            r->attr[PNET_APML_P].r, name);
    return true;
}

struct pnet_apml pnet_op_apml_search(const struct pnet_exec *x, int most)
{
    return (struct pnet_apml){.sets = pnet_op_sets(x),
        .p = x->attr[PNET_APML_P].r,
        .tau = x->attr[PNET_APML_TAU].r,
        .most = (int32_t)x->attr[most].i,
        .entries = (int32_t)x->attr[most + 1].i};
}

float pnet_op_apml_distance(const struct pnet_apml_dense *d, int side, int64_t i, int64_t j)
{
    const double *p = (const double *)d->x->in[side].data + 3 * i,
                 *q = (const double *)d->x->in[1 - side].data + 3 * j;
    volatile float s[3]; /* rounded each */
    for (int k = 0; k < 3; k++) {
        s[k] = (float)p[k] - (float)q[k];
        s[k] = s[k] * s[k];
    }
    s[0] = s[0] + s[1];
    s[0] = s[0] + s[2];
    return sqrtf(s[0]);
}

struct pnet_apml_row pnet_op_apml_row(
    const struct pnet_apml_dense *d, int side, int64_t i, int64_t from, int64_t to)
{
    struct pnet_apml_row r = {.a = INFINITY};
    float second = INFINITY;
    for (int64_t j = from; j < to; j++) {
        float at = pnet_op_apml_distance(d, side, i, j);
        second = fminf(second, fmaxf(r.a, at));
        r.a = fminf(r.a, at);
    }
    r.g = second - r.a > 1e-8f ? second - r.a : 1e-8f;
    r.slope = log((double)(to - from - 1) * d->a.p / (1 - d->a.p));
    r.radius = (float)((double)r.a + (double)(float)(log(1 / d->a.tau) / r.slope) * (double)r.g);
    if (to - from == 1) r.radius = r.a;
    for (int64_t j = from; j < to; j++) r.count += pnet_op_apml_distance(d, side, i, j) <= r.radius;
    return r;
}

void pnet_op_apml_counts(
    const struct pnet_apml_dense *d, int side, int32_t limit, double *sum, double *kept)
{
    const struct pnet_tensor *own = &d->x->in[side], *other = &d->x->in[1 - side];
    for (int32_t s = 0; s < own->samples; s++)
        for (int64_t i = own->row_splits[s]; i < own->row_splits[s + 1]; i++) {
            if (other->row_splits[s] == other->row_splits[s + 1]) continue;
            int64_t count =
                pnet_op_apml_row(d, side, i, other->row_splits[s], other->row_splits[s + 1]).count;
            *kept += (double)(count < limit ? count : limit);
            if (!sum) continue;
            sum[PNET_APML_ROWS]++;
            sum[PNET_APML_COUNT] += (double)count;
            sum[PNET_APML_CUT] += count > limit;
            sum[PNET_APML_BIN + pnet_apml_bin(count)]++;
        }
}

struct pnet_apml_dense pnet_op_apml_dense(const struct pnet_exec *x, int most)
{
    struct pnet_apml_dense d = {.x = x, .a = pnet_op_apml_search(x, most)};
    static const int32_t below[] = {32, 16, 12, 8, 6, 4, 2};
    for (int side = 0; side < 2; side++) {
        double room = (double)(x->in[side].rows * d.a.entries);
        d.limit[side] = d.a.most;
        for (int k = 0; k < 7; k++) {
            double kept = 0;
            pnet_op_apml_counts(&d, side, d.limit[side], NULL, &kept);
            if (kept <= room) break;
            if (below[k] < d.limit[side]) d.limit[side] = below[k];
        }
    }
    return d;
}
