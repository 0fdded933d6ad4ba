#include "runtime/device/memory.h"
#include "runtime/base/number.h"

#include <stdio.h>
#include <stdlib.h>

void pnet_memory_init(struct pnet_memory *m, struct pnet_device device, size_t limit)
{
    *m = (struct pnet_memory){.limit = limit, .device = device};
    pthread_mutex_init(&m->lock, NULL);
}

void pnet_memory_end(struct pnet_memory *m)
{
    pthread_mutex_destroy(&m->lock);
}

/* Counts before it allocates, so that two threads cannot pass the limit together. */
static bool reserve(struct pnet_memory *m, size_t bytes)
{
    pthread_mutex_lock(&m->lock);
    bool fits = !m->limit || bytes <= m->limit - (m->used < m->limit ? m->used : m->limit);
    if (fits) m->used += bytes;
    if (m->used > m->peak) m->peak = m->used;
    pthread_mutex_unlock(&m->lock);
    return fits;
}

static void release(struct pnet_memory *m, size_t bytes)
{
    pthread_mutex_lock(&m->lock);
    m->used -= bytes;
    pthread_mutex_unlock(&m->lock);
}

enum pnet_status pnet_buffer_ensure(struct pnet_memory *m, struct pnet_buffer *b, size_t bytes,
    const char *what, struct pnet_error *e)
{
    char need[32], limit[32];
    bytes = pnet_round_bytes(bytes);
    if (bytes <= b->size) return PNET_OK;
    pnet_buffer_free(m, b);
    if (!reserve(m, bytes))
        return pnet_error_set(e, PNET_NO_MEMORY,
            "no room for %s: %s more, over the memory budget of %s", what,
            pnet_bytes_text(bytes, need), pnet_bytes_text(m->limit, limit));
    b->data = m->supply.take ? m->supply.take(m->supply.context, bytes)
                             : pnet_device_alloc(m->device, bytes);
    if (!b->data) {
        release(m, bytes);
        return pnet_error_set(e, PNET_NO_MEMORY, "out of memory: no room for %s, %s", what,
            pnet_bytes_text(bytes, need));
    }
    b->size = bytes;
    return PNET_OK;
}

void pnet_buffer_free(struct pnet_memory *m, struct pnet_buffer *b)
{
    if (!b->data) return;
    if (m->supply.give)
        m->supply.give(m->supply.context, b->data, b->size);
    else
        pnet_device_free(m->device, b->data);
    release(m, b->size);
    *b = (struct pnet_buffer){0};
}
