/* The origin of a data set, heights above the lowest points, and the frame of the clouds of a training. */
#include "runtime/data/dataset.h"
#include "runtime/data/doubt.h"
#include "runtime/data/lowest.h"
#include "runtime/data/sample.h"
#include "runtime/base/memory_stream.h"
#include "tests/data/folder.h"

static struct pnet_dataset *read_index(const struct folder *f, const char *text)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_print(f, "dataset.yaml", "pnet_dataset: 1\n%s", text);
    CHECKF(!pnet_dataset_read(f->path, &d, &e), "%s", e.message);
    if (!d) exit(1);
    return d;
}

static const double scan[][3] = {{154000.1234, 463000.9, 99.7}, {154001.3, 463002.4, 100.2},
    {154250.75, 463111.2, 131.3}, {154280.5, 463020.0625, 140.9}};
static const double origin[3] = {154000.25, 463100.7, 100};
enum { POINTS = sizeof scan / sizeof *scan };

static void print_points(const struct folder *f, const char *name, int from, int to)
{
    char text[1024];
    int n = 0;
    for (int i = from; i < to; i++)
        n += sprintf(text + n, "%.4f %.4f %.4f 1\n", scan[i][0], scan[i][1], scan[i][2]);
    folder_print(f, name, "%s", text);
}

static void check_cloud(const struct pnet_cloud *c, int from)
{
    for (int i = 0; i < c->rows; i++)
        for (int a = 0; a < 3; a++) {
            CHECK(c->offset[a] == origin[a]);
            CHECK(c->xyz[3 * i + a] == (float)(scan[from + i][a] - origin[a]));
        }
}

/* Files of any offset, single and in pairs, have the coordinates less the origin. */
static void test_loading(const struct folder *f)
{
    struct pnet_error e = {.message = ""};
    char warning[2][256];
    print_points(f, "whole.txt", 0, POINTS);
    print_points(f, "low.txt", 0, 2);
    print_points(f, "high.txt", 2, POINTS);
    struct pnet_dataset *d = read_index(f,
        "task: segmentation\nclasses: [a, b]\ncolumns: [x, y, z, label]\n"
        "origin: [154000.25, 463100.7, 100]\ntrain: [whole.txt, low.txt, high.txt]\n");
    CHECK(d->origin.named);
    for (int k = 0; k < 3; k++) {
        struct pnet_labelled l;
        CHECKF(!pnet_dataset_load(d, PNET_TRAIN, k, true, &l, warning[0], &e), "%s", e.message);
        CHECK(l.cloud.rows == (k ? 2 : POINTS) && !*warning[0]);
        check_cloud(&l.cloud, k == 2 ? 2 : 0);
        pnet_labelled_free(&l);
    }
    pnet_dataset_free(d);

    d = read_index(f, "task: completion\norigin: [154000.25, 463100.7, 100]\n"
                      "train: [{partial: high.txt, full: whole.txt}]\n");
    struct pnet_loaded_pair p;
    CHECKF(!pnet_dataset_load_pair(d, PNET_TRAIN, 0, &p, warning, &e), "%s", e.message);
    check_cloud(&p.source, 2);
    check_cloud(&p.target, 0);
    pnet_loaded_pair_free(&p);
    pnet_dataset_free(d);

    /* The pose is between coordinates less the origin: q = p + t stays so, turned ones do not. */
    d = read_index(f, "task: registration\norigin: [154000.25, 463100.7, 100]\n"
                      "train: [{source: high.txt, target: whole.txt, pose: [0, -1, 0, 617000, "
                      "1, 0, 0, 309000, 0, 0, 1, 0.5]}]\n");
    CHECKF(!pnet_dataset_load_pair(d, PNET_TRAIN, 0, &p, warning, &e), "%s", e.message);
    check_cloud(&p.source, 2);
    double local[3] = {154280.5 - origin[0], 463020.0625 - origin[1], 0}, moved[3];
    pnet_pose_apply(&p.pose, local, moved);
    CHECK(fabs(moved[0] + origin[0] - (617000 - 463020.0625)) < 1e-9);
    CHECK(fabs(moved[1] + origin[1] - (309000 + 154280.5)) < 1e-9);
    pnet_loaded_pair_free(&p);
    pnet_dataset_free(d);
}

/* A cloud that float32 cannot hold from there is told with the number. */
static void test_far(const struct folder *f)
{
    struct pnet_error e = {.message = ""};
    struct pnet_labelled l;
    char warning[256], path[600];
    struct pnet_dataset *d = read_index(f, "task: segmentation\nclasses: [a, b]\n"
                                           "origin: [0, 0, 0]\ntrain: [whole.txt]\n");
    CHECK(!pnet_dataset_load(d, PNET_TRAIN, 0, false, &l, warning, &e));
    double lost = 0;
    for (int i = 0; i < 3 * POINTS; i++)
        lost = fmax(lost, fabs(scan[i / 3][i % 3] - (double)(float)scan[i / 3][i % 3]));
    char expected[512];
    snprintf(path, sizeof path, "%s/whole.txt", f->path);
    snprintf(expected, sizeof expected,
        "%.100s: models read its coordinates less (0, 0, 0) in float32, off by up to %.2g m", path,
        lost);
    CHECK_STR(warning, expected);
    pnet_labelled_free(&l);
    pnet_dataset_free(d);

    /* The cloud's own offset is 0. No message names it: float32 would be off by 2 mm there, but is exact at the origin. */
    folder_print(f, "wide.txt", "200000.0625 0 0\n0 0 0\n100000.001953125 0 0\n");
    d = read_index(f, "task: segmentation\nclasses: [a, b]\n"
                      "origin: [100000, 0, 0]\ntrain: [wide.txt]\n");
    CHECK(!pnet_dataset_load(d, PNET_TRAIN, 0, false, &l, warning, &e));
    CHECK(fabsf(l.cloud.xyz[6] - 0.001953125f) == 0);
    CHECK_STR(warning, "");
    pnet_labelled_free(&l);
    pnet_dataset_free(d);
}

static void test_refusals(const struct folder *f)
{
    static const char *const bad[] = {
        "[1, 2]", "[1, 2, 3, 4]", "12", "[1, 2, x]", "[1, 2, 1e10]", "{x: 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pnet_dataset *d;
        struct pnet_error e = {.message = ""};
        folder_print(
            f, "dataset.yaml", "pnet_dataset: 1\ntask: registration\norigin: %s\n", bad[i]);
        CHECK(pnet_dataset_read(f->path, &d, &e) == PNET_BAD_DATA);
        CHECKF(strstr(e.message, ":3: "), "%s", e.message);
    }
}

/* The text of a checkpoint, written by hand and by the program. */
static void test_map(void)
{
    static const char text[] =
        "inputs: {}\norigin: [154000.1, -2e5, 0]\n"
        "frame: {clouds: 7, low: [-1, -2, -3], high: [1, 2, 3], sizes: [0.5, 2], "
        "offset: differs}\n";
    struct pnet_input_map m, again;
    struct pnet_memory_stream s;
    struct pnet_error e = {.message = ""};
    CHECKF(!pnet_input_map_read("text", text, strlen(text), &m, &e), "%s", e.message);
    CHECK(m.origin.named && m.origin.at[0] == 154000.1 && m.origin.at[1] == -200000);
    CHECK(m.frame.clouds == 7 && m.frame.boxed && m.frame.low[2] == -3 && m.frame.high[1] == 2);
    CHECK(m.frame.least == 0.5 && m.frame.most == 2 && m.frame.offsets_differ);
    CHECK(pnet_memory_stream_open(&s));
    pnet_input_map_print(&m, s.file);
    char *printed = pnet_memory_stream_close(&s, NULL);
    CHECK(printed && strstr(printed, "origin: [154000.1, -200000, 0]\n"));
    CHECK(!pnet_input_map_read("printed", printed, strlen(printed), &again, &e));
    CHECK(memcmp(&m.frame, &again.frame, sizeof m.frame) == 0);
    CHECK(pnet_origin_same(&m.origin, &again.origin));
    free(printed);
    static const char *const bad[] = {"frame: {low: [1, 2]}", "frame: {clouds: 0}", "frame: 7",
        "frame: {size: [1, 2]}", "frame: {clouds: 1, offset: none}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECKF(pnet_input_map_read("bad", bad[i], strlen(bad[i]), &again, &e) == PNET_BAD_DATA,
            "%s", bad[i]);
}

/* Which labels of files became classes: taken from a data set, and as the text of a checkpoint. */
static void test_labels(void)
{
    static const int64_t raw[] = {-5, 0, 10, 11, 252, 1LL << 40};
    static const int32_t classes[] = {2, -1, 0, 2, 0, 4};
    static const struct pnet_class_label want[] = {
        {0, 10}, {0, 252}, {2, -5}, {2, 11}, {4, 1LL << 40}};
    struct pnet_input_map m = {.count = 0}, again;
    struct pnet_memory_stream s;
    struct pnet_error e = {.message = ""};
    CHECK(!pnet_input_map_adopt_labels(&m, raw, classes, 6, &e));
    CHECK(pnet_memory_stream_open(&s));
    pnet_input_map_print(&m, s.file);
    char *printed = pnet_memory_stream_close(&s, NULL);
    CHECK(printed && strstr(printed, "labels: [[10, 252], [], [-5, 11], [], [1099511627776]]\n"));
    CHECK(!pnet_input_map_read("printed", printed, strlen(printed), &again, &e));
    free(printed);
    CHECK(m.label_count == 5 && again.label_count == 5);
    for (int i = 0; i < 5; i++) {
        CHECK(m.labels[i].class_ == want[i].class_ && m.labels[i].label == want[i].label);
        CHECK(again.labels[i].class_ == want[i].class_ && again.labels[i].label == want[i].label);
    }
    pnet_input_map_free(&m);
    pnet_input_map_free(&again);
    static const char *const bad[] = {
        "labels: 7", "labels: [7]", "labels: [[a]]", "labels: [[1.5]]", "labels: {0: 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECKF(pnet_input_map_read("bad", bad[i], strlen(bad[i]), &again, &e) == PNET_BAD_DATA,
            "%s", bad[i]);
}

static double lowest_of(const double *z, int64_t rows)
{
    double *xyz = calloc((size_t)rows * 3 + 1, sizeof *xyz);
    struct pnet_cloud c = {.rows = 0};
    for (int64_t i = 0; i < rows; i++) xyz[3 * i + 2] = z[i];
    CHECK(!pnet_cloud_place(&c, rows, xyz, NULL));
    double lowest = pnet_cloud_lowest(&c);
    pnet_cloud_free(&c);
    free(xyz);
    return lowest;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Against sorting; among the numbers are negative ones, equal ones and one far below. */
static void test_lowest(void)
{
    static const int64_t sizes[] = {1, 2, 100, 101, 250, 9999};
    double z[9999], sorted[9999];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int64_t n = sizes[k];
        for (int64_t i = 0; i < n; i++) z[i] = (double)(i * 7919 % 5003) / 7 - 300;
        if (n > 2) z[n / 2] = -900.125;
        memcpy(sorted, z, sizeof z);
        qsort(sorted, (size_t)n, sizeof *sorted, by_value);
        CHECK(lowest_of(z, n) == sorted[(n - 1) / 100]);
    }
    CHECK(lowest_of(z, 0) == 0);
}

/* Ground at 123.4 m with one echo below it, 1 m of grass, a wall of 5 m: the heights, whatever the offset. */
static void test_heights(void)
{
    enum { ROWS = 300 };
    double xyz[3 * ROWS];
    struct pnet_input_field fields[] = {{.name = "height", .kind = PNET_INPUT_FEATURE, .width = 1}};
    const struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 1};
    struct pnet_input_map m;
    struct pnet_error e = {.message = ""};
    static const char text[] = "inputs: {cloud: {height: z_above_lowest}}";
    CHECK(!pnet_input_map_read("map", text, strlen(text), &m, &e));
    for (int raised = 0; raised < 2; raised++) {
        for (int i = 0; i < 3 * ROWS; i++)
            xyz[i] = i % 3 < 2 ? i : 123.4 + 5000 * raised + (i < 600 ? 0 : i < 800 ? 1 : 5);
        xyz[2] = -40 + 5000 * raised;
        struct pnet_cloud c = {.rows = 0};
        struct pnet_sample *s;
        CHECK(!pnet_cloud_place(&c, ROWS, xyz, NULL));
        CHECK(!pnet_sample_make(&input, &m, &c, NULL, 0, "c", &s, &e));
        const float *height = s->fields[0];
        for (int i = 1; i < ROWS; i++)
            CHECK(fabsf(height[i] - (float)(xyz[3 * i + 2] - 123.4 - 5000 * raised)) < 1e-6f);
        CHECK(fabsf(height[0] + 163.4f) < 1e-4f);
        pnet_sample_free(s);
        /* A field of that name comes first. */
        c.rows = ROWS;
        float *own = pnet_cloud_add(&c, "z_above_lowest", PNET_F32)->data;
        own[7] = 42;
        CHECK(!pnet_sample_make(&input, &m, &c, NULL, 0, "c", &s, &e));
        CHECK(((const float *)s->fields[0])[7] == 42 && ((const float *)s->fields[0])[8] == 0);
        pnet_sample_free(s);
        pnet_cloud_free(&c);
    }
    pnet_input_map_free(&m);
}

/* Which models compute with coordinates. */
static void test_reading(void)
{
    static const struct {
        const char *map, *field;
        bool reads;
    } cases[] = {{"inputs: {cloud: {h: z}}", "h", true}, {"inputs: {}", "h", false},
        {"inputs: {}", "z", true}, {"inputs: {cloud: {z: intensity}}", "z", false},
        {"inputs: {cloud: {h: z_above_lowest}}", "h", false},
        {"inputs: {cloud: {h: {value: 1}}}", "h", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int position = 0; position < 2; position++) {
            struct pnet_input_field fields[] = {
                {.name = "xyz", .kind = PNET_INPUT_POSITION, .unused = !position},
                {.name = cases[i].field, .kind = PNET_INPUT_FEATURE, .width = 1}};
            const struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 2};
            struct pnet_input_map m;
            struct pnet_error e;
            CHECK(!pnet_input_map_read("map", cases[i].map, strlen(cases[i].map), &m, &e));
            CHECK(pnet_reads_coordinates(&input, 1, &m) == (cases[i].reads || position));
            pnet_input_map_free(&m);
        }
}

static struct pnet_frame frame_of(double x, double size, double offset)
{
    const float xyz[] = {(float)x, 0, 0, (float)(x + size), (float)size, (float)(size / 2)};
    const double at[3] = {offset, 0, 0};
    struct pnet_frame f = {.clouds = 0};
    pnet_frame_add(&f, xyz, 2, at);
    return f;
}

static void test_doubts(void)
{
    struct pnet_frame trained = {.clouds = 0}, one = frame_of(-0.5, 1, 100);
    char text[PNET_DOUBT_TEXT];
    pnet_doubt_box(&trained, &one, "a", text);
    CHECK_STR(text, ""); /* nothing is recorded */
    pnet_frame_merge(&trained, &one);
    one = frame_of(0, 0.5, 100);
    pnet_frame_merge(&trained, &one);
    CHECK(trained.clouds == 2 && trained.low[0] == -0.5 && trained.high[0] == 0.5);
    CHECK(trained.least == 0.5 && trained.most == 1 && !trained.offsets_differ);
    static const struct {
        double x, size;
        const char *part;
    } cases[] = {{-0.4, 0.8, ""}, {0, 0.25, ""},
        {40, 1,
            "c.ply: lies outside of the clouds that the model was trained on: its middle is "
            "(40.5, 0.5, 0.25), and they lie between (-0.5, 0, 0) and (0.5, 1, 0.5)"},
        {-0.4, 0.2,
            "c.ply: is 0.2 m long, and the clouds that the model was trained on are 0.5 m "
            "to 1 m long"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        one = frame_of(cases[i].x, cases[i].size, 100);
        pnet_doubt_box(&trained, &one, "c.ply", text);
        CHECK_STR(text, cases[i].part);
    }
    one = frame_of(0, 1, 100);
    pnet_doubt_offset(&trained, "the training", &one, "c.ply", text);
    CHECK_STR(text, "");
    one = frame_of(0, 1, 200);
    pnet_doubt_offset(&trained, "the training", &one, "c.ply", text);
    CHECK(strstr(text, "here (200, 0, 0), in the training (100, 0, 0)"));
    pnet_frame_merge(&trained, &one);
    CHECK(trained.offsets_differ && trained.offset[0] == 100 && trained.other[0] == 200);
    pnet_doubt_offset(&trained, "the training", &one, "c.ply", text);
    CHECK_STR(text, "");
}

int main(void)
{
    struct folder f = folder_make();
    test_loading(&f);
    test_far(&f);
    test_refusals(&f);
    test_map();
    test_labels();
    test_lowest();
    test_heights();
    test_reading();
    test_doubts();
    folder_remove(&f);
    return check_end();
}
