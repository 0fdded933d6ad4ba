/* The inside of a runner: declarations that its files share. */
#ifndef PNET_RUNTIME_RUNNER_OWN_H
#define PNET_RUNTIME_RUNNER_OWN_H

#include "runtime/run/layout.h"
#include "runtime/run/runner.h"

/* Values that a recorded schedule reads for each batch besides the counts: in device memory, written before each replay. */
struct pnet_runner_live {
    float scale;   /* of the losses' gradients */
    uint32_t step; /* of dropout's draws */
};

/* A recorded part of the schedule, for one capacity class, one slot, and the addresses of that time. */
struct pnet_runner_recording {
    uint64_t key; /* 0: free */
    void *record; /* NULL: ran once and is not recorded yet */
    uint64_t used;
};

/* A function that is notified of ready gradients. */
struct pnet_runner_listener {
    pnet_gradients_ready *ready;
    void *context;
};

enum { PNET_RUNNER_RECORDINGS = 64 };

struct pnet_runner {
    const struct pnet_bound *bound;
    const struct pnet_plan *plan; /* the bound plan */
    struct pnet_device device;
    uint64_t seed;
    bool no_recording;
    struct pnet_memory memory;
    struct pnet_buffer params, grads, extra, arena, live;
    struct pnet_runner_recording recordings[PNET_RUNNER_RECORDINGS];
    uint64_t replays; /* clock for `used` */
    struct pnet_runner_live host_live;
    struct pnet_geo_work *work; /* shared by the slots */
    struct pnet_slot *slots[2];
    struct pnet_layout layout;
    struct pnet_counts class_; /* capacity classes that the layout was made for */
    bool laid_out;
    size_t planned; /* pnet_runner_planned */
    uint32_t step;
    bool *seeded; /* [plan->output_count]: the gradient of the output is set */
    double *times;
    struct pnet_runner_listener listeners[PNET_LISTENERS]; /* in the order of notification */
    int listener_count;
};

/* A range of the schedule. A backward part begins with the gradients of the losses. */
struct pnet_runner_pass {
    int slot, first, last;               /* steps first .. last - 1 */
    bool training, accumulate, notifies; /* notifies: tells listeners of ready gradients */
    pnet_runner_wanted *wanted;          /* NULL: all steps */
    void *context;
};

/* Returns the address of a tensor; NULL: it has no memory. */
void *pnet_runner_data(const struct pnet_runner *s, const struct pnet_slot *slot, int tensor);

/* Runs a pass step by step. */
void pnet_runner_run_pass(struct pnet_runner *s, const struct pnet_runner_pass *pass);
/* GPU: the first batch of a class runs step by step, the second one is recorded, the others replay it. */
enum pnet_status pnet_runner_replay_pass(
    struct pnet_runner *s, const struct pnet_runner_pass *pass, struct pnet_error *e);
void pnet_runner_free_recordings(struct pnet_runner *s);

/* Before a backward part: sets the gradients of outputs that are not set to zero, and all to be set anew. */
void pnet_runner_seed_rest(struct pnet_runner *s, int slot);
/* Copies the scale of the losses' gradients to the memory from which backward begins. */
void pnet_runner_begin_backward(const struct pnet_runner *s, int slot);
/* Returns the end of the parameter range whose gradients are final after backward step `step`, or `notified`, the end of the
   range before, if the new range is too small to notify about. */
int64_t pnet_runner_ready_end(const struct pnet_runner *s, int step, int64_t notified);
/* Calls the listeners, in their order; an empty range calls none. */
void pnet_runner_notify(const struct pnet_runner *s, int64_t begin, int64_t end);

#endif
