/* Votes for the class of a point: a network labels changed copies of a cloud, in fragments with one point of each voxel, and the
   probabilities of a point are added, as the field evaluates segmentation (Pointcept's test of semantic segmentation). */
#ifndef PNET_RUNTIME_VOTES_H
#define PNET_RUNTIME_VOTES_H

#include "kernels/geometry.h"
#include "runtime/plan/plan.h"

/* Copies of a cloud, in this order: turned about z by 0, 90, 180 and 270 degrees; the same scaled by 0.95; by 1.05; these twelve
   with x mirrored. All about the centroid of the points; fields called `normal` turn along. 13 of them are the protocol of
   Pointcept. */
enum { PNET_VOTES_MOST = 24 };

struct pnet_voting {
    int copies; /* 1 to PNET_VOTES_MOST */
    /* of fragments: as many as the fullest voxel of a copy has points; fragment f has of each voxel with n points the one of rank
       f mod n, in the order of the cloud. base 0: a copy is one fragment */
    struct pnet_grid grid;
};

/* Voting on the finest grid of the plan. copies: 1 to PNET_VOTES_MOST. */
struct pnet_voting pnet_voting_new(const struct pnet_plan *p, int copies);

/* The work on one cloud. */
struct pnet_voting_work {
    int64_t fragments; /* of all copies */
    int64_t computed;  /* points of all fragments */
};

/* Computes the scores of a fragment: *scores [rows, width] in the order of its rows, to be freed. */
typedef enum pnet_status pnet_vote(
    void *context, const struct pnet_batch *fragment, float **scores, struct pnet_error *e);

/* Runs `vote` on all fragments of the points of the input `input`, the only one that the plan reads, of a batch of one sample on
   the host. *scores: [rows, width] in the order of the batch, freed by the caller: the logarithms of the mean probabilities
   (softmax of the scores) of each point, so that their softmax gives these means. PNET_NO_MEMORY; the errors of `vote`. */
enum pnet_status pnet_votes(const struct pnet_plan *p, const struct pnet_batch *b, int input,
    const struct pnet_voting *v, pnet_vote *vote, void *context, float **scores,
    struct pnet_voting_work *work, struct pnet_error *e);

#endif
