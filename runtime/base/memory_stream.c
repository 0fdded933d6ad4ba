#include "runtime/base/memory_stream.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* 0 marks the stream as failed. */
static ssize_t append(void *cookie, const char *bytes, size_t count)
{
    struct pnet_memory_stream *t = cookie;
    if (t->failed) return 0;
    if (count >= t->capacity - t->size) { /* one byte is for the NUL */
        size_t capacity = t->capacity ? t->capacity : 512;
        while (capacity - t->size <= count && capacity <= SIZE_MAX / 2) capacity *= 2;
        char *larger = capacity - t->size > count ? realloc(t->data, capacity) : NULL;
        if (!larger) {
            t->failed = true;
            return 0;
        }
        t->data = larger;
        t->capacity = capacity;
    }
    memcpy(t->data + t->size, bytes, count);
    t->size += count;
    return (ssize_t)count;
}

bool pnet_memory_stream_open(struct pnet_memory_stream *t)
{
    *t = (struct pnet_memory_stream){.file = NULL};
    t->file = fopencookie(t, "w", (cookie_io_functions_t){.write = append});
    return t->file != NULL;
}

char *pnet_memory_stream_close(struct pnet_memory_stream *t, size_t *size)
{
    if (fflush(t->file) != 0 || ferror(t->file)) t->failed = true;
    if (fclose(t->file) != 0) t->failed = true;
    t->file = NULL;
    if (!t->data && !t->failed) t->data = malloc(1);
    if (t->failed || !t->data) {
        free(t->data);
        t->data = NULL;
        return NULL;
    }
    t->data[t->size] = '\0';
    if (size) *size = t->size;
    return t->data;
}
