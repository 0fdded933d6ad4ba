/* Names with numbers, found in time that does not depend on how many there are. */
#ifndef PNET_RUNTIME_NAME_TABLE_H
#define PNET_RUNTIME_NAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pnet_name_slot {
    const char *name; /* NULL: empty */
    size_t length;
    int64_t number;
};

/* Initialise it with zeros. Names stay the caller's, and outlive the table. */
struct pnet_name_table {
    struct pnet_name_slot
        *slots;   /* [size] open addressing with linear probing; at least half is empty */
    size_t count; /* of names */
    size_t size;  /* power of two, or 0 */
};

/* Returns where the number of a name of `length` bytes stands, until the next call; a name that is not there is added with
   `number`. NULL: memory is out. */
int64_t *pnet_name_table_at(
    struct pnet_name_table *t, const char *name, size_t length, int64_t number);
/* Returns the number of a name, which must not be negative; -1: it is not there. */
int64_t pnet_name_table_find(const struct pnet_name_table *t, const char *name, size_t length);
void pnet_name_table_free(struct pnet_name_table *t);

#endif
