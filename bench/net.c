/* pnet-bench net: forward, backward, geometry and optimiser of a whole network, and where the time goes. */
#include "bench/net.h"

#include <getopt.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/measure.h"
#include "bench/net_gradients.h"

static const char usage[] =
    "Usage: pnet-bench net MODEL.pnet --scene CLOUD [--scene CLOUD ...] [options]\n"
    "Times a network on a batch: forward in inference, and forward, backward and optimiser of a "
    "training step, with and\n"
    "without the geometry, and what each stage and layer takes of it. First checks the loss and "
    "all gradients on a piece\n"
    "of the batch, pulled apart, against the CPU's listings without fusion: in fp32, and in the "
    "precision that is timed.\n"
    "Features and labels are random. On a GPU layers are timed where they stand in the recorded "
    "passes, between marks\n"
    "whose own cost is taken off; the line 'recorded' has the passes without marks.\n"
    "\n"
    "  --scene CLOUD       a cloud of any format; several make a batch\n"
    "  --most N            points, the first along the curve (all)\n"
    "  --thin V            metres: keeps one point in each cell of a grid first (all are kept)\n"
    "  --set NAME=VALUE    a param of the model\n"
    "  --mode MODE         native or voxel (native)\n"
    "  --device DEVICE     cpu, cuda or cuda:N (cpu)\n"
    "  --precision P       of products on a GPU: fp32, tf32, bf16 or fp16 (fp32)\n"
    "  --optimizer NAME    sgd, adam or adamw (adamw)\n"
    "  --check-points N    of the piece that is checked (8000)\n"
    "  --seed N            of weights, features, labels and dropout (1)\n"
    "  --layers            a line for every layer\n"
    "  --gradients         what the error of the gradients is made of, by level and by parameter, "
    "instead of times:\n"
    "                      of every precision of the device; shares and order are of --precision\n"
    "  --all               with --gradients: every parameter, not ten\n"
    "  --write FOLDER      with --gradients: writes network, batch and gradients for "
    "bench/autocast.py\n"
    "  --repeat N          timed runs, of which the median is taken (5)\n"
    "  --json              one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "  pnet-bench net models/resnet18.pnet --scene room.npy\n"
    "  pnet-bench net models/minkunet18a.pnet --scene room.npy --device cuda --precision bf16 "
    "--layers\n"
    "  pnet-bench net models/fcgf.pnet --scene room.npy --device cuda --precision bf16 "
    "--gradients\n";

/* Edge of the cells that the points are ordered by before a piece is cut out, metres, if they are not thinned. */
static const double order_cell = 0.025;

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench net: %s\nTry pnet-bench net --help.\n", message);
    exit(PNET_USAGE);
}

static double number(const char *text, double least, double most)
{
    return bench_number(text, least, most, fail_usage);
}

static void read_optimizer(const char *text, struct net_options *o)
{
    for (int i = 0; i < PNET_OPTIMS; i++) {
        if (strcmp(text, pnet_optim_names[i]) != 0) continue;
        o->optimizer = (enum pnet_optim_kind)i;
        return;
    }
    fail_usage("--optimizer is sgd, adam or adamw");
}

static void read_option(int option, struct net_options *o)
{
    struct pnet_error e;
    switch (option) {
    case 's':
        if (!pnet_bench_scene_file(o->scene, &o->scenes, optarg)) fail_usage("too many scenes");
        break;
    case 'e':
        if (o->sets == NET_SETS_MAX) fail_usage("too many --set");
        o->set[o->sets++] = optarg;
        break;
    case 't': o->thin = number(optarg, 1e-6, 1e3); break;
    case 'x': o->most = (int64_t)number(optarg, 1, 1e9); break;
    case 'c': o->check_points = (int64_t)number(optarg, 1, 1e9); break;
    case 'm':
        if (!pnet_bench_scene_mode(optarg, &o->degrade)) fail_usage("--mode is native or voxel");
        break;
    case 'd':
        if (pnet_device_parse(optarg, &o->where, &e)) fail_usage(e.message);
        break;
    case 'p':
        if (!pnet_bench_measure_precision(optarg, &o->precision))
            fail_usage("--precision is fp32, tf32, bf16 or fp16");
        break;
    case 'o': read_optimizer(optarg, o); break;
    case 'n': o->repeat = (int)number(optarg, 1, NET_REPEAT_MAX); break;
    case 'r': o->seed = (uint64_t)number(optarg, 1, 1e6); break;
    case 'l': o->layers = true; break;
    case 'g': o->gradients = true; break;
    case 'a': o->all = true; break;
    case 'w': o->write = optarg; break;
    case 'j': o->json = true; break;
    case 'h': fputs(usage, stdout); exit(0);
    default: fail_usage("unknown option, or one without its value");
    }
}

static void read_options(int argc, char **argv, struct net_options *o)
{
    static const struct option names[] = {{"scene", 1, NULL, 's'}, {"set", 1, NULL, 'e'},
        {"most", 1, NULL, 'x'}, {"thin", 1, NULL, 't'}, {"check-points", 1, NULL, 'c'},
        {"mode", 1, NULL, 'm'}, {"device", 1, NULL, 'd'}, {"precision", 1, NULL, 'p'},
        {"optimizer", 1, NULL, 'o'}, {"repeat", 1, NULL, 'n'}, {"seed", 1, NULL, 'r'},
        {"layers", 0, NULL, 'l'}, {"json", 0, NULL, 'j'}, {"gradients", 0, NULL, 'g'},
        {"all", 0, NULL, 'a'}, {"write", 1, NULL, 'w'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    *o =
        (struct net_options){.repeat = 5, .seed = 1, .check_points = 8000, .optimizer = PNET_ADAMW};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) read_option(option, o);
    if (optind + 1 != argc) fail_usage("which model?");
    if (o->scenes == 0) fail_usage("--scene is needed");
    if (o->precision != PNET_FP32 && o->where.kind == PNET_CPU) fail_usage("the CPU computes fp32");
    if ((o->all || o->write) && !o->gradients) fail_usage("--all and --write go with --gradients");
    o->model = argv[optind];
}

/* Returns the exit code; prints the error. */
static int open_scene(const struct net_options *o, struct scene *s)
{
    double cell = o->thin > 0 ? o->thin : order_cell;
    struct pnet_error e;
    if (pnet_device_check(o->where, &e) || pnet_device_enter(o->where, &e) ||
        pnet_bench_scene_read(s, o->scenes, o->scene, 1, cell, &e)) {
        fprintf(stderr, "pnet-bench net: %s\n", e.message);
        return (int)e.status;
    }
    if (!pnet_bench_scene_order(s, cell)) {
        fprintf(stderr, "pnet-bench net: the cloud reaches too far\n");
        pnet_bench_scene_free(s);
        return PNET_BAD_DATA;
    }
    if (o->thin > 0) pnet_bench_scene_thin(s);
    return 0;
}

/* Checks a piece of the scene in stretches that are moved apart, so that levels of large cells have several rows too. */
static void check_piece(const struct scene *all, int64_t rows, struct scene *piece)
{
    enum { STRETCH = 512 };
    const float apart = 10; /* metres */
    pnet_bench_scene_piece(all, rows, piece);
    float *xyz = bench_alloc((size_t)piece->level.rows * 3 * sizeof *xyz);
    memcpy(xyz, all->level.xyz, (size_t)piece->level.rows * 3 * sizeof *xyz);
    for (int64_t i = 0; i < piece->level.rows; i++) {
        int64_t stretch = i / STRETCH;
        xyz[3 * i] += apart * (float)stretch;
    }
    piece->xyz = xyz;
    piece->key = NULL;
    piece->level.xyz = xyz;
    piece->level.key = NULL;
}

static int measure(const struct net_options *o, const struct scene *piece, const struct scene *all)
{
    struct net_result r = {0};
    struct pnet_error e;
    int code = pnet_bench_net_run(o, piece, all, &r);
    if (!code && o->json && pnet_bench_net_print_json(o, &r, &e)) {
        fprintf(stderr, "pnet-bench net: %s\n", e.message);
        code = (int)e.status;
    } else if (!code && !o->json) {
        pnet_bench_net_print(o, &r);
    }
    free(r.steps);
    return code;
}

int pnet_bench_net(int argc, char **argv)
{
    struct net_options o;
    struct scene scene = {.xyz = NULL}, all, piece;
    read_options(argc, argv, &o);
    int code = open_scene(&o, &scene);
    if (code) return code;
    int64_t rows = o.most && o.most < scene.level.rows ? o.most : scene.level.rows;
    pnet_bench_scene_piece(&scene, rows, &all);
    check_piece(&all, o.check_points < rows ? o.check_points : rows, &piece);
    code = o.gradients ? pnet_bench_net_gradients_run(&o, &piece) : measure(&o, &piece, &all);
    pnet_bench_scene_free(&piece);
    pnet_bench_scene_free(&scene);
    return code;
}
