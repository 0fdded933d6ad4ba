/* Completion: what an index says, its errors, and batches of a partial and a full cloud: both move alike, counts are exact and
   drawn anew in training alone, and the bits do not depend on workers. */
#include "kernels/philox.h"
#include "runtime/data/loader.h"
#include "runtime/data/partial.h"
#include "tests/data/folder.h"

enum { OBJECTS = 5, POINTS = 300 };

static struct pnet_input_field of_partial[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "id", .kind = PNET_INPUT_FEATURE, .width = 1}};
static struct pnet_input_field of_full[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "id", .kind = PNET_INPUT_FEATURE, .width = 1},
    {.name = "kind", .kind = PNET_INPUT_CLASS, .classes = 2, .per_cloud = true}};
static const struct pnet_input inputs[] = {
    {.name = "partial", .fields = of_partial, .field_count = 2},
    {.name = "full", .fields = of_full, .field_count = 3}};
static const struct pnet_input_map map = {.count = 0};

/* Full clouds of POINTS points, and the first 100 + 20 i of each as its partial cloud; `id` numbers the points. */
static void put_clouds(const struct folder *f)
{
    struct pnet_rand r = {.seed = 5, .purpose = PNET_DRAW_TEST};
    for (int object = 0; object < OBJECTS; object++) {
        char *text, name[32];
        size_t size, cut = 0;
        FILE *file = open_memstream(&text, &size);
        for (int i = 0; i < POINTS; i++) {
            fprintf(file, "%.9g", 2 * (double)pnet_rand_unit(&r, (uint64_t)(3 * i)) - 1 + object);
            for (int c = 1; c < 3; c++)
                fprintf(file, " %.9g", 2 * (double)pnet_rand_unit(&r, (uint64_t)(3 * i + c)) - 1);
            fprintf(file, " %d\n", i);
            if (i + 1 == 100 + 20 * object) {
                fflush(file);
                cut = size;
            }
        }
        fclose(file);
        snprintf(name, sizeof name, "full/o%d.txt", object);
        folder_put(f, name, text, size);
        snprintf(name, sizeof name, "part/o%d.txt", object);
        folder_put(f, name, text, cut);
        free(text);
    }
}

static const char head[] = "pnet_dataset: 1\ntask: completion\ncolumns: [x, y, z, id]\n";

static struct pnet_dataset *open_index(const struct folder *f, const char *text)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_print(f, "dataset.yaml", "%s%s", head, text);
    enum pnet_status status = pnet_dataset_read(folder_path(f, "dataset.yaml"), &d, &e);
    CHECKF(!status, "%s", e.message);
    if (!d) exit(1);
    return d;
}

static struct pnet_loader_options options(const struct pnet_dataset *d, bool training)
{
    return (struct pnet_loader_options){.data = d,
        .inputs = inputs,
        .input_count = 2,
        .map = &map,
        .batch_size = 2,
        .training = training,
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

static void test_index(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f,
        "classes: [cup, car]\nmap: {7: car}\n"
        "train: [{partial: part/o*.txt, full: full/o*.txt, label: car, drop_every: 2}]\n"
        "val:\n  - {partial: part/o1.txt, full: full/o2.txt, points: 64, full_points: 500}\n"
        "  - {partial: part/o*.txt, full: full/o*.txt, keep_every: 4, label: 7}\n");
    CHECK(d->task == PNET_COMPLETION && d->class_count == 2);
    CHECK(d->counts[PNET_TRAIN] == 2 && d->counts[PNET_VAL] == 3 && d->counts[PNET_TEST] == 0);
    const struct pnet_entry *first = &d->entries[PNET_TRAIN][0], *one = &d->entries[PNET_VAL][0];
    CHECK(strstr(first->cloud, "part/o1.txt") && strstr(first->pair->target, "full/o1.txt"));
    CHECK(first->label == 1 && first->pair->views == -1 && first->pair->view == 0);
    CHECK(one->label == PNET_LABEL_NONE && strstr(one->pair->target, "full/o2.txt"));
    CHECK(d->partials[one->pair->partial].points == 64);
    CHECK(d->partials[one->pair->partial].full_points == 500);
    CHECK(d->partials[first->pair->partial].points == 0);
    CHECK(d->entries[PNET_VAL][2].label == 1 && strstr(d->entries[PNET_VAL][2].cloud, "part/o4"));
    CHECK_STR(pnet_task_name(d->task), "completion");
    int64_t counts[2];
    struct pnet_error e;
    CHECK(!pnet_dataset_count(d, PNET_TRAIN, counts, &e) && counts[0] == 0 && counts[1] == 2);
    pnet_dataset_free(d);
}

static void test_index_errors(const struct folder *f)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"train: [part/o0.txt]", "expected `key: value` pairs"},
        {"train: [{full: full/o0.txt}]", "bad.yaml:4: `full` needs `partial`, or `views`"},
        {"train: [{label: a}]", "an entry needs `partial` and `full`"},
        {"train: [{partial: part/o0.txt}]", "bad.yaml:4: `partial` needs `full`"},
        {"train: [{partial: part/o0.txt, full: none.txt}]", "none.txt: No such file"},
        {"train: [{partial: none.txt, full: full/o0.txt}]", "none.txt: No such file"},
        {"train: [{partial: none*.txt, full: full/o*.txt}]", "none*.txt"},
        {"train: [{partial: part/o*.txt, full: f/o*.txt}]", "f/o0.txt: No such file"},
        {"train: [{partial: part/o0.txt, full: full/o0.txt, points: 0}]", "points"},
        {"train: [{partial: part/o0.txt, full: full/o0.txt, points: 20000000}]", "points"},
        {"train: [{partial: part/o0.txt, full: full/o0.txt, full_points: -1}]", "full_points"},
        {"train: [{partial: part/o0.txt, full: full/o0.txt, pose: a.txt}]", "pose"},
        {"train: [{partial: part/o0.txt, full: full/o0.txt, label: car}]",
            "label: the data set lists no `classes`"},
        {"classes: [cup]\ntrain: [{partial: part/o0.txt, full: full/o0.txt, label: cap}]",
            "did you mean `cup`?"},
        {"map: {1: 0}", "map: is about classes, and the data set has no `classes`"},
        {"ignore: [1]", "ignore: is about classes"},
        {"classes: [cup]\nlabel_field: label", "label_field: points have no labels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pnet_dataset *d;
        struct pnet_error e = {.message = ""};
        folder_print(f, "bad.yaml", "%s%s\n", head, cases[i].text);
        enum pnet_status status = pnet_dataset_read(folder_path(f, "bad.yaml"), &d, &e);
        CHECKF(status == PNET_BAD_DATA && !d, "%s", cases[i].text);
        CHECKF(strstr(e.message, cases[i].message) != NULL, "%s", e.message);
    }
}

static const char plain[] = "classes: [cup, car]\n"
                            "train: [{partial: part/o*.txt, full: full/o*.txt, label: car}]\n"
                            "val: [{partial: part/o*.txt, full: full/o*.txt, label: cup}]\n";
static const char counted[] =
    "classes: [cup, car]\n"
    "train: [{partial: part/o*.txt, full: full/o*.txt, label: car, points: 130, full_points: "
    "200}]\n"
    "val: [{partial: part/o*.txt, full: full/o*.txt, label: cup, points: 130, full_points: 400}]\n";

/* The number of points of the full cloud that the partial one has at the very same place. */
static int common(const struct pnet_batch *b, int32_t s)
{
    const struct pnet_batch_input *p = &b->inputs[0], *q = &b->inputs[1];
    int64_t row_of[POINTS];
    int same = 0;
    for (int i = 0; i < POINTS; i++) row_of[i] = -1;
    for (int64_t i = q->row_splits[s]; i < q->row_splits[s + 1]; i++)
        row_of[(int)((float *)q->fields[1])[i]] = i;
    for (int64_t i = p->row_splits[s]; i < p->row_splits[s + 1]; i++) {
        int64_t k = row_of[(int)((float *)p->fields[1])[i]];
        same += k >= 0 && memcmp(p->xyz + 3 * i, q->xyz + 3 * k, 3 * sizeof(float)) == 0;
    }
    return same;
}

/* The partial points are points of the full cloud, in the files and after every common motion. */
static void test_common_motion(const struct folder *f)
{
    static const struct pnet_augment augments[] = {{.rotate = PNET_ROTATE_NONE},
        {.rotate = PNET_ROTATE_Z}, {.rotate = PNET_ROTATE_XYZ, .scale = {0.5, 2}},
        {.flip = {true, false, true}, .scale = {0.8, 1.2}},
        {.rotate = PNET_ROTATE_XYZ, .drop_points = 0.4}};
    struct pnet_dataset *d = open_index(f, plain);
    for (size_t a = 0; a < sizeof augments / sizeof *augments; a++) {
        struct pnet_loader_options o = options(d, true);
        o.augment = &augments[a];
        struct pnet_loader *l = open_loader(&o);
        int64_t order[OBJECTS], at = 0;
        pnet_loader_order(o.seed, 0, true, OBJECTS, order);
        for (struct pnet_batch *b; (b = next(l)); pnet_batch_free(b))
            for (int32_t s = 0; s < b->samples; s++, at++) {
                int64_t rows = b->inputs[0].row_splits[s + 1] - b->inputs[0].row_splits[s];
                int64_t whole = 100 + 20 * order[at];
                CHECKF(common(b, s) == rows, "augmentation %zu", a);
                CHECK(a == 4 ? rows < whole && rows > whole / 3 : rows == whole);
                CHECK(b->inputs[1].row_splits[s + 1] - b->inputs[1].row_splits[s] == POINTS);
                CHECK(((int32_t *)b->inputs[1].fields[2])[s] == 1);
            }
        CHECK(at == OBJECTS);
        pnet_loader_free(l);
    }
    pnet_dataset_free(d);
}

/* Reads the full cloud of every sample of a batch that holds the whole split. */
static struct pnet_batch *whole_split(struct pnet_loader_options o)
{
    o.batch_size = OBJECTS;
    struct pnet_loader *l = open_loader(&o);
    struct pnet_batch *b = next(l);
    pnet_loader_free(l);
    return b;
}

/* Mirrors are about the planes through the origin: each combination occurs, and y stays. Noise is for the partial cloud alone. */
static void test_mirror(const struct folder *f)
{
    static const struct pnet_augment none = {.rotate = PNET_ROTATE_NONE},
                                     mirror = {.flip = {true, false, true}},
                                     noise = {.flip = {true, false, true}, .jitter_m = 0.01};
    struct pnet_dataset *d = open_index(f, plain);
    int seen[4] = {0};
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct pnet_loader_options o = options(d, true);
        o.seed = seed;
        o.augment = &none;
        struct pnet_batch *was = whole_split(o);
        o.augment = &mirror;
        struct pnet_batch *b = whole_split(o);
        o.augment = &noise;
        struct pnet_batch *noisy = whole_split(o);
        for (int32_t s = 0; s < OBJECTS; s++) {
            const float *p = was->inputs[1].xyz + 3 * was->inputs[1].row_splits[s];
            const float *q = b->inputs[1].xyz + 3 * b->inputs[1].row_splits[s];
            float x = p[0] == q[0] ? 1.0f : -1.0f, z = p[2] == q[2] ? 1.0f : -1.0f;
            seen[(x < 0) + 2 * (z < 0)]++;
            for (int i = 0; i < POINTS; i++)
                CHECK(q[3 * i] == x * p[3 * i] && q[3 * i + 1] == p[3 * i + 1] &&
                      q[3 * i + 2] == z * p[3 * i + 2]);
            CHECK(common(noisy, s) == 0);
        }
        size_t size = (size_t)b->inputs[1].rows * 12;
        CHECK(memcmp(noisy->inputs[1].xyz, b->inputs[1].xyz, size) == 0);
        pnet_batch_free(was);
        pnet_batch_free(b);
        pnet_batch_free(noisy);
    }
    for (int i = 0; i < 4; i++) CHECKF(seen[i] >= 5, "%d of 60", seen[i]); /* of 15 expected */
    pnet_dataset_free(d);
}

/* How often each point of a sample occurs. */
static void count_ids(const struct pnet_batch_input *in, int32_t s, int times[POINTS])
{
    memset(times, 0, POINTS * sizeof *times);
    for (int64_t i = in->row_splits[s]; i < in->row_splits[s + 1]; i++)
        times[(int)((float *)in->fields[1])[i]]++;
}

static void test_counts(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, counted);
    struct pnet_loader_options o = options(d, false);
    o.split = PNET_VAL;
    struct pnet_batch *b = whole_split(o);
    for (int32_t s = 0; s < OBJECTS; s++) {
        int times[POINTS], there = 100 + 20 * s, distinct = 0, most = 0;
        CHECK(b->inputs[0].row_splits[s] == 130 * s && b->inputs[1].row_splits[s] == 400 * s);
        count_ids(&b->inputs[0], s, times);
        for (int i = 0; i < POINTS; i++) {
            distinct += times[i] > 0;
            most = times[i] > most ? times[i] : most;
            CHECK(i < there || !times[i]);
        }
        /* fewer points: all of them, and repeats; more: no repeats */
        CHECKF(distinct == (there < 130 ? there : 130), "%d", distinct);
        CHECK(there < 130 || most == 1);
        count_ids(&b->inputs[1], s, times);
        for (int i = 0; i < POINTS; i++) CHECK(times[i] > 0);
        CHECK(common(b, s) == 130);
    }
    /* Evaluation sees the same points whatever the seed of the run. */
    uint64_t id = b->id;
    CHECK(id != 0);
    pnet_batch_free(b);
    o.seed = 77;
    b = whole_split(o);
    CHECK(b->id == id);
    pnet_batch_free(b);
    pnet_dataset_free(d);
}

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    return h;
}

/* A hash of a batch, which is freed; 0 for the end of an epoch. */
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
    h = mix(h, b->inputs[1].fields[2], (size_t)b->samples * 4);
    pnet_batch_free(b);
    return h;
}

enum { STEPS = 8 }; /* two epochs, each with its end */

static void check_same_bits(const struct pnet_dataset *d)
{
    static const struct pnet_augment augment = {
        .rotate = PNET_ROTATE_XYZ, .flip = {true, false, true}, .jitter_m = 0.01};
    uint64_t want[STEPS], got[STEPS];
    for (int variant = 0; variant < 6; variant++) {
        struct pnet_loader_options o = options(d, true);
        o.augment = &augment;
        o.workers = variant % 3 * 2;
        o.cache_bytes = variant < 3 ? 0 : 1 << 20;
        struct pnet_loader *l = open_loader(&o);
        for (int i = 0; i < STEPS; i++) got[i] = digest(next(l));
        if (!variant) memcpy(want, got, sizeof want);
        CHECK(memcmp(want, got, sizeof want) == 0);
        /* A resumed run: from the second batch of epoch 1 on. */
        pnet_loader_start(l, 1, 1);
        CHECK(digest(next(l)) == want[5] && digest(next(l)) == want[6] && !next(l));
        pnet_loader_free(l);
    }
    for (int i = 0; i < 3; i++)
        for (int k = 4; k < 7; k++) CHECK(want[i] != want[k]); /* other draws in another epoch */
}

/* The second cloud is the full one: what does not fit is told by name. */
static void expect_refused(const struct pnet_loader_options *o, const char *message)
{
    struct pnet_loader *l;
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_loader_new(o, &l, &e);
    CHECKF(status == PNET_USAGE && !l && strstr(e.message, message), "%s", e.message);
    pnet_loader_free(l);
}

static void test_refused(const struct folder *f)
{
    static const struct pnet_augment crop = {.crop_points = 10},
                                     elastic = {.elastic = {{0.1, 0.1}}, .elastic_count = 1};
    static struct pnet_input_field pose[] = {
        {.name = "pose", .kind = PNET_INPUT_POSE, .width = 16, .per_cloud = true}};
    struct pnet_input some[3] = {
        inputs[1], inputs[0], {.name = "T", .fields = pose, .field_count = 1}};
    struct pnet_dataset *d = open_index(f, plain);
    struct pnet_loader_options o = options(d, true);
    o.inputs = some;
    expect_refused(&o,
        "the first cloud that the model declares is the partial, the second the full, "
        "but these are called `full` and `partial`: swap the two");
    o.input_count = 1;
    expect_refused(&o, "a partial and a full, but the model declares 1");
    some[0] = inputs[0];
    some[1] = inputs[1];
    o.input_count = 3;
    expect_refused(&o, "T is the pose of a pair, but the task of");
    o.input_count = 2;
    some[1].unused = true;
    expect_refused(&o, "the model does not read `full`, the full");
    o = options(d, true);
    o.augment = &crop;
    expect_refused(&o, "augment: crop would change the partial and the full cloud");
    o.augment = &elastic;
    expect_refused(&o, "augment: elastic would change");
    pnet_dataset_free(d);
    d = open_index(f, "train: [{partial: part/o*.txt, full: full/o*.txt}]\n");
    o = options(d, true);
    expect_refused(&o, "full.kind wants labels, but");
    pnet_dataset_free(d);

    /* An entry without a label, for a model that reads it. */
    d = open_index(f, "classes: [a, b]\ntrain: [{partial: part/o0.txt, full: full/o0.txt}]\n");
    o = options(d, true);
    struct pnet_loader *l = open_loader(&o);
    struct pnet_batch *b;
    struct pnet_error e = {.message = ""};
    CHECK(pnet_loader_next(l, &b, &e) == PNET_BAD_DATA &&
          strstr(e.message, "has no labels for `kind`"));
    pnet_loader_free(l);
    pnet_dataset_free(d);
}

/* Far from the origin each file gets an offset of its own: the clouds still lie on each other. */
static void test_offsets(const struct folder *f)
{
    folder_print(f, "far_p.txt", "500150.5 4000000 10 0\n500151 4000000.25 10 1\n");
    folder_print(
        f, "far_f.txt", "499900 3999800 10 2\n500150.5 4000000 10 0\n500151 4000000.25 10 1\n");
    struct pnet_dataset *d = open_index(
        f, "classes: [a, b]\ntrain: [{partial: far_p.txt, full: far_f.txt, label: a}]\n");
    struct pnet_loaded_pair p;
    struct pnet_error e;
    CHECK(!pnet_dataset_load_pair(d, PNET_TRAIN, 0, &p, NULL, &e));
    for (int c = 0; c < 3; c++) CHECK(p.source.offset[c] == p.target.offset[c]);
    CHECK(p.target.offset[0] == 499900 && p.target.offset[1] == 3999800);
    CHECK(memcmp(p.source.xyz, p.target.xyz + 3, 6 * sizeof(float)) == 0);
    pnet_loaded_pair_free(&p);
    pnet_dataset_free(d);
}

int main(void)
{
    struct folder f = folder_make();
    put_clouds(&f);
    test_index(&f);
    test_index_errors(&f);
    test_common_motion(&f);
    test_mirror(&f);
    test_counts(&f);
    struct pnet_dataset *d = open_index(&f, counted);
    check_same_bits(d);
    pnet_dataset_free(d);
    test_refused(&f);
    test_offsets(&f);
    folder_remove(&f);
    return check_end();
}
