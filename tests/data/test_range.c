/* Value ranges: what decides the divisor of colours, over a whole source and against the record of a training; which files are
   read for it; the cache. */
#include "runtime/data/range_scan.h"
#include "tests/data/folder.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3},
    {.name = "heat", .kind = PNET_INPUT_FEATURE, .width = 1}};
static struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 2};
static const struct pnet_input_map no_map = {.count = 0};

/* The last lines that a decision told. */
static char told[4][1024];
static int told_count;

static void tell(void *context, const char *text)
{
    (void)context;
    snprintf(told[told_count++ % 4], sizeof told[0], "%s", text);
}

static struct pnet_range range(enum pnet_range_kind kind, double least, double most)
{
    return (struct pnet_range){.field = (char *)"rgb", .kind = kind, .least = least, .most = most};
}

/* Settles a source of one range against a record of one, most 0: none, with that divisor. Returns the divisor, or -1. */
static double settle(
    enum pnet_range_kind kind, double most, double recorded, double divisor, struct pnet_error *e)
{
    struct pnet_ranges record = {.count = 0}, source = {.count = 0};
    struct pnet_range was = range(kind, 0, recorded), now = range(kind, 0, most);
    told_count = 0;
    if (recorded > 0) {
        CHECK(!pnet_ranges_add(&record, &was, e));
        record.items[0].divisor = divisor;
    }
    CHECK(!pnet_ranges_add(&source, &now, e));
    double decided = -1;
    if (!pnet_ranges_settle(&record, &source, tell, NULL, e))
        decided = pnet_ranges_find(&record, "rgb", kind)->divisor;
    CHECK(!source.count);
    pnet_ranges_free(&record);
    return decided;
}

static void test_decisions(void)
{
    struct pnet_error e = {.message = ""};
    enum pnet_range_kind whole = PNET_RANGE_INTEGERS, real = PNET_RANGE_REALS;
    CHECK(settle(PNET_RANGE_BYTES, 255, 0, 0, &e) == 255);
    CHECK(settle(whole, 1, 0, 0, &e) == 255 && settle(whole, 255, 0, 0, &e) == 255);
    CHECK(settle(whole, 256, 0, 0, &e) == 65535 && settle(whole, 65535, 0, 0, &e) == 65535);
    CHECK(settle(real, 0.3, 0, 0, &e) == 1 && settle(real, 1, 0, 0, &e) == 1);
    CHECK(settle(real, 1.000001, 0, 0, &e) == 1 && settle(real, 2, 0, 0, &e) == 255);
    CHECK(settle(real, 255, 0, 0, &e) == 255 && settle(real, 255.5, 0, 0, &e) == 65535);
    CHECK(!told_count);
    CHECK(settle(real, 1.5, 0, 0, &e) == -1 && e.status == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "rgb is 1.5") && strstr(e.message, "scale: 1/255"), "%s", e.message);

    /* The record of a training. */
    CHECK(settle(whole, 200, 60000, 65535, &e) == 65535 && !told_count);
    CHECK(settle(whole, 300, 255, 255, &e) == 65535 && told_count == 1);
    CHECKF(strstr(told[0],
               "reach 300 and are divided by 65535, those of the training by 255: `scale`"),
        "%s", told[0]);
    CHECK(settle(whole, 200, 255, 255, &e) == 255 && !told_count);
    CHECK(settle(whole, 0, 60000, 65535, &e) != -1 && !told_count);
    CHECK(settle(real, 1.5, 255, 255, &e) == 255 && settle(real, 90, 40000, 65535, &e) == 65535);
    CHECK(settle(real, 0.9, 255, 255, &e) == 1 && told_count == 1);
    CHECKF(strstr(told[0], "up to 0.9 and stay as they are; those of the training reached 255"),
        "%s", told[0]);
    CHECK(settle(real, 255, 0.8, 1, &e) == 255 && told_count == 1);
}

static void test_outside(void)
{
    const struct {
        double least, most, from, to;
        bool outside;
    } cases[] = {{0, 1, 0, 1, false}, {0, 1, 0, 2, false}, {0, 1, 0, 2.1, true},
        {0, 1, 0, 255, true}, {0, 255, 0, 1, true}, {0, 255, 0, 20, false}, {0, 255, 0, 4, true},
        {0, 65535, 0, 255, true}, {0, 65535, 0, 40000, false}, {0, 1, -0.5, 1, false},
        {0, 1, -1.5, 1, true}, {-1, 1, -1, 1, false}, {-1, 1, -3.5, 0, true}, {7, 7, 7, 7, false},
        {7, 7, 6, 7, true}, {0, 0, 0, 0, false}, {0, 0, 0, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pnet_range r = range(PNET_RANGE_FED, cases[i].least, cases[i].most);
        CHECKF(pnet_range_is_outside(&r, cases[i].from, cases[i].to) == cases[i].outside, "%d",
            (int)i);
    }
}

/* ---- data sets ---- */

/* An ascii PLY of four points, with the colours 0, `most`, 0, 0 in each channel. */
static void put_cloud(const struct folder *f, const char *name, const char *type, const char *most)
{
    folder_print(f, name,
        "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
        "property float z\nproperty %s red\nproperty %s green\nproperty %s blue\n"
        "property float heat\nend_header\n"
        "0 0 0 0 0 0 0\n1 0 0 %s %s %s 0.5\n0 1 0 0 0 0 7\n0 0 1 0 0 0 nan\n",
        type, type, type, most, most, most);
}

static bool whole;

static enum pnet_status scan(const struct folder *f, const char *index, const char *cache,
    unsigned splits, unsigned fed, struct pnet_ranges *r, struct pnet_error *e)
{
    struct pnet_range_scan s = {
        .map = &no_map, .inputs = &input, .roles = {0, -1}, .whole = whole, .cache = cache};
    struct pnet_dataset *d;
    *r = (struct pnet_ranges){.count = 0};
    folder_print(f, "dataset.yaml", "pnet_dataset: 1\ntask: segmentation\nclasses: [a]\n%s", index);
    enum pnet_status status = pnet_dataset_read(f->path, &d, e);
    CHECKF(!status, "%s", e->message);
    if (status) return status;
    status = pnet_ranges_of_dataset(&s, d, splits, fed, r, e);
    pnet_dataset_free(d);
    return status;
}

static void expect(
    const struct pnet_ranges *r, enum pnet_range_kind kind, double most, double divisor)
{
    const struct pnet_range *t = pnet_ranges_find(r, "rgb", kind);
    CHECKF(t && t->most == most && t->divisor == divisor, "kind %d: %g, %g", (int)kind,
        t ? t->most : -1, t ? t->divisor : -1);
}

static void test_sets(const struct folder *f)
{
    struct pnet_ranges r, record = {.count = 0};
    struct pnet_error e = {.message = ""};
    put_cloud(f, "bright.ply", "ushort", "65000");
    put_cloud(f, "dark.ply", "ushort", "200");
    put_cloud(f, "black.ply", "ushort", "0");
    put_cloud(f, "bytes.ply", "uchar", "3");
    put_cloud(f, "real.ply", "float", "0.75");
    CHECK(!scan(f, "train: [dark.ply]\nval: [bright.ply]\ntest: [real.ply]\n", NULL, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 200, 255);
    CHECK(r.count == 1);
    pnet_ranges_free(&r);
    CHECK(!scan(f, "train: [dark.ply]\nval: [bright.ply]\ntest: [real.ply]\n", NULL, 3, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 65000, 65535);
    CHECK(r.count == 1);
    pnet_ranges_free(&r);
    CHECK(!scan(f, "train: [dark.ply, black.ply, bytes.ply, real.ply]\n", NULL, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 200, 255);
    expect(&r, PNET_RANGE_BYTES, 255, 255);
    expect(&r, PNET_RANGE_REALS, 0.75, 1);
    pnet_ranges_free(&r);

    /* Told: clouds that alone would be divided by another number; black ones do not count. */
    put_cloud(f, "z.ply", "ushort", "300");
    whole = true;
    CHECK(!scan(f, "train: [z.ply, dark.ply, black.ply, real.ply]\n", NULL, 1, 1, &r, &e));
    told_count = 0;
    CHECK(!pnet_ranges_settle(&record, &r, tell, NULL, &e) && told_count == 1);
    CHECKF(strstr(told[0], "/dark.ply alone would be divided by 255; as others of the source reach "
                           "300, all are divided by 65535"),
        "%s", told[0]);
    pnet_ranges_free(&record);
    whole = false;

    /* Other features: as the model reads them, of the splits asked for. */
    input.field_count = 3;
    CHECK(!scan(f, "train: [bright.ply]\nval: [dark.ply]\n", NULL, 3, 1, &r, &e));
    const struct pnet_range *heat = pnet_ranges_find(&r, "heat", PNET_RANGE_FED);
    CHECK(r.count == 2 && heat && heat->least == 0 && heat->most == 7);
    pnet_ranges_free(&r);
    input.field_count = 2;
}

static void test_errors(const struct folder *f)
{
    struct pnet_ranges r;
    struct pnet_error e = {.message = ""};
    put_cloud(f, "minus.ply", "int", "-4");
    put_cloud(f, "huge.ply", "double", "70000");
    CHECK(scan(f, "train: [minus.ply]\n", NULL, 1, 1, &r, &e) == PNET_BAD_DATA && !r.count);
    CHECKF(
        strstr(e.message, "minus.ply: row 1: the colour red is -4, and colours reach from 0 to 1, "
                          "to 255 or to 65535") &&
            strstr(e.message, "scale: 1/255"),
        "%s", e.message);
    CHECK(scan(f, "train: [huge.ply]\n", NULL, 1, 1, &r, &e) == PNET_BAD_DATA && !r.count);
    CHECKF(strstr(e.message, "huge.ply: row 1: the colour red is 70000"), "%s", e.message);
}

/* Files that cannot change a decision are not read: here they are cut behind their header. */
static void test_left_out(const struct folder *f)
{
    static const char head[] =
        "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
        "property float z\nproperty %s red\nproperty %s green\nproperty %s blue\nend_header\n";
    struct pnet_ranges r;
    struct pnet_error e = {.message = ""};
    folder_print(f, "cut_bytes.ply", head, "uchar", "uchar", "uchar");
    folder_print(f, "cut_words.ply", head, "ushort", "ushort", "ushort");
    CHECK(!scan(f, "train: [bytes.ply, cut_bytes.ply]\n", NULL, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_BYTES, 255, 255);
    CHECK(r.count == 1);
    pnet_ranges_free(&r);
    CHECK(!scan(f, "train: [bright.ply, cut_words.ply]\n", NULL, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 65000, 65535);
    pnet_ranges_free(&r);
    CHECK(scan(f, "train: [cut_words.ply, dark.ply]\n", NULL, 1, 1, &r, &e) == PNET_BAD_DATA);
    input.field_count = 3; /* the range of another feature needs every file */
    CHECK(scan(f, "train: [bytes.ply, cut_bytes.ply]\n", NULL, 1, 1, &r, &e) == PNET_BAD_DATA);
    CHECK(
        !scan(f, "train: [bytes.ply]\nval: [cut_bytes.ply]\n", NULL, 3, 1, &r, &e) && r.count == 2);
    pnet_ranges_free(&r);
    input.field_count = 2;
}

/* Overwrites a file in place, and sets its time. */
static void overwrite(
    const char *path, const char *from, const char *to, const struct timespec *time)
{
    char text[1024];
    FILE *file = fopen(path, "r+");
    if (!file) exit(1);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    char *at = strstr(text, from);
    CHECK(at && strlen(from) == strlen(to));
    if (at) memcpy(at, to, strlen(to));
    rewind(file);
    fwrite(text, 1, n, file);
    fclose(file);
    struct timespec times[2] = {*time, *time};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void test_cache(const struct folder *f)
{
    whole = true;
    static const char index[] = "train: [kept.ply]\n";
    struct pnet_ranges r;
    struct pnet_error e = {.message = ""};
    struct timespec first = {1000000000, 5}, later = {1000000000, 6};
    char cache[1024], path[1024];
    snprintf(cache, sizeof cache, "%s/cache", f->path);
    snprintf(path, sizeof path, "%s/kept.ply", f->path);
    put_cloud(f, "kept.ply", "ushort", "100");
    overwrite(path, "100", "200", &first);
    CHECK(!scan(f, index, cache, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 200, 255);
    CHECK(r.items[0].alone[1].count == 1);
    pnet_ranges_free(&r);
    overwrite(path, "200", "900", &first); /* looks the same: what was kept counts */
    CHECK(!scan(f, index, cache, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 200, 255);
    CHECK(r.items[0].alone[1].count == 1 && strstr(r.items[0].alone[1].first, "kept.ply"));
    pnet_ranges_free(&r);
    CHECK(!scan(f, index, cache, 3, 1, &r, &e)); /* other splits, another result */
    expect(&r, PNET_RANGE_INTEGERS, 900, 65535);
    pnet_ranges_free(&r);
    overwrite(path, "900", "800", &later);
    CHECK(!scan(f, index, cache, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 800, 65535);
    pnet_ranges_free(&r);

    /* A damaged cache is ignored, and replaced. */
    char command[2100];
    snprintf(command, sizeof command, "for i in '%s'/*; do echo 'ranges: [' >\"$i\"; done", cache);
    CHECK(system(command) == 0);
    overwrite(path, "800", "700", &later);
    CHECK(!scan(f, index, cache, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 700, 65535);
    pnet_ranges_free(&r);
    overwrite(path, "700", "600", &later);
    CHECK(!scan(f, index, cache, 1, 1, &r, &e));
    expect(&r, PNET_RANGE_INTEGERS, 700, 65535);
    pnet_ranges_free(&r);
    CHECK(!scan(f, index, path, 1, 1, &r, &e)); /* no folder, so nothing is kept */
    expect(&r, PNET_RANGE_INTEGERS, 600, 65535);
    pnet_ranges_free(&r);
}

/* A result is that of its index: other names of columns, and clouds that are moved to another split, change it, though no cloud
   changes. */
static void test_index(const struct folder *f)
{
    char cache[1024];
    struct pnet_ranges r;
    struct pnet_error e = {.message = ""};
    snprintf(cache, sizeof cache, "%s/cache", f->path);
    whole = true;
    folder_print(f, "columns.txt", "0 0 0 11 12 13 1400 1500 1600\n1 1 1 0 0 0 0 0 0\n");
    CHECK(!scan(f, "columns: [x, y, z, red, green, blue, a, b, c]\ntrain: [columns.txt]\n", cache,
        1, 1, &r, &e));
    expect(&r, PNET_RANGE_REALS, 13, 255);
    pnet_ranges_free(&r);
    CHECK(!scan(f, "columns: [x, y, z, a, b, c, red, green, blue]\ntrain: [columns.txt]\n", cache,
        1, 1, &r, &e));
    expect(&r, PNET_RANGE_REALS, 1600, 65535);
    pnet_ranges_free(&r);

    whole = false;
    input.field_count = 3;
    folder_print(f, "cool.txt", "x y z heat red green blue\n0 0 0 1 0 0 0\n");
    folder_print(f, "warm.txt", "x y z heat red green blue\n0 0 0 90 0 0 0\n");
    for (int k = 0; k < 2; k++) {
        CHECK(!scan(f,
            k ? "train: [warm.txt]\nval: [cool.txt]\n" : "train: [cool.txt]\nval: [warm.txt]\n",
            cache, 3, 1, &r, &e));
        const struct pnet_range *heat = pnet_ranges_find(&r, "heat", PNET_RANGE_FED);
        CHECKF(heat && heat->most == (k ? 90 : 1), "%g", heat ? heat->most : -1);
        pnet_ranges_free(&r);
    }
    input.field_count = 2;
}

int main(void)
{
    struct folder f = folder_make();
    test_decisions();
    test_outside();
    test_sets(&f);
    test_errors(&f);
    test_left_out(&f);
    test_cache(&f);
    test_index(&f);
    folder_remove(&f);
    return check_end();
}
