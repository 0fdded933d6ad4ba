/* A session runs a bound plan: parameters, one arena for the feature stage, slots for the geometry of
 * this batch and the next. */
#ifndef PNET_RUNTIME_SESSION_H
#define PNET_RUNTIME_SESSION_H

#include "runtime/device/memory.h"
#include "runtime/plan/plan.h"
#include "runtime/run/slot.h"
#include "runtime/run/waits.h"

struct pnet_session_options {
    size_t memory_limit; /* bytes; 0: none */
    int slots;           /* 1, or 2 to prepare the next batch while one runs */
    uint64_t seed;       /* of weights and dropout */
    int64_t extra_bytes; /* optimiser state, counted from the start */
    bool no_recording;   /* GPU: step by step, for tests and timings */
};

/* What a session on a GPU holds for what changes from batch to batch. */
enum { PNET_LIVE_BYTES = 64 };

struct pnet_session;

/* The device of `b` must be there; `b` and its plan live as long as the session. PNET_NO_DEVICE: it is not, or a layer has no
   kernels for it. */
enum pnet_status pnet_session_new(const struct pnet_bound *b, const struct pnet_session_options *o,
    struct pnet_session **s, struct pnet_error *e);
void pnet_session_free(struct pnet_session *s);

const struct pnet_bound *pnet_session_bound(const struct pnet_session *s);
const struct pnet_plan *pnet_session_plan(const struct pnet_session *s);
struct pnet_device pnet_session_device(const struct pnet_session *s);
uint64_t pnet_session_seed(const struct pnet_session *s);
/* [plan->param_elements] and [plan->trained_elements] float32 at the plan's offsets, in device memory. */
float *pnet_session_params(struct pnet_session *s);
float *pnet_session_grads(struct pnet_session *s);
/* `extra_bytes` of zeroed device memory; NULL where none was asked for. */
void *pnet_session_extra(struct pnet_session *s);

/* Copies between the host and a block, [count] float32 from `offset`. */
enum pnet_session_block { PNET_BLOCK_PARAMS, PNET_BLOCK_GRADS, PNET_BLOCK_EXTRA };
enum pnet_status pnet_session_read(const struct pnet_session *s, enum pnet_session_block block,
    int64_t offset, int64_t count, float *to, struct pnet_error *e);
enum pnet_status pnet_session_write(struct pnet_session *s, enum pnet_session_block block,
    int64_t offset, int64_t count, const float *from, struct pnet_error *e);

/* Fresh weights, from the seed and the names alone. */
enum pnet_status pnet_session_init_params(struct pnet_session *s, struct pnet_error *e);

/* Copies one parameter out of a checkpoint's tensors; returns NULL where there is none of that
   name, or its float32 data [count]. The caller owns it until the call returns. */
typedef const float *pnet_param_source(void *context, const char *name, int64_t count);
/* Fills all parameters from `source`, folding batch norms where the plan does. PNET_BAD_MODEL names
   the first tensor that is missing or has another size. */
enum pnet_status pnet_session_load_params(
    struct pnet_session *s, pnet_param_source *source, void *context, struct pnet_error *e);

/* The geometry stage of a slot; may run on another thread than the one that executes the other
 * slot. */
enum pnet_status pnet_session_prepare(
    struct pnet_session *s, int slot, const struct pnet_batch *b, struct pnet_error *e);

/* Runs the forward part on a prepared slot, in training without the metrics. `step` selects the
   random numbers of dropout and of losses that draw.
   PNET_NO_MEMORY before anything ran: names what is alive at the peak. */
enum pnet_status pnet_session_forward(
    struct pnet_session *s, int slot, bool training, uint32_t step, struct pnet_error *e);
/* Runs the backward part behind a forward of the same slot: gradients of `scale` times the sum of
   losses; added to what is there with `accumulate`. */
enum pnet_status pnet_session_backward(
    struct pnet_session *s, int slot, float scale, bool accumulate, struct pnet_error *e);
/* Runs the whole schedule once on a prepared slot, without metrics, and calls `visit` before each step with what the step
   gets; a visit may run the step itself, as often as it likes. Arena, gradients and running statistics are spoiled: for
   measurements. The first status of a visit that is not PNET_OK ends it. */
typedef enum pnet_status pnet_session_visit(
    void *context, int step, const struct pnet_exec *x, struct pnet_error *e);
enum pnet_status pnet_session_walk(struct pnet_session *s, int slot, pnet_session_visit *visit,
    void *context, struct pnet_error *e);
/* Adds a listener to the end of the list; the same one is moved there. A backward pass calls the listeners in this order: the
   gradients from element `begin` up to `end` of the block are final once the step that was last put on the device has run.
   Ranges follow each other from 0 on and are the same in every pass; the rest, when the pass is over, is not notified. Work that
   a listener puts on the device may read these gradients, and write what no step reads or writes; what a listener writes into
   them, the next one reads. A recorded pass repeats that work whenever it is replayed, concurrently with other steps.
   false: there are PNET_LISTENERS already. */
typedef void pnet_gradients_ready(void *context, int64_t begin, int64_t end);
enum { PNET_LISTENERS = 8 };
bool pnet_session_listen(struct pnet_session *s, pnet_gradients_ready *ready, void *context);
void pnet_session_unlisten(struct pnet_session *s, pnet_gradients_ready *ready, void *context);
/* GPU: records the forward or the backward part of a training on a prepared slot as training records it, for measurements:
   forward has run. Of steps that `wanted` says no to nothing is left but what waits for them; NULL: all are wanted. To be
   replayed and freed with pnet_device_replay and pnet_device_record_free. NULL: it could not be recorded. */
typedef bool pnet_session_wanted(void *context, int step);
void *pnet_session_record(
    struct pnet_session *s, int slot, bool backward, pnet_session_wanted *wanted, void *context);
/* Waits until the device has done what was asked for, and tells what went wrong there. */
enum pnet_status pnet_session_wait(struct pnet_session *s, struct pnet_error *e);

/* After forward: the value of an objective; for a metric, `sum` [width] is added to instead (may be
 * NULL). */
double pnet_session_objective(const struct pnet_session *s, int objective, double *sum);
/* Where an objective's value stands, in device memory; good until the next bind. */
const void *pnet_session_objective_data(const struct pnet_session *s, int objective);
/* After forward: the result (plan->result), [rows, width] on the points of the batch's result input
   in the batch's own order; for a result per sample, one row a sample. Owned by the caller (free).
 */
enum pnet_status pnet_session_result(
    const struct pnet_session *s, int slot, float **data, int64_t *rows, struct pnet_error *e);

/* What the tensor holds after forward or backward, for tests and dumps; NULL where it has no memory
 * then. */
const void *pnet_session_tensor(const struct pnet_session *s, int slot, int tensor, int64_t *rows);

/* The same on the host, features as float32 however they are stored: [rows, width], to be freed. */
enum pnet_status pnet_session_copy_tensor(const struct pnet_session *s, int slot, int tensor,
    void **data, int64_t *rows, struct pnet_error *e);

/* Fills the arena with NaN: what a kernel reads without having been given it shows. For tests; ends
 * what forward left. */
void pnet_session_poison(struct pnet_session *s);

/* The pnet_exec of one step, bound; for tests. `slot` must be prepared and bound (forward ran). */
void pnet_session_exec(
    const struct pnet_session *s, int slot, int step, bool training, struct pnet_exec *x);

/* What the parts of a step read and write, where it lies now (forward ran). */
void pnet_session_touches(
    const struct pnet_session *s, int step, struct pnet_touched parts[PNET_STEP_PARTS]);
/* Asks for one step, bound; in training a metric does nothing. */
void pnet_session_run_step(
    const struct pnet_session *s, int slot, int step, bool training, bool accumulate);

const struct pnet_slot *pnet_session_slot(const struct pnet_session *s, int slot);
const struct pnet_memory *pnet_session_memory(const struct pnet_session *s);

/* Time the host spent on each step so far, in seconds, [plan->step_count]: on the CPU the time it took. */
const double *pnet_session_times(const struct pnet_session *s);

#endif
