/* pnet-bench loss: a loss between two point sets, forward and backward, as a training runs it. */
#include <getopt.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "bench/kdtree.h"
#include "compiler/compile.h"
#include "kernels/conv.h"
#include "kernels/philox.h"
#include "runtime/device/device_time.h"
#include "runtime/run/runner.h"
#include "runtime/train/evaluate.h"
#ifdef PNET_CUDA_BUILT
#include "kernels/cuda/conv/conv_clock.h"
#endif

enum { REPEAT_MAX = 1001, SEED = 5 };
enum set { CUBE, SPHERE, COLLAPSED };
static const char *const set_names[] = {"cube", "sphere", "collapsed"};

static const char usage[] =
    "Usage: pnet-bench loss NAME [options]\n"
    "The time of NAME(a, b), a loss between two point sets, forward and backward with the "
    "gradients of both sets: medians,\n"
    "and the peak of the memory that is planned. On the CPU, where the program was built with "
    "nanoflann: beside the time in\n"
    "which nanoflann builds its trees and finds the two nearest points of the other set for each "
    "point, in turns. On a GPU:\n"
    "of replays, by events. bench/losses.sh makes a table. Of apml also the metric apml_support, "
    "which is neither in the time\n"
    "nor in the peak: how many points of the other set a point has, and the share of points that "
    "lose some of them to `most`\n"
    "or `entries`.\n"
    "\n"
    "  --points N          of each set, in each sample (2048)\n"
    "  --batch B           samples (1)\n"
    "  --set KIND          cube: both sets fill a cube; sphere: b lies on a sphere, a too, but for "
    "the noise;\n"
    "                      collapsed: a lies within the noise of the sphere's middle (sphere)\n"
    "  --noise S           standard deviation a coordinate, the radius being 1 (0.01)\n"
    "  --with ARGUMENTS    of the loss, such as tau=1e-10,most=32\n"
    "  --device DEVICE     cpu, cuda or cuda:N (cpu)\n"
    "  --repeat N          of which the median is taken (11)\n"
    "  --seconds S         no round begins later than that after the first one began (1000)\n"
    "  --json              one JSON object on standard output\n"
    "  --help\n"
    "\n"
    "  pnet-bench loss apml --points 16384 --batch 1\n"
    "  pnet-bench loss chamfer --points 2048 --batch 32 --device cuda\n";

struct options {
    const char *name, *with;
    int64_t points;
    int32_t batch;
    enum set set;
    double noise, seconds;
    int repeat;
    struct pnet_device device;
    bool json;
};

enum { FORWARD, BACKWARD, BUILD, SEARCH, TIMES };

/* Medians of so many rounds, in seconds; 0: not measured. */
struct figures {
    double loss, median[TIMES];
    int rounds;
    size_t peak;
    bool
        support_there; /* of apml: points in a support, in the mean and at most, and the share of supports that are cut */
    double support, largest, cut;
};

static void fail_usage(const char *message)
{
    fprintf(stderr, "pnet-bench loss: %s\nTry pnet-bench loss --help.\n", message);
    exit(PNET_USAGE);
}

static enum set set_of(const char *name)
{
    for (int i = 0; i <= COLLAPSED; i++)
        if (strcmp(name, set_names[i]) == 0) return (enum set)i;
    fail_usage("--set is cube, sphere or collapsed");
    return CUBE;
}

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"points", 1, NULL, 'p'}, {"batch", 1, NULL, 'b'},
        {"set", 1, NULL, 's'}, {"noise", 1, NULL, 'n'}, {"with", 1, NULL, 'w'},
        {"device", 1, NULL, 'd'}, {"repeat", 1, NULL, 'r'}, {"seconds", 1, NULL, 't'},
        {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    *o = (struct options){
        .points = 2048, .batch = 1, .set = SPHERE, .noise = 0.01, .repeat = 11, .seconds = 1000};
    struct pnet_error e;
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'p': o->points = (int64_t)bench_number(optarg, 1, 1e8, fail_usage); break;
        case 'b': o->batch = (int32_t)bench_number(optarg, 1, 4096, fail_usage); break;
        case 's': o->set = set_of(optarg); break;
        case 'n': o->noise = bench_number(optarg, 0, 1e3, fail_usage); break;
        case 'w': o->with = optarg; break;
        case 'd':
            if (pnet_device_parse(optarg, &o->device, &e)) fail_usage(e.message);
            break;
        case 't': o->seconds = bench_number(optarg, 0, 1e9, fail_usage); break;
        case 'r': o->repeat = (int)bench_number(optarg, 1, REPEAT_MAX, fail_usage); break;
        case 'j': o->json = true; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fail_usage("unknown option, or one without its value");
        }
    }
    if (optind + 1 != argc) fail_usage("one NAME is needed: that of a loss");
    o->name = argv[optind];
}

/* Two numbers from the normal distribution. */
static void normal(const struct pnet_rand *r, uint64_t draw, double to[2])
{
    double radius = sqrt(-2 * log(1 - (double)pnet_rand_unit(r, 2 * draw))),
           angle = 2 * M_PI * (double)pnet_rand_unit(r, 2 * draw + 1);
    to[0] = radius * cos(angle);
    to[1] = radius * sin(angle);
}

/* Point i of a set: `predicted` is a. */
static void draw_point(const struct options *o, bool predicted, int64_t i, float to[3])
{
    struct pnet_rand r = {.seed = SEED, .purpose = PNET_DRAW_TEST, .a = predicted};
    double d[4], noise[4];
    if (o->set == CUBE) {
        for (int a = 0; a < 3; a++) to[a] = pnet_rand_unit(&r, (uint64_t)(3 * i + a));
        return;
    }
    for (int k = 0; k < 2; k++) {
        normal(&r, (uint64_t)(4 * i + k), d + 2 * k);
        normal(&r, (uint64_t)(4 * i + 2 + k), noise + 2 * k);
    }
    double length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    for (int a = 0; a < 3; a++) {
        double at = predicted && o->set == COLLAPSED ? 0 : d[a] / (length > 0 ? length : 1);
        to[a] = (float)(at + (predicted ? o->noise * noise[a] : 0));
    }
}

static enum pnet_status make_batch(const struct options *o, const struct pnet_plan *p,
    struct pnet_batch **batch, struct pnet_error *e)
{
    int64_t *splits = bench_alloc(((size_t)o->batch + 1) * sizeof *splits);
    const int64_t *both[2] = {splits, splits};
    for (int32_t s = 0; s <= o->batch; s++) splits[s] = s * o->points;
    enum pnet_status st = pnet_batch_new(p->inputs, p->input_count, o->batch, both, batch, e);
    for (int k = 0; k < 2 && !st; k++)
        for (int64_t i = 0; i < splits[o->batch]; i++)
            draw_point(o, k == 0, i, (*batch)->inputs[k].xyz + 3 * i);
    free(splits);
    return st;
}

/* Times nanoflann on the points of the batch: seconds of all samples. */
static void run_nanoflann(
    const struct options *o, const struct pnet_batch *b, double *build, double *search)
{
    *build = *search = 0;
#ifdef PNET_BENCH_KDTREE
    for (int32_t s = 0; s < o->batch; s++)
        for (int k = 0; k < 2; k++) {
            const float *from = b->inputs[k].xyz + 3 * s * o->points,
                        *in = b->inputs[1 - k].xyz + 3 * s * o->points;
            double built, searched;
            pnet_bench_kdtree_two_nearest(o->points, from, o->points, in, &built, &searched);
            *build += built;
            *search += searched;
        }
#else
    (void)o;
    (void)b;
#endif
}

/* A round on the CPU: what each part takes. */
static enum pnet_status time_on_cpu(const struct options *o, struct pnet_runner *s,
    const struct pnet_batch *b, double to[TIMES], struct pnet_error *e)
{
    double begin = bench_now();
    enum pnet_status st = pnet_runner_forward(s, 0, true, 0, e);
    to[FORWARD] = bench_now() - begin;
    begin = bench_now();
    if (!st) st = pnet_runner_backward(s, 0, 1, false, e);
    to[BACKWARD] = bench_now() - begin;
    if (!st) run_nanoflann(o, b, &to[BUILD], &to[SEARCH]);
    return st;
}

/* Forward and backward recorded as a training records them, and the marks around them; NULL on the CPU. */
struct replays {
    void *record[2], *mark[3];
};

#ifdef PNET_CUDA_BUILT
static enum pnet_status record(struct pnet_runner *s, struct replays *r, struct pnet_error *e)
{
    bool there = true;
    enum pnet_status st = pnet_runner_forward(s, 0, true, 0, e);
    if (!st) st = pnet_runner_backward(s, 0, 1, false, e);
    if (!st) st = pnet_runner_wait(s, e); /* the kernels are loaded */
    for (int i = 0; i < 2 && !st; i++)
        there &= (r->record[i] = pnet_runner_record(s, 0, i == 1, NULL, NULL)) != NULL;
    for (int i = 0; i < 3 && !st; i++) there &= (r->mark[i] = pnet_cuda_mark_new()) != NULL;
    return st || there ? st
                       : pnet_error_set(e, PNET_NO_DEVICE,
                             "the loss could not be recorded, or marks not made");
}

/* A round on a GPU: the replays before those that are timed keep it busy while the host launches them. */
static enum pnet_status time_on_gpu(
    struct pnet_runner *s, const struct replays *r, double to[TIMES], struct pnet_error *e)
{
    struct pnet_device d = pnet_runner_device(s);
    for (int timed = 0; timed < 2; timed++)
        for (int i = 0; i < 2; i++) {
            if (i == 0) pnet_cuda_mark_set(r->mark[0]);
            pnet_device_replay(d, r->record[i]);
            pnet_cuda_mark_set(r->mark[i + 1]);
        }
    enum pnet_status st = pnet_runner_wait(s, e);
    for (int i = 0; i < 2 && !st; i++) {
        to[i] = 1e-3 * pnet_cuda_mark_ms(r->mark[i], r->mark[i + 1]);
        if (isnan(to[i])) st = pnet_error_set(e, PNET_NO_DEVICE, "a mark tells no time");
    }
    return st;
}

static void free_replays(struct pnet_runner *s, const struct replays *r)
{
    for (int i = 0; i < 2; i++)
        if (r->record[i]) pnet_device_record_free(pnet_runner_device(s), r->record[i]);
    for (int i = 0; i < 3; i++)
        if (r->mark[i]) pnet_cuda_mark_free(r->mark[i]);
}
#endif

static enum pnet_status time_round(const struct options *o, struct pnet_runner *s,
    const struct pnet_batch *b, const struct replays *r, double to[TIMES], struct pnet_error *e)
{
#ifdef PNET_CUDA_BUILT
    if (o->device.kind == PNET_CUDA) return time_on_gpu(s, r, to, e);
#endif
    (void)r;
    return time_on_cpu(o, s, b, to, e);
}

/* The first round warms up, and counts where no other begins in time. */
static enum pnet_status run_rounds(const struct options *o, struct pnet_runner *s,
    const struct pnet_batch *b, const struct replays *r, struct figures *f, struct pnet_error *e)
{
    static double time[TIMES][REPEAT_MAX];
    double begin = bench_now();
    enum pnet_status st = PNET_OK;
    for (int n = -1; n < o->repeat && !st; n++) {
        double now[TIMES] = {0};
        if (n >= 0 && bench_now() - begin > o->seconds) break;
        st = time_round(o, s, b, r, now, e);
        int at = n < 0 ? 0 : n;
        for (int k = 0; k < TIMES; k++) time[k][at] = now[k];
        f->rounds = at + 1;
    }
    for (int k = 0; k < TIMES && !st; k++) f->median[k] = bench_median(time[k], f->rounds);
    return st;
}

static enum pnet_status run(const struct options *o, struct pnet_runner *s,
    const struct pnet_batch *b, struct figures *f, struct pnet_error *e)
{
    struct replays r = {{NULL}, {NULL}};
    enum pnet_status st = pnet_runner_prepare(s, 0, b, e);
#ifdef PNET_CUDA_BUILT
    if (!st && o->device.kind == PNET_CUDA) st = record(s, &r, e);
#endif
    if (!st) st = run_rounds(o, s, b, &r, f, e);
    if (!st) f->loss = pnet_runner_objective(s, 0, NULL);
    if (!st) f->peak = pnet_runner_memory(s)->peak;
#ifdef PNET_CUDA_BUILT
    free_replays(s, &r);
#endif
    return st;
}

/* Sets what the metric apml_support says of the batch. */
static enum pnet_status run_support(const struct options *o, struct pnet_runner *s,
    const struct pnet_batch *b, struct figures *f, struct pnet_error *e)
{
    (void)o;
    struct pnet_tally tally;
    struct pnet_evaluation v = {.lines = NULL};
    enum pnet_status st = pnet_runner_prepare(s, 0, b, e);
    if (!st) st = pnet_runner_forward(s, 0, false, 0, e);
    if (!st) st = pnet_runner_wait(s, e);
    if (st || (st = pnet_tally_init(&tally, pnet_runner_plan(s), e))) return st;
    pnet_tally_add_metrics(&tally, s);
    st = pnet_tally_finish(&tally, &v, e);
    pnet_tally_free(&tally);
    if (st) return st;
    const struct pnet_score_line *line = &v.lines[0];
    f->support_there = true;
    f->support = line->value;
    for (int k = 0; k < line->value_count; k++) {
        if (strcmp(line->values[k].name, "largest") == 0) f->largest = line->values[k].value;
        if (strcmp(line->values[k].name, "cut") == 0) f->cut = line->values[k].value;
    }
    pnet_evaluation_free(&v);
    return PNET_OK;
}

typedef enum pnet_status measurement(const struct options *o, struct pnet_runner *s,
    const struct pnet_batch *b, struct figures *f, struct pnet_error *e);

/* Runs the loss, or the metric on the same points, in a runner of its own. */
static enum pnet_status measure(const struct options *o, const struct pnet_plan *p,
    measurement *run_on, struct figures *f, struct pnet_error *e)
{
    struct pnet_target target = {.where = o->device};
    struct pnet_runner_options so = {.slots = 1};
    struct pnet_bound *bound = NULL;
    struct pnet_batch *batch = NULL;
    struct pnet_runner *runner = NULL;
    enum pnet_status st = make_batch(o, p, &batch, e);
    if (!st) st = pnet_bound_new(p, &target, &bound, e);
    if (!st) st = pnet_runner_new(bound, &so, &runner, e);
    if (!st) st = run_on(o, runner, batch, f, e);
    pnet_runner_free(runner);
    pnet_bound_free(bound);
    pnet_batch_free(batch);
    return st;
}

/* Copies arguments, each behind a comma, without that named `left_out`; NULL: all of them. */
static void write_arguments(const char *with, const char *left_out, char *to, size_t size)
{
    size_t used = 0;
    *to = 0;
    while (with && *with) {
        const char *own = with + strspn(with, " ");
        size_t length = strcspn(own, ","), name = strcspn(own, " =,");
        bool left = left_out && strlen(left_out) == name && strncmp(own, left_out, name) == 0;
        if (!left) used += (size_t)snprintf(to + used, size - used, ", %.*s", (int)length, own);
        if (used >= size) fail_usage("ARGUMENTS are too long");
        with = own + length + (own[length] == ',');
    }
}

static struct pnet_compilation *compile(
    const char *objective, const char *name, const char *arguments, enum pnet_purpose_kind purpose)
{
    char text[1024];
    struct pnet_compile_options c = {
        .purpose = purpose, .input_gradients = purpose == PNET_FOR_TRAINING};
    int length = snprintf(text, sizeof text,
        "pnet 1\ninput a { xyz : position }\ninput b { xyz : position }\n%s l = %s(a.xyz, "
        "b.xyz%s)\n",
        objective, name, arguments);
    if (length >= (int)sizeof text) fail_usage("NAME and ARGUMENTS are too long");
    return pnet_compile_text("pnet-bench loss", text, (size_t)length, &c);
}

static void print_json(const struct options *o, const struct figures *f, const char *device)
{
    const double *t = f->median, others = t[BUILD] + t[SEARCH];
    printf("{\"loss\": \"%s\", \"set\": \"%s\", \"noise\": %g, \"points\": %lld, \"batch\": %d, "
           "\"device\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"rounds\": %d, "
           "\"value\": %.9g, \"forward_ms\": %.4f, \"backward_ms\": %.4f, \"peak_bytes\": %zu",
        o->name, set_names[o->set], o->noise, (long long)o->points, o->batch, device,
        pnet_cpu_isa(), omp_get_max_threads(), f->rounds, f->loss, 1e3 * t[FORWARD],
        1e3 * t[BACKWARD], f->peak);
    if (others > 0)
        printf(", \"nanoflann_build_ms\": %.3f, \"nanoflann_search_ms\": %.3f, "
               "\"of_nanoflann\": %.4f",
            1e3 * t[BUILD], 1e3 * t[SEARCH], (t[FORWARD] + t[BACKWARD]) / others);
    if (f->support_there)
        printf(", \"support\": %.6g, \"largest_support\": %.6g, \"cut\": %.6g", f->support,
            f->largest, f->cut);
    puts("}");
}

static void print(const struct options *o, const struct figures *f, const char *device)
{
    const double *t = f->median, others = t[BUILD] + t[SEARCH];
    printf("%s of %d x %lld points, %s, noise %g; %s\n", o->name, o->batch, (long long)o->points,
        set_names[o->set], o->noise, device);
    printf("loss %.6g; forward %.3g ms, backward %.3g ms, peak %.1f MiB; medians of %d rounds\n",
        f->loss, 1e3 * t[FORWARD], 1e3 * t[BACKWARD], (double)f->peak / 1048576, f->rounds);
    if (others > 0)
        printf("nanoflann %.2f ms to build, %.2f ms for two nearest points: the loss takes %.2f "
               "times as long\n",
            1e3 * t[BUILD], 1e3 * t[SEARCH], (t[FORWARD] + t[BACKWARD]) / others);
    if (f->support_there)
        printf("supports: %.4g points in the mean, %.6g at most; cut: %.4g of the points\n",
            f->support, f->largest, f->cut);
}

static enum pnet_status run_compiled(const struct options *o, const struct pnet_compilation *model,
    measurement *run_on, struct figures *f, struct pnet_error *e)
{
    const struct pnet_plan *plan = model ? pnet_compilation_plan(model) : NULL;
    enum pnet_status st = model ? pnet_compilation_code(model) : PNET_NO_MEMORY;
    *e->message = 0;
    if (plan) st = measure(o, plan, run_on, f, e);
    if (!plan && model) pnet_compilation_report(model, stderr, false, false);
    return st;
}

int pnet_bench_loss(int argc, char **argv)
{
    struct options o;
    struct figures f = {.loss = 0};
    struct pnet_device_info device;
    struct pnet_error e;
    char arguments[512];
    read_options(argc, argv, &o);
    write_arguments(o.with, NULL, arguments, sizeof arguments);
    struct pnet_compilation *model = compile("loss", o.name, arguments, PNET_FOR_TRAINING);
    enum pnet_status st = run_compiled(&o, model, run, &f, &e);
    pnet_compilation_free(model);
    if (!st && strcmp(o.name, "apml") == 0) {
        write_arguments(o.with, "rounds", arguments, sizeof arguments);
        model = compile("metric", "apml_support", arguments, PNET_FOR_EVAL);
        st = run_compiled(&o, model, run_support, &f, &e);
        pnet_compilation_free(model);
    }
    if (!st) st = pnet_device_describe(o.device, &device, &e);
    if (st && *e.message) fprintf(stderr, "pnet-bench loss: %s\n", e.message);
    if (st) return (int)st;
    if (o.json)
        print_json(&o, &f, device.name);
    else
        print(&o, &f, device.name);
    return 0;
}
