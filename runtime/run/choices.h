/* Which algorithm forms each sum of each convolution of a network: what --autotune found or --algo said, as it is kept in
   run folders (kernels.yaml) and checkpoints. Layers are found by their path, so that a plan for inference, or of one
   net alone, takes its part of what training chose. */
#ifndef PNET_RUNTIME_CHOICES_H
#define PNET_RUNTIME_CHOICES_H

#include "runtime/device/device_time.h"
#include "runtime/run/bound.h"

#include <stdio.h>

struct pnet_choice {
    char *path; /* "fcgf.s.0.conv" */
    struct pnet_algos algos;
};

/* Owns what it points to. Zeroed: empty, which is the fixed table. */
struct pnet_choices {
    enum pnet_device_kind device; /* they are for */
    enum pnet_precision precision;
    struct pnet_device_info info; /* where they were made */
    struct pnet_choice *items;    /* [count], paths differ */
    int count;
};
void pnet_choices_free(struct pnet_choices *c);

/* What a plan is bound to, a line for each convolution. */
enum pnet_status pnet_choices_of(const struct pnet_bound *b, const struct pnet_device_info *info,
    struct pnet_choices *c, struct pnet_error *e);
/* As YAML, to be freed; NULL: out of memory. */
char *pnet_choices_print(const struct pnet_choices *c);
/* The opposite; an empty text gives no choices. PNET_BAD_DATA: damaged, or of a format or with an algorithm that is not
   known here. `name` is for messages. */
enum pnet_status pnet_choices_parse(
    const char *name, const char *text, size_t size, struct pnet_choices *c, struct pnet_error *e);

/* What such a file, and the cache of times, begin with: "format: 1" and the lines below it. */
struct pnet_yaml;
void pnet_choices_put_head(
    FILE *f, int format, enum pnet_device_kind device, const struct pnet_device_info *info);
/* False: something is wrong, and stuck to the document. `*version` lives as long as it. */
bool pnet_choices_get_head(struct pnet_yaml *y, int format, enum pnet_device_kind *device,
    struct pnet_device_info *info, const char **version);

/* Binds `p` to `t` with the choices in the place of its algorithms; layers that they do not name get the fixed table. Where
   they are for the other kind of device or another precision *b is NULL. */
enum pnet_status pnet_choices_bind(const struct pnet_choices *c, const struct pnet_plan *p,
    const struct pnet_target *t, struct pnet_bound **b, struct pnet_error *e);

extern const char *const pnet_precision_names[]; /* by enum pnet_precision, then NULL */

#endif
