/* pnet-bench ablate: measures, one question at a time as PointCNN++ asks them, what these cost: the order of triplets,
   lowering to dense products, neighbours by number, and the width of a layer. */
#include <getopt.h>
#include "bench/algo.h"
#include "bench/bench.h"
#include "bench/chart.h"
#include "bench/commands.h"
#include "bench/scene.h"
#include "runtime/base/file.h"
#include "runtime/base/guard.h"

enum { POINTS_MAX = 5, ALGOS_MAX = 4 };

static const struct study {
    const char *name, *title;
    bool widths; /* vary widths, else numbers of points */
    bool knn;
    int algos;
    enum pnet_conv_algo algo[ALGOS_MAX];
} studies[] = {
    {"sort", "The order of triplets", false, false, 4,
        {PNET_ALGO_DEFAULT, PNET_ALGO_MVMR_K, PNET_ALGO_MVMR_I, PNET_ALGO_MVMR_J}},
    {"gemm", "Lowering to dense products", false, false, 4,
        {PNET_ALGO_DEFAULT, PNET_ALGO_MVMR_K, PNET_ALGO_IM2COL, PNET_ALGO_GATHER}},
    {"knn", "Lowering to dense products, nearest neighbours", false, true, 4,
        {PNET_ALGO_DEFAULT, PNET_ALGO_MVMR_K, PNET_ALGO_IM2COL, PNET_ALGO_GATHER}},
    {"width", "The width of a layer", true, false, 4,
        {PNET_ALGO_DEFAULT, PNET_ALGO_MVMR_K, PNET_ALGO_IM2COL, PNET_ALGO_GATHER}},
};
enum { STUDIES = sizeof studies / sizeof *studies };

static const char usage[] =
    "Usage: pnet-bench ablate STUDY --scene CLOUD [--scene CLOUD ...] [options]\n"
    "Times algorithms of a convolution over a range of sizes, after checking each against double. "
    "Prints a table,\n"
    "writes PREFIX.json, and the charts PREFIX.svg (time) and PREFIX-memory.svg (lists and "
    "workspace).\n"
    "\n"
    "  sort    triplets sorted by kernel cell, output row, input row; over numbers of points\n"
    "  gemm    im2col, and gathering with a product a cell, beside them; over numbers of points\n"
    "  knn     the same with nearest neighbours\n"
    "  width   the same over 16 to 256 channels\n"
    "  map     ways to find the neighbours of voxels: pnet-bench ablate map --help\n"
    "  orders  how near points lie that attend to each other: pnet-bench ablate orders --help\n"
    "\n"
    "  --scene CLOUD       a cloud of any format; several make a batch\n"
    "  --channels C        width of input and output (64)\n"
    "  --kernel K          cells an axis (3)\n"
    "  --radius R          metres (0.05)\n"
    "  --knn N             neighbours of the study knn (16)\n"
    "  --cell V            metres: the grid the points are ordered on (0.025)\n"
    "  --product P         forward, dF or dW (forward)\n"
    "  --device DEVICE     cpu, cuda or cuda:N (cpu)\n"
    "  --repeat N          timed runs, of which the median is taken (3)\n"
    "  --output PREFIX     of the files (ablate-STUDY)\n"
    "\n"
    "  pnet-bench ablate sort --scene room.npy --channels 64 --output out/sort\n"
    "  pnet-bench ablate gemm --scene room.npy --channels 128 --device cuda\n";

struct options {
    const struct study *study;
    const char *scene[SCENES_MAX], *output;
    int scenes, channels, knn, product, repeat;
    struct pnet_neighbourhood nb;
    double cell;
    struct pnet_device where;
};

/* The measurements at one size. */
struct point {
    int64_t rows, triplets;
    int channels;
    struct algo_result result[ALGOS_MAX];
};

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench ablate: %s\nTry pnet-bench ablate --help.\n", message);
    exit(PNET_USAGE);
}

static double number(const char *text, double least, double most)
{
    return bench_number(text, least, most, fail_usage);
}

static int read_product(const char *text)
{
    for (int p = 0; p < ALGO_PRODUCTS; p++)
        if (strcmp(text, pnet_bench_algo_product_names[p]) == 0) return p;
    fail_usage("--product is forward, dF or dW");
    return 0;
}

static void read_study(int argc, char **argv, struct options *o)
{
    if (optind + 1 != argc) fail_usage("which study? sort, gemm, knn, width, map or orders");
    for (int i = 0; i < STUDIES; i++)
        if (strcmp(argv[optind], studies[i].name) == 0) o->study = &studies[i];
    if (!o->study)
        fail_usage(
            "the studies are sort, gemm, knn and width, and map and orders, which come first");
    if (o->scenes == 0) fail_usage("--scene is needed");
    if (o->study->knn) o->nb.knn = o->knn;
}

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"scene", 1, NULL, 's'}, {"channels", 1, NULL, 'c'},
        {"kernel", 1, NULL, 'k'}, {"radius", 1, NULL, 'r'}, {"knn", 1, NULL, 'm'},
        {"cell", 1, NULL, 'v'}, {"product", 1, NULL, 'p'}, {"device", 1, NULL, 'd'},
        {"repeat", 1, NULL, 'n'}, {"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    struct pnet_error e;
    int option;
    *o = (struct options){.channels = 64,
        .knn = 16,
        .repeat = 3,
        .cell = 0.025,
        .nb = {.kernel = 3, .radius = 0.05f}};
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!pnet_bench_scene_file(o->scene, &o->scenes, optarg)) fail_usage("too many scenes");
            break;
        case 'c': o->channels = (int)number(optarg, 1, 4096); break;
        case 'k': o->nb.kernel = (int32_t)number(optarg, 1, 15); break;
        case 'r': o->nb.radius = (float)number(optarg, 1e-6, 1e6); break;
        case 'm': o->knn = (int)number(optarg, 1, PNET_KNN_LIMIT); break;
        case 'v': o->cell = number(optarg, 1e-6, 1e6); break;
        case 'p': o->product = read_product(optarg); break;
        case 'd':
            if (pnet_device_parse(optarg, &o->where, &e)) fail_usage(e.message);
            break;
        case 'n': o->repeat = (int)number(optarg, 1, 1000); break;
        case 'o': o->output = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fail_usage("unknown option, or one without its value");
        }
    }
    read_study(argc, argv, o);
}

/* Returns the exit code. */
static int measure(
    const struct options *o, const struct scene *s, int64_t rows, int channels, struct point *p)
{
    struct scene piece;
    pnet_bench_scene_piece(s, rows, &piece);
    struct scene_set forward = pnet_bench_scene_triplets(&piece, &o->nb),
                     backward = pnet_bench_scene_transposed(&forward.t);
    struct layer l =
        layer_make(&forward.t, &backward.t, (struct pnet_conv_shape){channels, channels, 1});
    struct algo_room *room = pnet_bench_algo_room_new(o->where, &l);
    unsigned product = 1u << o->product;
    int code = 0;
    *p = (struct point){.rows = rows, .triplets = forward.t.count, .channels = channels};
    for (int a = 0; a < o->study->algos; a++) {
        p->result[a] = pnet_bench_algo_measure(room, o->study->algo[a], product, o->repeat);
        if (!pnet_bench_algo_wrong(&p->result[a], l.forward, product)) continue;
        fprintf(stderr, "pnet-bench ablate: %s is wrong by %s\n",
            pnet_bench_algo_product_names[o->product], pnet_conv_algo_names[o->study->algo[a]]);
        code = PNET_FAILED;
    }
    char heading[160];
    snprintf(heading, sizeof heading, "%lld points, %lld triplets, %d channels", (long long)p->rows,
        (long long)p->triplets, channels);
    pnet_bench_algo_print(p->result, o->study->algos, product, heading);
    fflush(stdout);
    pnet_bench_algo_room_free(room);
    layer_free(&l);
    pnet_bench_scene_set_free(&forward);
    pnet_bench_scene_set_free(&backward);
    return code;
}

static double memory_of(const struct options *o, const struct algo_result *r)
{
    return (double)(r->list_bytes + r->work_bytes[o->product]) / 1048576;
}

static struct chart chart_of(
    const struct options *o, const struct point *p, int count, bool memory, const char *title)
{
    const struct study *s = o->study;
    struct chart c = {.title = title,
        .x_label = s->widths ? "channels" : "points",
        .y_label = memory ? "lists and workspace, MiB" : "milliseconds",
        .points = count,
        .lines = s->algos};
    for (int i = 0; i < count; i++) {
        c.x[i] = s->widths ? p[i].channels : (double)p[i].rows;
        for (int a = 0; a < s->algos; a++) {
            const struct algo_result *r = &p[i].result[a];
            c.line[a].name = pnet_conv_algo_names[r->algo];
            c.line[a].y[i] = memory ? memory_of(o, r) : 1e3 * r->time[o->product];
        }
    }
    return c;
}

static const char *const endings[] = {".json", ".svg", "-memory.svg"};

static void name_output(const struct options *o, const char *ending, char path[PNET_PATH_MOST])
{
    snprintf(path, PNET_PATH_MOST, "%s%s%s", o->output ? "" : "ablate-",
        o->output ? o->output : o->study->name, ending);
}

/* Before anything is measured. Returns the exit code. */
static int announce_outputs(const struct options *o)
{
    char path[PNET_PATH_MOST];
    struct pnet_error e;
    for (int i = 0; i < 3; i++) {
        name_output(o, endings[i], path);
        if (!pnet_guard_output(path, &e)) continue;
        fprintf(stderr, "pnet-bench ablate: %s\n", e.message);
        return (int)e.status;
    }
    return PNET_OK;
}

/* Opens PREFIX + ending. Returns false after a message. */
static bool open_output(const struct options *o, const char *ending, struct pnet_output *out)
{
    char path[PNET_PATH_MOST];
    struct pnet_error e;
    name_output(o, ending, path);
    if (!pnet_output_open(path, out, &e)) return true;
    fprintf(stderr, "pnet-bench ablate: %s\n", e.message);
    return false;
}

/* Returns false after a message if the output could not be written in full. */
static bool close_output(struct pnet_output *out)
{
    struct pnet_error e;
    if (!pnet_output_commit(out, &e)) return true;
    fprintf(stderr, "pnet-bench ablate: %s\n", e.message);
    return false;
}

static bool write_chart(
    const struct options *o, const struct point *p, int count, bool memory, const char *ending)
{
    char title[160];
    struct pnet_output out;
    if (!open_output(o, ending, &out)) return false;
    if (o->study->widths)
        snprintf(title, sizeof title, "%s: %s, %lld points", o->study->title,
            pnet_bench_algo_product_names[o->product], (long long)p->rows);
    else
        snprintf(title, sizeof title, "%s: %s, %d channels", o->study->title,
            pnet_bench_algo_product_names[o->product], p->channels);
    struct chart c = chart_of(o, p, count, memory, title);
    pnet_bench_chart_write(out.file, &c);
    return close_output(&out);
}

static bool write_json(const struct options *o, const struct point *p, int count)
{
    struct pnet_output file;
    if (!open_output(o, endings[0], &file)) return false;
    FILE *out = file.file;
    fprintf(out, "{\"study\": \"%s\", \"product\": \"%s\", \"device\": \"%s\", \"kernel\": %d, ",
        o->study->name, pnet_bench_algo_product_names[o->product],
        o->where.kind == PNET_CPU ? "cpu" : "cuda", o->nb.kernel);
    if (o->nb.knn)
        fprintf(out, "\"knn\": %d, \"sizes\": [", o->nb.knn);
    else
        fprintf(out, "\"radius\": %g, \"sizes\": [", (double)o->nb.radius);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s{\"rows\": %lld, \"triplets\": %lld, \"channels\": %d, ", i ? ", " : "",
            (long long)p[i].rows, (long long)p[i].triplets, p[i].channels);
        pnet_bench_algo_print_json(out, p[i].result, o->study->algos, 1u << o->product);
        fputs("}", out);
    }
    fputs("]}\n", out);
    return close_output(&file);
}

int pnet_bench_ablate(int argc, char **argv)
{
    struct options o;
    struct scene s;
    struct pnet_error e;
    struct point p[POINTS_MAX];
    int count = 0, code = 0;
    if (argc > 1 && strcmp(argv[1], "map") == 0) return pnet_bench_ablate_map(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "orders") == 0)
        return pnet_bench_ablate_orders(argc - 1, argv + 1);
    read_options(argc, argv, &o);
    if ((code = announce_outputs(&o))) return code;
    if (pnet_device_check(o.where, &e) || pnet_device_enter(o.where, &e) ||
        pnet_bench_scene_read(&s, o.scenes, o.scene, 1, o.cell, &e)) {
        fprintf(stderr, "pnet-bench ablate: %s\n", e.message);
        return (int)e.status;
    }
    if (!pnet_bench_scene_order(&s, o.cell)) {
        fprintf(stderr, "pnet-bench ablate: the cell is too small for the extent of the cloud\n");
        return PNET_BAD_DATA;
    }
    for (int i = 0; i < (o.study->widths ? 5 : 4); i++, count++) {
        int64_t rows = o.study->widths ? s.level.rows : s.level.rows >> (3 - i);
        int wrong = measure(&o, &s, rows, o.study->widths ? 16 << i : o.channels, &p[count]);
        if (wrong) code = wrong;
    }
    pnet_bench_scene_free(&s);
    if (!write_json(&o, p, count) || !write_chart(&o, p, count, false, endings[1]) ||
        !write_chart(&o, p, count, true, endings[2]))
        return PNET_FAILED;
    return code;
}
