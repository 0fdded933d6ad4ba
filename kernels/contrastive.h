/* Losses on the features of two clouds: each sample of one is compared with the same sample of the other.

   Matches and rows are drawn by Philox of the step, so that backward draws the same as forward, on either
   device. Distances and sums are computed in double; of equal distances the first one
   drawn wins. Sums have a fixed order: the same bits for any number of threads. */
#ifndef PNET_KERNELS_CONTRASTIVE_H
#define PNET_KERNELS_CONTRASTIVE_H

#include "kernels/both.h"
#include "kernels/count.h"
#include "kernels/philox.h"

#include <stdbool.h>

/* Features of the source a and the target b, and which of their rows match (kernels/matches.h). */
struct pnet_matched {
    int32_t samples, width;
    struct pnet_count a_rows, b_rows;
    const int64_t *a_splits, *b_splits; /* [samples + 1] */
    const float *a, *b;                 /* [rows, width] */
    const int64_t *start;               /* [a rows + 1] */
    const int32_t *other;
    struct pnet_rand rand;
};

/* Gradients [rows, width] to write, or to add to where add_a, add_b; NULL: not wanted. */
struct pnet_matched_gradients {
    float *a, *b;
    bool add_a, add_b;
};

/* Hardest contrastive loss (Choy, Park, Koltun: Fully Convolutional Geometric Features, 2019).
   `positives` matches (i, j) of each sample at most, `candidates` rows of each side. */
struct pnet_hardest {
    struct pnet_matched pair;
    int32_t positives, candidates;
    double pos, neg; /* margins */
};

/* mined [samples, positives, 4]: i, j, the hardest row of b for i and of a for j, -1 where that one
   is a match of its own; all -1 behind the last positive of a sample.
   sizes [3]: how many terms the sums over positives and over hardest rows of b and a have. */
PNET_BOTH(size_t, hardest_work, const struct pnet_hardest *h, bool backward);
PNET_BOTH(void, hardest, const struct pnet_hardest *h, int32_t *mined, float *sizes, float *loss,
    void *work);
PNET_BOTH(void, hardest_backward, const struct pnet_hardest *h, const int32_t *mined,
    const float *sizes, const float *gloss, const struct pnet_matched_gradients *g, void *work);

/* Circle loss (Sun et al.: Circle Loss: A Unified Perspective of Pair Similarity Optimization,
   2020) among `pairs` matches (i_p, j_p) of each sample at most. Pair (p, q) is positive where j_q
   matches i_p, negative where j_q is not in the wider matches `safe` of i_p. */
struct pnet_circle {
    struct pnet_matched pair;
    const int64_t *safe_start;
    const int32_t *safe_other;
    int32_t pairs;
    double pos, neg, scale;
};

/* drawn [samples, pairs, 2]: i_p, j_p, or -1.
   sums [samples, 2, pairs, 2]: for each row of a, then of b, the logarithms of its sums over
   positives and negatives; -infinity: it has none.
   sizes [2]: rows of a and of b that have both. */
PNET_BOTH(size_t, circle_work, const struct pnet_circle *c, bool backward);
PNET_BOTH(void, circle, const struct pnet_circle *c, int32_t *drawn, double *sums, float *sizes,
    float *loss, void *work);
PNET_BOTH(void, circle_backward, const struct pnet_circle *c, const int32_t *drawn,
    const double *sums, const float *sizes, const float *gloss,
    const struct pnet_matched_gradients *g, void *work);

/* The purposes of random draws. */

enum pnet_matched_draw {
    PNET_DRAW_MATCHES,
    PNET_DRAW_SOURCE,
    PNET_DRAW_TARGET,
    PNET_MATCHED_DRAWS
};

/* Draw i of `count` items: one item of each of `most` equal ranges, or item i if there are at most `most`. There are
   min(count, most) draws. */
PNET_HD int64_t pnet_matched_draw(const struct pnet_rand *r, int32_t sample,
    enum pnet_matched_draw what, int64_t count, int32_t most, int32_t i)
{
    if (count <= most) return i;
    int64_t begin = count * i / most, end = count * (i + 1) / most;
    uint64_t stream = (uint64_t)sample * PNET_MATCHED_DRAWS + (uint64_t)what;
    uint64_t bits = pnet_rand_bits(r, stream << 24 | (uint64_t)i);
    return begin + (int64_t)(bits * (uint64_t)(end - begin) >> 32);
}

/* The row of start[first .. last] that entry `at` belongs to. */
PNET_HD int64_t pnet_matched_row(const int64_t *start, int64_t first, int64_t last, int64_t at)
{
    while (first + 1 < last) {
        int64_t middle = first + (last - first) / 2;
        if (start[middle] <= at)
            first = middle;
        else
            last = middle;
    }
    return first;
}

/* Is j in row i? Rows ascend. */
PNET_HD bool pnet_matched_in(const int64_t *start, const int32_t *other, int64_t i, int32_t j)
{
    int64_t first = start[i], last = start[i + 1];
    while (first < last) {
        int64_t middle = first + (last - first) / 2;
        if (other[middle] < j)
            first = middle + 1;
        else
            last = middle;
    }
    return first < start[i + 1] && other[first] == j;
}

/* Match `draw` of a sample, out of `most` at most: false where there are not so many. */
PNET_HD bool pnet_matched_at(const struct pnet_matched *p, const struct pnet_rand *r,
    int32_t sample, int32_t most, int32_t draw, int32_t *i, int32_t *j)
{
    int64_t first = p->a_splits[sample], last = p->a_splits[sample + 1];
    int64_t begin = p->start[first], count = p->start[last] - begin;
    *i = *j = -1;
    if (draw >= count) return false;
    int64_t at = begin + pnet_matched_draw(r, sample, PNET_DRAW_MATCHES, count, most, draw);
    *i = (int32_t)pnet_matched_row(p->start, first, last, at);
    *j = p->other[at];
    return true;
}

#endif
