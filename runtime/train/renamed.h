/* The tensors of a weights file under the names that a model may have for them. */
#ifndef PNET_RUNTIME_RENAMED_H
#define PNET_RUNTIME_RENAMED_H

#include "runtime/train/name_rules.h"
#include "runtime/train/safetensors.h"

/* Refers to the file, and owns the rest. Zeroed: nothing to free. */
struct pnet_renamed {
    const struct pnet_safetensors *file;
    char **names;  /* [file->count] of the tensors after the map */
    bool *left;    /* [file->count] tensors that are never found, such as counters of steps */
    size_t *order; /* [count] rows of the file that can be found, by name */
    size_t count;
};

/* Names the tensors of the file by the map. The caller may then change names in place and leave tensors out, and calls
   pnet_renamed_index. On failure there is nothing to free. */
enum pnet_status pnet_renamed_new(const struct pnet_safetensors *file,
    const struct pnet_name_rules *map, struct pnet_renamed *r, struct pnet_error *e);
/* Makes tensors findable. PNET_USAGE: two have one name; `map` is what the message calls the map. */
enum pnet_status pnet_renamed_index(struct pnet_renamed *r, const char *map, struct pnet_error *e);
/* Returns the tensor's row in the file, or -1. */
int64_t pnet_renamed_find(const struct pnet_renamed *r, const char *name);
void pnet_renamed_free(struct pnet_renamed *r);

#endif
