/* Data sets: splits, classes and the label map. */
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_array.h"
#include "runtime/data/dataset_index.h"
#include "runtime/data/dataset_labels.h"
#include "runtime/data/dataset_pieces.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pnet_task_name(enum pnet_task t)
{
    static const char *const names[] = {
        "segmentation", "classification", "registration", "completion"};
    return names[t];
}

bool pnet_task_pairs(enum pnet_task t)
{
    return t == PNET_REGISTRATION || t == PNET_COMPLETION;
}

const char *const *pnet_task_sides(enum pnet_task t)
{
    static const char *const of_registration[] = {"source", "target"}, *const of_completion[] = {
                                                                           "partial", "full"};
    return t == PNET_COMPLETION ? of_completion : of_registration;
}

const char *pnet_split_name(enum pnet_split s)
{
    static const char *const names[PNET_SPLITS] = {"train", "val", "test"};
    return names[s];
}

static void free_words(char **words, int count)
{
    for (int i = 0; i < count; i++) free(words[i]);
    free(words);
}

void pnet_entry_free(struct pnet_entry *entry)
{
    if (entry->pair) {
        free(entry->pair->target);
        free(entry->pair->information);
    }
    free(entry->pair);
    free(entry->cloud);
    free(entry->labels);
}

void pnet_dataset_free(struct pnet_dataset *d)
{
    if (!d) return;
    for (int s = 0; s < PNET_SPLITS; s++) {
        for (int64_t i = 0; i < d->counts[s]; i++) pnet_entry_free(&d->entries[s][i]);
        free(d->entries[s]);
    }
    for (int i = 0; i < d->array_count; i++) pnet_array_free(&d->arrays[i]);
    free(d->arrays);
    free(d->views);
    free(d->partials);
    free_words(d->classes, d->class_count);
    free_words(d->columns, d->column_count);
    free(d->raw);
    free(d->raw_class);
    free(d->label_field);
    free(d->coordinates);
    free(d->path);
    free(d);
}

int32_t pnet_dataset_label(const struct pnet_dataset *d, int64_t raw)
{
    int low = 0, high = d->map_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (d->raw[middle] == raw) return d->raw_class[middle];
        if (d->raw[middle] < raw)
            low = middle + 1;
        else
            high = middle;
    }
    if (!d->mapped && raw >= 0 && raw < d->class_count) return (int32_t)raw;
    return d->others;
}

static enum pnet_status check_field(const struct pnet_dataset *d, const char *input,
    const struct pnet_input_field *f, struct pnet_error *e)
{
    bool clouds = d->task != PNET_SEGMENTATION;
    if (d->task == PNET_REGISTRATION)
        return pnet_error_set(e, PNET_USAGE,
            "%s.%s wants labels, but the task of %s is registration: its pairs have none", input,
            f->name, d->path);
    if (!d->class_count)
        return pnet_error_set(e, PNET_USAGE,
            "%s.%s wants labels, but %s lists no `classes`: list them, and give each entry a "
            "`label`",
            input, f->name, d->path);
    if (f->per_cloud != clouds)
        return pnet_error_set(e, PNET_USAGE,
            "%s.%s wants a label per %s, but the task of %s is %s: it has one per %s", input,
            f->name, f->per_cloud ? "cloud" : "point", d->path, pnet_task_name(d->task),
            clouds ? "cloud" : "point");
    if (f->classes != d->class_count)
        return pnet_error_set(e, PNET_USAGE,
            "%s.%s is of %d classes, but %s has %d: declare class[%d], or set the model's param",
            input, f->name, f->classes, d->path, d->class_count, d->class_count);
    return PNET_OK;
}

enum pnet_status pnet_dataset_check(const struct pnet_dataset *d, const struct pnet_input *inputs,
    int input_count, struct pnet_error *e)
{
    for (int i = 0; i < input_count; i++)
        for (int k = 0; k < inputs[i].field_count && !inputs[i].unused; k++) {
            const struct pnet_input_field *f = &inputs[i].fields[k];
            if (f->unused) continue;
            if (f->kind == PNET_INPUT_POSE && d->task != PNET_REGISTRATION)
                return pnet_error_set(e, PNET_USAGE,
                    "%s is the pose of a pair, but the task of %s is %s, not registration",
                    inputs[i].name, d->path, pnet_task_name(d->task));
            if (f->kind != PNET_INPUT_CLASS) continue;
            enum pnet_status status = check_field(d, inputs[i].name, f, e);
            if (status) return status;
        }
    return PNET_OK;
}

void pnet_entry_name(const struct pnet_entry *entry, char *name, int size)
{
    if (entry->pair && entry->array >= 0)
        snprintf(name, (size_t)size, "%s[%" PRId64 "]", entry->cloud, entry->row);
    else if (entry->pair && entry->pair->target)
        snprintf(name, (size_t)size, "%s to %s", entry->cloud, entry->pair->target);
    else if (entry->pair)
        snprintf(name, (size_t)size, "%s, view %" PRId64, entry->cloud, entry->pair->view);
    else if (entry->array < 0)
        snprintf(name, (size_t)size, "%s", entry->cloud);
    else
        snprintf(name, (size_t)size, "%s[%" PRId64 "]", entry->cloud, entry->row);
}

enum pnet_status pnet_dataset_no_labels(const struct pnet_dataset *d,
    const struct pnet_entry *entry, const struct pnet_cloud *c, struct pnet_error *e)
{
    char name[512], fields[512] = "x, y, z";
    pnet_entry_name(entry, name, sizeof name);
    if (entry->array >= 0)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: no labels: the entry names no `labels`", name);
    for (int i = 0; i < c->field_count; i++) {
        size_t n = strlen(fields);
        snprintf(fields + n, sizeof fields - n, ", %s", c->fields[i].name);
    }
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: no labels: there is no field `%.80s` (label_field of %s); the fields are %s", name,
        d->label_field, d->path, fields);
}

enum pnet_status pnet_dataset_count(
    const struct pnet_dataset *d, enum pnet_split split, int64_t *counts, struct pnet_error *e)
{
    return pnet_dataset_survey(d, split, counts, NULL, NULL, e);
}

/* Counts the labels of a cloud, in counts[class_count]. */
static void count_labels(const int32_t *labels, int64_t rows, int64_t *counts)
{
    for (int64_t k = 0; k < rows; k++)
        if (labels[k] >= 0) counts[labels[k]]++;
}

/* Who is told the warnings about clouds; `tell` may be NULL. */
struct listener {
    void (*tell)(void *context, const char *warning);
    void *context;
};

/* `warning` is only there if somebody is told. */
static void tell_warning(const struct listener *to, const char *warning)
{
    if (to->tell && *warning) to->tell(to->context, warning);
}

static enum pnet_status count_cloud(const struct pnet_dataset *d, enum pnet_split split,
    int64_t index, int64_t *counts, const struct listener *to, struct pnet_error *e)
{
    struct pnet_labelled l;
    char warning[256];
    enum pnet_status status =
        pnet_dataset_load(d, split, index, true, &l, to->tell ? warning : NULL, e);
    if (status) return status;
    tell_warning(to, warning);
    if (!l.label_count && l.cloud.rows)
        status = pnet_dataset_no_labels(d, &d->entries[split][index], &l.cloud, e);
    if (!status) count_labels(l.labels, l.label_count, counts);
    pnet_labelled_free(&l);
    return status;
}

/* Labels in a field of a cloud that comes in pieces. */
struct counting {
    const struct pnet_dataset *d;
    const char *path;
    int64_t *counts;
};

static enum pnet_status count_piece(
    void *to, const struct pnet_cloud *c, int64_t first, struct pnet_error *e)
{
    const struct counting *n = to;
    const struct pnet_raw_labels raw = {.field = pnet_cloud_field(c, n->d->label_field),
        .count = c->rows,
        .path = n->path,
        .of_field = true};
    if (!raw.field) return c->rows ? PNET_BAD_DATA : PNET_OK;
    for (int64_t i = 0; i < c->rows; i++) {
        int32_t label;
        int64_t row = first + (c->file_row ? c->file_row[i] : i);
        enum pnet_status status = pnet_labels_convert(n->d, &raw, i, row, &label, e);
        if (status) return status;
        count_labels(&label, 1, n->counts);
    }
    return PNET_OK;
}

/* Counts the labels of a large file whose labels are one of its fields; *done is false for others, and nothing is counted. */
static enum pnet_status count_large(const struct pnet_dataset *d, const struct pnet_entry *entry,
    int64_t *counts, const struct listener *to, bool *done, struct pnet_error *e)
{
    const struct pnet_cloud_hints hints = pnet_dataset_hints(d);
    char warning[256];
    *done = false;
    if (entry->array >= 0 || entry->labels) return PNET_OK;
    int64_t *own = calloc((size_t)d->class_count + 1, sizeof *own);
    struct counting n = {d, entry->cloud, own};
    if (!own) return pnet_error_memory(e);
    enum pnet_status status = pnet_see_large_cloud(
        entry->cloud, &hints, count_piece, &n, to->tell ? warning : NULL, done, e);
    if (*done) tell_warning(to, warning);
    for (int c = 0; c < d->class_count && *done; c++) counts[c] += own[c];
    free(own);
    return status;
}

enum pnet_status pnet_dataset_survey(const struct pnet_dataset *d, enum pnet_split split,
    int64_t *counts, void (*tell)(void *context, const char *warning), void *context,
    struct pnet_error *e)
{
    const struct listener to = {tell, context};
    memset(counts, 0, (size_t)d->class_count * sizeof *counts);
    if (d->task == PNET_REGISTRATION) return PNET_OK;
    for (int64_t i = 0; i < d->counts[split]; i++) {
        const struct pnet_entry *entry = &d->entries[split][i];
        bool done;
        if (d->task != PNET_SEGMENTATION) {
            if (entry->label >= 0) counts[entry->label]++;
            continue;
        }
        enum pnet_status status = count_large(d, entry, counts, &to, &done, e);
        if (!status && !done) status = count_cloud(d, split, i, counts, &to, e);
        if (status) return status;
    }
    return PNET_OK;
}

void pnet_class_weights(const int64_t *counts, int count, double *weights)
{
    double total = 0, sum = 0; /* sum: over all labels, of the unscaled weight of the class */
    for (int i = 0; i < count; i++) total += (double)counts[i];
    for (int i = 0; i < count; i++) sum += sqrt((double)counts[i] * total);
    for (int i = 0; i < count; i++)
        weights[i] = counts[i] ? sqrt(total / (double)counts[i]) * total / sum : 1;
}
