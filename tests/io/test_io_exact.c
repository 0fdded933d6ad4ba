/* Coordinates far from zero: outputs have the doubles of the input in every format, points far from all others cost these
   nothing and are named, and what float32 takes away is told. Expected values are the doubles that the test wrote. */
#include "runtime/io/cloud.h"
#include "tests/io/files.h"

#include <inttypes.h>

enum { POINTS = 2000 };

/* Points of a national grid, 300 m x 300 m x 20 m, in double. */
static void grid_points(double *xyz, uint64_t seed)
{
    static const double low[3] = {154000.1, 463000.2, 3.3}, size[3] = {300, 300, 20};
    for (int i = 0; i < 3 * POINTS; i++)
        xyz[i] = low[i % 3] + size[i % 3] * (double)(random_bits(&seed) >> 11) * 0x1p-53;
}

static struct pnet_cloud place(const double *xyz, int64_t rows)
{
    struct pnet_cloud c = {.xyz_type = PNET_F64};
    CHECK(pnet_cloud_place(&c, rows, xyz, NULL) == PNET_OK);
    return c;
}

static void check_same_doubles(const struct pnet_cloud *c, const double *xyz, const char *what)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < 3 * c->rows; i++)
        wrong += pnet_cloud_at(c, i / 3, (int)(i % 3)) != xyz[i];
    CHECKF(wrong == 0, "%s: %" PRId64 " coordinates differ", what, wrong);
}

/* Each format is read back and compared with the doubles that were placed. */
static void check_formats(const char *folder)
{
    static const char *const names[] = {
        "a.ply", "a.pcd", "a.npy", "a.xyz", "a.txt", "a.csv", "a.pts"};
    double *xyz = malloc(POINTS * 3 * sizeof *xyz);
    struct pnet_error e = {.message = ""};
    grid_points(xyz, 1);
    for (int stray = 0; stray < 2; stray++) {
        if (stray) memset(xyz + 3 * 77, 0, 3 * sizeof *xyz);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const char *path = files_path(folder, names[k]);
            struct pnet_cloud c = place(xyz, POINTS), d;
            CHECKF(pnet_cloud_write(path, &c, &e) == PNET_OK, "%s", e.message);
            CHECKF(pnet_cloud_read(path, &d, NULL, &e) == PNET_OK, "%s", e.message);
            CHECK(d.rows == POINTS && d.xyz_type == PNET_F64);
            check_same_doubles(&d, xyz, path);
            pnet_cloud_free(&c);
            pnet_cloud_free(&d);
            remove(path);
        }
    }
    struct pnet_cloud c = place(xyz, POINTS);
    const char *path = files_path(folder, "a.bin");
    CHECK(pnet_cloud_write(path, &c, &e) == PNET_USAGE); /* float32 is off by up to 2^-6 m here */
    CHECKF(strstr(e.message, "off by up to 0.016 m"), "%s", e.message);
    CHECK(access(path, F_OK) != 0);
    pnet_cloud_free(&c);
    free(xyz);
}

/* float32 in the file: written as float32 while the values fit, as doubles once they were moved. */
static void check_single(const char *folder)
{
    double xyz[6] = {5000000.5, 400000.25, 7, 5000100.5, 400000.125, 9};
    static const double turn[16] = {0, -1, 0, 0.001, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    static const double target[3] = {5000000, 400000, 0};
    struct pnet_error e = {.message = ""};
    for (int moved = 0; moved < 2; moved++) {
        const char *path = files_path(folder, "s.npy");
        struct pnet_cloud c = place(xyz, 2), d;
        c.xyz_type = PNET_F32;
        if (moved) CHECK(pnet_cloud_transform(&c, turn, target, &e) == PNET_OK);
        CHECKF(pnet_cloud_write(path, &c, &e) == PNET_OK, "%s", e.message);
        CHECKF(pnet_cloud_read(path, &d, NULL, &e) == PNET_OK, "%s", e.message);
        CHECK(d.xyz_type == (moved ? PNET_F64 : PNET_F32));
        if (!moved) check_same_doubles(&d, xyz, "float32");
        for (int i = 0; i < 2 && moved; i++) { /* x = -(y - 400000) + 0.001, y = x - 5000000 */
            CHECK(fabs(pnet_cloud_at(&d, i, 0) - (5000000.001 - (xyz[3 * i + 1] - 400000))) < 2e-9);
            CHECK(fabs(pnet_cloud_at(&d, i, 1) - (400000 + (xyz[3 * i] - 5000000))) < 2e-9);
            CHECK(pnet_cloud_at(&d, i, 2) == xyz[3 * i + 2]);
        }
        pnet_cloud_free(&c);
        pnet_cloud_free(&d);
        remove(path);
    }
}

/* Strays change neither the offset nor the coordinates of the other points. */
static void check_strays(void)
{
    static const double far[][3] = {
        {0, 0, 0}, {-999, 5e6, 12}, {154100, 463100, -9999}, {1e9, 1e9, 1e9}, {154100, 9e5, 10}};
    enum { FAR = sizeof far / sizeof *far };
    double *xyz = malloc(POINTS * 3 * sizeof *xyz);
    grid_points(xyz, 2);
    struct pnet_cloud whole = place(xyz, POINTS);
    CHECK(whole.offset[0] == 154000 && whole.offset[1] == 463000 && whole.offset[2] == 0);
    CHECK(whole.strays.count == 0);
    for (int k = 0; k <= FAR; k++) {
        int first = k < FAR ? 40 + k : 0, count = k < FAR ? 1 : FAR; /* each alone, then all */
        grid_points(xyz, 2);
        for (int i = 0; i < count; i++)
            memcpy(xyz + 3 * (first + 9 * i), far[k < FAR ? k : i], 3 * sizeof *xyz);
        struct pnet_cloud c = place(xyz, POINTS);
        CHECKF(c.strays.count == count && c.strays.row == first, "%d: %" PRId64 " strays", k,
            c.strays.count);
        CHECK(memcmp(c.offset, whole.offset, sizeof c.offset) == 0);
        for (int64_t i = 0; i < POINTS; i++)
            if (xyz[3 * i] == pnet_cloud_at(&whole, i, 0))
                CHECK(memcmp(c.xyz + 3 * i, whole.xyz + 3 * i, 3 * sizeof *c.xyz) == 0);
        if (k == 2) CHECK(fabs(c.strays.distance - (9999 + 3.3)) < 0.1);
        check_same_doubles(&c, xyz, "strays");
        pnet_cloud_free(&c);
    }
    pnet_cloud_free(&whole);

    /* Two towns, a road, a tile of 5 km: no gap is ten times as wide as what lies on a side of it. */
    grid_points(xyz, 2);
    for (int i = 0; i < POINTS; i++) xyz[3 * i] = i % 2 ? 200000 + i / 3 : 204000 - i / 3;
    struct pnet_cloud c = place(xyz, POINTS);
    CHECK(c.strays.count == 0 && c.offset[0] == 200000);
    pnet_cloud_free(&c);
    for (int i = 0; i < POINTS; i++) xyz[3 * i] = 200000 + 50.0 * i;
    c = place(xyz, POINTS);
    CHECK(c.strays.count == 0 && c.offset[0] == 200000);
    pnet_cloud_free(&c);
    free(xyz);
}

/* The warning names file and row, counts further ones, and gives the loss where a cloud is too large for float32. */
static void check_warnings(const char *folder)
{
    static const struct {
        const char *text, *warning;
    } cases[] = {
        {"154000 463000 1\n154001 463000 1\n0 0 0\n154001 463001 1\n",
            "row 2 lies 488 km away from the other points"},
        {"0 0 0\n154000 463000 1\nnan 0 0\n154001 463000 1\n0 0 1\n154001 463001 1\n154001 463002 "
         "1\n",
            "dropped 1 of 7 points: not finite, or beyond 1e18 m; row 0 (488 km) and 1 more lie "
            "far away from the "
            "other points"},
        {"0 0 0\n20000 0 0\n40000.0015 0 0\n60000 0 0\n",
            "models read its coordinates less (0, 0, 0) in float32, off by up to 0.0015 m"},
        {"0 0 0\n5000.0002 0 0\n", ""},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = files_path(folder, "w.xyz");
        struct pnet_cloud c;
        struct pnet_error e = {.message = ""};
        char warning[256], expected[1400] = "";
        write_file(path, cases[k].text, strlen(cases[k].text));
        CHECKF(pnet_cloud_read(path, &c, warning, &e) == PNET_OK, "%s", e.message);
        if (*cases[k].warning)
            snprintf(expected, sizeof expected, "%s: %s", path, cases[k].warning);
        CHECK_STR(warning, expected);
        pnet_cloud_free(&c);
        remove(path);
    }
}

/* Another offset: the difference is taken in double, and again from the doubles when the offset changes once more. */
static void check_moves(void)
{
    static const double far[3] = {-40000.5, 1e6, 0}, near[3] = {154100, 463100, -100};
    double *xyz = malloc(POINTS * 3 * sizeof *xyz);
    struct pnet_error e;
    grid_points(xyz, 3);
    struct pnet_cloud c = place(xyz, POINTS);
    CHECK(pnet_cloud_loss(&c) < 2e-5);
    CHECK(pnet_cloud_move_offset(&c, far, &e) == PNET_OK && pnet_cloud_loss(&c) > 1e-3);
    check_same_doubles(&c, xyz, "far offset");
    CHECK(pnet_cloud_move_offset(&c, near, &e) == PNET_OK);
    for (int i = 0; i < 3 * POINTS; i++) CHECK(c.xyz[i] == (float)(xyz[i] - near[i % 3]));
    check_same_doubles(&c, xyz, "near offset");
    pnet_cloud_free(&c);

    /* Rows without coordinates keep their places. */
    xyz[3 * 5 + 1] = NAN;
    c = place(xyz, POINTS);
    CHECK(c.rows == POINTS - 1 && pnet_cloud_restore(&c, &e) == PNET_OK && c.rows == POINTS);
    for (int64_t i = 0; i < POINTS; i++)
        CHECK(i == 5 ? isnan(pnet_cloud_at(&c, i, 0)) : pnet_cloud_at(&c, i, 0) == xyz[3 * i]);
    pnet_cloud_free(&c);
    free(xyz);
}

int main(void)
{
    const char *folder = files_folder();
    check_formats(folder);
    check_single(folder);
    check_strays();
    check_warnings(folder);
    check_moves();
    CHECK(rmdir(folder) == 0);
    return check_end();
}
