/* --tile: clouds that a network reads tile by tile. */
#ifndef PNET_CLI_TILES_H
#define PNET_CLI_TILES_H

#include "compiler/cli/cli.h"
#include "runtime/train/tiled.h"

struct tile_options {
    double edge, margin; /* metres; 0: not given */
    bool blend;
};
#define TILE_LENGTHS(t)                                                                            \
    {"tile", 0, OPT_LENGTH, &(t)->edge, "LENGTH",                                                  \
        "read a cloud in cubes of this edge, each with a margin: the memory of one of them"},      \
    {                                                                                              \
        "margin", 0, OPT_LENGTH, &(t)->margin, "LENGTH",                                           \
            "of tiles (default: the receptive field, which gives the results of the whole "        \
            "cloud)"                                                                               \
    }
#define TILE_OPTIONS(t)                                                                            \
    TILE_LENGTHS(t),                                                                               \
    {                                                                                              \
        "blend", 0, OPT_FLAG, &(t)->blend, NULL,                                                   \
            "take the mean of results of a point where margins of tiles overlap"                   \
    }

/* Decides how tiles are made for the result of a plan, or for its losses and metrics: the options that were given, and the plan's
   receptive field. A notice says where results will not be those of the whole cloud. *t is zeroed where there is no --tile.
   PNET_USAGE: --margin or --blend without it; the result has no row for each point, losses or metrics count more than labels of
   points, or the plan reads several clouds; the field has no bound, and there is no --margin. */
enum pnet_status pnet_cli_tiling(const struct tile_options *o, const struct pnet_plan *p,
    const struct model_options *m, struct pnet_tiled_options *t, struct pnet_error *e);

/* Says on stderr what was computed of a cloud, or of all (name NULL). */
void pnet_cli_say_tiled(
    const char *name, const struct pnet_tiled_work *work, const struct pnet_tiling *t);

/* Returns the number of clouds that a plan reads. */
int pnet_cli_clouds_read(const struct pnet_plan *p);

/* pnet_tiled_result with progress on stderr, unless it is quiet, and a line about the work at its end. `name` is the cloud's. */
enum pnet_status pnet_cli_tiled_result(struct pnet_runner *s, const struct pnet_batch *b, int input,
    const struct pnet_tiled_options *t, const char *name, bool quiet, float **result,
    struct pnet_error *e);

/* pnet_tiled_evaluate with a line about the work, unless it is quiet. Signals that pnet_cli_catch_interrupts catches end it. */
enum pnet_status pnet_cli_tiled_evaluate(struct pnet_runner *s, struct pnet_loader *l,
    const struct pnet_tiled_options *t, bool quiet, struct pnet_evaluation *v,
    struct pnet_error *e);

#endif
