/* One layer's MVMR on the GPU, in every precision and storage, against its definition in double. */
#ifndef PNET_TESTS_CUDA_MVMR_CASE_H
#define PNET_TESTS_CUDA_MVMR_CASE_H

#include "kernels/conv.h"
#include "kernels/cuda/base/cuda.h"
#include "tests/cuda/feature_case.h"
#include "tests/kernels/layer_case.h"

typedef void mvmr_kernel(const struct pnet_mvmr *m, void *work);

/* How a layer is checked. */
struct mvmr_case {
    mvmr_kernel *kernel;
    int first, sets; /* of set_slots */
};

/* What one run of MVMR leaves in the rows of the set. */
static inline float *run_mvmr(
    mvmr_kernel *kernel, struct pnet_mvmr m, const float *old, int64_t live)
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
    kernel(&m, work.memory);
    float *out = host_features(m.storage, m.out, live_size);
    device_work_end(&work, __func__);
    pnet_cuda_free(m.out);
    return out;
}

/* How a set is handed over: without tiles, with them, with some that list nothing. */
static const int64_t set_slots[] = {0, PNET_TILE_SLOTS, 40};
enum { SETS = sizeof set_slots / sizeof *set_slots };

/* As a set of a capacity class of very many triplets, of which it has few: kernels for large sets take it. */
static inline struct pnet_triplets as_large(struct pnet_triplets set)
{
    set.count = (int64_t)1 << 40;
    return set;
}

/* A second run, with rows in an order of their own, has the same bits row by row. */
static inline void check_mvmr_rows(const struct mvmr_case *c, struct pnet_mvmr m, const char *text,
    bool stored, const float *old, const float *out, int64_t live)
{
    size_t width = (size_t)m.shape.cout * sizeof *out;
    int32_t *row = conv_mixed_rows(live);
    float *was = m.add ? conv_mix(old, row, live, width) : NULL,
          *want = conv_mix(out, row, live, width);
    struct pnet_triplets set = *m.triplets;
    set.row = device_rows(row, live, &set);
    m.triplets = &set;
    float *got = run_mvmr(c->kernel, m, was, live);
    CHECKF(!live || memcmp(got, want, (size_t)live * width) == 0,
        "%s: rows in another order differ (stored %d, tiles %d)", text, stored,
        set.tiles.tile != NULL);
    device_free(set.row);
    free(row), free(was), free(want), free(got);
}

/* Runs it, and again; `text` names the layer. */
static inline void check_mvmr_run(const struct mvmr_case *c, struct pnet_mvmr m, const char *text,
    bool stored, const float *old, const double *want, size_t out_size, int64_t live)
{
    float *out = run_mvmr(c->kernel, m, old, live);
    double error = conv_error(out, want, out_size);
    CHECKF(error <= tolerance[m.precision],
        "%s: mvmr error %g (transposed %d, add %d, bias %d, act %d, stored %d, tiles %d)", text,
        error, m.transposed, m.add, m.bias != NULL, (int)m.act, stored,
        m.triplets->tiles.tile != NULL);
    check_mvmr_rows(c, m, text, stored, old, out, live);
    free(out);
}

/* One layer in every precision, as float32 or stored in 16 bits where that goes with it. `m` is without its set and its
   arrays of features; `listed`: all tiles of the set list what they have. */
static inline void check_mvmr_runs(const struct mvmr_case *c, const struct layer *l,
    struct pnet_mvmr m, const struct pnet_triplets *set, bool listed, bool stored, const float *in,
    size_t in_size, const float *old, const double *want, size_t out_size, int64_t live)
{
    struct pnet_triplets tiles = device_set_tiles(set);
    for (int p = 0; p < PRECISIONS; p++) {
        char text[160];
        layer_describe(l, precision_name[p], text);
        m.precision = (enum pnet_precision)p;
        m.storage = stored ? pnet_storage_of(m.precision) : PNET_STORE_F32;
        bool tiled = listed && pnet_cuda_conv_reads_tiles(&(struct pnet_conv_sum){.shape = l->shape,
                                   .cells = l->cells,
                                   .precision = m.precision,
                                   .storage = m.storage,
                                   .algo = m.algo});
        m.triplets = tiled ? &tiles : set;
        if (stored && m.storage == PNET_STORE_F32) continue;
        m.in = device_features(m.storage, in, in_size, 0);
        struct pnet_triplets large = as_large(*m.triplets);
        if (m.precision == PNET_TF32) {
            m.triplets = &large;
            check_mvmr_run(c, m, text, stored, old, want, out_size, live);
            m.triplets = tiled ? &tiles : set;
        }
        check_mvmr_run(c, m, text, stored, old, want, out_size, live);
        device_free(m.in);
    }
}

static inline void check_mvmr_case(const struct mvmr_case *c, const struct layer *l,
    const struct pnet_triplets *t, bool transposed, bool add, bool with_bias,
    enum pnet_activation act)
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
    for (int i = c->first; i < c->first + c->sets; i++) {
        if (set_slots[i] > 0 && t->cells > PNET_TILE_CELLS) continue; /* never laid out as tiles */
        struct pnet_triplets set = device_set(t, SPARE_ROWS, 0, set_slots[i]);
        for (int stored = 0; stored < 2; stored++)
            check_mvmr_runs(c, l, m, &set, set_slots[i] == PNET_TILE_SLOTS, stored, in, in_size,
                old, want, out_size, t->rows);
        device_set_free(&set);
    }
    device_free(m.weight), device_free(m.bias);
    free(in), free(weight), free(bias), free(old), free(in64), free(weight64), free(bias64),
        free(want);
}

#endif
