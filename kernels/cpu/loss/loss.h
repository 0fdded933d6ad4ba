/* Losses and counts over labels, on the CPU. Sums are formed in double over a fixed number of
   stretches of rows and joined in order: the same bits for any number of threads. Nothing
   allocates. */
#ifndef PNET_KERNELS_CPU_LOSS_H
#define PNET_KERNELS_CPU_LOSS_H

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

/* Weights of classes, [classes] or NULL for ones: host memory on every device, and for a GPU at most
   so many, as they travel as an argument of the kernel. */
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
size_t pnet_cpu_cross_entropy_work(const struct pnet_cross_entropy *e);
/* loss[1]; divisor[1] = sum of w[l], for the backward, or NULL. Where it is 0, so is the loss. */
void pnet_cpu_cross_entropy(
    const struct pnet_cross_entropy *e, float *loss, float *divisor, void *work);
/* gx [rows, classes] (+)= gloss[0] * dloss/dx, with the forward's divisor[1]. */
void pnet_cpu_cross_entropy_backward(const struct pnet_cross_entropy *e, const float *divisor,
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
size_t pnet_cpu_focal_work(const struct pnet_focal *f);
/* As those of the cross entropy. */
void pnet_cpu_focal(const struct pnet_focal *f, float *loss, float *divisor, void *work);
void pnet_cpu_focal_backward(const struct pnet_focal *f, const float *divisor, const float *gloss,
    bool add, float *gx, void *work);

/* Soft Dice loss of softmax(x) with the labels: 1 - the mean over the classes that occur among the
   labels of  2 hits / (mass + labels),  0 where none does. Over all labels that count: hits are the
   sum of p[l], mass that of p[c] (or of p[c]^2 where `square`), labels are those of class c. */
struct pnet_dice {
    struct pnet_targets targets;
    const float *x; /* [rows, classes] */
    bool square;
};
size_t pnet_cpu_dice_work(const struct pnet_dice *d);
/* slope [2, classes], unless NULL, gets the loss's derivatives by the hits, then by the mass: in double,
   as the two nearly cancel where the loss is small. */
void pnet_cpu_dice(const struct pnet_dice *d, float *loss, double *slope, void *work);
void pnet_cpu_dice_backward(const struct pnet_dice *d, const double *slope, const float *gloss,
    bool add, float *gx, void *work);

/* Lovasz-softmax (Berman, Triki, Blaschko, 2018): the Jaccard loss's convex extension of the errors
   of softmax(x), mean over the classes that occur among the labels; 0 where none does.
   gprob [rows, classes], unless NULL, gets the loss's derivative by the probabilities. */
size_t pnet_cpu_lovasz_work(const struct pnet_targets *t);
void pnet_cpu_lovasz(
    const struct pnet_targets *t, const float *x, float *loss, float *gprob, void *work);
/* gx (+)= gloss[0] * the gradient of the logits x behind the softmax, from that of the
   probabilities. */
void pnet_cpu_lovasz_backward(struct pnet_count rows, int32_t classes, const float *x,
    const float *gprob, const float *gloss, bool add, float *gx);

/* loss[1] = mean of (x - y)^2 over n elements, 0 for none; gx (+)= gloss[0] * 2 / n * (x - y). */
size_t pnet_cpu_mse_work(void);
void pnet_cpu_mse(struct pnet_count n, const float *x, const float *y, float *loss, void *work);
void pnet_cpu_mse_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx);

/* The same for the mean of h(x - y) with h(d) = d^2 / 2 up to |d| = delta > 0, and
   delta (|d| - delta / 2) beyond (Huber, 1964); and for the mean of |x - y|, whose gradient is 0
   where the two are equal. Workspaces are those of the squared error. */
void pnet_cpu_huber(
    struct pnet_count n, double delta, const float *x, const float *y, float *loss, void *work);
void pnet_cpu_huber_backward(struct pnet_count n, double delta, const float *x, const float *y,
    const float *gloss, bool add, float *gx);
void pnet_cpu_l1(struct pnet_count n, const float *x, const float *y, float *loss, void *work);
void pnet_cpu_l1_backward(
    struct pnet_count n, const float *x, const float *y, const float *gloss, bool add, float *gx);

/* best[row] = the class with the largest score, the lowest one among equals. */
void pnet_cpu_best_class(struct pnet_count rows, int32_t classes, const float *x, int32_t *best);
/* Counts of label rows: correct[2] = {best agrees with the label, labels that count}. */
size_t pnet_cpu_correct_work(void);
void pnet_cpu_correct(
    const struct pnet_targets *t, const int32_t *best, double correct[2], void *work);
/* The same where a label agrees if its class is among the k with the largest scores, the lower class
   first among equals. k = 1 asks for the best class: NaN counts as the largest score in class 0, and
   as the smallest elsewhere. */
void pnet_cpu_top_k(
    const struct pnet_targets *t, int32_t k, const float *x, double correct[2], void *work);
/* matrix[label * classes + best] = label rows of that pair. */
size_t pnet_cpu_confusion_work(int32_t classes);
void pnet_cpu_confusion(
    const struct pnet_targets *t, const int32_t *best, double *matrix, void *work);

#endif
