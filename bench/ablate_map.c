/* pnet-bench ablate map: measures ways to find the neighbours of voxels: the search of the geometry stage, binary search of
   sorted keys, a hash table. All must give the same triplets. */
#include <getopt.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/map.h"
#include "bench/scene.h"
#include "kernels/geometry_stage.h"
#include "runtime/base/file.h"
#include "runtime/base/guard.h"
#include "runtime/plan/op.h"

enum { RUNS_MAX = 101, SEED = 40503 };
enum algo { SEARCH, BINARY, BINARY_HALF, HASH, HASH_HALF, ALGOS };
enum stage { BUILD, FIND, TRIPLETS, STAGES };

static const char *const algo_names[ALGOS] = {
    "search", "binary", "binary-half", "hash", "hash-half"};

static const char usage[] =
    "Usage: pnet-bench ablate map --scene CLOUD [--scene CLOUD ...] [options]\n"
    "Times ways to find the neighbours of voxels, in turns, and checks that all give the triplets "
    "of the first one. Prints a\n"
    "table, and writes PREFIX.json.\n"
    "\n"
    "  search       that of the geometry stage\n"
    "  binary       binary search of the sorted keys, for each cell of each row\n"
    "  binary-half  the same for half of the cells, with mirrored writes\n"
    "  hash         a hash table of the rows, a lookup for each cell of each row\n"
    "  hash-half    the same for half of the cells, with mirrored writes\n"
    "\n"
    "`build` is the table, or the sort along the curve that search and binary need; `map` is the "
    "slots of all cells of all rows,\n"
    "`triplets` the sorted triplets from them.\n"
    "\n"
    "  --scene CLOUD       a cloud of any format, or sphere:N; several make a batch\n"
    "  --cell V            metres: the grid, of which each voxel keeps one point (0.025)\n"
    "  --kernel K          cells an axis (3)\n"
    "  --factor S          centres on a grid S times coarser (1); then search and hash alone\n"
    "  --device DEVICE     cpu, cuda or cuda:N (cpu)\n"
    "  --repeat N          timed runs, of which the median is taken (7)\n"
    "  --output PREFIX     of the file (ablate-map)\n"
    "\n"
    "  pnet-bench ablate map --scene room.npy --kernel 3\n";

struct options {
    const char *scene[SCENES_MAX], *output;
    int scenes, repeat;
    int32_t kernel, factor;
    double cell;
    struct pnet_device where;
    enum pnet_device_kind device;
};

/* Seconds, and bytes of memory besides the levels: the most that is needed at once, with the triplets. */
struct result {
    double time[RUNS_MAX][STAGES], median[STAGES];
    size_t bytes;
    bool measured, right;
};

/* The levels on the host and on the device, and the memory that all algorithms share. */
struct bench {
    const struct options *o;
    const struct map_device *device;
    struct pnet_level fine, coarse; /* on the host; coarse: fine where the factor is 1 */
    int32_t *parent;                /* on the host, of fine in coarse; NULL where the factor is 1 */
    struct map_task task;           /* on the device, where all below lies too */
    int32_t *parent_there;
    float *shuffled; /* the fine points in another order */
    int32_t *order;
    void *room;
    int64_t *start, count;
    int32_t *other;
    uint16_t *cell;
    void *work;
    size_t work_bytes[2]; /* of search, of the others */
    int64_t *want_start;  /* on the host */
    int32_t *want_other;
    uint16_t *want_cell;
};

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench ablate map: %s\nTry pnet-bench ablate map --help.\n", message);
    exit(PNET_USAGE);
}

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", 1, NULL, 's'}, {"cell", 1, NULL, 'v'},
        {"kernel", 1, NULL, 'k'}, {"factor", 1, NULL, 'f'}, {"device", 1, NULL, 'd'},
        {"repeat", 1, NULL, 'n'}, {"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    struct pnet_error e;
    int option;
    *o = (struct options){
        .repeat = 7, .kernel = 3, .factor = 1, .cell = 0.025, .output = "ablate-map"};
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!pnet_bench_scene_file(o->scene, &o->scenes, optarg)) fail_usage("too many scenes");
            break;
        case 'v': o->cell = bench_number(optarg, 1e-6, 1e6, fail_usage); break;
        case 'k': o->kernel = (int32_t)bench_number(optarg, 1, 15, fail_usage); break;
        case 'f': o->factor = (int32_t)bench_number(optarg, 1, 64, fail_usage); break;
        case 'd':
            if (pnet_device_parse(optarg, &o->where, &e)) fail_usage(e.message);
            o->device = o->where.kind;
            break;
        case 'n': o->repeat = (int)bench_number(optarg, 1, RUNS_MAX, fail_usage); break;
        case 'o': o->output = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fail_usage("unknown option, or one without its value");
        }
    }
    if (optind != argc) fail_usage("map takes options alone");
    if (o->scenes == 0) fail_usage("--scene is needed");
    if (o->factor == 1 && o->kernel % 2 == 0) fail_usage("--kernel is odd where --factor is 1");
}

static const struct map_device *device_of(const struct options *o)
{
#ifdef PNET_CUDA_BUILT
    if (o->device == PNET_CUDA) return &pnet_bench_map_cuda;
#endif
    (void)o;
    return &pnet_bench_map_cpu;
}

static void *take(const struct options *o, size_t bytes)
{
    void *p = pnet_device_alloc(o->where, (bytes + 64) / 64 * 64);
    if (!p) {
        fprintf(stderr, "pnet-bench ablate map: out of memory on the device\n");
        exit(PNET_NO_MEMORY);
    }
    return p;
}

static void *copy(const struct options *o, const void *from, size_t bytes)
{
    void *p = take(o, bytes);
    if (bytes) pnet_device_put(o->where, p, from, bytes);
    return p;
}

/* Keeps one point a voxel of the grid. The caller frees what the level points to, and the parents. */
static struct pnet_level sampled(
    const struct pnet_level *fine, struct pnet_grid grid, int32_t **parent)
{
    bool ordered = pnet_grid_follows(fine->grid, grid);
    int32_t *keep = bench_alloc((size_t)fine->rows * sizeof *keep);
    int64_t *splits = bench_alloc(((size_t)fine->samples + 1) * sizeof *splits);
    void *work = bench_alloc(pnet_cpu_sample_work(fine->rows, ordered));
    *parent = bench_alloc((size_t)fine->rows * sizeof **parent);
    int64_t rows = pnet_cpu_sample(fine, grid, ordered, keep, *parent, splits, work);
    float *xyz = bench_alloc((size_t)rows * 3 * sizeof *xyz);
    uint64_t *key = bench_alloc((size_t)rows * sizeof *key);
    for (int64_t i = 0; i < rows; i++)
        memcpy(xyz + 3 * i, fine->xyz + 3 * (int64_t)keep[i], 3 * sizeof *xyz);
    pnet_cpu_keys(rows, xyz, grid, key);
    free(keep);
    free(work);
    return (struct pnet_level){rows, fine->samples, splits, xyz, key, grid};
}

static void level_free(struct pnet_level *l)
{
    free((void *)(uintptr_t)l->row_splits);
    free((void *)(uintptr_t)l->xyz);
    free((void *)(uintptr_t)l->key);
}

static struct pnet_level level_there(const struct options *o, const struct pnet_level *l)
{
    struct pnet_level d = *l;
    d.row_splits = copy(o, l->row_splits, ((size_t)l->samples + 1) * sizeof *l->row_splits);
    d.xyz = copy(o, l->xyz, (size_t)l->rows * 3 * sizeof *l->xyz);
    d.key = copy(o, l->key, (size_t)l->rows * sizeof *l->key);
    return d;
}

/* Copies the fine points to the device, each sample's in another order: every SEED-th one. */
static float *shuffle(const struct options *o, const struct pnet_level *l)
{
    float *xyz = bench_alloc((size_t)l->rows * 3 * sizeof *xyz);
    for (int32_t s = 0; s < l->samples; s++) {
        int64_t begin = l->row_splits[s], rows = l->row_splits[s + 1] - begin, step = SEED;
        while (rows && rows % step == 0) step += 2; /* SEED is prime to most numbers */
        bool *seen = bench_alloc((size_t)rows * sizeof *seen);
        memset(seen, 0, (size_t)rows * sizeof *seen);
        for (int64_t n = 0, at = 0; n < rows; n++, at = (at + step) % rows) {
            while (seen[at]) at = (at + 1) % rows;
            seen[at] = true;
            memcpy(xyz + 3 * (begin + n), l->xyz + 3 * (begin + at), 3 * sizeof *xyz);
        }
        free(seen);
    }
    float *there = copy(o, xyz, (size_t)l->rows * 3 * sizeof *xyz);
    free(xyz);
    return there;
}

static struct pnet_neighbourhood window(const struct options *o)
{
    return (struct pnet_neighbourhood){.kernel = o->kernel,
        .radius = (float)o->cell * (float)o->kernel / 2,
        .degrade = PNET_VOXEL};
}

static void open_bench(struct bench *b, const struct options *o, const struct scene *s)
{
    struct pnet_grid grid = s->level.grid;
    struct pnet_neighbourhood nb = window(o);
    *b = (struct bench){.o = o, .device = device_of(o)};
    b->fine = sampled(&s->level, grid, &b->parent);
    free(b->parent);
    b->parent = NULL;
    b->coarse = b->fine;
    grid.factor = o->factor;
    if (o->factor > 1) b->coarse = sampled(&b->fine, grid, &b->parent);
    struct map_task *t = &b->task;
    *t = (struct map_task){
        .in = level_there(o, &b->fine), .kernel = o->kernel, .step = o->factor, .bits = 1};
    t->out = o->factor > 1 ? level_there(o, &b->coarse) : t->in;
    while ((int64_t)1 << t->bits < 2 * t->in.rows) t->bits++;
    size_t fine = (size_t)b->fine.rows, coarse = (size_t)b->coarse.rows;
    t->table = take(o, sizeof *t->table << t->bits);
    t->slot = take(o, (size_t)map_cells(t) * coarse * sizeof *t->slot);
    if (b->parent) b->parent_there = copy(o, b->parent, fine * sizeof *b->parent);
    b->shuffled = shuffle(o, &b->fine);
    b->order = take(o, fine * sizeof *b->order);
    b->room = take(o, fine * 12);
    b->start = take(o, (coarse + 1) * sizeof *b->start);
    const struct pnet_level *out = o->factor > 1 ? &t->out : &t->in;
    b->work_bytes[0] = PNET_KERNEL(o, triplets_work)(out, &t->in, &nb);
    b->work_bytes[1] = b->device->work(t);
    size_t sort = PNET_KERNEL(o, order_points_work)(b->fine.rows), bytes = b->work_bytes[0];
    bytes = bytes > b->work_bytes[1] ? bytes : b->work_bytes[1];
    b->work = take(o, bytes > sort ? bytes : sort);
}

static void close_bench(struct bench *b)
{
    const void *there[] = {b->task.in.row_splits, b->task.in.xyz, b->task.in.key, b->task.table,
        b->task.slot, b->parent_there, b->shuffled, b->order, b->room, b->start, b->other, b->cell,
        b->work};
    const void *coarse[] = {b->task.out.row_splits, b->task.out.xyz, b->task.out.key};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        pnet_device_free(b->o->where, (void *)(uintptr_t)there[i]);
    for (size_t i = 0; i < 3 && b->o->factor > 1; i++)
        pnet_device_free(b->o->where, (void *)(uintptr_t)coarse[i]);
    if (b->o->factor > 1) level_free(&b->coarse);
    level_free(&b->fine);
    free(b->parent);
    free(b->want_start);
    free(b->want_other);
    free(b->want_cell);
}

/* Returns seconds, after waiting until the device has done all its work. */
static double now(const struct bench *b)
{
    struct pnet_error e;
    if (!pnet_device_wait(b->o->where, &e)) return bench_now();
    fprintf(stderr, "pnet-bench ablate map: %s\n", e.message);
    exit((int)e.status);
}

/* Memory for the triplets, when their number is known. */
static void take_triplets(struct bench *b, int64_t count)
{
    if (b->other && b->count >= count) return;
    pnet_device_free(b->o->where, b->other);
    pnet_device_free(b->o->where, b->cell);
    b->other = take(b->o, (size_t)count * sizeof *b->other);
    b->cell = take(b->o, (size_t)count * sizeof *b->cell);
    pnet_device_fill(b->o->where, b->other, 0, (size_t)count * sizeof *b->other);
    pnet_device_fill(b->o->where, b->cell, 0, (size_t)count * sizeof *b->cell);
    b->count = count;
}

/* One run; returns the number of triplets. */
static int64_t run_search(struct bench *b, double time[STAGES])
{
    const struct options *o = b->o;
    struct map_task *t = &b->task;
    struct pnet_neighbourhood nb = window(o);
    const struct pnet_level *out = o->factor > 1 ? &t->out : &t->in;
    double begin = now(b);
    int64_t count =
        PNET_KERNEL(o, triplets_count)(out, &t->in, &nb, b->parent_there, b->start, b->work);
    double counted = now(b);
    take_triplets(b, count);
    double taken = now(b);
    PNET_KERNEL(o, triplets_write)
    (out, &t->in, &nb, b->parent_there, b->start, b->other, b->cell, b->work);
    time[FIND] = 0;
    time[TRIPLETS] = counted - begin + now(b) - taken;
    return count;
}

static int64_t run_map(struct bench *b, double time[STAGES])
{
    struct map_task *t = &b->task;
    double begin = now(b);
    if (t->hash) b->device->build(t, b->work);
    double built = now(b);
    b->device->find(t);
    double found = now(b);
    int64_t count = b->device->count(t, b->start, b->work);
    double counted = now(b);
    take_triplets(b, count);
    double taken = now(b);
    b->device->write(t, b->start, b->other, b->cell);
    time[TRIPLETS] = counted - found + now(b) - taken;
    time[FIND] = found - built;
    time[BUILD] = built - begin;
    return count;
}

/* The sort along the curve that search and binary need. */
static double run_sort(struct bench *b)
{
    const struct pnet_level *l = &b->task.in;
    double begin = now(b);
    PNET_KERNEL(b->o, order_points)
    (l->rows, l->samples, l->row_splits, b->shuffled, l->grid, b->order, b->room, b->work);
    return now(b) - begin;
}

static bool holds(const struct bench *b, const void *there, const void *want, size_t bytes)
{
    void *got = bench_alloc(bytes);
    if (bytes) pnet_device_get(b->o->where, got, there, bytes);
    bool same = memcmp(got, want, bytes) == 0;
    free(got);
    return same;
}

static void *fetch(const struct bench *b, const void *there, size_t bytes)
{
    void *to = bench_alloc(bytes);
    if (bytes) pnet_device_get(b->o->where, to, there, bytes);
    return to;
}

/* The triplets of the first algorithm are what the others must give. */
static bool check(struct bench *b, int64_t count, bool first, int64_t *want)
{
    size_t starts = ((size_t)b->coarse.rows + 1) * sizeof *b->start;
    size_t others = (size_t)count * sizeof *b->other, cells = (size_t)count * sizeof *b->cell;
    if (first) {
        *want = count;
        b->want_start = fetch(b, b->start, starts);
        b->want_other = fetch(b, b->other, others);
        b->want_cell = fetch(b, b->cell, cells);
    }
    return count == *want && holds(b, b->start, b->want_start, starts) &&
           holds(b, b->other, b->want_other, others) && holds(b, b->cell, b->want_cell, cells);
}

static void measure(struct bench *b, struct result r[ALGOS], int64_t *triplets)
{
    struct map_task *t = &b->task;
    for (int run = -1; run < b->o->repeat; run++) /* the first run is not timed */
        for (int a = 0; a < ALGOS; a++) {
            double time[STAGES] = {0};
            if (b->o->factor > 1 && a != SEARCH && a != HASH) continue;
            t->hash = a == HASH || a == HASH_HALF;
            t->half = a == BINARY_HALF || a == HASH_HALF;
            int64_t count = a == SEARCH ? run_search(b, time) : run_map(b, time);
            if (!t->hash) time[BUILD] = run_sort(b);
            if (run >= 0) {
                memcpy(r[a].time[run], time, sizeof time);
                continue;
            }
            size_t slots = (size_t)map_cells(t) * (size_t)b->coarse.rows * sizeof *t->slot;
            r[a].bytes = ((size_t)b->coarse.rows + 1) * sizeof *b->start +
                         (size_t)count * (sizeof *b->other + sizeof *b->cell) +
                         b->work_bytes[a != SEARCH] + (a != SEARCH ? slots : 0) +
                         (t->hash ? sizeof *t->table << t->bits : 0);
            r[a].measured = true;
            r[a].right = check(b, count, a == SEARCH, triplets);
        }
    for (int a = 0; a < ALGOS; a++)
        for (int stage = 0; stage < STAGES && r[a].measured; stage++) {
            double column[RUNS_MAX];
            for (int run = 0; run < b->o->repeat; run++) column[run] = r[a].time[run][stage];
            r[a].median[stage] = bench_median(column, b->o->repeat);
        }
}

static double ms(const struct result *r, int stage)
{
    return 1e3 * r->median[stage];
}

static void print(const struct bench *b, const struct result r[ALGOS], int64_t triplets)
{
    printf("%lld rows, %lld centres, K=%d, %lld triplets\n", (long long)b->fine.rows,
        (long long)b->coarse.rows, (int)b->o->kernel, (long long)triplets);
    printf("%-12s %10s %10s %10s %10s %8s\n", "", "build ms", "map ms", "triplets", "MiB", "");
    for (int a = 0; a < ALGOS; a++)
        if (r[a].measured)
            printf("%-12s %10.3f %10.3f %10.3f %10.1f %8s\n", algo_names[a], ms(&r[a], BUILD),
                ms(&r[a], FIND), ms(&r[a], TRIPLETS), (double)r[a].bytes / 1048576,
                r[a].right ? "equal" : "WRONG");
}

static void name_output(const struct options *o, char path[PNET_PATH_MOST])
{
    snprintf(path, PNET_PATH_MOST, "%s.json", o->output);
}

/* Returns false after a message. */
static bool write_json(const struct bench *b, const struct result r[ALGOS], int64_t triplets)
{
    char path[PNET_PATH_MOST];
    const char *separator = "";
    struct pnet_output file;
    struct pnet_error e;
    name_output(b->o, path);
    if (pnet_output_open(path, &file, &e)) {
        fprintf(stderr, "pnet-bench ablate map: %s\n", e.message);
        return false;
    }
    FILE *out = file.file;
    fprintf(out,
        "{\"study\": \"map\", \"device\": \"%s\", \"kernel\": %d, \"factor\": %d, "
        "\"rows\": %lld, \"centres\": %lld, \"triplets\": %lld, \"results\": [",
        b->o->device == PNET_CPU ? "cpu" : "cuda", (int)b->o->kernel, (int)b->o->factor,
        (long long)b->fine.rows, (long long)b->coarse.rows, (long long)triplets);
    for (int a = 0; a < ALGOS; a++) {
        if (!r[a].measured) continue;
        fprintf(out,
            "%s{\"algo\": \"%s\", \"build_ms\": %.4f, \"map_ms\": %.4f, "
            "\"triplets_ms\": %.4f, \"bytes\": %zu, \"equal\": %s}",
            separator, algo_names[a], ms(&r[a], BUILD), ms(&r[a], FIND), ms(&r[a], TRIPLETS),
            r[a].bytes, r[a].right ? "true" : "false");
        separator = ", ";
    }
    fputs("]}\n", out);
    if (!pnet_output_commit(&file, &e)) return true;
    fprintf(stderr, "pnet-bench ablate map: %s\n", e.message);
    return false;
}

int pnet_bench_ablate_map(int argc, char **argv)
{
    static struct result r[ALGOS];
    struct options o;
    struct scene s;
    struct bench b;
    struct pnet_error e;
    int64_t triplets = 0;
    read_options(argc, argv, &o);
    char path[PNET_PATH_MOST];
    name_output(&o, path);
    if (pnet_guard_output(path, &e) || pnet_device_check(o.where, &e) ||
        pnet_device_enter(o.where, &e) ||
        pnet_bench_scene_read(&s, o.scenes, o.scene, 1, o.cell, &e)) {
        fprintf(stderr, "pnet-bench ablate map: %s\n", e.message);
        return (int)e.status;
    }
    if (!pnet_bench_scene_order(&s, o.cell)) {
        fprintf(
            stderr, "pnet-bench ablate map: the cell is too small for the extent of the cloud\n");
        return PNET_BAD_DATA;
    }
    open_bench(&b, &o, &s);
    measure(&b, r, &triplets);
    print(&b, r, triplets);
    bool right = write_json(&b, r, triplets);
    for (int a = 0; a < ALGOS; a++) right = right && (!r[a].measured || r[a].right);
    close_bench(&b);
    pnet_bench_scene_free(&s);
    return right ? 0 : PNET_FAILED;
}
