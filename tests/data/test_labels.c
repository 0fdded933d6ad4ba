/* Labels as files have them: NaN for points without one, labels that count from 1, numbers that are no labels, bytes. */
#include "runtime/data/dataset.h"
#include "runtime/io/npy.h"
#include "tests/data/folder.h"

#include <stdint.h>

static const char head[] = "pnet_dataset: 1\ntask: segmentation\nlabel_field: "
                           "scalar_Class\nclasses: [wall, floor, chair]\n";

enum { MOST = 8 };

/* Loads the only cloud of an index. */
static enum pnet_status load(const struct folder *f, const char *head_text, const char *rest,
    struct pnet_labelled *l, struct pnet_error *e)
{
    struct pnet_dataset *d;
    *l = (struct pnet_labelled){.labels = NULL};
    *e = (struct pnet_error){.message = ""};
    folder_print(f, "dataset.yaml", "%s%s", head_text, rest);
    enum pnet_status status = pnet_dataset_read(f->path, &d, e);
    if (!status) status = pnet_dataset_load(d, PNET_TRAIN, 0, true, l, NULL, e);
    pnet_dataset_free(d);
    return status;
}

static void expect(const struct folder *f, const char *rest, const int32_t *want, int count)
{
    struct pnet_labelled l;
    struct pnet_error e;
    enum pnet_status status = load(f, head, rest, &l, &e);
    CHECKF(!status && l.label_count == count, "%s: %s", rest, e.message);
    for (int i = 0; i < count && l.label_count == count; i++)
        CHECKF(l.labels[i] == want[i], "%s: row %d: %d", rest, i, l.labels[i]);
    pnet_labelled_free(&l);
}

/* The message has `part`, and not `never` (or NULL). */
static void refuse(const struct folder *f, const char *head_text, const char *rest,
    const char *part, const char *never)
{
    struct pnet_labelled l;
    struct pnet_error e;
    CHECK(load(f, head_text, rest, &l, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, part), "%s: no \"%s\" in \"%s\"", rest, part, e.message);
    CHECKF(!never || !strstr(e.message, never), "%s: \"%s\" in \"%s\"", rest, never, e.message);
    pnet_labelled_free(&l);
}

/* Points 0 0 0, 1 0 0, 2 0 0 ... with a label each, in the formats that hold real numbers. */

static void put_ply(const struct folder *f, const char *name, const float *label, int count)
{
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof text,
        "ply\nformat binary_little_endian 1.0\nelement vertex %d\nproperty float x\nproperty float "
        "y\n"
        "property float z\nproperty float scalar_Class\nend_header\n",
        count);
    for (int i = 0; i < count; i++) {
        const float row[4] = {(float)i, 0, 0, label[i]};
        memcpy(text + n, row, sizeof row);
        n += sizeof row;
    }
    folder_put(f, name, text, n);
}

static void put_pcd(const struct folder *f, const char *name, const float *label, int count)
{
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof text,
        "VERSION .7\nFIELDS x y z scalar_Class\nSIZE 4 4 4 8\nTYPE F F F F\nCOUNT 1 1 1 1\n"
        "WIDTH %d\nHEIGHT 1\nPOINTS %d\nDATA binary\n",
        count, count);
    for (int i = 0; i < count; i++) {
        const float xyz[3] = {(float)i, 0, 0};
        const double value = (double)label[i];
        memcpy(text + n, xyz, sizeof xyz);
        memcpy(text + n + sizeof xyz, &value, sizeof value);
        n += sizeof xyz + sizeof value;
    }
    folder_put(f, name, text, n);
}

static void put_text(const struct folder *f, const char *name, const float *label, int count)
{
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof text, "x y z scalar_Class\n");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d 0 0 %g\n", i, (double)label[i]);
    folder_put(f, name, text, n);
}

static void put_npy(const struct folder *f, const char *name, const float *label, int count)
{
    float rows[MOST][4] = {{0}};
    const int64_t shape[] = {count, 4};
    struct pnet_error e;
    for (int i = 0; i < count; i++) {
        rows[i][0] = (float)i;
        rows[i][3] = label[i];
    }
    CHECK(!pnet_npy_write(folder_path(f, name), PNET_F32, 2, shape, rows, &e));
}

/* LAS 1.2, points of format 0 and one extra dimension, a float. */
static void put_las(const struct folder *f, const char *name, const float *label, int count)
{
    enum { HEADER = 227, RECORD = 54 + 192, POINT = 24 };
    uint8_t las[HEADER + RECORD + MOST * POINT] = "LASF";
    const uint32_t at = HEADER + RECORD, one = 1;
    const uint16_t size = POINT, header = HEADER, entry = 192;
    const double scale = 1;
    las[24] = 1, las[25] = 2;
    memcpy(las + 94, &header, 2);
    memcpy(las + 96, &at, 4);
    memcpy(las + 100, &one, 4);
    memcpy(las + 105, &size, 2);
    memcpy(las + 107, &count, 4);
    for (int a = 0; a < 3; a++) memcpy(las + 131 + 8 * a, &scale, 8);
    memcpy(las + HEADER + 2, "LASF_Spec", 9);
    las[HEADER + 18] = 4;
    memcpy(las + HEADER + 20, &entry, 2);
    las[HEADER + 54 + 2] = 9;
    memcpy(las + HEADER + 54 + 4, "scalar_Class", 12);
    for (int i = 0; i < count; i++) {
        memcpy(las + at + POINT * i, &i, 4);
        memcpy(las + at + POINT * i + 20, &label[i], 4);
    }
    folder_put(f, name, las, at + (size_t)(POINT * count));
}

static const struct {
    const char *name;
    void (*put)(const struct folder *f, const char *name, const float *label, int count);
} formats[] = {{"c.ply", put_ply}, {"c.pcd", put_pcd}, {"c.xyz", put_text}, {"c.npy", put_npy},
    {"c.las", put_las}};

enum { FORMATS = sizeof formats / sizeof formats[0] };

static void test_unlabelled(const struct folder *f)
{
    static const float labels[] = {2, NAN, 0, 1, NAN}, half[] = {0, 1, 4.5f}, far[] = {0, INFINITY};
    static const int32_t ignored[] = {2, -1, 0, 1, -1}, floors[] = {2, 1, 0, 1, 1},
                         mapped[] = {0, 2, 2, 1, 2};
    char rest[256];
    for (int i = 0; i < FORMATS; i++) {
        const char *name = formats[i].name,
                   *columns = i == 3 ? "columns: [x, y, z, scalar_Class]\n" : "";
        formats[i].put(f, name, labels, 5);
        snprintf(rest, sizeof rest, "%smap_other: ignore\ntrain: [%s]\n", columns, name);
        expect(f, rest, ignored, 5);
        snprintf(rest, sizeof rest, "%smap_other: floor\ntrain: [%s]\n", columns, name);
        expect(f, rest, floors, 5);
        snprintf(rest, sizeof rest, "%smap: {2: wall, 1: floor}\nmap_other: chair\ntrain: [%s]\n",
            columns, name);
        expect(f, rest, mapped, 5);
        snprintf(rest, sizeof rest, "%strain: [%s]\n", columns, name);
        refuse(f, head, rest, "row 1: the label is NaN: set `map_other: ignore` in ", "list it");
        /* `map_other` is for labels; these numbers are none. */
        formats[i].put(f, name, half, 3);
        snprintf(rest, sizeof rest, "%smap_other: ignore\ntrain: [%s]\n", columns, name);
        refuse(f, head, rest, "row 2: label 4.5 is no integer", "list it");
        refuse(f, head, rest, "`label_field` of ", NULL);
        refuse(f, head, rest, "and `scalar_Class` holds other numbers", NULL);
        formats[i].put(f, name, far, 2);
        refuse(f, head, rest, "row 1: label inf is no integer", "list it");
    }
    put_ply(f, "c.ply", labels, 5);
    folder_print(f, "l.txt", "2\nNaN\n0\n1\nnan\n");
    expect(f, "map_other: ignore\ntrain: [{cloud: c.ply, labels: l.txt}]\n", ignored, 5);
    const int64_t shape[] = {5};
    struct pnet_error e;
    CHECK(!pnet_npy_write(folder_path(f, "l.npy"), PNET_F32, 1, shape, labels, &e));
    expect(f, "map_other: ignore\ntrain: [{cloud: c.ply, labels: l.npy}]\n", ignored, 5);
    refuse(f, head, "train: [{cloud: c.ply, labels: l.npy}]\n", "l.npy: row 1: the label is NaN",
        NULL);
}

static void test_count_from_one(const struct folder *f)
{
    static const float all[] = {1, 2, 3, 2}, some[] = {3, 255, 2}, four[] = {3, 1, 0, 2},
                       many[] = {1, 17, 2};
    static const int32_t shifted[] = {0, 1, 2, 1}, of_four[] = {2, 0, -1, 1},
                         of_some[] = {2, -1, 1};
    static const char map[] = "map: {1: wall, 2: floor, 3: chair}";
    char rest[256];
    put_ply(f, "c.ply", all, 4);
    refuse(
        f, head, "train: [c.ply]\n", "label 3 is beyond the classes, which count from 0", "ignore");
    refuse(f, head, "train: [c.ply]\n", map, NULL);
    snprintf(rest, sizeof rest, "%s\ntrain: [c.ply]\n", map); /* as the message says */
    expect(f, rest, shifted, 4);
    put_ply(f, "c.ply", some, 3);
    refuse(f, head, "ignore: [255]\ntrain: [c.ply]\n", map, "`ignore: [3]`");
    refuse(f, head, "train: [c.ply]\n", map, "`ignore: [3]`");
    snprintf(rest, sizeof rest, "ignore: [255]\n%s\ntrain: [c.ply]\n", map);
    expect(f, rest, of_some, 3);
    /* 0 may be no class, or 3 one too many */
    put_ply(f, "c.ply", four, 4);
    refuse(f, head, "train: [c.ply]\n", "map: {0: ignore, 1: wall, 2: floor, 3: chair}", NULL);
    refuse(f, head, "train: [c.ply]\n", "`ignore: [3]`", NULL);
    expect(f, "map: {0: ignore, 1: wall, 2: floor, 3: chair}\ntrain: [c.ply]\n", of_four, 4);
    put_ply(f, "c.ply", many, 3);
    refuse(f, head, "train: [c.ply]\n",
        "row 1: label 17 is beyond the classes; give it a class in the `map`", map);
    refuse(f, head, "map: {1: wall}\ntrain: [c.ply]\n",
        "label 17 is not in the map; list it in the `map`", NULL);
    static const uint32_t kitti[] = {0x30001, 3, 2};
    folder_put(f, "l.label", kitti, sizeof kitti);
    refuse(f, head, "train: [{cloud: c.ply, labels: l.label}]\n", map, "`ignore: [3]`");
}

/* Arrays of clouds: labels of clouds are judged together, labels of points cloud by cloud. */
static void test_arrays(const struct folder *f)
{
    static const float points[2 * 2 * 3];
    static const int32_t of_clouds[] = {1, 2}, of_points[] = {1, 2, 3, 1};
    static const double unknown[] = {1, NAN};
    static const int64_t shape[] = {2, 2, 3};
    static const char two[] = "pnet_dataset: 1\ntask: classification\nclasses: [cup, bowl]\n";
    struct pnet_labelled l;
    struct pnet_error e;
    CHECK(!pnet_npy_write(folder_path(f, "p.npy"), PNET_F32, 3, shape, points, &e));
    CHECK(!pnet_npy_write(folder_path(f, "c.npy"), PNET_I32, 1, shape, of_clouds, &e));
    CHECK(!pnet_npy_write(folder_path(f, "l.npy"), PNET_I32, 2, shape, of_points, &e));
    CHECK(!pnet_npy_write(folder_path(f, "u.npy"), PNET_F64, 1, shape, unknown, &e));
    refuse(f, two, "train: [{array: p.npy, labels: c.npy}]\n",
        "row 1: label 2 is beyond the classes, which count from 0", "ignore");
    refuse(f, two, "train: [{array: p.npy, labels: c.npy}]\n", "map: {1: cup, 2: bowl}", NULL);
    CHECK(
        !load(f, two, "map: {1: cup, 2: bowl}\ntrain: [{array: p.npy, labels: c.npy}]\n", &l, &e) &&
        l.labels[0] == 0);
    pnet_labelled_free(&l);
    refuse(
        f, two, "train: [{array: p.npy, labels: u.npy}]\n", "row 1: the label is NaN: set", NULL);
    CHECK(!load(f, two, "map_other: ignore\ntrain: [{array: p.npy, labels: u.npy}]\n", &l, &e));
    pnet_labelled_free(&l);
    refuse(f, head, "train: [{array: p.npy, labels: l.npy, drop_every: 2}]\n",
        "map: {1: wall, 2: floor, 3: chair}", "ignore: [3]");
}

/* The map of many classes is cut in its middle; names that YAML would read otherwise stand as indices. */
static void test_long_maps(const struct folder *f)
{
    char many[4096];
    size_t n = (size_t)snprintf(many, sizeof many,
        "pnet_dataset: 1\ntask: segmentation\nlabel_field: scalar_Class\nclasses: ['a: b', '7'");
    for (int i = 2; i < 100; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, ", class_number_%d", i);
    snprintf(many + n, sizeof many - n, "]\n");
    static const float labels[] = {100, 1};
    put_ply(f, "c.ply", labels, 2);
    refuse(f, many, "train: [c.ply]\n", "map: {1: 0, 2: 1, 3: class_number_2, ", NULL);
    refuse(f, many, "train: [c.ply]\n", ", ..., 100: class_number_99}\ninto ", NULL);
    refuse(f, many, "train: [c.ply]\n", "/dataset.yaml", NULL);
}

/* nuScenes-lidarseg: a byte a point. */
static void test_bytes(const struct folder *f)
{
    static const float none[] = {0, 0, 0};
    static const uint8_t bytes[] = {2, 255, 0, 1};
    static const int32_t want[] = {2, -1, 0};
    put_ply(f, "c.ply", none, 3);
    folder_put(f, "a_lidarseg.bin", bytes, 3);
    expect(f, "ignore: [255]\ntrain: [{cloud: c.ply, labels: a_lidarseg.bin}]\n", want, 3);
    folder_put(f, "a_lidarseg.bin", bytes, 4);
    refuse(f, head, "train: [{cloud: c.ply, labels: a_lidarseg.bin}]\n",
        "a_lidarseg.bin: 4 bytes for a cloud of 3 points: expected 1 byte a point", NULL);
    folder_put(f, "a.label", bytes, 3);
    refuse(f, head, "train: [{cloud: c.ply, labels: a.label}]\n",
        "a.label: 3 bytes for a cloud of 3 points: expected 4 bytes a point", NULL);
}

int main(void)
{
    struct folder f = folder_make();
    test_unlabelled(&f);
    test_count_from_one(&f);
    test_arrays(&f);
    test_long_maps(&f);
    test_bytes(&f);
    folder_remove(&f);
    return check_end();
}
