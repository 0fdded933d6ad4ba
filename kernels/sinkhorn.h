/* Sinkhorn divergence of two point sets (Cuturi: Sinkhorn Distances, 2013; Feydy et al.: Interpolating between Optimal
   Transport and MMD using Sinkhorn Divergences, 2019), the cost of a pair being C = |x - y|^2 / 2:

     S = OT(x, y) - OT(x, x) / 2 - OT(y, y) / 2,   all points of a set weigh the same

   D is the diagonal of the box around both sets of a sample. Potentials f of x, g of y begin at 0. For each eps of the
   schedule D^2, D^2 scaling^2, D^2 scaling^4, .. above (blur D)^2, then for (blur D)^2 itself

     f~_i = -eps ln (1/m sum_j exp((g_j - C_ij) / eps)),   g~ likewise from f;   f = (f + f~) / 2,   g = (g + g~) / 2

   and last f = f~, g = g~ with (blur D)^2 once more: OT(x, y) = mean f + mean g. The potentials a of (x, x) and b of (y, y)
   are symmetric, so OT(x, x) = 2 mean a. All pairs are formed in each step, and none is stored.

   Potentials are float32: S, a difference of their means, is right to some 1e-9 D^2. Gradients do not subtract them.

   Coordinates are taken from the box's centre in units of D, so far apart sets lose no digits beyond those of float32. Of a
   sample with a coordinate that is not finite the loss is NaN. D = 0: the loss is 0, and so are the gradients. */
#ifndef PNET_KERNELS_SINKHORN_H
#define PNET_KERNELS_SINKHORN_H

#include "kernels/sets.h"

struct pnet_sinkhorn {
    struct pnet_set_pair sets; /* nearest points are not read */
    double blur;               /* share of D; above 0 */
    double scaling;            /* above 0, below 1 */
};

/* Potentials of one set, [rows, 4], in units of D^2: that of the other set before and after the last step (f or g), that of
   the set itself before and after it (a or b). */
enum { PNET_SINKHORN_CROSS, PNET_SINKHORN_LAST, PNET_SINKHORN_SELF, PNET_SINKHORN_SELF_LAST };

/* loss[1] = the mean of S over samples, 0 without samples. x_potential, y_potential: for the backward, or NULL. */
PNET_BOTH(size_t, sinkhorn_work, const struct pnet_sinkhorn *s, bool backward);
PNET_BOTH(void, sinkhorn, const struct pnet_sinkhorn *s, float *x_potential, float *y_potential,
    float *loss, void *work);

/* The gradient times gloss[0] with constant potentials, as the envelope theorem has it at convergence; D is constant too:
   1 / (n samples) (sum_j P_ij (x_i - y_j) - sum_k Q_ik (x_i - x_k)), where row i of P is the softmax of (g_j - C_ij) / eps with
   the g before the last step, and Q likewise from a. Exactly 0 where both sets are equal, in the same order. */
PNET_BOTH(void, sinkhorn_backward, const struct pnet_sinkhorn *s, const float *x_potential,
    const float *y_potential, const float *gloss, const struct pnet_set_gradients *g, void *work);

#endif
