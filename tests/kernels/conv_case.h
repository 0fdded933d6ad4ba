/* What the tests of convolution share: random data, random triplet sets, comparison with double. */
#ifndef PNET_TESTS_KERNELS_CONV_CASE_H
#define PNET_TESTS_KERNELS_CONV_CASE_H

#include <stdint.h>
#include "kernels/conv.h"
#include "tests/check.h"

static inline void *conv_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

static inline uint64_t conv_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Multiples of 2^-20 in [-1, 1): exact in float and double. */
static inline float *conv_random_floats(size_t n, uint64_t seed)
{
    float *x = conv_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int64_t)(conv_random(&seed) & 0x1FFFFF) - 0x100000) * 0x1p-20f;
    return x;
}

static inline double *conv_widen(const float *x, size_t n)
{
    double *y = conv_alloc(n * sizeof *y);
    for (size_t i = 0; i < n; i++) y[i] = (double)x[i];
    return y;
}

static inline float *conv_poison(size_t n)
{
    float *x = conv_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

/* |x - want| / |want| in 2-norms; |x| where want is 0; infinite where x has a NaN. */
static inline double conv_error(const float *x, const double *want, size_t n)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - want[i];
        if (isnan(d)) return INFINITY;
        difference += d * d;
        norm += want[i] * want[i];
    }
    return sqrt(difference) / (norm > 0 ? sqrt(norm) : 1);
}

/* A workspace of exactly `bytes`, of an odd alignment, with canaries on both sides. */
struct conv_work {
    unsigned char *memory;
    size_t bytes;
};
enum { CONV_CANARY = 64, CONV_OFFSET = 4 };

static inline struct conv_work conv_work(size_t bytes)
{
    struct conv_work w = {conv_alloc(bytes + 2 * CONV_CANARY + CONV_OFFSET), bytes};
    memset(w.memory, 0xA5, bytes + 2 * CONV_CANARY + CONV_OFFSET);
    return w;
}

static inline void *conv_work_use(const struct conv_work *w)
{
    return w->memory + CONV_CANARY + CONV_OFFSET;
}

/* Frees it; false if anything outside was written. */
static inline bool conv_work_end(struct conv_work *w)
{
    bool whole = true;
    for (size_t i = 0; i < CONV_CANARY; i++) {
        whole = whole && w->memory[CONV_OFFSET + i] == 0xA5;
        whole = whole && w->memory[CONV_CANARY + CONV_OFFSET + w->bytes + i] == 0xA5;
    }
    free(w->memory);
    return whole;
}

/* A triplet set that owns its arrays. */
struct conv_set {
    struct pnet_triplets t;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
};

static inline struct conv_set conv_set_alloc(
    int64_t rows, int64_t others, int32_t cells, int64_t count)
{
    struct conv_set s = {.start = conv_alloc((size_t)(rows + 1) * sizeof(int64_t)),
        .other = conv_alloc((size_t)count * sizeof(int32_t)),
        .cell = conv_alloc((size_t)count * sizeof(uint16_t))};
    s.t = (struct pnet_triplets){.rows = rows,
        .others = others,
        .count = count,
        .cells = cells,
        .start = s.start,
        .other = s.other,
        .cell = s.cell};
    return s;
}

static inline void conv_set_free(struct conv_set *s)
{
    free(s->start);
    free(s->other);
    free(s->cell);
}

/* All rows in an order of their own. */
static inline int32_t *conv_mixed_rows(int64_t rows)
{
    int32_t *row = conv_alloc((size_t)rows * sizeof *row);
    uint64_t state = 17;
    for (int64_t p = 0; p < rows; p++) row[p] = (int32_t)p;
    for (int64_t p = rows - 1; p > 0; p--) {
        int64_t q = (int64_t)(conv_random(&state) % (uint64_t)(p + 1));
        int32_t other = row[p];
        row[p] = row[q];
        row[q] = other;
    }
    return row;
}

/* The row at each place goes where `row` says, `bytes` each. */
static inline void *conv_mix(const void *rows, const int32_t *row, int64_t count, size_t bytes)
{
    char *mixed = conv_alloc((size_t)count * bytes);
    for (int64_t p = 0; p < count; p++)
        memcpy(mixed + (size_t)row[p] * bytes, (const char *)rows + (size_t)p * bytes, bytes);
    return mixed;
}

static inline int conv_compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    for (int i = 0; i < 3; i++) {
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}

/* From a list of (row, cell, other), which it sorts. */
static inline struct conv_set conv_set_make(
    int64_t rows, int64_t others, int32_t cells, int64_t count, int64_t (*list)[3])
{
    struct conv_set s = conv_set_alloc(rows, others, cells, count);
    qsort(list, (size_t)count, sizeof *list, conv_compare);
    memset(s.start, 0, (size_t)(rows + 1) * sizeof *s.start);
    for (int64_t i = 0; i < count; i++) {
        s.start[list[i][0] + 1]++;
        s.cell[i] = (uint16_t)list[i][1];
        s.other[i] = (int32_t)list[i][2];
    }
    for (int64_t r = 0; r < rows; r++) s.start[r + 1] += s.start[r];
    return s;
}

/* Up to `degree` triplets a row on average: many rows share cells, every fifth row is empty. */
static inline struct conv_set conv_set_random(
    int64_t rows, int64_t others, int32_t cells, int64_t degree, uint64_t seed)
{
    int64_t(*list)[3] = conv_alloc((size_t)(rows * degree * 2 + 1) * sizeof *list), count = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t n = r % 5 == 2 || others == 0
                        ? 0
                        : (int64_t)(conv_random(&seed) % (uint64_t)(2 * degree + 1));
        for (int64_t i = 0; i < n; i++, count++) {
            list[count][0] = r;
            list[count][1] = (int64_t)(conv_random(&seed) % (uint64_t)cells);
            list[count][2] = (int64_t)(conv_random(&seed) % (uint64_t)others);
        }
    }
    struct conv_set s = conv_set_make(rows, others, cells, count, list);
    free(list);
    return s;
}

/* The same triplets sorted by the other side. */
static inline struct conv_set conv_set_transposed(const struct pnet_triplets *t)
{
    int64_t(*list)[3] = conv_alloc((size_t)(t->count + 1) * sizeof *list);
    for (int64_t r = 0; r < t->rows; r++) {
        for (int64_t i = t->start[r]; i < t->start[r + 1]; i++) {
            list[i][0] = t->other[i];
            list[i][1] = t->cell[i];
            list[i][2] = r;
        }
    }
    struct conv_set s = conv_set_make(t->others, t->rows, t->cells, t->count, list);
    free(list);
    return s;
}

/* Instruction sets this machine can run, the base first. */
static inline int conv_isa_list(const char *names[3])
{
    static const char *const all[] = {"base", "avx2", "avx512"};
    int n = 0;
    for (int i = 0; i < 3; i++) {
        pnet_cpu_isa_limit(all[i]);
        if (strcmp(pnet_cpu_isa(), all[i]) == 0) names[n++] = all[i];
    }
    pnet_cpu_isa_limit(NULL);
    return n;
}

#endif
