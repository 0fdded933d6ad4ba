/* Completion from full clouds alone: they are moved and scaled, parts of them are cut away, what is left is thinned by farthest
   point sampling and keeps its values; the same bits for any number of workers. */
#include "kernels/philox.h"
#include "runtime/data/loader.h"
#include "runtime/data/partial.h"
#include "tests/data/folder.h"

#include <math.h>

enum { CLOUDS = 3, POINTS = 400 };

static struct pnet_input_field of_partial[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "id", .kind = PNET_INPUT_FEATURE, .width = 1}};
static struct pnet_input_field of_full[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "id", .kind = PNET_INPUT_FEATURE, .width = 1},
    {.name = "kind", .kind = PNET_INPUT_CLASS, .classes = 2, .per_cloud = true}};
static const struct pnet_input inputs[] = {
    {.name = "partial", .fields = of_partial, .field_count = 2},
    {.name = "full", .fields = of_full, .field_count = 3}};
static const struct pnet_input_map map = {.count = 0};

/* Point `i` of cloud `cloud` in its file: a random box, off the origin, far from it for the last cloud. */
static double file_point(int cloud, int i, int axis)
{
    struct pnet_rand r = {.seed = 5, .purpose = PNET_DRAW_TEST, .a = (uint32_t)cloud};
    double unit = (double)pnet_rand_unit(&r, (uint64_t)(3 * i + axis));
    return (axis + 1) * 3 * unit + 7 * axis + (cloud == 2 ? 400000 : 0);
}

static void put_clouds(const struct folder *f)
{
    for (int cloud = 0; cloud < CLOUDS; cloud++) {
        char *text, name[32];
        size_t size;
        FILE *file = open_memstream(&text, &size);
        for (int i = 0; i < POINTS; i++)
            fprintf(file, "%.17g %.17g %.17g %d\n", file_point(cloud, i, 0),
                file_point(cloud, i, 1), file_point(cloud, i, 2), i);
        fclose(file);
        snprintf(name, sizeof name, "c%d.txt", cloud);
        folder_put(f, name, text, size);
        free(text);
    }
    folder_print(f, "one.txt", "1 2 3 0\n");
    folder_print(f, "same.txt", "1 2 3 0\n1 2 3 1\n1 2 3 2\n");
    folder_print(f, "two.txt", "1 2 3 0\n1 2 5 1\n");
    folder_print(f, "none.ply",
        "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\n"
        "property float z\nproperty float id\nend_header\n");
}

static struct pnet_dataset *open_index(const struct folder *f, const char *text)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_print(f, "dataset.yaml",
        "pnet_dataset: 1\ntask: completion\nclasses: [a, b]\ncolumns: [x, y, z, id]\n%s", text);
    enum pnet_status status = pnet_dataset_read(folder_path(f, "dataset.yaml"), &d, &e);
    CHECKF(!status, "%s", e.message);
    if (!d) exit(1);
    return d;
}

static struct pnet_loader_options options(const struct pnet_dataset *d, enum pnet_split split)
{
    return (struct pnet_loader_options){.data = d,
        .split = split,
        .inputs = inputs,
        .input_count = 2,
        .map = &map,
        .batch_size = 2,
        .training = split == PNET_TRAIN,
        .seed = 3};
}

static struct pnet_loader *open_loader(const struct pnet_loader_options *o)
{
    struct pnet_loader *l;
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_loader_new(o, &l, &e);
    CHECKF(!status, "%s", e.message);
    if (!l) exit(1);
    return l;
}

static struct pnet_batch *next(struct pnet_loader *l)
{
    struct pnet_batch *b;
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_loader_next(l, &b, &e);
    CHECKF(!status, "%s", e.message);
    return b;
}

static struct pnet_batch *whole_split(struct pnet_loader_options o)
{
    o.batch_size = (int32_t)o.data->counts[o.split];
    struct pnet_loader *l = open_loader(&o);
    struct pnet_batch *b = next(l);
    pnet_loader_free(l);
    if (!b) exit(1);
    return b;
}

/* One cloud of a batch. */
struct part {
    int64_t rows;
    const float *xyz, *id;
};

static struct part part_of(const struct pnet_batch *b, int input, int32_t s)
{
    const struct pnet_batch_input *in = &b->inputs[input];
    int64_t first = in->row_splits[s];
    return (struct part){
        in->row_splits[s + 1] - first, in->xyz + 3 * first, (const float *)in->fields[1] + first};
}

static double distance2(const float *p, const double q[3])
{
    double sum = 0;
    for (int c = 0; c < 3; c++) sum += pow((double)p[c] - q[c], 2);
    return sum;
}

static const char cuts[] =
    "train: [{full: c*.txt, views: {count: 2, points: 64}, label: b}]\n"
    "val: [{full: c*.txt, views: {count: 8, kind: cut, part: 25%, points: 100}, label: a}]\n"
    "test: [{full: c*.txt, full_points: 300, views: {count: 2, kind: cut, part: [50%, 75%], "
    "points: "
    "500, seed: 4}, label: a, drop_every: 2}]\n";

static void test_index(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, cuts);
    CHECK(d->counts[PNET_TRAIN] == 6 && d->counts[PNET_VAL] == 24 && d->counts[PNET_TEST] == 2);
    const struct pnet_entry *entry = &d->entries[PNET_VAL][11];
    const struct pnet_partial *p = &d->partials[entry->pair->partial];
    CHECK(strstr(entry->cloud, "c1.txt") && !entry->pair->target && entry->pair->view == 3);
    CHECK(p->kind == PNET_PARTIAL_CUT && p->cloud && p->points == 100 && p->full_points == 0);
    p = &d->partials[d->entries[PNET_TRAIN][0].pair->partial];
    CHECK(p->kind == PNET_PARTIAL_CUT && p->part[0] == 0.25 && p->part[1] == 0.75);
    p = &d->partials[d->entries[PNET_TEST][0].pair->partial];
    CHECK(p->full_points == 300 && p->points == 500 && p->seed == 4);
    CHECK(strstr(d->entries[PNET_TEST][0].cloud, "c1.txt"));
    pnet_dataset_free(d);
}

static void test_index_errors(const struct folder *f)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{full: c0.txt}", "bad.yaml:3: `full` needs `partial`, or `views` that are cut from it"},
        {"{full: c9.txt, views: {kind: cut}}", "c9.txt: No such file"},
        {"{full: d*.txt, views: {kind: cut}}", "d*.txt"},
        {"{full: c0.txt, views: {kind: depth}}",
            "bad.yaml:3: kind: depth is for `mesh`: a camera sees surfaces, and a cloud has none; "
            "use `kind: cut`"},
        {"{full: c0.txt, views: 8}", "views"},
        {"{full: c0.txt, views: {kind: lidar}}", "lidar"},
        {"{full: c0.txt, views: {overlap: 50%}}", "overlap"},
        {"{full: c0.txt, points: 9, views: {kind: cut}}",
            "points: of the full cloud they are `full_points`, of the partial one `points` in "
            "`views`"},
        {"{full: c0.txt, full_points: 0, views: {kind: cut}}", "full_points"},
        {"{full: c0.txt, full_points: 20000000, views: {kind: cut}}", "full_points"},
        {"{full: c0.txt, views: {kind: cut, part: 100%}}", "part"},
        {"{full: c0.txt, views: {kind: cut, part: [75%, 25%]}}", "part: from 0.75 down to 0.25"},
        {"{full: c0.txt, partial: c1.txt, views: {kind: cut}}",
            "views: not together with `partial`"},
        {"{full: c0.txt, mesh: a.off, points: 9, views: {kind: cut}}",
            "full: not together with `mesh`"},
        {"{full: c0.txt, views: {kind: cut}, label: a}", "label: the data set lists no `classes`"},
        {"{points: 9}", "an entry needs `partial` and `full`, `full` and `views`, or `mesh`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pnet_dataset *d;
        struct pnet_error e = {.message = ""};
        folder_print(
            f, "bad.yaml", "pnet_dataset: 1\ntask: completion\ntrain: [%s]\n", cases[i].text);
        enum pnet_status status = pnet_dataset_read(folder_path(f, "bad.yaml"), &d, &e);
        CHECKF(status == PNET_BAD_DATA && !d, "%s", cases[i].text);
        CHECKF(strstr(e.message, cases[i].message) != NULL, "%s", e.message);
    }
}

/* The mean of the points is the origin, the farthest has the distance 1; a cloud far away is not rounded more than others. */
static void test_place(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, cuts);
    struct pnet_batch *b = whole_split(options(d, PNET_VAL));
    for (int32_t s = 0; s < 24; s += 8) {
        struct part full = part_of(b, 1, s);
        double mean[3] = {0}, farthest = 0;
        CHECK(full.rows == POINTS);
        for (int i = 0; i < POINTS; i++)
            for (int c = 0; c < 3; c++) mean[c] += file_point(s / 8, i, c) / POINTS;
        for (int i = 0; i < POINTS; i++) {
            double sum = 0;
            for (int c = 0; c < 3; c++) sum += pow(file_point(s / 8, i, c) - mean[c], 2);
            farthest = fmax(farthest, sqrt(sum));
        }
        for (int i = 0; i < POINTS; i++) {
            CHECK(full.id[i] == (float)i);
            for (int c = 0; c < 3; c++)
                CHECKF(fabs((double)full.xyz[3 * i + c] - (file_point(s / 8, i, c) - mean[c]) /
                                                              farthest) < 2e-5 / farthest + 2e-7,
                    "cloud %d, point %d", s / 8, i);
        }
        CHECK(memcmp(full.xyz, part_of(b, 1, s + 5).xyz, POINTS * 12) ==
              0); /* of all views the same */
        CHECK(((int32_t *)b->inputs[1].fields[2])[s] == 0);
    }
    pnet_batch_free(b);
    pnet_dataset_free(d);
}

/* The points of a view are points of the full cloud, with their values, none of them twice. */
static void check_rows(const struct part *partial, const struct part *full, bool left[POINTS])
{
    memset(left, 0, POINTS * sizeof *left);
    for (int64_t i = 0; i < partial->rows; i++) {
        int row = (int)partial->id[i];
        CHECK(memcmp(partial->xyz + 3 * i, full->xyz + 3 * row, 12) == 0 && !left[row]);
        left[row] = true;
    }
}

/* Evaluation cuts at corner k of the cube: the quarter of the cloud that is nearest to it is gone, and each point that is left is
   the farthest from those before it. */
static void test_corners(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, cuts);
    struct pnet_batch *b = whole_split(options(d, PNET_VAL));
    for (int32_t s = 0; s < 24; s++) {
        struct part partial = part_of(b, 0, s), full = part_of(b, 1, s);
        bool left[POINTS], gone[POINTS] = {false};
        double at[3];
        for (int c = 0; c < 3; c++) at[c] = (s % 8 >> c & 1 ? 1 : -1) / sqrt(3);
        for (int k = 0; k < POINTS / 4; k++) {
            int nearest = -1;
            for (int i = 0; i < POINTS; i++)
                if (!gone[i] && (nearest < 0 || distance2(full.xyz + 3 * i, at) <
                                                    distance2(full.xyz + 3 * nearest, at)))
                    nearest = i;
            gone[nearest] = true;
        }
        CHECK(partial.rows == 100);
        check_rows(&partial, &full, left);
        for (int64_t k = 1; k < partial.rows; k++) {
            double own = INFINITY, most = 0;
            for (int i = 0; i < POINTS; i++) {
                double nearest = INFINITY;
                for (int64_t j = 0; j < k && !gone[i]; j++) {
                    double q[3];
                    for (int c = 0; c < 3; c++) q[c] = (double)partial.xyz[3 * j + c];
                    nearest = fmin(nearest, distance2(full.xyz + 3 * i, q));
                }
                if (!gone[i]) most = fmax(most, nearest);
                if (i == (int)partial.id[k]) own = nearest;
            }
            CHECKF(own >= most * (1 - 1e-5), "view %d, point %d", s, (int)k);
        }
        for (int i = 0; i < POINTS; i++) CHECK(!(left[i] && gone[i]));
    }
    uint64_t id = b->id;
    pnet_batch_free(b);
    struct pnet_loader_options o = options(d, PNET_VAL);
    o.seed = 99;
    b = whole_split(o);
    CHECK(id && b->id == id); /* whatever the seed of the run */
    pnet_batch_free(b);
    pnet_dataset_free(d);
}

/* `full_points` takes the same points in every view; of 300 points between a quarter and a half are left, and repeats. */
static void test_counts(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, cuts);
    struct pnet_loader_options o = options(d, PNET_TEST);
    struct pnet_batch *b = whole_split(o), *trained;
    o.training = true;
    trained = whole_split(o);
    for (int32_t s = 0; s < 2; s++) {
        struct part partial = part_of(b, 0, s), full = part_of(b, 1, s),
                    other = part_of(b, 1, 1 - s);
        struct part again = part_of(trained, 1, s);
        int seen[POINTS] = {0}, distinct = 0;
        CHECK(full.rows == 300 && partial.rows == 500);
        CHECK(memcmp(full.id, other.id, 300 * 4) == 0 && memcmp(full.id, again.id, 300 * 4) == 0);
        for (int i = 1; i < 300; i++) CHECK(full.id[i] > full.id[i - 1]);
        for (int i = 0; i < 500; i++) seen[(int)partial.id[i]]++;
        for (int i = 0; i < 300; i++) distinct += seen[(int)full.id[i]] > 0;
        CHECKF(distinct >= 75 && distinct <= 150, "%d", distinct);
    }
    pnet_batch_free(b);
    pnet_batch_free(trained);
    pnet_dataset_free(d);
}

static uint64_t digest(struct pnet_batch *b, int input)
{
    if (!b) return 0;
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    const unsigned char *p = (const unsigned char *)b->inputs[input].xyz;
    for (int64_t i = 0; i < b->inputs[input].rows * 12; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    return h;
}

enum { STEPS = 8 }; /* two epochs of three batches, each with its end */

/* Training cuts anew each epoch; augmentation moves both clouds alike. */
static void test_same_bits(const struct folder *f)
{
    static const struct pnet_augment mirror = {
        .flip = {true, false, true}, .rotate = PNET_ROTATE_XYZ};
    struct pnet_dataset *d = open_index(f, cuts);
    uint64_t want[STEPS][2], got[STEPS][2];
    for (int variant = 0; variant < 6; variant++) {
        struct pnet_loader_options o = options(d, PNET_TRAIN);
        o.workers = variant % 3 * 2;
        o.augment = &mirror;
        o.cache_bytes = variant < 3 ? 0 : 15000; /* room for one cloud */
        struct pnet_loader *l = open_loader(&o);
        for (int i = 0; i < STEPS; i++) {
            struct pnet_batch *b = next(l);
            for (int k = 0; k < 2; k++) got[i][k] = digest(b, k);
            for (int32_t s = 0; b && s < b->samples; s++) {
                struct part partial = part_of(b, 0, s), full = part_of(b, 1, s);
                bool left[POINTS];
                CHECK(partial.rows == 64);
                check_rows(&partial, &full, left);
                CHECK(((int32_t *)b->inputs[1].fields[2])[s] == 1);
            }
            pnet_batch_free(b);
        }
        if (!variant) memcpy(want, got, sizeof want);
        CHECK(memcmp(want, got, sizeof want) == 0);
        pnet_loader_start(l, 1, 1); /* a resumed run */
        struct pnet_batch *b = next(l);
        CHECK(digest(b, 0) == want[5][0] && digest(b, 1) == want[5][1]);
        pnet_batch_free(b);
        pnet_loader_free(l);
    }
    for (int i = 0; i < 3; i++)
        for (int k = 4; k < 7; k++) CHECK(want[i][0] != want[k][0]);
    pnet_dataset_free(d);
}

static void test_refused(const struct folder *f)
{
    static const struct {
        const char *file, *message;
    } cases[] = {{"one.txt", "one.txt: all of its points lie in one place"},
        {"same.txt",
            "same.txt: all of its points lie in one place, so there is no size to scale to 1"},
        {"none.ply", "none.ply: has no points with finite coordinates"},
        {"dataset.yaml", "dataset.yaml"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct pnet_batch *b;
        struct pnet_error e = {.message = ""};
        snprintf(text, sizeof text, "train: [{full: %s, views: {kind: cut}, label: a}]\n",
            cases[i].file);
        struct pnet_dataset *d = open_index(f, text);
        struct pnet_loader_options o = options(d, PNET_TRAIN);
        struct pnet_loader *l = open_loader(&o);
        CHECK(pnet_loader_next(l, &b, &e) == PNET_BAD_DATA);
        CHECKF(strstr(e.message, cases[i].message) != NULL, "%s", e.message);
        pnet_loader_free(l);
        pnet_dataset_free(d);
    }
    /* Clouds without points may be left out; of two points one is left. */
    struct pnet_dataset *d = open_index(f,
        "val: [{full: none.ply, views: {kind: cut}, label: a}, {full: two.txt, views: {part: 99%, "
        "points: 3}, label: a}]\n");
    struct pnet_loader_options o = options(d, PNET_VAL);
    o.skip_empty = true;
    struct pnet_batch *b = whole_split(o);
    CHECK(b->samples == 1 && b->inputs[0].rows == 3 && b->inputs[1].rows == 2);
    for (int i = 0; i < 3; i++)
        CHECK(b->inputs[0].xyz[3 * i + 2] == 1); /* the corner is (-1, -1, -1) */
    pnet_batch_free(b);
    pnet_dataset_free(d);
}

int main(void)
{
    struct folder f = folder_make();
    put_clouds(&f);
    test_index(&f);
    test_index_errors(&f);
    test_place(&f);
    test_corners(&f);
    test_counts(&f);
    test_same_bits(&f);
    test_refused(&f);
    folder_remove(&f);
    return check_end();
}
