/* Clouds written in pieces: the files are those that are written as a whole, byte for byte, and every refusal is the same. */
#include "runtime/io/npy.h"
#include "tests/io/las.h"
#include "tests/io/laz_files.h"
#include "tests/io/writer.h"

#include <signal.h>
#include <sys/resource.h>

enum { MANY = 2100, ENDINGS = 9 }; /* MANY: more than a block of records */
enum shape { NEAR, WHOLE, GRID, STRAYS, WIDE, HOLES, SHAPES };

static const struct pnet_cloud_hints none = {.columns = NULL};
static const char *const endings[ENDINGS] = {"out.las", "out.ply", "out.npy", "out.pcd", "out.csv",
    "out.xyz", "out.pts", "out.bin", "out.pcd.bin"};
static const char *folder;
static int written_as[ENDINGS], refused;

/* Writes a file in both ways: all changes, the first endings, and the sizes of pieces in turn, or each of them. */
static void check_file(
    const char *from, const struct pnet_cloud_hints *hints, int first, bool every_size)
{
    static const int64_t most_rows[] = {1000, 7, INT64_MAX, 1};
    static int turn;
    for (int change = 0; change < WRITER_CHANGES; change++)
        for (int k = 0; k < first; k++)
            for (int s = 0; s < (every_size ? 4 : 1); s++) {
                char path[1024];
                bool written;
                int64_t most = most_rows[every_size ? s : turn++ % 4];
                snprintf(path, sizeof path, "%s/%s", folder, endings[k]);
                const char *wrong =
                    writer_differs(from, hints, most, (enum writer_change)change, path, &written);
                CHECKF(!wrong, "%s, change %d, %s in pieces of %" PRId64 ": %s", from, change,
                    endings[k], most, wrong);
                written_as[k] += written;
                refused += !written;
            }
}

static double coordinate(enum shape shape, int64_t row, int axis)
{
    static const double corner[3] = {154000, 263000, -2};
    double v = (double)((row * (axis + 3) * 7919) % 10007) / 64;
    if (shape == HOLES && row % 13 == axis) return axis ? (double)NAN : (double)INFINITY;
    if (shape == NEAR) return v;
    if (shape == WHOLE) return floor(v);
    if (shape == STRAYS && row % 1000 == 765) return axis == 2 ? -0.0 : 0.25 * axis;
    if (shape == WIDE) return v * 400 + 0.001 * axis + 1e6;
    return corner[axis] + v + 0.001 * axis;
}

/* Writes a file with coordinates of the shape, and fields of several types. */
static const char *make_file(enum shape shape, int64_t rows, const char *name)
{
    static const enum pnet_scalar xyz_types[] = {
        PNET_F32, PNET_I16, PNET_F64, PNET_F64, PNET_F64, PNET_F64};
    const char *path = files_path(folder, name);
    struct pnet_cloud c = {.rows = rows};
    double *xyz = malloc(((size_t)rows * 3 + 1) * sizeof *xyz);
    if (!xyz) abort();
    for (int64_t i = 0; i < 3 * rows; i++) xyz[i] = coordinate(shape, i / 3, (int)(i % 3));
    uint16_t *intensity = writer_field(&c, "intensity", PNET_U16);
    double *time = writer_field(&c, "gps_time", PNET_F64);
    int32_t *label = writer_field(&c, "label", PNET_I32);
    uint8_t *class_ = writer_field(&c, "classification", PNET_U8);
    for (int64_t i = 0; i < rows; i++) {
        intensity[i] = (uint16_t)(i * 7);
        time[i] = (double)i / (shape == NEAR ? 4 : 3); /* NEAR: float32 holds all */
        label[i] = (int32_t)(i * 17 - 9);
        class_[i] = (uint8_t)(i % 32);
    }
    if (pnet_cloud_place(&c, rows, xyz, NULL) || pnet_cloud_restore(&c, NULL)) abort();
    c.xyz_type = xyz_types[shape];
    CHECK(pnet_cloud_write(path, &c, NULL) == PNET_OK);
    pnet_cloud_free(&c);
    free(xyz);
    return path;
}

static void check_shapes(void)
{
    static const double origin[3] = {154100, 263000.125, 0};
    static const char *const names[] = {"in.ply", "in.las", "in.pcd", "in.npy"};
    struct pnet_cloud_hints hints = none;
    CHECK(pnet_unit_parse("us-ft,m", &hints.unit));
    for (int shape = 0; shape < SHAPES; shape++)
        for (int k = 0; k < 4; k++) {
            if (k == 1 && (shape == HOLES || shape == WIDE)) continue; /* LAS cannot hold them */
            hints.origin = NULL;
            const char *path = make_file((enum shape)shape, MANY, names[k]);
            check_file(path, &none, k ? 2 : ENDINGS, k < 2 && shape == GRID);
            if (k < 2 && shape != NEAR) check_file(path, &hints, 3, false);
            hints.origin = origin;
            if (k < 2 && shape == GRID) check_file(path, &hints, 3, false);
            remove(path);
        }
    const char *path = make_file(GRID, 0, "in.las");
    check_file(path, &none, ENDINGS, false);
    remove(path);
}

/* LAS files of every point format. Their records end in bytes without a description; the third point is dropped, since it lies
   beyond 1e18 m. */
static void check_las(void)
{
    static struct las l;
    const char *path = files_path(folder, "made.las");
    for (int format = 0; format <= 10; format++) {
        make(&l, format < 6 ? 2 : 4, format, NULL, 0, 3);
        memcpy(l.data + l.size, "what follows the points", 24);
        write_file(path, l.data, l.size + 24);
        check_file(path, &none, 1, format == 3 || format == 7);
        set_double(&l, 131, 4e14);
        write_file(path, l.data, l.size);
        check_file(path, &none, 2, false);
    }
    remove(path);
}

/* Extra dimensions: one with a scale, whose raw numbers are kept, and one of two numbers. */
static void check_extra_dimensions(void)
{
    static struct las l;
    uint8_t vlr[54 + 2 * 192];
    const char *path = files_path(folder, "extra.las");
    memset(vlr, 0, sizeof vlr);
    memcpy(vlr + 2, "LASF_Spec", 9);
    vlr[18] = 4;
    const uint16_t length = 2 * 192;
    memcpy(vlr + 20, &length, 2);
    uint8_t *d = vlr + 54;
    d[2] = 10; /* a double, times 0.1 */
    d[3] = 8;
    memcpy(d + 4, "height", 6);
    const double scale = 0.1;
    memcpy(d + 112, &scale, 8);
    d[192 + 2] = 13; /* two of uint16 */
    memcpy(d + 192 + 4, "pair", 4);
    make(&l, 4, 7, vlr, sizeof vlr, 12);
    for (size_t row = 0; row < ROWS; row++) {
        size_t at = l.size - (ROWS - row) * (sizes[7] + 12) + sizes[7];
        set_double(&l, at, (double)row / 7);
        set_number(&l, at + 8, 77 * row + 5, 4);
    }
    write_file(path, l.data, l.size);
    struct pnet_cloud c;
    CHECK(pnet_cloud_read(path, &c, NULL, NULL) == PNET_OK);
    CHECK(pnet_cloud_field(&c, "height") && pnet_cloud_field(&c, "pair_1"));
    pnet_cloud_free(&c);
    check_file(path, &none, 2, true);
    remove(path);
}

static void check_laz(void)
{
    static uint8_t data[1 << 14];
    const char *path = files_path(folder, "made.laz");
    for (size_t i = 0; i < sizeof laz_files / sizeof *laz_files; i++) {
        size_t size = strlen(laz_files[i].digits) / 2;
        CHECK(size <= sizeof data);
        for (size_t k = 0; k < size && k < sizeof data; k++) {
            unsigned byte = 0;
            sscanf(laz_files[i].digits + 2 * k, "%2x", &byte);
            data[k] = (uint8_t)byte;
        }
        write_file(path, data, size);
        check_file(path, &none, 1, false);
    }
    remove(path);
}

/* ---- failures ---- */

/* A writer of a cloud without fields. */
static struct pnet_cloud_writer *open_writer(
    const struct pnet_cloud *like, int64_t rows, const char *path)
{
    struct pnet_cloud_writer *w = NULL;
    struct pnet_error e = {.message = ""};
    CHECKF(pnet_cloud_writer_open(path, like, rows, &w, &e) == PNET_OK && w, "%s", e.message);
    return w;
}

static void check_told(const struct pnet_error *e, const char *what)
{
    CHECKF(e->status == PNET_USAGE && strstr(e->message, what), "%s", e->message);
}

static void check_rows(const char *name)
{
    float xyz[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct pnet_cloud like = {.xyz_type = PNET_F64};
    struct pnet_cloud three = {.rows = 3, .file_rows = 3, .xyz = xyz, .xyz_type = PNET_F64};
    const char *path = files_path(folder, name);
    struct pnet_error e;
    bool again;
    struct pnet_cloud_writer *w = open_writer(&like, 5, path);
    CHECK(pnet_cloud_writer_put(w, &three, NULL) == PNET_OK);
    CHECK(pnet_cloud_writer_put(w, &three, &e) == PNET_USAGE);
    check_told(&e, "more rows than the 5");
    pnet_cloud_writer_drop(w);
    CHECK(access(path, F_OK) != 0);

    w = open_writer(&like, 5, path);
    CHECK(pnet_cloud_writer_put(w, &three, NULL) == PNET_OK);
    CHECK(pnet_cloud_writer_pass(w, &again, &e) == PNET_USAGE);
    check_told(&e, "3 rows instead of the 5");
    pnet_cloud_writer_drop(w);
    CHECK(access(path, F_OK) != 0);

    w = open_writer(&like, 3, path);
    CHECK(pnet_cloud_writer_put(w, &three, NULL) == PNET_OK);
    CHECK(pnet_cloud_writer_close(w, &e) == PNET_USAGE);
    check_told(&e, "not been written");
    CHECK(access(path, F_OK) != 0);
}

static void check_other_fields(void)
{
    float xyz[3] = {1, 2, 3};
    struct pnet_cloud like = {.xyz_type = PNET_F64}, piece = {.rows = 1, .xyz = xyz};
    struct pnet_error e;
    writer_field(&like, "a", PNET_U8);
    const char *path = files_path(folder, "out.ply");
    struct pnet_cloud_writer *w = open_writer(&like, 1, path);
    CHECK(pnet_cloud_writer_put(w, &piece, &e) == PNET_USAGE);
    check_told(&e, "other columns");
    pnet_cloud_writer_drop(w);
    w = NULL;
    CHECK(pnet_cloud_writer_open(files_path(folder, "out.laz"), &like, 1, &w, &e) == PNET_USAGE);
    CHECK(!w);
    CHECK(pnet_cloud_writer_open("/nowhere/out.ply", &like, 1, &w, &e) == PNET_FAILED && !w);
    pnet_cloud_writer_drop(NULL);
    pnet_cloud_free(&like);
}

/* Pieces of a LAS file without the bytes that its records have besides. */
static void check_without_bytes(void)
{
    static struct las l;
    struct pnet_cloud_pieces *p;
    struct pnet_cloud c;
    struct pnet_error e;
    const char *from = files_path(folder, "in.las"), *path = files_path(folder, "out.las");
    make(&l, 2, 3, NULL, 0, 3);
    write_file(from, l.data, l.size);
    CHECK(pnet_cloud_pieces_open(from, &none, 2, &p, NULL, NULL) == PNET_OK);
    struct pnet_cloud_writer *w = open_writer(&pnet_cloud_pieces_outline(p)->cloud, ROWS, path);
    CHECK(pnet_cloud_pieces_next(p, &c, NULL, NULL) == PNET_OK);
    struct pnet_las_kept *kept = c.las;
    c.las = NULL;
    CHECK(pnet_cloud_writer_put(w, &c, &e) == PNET_USAGE);
    check_told(&e, "without the bytes");
    c.las = kept;
    pnet_cloud_free(&c);
    pnet_cloud_writer_drop(w);
    pnet_cloud_pieces_close(p);
    CHECK(access(path, F_OK) != 0);
    remove(from);
}

/* A disk that is full leaves the file that was there, and is told before all has been put. */
static void check_full(void)
{
    enum { PUTS = 10000 };
    static float xyz[300];
    const struct pnet_cloud like = {.xyz_type = PNET_F64},
                            piece = {.rows = 100, .file_rows = 100, .xyz = xyz};
    const struct rlimit limit = {1 << 16, RLIM_INFINITY};
    const char *path = files_path(folder, "out.ply");
    struct rlimit old;
    struct pnet_error e = {.message = ""};
    int puts = 0;
    write_file(path, "old", 3);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct pnet_cloud_writer *w = open_writer(&like, 100 * PUTS, path);
    while (puts < PUTS && pnet_cloud_writer_put(w, &piece, &e) == PNET_OK) puts++;
    setrlimit(RLIMIT_FSIZE, &old);
    CHECKF(puts < PUTS && e.status == PNET_FAILED && strstr(e.message, "cannot write"), "%s",
        e.message);
    pnet_cloud_writer_drop(w);
    struct pnet_bytes b;
    CHECK(pnet_bytes_read(path, &b, NULL) == PNET_OK && b.size == 3);
    pnet_bytes_free(&b);
    remove(path);
}

/* ---- arrays ---- */

static void check_array(void)
{
    float v[21];
    const int64_t shape[] = {7, 3};
    const char *path = files_path(folder, "a.npy"), *other = files_path(folder, "b.npy");
    struct pnet_bytes a, b;
    struct pnet_npy_output o;
    struct pnet_error e;
    for (int i = 0; i < 21; i++) v[i] = (float)i / 3;
    CHECK(pnet_npy_write(path, PNET_F32, 2, shape, v, NULL) == PNET_OK);
    CHECK(pnet_npy_begin(other, PNET_F32, 2, shape, &o, NULL) == PNET_OK);
    for (int i = 0; i < 21; i += 6) CHECK(pnet_npy_put(&o, v + i, i < 18 ? 6 : 3, NULL) == PNET_OK);
    CHECK(pnet_npy_commit(&o, NULL) == PNET_OK);
    CHECK(
        pnet_bytes_read(path, &a, NULL) == PNET_OK && pnet_bytes_read(other, &b, NULL) == PNET_OK);
    CHECK(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    pnet_bytes_free(&a);
    pnet_bytes_free(&b);
    remove(path);
    remove(other);
    CHECK(pnet_npy_begin(path, PNET_F32, 2, shape, &o, NULL) == PNET_OK);
    CHECK(pnet_npy_put(&o, v, 20, NULL) == PNET_OK);
    CHECK(pnet_npy_put(&o, v, 2, &e) == PNET_USAGE);
    check_told(&e, "1 values more");
    CHECK(pnet_npy_commit(&o, &e) == PNET_USAGE);
    check_told(&e, "1 values are missing");
    CHECK(access(path, F_OK) != 0);
    CHECK(pnet_npy_begin(path, PNET_F32, 2, shape, &o, NULL) == PNET_OK);
    pnet_npy_drop(&o);
    CHECK(access(path, F_OK) != 0);
}

int main(void)
{
    folder = files_folder();
    check_shapes();
    check_las();
    check_extra_dimensions();
    check_laz();
    check_rows("out.ply");
    check_rows("out.npy");
    check_rows("out.las");
    check_rows("out.csv");
    check_other_fields();
    check_without_bytes();
    check_full();
    check_array();
    for (int k = 0; k < ENDINGS; k++) {
        printf("%s: %d\n", endings[k], written_as[k]);
        CHECKF(written_as[k] >= 20, "%s: %d", endings[k], written_as[k]);
    }
    printf("refused: %d\n", refused);
    CHECK(refused >= 30);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
