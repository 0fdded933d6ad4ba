/* Gradients, and steps of an optimiser. */
#include "library/library.h"

#include <math.h>
#include <stdlib.h>

static const enum pnet_optim_kind kinds[] = {[PNET_OPTIMIZER_SGD] = PNET_SGD,
    [PNET_OPTIMIZER_ADAM] = PNET_ADAM,
    [PNET_OPTIMIZER_ADAMW] = PNET_ADAMW};

static enum pnet_status read_kind(
    enum pnet_optimizer_kind kind, enum pnet_optim_kind *to, struct pnet_error *e)
{
    if (kind > PNET_OPTIMIZER_ADAMW)
        return pnet_error_set(e, PNET_USAGE, "no optimiser has the number %d", (int)kind);
    *to = kinds[kind];
    return PNET_OK;
}

enum pnet_status pnet_optimizer_default(
    enum pnet_optimizer_kind kind, struct pnet_optimizer *o, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(ANY, o));
    PNET_OWN_ERROR(e);
    enum pnet_optim_kind own = PNET_SGD;
    enum pnet_status st = read_kind(kind, &own, e);
    if (st) return st;
    struct pnet_optim d = pnet_optim_default(own);
    struct pnet_optimizer filled = {.kind = kind,
        .momentum = d.momentum,
        .nesterov = d.nesterov,
        .beta1 = d.beta1,
        .beta2 = d.beta2,
        .eps = d.eps,
        .weight_decay = d.weight_decay,
        .decay_all = d.decay_all};
    return pnet_library_give("pnet_optimizer", &filled, o, sizeof filled, e);
}

enum pnet_status pnet_library_optimizer(const struct pnet_session_options *o,
    struct pnet_optim *optim, bool *there, struct pnet_error *e)
{
    struct pnet_optimizer given;
    *there = o->optimizer != NULL;
    if (!*there) return PNET_OK;
    enum pnet_optim_kind kind = PNET_SGD;
    enum pnet_status st =
        pnet_library_take("pnet_optimizer", o->optimizer, &given, sizeof given, e);
    if (!st) st = read_kind(given.kind, &kind, e);
    if (st) return st;
    *optim = (struct pnet_optim){.kind = kind,
        .momentum = given.momentum,
        .nesterov = given.nesterov != 0,
        .beta1 = given.beta1,
        .beta2 = given.beta2,
        .eps = given.eps,
        .weight_decay = given.weight_decay,
        .decay_all = given.decay_all != 0};
    return pnet_optim_check(optim, e);
}

enum pnet_status pnet_library_check_training(const struct pnet_session *s, struct pnet_error *e)
{
    if (s->plan->training) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE, "the model was not compiled for PNET_PURPOSE_TRAIN");
}

enum pnet_status pnet_library_check_backward(
    const struct pnet_session *s, float scale, int accumulate, struct pnet_error *e)
{
    if (!isfinite(scale))
        return pnet_error_set(e, PNET_USAGE, "scale %g: expected a finite number", (double)scale);
    if (!accumulate || s->has_gradients) return PNET_OK;
    return pnet_error_set(
        e, PNET_USAGE, "accumulate: there are no gradients yet to which these could be added");
}

enum pnet_status pnet_library_backward(
    struct pnet_session *s, float scale, bool accumulate, struct pnet_error *e)
{
    s->has_gradients = false;
    enum pnet_status st = pnet_runner_backward(s->runner, 0, scale, accumulate, e);
    /* a loss that does not count may be infinite */
    if (!st && s->has_optimizer && scale != 0)
        pnet_updater_note_losses(&s->updater, 1, accumulate);
    else if (!st && s->has_optimizer && !accumulate)
        pnet_updater_forget_losses(&s->updater);
    if (!st) st = pnet_library_wait(s, e);
    if (st) return st;
    s->has_gradients = true;
    s->state = PNET_SESSION_GRADIENTS;
    return PNET_OK;
}

static enum pnet_status gradients(
    struct pnet_session *s, float scale, bool accumulate, struct pnet_error *e)
{
    s->state = PNET_SESSION_BATCH;
    enum pnet_status st = pnet_runner_forward(s->runner, 0, true, s->draws, e);
    if (!st) st = pnet_library_backward(s, scale, accumulate, e);
    if (!st) s->draws++;
    return st;
}

enum pnet_status pnet_session_gradients(
    struct pnet_session *s, float scale, int accumulate, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s));
    PNET_OWN_ERROR(e);
    enum pnet_status st = pnet_library_check_training(s, e);
    if (!st) st = pnet_library_ready(s, PNET_SESSION_BATCH, e);
    if (!st) st = pnet_library_check_backward(s, scale, accumulate, e);
    if (!st) st = pnet_library_begin(s, e);
    return st ? st : pnet_library_end(s, gradients(s, scale, accumulate != 0, e), e);
}

/* `record` NULL: it is not wanted. */
static enum pnet_status step(struct pnet_session *s, const struct pnet_step_options *o,
    struct pnet_optim_record *record, struct pnet_error *e)
{
    double loss_scale = o->loss_scale > 0 ? o->loss_scale : 1;
    if (!record) {
        pnet_updater_launch(&s->updater, o->learning_rate, o->clip, loss_scale);
        return pnet_library_wait(s, e);
    }
    double *losses = calloc((size_t)s->plan->objective_count + 1, sizeof *losses);
    if (!losses) return pnet_error_memory(e);
    enum pnet_status st =
        pnet_updater_step(&s->updater, o->learning_rate, o->clip, loss_scale, record, losses, e);
    free(losses);
    return st;
}

/* What is not finite would make all weights so. */
static enum pnet_status check_step(const struct pnet_step_options *o, struct pnet_error *e)
{
    const char *const names[] = {"learning_rate", "clip", "loss_scale"};
    const double numbers[] = {o->learning_rate, o->clip, o->loss_scale};
    for (int i = 0; i < 3; i++)
        if (!(numbers[i] >= 0 && isfinite(numbers[i])))
            return pnet_error_set(e, PNET_USAGE, "%s: expected 0 or more, and finite, found %g",
                names[i], numbers[i]);
    return PNET_OK;
}

enum pnet_status pnet_session_step(struct pnet_session *s, const struct pnet_step_options *options,
    struct pnet_step_info *info, struct pnet_error *e)
{
    PNET_REQUIRE(e, PNET_A(SESSION, s), PNET_AS(ANY, "o", options));
    PNET_OWN_ERROR(e);
    struct pnet_step_options o;
    struct pnet_optim_record record = {.step = 0};
    struct pnet_step_info i = {.steps = 0};
    enum pnet_status st = pnet_library_take("pnet_step_options", options, &o, sizeof o, e);
    if (!st) st = check_step(&o, e);
    /* before the step is made */
    if (!st && info) st = pnet_library_give("pnet_step_info", &i, info, sizeof i, e);
    if (!st && !s->has_optimizer)
        st = pnet_error_set(
            e, PNET_USAGE, "the session has no optimiser: struct pnet_session_options names it");
    if (!st) st = pnet_library_ready(s, PNET_SESSION_EMPTY, e);
    if (!st && !s->has_gradients) st = pnet_library_ready(s, PNET_SESSION_GRADIENTS, e);
    if (!st) st = pnet_library_begin(s, e);
    if (st) return st;
    st = pnet_library_end(s, step(s, &o, info ? &record : NULL, e), e);
    if (st || !info) return st;
    i = (struct pnet_step_info){.gradient_norm = record.norm,
        .skipped = record.skipped != 0,
        .steps = (int64_t)record.step};
    return pnet_library_give("pnet_step_info", &i, info, sizeof i, e);
}
