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

   Where many points of x lie close together, they all bid for the same object, one of them gets it, and prices rise by little
   more than eps: far more rounds than points. A `scaled` auction is made for this. It differs in two ways:

   - It has phases (Bertsekas, Castanon: Auction algorithms for network flow problems, 1992). With D the diagonal of the box
     around both sets of the sample, the first one's eps is the largest eps 4^k that is at most D / 8, k >= 0, and each later
     one's a quarter of the eps before it. A phase with k > 0 is over behind the first round that leaves few without an
     object: at most n / 1024 of the n persons, rounded down. Then all objects are taken back; prices stay. The mean distance
     is at most eps above the least one whatever the prices are at the beginning of the last phase.
   - In a round with more than few persons without an object, a person need not bid for the best one. Of those with
     trunc((distance + price) * (2 / eps)) as low as that of the best, all in float32 with the eps of the phase, it takes the one
     with the least PNET_EMD_STRIDE * object + h(person, round) modulo 2^32, so that bids spread out. Where that is not the best
     one, `second least` in its bid is the least, and `least` its own distance + price: the price still rises by some eps / 2.
     Persons, objects and rounds count from 0, within the sample; h is pnet_emd_hash.

   A sample without an assignment has -1 for all its points: one of its sets is empty, the sets have different sizes, a
   coordinate is not finite, or a squared distance is beyond float32. */
#ifndef PNET_KERNELS_EMD_H
#define PNET_KERNELS_EMD_H

#include "kernels/sets.h"

enum {
    PNET_EMD_TIMES = 4,   /* eps of a phase by that of the next one */
    PNET_EMD_PART = 1024, /* of the persons, one in so many is few */
};
#define PNET_EMD_STRIDE 0x9E3779B1u
#define PNET_EMD_BACK 0xE8B2F51u /* PNET_EMD_STRIDE times that is 1 modulo 2^32 */

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint32_t
    pnet_emd_hash(uint32_t person, uint32_t round)
{
    uint32_t h = (person * 0x9E3779B1u) ^ (round * 0x85EBCA77u);
    h = (h ^ h >> 15) * 0x2C1B3C6Du;
    h = (h ^ h >> 12) * 0x297A2D39u;
    return h ^ h >> 15;
}

struct pnet_emd {
    struct pnet_set_pair sets; /* nearest points are not read */
    double eps;     /* least raise of a price, in the units of the coordinates; above 0 */
    int32_t rounds; /* at most so many in a sample, over all its phases */
    /* Assign the persons that are left behind the last round: again and again the pair of least (distance, person, object)
       among those still without a partner. Else they have -1. */
    bool complete;
    bool scaled; /* see above */
    /* The partner of a person that is left behind the last round is written as PNET_EMD_LEFT - row. */
    bool tell;
};
enum { PNET_EMD_LEFT = -2 };

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
