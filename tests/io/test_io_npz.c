/* Which array of an NPZ holds the coordinates: names decide, float16 counts, and more than one candidate is an error. */
#include "runtime/io/format.h"
#include "runtime/io/archive.h"
#include "tests/io/archive.h"

#include <stdarg.h>

/* Two points, 1 to 6 row by row, as float32 and as float16 (IEEE 754: sign, 5 bits of exponent, 10 of mantissa). */
static const float points[6] = {1, 2, 3, 4, 5, 6};
static const uint16_t halves[6] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
static const float others[8] = {.5F, .5F, .5F, .25F, .25F, .25F};

static struct entry member(const char *name, const char *dictionary, const void *data, size_t size)
{
    struct entry m = {.name = name, .deflated = 1};
    put_npy(&m.content, 1, dictionary, data, size);
    return m;
}

#define MATRIX(name, shape, data) member(name, DICT("'<f4'", "False", shape), data, sizeof data)

/* Reads an archive of `count` members. The caller frees the cloud. */
static enum pnet_status read_archive(
    struct entry *m, int count, const char *coordinates, struct pnet_cloud *c, struct pnet_error *e)
{
    static struct buffer b;
    b.size = 0;
    put_archive(&b, m, count, 0);
    struct pnet_bytes bytes = bytes_of(b.data, b.size);
    const struct pnet_cloud_hints hints = {.coordinates = coordinates};
    *c = (struct pnet_cloud){.rows = 0};
    *e = (struct pnet_error){.message = ""};
    return pnet_npz_cloud_read_as(&bytes, "a.npz", &hints, c, e);
}

/* The cloud has the two points, and `array` says where they come from. Returns it; the caller frees it. */
static struct pnet_cloud expect_points(
    struct entry *m, int count, const char *coordinates, const char *array)
{
    struct pnet_cloud c;
    struct pnet_error e;
    CHECKF(read_archive(m, count, coordinates, &c, &e) == PNET_OK, "%s: %s", array, e.message);
    CHECKF(c.rows == 2 && c.array, "%s", array);
    for (int i = 0; i < 6 && c.rows == 2; i++)
        CHECKF(c.xyz[i] == points[i], "%s: %g", array, (double)c.xyz[i]);
    CHECK_STR(c.array ? c.array : "", array);
    return c;
}

static void expect_field(const struct pnet_cloud *c, const char *name, enum pnet_scalar type,
    double first, double second)
{
    const struct pnet_field *f = pnet_cloud_field(c, name);
    CHECKF(f && f->type == type, "%s", name);
    if (f)
        CHECKF(pnet_field_get(f, 0) == first && pnet_field_get(f, 1) == second, "%s: %g, %g", name,
            pnet_field_get(f, 0), pnet_field_get(f, 1));
}

/* The message has all the words, of which a NULL follows the last. */
static void expect_refused(struct entry *m, int count, const char *coordinates, ...)
{
    struct pnet_cloud c;
    struct pnet_error e;
    va_list words;
    CHECK(read_archive(m, count, coordinates, &c, &e) == PNET_BAD_DATA);
    CHECK(!c.rows && !c.xyz && !c.array);
    va_start(words, coordinates);
    for (const char *w = va_arg(words, const char *); w; w = va_arg(words, const char *))
        CHECKF(strstr(e.message, w), "\"%s\" without \"%s\"", e.message, w);
    va_end(words);
    pnet_cloud_free(&c);
}

static void check_names(void)
{
    static const char *const names[] = {"xyz", "points", "Points", "point", "pts", "coords",
        "coord", "coordinates", "COORDINATES", "coordinate", "positions", "position", "pos", "pc",
        "pcd", "cloud", "point_cloud", "pointcloud", "vertices", "verts"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct entry m[] = {MATRIX("colors.npy", "(2, 3)", others), MATRIX("a", "(2, 3)", others),
            MATRIX(names[i], "(2, 3)", points)};
        struct pnet_cloud c = expect_points(m, 3, NULL, names[i]);
        expect_field(&c, "colors_2", PNET_F32, .5, .25);
        pnet_cloud_free(&c);
    }
}

/* float16 is read, in either byte order and either order of dimensions, of coordinates and of fields. */
static void check_halves(void)
{
    static const uint16_t columns[6] = {0x3c00, 0x4400, 0x4000, 0x4500, 0x4200, 0x4600};
    static const uint16_t values[2] = {0x3555, 0x0001}; /* 1365 / 4096, the smallest: 2^-24 */
    static const uint16_t ends[2] = {0xfbff, 0xc000};   /* the least finite one, -2 */
    uint16_t swapped[6];
    for (int i = 0; i < 6; i++) swapped[i] = (uint16_t)(halves[i] << 8 | halves[i] >> 8);
    struct entry coordinates[] = {
        member("points", DICT("'<f2'", "False", "(2, 3)"), halves, sizeof halves),
        member("points", DICT("'>f2'", "False", "(2, 3)"), swapped, sizeof swapped),
        member("points", DICT("'<f2'", "True", "(2, 3)"), columns, sizeof columns)};
    for (int k = 0; k < 3; k++) {
        struct entry m[] = {MATRIX("normals", "(2, 3)", others), coordinates[k],
            member("v", DICT("'<f2'", "False", "(2,)"), values, sizeof values),
            member("w", DICT("'<f2'", "False", "(2, 1)"), ends, sizeof ends)};
        struct pnet_cloud c = expect_points(m, 4, NULL, "points");
        expect_field(&c, "v", PNET_F32, 1365.0 / 4096, 0x1p-24);
        expect_field(&c, "w", PNET_F32, -65504, -2);
        pnet_cloud_free(&c);
    }
}

/* A first dimension of 1 is dropped, of coordinates and of fields. */
static void check_lead(void)
{
    static const int64_t tags[2] = {7, 8};
    struct entry m[] = {member("label", DICT("'<i8'", "False", "(1, 2)"), tags, sizeof tags),
        MATRIX("points", "(1, 2, 3)", points), MATRIX("rgb", "(1, 2, 3)", others)};
    struct pnet_cloud c = expect_points(m, 3, NULL, "points");
    CHECK(c.field_count == 4);
    expect_field(&c, "label", PNET_I64, 7, 8);
    expect_field(&c, "rgb_0", PNET_F32, .5, .25);
    pnet_cloud_free(&c);
}

/* Arrays x, y and z; records with one field of three values. */
static void check_other_shapes(void)
{
    static const double x[2] = {1, 4}, y[2] = {2, 5};
    static const int16_t z[2] = {3, 6};
    struct entry apart[] = {member("Y", DICT("'<f8'", "False", "(2, 1)"), y, sizeof y),
        member("x", DICT("'<f8'", "False", "(2,)"), x, sizeof x), MATRIX("n", "(2, 3)", others),
        member("z", DICT("'<i2'", "False", "(1, 2)"), z, sizeof z)};
    struct pnet_cloud c = expect_points(apart, 4, NULL, "x, y, z");
    expect_field(&c, "n_1", PNET_F32, .5, .25);
    CHECK(c.field_count == 3);
    pnet_cloud_free(&c);

    struct {
        int32_t t;
        float xyz[3];
    } records[2] = {{9, {1, 2, 3}}, {8, {4, 5, 6}}};
    struct entry triple = member("scan",
        DICT("[('t', '<i4'), ('xyz', '<f4', (3,))]", "False", "(2,)"), records, sizeof records);
    c = expect_points(&triple, 1, NULL, "scan");
    expect_field(&c, "t", PNET_I32, 9, 8);
    pnet_cloud_free(&c);

    /* Two fields of three values: one is chosen by its name. */
    struct {
        float p[3], pos[3];
    } both[2] = {{{.5F}, {1, 2, 3}}, {{.25F}, {4, 5, 6}}};
    struct entry m = member(
        "scan", DICT("[('xyz', '<f4', 3), ('pos', '<f4', 3)]", "False", "(2,)"), both, sizeof both);
    expect_refused(&m, 1, NULL, "a.npz: scan: ", "several fields", "--coordinates NAME", NULL);
    c = expect_points(&m, 1, "pos", "scan");
    expect_field(&c, "xyz_0", PNET_F32, .5, .25);
    pnet_cloud_free(&c);
    struct pnet_bytes bytes = bytes_of(triple.content.data, triple.content.size);
    CHECK(pnet_npy_cloud_read(&bytes, "a.npy", &c, NULL) == PNET_OK && c.rows == 2 && !c.array);
    for (int i = 0; i < 6 && c.rows == 2; i++) CHECK(c.xyz[i] == points[i]);
    pnet_cloud_free(&c);
}

/* What cannot be decided lists the arrays; a choice decides. */
static void check_several(void)
{
    static const double z[2] = {3, 6};
    struct entry two[] = {MATRIX("pcd", "(2, 3)", points), MATRIX("points", "(2, 4)", others)};
    expect_refused(two, 2, NULL, "pcd [2, 3], points [2, 4]", "--coordinates NAME", NULL);
    struct pnet_cloud c = expect_points(two, 2, "pcd", "pcd");
    CHECK(pnet_cloud_field(&c, "points_3") != NULL);
    pnet_cloud_free(&c);
    expect_refused(two, 2, "xyz", "no array \"xyz\"", "points [2, 4]", NULL);
    struct entry unknown[] = {MATRIX("arr_0", "(2, 3)", points), MATRIX("arr_1", "(2, 3)", others)};
    expect_refused(unknown, 2, NULL, "arr_0 [2, 3], arr_1 [2, 3]", NULL);
    struct entry apart[] = {MATRIX("xyz", "(2, 3)", points),
        member("x", DICT("'<f8'", "False", "(2,)"), z, sizeof z),
        member("y", DICT("'<f8'", "False", "(2,)"), z, sizeof z),
        member("z", DICT("'<f8'", "False", "(2,)"), z, sizeof z)};
    expect_refused(apart, 4, NULL, "xyz [2, 3], x [2], y [2], z [2]", NULL);
    c = expect_points(apart, 4, "xyz", "xyz");
    expect_field(&c, "x", PNET_F64, 3, 6);
    pnet_cloud_free(&c);
    /* The position of a scanner is no cloud beside one. */
    struct entry scanner[] = {MATRIX("pos", "(1, 3)", points), MATRIX("points", "(2, 3)", points)};
    scanner[0].content.size = 0;
    put_npy(&scanner[0].content, 1, DICT("'<f4'", "False", "(1, 3)"), others, 12);
    c = expect_points(scanner, 2, NULL, "points");
    pnet_cloud_free(&c);
}

/* Arrays in groups, which end in /, are called by their last names. The group of the coordinates is left out of fields. */
static void check_groups(void)
{
    static const double x[2] = {1, 4}, y[2] = {2, 5}, z[2] = {3, 6};
#define COLUMN(name, data) member(name, DICT("'<f8'", "False", "(2,)"), data, sizeof data)
    struct entry m[] = {COLUMN("a/X", x), COLUMN("a/Y", y), COLUMN("a/Z", z), COLUMN("a/w", x),
        COLUMN("ab/v", z), COLUMN("b/X", y), COLUMN("b/Y", y)};
    struct pnet_cloud c = expect_points(m, 7, NULL, "x, y, z");
    expect_field(&c, "w", PNET_F64, 1, 4);
    expect_field(&c, "ab/v", PNET_F64, 3, 6);
    CHECK(c.field_count == 4);
    pnet_cloud_free(&c);
    m[4] = COLUMN("b/Z", z);
    expect_refused(m, 7, NULL, "several arrays", "a/X [2]", "b/Z [2]", NULL);
    expect_refused(m, 7, "x,y,z", "several arrays", NULL);
    struct entry deep[] = {MATRIX("1/scan/points", "(2, 3)", points), COLUMN("1/scan/label", z),
        MATRIX("1/others", "(2, 3)", others)};
    c = expect_points(deep, 3, NULL, "1/scan/points");
    expect_field(&c, "label", PNET_F64, 3, 6);
    expect_field(&c, "1/others_0", PNET_F32, .5, .25);
    pnet_cloud_free(&c);
    c = expect_points(deep, 3, "1/scan/points", "1/scan/points");
    pnet_cloud_free(&c);
}

/* Only a matrix that may be a cloud is taken without a name: one, not too wide, and no transform. */
static void check_unknown(void)
{
    static float wide[5 * 32];
    struct entry one[] = {MATRIX("scan", "(2, 3)", points), MATRIX("normals", "(2, 3)", others),
        member("pose", DICT("'<f4'", "False", "(4, 4)"), wide, 64),
        member("K", DICT("'<f4'", "False", "(3, 3)"), wide, 36),
        member("faces", DICT("'<i4'", "False", "(5, 3)"), wide, 60)};
    struct pnet_cloud c = expect_points(one, 5, NULL, "scan");
    CHECK(pnet_cloud_field(&c, "normals_0") != NULL);
    pnet_cloud_free(&c);
    struct entry descriptors =
        member("geometry", DICT("'<f4'", "False", "(5, 32)"), wide, sizeof wide);
    expect_refused(&descriptors, 1, NULL, "found geometry [5, 32]", "--coordinates NAME", NULL);
    struct pnet_error e;
    CHECK(read_archive(&descriptors, 1, "geometry", &c, &e) == PNET_OK && c.rows == 5);
    pnet_cloud_free(&c);
    struct entry normals = MATRIX("normals", "(2, 3)", points);
    expect_refused(&normals, 1, NULL, "found normals [2, 3]", NULL);
}

/* An array with a name of coordinates that cannot hold them does not leave the choice to the others. */
static void check_unfit(void)
{
    static const double batch[12] = {0};
    struct entry many[] = {
        member("points", DICT("'<f8'", "False", "(2, 2, 3)"), batch, sizeof batch),
        MATRIX("scan", "(2, 3)", points)};
    expect_refused(many, 2, NULL, "points [2, 2, 3]", "`array`", NULL);
    struct entry pickled[] = {member("points", DICT("'|O'", "False", "(2, 3)"), batch, 48),
        MATRIX("normals", "(2, 3)", points)};
    expect_refused(pickled, 2, NULL, "a.npz: points: ", "plain numbers", NULL);
    struct entry turned = member("points", DICT("'<f4'", "False", "(3, 20)"), (float[60]){0}, 240);
    expect_refused(&turned, 1, NULL, "[3, 20]", "transpose", NULL);
    /* Of one dimension it is the position of a scanner. */
    struct entry place[] = {MATRIX("position", "(8,)", others), MATRIX("scan", "(2, 3)", points)};
    struct pnet_cloud c = expect_points(place, 2, NULL, "scan");
    pnet_cloud_free(&c);
}

/* Arrays of many clouds are found by their dimensions, then by name. */
static void check_find(const char *path)
{
    static struct buffer b;
    char name[PNET_ARRAY_NAME];
    struct pnet_error e;
    static const float clouds[12] = {0};
    struct entry m[] = {MATRIX("labels", "(2,)", others), MATRIX("data", "(2, 2, 3)", clouds),
        MATRIX("points", "(1, 4, 3)", clouds)};
    m[0].content.size = 0;
    put_npy(&m[0].content, 1, DICT("'|u1'", "False", "(2,)"), "\0\1", 2);
    put_archive(&b, m, 2, 0);
    write_file(path, b.data, b.size);
    CHECK(pnet_archive_find(path, 3, name, &e) == PNET_OK);
    CHECK_STR(name, "data");
    CHECK(pnet_archive_find(path, 4, name, &e) == PNET_BAD_DATA &&
          strstr(e.message, "data [2, 2, 3]"));
    b.size = 0;
    put_archive(&b, m, 3, 0);
    write_file(path, b.data, b.size);
    CHECK(pnet_archive_find(path, 3, name, &e) == PNET_OK);
    CHECK_STR(name, "points");
    m[2].name = "more";
    b.size = 0;
    put_archive(&b, m, 3, 0);
    write_file(path, b.data, b.size);
    CHECK(
        pnet_archive_find(path, 3, name, &e) == PNET_BAD_DATA && strstr(e.message, "points: NAME"));
    m[2].name = "Normals";
    b.size = 0;
    put_archive(&b, m, 3, 0);
    write_file(path, b.data, b.size);
    CHECK(pnet_archive_find(path, 3, name, &e) == PNET_OK);
    CHECK_STR(name, "data");
    remove(path);
}

/* Wide matrices without names of columns get a warning, in every format that has no names. */
static void check_wide(const char *folder)
{
    static const char line[] = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
    static const char *const names[16] = {
        "x", "y", "z", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"};
    static float v[2 * 16];
    char warning[256];
    struct pnet_cloud c;
    for (int k = 0; k < 2; k++) {
        const char *path = files_path(folder, k ? "a.npy" : "a.txt");
        struct buffer b = {.size = 0};
        if (k)
            put_npy(&b, 1, DICT("'<f4'", "False", "(2, 16)"), v, sizeof v);
        else
            put(&b, line, sizeof line - 1);
        write_file(path, b.data, b.size);
        CHECK(pnet_cloud_read(path, &c, warning, NULL) == PNET_OK);
        CHECKF(strstr(warning, "16 columns without names"), "\"%s\"", warning);
        pnet_cloud_free(&c);
        const struct pnet_cloud_hints hints = {.columns = (char *const *)names, .column_count = 16};
        CHECK(pnet_cloud_read_as(path, &hints, &c, warning, NULL) == PNET_OK);
        CHECK_STR(warning, "");
        pnet_cloud_free(&c);
        remove(path);
    }
}

/* Coordinates of sparse tensors, b x y z, get a warning; so do no points whose x counts otherwise, is 0, or has a name. */
static void check_batch(const char *folder)
{
    static const struct {
        const char *text, *doubt;
    } cases[] = {
        {"0 5 6 7\n0 9 1 2\n0 1 1 1\n0 2 2 2\n0 3 3 3\n1 5 5 5\n1 4 4 4\n1 8 8 8\n",
            "from 0 to 1,"},
        {"0 5.5 6 7 .1\n0 9 1 2 .2\n0 1 1 1 .3\n0 2 2 2 .4\n", NULL},
        {"0 5 6 7\n0 9 1 2\n0 1 1 1\n0 2 2 2\n", "from 0 to 0,"},
        {"0 5 6\n0 9 1\n0 1 1\n0 2 2\n", NULL},
        {"0 5 6 7\n0 9 1 2\n1 1 1 1\n1 2 2 2\n2 3 3 3\n", NULL},
        {"0 5 6 7\n0 9 1 2\n0 1 1 1\n2 2 2 2\n2 2 2 2\n2 2 2 2\n2 2 2 2\n2 2 2 2\n", NULL},
        {"x y z c3x\n0 5 6 7\n0 9 1 2\n0 1 1 1\n0 2 2 2\n", NULL},
    };
    const char *path = files_path(folder, "a.txt");
    char warning[256];
    struct pnet_cloud c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(path, cases[i].text, strlen(cases[i].text));
        CHECK(pnet_cloud_read(path, &c, warning, NULL) == PNET_OK);
        bool told = strstr(warning, "looks like the index of a batch, not like x: leave it out");
        CHECKF(told == (cases[i].doubt != NULL), "%zu: \"%s\"", i, warning);
        CHECKF(!told || strstr(warning, cases[i].doubt), "\"%s\"", warning);
        pnet_cloud_free(&c);
    }
    remove(path);
}

int main(void)
{
    const char *folder = files_folder();
    check_names();
    check_halves();
    check_lead();
    check_other_shapes();
    check_several();
    check_groups();
    check_unknown();
    check_unfit();
    check_find(files_path(folder, "a.npz"));
    check_wide(folder);
    check_batch(folder);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
