/* Confusion matrices: counts by label, then prediction, [n, n]. */
#ifndef PNET_COMPILER_CLI_MATRIX_H
#define PNET_COMPILER_CLI_MATRIX_H

#include "runtime/base/json.h"

/* Prints a line for each label, with a column for each prediction, on standard output. */
void pnet_cli_print_matrix(const double *matrix, int32_t n, char *const *classes, int class_count);
/* Writes an array of rows. */
void pnet_cli_json_matrix(struct pnet_json *j, const char *key, const double *matrix, int32_t n);

#endif
