/* Run configs: what `pnetc train`, `eval` and `compare` need beside the model. YAML; every key but
   `data` may be left out. pnet_config_key() has them all with a line of help each.

     data: rooms                # a folder with a dataset.yaml, or an index
     inputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255}}}  # see input_map.h
     epochs: 20                 # or steps: 500
     batch_size: 4
     optimizer: {name: adamw, beta1: 0.9, beta2: 0.999, eps: 1e-8}
     lr: 0.002
     schedule: {name: onecycle, warmup: 10%}
     augment: {rotate: z, scale: [0.9, 1.1]}                            # see augment.h

   Paths are relative to the config file. */
#ifndef PNET_RUNTIME_CONFIG_H
#define PNET_RUNTIME_CONFIG_H

#include "runtime/augment.h"
#include "runtime/error.h"
#include "runtime/input_map.h"
#include "runtime/optim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pnet_optimizer_config {
    enum pnet_optim_kind kind; /* adamw */
    double momentum;               /* SGD: 0.9 */
    bool nesterov;                 /* SGD: no */
    double beta1, beta2, eps;      /* ADAM, ADAMW: 0.9, 0.999, 1e-8 */
};

enum pnet_schedule_kind {
    PNET_SCHEDULE_CONSTANT,
    PNET_SCHEDULE_STEP,     /* times `gamma` every `every` epochs, or at each of `milestones` */
    PNET_SCHEDULE_COSINE,   /* down to `final` * lr along half a cosine */
    PNET_SCHEDULE_ONECYCLE, /* up from lr / `div` to lr during the warm-up, then down to `final` *
                               lr, both along half a cosine */
    PNET_SCHEDULE_EXPONENTIAL, /* times `gamma` every epoch */
};

enum { PNET_MAX_MILESTONES = 32 };

/* All but ONECYCLE rise linearly from 0 to lr during the warm-up, if there is one. */
struct pnet_schedule_config {
    enum pnet_schedule_kind kind;
    double warmup;                           /* share of the run: 0; onecycle: 0.3 */
    int64_t warmup_steps;                    /* instead of the share; 0: not given */
    double final;                            /* of lr: cosine 0, onecycle 4e-6 */
    double div;                              /* onecycle: 25 */
    double gamma;                            /* step 0.1, exponential 0.95 */
    int64_t every;                           /* step: epochs; 0: milestones */
    int64_t milestones[PNET_MAX_MILESTONES]; /* epochs, ascending */
    int milestone_count;
};

enum pnet_precision {
    PNET_PRECISION_FP32,
    PNET_PRECISION_TF32,
    PNET_PRECISION_BF16,
    PNET_PRECISION_FP16
};

/* Every so many epochs or steps, whichever is not 0; both 0: never. */
struct pnet_interval {
    int64_t epochs, steps;
};

enum pnet_weighting { PNET_WEIGHTS_NONE, PNET_WEIGHTS_BALANCED, PNET_WEIGHTS_LIST };

struct pnet_config {
    char *path; /* of the config, as in messages */
    char *data; /* path of the data set, seen from the current folder; NULL: not given */
    struct pnet_input_map inputs;
    int64_t epochs, steps; /* one of them is 0 */
    int32_t batch_size;
    struct pnet_optimizer_config optimizer;
    double lr;
    struct pnet_schedule_config schedule;
    double weight_decay;
    double clip_grad;   /* largest 2-norm of the gradient; 0: none */
    int32_t accumulate; /* batches a step */
    enum pnet_weighting weighting;
    double *class_weights; /* LIST: [class_weight_count] */
    int class_weight_count;
    struct pnet_augment augment;
    int64_t max_points; /* 0: no cap */
    int workers;        /* threads that load */
    uint64_t cache_bytes;
    bool drop_last, skip_empty;
    uint64_t seed;
    enum pnet_precision precision;
    struct pnet_interval save_every, eval_every;
    char **sets; /* [set_count] "name=value" for the model's params, as --set takes them */
    int set_count;
};

/* A key of the config, for --help and the documentation. */
struct pnet_config_key {
    const char *name;
    const char *standard; /* default as text; "": none */
    const char *help;
};
/* Key `i` in the order of the documentation; NULL beyond the last. */
const struct pnet_config_key *pnet_config_key(int i);

/* Reads a config. On failure *c is NULL; PNET_USAGE for everything wrong in it, with file and line.
 */
enum pnet_status pnet_config_read(const char *path, struct pnet_config **c, struct pnet_error *e);
/* The same from memory; `path` stands in messages, and paths are relative to its folder. */
enum pnet_status pnet_config_parse(
    const char *path, const void *text, size_t size, struct pnet_config **c, struct pnet_error *e);
void pnet_config_free(struct pnet_config *c);

/* The learning rate of step `step` (from 0) of a run of `steps`, with `steps_an_epoch`: lr times
   the schedule. Onecycle after Smith and Topin, "Super-convergence", 2019. */
double pnet_schedule_lr(const struct pnet_schedule_config *s, double lr, int64_t step,
    int64_t steps, int64_t steps_an_epoch);

#endif
