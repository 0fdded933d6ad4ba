/* The inside of a session: declarations that its files share. */
#ifndef PNET_RUNTIME_SESSION_OWN_H
#define PNET_RUNTIME_SESSION_OWN_H

#include "runtime/run/layout.h"
#include "runtime/run/session.h"

/* Values that a recorded schedule reads for each batch besides the counts: in device memory, written before each replay. */
struct pnet_session_live {
    float scale;   /* of the losses' gradients */
    uint32_t step; /* of dropout's draws */
};

/* A recorded part of the schedule, for one capacity class, one slot, and the addresses of that time. */
struct pnet_session_recording {
    uint64_t key; /* 0: free */
    void *record; /* NULL: ran once and is not recorded yet */
    uint64_t used;
};

/* A function that is notified of ready gradients. */
struct pnet_session_listener {
    pnet_gradients_ready *ready;
    void *context;
};

enum { PNET_SESSION_RECORDINGS = 64 };

struct pnet_session {
    const struct pnet_bound *bound;
    const struct pnet_plan *plan; /* the bound plan */
    struct pnet_device device;
    uint64_t seed;
    bool no_recording;
    struct pnet_memory memory;
    struct pnet_buffer params, grads, extra, arena, live;
    struct pnet_session_recording recordings[PNET_SESSION_RECORDINGS];
    uint64_t replays; /* clock for `used` */
    struct pnet_session_live host_live;
    struct pnet_geo_work *work; /* shared by the slots */
    struct pnet_slot *slots[2];
    struct pnet_layout layout;
    struct pnet_counts class_; /* capacity classes that the layout was made for */
    bool laid_out;
    size_t planned; /* pnet_session_planned */
    uint32_t step;
    double *times;
    struct pnet_session_listener listeners[PNET_LISTENERS]; /* in the order of notification */
    int listener_count;
};

/* A range of the schedule. A backward part begins with the gradients of the losses. */
struct pnet_session_pass {
    int slot, first, last;               /* steps first .. last - 1 */
    bool training, accumulate, notifies; /* notifies: tells listeners of ready gradients */
    pnet_session_wanted *wanted;         /* NULL: all steps */
    void *context;
};

/* Returns the address of a tensor; NULL: it has no memory. */
void *pnet_session_data(const struct pnet_session *s, const struct pnet_slot *slot, int tensor);

/* Runs a pass step by step. */
void pnet_session_run_pass(struct pnet_session *s, const struct pnet_session_pass *pass);
/* GPU: the first batch of a class runs step by step, the second one is recorded, the others replay it. */
enum pnet_status pnet_session_replay_pass(
    struct pnet_session *s, const struct pnet_session_pass *pass, struct pnet_error *e);
void pnet_session_free_recordings(struct pnet_session *s);

/* Copies the scale of the losses' gradients to the memory from which backward begins. */
void pnet_session_begin_backward(const struct pnet_session *s, int slot);
/* Returns the end of the parameter range whose gradients are final after backward step `step`, or `notified`, the end of the
   range before, if the new range is too small to notify about. */
int64_t pnet_session_ready_end(const struct pnet_session *s, int step, int64_t notified);
/* Calls the listeners, in their order; an empty range calls none. */
void pnet_session_notify(const struct pnet_session *s, int64_t begin, int64_t end);

#endif
