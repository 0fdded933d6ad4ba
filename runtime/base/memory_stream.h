/* A text in memory, written through a stream. open_memstream tells neither by its error flag nor when it is
   closed that it ran out of memory on the way; this does. */
#ifndef PNET_RUNTIME_IO_MEMORY_STREAM_H
#define PNET_RUNTIME_IO_MEMORY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct pnet_memory_stream {
    FILE *file; /* to write to; NULL: there was no memory even for that */
    char *data;
    size_t size, capacity;
    bool failed;
};

/* Begins a text; false when memory is out, and then there is nothing to close. `t` must not move while it is
   open. */
bool pnet_memory_stream_open(struct pnet_memory_stream *t);
/* Ends it: the whole text, NUL-terminated, which the caller frees; its length in `size`, which may be NULL.
   NULL where any of it is missing. */
char *pnet_memory_stream_close(struct pnet_memory_stream *t, size_t *size);

#endif
