/* pnet-bench layer: the layers of one expression, forward and backward, as a training runs them. */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/measure.h"
#include "bench/net.h"
#include "bench/sgemm.h"
#include "runtime/base/json.h"

enum { TEXT = 4096, DENSE = 4096 };

/* Points lie in cells of a grid on the surface of a ball, one a cell, as those of a level do. */
static const double cell = 0.05;

static const char usage[] =
    "Usage: pnet-bench layer 'EXPRESSION' [options]\n"
    "The time of each layer of an expression of the language, forward and backward with all "
    "gradients, as a training\n"
    "runs it: medians. `x` has random features that take a gradient, one row a cell of `g`, a grid "
    "of 5 cm on the\n"
    "surface of a ball; `p` is the cloud. Values and gradients are checked first, as by pnet-bench "
    "net.\n"
    "\n"
    "  --points N          rows of x in each sample (20000)\n"
    "  --queries R         instead: the cloud has R x R points on a ball R cells of 5 cm across, "
    "each sample alike\n"
    "  --batch B           samples (1)\n"
    "  --channels C        of x (64)\n"
    "  --device DEVICE     cpu, cuda or cuda:N (cpu)\n"
    "  --precision P       of products on a GPU: fp32, tf32, bf16 or fp16 (fp32)\n"
    "  --flop LAYER=F      floating point operations of a layer's forward: prints its rate and, on "
    "the CPU, the rate of\n"
    "                      OpenBLAS's sgemm\n"
    "  --check-points N    of the piece that is checked (4000)\n"
    "  --repeat N          timed runs, of which the median is taken (11)\n"
    "  --json              one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "  pnet-bench layer 'x -> linear(192) -> attend(4, scope=2)' --flop attend=5.24e9\n";

struct options {
    struct net_options net;
    int64_t points;
    int32_t batch, channels, queries; /* queries: 0: none */
    char flop_layer[64];
    double flop;
};

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench layer: %s\nTry pnet-bench layer --help.\n", message);
    exit(PNET_USAGE);
}

static void read_flop(const char *text, struct options *o)
{
    const char *is = strchr(text, '=');
    if (!is || is == text || is - text >= (int)sizeof o->flop_layer)
        fail_usage("--flop is LAYER=NUMBER");
    snprintf(o->flop_layer, sizeof o->flop_layer, "%.*s", (int)(is - text), text);
    o->flop = bench_number(is + 1, 1, 1e18, fail_usage);
}

static void read_option(int option, struct options *o)
{
    struct pnet_error e;
    switch (option) {
    case 'p': o->points = (int64_t)bench_number(optarg, 1, 1e7, fail_usage); break;
    case 'b': o->batch = (int32_t)bench_number(optarg, 1, SCENES_MAX, fail_usage); break;
    case 'q': o->queries = (int32_t)bench_number(optarg, 3, 2048, fail_usage); break;
    case 'c': o->channels = (int32_t)bench_number(optarg, 1, 4096, fail_usage); break;
    case 'd':
        if (pnet_device_parse(optarg, &o->net.where, &e)) fail_usage(e.message);
        break;
    case 'P':
        if (!pnet_bench_measure_precision(optarg, &o->net.precision))
            fail_usage("--precision is fp32, tf32, bf16 or fp16");
        break;
    case 'f': read_flop(optarg, o); break;
    case 'k': o->net.check_points = (int64_t)bench_number(optarg, 1, 1e7, fail_usage); break;
    case 'r': o->net.repeat = (int)bench_number(optarg, 1, NET_REPEAT_MAX, fail_usage); break;
    case 'j': o->net.json = true; break;
    case 'h': fputs(usage, stdout); exit(0);
    default: fail_usage("unknown option, or one without its value");
    }
}

static const char *read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"points", 1, NULL, 'p'}, {"batch", 1, NULL, 'b'},
        {"queries", 1, NULL, 'q'}, {"channels", 1, NULL, 'c'}, {"device", 1, NULL, 'd'},
        {"precision", 1, NULL, 'P'}, {"flop", 1, NULL, 'f'}, {"check-points", 1, NULL, 'k'},
        {"repeat", 1, NULL, 'r'}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    *o = (struct options){.net = {.model = "pnet-bench layer",
                              .repeat = 11,
                              .seed = 1,
                              .check_points = 4000,
                              .optimizer = PNET_SGD},
        .points = 20000,
        .batch = 1,
        .channels = 64};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) read_option(option, o);
    if (optind + 1 != argc) fail_usage("one EXPRESSION is needed");
    if (o->net.precision != PNET_FP32 && o->net.where.kind == PNET_CPU)
        fail_usage("the CPU computes fp32");
    return argv[optind];
}

/* The first points along the curve of a surface that is large enough. */
static enum pnet_status make_surface(int64_t points, struct scene *s, struct pnet_error *e)
{
    char sphere[32];
    int size = 3;
    while (size < 1024 && 2.5 * size * size < (double)points + 100) size++;
    snprintf(sphere, sizeof sphere, "sphere:%d", size);
    enum pnet_status st = pnet_bench_scene_read(s, 1, (const char *const[]){sphere}, 1, cell, e);
    if (st) return st;
    if (!pnet_bench_scene_order(s, cell) || s->level.rows < points)
        return pnet_error_set(e, PNET_USAGE, "no surface of %lld points", (long long)points);
    return PNET_OK;
}

/* size x size points on a ball, as many of latitude as of longitude, half a cell within its shell of `size` cells. */
static void make_queries(int32_t size, struct scene *s)
{
    const double pi = 3.14159265358979323846, half = size / 2.0;
    *s = (struct scene){.xyz = bench_alloc((size_t)size * (size_t)size * 3 * sizeof *s->xyz)};
    float *to = s->xyz;
    for (int32_t i = 0; i < size; i++) {
        for (int32_t j = 0; j < size; j++) {
            double up = pi * (i + 0.5) / size, around = 2 * pi * j / size, r = half - 0.5;
            *to++ = (float)(cell * (half + r * sin(up) * cos(around)));
            *to++ = (float)(cell * (half + r * sin(up) * sin(around)));
            *to++ = (float)(cell * (half + r * cos(up)));
        }
    }
    s->splits[1] = (int64_t)size * size;
    s->level.samples = 1;
    pnet_bench_scene_order(s, cell);
}

/* The cloud of a sample, once a sample. */
static enum pnet_status make_scene(const struct options *o, struct scene *s, struct pnet_error *e)
{
    struct scene one = {.xyz = NULL};
    int64_t points = o->queries ? (int64_t)o->queries * o->queries : o->points;
    if (o->queries) make_queries(o->queries, &one);
    enum pnet_status st = o->queries ? PNET_OK : make_surface(points, &one, e);
    if (!st) {
        *s = (struct scene){.xyz = bench_alloc((size_t)(points * o->batch) * 3 * sizeof *s->xyz)};
        for (int32_t n = 0; n < o->batch; n++) {
            memcpy(s->xyz + 3 * points * n, one.xyz, (size_t)points * 3 * sizeof *s->xyz);
            s->splits[n + 1] = points * (n + 1);
        }
        s->level = (struct pnet_level){
            .rows = points * o->batch, .samples = o->batch, .row_splits = s->splits, .xyz = s->xyz};
    }
    pnet_bench_scene_free(&one);
    return st;
}

/* Is the step a layer of the expression? What makes `x`, and the loss, are not. */
static bool of_expression(const struct net_result *r, int i)
{
    const char *path = r->steps[i].path;
    return strncmp(path, "layer.", 6) == 0 && strncmp(path, "layer.x.", 8) != 0;
}

static void print_rate(const struct options *o, const struct net_step *s)
{
    printf("%s: %.1f GFLOP/s forward", o->flop_layer, 1e-9 * o->flop / s->forward);
    double sgemm = o->net.where.kind == PNET_CPU ? sgemm_rate(DENSE, 3) : 0;
    if (sgemm > 0)
        printf(
            ", %.2f of the %.1f of sgemm at %d", o->flop / s->forward / sgemm, 1e-9 * sgemm, DENSE);
    putchar('\n');
}

static void print(const struct options *o, const char *expression, const struct net_result *r)
{
    printf("%s: %lld rows in %d sample%s\n", expression, (long long)r->points, r->samples,
        r->samples == 1 ? "" : "s");
    printf("%-24s %10s %6s %12s %12s\n", "layer", "rows", "width", "forward ms", "backward ms");
    for (int i = 0; i < r->step_count; i++)
        if (of_expression(r, i))
            printf("%-24s %10lld %6d %12.3f %12.3f\n", r->steps[i].op, (long long)r->steps[i].rows,
                r->steps[i].width, 1e3 * r->steps[i].forward, 1e3 * r->steps[i].backward);
    printf("geometry %.3f ms, peak %.1f MiB\n", 1e3 * r->training.geometry,
        (double)r->training_peak / 1048576);
    for (int i = 0; i < r->step_count && o->flop > 0; i++)
        if (of_expression(r, i) && strcmp(r->steps[i].op, o->flop_layer) == 0)
            print_rate(o, &r->steps[i]);
}

/* Has the expression the layer whose operations are given? */
static bool has_flop_layer(const struct options *o, const struct net_result *r)
{
    for (int i = 0; i < r->step_count; i++)
        if (of_expression(r, i) && strcmp(r->steps[i].op, o->flop_layer) == 0) return true;
    return false;
}

static enum pnet_status print_json(
    const char *expression, const struct net_result *r, struct pnet_error *e)
{
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "expression", expression);
    pnet_json_int(&j, "rows", r->points);
    pnet_json_int(&j, "samples", r->samples);
    pnet_json_double(&j, "geometry_ms", 1e3 * r->training.geometry);
    pnet_json_int(&j, "peak_bytes", (int64_t)r->training_peak);
    pnet_json_begin(&j, "layers", '[');
    for (int i = 0; i < r->step_count; i++) {
        if (!of_expression(r, i)) continue;
        pnet_json_begin(&j, NULL, '{');
        pnet_json_string(&j, "layer", r->steps[i].op);
        pnet_json_int(&j, "rows", r->steps[i].rows);
        pnet_json_int(&j, "width", r->steps[i].width);
        pnet_json_double(&j, "forward_ms", 1e3 * r->steps[i].forward);
        pnet_json_double(&j, "backward_ms", 1e3 * r->steps[i].backward);
        pnet_json_end(&j, '}');
    }
    pnet_json_end(&j, ']');
    pnet_json_end(&j, '}');
    return pnet_json_print(&j, stdout, e);
}

int pnet_bench_layer(int argc, char **argv)
{
    struct options o;
    struct scene all = {.xyz = NULL}, piece;
    struct net_result r = {0};
    struct pnet_error e;
    char text[TEXT];
    const char *expression = read_options(argc, argv, &o);
    int length = snprintf(text, sizeof text,
        "pnet 1\ninput cloud { xyz : position  f : feature[%d] }\nnet layer(p: cloud) {\n"
        "  g = grid(p, 5cm)\n  x = p.f -> linear(%d) -> pool(mean, to=g)\n  return %s\n}\n"
        "y = layer(cloud)\nloss l = mse(y, y -> scale(0))\n",
        o.channels, o.channels, expression);
    if (length >= TEXT) fail_usage("EXPRESSION is too long");
    o.net.text = text;
    if (pnet_device_check(o.net.where, &e) || pnet_device_enter(o.net.where, &e) ||
        make_scene(&o, &all, &e)) {
        fprintf(stderr, "pnet-bench layer: %s\n", e.message);
        return (int)e.status;
    }
    int64_t rows = all.splits[1], checked = o.net.check_points < rows ? o.net.check_points : rows;
    pnet_bench_scene_piece(&all, checked, &piece);
    int code = pnet_bench_net_run(&o.net, &piece, &all, &r);
    if (!code && o.flop > 0 && !has_flop_layer(&o, &r)) {
        fprintf(stderr, "pnet-bench layer: --flop: the expression has no layer %s\n", o.flop_layer);
        code = PNET_USAGE;
    }
    if (!code && !o.net.json) print(&o, expression, &r);
    if (!code && o.net.json && print_json(expression, &r, &e)) {
        fprintf(stderr, "pnet-bench layer: %s\n", e.message);
        code = (int)e.status;
    }
    free(r.steps);
    pnet_bench_scene_free(&all);
    return code;
}
