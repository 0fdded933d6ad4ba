/* A synthetic data set in the place of an older one. */
#ifndef PNET_RUNTIME_SYNTH_REPLACE_H
#define PNET_RUNTIME_SYNTH_REPLACE_H

#include "runtime/base/error.h"

#include <stdbool.h>

/* Where FOLDER/dataset.yaml is not there: nothing to do. Else PNET_USAGE, or with `replace` the
   clouds that it names as pnet_synth_generate names them (SPLIT/NUMBER.ply, NUMBER_source.ply,
   NUMBER_target.ply) are removed, then the index. Other files stay, whatever the index says of
   them. Stopped in the middle, the index is still there to name the rest. */
enum pnet_status pnet_synth_make_room(const char *folder, bool replace, struct pnet_error *e);

#endif
