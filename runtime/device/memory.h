/* The memory of a runner on its device: all bytes are counted and limited by a budget. */
#ifndef PNET_RUNTIME_MEMORY_H
#define PNET_RUNTIME_MEMORY_H

#include "runtime/base/number.h"
#include "runtime/device/device.h"
#include "runtime/base/error.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Where memory comes from instead of the device itself: from the caller. `take` gives memory that is aligned as the device's is,
   or NULL; `give` gets it back, with its size. Zeroed: none. */
struct pnet_supply {
    void *context;
    void *(*take)(void *context, size_t bytes);
    void (*give)(void *context, void *memory, size_t bytes);
};

struct pnet_memory {
    pthread_mutex_t
        lock;     /* used, peak: the geometry of the next batch is built on another thread */
    size_t limit; /* bytes; 0: none */
    size_t used, peak;
    struct pnet_device device;
    struct pnet_supply supply; /* set, if at all, before the first buffer */
};

/* A block that only grows. Zeroed: empty. */
struct pnet_buffer {
    void *data;
    size_t size; /* as allocated */
};

void pnet_memory_init(struct pnet_memory *m, struct pnet_device device, size_t limit);
void pnet_memory_end(struct pnet_memory *m);

/* Makes *b at least `bytes` large, aligned to 64; if it grows, its content is lost. PNET_NO_MEMORY: the budget or the device
   has no room; the message names the buffer as `what`. */
enum pnet_status pnet_buffer_ensure(struct pnet_memory *m, struct pnet_buffer *b, size_t bytes,
    const char *what, struct pnet_error *e);
void pnet_buffer_free(struct pnet_memory *m, struct pnet_buffer *b);

/* Blocks are rounded up to a cache line. */
static inline size_t pnet_round_bytes(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* The capacity class of a count: the smallest m * 2^e >= n with 8 <= m <= 16, so at most an eighth
   above; 0 stays 0 and the least class is 64. */
static inline int64_t pnet_capacity(int64_t n)
{
    if (n <= 0) return 0;
    if (n <= 64) return 64;
    int shift = 60 - __builtin_clzll((unsigned long long)n); /* n >> shift has four bits */
    int64_t unit = (int64_t)1 << shift;
    return (n + unit - 1) / unit * unit;
}

#endif
