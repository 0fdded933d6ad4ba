#include "kernels/cpu/conv/conv_row_block.h"

#include <string.h>

enum { TILE_ROWS = 256, TILE_ROWS_MIN = 16, TILE_RUNS = 1 << 16, MERGED_WIDTH = 16 };

struct pnet_conv_groups pnet_conv_groups(struct pnet_conv_shape s)
{
    int32_t cin1 = s.cin / s.groups, cout1 = s.cout / s.groups, merged = 1;
    for (int32_t p = 2; p <= s.groups && p * cout1 <= MERGED_WIDTH; p++) {
        if (s.groups % p == 0) merged = p;
    }
    return (struct pnet_conv_groups){
        s.groups / merged, merged, merged * cin1, merged * cout1, cin1, cout1};
}

int pnet_row_block_rows(int64_t cells)
{
    int64_t rows = TILE_RUNS / cells;
    return rows > TILE_ROWS ? TILE_ROWS : rows < TILE_ROWS_MIN ? TILE_ROWS_MIN : (int)rows;
}

static size_t run_limit(int64_t cells, int64_t count)
{
    int64_t runs = pnet_row_block_rows(cells) * cells;
    return (size_t)(runs < count ? runs : count);
}

size_t pnet_row_block_bytes(int64_t cells, int64_t count)
{
    return 2 * pnet_align64(run_limit(cells, count) * sizeof(struct pnet_run)) +
           pnet_align64((size_t)(cells + 1) * sizeof(int32_t));
}

struct pnet_row_block pnet_row_block_place(int64_t cells, int64_t count, void *memory)
{
    size_t runs = pnet_align64(run_limit(cells, count) * sizeof(struct pnet_run));
    char *at = memory;
    struct pnet_row_block tile = {
        .run = (void *)at, .unordered = (void *)(at + runs), .first = (void *)(at + 2 * runs)};
    return tile;
}

/* Each entry of `first` has moved to the beginning of the next cell: moves them back. */
static void move_back(int32_t *first, int32_t cells)
{
    memmove(first + 1, first, (size_t)cells * sizeof *first);
    first[0] = 0;
}

void pnet_row_block_load(
    struct pnet_row_block *tile, const struct pnet_triplets *t, int64_t place, int rows)
{
    tile->place = place;
    tile->rows = rows;
    tile->row = t->row ? t->row + place : NULL;
    int64_t base = t->start[place];
    const uint16_t *cell = t->cell + base;
    int32_t *first = tile->first;
    struct pnet_run *list = tile->unordered;
    size_t runs = 0;
    memset(first, 0, (size_t)(t->cells + 1) * sizeof *first);
    /* A run is written at each of its triplets and kept at the last one, which spares a branch;
       `begin` holds its cell until the order is known. */
    for (int r = 0; r < rows; r++) {
        int32_t end = (int32_t)(t->start[place + r + 1] - base);
        for (int32_t i = (int32_t)(t->start[place + r] - base); i < end; i++) {
            bool last = i + 1 == end || cell[i + 1] != cell[i];
            list[runs] = (struct pnet_run){r, cell[i], i + 1};
            first[cell[i] + 1] += last;
            runs += last;
        }
    }
    for (int32_t k = 0; k < t->cells; k++) first[k + 1] += first[k];
    int32_t begin = 0;
    for (size_t i = 0; i < runs; i++) {
        tile->run[first[list[i].begin]++] = (struct pnet_run){list[i].row, begin, list[i].end};
        begin = list[i].end;
    }
    move_back(first, t->cells);
    tile->other = t->other + base;
}

void pnet_row_block_identity(struct pnet_row_block *tile, int64_t row, int rows)
{
    for (int r = 0; r < rows; r++) tile->run[r] = (struct pnet_run){r, r, r + 1};
    tile->first[0] = 0;
    tile->first[1] = rows;
    tile->place = row;
    tile->rows = rows;
    tile->row = NULL;
    tile->other = NULL;
}
