/* Sets and workspaces in device memory, for the tests of convolution: what is there, and around it what must neither be
   read nor written. */
#ifndef PNET_TESTS_CUDA_DEVICE_CASE_H
#define PNET_TESTS_CUDA_DEVICE_CASE_H

#include "kernels/cuda/base/cuda.h"
#include "tests/kernels/conv_case.h"
#include "tests/kernels/tile_case.h"

static inline void *device_alloc(size_t bytes)
{
    void *p = pnet_cuda_alloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "out of device memory\n");
        exit(1);
    }
    pnet_cuda_fill_bytes(p, 0xFF, bytes); /* NaN in every storage, indices that lead nowhere */
    return p;
}

static inline void device_free(const void *p)
{
    pnet_cuda_free((void *)(uintptr_t)p);
}

/* `size` bytes of device memory, of which the first ones are copied. */
static inline void *device_copy_into(const void *from, size_t bytes, size_t size)
{
    void *p = device_alloc(size);
    pnet_cuda_copy_in(p, from, bytes);
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    return p;
}

static inline void *device_copy(const void *from, size_t bytes)
{
    return device_copy_into(from, bytes, bytes);
}

static inline float *device_floats(const float *from, size_t n)
{
    return from ? device_copy(from, n * sizeof *from) : NULL;
}

/* A workspace with a canary behind it. */
struct device_work {
    unsigned char *memory;
    size_t bytes;
};
enum { DEVICE_CANARY = 256 };

static inline struct device_work device_work(size_t bytes)
{
    struct device_work w = {device_alloc(bytes + DEVICE_CANARY), bytes};
    pnet_cuda_fill_bytes(w.memory, 0xA5, bytes + DEVICE_CANARY);
    return w;
}

static inline void device_work_end(struct device_work *w, const char *text)
{
    unsigned char after[DEVICE_CANARY];
    bool whole = true;
    pnet_cuda_copy_out(after, w->memory + w->bytes, DEVICE_CANARY);
    for (int i = 0; i < DEVICE_CANARY; i++) whole = whole && after[i] == 0xA5;
    CHECKF(whole, "%s: wrote beyond the workspace", text);
    pnet_cuda_free(w->memory);
}

/* The row at each place, in device memory, for a set with spare rows that are not there. */
static inline const int32_t *device_rows(
    const int32_t *row, int64_t live, const struct pnet_triplets *set)
{
    return device_copy_into(row, (size_t)live * sizeof *row, (size_t)set->rows * sizeof *row);
}

/* A set as a schedule knows it: rows and triplets of its capacity class, the true number in device memory, starts of rows
   that are not there leading nowhere. Without tiles for `slots` = 0; tiles with more neighbours than that list nothing. */
static inline struct pnet_triplets device_set(
    const struct pnet_triplets *t, int64_t spare_rows, int64_t spare_triplets, int64_t slots)
{
    struct pnet_triplets bound = *t;
    bound.rows += spare_rows;
    bound.count += spare_triplets;
    size_t starts = (size_t)(bound.rows + 1) * sizeof *t->start, count = (size_t)t->count,
           most = (size_t)bound.count;
    int64_t *start = conv_alloc(starts);
    memcpy(start, t->start, (size_t)(t->rows + 1) * sizeof *start);
    for (int64_t r = t->rows + 1; r <= bound.rows; r++) start[r] = INT64_C(1) << 60;
    struct pnet_triplets d = bound;
    d.start = device_copy(start, starts);
    d.other = device_copy_into(t->other, count * sizeof *t->other, most * sizeof *t->other);
    d.cell = device_copy_into(t->cell, count * sizeof *t->cell, most * sizeof *t->cell);
    d.live = device_copy(&t->rows, sizeof t->rows);
    free(start);
    if (slots > 0) {
        struct tile_case c = tile_case_limited(&bound, t->rows, slots, TILE_SHUFFLED);
        d.tiles.words = c.tiles.words;
        d.tiles.tile = device_copy(c.tile, (size_t)tile_count(bound.rows) * sizeof *c.tile);
        d.tiles.list = device_copy(c.list, (size_t)c.tiles.words * sizeof *c.list);
        tile_case_free(&c);
    }
    return d;
}

/* The set as a runner hands it to kernels that read its tiles, all of which list what they have: triplets are not kept. */
static inline struct pnet_triplets device_set_tiles(const struct pnet_triplets *d)
{
    struct pnet_triplets t = *d;
    t.other = NULL;
    t.cell = NULL;
    return t;
}

static inline void device_set_free(struct pnet_triplets *d)
{
    device_free(d->start);
    device_free(d->other);
    device_free(d->cell);
    device_free(d->live);
    device_free(d->tiles.tile);
    device_free(d->tiles.list);
}

#endif
