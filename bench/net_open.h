/* A network with its batch in a runner, and its gradients. */
#ifndef PNET_BENCH_NET_OPEN_H
#define PNET_BENCH_NET_OPEN_H

#include "bench/net.h"
#include "runtime/run/runner.h"
#include "runtime/run/updater.h"

/* All parameters of a plan, on the host: drawing them takes longer than copying them to the other runners. */
struct net_weights {
    const struct pnet_plan *plan;
    float *data; /* [plan->param_elements] */
};

/* Ready to run. */
struct network {
    struct pnet_compilation *compilation;
    const struct pnet_plan *plan;
    struct pnet_bound *bound;
    struct pnet_batch *batch;
    struct pnet_runner *runner;
    struct pnet_updater updater;
    bool training;
};

/* Without weights it gets fresh ones, and is the plain network: on the CPU, every node apart, convolutions by a listing of
   their own. pnet_bench_net_close ends it whatever the status is. */
enum pnet_status pnet_bench_net_open(const struct net_options *o, const struct scene *s,
    bool training, struct net_weights *w, struct network *n, struct pnet_error *e);
void pnet_bench_net_close(struct network *n);

/* The weights that it has now; the caller frees w->data. */
enum pnet_status pnet_bench_net_weights_take(
    const struct network *n, struct net_weights *w, struct pnet_error *e);

/* One forward and backward of a training: the sum of the losses, and all gradients on the host, at the offsets of `as`, a
   plan of the same model: gradients [as->trained_elements], to be freed. In fp16 the loss is scaled as a training scales it,
   and the scale taken off again. */
enum pnet_status pnet_bench_net_gradients_of(struct network *n, const struct pnet_plan *as,
    double *loss, float **gradients, struct pnet_error *e);

#endif
