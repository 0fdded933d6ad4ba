/* pnet-bench ablate orders: the time of making an order on a device. */
#include <string.h>

#include "bench/bench.h"
#include "bench/orders.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/geometry/geo_bucket.h"
#endif
#include "runtime/plan/op.h"

/* Runs behind each other in a measurement: on a GPU a single one is about as long as waiting for it. */
enum { AT_ONCE = 10 };

static void *take(const struct orders_there *t, size_t bytes)
{
    return pnet_device_alloc(t->where, bytes + 64);
}

static void *copy(const struct orders_there *t, const void *from, size_t bytes)
{
    void *to = take(t, bytes);
    if (to && bytes) pnet_device_put(t->where, to, from, bytes);
    return to;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t work_bytes(const struct orders_there *t, const struct scene *s, int32_t bucket)
{
    size_t bytes = PNET_KERNEL(t, bucket_order_work)(&s->level);
#ifdef PNET_CUDA_BUILT
    for (int32_t n = 0; n < s->level.samples; n++) {
        int64_t rows = s->splits[n + 1] - s->splits[n];
        struct race_table race = pnet_bench_race_table(RACE_XOR_DIV, rows, bucket, 0);
        bytes = larger(bytes, pnet_bench_race_cuda_work(&race, rows));
    }
#else
    (void)t, (void)bucket;
#endif
    return larger(bytes, 64);
}

enum pnet_status pnet_bench_orders_open(struct orders_there *t, struct pnet_device where,
    const struct scene *s, int32_t bucket, struct pnet_error *e)
{
    size_t rows = (size_t)s->level.rows, splits = (size_t)s->level.samples + 1;
    *t = (struct orders_there){.where = where, .device = where.kind, .level = s->level};
    t->level.row_splits = copy(t, s->splits, splits * sizeof *s->splits);
    t->level.xyz = copy(t, s->xyz, rows * 3 * sizeof *s->xyz);
    t->level.key = copy(t, s->key, rows * sizeof *s->key);
    t->order = take(t, rows * sizeof *t->order);
    t->bucket = take(t, rows * sizeof *t->bucket);
    t->bytes = work_bytes(t, s, bucket);
    t->work = take(t, t->bytes);
    if (t->level.row_splits && t->level.xyz && t->level.key && t->order && t->bucket && t->work)
        return pnet_device_wait(where, e);
    pnet_bench_orders_close(t);
    return pnet_error_memory(e);
}

void pnet_bench_orders_close(struct orders_there *t)
{
    const void *there[] = {
        t->level.row_splits, t->level.xyz, t->level.key, t->order, t->bucket, t->work};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        pnet_device_free(t->where, (void *)(uintptr_t)there[i]);
}

/* The median time of work(context), which puts its work on the device. */
static enum pnet_status measure(const struct orders_there *t, void (*work)(void *context),
    void *context, int repeat, double *seconds, struct pnet_error *e)
{
    double times[ORDERS_REPEAT_MAX];
    int turns = t->device == PNET_CPU ? 1 : AT_ONCE;
    for (int run = -1; run < repeat; run++) {
        double begin = bench_now();
        for (int k = 0; k < turns; k++) work(context);
        enum pnet_status st = pnet_device_wait(t->where, e);
        if (st) return st;
        if (run >= 0) times[run] = (bench_now() - begin) / turns;
    }
    *seconds = bench_median(times, repeat);
    return PNET_OK;
}

struct ordering {
    struct orders_there *there;
    enum pnet_order kind;
    int32_t bucket;
};

static void make_order(void *context)
{
    const struct ordering *o = context;
    struct orders_there *t = o->there;
    PNET_KERNEL(t, bucket_order)
    (&t->level, t->level.grid, o->kind, o->bucket, t->order, t->work);
}

static enum pnet_status check_order(
    const struct orders_there *t, const int32_t *want, struct pnet_error *e)
{
    size_t bytes = (size_t)t->level.rows * sizeof *t->order;
    enum pnet_status st = PNET_OK;
    int32_t *got = bench_alloc(bytes);
    if (bytes) pnet_device_get(t->where, got, t->order, bytes);
    if (memcmp(got, want, bytes) != 0)
        st = pnet_error_set(e, PNET_FAILED, "an order on the device is not that of the host");
    free(got);
    return st;
}

enum pnet_status pnet_bench_orders_time(struct orders_there *t, enum pnet_order kind,
    int32_t bucket, int repeat, const int32_t *want, double *seconds, struct pnet_error *e)
{
    struct ordering o = {t, kind, bucket};
    enum pnet_status st = measure(t, make_order, &o, repeat, seconds, e);
    return st ? st : check_order(t, want, e);
}

#ifdef PNET_CUDA_BUILT
struct stepping {
    struct ordering o;
    enum pnet_bucket_way way;
    int steps, all;
};

static void make_steps(void *context)
{
    struct stepping *p = context;
    struct orders_there *t = p->o.there;
    p->all = pnet_cuda_bucket_order_steps(
        &t->level, t->level.grid, p->o.kind, p->o.bucket, t->order, t->work, p->way, p->steps);
}

enum pnet_status pnet_bench_orders_steps(struct orders_there *t, enum pnet_order kind,
    int32_t bucket, int repeat, const int32_t *want, struct orders_steps ways[ORDERS_WAYS],
    struct pnet_error *e)
{
    static const char *const names[ORDERS_WAYS] = {"apart", "joined", "cub"};
    enum pnet_status st = PNET_OK;
    for (int way = 0; way < ORDERS_WAYS && !st; way++) {
        struct stepping p = {{t, kind, bucket}, (enum pnet_bucket_way)way, 0, 1};
        double before = 0, upto = 0;
        ways[way] = (struct orders_steps){.way = names[way]};
        do {
            p.steps++;
            st = measure(t, make_steps, &p, repeat, &upto, e);
            if (p.steps <= ORDERS_STEPS_MAX) ways[way].seconds[p.steps - 1] = upto - before;
            before = upto;
        } while (p.steps < p.all && !st);
        ways[way].count = p.steps < ORDERS_STEPS_MAX ? p.steps : ORDERS_STEPS_MAX;
        if (!st) st = check_order(t, want, e);
    }
    return st;
}

struct racing {
    struct orders_there *there;
    const int64_t *splits;          /* on the host */
    const struct race_table *table; /* [samples] */
};

static void race(void *context)
{
    const struct racing *r = context;
    struct orders_there *t = r->there;
    for (int32_t n = 0; n < t->level.samples; n++) {
        int64_t begin = r->splits[n], rows = r->splits[n + 1] - begin;
        pnet_bench_race_cuda(&r->table[n], rows, t->level.xyz + 3 * begin, t->order + begin,
            t->bucket + begin, t->work);
    }
}

/* Is `order` a permutation of [0, n), by buckets of at most t->room points, but for the last one? */
static bool is_order(
    const struct race_table *t, int64_t n, const int32_t *order, const int32_t *bucket)
{
    bool *seen = bench_alloc((size_t)n * sizeof *seen), right = true;
    int64_t in_bucket = 0;
    memset(seen, 0, (size_t)n * sizeof *seen);
    for (int64_t k = 0; k < n && right; k++) {
        int32_t i = order[k];
        right = i >= 0 && i < n && !seen[i];
        if (!right) break;
        seen[i] = true;
        int32_t b = bucket[i], before = k ? bucket[order[k - 1]] : 0;
        in_bucket = k && b == before ? in_bucket + 1 : 1;
        right = b >= before && b <= t->buckets && (b == t->buckets || in_bucket <= t->room);
    }
    free(seen);
    return right;
}

static bool are_orders(const struct racing *r)
{
    const struct orders_there *t = r->there;
    size_t bytes = (size_t)t->level.rows * sizeof(int32_t);
    int32_t *order = bench_alloc(bytes), *bucket = bench_alloc(bytes);
    bool right = true;
    if (bytes) pnet_device_get(t->where, order, t->order, bytes);
    if (bytes) pnet_device_get(t->where, bucket, t->bucket, bytes);
    for (int32_t n = 0; n < t->level.samples; n++) {
        int64_t begin = r->splits[n];
        right = right &&
                is_order(&r->table[n], r->splits[n + 1] - begin, order + begin, bucket + begin);
    }
    free(order);
    free(bucket);
    return right;
}

enum pnet_status pnet_bench_race_time(struct orders_there *t, enum race_hash hash, int32_t room,
    uint64_t seed, int repeat, double *seconds, struct pnet_error *e)
{
    size_t samples = (size_t)t->level.samples;
    int64_t splits[SCENES_MAX + 1];
    struct race_table *table = bench_alloc(samples * sizeof *table);
    pnet_device_get(t->where, splits, t->level.row_splits, (samples + 1) * sizeof *splits);
    for (size_t n = 0; n < samples; n++)
        table[n] = pnet_bench_race_table(hash, splits[n + 1] - splits[n], room, seed + n);
    struct racing r = {t, splits, table};
    enum pnet_status st = measure(t, race, &r, repeat, seconds, e);
    if (!st && !are_orders(&r))
        st = pnet_error_set(e, PNET_FAILED, "the race on the device gives no order");
    free(table);
    return st;
}
#else
enum pnet_status pnet_bench_orders_steps(struct orders_there *t, enum pnet_order kind,
    int32_t bucket, int repeat, const int32_t *want, struct orders_steps ways[ORDERS_WAYS],
    struct pnet_error *e)
{
    (void)t, (void)kind, (void)bucket, (void)repeat, (void)want, (void)ways;
    return pnet_error_set(e, PNET_NO_DEVICE, "steps are those of a GPU");
}

enum pnet_status pnet_bench_race_time(struct orders_there *t, enum race_hash hash, int32_t room,
    uint64_t seed, int repeat, double *seconds, struct pnet_error *e)
{
    (void)t, (void)hash, (void)room, (void)seed, (void)repeat, (void)seconds;
    return pnet_error_set(e, PNET_NO_DEVICE, "threads race on a GPU alone");
}
#endif
