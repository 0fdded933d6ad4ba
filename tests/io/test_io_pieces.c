/* Clouds in pieces: put together, they are the cloud that is read as a whole, and every error is the same. */
#include "runtime/io/format.h"
#include "runtime/io/npy.h"
#include "tests/io/files.h"
#include "tests/io/laz_files.h"
#include "tests/io/las.h"
#include "tests/io/pieces.h"

#include <inttypes.h>

static const struct pnet_cloud_hints none = {.columns = NULL};
static const char *folder;
static int refused; /* files with an error, the same in both ways */

/* Compares the two ways in pieces of several sizes. Returns whether the format is read in pieces. */
static bool check_same(const char *path, const struct pnet_cloud_hints *hints)
{
    static const int64_t rows[] = {1, 7, 1000, INT64_MAX};
    bool whole = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !whole; i++) {
        const char *wrong = pieces_differ(path, hints, rows[i], &whole);
        CHECKF(!wrong, "%s in pieces of %" PRId64 ": %s", path, rows[i], wrong);
    }
    return !whole;
}

static void check_pieces(const char *path, const struct pnet_cloud_hints *hints)
{
    CHECKF(check_same(path, hints), "%s is read as a whole", path);
}

/* ---- what the project writes ---- */

enum { MANY = 20000, FEW = 300 }; /* MANY: several pages of every format */
enum shape { NEAR, GRID, STRAYS, WIDE, HOLES, NOTHING, SHAPES };

/* The coordinate that is written: near is float32, wide is beyond what float32 keeps within a millimetre. */
static double coordinate(enum shape shape, int64_t row, int axis)
{
    static const double corner[3] = {154000, 263000, -2};
    double v = (double)((row * (axis + 3) * 7919) % 10007) / 64;
    if (shape == HOLES && row % 13 == axis) return axis ? (double)NAN : (double)INFINITY;
    if (shape == NOTHING) return (double)NAN;
    if (shape == NEAR) return v;
    if (shape == STRAYS && row % 5000 == 4321) return axis == 2 ? -0.0 : 0.25 * axis;
    if (shape == WIDE) return v * 400 + 0.001 * axis + 1e6;
    return corner[axis] + v + 0.001 * axis;
}

static void fill(const struct pnet_field *f, int64_t rows, int step)
{
    for (int64_t i = 0; i < rows; i++)
        pnet_scalar_store((double)(i * step % 251), f->type,
            (uint8_t *)f->data + (size_t)i * pnet_scalar_size(f->type));
}

static void make_cloud(enum shape shape, int64_t rows, struct pnet_cloud *c)
{
    double *xyz = malloc((size_t)rows * 3 * sizeof *xyz);
    *c = (struct pnet_cloud){.rows = rows};
    if (!xyz) abort();
    for (int64_t i = 0; i < 3 * rows; i++) xyz[i] = coordinate(shape, i / 3, (int)(i % 3));
    fill(pnet_cloud_add(c, "intensity", PNET_U16), rows, 7);
    fill(pnet_cloud_add(c, "red", PNET_U8), rows, 3);
    fill(pnet_cloud_add(c, "green", PNET_U8), rows, 5);
    fill(pnet_cloud_add(c, "blue", PNET_U8), rows, 11);
    fill(pnet_cloud_add(c, "gps_time", PNET_F64), rows, 13);
    fill(pnet_cloud_add(c, "label", PNET_I32), rows, 17);
    fill(pnet_cloud_add(c, "curvature", PNET_F32), rows, 19);
    if (pnet_cloud_place(c, rows, xyz, NULL) || pnet_cloud_restore(c, NULL)) abort();
    c->xyz_type = shape == NEAR ? PNET_F32 : PNET_F64;
    free(xyz);
}

static void check_hints(const char *path)
{
    static const double origin[3] = {154100, 263000.125, 0};
    struct pnet_cloud_hints hints = {.origin = origin};
    check_pieces(path, &hints);
    hints = none;
    CHECK(pnet_unit_parse("us-ft,m", &hints.unit));
    check_pieces(path, &hints);
    hints.origin = origin;
    check_pieces(path, &hints);
    CHECK(pnet_unit_parse("file", &hints.unit));
    check_pieces(path, &hints); /* an error, where the file states none */
}

static void check_written(enum shape shape, const char *name)
{
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    const char *path = files_path(folder, name);
    make_cloud(shape, MANY, &c);
    CHECKF(pnet_cloud_write(path, &c, &e) == PNET_OK, "%s", e.message);
    pnet_cloud_free(&c);
    check_pieces(path, &none);
    make_cloud(shape, FEW, &c);
    CHECK(pnet_cloud_write(path, &c, NULL) == PNET_OK);
    pnet_cloud_free(&c);
    check_hints(path);
    remove(path);
}

static void check_all_written(void)
{
    static const char *const names[] = {"a.ply", "a.pcd", "a.npy", "a.las"};
    for (int shape = 0; shape < SHAPES; shape++)
        for (int k = 0; k < 4; k++)
            if (k < 3 || shape < HOLES) check_written((enum shape)shape, names[k]);
    check_written(NEAR, "a.bin");
    check_written(NEAR, "a.pcd.bin");
}

/* The coordinates, by themselves and not by the reader of whole files, and where pieces begin. */
static void check_values(void)
{
    struct pnet_cloud c;
    struct pnet_cloud_pieces *p;
    const char *path = files_path(folder, "values.ply");
    make_cloud(GRID, FEW, &c);
    CHECK(pnet_cloud_write(path, &c, NULL) == PNET_OK);
    pnet_cloud_free(&c);
    CHECK(pnet_cloud_pieces_open(path, &none, 7, &p, NULL, NULL) == PNET_OK);
    const struct pnet_cloud_outline *o = pnet_cloud_pieces_outline(p);
    CHECK(o->rows == FEW && o->file_rows == FEW && o->exact && o->cloud.offset[0] == 154000);
    int64_t row = 0, first;
    while (pnet_cloud_pieces_next(p, &c, &first, NULL) == PNET_OK && c.file_rows) {
        CHECK(first == row);
        for (int64_t i = 0; i < c.rows; i++, row++) {
            for (int a = 0; a < 3; a++) CHECK(pnet_cloud_at(&c, i, a) == coordinate(GRID, row, a));
            CHECK(pnet_field_get(pnet_cloud_field(&c, "label"), i) == (double)(row * 17 % 251));
        }
        pnet_cloud_free(&c);
    }
    CHECK(row == FEW);
    pnet_cloud_pieces_close(p);
    remove(path);
}

/* ---- layouts that are not written ---- */

static void put_big(FILE *f, float v)
{
    uint8_t b[4];
    memcpy(b, &v, 4);
    for (int k = 3; k >= 0; k--) fputc(b[k], f);
}

/* `lines` of comments, an element before the vertices, vertices with a list if `list`, faces behind them. */
static const char *write_ply(const char *order, int lines, bool list)
{
    const char *path = files_path(folder, "made.ply");
    FILE *f = fopen(path, "wb");
    if (!f) abort();
    fprintf(f, "ply\nformat %s 1.0\n", order);
    for (int i = 0; i < lines; i++) fprintf(f, "comment line %d, which is no end_header\n", i);
    fprintf(f, "element camera 3\nproperty double t\nproperty uchar u\nelement vertex %d\n", MANY);
    if (list) fputs("property list uchar int ids\n", f);
    fputs("property float x\nproperty float z\nproperty float y\nproperty short s\n"
          "element face 2\nproperty list uchar int vertex_indices\nend_header\n",
        f);
    for (int i = 0; i < 27; i++) fputc(i, f);
    for (int i = 0; i < MANY; i++) {
        if (list) fputc(0, f);
        for (int a = 0; a < 3; a++) put_big(f, (float)(i % (97 + a)));
        fputc(i >> 8 & 255, f);
        fputc(i & 255, f);
    }
    for (int i = 0; i < 2 * 13; i++) fputc(i % 13 ? i : 3, f);
    fclose(f);
    return path;
}

static void check_ply(void)
{
    const char *path = write_ply("binary_big_endian", 0, false);
    check_pieces(path, &none);
    struct pnet_cloud_pieces *p;
    CHECK(pnet_cloud_pieces_open(path, &none, 9, &p, NULL, NULL) == PNET_OK);
    CHECK(pnet_cloud_pieces_outline(p)->cloud.faces == 2);
    pnet_cloud_pieces_close(p);
    check_pieces(write_ply("binary_big_endian", 5000, false), &none);
    check_pieces(write_ply("binary_little_endian", 10, false), &none); /* other numbers, some NaN */
    CHECK(!check_same(write_ply("binary_big_endian", 0, true), &none));
    CHECK(!check_same(write_ply("ascii", 0, false), &none));
    remove(path);
}

static void check_pcd(void)
{
    const char *path = files_path(folder, "made.pcd");
    FILE *f = fopen(path, "wb");
    if (!f) abort();
    for (int i = 0; i < 5000; i++) fprintf(f, "# comment line %d, before DATA binary\n", i);
    fprintf(f,
        "VERSION 0.7\nFIELDS x y z _ rgb n\nSIZE 4 4 4 1 4 2\nTYPE F F F U U I\nCOUNT 1 1 1 3 1 2\n"
        "WIDTH %d\nHEIGHT 1\nPOINTS %d\nDATA binary\n",
        MANY, MANY);
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < 23; k++) fputc(k % 4 == 3 ? 0x42 : i * k & 255, f);
    fclose(f);
    check_pieces(path, &none);
    remove(path);
}

static const char *write_npy(const char *header, size_t item, int64_t items)
{
    const char *path = files_path(folder, "made.npy");
    FILE *f = fopen(path, "wb");
    uint8_t head[10] = "\x93NUMPY\x01";
    size_t length = strlen(header);
    if (!f) abort();
    head[8] = (uint8_t)(length & 255);
    head[9] = (uint8_t)(length >> 8);
    fwrite(head, 1, sizeof head, f);
    fputs(header, f);
    for (int64_t i = 0; i < items; i++)
        for (size_t k = 0; k < item; k++) fputc(k + 1 == item ? 0x40 : (int)(i * 37 >> k & 255), f);
    fclose(f);
    return path;
}

static void check_npy(void)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': True, 'shape': (30000, 5), }\n",
        "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 30000, 5), }\n",
        "{'descr': '>f4', 'fortran_order': True, 'shape': (30000, 5), }\n"};
    static const size_t items[] = {4, 2, 4};
    const char *path = NULL;
    for (int i = 0; i < 3; i++) {
        path = write_npy(headers[i], items[i], 150000);
        check_pieces(path, &none);
    }
    path = write_npy("{'descr': [('pad', '|V3'), ('xyz', '>f4', (3,)), ('id', '<i8'), ('u', "
                     "'|u1')], 'fortran_order': False, 'shape': (20000,), }\n",
        24, 20000);
    check_pieces(path, &none);
    check_pieces(
        write_npy("{'descr': '<i4', 'fortran_order': False, 'shape': (0, 4), }\n", 4, 0), &none);
    remove(path);
}

/* Rows b x y z, whose first column numbers the samples: a warning that all rows decide. */
static void check_batch(void)
{
    static float rows[9000][4];
    const char *path = files_path(folder, "batch.npy");
    const int64_t shape[] = {9000, 4};
    for (int i = 0; i < 9000; i++) {
        rows[i][0] = (float)(i / 1000);
        for (int k = 1; k < 4; k++) rows[i][k] = (float)(i * k % 61);
    }
    char warning[256];
    struct pnet_cloud_pieces *p;
    CHECK(pnet_npy_write(path, PNET_F32, 2, shape, rows, NULL) == PNET_OK);
    check_pieces(path, &none);
    CHECK(pnet_cloud_pieces_open(path, &none, 50, &p, warning, NULL) == PNET_OK);
    CHECKF(strstr(warning, "from 0 to 8, looks like the index of a batch"), "%s", warning);
    pnet_cloud_pieces_close(p);
    rows[8999][0] = 100;
    CHECK(pnet_npy_write(path, PNET_F32, 2, shape, rows, NULL) == PNET_OK);
    check_pieces(path, &none);
    remove(path);
}

/* -0 among points whose offset is 0 without the strays, and is not with them. */
static void check_zeros(void)
{
    static float rows[9000][3];
    const char *path = files_path(folder, "zeros.npy");
    const int64_t shape[] = {9000, 3};
    for (int i = 0; i < 9000; i++)
        for (int a = 0; a < 3; a++) rows[i][a] = i % 3 == a ? -0.0f : (float)(i % 101 - 50);
    rows[4321][0] = 1e6f;
    CHECK(pnet_npy_write(path, PNET_F32, 2, shape, rows, NULL) == PNET_OK);
    check_pieces(path, &none);
    remove(path);
}

static void check_columns(void)
{
    static char *names[] = {"x", "y", "z", "r", "time"};
    const struct pnet_cloud_hints hints = {.columns = names, .column_count = 5};
    struct pnet_cloud c;
    const char *path = files_path(folder, "five.bin");
    make_cloud(NEAR, 1000, &c);
    CHECK(pnet_cloud_write(path, &c, NULL) == PNET_OK); /* 16000 bytes: 800 records of five */
    pnet_cloud_free(&c);
    check_pieces(path, &hints);
    struct pnet_cloud_pieces *p;
    CHECK(pnet_cloud_pieces_open(path, &hints, 3, &p, NULL, NULL) == PNET_OK);
    const struct pnet_cloud_outline *o = pnet_cloud_pieces_outline(p);
    CHECK(o->rows == 800 && o->cloud.field_count == 2);
    CHECK_STR(o->cloud.fields[1].name, "time");
    pnet_cloud_pieces_close(p);
    remove(path);
}

/* ---- LAS and LAZ ---- */

/* A coordinate beyond what is kept drops the third point: all raw coordinates are kept then. */
static void check_las(void)
{
    static struct las l;
    const char *path = files_path(folder, "made.las");
    for (int format = 0; format <= 10; format++) {
        make(&l, format < 6 ? 2 : 4, format, NULL, 0, 3);
        write_file(path, l.data, l.size);
        check_pieces(path, &none);
        set_double(&l, 131, 4e14);
        write_file(path, l.data, l.size);
        check_pieces(path, &none);
    }
    struct pnet_cloud_pieces *p;
    CHECK(pnet_cloud_pieces_open(path, &none, 2, &p, NULL, NULL) == PNET_OK);
    CHECK(pnet_cloud_pieces_outline(p)->rows == 2 && pnet_cloud_pieces_outline(p)->file_rows == 3);
    pnet_cloud_pieces_close(p);
    remove(path);
}

/* A piece is a cloud of its own: written as LAS it is a new file, which has its rows. */
static void check_piece_is_written(void)
{
    struct pnet_cloud c, d;
    struct pnet_cloud_pieces *p;
    const char *path = files_path(folder, "from.las"), *to = files_path(folder, "to.las");
    make_cloud(GRID, FEW, &c);
    CHECK(pnet_cloud_write(path, &c, NULL) == PNET_OK);
    pnet_cloud_free(&c);
    CHECK(pnet_cloud_pieces_open(path, &none, 100, &p, NULL, NULL) == PNET_OK);
    CHECK(pnet_cloud_pieces_next(p, &c, NULL, NULL) == PNET_OK);
    pnet_cloud_free(&c);
    CHECK(pnet_cloud_pieces_next(p, &c, NULL, NULL) == PNET_OK);
    CHECK(pnet_cloud_write(to, &c, NULL) == PNET_OK);
    CHECK(pnet_cloud_read(to, &d, NULL, NULL) == PNET_OK);
    CHECK(d.rows == 100 && d.field_count == c.field_count);
    for (int64_t i = 0; i < d.rows; i++)
        for (int a = 0; a < 3; a++)
            CHECK(fabs(pnet_cloud_at(&d, i, a) - coordinate(GRID, 100 + i, a)) < 1e-4);
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
    pnet_cloud_pieces_close(p);
    remove(path);
    remove(to);
}

static size_t load_laz(const struct laz_file *l, uint8_t *to, size_t most)
{
    size_t size = strlen(l->digits) / 2;
    CHECK(size <= most);
    for (size_t i = 0; i < size && i < most; i++) {
        unsigned byte = 0;
        sscanf(l->digits + 2 * i, "%2x", &byte);
        to[i] = (uint8_t)byte;
    }
    return size;
}

/* Files of several chunks, whole, cut and changed anywhere. */
static void check_laz(void)
{
    static uint8_t data[1 << 14], copy[1 << 14];
    const char *path = files_path(folder, "made.laz");
    for (size_t i = 0; i < sizeof laz_files / sizeof *laz_files; i++) {
        size_t size = load_laz(&laz_files[i], data, sizeof data);
        write_file(path, data, size);
        check_pieces(path, &none);
        bool whole;
        for (size_t at = 0; at < size; at += 53) {
            memcpy(copy, data, size);
            copy[at] ^= 0x55;
            write_file(path, copy, size);
            const char *wrong = pieces_differ(path, &none, 60, &whole);
            CHECKF(!wrong, "%s, byte %zu changed: %s", laz_files[i].name, at, wrong);
            write_file(path, data, at + 1);
            wrong = pieces_differ(path, &none, 60, &whole);
            CHECKF(!wrong, "%s, %zu bytes: %s", laz_files[i].name, at + 1, wrong);
        }
    }
    remove(path);
}

/* Chunks beyond the first 256 KiB, and their table far behind them: a header that counts fewer points than the chunks hold is
   told in pieces too. Chunks lie at many places of a page, because what is left of a page stays loaded. */
static void check_laz_doubt(const char *name, int rows, const char *follow)
{
    enum { FAR = 300000, STEPS = 64, STEP = 64, POINT_OFFSET = 96, COUNT32 = 107, COUNT64 = 247 };
    static uint8_t data[1 << 14], far[2 * FAR + STEPS * STEP + sizeof data];
    const char *path = files_path(folder, "far.laz");
    const struct laz_file *l = laz_files;
    while (strcmp(l->name, name) != 0) l++;
    size_t size = load_laz(l, data, sizeof data), points = 0, table = 0;
    memcpy(&points, data + POINT_OFFSET, 4);
    memcpy(&table, data + points, 8);
    memcpy(data + (data[25] < 4 ? COUNT32 : COUNT64), &rows, 4);
    for (size_t more = FAR; more < FAR + STEPS * STEP; more += STEP) {
        size_t points_to = points + more, table_to = table + more + FAR;
        struct pnet_cloud_pieces *p;
        char warning[256], want[120];
        bool whole;
        memcpy(data + POINT_OFFSET, &points_to, 4);
        memcpy(data + points, &table_to, 8);
        memcpy(far, data, points);
        memset(far + points, 0, sizeof far - points);
        memcpy(far + points_to, data + points, table - points);
        memcpy(far + table_to, data + table, size - table);
        write_file(path, far, table_to + size - table);
        const char *wrong = pieces_differ(path, &none, 60, &whole);
        CHECKF(!wrong && !whole, "%s with %d: %s", name, rows, wrong);
        snprintf(want, sizeof want,
            "the header counts %d points, %s or more compressed points follow", rows, follow);
        CHECK(pnet_cloud_pieces_open(path, &none, 60, &p, warning, NULL) == PNET_OK);
        CHECKF(strstr(warning, want), "%s with %d: \"%s\"", name, rows, warning);
        pnet_cloud_pieces_close(p);
    }
    remove(path);
}

/* ---- errors ---- */

/* Files that are cut have the error of the whole reader, and there is one. */
static void check_cut(const char *name)
{
    struct pnet_bytes b;
    struct pnet_cloud c;
    const char *path = files_path(folder, name);
    make_cloud(NEAR, MANY, &c);
    CHECK(pnet_cloud_write(path, &c, NULL) == PNET_OK);
    pnet_cloud_free(&c);
    CHECK(pnet_bytes_read(path, &b, NULL) == PNET_OK);
    const size_t cuts[] = {1, 30, 100, 230, 1000, b.size / 2 + 1, b.size - 3};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct pnet_cloud_pieces *p;
        struct pnet_error e = {.message = ""};
        write_file(path, b.data, cuts[i]);
        check_same(path, &none);
        enum pnet_status st = pnet_cloud_pieces_open(path, &none, 10, &p, NULL, &e);
        CHECKF(st == PNET_BAD_DATA || st == PNET_USAGE, "%s of %zu bytes", name, cuts[i]);
        CHECK(p == NULL && e.status == st && *e.message);
        refused += st == PNET_BAD_DATA;
    }
    pnet_bytes_free(&b);
    remove(path);
}

static void check_whole(const char *path, const char *what)
{
    struct pnet_cloud_pieces *p;
    struct pnet_error e = {.message = ""};
    CHECK(pnet_cloud_pieces_open(path, &none, 10, &p, NULL, &e) == PNET_USAGE && !p);
    CHECKF(strstr(e.message, what) && strstr(e.message, "read as a whole"), "%s", e.message);
}

static void check_told(void)
{
    static const char off[] = "OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n", text[] = "0 0 0\n1 0 0\n0 1 0\n";
    const char *path = files_path(folder, "a.off");
    check_whole("-", "standard input");
    check_whole("/dev/null", "no regular file");
    write_file(path, off, sizeof off - 1);
    check_whole(path, "OFF");
    remove(path);
    path = files_path(folder, "a.txt");
    write_file(path, text, sizeof text - 1);
    check_whole(path, "text");
    write_file(path, "", 0);
    check_whole(path, "empty");
    remove(path);
    path = files_path(folder, "missing.las");
    check_same(path, &none);
}

/* What is left of a file that changes cannot be trusted. */
static void check_changed(void)
{
    struct pnet_cloud c;
    struct pnet_cloud_pieces *p;
    struct pnet_error e = {.message = ""};
    const char *path = files_path(folder, "changed.las");
    make_cloud(GRID, MANY, &c);
    CHECK(pnet_cloud_write(path, &c, NULL) == PNET_OK);
    pnet_cloud_free(&c);
    CHECK(pnet_cloud_pieces_open(path, &none, MANY / 2, &p, NULL, NULL) == PNET_OK);
    CHECK(pnet_cloud_pieces_next(p, &c, NULL, NULL) == PNET_OK && c.rows == MANY / 2);
    pnet_cloud_free(&c);
    CHECK(truncate(path, 5000) == 0);
    CHECK(pnet_cloud_pieces_next(p, &c, NULL, &e) == PNET_FAILED && !c.rows && !c.xyz);
    CHECKF(strstr(e.message, "changed while it was read"), "%s", e.message);
    pnet_cloud_pieces_close(p);
    remove(path);
}

int main(void)
{
    folder = files_folder();
    check_all_written();
    check_values();
    check_ply();
    check_pcd();
    check_npy();
    check_batch();
    check_zeros();
    check_columns();
    check_las();
    check_piece_is_written();
    check_laz();
    check_laz_doubt("format1", 7, "94");
    check_laz_doubt("format7", 3, "107");
    check_laz_doubt("format7", 109, "1");
    check_laz_doubt("variable8", 1, "59");
    check_cut("a.ply");
    check_cut("a.pcd");
    check_cut("a.npy");
    check_cut("a.las");
    check_cut("a.bin");
    CHECKF(refused > 20, "%d", refused);
    check_told();
    check_changed();
    CHECK(rmdir(folder) == 0);
    return check_end();
}
