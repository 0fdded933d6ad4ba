/* Which parts of a schedule wait for which, where a device can run several at once. A part waits for the earlier parts that
   wrote what it reads or writes, and for those that read what it writes; nothing else orders parts. */
#ifndef PNET_RUNTIME_WAITS_H
#define PNET_RUNTIME_WAITS_H

#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* Parts of a step. A backward step that computes the gradients of its input and of its parameters concurrently has two
   parts; the second one computes those of the parameters. Other steps have only the first part. */
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

/* Kinds of objects that a step touches. */
enum pnet_object {
    PNET_OBJECT_TENSOR,   /* index of a tensor that has memory of its own in the arena */
    PNET_OBJECT_PARAM,    /* index of a parameter */
    PNET_OBJECT_GRADIENT, /* of a parameter */
    PNET_OBJECT_WORK,     /* the workspace of a step */
};

/* Returns where an object lies; an empty stretch: it has no memory. */
typedef struct pnet_stretch pnet_locate(void *context, enum pnet_object object, int index);

/* Returns everything that a part of a step reads or writes, besides the batch and its geometry, which no step writes. */
void pnet_step_touches(const struct pnet_plan *p, int step, int part, pnet_locate *locate,
    void *context, struct pnet_touched *t);

/* Steps in the order in which they are added: the i-th step has parts 2 i and 2 i + 1. */
struct pnet_waits;
struct pnet_waits *pnet_waits_new(int steps); /* room for `steps` steps; NULL: no memory */
void pnet_waits_free(struct pnet_waits *w);
/* Adds a step, given what its parts touch. Sets `others` to the parts that both of its parts wait for, without those that
   another one of them already waits for; it has room for twice the number of steps. Returns how many. */
int pnet_waits_add(
    struct pnet_waits *w, const struct pnet_touched parts[PNET_STEP_PARTS], int *others);
/* Tells whether part `first` ends before part `second` begins. */
bool pnet_waits_ordered(const struct pnet_waits *w, int first, int second);

#endif
