/* An arena for each compilation: all its memory is freed at once. */
#ifndef PNET_LANG_ARENA_H
#define PNET_LANG_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Initialise it with zeros. Running out of memory is sticky: the arena then returns NULL for ever and `failed` stays set. So a
   pass may check once at its end, if it does not use earlier results before that check. */
struct pnet_arena {
    struct pnet_arena_chunk *chunks;
    size_t used, size; /* of the first chunk */
    size_t total;      /* bytes handed out */
    size_t calls;      /* allocations asked for */
    size_t fail_at;    /* for tests: this call, counted from 1, fails; 0: none does */
    size_t limit;      /* of `total`; 0: none */
    bool failed;
    bool full; /* it failed because the limit was reached */
};

/* Returns zeroed memory, aligned for any type; NULL when memory is out. */
void *pnet_arena_alloc(struct pnet_arena *a, size_t size);
void *pnet_arena_array(struct pnet_arena *a, size_t count, size_t size); /* checks the product */
char *pnet_arena_copy(struct pnet_arena *a, const char *text, size_t length); /* NUL-terminated */
char *pnet_arena_printf(struct pnet_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *pnet_arena_vprintf(struct pnet_arena *a, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void pnet_arena_free(struct pnet_arena *a);

#endif
