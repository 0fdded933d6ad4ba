/* A runner runs a bound plan: parameters, one arena for the feature stage, slots for the geometry of this batch and the
   next. */
#ifndef PNET_RUNTIME_RUNNER_H
#define PNET_RUNTIME_RUNNER_H

#include "runtime/device/memory.h"
#include "runtime/plan/plan.h"
#include "runtime/run/slot.h"
#include "runtime/run/waits.h"

struct pnet_runner_options {
    size_t memory_limit;              /* bytes; 0: none */
    int slots;                        /* 1, or 2 to prepare the next batch while one runs */
    uint64_t seed;                    /* of weights and dropout */
    int64_t extra_bytes;              /* optimiser state, counted from the start */
    bool no_recording;                /* GPU: runs steps one by one, for tests and timings */
    const struct pnet_supply *supply; /* of all memory; copied. NULL: the device's own */
};

/* Bytes that a runner on a GPU needs for values that change from batch to batch. */
enum { PNET_LIVE_BYTES = 64 };

struct pnet_runner;

/* The caller frees the runner. `b` and its plan must outlive it. PNET_NO_DEVICE: the device of `b` is not present, or a
   layer has no kernels for it. PNET_NO_MEMORY. */
enum pnet_status pnet_runner_new(const struct pnet_bound *b, const struct pnet_runner_options *o,
    struct pnet_runner **s, struct pnet_error *e);
void pnet_runner_free(struct pnet_runner *s);

const struct pnet_bound *pnet_runner_bound(const struct pnet_runner *s);
const struct pnet_plan *pnet_runner_plan(const struct pnet_runner *s);
struct pnet_device pnet_runner_device(const struct pnet_runner *s);
uint64_t pnet_runner_seed(const struct pnet_runner *s);
/* [plan->param_elements] and [plan->trained_elements] float32 at the plan's offsets, in device memory. */
float *pnet_runner_params(struct pnet_runner *s);
float *pnet_runner_grads(struct pnet_runner *s);
/* Returns `extra_bytes` of zeroed device memory; NULL if extra_bytes is 0. */
void *pnet_runner_extra(struct pnet_runner *s);

/* Copies [count] float32, from element `offset` of a block on, between the host and the device. */
enum pnet_runner_block { PNET_BLOCK_PARAMS, PNET_BLOCK_GRADS, PNET_BLOCK_EXTRA };
/* Returns the block in device memory. */
float *pnet_runner_block_data(const struct pnet_runner *s, enum pnet_runner_block block);
enum pnet_status pnet_runner_read(const struct pnet_runner *s, enum pnet_runner_block block,
    int64_t offset, int64_t count, float *to, struct pnet_error *e);
enum pnet_status pnet_runner_write(struct pnet_runner *s, enum pnet_runner_block block,
    int64_t offset, int64_t count, const float *from, struct pnet_error *e);

/* Sets fresh weights, which depend on the seed and the parameters' names alone. */
enum pnet_status pnet_runner_init_params(struct pnet_runner *s, struct pnet_error *e);

/* Returns the float32 data [count] of the parameter of that name in a checkpoint, or NULL if there is none. The data must
   stay valid until the next call. */
typedef const float *pnet_param_source(void *context, const char *name, int64_t count);
/* Fills all parameters from `source`, folding batch norms where the plan does. PNET_BAD_MODEL names
   the first tensor that is missing or has another size. */
enum pnet_status pnet_runner_load_params(
    struct pnet_runner *s, pnet_param_source *source, void *context, struct pnet_error *e);

/* Runs the geometry stage of a slot. It may run in another thread while the other slot is executed. */
enum pnet_status pnet_runner_prepare(
    struct pnet_runner *s, int slot, const struct pnet_batch *b, struct pnet_error *e);

/* Runs the forward part on a prepared slot, in training without the metrics. `step` selects the
   random numbers of dropout and of losses that draw.
   PNET_NO_MEMORY before anything ran: names what is alive at the peak. */
enum pnet_status pnet_runner_forward(
    struct pnet_runner *s, int slot, bool training, uint32_t step, struct pnet_error *e);
/* Runs the backward part after a forward of the same slot: computes the gradients of `scale` times the sum of losses, and of
   the outputs times their gradients. With `accumulate` they are added to the present gradients. */
enum pnet_status pnet_runner_backward(
    struct pnet_runner *s, int slot, float scale, bool accumulate, struct pnet_error *e);
/* Runs the whole schedule once on a prepared slot, without metrics, with the random numbers of the last forward pass, and calls
   `visit` before each step with the step's record. A visit may run the step itself any number of times. For measurements: the
   contents of arena, gradients and running statistics are lost. The first status of a visit that is not PNET_OK ends the run. */
typedef enum pnet_status pnet_runner_visit(
    void *context, int step, const struct pnet_exec *x, struct pnet_error *e);
enum pnet_status pnet_runner_walk(
    struct pnet_runner *s, int slot, pnet_runner_visit *visit, void *context, struct pnet_error *e);
/* Adds a listener to the end of the list; the same one is moved there. A backward pass calls the listeners in this order: the
   gradients from element `begin` up to `end` of the block are final once the step that was last put on the device has run.
   Ranges follow each other from 0 on and are the same in every pass; the rest, when the pass is over, is not notified. Work that
   a listener puts on the device may read these gradients, and write what no step reads or writes; what a listener writes into
   them, the next one reads. A recorded pass repeats that work whenever it is replayed, concurrently with other steps.
   false: there are PNET_LISTENERS already. */
typedef void pnet_gradients_ready(void *context, int64_t begin, int64_t end);
enum { PNET_LISTENERS = 8 };
bool pnet_runner_listen(struct pnet_runner *s, pnet_gradients_ready *ready, void *context);
void pnet_runner_unlisten(struct pnet_runner *s, pnet_gradients_ready *ready, void *context);
/* GPU, for measurements, after forward: records the forward or the backward part of a training on a prepared slot, as a
   training records it. Steps for which `wanted` returns false are left out, but the order between other steps stays; NULL:
   all steps are wanted. The caller replays the recording with pnet_device_replay and frees it with pnet_device_record_free.
   NULL: it could not be recorded. */
typedef bool pnet_runner_wanted(void *context, int step);
void *pnet_runner_record(
    struct pnet_runner *s, int slot, bool backward, pnet_runner_wanted *wanted, void *context);
/* Waits until the device has done all its work, and reports errors from there. */
enum pnet_status pnet_runner_wait(struct pnet_runner *s, struct pnet_error *e);

/* After forward: returns the value of an objective. For a metric, adds to `sum` [width] instead, unless NULL. */
double pnet_runner_objective(const struct pnet_runner *s, int objective, double *sum);
/* After forward, of a term of a loss (pnet_plan_terms): the mean that its value is. */
enum pnet_status pnet_runner_mean(
    const struct pnet_runner *s, int slot, int tensor, struct pnet_mean *m, struct pnet_error *e);
/* Returns the address of an objective's value in device memory; it is valid until the next bind. */
const void *pnet_runner_objective_data(const struct pnet_runner *s, int objective);
/* After forward: the result (plan->result), [rows, width] for the points of the batch's result input in the order of the
   batch; a result per sample has one row a sample, and one of generated points all of them, those of one row of the level they
   are generated for behind each other, in the order of those rows. The caller frees it. */
enum pnet_status pnet_runner_result(
    const struct pnet_runner *s, int slot, float **data, int64_t *rows, struct pnet_error *e);

/* The same into memory of the caller, of pnet_runner_result_rows rows, which are known after prepare. `there`: it is memory of
   the device, and the call does not wait. */
enum pnet_status pnet_runner_give_result(
    const struct pnet_runner *s, int slot, bool there, float *to, struct pnet_error *e);
int64_t pnet_runner_result_rows(const struct pnet_runner *s, int slot);

/* After forward, of a value that is kept, or the gradient of an input after backward: float32 [rows, width]. Rows of points, and
   of points generated for them, have the order of the batch, all others that of their level. */
enum pnet_status pnet_runner_give(
    const struct pnet_runner *s, int slot, int tensor, bool there, float *to, struct pnet_error *e);
int64_t pnet_runner_tensor_rows(const struct pnet_runner *s, int slot, int tensor);
/* After forward in training, before backward: the gradient of an output of the plan, which has one, in the same rows. Without it
   the gradient is zero. */
enum pnet_status pnet_runner_take_gradient(struct pnet_runner *s, int slot, int output, bool there,
    const float *from, struct pnet_error *e);

/* Returns the memory of a tensor after forward or backward, for tests and dumps; NULL if it has no memory then. */
const void *pnet_runner_tensor(const struct pnet_runner *s, int slot, int tensor, int64_t *rows);

/* Copies the tensor to the host, features as float32 whatever their storage: [rows, width], freed by the caller. */
enum pnet_status pnet_runner_copy_tensor(const struct pnet_runner *s, int slot, int tensor,
    void **data, int64_t *rows, struct pnet_error *e);

/* For tests: fills the arena with NaN, so that reading memory before it is written shows. The results of forward are
   lost. */
void pnet_runner_poison(struct pnet_runner *s);

/* For tests: sets the bound record of one step. `slot` must be prepared and forward must have run. */
void pnet_runner_exec(
    const struct pnet_runner *s, int slot, int step, bool training, struct pnet_exec *x);

/* Sets what the parts of a step read and write, at the present addresses; forward must have run. */
void pnet_runner_touches(
    const struct pnet_runner *s, int step, struct pnet_touched parts[PNET_STEP_PARTS]);
/* Launches one bound step. In training a metric does nothing. */
void pnet_runner_run_step(
    const struct pnet_runner *s, int slot, int step, bool training, bool accumulate);

const struct pnet_slot *pnet_runner_slot(const struct pnet_runner *s, int slot);
const struct pnet_memory *pnet_runner_memory(const struct pnet_runner *s);
/* Returns the largest pnet_peak_of of the batches that forward has run, in bytes; 0 before the first one. It counts each slot
   as if it held the same batch. */
size_t pnet_runner_planned(const struct pnet_runner *s);

/* Returns the time, in seconds, that the host has spent on each step so far, [plan->step_count]; on the CPU this is the time
   of the step. */
const double *pnet_runner_times(const struct pnet_runner *s);

#endif
