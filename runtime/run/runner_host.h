/* What a runner on a GPU leaves to the CPU: the layers with PNET_ON_HOST, and the counts of losses (pnet_runner_mean). */
#ifndef PNET_RUNTIME_RUNNER_HOST_H
#define PNET_RUNTIME_RUNNER_HOST_H

#include "runtime/run/runner.h"

/* Runs a forward step on host copies of all that it reads, with the true counts, and copies the result to the device. Waits
   for the device. */
enum pnet_status pnet_runner_run_on_host(
    const struct pnet_runner *s, int slot, int step, struct pnet_error *e);

#endif
