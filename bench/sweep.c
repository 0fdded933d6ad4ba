/* pnet-bench sweep: times one layer over widths, groups and sizes, and compares each row with its neighbours. */
#include <getopt.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/scene.h"
#include "bench/sweep.h"

static const char usage[] =
    "Usage: pnet-bench sweep STUDY --scene CLOUD [--scene CLOUD ...] [options]\n"
    "Times a convolution and its gradients over a range of layers, after checking each against "
    "double.\n"
    "\n"
    "  channels   3 to 512 channels, odd widths among them\n"
    "  groups     one group up to as many as there are channels\n"
    "  small      1,000 to 100,000 points with 128, 512 and 1024 channels\n"
    "  kernels    3 to 17 cells an axis with one radius\n"
    "  sizes      5,000 points up to --most, and the exponent of time over triplets from 100,000 "
    "points on\n"
    "  precisions every precision and storage of features of the device\n"
    "  spheres    the shells of balls that FlexGEMM was measured on; needs no scene\n"
    "\n"
    "  --scene CLOUD       a cloud of any format; several make a batch\n"
    "  --most N            points; a scene that has fewer is repeated in `sizes` (those of the "
    "scene)\n"
    "  --channels C        of `groups` and `precisions` (128), `kernels` and `sizes` (32)\n"
    "  --kernel K          cells an axis (3)\n"
    "  --radius R          metres (K/2 times the cell)\n"
    "  --cell V            metres: the grid the points are ordered on (0.025)\n"
    "  --mode MODE         native or voxel (native)\n"
    "  --device DEVICE     cpu or cuda (cpu)\n"
    "  --precision P       of products on a GPU: fp32, tf32, bf16 or fp16 (fp32)\n"
    "  --storage BITS      of features on a GPU: 16 with bf16 and fp16, as sessions have them, or "
    "32\n"
    "  --repeat N          timed runs, of which the median is taken (5)\n"
    "  --json              one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "`trend` is the time in that of the neighbours in the table, along a line between them on "
    "logarithmic axes;\n"
    "a row that takes more than twice as long is called a cliff.\n"
    "\n"
    "  pnet-bench sweep channels --scene room.npy --radius 0.05 --device cuda --precision bf16\n"
    "  pnet-bench sweep sizes --scene room.npy --most 20000000 --device cuda\n"
    "  pnet-bench sweep spheres --mode voxel --device cuda --precision fp16\n";

struct options {
    const char *scene[SCENES_MAX], *study;
    int scenes, channels;
    int64_t most;
    struct pnet_neighbourhood nb;
    double cell;
    struct measure_options how;
    bool json;
};

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench sweep: %s\nTry pnet-bench sweep --help.\n", message);
    exit(PNET_USAGE);
}

static double number(const char *text, double least, double most)
{
    return bench_number(text, least, most, fail_usage);
}

static void check_options(int argc, char **argv, struct options *o, double radius, int bits)
{
    if (optind + 1 != argc)
        fail_usage("which study? channels, groups, kernels, small, sizes, precisions or spheres");
    o->study = argv[optind];
    bool spheres = strcmp(o->study, "spheres") == 0;
    if (!spheres && o->scenes == 0) fail_usage("--scene is needed");
    if (spheres && o->scenes) fail_usage("spheres bring their own scenes");
    if (o->how.precision != PNET_FP32 && !o->how.cuda) fail_usage("the CPU computes fp32");
    const char *wrong = pnet_bench_measure_storage(&o->how, bits);
    if (wrong) fail_usage(wrong);
    o->nb.radius = (float)(radius > 0 ? radius : o->nb.kernel * o->cell / 2);
}

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", 1, NULL, 's'}, {"most", 1, NULL, 'x'},
        {"channels", 1, NULL, 'c'}, {"kernel", 1, NULL, 'k'}, {"radius", 1, NULL, 'r'},
        {"cell", 1, NULL, 'v'}, {"mode", 1, NULL, 'm'}, {"device", 1, NULL, 'd'},
        {"precision", 1, NULL, 'p'}, {"storage", 1, NULL, 'b'}, {"repeat", 1, NULL, 'n'},
        {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    *o = (struct options){.nb = {.kernel = 3}, .cell = 0.025, .how = {.repeat = 5}};
    double radius = 0;
    int option, bits = 0;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!pnet_bench_scene_file(o->scene, &o->scenes, optarg)) fail_usage("too many scenes");
            break;
        case 'x': o->most = (int64_t)number(optarg, 1, 1e9); break;
        case 'c': o->channels = (int)number(optarg, 1, 4096); break;
        case 'k': o->nb.kernel = (int32_t)number(optarg, 1, 15); break;
        case 'r': radius = number(optarg, 1e-6, 1e6); break;
        case 'v': o->cell = number(optarg, 1e-6, 1e6); break;
        case 'm':
            if (!pnet_bench_scene_mode(optarg, &o->nb.degrade))
                fail_usage("--mode is native or voxel");
            break;
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
        case 'n': o->how.repeat = (int)number(optarg, 1, 1000); break;
        case 'j': o->json = true; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fail_usage("unknown option, or one without its value");
        }
    }
    check_options(argc, argv, o, radius, bits);
}

static struct sweep_case layer_of(int64_t rows, int channels, int groups, int series, double x)
{
    return (struct sweep_case){
        .rows = rows, .shape = {channels, channels, groups}, .series = series, .x = x};
}

static int list_channels(const struct options *o, struct sweep_case *c)
{
    static const int width[] = {3, 16, 20, 32, 33, 64, 96, 128, 256, 512};
    enum { WIDTHS = sizeof width / sizeof *width };
    for (int i = 0; i < WIDTHS; i++) c[i] = layer_of(o->most, width[i], 1, 0, width[i]);
    return WIDTHS;
}

static int list_groups(const struct options *o, struct sweep_case *c)
{
    int count = 0, channels = o->channels ? o->channels : 128;
    for (int groups = 1; groups <= channels && count < SWEEP_MAX; groups++)
        if (channels % groups == 0 && ((groups & (groups - 1)) == 0 || groups == channels))
            c[count++] = layer_of(o->most, channels, groups, 0, groups);
    return count;
}

/* All kernels have the same neighbours, so that the number of triplets stays the same while the cells grow. */
static int list_kernels(const struct options *o, struct sweep_case *c)
{
    int count = 0, channels = o->channels ? o->channels : 32;
    for (int32_t kernel = 3; kernel <= 17; kernel += 2) {
        c[count] = layer_of(o->most, channels, 1, 0, kernel);
        c[count++].kernel = kernel;
    }
    return count;
}

static int list_small(struct sweep_case *c)
{
    static const int width[] = {128, 512, 1024}, points[] = {1000, 10000, 100000};
    for (int i = 0; i < 9; i++)
        c[i] = layer_of(points[i % 3], width[i / 3], 1, i / 3, points[i % 3]);
    return 9;
}

static int list_sizes(const struct options *o, struct sweep_case *c)
{
    static const int step[] = {1, 2, 5};
    int count = 0, channels = o->channels ? o->channels : 32;
    int64_t rows = 5000;
    for (int i = 0; rows <= o->most && count < SWEEP_MAX; i++) {
        c[count++] = layer_of(rows, channels, 1, 0, (double)rows);
        for (rows = step[i % 3]; rows <= c[count - 1].rows;) rows *= 10;
    }
    return count;
}

/* Precisions with features in 16 bits come last, because they round the inputs permanently; the finer ones come first. */
static int list_precisions(const struct options *o, struct sweep_case *c)
{
    static const struct {
        enum pnet_precision precision;
        bool narrow;
    } all[] = {{PNET_FP32, false}, {PNET_TF32, false}, {PNET_BF16, false}, {PNET_FP16, false},
        {PNET_FP16, true}, {PNET_BF16, true}};
    int count = o->how.cuda ? 6 : 1, channels = o->channels ? o->channels : 128;
    for (int i = 0; i < count; i++) {
        c[i] = layer_of(o->most, channels, 1, i, 1);
        c[i].how =
            (struct measure_options){o->how.cuda, all[i].precision, all[i].narrow, o->how.repeat};
    }
    return count;
}

/* Published times of FlexGEMM in fp16 on an H200. */
static int list_spheres(const struct options *o, struct sweep_case *c)
{
    static const struct {
        const char *scene;
        int channels;
        double forward, backward;
    } sphere[] = {{"sphere:64", 1024, 1.84e-3, 2.95e-3}, {"sphere:128", 512, 1.55e-3, 2.91e-3},
        {"sphere:256", 256, 1.37e-3, 2.74e-3}, {"sphere:512", 128, 2.09e-3, 3.63e-3}};
    for (int i = 0; i < 4; i++) {
        c[i] = layer_of(0, sphere[i].channels, 1, i, 1);
        c[i].scene = sphere[i].scene;
        if (!o->how.cuda || o->how.precision != PNET_FP16) continue;
        c[i].rival[0] = sphere[i].forward;
        c[i].rival[1] = sphere[i].backward;
    }
    return 4;
}

static int list_cases(const struct options *o, struct sweep_case *c)
{
    if (strcmp(o->study, "channels") == 0) return list_channels(o, c);
    if (strcmp(o->study, "groups") == 0) return list_groups(o, c);
    if (strcmp(o->study, "kernels") == 0) return list_kernels(o, c);
    if (strcmp(o->study, "small") == 0) return list_small(c);
    if (strcmp(o->study, "sizes") == 0) return list_sizes(o, c);
    if (strcmp(o->study, "precisions") == 0) return list_precisions(o, c);
    if (strcmp(o->study, "spheres") == 0) return list_spheres(o, c);
    fail_usage("the studies are channels, groups, kernels, small, sizes, precisions and spheres");
    return 0;
}

/* The sets and the layer of the last case: the next case often has the same. */
struct last {
    struct scene_set forward, backward;
    int64_t rows;
    int32_t kernel;
    bool sets;
    struct layer layer;
    bool filled;
};

static void drop_layer(struct last *last)
{
    if (last->filled) layer_free(&last->layer);
    last->filled = false;
}

static void drop_sets(struct last *last)
{
    drop_layer(last);
    if (!last->sets) return;
    pnet_bench_scene_set_free(&last->forward);
    pnet_bench_scene_set_free(&last->backward);
    last->sets = false;
}

static void make_layer(const struct options *o, const struct scene *scene, int64_t rows,
    int32_t kernel, struct pnet_conv_shape shape, struct last *last)
{
    if (!last->sets || last->rows != rows || last->kernel != kernel) {
        struct pnet_neighbourhood nb = o->nb;
        struct scene piece;
        nb.kernel = kernel;
        drop_sets(last);
        pnet_bench_scene_piece(scene, rows, &piece);
        last->forward = pnet_bench_scene_triplets(&piece, &nb);
        last->backward = pnet_bench_scene_transposed(&last->forward.t);
        last->rows = rows;
        last->kernel = kernel;
        last->sets = true;
    }
    const struct pnet_conv_shape *s = &last->layer.shape;
    if (last->filled && s->cin == shape.cin && s->cout == shape.cout && s->groups == shape.groups)
        return;
    drop_layer(last);
    last->layer = layer_make(&last->forward.t, &last->backward.t, shape);
    last->filled = true;
}

/* Returns the exit code; prints the error. */
static int open_scene(
    const struct options *o, int paths, const char *const *path, int times, struct scene *s)
{
    struct pnet_error e;
    if (pnet_bench_scene_read(s, paths, path, times, o->cell, &e)) {
        fprintf(stderr, "pnet-bench sweep: %s\n", e.message);
        return (int)e.status;
    }
    if (pnet_bench_scene_order(s, o->cell)) return 0;
    fprintf(stderr, "pnet-bench sweep: the cell is too small for the extent of the cloud\n");
    pnet_bench_scene_free(s);
    return PNET_BAD_DATA;
}

static int measure_case(
    const struct options *o, const struct scene *scene, struct last *last, struct sweep_case *c)
{
    int64_t rows = c->rows > 0 && c->rows < scene->level.rows ? c->rows : scene->level.rows;
    make_layer(o, scene, rows, c->kernel ? c->kernel : o->nb.kernel, c->shape, last);
    const char *why = pnet_bench_measure_layer(&c->how, &last->layer, &c->m), *wrong = NULL;
    if (why) {
        fprintf(stderr, "pnet-bench sweep: %s\n", why);
        return PNET_NO_DEVICE;
    }
    wrong = pnet_bench_measure_wrong(&c->m, c->how.precision);
    if (!wrong) return 0;
    fprintf(stderr,
        "pnet-bench sweep: %lld points, %d channels, %d groups: %s is wrong: relative errors %g, "
        "%g, %g\n",
        (long long)rows, c->shape.cin, c->shape.groups, wrong, c->m.error[0], c->m.error[1],
        c->m.error[2]);
    return PNET_FAILED;
}

/* Measures all cases; returns the code of the last failure. A case that cannot be measured at all ends the run. */
static int measure_cases(
    const struct options *o, struct scene *scene, struct sweep_case *c, int count)
{
    struct last last = {.sets = false};
    int code = 0;
    for (int i = 0; i < count && code != PNET_NO_DEVICE; i++) {
        int failed = 0;
        if (c[i].scene) {
            drop_sets(&last);
            if ((failed = open_scene(o, 1, &c[i].scene, 1, scene))) return failed;
        }
        failed = measure_case(o, scene, &last, &c[i]);
        if (failed) code = failed;
        if (c[i].scene) pnet_bench_scene_free(scene);
    }
    drop_sets(&last);
    return code;
}

/* Reads the scenes as often as `most` points need. Sets `most` to their number if it is 0 or larger. Returns the exit code. */
static int fit_scene(struct options *o, struct scene *scene)
{
    int64_t rows = scene->level.rows;
    int times = 1;
    if (strcmp(o->study, "sizes") == 0 && rows && o->most > rows)
        times = (int)((o->most + rows - 1) / rows);
    if (o->most == 0 || o->most > rows * times) o->most = rows * times;
    if (times == 1) return 0;
    pnet_bench_scene_free(scene);
    return open_scene(o, o->scenes, o->scene, times, scene);
}

/* Returns the first case that fills a device, from which on time should grow with triplets; if there are too few such cases,
   the first one. */
static int first_large(const struct sweep_case *c, int count)
{
    const int64_t large = 100000;
    int first = 0;
    while (first < count && c[first].rows < large) first++;
    return count - first >= 2 ? first : 0;
}

static void print_study(const struct options *o, const struct sweep_case *c, int count)
{
    int from = first_large(c, count), left = count - from;
    bool sizes = strcmp(o->study, "sizes") == 0 && left > 1;
    if (o->json) {
        printf("{\"study\": \"%s\", \"mode\": \"%s\", \"kernel\": %d, \"radius\": %g, ", o->study,
            o->nb.degrade ? "voxel" : "native", o->nb.kernel, (double)o->nb.radius);
        pnet_bench_sweep_print_json(stdout, c, count);
        for (int p = 0; p < PRODUCTS && sizes; p++)
            printf(", \"exponent_%s\": %.4f", pnet_bench_product_names[p],
                sweep_slope(c + from, left, p));
        printf(", \"cliffs\": %d}\n", sweep_cliffs(c, count));
        return;
    }
    pnet_bench_sweep_print(c, count);
    for (int p = 0; p < PRODUCTS && sizes; p++)
        printf("%s: time grows as triplets to the %.3f, from %lld points on\n",
            pnet_bench_product_names[p], sweep_slope(c + from, left, p), (long long)c[from].rows);
    printf("%d cliffs\n", sweep_cliffs(c, count));
}

int pnet_bench_sweep(int argc, char **argv)
{
    struct options o;
    struct scene scene = {.xyz = NULL};
    struct sweep_case c[SWEEP_MAX];
    int code = 0;
    read_options(argc, argv, &o);
    list_cases(&o, c);
    if (o.scenes && (code = open_scene(&o, o.scenes, o.scene, 1, &scene))) return code;
    if (o.scenes && (code = fit_scene(&o, &scene))) return code;
    int count = list_cases(&o, c);
    for (int i = 0; i < count; i++)
        if (c[i].how.repeat == 0) c[i].how = o.how;
    code = measure_cases(&o, &scene, c, count);
    if (o.scenes) pnet_bench_scene_free(&scene);
    if (code == PNET_NO_DEVICE) return code;
    sweep_trend(c, count);
    print_study(&o, c, count);
    return code;
}
