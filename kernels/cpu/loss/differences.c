/* Losses of the differences of two values, element by element: means of d^2, of Huber's function
   and of |d|. */
#include "kernels/loss.h"

#include <math.h>

enum {
    SLICES = 64,  /* stretches of elements summed apart; part of the result's bits */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

enum kind { SQUARE, HUBER, ABSOLUTE };

static int64_t slice_begin(int64_t n, int32_t slice)
{
    return n * slice / SLICES;
}

static inline double loss_of(enum kind kind, double delta, double d)
{
    double size = fabs(d);
    if (kind == SQUARE) return d * d;
    if (kind == ABSOLUTE) return size;
    return size <= delta ? d * d / 2 : delta * (size - delta / 2);
}

/* Of what is not a number it is not a number. */
static inline float slope_of(enum kind kind, float delta, float d)
{
    if (kind == SQUARE) return 2 * d;
    if (kind == ABSOLUTE) return d > 0 ? 1 : d < 0 ? -1 : d;
    return d > delta ? delta : d < -delta ? -delta : d;
}

size_t pnet_cpu_mse_work(void)
{
    return SLICES * sizeof(double);
}

static inline double sum_of(enum kind kind, double delta, int64_t n, const float *x, const float *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += loss_of(kind, delta, (double)x[i] - (double)y[i]);
    return sum;
}

static inline void slopes_of(enum kind kind, float delta, int64_t n, const float *restrict x,
    const float *restrict y, float factor, bool add, float *restrict gx)
{
    if (add) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) gx[i] += factor * slope_of(kind, delta, x[i] - y[i]);
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) gx[i] = factor * slope_of(kind, delta, x[i] - y[i]);
}

/* The loops of each kind by themselves. */
static double slice_loss(enum kind kind, double delta, int64_t n, const float *x, const float *y)
{
    if (kind == SQUARE) return sum_of(SQUARE, delta, n, x, y);
    return kind == HUBER ? sum_of(HUBER, delta, n, x, y) : sum_of(ABSOLUTE, delta, n, x, y);
}

static void slice_slopes(enum kind kind, float delta, int64_t n, const float *x, const float *y,
    float factor, bool add, float *gx)
{
    if (kind == SQUARE)
        slopes_of(SQUARE, delta, n, x, y, factor, add, gx);
    else if (kind == HUBER)
        slopes_of(HUBER, delta, n, x, y, factor, add, gx);
    else
        slopes_of(ABSOLUTE, delta, n, x, y, factor, add, gx);
}

static void mean_loss(enum kind kind, double delta, int64_t n, const float *x, const float *y,
    float *loss, double *part)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        int64_t begin = slice_begin(n, slice), end = slice_begin(n, slice + 1);
        part[slice] = slice_loss(kind, delta, end - begin, x + begin, y + begin);
    }
    double total = 0;
    for (int32_t slice = 0; slice < SLICES; slice++) total += part[slice];
    *loss = n > 0 ? (float)(total / (double)n) : 0;
}

static void mean_loss_backward(enum kind kind, float delta, int64_t n, const float *x,
    const float *y, const float *gloss, bool add, float *gx)
{
    float factor = n > 0 ? (float)((double)*gloss / (double)n) : 0;
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        int64_t begin = slice_begin(n, slice), end = slice_begin(n, slice + 1);
        slice_slopes(kind, delta, end - begin, x + begin, y + begin, factor, add, gx + begin);
    }
}

void pnet_cpu_mse(struct pnet_count n, const float *x, const float *y, float *loss, void *work)
{
    mean_loss(SQUARE, 0, n.most, x, y, loss, work);
}

void pnet_cpu_mse_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx)
{
    mean_loss_backward(SQUARE, 0, n.most, x, y, gloss, add, gx);
}

void pnet_cpu_huber(
    struct pnet_count n, double delta, const float *x, const float *y, float *loss, void *work)
{
    mean_loss(HUBER, delta, n.most, x, y, loss, work);
}

void pnet_cpu_huber_backward(struct pnet_count n, double delta, const float *x, const float *y,
    const float *gloss, bool add, float *gx)
{
    mean_loss_backward(HUBER, (float)delta, n.most, x, y, gloss, add, gx);
}

void pnet_cpu_l1(struct pnet_count n, const float *x, const float *y, float *loss, void *work)
{
    mean_loss(ABSOLUTE, 0, n.most, x, y, loss, work);
}

void pnet_cpu_l1_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx)
{
    mean_loss_backward(ABSOLUTE, 0, n.most, x, y, gloss, add, gx);
}
