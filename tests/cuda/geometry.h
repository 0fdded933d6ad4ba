/* Levels and sets in device memory, for the tests of the geometry stage. */
#ifndef PNET_TESTS_CUDA_GEOMETRY_H
#define PNET_TESTS_CUDA_GEOMETRY_H

#include "tests/check.h"
#include "tests/geometry/cloud.h"
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"

/* One piece of device memory that tests take from and give back all at once. Behind each piece stand
   bytes that nobody may write to. */
enum { GUARD = 512, PIECES = 256 };
struct arena {
    char *base;
    size_t size, used;
    int pieces;
    size_t end[PIECES];
};

static inline void arena_open(struct arena *a, size_t size)
{
    *a = (struct arena){.base = pnet_cuda_alloc(size), .size = size};
    if (!a->base) {
        fprintf(stderr, "no %zu bytes on the GPU\n", size);
        exit(1);
    }
}

/* Memory that is poisoned: what is not written does not pass for a result. */
static inline void *arena_take(struct arena *a, size_t bytes)
{
    char *piece = a->base + a->used;
    a->used = (a->used + bytes + GUARD + 255) / 256 * 256;
    if (a->used > a->size || a->pieces == PIECES) {
        fprintf(stderr, "the tests' device memory is too small\n");
        exit(1);
    }
    a->end[a->pieces++] = (size_t)(piece - a->base) + bytes;
    pnet_cuda_fill_bytes(piece, 0xa5, bytes + GUARD);
    return piece;
}

static inline void *arena_copy(struct arena *a, const void *from, size_t bytes)
{
    void *piece = arena_take(a, bytes);
    pnet_cuda_copy_in(piece, from, bytes);
    return piece;
}

/* Are the bytes behind all pieces as they were? Gives the pieces back; ends the program where a
   kernel has failed. */
static inline bool arena_close(struct arena *a)
{
    bool whole = true;
    for (int p = 0; p < a->pieces; p++) {
        unsigned char guard[GUARD];
        pnet_cuda_copy_out(guard, a->base + a->end[p], GUARD);
        for (int i = 0; i < GUARD; i++) whole &= guard[i] == 0xa5;
    }
    a->used = 0;
    a->pieces = 0;
    if (pnet_cuda_error()) { /* it sticks: nothing runs any more */
        fprintf(stderr, "the GPU stopped: %s\n", pnet_cuda_error());
        exit(1);
    }
    return whole;
}

static inline struct pnet_level level_on_device(struct arena *a, const struct pnet_level *l)
{
    struct pnet_level d = *l;
    size_t rows = (size_t)l->rows;
    d.row_splits = arena_copy(a, l->row_splits, ((size_t)l->samples + 1) * sizeof *l->row_splits);
    d.xyz = arena_copy(a, l->xyz, 3 * rows * sizeof *l->xyz);
    if (l->key) d.key = arena_copy(a, l->key, rows * sizeof *l->key);
    return d;
}

/* Does device memory hold these bytes? */
static inline bool device_holds(const void *device, const void *want, size_t bytes)
{
    void *got = memory(bytes);
    if (bytes) pnet_cuda_copy_out(got, device, bytes);
    bool same = !bytes || memcmp(got, want, bytes) == 0;
    free(got);
    return same;
}

struct device_set {
    struct pnet_triplets t;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

static inline void device_set_wire(struct device_set *s)
{
    s->t.start = s->start;
    s->t.other = s->other;
    s->t.cell = s->cell;
}

/* A set of levels and a parent on the device. */
static inline struct device_set device_set_make(struct arena *a, const struct pnet_level *out,
    const struct pnet_level *in, const struct pnet_neighbourhood *nb, const int32_t *parent)
{
    struct device_set s = {
        .t = {
            .rows = out->rows, .others = in->rows, .cells = nb->kernel * nb->kernel * nb->kernel}};
    size_t bytes = pnet_cuda_triplets_work(out, in, nb);
    s.start = arena_take(a, ((size_t)out->rows + 1) * sizeof *s.start);
    s.t.count = pnet_cuda_triplets_count(out, in, nb, parent, s.start, arena_take(a, bytes));
    s.other = arena_take(a, (size_t)s.t.count * sizeof *s.other);
    s.cell = arena_take(a, (size_t)s.t.count * sizeof *s.cell);
    pnet_cuda_triplets_write(out, in, nb, parent, s.start, s.other, s.cell, arena_take(a, bytes));
    device_set_wire(&s);
    return s;
}

static inline struct device_set device_set_transposed(
    struct arena *a, const struct pnet_triplets *t)
{
    struct device_set s = {
        .t = {.rows = t->others, .others = t->rows, .count = t->count, .cells = t->cells}};
    s.start = arena_take(a, ((size_t)t->others + 1) * sizeof *s.start);
    s.other = arena_take(a, (size_t)t->count * sizeof *s.other);
    s.cell = arena_take(a, (size_t)t->count * sizeof *s.cell);
    pnet_cuda_transpose(t, s.start, s.other, s.cell, arena_take(a, pnet_cuda_transpose_work(t)));
    device_set_wire(&s);
    return s;
}

/* The transposed form of a mutual set, whose row starts it shares. */
static inline struct device_set device_set_back(struct arena *a, const struct pnet_level *level,
    const struct pnet_neighbourhood *nb, const struct device_set *forward)
{
    struct device_set s = {.t = forward->t, .start = forward->start};
    s.other = arena_take(a, (size_t)s.t.count * sizeof *s.other);
    s.cell = arena_take(a, (size_t)s.t.count * sizeof *s.cell);
    pnet_cuda_triplets_back(level, nb, s.start, s.other, s.cell,
        arena_take(a, pnet_cuda_triplets_work(level, level, nb)));
    device_set_wire(&s);
    return s;
}

/* A finished set in host memory. */
static inline struct set set_from_device(const struct device_set *d)
{
    struct set s = set_room(d->t.rows, d->t.others, d->t.cells);
    set_room_for(&s, d->t.count);
    size_t count = (size_t)d->t.count;
    pnet_cuda_copy_out(s.start, d->start, ((size_t)d->t.rows + 1) * sizeof *s.start);
    if (count) pnet_cuda_copy_out(s.other, d->other, count * sizeof *s.other);
    if (count) pnet_cuda_copy_out(s.cell, d->cell, count * sizeof *s.cell);
    return s;
}

/* And the other way: a set for kernels that read it. */
static inline struct pnet_triplets triplets_on_device(
    struct arena *a, const struct pnet_triplets *t)
{
    struct pnet_triplets d = *t;
    size_t rows = (size_t)t->rows, count = (size_t)t->count;
    d.start = arena_copy(a, t->start, (rows + 1) * sizeof *t->start);
    d.other = arena_copy(a, t->other, count * sizeof *t->other);
    d.cell = arena_copy(a, t->cell, count * sizeof *t->cell);
    return d;
}

static inline bool device_set_is(const struct device_set *s, const struct set *want)
{
    size_t rows = (size_t)want->t.rows, count = (size_t)want->t.count;
    return s->t.count == want->t.count &&
           device_holds(s->start, want->start, (rows + 1) * sizeof *s->start) &&
           device_holds(s->other, want->other, count * sizeof *s->other) &&
           device_holds(s->cell, want->cell, count * sizeof *s->cell);
}

#endif
