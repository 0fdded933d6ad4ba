/* Lovasz-softmax. For each class the errors of all labels are sorted, largest first; the loss is
   the sum of error times the growth of the Jaccard loss as that label joins the wrong ones. Labels
   that share a row of scores share their error: they enter as one entry with a count, one of the
   labels of the class and one of the others. */
#include "kernels/cpu/loss.h"
#include "kernels/cpu/targets.h"

#include <math.h>
#include <string.h>

enum {
    SLICES = 16,  /* stretches of entries worked on apart; part of the result's bits */
    SMALL = 8192, /* entries below which threads cost more than they save */
    DIGIT = 10,   /* bits sorted by at a time: three passes for the 30 bits of a float up to 1 */
    PASSES = 3,
    DIGITS = 1 << DIGIT,
    ONE = 0x3F800000, /* the bits of 1.0f */
};

struct lovasz {
    const struct pnet_targets *t;
    int32_t per_row; /* entries: 2, or 1 where a row has one label */
    int64_t entries;
    float *lse;        /* [rows] log of the sum of exp(x) */
    int32_t *valid;    /* [rows] labels that count */
    int32_t *hits;     /* [rows] those of the class at hand */
    uint32_t *key[2];  /* [entries] ONE - the bits of the error: ascending keys, falling errors */
    uint32_t *item[2]; /* [entries] row * per_row + (1: of the class, in rows with two) */
    uint32_t *place;   /* [SLICES, DIGITS] */
    int64_t *totals;   /* [classes] labels of each class */
};

static struct lovasz lovasz_of(const struct pnet_targets *t, void *work)
{
    struct lovasz v = {.t = t, .per_row = t->start ? 2 : 1};
    v.entries = t->rows * v.per_row;
    v.totals = work;
    v.lse = (float *)(v.totals + t->classes);
    v.valid = (int32_t *)(v.lse + t->rows);
    v.hits = v.valid + t->rows;
    v.key[0] = (uint32_t *)(v.hits + t->rows);
    v.key[1] = v.key[0] + v.entries;
    v.item[0] = v.key[1] + v.entries;
    v.item[1] = v.item[0] + v.entries;
    v.place = v.item[1] + v.entries;
    return v;
}

size_t pnet_cpu_lovasz_work(const struct pnet_targets *t)
{
    size_t rows = (size_t)t->rows, entries = 2 * rows;
    return (size_t)t->classes * sizeof(int64_t) + 3 * rows * sizeof(float) +
           4 * entries * sizeof(uint32_t) + (size_t)SLICES * DIGITS * sizeof(uint32_t);
}

static int64_t slice_begin(int64_t n, int32_t slice)
{
    return n * slice / SLICES;
}

static void count_labels(const struct lovasz *v, const float *x)
{
    const struct pnet_targets *t = v->t;
#pragma omp parallel for schedule(static) if (v->entries > SMALL)
    for (int64_t row = 0; row < t->rows; row++) {
        const float *p = x + row * t->classes;
        float top = p[0];
        double sum = 0;
        for (int32_t c = 1; c < t->classes; c++) top = p[c] > top ? p[c] : top;
        for (int32_t c = 0; c < t->classes; c++) sum += (double)expf(p[c] - top);
        v->lse[row] = top + (float)log(sum);
        v->valid[row] = 0;
        for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++)
            v->valid[row] += pnet_targets_label(t, at) >= 0;
    }
    for (int32_t c = 0; c < t->classes; c++) v->totals[c] = 0;
    for (int64_t at = 0; at < t->label_rows; at++) {
        int32_t label = t->label[at];
        if (label >= 0 && label < t->classes) v->totals[label]++;
    }
}

static uint32_t key_of(float error)
{
    uint32_t bits;
    float e = error < 0 ? 0 : error > 1 ? 1 : error; /* NaN goes on, to show in the loss */
    memcpy(&bits, &e, sizeof bits);
    return ONE - bits;
}

static float error_of(uint32_t key)
{
    float e;
    uint32_t bits = ONE - key;
    memcpy(&e, &bits, sizeof e);
    return e;
}

static void make_entries(const struct lovasz *v, const float *x, int32_t c)
{
    const struct pnet_targets *t = v->t;
#pragma omp parallel for schedule(static) if (v->entries > SMALL)
    for (int64_t row = 0; row < t->rows; row++) {
        float p = expf(x[row * t->classes + c] - v->lse[row]);
        int32_t hits = 0;
        for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++)
            hits += pnet_targets_label(t, at) == c;
        v->hits[row] = hits;
        int64_t at = row * v->per_row;
        v->item[0][at] = (uint32_t)at;
        v->key[0][at] = key_of(v->per_row == 1 && hits ? 1 - p : p);
        if (v->per_row == 2) {
            v->item[0][at + 1] = (uint32_t)at + 1;
            v->key[0][at + 1] = key_of(1 - p);
        }
    }
}

/* One pass of a stable radix sort, from buffer `from` to the other one. */
static void sort_pass(const struct lovasz *v, int from, int shift)
{
    const uint32_t *key = v->key[from], *item = v->item[from];
    uint32_t *to_key = v->key[!from], *to_item = v->item[!from];
#pragma omp parallel for schedule(static) if (v->entries > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        uint32_t *count = v->place + slice * DIGITS;
        memset(count, 0, DIGITS * sizeof *count);
        for (int64_t i = slice_begin(v->entries, slice); i < slice_begin(v->entries, slice + 1);
             i++)
            count[key[i] >> shift & (DIGITS - 1)]++;
    }
    uint32_t sum = 0;
    for (int32_t digit = 0; digit < DIGITS; digit++)
        for (int32_t slice = 0; slice < SLICES; slice++) {
            uint32_t count = v->place[slice * DIGITS + digit];
            v->place[slice * DIGITS + digit] = sum;
            sum += count;
        }
#pragma omp parallel for schedule(static) if (v->entries > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        uint32_t *place = v->place + slice * DIGITS;
        for (int64_t i = slice_begin(v->entries, slice); i < slice_begin(v->entries, slice + 1);
             i++) {
            uint32_t at = place[key[i] >> shift & (DIGITS - 1)]++;
            to_key[at] = key[i];
            to_item[at] = item[i];
        }
    }
}

/* How many labels an entry stands for, and whether they are of the class. */
static int64_t entry_count(const struct lovasz *v, uint32_t item, bool *of_class)
{
    if (v->per_row == 1) {
        *of_class = v->hits[item] > 0;
        return v->valid[item];
    }
    uint32_t row = item / 2;
    *of_class = item % 2;
    return *of_class ? v->hits[row] : v->valid[row] - v->hits[row];
}

/* The loss of one class from the sorted entries; growth[item] := dloss/derror. With F labels of the
   class and B others among the wrong ones, out of G of the class, the Jaccard loss is
   1 - (G - F) / (G + B). */
static double sum_sorted(const struct lovasz *v, int from, double total, float *growth)
{
    int64_t hits[SLICES], others[SLICES];
    double loss[SLICES];
#pragma omp parallel for schedule(static) if (v->entries > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        int64_t f = 0, b = 0;
        for (int64_t i = slice_begin(v->entries, slice); i < slice_begin(v->entries, slice + 1);
             i++) {
            bool of_class;
            int64_t n = entry_count(v, v->item[from][i], &of_class);
            *(of_class ? &f : &b) += n;
        }
        hits[slice] = f;
        others[slice] = b;
    }
    for (int64_t slice = 0, f = 0, b = 0; slice < SLICES; slice++) {
        int64_t own_hits = hits[slice], own_others = others[slice];
        hits[slice] = f;
        others[slice] = b;
        f += own_hits;
        b += own_others;
    }
#pragma omp parallel for schedule(static) if (v->entries > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        double f = (double)hits[slice], b = (double)others[slice], sum = 0;
        for (int64_t i = slice_begin(v->entries, slice); i < slice_begin(v->entries, slice + 1);
             i++) {
            bool of_class;
            uint32_t item = v->item[from][i];
            double n = (double)entry_count(v, item, &of_class);
            double grows =
                of_class ? n / (total + b) : (total - f) * n / ((total + b) * (total + b + n));
            *(of_class ? &f : &b) += n;
            sum += (double)error_of(v->key[from][i]) * grows;
            growth[item] = (float)grows;
        }
        loss[slice] = sum;
    }
    double sum = 0;
    for (int32_t slice = 0; slice < SLICES; slice++) sum += loss[slice];
    return sum;
}

/* The error is 1 - p for labels of the class, p for the others. */
static void write_gradient(
    const struct lovasz *v, int32_t c, const float *growth, float factor, float *gprob)
{
    int32_t classes = v->t->classes;
#pragma omp parallel for schedule(static) if (v->entries > SMALL)
    for (int64_t row = 0; row < v->t->rows; row++) {
        float g = v->per_row == 2    ? growth[2 * row] - growth[2 * row + 1]
                  : v->hits[row] > 0 ? -growth[row]
                                     : growth[row];
        gprob[row * classes + c] = g * factor;
    }
}

void pnet_cpu_lovasz(
    const struct pnet_targets *t, const float *x, float *loss, float *gprob, void *work)
{
    struct lovasz v = lovasz_of(t, work);
    int32_t present = 0;
    count_labels(&v, x);
    for (int32_t c = 0; c < t->classes; c++) present += v.totals[c] > 0;
    double sum = 0;
    for (int32_t c = 0; c < t->classes; c++) {
        if (!v.totals[c]) {
            for (int64_t row = 0; gprob && row < t->rows; row++) gprob[row * t->classes + c] = 0;
            continue;
        }
        int from = 0;
        make_entries(&v, x, c);
        for (int pass = 0; pass < PASSES; pass++, from = !from) sort_pass(&v, from, pass * DIGIT);
        /* the keys that were sorted from are not needed any more: a float takes the same room */
        float *growth = (float *)v.key[!from];
        sum += sum_sorted(&v, from, (double)v.totals[c], growth);
        if (gprob) write_gradient(&v, c, growth, 1 / (float)present, gprob);
    }
    *loss = present ? (float)(sum / present) : 0;
}

/* gx = p (gprob - sum of p gprob), p = softmax(x). */
void pnet_cpu_lovasz_backward(int64_t rows, int32_t classes, const float *x, const float *gprob,
    float gloss, bool add, float *gx)
{
#pragma omp parallel for schedule(static) if (rows * classes > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const float *p = x + row * classes, *u = gprob + row * classes;
        float *q = gx + row * classes, top = p[0];
        double sum = 0, dot = 0;
        for (int32_t c = 1; c < classes; c++) top = p[c] > top ? p[c] : top;
        for (int32_t c = 0; c < classes; c++) {
            double e = (double)expf(p[c] - top);
            sum += e;
            dot += e * (double)u[c];
        }
        float mean = (float)(dot / sum), factor = (float)((double)gloss / sum);
        for (int32_t c = 0; c < classes; c++) {
            float v = expf(p[c] - top) * factor * (u[c] - mean);
            q[c] = add ? q[c] + v : v;
        }
    }
}
