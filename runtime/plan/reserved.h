/* Names that checkpoints, metrics.jsonl and reports use themselves: no loss or metric is called so. */
#ifndef PNET_RUNTIME_RESERVED_H
#define PNET_RUNTIME_RESERVED_H

#include <stdbool.h>

/* A key that stands beside the names of losses and metrics belongs in here. */
extern const char *const pnet_reserved_names[];
extern const int pnet_reserved_count;

bool pnet_name_is_reserved(const char *name);

#endif
