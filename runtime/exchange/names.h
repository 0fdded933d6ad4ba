/* Names of weights in other libraries. */
#ifndef PNET_RUNTIME_EXCHANGE_NAMES_H
#define PNET_RUNTIME_EXCHANGE_NAMES_H

#include "runtime/exchange/layout.h"
#include "runtime/train/name_index.h"
#include "runtime/train/renamed.h"

/* Returns the last word of a name: behind its last dot. */
const char *pnet_last_word(const char *name);
bool pnet_name_is_kernel(const char *name); /* its last word is "kernel" */

/* Names the tensors of a library's file as pnet does: by the map, then "kernel" at the end is "weight" where the library says so.
   Counters that no layer of pnet has ("num_batches_tracked") are left out. PNET_USAGE: two tensors have one name; `map_name` is
   what the message calls the map. On failure there is nothing to free. */
enum pnet_status pnet_names_theirs(enum pnet_library l, const struct pnet_safetensors *file,
    const struct pnet_name_rules *map, const char *map_name, struct pnet_renamed *r,
    struct pnet_error *e);

/* A map, to be read backwards. Refers to it. */
struct pnet_naming {
    enum pnet_library library;
    const struct pnet_name_rules *map;
    const char *map_name;                /* for messages */
    struct pnet_name_index theirs, ours; /* the rules by their left and by their right side */
};
/* False: memory is out, and there is nothing to free. */
bool pnet_naming_new(enum pnet_library l, const struct pnet_name_rules *map, const char *map_name,
    struct pnet_naming *n);
void pnet_naming_free(struct pnet_naming *n);
/* Returns the name that the library has for a weight of that kind: the map backwards, where the first rule counts whose result
   the map turns into `name` again. The caller frees it. NULL with PNET_USAGE: there is none; or out of memory. */
char *pnet_name_theirs(
    const struct pnet_naming *n, const char *name, enum pnet_param_kind kind, struct pnet_error *e);

/* The map in a YAML file: `{FROM: TO, ...}`, as weights_map of a run config. PNET_USAGE: it is no such map. The caller frees *r
   with pnet_name_rules_free, also on failure. */
enum pnet_status pnet_names_read(const char *path, struct pnet_name_rules *r, struct pnet_error *e);

#endif
