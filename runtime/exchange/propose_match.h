/* Which layers of a file may be which layers of a model, by their shapes. Private to propose*.c. */
#ifndef PNET_RUNTIME_EXCHANGE_PROPOSE_MATCH_H
#define PNET_RUNTIME_EXCHANGE_PROPOSE_MATCH_H

#include "runtime/exchange/exchange.h"
#include "runtime/train/renamed.h"

/* The tensors or weights whose names differ in the last word alone. */
struct pnet_layer {
    const char *name; /* [length], without the last word and its dot */
    size_t length;
    size_t *items; /* [count] rows of the file, or parameters */
    size_t count;
    int64_t match; /* of a model's layer: the layer of the file; -1: none */
    bool taken;    /* of a file's layer */
};

struct pnet_layers {
    struct pnet_layer *at; /* [count] */
    size_t count;
    size_t *items; /* of all layers */
};

struct pnet_matching {
    const struct pnet_exchange *x;
    const struct pnet_safetensors *file;
    const struct pnet_renamed *names; /* "kernel" made "weight", no map */
    struct pnet_layers theirs, ours;
};

/* Returns the layer's tensor for a weight of that last word, or NULL. */
const struct pnet_safetensor *pnet_layer_tensor(
    const struct pnet_matching *p, const struct pnet_layer *theirs, const char *word);

/* Sets `match` and `taken` of the layers: first of those whose names are right already, *named of them; then of layers of the
   model that the same layers of the file fit, if both are as many, in their order. alike[ours.count]: how many these were; 0: the
   layer is open, or has its name. */
enum pnet_status pnet_match_layers(
    struct pnet_matching *p, size_t *named, size_t *alike, struct pnet_error *e);

#endif
