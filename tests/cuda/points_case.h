/* Points of the library on a GPU beside the same ones on the CPU. */
#ifndef PNET_TESTS_CUDA_POINTS_CASE_H
#define PNET_TESTS_CUDA_POINTS_CASE_H

#include "tests/cuda/library_case.h"
#include "tests/library/points.h"

/* How a cloud's samples are given. */
enum gpu_given { GPU_SPLITS, GPU_NARROW_SPLITS, GPU_COLUMN, GPU_WIDE_COLUMN, GPU_ONE, GPU_GIVEN };

/* The samples of a cloud on the device of `o`; `memory` to free. */
struct gpu_samples {
    struct pnet_array array;
    void *memory;
};

static inline void *gpu_or_host(const void *from, size_t bytes, bool gpu)
{
    if (gpu) return gpu_copy(from, bytes);
    void *to = sets_room(bytes, 1);
    memcpy(to, from, bytes);
    return to;
}

static inline void gpu_or_host_free(void *p, bool gpu)
{
    if (gpu)
        gpu_free(p);
    else
        free(p);
}

static inline void gpu_set_samples(const struct points_cloud *c, enum gpu_given given,
    struct pnet_points_options *o, struct gpu_samples *s)
{
    bool gpu = o->device != NULL, column = given == GPU_COLUMN || given == GPU_WIDE_COLUMN,
         narrow = given == GPU_COLUMN || given == GPU_NARROW_SPLITS;
    int64_t n = column ? c->rows : POINTS_SAMPLES + 1;
    int64_t *wide = sets_room((size_t)n, sizeof *wide);
    int32_t *small = sets_room((size_t)n, sizeof *small);
    for (int64_t i = 0; i < n; i++) {
        wide[i] = column ? c->sample[i] : c->splits[i];
        small[i] = (int32_t)wide[i];
    }
    *s = (struct gpu_samples){.array = {NULL, narrow ? PNET_DTYPE_I32 : PNET_DTYPE_I64, n, 1, 0}};
    if (given != GPU_ONE) {
        s->memory = gpu_or_host(narrow ? (void *)small : (void *)wide,
            (size_t)n * (narrow ? sizeof *small : sizeof *wide), gpu);
        s->array.data = s->memory;
        *(column ? &o->sample : &o->row_splits) = &s->array;
        o->batches = POINTS_SAMPLES;
    }
    free(wide);
    free(small);
}

/* The points of a cloud by options that name a device or none. */
static inline enum pnet_status gpu_try_points(const struct points_cloud *c, enum gpu_given given,
    const struct pnet_points_options *options, struct pnet_points **p, struct pnet_error *e)
{
    struct pnet_points_options o = *options;
    struct gpu_samples s;
    bool gpu = o.device != NULL;
    gpu_set_samples(c, given, &o, &s);
    float *xyz = gpu_or_host(c->xyz, (size_t)c->rows * 12, gpu);
    struct pnet_array at = sets_array(xyz, c->rows, 3);
    if (gpu) GPU_NEED(cudaDeviceSynchronize()); /* the copies are not on the stream */
    enum pnet_status st = pnet_points_new(&at, &o, p, e);
    gpu_or_host_free(xyz, gpu);
    if (s.memory) gpu_or_host_free(s.memory, gpu);
    return st;
}

/* The same points on both devices. */
struct gpu_points {
    struct pnet_points *cpu, *gpu;
};

static inline struct gpu_points gpu_make_points(const struct points_cloud *c, enum gpu_given given,
    double cell, void *stream, const struct pnet_allocator *allocator)
{
    struct gpu_points p = {NULL, NULL};
    struct pnet_points_options o = {.size = sizeof o, .cell = cell};
    NEED(gpu_try_points(c, given, &o, &p.cpu, &e));
    o.device = "cuda";
    o.stream = stream;
    o.allocator = allocator;
    NEED(gpu_try_points(c, given, &o, &p.gpu, &e));
    return p;
}

static inline struct gpu_points gpu_grid_points(const struct gpu_points *of, double cell)
{
    struct gpu_points p = {NULL, NULL};
    NEED(pnet_points_grid(of->cpu, cell, &p.cpu, &e));
    NEED(pnet_points_grid(of->gpu, cell, &p.gpu, &e));
    return p;
}

static inline void gpu_free_points(struct gpu_points *p)
{
    pnet_points_free(p->cpu);
    pnet_points_free(p->gpu);
}

/* What `read` fills on both devices: n rows of `width` words. */
typedef enum pnet_status gpu_read(
    const struct pnet_points *p, const struct pnet_array_out *to, struct pnet_error *e);
static inline bool gpu_same_reading(
    const struct gpu_points *p, gpu_read *read, enum pnet_dtype dtype, int64_t width)
{
    int64_t n = points_info(p->cpu).rows;
    size_t bytes = (size_t)(n * width) * 4;
    void *want = sets_room(bytes, 1), *got = sets_room(bytes, 1), *d = gpu_room(bytes);
    struct pnet_array_out host = {want, dtype, n, width, 0}, device = {d, dtype, n, width, 0};
    NEED(read(p->cpu, &host, &e));
    NEED(read(p->gpu, &device, &e));
    gpu_get(got, d, bytes);
    bool same = memcmp(got, want, bytes) == 0;
    free(want);
    free(got);
    gpu_free(d);
    return same;
}

/* Are they the same in all that the library gives? */
static inline bool gpu_same_points(const struct gpu_points *p)
{
    struct pnet_points_info a = points_info(p->cpu), b = points_info(p->gpu);
    return memcmp(&a, &b, sizeof a) == 0 &&
           gpu_same_reading(p, pnet_points_positions, PNET_DTYPE_F32, 3) &&
           gpu_same_reading(p, pnet_points_samples, PNET_DTYPE_I32, 1) &&
           gpu_same_reading(p, pnet_points_sources, PNET_DTYPE_I32, 1);
}

static inline bool gpu_same_parents(const struct gpu_points *fine, const struct gpu_points *coarse)
{
    int64_t n = points_info(fine->cpu).rows;
    size_t bytes = (size_t)n * sizeof(int32_t);
    int32_t *want = points_parents(fine->cpu, coarse->cpu), *got = sets_room(bytes, 1),
            *d = gpu_room(bytes);
    struct pnet_array_out to = points_ints_out(d, n);
    NEED(pnet_points_parents(fine->gpu, coarse->gpu, &to, &e));
    gpu_get(got, d, bytes);
    bool same = memcmp(got, want, bytes) == 0;
    free(want);
    free(got);
    gpu_free(d);
    return same;
}

/* The 2-norm of the difference of numbers on the GPU from others, over that of the others. */
static inline double gpu_difference(
    const void *d, const float *want, int64_t count, enum pnet_dtype dtype)
{
    float *got = sets_room((size_t)count, sizeof *got);
    double difference = 0, norm = 1e-30;
    gpu_get_floats(got, d, count, dtype);
    for (int64_t i = 0; i < count; i++) {
        double a = (double)got[i] - (double)want[i];
        difference += a * a;
        norm += (double)want[i] * (double)want[i];
    }
    free(got);
    return sqrt(difference / norm);
}

#endif
