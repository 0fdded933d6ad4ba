/* Replaces an older synthetic data set by a new one. */
#ifndef PNET_RUNTIME_SYNTH_REPLACE_H
#define PNET_RUNTIME_SYNTH_REPLACE_H

#include "runtime/base/error.h"

#include <stdbool.h>

/* Does nothing if FOLDER/dataset.yaml does not exist. Else returns PNET_USAGE or, with `replace`, removes the clouds that it
   lists with names of pnet_synth_generate (SPLIT/NUMBER.ply, NUMBER_source.ply, NUMBER_target.ply), then the index. Other
   files stay, even if the index lists them. If it is interrupted, the index still lists the rest. */
enum pnet_status pnet_synth_make_room(const char *folder, bool replace, struct pnet_error *e);

#endif
