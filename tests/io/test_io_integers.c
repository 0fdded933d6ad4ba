/* Integers of 64 bits, such as stamps in nanoseconds: each reader and each writer keeps every digit. */
#include "runtime/io/cloud.h"
#include "tests/io/archive.h"

#include <inttypes.h>

static const int64_t stamps[2] = {INT64_C(1700000000000000123), INT64_C(-9223372036854775807)};
static const uint64_t large[2] = {UINT64_MAX, UINT64_C(9223372036854775809)};

/* Reads a file and checks its columns t and u, or their other names. */
static void expect_read(
    const char *path, const void *data, size_t size, const char *t, const char *u)
{
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    char warning[256];
    write_file(path, data, size);
    CHECKF(pnet_cloud_read(path, &c, warning, &e) == PNET_OK && c.rows == 2, "%s", e.message);
    CHECK_STR(warning, "");
    const struct pnet_field *a = pnet_cloud_field(&c, t), *b = pnet_cloud_field(&c, u);
    CHECKF(a && a->type == PNET_I64 && memcmp(a->data, stamps, sizeof stamps) == 0, "%s", path);
    CHECKF(b && b->type == PNET_U64 && memcmp(b->data, large, sizeof large) == 0, "%s", path);
    pnet_cloud_free(&c);
    remove(path);
}

#define ROWS(separator)                                                                            \
    "1" separator "2" separator "3" separator "1700000000000000123" separator                      \
    "18446744073709551615\n4" separator "5" separator "6" separator                                \
    "-9223372036854775807" separator "9223372036854775809\n"

static void check_texts(const char *folder)
{
    static const char csv[] = "x,y,z,t,u\n" ROWS(","), bare[] = ROWS(" "),
                      ply[] = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\n"
                              "property float y\nproperty float z\nproperty int64 t\n"
                              "property uint64 u\nend_header\n" ROWS(" "),
                      pcd[] = "VERSION 0.7\nFIELDS x y z t u\nSIZE 4 4 4 8 8\nTYPE F F F I U\n"
                              "WIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA ascii\n" ROWS(" ");
    expect_read(files_path(folder, "a.csv"), csv, sizeof csv - 1, "t", "u");
    expect_read(files_path(folder, "a.xyz"), bare, sizeof bare - 1, "c3", "c4");
    expect_read(files_path(folder, "a.ply"), ply, sizeof ply - 1, "t", "u");
    expect_read(files_path(folder, "a.pcd"), pcd, sizeof pcd - 1, "t", "u");
}

/* Records x y z t u of 28 bytes. */
static void put_records(struct buffer *b)
{
    for (int i = 0; i < 2; i++) {
        put(b, (const float[]){1, 2, 3}, 12);
        put(b, &stamps[i], 8);
        put(b, &large[i], 8);
    }
}

static void check_binaries(const char *folder)
{
    static const char ply[] = "ply\nformat binary_little_endian 1.0\nelement vertex 2\n"
                              "property float x\nproperty float y\nproperty float z\n"
                              "property int64 t\nproperty uint64 u\nend_header\n",
                      pcd[] = "VERSION 0.7\nFIELDS x y z t u\nSIZE 4 4 4 8 8\nTYPE F F F I U\n"
                              "WIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA binary\n";
    static struct buffer b;
    static struct entry m[3] = {{.name = "xyz"}, {.name = "t"}, {.name = "u"}};
    b.size = 0;
    put(&b, ply, sizeof ply - 1);
    put_records(&b);
    expect_read(files_path(folder, "b.ply"), b.data, b.size, "t", "u");
    b.size = 0;
    put(&b, pcd, sizeof pcd - 1);
    put_records(&b);
    expect_read(files_path(folder, "b.pcd"), b.data, b.size, "t", "u");
    struct buffer records = {.size = 0};
    put_records(&records);
    b.size = 0;
    put_npy(&b, 1, DICT("[('xyz', '<f4', (3,)), ('t', '<i8'), ('u', '<u8')]", "False", "(2,)"),
        records.data, records.size);
    expect_read(files_path(folder, "b.npy"), b.data, b.size, "t", "u");
    b.size = 0;
    uint64_t swapped[2] = {__builtin_bswap64(large[0]), __builtin_bswap64(large[1])};
    put_npy(&m[0].content, 1, DICT("'<f4'", "False", "(2, 3)"), (float[6]){1, 2, 3, 4, 5, 6}, 24);
    put_npy(&m[1].content, 1, DICT("'<i8'", "False", "(2,)"), stamps, sizeof stamps);
    put_npy(&m[2].content, 1, DICT("'>u8'", "False", "(2,)"), swapped, sizeof swapped);
    put_archive(&b, m, 3, 0);
    expect_read(files_path(folder, "b.npz"), b.data, b.size, "t", "u");
}

/* Columns of integers become what holds them all; with a gap or a fraction they are doubles, and lost digits are told. */
static void check_columns(const char *path)
{
    static const struct {
        const char *first, *second;
        enum pnet_scalar type;
        double value; /* of the second row */
        int told;
    } columns[] = {{"1", "-2", PNET_I32, -2, 0}, {"2147483647", "2147483648", PNET_I64, 0x1p31, 0},
        {"9007199254740993", "0", PNET_I64, 0, 0},
        {"-1", "9223372036854775808", PNET_F64, 0x1p63, 0},
        {"18446744073709551615", "-1", PNET_F64, -1, 1},
        {"9223372036854775808", "7", PNET_U64, 7, 0}, {"18446744073709551616", "7", PNET_F64, 7, 0},
        {"9007199254740992", "", PNET_F64, NAN, 0}, {"9007199254740993", "", PNET_F64, NAN, 1},
        {"0.5", "9007199254740993", PNET_F64, 0x1p53, 1}, {"5", "0.5", PNET_F64, .5, 0},
        {"5", "6.0", PNET_F64, 6, 0}, {"+5", "007", PNET_I32, 7, 0}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char text[256], warning[256];
        struct pnet_cloud c;
        struct pnet_error e = {.message = ""};
        int n = snprintf(text, sizeof text, "x,y,z,v\n1,2,3,%s\n4,5,6,%s\n", columns[i].first,
            columns[i].second);
        write_file(path, text, (size_t)n);
        CHECKF(pnet_cloud_read(path, &c, warning, &e) == PNET_OK, "%s", e.message);
        const struct pnet_field *f = pnet_cloud_field(&c, "v");
        CHECKF(f && f->type == columns[i].type, "%s: type %d", text, f ? (int)f->type : -1);
        double v = f ? pnet_field_get(f, 1) : 0;
        CHECKF(v == columns[i].value || (isnan(v) && isnan(columns[i].value)), "%s: %g", text, v);
        CHECKF(
            (strstr(warning, "beyond 2^53") != NULL) == columns[i].told, "%s: %s", text, warning);
        CHECK(c.xyz_type == PNET_F64 && c.xyz[5] == 6);
        pnet_cloud_free(&c);
    }
    remove(path);
}

/* Two points with a field of that type. */
static struct pnet_cloud make_cloud(enum pnet_scalar type, const void *values)
{
    struct pnet_cloud c = {.rows = 0};
    static const double xyz[6] = {1, 2, 3, 4, 5, 6};
    c.rows = 2;
    c.xyz_type = PNET_F32;
    struct pnet_field *f = pnet_cloud_add(&c, "t", type);
    CHECK(f != NULL);
    memcpy(f->data, values, 2 * pnet_scalar_size(type));
    CHECK(pnet_cloud_place(&c, 2, xyz, NULL) == PNET_OK);
    return c;
}

/* Returns the bytes that the writer makes; the caller frees them. */
static struct pnet_bytes written(const char *path, struct pnet_cloud c)
{
    struct pnet_bytes b;
    struct pnet_error e = {.message = ""};
    CHECKF(pnet_cloud_write(path, &c, &e) == PNET_OK, "%s", e.message);
    CHECK(pnet_bytes_read(path, &b, &e) == PNET_OK);
    pnet_cloud_free(&c);
    remove(path);
    return b;
}

/* The file has the words in its head, and ends in these bytes. */
static void expect_written(
    const char *path, struct pnet_cloud c, const char *words, const void *tail, size_t size)
{
    struct pnet_bytes b = written(path, c);
    CHECKF(memmem(b.data, b.size, words, strlen(words)), "%s: no %s", path, words);
    CHECKF(b.size >= size && memcmp(b.data + b.size - size, tail, size) == 0, "%s", path);
    pnet_bytes_free(&b);
}

struct record {
    float xyz[3];
    uint8_t t[8];
};

static void check_writers(const char *folder)
{
    struct record r[2] = {{{1, 2, 3}, {0}}, {{4, 5, 6}, {0}}};
    for (int i = 0; i < 2; i++) memcpy(r[i].t, &stamps[i], 8);
    expect_written(
        files_path(folder, "c.ply"), make_cloud(PNET_I64, stamps), "property int64 t", r, sizeof r);
    expect_written(
        files_path(folder, "c.pcd"), make_cloud(PNET_I64, stamps), "TYPE F F F I\n", r, sizeof r);
    expect_written(files_path(folder, "c.npy"), make_cloud(PNET_I64, stamps),
        "{'descr': [('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('t', '<i8')], 'fortran_order': "
        "False, "
        "'shape': (2,), }",
        r, sizeof r);
    for (int i = 0; i < 2; i++) memcpy(r[i].t, &large[i], 8);
    expect_written(
        files_path(folder, "c.npy"), make_cloud(PNET_U64, large), "('t', '<u8')", r, sizeof r);
    static const char text[] = "1,2,3,18446744073709551615\n4,5,6,9223372036854775809\n";
    expect_written(files_path(folder, "c.csv"), make_cloud(PNET_U64, large), "x,y,z,t\n", text,
        sizeof text - 1);
    /* What a matrix of reals holds stays one: of float32, else of float64. */
    static const int32_t small[2] = {16777216, -3}, wide[2] = {16777217, -3};
    static const double decimal[2] = {.1, 1700000000.25};
    static const float single[8] = {1, 2, 3, 16777216, 4, 5, 6, -3};
    static const double whole[8] = {1, 2, 3, 16777217, 4, 5, 6, -3},
                        real[8] = {1, 2, 3, .1, 4, 5, 6, 1700000000.25};
    expect_written(files_path(folder, "d.npy"), make_cloud(PNET_I32, small),
        "'<f4', 'fortran_order': False, 'shape': (2, 4)", single, sizeof single);
    expect_written(files_path(folder, "d.npy"), make_cloud(PNET_I32, wide),
        "'<f8', 'fortran_order': False, 'shape': (2, 4)", whole, sizeof whole);
    expect_written(
        files_path(folder, "d.npy"), make_cloud(PNET_F64, decimal), "'<f8'", real, sizeof real);
}

/* Names of records: what Python's quotes cannot hold is replaced, and others than ASCII need version 3. */
static void check_names(const char *path)
{
    struct pnet_cloud c = make_cloud(PNET_I64, stamps);
    free(c.fields[0].name);
    c.fields[0].name = strdup("t 's\\");
    expect_written(path, c, "('t__s_', '<i8')", "", 0);
    c = make_cloud(PNET_I64, stamps);
    free(c.fields[0].name);
    c.fields[0].name = strdup("h\xc3\xb6he");
    struct pnet_bytes b = written(path, c);
    CHECK(b.size > 12 && b.data[6] == 3 && (12 + b.data[8] + 256 * b.data[9]) % 64 == 0);
    CHECK(memmem(b.data, b.size, "('h\xc3\xb6he', '<i8')", 15) != NULL);
    pnet_bytes_free(&b);
}

int main(void)
{
    const char *folder = files_folder();
    check_texts(folder);
    check_binaries(folder);
    check_columns(files_path(folder, "c.csv"));
    check_writers(folder);
    check_names(files_path(folder, "e.npy"));
    CHECK(rmdir(folder) == 0);
    return check_end();
}
