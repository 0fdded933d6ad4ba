/* Keys of points, and the order of rows by key: a stable radix sort, lowest digit first. */
#include <omp.h>
#include <string.h>

#include "kernels/geometry_stage.h"
#include "kernels/cpu/geometry/geo_grid.h"

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    MAX_CHUNKS = 32,     /* parts of a sample that are sorted at the same time */
    MANY_ROWS = 1 << 15, /* one thread sorts each sample that has fewer rows */
};

int64_t pnet_cpu_keys(int64_t n, const float *xyz, struct pnet_grid grid, uint64_t *key)
{
    int64_t outside = 0;
#pragma omp parallel for schedule(static) reduction(+ : outside)
    for (int64_t i = 0; i < n; i++) {
        bool inside = true;
        key[i] = pnet_voxel_key(pnet_voxel_of(xyz + 3 * i, grid, &inside));
        outside += !inside;
    }
    return outside;
}

/* The bits of a key that decide its order: those that differ between keys and do not follow from the bit of the same axis
   above them. The second case is common: indices on both sides of zero differ in all upper bits, 0111.. against 1000..,
   although one of these bits decides. */
struct bits {
    int count;         /* runs of neighbouring bits */
    int total;         /* bits in all of them */
    uint8_t shift[32]; /* run r becomes (key >> shift[r]) & mask[r] */
    uint64_t mask[32];
};

struct spread {
    uint64_t all, any;           /* AND and OR of the keys */
    uint64_t step_all, step_any; /* of key ^ key >> 3 */
    bool sorted;
};

static struct spread look_at_keys(int64_t n, const uint64_t *key, int threads)
{
    uint64_t all = UINT64_MAX, any = 0, step_all = UINT64_MAX, step_any = 0;
    int64_t falls = 0;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) \
    reduction(& : all, step_all) reduction(| : any, step_any) reduction(+ : falls)
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = key[i], step = k ^ k >> 3;
        all &= k;
        any |= k;
        step_all &= step;
        step_any |= step;
        falls += i > 0 && k < key[i - 1];
    }
    return (struct spread){all, any, step_all, step_any, falls == 0};
}

static struct bits deciding_bits(const struct spread *s)
{
    struct bits b = {0};
    uint64_t left = (s->all ^ s->any) & (s->step_all ^ s->step_any);
    while (left) {
        int low = __builtin_ctzll(left), run = 0;
        while (low + run < 64 && left >> (low + run) & 1) run++;
        uint64_t mask = (run < 64 ? UINT64_C(1) << run : 0) - 1;
        b.shift[b.count] = (uint8_t)(low - b.total);
        b.mask[b.count++] = mask << b.total;
        left &= ~(mask << low);
        b.total += run;
    }
    return b;
}

static inline uint64_t deciding_part(const struct bits *b, uint64_t key)
{
    uint64_t part = 0;
    for (int r = 0; r < b->count; r++) part |= key >> b->shift[r] & b->mask[r];
    return part;
}

/* Returns where chunk `c` of `chunks` begins. */
static int64_t chunk_begin(int64_t n, int c, int chunks)
{
    return n / chunks * c + n % chunks * c / chunks;
}

static void count_digits(int64_t n, const uint64_t *item, int shift, uint32_t count[DIGITS])
{
    memset(count, 0, DIGITS * sizeof *count);
    for (int64_t i = 0; i < n; i++) count[item[i] >> shift & (DIGITS - 1)]++;
}

static void move_by_digit(
    int64_t n, const uint64_t *item, int shift, uint32_t place[DIGITS], uint64_t *to)
{
    for (int64_t i = 0; i < n; i++) to[place[item[i] >> shift & (DIGITS - 1)]++] = item[i];
}

/* Replaces the counts of every chunk by the first places of its digits. */
static void counts_to_places(uint32_t (*count)[DIGITS], int chunks)
{
    uint32_t place = 0;
    for (int d = 0; d < DIGITS; d++)
        for (int c = 0; c < chunks; c++) {
            uint32_t here = count[c][d];
            count[c][d] = place;
            place += here;
        }
}

static void radix_pass(
    int64_t n, const uint64_t *from, uint64_t *to, int shift, uint32_t (*count)[DIGITS], int chunks)
{
#pragma omp parallel for schedule(static) num_threads(chunks) if (chunks > 1)
    for (int c = 0; c < chunks; c++) {
        int64_t begin = chunk_begin(n, c, chunks), end = chunk_begin(n, c + 1, chunks);
        count_digits(end - begin, from + begin, shift, count[c]);
    }
    counts_to_places(count, chunks);
#pragma omp parallel for schedule(static) num_threads(chunks) if (chunks > 1)
    for (int c = 0; c < chunks; c++) {
        int64_t begin = chunk_begin(n, c, chunks), end = chunk_begin(n, c + 1, chunks);
        move_by_digit(end - begin, from + begin, shift, count[c], to);
    }
}

/* Sorts items by `bits` bits from `shift` upwards. Returns the buffer that holds the result. */
static uint64_t *radix_sort(int64_t n, uint64_t *item, uint64_t *other, int shift, int bits,
    uint32_t (*count)[DIGITS], int chunks)
{
    for (int done = 0; done < bits; done += DIGIT_BITS) {
        radix_pass(n, item, other, shift + done, count, chunks);
        uint64_t *swap = item;
        item = other;
        other = swap;
    }
    return item;
}

/* Orders one sample whose first row is `row`. An item holds a part of the key above a row: as many bits as fit. The lower
   part of the key is sorted first, then, in the resulting order, the upper part. */
static void order_sample(int64_t n, int64_t row, const uint64_t *key, int32_t *order,
    uint64_t *item, uint64_t *other, uint32_t (*count)[DIGITS], int chunks)
{
    struct spread s = look_at_keys(n, key, chunks);
#pragma omp parallel for schedule(static) num_threads(chunks) if (chunks > 1)
    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)(row + i);
    if (s.sorted) return;
    struct bits bits = deciding_bits(&s);
    int row_bits = 64 - __builtin_clzll((uint64_t)n), room = 64 - row_bits;
    for (int done = 0; done < bits.total; done += room) {
        int part = bits.total - done < room ? bits.total - done : room;
#pragma omp parallel for schedule(static) num_threads(chunks) if (chunks > 1)
        for (int64_t i = 0; i < n; i++) {
            uint64_t local = (uint64_t)(order[i] - row);
            item[i] = deciding_part(&bits, key[local]) >> done << row_bits | local;
        }
        const uint64_t *sorted = radix_sort(n, item, other, row_bits, part, count, chunks);
        uint64_t local_mask = (UINT64_C(1) << row_bits) - 1;
#pragma omp parallel for schedule(static) num_threads(chunks) if (chunks > 1)
        for (int64_t i = 0; i < n; i++)
            order[i] = (int32_t)(row + (int64_t)(sorted[i] & local_mask));
    }
}

size_t pnet_cpu_order_work(int64_t n)
{
    return 2 * (size_t)n * sizeof(uint64_t) + MAX_CHUNKS * DIGITS * sizeof(uint32_t);
}

void pnet_cpu_order(int64_t n, int32_t samples, const int64_t *row_splits, const uint64_t *key,
    int32_t *order, void *work)
{
    uint64_t *item = work, *other = item + n;
    uint32_t(*count)[DIGITS] = (void *)(other + n);
    int threads = omp_get_max_threads(), chunks = threads < MAX_CHUNKS ? threads : MAX_CHUNKS;
#pragma omp parallel for schedule(dynamic)
    for (int32_t s = 0; s < samples; s++) {
        int64_t row = row_splits[s], rows = row_splits[s + 1] - row;
        uint32_t own[1][DIGITS];
        if (rows && rows < MANY_ROWS) /* without points the arrays may be NULL */
            order_sample(rows, row, key + row, order + row, item + row, other + row, own, 1);
    }
    for (int32_t s = 0; s < samples; s++) {
        int64_t row = row_splits[s], rows = row_splits[s + 1] - row;
        if (rows >= MANY_ROWS)
            order_sample(rows, row, key + row, order + row, item + row, other + row, count, chunks);
    }
}

size_t pnet_cpu_order_points_work(int64_t n)
{
    return (size_t)n * sizeof(uint64_t) + pnet_cpu_order_work(n);
}

int64_t pnet_cpu_order_points(int64_t n, int32_t samples, const int64_t *row_splits,
    const float *xyz, struct pnet_grid grid, int32_t *order, void *room, void *work)
{
    uint64_t *key = work;
    (void)room; /* here whole keys are sorted without extra room */
    int64_t outside = pnet_cpu_keys(n, xyz, grid, key);
    pnet_cpu_order(n, samples, row_splits, key, order, key + n);
    return outside;
}
