/* A step of training taken apart: the time of every layer, and of the optimiser. */
#ifndef PNET_BENCH_NET_STEPS_H
#define PNET_BENCH_NET_STEPS_H

#include "bench/net.h"
#include "runtime/run/runner.h"
#include "runtime/run/updater.h"

/* On the CPU each kernel is timed by itself. On a GPU forward and backward are recorded with steps in sequence, and once
   more with a mark after each step: a step finds the caches as in a training, and waits for no host. What the marks
   add to a recording is taken off its steps in equal parts. Then they are recorded as a runner records them, with
   concurrent steps: once all steps, once the convolutions alone. `s` has a batch in slot 0, `u` has
   made a step, `r->steps` has room for all steps of the plan. */
enum pnet_status pnet_bench_net_time_steps(struct pnet_runner *s, struct pnet_updater *u,
    int repeat, struct net_result *r, struct pnet_error *e);

#endif
