/* Sessions: made, run, read. */
#include "library/library.h"
#include "runtime/run/choices.h"
#include "runtime/run/peak.h"
#include "runtime/train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum pnet_status read_precision(const struct pnet_model *m, const char *text,
    struct pnet_device where, enum pnet_precision *precision, struct pnet_error *e)
{
    bool cpu = where.kind == PNET_CPU;
    *precision = m->precision_known && !cpu ? m->precision : PNET_FP32;
    if (!text) return PNET_OK;
    int i = 0;
    while (pnet_precision_names[i] && strcmp(pnet_precision_names[i], text) != 0) i++;
    if (!pnet_precision_names[i])
        return pnet_error_set(
            e, PNET_USAGE, "precision: expected fp32, tf32, bf16 or fp16, not '%s'", text);
    *precision = (enum pnet_precision)i;
    if (cpu && *precision != PNET_FP32)
        return pnet_error_set(
            e, PNET_USAGE, "precision: the CPU computes in fp32; %s is for a GPU", text);
    return PNET_OK;
}

enum pnet_status pnet_library_bind(const struct pnet_model *m, const struct pnet_session_options *o,
    struct pnet_bound **b, struct pnet_error *e)
{
    struct pnet_target t = {0};
    struct pnet_choices c = {0};
    *b = NULL;
    if (!m->plan) return pnet_error_set(e, PNET_BAD_MODEL, "the model has errors");
    if (pnet_device_parse(o->device, &t.where, e))
        return pnet_error_set(
            e, PNET_USAGE, "device: expected cpu, cuda or cuda:N, not '%s'", o->device);
    enum pnet_status st = read_precision(m, o->precision, t.where, &t.precision, e);
    if (!st)
        st = pnet_choices_parse(
            "the kernels of the checkpoint", m->kernels, strlen(m->kernels), &c, e);
    if (st) return st;
    if (c.count) st = pnet_choices_bind(&c, m->plan, &t, b, e);
    pnet_choices_free(&c);
    return st || *b ? st : pnet_bound_new(m->plan, &t, b, e);
}

/* Makes what a session holds on its device. */
static enum pnet_status make(struct pnet_session *s, const struct pnet_session_options *o,
    const struct pnet_optim *optim, struct pnet_error *e)
{
    s->updater_bytes = s->has_optimizer ? pnet_updater_bytes(s->bound, optim) : 0;
    const struct pnet_runner_options ro = {.memory_limit = o->memory_limit,
        .slots = 1,
        .seed = o->seed,
        .extra_bytes = (int64_t)s->updater_bytes,
        .supply = &s->supply};
    enum pnet_status st = pnet_runner_new(s->bound, &ro, &s->runner, e);
    if (!st && s->has_optimizer) st = pnet_updater_open(&s->updater, s->runner, optim, 0, e);
    return st;
}

enum pnet_status pnet_session_new(const struct pnet_model *m,
    const struct pnet_session_options *options, struct pnet_session **session, struct pnet_error *e)
{
    PNET_REQUIRE_PLACE(e, session);
    PNET_REQUIRE(e, PNET_A(MODEL, m));
    PNET_OWN_ERROR(e);
    struct pnet_session_options o;
    struct pnet_optim optim;
    struct pnet_session *s = pnet_handle_new(PNET_CLASS_SESSION, sizeof *s, e);
    if (!s) return PNET_NO_MEMORY;
    enum pnet_status st = pnet_library_take("pnet_session_options", options, &o, sizeof o, e);
    if (!st) st = pnet_library_bind(m, &o, &s->bound, e);
    if (!st) st = pnet_library_optimizer(&o, &optim, &s->has_optimizer, e);
    if (!st && s->has_optimizer && !m->plan->training)
        st = pnet_error_set(
            e, PNET_USAGE, "optimizer: the model was not compiled for PNET_PURPOSE_TRAIN");
    if (!st) st = pnet_library_home(&o, s, e);
    if (!st) st = pnet_device_check(s->home.device, e);
    if (!st) {
        s->plan = m->plan;
        s->memory_limit = o.memory_limit;
        st = pnet_library_begin(s, e);
        if (!st) st = pnet_library_end(s, make(s, &o, &optim, e), e);
    }
    if (st) {
        pnet_session_free(s);
        return st;
    }
    s->model = (struct pnet_model *)m; /* of which the session counts itself as an owner */
    pnet_library_keep_model(s->model);
    *session = s;
    return PNET_OK;
}

void pnet_session_free(struct pnet_session *s)
{
    struct pnet_error e;
    if (!s || !pnet_handle_is(s, PNET_CLASS_SESSION)) return;
    bool begun = s->runner && !pnet_library_begin(s, &e); /* what there is goes back in any case */
    pnet_updater_close(&s->updater);
    pnet_runner_free(s->runner);
    if (begun) (void)pnet_library_end(s, PNET_OK, &e);
    pnet_bound_free(s->bound);
    pnet_model_free(s->model);
    pnet_handle_free(s);
}

static enum pnet_status forward(struct pnet_session *s, struct pnet_error *e)
{
    s->state = PNET_SESSION_BATCH;
    enum pnet_status st = pnet_runner_forward(s->runner, 0, false, 0, e);
    if (!st) st = pnet_library_wait(s, e);
    if (!st) s->state = PNET_SESSION_FORWARD;
    return st;
}

enum pnet_status pnet_session_forward(struct pnet_session *s, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s));
    PNET_OWN_ERROR(e);
    enum pnet_status st = pnet_library_ready(s, PNET_SESSION_BATCH, e);
    if (!st) st = pnet_library_begin(s, e);
    return st ? st : pnet_library_end(s, forward(s, e), e);
}

static enum pnet_status check_result(const struct pnet_session *s, struct pnet_error *e)
{
    if (s->plan->result >= 0) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "the model gives no result: it was not compiled for PNET_PURPOSE_INFER");
}

enum pnet_status pnet_session_result_shape(
    struct pnet_session *s, int64_t *rows, int64_t *width, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, rows), PNET_A(ANY, width));
    PNET_OWN_ERROR(e);
    enum pnet_status st = check_result(s, e);
    if (!st && s->state < PNET_SESSION_BATCH)
        st = pnet_error_set(e, PNET_USAGE, "the session has no batch: pnet_session_bind is first");
    if (st) return st;
    *rows = pnet_runner_result_rows(s->runner, 0);
    *width = s->plan->tensors[s->plan->result].type.width;
    return PNET_OK;
}

enum pnet_status pnet_session_result(
    struct pnet_session *s, float *to, int64_t count, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s));
    if (count) PNET_REQUIRE(e, PNET_A(ANY, to));
    PNET_OWN_ERROR(e);
    int64_t rows, width;
    enum pnet_status st = check_result(s, e);
    if (!st) st = pnet_library_ready(s, PNET_SESSION_FORWARD, e);
    if (!st) st = pnet_session_result_shape(s, &rows, &width, e);
    if (!st) st = pnet_library_check_array(s, "to", to, e);
    if (st) return st;
    if (count != rows * width)
        return pnet_error_set(e, PNET_USAGE,
            "the result has %lld rows of %lld numbers, and the caller has room for %lld numbers",
            (long long)rows, (long long)width, (long long)count);
    st = pnet_library_begin(s, e);
    return st ? st : pnet_library_end(s, pnet_runner_give_result(s->runner, 0, s->there, to, e), e);
}

/* The headline of a metric on this batch. */
static enum pnet_status finish_metric(
    const struct pnet_session *s, int objective, double *value, struct pnet_error *e)
{
    struct pnet_tally t;
    struct pnet_evaluation v = {0};
    enum pnet_status st = pnet_tally_init(&t, s->plan, e);
    if (st) return st;
    pnet_tally_add_metrics(&t, s->runner);
    st = pnet_tally_finish(&t, &v, e);
    if (!st) *value = v.lines[objective].value;
    pnet_evaluation_free(&v);
    pnet_tally_free(&t);
    return st;
}

static int find_objective(const struct pnet_plan *p, const char *name, struct pnet_error *e)
{
    for (int i = 0; i < p->objective_count; i++)
        if (strcmp(p->objectives[i].name, name) == 0) return i;
    pnet_error_set(e, PNET_USAGE, "the model has no loss or metric `%s`", name);
    return -1;
}

static enum pnet_status read_objective(
    struct pnet_session *s, int objective, double *value, struct pnet_error *e)
{
    if (s->plan->objectives[objective].metric) return finish_metric(s, objective, value, e);
    *value = pnet_runner_objective(s->runner, objective, NULL);
    return pnet_runner_wait(s->runner, e);
}

enum pnet_status pnet_session_objective(
    struct pnet_session *s, const char *name, double *value, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_A(ANY, name), PNET_A(ANY, value));
    PNET_OWN_ERROR(e);
    enum pnet_status st = pnet_library_ready(s, PNET_SESSION_FORWARD, e);
    if (st) return st;
    int i = find_objective(s->plan, name, e);
    if (i < 0) return PNET_USAGE;
    if (s->plan->objectives[i].metric && s->state != PNET_SESSION_FORWARD)
        return pnet_error_set(e, PNET_USAGE,
            "`%s` is a metric, which training does not compute: pnet_session_forward does", name);
    st = pnet_library_begin(s, e);
    return st ? st : pnet_library_end(s, read_objective(s, i, value, e), e);
}

enum pnet_status pnet_session_memory(
    struct pnet_session *s, struct pnet_memory_info *info, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_AS(ANY, "m", info));
    PNET_OWN_ERROR(e);
    const struct pnet_memory *m = pnet_runner_memory(s->runner);
    struct pnet_memory_info i = {.used = m->used, .peak = m->peak};
    if (s->state >= PNET_SESSION_BATCH) {
        struct pnet_layout layout = {0};
        struct pnet_peak k;
        enum pnet_status st = pnet_peak_plan(s->bound, &pnet_runner_slot(s->runner, 0)->counts, 1,
            s->updater_bytes, s->memory_limit, &layout, &k, e);
        pnet_layout_free(&layout);
        if (st) return st;
        i.planned = k.total;
    }
    return pnet_library_give("pnet_memory_info", &i, info, sizeof i, e);
}

enum pnet_status pnet_model_peak(const struct pnet_model *m,
    const struct pnet_session_options *options, int64_t points, size_t *bytes, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(MODEL, m), PNET_A(ANY, bytes));
    PNET_OWN_ERROR(e);
    struct pnet_session_options o;
    struct pnet_bound *b = NULL;
    struct pnet_counts c = {0};
    struct pnet_layout layout = {0};
    struct pnet_peak k;
    struct pnet_optim optim;
    bool optimizes = false;
    enum pnet_status st = pnet_library_take("pnet_session_options", options, &o, sizeof o, e);
    if (!st && (points < 0 || points > INT32_MAX))
        st = pnet_error_set(e, PNET_USAGE, "points: a cloud has 0 to 2147483647 points");
    if (!st) st = pnet_library_optimizer(&o, &optim, &optimizes, e);
    if (!st) st = pnet_library_bind(m, &o, &b, e);
    if (!st) st = pnet_counts_new(m->plan, &c, e);
    if (!st) {
        pnet_counts_assume(b, &c, points);
        st = pnet_peak_plan(b, &c, 1, optimizes ? pnet_updater_bytes(b, &optim) : 0, o.memory_limit,
            &layout, &k, e);
    }
    if (!st) *bytes = k.total;
    pnet_layout_free(&layout);
    pnet_counts_free(&c);
    pnet_bound_free(b);
    return st;
}
