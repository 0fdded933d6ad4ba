/* Which blocks of the arena must not share memory: those touched by parts of the schedule that may run at the same time
   (runtime/run/waits.h). This follows from the plan alone. */
#ifndef PNET_RUNTIME_APART_H
#define PNET_RUNTIME_APART_H

#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>

/* `steps`: the largest distance between concurrent steps; parts farther apart are ordered by the memory that they share.
   `bytes` and `share`: what concurrency may cost, `bytes` or one share-th of the memory, whichever is more. */
struct pnet_reach {
    int steps;
    size_t bytes, share;
};
enum { PNET_REACHES = 2 };
extern const struct pnet_reach pnet_reaches[PNET_REACHES]; /* the best first */

/* A block is a tensor, or a step's workspace; workspaces come after all tensors. */
struct pnet_apart;
struct pnet_apart *pnet_apart_new(const struct pnet_plan *p); /* NULL: no memory */
void pnet_apart_free(struct pnet_apart *a);

/* Tells whether two blocks are touched by parts that may run at the same time, within a reach of pnet_reaches. */
bool pnet_apart_concurrent(const struct pnet_apart *a, int reach, int x, int y);

#endif
