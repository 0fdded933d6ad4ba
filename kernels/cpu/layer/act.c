#include "kernels/act.h"

#include <math.h>

/* Below this many elements, waking threads costs more than it saves. */
enum { SMALL = 1 << 14 };

void pnet_cpu_act(
    struct pnet_count count, enum pnet_activation act, float slope, const float *x, float *y)
{
    int64_t n = count.most;
    if (act == PNET_ACT_NONE) {
        pnet_cpu_scale(count, 1, x, false, y);
        return;
    }
    float below = act == PNET_ACT_LEAKY ? slope : 0;
    if (below == 0) { /* 0 times -infinity would not be 0 */
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
        for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
        return;
    }
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? below * x[i] : x[i];
}

void pnet_cpu_act_gradient(struct pnet_count count, enum pnet_activation act, float slope,
    const float *y, const float *g, bool add, float *gx)
{
    int64_t n = count.most;
    if (act == PNET_ACT_NONE) {
        pnet_cpu_scale(count, 1, g, add, gx);
        return;
    }
    float below = act == PNET_ACT_LEAKY ? slope : 0;
    if (add) {
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
        for (int64_t i = 0; i < n; i++) gx[i] += y[i] > 0 ? g[i] : below * g[i];
        return;
    }
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
    for (int64_t i = 0; i < n; i++) gx[i] = y[i] > 0 ? g[i] : below * g[i];
}

void pnet_cpu_act_backward(
    struct pnet_count count, enum pnet_activation act, float slope, const float *y, float *g)
{
    if (act != PNET_ACT_NONE) pnet_cpu_act_gradient(count, act, slope, y, g, false, g);
}

static const float root_half = 0.70710678118654752f;  /* 1 / sqrt(2) */
static const float root_2_pi = 0.398942280401432678f; /* 1 / sqrt(2 pi) */

void pnet_cpu_gelu(struct pnet_count count, const float *x, float *y)
{
    int64_t n = count.most;
    /* erfc keeps the relative accuracy of the left tail, where 1 + erf would cancel */
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int64_t i = 0; i < n; i++) y[i] = 0.5f * x[i] * (1 + erff(x[i] * root_half));
}

static float gelu_slope(float x)
{
    return 0.5f * erfcf(-x * root_half) + x * root_2_pi * expf(-0.5f * x * x);
}

void pnet_cpu_gelu_backward(
    struct pnet_count count, const float *x, const float *g, bool add, float *gx)
{
    int64_t n = count.most;
    if (add) {
#pragma omp parallel for schedule(static) if (n > SMALL)
        for (int64_t i = 0; i < n; i++) gx[i] += g[i] * gelu_slope(x[i]);
        return;
    }
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int64_t i = 0; i < n; i++) gx[i] = g[i] * gelu_slope(x[i]);
}

void pnet_cpu_sigmoid(struct pnet_count count, const float *x, float *y)
{
    int64_t n = count.most;
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + expf(-x[i]));
}

void pnet_cpu_sigmoid_backward(
    struct pnet_count count, const float *y, const float *g, bool add, float *gx)
{
    int64_t n = count.most;
    if (add) {
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
        for (int64_t i = 0; i < n; i++) gx[i] += g[i] * y[i] * (1 - y[i]);
        return;
    }
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
    for (int64_t i = 0; i < n; i++) gx[i] = g[i] * y[i] * (1 - y[i]);
}

void pnet_cpu_fill(struct pnet_count count, float value, float *y)
{
    int64_t n = count.most;
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
    for (int64_t i = 0; i < n; i++) y[i] = value;
}

void pnet_cpu_scale(struct pnet_count count, float scale, const float *x, bool add, float *y)
{
    int64_t n = count.most;
    if (add) {
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
        for (int64_t i = 0; i < n; i++) y[i] += scale * x[i];
        return;
    }
    if (x == y && scale == 1) return;
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
    for (int64_t i = 0; i < n; i++) y[i] = scale * x[i];
}

void pnet_cpu_add(struct pnet_count count, const float *a, const float *b, float scale,
    enum pnet_activation act, float slope, float *y)
{
    int64_t n = count.most;
    float below = act == PNET_ACT_NONE ? 1 : act == PNET_ACT_LEAKY ? slope : 0;
    if (below == 0) {
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
        for (int64_t i = 0; i < n; i++) {
            float s = a[i] + scale * b[i];
            y[i] = s < 0 ? 0 : s;
        }
        return;
    }
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
    for (int64_t i = 0; i < n; i++) {
        float s = a[i] + scale * b[i];
        y[i] = s < 0 ? below * s : s;
    }
}

void pnet_cpu_mul(struct pnet_count count, int32_t width, const float *a, const float *b,
    int32_t b_width, bool add, float *y)
{
    int64_t rows = count.most, n = rows * width;
    if (b_width == width && add) {
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
        for (int64_t i = 0; i < n; i++) y[i] += a[i] * b[i];
        return;
    }
    if (b_width == width) {
#pragma omp parallel for simd schedule(static) if (parallel : n > SMALL)
        for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
        return;
    }
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = a + row * width;
        float *q = y + row * width, factor = b[row];
        for (int32_t c = 0; c < width; c++) {
            float v = p[c] * factor;
            q[c] = add ? q[c] + v : v;
        }
    }
}

void pnet_cpu_row_dot(
    struct pnet_count count, int32_t width, const float *a, const float *b, bool add, float *y)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * width > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = a + row * width, *q = b + row * width;
        double sum = 0;
        for (int32_t c = 0; c < width; c++) sum += (double)p[c] * (double)q[c];
        y[row] = add ? y[row] + (float)sum : (float)sum;
    }
}

enum { DRAWS = 64 }; /* elements whose draws are made together */

/* The draws of elements `first` to `first` + DRAWS - 1, four from each block. */
static void draw_units(const struct pnet_rand *rand, int64_t first, float unit[DRAWS])
{
    for (int64_t at = 0; at < DRAWS; at += 4) {
        uint32_t bits[4];
        pnet_philox(rand, (uint64_t)(first + at) / 4, bits);
        for (int k = 0; k < 4; k++) unit[at + k] = (float)(bits[k] >> 8) * 0x1p-24f;
    }
}

void pnet_cpu_dropout(struct pnet_count count, float p, const struct pnet_rand *rand,
    const float *x, bool add, float *y)
{
    int64_t n = count.most;
    float scale = p < 1 ? 1 / (1 - p) : 0;
#pragma omp parallel for schedule(static) if (n > SMALL / 8)
    for (int64_t first = 0; first < n; first += DRAWS) {
        float unit[DRAWS];
        int64_t here = n - first < DRAWS ? n - first : DRAWS;
        draw_units(rand, first, unit);
        for (int64_t i = 0; i < here; i++) {
            float v = unit[i] < p ? 0 : scale * x[first + i];
            y[first + i] = add ? y[first + i] + v : v;
        }
    }
}
