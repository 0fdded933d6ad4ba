/* The registration recall of 3DMatch from the information matrices of its gt.info, as GeoTransformer's and Predator's
   evaluation computes it: a pair counts where the pose found leaves a root mean square below 0.2 m
   (pnet_register_info_rmse). Metrics find poses, and the index has the matrices: this brings both together. */
#ifndef PNET_COMPILER_CLI_INFORMATION_H
#define PNET_COMPILER_CLI_INFORMATION_H

#include "runtime/data/dataset.h"
#include "runtime/train/evaluate.h"

struct information_sums;

struct information {
    const struct pnet_dataset *data;
    enum pnet_split split;
    struct information_sums *sums; /* [lines], of the evaluation's */
    int lines;
};

/* Tells whether the index has a matrix for any pair of the split. */
bool pnet_cli_information_is_given(const struct pnet_dataset *d, enum pnet_split split);

/* Adds the evaluation of entry `index`: each line with a pose gets `info_rmse_m`. */
enum pnet_status pnet_cli_information_add(
    struct information *n, int64_t index, struct pnet_evaluation *v, struct pnet_error *e);

/* Ends the evaluation of all entries: lines of metrics that find poses get the recall and its means. Frees the sums. */
enum pnet_status pnet_cli_information_finish(
    struct information *n, struct pnet_evaluation *v, struct pnet_error *e);

#endif
