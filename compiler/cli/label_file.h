/* Results as the label files of data sets: a number for each point of the cloud's file, in its order, and nothing else. */
#ifndef PNET_COMPILER_CLI_LABEL_FILE_H
#define PNET_COMPILER_CLI_LABEL_FILE_H

#include "compiler/cli/class_codes.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/data/input_map.h"

#include <stdbool.h>
#include <stdint.h>

struct label_format {
    const char *name;   /* as --format calls it */
    const char *ending; /* of the names of its files */
    bool by_ending;     /* a name that ends so is such a file, whatever --format says */
    int bytes;          /* of a label, unsigned, little-endian; 0: a line of text */
    int most;           /* the largest label */
};

/* Finds the format of labels that the output has, *found, or NULL. `output` (or NULL) is the file, or with `many` a folder of
   files; `format` is --format, or NULL. PNET_USAGE: the name of the file does not end as those of the format. */
enum pnet_status pnet_cli_label_format(const char *output, const char *format, bool many,
    const struct label_format **found, struct pnet_error *e);
/* Writes FOLDER/NAME and the ending; NAME is `stem`, without the .pcd of nuScenes' clouds. */
void pnet_cli_name_labels(const struct label_format *format, const char *folder, const char *stem,
    int length, char path[PNET_PATH_MOST]);

/* Decides the label of each of the model's `count` classes: what --classification says (`text`, or NULL), else the smallest label
   that the training mapped to the class, else, where the weights know of none and there is no `text`, the number of the class.
   Says, unless `quiet`, what is not certain. The caller frees `codes` with pnet_cli_free_codes. PNET_USAGE: as
   pnet_cli_parse_codes, or a label does not fit the format; PNET_NO_MEMORY. */
enum pnet_status pnet_cli_label_codes(const struct label_format *format, const char *text,
    const struct pnet_input_map *map, int count, bool quiet, struct class_codes *codes,
    struct pnet_error *e);

/* Writes the labels of `rows` points. result and row_of: as pnet_cli_add_classes has them; points that were dropped on loading,
   and those of classes without a code, get 0. PNET_NO_MEMORY; PNET_FAILED and PNET_USAGE as pnet_output_commit. */
enum pnet_status pnet_cli_write_labels(const char *path, const struct label_format *format,
    const float *result, const int64_t *row_of, int64_t rows, const struct class_codes *codes,
    struct pnet_error *e);

#endif
