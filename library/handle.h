/* Handles carry their class, and public functions check their arguments by it. */
#ifndef PNET_LIBRARY_HANDLE_H
#define PNET_LIBRARY_HANDLE_H

#include "include/pnet.h"

#include <stdbool.h>

enum pnet_class {
    PNET_CLASS_ANY, /* of an argument: a pointer that is no handle */
    PNET_CLASS_MODEL,
    PNET_CLASS_SESSION,
    PNET_CLASS_SET,
    PNET_CLASS_POINTS,
    PNET_CLASS_MAP,
    PNET_CLASS_BUCKETS
};

/* The first member of what a handle points to. */
struct pnet_handle {
    uint64_t mark; /* of its class */
};

/* Zeroed memory of `size` bytes that begins with the mark of the class; NULL with an error. */
void *pnet_handle_new(enum pnet_class class, size_t size, struct pnet_error *e);
/* Overwrites the mark, and frees the memory. NULL is allowed. */
void pnet_handle_free(void *handle);
/* Does it point to a handle of this class? Reads the mark of what may be another object of the program. */
bool pnet_handle_is(const void *handle, enum pnet_class class);

/* An argument of a public function. */
struct pnet_argument {
    const char *name; /* NULL ends a list */
    const void *value;
    enum pnet_class class;
};

/* PNET_USAGE, with the names of the function and the argument, unless all arguments are handles of their classes, or of
   PNET_CLASS_ANY and not NULL. */
enum pnet_status pnet_handle_check(
    const char *function, const struct pnet_argument *arguments, struct pnet_error *e);

/* The first statement of a public function that gets pointers: returns PNET_USAGE from it unless they are
   PNET_A(CLASS, argument). PNET_AS has the name that the header gives the argument, where that is another one. */
#define PNET_A(class, argument) PNET_AS(class, #argument, argument)
#define PNET_AS(class, name, argument) ((struct pnet_argument){name, argument, PNET_CLASS_##class})
#define PNET_REQUIRE(e, ...)                                                                       \
    do {                                                                                           \
        const struct pnet_argument pnet_given[] = {__VA_ARGS__, {.name = NULL}};                   \
        enum pnet_status pnet_wrong = pnet_handle_check(__func__, pnet_given, (e));                \
        if (pnet_wrong) return pnet_wrong;                                                         \
    } while (0)

/* The same of a function that makes a handle: returns PNET_USAGE unless there is a place for it. Sets the place to NULL, which a
   failure leaves there. */
#define PNET_REQUIRE_PLACE(e, to)                                                                  \
    do {                                                                                           \
        if (!(to))                                                                                 \
            return pnet_handle_check(                                                              \
                __func__, (const struct pnet_argument[]){PNET_A(ANY, to), {.name = NULL}}, (e));   \
        *(to) = NULL;                                                                              \
    } while (0)

#endif
