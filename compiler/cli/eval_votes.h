/* eval --votes: metrics of the classes that votes give. */
#ifndef PNET_CLI_EVAL_VOTES_H
#define PNET_CLI_EVAL_VOTES_H

#include "compiler/cli/compute.h"
#include "compiler/cli/run.h"
#include "compiler/cli/weights.h"

/* What eval was asked for besides its plain evaluation. */
struct votes_request {
    const char *model; /* the file */
    int64_t copies;
    const struct tile_options *tiles; /* of fragments */
};

/* Runs the net of the model by votes on all clouds of a loader with batches of one. Sets `v` to the run's metrics that follow
   from the counts of labels by predicted class, such as `iou` and `accuracy`; the caller frees it. PNET_USAGE: there is none, or
   the net has no scores of classes for each point of one cloud. */
enum pnet_status pnet_cli_eval_votes(const struct run *run, const struct weights *w,
    const struct votes_request *r, struct pnet_loader *l, struct pnet_evaluation *v,
    struct pnet_error *e);

#endif
