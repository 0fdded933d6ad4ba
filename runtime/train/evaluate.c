#include "runtime/train/evaluate.h"

#include "runtime/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The callbacks during the batches. */
struct listener {
    bool (*go_on)(void *context, int64_t batch);
    void (*each)(void *context, int64_t batch, struct pnet_evaluation *v);
    void *context;
};

static enum pnet_status tell_of_batch(const struct listener *l, int64_t batch,
    const struct pnet_runner *s, const struct pnet_ready *r, struct pnet_error *e)
{
    struct pnet_tally t;
    struct pnet_evaluation v = {0};
    enum pnet_status st = pnet_tally_init(&t, pnet_runner_plan(s), e);
    if (st) return st;
    st = pnet_tally_add(&t, s, r->slot, r->samples, r->points, e);
    if (!st) st = pnet_tally_finish(&t, &v, e);
    if (!st) l->each(l->context, batch, &v);
    pnet_evaluation_free(&v);
    pnet_tally_free(&t);
    return st;
}

static enum pnet_status run_epoch(struct pnet_runner *s, struct pnet_pipeline *p,
    struct pnet_tally *t, struct pnet_frame *frame, double *compute, const struct listener *l,
    struct pnet_error *e)
{
    for (int64_t batch = 1;; batch++) {
        struct pnet_ready r;
        enum pnet_status st = pnet_pipeline_next(p, NULL, &r, e);
        if (st) return st;
        if (r.slot < 0) return PNET_OK;
        double begin = pnet_seconds();
        if ((st = pnet_runner_forward(s, r.slot, false, 0, e))) return st;
        if ((st = pnet_runner_wait(s, e))) return st;
        *compute += pnet_seconds() - begin;
        if ((st = pnet_tally_add(t, s, r.slot, r.samples, r.points, e))) return st;
        pnet_frame_merge(frame, &r.frame);
        if (l->each && (st = tell_of_batch(l, batch, s, &r, e))) return st;
        if (l->go_on && !l->go_on(l->context, batch))
            return pnet_error_set(e, PNET_INTERRUPTED, "interrupted");
    }
}

enum pnet_status pnet_evaluate_each(struct pnet_runner *s, struct pnet_loader *l,
    bool (*go_on)(void *context, int64_t batch),
    void (*each)(void *context, int64_t batch, struct pnet_evaluation *v), void *context,
    struct pnet_evaluation *v, struct pnet_error *e)
{
    struct listener listener = {go_on, each, context};
    struct pnet_tally t;
    struct pnet_pipeline *p = NULL;
    struct pnet_frame frame = {.clouds = 0};
    double begin = pnet_seconds(), compute = 0;
    *v = (struct pnet_evaluation){0};
    enum pnet_status st = pnet_tally_init(&t, pnet_runner_plan(s), e);
    if (st) return st;
    pnet_loader_start(l, 0, 0);
    st = pnet_pipeline_start(s, l, &p, e);
    if (!st) st = run_epoch(s, p, &t, &frame, &compute, &listener, e);
    pnet_pipeline_stop(p);
    if (!st) st = pnet_tally_finish(&t, v, e);
    pnet_tally_free(&t);
    v->frame = frame;
    v->seconds = pnet_seconds() - begin;
    v->compute_seconds = compute;
    return st;
}

enum pnet_status pnet_evaluate(struct pnet_runner *s, struct pnet_loader *l,
    bool (*go_on)(void *context, int64_t batch), void *context, struct pnet_evaluation *v,
    struct pnet_error *e)
{
    return pnet_evaluate_each(s, l, go_on, NULL, context, v, e);
}
