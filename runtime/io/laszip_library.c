#include "runtime/io/laszip_library.h"
#include "runtime/base/printable.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *name;     /* set before other threads begin */
    pthread_mutex_t lock; /* of what follows, while it is found */
    bool tried;
    char reason[400]; /* why it is not there, or "" */
    struct pnet_laszip_library library;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

void pnet_laszip_choose(const char *name)
{
    shared.name = name && *name ? name : NULL;
}

/* liblaszip_api, which is beside it, only opens liblaszip. */
static void *open_library(void)
{
    static const char *const names[] = {"liblaszip.so.8", "liblaszip.so"};
    void *library = NULL;
    if (shared.name) return dlopen(shared.name, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool miss(const char *name)
{
    snprintf(shared.reason, sizeof shared.reason, "the library has no %s", name);
    return false;
}

static bool find_functions(void *library, struct pnet_laszip_library *l)
{
    static const struct {
        const char *name;
        size_t at;
    } functions[] = {
#define FUNCTION(name, parameters) {#name, offsetof(struct pnet_laszip_library, name)},
        PNET_LASZIP_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol) return miss(functions[i].name);
        memcpy((char *)l + functions[i].at, &symbol, sizeof symbol);
    }
    return true;
}

/* Other major versions may have other structures. */
static bool check_version(void *library, struct pnet_laszip_library *l)
{
    static const char name[] = "laszip_get_version";
    int32_t (*version)(uint8_t *, uint8_t *, uint16_t *, uint32_t *);
    uint32_t build;
    void *symbol = dlsym(library, name);
    if (!symbol) return miss(name);
    memcpy(&version, &symbol, sizeof version);
    if (version(&l->major, &l->minor, &l->revision, &build)) {
        snprintf(shared.reason, sizeof shared.reason,
            "the library says no version: name liblaszip.so, not liblaszip_api.so");
        return false;
    }
    if (l->major == 3) return true;
    snprintf(shared.reason, sizeof shared.reason, "version 3 is needed, here is %u.%u", l->major,
        l->minor);
    return false;
}

/* Sets shared.library, or the reason why not. */
static void find_library(void)
{
    struct pnet_laszip_library l = {.major = 0};
    void *library = open_library();
    if (!library) {
        const char *reason = dlerror();
        char text[300];
        if (shared.name)
            snprintf(shared.reason, sizeof shared.reason, "PNET_LASZIP_LIBRARY: %s",
                pnet_printable(reason ? reason : shared.name, text, sizeof text));
        else
            snprintf(shared.reason, sizeof shared.reason,
                "install LASzip 3 (liblaszip.so.8; conda-forge: laszip), or name it by "
                "PNET_LASZIP_LIBRARY");
        return;
    }
    if (check_version(library, &l) && find_functions(library, &l)) shared.library = l;
}

enum pnet_status pnet_laszip_open(
    const char *path, const struct pnet_laszip_library **l, struct pnet_error *e)
{
    pthread_mutex_lock(&shared.lock);
    if (!shared.tried) find_library();
    shared.tried = true;
    pthread_mutex_unlock(&shared.lock);
    *l = &shared.library;
    if (!*shared.reason) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "%.500s: liblaszip writes LAZ: %s; or write .las", path, shared.reason);
}
