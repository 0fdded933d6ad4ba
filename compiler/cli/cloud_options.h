/* Options for the clouds of a command, and for the columns that feed the model: --input, --map, --config, --columns,
   --coordinates, --unit. */
#ifndef PNET_COMPILER_CLI_CLOUD_OPTIONS_H
#define PNET_COMPILER_CLI_CLOUD_OPTIONS_H

#include "compiler/cli/cli.h"
#include "runtime/base/glob.h"
#include "runtime/data/input_map.h"
#include "runtime/io/cloud.h"
#include "runtime/io/unit.h"

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

/* What the command line says about files of clouds that they do not say themselves. */
struct hint_options {
    const char *columns, *coordinates, *unit; /* as given, or NULL */
    char **names;                             /* those of `columns`, or NULL */
    int name_count;
    struct pnet_unit_choice choice; /* that of `unit` */
};
#define CLOUD_HINT_OPTIONS(o)                                                                      \
    {"columns", 0, OPT_TEXT, &(o)->columns, "NAMES",                                               \
        "for columns without names, such as x,y,z,intensity; for .bin, of its records"},           \
        {"coordinates", 0, OPT_TEXT, &(o)->coordinates, "NAME",                                    \
            "the array of an .npz or .h5 that holds the coordinates"},                             \
    {                                                                                              \
        "unit", 0, OPT_TEXT, &(o)->unit, "UNIT",                                                   \
            "of the clouds' numbers: file (what each file states), m, ft, us-ft, cm, mm ..."       \
    }

/* Parses the unit, and splits the names of columns. PNET_USAGE: pnet_cloud_parse_columns; no unit of that name. The
   caller frees `o` with pnet_cli_free_hints. */
enum pnet_status pnet_cli_parse_hints(struct hint_options *o, struct pnet_error *e);
void pnet_cli_free_hints(struct hint_options *o);
/* Reads a cloud, names its columns, and prints the warning about it, if there is one. The names are those of the command line,
   else those of `map` (or NULL); the cloud is placed by `origin`, or NULL. On failure `c` is empty. */
enum pnet_status pnet_cli_read_cloud(const struct hint_options *o, const struct pnet_input_map *map,
    const struct pnet_origin *origin, const char *path, struct pnet_cloud *c, struct pnet_error *e);
/* What pnet_cli_read_cloud knows of files; `o` and `map` must outlive it. */
struct pnet_cloud_hints pnet_cli_hints(
    const struct hint_options *o, const struct pnet_input_map *map);

/* Lists the files of `inputs` in their order: files, patterns, and folders, which stand for their files with a suffix of a
   cloud format, and records them as inputs of the program. *many: the results need a folder. */
enum pnet_status pnet_cli_list_clouds(
    const struct text_list *inputs, struct pnet_paths *clouds, bool *many, struct pnet_error *e);

#endif
