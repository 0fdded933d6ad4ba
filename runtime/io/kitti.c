/* Scans as bare float32 records: KITTI (Geiger et al., 2012) x y z reflectance; nuScenes .pcd.bin
   (Caesar et al., 2020) x y z intensity ring. Nothing in the file says so: only its name does. */
#include "runtime/io/kitti.h"
#include "runtime/io/column.h"
#include "runtime/io/format.h"
#include "runtime/io/rows.h"
#include "runtime/io/writing.h"
#include "runtime/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usual_width(const char *path)
{
    return pnet_path_ends(path, ".pcd.bin") ? 5 : 4;
}

/* A record has a float32 for each name: those given by the user or the weights, or the usual ones. */
enum pnet_status pnet_kitti_open(struct pnet_file_parts *f, const struct pnet_cloud_hints *hints,
    struct pnet_rows *r, struct pnet_cloud *c, struct pnet_error *e)
{
    static const char *const usual[] = {"x", "y", "z", "intensity", "ring"};
    bool given = hints->column_count;
    const char *const *names = given ? (const char *const *)hints->columns : usual;
    int width = given ? hints->column_count : usual_width(f->path);
    size_t size = f->bytes.size, stride = (size_t)width * 4;
    (void)c;
    if (size % stride)
        return pnet_byte_error(f->path, size - size % stride, e,
            "the file ends within a point: expected records of %zu bytes, %d float32 each (%s)",
            stride, width,
            given ? "as many as columns are named: --columns names those of this file"
                  : "a file of other records needs names for its columns");
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < width && status == PNET_OK; i++)
        status = pnet_columns_add(&r->columns, pnet_span_of(names[i]), PNET_F32, NULL, f->path, e);
    if (status != PNET_OK) return status;
    for (int a = 0; a < 3; a++) r->axis[a] = a;
    r->record = pnet_columns_pack(&r->columns, f->bytes.data);
    r->records = f->bytes.data;
    r->count = (int64_t)(size / stride);
    return PNET_OK;
}

enum pnet_status pnet_kitti_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_rows_read(pnet_kitti_open, b, path, hints, c, e);
}

enum pnet_status pnet_kitti_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_kitti_read_as(b, path, &(struct pnet_cloud_hints){.columns = NULL}, c, e);
}

/* Numbers that are examined for doubts, and the least numbers that allow a conclusion. */
enum { LOOK_AT = 1 << 16, STEPS_LEAST = 256, LOOK_LEAST = 16, WIDEST = 8 };

/* Integers, doubles and text read as float32 mostly have magnitudes that no coordinate and no colour has. */
static bool is_odd(double v)
{
    return fabs(v) > 1e8 || (v != 0 && fabs(v) < 1e-20);
}

/* Returns the mean step from each number to the one `lag` further. In records of `lag` numbers both belong to one column,
   and often to neighbouring points; otherwise the step is between different columns. */
static double mean_step(const float *v, size_t n, int lag)
{
    double sum = 0;
    for (size_t i = 0; i + (size_t)lag < n; i++) {
        double step = fabs((double)v[i + (size_t)lag] - (double)v[i]);
        sum += step < 100 ? step : 100; /* written so that NaN counts as far */
    }
    return sum / (double)(n - (size_t)lag);
}

/* Returns the number of values with which the numbers seem to repeat, which is `width` unless another one is much likelier. */
static int find_width(const float *v, size_t n, int width)
{
    int best = width;
    double least = mean_step(v, n, width) * 0.9;
    for (int lag = 3; lag <= WIDEST; lag++) {
        double step = mean_step(v, n, lag);
        /* Every second point may be nearer than the next one if two beams alternate, and half of a record may be like the
           other half: normals on a sphere. */
        bool related = lag % width == 0 || width % lag == 0;
        if (related ? step > least / 3 : step >= least) continue;
        /* Two records together repeat as one does. */
        if (best != width && lag % best == 0 && step > least * 0.7) continue;
        best = lag;
        least = step;
    }
    return best;
}

/* Returns the share of the coordinates that are odd. */
static double odd_share(const float *v, size_t n, int width)
{
    size_t odd = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        if (i % (size_t)width >= 3) continue;
        odd += is_odd((double)v[i]);
        all++;
    }
    return (double)odd / (double)all;
}

enum pnet_status pnet_kitti_doubt(
    struct pnet_file_parts *f, int names, char text[120], struct pnet_error *e)
{
    const struct pnet_bytes *b = &f->bytes;
    (void)e;
    size_t n = b->size / 4 < LOOK_AT ? b->size / 4 : LOOK_AT;
    int width = names ? names : usual_width(f->path);
    text[0] = '\0';
    if (n < LOOK_LEAST) return PNET_OK;
    float *values = malloc(n * sizeof *values);
    if (!values) return PNET_OK; /* a warning is no reason to fail */
    memcpy(values, b->data, n * sizeof *values);
    bool enough = n >= STEPS_LEAST && n >= 2 * (size_t)width;
    int best = enough ? find_width(values, n, width) : width;
    double odd = odd_share(values, n, width);
    free(values);
    if (best != width && names)
        snprintf(text, 120,
            "looks like %d numbers a point, but %d columns are named: --columns names its own",
            best, names);
    else if (best != width)
        snprintf(text, 120, "looks like %d numbers a point, not %d: give the names of its columns",
            best, width);
    else if (odd > 0.01)
        pnet_number_format(text, 120,
            "%.0f%% of its coordinates are no likely float32: is it another format?", 100 * odd);
    return PNET_OK;
}

static enum pnet_status begin_writing(struct pnet_writing *w, struct pnet_error *e)
{
    (void)e;
    w->measures = 1;
    return PNET_OK;
}

static enum pnet_status see_rows(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    (void)e;
    pnet_xyz_see(w->own, piece);
    return PNET_OK;
}

/* There is no head, but all has been seen. */
static enum pnet_status check_single(struct pnet_writing *w, struct pnet_error *e)
{
    const struct pnet_xyz_seen *seen = w->own;
    if (seen->single_loss <= PNET_SINGLE_LOSS_M) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%.400s: a .bin holds float32, in which these coordinates would be off by up to %.2g "
        "m: write .ply, .pcd, .npy or .csv",
        w->path, seen->single_loss);
}

static enum pnet_status put_rows(
    struct pnet_writing *w, const struct pnet_cloud *piece, struct pnet_error *e)
{
    static const enum pnet_scalar types[] = {PNET_F32, PNET_F32};
    struct pnet_cloud copy = *piece;
    const struct pnet_field *intensity = pnet_cloud_field(piece, "intensity");
    struct pnet_field fields[2];
    uint8_t *zeros = calloc(piece->rows ? (size_t)piece->rows : 1, 1);
    if (!zeros) return pnet_error_memory(e);
    fields[0] = intensity ? *intensity : (struct pnet_field){.type = PNET_U8, .data = zeros};
    copy.fields = fields;
    copy.field_count = 1;
    const struct pnet_field *ring = pnet_cloud_field(piece, "ring");
    if (pnet_path_ends(w->path, ".pcd.bin")) {
        fields[1] = ring ? *ring : (struct pnet_field){.type = PNET_U8, .data = zeros};
        copy.field_count = 2;
    }
    enum pnet_status status = pnet_cloud_records(&copy, PNET_F32, types, w->f, e);
    free(zeros);
    return status;
}

const struct pnet_writing_kind pnet_kitti_writing = {.size = sizeof(struct pnet_xyz_seen),
    .begin = begin_writing,
    .see = see_rows,
    .head = check_single,
    .put = put_rows};

/* Fills out[expected] with labels of `size` bytes each. */
static enum pnet_status read_labels(
    const char *path, int64_t expected, int64_t size, void *out, struct pnet_error *e)
{
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    if (b.size % (uint64_t)size || b.size / (uint64_t)size != (uint64_t)expected)
        status = pnet_error_set(e, PNET_BAD_DATA,
            "%s: %zu bytes for a cloud of %" PRId64 " points: expected %" PRId64
            " byte%s a point; a .label file has 4 (SemanticKITTI), a .bin file of labels 1 "
            "(nuScenes)",
            path, b.size, expected, size, size == 1 ? "" : "s");
    else if (b.size)
        memcpy(out, b.data, b.size);
    pnet_bytes_free(&b);
    return status;
}

enum pnet_status pnet_labels_read(
    const char *path, int64_t expected, uint32_t *out, struct pnet_error *e)
{
    return read_labels(path, expected, sizeof *out, out, e);
}

enum pnet_status pnet_labels_read_bytes(
    const char *path, int64_t expected, uint8_t *out, struct pnet_error *e)
{
    return read_labels(path, expected, sizeof *out, out, e);
}
