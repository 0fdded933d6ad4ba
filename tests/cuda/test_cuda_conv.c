/* MVMR and VVOR on the GPU against their definitions in double. */
#include "tests/kernels/tile_case.h"

#ifdef PNET_CUDA_BUILT
#include "tests/cuda/mvmr_case.h"

/* PNET_SHORT: a few sizes, for tools under which every launch takes long. With the word `wide` or `narrow`
   the layers of which 256 columns are multiplied at a time, or all but them. */
static bool brief;

static void check_mvmr(const struct layer *l, const struct pnet_triplets *t, bool transposed,
    bool add, bool with_bias, enum pnet_activation act)
{
    struct mvmr_case c = {pnet_cuda_mvmr_whole, 0, SETS};
    check_mvmr_case(&c, l, t, transposed, add, with_bias, act);
}

static float *run_vvor(struct pnet_vvor v, const float *old, size_t size)
{
    v.gweight = device_alloc(size * sizeof(float));
    if (v.add) pnet_cuda_copy_in(v.gweight, old, size * sizeof(float));
    struct device_work work = device_work(pnet_cuda_vvor_work(v.triplets, v.shape, v.precision));
    pnet_cuda_vvor(&v, work.memory);
    float *gweight = host_floats(v.gweight, size);
    device_work_end(&work, __func__);
    pnet_cuda_free(v.gweight);
    return gweight;
}

/* `mixed`: the same with rows in another order, which has the same bits. */
static void check_vvor_runs(const struct layer *l, struct pnet_vvor v, struct pnet_vvor mixed,
    const float *old, const double *want)
{
    for (int p = 0; p < PRECISIONS; p++) {
        char text[160];
        layer_describe(l, precision_name[p], text);
        v.precision = mixed.precision = (enum pnet_precision)p;
        if (v.storage != PNET_STORE_F32 && v.storage != pnet_storage_of(v.precision)) continue;
        float *gweight = run_vvor(v, old, layer_weights(l)),
              *again = run_vvor(mixed, old, layer_weights(l));
        double error = conv_error(gweight, want, layer_weights(l));
        CHECKF(error <= tolerance[p], "%s: vvor error %g (swapped %d, add %d, storage %s)", text,
            error, v.swapped, v.add, storage_names[v.storage]);
        CHECKF(memcmp(gweight, again, layer_weights(l) * sizeof *gweight) == 0,
            "%s: rows in another order differ (storage %s)", text, storage_names[v.storage]);
        free(gweight), free(again);
    }
}

static void check_vvor(const struct layer *l, const struct pnet_triplets *t, bool swapped, bool add)
{
    struct pnet_conv_shape s = l->shape;
    size_t in_size = (size_t)(swapped ? t->rows : t->others) * (size_t)s.cin;
    size_t gout_size = (size_t)(swapped ? t->others : t->rows) * (size_t)s.cout;
    float *in = conv_random_floats(in_size, 5), *gout = conv_random_floats(gout_size, 6);
    float *old = conv_random_floats(layer_weights(l), 7);
    double *in64 = conv_widen(in, in_size), *gout64 = conv_widen(gout, gout_size);
    double *want = conv_alloc(layer_weights(l) * sizeof *want);
    pnet_ref_vvor(t, s, in64, gout64, swapped, want);
    if (add)
        for (size_t i = 0; i < layer_weights(l); i++) want[i] += (double)old[i];
    struct pnet_triplets set = device_set(t, SPARE_ROWS, 0, 0), other = set;
    int32_t *row = conv_mixed_rows(t->rows);
    size_t side_size = swapped ? in_size : gout_size;
    float *side = conv_mix(
        swapped ? in : gout, row, t->rows, (size_t)(swapped ? s.cin : s.cout) * sizeof *side);
    other.row = device_rows(row, t->rows, &other);
    for (int storage = PNET_STORE_F32; storage <= PNET_STORE_FP16; storage++) {
        struct pnet_vvor v = {.triplets = &set,
            .shape = s,
            .in = device_features((enum pnet_storage)storage, in, in_size, 0),
            .gout = device_features((enum pnet_storage)storage, gout, gout_size, 0),
            .swapped = swapped,
            .add = add,
            .storage = (enum pnet_storage)storage};
        struct pnet_vvor mixed = v;
        float *moved = device_features((enum pnet_storage)storage, side, side_size, 0);
        mixed.triplets = &other;
        *(swapped ? &mixed.in : &mixed.gout) = moved;
        check_vvor_runs(l, v, mixed, old, want);
        device_free(v.in), device_free(v.gout), device_free(moved);
    }
    device_free(other.row);
    free(row), free(side);
    device_set_free(&set);
    free(in), free(gout), free(old), free(in64), free(gout64), free(want);
}

static const struct layer_checks checks = {check_mvmr, check_vvor};

/* Wide layers, many cells, several chunks of rows. */
static void check_sizes(void)
{
    struct layer wide = {130, 140, 27, 4, {640, 320, 1}},
                 cells = {120, 130, 1000, 20, {96, 128, 1}};
    struct layer chunks = {9000, 3000, 27, 3, {8, 24, 1}},
                 long_runs = {90, 7000, 2, 900, {64, 32, 1}};
    struct layer square = {5000, 4000, 27, 20, {128, 128, 1}};
    struct layer depthwise = {9000, 3000, 27, 3, {24, 24, 24}};
    /* more cells than are summed at once */
    struct layer many = {700, 500, 125, 30, {36, 36, 36}}, odd = {300, 400, 343, 20, {37, 37, 37}};
    /* more cells than tiles may have: 11, 17 and 31 an axis, the language's most */
    struct layer eleven = {300, 250, 1331, 20, {96, 128, 1}},
                 uneven = {200, 150, 1331, 20, {33, 37, 1}},
                 grouped = {150, 140, 1331, 20, {48, 24, 3}},
                 seventeen = {100, 90, 4913, 30, {40, 48, 1}},
                 thirty_one = {70, 60, 29791, 40, {8, 16, 1}};
    layer_check(&checks, &eleven, false);
    layer_check(&checks, &uneven, false);
    layer_check(&checks, &grouped, false);
    layer_check(&checks, &seventeen, false);
    layer_check(&checks, &thirty_one, false);
    layer_check(&checks, &wide, false);
    layer_check(&checks, &cells, false);
    layer_check(&checks, &chunks, false);
    layer_check(&checks, &long_runs, false);
    layer_check(&checks, &square, false);
    layer_check(&checks, &depthwise, false);
    layer_check(&checks, &many, false);
    layer_check(&checks, &odd, false);
}

/* Layers of which 256 columns are multiplied at a time: tiles of which some are not full, columns and groups that are not,
   more tiles than there are processors for. */
static void check_wide(void)
{
    struct layer few = {300, 250, 27, 6, {128, 256, 1}}, deep = {520, 400, 27, 3, {192, 192, 1}},
                 groups = {300, 300, 8, 3, {256, 512, 2}},
                 long_runs = {90, 900, 2, 40, {128, 192, 1}};
    if (brief) few.rows = 70, deep.rows = 130, groups.rows = 70, deep.cells = 8;
    layer_check(&checks, &few, !brief);
    layer_check(&checks, &deep, false);
    layer_check(&checks, &groups, false);
    layer_check(&checks, &long_runs, false);
    /* more tiles than there are processors for */
    struct layer many = {18000, 3000, 27, 2, {128, 256, 1}};
    if (!brief) layer_check(&checks, &many, false);
}

/* A workspace bound for a capacity class serves every batch of the class, and stays small. */
static void check_work(void)
{
    static const struct pnet_conv_shape shapes[] = {
        {3, 32, 1}, {128, 128, 1}, {512, 512, 1}, {64, 64, 64}, {96, 96, 8}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int p = 0; p < PRECISIONS; p++) {
            size_t mvmr = 0, vvor = 0;
            for (int64_t rows = 0; rows < 3000000; rows += 1 + rows / 3) {
                struct pnet_triplets t = {
                    .rows = rows, .others = rows, .count = 7 * rows, .cells = 27};
                size_t m = pnet_cuda_mvmr_work(&t, shapes[s], (enum pnet_precision)p),
                       v = pnet_cuda_vvor_work(&t, shapes[s], (enum pnet_precision)p);
                CHECKF(m >= mvmr && v >= vvor, "%d channels, %lld rows", shapes[s].cin,
                    (long long)rows);
                mvmr = m;
                vvor = v;
            }
            CHECKF(mvmr <= 64u << 20 && vvor <= 64u << 20, "%d channels, %s: %zu, %zu bytes",
                shapes[s].cin, precision_name[p], mvmr, vvor);
        }
    }
}

/* Each tile reads rows of a magnitude of its own, and weights are small: the error of a tile is small beside the tile's own
   sums. */
static void check_magnitudes(bool large)
{
    enum { ROWS = 3000, C = 72 };
    struct conv_set set = conv_set_random(ROWS, PNET_TILE_ROWS, 27, 5, 3);
    set.t.others = ROWS;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = set.start[r]; i < set.start[r + 1]; i++)
            set.other[i] =
                (int32_t)((r / PNET_TILE_ROWS * PNET_TILE_ROWS + set.other[i] % PNET_TILE_ROWS) %
                          ROWS);
    float *in = conv_random_floats(ROWS * C, 1), *weight = conv_random_floats(27 * C * C, 2);
    for (int64_t i = 0; i < ROWS * C; i++)
        in[i] = ldexpf(in[i], (int)(i / C / PNET_TILE_ROWS % 7 - 3) * 20);
    for (int64_t i = 0; i < 27 * C * C; i++) weight[i] = ldexpf(weight[i], -40);
    double *in64 = conv_widen(in, ROWS * C), *weight64 = conv_widen(weight, 27 * C * C),
           *want = conv_alloc(ROWS * C * sizeof *want);
    struct pnet_conv_shape s = {C, C, 1};
    pnet_ref_mvmr(&set.t, s, in64, weight64, NULL, false, want);
    struct pnet_triplets t = device_set(&set.t, SPARE_ROWS, 0, PNET_TILE_SLOTS),
                         tiles = device_set_tiles(&t);
    if (large) tiles = as_large(tiles);
    struct pnet_mvmr m = {.triplets = &tiles,
        .shape = s,
        .in = device_floats(in, ROWS * C),
        .weight = device_floats(weight, 27 * C * C),
        .precision = PNET_TF32};
    float *out = run_mvmr(pnet_cuda_mvmr_whole, m, NULL, ROWS);
    for (int64_t r = 0; r < ROWS; r += PNET_TILE_ROWS) {
        size_t rows = (size_t)(ROWS - r < PNET_TILE_ROWS ? ROWS - r : PNET_TILE_ROWS);
        double error = conv_error(out + r * C, want + r * C, rows * C);
        CHECKF(error <= tolerance[PNET_TF32], "rows from %lld: error %g (large %d)", (long long)r,
            error, large);
    }
    device_free(m.in), device_free(m.weight);
    device_set_free(&t);
    free(in), free(weight), free(in64), free(weight64), free(want), free(out);
    conv_set_free(&set);
}

/* A NaN reaches the rows that read it and no other ones. */
static void check_nan(mvmr_kernel *kernel, int64_t slots, bool large)
{
    struct conv_set set = conv_set_random(300, 200, 27, 5, 3);
    struct pnet_triplets t = device_set(&set.t, SPARE_ROWS, 0, slots);
    if (large) t = as_large(t);
    struct pnet_conv_shape s = {20, 24, 1};
    float *in = conv_random_floats(200 * 20, 1), *weight = conv_random_floats(27 * 20 * 24, 2);
    in[77 * 20 + 19] = NAN;
    struct pnet_mvmr m = {.triplets = &t,
        .shape = s,
        .in = device_floats(in, 200 * 20),
        .weight = device_floats(weight, 27 * 20 * 24),
        .act = PNET_ACT_RELU};
    for (int p = 0; p < PRECISIONS; p++) {
        m.precision = (enum pnet_precision)p;
        float *out = run_mvmr(kernel, m, NULL, 300);
        int readers = 0;
        for (int64_t r = 0; r < 300; r++) {
            bool reads = false;
            for (int64_t i = set.start[r]; i < set.start[r + 1]; i++)
                reads = reads || set.other[i] == 77;
            readers += reads;
            for (int c = 0; c < 24; c++)
                CHECKF(isnan(out[r * 24 + c]) == reads, "%s: row %lld", precision_name[p],
                    (long long)r);
        }
        CHECK(readers > 0 && readers < 300);
        free(out);
    }
    device_free(m.in), device_free(m.weight);
    device_set_free(&t);
    free(in), free(weight);
    conv_set_free(&set);
}

/* A few sizes of every path. */
static void check_some(void)
{
    static const struct pnet_conv_shape shapes[] = {
        {3, 16, 1}, {20, 33, 1}, {128, 128, 1}, {12, 6, 3}, {32, 32, 32}, {33, 33, 33}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct layer l = {211, 137, 27, 4, shapes[i]};
        layer_check(&checks, &l, i == 2);
    }
    struct layer odd = {90, 60, 343, 20, {37, 37, 37}}, eleven = {90, 60, 1331, 20, {33, 40, 1}};
    layer_check(&checks, &eleven, false);
    layer_check(&checks, &odd, false);
}

int main(int argc, char **argv)
{
    const char *why = NULL;
    bool wide = argc < 2 || !strcmp(argv[1], "wide"), narrow = argc < 2 || !wide;
    check_work();
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return check_failed ? 1 : 77;
    }
    brief = getenv("PNET_SHORT") != NULL;
    for (int i = 0; i < SETS; i++) check_nan(pnet_cuda_mvmr_whole, set_slots[i], false);
    check_nan(pnet_cuda_mvmr, set_slots[1], false);
    check_nan(pnet_cuda_mvmr, set_slots[1], true);
    check_magnitudes(false);
    check_magnitudes(true);
    if (wide) check_wide();
    if (narrow && brief) check_some();
    if (narrow && !brief) {
        layer_check_shapes(
            &checks, (struct layer){211, 137, 8, 4, {0}}, (struct layer){153, 61, 27, 6, {0}});
        check_sizes();
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
