/* Strings to numbers. A map lives in an arena; initialise it with zeros. */
#ifndef PNET_COMPILER_MAP_H
#define PNET_COMPILER_MAP_H

#include "lang/arena.h"

struct map {
    struct map_entry *entries;
    int capacity, count;
};
/* The number of `key`, or NULL. Stays valid until the next insertion. */
int *pnet_map_find(const struct map *m, const char *key);
/* Same, made with `value` where missing; NULL when memory is out. `key` must live as long as the map. */
int *pnet_map_get(struct pnet_arena *a, struct map *m, const char *key, int value);

#endif
