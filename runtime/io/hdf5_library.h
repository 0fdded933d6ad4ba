/* libhdf5, opened when the first HDF5 file is read: the program runs without it. Its functions are declared here as in the
   reference manual of the HDF5 library, whose versions from 1.10.5 on have them with identifiers of 64 bits. Sizes (hsize_t) and
   addresses (haddr_t) are unsigned, of 64 bits; herr_t and htri_t are int, below 0 on failure. */
#ifndef PNET_RUNTIME_IO_HDF5_LIBRARY_H
#define PNET_RUNTIME_IO_HDF5_LIBRARY_H

#include "runtime/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t pnet_hid; /* hid_t: below 0 on failure */

/* Values of its enumerations and constants. */
enum {
    PNET_H5E_WALK_UPWARD = 0, /* begins with the most specific error */
    PNET_H5I_GROUP = 2,
    PNET_H5I_DATASET = 5,
    PNET_H5L_TYPE_HARD = 0,
    PNET_H5L_TYPE_EXTERNAL = 64,
    PNET_H5D_CONTIGUOUS = 1,
    PNET_H5D_CHUNKED = 2,
    PNET_H5D_VIRTUAL = 3,
    PNET_H5S_NULL = 2,
    PNET_H5T_INTEGER = 0,
    PNET_H5T_FLOAT = 1,
    PNET_H5T_COMPOUND = 6,
    PNET_H5T_ENUM = 8,
    PNET_H5T_ARRAY = 10,
    PNET_H5T_ORDER_LE = 0,
    PNET_H5T_ORDER_BE = 1,
    PNET_H5T_SGN_NONE = 0,
    PNET_H5T_SGN_2 = 1,
    PNET_H5T_NORM_IMPLIED = 0,
    PNET_H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS = 2,
    PNET_H5D_FILL_VALUE_USER_DEFINED = 2,
    PNET_H5_ALL = 0, /* H5P_DEFAULT, H5S_ALL, H5E_DEFAULT, H5F_ACC_RDONLY */
    PNET_H5_INDEX_NAME = 0,
    PNET_H5_ITER_INC = 0,
};
#define PNET_H5_NOWHERE UINT64_MAX /* HADDR_UNDEF */

/* H5E_error2_t */
struct pnet_hdf5_error {
    pnet_hid class_id, major, minor;
    unsigned line;
    const char *function, *file, *text;
};

/* H5FD_file_image_callbacks_t. `operation` is an enumeration that is not looked at. */
struct pnet_hdf5_image {
    void *(*image_malloc)(size_t size, int operation, void *data);
    void *(*image_memcpy)(void *to, const void *from, size_t size, int operation, void *data);
    void *(*image_realloc)(void *image, size_t size, int operation, void *data);
    int (*image_free)(void *image, int operation, void *data);
    void *(*udata_copy)(void *data);
    int (*udata_free)(void *data);
    void *udata;
};

typedef int pnet_hdf5_see_error(unsigned n, const struct pnet_hdf5_error *error, void *data);
/* `info` is an H5L_info_t, whose members differ between versions; the first one is an int, the type of the link. */
typedef int pnet_hdf5_see_link(pnet_hid group, const char *name, const int *info, void *data);

#define PNET_HDF5_FUNCTIONS(F)                                                                     \
    F(int, H5open, (void))                                                                         \
    F(int, H5free_memory, (void *memory))                                                          \
    F(int, H5Eset_auto2, (pnet_hid stack, void *function, void *data))                             \
    F(int, H5Ewalk2, (pnet_hid stack, int direction, pnet_hdf5_see_error *see, void *data))        \
    F(int, H5PLset_loading_state, (unsigned plugins))                                              \
    F(pnet_hid, H5Pcreate, (pnet_hid class_id))                                                    \
    F(int, H5Pclose, (pnet_hid list))                                                              \
    F(int, H5Pset_fapl_core, (pnet_hid list, size_t increment, unsigned backing_store))            \
    F(int, H5Pset_file_image_callbacks, (pnet_hid list, struct pnet_hdf5_image * image))           \
    F(int, H5Pset_file_image, (pnet_hid list, void *image, size_t size))                           \
    F(int, H5Pget_layout, (pnet_hid list))                                                         \
    F(int, H5Pget_external_count, (pnet_hid list))                                                 \
    F(int, H5Pget_chunk, (pnet_hid list, int dims_most, uint64_t *dims))                           \
    F(int, H5Pget_nfilters, (pnet_hid list))                                                       \
    F(int, H5Pget_filter2,                                                                         \
        (pnet_hid list, unsigned i, unsigned *flags, size_t *values, unsigned *value, size_t size, \
            char *name, unsigned *config))                                                         \
    F(pnet_hid, H5Fopen, (const char *name, unsigned flags, pnet_hid list))                        \
    F(int, H5Fclose, (pnet_hid file))                                                              \
    F(pnet_hid, H5Oopen, (pnet_hid at, const char *name, pnet_hid list))                           \
    F(int, H5Oclose, (pnet_hid object))                                                            \
    F(int, H5Iget_type, (pnet_hid object))                                                         \
    F(int, H5Literate,                                                                             \
        (pnet_hid group, int index, int order, uint64_t *from, pnet_hdf5_see_link *see,            \
            void *data))                                                                           \
    F(pnet_hid, H5Dget_space, (pnet_hid dataset))                                                  \
    F(pnet_hid, H5Dget_type, (pnet_hid dataset))                                                   \
    F(pnet_hid, H5Dget_create_plist, (pnet_hid dataset))                                           \
    F(int, H5Pget_chunk_opts, (pnet_hid list, unsigned *options))                                  \
    F(int, H5Pfill_value_defined, (pnet_hid list, int *defined))                                   \
    F(int, H5Pget_fill_value, (pnet_hid list, pnet_hid type, void *to))                            \
    F(uint64_t, H5Dget_storage_size, (pnet_hid dataset))                                           \
    F(int, H5Dget_chunk_info_by_coord,                                                             \
        (pnet_hid dataset, const uint64_t *offset, unsigned *left_out, uint64_t *at,               \
            uint64_t *size))                                                                       \
    F(uint64_t, H5Dget_offset, (pnet_hid dataset))                                                 \
    F(int, H5Dread,                                                                                \
        (pnet_hid dataset, pnet_hid type, pnet_hid memory_space, pnet_hid file_space,              \
            pnet_hid list, void *to))                                                              \
    F(int, H5Sget_simple_extent_type, (pnet_hid space))                                            \
    F(int, H5Sget_simple_extent_ndims, (pnet_hid space))                                           \
    F(int, H5Sget_simple_extent_dims, (pnet_hid space, uint64_t * dims, uint64_t * most))          \
    F(int, H5Sclose, (pnet_hid space))                                                             \
    F(int, H5Tclose, (pnet_hid type))                                                              \
    F(int, H5Tget_class, (pnet_hid type))                                                          \
    F(size_t, H5Tget_size, (pnet_hid type))                                                        \
    F(int, H5Tget_order, (pnet_hid type))                                                          \
    F(size_t, H5Tget_precision, (pnet_hid type))                                                   \
    F(int, H5Tget_offset, (pnet_hid type))                                                         \
    F(int, H5Tget_fields,                                                                          \
        (pnet_hid type, size_t * sign, size_t * exponent, size_t * exponent_bits,                  \
            size_t * mantissa, size_t * mantissa_bits))                                            \
    F(size_t, H5Tget_ebias, (pnet_hid type))                                                       \
    F(int, H5Tget_norm, (pnet_hid type))                                                           \
    F(size_t, H5Tget_member_offset, (pnet_hid type, unsigned i))                                   \
    F(int, H5Tget_sign, (pnet_hid type))                                                           \
    F(pnet_hid, H5Tget_super, (pnet_hid type))                                                     \
    F(int, H5Tget_nmembers, (pnet_hid type))                                                       \
    F(char *, H5Tget_member_name, (pnet_hid type, unsigned i))                                     \
    F(pnet_hid, H5Tget_member_type, (pnet_hid type, unsigned i))                                   \
    F(int, H5Tget_array_ndims, (pnet_hid type))                                                    \
    F(int, H5Tget_array_dims2, (pnet_hid type, uint64_t * dims))

struct pnet_hdf5_library {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration */
#define PNET_HDF5_FIELD(result, name, parameters) result(*name) parameters;
    PNET_HDF5_FUNCTIONS(PNET_HDF5_FIELD)
#undef PNET_HDF5_FIELD
    pnet_hid file_access; /* H5P_FILE_ACCESS */
    pnet_hid no_space;    /* H5E_NOSPACE: memory is out */
    unsigned major, minor, release;
};

/* Names the library to open; NULL: the one of the system. For programs, before other threads begin: the text is kept. */
void pnet_hdf5_choose(const char *name);
/* Returns the library, which no other thread uses until pnet_hdf5_end: it need not be one that is safe for threads. It prints
   nothing and loads no plugins. PNET_BAD_DATA: there is none, or it is older than 1.10.5; the message says of the file `path`
   what to install, and pnet_hdf5_end must not be called. */
enum pnet_status pnet_hdf5_begin(
    const char *path, const struct pnet_hdf5_library **l, struct pnet_error *e);
void pnet_hdf5_end(void);
/* Sets "place: libhdf5 1.10.8: reason" after a function of the library has failed. Returns PNET_BAD_DATA, or PNET_NO_MEMORY where
   memory is the reason. */
enum pnet_status pnet_hdf5_fail(
    const struct pnet_hdf5_library *l, const char *place, struct pnet_error *e);

#endif
