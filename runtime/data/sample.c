#include "runtime/data/sample.h"

#include <inttypes.h>
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the bytes of one row of a field; 0: the field has no data. */
static size_t row_size(const struct pnet_input_field *f)
{
    if (f->unused || f->kind == PNET_INPUT_POSITION) return 0;
    return f->kind == PNET_INPUT_FEATURE ? (size_t)f->width * sizeof(float) : sizeof(int32_t);
}

static size_t field_size(const struct pnet_input_field *f, int64_t rows)
{
    return row_size(f) * (size_t)(f->per_cloud ? 1 : rows);
}

void pnet_sample_free(struct pnet_sample *s)
{
    if (!s) return;
    for (int i = 0; s->fields && i < s->input->field_count; i++) free(s->fields[i]);
    free(s->fields);
    free(s->xyz);
    free(s);
}

/* Allocates a sample with room for its rows. */
static struct pnet_sample *new_sample(const struct pnet_input *input, int64_t rows)
{
    struct pnet_sample *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->input = input;
    s->rows = rows;
    s->xyz = malloc(rows ? (size_t)rows * 3 * sizeof(float) : 1);
    s->fields = calloc((size_t)input->field_count + 1, sizeof *s->fields);
    bool whole = s->xyz && s->fields;
    for (int i = 0; whole && i < input->field_count; i++) {
        const struct pnet_input_field *f = &input->fields[i];
        if (!row_size(f)) continue;
        size_t size = field_size(f, rows);
        s->fields[i] = malloc(size ? size : 1);
        whole = s->fields[i] != NULL;
    }
    if (whole) return s;
    pnet_sample_free(s);
    return NULL;
}

/* Takes classes from a field of the cloud; negative integers are ignored. */
static enum pnet_status take_classes(const struct pnet_input_field *f, const struct pnet_cloud *c,
    const char *name, const char *path, int32_t *out, struct pnet_error *e)
{
    const struct pnet_field *from = pnet_cloud_field(c, name);
    if (!from || f->per_cloud)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: %s `%s`, which %s is mapped to", path,
            from ? "a label of the whole cloud cannot come from the field" : "has no field", name,
            f->name);
    for (int64_t i = 0; i < c->rows; i++) {
        double v = pnet_field_get(from, i);
        if (!isfinite(v) || v != floor(v) || v >= f->classes)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%s: row %" PRId64 ": %s is %g, expected an integer below %d%s", path,
                c->file_row ? c->file_row[i] : i, name, v, f->classes,
                isnan(v) ? "; where NaN marks points without a label, take `label_field: "
                           "FIELD` and `map_other: ignore` of the data set instead"
                         : "");
        out[i] = v < 0 ? -1 : (int32_t)v;
    }
    return PNET_OK;
}

static enum pnet_status take_labels(const struct pnet_input_field *f, const int32_t *labels,
    int64_t label_count, int64_t rows, const char *path, int32_t *out, struct pnet_error *e)
{
    int64_t wanted = f->per_cloud ? 1 : rows;
    if (label_count != wanted)
        return pnet_error_set(e, PNET_BAD_DATA, "%s: has no labels for `%s`, which wants one a %s",
            path, f->name, f->per_cloud ? "cloud" : "point");
    for (int64_t i = 0; i < wanted; i++)
        if (labels[i] >= f->classes)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%s: label %" PRId32 " of row %" PRId64 " is beyond the %" PRId32
                " classes of `%s`",
                path, labels[i], i, f->classes, f->name);
    memcpy(out, labels, (size_t)wanted * sizeof *out);
    return PNET_OK;
}

enum pnet_status pnet_sample_make(const struct pnet_input *input, const struct pnet_input_map *map,
    const struct pnet_cloud *cloud, const int32_t *labels, int64_t label_count, const char *path,
    struct pnet_sample **sample, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    struct pnet_sample *s = new_sample(input, cloud->rows);
    *sample = NULL;
    if (!s) return pnet_error_memory(e);
    memcpy(s->offset, cloud->offset, sizeof s->offset);
    if (s->rows) memcpy(s->xyz, cloud->xyz, (size_t)s->rows * 3 * sizeof *s->xyz);
    for (int i = 0; i < input->field_count && !status; i++) {
        const struct pnet_input_field *f = &input->fields[i];
        const char *name;
        if (!s->fields[i]) continue;
        pnet_input_map_class(map, input, f, &name);
        if (f->kind == PNET_INPUT_FEATURE)
            status = pnet_input_map_feature(map, input, f, cloud, path, s->fields[i], e);
        else if (name)
            status = take_classes(f, cloud, name, path, s->fields[i], e);
        else
            status = take_labels(f, labels, label_count, s->rows, path, s->fields[i], e);
    }
    if (status)
        pnet_sample_free(s);
    else
        *sample = s;
    return status;
}

enum pnet_status pnet_sample_copy(
    const struct pnet_sample *s, struct pnet_sample **copy, struct pnet_error *e)
{
    *copy = new_sample(s->input, s->rows);
    if (!*copy) return pnet_error_memory(e);
    memcpy((*copy)->offset, s->offset, sizeof s->offset);
    if (s->rows) memcpy((*copy)->xyz, s->xyz, (size_t)s->rows * 3 * sizeof *s->xyz);
    for (int i = 0; i < s->input->field_count; i++)
        if (s->fields[i]) {
            assert((*copy)->fields[i]);
            memcpy((*copy)->fields[i], s->fields[i], field_size(&s->input->fields[i], s->rows));
        }
    return PNET_OK;
}

uint64_t pnet_sample_bytes(const struct pnet_sample *s)
{
    uint64_t bytes = sizeof *s + (uint64_t)s->rows * 3 * sizeof *s->xyz;
    for (int i = 0; i < s->input->field_count; i++)
        bytes += sizeof *s->fields + field_size(&s->input->fields[i], s->rows);
    return bytes;
}

/* Moves the rows to the front. They ascend, so none is overwritten before it is moved. */
static void thin(void *data, size_t size, const int64_t *rows, int64_t count)
{
    char *bytes = data;
    for (int64_t i = 0; i < count; i++)
        if (rows[i] != i) memcpy(bytes + (size_t)i * size, bytes + (size_t)rows[i] * size, size);
}

void pnet_sample_keep(struct pnet_sample *s, const int64_t *rows, int64_t count)
{
    thin(s->xyz, 3 * sizeof *s->xyz, rows, count);
    for (int i = 0; i < s->input->field_count; i++)
        if (s->fields[i] && !s->input->fields[i].per_cloud)
            thin(s->fields[i], row_size(&s->input->fields[i]), rows, count);
    s->rows = count;
}

static void gather(void *to, const void *from, size_t size, const int64_t *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)to + (size_t)i * size, (const char *)from + (size_t)rows[i] * size, size);
}

enum pnet_status pnet_sample_take(
    struct pnet_sample *s, const int64_t *rows, int64_t count, struct pnet_error *e)
{
    struct pnet_sample *taken = new_sample(s->input, count), swap;
    if (!taken) return pnet_error_memory(e);
    memcpy(taken->offset, s->offset, sizeof s->offset);
    gather(taken->xyz, s->xyz, 3 * sizeof *s->xyz, rows, count);
    for (int i = 0; i < s->input->field_count; i++) {
        const struct pnet_input_field *f = &s->input->fields[i];
        if (!s->fields[i]) continue;
        assert(taken->fields[i]);
        if (f->per_cloud)
            memcpy(taken->fields[i], s->fields[i], field_size(f, 1));
        else
            gather(taken->fields[i], s->fields[i], row_size(f), rows, count);
    }
    swap = *s;
    *s = *taken;
    *taken = swap;
    pnet_sample_free(taken);
    return PNET_OK;
}

/* Hashes coordinates and splits to 64 bits: multiply and fold, eight bytes a step. */
static uint64_t hash(uint64_t h, const void *data, size_t size)
{
    const char *p = data;
    for (; size; p += 8) {
        uint64_t word = 0;
        size_t n = size < 8 ? size : 8;
        memcpy(&word, p, n);
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
        size -= n;
    }
    return h;
}

static const uint64_t HASH_START = UINT64_C(0xCBF29CE484222325);

static uint64_t hash_input(uint64_t h, const struct pnet_batch_input *b, int32_t samples)
{
    h = hash(h, b->row_splits, (size_t)(samples + 1) * sizeof *b->row_splits);
    return hash(h, b->xyz, (size_t)b->rows * 3 * sizeof *b->xyz);
}

static void place(struct pnet_batch_input *to, const struct pnet_sample *s, int32_t sample)
{
    int64_t at = to->row_splits[sample];
    memcpy(to->xyz + 3 * at, s->xyz, (size_t)s->rows * 3 * sizeof *s->xyz);
    for (int i = 0; i < s->input->field_count; i++) {
        const struct pnet_input_field *f = &s->input->fields[i];
        if (!s->fields[i]) continue;
        size_t row = (size_t)(f->per_cloud ? sample : at);
        memcpy((char *)to->fields[i] + row * row_size(f), s->fields[i], field_size(f, s->rows));
    }
}

enum pnet_status pnet_inputs_batch(const struct pnet_input *inputs, int input_count,
    const int *which, int sides, const struct pnet_sample *const *const *samples, int32_t count,
    struct pnet_batch **batch, struct pnet_error *e)
{
    size_t length = (size_t)count + 1;
    int64_t *splits =
        calloc(((size_t)sides + 1) * length, sizeof *splits); /* none, then a part for each side */
    const int64_t **all = calloc((size_t)input_count, sizeof *all);
    enum pnet_status status = splits && all ? PNET_OK : pnet_error_memory(e);
    *batch = NULL;
    for (int i = 0; i < input_count && !status; i++) all[i] = splits;
    for (int k = 0; k < sides && !status; k++) {
        int64_t *own = splits + (size_t)(k + 1) * length;
        for (int32_t i = 0; i < count; i++) own[i + 1] = own[i] + samples[k][i]->rows;
        all[which[k]] = own;
    }
    if (!status) status = pnet_batch_new(inputs, input_count, count, all, batch, e);
    for (int k = 0; k < sides && !status; k++)
        for (int32_t i = 0; i < count; i++) place(&(*batch)->inputs[which[k]], samples[k][i], i);
    free(splits);
    free(all);
    return status;
}

enum pnet_status pnet_samples_batch(const struct pnet_input *inputs, int input_count, int input,
    const struct pnet_sample *const *samples, int32_t count, bool repeats,
    struct pnet_batch **batch, struct pnet_error *e)
{
    enum pnet_status status =
        pnet_inputs_batch(inputs, input_count, &input, 1, &samples, count, batch, e);
    if (status || !repeats) return status;
    uint64_t id = hash_input(HASH_START, &(*batch)->inputs[input], count);
    (*batch)->id = id ? id : 1;
    return PNET_OK;
}

enum pnet_status pnet_pairs_batch(const struct pnet_input *inputs, int input_count,
    const struct pnet_input_roles *roles, const struct pnet_sample *const *sources,
    const struct pnet_sample *const *targets, const struct pnet_pose *poses, int32_t count,
    bool repeats, struct pnet_batch **batch, struct pnet_error *e)
{
    const int which[2] = {roles->source, roles->target};
    const struct pnet_sample *const *const samples[2] = {sources, targets};
    enum pnet_status status =
        pnet_inputs_batch(inputs, input_count, which, 2, samples, count, batch, e);
    if (status) return status;
    struct pnet_batch_input *in = (*batch)->inputs;
    float *to = roles->pose >= 0 ? in[roles->pose].fields[0] : NULL;
    for (int64_t i = 0; to && i < count; i++)
        for (int k = 0; k < 16; k++) to[16 * i + k] = (float)poses[i].m[k];
    if (!repeats) return PNET_OK;
    uint64_t id = hash_input(HASH_START, &in[roles->source], count);
    id = hash_input(id, &in[roles->target], count);
    id = hash(id, poses, (size_t)count * sizeof *poses);
    (*batch)->id = id ? id : 1;
    return PNET_OK;
}
