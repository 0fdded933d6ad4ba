/* Trained weights as the commands are given them. */
#ifndef PNET_COMPILER_CLI_WEIGHTS_H
#define PNET_COMPILER_CLI_WEIGHTS_H

#include "compiler/cli/cli.h"
#include "runtime/checkpoint.h"
#include "runtime/choices.h"
#include "runtime/input_map.h"
#include "runtime/session.h"

/* A safetensors file, a checkpoint folder, or a run folder (its best checkpoint, else its last). */
struct weights {
    const char *path;
    struct pnet_checkpoint *checkpoint; /* NULL for a plain file */
    struct pnet_safetensors *file;      /* the weights of either */
    struct pnet_input_map map;          /* of the checkpoint; empty else */
    char *params;                       /* copy the sets point into */
    struct pnet_chosen chosen;          /* of weights_plan */
};

enum pnet_status weights_open(const char *path, struct weights *w, struct pnet_error *e);
void weights_close(struct weights *w);
/* What the params were set to in training, before what the user sets now: into `sets`. */
enum pnet_status weights_sets(
    struct weights *w, const struct text_list *user, struct text_list *sets, struct pnet_error *e);
/* `plan` with the algorithms that the checkpoint was trained with, unless --algo says which; those that are for another
   device or precision are left alone, damaged ones told on stderr. Lives as long as the weights and the plan. */
enum pnet_status weights_plan(struct weights *w, const struct model_options *m,
    const struct pnet_plan **plan, struct pnet_error *e);
/* PNET_BAD_MODEL names the first tensor that does not fit. */
enum pnet_status weights_load(
    const struct weights *w, struct pnet_session *s, struct pnet_error *e);

#endif
