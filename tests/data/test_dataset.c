/* Data sets: what an index lists, how labels become classes, and what is refused. */
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_array.h"
#include "runtime/base/glob.h"
#include "runtime/io/npy.h"
#include "tests/data/folder.h"
#include "tests/io/archive.h"

static const char head[] = "pnet_dataset: 1\ntask: segmentation\nclasses: [wall, floor, chair]\n";
static const char head_class[] = "pnet_dataset: 1\ntask: classification\nclasses: [cup, bowl]\n";

static const char three_points[] = "0 0 0 5\n1 0 0 6\n0 1 0 7\n";

static struct pnet_dataset *read_index(
    const struct folder *f, const char *head_text, const char *rest)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_print(f, "dataset.yaml", "%s%s", head_text, rest);
    enum pnet_status status = pnet_dataset_read(f->path, &d, &e);
    CHECKF(!status, "%s", e.message);
    if (!d) exit(1);
    return d;
}

/* The message follows "FOLDER/dataset.yaml:". */
static void expect_bad(
    const struct folder *f, const char *head_text, const char *rest, const char *message)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = "nothing"};
    folder_print(f, "dataset.yaml", "%s%s", head_text, rest);
    CHECK(pnet_dataset_read(f->path, &d, &e) == PNET_BAD_DATA && !d);
    size_t skip = strlen(f->path) + strlen("/dataset.yaml:");
    CHECK_STR(strlen(e.message) > skip ? e.message + skip : e.message, message);
}

static void check_ends(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    CHECKF(n >= m && strcmp(path + n - m, ending) == 0, "%s does not end in %s", path, ending);
}

static void test_entries(const struct folder *f)
{
    struct pnet_dataset *d = read_index(f, head,
        "train:\n"
        "  - {cloud: a/s2/x.txt, labels: a/s2/x_lab.txt}\n"
        "  - a/s*/x.txt\n"
        "  - {cloud: a/s*/*.txt, labels: b/*_*.label, keep_every: 2}\n"
        "val:\n"
        "test: [{cloud: a/s*/x.txt, drop_every: 2}]\n");
    CHECK(d->task == PNET_SEGMENTATION && d->class_count == 3 && d->counts[PNET_VAL] == 0);
    CHECK_STR(d->classes[2], "chair");
    CHECK_STR(d->label_field, "label");
    CHECK(d->counts[PNET_TRAIN] == 1 + 3 + 2 && d->counts[PNET_TEST] == 1);
    const struct pnet_entry *t = d->entries[PNET_TRAIN];
    check_ends(t[0].labels, "a/s2/x_lab.txt");
    check_ends(t[1].cloud, "a/s1/x.txt"); /* sorted */
    check_ends(t[2].cloud, "a/s10/x.txt");
    check_ends(t[3].cloud, "a/s2/x.txt");
    CHECK(!t[1].labels);
    check_ends(t[4].cloud, "a/s1/x.txt"); /* both stars are carried over */
    check_ends(t[4].labels, "b/1_x.label");
    check_ends(t[5].cloud, "a/s2/x.txt"); /* x_lab.txt lies between and is the fourth */
    check_ends(t[5].labels, "b/2_x.label");
    check_ends(d->entries[PNET_TEST][0].cloud, "a/s10/x.txt");
    pnet_dataset_free(d);
}

static void put_entries(const struct folder *f)
{
    folder_print(f, "a/s10/x.txt", three_points);
    folder_print(f, "a/s2/x.txt", three_points);
    folder_print(f, "a/s1/x.txt", three_points);
    folder_print(f, "a/s2/x_lab.txt", "0\n1\n2\n");
    static const uint32_t labels[] = {0x30001, 2, 0xffff0000};
    folder_put(f, "b/1_x.label", labels, sizeof labels);
    folder_put(f, "b/2_x.label", labels, sizeof labels);
    folder_put(f, "b/10_x.label", labels, sizeof labels);
    folder_put(f, "b/2_x_lab.label", labels, sizeof labels);
}

static void test_classification(const struct folder *f)
{
    struct pnet_dataset *d = read_index(f, head_class,
        "map: {7: bowl, 8: 0, 9: ignore}\n"
        "train:\n"
        "  - {cloud: a/s1/x.txt, label: cup}\n"
        "  - {cloud: a/s2/x.txt, label: 7}\n"
        "  - {cloud: a/s2/x.txt, label: 8}\n"
        "  - {cloud: a/s2/x.txt, label: 9}\n"
        "  - {cloud: a/s2/x.txt}\n");
    static const int32_t want[] = {0, 1, 0, PNET_LABEL_IGNORED, PNET_LABEL_NONE};
    int64_t counts[2];
    struct pnet_error e;
    for (int i = 0; i < 5; i++) {
        struct pnet_labelled l;
        CHECK(d->entries[PNET_TRAIN][i].label == want[i]);
        CHECK(!pnet_dataset_load(d, PNET_TRAIN, i, true, &l, NULL, &e));
        CHECK(l.label_count == (i < 4) && l.cloud.rows == 3);
        if (i < 4) CHECK(l.labels[0] == want[i]);
        pnet_labelled_free(&l);
    }
    CHECK(!pnet_dataset_count(d, PNET_TRAIN, counts, &e) && counts[0] == 2 && counts[1] == 1);
    pnet_dataset_free(d);
    expect_bad(f, head_class, "train: [{cloud: a/s1/x.txt, label: bowll}]\n",
        "4: `bowll` is none of the 2 classes; did you mean `bowl`?");
    expect_bad(f, head_class, "train: [{cloud: a/s1/x.txt, label: 2}]\n",
        "4: label: 2 is none of the 2 classes, which count from 0");
    expect_bad(f, head_class, "map: {2: cup}\ntrain: [{cloud: a/s1/x.txt, label: 1}]\n",
        "5: label: 1 is none of the 2 classes, and not in `map`");
    expect_bad(f, head_class, "train: [{cloud: a/s1/x.txt, labels: a/s1/x.txt}]\n",
        "4: labels: a file of labels is for segmentation; use `label: CLASS`");
}

static void test_errors(const struct folder *f)
{
    char text[1024];
    expect_bad(f, "", "task: segmentation\n",
        "1: a data set needs `pnet_dataset: 1`, `task` and `classes`");
    expect_bad(f, "", "pnet_dataset: 2\ntask: segmentation\nclasses: [a]\n",
        "1: pnet_dataset: version 2 is unknown, expected 1");
    expect_bad(f, head, "trian: []\n", "4: data set: unknown key `trian`; did you mean `train`?");
    expect_bad(f, "", "pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, a]\n",
        "3: classes: `a` is there twice");
    expect_bad(f, head, "map: {x: wall}\n", "4: map: `x` is no raw label, an integer");
    expect_bad(
        f, head, "map: {1: wal}\n", "4: `wal` is none of the 3 classes; did you mean `wall`?");
    expect_bad(f, head, "map: {1: 3}\n", "4: `3` is none of the 3 classes");
    expect_bad(f, head, "map_other: others\n", "4: `others` is none of the 3 classes");
    expect_bad(f, head, "map: {1: wall}\nignore: [1]\n", "5: the raw label 1 is there twice");
    expect_bad(f, head, "map: {1: wall, 01: floor}\n", "4: the raw label 1 is there twice");
    expect_bad(f, head, "columns: [x, z, y]\n", "4: columns: the first three are x, y and z");
    expect_bad(f, head, "train:\n  - {}\n", "5: an entry needs one of `cloud` and `array`");
    expect_bad(f, head, "train: [nothing/*.ply]\n", "4: no file is called `nothing/*.ply`");
    expect_bad(f, head, "train: [{cloud: a/s1/x.txt, label: wall}]\n",
        "4: label: is for single clouds of a classification task");
    expect_bad(f, head, "train: [{cloud: a/s1/x.txt, kind: voxels}]\n",
        "4: points, kind and cell are for `array` entries");
    expect_bad(f, head, "train: [{cloud: a/*/x.txt, labels: b/*_*.label}]\n",
        "4: `a/*/x.txt` and `b/*_*.label` cannot be paired: both need the same number of *, at "
        "most 16, and no "
        "other wildcard");
    expect_bad(f, head, "train: [{cloud: a/s*/x.txt, keep_every: 2, drop_every: 2}]\n",
        "4: keep_every and drop_every exclude each other");
    expect_bad(f, head, "val:\n\n  - missing.ply\n",
        (snprintf(text, sizeof text, "6: %s/missing.ply: No such file or directory", f->path),
            text));
    expect_bad(f, head, "val: [a/s1]\n",
        (snprintf(text, sizeof text, "4: %s/a/s1: is not a file", f->path), text));
    struct pnet_dataset *d;
    struct pnet_error e;
    CHECK(pnet_dataset_read("/nowhere", &d, &e) == PNET_FAILED && !d);
}

/* Loads the only cloud of an index whose entries and map are `rest`; its classes must be these. */
static void expect_labels(const struct folder *f, const char *rest, const int32_t *want, int count)
{
    struct pnet_labelled l;
    struct pnet_error e = {.message = ""};
    struct pnet_dataset *d = read_index(f, head, rest);
    enum pnet_status status = pnet_dataset_load(d, PNET_TRAIN, 0, true, &l, NULL, &e);
    CHECKF(!status && l.label_count == count, "%s: %s", rest, e.message);
    for (int i = 0; i < count && l.label_count == count; i++)
        CHECKF(l.labels[i] == want[i], "%s: row %d: %d", rest, i, l.labels[i]);
    pnet_labelled_free(&l);
    pnet_dataset_free(d);
}

static void expect_load_error(const struct folder *f, const char *rest, const char *part)
{
    struct pnet_labelled l;
    struct pnet_error e = {.message = ""};
    struct pnet_dataset *d = read_index(f, head, rest);
    CHECK(pnet_dataset_load(d, PNET_TRAIN, 0, true, &l, NULL, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, part), "\"%s\" is not in \"%s\"", part, e.message);
    CHECK(!l.labels && !l.cloud.rows);
    pnet_dataset_free(d);
}

static void test_labels(const struct folder *f)
{
    static const int32_t plain[] = {0, 1, 2}, kitti[] = {1, 2, 0}, mapped[] = {2, -1, 0},
                         others[] = {0, 2, 2}, indices[] = {1, -1, 1}, dropped[] = {0, 2};
    struct pnet_error e;
    int64_t shape[] = {3, 1}, labels[] = {0, 1, 2}, beyond[] = {0, 3, 2};
    CHECK(!pnet_npy_write(folder_path(f, "l.npy"), PNET_I64, 2, shape, labels, &e));
    CHECK(!pnet_npy_write(folder_path(f, "beyond.npy"), PNET_I64, 1, shape, beyond, &e));
    folder_print(f, "in.txt", "0 0 0 5\n1 0 0 6\n0 1 0 7\n");
    folder_print(f, "nan.txt", "0 0 0 5\nnan 0 0 6\n0 1 0 7\n");
    folder_print(f, "l.txt", "0\n1\n2\n");
    folder_print(f, "short.txt", "0\n1\n");
    folder_print(f, "long.txt", "0\n1\n2\n0\n");
    folder_print(f, "bad.txt", "0\n1.5\n2\n");

    expect_labels(f, "train: [{cloud: in.txt, labels: l.npy}]\n", plain, 3);
    expect_labels(f, "train: [{cloud: in.txt, labels: l.txt}]\n", plain, 3);
    expect_labels(f, "train: [{cloud: in.txt, labels: b/1_x.label}]\n", kitti, 3);
    expect_labels(f,
        "columns: [x, y, z, label]\nmap: {5: chair, 7: wall}\nignore: [6]\ntrain: [in.txt]\n",
        mapped, 3);
    expect_labels(f,
        "columns: [x, y, z, kind]\nlabel_field: kind\nmap_other: ignore\nmap: {5: 2, 7: wall}\n"
        "train: [in.txt]\n",
        mapped, 3);
    /* Labels that are not listed may be a class, with a map or without. */
    expect_labels(f,
        "columns: [x, y, z, label]\nmap: {5: wall}\nmap_other: chair\ntrain: [in.txt]\n", others,
        3);
    expect_labels(
        f, "columns: [x, y, z, label]\nignore: [6]\nmap_other: 1\ntrain: [in.txt]\n", indices, 3);
    /* Points that are dropped take their labels with them. */
    expect_labels(f, "train: [{cloud: nan.txt, labels: l.npy}]\n", dropped, 2);
    expect_labels(f, "train: [{cloud: nan.txt, labels: l.txt}]\n", dropped, 2);
    expect_labels(
        f, "columns: [x, y, z, label]\nmap: {5: wall, 7: chair}\ntrain: [nan.txt]\n", dropped, 2);
    /* No labels anywhere is no error yet: the model may not want them. */
    expect_labels(f, "train: [in.txt]\n", NULL, 0);

    expect_load_error(f, "train: [{cloud: in.txt, labels: beyond.npy}]\n",
        "beyond.npy: row 1: label 3 is beyond");
    expect_load_error(f, "columns: [x, y, z, label]\nmap: {5: chair}\ntrain: [in.txt]\n",
        "in.txt: row 1: label 6 is not in the map");
    expect_load_error(f, "columns: [x, y, z, label]\nmap: {5: chair}\ntrain: [nan.txt]\n",
        "nan.txt: row 2: label 7 is not in the map");
    expect_load_error(
        f, "train: [{cloud: in.txt, labels: short.txt}]\n", "2 labels for a cloud of 3 points");
    expect_load_error(f, "train: [{cloud: in.txt, labels: long.txt}]\n",
        "long.txt:4: more labels than the 3 points");
    expect_load_error(
        f, "train: [{cloud: in.txt, labels: bad.txt}]\n", "bad.txt:2: expected one integer");
    expect_load_error(
        f, "columns: [x, y, z, a, b]\ntrain: [in.txt]\n", "has 4 columns, but `columns` names 5");
}

static void test_arrays(const struct folder *f)
{
    struct pnet_error e;
    struct pnet_array a;
    int64_t shape[] = {2, 3, 4}, grid[] = {2, 2, 1, 3};
    float points[24];
    uint8_t cells[12] = {1, 0, 0, 0, 2, 0, /* second */ 0, 0, 0, 0, 0, 0};
    int32_t per_point[] = {0, 1, 2, 2, 1, 0}, per_cloud[] = {1, 0};
    for (int i = 0; i < 24; i++) points[i] = (float)i;
    CHECK(!pnet_npy_write(folder_path(f, "p.npy"), PNET_F32, 3, shape, points, &e));
    CHECK(!pnet_npy_write(folder_path(f, "pl.npy"), PNET_I32, 2, shape, per_point, &e));
    CHECK(!pnet_npy_write(folder_path(f, "g.npy"), PNET_U8, 4, grid, cells, &e));
    CHECK(!pnet_npy_write(folder_path(f, "gl.npy"), PNET_I32, 1, shape, per_cloud, &e));

    struct pnet_labelled l;
    struct pnet_dataset *d = read_index(f, head,
        "columns: [x, y, z, heat]\ntrain: [{array: p.npy, labels: pl.npy}]\n"
        "val: [{array: p.npy, labels: pl.npy, keep_every: 2}]\n");
    CHECK(d->counts[PNET_TRAIN] == 2 && d->counts[PNET_VAL] == 1 && d->array_count == 1);
    CHECK(!pnet_dataset_load(d, PNET_TRAIN, 1, true, &l, NULL, &e));
    CHECK(l.cloud.rows == 3 && l.label_count == 3 && l.labels[0] == 2 && l.labels[2] == 0);
    for (int i = 0; i < 9; i++) CHECK(l.cloud.xyz[i] == points[12 + i / 3 * 4 + i % 3]);
    const struct pnet_field *heat = pnet_cloud_field(&l.cloud, "heat");
    CHECK(heat && heat->type == PNET_F32 && ((float *)heat->data)[1] == 19);
    pnet_labelled_free(&l);
    char name[600];
    pnet_entry_name(&d->entries[PNET_TRAIN][1], name, sizeof name);
    check_ends(name, "p.npy[1]");
    pnet_dataset_free(d);

    d = read_index(
        f, head_class, "train: [{array: g.npy, labels: gl.npy, kind: voxels, cell: 50cm}]\n");
    CHECK(d->entries[PNET_TRAIN][0].label == 1 && d->entries[PNET_TRAIN][1].label == 0);
    CHECK(!pnet_dataset_load(d, PNET_TRAIN, 0, true, &l, NULL, &e));
    static const float centres[] = {0.25f, 0.25f, 0.25f, 0.75f, 0.25f, 0.75f};
    CHECK(l.cloud.rows == 2 && memcmp(l.cloud.xyz, centres, sizeof centres) == 0);
    pnet_labelled_free(&l);
    CHECK(!pnet_dataset_load(d, PNET_TRAIN, 1, true, &l, NULL, &e) && l.cloud.rows == 0);
    pnet_labelled_free(&l);
    pnet_dataset_free(d);

    /* A file of a hundred bytes that promises any number of clouds. */
    int64_t nothing[] = {100000000, 0, 3}, no_cells[] = {100000000, 2, 0, 2}, none[] = {0, 1024, 3};
    CHECK(!pnet_npy_write(folder_path(f, "n.npy"), PNET_F32, 3, nothing, points, &e));
    CHECK(!pnet_npy_write(folder_path(f, "ng.npy"), PNET_F32, 4, no_cells, points, &e));
    CHECK(!pnet_npy_write(folder_path(f, "0.npy"), PNET_F32, 3, none, points, &e));
    const char *promise = "100000000 clouds without a point";
    CHECK(pnet_array_read(folder_path(f, "n.npy"), NULL, NULL, PNET_ARRAY_POINTS, 1, &a, &e) ==
              PNET_BAD_DATA &&
          strstr(e.message, promise));
    CHECK(pnet_array_read(folder_path(f, "ng.npy"), NULL, NULL, PNET_ARRAY_VOXELS, 1, &a, &e) ==
              PNET_BAD_DATA &&
          strstr(e.message, promise));
    CHECK(!pnet_array_read(folder_path(f, "0.npy"), NULL, NULL, PNET_ARRAY_POINTS, 1, &a, &e));
    pnet_array_free(&a);

    expect_bad(f, head_class, "train: [{array: p.npy, labels: pl.npy}]\n",
        "4: labels: the task needs one a cloud");
    expect_bad(f, head, "train: [{array: g.npy, kind: voxels, labels: gl.npy}]\n",
        "4: labels: the task needs one a point");
}

/* A pattern stands for arrays in sorted order, with labels in files of their own. What two entries list is read once. */
static void test_many_arrays(const struct folder *f)
{
    struct pnet_error e;
    const int64_t shape[] = {2, 1, 3};
    const float points[] = {1, 2, 3, 4, 5, 6};
    const int32_t labels[2][2] = {{0, 1}, {1, 1}};
    folder_print(f, "many/x", "%s", "");
    for (int i = 0; i < 2; i++) {
        CHECK(!pnet_npy_write(
            folder_path(f, i ? "many/d2.npy" : "many/d10.npy"), PNET_F32, 3, shape, points, &e));
        CHECK(!pnet_npy_write(
            folder_path(f, i ? "many/l2.npy" : "many/l10.npy"), PNET_I32, 1, shape, labels[i], &e));
    }
    struct pnet_dataset *d = read_index(f, head_class,
        "train: [{array: many/d*.npy, labels: many/l*.npy, keep_every: 2}]\n"
        "val: [{array: many/d2.npy, labels: many/l2.npy}]\n");
    CHECK(d->counts[PNET_TRAIN] == 2 && d->counts[PNET_VAL] == 2 && d->array_count == 2);
    check_ends(d->entries[PNET_TRAIN][0].cloud, "many/d10.npy");
    check_ends(d->entries[PNET_TRAIN][1].cloud, "many/d2.npy");
    CHECK(d->entries[PNET_TRAIN][0].label == 0 && d->entries[PNET_TRAIN][1].label == 1);
    CHECK(d->entries[PNET_VAL][1].label == 1 && d->entries[PNET_VAL][1].row == 1);
    pnet_dataset_free(d);
    expect_bad(
        f, head_class, "train: [{array: many/e*.npy}]\n", "4: no file is called `many/e*.npy`");
}

/* The arrays of test_arrays, in centimetres above millimetres; the cells of a grid have a size of their own. */
static void test_units(const struct folder *f)
{
    static const float centres[] = {0.25f, 0.25f, 0.25f, 0.75f, 0.25f, 0.75f};
    struct pnet_labelled l;
    struct pnet_error e;
    struct pnet_dataset *d = read_index(f, head,
        "unit: cm,mm\ntrain: [{array: p.npy, labels: pl.npy}]\n"
        "val: [{array: g.npy, kind: voxels, cell: 50cm}]\n");
    CHECK(!pnet_dataset_load(d, PNET_TRAIN, 1, true, &l, NULL, &e));
    for (int i = 0; i < 9; i++) {
        double file = 12 + i / 3 * 4 + i % 3, metres = i % 3 == 2 ? 0.001 : 0.01;
        CHECK(l.cloud.xyz[i] == (float)(file * metres));
        CHECK(fabs(pnet_cloud_coordinate(&l.cloud, i / 3, i % 3) - file) < 1e-4);
    }
    pnet_labelled_free(&l);
    CHECK(!pnet_dataset_load(d, PNET_VAL, 0, false, &l, NULL, &e));
    CHECK(l.cloud.rows == 2 && memcmp(l.cloud.xyz, centres, sizeof centres) == 0);
    pnet_labelled_free(&l);
    pnet_dataset_free(d);

    expect_bad(f, head, "unit: file\ntrain: [{array: p.npy, labels: pl.npy}]\n",
        "5: unit: file: an array does not state its unit: name it, m, ft ...");
    expect_bad(f, head, "unit: feet\n",
        "4: unit: `feet`: expected file, m, km, cm, mm, in, ft, us-ft or yd; or two of them for x "
        "and "
        "y, and for z: m,ft");
}

static void test_checks(const struct folder *f)
{
    struct pnet_error e;
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 3}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 2};
    struct pnet_dataset *d = read_index(f, head, "train: [in.txt]\n");
    CHECK(!pnet_dataset_check(d, &input, 1, &e));
    fields[1].classes = 20;
    CHECK(pnet_dataset_check(d, &input, 1, &e) == PNET_USAGE);
    CHECK(strstr(e.message, "cloud.label is of 20 classes") && strstr(e.message, "has 3:"));
    fields[1].unused = true;
    CHECK(!pnet_dataset_check(d, &input, 1, &e));
    fields[1] = (struct pnet_input_field){
        .name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 3, .per_cloud = true};
    CHECK(pnet_dataset_check(d, &input, 1, &e) == PNET_USAGE && strstr(e.message, "segmentation"));
    pnet_dataset_free(d);

    static const int64_t counts[] = {900, 0, 100};
    double w[3], mean = 0;
    pnet_class_weights(counts, 3, w);
    for (int i = 0; i < 3; i++) mean += w[i] * (double)counts[i] / 1000;
    CHECK(fabs(mean - 1) < 1e-12 && fabs(w[2] / w[0] - 3) < 1e-12 && w[1] == 1);
}

static void test_globs(const struct folder *f)
{
    struct pnet_paths p;
    struct pnet_error e;
    char odd[600];
    folder_print(f, "o[d]*d/x.txt", "0 0 0\n");
    snprintf(odd, sizeof odd, "%s/o[d]*d", f->path);
    CHECK(!pnet_glob(odd, "*.txt", &p, &e) && p.count == 1);
    pnet_paths_free(&p);
    CHECK(pnet_glob(f->path, "*.none", &p, &e) == PNET_BAD_DATA && !p.count);
    struct pnet_paths to;
    char *items[] = {(char[]){"/q/aXbXXc.x"}};
    struct pnet_paths from = {.items = items, .count = 1};
    CHECK(!pnet_glob_pair("/q/", "a*b*c.*", "*-*-*", &from, &to, &e));
    CHECK_STR(to.items[0], "/q/X-XX-x");
    pnet_paths_free(&to);
}

/* Lists one entry, and checks the cloud and the labels (or NULL) of number `i`, which the names end in. */
static void expect_entry(const struct folder *f, const char *entry, int count, int i,
    const char *cloud, const char *labels)
{
    char text[400];
    snprintf(text, sizeof text, "train:\n  - %s\n", entry);
    struct pnet_dataset *d = read_index(f, head, text);
    CHECKF(d->counts[PNET_TRAIN] == count, "%s: %d clouds", entry, (int)d->counts[PNET_TRAIN]);
    if (d->counts[PNET_TRAIN] > i) {
        check_ends(d->entries[PNET_TRAIN][i].cloud, cloud);
        if (labels) check_ends(d->entries[PNET_TRAIN][i].labels, labels);
    }
    pnet_dataset_free(d);
}

/* A path that exists as it is written is that file, whatever wildcards it has. */
static void test_literal_names(const struct folder *f)
{
    static const char *const names[] = {"q/scan [1].txt", "q/scan 1.txt", "q/lab [1].txt",
        "q/a?b.txt", "q/aXb.txt", "q/s*.txt", "q/s1.txt", "q/b\\c.txt", "r [2]/x1.txt",
        "r [2]/x2.txt", "r [2]/l1.txt", "r [2]/l2.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) folder_print(f, names[i], "0 0 0\n");
    expect_entry(f, "'q/scan [1].txt'", 1, 0, "/q/scan [1].txt", NULL);
    expect_entry(f, "'q/scan [12].txt'", 1, 0, "/q/scan 1.txt", NULL);
    expect_entry(f, "'q/scan \\[1\\].txt'", 1, 0, "/q/scan [1].txt", NULL);
    expect_entry(f, "q/a?b.txt", 1, 0, "/q/a?b.txt", NULL);
    expect_entry(f, "q/?Xb.txt", 1, 0, "/q/aXb.txt", NULL);
    expect_entry(f, "q/s*.txt", 1, 0, "/q/s*.txt", NULL);
    expect_entry(f, "q/s?.txt", 2, 1, "/q/s1.txt", NULL);
    expect_entry(f, "q/b\\c.txt", 1, 0, "/q/b\\c.txt", NULL);
    expect_entry(f, "'r [2]/x*.txt'", 2, 1, "/r [2]/x2.txt", NULL);
    expect_entry(f, "{cloud: 'q/scan [1].txt', labels: 'q/lab [1].txt'}", 1, 0, "/q/scan [1].txt",
        "/q/lab [1].txt");
    expect_entry(f, "{cloud: 'r [2]/x*.txt', labels: 'r [2]/l*.txt'}", 2, 1, "/r [2]/x2.txt",
        "/r [2]/l2.txt");
    expect_bad(f, head, "train: [{cloud: 'q/s?.txt', labels: 'q/l?.txt'}]\n",
        "4: `q/s?.txt` and `q/l?.txt` cannot be paired: both need the same number of *, at most "
        "16, "
        "and no other wildcard");
}

/* Writes a.npz: labels [2], one [2, 1, 3] of ones, then two [2, 3] of twos and three [2, 3] of threes. */
static void put_npz(const struct folder *f)
{
    static const char *const names[] = {"labels.npy", "many.npy", "two.npy", "three.npy"};
    static const char *const heads[] = {DICT("'|u1'", "False", "(2,)"),
        DICT("'<f4'", "False", "(2, 1, 3)"), DICT("'<f4'", "False", "(2, 3)"),
        DICT("'<f4'", "False", "(2, 3)")};
    static struct entry m[4];
    static struct buffer b;
    for (int i = 0; i < 4; i++) {
        float v[6];
        for (int k = 0; k < 6; k++) v[k] = (float)i;
        m[i].name = names[i];
        put_npy(&m[i].content, 1, heads[i], i ? (void *)v : "\0\1", i ? sizeof v : 2);
    }
    put_archive(&b, m, 4, 0);
    folder_put(f, "a.npz", b.data, b.size);
}

/* `coordinates` chooses the array of a cloud; an entry `array` finds the only one of many clouds. */
static void test_coordinates(const struct folder *f)
{
    struct pnet_labelled l;
    struct pnet_error e;
    put_npz(f);
    struct pnet_dataset *d =
        read_index(f, head, "coordinates: three\nlabel_field: labels\ntrain: [a.npz]\n");
    CHECKF(!pnet_dataset_load(d, PNET_TRAIN, 0, true, &l, NULL, &e), "%s", e.message);
    CHECK(l.cloud.rows == 2 && l.cloud.xyz[5] == 3 && l.labels[1] == 1);
    pnet_labelled_free(&l);
    pnet_dataset_free(d);
    expect_load_error(f, "train: [a.npz]\n", "two [2, 3], three [2, 3]");
    d = read_index(f, head_class, "train: [{array: a.npz, labels: labels}]\n");
    CHECK(d->counts[PNET_TRAIN] == 2 && d->entries[PNET_TRAIN][1].label == 1);
    CHECK(!pnet_dataset_load(d, PNET_TRAIN, 1, true, &l, NULL, &e));
    CHECK(l.cloud.rows == 1 && l.cloud.xyz[0] == 1);
    pnet_labelled_free(&l);
    pnet_dataset_free(d);
}

/* Names of columns fix how wide bare records are. */
static void test_records(const struct folder *f)
{
    float v[12][3];
    struct pnet_labelled l;
    struct pnet_error e;
    for (int i = 0; i < 36; i++) v[i / 3][i % 3] = (float)i;
    folder_put(f, "three.bin", v, sizeof v);
    static const int width[] = {3, 4, 6};
    static const char *const names[] = {"[x, y, z]", "[x, y, z, a]", "[x, y, z, a, b, c]"};
    for (int k = 0; k < 3; k++) {
        char text[200];
        snprintf(text, sizeof text, "columns: %s\ntrain: [three.bin]\n", names[k]);
        struct pnet_dataset *d = read_index(f, head, text);
        CHECKF(!pnet_dataset_load(d, PNET_TRAIN, 0, false, &l, NULL, &e), "%s", e.message);
        CHECK(l.cloud.rows == 36 / width[k] && l.cloud.field_count == width[k] - 3);
        CHECK(l.cloud.xyz[3] == (float)width[k]);
        pnet_labelled_free(&l);
        pnet_dataset_free(d);
    }
}

/* Counting labels where there are none is an error that says what is there. */
static void test_missing_labels(const struct folder *f)
{
    struct pnet_error e;
    int64_t counts[3];
    folder_print(f, "named.csv", "x,y,z,red,class\n0,0,0,1,2\n");
    struct pnet_dataset *d = read_index(f, head, "label_field: clas\ntrain: [named.csv]\n");
    CHECK(pnet_dataset_count(d, PNET_TRAIN, counts, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "named.csv") && strstr(e.message, "`clas`") &&
               strstr(e.message, "x, y, z, red, class"),
        "%s", e.message);
    pnet_dataset_free(d);
    d = read_index(f, head, "label_field: class\ntrain: [named.csv]\n");
    CHECK(!pnet_dataset_count(d, PNET_TRAIN, counts, &e) && counts[2] == 1);
    pnet_dataset_free(d);
}

int main(void)
{
    struct folder f = folder_make();
    put_entries(&f);
    test_entries(&f);
    test_classification(&f);
    test_labels(&f);
    test_arrays(&f);
    test_many_arrays(&f);
    test_literal_names(&f);
    test_coordinates(&f);
    test_units(&f);
    test_records(&f);
    test_missing_labels(&f);
    test_errors(&f);
    test_checks(&f);
    test_globs(&f);
    folder_remove(&f);
    return check_end();
}
