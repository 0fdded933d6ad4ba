/* Weights in and out. */
#include "library/library.h"
#include "runtime/train/weights.h"

#include <stdlib.h>
#include <string.h>

enum pnet_status pnet_session_init(struct pnet_session *s, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s));
    PNET_OWN_ERROR(e);
    enum pnet_status st = pnet_library_begin(s, e);
    if (!st) st = pnet_library_end(s, pnet_runner_init_params(s->runner, e), e);
    if (!st) s->has_weights = true;
    return st;
}

enum pnet_status pnet_session_load(struct pnet_session *s, const char *path, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, path));
    PNET_OWN_ERROR(e);
    struct pnet_weights w;
    enum pnet_status st = pnet_weights_open(path, &w, e);
    if (st) return st;
    st = pnet_library_begin(s, e);
    if (!st) st = pnet_library_end(s, pnet_weights_load(&w, s->runner, e), e);
    pnet_weights_close(&w);
    if (!st) s->has_weights = true;
    return st;
}

/* Finds a weight that a session holds by itself; its index in the plan, or -1 with an error. */
static int find_alone(const struct pnet_model *m, const char *name, struct pnet_error *e)
{
    int param = pnet_plan_param_find(m->plan, name);
    for (size_t i = 0; i < m->weight_count && param >= 0; i++) {
        struct pnet_weight_info info = {.size = sizeof info};
        if (m->weights[i] != param) continue;
        if (pnet_model_weight(m, i, &info, e)) return -1;
        if (!info.folded) return m->weights[i];
        pnet_error_set(e, PNET_USAGE,
            "`%s` is folded: for inference a norm becomes part of the layer before it; a model for "
            "PNET_PURPOSE_EVAL or _TRAIN keeps it",
            name);
        return -1;
    }
    if (param >= 0 && m->plan->params[param].offset < 0)
        pnet_error_set(e, PNET_USAGE, "the model does not use the weight `%s`: %s", name,
            m->purpose == PNET_PURPOSE_INFER ? "its result and outputs do not depend on it"
                                             : "no loss, metric or output depends on it");
    else
        pnet_error_set(e, PNET_USAGE, "the model has no weight `%s`", name);
    return -1;
}

/* Where a weight or gradient lies: its parameter, or -1 with an error. */
static int locate(const struct pnet_session *s, const char *name, int64_t count, bool gradient,
    struct pnet_error *e)
{
    if (pnet_library_ready(s, PNET_SESSION_EMPTY, e)) return -1;
    int i = find_alone(s->model, name, e);
    if (i < 0) return -1;
    const struct pnet_plan_param *q = &s->plan->params[i];
    if (count != q->count) {
        pnet_error_set(e, PNET_USAGE, "`%s` has %lld numbers, not %lld", name, (long long)q->count,
            (long long)count);
        return -1;
    }
    if (!gradient || (s->plan->training && q->info.trained)) return i;
    pnet_error_set(e, PNET_USAGE, "`%s` has no gradient: %s", name,
        q->info.trained ? "the model was not compiled for PNET_PURPOSE_TRAIN"
                        : "it is a running statistic");
    return -1;
}

/* The error of a function that gave -1. */
static enum pnet_status status_of(const struct pnet_error *e)
{
    return e->status;
}

/* Copies a weight or gradient to the caller. */
static enum pnet_status get(struct pnet_session *s, enum pnet_runner_block block, int param,
    float *to, struct pnet_error *e)
{
    const struct pnet_plan_param *q = &s->plan->params[param];
    enum pnet_status st = pnet_library_check_array(s, q->name, to, e);
    if (!st) st = pnet_library_begin(s, e);
    if (st) return st;
    if (s->there)
        pnet_device_copy(s->home.device, to, pnet_runner_block_data(s->runner, block) + q->offset,
            (size_t)q->count * sizeof *to);
    else
        st = pnet_runner_read(s->runner, block, q->offset, q->count, to, e);
    return pnet_library_end(s, st, e);
}

static enum pnet_status set(struct pnet_session *s, enum pnet_runner_block block, int param,
    const float *from, struct pnet_error *e)
{
    const struct pnet_plan_param *q = &s->plan->params[param];
    enum pnet_status st = pnet_library_check_array(s, q->name, from, e);
    if (!st) st = pnet_library_begin(s, e);
    if (st) return st;
    if (s->there)
        pnet_device_copy(s->home.device, pnet_runner_block_data(s->runner, block) + q->offset, from,
            (size_t)q->count * sizeof *from);
    else
        st = pnet_runner_write(s->runner, block, q->offset, q->count, from, e);
    return pnet_library_end(s, st, e);
}

enum pnet_status pnet_session_get_weight(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name), PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    int i = locate(s, name, count, false, e);
    return i < 0 ? status_of(e) : get(s, PNET_BLOCK_PARAMS, i, to, e);
}

enum pnet_status pnet_session_set_weight(struct pnet_session *s, const char *name,
    const float *from, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name), PNET_A(ANY, from));
    PNET_OWN_ERROR(e);
    int i = locate(s, name, count, false, e);
    return i < 0 ? status_of(e) : set(s, PNET_BLOCK_PARAMS, i, from, e);
}

enum pnet_status pnet_session_get_gradient(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name), PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    int i = locate(s, name, count, true, e);
    if (i < 0) return status_of(e);
    if (!s->has_gradients) return pnet_library_ready(s, PNET_SESSION_GRADIENTS, e);
    return get(s, PNET_BLOCK_GRADS, i, to, e);
}

enum pnet_status pnet_session_set_gradient(struct pnet_session *s, const char *name,
    const float *from, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name), PNET_A(ANY, from));
    PNET_OWN_ERROR(e);
    int i = locate(s, name, count, true, e);
    if (i < 0) return status_of(e);
    enum pnet_status st = set(s, PNET_BLOCK_GRADS, i, from, e);
    if (!st) s->has_gradients = true;
    return st;
}

/* The weights of a session on the host, as a source of weights. */
struct block {
    const struct pnet_session *from;
    float *params; /* [param_elements] */
    struct pnet_error error;
};

static enum pnet_status read_block(struct pnet_session *s, float **params, struct pnet_error *e)
{
    enum pnet_status st = pnet_library_ready(s, PNET_SESSION_EMPTY, e);
    *params = NULL;
    if (st) return st;
    *params = malloc((size_t)s->plan->param_elements * sizeof **params + 1);
    st = *params ? pnet_library_begin(s, e) : pnet_error_memory(e);
    if (st) return st;
    st = pnet_runner_read(s->runner, PNET_BLOCK_PARAMS, 0, s->plan->param_elements, *params, e);
    return pnet_library_end(s, st, e);
}

static const float *fetch(void *context, const char *name, int64_t count)
{
    struct block *b = context;
    int i = find_alone(b->from->model, name, &b->error);
    if (i < 0) return NULL;
    const struct pnet_plan_param *q = &b->from->plan->params[i];
    if (q->count == count) return b->params + q->offset;
    pnet_error_set(&b->error, PNET_USAGE, "`%s` has %lld numbers in the other session, not %lld",
        name, (long long)q->count, (long long)count);
    return NULL;
}

enum pnet_status pnet_session_copy_weights(
    struct pnet_session *s, struct pnet_session *from, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(SESSION, from));
    PNET_OWN_ERROR(e);
    struct block b = {.from = from};
    enum pnet_status st = read_block(from, &b.params, e);
    if (!st) st = pnet_library_begin(s, e);
    if (!st) {
        st = pnet_library_end(s, pnet_runner_load_params(s->runner, fetch, &b, e), e);
        if (st && b.error.status) { /* its message says more than that loading failed */
            *e = b.error;
            st = e->status;
        }
    }
    free(b.params);
    if (!st) s->has_weights = true;
    return st;
}

enum pnet_status pnet_session_save(struct pnet_session *s, const char *path, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, path));
    PNET_OWN_ERROR(e);
    const struct pnet_model *m = s->model;
    struct pnet_trained_record record;
    float *params = NULL;
    if (m->purpose == PNET_PURPOSE_INFER)
        return pnet_error_set(e, PNET_USAGE,
            "a session for inference has folded its weights: one for PNET_PURPOSE_EVAL or _TRAIN "
            "saves them");
    struct pnet_safetensor *list = calloc(m->weight_count + 1, sizeof *list);
    enum pnet_status st = list ? read_block(s, &params, e) : pnet_error_memory(e);
    for (size_t i = 0; i < m->weight_count && !st; i++) {
        const struct pnet_plan_param *q = &s->plan->params[m->weights[i]];
        list[i] = (struct pnet_safetensor){.name = q->name,
            .dtype = PNET_TENSOR_F32,
            .dims = q->info.dims,
            .data = params + q->offset};
        memcpy(list[i].shape, q->info.shape, sizeof q->info.shape);
    }
    if (!st) {
        pnet_trained_record(s->plan->degrade, s->bound->precision, m->params, &record);
        st =
            pnet_safetensors_write(path, list, m->weight_count, record.items, PNET_TRAINED_KEYS, e);
    }
    free(params);
    free(list);
    return st;
}
