/* The overlap of a pair: which part of it both clouds see. */
#ifndef PNET_RUNTIME_DATASET_OVERLAP_H
#define PNET_RUNTIME_DATASET_OVERLAP_H

#include "runtime/data/dataset_pose.h"
#include "runtime/base/error.h"

/* Counts the points of source[sources, 3] that have a point of target[targets, 3] within `radius_m` (> 0) after `pose` has
   moved them. Coordinates are in metres and must be finite. PNET_NO_MEMORY. */
enum pnet_status pnet_overlap(const float *source, int64_t sources, const float *target,
    int64_t targets, const struct pnet_pose *pose, double radius_m, int64_t *number,
    struct pnet_error *e);

#endif
