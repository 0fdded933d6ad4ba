/* Run configs: the settings of `pnetc train`, `eval` and `compare`, in YAML. Every key but
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

#include "kernels/precision.h"
#include "runtime/data/augment.h"
#include "runtime/base/error.h"
#include "runtime/data/input_map.h"
#include "runtime/train/name_rules.h"
#include "runtime/run/optim.h"
#include "runtime/train/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An interval in epochs or in steps, whichever is not 0; both 0: never. */
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
    struct pnet_optim optimizer;   /* with the weight decay */
    struct pnet_schedule schedule; /* with lr */
    double warmup_share; /* share of all steps if the warm-up is given so; 0: as in `schedule` */
    double clip_grad;    /* largest 2-norm of the gradient; 0: none */
    int32_t accumulate;  /* batches a step */
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
    /* Settings that the command line has options for, too. */
    unsigned degrade; /* of enum pnet_degrade */
    char *device;     /* "cuda:1"; NULL: not given, the CPU */
    char *algo;       /* of convolutions; NULL: not given */
    double autotune;  /* seconds to measure for; 0: no measuring */
    bool autotune_all, without_optimizer;
    uint64_t memory_bytes; /* the budget; 0: not given */
    int threads;           /* 0: not given, all cores */
    char *
        weights; /* weights file or checkpoint to start from, seen from the current folder; NULL: none */
    struct pnet_name_rules weights_map, freeze, rates;
    struct pnet_config_origin *origin; /* texts of the keys, for pnet_config_print */
};

/* A key of the config, for --help and the documentation. */
struct pnet_config_key {
    const char *name;
    const char *standard; /* default as text; "": none */
    const char *help;
};
/* Returns key `i` in the order of the documentation; NULL beyond the last. */
const struct pnet_config_key *pnet_config_key(int i);

/* What a resumed training does if the value of a key differs. */
enum pnet_on_resume {
    PNET_RESUME_TOLD,    /* it resumes, and a notice names the key */
    PNET_RESUME_REFUSED, /* refused: the data position or the optimiser's state would not fit */
    PNET_RESUME_CHECKED, /* the value is compared with the checkpoint instead of the old config */
};

enum pnet_on_resume pnet_config_on_resume(const char *key);

/* Reads a config. On failure *c is NULL; PNET_USAGE: anything in it is wrong; the message names file and line. */
enum pnet_status pnet_config_read(const char *path, struct pnet_config **c, struct pnet_error *e);
/* Does the same from memory; messages name `path`, and paths are relative to its folder. */
enum pnet_status pnet_config_parse(
    const char *path, const void *text, size_t size, struct pnet_config **c, struct pnet_error *e);
void pnet_config_free(struct pnet_config *c);

/* A value that replaces the one in the file. */
struct pnet_config_override {
    const char *key;
    const char *value; /* as YAML on one line */
    const char *from;  /* of messages: "--set-config" */
};
/* Does the same as pnet_config_read with overrides. Of several overrides of one key the last one counts; `steps` and `epochs`
   replace each other. */
enum pnet_status pnet_config_read_with(const char *path,
    const struct pnet_config_override *overrides, int count, struct pnet_config **c,
    struct pnet_error *e);

/* Returns the effective config as text: each key that has a value on a line of its own, in the order of the documentation, with
   defaults, overrides and the version of pnet; the path of the data set is absolute. The text reads as the same config from any
   folder. `sets` ([set_count] "name=value" with distinct names) replaces the key `set`. The caller frees the result; NULL: out
   of memory. */
char *pnet_config_print(const struct pnet_config *c, const char *const *sets, int set_count);
/* PNET_USAGE: the absolute path of the data set or of weights is not UTF-8, so that no text could name it. */
enum pnet_status pnet_config_check_paths(const struct pnet_config *c, struct pnet_error *e);
/* Compares two texts of pnet_config_print; the callback gets each key whose value differs, with both values ("": not given). If a
   text has no `version`, data sets are not compared. PNET_USAGE: `was` is no config; the message calls it `name`. */
enum pnet_status pnet_config_compare(const char *name, const char *was, const char *now,
    void (*differs)(void *context, const char *key, const char *was, const char *now),
    void *context, struct pnet_error *e);

#endif
