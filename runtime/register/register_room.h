/* Workspaces in pieces, each on its own cache lines. Without a base it only adds up: the same function says what is
   needed and takes it. */
#ifndef PNET_RUNTIME_REGISTER_ROOM_H
#define PNET_RUNTIME_REGISTER_ROOM_H

#include <stddef.h>

struct room {
    char *base; /* NULL: only adding up */
    size_t used;
};

static inline void *room_take(struct room *r, size_t bytes)
{
    void *at = r->base ? r->base + r->used : NULL;
    r->used += (bytes + 63) / 64 * 64;
    return at;
}

#endif
