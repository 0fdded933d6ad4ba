/* The size of a set laid out as tiles (kernels/geometry.h), for plans for a GPU on a machine without one. */
#include "kernels/geometry_stage.h"
#include "kernels/tile_order.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_BITS = 16, TABLE = 1 << TABLE_BITS };

/* The memory with which a thread counts a tile. */
struct counter {
    uint64_t table[TABLE]; /* hash table of neighbours; the upper half has the tile */
    uint32_t longest[PNET_TILE_CELLS];
    bool present[PNET_TILE_CELLS];
    uint8_t bit[PNET_TILE_CELLS]; /* bit of each cell in a row's key */
    /* keys of the tile's rows, ascending; the lowest byte is the row */
    uint32_t key[PNET_TILE_ROWS];
};

/* Distinct neighbours of a tile; stops above PNET_TILE_SLOTS. `stamp` distinguishes this tile from earlier users of the table. */
static int64_t count_neighbours(
    struct counter *c, uint32_t stamp, int64_t count, const int32_t *other)
{
    int64_t neighbours = 0;
    for (int64_t n = 0; n < count && neighbours <= PNET_TILE_SLOTS; n++) {
        uint64_t key = (uint64_t)stamp << 32 | (uint32_t)other[n];
        uint32_t at = (uint32_t)other[n] * 2654435769u >> (32 - TABLE_BITS);
        while (c->table[at] != key && c->table[at] >> 32 == stamp) at = (at + 1) % TABLE;
        neighbours += c->table[at] != key;
        c->table[at] = key;
    }
    return neighbours;
}

static int compare_keys(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void order_rows(struct counter *c, const struct pnet_triplets *t, int64_t first)
{
    for (int i = 0; i < PNET_TILE_ROWS; i++) {
        int64_t row = first + i;
        uint32_t bits = 0;
        for (int64_t n = row < t->rows ? t->start[row] : 0; row < t->rows && n < t->start[row + 1];
             n++)
            bits |= 1u << c->bit[t->cell[n]];
        c->key[i] = row < t->rows ? pnet_tile_key(bits, i) : pnet_tile_no_key(i);
    }
    qsort(c->key, PNET_TILE_ROWS, sizeof *c->key, compare_keys);
}

/* Returns the rounds of a slab of the tile that begins with row `first`; -1: a run is too long. */
static int64_t count_rounds(
    struct counter *c, const struct pnet_triplets *t, int64_t first, int slab)
{
    enum { ROWS = PNET_TILE_ROWS / PNET_TILE_SLABS };
    int64_t rounds = 0;
    memset(c->longest, 0, (size_t)t->cells * sizeof *c->longest);
    for (int i = slab * ROWS; i < (slab + 1) * ROWS; i++) {
        int64_t row = first + (uint8_t)c->key[i];
        if (row >= t->rows) continue;
        uint32_t run = 0;
        for (int64_t n = t->start[row]; n < t->start[row + 1]; n++) {
            uint16_t cell = t->cell[n];
            run = n > t->start[row] && t->cell[n - 1] == cell ? run + 1 : 1;
            if (run > UINT16_MAX) return -1;
            if (run > c->longest[cell]) c->longest[cell] = run;
            c->present[cell] = true;
        }
    }
    for (int32_t k = 0; k < t->cells; k++) rounds += c->longest[k];
    return rounds;
}

/* Returns the words of a tile's list; -1: the tile has no list. */
static int64_t count_tile(
    struct counter *c, const struct pnet_triplets *t, int64_t first, uint32_t stamp)
{
    const int64_t cell_words = sizeof(struct pnet_tile_cell) / sizeof(uint32_t),
                  slab_rows = PNET_TILE_ROWS / PNET_TILE_SLABS;
    int64_t end = first + PNET_TILE_ROWS, rounds = 0, cells = 0;
    int64_t begin = t->start[first], count = t->start[end < t->rows ? end : t->rows] - begin;
    int64_t neighbours = count_neighbours(c, stamp, count, t->other + begin);
    if (neighbours > PNET_TILE_SLOTS) return -1;
    memset(c->present, 0, (size_t)t->cells * sizeof *c->present);
    order_rows(c, t, first);
    for (int slab = 0; slab < PNET_TILE_SLABS; slab++) {
        int64_t more = count_rounds(c, t, first, slab);
        if (more < 0) return -1;
        rounds += more;
    }
    for (int32_t k = 0; k < t->cells; k++) cells += c->present[k];
    return (neighbours + 3) / 4 * 4 + cells * cell_words + rounds * (slab_rows / 2);
}

int64_t pnet_cpu_tiles_words(const struct pnet_triplets *t, bool *unlisted)
{
    int64_t tiles = (t->rows + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS, words = 0, without = 0;
    if (unlisted) *unlisted = false;
    if (t->cells > PNET_TILE_CELLS) return 0;
#pragma omp parallel reduction(+ : words, without)
    {
        struct counter c;
        memset(c.table, 0, sizeof c.table);
        for (int i = 0; i < t->cells; i++)
            c.bit[i] = (uint8_t)pnet_tile_bit(i, pnet_tile_kernel(t->cells));
#pragma omp for schedule(dynamic, 64)
        for (int64_t i = 0; i < tiles; i++) {
            int64_t own = count_tile(&c, t, i * PNET_TILE_ROWS, (uint32_t)i + 1);
            words += own < 0 ? 0 : own;
            without += own < 0;
        }
    }
    if (unlisted) *unlisted = without > 0;
    return words;
}
