/* The origin of the coordinates that trained weights read: --origin. */
#ifndef PNET_COMPILER_CLI_ORIGIN_H
#define PNET_COMPILER_CLI_ORIGIN_H

#include "compiler/cli/cli.h"
#include "compiler/cli/weights.h"
#include "runtime/data/origin.h"

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

#endif
