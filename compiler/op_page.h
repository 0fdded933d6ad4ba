/* What the op table says of a layer, loss or metric, for readers. */
#ifndef PNET_COMPILER_OP_PAGE_H
#define PNET_COMPILER_OP_PAGE_H

#include "runtime/plan/op.h"

#include <stdbool.h>
#include <stdio.h>

/* Writes the page of a row: as `pnetc ops NAME` prints it, or as it stands in docs/layers.md. */
void pnet_op_page(const struct pnet_op *op, bool markdown, FILE *out);

/* Room for a line of text about an argument. */
enum { PNET_ARGUMENT_TEXT = 512 };
/* Writes "whole number, default 3" to `text`, and returns it. */
const char *pnet_argument_type(const struct pnet_arg *a, char text[PNET_ARGUMENT_TEXT]);
/* Writes the half sentence that an argument has for help, with its range. */
const char *pnet_argument_help(const struct pnet_arg *a, char text[PNET_ARGUMENT_TEXT]);

#endif
