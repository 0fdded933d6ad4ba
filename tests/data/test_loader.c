/* The loader: the same bits for any number of workers and after any resume, each sample once an
   epoch, errors in their place, an end at any moment. */
#include "kernels/philox.h"
#include "runtime/data/loader.h"
#include "tests/data/folder.h"

enum { CLOUDS = 23 };

static struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "heat", .kind = PNET_INPUT_FEATURE, .width = 1},
    {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 2}};
static const struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 3};
static const struct pnet_input_map map = {.count = 0};
static const struct pnet_augment augment = {
    .rotate = PNET_ROTATE_Z, .jitter_m = 0.01, .drop_points = 0.2, .flip = {true, false, false}};

/* Clouds of 5, 6, 7 ... points; heat says which cloud. */
static void put_clouds(const struct folder *f)
{
    struct pnet_rand r = {.seed = 1, .purpose = PNET_DRAW_TEST};
    uint64_t draw = 0;
    for (int i = 0; i < CLOUDS; i++) {
        char name[32], text[4096] = "";
        for (int k = 0; k < 5 + i; k++)
            for (int c = 0; c < 5; c++)
                snprintf(text + strlen(text), sizeof text - strlen(text),
                    c < 3    ? "%g "
                    : c == 3 ? "%g "
                             : "%g\n",
                    c == 3   ? i
                    : c == 4 ? k % 2
                             : (double)pnet_rand_unit(&r, draw++));
        snprintf(name, sizeof name, "c%02d.txt", i);
        folder_print(f, name, "%s", text);
    }
    folder_print(f, "nan.txt", "nan 0 0 99 0\nnan 0 0 99 0\n");
}

static struct pnet_dataset *read_index(const struct folder *f, const char *train)
{
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_print(f, "dataset.yaml",
        "pnet_dataset: 1\ntask: segmentation\nclasses: [even, odd]\ncolumns: [x, y, z, heat, "
        "label]\n"
        "train: [%s]\nval: [c*.txt]\n",
        train);
    enum pnet_status status = pnet_dataset_read(f->path, &d, &e);
    CHECKF(!status, "%s", e.message);
    if (!d) exit(1);
    return d;
}

static struct pnet_loader_options options(const struct pnet_dataset *d)
{
    return (struct pnet_loader_options){.data = d,
        .inputs = &input,
        .input_count = 1,
        .map = &map,
        .batch_size = 4,
        .training = true,
        .augment = &augment,
        .seed = 11};
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

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    return h;
}

/* A hash of all a batch holds; frees it. */
static uint64_t digest(struct pnet_batch *b)
{
    const struct pnet_batch_input *in = &b->inputs[0];
    uint64_t h = mix(UINT64_C(0xCBF29CE484222325), in->row_splits, (size_t)(b->samples + 1) * 8);
    h = mix(h, in->xyz, (size_t)in->rows * 12);
    h = mix(h, in->fields[1], (size_t)in->rows * 4);
    h = mix(h, in->fields[2], (size_t)in->rows * 4);
    h = mix(h, &b->id, sizeof b->id);
    pnet_batch_free(b);
    return h;
}

/* The next `count` digests, 0 for the end of an epoch. */
static void run(struct pnet_loader *l, int count, uint64_t *digests)
{
    for (int i = 0; i < count; i++) {
        struct pnet_batch *b;
        struct pnet_error e = {.message = ""};
        enum pnet_status status = pnet_loader_next(l, &b, &e);
        CHECKF(!status, "%s", e.message);
        digests[i] = b ? digest(b) : 0;
    }
}

/* Six batches and an end an epoch. */
enum { STEPS = 3 * 7 };

static void test_same_bits(const struct folder *f)
{
    struct pnet_dataset *d = read_index(f, "c*.txt");
    uint64_t want[STEPS], got[STEPS];
    for (int workers = 0; workers <= 5; workers++)
        for (int cached = 0; cached < 3; cached++) {
            struct pnet_loader_options o = options(d);
            o.workers = workers;
            o.cache_bytes = cached == 0 ? 0 : cached == 1 ? 2000 : 1 << 20;
            struct pnet_loader *l = open_loader(&o);
            CHECK(pnet_loader_samples(l) == CLOUDS && pnet_loader_batches(l) == 6);
            run(l, STEPS, got);
            if (!workers && !cached) memcpy(want, got, sizeof want);
            CHECK(memcmp(want, got, sizeof want) == 0);
            pnet_loader_free(l);
        }
    for (int i = 0; i < STEPS; i++) CHECK((want[i] == 0) == (i % 7 == 6));
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < i; k++) CHECK(want[i] != want[k] || want[i] == 0);

    /* Resuming, by the position as a checkpoint keeps it, from every place and backwards too. */
    struct pnet_loader_options o = options(d);
    o.workers = 2;
    struct pnet_loader *first = open_loader(&o), *second = open_loader(&o);
    for (int i = 0; i < STEPS - 3; i++) {
        uint32_t epoch;
        int64_t batch;
        pnet_loader_position(first, &epoch, &batch);
        CHECK(epoch == (uint32_t)(i / 7) && batch == i % 7);
        pnet_loader_start(second, epoch, batch);
        run(second, 3, got);
        CHECK(memcmp(got, want + i, 3 * sizeof *got) == 0);
        run(first, 1, got);
        CHECK(got[0] == want[i]);
    }
    pnet_loader_start(second, 0, 0);
    run(second, 2, got);
    CHECK(memcmp(got, want, 2 * sizeof *got) == 0);
    pnet_loader_free(first);
    pnet_loader_free(second);
    pnet_dataset_free(d);
}

/* Which cloud each sample of an epoch is; returns how many there are. */
static int clouds_of_epoch(struct pnet_loader *l, int most, int *clouds)
{
    int count = 0;
    struct pnet_batch *b;
    struct pnet_error e;
    while (!pnet_loader_next(l, &b, &e) && b) {
        for (int32_t i = 0; i < b->samples; i++) {
            int64_t row = b->inputs[0].row_splits[i];
            CHECK(b->inputs[0].row_splits[i + 1] > row);
            if (count < most) clouds[count++] = (int)((float *)b->inputs[0].fields[1])[row];
        }
        pnet_batch_free(b);
    }
    return count;
}

static void test_order(const struct folder *f)
{
    struct pnet_dataset *d = read_index(f, "c*.txt");
    int clouds[CLOUDS + 1], before[CLOUDS], seen[CLOUDS];
    struct pnet_loader_options o = options(d);
    o.workers = 2;
    struct pnet_loader *l = open_loader(&o);
    for (uint32_t epoch = 0; epoch < 4; epoch++) {
        int64_t order[CLOUDS];
        CHECK(clouds_of_epoch(l, CLOUDS + 1, clouds) == CLOUDS);
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < CLOUDS; i++) seen[clouds[i]]++;
        for (int i = 0; i < CLOUDS; i++) CHECK(seen[i] == 1);
        pnet_loader_order(11, epoch, true, CLOUDS, order);
        for (int i = 0; i < CLOUDS; i++) CHECK(order[i] == clouds[i]);
        if (epoch) CHECK(memcmp(before, clouds, sizeof before) != 0);
        memcpy(before, clouds, sizeof before);
    }
    pnet_loader_free(l);

    o.drop_last = true;
    l = open_loader(&o);
    CHECK(pnet_loader_batches(l) == 5 && clouds_of_epoch(l, CLOUDS + 1, clouds) == 20);
    pnet_loader_free(l);

    /* Validation: the order of the index, nothing changed, the same ids each time. */
    o = options(d);
    o.split = PNET_VAL;
    o.training = false;
    o.workers = 3;
    o.drop_last = true;
    l = open_loader(&o);
    uint64_t one[7], two[7];
    CHECK(clouds_of_epoch(l, CLOUDS + 1, clouds) == CLOUDS);
    for (int i = 0; i < CLOUDS; i++) CHECK(clouds[i] == i);
    run(l, 7, one);
    run(l, 7, two);
    CHECK(memcmp(one, two, sizeof one) == 0);
    pnet_loader_start(l, 0, 0);
    struct pnet_batch *b;
    struct pnet_error e;
    CHECK(!pnet_loader_next(l, &b, &e) && b->id && b->inputs[0].rows == 5 + 6 + 7 + 8);
    pnet_batch_free(b);
    pnet_loader_free(l);

    /* Every place of the order is as likely for every sample. */
    static int place[8][8];
    for (uint32_t epoch = 0; epoch < 8000; epoch++) {
        int64_t order[8];
        pnet_loader_order(3, epoch, true, 8, order);
        for (int i = 0; i < 8; i++) place[i][order[i]]++;
    }
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) CHECKF(abs(place[i][k] - 1000) < 150, "%d", place[i][k]);
    pnet_dataset_free(d);
}

static void test_limits(const struct folder *f)
{
    struct pnet_dataset *d = read_index(f, "c*.txt");
    struct pnet_loader_options o = options(d);
    o.max_points = 6;
    o.augment = NULL;
    o.batch_size = CLOUDS;
    for (int training = 0; training < 2; training++) {
        struct pnet_batch *b;
        struct pnet_error e;
        o.training = training;
        o.split = training ? PNET_TRAIN : PNET_VAL;
        struct pnet_loader *l = open_loader(&o);
        CHECK(!pnet_loader_next(l, &b, &e));
        CHECK(b->inputs[0].rows ==
              (training ? 5 + 6 * (CLOUDS - 1) : CLOUDS * 5 + CLOUDS * (CLOUDS - 1) / 2));
        pnet_batch_free(b);
        pnet_loader_free(l);
    }
    pnet_dataset_free(d);
}

static void test_errors(const struct folder *f)
{
    struct pnet_error e;
    struct pnet_batch *b;
    /* The fourth batch cannot be made: the three before it come, then the error, again and again.
     */
    folder_print(f, "bad.txt", "0 0 0 1 0\n0 0 0 1 7\n");
    struct pnet_dataset *d = read_index(f, "c0*.txt, c10.txt, c11.txt, c12.txt, bad.txt, c1*.txt");
    for (int workers = 0; workers < 4; workers++) {
        struct pnet_loader_options o = options(d);
        o.workers = workers;
        o.training = false;
        struct pnet_loader *l = open_loader(&o);
        uint64_t digests[3];
        run(l, 3, digests);
        for (int i = 0; i < 2; i++) {
            CHECK(pnet_loader_next(l, &b, &e) == PNET_BAD_DATA && !b);
            CHECKF(strstr(e.message, "bad.txt: row 1: label 7 is beyond the classes"), "%s",
                e.message);
        }
        pnet_loader_start(l, 0, 4);
        run(l, 1, digests);
        CHECK(digests[0] != 0);
        pnet_loader_free(l);
    }
    pnet_dataset_free(d);

    /* A cloud without the field of labels: the message says which it is, and what there is. */
    folder_print(f, "bare.ply",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
        "property float z\nproperty float heat\nproperty int labels\nend_header\n0 0 0 1 0\n");
    d = read_index(f, "bare.ply");
    struct pnet_loader_options bare = options(d);
    struct pnet_loader *none = open_loader(&bare);
    CHECK(pnet_loader_next(none, &b, &e) == PNET_BAD_DATA && !b);
    CHECKF(strstr(e.message, "bare.ply: no labels: there is no field `label` (label_field of ") &&
               strstr(e.message, "; the fields are x, y, z, heat, labels"),
        "%s", e.message);
    pnet_loader_free(none);
    pnet_dataset_free(d);

    /* Empty clouds fail, or are left out; a batch of nothing else is passed over. */
    d = read_index(f, "nan.txt, nan.txt, nan.txt, nan.txt, c00.txt, nan.txt");
    struct pnet_loader_options o = options(d);
    o.training = false;
    o.workers = 1;
    struct pnet_loader *l = open_loader(&o);
    CHECK(pnet_loader_next(l, &b, &e) == PNET_BAD_DATA &&
          strstr(e.message, "nan.txt: has no points"));
    pnet_loader_free(l);
    o.skip_empty = true;
    int clouds[8];
    l = open_loader(&o);
    CHECK(pnet_loader_batches(l) == 2 && clouds_of_epoch(l, 8, clouds) == 1 && clouds[0] == 0);
    pnet_loader_free(l);

    o.split = PNET_TEST;
    CHECK(pnet_loader_new(&o, &l, &e) == PNET_BAD_DATA && !l &&
          strstr(e.message, "`test` has no entries"));
    o.split = PNET_TRAIN;
    o.training = true;
    o.drop_last = true;
    o.batch_size = 7;
    CHECK(pnet_loader_new(&o, &l, &e) == PNET_USAGE && !l);
    fields[2].classes = 5;
    CHECK(pnet_loader_new(&o, &l, &e) == PNET_USAGE && strstr(e.message, "is of 5 classes"));
    fields[2].classes = 2;
    pnet_dataset_free(d);
}

/* Called by the workers, one at a time. */
static void count_warning(void *context, const char *text)
{
    *(int *)context += strstr(text, "nan.txt") ? 1 : 100;
}

/* What a reader dropped is said once a cloud, not once an epoch. */
static void test_warnings(const struct folder *f)
{
    int warnings = 0;
    folder_print(f, "half-nan.txt", "nan 0 0 1 0\n1 0 0 1 0\n");
    struct pnet_dataset *d = read_index(f, "half-nan.txt, half-nan.txt, c00.txt");
    struct pnet_loader_options o = options(d);
    o.workers = 2;
    o.warn = count_warning;
    o.context = &warnings;
    struct pnet_loader *l = open_loader(&o);
    uint64_t digests[8];
    run(l, 8, digests);
    pnet_loader_free(l);
    CHECK(warnings == 2);
    pnet_dataset_free(d);
}

/* Ends and restarts while workers are busy. */
static void test_ends(const struct folder *f)
{
    struct pnet_dataset *d = read_index(f, "c*.txt");
    struct pnet_loader_options o = options(d);
    o.cache_bytes = 1 << 20;
    for (int round = 0; round < 30; round++) {
        o.workers = 1 + round % 4;
        struct pnet_loader *l = open_loader(&o);
        uint64_t digests[8];
        for (int i = 0; i < round % 5; i++) {
            run(l, i, digests);
            pnet_loader_start(l, (uint32_t)round, i);
        }
        pnet_loader_free(l);
    }
    pnet_loader_free(NULL);
    CHECK(d->counts[PNET_TRAIN] == CLOUDS);
    pnet_dataset_free(d);
}

int main(void)
{
    struct folder f = folder_make();
    put_clouds(&f);
    test_same_bits(&f);
    test_order(&f);
    test_limits(&f);
    test_errors(&f);
    test_warnings(&f);
    test_ends(&f);
    folder_remove(&f);
    return check_end();
}
