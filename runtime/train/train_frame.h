/* Where the clouds of a training lie: recorded in its checkpoints, and told where that makes results wrong. */
#ifndef PNET_RUNTIME_TRAIN_FRAME_H
#define PNET_RUNTIME_TRAIN_FRAME_H

#include "runtime/plan/frame.h"
#include "runtime/train/train.h"

struct pnet_train_frame {
    const struct pnet_train_options *o;
    bool
        coordinates; /* the model computes with coordinates that are less the offset of each cloud */
    bool told;       /* that offsets differ */
    struct pnet_frame seen;
};

void pnet_train_frame_begin(struct pnet_train_frame *f, const struct pnet_train_options *o);
/* Goes on with the record of a checkpoint: its input map. */
enum pnet_status pnet_train_frame_resume(
    struct pnet_train_frame *f, const char *input_map, struct pnet_error *e);
/* Adds a batch that is trained on. Warns once if clouds have different offsets and the model computes with coordinates. */
void pnet_train_frame_add(struct pnet_train_frame *f, const struct pnet_frame *batch);
/* Warns, likewise, of the clouds of a validation. */
void pnet_train_frame_compare(struct pnet_train_frame *f, const struct pnet_frame *validated);
/* Returns the text of the config's input map with the record: the box of completion, and the offset where it matters. NULL: out
   of memory. The caller frees it. */
char *pnet_train_frame_print(const struct pnet_train_frame *f);

#endif
