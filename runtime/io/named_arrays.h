/* Arrays with names, as NPZ archives and HDF5 files have them: which of them hold the coordinates of a cloud, which are its
   fields. */
#ifndef PNET_RUNTIME_IO_NAMED_ARRAYS_H
#define PNET_RUNTIME_IO_NAMED_ARRAYS_H

#include "runtime/base/file.h"
#include "runtime/io/npy_header.h"

enum { PNET_NAMED_ARRAYS_MOST = 256, PNET_ARRAY_LIST = 400 };

struct pnet_named_array {
    struct pnet_span name; /* within the file, or within `text` */
    const char *unfit;     /* NULL: an array of numbers; else what it is instead, "not numbers" */
    char *why; /* of an unfit one: the message, which begins with file and array; or NULL */
    struct pnet_npy_header h; /* of an array of numbers; h.data is set once the array is loaded */
    struct pnet_bytes bytes;  /* what h.data points into */
    char *text;               /* names that are not in the file as they are, or NULL */
};

/* Zeroed but for path: none. */
struct pnet_named_arrays {
    struct pnet_named_array items[PNET_NAMED_ARRAYS_MOST];
    int count;
    const char *path;
    const char *nothing; /* what the file is if none of its arrays has numbers, for a message */
    /* Sets h.data of an array of numbers, of which `bytes` owns the memory; NULL: all are loaded. */
    enum pnet_status (*load)(void *file, struct pnet_named_array *m, struct pnet_error *e);
    void *file;
};

/* Fills the empty cloud `c`: coordinates from the array that `choice` names ("x,y,z": three arrays; the field of records), or,
   with NULL, from the one whose name or shape says so; a field from each other array with a row for each point. Only these are
   loaded. PNET_BAD_DATA where the choice is not there, or none or several may hold the coordinates: the message lists the
   arrays. On failure `c` is empty. */
enum pnet_status pnet_named_arrays_cloud(
    struct pnet_named_arrays *a, const char *choice, struct pnet_cloud *c, struct pnet_error *e);
void pnet_named_arrays_free(struct pnet_named_arrays *a);

/* A search for the array that holds many clouds. Zeroed but for dims. */
struct pnet_array_search {
    int dims; /* of the array */
    int count, likely, named;
    char name[PNET_ARRAY_NAME];
    char list[PNET_ARRAY_LIST];
};
/* Considers an array; `h` NULL: it has no numbers, but is `unfit`. */
void pnet_array_search_see(struct pnet_array_search *s, struct pnet_span name,
    const struct pnet_npy_header *h, const char *unfit);
/* s->name is the only array seen of so many dimensions, or, of several, the only one that has a name of coordinates, or the only
   one whose name does not say that it holds something else. PNET_BAD_DATA: there is none; the message lists the arrays. */
enum pnet_status pnet_array_search_end(
    const struct pnet_array_search *s, const char *path, struct pnet_error *e);

#endif
