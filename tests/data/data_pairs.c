/* Real pairs: under their pose the clouds overlap as much as independent computations say. */
#include "runtime/data/dataset_overlap.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/data/loader.h"
#include "tests/data/folder.h"

#include <inttypes.h>

/* What is known of a pair: the listed shares are rounded to 0.001, and of a sample of the points. */
struct known {
    char id[64], source[512], target[512];
    double pose[16], radius_m, after, before;
    bool scan; /* KITTI: the share is of the source's points that stand still above the ground */
};
enum { MOST = 64 };
static const double SHARE_OFF = 0.006;

/* The radius is in the name of the share: overlap_0p05m is within 0.05 m. */
static void read_shares(json_t *pair, struct known *k)
{
    const char *key;
    json_t *value;
    json_object_foreach(pair, key, value)
    {
        if (strncmp(key, "overlap_0p", 10) != 0) continue;
        char digits[32];
        snprintf(digits, sizeof digits, "0.%s", key + 10); /* "0.05m": reading stops at the m */
        k->radius_m = strtod(digits, NULL);
        k->after = json_number_value(value);
        k->scan = strstr(key, "nonground") != NULL;
    }
    k->before = json_number_value(json_object_get(pair, "overlap_before"));
}

static int read_known(const char *data, struct known *known)
{
    char path[600];
    struct pnet_bytes b;
    struct pnet_error e = {.message = ""};
    json_t *root = NULL;
    snprintf(path, sizeof path, "%s/data/registration/pairs.json", data);
    enum pnet_status status = pnet_bytes_read(path, &b, &e);
    if (!status) status = pnet_json_parse(path, b.data, b.size, &root, &e);
    CHECKF(!status, "%s", e.message);
    if (status) exit(1);
    int count = (int)json_array_size(root);
    CHECK(count > 40 && count <= MOST);
    for (int i = 0; i < count && i < MOST; i++) {
        json_t *pair = json_array_get(root, (size_t)i);
        json_t *rows = json_object_get(pair, "T_target_source");
        struct known *k = &known[i];
        snprintf(k->id, sizeof k->id, "%s", json_string_value(json_object_get(pair, "id")));
        snprintf(k->source, sizeof k->source, "%s/data/%s", data,
            json_string_value(json_object_get(pair, "source")));
        snprintf(k->target, sizeof k->target, "%s/data/%s", data,
            json_string_value(json_object_get(pair, "target")));
        for (size_t n = 0; n < 16; n++)
            k->pose[n] = json_number_value(json_array_get(json_array_get(rows, n / 4), n % 4));
        read_shares(pair, k);
        CHECKF(k->radius_m > 0 && k->after > 0, "%s", k->id);
    }
    json_decref(root);
    pnet_bytes_free(&b);
    return count < MOST ? count : MOST;
}

static struct pnet_dataset *open_index(const struct folder *f, const char *name)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_dataset_read(folder_path(f, name), &d, &e);
    CHECKF(!status, "%s", e.message);
    if (!d) exit(1);
    return d;
}

static void put_known(const struct folder *f, const struct known *known, int count)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("pnet_dataset: 1\ntask: registration\ntrain:\n", out);
    for (int i = 0; i < count; i++) {
        fprintf(
            out, "  - source: %s\n    target: %s\n    pose: [", known[i].source, known[i].target);
        for (int n = 0; n < 16; n++) fprintf(out, "%s%.17g", n ? ", " : "", known[i].pose[n]);
        fputs("]\n", out);
    }
    fclose(out);
    folder_put(f, "known.yaml", text, size);
    free(text);
}

static double share(const float *source, int64_t sources, const float *target, int64_t targets,
    const struct pnet_pose *pose, double radius_m)
{
    int64_t near = 0;
    struct pnet_error e;
    CHECK(
        sources > 0 && !pnet_overlap(source, sources, target, targets, pose, radius_m, &near, &e));
    return (double)near / (double)sources;
}

/* Leaves the points of a SemanticKITTI scan that stand still above the ground. */
static void drop_ground(const char *scan, struct pnet_cloud *c)
{
    char path[600];
    struct pnet_bytes b;
    struct pnet_error e;
    const char *at = strstr(scan, "velodyne/");
    if (!at) exit(1);
    snprintf(path, sizeof path, "%.*slabels/%.6s.label", (int)(at - scan), scan, at + 9);
    if (pnet_bytes_read(path, &b, &e)) exit(1);
    CHECK((int64_t)b.size == 4 * c->rows);
    int64_t kept = 0;
    for (int64_t i = 0; i < c->rows && (int64_t)b.size == 4 * c->rows; i++) {
        static const uint8_t out[256] = {
            [0] = 1, [1] = 1, [40] = 1, [44] = 1, [48] = 1, [49] = 1, [60] = 1, [72] = 1};
        unsigned label = b.data[4 * i] | (unsigned)b.data[4 * i + 1] << 8;
        if (label >= 200 || out[label]) continue;
        memmove(c->xyz + 3 * kept++, c->xyz + 3 * i, 12);
    }
    c->rows = kept;
    pnet_bytes_free(&b);
}

static void test_known(const struct folder *f, const struct known *known, int count)
{
    struct pnet_dataset *d = open_index(f, "known.yaml");
    struct pnet_pose one = pnet_pose_identity();
    int below = 0;
    CHECK(d->counts[PNET_TRAIN] == count);
    for (int i = 0; i < count; i++) {
        const struct known *k = &known[i];
        struct pnet_loaded_pair l;
        struct pnet_error e = {.message = ""};
        enum pnet_status status = pnet_dataset_load_pair(d, PNET_TRAIN, i, &l, NULL, &e);
        CHECKF(!status, "%s", e.message);
        if (status) continue;
        if (k->scan) drop_ground(k->source, &l.source);
        double after = share(
                   l.source.xyz, l.source.rows, l.target.xyz, l.target.rows, &l.pose, k->radius_m),
               before = share(
                   l.source.xyz, l.source.rows, l.target.xyz, l.target.rows, &one, k->radius_m);
        CHECKF(fabs(after - k->after) < SHARE_OFF, "%s: %.4f, listed %.3f", k->id, after, k->after);
        CHECKF(fabs(before - k->before) < SHARE_OFF, "%s: %.4f before, listed %.3f", k->id, before,
            k->before);
        below += after <= before;
        pnet_loaded_pair_free(&l);
    }
    CHECKF(below == 1, "%d", below); /* 30 and 33 of the hotel: the walls happen to meet before */
    pnet_dataset_free(d);
}

/* The same through the loader, turned and thinned: the pose of the batch still makes them meet. */
static void test_loader(const struct folder *f, const struct known *known, int count)
{
    static struct pnet_input_field xyz[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION}};
    static struct pnet_input_field pose[] = {
        {.name = "pose", .kind = PNET_INPUT_POSE, .width = 16, .per_cloud = true}};
    static const struct pnet_input inputs[] = {{.name = "src", .fields = xyz, .field_count = 1},
        {.name = "dst", .fields = xyz, .field_count = 1},
        {.name = "T", .fields = pose, .field_count = 1}};
    static const struct pnet_augment augment = {.rotate = PNET_ROTATE_XYZ, .flip = {true}};
    static const struct pnet_input_map map = {.count = 0};
    struct pnet_dataset *d = open_index(f, "known.yaml");
    struct pnet_loader_options o = {.data = d,
        .inputs = inputs,
        .input_count = 3,
        .map = &map,
        .batch_size = 3,
        .workers = 1,
        .training = true,
        .augment = &augment,
        .seed = 5};
    struct pnet_loader *l;
    struct pnet_error e = {.message = ""};
    int64_t order[MOST], at = 0;
    CHECK(!pnet_loader_new(&o, &l, &e));
    pnet_loader_order(5, 0, true, count, order);
    struct pnet_batch *b;
    while (!pnet_loader_next(l, &b, &e) && b) {
        for (int32_t s = 0; s < b->samples; s++) {
            const struct known *k = &known[order[at++]];
            const struct pnet_batch_input *from = &b->inputs[0], *to = &b->inputs[1];
            struct pnet_pose T;
            for (int i = 0; i < 16; i++)
                T.m[i] = (double)((float *)b->inputs[2].fields[0])[16 * s + i];
            int64_t i = from->row_splits[s], j = to->row_splits[s];
            double after = share(from->xyz + 3 * i, from->row_splits[s + 1] - i, to->xyz + 3 * j,
                to->row_splits[s + 1] - j, &T, k->radius_m);
            if (!k->scan)
                CHECKF(fabs(after - k->after) < SHARE_OFF, "%s: %.4f, listed %.3f", k->id, after,
                    k->after);
        }
        pnet_batch_free(b);
    }
    CHECKF(at == count, "%" PRId64 " pairs: %s", at, e.message);
    pnet_loader_free(l);
    pnet_dataset_free(d);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All pairs of a benchmark whose fragments are here: the larger of the shares of either side, 5 cm,
   is least and median as known. Returns how many are not above the share without the pose. */
static int check_benchmark(const struct folder *f, const char *data, const char *benchmark,
    int64_t pairs, double least, const double median[2])
{
    char name[64];
    static double shares[512];
    int below = 0;
    snprintf(name, sizeof name, "%s.yaml", benchmark);
    folder_print(f, name,
        "pnet_dataset: 1\ntask: registration\ntest:\n"
        "  - {log: %s/data/registration/3dmatch/7-scenes-redkitchen/%s_gt.log, missing: skip,\n"
        "     clouds: %s/data/registration/3dmatch/7-scenes-redkitchen/cloud_bin_*.ply}\n"
        "  - {log: %s/data/registration/3dmatch/sun3d-hotel_umd-maryland_hotel3/%s_gt.log,\n"
        "     clouds: "
        "%s/data/registration/3dmatch/sun3d-hotel_umd-maryland_hotel3/cloud_bin_*.ply}\n",
        data, benchmark, data, data, benchmark, data);
    struct pnet_dataset *d = open_index(f, name);
    struct pnet_pose one = pnet_pose_identity();
    int64_t count = d->counts[PNET_TEST];
    CHECKF(count == pairs, "%s: %" PRId64 " pairs", benchmark, count);
    for (int64_t i = 0; i < count && i < 512; i++) {
        struct pnet_loaded_pair l;
        struct pnet_error e;
        CHECK(!pnet_dataset_load_pair(d, PNET_TEST, i, &l, NULL, &e));
        struct pnet_pose back = pnet_pose_inverse(&l.pose);
        const struct pnet_cloud *s = &l.source, *t = &l.target;
        double there = share(s->xyz, s->rows, t->xyz, t->rows, &l.pose, 0.05);
        double here = share(t->xyz, t->rows, s->xyz, s->rows, &back, 0.05);
        shares[i] = fmax(there, here);
        below += shares[i] <= share(s->xyz, s->rows, t->xyz, t->rows, &one, 0.05);
        pnet_loaded_pair_free(&l);
    }
    qsort(shares, (size_t)count, sizeof *shares, by_number);
    CHECKF(shares[0] > least, "%s: %.3f at least", benchmark, shares[0]);
    double middle = shares[count / 2];
    CHECKF(middle > median[0] && middle < median[1], "%s: median %.3f", benchmark, middle);
    pnet_dataset_free(d);
    return below;
}

static void test_benchmarks(const struct folder *f, const char *data)
{
    int below = check_benchmark(f, data, "3DMatch", 176, 0.325, (double[]){0.57, 0.65});
    below += check_benchmark(f, data, "3DLoMatch", 91, 0.125, (double[]){0.24, 0.32});
    CHECKF(below == 1, "%d pairs meet better without their pose", below);
}

/* Poses out of KITTI's own files are those that were listed. */
static void test_kitti(const struct folder *f, const struct known *known, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        char folder[512], name[32];
        if (!known[i].scan) continue;
        snprintf(folder, sizeof folder, "%.*s",
            (int)(strstr(known[i].source, "/velodyne") - known[i].source), known[i].source);
        snprintf(name, sizeof name, "kitti%d.yaml", i);
        folder_print(f, name,
            "pnet_dataset: 1\ntask: registration\ntest:\n  - {velodyne: %s/velodyne, poses: "
            "%s/poses.txt, calib: %s/Tr.txt, pairs: [[0, 9]]}\n"
            "  - {velodyne: %s/velodyne, poses: %s/poses.txt, calib: %s/Tr.txt, pairs: {step: "
            "9}, missing: skip}\n",
            folder, folder, folder, folder, folder, folder);
        struct pnet_dataset *d = open_index(f, name);
        const struct pnet_entry *entry = d->entries[PNET_TEST];
        CHECK_STR(entry[0].cloud, known[i].source);
        CHECK_STR(entry[0].pair->target, known[i].target);
        for (int n = 0; n < 16; n++)
            CHECKF(fabs(entry[0].pair->pose.m[n] - known[i].pose[n]) < 1e-5, "%s: %d: %g %g",
                known[i].id, n, entry[0].pair->pose.m[n], known[i].pose[n]);
        /* Onward in time the target is the later frame. */
        struct pnet_pose back = pnet_pose_inverse(&entry[0].pair->pose);
        CHECK(d->counts[PNET_TEST] == 2 && strstr(entry[1].pair->target, "000009.bin"));
        for (int n = 0; n < 16; n++) CHECK(fabs(entry[1].pair->pose.m[n] - back.m[n]) < 1e-9);
        pnet_dataset_free(d);
        found++;
    }
    CHECK(found == 4);
}

int main(void)
{
    static struct known known[MOST];
    const char *data = check_data_dir();
    struct folder f = folder_make();
    int count = read_known(data, known);
    put_known(&f, known, count);
    test_known(&f, known, count);
    test_loader(&f, known, count);
    test_kitti(&f, known, count);
    test_benchmarks(&f, data);
    folder_remove(&f);
    return check_end();
}
