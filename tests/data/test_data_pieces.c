/* Files of a data set that are large enough to be read in pieces: the labels and the colours of all rows count, errors name their
   rows, and memory is that of a piece. */
#include "runtime/data/range_scan.h"
#include "tests/data/folder.h"

#include <inttypes.h>
#include <sys/resource.h>

enum {
    ROWS = 1700000,
    RECORD = 20,
    BRIGHTEST = 1234567,
    LABEL_AT = 18,
    CLASSES = 4,
    MOST_KIB = 24 << 10
};

static struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3}};
static const struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 2};
static const struct pnet_input_map no_map = {.count = 0};

/* The class of a row; every fifth row is of class 3, and ignored. */
static uint16_t label_of(int64_t row)
{
    return (uint16_t)(row % 5 < 3 ? row % 5 : 3);
}

/* Colours up to 999, but for one green; some x are NaN. `strange`: a row with a label that has no class, or -1. */
static void write_cloud(const struct folder *f, int64_t strange)
{
    FILE *out = fopen(folder_path(f, "large.ply"), "wb");
    if (!out) abort();
    fprintf(out,
        "ply\nformat binary_little_endian 1.0\nelement vertex %d\nproperty float x\nproperty float "
        "y\nproperty float z\nproperty ushort red\nproperty ushort green\nproperty ushort blue\n"
        "property ushort label\nend_header\n",
        ROWS);
    for (int64_t row = 0; row < ROWS; row++) {
        uint8_t r[RECORD];
        float xyz[3] = {(float)(row % 1000), (float)(row % 77), 1};
        uint16_t rest[4] = {(uint16_t)(row % 1000), row == BRIGHTEST ? 4321 : 5,
            (uint16_t)(row % 3), row == strange ? 77 : label_of(row)};
        if (row % 1000 == 999) xyz[0] = NAN;
        memcpy(r, xyz, sizeof xyz);
        memcpy(r + sizeof xyz, rest, sizeof rest);
        fwrite(r, RECORD, 1, out);
    }
    if (fclose(out) != 0) abort();
}

static struct pnet_dataset *open_set(const struct folder *f)
{
    static const char index[] =
        "pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c]\nlabel_field: label\nignore: [3]\n"
        "train: [large.ply]\n";
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    folder_put(f, "dataset.yaml", index, sizeof index - 1);
    CHECKF(pnet_dataset_read(folder_path(f, "dataset.yaml"), &d, &e) == PNET_OK, "%s", e.message);
    return d;
}

static void tell(void *context, const char *warning)
{
    int *count = context;
    ++*count;
    CHECKF(strstr(warning, "dropped 1700 of 1700000 points"), "%s", warning);
}

/* The rows with NaN, every thousandth, all have the class of row 999: none of them counts. */
static void check_labels(const struct pnet_dataset *d)
{
    int64_t counts[CLASSES] = {0}, want[CLASSES] = {0};
    int told = 0;
    for (int64_t row = 0; row < ROWS; row++) want[label_of(row)] += row % 1000 != 999;
    struct pnet_error e = {.message = ""};
    CHECKF(pnet_dataset_survey(d, PNET_TRAIN, counts, tell, &told, &e) == PNET_OK, "%s", e.message);
    CHECK(told == 1);
    for (int c = 0; c < 3; c++)
        CHECKF(counts[c] == want[c], "class %d: %" PRId64 ", not %" PRId64, c, counts[c], want[c]);
    CHECK(!counts[3]);
}

static void check_colours(const struct pnet_dataset *d)
{
    struct pnet_range_scan s = {.map = &no_map, .inputs = &input, .roles = {0, -1}, .whole = true};
    struct pnet_ranges r = {.count = 0};
    struct pnet_error e = {.message = ""};
    CHECKF(!pnet_ranges_of_dataset(&s, d, 1u << PNET_TRAIN, 0, &r, &e), "%s", e.message);
    const struct pnet_range *t = pnet_ranges_find(&r, "rgb", PNET_RANGE_INTEGERS);
    CHECK(r.count == 1 && t && t->least == 0 && t->most == 4321 && t->divisor == 65535);
    CHECKF(t && strstr(t->place, "row 1234567: the colour green"), "%s", t ? t->place : "");
    pnet_ranges_free(&r);
}

int main(void)
{
    struct folder f = folder_make();
    struct pnet_error e = {.message = ""};
    struct rusage u;
    int64_t counts[CLASSES];
    write_cloud(&f, -1);
    struct pnet_dataset *d = open_set(&f);
    check_labels(d);
    check_colours(d);
    getrusage(RUSAGE_SELF, &u);
    CHECKF(SANITIZED || u.ru_maxrss < MOST_KIB, "%ld KiB", u.ru_maxrss);
    write_cloud(&f, 1500000);
    CHECK(pnet_dataset_survey(d, PNET_TRAIN, counts, NULL, NULL, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "row 1500000") && strstr(e.message, "77"), "%s", e.message);
    pnet_dataset_free(d);
    folder_remove(&f);
    return check_end();
}
