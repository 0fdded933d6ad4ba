/* Sets in the caller's memory. */
#include "library/array.h"
#include "library/set.h"

#include <stdlib.h>
#include <string.h>

/* Begins a block. Behind it lie, one behind another: the first triplets of rows, outputs and inputs [rows + 1] each; then for
   triplets by output and by input the other rows; then their taps. */
struct head {
    uint64_t mark;
    int64_t rows_out, rows_in, count;
    int32_t taps;
    int32_t spare[7];
};

static const uint64_t mark =
    UINT64_C(0x3074657374656e70); /* "pnetset0" where bytes are little-endian */

/* Bytes from the head on. */
struct places {
    size_t start[2], other[2], cell[2], end;
};

/* `h` has numbers of which the sum of all bytes is within an int64_t. */
static struct places places_of(const struct head *h)
{
    struct places p;
    size_t at = sizeof *h;
    for (int side = 0; side < 2; side++) {
        p.start[side] = at;
        at += (size_t)((side ? h->rows_in : h->rows_out) + 1) * sizeof(int64_t);
    }
    for (int side = 0; side < 2; side++) {
        p.other[side] = at;
        at += (size_t)h->count * sizeof(int32_t);
    }
    for (int side = 0; side < 2; side++) {
        p.cell[side] = at;
        at += (size_t)h->count * sizeof(uint16_t);
    }
    p.end = (at + 7) / 8 * 8;
    return p;
}

static struct head head_of(const struct pnet_set *set)
{
    const struct pnet_triplets *t = &set->by_out.triplets;
    return (struct head){.mark = mark,
        .rows_out = set->out.rows,
        .rows_in = set->in.rows,
        .count = t->count,
        .taps = t->cells};
}

enum pnet_status pnet_set_packed_bytes(
    const struct pnet_set *set, size_t *bytes, struct pnet_error *e)
{
    enum pnet_status st = pnet_set_check_cpu(set, "packed sets", e);
    struct head h = head_of(set);
    if (!st) *bytes = places_of(&h).end;
    return st;
}

static enum pnet_status check_place(const char *name, const void *at, struct pnet_error *e)
{
    if (at && (uintptr_t)at % 8 == 0) return PNET_OK;
    const char *why = at ? "it is not aligned to 8 bytes" : "it is NULL";
    pnet_error_set(e, PNET_USAGE, "%s: %s", name, why);
    return PNET_USAGE;
}

enum pnet_status pnet_set_pack(
    const struct pnet_set *set, void *to, size_t bytes, struct pnet_error *e)
{
    struct head h = head_of(set);
    struct places p = places_of(&h);
    enum pnet_status st = pnet_set_check_cpu(set, "packed sets", e);
    if (!st) st = check_place("to", to, e);
    if (!st && bytes != p.end)
        st = pnet_error_set(e, PNET_USAGE, "bytes %zu: the packed set has %zu", bytes, p.end);
    if (st) return st;
    char *at = to;
    memcpy(at, &h, sizeof h);
    for (int side = 0; side < 2; side++) {
        const struct pnet_triplets *t = side ? &set->by_in.triplets : &set->by_out.triplets;
        memcpy(at + p.start[side], t->start, (size_t)(t->rows + 1) * sizeof *t->start);
        if (!t->count) continue;
        memcpy(at + p.other[side], t->other, (size_t)t->count * sizeof *t->other);
        memcpy(at + p.cell[side], t->cell, (size_t)t->count * sizeof *t->cell);
    }
    size_t last = p.cell[1] + (size_t)h.count * sizeof(uint16_t);
    memset(at + last, 0, p.end - last);
    return PNET_OK;
}

enum { BLOCK = 1 << 15 /* triplets that one thread checks at a time */ };

static enum pnet_status broken(const char *why, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA, "the bytes are no packed set: %s", why);
}

/* Whether a row or tap of triplets [first, end) is outside; *falls: how many have a lower tap than the one before. In narrow
   numbers, for vectors: triplets are many, and a call waits for this. */
static bool is_outside(const struct pnet_triplets *t, int64_t first, int64_t end, int64_t *falls)
{
    const uint32_t others = (uint32_t)t->others;
    const uint16_t last = (uint16_t)(t->cells - 1);
    uint32_t rows = 0, lower = 0;
    uint16_t taps = 0;
#pragma omp simd reduction(| : rows)
    for (int64_t n = first; n < end; n++) rows |= (uint32_t)t->other[n] >= others;
#pragma omp simd reduction(| : taps)
    for (int64_t n = first; n < end; n++) taps |= t->cell[n] > last;
#pragma omp simd reduction(+ : lower)
    for (int64_t n = first ? first : 1; n < end; n++) lower += t->cell[n] < t->cell[n - 1];
    *falls = lower;
    return rows || taps;
}

/* Checks what kernels rely on: rows begin in order, other rows and taps are there, and taps ascend within a row. */
static enum pnet_status check_form(const struct pnet_triplets *t, struct pnet_error *e)
{
    if (t->start[0] != 0 || t->start[t->rows] != t->count)
        return broken("the first and last row do not begin and end with the triplets", e);
    int64_t falls = 0, between = 0, wrong = 0, blocks = (t->count + BLOCK - 1) / BLOCK;
    for (int64_t row = 0; row < t->rows; row++) wrong += t->start[row + 1] < t->start[row];
    if (wrong) return broken("rows do not begin in order", e);
#pragma omp parallel for reduction(+ : falls, wrong) if (blocks > 1)
    for (int64_t block = 0; block < blocks; block++) {
        int64_t end = (block + 1) * BLOCK < t->count ? (block + 1) * BLOCK : t->count, lower;
        wrong += is_outside(t, block * BLOCK, end, &lower);
        falls += lower;
    }
    if (wrong) return broken("a row or tap is outside", e);
#pragma omp parallel for reduction(+ : between) if (blocks > 1)
    for (int64_t row = 1; row < t->rows; row++) {
        int64_t n = t->start[row];
        bool fresh = n > 0 && n < t->count && n < t->start[row + 1]; /* a row that is not empty */
        between += fresh && t->cell[n] < t->cell[n - 1];
    }
    return falls == between ? PNET_OK : broken("taps of a row do not ascend", e);
}

static enum pnet_status read_head(
    const void *from, size_t bytes, struct head *h, struct pnet_error *e)
{
    enum pnet_status st = check_place("from", from, e);
    if (st) return st;
    if (bytes < sizeof *h) return broken("they are too few", e);
    memcpy(h, from, sizeof *h);
    if (h->mark != mark) return broken("they begin with something else", e);
    if (h->rows_out < 0 || h->rows_out > INT32_MAX || h->rows_in < 0 || h->rows_in > INT32_MAX ||
        h->count < 0 || (uint64_t)h->count > bytes / 12 || h->taps < 1 || h->taps > UINT16_MAX + 1)
        return broken("a number of rows, triplets or taps is outside", e);
    if (places_of(h).end != bytes) return broken("they are more or fewer than their head says", e);
    return PNET_OK;
}

enum pnet_status pnet_set_unpack(
    const void *from, size_t bytes, struct pnet_set **set, struct pnet_error *e)
{
    PNET_OWN_ERROR(e);
    struct head h = {.mark = 0};
    *set = NULL;
    enum pnet_status st = read_head(from, bytes, &h, e);
    if (st) return st;
    struct pnet_set *s = calloc(1, sizeof *s);
    if (!s) return pnet_error_memory(e);
    struct places p = places_of(&h);
    const char *at = from;
    for (int side = 0; side < 2 && !st; side++) {
        struct pnet_set_form *form =
            side ? &s->by_in : &s->by_out; /* whose memory is the caller's */
        form->triplets = (struct pnet_triplets){.rows = side ? h.rows_in : h.rows_out,
            .others = side ? h.rows_out : h.rows_in,
            .count = h.count,
            .cells = h.taps,
            .start = (const int64_t *)(const void *)(at + p.start[side]),
            .other = (const int32_t *)(const void *)(at + p.other[side]),
            .cell = (const uint16_t *)(const void *)(at + p.cell[side])};
        st = check_form(&form->triplets, e);
    }
    s->out = (struct pnet_set_side){.rows = h.rows_out, .extent = {1, 1, 1}};
    s->in = (struct pnet_set_side){.rows = h.rows_in, .extent = {1, 1, 1}};
    s->samples = 1;
    s->several = true;
    atomic_init(&s->owners, 1);
    if (st) {
        pnet_set_free(s);
        return st;
    }
    *set = s;
    return PNET_OK;
}
