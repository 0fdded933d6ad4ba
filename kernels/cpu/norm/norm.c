#include "kernels/norm.h"
#include "kernels/act.h"
#include "kernels/cpu/layer/segment.h"

#include <math.h>

enum { SMALL = 8192 }; /* elements below which threads cost more than they save */

/* The workspace of a norm: two sums and three coefficients for each segment and channel, then what
   the sums need. */
struct norm_work {
    double *sum, *sum_ab; /* [segments, c] */
    float *k1, *k2, *k3;  /* [segments, c] */
    void *rest;
};

static struct norm_work norm_work_of(const struct pnet_norm *n, void *work)
{
    size_t m = (size_t)n->segments.count * (size_t)n->c;
    struct norm_work w = {.sum = work};
    w.sum_ab = w.sum + m;
    double *coefficients = w.sum_ab + m;
    w.k1 = (float *)coefficients;
    w.k2 = w.k1 + m;
    w.k3 = w.k2 + m;
    w.rest = coefficients + 2 * m; /* three floats take less than two doubles, which follow */
    return w;
}

size_t pnet_cpu_norm_work(const struct pnet_norm *n)
{
    size_t m = (size_t)n->segments.count * (size_t)n->c;
    return 4 * m * sizeof(double) + pnet_cpu_segment_sums_work(n->segments, n->c);
}

static int64_t segment_rows(const struct pnet_norm *n, int32_t segment)
{
    return pnet_segment_split(n->segments, segment + 1) - pnet_segment_split(n->segments, segment);
}

struct moments {
    double mean, variance;
};

/* Of one group of channels in one segment, from the sums of its channels and of their squares. */
static struct moments group_moments(
    const struct pnet_norm *n, const struct norm_work *w, int32_t segment, int32_t group)
{
    int32_t per = n->c / n->groups;
    double count = (double)segment_rows(n, segment) * per, sum = 0, squares = 0;
    if (count == 0) return (struct moments){0, 0};
    for (int32_t i = group * per; i < (group + 1) * per; i++) {
        sum += w->sum[(int64_t)segment * n->c + i];
        squares += w->sum_ab[(int64_t)segment * n->c + i];
    }
    double mean = sum / count, variance = squares / count - mean * mean;
    return (struct moments){mean, variance < 0 ? 0 : variance}; /* rounding; a NaN stays one */
}

void pnet_cpu_norm_statistics(
    const struct pnet_norm *n, double eps, float *mean, float *inverse, void *work)
{
    struct norm_work w = norm_work_of(n, work);
    pnet_cpu_segment_sums(n->segments, n->c, n->x, n->x, w.sum, w.sum_ab, w.rest);
    for (int32_t segment = 0; segment < n->segments.count; segment++)
        for (int32_t group = 0; group < n->groups; group++) {
            struct moments m = group_moments(n, &w, segment, group);
            int64_t at = (int64_t)segment * n->groups + group;
            mean[at] = (float)m.mean;
            inverse[at] = (float)(1 / sqrt(m.variance + eps));
        }
}

void pnet_cpu_batchnorm_statistics(const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, void *work)
{
    double rows = (double)segment_rows(n, 0), momentum = running.momentum;
    if (!training || rows <= 1) {
        for (int32_t c = 0; c < n->c; c++) {
            mean[c] = running.mean[c];
            inverse[c] = (float)(1 / sqrt((double)running.var[c] + eps));
        }
        return;
    }
    struct norm_work w = norm_work_of(n, work);
    pnet_cpu_segment_sums(n->segments, n->c, n->x, n->x, w.sum, w.sum_ab, w.rest);
    for (int32_t c = 0; c < n->c; c++) {
        struct moments m = group_moments(n, &w, 0, c);
        double unbiased = m.variance * rows / (rows - 1);
        mean[c] = (float)m.mean;
        inverse[c] = (float)(1 / sqrt(m.variance + eps));
        running.mean[c] =
            (float)((1 - momentum) * (double)running.mean[c] + momentum * (double)mean[c]);
        running.var[c] = (float)((1 - momentum) * (double)running.var[c] + momentum * unbiased);
    }
}

/* y = (x - k2) * k1 + bias over the rows of one block. */
static void forward_rows(const struct pnet_norm *n, int64_t begin, int64_t end, const float *k1,
    const float *k2, float *y)
{
    int32_t c = n->c;
    float below = n->act == PNET_ACT_NONE ? 1 : n->act == PNET_ACT_LEAKY ? n->slope : 0;
    for (int64_t row = begin; row < end; row++) {
        const float *p = n->x + row * c, *r = n->sum ? n->added + row * c : NULL;
        float *q = y + row * c;
        if (r) {
#pragma omp simd
            for (int32_t i = 0; i < c; i++) {
                float v = (p[i] - k2[i]) * k1[i] + n->bias[i] + r[i];
                q[i] = v < 0 ? below * v : v;
            }
        } else if (n->act == PNET_ACT_NONE) {
#pragma omp simd
            for (int32_t i = 0; i < c; i++) q[i] = (p[i] - k2[i]) * k1[i] + n->bias[i];
        } else {
#pragma omp simd
            for (int32_t i = 0; i < c; i++) {
                float v = (p[i] - k2[i]) * k1[i] + n->bias[i];
                q[i] = v < 0 ? below * v : v;
            }
        }
    }
}

void pnet_cpu_norm_forward(
    const struct pnet_norm *n, const float *mean, const float *inverse, float *y, void *work)
{
    struct norm_work w = norm_work_of(n, work);
    struct pnet_segments s = n->segments;
    int32_t c = n->c, per = c / n->groups;
    for (int32_t segment = 0; segment < s.count; segment++)
        for (int32_t i = 0; i < c; i++) {
            int64_t at = (int64_t)segment * n->groups + i / per;
            w.k1[(int64_t)segment * c + i] = inverse[at] * n->weight[i];
            w.k2[(int64_t)segment * c + i] = mean[at];
        }
    int64_t blocks = pnet_segment_blocks(s.rows);
#pragma omp parallel for schedule(static) if (s.rows * c > SMALL)
    for (int64_t block = 0; block < blocks; block++) {
        struct pnet_piece p = pnet_piece_first(s, block);
        for (; p.begin < p.last; p = pnet_piece_next(s, p))
            forward_rows(
                n, p.begin, p.end, w.k1 + (int64_t)p.segment * c, w.k2 + (int64_t)p.segment * c, y);
    }
}

void pnet_cpu_norm(
    const struct pnet_norm *n, double eps, float *mean, float *inverse, float *y, void *work)
{
    pnet_cpu_norm_statistics(n, eps, mean, inverse, work);
    pnet_cpu_norm_forward(n, mean, inverse, y, work);
}

void pnet_cpu_batchnorm(const struct pnet_norm *n, double eps, bool training,
    struct pnet_running running, float *mean, float *inverse, float *y, void *work)
{
    pnet_cpu_batchnorm_statistics(n, eps, training, running, mean, inverse, work);
    pnet_cpu_norm_forward(n, mean, inverse, y, work);
}

/* With y = x^ weight + bias, x^ = (x - mean) inverse, and g = gout:
     gweight = sum of g x^,  gbias = sum of g,
     gx = inverse (g weight - A - x^ B), A and B the means of g weight and g weight x^ over the
   group. Turns the sums of g and g x into the sums of g and g x^, and A and B into coefficients of gx
   = k1 g - k2 (x - mean) - k3. */
static void backward_coefficients(const struct pnet_norm *n, const float *mean,
    const float *inverse, int64_t constant_rows, const struct norm_work *w)
{
    int32_t c = n->c, per = c / n->groups;
    for (int32_t segment = 0; segment < n->segments.count; segment++) {
        bool constant = segment_rows(n, segment) <= constant_rows;
        double count = constant ? 1 : (double)segment_rows(n, segment) * per;
        for (int32_t group = 0; group < n->groups; group++) {
            int64_t at = (int64_t)segment * n->groups + group;
            double m = (double)mean[at], v = (double)inverse[at], a = 0, b = 0;
            for (int32_t i = group * per; i < (group + 1) * per; i++) {
                int64_t k = (int64_t)segment * c + i;
                w->sum_ab[k] = (w->sum_ab[k] - m * w->sum[k]) * v;
                a += w->sum[k] * (double)n->weight[i];
                b += w->sum_ab[k] * (double)n->weight[i];
            }
            if (constant) a = b = 0;
            for (int32_t i = group * per; i < (group + 1) * per; i++) {
                int64_t k = (int64_t)segment * c + i;
                w->k1[k] = (float)(v * (double)n->weight[i]);
                w->k2[k] = (float)(v * v * b / count);
                w->k3[k] = (float)(v * a / count);
            }
        }
    }
}

static void add_segments(
    const struct pnet_norm *n, const double *sum, bool add, float *restrict result)
{
    for (int32_t i = 0; i < n->c; i++) {
        double total = 0;
        for (int32_t segment = 0; segment < n->segments.count; segment++)
            total += sum[(int64_t)segment * n->c + i];
        result[i] = add ? result[i] + (float)total : (float)total;
    }
}

static void backward_rows(const struct pnet_norm *n, const struct pnet_norm_gradient *g,
    int64_t begin, int64_t end, const float *mean, int32_t per, const struct norm_work *w,
    int64_t segment)
{
    int32_t c = n->c;
    const float *k1 = w->k1 + segment * c, *k2 = w->k2 + segment * c, *k3 = w->k3 + segment * c;
    const float *m = mean + segment * n->groups;
    for (int64_t row = begin; row < end; row++) {
        const float *p = n->x + row * c, *u = g->gout + row * c;
        float *q = g->gx + row * c;
        if (per == 1 && !g->gx_add) {
#pragma omp simd
            for (int32_t i = 0; i < c; i++) q[i] = k1[i] * u[i] - k2[i] * (p[i] - m[i]) - k3[i];
        } else {
            for (int32_t i = 0; i < c; i++) {
                float v = k1[i] * u[i] - k2[i] * (p[i] - m[i / per]) - k3[i];
                q[i] = g->gx_add ? q[i] + v : v;
            }
        }
    }
}

void pnet_cpu_norm_backward(const struct pnet_norm *n, const float *mean, const float *inverse,
    const struct pnet_norm_gradient *g, void *work)
{
    struct norm_work w = norm_work_of(n, work);
    struct pnet_segments s = n->segments;
    int32_t c = n->c, per = c / n->groups;
    struct pnet_count all = pnet_count(s.rows * c);
    if (g->out) pnet_cpu_act_backward(all, n->act, n->slope, g->out, g->gout);
    if (g->gadded) pnet_cpu_scale(all, 1, g->gout, g->gadded_add, g->gadded);
    pnet_cpu_segment_sums(s, c, g->gout, n->x, w.sum, w.sum_ab, w.rest);
    backward_coefficients(n, mean, inverse, g->constant_rows, &w);
    if (g->gweight) add_segments(n, w.sum_ab, g->gweight_add, g->gweight);
    if (g->gbias) add_segments(n, w.sum, g->gbias_add, g->gbias);
    if (!g->gx) return;
    int64_t blocks = pnet_segment_blocks(s.rows);
#pragma omp parallel for schedule(static) if (s.rows * c > SMALL)
    for (int64_t block = 0; block < blocks; block++) {
        struct pnet_piece p = pnet_piece_first(s, block);
        for (; p.begin < p.last; p = pnet_piece_next(s, p))
            backward_rows(n, g, p.begin, p.end, mean, per, &w, p.segment);
    }
}
