/* Sets of the library on a GPU beside the same ones on the CPU: voxels, lists, and arrays on both. */
#ifndef PNET_TESTS_CUDA_LIBRARY_CASE_H
#define PNET_TESTS_CUDA_LIBRARY_CASE_H

#include "tests/library/sets.h"

#include <cuda_runtime_api.h>

static inline void gpu_need(cudaError_t code, const char *what)
{
    if (code == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
    exit(1);
}
#define GPU_NEED(call) gpu_need((call), #call)

/* Is there a GPU? Else says so. */
static inline bool gpu_there(void)
{
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count) return true;
    printf("skipped: %s\n", code ? cudaGetErrorString(code) : "there is no GPU");
    return false;
}

static inline void *gpu_room(size_t bytes)
{
    void *p = NULL;
    GPU_NEED(cudaMalloc(&p, bytes ? bytes : 1));
    GPU_NEED(cudaMemset(p, 0xFF, bytes)); /* NaN, and indices that lead nowhere */
    GPU_NEED(cudaDeviceSynchronize());    /* streams that do not block would not wait for that */
    return p;
}

static inline void *gpu_copy(const void *from, size_t bytes)
{
    void *p = gpu_room(bytes);
    if (bytes) GPU_NEED(cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice));
    return p;
}

static inline void gpu_get(void *to, const void *from, size_t bytes)
{
    GPU_NEED(cudaDeviceSynchronize());
    if (bytes) GPU_NEED(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

static inline void gpu_free(const void *p)
{
    GPU_NEED(cudaFree((void *)(uintptr_t)p));
}

/* To 16 bits, to the nearest value. Numbers of these tests are neither tiny nor large. */
static inline uint16_t gpu_to_short(float x, enum pnet_dtype dtype)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (dtype == PNET_DTYPE_BF16) return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
    if (rest < 0x38800000) return (uint16_t)(sign | (uint32_t)lrintf(fabsf(x) * 0x1p24F));
    rest += 0xFFF + (rest >> 13 & 1);
    return (uint16_t)(sign | (rest - 0x38000000) >> 13);
}

static inline float gpu_from_short(uint16_t x, enum pnet_dtype dtype)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    if (dtype == PNET_DTYPE_BF16) {
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    int exponent = x >> 10 & 31, rest = x & 0x3FF;
    value = exponent ? ldexpf((float)(rest | 0x400), exponent - 25) : ldexpf((float)rest, -24);
    return x & 0x8000 ? -value : value;
}

static inline size_t gpu_element(enum pnet_dtype dtype)
{
    return dtype == PNET_DTYPE_F32 ? 4 : 2;
}

/* Rounds x[count] to what is stored, and gives it to the GPU so. */
static inline void *gpu_put_floats(float *x, int64_t count, enum pnet_dtype dtype)
{
    if (dtype == PNET_DTYPE_F32) return gpu_copy(x, (size_t)count * sizeof *x);
    uint16_t *s = sets_room((size_t)count, sizeof *s);
    for (int64_t i = 0; i < count; i++) {
        s[i] = gpu_to_short(x[i], dtype);
        x[i] = gpu_from_short(s[i], dtype);
    }
    void *d = gpu_copy(s, (size_t)count * sizeof *s);
    free(s);
    return d;
}

static inline void gpu_get_floats(float *x, const void *d, int64_t count, enum pnet_dtype dtype)
{
    if (dtype == PNET_DTYPE_F32) {
        gpu_get(x, d, (size_t)count * sizeof *x);
        return;
    }
    uint16_t *s = sets_room((size_t)count, sizeof *s);
    gpu_get(s, d, (size_t)count * sizeof *s);
    for (int64_t i = 0; i < count; i++) x[i] = gpu_from_short(s[i], dtype);
    free(s);
}

/* An allocator that counts. */
struct gpu_counts {
    long taken, given, wrong;
    size_t bytes;
    void *stream; /* that every call must name */
};
static inline void *gpu_take(void *context, size_t bytes, void *stream)
{
    struct gpu_counts *c = context;
    void *p = NULL;
    c->taken++;
    c->bytes += bytes;
    c->wrong += stream != c->stream;
    return cudaMalloc(&p, bytes) == cudaSuccess ? p : NULL;
}
static inline void gpu_give(void *context, void *memory, size_t bytes, void *stream)
{
    struct gpu_counts *c = context;
    c->given++;
    c->bytes -= bytes;
    c->wrong += stream != c->stream;
    gpu_free(memory);
}

/* The set of a case on the GPU, on `stream`. */
static inline struct pnet_set *gpu_make(
    const struct sets_case *c, void *stream, const struct pnet_allocator *allocator)
{
    struct pnet_voxel_options o = c->o;
    struct pnet_set *set = NULL;
    size_t bytes = (size_t)(c->rows * (1 + c->axes)) * sizeof *c->index;
    int32_t *index = gpu_copy(c->index, bytes);
    struct pnet_array indices = {index, PNET_DTYPE_I32, c->rows, 1 + c->axes, 0};
    o.device = "cuda";
    o.stream = stream;
    o.allocator = allocator;
    GPU_NEED(cudaDeviceSynchronize()); /* the copy is not on the stream */
    NEED(pnet_set_voxels(&indices, &o, &set, &e));
    gpu_free(index);
    return set;
}

/* Are two sets, one on the GPU, the same in all that the library gives? */
static inline bool gpu_same(const struct pnet_set *gpu, const struct pnet_set *cpu)
{
    struct pnet_set_info a = sets_info(gpu), b = sets_info(cpu);
    if (memcmp(&a, &b, sizeof a) != 0) return false;
    size_t n = (size_t)a.triplets, bytes = n * sizeof(int32_t);
    int32_t *got = sets_room(n, sizeof *got), *want = sets_room(3 * n, sizeof *want),
            *d = gpu_room(3 * bytes);
    bool same = true;
    NEED(pnet_set_get_triplets(cpu, want, want + n, want + 2 * n, a.triplets, &e));
    NEED(pnet_set_get_triplets(gpu, d, d + n, d + 2 * n, a.triplets, &e));
    for (size_t k = 0; k < 3; k++) {
        gpu_get(got, d + k * n, bytes);
        same = same && memcmp(got, want + k * n, bytes) == 0;
    }
    free(got);
    free(want);
    gpu_free(d);
    if (!a.axes) return same;
    int64_t numbers = a.rows_out * (1 + a.axes);
    bytes = (size_t)numbers * sizeof(int32_t);
    got = sets_room((size_t)numbers, sizeof *got);
    want = sets_room((size_t)numbers, sizeof *want);
    d = gpu_room(bytes);
    NEED(pnet_set_indices(cpu, want, numbers, &e));
    NEED(pnet_set_indices(gpu, d, numbers, &e));
    gpu_get(got, d, bytes);
    same = same && memcmp(got, want, bytes) == 0;
    free(got);
    free(want);
    gpu_free(d);
    return same;
}

#endif
