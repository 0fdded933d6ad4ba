#include "kernels/loss.h"
#include "kernels/cpu/loss/targets.h"

#include <math.h>
#include <string.h>

enum {
    SLICES = 64,  /* stretches of rows summed apart; part of the result's bits */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

static int64_t slice_begin(int64_t n, int32_t slice)
{
    return n * slice / SLICES;
}

/* log of the sum of exp(x[c]). */
static double log_sum_exp(int32_t classes, const float *x)
{
    float top = x[0];
    double sum = 0;
    for (int32_t c = 1; c < classes; c++) top = x[c] > top ? x[c] : top;
    for (int32_t c = 0; c < classes; c++) sum += (double)expf(x[c] - top);
    return (double)top + log(sum);
}

static double weight_of(const struct pnet_cross_entropy *e, int32_t c)
{
    return e->weight ? e->weight[c] : 1;
}

/* Of one class in one row, while its gradient is made. */
struct tally {
    int32_t count; /* labels of the class */
    float power;   /* exp(x - largest x) */
};

size_t pnet_cpu_cross_entropy_work(const struct pnet_cross_entropy *e)
{
    size_t sums = (size_t)SLICES * 2 * sizeof(double);
    size_t rows = (size_t)SLICES * (size_t)e->targets.classes * sizeof(struct tally);
    return sums > rows ? sums : rows;
}

/* Adds one row's share to sum[0], the loss times its divisor, and to sum[1], the divisor. */
static void cross_entropy_row(const struct pnet_cross_entropy *e, int64_t row, double sum[2])
{
    const struct pnet_targets *t = &e->targets;
    const float *x = e->x + row * t->classes;
    double lse = 0, hard = 0, divisor = 0;
    int64_t valid = 0;
    for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++) {
        int32_t label = pnet_targets_label(t, at);
        if (label < 0) continue;
        if (valid++ == 0) lse = log_sum_exp(t->classes, x);
        hard += weight_of(e, label) * (lse - (double)x[label]);
        divisor += weight_of(e, label);
    }
    double soft = 0;
    if (valid && e->smoothing > 0)
        for (int32_t c = 0; c < t->classes; c++) soft += weight_of(e, c) * (lse - (double)x[c]);
    sum[0] += (1 - e->smoothing) * hard + e->smoothing / t->classes * soft * (double)valid;
    sum[1] += divisor;
}

void pnet_cpu_cross_entropy(
    const struct pnet_cross_entropy *e, float *loss, float *divisor, void *work)
{
    double *part = work;
    int64_t rows = e->targets.rows.most;
#pragma omp parallel for schedule(dynamic) if (e->targets.label_rows.most > SMALL / 16)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        double sum[2] = {0, 0};
        for (int64_t row = slice_begin(rows, slice); row < slice_begin(rows, slice + 1); row++)
            cross_entropy_row(e, row, sum);
        part[2 * slice] = sum[0];
        part[2 * slice + 1] = sum[1];
    }
    double total = 0, weight = 0;
    for (int32_t slice = 0; slice < SLICES; slice++) {
        total += part[2 * slice];
        weight += part[2 * slice + 1];
    }
    *loss = weight > 0 ? (float)(total / weight) : 0;
    if (divisor) *divisor = (float)weight;
}

/* gx of one row. All counts in `tally` [classes] are 0 before and after. */
static void cross_entropy_row_backward(const struct pnet_cross_entropy *e, int64_t row,
    double all_weights, double factor, bool add, float *gx, struct tally *tally)
{
    const struct pnet_targets *t = &e->targets;
    const float *x = e->x + row * t->classes;
    int64_t valid = 0;
    double hard = 0, sum = 0;
    for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++) {
        int32_t label = pnet_targets_label(t, at);
        if (label < 0) continue;
        tally[label].count++;
        valid++;
        hard += weight_of(e, label);
    }
    if (!valid) {
        for (int32_t c = 0; !add && c < t->classes; c++) gx[c] = 0;
        return;
    }
    float top = x[0];
    for (int32_t c = 1; c < t->classes; c++) top = x[c] > top ? x[c] : top;
    for (int32_t c = 0; c < t->classes; c++) {
        tally[c].power = expf(x[c] - top);
        sum += (double)tally[c].power;
    }
    double sharp = (1 - e->smoothing) * factor;
    double soft = e->smoothing / t->classes * (double)valid * factor;
    double of_power = (sharp * hard + soft * all_weights) / sum;
    for (int32_t c = 0; c < t->classes; c++) {
        double v = of_power * (double)tally[c].power;
        v -= (sharp * tally[c].count + soft) * weight_of(e, c);
        gx[c] = (add ? gx[c] : 0) + (float)v;
        tally[c].count = 0;
    }
}

void pnet_cpu_cross_entropy_backward(const struct pnet_cross_entropy *e, const float *divisor,
    const float *gloss, bool add, float *gx, void *work)
{
    int64_t rows = e->targets.rows.most;
    int32_t classes = e->targets.classes;
    struct tally *tallies = work;
    double all_weights = 0, factor = *divisor > 0 ? (double)*gloss / (double)*divisor : 0;
    for (int32_t c = 0; c < classes; c++) all_weights += weight_of(e, c);
#pragma omp parallel for schedule(dynamic) if (rows * classes > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        struct tally *tally = tallies + (int64_t)slice * classes;
        for (int32_t c = 0; c < classes; c++) tally[c].count = 0;
        for (int64_t row = slice_begin(rows, slice); row < slice_begin(rows, slice + 1); row++)
            cross_entropy_row_backward(e, row, all_weights, factor, add, gx + row * classes, tally);
    }
}

void pnet_cpu_best_class(struct pnet_count count, int32_t classes, const float *x, int32_t *best)
{
    int64_t rows = count.most;
#pragma omp parallel for schedule(static) if (rows * classes > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * classes;
        int32_t at = 0;
        for (int32_t c = 1; c < classes; c++)
            if (p[c] > p[at]) at = c;
        best[row] = at;
    }
}

size_t pnet_cpu_correct_work(void)
{
    return (size_t)SLICES * 2 * sizeof(int64_t);
}

static void join_correct(const int64_t *part, double correct[2])
{
    correct[0] = correct[1] = 0;
    for (int32_t slice = 0; slice < SLICES; slice++) {
        correct[0] += (double)part[2 * slice];
        correct[1] += (double)part[2 * slice + 1];
    }
}

void pnet_cpu_correct(
    const struct pnet_targets *t, const int32_t *best, double correct[2], void *work)
{
    int64_t *part = work, rows = t->rows.most;
#pragma omp parallel for schedule(dynamic) if (t->label_rows.most > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        int64_t agree = 0, all = 0;
        for (int64_t row = slice_begin(rows, slice); row < slice_begin(rows, slice + 1); row++)
            for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++) {
                int32_t label = pnet_targets_label(t, at);
                agree += label == best[row];
                all += label >= 0;
            }
        part[2 * slice] = agree;
        part[2 * slice + 1] = all;
    }
    join_correct(part, correct);
}

/* Is class c before `other` among scores from the largest on? */
static bool comes_before(const float *x, int32_t c, int32_t other)
{
    if (isnan(x[c])) return c == 0 ? other != 0 : isnan(x[other]) && other != 0 && c < other;
    if (isnan(x[other])) return other != 0;
    return x[c] > x[other] || (x[c] == x[other] && c < other);
}

void pnet_cpu_top_k(
    const struct pnet_targets *t, int32_t k, const float *x, double correct[2], void *work)
{
    int64_t *part = work, rows = t->rows.most;
#pragma omp parallel for schedule(dynamic) if (t->label_rows.most * t->classes > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        int64_t agree = 0, all = 0;
        for (int64_t row = slice_begin(rows, slice); row < slice_begin(rows, slice + 1); row++)
            for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++) {
                int32_t label = pnet_targets_label(t, at), before = 0;
                if (label < 0) continue;
                for (int32_t c = 0; c < t->classes; c++)
                    before += comes_before(x + row * t->classes, c, label);
                agree += before < k;
                all++;
            }
        part[2 * slice] = agree;
        part[2 * slice + 1] = all;
    }
    join_correct(part, correct);
}

/* Counts of many classes are made in fewer stretches, so that their matrices stay small. */
static int32_t confusion_slices(int32_t classes)
{
    enum { CELLS = 1 << 16, MOST = 16 };
    int64_t fit = CELLS / ((int64_t)classes * classes);
    return fit < 1 ? 1 : fit > MOST ? MOST : (int32_t)fit;
}

size_t pnet_cpu_confusion_work(int32_t classes)
{
    return (size_t)confusion_slices(classes) * (size_t)classes * (size_t)classes * sizeof(int64_t);
}

void pnet_cpu_confusion(
    const struct pnet_targets *t, const int32_t *best, double *matrix, void *work)
{
    int64_t *counts = work, cells = (int64_t)t->classes * t->classes;
    int32_t slices = confusion_slices(t->classes);
#pragma omp parallel for schedule(dynamic) if (t->label_rows.most > SMALL)
    for (int32_t slice = 0; slice < slices; slice++) {
        int64_t *own = counts + slice * cells;
        memset(own, 0, (size_t)cells * sizeof *own);
        int64_t end = t->rows.most * (slice + 1) / slices;
        for (int64_t row = t->rows.most * slice / slices; row < end; row++)
            for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++) {
                int32_t label = pnet_targets_label(t, at);
                if (label >= 0) own[(int64_t)label * t->classes + best[row]]++;
            }
    }
    for (int64_t cell = 0; cell < cells; cell++) {
        int64_t sum = 0;
        for (int32_t slice = 0; slice < slices; slice++) sum += counts[slice * cells + cell];
        matrix[cell] = (double)sum;
    }
}
