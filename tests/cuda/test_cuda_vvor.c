/* VVOR of sets that are laid out as tiles, against its definition in double. */
#include "tests/kernels/tile_case.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/conv.h"
#include "kernels/cuda/base/cuda.h"
#include "tests/cuda/device_case.h"
#include "tests/cuda/storage_case.h"

/* By enum pnet_precision: what kernels/precision.h promises. */
static const double tolerance[] = {1e-6, 1e-3, 1e-2, 1e-3};
enum { SPARE_ROWS = 300 /* a set is bound for so many rows more than it has */, CANARY = 256 };

/* A matrix in device memory, followed by SPARE_ROWS rows of NaN; rounds x to what the storage holds. */
static float *device_matrix(float *x, size_t rows, size_t width, enum pnet_storage storage)
{
    size_t n = rows * width, each = (size_t)pnet_storage_bytes(storage);
    void *stored = conv_alloc(n * each), *p = device_alloc((rows + SPARE_ROWS) * width * each);
    to_storage(storage, x, (int64_t)n, stored);
    from_storage(storage, stored, (int64_t)n, x);
    pnet_cuda_copy_in(p, stored, n * each);
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    free(stored);
    return p;
}

struct layer {
    int64_t rows, others;
    int32_t cells;
    int64_t degree;
    struct pnet_conv_shape shape;
    bool swapped, add;
    int64_t slots; /* tiles with more neighbours list nothing */
};

static size_t weights(const struct layer *l)
{
    return (size_t)l->cells * (size_t)(l->shape.cin / l->shape.groups) * (size_t)l->shape.cout;
}

static float *run(struct pnet_vvor v, const float *old, size_t size)
{
    size_t bytes = pnet_cuda_vvor_work(v.triplets, v.shape, v.precision);
    unsigned char *work = device_alloc(bytes + CANARY), after[CANARY];
    v.gweight = device_alloc(size * sizeof(float));
    if (v.add) pnet_cuda_copy_in(v.gweight, old, size * sizeof(float));
    pnet_cuda_vvor(&v, work);
    float *gweight = conv_alloc(size * sizeof *gweight);
    pnet_cuda_copy_out(gweight, v.gweight, size * sizeof *gweight);
    pnet_cuda_copy_out(after, work + bytes, CANARY);
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    for (int i = 0; i < CANARY; i++) CHECKF(after[i] == 0xFF, "wrote beyond the workspace");
    pnet_cuda_free(v.gweight);
    pnet_cuda_free(work);
    return gweight;
}

/* One storage: in the precisions that go with it. */
static void check(const struct layer *l, const struct pnet_triplets *t,
    const struct pnet_triplets *set, enum pnet_storage storage)
{
    struct pnet_conv_shape s = l->shape;
    size_t in_rows = (size_t)(l->swapped ? t->rows : t->others),
           gout_rows = (size_t)(l->swapped ? t->others : t->rows);
    size_t in_size = in_rows * (size_t)s.cin, gout_size = gout_rows * (size_t)s.cout;
    float *in = conv_random_floats(in_size, 5), *gout = conv_random_floats(gout_size, 6),
          *old = conv_random_floats(weights(l), 7);
    struct pnet_vvor v = {.shape = s,
        .in = device_matrix(in, in_rows, (size_t)s.cin, storage),
        .gout = device_matrix(gout, gout_rows, (size_t)s.cout, storage),
        .swapped = l->swapped,
        .add = l->add,
        .storage = storage};
    /* the same with rows in another order */
    struct pnet_vvor mixed = v;
    int32_t *row = conv_mixed_rows(t->rows);
    size_t width = (size_t)(l->swapped ? s.cin : s.cout);
    float *side = conv_mix(l->swapped ? in : gout, row, t->rows, width * sizeof *side);
    *(l->swapped ? &mixed.in : &mixed.gout) = device_matrix(side, (size_t)t->rows, width, storage);
    const int32_t *named = device_rows(row, t->rows, set);
    double *in64 = conv_widen(in, in_size), *gout64 = conv_widen(gout, gout_size);
    double *want = conv_alloc(weights(l) * sizeof *want);
    pnet_ref_vvor(t, s, in64, gout64, l->swapped, want);
    if (l->add)
        for (size_t i = 0; i < weights(l); i++) want[i] += (double)old[i];
    for (int p = PNET_FP32; p <= PNET_FP16; p++) {
        v.precision = mixed.precision = (enum pnet_precision)p;
        if (storage != PNET_STORE_F32 && storage != pnet_storage_of(v.precision)) continue;
        struct pnet_triplets tiles = device_set_tiles(set);
        bool tiled = pnet_cuda_conv_reads_tiles(&(struct pnet_conv_sum){.shape = s,
            .cells = l->cells,
            .weights = true,
            .precision = v.precision,
            .storage = storage,
            .algo = v.algo});
        v.triplets = tiled && l->slots == PNET_TILE_SLOTS ? &tiles : set;
        struct pnet_triplets other = *v.triplets;
        other.row = named;
        mixed.triplets = &other;
        float *first = run(v, old, weights(l)), *again = run(mixed, old, weights(l));
        double error = conv_error(first, want, weights(l));
        CHECKF(error <= tolerance[p],
            "precision %d storage %d: %lld x %lld rows, %d cells, %d -> %d, %d groups, swapped %d, "
            "add %d, slots %lld: error %g",
            p, (int)storage, (long long)l->rows, (long long)l->others, l->cells, s.cin, s.cout,
            s.groups, l->swapped, l->add, (long long)l->slots, error);
        CHECKF(
            memcmp(first, again, weights(l) * sizeof *first) == 0, "rows in another order differ");
        free(first), free(again);
    }
    device_free(v.in), device_free(v.gout), device_free(named);
    device_free(l->swapped ? mixed.in : mixed.gout);
    free(in), free(gout), free(row), free(side), free(old), free(in64), free(gout64), free(want);
}

static void check_set(const struct layer *l, struct conv_set set)
{
    struct pnet_triplets d = device_set(&set.t, SPARE_ROWS, 0, l->slots);
    for (int storage = PNET_STORE_F32; storage <= PNET_STORE_FP16; storage++)
        check(l, &set.t, &d, (enum pnet_storage)storage);
    device_set_free(&d);
    conv_set_free(&set);
}

static void check_layer(struct layer l)
{
    check_set(&l, conv_set_random(l.rows, l.others, l.cells, l.degree, 11));
}

/* Each row has runs of up to 8 in all cells, `least` or more in the first of nine: slabs of more rounds than a warp holds at
   once, whose runs it sums in 16 bits all the same. Of 7 one is under way at the 32nd round and at the 64th. */
static void check_full(int64_t rows, int32_t cells, int least, struct pnet_conv_shape shape)
{
    struct layer l = {rows, 500, cells, 0, shape, false, false, PNET_TILE_SLOTS};
    int64_t(*list)[3] = conv_alloc((size_t)(rows * cells * 8) * sizeof *list), count = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < cells; k++) {
            int64_t top = least + k % 9, run = (top < 8 ? top : 8) - (r + k) % 3;
            for (int64_t i = 0; i < run; i++, count++) {
                list[count][0] = r;
                list[count][1] = k;
                list[count][2] = (7 * r + 8 * k + i) % l.others;
            }
        }
    check_set(&l, conv_set_make(rows, l.others, cells, count, list));
    free(list);
}

static void check_full_slabs(void)
{
    static const struct pnet_conv_shape shape[] = {
        {33, 33, 1}, {20, 33, 1}, {39, 70, 1}, {77, 50, 1}, {9, 100, 1}, {66, 66, 2}, {32, 32, 1}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int least = 3; least <= 8; least++)
            check_full(i % 2 == 0 ? 300 : 90, least % 2 ? 27 : 9, least, shape[i]);
}

static void check_shapes(void)
{
    static const int32_t widths[] = {1, 3, 16, 20, 32, 33, 36, 64, 65, 77, 96, 128, 256};
    enum { WIDTHS = sizeof widths / sizeof *widths };
    for (int a = 0; a < WIDTHS; a++)
        for (int b = a % 3; b < WIDTHS; b += 3)
            check_layer((struct layer){611, 137, 8, 4, {widths[a], widths[b], 1}, b % 2 == 0,
                a % 2 == 0, PNET_TILE_SLOTS});
    static const struct pnet_conv_shape grouped[] = {{6, 6, 3}, {12, 6, 3}, {32, 32, 8},
        {64, 64, 4}, {20, 60, 5}, {66, 66, 2}, {74, 38, 2}, {195, 99, 3}, {288, 64, 2},
        {64, 288, 2}, {16, 48, 16}, {256, 256, 16}};
    for (size_t i = 0; i < sizeof grouped / sizeof *grouped; i++)
        check_layer(
            (struct layer){353, 61, 27, 6, grouped[i], i % 2 == 0, i % 3 == 0, PNET_TILE_SLOTS});
    static const int32_t cells[] = {1, 8, 27, 125, 343, 1000};
    static const int64_t rows[] = {0, 1, 15, 257, 800};
    for (size_t c = 0; c < sizeof cells / sizeof *cells; c++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            check_layer((struct layer){rows[r], rows[r] / 2 + 1, cells[c], 9, {24, 72, 1},
                r % 2 == 1, c % 2 == 1, PNET_TILE_SLOTS});
}

/* Neighbours that shared memory does not hold, tiles that list nothing, long runs, rows without triplets, many tiles. */
static void check_sizes(void)
{
    struct pnet_conv_shape square = {128, 128, 1}, odd = {33, 70, 1};
    check_layer((struct layer){1500, 1200, 27, 20, square, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){1500, 1200, 27, 20, {128, 64, 1}, true, true, PNET_TILE_SLOTS});
    check_layer((struct layer){900, 700, 27, 5, square, false, false, 300});
    check_layer((struct layer){9000, 7000, 27, 8, {256, 136, 1}, true, true, 300});
    check_layer((struct layer){6000, 1200, 27, 20, {256, 160, 2}, true, false, PNET_TILE_SLOTS});
    check_layer((struct layer){700, 600, 27, 12, {640, 512, 1}, true, false, 300});
    check_layer((struct layer){300, 120, 64, 9, {512, 512, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){470, 20, 27, 0, {512, 512, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){90, 7000, 2, 900, {384, 264, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){14000, 9000, 27, 280, {72, 72, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){900, 700, 27, 5, odd, false, true, 300});
    check_layer((struct layer){700, 5000, 27, 40, odd, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){900, 700, 27, 5, {37, 50, 1}, false, false, 300});
    check_layer((struct layer){700, 5000, 27, 40, {37, 50, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){90, 7000, 2, 900, {60, 35, 1}, true, false, PNET_TILE_SLOTS});
    check_layer((struct layer){500, 5000, 8, 60, {64, 96, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){90, 7000, 2, 900, {64, 32, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){90, 7000, 2, 900, {128, 96, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){20000, 18000, 27, 3, {80, 72, 1}, true, false, PNET_TILE_SLOTS});
    check_layer((struct layer){20000, 18000, 27, 3, {39, 33, 1}, true, false, PNET_TILE_SLOTS});
    check_layer((struct layer){20000, 18000, 27, 3, {77, 50, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){60000, 50000, 27, 3, {32, 16, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){130, 140, 27, 2, {640, 320, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){90, 70, 1000, 9, {128, 112, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){470, 0, 27, 3, {16, 8, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){470, 20, 27, 0, {16, 8, 2}, false, false, PNET_TILE_SLOTS});
}

/* Few input channels of many cells: columns that one block of threads holds or several, all sizes, tiles that list nothing. */
static void check_narrow(void)
{
    static const int32_t in[] = {1, 3, 8}, out[] = {16, 32, 33, 70}, cells[] = {27, 125, 343};
    for (int c = 0; c < 3; c++)
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 4; b++)
                check_layer((struct layer){611, 137, cells[c], 9, {in[a], out[b], 1}, false,
                    (a + b) % 2 == 0, b % 2 == 0 ? 100 : PNET_TILE_SLOTS});
    static const int64_t rows[] = {0, 1, 15, 63, 64, 65, 257, 5000};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        check_layer((struct layer){
            rows[r], rows[r] / 2 + 1, 125, 20, {3, 32, 1}, false, r % 2 == 0, PNET_TILE_SLOTS});
        check_layer(
            (struct layer){rows[r], rows[r] + 1, 125, 5, {1, 32, 1}, false, r % 2 == 1, 40});
    }
    check_layer((struct layer){90, 7000, 27, 900, {3, 32, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){700, 5000, 125, 40, {6, 128, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){700, 500, 1000, 40, {8, 70, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){20000, 18000, 343, 9, {5, 256, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){60000, 50000, 125, 20, {3, 32, 1}, false, false, PNET_TILE_SLOTS});
    check_layer((struct layer){500, 300, 125, 20, {3, 32, 1}, true, false, PNET_TILE_SLOTS});
    check_layer((struct layer){470, 0, 125, 3, {3, 32, 1}, false, true, PNET_TILE_SLOTS});
    check_layer((struct layer){470, 20, 125, 0, {3, 32, 1}, false, false, PNET_TILE_SLOTS});
}

/* A workspace bound for a capacity class serves every batch of the class, and stays small. */
static void check_work(struct pnet_conv_shape s, int32_t cells)
{
    for (int p = PNET_FP32; p <= PNET_FP16; p++) {
        size_t before = 0;
        for (int64_t rows = 0; rows < 1000000; rows += 1 + rows / 9) {
            struct pnet_triplets t = {
                .rows = rows, .others = rows, .count = 7 * rows, .cells = cells};
            size_t work = pnet_cuda_vvor_work(&t, s, (enum pnet_precision)p);
            CHECKF(work >= before && work <= 64u << 20,
                "%d -> %d, %d cells, precision %d, %lld rows: %zu bytes", s.cin, s.cout, cells, p,
                (long long)rows, work);
            before = work;
        }
    }
}

int main(void)
{
    const char *why = NULL;
    for (int32_t channels = 33; channels <= 2112; channels *= 2)
        check_work((struct pnet_conv_shape){channels, channels, 1}, 27);
    for (int32_t channels = 512; channels <= 2048; channels *= 2)
        check_work((struct pnet_conv_shape){channels, channels, 1}, 27);
    for (int32_t cells = 27; cells <= 1000; cells += 139)
        for (int32_t channels = 1; channels <= 8; channels++)
            for (int32_t cout = 16; cout <= 512; cout *= 2)
                check_work((struct pnet_conv_shape){channels, cout, 1}, cells);
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return check_failed ? 1 : 77;
    }
    if (getenv("PNET_SHORT")) {
        check_layer((struct layer){611, 137, 27, 4, {128, 96, 1}, false, false, PNET_TILE_SLOTS});
        check_layer((struct layer){300, 137, 27, 4, {512, 512, 1}, false, true, PNET_TILE_SLOTS});
        check_layer((struct layer){300, 137, 8, 6, {640, 512, 1}, false, false, 100});
        check_layer((struct layer){611, 137, 8, 4, {33, 20, 1}, true, true, 100});
        check_layer((struct layer){300, 137, 8, 4, {33, 70, 1}, false, false, PNET_TILE_SLOTS});
        check_layer((struct layer){300, 137, 27, 4, {37, 20, 1}, false, true, PNET_TILE_SLOTS});
        check_full(90, 9, 7, (struct pnet_conv_shape){33, 33, 1});
        check_full(90, 9, 7, (struct pnet_conv_shape){20, 70, 1});
        check_layer((struct layer){611, 137, 125, 9, {3, 33, 1}, false, true, PNET_TILE_SLOTS});
        check_layer((struct layer){311, 137, 125, 9, {1, 32, 1}, false, false, 40});
        check_layer((struct layer){311, 137, 125, 4, {8, 16, 1}, false, false, PNET_TILE_SLOTS});
    } else {
        check_shapes();
        check_sizes();
        check_full_slabs();
        check_narrow();
    }
    const char *wrong = pnet_cuda_sync();
    CHECKF(!wrong, "%s", wrong);
    return check_end();
}
#else
int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}
#endif
