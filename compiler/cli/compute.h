/* The result of a net for a cloud: read whole, tile by tile, or by votes. */
#ifndef PNET_CLI_COMPUTE_H
#define PNET_CLI_COMPUTE_H

#include "compiler/cli/tiles.h"
#include "runtime/train/votes.h"

struct computing {
    struct pnet_runner *runner;
    int input;                       /* of the model, whose points the result has */
    struct pnet_tiled_options tiles; /* without an edge: clouds are read whole */
    struct pnet_voting voting;       /* without copies: there are no votes */
    bool quiet;
};

#define VOTES_OPTION(count)                                                                        \
    {                                                                                              \
        "votes", 0, OPT_COUNT, COUNT(count, 1, PNET_VOTES_MOST), "N",                              \
            "add the probabilities of N turned, scaled and mirrored copies, voxel by voxel; 13 "   \
            "is "                                                                                  \
            "usual"                                                                                \
    }

/* Decides how results come about: by tiles (pnet_cli_tiling), and by votes, 0: none. PNET_USAGE: votes are asked for, and the
   result has no scores of classes for each point of the only cloud that the net reads. */
enum pnet_status pnet_cli_computing(const struct tile_options *tiles, int64_t votes,
    const struct pnet_plan *p, const struct model_options *m, struct computing *c,
    struct pnet_error *e);

/* When the parts of the work on a cloud ended, seconds. */
struct moments {
    double begun, loaded, prepared, computed;
};

/* Computes the result of a batch: *result is as pnet_runner_result gives it, and freed by the caller. `name` is the cloud's.
   Sets m->prepared and m->computed. */
enum pnet_status pnet_cli_compute(const struct computing *c, const char *name,
    const struct pnet_batch *b, float **result, int64_t *rows, struct moments *m,
    struct pnet_error *e);

#endif
