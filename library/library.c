#include "library/library.h"

#include <string.h>

int pnet_abi(void)
{
    return PNET_ABI;
}

const char *pnet_version(void)
{
    return PNET_VERSION;
}

/* Larger than the structs of any later version will be: what claims more was not set by the caller. */
enum { SIZE_LIMIT = 4096 };

/* Checks the first member of a caller's struct. */
static enum pnet_status check_size(
    const char *name, const void *of_caller, size_t size, size_t *theirs, struct pnet_error *e)
{
    memcpy(theirs, of_caller, sizeof *theirs);
    if (*theirs >= size && *theirs <= SIZE_LIMIT) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "struct %s: `size` is %zu, expected %zu: set it to sizeof(struct %s)", name, *theirs, size,
        name);
}

enum pnet_status pnet_library_take(
    const char *name, const void *from, void *to, size_t size, struct pnet_error *e)
{
    size_t theirs;
    memset(to, 0, size);
    if (!from) return PNET_OK;
    enum pnet_status st = check_size(name, from, size, &theirs, e);
    if (st) return st;
    for (size_t i = size; i < theirs; i++)
        if (((const char *)from)[i])
            return pnet_error_set(e, PNET_USAGE,
                "struct %s: `size` is %zu, and members are set that this version, " PNET_VERSION
                ", with %zu bytes, does not know",
                name, theirs, size);
    memcpy(to, from, size);
    return PNET_OK;
}

enum pnet_status pnet_library_give(
    const char *name, const void *from, void *to, size_t size, struct pnet_error *e)
{
    size_t theirs;
    if (!to) return pnet_error_set(e, PNET_USAGE, "struct %s: there is none to fill", name);
    enum pnet_status st = check_size(name, to, size, &theirs, e);
    if (st) return st;
    memset((char *)to + size, 0, theirs - size);
    memcpy((char *)to + sizeof theirs, (const char *)from + sizeof theirs, size - sizeof theirs);
    return PNET_OK;
}

enum pnet_status pnet_library_index(
    const char *what, size_t index, size_t count, struct pnet_error *e)
{
    if (index < count) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "there is no %s %zu: the model has %zu, counted from 0", what, index, count);
}
