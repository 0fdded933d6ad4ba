/* Named tensors in one file: the safetensors format (Hugging Face, version 0.3 and later).

     8 bytes  length N of the header, little endian
     N bytes  JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
              "__metadata__": {"KEY": "VALUE", ...}}
     the rest little-endian data; the offsets count from here, and leave no byte out or in two
   tensors */
#ifndef PNET_RUNTIME_SAFETENSORS_H
#define PNET_RUNTIME_SAFETENSORS_H

#include "runtime/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pnet_tensor_type {
    PNET_TENSOR_F32,
    PNET_TENSOR_F16,
    PNET_TENSOR_BF16,
    PNET_TENSOR_F64,
    PNET_TENSOR_I8,
    PNET_TENSOR_I16,
    PNET_TENSOR_I32,
    PNET_TENSOR_I64,
    PNET_TENSOR_U8,
    PNET_TENSOR_U16,
    PNET_TENSOR_U32,
    PNET_TENSOR_U64,
    PNET_TENSOR_BOOL,
    PNET_TENSOR_TYPES,
};
size_t pnet_tensor_type_size(enum pnet_tensor_type t);
const char *pnet_tensor_type_name(enum pnet_tensor_type t); /* "F32" */

enum { PNET_TENSOR_DIMS = 8 };

struct pnet_safetensor {
    const char *name;
    enum pnet_tensor_type dtype;
    int dims; /* 0: one number */
    int64_t shape[PNET_TENSOR_DIMS];
    const void *data; /* row-major; of a file read: only as aligned as its writer made it */
};

struct pnet_metadata {
    const char *key, *value;
};

/* Returns the number of elements; dimensions must not be negative. -1: more than 63 bits hold. */
int64_t pnet_safetensor_count(const struct pnet_safetensor *t);

/* Writes `path` atomically (runtime/base/file.h). Wider types come first, else in the order given, so
   that every tensor is aligned to its type. Names must differ and not be "__metadata__". */
enum pnet_status pnet_safetensors_write(const char *path, const struct pnet_safetensor *tensors,
    size_t count, const struct pnet_metadata *metadata, size_t metadata_count,
    struct pnet_error *e);

/* A file that was checked completely. Owns names, shapes and metadata. */
struct pnet_safetensors {
    struct pnet_safetensor *tensors; /* [count], in the order of their data */
    size_t count;
    struct pnet_metadata *metadata; /* [metadata_count] */
    size_t metadata_count;
    struct pnet_safetensors_memory *memory;
};

/* PNET_FAILED: the file cannot be opened. PNET_BAD_DATA: it is not such a file; the message names the file, the tensor and what
   was expected. On failure *f is NULL. */
enum pnet_status pnet_safetensors_read(
    const char *path, struct pnet_safetensors **f, struct pnet_error *e);
/* Does the same from memory, which must outlive *f; `name` is for messages. */
enum pnet_status pnet_safetensors_parse(const char *name, const void *bytes, size_t size,
    struct pnet_safetensors **f, struct pnet_error *e);
void pnet_safetensors_free(struct pnet_safetensors *f);

/* Returns the tensor of that name, or NULL. */
const struct pnet_safetensor *pnet_safetensors_find(
    const struct pnet_safetensors *f, const char *name);
/* Returns the value of a metadata key, or NULL. */
const char *pnet_safetensors_metadata(const struct pnet_safetensors *f, const char *key);

/* Copies the tensor `name` into out[product of shape], converting F16, BF16 and F64 to float32. PNET_BAD_MODEL: it is missing
   (the message names the nearest name of the file), has another shape, or does not hold reals. `file` is for the message. */
enum pnet_status pnet_safetensors_load(const struct pnet_safetensors *f, const char *file,
    const char *name, int dims, const int64_t *shape, float *out, struct pnet_error *e);

/* Does the type hold reals: F32, F16, BF16 or F64? */
bool pnet_tensor_type_is_real(enum pnet_tensor_type t);
/* Copies a tensor of reals, whatever its shape, into out[pnet_safetensor_count(t)] as float32. */
void pnet_safetensor_floats(const struct pnet_safetensor *t, float *out);
/* PNET_BAD_DATA: some of the numbers are NaN or infinite. A training that diverged leaves them, and all their results are
   useless. `file` and `name`, of the tensor, are for the message. */
enum pnet_status pnet_floats_check_finite(
    const char *file, const char *name, const float *x, int64_t count, struct pnet_error *e);

/* Writes a shape of at most PNET_TENSOR_DIMS lengths, "[27, 3, 64]", and returns `text`. */
enum { PNET_SHAPE_TEXT = 192 };
const char *pnet_shape_text(int dims, const int64_t *shape, char text[PNET_SHAPE_TEXT]);

/* Converts IEEE binary16, any bits, to float; the other one bfloat16. */
float pnet_float_from_half(uint16_t h);
float pnet_float_from_bfloat(uint16_t b);

#endif
