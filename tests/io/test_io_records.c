/* Bare records: a file does not say how many numbers it has a point, so names of columns do, and what
   looks like another number gets a warning. */
#include "runtime/io/cloud.h"
#include "tests/io/files.h"

#include <inttypes.h>

enum { ROWS = 4 * 3 * 5 * 6 * 7 * 8 / 4, WIDEST = 8 };

/* A scanner that turns: rings over a floor and walls, then an intensity and more columns. */
static float number(int64_t row, int column, int shuffled)
{
    int64_t i = shuffled ? (row * 7919) % ROWS : row; /* 7919 is prime to the rows */
    double turn = (double)(i % 420) / 420 * 2 * 3.14159265358979, ring = (double)(i / 420);
    double range = 5 + 3 * sin(3 * turn) + ring;
    switch (column) {
    case 0: return (float)(range * cos(turn));
    case 1: return (float)(range * sin(turn));
    case 2: return (float)(-1.7 + 0.05 * ring);
    case 3: return (float)(0.3 + 0.2 * sin(20 * turn));
    default: return (float)(column * 40 + (double)(i % 16));
    }
}

static void put(const char *path, int width, int shuffled)
{
    float *v = malloc(sizeof *v * ROWS * (size_t)width);
    for (int64_t i = 0; i < ROWS; i++)
        for (int k = 0; k < width; k++) v[i * width + k] = number(i, k, shuffled);
    write_file(path, v, sizeof *v * ROWS * (size_t)width);
    free(v);
}

static char *names[] = {"x", "y", "z", "a", "b", "c", "d", "e"};

/* Reads a file with the first `width` names. */
static enum pnet_status read_named(
    const char *path, int width, struct pnet_cloud *c, char warning[256], struct pnet_error *e)
{
    const struct pnet_cloud_hints hints = {.columns = names, .column_count = width};
    return pnet_cloud_read_as(path, &hints, c, warning, e);
}

static void check_values(const struct pnet_cloud *c, int width, int shuffled)
{
    CHECKF(c->rows == ROWS && c->field_count == width - 3, "%" PRId64 " rows", c->rows);
    if (c->rows != ROWS || c->field_count != width - 3) return;
    for (int64_t i = 0; i < ROWS; i += 131) {
        for (int a = 0; a < 3; a++) CHECK(c->xyz[3 * i + a] == number(i, a, shuffled));
        for (int k = 3; k < width; k++)
            CHECK(((float *)c->fields[k - 3].data)[i] == number(i, k, shuffled));
    }
    for (int k = 3; k < width; k++) CHECK_STR(c->fields[k - 3].name, names[k]);
}

/* With names every width is read as it is; without them what is not the usual one gets a warning. */
static void check_width(const char *path, int usual, int width, int shuffled)
{
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    char warning[256], words[64];
    put(path, width, shuffled);
    CHECKF(read_named(path, width, &c, warning, &e) == PNET_OK, "%s", e.message);
    CHECK_STR(warning, "");
    check_values(&c, width, shuffled);
    pnet_cloud_free(&c);
    CHECK(pnet_cloud_read(path, &c, warning, &e) == PNET_OK); /* the rows divide by all widths */
    if (width == usual) {
        CHECK_STR(warning, "");
        CHECK(c.rows == ROWS);
    } else if (!shuffled) {
        snprintf(words, sizeof words, "looks like %d numbers a point, not %d", width, usual);
        CHECKF(strstr(warning, words), "width %d as %d: \"%s\"", width, usual, warning);
    }
    pnet_cloud_free(&c);
    remove(path);
}

/* Names of another width, as weights give them for a file of other records, get a warning that says both widths. */
static void check_wrong_names(const char *path)
{
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    char warning[256], words[64];
    for (int width = 3; width <= 6; width++) {
        put(path, width, 0);
        for (int named = 3; named <= WIDEST; named++) {
            /* Records of twice the width look like two points: the same numbers repeat. */
            if (named % width == 0) continue;
            CHECKF(read_named(path, named, &c, warning, &e) == PNET_OK, "%s", e.message);
            snprintf(words, sizeof words, "looks like %d numbers a point, but %d columns are named",
                width, named);
            CHECKF(strstr(warning, words), "%d read as %d: \"%s\"", width, named, warning);
            pnet_cloud_free(&c);
        }
        remove(path);
    }
}

/* Records of normals on a sphere repeat within themselves; times as float32 are beyond 1e8: neither is doubtful with names. */
static void check_right_names(const char *path)
{
    enum { POINTS = 2000 };
    static float normals[POINTS][6], times[POINTS][5];
    struct pnet_cloud c;
    char warning[256];
    for (int i = 0; i < POINTS; i++) {
        double turn = i * 2.399963, z = 1 - 2.0 * i / POINTS, r = sqrt(1 - z * z);
        const double p[3] = {r * cos(turn), r * sin(turn), z};
        for (int a = 0; a < 3; a++) normals[i][a] = normals[i][3 + a] = (float)p[a];
        for (int a = 0; a < 3; a++) times[i][a] = (float)(20 * p[a]);
        times[i][3] = .5F;
        times[i][4] = 1.7e9F;
    }
    write_file(path, normals, sizeof normals);
    CHECK(read_named(path, 6, &c, warning, NULL) == PNET_OK && c.rows == POINTS);
    CHECK_STR(warning, "");
    pnet_cloud_free(&c);
    write_file(path, times, sizeof times);
    CHECK(read_named(path, 5, &c, warning, NULL) == PNET_OK && c.rows == POINTS);
    CHECK_STR(warning, "");
    pnet_cloud_free(&c);
    remove(path);
}

/* A size that the width does not divide is refused, with and without names. */
static void check_sizes(const char *path)
{
    struct pnet_cloud c;
    struct pnet_error e;
    static const float v[10] = {1, 2, 3};
    write_file(path, v, sizeof v);
    CHECK(pnet_cloud_read(path, &c, NULL, &e) == PNET_BAD_DATA && strstr(e.message, "16 bytes"));
    CHECK(read_named(path, 3, &c, NULL, &e) == PNET_BAD_DATA);
    CHECK(strstr(e.message, "byte 36:") && strstr(e.message, "12 bytes"));
    CHECK(strstr(e.message, "--columns names those of this file"));
    CHECK(read_named(path, 5, &c, NULL, &e) == PNET_OK && c.rows == 2);
    pnet_cloud_free(&c);
    remove(path);
}

/* Integers and doubles are no float32. */
static void check_types(const char *path)
{
    static double real[400];
    static int32_t whole[400];
    struct pnet_cloud c;
    char warning[256];
    for (int i = 0; i < 400; i++) {
        real[i] = sin(i) * 40;
        whole[i] = i * 3;
    }
    for (int k = 0; k < 2; k++) {
        write_file(path, k ? (void *)whole : real, k ? sizeof whole : sizeof real);
        CHECK(pnet_cloud_read(path, &c, warning, NULL) == PNET_OK);
        CHECKF(strstr(warning, "likely float32") || strstr(warning, "looks like"), "%s", warning);
        pnet_cloud_free(&c);
    }
    remove(path);
}

static void check_names(void)
{
    static const char *const bad[] = {
        "", "x", "x,y", "x,z,y", "x,y,z,", "x,y,z,,a", "y,x,z", ",,,"};
    char **columns;
    int count;
    struct pnet_error e;
    CHECK(pnet_cloud_parse_columns("x, y,z,intensity , ring", &columns, &count, &e) == PNET_OK);
    CHECK(count == 5);
    CHECK_STR(columns[1], "y");
    CHECK_STR(columns[3], "intensity");
    CHECK_STR(columns[4], "ring");
    pnet_cloud_free_columns(columns, count);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECKF(pnet_cloud_parse_columns(bad[i], &columns, &count, &e) == PNET_USAGE, "%s", bad[i]);
}

int main(void)
{
    const char *folder = files_folder();
    for (int shuffled = 0; shuffled < 2; shuffled++)
        for (int width = 3; width <= WIDEST; width++) {
            check_width(files_path(folder, "a.bin"), 4, width, shuffled);
            if (width != 5 || !shuffled)
                check_width(files_path(folder, "a.pcd.bin"), 5, width, shuffled);
        }
    check_wrong_names(files_path(folder, "d.bin"));
    check_right_names(files_path(folder, "e.bin"));
    check_sizes(files_path(folder, "b.bin"));
    check_types(files_path(folder, "c.bin"));
    check_names();
    CHECK(rmdir(folder) == 0);
    return check_end();
}
