/* pnet-bench conv: times one convolution layer and compares it with the limits of the machine. */
#include <getopt.h>
#include <omp.h>
#include "bench/algo.h"
#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/conv_cuda.h"
#include "bench/measure.h"
#include "bench/scene.h"
#include "bench/sgemm.h"

static const char usage[] =
    "Usage: pnet-bench conv --scene CLOUD [--scene CLOUD ...] --channels CIN,COUT [options]\n"
    "Times a convolution and its gradients, after checking them against double: with rows along "
    "the\n"
    "curve of the grid, and with the same rows at random.\n"
    "\n"
    "  --scene CLOUD       a cloud of any format; several make a batch\n"
    "  --channels CIN,COUT widths of the layer\n"
    "  --kernel K          cells an axis (3)\n"
    "  --radius R          metres (K/2 times the cell)\n"
    "  --cell V            metres: the grid the points are ordered on (0.025)\n"
    "  --mode MODE         native or voxel (native)\n"
    "  --groups G          groups of channels (1)\n"
    "  --device DEVICE     cpu or cuda (cpu)\n"
    "  --precision P       of products on a GPU: fp32, tf32, bf16 or fp16 (fp32)\n"
    "  --storage BITS      of features on a GPU: 16 with bf16 and fp16, as sessions have them, or "
    "32\n"
    "  --algo NAME         all, or mvmr-k, mvmr-i, mvmr-j, im2col, gather-gemm-scatter, "
    "implicit-gemm,\n"
    "                      default: how the sums are made, in fp32; a table of their times\n"
    "  --repeat N          timed runs, of which the median is taken (5)\n"
    "  --json              one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "Threads: OMP_NUM_THREADS. Instruction set: PNET_ISA=base|avx2|avx512 chooses a lower one.\n"
    "\n"
    "  pnet-bench conv --scene room.npy --radius 0.05 --kernel 3 --channels 64,64\n"
    "  pnet-bench conv --scene room.npy --cell 0.025 --mode voxel --channels 32,64 --json\n"
    "  pnet-bench conv --scene room.npy --channels 128,128 --device cuda --precision bf16\n"
    "  pnet-bench conv --scene room.npy --radius 0.05 --channels 64,64 --algo all\n";

struct options {
    const char *scene[SCENES_MAX];
    int scenes;
    struct pnet_conv_shape shape;
    struct pnet_neighbourhood nb;
    double cell;
    struct measure_options how;
    bool json;
    bool compare; /* algorithms: from first_algo to last_algo */
    enum pnet_conv_algo first_algo, last_algo;
};

struct result {
    struct measured m, mixed; /* rows along the curve, and at random */
    double
        plain; /* seconds of the plain loop, one thread's time divided by the number of threads */
    double sgemm; /* FLOP/s; 0: not measured */
    struct cuda_ceilings ceilings;
};

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench conv: %s\nTry pnet-bench conv --help.\n", message);
    exit(PNET_USAGE);
}

static double number(const char *text, double least, double most)
{
    return bench_number(text, least, most, fail_usage);
}

static void read_channels(const char *text, struct pnet_conv_shape *s)
{
    int used = 0;
    if (sscanf(text, "%d,%d%n", &s->cin, &s->cout, &used) != 2 || text[used] || s->cin < 1 ||
        s->cout < 1 || s->cin > 4096 || s->cout > 4096)
        fail_usage("--channels takes two widths from 1 to 4096: 64,64");
}

static void read_algo(const char *text, struct options *o)
{
    o->compare = true;
    o->first_algo = PNET_ALGO_DEFAULT;
    o->last_algo = PNET_ALGO_IMPLICIT;
    if (strcmp(text, "all") == 0) return;
    if (!pnet_conv_algo_parse(text, &o->first_algo))
        fail_usage("--algo is all, default, mvmr-k, mvmr-i, mvmr-j, im2col, gather-gemm-scatter or "
                   "implicit-gemm");
    o->last_algo = o->first_algo;
}

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", 1, NULL, 's'}, {"channels", 1, NULL, 'c'},
        {"kernel", 1, NULL, 'k'}, {"radius", 1, NULL, 'r'}, {"cell", 1, NULL, 'v'},
        {"mode", 1, NULL, 'm'}, {"groups", 1, NULL, 'g'}, {"device", 1, NULL, 'd'},
        {"precision", 1, NULL, 'p'}, {"storage", 1, NULL, 'b'}, {"algo", 1, NULL, 'a'},
        {"repeat", 1, NULL, 'n'}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    *o = (struct options){
        .shape = {0, 0, 1}, .nb = {.kernel = 3}, .cell = 0.025, .how = {.repeat = 5}};
    double radius = 0;
    int option, bits = 0;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!pnet_bench_scene_file(o->scene, &o->scenes, optarg)) fail_usage("too many scenes");
            break;
        case 'c': read_channels(optarg, &o->shape); break;
        case 'k': o->nb.kernel = (int32_t)number(optarg, 1, 15); break;
        case 'r': radius = number(optarg, 1e-6, 1e6); break;
        case 'v': o->cell = number(optarg, 1e-6, 1e6); break;
        case 'm':
            if (!pnet_bench_scene_mode(optarg, &o->nb.degrade))
                fail_usage("--mode is native or voxel");
            break;
        case 'g': o->shape.groups = (int32_t)number(optarg, 1, 4096); break;
        case 'd':
            if (strcmp(optarg, "cpu") != 0 && strcmp(optarg, "cuda") != 0)
                fail_usage("--device is cpu or cuda");
            o->how.cuda = strcmp(optarg, "cuda") == 0;
            break;
        case 'p':
            if (!pnet_bench_measure_precision(optarg, &o->how.precision))
                fail_usage("--precision is fp32, tf32, bf16 or fp16");
            break;
        case 'b': bits = (int)number(optarg, 16, 32); break;
        case 'a': read_algo(optarg, o); break;
        case 'n': o->how.repeat = (int)number(optarg, 1, 1000); break;
        case 'j': o->json = true; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fail_usage("unknown option, or one without its value");
        }
    }
    if (optind < argc || o->scenes == 0 || o->shape.cin == 0)
        fail_usage("--scene and --channels are needed");
    if (o->shape.cin % o->shape.groups || o->shape.cout % o->shape.groups)
        fail_usage("the groups do not divide the channels");
    if (o->how.precision != PNET_FP32 && !o->how.cuda) fail_usage("the CPU computes fp32");
    if (o->how.precision != PNET_FP32 && o->compare) fail_usage("--algo computes in fp32");
    const char *wrong = pnet_bench_measure_storage(&o->how, bits);
    if (wrong) fail_usage(wrong);
    o->nb.radius = (float)(radius > 0 ? radius : o->nb.kernel * o->cell / 2);
}

/* The plain loop takes seconds, so it runs on a stretch in the middle, and its time is scaled by the number of triplets. */
static double time_plain(const struct layer *l)
{
    enum { ROWS = 4096 };
    const struct pnet_triplets *t = l->forward;
    int64_t first = t->rows > ROWS ? (t->rows - ROWS) / 2 : 0,
            end = t->rows > ROWS ? first + ROWS : t->rows;
    int64_t count = t->start[end] - t->start[first];
    float *out = bench_alloc((size_t)(end - first) * (size_t)l->shape.cout * sizeof *out);
    double begin = bench_now();
    layer_plain(l, first, end, out);
    double seconds = bench_now() - begin;
    free(out);
    return count > 0 ? seconds * (double)t->count / (double)count / omp_get_max_threads() : 0;
}

static struct result measure(
    const struct options *o, struct scene_set *forward, struct scene_set *backward)
{
    struct layer l = layer_make(&forward->t, &backward->t, o->shape);
    struct result r = {.sgemm = o->how.cuda ? 0 : sgemm_rate(4096, 3)};
    const char *why = pnet_bench_measure_layer(&o->how, &l, &r.m);
    if (!why && !o->how.cuda) r.plain = time_plain(&l);
    if (!why) {
        pnet_bench_scene_mix(forward, backward);
        why = pnet_bench_measure_layer(&o->how, &l, &r.mixed);
    }
    if (!why && o->how.cuda) why = pnet_bench_conv_cuda_ceilings(o->how.precision, &r.ceilings);
    if (why) {
        fprintf(stderr, "pnet-bench conv: %s\n", why);
        exit(PNET_NO_DEVICE);
    }
    layer_free(&l);
    return r;
}

static void print_cpu(const struct result *r)
{
    printf("%s, %d threads, workspace %.1f MiB\n", pnet_cpu_isa(), omp_get_max_threads(),
        (double)r->m.work_bytes / 1048576);
    for (int i = 0; i < 3; i++) {
        printf("  %-8s %9.2f ms  %8.1f useful GFLOP/s", pnet_bench_product_names[i],
            1e3 * r->m.time[i], 1e-9 * r->m.work / r->m.time[i]);
        if (r->sgemm > 0) printf("  %5.2f of sgemm", r->m.work / r->m.time[i] / r->sgemm);
        printf("  %5.2f of forward  rows at random %9.2f ms  error %.1e\n",
            r->m.time[i] / r->m.time[0], 1e3 * r->mixed.time[i], r->m.error[i]);
    }
    printf("  %-8s %9.2f ms  %8.1f times the forward\n", "plain", 1e3 * r->plain,
        r->plain / r->m.time[0]);
    if (r->sgemm > 0) printf("  sgemm at 4096^3 %.1f GFLOP/s\n", 1e-9 * r->sgemm);
}

static void print_cuda(const struct options *o, const struct result *r)
{
    double runs = r->m.work * (double)r->m.runs / (double)(r->m.triplets > 0 ? r->m.triplets : 1);
    printf("cuda, %s, features in %d bits, workspace %.1f MiB\n",
        pnet_bench_precision_names[o->how.precision], o->how.narrow ? 16 : 32,
        (double)r->m.work_bytes / 1048576);
    for (int i = 0; i < 3; i++)
        printf("  %-8s %9.3f ms  %7.1f useful TFLOP/s  %5.2f of dense  %5.2f without the sums of "
               "runs  rows at random %9.3f ms  error %.1e\n",
            pnet_bench_product_names[i], 1e3 * r->m.time[i], 1e-12 * r->m.work / r->m.time[i],
            r->m.work / r->m.time[i] / r->ceilings.gemm, runs / r->m.time[i] / r->ceilings.gemm,
            1e3 * r->mixed.time[i], r->m.error[i]);
    printf("  %-8s %9.3f ms for both sets\n", "tiles", 1e3 * r->m.tiles);
    printf("  copy %.2f TB/s, dense product %.1f TFLOP/s\n", 1e-12 * r->ceilings.copy,
        1e-12 * r->ceilings.gemm);
}

static void print_text(const struct options *o, const struct result *r)
{
    printf("%d -> %d channels, %d group%s, K=%d, radius %g m%s: N %lld, T %lld, U %lld\n",
        o->shape.cin, o->shape.cout, o->shape.groups, o->shape.groups > 1 ? "s" : "", o->nb.kernel,
        (double)o->nb.radius, o->nb.degrade ? ", voxel" : "", (long long)r->m.rows,
        (long long)r->m.triplets, (long long)r->m.runs);
    if (o->how.cuda)
        print_cuda(o, r);
    else
        print_cpu(r);
}

static void print_json(const struct options *o, const struct result *r)
{
    printf("{\"cin\": %d, \"cout\": %d, \"groups\": %d, \"kernel\": %d, \"radius\": %g, \"mode\": "
           "\"%s\", ",
        o->shape.cin, o->shape.cout, o->shape.groups, o->nb.kernel, (double)o->nb.radius,
        o->nb.degrade ? "voxel" : "native");
    printf("\"rows\": %lld, \"triplets\": %lld, \"cell_runs\": %lld, \"workspace_bytes\": %zu",
        (long long)r->m.rows, (long long)r->m.triplets, (long long)r->m.runs, r->m.work_bytes);
    for (int i = 0; i < 3; i++)
        printf(", \"%s\": {\"time_ms\": %.3f, \"random_ms\": %.3f, \"useful_gflops\": %.2f, "
               "\"error\": %.3e}",
            pnet_bench_product_names[i], 1e3 * r->m.time[i], 1e3 * r->mixed.time[i],
            1e-9 * r->m.work / r->m.time[i], r->m.error[i]);
    if (o->how.cuda)
        printf(
            ", \"device\": \"cuda\", \"precision\": \"%s\", \"storage\": %d, \"copy_tbs\": %.3f, "
            "\"dense_tflops\": %.2f, \"tiles_ms\": %.3f}\n",
            pnet_bench_precision_names[o->how.precision], o->how.narrow ? 16 : 32,
            1e-12 * r->ceilings.copy, 1e-12 * r->ceilings.gemm, 1e3 * r->m.tiles);
    else
        printf(", \"device\": \"cpu\", \"isa\": \"%s\", \"threads\": %d, \"plain_ms\": %.3f, "
               "\"sgemm_gflops\": %.2f}\n",
            pnet_cpu_isa(), omp_get_max_threads(), 1e3 * r->plain, 1e-9 * r->sgemm);
}

/* Measures one algorithm after the other. */
static int compare(
    const struct options *o, const struct scene_set *forward, const struct scene_set *backward)
{
    struct layer l = layer_make(&forward->t, &backward->t, o->shape);
    struct pnet_device where = {o->how.cuda ? PNET_CUDA : PNET_CPU, 0};
    struct pnet_error e;
    if (pnet_device_check(where, &e) || pnet_device_enter(where, &e)) {
        fprintf(stderr, "pnet-bench conv: %s\n", e.message);
        return (int)e.status;
    }
    struct algo_room *room = pnet_bench_algo_room_new(where, &l);
    struct algo_result r[PNET_ALGO_COUNT];
    int count = 0, status = 0;
    for (int a = (int)o->first_algo; a <= (int)o->last_algo; a++, count++) {
        r[count] = pnet_bench_algo_measure(room, (enum pnet_conv_algo)a, ALGO_ALL, o->how.repeat);
        const char *wrong = pnet_bench_algo_wrong(&r[count], l.forward, ALGO_ALL);
        if (!wrong) continue;
        fprintf(stderr, "pnet-bench conv: %s is wrong by %s\n", wrong, pnet_conv_algo_names[a]);
        status = PNET_FAILED;
    }
    char heading[200];
    snprintf(heading, sizeof heading,
        "%d -> %d channels, K=%d, radius %g m%s, %s: N %lld, T %lld, U %lld", l.shape.cin,
        l.shape.cout, o->nb.kernel, (double)o->nb.radius, o->nb.degrade ? ", voxel" : "",
        o->how.cuda ? "cuda" : pnet_cpu_isa(), (long long)forward->t.rows,
        (long long)forward->t.count, (long long)pnet_cpu_cell_runs(&forward->t));
    if (o->json) {
        printf("{\"cin\": %d, \"cout\": %d, \"rows\": %lld, \"triplets\": %lld, ", l.shape.cin,
            l.shape.cout, (long long)forward->t.rows, (long long)forward->t.count);
        pnet_bench_algo_print_json(stdout, r, count, ALGO_ALL);
        puts("}");
    } else {
        pnet_bench_algo_print(r, count, ALGO_ALL, heading);
    }
    pnet_bench_algo_room_free(room);
    layer_free(&l);
    return status;
}

int pnet_bench_conv(int argc, char **argv)
{
    struct options o;
    struct scene scene;
    struct pnet_error e;
    read_options(argc, argv, &o);
    if (pnet_bench_scene_read(&scene, o.scenes, o.scene, 1, o.cell, &e) != PNET_OK) {
        fprintf(stderr, "pnet-bench conv: %s\n", e.message);
        return (int)e.status;
    }
    if (!pnet_bench_scene_order(&scene, o.cell)) {
        fprintf(stderr, "pnet-bench conv: the cell is too small for the extent of the cloud\n");
        return PNET_BAD_DATA;
    }
    struct scene_set forward = pnet_bench_scene_triplets(&scene, &o.nb),
                     backward = pnet_bench_scene_transposed(&forward.t);
    if (o.compare) {
        int status = compare(&o, &forward, &backward);
        pnet_bench_scene_set_free(&forward);
        pnet_bench_scene_set_free(&backward);
        pnet_bench_scene_free(&scene);
        return status;
    }
    struct result r = measure(&o, &forward, &backward);
    pnet_bench_scene_set_free(&forward);
    pnet_bench_scene_set_free(&backward);
    pnet_bench_scene_free(&scene);
    const struct measured *both[] = {&r.m, &r.mixed};
    for (int i = 0; i < 2; i++) {
        const char *wrong = pnet_bench_measure_wrong(both[i], o.how.precision);
        if (!wrong) continue;
        fprintf(stderr, "pnet-bench conv: %s is wrong%s: relative errors %g, %g, %g\n", wrong,
            i ? " with rows at random" : "", both[i]->error[0], both[i]->error[1],
            both[i]->error[2]);
        return PNET_FAILED;
    }
    if (o.json)
        print_json(&o, &r);
    else
        print_text(&o, &r);
    return 0;
}
