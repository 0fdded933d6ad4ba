/* pnet-bench geometry: from raw points to sorted triplets, and to the transposed set, stage by stage. */
#include <getopt.h>
#include <omp.h>
#include <string.h>

#include "bench/commands.h"
#include "bench/scene.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/ref_geometry.h"

enum { RUNS_MAX = 101, PROBES = 16 };

enum stage { KEYS, ORDER, MOVE, COUNT, WRITE, TO_TRIPLETS, TRANSPOSE, STAGES };

static const char *const stage_names[STAGES] = {"keys", "order", "move points", "count triplets",
    "write triplets", "raw points to triplets", "transpose"};

struct options {
    const char *scene[SCENES_MAX];
    int scenes, runs;
    double cell;
    struct pnet_neighbourhood nb;
};

/* Everything a run writes to, allocated once: a session's arena stays too. */
struct room {
    uint64_t *raw_key, *key;
    int32_t *order;
    float *xyz;
    void *work;
    size_t work_bytes;
    struct scene_set set, back;
    int64_t room_for; /* triplets */
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
    "\n"
    "Example: pnet-bench geometry --scene room.npy --radius 0.05 --kernel 3\n";

static bool read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", required_argument, NULL, 's'},
        {"cell", required_argument, NULL, 'c'}, {"radius", required_argument, NULL, 'r'},
        {"knn", required_argument, NULL, 'n'}, {"kernel", required_argument, NULL, 'k'},
        {"mode", required_argument, NULL, 'm'}, {"runs", required_argument, NULL, 'u'},
        {"threads", required_argument, NULL, 't'}, {0}};
    *o = (struct options){.runs = 7, .cell = 0.025, .nb = {.kernel = 3, .radius = 0.05f}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        const char *text = optarg ? optarg : "";
        double value = strtod(text, NULL);
        switch (c) {
        case 's':
            if (o->scenes == SCENES_MAX) return false;
            o->scene[o->scenes++] = text;
            break;
        case 'c': o->cell = value; break;
        case 'r': o->nb.radius = (float)value; break;
        case 'n': o->nb.knn = (int32_t)value; break;
        case 'k': o->nb.kernel = (int32_t)value; break;
        case 'm':
            if (strcmp(text, "voxel") != 0 && strcmp(text, "native") != 0) return false;
            o->nb.degrade = strcmp(text, "voxel") == 0 ? PNET_VOXEL : 0;
            break;
        case 'u': o->runs = (int)value; break;
        case 't':
            if (value < 1 || value > 1024) return false;
            omp_set_num_threads((int)value);
            break;
        default: return false;
        }
    }
    const struct pnet_neighbourhood *nb = &o->nb;
    return optind == argc && o->scenes && o->cell > 0 && o->runs > 0 && o->runs <= RUNS_MAX &&
           nb->radius > 0 && nb->knn >= 0 && nb->knn <= PNET_KNN_LIMIT && nb->kernel >= 1 &&
           nb->kernel <= 31 && (!nb->degrade || (nb->kernel % 2 && !nb->knn));
}

static struct room take_room(const struct scene *s, const struct pnet_neighbourhood *nb)
{
    struct pnet_level level = {.rows = s->splits[s->level.samples], .samples = s->level.samples};
    size_t rows = (size_t)level.rows, order = pnet_cpu_order_work(level.rows);
    struct room r = {.work_bytes = pnet_cpu_triplets_work(&level, &level, nb)};
    r.raw_key = bench_alloc(rows * sizeof *r.raw_key);
    r.key = bench_alloc(rows * sizeof *r.key);
    r.order = bench_alloc(rows * sizeof *r.order);
    r.xyz = bench_alloc(rows * 3 * sizeof *r.xyz);
    r.work = bench_alloc(r.work_bytes > order ? r.work_bytes : order);
    r.set.start = bench_alloc((rows + 1) * sizeof(int64_t));
    r.back.start = bench_alloc((rows + 1) * sizeof(int64_t));
    return r;
}

static void take_triplets(struct room *r, int64_t count)
{
    if (r->room_for >= count) return;
    struct scene_set *sets[2] = {&r->set, &r->back};
    for (int n = 0; n < 2; n++) {
        free(sets[n]->other);
        free(sets[n]->cell);
        sets[n]->other = bench_alloc((size_t)count * sizeof(int32_t));
        sets[n]->cell = bench_alloc((size_t)count * sizeof(uint16_t));
        /* pages are there before a run is timed */
        memset(sets[n]->other, 0, (size_t)count * sizeof(int32_t));
        memset(sets[n]->cell, 0, (size_t)count * sizeof(uint16_t));
    }
    r->room_for = count;
}

static void free_room(struct room *r)
{
    void *pieces[] = {r->raw_key, r->key, r->order, r->xyz, r->work, r->set.start, r->set.other,
        r->set.cell, r->back.start, r->back.other, r->back.cell};
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++) free(pieces[n]);
}

/* One run; seconds of each stage. Returns the level that it made. */
static struct pnet_level run(
    const struct scene *s, const struct options *o, struct room *r, double seconds[STAGES])
{
    int64_t rows = s->splits[s->level.samples];
    struct pnet_grid grid = {(float)o->cell, (float)(1 / o->cell), 1};
    struct pnet_level level = {rows, s->level.samples, s->splits, r->xyz, r->key, grid};
    double start = bench_now(), at[STAGES];
    pnet_cpu_keys(rows, s->xyz, grid, r->raw_key);
    at[KEYS] = bench_now();
    pnet_cpu_order(rows, s->level.samples, s->splits, r->raw_key, r->order, r->work);
    at[ORDER] = bench_now();
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = r->order[i];
        for (int a = 0; a < 3; a++) r->xyz[3 * i + a] = s->xyz[3 * from + a];
        r->key[i] = r->raw_key[from];
    }
    at[MOVE] = bench_now();
    int64_t count = pnet_cpu_triplets_count(&level, &level, &o->nb, NULL, r->set.start, r->work);
    at[COUNT] = bench_now();
    take_triplets(r, count);
    double taken = bench_now();
    pnet_cpu_triplets_write(
        &level, &level, &o->nb, NULL, r->set.start, r->set.other, r->set.cell, r->work);
    at[WRITE] = bench_now();
    int32_t cells = o->nb.kernel * o->nb.kernel * o->nb.kernel;
    r->set.t = (struct pnet_triplets){
        rows, rows, count, cells, r->set.start, r->set.other, r->set.cell, NULL};
    void *work = bench_alloc(pnet_cpu_transpose_work(&r->set.t));
    double transpose = bench_now();
    pnet_cpu_transpose(&r->set.t, r->back.start, r->back.other, r->back.cell, work);
    at[TRANSPOSE] = bench_now();
    free(work);
    seconds[KEYS] = at[KEYS] - start;
    seconds[ORDER] = at[ORDER] - at[KEYS];
    seconds[MOVE] = at[MOVE] - at[ORDER];
    seconds[COUNT] = at[COUNT] - at[MOVE];
    seconds[WRITE] = at[WRITE] - taken;
    seconds[TO_TRIPLETS] = at[COUNT] - start + seconds[WRITE];
    seconds[TRANSPOSE] = at[TRANSPOSE] - transpose;
    return level;
}

/* A few rows of the set against the plain search over all points. */
static bool check_rows(
    const struct pnet_level *level, const struct options *o, const struct room *r)
{
    for (int64_t p = 0; p < PROBES && level->rows; p++) {
        int64_t row = level->rows * p / PROBES, count = 0, splits[SCENES_MAX + 1];
        for (int32_t s = 0; s <= level->samples; s++) splits[s] = level->row_splits[s] > row;
        struct pnet_level one = *level;
        one.rows = 1;
        one.row_splits = splits;
        one.xyz = level->xyz + 3 * row;
        struct pnet_ref_triplet *t = pnet_ref_triplets(&one, level, &o->nb, NULL, &count);
        int64_t first = r->set.start[row];
        bool same = t && r->set.start[row + 1] - first == count;
        for (int64_t n = 0; same && n < count; n++)
            same = t[n].j == r->set.other[first + n] && t[n].k == r->set.cell[first + n];
        free(t);
        if (!same) {
            fprintf(stderr, "pnet-bench geometry: row %lld differs from the reference\n",
                (long long)row);
            return false;
        }
    }
    return true;
}

int bench_geometry(int argc, char **argv)
{
    struct options o;
    struct scene s;
    struct pnet_error e = {0};
    if (!read_options(argc, argv, &o)) {
        fputs(usage, stderr);
        return PNET_USAGE;
    }
    if (scene_read(&s, o.scenes, o.scene, &e) != PNET_OK) {
        fprintf(stderr, "pnet-bench geometry: %s\n", e.message);
        return (int)e.status;
    }
    double seconds[RUNS_MAX][STAGES], once[STAGES];
    struct room r = take_room(&s, &o.nb);
    struct pnet_level level = run(&s, &o, &r, once);
    if (!check_rows(&level, &o, &r)) return PNET_FAILED;
    for (int n = 0; n < o.runs; n++) run(&s, &o, &r, seconds[n]);
    printf("N %lld  T %lld  U %lld  threads %d  %s  workspace %.1f bytes a point\n",
        (long long)level.rows, (long long)r.set.t.count, (long long)pnet_cpu_cell_runs(&r.set.t),
        omp_get_max_threads(), pnet_cpu_isa(),
        level.rows ? (double)r.work_bytes / (double)level.rows : 0);
    for (int stage = 0; stage < STAGES; stage++) {
        double column[RUNS_MAX];
        for (int n = 0; n < o.runs; n++) column[n] = seconds[n][stage];
        printf("%-24s %8.1f ms\n", stage_names[stage], 1e3 * bench_median(column, o.runs));
    }
    free_room(&r);
    scene_free(&s);
    return 0;
}
