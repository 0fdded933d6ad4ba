/* The same 400 coloured points give the same features from every format, type and name: the colours of a table, 0..255,
   divided by 255. Files are written byte by byte here, not by the writers of the program. */
#include "runtime/data/range_scan.h"
#include "runtime/data/sample.h"
#include "tests/data/folder.h"

#include <stdint.h>
#include <zlib.h>

enum { POINTS = 400 };

/* Channel k of point i; the first point is 255 128 0. */
static int colour(int i, int k)
{
    static const int first[] = {255, 128, 0}, step[] = {7, 31, 113};
    return (first[k] + i * step[k]) % 256;
}

static double place(int i, int axis)
{
    return axis == 0 ? i % 20 : axis == 1 ? i / 20 : 0.5;
}

/* ---- bytes ---- */

struct bytes {
    uint8_t data[1 << 16];
    size_t size;
};

static void put(struct bytes *b, const void *data, size_t size)
{
    if (b->size + size > sizeof b->data) exit(1);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void put_text(struct bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

static void put_number(struct bytes *b, enum pnet_scalar type, double value)
{
    int64_t whole = (int64_t)value;
    float single = (float)value;
    if (type == PNET_F32)
        put(b, &single, 4);
    else if (type == PNET_F64)
        put(b, &value, 8);
    else
        put(b, &whole, pnet_scalar_size(type)); /* little endian */
}

static const char *numpy_name(enum pnet_scalar type)
{
    static const char *const names[] = {
        "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"};
    return names[type];
}

/* ---- formats: colours are `value` of 255 ---- */

static void put_shape(struct bytes *b, enum pnet_scalar type, const char *shape)
{
    char head[256];
    int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
        numpy_name(type), shape);
    while ((10 + n + 1) % 64) head[n++] = ' ';
    head[n++] = '\n';
    uint8_t size[2] = {(uint8_t)n, (uint8_t)(n >> 8)};
    put(b, "\x93NUMPY\1\0", 8);
    put(b, size, 2);
    put(b, head, (size_t)n);
}

static void put_npy_head(struct bytes *b, enum pnet_scalar type, int width)
{
    char shape[32];
    snprintf(shape, sizeof shape, width ? "(%d, %d)" : "(%d,)", (int)POINTS, width);
    put_shape(b, type, shape);
}

static void put_npy(const struct folder *f, const char *name, enum pnet_scalar type, double value)
{
    struct bytes b = {.size = 0};
    put_npy_head(&b, type, 6);
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < 3; k++) put_number(&b, type, place(i, k));
        for (int k = 0; k < 3; k++) put_number(&b, type, colour(i, k) * value / 255);
    }
    folder_put(f, name, b.data, b.size);
}

struct zip {
    struct bytes file, directory;
    int count;
};

/* Adds a member without compression. */
static void zip_add(struct zip *z, const char *name, const struct bytes *member)
{
    uint16_t length = (uint16_t)strlen(name), zero = 0, version = 20;
    uint32_t crc = (uint32_t)crc32(0, member->data, (uInt)member->size);
    uint32_t size = (uint32_t)member->size, none = 0, at = (uint32_t)z->file.size;
    struct bytes common = {.size = 0}; /* what the local and the central header share */
    put(&common, &version, 2);
    for (int i = 0; i < 4; i++) put(&common, &zero, 2); /* flags, method, time, date */
    put(&common, &crc, 4);
    put(&common, &size, 4);
    put(&common, &size, 4);
    put(&common, &length, 2);
    put(&common, &zero, 2);
    put(&z->file, "PK\3\4", 4);
    put(&z->file, common.data, common.size);
    put_text(&z->file, name);
    put(&z->file, member->data, member->size);
    put(&z->directory, "PK\1\2", 4);
    put(&z->directory, &version, 2);
    put(&z->directory, common.data, common.size);
    for (int i = 0; i < 3; i++) put(&z->directory, &zero, 2); /* comment, disk, attributes */
    put(&z->directory, &none, 4);
    put(&z->directory, &at, 4);
    put_text(&z->directory, name);
    z->count++;
}

static void zip_end(struct zip *z, const struct folder *f, const char *name)
{
    uint16_t zero = 0, count = (uint16_t)z->count;
    uint32_t size = (uint32_t)z->directory.size, at = (uint32_t)z->file.size;
    put(&z->file, z->directory.data, z->directory.size);
    put(&z->file, "PK\5\6", 4);
    put(&z->file, &zero, 2);
    put(&z->file, &zero, 2);
    put(&z->file, &count, 2);
    put(&z->file, &count, 2);
    put(&z->file, &size, 4);
    put(&z->file, &at, 4);
    put(&z->file, &zero, 2);
    folder_put(f, name, z->file.data, z->file.size);
}

/* `names`: three arrays, or one of three columns. */
static void put_npz(const struct folder *f, const char *file, const char *const *names, int count,
    enum pnet_scalar type, double value)
{
    static struct zip z;
    static struct bytes b;
    memset(&z, 0, sizeof z);
    b.size = 0;
    put_npy_head(&b, PNET_F32, 3);
    for (int i = 0; i < 3 * POINTS; i++) put_number(&b, PNET_F32, place(i / 3, i % 3));
    zip_add(&z, "xyz.npy", &b);
    for (int n = 0; n < count; n++) {
        char member[64];
        snprintf(member, sizeof member, "%s.npy", names[n]);
        b.size = 0;
        put_npy_head(&b, type, count == 1 ? 3 : 0);
        for (int i = 0; i < POINTS; i++)
            for (int k = 0; k < 3; k++)
                if (count == 1 || k == n) put_number(&b, type, colour(i, k) * value / 255);
        zip_add(&z, member, &b);
    }
    zip_end(&z, f, file);
}

static void put_ply(const struct folder *f, const char *name, const char *type_name,
    enum pnet_scalar type, double value)
{
    static const char *const channels[] = {"red", "green", "blue"};
    struct bytes b = {.size = 0};
    char line[64];
    snprintf(line, sizeof line, "element vertex %d\n", (int)POINTS);
    put_text(&b, "ply\nformat binary_little_endian 1.0\n");
    put_text(&b, line);
    put_text(&b, "property float x\nproperty float y\nproperty float z\n");
    for (int k = 0; k < 3; k++) {
        snprintf(line, sizeof line, "property %s %s\n", type_name, channels[k]);
        put_text(&b, line);
    }
    put_text(&b, "end_header\n");
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < 3; k++) put_number(&b, PNET_F32, place(i, k));
        for (int k = 0; k < 3; k++) put_number(&b, type, colour(i, k) * value / 255);
    }
    folder_put(f, name, b.data, b.size);
}

static void put_table(const struct folder *f, const char *name, const char *head,
    const char *separator, double value, int decimals)
{
    struct bytes b = {.size = 0};
    put_text(&b, head);
    for (int i = 0; i < POINTS; i++)
        for (int k = 0; k < 6; k++) {
            char word[64];
            double v = k < 3 ? place(i, k) : colour(i, k - 3) * value / 255;
            snprintf(
                word, sizeof word, "%.*f%s", k < 3 ? 1 : decimals, v, k < 5 ? separator : "\n");
            put_text(&b, word);
        }
    folder_put(f, name, b.data, b.size);
}

static void put_pcd(const struct folder *f, const char *name, bool packed, double value)
{
    struct bytes b = {.size = 0};
    char line[128];
    put_text(&b, "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z ");
    put_text(&b, packed ? "rgb\nSIZE 4 4 4 4\nTYPE F F F U\nCOUNT 1 1 1 1\n"
                        : "r g b\nSIZE 4 4 4 4 4 4\nTYPE F F F F F F\nCOUNT 1 1 1 1 1 1\n");
    snprintf(line, sizeof line, "WIDTH %d\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %d\n",
        (int)POINTS, (int)POINTS);
    put_text(&b, line);
    put_text(&b, "DATA binary\n");
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < 3; k++) put_number(&b, PNET_F32, place(i, k));
        if (packed) put_number(&b, PNET_U32, colour(i, 0) << 16 | colour(i, 1) << 8 | colour(i, 2));
        for (int k = 0; k < 3 && !packed; k++) put_number(&b, PNET_F32, colour(i, k) * value / 255);
    }
    folder_put(f, name, b.data, b.size);
}

/* LAS 1.2, point format 2. */
static void put_las(const struct folder *f, const char *name, double value)
{
    struct bytes b = {.size = 0};
    uint8_t head[227] = {'L', 'A', 'S', 'F'};
    double one = 1, half = 0.5;
    uint32_t count = POINTS;
    head[24] = 1; /* version 1.2 */
    head[25] = 2;
    head[94] = 227; /* header size, then the offset of the points */
    head[96] = 227;
    head[104] = 2; /* point format, then the record's length */
    head[105] = 26;
    memcpy(head + 107, &count, 4);
    for (int k = 0; k < 3; k++) {
        memcpy(head + 131 + 8 * k, &one, 8);
        if (k == 2) memcpy(head + 155 + 8 * k, &half, 8);
    }
    put(&b, head, sizeof head);
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < 3; k++) put_number(&b, PNET_I32, (int)place(i, k));
        uint8_t between[8] = {0};
        put(&b, between, sizeof between);
        for (int k = 0; k < 3; k++) put_number(&b, PNET_U16, colour(i, k) * value / 255);
    }
    folder_put(f, name, b.data, b.size);
}

/* ---- features ---- */

static char *columns[] = {"x", "y", "z", "red", "green", "blue"};

/* Checks the features of a field of the model, with an input map as YAML. */
static void expect(const struct folder *f, const char *file, const char *field, bool named,
    const char *map_text, double accuracy)
{
    struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
        {.name = field, .kind = PNET_INPUT_FEATURE, .width = 3}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 2};
    struct pnet_input_map map;
    struct pnet_cloud c;
    struct pnet_sample *s = NULL;
    struct pnet_error e = {.message = ""};
    const char *path = folder_path(f, file);
    int count = named ? 6 : 0;
    CHECK(!pnet_input_map_read("map", map_text, strlen(map_text), &map, &e));
    enum pnet_status status = pnet_cloud_read_as(
        path, &(struct pnet_cloud_hints){.columns = columns, .column_count = count}, &c, NULL, &e);
    if (!status) status = pnet_cloud_name_columns(columns, count, &c, path, &e);
    if (!status) status = pnet_sample_make(&input, &map, &c, NULL, 0, path, &s, &e);
    CHECKF(!status && s && s->rows == POINTS, "%s: %s", file, e.message);
    double worst = 0;
    for (int i = 0; i < 3 * POINTS && s; i++)
        worst = fmax(
            worst, fabs((double)((float *)s->fields[1])[i] - (double)colour(i / 3, i % 3) / 255));
    CHECKF(worst <= accuracy, "%s, %s: off by %g", file, field, worst);
    pnet_sample_free(s);
    pnet_cloud_free(&c);
    pnet_input_map_free(&map);
}

static const double FINE = 1e-7, WRITTEN = 1e-6;

static void test_tables(const struct folder *f)
{
    static const char listed[] = "inputs: {cloud: {rgb: [red, green, blue]}}";
    put_table(f, "bare.txt", "", " ", 255, 0);
    expect(f, "bare.txt", "rgb", true, "{}", FINE);
    expect(f, "bare.txt", "colour", true, "{}", FINE);
    expect(f, "bare.txt", "rgb", true, listed, FINE);
    put_table(f, "rgb.txt", "x y z r g b\n", " ", 255, 0);
    expect(f, "rgb.txt", "rgb", false, "{}", FINE);
    expect(f, "rgb.txt", "color", false, "{}", FINE);
    expect(f, "rgb.txt", "rgb", false, "inputs: {cloud: {rgb: [r, g, b]}}", FINE);
    put_table(f, "red.csv", "x,y,z,red,green,blue\n", ",", 255, 0);
    expect(f, "red.csv", "rgb", false, "{}", FINE);
    put_table(f, "other.csv", "x,y,z,R,G,B\n", ",", 255, 0);
    expect(f, "other.csv", "rgb", false, "inputs: {cloud: {rgb: [R, G, B]}}", FINE);
    put_table(f, "real.csv", "x,y,z,red,green,blue\n", ",", 255, 2);
    expect(f, "real.csv", "rgb", false, "{}", FINE);
    put_table(f, "wide.csv", "x,y,z,red,green,blue\n", ",", 65535, 0);
    expect(f, "wide.csv", "rgb", false, "{}", FINE);
    put_table(f, "unit.csv", "x,y,z,red,green,blue\n", ",", 1, 7);
    expect(f, "unit.csv", "rgb", false, "{}", WRITTEN);
    put_table(f, "unit.txt", "", " ", 1, 7);
    expect(f, "unit.txt", "rgb", true, listed, WRITTEN);
}

static void test_binary(const struct folder *f)
{
    static const struct {
        const char *name;
        enum pnet_scalar type;
        double value;
    } plys[] = {{"uchar", PNET_U8, 255}, {"short", PNET_I16, 255}, {"ushort", PNET_U16, 255},
        {"ushort", PNET_U16, 65535}, {"int", PNET_I32, 255}, {"int", PNET_I32, 65535},
        {"uint", PNET_U32, 255}, {"float", PNET_F32, 1}, {"float", PNET_F32, 255},
        {"float", PNET_F32, 65535}, {"double", PNET_F64, 1}, {"double", PNET_F64, 255}};
    static const struct {
        enum pnet_scalar type;
        double value;
    } npys[] = {{PNET_U8, 255}, {PNET_U16, 255}, {PNET_U16, 65535}, {PNET_I32, 255},
        {PNET_I64, 255}, {PNET_I64, 65535}, {PNET_F32, 1}, {PNET_F32, 255}, {PNET_F64, 1},
        {PNET_F64, 255}, {PNET_U64, 255}};
    char name[64];
    for (size_t i = 0; i < sizeof plys / sizeof *plys; i++) {
        snprintf(name, sizeof name, "%s%g.ply", plys[i].name, plys[i].value);
        put_ply(f, name, plys[i].name, plys[i].type, plys[i].value);
        expect(f, name, "rgb", false, "{}", FINE);
        expect(f, name, "rgb", false, "inputs: {cloud: {rgb: [red, green, blue]}}", FINE);
    }
    for (size_t i = 0; i < sizeof npys / sizeof *npys; i++) {
        snprintf(name, sizeof name, "type%d_%g.npy", (int)npys[i].type, npys[i].value);
        put_npy(f, name, npys[i].type, npys[i].value);
        expect(f, name, "rgb", true, "{}", FINE);
        expect(f, name, "color", true, "{}", FINE);
    }
    put_pcd(f, "packed.pcd", true, 255);
    put_pcd(f, "float.pcd", false, 1);
    put_pcd(f, "float255.pcd", false, 255);
    put_las(f, "bytes.las", 255);
    put_las(f, "words.las", 65535);
    expect(f, "packed.pcd", "rgb", false, "{}", FINE);
    expect(f, "float.pcd", "rgb", false, "{}", FINE);
    expect(f, "float255.pcd", "rgb", false, "{}", FINE);
    expect(f, "bytes.las", "rgb", false, "{}", FINE);
    expect(f, "words.las", "rgb", false, "{}", FINE);
}

static void test_archives(const struct folder *f)
{
    static const char *const full[] = {"red", "green", "blue"}, *const letters[] = {"r", "g", "b"};
    static const char *const whole[] = {"rgb", "color", "colour"};
    static const char *const plural[] = {"rgb", "color", "colour", "colors", "colours"};
    static const enum pnet_scalar types[] = {
        PNET_U8, PNET_U16, PNET_I32, PNET_I64, PNET_F32, PNET_F64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int scale = 0; scale < 3; scale++) {
            double value = scale == 0 ? 255 : scale == 1 ? 1 : 65535;
            bool real = types[i] == PNET_F32 || types[i] == PNET_F64;
            if ((scale == 1 && !real) || (scale == 2 && types[i] == PNET_U8)) continue;
            put_npz(f, "a.npz", full, 3, types[i], value);
            expect(f, "a.npz", "rgb", false, "{}", FINE);
            put_npz(f, "b.npz", letters, 3, types[i], value);
            expect(f, "b.npz", "colour", false, "{}", FINE);
            for (int k = 0; k < 3; k++) {
                put_npz(f, "c.npz", &whole[k], 1, types[i], value);
                expect(f, "c.npz", whole[k], false, "{}", FINE);
            }
            for (size_t k = 0; k < sizeof plural / sizeof *plural; k++) {
                put_npz(f, "d.npz", &plural[k], 1, types[i], value);
                for (int n = 0; n < 3; n++) expect(f, "d.npz", whole[n], false, "{}", FINE);
            }
        }
    static const char *const normals = "normals";
    put_npz(f, "e.npz", &normals, 1, PNET_F32, 1);
    expect(f, "e.npz", "normal", false, "{}", FINE);
}

/* Two arrays of clouds in one archive are two clouds of the source, though they have one path and one row. */
static void test_arrays(const struct folder *f)
{
    static const double most[] = {250, 50000};
    struct zip *z = calloc(1, sizeof *z);
    struct pnet_input_field fields[] = {{.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3}};
    struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 1};
    struct pnet_input_map map = {.count = 0};
    struct pnet_range_scan scan = {.map = &map, .inputs = &input, .roles = {0, -1}};
    struct pnet_ranges r = {.count = 0};
    struct pnet_dataset *d;
    struct pnet_error e = {.message = ""};
    if (!z) exit(1);
    for (int a = 0; a < 2; a++) {
        struct bytes b = {.size = 0};
        put_shape(&b, PNET_F32, "(1, 2, 6)");
        for (int i = 0; i < 12; i++) put_number(&b, PNET_F32, i % 6 < 3 ? i : most[a] - i);
        zip_add(z, a ? "b.npy" : "a.npy", &b);
    }
    zip_end(z, f, "two.npz");
    free(z);
    folder_print(f, "dataset.yaml",
        "pnet_dataset: 1\ntask: segmentation\nclasses: [a]\ncolumns: [x, y, z, red, green, blue]\n"
        "train: [{array: two.npz, points: a}]\nval: [{array: two.npz, points: b}]\n");
    CHECKF(!pnet_dataset_read(f->path, &d, &e), "%s", e.message);
    CHECK(!pnet_ranges_of_dataset(&scan, d, 1u << PNET_TRAIN | 1u << PNET_VAL, 0, &r, &e));
    const struct pnet_range *t = pnet_ranges_find(&r, "rgb", PNET_RANGE_REALS);
    CHECKF(t && t->most == 50000 - 3 && t->divisor == 65535, "%g", t ? t->most : -1);
    pnet_ranges_free(&r);
    pnet_dataset_free(d);
}

int main(void)
{
    struct folder f = folder_make();
    test_tables(&f);
    test_binary(&f);
    test_archives(&f);
    test_arrays(&f);
    folder_remove(&f);
    return check_end();
}
