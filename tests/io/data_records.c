/* Real scans: those of the usual records get no warning, the same points in other records do. */
#include "runtime/io/cloud.h"
#include "tests/io/files.h"

#include <glob.h>
#include <inttypes.h>

static const char *dir;

/* The first `rows` points of `c` in records of `width` numbers. */
static void rewrite(const struct pnet_cloud *c, int64_t rows, int width, const char *path)
{
    float *v = calloc((size_t)(rows * width) + 1, sizeof *v);
    for (int64_t i = 0; i < rows; i++)
        for (int k = 0; k < width; k++)
            v[i * width + k] = k < 3                      ? c->xyz[3 * i + k]
                               : k == 3 && c->field_count ? (float)pnet_field_get(&c->fields[0], i)
                                                          : (float)((i * 37 + 11 * k) % 256);
    write_file(path, v, sizeof *v * (size_t)(rows * width));
    free(v);
}

static int check_usual(const char *pattern, const char *folder)
{
    char full[1024];
    glob_t g;
    snprintf(full, sizeof full, "%s/data/%s", dir, pattern);
    if (glob(full, 0, NULL, &g) != 0) return 0;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct pnet_cloud c, d;
        struct pnet_error e = {.message = ""};
        char warning[256];
        CHECKF(pnet_cloud_read(g.gl_pathv[i], &c, warning, &e) == PNET_OK, "%s", e.message);
        CHECK_STR(warning, "");
        int64_t rows = c.rows / 60 * 60; /* so that every width here divides the size */
        for (int width = 3; width <= 6 && rows; width++) {
            const char *path = files_path(folder, "a.bin");
            rewrite(&c, rows, width, path);
            CHECK(pnet_cloud_read(path, &d, warning, &e) == PNET_OK);
            if (width == 4)
                CHECK_STR(warning, "");
            else
                CHECKF(strstr(warning, "looks like"), "%s, %d columns", g.gl_pathv[i], width);
            pnet_cloud_free(&d);
            remove(path);
        }
        pnet_cloud_free(&c);
    }
    int count = (int)g.gl_pathc;
    globfree(&g);
    return count;
}

int main(void)
{
    static const char *const usual[] = {"segmentation/semantickitti/sequences/*/velodyne/*.bin",
        "formats/bin/CUDA-PointPillars*.bin", "formats/bin/mmdetection3d__000008.bin",
        "formats/bin/*LIDAR_TOP__*.pcd.bin"};
    static const char *const others[] = {"mmdetection3d__0000000.bin",
        "mmdetection3d__scene0000_00.bin", "mmdetection3d__Area_1_office_2.bin"};
    dir = check_data_dir();
    const char *folder = files_folder();
    int read = 0;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) read += check_usual(usual[i], folder);
    CHECKF(read >= 12, "%d scans", read);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char path[1024], warning[256];
        struct pnet_cloud c;
        snprintf(path, sizeof path, "%s/data/formats/bin/%s", dir, others[i]);
        CHECK(pnet_cloud_read(path, &c, warning, NULL) == PNET_OK);
        CHECKF(strstr(warning, "looks like 6 numbers"), "%s: \"%s\"", path, warning);
        pnet_cloud_free(&c);
    }
    CHECK(rmdir(folder) == 0);
    return check_end();
}
