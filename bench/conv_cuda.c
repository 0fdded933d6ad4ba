/* pnet-bench conv --device cuda: the same layer, checked the same way, timed by marks in the GPU's stream. */
#include "bench/conv_cuda.h"

#ifndef PNET_CUDA_BUILT

static const char without[] = "this program was built without CUDA";

const char *pnet_bench_conv_cuda_measure(
    struct layer *l, const struct measure_options *o, struct measured *m)
{
    (void)l, (void)o, (void)m;
    return without;
}

const char *pnet_bench_conv_cuda_ceilings(enum pnet_precision precision, struct cuda_ceilings *c)
{
    (void)precision, (void)c;
    return without;
}

#else
#include "kernels/conv.h"
#include "kernels/cuda/conv/conv_clock.h"
#include "kernels/cuda/base/cuda.h"
#include "kernels/geometry_stage.h"
#include "tests/cuda/storage_case.h"

/* Inputs and results of the products, on the GPU. */
struct device_layer {
    struct pnet_triplets forward, backward;
    struct pnet_conv_shape shape, back;
    float *in, *weight, *gout, *out, *gin, *gweight;
    void *work;
    enum pnet_precision precision;
    enum pnet_storage storage; /* of features */
    double tiles;              /* seconds that both sets' tiles took */
};

static void *device_alloc(size_t bytes)
{
    void *p = pnet_cuda_alloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "out of device memory\n");
        exit(5);
    }
    return p;
}

static void *device_copy(const void *from, size_t bytes)
{
    void *p = device_alloc(bytes);
    pnet_cuda_copy_in(p, from, bytes);
    return p;
}

/* Lays the set out as tiles twice and times the second run, without the allocation between its parts. */
static double make_tiles(struct pnet_triplets *t)
{
    if (t->cells > PNET_TILE_CELLS || t->rows <= 0) return 0;
    size_t tiles = (size_t)((t->rows + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS);
    struct pnet_tile *tile = device_alloc(tiles * sizeof *tile);
    void *work = device_alloc(pnet_cuda_tiles_work(t->rows));
    int64_t words = pnet_cuda_tiles_count(t, tile, work);
    uint32_t *list = device_alloc((size_t)words * sizeof *list);
    pnet_cuda_tiles_write(t, tile, list);
    void *begin = pnet_cuda_mark();
    pnet_cuda_tiles_count(t, tile, work);
    pnet_cuda_tiles_write(t, tile, list);
    double ms = pnet_cuda_between(begin, pnet_cuda_mark());
    pnet_cuda_free(work);
    t->tiles = (struct pnet_tiles){words, tile, list};
    return 1e-3 * ms;
}

static struct pnet_triplets device_set(const struct pnet_triplets *t, double *tiles)
{
    struct pnet_triplets d = *t;
    d.start = device_copy(t->start, (size_t)(t->rows + 1) * sizeof *t->start);
    d.other = device_copy(t->other, (size_t)t->count * sizeof *t->other);
    d.cell = device_copy(t->cell, (size_t)t->count * sizeof *t->cell);
    if (t->row) {
        d.row = device_copy(t->row, (size_t)t->rows * sizeof *t->row);
        d.place = device_copy(t->place, (size_t)t->rows * sizeof *t->place);
    }
    *tiles += make_tiles(&d);
    return d;
}

/* Elements of a matrix that a thread converts at a time. */
enum { PIECE = 1 << 16 };

/* Returns features in the GPU's storage; the host's copy is rounded in the same way. */
static void *feature_copy(float *x, size_t count, enum pnet_storage storage)
{
    size_t size = (size_t)pnet_storage_bytes(storage);
    if (storage == PNET_STORE_F32) return device_copy(x, count * size);
    char *narrow = bench_alloc(count * size);
#pragma omp parallel for
    for (size_t i = 0; i < count; i += PIECE) {
        int64_t n = (int64_t)(count - i < PIECE ? count - i : PIECE);
        to_storage(storage, x + i, n, narrow + i * size);
        from_storage(storage, narrow + i * size, n, x + i);
    }
    void *p = device_copy(narrow, count * size);
    free(narrow);
    return p;
}

static void feature_fetch(float *x, const void *from, size_t count, enum pnet_storage storage)
{
    size_t size = (size_t)pnet_storage_bytes(storage);
    if (storage == PNET_STORE_F32) {
        pnet_cuda_copy_out(x, from, count * size);
        return;
    }
    char *narrow = bench_alloc(count * size);
    pnet_cuda_copy_out(narrow, from, count * size);
#pragma omp parallel for
    for (size_t i = 0; i < count; i += PIECE)
        from_storage(
            storage, narrow + i * size, (int64_t)(count - i < PIECE ? count - i : PIECE), x + i);
    free(narrow);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t in_count(const struct layer *l)
{
    return (size_t)l->forward->others * (size_t)l->shape.cin;
}

static size_t out_count(const struct layer *l)
{
    return (size_t)l->forward->rows * (size_t)l->shape.cout;
}

static struct device_layer device_layer(struct layer *l, const struct measure_options *o)
{
    double tiles = 0;
    enum pnet_precision precision = o->precision;
    enum pnet_storage storage = o->narrow ? pnet_storage_of(precision) : PNET_STORE_F32;
    size_t in_bytes = in_count(l) * (size_t)pnet_storage_bytes(storage),
           out_bytes = out_count(l) * (size_t)pnet_storage_bytes(storage);
    struct pnet_triplets sets[2] = {
        device_set(l->forward, &tiles), device_set(l->backward, &tiles)};
    struct device_layer d = {.forward = sets[0],
        .backward = sets[1],
        .tiles = tiles,
        .shape = l->shape,
        .back = l->back,
        .in = feature_copy(l->in, in_count(l), storage),
        .weight = device_copy(l->weight, l->weights * sizeof(float)),
        .gout = feature_copy(l->gout, out_count(l), storage),
        .out = device_alloc(out_bytes),
        .gin = device_alloc(in_bytes),
        .gweight = device_alloc(l->weights * sizeof(float)),
        .precision = precision,
        .storage = storage};
    l->work_bytes = larger(larger(pnet_cuda_mvmr_work(&d.forward, d.shape, precision),
                               pnet_cuda_mvmr_work(&d.backward, d.back, precision)),
        pnet_cuda_vvor_work(&d.forward, d.shape, precision));
    d.work = device_alloc(l->work_bytes);
    pnet_cuda_fill_bytes(d.out, 0xFF, out_bytes);
    pnet_cuda_fill_bytes(d.gin, 0xFF, in_bytes);
    pnet_cuda_fill_bytes(d.gweight, 0xFF, l->weights * sizeof(float));
    return d;
}

static void device_set_free(struct pnet_triplets *t)
{
    pnet_cuda_free((void *)(uintptr_t)t->start);
    pnet_cuda_free((void *)(uintptr_t)t->other);
    pnet_cuda_free((void *)(uintptr_t)t->cell);
    pnet_cuda_free((void *)(uintptr_t)t->row);
    pnet_cuda_free((void *)(uintptr_t)t->place);
    pnet_cuda_free((void *)(uintptr_t)t->tiles.tile);
    pnet_cuda_free((void *)(uintptr_t)t->tiles.list);
}

static void device_layer_free(struct device_layer *d)
{
    device_set_free(&d->forward);
    device_set_free(&d->backward);
    void *all[] = {d->in, d->weight, d->gout, d->out, d->gin, d->gweight, d->work};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pnet_cuda_free(all[i]);
}

static void forward(const struct device_layer *d)
{
    struct pnet_mvmr m = {.triplets = &d->forward,
        .shape = d->shape,
        .in = d->in,
        .weight = d->weight,
        .out = d->out,
        .precision = d->precision,
        .storage = d->storage};
    pnet_cuda_mvmr(&m, d->work);
}

static void feature_gradient(const struct device_layer *d)
{
    struct pnet_mvmr m = {.triplets = &d->backward,
        .shape = d->back,
        .in = d->gout,
        .weight = d->weight,
        .out = d->gin,
        .transposed = true,
        .precision = d->precision,
        .storage = d->storage};
    pnet_cuda_mvmr(&m, d->work);
}

static void weight_gradient(const struct device_layer *d)
{
    struct pnet_vvor v = {.triplets = &d->forward,
        .shape = d->shape,
        .in = d->in,
        .gout = d->gout,
        .gweight = d->gweight,
        .precision = d->precision,
        .storage = d->storage};
    pnet_cuda_vvor(&v, d->work);
}

/* Times a recording, as a runner replays it; short products several at a time, after one that is not counted, so that the
   GPU never waits for the host. Returns 0 if it could not be recorded. */
static double time_median(
    const struct device_layer *d, void (*product)(const struct device_layer *), int repeat)
{
    enum { MOST = 64 };
    const double least = 1e-3;
    pnet_cuda_record_begin();
    product(d);
    void *record = pnet_cuda_record_end();
    if (!record) return 0;
    double *seconds = bench_alloc((size_t)repeat * sizeof *seconds);
    int times = 1;
    for (int i = -2; i < repeat; i++) {
        pnet_cuda_replay(record);
        void *begin = pnet_cuda_mark();
        for (int n = 0; n < times; n++) pnet_cuda_replay(record);
        double each = 1e-3 * pnet_cuda_between(begin, pnet_cuda_mark()) / times;
        if (i >= 0)
            seconds[i] = each;
        else
            times = each * MOST < least ? MOST : each < least ? (int)ceil(least / each) : 1;
    }
    pnet_cuda_record_free(record);
    double median = bench_median(seconds, repeat);
    free(seconds);
    return median;
}

/* Measures a copy of 1 GiB, and a dense product that does not fit any cache. */
const char *pnet_bench_conv_cuda_ceilings(
    enum pnet_precision precision, struct cuda_ceilings *ceilings)
{
    enum { REPEAT = 5, ROWS = 1 << 18, CHANNELS = 512 };
    const size_t bytes = (size_t)1 << 30;
    struct cuda_ceilings c = {0, 0};
    const char *why = NULL;
    if (!pnet_cuda_devices(&why)) return why;
    size_t x_size = (size_t)ROWS * CHANNELS, w_size = (size_t)CHANNELS * CHANNELS;
    float *x = bench_floats(x_size, 7), *w = bench_floats(w_size, 8);
    struct pnet_gemm g = {.n = pnet_count(ROWS),
        .cin = CHANNELS,
        .cout = CHANNELS,
        .x = device_copy(x, x_size * sizeof *x),
        .w = device_copy(w, w_size * sizeof *w),
        .y = device_alloc(x_size * sizeof *x),
        .precision = precision};
    void *work = device_alloc(pnet_cuda_gemm_work(g.n, g.cin, g.cout, precision));
    char *from = device_alloc(bytes), *to = device_alloc(bytes);
    pnet_cuda_fill_bytes(from, 0x5A, bytes);
    for (int i = 0; i < REPEAT; i++) {
        void *begin = pnet_cuda_mark();
        pnet_cuda_copy(to, from, bytes);
        double copy = 1e-3 * pnet_cuda_between(begin, pnet_cuda_mark());
        begin = pnet_cuda_mark();
        pnet_cuda_gemm(&g, work);
        double gemm = 1e-3 * pnet_cuda_between(begin, pnet_cuda_mark());
        c.copy = fmax(c.copy, 2 * (double)bytes / copy);
        c.gemm = fmax(c.gemm, 2.0 * (double)x_size * CHANNELS / gemm);
    }
    void *all[] = {(void *)(uintptr_t)g.x, (void *)(uintptr_t)g.w, g.y, work, from, to};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pnet_cuda_free(all[i]);
    free(x);
    free(w);
    *ceilings = c;
    return pnet_cuda_sync();
}

const char *pnet_bench_conv_cuda_measure(
    struct layer *l, const struct measure_options *o, struct measured *m)
{
    const char *why = NULL;
    if (!pnet_cuda_devices(&why)) return why;
    struct device_layer d = device_layer(l, o);
    m->tiles = d.tiles;
    forward(&d);
    feature_gradient(&d);
    weight_gradient(&d);
    feature_fetch(l->out, d.out, out_count(l), d.storage);
    feature_fetch(l->gin, d.gin, in_count(l), d.storage);
    pnet_cuda_copy_out(l->gweight, d.gweight, l->weights * sizeof(float));
    m->time[0] = time_median(&d, forward, o->repeat);
    m->time[1] = time_median(&d, feature_gradient, o->repeat);
    m->time[2] = time_median(&d, weight_gradient, o->repeat);
    device_layer_free(&d);
    return pnet_cuda_sync();
}
#endif
