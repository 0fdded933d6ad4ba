/* NPY arrays of every type and order, and NPZ archives put together here. */
#include "runtime/io/archive.h"
#include "runtime/io/format.h"
#include "tests/io/archive.h"

static void check_write_read(const char *path)
{
    uint64_t state = 1;
    const int64_t shape[3] = {3, 4, 5};
    uint8_t data[60 * 8];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)random_bits(&state);
    for (int type = PNET_I8; type <= PNET_F64; type++) {
        struct pnet_npy a;
        struct pnet_error e = {.message = ""};
        CHECK(pnet_npy_write(path, (enum pnet_scalar)type, 3, shape, data, &e) == PNET_OK);
        CHECKF(pnet_npy_read(path, &a, &e) == PNET_OK, "%s", e.message);
        CHECK(a.type == (enum pnet_scalar)type && a.dims == 3 && a.count == 60);
        CHECK(memcmp(a.shape, shape, sizeof shape) == 0);
        CHECK(memcmp(a.data, data, 60 * pnet_scalar_size(a.type)) == 0);
        pnet_npy_free(&a);
        CHECK(!a.data);
    }
    static const int64_t empty[2] = {0, 7};
    struct pnet_npy a;
    CHECK(pnet_npy_write(path, PNET_F32, 2, empty, data, NULL) == PNET_OK);
    CHECK(pnet_npy_read(path, &a, NULL) == PNET_OK && a.count == 0 && a.shape[1] == 7);
    pnet_npy_free(&a);
    CHECK(pnet_npy_write(path, PNET_F64, 0, NULL, data, NULL) == PNET_OK); /* one number */
    CHECK(pnet_npy_read(path, &a, NULL) == PNET_OK && a.count == 1 && a.dims == 0);
    CHECK(memcmp(a.data, data, 8) == 0);
    pnet_npy_free(&a);
    remove(path);
}

/* Big endian, the other order of dimensions, all versions: [2, 3] of 0 to 5. */
static void check_orders(const char *path)
{
    static const int16_t c_order[] = {0, 1, 2, 3, 4, 5}, fortran[] = {0, 3, 1, 4, 2, 5};
    int16_t swapped[6];
    for (int i = 0; i < 6; i++) swapped[i] = (int16_t)((uint16_t)c_order[i] << 8);
    static const char *const heads[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'fortran_order': True,'shape':(2,3),'descr':\"<i2\"}",
        "{ 'descr' : '>i2', 'shape' : (2L, 3L,), 'fortran_order' : False }   \n"};
    const int16_t *const data[] = {c_order, fortran, swapped};
    for (int version = 1; version <= 3; version++)
        for (int k = 0; k < 3; k++) {
            struct buffer b = {.size = 0};
            struct pnet_npy a;
            struct pnet_error e = {.message = ""};
            put_npy(&b, version, heads[k], data[k], sizeof c_order);
            write_file(path, b.data, b.size);
            CHECKF(pnet_npy_read(path, &a, &e) == PNET_OK, "%s", e.message);
            CHECK(a.type == PNET_I16 && a.dims == 2 && a.shape[0] == 2 && a.shape[1] == 3);
            CHECKF(
                memcmp(a.data, c_order, sizeof c_order) == 0, "version %d, order %d", version, k);
            pnet_npy_free(&a);
        }
    remove(path);
}

static void check_cloud(struct buffer *b, int rows, const char *field, const double *values)
{
    struct pnet_bytes bytes = bytes_of(b->data, b->size);
    struct pnet_cloud c = {.rows = 0};
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_npz_probe(&bytes) ? pnet_npz_cloud_read(&bytes, "a.npz", &c, &e)
                                                     : pnet_npy_cloud_read(&bytes, "a.npy", &c, &e);
    CHECKF(status == PNET_OK && c.rows == rows, "%s", e.message);
    for (int i = 0; i < 3 * rows && c.rows == rows; i++) CHECK(c.xyz[i] == (float)(i + 1));
    struct pnet_field *f = field ? pnet_cloud_field(&c, field) : NULL;
    CHECKF(!field || f, "%s", field ? field : "");
    for (int i = 0; f && i < rows && c.rows == rows; i++) CHECK(pnet_field_get(f, i) == values[i]);
    pnet_cloud_free(&c);
}

static void check_clouds(void)
{
    static const double tag[] = {9, 8};
    static const float rows4[] = {1, 2, 3, 9, 4, 5, 6, 8}, columns4[] = {1, 4, 2, 5, 3, 6, 9, 8};
    static const int64_t integers[] = {1, 2, 3, 4, 5, 6};
    struct buffer b = {.size = 0};
    put_npy(&b, 1, DICT("'<f4'", "False", "(2, 4)"), rows4, sizeof rows4);
    check_cloud(&b, 2, "c3", tag);
    b.size = 0;
    put_npy(&b, 1, DICT("'<f4'", "True", "(2, 4)"), columns4, sizeof columns4);
    check_cloud(&b, 2, "c3", tag);
    b.size = 0;
    put_npy(&b, 1, DICT("'<i8'", "False", "(2, 3)"), integers, sizeof integers);
    check_cloud(&b, 2, NULL, NULL);
    b.size = 0;
    put_npy(&b, 1, DICT("'<f8'", "False", "(0, 3)"), "", 0);
    check_cloud(&b, 0, NULL, NULL);
    b.size = 0; /* a record: padding, swapped and repeated values */
    put_npy(&b, 1,
        DICT("[('tag', '|u1'), ('', '|V3'), ('Z', '>i2'), ('X', '<f4'), ('q', '<i2', (2, 1)), "
             "('Y', '<f8')]",
            "False", "(2,)"),
        "\7...\0\3\0\0\x80\x3f\1\0\x09\0\0\0\0\0\0\0\0\x40"
        "\7...\0\6\0\0\x80\x40\1\0\x08\0\0\0\0\0\0\0\x14\x40",
        44);
    check_cloud(&b, 2, "q_1", tag);
}

static void check_refused(const char *dictionary, size_t data, const char *words)
{
    struct buffer b = {.size = 0};
    uint8_t zeros[256] = {0};
    put_npy(&b, 1, dictionary, zeros, data);
    struct pnet_bytes bytes = bytes_of(b.data, b.size);
    struct pnet_cloud c = {.rows = 0};
    struct pnet_error e = {.message = ""};
    CHECKF(pnet_npy_cloud_read(&bytes, "a.npy", &c, &e) == PNET_BAD_DATA, "%s", dictionary);
    CHECKF(strncmp(e.message, "a.npy: ", 7) == 0 && strstr(e.message, words), "\"%s\", not \"%s\"",
        e.message, words);
}

static void check_bad(void)
{
    check_refused("", 0, "expected {");
    check_refused("{'descr'}", 0, "expected :");
    check_refused("{'descr': '<f4', 'descr': '<f4'}", 0, "once each");
    check_refused("{'other': 1}", 0, "descr, fortran_order and shape");
    check_refused("{'descr': '<f4', 'shape': (1, 3)}", 12, "descr, fortran_order and shape");
    check_refused(DICT("'<f4'", "Maybe", "(1, 3)"), 12, "True or False");
    check_refused(DICT("'<c8'", "False", "(1, 3)"), 24, "plain numbers");
    check_refused(DICT("'|O'", "False", "(1, 3)"), 24, "plain numbers");
    check_refused(DICT("'|V4'", "False", "(1, 3)"), 12, "plain numbers");
    check_refused(DICT("'<f4'", "False", "(1, -3)"), 12, "length of a dimension");
    check_refused(DICT("'<f4'", "False", "(1 3)"), 12, ", or )");
    check_refused(DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4, "8 dimensions");
    check_refused(DICT("'<f4'", "False", "(4294967296, 4294967296)"), 12, "64 bits");
    check_refused(DICT("'<f4'", "False", "(4294967296, 3)"), 12, "items of 4 bytes");
    check_refused(DICT("'<f4'", "False", "(2, 3)"), 23, "items of 4 bytes");
    check_refused(DICT("'<f4'", "False", "(2, 2)"), 16, "3 or more");
    check_refused(DICT("'<f4'", "False", "(6,)"), 24, "3 or more");
    check_refused(DICT("'<f4'", "False", "(2, 1, 3)"), 24, "3 or more");
    check_refused(DICT("'<f4'", "False", "(0, 99999)"), 0, "columns");
    check_refused(DICT("[]", "False", "(2,)"), 24, "items of 0 bytes");
    check_refused(
        DICT("[('x', '<f4'), ('y', [('a', '<f4')])]", "False", "(2,)"), 24, "type of a field");
    check_refused(DICT("[('x', '<f4', (9999999999, 9999999999))]", "False", "(2,)"), 24, "64 bits");
    check_refused(DICT("[('x', '<f4', 99999)]", "False", "(2,)"), 24, "columns");
}

static void check_archives(const char *path)
{
    static const double tag[] = {9, 8}, red[] = {3, 6};
    static struct entry m[4] = {
        {.name = "label.npy"}, {.name = "points.npy"}, {.name = "rgb.npy"}, {.name = "words.npy"}};
    static const float points[] = {1, 2, 3, 4, 5, 6};
    put_npy(&m[0].content, 1, DICT("'|u1'", "False", "(2,)"), "\x09\x08", 2);
    put_npy(&m[1].content, 1, DICT("'<f4'", "False", "(2, 3)"), points, sizeof points);
    put_npy(&m[2].content, 1, DICT("'|u1'", "True", "(2, 3)"), "\3\6\0\0\0\0", 6);
    put_npy(&m[3].content, 1, DICT("'<U4'", "False", "(2,)"), points, 16);
    for (int k = 0; k < 4; k++) {
        static struct buffer b;
        b.size = 0;
        for (int i = 0; i < 4; i++) m[i].deflated = k & 1;
        put_archive(&b, m, 4, k / 2);
        check_cloud(&b, 2, "label", tag);
        check_cloud(&b, 2, "rgb_0", red);
        write_file(path, b.data, b.size);
        struct pnet_npy a;
        struct pnet_error e = {.message = ""};
        CHECKF(pnet_archive_read(path, "points", &a, &e) == PNET_OK, "%s", e.message);
        CHECK(a.count == 6 && memcmp(a.data, points, sizeof points) == 0);
        pnet_npy_free(&a);
        CHECK(
            pnet_archive_read(path, NULL, &a, &e) == PNET_OK && a.type == PNET_U8 && a.count == 2);
        pnet_npy_free(&a);
        CHECK(pnet_archive_read(path, "label.npy", &a, &e) == PNET_OK && a.count == 2);
        pnet_npy_free(&a);
        CHECK(pnet_archive_read(path, "words", &a, &e) == PNET_BAD_DATA &&
              strstr(e.message, "words"));
        CHECK(
            pnet_archive_read(path, "none", &a, &e) == PNET_BAD_DATA && strstr(e.message, "none"));
        CHECK(pnet_npy_read(path, &a, &e) == PNET_BAD_DATA);
        b.data[m[1].at + 50] ^= 0x10; /* the check sum sees one bit */
        write_file(path, b.data, b.size);
        CHECK(pnet_archive_read(path, "points", &a, &e) == PNET_BAD_DATA &&
              strstr(e.message, "damaged"));
    }
    remove(path);
}

/* An archive of members that are all zeros: `sizes` bytes behind a header that says "'|u1' (rows, 3)". */
static void put_zeros(const char *path, int count, size_t rows)
{
    size_t most = 128 + 3 * rows, room = most / 500 + 4096;
    uint8_t *content = calloc(1, most), *packed = malloc(room);
    char text[128];
    int n = snprintf(text, sizeof text, DICT("'|u1'", "False", "(%zu, 3)"), rows);
    memcpy(content, "\x93NUMPY\1\0", 8);
    content[8] = (uint8_t)n;
    memcpy(content + 10, text, (size_t)n);
    size_t size = 10 + (size_t)n + 3 * rows;
    z_stream s = {
        .next_in = content, .avail_in = (uInt)size, .next_out = packed, .avail_out = (uInt)room};
    deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    CHECK(deflate(&s, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&s);
    struct buffer *b = calloc(1, sizeof *b);
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < count; i++) {
        put(b, "PK\3\4\x14\0\0\0\10\0\0\0\0\0", 14);
        put_number(b, crc32_z(0, content, size), 4);
        put_number(b, s.total_out, 4);
        put_number(b, size, 4);
        put_number(b, 1, 4);
        put_number(b, (uint64_t)('a' + i), 1);
        fwrite(b->data, 1, b->size, f);
        fwrite(packed, 1, s.total_out, f);
        b->size = 0;
    }
    uint64_t start = (uint64_t)ftell(f);
    for (int i = 0; i < count; i++) {
        put(b, "PK\1\2\x14\0\x14\0\0\0\10\0\0\0\0\0", 16);
        put_number(b, crc32_z(0, content, size), 4);
        put_number(b, s.total_out, 4);
        put_number(b, size, 4);
        put_number(b, 1, 4);
        put_number(b, 0, 8);
        put_number(b, 0, 2);
        put_number(b, (uint64_t)i * (31 + s.total_out), 4);
        put_number(b, (uint64_t)('a' + i), 1);
    }
    uint64_t end = start + b->size;
    put(b, "PK\5\6\0\0\0\0", 8);
    put_number(b, (uint64_t)count, 2);
    put_number(b, (uint64_t)count, 2);
    put_number(b, end - start, 4);
    put_number(b, start, 4);
    put_number(b, 0, 2);
    fwrite(b->data, 1, b->size, f);
    CHECK(fclose(f) == 0);
    free(b);
    free(content);
    free(packed);
}

/* What a small archive may unpack to is bounded, by each member and by all together. */
static void check_bombs(const char *path)
{
    struct pnet_npy a;
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    put_zeros(path, 1, 20 << 20); /* 60 MiB */
    CHECKF(pnet_archive_read(path, "a", &a, &e) == PNET_OK && a.count == 60 << 20, "%s", e.message);
    pnet_npy_free(&a);
    put_zeros(path, 1, 40 << 20); /* 120 MiB in 120 KB */
    CHECK(pnet_archive_read(path, "a", &a, &e) == PNET_BAD_DATA &&
          strstr(e.message, "without compression"));
    CHECK(pnet_cloud_read(path, &c, NULL, &e) == PNET_BAD_DATA && strstr(e.message, "unpacks to"));
    put_zeros(path, 2, 15 << 20); /* either would do, not both */
    CHECK(pnet_archive_read(path, "b", &a, &e) == PNET_OK);
    pnet_npy_free(&a);
    CHECK(
        pnet_cloud_read(path, &c, NULL, &e) == PNET_BAD_DATA && strstr(e.message, "member \"b\""));
    remove(path);
}

int main(void)
{
    const char *folder = files_folder();
    check_write_read(files_path(folder, "a.npy"));
    check_orders(files_path(folder, "b.npy"));
    check_clouds();
    check_bad();
    check_archives(files_path(folder, "a.npz"));
    check_bombs(files_path(folder, "b.npz"));
    CHECK(rmdir(folder) == 0);
    return check_end();
}
