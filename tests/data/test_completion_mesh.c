/* Completion from meshes: full clouds that stay, partial ones that are drawn anew in training alone, cuts of evaluation
   around the corners of the cube, the same bits for any number of workers. */
#include "runtime/data/loader.h"
#include "runtime/data/partial.h"
#include "tests/data/folder.h"

enum { POINTS = 400 };

static struct pnet_input_field of_partial[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION}};
static struct pnet_input_field of_full[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "kind", .kind = PNET_INPUT_CLASS, .classes = 2, .per_cloud = true}};
static const struct pnet_input inputs[] = {
    {.name = "partial", .fields = of_partial, .field_count = 1},
    {.name = "full", .fields = of_full, .field_count = 2}};
static const struct pnet_input_map map = {.count = 0};

/* Boxes of three shapes, off the origin. */
static void put_meshes(const struct folder *f)
{
    for (int i = 0; i < 3; i++) {
        char *text, name[32];
        size_t size;
        FILE *file = open_memstream(&text, &size);
        fprintf(file, "OFF\n8 6 0\n");
        for (int k = 0; k < 8; k++)
            fprintf(file, "%d %d %d\n", 10 + (k & 1) * 4, (k >> 1 & 1) * (2 + i),
                (k >> 2) * (1 + 2 * i));
        fprintf(file, "4 0 1 3 2\n4 4 5 7 6\n4 0 1 5 4\n4 2 3 7 6\n4 0 2 6 4\n4 1 3 7 5\n");
        fclose(file);
        snprintf(name, sizeof name, "box%d.off", i);
        folder_put(f, name, text, size);
        free(text);
    }
    folder_print(f, "plate.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n2 0 0\n3 0 1 2\n");
    folder_print(f, "needle.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n1 1e-7 0\n3 0 1 2\n");
    folder_print(f, "broken.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n1 1 0\n3 0 1 7\n");
}

static struct pnet_dataset *open_index(const struct folder *f, const char *text)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_print(f, "dataset.yaml", "pnet_dataset: 1\ntask: completion\nclasses: [a, b]\n%s", text);
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
    return b;
}

static const float *sample(const struct pnet_batch *b, int input, int32_t s, int64_t *rows)
{
    const struct pnet_batch_input *in = &b->inputs[input];
    *rows = in->row_splits[s + 1] - in->row_splits[s];
    return in->xyz + 3 * in->row_splits[s];
}

static const char boxes[] =
    "train: [{mesh: box*.off, points: 400, label: b, views: {count: 2, points: 64}}]\n"
    "val: [{mesh: box*.off, points: 400, views: {count: 8, kind: cut, part: 25%, points: 5000}, "
    "label: a}]\n"
    "test: [{mesh: box*.off, points: 400, views: {kind: cut, part: [50%, 75%], seed: 4}, "
    "label: a, keep_every: 2}]\n";

static void test_index(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, boxes);
    CHECK(d->counts[PNET_TRAIN] == 6 && d->counts[PNET_VAL] == 24 && d->counts[PNET_TEST] == 2);
    const struct pnet_entry *entry = &d->entries[PNET_VAL][11];
    const struct pnet_partial *p = &d->partials[entry->pair->partial];
    CHECK(strstr(entry->cloud, "box1.off") && !entry->pair->target && entry->pair->view == 3);
    CHECK(
        p->kind == PNET_PARTIAL_CUT && p->points == 5000 && p->full_points == 400 && p->seed == 1);
    CHECK(p->part[0] == 0.25 && p->part[1] == 0.25 && entry->label == 0);
    p = &d->partials[d->entries[PNET_TEST][1].pair->partial];
    CHECK(p->points == 2048 && p->part[0] == 0.5 && p->part[1] == 0.75 && p->seed == 4);
    CHECK(d->partials[d->entries[PNET_TRAIN][0].pair->partial].kind == PNET_PARTIAL_DEPTH);
    pnet_dataset_free(d);
}

static void test_index_errors(const struct folder *f)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{mesh: box0.off}", "`mesh` needs `points`"},
        {"{mesh: box9.off, points: 9}", "box9.off: No such file"},
        {"{mesh: cube*.off, points: 9}", "cube*.off"},
        {"{mesh: box0.off, points: 0}", "points"},
        {"{mesh: box0.off, points: 9, full_points: 9}", "full_points"},
        {"{mesh: box0.off, points: 9, full: a.ply}", "full: not together with `mesh`"},
        {"{mesh: box0.off, points: 9, views: 8}", "views"},
        {"{mesh: box0.off, points: 9, views: {kind: lidar}}", "lidar"},
        {"{mesh: box0.off, points: 9, views: {count: 0}}", "count"},
        {"{mesh: box0.off, points: 9, views: {overlap: 50%}}", "overlap"},
        {"{mesh: box0.off, points: 9, views: {part: 50%}}", "part: is for `kind: cut`"},
        {"{mesh: box0.off, points: 9, views: {kind: cut, part: 100%}}", "part"},
        {"{mesh: box0.off, points: 9, views: {kind: cut, part: [75%, 25%]}}",
            "part: from 0.75 down to 0.25"},
        {"{mesh: box0.off, points: 9, views: {kind: cut, part: [25%]}}",
            "a list of 1 items, expected 2"},
        {"{mesh: box0.off, points: 20000000}", "points"},
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

/* The largest distance of points from the surface of a box with these half edges around the origin. */
static double off_box(const float *xyz, int64_t rows, const double half[3])
{
    double most = 0;
    for (int64_t i = 0; i < rows; i++) {
        double out = -INFINITY;
        for (int c = 0; c < 3; c++) out = fmax(out, fabs((double)xyz[3 * i + c]) - half[c]);
        most = fmax(most, fabs(out));
    }
    return most;
}

/* Full clouds and depth views lie on the scaled box; a view shows at most three sides. */
static void test_depth(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, boxes);
    struct pnet_loader_options o = options(d, PNET_TRAIN);
    o.training = false;
    struct pnet_batch *b = whole_split(o);
    for (int32_t s = 0; s < 6; s++) {
        double edge[3] = {4, 2 + s / 2, 1 + 2 * (s / 2)}, half[3];
        double length = sqrt(edge[0] * edge[0] + edge[1] * edge[1] + edge[2] * edge[2]);
        int64_t rows, same_rows;
        int sides = 0;
        for (int c = 0; c < 3; c++) half[c] = edge[c] / length;
        const float *full = sample(b, 1, s, &rows), *first = sample(b, 1, s / 2 * 2, &same_rows);
        CHECK(rows == POINTS && off_box(full, rows, half) < 1e-6);
        CHECK(memcmp(full, first, POINTS * 12) == 0); /* of all views of a mesh the same */
        const float *partial = sample(b, 0, s, &rows);
        CHECK(rows == 64 && off_box(partial, rows, half) < 1e-6);
        for (int c = 0; c < 6; c++) {
            int on = 0;
            for (int64_t i = 0; i < rows; i++)
                on += fabs((double)partial[3 * i + c % 3] - (c < 3 ? 1 : -1) * half[c % 3]) < 1e-6;
            sides += on > 2;
        }
        CHECKF(sides >= 1 && sides <= 3, "%d sides", sides);
        if (s % 2) CHECK(memcmp(partial, sample(b, 0, s - 1, &rows), 64 * 12) != 0);
        CHECK(((int32_t *)b->inputs[1].fields[1])[s] == 1);
    }
    pnet_batch_free(b);
    pnet_dataset_free(d);
}

/* Evaluation cuts at corner k of the cube: three quarters of the full cloud are left, all farther away than what is gone. */
static void test_cut(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, boxes);
    struct pnet_batch *b = whole_split(options(d, PNET_VAL));
    for (int32_t s = 0; s < 24; s++) {
        int64_t rows;
        double nearest = INFINITY, farthest = 0, at[3];
        int distinct = 0;
        const float *full = sample(b, 1, s, &rows), *partial = sample(b, 0, s, &rows);
        CHECK(rows == 5000); /* repeats behind all that are left */
        for (int c = 0; c < 3; c++) at[c] = (s % 8 >> c & 1 ? 1 : -1) / sqrt(3);
        for (int i = 0; i < POINTS; i++) {
            bool left = false;
            double sum = 0;
            for (int64_t k = 0; k < rows && !left; k++)
                left = memcmp(full + 3 * i, partial + 3 * k, 12) == 0;
            for (int c = 0; c < 3; c++) sum += pow((double)full[3 * i + c] - at[c], 2);
            distinct += left;
            if (left)
                nearest = fmin(nearest, sum);
            else
                farthest = fmax(farthest, sum);
        }
        CHECKF(distinct == POINTS * 3 / 4, "%d", distinct);
        CHECK(nearest >= farthest);
    }
    uint64_t id = b->id;
    pnet_batch_free(b);
    struct pnet_loader_options o = options(d, PNET_VAL);
    o.seed = 99;
    b = whole_split(o);
    CHECK(id && b->id == id); /* whatever the seed of the run */
    pnet_batch_free(b);

    /* Training: shares between the two ends, from all sides. */
    o = options(d, PNET_TEST);
    o.training = true;
    o.batch_size = 2;
    struct pnet_loader *l = open_loader(&o);
    int least = POINTS, most = 0;
    for (int epoch = 0; epoch < 60; epoch++) {
        b = next(l);
        for (int32_t s = 0; s < 2; s++) {
            int64_t rows;
            int distinct = 0;
            const float *full = sample(b, 1, s, &rows), *partial = sample(b, 0, s, &rows);
            for (int i = 0; i < POINTS; i++)
                for (int64_t k = 0; k < rows; k++)
                    if (memcmp(full + 3 * i, partial + 3 * k, 12) == 0) {
                        distinct++;
                        break;
                    }
            least = distinct < least ? distinct : least;
            most = distinct > most ? distinct : most;
        }
        pnet_batch_free(b);
        CHECK(!next(l));
    }
    CHECKF(least >= POINTS / 4 && least < POINTS * 0.28, "%d", least);
    CHECKF(most <= POINTS / 2 && most > POINTS * 0.47, "%d", most);
    pnet_loader_free(l);
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

static void test_same_bits(const struct folder *f)
{
    struct pnet_dataset *d = open_index(f, boxes);
    uint64_t want[STEPS][2], got[STEPS][2];
    for (int variant = 0; variant < 6; variant++) {
        struct pnet_loader_options o = options(d, PNET_TRAIN);
        o.workers = variant % 3 * 2;
        o.cache_bytes = variant < 3 ? 0 : 15000; /* room for some meshes */
        struct pnet_loader *l = open_loader(&o);
        for (int i = 0; i < STEPS; i++) {
            struct pnet_batch *b = next(l);
            for (int k = 0; k < 2; k++) got[i][k] = digest(b, k);
            if (b) CHECK(b->id == 0);
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
        for (int k = 4; k < 7; k++)
            CHECK(want[i][0] != want[k][0]); /* other views in another epoch */
    pnet_dataset_free(d);
}

static void test_refused(const struct folder *f)
{
    static const struct {
        const char *entry, *message;
    } cases[] = {
        {"{mesh: plate.off, points: 9, label: a}", "plate.off: its 1 triangles have no area"},
        {"{mesh: broken.off, points: 9, label: a}", "broken.off:6: a face names the vertex \"7\""},
        {"{mesh: needle.off, points: 9, label: a}",
            "needle.off: the depth camera sees nothing of it"},
        {"{mesh: dataset.yaml, points: 9, label: a}", "dataset.yaml: byte 0: expected a mesh"},
        {"{mesh: box0.off, points: 9}", "box0.off: has no labels for `kind`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct pnet_batch *b;
        struct pnet_error e = {.message = ""};
        snprintf(text, sizeof text, "train: [%s]\n", cases[i].entry);
        struct pnet_dataset *d = open_index(f, text);
        struct pnet_loader_options o = options(d, PNET_TRAIN);
        struct pnet_loader *l = open_loader(&o);
        CHECK(pnet_loader_next(l, &b, &e) == PNET_BAD_DATA);
        CHECKF(strstr(e.message, cases[i].message) != NULL, "%s", e.message);
        pnet_loader_free(l);
        pnet_dataset_free(d);
    }
    /* A needle can be cut. */
    struct pnet_dataset *d =
        open_index(f, "val: [{mesh: needle.off, points: 9, label: a, views: {kind: cut}}]\n");
    struct pnet_batch *b = whole_split(options(d, PNET_VAL));
    CHECK(b && b->inputs[0].rows == 2048 && b->inputs[1].rows == 9);
    pnet_batch_free(b);
    pnet_dataset_free(d);
}

int main(void)
{
    struct folder f = folder_make();
    put_meshes(&f);
    test_index(&f);
    test_index_errors(&f);
    test_depth(&f);
    test_cut(&f);
    test_same_bits(&f);
    test_refused(&f);
    folder_remove(&f);
    return check_end();
}
