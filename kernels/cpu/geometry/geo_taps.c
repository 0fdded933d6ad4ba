/* Triplets of voxels and taps. Blocks of coarse voxels in the order of their keys: what one tap leads them to has ascending keys,
   too, so that one walk along the fine voxels finds a tap's partners of the whole block. */
#include "kernels/cpu/geometry/geo_set.h"
#include "kernels/taps.h"

#include <string.h>

enum { BLOCK = 1024 };

/* What the walks of one block share. */
struct walk {
    const struct pnet_sites *coarse, *fine;
    const struct pnet_taps *taps;
    int64_t first;        /* place of the block's first coarse voxel */
    int64_t at[BLOCK][3]; /* fine indices of tap 0 */
};

/* Where the triplets of the block's rows go: with `other` they are written, else they are counted. */
struct results {
    int64_t next[BLOCK]; /* by place in the block: the row's next triplet, or their number so far */
    int32_t *other;
    uint16_t *cell;
};

static int64_t block_end(int64_t rows, int64_t first)
{
    return first + BLOCK < rows ? first + BLOCK : rows;
}

/* The sample of a place. */
static int32_t sample_of(const struct pnet_sites *s, int64_t place)
{
    int32_t low = 0, high = s->samples;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (s->splits[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Adds the triplets of one tap, of the places [from, end) of the block, all of one sample whose fine voxels have the places
   [begin, last). */
static void walk_tap(const struct walk *w, const int64_t shift[3], uint16_t tap, const int range[2],
    int64_t begin, int64_t last, struct results *to)
{
    const struct pnet_sites *fine = w->fine;
    uint64_t e0 = (uint64_t)fine->extent[0], e1 = (uint64_t)fine->extent[1],
             e2 = (uint64_t)fine->extent[2];
    for (int r = range[0]; r < range[1] && begin < last; r++) {
        uint64_t a = (uint64_t)(w->at[r][0] + shift[0]), b = (uint64_t)(w->at[r][1] + shift[1]),
                 c = (uint64_t)(w->at[r][2] + shift[2]);
        if (a >= e0 || b >= e1 || c >= e2) continue; /* below 0, too */
        uint64_t key = pnet_site_key((int64_t)a, (int64_t)b, (int64_t)c);
        begin = pnet_site_find(fine->key, begin, last, key);
        if (begin == last || fine->key[begin] != key) continue;
        int64_t n = to->next[r]++;
        if (!to->other) continue;
        to->other[n] = fine->row ? fine->row[begin] : (int32_t)begin;
        to->cell[n] = tap;
    }
}

static void walk_sample(
    const struct walk *w, int32_t sample, const int range[2], struct results *to)
{
    const struct pnet_taps *t = w->taps;
    const int64_t *splits = w->fine->splits + sample;
    uint16_t tap = 0;
    for (int64_t a = 0; a < t->kernel[0]; a++)
        for (int64_t b = 0; b < t->kernel[1]; b++)
            for (int64_t c = 0; c < t->kernel[2]; c++) {
                const int64_t shift[] = {
                    a * t->dilation[0], b * t->dilation[1], c * t->dilation[2]};
                walk_tap(w, shift, tap++, range, splits[0], splits[1], to);
            }
}

/* All triplets of one block. */
static void walk_block(struct walk *w, struct results *to)
{
    const struct pnet_taps *t = w->taps;
    const struct pnet_sites *coarse = w->coarse;
    int64_t end = block_end(coarse->rows, w->first);
    for (int64_t place = w->first; place < end; place++)
        for (int a = 0; a < 3; a++)
            w->at[place - w->first][a] =
                (int64_t)pnet_site_index(coarse->key[place], a) * t->stride[a] - t->padding[a];
    int64_t place = w->first;
    for (int32_t s = sample_of(coarse, place); place < end; s++) {
        int64_t last = coarse->splits[s + 1] < end ? coarse->splits[s + 1] : end;
        const int range[] = {(int)(place - w->first), (int)(last - w->first)};
        if (last > place) walk_sample(w, s, range, to);
        place = last;
    }
}

static int64_t row_of(const struct pnet_sites *s, int64_t place)
{
    return s->row ? s->row[place] : place;
}

int64_t pnet_cpu_taps_count(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, int64_t *start)
{
    start[0] = 0;
#pragma omp parallel for schedule(dynamic)
    for (int64_t first = 0; first < coarse->rows; first += BLOCK) {
        struct walk w = {.coarse = coarse, .fine = fine, .taps = t, .first = first};
        struct results to = {.other = NULL};
        int64_t end = block_end(coarse->rows, first);
        walk_block(&w, &to);
        for (int64_t place = first; place < end; place++)
            start[row_of(coarse, place) + 1] = to.next[place - first];
    }
    for (int64_t i = 0; i < coarse->rows; i++) start[i + 1] += start[i];
    return start[coarse->rows];
}

void pnet_cpu_taps_write(const struct pnet_sites *coarse, const struct pnet_sites *fine,
    const struct pnet_taps *t, const int64_t *start, int32_t *other, uint16_t *cell)
{
#pragma omp parallel for schedule(dynamic)
    for (int64_t first = 0; first < coarse->rows; first += BLOCK) {
        struct walk w = {.coarse = coarse, .fine = fine, .taps = t, .first = first};
        struct results to = {.other = other, .cell = cell};
        int64_t end = block_end(coarse->rows, first);
        for (int64_t place = first; place < end; place++)
            to.next[place - first] = start[row_of(coarse, place)];
        walk_block(&w, &to);
    }
}

void pnet_cpu_listed(int64_t count, const int32_t *i, const int32_t *j, const int32_t *k,
    int64_t rows, int64_t *start, int32_t *other, uint16_t *cell)
{
    memset(start, 0, ((size_t)rows + 1) * sizeof *start);
    for (int64_t n = 0; n < count; n++) start[i[n] + 1]++;
    for (int64_t r = 0; r < rows; r++) start[r + 1] += start[r];
    /* start[r] walks over the places of its row, then all move up by one. */
    for (int64_t n = 0; n < count; n++) {
        int64_t place = start[i[n]]++;
        other[place] = j[n];
        cell[place] = (uint16_t)k[n];
    }
    memmove(start + 1, start, (size_t)rows * sizeof *start);
    start[0] = 0;
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t r = 0; r < rows; r++)
        pnet_geo_row_sort(start[r + 1] - start[r], other + start[r], cell + start[r]);
}
