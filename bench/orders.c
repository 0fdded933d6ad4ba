/* pnet-bench ablate orders: how near points lie that attend to each other, by the order that they are taken in. */
#include <getopt.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/orders.h"
#include "runtime/base/json.h"

enum { ROWS_MAX = 32, SEED = 5 };

static const char usage[] =
    "Usage: pnet-bench ablate orders --scene CLOUD [--scene CLOUD ...] [options]\n"
    "How near points lie that attend to each other: the root of the mean squared distance of "
    "points "
    "to the middle of their\n"
    "bucket, and of their scope, in metres. For each order of the layer attend, with the time that "
    "making it takes; and for\n"
    "the hashes of Flash3D (Chen et al., 2024), whose threads race for places in buckets: here one "
    "after the other, in a\n"
    "random order. Of these also the share of points beyond the room of their bucket, of points "
    "without a place, and the\n"
    "buckets that a point tries. On a GPU the time of the race is that of threads that race there, "
    "by atomics.\n"
    "\n"
    "  --scene CLOUD       a cloud of any format; several make a batch\n"
    "  --cell V            metres: the grid of the voxels, on which points are ordered (0.025)\n"
    "  --points N          of each cloud, drawn at random (all)\n"
    "  --bucket N          points of a bucket (512)\n"
    "  --scope N           buckets of a scope (8)\n"
    "  --device DEVICE     on which times are measured: cpu, cuda or cuda:N (cpu)\n"
    "  --repeat N          timed runs, of which the median is taken (5)\n"
    "  --steps             what orders take on a GPU step by step instead, in each way to make "
    "them\n"
    "  --json              one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "  pnet-bench ablate orders --scene room.npy\n";

struct options {
    const char *scene[SCENES_MAX];
    int scenes, repeat;
    double cell;
    int64_t points;
    int32_t bucket, scope;
    struct pnet_device where;
    bool json, steps;
};

struct row {
    const char *name;
    bool raced;
    double bucket, scope; /* metres */
    double seconds;       /* 0: not measured */
    struct race race;
};

static void fail_usage(const char *message)
{
    fprintf(
        stderr, "pnet-bench ablate orders: %s\nTry pnet-bench ablate orders --help.\n", message);
    exit(PNET_USAGE);
}

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", 1, NULL, 's'}, {"cell", 1, NULL, 'c'},
        {"points", 1, NULL, 'p'}, {"bucket", 1, NULL, 'b'}, {"scope", 1, NULL, 'g'},
        {"repeat", 1, NULL, 'r'}, {"device", 1, NULL, 'd'}, {"json", 0, NULL, 'j'},
        {"steps", 0, NULL, 't'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct pnet_error e;
    *o = (struct options){.repeat = 5, .cell = 0.025, .bucket = 512, .scope = 8};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!pnet_bench_scene_file(o->scene, &o->scenes, optarg)) fail_usage("too many scenes");
            break;
        case 'c': o->cell = bench_number(optarg, 1e-6, 1e3, fail_usage); break;
        case 'p': o->points = (int64_t)bench_number(optarg, 1, 1e9, fail_usage); break;
        case 'b': o->bucket = (int32_t)bench_number(optarg, 1, 1e6, fail_usage); break;
        case 'g': o->scope = (int32_t)bench_number(optarg, 1, 1e4, fail_usage); break;
        case 'r': o->repeat = (int)bench_number(optarg, 1, ORDERS_REPEAT_MAX, fail_usage); break;
        case 'd':
            if (pnet_device_parse(optarg, &o->where, &e)) fail_usage(e.message);
            break;
        case 'j': o->json = true; break;
        case 't': o->steps = true; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fail_usage("unknown option, or one without its value");
        }
    }
    if (o->scenes == 0) fail_usage("--scene is needed");
    if (o->steps && o->json) fail_usage("--steps prints a table");
    if (o->steps && o->where.kind == PNET_CPU) fail_usage("--steps are those of a GPU");
    if (optind != argc) fail_usage("there is nothing behind the options");
}

/* Keeps `points` of each sample, drawn at random. */
static void draw_points(struct scene *s, int64_t points)
{
    int64_t to = 0, begin = 0;
    for (int32_t n = 0; n < s->level.samples; n++) {
        int64_t end = s->splits[n + 1], left = points;
        for (int64_t i = begin; i < end; i++) {
            struct pnet_rand r = {.seed = SEED, .purpose = PNET_DRAW_TEST, .b = (uint32_t)n};
            if ((double)pnet_rand_unit(&r, (uint64_t)i) * (double)(end - i) >= (double)left)
                continue;
            memmove(s->xyz + 3 * to, s->xyz + 3 * i, 3 * sizeof *s->xyz);
            to++;
            left--;
        }
        begin = end;
        s->splits[n + 1] = to;
    }
}

/* Both spreads over all samples: root of the mean of squares. */
static void measure_spread(
    const struct options *o, const struct scene *s, const int32_t *order, struct row *row)
{
    double sum[2] = {0, 0};
    int64_t rows = s->level.rows;
    int32_t *own = bench_alloc((size_t)rows * sizeof *own);
    for (int32_t n = 0; n < s->level.samples; n++) {
        int64_t begin = s->splits[n], count = s->splits[n + 1] - begin;
        for (int64_t i = 0; i < count; i++)
            own[i] = order ? (int32_t)(order[begin + i] - begin) : (int32_t)i;
        for (int k = 0; k < 2; k++) {
            double spread = pnet_bench_spread(
                count, s->xyz + 3 * begin, own, k ? (int64_t)o->bucket * o->scope : o->bucket);
            sum[k] += spread * spread * (double)count;
        }
    }
    row->bucket = sqrt(sum[0] / (double)rows);
    row->scope = sqrt(sum[1] / (double)rows);
    free(own);
}

/* Makes the order on the CPU and measures its spread; times the device, which must make the same order. */
static enum pnet_status measure_order(const struct options *o, const struct scene *s,
    struct orders_there *there, enum pnet_order kind, struct row *row, struct pnet_error *e)
{
    if (kind == PNET_ORDER_Z) { /* nothing is made */
        measure_spread(o, s, NULL, row);
        return PNET_OK;
    }
    int32_t *order = bench_alloc((size_t)s->level.rows * sizeof *order);
    void *work = bench_alloc(pnet_cpu_bucket_order_work(&s->level));
    pnet_cpu_bucket_order(&s->level, s->level.grid, kind, o->bucket, order, work);
    enum pnet_status st =
        pnet_bench_orders_time(there, kind, o->bucket, o->repeat, order, &row->seconds, e);
    measure_spread(o, s, order, row);
    free(work);
    free(order);
    return st;
}

static enum pnet_status measure_race(const struct options *o, const struct scene *s,
    struct orders_there *there, enum race_hash hash, struct row *row, struct pnet_error *e)
{
    int32_t *order = bench_alloc((size_t)s->level.rows * sizeof *order);
    for (int32_t n = 0; n < s->level.samples; n++) {
        int64_t begin = s->splits[n], count = s->splits[n + 1] - begin;
        struct race r = pnet_bench_race(
            hash, count, s->xyz + 3 * begin, o->bucket, SEED + (uint64_t)n, order + begin);
        for (int64_t i = begin; i < begin + count; i++) order[i] += (int32_t)begin;
        row->race.crowded += r.crowded;
        row->race.recycled += r.recycled;
        row->race.probes += r.probes;
        row->race.empty += r.empty;
        row->race.buckets += r.buckets;
    }
    measure_spread(o, s, order, row);
    free(order);
    if (o->where.kind == PNET_CPU) return PNET_OK; /* nothing races there */
    return pnet_bench_race_time(there, hash, o->bucket, SEED, o->repeat, &row->seconds, e);
}

static const char *const orders[PNET_ORDERS] = {
    "z", "z_trans", "hilbert", "hilbert_trans", "xor_div", "xor_mod", "z_mod"};

static void print_steps(const char *order, const struct orders_steps *w)
{
    double all = 0;
    printf("%-14s %-7s", order, w->way);
    for (int k = 0; k < w->count; k++) all += w->seconds[k];
    printf(" %8.1f  ", 1e6 * all);
    for (int k = 0; k < w->count; k++) printf(" %6.1f", 1e6 * w->seconds[k]);
    putchar('\n');
}

/* Prints what each order takes, in each way. */
static enum pnet_status measure_steps(
    const struct options *o, const struct scene *s, struct pnet_error *e)
{
    struct orders_there there;
    struct orders_steps ways[ORDERS_WAYS];
    enum pnet_status st = pnet_bench_orders_open(&there, o->where, s, o->bucket, e);
    if (st) return st;
    int32_t *order = bench_alloc((size_t)s->level.rows * sizeof *order);
    void *work = bench_alloc(pnet_cpu_bucket_order_work(&s->level));
    printf("%lld points in %d sample%s, voxels of %g m, buckets of %d\n", (long long)s->level.rows,
        s->level.samples, s->level.samples == 1 ? "" : "s", o->cell, o->bucket);
    printf("%-14s %-7s %8s   microseconds of: extents, keys, launches of the sort\n", "order",
        "way", "all us");
    for (int k = PNET_ORDER_Z + 1; k < PNET_ORDERS && !st; k++) {
        pnet_cpu_bucket_order(&s->level, s->level.grid, (enum pnet_order)k, o->bucket, order, work);
        st = pnet_bench_orders_steps(
            &there, (enum pnet_order)k, o->bucket, o->repeat, order, ways, e);
        for (int w = 0; w < ORDERS_WAYS && !st; w++) print_steps(orders[k], &ways[w]);
    }
    free(work);
    free(order);
    pnet_bench_orders_close(&there);
    return st;
}

static enum pnet_status measure(const struct options *o, const struct scene *s,
    struct row rows[ROWS_MAX], int *count, struct pnet_error *e)
{
    static const char *const races[RACE_HASHES] = {
        "xor-div", "xor-mod", "zorder-div", "zorder-mod"};
    struct orders_there there;
    enum pnet_status st = pnet_bench_orders_open(&there, o->where, s, o->bucket, e);
    if (st) return st;
    *count = 0;
    for (int k = 0; k < PNET_ORDERS && !st; k++) {
        rows[*count] = (struct row){.name = orders[k]};
        st = measure_order(o, s, &there, (enum pnet_order)k, &rows[(*count)++], e);
    }
    for (int k = 0; k < RACE_HASHES && !st; k++) {
        rows[*count] = (struct row){.name = races[k], .raced = true};
        st = measure_race(o, s, &there, (enum race_hash)k, &rows[(*count)++], e);
    }
    pnet_bench_orders_close(&there);
    return st;
}

static const char *device_name(const struct options *o)
{
    return o->where.kind == PNET_CPU ? "the CPU" : "the GPU";
}

static void print(const struct options *o, const struct scene *s, const struct row *rows, int count)
{
    double n = (double)s->level.rows;
    printf("%lld points in %d sample%s, voxels of %g m, buckets of %d, scopes of %d buckets, times "
           "on %s\n",
        (long long)s->level.rows, s->level.samples, s->level.samples == 1 ? "" : "s", o->cell,
        o->bucket, o->scope, device_name(o));
    printf("%-22s %10s %10s %10s %10s %10s %8s\n", "order", "bucket m", "scope m", "made in ms",
        "crowded %", "placeless %", "tries");
    for (int k = 0; k < count; k++) {
        const struct row *r = &rows[k];
        printf("%-6s%-16s %10.3f %10.3f", r->raced ? "raced " : "", r->name, r->bucket, r->scope);
        if (r->seconds > 0)
            printf(" %10.3f", 1e3 * r->seconds);
        else
            printf(" %10s", "-");
        if (!r->raced)
            printf(" %10s %10s %8s", "-", "-", "-");
        else
            printf(" %10.1f %10.1f %8.2f", 100 * (double)r->race.crowded / n,
                100 * (double)r->race.recycled / n, (double)r->race.probes / n);
        putchar('\n');
    }
}

static enum pnet_status print_json(const struct options *o, const struct scene *s,
    const struct row *rows, int count, struct pnet_error *e)
{
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_int(&j, "points", s->level.rows);
    pnet_json_int(&j, "bucket", o->bucket);
    pnet_json_int(&j, "scope", o->scope);
    pnet_json_double(&j, "cell_m", o->cell);
    pnet_json_string(&j, "device", o->where.kind == PNET_CPU ? "cpu" : "cuda");
    pnet_json_begin(&j, "orders", '[');
    for (int k = 0; k < count; k++) {
        const struct row *r = &rows[k];
        pnet_json_begin(&j, NULL, '{');
        pnet_json_string(&j, "order", r->name);
        pnet_json_bool(&j, "raced", r->raced);
        pnet_json_double(&j, "bucket_m", r->bucket);
        pnet_json_double(&j, "scope_m", r->scope);
        if (r->seconds > 0) pnet_json_double(&j, "ms", 1e3 * r->seconds);
        if (r->raced) {
            pnet_json_int(&j, "crowded", r->race.crowded);
            pnet_json_int(&j, "placeless", r->race.recycled);
            pnet_json_int(&j, "tries", r->race.probes);
            pnet_json_int(&j, "empty_buckets", r->race.empty);
        }
        pnet_json_end(&j, '}');
    }
    pnet_json_end(&j, ']');
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}

static enum pnet_status open_scene(const struct options *o, struct scene *s, struct pnet_error *e)
{
    enum pnet_status st = pnet_device_check(o->where, e);
    if (!st) st = pnet_device_enter(o->where, e);
    if (!st) st = pnet_bench_scene_read(s, o->scenes, o->scene, 1, o->cell, e);
    if (st) return st;
    if (o->points) draw_points(s, o->points);
    if (pnet_bench_scene_order(s, o->cell)) return PNET_OK;
    pnet_bench_scene_free(s);
    return pnet_error_set(e, PNET_BAD_DATA, "the cloud reaches too far");
}

int pnet_bench_ablate_orders(int argc, char **argv)
{
    struct options o;
    struct scene s = {.xyz = NULL};
    struct row rows[ROWS_MAX];
    struct pnet_error e;
    int count = 0;
    read_options(argc, argv, &o);
    enum pnet_status st = open_scene(&o, &s, &e);
    if (!st) {
        st = o.steps ? measure_steps(&o, &s, &e) : measure(&o, &s, rows, &count, &e);
        if (!st && !o.steps && !o.json) print(&o, &s, rows, count);
        if (!st && !o.steps && o.json) st = print_json(&o, &s, rows, count, &e);
        pnet_bench_scene_free(&s);
    }
    if (st) fprintf(stderr, "pnet-bench ablate orders: %s\n", e.message);
    return (int)st;
}
