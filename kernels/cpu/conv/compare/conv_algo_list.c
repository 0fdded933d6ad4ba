/* Triplets one by one, sorted for an algorithm by counting. */
#include "kernels/cpu/conv/compare/conv_algo_parts.h"

#include <string.h>

enum { DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

const char *const pnet_conv_algo_names[] = {"default", "mvmr-k", "mvmr-i", "mvmr-j", "im2col",
    "gather-gemm-scatter", "implicit-gemm", NULL};

bool pnet_conv_algo_parse(const char *name, enum pnet_conv_algo *algo)
{
    for (int i = 0; i < PNET_ALGO_COUNT; i++) {
        if (strcmp(name, pnet_conv_algo_names[i]) == 0) {
            *algo = (enum pnet_conv_algo)i;
            return true;
        }
    }
    return false;
}

int64_t pnet_conv_chunk(int64_t count, int64_t bytes)
{
    const int64_t most = INT64_C(40) << 20;
    int64_t fit = most / bytes;
    if (fit < 1) fit = 1;
    return count < fit ? count : fit;
}

static size_t index_bytes(int64_t count)
{
    return pnet_align64((size_t)count * sizeof(int32_t));
}

size_t pnet_cpu_conv_list_bytes(int64_t count)
{
    return 64 + 2 * index_bytes(count) + pnet_align64((size_t)count * sizeof(uint16_t));
}

size_t pnet_cpu_conv_list_work(int64_t count)
{
    return 64 + 3 * index_bytes(count) + (DIGITS + 1) * sizeof(int64_t);
}

/* The rows of triplets [first, first + count). */
static void find_rows(const struct pnet_triplets *t, int64_t first, int64_t count, int32_t *row)
{
    int64_t r = 0, high = t->rows;
    while (r + 1 < high) {
        int64_t middle = r + (high - r) / 2;
        if (t->start[middle] <= first)
            r = middle;
        else
            high = middle;
    }
    for (int64_t n = 0; n < count; n++) {
        while (t->start[r + 1] <= first + n) r++;
        row[n] = (int32_t)r;
    }
}

/* What a pass sorts triplet `at` by: its cell, or one half of its other row. */
static uint32_t digit(const struct pnet_triplets *t, bool by_other, int pass, int64_t at)
{
    if (!by_other) return t->cell[at];
    return (uint32_t)t->other[at] >> (pass * DIGIT_BITS) & (DIGITS - 1);
}

/* One stable pass over positions in the chunk from `first` on. */
static void sort_pass(const struct pnet_triplets *t, bool by_other, int pass, int64_t first,
    int64_t count, const int32_t *from, int32_t *to, int64_t *place)
{
    memset(place, 0, (DIGITS + 1) * sizeof *place);
    for (int64_t n = 0; n < count; n++) place[digit(t, by_other, pass, first + n) + 1]++;
    for (int d = 0; d < DIGITS; d++) place[d + 1] += place[d];
    for (int64_t n = 0; n < count; n++) {
        int32_t position = from ? from[n] : (int32_t)n;
        to[place[digit(t, by_other, pass, first + position)]++] = position;
    }
}

struct pnet_conv_list pnet_cpu_conv_list(const struct pnet_triplets *t, enum pnet_conv_algo algo,
    int64_t first, int64_t most, void *memory, void *work)
{
    int64_t left = t->start[t->rows] - first, count = left < most ? left : most;
    if (count < 0) count = 0;
    char *list = pnet_align64_pointer(memory), *scratch = pnet_align64_pointer(work);
    int32_t *row = conv_piece(&list, (size_t)most * sizeof *row),
            *other = conv_piece(&list, (size_t)most * sizeof *other);
    uint16_t *cell = conv_piece(&list, (size_t)most * sizeof *cell);
    int32_t *rows = conv_piece(&scratch, (size_t)most * sizeof *rows), *order[2];
    for (int i = 0; i < 2; i++) order[i] = conv_piece(&scratch, (size_t)most * sizeof **order);
    int64_t *place = (int64_t *)(void *)scratch;
    bool by_other = algo == PNET_ALGO_MVMR_J;
    const int32_t *from = NULL;
    int passes = algo == PNET_ALGO_MVMR_I ? 0 : by_other ? 2 : 1;
    for (int pass = 0; pass < passes; pass++) {
        sort_pass(t, by_other, pass, first, count, from, order[pass], place);
        from = order[pass];
    }
    if (count > 0) find_rows(t, first, count, rows);
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < count; n++) {
        int64_t position = from ? from[n] : n;
        row[n] = rows[position];
        other[n] = t->other[first + position];
        cell[n] = t->cell[first + position];
    }
    return (struct pnet_conv_list){count, NULL, row, other, cell};
}
