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

/* Rows of a sequence, whose triplets do not follow each other: runs count from the first triplet of the set. */
static void load_places(struct pnet_row_block *tile, const struct pnet_triplets *t)
{
    int32_t *first = tile->first;
    struct pnet_run *list = tile->unordered;
    size_t runs = 0;
    memset(first, 0, (size_t)(t->cells + 1) * sizeof *first);
    for (int r = 0; r < tile->rows; r++) {
        int64_t row = pnet_row_block_row(tile, r);
        int32_t end = (int32_t)t->start[row + 1];
        for (int32_t begin = (int32_t)t->start[row], i = begin; i < end; i++) {
            if (i + 1 < end && t->cell[i + 1] == t->cell[i]) continue;
            first[t->cell[i] + 1]++;
            list[runs++] = (struct pnet_run){r, begin, i + 1};
            begin = i + 1;
        }
    }
    for (int32_t k = 0; k < t->cells; k++) first[k + 1] += first[k];
    for (size_t i = 0; i < runs; i++) tile->run[first[t->cell[list[i].begin]]++] = list[i];
    move_back(first, t->cells);
    tile->other = t->other;
}

void pnet_row_block_load(struct pnet_row_block *tile, const struct pnet_triplets *t,
    const int32_t *sequence, int64_t row, int rows)
{
    tile->row = row;
    tile->rows = rows;
    tile->sequence = sequence;
    if (sequence) {
        load_places(tile, t);
        return;
    }
    int64_t base = t->start[row];
    const uint16_t *cell = t->cell + base;
    int32_t *first = tile->first;
    struct pnet_run *list = tile->unordered;
    size_t runs = 0;
    memset(first, 0, (size_t)(t->cells + 1) * sizeof *first);
    /* A run is written at each of its triplets and kept at the last one, which spares a branch;
       `begin` holds its cell until the order is known. */
    for (int r = 0; r < rows; r++) {
        int32_t end = (int32_t)(t->start[row + r + 1] - base);
        for (int32_t i = (int32_t)(t->start[row + r] - base); i < end; i++) {
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
    tile->row = row;
    tile->rows = rows;
    tile->sequence = NULL;
    tile->other = NULL;
}
