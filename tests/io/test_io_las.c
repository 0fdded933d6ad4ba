/* LAS files of each point format, put together field by field. */
#include "tests/io/las.h"

#include <inttypes.h>

static void check_field(const struct pnet_cloud *c, const char *name, int row, double value)
{
    struct pnet_field *f = pnet_cloud_field(c, name);
    CHECKF(f && pnet_field_get(f, row) == value, "%s[%d]: %g, not %g", name, row,
        f ? pnet_field_get(f, row) : -1, value);
}

/* The bits of the flags in las.h, by hand. */
static void check_flags(const struct pnet_cloud *c, int row, int modern)
{
    static const struct {
        const char *name;
        int old[ROWS], modern[ROWS]; /* -1: there is none */
    } flags[] = {{"synthetic", {1, 0, 0}, {1, 0, 0}}, {"key_point", {0, 1, 0}, {0, 1, 0}},
        {"withheld", {0, 0, 1}, {0, 0, 1}}, {"overlap", {-1, -1, -1}, {1, 0, 1}},
        {"scanner_channel", {-1, -1, -1}, {1, 2, 3}}, {"scan_direction_flag", {1, 1, 0}, {0, 0, 1}},
        {"edge_of_flight_line", {1, 0, 1}, {0, 1, 0}}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int want = modern ? flags[i].modern[row] : flags[i].old[row];
        if (want < 0)
            CHECKF(!pnet_cloud_field(c, flags[i].name), "%s", flags[i].name);
        else
            check_field(c, flags[i].name, row, want);
    }
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
        check_flags(&c, row, modern);
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
    make(&l, 4, 7, NULL, 0, 0);
    l.size--;
    struct pnet_error e;
    CHECK(read_las(&l, &c, &e) == PNET_BAD_DATA && strstr(e.message, "after 2 points"));
}

/* A writer that was interrupted leaves a header of 0 points before its records. */
static void check_no_points(const char *path)
{
    static struct las l;
    struct pnet_cloud c;
    struct pnet_error e;
    char warning[256];
    for (int minor = 0; minor <= 4; minor++) {
        make(&l, minor, 1, NULL, 0, 0);
        set_number(&l, 107, 0, 4);
        if (minor == 4) set_number(&l, 247, 0, 8);
        CHECKF(read_las(&l, &c, &e) == PNET_BAD_DATA, "1.%d", minor);
        CHECKF(strstr(e.message, "says 0 points, but 3 records follow"), "%s", e.message);
        l.size -= ROWS * 28; /* none follow */
        CHECKF(read_las(&l, &c, &e) == PNET_OK && c.rows == 0, "1.%d: %s", minor, e.message);
        CHECK(pnet_cloud_field(&c, "gps_time") != NULL);
        pnet_cloud_free(&c);
    }
    /* What follows are extended records, or waveforms. */
    make(&l, 4, 7, NULL, 0, 0);
    set_number(&l, 247, 0, 8);
    set_number(&l, 235, 375, 8);
    set_number(&l, 243, 1, 4);
    CHECKF(read_las(&l, &c, &e) == PNET_OK && c.rows == 0, "%s", e.message);
    pnet_cloud_free(&c);
    set_number(&l, 243, 0, 4);
    CHECK(read_las(&l, &c, &e) == PNET_BAD_DATA);
    set_number(&l, 227, 375, 8);
    CHECKF(read_las(&l, &c, &e) == PNET_OK && c.rows == 0, "%s", e.message);
    pnet_cloud_free(&c);
    /* Fewer points than records. */
    make(&l, 2, 1, NULL, 0, 0);
    set_number(&l, 107, 2, 4);
    write_file(path, l.data, l.size);
    CHECKF(pnet_cloud_read(path, &c, warning, &e) == PNET_OK && c.rows == 2, "%s", e.message);
    CHECKF(strstr(warning, "counts 2 points, 1 more records follow"), "%s", warning);
    pnet_cloud_free(&c);
    set_number(&l, 107, 3, 4);
    write_file(path, l.data, l.size);
    CHECK(pnet_cloud_read(path, &c, warning, &e) == PNET_OK && c.rows == 3 && !*warning);
    pnet_cloud_free(&c);
    remove(path);
}

int main(void)
{
    const char *folder = files_folder();
    check_no_points(files_path(folder, "a.las"));
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
        "the points are compressed (LAZ), but no record \"laszip encoded\" says how");
    check_bad(104, 11, 1, "a.las: byte 104: ", "found 11");
    check_bad(105, 35, 2, "a.las: byte 105: ", "36 bytes");
    check_bad(247, UINT64_MAX, 8, "a.las: byte ", "after 3 points");
    check_bad(247, 4, 8, "a.las: byte ", "says 4");
    return check_end();
}
