/* What the commands of pnetc share: options, messages, interrupts. */
#ifndef PNET_COMPILER_CLI_CLI_H
#define PNET_COMPILER_CLI_CLI_H

#include "compiler/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/thread.h"
#include "runtime/run/choices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
    OPT_FLAG,    /* bool */
    OPT_TEXT,    /* const char * */
    OPT_OUTPUT,  /* const char *: a file or folder that the command writes */
    OPT_LIST,    /* struct text_list: may be repeated */
    OPT_COUNT,   /* struct count: 12, 2M, 1.5k, 1e6 */
    OPT_LENGTH,  /* double, metres, more than 0: 5cm, 50mm, 0.05 */
    OPT_BYTES,   /* size_t: 8GiB, 512MiB, 1000000 */
    OPT_SECONDS, /* struct seconds: --name, or --name=N */
    OPT_CHOICE,  /* struct choice: one of its names */
    OPT_CHOICES, /* struct choice: some of its names, with commas between */
    OPT_WORD,    /* struct choice: any text; its names are the usual ones */
};

struct seconds {
    bool given;
    double value; /* unchanged without =N */
};

/* A whole number with its range. COUNT makes one for an option in the same block. */
struct count {
    int64_t *value, least, most;
};
#define COUNT(value, least, most)                                                                  \
    &(struct count)                                                                                \
    {                                                                                              \
        value, least, most                                                                         \
    }

/* A text and the names that it may be, or that completion offers. CHOICE makes one for an option in the same block. */
struct choice {
    const char **value;
    const char *const *names; /* then NULL */
};
#define CHOICE(value, ...) CHOICE_OF(value, ((const char *const[]){__VA_ARGS__, NULL}))
#define CHOICE_OF(value, names)                                                                    \
    &(struct choice)                                                                               \
    {                                                                                              \
        value, names                                                                               \
    }

enum { TEXT_LIST_MOST = 256 };

struct text_list {
    const char *items[TEXT_LIST_MOST];
    int count;
};

struct option {
    const char *name; /* long, without dashes */
    char letter;      /* short one, or 0 */
    enum option_type type;
    void *target;
    const char *argument; /* name of the value in the help; NULL for flags */
    const char *help;
};

/* A command of pnetc. `run` gets the words after the name of the command and returns the exit code. */
struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
};

struct usage {
    const char *synopsis; /* "pnetc train MODEL.pnet --config RUN.yaml -o RUNDIR" */
    const char *text;     /* paragraphs */
    const char *examples; /* lines */
};

/* Parses `argv` into the targets; words that are no options go to `words` (at most max_words). Handles --help (prints, then
   done = true) and --help=table (prints the same for programs, pnet_cli_print_table). Returns 0, or 2 with a message on stderr
   that names the nearest option. */
int pnet_cli_parse_options(int argc, char **argv, const struct option *options, int option_count,
    const struct usage *usage, const char **words, int max_words, int *word_count, bool *done);

/* Prints what a command takes for programs that make pages and completions of it; listing.c describes the lines. */
void pnet_cli_print_table(const struct usage *usage, const struct option *options, int count);
/* Prints a line for each command, with the table of what it takes. `group`: what stands before their names, such as "data ". */
int pnet_cli_print_commands(const char *group, const struct command *commands, int count);

/* Prints "pnetc: ..." on stderr, in one line: control characters, of names of files too, are escapes. */
void pnet_cli_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "pnetc: ..." on stderr and returns the status, so that a command can end with it. */
int pnet_cli_complain(const struct pnet_error *e);
/* Does the same when memory is out. */
int pnet_cli_out_of_memory(void);
int pnet_cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Options that several commands take. */
struct model_options {
    const char *mode;         /* native, voxel */
    const char *degrade;      /* centre,neighbour,kernel */
    const char *device;       /* cpu, cuda[:N] */
    struct pnet_device where; /* what pnet_cli_check_model_options made of it */
    const char *precision;
    enum pnet_precision products; /* what pnet_cli_check_model_options made of it */
    const char *algo;
    enum pnet_conv_algo sums; /* what pnet_cli_check_model_options made of it */
    struct text_list sets;
    size_t memory;
    bool json, quiet, verbose;
    int64_t threads;
};
#define MODEL_OPTIONS(m)                                                                           \
    {"mode", 0, OPT_CHOICE, CHOICE(&(m)->mode, "native", "voxel"), "MODE",                         \
        "native (default), or voxel: all three degradations"},                                     \
        {"degrade", 0, OPT_CHOICES, CHOICE(&(m)->degrade, "centre", "neighbour", "kernel"),        \
            "LIST", "single degradations: centre,neighbour,kernel"},                               \
        {"set", 0, OPT_LIST, &(m)->sets, "NAME=VALUE",                                             \
            "set a param of the model; may be repeated"},                                          \
        {"device", 0, OPT_WORD, CHOICE(&(m)->device, "cpu", "cuda"), "DEVICE",                     \
            "cpu (default), cuda or cuda:N"},                                                      \
        {"precision", 0, OPT_CHOICE, CHOICE_OF(&(m)->precision, pnet_precision_names), "NAME",     \
            "fp32 (default), tf32, bf16 or fp16: how products are formed on a GPU"},               \
        {"algo", 0, OPT_CHOICE, CHOICE_OF(&(m)->algo, pnet_conv_algo_names), "NAME",               \
            "of convolutions, to compare: mvmr-k, mvmr-i, mvmr-j, im2col, gather-gemm-scatter, "   \
            "implicit-gemm"},                                                                      \
        {"memory", 0, OPT_BYTES, &(m)->memory, "SIZE", "budget, as 8GiB"},                         \
        {"threads", 'j', OPT_COUNT, COUNT(&(m)->threads, 1, PNET_THREADS_MOST), "N",               \
            "threads (default: all cores)"},                                                       \
        {"json", 0, OPT_FLAG, &(m)->json, NULL, "print for machines"},                             \
        {"quiet", 'q', OPT_FLAG, &(m)->quiet, NULL, "print results only"},                         \
    {                                                                                              \
        "verbose", 'v', OPT_FLAG, &(m)->verbose, NULL, "print more"                                \
    }

/* Checks mode, device, precision and algorithm, and sets the number of threads. Returns 0, or the exit code with a message on
   stderr. */
int pnet_cli_check_model_options(struct model_options *m, unsigned *degrade);
/* Checks the device of the options (pnet_device_check), and says once, unless they are quiet, why it is slow. */
enum pnet_status pnet_cli_device(const struct model_options *m, struct pnet_error *e);
/* Adds a param, "name=value": of two values of one name the later one counts. Returns false if the list is full. */
bool pnet_cli_put_set(struct text_list *list, const char *set);
/* Returns the params as lines, which the caller frees; NULL: out of memory. */
char *pnet_cli_join_sets(const struct text_list *list);
/* Returns the memory budget: --memory, or the memory of the device that is free now. */
size_t pnet_cli_memory_budget(const struct model_options *m);

/* Compiles the model and prints its errors and warnings on stderr. Returns NULL, with *code set, if the model has errors. */
struct pnet_compilation *pnet_cli_compile_model(const char *path,
    const struct pnet_compile_options *o, const struct model_options *m, int *code);

bool pnet_cli_use_colour(FILE *f);

/* SIGINT, SIGTERM and, unless it is ignored, SIGHUP set a flag; a second SIGINT or SIGTERM ends the process at once. Called
   where an end at once would lose something: before that, a signal ends the process as by default. */
void pnet_cli_catch_interrupts(void);
bool pnet_cli_interrupted(void);
/* Returns the exit code of a command that was interrupted: 128 + the number of the signal. */
int pnet_cli_interrupt_code(void);
/* Makes writing to a closed pipe fail instead of ending the process (SIGPIPE). */
void pnet_cli_ignore_closed_pipes(void);

int pnet_command_check(int argc, char **argv);
int pnet_command_fmt(int argc, char **argv);
int pnet_command_plan(int argc, char **argv);
int pnet_command_graph(int argc, char **argv);
int pnet_command_train(int argc, char **argv);
int pnet_command_infer(int argc, char **argv);
int pnet_command_eval(int argc, char **argv);
int pnet_command_compare(int argc, char **argv);
int pnet_command_register(int argc, char **argv);
int pnet_command_data(int argc, char **argv);
int pnet_command_ops(int argc, char **argv);
int pnet_command_import(int argc, char **argv);
int pnet_command_export(int argc, char **argv);
int pnet_command_info(int argc, char **argv);
int pnet_command_lsp(int argc, char **argv);

#endif
