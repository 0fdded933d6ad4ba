/* Results of a net as columns of the cloud whose points they belong to. */
#ifndef PNET_COMPILER_CLI_RESULT_COLUMNS_H
#define PNET_COMPILER_CLI_RESULT_COLUMNS_H

#include "runtime/io/cloud.h"

#include <stdbool.h>
#include <stdint.h>

/* Columns of the input that were called as columns of the result are, and now are called input_NAME. */
struct kept_columns {
    char list[200]; /* their names before: "class, score" */
    int count;
};

/* Returns the class of the highest score. */
int pnet_cli_best(const float *scores, int width);
/* Computes the softmax of one row, p[width], and returns the class. */
int pnet_cli_probabilities(const float *scores, int width, double *p);

/* Add the columns of the result, [rows of the net, width], to a cloud with all rows of its file: class and score; or feature_0,
   feature_1 ... row_of[file row]: the row of the result, or -1: the class is -1, numbers are NaN; NULL: all rows, in order.
   PNET_NO_MEMORY. */
enum pnet_status pnet_cli_add_classes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, int width, struct kept_columns *kept, struct pnet_error *e);
enum pnet_status pnet_cli_add_features(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, int width, struct kept_columns *kept, struct pnet_error *e);
/* Sets red, green and blue to the colour of the class, in the place of those of the input; 0 where there is no row. */
enum pnet_status pnet_cli_colour_classes(struct pnet_cloud *c, const float *result,
    const int64_t *row_of, int width, struct pnet_error *e);

#endif
