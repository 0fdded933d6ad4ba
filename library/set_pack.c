/* Sets in the caller's memory. */
#include "library/array.h"
#include "library/set.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/base/cuda.h"
#endif

#include <stdlib.h>
#include <string.h>

/* Begins the block of one order of the triplets. Behind it lie, each at a multiple of 64 bytes: the first triplets of the places
   [rows + 1], the other rows, the taps; then, where rows are named (struct pnet_triplets), the row at each place and the place of
   each row; then, of a set that has them, the tiles and their list. A block that names rows has NAMED_END bytes more than a
   multiple of 64, and no other has: so that its size tells, where the head cannot be read. */
struct head {
    uint64_t mark;
    int64_t rows, others, count;
    int64_t bytes; /* of the block */
    int32_t taps;
    int32_t named; /* 1: it names rows */
    int32_t spare[4];
};
enum { NAMED_END = 16 };

static const uint64_t mark =
    UINT64_C(0x3274657374656e70); /* "pnetset2" where bytes are little-endian */

/* Bytes from the head on. Without tiles the block ends at `tile`. */
struct places {
    size_t start, other, cell, row, place, tile, list;
};

static size_t next(size_t at, int64_t count, size_t each)
{
    return (at + (size_t)count * each + 63) / 64 * 64;
}

static int64_t tiles_of(int64_t rows)
{
    return (rows + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS;
}

/* Of numbers that a set can have. */
static struct places places_of(int64_t rows, int64_t count, bool named)
{
    struct places p = {.start = sizeof(struct head)};
    int64_t names = named ? rows : 0;
    p.other = next(p.start, rows + 1, sizeof(int64_t));
    p.cell = next(p.other, count, sizeof(int32_t));
    p.row = next(p.cell, count, sizeof(uint16_t));
    p.place = next(p.row, names, sizeof(int32_t));
    p.tile = next(p.place, names, sizeof(int32_t));
    p.list = next(p.tile, tiles_of(rows), sizeof(struct pnet_tile));
    return p;
}

static struct places places_in(const struct pnet_triplets *t)
{
    return places_of(t->rows, t->count, t->row != NULL);
}

static size_t bytes_of(const struct pnet_set_form *f)
{
    const struct pnet_triplets *t = &f->triplets;
    struct places p = places_in(t);
    size_t bytes = t->tiles.tile ? next(p.list, t->tiles.words, sizeof *t->tiles.list) : p.tile;
    return t->row ? bytes + NAMED_END : bytes;
}

enum pnet_status pnet_set_packed_sizes(
    const struct pnet_set *set, struct pnet_packed *packed, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set), PNET_A(ANY, packed));
    PNET_OWN_ERROR(e);
    const struct pnet_triplets *t = &set->by_out.triplets;
    struct pnet_packed p = {.rows_in = set->in.rows,
        .rows_out = set->out.rows,
        .triplets = t->count,
        .taps = t->cells,
        .by_out_bytes = bytes_of(&set->by_out),
        .by_in_bytes = bytes_of(&set->by_in)};
    return pnet_library_give("pnet_packed", &p, packed, sizeof p, e);
}

/* One block of a struct pnet_packed. */
struct block {
    const char *name;
    char *at;
    size_t bytes;
    int64_t rows, others;
};

static void blocks_of(const struct pnet_packed *p, struct block b[2])
{
    b[0] = (struct block){"by_out", p->by_out, p->by_out_bytes, p->rows_out, p->rows_in};
    b[1] = (struct block){"by_in", p->by_in, p->by_in_bytes, p->rows_in, p->rows_out};
}

static enum pnet_status check_block(
    const struct block *b, const struct pnet_home *home, struct pnet_error *e)
{
    if (!b->at) return pnet_error_set(e, PNET_USAGE, "%s: it is NULL", b->name);
    if ((uintptr_t)b->at % PNET_HOME_ALIGNMENT)
        return pnet_error_set(e, PNET_USAGE, "%s: it is not aligned to 16 bytes", b->name);
    return home->device.kind == PNET_CPU
               ? PNET_OK
               : pnet_home_check(home, b->name, b->at, PNET_HOME_ALIGNMENT, e);
}

/* A piece of a block and where it comes from. */
struct piece {
    size_t at, bytes;
    const void *from;
};

enum { PIECES = 7 };

static int pieces_of(const struct pnet_set_form *f, struct piece piece[PIECES])
{
    const struct pnet_triplets *t = &f->triplets;
    struct places p = places_in(t);
    size_t rows = (size_t)t->rows, count = (size_t)t->count;
    int n = 0;
    piece[n++] = (struct piece){p.start, (rows + 1) * sizeof *t->start, t->start};
    piece[n++] = (struct piece){p.other, count * sizeof *t->other, t->other};
    piece[n++] = (struct piece){p.cell, count * sizeof *t->cell, t->cell};
    if (t->row) {
        piece[n++] = (struct piece){p.row, rows * sizeof *t->row, t->row};
        piece[n++] = (struct piece){p.place, rows * sizeof *t->place, t->place};
    }
    if (!t->tiles.tile) return n;
    piece[n++] =
        (struct piece){p.tile, (size_t)tiles_of(t->rows) * sizeof *t->tiles.tile, t->tiles.tile};
    piece[n++] =
        (struct piece){p.list, (size_t)t->tiles.words * sizeof *t->tiles.list, t->tiles.list};
    return n;
}

static struct head head_of(const struct pnet_set_form *f)
{
    const struct pnet_triplets *t = &f->triplets;
    return (struct head){.mark = mark,
        .rows = t->rows,
        .others = t->others,
        .count = t->count,
        .bytes = (int64_t)bytes_of(f),
        .taps = t->cells,
        .named = t->row != NULL};
}

static void pack_on_cpu(const struct pnet_set_form *f, char *to)
{
    struct head h = head_of(f);
    struct piece piece[PIECES];
    int count = pieces_of(f, piece);
    size_t end = sizeof h;
    memcpy(to, &h, sizeof h);
    for (int i = 0; i < count; i++) {
        memset(to + end, 0, piece[i].at - end);
        if (piece[i].bytes) memcpy(to + piece[i].at, piece[i].from, piece[i].bytes);
        end = piece[i].at + piece[i].bytes;
    }
    memset(to + end, 0, (size_t)h.bytes - end);
}

#ifdef PNET_CUDA_BUILT
static void pack_on_gpu(const struct pnet_set_form *f, char *to)
{
    struct head h = head_of(f);
    struct piece piece[PIECES];
    int count = pieces_of(f, piece);
    pnet_cuda_fill_bytes(to, 0, (size_t)h.bytes);
    pnet_cuda_copy_in(to, &h, sizeof h);
    for (int i = 0; i < count; i++)
        if (piece[i].bytes) pnet_cuda_copy(to + piece[i].at, piece[i].from, piece[i].bytes);
}

static enum pnet_status pack_both(
    const struct pnet_set *s, const struct block b[2], struct pnet_error *e)
{
    const struct pnet_home *p = &s->home;
    int before;
    enum pnet_status st = pnet_home_waits(p->stream, e);
    if (!st) st = pnet_home_enter(p, p->stream, &before, e);
    if (st) return st;
    pack_on_gpu(&s->by_out, b[0].at);
    pack_on_gpu(&s->by_in, b[1].at);
    return pnet_home_leave(p, p->stream, before, PNET_OK, e);
}
#else
/* No set lies on a GPU. */
static enum pnet_status pack_both(
    const struct pnet_set *s, const struct block b[2], struct pnet_error *e)
{
    (void)b;
    return pnet_device_check(s->home.device, e);
}
#endif

enum pnet_status pnet_set_pack(
    const struct pnet_set *set, const struct pnet_packed *packed, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SET, set), PNET_A(ANY, packed));
    PNET_OWN_ERROR(e);
    struct pnet_packed given, needs = {.size = sizeof needs};
    struct block b[2];
    enum pnet_status st = pnet_library_take("pnet_packed", packed, &given, sizeof given, e);
    if (!st) st = pnet_set_packed_sizes(set, &needs, e);
    if (st) return st;
    needs.by_out = given.by_out;
    needs.by_in = given.by_in;
    blocks_of(&needs, b);
    const size_t bytes[] = {given.by_out_bytes, given.by_in_bytes};
    for (int n = 0; n < 2 && !st; n++) {
        if (bytes[n] != b[n].bytes)
            return pnet_error_set(
                e, PNET_USAGE, "%s: %zu bytes, expected %zu", b[n].name, bytes[n], b[n].bytes);
        st = check_block(&b[n], &set->home, e);
    }
    if (st) return st;
    if (pnet_set_on_gpu(set)) return pack_both(set, b, e);
    pack_on_cpu(&set->by_out, b[0].at);
    pack_on_cpu(&set->by_in, b[1].at);
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

/* Checks that each row has a place, and that this place has the row: then each is there once. */
static enum pnet_status check_names(const struct pnet_triplets *t, struct pnet_error *e)
{
    int64_t wrong = 0;
    const uint64_t rows = (uint64_t)t->rows;
#pragma omp parallel for reduction(+ : wrong) if (t->rows > BLOCK)
    for (int64_t row = 0; row < t->rows; row++)
        wrong += (uint32_t)t->place[row] >= rows || t->row[t->place[row]] != row;
    return wrong ? broken("rows and places do not lead to each other", e) : PNET_OK;
}

static bool is_named(const struct block *b)
{
    return b->bytes % 64 == NAMED_END;
}

/* Checks the head of a block in host memory. */
static enum pnet_status check_head(
    const struct block *b, const struct pnet_packed *p, struct pnet_error *e)
{
    struct head h;
    memcpy(&h, b->at, sizeof h);
    if (h.mark != mark) return broken("they begin with something else", e);
    if (h.rows != b->rows || h.others != b->others || h.count != p->triplets || h.taps != p->taps)
        return broken("they are of a set with other numbers of rows, triplets or taps", e);
    return h.bytes == (int64_t)b->bytes && h.named == is_named(b)
               ? PNET_OK
               : broken("they are more or fewer than their head says", e);
}

static enum pnet_status check_numbers(const struct pnet_packed *p, struct pnet_error *e)
{
    if (p->rows_out >= 0 && p->rows_out <= INT32_MAX && p->rows_in >= 0 &&
        p->rows_in <= INT32_MAX && p->triplets >= 0 &&
        (uint64_t)p->triplets <= p->by_out_bytes / 6 && p->taps >= 1 && p->taps <= UINT16_MAX + 1)
        return PNET_OK;
    return broken("a number of rows, triplets or taps is outside", e);
}

/* Makes a form that lies in a block. */
static enum pnet_status unpack(const struct block *b, const struct pnet_packed *p,
    const struct pnet_home *home, struct pnet_set_form *form, struct pnet_error *e)
{
    bool named = is_named(b);
    struct places at = places_of(b->rows, p->triplets, named);
    size_t bytes = b->bytes - (named ? NAMED_END : 0);
    enum pnet_status st = check_block(b, home, e);
    if (st) return st;
    if (bytes < at.tile) return broken("they are too few", e);
    struct pnet_triplets *t = &form->triplets;
    *t = (struct pnet_triplets){.rows = b->rows,
        .others = b->others,
        .count = p->triplets,
        .cells = p->taps,
        .start = (const int64_t *)(const void *)(b->at + at.start),
        .other = (const int32_t *)(const void *)(b->at + at.other),
        .cell = (const uint16_t *)(const void *)(b->at + at.cell)};
    if (named) {
        t->row = (const int32_t *)(const void *)(b->at + at.row);
        t->place = (const int32_t *)(const void *)(b->at + at.place);
    }
    if (home->device.kind == PNET_CPU) {
        st = check_head(b, p, e);
        if (!st) st = check_form(t, e);
        return st || !named ? st : check_names(t, e);
    }
    if (bytes == at.tile) return PNET_OK;
    if (bytes < at.list) return broken("they are too few for tiles", e);
    t->tiles = (struct pnet_tiles){.words = (int64_t)((bytes - at.list) / sizeof(uint32_t)),
        .tile = (const struct pnet_tile *)(const void *)(b->at + at.tile),
        .list = (const uint32_t *)(const void *)(b->at + at.list)};
    return PNET_OK;
}

enum pnet_status pnet_set_unpack(
    const struct pnet_packed *packed, struct pnet_set **set, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, set);
    PNET_REQUIRE(e, PNET_A(ANY, packed));
    PNET_OWN_ERROR(e);
    struct pnet_packed p;
    struct block b[2];
    enum pnet_status st = pnet_library_take("pnet_packed", packed, &p, sizeof p, e);
    if (!st) st = check_numbers(&p, e);
    if (st) return st;
    struct pnet_set *s = pnet_handle_new(PNET_CLASS_SET, sizeof *s, e);
    if (!s) return PNET_NO_MEMORY;
    blocks_of(&p, b);
    st = pnet_home_read("the set lies", p.device, p.stream, p.allocator, &s->home, e);
    if (!st) st = unpack(&b[0], &p, &s->home, &s->by_out, e); /* whose memory is the caller's */
    if (!st) st = unpack(&b[1], &p, &s->home, &s->by_in, e);
    s->out = (struct pnet_set_side){.rows = p.rows_out, .extent = {1, 1, 1}};
    s->in = (struct pnet_set_side){.rows = p.rows_in, .extent = {1, 1, 1}};
    s->samples = 1;
    s->several = true;
    s->inside = true; /* as far as the blocks tell */
    atomic_init(&s->owners, 1);
    if (st) {
        pnet_set_free(s);
        return st;
    }
    *set = s;
    return PNET_OK;
}
