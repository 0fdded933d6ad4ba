/* Which parts of a schedule wait for which, where a device can run several at once. A part waits for the earlier ones
   that wrote what it touches, and for those that read what it writes; nothing else orders it. */
#ifndef PNET_RUNTIME_WAITS_H
#define PNET_RUNTIME_WAITS_H

#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a step: a backward step that makes the gradients of its input and of its parameters beside each other has two, of
   which the second one makes those of the parameters. Other steps have the first one alone. */
enum { PNET_STEP_PARTS = 2 };

/* Memory from `begin` up to `end`. */
struct pnet_stretch {
    uintptr_t begin, end;
    bool written;
};

enum { PNET_MOST_STRETCHES = 2 * PNET_MAX_IN + PNET_MAX_SAVED + 2 * PNET_MAX_PARAMS + 3 };

struct pnet_touched {
    struct pnet_stretch at[PNET_MOST_STRETCHES];
    int count;
};

/* What a step touches. */
enum pnet_object {
    PNET_OBJECT_TENSOR,   /* by index: one that has memory of its own in the arena */
    PNET_OBJECT_PARAM,    /* by index, as are gradients */
    PNET_OBJECT_GRADIENT, /* of a parameter */
    PNET_OBJECT_WORK,     /* the workspace of a step */
};

/* Where an object lies; an empty stretch: nowhere. */
typedef struct pnet_stretch pnet_locate(void *context, enum pnet_object object, int index);

/* Everything that a part of a step reads or writes, but the batch and its geometry, which no step writes. */
void pnet_step_touches(const struct pnet_plan *p, int step, int part, pnet_locate *locate,
    void *context, struct pnet_touched *t);

/* Steps, in the order in which they are added: the i-th one has parts 2 i and 2 i + 1. */
struct pnet_waits;
struct pnet_waits *pnet_waits_new(int steps); /* at most; NULL: no memory */
void pnet_waits_free(struct pnet_waits *w);
/* Adds a step, by what its parts touch. Fills `others` with the parts that both of them wait for, but those that another
   one of these waits for anyway; room for twice as many as there are steps. Returns how many. */
int pnet_waits_add(
    struct pnet_waits *w, const struct pnet_touched parts[PNET_STEP_PARTS], int *others);
/* Is part `first` over before part `second` begins? */
bool pnet_waits_ordered(const struct pnet_waits *w, int first, int second);

#endif
