#include "lang/arena.h"
#include "lang/number.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_MIN = 16 << 10, CHUNK_MAX = 1 << 20, ALIGNMENT = _Alignof(max_align_t) };

struct pnet_arena_chunk {
    _Alignas(max_align_t) struct pnet_arena_chunk *next;
};

static void *fail(struct pnet_arena *a)
{
    a->failed = true;
    return NULL;
}

static char *chunk_data(struct pnet_arena_chunk *c)
{
    return (char *)c + sizeof *c;
}

/* A chunk for one large block is inserted after the first chunk, which keeps its free room. */
static void *alloc_alone(struct pnet_arena *a, size_t size)
{
    struct pnet_arena_chunk *c = calloc(1, sizeof *c + size);
    if (!c) return fail(a);
    if (a->chunks) {
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        a->chunks = c;
        a->used = a->size = size;
    }
    return chunk_data(c);
}

void *pnet_arena_alloc(struct pnet_arena *a, size_t size)
{
    if (a->failed || ++a->calls == a->fail_at || size > SIZE_MAX / 2) return fail(a);
    size = (size + !size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (a->limit && size > a->limit - a->total) {
        a->full = true;
        return fail(a);
    }
    a->total += size;
    if (size > a->size - a->used) {
        if (size > CHUNK_MAX / 4) return alloc_alone(a, size);
        size_t room = a->total < CHUNK_MIN   ? CHUNK_MIN
                      : a->total > CHUNK_MAX ? CHUNK_MAX
                                             : a->total;
        if (room < size) room = size;
        room &= ~(size_t)(ALIGNMENT - 1);
        struct pnet_arena_chunk *c = calloc(1, sizeof *c + room);
        if (!c) return fail(a);
        c->next = a->chunks;
        a->chunks = c;
        a->used = 0;
        a->size = room;
    }
    void *p = chunk_data(a->chunks) + a->used;
    a->used += size;
    return p;
}

void *pnet_arena_array(struct pnet_arena *a, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) return fail(a);
    return pnet_arena_alloc(a, count * size);
}

char *pnet_arena_copy(struct pnet_arena *a, const char *text, size_t length)
{
    if (length == SIZE_MAX) return fail(a);
    char *p = pnet_arena_alloc(a, length + 1);
    if (p && length) memcpy(p, text, length);
    return p;
}

char *pnet_arena_vprintf(struct pnet_arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    locale_t before = uselocale(pnet_plain_locale());
    int length = vsnprintf(NULL, 0, format, args);
    char *p = length < 0 ? fail(a) : pnet_arena_alloc(a, (size_t)length + 1);
    if (p) vsnprintf(p, (size_t)length + 1, format, again);
    uselocale(before);
    va_end(again);
    return p;
}

char *pnet_arena_printf(struct pnet_arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *p = pnet_arena_vprintf(a, format, args);
    va_end(args);
    return p;
}

void pnet_arena_free(struct pnet_arena *a)
{
    for (struct pnet_arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct pnet_arena){0};
}
