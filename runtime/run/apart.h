/* Which blocks of the arena must not share memory because steps are concurrent: those that are touched by parts of the
   schedule which may run at once (runtime/run/waits.h). The plan alone tells. */
#ifndef PNET_RUNTIME_APART_H
#define PNET_RUNTIME_APART_H

#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>

/* How many steps lie at most between concurrent ones: parts farther apart are ordered by the memory that they share. And
   what that may cost: `bytes`, or a share-th of the memory, whichever is more. */
struct pnet_reach {
    int steps;
    size_t bytes, share;
};
enum { PNET_REACHES = 2 };
extern const struct pnet_reach pnet_reaches[PNET_REACHES]; /* the best first */

/* A block is a tensor, or behind all tensors the workspace of a step. */
struct pnet_apart;
struct pnet_apart *pnet_apart_new(const struct pnet_plan *p); /* NULL: no memory */
void pnet_apart_free(struct pnet_apart *a);

/* Are two blocks touched by parts that may run at once, within a reach of pnet_reaches? */
bool pnet_apart_concurrent(const struct pnet_apart *a, int reach, int x, int y);

#endif
