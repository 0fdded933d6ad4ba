/* The error of a network's gradients by parameter, by rows of the level, and by precision. */
#ifndef PNET_BENCH_NET_GRADIENTS_H
#define PNET_BENCH_NET_GRADIENTS_H

#include "bench/net_open.h"

enum { NET_PRECISIONS = 4 }; /* of enum pnet_precision */

/* Sums over elements of a gradient. */
struct net_sums {
    double difference, want, x, product; /* |x - want|^2, |want|^2, |x|^2, x want */
};

/* Of one parameter, of the parameters of the steps of one level, or of all of them. */
struct net_gradient {
    const char *name; /* in the plan's memory */
    const char *op;   /* of the layer; NULL of a level and of all */
    int level;        /* of the layer's result; -1 of all */
    int64_t rows;     /* of that level */
    int parameters;
    struct net_sums sums[NET_PRECISIONS];
};

/* The gradients of a network in every precision of a device, beside those of the plain network. */
struct net_gradients {
    struct network plain;
    struct net_weights weights;
    double loss;
    float *want; /* [plan->trained_elements] */
    bool has[NET_PRECISIONS];
    double losses[NET_PRECISIONS];
    float *x[NET_PRECISIONS];                  /* like `want`; NULL where it has none */
    struct net_gradient all, *params, *levels; /* by share of the squared error in `sorted` */
    int param_count, level_count;
    enum pnet_precision sorted;
};

/* |x - want| / |want|; the cosine of the angle between both. */
double pnet_bench_net_sums_error(const struct net_sums *s);
double pnet_bench_net_sums_cosine(const struct net_sums *s);
/* Of the squared error of all parameters. */
double pnet_bench_net_gradient_share(
    const struct net_gradient *part, const struct net_gradient *all, enum pnet_precision p);

/* Sums by parameter and by level, from `want` and `x`. */
void pnet_bench_net_gradients_add_up(struct net_gradients *g);
void pnet_bench_net_gradients_free(struct net_gradients *g);

/* Compares the gradients on `piece`, prints tables or JSON, and writes the folder of `o->write`. The exit code; an error is
   said on stderr. */
int pnet_bench_net_gradients_run(const struct net_options *o, const struct scene *piece);

/* Prints them to standard output: by level, and by parameter, all or the ten with the largest shares. */
void pnet_bench_net_gradients_print(
    const struct net_options *o, const struct scene *piece, const struct net_gradients *g);
enum pnet_status pnet_bench_net_gradients_print_json(const struct net_options *o,
    const struct scene *piece, const struct net_gradients *g, struct pnet_error *e);

/* Writes the plain network, its batch, its weights and all gradients to a folder, for bench/autocast.py, whose head
   describes the files. */
enum pnet_status pnet_bench_net_write(const char *folder, const struct net_options *o,
    const struct net_gradients *g, struct pnet_error *e);

#endif
