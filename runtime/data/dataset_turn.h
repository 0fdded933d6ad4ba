/* Pairs whose source is turned at random, so that finding their poses is harder than for the turns between real scans. An entry
   of a data set says how far:

     {log: gt.log, clouds: cloud_bin_*.ply, turn: xyz}

   as `rotate` of augment.h does. The turn is about the origin of the source's file, so that the translation of the pose
   does not change. It depends only on the split and the number of the pair in it: every run, in training and in
   evaluation, draws the same turns. */
#ifndef PNET_RUNTIME_DATASET_TURN_H
#define PNET_RUNTIME_DATASET_TURN_H

#include "runtime/data/augment.h"
#include "runtime/data/dataset.h"

/* Draws the turn of pair `number` of the split, and turns the pair's pose and information matrix with it. */
void pnet_pair_turn(
    const struct pnet_augment *how, enum pnet_split split, uint32_t number, struct pnet_pair *pair);
/* Turns the points of the source and its offset; not its fields. */
void pnet_pair_turn_source(const struct pnet_pair *pair, struct pnet_cloud *source);

#endif
