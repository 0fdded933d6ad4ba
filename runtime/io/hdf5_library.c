#include "runtime/io/hdf5_library.h"
#include "runtime/base/printable.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* It is one for the process, as the library is, which keeps all its state in globals. */
static struct {
    const char *name;     /* set before other threads begin */
    pthread_mutex_t lock; /* of what follows, and of the library */
    bool tried;
    char reason[400]; /* why it is not there, or "" */
    struct pnet_hdf5_library library;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

void pnet_hdf5_choose(const char *name)
{
    shared.name = name && *name ? name : NULL;
}

/* Debian and Ubuntu call it libhdf5_serial, beside those for MPI; others libhdf5. Version 103 is HDF5 1.10, 200 is 1.12, 310 is
   1.14, 320 is 2.0. */
static void *open_library(void)
{
    static const char *const names[] = {"libhdf5_serial.so.320", "libhdf5_serial.so.310",
        "libhdf5_serial.so.200", "libhdf5_serial.so.103", "libhdf5.so.320", "libhdf5.so.310",
        "libhdf5.so.200", "libhdf5.so.103", "libhdf5_serial.so", "libhdf5.so"};
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

static bool find_functions(void *library, struct pnet_hdf5_library *l)
{
    /* From 1.12 on the name without a number is a macro. */
    static const char *const numbered[] = {"H5Literate", "H5Literate2"};
    static const struct {
        const char *name;
        size_t at;
    } functions[] = {
#define FUNCTION(result, name, parameters) {#name, offsetof(struct pnet_hdf5_library, name)},
        PNET_HDF5_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol && strcmp(functions[i].name, numbered[0]) == 0)
            symbol = dlsym(library, numbered[1]);
        if (!symbol) return miss(functions[i].name);
        memcpy((char *)l + functions[i].at, &symbol, sizeof symbol);
    }
    return true;
}

/* The identifiers are variables, which have their values once the library is open. */
static bool find_identifiers(void *library, struct pnet_hdf5_library *l)
{
    static const struct {
        const char *name;
        size_t at;
    } variables[] = {
        {"H5P_CLS_FILE_ACCESS_ID_g", offsetof(struct pnet_hdf5_library, file_access)},
        {"H5E_NOSPACE_g", offsetof(struct pnet_hdf5_library, no_space)},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        void *symbol = dlsym(library, variables[i].name);
        if (!symbol) return miss(variables[i].name);
        memcpy((char *)l + variables[i].at, symbol, sizeof(pnet_hid));
    }
    return true;
}

/* Identifiers have 64 bits from 1.10 on, and chunks can be asked for their places from 1.10.5 on. */
static bool check_version(void *library, struct pnet_hdf5_library *l)
{
    static const char name[] = "H5get_libversion";
    int (*version)(unsigned *, unsigned *, unsigned *);
    void *symbol = dlsym(library, name);
    if (!symbol) return miss(name);
    memcpy(&version, &symbol, sizeof version);
    if (version(&l->major, &l->minor, &l->release) >= 0 &&
        (l->major > 1 || (l->major == 1 && (l->minor > 10 || (l->minor == 10 && l->release >= 5)))))
        return true;
    snprintf(shared.reason, sizeof shared.reason, "version 1.10.5 or later, here is %u.%u.%u",
        l->major, l->minor, l->release);
    return false;
}

/* Sets shared.library, or the reason why not. A library that does not serve stays open: it may have registered functions to be
   called at the end of the process. */
static void find_library(void)
{
    static const char how[] = "install libhdf5 (Debian 12: libhdf5-103-1, Debian 13: libhdf5-310)";
    struct pnet_hdf5_library l = {.major = 0};
    void *library = open_library();
    if (!library) {
        const char *reason = dlerror();
        char text[300];
        if (shared.name)
            snprintf(shared.reason, sizeof shared.reason, "PNET_HDF5_LIBRARY: %s",
                pnet_printable(reason ? reason : shared.name, text, sizeof text));
        else
            snprintf(shared.reason, sizeof shared.reason, "%s", how);
        return;
    }
    if (!check_version(library, &l) || !find_functions(library, &l)) return;
    if (l.H5open() < 0 || l.H5PLset_loading_state(0) < 0) {
        snprintf(shared.reason, sizeof shared.reason, "libhdf5 does not start");
        return;
    }
    if (find_identifiers(library, &l)) shared.library = l;
}

enum pnet_status pnet_hdf5_begin(
    const char *path, const struct pnet_hdf5_library **l, struct pnet_error *e)
{
    pthread_mutex_lock(&shared.lock);
    if (!shared.tried) find_library();
    shared.tried = true;
    *l = &shared.library;
    /* Of this thread, in a library that is safe for threads. */
    if (!*shared.reason && shared.library.H5Eset_auto2(PNET_H5_ALL, NULL, NULL) < 0)
        snprintf(shared.reason, sizeof shared.reason, "libhdf5 does not stop to print errors");
    if (!*shared.reason) return PNET_OK;
    enum pnet_status status = pnet_error_set(
        e, PNET_BAD_DATA, "%.500s: an HDF5 file, which libhdf5 reads: %s", path, shared.reason);
    pthread_mutex_unlock(&shared.lock);
    return status;
}

void pnet_hdf5_end(void)
{
    pthread_mutex_unlock(&shared.lock);
}

struct reason {
    char text[200];
    pnet_hid minor;
};

/* Keeps the first, which is the most specific. */
static int see_error(unsigned n, const struct pnet_hdf5_error *error, void *data)
{
    struct reason *r = data;
    if (n == 0 && error->text) snprintf(r->text, sizeof r->text, "%s", error->text);
    if (n == 0) r->minor = error->minor;
    return 0;
}

enum pnet_status pnet_hdf5_fail(
    const struct pnet_hdf5_library *l, const char *place, struct pnet_error *e)
{
    struct reason r = {.text = "no reason given"};
    l->H5Ewalk2(PNET_H5_ALL, PNET_H5E_WALK_UPWARD, see_error, &r);
    return pnet_error_set(e, r.minor == l->no_space ? PNET_NO_MEMORY : PNET_BAD_DATA,
        "%.700s: libhdf5 %u.%u.%u: %s", place, l->major, l->minor, l->release, r.text);
}
