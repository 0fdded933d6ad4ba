/* The caller's arrays as a batch. */
#include "library/session_bind.h"

#include <stdlib.h>
#include <string.h>

void *pnet_binding_room(struct pnet_binding *b, size_t bytes, struct pnet_error *e)
{
    void *room = malloc(bytes + 1);
    if (!room)
        pnet_error_memory(e);
    else
        b->copies[b->copy_count++] = room;
    return room;
}

/* Finds the value "INPUT.FIELD", or "INPUT" if `field` is NULL; NULL: it is not there. */
static const struct pnet_value *find(
    const struct pnet_binding *b, const char *input, const char *field)
{
    size_t length = strlen(input);
    for (size_t i = 0; i < b->count; i++) {
        const char *name = b->values[i].name;
        if (strncmp(name, input, length) != 0) continue;
        bool is_it = field ? name[length] == '.' && strcmp(name + length + 1, field) == 0
                           : name[length] == '\0';
        if (is_it) return &b->values[i];
    }
    return NULL;
}

static enum pnet_status check_shape(
    const struct pnet_value *v, int64_t rows, int64_t width, const char *why, struct pnet_error *e)
{
    const struct pnet_array *a = &v->array;
    if (a->width != width || (rows >= 0 && a->rows != rows))
        return pnet_error_set(e, PNET_USAGE, "%s: [%lld, %lld], expected [%lld, %lld]%s", v->name,
            (long long)a->rows, (long long)a->width, (long long)(rows >= 0 ? rows : a->rows),
            (long long)width, why);
    return pnet_library_check_rows(v->name, a, "a batch has", e);
}

static enum pnet_status wrong_type(
    const struct pnet_value *v, const char *expected, struct pnet_error *e)
{
    return pnet_error_set(
        e, PNET_USAGE, "%s: dtype %d, expected %s", v->name, (int)v->array.dtype, expected);
}

/* The same for [rows, width] of 4 bytes. */
static void *copy_room(struct pnet_binding *b, const struct pnet_array *a, struct pnet_error *e)
{
    return pnet_binding_room(b, (size_t)a->rows * (size_t)a->width * 4, e);
}

/* Gives float32 [rows, width], contiguous. */
static enum pnet_status take_floats(
    struct pnet_binding *b, const struct pnet_value *v, void **to, struct pnet_error *e)
{
    static const float none[1];
    const struct pnet_array *a = &v->array;
    if (a->dtype != PNET_DTYPE_F32) return wrong_type(v, "PNET_DTYPE_F32", e);
    int64_t stride = pnet_library_stride(a);
    *to = (void *)(a->data ? a->data : none); /* only read */
    if (b->session->there) return pnet_binding_check(b, v, e);
    if (!a->data || stride == a->width || a->rows < 2) return PNET_OK;
    float *copy = *to = copy_room(b, a, e);
    if (!copy) return PNET_NO_MEMORY;
    for (int64_t i = 0; i < a->rows; i++)
        memcpy(copy + i * a->width, (const float *)a->data + i * stride,
            (size_t)a->width * sizeof *copy);
    return PNET_OK;
}

enum pnet_status pnet_binding_bad_class(
    const struct pnet_value *v, int64_t row, int64_t label, int32_t classes, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: row %lld: the label %lld is none of 0 .. %d, or -1", v->name, (long long)row,
        (long long)label, (int)classes - 1);
}

/* Gives int32 [rows]: classes, or -1. */
static enum pnet_status take_labels(struct pnet_binding *b, const struct pnet_value *v,
    int32_t classes, void **to, struct pnet_error *e)
{
    static const int32_t none[1];
    const struct pnet_array *a = &v->array;
    if (!pnet_library_is_integer(a)) return wrong_type(v, "PNET_DTYPE_I32 or PNET_DTYPE_I64", e);
    if (b->session->there) return pnet_binding_take_classes(b, v, classes, to, e);
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t label = pnet_library_integer(a, i);
        if (label < -1 || label >= classes) return pnet_binding_bad_class(v, i, label, classes, e);
    }
    *to = (void *)(a->data ? a->data : none); /* only read */
    if (a->dtype == PNET_DTYPE_I32 && (pnet_library_stride(a) == 1 || a->rows < 2)) return PNET_OK;
    int32_t *copy = *to = copy_room(b, a, e);
    if (!copy) return PNET_NO_MEMORY;
    for (int64_t i = 0; i < a->rows; i++) copy[i] = (int32_t)pnet_library_integer(a, i);
    return PNET_OK;
}

static const char *position_of(const struct pnet_input *in)
{
    for (int k = 0; k < in->field_count; k++)
        if (in->fields[k].kind == PNET_INPUT_POSITION) return in->fields[k].name;
    return "";
}

static enum pnet_status missing(
    const struct pnet_input *in, const char *field, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_USAGE, "%s%s%s is missing: the model reads it", in->name,
        field ? "." : "", field ? field : "");
}

/* How many samples a cloud has; *rows: its points. */
static enum pnet_status count_samples(const struct pnet_binding *b, const struct pnet_input *in,
    int64_t *rows, int64_t *samples, struct pnet_error *e)
{
    const char *position = position_of(in);
    const struct pnet_value *xyz = find(b, in->name, position), *splits = find(b, in->name, NULL);
    if (!xyz) return missing(in, position, e);
    enum pnet_status st = check_shape(xyz, -1, 3, "", e);
    if (st) return st;
    *rows = xyz->array.rows;
    *samples = 1;
    if (!splits) return PNET_OK;
    st = pnet_library_check_splits(splits->name, &splits->array, *rows, "the cloud", e);
    if (!st) *samples = splits->array.rows - 1;
    return st;
}

static enum pnet_status find_samples(struct pnet_binding *b, struct pnet_error *e)
{
    const char *first = NULL;
    for (int i = 0; i < b->plan->input_count; i++) {
        const struct pnet_input *in = &b->plan->inputs[i];
        int64_t rows = 0, samples = 1;
        if (in->unused || pnet_input_is_pose(in)) continue;
        enum pnet_status st = count_samples(b, in, &rows, &samples, e);
        if (st) return st;
        if (first && samples != b->batch.samples)
            return pnet_error_set(e, PNET_USAGE, "%s has %lld samples, and %s has %d", in->name,
                (long long)samples, first, (int)b->batch.samples);
        if (!first) first = in->name;
        b->batch.samples = (int32_t)samples;
    }
    return PNET_OK;
}

static enum pnet_status take_field(struct pnet_binding *b, const struct pnet_input *in, int field,
    struct pnet_batch_input *to, struct pnet_error *e)
{
    const struct pnet_input_field *f = &in->fields[field];
    bool pose = f->kind == PNET_INPUT_POSE;
    const struct pnet_value *v = find(b, in->name, pose ? NULL : f->name);
    if (f->kind == PNET_INPUT_POSITION) return take_floats(b, v, (void **)&to->xyz, e);
    if (f->unused) return PNET_OK;
    if (!v) return missing(in, pose ? NULL : f->name, e);
    int64_t rows = f->per_cloud ? b->batch.samples : to->rows;
    int64_t width = f->kind == PNET_INPUT_CLASS ? 1 : f->width;
    enum pnet_status st =
        check_shape(v, rows, width, f->per_cloud ? ": a row for each sample" : "", e);
    if (st) return st;
    if (f->kind == PNET_INPUT_CLASS) return take_labels(b, v, f->classes, &to->fields[field], e);
    return take_floats(b, v, &to->fields[field], e);
}

static enum pnet_status take_input(
    struct pnet_binding *b, int input, int64_t *splits, struct pnet_error *e)
{
    const struct pnet_input *in = &b->plan->inputs[input];
    struct pnet_batch_input *to = &b->batch.inputs[input];
    int64_t rows = 0, samples = 1;
    enum pnet_status st = PNET_OK;
    static float none[1];
    to->row_splits = splits;
    to->xyz = none; /* of a cloud without points */
    if (!in->unused && !pnet_input_is_pose(in)) {
        st = count_samples(b, in, &rows, &samples, e);
        if (st) return st;
        const struct pnet_value *given = find(b, in->name, NULL);
        to->rows = rows;
        splits[1] = rows; /* of one sample */
        for (int64_t i = 0; given && i <= samples; i++)
            splits[i] = pnet_library_integer(&given->array, i);
    }
    for (int k = 0; k < in->field_count && !st && !in->unused; k++)
        st = take_field(b, in, k, to, e);
    return st;
}

/* Is it a value of the model, whether the plan reads it or not? */
static bool is_known(const struct pnet_plan *p, const char *name)
{
    size_t length = strcspn(name, ".");
    for (int i = 0; i < p->input_count; i++) {
        const struct pnet_input *in = &p->inputs[i];
        if (strncmp(in->name, name, length) != 0 || in->name[length]) continue;
        if (!name[length]) return true;
        for (int k = 0; k < in->field_count && !pnet_input_is_pose(in); k++)
            if (strcmp(in->fields[k].name, name + length + 1) == 0) return true;
    }
    return false;
}

static enum pnet_status check_names(const struct pnet_binding *b, struct pnet_error *e)
{
    for (size_t i = 0; i < b->count; i++) {
        const char *name = b->values[i].name;
        if (!name || !is_known(b->plan, name))
            return pnet_error_set(
                e, PNET_USAGE, "the model has no input `%s`", name ? name : "NULL");
        for (size_t k = 0; k < i; k++)
            if (strcmp(b->values[k].name, name) == 0)
                return pnet_error_set(e, PNET_USAGE, "%s is there twice", name);
    }
    return PNET_OK;
}

static enum pnet_status fill(struct pnet_binding *b, struct pnet_error *e)
{
    const struct pnet_plan *p = b->plan;
    size_t fields = 0, inputs = (size_t)p->input_count;
    for (size_t i = 0; i < inputs; i++) fields += (size_t)p->inputs[i].field_count;
    b->copies = calloc(b->count + 2, sizeof *b->copies); /* one of each, and the list of values */
    b->fields = calloc(fields + 1, sizeof *b->fields);
    b->batch.inputs = calloc(inputs + 1, sizeof *b->batch.inputs);
    b->batch.input_count = p->input_count;
    b->batch.there = b->session->there;
    b->batch.samples = 1;
    if (!b->copies || !b->fields || !b->batch.inputs) return pnet_error_memory(e);
    enum pnet_status st = check_names(b, e);
    if (!st && b->session->there) st = pnet_binding_bring_splits(b, e);
    if (!st) st = find_samples(b, e);
    if (st) return st;
    size_t each = (size_t)b->batch.samples + 1;
    b->splits = calloc(inputs * each + 1, sizeof *b->splits);
    if (!b->splits) return pnet_error_memory(e);
    void **next = b->fields;
    for (size_t i = 0; i < inputs && !st; i++) {
        b->batch.inputs[i].fields = next;
        next += p->inputs[i].field_count;
        st = take_input(b, (int)i, b->splits + i * each, e);
    }
    return st;
}

static enum pnet_status bind(struct pnet_binding *b, struct pnet_error *e)
{
    struct pnet_session *s = b->session;
    enum pnet_status st = fill(b, e);
    if (!st) st = pnet_runner_prepare(s->runner, 0, &b->batch, e); /* and waits */
    if (!st) s->state = PNET_SESSION_BATCH;
    for (size_t i = 0; i < b->copy_count; i++) free(b->copies[i]);
    free(b->copies);
    free(b->fields);
    free(b->splits);
    free(b->batch.inputs);
    struct pnet_error failed; /* what failed before tells more */
    if (s->there && st) (void)pnet_device_wait(s->home.device, &failed);
    pnet_home_give(&s->home, s->home.stream, &b->rooms);
    return st;
}

enum pnet_status pnet_session_bind(
    struct pnet_session *s, const struct pnet_value *values, size_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s));
    if (count) PNET_REQUIRE(e, PNET_A(ANY, values));
    PNET_OWN_ERROR(e);
    struct pnet_binding b = {.session = s, .plan = s->plan, .values = values, .count = count};
    s->state = PNET_SESSION_EMPTY;
    enum pnet_status st = pnet_library_begin(s, e);
    return st ? st : pnet_library_end(s, bind(&b, e), e);
}
