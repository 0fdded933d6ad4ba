/* Random clouds as levels, and triplet sets of them, for the tests of this folder. */
#ifndef PNET_TESTS_GEOMETRY_CLOUD_H
#define PNET_TESTS_GEOMETRY_CLOUD_H

#include <stdlib.h>
#include <string.h>

#include "kernels/geometry_stage.h"
#include "kernels/philox.h"

enum { MAX_SAMPLES = 8 };

static inline void *memory(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

/* A level that owns its arrays. Workspaces are exactly as large as asked for: AddressSanitizer sees
 * the rest. */
struct cloud {
    struct pnet_level level;
    int64_t splits[MAX_SAMPLES + 1];
    float *xyz;
    uint64_t *key;
};

static inline void cloud_wire(struct cloud *c)
{
    c->level.row_splits = c->splits;
    c->level.xyz = c->xyz;
    c->level.key = c->key;
}

static inline void cloud_free(struct cloud *c)
{
    free(c->xyz);
    free(c->key);
    free(c);
}

static inline struct pnet_grid grid_of(float base, int32_t factor)
{
    return (struct pnet_grid){base, (float)(1 / (double)base), factor};
}

/* Points in the order given, with keys that need not ascend. */
static inline struct cloud *cloud_of(
    int32_t samples, const int64_t *splits, const float *xyz, struct pnet_grid grid)
{
    struct cloud *c = memory(sizeof *c);
    int64_t rows = splits[samples];
    *c = (struct cloud){.level = {.rows = rows, .samples = samples, .grid = grid}};
    memcpy(c->splits, splits, ((size_t)samples + 1) * sizeof *splits);
    c->xyz = memory((size_t)rows * 3 * sizeof(float));
    memcpy(c->xyz, xyz, (size_t)rows * 3 * sizeof(float));
    c->key = memory((size_t)rows * sizeof(uint64_t));
    pnet_cpu_keys(rows, c->xyz, grid, c->key);
    cloud_wire(c);
    return c;
}

/* Centres of voxels, ((float)index + 0.5f) * ((float)base * (float)factor) with each result rounded to float32, on an axis: from
   numpy 1.26. Each differs from its neighbour in float32 that another rounding would give: of base * factor in float64, or of
   all in float64. */
static const struct voxel_centre {
    float base;
    int32_t factor, index;
    float centre, wrong;
} voxel_centres[] = {
    {0.07F, 3, 3, 0x1.7851ecp-1F, 0x1.7851eap-1F}, /* (float)(0.07 * 3) is smaller */
    {0.07F, 3, 4, 0x1.e3d70cp-1F, 0x1.e3d70ap-1F},
    {0.05F, 1, 4, 0x1.cccccep-3F, 0x1.ccccccp-3F}, /* (float)(4.5 * 0.05) is smaller */
    {0.1F, 3, -6, -0x1.a66668p+0F, -0x1.a66666p+0F},
    {0.05F, 3, 100, 0x1.e26668p+3F, 0x1.e26666p+3F},
};
enum { VOXEL_CENTRES = sizeof voxel_centres / sizeof *voxel_centres };

/* Two points, on the centre of the voxel and beside it by one step of float32. `first`: the one on the centre is the first. */
static inline void voxel_centre_points(const struct voxel_centre *v, bool first, float xyz[6])
{
    for (int row = 0; row < 2; row++) {
        xyz[3 * row] = (row == 0) == first ? v->centre : v->wrong;
        xyz[3 * row + 1] = xyz[3 * row + 2] = v->centre;
    }
}

/* The rows of `from` that `row` lists, in that order; splits are those of the result. */
static inline struct cloud *cloud_pick(
    const struct cloud *from, const int32_t *row, const int64_t *splits, struct pnet_grid grid)
{
    int64_t rows = splits[from->level.samples];
    float *xyz = memory((size_t)rows * 3 * sizeof(float));
    for (int64_t i = 0; i < rows; i++)
        memcpy(xyz + 3 * i, from->xyz + 3 * (int64_t)row[i], 3 * sizeof(float));
    struct cloud *c = cloud_of(from->level.samples, splits, xyz, grid);
    free(xyz);
    return c;
}

/* The same points in the order of their keys. */
static inline struct cloud *cloud_sorted(const struct cloud *from)
{
    int64_t rows = from->level.rows;
    int32_t *order = memory((size_t)rows * sizeof *order);
    void *work = memory(pnet_cpu_order_work(rows));
    pnet_cpu_order(rows, from->level.samples, from->splits, from->key, order, work);
    struct cloud *c = cloud_pick(from, order, from->splits, from->level.grid);
    free(work);
    free(order);
    return c;
}

/* The coarser level on `grid`; parent[fine rows] is the caller's to free. */
static inline struct cloud *cloud_coarser(
    const struct cloud *fine, struct pnet_grid grid, int32_t **parent)
{
    int64_t rows = fine->level.rows, splits[MAX_SAMPLES + 1];
    int32_t *keep = memory((size_t)rows * sizeof *keep);
    *parent = memory((size_t)rows * sizeof **parent);
    void *work = memory(pnet_cpu_sample_work(rows, false));
    pnet_cpu_sample(&fine->level, grid, false, keep, *parent, splits, work);
    struct cloud *c = cloud_pick(fine, keep, splits, grid);
    free(work);
    free(keep);
    return c;
}

enum cloud_kind {
    UNIFORM,
    SURFACE,
    CLUMPS,
    ONE_PLACE,
    DUPLICATES,
    FAR_AWAY,
    ON_CENTRES,
    CLOUD_KINDS
};

/* `rows` points of a kind in [0, 1]^3 or so, 10 km away for FAR_AWAY; ON_CENTRES: on centres of
   voxels of 5 cm. Samples of random sizes, some of them empty. */
static inline struct cloud *cloud_random(
    enum cloud_kind kind, int32_t samples, int64_t rows, struct pnet_grid grid, uint32_t seed)
{
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST, .a = (uint32_t)kind};
    float *xyz = memory((size_t)rows * 3 * sizeof(float));
    for (int64_t i = 0; i < 3 * rows; i++) {
        float u = pnet_rand_unit(&r, (uint64_t)i), v = pnet_rand_unit(&r, (uint64_t)(i + 3 * rows));
        int axis = (int)(i % 3);
        xyz[i] = u - 0.3f;
        if (kind == SURFACE && axis == 2) xyz[i] = 0.02f * v + 0.3f * xyz[i - 1] * xyz[i - 2];
        if (kind == CLUMPS) xyz[i] = floorf(5 * v) * 0.21f + 0.01f * u;
        if (kind == ONE_PLACE) xyz[i] = 0.123f * (float)(axis + 1);
        if (kind == DUPLICATES) xyz[i] = floorf(6 * u) * 0.11f;
        if (kind == FAR_AWAY) xyz[i] = u + (axis == 1 ? -10000.0f : 10000.0f);
        if (kind == ON_CENTRES) xyz[i] = (floorf(12 * u) - 6 + 0.5f) * 0.05f;
    }
    int64_t splits[MAX_SAMPLES + 1] = {0};
    for (int32_t s = 1; s < samples; s++) {
        int64_t left = rows - splits[s - 1];
        float share = pnet_rand_unit(&r, (uint64_t)(6 * rows + s));
        splits[s] = splits[s - 1] + (s % 3 == 2 ? 0 : (int64_t)(share * (float)left));
    }
    splits[samples] = rows;
    struct cloud *c = cloud_of(samples, splits, xyz, grid);
    free(xyz);
    return c;
}

/* A triplet set that owns its arrays. */
struct set {
    struct pnet_triplets t;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

static inline struct set set_room(int64_t rows, int64_t others, int32_t cells)
{
    struct set s = {.t = {.rows = rows, .others = others, .cells = cells}};
    s.start = memory(((size_t)rows + 1) * sizeof *s.start);
    return s;
}

static inline void set_room_for(struct set *s, int64_t count)
{
    s->t.count = count;
    s->other = memory((size_t)count * sizeof *s->other);
    s->cell = memory((size_t)count * sizeof *s->cell);
    memset(s->other, 0xff, (size_t)count * sizeof *s->other);
    memset(s->cell, 0xff, (size_t)count * sizeof *s->cell);
    s->t.start = s->start;
    s->t.other = s->other;
    s->t.cell = s->cell;
}

static inline void set_free(struct set *s)
{
    free(s->start);
    free(s->other);
    free(s->cell);
}

static inline struct set set_make(const struct pnet_level *out, const struct pnet_level *in,
    const struct pnet_neighbourhood *nb, const int32_t *parent)
{
    struct set s = set_room(out->rows, in->rows, nb->kernel * nb->kernel * nb->kernel);
    void *work = memory(pnet_cpu_triplets_work(out, in, nb));
    set_room_for(&s, pnet_cpu_triplets_count(out, in, nb, parent, s.start, work));
    free(work);
    work = memory(pnet_cpu_triplets_work(out, in, nb));
    pnet_cpu_triplets_write(out, in, nb, parent, s.start, s.other, s.cell, work);
    free(work);
    return s;
}

static inline struct set set_transposed(const struct set *from)
{
    struct set s = set_room(from->t.others, from->t.rows, from->t.cells);
    set_room_for(&s, from->t.count);
    void *work = memory(pnet_cpu_transpose_work(&from->t));
    pnet_cpu_transpose(&from->t, s.start, s.other, s.cell, work);
    free(work);
    return s;
}

static inline bool set_equal(const struct set *a, const struct set *b)
{
    size_t rows = (size_t)a->t.rows, count = (size_t)a->t.count;
    return a->t.rows == b->t.rows && a->t.others == b->t.others && a->t.count == b->t.count &&
           memcmp(a->start, b->start, (rows + 1) * sizeof *a->start) == 0 &&
           memcmp(a->other, b->other, count * sizeof *a->other) == 0 &&
           memcmp(a->cell, b->cell, count * sizeof *a->cell) == 0;
}

#endif
