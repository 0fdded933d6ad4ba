/* APML: a soft assignment of two point sets from the distances to near points, made doubly stochastic by rounds of Sinkhorn's
   normalisation; the loss is the mean distance that it carries (APML, arXiv 2509.08104; CUDA-APML, arXiv 2512.19743).

   Per sample, d_ij = |x_i - y_j| = sqrt((dx dx + dy dy) + dz dz) in float32 without contraction. For a row i of x, among the K
   rows of y in its sample:
     a = the least d, b = the second least, g = max(b - a, 1e-8)
     L = ln((K - 1) p / (1 - p)), kappa = ln(1 / tau) / L
     R = a + kappa g, rounded once; the support is all j with d_ij <= R. K = 1: R = a.
     s_ij = exp(-(d_ij - a) L / g), divided by its sum over the support.
   Columns alike, with the roles of x and y swapped. P is half the sum of both, a missing one being 0; then `rounds` times
   columns, then rows of P are divided by their sums + 1e-8. loss = mean over samples of the sum of P_ij d_ij. P is constant in
   the gradient.

   s_ij >= tau is the same as d_ij <= R, so the support comes from two nearest points and one ball: no pair beyond R is looked at.

   Rounds scale rows and columns: P_ij = u_i P0_ij v_j. Where points of one set crowd together, or the sets differ in size, the
   factors u and v grow and shrink by powers of ten in each round, without end, while P stays at most 1. So a factor has an
   exponent of its own, and sums are those of P: the part and the exponent of the row's own factor are applied to them.

   The limit: a row keeps its `limit` nearest support points, by (d, row), and is normalised over these. The limit of a set is
   `most`; if more than entries * rows of the set would be kept in the batch, it is the largest of 32, 16, 12, 8, 6, 4, 2
   below `most` with which that many are enough. The sets of x and y have a limit each.

   A coordinate that is not finite, or a sample so large that squared distances overflow, makes the loss and all its gradients
   NaN. */
#ifndef PNET_KERNELS_APML_H
#define PNET_KERNELS_APML_H

#include "kernels/philox.h"
#include "kernels/sets.h"

#include <math.h>
#include <string.h>

enum {
    PNET_APML_MOST = 1024,          /* the largest `most` and `entries` */
    PNET_APML_BINS = 1024 + 8 * 21, /* of counts; see pnet_apml_bin */
    PNET_APML_ROWS = 0,             /* places in the sums of apml_support */
    PNET_APML_COUNT,
    PNET_APML_CUT,
    PNET_APML_BIN,
    PNET_APML_SUMS = PNET_APML_BIN + PNET_APML_BINS
};

struct pnet_apml {
    struct pnet_set_pair sets;
    double p, tau;   /* 0.5 < p < 1; 0 < tau < 1 */
    int32_t rounds;  /* of columns, then rows: 0 .. 1000 */
    int32_t most;    /* 2 .. PNET_APML_MOST */
    int32_t entries; /* room a row of either set, on average: 2 .. PNET_APML_MOST */
};

struct pnet_apml_entry {
    int32_t other; /* row of the other set */
    float p;
};

/* The plan P: entries of the support of rows, and of the support of columns, both by rows of x, then by rows of y. A pair in
   both supports has two entries; P is their sum. Entries of row i begin where those of row i - 1 end. Aligned to 8 bytes. */
struct pnet_apml_plan {
    int64_t *end;                      /* [rows of x, 2]: of the entries in by_row, in by_column */
    struct pnet_apml_entry *by_row;    /* [entries * rows of x] */
    struct pnet_apml_entry *by_column; /* [entries * rows of y] */
};

/* NULL: not wanted. */
struct pnet_apml_gradients {
    float *x, *y; /* [rows, 3] */
    bool x_add, y_add;
};

/* Bytes are bounded by the rows of both sets. */
PNET_BOTH(size_t, apml_work, const struct pnet_apml *a, bool backward);
PNET_BOTH(void, apml, const struct pnet_apml *a, const struct pnet_apml_plan *plan, float *loss,
    void *work);
/* dloss/dx_i = (1 / samples) sum_j P_ij (x_i - y_j) / max(d_ij, 1e-6); of y the negative, summed over i. */
PNET_BOTH(void, apml_backward, const struct pnet_apml *a, const struct pnet_apml_plan *plan,
    const float *gloss, const struct pnet_apml_gradients *g, void *work);

/* sum [PNET_APML_SUMS]: of both sets, the rows whose sample has points of the other set, the points in their supports, how
   many rows the limit cuts, and how many rows there are for each bin of support points. All NaN where the loss is NaN. */
PNET_BOTH(size_t, apml_support_work, const struct pnet_apml *a);
PNET_BOTH(void, apml_support, const struct pnet_apml *a, double *sum, void *work);

/* L of a set with K >= 2 points, and kappa. */
PNET_HD double pnet_apml_slope(int64_t k, double p)
{
    return log((double)(k - 1) * p / (1 - p));
}
static inline float pnet_apml_kappa(double slope, double tau)
{
    return (float)(-log(tau) / slope);
}

/* A factor of a row or a column: part * 2^exponent. In a round it grows by less than 2^27, and shrinks by less than the number
   of points of the other set. */
struct pnet_apml_factor {
    float part;
    int32_t exponent;
};

/* Exponents stay 0 until half a round leaves a part of which this is false, in the same sample or, on a GPU, the same batch. */
PNET_HD bool pnet_apml_far_from_ends(float part)
{
    return part > 1.0f / (1ll << 60) && part < (float)(1ll << 60);
}

/* The same factor with 1 <= part < 2. */
PNET_HD struct pnet_apml_factor pnet_apml_split(struct pnet_apml_factor f)
{
    uint32_t bits;
    memcpy(&bits, &f.part, sizeof bits);
    f.exponent += (int32_t)(bits >> 23) - 127;
    bits = (bits & 0x7fffffu) | 127u << 23;
    memcpy(&f.part, &bits, sizeof bits);
    return f;
}

/* A factor times 2^exponent, where that is the exponent of the split factor of an entry's row: P0_ij times this is P_ij but for
   the part of that factor. P is at most 1 and P0 at least tau / (2 PNET_APML_MOST), so float32 holds it; if rounding made P0_ij
   0, it may be any finite number. Less than 2^-90 becomes 0: 2^31 such entries are nothing in a sum to which 1e-8 is added. */
PNET_HD float pnet_apml_scaled(struct pnet_apml_factor f, int32_t exponent)
{
    uint32_t bits;
    memcpy(&bits, &f.part, sizeof bits);
    int32_t biased = (int32_t)(bits >> 23) + f.exponent + exponent;
    biased = biased < 254 ? biased : 254;
    bits = biased < 127 - 90 ? 0 : (bits & 0x7fffffu) | (uint32_t)biased << 23;
    memcpy(&f.part, &bits, sizeof bits);
    return f.part;
}

/* The limits that are tried below `most`, in this order, are the first ones of these that are less. Returns limit `i`; 0:
   there are no more. */
static inline int32_t pnet_apml_limit(int32_t most, int i)
{
    static const int32_t below[] = {32, 16, 12, 8, 6, 4, 2};
    int skip = 0, count = (int)(sizeof below / sizeof *below);
    if (i == 0) return most;
    while (skip < count && below[skip] >= most) skip++;
    return skip + i - 1 < count ? below[skip + i - 1] : 0;
}

/* The bin of a count: up to 1023 each count has one of its own, above there are 8 between powers of two. */
PNET_HD int pnet_apml_bin(int64_t count)
{
    int64_t octave = 0;
    if (count < 1024) return (int)count;
    while (count >> octave >= 2048) octave++;
    int64_t bin = 1024 + 8 * octave + ((count >> octave) - 1024) / 128;
    return bin < PNET_APML_BINS ? (int)bin : PNET_APML_BINS - 1;
}
/* The least count of a bin. */
static inline int64_t pnet_apml_bin_count(int bin)
{
    if (bin < 1024) return bin;
    int octave = (bin - 1024) / 8;
    return (int64_t)(1024 + 128 * ((bin - 1024) % 8)) << octave;
}

#endif
