/* The texts that a run config was read from: for runtime/train/config.c, and for runtime/train/config_text.c, which prints
   them. */
#ifndef PNET_RUNTIME_CONFIG_ORIGIN_H
#define PNET_RUNTIME_CONFIG_ORIGIN_H

#include "runtime/base/yaml.h"

enum { PNET_CONFIG_KEYS = 37 };

/* By the keys of pnet_config_key. */
struct pnet_config_origin {
    struct pnet_yaml *file;
    struct pnet_yaml *overrides[PNET_CONFIG_KEYS];        /* NULL: none */
    const struct pnet_yaml_node *nodes[PNET_CONFIG_KEYS]; /* in one of these; NULL: not given */
};

/* Returns the number of a key; -1: there is no key of that name. */
int pnet_config_find(const char *name);

#endif
