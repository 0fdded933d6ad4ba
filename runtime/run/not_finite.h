/* Finds where a step of training gets numbers that are not finite. */
#ifndef PNET_RUNTIME_NOT_FINITE_H
#define PNET_RUNTIME_NOT_FINITE_H

#include "runtime/run/runner.h"

enum { PNET_NOT_FINITE_TEXT = 320 };

/* Runs the batch of `slot` once more, layer by layer, with the random numbers of the last forward pass, and writes a sentence
   about the first layer that makes a number which is not finite from numbers which are: "the first such number is in the
   results of `enc.conv` (conv): row 3, column 5 of [100, 64]". `slot` must be prepared, and forward must have run.
   Parameters are read; the contents of the arena, gradients and running statistics are lost. */
enum pnet_status pnet_not_finite(
    struct pnet_runner *s, int slot, char text[PNET_NOT_FINITE_TEXT], struct pnet_error *e);

#endif
