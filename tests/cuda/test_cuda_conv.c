/* MVMR and VVOR on the GPU against their definitions in double. */
#include "tests/kernels/tile_case.h"

#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/conv.h"
#include "kernels/cuda/cuda.h"
#include "tests/cuda/feature_case.h"
#include "tests/kernels/layer_case.h"

/* What one run of MVMR leaves in the rows of the set. */
static float *run_mvmr(struct pnet_mvmr m, const float *old, int64_t live)
{
    size_t size = (size_t)m.triplets->rows * (size_t)m.shape.cout,
           live_size = (size_t)live * (size_t)m.shape.cout;
    m.out = device_alloc(storage_bytes(m.storage, (int64_t)size));
    if (m.add) {
        float *was = device_features(m.storage, old, live_size, 0);
        pnet_cuda_copy(m.out, was, storage_bytes(m.storage, (int64_t)live_size));
        pnet_cuda_sync();
        pnet_cuda_free(was);
    }
    struct device_work work = device_work(pnet_cuda_mvmr_work(m.triplets, m.shape, m.precision));
    pnet_cuda_mvmr(&m, work.memory);
    float *out = host_features(m.storage, m.out, live_size);
    device_work_end(&work, __func__);
    pnet_cuda_free(m.out);
    return out;
}

/* How a set is handed over: without tiles, with them, with some that list nothing. */
static const int64_t set_slots[] = {0, PNET_TILE_SLOTS, 40};
enum { SETS = sizeof set_slots / sizeof *set_slots };

/* PNET_SHORT: a few sizes, nothing twice, for tools under which every launch takes long. */
static bool brief;

/* One layer in every precision, as float32 or stored in 16 bits where that goes with it. `m` is without its set and its
   arrays of features; `listed`: all tiles of the set list what they have. */
static void check_mvmr_runs(const struct layer *l, struct pnet_mvmr m,
    const struct pnet_triplets *set, bool listed, bool stored, const float *in, size_t in_size,
    const float *old, const double *want, size_t out_size, int64_t live)
{
    struct pnet_triplets tiles = device_set_tiles(set);
    for (int p = 0; p < PRECISIONS; p++) {
        char text[160];
        layer_describe(l, precision_name[p], text);
        m.precision = (enum pnet_precision)p;
        m.storage = stored ? pnet_storage_of(m.precision) : PNET_STORE_F32;
        bool tiled = listed && pnet_cuda_mvmr_tiled(l->cells, l->shape, m.precision, m.algo);
        m.triplets = tiled ? &tiles : set;
        if (stored && m.storage == PNET_STORE_F32) continue;
        m.in = device_features(m.storage, in, in_size, 0);
        float *out = run_mvmr(m, old, live), *again = brief ? NULL : run_mvmr(m, old, live);
        double error = conv_error(out, want, out_size);
        CHECKF(error <= tolerance[p],
            "%s: mvmr error %g (transposed %d, add %d, bias %d, act %d, stored %d, tiles %d)", text,
            error, m.transposed, m.add, m.bias != NULL, (int)m.act, stored,
            m.triplets->tiles.tile != NULL);
        CHECKF(!again || !out_size || memcmp(out, again, out_size * sizeof *out) == 0,
            "%s: a second run differs (stored %d, tiles %d)", text, stored,
            m.triplets->tiles.tile != NULL);
        free(out), free(again);
        device_free(m.in);
    }
}

static void check_mvmr(const struct layer *l, const struct pnet_triplets *t, bool transposed,
    bool add, bool with_bias, enum pnet_activation act)
{
    struct pnet_conv_shape s = l->shape;
    size_t in_size = (size_t)t->others * (size_t)s.cin, out_size = (size_t)t->rows * (size_t)s.cout;
    float *in = conv_random_floats(in_size, 1), *weight = conv_random_floats(layer_weights(l), 2);
    float *bias = conv_random_floats((size_t)s.cout, 3), *old = conv_random_floats(out_size, 4);
    double *in64 = conv_widen(in, in_size), *weight64 = conv_widen(weight, layer_weights(l));
    double *bias64 = conv_widen(bias, (size_t)s.cout), *want = conv_alloc(out_size * sizeof *want);
    pnet_ref_mvmr(t, s, in64, weight64, with_bias ? bias64 : NULL, transposed, want);
    layer_activate(want, out_size, act, 0.125);
    if (add)
        for (size_t i = 0; i < out_size; i++) want[i] += (double)old[i];
    struct pnet_mvmr m = {.shape = s,
        .weight = device_floats(weight, layer_weights(l)),
        .bias = with_bias ? device_floats(bias, (size_t)s.cout) : NULL,
        .transposed = transposed,
        .add = add,
        .act = act,
        .slope = 0.125f};
    for (int i = 0; i < SETS; i++) {
        struct pnet_triplets set = device_set(t, SPARE_ROWS, 0, set_slots[i]);
        for (int stored = 0; stored < 2; stored++)
            check_mvmr_runs(l, m, &set, set_slots[i] == PNET_TILE_SLOTS, stored, in, in_size, old,
                want, out_size, t->rows);
        device_set_free(&set);
    }
    device_free(m.weight), device_free(m.bias);
    free(in), free(weight), free(bias), free(old), free(in64), free(weight64), free(bias64),
        free(want);
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

static void check_vvor_runs(
    const struct layer *l, struct pnet_vvor v, const float *old, const double *want)
{
    for (int p = 0; p < PRECISIONS; p++) {
        char text[160];
        layer_describe(l, precision_name[p], text);
        v.precision = (enum pnet_precision)p;
        if (v.storage != PNET_STORE_F32 && v.storage != pnet_storage_of(v.precision)) continue;
        float *gweight = run_vvor(v, old, layer_weights(l)),
              *again = brief ? NULL : run_vvor(v, old, layer_weights(l));
        double error = conv_error(gweight, want, layer_weights(l));
        CHECKF(error <= tolerance[p], "%s: vvor error %g (swapped %d, add %d, storage %s)", text,
            error, v.swapped, v.add, storage_names[v.storage]);
        CHECKF(!again || memcmp(gweight, again, layer_weights(l) * sizeof *gweight) == 0,
            "%s: a second run differs (storage %s)", text, storage_names[v.storage]);
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
    struct pnet_triplets set = device_set(t, SPARE_ROWS, 0, 0);
    for (int storage = PNET_STORE_F32; storage <= PNET_STORE_FP16; storage++) {
        struct pnet_vvor v = {.triplets = &set,
            .shape = s,
            .in = device_features((enum pnet_storage)storage, in, in_size, 0),
            .gout = device_features((enum pnet_storage)storage, gout, gout_size, 0),
            .swapped = swapped,
            .add = add,
            .storage = (enum pnet_storage)storage};
        check_vvor_runs(l, v, old, want);
        device_free(v.in), device_free(v.gout);
    }
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
    layer_check(&checks, &wide, false);
    layer_check(&checks, &cells, false);
    layer_check(&checks, &chunks, false);
    layer_check(&checks, &long_runs, false);
    layer_check(&checks, &square, false);
    layer_check(&checks, &depthwise, false);
    layer_check(&checks, &many, false);
    layer_check(&checks, &odd, false);
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

/* A NaN reaches the rows that read it and no other ones. */
static void check_nan(int64_t slots)
{
    struct conv_set set = conv_set_random(300, 200, 27, 5, 3);
    struct pnet_triplets t = device_set(&set.t, SPARE_ROWS, 0, slots);
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
        float *out = run_mvmr(m, NULL, 300);
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
    struct layer odd = {90, 60, 343, 20, {37, 37, 37}};
    layer_check(&checks, &odd, false);
}

int main(void)
{
    const char *why = NULL;
    check_work();
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: %s\n", why);
        return check_failed ? 1 : 77;
    }
    brief = getenv("PNET_SHORT") != NULL;
    for (int i = 0; i < SETS; i++) check_nan(set_slots[i]);
    if (brief) {
        check_some();
    } else {
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
