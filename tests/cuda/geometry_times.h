/* Times of the geometry stage on a GPU: the four sets of the benchmark rooms, read from a folder, or
   a made-up room where it holds none. */
#ifndef PNET_TESTS_CUDA_GEOMETRY_TIMES_H
#define PNET_TESTS_CUDA_GEOMETRY_TIMES_H

#include "tests/cuda/geometry.h"
#include "tests/geometry/arrays.h"
#include "kernels/rows.h"

#include <cuda_runtime_api.h>

enum { KEYS_AND_ORDER, COUNT, WRITE, RAW_TO_TRIPLETS, BACK, TRANSPOSE, NEAREST, STAGES };
enum { REPEAT = 5 };

struct watch {
    cudaEvent_t begin, end;
    float ms[STAGES][REPEAT];
};

static inline void watch_start(struct watch *w)
{
    cudaEventRecord(w->begin, cudaStreamPerThread);
}

static inline void watch_stop(struct watch *w, int stage, int round)
{
    cudaEventRecord(w->end, cudaStreamPerThread);
    cudaEventSynchronize(w->end);
    cudaEventElapsedTime(&w->ms[stage][round], w->begin, w->end);
}

static inline double watch_median(struct watch *w, int stage)
{
    float *ms = w->ms[stage];
    for (int i = 1; i < REPEAT; i++)
        for (int k = i; k > 0 && ms[k - 1] > ms[k]; k--) {
            float swap = ms[k];
            ms[k] = ms[k - 1];
            ms[k - 1] = swap;
        }
    return (double)ms[REPEAT / 2];
}

/* Walls of three rooms of 8 x 6 x 3 m and a floor full of boxes, on a grid of 2.5 cm. */
static inline struct cloud *made_up_rooms(int64_t rows)
{
    struct pnet_rand r = {.seed = 1, .purpose = PNET_DRAW_TEST};
    static const float size[3] = {8, 6, 3};
    float *xyz = memory((size_t)rows * 3 * sizeof *xyz);
    for (int64_t i = 0; i < rows; i++) {
        float u[4];
        for (int a = 0; a < 4; a++) u[a] = pnet_rand_unit(&r, (uint64_t)(4 * i + a));
        int wall = (int)(u[3] * 12), axis = wall % 3;
        float shift = wall < 6 ? 0 : floorf(u[(axis + 1) % 3] * 5) * 0.3f;
        for (int a = 0; a < 3; a++) xyz[3 * i + a] = u[a] * size[a];
        xyz[3 * i + axis] = wall % 2 ? size[axis] - shift : shift;
    }
    int64_t splits[4] = {0, rows / 3, rows / 3 * 2, rows};
    struct cloud *raw = cloud_of(3, splits, xyz, (struct pnet_grid){0.025f, 40.0f, 1});
    free(xyz);
    return raw;
}

static inline struct cloud *read_rooms(const char *dir)
{
    char name[16];
    int64_t splits[4] = {0};
    float *xyz = memory(0);
    for (int room = 0; room < 3; room++) {
        snprintf(name, sizeof name, "room%d.npy", room);
        struct array a = array_read(dir, name, "<f4", 4);
        if (!a.data) {
            free(xyz);
            return NULL;
        }
        splits[room + 1] = splits[room] + a.rows;
        float *grown = realloc(xyz, (size_t)splits[room + 1] * 3 * sizeof *xyz);
        if (!grown) exit(1);
        xyz = grown;
        memcpy(xyz + 3 * splits[room], a.data, (size_t)a.rows * 3 * sizeof *xyz);
        free(a.data);
    }
    struct cloud *raw = cloud_of(3, splits, xyz, (struct pnet_grid){0.025f, 40.0f, 1});
    free(xyz);
    return raw;
}

/* The level of raw points, built on the device: keys, order, points and keys in that order. */
struct staged {
    struct pnet_level raw, level;
    int32_t *order;
    void *work;
};

static inline void stage_level(struct staged *s)
{
    int64_t n = s->raw.rows;
    float *xyz = (void *)(uintptr_t)s->level.xyz;
    CHECK(pnet_cuda_order_points(n, s->raw.samples, s->raw.row_splits, s->raw.xyz, s->raw.grid,
              s->order, xyz, s->work) == 0);
    pnet_cuda_gather(n, 3, s->raw.xyz, s->order, xyz);
    pnet_cuda_keys(n, xyz, s->raw.grid, (void *)(uintptr_t)s->level.key);
}

static inline struct staged stage_open(struct arena *a, const struct pnet_level *raw)
{
    size_t n = (size_t)raw->rows;
    struct staged s = {.raw = level_on_device(a, raw)};
    s.level = s.raw;
    s.level.xyz = arena_take(a, 3 * n * sizeof(float));
    s.level.key = arena_take(a, n * sizeof(uint64_t));
    s.order = arena_take(a, n * sizeof *s.order);
    s.work = arena_take(a, pnet_cuda_order_points_work(raw->rows));
    return s;
}

static inline void time_set(
    struct arena *a, const char *what, const struct pnet_level *raw, struct pnet_neighbourhood nb)
{
    struct watch w;
    struct staged s = stage_open(a, raw);
    struct pnet_level *l = &s.level;
    cudaEventCreate(&w.begin);
    cudaEventCreate(&w.end);
    stage_level(&s);
    struct device_set forward = device_set_make(a, l, l, &nb, NULL),
                      back = device_set_transposed(a, &forward.t);
    size_t bytes = pnet_cuda_triplets_work(l, l, &nb);
    void *work = arena_take(a, bytes),
         *back_work = arena_take(a, pnet_cuda_transpose_work(&forward.t));
    for (int round = 0; round < REPEAT; round++) {
        watch_start(&w);
        stage_level(&s);
        watch_stop(&w, KEYS_AND_ORDER, round);
        watch_start(&w);
        pnet_cuda_triplets_count(l, l, &nb, NULL, forward.start, work);
        watch_stop(&w, COUNT, round);
        watch_start(&w);
        pnet_cuda_triplets_write(l, l, &nb, NULL, forward.start, forward.other, forward.cell, work);
        watch_stop(&w, WRITE, round);
        watch_start(&w);
        pnet_cuda_transpose(&forward.t, back.start, back.other, back.cell, back_work);
        watch_stop(&w, TRANSPOSE, round);
        watch_start(&w);
        pnet_cuda_triplets_back(l, &nb, forward.start, back.other, back.cell, work);
        watch_stop(&w, BACK, round);
        watch_start(&w);
        stage_level(&s);
        pnet_cuda_triplets_count(l, l, &nb, NULL, forward.start, work);
        pnet_cuda_triplets_write(l, l, &nb, NULL, forward.start, forward.other, forward.cell, work);
        watch_stop(&w, RAW_TO_TRIPLETS, round);
    }
    printf("%-20s T %9lld U %9lld  ms: order %.3f count %.3f write %.3f, raw to sorted %.3f, "
           "back %.3f (transpose %.3f); work %.1f B/point\n",
        what, (long long)forward.t.count, (long long)pnet_cuda_cell_runs(&forward.t),
        watch_median(&w, KEYS_AND_ORDER), watch_median(&w, COUNT), watch_median(&w, WRITE),
        watch_median(&w, RAW_TO_TRIPLETS), watch_median(&w, BACK), watch_median(&w, TRANSPOSE),
        (double)bytes / (double)raw->rows);
    cudaEventDestroy(w.begin);
    cudaEventDestroy(w.end);
    CHECK(arena_close(a));
}

static inline void time_levels(struct arena *a, const struct pnet_level *raw)
{
    struct watch w;
    struct staged s = stage_open(a, raw);
    size_t n = (size_t)raw->rows;
    struct pnet_level coarse = s.level;
    coarse.grid.factor = 2;
    int32_t *keep = arena_take(a, n * sizeof *keep), *parent = arena_take(a, n * sizeof *parent);
    int32_t *index = arena_take(a, 3 * n * sizeof *index);
    float *distance2 = arena_take(a, 3 * n * sizeof *distance2);
    int64_t *splits = arena_take(a, ((size_t)raw->samples + 1) * sizeof *splits),
            *start = arena_take(a, (n + 1) * sizeof *start);
    void *work = arena_take(a, pnet_cuda_sample_work(raw->rows, true)),
         *near_work = arena_take(a, pnet_cuda_nearest_work(raw, raw, 3));
    coarse.xyz = arena_take(a, 3 * n * sizeof(float));
    coarse.key = arena_take(a, n * sizeof(uint64_t));
    coarse.row_splits = splits;
    cudaEventCreate(&w.begin);
    cudaEventCreate(&w.end);
    stage_level(&s);
    for (int round = 0; round < REPEAT; round++) {
        watch_start(&w);
        coarse.rows = pnet_cuda_sample(&s.level, coarse.grid, true, keep, parent, splits, work);
        watch_stop(&w, COUNT, round);
        watch_start(&w);
        pnet_cuda_children(raw->rows, coarse.rows, parent, start, NULL);
        watch_stop(&w, WRITE, round);
        pnet_cuda_gather(coarse.rows, 3, s.level.xyz, keep, (void *)(uintptr_t)coarse.xyz);
        pnet_cuda_keys(coarse.rows, coarse.xyz, coarse.grid, (void *)(uintptr_t)coarse.key);
        watch_start(&w);
        pnet_cuda_nearest(&s.level, &coarse, 3, index, distance2, near_work);
        watch_stop(&w, NEAREST, round);
    }
    printf("to 5 cm: %lld rows  ms: sample %.3f children %.3f nearest(3) %.3f\n",
        (long long)coarse.rows, watch_median(&w, COUNT), watch_median(&w, WRITE),
        watch_median(&w, NEAREST));
    for (int kernel = 2; kernel <= 3; kernel++) {
        struct pnet_neighbourhood nb = {.kernel = kernel, .radius = 0.0125f * (float)kernel};
        struct device_set up = device_set_make(a, &coarse, &s.level, &nb, parent);
        void *set_work = arena_take(a, pnet_cuda_triplets_work(&coarse, &s.level, &nb));
        for (int round = 0; round < REPEAT; round++) {
            watch_start(&w);
            pnet_cuda_triplets_count(&coarse, &s.level, &nb, parent, up.start, set_work);
            watch_stop(&w, COUNT, round);
            watch_start(&w);
            pnet_cuda_triplets_write(
                &coarse, &s.level, &nb, parent, up.start, up.other, up.cell, set_work);
            watch_stop(&w, WRITE, round);
        }
        printf("to 5 cm, K=%d: T %lld  ms: count %.3f write %.3f\n", kernel, (long long)up.t.count,
            watch_median(&w, COUNT), watch_median(&w, WRITE));
    }
    struct pnet_neighbourhood knn = {.kernel = 3, .knn = 16};
    struct device_set near = device_set_make(a, &s.level, &s.level, &knn, NULL);
    void *knn_work = arena_take(a, pnet_cuda_triplets_work(&s.level, &s.level, &knn));
    for (int round = 0; round < REPEAT; round++) {
        watch_start(&w);
        pnet_cuda_triplets_write(
            &s.level, &s.level, &knn, NULL, near.start, near.other, near.cell, knn_work);
        watch_stop(&w, WRITE, round);
    }
    printf("knn=16: T %lld  ms: write %.3f\n", (long long)near.t.count, watch_median(&w, WRITE));
    cudaEventDestroy(w.begin);
    cudaEventDestroy(w.end);
    CHECK(arena_close(a));
}

static inline void print_times(struct arena *a, const char *dir)
{
    struct cloud *raw = read_rooms(dir);
    if (!raw) {
        printf("no rooms in %s: a made-up one\n", dir);
        raw = made_up_rooms(2000000);
    }
    const struct pnet_level *l = &raw->level;
    time_set(a, "voxel, K=3", l,
        (struct pnet_neighbourhood){.kernel = 3, .radius = 0.0375f, .degrade = PNET_VOXEL});
    time_set(
        a, "ball 0.0375 m, K=3", l, (struct pnet_neighbourhood){.kernel = 3, .radius = 0.0375f});
    time_set(a, "ball 0.05 m, K=3", l, (struct pnet_neighbourhood){.kernel = 3, .radius = 0.05f});
    time_set(
        a, "ball 0.0625 m, K=5", l, (struct pnet_neighbourhood){.kernel = 5, .radius = 0.0625f});
    time_levels(a, l);
    cloud_free(raw);
}

#endif
