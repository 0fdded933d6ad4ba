/* --autotune: which algorithm forms each sum of each convolution fastest, on a batch of the training itself. */
#ifndef PNET_RUNTIME_TUNE_H
#define PNET_RUNTIME_TUNE_H

#include "runtime/run/session.h"
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

/* What is known of a sum. */
enum pnet_tuned {
    PNET_TUNED_NOT,  /* the layer does not form it, or time ran out (`left`) */
    PNET_TUNED_HERE, /* measured */
    PNET_TUNED_KNOWN /* in the cache, or that of an equal layer */
};

struct pnet_tune_line {
    const char *path; /* the plan's */
    struct pnet_algos algos;
    enum pnet_tuned from[PNET_DIRECTIONS];
    double seconds[PNET_DIRECTIONS],
        standard[PNET_DIRECTIONS]; /* of the algorithm, and of the fixed table's */
};

/* Owns its lines. */
struct pnet_tuning {
    struct pnet_tune_line *lines; /* [count], a layer each */
    int count;
    int measured, known, left; /* sums */
    double seconds;
};

/* Measures on a prepared slot of a session that is not used for anything else: its weights' running statistics, gradients
   and arena are spoiled. It is bound to the fixed table, `choosing`. An algorithm takes part that gives the same bits every
   time (or with `all`), in the precision of the bound plan, with a workspace of at most 64 MiB, or of the fixed table's. To be
   chosen it must be 5% faster. `cache` gets what is measured. */
enum pnet_status pnet_tune(struct pnet_session *s, int slot, const struct pnet_tune_options *o,
    struct pnet_tune_cache *cache, struct pnet_tuning *t, struct pnet_error *e);
void pnet_tuning_free(struct pnet_tuning *t);

/* Back to the fixed table for sums whose algorithm takes a larger workspace, at the sizes of `c`, of a plan that is bound to
   the fixed table. Adds how many to *changed. */
enum pnet_status pnet_tuning_save_memory(struct pnet_tuning *t, const struct pnet_bound *b,
    const struct pnet_counts *c, int *changed, struct pnet_error *e);
/* Binds the plan that was measured to `target` with what was found. */
enum pnet_status pnet_tuning_bind(const struct pnet_tuning *t, const struct pnet_plan *p,
    const struct pnet_target *target, struct pnet_bound **b, struct pnet_error *e);
/* A short table of the layers that do not take the fixed table's algorithms, to be freed; NULL: out of memory. */
char *pnet_tuning_print(const struct pnet_tuning *t);

#endif
