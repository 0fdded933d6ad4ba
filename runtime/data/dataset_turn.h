/* Pairs whose source is turned at random: what finds their poses is asked for more than the turns that scans happen to
   have. An entry of a data set says how far:

     {log: gt.log, clouds: cloud_bin_*.ply, turn: xyz}

   as `rotate` of augment.h does. The turn is about the origin of the source's file, so that the translation of the pose
   stays what it was. It depends on the split and the number of the pair in it alone, whatever the run, in training as in
   evaluation. */
#ifndef PNET_RUNTIME_DATASET_TURN_H
#define PNET_RUNTIME_DATASET_TURN_H

#include "runtime/data/augment.h"
#include "runtime/data/dataset.h"

/* Draws the turn of pair `number` of the split, and changes the pose and the information matrix to what they are after it. */
void pnet_pair_turn(
    const struct pnet_augment *how, enum pnet_split split, uint32_t number, struct pnet_pair *pair);
/* Turns the points of the source and its offset; not its fields. */
void pnet_pair_turn_source(const struct pnet_pair *pair, struct pnet_cloud *source);

#endif
