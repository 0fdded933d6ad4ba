/* Options for the clouds of a command, and for the columns that feed the model: --input, --map, --config. */
#ifndef PNET_COMPILER_CLI_CLOUD_OPTIONS_H
#define PNET_COMPILER_CLI_CLOUD_OPTIONS_H

#include "compiler/cli/cli.h"
#include "runtime/base/glob.h"
#include "runtime/data/input_map.h"

struct map_options {
    const char *config;    /* a run config, or NULL */
    struct text_list maps; /* FIELD=COLUMN */
};
#define CLOUD_MAP_OPTIONS(m)                                                                       \
    {"map", 0, OPT_LIST, &(m)->maps, "FIELD=COLUMN",                                               \
        "a field of the model from columns, a,b,c or a,b,c*SCALE, or a number; may be repeated"},  \
    {                                                                                              \
        "config", 'c', OPT_TEXT, &(m)->config, "RUN.yaml",                                         \
            "a run config whose `inputs` replace those of the weights"                             \
    }

/* Changes `map`, the input map of the weights, by the options. PNET_USAGE: an option does not fit; the message names it. */
enum pnet_status pnet_cli_map_clouds(struct pnet_input_map *map, const struct map_options *o,
    const struct pnet_input *inputs, int input_count, struct pnet_error *e);

extern const char *const
    *const pnet_cli_cloud_endings; /* "ply" ..: how names of clouds end; then NULL */

/* Lists the files of `inputs` in their order: files, patterns, and folders, which stand for their files with a suffix of a
   cloud format. *many: the results need a folder. */
enum pnet_status pnet_cli_list_clouds(
    const struct text_list *inputs, struct pnet_paths *clouds, bool *many, struct pnet_error *e);

#endif
