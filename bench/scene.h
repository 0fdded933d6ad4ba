/* Clouds from files as one batch, ordered as a level is, and the triplet sets of a convolution on
 * it. */
#ifndef PNET_BENCH_SCENE_H
#define PNET_BENCH_SCENE_H

#include <string.h>
#include "bench/bench.h"
#include "kernels/cpu/geo.h"
#include "runtime/cloud.h"

enum { SCENES_MAX = 64 };

struct scene {
    struct pnet_level level;
    int64_t splits[SCENES_MAX + 1];
    float *xyz;
    uint64_t *key;
};

/* A set that owns its arrays. */
struct scene_set {
    struct pnet_triplets t;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

/* One sample a file. */
static inline enum pnet_status scene_read(
    struct scene *s, int files, const char *const *path, struct pnet_error *e)
{
    *s = (struct scene){.level = {.samples = files}};
    for (int i = 0; i < files; i++) {
        struct pnet_cloud cloud;
        enum pnet_status status = pnet_cloud_read(path[i], &cloud, NULL, e);
        if (status != PNET_OK) return status;
        s->splits[i + 1] = s->splits[i] + cloud.rows;
        float *xyz = bench_alloc((size_t)s->splits[i + 1] * 3 * sizeof *xyz);
        if (s->xyz) memcpy(xyz, s->xyz, (size_t)s->splits[i] * 3 * sizeof *xyz);
        memcpy(xyz + 3 * s->splits[i], cloud.xyz, (size_t)cloud.rows * 3 * sizeof *xyz);
        free(s->xyz);
        s->xyz = xyz;
        pnet_cloud_free(&cloud);
    }
    return PNET_OK;
}

/* Sorts the points by their key on a grid of `cell` metres. False: the grid does not reach them
 * all. */
static inline bool scene_order(struct scene *s, double cell)
{
    int64_t rows = s->splits[s->level.samples];
    struct pnet_grid grid = {(float)cell, (float)(1 / cell), 1};
    uint64_t *key = bench_alloc((size_t)rows * sizeof *key);
    int32_t *order = bench_alloc((size_t)rows * sizeof *order);
    float *xyz = bench_alloc((size_t)rows * 3 * sizeof *xyz);
    void *work = bench_alloc(pnet_cpu_order_work(rows));
    bool inside = pnet_cpu_keys(rows, s->xyz, grid, key) == 0;
    pnet_cpu_order(rows, s->level.samples, s->splits, key, order, work);
    for (int64_t i = 0; i < rows; i++)
        memcpy(xyz + 3 * i, s->xyz + 3 * (int64_t)order[i], 3 * sizeof *xyz);
    pnet_cpu_keys(rows, xyz, grid, key);
    free(work);
    free(order);
    free(s->xyz);
    s->xyz = xyz;
    s->key = key;
    s->level = (struct pnet_level){rows, s->level.samples, s->splits, xyz, key, grid};
    return inside;
}

static inline void scene_free(struct scene *s)
{
    free(s->xyz);
    free(s->key);
}

static inline struct scene_set scene_triplets(
    const struct scene *s, const struct pnet_neighbourhood *nb)
{
    const struct pnet_level *l = &s->level;
    struct scene_set set = {.start = bench_alloc((size_t)(l->rows + 1) * sizeof(int64_t))};
    void *work = bench_alloc(pnet_cpu_triplets_work(l, l, nb));
    int64_t count = pnet_cpu_triplets_count(l, l, nb, NULL, set.start, work);
    set.other = bench_alloc((size_t)count * sizeof *set.other);
    set.cell = bench_alloc((size_t)count * sizeof *set.cell);
    pnet_cpu_triplets_write(l, l, nb, NULL, set.start, set.other, set.cell, work);
    free(work);
    int32_t cells = nb->kernel * nb->kernel * nb->kernel;
    set.t = (struct pnet_triplets){
        l->rows, l->rows, count, cells, set.start, set.other, set.cell, NULL, {0}};
    return set;
}

static inline struct scene_set scene_transposed(const struct pnet_triplets *t)
{
    struct scene_set set = {.start = bench_alloc((size_t)(t->others + 1) * sizeof(int64_t)),
        .other = bench_alloc((size_t)t->count * sizeof(int32_t)),
        .cell = bench_alloc((size_t)t->count * sizeof(uint16_t))};
    void *work = bench_alloc(pnet_cpu_transpose_work(t));
    pnet_cpu_transpose(t, set.start, set.other, set.cell, work);
    free(work);
    set.t = (struct pnet_triplets){
        t->others, t->rows, t->count, t->cells, set.start, set.other, set.cell, NULL, {0}};
    return set;
}

static inline void scene_set_free(struct scene_set *s)
{
    free(s->start);
    free(s->other);
    free(s->cell);
}

#endif
