/* What the colours of a command's clouds are divided by, and whether its clouds lie where those of the training lay. Decisions
   that differ from the training's, or from what one cloud alone would get, are printed on stderr. */
#ifndef PNET_COMPILER_CLI_RANGES_H
#define PNET_COMPILER_CLI_RANGES_H

#include "compiler/cli/run.h"
#include "compiler/cli/weights.h"
#include "runtime/data/range_scan.h"

/* Prints a notice; `context` is not used. */
void pnet_cli_say(void *context, const char *text);

/* Decides for the data set of a run, in run->config->inputs: the colours of `splits` count, bit k is split k, and other features
   of `fed`. `map`: the input map of a training, whose ranges are followed; NULL: there is none. `told`: the notices about these
   decisions have been printed. */
enum pnet_status pnet_cli_data_ranges(const struct run *run, unsigned splits, unsigned fed,
    const struct pnet_input_map *map, bool told, struct pnet_error *e);
/* Does the same before a training begins. `text`: the input map of the checkpoint from which it resumes, NULL: it does not.
   PNET_USAGE: the colours would be divided by other numbers than before. */
enum pnet_status pnet_cli_training_ranges(const struct run *run, const char *text,
    const struct pnet_input_map *weights, struct pnet_error *e);

/* Decides for `source`, the ranges of the clouds of infer or register, in the map of the weights; empties `source`. */
enum pnet_status pnet_cli_settle_ranges(
    struct weights *w, struct pnet_ranges *source, struct pnet_error *e);
/* Adds the ranges of the colours of one cloud to `r`. */
enum pnet_status pnet_cli_add_colours(const struct pnet_input_map *map,
    const struct pnet_input *input, const struct pnet_cloud *c, const char *path,
    struct pnet_ranges *r, struct pnet_error *e);

/* Prints the first warnings of a command, and counts all of them. */
struct few_warnings {
    int64_t count;
};
void pnet_cli_few_warn(void *few, const char *text);
/* Prints how many were not printed. */
void pnet_cli_few_end(const struct few_warnings *few);
/* Warns if the colours of a cloud with these ranges alone would be divided by another number, and if another feature lies outside
   of the range that the training has seen. */
void pnet_cli_warn_unusual(const struct pnet_input_map *map, const struct pnet_ranges *r,
    const char *path, struct few_warnings *few);

/* The colours of one cloud, which may come in pieces, that a field `rgb`, else `color`, else `colour`, would find by name. */
enum { COLOUR_FIELDS = 3, COLOUR_CHANNELS = 3 };
struct cloud_colours {
    struct pnet_range of[COLOUR_FIELDS][COLOUR_CHANNELS];
    struct pnet_error faults[COLOUR_FIELDS][COLOUR_CHANNELS]; /* the first one of each */
};
void pnet_cli_colours_begin(struct cloud_colours *k);
/* Adds a piece, whose first row is row `first` of the file. */
void pnet_cli_colours_add(
    struct cloud_colours *k, const struct pnet_cloud *c, int64_t first, const char *path);
/* Finds what they would be divided by; `r` is empty where there are none. PNET_BAD_DATA: numbers that are no colours. */
enum pnet_status pnet_cli_colours_end(
    const struct cloud_colours *k, struct pnet_ranges *r, struct pnet_error *e);
/* Does the same with all clouds of all splits of a data set. */
enum pnet_status pnet_cli_colours_of_dataset(
    const struct pnet_dataset *d, struct pnet_ranges *r, struct pnet_error *e);
/* Prints a line for each range, with the field's name if `named`, else "colours". */
void pnet_cli_print_ranges(const struct pnet_ranges *r, bool named);
void pnet_cli_put_ranges(struct pnet_json *j, const char *key, const struct pnet_ranges *r);

#endif
