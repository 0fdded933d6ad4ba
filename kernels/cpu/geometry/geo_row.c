/* Sorts the triplets of one row. */
#include "kernels/cpu/geometry/geo_set.h"

#include <string.h>

enum { FEW = 12, DIGIT = 256 };

static void insert_by_cell(
    int n, const int32_t *from_other, const int32_t *from_cell, int32_t *other, uint16_t *cell)
{
    for (int t = 0; t < n; t++) {
        int place = t;
        for (; place > 0 && cell[place - 1] > from_cell[t]; place--) {
            other[place] = other[place - 1];
            cell[place] = cell[place - 1];
        }
        other[place] = from_other[t];
        cell[place] = (uint16_t)from_cell[t];
    }
}

/* Computes the first place of each of `digits` digits, (cell >> shift) modulo 256. */
static inline void find_places(
    int n, const int32_t *cell, int shift, int digits, uint16_t place[DIGIT + 1])
{
    memset(place, 0, ((size_t)digits + 1) * sizeof *place);
    for (int t = 0; t < n; t++) place[(cell[t] >> shift & (DIGIT - 1)) + 1]++;
    for (int d = 1; d < digits; d++) place[d] = (uint16_t)(place[d] + place[d - 1]);
}

void pnet_geo_row_by_cell(int n, const int32_t *from_other, const int32_t *from_cell, int32_t cells,
    int32_t *other, uint16_t *cell, int32_t *spare_other, int32_t *spare_cell)
{
    uint16_t place[DIGIT + 1];
    int shift = 0;
    if (n <= FEW) {
        insert_by_cell(n, from_other, from_cell, other, cell);
        return;
    }
    if (cells > DIGIT) { /* the lower digit first */
        find_places(n, from_cell, 0, DIGIT, place);
        for (int t = 0; t < n; t++) {
            int to = place[from_cell[t] & (DIGIT - 1)]++;
            spare_other[to] = from_other[t];
            spare_cell[to] = from_cell[t];
        }
        from_other = spare_other;
        from_cell = spare_cell;
        shift = 8;
    }
    find_places(n, from_cell, shift, (cells - 1) / (1 << shift) + 1, place);
    for (int t = 0; t < n; t++) {
        int to = place[from_cell[t] >> shift]++;
        other[to] = from_other[t];
        cell[to] = (uint16_t)from_cell[t];
    }
}

static inline uint64_t triplet_key(const int32_t *other, const uint16_t *cell, int64_t t)
{
    return (uint64_t)cell[t] << 32 | (uint32_t)other[t];
}

static inline void put(int32_t *other, uint16_t *cell, int64_t t, uint64_t key)
{
    other[t] = (int32_t)(uint32_t)key;
    cell[t] = (uint16_t)(key >> 32);
}

/* Moves `key` down from `hole` in a heap of n items, the largest at the top. */
static void sink(int64_t n, int32_t *other, uint16_t *cell, int64_t hole, uint64_t key)
{
    for (;;) {
        int64_t child = 2 * hole + 1;
        if (child >= n) break;
        uint64_t largest = triplet_key(other, cell, child);
        if (child + 1 < n) {
            uint64_t right = triplet_key(other, cell, child + 1);
            child += right > largest;
            largest = right > largest ? right : largest;
        }
        if (largest <= key) break;
        put(other, cell, hole, largest);
        hole = child;
    }
    put(other, cell, hole, key);
}

void pnet_geo_row_sort(int64_t n, int32_t *other, uint16_t *cell)
{
    if (n <= 2 * FEW) {
        for (int64_t t = 1; t < n; t++) {
            uint64_t key = triplet_key(other, cell, t);
            int64_t place = t;
            for (; place > 0 && triplet_key(other, cell, place - 1) > key; place--) {
                other[place] = other[place - 1];
                cell[place] = cell[place - 1];
            }
            put(other, cell, place, key);
        }
        return;
    }
    for (int64_t t = n / 2 - 1; t >= 0; t--) sink(n, other, cell, t, triplet_key(other, cell, t));
    for (int64_t t = n - 1; t > 0; t--) {
        uint64_t key = triplet_key(other, cell, t);
        put(other, cell, t, triplet_key(other, cell, 0));
        sink(t, other, cell, 0, key);
    }
}
