/* How a session's schedule is recorded. */
#ifndef PNET_RUNTIME_SESSION_RECORD_H
#define PNET_RUNTIME_SESSION_RECORD_H

#include "runtime/run/session.h"

/* A range of the schedule, and the gradients of the losses before it where it is the backward part. */
struct pnet_session_pass {
    int slot, first, last;               /* steps first .. last - 1 */
    bool training, accumulate, notifies; /* notifies: the listeners, of gradients that are ready */
    pnet_session_wanted *wanted;         /* NULL: all steps */
    void *context;
};

/* Within a recording: each step waits for nothing but what its memory has to wait for, so that steps that have nothing to
   do with each other may run at once. What is recorded behind it waits for all. false: no memory. */
bool pnet_session_record_pass(const struct pnet_session *s, const struct pnet_session_pass *pass);

/* Returns the end of the parameter range whose gradients are final after backward step `step`, or `notified`, the end of the
   range before, if the new range is too small to notify about. */
int64_t pnet_session_ready_end(const struct pnet_session *s, int step, int64_t notified);
/* Calls the listeners, in their order; an empty range notifies nobody. */
void pnet_session_notify(const struct pnet_session *s, int64_t begin, int64_t end);

#endif
