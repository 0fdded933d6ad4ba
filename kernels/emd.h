/* Earth mover's distance between two point sets of equal size: the mean distance of the pairs of an assignment, found by an
   auction (Bertsekas: A distributed algorithm for the assignment problem, 1979; for point sets Liu et al.: Morphing and
   Sampling Network for Dense Point Cloud Completion, 2020).

   Points of x are persons, those of y of the same sample are objects. Prices begin at 0. In a round each person without an
   object bids for the object with the least distance + price, the lowest one among equals:

     bid = (price + (second least - least)) + eps

   or the next larger number than the price where rounding leaves no more. An object goes to the largest bid, the lowest person
   among equals, at that price; who held it before has none. All this is float32, d = sqrtf((dx * dx + dy * dy) + dz * dz)
   without contraction: the same assignment from every instruction set and number of threads. Once all have an object, the mean
   distance is at most eps above the least possible one, but for rounding of the prices, which may reach the largest distance
   of the sample.

   A sample without an assignment has -1 for all its points: one of its sets is empty, the sets have different sizes, a
   coordinate is not finite, or a squared distance is beyond float32. */
#ifndef PNET_KERNELS_EMD_H
#define PNET_KERNELS_EMD_H

#include "kernels/sets.h"

struct pnet_emd {
    struct pnet_set_pair sets; /* nearest points are not read */
    double eps;     /* least raise of a price, in the units of the coordinates; above 0 */
    int32_t rounds; /* at most so many in a sample */
    /* Assign the persons that are left behind the last round: again and again the pair of least (distance, person, object)
       among those still without a partner. Else they have -1. */
    bool complete;
};

/* partner [rows of x]: the row of y that each point is assigned to. */
PNET_BOTH(size_t, emd_assign_work, const struct pnet_emd *e);
PNET_BOTH(void, emd_assign, const struct pnet_emd *e, int32_t *partner, void *work);

/* What an assignment amounts to. mean [samples]: the mean distance of partners in each sample, in double: 0 where a set is
   empty, NaN where a person of two sets that are not has no partner. loss[1]: the mean of these over samples, 0 without
   samples; or NULL. */
PNET_BOTH(
    void, emd, const struct pnet_set_pair *sets, const int32_t *partner, double *mean, float *loss);

/* Gradients of the loss times gloss[0], with the assignment constant: (x - y) / max(distance, 1e-6) / (points of the sample *
   samples), and its negative; 0 where a set is empty, NaN where a sample has no assignment. Nobody may be left without a
   partner in a sample that has one. */
PNET_BOTH(void, emd_backward, const struct pnet_set_pair *sets, const int32_t *partner,
    const float *gloss, const struct pnet_set_gradients *g);

#endif
