/* pnet-bench cpu: compares each figure of the CPU with another library's, measured in the same run, and with its target. */
#include <getopt.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/conv_layer.h"
#include "bench/kdtree.h"
#include "bench/measure.h"
#include "bench/scene.h"
#include "bench/sgemm.h"
#include "kernels/rows.h"

enum { WIDTHS = 3, ROUNDS_MAX = 101 };

static const int width[WIDTHS] = {32, 64, 128};
/* Targets: the useful work of the forward product relative to the rate of sgemm; the times of dF and dW relative to forward;
   the time of the geometry relative to nanoflann. */
static const double forward_target[WIDTHS] = {0.5, 1.2, 1.5}, backward_target = 1.2,
                    geometry_target = 0.6;

static const char usage[] =
    "Usage: pnet-bench cpu --scene CLOUD [--scene CLOUD ...] [options]\n"
    "Convolutions of 32, 64 and 128 channels beside OpenBLAS's sgemm, which take turns, "
    "and raw points to sorted\n"
    "triplets beside nanoflann's tree and radius search, with the targets. Results are checked "
    "first. sgemm is left out\n"
    "where libopenblas.so.0 is not found, nanoflann where the program was built without it.\n"
    "\n"
    "  --scene CLOUD       a cloud of any format; several make a batch\n"
    "  --radius R          metres (0.05)\n"
    "  --kernel K          cells an axis (3)\n"
    "  --cell V            metres: the grid the points are ordered on (0.025)\n"
    "  --dense N           rows and columns of the matrices of sgemm (4096)\n"
    "  --rounds N          of which the median is taken (5)\n"
    "  --json              one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "Threads: OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.\n"
    "\n"
    "  pnet-bench cpu --scene room0.npy\n";

struct options {
    const char *scene[SCENES_MAX];
    int scenes, rounds, dense;
    struct pnet_neighbourhood nb;
    double cell;
    bool json;
};

/* Medians, seconds; 0: not measured. */
struct figures {
    int64_t rows, triplets, counted;
    double work[WIDTHS], time[WIDTHS][PRODUCTS], sgemm[WIDTHS]; /* sgemm: FLOP/s */
    double geometry, build, search;
};

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench cpu: %s\nTry pnet-bench cpu --help.\n", message);
    exit(PNET_USAGE);
}

static double number(const char *text, double least, double most)
{
    return bench_number(text, least, most, fail_usage);
}

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", 1, NULL, 's'}, {"radius", 1, NULL, 'r'},
        {"kernel", 1, NULL, 'k'}, {"cell", 1, NULL, 'v'}, {"dense", 1, NULL, 'd'},
        {"rounds", 1, NULL, 'n'}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    *o = (struct options){
        .nb = {.kernel = 3, .radius = 0.05f}, .cell = 0.025, .rounds = 5, .dense = 4096};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!pnet_bench_scene_file(o->scene, &o->scenes, optarg)) fail_usage("too many scenes");
            break;
        case 'r': o->nb.radius = (float)number(optarg, 1e-6, 1e6); break;
        case 'k': o->nb.kernel = (int32_t)number(optarg, 1, 15); break;
        case 'v': o->cell = number(optarg, 1e-6, 1e6); break;
        case 'd': o->dense = (int)number(optarg, 16, 16384); break;
        case 'n': o->rounds = (int)number(optarg, 1, ROUNDS_MAX); break;
        case 'j': o->json = true; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fail_usage("unknown option, or one without its value");
        }
    }
    if (optind < argc || o->scenes == 0) fail_usage("--scene is needed");
}

/* The memory that the geometry writes to, allocated once, as a runner's arena is. */
struct room {
    uint64_t *raw_key, *key;
    int32_t *order;
    float *xyz;
    void *work;
    struct scene_set set; /* set of an earlier run, whose arrays have the right size */
};

/* Runs from raw points to sorted triplets; returns seconds. */
static double run_geometry(const struct scene *raw, const struct options *o, struct room *r)
{
    int64_t rows = raw->splits[raw->level.samples];
    struct pnet_grid grid = {(float)o->cell, (float)(1 / o->cell), 1};
    struct pnet_level level = {rows, raw->level.samples, raw->splits, r->xyz, r->key, grid};
    double begin = bench_now();
    pnet_cpu_keys(rows, raw->xyz, grid, r->raw_key);
    pnet_cpu_order(rows, raw->level.samples, raw->splits, r->raw_key, r->order, r->work);
    pnet_cpu_gather(rows, 3, raw->xyz, r->order, r->xyz);
    pnet_cpu_gather(rows, 2, r->raw_key, r->order, r->key);
    pnet_cpu_triplets_count(&level, &level, &o->nb, NULL, r->set.start, r->work);
    pnet_cpu_triplets_write(
        &level, &level, &o->nb, NULL, r->set.start, r->set.other, r->set.cell, r->work);
    return bench_now() - begin;
}

/* Times nanoflann and our search alternately. Returns false if their results differ. */
static bool measure_geometry(
    const struct scene *raw, const struct options *o, struct scene_set set, struct figures *f)
{
    double own[ROUNDS_MAX], build[ROUNDS_MAX] = {0}, search[ROUNDS_MAX] = {0};
    struct pnet_level level = {.rows = f->rows, .samples = raw->level.samples};
    size_t rows = (size_t)f->rows, order = pnet_cpu_order_work(f->rows),
           triplets = pnet_cpu_triplets_work(&level, &level, &o->nb);
    struct room r = {bench_alloc(rows * sizeof *r.raw_key), bench_alloc(rows * sizeof *r.key),
        bench_alloc(rows * sizeof *r.order), bench_alloc(rows * 3 * sizeof *r.xyz),
        bench_alloc(order > triplets ? order : triplets), set};
    run_geometry(raw, o, &r);
    for (int n = 0; n < o->rounds; n++) {
        own[n] = run_geometry(raw, o, &r);
#ifdef PNET_BENCH_KDTREE
        f->counted = 0;
        for (int32_t s = 0; s < raw->level.samples; s++) {
            double built, searched;
            f->counted += pnet_bench_kdtree_neighbours(raw->splits[s + 1] - raw->splits[s],
                raw->xyz + 3 * raw->splits[s], o->nb.radius, &built, &searched);
            build[n] += built;
            search[n] += searched;
        }
#endif
    }
    f->geometry = bench_median(own, o->rounds);
    f->build = bench_median(build, o->rounds);
    f->search = bench_median(search, o->rounds);
    free(r.raw_key);
    free(r.key);
    free(r.order);
    free(r.xyz);
    free(r.work);
    /* pairs exactly at the radius may be inside or outside */
    return f->search <= 0 || fabs((double)f->counted / (double)f->triplets - 1) < 1e-5;
}

/* Times sgemm and the three products alternately, so that other work on the machine affects all of them alike. */
static const char *measure_width(const struct options *o, const struct scene_set *forward,
    const struct scene_set *backward, int w, struct figures *f)
{
    static void (*const product[PRODUCTS])(struct layer *) = {
        layer_forward, layer_feature_gradient, layer_weight_gradient};
    double seconds[PRODUCTS][ROUNDS_MAX], dense[ROUNDS_MAX];
    struct measure_options once = {.repeat = 1};
    struct measured m;
    struct sgemm s = sgemm_open(o->dense);
    struct layer l =
        layer_make(&forward->t, &backward->t, (struct pnet_conv_shape){width[w], width[w], 1});
    pnet_bench_measure_layer(&once, &l, &m);
    if (s.product) sgemm_run(&s);
    for (int n = 0; n < o->rounds; n++) {
        dense[n] = s.product ? sgemm_run(&s) : 0;
        for (int p = 0; p < PRODUCTS; p++) {
            double begin = bench_now();
            product[p](&l);
            seconds[p][n] = bench_now() - begin;
        }
    }
    f->work[w] = m.work;
    for (int p = 0; p < PRODUCTS; p++) f->time[w][p] = bench_median(seconds[p], o->rounds);
    if (s.product) f->sgemm[w] = sgemm_flop(&s) / bench_median(dense, o->rounds);
    layer_free(&l);
    sgemm_close(&s);
    return pnet_bench_measure_wrong(&m, PNET_FP32);
}

static const char *verdict(bool met)
{
    return met ? "met" : "missed";
}

static void print(const struct figures *f)
{
    printf("%s, %d threads: N %lld, T %lld\n", pnet_cpu_isa(), omp_get_max_threads(),
        (long long)f->rows, (long long)f->triplets);
    printf("%-11s %10s %10s %10s %10s %18s %18s %18s\n", "channels", "sgemm", "forward", "dF", "dW",
        "forward of sgemm", "dF of forward", "dW of forward");
    for (int w = 0; w < WIDTHS; w++) {
        const double *t = f->time[w];
        double rate = f->work[w] / t[0];
        printf("%4d -> %3d %7.1f GF/s %7.1f ms %7.1f ms %7.1f ms", width[w], width[w],
            1e-9 * f->sgemm[w], 1e3 * t[0], 1e3 * t[1], 1e3 * t[2]);
        if (f->sgemm[w] > 0)
            printf(" %5.2f of %.1f %-6s", rate / f->sgemm[w], forward_target[w],
                verdict(rate / f->sgemm[w] >= forward_target[w]));
        else
            printf(" %18s", "no OpenBLAS");
        for (int p = 1; p < PRODUCTS; p++)
            printf(" %5.2f of %.1f %-6s", t[p] / t[0], backward_target,
                verdict(t[p] / t[0] <= backward_target));
        puts("");
    }
    printf("raw points to sorted triplets %.1f ms", 1e3 * f->geometry);
    if (f->search <= 0) {
        puts(" (built without nanoflann)");
        return;
    }
    double ratio = f->geometry / (f->build + f->search);
    printf(", nanoflann %.1f ms to build and %.1f ms to count neighbours: %.2f of %.1f %s\n",
        1e3 * f->build, 1e3 * f->search, ratio, geometry_target, verdict(ratio <= geometry_target));
}

static void print_json(const struct figures *f)
{
    printf("{\"isa\": \"%s\", \"threads\": %d, \"rows\": %lld, \"triplets\": %lld, \"layers\": [",
        pnet_cpu_isa(), omp_get_max_threads(), (long long)f->rows, (long long)f->triplets);
    for (int w = 0; w < WIDTHS; w++) {
        const double *t = f->time[w];
        printf("%s{\"channels\": %d, \"forward_ms\": %.3f, \"dF_ms\": %.3f, \"dW_ms\": %.3f, "
               "\"sgemm_gflops\": %.2f",
            w ? ", " : "", width[w], 1e3 * t[0], 1e3 * t[1], 1e3 * t[2], 1e-9 * f->sgemm[w]);
        if (f->sgemm[w] > 0)
            printf(", \"forward_of_sgemm\": %.4f, \"target\": %.1f",
                f->work[w] / t[0] / f->sgemm[w], forward_target[w]);
        printf("}");
    }
    printf("], \"geometry_ms\": %.3f", 1e3 * f->geometry);
    if (f->search > 0)
        printf(", \"nanoflann_build_ms\": %.3f, \"nanoflann_search_ms\": %.3f, "
               "\"geometry_of_nanoflann\": %.4f, \"target\": %.1f",
            1e3 * f->build, 1e3 * f->search, f->geometry / (f->build + f->search), geometry_target);
    puts("}");
}

/* Measures everything on scenes that are read; returns the exit code. */
static int measure(const struct options *o, const struct scene *raw, struct scene *ordered)
{
    struct figures f = {.rows = raw->splits[raw->level.samples]};
    struct scene_set forward = pnet_bench_scene_triplets(ordered, &o->nb),
                     backward = pnet_bench_scene_transposed(&forward.t);
    const char *wrong = NULL;
    f.triplets = forward.t.count;
    for (int w = 0; w < WIDTHS && !wrong; w++) wrong = measure_width(o, &forward, &backward, w, &f);
    if (wrong) fprintf(stderr, "pnet-bench cpu: %s is wrong\n", wrong);
    if (!wrong && !measure_geometry(raw, o, forward, &f)) {
        fprintf(stderr, "pnet-bench cpu: nanoflann counts %lld neighbours, not %lld\n",
            (long long)f.counted, (long long)f.triplets);
        wrong = "geometry";
    }
    pnet_bench_scene_set_free(&forward);
    pnet_bench_scene_set_free(&backward);
    if (wrong) return PNET_FAILED;
    if (o->json)
        print_json(&f);
    else
        print(&f);
    return 0;
}

int pnet_bench_cpu(int argc, char **argv)
{
    struct options o;
    struct scene raw = {.xyz = NULL}, ordered = {.xyz = NULL};
    struct pnet_error e;
    int code = 0;
    read_options(argc, argv, &o);
    if (pnet_bench_scene_read(&raw, o.scenes, o.scene, 1, o.cell, &e) ||
        pnet_bench_scene_read(&ordered, o.scenes, o.scene, 1, o.cell, &e)) {
        fprintf(stderr, "pnet-bench cpu: %s\n", e.message);
        code = (int)e.status;
    } else if (!pnet_bench_scene_order(&ordered, o.cell)) {
        fprintf(stderr, "pnet-bench cpu: the cell is too small for the extent of the cloud\n");
        code = PNET_BAD_DATA;
    } else {
        code = measure(&o, &raw, &ordered);
    }
    pnet_bench_scene_free(&raw);
    pnet_bench_scene_free(&ordered);
    return code;
}
