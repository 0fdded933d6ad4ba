/* Data sets of HDF5 files: ModelNet40 lists clouds with a label each, ScanObjectNN masks of their points; Completion3D has one
   cloud a file, MVP several partial clouds of each full one. */
#include "runtime/data/dataset.h"
#include "tests/data/folder.h"
#include "tests/io/hdf5_files.h"

static const char head[] = "pnet_dataset: 1\ntask: %s\nclasses: [airplane, bathtub, bed]\n";

/* Writes two clouds of four points; their coordinates begin at `first`, their labels are first % 3 and 2. */
static void write_clouds(const struct folder *f, const char *name, int first)
{
    const uint64_t clouds[3] = {2, 4, 3}, points[2] = {2, 4}, labels[2] = {2, 1};
    const pnet_hid number = h5_id("H5T_NATIVE_FLOAT_g");
    float data[24], label[2] = {(float)(first % 3), 2};
    for (int i = 0; i < 24; i++) data[i] = (float)(first + i);
    h5_begin(folder_path(f, name));
    h5_add_as("data", h5_id("H5T_IEEE_F32LE_g"), number, H5_UNCHECKED, 3, clouds, data);
    h5_add_as("faceId", h5_id("H5T_STD_I32LE_g"), number, H5_UNCHECKED, 2, points, data);
    h5_add_as("label", h5_id("H5T_STD_U8LE_g"), number, H5_UNCHECKED, 2, labels, label);
    h5_add_as("normal", h5_id("H5T_IEEE_F32LE_g"), number, H5_UNCHECKED, 3, clouds, data);
    for (int i = 0; i < 24; i++) data[i] = (float)(i % 3);
    h5_add_as("mask", h5_id("H5T_STD_I64LE_g"), number, 0, 2, points, data);
    h5_end();
}

static struct pnet_dataset *read_index(const struct folder *f, const char *task, const char *rest)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    char begin[200];
    snprintf(begin, sizeof begin, head, task);
    folder_print(f, "dataset.yaml", "%s%s", begin, rest);
    CHECKF(!pnet_dataset_read(f->path, &d, &e), "%s", e.message);
    if (!d) exit(1);
    return d;
}

/* Partial and full clouds, one array `data` a file. */
static void check_completion(const struct folder *f)
{
    struct pnet_loaded_pair p;
    struct pnet_error e = {.message = ""};
    const float xyz[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    folder_print(f, "partial/x", "%s", "");
    folder_print(f, "gt/x", "%s", "");
    h5_begin(folder_path(f, "partial/a.h5"));
    H5_FLOATS("data", 2, 3, xyz);
    h5_end();
    h5_begin(folder_path(f, "gt/a.h5"));
    H5_FLOATS("data", 4, 3, xyz);
    h5_end();
    struct pnet_dataset *d = read_index(
        f, "completion", "train: [{partial: partial/*.h5, full: gt/*.h5, label: bed}]\n");
    CHECK(d->counts[PNET_TRAIN] == 1 && d->entries[PNET_TRAIN][0].label == 2);
    CHECKF(!pnet_dataset_load_pair(d, PNET_TRAIN, 0, &p, NULL, &e), "%s", e.message);
    CHECK(p.source.rows == 2 && p.target.rows == 4);
    CHECK(p.source.xyz[5] == 6 && p.target.xyz[11] == 12);
    pnet_loaded_pair_free(&p);
    pnet_dataset_free(d);
}

static void expect_bad(const struct folder *f, const char *entry, const char *message)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    char begin[200];
    snprintf(begin, sizeof begin, head, "completion");
    folder_print(f, "dataset.yaml", "%strain: [%s]\n", begin, entry);
    CHECK(pnet_dataset_read(f->path, &d, &e) == PNET_BAD_DATA && !d);
    CHECKF(strstr(e.message, message), "%s", e.message);
}

/* Partial cloud i is of the full cloud i / 3. */
static void check_arrays_of_pairs(const struct folder *f)
{
    struct pnet_loaded_pair p;
    struct pnet_error e = {.message = ""};
    const pnet_hid number = h5_id("H5T_NATIVE_FLOAT_g"), single = h5_id("H5T_IEEE_F32LE_g");
    const float labels[6] = {0, 0, 0, 2, 2, 2};
    float data[36];
    char name[600];
    for (int i = 0; i < 36; i++) data[i] = (float)i;
    h5_begin(folder_path(f, "mvp.h5"));
    h5_add_as(
        "incomplete_pcds", single, number, H5_UNCHECKED, 3, (const uint64_t[]){6, 2, 3}, data);
    h5_add_as("complete_pcds", single, number, H5_UNCHECKED, 3, (const uint64_t[]){2, 5, 3}, data);
    h5_add("labels", "STD_I64LE", "NATIVE_FLOAT", 6, 0, labels);
    h5_end();
    struct pnet_dataset *d = read_index(f, "completion",
        "train: [{array: mvp.h5, partial: incomplete_pcds, full: complete_pcds, labels: labels, "
        "drop_every: 5}]\n"
        "test: [{array: mvp.h5, partial: incomplete_pcds, full: complete_pcds}]\n");
    CHECK(d->counts[PNET_TRAIN] == 4 && d->counts[PNET_TEST] == 6 && d->array_count == 3);
    CHECK(d->entries[PNET_TRAIN][1].label == 0 && d->entries[PNET_TRAIN][2].label == 2);
    CHECK(d->entries[PNET_TEST][0].label == PNET_LABEL_NONE);
    CHECKF(!pnet_dataset_load_pair(d, PNET_TRAIN, 3, &p, NULL, &e), "%s", e.message);
    CHECK(p.source.rows == 2 && p.source.xyz[0] == 24 && p.source.xyz[5] == 29);
    CHECK(p.target.rows == 5 && p.target.xyz[0] == 15 && p.target.xyz[14] == 29);
    pnet_entry_name(&d->entries[PNET_TRAIN][3], name, sizeof name);
    CHECKF(strstr(name, "mvp.h5[4]"), "%s", name);
    pnet_loaded_pair_free(&p);
    pnet_dataset_free(d);

    expect_bad(f, "{array: mvp.h5, partial: complete_pcds, full: incomplete_pcds}",
        "2 partial clouds of 6 full ones");
    expect_bad(f, "{array: mvp.h5, partial: incomplete_pcds}", "full");
    expect_bad(f, "{array: mvp.h5, partial: incomplete_pcds, full: none}", "\"none\"");
    expect_bad(f, "{array: mvp.h5, partial: incomplete_pcds, full: complete_pcds, label: bed}",
        "label: not together with `array`");
}

int main(void)
{
    if (!h5_find()) exit(77); /* skipped */
    struct folder f = folder_make();
    struct pnet_labelled l;
    struct pnet_error e = {.message = ""};
    write_clouds(&f, "train0.h5", 0);
    write_clouds(&f, "train1.h5", 100);
    write_clouds(&f, "test0.hdf5", 200);

    struct pnet_dataset *d = read_index(&f, "classification",
        "train: [{array: train*.h5, labels: label}]\n"
        "test: [{array: test0.hdf5, labels: label, points: data}]\n");
    CHECK(d->counts[PNET_TRAIN] == 4 && d->counts[PNET_TEST] == 2 && d->array_count == 3);
    CHECK(d->entries[PNET_TRAIN][0].label == 0 && d->entries[PNET_TRAIN][2].label == 1);
    CHECK(d->entries[PNET_TRAIN][3].label == 2 && d->entries[PNET_TEST][0].label == 2);
    CHECKF(!pnet_dataset_load(d, PNET_TRAIN, 3, true, &l, NULL, &e), "%s", e.message);
    CHECK(l.cloud.rows == 4 && l.cloud.field_count == 0);
    for (int i = 0; i < 12; i++) CHECK(l.cloud.xyz[i] == (float)(112 + i));
    pnet_labelled_free(&l);
    pnet_dataset_free(d);

    d = read_index(
        &f, "segmentation", "train: [{array: train1.h5, points: normal, labels: mask}]\n");
    CHECKF(!pnet_dataset_load(d, PNET_TRAIN, 1, true, &l, NULL, &e), "%s", e.message);
    CHECK(l.cloud.rows == 4 && l.label_count == 4 && l.cloud.xyz[0] == 112);
    for (int i = 0; i < 4; i++) CHECK(l.labels[i] == (4 + i) % 3);
    pnet_labelled_free(&l);
    pnet_dataset_free(d);
    check_completion(&f);
    check_arrays_of_pairs(&f);
    folder_remove(&f);
    return check_end();
}
