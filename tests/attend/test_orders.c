/* Orders, buckets and scopes of attention: hand-made values, and properties that any of them must have. */
#include "kernels/attend.h"
#include "kernels/philox.h"
#include "tests/check.h"

#include <stdlib.h>

enum { MOST_BUCKETS = 200, SAMPLES = 4 };

/* The buckets of each scope of a sample of `buckets` buckets, as text: "{0,2}{1}". */
static void scopes_text(const struct pnet_scopes *s, int64_t buckets, char *text)
{
    int64_t rows = buckets * s->bucket;
    *text = 0;
    for (int64_t n = 0; n < pnet_scope_count(s, rows); n++) {
        struct pnet_scope p = pnet_scope_of(s, rows, n);
        for (int64_t i = 0; i < p.count; i++)
            text += sprintf(text, "%s%lld", i ? "," : "{", (long long)pnet_scope_bucket(&p, i));
        if (p.count) text += sprintf(text, "}");
    }
}

static void test_golden_scopes(void)
{
    static const struct {
        int64_t buckets;
        struct pnet_scopes s;
        const char *text;
    } golden[] = {
        {7, {4, 2, 0, 1, false}, "{0,1}{2,3}{4,5}{6}"},
        {7, {4, 2, 1, 1, false}, "{0}{1,2}{3,4}{5,6}"},
        {7, {4, 2, 0, 2, false}, "{0,2}{1,3}{4,6}{5}"},
        {7, {4, 2, 1, 2, false}, "{0}{1,3}{2,4}{5}{6}"},
        {9, {4, 8, 2, 2, false}, "{0}{1}{2,4,6,8}{3,5,7}"},
        {7, {4, 2, 1, 1, true}, "{1,2}{3,4}{5,6}{0}"},
        {7, {4, 2, 9, 2, true}, "{2,4}{3,5}{6,1}{0}"},
        {8, {4, 8, 3, 2, false}, "{0,1,2,3,4,5,6,7}"},
        {3, {4, 2, 7, 4, false}, "{0}{1}{2}"},
    };
    char text[256];
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        scopes_text(&golden[i].s, golden[i].buckets, text);
        CHECKF(strcmp(text, golden[i].text) == 0, "scopes %s, not %s", text, golden[i].text);
    }
    static const int64_t starts[] = {0, 3, 6, 10};
    CHECK(pnet_bucket_count(10, 4) == 3);
    for (int k = 0; k < 4; k++) CHECK(pnet_bucket_begin(10, 3, k) == starts[k]);
}

/* Every bucket is in one scope, no scope has more buckets than it may, and a shift by a whole chunk changes nothing. */
static void check_partition(const struct pnet_scopes *s, int64_t rows)
{
    int64_t buckets = pnet_bucket_count(rows, s->bucket), wrong = 0, sum = 0;
    int seen[MOST_BUCKETS] = {0};
    struct pnet_scopes moved = *s;
    moved.shift += s->scope * s->stride;
    for (int64_t k = 0; k < buckets; k++) {
        int64_t size =
            pnet_bucket_begin(rows, buckets, k + 1) - pnet_bucket_begin(rows, buckets, k);
        wrong += size > s->bucket || (rows > s->bucket && 2 * size < s->bucket);
        wrong += size < rows / buckets || size > rows / buckets + 1;
    }
    for (int64_t n = 0; n < pnet_scope_count(s, rows); n++) {
        struct pnet_scope p = pnet_scope_of(s, rows, n), q = pnet_scope_of(&moved, rows, n);
        wrong += p.count > s->scope;
        wrong += !s->wrap && (p.first != q.first || p.count != q.count);
        sum += pnet_scope_rows(&p);
        for (int64_t i = 0; i < p.count; i++) seen[pnet_scope_bucket(&p, i)]++;
    }
    for (int64_t k = 0; k < buckets; k++) wrong += seen[k] != 1;
    CHECKF(!wrong && sum == rows, "%lld rows, bucket %d, scope %d, shift %d, stride %d, wrap %d",
        (long long)rows, s->bucket, s->scope, s->shift, s->stride, s->wrap);
}

static void test_partitions(void)
{
    for (int32_t scope = 1; scope <= 8; scope += 1 + scope / 3)
        for (int32_t stride = 1; stride <= 8; stride += 1 + stride / 2)
            for (int32_t shift = 0; shift < 2 * scope * stride; shift += 1 + shift / 3)
                for (int64_t rows = 1; rows < 16 * MOST_BUCKETS - 16; rows += 1 + rows / 3)
                    for (int wrap = 0; wrap < 2; wrap++)
                        check_partition(
                            &(struct pnet_scopes){16, scope, shift, stride, wrap != 0}, rows);
}

static void test_golden_keys(void)
{
    const uint32_t a[3] = {5, 3, 6}, b[3] = {7, 0, 1};
    CHECK(pnet_order_key(PNET_ORDER_XOR_DIV, a, 3, 3) == 0);
    CHECK(pnet_order_key(PNET_ORDER_XOR_DIV, b, 3, 3) == 2);
    CHECK(pnet_order_key(PNET_ORDER_XOR_MOD, b, 3, 3) == 0);
    CHECK(pnet_order_key(PNET_ORDER_XOR_MOD, b, 3, 4) == 2);
    CHECK(pnet_order_key(PNET_ORDER_Z_TRANS, b, 3, 1) == 0223);
    /* Z of (7, 0, 1): x highest in each digit of 8 */
    CHECK(pnet_order_key(PNET_ORDER_Z_MOD, b, 3, 1000) == 0445);
    /* 3 * 7 bits: the top 16 of 21 are left */
    const uint32_t wide[3] = {127, 0, 0};
    CHECK(pnet_order_key(PNET_ORDER_Z_MOD, wide, 7, 1 << 20) == 04444444 >> 5);
    CHECK(pnet_order_bits(0) == 0 && pnet_order_bits(1) == 1 && pnet_order_bits(6) == 3);
}

/* A Hilbert curve visits every voxel of a cube, each next to the one before. */
static void test_hilbert(void)
{
    static const uint32_t first[8] = {0, 1, 3, 2, 6, 7, 5, 4}; /* x y z as bits, along the curve */
    /* The same for two bits, x y z as digits: by the inverse, which goes from a place through its Gray code to the voxel
       (Skilling 2004; decode() of Point Transformer V3 gives these). */
    static const uint16_t second[64] = {0x000, 0x010, 0x110, 0x100, 0x101, 0x111, 0x011, 0x001,
        0x002, 0x003, 0x103, 0x102, 0x112, 0x113, 0x013, 0x012, 0x022, 0x023, 0x033, 0x032, 0x132,
        0x133, 0x123, 0x122, 0x121, 0x021, 0x031, 0x131, 0x130, 0x030, 0x020, 0x120, 0x220, 0x320,
        0x330, 0x230, 0x231, 0x331, 0x321, 0x221, 0x222, 0x223, 0x233, 0x232, 0x332, 0x333, 0x323,
        0x322, 0x312, 0x313, 0x213, 0x212, 0x202, 0x203, 0x303, 0x302, 0x301, 0x311, 0x211, 0x201,
        0x200, 0x210, 0x310, 0x300};
    for (uint32_t n = 0; n < 8; n++)
        CHECK(pnet_hilbert_key(first[n] >> 2, first[n] >> 1 & 1, first[n] & 1, 1) == n);
    for (int n = 0; n < 64; n++) {
        uint32_t v = second[n];
        CHECKF(pnet_hilbert_key(v >> 8, v >> 4 & 15, v & 15, 2) == (uint64_t)n,
            "voxel %03x is not at place %d", v, n);
    }
    for (int bits = 1; bits <= 5; bits++) {
        uint32_t edge = 1u << bits, all = edge * edge * edge, wrong = 0;
        uint32_t *voxel = malloc(all * sizeof *voxel);
        if (!voxel) exit(1);
        memset(voxel, 0xff, all * sizeof *voxel);
        for (uint32_t v = 0; v < all; v++) {
            uint64_t key = pnet_hilbert_key(v / edge / edge, v / edge % edge, v % edge, bits);
            if (key < all && voxel[key] == UINT32_MAX)
                voxel[key] = v;
            else
                wrong++;
        }
        for (uint32_t n = 1; n < all && !wrong; n++) {
            uint32_t a = voxel[n - 1], b = voxel[n];
            int steps = abs((int)(a / edge / edge) - (int)(b / edge / edge)) +
                        abs((int)(a / edge % edge) - (int)(b / edge % edge)) +
                        abs((int)(a % edge) - (int)(b % edge));
            wrong += steps != 1;
        }
        CHECKF(!wrong && voxel[0] == 0, "%d bits: %u of %u voxels are wrong", bits, wrong, all);
        free(voxel);
    }
}

/* The voxel of a point less the least one of its sample. */
static void offsets(
    const struct pnet_level *l, double cell, int32_t sample, int64_t row, uint32_t u[3], int *bits)
{
    double largest = 0;
    for (int a = 0; a < 3; a++) {
        double low = INFINITY, high = -INFINITY, own = floor((double)l->xyz[3 * row + a] / cell);
        for (int64_t i = l->row_splits[sample]; i < l->row_splits[sample + 1]; i++) {
            low = fmin(low, floor((double)l->xyz[3 * i + a] / cell));
            high = fmax(high, floor((double)l->xyz[3 * i + a] / cell));
        }
        u[a] = (uint32_t)(own - low);
        largest = fmax(largest, high - low);
    }
    for (*bits = 0; largest >= ldexp(1, *bits);) ++*bits;
}

static void check_order(const struct pnet_level *l, enum pnet_order order, int32_t bucket)
{
    const float cell = 0.125f; /* divisions by it are exact */
    int64_t n = l->row_splits[l->samples], wrong = 0;
    int32_t *row = malloc((size_t)(n + 1) * sizeof *row);
    void *work = malloc(pnet_cpu_bucket_order_work(l));
    if (!row || !work) exit(1);
    pnet_cpu_bucket_order(l, (struct pnet_grid){cell, 1 / cell, 1}, order, bucket, row, work);
    for (int32_t s = 0; s < l->samples; s++) {
        int64_t begin = l->row_splits[s], end = l->row_splits[s + 1],
                buckets = pnet_bucket_count(end - begin, bucket);
        uint64_t before = 0;
        for (int64_t place = begin; place < end; place++) {
            uint32_t u[3];
            int bits;
            if (row[place] < begin || row[place] >= end) {
                wrong++;
                continue;
            }
            offsets(l, (double)cell, s, row[place], u, &bits);
            uint64_t key = pnet_order_key(order, u, bits, buckets);
            wrong += pnet_order_hashes(order) && key >= (uint64_t)buckets;
            if (place > begin)
                wrong += key < before || (key == before && row[place] <= row[place - 1]);
            before = key;
        }
    }
    CHECKF(
        !wrong, "order %d: %lld of %lld places are wrong", order, (long long)wrong, (long long)n);
    free(row);
    free(work);
}

/* Rows ascend strictly by (key, row), so each is there once. */
static void test_orders(void)
{
    static const int64_t splits[][SAMPLES + 1] = {
        {0, 300, 300, 301, 700}, {0, 0, 0, 0, 0}, {0, 1, 2, 3, 4}};
    float xyz[3 * 700];
    struct pnet_rand r = {.seed = 3, .purpose = PNET_DRAW_TEST};
    for (int i = 0; i < 3 * 700; i++) xyz[i] = 6 * pnet_rand_unit(&r, (uint64_t)i) - 3;
    for (size_t b = 0; b < sizeof splits / sizeof *splits; b++) {
        struct pnet_level l = {splits[b][SAMPLES], SAMPLES, splits[b], xyz, NULL, {0, 0, 0}};
        for (int order = PNET_ORDER_Z_TRANS; order < PNET_ORDERS; order++)
            check_order(&l, (enum pnet_order)order, 16);
    }
}

int main(void)
{
    test_golden_scopes();
    test_partitions();
    test_golden_keys();
    test_hilbert();
    test_orders();
    return check_end();
}
