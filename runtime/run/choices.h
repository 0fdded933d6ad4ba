/* Which algorithm forms each sum of each convolution of a network, from --autotune or --algo, as run folders (kernels.yaml)
   and checkpoints keep it. Layers are found by their path, so that a plan for inference, or for one net alone, uses its part
   of the choices of a training. */
#ifndef PNET_RUNTIME_CHOICES_H
#define PNET_RUNTIME_CHOICES_H

#include "runtime/device/device_time.h"
#include "runtime/run/bound.h"

#include <stdio.h>

struct pnet_choice {
    char *path; /* "fcgf.s.0.conv" */
    struct pnet_algos algos;
};

/* Owns its strings and items. Zeroed: empty, which means the fixed table. */
struct pnet_choices {
    enum pnet_device_kind device; /* the device that the choices are for */
    enum pnet_precision precision;
    struct pnet_device_info info; /* the machine on which they were made */
    struct pnet_choice *items;    /* [count]; no two have the same path */
    int count;
};
void pnet_choices_free(struct pnet_choices *c);

/* Sets *c to the algorithms of a bound plan, one item for each convolution. */
enum pnet_status pnet_choices_of(const struct pnet_bound *b, const struct pnet_device_info *info,
    struct pnet_choices *c, struct pnet_error *e);
/* Returns the choices as YAML, for the caller to free; NULL: out of memory. */
char *pnet_choices_print(const struct pnet_choices *c);
/* Reads such YAML; an empty text gives no choices. PNET_BAD_DATA: the text is damaged, or names an unknown format or
   algorithm. `name` stands in messages. */
enum pnet_status pnet_choices_parse(
    const char *name, const char *text, size_t size, struct pnet_choices *c, struct pnet_error *e);

/* Prints and reads the head of such a file, and of the cache of times: "format: 1" and the lines below it. */
struct pnet_yaml;
void pnet_choices_put_head(
    FILE *f, int format, enum pnet_device_kind device, const struct pnet_device_info *info);
/* Returns false if something is wrong; the error sticks to the document. `*version` lives as long as the document. */
bool pnet_choices_get_head(struct pnet_yaml *y, int format, enum pnet_device_kind *device,
    struct pnet_device_info *info, const char **version);

/* Binds `p` to `t` with these choices instead of the algorithms of `t`. Layers that the choices do not name get the fixed
   table. *b is NULL if the choices are for the other kind of device or another precision. */
enum pnet_status pnet_choices_bind(const struct pnet_choices *c, const struct pnet_plan *p,
    const struct pnet_target *t, struct pnet_bound **b, struct pnet_error *e);

/* indexed by enum pnet_precision; NULL ends it */
extern const char *const pnet_precision_names[];

#endif
