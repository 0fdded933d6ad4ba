/* Training: from a plan, a run config and a data set to a run folder.

   The folder gets config.yaml, model.pnet, metrics.jsonl, last/ and best/ (checkpoints), and
   report.html, and kernels.yaml if convolutions use other algorithms than the fixed table's. */
#ifndef PNET_RUNTIME_TRAIN_H
#define PNET_RUNTIME_TRAIN_H

#include "runtime/train/checkpoint.h"
#include "runtime/train/config.h"
#include "runtime/data/dataset.h"
#include "runtime/run/bound.h"
#include "runtime/train/evaluate.h"

#include <stdio.h>

/* The position of a training, for a progress line. */
struct pnet_train_progress {
    int64_t step, steps; /* steps done, and all steps */
    int64_t epoch;
    double loss;         /* of the last step; NaN: it found nothing to count */
    double points_per_s; /* over the last steps, loading and geometry included */
    bool evaluating;
    int64_t batch, batches;                   /* while evaluating */
    const struct pnet_evaluation *evaluation; /* just finished, or NULL */
};

struct pnet_train_options {
    const struct pnet_plan *plan;
    const struct pnet_config *config;
    const struct pnet_dataset *data;
    const char *folder; /* folder of the run; created if it is missing */
    const char *model_text;
    const char *config_text;   /* config.yaml of the run folder: pnet_config_print of the config */
    const char *command;       /* command line of the training, for the report; or NULL */
    const char *overrides;     /* options that override the config, a line each; or NULL */
    const char *params;        /* "name=value" lines, kept in checkpoints */
    size_t memory_limit;       /* bytes; 0: none */
    struct pnet_target target; /* the plan is bound to it; measured algorithms replace its own */
    bool resume;
    bool
        without_optimizer; /* best/, and last/ once the training is over, lack the optimiser's state */
    bool algo_given;       /* --algo: the algorithm of the target replaces those of a resumed run */
    bool autotune;         /* --autotune: measures algorithms, unless a resumed run has measured */
    bool autotune_all;     /* also measures algorithms whose last bits vary from run to run */
    double autotune_seconds; /* most time for measuring */
    /* Opens the file that config->weights names; it stays open until the training is over. Not called when a run resumes. */
    enum pnet_status (*open_weights)(
        void *context, const struct pnet_safetensors **file, struct pnet_error *e);
    /* Decides in config->inputs what the colours of the data set are divided by, before anything is loaded. `map`: the input map
       of the checkpoint from which the run resumes, or NULL. May be NULL: each cloud decides for itself. */
    enum pnet_status (*find_ranges)(void *context, const char *map, struct pnet_error *e);
    void (*begun)(void); /* called once, when the first batch is there: before that, nothing is lost
                            if the process ends; or NULL */
    /* Called after each step, while a step waits for its batch, and from batch to batch of a validation; true: save and end
       with PNET_INTERRUPTED; or NULL. The end waits for the batch that is being prepared, the checkpoint does not. */
    bool (*stop)(void);
    void (*progress)(void *context, const struct pnet_train_progress *p); /* or NULL */
    void (*warn)(void *context, const char *text);                        /* or NULL */
    void (*note)(void *context, const char *text); /* notices, of several lines; or NULL */
    void *context;
};

struct pnet_train_result {
    int64_t steps, points; /* of this process */
    int64_t idle_steps;    /* those of them in which no loss found anything to count */
    double seconds;
    size_t peak_bytes;                 /* largest memory of the runner */
    size_t planned_bytes;              /* pnet_runner_planned, of training and validation */
    struct pnet_evaluation validation; /* last one; count 0 where there was none */
};

/* PNET_FAILED: another process trains in the folder, or the run to resume cannot be read. PNET_USAGE:
   without `resume` the folder holds a run. A resume that is refused changes nothing in the folder; a training that
   fails before its first checkpoint because of its inputs leaves nothing there. */
enum pnet_status pnet_train(
    const struct pnet_train_options *o, struct pnet_train_result *r, struct pnet_error *e);
void pnet_train_result_free(struct pnet_train_result *r);

#endif
