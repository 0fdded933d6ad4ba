/* What the handles of include/pnet.h hold, and what its functions share. */
#ifndef PNET_LIBRARY_LIBRARY_H
#define PNET_LIBRARY_LIBRARY_H

#include "include/pnet.h"

#include "compiler/compile.h"
#include "library/handle.h"
#include "library/home.h"
#include "runtime/base/thread.h"
#include "runtime/run/runner.h"
#include "runtime/run/updater.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Nothing changes a model but the count of its owners: the caller, and each session. */
struct pnet_model {
    struct pnet_handle handle;
    _Atomic int owners;
    enum pnet_purpose purpose;
    struct pnet_compilation *compilation;
    const struct pnet_plan *plan; /* NULL: the model has errors */
    bool input_gradients;
    struct pnet_diagnostic *diagnostics;
    size_t diagnostic_count;
    int *weights; /* [weight_count]: parameters of the plan that a weights file holds */
    size_t weight_count;
    char *params; /* "name=value" lines with which it was compiled */
    /* of the weights that `trained` names */
    char *kernels; /* their choices of algorithms; "": none */
    bool precision_known;
    enum pnet_precision precision;
};

/* What the memory of a session holds. */
enum pnet_session_state {
    PNET_SESSION_EMPTY,    /* no batch */
    PNET_SESSION_BATCH,    /* a batch and its geometry */
    PNET_SESSION_FORWARD,  /* results, or losses and metrics */
    PNET_SESSION_TRAINING, /* losses, and what backward reads */
    PNET_SESSION_GRADIENTS /* losses and gradients */
};

struct pnet_session {
    struct pnet_handle handle;
    struct pnet_model *model; /* it is one of its owners */
    const struct pnet_plan *plan;
    struct pnet_bound *bound;
    struct pnet_runner *runner;
    struct pnet_updater updater;
    size_t memory_limit, updater_bytes;
    bool has_optimizer, has_weights, has_gradients;
    enum pnet_session_state state;
    uint32_t draws; /* forward passes in training: the step of random numbers */
    struct pnet_home home;
    struct pnet_supply supply; /* `take` is NULL: there is no allocator */
    bool there;                /* the caller's arrays lie on the GPU: calls do not wait for it */
    bool ordered;              /* GPU: calls are part of the caller's stream */
    bool misaligned;           /* memory of the allocator was, in this call */
    int before;                /* `ordered`, in a call: the GPU to go back to */
};

/* Begins a public function that computes. Takes the error of the caller, or one to throw away: functions of the runtime want one.
   Limits the threads of the caller, at whose number OpenMP would crash. */
#define PNET_OWN_ERROR(e)                                                                          \
    struct pnet_error own_error;                                                                   \
    pnet_threads_limit();                                                                          \
    if (!(e)) (e) = &own_error

/* Copies a struct of a caller that begins with its size; NULL: zeros. A struct of a later version may be longer, up to 4096
   bytes, if what this version does not know is zero. PNET_USAGE, with `name` for the struct. */
enum pnet_status pnet_library_take(
    const char *name, const void *from, void *to, size_t size, struct pnet_error *e);
/* The opposite: fills the struct of the caller, of whose size it keeps to. */
enum pnet_status pnet_library_give(
    const char *name, const void *from, void *to, size_t size, struct pnet_error *e);

/* Checks an index, for what there are `count` of. */
enum pnet_status pnet_library_index(
    const char *what, size_t index, size_t count, struct pnet_error *e);

void pnet_library_keep_model(struct pnet_model *m);

/* Makes what a session runs, of the options: device, precision and algorithms. */
enum pnet_status pnet_library_bind(const struct pnet_model *m, const struct pnet_session_options *o,
    struct pnet_bound **b, struct pnet_error *e);
/* Sets *optim to the optimiser of the options; *there: there is one. */
enum pnet_status pnet_library_optimizer(const struct pnet_session_options *o,
    struct pnet_optim *optim, bool *there, struct pnet_error *e);

/* Reads `arrays`, `stream` and `allocator` of the options, once `bound` is set. */
enum pnet_status pnet_library_home(
    const struct pnet_session_options *o, struct pnet_session *s, struct pnet_error *e);

/* What a call does with the device stands between begin and end. `st`: how the call went so far, which is returned unless a
   launch failed. A failed begin has no end. */
enum pnet_status pnet_library_begin(struct pnet_session *s, struct pnet_error *e);
enum pnet_status pnet_library_end(
    struct pnet_session *s, enum pnet_status st, struct pnet_error *e);
/* The session must have weights, and what `state` says at least. */
enum pnet_status pnet_library_ready(
    const struct pnet_session *s, enum pnet_session_state state, struct pnet_error *e);
/* Waits for the device, unless the caller's arrays lie there. */
enum pnet_status pnet_library_wait(struct pnet_session *s, struct pnet_error *e);
/* PNET_USAGE unless an array of the caller lies where it must. */
enum pnet_status pnet_library_check_array(
    const struct pnet_session *s, const char *name, const void *data, struct pnet_error *e);

/* PNET_USAGE unless the session trains; or if the factor of the losses is not finite, or there are no gradients to which others
   could be added. */
enum pnet_status pnet_library_check_training(const struct pnet_session *s, struct pnet_error *e);
enum pnet_status pnet_library_check_backward(
    const struct pnet_session *s, float scale, int accumulate, struct pnet_error *e);
/* Behind a forward in training. */
enum pnet_status pnet_library_backward(
    struct pnet_session *s, float scale, bool accumulate, struct pnet_error *e);

#endif
