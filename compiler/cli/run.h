/* Opens model, config and data set together, for train, eval and compare. */
#ifndef PNET_COMPILER_CLI_RUN_H
#define PNET_COMPILER_CLI_RUN_H

#include "compiler/cli/cli.h"
#include "compiler/cli/weights.h"
#include "runtime/train/config.h"
#include "runtime/data/dataset.h"
#include "runtime/train/train.h"

struct run_options {
    struct model_options model;
    const char *config_path;
    const char *data;             /* instead of the config's */
    const char *weights;          /* the same: what a training starts from */
    int64_t seed;                 /* -1: the config's */
    int64_t steps;                /* 0: the config's */
    struct text_list config_sets; /* KEY=VALUE */
    bool without_optimizer;
    struct seconds autotune; /* of trainings; its value is the budget */
    bool autotune_all;
    const char *command; /* what was typed, for the report; or NULL */
};
enum { AUTOTUNE_SECONDS = 30 };
/* Options of commands that train. */
#define TRAIN_OPTIONS(r)                                                                           \
    {"without-optimizer", 0, OPT_FLAG, &(r)->without_optimizer, NULL,                              \
        "a finished training leaves no state of the optimiser"},                                   \
        {"autotune", 0, OPT_SECONDS, &(r)->autotune, "[=SECONDS]",                                 \
            "measure which algorithms of convolutions are fastest, for at most 30 s"},             \
    {                                                                                              \
        "autotune-all", 0, OPT_FLAG, &(r)->autotune_all, NULL,                                     \
            "measure also algorithms whose last bits vary from run to run"                         \
    }
#define RUN_OPTIONS(r)                                                                             \
    {"config", 'c', OPT_TEXT, &(r)->config_path, "RUN.yaml", "the run config"},                    \
        {"data", 0, OPT_TEXT, &(r)->data, "DATASET", "data set, in place of that of the config"},  \
        {"seed", 0, OPT_COUNT, COUNT(&(r)->seed, 0, INT64_MAX), "N",                               \
            "seed, in place of that of the config"},                                               \
        {"steps", 0, OPT_COUNT, COUNT(&(r)->steps, 1, UINT32_MAX), "N",                            \
            "number of steps, in place of that of the config"},                                    \
        {"set-config", 0, OPT_LIST, &(r)->config_sets, "KEY=VALUE",                                \
            "set a key of the config, as lr=0.01; may be repeated"},                               \
        MODEL_OPTIONS(&(r)->model)

/* Returns "pnetc NAME ARGUMENTS", quoted for a shell; the caller frees it. NULL: out of memory. */
char *pnet_command_text(const char *name, int argc, char **argv);

struct run {
    struct run_options o; /* options not on the command line are filled from the config */
    struct pnet_config *config;
    char *config_text; /* the effective config */
    char *overrides;   /* options that override the config, a line each */
    struct pnet_dataset *data;
    struct pnet_compilation *compilation;
    const struct pnet_plan *plan;
    double *class_weights;
    enum pnet_precision precision;
    char *params; /* `sets` as "name=value" lines, with distinct names */
    struct text_list sets;
};

/* Opens config, data and model. Returns 0, or the exit code with a message on stderr; then nothing is left open. `s`: how the
   given weights are run (NULL for training); the config decides what `s` leaves unknown. */
int pnet_cli_run_open(struct run *run, const struct run_options *o, const char *model,
    enum pnet_purpose_kind purpose, const struct setting *s);
/* Trains in that mode; the mode of command line and config is ignored. */
int pnet_cli_run_open_in_mode(
    struct run *run, const struct run_options *o, const char *model, unsigned degrade);
void pnet_cli_run_close(struct run *run);

/* Refuses --autotune together with --algo. Returns 0, or the exit code with a message. */
int pnet_cli_check_autotune(const struct run_options *o);
enum pnet_status pnet_cli_run_train(const struct run *run, const char *folder, bool resume,
    struct pnet_train_result *r, struct pnet_error *e);
void pnet_cli_run_print(
    const struct run *run, const struct pnet_train_result *r, const char *folder);
enum pnet_status pnet_cli_run_print_json(
    const struct run *run, const struct pnet_train_result *r, struct pnet_error *e);

struct pnet_json;
void pnet_cli_print_evaluation(
    const struct pnet_evaluation *v, char *const *classes, int class_count);
void pnet_cli_json_evaluation(
    struct pnet_json *j, const char *key, const struct pnet_evaluation *v);

#endif
