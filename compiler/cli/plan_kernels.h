/* Which kernels a plan's convolutions and linear layers get. */
#ifndef PNET_CLI_PLAN_KERNELS_H
#define PNET_CLI_PLAN_KERNELS_H

#include "runtime/base/json.h"
#include "runtime/run/slot.h"

/* A line a layer on standard output, with the kernels of its forward, dF and dW as far as the schedule has them. */
enum pnet_status pnet_cli_print_kernels(
    const struct pnet_bound *b, const struct pnet_counts *c, struct pnet_error *e);
/* The same as "kernels": {device, architecture (where one was asked for), layers}. */
enum pnet_status pnet_cli_print_json_kernels(const struct pnet_bound *b,
    const struct pnet_counts *c, struct pnet_json *j, struct pnet_error *e);

#endif
