/* pnetc data synth, pnetc data info; pnetc info */
#include "compiler/cli/weights.h"
#include "runtime/cloud.h"
#include "runtime/dataset.h"
#include "runtime/io/file.h"
#include "runtime/synth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool show_progress(void *context, int64_t done, int64_t count)
{
    const bool *quiet = context;
    if (!*quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r%lld of %lld clouds%s", (long long)done, (long long)count,
            done == count ? "\n" : "");
    return !interrupted();
}

static int data_synth(int argc, char **argv)
{
    static const struct usage usage = {"pnetc data synth KIND -o DIR [options]",
        "Makes a labelled data set: shapes (classification of single objects), rooms (segmentation "
        "of furnished rooms) or\n"
        "lidar (segmentation of street scans). Eight clouds of ten are for training, one each for "
        "validation and test. The\n"
        "same kind, seed and options give the same bits.",
        "  pnetc data synth rooms -o out/rooms --count 120 --seed 1\n  pnetc data synth lidar -o "
        "out/street --count 20\n"};
    struct pnet_synth s = {.count = 100, .seed = 1, .progress = show_progress};
    int64_t count = 100, seed = 1, points = 0, threads = 0, beams = 0;
    bool done, quiet = false, any_rotation = false, clean = false;
    const char *kind;
    struct option options[] = {
        {"output", 'o', OPT_TEXT, &s.folder, "DIR", "folder of the data set"},
        {"count", 0, OPT_INT, &count, "N", "clouds (100)"},
        {"seed", 0, OPT_INT, &seed, "N", "another seed makes other clouds (1)"},
        {"points", 0, OPT_INT, &points, "N", "points a cloud, up to 100 million"},
        {"beams", 0, OPT_INT, &beams, "N", "lidar: of the scanner (64)"},
        {"any-rotation", 0, OPT_FLAG, &any_rotation, NULL,
            "shapes: turned about any axis, not z alone"},
        {"clean", 0, OPT_FLAG, &clean, NULL, "exact surfaces, no noise"},
        {"threads", 'j', OPT_INT, &threads, "N", "threads (all cores)"},
        {"quiet", 'q', OPT_FLAG, &quiet, NULL, "no progress"}};
    int words, code;
    struct pnet_error e = {0};
    const char *kinds[PNET_SYNTH_KINDS];
    if ((code = parse_options(argc, argv, options, sizeof options / sizeof options[0], &usage,
             &kind, 1, &words, &done)) ||
        done)
        return code;
    if (!words) return usage_error("which kind? shapes, rooms or lidar");
    if (!s.folder) return usage_error("where to? -o DIR");
    if (count < 1 || seed < 0 || points < 0 || threads < 0 || beams < 0 || beams > 128 ||
        threads > 4096)
        return usage_error("a number is out of range");
    int k = 0;
    for (; k < PNET_SYNTH_KINDS; k++) {
        kinds[k] = pnet_synth_kind_name((enum pnet_synth_kind)k);
        if (strcmp(kinds[k], kind) == 0) break;
    }
    if (k == PNET_SYNTH_KINDS) {
        const char *near = pnet_nearest(kind, kinds, PNET_SYNTH_KINDS);
        return near ? usage_error("no kind '%s': did you mean %s?", kind, near)
                    : usage_error("no kind '%s': shapes, rooms or lidar", kind);
    }
    s.kind = (enum pnet_synth_kind)k;
    s.count = count;
    s.seed = (uint64_t)seed;
    s.context = &quiet;
    s.options = (struct pnet_synth_options){.points = points,
        .beams = (int)beams,
        .any_rotation = any_rotation,
        .clean = clean,
        .threads = (int)threads};
    catch_interrupts();
    if (pnet_synth_generate(&s, &e)) return complain(&e);
    if (!quiet) printf("%s/dataset.yaml: %lld clouds of %s\n", s.folder, (long long)count, kind);
    return PNET_OK;
}

static enum pnet_status describe_dataset(const char *path, struct pnet_error *e)
{
    struct pnet_dataset *d;
    enum pnet_status st = pnet_dataset_read(path, &d, e);
    if (st) return st;
    printf("%s: %s, %d classes\n", d->path,
        d->task == PNET_SEGMENTATION ? "segmentation" : "classification", d->class_count);
    for (int s = 0; s < PNET_SPLITS && !st; s++) {
        printf(
            "  %-6s %8lld clouds\n", pnet_split_name((enum pnet_split)s), (long long)d->counts[s]);
        int64_t *counts = calloc((size_t)d->class_count + 1, sizeof *counts), sum = 0;
        if (!counts) {
            st = pnet_error_memory(e);
            break;
        }
        if (d->counts[s]) st = pnet_dataset_count(d, (enum pnet_split)s, counts, e);
        for (int c = 0; !st && c < d->class_count; c++) sum += counts[c];
        for (int c = 0; !st && c < d->class_count && sum; c++)
            printf("         %12lld  %5.1f%%  %s\n", (long long)counts[c],
                100 * (double)counts[c] / (double)sum, d->classes[c]);
        free(counts);
    }
    pnet_dataset_free(d);
    return st;
}

static int data_info(int argc, char **argv)
{
    static const struct usage usage = {"pnetc data info DATASET",
        "Reads a whole data set: its splits, and how often each class occurs.",
        "  pnetc data info out/rooms\n"};
    bool done;
    const char *path;
    int words, code;
    struct pnet_error e = {0};
    if ((code = parse_options(argc, argv, NULL, 0, &usage, &path, 1, &words, &done)) || done)
        return code;
    if (!words) return usage_error("which data set? usage: %s", usage.synopsis);
    return describe_dataset(path, &e) ? complain(&e) : PNET_OK;
}

int command_data(int argc, char **argv)
{
    if (argc && strcmp(argv[0], "synth") == 0) return data_synth(argc - 1, argv + 1);
    if (argc && strcmp(argv[0], "info") == 0) return data_info(argc - 1, argv + 1);
    bool help = argc && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
    fputs("usage: pnetc data synth KIND -o DIR [options]\n       pnetc data info DATASET\n",
        help ? stdout : stderr);
    return help ? PNET_OK : PNET_USAGE;
}

static const char *const scalar_names[] = {
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"};

static enum pnet_status describe_cloud(const char *path, struct pnet_error *e)
{
    struct pnet_cloud c;
    char warning[256];
    enum pnet_status st = pnet_cloud_read(path, &c, warning, e);
    if (st) return st;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int64_t i = 0; i < c.rows; i++)
        for (int k = 0; k < 3; k++) {
            double x = c.offset[k] + (double)c.xyz[3 * i + k];
            low[k] = fmin(low[k], x);
            high[k] = fmax(high[k], x);
        }
    printf("%s: %lld points\n", path, (long long)c.rows);
    if (*warning) printf("  %s\n", warning);
    for (int k = 0; k < 3 && c.rows; k++)
        printf("  %c  %-8s from %g to %g m\n", "xyz"[k], scalar_names[c.xyz_type], low[k], high[k]);
    for (int f = 0; f < c.field_count; f++) {
        double least = INFINITY, most = -INFINITY;
        for (int64_t i = 0; i < c.rows; i++) {
            double x = pnet_field_get(&c.fields[f], i);
            least = fmin(least, x);
            most = fmax(most, x);
        }
        printf("  %s  %s", c.fields[f].name, scalar_names[c.fields[f].type]);
        if (c.rows) printf(" from %g to %g", least, most);
        puts("");
    }
    pnet_cloud_free(&c);
    return PNET_OK;
}

static enum pnet_status describe_weights(const char *path, struct pnet_error *e)
{
    struct weights w;
    enum pnet_status st = weights_open(path, &w, e);
    if (st) return st;
    int64_t sum = 0;
    for (size_t i = 0; i < w.file->count; i++) {
        const struct pnet_safetensor *t = &w.file->tensors[i];
        printf("  %-48s %s [", t->name, pnet_dtype_name(t->dtype));
        for (int k = 0; k < t->dims; k++) printf("%s%lld", k ? ", " : "", (long long)t->shape[k]);
        puts("]");
        sum += pnet_safetensor_count(t);
    }
    printf("%zu tensors, %lld numbers\n", w.file->count, (long long)sum);
    if (w.checkpoint) {
        const struct pnet_checkpoint_state *s = &w.checkpoint->state;
        printf("checkpoint of epoch %lld, step %lld, seed %llu\n", (long long)s->epoch,
            (long long)s->step, (unsigned long long)s->seed);
        for (size_t i = 0; i < s->metric_count; i++)
            printf("  %s %g\n", s->metrics[i].name, s->metrics[i].value);
        if (*s->params) printf("params:\n%s\n", s->params);
    }
    weights_close(&w);
    return PNET_OK;
}

int command_info(int argc, char **argv)
{
    static const struct usage usage = {"pnetc info FILE ...",
        "Tells what a cloud, a weights file, a checkpoint or a run folder holds.",
        "  pnetc info room.ply\n  pnetc info out/demo/best\n"};
    const char *files[256];
    bool done;
    int words, code, worst = 0;
    if ((code = parse_options(argc, argv, NULL, 0, &usage, files, 256, &words, &done)) || done)
        return code;
    if (!words) return usage_error("which file? usage: %s", usage.synopsis);
    for (int i = 0; i < words; i++) {
        struct pnet_error e = {0};
        struct stat st;
        size_t n = strlen(files[i]);
        bool weights = (stat(files[i], &st) == 0 && S_ISDIR(st.st_mode)) ||
                       (n > 12 && strcmp(files[i] + n - 12, ".safetensors") == 0);
        if (weights ? describe_weights(files[i], &e) : describe_cloud(files[i], &e)) {
            complain(&e);
            if ((int)e.status > worst) worst = (int)e.status;
        }
    }
    return worst;
}
