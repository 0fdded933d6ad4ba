/* --autotune: measures which algorithm forms each sum of each convolution fastest, on a batch of the training itself. */
#ifndef PNET_RUNTIME_TUNE_H
#define PNET_RUNTIME_TUNE_H

#include "runtime/run/runner.h"
#include "runtime/run/tune_cache.h"

struct pnet_tune_options {
    double
        seconds; /* budget: sums that are not measured by then keep the fixed table's algorithm */
    bool all;    /* also algorithms whose last bits vary from run to run */
    /* For tests, in the place of clocks; NULL: the real ones. Seconds of one sum, and seconds since some moment. */
    double (*measure)(void *context, const struct pnet_exec *x, enum pnet_direction direction,
        enum pnet_conv_algo algo);
    double (*now)(void *context);
    void *context;
};

/* The state of a sum. */
enum pnet_tuned {
    PNET_TUNED_NOT,  /* the layer does not form it, or time ran out (`left`) */
    PNET_TUNED_HERE, /* measured */
    PNET_TUNED_KNOWN /* known from the cache, or from an equal layer */
};

struct pnet_tune_line {
    const char *path; /* path of the layer in the plan */
    struct pnet_algos algos;
    enum pnet_tuned from[PNET_DIRECTIONS];
    double seconds[PNET_DIRECTIONS],
        standard[PNET_DIRECTIONS]; /* seconds of the algorithm, and of the fixed table's */
};

/* Owns its lines. */
struct pnet_tuning {
    struct pnet_tune_line *lines; /* [count], one for each layer */
    int count;
    int measured, known, left; /* sums */
    double seconds;
};

/* Measures on a prepared slot of a runner that is used for nothing else: it loses running statistics, gradients and the
   contents of the arena. The runner is bound to the fixed table, with `choosing`. Algorithms take part if they give the
   same bits every time (or any, with `all`), in the precision of the bound plan, with a workspace of at most 64 MiB or that
   of the fixed table's. An algorithm is chosen if it is at least 5% faster. Results are added to `cache`. */
enum pnet_status pnet_tune(struct pnet_runner *s, int slot, const struct pnet_tune_options *o,
    struct pnet_tune_cache *cache, struct pnet_tuning *t, struct pnet_error *e);
void pnet_tuning_free(struct pnet_tuning *t);

/* Returns sums to the fixed table if their algorithm takes a larger workspace at the counts `c`. `b` is bound to the fixed
   table. Adds their number to *changed. */
enum pnet_status pnet_tuning_save_memory(struct pnet_tuning *t, const struct pnet_bound *b,
    const struct pnet_counts *c, int *changed, struct pnet_error *e);
/* Binds the measured plan to `target` with the algorithms found. */
enum pnet_status pnet_tuning_bind(const struct pnet_tuning *t, const struct pnet_plan *p,
    const struct pnet_target *target, struct pnet_bound **b, struct pnet_error *e);
/* Returns a short table of the layers whose algorithms are not the fixed table's, for the caller to free; NULL: out of
   memory. */
char *pnet_tuning_print(const struct pnet_tuning *t);

#endif
