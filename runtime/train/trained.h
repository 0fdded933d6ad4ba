/* How weights were trained, as the metadata of their file records it: mode, params, precision, and the version
   of the geometry's definitions. */
#ifndef PNET_RUNTIME_TRAINED_H
#define PNET_RUNTIME_TRAINED_H

#include "runtime/plan/mode.h"
#include "runtime/run/bound.h"
#include "runtime/train/safetensors.h"

enum { PNET_TRAINED_KEYS = 5 };

/* Metadata for a weights file. It points into itself, and into the params it was made from. */
struct pnet_trained_record {
    struct pnet_metadata items[PNET_TRAINED_KEYS];
    char mode[PNET_MODE_TEXT], geometry[16];
};
/* `degrade`: the mode, of enum pnet_degrade; `params`: "name=value" lines. */
void pnet_trained_record(unsigned degrade, enum pnet_precision precision, const char *params,
    struct pnet_trained_record *r);

/* The same as read from a file; texts point into the file. */
struct pnet_trained {
    bool known; /* false: the file records nothing; the rest is zero then, and params "" */
    unsigned degrade;
    enum pnet_precision precision;
    int geometry; /* PNET_GEOMETRY_VERSION of the program that trained; 0: not recorded */
    const char *params, *version;
};
/* Reads the metadata. PNET_BAD_DATA: a value that pnet does not write. `name` is the file, for the message. */
enum pnet_status pnet_trained_read(const struct pnet_safetensors *f, const char *name,
    struct pnet_trained *t, struct pnet_error *e);

/* Tells whether two lists of "name=value" lines set the same values. Their order does not matter, and of one name the last line
   counts. */
bool pnet_params_equal(const char *a, const char *b);
/* Returns the value of a name of `length` letters in such a list, up to the end of its line; NULL: none. */
const char *pnet_params_find(const char *params, const char *name, size_t length);

#endif
