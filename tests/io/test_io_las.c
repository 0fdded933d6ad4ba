/* LAS files put together field by field from the specification's tables, one of each point format.
 */
#include "runtime/io/format.h"
#include "tests/io/files.h"

#include <inttypes.h>

struct las {
    uint8_t data[1 << 14];
    size_t size;
};

static void set(struct las *l, size_t at, const void *value, size_t size)
{
    memcpy(l->data + at, value, size);
}

static void set_number(struct las *l, size_t at, uint64_t v, size_t bytes)
{
    set(l, at, &v, bytes);
}

static void set_double(struct las *l, size_t at, double v)
{
    set(l, at, &v, 8);
}

static const size_t sizes[] = {20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67};
enum { ROWS = 3 };

/* What the points hold: functions of format and row, different in every field. */
static int32_t stored(int row, int axis)
{
    return (row + 1) * 1000 * (axis == 1 ? -1 : 1) + axis;
}
static double gps_time(int row)
{
    return 1e6 + row + 0.125;
}

static void put_point(struct las *l, size_t at, int format, int row)
{
    int modern = format >= 6;
    uint64_t r = (uint64_t)row;
    for (int a = 0; a < 3; a++) set_number(l, at + 4 * (size_t)a, (uint32_t)stored(row, a), 4);
    set_number(l, at + 12, 60000 + r, 2);
    if (modern) {
        set_number(l, at + 14, (r + 9) | (r + 12) << 4, 1);
        set_number(l, at + 15, 0xff, 1);
        set_number(l, at + 16, 200 + r, 1);
        set_number(l, at + 17, 50 + r, 1);
        set_number(l, at + 18, (uint16_t)(int16_t)(-5000 * row), 2);
        set_number(l, at + 20, 700 + r, 2);
    } else {
        set_number(l, at + 14, (r + 1) | (r + 3) << 3 | 0xc0, 1);
        set_number(l, at + 15, (20 + r) | 0xe0, 1);
        set_number(l, at + 16, (uint8_t)(int8_t)(-30 * row), 1);
        set_number(l, at + 17, 50 + r, 1);
        set_number(l, at + 18, 700 + r, 2);
    }
    int timed = format == 1 || format >= 3;
    size_t next = modern ? 22 : 20;
    if (timed) set_double(l, at + next, gps_time(row));
    if (timed) next += 8;
    int coloured =
        format == 2 || format == 3 || format == 5 || format == 7 || format == 8 || format == 10;
    for (size_t k = 0; k < 3 && coloured; k++)
        set_number(l, at + next + 2 * k, 40000 + 10 * k + r, 2);
    next += coloured ? 6 : 0;
    if (format == 8 || format == 10) set_number(l, at + next, 30000 + r, 2);
}

/* A header of the version, `vlr` bytes of records, points of the format with `extra` bytes behind
 * each. */
static void make(
    struct las *l, int minor, int format, const void *vlr, size_t vlr_size, size_t extra)
{
    size_t header = minor >= 4 ? 375 : minor == 3 ? 235 : 227, record = sizes[format] + extra;
    memset(l, 0, sizeof *l);
    set(l, 0, "LASF", 4);
    set_number(l, 24, 1 | (uint64_t)minor << 8, 2);
    set_number(l, 94, header, 2);
    set_number(l, 96, header + vlr_size, 4);
    set_number(l, 100, vlr_size > 0, 4);
    set_number(l, 104, (uint64_t)format, 1);
    set_number(l, 105, record, 2);
    set_number(l, minor >= 4 ? 247 : 107, ROWS, 4);
    static const double scale[] = {0.001, 0.01, 0.5}, shift[] = {500000, -20, 0.25};
    for (size_t a = 0; a < 3; a++) {
        set_double(l, 131 + 8 * a, scale[a]);
        set_double(l, 155 + 8 * a, shift[a]);
    }
    if (vlr_size) set(l, header, vlr, vlr_size);
    for (int row = 0; row < ROWS; row++)
        put_point(l, header + vlr_size + (size_t)row * record, format, row);
    l->size = header + vlr_size + ROWS * record;
}

static enum pnet_status read_las(const struct las *l, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_bytes b = bytes_of(l->data, l->size);
    *c = (struct pnet_cloud){.rows = 0};
    return pnet_las_read(&b, "a.las", c, e);
}

static void check_field(const struct pnet_cloud *c, const char *name, int row, double value)
{
    struct pnet_field *f = pnet_cloud_field(c, name);
    CHECKF(f && pnet_field_get(f, row) == value, "%s[%d]: %g, not %g", name, row,
        f ? pnet_field_get(f, row) : -1, value);
}

static void check_format(int minor, int format)
{
    static struct las l;
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    make(&l, minor, format, NULL, 0, 0);
    CHECKF(read_las(&l, &c, &e) == PNET_OK, "1.%d format %d: %s", minor, format, e.message);
    CHECK(c.rows == ROWS && c.xyz_type == PNET_F64);
    int modern = format >= 6, coloured = format == 2 || format == 3 || format == 5 || format == 7 ||
                                         format == 8 || format == 10;
    for (int row = 0; row < ROWS && c.rows == ROWS; row++) {
        static const double scale[] = {0.001, 0.01, 0.5}, shift[] = {500000, -20, 0.25};
        for (int a = 0; a < 3; a++) {
            double want = stored(row, a) * scale[a] + shift[a];
            CHECK(fabs(c.offset[a] + (double)c.xyz[3 * row + a] - want) < 1e-4);
        }
        check_field(&c, "intensity", row, 60000 + row);
        check_field(&c, "return_number", row, modern ? row + 9 : row + 1);
        check_field(&c, "number_of_returns", row, modern ? row + 12 : row + 3);
        check_field(&c, "classification", row, modern ? 200 + row : 20 + row);
        check_field(&c, "scan_angle", row, modern ? -5000 * row * 0.006 : -30 * row);
        check_field(&c, "user_data", row, 50 + row);
        check_field(&c, "point_source_id", row, 700 + row);
        if (format == 1 || format >= 3)
            check_field(&c, "gps_time", row, gps_time(row));
        else
            CHECK(!pnet_cloud_field(&c, "gps_time"));
        if (coloured) {
            check_field(&c, "red", row, 40000 + row);
            check_field(&c, "green", row, 40010 + row);
            check_field(&c, "blue", row, 40020 + row);
        } else {
            CHECK(!pnet_cloud_field(&c, "red"));
        }
        if (format == 8 || format == 10)
            check_field(&c, "nir", row, 30000 + row);
        else
            CHECK(!pnet_cloud_field(&c, "nir"));
    }
    pnet_cloud_free(&c);
}

/* The record that describes extra bytes, with one entry of 192 bytes each. */
static size_t describe(uint8_t *vlr, int count, const int *types, const int *options)
{
    memset(vlr, 0, 54 + 192 * (size_t)count);
    memcpy(vlr + 2, "LASF_Spec", 9);
    vlr[18] = 4;
    uint16_t length = (uint16_t)(192 * count);
    memcpy(vlr + 20, &length, 2);
    for (int i = 0; i < count; i++) {
        uint8_t *d = vlr + 54 + 192 * i;
        double scale = 0.5, shift = 3;
        d[2] = (uint8_t)types[i];
        d[3] = (uint8_t)options[i];
        snprintf((char *)d + 4, 32, "extra %d", i);
        memcpy(d + 112, &scale, 8);
        memcpy(d + 136, &shift, 8);
    }
    return 54 + 192 * (size_t)count;
}

static void check_extra_bytes(void)
{
    static const int types[] = {0, 4, 9, 23, 2}, options[] = {3, 0, 0, 0, 8 | 16};
    static struct las l;
    uint8_t vlr[54 + 192 * 5];
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    size_t n = describe(vlr, 5, types, options);
    make(&l, 2, 3, vlr, n, 3 + 2 + 4 + 6 + 1);
    for (size_t row = 0; row < ROWS; row++) {
        size_t at = 227 + n + row * (34 + 16) + 34 + 3;
        float f = 1.5f * (float)row;
        set_number(&l, at, (uint16_t)-7, 2);
        set(&l, at + 2, &f, 4);
        for (size_t k = 0; k < 3; k++) set_number(&l, at + 6 + 2 * k, 1000 * k + row, 2);
        set_number(&l, at + 12, (uint8_t)-2, 1);
    }
    CHECKF(read_las(&l, &c, &e) == PNET_OK, "%s", e.message);
    for (int row = 0; row < ROWS && c.rows == ROWS; row++) {
        check_field(&c, "extra 1", row, -7);
        check_field(&c, "extra 2", row, 1.5 * row);
        check_field(&c, "extra 3_0", row, row);
        check_field(&c, "extra 3_2", row, 2000 + row);
        check_field(&c, "extra 4", row, -2 * 0.5 + 3);
    }
    CHECK(!pnet_cloud_field(&c, "extra 0"));
    pnet_cloud_free(&c);
    make(&l, 2, 3, vlr, n, 15); /* one byte less than is described */
    CHECK(read_las(&l, &c, &e) == PNET_BAD_DATA);
    CHECK(strstr(e.message, "extra dimension beyond the 49 bytes"));
}

static void check_bad(size_t at, uint64_t value, size_t bytes, const char *place, const char *words)
{
    static struct las l;
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    make(&l, 4, 7, NULL, 0, 0);
    set_number(&l, at, value, bytes);
    CHECKF(read_las(&l, &c, &e) == PNET_BAD_DATA, "byte %zu = %" PRIu64, at, value);
    CHECKF(strncmp(e.message, place, strlen(place)) == 0 && strstr(e.message, words),
        "\"%s\", not \"%s%s\"", e.message, place, words);
    CHECK(c.rows == 0 && !c.fields);
}

static void check_counts(void)
{
    static struct las l;
    struct pnet_cloud c;
    make(&l, 4, 7, NULL, 0, 0);
    set_number(&l, 247, 0, 8); /* the old count where there is no new one */
    set_number(&l, 107, 2, 4);
    CHECK(read_las(&l, &c, NULL) == PNET_OK && c.rows == 2);
    pnet_cloud_free(&c);
    set_number(&l, 107, 0, 4);
    CHECK(read_las(&l, &c, NULL) == PNET_OK && c.rows == 0 && pnet_cloud_field(&c, "red"));
    pnet_cloud_free(&c);
    make(&l, 4, 7, NULL, 0, 0);
    l.size--;
    struct pnet_error e;
    CHECK(read_las(&l, &c, &e) == PNET_BAD_DATA && strstr(e.message, "after 2 points"));
}

/* A record with its head, `size` bytes of body. */
static size_t put_record(uint8_t *to, int id, const void *body, size_t size)
{
    memset(to, 0, 54);
    memcpy(to + 2, "LASF_Projection", 15);
    memcpy(to + 18, &id, 2);
    memcpy(to + 20, &size, 2);
    memcpy(to + 54, body, size);
    return 54 + size;
}

static void check_system(int id, const void *body, size_t size, bool degrees)
{
    static uint8_t record[1000];
    static struct las l;
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    make(&l, 2, 1, record, put_record(record, id, body, size), 0);
    CHECKF(read_las(&l, &c, &e) == PNET_OK, "%s", e.message);
    CHECKF(c.degrees == degrees, "record %d", id);
    pnet_cloud_free(&c);
}

/* Degrees are told by what the file says, else by how it is scaled and where it lies. */
static void check_degrees(const char *path)
{
    static const char geographic[] = "GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\"]]",
                      projected[] = "PROJCS[\"UTM\",GEOGCS[\"WGS 84\"]]",
                      newer[] = "GEOGCRS[\"WGS 84\"]";
    static const uint16_t keys[2][12] = {
        {1, 1, 0, 2, 1025, 0, 1, 1, 1024, 0, 1, 2}, {1, 1, 0, 2, 1025, 0, 1, 2, 1024, 0, 1, 1}};
    check_system(2112, geographic, sizeof geographic, true);
    check_system(2112, newer, sizeof newer, true);
    check_system(2112, projected, sizeof projected, false);
    check_system(34735, keys[0], sizeof keys[0], true);
    check_system(34735, keys[1], sizeof keys[1], false);

    static struct las l;
    struct pnet_cloud c;
    char warning[256];
    for (int k = 0; k < 4;
         k++) { /* 0: degrees, 1: coarse, 2: beyond the globe, 3: said to be projected */
        static uint8_t record[200];
        make(&l, 2, 1, record, k == 3 ? put_record(record, 34735, keys[1], sizeof keys[1]) : 0, 0);
        for (size_t a = 0; a < 2; a++) {
            set_double(&l, 131 + 8 * a, k == 1 ? 0.001 : 1e-7);
            set_double(&l, 155 + 8 * a, a ? (k == 2 ? 100 : 52) : 13);
        }
        write_file(path, l.data, l.size);
        CHECK(pnet_cloud_read(path, &c, warning, NULL) == PNET_OK);
        CHECKF(c.degrees == (k == 0), "case %d", k);
        CHECKF((strstr(warning, "degrees") != NULL) == (k == 0), "case %d: %s", k, warning);
        pnet_cloud_free(&c);
    }
    remove(path);

    /* Well-known text behind the points, as LAS 1.4 may have it. */
    make(&l, 4, 6, NULL, 0, 0);
    set_number(&l, 235, l.size, 8);
    set_number(&l, 243, 1, 4);
    size_t at = l.size;
    memcpy(l.data + at + 2, "LASF_Projection", 15);
    set_number(&l, at + 18, 2112, 2);
    set_number(&l, at + 20, sizeof geographic, 8);
    set(&l, at + 60, geographic, sizeof geographic);
    l.size += 60 + sizeof geographic;
    CHECK(read_las(&l, &c, NULL) == PNET_OK && c.degrees);
    pnet_cloud_free(&c);
    set_number(&l, at + 20, UINT64_MAX - 5, 8); /* runs out of the file: left alone */
    CHECK(read_las(&l, &c, NULL) == PNET_OK && !c.degrees);
    pnet_cloud_free(&c);
}

int main(void)
{
    const char *folder = files_folder();
    check_degrees(files_path(folder, "a.las"));
    CHECK(rmdir(folder) == 0);
    for (int format = 0; format <= 10; format++) check_format(4, format);
    for (int minor = 0; minor <= 3; minor++)
        for (int format = 0; format <= (minor < 2 ? 1 : minor == 2 ? 3 : 5); format++)
            check_format(minor, format);
    check_extra_bytes();
    check_counts();
    check_bad(0, 'X', 1, "a.las: byte 0: ", "LASF");
    check_bad(24, 2, 1, "a.las: byte 24: ", "1.0 to 1.5");
    check_bad(94, 100, 2, "a.las: byte 94: ", "header of 100 bytes");
    check_bad(94, 65535, 2, "a.las: byte 94: ", "header of 65535");
    check_bad(96, 300, 4, "a.las: byte 96: ", "points at byte 300");
    check_bad(96, UINT32_MAX, 4, "a.las: byte 96: ", "points at byte");
    check_bad(100, 1, 4, "a.las: byte 375: ", "found 0");
    check_bad(100, UINT32_MAX, 4, "a.las: byte 375: ", "variable length");
    check_bad(104, 0x87, 1, "a.las: byte 104: ",
        "compressed (LAZ), expected plain LAS: convert it first, for example with pdal translate");
    check_bad(104, 11, 1, "a.las: byte 104: ", "found 11");
    check_bad(105, 35, 2, "a.las: byte 105: ", "36 bytes");
    check_bad(247, UINT64_MAX, 8, "a.las: byte ", "after 3 points");
    check_bad(247, 4, 8, "a.las: byte ", "says 4");
    return check_end();
}
