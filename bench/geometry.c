/* pnet-bench geometry: times, stage by stage, the way from raw points to sorted triplets and to the transposed set. */
#include <getopt.h>
#include <omp.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/scene.h"
#include "kernels/conv.h"
#include "kernels/rows.h"
#include "kernels/cpu/geometry/ref_geometry.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/geometry_stage.h"
#endif
#include "runtime/plan/op.h"

enum { RUNS_MAX = 101, PROBES = 16 };

enum stage { ORDER, MOVE, KEYS, COUNT, WRITE, TO_TRIPLETS, TRANSPOSE, TILES, STAGES };

static const char *const stage_names[STAGES] = {"order", "move points", "keys", "count triplets",
    "write triplets", "raw points to triplets", "transpose", "tiles"};

static const char *const stage_keys[STAGES] = {"order_ms", "move_ms", "keys_ms", "count_ms",
    "write_ms", "to_triplets_ms", "transpose_ms", "tiles_ms"};

struct options {
    const char *scene[SCENES_MAX];
    int scenes, runs;
    struct pnet_device where;
    enum pnet_device_kind device;
    double cell;
    struct pnet_neighbourhood nb;
    bool json;
};

/* The device memory to which a run writes, allocated once, as a runner's arena is. */
struct room {
    float *raw_xyz;
    int64_t *splits;
    uint64_t *key;
    int32_t *order;
    float *xyz;
    void *work;
    size_t work_bytes;
    void *back_work;
    struct scene_set set, back;
    int64_t room_for;       /* triplets */
    struct pnet_tile *tile; /* GPU */
    uint32_t *list;
    void *tile_work;
    int64_t words;
};

static const char usage[] =
    "Usage: pnet-bench geometry --scene CLOUD [--scene CLOUD ...] [options]\n"
    "\n"
    "Times the geometry stage on clouds, one sample each.\n"
    "\n"
    "  --cell V      edge of the grid that rows are ordered by, metres (0.025)\n"
    "  --radius R    metres (0.05); not with --mode voxel\n"
    "  --knn N       the N nearest points instead of a radius\n"
    "  --kernel K    kernel cells an axis (3)\n"
    "  --mode M      native or voxel (native)\n"
    "  --runs N      median of N runs (7)\n"
    "  --threads N   (all cores)\n"
    "  --device D    cpu (default), cuda or cuda:N; raw points are in its memory when the clock "
    "starts\n"
    "  --json        one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "Example: pnet-bench geometry --scene room.npy --radius 0.05 --kernel 3\n";

static bool read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", required_argument, NULL, 's'},
        {"cell", required_argument, NULL, 'c'}, {"radius", required_argument, NULL, 'r'},
        {"knn", required_argument, NULL, 'n'}, {"kernel", required_argument, NULL, 'k'},
        {"mode", required_argument, NULL, 'm'}, {"runs", required_argument, NULL, 'u'},
        {"threads", required_argument, NULL, 't'}, {"device", required_argument, NULL, 'd'},
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    *o = (struct options){.runs = 7, .cell = 0.025, .nb = {.kernel = 3, .radius = 0.05f}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        const char *text = optarg ? optarg : "";
        double value = strtod(text, NULL);
        switch (c) {
        case 's':
            if (!pnet_bench_scene_file(o->scene, &o->scenes, text)) return false;
            break;
        case 'c': o->cell = value; break;
        case 'r': o->nb.radius = (float)value; break;
        case 'n': o->nb.knn = (int32_t)value; break;
        case 'k': o->nb.kernel = (int32_t)value; break;
        case 'm':
            if (!pnet_bench_scene_mode(text, &o->nb.degrade)) return false;
            break;
        case 'u': o->runs = (int)value; break;
        case 't':
            if (value < 1 || value > 1024) return false;
            omp_set_num_threads((int)value);
            break;
        case 'd':
            if (pnet_device_parse(text, &o->where, NULL)) return false;
            o->device = o->where.kind;
            break;
        case 'j': o->json = true; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: return false;
        }
    }
    const struct pnet_neighbourhood *nb = &o->nb;
    return optind == argc && o->scenes && o->cell > 0 && o->runs > 0 && o->runs <= RUNS_MAX &&
           nb->radius > 0 && nb->knn >= 0 && nb->knn <= PNET_KNN_LIMIT && nb->kernel >= 1 &&
           nb->kernel <= 31 && (!nb->degrade || (nb->kernel % 2 && !nb->knn));
}

/* Allocates memory of the device; ends the program if there is none. */
static void *take(const struct options *o, size_t bytes)
{
    if (o->device == PNET_CPU) return bench_alloc(bytes);
    void *p = pnet_device_alloc(o->where, bytes + 1);
    if (!p) {
        fprintf(stderr, "out of memory on the device\n");
        exit(PNET_NO_MEMORY);
    }
    return p;
}

/* Returns seconds, after waiting until the device has done all its work. */
static double now(const struct options *o)
{
    struct pnet_error e;
    if (!pnet_device_wait(o->where, &e)) return bench_now();
    fprintf(stderr, "pnet-bench geometry: %s\n", e.message);
    exit((int)e.status);
}

static struct room take_room(const struct scene *s, const struct options *o)
{
    struct pnet_level level = {.rows = s->splits[s->level.samples], .samples = s->level.samples};
    size_t rows = (size_t)level.rows, order = PNET_KERNEL(o, order_points_work)(level.rows);
    size_t splits = (size_t)(level.samples + 1) * sizeof(int64_t);
    struct room r = {.work_bytes = PNET_KERNEL(o, triplets_work)(&level, &level, &o->nb)};
    if (r.work_bytes < order) r.work_bytes = order;
    r.raw_xyz = take(o, rows * 3 * sizeof *r.raw_xyz);
    r.splits = take(o, splits);
    r.key = take(o, rows * sizeof *r.key);
    r.order = take(o, rows * sizeof *r.order);
    r.xyz = take(o, rows * 3 * sizeof *r.xyz);
    r.work = take(o, r.work_bytes);
    r.set.start = take(o, (rows + 1) * sizeof(int64_t));
    r.back.start = take(o, (rows + 1) * sizeof(int64_t));
#ifdef PNET_CUDA_BUILT
    if (o->device != PNET_CPU) {
        r.tile = take(o, (rows / PNET_TILE_ROWS + 1) * sizeof *r.tile);
        r.tile_work = take(o, pnet_cuda_tiles_work(level.rows));
    }
#endif
    pnet_device_put(o->where, r.raw_xyz, s->xyz, rows * 3 * sizeof *r.xyz);
    pnet_device_put(o->where, r.splits, s->splits, splits);
    return r;
}

static void take_triplets(const struct options *o, struct room *r, int64_t count)
{
    if (r->room_for >= count) return;
    struct scene_set *sets[2] = {&r->set, &r->back};
    for (int n = 0; n < 2; n++) {
        pnet_device_free(o->where, sets[n]->other);
        pnet_device_free(o->where, sets[n]->cell);
        sets[n]->other = take(o, (size_t)count * sizeof(int32_t));
        sets[n]->cell = take(o, (size_t)count * sizeof(uint16_t));
        /* touch the pages before a run is timed */
        pnet_device_fill(o->where, sets[n]->other, 0, (size_t)count * sizeof(int32_t));
        pnet_device_fill(o->where, sets[n]->cell, 0, (size_t)count * sizeof(uint16_t));
    }
    pnet_device_free(o->where, r->back_work);
    struct pnet_triplets most = r->set.t;
    most.count = count;
    r->back_work = take(o, PNET_KERNEL(o, transpose_work)(&most));
    r->room_for = count;
}

static void free_room(const struct options *o, struct room *r)
{
    void *pieces[] = {r->raw_xyz, r->splits, r->key, r->order, r->xyz, r->work, r->set.start,
        r->set.other, r->set.cell, r->back.start, r->back.other, r->back.cell, r->back_work,
        r->tile, r->tile_work, r->list};
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++)
        pnet_device_free(o->where, pieces[n]);
}

/* Lays the set out as tiles, which convolutions on a GPU read; returns seconds. */
static double run_tiles(const struct options *o, struct room *r)
{
    double seconds = 0;
#ifdef PNET_CUDA_BUILT
    if (o->device == PNET_CPU || r->set.t.cells > PNET_TILE_CELLS) return 0;
    double start = now(o);
    int64_t words = pnet_cuda_tiles_count(&r->set.t, r->tile, r->tile_work);
    seconds = now(o) - start;
    if (words > r->words) {
        pnet_device_free(o->where, r->list);
        r->list = take(o, (size_t)words * sizeof *r->list);
        r->words = words;
    }
    start = now(o);
    pnet_cuda_tiles_write(&r->set.t, r->tile, r->list);
    seconds += now(o) - start;
#else
    (void)o, (void)r;
#endif
    return seconds;
}

/* Makes one run, and sets the seconds of each stage. Returns the level that it made. */
static struct pnet_level run(
    const struct scene *s, const struct options *o, struct room *r, double seconds[STAGES])
{
    int64_t rows = s->splits[s->level.samples];
    struct pnet_grid grid = {(float)o->cell, (float)(1 / o->cell), 1};
    struct pnet_level level = {rows, s->level.samples, r->splits, r->xyz, r->key, grid};
    int32_t cells = o->nb.kernel * o->nb.kernel * o->nb.kernel;
    double start = now(o), at[STAGES];
    PNET_KERNEL(o, order_points)
    (rows, s->level.samples, r->splits, r->raw_xyz, grid, r->order, r->xyz, r->work);
    at[ORDER] = now(o);
    PNET_KERNEL(o, gather)(rows, 3, r->raw_xyz, r->order, r->xyz);
    at[MOVE] = now(o);
    PNET_KERNEL(o, keys)(rows, r->xyz, grid, r->key);
    at[KEYS] = now(o);
    int64_t count =
        PNET_KERNEL(o, triplets_count)(&level, &level, &o->nb, NULL, r->set.start, r->work);
    at[COUNT] = now(o);
    r->set.t = (struct pnet_triplets){.rows = rows, .others = rows, .count = count, .cells = cells};
    take_triplets(o, r, count);
    double taken = now(o);
    PNET_KERNEL(o, triplets_write)
    (&level, &level, &o->nb, NULL, r->set.start, r->set.other, r->set.cell, r->work);
    at[WRITE] = now(o);
    r->set.t.start = r->set.start;
    r->set.t.other = r->set.other;
    r->set.t.cell = r->set.cell;
    double transpose = now(o);
    PNET_KERNEL(o, transpose)
    (&r->set.t, r->back.start, r->back.other, r->back.cell, r->back_work);
    at[TRANSPOSE] = now(o);
    seconds[KEYS] = at[KEYS] - start;
    seconds[ORDER] = at[ORDER] - at[KEYS];
    seconds[MOVE] = at[MOVE] - at[ORDER];
    seconds[COUNT] = at[COUNT] - at[MOVE];
    seconds[WRITE] = at[WRITE] - taken;
    seconds[TO_TRIPLETS] = at[COUNT] - start + seconds[WRITE];
    seconds[TRANSPOSE] = at[TRANSPOSE] - transpose;
    seconds[TILES] = run_tiles(o, r);
    return level;
}

/* The level and the set in memory that the host can read. */
struct on_host {
    struct pnet_level level;
    struct pnet_triplets set;
};

static void *fetch(const struct options *o, const void *from, size_t bytes)
{
    void *to = bench_alloc(bytes);
    pnet_device_get(o->where, to, from, bytes);
    return to;
}

static struct on_host fetch_all(const struct scene *s, const struct options *o,
    const struct pnet_level *l, const struct room *r)
{
    size_t rows = (size_t)l->rows, count = (size_t)r->set.t.count;
    struct on_host h = {*l, r->set.t};
    h.level.row_splits = s->splits;
    h.level.xyz = fetch(o, l->xyz, rows * 3 * sizeof(float));
    h.level.key = fetch(o, l->key, rows * sizeof(uint64_t));
    h.set.start = fetch(o, r->set.start, (rows + 1) * sizeof(int64_t));
    h.set.other = fetch(o, r->set.other, count * sizeof(int32_t));
    h.set.cell = fetch(o, r->set.cell, count * sizeof(uint16_t));
    return h;
}

static void free_all(struct on_host *h)
{
    const void *pieces[] = {h->level.xyz, h->level.key, h->set.start, h->set.other, h->set.cell};
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++) free((void *)(uintptr_t)pieces[n]);
}

/* Compares a few rows of the set with the plain search over all points. */
static bool check_rows(const struct on_host *h, const struct options *o)
{
    const struct pnet_level *level = &h->level;
    for (int64_t p = 0; p < PROBES && level->rows; p++) {
        int64_t row = level->rows * p / PROBES, count = 0, splits[SCENES_MAX + 1];
        for (int32_t s = 0; s <= level->samples; s++) splits[s] = level->row_splits[s] > row;
        struct pnet_level one = *level;
        one.rows = 1;
        one.row_splits = splits;
        one.xyz = level->xyz + 3 * row;
        struct pnet_ref_triplet *t = pnet_ref_triplets(&one, level, &o->nb, NULL, &count);
        int64_t first = h->set.start[row];
        bool same = t && h->set.start[row + 1] - first == count;
        for (int64_t n = 0; same && n < count; n++)
            same = t[n].j == h->set.other[first + n] && t[n].k == h->set.cell[first + n];
        free(t);
        if (!same) {
            fprintf(stderr, "pnet-bench geometry: row %lld differs from the reference\n",
                (long long)row);
            return false;
        }
    }
    return true;
}

/* Only a GPU has the stage of tiles. */
static int stages_of(const struct options *o)
{
    return o->device == PNET_CPU ? TILES : STAGES;
}

static void print_text(const struct options *o, const struct on_host *h, const struct room *r,
    const double seconds[STAGES])
{
    printf("N %lld  T %lld  U %lld  workspace %.1f bytes a point  ", (long long)h->level.rows,
        (long long)h->set.count, (long long)pnet_cpu_cell_runs(&h->set),
        h->level.rows ? (double)r->work_bytes / (double)h->level.rows : 0);
    if (o->device == PNET_CPU)
        printf("threads %d  %s\n", omp_get_max_threads(), pnet_cpu_isa());
    else
        printf("cuda:%d\n", o->where.index);
    for (int stage = 0; stage < stages_of(o); stage++)
        printf("%-24s %9.3f ms\n", stage_names[stage], 1e3 * seconds[stage]);
}

static void print_json(const struct options *o, const struct on_host *h, const struct room *r,
    const double seconds[STAGES])
{
    printf("{\"device\": \"%s\", \"mode\": \"%s\", \"kernel\": %d, \"rows\": %lld, \"triplets\": "
           "%lld, \"cell_runs\": %lld, \"workspace_bytes\": %zu",
        o->device == PNET_CPU ? "cpu" : "cuda", o->nb.degrade ? "voxel" : "native", o->nb.kernel,
        (long long)h->level.rows, (long long)h->set.count, (long long)pnet_cpu_cell_runs(&h->set),
        r->work_bytes);
    for (int stage = 0; stage < stages_of(o); stage++)
        printf(", \"%s\": %.4f", stage_keys[stage], 1e3 * seconds[stage]);
    puts("}");
}

int pnet_bench_geometry(int argc, char **argv)
{
    struct options o;
    struct scene s;
    struct pnet_error e = {0};
    if (!read_options(argc, argv, &o)) {
        fputs(usage, stderr);
        return PNET_USAGE;
    }
    if (pnet_device_check(o.where, &e) || pnet_device_enter(o.where, &e) ||
        pnet_bench_scene_read(&s, o.scenes, o.scene, 1, o.cell, &e)) {
        fprintf(stderr, "pnet-bench geometry: %s\n", e.message);
        return (int)e.status;
    }
    double seconds[RUNS_MAX][STAGES], once[STAGES];
    struct room r = take_room(&s, &o);
    struct pnet_level level = run(&s, &o, &r, once);
    struct on_host h = fetch_all(&s, &o, &level, &r);
    bool right = check_rows(&h, &o);
    for (int n = 0; n < o.runs; n++) run(&s, &o, &r, seconds[n]);
    for (int stage = 0; stage < STAGES; stage++) {
        double column[RUNS_MAX];
        for (int n = 0; n < o.runs; n++) column[n] = seconds[n][stage];
        once[stage] = bench_median(column, o.runs);
    }
    (o.json ? print_json : print_text)(&o, &h, &r, once);
    free_all(&h);
    free_room(&o, &r);
    pnet_bench_scene_free(&s);
    return right ? 0 : PNET_FAILED;
}
