/* Focal loss. */
#include "kernels/loss.h"
#include "kernels/cpu/loss/targets.h"

enum {
    SLICES = 64,  /* stretches of rows summed apart; part of the result's bits */
    SMALL = 8192, /* elements below which threads cost more than they save */
};

static int64_t slice_begin(int64_t n, int32_t slice)
{
    return n * slice / SLICES;
}

static double weight_of(const struct pnet_focal *f, int32_t c)
{
    return f->weight ? f->weight[c] : 1;
}

/* Of one class in one row. */
struct tally {
    int64_t count; /* labels of the class */
    double own;    /* s[l] of focal_row_backward, summed over them */
};

/* A class's share of the softmax: p, 1 - p (`others`), and -log p. */
struct share {
    double p, others, nll;
};

static struct share share_of(const struct pnet_soft_row *s, const float *x, int32_t c)
{
    double total = 1 + s->rest, e = (double)expf(x[c] - s->top);
    /* if the class is not the best one, the others include the best one, whose e is 1 */
    double others = c == s->best ? s->rest : total - e;
    return (struct share){
        e / total, others / total, (double)s->top - (double)x[c] + log1p(s->rest)};
}

/* Counts the labels of a row. All counts are 0 before. Returns how many there are. */
static int64_t count_labels(const struct pnet_targets *t, int64_t row, struct tally *tally)
{
    int64_t valid = 0;
    for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++) {
        int32_t label = pnet_targets_label(t, at);
        if (label < 0) continue;
        tally[label].count++;
        valid++;
    }
    return valid;
}

size_t pnet_cpu_focal_work(const struct pnet_focal *f)
{
    return (size_t)SLICES *
           (2 * sizeof(double) + (size_t)f->targets.classes * sizeof(struct tally));
}

/* Adds one row's share to sum[0], the loss times its divisor, and to sum[1], the divisor. */
static void focal_row(const struct pnet_focal *f, int64_t row, struct tally *tally, double sum[2])
{
    const float *x = f->x + row * f->targets.classes;
    if (!count_labels(&f->targets, row, tally)) return;
    struct pnet_soft_row s = pnet_soft_row(f->targets.classes, x);
    for (int32_t c = 0; c < f->targets.classes; c++) {
        if (!tally[c].count) continue;
        struct share h = share_of(&s, x, c);
        double weight = weight_of(f, c) * (double)tally[c].count;
        sum[0] += weight * pow(h.others, f->gamma) * h.nll;
        sum[1] += weight;
        tally[c].count = 0;
    }
}

void pnet_cpu_focal(const struct pnet_focal *f, float *loss, float *divisor, void *work)
{
    double *part = work;
    struct tally *tallies = (struct tally *)(part + 2 * SLICES);
    int64_t rows = f->targets.rows.most;
#pragma omp parallel for schedule(dynamic) if (f->targets.label_rows.most > SMALL / 16)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        struct tally *tally = tallies + (int64_t)slice * f->targets.classes;
        double sum[2] = {0, 0};
        for (int32_t c = 0; c < f->targets.classes; c++) tally[c].count = 0;
        for (int64_t row = slice_begin(rows, slice); row < slice_begin(rows, slice + 1); row++)
            focal_row(f, row, tally, sum);
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

/* gx of one row. With L(l) = w[l] (1 - p)^gamma nll, p = p[l], the derivative by x[c] is
   s[l] ([c = l] - p[c]), s[l] = -w[l] (1 - p)^gamma (1 + gamma p nll / (1 - p)), where the quotient
   nears 1 as 1 - p nears 0. All counts in `tally` are 0 before and after. */
static void focal_row_backward(const struct pnet_focal *f, int64_t row, double factor, bool add,
    float *gx, struct tally *tally)
{
    int32_t classes = f->targets.classes;
    const float *x = f->x + row * classes;
    int64_t valid = count_labels(&f->targets, row, tally);
    if (!valid) {
        for (int32_t c = 0; !add && c < classes; c++) gx[c] = 0;
        return;
    }
    struct pnet_soft_row s = pnet_soft_row(classes, x);
    double sum = 0;
    for (int32_t c = 0; c < classes; c++) {
        tally[c].own = 0;
        if (!tally[c].count) continue;
        struct share h = share_of(&s, x, c);
        double quotient = h.others > 0 ? h.nll / h.others : 1;
        tally[c].own = -weight_of(f, c) * (double)tally[c].count * pow(h.others, f->gamma) *
                       (1 + f->gamma * h.p * quotient);
        sum += tally[c].own;
    }
    for (int32_t c = 0; c < classes; c++) {
        struct share h = share_of(&s, x, c);
        double of_others = tally[c].count == valid ? 0 : sum - tally[c].own;
        float v = (float)(factor * (tally[c].own * h.others - of_others * h.p));
        gx[c] = add ? gx[c] + v : v;
        tally[c].count = 0;
    }
}

void pnet_cpu_focal_backward(const struct pnet_focal *f, const float *divisor, const float *gloss,
    bool add, float *gx, void *work)
{
    int64_t rows = f->targets.rows.most;
    int32_t classes = f->targets.classes;
    struct tally *tallies = work;
    double factor = *divisor > 0 ? (double)*gloss / (double)*divisor : 0;
#pragma omp parallel for schedule(dynamic) if (rows * classes > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        struct tally *tally = tallies + (int64_t)slice * classes;
        for (int32_t c = 0; c < classes; c++) tally[c].count = 0;
        for (int64_t row = slice_begin(rows, slice); row < slice_begin(rows, slice + 1); row++)
            focal_row_backward(f, row, factor, add, gx + row * classes, tally);
    }
}
