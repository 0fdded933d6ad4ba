/* Losses and counts over labels. Sums are computed in double over a fixed number of ranges of rows and added in order: the
   same bits for any number of threads. */
#ifndef PNET_KERNELS_LOSS_H
#define PNET_KERNELS_LOSS_H

#include "kernels/both.h"
#include "kernels/count.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Labels, and the rows of scores they are compared with. A label outside of 0 .. classes-1 does not
   count. */
struct pnet_targets {
    struct pnet_count rows;       /* of the scores [rows, classes] */
    struct pnet_count label_rows; /* of the labels */
    int32_t classes;              /* at least 1 */
    const int32_t *label;         /* [label_rows] */
    const int64_t
        *start; /* [rows + 1]: the labels of a row of scores are those of the label rows */
    const int32_t
        *child; /* child[start[row]] .. child[start[row + 1] - 1]; both NULL: label `row` */
};

/* Weights of classes, [classes], or NULL for ones, lie in host memory on every device. A GPU takes at most so many, because they
   are an argument of the kernel. */
enum { PNET_CLASS_WEIGHTS = 256 };

/* Cross entropy of softmax(x) with the labels, over all labels that count:
     sum of (1 - s) w[l] nll(l) + s / classes * (sum over c of w[c] nll(c)),  divided by the sum of
   w[l], with nll(c) = logsumexp(x) - x[c], s = `smoothing` and weights w. */
struct pnet_cross_entropy {
    struct pnet_targets targets;
    const float *x; /* [rows, classes] */
    const double *weight;
    double smoothing;
};
PNET_BOTH(size_t, cross_entropy_work, const struct pnet_cross_entropy *e);
/* loss[1]; divisor[1] = sum of w[l], for the backward, or NULL. Where it is 0, so is the loss. */
PNET_BOTH(void, cross_entropy, const struct pnet_cross_entropy *e, float *loss, float *divisor,
    void *work);
/* gx [rows, classes] (+)= gloss[0] * dloss/dx, with the forward's divisor[1]. */
PNET_BOTH(void, cross_entropy_backward, const struct pnet_cross_entropy *e, const float *divisor,
    const float *gloss, bool add, float *gx, void *work);

/* Focal loss (Lin et al., 2017) of softmax(x) with the labels, over all labels that count:
     sum of w[l] (1 - p[l])^gamma nll(l),  divided by the sum of w[l]; p = softmax(x).
   1 - p is formed without the difference: a loss of 1e-30 is as exact as one of 1. */
struct pnet_focal {
    struct pnet_targets targets;
    const float *x; /* [rows, classes] */
    const double *weight;
    double gamma; /* 0 or more */
};
PNET_BOTH(size_t, focal_work, const struct pnet_focal *f);
/* loss[1], divisor[1] and gx as for the cross entropy. */
PNET_BOTH(void, focal, const struct pnet_focal *f, float *loss, float *divisor, void *work);
PNET_BOTH(void, focal_backward, const struct pnet_focal *f, const float *divisor,
    const float *gloss, bool add, float *gx, void *work);

/* Soft Dice loss of softmax(x) with the labels: 1 - the mean over the classes that occur among the
   labels of  2 hits / (mass + labels),  0 where none does. For class c, over all labels that count: hits is the sum of p[c]
   where the label is c, mass the sum of p[c] (or of p[c]^2 where `square`), labels the number of labels c. */
struct pnet_dice {
    struct pnet_targets targets;
    const float *x; /* [rows, classes] */
    bool square;
};
PNET_BOTH(size_t, dice_work, const struct pnet_dice *d);
/* slope [2, classes], unless NULL, gets the loss's derivatives by the hits, then by the mass: in double,
   as the two nearly cancel where the loss is small. */
PNET_BOTH(void, dice, const struct pnet_dice *d, float *loss, double *slope, void *work);
PNET_BOTH(void, dice_backward, const struct pnet_dice *d, const double *slope, const float *gloss,
    bool add, float *gx, void *work);

/* Lovasz-softmax (Berman, Triki, Blaschko, 2018): the Jaccard loss's convex extension of the errors
   of softmax(x), mean over the classes that occur among the labels; 0 where none does.
   gprob [rows, classes], unless NULL, gets the loss's derivative by the probabilities. */
PNET_BOTH(size_t, lovasz_work, const struct pnet_targets *t);
PNET_BOTH(void, lovasz, const struct pnet_targets *t, const float *x, float *loss, float *gprob,
    void *work);
/* gx (+)= gloss[0] * the gradient by the logits x, computed from gprob, the gradient by the probabilities softmax(x). */
PNET_BOTH(void, lovasz_backward, struct pnet_count rows, int32_t classes, const float *x,
    const float *gprob, const float *gloss, bool add, float *gx);

/* loss[1] = mean of (x - y)^2 over n elements, 0 for none; gx (+)= gloss[0] * 2 / n * (x - y). */
PNET_BOTH(size_t, mse_work, void);
PNET_BOTH(void, mse, struct pnet_count n, const float *x, const float *y, float *loss, void *work);
PNET_BOTH(void, mse_backward, struct pnet_count n, const float *x, const float *y,
    const float *gloss, bool add, float *gx);

/* The same for the mean of h(x - y) with h(d) = d^2 / 2 up to |d| = delta > 0, and
   delta (|d| - delta / 2) beyond (Huber, 1964); and for the mean of |x - y|, whose gradient is 0
   where the two are equal. Workspaces have mse_work bytes. */
PNET_BOTH(void, huber, struct pnet_count n, double delta, const float *x, const float *y,
    float *loss, void *work);
PNET_BOTH(void, huber_backward, struct pnet_count n, double delta, const float *x, const float *y,
    const float *gloss, bool add, float *gx);
PNET_BOTH(void, l1, struct pnet_count n, const float *x, const float *y, float *loss, void *work);
PNET_BOTH(void, l1_backward, struct pnet_count n, const float *x, const float *y,
    const float *gloss, bool add, float *gx);

/* best[row] = the class with the largest score, the lowest one among equals. */
PNET_BOTH(void, best_class, struct pnet_count rows, int32_t classes, const float *x, int32_t *best);
/* Counts of label rows: correct[2] = {best agrees with the label, labels that count}. */
PNET_BOTH(size_t, correct_work, void);
PNET_BOTH(void, correct, const struct pnet_targets *t, const int32_t *best, double correct[2],
    void *work);
/* The same where a label agrees if its class is among the k with the largest scores, the lower class
   first among equals. k = 1 asks for the best class: NaN counts as the largest score in class 0, and
   as the smallest elsewhere. */
PNET_BOTH(void, top_k, const struct pnet_targets *t, int32_t k, const float *x, double correct[2],
    void *work);
/* matrix[label * classes + best] = label rows of that pair. */
PNET_BOTH(size_t, confusion_work, int32_t classes);
PNET_BOTH(
    void, confusion, const struct pnet_targets *t, const int32_t *best, double *matrix, void *work);

#endif
