/* Sets laid out as tiles: a tile by hand, random sets, and that the checker sees what is wrong. */
#include "kernels/geometry_stage.h"
#include "tests/kernels/tile_case.h"

/* Rows without cells come first, then 9, 0 and 8: places 13 to 15 of the last slab. Row 300 is of the second tile, rows from
   301 on are not there. */
static void by_hand(void)
{
    int64_t list[][3] = {{0, 2, 7}, {0, 2, 9}, {0, 5, 7}, {8, 2, 4}, {9, 1, 9}, {300, 5, 1}};
    struct conv_set s = conv_set_make(600, 10, 27, 6, list);
    struct tile_case c = tile_case_limited(&s.t, 301, PNET_TILE_SLOTS, TILE_ORDERED);
    const uint32_t *word = c.list;
    uint32_t neighbours[4] = {4, 7, 9, 0};
    CHECK(c.tile[0].row[0] == 1 && c.tile[0].row[7] == 10 && c.tile[0].row[252] == 255);
    CHECK(c.tile[0].row[253] == 9 && c.tile[0].row[254] == 0 && c.tile[0].row[255] == 8);
    CHECK(c.tile[1].row[44] == 44 && c.tile[1].row[45] == 45 && c.tile[1].row[255] == 255);
    CHECK(c.tile[0].neighbours == 3 && c.tile[0].cells == 3 && c.tile[0].rounds == 4);
    CHECK(c.tile[0].longest == 2 && c.tile[0].first[0] == 0 && c.tile[0].first[15] == 0);
    CHECK(memcmp(word, neighbours, sizeof neighbours) == 0);
    const struct pnet_tile_cell *cell = (const struct pnet_tile_cell *)(word + 4);
    CHECK(cell[0].cell == 1 && cell[1].cell == 2 && cell[2].cell == 5 && cell[1].blocks == 8);
    CHECK(cell[0].rounds[15] == 1 && cell[1].rounds[15] == 2 && cell[2].rounds[15] == 1);
    CHECK(cell[0].rounds[0] == 0);
    word += 4 + 3 * TILE_CELL_WORDS;
    uint32_t rounds[4][8] = {
        {[5] = 3u << 16}, {[6] = 2u << 16, [7] = 1u << 16}, {[6] = 3u << 16}, {[6] = 2u << 16}};
    CHECK(memcmp(word, rounds, sizeof rounds) == 0);
    CHECK(c.tile[1].at == 4 + 3 * 12 + 4 * 8 && c.tile[1].neighbours == 1 && c.tile[1].cells == 1);
    CHECK(c.tile[2].neighbours == 0 && c.tile[2].cells == 0 && c.tile[2].at == c.tiles.words);
    CHECK(tile_case_is(&s.t, 301, PNET_TILE_SLOTS, &c.tiles));
    tile_case_free(&c);
    c = tile_case_limited(&s.t, 301, 2, TILE_ORDERED);
    CHECK(c.tile[0].neighbours == -1 && c.tile[0].cells == 0 && c.tile[1].at == 0);
    CHECK(tile_case_is(&s.t, 301, 2, &c.tiles));
    tile_case_free(&c);
    conv_set_free(&s);
}

/* A run that no tile can count is left to the kernels that need no tiles. */
static void long_run(void)
{
    enum { RUN = UINT16_MAX + 1 };
    for (int64_t n = RUN - 1; n <= RUN; n++) {
        struct conv_set s = conv_set_alloc(1, 1, 1, n);
        memset(s.other, 0, (size_t)n * sizeof *s.other);
        memset(s.cell, 0, (size_t)n * sizeof *s.cell);
        s.start[0] = 0;
        s.start[1] = n;
        struct tile_case c = tile_case_make(&s.t);
        CHECK(c.tile[0].neighbours == (n < RUN ? 1 : -1));
        CHECK(pnet_cpu_tiles_words(&s.t, NULL) == c.tiles.words);
        CHECK(tile_case_is(&s.t, 1, PNET_TILE_SLOTS, &c.tiles));
        tile_case_free(&c);
        conv_set_free(&s);
    }
}

/* The first tile has one neighbour more than there are slots, the second as many as there are. */
static void many_neighbours(void)
{
    enum { MOST = PNET_TILE_SLOTS, EACH = PNET_TILE_SLOTS / PNET_TILE_ROWS + 1 };
    int64_t count = 0, rows = 2 * PNET_TILE_ROWS, others = MOST + 1;
    struct conv_set s = conv_set_alloc(rows, others, 8, rows * EACH);
    for (int64_t row = 0; row < rows; row++) {
        int64_t tile = row / PNET_TILE_ROWS, at = row % PNET_TILE_ROWS * EACH;
        s.start[row] = count;
        for (int64_t n = 0; n < EACH; n++, count++) {
            int64_t last = others - 1 - tile;
            s.cell[count] = (uint16_t)(n * 8 / EACH);
            s.other[count] = (int32_t)(at + n < last ? at + n : last);
        }
    }
    s.start[rows] = count;
    struct tile_case c = tile_case_make(&s.t);
    CHECK(c.tile[0].neighbours == -1 && c.tile[1].neighbours == MOST);
    CHECK(tile_case_is(&s.t, rows, PNET_TILE_SLOTS, &c.tiles));
    CHECK(pnet_cpu_tiles_words(&s.t, NULL) == c.tiles.words);
    tile_case_free(&c);
    conv_set_free(&s);
}

/* Damages one word of the list, or of a header, and puts it back. */
static void spoil(const struct pnet_triplets *t, const struct tile_case *c, uint32_t *word)
{
    uint32_t was = *word;
    *word ^= 1;
    CHECK(!tile_case_is(t, t->rows, PNET_TILE_SLOTS, &c->tiles));
    *word = was;
}

static void random_sets(void)
{
    const int64_t sizes[][4] = {{1, 1, 1, 1}, {700, 300, 27, 12}, {256, 90, 125, 40},
        {1030, 5000, 343, 25}, {257, 0, 8, 3}};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        const int64_t *z = sizes[n];
        struct conv_set s = conv_set_random(z[0], z[1], (int32_t)z[2], z[3], 5 + n);
        struct tile_case c = tile_case_make(&s.t);
        CHECK(tile_case_is(&s.t, z[0], PNET_TILE_SLOTS, &c.tiles));
        CHECK(pnet_cpu_tiles_words(&s.t, NULL) == c.tiles.words);
        for (int64_t w = 0; w < c.tiles.words; w += c.tiles.words / 50 + 1) {
            spoil(&s.t, &c, &c.list[w]);
        }
        for (size_t w = 0; w < sizeof *c.tile / sizeof(uint32_t) && c.tiles.words; w++)
            spoil(&s.t, &c, (uint32_t *)c.tile + w);
        tile_case_free(&c);
        c = tile_case_limited(&s.t, z[0], PNET_TILE_SLOTS, TILE_SHUFFLED);
        CHECK(z[0] < 2 || z[1] < 1 || !tile_case_is(&s.t, z[0], PNET_TILE_SLOTS, &c.tiles));
        tile_case_free(&c);
        conv_set_free(&s);
    }
}

int main(void)
{
    by_hand();
    long_run();
    many_neighbours();
    random_sets();
    return check_end();
}
