/* Every cloud among the real files, read with the number of points their list gives. */
#include "runtime/io/cloud.h"
#include "runtime/io/hdf5_library.h"
#include "runtime/io/kitti.h"
#include "runtime/io/archive.h"
#include "tests/io/files.h"

#include <inttypes.h>
#include <sys/stat.h>

/* Rows of the list whose points count something else: lines of a text with a header or a count
   among them, several clouds, or no cloud at all. -1: refused. */
static const struct {
    const char *path;
    int64_t rows;
} others[] = {
    {"formats/txt/PDAL__utm17_1.txt", 10},
    {"formats/txt/PDAL__utm17_2.txt", 10},
    {"formats/txt/PDAL__utm17_3.txt", -1}, /* a line of four values among lines of three */
    {"formats/txt/PDAL__crlf_test.txt", 10},
    {"formats/txt/PDAL__quoted.txt", 9},
    {"formats/txt/PDAL__numeric_dim.txt", 5},
    {"formats/txt/PDAL__with_edgeofflightline.txt", 10000},
    {"formats/txt/PDAL__autzen.pts", 10},
    {"formats/txt/PDAL__bunny_8.pts", 8},
    {"formats/txt/PyMeshLab__chameleon.pts", -1}, /* a binary format of the same name */
    {"registration/car_csv/car_cloud400.csv", 24989},
    {"registration/car_csv/carCloudList.csv", -1},
    {"formats/ply/PDAL__unsized_dims.ply", -1}, /* no z */
    {"formats/pcd/pcl__brisk_descriptors_gt.pcd", -1},
    {"formats/npy/PDAL__threedim.npy", -1},
    {"formats/off/trimesh__comments.off", 8},
    {"formats/off/trimesh__whitespace.off", 8},
    {"formats/bin/mmdetection3d__000008.bin", 17238},
    {"formats/bin/mmdetection3d__000000.bin", 50},
    {"formats/bin/CUDA-PointPillars__000000.bin", 20285},
    {"formats/bin/CUDA-PointPillars__000001.bin", 18630},
    {"classification/modelnet10_voxel30/modelnet10_train.npz", -1},
    {"classification/kitti_objects_h5/train_set_1.h5", -1}, /* many clouds */
    {"classification/kitti_objects_h5/train_set_2.h5", -1},
    {"classification/kitti_objects_h5/val_set.h5", -1},
    {"formats/h5/PDAL__autzen.h5", 1065},
    {"formats/h5/PointCLIPModified__box.h5", 2048},
    {"formats/h5/PointCLIPModified__test_model.h5", -1},
    {"formats/h5/graphics__ply_data_test0.h5", -1},
    {"classification/neon_trees/real/val/points.npy", -1},
    {"classification/neon_trees/real/val/labels.npy", -1},
    {"classification/neon_trees/real/val/tree_ids.npy", -1},
};

static bool have_hdf5; /* libhdf5 is installed */

/* Endings that are no clouds, or not ones this reads; and arrays of labels. */
static int is_left_out(const char *path)
{
    static const char *const parts[] = {".pth", ".label", ".ptx", ".log", ".info", ".conf", ".cla",
        ".json", "_label.npy", "_mask.bin", "_lidarseg.bin", "/folds/", "README", "/objects_csv/",
        "calib.txt", "/malformed/"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(path, parts[i])) return 1;
    return !have_hdf5 && strstr(path, ".h5") != NULL;
}

/* Cell `index` of a row "| a | b |", without blanks. */
static int find_cell(const char *line, int index, char *cell, size_t size)
{
    for (int i = 0; i <= index; i++) {
        line = strchr(line, '|');
        if (!line) return 0;
        line++;
    }
    const char *end = strchr(line, '|');
    if (!end) return 0;
    while (*line == ' ') line++;
    while (end > line && end[-1] == ' ') end--;
    snprintf(cell, size, "%.*s", (int)(end - line), line);
    return 1;
}

static int read_count(const char *dir, const char *path, int64_t *file_rows)
{
    char full[2048];
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    snprintf(full, sizeof full, "%s/data/%s", dir, path);
    enum pnet_status status = pnet_cloud_read(full, &c, NULL, &e);
    *file_rows = c.file_rows;
    if (status != PNET_OK)
        CHECKF(status == PNET_BAD_DATA && strstr(e.message, path), "%s: %s", path, e.message);
    for (int64_t i = 0; i < 3 * c.rows; i++)
        if (!isfinite(c.xyz[i])) CHECKF(0, "%s: value %" PRId64, path, i);
    pnet_cloud_free(&c);
    return status == PNET_OK;
}

static void check_row(const char *dir, const char *path, const char *points, int *read)
{
    char *end;
    int64_t rows, expected = strtoll(points, &end, 10);
    int known = end != points && *end == '\0';
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(path, others[i].path) != 0) continue;
        expected = others[i].rows;
        known = 1;
    }
    if (!known || is_left_out(path)) return;
    int good = read_count(dir, path, &rows);
    CHECKF(good == (expected >= 0), "%s: %s", path, good ? "read" : "refused");
    if (good)
        CHECKF(rows == expected, "%s: %" PRId64 " points, not %" PRId64, path, rows, expected);
    *read += good;
}

/* All rows of the list's tables: path in the first column; points in the third or fourth. */
static void check_list(const char *dir)
{
    char name[1024], line[8192], head[256], path[1024], points[256];
    int column = 3, read = 0;
    snprintf(name, sizeof name, "%s/data/MANIFEST.md", dir);
    FILE *f = fopen(name, "r");
    CHECK(f != NULL);
    while (f && fgets(line, sizeof line, f)) {
        if (!find_cell(line, 0, path, sizeof path)) continue;
        for (int i = 1; strcmp(path, "file") == 0 && find_cell(line, i, head, sizeof head); i++)
            if (strcmp(head, "points") == 0) column = i;
        if (strchr(path, '/') && find_cell(line, column, points, sizeof points))
            check_row(dir, path, points, &read);
    }
    if (f) fclose(f);
    CHECKF(read > 1000, "only %d clouds read", read);
    for (int i = 0; i < 3; i++) {
        static const int64_t rooms[] = {666636, 765295, 606680};
        int64_t rows;
        snprintf(path, sizeof path, "bench/room%d.npy", i);
        CHECK(read_count(dir, path, &rows) && rows == rooms[i]);
    }
}

/* Malformed files: whether each must be refused (0), must be read (1, with its points), or may be
 * either. */
static void check_malformed(const char *dir)
{
    static const struct {
        const char *name;
        int64_t rows; /* -1: refused */
    } files[] = {{"python-pcl__flydracyl.pcd", -1}, {"PDAL__no_vertex.ply", -1},
        {"PDAL__missingheader.pcd", -1}, {"PDAL__garbage_nVariableLength.las", -1},
        {"PDAL__bad_vlr_count.las", -1}, {"PDAL__no-points.las", 0},
        {"PDAL__1.2-no-points.las", -1}, {"PDAL__spurious.las", 1065},
        {"PDAL__gps-time-nan.las", 1}, {"PDAL__lots_of_vlr.las", 1},
        {"PDAL__1.2-empty-geotiff-vlrs.las", 43}, {"PDAL__badheader.txt", -1},
        {"PDAL__missingheader.txt", 5}, {"PDAL__no_vertex.obj", -1}, {"PDAL__simple_binary.obj", 3},
        {"PDAL__simple-laszip-compressor-version-1.2r0.laz", 1065}, {"PDAL__test.pts", 19},
        {"trimesh__ply_empty_header.ply", -1}, {"trimesh__ply_empty_ascii.ply", 0},
        {"trimesh__ply_empty_bin.ply", 0}, {"trimesh__points_emptyascii.ply", 12},
        {"assimp__crash-30d6d0f7c529b3b66b4131700b7a4580cd7082df.ply", -1},
        {"assimp__empty.ply", -1}, {"assimp__empty.off", -1}, {"assimp__OutOfMemory.off", -1},
        {"assimp__invalid.off", 3}, {"assimp__issue623.ply", -1}, {"laspy__fullwave.laz", -1},
        {"laz-perf__no-points-1.3.las", 0}, {"laz-perf__no-points-1.3.laz", 0},
        {"libLAS__bad_points_1.1.las", 1}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        int64_t rows;
        snprintf(path, sizeof path, "formats/malformed/%s", files[i].name);
        int good = read_count(dir, path, &rows);
        CHECKF(good == (files[i].rows >= 0), "%s", path);
        if (good) CHECKF(rows == files[i].rows, "%s: %" PRId64, path, rows);
    }
}

/* Two files that hold the same points, written by different programs. */
static void check_twins(const char *dir, const char *a, const char *b, double tolerance)
{
    char full[2][2048];
    struct pnet_cloud c, d;
    struct pnet_error e = {.message = ""};
    snprintf(full[0], sizeof full[0], "%s/data/%s", dir, a);
    snprintf(full[1], sizeof full[1], "%s/data/%s", dir, b);
    CHECKF(pnet_cloud_read(full[0], &c, NULL, &e) == PNET_OK, "%s", e.message);
    CHECKF(pnet_cloud_read(full[1], &d, NULL, &e) == PNET_OK, "%s", e.message);
    CHECK(c.rows == d.rows && c.rows > 0);
    for (int64_t i = 0; i < 3 * c.rows && c.rows == d.rows; i++) {
        double u = c.offset[i % 3] + (double)c.xyz[i], v = d.offset[i % 3] + (double)d.xyz[i];
        CHECKF(fabs(u - v) <= tolerance, "%s: %.9g, %s: %.9g", a, u, b, v);
    }
    for (int k = 0; k < c.field_count; k++) {
        struct pnet_field *f = pnet_cloud_field(&d, c.fields[k].name);
        for (int64_t i = 0; f && i < c.rows; i++) {
            double u = pnet_field_get(&c.fields[k], i), v = pnet_field_get(f, i);
            CHECKF(fabs(u - v) <= tolerance, "%s: %s[%" PRId64 "] %g, %g", a, f->name, i, u, v);
        }
    }
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
}

/* Compressed points, each beside the plain file that they were compressed from. */
static void check_laz(const char *dir)
{
    static const char *const names[][2] = {
        {"laz/laz-perf__point10.las.laz", "laz/laz-perf__point10.las"},
        {"laz/laz-perf__point-time.las.laz", "laz/laz-perf__point-time.las"},
        {"laz/laz-perf__point-time-1.4.las.laz", "laz/laz-perf__point-time.las"},
        {"laz/laz-perf__point-color.las.laz", "laz/laz-perf__point-color.las"},
        {"laz/laz-perf__point-color-time.las.laz", "laz/laz-perf__point-color-time.las"},
        {"laz/laz-perf__extrabytes.laz", "laz/laz-perf__extrabytes.las"},
        {"laz/laz-perf__1815.laz", "laz/laz-perf__1815.las"},
        {"laz/laspy__1_4_w_evlr.laz", "las/laspy__1_4_w_evlr.las"},
        {"laz/loaders.gl__pdrf6-1.4.laz", "las/loaders.gl__pdrf6-1.4.las"},
        {"laz/loaders.gl__pdrf7-v4-1.4.laz", "las/loaders.gl__pdrf7-v4-1.4.las"},
        {"laz/loaders.gl__pdrf8-1.4.laz", "las/loaders.gl__pdrf8-1.4.las"},
        {"public/tmontaigu_pylas__simple.laz", "las/laspy__simple.las"},
        {"malformed/PDAL__simple-laszip-compressor-version-1.2r0.laz", "las/laspy__simple.las"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[2][256];
        for (int k = 0; k < 2; k++) snprintf(path[k], sizeof path[k], "formats/%s", names[i][k]);
        check_twins(dir, path[0], path[1], 0);
    }
}

/* What the files of several programs state about their units, read off their keys and texts. */
static void check_units(const char *dir)
{
    static const double us_foot = 1200.0 / 3937;
    static const struct {
        const char *path;
        enum pnet_axis_unit_kind xy;
        double xy_size;
        enum pnet_axis_unit_kind z;
        double z_size;
    } files[] = {
        {"segmentation/als/mvk-thin.las", PNET_AXIS_LENGTH, us_foot, PNET_AXIS_LENGTH, us_foot},
        {"segmentation/als/laspy_wkt_geotiff_14.las", PNET_AXIS_LENGTH, us_foot, PNET_AXIS_LENGTH,
            us_foot},
        {"segmentation/als/warsaw_small.las", PNET_AXIS_UNSTATED, 0, PNET_AXIS_UNSTATED, 0},
        {"formats/las/PDAL__interesting.las", PNET_AXIS_LENGTH, 0.3048, PNET_AXIS_UNSTATED, 0},
        {"formats/las/PDAL__epsg_4326.las", PNET_AXIS_ANGLE, M_PI / 180, PNET_AXIS_UNSTATED, 0},
        {"formats/las/laspy__test1_4.las", PNET_AXIS_LENGTH, us_foot, PNET_AXIS_UNCLEAR, 0},
        {"formats/las/laspy__1_4_w_evlr.las", PNET_AXIS_LENGTH, us_foot, PNET_AXIS_UNCLEAR, 0},
        {"formats/las/laspy__simple1_3.las", PNET_AXIS_UNCLEAR, 0, PNET_AXIS_LENGTH, 1},
        {"formats/las/libLAS__1.2_3.las", PNET_AXIS_LENGTH, 1, PNET_AXIS_UNSTATED, 0},
        {"formats/laz/laz-perf__1815.las", PNET_AXIS_LENGTH, 1, PNET_AXIS_LENGTH, 1},
        {"formats/ply/happly__platonic_shelf.ply", PNET_AXIS_NONE, 0, PNET_AXIS_NONE, 0}};
    char full[2048];
    struct pnet_cloud c;
    struct pnet_error e = {.message = ""};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(full, sizeof full, "%s/data/%s", dir, files[i].path);
        CHECKF(pnet_cloud_read(full, &c, NULL, &e) == PNET_OK, "%s", e.message);
        CHECKF(c.unit[0].kind == files[i].xy && fabs(c.unit[0].size - files[i].xy_size) < 1e-12,
            "%s: x and y: %s", full, c.unit[0].name);
        CHECKF(c.unit[1].kind == files[i].z && fabs(c.unit[1].size - files[i].z_size) < 1e-12,
            "%s: z: %s", full, c.unit[1].name);
        pnet_cloud_free(&c);
    }
    /* The box in metres, from laspy's doubles. */
    static const double low[] = {623317.7830835661, 386335.13538227073, 29.19685039370079};
    const struct pnet_cloud_hints of_file = {.unit.of_file = true};
    snprintf(full, sizeof full, "%s/data/%s", dir, files[0].path);
    CHECKF(pnet_cloud_read_as(full, &of_file, &c, NULL, &e) == PNET_OK, "%s", e.message);
    for (int a = 0; a < 3; a++) {
        double least = INFINITY;
        for (int64_t i = 0; i < c.rows; i++)
            least = fmin(least, c.offset[a] + (double)c.xyz[3 * i + a]);
        CHECKF(fabs(least - low[a]) < 1e-4, "axis %d: %.9g", a, least);
    }
    pnet_cloud_free(&c);
}

static void check_companions(const char *dir)
{
    char path[2048];
    struct pnet_error e = {.message = ""};
    struct pnet_npy a;
    static uint32_t labels[124668];
    snprintf(path, sizeof path,
        "%s/data/segmentation/semantickitti/sequences/00/labels/000000.label", dir);
    CHECKF(pnet_labels_read(path, 124668, labels, &e) == PNET_OK, "%s", e.message);
    static const int classes[] = {
        0, 1, 10, 40, 44, 48, 50, 51, 52, 60, 70, 71, 72, 80, 81, 99, 255};
    for (int i = 0; i < 124668; i++) {
        size_t k = 0;
        while (k < 17 && classes[k] != (int)(labels[i] & 0xffff)) k++;
        if (k == 17) CHECKF(0, "label %u", labels[i]);
    }
    snprintf(path, sizeof path, "%s/data/segmentation/scannet/scene0000_00_sem_label.npy", dir);
    CHECKF(pnet_npy_read(path, &a, &e) == PNET_OK, "%s", e.message);
    CHECK(a.type == PNET_U32 && a.dims == 1 && a.count == 50000);
    for (int64_t i = 0; i < a.count; i++) CHECK(((uint32_t *)a.data)[i] <= 40);
    pnet_npy_free(&a);
    snprintf(
        path, sizeof path, "%s/data/classification/modelnet10_voxel30/modelnet10_train.npz", dir);
    CHECKF(pnet_archive_read(path, "y_train", &a, &e) == PNET_OK, "%s", e.message);
    CHECK(a.type == PNET_I64 && a.count == 3991);
    pnet_npy_free(&a);
    CHECKF(pnet_archive_read(path, NULL, &a, &e) == PNET_OK, "%s", e.message);
    CHECK(a.type == PNET_U8 && a.dims == 4 && a.count == INT64_C(3991) * 27000);
    pnet_npy_free(&a);
    CHECK(pnet_archive_read(path, "z", &a, &e) == PNET_BAD_DATA && strstr(e.message, "\"z\""));
}

/* Arrays of clouds as ModelNet40 has them. */
static void check_hdf5(const char *dir)
{
    static const struct {
        const char *path;
        enum pnet_scalar data, label;
        int64_t clouds, points;
        double classes;
    } files[] = {
        {"classification/kitti_objects_h5/val_set.h5", PNET_F64, PNET_I64, 512, 128, 4},
        {"formats/h5/graphics__ply_data_test0.h5", PNET_F32, PNET_U8, 8, 2048, 40},
        {"formats/h5/PointCLIPModified__test_model.h5", PNET_F32, PNET_I64, 6, 2048, 40},
    };
    for (size_t i = 0; have_hdf5 && i < sizeof files / sizeof *files; i++) {
        char path[2048], name[PNET_ARRAY_NAME] = "";
        struct pnet_npy a, l;
        struct pnet_error e = {.message = ""};
        snprintf(path, sizeof path, "%s/data/%s", dir, files[i].path);
        CHECKF(pnet_archive_find(path, 3, name, &e) == PNET_OK, "%s", e.message);
        CHECK_STR(name, "data");
        CHECKF(pnet_archive_read(path, name, &a, &e) == PNET_OK, "%s", e.message);
        CHECKF(pnet_archive_read(path, "label", &l, &e) == PNET_OK, "%s", e.message);
        CHECK(a.type == files[i].data && a.dims == 3 &&
              a.count == files[i].clouds * files[i].points * 3);
        CHECK(l.type == files[i].label && l.count == files[i].clouds);
        const struct pnet_field data = {.type = a.type, .data = a.data},
                                label = {.type = l.type, .data = l.data};
        for (int64_t k = 0; k < a.count; k++)
            if (!(fabs(pnet_field_get(&data, k)) < 100)) CHECKF(0, "%s: value %" PRId64, path, k);
        for (int64_t k = 0; k < l.count; k++)
            CHECK(pnet_field_get(&label, k) >= 0 && pnet_field_get(&label, k) < files[i].classes);
        pnet_npy_free(&a);
        pnet_npy_free(&l);
    }
}

int main(void)
{
    const char *dir = check_data_dir();
    const struct pnet_hdf5_library *library;
    struct pnet_error e;
    have_hdf5 = pnet_hdf5_begin("HDF5 files", &library, &e) == PNET_OK;
    if (have_hdf5)
        pnet_hdf5_end();
    else
        printf("left out: %s\n", e.message);
    check_hdf5(dir);
    check_list(dir);
    check_malformed(dir);
    check_twins(dir, "formats/ply/ModelNet40_pcd_format__flower_pot.ply",
        "formats/pcd/ModelNet40_pcd_format__flower_pot.pcd", 1e-5);
    check_twins(dir, "formats/ply/happly__platonic_shelf.ply",
        "formats/ply/happly__platonic_shelf_big_endian.ply", 0);
    check_twins(dir, "formats/ply/happly__platonic_shelf.ply",
        "formats/ply/happly__platonic_shelf_ascii.ply", 1e-5);
    check_twins(dir, "formats/ply/pyntcloud__diamond.ply", "formats/npy/pyntcloud__diamond.npz", 0);
    check_twins(dir, "formats/npy/pyntcloud__diamond.npy", "formats/npy/pyntcloud__diamond.npz", 0);
    check_twins(dir, "formats/las/PDAL__interesting.las", "formats/las/laspy__simple.las", 1e-6);
    check_twins(
        dir, "formats/laz/laz-perf__point-color-time.las", "formats/laz/laz-perf__point10.las", 0);
    check_twins(dir, "registration/3dmatch/7-scenes-redkitchen/cloud_bin_6.ply",
        "registration/geotransformer_demo/src.npy", 1e-6);
    check_twins(dir, "formats/txt/PDAL__utm17_1.txt", "formats/txt/PDAL__utm17_2.txt", 0);
    check_laz(dir);
    check_units(dir);
    check_companions(dir);
    return check_end();
}
