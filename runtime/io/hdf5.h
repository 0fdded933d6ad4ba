/* HDF5 files in memory, whose structure libhdf5 reads: their arrays in all groups, called "group/name". Links to other files and
   soft links are not followed. */
#ifndef PNET_RUNTIME_IO_HDF5_H
#define PNET_RUNTIME_IO_HDF5_H

#include "runtime/io/hdf5_library.h"
#include "runtime/io/named_arrays.h"

/* An open file. Between begin and end no other thread uses the library. */
struct pnet_hdf5 {
    const struct pnet_hdf5_library *l;
    const struct pnet_bytes *b;
    const char *path;
    pnet_hid file;
    uint64_t room; /* bytes that arrays may still be read into */
    struct pnet_named_arrays *arrays;
    pnet_hid datasets[PNET_NAMED_ARRAYS_MOST]; /* of the arrays */
};

/* Reads the array `name` of the file `b` into the empty array `a`; NULL: the first one of numbers. PNET_BAD_DATA,
   PNET_NO_MEMORY. */
enum pnet_status pnet_hdf5_array(const struct pnet_bytes *b, const char *path, const char *name,
    struct pnet_npy *a, struct pnet_error *e);
/* Shows all arrays of the file to the search. PNET_BAD_DATA, PNET_NO_MEMORY. */
enum pnet_status pnet_hdf5_search(const struct pnet_bytes *b, const char *path,
    struct pnet_array_search *s, struct pnet_error *e);

/* Describes a dataset, which m->text names: its type and its shape, or why it is unfit. PNET_BAD_DATA, PNET_NO_MEMORY. */
enum pnet_status pnet_hdf5_describe(
    const struct pnet_hdf5 *f, pnet_hid dataset, struct pnet_named_array *m, struct pnet_error *e);
/* Sets h.data of an array that was described, within the file or in memory of its own. PNET_BAD_DATA: it is damaged, lies in
   another file, is packed by other filters than those of hdf5_filter.h, or unpacks to more than the room. PNET_NO_MEMORY. */
enum pnet_status pnet_hdf5_load(
    struct pnet_hdf5 *f, pnet_hid dataset, struct pnet_named_array *m, struct pnet_error *e);

/* What these two share. */
/* Returns the bytes of a number of a column. */
size_t pnet_hdf5_number_size(const struct pnet_column *c);
/* Places the columns of the described type in the items at h->data. */
void pnet_hdf5_place(const struct pnet_hdf5 *f, pnet_hid type, struct pnet_npy_header *h);
/* Set the message "path: array: ...", of the reason that the library has, or of `reason`. */
enum pnet_status pnet_hdf5_array_fail(
    const struct pnet_hdf5 *f, const struct pnet_named_array *m, struct pnet_error *e);
enum pnet_status pnet_hdf5_refuse(const struct pnet_hdf5 *f, const struct pnet_named_array *m,
    struct pnet_error *e, const char *reason);

#endif
