/* How clouds become the coordinates that trained weights read, and where that differs from the training: --origin, and what data
   sets say. */
#ifndef PNET_COMPILER_CLI_ORIGIN_H
#define PNET_COMPILER_CLI_ORIGIN_H

#include "compiler/cli/cli.h"
#include "compiler/cli/weights.h"
#include "runtime/data/dataset.h"
#include "runtime/data/input_map.h"

#define ORIGIN_OPTION(text)                                                                        \
    {                                                                                              \
        "origin", 0, OPT_TEXT, text, "X,Y,Z",                                                      \
            "origin of the coordinates that the model reads, metres, or file: that of each file"   \
    }

/* Decides the origin: that of the option (NULL: not given), else that of the weights, else that of the data set, which `origin`
   holds. A notice on stderr says where it is not that of the training. PNET_USAGE. */
enum pnet_status pnet_cli_origin(
    const char *option, const struct weights *w, struct pnet_origin *origin, struct pnet_error *e);
/* Says, for a training that starts from weights, if they were trained with an origin that is not the one of the data set. */
void pnet_cli_origin_start(const struct weights *w, const struct pnet_origin *data);
/* Says if the clouds that the weights were trained on had a unit, and those of the data set have none. */
void pnet_cli_say_unit(const struct weights *w, const struct pnet_dataset *data);
/* What a command has seen of the offsets of its clouds. */
struct offset_doubt {
    bool needed; /* no origin is named, and the net computes with coordinates */
    struct pnet_frame seen;
    bool told;
};
/* Says once if a cloud has another offset than those of the training or, where that recorded none, than the clouds before. */
void pnet_cli_doubt_offset(struct offset_doubt *d, const struct pnet_frame *trained,
    const struct pnet_frame *cloud, const char *path);
/* Compares what the data set of a run that resumes says of its files with what it said before. PNET_USAGE: it says something
   else, so the net would read other numbers. */
enum pnet_status pnet_cli_check_reading(const struct pnet_input_map *was,
    const struct pnet_input_map *now, const char *data, struct pnet_error *e);

#endif
