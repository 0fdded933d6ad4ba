/* Point sets: as many points as each sample has, with coordinates that a network predicts or a file gives. Losses and metrics
   compare two sets of a batch, sample by sample. Coordinates are float32 on either device, whatever the precision. */
#ifndef PNET_KERNELS_SETS_H
#define PNET_KERNELS_SETS_H

#include "kernels/both.h"
#include "kernels/count.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The points of a batch. Rows of sample s are splits[s] .. splits[s + 1] - 1. */
struct pnet_point_set {
    struct pnet_count rows;
    int32_t samples;
    const int64_t *splits; /* [samples + 1] */
    const float *xyz;      /* [rows, 3] */
};

/* x is what is predicted, y what it is compared with. Both have the same samples. A sample of which either set is empty adds
   nothing to a loss, but counts in the mean over samples. */
struct pnet_set_pair {
    struct pnet_point_set x, y;
    /* What set_near gives. NULL where a loss does not read them. */
    const int32_t *x_near; /* [rows of x], rows of y */
    const int32_t *y_near; /* [rows of y], rows of x */
};

/* Gradients [rows, 3] of both sets to write, or to add to where add_x, add_y; NULL: not wanted. */
struct pnet_set_gradients {
    float *x, *y;
    bool add_x, add_y;
};

/* near [a.rows]: the nearest row of b in the same sample, of equally near ones the lowest; -1: that sample of b is empty, or no
   distance is finite. The squared distance is (dx*dx + dy*dy) + dz*dz in float32 without contraction. The same rows on either
   device, whatever the coordinates. */
PNET_BOTH(size_t, set_near_work, const struct pnet_point_set *a, const struct pnet_point_set *b);
PNET_BOTH(void, set_near, const struct pnet_point_set *a, const struct pnet_point_set *b,
    int32_t *near, void *work);

/* Losses that are sums over points of a function of the distance to the nearest point of the other set, over both directions.
   Each writes

     loss[1]            the mean over samples
     x_pull [x.rows], y_pull [y.rows], unless both are NULL: what set_pull makes gradients from: the loss's derivative by the
                        place of a point, by this direction's term alone, is x_pull[i] (x_i - y_near(i))

   With a_i the distance of x_i to its nearest y, and b_j that of y_j to its nearest x, over the n and m points of a sample: */

/* (mean a + mean b) / 2 (l1; gradients divide by at least 1e-6), or mean a^2 + mean b^2 (`squares`). Fan, Su, Guibas, A Point
   Set Generation Network, 2017. */
PNET_BOTH(size_t, chamfer_work, const struct pnet_set_pair *p);
PNET_BOTH(void, chamfer, const struct pnet_set_pair *p, bool squares, float *loss, float *x_pull,
    float *y_pull, void *work);

/* Half of  mean of 1 - f_x exp(-alpha a^2) / (c^lambda + 1e-6)  over x, with c the number of points of x that have the same
   nearest point and f_x = n / m, and the same over y with f_y = m / n; `at_least_one`: f is at least 1. Numbers c are constant in
   gradients. Wu, Pan, Zhang, Wang, Liu, Lin, Density-aware Chamfer Distance, 2021. */
struct pnet_dcd {
    double alpha, lambda;
    bool at_least_one;
};
PNET_BOTH(size_t, dcd_work, const struct pnet_set_pair *p);
PNET_BOTH(void, dcd, const struct pnet_set_pair *p, const struct pnet_dcd *d, float *loss,
    float *x_pull, float *y_pull, void *work);

/* mean of arcosh(1 + alpha a^2) + mean of arcosh(1 + alpha b^2); arguments are at least 1 + 1e-5, where the gradient is 0. Lin,
   Yue, Hou, Yu, Xu, Yamada, Zhang, Hyperbolic Chamfer Distance for Point Cloud Completion, 2023. */
PNET_BOTH(size_t, hypercd_work, const struct pnet_set_pair *p);
PNET_BOTH(void, hypercd, const struct pnet_set_pair *p, double alpha, float *loss, float *x_pull,
    float *y_pull, void *work);

/* Half of the sum over both directions of  mean (or sum, with `sums`) over i of a_i / tau + lambda ln S,  S the sum over k of
   exp(-a_k / tau) + 1e-7; a is at least sqrt(1e-9), where the gradient is 0. Lin, Yue, Hou, Yu, Xu, Yamada, Zhang, InfoCD: A
   Contrastive Chamfer Distance Loss for Point Cloud Completion, 2023. */
struct pnet_infocd {
    double tau, lambda;
    bool sums;
};
PNET_BOTH(size_t, infocd_work, const struct pnet_set_pair *p);
PNET_BOTH(void, infocd, const struct pnet_set_pair *p, const struct pnet_infocd *d, float *loss,
    float *x_pull, float *y_pull, void *work);

/* What a completed cloud is judged by. Adds up, by class (labels other than 0 .. classes - 1 do not count) or over all samples
   (label NULL, classes 1), the numbers below; samples of which either set is empty do not count. */
enum pnet_completion_sums {
    PNET_COMPLETION_CLOUDS,    /* samples that count */
    PNET_COMPLETION_L1,        /* (mean a + mean b) / 2 */
    PNET_COMPLETION_L2,        /* mean a^2 + mean b^2 */
    PNET_COMPLETION_PRECISION, /* share of x with a < at */
    PNET_COMPLETION_RECALL,    /* share of y with b < at */
    PNET_COMPLETION_F,         /* 2 precision recall / (precision + recall), 0 for 0 and 0 */
    PNET_COMPLETION_COVERED,   /* share of y that is the nearest point of some x */
    PNET_COMPLETION_EMD,       /* mean distance of x to their partners; NaN where one has none */
    PNET_COMPLETION_LEFT,      /* 1 where the rounds of the auction left a point of x */
    PNET_COMPLETION_SUMS
};
struct pnet_completion {
    double at;
    const int32_t *label; /* [samples], or NULL */
    int32_t classes;
    const int32_t *
        partner; /* [rows of x] an assignment that tells who was left (kernels/emd.h); NULL: its sums are 0 */
};
/* sums [classes, PNET_COMPLETION_SUMS]. */
PNET_BOTH(size_t, completion_work, const struct pnet_set_pair *p);
PNET_BOTH(void, completion, const struct pnet_set_pair *p, const struct pnet_completion *c,
    double *sums, void *work);

/* Gradients by the points of the first set: for point i of a, and the points j of b whose nearest point it is, ascending,
     ga[i] (+)= gloss[0] * (a_pull[i] (a_i - b_near(i)) + sum of b_pull[j] (a_i - b_j)).
   a_near, b_near: as in struct pnet_set_pair. */
struct pnet_set_pull {
    struct pnet_point_set a, b;
    const int32_t *a_near, *b_near;
    const float *a_pull, *b_pull;
};
PNET_BOTH(size_t, set_pull_work, const struct pnet_set_pull *p);
PNET_BOTH(void, set_pull, const struct pnet_set_pull *p, const float *gloss, bool add, float *ga,
    void *work);

#endif
