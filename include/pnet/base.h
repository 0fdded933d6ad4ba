/* Versions and errors, the caller's arrays and memory. A part of pnet.h, which programs include. */
#ifndef PNET_API_BASE_H
#define PNET_API_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PNET_API __attribute__((visibility("default")))
#else
#define PNET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows whenever a program must be compiled anew. 0: it may change with every version. */
#define PNET_ABI 0

/* The PNET_ABI and the version, "0.1.0", of the library that is loaded. */
PNET_API int pnet_abi(void);
PNET_API const char *pnet_version(void);

enum pnet_status {
    PNET_OK = 0,
    PNET_FAILED = 1,    /* the operating system refused something */
    PNET_USAGE = 2,     /* an argument or option is wrong, or a call comes too early */
    PNET_BAD_MODEL = 3, /* .pnet text, or weights that do not fit it */
    PNET_BAD_DATA = 4,  /* values in an array or a file are wrong */
    PNET_NO_MEMORY = 5, /* memory budget or allocation */
    PNET_NO_DEVICE = 6,
    PNET_INTERRUPTED = 130
};

/* The function that fails fills it and overwrites what it held. The caller owns it. */
struct pnet_error {
    enum pnet_status status;
    char message[1024]; /* one line or several, printable UTF-8, no newline at the end */
};

enum pnet_dtype {
    PNET_DTYPE_F32 = 0,
    PNET_DTYPE_I32 = 1,
    PNET_DTYPE_I64 = 2,
    PNET_DTYPE_BF16 = 3, /* this and the next one: features on a GPU */
    PNET_DTYPE_F16 = 4
};

/* A matrix in the caller's memory: element k of row i lies at data[i * stride + k]. */
struct pnet_array {
    const void *data; /* aligned to an element; may be NULL where there are no rows */
    enum pnet_dtype dtype;
    int64_t rows, width;
    int64_t stride; /* elements from one row to the next, at least `width`; 0: `width` */
};

/* A matrix that a function fills, as struct pnet_array. */
struct pnet_array_out {
    void *data;
    enum pnet_dtype dtype;
    int64_t rows, width;
    int64_t stride;
};

/* Memory of a GPU for work on `stream`, for example a framework's; work that is there may still use what is given back. Called by
   the thread that calls, `take` while that GPU is its current one. `take` gives addresses that are multiples of 256; NULL: there
   is none. */
struct pnet_allocator {
    size_t size;
    void *context;
    void *(*take)(void *context, size_t bytes, void *stream);
    void (*give)(void *context, void *memory, size_t bytes, void *stream);
};

#ifdef __cplusplus
}
#endif

#endif
