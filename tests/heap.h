/* The process's allocator, which counts and fails where it is told to. A program includes this once and stands inside
   `#if HEAP_REPLACED`; where a sanitizer has taken malloc, main stands here and says so. */
#ifndef PNET_TESTS_HEAP_H
#define PNET_TESTS_HEAP_H

#include "tests/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#if SANITIZED || !defined(__GLIBC__)
#define HEAP_REPLACED 0
#else
#define HEAP_REPLACED 1
#endif

#if !HEAP_REPLACED
int main(void)
{
    printf("skipped: a sanitizer has taken malloc\n");
    return 77;
}
#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* Only while `counting`: the test itself allocates too. */
static struct {
    bool counting;
    long fail_at;    /* from 1; 0: never */
    bool all_behind; /* fail too */
    long calls, live /* blocks */;
    size_t largest;
} heap;

static void heap_begin(long fail_at, bool all_behind)
{
    heap.counting = true;
    heap.fail_at = fail_at;
    heap.all_behind = all_behind;
    heap.calls = heap.live = 0;
    heap.largest = 0;
}

static bool heap_refuses(size_t size)
{
    if (!heap.counting) return false;
    if (size > heap.largest) heap.largest = size;
    heap.calls++;
    if (!heap.fail_at || heap.calls < heap.fail_at) return false;
    if (heap.calls > heap.fail_at && !heap.all_behind) return false;
    errno = ENOMEM;
    return true;
}

static void *heap_counted(void *block)
{
    heap.live += heap.counting && block;
    return block;
}

void *malloc(size_t size)
{
    return heap_refuses(size) ? NULL : heap_counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return heap_refuses(count * size) ? NULL : heap_counted(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
    if (heap_refuses(size)) return NULL;
    void *block = __libc_realloc(old, size);
    return old ? block : heap_counted(block);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return heap_refuses(size) ? NULL : heap_counted(__libc_memalign(alignment, size));
}

/* OpenMP's own, without which it ends the process: these do not fail. */
int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = heap_counted(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return heap_counted(__libc_memalign(alignment, size));
}

void free(void *block)
{
    heap.live -= heap.counting && block;
    __libc_free(block);
}
#endif
#endif
