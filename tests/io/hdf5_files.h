/* HDF5 files for tests, written by the functions of libhdf5 that the program does not use. Failures to write end the test. */
#ifndef PNET_TESTS_IO_HDF5_FILES_H
#define PNET_TESTS_IO_HDF5_FILES_H

#include "runtime/io/hdf5_library.h"
#include "tests/io/files.h"

#include <dlfcn.h>

enum {
    H5_CHUNKED = 1,
    H5_PACKED = 2,
    H5_COMPACT = 4,
    H5_STRANGE = 8,
    H5_OUTSIDE = 16,
    H5_UNCHECKED = 32
};

static struct {
    const struct pnet_hdf5_library *l;
    void *handle;
    pnet_hid file;
    char path[1024];
} h5;

static inline void *h5_symbol(const char *name)
{
    void *symbol = dlsym(h5.handle, name);
    if (symbol) return symbol;
    fprintf(stderr, "libhdf5 has no %s\n", name);
    exit(1);
}

/* The value of one of its identifiers: h5_id("H5T_IEEE_F32BE_g"). */
static inline pnet_hid h5_id(const char *name)
{
    pnet_hid id;
    memcpy(&id, h5_symbol(name), sizeof id);
    return id;
}

static inline pnet_hid h5_good(pnet_hid result, const char *what)
{
    if (result >= 0) return result;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

/* Calls a function of the library: H5(pnet_hid, H5Screate_simple, (int, ...))(2, ...). */
#define H5(result, name, parameters) ((result(*) parameters)(uintptr_t)h5_symbol(#name))

/* Finds the library. Returns false where none is installed. */
static inline bool h5_find(void)
{
    struct pnet_error e;
    Dl_info info;
    void *function;
    if (pnet_hdf5_begin("a.h5", &h5.l, &e) != PNET_OK) {
        printf("%s\n", e.message);
        if (strstr(e.message, "install libhdf5")) return false;
        exit(1);
    }
    pnet_hdf5_end();
    memcpy(&function, &h5.l->H5Fopen, sizeof function);
    h5.handle = dladdr(function, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!h5.handle) exit(1);
    return true;
}

/* Begins a file; h5_end ends it. `checked`: with checksums in all of its headers, as HDF5 1.10 can write them. No other thread
   may read HDF5 files meanwhile. */
static inline void h5_begin_as(const char *path, bool checked)
{
    pnet_hid list = h5_good(h5.l->H5Pcreate(h5.l->file_access), "H5Pcreate");
    snprintf(h5.path, sizeof h5.path, "%s", path);
    if (checked)
        h5_good(H5(int, H5Pset_libver_bounds, (pnet_hid, int, int))(list, 2, 2),
            "H5Pset_libver_bounds");
    h5.file = h5_good(
        H5(pnet_hid, H5Fcreate, (const char *, unsigned, pnet_hid, pnet_hid))(path, 2, 0, list),
        "H5Fcreate");
    h5.l->H5Pclose(list);
}

static inline void h5_begin(const char *path)
{
    h5_begin_as(path, false);
}

static inline void h5_end(void)
{
    h5_good(h5.l->H5Fclose(h5.file), "H5Fclose");
}

static inline void h5_group(const char *name)
{
    pnet_hid group =
        h5_good(H5(pnet_hid, H5Gcreate2, (pnet_hid, const char *, pnet_hid, pnet_hid, pnet_hid))(
                    h5.file, name, 0, 0, 0),
            "H5Gcreate2");
    h5.l->H5Oclose(group);
}

static inline pnet_hid h5_array_type(pnet_hid of, uint64_t count)
{
    return h5_good(
        H5(pnet_hid, H5Tarray_create2, (pnet_hid, unsigned, const uint64_t *))(of, 1, &count),
        "H5Tarray_create2");
}

static inline pnet_hid h5_record_type(size_t size)
{
    return h5_good(H5(pnet_hid, H5Tcreate, (int, size_t))(PNET_H5T_COMPOUND, size), "H5Tcreate");
}

static inline void h5_insert(pnet_hid records, const char *name, size_t at, pnet_hid member)
{
    h5_good(
        H5(int, H5Tinsert, (pnet_hid, const char *, size_t, pnet_hid))(records, name, at, member),
        name);
}

/* Returns the list that asks for the layout: OR of H5_CHUNKED ... */
static inline pnet_hid h5_layout(int layout, int dims, const uint64_t *shape)
{
    pnet_hid list = h5_good(h5.l->H5Pcreate(h5_id("H5P_CLS_DATASET_CREATE_ID_g")), "H5Pcreate");
    uint64_t chunk[8], bytes = 1 << 20;
    for (int d = 0; d < dims && d < 8; d++) chunk[d] = shape[d] > 3 ? 3 : shape[d];
    if (layout & (H5_CHUNKED | H5_PACKED | H5_STRANGE | H5_UNCHECKED))
        h5_good(
            H5(int, H5Pset_chunk, (pnet_hid, int, const uint64_t *))(list, dims, chunk), "chunk");
    if (layout & (H5_PACKED | H5_UNCHECKED)) {
        h5_good(H5(int, H5Pset_shuffle, (pnet_hid))(list), "shuffle");
        h5_good(H5(int, H5Pset_deflate, (pnet_hid, unsigned))(list, 9), "deflate");
    }
    if (layout & H5_PACKED) h5_good(H5(int, H5Pset_fletcher32, (pnet_hid))(list), "fletcher32");
    if (layout &
        H5_STRANGE) /* an optional filter that is not there leaves the numbers as they are */
        h5_good(H5(int, H5Pset_filter, (pnet_hid, int, unsigned, size_t, const unsigned *))(
                    list, 307, 1, 0, NULL),
            "filter");
    if (layout & H5_COMPACT) h5_good(H5(int, H5Pset_layout, (pnet_hid, int))(list, 0), "layout");
    if (layout & H5_OUTSIDE)
        h5_good(H5(int, H5Pset_external, (pnet_hid, const char *, long, uint64_t))(
                    list, "/dev/null", 0, bytes),
            "external");
    return list;
}

/* Adds a dataset of that type in the file and in memory; `data` NULL: nothing is written into it. */
static inline void h5_add_as(const char *name, pnet_hid type, pnet_hid memory, int layout, int dims,
    const uint64_t *shape, const void *data)
{
    pnet_hid list = h5_layout(layout, dims, shape);
    pnet_hid space = h5_good(H5(pnet_hid, H5Screate_simple,
                                 (int, const uint64_t *, const uint64_t *))(dims, shape, NULL),
        "space");
    pnet_hid dataset = h5_good(H5(pnet_hid, H5Dcreate2,
                                   (pnet_hid, const char *, pnet_hid, pnet_hid, pnet_hid, pnet_hid,
                                       pnet_hid))(h5.file, name, type, space, 0, list, 0),
        name);
    if (data)
        h5_good(H5(int, H5Dwrite, (pnet_hid, pnet_hid, pnet_hid, pnet_hid, pnet_hid, const void *))(
                    dataset, memory, 0, 0, 0, data),
            name);
    h5.l->H5Oclose(dataset);
    h5.l->H5Sclose(space);
    h5.l->H5Pclose(list);
}

/* The same of [rows, width] (width 0: [rows]) with the names of the types' identifiers: "STD_I8LE", "NATIVE_INT8". */
static inline void h5_add(const char *name, const char *type, const char *memory, uint64_t rows,
    uint64_t width, const void *data)
{
    char file_type[64], memory_type[64];
    const uint64_t shape[2] = {rows, width};
    snprintf(file_type, sizeof file_type, "H5T_%s_g", type);
    snprintf(memory_type, sizeof memory_type, "H5T_%s_g", memory);
    h5_add_as(name, h5_id(file_type), h5_id(memory_type), 0, width ? 2 : 1, shape, data);
}

#define H5_FLOATS(name, rows, width, data)                                                         \
    h5_add(name, "IEEE_F32LE", "NATIVE_FLOAT", rows, width, data)

static inline void h5_soft_link(const char *to, const char *name)
{
    h5_good(H5(int, H5Lcreate_soft, (const char *, pnet_hid, const char *, pnet_hid, pnet_hid))(
                to, h5.file, name, 0, 0),
        "H5Lcreate_soft");
}

static inline void h5_hard_link(const char *to, const char *name)
{
    h5_good(H5(int, H5Lcreate_hard,
                (pnet_hid, const char *, pnet_hid, const char *, pnet_hid, pnet_hid))(
                h5.file, to, h5.file, name, 0, 0),
        "H5Lcreate_hard");
}

static inline void h5_link_outside(const char *file, const char *to, const char *name)
{
    h5_good(H5(int, H5Lcreate_external,
                (const char *, const char *, pnet_hid, const char *, pnet_hid, pnet_hid))(
                file, to, h5.file, name, 0, 0),
        "H5Lcreate_external");
}

/* Returns the bytes of the file written last, which is removed. The caller frees them with pnet_bytes_free. */
static inline struct pnet_bytes h5_bytes(void)
{
    struct pnet_bytes b;
    struct pnet_error e;
    h5_end();
    if (pnet_bytes_read(h5.path, &b, &e) != PNET_OK) exit(1);
    remove(h5.path);
    return b;
}

#endif
