/* From a weights file of another library to one of a model, and back. docs/weights.md is the page for users. */
#ifndef PNET_RUNTIME_EXCHANGE_EXCHANGE_H
#define PNET_RUNTIME_EXCHANGE_EXCHANGE_H

#include "runtime/exchange/layout.h"
#include "runtime/train/name_rules.h"

/* What both directions need. The caller owns all of it. */
struct pnet_exchange {
    /* Compiled without fusion, for evaluation, or for inference if the weights of one value alone are meant. */
    const struct pnet_plan *plan;
    enum pnet_library library;
    struct pnet_axes axes;
    const struct pnet_name_rules *map;
    const char *map_name; /* for messages */
};

enum pnet_exchange_kind {
    PNET_EXCHANGE_TAKEN,   /* the tensor became the weight, or the weight the tensor */
    PNET_EXCHANGE_MISFIT,  /* the tensor has the weight's name, and another shape or type */
    PNET_EXCHANGE_MISSING, /* the model's weight is not in the file */
    PNET_EXCHANGE_LEFT,    /* the tensor has the name of no weight */
    PNET_EXCHANGE_IGNORED, /* the tensor is a counter that no layer of pnet has */
    PNET_EXCHANGE_KINDS
};

/* A tensor, a weight, or both. Names point into the file, the plan and the result. */
struct pnet_exchange_line {
    enum pnet_exchange_kind kind;
    const char *theirs;         /* NULL: MISSING */
    const char *renamed;        /* LEFT: the name after the map */
    const char *ours;           /* NULL: LEFT, IGNORED */
    bool unread;                /* LEFT: the model has such a weight, on which nothing depends */
    enum pnet_tensor_type type; /* of the tensor */
    int dims, want_dims;        /* want_dims -1: the library has no such layer */
    int64_t shape[PNET_TENSOR_DIMS]; /* of the tensor */
    int64_t want
        [PNET_TENSOR_DIMS]; /* of the weight: in pnet; of a MISFIT its usual shape in the library */
    const char *other; /* TAKEN by import: a layout that has the tensor's shape, too; or NULL */
};

/* In the order of the model; then what is left, in the order of the file. Owns its arrays, and names that it made. */
struct pnet_exchanged {
    struct pnet_exchange_line *lines; /* [count] */
    size_t count;
    size_t counts[PNET_EXCHANGE_KINDS];
    struct pnet_safetensor *tensors; /* [tensor_count] those to write */
    size_t tensor_count;
    float *numbers;
    char **names; /* [name_count] */
    size_t name_count;
};

/* Finds the model's weights among the tensors of the library's file, and reorders them. `name` is the file, for messages. What
   does not fit is in the result, not an error. PNET_BAD_DATA: a weight has numbers that are not finite. PNET_USAGE: the map
   gives two tensors one name. *r refers to the file and the plan; on failure there is nothing to free. */
enum pnet_status pnet_import_weights(const struct pnet_exchange *x, const char *name,
    const struct pnet_safetensors *file, struct pnet_exchanged *r, struct pnet_error *e);

/* The inverse: reorders the weights of a file of pnet for the library. PNET_BAD_MODEL: one is missing or has another shape, or
   the library has no such layer. PNET_BAD_DATA as above. PNET_USAGE: the map leads to no name for a weight. */
enum pnet_status pnet_export_weights(const struct pnet_exchange *x, const char *name,
    const struct pnet_safetensors *file, struct pnet_exchanged *r, struct pnet_error *e);

void pnet_exchanged_free(struct pnet_exchanged *r);

/* What an export says of itself in the metadata of its file: the library, the version of the layout (PNET_EXCHANGE_LAYOUT) and
   that of pnet. It points into itself. Exports of layout 1 have no such record. */
enum { PNET_EXPORT_KEYS = 4 };
struct pnet_export_record {
    struct pnet_metadata items[PNET_EXPORT_KEYS];
    char layout[16];
};
void pnet_export_record(enum pnet_library l, struct pnet_export_record *r);

/* Checks such a record, if the file has one. PNET_USAGE: the file was exported for another library than `l`. PNET_BAD_DATA: its
   layout is of a later pnet, or a value is none that pnet writes. `name` is the file, for messages. */
enum pnet_status pnet_export_record_check(enum pnet_library l, const char *name,
    const struct pnet_safetensors *file, struct pnet_error *e);

#endif
