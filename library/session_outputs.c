/* Outputs of a model, and backward from the caller's gradients of them. */
#include "library/array.h"

#include <string.h>

/* Finds an output by its name; -1 with an error. */
static int find_output(const struct pnet_session *s, const char *name, struct pnet_error *e)
{
    for (int i = 0; i < s->plan->output_count; i++)
        if (name && strcmp(s->plan->outputs[i].name, name) == 0) return i;
    pnet_error_set(e, PNET_USAGE,
        "the model has no output `%s`: struct pnet_model_options names them", name ? name : "NULL");
    return -1;
}

/* The tensor of an output of the bound batch; -1 with an error. */
static int find_bound(const struct pnet_session *s, const char *name, struct pnet_error *e)
{
    int i = find_output(s, name, e);
    if (i < 0) return -1;
    if (s->state >= PNET_SESSION_BATCH) return s->plan->outputs[i].tensor;
    pnet_error_set(e, PNET_USAGE, "the session has no batch: pnet_session_bind is first");
    return -1;
}

enum pnet_status pnet_session_output_shape(
    struct pnet_session *s, const char *name, int64_t *rows, int64_t *width, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name), PNET_A(ANY, rows), PNET_A(ANY, width));
    PNET_OWN_ERROR(e);
    int tensor = find_bound(s, name, e);
    if (tensor < 0) return PNET_USAGE;
    *rows = pnet_runner_tensor_rows(s->runner, 0, tensor);
    *width = s->plan->tensors[tensor].type.width;
    return PNET_OK;
}

enum pnet_status pnet_session_output_splits(
    struct pnet_session *s, const char *name, int64_t *to, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name), PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    int tensor = find_bound(s, name, e);
    if (tensor < 0) return PNET_USAGE;
    const struct pnet_slot *slot = pnet_runner_slot(s->runner, 0);
    struct pnet_device device = pnet_runner_device(s->runner);
    int level = s->plan->tensors[tensor].type.level;
    if (count != slot->counts.samples + 1)
        return pnet_error_set(e, PNET_USAGE,
            "the batch has %d samples, so %d row splits, and the caller has room for %lld",
            (int)slot->counts.samples, (int)slot->counts.samples + 1, (long long)count);
    const int64_t *splits = pnet_slot_splits(slot, level);
    enum pnet_status st = pnet_library_begin(s, e);
    if (st) return st;
    pnet_device_get(device, to, splits, (size_t)count * sizeof *to);
    return pnet_library_end(s, pnet_device_wait(device, e), e);
}

static enum pnet_status check_count(
    const char *name, int64_t rows, int64_t width, int64_t count, struct pnet_error *e)
{
    if (count == rows * width) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%s has %lld rows of %lld numbers, and the caller has room for %lld numbers", name,
        (long long)rows, (long long)width, (long long)count);
}

enum pnet_status pnet_session_output(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name));
    if (count) PNET_REQUIRE(e, PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    int64_t rows, width;
    enum pnet_status st = pnet_session_output_shape(s, name, &rows, &width, e);
    if (!st) st = pnet_library_ready(s, PNET_SESSION_FORWARD, e);
    if (!st) st = check_count(name, rows, width, count, e);
    if (!st) st = pnet_library_check_array(s, name, to, e);
    if (!st) st = pnet_library_begin(s, e);
    if (st) return st;
    int tensor = s->plan->outputs[find_output(s, name, e)].tensor;
    return pnet_library_end(s, pnet_runner_give(s->runner, 0, tensor, s->there, to, e), e);
}

static enum pnet_status forward_training(struct pnet_session *s, struct pnet_error *e)
{
    s->state = PNET_SESSION_BATCH;
    enum pnet_status st = pnet_runner_forward(s->runner, 0, true, s->draws, e);
    if (!st) st = pnet_library_wait(s, e);
    if (st) return st;
    s->draws++;
    s->state = PNET_SESSION_TRAINING;
    return PNET_OK;
}

enum pnet_status pnet_session_forward_training(struct pnet_session *s, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s));
    PNET_OWN_ERROR(e);
    enum pnet_status st = pnet_library_check_training(s, e);
    if (!st) st = pnet_library_ready(s, PNET_SESSION_BATCH, e);
    if (!st) st = pnet_library_begin(s, e);
    return st ? st : pnet_library_end(s, forward_training(s, e), e);
}

/* Checks one gradient of the caller. */
static enum pnet_status check_gradient(
    struct pnet_session *s, const struct pnet_value *gradients, size_t index, struct pnet_error *e)
{
    const struct pnet_value *v = &gradients[index];
    int64_t rows, width;
    int output = find_output(s, v->name, e);
    if (output < 0) return PNET_USAGE;
    for (size_t k = 0; k < index; k++)
        if (strcmp(gradients[k].name, v->name) == 0)
            return pnet_error_set(e, PNET_USAGE, "%s is there twice", v->name);
    if (s->plan->outputs[output].gradient < 0)
        return pnet_error_set(
            e, PNET_USAGE, "%s has no gradient: nothing that learns leads to it", v->name);
    enum pnet_status st = pnet_session_output_shape(s, v->name, &rows, &width, e);
    if (!st) st = pnet_library_check_matrix(v->name, &v->array, PNET_DTYPE_F32, rows, width, e);
    return st ? st : pnet_library_check_array(s, v->name, v->array.data, e);
}

static enum pnet_status backward(struct pnet_session *s, const struct pnet_value *gradients,
    size_t count, float scale, bool accumulate, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    s->state = PNET_SESSION_BATCH;
    for (size_t i = 0; i < count && !st; i++)
        st = pnet_runner_take_gradient(s->runner, 0, find_output(s, gradients[i].name, e), s->there,
            gradients[i].array.data, e);
    return st ? st : pnet_library_backward(s, scale, accumulate, e);
}

enum pnet_status pnet_session_backward(struct pnet_session *s, const struct pnet_value *gradients,
    size_t count, float scale, int accumulate, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s));
    if (count) PNET_REQUIRE(e, PNET_A(ANY, gradients));
    PNET_OWN_ERROR(e);
    enum pnet_status st = pnet_library_check_training(s, e);
    if (!st) st = pnet_library_ready(s, PNET_SESSION_BATCH, e);
    if (!st && s->state != PNET_SESSION_TRAINING)
        st = pnet_error_set(e, PNET_USAGE,
            "there is nothing to go back through: pnet_session_forward_training is first, and each "
            "backward needs its own");
    if (!st) st = pnet_library_check_backward(s, scale, accumulate, e);
    for (size_t i = 0; i < count && !st; i++) st = check_gradient(s, gradients, i, e);
    if (!st) st = pnet_library_begin(s, e);
    if (st) return st;
    return pnet_library_end(s, backward(s, gradients, count, scale, accumulate != 0, e), e);
}

/* The tensor of a float32 field of an input, "cloud.rgb"; -1 with an error. */
static int find_field(const struct pnet_plan *p, const char *name, struct pnet_error *e)
{
    size_t length = strcspn(name, ".");
    for (int t = 0; t < p->tensor_count; t++) {
        const struct pnet_plan_tensor *tensor = &p->tensors[t];
        if (tensor->role != PNET_ROLE_INPUT) continue;
        const struct pnet_input *in = &p->inputs[tensor->input];
        bool pose = pnet_input_is_pose(in);
        if (strncmp(in->name, name, length) != 0 || in->name[length]) continue;
        if (pose ? name[length] != '\0'
                 : !name[length] || strcmp(in->fields[tensor->field].name, name + length + 1) != 0)
            continue;
        if (!pose && tensor->type.type == PNET_F32) return t;
        pnet_error_set(
            e, PNET_USAGE, "%s has no gradient: it is %s", name, pose ? "a pose" : "no float32");
        return -1;
    }
    pnet_error_set(e, PNET_USAGE, "the model has no field `%s`", name);
    return -1;
}

static int gradient_of(const struct pnet_plan *p, int tensor)
{
    for (int t = 0; t < p->tensor_count; t++)
        if (p->tensors[t].role == PNET_ROLE_GRAD && p->tensors[t].of == tensor) return t;
    return -1;
}

enum pnet_status pnet_session_input_gradient(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name));
    if (count) PNET_REQUIRE(e, PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    if (!s->model->input_gradients)
        return pnet_error_set(e, PNET_USAGE,
            "the model was compiled without gradients of inputs: `input_gradients` of struct "
            "pnet_model_options");
    enum pnet_status st = pnet_library_ready(s, PNET_SESSION_GRADIENTS, e);
    if (st) return st;
    int tensor = find_field(s->plan, name, e);
    if (tensor < 0) return PNET_USAGE;
    int64_t rows = pnet_runner_tensor_rows(s->runner, 0, tensor);
    st = check_count(name, rows, s->plan->tensors[tensor].type.width, count, e);
    if (!st) st = pnet_library_check_array(s, name, to, e);
    if (!st) st = pnet_library_begin(s, e);
    if (st) return st;
    int gradient = gradient_of(s->plan, tensor);
    if (gradient >= 0)
        st = pnet_runner_give(s->runner, 0, gradient, s->there, to, e);
    else if (s->there)
        pnet_device_fill(s->home.device, to, 0, (size_t)count * sizeof *to);
    else
        memset(to, 0, (size_t)count * sizeof *to);
    return pnet_library_end(s, st, e);
}
