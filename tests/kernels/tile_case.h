/* Sets laid out as tiles (kernels/geometry.h) on the host, the plain way, for the tests of the GPU's kernels that read
   them; and a checker that unpacks tiles and compares them with the set. */
#ifndef PNET_TESTS_KERNELS_TILE_CASE_H
#define PNET_TESTS_KERNELS_TILE_CASE_H

#include <string.h>
#include "tests/kernels/conv_case.h"

enum { TILE_CELL_WORDS = sizeof(struct pnet_tile_cell) / sizeof(uint32_t), TILE_ROUND_WORDS = 8 };

/* Tiles that own their arrays, which are `tiles.words` words and tile_count(rows) headers. */
struct tile_case {
    struct pnet_tiles tiles;
    struct pnet_tile *tile;
    uint32_t *list;
};

static inline int64_t tile_count(int64_t rows)
{
    return (rows + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
}

static inline int tile_compare(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts and drops what occurs twice; the number that is left. */
static inline int64_t tile_distinct(int32_t *x, int64_t n)
{
    int64_t kept = 0;
    qsort(x, (size_t)n, sizeof *x, tile_compare);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || x[i] != x[i - 1]) x[kept++] = x[i];
    return kept;
}

/* The distinct rows of the other side that `n` triplets name, ascending; the caller frees. */
static inline int32_t *tile_neighbours(const int32_t *other, int64_t n, int64_t *count)
{
    int32_t *x = conv_alloc((size_t)n * sizeof *x);
    if (n) memcpy(x, other, (size_t)n * sizeof *x);
    *count = tile_distinct(x, n);
    return x;
}

/* The triplets of a run that row's triplets from `at` on begin with, if it is one of that cell. */
static inline int64_t tile_run(const struct pnet_triplets *t, int64_t at, int64_t end, int32_t cell)
{
    int64_t n = 0;
    while (at + n < end && t->cell[at + n] == cell) n++;
    return n;
}

/* Where the triplets of a tile's rows stand, which have the places that `row` gives them; rows from `live` on have none. */
struct tile_rows {
    int64_t begin[PNET_TILE_ROWS], end[PNET_TILE_ROWS];
};

static inline struct tile_rows tile_rows_of(
    const struct pnet_triplets *t, int64_t live, int64_t tile, const uint8_t *row)
{
    struct tile_rows r;
    memset(&r, 0, sizeof r);
    for (int place = 0; place < PNET_TILE_ROWS; place++) {
        int64_t own = tile * PNET_TILE_ROWS + row[place];
        if (own >= live) continue;
        r.begin[place] = t->start[own];
        r.end[place] = t->start[own + 1];
    }
    return r;
}

/* The bits of the cells that a row has, as a number that grows along a Gray code. */
static inline uint32_t tile_key(const struct pnet_triplets *t, int64_t row)
{
    int kernel = (int)ceil(cbrt((double)t->cells) - 1e-6);
    uint32_t key = 0;
    bool has[3][3][3] = {0}, odd = false;
    for (int64_t n = t->start[row]; n < t->start[row + 1]; n++) {
        int c = t->cell[n];
        has[c / (kernel * kernel) * 3 / kernel][c / kernel % kernel * 3 / kernel]
           [c % kernel * 3 / kernel] = true;
    }
    for (int off = 3; off >= 0; off--)
        for (int end = 0; end < 3; end++)
            for (int xy = 0; xy < 9; xy++) {
                int x = xy / 3, y = xy % 3, z = (int[]){0, 2, 1}[end];
                if ((x != 1) + (y != 1) + (z != 1) != off) continue;
                odd ^= has[x][y][z];
                key = key << 1 | odd;
            }
    return key >> 3;
}

/* Do a tile's rows that are there ascend by the cells they have, and stand the others behind them? */
static inline bool tile_order_is(
    const struct pnet_triplets *t, int64_t live, int64_t tile, const uint8_t *row)
{
    bool seen[PNET_TILE_ROWS] = {0}, same = true;
    uint64_t before = 0;
    for (int place = 0; place < PNET_TILE_ROWS; place++) {
        int64_t own = tile * PNET_TILE_ROWS + row[place];
        uint64_t key =
            (own < live ? tile_key(t, own) : 1u << 31) * (uint64_t)PNET_TILE_ROWS + row[place];
        same = same && !seen[row[place]] && key >= before;
        seen[row[place]] = true;
        before = key;
    }
    return same;
}

/* As a GPU orders rows, or in any order, so that a kernel that does not look which one it is cannot be right. */
enum tile_ordering { TILE_ORDERED, TILE_SHUFFLED };

static inline void tile_order(const struct pnet_triplets *t, int64_t live, int64_t tile,
    enum tile_ordering ordering, uint8_t *row)
{
    uint64_t key[PNET_TILE_ROWS], seed = (uint64_t)tile + 17;
    int n = 0;
    for (int i = 0; i < PNET_TILE_ROWS; i++) {
        int64_t own = tile * PNET_TILE_ROWS + i;
        uint64_t k = ordering == TILE_SHUFFLED ? conv_random(&seed) % 1000
                     : own < live              ? tile_key(t, own)
                                               : 0;
        int at = n;
        for (; own < live && at > 0 && key[at - 1] > k; at--) {
            key[at] = key[at - 1];
            row[at] = row[at - 1];
        }
        key[at] = k;
        row[at] = (uint8_t)i;
        n++;
    }
}

/* The first and the last triplet of a tile. */
static inline void tile_span(
    const struct pnet_triplets *t, int64_t live, int64_t tile, int64_t *begin, int64_t *end)
{
    int64_t first = tile * PNET_TILE_ROWS, last = first + PNET_TILE_ROWS;
    *begin = t->start[first < live ? first : live];
    *end = t->start[last < live ? last : live];
}

/* The longest run of a tile's rows. */
static inline int64_t tile_longest(const struct pnet_triplets *t, const struct tile_rows *r)
{
    int64_t longest = 0;
    for (int i = 0; i < PNET_TILE_ROWS; i++) {
        int64_t run = 0;
        for (int64_t n = r->begin[i]; n < r->end[i]; n++) {
            run = n > r->begin[i] && t->cell[n] == t->cell[n - 1] ? run + 1 : 1;
            if (run > longest) longest = run;
        }
    }
    return longest;
}

/* The header's cells of a tile, with blocks and rounds; the number of cells. `cells` has room for all. */
static inline int32_t tile_cells(
    const struct pnet_triplets *t, const struct tile_rows *r, struct pnet_tile_cell *cells)
{
    int32_t n = 0;
    int64_t at[PNET_TILE_ROWS];
    memcpy(at, r->begin, sizeof at);
    for (int32_t k = 0; k < t->cells; k++) {
        struct pnet_tile_cell c = {.cell = (uint32_t)k};
        for (int i = 0; i < PNET_TILE_ROWS; i++) {
            int64_t run = tile_run(t, at[i], r->end[i], k);
            at[i] += run;
            if (run) c.blocks |= 1u << i / 64;
            if (run > c.rounds[i / 16]) c.rounds[i / 16] = (uint16_t)run;
        }
        if (c.blocks) cells[n++] = c;
    }
    return n;
}

/* The rounds of one slab; returns their end. */
static inline uint32_t *tile_slab(const struct pnet_triplets *t, const struct tile_rows *r,
    int slab, int32_t cells, const struct pnet_tile_cell *cell, const int32_t *neighbour,
    int64_t neighbours, uint32_t *word)
{
    int64_t at[16];
    memcpy(at, r->begin + 16 * slab, sizeof at);
    for (int32_t c = 0; c < cells; c++) {
        for (int round = 0; round < cell[c].rounds[slab]; round++, word += TILE_ROUND_WORDS) {
            memset(word, 0, TILE_ROUND_WORDS * sizeof *word);
            for (int i = 0; i < 16; i++) {
                if (!tile_run(t, at[i], r->end[16 * slab + i], (int32_t)cell[c].cell)) continue;
                const int32_t *found = bsearch(&t->other[at[i]++], neighbour, (size_t)neighbours,
                    sizeof *neighbour, tile_compare);
                word[i % 8] |= (uint32_t)(found - neighbour + 1) << 16 * (i / 8);
            }
        }
    }
    return word;
}

/* One tile; returns the end of its list. With list == NULL nothing is written but the header. */
static inline int64_t tile_make(const struct pnet_triplets *t, int64_t live, int64_t index,
    int64_t slots, enum tile_ordering ordering, struct pnet_tile *tile, uint32_t *list)
{
    struct pnet_tile made = {.at = tile->at, .neighbours = -1};
    tile_order(t, live, index, ordering, made.row);
    *tile = made;
    struct tile_rows r = tile_rows_of(t, live, index, tile->row);
    int64_t begin, end, neighbours;
    tile_span(t, live, index, &begin, &end);
    int32_t *neighbour = tile_neighbours(t->other + begin, end - begin, &neighbours);
    struct pnet_tile_cell *cells = conv_alloc((size_t)t->cells * sizeof *cells);
    int64_t at = tile->at, padded = (neighbours + 3) / 4 * 4;
    int64_t longest = tile_longest(t, &r);
    if (neighbours <= slots && longest <= UINT16_MAX) {
        tile->longest = (int32_t)longest;
        tile->neighbours = (int32_t)neighbours;
        tile->cells = tile_cells(t, &r, cells);
        for (int s = 0; s < PNET_TILE_SLABS; s++) {
            tile->first[s] = tile->rounds;
            for (int32_t c = 0; c < tile->cells; c++) tile->rounds += cells[c].rounds[s];
        }
        at += padded + (int64_t)tile->cells * TILE_CELL_WORDS +
              (int64_t)tile->rounds * TILE_ROUND_WORDS;
    }
    if (list && tile->neighbours > 0) {
        uint32_t *word = list + tile->at;
        memset(word, 0, (size_t)padded * sizeof *word);
        memcpy(word, neighbour, (size_t)neighbours * sizeof *word);
        memcpy(word + padded, cells, (size_t)tile->cells * sizeof *cells);
        word += padded + (int64_t)tile->cells * TILE_CELL_WORDS;
        for (int s = 0; s < PNET_TILE_SLABS; s++)
            word = tile_slab(t, &r, s, tile->cells, cells, neighbour, neighbours, word);
    }
    free(neighbour);
    free(cells);
    return at;
}

/* Tiles of a set in host memory, of whose rows the first `live` are there (t->live is not read). Tiles with more than
   `slots` neighbours list nothing: PNET_TILE_SLOTS, or fewer to try what kernels do then. */
static inline struct tile_case tile_case_limited(
    const struct pnet_triplets *t, int64_t live, int64_t slots, enum tile_ordering ordering)
{
    int64_t tiles = tile_count(t->rows), words = 0;
    struct tile_case c = {.tile = conv_alloc((size_t)tiles * sizeof *c.tile)};
    for (int64_t i = 0; i < tiles; i++) {
        c.tile[i].at = words;
        words = tile_make(t, live, i, slots, ordering, &c.tile[i], NULL);
    }
    c.list = conv_alloc((size_t)words * sizeof *c.list);
    for (int64_t i = 0; i < tiles; i++) tile_make(t, live, i, slots, ordering, &c.tile[i], c.list);
    c.tiles = (struct pnet_tiles){words, c.tile, c.list};
    return c;
}

static inline struct tile_case tile_case_make(const struct pnet_triplets *t)
{
    return tile_case_limited(t, t->rows, PNET_TILE_SLOTS, TILE_ORDERED);
}

static inline void tile_case_free(struct tile_case *c)
{
    free(c->tile);
    free(c->list);
}

/* Are the rounds of a slab exactly its triplets, in order, and none without one? */
static inline bool tile_slab_is(const struct pnet_triplets *t, const struct tile_rows *r, int slab,
    const struct pnet_tile *tile, const struct pnet_tile_cell *cell, const int32_t *neighbour,
    const uint32_t *rounds)
{
    const uint32_t *word = rounds + (size_t)tile->first[slab] * TILE_ROUND_WORDS;
    int64_t at[16];
    memcpy(at, r->begin + 16 * slab, sizeof at);
    for (int32_t c = 0; c < tile->cells; c++) {
        for (int round = 0; round < cell[c].rounds[slab]; round++, word += TILE_ROUND_WORDS) {
            bool any = false;
            for (int i = 0; i < 16; i++) {
                int64_t end = r->end[16 * slab + i];
                int32_t slot = (int32_t)(word[i % 8] >> 16 * (i / 8) & 0xFFFF);
                bool more = at[i] < end && t->cell[at[i]] == cell[c].cell;
                if (more != (slot > 0) || slot > tile->neighbours) return false;
                if (more && neighbour[slot - 1] != t->other[at[i]]) return false;
                at[i] += more;
                any |= more;
            }
            if (!any) return false;
        }
    }
    for (int i = 0; i < 16; i++)
        if (at[i] != r->end[16 * slab + i]) return false;
    return true;
}

/* Do a tile's cells ascend, name the blocks that have them and no others, and the header their rounds' sums? */
static inline bool tile_cells_are(const struct pnet_triplets *t, const struct tile_rows *r,
    const struct pnet_tile *tile, const struct pnet_tile_cell *cell)
{
    uint32_t *blocks = conv_alloc((size_t)t->cells * sizeof *blocks), rounds = 0;
    int32_t present = 0;
    memset(blocks, 0, (size_t)t->cells * sizeof *blocks);
    for (int i = 0; i < PNET_TILE_ROWS; i++)
        for (int64_t n = r->begin[i]; n < r->end[i]; n++) {
            present += !blocks[t->cell[n]];
            blocks[t->cell[n]] |= 1u << i / 64;
        }
    bool same = tile->longest == tile_longest(t, r) && tile->cells == present;
    for (int32_t c = 0; c < tile->cells && same; c++)
        same = cell[c].cell < (uint32_t)t->cells && (c == 0 || cell[c].cell > cell[c - 1].cell) &&
               cell[c].blocks == blocks[cell[c].cell] && !cell[c].spare[0] && !cell[c].spare[1];
    for (int slab = 0; slab < PNET_TILE_SLABS && same; slab++) {
        same = tile->first[slab] == rounds;
        for (int32_t c = 0; c < tile->cells; c++) rounds += cell[c].rounds[slab];
    }
    free(blocks);
    return same && tile->rounds == rounds;
}

static inline int64_t tile_words(const struct pnet_tile *tile)
{
    return tile->neighbours <= 0
               ? 0
               : ((int64_t)tile->neighbours + 3) / 4 * 4 + (int64_t)tile->cells * TILE_CELL_WORDS +
                     (int64_t)tile->rounds * TILE_ROUND_WORDS;
}

/* Does the list, which starts behind that of the tile before, hold what it must? `want`: the neighbours. */
static inline bool tile_list_is(const struct pnet_triplets *t, const struct tile_rows *r,
    const struct pnet_tile *tile, const int32_t *want, const uint32_t *list)
{
    int64_t listed, padded = ((int64_t)tile->neighbours + 3) / 4 * 4;
    const struct pnet_tile_cell *cell = (const struct pnet_tile_cell *)(list + padded);
    const uint32_t *rounds = list + padded + (int64_t)tile->cells * TILE_CELL_WORDS;
    int32_t *got = tile_neighbours((const int32_t *)list, tile->neighbours, &listed);
    bool same = listed == tile->neighbours && !memcmp(got, want, (size_t)listed * sizeof *got) &&
                tile_cells_are(t, r, tile, cell);
    for (int s = 0; s < PNET_TILE_SLABS && same; s++)
        same = tile_slab_is(t, r, s, tile, cell, (const int32_t *)list, rounds);
    for (int64_t i = tile->neighbours; i < padded; i++) same = same && list[i] == 0;
    free(got);
    return same;
}

/* `at`: the end of the lists before. */
static inline bool tile_is(const struct pnet_triplets *t, int64_t live, int64_t index,
    int64_t slots, const struct pnet_tiles *tiles, int64_t at)
{
    const struct pnet_tile *tile = &tiles->tile[index];
    struct tile_rows r = tile_rows_of(t, live, index, tile->row);
    int64_t begin, end, neighbours;
    tile_span(t, live, index, &begin, &end);
    int32_t *want = tile_neighbours(t->other + begin, end - begin, &neighbours);
    bool fits = neighbours <= slots && tile_longest(t, &r) <= UINT16_MAX;
    bool same = tile->at == at && at % 4 == 0 && !tile->spare[0] && !tile->spare[1] &&
                tile_order_is(t, live, index, tile->row) &&
                tile->neighbours == (fits ? neighbours : -1) && tile->cells >= 0 &&
                tile->cells <= t->cells && at + tile_words(tile) <= tiles->words;
    if (same && tile->neighbours > 0) {
        same = tile_list_is(t, &r, tile, want, tiles->list + at);
    } else {
        for (int s = 0; s < PNET_TILE_SLABS; s++) same = same && tile->first[s] == 0;
        same = same && !tile->cells && !tile->rounds && !tile->longest;
    }
    free(want);
    return same;
}

/* Are these tiles, in host memory, the set's? Says which one is not. */
static inline bool tile_case_is(
    const struct pnet_triplets *t, int64_t live, int64_t slots, const struct pnet_tiles *tiles)
{
    int64_t count = tile_count(t->rows), wrong = count;
    int64_t *at = conv_alloc((size_t)(count + 1) * sizeof *at);
    at[0] = 0;
    for (int64_t i = 0; i < count; i++) at[i + 1] = at[i] + tile_words(&tiles->tile[i]);
#pragma omp parallel for schedule(dynamic, 16) reduction(min : wrong)
    for (int64_t i = 0; i < count; i++)
        if (!tile_is(t, live, i, slots, tiles, at[i]) && i < wrong) wrong = i;
    free(at);
    if (wrong < count) fprintf(stderr, "tile %lld is wrong\n", (long long)wrong);
    return wrong == count;
}

#endif
