/* Trained weights, given to a command by name. */
#ifndef PNET_COMPILER_CLI_WEIGHTS_H
#define PNET_COMPILER_CLI_WEIGHTS_H

#include "compiler/cli/cli.h"
#include "runtime/run/choices.h"
#include "runtime/data/input_map.h"
#include "runtime/train/weights.h"

struct weights {
    struct pnet_weights from;
    struct pnet_input_map map; /* of the checkpoint; empty else */
    bool told;                 /* pnet_cli_weights_setting has printed its notices */
    char *params;              /* copy that the sets point into */
};

enum pnet_status pnet_cli_weights_open(const char *path, struct weights *w, struct pnet_error *e);
void pnet_cli_weights_close(struct weights *w);
/* The mode, precision and params with which a model is run. */
struct setting {
    unsigned degrade;
    bool mode_known, precision_known; /* false: neither the command line nor the weights set it */
    enum pnet_precision precision;
    bool sets_known; /* the weights record their params, so a run config's params do not count */
    struct text_list sets; /* "name=value": params of the weights, then the user's */
};
/* Decides how weights are run: as they were trained, unless the command line says otherwise. Prints a notice on stderr for each
   option that contradicts the training, for a precision that the device lacks, and for weights that record another version of
   the definitions of the geometry, or none. `m` and `degrade` come from pnet_cli_check_model_options. */
enum pnet_status pnet_cli_weights_setting(struct weights *w, const struct model_options *m,
    unsigned degrade, struct setting *s, struct pnet_error *e);
/* Prints the same notices for weights from which a training in that mode starts. */
void pnet_cli_weights_start(const struct weights *w, unsigned degrade);
/* Binds `plan` to device, precision and algorithm of the options, with the algorithms that the checkpoint was trained with unless
   --algo is given. Algorithms for another device or precision are ignored, damaged ones too, with a notice on stderr. The
   caller frees *b. */
enum pnet_status pnet_cli_weights_bind(const struct weights *w, const struct model_options *m,
    enum pnet_precision precision, const struct pnet_plan *plan, struct pnet_bound **b,
    struct pnet_error *e);
#endif
