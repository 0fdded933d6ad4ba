#include "runtime/run/session_record.h"

#include <stdlib.h>

/* Parts that were recorded: where each ends, and whether another one waits for it. */
struct recorded {
    struct pnet_waits *waits;
    int *point, *others; /* [parts]; room for a list of them */
    bool *waited;
    int count, begin; /* parts so far; the point before them */
    int64_t notified; /* end of the gradients that listeners know to be ready */
};

/* Each step may be followed by a notification of gradients that are ready. */
static bool open_recorded(struct recorded *r, struct pnet_device d, int steps)
{
    steps *= 2;
    size_t parts = (size_t)steps * PNET_STEP_PARTS + 1;
    *r = (struct recorded){.waits = pnet_waits_new(steps),
        .point = calloc(parts, sizeof *r->point),
        .others = calloc(parts, sizeof *r->others),
        .waited = calloc(parts, sizeof *r->waited),
        .begin = pnet_device_point(d)};
    return r->waits && r->point && r->others && r->waited && r->begin >= 0;
}

static void free_recorded(struct recorded *r)
{
    pnet_waits_free(r->waits);
    free(r->point);
    free(r->others);
    free(r->waited);
}

/* What is asked for next waits for what has to be over before these parts. */
static void wait_for_others(
    struct recorded *r, struct pnet_device d, const struct pnet_touched parts[PNET_STEP_PARTS])
{
    int n = pnet_waits_add(r->waits, parts, r->others);
    for (int k = 0; k < n; k++) {
        r->waited[r->others[k]] = true;
        r->others[k] = r->point[r->others[k]];
    }
    pnet_device_wait_for(d, n ? r->others : &r->begin, n ? n : 1);
}

/* Notes where what was asked for ends. */
static bool note_ends(struct recorded *r, struct pnet_device d)
{
    int *point = &r->point[r->count];
    if (!pnet_device_branches(d, point)) {
        point[0] = point[1] = pnet_device_point(d);
        r->waited[r->count + 1] = true; /* with the first one */
    }
    r->count += PNET_STEP_PARTS;
    return point[0] >= 0 && point[1] >= 0;
}

static bool record_step(const struct pnet_session *s, const struct pnet_session_pass *pass,
    int step, struct recorded *r)
{
    struct pnet_device d = pnet_session_device(s);
    struct pnet_touched touched[PNET_STEP_PARTS];
    pnet_session_touches(s, step, touched);
    wait_for_others(r, d, touched);
    if (!pass->wanted || pass->wanted(pass->context, step))
        pnet_session_run_step(s, pass->slot, step, pass->training, pass->accumulate);
    return note_ends(r, d);
}

/* The work of listeners waits for the gradients of its range, and is concurrent with later steps. */
static bool record_ready(const struct pnet_session *s, int step, struct recorded *r)
{
    struct pnet_device d = pnet_session_device(s);
    int64_t end = pnet_session_ready_end(s, step, r->notified);
    const float *grads = pnet_session_grads((struct pnet_session *)s);
    if (end == r->notified) return true;
    struct pnet_touched touched[PNET_STEP_PARTS] = {
        {.at = {{(uintptr_t)(grads + r->notified), (uintptr_t)(grads + end), false}}, .count = 1}};
    wait_for_others(r, d, touched);
    pnet_device_yield_begin(d);
    pnet_session_notify(s, r->notified, end);
    pnet_device_yield_end(d);
    r->notified = end;
    return note_ends(r, d);
}

bool pnet_session_record_pass(const struct pnet_session *s, const struct pnet_session_pass *pass)
{
    struct recorded r;
    bool ok = open_recorded(&r, pnet_session_device(s), pass->last - pass->first);
    for (int i = pass->first; i < pass->last && ok; i++)
        ok = record_step(s, pass, i, &r) && (!pass->notifies || record_ready(s, i, &r));
    int ends = 0;
    for (int i = 0; i < r.count && ok; i++)
        if (!r.waited[i]) r.others[ends++] = r.point[i];
    if (ends) pnet_device_wait_for(pnet_session_device(s), r.others, ends);
    free_recorded(&r);
    return ok;
}
