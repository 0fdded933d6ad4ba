/* Sessions: a model on one device, its weights, batches, results and training. A part of pnet.h, which programs include. */
#ifndef PNET_API_SESSION_H
#define PNET_API_SESSION_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pnet_optimizer_kind {
    PNET_OPTIMIZER_SGD = 0,
    PNET_OPTIMIZER_ADAM = 1,
    PNET_OPTIMIZER_ADAMW = 2
};
/* In PyTorch's definitions of torch.optim.SGD (without dampening), Adam and AdamW; but weight decay leaves out biases and norms
   unless decay_all is set. */
struct pnet_optimizer {
    size_t size;
    enum pnet_optimizer_kind kind;
    double momentum; /* SGD: 0 up to, but not including, 1 */
    int nesterov;    /* SGD */
    double beta1, beta2, eps;
    double weight_decay;
    int decay_all; /* weight decay also for biases and norms */
};
/* Fills all but `size`: momentum 0.9, which PyTorch has as 0; betas 0.9 and 0.999, eps 1e-8; weight decay 0, of ADAMW 0.01. */
PNET_API enum pnet_status pnet_optimizer_default(
    enum pnet_optimizer_kind kind, struct pnet_optimizer *o, struct pnet_error *e);

/* Where the arrays of numbers lie that calls of a session get: those of bind, results, outputs, gradients of outputs and inputs,
   weights and their gradients. */
enum pnet_arrays {
    PNET_ARRAYS_HOST = 0,
    PNET_ARRAYS_DEVICE = 1 /* on the session's GPU; on the CPU this is the same */
};

struct pnet_session_options {
    size_t size;
    const char *device; /* "cpu" (NULL), "cuda", "cuda:1" */
    /* "fp32", on a GPU also "tf32", "bf16", "fp16"; NULL: "fp32", or what `trained` of the model gives */
    const char *precision;
    size_t memory_limit; /* bytes on the device; 0: none */
    uint64_t seed;       /* of fresh weights, dropout, and losses that draw */
    /* TRAIN; NULL: the caller makes the steps itself */
    const struct pnet_optimizer *optimizer;
    enum pnet_arrays arrays;
    /* GPU: a cudaStream_t, which lives as long as the session. All its work comes behind what is there, and before what is put
       there afterwards. NULL: with arrays on the GPU the default stream, else none */
    void *stream;
    /* For all memory of the session on its device. On the CPU it is host memory, in multiples of 64 bytes, and `stream` is NULL.
       NULL: the device's own */
    const struct pnet_allocator *allocator;
};

/* With arrays on a GPU these calls return before their work is done: forward, forward_training, gradients, backward, result,
   output, input_gradient, step without `info`, and those that get or set one weight or gradient. They wait for the GPU only where
   a batch needs more memory than those before it, and where metrics are computed on the host. Failures of kernels are told by a
   later call; arrays must stay until the stream has passed. All other calls that use the GPU wait for it, bind too: counts of
   levels and triplets come to the host, and so do row splits. No CUDA graph can record a session, which makes its own. */
struct pnet_session;

/* Makes a session; it has no weights yet, and no batch. `o` may be NULL. PNET_BAD_MODEL: the model has errors.
   PNET_NO_DEVICE: the device is not there, or this library was built without it. */
PNET_API enum pnet_status pnet_session_new(const struct pnet_model *m,
    const struct pnet_session_options *o, struct pnet_session **session, struct pnet_error *e);
/* NULL is allowed. */
PNET_API void pnet_session_free(struct pnet_session *s);

/* Weights come from one of these three, before anything is computed. After a failure the weights are as before. */

/* Fresh ones, which depend on the seed and their names alone. */
PNET_API enum pnet_status pnet_session_init(struct pnet_session *s, struct pnet_error *e);
/* Those of a safetensors file, a checkpoint or a run folder (its best checkpoint, else its last). PNET_BAD_MODEL names the first
   tensor that is missing or has another shape, PNET_BAD_DATA one with numbers that are not finite. */
PNET_API enum pnet_status pnet_session_load(
    struct pnet_session *s, const char *path, struct pnet_error *e);
/* Those of another session, `from`, found by name: of a TRAIN or EVAL session, because an INFER session has folded some. */
PNET_API enum pnet_status pnet_session_copy_weights(
    struct pnet_session *s, struct pnet_session *from, struct pnet_error *e);

/* TRAIN, EVAL: writes the weights to a safetensors file, which pnetc and pnet_session_load read. An existing file is replaced
   as a whole, or stays as it is. */
PNET_API enum pnet_status pnet_session_save(
    struct pnet_session *s, const char *path, struct pnet_error *e);
/* One weight by its name, row-major; `count` is its number of elements. PNET_USAGE: there is none of that name, it has
   another count, it is folded, or nothing that the model computes depends on it. */
PNET_API enum pnet_status pnet_session_get_weight(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e);
PNET_API enum pnet_status pnet_session_set_weight(struct pnet_session *s, const char *name,
    const float *from, int64_t count, struct pnet_error *e);

struct pnet_value {
    const char *name;
    struct pnet_array array;
};

/* Takes a batch of point clouds, and builds the geometry that the model needs from it. `values` are, by name and in no
   particular order:
     "INPUT.FIELD"  a field of an input, as struct pnet_field_info says. Every field that the model reads must be there,
                    others may
     "INPUT"        of a cloud: int64 or int32 [samples + 1, 1], the rows at which its samples begin, and last the number of
                    rows: 0, 1000, 2500 are two samples of 1000 and 1500 points. Without it the cloud is one sample. All
                    clouds have equally many samples. Of a pose: its matrices
   The numbers are what the network reads: nothing is divided, converted or subtracted, as pnetc does with clouds of files.
   Rows of one sample are contiguous; their order is free, and results have the same. Fields that are contiguous float32 or
   int32 are not copied on the host.
   PNET_USAGE: a value is missing, unknown or twice there, or has the wrong type or shape. PNET_BAD_DATA: its numbers are
   wrong, and the message names the row; or points lie too far from the origin for the model's cells. PNET_NO_MEMORY. After a
   failure the session has no batch. */
PNET_API enum pnet_status pnet_session_bind(
    struct pnet_session *s, const struct pnet_value *values, size_t count, struct pnet_error *e);

/* Computes what the model was compiled for, on the batch: the result, or losses and metrics. Norms use their running statistics,
   and nothing is dropped out, in a TRAIN session too. PNET_USAGE: there are no weights or no batch. PNET_NO_MEMORY comes before
   anything is computed; the message says what takes the memory. */
PNET_API enum pnet_status pnet_session_forward(struct pnet_session *s, struct pnet_error *e);

/* INFER, after bind: rows and channels of the result of this batch. */
PNET_API enum pnet_status pnet_session_result_shape(
    struct pnet_session *s, int64_t *rows, int64_t *width, struct pnet_error *e);
/* INFER, after forward: copies the result, row-major; `count` is rows * width. Points have the order of the batch; generated
   points lie behind each other, those of one row together, in the order of those rows. */
PNET_API enum pnet_status pnet_session_result(
    struct pnet_session *s, float *to, int64_t count, struct pnet_error *e);
/* After bind: rows and channels of an output of the model in this batch, by the name that the options gave it. */
PNET_API enum pnet_status pnet_session_output_shape(
    struct pnet_session *s, const char *name, int64_t *rows, int64_t *width, struct pnet_error *e);
/* After bind: the rows at which samples begin in it, and last the number of rows; `count` is samples + 1. PNET_USAGE: another
   count. */
PNET_API enum pnet_status pnet_session_output_splits(
    struct pnet_session *s, const char *name, int64_t *to, int64_t count, struct pnet_error *e);
/* After forward, forward_training, gradients or backward: copies the output, row-major; `count` is rows * width. Rows are as
   struct pnet_output_info says; generated points as in a result. */
PNET_API enum pnet_status pnet_session_output(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e);
/* EVAL, TRAIN: a loss or metric of this batch by its name. A loss after forward, forward_training, gradients or backward, a
   metric after forward. A metric that is not defined for the batch is NaN. */
PNET_API enum pnet_status pnet_session_objective(
    struct pnet_session *s, const char *name, double *value, struct pnet_error *e);

/* ---- training: sessions of models compiled for PNET_PURPOSE_TRAIN ---- */

/* Runs forward and backward on the batch, as training does it: norms use the statistics of the batch and update the running
   ones, dropout drops. Computes the gradients of `scale` times the sum of the losses; with `accumulate` they are added to the
   gradients that are there. Each call draws other random numbers. PNET_USAGE: `scale` is not finite. */
PNET_API enum pnet_status pnet_session_gradients(
    struct pnet_session *s, float scale, int accumulate, struct pnet_error *e);
/* The two halves of it, for losses of the caller's own. The first one runs forward as training does, so that outputs and the
   model's losses can be read. Each call draws other random numbers. */
PNET_API enum pnet_status pnet_session_forward_training(
    struct pnet_session *s, struct pnet_error *e);
/* The second one runs backward, once behind each of the first: computes the gradients of
       sum over outputs of sum over their numbers of  gradient * output,  plus `scale` times the sum of the model's losses.
   `gradients` are those of the caller's loss by outputs, by name, float32 [rows, width] as pnet_session_output gives them,
   contiguous; outputs that are not there have none. `scale` 0: the model's losses do not count. With `accumulate` the gradients
   of weights are added to those that are there; those of inputs are of this batch alone. PNET_USAGE: an array is unknown, twice
   there, or has another type or shape; nothing that learns leads to the output; `scale` is not finite; or forward_training is not
   the last that ran. */
PNET_API enum pnet_status pnet_session_backward(struct pnet_session *s,
    const struct pnet_value *gradients, size_t count, float scale, int accumulate,
    struct pnet_error *e);
/* After gradients or backward, in a model with `input_gradients`: the gradient by the numbers of a float32 field of an input,
   "cloud.rgb", in the rows and the width of the field; `count` is their product. Positions have the gradient of layers that read
   them as features: where points lie is taken as constant. 0 where the field has no effect. */
PNET_API enum pnet_status pnet_session_input_gradient(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e);
/* The gradient of one trained weight, as pnet_session_get_weight. */
PNET_API enum pnet_status pnet_session_get_gradient(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e);
PNET_API enum pnet_status pnet_session_set_gradient(struct pnet_session *s, const char *name,
    const float *from, int64_t count, struct pnet_error *e);

struct pnet_step_options {
    size_t size;
    double learning_rate;
    double clip;       /* largest 2-norm of all gradients, to which they are scaled down; 0: none */
    double loss_scale; /* the gradients are divided by it first; 0: 1 */
};
struct pnet_step_info {
    size_t size;
    double gradient_norm; /* 2-norm of the gradients, divided by the loss scale, before clipping */
    int skipped;          /* the norm or a loss is not finite: nothing was changed */
    int64_t steps;        /* that changed the weights so far */
};
/* One step of the session's optimiser with the gradients that are there. `info` may be NULL: with arrays on a GPU the call then
   does not wait. PNET_USAGE: there is no optimiser, there are no gradients, or a number is negative or not finite. */
PNET_API enum pnet_status pnet_session_step(struct pnet_session *s,
    const struct pnet_step_options *o, struct pnet_step_info *info, struct pnet_error *e);

/* ---- memory ---- */

struct pnet_memory_info {
    size_t size;
    size_t planned; /* peak of a session that runs this batch alone, before it runs; 0: no batch */
    size_t used;    /* what the session has now */
    size_t peak;    /* and at most so far */
};
/* Bytes on the session's device, to the byte; what the compiler and the handles take on the host is not in it. */
PNET_API enum pnet_status pnet_session_memory(
    struct pnet_session *s, struct pnet_memory_info *m, struct pnet_error *e);

/* The peak in bytes of a session with these options (NULL: defaults), for a batch of one sample with `points` points in each
   cloud, assuming usual ratios between levels, as `pnetc plan --points` does. The device need not be present. */
PNET_API enum pnet_status pnet_model_peak(const struct pnet_model *m,
    const struct pnet_session_options *o, int64_t points, size_t *bytes, struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
