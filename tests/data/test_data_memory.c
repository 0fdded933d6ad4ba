/* Allocation: the n-th one fails for every n, and none is lost. */
#include "runtime/train/config.h"
#include "runtime/data/loader.h"
#include "tests/data/folder.h"
#include "tests/heap.h"

#if HEAP_REPLACED

static const char config_text[] =
    "data: rooms\n"
    "inputs: {cloud: {heat: {field: [heat], scale: 2}, one: {value: 1}}}\n"
    "class_weights: [1, 2]\n"
    "augment: {elastic: {granularity: 0.2m, magnitude: 0.1m}, crop: {points: 3}, drop_points: "
    "0.1,\n"
    "  rotate: z, colour: {shift: 1}}\n"
    "weights: w\nweights_map: {a: b}\nfreeze: [a]\nrates: {b: 2}\ndevice: cpu\n"
    "set: {v: 5cm, w: 3}\n";

static void ignore(void *context, const char *key, const char *was, const char *now)
{
    (void)context;
    (void)key;
    (void)was;
    (void)now;
}

static enum pnet_status read_config(const struct folder *f, struct pnet_error *e)
{
    struct pnet_config *c;
    (void)f;
    enum pnet_status status =
        pnet_config_parse("t.yaml", config_text, sizeof config_text - 1, &c, e);
    if (status) return status;
    char *text = pnet_config_print(c, (const char *const *)c->sets, c->set_count);
    status = text ? pnet_config_compare("t.yaml", config_text, text, ignore, NULL, e)
                  : pnet_error_memory(e);
    free(text);
    pnet_config_free(c);
    return status;
}

/* A data set of each kind of entry, then an epoch with all that changes samples. */
static enum pnet_status run_epoch(const struct folder *f, struct pnet_error *e)
{
    static struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "heat", .kind = PNET_INPUT_FEATURE, .width = 1},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 2}};
    static const struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 3};
    static const struct pnet_augment augment = {.crop_points = 3,
        .drop_points = 0.1,
        .elastic = {{0.5, 0.1}},
        .elastic_count = 1,
        .rotate = PNET_ROTATE_XYZ};
    struct pnet_input_map map = {.count = 0};
    struct pnet_dataset *d = NULL;
    struct pnet_loader *l = NULL;
    enum pnet_status status = pnet_dataset_read(f->path, &d, e);
    if (status) return status;
    const struct pnet_cloud_hints hints = pnet_dataset_hints(d);
    status = pnet_input_map_adopt(&map, &hints, d->classes, d->class_count, e);
    if (!status) status = pnet_input_map_adopt_labels(&map, d->raw, d->raw_class, d->map_count, e);
    struct pnet_loader_options o = {.data = d,
        .inputs = &input,
        .input_count = 1,
        .map = &map,
        .batch_size = 2,
        .training = true,
        .augment = &augment,
        .max_points = 4,
        .cache_bytes = 300,
        .seed = 1};
    if (!status) status = pnet_loader_new(&o, &l, e);
    for (int i = 0; i < 3 && !status; i++) {
        struct pnet_batch *b;
        status = pnet_loader_next(l, &b, e);
        pnet_batch_free(b);
    }
    pnet_loader_free(l);
    pnet_input_map_free(&map);
    pnet_dataset_free(d);
    return status;
}

/* Pairs of each kind of entry, with all that changes them. */
static enum pnet_status run_pairs(const struct folder *f, struct pnet_error *e)
{
    static struct pnet_input_field cloud[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "z", .kind = PNET_INPUT_FEATURE, .width = 1}};
    static struct pnet_input_field pose[] = {
        {.name = "pose", .kind = PNET_INPUT_POSE, .width = 16, .per_cloud = true}};
    static const struct pnet_input inputs[] = {{.name = "src", .fields = cloud, .field_count = 2},
        {.name = "dst", .fields = cloud, .field_count = 2},
        {.name = "T", .fields = pose, .field_count = 1}};
    static const struct pnet_augment augment = {
        .crop_points = 3, .drop_points = 0.1, .rotate = PNET_ROTATE_XYZ};
    struct pnet_input_map map = {.count = 0};
    struct pnet_dataset *d = NULL;
    struct pnet_loader *l = NULL;
    char path[600];
    snprintf(path, sizeof path, "%s/pairs.yaml", f->path);
    enum pnet_status status = pnet_dataset_read(path, &d, e);
    if (status) return status;
    struct pnet_loader_options o = {.data = d,
        .inputs = inputs,
        .input_count = 3,
        .map = &map,
        .batch_size = 4,
        .training = true,
        .augment = &augment,
        .max_points = 4,
        .cache_bytes = 600,
        .seed = 1};
    status = pnet_loader_new(&o, &l, e);
    for (int i = 0; i < 3 && !status; i++) {
        struct pnet_batch *b;
        status = pnet_loader_next(l, &b, e);
        pnet_batch_free(b);
    }
    pnet_loader_free(l);
    pnet_dataset_free(d);
    return status;
}

/* Completion from files, meshes of both formats and kinds, and cut clouds, twice: the second epoch finds some of them in the
   cache. */
static enum pnet_status run_completion(const struct folder *f, struct pnet_error *e)
{
    static struct pnet_input_field cloud[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "z", .kind = PNET_INPUT_FEATURE, .width = 1},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 2, .per_cloud = true}};
    static const struct pnet_input inputs[] = {
        {.name = "partial", .fields = cloud, .field_count = 2},
        {.name = "full", .fields = cloud, .field_count = 3}};
    static const struct pnet_augment augment = {.drop_points = 0.1, .flip = {true, false, true}};
    struct pnet_input_map map = {.count = 0};
    struct pnet_dataset *d = NULL;
    struct pnet_loader *l = NULL;
    char path[600];
    snprintf(path, sizeof path, "%s/completion.yaml", f->path);
    enum pnet_status status = pnet_dataset_read(path, &d, e);
    if (status) return status;
    struct pnet_loader_options o = {.data = d,
        .inputs = inputs,
        .input_count = 2,
        .map = &map,
        .batch_size = 3,
        .training = true,
        .augment = &augment,
        .cache_bytes = 1500,
        .seed = 1};
    status = pnet_loader_new(&o, &l, e);
    for (int i = 0; i < 11 && !status; i++) {
        struct pnet_batch *b;
        status = pnet_loader_next(l, &b, e);
        pnet_batch_free(b);
    }
    pnet_loader_free(l);
    pnet_dataset_free(d);
    return status;
}

/* Fails the n-th allocation until none is left to fail. */
static void fail_each(const char *name,
    enum pnet_status (*body)(const struct folder *, struct pnet_error *), const struct folder *f)
{
    enum pnet_status status = PNET_FAILED;
    long n = 0;
    while (status && n < 100000) {
        struct pnet_error e = {.message = ""};
        heap_begin(++n, false);
        status = body(f, &e);
        heap.counting = false;
        CHECKF(heap.live == 0, "%s, allocation %ld: %ld are lost", name, n, heap.live);
        CHECKF(!status || status == PNET_NO_MEMORY || strstr(e.message, "Cannot allocate memory"),
            "%s, allocation %ld: %s", name, n, e.message);
        if (!status && heap.calls >= n) status = PNET_FAILED; /* one that is not needed */
    }
    CHECKF(n > 50 && n < 100000, "%s: %ld allocations", name, n);
}

int main(void)
{
    struct folder f = folder_make();
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "c%d.txt", i);
        folder_print(&f, name, "0 0 0 1\n1 0 0 2\n1 1 0 3\n0 1 0 4\n0 1 1 5\nnan 0 0 6\n");
        snprintf(name, sizeof name, "c%d.lab", i);
        folder_print(&f, name, "0\n1\n7\n1\n0\n0\n");
    }
    folder_print(&f, "dataset.yaml",
        "pnet_dataset: 1\ntask: segmentation\nclasses: [a, b]\ncolumns: [x, y, z, heat]\nmap: {0: "
        "a, 1: b}\n"
        "ignore: [7]\ncoordinates: scan\norigin: [0.1, 0, 0]\ntrain: [{cloud: c*.txt, labels: "
        "c*.lab}, {cloud: c0.txt, labels: c1.lab}]\n");
    fail_each("config", read_config, &f);
    fail_each("epoch", run_epoch, &f);
    static const char one[] = "1 0 0 0\n0 1 0 0\n0 0 1 0\n";
    folder_print(&f, "pose.txt", "%s", one);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "p%d.txt", i);
        folder_print(&f, name, "%s", one);
    }
    folder_print(&f, "gt.log", "0 1 2\n%s0 0 0 1\n2 3 2\n%s0 0 0 1\n", one, one);
    folder_print(&f, "k/poses.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 0 0 1 0 0 0 0 1 9\n");
    folder_print(&f, "k/calib.txt", "Tr: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "k/%06d.bin", i);
        folder_put(&f, name, (float[8]){1, 2, 3, 0, 2, 3, 4, 0}, 32);
    }
    folder_print(&f, "pairs.yaml",
        "pnet_dataset: 1\ntask: registration\ncolumns: [x, y, z, heat]\ntrain:\n"
        "  - {source: c0.txt, target: c1.txt, pose: pose.txt}\n"
        "  - {source: c*.txt, target: c*.txt, pose: p*.txt}\n"
        "  - {log: gt.log, clouds: c*.txt}\n"
        "  - {velodyne: k, poses: k/poses.txt, calib: k/calib.txt, pairs: {distance: 8}}\n"
        "  - {cloud: c*.txt, views: {count: 2, overlap: 50%%, points: [50%%, 90%%]}}\n");
    fail_each("pairs", run_pairs, &f);
    folder_print(&f, "box.off",
        "OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n");
    folder_print(&f, "box.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3 4\nf 1 2 4\n");
    folder_print(&f, "completion.yaml",
        "pnet_dataset: 1\ntask: completion\nclasses: [a, b]\ncolumns: [x, y, z, heat]\n"
        "map: {7: a}\ntrain:\n"
        "  - {partial: c*.txt, full: c*.txt, points: 3, full_points: 9, label: a}\n"
        "  - {mesh: box.*, points: 30, views: {count: 2, points: 10}, label: b}\n"
        "  - {mesh: box.obj, points: 30, views: {kind: cut, points: 10}, label: 7}\n"
        "  - {full: c*.txt, full_points: 9, views: {count: 2, kind: cut, points: 5}, label: b}\n");
    fail_each("completion", run_completion, &f);
    folder_remove(&f);
    return check_end();
}
#endif
