/* pnetc data synth, pnetc data info */
#include "compiler/cli/ranges.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_overlap.h"
#include "runtime/base/file.h"
#include "runtime/data/loader.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"
#include "runtime/base/thread.h"
#include "runtime/synth/synth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool show_progress(void *context, int64_t done, int64_t count)
{
    const bool *quiet = context;
    if (!*quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r%lld of %lld clouds%s", (long long)done, (long long)count,
            done == count ? "\n" : "");
    return !pnet_cli_interrupted();
}

/* Finds the kind of that name. Returns 0, or the exit code. */
static int find_kind(const char *word, enum pnet_synth_kind *kind)
{
    const char *kinds[PNET_SYNTH_KINDS];
    for (int k = 0; k < PNET_SYNTH_KINDS; k++) {
        kinds[k] = pnet_synth_kind_name((enum pnet_synth_kind)k);
        *kind = (enum pnet_synth_kind)k;
        if (strcmp(kinds[k], word) == 0) return PNET_OK;
    }
    const char *near = pnet_nearest(word, kinds, PNET_SYNTH_KINDS);
    return near
               ? pnet_cli_usage_error("no kind '%s': did you mean %s?", word, near)
               : pnet_cli_usage_error("no kind '%s': shapes, rooms, lidar, pairs or partial", word);
}

static void print_synthesis(const struct pnet_synth *s, const char *kind)
{
    char shown[PNET_PATH_MOST];
    printf("%s/dataset.yaml: %lld %s%s\n", pnet_printable(s->folder, shown, sizeof shown),
        (long long)s->count,
        s->kind == PNET_SYNTH_PAIRS     ? ""
        : s->kind == PNET_SYNTH_PARTIAL ? "pairs of "
                                        : "clouds of ",
        s->kind == PNET_SYNTH_PARTIAL ? "partial and full clouds" : kind);
}

static int data_synth(int argc, char **argv)
{
    static const struct usage usage = {"pnetc data synth KIND -o DIR [options]",
        "Makes a data set: shapes (classification of single objects), rooms (segmentation of "
        "furnished rooms), lidar\n"
        "(segmentation of street scans), pairs (registration of two views of a room, or of two "
        "scans of a street) or partial\n"
        "(completion of objects that a depth camera sees from one side). Eight clouds or pairs of "
        "ten are for training, one each\n"
        "for validation and test. The same kind, seed and options give the same bits. A folder "
        "that "
        "holds a data set is refused.",
        "  pnetc data synth rooms -o out/rooms --count 120 --seed 1\n  pnetc data synth lidar -o "
        "out/street --count 20\n  pnetc data synth pairs -o out/drives --scene street --count "
        "40\n  pnetc data synth partial -o out/partial --count 480\n"};
    struct pnet_synth s = {.count = 100, .seed = 1, .progress = show_progress};
    int64_t count = 100, seed = 1, points = 0, threads = 0, beams = 0;
    bool done, quiet = false, any_rotation = false, clean = false;
    const char *kind, *scene = NULL;
    struct option options[] = {
        {"output", 'o', OPT_OUTPUT, &s.folder, "DIR", "folder of the data set"},
        {"count", 0, OPT_COUNT, COUNT(&count, 1, UINT32_MAX), "N", "clouds or pairs (100)"},
        {"seed", 0, OPT_COUNT, COUNT(&seed, 0, INT64_MAX), "N",
            "another seed makes other clouds (1)"},
        {"points", 0, OPT_COUNT, COUNT(&points, 64, 4000000000), "N",
            "points a cloud; of partial, of the full one"},
        {"beams", 0, OPT_COUNT, COUNT(&beams, 1, 128), "N",
            "lidar, street: beams of the scanner (64)"},
        {"any-rotation", 0, OPT_FLAG, &any_rotation, NULL,
            "shapes, frames of pairs, partial: turned about any axis, not z alone"},
        {"scene", 0, OPT_CHOICE, CHOICE(&scene, "room", "street"), "SCENE",
            "pairs: room (default) or street"},
        {"clean", 0, OPT_FLAG, &clean, NULL, "exact surfaces, no noise"},
        {"force", 0, OPT_FLAG, &s.replace, NULL, "replace the data set in DIR, with its clouds"},
        {"threads", 'j', OPT_COUNT, COUNT(&threads, 1, PNET_THREADS_MOST), "N",
            "threads (all cores)"},
        {"quiet", 'q', OPT_FLAG, &quiet, NULL, "no progress"}};
    int words, code;
    struct pnet_error e = {0};
    if ((code = pnet_cli_parse_options(argc, argv, options, sizeof options / sizeof options[0],
             &usage, &kind, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which kind? shapes, rooms, lidar, pairs or partial");
    if (!s.folder) return pnet_cli_usage_error("where to? -o DIR");
    if ((code = find_kind(kind, &s.kind))) return code;
    if (scene && s.kind != PNET_SYNTH_PAIRS) return pnet_cli_usage_error("--scene is for pairs");
    s.count = count;
    s.seed = (uint64_t)seed;
    s.context = &quiet;
    s.options = (struct pnet_synth_options){.points = points,
        .beams = (int)beams,
        .any_rotation = any_rotation,
        .clean = clean,
        .street = scene && strcmp(scene, "street") == 0,
        .threads = (int)threads};
    pnet_cli_catch_interrupts();
    if (pnet_synth_generate(&s, &e)) return pnet_cli_complain(&e);
    if (!quiet) print_synthesis(&s, kind);
    return PNET_OK;
}

/* The numbers that `data info` prints about the pairs of a split: NUMBERS lists, each with one number for each pair. */
enum { NUMBERS = 5 };
struct pair_numbers {
    double *of[NUMBERS];
    int64_t count;
};
struct number_row {
    const char *name, *unit; /* unit NULL: a whole number */
};

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the numbers and prints the least, the median and the largest. */
static void print_spread(const struct number_row *row, double *numbers, int64_t count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, by_number);
    double median = (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
    if (row->unit)
        printf("         %-28s %10.4g  %10.4g  %10.4g  %s\n", row->name, numbers[0], median,
            numbers[count - 1], row->unit);
    else
        printf("         %-28s %10.0f  %10.0f  %10.0f\n", row->name, numbers[0], median,
            numbers[count - 1]);
}

/* Computes how much of a cloud is near another one, in percent. */
static enum pnet_status overlap(const struct pnet_batch_input *source,
    const struct pnet_batch_input *target, const struct pnet_pose *pose, double radius_m,
    double *percent, struct pnet_error *e)
{
    int64_t met = 0;
    enum pnet_status st =
        pnet_overlap(source->xyz, source->rows, target->xyz, target->rows, pose, radius_m, &met, e);
    *percent = 100 * (double)met / (double)source->rows;
    return st;
}

static const struct number_row registration_rows[NUMBERS] = {{"points a cloud", NULL},
    {"overlap under the pose", "%"}, {"overlap without it", "%"}, {"turn", "degrees"},
    {"shift", "m"}};

/* Measures a pair: a batch of one. */
static enum pnet_status measure_registration(
    const struct pnet_batch *b, double radius_m, double numbers[NUMBERS], struct pnet_error *e)
{
    const struct pnet_batch_input *source = &b->inputs[0], *target = &b->inputs[1];
    const float *pose = b->inputs[2].fields[0];
    struct pnet_pose after, before = pnet_pose_identity();
    double trace = -1, shift2 = 0;
    for (int i = 0; i < 16; i++) after.m[i] = (double)pose[i];
    for (int i = 0; i < 3; i++) {
        trace += after.m[5 * i];
        shift2 += after.m[4 * i + 3] * after.m[4 * i + 3];
    }
    numbers[0] = (double)(source->rows + target->rows) / 2;
    numbers[3] = acos(fmax(-1, fmin(1, trace / 2))) * 180 / M_PI;
    numbers[4] = sqrt(shift2);
    enum pnet_status st = overlap(source, target, &after, radius_m, &numbers[1], e);
    return st ? st : overlap(source, target, &before, radius_m, &numbers[2], e);
}

static const struct number_row completion_rows[NUMBERS] = {{"points of the partial", NULL},
    {"points of the full", NULL}, {"full near the partial", "%"}, {"partial near the full", "%"},
    {"farthest of the full", "m from the origin"}};

static enum pnet_status measure_completion(
    const struct pnet_batch *b, double radius_m, double numbers[NUMBERS], struct pnet_error *e)
{
    const struct pnet_batch_input *partial = &b->inputs[0], *full = &b->inputs[1];
    struct pnet_pose still = pnet_pose_identity();
    double far2 = 0;
    for (int64_t i = 0; i < full->rows; i++) {
        double sum = 0;
        for (int c = 0; c < 3; c++) sum += pow((double)full->xyz[3 * i + c], 2);
        far2 = fmax(far2, sum);
    }
    numbers[0] = (double)partial->rows;
    numbers[1] = (double)full->rows;
    numbers[4] = sqrt(far2);
    enum pnet_status st = overlap(full, partial, &still, radius_m, &numbers[2], e);
    return st ? st : overlap(partial, full, &still, radius_m, &numbers[3], e);
}

/* Measures the pairs of a split as evaluation sees them. */
static enum pnet_status measure_pairs(const struct pnet_dataset *d, enum pnet_split split,
    double radius_m, struct pair_numbers *n, struct few_warnings *few, struct pnet_error *e)
{
    static struct pnet_input_field xyz[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION}};
    static struct pnet_input_field pose[] = {
        {.name = "pose", .kind = PNET_INPUT_POSE, .width = 16, .per_cloud = true}};
    static const struct pnet_input inputs[] = {{.name = "1", .fields = xyz, .field_count = 1},
        {.name = "2", .fields = xyz, .field_count = 1},
        {.name = "pose", .fields = pose, .field_count = 1}};
    static const struct pnet_input_map map = {.count = 0};
    bool completion = d->task == PNET_COMPLETION;
    struct pnet_loader_options o = {.data = d,
        .split = split,
        .inputs = inputs,
        .input_count = completion ? 2 : 3,
        .map = &map,
        .batch_size = 1,
        .warn = pnet_cli_few_warn,
        .context = few};
    struct pnet_loader *l;
    struct pnet_batch *b;
    enum pnet_status st = pnet_loader_new(&o, &l, e);
    while (!st && !(st = pnet_loader_next(l, &b, e)) && b) {
        double numbers[NUMBERS];
        st = (completion ? measure_completion : measure_registration)(b, radius_m, numbers, e);
        for (int i = 0; i < NUMBERS && !st; i++) n->of[i][n->count] = numbers[i];
        n->count++;
        pnet_batch_free(b);
    }
    pnet_loader_free(l);
    return st;
}

/* Prints how often each class occurs in a split. */
static enum pnet_status print_classes(const struct pnet_dataset *d, enum pnet_split split,
    struct few_warnings *few, struct pnet_error *e)
{
    char name[256];
    int64_t *counts = calloc((size_t)d->class_count + 1, sizeof *counts), sum = 0;
    if (!counts) return pnet_error_memory(e);
    enum pnet_status st = d->counts[split]
                              ? pnet_dataset_survey(d, split, counts, pnet_cli_few_warn, few, e)
                              : PNET_OK;
    for (int c = 0; !st && c < d->class_count; c++) sum += counts[c];
    for (int c = 0; !st && c < d->class_count && sum; c++)
        printf("         %12lld  %5.1f%%  %s\n", (long long)counts[c],
            100 * (double)counts[c] / (double)sum,
            pnet_printable(d->classes[c], name, sizeof name));
    free(counts);
    return st;
}

static enum pnet_status describe_pairs(
    const struct pnet_dataset *d, double radius_m, struct pnet_error *e)
{
    const struct number_row *rows =
        d->task == PNET_COMPLETION ? completion_rows : registration_rows;
    struct few_warnings few = {.count = 0};
    enum pnet_status st = PNET_OK;
    for (int s = 0; s < PNET_SPLITS && !st; s++) {
        int64_t count = d->counts[s];
        printf("  %-6s %8lld pairs\n", pnet_split_name((enum pnet_split)s), (long long)count);
        if (!count) continue;
        double *numbers = calloc(NUMBERS * (size_t)count, sizeof *numbers);
        if (!numbers) return pnet_error_memory(e);
        struct pair_numbers n = {.count = 0};
        for (int i = 0; i < NUMBERS; i++) n.of[i] = numbers + i * count;
        st = measure_pairs(d, (enum pnet_split)s, radius_m, &n, &few, e);
        if (!st) printf("         %-28s %10s  %10s  %10s\n", "", "least", "median", "most");
        for (int i = 0; i < NUMBERS && !st; i++) print_spread(&rows[i], n.of[i], count);
        free(numbers);
        if (!st && d->class_count) st = print_classes(d, (enum pnet_split)s, &few, e);
    }
    pnet_cli_few_end(&few);
    return st;
}

static enum pnet_status describe_classes(const struct pnet_dataset *d, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    struct few_warnings few = {.count = 0};
    for (int s = 0; s < PNET_SPLITS && !st; s++) {
        printf(
            "  %-6s %8lld clouds\n", pnet_split_name((enum pnet_split)s), (long long)d->counts[s]);
        st = print_classes(d, (enum pnet_split)s, &few, e);
    }
    pnet_cli_few_end(&few);
    return st;
}

static void print_origin(const struct pnet_dataset *d)
{
    char text[PNET_ORIGIN_TEXT];
    if (d->origin.named) printf("  origin %s\n", pnet_origin_text(&d->origin, text));
}

static void print_unit(const struct pnet_dataset *d)
{
    char unit[32];
    pnet_unit_print(&d->unit, unit);
    if (*unit) printf("  unit   %s\n", unit);
}

static enum pnet_status describe_dataset(const char *path, double radius_m, struct pnet_error *e)
{
    struct pnet_dataset *d;
    char shown[PNET_PATH_MOST];
    enum pnet_status st = pnet_dataset_read(path, &d, e);
    if (st) return st;
    pnet_printable(d->path, shown, sizeof shown);
    if (pnet_task_pairs(d->task)) {
        printf("%s: %s, ", shown, pnet_task_name(d->task));
        if (d->class_count) printf("%d classes, ", d->class_count);
        printf("%s within %g m\n", d->task == PNET_COMPLETION ? "near means" : "overlap", radius_m);
        print_unit(d);
        print_origin(d);
        st = describe_pairs(d, radius_m, e);
    } else {
        printf("%s: %s, %d classes\n", shown, pnet_task_name(d->task), d->class_count);
        print_unit(d);
        print_origin(d);
        st = describe_classes(d, e);
    }
    struct pnet_ranges colours = {.count = 0};
    if (!st) st = pnet_cli_colours_of_dataset(d, &colours, e);
    pnet_cli_print_ranges(&colours, false);
    pnet_ranges_free(&colours);
    pnet_dataset_free(d);
    return st;
}

static int data_info(int argc, char **argv)
{
    static const struct usage usage = {"pnetc data info DATASET [options]",
        "Reads a whole data set: its splits, and how often each class occurs; of pairs, how much "
        "of the source is seen in\n"
        "the target under the true pose and without it, and how large the pose is; of completion, "
        "how much of the full cloud\n"
        "the partial one covers.",
        "  pnetc data info out/rooms\n  pnetc data info kitchen.yaml --radius 5cm\n"};
    bool done;
    const char *path;
    int words, code;
    double radius_m = 0.1;
    struct pnet_error e = {0};
    const struct option options[] = {{"radius", 0, OPT_LENGTH, &radius_m, "LENGTH",
        "pairs: two points closer than this meet (10cm)"}};
    if ((code = pnet_cli_parse_options(argc, argv, options, 1, &usage, &path, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return pnet_cli_usage_error("which data set? usage: %s", usage.synopsis);
    return describe_dataset(path, radius_m, &e) ? pnet_cli_complain(&e) : PNET_OK;
}

int pnet_command_data(int argc, char **argv)
{
    static const struct command commands[] = {
        {"synth", "make a data set of synthetic clouds", data_synth},
        {"info", "read a whole data set and print what it holds", data_info},
    };
    enum { COMMANDS = sizeof commands / sizeof commands[0] };
    for (int i = 0; argc && i < COMMANDS; i++)
        if (strcmp(argv[0], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    if (argc && strcmp(argv[0], "--help=table") == 0)
        return pnet_cli_print_commands("data ", commands, COMMANDS);
    bool help = argc && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
    FILE *f = help ? stdout : stderr;
    fputs("usage: pnetc data COMMAND [ARGUMENTS]\n\n", f);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(f, "  %-8s  %s\n", commands[i].name, commands[i].summary);
    fputs("\npnetc data COMMAND --help describes a command.\n", f);
    return help ? PNET_OK : PNET_USAGE;
}
