/* HDF5 files, written by the library itself: types, layouts, groups, links, arrays of clouds; what is refused. */
#include "runtime/io/archive.h"
#include "runtime/io/format.h"
#include "tests/io/hdf5_files.h"

#include <pthread.h>
#include <stdarg.h>

static const float points[6] = {1, 2, 3, 4, 5, 6};
static const float others[6] = {.5F, .5F, .5F, .25F, .25F, .25F};
static const double values[2] = {3, 6};

/* Reads the file written last. The caller frees the cloud. */
static enum pnet_status read_last(
    const char *coordinates, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_bytes b = h5_bytes();
    const struct pnet_cloud_hints hints = {.coordinates = coordinates};
    *c = (struct pnet_cloud){.rows = 0};
    *e = (struct pnet_error){.message = ""};
    enum pnet_status status = pnet_hdf5_cloud_read_as(&b, "a.h5", &hints, c, e);
    pnet_bytes_free(&b);
    return status;
}

/* The file written last has the two points, and `array` says where they come from. The caller frees the cloud. */
static struct pnet_cloud expect_points(const char *coordinates, const char *array)
{
    struct pnet_cloud c;
    struct pnet_error e;
    CHECKF(read_last(coordinates, &c, &e) == PNET_OK, "%s: %s", array, e.message);
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
    CHECKF(f && f->type == type, "%s has type %d", name, f ? (int)f->type : -1);
    if (f)
        CHECKF(pnet_field_get(f, 0) == first && pnet_field_get(f, 1) == second, "%s: %g, %g", name,
            pnet_field_get(f, 0), pnet_field_get(f, 1));
}

/* The file written last is refused with all the words, of which a NULL follows the last. */
static void expect_refused(const char *coordinates, ...)
{
    struct pnet_cloud c;
    struct pnet_error e;
    va_list words;
    CHECK(read_last(coordinates, &c, &e) == PNET_BAD_DATA);
    CHECK(!c.rows && !c.xyz && !c.array && strncmp(e.message, "a.h5: ", 6) == 0);
    va_start(words, coordinates);
    for (const char *w = va_arg(words, const char *); w; w = va_arg(words, const char *))
        CHECKF(strstr(e.message, w), "\"%s\" without \"%s\"", e.message, w);
    va_end(words);
    pnet_cloud_free(&c);
}

/* Returns a type of 16 bits, as h5py makes it (IEEE 754: sign, 5 bits of exponent, 10 of mantissa). */
static pnet_hid half_type(const char *of)
{
    pnet_hid type = h5_good(H5(pnet_hid, H5Tcopy, (pnet_hid))(h5_id(of)), "H5Tcopy");
    h5_good(H5(int, H5Tset_fields, (pnet_hid, size_t, size_t, size_t, size_t, size_t))(
                type, 15, 10, 5, 0, 10),
        "H5Tset_fields");
    h5_good(H5(int, H5Tset_size, (pnet_hid, size_t))(type, 2), "H5Tset_size");
    h5_good(H5(int, H5Tset_ebias, (pnet_hid, size_t))(type, 15), "H5Tset_ebias");
    return type;
}

/* Each type of either byte order keeps its values, the largest too. */
static void check_types(const char *path)
{
    static const struct {
        const char *name, *memory;
        enum pnet_scalar type;
        double low, high; /* powers of two less 1 that float32 does not hold are doubles */
    } types[] = {{"STD_I8LE", "NATIVE_INT8", PNET_I8, -128, 127},
        {"STD_U8BE", "NATIVE_UINT8", PNET_U8, 0, 255},
        {"STD_I16LE", "NATIVE_INT16", PNET_I16, -32768, 32767},
        {"STD_U16BE", "NATIVE_UINT16", PNET_U16, 1, 65535},
        {"STD_I32BE", "NATIVE_INT32", PNET_I32, -0x1p31, 0x1p31 - 1},
        {"STD_U32LE", "NATIVE_UINT32", PNET_U32, 2, 0x1p32 - 1},
        {"STD_I64BE", "NATIVE_INT64", PNET_I64, -0x1p63, 0x1p52 + 1},
        {"STD_U64LE", "NATIVE_UINT64", PNET_U64, 3, 0x1p63},
        {"IEEE_F32BE", "NATIVE_FLOAT", PNET_F32, 0x1p-149, -0x1.fffffep127},
        {"IEEE_F64BE", "NATIVE_DOUBLE", PNET_F64, 0x1p-1074, 0x1.fffffffffffffp1023}};
    static const uint16_t halves[2][2] = {{0x3555, 0xfbff}, {0x5535, 0xfffb}}; /* and swapped */
    h5_begin(path);
    h5_add("xyz", "IEEE_F64BE", "NATIVE_FLOAT", 2, 3, points);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const double pair[2] = {types[i].low, types[i].high};
        h5_add(types[i].name, types[i].name, "NATIVE_DOUBLE", 2, 0, pair);
    }
    for (int k = 0; k < 2; k++) {
        pnet_hid type = half_type(k ? "H5T_IEEE_F32BE_g" : "H5T_IEEE_F32LE_g");
        h5_add_as(k ? "big" : "little", type, type, 0, 1, (const uint64_t[]){2}, halves[k]);
        h5.l->H5Tclose(type);
    }
    struct pnet_cloud c = expect_points(NULL, "xyz");
    CHECK(c.xyz_type == PNET_F64);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        expect_field(&c, types[i].name, types[i].type, types[i].low, types[i].high);
    expect_field(&c, "little", PNET_F32, 1365.0 / 4096, -65504);
    expect_field(&c, "big", PNET_F32, 1365.0 / 4096, -65504);
    CHECK(c.field_count == 12);
    pnet_cloud_free(&c);
}

/* However the numbers lie in the file. */
static void check_layouts(const char *path)
{
    static const int layouts[] = {0, H5_CHUNKED, H5_PACKED, H5_COMPACT};
    const uint64_t shape[2] = {2, 3}, lead[3] = {1, 2, 3}, many[2] = {5000, 4};
    static float filled[5000][4];
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        h5_begin(path);
        h5_add_as("Points", h5_id("H5T_IEEE_F32BE_g"), h5_id("H5T_NATIVE_FLOAT_g"), layouts[i], 2,
            shape, points);
        h5_add_as("rgb", h5_id("H5T_IEEE_F64LE_g"), h5_id("H5T_NATIVE_FLOAT_g"), layouts[i], 3,
            lead, others);
        struct pnet_cloud c = expect_points(NULL, "Points");
        expect_field(&c, "rgb_2", PNET_F64, .5, .25);
        pnet_cloud_free(&c);
    }
    for (int i = 0; i < 5000; i++)
        for (int k = 0; k < 4; k++) filled[i][k] = (float)(i % 100 * 4 + k);
    struct pnet_cloud c;
    struct pnet_error e;
    h5_begin(path);
    h5_add_as(
        "scan", h5_id("H5T_IEEE_F32LE_g"), h5_id("H5T_NATIVE_FLOAT_g"), H5_PACKED, 2, many, filled);
    CHECK(read_last(NULL, &c, &e) == PNET_OK && c.rows == 5000);
    for (int i = 0; i < c.rows; i++)
        for (int k = 0; k < 3; k++) CHECK(c.xyz[3 * i + k] == filled[i][k]);
    expect_field(&c, "c3", PNET_F32, 3, 7);
    pnet_cloud_free(&c);
    /* What was never written is 0, as the library says. */
    h5_begin(path);
    H5_FLOATS("xyz", 2, 3, NULL);
    CHECK(read_last(NULL, &c, &e) == PNET_OK && c.rows == 2 && c.xyz[0] == 0 && c.xyz[5] == 0);
    pnet_cloud_free(&c);
}

/* Arrays of groups; what holds no numbers, and links, are passed over. */
static void check_groups(const char *path)
{
    pnet_hid text = h5_good(H5(pnet_hid, H5Tcopy, (pnet_hid))(h5_id("H5T_C_S1_g")), "H5Tcopy");
    h5_good(H5(int, H5Tset_size, (pnet_hid, size_t))(text, 4), "H5Tset_size");
    const uint64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 2, 3};
    h5_begin(path);
    h5_group("a");
    h5_group("a/b");
    H5_FLOATS("a/b/cloud", 2, 3, points);
    h5_add("a/b/label", "STD_U8LE", "NATIVE_DOUBLE", 2, 1, values);
    h5_add("a/w", "STD_U8LE", "NATIVE_DOUBLE", 2, 0, values);
    h5_add_as("a/b/words", text, text, 0, 1, (const uint64_t[]){2}, "abcdefg");
    h5_add_as(
        "a/b/deep", h5_id("H5T_NATIVE_FLOAT_g"), h5_id("H5T_NATIVE_FLOAT_g"), 0, 9, nine, points);
    h5_soft_link("/a/b/cloud", "points");
    h5_link_outside("b.h5", "/points", "xyz_outside");
    h5_hard_link("/a/w", "same");
    struct pnet_cloud c = expect_points("a/b/cloud", "a/b/cloud");
    expect_field(&c, "label", PNET_U8, 3, 6);
    expect_field(&c, "a/w", PNET_U8, 3, 6);
    expect_field(&c, "same", PNET_U8, 3, 6);
    CHECK(c.field_count == 3);
    pnet_cloud_free(&c);
    h5_begin(path);
    h5_group("scan");
    for (int a = 0; a < 3; a++)
        h5_add((const char *[]){"scan/Z", "scan/X", "scan/Y"}[a], "IEEE_F64LE", "NATIVE_DOUBLE", 2,
            0, (const double[3][2]){{3, 6}, {1, 4}, {2, 5}}[a]);
    c = expect_points(NULL, "x, y, z");
    pnet_cloud_free(&c);
    h5.l->H5Tclose(text);
}

/* Records with one field of three values; members without numbers are left out. */
static void check_records(const char *path)
{
    struct record {
        char word[4];
        int16_t t;
        float xyz[3];
        int8_t good;
    } rows[2] = {{"abc", 9, {1, 2, 3}, 1}, {"de", 8, {4, 5, 6}, 0}};
    pnet_hid text = h5_good(H5(pnet_hid, H5Tcopy, (pnet_hid))(h5_id("H5T_C_S1_g")), "H5Tcopy");
    h5_good(H5(int, H5Tset_size, (pnet_hid, size_t))(text, 4), "H5Tset_size");
    pnet_hid flag = h5_good(
        H5(pnet_hid, H5Tenum_create, (pnet_hid))(h5_id("H5T_NATIVE_INT8_g")), "H5Tenum_create");
    for (int8_t v = 0; v < 2; v++)
        h5_good(H5(int, H5Tenum_insert, (pnet_hid, const char *, const void *))(
                    flag, v ? "TRUE" : "FALSE", &v),
            "H5Tenum_insert");
    pnet_hid triple = h5_array_type(h5_id("H5T_IEEE_F32LE_g"), 3);
    pnet_hid type = h5_record_type(sizeof *rows);
    h5_insert(type, "word", offsetof(struct record, word), text);
    h5_insert(type, "t", offsetof(struct record, t), h5_id("H5T_NATIVE_INT16_g"));
    h5_insert(type, "pos", offsetof(struct record, xyz), triple);
    h5_insert(type, "good", offsetof(struct record, good), flag);
    h5_begin(path);
    h5_add_as("rows", type, type, 0, 1, (const uint64_t[]){2}, rows);
    struct pnet_cloud c = expect_points(NULL, "rows");
    expect_field(&c, "t", PNET_I16, 9, 8);
    expect_field(&c, "good", PNET_I8, 1, 0);
    CHECK(c.field_count == 2);
    pnet_cloud_free(&c);
    h5.l->H5Tclose(type);
    h5.l->H5Tclose(triple);
    h5.l->H5Tclose(flag);
    h5.l->H5Tclose(text);
}

/* Numbers outside of the file, filters of plugins, more than a file may unpack to, groups without end. */
static void check_refused(const char *path)
{
    const uint64_t shape[2] = {2, 3}, huge[2] = {1 << 28, 3}, wide[2] = {1 << 12, 3};
    pnet_hid type = h5_id("H5T_NATIVE_FLOAT_g");
    h5_begin(path);
    h5_link_outside("b.h5", "/points", "points");
    H5_FLOATS("scan", 2, 3, points);
    expect_refused(NULL, "points: a link to another file", NULL);
    h5_begin(path);
    h5_soft_link("/scan", "points");
    H5_FLOATS("scan", 2, 3, points);
    expect_refused("points", "points: a soft link", NULL);
    h5_begin(path);
    h5_add_as("points", type, type, H5_OUTSIDE, 2, shape, NULL);
    expect_refused(NULL, "points: its numbers lie in another file", NULL);
    h5_begin(path);
    h5_add_as("points", type, type, H5_STRANGE, 2, shape, points);
    expect_refused(NULL, "points: packed by the filter 307", "gzip", NULL);
    h5_begin(path);
    h5_add_as("points", type, type, H5_PACKED, 2, huge, NULL);
    expect_refused(NULL, "points: more chunks than the file has bytes", NULL);
    h5_begin(path);
    h5_add_as("points", type, type, 0, 2, huge, NULL);
    expect_refused(NULL, "points: 805306368 items of 4 bytes", "without compression", NULL);
    h5_begin(path);
    h5_add_as("points", type, type, 0, 2, wide, NULL);
    H5_FLOATS("w", 1 << 12, 0, NULL);
    struct pnet_cloud c;
    struct pnet_error e;
    CHECK(read_last(NULL, &c, &e) == PNET_OK && c.rows == 1 << 12);
    pnet_cloud_free(&c);
    h5_begin(path);
    h5_group("g");
    h5_hard_link("/", "g/up");
    expect_refused(NULL, "groups within groups beyond 16", NULL);
    h5_begin(path);
    char name[16];
    for (int i = 0; i < 257; i++) {
        snprintf(name, sizeof name, "a%d", i);
        H5_FLOATS(name, 1, 0, points);
    }
    expect_refused(NULL, "more than 256 arrays", NULL);
    h5_begin(path);
    expect_refused(NULL, "found none", NULL);
    h5_begin(path);
    H5_FLOATS("points", 3, 2, points);
    expect_refused(NULL, "found the array points [3, 2]", NULL);
}

static void expect_array(const char *path, const char *name, enum pnet_scalar type, int dims,
    const int64_t *shape, double last)
{
    struct pnet_npy a;
    struct pnet_error e = {.message = ""};
    CHECKF(pnet_archive_read(path, name, &a, &e) == PNET_OK, "%s", e.message);
    CHECKF(a.type == type && a.dims == dims && a.count > 0, "%s", name);
    for (int d = 0; d < dims && d < a.dims; d++) CHECK(a.shape[d] == shape[d]);
    struct pnet_field f = {.type = a.type, .data = a.data};
    if (a.count) CHECK(pnet_field_get(&f, a.count - 1) == last);
    pnet_npy_free(&a);
}

/* Arrays of many clouds, called as in ModelNet40, and one in a group. */
static void check_arrays(const char *path)
{
    const uint64_t clouds[3] = {2, 4, 3}, faces[2] = {2, 4}, labels[2] = {2, 1};
    float data[24];
    char name[PNET_ARRAY_NAME];
    struct pnet_npy a;
    struct pnet_error e = {.message = ""};
    for (int i = 0; i < 24; i++) data[i] = (float)i;
    h5_begin(path);
    h5_add_as(
        "data", h5_id("H5T_IEEE_F32LE_g"), h5_id("H5T_NATIVE_FLOAT_g"), H5_PACKED, 3, clouds, data);
    h5_add_as("normal", h5_id("H5T_IEEE_F32LE_g"), h5_id("H5T_NATIVE_FLOAT_g"), 0, 3, clouds, data);
    h5_add_as("faceId", h5_id("H5T_STD_I32LE_g"), h5_id("H5T_NATIVE_FLOAT_g"), 0, 2, faces, data);
    h5_add_as(
        "label", h5_id("H5T_STD_U8LE_g"), h5_id("H5T_NATIVE_FLOAT_g"), 0, 2, labels, data + 5);
    h5_group("g");
    h5_add("g/label", "STD_I64BE", "NATIVE_DOUBLE", 2, 0, values);
    h5_link_outside("b.h5", "/data", "more");
    h5_end();
    CHECK(pnet_is_archive(path) && pnet_is_archive("A.HDF5") && !pnet_is_archive("a.npy"));
    CHECKF(pnet_archive_find(path, 3, name, &e) == PNET_OK, "%s", e.message);
    CHECK_STR(name, "data");
    CHECK(pnet_archive_find(path, 4, name, &e) == PNET_BAD_DATA);
    CHECKF(strstr(e.message, "label [2, 1], more (a link to another file), normal [2, 4, 3]"), "%s",
        e.message);
    expect_array(path, "data", PNET_F32, 3, (const int64_t[]){2, 4, 3}, 23);
    expect_array(path, NULL, PNET_F32, 3, (const int64_t[]){2, 4, 3}, 23);
    expect_array(path, "label", PNET_U8, 2, (const int64_t[]){2, 1}, 6);
    expect_array(path, "g/label", PNET_I64, 1, (const int64_t[]){2}, 6);
    CHECK(
        pnet_archive_read(path, "none", &a, &e) == PNET_BAD_DATA && strstr(e.message, "\"none\""));
    CHECK(pnet_archive_read(path, "g", &a, &e) == PNET_BAD_DATA && strstr(e.message, "\"g\""));
    CHECK(pnet_archive_read(path, "more", &a, &e) == PNET_BAD_DATA &&
          strstr(e.message, "more: a link to another file"));
    CHECK(!a.data && !a.count);
    remove(path);
}

enum { THREADS = 4, READS = 50 };

struct reader {
    struct pnet_bytes b;
    int number, wrong;
};

static void *read_often(void *data)
{
    struct reader *r = data;
    for (int i = 0; i < READS; i++) {
        struct pnet_cloud c = {.rows = 0};
        bool good = pnet_hdf5_cloud_read(&r->b, "a.h5", &c, NULL) == PNET_OK;
        r->wrong += !good || c.rows != 1 || c.xyz[0] != (float)r->number;
        pnet_cloud_free(&c);
    }
    return NULL;
}

/* Threads read files at the same time, each its own numbers. */
static void check_threads(const char *path)
{
    struct reader readers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        const float xyz[3] = {(float)i};
        h5_begin(path);
        H5_FLOATS("xyz", 1, 3, xyz);
        readers[i] = (struct reader){.b = h5_bytes(), .number = i};
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, read_often, &readers[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECKF(readers[i].wrong == 0, "%d of %d", readers[i].wrong, READS);
        pnet_bytes_free(&readers[i].b);
    }
}

static void expect_no_crash(uint8_t *data, size_t size)
{
    struct pnet_bytes b = bytes_of(data, size);
    struct pnet_cloud c = {.rows = 0};
    struct pnet_error e = {.message = ""};
    enum pnet_status status = pnet_hdf5_cloud_read(&b, "a.h5", &c, &e);
    CHECKF(status == PNET_OK || (!c.xyz && strncmp(e.message, "a.h5: ", 6) == 0) ||
               status == PNET_NO_MEMORY,
        "%s", e.message);
    pnet_cloud_free(&c);
}

static struct pnet_bytes write_some(const char *path, bool checked)
{
    const uint64_t shape[2] = {200, 3}, column[1] = {200};
    const pnet_hid type = h5_id("H5T_NATIVE_FLOAT_g");
    float data[600];
    for (int i = 0; i < 600; i++) data[i] = (float)i / 8;
    h5_begin_as(path, checked);
    h5_group("g");
    h5_add_as("g/points", h5_id("H5T_IEEE_F32LE_g"), type, H5_UNCHECKED, 2, shape, data);
    h5_add_as("g/w", h5_id("H5T_IEEE_F64BE_g"), type, H5_PACKED, 1, column, data);
    h5_add_as("g/label", h5_id("H5T_STD_I16BE_g"), type, 0, 1, column, data);
    return h5_bytes();
}

/* A file that was cut is refused. One with other bytes is refused, or read as it is: of its structure, which the library reads,
   checksums tell it. */
static void check_damage(const char *path)
{
    uint64_t seed = 5;
    for (int checked = 0; checked < 2; checked++) {
        struct pnet_bytes b = write_some(path, checked);
        CHECKF(b.size > 4096 && b.size < 1 << 16, "%zu bytes", b.size);
        uint8_t *copy = malloc(b.size);
        if (!copy) exit(1);
        for (size_t cut = 8; cut < b.size; cut += 64) {
            struct pnet_cloud c = {.rows = 0};
            struct pnet_bytes part = bytes_of(memcpy(copy, b.data, cut), cut);
            CHECKF(pnet_hdf5_cloud_read(&part, "a.h5", &c, NULL) == PNET_BAD_DATA, "%zu", cut);
            pnet_cloud_free(&c);
        }
        for (int i = 0; checked && i < 4000; i++) {
            memcpy(copy, b.data, b.size);
            for (int k = 0; k <= i % 3; k++)
                copy[8 + random_bits(&seed) % (b.size - 8)] = (uint8_t)random_bits(&seed);
            expect_no_crash(copy, b.size);
        }
        free(copy);
        pnet_bytes_free(&b);
    }
}

/* The library loses memory where it refuses a damaged file; AddressSanitizer is told not to count that. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

int main(void)
{
    if (!h5_find()) exit(77); /* skipped */
    const char *folder = files_folder(), *path = files_path(folder, "a.h5");
    check_types(path);
    check_layouts(path);
    check_groups(path);
    check_records(path);
    check_refused(path);
    check_arrays(path);
    check_threads(path);
    check_damage(path);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
