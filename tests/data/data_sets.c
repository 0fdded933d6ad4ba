/* An epoch of real data sets, through index files as a user would write them. */
#include "runtime/data/loader.h"
#include "runtime/data/range_scan.h"
#include "tests/data/folder.h"

#include <inttypes.h>

static struct pnet_dataset *open_index(const struct folder *f, const char *name)
{
    struct pnet_dataset *d;
    struct pnet_error e;
    enum pnet_status status = pnet_dataset_read(folder_path(f, name), &d, &e);
    CHECKF(!status, "%s", e.message);
    return d;
}

/* What an epoch held. */
struct totals {
    int64_t batches, samples, rows, labelled, strange;
    int64_t per_class[64];
    float feature_most;
};

static struct totals run_epoch(const struct pnet_dataset *d, enum pnet_split split,
    const struct pnet_input *input, const struct pnet_input_map *map, bool training)
{
    static const struct pnet_augment augment = {
        .rotate = PNET_ROTATE_Z, .scale = {0.9, 1.1}, .jitter_m = 0.01};
    struct pnet_loader_options o = {.data = d,
        .split = split,
        .inputs = input,
        .input_count = 1,
        .map = map,
        .batch_size = 4,
        .workers = 2,
        .training = training,
        .augment = &augment,
        .skip_empty = true,
        .seed = 7};
    struct totals t = {.batches = 0};
    struct pnet_loader *l;
    struct pnet_error e;
    enum pnet_status status = pnet_loader_new(&o, &l, &e);
    CHECKF(!status, "%s", e.message);
    struct pnet_batch *b = NULL;
    while (!status) {
        status = pnet_loader_next(l, &b, &e);
        CHECKF(!status, "%s", e.message);
        if (!b) break;
        t.batches++;
        t.samples += b->samples;
        t.rows += b->inputs[0].rows;
        const float *feature = b->inputs[0].fields[1];
        const int32_t *label = b->inputs[0].fields[2];
        for (int64_t i = 0; i < b->inputs[0].rows * input->fields[1].width; i++)
            if (feature[i] > t.feature_most) t.feature_most = feature[i];
        int64_t labels = input->fields[2].per_cloud ? b->samples : b->inputs[0].rows;
        for (int64_t i = 0; i < labels; i++) {
            t.strange += label[i] < -1 || label[i] >= input->fields[2].classes;
            if (label[i] < 0 || label[i] >= 64) continue;
            t.labelled++;
            t.per_class[label[i]]++;
        }
        pnet_batch_free(b);
    }
    CHECK(t.batches == pnet_loader_batches(l) && !t.strange);
    pnet_loader_free(l);
    return t;
}

/* ScanNet: matrices of x y z r g b, NYU40 labels beside them, the 20 classes of the benchmark. */
static void test_scannet(const struct folder *f, const char *data)
{
    folder_print(f, "scannet.yaml",
        "pnet_dataset: 1\n"
        "task: segmentation\n"
        "classes: [wall, floor, cabinet, bed, chair, sofa, table, door, window, bookshelf, "
        "picture, counter,\n"
        "  desk, curtain, refrigerator, shower curtain, toilet, sink, bathtub, otherfurniture]\n"
        "columns: [x, y, z, red, green, blue]\n"
        "train:\n"
        "  - {cloud: %s/data/segmentation/scannet/*_vert.npy,\n"
        "     labels: %s/data/segmentation/scannet/*_sem_label.npy}\n"
        "val:\n"
        "  - {cloud: %s/data/segmentation/scannet/scene0001_00_vert.npy,\n"
        "     labels: %s/data/segmentation/scannet/scene0001_00_sem_label.npy}\n"
        "map: {1: wall, 2: floor, 3: cabinet, 4: bed, 5: chair, 6: sofa, 7: table, 8: door, 9: "
        "window,\n"
        "  10: bookshelf, 11: picture, 12: counter, 14: desk, 16: curtain, 24: refrigerator,\n"
        "  28: shower curtain, 33: toilet, 34: sink, 36: bathtub, 39: otherfurniture}\n"
        "map_other: ignore\n",
        data, data, data, data);
    struct pnet_dataset *d = open_index(f, "scannet.yaml");
    if (!d) return;
    CHECK(d->counts[PNET_TRAIN] == 10 && d->counts[PNET_VAL] == 1);
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 20}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 3};
    static const char text[] = "inputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255}}}";
    struct pnet_input_map map;
    struct pnet_error e;
    CHECK(!pnet_input_map_read("map", text, sizeof text - 1, &map, &e));
    struct totals t = run_epoch(d, PNET_TRAIN, &input, &map, true);
    CHECK(t.samples == 10 && t.rows == 500000 && t.labelled > 250000 && t.labelled < t.rows);
    CHECK(t.feature_most <= 1 && t.feature_most > 0.9f);
    int64_t counts[20];
    CHECK(!pnet_dataset_count(d, PNET_TRAIN, counts, &e));
    for (int i = 0; i < 20; i++) CHECK(counts[i] == t.per_class[i]);
    CHECK(run_epoch(d, PNET_VAL, &input, &map, false).rows == 50000);
    pnet_input_map_free(&map);

    /* Colours up to 255 in real numbers are found to be that, without a map. */
    struct pnet_input_map none = {.count = 0};
    struct pnet_range_scan scan = {.map = &none, .inputs = &input, .roles = {0, -1}};
    struct pnet_ranges ranges = {.count = 0};
    CHECK(!pnet_ranges_of_dataset(&scan, d, 3, 1, &ranges, &e));
    const struct pnet_range *rgb = pnet_ranges_find(&ranges, "rgb", PNET_RANGE_REALS);
    CHECK(ranges.count == 1 && rgb && rgb->divisor == 255 && rgb->most == 255);
    CHECK(!pnet_ranges_settle(&none.ranges, &ranges, NULL, NULL, &e));
    struct totals same = run_epoch(d, PNET_TRAIN, &input, &none, true);
    CHECK(same.rows == t.rows && same.feature_most == t.feature_most);
    pnet_input_map_free(&none);
    pnet_dataset_free(d);
}

static const char kitti_map[] =
    "map: {0: ignore, 1: ignore, 10: car, 11: bicycle, 13: other-vehicle, 15: motorcycle,\n"
    "  16: other-vehicle, 18: truck, 20: other-vehicle, 30: person, 31: bicyclist, 32: "
    "motorcyclist,\n"
    "  40: road, 44: parking, 48: sidewalk, 49: other-ground, 50: building, 51: fence, 52: "
    "ignore,\n"
    "  60: road, 70: vegetation, 71: trunk, 72: terrain, 80: pole, 81: traffic-sign, 99: ignore,\n"
    "  252: car, 253: bicyclist, 254: person, 255: motorcyclist, 256: other-vehicle,\n"
    "  257: other-vehicle, 258: truck, 259: other-vehicle}\n";

static void test_kitti(const struct folder *f, const char *data)
{
    folder_print(f, "kitti.yaml",
        "pnet_dataset: 1\n"
        "task: segmentation\n"
        "classes: [car, bicycle, motorcycle, truck, other-vehicle, person, bicyclist, "
        "motorcyclist, road,\n"
        "  parking, sidewalk, other-ground, building, fence, vegetation, trunk, terrain, pole,\n"
        "  traffic-sign]\n"
        "train:\n"
        "  - {cloud: %s/data/segmentation/semantickitti/sequences/*/velodyne/*.bin,\n"
        "     labels: %s/data/segmentation/semantickitti/sequences/*/labels/*.label}\n%s",
        data, data, kitti_map);
    struct pnet_dataset *d = open_index(f, "kitti.yaml");
    if (!d) return;
    CHECK(d->counts[PNET_TRAIN] == 8);
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "intensity", .kind = PNET_INPUT_FEATURE, .width = 1},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 19}};
    struct pnet_input input = {.name = "scan", .fields = fields, .field_count = 3};
    struct pnet_input_map map = {.count = 0};
    struct totals t = run_epoch(d, PNET_TRAIN, &input, &map, true);
    /* The sum over the files' points, of which the manifest knows the number. */
    CHECK(t.rows == 124668 + 121357 + 124929 + 122299 + 124231 + 122909 + 121184 + 122492);
    CHECK(t.labelled > t.rows / 2 && t.per_class[8] > 100000 && t.per_class[0] > 1000);

    /* Without the map the first label beyond the classes is named. */
    fields[2].classes = 20;
    struct pnet_loader_options o = {
        .data = d, .inputs = &input, .input_count = 1, .map = &map, .batch_size = 1};
    struct pnet_loader *l;
    struct pnet_error e;
    CHECK(pnet_loader_new(&o, &l, &e) == PNET_USAGE && strstr(e.message, "20") &&
          strstr(e.message, "19"));
    pnet_dataset_free(d);
}

/* Sydney: one object a file, its class in front of the first dot. */
static void test_sydney(const struct folder *f, const char *data)
{
    static const char *const names[] = {"4wd", "building", "bus", "car", "pedestrian", "pillar",
        "pole", "traffic_lights", "traffic_sign", "tree", "truck", "trunk", "ute", "van"};
    char text[8192] = "", classes[512] = "";
    for (int i = 0; i < 14; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text),
            "  - {cloud: %s/data/classification/sydney_urban_objects/objects/%s.*.bin, label: "
            "%s}\n",
            data, names[i], names[i]);
        snprintf(classes + strlen(classes), sizeof classes - strlen(classes), "%s%s", i ? ", " : "",
            names[i]);
    }
    folder_print(f, "sydney.yaml",
        "pnet_dataset: 1\ntask: classification\nclasses: [%s]\ntrain:\n%s", classes, text);
    struct pnet_dataset *d = open_index(f, "sydney.yaml");
    if (!d) return;
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "one", .kind = PNET_INPUT_FEATURE, .width = 1},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 14, .per_cloud = true}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 3};
    struct pnet_input_map map;
    struct pnet_error e;
    static const char one[] = "inputs: {cloud: {one: {value: 1}}}";
    CHECK(!pnet_input_map_read("map", one, sizeof one - 1, &map, &e));
    struct totals t = run_epoch(d, PNET_TRAIN, &input, &map, true);
    CHECK(t.samples == d->counts[PNET_TRAIN] && t.samples == t.labelled && t.samples >= 400);
    CHECK(t.feature_most == 1);
    for (int i = 0; i < 14; i++) CHECK(t.per_class[i] > 0);
    pnet_input_map_free(&map);
    pnet_dataset_free(d);
}

/* ModelNet10 as occupancy grids in one archive, every tenth shape for validation. */
static void test_modelnet(const struct folder *f, const char *data)
{
    folder_print(f, "modelnet.yaml",
        "pnet_dataset: 1\n"
        "task: classification\n"
        "classes: [bathtub, bed, chair, desk, dresser, monitor, night_stand, sofa, table, toilet]\n"
        "train: [{array: %s/data/classification/modelnet10_voxel30/modelnet10_train.npz, points: "
        "X_train,\n"
        "  labels: y_train, kind: voxels, cell: 5cm, drop_every: 10}]\n"
        "val: [{array: %s/data/classification/modelnet10_voxel30/modelnet10_train.npz, points: "
        "X_train,\n"
        "  labels: y_train, kind: voxels, cell: 5cm, keep_every: 10}]\n",
        data, data);
    struct pnet_dataset *d = open_index(f, "modelnet.yaml");
    if (!d) return;
    /* The official training split: 3991 shapes. */
    static const int64_t official[] = {106, 515, 889, 200, 200, 465, 200, 680, 392, 344};
    int64_t train[10], val[10];
    struct pnet_error e;
    CHECK(d->array_count == 1 && d->counts[PNET_TRAIN] + d->counts[PNET_VAL] == 3991);
    CHECK(
        !pnet_dataset_count(d, PNET_TRAIN, train, &e) && !pnet_dataset_count(d, PNET_VAL, val, &e));
    for (int i = 0; i < 10; i++) CHECK(train[i] + val[i] == official[i]);
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "z", .kind = PNET_INPUT_FEATURE, .width = 1},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 10, .per_cloud = true}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 3};
    struct pnet_input_map map = {.count = 0};
    struct totals t = run_epoch(d, PNET_VAL, &input, &map, false);
    CHECK(t.samples <= 400 && t.samples >= 392 && t.labelled == t.samples);
    CHECK(t.feature_most < 1.5f && t.rows > 100 * t.samples);
    pnet_dataset_free(d);
}

int main(void)
{
    const char *data = check_data_dir();
    struct folder f = folder_make();
    test_scannet(&f, data);
    test_kitti(&f, data);
    test_sydney(&f, data);
    test_modelnet(&f, data);
    folder_remove(&f);
    return check_end();
}
