/* Normalisations of single rows: layer norm, l2 norm, softmax. */
#include "kernels/norm.h"

#include <math.h>

enum {
    SLICES = 64,  /* stretches of rows summed apart; part of the result's bits */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

struct moments {
    float mean, inverse;
};

static struct moments row_moments(int32_t c, double eps, const float *x)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < c; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    double mean = sum / c, variance = squares / c - mean * mean;
    if (variance < 0) variance = 0;
    return (struct moments){(float)mean, (float)(1 / sqrt(variance + eps))};
}

void pnet_cpu_layernorm(struct pnet_count count, int32_t c, double eps, const float *x,
    const float *weight, const float *bias, enum pnet_activation act, float slope, float *y)
{
    int64_t rows = count.most;
    float below = act == PNET_ACT_NONE ? 1 : act == PNET_ACT_LEAKY ? slope : 0;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * c;
        float *q = y + row * c;
        struct moments m = row_moments(c, eps, p);
        for (int32_t i = 0; i < c; i++) {
            float v = (p[i] - m.mean) * m.inverse * weight[i] + bias[i];
            q[i] = v < 0 ? below * v : v;
        }
    }
}

size_t pnet_cpu_layernorm_backward_work(struct pnet_count count, int32_t c)
{
    return count.most > 0 ? (size_t)SLICES * 2 * (size_t)c * sizeof(double) : 0;
}

/* gx of one row, as in pnet_cpu_norm_backward; adds its share of gweight and gbias to the sums. */
static void layernorm_row(int32_t c, double eps, const float *x, const float *weight,
    const float *gout, bool add, float *gx, double *sum_weight, double *sum_bias)
{
    struct moments m = row_moments(c, eps, x);
    double a = 0, b = 0;
    for (int32_t i = 0; i < c; i++) {
        float unit = (x[i] - m.mean) * m.inverse;
        double g = (double)gout[i];
        sum_weight[i] += g * (double)unit;
        sum_bias[i] += g;
        a += g * (double)weight[i];
        b += g * (double)weight[i] * (double)unit;
    }
    if (!gx) return;
    float mean_a = (float)(a / c), mean_b = (float)(b / c);
    for (int32_t i = 0; i < c; i++) {
        float unit = (x[i] - m.mean) * m.inverse;
        float v = m.inverse * (gout[i] * weight[i] - mean_a - unit * mean_b);
        gx[i] = add ? gx[i] + v : v;
    }
}

void pnet_cpu_layernorm_backward(struct pnet_count count, int32_t c, double eps, const float *x,
    const float *weight, const struct pnet_norm_gradient *g, void *work)
{
    int64_t rows = count.most;
    double *part = work; /* [SLICES, 2, c] */
    int32_t slices = rows > 0 ? SLICES : 0;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int32_t slice = 0; slice < slices; slice++) {
        double *sum = part + (int64_t)slice * 2 * c;
        for (int32_t i = 0; i < 2 * c; i++) sum[i] = 0;
        for (int64_t row = rows * slice / SLICES; row < rows * (slice + 1) / SLICES; row++)
            layernorm_row(c, eps, x + row * c, weight, g->gout + row * c, g->gx_add,
                g->gx ? g->gx + row * c : NULL, sum, sum + c);
    }
    for (int32_t i = 0; i < c; i++) {
        double sum_weight = 0, sum_bias = 0;
        for (int32_t slice = 0; slice < slices; slice++) {
            sum_weight += part[(int64_t)slice * 2 * c + i];
            sum_bias += part[(int64_t)slice * 2 * c + c + i];
        }
        if (g->gweight) g->gweight[i] = (g->gweight_add ? g->gweight[i] : 0) + (float)sum_weight;
        if (g->gbias) g->gbias[i] = (g->gbias_add ? g->gbias[i] : 0) + (float)sum_bias;
    }
}

static double row_length(int32_t c, const float *x)
{
    double squares = 0;
    for (int32_t i = 0; i < c; i++) squares += (double)x[i] * (double)x[i];
    return sqrt(squares);
}

void pnet_cpu_l2norm(struct pnet_count count, int32_t c, double eps, const float *x, float *y)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * c;
        float *q = y + row * c;
        double length = row_length(c, p);
        double factor = 1 / (length < eps ? eps : length);
        for (int32_t i = 0; i < c; i++) q[i] = (float)((double)p[i] * factor);
    }
}

/* gx = (g - y (y . g)) / |x|; below eps the divisor is constant: gx = g / eps. */
void pnet_cpu_l2norm_backward(struct pnet_count count, int32_t c, double eps, const float *x,
    const float *g, bool add, float *gx)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * c, *u = g + row * c;
        float *q = gx + row * c;
        double length = row_length(c, p), dot = 0;
        bool constant = length < eps;
        double factor = 1 / (constant ? eps : length);
        if (!constant)
            for (int32_t i = 0; i < c; i++) dot += (double)p[i] * (double)u[i];
        dot *= factor * factor;
        for (int32_t i = 0; i < c; i++) {
            float v = (float)(((double)u[i] - (double)p[i] * dot) * factor);
            q[i] = add ? q[i] + v : v;
        }
    }
}

void pnet_cpu_softmax(struct pnet_count count, int32_t c, const float *x, float *y)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL / 8)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * c;
        float *q = y + row * c, top = p[0];
        double sum = 0;
        for (int32_t i = 1; i < c; i++) top = p[i] > top ? p[i] : top;
        for (int32_t i = 0; i < c; i++) {
            q[i] = expf(p[i] - top);
            sum += (double)q[i];
        }
        float factor = (float)(1 / sum);
        for (int32_t i = 0; i < c; i++) q[i] *= factor;
    }
}

void pnet_cpu_softmax_backward(
    struct pnet_count count, int32_t c, const float *y, const float *g, bool add, float *gx)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * c > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = y + row * c, *u = g + row * c;
        float *q = gx + row * c;
        double sum = 0;
        for (int32_t i = 0; i < c; i++) sum += (double)p[i] * (double)u[i];
        float dot = (float)sum;
        for (int32_t i = 0; i < c; i++) {
            float v = p[i] * (u[i] - dot);
            q[i] = add ? q[i] + v : v;
        }
    }
}
