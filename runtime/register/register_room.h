/* Divides a workspace into pieces, each on its own cache lines. Without a base a room only adds up sizes, so that one function
   both computes the size of a workspace and divides it. */
#ifndef PNET_RUNTIME_REGISTER_ROOM_H
#define PNET_RUNTIME_REGISTER_ROOM_H

#include <stddef.h>

struct room {
    char *base; /* NULL: only adds up sizes */
    size_t used;
};

static inline void *room_take(struct room *r, size_t bytes)
{
    void *at = r->base ? r->base + r->used : NULL;
    r->used += (bytes + 63) / 64 * 64;
    return at;
}

#endif
