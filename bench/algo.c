#include "bench/algo.h"

#include "kernels/conv_compare.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/conv.h"
#include "kernels/geometry_stage.h"
#endif
#include "runtime/plan/op.h"

const char *const pnet_bench_algo_product_names[ALGO_PRODUCTS] = {"forward", "dF", "dW"};

struct algo_room {
    struct pnet_device where;
    enum pnet_device_kind device;
    struct layer *layer;
    struct pnet_triplets forward, backward;
    float *in, *weight, *gout, *out, *gin, *gweight;
};

/* A list made from a set, in memory of the device. */
struct listed {
    struct pnet_conv_list list;
    void *memory;
    double seconds;
};

static void *take(struct pnet_device where, size_t bytes)
{
    void *p = where.kind == PNET_CPU ? bench_alloc(bytes + 1) : pnet_device_alloc(where, bytes + 1);
    if (!p) {
        fprintf(stderr, "out of memory on the device\n");
        exit(PNET_NO_MEMORY);
    }
    return p;
}

static void *take_copy(struct pnet_device where, const void *from, size_t bytes)
{
    void *p = take(where, bytes);
    pnet_device_put(where, p, from, bytes);
    return p;
}

static void give(struct pnet_device where, const void *p)
{
    if (where.kind == PNET_CPU)
        free((void *)(uintptr_t)p);
    else
        pnet_device_free(where, (void *)(uintptr_t)p);
}

/* Returns seconds, after waiting until the device has done all its work. */
static double now(const struct algo_room *r)
{
    struct pnet_error e;
    if (!pnet_device_wait(r->where, &e)) return bench_now();
    fprintf(stderr, "pnet-bench: %s\n", e.message);
    exit((int)e.status);
}

#ifdef PNET_CUDA_BUILT
/* Lays the set out as tiles. On a GPU tiles are part of the geometry: the default kernels gather by them. */
static void take_tiles(const struct algo_room *r, struct pnet_triplets *t)
{
    if (r->device != PNET_CUDA || t->cells > PNET_TILE_CELLS || t->rows <= 0) return;
    size_t tiles = (size_t)((t->rows + PNET_TILE_ROWS - 1) / PNET_TILE_ROWS);
    struct pnet_tile *tile = take(r->where, tiles * sizeof *tile);
    void *work = take(r->where, pnet_cuda_tiles_work(t->rows));
    int64_t words = pnet_cuda_tiles_count(t, tile, work);
    uint32_t *list = take(r->where, (size_t)words * sizeof *list);
    pnet_cuda_tiles_write(t, tile, list);
    give(r->where, work);
    t->tiles = (struct pnet_tiles){words, tile, list};
}
#else
static void take_tiles(const struct algo_room *r, struct pnet_triplets *t)
{
    (void)r, (void)t;
}
#endif

static struct pnet_triplets take_set(const struct algo_room *r, const struct pnet_triplets *t)
{
    struct pnet_triplets d = *t;
    d.start = take_copy(r->where, t->start, (size_t)(t->rows + 1) * sizeof *t->start);
    d.other = take_copy(r->where, t->other, (size_t)t->count * sizeof *t->other);
    d.cell = take_copy(r->where, t->cell, (size_t)t->count * sizeof *t->cell);
    take_tiles(r, &d);
    return d;
}

static void give_set(const struct algo_room *r, struct pnet_triplets *t)
{
    const void *all[] = {t->start, t->other, t->cell, t->tiles.tile, t->tiles.list};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) give(r->where, all[i]);
}

static size_t in_bytes(const struct layer *l)
{
    return (size_t)l->forward->others * (size_t)l->shape.cin * sizeof(float);
}

static size_t out_bytes(const struct layer *l)
{
    return (size_t)l->forward->rows * (size_t)l->shape.cout * sizeof(float);
}

struct algo_room *pnet_bench_algo_room_new(struct pnet_device where, struct layer *l)
{
    struct algo_room *r = bench_alloc(sizeof *r);
    *r = (struct algo_room){.where = where, .device = where.kind, .layer = l};
    r->forward = take_set(r, l->forward);
    r->backward = take_set(r, l->backward);
    r->in = take_copy(where, l->in, in_bytes(l));
    r->weight = take_copy(where, l->weight, l->weights * sizeof(float));
    r->gout = take_copy(where, l->gout, out_bytes(l));
    r->out = take(where, out_bytes(l));
    r->gin = take(where, in_bytes(l));
    r->gweight = take(where, l->weights * sizeof(float));
    return r;
}

void pnet_bench_algo_room_free(struct algo_room *r)
{
    float *all[] = {r->in, r->weight, r->gout, r->out, r->gin, r->gweight};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) give(r->where, all[i]);
    give_set(r, &r->forward);
    give_set(r, &r->backward);
    free(r);
}

/* Makes a list twice and times the second run. */
static struct listed make_list(
    const struct algo_room *r, const struct pnet_triplets *t, enum pnet_conv_algo algo)
{
    if (!pnet_conv_algo_lists(algo)) return (struct listed){.seconds = 0};
    struct listed l = {.memory = take(r->where, PNET_KERNEL(r, conv_list_bytes)(t->count))};
    void *work = take(r->where, PNET_KERNEL(r, conv_list_work)(t->count));
    for (int i = 0; i < 2; i++) {
        double begin = now(r);
        l.list = PNET_KERNEL(r, conv_list)(t, algo, 0, t->count, l.memory, work);
        l.seconds = now(r) - begin;
    }
    give(r->where, work);
    return l;
}

/* Computes one product: forward, dF or dW. */
static void make(const struct algo_room *r, enum pnet_conv_algo algo, int product,
    const struct pnet_conv_list *list, void *work)
{
    const struct layer *l = r->layer;
    if (product == 2) {
        struct pnet_vvor v = {.triplets = &r->forward,
            .shape = l->shape,
            .in = r->in,
            .gout = r->gout,
            .gweight = r->gweight,
            .algo = algo,
            .list = list};
        PNET_KERNEL(r, vvor)(&v, work);
        return;
    }
    bool back = product == 1;
    struct pnet_mvmr m = {.triplets = back ? &r->backward : &r->forward,
        .shape = back ? l->back : l->shape,
        .in = back ? r->gout : r->in,
        .weight = r->weight,
        .out = back ? r->gin : r->out,
        .transposed = back,
        .algo = algo,
        .list = list};
    PNET_KERNEL(r, mvmr)(&m, work);
}

static size_t work_bytes(const struct algo_room *r, enum pnet_conv_algo algo, int product)
{
    const struct layer *l = r->layer;
    if (product == 2) return PNET_KERNEL(r, vvor_algo_work)(algo, &r->forward, l->shape, PNET_FP32);
    return PNET_KERNEL(r, mvmr_algo_work)(
        algo, product ? &r->backward : &r->forward, product ? l->back : l->shape, PNET_FP32);
}

/* Fills the result with NaN, computes it, and compares it with double. */
static double check(const struct algo_room *r, int product)
{
    struct layer *l = r->layer;
    if (product == 0) {
        pnet_device_get(r->where, l->out, r->out, out_bytes(l));
        return layer_check_rows(l->forward, l->shape, l->in, l->weight, l->weights, false, l->out);
    }
    if (product == 1) {
        pnet_device_get(r->where, l->gin, r->gin, in_bytes(l));
        return layer_check_rows(l->backward, l->back, l->gout, l->weight, l->weights, true, l->gin);
    }
    pnet_device_get(r->where, l->gweight, r->gweight, l->weights * sizeof(float));
    return layer_check_weight_gradient(l);
}

static double measure(const struct algo_room *r, enum pnet_conv_algo algo, int product,
    const struct pnet_conv_list *list, int repeat, double *error)
{
    enum { MOST = 1000 };
    const double long_run = 0.5;
    double seconds[MOST];
    struct layer *l = r->layer;
    void *work = take(r->where, work_bytes(r, algo, product));
    if (product == 0) pnet_device_fill(r->where, r->out, 0xFF, out_bytes(l));
    if (product == 1) pnet_device_fill(r->where, r->gin, 0xFF, in_bytes(l));
    if (product == 2) pnet_device_fill(r->where, r->gweight, 0xFF, l->weights * sizeof(float));
    double begin = now(r);
    make(r, algo, product, list, work);
    double once = now(r) - begin;
    *error = check(r, product);
    int runs = once > long_run ? 0 : repeat < MOST ? repeat : MOST;
    for (int i = 0; i < runs; i++) {
        begin = now(r);
        make(r, algo, product, list, work);
        seconds[i] = now(r) - begin;
    }
    give(r->where, work);
    return runs ? bench_median(seconds, runs) : once;
}

struct algo_result pnet_bench_algo_measure(
    struct algo_room *r, enum pnet_conv_algo algo, unsigned products, int repeat)
{
    struct algo_result a = {.algo = algo};
    struct listed forward = make_list(r, &r->forward, algo), backward = {.seconds = 0};
    if (products & 2) backward = make_list(r, &r->backward, algo);
    a.sort = forward.seconds;
    if (forward.memory) a.list_bytes = PNET_KERNEL(r, conv_list_bytes)(r->forward.count);
    for (int i = 0; i < ALGO_PRODUCTS; i++) {
        if (!(products >> i & 1)) continue;
        const struct listed *l = i == 1 ? &backward : &forward;
        a.work_bytes[i] = work_bytes(r, algo, i);
        a.time[i] = measure(r, algo, i, l->memory ? &l->list : NULL, repeat, &a.error[i]);
    }
    give(r->where, forward.memory);
    give(r->where, backward.memory);
    return a;
}

const char *pnet_bench_algo_wrong(
    const struct algo_result *r, const struct pnet_triplets *t, unsigned products)
{
    double terms = (double)t->count / t->cells;
    const double tolerance[ALGO_PRODUCTS] = {1e-6, 1e-6, 1e-6 * (1 + sqrt(terms) / 32)};
    for (int i = 0; i < ALGO_PRODUCTS; i++)
        if (products >> i & 1 && !(r->error[i] <= tolerance[i]))
            return pnet_bench_algo_product_names[i];
    return NULL;
}

void pnet_bench_algo_print(
    const struct algo_result *r, int count, unsigned products, const char *heading)
{
    printf("%s\n  %-20s", heading, "milliseconds");
    for (int p = 0; p < ALGO_PRODUCTS; p++)
        if (products >> p & 1) printf("%10s", pnet_bench_algo_product_names[p]);
    printf("%10s%10s%10s%10s\n", "sorting", "list MiB", "work MiB", "error");
    for (int i = 0; i < count; i++) {
        double error = 0;
        size_t work = 0;
        printf("  %-20s", pnet_conv_algo_names[r[i].algo]);
        for (int p = 0; p < ALGO_PRODUCTS; p++) {
            if (!(products >> p & 1)) continue;
            printf("%10.2f", 1e3 * r[i].time[p]);
            error = fmax(error, r[i].error[p]);
            if (r[i].work_bytes[p] > work) work = r[i].work_bytes[p];
        }
        printf("%10.2f%10.1f%10.1f%10.1e\n", 1e3 * r[i].sort, (double)r[i].list_bytes / 1048576,
            (double)work / 1048576, error);
    }
}

void pnet_bench_algo_print_json(
    FILE *out, const struct algo_result *r, int count, unsigned products)
{
    fputs("\"algorithms\": [", out);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s{\"algo\": \"%s\", \"sort_ms\": %.3f, \"list_bytes\": %zu", i ? ", " : "",
            pnet_conv_algo_names[r[i].algo], 1e3 * r[i].sort, r[i].list_bytes);
        for (int p = 0; p < ALGO_PRODUCTS; p++)
            if (products >> p & 1)
                fprintf(out,
                    ", \"%s\": {\"time_ms\": %.4f, \"error\": %.3e, \"workspace_bytes\": %zu}",
                    pnet_bench_algo_product_names[p], 1e3 * r[i].time[p], r[i].error[p],
                    r[i].work_bytes[p]);
        fputs("}", out);
    }
    fputs("]", out);
}
