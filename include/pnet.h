/* pnet: networks on point clouds. A .pnet text is compiled to a model; a session runs a model on one device.

   What holds for all functions
     Errors      Functions that can fail return enum pnet_status; PNET_OK is 0. `e` gets the status and a sentence, and may be
                 NULL; it is undefined after success. After a failure every handle can still be used, and freed.
     Quiet       Nothing prints, exits, reads the environment, or sets a locale or a signal. (The OpenMP runtime, which runs the
                 threads of the CPU, reads its own variables, such as OMP_NUM_THREADS, and ends the process where there is no
                 memory for its threads.)
     Threads     A session belongs to one thread at a time; different threads may use different sessions at the same time. All
                 other objects never change once they are made: any number of threads may use them at once.
     Ownership   The caller frees every object that a function gives, by the _free of its kind. Texts that functions return
                 belong to the model they came from and live as long as it does. Texts and arrays given to a function are read, or
                 filled, before it returns; nothing keeps a pointer to them.
     Structs     A struct that begins with `size` may grow in later versions. The caller sets `size` to its sizeof; all other
                 members may be zero, which chooses the default. The other structs stay as they are.
     Pointers    are not NULL unless that is said. Indices count from 0, and one too large is PNET_USAGE. Yes is 1, no 0.
     Arrays      are in host memory, but for those of calls on a set that lies on a GPU (struct pnet_voxel_options). */
#ifndef PNET_H
#define PNET_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PNET_API __attribute__((visibility("default")))
#else
#define PNET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions and errors ---- */

/* Grows whenever a program must be compiled anew. 0: it may change with every version. */
#define PNET_ABI 0

/* The PNET_ABI and the version, "0.1.0", of the library that is loaded. */
PNET_API int pnet_abi(void);
PNET_API const char *pnet_version(void);

enum pnet_status {
    PNET_OK = 0,
    PNET_FAILED = 1,    /* the operating system refused something */
    PNET_USAGE = 2,     /* an argument or option is wrong, or a call comes too early */
    PNET_BAD_MODEL = 3, /* .pnet text, or weights that do not fit it */
    PNET_BAD_DATA = 4,  /* values in an array or a file are wrong */
    PNET_NO_MEMORY = 5, /* memory budget or allocation */
    PNET_NO_DEVICE = 6,
    PNET_INTERRUPTED = 130
};

/* The function that fails fills it and overwrites what it held. The caller owns it. */
struct pnet_error {
    enum pnet_status status;
    char message[1024]; /* one line or several, printable UTF-8, no newline at the end */
};

/* ---- models ---- */

/* What a program wants of a model; sessions do what the model was compiled for. */
enum pnet_purpose {
    PNET_PURPOSE_INFER = 0, /* the result of a net, or of one layer */
    PNET_PURPOSE_EVAL = 1,  /* losses and metrics */
    PNET_PURPOSE_TRAIN = 2  /* losses, metrics, gradients, steps of an optimiser */
};

struct pnet_model_options {
    size_t size;
    enum pnet_purpose purpose;
    const char *mode; /* "native" (NULL), "voxel", or degradations: "centre,kernel" */
    /* [param_count] "name=value": params of the model, as pnetc takes them with --set */
    const char *const *params;
    size_t param_count;
    const char *net; /* INFER: the result of this net; NULL: of the last one */
    /* INFER: instead of the net's result, the value of a layer by its path, "rooms.s.0.unit_2.out.relu", or "y[1]" of a list */
    const char *value;
    /* Path of weights (a safetensors file, a checkpoint or a run folder): the model is compiled in the mode and with the
       params that they were trained in, where `mode` and `params` do not say otherwise. Its sessions take the algorithms,
       and on a GPU the precision, of the training. NULL: none. The weights themselves are for pnet_session_load. */
    const char *trained;
    /* [class_weight_count]: for losses whose `weights` the model leaves out; NULL: all 1 */
    const double *class_weights;
    size_t class_weight_count;
};

struct pnet_model;

/* Compiles `length` bytes of `text`; `name` stands for the file in messages, and `include` statements are relative to it. `o`
   may be NULL. With PNET_BAD_MODEL *model is made all the same, so that its diagnostics can be read; with another failure it is
   NULL. `e` then holds the first error as FILE:LINE:COLUMN: TEXT. */
PNET_API enum pnet_status pnet_model_compile(const char *name, const char *text, size_t length,
    const struct pnet_model_options *o, struct pnet_model **model, struct pnet_error *e);
/* The same with the text of a file. A file that cannot be read is an error of the model. */
PNET_API enum pnet_status pnet_model_open(const char *path, const struct pnet_model_options *o,
    struct pnet_model **model, struct pnet_error *e);
/* NULL is allowed. Sessions keep their model, so it may be freed before they are. */
PNET_API void pnet_model_free(struct pnet_model *m);

/* Of every model: errors and warnings, in the order of the text. At most 20 of either. */
enum pnet_diagnostic_kind { PNET_DIAGNOSTIC_ERROR = 0, PNET_DIAGNOSTIC_WARNING = 1 };
struct pnet_diagnostic {
    size_t size;
    enum pnet_diagnostic_kind kind;
    const char *file;
    int32_t line, column;         /* of the first character, from 1; 0: the file as a whole */
    int32_t end_line, end_column; /* of the character after the last */
    const char *message;
    const char *label; /* a remark on the place; NULL: none */
    const char *help;  /* what to write instead, in lines; NULL: none */
};
PNET_API size_t pnet_model_diagnostics(const struct pnet_model *m);
PNET_API enum pnet_status pnet_model_diagnostic(
    const struct pnet_model *m, size_t index, struct pnet_diagnostic *d, struct pnet_error *e);

/* Of a model without errors (else there are none of these): the inputs. */
struct pnet_input_info {
    size_t size;
    const char *name;
    size_t fields; /* 0: a pose, [samples, 16] float32, row-major 4x4: p_target = T p_source */
    int read;      /* the model reads it; else it need not be given */
};
enum pnet_field_kind {
    PNET_FIELD_POSITION = 0, /* float32 [rows, 3], metres */
    PNET_FIELD_FEATURE = 1,  /* float32 [rows, width] */
    PNET_FIELD_CLASS = 2     /* int32 or int64 [rows, 1]: 0 .. classes - 1, or -1: ignored */
};
struct pnet_field_info {
    size_t size;
    const char *name;
    enum pnet_field_kind kind;
    int32_t width;   /* of a row */
    int32_t classes; /* CLASS */
    int per_cloud;   /* one row a sample instead of one a point */
    int read;        /* the model reads it; else it need not be given */
};
PNET_API size_t pnet_model_inputs(const struct pnet_model *m);
PNET_API enum pnet_status pnet_model_input(
    const struct pnet_model *m, size_t index, struct pnet_input_info *i, struct pnet_error *e);
PNET_API enum pnet_status pnet_model_field(const struct pnet_model *m, size_t input, size_t index,
    struct pnet_field_info *f, struct pnet_error *e);

/* The tensors of a weights file for this model: trained weights, and running statistics of norms. */
struct pnet_weight_info {
    size_t size;
    const char *name; /* "rooms.s.0.unit.conv.weight" */
    int32_t dims;
    int64_t shape[4]; /* row-major float32; numbers behind `dims` are 1 */
    int64_t count;    /* product of the shape */
    int trained;      /* 0: a running statistic */
    int folded; /* INFER: joined with others into one: a session cannot give or take it alone */
};
PNET_API size_t pnet_model_weights(const struct pnet_model *m);
PNET_API enum pnet_status pnet_model_weight(
    const struct pnet_model *m, size_t index, struct pnet_weight_info *w, struct pnet_error *e);

/* EVAL, TRAIN: losses and metrics. */
struct pnet_objective_info {
    size_t size;
    const char *name;
    int metric; /* 0: a loss */
};
PNET_API size_t pnet_model_objectives(const struct pnet_model *m);
PNET_API enum pnet_status pnet_model_objective(
    const struct pnet_model *m, size_t index, struct pnet_objective_info *o, struct pnet_error *e);

/* INFER: what a session computes. PNET_USAGE: the model was compiled for another purpose. */
enum pnet_rows {
    PNET_ROWS_POINTS = 0,   /* a row for each point of the input `input`, in the caller's order */
    PNET_ROWS_SAMPLES = 1,  /* a row for each sample */
    PNET_ROWS_GENERATED = 2 /* a row for each point that the net generates */
};
struct pnet_result_info {
    size_t size;
    const char *name; /* path of the value */
    int32_t width;    /* channels of a row */
    int32_t classes;  /* they are scores of so many classes; 0: other features */
    enum pnet_rows rows;
    const char *input; /* POINTS; else NULL */
};
PNET_API enum pnet_status pnet_model_result(
    const struct pnet_model *m, struct pnet_result_info *r, struct pnet_error *e);

/* ---- sessions ---- */

enum pnet_optimizer_kind {
    PNET_OPTIMIZER_SGD = 0,
    PNET_OPTIMIZER_ADAM = 1,
    PNET_OPTIMIZER_ADAMW = 2
};
/* In PyTorch's definitions of torch.optim.SGD (without dampening), Adam and AdamW. */
struct pnet_optimizer {
    size_t size;
    enum pnet_optimizer_kind kind;
    double momentum; /* SGD: 0 up to, but not including, 1 */
    int nesterov;    /* SGD */
    double beta1, beta2, eps;
    double weight_decay;
    int decay_all; /* weight decay also for biases and norms */
};
/* Fills all but `size`: momentum 0.9; betas 0.9 and 0.999, eps 1e-8; weight decay 0, of ADAMW 0.01. */
PNET_API enum pnet_status pnet_optimizer_default(
    enum pnet_optimizer_kind kind, struct pnet_optimizer *o, struct pnet_error *e);

struct pnet_session_options {
    size_t size;
    const char *device; /* "cpu" (NULL), "cuda", "cuda:1" */
    /* "fp32", on a GPU also "tf32", "bf16", "fp16"; NULL: "fp32", or what `trained` of the model gives */
    const char *precision;
    size_t memory_limit; /* bytes on the device; 0: none */
    uint64_t seed;       /* of fresh weights, dropout, and losses that draw */
    /* TRAIN; NULL: the caller makes the steps itself */
    const struct pnet_optimizer *optimizer;
};

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
   another count, or it is folded. */
PNET_API enum pnet_status pnet_session_get_weight(
    struct pnet_session *s, const char *name, float *to, int64_t count, struct pnet_error *e);
PNET_API enum pnet_status pnet_session_set_weight(struct pnet_session *s, const char *name,
    const float *from, int64_t count, struct pnet_error *e);

enum pnet_dtype {
    PNET_DTYPE_F32 = 0,
    PNET_DTYPE_I32 = 1,
    PNET_DTYPE_I64 = 2,
    PNET_DTYPE_BF16 = 3, /* this and the next one: rows of a convolution on a GPU */
    PNET_DTYPE_F16 = 4
};

/* A matrix in the caller's memory: element k of row i lies at data[i * stride + k]. */
struct pnet_array {
    const void *data; /* aligned to an element; may be NULL where there are no rows */
    enum pnet_dtype dtype;
    int64_t rows, width;
    int64_t stride; /* elements from one row to the next, at least `width`; 0: `width` */
};
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
/* EVAL, TRAIN: a loss or metric of this batch by its name. A loss after forward or gradients, a metric after forward. A metric
   that is not defined for the batch is NaN. */
PNET_API enum pnet_status pnet_session_objective(
    struct pnet_session *s, const char *name, double *value, struct pnet_error *e);

/* ---- training: sessions of models compiled for PNET_PURPOSE_TRAIN ---- */

/* Runs forward and backward on the batch, as training does it: norms use the statistics of the batch and update the running
   ones, dropout drops. Computes the gradients of `scale` times the sum of the losses; with `accumulate` they are added to the
   gradients that are there. Each call draws other random numbers. */
PNET_API enum pnet_status pnet_session_gradients(
    struct pnet_session *s, float scale, int accumulate, struct pnet_error *e);
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
/* One step of the session's optimiser with the gradients that are there. `info` may be NULL. PNET_USAGE: there is no
   optimiser, or there are no gradients. */
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

/* ---- geometry and kernels: sets of triplets, and convolution on the caller's arrays, without a model ---- */

/* Memory of a GPU for work on `stream`, for example a framework's; work that is there may still use what is given back. Called by
   the thread that calls, `take` while that GPU is its current one. `take` gives multiples of 256; NULL: there is none. */
struct pnet_allocator {
    size_t size;
    void *context;
    void *(*take)(void *context, size_t bytes, void *stream);
    void (*give)(void *context, void *memory, size_t bytes, void *stream);
};

/* A set of triplets (i, j, k): row i of the output reads row j of the input with the weights of tap k. Its triplets are stored
   in both orders, by output and by input, so that nothing is added to it later: 12 bytes a triplet, 8 a row of either side, and
   4 for each number of a voxel, or each row of points. An inverse set takes none of these. On a GPU some 10 bytes a triplet more,
   for tiles of 256 rows, where its kernels read those; all arrays and workspaces of calls are memory of that GPU. Work is put on
   the call's stream, and other streams must wait for it; a new set is complete. Errors of launches are reported by the call that
   launches, as PNET_NO_DEVICE; so is one of the program's own that it has not cleared. The thread's current GPU stays. */
struct pnet_set;

/* Which voxels are joined. On each axis, with the kernel's size K, stride s, padding p and dilation d, the voxel x of one side
   and y of the other meet in tap t, 0 <= t < K, where  y s + t d - p = x:  a cross-correlation, as in PyTorch. The number of a
   tap is  k = (t0 K1 + t1) K2 + t2,  of the axes in the order of the indices. D: the extent of the input. */
enum pnet_set_kind {
    /* Outputs are the inputs, in their order. K is odd, s = 1, and p = (K - 1) / 2 d: other values of these two are ignored */
    PNET_SET_SUBMANIFOLD = 0,
    /* x is the input. Outputs: every y that meets an input, inside of the extent floor((D + 2 p - d (K - 1) - 1) / s) + 1 */
    PNET_SET_STRIDED = 1,
    /* y is the input. Outputs: every x that meets one, inside of the extent (D - 1) s - 2 p + d (K - 1) + output padding + 1 */
    PNET_SET_TRANSPOSED = 2
};

struct pnet_voxel_options {
    size_t size;
    enum pnet_set_kind kind;
    /* Axis by axis in the order of the indices; those of axes that are not there are not read. */
    int32_t extent[3];         /* of the input: 0 <= index < extent; 1 to 1048576 */
    int32_t kernel[3];         /* 1 to 31 */
    int32_t stride[3];         /* 0: 1 */
    int32_t padding[3];        /* 0 or more */
    int32_t dilation[3];       /* 0: 1 */
    int32_t output_padding[3]; /* TRANSPOSED: 0 or more */
    int32_t batches;           /* samples; they may be empty. 0: 1 */
    const char *device;        /* where the set and `indices` lie: "cpu" (NULL), "cuda", "cuda:1" */
    void *stream;              /* GPU: a cudaStream_t; NULL: the default stream */
    /* GPU: for the set, and calls without a workspace. NULL: cudaMalloc, cudaFree, which wait for the GPU */
    const struct pnet_allocator *allocator;
};

/* Makes the set of voxels `indices`, int32 [n, 1 + axes]: the sample, then one to three indices, for example (batch, z, y, x),
   rows in any order. Input row r is row r of `indices`. The outputs of STRIDED and TRANSPOSED are ordered by sample, then by
   index, the first axis slowest. The same arguments give the same set, for any number of threads.
   PNET_USAGE: the options are wrong, or an output extent is below 1 or above 1048576. PNET_BAD_DATA: a voxel lies outside of the
   extent or the samples, or two rows have the same one; the message names the rows. PNET_NO_DEVICE: the device is not there, or
   this library was built without it. On a GPU the call waits for the stream, because counts must come to the host, and no CUDA
   graph can record it; with an allocator the stream must live as long as the set. */
PNET_API enum pnet_status pnet_set_voxels(const struct pnet_array *indices,
    const struct pnet_voxel_options *o, struct pnet_set **set, struct pnet_error *e);
/* The same triplets with i and j exchanged: from the outputs of `of` back to its inputs, in their order. It keeps `of`, which may
   be freed before it. */
PNET_API enum pnet_status pnet_set_inverse(
    const struct pnet_set *of, struct pnet_set **set, struct pnet_error *e);
/* A set from the caller's own triplets: i, j, k int32 [n, 1], in any order; 0 <= i < rows_out, 0 <= j < rows_in,
   0 <= k < taps, 1 to 65536 taps. A triplet that is there twice counts twice, and several j may share i and k. `o` may be NULL.
   PNET_BAD_DATA names the first triplet that is outside. On a GPU as pnet_set_voxels. */
struct pnet_triplet_options {
    size_t size;
    const char *device; /* as struct pnet_voxel_options */
    void *stream;
    const struct pnet_allocator *allocator;
};
PNET_API enum pnet_status pnet_set_triplets(const struct pnet_array *i, const struct pnet_array *j,
    const struct pnet_array *k, int64_t rows_out, int64_t rows_in, int32_t taps,
    const struct pnet_triplet_options *o, struct pnet_set **set, struct pnet_error *e);
/* NULL is allowed. On a GPU, work that reads the set is over, or the stream that it was made on waits for it. */
PNET_API void pnet_set_free(struct pnet_set *set);

struct pnet_set_info {
    size_t size;
    int64_t rows_in, rows_out, triplets;
    int32_t taps;
    int32_t axes;                        /* of its voxels; 0: it has none */
    int32_t batches;                     /* samples */
    int32_t extent_in[3], extent_out[3]; /* of axes that are not there, 1 */
};
PNET_API enum pnet_status pnet_set_counts(
    const struct pnet_set *set, struct pnet_set_info *info, struct pnet_error *e);
/* Copies the voxels of the outputs, [rows_out, 1 + axes] as `indices` above; `count` is the number of elements. PNET_USAGE: the
   set has no voxels. On a GPU this and the next one use the stream that the set was made on. */
PNET_API enum pnet_status pnet_set_indices(
    const struct pnet_set *set, int32_t *to, int64_t count, struct pnet_error *e);
/* Copies the triplets, sorted by (i, k, j); `count` is their number. An array may be NULL. */
PNET_API enum pnet_status pnet_set_get_triplets(const struct pnet_set *set, int32_t *i, int32_t *j,
    int32_t *k, int64_t count, struct pnet_error *e);

/* A matrix that a function fills, as struct pnet_array. */
struct pnet_array_out {
    void *data;
    enum pnet_dtype dtype;
    int64_t rows, width;
    int64_t stride;
};

/* The three sums of a convolution from `in` to `out` channels in groups. W [taps, in / groups, out] is row-major; as an array it
   has taps * in / groups rows. Input channels of group g are g in / groups and on, output channels likewise. */
enum pnet_conv_sum_kind {
    PNET_CONV_FORWARD = 0,    /* result[i] = bias + sum over (i, j, k) of W[k]^T features[j] */
    PNET_CONV_GRAD_INPUT = 1, /* result[j] = sum over (i, j, k) of W[k] gradient[i] */
    PNET_CONV_GRAD_WEIGHT = 2 /* result[k] = sum over (i, j, k) of features[j] gradient[i]^T */
};
enum pnet_products { /* the precision to which operands are rounded (docs/gpu.md of the sources) */
    PNET_PRODUCTS_AS_STORED = 0, /* as features are stored: FP32, BF16 or FP16 */
    PNET_PRODUCTS_FP32 = 1,
    PNET_PRODUCTS_TF32 = 2,
    PNET_PRODUCTS_BF16 = 3,
    PNET_PRODUCTS_FP16 = 4
};
struct pnet_conv_options {
    size_t size;
    int32_t groups;    /* 0: 1; it divides both numbers of channels */
    const float *bias; /* FORWARD: [out]; NULL: none */
    int accumulate;    /* add to what the result holds */
    void *workspace;   /* NULL: the call takes memory and gives it back */
    size_t workspace_bytes;
    void *stream;                 /* GPU: as in pnet_voxel_options */
    enum pnet_products precision; /* GPU. Features in 16 bits are multiplied as they are stored */
};

/* The bytes of workspace that a sum needs, on the CPU for the number of threads that OpenMP gives the calling thread. */
PNET_API enum pnet_status pnet_conv_workspace(const struct pnet_set *set,
    enum pnet_conv_sum_kind sum, int32_t in, int32_t out, int32_t groups, size_t *bytes,
    struct pnet_error *e);

/* From the caller's arrays as they are, which are contiguous (stride 0 or their width) and PNET_DTYPE_F32. Arrays and workspace
   must not overlap. Features have rows_in rows and `in` channels, gradients of outputs rows_out and `out`, and so have the
   results. `o` may be NULL. The same arguments give the same bits for any number of threads. On the CPU results of rows do not
   depend on the order of the rows of voxels or points; gradients of weights do for voxels, in their last bits. Infinities and NaN
   spread to the rows that read them; where groups are narrower than 16 channels (on a GPU 64), also to their neighbour groups.
   On a GPU features, results and gradients of rows may all be PNET_DTYPE_BF16, or all PNET_DTYPE_F16; arrays and workspace are
   aligned to 16 bytes. For speed, rows near each other in space should lie near each other. A call that gets a workspace takes no
   memory and waits for nothing: a CUDA graph can record it, after a first call, in which the driver loads kernels. Until the
   recording ends, the thread makes no other calls, and no thread uses the default stream of that GPU.
   PNET_USAGE: an array has another type or shape, or lies elsewhere, or the workspace is too small. PNET_NO_MEMORY. */
PNET_API enum pnet_status pnet_conv_forward(const struct pnet_set *set,
    const struct pnet_array *features, const struct pnet_array *weights,
    const struct pnet_conv_options *o, const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_conv_grad_input(const struct pnet_set *set,
    const struct pnet_array *gradient, const struct pnet_array *weights,
    const struct pnet_conv_options *o, const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_conv_grad_weight(const struct pnet_set *set,
    const struct pnet_array *features, const struct pnet_array *gradient,
    const struct pnet_conv_options *o, const struct pnet_array_out *result, struct pnet_error *e);

/* ---- pools over a set, and sets in the caller's memory ---- */

/* Over all (i, j, k), channel by channel; 0 where a row i has no triplet. */
enum pnet_pooling {
    PNET_POOLING_MAX = 0,  /* the largest features[j]; of equal ones the first by (k, j) */
    PNET_POOLING_MEAN = 1, /* their sum, divided by the number of triplets of row i */
    PNET_POOLING_SUM = 2
};

/* In float32, on the CPU, from contiguous arrays as those of convolutions. Features have rows_in rows, the result rows_out, with
   as many channels. `argmax`, of MAX alone, is filled with the row j that each number came from, int32 [rows_out, channels], -1:
   from none; NULL: it is not wanted. A NaN is the largest number only where it comes first. The same arguments give the same
   bits for any number of threads, and results of rows do not depend on the order of the rows of a set of voxels.
   PNET_USAGE: an array has another type or shape. PNET_NO_MEMORY. */
PNET_API enum pnet_status pnet_pool_forward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *features, const struct pnet_array_out *result,
    const struct pnet_array_out *argmax, struct pnet_error *e);
/* The gradient of the features, from that of the results and, for MAX, from `argmax`; of other kinds it is NULL. PNET_BAD_DATA:
   a row of `argmax` is not there. */
PNET_API enum pnet_status pnet_pool_backward(const struct pnet_set *set, enum pnet_pooling kind,
    const struct pnet_array *gradient, const struct pnet_array *argmax,
    const struct pnet_array_out *result, struct pnet_error *e);

/* The triplets of a set as one block of bytes in the caller's memory, which a framework's allocator may own, which may be copied,
   and which another process may use that runs on a machine with the same byte order. Voxels are not in it, nor the order in which
   a set of points works on its rows, which decides the last bits of gradients of weights. */
PNET_API enum pnet_status pnet_set_packed_bytes(
    const struct pnet_set *set, size_t *bytes, struct pnet_error *e);
/* Writes the block; `to` is aligned to 8 bytes, `bytes` are those of pnet_set_packed_bytes. */
PNET_API enum pnet_status pnet_set_pack(
    const struct pnet_set *set, void *to, size_t bytes, struct pnet_error *e);
/* The set of a block, which is read where it lies: it must stay as it is until the set and its inverse sets are freed. Takes no
   memory for the triplets, and the time of reading them once: all numbers are checked, so that no block makes a sum read or
   write outside of its arrays. PNET_BAD_DATA: the bytes are no block, or have other numbers than pnet_set_pack writes. */
PNET_API enum pnet_status pnet_set_unpack(
    const void *from, size_t bytes, struct pnet_set **set, struct pnet_error *e);

/* ---- geometry and kernels: points and levels, without a model ---- */

/* The points of a batch, as the caller has them, or a level that was sampled from them. docs/geometry.md of the sources defines
   levels; those here have the rows that a model has, bit for bit. Row r of points is row r of `positions`, in any order. Rows of
   a level are ordered by sample, then along a Morton curve.

   Points never change once they are made. A level keeps what it was sampled from, which may be freed before it. Points take 24
   bytes a row and 8 a sample; a level likewise, and 4 bytes for each row that it was sampled from. */
struct pnet_points;

struct pnet_points_options {
    size_t size;
    /* The samples: row splits, int32 or int64 [samples + 1, 1], where each begins, and the end; or the sample of each row, int32
       or int64 [rows, 1], of `batches`, which may be empty (0: 1). NULL, both: there is one. */
    const struct pnet_array *row_splits, *sample;
    int32_t batches;
    /* Inside, points lie along a curve, which decides between equals (nearest points), and the order in which sums are formed.
       Metres: along the grid with these cells, as in a model whose finest grid they are; points of one cell are in the order of
       the caller's rows. 0: as in a model without grids, along cells of 2^-19 of the largest coordinate. */
    double cell;
};

/* Copies positions, float32 [rows, 3] in metres. `o` may be NULL. PNET_BAD_DATA: a coordinate is not finite or beyond 1e37, a
   sample is none of the batch, or points lie more than 2^20 cells from the origin. */
PNET_API enum pnet_status pnet_points_new(const struct pnet_array *positions,
    const struct pnet_points_options *o, struct pnet_points **points, struct pnet_error *e);
/* Samples the level with these cells, 1e-6 to 1e5 metres: each cell with points keeps the one nearest to its centre. From points
   it begins a chain of grids, from a level it goes on with the level's chain: then `cell` is a whole multiple of the level's, or
   PNET_USAGE. So v, 2 v, 4 v, each sampled from the one before, are grid(p, v * [1, 2, 4]) of a model. With the level's own cell
   it gives `of` once more, to be freed once more. PNET_BAD_DATA: points lie more than 2^20 cells from the origin. */
PNET_API enum pnet_status pnet_points_grid(
    const struct pnet_points *of, double cell, struct pnet_points **level, struct pnet_error *e);
/* NULL is allowed. */
PNET_API void pnet_points_free(struct pnet_points *points);

struct pnet_points_info {
    size_t size;
    int64_t rows;
    int32_t batches; /* samples */
    double cell;     /* edge of a cell of the level, metres; 0: these are no level */
};
PNET_API enum pnet_status pnet_points_counts(
    const struct pnet_points *points, struct pnet_points_info *info, struct pnet_error *e);
/* Fills float32 [rows, 3] with positions: those that points of a level kept, unchanged. */
PNET_API enum pnet_status pnet_points_positions(
    const struct pnet_points *points, const struct pnet_array_out *to, struct pnet_error *e);
/* Fills int32 [rows, 1] with the sample of each row. */
PNET_API enum pnet_status pnet_points_samples(
    const struct pnet_points *points, const struct pnet_array_out *to, struct pnet_error *e);
/* Fills int32 [rows, 1] with the row that each row was of the `positions` given to pnet_points_new. */
PNET_API enum pnet_status pnet_points_sources(
    const struct pnet_points *points, const struct pnet_array_out *to, struct pnet_error *e);
/* Fills int32 [rows of fine, 1] with the row of `coarse` that each row of `fine` belongs to. PNET_USAGE: `coarse` is not `fine`,
   and was not sampled from it, directly or through other levels. */
PNET_API enum pnet_status pnet_points_parents(const struct pnet_points *fine,
    const struct pnet_points *coarse, const struct pnet_array_out *to, struct pnet_error *e);

enum pnet_near_shape {
    PNET_NEAR_BALL = 0, /* by distance */
    PNET_NEAR_CUBE = 1  /* by the largest coordinate of the difference */
};
/* What a model's voxel mode changes, to be added up. Each needs levels of one chain of grids. */
enum pnet_degradation {
    PNET_DEGRADE_CENTRE = 1,    /* a centre is that of its voxel, instead of its point */
    PNET_DEGRADE_NEIGHBOUR = 2, /* neighbours are those in a window of voxels */
    PNET_DEGRADE_KERNEL = 4,    /* kernel cells are voxels of that window */
    PNET_DEGRADE_VOXEL = 7      /* all three: voxel mode */
};
struct pnet_near_options {
    size_t size;
    int32_t kernel; /* kernel cells an axis, K, 1 to 31; even ones between two levels alone. 0: 3 */
    double radius;  /* metres, 1e-6 to 1e5; 0: K / 2 cells of the finer level */
    int32_t knn;    /* so many nearest points, 1 to 1024, instead of a radius; 0: by radius */
    enum pnet_near_shape shape;
    int32_t degrade; /* sum of enum pnet_degradation; 0: native */
};

/* Makes the set of a model's convolution from `in` to `out`: the same points, or a level and what it was sampled from, in either
   direction. Its K^3 taps are kernel cells, x slowest. Several j may share i and k: points of one kernel cell are summed in the
   order in which they lie inside, so that results of rows are the bits of the model's layer, whatever the order of the caller's
   rows. With kernel 1 on one level, and neither radius nor knn, a point joins itself alone. The set has no voxels. It keeps
   nothing of the points. PNET_USAGE: the options are wrong, or do not fit the levels. */
PNET_API enum pnet_status pnet_set_points(const struct pnet_points *out,
    const struct pnet_points *in, const struct pnet_near_options *o, struct pnet_set **set,
    struct pnet_error *e);

/* ---- maps: rows of points from rows of others, without learned weights ---- */

/* How each row of an output is made of rows of an input: pooling, upsampling, interpolation, as the layers of a model have them
   (docs/layers.md of the sources). It keeps nothing of the points. At most 8 bytes a row of either side, and for
   INVERSE_DISTANCE 8 k a row of the output, for TRILINEAR 16, for NEAREST 8 for each pair of rows. */
struct pnet_map;

enum pnet_map_kind {
    /* `out` was sampled from `in`: each channel over the points of a cell. MAX: of equals, the first inside */
    PNET_MAP_MEAN = 0,
    PNET_MAP_MAX = 1,
    PNET_MAP_SUM = 2,
    /* `in` was sampled from `out`: the row of the cell that a point belongs to */
    PNET_MAP_PARENT = 3,
    /* Any points: the mean of the k nearest rows in the sample, weighted by 1 / (distance^2 + 1e-8); 0 where there are none */
    PNET_MAP_INVERSE_DISTANCE = 4,
    /* `in` is a level, `out` any points, and features of `in` lie on the centres of its cells: of the eight cells around a
       point, those that are there, weighted by 1 - distance in cells on each axis; and the cell that holds the point */
    PNET_MAP_TRILINEAR = 5,
    PNET_MAP_NEAREST = 6
};
struct pnet_map_options {
    size_t size;
    enum pnet_map_kind kind;
    int32_t k; /* INVERSE_DISTANCE: 1 to 64; 0: 3 */
    int outside_nearest; /* TRILINEAR, NEAREST: where there is no such cell, the nearest row of the sample; no: 0 */
};
/* PNET_USAGE: the points do not lie to each other as the kind says, or have different numbers of samples. */
PNET_API enum pnet_status pnet_map_new(const struct pnet_points *out, const struct pnet_points *in,
    const struct pnet_map_options *o, struct pnet_map **map, struct pnet_error *e);
/* NULL is allowed. */
PNET_API void pnet_map_free(struct pnet_map *map);

struct pnet_map_run {
    size_t size;
    /* MAX: int32 [rows out, channels], the row of the input that each maximum came from, or -1: filled forward, unless NULL, and
       read backward */
    int32_t *argmax;
    int accumulate;  /* backward: add to what the result holds */
    void *workspace; /* NULL: the call takes memory and gives it back. Aligned to 16 bytes */
    size_t workspace_bytes;
};
/* The bytes of workspace of a call, forward or backward, for so many channels, 1 to 65536. */
PNET_API enum pnet_status pnet_map_workspace(const struct pnet_map *map, int backward,
    int32_t channels, size_t *bytes, struct pnet_error *e);
/* From features of the input [rows in, channels] to those of the output, and from gradients of the output to those of the input:
   PNET_DTYPE_F32, contiguous, not overlapping, on the CPU. `o` may be NULL, but for MAX backward. The same bits for any number of
   threads; forward the bits of a model, for rows in any order. PNET_USAGE: a type, a shape, or too small a workspace. */
PNET_API enum pnet_status pnet_map_forward(const struct pnet_map *map,
    const struct pnet_array *features, const struct pnet_map_run *o,
    const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_map_backward(const struct pnet_map *map,
    const struct pnet_array *gradient, const struct pnet_map_run *o,
    const struct pnet_array_out *result, struct pnet_error *e);

/* ---- attention among points that lie near each other in an order ---- */

/* The points of each sample in an order, cut into buckets of equal size, and buckets joined to scopes: the layer `attend` of a
   model (docs/geometry.md of the sources). It keeps nothing of the points; 4 bytes a row and 8 a sample. */
struct pnet_buckets;

enum pnet_buckets_order { /* TRANS: with x and y swapped */
    PNET_BUCKETS_Z = 0,   /* a Morton curve, as rows lie inside */
    PNET_BUCKETS_Z_TRANS = 1,
    PNET_BUCKETS_HILBERT = 2,
    PNET_BUCKETS_HILBERT_TRANS = 3,
    PNET_BUCKETS_XOR_DIV = 4, /* and three hashes of voxels */
    PNET_BUCKETS_XOR_MOD = 5,
    PNET_BUCKETS_Z_MOD = 6
};
struct pnet_buckets_options {
    size_t size;
    enum pnet_buckets_order order;
    int32_t bucket; /* points of a bucket at most: a multiple of 16, to 4096. 0: 512 */
    int32_t scope;  /* buckets of a scope at most, 1 to 64; 0: 8 */
    int32_t shift;  /* buckets by which the borders of scopes move, 0 to 1000000 */
    int32_t stride; /* distance of the buckets of a scope, 1 to 8; 0: 1 */
    int wrap;       /* join the ends of the order, instead of smaller scopes there */
    double
        cell; /* edge of the voxels of an order, 1e-6 to 1e5 m; 0: the cells of the level. Not for Z */
};
/* `o` may be NULL. PNET_BAD_DATA: points lie more than 2^20 voxels from the origin. */
PNET_API enum pnet_status pnet_buckets_new(const struct pnet_points *points,
    const struct pnet_buckets_options *o, struct pnet_buckets **buckets, struct pnet_error *e);
/* NULL is allowed. */
PNET_API void pnet_buckets_free(struct pnet_buckets *buckets);

struct pnet_attend_options {
    size_t size;
    int32_t heads; /* 0: 1. Each has 8, 16, 32, 64 or 128 of the C channels */
    double scale;  /* factor of the products q.k; 0: 1 / sqrt(C / heads) */
    float *
        log_sum; /* [rows, heads], for the backward: filled forward, unless NULL, and read backward */
    int accumulate;  /* backward: add to what the result holds */
    void *workspace; /* NULL: the call takes memory and gives it back. Aligned to 16 bytes */
    size_t workspace_bytes;
};
/* The bytes of workspace of a call, forward or backward. */
PNET_API enum pnet_status pnet_attend_workspace(
    const struct pnet_buckets *buckets, int backward, size_t *bytes, struct pnet_error *e);
/* qkv [rows, 3 C] has queries, keys, values side by side, each by heads; result [rows, C]: each point's mean of the values of its
   scope, weighted by the softmax of scale q.k. Backward: `out` is the forward's result, `gradient` is [rows, C], and the result
   [rows, 3 C]. Arrays as for maps. The same bits for any number of threads, and for rows in any order. */
PNET_API enum pnet_status pnet_attend_forward(const struct pnet_buckets *buckets,
    const struct pnet_array *qkv, const struct pnet_attend_options *o,
    const struct pnet_array_out *result, struct pnet_error *e);
PNET_API enum pnet_status pnet_attend_backward(const struct pnet_buckets *buckets,
    const struct pnet_array *qkv, const struct pnet_array *out, const struct pnet_array *gradient,
    const struct pnet_attend_options *o, const struct pnet_array_out *result, struct pnet_error *e);

/* ---- losses between two sets of points, x (what is predicted) and y ---- */

/* The losses of a model with the same names (docs/layers.md of the sources): the mean over the samples; a sample of which either
   set is empty adds 0. Both have the same number of samples. */
enum pnet_loss_kind {
    PNET_LOSS_CHAMFER = 0,
    PNET_LOSS_DCD = 1,
    PNET_LOSS_HYPERCD = 2,
    PNET_LOSS_INFOCD = 3,
    PNET_LOSS_EMD = 4, /* samples have as many points in y as in x, or PNET_BAD_DATA */
    PNET_LOSS_SINKHORN = 5,
    PNET_LOSS_APML = 6
};
/* pnet_loss_default fills all that the kind reads; 0 is a value here. Lengths are in the units of the positions. */
struct pnet_loss_options {
    size_t size;
    enum pnet_loss_kind kind;
    int squares;      /* CHAMFER: of distances */
    int at_least_one; /* DCD */
    int sums;         /* INFOCD: over the points of a sample, instead of means */
    int32_t rounds;   /* EMD: 1 to 100000. APML: 0 to 1000 */
    double alpha;     /* DCD, HYPERCD: 1e-6 to 1e9 */
    double lambda;    /* DCD: 0 to 8. INFOCD: 0 to 1e6 */
    double tau;       /* INFOCD: 1e-6 to 1e6. APML: 1e-30 to 0.1 */
    double eps;       /* EMD: 1e-9 to 1e9 */
    double blur;      /* SINKHORN: 0.005 to 1 */
    double scaling;   /* SINKHORN: 0.01 to 0.99 */
    double p;         /* APML: between 0.5 and 1 */
    int32_t most;     /* APML: 2 to 1024 */
    int32_t entries;  /* APML: 2 to 1024 */
};
PNET_API enum pnet_status pnet_loss_default(
    enum pnet_loss_kind kind, struct pnet_loss_options *o, struct pnet_error *e);

struct pnet_loss_bytes {
    size_t size;
    size_t kept;              /* what the backward reads of the forward */
    size_t forward, backward; /* workspaces */
};
PNET_API enum pnet_status pnet_loss_workspace(const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, struct pnet_loss_bytes *bytes,
    struct pnet_error *e);

struct pnet_loss_run {
    size_t size;
    void *
        kept; /* filled forward, unless NULL, and read backward; aligned to 16 bytes, as the workspace is */
    size_t kept_bytes;
    int accumulate;  /* backward: add to what the results hold */
    void *workspace; /* NULL: the call takes memory and gives it back */
    size_t workspace_bytes;
};
/* Sets *loss. `r` may be NULL. The bits of a model, for any number of threads and rows in any order. */
PNET_API enum pnet_status pnet_loss_forward(const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, const struct pnet_loss_run *r,
    float *loss, struct pnet_error *e);
/* Fills float32 [rows, 3] with the gradients of gradient * loss by the positions of x and of y, in the caller's rows; NULL: not
   wanted. Points, options and `kept` are those of the forward. */
PNET_API enum pnet_status pnet_loss_backward(const struct pnet_points *x,
    const struct pnet_points *y, const struct pnet_loss_options *o, const struct pnet_loss_run *r,
    float gradient, const struct pnet_array_out *to_x, const struct pnet_array_out *to_y,
    struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
