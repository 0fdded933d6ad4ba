#include "runtime/plan/input.h"

#include <stdlib.h>
#include <string.h>

static size_t field_bytes(const struct pnet_input_field *f, int64_t rows, int32_t samples)
{
    size_t count = (size_t)(f->per_cloud ? samples : rows);
    size_t width = f->kind == PNET_INPUT_CLASS ? 1 : (size_t)f->width;
    return count * width * 4; /* float or int32_t */
}

/* At least one byte, so that NULL means out of memory, or not wanted. */
static void *zeroed(size_t bytes)
{
    return calloc(bytes ? bytes : 1, 1);
}

/* false: out of memory; what was made so far can be freed. */
static bool fill_input(struct pnet_batch_input *b, const struct pnet_input *input, int32_t samples,
    const int64_t *row_splits)
{
    size_t splits = ((size_t)samples + 1) * sizeof *row_splits;
    b->rows = row_splits[samples];
    b->row_splits = malloc(splits);
    b->xyz = zeroed((size_t)b->rows * 3 * sizeof *b->xyz);
    if (!b->row_splits || !b->xyz) return false;
    memcpy(b->row_splits, row_splits, splits);
    for (int k = 0; k < input->field_count; k++) {
        const struct pnet_input_field *f = &input->fields[k];
        if (f->kind == PNET_INPUT_POSITION || f->unused) continue;
        b->fields[k] = zeroed(field_bytes(f, b->rows, samples));
        if (!b->fields[k]) return false;
        float *pose = f->kind == PNET_INPUT_POSE ? b->fields[k] : NULL;
        for (int64_t i = 0; pose && i < 16 * (int64_t)samples; i++) pose[i] = i % 16 % 5 == 0;
    }
    return true;
}

enum pnet_status pnet_batch_new(const struct pnet_input *inputs, int input_count, int32_t samples,
    const int64_t *const *row_splits, struct pnet_batch **batch, struct pnet_error *e)
{
    struct pnet_batch *b = calloc(1, sizeof *b);
    *batch = NULL;
    if (!b) return pnet_error_memory(e);
    int fields = 0;
    for (int i = 0; i < input_count; i++) fields += inputs[i].field_count;
    /* One array holds the field pointers of all inputs: freeing it needs no widths. */
    void **pointers = zeroed((size_t)fields * sizeof *pointers);
    b->samples = samples;
    b->inputs = zeroed((size_t)input_count * sizeof *b->inputs);
    bool made = pointers && b->inputs && input_count > 0;
    if (made) {
        b->input_count = input_count;
        b->field_counts_sum = fields;
        for (int i = 0, first = 0; i < input_count; first += inputs[i++].field_count)
            b->inputs[i].fields = pointers + first;
    } else {
        free(pointers);
    }
    for (int i = 0; i < input_count && made; i++)
        made = fill_input(&b->inputs[i], &inputs[i], samples, row_splits[i]);
    if (made || (!input_count && b->inputs)) {
        *batch = b;
        return PNET_OK;
    }
    pnet_batch_free(b);
    return pnet_error_memory(e);
}

void pnet_batch_free(struct pnet_batch *b)
{
    if (!b) return;
    void **pointers = b->input_count ? b->inputs[0].fields : NULL;
    for (int k = 0; k < b->field_counts_sum; k++) free(pointers[k]);
    free(pointers);
    for (int i = 0; i < b->input_count; i++) {
        free(b->inputs[i].row_splits);
        free(b->inputs[i].xyz);
    }
    free(b->inputs);
    free(b);
}

static void gather(void *to, const void *from, size_t size, const int64_t *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)to + (size_t)i * size, (const char *)from + (size_t)rows[i] * size, size);
}

enum pnet_status pnet_batch_take(const struct pnet_input *inputs, const struct pnet_batch *b,
    int input, const int64_t *rows, int64_t count, struct pnet_batch **taken, struct pnet_error *e)
{
    const struct pnet_input *in = &inputs[input];
    const struct pnet_batch_input *from = &b->inputs[input];
    const int64_t none[2] = {0, 0}, own[2] = {0, count};
    const int64_t **splits = malloc((size_t)b->input_count * sizeof *splits + 1);
    *taken = NULL;
    if (!splits) return pnet_error_memory(e);
    for (int i = 0; i < b->input_count; i++) splits[i] = i == input ? own : none;
    enum pnet_status st = pnet_batch_new(inputs, b->input_count, 1, splits, taken, e);
    free(splits);
    if (st) return st;
    struct pnet_batch_input *to = &(*taken)->inputs[input];
    to->largest = from->largest;
    gather(to->xyz, from->xyz, 3 * sizeof *to->xyz, rows, count);
    for (int k = 0; k < in->field_count; k++) {
        const struct pnet_input_field *f = &in->fields[k];
        if (!to->fields[k]) continue;
        if (f->per_cloud)
            memcpy(to->fields[k], from->fields[k], field_bytes(f, 1, 1));
        else
            gather(to->fields[k], from->fields[k], field_bytes(f, 1, 1), rows, count);
    }
    return PNET_OK;
}
