#include "library/handle.h"

#include "runtime/base/error.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Marks are no sizes, counts, addresses or texts, so that no other object of a program begins with one by chance. */
#define MARK(number) (UINT64_C(0xF0E1A5C3D2B49600) + (number))

static const char *const names[] = {[PNET_CLASS_MODEL] = "a model",
    [PNET_CLASS_SESSION] = "a session",
    [PNET_CLASS_SET] = "a set",
    [PNET_CLASS_POINTS] = "points",
    [PNET_CLASS_MAP] = "a map",
    [PNET_CLASS_BUCKETS] = "buckets"};

void *pnet_handle_new(enum pnet_class class, size_t size, struct pnet_error *e)
{
    struct pnet_handle *h = calloc(1, size);
    if (!h)
        pnet_error_memory(e);
    else
        h->mark = MARK((uint64_t) class);
    return h;
}

void pnet_handle_free(void *handle)
{
    /* a compiler may leave out a store to memory that is freed, but not a volatile one */
    if (handle) *(volatile uint64_t *)handle = 0;
    free(handle);
}

/* The class of what a pointer leads to; PNET_CLASS_ANY: it is no handle, or one that was freed. */
static enum pnet_class class_of(const void *handle)
{
    uint64_t mark;
    if (!handle || (uintptr_t)handle % alignof(max_align_t)) return PNET_CLASS_ANY;
    memcpy(&mark, handle, sizeof mark);
    uint64_t number = mark - MARK(0);
    return number <= PNET_CLASS_BUCKETS ? (enum pnet_class)number : PNET_CLASS_ANY;
}

bool pnet_handle_is(const void *handle, enum pnet_class class)
{
    return class_of(handle) == class;
}

static enum pnet_status refuse(
    const char *function, const struct pnet_argument *a, struct pnet_error *e)
{
    enum pnet_class is = class_of(a->value);
    if (a->class == PNET_CLASS_ANY)
        return pnet_error_set(e, PNET_USAGE, "%s: `%s` is NULL", function, a->name);
    return pnet_error_set(e, PNET_USAGE, "%s: `%s` is %s, expected %s", function, a->name,
        !a->value              ? "NULL"
        : is != PNET_CLASS_ANY ? names[is]
                               : "no object of the library, or one that was freed",
        names[a->class]);
}

enum pnet_status pnet_handle_check(
    const char *function, const struct pnet_argument *arguments, struct pnet_error *e)
{
    for (const struct pnet_argument *a = arguments; a->name; a++) {
        bool right = a->class == PNET_CLASS_ANY ? a->value != NULL : class_of(a->value) == a->class;
        if (!right) return refuse(function, a, e);
    }
    return PNET_OK;
}
