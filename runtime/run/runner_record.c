/* Recorded schedules on a GPU. */
#include "runtime/run/runner_own.h"

#include <stdlib.h>

/* The recorded parts: the point where each ends, and whether another part waits for it. */
struct recorded {
    struct pnet_waits *waits;
    int *point, *others; /* [parts]; scratch for a list of parts */
    bool *waited;
    int count, begin; /* parts so far; the point before the first */
    int64_t notified; /* end of the gradients that listeners have been told are ready */
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

/* Makes the next launches wait for all parts that precede these parts. */
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

/* Notes the points where the last launches end. */
static bool note_ends(struct recorded *r, struct pnet_device d)
{
    int *point = &r->point[r->count];
    if (!pnet_device_branches(d, point)) {
        point[0] = point[1] = pnet_device_point(d);
        /* one point for both parts: the second counts as waited for */
        r->waited[r->count + 1] = true;
    }
    r->count += PNET_STEP_PARTS;
    return point[0] >= 0 && point[1] >= 0;
}

static bool record_step(
    const struct pnet_runner *s, const struct pnet_runner_pass *pass, int step, struct recorded *r)
{
    struct pnet_device d = pnet_runner_device(s);
    struct pnet_touched touched[PNET_STEP_PARTS];
    pnet_runner_touches(s, step, touched);
    wait_for_others(r, d, touched);
    if (!pass->wanted || pass->wanted(pass->context, step))
        pnet_runner_run_step(s, pass->slot, step, pass->training, pass->accumulate);
    return note_ends(r, d);
}

/* The work of listeners waits for the gradients of its range, and is concurrent with later steps. */
static bool record_ready(const struct pnet_runner *s, int step, struct recorded *r)
{
    struct pnet_device d = pnet_runner_device(s);
    int64_t end = pnet_runner_ready_end(s, step, r->notified);
    const float *grads = pnet_runner_grads((struct pnet_runner *)s);
    if (end == r->notified) return true;
    struct pnet_touched touched[PNET_STEP_PARTS] = {
        {.at = {{(uintptr_t)(grads + r->notified), (uintptr_t)(grads + end), false}}, .count = 1}};
    wait_for_others(r, d, touched);
    pnet_device_yield_begin(d);
    pnet_runner_notify(s, r->notified, end);
    pnet_device_yield_end(d);
    r->notified = end;
    return note_ends(r, d);
}

/* Records steps. Each step waits only for the steps that its memory requires, so that independent steps may be concurrent.
   What is recorded after these steps waits for all of them. Returns false if memory is out. */
static bool record_steps(const struct pnet_runner *s, const struct pnet_runner_pass *pass)
{
    struct recorded r;
    bool ok = open_recorded(&r, pnet_runner_device(s), pass->last - pass->first);
    for (int i = pass->first; i < pass->last && ok; i++)
        ok = record_step(s, pass, i, &r) && (!pass->notifies || record_ready(s, i, &r));
    int ends = 0;
    for (int i = 0; i < r.count && ok; i++)
        if (!r.waited[i]) r.others[ends++] = r.point[i];
    if (ends) pnet_device_wait_for(pnet_runner_device(s), r.others, ends);
    free_recorded(&r);
    return ok;
}

/* NULL: it could not be recorded. */
static void *record_pass(struct pnet_runner *s, const struct pnet_runner_pass *pass)
{
    struct pnet_device d = s->device;
    pnet_device_record_begin(d);
    if (pass->first == s->plan->forward_steps) pnet_runner_begin_backward(s, pass->slot);
    bool whole = record_steps(s, pass);
    void *record = pnet_device_record_end(d);
    if (whole || !record) return record;
    pnet_device_record_free(d, record);
    return NULL;
}

static uint64_t mix(uint64_t hash, uint64_t x)
{
    hash = (hash ^ x) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* A hash of everything that a recorded pass depends on: the class, the addresses, and the pass. */
static uint64_t pass_key(const struct pnet_runner *s, const struct pnet_runner_pass *pass)
{
    uint64_t key = pnet_slot_addresses(s->slots[pass->slot]);
    key = mix(key, (uint64_t)(uintptr_t)s->arena.data);
    key = mix(key, (uint64_t)s->class_.samples);
    for (int l = 0; l < s->plan->level_count; l++) key = mix(key, (uint64_t)s->class_.rows[l]);
    for (int i = 0; i < s->plan->geo_count; i++)
        for (int k = 0; k < pnet_geo_kind(s->plan->geo[i].request.kind)->class_counts; k++)
            key = mix(key, (uint64_t)s->class_.of[i][k]);
    key = mix(key, (uint64_t)s->layout.total); /* a class has two layouts */
    key = mix(key, (uint64_t)pass->first << 3 | (uint64_t)pass->notifies << 2 |
                       (uint64_t)pass->training << 1 | (uint64_t)pass->accumulate);
    for (int i = 0; i < s->listener_count && pass->notifies; i++) {
        key = mix(key, (uint64_t)(uintptr_t)s->listeners[i].ready);
        key = mix(key, (uint64_t)(uintptr_t)s->listeners[i].context);
    }
    return key ? key : 1;
}

/* Returns the recording with that key, or the least recently used place for it. */
static struct pnet_runner_recording *find_recording(struct pnet_runner *s, uint64_t key)
{
    struct pnet_runner_recording *oldest = &s->recordings[0];
    for (int i = 0; i < PNET_RUNNER_RECORDINGS; i++) {
        struct pnet_runner_recording *r = &s->recordings[i];
        if (r->key == key) return r;
        if (r->used < oldest->used) oldest = r;
    }
    if (oldest->record) pnet_device_record_free(s->device, oldest->record);
    *oldest = (struct pnet_runner_recording){.key = 0};
    return oldest;
}

void pnet_runner_free_recordings(struct pnet_runner *s)
{
    for (int i = 0; i < PNET_RUNNER_RECORDINGS; i++)
        if (s->recordings[i].record) pnet_device_record_free(s->device, s->recordings[i].record);
}

enum pnet_status pnet_runner_replay_pass(
    struct pnet_runner *s, const struct pnet_runner_pass *pass, struct pnet_error *e)
{
    uint64_t key = pass_key(s, pass);
    struct pnet_runner_recording *r = find_recording(s, key);
    r->used = ++s->replays;
    if (r->key != key) {
        r->key = key;
        pnet_runner_run_pass(s, pass);
        return PNET_OK;
    }
    if (!r->record) {
        r->record = record_pass(s, pass);
        if (!r->record) {
            r->key = 0;
            enum pnet_status st = pnet_device_wait(s->device, e);
            return st ? st
                      : pnet_error_set(e, PNET_NO_DEVICE, "the schedule could not be recorded");
        }
    }
    pnet_device_replay(s->device, r->record);
    return PNET_OK;
}

void *pnet_runner_record(
    struct pnet_runner *s, int slot, bool backward, pnet_runner_wanted *wanted, void *context)
{
    int forward = s->plan->forward_steps;
    struct pnet_runner_pass pass = {.slot = slot,
        .first = backward ? forward : 0,
        .last = backward ? s->plan->step_count : forward,
        .training = true,
        .notifies = backward && s->listener_count && !wanted,
        .wanted = wanted,
        .context = context};
    return record_pass(s, &pass);
}
