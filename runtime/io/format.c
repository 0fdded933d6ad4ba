#include "runtime/io/cloud_doubts.h"
#include "runtime/io/foreign.h"
#include "runtime/io/format.h"
#include "runtime/io/rows.h"
#include "runtime/io/text.h"
#include "runtime/io/writing.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ENDINGS_MOST = 4 };

struct format {
    const char *name;
    const char *endings[ENDINGS_MOST + 1];     /* with their dots, then NULL */
    bool (*probe)(const struct pnet_bytes *b); /* NULL: recognised only by name */
    enum pnet_status (*read)(
        const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e);
    const struct pnet_writing_kind *writing; /* NULL: read only */
    /* of a format that is not written everywhere: tells whether it is here; NULL for others */
    enum pnet_status (*check_output)(const char *path, struct pnet_error *e);
    /* for files that do not say all themselves; NULL for others: */
    enum pnet_status (*read_as)(const struct pnet_bytes *b, const char *path,
        const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e);
    pnet_doubt_file *doubt;
    /* for files that are probed, and whose first bytes declare fields; NULL for others: */
    bool (*peek)(const struct pnet_bytes *b, const char *path, struct pnet_cloud *c);
    pnet_rows_open *open; /* for files that are read in pieces; NULL for others */
};

/* Probed in this order: formats with fewer marks of their own come later. */
static const struct format formats[] = {
    {.name = "PLY",
        .endings = {".ply"},
        .probe = pnet_ply_probe,
        .read = pnet_ply_read,
        .writing = &pnet_ply_writing,
        .open = pnet_ply_open,
        .peek = pnet_ply_peek},
    {.name = "PCD",
        .endings = {".pcd"},
        .probe = pnet_pcd_probe,
        .read = pnet_pcd_read,
        .writing = &pnet_pcd_writing,
        .open = pnet_pcd_open},
    {.name = "LAS",
        .endings = {".las"},
        .probe = pnet_las_probe,
        .read = pnet_las_read,
        .writing = &pnet_las_writing,
        .doubt = pnet_las_doubt,
        .peek = pnet_las_peek,
        .open = pnet_las_open},
    {.name = "LAZ",
        .endings = {".laz"},
        .probe = pnet_laz_probe,
        .read = pnet_las_read,
        .writing = &pnet_laz_writing,
        .check_output = pnet_laz_check_output,
        .doubt = pnet_las_doubt,
        .peek = pnet_las_peek,
        .open = pnet_las_open},
    {.name = "NPY",
        .endings = {".npy"},
        .probe = pnet_npy_probe,
        .read = pnet_npy_cloud_read,
        .writing = &pnet_npy_writing,
        .read_as = pnet_npy_cloud_read_as,
        .open = pnet_npy_open},
    {.name = "NPZ",
        .endings = {".npz"},
        .probe = pnet_npz_probe,
        .read = pnet_npz_cloud_read,
        .read_as = pnet_npz_cloud_read_as},
    {.name = "HDF5",
        .endings = {".h5", ".hdf5"},
        .probe = pnet_hdf5_probe,
        .read = pnet_hdf5_cloud_read,
        .read_as = pnet_hdf5_cloud_read_as},
    {.name = "OFF", .endings = {".off"}, .probe = pnet_off_probe, .read = pnet_off_read},
    {.name = "OBJ", .endings = {".obj"}, .read = pnet_obj_read},
    {.name = "Sydney objects", .probe = pnet_sydney_probe, .read = pnet_sydney_read},
    {.name = "KITTI .bin",
        .endings = {".bin"},
        .read = pnet_kitti_read,
        .writing = &pnet_kitti_writing,
        .read_as = pnet_kitti_read_as,
        .doubt = pnet_kitti_doubt,
        .open = pnet_kitti_open},
    {.name = "text",
        .endings = {".xyz", ".txt", ".csv", ".pts"},
        .probe = pnet_table_probe,
        .read = pnet_table_read,
        .writing = &pnet_table_writing},
};
enum { FORMATS = sizeof formats / sizeof *formats };

bool pnet_path_ends(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && pnet_span_is_nocase(pnet_span_of(path + n - m), ending);
}

static bool has_ending(const struct format *f, const char *path)
{
    int i = 0;
    while (f->endings[i] && !pnet_path_ends(path, f->endings[i])) i++;
    return f->endings[i] != NULL;
}

const char *pnet_cloud_ending(int i)
{
    for (int f = 0; f < FORMATS; f++)
        for (const char *const *ending = formats[f].endings; *ending; ending++)
            if (i-- == 0) return *ending + 1;
    return NULL;
}

bool pnet_cloud_read_by(const char *path)
{
    int i = 0;
    while (i < FORMATS && !has_ending(&formats[i], path)) i++;
    return i < FORMATS;
}

/* Lists words for a message: "a, b or c". */
struct list {
    char text[160];
    size_t last; /* where the last word begins */
};

static void list_add(struct list *l, const char *word)
{
    size_t n = strlen(l->text);
    l->last = n ? n + 2 : 0;
    snprintf(l->text + n, sizeof l->text - n, "%s%s", n ? ", " : "", word);
}

static const char *list_end(struct list *l)
{
    char last[32];
    if (!l->last) return l->text;
    snprintf(last, sizeof last, "%s", l->text + l->last);
    snprintf(l->text + l->last - 2, sizeof l->text - l->last + 2, " or %s", last);
    return l->text;
}

enum pnet_status pnet_byte_error(
    const char *path, uint64_t offset, struct pnet_error *e, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    pnet_number_vformat(text, sizeof text, format, args);
    va_end(args);
    return pnet_error_set(e, PNET_BAD_DATA, "%.400s: byte %" PRIu64 ": %s", path, offset, text);
}

/* Recognises by content, then by name: a name may be wrong, and standard input has none. Text comes last: its probe only
   finds words and numbers, which an OBJ or a damaged PLY has too. */
static const struct format *recognise(const struct pnet_bytes *b, const char *path)
{
    const struct format *text = &formats[FORMATS - 1];
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].probe && &formats[i] != text && formats[i].probe(b)) return &formats[i];
    if (pnet_foreign(b, path)) return NULL;
    for (int i = 0; i < FORMATS; i++)
        if (has_ending(&formats[i], path)) return &formats[i];
    return text->probe(b) ? text : NULL;
}

static enum pnet_status unknown_format(
    const struct pnet_bytes *b, const char *path, struct pnet_error *e)
{
    const char *foreign = pnet_foreign(b, path);
    if (foreign) return pnet_error_set(e, PNET_BAD_DATA, "%.500s: %s", path, foreign);
    struct list names = {.last = 0};
    for (int i = 0; i < FORMATS; i++) list_add(&names, formats[i].name);
    return pnet_error_set(
        e, PNET_BAD_DATA, "%.500s: byte 0: expected a point cloud: %s", path, list_end(&names));
}

enum pnet_status pnet_cloud_check_unit(const struct pnet_cloud *c,
    const struct pnet_cloud_hints *hints, const char *path, struct pnet_error *e)
{
    const struct pnet_axis_unit *z = &c->unit[1];
    if (!hints->unit.of_file || (c->metres[0] > 0 && c->metres[1] > 0)) return PNET_OK;
    if (c->unit[0].kind == PNET_AXIS_ANGLE)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.500s: x and y are %s, which no factor converts to metres: project the file", path,
            c->unit[0].name);
    const struct pnet_axis_unit *u = c->metres[0] > 0 ? z : &c->unit[0];
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.500s: unit: file: the file %s%s%s: name the unit, m, ft, us-ft ... (m,ft: of x and y, "
        "and of z)",
        path,
        u->kind == PNET_AXIS_UNCLEAR ? "is unclear about its unit (" : "does not state its unit",
        u->kind == PNET_AXIS_UNCLEAR ? u->name : "", u->kind == PNET_AXIS_UNCLEAR ? ")" : "");
}

void pnet_cloud_begin(struct pnet_cloud *c, const struct pnet_cloud_hints *hints)
{
    const struct pnet_unit_choice *unit = &hints->unit;
    *c = (struct pnet_cloud){.unit_of_file = unit->of_file};
    for (int i = 0; i < 2; i++) c->metres[i] = unit->axes[i] ? unit->axes[i]->metres : 0;
}

enum pnet_status pnet_format_open(struct pnet_file_parts *parts,
    const struct pnet_cloud_hints *hints, struct pnet_rows *r, struct pnet_cloud *c,
    pnet_doubt_file **doubt, struct pnet_error *e)
{
    const struct format *f = recognise(&parts->bytes, parts->path);
    if (!f) return unknown_format(&parts->bytes, parts->path, e);
    if (!f->open) return pnet_rows_whole(parts->path, f->name, e);
    *doubt = f->doubt;
    return f->open(parts, hints, r, c, e);
}

/* Writes what is doubtful about the cloud of a whole file. */
static enum pnet_status warn(const struct format *f, const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, const struct pnet_cloud *c, char warning[256],
    struct pnet_error *e)
{
    struct pnet_file_parts parts = pnet_file_parts_of(b, path);
    char doubt[PNET_DOUBT] = "";
    enum pnet_status status = f->doubt ? f->doubt(&parts, hints->column_count, doubt, e) : PNET_OK;
    if (status != PNET_OK) return status;
    if (!*doubt) pnet_doubt_width(c, hints->column_count, doubt);
    if (!*doubt) pnet_doubt_batch(c, hints->column_count, doubt);
    pnet_cloud_doubts(c, hints, path, doubt, warning);
    return PNET_OK;
}

enum pnet_status pnet_cloud_read_as(const char *path, const struct pnet_cloud_hints *hints,
    struct pnet_cloud *c, char warning[256], struct pnet_error *e)
{
    pnet_cloud_begin(c, hints);
    if (warning) warning[0] = '\0';
    struct pnet_bytes b;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    if (strcmp(path, "-") == 0) path = "standard input";
    const struct format *f = recognise(&b, path);
    if (!f)
        status = unknown_format(&b, path, e);
    else if (f->read_as && (hints->column_count || hints->coordinates))
        status = f->read_as(&b, path, hints, c, e);
    else
        status = f->read(&b, path, c, e);
    if (status == PNET_OK) status = pnet_cloud_check_unit(c, hints, path, e);
    if (status == PNET_OK && hints->origin) status = pnet_cloud_move_offset(c, hints->origin, e);
    if (status == PNET_OK && f && warning) status = warn(f, &b, path, hints, c, warning, e);
    if (status != PNET_OK) pnet_cloud_free(c);
    pnet_bytes_free(&b);
    return status;
}

enum pnet_status pnet_cloud_read(
    const char *path, struct pnet_cloud *c, char warning[256], struct pnet_error *e)
{
    return pnet_cloud_read_as(path, &(struct pnet_cloud_hints){.columns = NULL}, c, warning, e);
}

bool pnet_cloud_peek(const char *path, struct pnet_cloud *c)
{
    enum { FIRST = 1 << 16 };
    struct stat s;
    uint8_t *data = NULL;
    bool known = false;
    *c = (struct pnet_cloud){.rows = 0};
    FILE *f = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    if (f) data = malloc(FIRST);
    if (data) {
        struct pnet_bytes b = {.data = data, .size = fread(data, 1, FIRST, f)};
        int i = 0;
        while (i < FORMATS && !(formats[i].peek && formats[i].probe(&b))) i++;
        known = i < FORMATS && formats[i].peek(&b, path, c);
    }
    if (!known) pnet_cloud_free(c);
    free(data);
    if (f) fclose(f);
    return known;
}

/* Returns the format that a name asks for, or NULL. */
static const struct format *format_of(const char *path)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].writing && has_ending(&formats[i], path)) return &formats[i];
    return NULL;
}

bool pnet_cloud_written_as(const char *path)
{
    return format_of(path) != NULL;
}

/* The message of a name that does not end as one of the formats that are written. */
static enum pnet_status no_format(const char *path, struct pnet_error *e)
{
    struct list endings = {.last = 0};
    for (int i = 0; i < FORMATS; i++)
        for (int k = 0; formats[i].writing && formats[i].endings[k]; k++)
            list_add(&endings, formats[i].endings[k]);
    return pnet_error_set(
        e, PNET_USAGE, "%.500s: expected a name ending in %s", path, list_end(&endings));
}

enum pnet_status pnet_cloud_check_output(const char *path, struct pnet_error *e)
{
    const struct format *f = format_of(path);
    if (strcmp(path, "-") == 0) return PNET_OK;
    if (!f) return no_format(path, e);
    return f->check_output ? f->check_output(path, e) : PNET_OK;
}

const struct pnet_writing_kind *pnet_format_writing(const char *path, struct pnet_error *e)
{
    const struct format *f = strcmp(path, "-") == 0 ? &formats[0] : format_of(path);
    if (!f) no_format(path, e);
    return f ? f->writing : NULL;
}
