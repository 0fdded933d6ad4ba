/* A map for a file whose names differ from those of a model, from the shapes of its layers and their order. */
#ifndef PNET_RUNTIME_EXCHANGE_PROPOSE_H
#define PNET_RUNTIME_EXCHANGE_PROPOSE_H

#include "runtime/exchange/exchange.h"

#include <stdio.h>

struct pnet_proposal {
    size_t named;   /* layers of the model whose names the file has */
    size_t alone;   /* layers that one layer of the file alone fits */
    size_t ordered; /* layers that have others of their shapes, matched in order */
    size_t open;    /* layers of the model without a proposal */
};

/* Writes a map as YAML, whose comments say what each line rests on. Names that rest on order alone are guesses (name_rules.h), so
   readers refuse the map until each is confirmed. A layer of the file fits a layer of the model if it has the
   same weights, in a shape of the library. Where as many layers of the file as of the model fit each other, they are matched in
   order: that of the file, or of its names if the file has them in the order of the alphabet, as other programs write it. The
   plan is as for pnet_import_weights; x->map is not used. */
enum pnet_status pnet_propose_map(const struct pnet_exchange *x,
    const struct pnet_safetensors *file, FILE *out, struct pnet_proposal *p, struct pnet_error *e);

#endif
