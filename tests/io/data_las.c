/* Every LAS and LAZ file among the real ones, written again: LAS has the same bytes, LAZ the points that it was made of. */
#include "runtime/io/cloud.h"
#include "runtime/io/las.h"
#include "tests/io/files.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/stat.h>

static const char *out;
static int plain, compressed;

static int ends_with(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcmp(path + n - m, ending) == 0;
}

/* Reads a cloud and writes it with all its rows. Returns whether it could be read. */
static int rewrite(const char *path, const struct pnet_cloud_hints *hints, struct pnet_cloud *c)
{
    struct pnet_error e = {.message = ""};
    if (pnet_cloud_read_as(path, hints, c, NULL, &e) != PNET_OK) return 0;
    CHECK(pnet_cloud_restore(c, &e) == PNET_OK);
    CHECKF(pnet_cloud_write(out, c, &e) == PNET_OK, "%s: %s", path, e.message);
    return 1;
}

static void check_same_bytes(const char *path, const char *other)
{
    struct pnet_bytes a, b;
    struct pnet_error e = {.message = ""};
    CHECKF(pnet_bytes_read(path, &a, &e) == PNET_OK, "%s", e.message);
    CHECKF(pnet_bytes_read(other, &b, &e) == PNET_OK, "%s", e.message);
    CHECKF(a.size == b.size && memcmp(a.data, b.data, a.size) == 0, "%s", path);
    pnet_bytes_free(&a);
    pnet_bytes_free(&b);
}

/* In metres too, where the file states its unit. */
static void check_las(const char *path)
{
    static const struct pnet_cloud_hints of_file = {.unit.of_file = true}, none = {.columns = NULL};
    struct pnet_cloud c;
    if (!rewrite(path, &none, &c)) return;
    check_same_bytes(path, out);
    pnet_cloud_free(&c);
    plain++;
    if (!rewrite(path, &of_file, &c)) return;
    check_same_bytes(path, out);
    pnet_cloud_free(&c);
}

static void check_laz(const char *path)
{
    static const struct pnet_cloud_hints none = {.columns = NULL};
    char again[1024];
    struct pnet_cloud c, d;
    struct pnet_error e = {.message = ""};
    if (!rewrite(path, &none, &c)) return;
    CHECKF(pnet_cloud_read(out, &d, NULL, &e) == PNET_OK, "%s: %s", path, e.message);
    CHECK(c.rows == d.rows && c.field_count == d.field_count);
    for (int k = 0; k < c.field_count && k < d.field_count && c.rows == d.rows; k++) {
        size_t size = pnet_scalar_size(c.fields[k].type);
        CHECK_STR(d.fields[k].name, c.fields[k].name);
        CHECKF(d.fields[k].type == c.fields[k].type &&
                   memcmp(c.fields[k].data, d.fields[k].data, (size_t)c.rows * size) == 0,
            "%s: %s", path, c.fields[k].name);
    }
    for (int64_t i = 0; i < 3 * c.rows && c.rows == d.rows; i++) {
        double u = pnet_cloud_at(&c, i / 3, (int)(i % 3)),
               v = pnet_cloud_at(&d, i / 3, (int)(i % 3));
        if (u != v) CHECKF(0, "%s: row %" PRId64 ": %.17g, not %.17g", path, i / 3, v, u);
    }
    snprintf(again, sizeof again, "%s.las", out);
    CHECK(pnet_cloud_write(again, &d, &e) == PNET_OK);
    check_same_bytes(out, again);
    remove(again);
    pnet_cloud_free(&c);
    pnet_cloud_free(&d);
    compressed++;
}

/* Two files of the same records, one of them compressed. */
static void check_twins(const char *dir, const char *laz, const char *las)
{
    static const struct pnet_cloud_hints none = {.columns = NULL};
    char path[2048];
    struct pnet_cloud c;
    struct pnet_bytes a, b;
    snprintf(path, sizeof path, "%s/data/formats/%s", dir, laz);
    if (!rewrite(path, &none, &c)) {
        CHECKF(0, "%s", path);
        return;
    }
    snprintf(path, sizeof path, "%s/data/formats/%s", dir, las);
    CHECK(pnet_bytes_read(path, &a, NULL) == PNET_OK && pnet_bytes_read(out, &b, NULL) == PNET_OK);
    uint64_t at = pnet_las_load(a.data, LAS_POINT_OFFSET, 4),
             to = pnet_las_load(b.data, LAS_POINT_OFFSET, 4);
    CHECKF(a.size - at == b.size - to && memcmp(a.data + at, b.data + to, a.size - at) == 0, "%s",
        laz);
    pnet_cloud_free(&c);
    pnet_bytes_free(&a);
    pnet_bytes_free(&b);
}

static void walk(const char *folder)
{
    DIR *d = opendir(folder);
    CHECKF(d != NULL, "%s", folder);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char path[4096];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || lstat(path, &s) != 0) continue;
        if (S_ISDIR(s.st_mode))
            walk(path);
        else if (ends_with(path, ".las"))
            check_las(path);
        else if (ends_with(path, ".laz"))
            check_laz(path);
    }
    if (d) closedir(d);
}

int main(void)
{
    const char *dir = check_data_dir(), *folder = files_folder();
    char path[2048];
    out = files_path(folder, "out.las");
    snprintf(path, sizeof path, "%s/data", dir);
    walk(path);
    CHECKF(plain > 50 && compressed > 12, "%d LAS, %d LAZ", plain, compressed);
    check_twins(dir, "laz/laspy__1_4_w_evlr.laz", "las/laspy__1_4_w_evlr.las");
    check_twins(dir, "laz/laz-perf__extrabytes.laz", "laz/laz-perf__extrabytes.las");
    check_twins(
        dir, "laz/laz-perf__point-color-time.las.laz", "laz/laz-perf__point-color-time.las");
    check_twins(dir, "laz/loaders.gl__pdrf8-1.4.laz", "las/loaders.gl__pdrf8-1.4.las");
    remove(out);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
