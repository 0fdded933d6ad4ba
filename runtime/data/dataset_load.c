/* Loads an entry of a data set: the cloud and its labels, converted from raw labels to classes. */
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_array.h"
#include "runtime/data/dataset_labels.h"
#include "runtime/data/input_map.h"
#include "runtime/io/kitti.h"
#include "runtime/io/npy.h"
#include "runtime/io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 512 };

void pnet_labelled_free(struct pnet_labelled *l)
{
    pnet_cloud_free(&l->cloud);
    free(l->labels);
    *l = (struct pnet_labelled){.labels = NULL};
}

/* Returns the row of the file from which a row of the cloud comes. */
static int64_t file_row(const struct pnet_cloud *c, int64_t row)
{
    return c->file_row ? c->file_row[row] : row;
}

/* Selects the labels of the rows that were kept from `raw`, which has one for each row of the file. */
static enum pnet_status keep(const struct pnet_dataset *d, const struct pnet_raw_labels *raw,
    struct pnet_labelled *l, struct pnet_error *e)
{
    for (int64_t i = 0; i < l->cloud.rows; i++) {
        int64_t row = file_row(&l->cloud, i);
        enum pnet_status status = pnet_labels_convert(d, raw, row, row, &l->labels[i], e);
        if (status) return status;
    }
    return PNET_OK;
}

/* The same of a file with labels alone. */
static enum pnet_status keep_all(const struct pnet_dataset *d, enum pnet_scalar type, void *data,
    const char *path, struct pnet_labelled *l, struct pnet_error *e)
{
    const struct pnet_field f = {.type = type, .data = data};
    const struct pnet_raw_labels raw = {
        .field = &f, .count = l->cloud.file_rows, .path = path, .of_field = false};
    return keep(d, &raw, l, e);
}

static enum pnet_status from_field(
    const struct pnet_dataset *d, const char *path, struct pnet_labelled *l, struct pnet_error *e)
{
    const struct pnet_raw_labels raw = {.field = pnet_cloud_field(&l->cloud, d->label_field),
        .count = l->cloud.rows,
        .path = path,
        .of_field = true};
    if (!raw.field) {
        l->label_count = 0;
        return PNET_OK;
    }
    for (int64_t i = 0; i < l->cloud.rows; i++) {
        enum pnet_status status =
            pnet_labels_convert(d, &raw, i, file_row(&l->cloud, i), &l->labels[i], e);
        if (status) return status;
    }
    return PNET_OK;
}

/* SemanticKITTI: the class in the low 16 bits, the instance in the high ones. */
static enum pnet_status from_kitti(
    const struct pnet_dataset *d, const char *path, struct pnet_labelled *l, struct pnet_error *e)
{
    int64_t n = l->cloud.file_rows;
    uint32_t *raw = malloc(n ? (size_t)n * sizeof *raw : 1);
    if (!raw) return pnet_error_memory(e);
    enum pnet_status status = pnet_labels_read(path, n, raw, e);
    for (int64_t i = 0; i < n && !status; i++) raw[i] &= 0xffff;
    if (!status) status = keep_all(d, PNET_U32, raw, path, l, e);
    free(raw);
    return status;
}

/* nuScenes-lidarseg: one byte a point. */
static enum pnet_status from_bytes(
    const struct pnet_dataset *d, const char *path, struct pnet_labelled *l, struct pnet_error *e)
{
    int64_t n = l->cloud.file_rows;
    uint8_t *raw = malloc(n ? (size_t)n : 1);
    if (!raw) return pnet_error_memory(e);
    enum pnet_status status = pnet_labels_read_bytes(path, n, raw, e);
    if (!status) status = keep_all(d, PNET_U8, raw, path, l, e);
    free(raw);
    return status;
}

static enum pnet_status from_npy(
    const struct pnet_dataset *d, const char *path, struct pnet_labelled *l, struct pnet_error *e)
{
    struct pnet_npy a;
    enum pnet_status status = pnet_npy_read(path, &a, e);
    if (status) return status;
    if (a.count != l->cloud.file_rows)
        status = pnet_error_set(e, PNET_BAD_DATA,
            "%s: %" PRId64 " labels for a cloud of %" PRId64 " points", path, a.count,
            l->cloud.file_rows);
    else
        status = keep_all(d, a.type, a.data, path, l, e);
    pnet_npy_free(&a);
    return status;
}

static enum pnet_status parse_lines(
    struct pnet_text *t, double *raw, int64_t n, struct pnet_error *e)
{
    struct pnet_span line, word;
    int64_t count = 0;
    while (pnet_text_full_line(t, &line)) {
        double value = 0;
        if (count == n)
            return pnet_text_error(t, e, "more labels than the %" PRId64 " points of the cloud", n);
        if (!pnet_span_word(&line, &word) || !pnet_value_parse(word, PNET_F64, &value) ||
            !(isnan(value) || (fabs(value) < 0x1p53 && value == floor(value))) ||
            pnet_span_word(&line, &word))
            return pnet_text_error(t, e, "expected one integer, a label, a line");
        raw[count++] = value;
    }
    if (count < n)
        return pnet_text_error(
            t, e, "%" PRId64 " labels for a cloud of %" PRId64 " points", count, n);
    return PNET_OK;
}

static enum pnet_status from_text(
    const struct pnet_dataset *d, const char *path, struct pnet_labelled *l, struct pnet_error *e)
{
    int64_t n = l->cloud.file_rows;
    struct pnet_bytes b;
    struct pnet_text t;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    double *raw = malloc(n ? (size_t)n * sizeof *raw : 1);
    if (!raw) {
        pnet_bytes_free(&b);
        return pnet_error_memory(e);
    }
    pnet_text_begin(&t, &b, path);
    status = parse_lines(&t, raw, n, e);
    if (!status) status = keep_all(d, PNET_F64, raw, path, l, e);
    free(raw);
    pnet_bytes_free(&b);
    return status;
}

static enum pnet_status from_array(const struct pnet_dataset *d, const struct pnet_entry *entry,
    const char *name, struct pnet_labelled *l, struct pnet_error *e)
{
    const struct pnet_array *a = &d->arrays[entry->array];
    if (!a->labels.dims) {
        l->label_count = 0;
        return PNET_OK;
    }
    const struct pnet_field f = {.type = a->labels.type, .data = a->labels.data};
    const struct pnet_raw_labels raw = {.field = &f,
        .begin = entry->row * a->points.shape[1],
        .count = a->points.shape[1],
        .path = name};
    return keep(d, &raw, l, e);
}

static bool ends(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static enum pnet_status load_labels(const struct pnet_dataset *d, const struct pnet_entry *entry,
    const char *name, struct pnet_labelled *l, struct pnet_error *e)
{
    bool clouds = d->task == PNET_CLASSIFICATION;
    if (clouds && entry->label == PNET_LABEL_NONE) return PNET_OK;
    l->label_count = clouds ? 1 : l->cloud.rows;
    l->labels = malloc(l->label_count ? (size_t)l->label_count * sizeof *l->labels : 1);
    if (!l->labels) return pnet_error_memory(e);
    if (clouds) {
        l->labels[0] = entry->label;
        return PNET_OK;
    }
    if (entry->array >= 0) return from_array(d, entry, name, l, e);
    if (!entry->labels) return from_field(d, name, l, e);
    if (ends(entry->labels, ".npy")) return from_npy(d, entry->labels, l, e);
    if (ends(entry->labels, ".label")) return from_kitti(d, entry->labels, l, e);
    if (ends(entry->labels, ".bin")) return from_bytes(d, entry->labels, l, e);
    return from_text(d, entry->labels, l, e);
}

struct pnet_cloud_hints pnet_dataset_hints(const struct pnet_dataset *d)
{
    return (struct pnet_cloud_hints){.columns = d->columns,
        .column_count = d->column_count,
        .coordinates = d->coordinates,
        .unit = d->unit,
        .origin = pnet_origin_hint(&d->origin)};
}

enum pnet_status pnet_dataset_read_cloud(const struct pnet_dataset *d, const char *path,
    struct pnet_cloud *c, char warning[256], struct pnet_error *e)
{
    const struct pnet_cloud_hints hints = pnet_dataset_hints(d);
    enum pnet_status status = pnet_cloud_read_as(path, &hints, c, warning, e);
    if (!status) status = pnet_cloud_name_columns(d->columns, d->column_count, c, path, e);
    if (status) pnet_cloud_free(c);
    return status;
}

enum pnet_status pnet_dataset_read_row(const struct pnet_dataset *d, const char *path, int array,
    int64_t row, struct pnet_cloud *c, char warning[256], struct pnet_error *e)
{
    if (array < 0) return pnet_dataset_read_cloud(d, path, c, warning, e);
    const struct pnet_cloud_hints hints = pnet_dataset_hints(d);
    char name[NAME_MOST];
    snprintf(name, sizeof name, "%s[%" PRId64 "]", path, row);
    enum pnet_status status = pnet_array_cloud(&d->arrays[array], row, &hints, c, e);
    if (!status && warning) pnet_cloud_doubts(c, &hints, name, "", warning);
    if (!status) status = pnet_cloud_name_columns(d->columns, d->column_count, c, name, e);
    if (status) pnet_cloud_free(c);
    return status;
}

enum pnet_status pnet_dataset_load(const struct pnet_dataset *d, enum pnet_split split,
    int64_t index, bool with_labels, struct pnet_labelled *l, char warning[256],
    struct pnet_error *e)
{
    const struct pnet_entry *entry = &d->entries[split][index];
    char name[NAME_MOST];
    enum pnet_status status;
    *l = (struct pnet_labelled){.labels = NULL};
    if (warning) warning[0] = 0;
    pnet_entry_name(entry, name, NAME_MOST);
    status =
        pnet_dataset_read_row(d, entry->cloud, entry->array, entry->row, &l->cloud, warning, e);
    if (!status && with_labels) status = load_labels(d, entry, name, l, e);
    if (status) pnet_labelled_free(l);
    return status;
}
