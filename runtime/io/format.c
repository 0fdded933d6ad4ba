#include "runtime/io/format.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

struct format {
    const char *name;
    const char *endings;                       /* each with its dot, a blank between two */
    bool (*probe)(const struct pnet_bytes *b); /* NULL: known by its name alone */
    enum pnet_status (*read)(
        const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
    enum pnet_status (*write)(const struct pnet_cloud *c, const char *path, FILE *f,
        struct pnet_error *e); /* NULL: read only */
};

/* Probed from the top: what says less about itself comes later. */
static const struct format formats[] = {
    {"PLY", ".ply", pnet_ply_probe, pnet_ply_read, pnet_ply_write},
    {"PCD", ".pcd", pnet_pcd_probe, pnet_pcd_read, pnet_pcd_write},
    {"LAS", ".las .laz", pnet_las_probe, pnet_las_read, NULL},
    {"NPY", ".npy", pnet_npy_probe, pnet_npy_cloud_read, pnet_npy_cloud_write},
    {"NPZ", ".npz", pnet_npz_probe, pnet_npz_cloud_read, NULL},
    {"OFF", ".off", pnet_off_probe, pnet_off_read, NULL},
    {"OBJ", ".obj", NULL, pnet_obj_read, NULL},
    {"Sydney objects", "", pnet_sydney_probe, pnet_sydney_read, NULL},
    {"KITTI", ".bin", NULL, pnet_kitti_read, pnet_kitti_write},
    {"text", ".xyz .txt .csv .pts", pnet_table_probe, pnet_table_read, pnet_table_write},
};
enum { FORMATS = sizeof formats / sizeof *formats };

bool pnet_path_ends(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcasecmp(path + n - m, ending) == 0;
}

static bool has_ending(const struct format *f, const char *path)
{
    char ending[8];
    for (const char *p = f->endings; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        snprintf(ending, sizeof ending, "%.*s", (int)n, p);
        if (pnet_path_ends(path, ending)) return true;
        p += n;
    }
    return false;
}

enum pnet_status pnet_byte_error(
    const char *path, uint64_t offset, struct pnet_error *e, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return pnet_error_set(e, PNET_BAD_DATA, "%.400s: byte %" PRIu64 ": %s", path, offset, text);
}

/* By content, then by name: a name may lie, and standard input has none. Text comes last: its probe
   only says that there are words and numbers, which an OBJ or a bad PLY holds too. */
static const struct format *recognise(const struct pnet_bytes *b, const char *path)
{
    const struct format *text = &formats[FORMATS - 1];
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].probe && &formats[i] != text && formats[i].probe(b)) return &formats[i];
    for (int i = 0; i < FORMATS; i++)
        if (has_ending(&formats[i], path)) return &formats[i];
    return text->probe(b) ? text : NULL;
}

static enum pnet_status unknown_format(
    const struct pnet_bytes *b, const char *path, struct pnet_error *e)
{
    if (b->size >= 8 && memcmp(b->data, "\x89HDF\r\n\x1a\n", 8) == 0)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.500s: an HDF5 file, expected a point cloud; save its arrays as .npy or .npz", path);
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.500s: byte 0: expected a point cloud: PLY, PCD, LAS, NPY, NPZ, OFF, OBJ, KITTI .bin or "
        "text",
        path);
}

enum pnet_status pnet_cloud_read(
    const char *path, struct pnet_cloud *c, char warning[256], struct pnet_error *e)
{
    *c = (struct pnet_cloud){.rows = 0};
    if (warning) warning[0] = '\0';
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    if (strcmp(path, "-") == 0) path = "standard input";
    const struct format *f = recognise(&b, path);
    status = f ? f->read(&b, path, c, e) : unknown_format(&b, path, e);
    pnet_bytes_free(&b);
    if (status == PNET_OK && warning && c->rows < c->file_rows)
        snprintf(warning, 256, "%.150s: dropped %" PRId64 " of %" PRId64 " points: not finite",
            path, c->file_rows - c->rows, c->file_rows);
    return status;
}

enum pnet_status pnet_cloud_write(
    const char *path, const struct pnet_cloud *c, struct pnet_error *e)
{
    const struct format *f = strcmp(path, "-") == 0 ? &formats[0] : NULL;
    for (int i = 0; i < FORMATS && !f; i++)
        if (formats[i].write && has_ending(&formats[i], path)) f = &formats[i];
    if (!f)
        return pnet_error_set(e, PNET_USAGE,
            "%.500s: expected a name ending in .ply .pcd .npy .bin .xyz .txt .csv or .pts", path);
    struct pnet_output o;
    enum pnet_status status = pnet_output_open(path, &o, e);
    if (status != PNET_OK) return status;
    status = f->write(c, path, o.file, e);
    if (status == PNET_OK) return pnet_output_commit(&o, e);
    pnet_output_drop(&o);
    return status;
}
