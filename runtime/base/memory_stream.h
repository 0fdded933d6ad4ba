/* A text in memory, written through a stream. Unlike open_memstream, it reports every allocation that failed while it was
   written. */
#ifndef PNET_RUNTIME_IO_MEMORY_STREAM_H
#define PNET_RUNTIME_IO_MEMORY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct pnet_memory_stream {
    FILE *file; /* stream to write to; NULL: it could not be allocated */
    char *data;
    size_t size, capacity;
    bool failed;
};

/* Begins a text. Returns false if memory is out; then there is nothing to close. `t` must not move while it is open. */
bool pnet_memory_stream_open(struct pnet_memory_stream *t);
/* Ends the text and returns all of it, NUL-terminated; the caller frees it. `size` (or NULL) gets its length. Returns NULL if
   any part is missing. */
char *pnet_memory_stream_close(struct pnet_memory_stream *t, size_t *size);

#endif
