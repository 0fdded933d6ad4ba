/* The synthetic data sets are data sets: made, read back and loaded by the default rules. */
#include "runtime/data/loader.h"
#include "runtime/synth/synth.h"
#include "tests/data/folder.h"

static struct pnet_dataset *generate(
    const struct folder *f, enum pnet_synth_kind kind, int64_t count)
{
    struct pnet_synth s = {.kind = kind,
        .folder = f->path,
        .count = count,
        .seed = 3,
        .options = {.points = 1500, .threads = 1}};
    struct pnet_dataset *d = NULL;
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_synth_generate(&s, &e);
    if (!status) status = pnet_dataset_read(f->path, &d, &e);
    CHECKF(!status, "%s", e.message);
    if (!d) exit(1);
    return d;
}

/* An epoch of training; counts[] gets the labels. Returns the number of points. */
static int64_t run_epoch(
    const struct pnet_dataset *d, const struct pnet_input *input, int64_t *counts, float *most)
{
    struct pnet_input_map map = {.count = 0};
    struct pnet_loader_options o = {.data = d,
        .inputs = input,
        .input_count = 1,
        .map = &map,
        .batch_size = 3,
        .workers = 1,
        .training = true,
        .seed = 1};
    struct pnet_loader *l;
    struct pnet_batch *b;
    struct pnet_error e = {.message = ""};
    int64_t rows = 0;
    enum pnet_status status = pnet_loader_new(&o, &l, &e);
    CHECKF(!status, "%s", e.message);
    while (!status && !(status = pnet_loader_next(l, &b, &e)) && b) {
        const struct pnet_batch_input *in = &b->inputs[0];
        const int32_t *label = in->fields[2];
        const float *feature = in->fields[1];
        int64_t labels = input->fields[2].per_cloud ? b->samples : in->rows;
        for (int64_t i = 0; i < labels; i++)
            if (label[i] >= 0) counts[label[i]]++;
        for (int64_t i = 0; i < 3 * in->rows; i++) *most = feature[i] > *most ? feature[i] : *most;
        rows += in->rows;
        pnet_batch_free(b);
    }
    CHECKF(!status, "%s", e.message);
    pnet_loader_free(l);
    return rows;
}

static void test_rooms(void)
{
    struct folder f = folder_make();
    struct pnet_dataset *d = generate(&f, PNET_SYNTH_ROOMS, 5);
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3},
        {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = d->class_count}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 3};
    int64_t counts[64] = {0}, want[64], rows = 0;
    float most = 0;
    struct pnet_error e;
    CHECK(d->task == PNET_SEGMENTATION && d->counts[PNET_TRAIN] == 3 && d->counts[PNET_VAL] == 1);
    CHECK(run_epoch(d, &input, counts, &most) > 3000 && most <= 1 && most > 0.3f);
    CHECK(!pnet_dataset_count(d, PNET_TRAIN, want, &e));
    for (int i = 0; i < d->class_count; i++) {
        CHECK(counts[i] == want[i]);
        rows += want[i];
    }
    CHECK(rows > 3000);
    pnet_dataset_free(d);
    folder_remove(&f);
}

static void test_shapes(void)
{
    struct folder f = folder_make();
    int classes;
    const char *const *names = pnet_synth_classes(PNET_SYNTH_SHAPES, &classes);
    struct pnet_dataset *d = generate(&f, PNET_SYNTH_SHAPES, 20);
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = "normal", .kind = PNET_INPUT_FEATURE, .width = 3},
        {.name = "label",
            .kind = PNET_INPUT_CLASS,
            .width = 1,
            .classes = classes,
            .per_cloud = true}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 3};
    int64_t counts[64] = {0}, clouds = 0;
    float most = 0;
    CHECK(
        d->task == PNET_CLASSIFICATION && d->class_count == classes && d->counts[PNET_TRAIN] == 16);
    for (int i = 0; i < classes; i++) CHECK_STR(d->classes[i], names[i]);
    CHECK(run_epoch(d, &input, counts, &most) > 16 * 1000 && most <= 1.0001f && most > 0.9f);
    for (int i = 0; i < classes; i++) clouds += counts[i];
    CHECK(clouds == 16);
    pnet_dataset_free(d);
    folder_remove(&f);
}

int main(void)
{
    test_rooms();
    test_shapes();
    return check_end();
}
