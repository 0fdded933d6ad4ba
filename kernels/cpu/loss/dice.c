/* Soft Dice loss. */
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

/* For one class: sums over a slice, and the labels and the probability of the row at hand. */
struct tally {
    double hits, mass;
    int64_t labels;
    int64_t count; /* labels in the row */
    double p;
};

size_t pnet_cpu_dice_work(const struct pnet_dice *d)
{
    return (size_t)SLICES * (size_t)d->targets.classes * sizeof(struct tally);
}

/* Counts the labels of a row, and forms the softmax where there are any. Returns how many. */
static int64_t take_row(const struct pnet_dice *d, int64_t row, struct tally *tally)
{
    const struct pnet_targets *t = &d->targets;
    const float *x = d->x + row * t->classes;
    int64_t valid = 0;
    for (int32_t c = 0; c < t->classes; c++) tally[c].count = 0;
    for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++) {
        int32_t label = pnet_targets_label(t, at);
        if (label < 0) continue;
        tally[label].count++;
        valid++;
    }
    if (!valid) return 0;
    struct pnet_soft_row s = pnet_soft_row(t->classes, x);
    for (int32_t c = 0; c < t->classes; c++) tally[c].p = (double)expf(x[c] - s.top) / (1 + s.rest);
    return valid;
}

static void add_slice(const struct pnet_dice *d, int64_t begin, int64_t end, struct tally *tally)
{
    for (int32_t c = 0; c < d->targets.classes; c++) tally[c] = (struct tally){0};
    for (int64_t row = begin; row < end; row++) {
        double valid = (double)take_row(d, row, tally);
        if (valid == 0) continue;
        for (int32_t c = 0; c < d->targets.classes; c++) {
            double p = tally[c].p;
            tally[c].hits += (double)tally[c].count * p;
            tally[c].mass += valid * (d->square ? p * p : p);
            tally[c].labels += tally[c].count;
        }
    }
}

void pnet_cpu_dice(const struct pnet_dice *d, float *loss, double *slope, void *work)
{
    struct tally *tallies = work;
    int64_t rows = d->targets.rows.most;
    int32_t classes = d->targets.classes, present = 0;
#pragma omp parallel for schedule(dynamic) if (rows * classes > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++)
        add_slice(d, slice_begin(rows, slice), slice_begin(rows, slice + 1),
            tallies + (int64_t)slice * classes);
    double sum = 0;
    for (int32_t c = 0; c < classes; c++) {
        struct tally *all = &tallies[c];
        for (int32_t slice = 1; slice < SLICES; slice++) {
            const struct tally *part = &tallies[(int64_t)slice * classes + c];
            all->hits += part->hits;
            all->mass += part->mass;
            all->labels += part->labels;
        }
        if (!all->labels) continue;
        double both = all->mass + (double)all->labels;
        sum += (both - 2 * all->hits) / both;
        present++;
    }
    *loss = present ? (float)(sum / present) : 0;
    for (int32_t c = 0; slope && c < classes; c++) {
        const struct tally *all = &tallies[c];
        double both = all->mass + (double)all->labels;
        slope[c] = all->labels ? -2 / (both * present) : 0;
        slope[classes + c] = all->labels ? 2 * all->hits / (both * both * present) : 0;
    }
}

/* gx = p (u - sum of p u) with u the loss's derivative by p, summed over the labels of the row. */
static void dice_row_backward(const struct pnet_dice *d, int64_t row, const double *slope,
    double factor, bool add, float *gx, struct tally *tally)
{
    int32_t classes = d->targets.classes;
    double valid = (double)take_row(d, row, tally), mean = 0;
    if (valid == 0) {
        for (int32_t c = 0; !add && c < classes; c++) gx[c] = 0;
        return;
    }
    for (int32_t c = 0; c < classes; c++) {
        double p = tally[c].p, by_mass = slope[classes + c] * (d->square ? 2 * p : 1);
        /* from here on `hits` is u */
        tally[c].hits = (double)tally[c].count * slope[c] + valid * by_mass;
        mean += p * tally[c].hits;
    }
    for (int32_t c = 0; c < classes; c++) {
        float v = (float)(factor * tally[c].p * (tally[c].hits - mean));
        gx[c] = add ? gx[c] + v : v;
    }
}

void pnet_cpu_dice_backward(const struct pnet_dice *d, const double *slope, const float *gloss,
    bool add, float *gx, void *work)
{
    struct tally *tallies = work;
    int64_t rows = d->targets.rows.most;
    int32_t classes = d->targets.classes;
#pragma omp parallel for schedule(dynamic) if (rows * classes > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++)
        for (int64_t row = slice_begin(rows, slice); row < slice_begin(rows, slice + 1); row++)
            dice_row_backward(d, row, slope, (double)*gloss, add, gx + row * classes,
                tallies + (int64_t)slice * classes);
}
