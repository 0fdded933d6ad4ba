/* Batches of pairs: the pose maps the source onto the target whatever augmentation did to them,
   views come again where they should, and the bits do not depend on workers. */
#include "kernels/philox.h"
#include "runtime/data/augment_views.h"
#include "runtime/data/loader.h"
#include "tests/data/folder.h"

enum { PAIRS = 5, POINTS = 400 };

static struct pnet_input_field of_source[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "id", .kind = PNET_INPUT_FEATURE, .width = 1},
    {.name = "normal", .kind = PNET_INPUT_FEATURE, .width = 3}};
static struct pnet_input_field of_target[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "id", .kind = PNET_INPUT_FEATURE, .width = 1},
    {.name = "normal", .kind = PNET_INPUT_FEATURE, .width = 3}};
static struct pnet_input_field of_pose[] = {
    {.name = "pose", .kind = PNET_INPUT_POSE, .width = 16, .per_cloud = true}};
static const struct pnet_input inputs[] = {{.name = "src", .fields = of_source, .field_count = 3},
    {.name = "dst", .fields = of_target, .field_count = 3},
    {.name = "T", .fields = of_pose, .field_count = 1}};
static const struct pnet_input_map map = {.count = 0};

static struct pnet_pose some_pose(int pair)
{
    double c = cos(0.4 * pair), s = sin(0.4 * pair);
    struct pnet_pose turn = {{c, -s, 0, 3.0 * pair, s, c, 0, -1.5, 0, 0, 1, 0.5, 0, 0, 0, 1}};
    struct pnet_pose tilt = {{1, 0, 0, 0, 0, s, -c, 0.25, 0, c, s, 0, 0, 0, 0, 1}};
    return pnet_pose_multiply(&turn, &tilt);
}

/* Clouds of the same points in two places, in another order in the target; `id` says which point,
   and `normal` is a direction that turns along. */
static void put_pairs(const struct folder *f)
{
    char turned[4096] = "";
    struct pnet_rand r = {.seed = 5, .purpose = PNET_DRAW_TEST};
    uint64_t draw = 0;
    char index[4096] = "pnet_dataset: 1\ntask: registration\n"
                       "columns: [x, y, z, id, nx, ny, nz]\ntrain:\n";
    strcat(turned, index);
    for (int pair = 0; pair < PAIRS; pair++) {
        struct pnet_pose pose = some_pose(pair);
        char *text[2], name[32];
        size_t size[2];
        FILE *file[2];
        static double p[POINTS][6], q[POINTS][6];
        for (int i = 0; i < POINTS; i++) {
            for (int c = 0; c < 6; c++) p[i][c] = 8 * (double)pnet_rand_unit(&r, draw++) - 4;
            pnet_pose_apply(&pose, p[i], q[i]);
            double ahead[3] = {p[i][0] + p[i][3], p[i][1] + p[i][4], p[i][2] + p[i][5]};
            pnet_pose_apply(&pose, ahead, ahead);
            for (int c = 0; c < 3; c++) q[i][3 + c] = ahead[c] - q[i][c];
        }
        for (int k = 0; k < 2; k++) {
            file[k] = open_memstream(&text[k], &size[k]);
            for (int i = 0; i < POINTS; i++) {
                int id = k ? (i * 7 + 3) % POINTS : i;
                const double *v = k ? q[id] : p[id];
                fprintf(file[k], "%.9g %.9g %.9g %d %.9g %.9g %.9g\n", v[0], v[1], v[2], id, v[3],
                    v[4], v[5]);
            }
            fclose(file[k]);
            snprintf(name, sizeof name, "%c%d.txt", k ? 't' : 's', pair);
            folder_put(f, name, text[k], size[k]);
            free(text[k]);
        }
        size_t before = strlen(index);
        snprintf(index + before, sizeof index - before,
            "  - {source: s%d.txt, target: t%d.txt, pose: [", pair, pair);
        for (int i = 0; i < 12; i++)
            snprintf(index + strlen(index), sizeof index - strlen(index), "%s%.17g", i ? ", " : "",
                pose.m[i]);
        strcat(turned, index + before);
        strcat(turned, "], turn: xyz}\n");
        strcat(index, "]}\n");
    }
    folder_print(f, "turned.yaml", "%s", turned);
    strcat(index, "test: [{cloud: s*.txt, views: {count: 2, overlap: [50%, 80%], points: [60%, "
                  "90%], shift: 3m}}]\n");
    folder_print(f, "dataset.yaml", "%s", index);
    folder_print(f, "views.yaml",
        "pnet_dataset: 1\ntask: registration\ncolumns: [x, y, z, id, nx, ny, nz]\n"
        "train: [{cloud: s*.txt, views: {overlap: [50%%, 80%%], points: [60%%, 90%%]}}]\n");
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

static struct pnet_loader_options options(
    const struct pnet_dataset *d, const struct pnet_augment *augment)
{
    return (struct pnet_loader_options){.data = d,
        .inputs = inputs,
        .input_count = 3,
        .map = &map,
        .batch_size = 2,
        .training = augment != NULL,
        .augment = augment,
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

/* How far the pose of sample `s` leaves the points both clouds have, and the turned normals. */
struct fit {
    int common;
    double off_m, normal_off;
};

static struct fit fit_sample(const struct pnet_batch *b, int32_t s)
{
    const struct pnet_batch_input *from = &b->inputs[0], *to = &b->inputs[1];
    const float *T = (const float *)b->inputs[2].fields[0] + 16 * (size_t)s;
    int64_t row_of[POINTS];
    struct fit fit = {.common = 0};
    for (int i = 0; i < POINTS; i++) row_of[i] = -1;
    for (int64_t j = to->row_splits[s]; j < to->row_splits[s + 1]; j++)
        row_of[(int)((float *)to->fields[1])[j]] = j;
    for (int64_t i = from->row_splits[s]; i < from->row_splits[s + 1]; i++) {
        int64_t j = row_of[(int)((float *)from->fields[1])[i]];
        if (j < 0) continue;
        const float *p = from->xyz + 3 * i, *q = to->xyz + 3 * j;
        const float *n = (float *)from->fields[2] + 3 * i, *m = (float *)to->fields[2] + 3 * j;
        double off = 0, turned = 0;
        for (int r = 0; r < 3; r++) {
            double at = (double)T[4 * r + 3], along = 0;
            for (int c = 0; c < 3; c++) {
                at += (double)T[4 * r + c] * (double)p[c];
                along += (double)T[4 * r + c] * (double)n[c];
            }
            off += pow(at - (double)q[r], 2);
            turned += pow(along - (double)m[r], 2);
        }
        fit.common++;
        fit.off_m = fmax(fit.off_m, sqrt(off));
        fit.normal_off = fmax(fit.normal_off, sqrt(turned));
    }
    return fit;
}

static double determinant(const float *T)
{
    double m[9];
    for (int i = 0; i < 9; i++) m[i] = (double)T[i / 3 * 4 + i % 3];
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
           m[2] * (m[3] * m[7] - m[4] * m[6]);
}

/* The rotation is a proper one, whatever was flipped and scaled. */
static void check_rigid(const float *T)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            double dot = 0;
            for (int n = 0; n < 3; n++) dot += (double)T[4 * n + i] * (double)T[4 * n + k];
            CHECK(fabs(dot - (i == k)) < 1e-6);
        }
    CHECK(fabs(determinant(T) - 1) < 1e-6 && T[12] == 0 && T[13] == 0 && T[14] == 0 && T[15] == 1);
}

/* The property: points that were one stay one under the pose, in every epoch. */
static void test_property(const struct folder *f)
{
    static const struct pnet_augment augments[] = {{.rotate = PNET_ROTATE_Z},
        {.rotate = PNET_ROTATE_XYZ}, {.flip = {true, true, true}}, {.scale = {0.5, 2}},
        {.rotate = PNET_ROTATE_XYZ,
            .scale = {0.8, 1.25},
            .flip = {true, false, true},
            .drop_points = 0.3,
            .crop_radius_m = 6},
        {.rotate = PNET_ROTATE_XYZ, .jitter_m = 0.01}};
    struct pnet_dataset *d = open_index(f, "dataset.yaml");
    for (size_t a = 0; a < sizeof augments / sizeof *augments; a++) {
        struct pnet_loader_options o = options(d, &augments[a]);
        double noise = augments[a].jitter_m * 6 * sqrt(3); /* 3 sigma on either side */
        double stretch = 0;
        o.max_points = a == 4 ? 300 : 0;
        struct pnet_loader *l = open_loader(&o);
        for (int epoch = 0; epoch < 4; epoch++)
            for (struct pnet_batch *b; (b = next(l)); pnet_batch_free(b)) {
                CHECK(b->id == 0 && b->inputs[2].rows == 0 && b->inputs[2].row_splits[1] == 0);
                for (int32_t s = 0; s < b->samples; s++) {
                    struct fit fit = fit_sample(b, s);
                    CHECKF(fit.common >= (a == 4 ? 3 : POINTS), "%d", fit.common);
                    CHECKF(fit.off_m < 1e-5 + noise, "augmentation %zu: %g m", a, fit.off_m);
                    CHECKF(fit.normal_off < 1e-5, "augmentation %zu: %g", a, fit.normal_off);
                    stretch = fmax(stretch, fit.off_m);
                    check_rigid((const float *)b->inputs[2].fields[0] + 16 * (size_t)s);
                }
            }
        if (noise > 0) CHECK(stretch > 0.01); /* each side has noise of its own */
        pnet_loader_free(l);
    }
    pnet_dataset_free(d);
}

/* Each side turns by itself: the pose is not the one of the files any more. */
static void test_sides(const struct folder *f)
{
    static const struct pnet_augment turn = {.rotate = PNET_ROTATE_XYZ};
    struct pnet_dataset *d = open_index(f, "dataset.yaml");
    struct pnet_loader_options o = options(d, &turn);
    o.batch_size = PAIRS;
    struct pnet_loader *l = open_loader(&o);
    struct pnet_batch *b = next(l);
    int64_t order[PAIRS];
    pnet_loader_order(3, 0, true, PAIRS, order);
    for (int s = 0; s < PAIRS; s++) {
        struct pnet_pose was = some_pose((int)order[s]);
        const float *T = (const float *)b->inputs[2].fields[0] + 16 * s;
        double trace = 0;
        for (int i = 0; i < 12; i++)
            if (i % 4 < 3) trace += (double)T[i] * was.m[i];
        CHECK(trace < 2.9); /* 3 where they are the same rotation */
    }
    pnet_batch_free(b);
    pnet_loader_free(l);

    /* Without augmentation, the poses and points of the files, and an id that comes again. */
    o = options(d, NULL);
    o.split = PNET_TRAIN;
    o.batch_size = PAIRS;
    l = open_loader(&o);
    b = next(l);
    uint64_t id = b->id;
    CHECK(id != 0 && b->samples == PAIRS && b->inputs[0].rows == PAIRS * POINTS);
    for (int s = 0; s < PAIRS; s++) {
        struct pnet_pose was = some_pose(s);
        for (int i = 0; i < 16; i++)
            CHECK(((float *)b->inputs[2].fields[0])[16 * s + i] == (float)was.m[i]);
        CHECK(fit_sample(b, s).common == POINTS && fit_sample(b, s).off_m < 1e-5);
    }
    pnet_batch_free(b);
    pnet_loader_start(l, 0, 0);
    b = next(l);
    CHECK(b->id == id);
    pnet_batch_free(b);
    pnet_loader_free(l);
    d->entries[PNET_TRAIN][0].pair->pose.m[3] += 1;
    l = open_loader(&o);
    b = next(l);
    CHECK(b->id != id); /* matches depend on the pose: their geometry is another one */
    pnet_batch_free(b);
    pnet_loader_free(l);
    pnet_dataset_free(d);
}

/* Turned sources: points and normals meet under the pose, which is another one than that of the files, with augmentation
   and without; what evaluation sees does not depend on the seed. */
static void test_turned(const struct folder *f)
{
    static const struct pnet_augment rotate = {.rotate = PNET_ROTATE_XYZ};
    struct pnet_dataset *d = open_index(f, "turned.yaml");
    uint64_t id = 0;
    for (int i = 0; i < 3; i++) {
        struct pnet_loader_options o = options(d, i == 2 ? &rotate : NULL);
        o.split = PNET_TRAIN;
        o.batch_size = PAIRS;
        o.seed += (uint64_t)i;
        struct pnet_loader *l = open_loader(&o);
        struct pnet_batch *b = next(l);
        CHECK(i != 1 || b->id == id);
        id = b->id;
        for (int s = 0; s < PAIRS; s++) {
            struct pnet_pose was = some_pose(s);
            const float *T = (const float *)b->inputs[2].fields[0] + 16 * s;
            double trace = 0;
            for (int k = 0; k < 12; k++)
                if (k % 4 < 3) trace += (double)T[k] * was.m[k];
            struct fit fit = fit_sample(b, s);
            CHECKF(fit.common == POINTS && fit.off_m < 2e-5 && fit.normal_off < 2e-5,
                "%d, %g m, %g", fit.common, fit.off_m, fit.normal_off);
            check_rigid(T);
            CHECK(trace < 2.9); /* 3 where they are the same rotation */
        }
        pnet_batch_free(b);
        pnet_loader_free(l);
    }
    pnet_dataset_free(d);
}

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    return h;
}

/* A hash of all a batch holds; frees it. 0 for the end of an epoch. */
static uint64_t digest(struct pnet_batch *b)
{
    if (!b) return 0;
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (int k = 0; k < 2; k++) {
        const struct pnet_batch_input *in = &b->inputs[k];
        h = mix(h, in->row_splits, (size_t)(b->samples + 1) * 8);
        h = mix(h, in->xyz, (size_t)in->rows * 12);
        h = mix(h, in->fields[1], (size_t)in->rows * 4);
    }
    h = mix(h, b->inputs[2].fields[0], (size_t)b->samples * 64);
    pnet_batch_free(b);
    return h;
}

/* The batches of two epochs, each with its end. */
enum { STEPS = 12 };

static int run(const struct pnet_loader_options *o, uint64_t *digests)
{
    struct pnet_loader *l = open_loader(o);
    int ends = 0, steps = 0;
    while (ends < 2 && steps < STEPS) {
        digests[steps] = digest(next(l));
        ends += digests[steps++] == 0;
    }
    CHECK(ends == 2);
    pnet_loader_free(l);
    return steps;
}

static void test_same_bits(const struct folder *f)
{
    static const struct pnet_augment augment = {
        .rotate = PNET_ROTATE_XYZ, .scale = {0.8, 1.25}, .drop_points = 0.3, .jitter_m = 0.01};
    static const char *const names[] = {"dataset.yaml", "views.yaml"};
    for (int i = 0; i < 2; i++) {
        struct pnet_dataset *d = open_index(f, names[i]);
        uint64_t want[STEPS], got[STEPS];
        for (int workers = 0; workers < 4; workers++)
            for (int cached = 0; cached < 3; cached++) {
                struct pnet_loader_options o = options(d, &augment);
                o.workers = workers;
                o.cache_bytes = cached == 0 ? 0 : cached == 1 ? 60000 : 1 << 24;
                CHECK(run(&o, workers || cached ? got : want) == 8);
                if (workers || cached) CHECK(memcmp(want, got, 8 * sizeof *want) == 0);
            }
        for (int k = 0; k < 3; k++) CHECK(want[k] != want[k + 4]); /* another epoch */
        pnet_dataset_free(d);
    }
}

/* Views: those of evaluation are the same for every run, those of training are new each epoch. */
static void test_views(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, "dataset.yaml");
    struct pnet_loader_options o = options(d, NULL);
    uint64_t first[STEPS], second[STEPS];
    o.split = PNET_TEST;
    CHECK(run(&o, first) == 12);
    o.seed = 77;
    o.cache_bytes = 1 << 20;
    CHECK(run(&o, second) == 12 && memcmp(first, second, sizeof first) == 0);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++) CHECK(first[i] != first[k]);
    CHECK(memcmp(first, first + 6, 6 * sizeof *first) == 0);
    struct pnet_loader *l = open_loader(&o);
    int pairs = 0;
    for (struct pnet_batch *b; (b = next(l)); pnet_batch_free(b))
        for (int32_t s = 0; s < b->samples; s++, pairs++) {
            struct fit fit = fit_sample(b, s);
            double of[2];
            for (int k = 0; k < 2; k++)
                of[k] = (double)(b->inputs[k].row_splits[s + 1] - b->inputs[k].row_splits[s]);
            /* Of 400 points each view sees between 1 / 1.5 and 1 / 1.2, and keeps 60% to 90%. */
            CHECK(of[0] > 130 && of[0] < 320 && of[1] > 130 && of[1] < 320);
            CHECK(b->id != 0 && fit.off_m < 1e-5 && fit.normal_off < 1e-5);
            CHECKF(fit.common > 40 && fit.common < 0.85 * fmin(of[0], of[1]), "%d", fit.common);
            check_rigid((const float *)b->inputs[2].fields[0] + 16 * (size_t)s);
        }
    CHECK(pairs == 2 * PAIRS);
    pnet_loader_free(l);
    pnet_dataset_free(d);

    /* Training: even without augmentation. */
    static const struct pnet_augment none = {.crop_points = 0};
    d = open_index(f, "views.yaml");
    o = options(d, &none);
    CHECK(run(&o, first) == 8);
    for (int k = 0; k < 3; k++) CHECK(first[k] != first[k + 4]);
    o.seed++;
    CHECK(run(&o, second) == 8);
    for (int k = 0; k < 3; k++) CHECK(first[k] != second[k]);
    l = open_loader(&o);
    struct pnet_batch *b = next(l);
    CHECK(b->id == 0 && fit_sample(b, 0).common > 40 && fit_sample(b, 0).off_m < 1e-5);
    pnet_batch_free(b);
    pnet_loader_free(l);
    pnet_dataset_free(d);
}

static struct pnet_sample *lattice(void)
{
    struct pnet_sample *s = calloc(1, sizeof *s);
    static const struct pnet_input bare = {.name = "c", .fields = of_source, .field_count = 1};
    s->input = &bare;
    s->rows = 8000;
    s->xyz = malloc(8000 * 3 * sizeof *s->xyz);
    s->fields = calloc(2, sizeof *s->fields);
    for (int i = 0; i < 8000; i++)
        for (int c = 0; c < 3; c++)
            s->xyz[3 * i + c] = (float)(c == 0 ? i % 20 : c == 1 ? i / 20 % 20 : i / 400);
    return s;
}

/* Shares and noise are what the keys say. */
static void test_shares(void)
{
    struct pnet_views v = {
        .count = 1, .overlap = {0.5, 0.5}, .points = {1, 1}, .rotate = PNET_ROTATE_NONE};
    for (int disjoint = 0; disjoint < 2; disjoint++)
        for (uint32_t i = 0; i < 10; i++) {
            struct pnet_sample *s = lattice(), *t = lattice();
            struct pnet_pose pose;
            struct pnet_error e;
            struct pnet_views_draw draw = {1, 2, i};
            static bool in_source[8000];
            int64_t common = 0;
            v.disjoint = disjoint;
            CHECK(!pnet_views_apply(&v, &draw, s, t, &pose, &e));
            memset(in_source, 0, sizeof in_source);
            for (int64_t k = 0; k < s->rows; k++) {
                const float *p = s->xyz + 3 * k;
                in_source[(int)(p[0] + 20 * p[1] + 400 * p[2])] = true;
            }
            for (int64_t k = 0; k < t->rows; k++) {
                const float *p = t->xyz + 3 * k;
                common += in_source[(int)(p[0] + 20 * p[1] + 400 * p[2])];
            }
            struct pnet_pose one = pnet_pose_identity();
            for (int m = 0; m < 16; m++) CHECK(pose.m[m] == one.m[m]);
            if (disjoint) { /* half of what the view would have had, wherever it lies: sigma is 37 */
                CHECK(common == 0 && llabs(2 * s->rows - 5334) < 370 &&
                      llabs(2 * t->rows - 5334) < 370);
            } else {
                CHECK(s->rows == 5334 && t->rows == 5334 && common == 2 * 5334 - 8000);
            }
            pnet_sample_free(s);
            pnet_sample_free(t);
        }
    /* One point always stays. */
    v = (struct pnet_views){.count = 1, .points = {1e-6, 1e-6}, .rotate = PNET_ROTATE_XYZ};
    struct pnet_sample *s = lattice(), *t = lattice();
    struct pnet_pose pose;
    struct pnet_error e;
    CHECK(!pnet_views_apply(&v, &(struct pnet_views_draw){1, 2, 3}, s, t, &pose, &e));
    CHECK(s->rows == 1 && t->rows == 1);
    pnet_sample_free(s);
    pnet_sample_free(t);
}

static void expect_refused(const struct pnet_loader_options *o, const char *part)
{
    struct pnet_loader *l;
    struct pnet_error e = {.message = ""};
    CHECK(pnet_loader_new(o, &l, &e) == PNET_USAGE && !l);
    CHECKF(strstr(e.message, part), "\"%s\" is not in \"%s\"", part, e.message);
}

static void test_refused(const struct folder *f)
{
    static const struct pnet_augment elastic = {.elastic = {{0.2, 0.4}}, .elastic_count = 1};
    static const struct pnet_augment none = {.crop_points = 0};
    struct pnet_dataset *d = open_index(f, "dataset.yaml");
    struct pnet_loader_options o = options(d, &elastic);
    expect_refused(&o, "augment: elastic bends clouds");
    o = options(d, &none);
    o.input_count = 1;
    expect_refused(&o, "a source and a target, but the model declares 1");
    struct pnet_input some[] = {inputs[0], inputs[1], inputs[2]};
    some[1].unused = true;
    o.inputs = some;
    o.input_count = 3;
    expect_refused(&o, "does not read `dst`, the target");
    struct pnet_input_field label[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 2}};
    some[1] = (struct pnet_input){.name = "dst", .fields = label, .field_count = 2};
    expect_refused(&o, "dst.label wants labels, but the task of");
    pnet_dataset_free(d);

    folder_print(f, "single.yaml",
        "pnet_dataset: 1\ntask: segmentation\nclasses: [a]\n"
        "train: [s0.txt]\n");
    d = open_index(f, "single.yaml");
    o = options(d, &none);
    expect_refused(&o, "T is the pose of a pair, but the task of");
    o.input_count = 2;
    expect_refused(&o, "the model reads two clouds, `src` and `dst`");
    pnet_dataset_free(d);

    struct pnet_input_map m;
    struct pnet_error e;
    struct pnet_input_roles roles;
    static const char text[] = "inputs: {T: {pose: {value: 1}}}";
    CHECK(!pnet_input_map_read("m", text, sizeof text - 1, &m, &e));
    CHECK(pnet_input_map_check_pair(
              &m, inputs, 3, pnet_task_sides(PNET_REGISTRATION), &roles, &e) == PNET_USAGE);
    CHECK_STR(e.message, "inputs: T is a pose, which comes with the pairs");
    CHECK(roles.source == 0 && roles.target == 1 && roles.pose == 2);
    pnet_input_map_free(&m);
}

/* Pairs with an empty side are left out, or an error that names it. */
static void test_empty(const struct folder *f)
{
    folder_print(f, "nan.txt", "nan 0 0 1 0 0 1\n");
    folder_print(f, "empty.yaml",
        "pnet_dataset: 1\ntask: registration\ncolumns: [x, y, z, id, nx, ny, nz]\n"
        "train: [{source: s0.txt, target: nan.txt, pose: [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]},\n"
        "  {source: s0.txt, target: s0.txt, pose: [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]}]\n");
    struct pnet_dataset *d = open_index(f, "empty.yaml");
    struct pnet_loader_options o = options(d, NULL);
    struct pnet_loader *l = open_loader(&o);
    struct pnet_batch *b;
    struct pnet_error e = {.message = ""};
    CHECK(pnet_loader_next(l, &b, &e) == PNET_BAD_DATA && strstr(e.message, "nan.txt: has no"));
    pnet_loader_free(l);
    o.skip_empty = true;
    l = open_loader(&o);
    b = next(l);
    CHECK(b && b->samples == 1 && b->inputs[0].rows == POINTS && b->inputs[1].rows == POINTS);
    pnet_batch_free(b);
    pnet_loader_free(l);
    pnet_dataset_free(d);
}

int main(void)
{
    struct folder f = folder_make();
    put_pairs(&f);
    test_property(&f);
    test_sides(&f);
    test_turned(&f);
    test_same_bits(&f);
    test_views(&f);
    test_shares();
    test_refused(&f);
    test_empty(&f);
    folder_remove(&f);
    return check_end();
}
