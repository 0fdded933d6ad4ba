/* Offsets, dropped points and fields; then every writer, read back. */
#include "runtime/io/cloud.h"
#include "runtime/io/laszip_library.h"
#include "tests/io/files.h"

#include <inttypes.h>

static void check_offset_rule(void)
{
    static const struct {
        double points[6];
        double offset[3];
    } cases[] = {
        {{-999.999, 0, 0, 999.999, 5, 7}, {0, 0, 0}},
        {{1000, 0, 0, 1, 5, 7}, {0, 0, 0}}, /* 1 rounds down to 0, and so do 0 and 0 */
        {{1250, 12, -3, 1399, 250, -450}, {1200, 0, -500}},
        {{-1000, -1, 199, -1001, -99, 100}, {-1100, -100, 100}},
        {{500123.25, 5800456.5, 110.75, 500124.25, 5800457.5, 250}, {500100, 5800400, 100}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pnet_cloud c = {.rows = 0};
        CHECK(pnet_cloud_place(&c, 2, cases[i].points, NULL) == PNET_OK);
        CHECK(c.rows == 2 && c.file_rows == 2 && !c.file_row);
        for (int k = 0; k < 6; k++) {
            CHECKF(c.offset[k % 3] == cases[i].offset[k % 3], "case %zu: %g", i, c.offset[k % 3]);
            CHECK(c.xyz[k] == (float)(cases[i].points[k] - c.offset[k % 3]));
        }
        pnet_cloud_free(&c);
    }
}

static void check_dropping(void)
{
    const double inf = INFINITY;
    const double points[] = {
        1, 2, 3, NAN, 0, 0, 4, 5, 6, 0, inf, 0, 0, 0, -inf, 7, 8, 9, 1e300, 0, 0};
    const int32_t label[] = {10, 11, 12, 13, 14, 15, 16};
    struct pnet_cloud c = {.rows = 7};
    struct pnet_field *f = pnet_cloud_add(&c, "label", PNET_I32);
    CHECK(f != NULL);
    memcpy(f->data, label, sizeof label);
    CHECK(pnet_cloud_place(&c, 7, points, NULL) == PNET_OK);
    static const int64_t kept[] = {0, 2, 5};
    CHECK(c.rows == 3 && c.file_rows == 7 && c.offset[0] == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(c.file_row[i] == kept[i]);
        CHECK(pnet_field_get(&c.fields[0], i) == 10 + (double)kept[i]);
        for (int a = 0; a < 3; a++) CHECK(c.xyz[3 * i + a] == (float)points[3 * kept[i] + a]);
    }
    pnet_cloud_free(&c);

    CHECK(pnet_cloud_place(&c, 1, points + 3, NULL) == PNET_OK);
    CHECK(c.rows == 0 && c.file_rows == 1 && c.offset[0] == 0 && c.file_row);
    pnet_cloud_free(&c);
    CHECK(pnet_cloud_place(&c, 0, points, NULL) == PNET_OK && c.rows == 0 && !c.file_row);
    pnet_cloud_free(&c);
}

static void check_fields(void)
{
    struct pnet_cloud c = {.rows = 4};
    CHECK(!pnet_cloud_field(&c, "a"));
    struct pnet_field *a = pnet_cloud_add(&c, "a", PNET_F64);
    CHECK(a && pnet_cloud_add(&c, "b", PNET_U8));
    a = pnet_cloud_field(&c, "a");
    ((double *)a->data)[3] = 7;
    CHECK(pnet_field_get(a, 0) == 0 && pnet_field_get(a, 3) == 7);
    CHECK(pnet_cloud_add(&c, "a", PNET_I64) == pnet_cloud_field(&c, "a") && c.field_count == 2);
    CHECK(pnet_cloud_field(&c, "a")->type == PNET_I64 && pnet_field_get(c.fields, 3) == 0);
    pnet_cloud_free(&c);
    CHECK(c.field_count == 0 && !c.fields && !c.xyz);
}

static const struct {
    const char *name;
    enum pnet_scalar type;
} kinds[] = {{"i8", PNET_I8}, {"u8", PNET_U8}, {"i16", PNET_I16}, {"u16", PNET_U16},
    {"i32", PNET_I32}, {"u32", PNET_U32}, {"i64", PNET_I64}, {"u64", PNET_U64}, {"f32", PNET_F32},
    {"f64", PNET_F64}, {"intensity", PNET_F32}, {"red", PNET_U8}, {"green", PNET_U8},
    {"blue", PNET_U8}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Fields of all types over their whole range, ends, NaN and infinities among them. */
static void fill_fields(struct pnet_cloud *c, int count, uint64_t seed)
{
    for (int k = 0; k < count; k++) {
        struct pnet_field *f = pnet_cloud_add(c, kinds[k].name, kinds[k].type);
        size_t size = pnet_scalar_size(kinds[k].type);
        for (int64_t i = 0; i < c->rows; i++) {
            uint64_t bits = random_bits(&seed);
            float single = (float)(int32_t)bits * 0x1p-16f;
            double real = (double)(int64_t)bits * 0x1p-30;
            if (i == 0) bits = 0;
            if (i == 1) bits = UINT64_MAX;
            if (i == 2) bits = (uint64_t)1 << (8 * size - 1);
            if (i == 3) single = NAN, real = NAN;
            if (i == 4) single = INFINITY, real = -INFINITY;
            if (i == 5) single = -0.0f, real = -0.0;
            if (f->type == PNET_F32) memcpy(&bits, &single, sizeof single);
            if (f->type == PNET_F64) memcpy(&bits, &real, sizeof real);
            memcpy((char *)f->data + (size_t)i * size, &bits, size);
        }
    }
}

/* Points of the given scale and type: float values, doubles far away, or integers. */
static void make_cloud(struct pnet_cloud *c, int64_t rows, enum pnet_scalar xyz_type, double centre,
    int fields, uint64_t seed)
{
    *c = (struct pnet_cloud){.rows = rows};
    fill_fields(c, fields, seed);
    double *xyz = malloc((size_t)rows * 24 + 1);
    for (int64_t i = 0; i < rows * 3; i++) {
        double v = centre + (double)(int32_t)random_bits(&seed) * 0x1p-25;
        xyz[i] = xyz_type == PNET_F64 ? v : xyz_type == PNET_F32 ? (double)(float)v : floor(v);
    }
    CHECK(pnet_cloud_place(c, rows, xyz, NULL) == PNET_OK);
    c->xyz_type = xyz_type;
    free(xyz);
}

static int same_bits(const struct pnet_field *a, const struct pnet_field *b, int64_t rows)
{
    return a->type == b->type &&
           memcmp(a->data, b->data, (size_t)rows * pnet_scalar_size(a->type)) == 0;
}

static void read_back(const char *path, const struct pnet_cloud *c, struct pnet_cloud *d)
{
    struct pnet_error e = {.message = ""};
    char warning[256];
    CHECKF(pnet_cloud_write(path, c, &e) == PNET_OK, "%s", e.message);
    CHECKF(pnet_cloud_read(path, d, warning, &e) == PNET_OK, "%s", e.message);
    CHECK_STR(warning, "");
    CHECKF(d->rows == c->rows, "%s: %" PRId64 " rows", path, d->rows);
    remove(path);
}

/* PLY and PCD keep everything. PCD gives packed colours back at the end. */
static void check_exact(const char *path, enum pnet_scalar xyz_type, double centre, int64_t rows)
{
    struct pnet_cloud c, d;
    make_cloud(&c, rows, xyz_type, centre, KINDS, (uint64_t)rows);
    read_back(path, &c, &d);
    CHECK(d.xyz_type == xyz_type && d.field_count == c.field_count);
    CHECK(memcmp(c.offset, d.offset, sizeof c.offset) == 0);
    CHECKF(memcmp(c.xyz, d.xyz, (size_t)d.rows * 12) == 0, "%s %g", path, centre);
    for (int k = 0; k < c.field_count; k++) {
        struct pnet_field *f = pnet_cloud_field(&d, c.fields[k].name);
        CHECKF(f && same_bits(&c.fields[k], f, d.rows), "%s: %s", path, c.fields[k].name);
    }
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

/* PLY has no 64-bit integers: those that fit are narrowed, with the values kept. */
static void check_ply_integers(const char *path)
{
    struct pnet_cloud c, d;
    make_cloud(&c, 3, PNET_F32, 0, 0, 1);
    const int64_t small[] = {-5, INT32_MAX, INT32_MIN}, middle[] = {-5, INT64_C(1) << 52, 3};
    const uint64_t large[] = {0, UINT32_MAX, 7};
    memcpy(pnet_cloud_add(&c, "small", PNET_I64)->data, small, sizeof small);
    memcpy(pnet_cloud_add(&c, "middle", PNET_I64)->data, middle, sizeof middle);
    memcpy(pnet_cloud_add(&c, "large", PNET_U64)->data, large, sizeof large);
    read_back(path, &c, &d);
    CHECK(pnet_cloud_field(&d, "small")->type == PNET_I32);
    CHECK(pnet_cloud_field(&d, "middle")->type == PNET_F64);
    CHECK(pnet_cloud_field(&d, "large")->type == PNET_U32);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < 3; i++)
            CHECK(pnet_field_get(&c.fields[k], i) == pnet_field_get(&d.fields[k], i));
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

static int same_value(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Text keeps values; names come from its header. */
static void check_text(const char *path, double centre, enum pnet_scalar xyz_type)
{
    struct pnet_cloud c, d;
    make_cloud(&c, 300, xyz_type, centre, 6, 5);
    read_back(path, &c, &d);
    CHECK(d.field_count == c.field_count);
    for (int64_t i = 0; i < d.rows * 3; i++)
        CHECKF(c.offset[i % 3] + (double)c.xyz[i] == d.offset[i % 3] + (double)d.xyz[i],
            "%s: %a %a", path, c.offset[i % 3] + (double)c.xyz[i],
            d.offset[i % 3] + (double)d.xyz[i]);
    for (int k = 0; k < d.field_count; k++) {
        CHECK_STR(d.fields[k].name, c.fields[k].name);
        for (int64_t i = 0; i < d.rows; i++)
            CHECK(same_value(pnet_field_get(&c.fields[k], i), pnet_field_get(&d.fields[k], i)));
    }
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

static void check_text_reals(const char *path)
{
    struct pnet_cloud c, d;
    make_cloud(&c, 300, PNET_F32, 0, 10, 6);
    read_back(path, &c, &d);
    CHECK(memcmp(c.xyz, d.xyz, (size_t)d.rows * 12) == 0);
    for (int64_t i = 0; i < d.rows; i++) {
        double single = (double)(float)pnet_field_get(&d.fields[8], i); /* read as a double */
        CHECK(same_value(pnet_field_get(&c.fields[8], i), single));
        CHECK(same_value(pnet_field_get(&c.fields[9], i), pnet_field_get(&d.fields[9], i)));
    }
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

static void check_npy(const char *path)
{
    struct pnet_cloud c, d;
    make_cloud(&c, 1000, PNET_F32, 0, 5, 7);
    read_back(path, &c, &d);
    CHECK(d.xyz_type == PNET_F64 && d.field_count == 5); /* integers of 32 bits need it */
    CHECK(memcmp(c.xyz, d.xyz, (size_t)d.rows * 12) == 0);
    for (int k = 0; k < 5; k++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", k + 3);
        CHECK_STR(d.fields[k].name, name);
        for (int64_t i = 0; i < d.rows; i++)
            CHECK(pnet_field_get(&c.fields[k], i) == pnet_field_get(&d.fields[k], i));
    }
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

static void check_kitti(const char *path, int columns)
{
    struct pnet_cloud c, d;
    make_cloud(&c, 1000, PNET_F32, 0, KINDS, 8);
    read_back(path, &c, &d);
    CHECK(d.field_count == columns - 3);
    CHECK(memcmp(c.xyz, d.xyz, (size_t)d.rows * 12) == 0);
    CHECK(same_bits(pnet_cloud_field(&c, "intensity"), pnet_cloud_field(&d, "intensity"), d.rows));
    if (columns == 5)
        for (int64_t i = 0; i < d.rows; i++)
            CHECK(pnet_field_get(pnet_cloud_field(&d, "ring"), i) == 0);
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

static void check_empty(const char *folder)
{
    static const char *const names[] = {
        "e.ply", "e.pcd", "e.npy", "e.bin", "e.csv", "e.xyz", "e.pts"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct pnet_cloud c, d;
        make_cloud(&c, 0, PNET_F32, 0, 3, 1);
        read_back(files_path(folder, names[i]), &c, &d);
        CHECK(d.rows == 0 && d.file_rows == 0);
        pnet_cloud_free(&c);
        pnet_cloud_free(&d);
    }
}

/* Names with blanks, commas and control characters must not break the file. */
static void check_names(const char *folder)
{
    static const char *const names[] = {"n.ply", "n.pcd", "n.csv", "n.txt"};
    for (size_t i = 0; i < 4; i++) {
        struct pnet_cloud c, d;
        make_cloud(&c, 3, PNET_F32, 0, 0, 1);
        pnet_cloud_add(&c, "a b,\n\"c", PNET_U8);
        pnet_cloud_add(&c, "", PNET_U8);
        read_back(files_path(folder, names[i]), &c, &d);
        CHECK(d.field_count == 2);
        pnet_cloud_free(&c);
        pnet_cloud_free(&d);
    }
}

static void check_refusals(const char *folder)
{
    struct pnet_cloud c, d;
    struct pnet_error e;
    make_cloud(&c, 3, PNET_F32, 0, 0, 1);
    CHECK(pnet_cloud_write(files_path(folder, "a.obj"), &c, &e) == PNET_USAGE);
    CHECK(strstr(e.message, "a.obj") && strstr(e.message, ".ply"));
    pnet_laszip_choose("none.so"); /* before it is opened the first time */
    CHECK(pnet_cloud_check_output("a.laz", &e) == PNET_USAGE && pnet_cloud_written_as("a.laz"));
    CHECK(pnet_cloud_write(files_path(folder, "a.laz"), &c, &e) == PNET_USAGE);
    CHECK(strstr(e.message, "a.laz: liblaszip writes LAZ: PNET_LASZIP_LIBRARY: none.so: "));
    CHECK(pnet_cloud_read(files_path(folder, "none.ply"), &d, NULL, &e) == PNET_FAILED);
    CHECK(strstr(e.message, "none.ply") && d.rows == 0);
    CHECK(pnet_cloud_read(folder, &d, NULL, &e) == PNET_FAILED && strstr(e.message, "folder"));
    pnet_cloud_free(&c);
}

static void check_warning(const char *folder)
{
    const char *path = files_path(folder, "w.xyz");
    static const char text[] = "1 2 3\nnan 2 3\n4 5 inf\n";
    struct pnet_cloud c;
    struct pnet_error e;
    char warning[256], expected[1200];
    write_file(path, text, sizeof text - 1);
    CHECK(pnet_cloud_read(path, &c, warning, &e) == PNET_OK && c.rows == 1 && c.file_rows == 3);
    snprintf(
        expected, sizeof expected, "%s: dropped 2 of 3 points: not finite, or beyond 1e18 m", path);
    CHECK_STR(warning, expected);
    pnet_cloud_free(&c);
    remove(path);
}

/* Rows of a file, some without coordinates, in every format that has fields: values stay with their
   row, and a cloud restored has the values of all rows, those dropped too. */
static void check_dropped_fields(const char *folder)
{
    static const char *const names[] = {"d.ply", "d.pcd", "d.npy", "d.csv", "d.bin"};
    enum { ROWS = 5000 };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *path = files_path(folder, names[k]);
        struct pnet_cloud c = {.rows = ROWS, .xyz_type = PNET_F32}, d;
        struct pnet_error e = {.message = ""};
        c.xyz = calloc(ROWS, 3 * sizeof *c.xyz);
        float *intensity = pnet_cloud_add(&c, "intensity", PNET_F32)->data;
        uint8_t *colour[3];
        static const char *const colours[] = {"red", "green", "blue"};
        for (int j = 0; j < 3; j++) colour[j] = pnet_cloud_add(&c, colours[j], PNET_U8)->data;
        int64_t kept = 0;
        for (int i = 0; i < ROWS; i++) {
            bool drop = i % 7 == 3 || (i > 2000 && i < 2100) || i == ROWS - 1;
            for (int a = 0; a < 3; a++) c.xyz[3 * i + a] = (float)(i + a);
            if (drop) c.xyz[3 * i + i % 3] = i % 2 ? NAN : INFINITY;
            kept += !drop;
            intensity[i] = (float)i;
            for (int j = 0; j < 3; j++) colour[j][i] = (uint8_t)(i * (j + 1) + j);
        }
        CHECKF(pnet_cloud_write(path, &c, &e) == PNET_OK, "%s", e.message);
        CHECKF(pnet_cloud_read(path, &d, NULL, &e) == PNET_OK, "%s", e.message);
        CHECK(d.rows == kept && d.file_rows == ROWS);
        for (int restored = 0; restored < 2; restored++) {
            for (int64_t i = 0; i < d.rows; i++) {
                int64_t row = d.file_row ? d.file_row[i] : i;
                for (int j = 0; j < d.field_count; j++) {
                    bool first = j == 0; /* NPY has columns c3 ..., KITTI the intensity alone */
                    if (k == 1) first = strcmp(d.fields[j].name, "intensity") == 0;
                    int which = k == 1 ? j - (strcmp(d.fields[0].name, "intensity") == 0) : j - 1;
                    double want = first ? (double)row : colour[which][row];
                    double got = pnet_field_get(&d.fields[j], i);
                    if (got != want)
                        CHECKF(
                            0, "%s: row %" PRId64 " of %s: %g", path, row, d.fields[j].name, got);
                }
            }
            CHECK(pnet_cloud_restore(&d, &e) == PNET_OK && d.rows == ROWS && !d.file_row);
            CHECK(isnan(d.xyz[9]) && d.xyz[6] == 2);
        }
        pnet_cloud_free(&c);
        pnet_cloud_free(&d);
        remove(path);
    }
}

int main(void)
{
    const char *folder = files_folder();
    check_offset_rule();
    check_dropping();
    check_fields();
    for (int k = 0; k < 2; k++) {
        const char *path = files_path(folder, k ? "a.pcd" : "a.ply");
        check_exact(path, PNET_F32, 0, 5000);
        check_exact(path, PNET_F32, 5400000, 100); /* float32 in the file, an offset nevertheless */
        check_exact(path, PNET_F64, 0.25, 2049);
        check_exact(path, PNET_I32, -7000, 6);
        check_exact(path, PNET_I16, 1200, 2048);
        check_exact(path, PNET_U8, 100, 7);
    }
    check_ply_integers(files_path(folder, "b.ply"));
    check_text(files_path(folder, "a.csv"), 0, PNET_F32);
    check_text(files_path(folder, "a.xyz"), 5400000, PNET_F64);
    check_text(files_path(folder, "a.TXT"), -31000.5, PNET_F64);
    check_text(files_path(folder, "a.pts"), 64, PNET_F64);
    check_text_reals(files_path(folder, "r.csv"));
    check_npy(files_path(folder, "a.npy"));
    check_kitti(files_path(folder, "a.bin"), 4);
    check_kitti(files_path(folder, "a.pcd.bin"), 5);
    check_empty(folder);
    check_names(folder);
    check_warning(folder);
    check_dropped_fields(folder);
    check_refusals(folder);
    CHECK(rmdir(folder) == 0); /* nothing half-done is left */
    return check_end();
}
