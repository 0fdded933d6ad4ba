/* Prints the kernels of the convolutions and linear layers of a plan. */
#ifndef PNET_CLI_PLAN_KERNELS_H
#define PNET_CLI_PLAN_KERNELS_H

#include "runtime/base/json.h"
#include "runtime/run/slot.h"

/* Prints a line for each layer on standard output, with the kernels of its forward, dF and dW as far as the schedule has
   them. */
enum pnet_status pnet_cli_print_kernels(
    const struct pnet_bound *b, const struct pnet_counts *c, struct pnet_error *e);
/* Writes the same as the member "kernels": {device, architecture (if one was asked for), layers}. */
enum pnet_status pnet_cli_print_json_kernels(const struct pnet_bound *b,
    const struct pnet_counts *c, struct pnet_json *j, struct pnet_error *e);

#endif
