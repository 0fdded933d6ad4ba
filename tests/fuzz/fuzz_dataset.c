/* Any text as the index of a data set: in a folder without files, or, if its numbers are short, in one with a few clouds and
   meshes. What completion entries of such an index describe is made. */
#include "runtime/data/loader.h"
#include "runtime/data/partial.h"
#include "tests/fuzz/cloud.h"

#include <ctype.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Numbers of more digits would ask for a million views, which take seconds. */
enum { DIGITS = 4, POINTS_MOST = 3000, ENTRIES_MOST = 4 };

static const char index_name[] = "dataset.yaml";
static char folder[256];
static long read_sets, made_samples;

static const char *const meshes[][2] = {
    {"a.off", "OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"},
    {"c_0.off", "OFF\n3 1 0\n0 0 0\n5 0 0\n0 1 2\n3 0 1 2\n"},
    {"c_1.off", "OFF\n4 1 0\n-1 -1 0\n1 -1 0\n1 1 0\n-1 1 0\n4 0 1 2 3\n"},
    {"e.obj", "v 0 0 0\nv 3 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"},
    {"bad.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n"},
    {"flat.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n2 0 0\n3 0 1 2\n"},
};
static const struct {
    const char *name;
    int points;
    double at; /* metres from the origin */
} clouds[] = {{"a.ply", 40, 0}, {"b.ply", 90, 0}, {"p_0.ply", 30, 0}, {"p_1.ply", 1, 0},
    {"f_0.ply", 70, 0}, {"f_1.ply", 2, 0}, {"far.ply", 20, 5e5}, {"none.ply", 0, 0}};
enum { MESHES = sizeof meshes / sizeof *meshes, CLOUDS = sizeof clouds / sizeof *clouds };

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static FILE *create(const char *name)
{
    FILE *f = fopen(in_folder(name), "w");
    FUZZ_REQUIRE(f, name);
    return f;
}

static void remove_folder(void)
{
    for (int i = 0; i < MESHES; i++) unlink(in_folder(meshes[i][0]));
    for (int i = 0; i < CLOUDS; i++) unlink(in_folder(clouds[i].name));
    rmdir(folder);
    fprintf(stderr, "fuzz_dataset: %ld indices read in the folder, %ld samples made\n", read_sets,
        made_samples);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *base = getenv("TMPDIR");
    (void)argc;
    (void)argv;
    snprintf(folder, sizeof folder, "%.200s/pnet-fuzz-XXXXXX", base ? base : "/tmp");
    FUZZ_REQUIRE(mkdtemp(folder), folder);
    for (int i = 0; i < MESHES; i++) {
        FILE *f = create(meshes[i][0]);
        fputs(meshes[i][1], f);
        fclose(f);
    }
    for (int i = 0; i < CLOUDS; i++) {
        FILE *f = create(clouds[i].name);
        fprintf(f,
            "ply\nformat ascii 1.0\nelement vertex %d\nproperty double x\nproperty double y\n"
            "property double z\nproperty int label\nend_header\n",
            clouds[i].points);
        for (int k = 0; k < clouds[i].points; k++)
            fprintf(f, "%.9g %.9g %.9g %d\n", clouds[i].at + k % 7 * 0.1, k % 5 * 0.2,
                k % 11 * 0.05, k % 3);
        fclose(f);
    }
    atexit(remove_folder);
    return 0;
}

static void check_labels(const struct pnet_dataset *d)
{
    for (int i = 1; i < d->map_count; i++) FUZZ_REQUIRE(d->raw[i] > d->raw[i - 1], d->path);
    for (int i = 0; i < d->map_count; i++) {
        int32_t label = pnet_dataset_label(d, d->raw[i]);
        FUZZ_REQUIRE(label == d->raw_class[i] && label < d->class_count, d->path);
    }
}

/* What the index says of a completion entry is in its range. */
static const struct pnet_partial *check_entry(
    const struct pnet_dataset *d, const struct pnet_entry *entry)
{
    const struct pnet_pair *pair = entry->pair;
    FUZZ_REQUIRE(pair && pair->views < 0, d->path);
    FUZZ_REQUIRE(pair->partial >= 0 && pair->partial < d->partial_count, d->path);
    FUZZ_REQUIRE(entry->label < d->class_count, d->path);
    const struct pnet_partial *p = &d->partials[pair->partial];
    FUZZ_REQUIRE(pair->view >= 0 && pair->view < p->count, d->path);
    FUZZ_REQUIRE(p->part[0] >= 0 && p->part[0] <= p->part[1] && p->part[1] < 1, d->path);
    FUZZ_REQUIRE((p->kind == PNET_PARTIAL_FILE) == (pair->target != NULL), d->path);
    return p;
}

/* Does the cloud have a point at the very same place? */
static bool has_point(const struct pnet_batch_input *cloud, const float *p)
{
    for (int64_t i = 0; i < cloud->rows; i++)
        if (memcmp(cloud->xyz + 3 * i, p, 3 * sizeof *p) == 0) return true;
    return false;
}

static void check_sample(
    const struct pnet_dataset *d, const struct pnet_partial *p, const struct pnet_batch *b)
{
    const struct pnet_batch_input *partial = &b->inputs[0], *full = &b->inputs[1];
    FUZZ_REQUIRE(!p->points || partial->rows == p->points, d->path);
    FUZZ_REQUIRE(!p->full_points || full->rows == p->full_points, d->path);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < 3 * b->inputs[k].rows; i++) {
            float x = b->inputs[k].xyz[i];
            FUZZ_REQUIRE(isfinite(x), d->path);
            FUZZ_REQUIRE(p->kind == PNET_PARTIAL_FILE || fabsf(x) < 1.0001f, d->path);
        }
    for (int64_t i = 0; i < partial->rows && p->kind == PNET_PARTIAL_CUT; i++)
        FUZZ_REQUIRE(has_point(full, partial->xyz + 3 * i), d->path);
}

/* Loads the first entries of a split; `again`, from an evaluation of the same, gets the same bits. */
static void load_split(const struct pnet_dataset *d, enum pnet_split split, bool training)
{
    static struct pnet_input_field fields[2] = {
        {.name = "xyz", .kind = PNET_INPUT_POSITION}, {.name = "xyz", .kind = PNET_INPUT_POSITION}};
    static const struct pnet_input inputs[2] = {
        {.name = "partial", .fields = &fields[0], .field_count = 1},
        {.name = "full", .fields = &fields[1], .field_count = 1}};
    static const struct pnet_input_map map = {.count = 0};
    static const struct pnet_augment mirror = {.flip = {true, false, true}};
    struct pnet_loader_options o = {.data = d,
        .split = split,
        .inputs = inputs,
        .input_count = 2,
        .map = &map,
        .batch_size = 1,
        .training = training,
        .augment = training ? &mirror : NULL,
        .seed = 3};
    struct pnet_loader *l[2];
    struct pnet_error e;
    for (int k = 0; k < 2; k++) {
        FUZZ_REQUIRE(pnet_loader_new(&o, &l[k], &e) == PNET_OK, d->path);
        o.cache_bytes = 1 << 20;
    }
    int64_t most = d->counts[split] < ENTRIES_MOST ? d->counts[split] : ENTRIES_MOST;
    int64_t *order = malloc((size_t)d->counts[split] * sizeof *order);
    FUZZ_REQUIRE(order, d->path);
    pnet_loader_order(o.seed, 0, training, d->counts[split], order);
    for (int64_t i = 0; i < most; i++) {
        struct pnet_batch *b[2];
        enum pnet_status status = pnet_loader_next(l[0], &b[0], &e);
        FUZZ_REQUIRE(pnet_loader_next(l[1], &b[1], &e) == status, d->path);
        FUZZ_REQUIRE(!status || (status == PNET_BAD_DATA && e.message[0]), d->path);
        if (status) break;
        check_sample(d, check_entry(d, &d->entries[split][order[i]]), b[0]);
        for (int k = 0; k < 2; k++) {
            FUZZ_REQUIRE(b[0]->inputs[k].rows == b[1]->inputs[k].rows, d->path);
            FUZZ_REQUIRE(memcmp(b[0]->inputs[k].xyz, b[1]->inputs[k].xyz,
                             (size_t)b[0]->inputs[k].rows * 3 * sizeof(float)) == 0,
                d->path);
        }
        pnet_batch_free(b[0]);
        pnet_batch_free(b[1]);
        made_samples++;
    }
    free(order);
    pnet_loader_free(l[0]);
    pnet_loader_free(l[1]);
}

static void check_completion(const struct pnet_dataset *d)
{
    for (int split = 0; split < PNET_SPLITS; split++) {
        bool small = d->counts[split] > 0;
        for (int64_t i = 0; i < d->counts[split]; i++) {
            const struct pnet_partial *p = check_entry(d, &d->entries[split][i]);
            small = small && p->points <= POINTS_MOST && p->full_points <= POINTS_MOST;
        }
        if (!small) continue;
        load_split(d, (enum pnet_split)split, false);
        load_split(d, (enum pnet_split)split, true);
    }
}

static bool has_long_numbers(const uint8_t *data, size_t size)
{
    size_t run = 0;
    for (size_t i = 0; i < size && run <= DIGITS; i++) run = isdigit(data[i]) ? run + 1 : 0;
    return run > DIGITS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pnet_dataset *d;
    struct pnet_error e;
    char path[512] = "/nowhere/dataset.yaml";
    bool there = !has_long_numbers(data, size);
    /* Paths would lead out of the folder, and patterns over the whole disk. */
    if (memchr(data, '/', size)) return 0;
    if (there) snprintf(path, sizeof path, "%s", in_folder(index_name));
    if (pnet_dataset_parse(path, data, size, &d, &e) != PNET_OK) {
        FUZZ_REQUIRE(!d && e.message[0], path);
        return 0;
    }
    read_sets += there;
    check_labels(d);
    if (there && d->task == PNET_COMPLETION) check_completion(d);
    pnet_dataset_free(d);
    return 0;
}
