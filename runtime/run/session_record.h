/* How a session's schedule is recorded. */
#ifndef PNET_RUNTIME_SESSION_RECORD_H
#define PNET_RUNTIME_SESSION_RECORD_H

#include "runtime/run/session.h"

/* A range of the schedule, and the gradients of the losses before it where it is the backward part. */
struct pnet_session_pass {
    int slot, first, last;            /* steps first .. last - 1 */
    bool training, accumulate, tells; /* tells: which gradients are ready */
    pnet_session_wanted *wanted;      /* NULL: all steps */
    void *context;
};

/* Within a recording: each step waits for nothing but what its memory has to wait for, so that steps that have nothing to
   do with each other may run at once. What is recorded behind it waits for all. false: no memory. */
bool pnet_session_record_pass(const struct pnet_session *s, const struct pnet_session_pass *pass);

/* Where the gradients end that are ready behind a backward step and shall be told: `told`, where those told before end, if
   there are not enough more. */
int64_t pnet_session_ready_end(const struct pnet_session *s, int step, int64_t told);
void pnet_session_tell_ready(const struct pnet_session *s, int64_t begin, int64_t end);

#endif
