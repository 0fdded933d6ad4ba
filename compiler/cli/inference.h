/* What the parts of `infer` share. */
#ifndef PNET_CLI_INFERENCE_H
#define PNET_CLI_INFERENCE_H

#include "compiler/cli/class_codes.h"
#include "compiler/cli/cloud_feed.h"
#include "compiler/cli/cloud_options.h"
#include "compiler/cli/compute.h"
#include "compiler/cli/origin.h"
#include "compiler/cli/ranges.h"
#include "compiler/cli/weights.h"

struct label_format;

struct inference {
    const struct pnet_plan *plan;
    struct pnet_bound *bound;
    struct pnet_runner *runner;
    struct weights weights;
    struct cloud_feed feed;
    struct pnet_origin origin;
    struct offset_doubt offsets;
    bool renamed; /* columns of a cloud were, and it was told */
    bool colour, json, quiet, verbose;
    struct hint_options hints;
    bool settled; /* what colours are divided by */
    struct few_warnings outside;
    struct class_codes codes; /* of --classification; none: the result has columns of its own */
    const struct label_format *labels; /* the output is files of labels alone, or NULL */
    struct computing computing;
};

/* Warns of a cloud, the k-th of the feed, that does not lie where those of the training, or those before, lay as the model reads
   them. */
void pnet_cli_doubt_frame(
    struct inference *f, int k, const struct pnet_frame *frame, const char *path);

/* Adds the result of points, [rows, width], to their cloud `c`, which gets all rows of its file (pnet_cloud_restore).
   row_of[row of the file]: the row of the result, or -1; NULL: each has its own. */
enum pnet_status pnet_cli_add_result(struct inference *f, const char *input, struct pnet_cloud *c,
    const float *result, const int64_t *row_of, int width, struct pnet_error *e);

/* Makes a cloud without rows that has what rows of `from`, with results of that width, have in common. The caller frees it with
   pnet_cli_free_like, before what `from` owns. */
enum pnet_status pnet_cli_make_like(struct inference *f, const char *input,
    const struct pnet_cloud *from, int width, struct pnet_cloud *like, struct pnet_error *e);
void pnet_cli_free_like(struct pnet_cloud *like);
/* Finds what `output` would be refused for, whatever the rows hold, before they are computed: pnet_cloud_check_like of such a
   cloud. */
enum pnet_status pnet_cli_check_like(struct inference *f, const char *input,
    const struct pnet_cloud *from, int width, const char *output, struct pnet_error *e);

/* Returns how many of the numbers are not finite. */
int64_t pnet_cli_not_finite(const float *numbers, int64_t count);
/* Warns that `bad` of `count` numbers of a result are not finite, if there are any: later steps of a user may not notice. */
void pnet_cli_warn_not_finite(const char *input, int64_t bad, int64_t count);

#endif
