/* Lovasz-softmax. For each class the errors of all labels are sorted, largest first; the loss is
   the sum of error times the growth of the Jaccard loss as that label joins the wrong ones. Labels
   that share a row of scores share their error: a row makes at most two entries, one for its labels
   of the class and one for its others, each with a count. */
#include "kernels/loss.h"
#include "kernels/cpu/loss/targets.h"

#include <math.h>
#include <string.h>

enum {
    SLICES = 16,  /* stretches of rows or entries worked on apart; part of the result's bits */
    SMALL = 8192, /* of them, below which threads cost more than they save */
    DIGIT = 10,   /* bits sorted by at a time: three passes for the 30 bits of a float up to 1 */
    PASSES = 3,
    DIGITS = 1 << DIGIT,
    ONE = 0x3F800000, /* the bits of 1.0f */
};

/* An entry: in the upper half ONE minus the bits of the error, so that errors fall as entries grow;
   in the lower half its item: twice the row, plus 1 for the labels of the class. */
struct lovasz {
    const struct pnet_targets *t;
    int64_t *totals;    /* [classes] labels of each class */
    uint64_t *entry[2]; /* [2 rows] sorted from one to the other */
    float *lse;         /* [rows] log of the sum of exp(x) */
    int32_t *valid;     /* [rows] labels that count */
    int32_t *hits;      /* [rows] those of the class at hand */
    uint32_t *place;    /* [SLICES, DIGITS] */
};

static struct lovasz lovasz_of(const struct pnet_targets *t, void *work)
{
    struct lovasz v = {.t = t, .totals = work};
    v.entry[0] = (uint64_t *)(v.totals + t->classes);
    v.entry[1] = v.entry[0] + 2 * t->rows.most;
    v.lse = (float *)(v.entry[1] + 2 * t->rows.most);
    v.valid = (int32_t *)(v.lse + t->rows.most);
    v.hits = v.valid + t->rows.most;
    v.place = (uint32_t *)(v.hits + t->rows.most);
    return v;
}

size_t pnet_cpu_lovasz_work(const struct pnet_targets *t)
{
    size_t rows = (size_t)t->rows.most;
    return (size_t)t->classes * sizeof(int64_t) + 4 * rows * sizeof(uint64_t) +
           3 * rows * sizeof(float) + (size_t)SLICES * DIGITS * sizeof(uint32_t);
}

static int64_t slice_begin(int64_t n, int32_t slice)
{
    return n * slice / SLICES;
}

static void count_labels(const struct lovasz *v, const float *x)
{
    const struct pnet_targets *t = v->t;
#pragma omp parallel for schedule(static) if (t->rows.most > SMALL)
    for (int64_t row = 0; row < t->rows.most; row++) {
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
    for (int64_t at = 0; at < t->label_rows.most; at++) {
        int32_t label = t->label[at];
        if (label >= 0 && label < t->classes) v->totals[label]++;
    }
}

static uint64_t make_entry(float error, int64_t row, bool of_class)
{
    uint32_t bits;
    float e = error < 0 ? 0 : error > 1 ? 1 : error; /* NaN goes on, to show in the loss */
    memcpy(&bits, &e, sizeof bits);
    return (uint64_t)(ONE - bits) << 32 | (uint64_t)(2 * row + of_class);
}

static float error_of(uint64_t entry)
{
    float e;
    uint32_t bits = ONE - (uint32_t)(entry >> 32);
    memcpy(&e, &bits, sizeof e);
    return e;
}

/* The entries of class c, into the first buffer in the order of rows. Returns how many. */
static int64_t make_entries(const struct lovasz *v, const float *x, int32_t c)
{
    const struct pnet_targets *t = v->t;
    int64_t begin[SLICES + 1] = {0};
#pragma omp parallel for schedule(static) if (t->rows.most > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        int64_t count = 0;
        for (int64_t row = slice_begin(t->rows.most, slice);
             row < slice_begin(t->rows.most, slice + 1); row++) {
            int32_t hits = 0;
            for (int64_t at = pnet_targets_begin(t, row); at < pnet_targets_end(t, row); at++)
                hits += pnet_targets_label(t, at) == c;
            v->hits[row] = hits;
            count += (hits > 0) + (v->valid[row] > hits);
        }
        begin[slice + 1] = count;
    }
    for (int32_t slice = 0; slice < SLICES; slice++) begin[slice + 1] += begin[slice];
#pragma omp parallel for schedule(static) if (t->rows.most > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        uint64_t *to = v->entry[0] + begin[slice];
        for (int64_t row = slice_begin(t->rows.most, slice);
             row < slice_begin(t->rows.most, slice + 1); row++) {
            if (!v->valid[row]) continue;
            float p = expf(x[row * t->classes + c] - v->lse[row]);
            if (v->hits[row] > 0) *to++ = make_entry(1 - p, row, true);
            if (v->valid[row] > v->hits[row]) *to++ = make_entry(p, row, false);
        }
    }
    return begin[SLICES];
}

/* One pass of a stable radix sort of n entries by the digit at `shift`. */
static void sort_pass(
    const struct lovasz *v, int64_t n, const uint64_t *from, uint64_t *to, int shift)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        uint32_t *count = v->place + slice * DIGITS;
        memset(count, 0, DIGITS * sizeof *count);
        for (int64_t i = slice_begin(n, slice); i < slice_begin(n, slice + 1); i++)
            count[from[i] >> shift & (DIGITS - 1)]++;
    }
    uint32_t sum = 0;
    for (int32_t digit = 0; digit < DIGITS; digit++)
        for (int32_t slice = 0; slice < SLICES; slice++) {
            uint32_t count = v->place[slice * DIGITS + digit];
            v->place[slice * DIGITS + digit] = sum;
            sum += count;
        }
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        uint32_t *place = v->place + slice * DIGITS;
        for (int64_t i = slice_begin(n, slice); i < slice_begin(n, slice + 1); i++)
            to[place[from[i] >> shift & (DIGITS - 1)]++] = from[i];
    }
}

/* How many labels an item stands for. */
static int64_t item_count(const struct lovasz *v, uint32_t item)
{
    if (!v->t->start) return 1;
    return item % 2 ? v->hits[item / 2] : v->valid[item / 2] - v->hits[item / 2];
}

/* The loss of one class from n sorted entries; growth[item] := dloss/derror. With F labels of the
   class and B others among the wrong ones, out of `total` of the class, the Jaccard loss is
   1 - (total - F) / (total + B); its growth is written out to lose nothing in differences. */
static double sum_sorted(
    const struct lovasz *v, int64_t n, const uint64_t *entry, double total, float *growth)
{
    int64_t before[SLICES + 1][2] = {{0}}; /* others, hits */
    double loss[SLICES], sum = 0;
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        int64_t count[2] = {0, 0};
        for (int64_t i = slice_begin(n, slice); i < slice_begin(n, slice + 1); i++)
            count[entry[i] & 1] += item_count(v, (uint32_t)entry[i]);
        before[slice + 1][0] = count[0];
        before[slice + 1][1] = count[1];
    }
    for (int32_t slice = 0; slice < SLICES; slice++)
        for (int k = 0; k < 2; k++) before[slice + 1][k] += before[slice][k];
#pragma omp parallel for schedule(static) if (n > SMALL)
    for (int32_t slice = 0; slice < SLICES; slice++) {
        double others = (double)before[slice][0], hits = (double)before[slice][1], part = 0;
        for (int64_t i = slice_begin(n, slice); i < slice_begin(n, slice + 1); i++) {
            uint32_t item = (uint32_t)entry[i];
            double count = (double)item_count(v, item), grows;
            if (item % 2) {
                grows = count / (total + others);
                hits += count;
            } else {
                grows = (total - hits) * count / ((total + others) * (total + others + count));
                others += count;
            }
            part += (double)error_of(entry[i]) * grows;
            growth[item] = (float)grows;
        }
        loss[slice] = part;
    }
    for (int32_t slice = 0; slice < SLICES; slice++) sum += loss[slice];
    return sum;
}

/* The error is 1 - p for labels of the class, p for the others. */
static void write_gradient(
    const struct lovasz *v, int32_t c, const float *growth, float factor, float *gprob)
{
    int32_t classes = v->t->classes;
#pragma omp parallel for schedule(static) if (v->t->rows.most > SMALL)
    for (int64_t row = 0; row < v->t->rows.most; row++) {
        float of_class = v->hits[row] > 0 ? growth[2 * row + 1] : 0;
        float of_others = v->valid[row] > v->hits[row] ? growth[2 * row] : 0;
        gprob[row * classes + c] = (of_others - of_class) * factor;
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
            for (int64_t row = 0; gprob && row < t->rows.most; row++)
                gprob[row * t->classes + c] = 0;
            continue;
        }
        int64_t n = make_entries(&v, x, c);
        int from = 0;
        for (int pass = 0; pass < PASSES; pass++, from = !from)
            sort_pass(&v, n, v.entry[from], v.entry[!from], 32 + pass * DIGIT);
        /* the buffer sorted from is not needed any more: it has room for a float an item */
        float *growth = (float *)v.entry[!from];
        sum += sum_sorted(&v, n, v.entry[from], (double)v.totals[c], growth);
        if (gprob) write_gradient(&v, c, growth, 1 / (float)present, gprob);
    }
    *loss = present ? (float)(sum / present) : 0;
}

/* gx = p (gprob - sum of p gprob), p = softmax(x). */
void pnet_cpu_lovasz_backward(struct pnet_count count, int32_t classes, const float *x,
    const float *gprob, const float *gloss, bool add, float *gx)
{
    int64_t rows = count.most;
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
        float mean = (float)(dot / sum), factor = (float)((double)*gloss / sum);
        for (int32_t c = 0; c < classes; c++) {
            float v = expf(p[c] - top) * factor * (u[c] - mean);
            q[c] = add ? q[c] + v : v;
        }
    }
}
