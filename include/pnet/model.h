/* Models: what a .pnet text compiles to, and what it has. A part of pnet.h, which programs include. */
#ifndef PNET_API_MODEL_H
#define PNET_API_MODEL_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    /* [output_count] values that sessions give besides results and losses, by the path of a layer, or by name: "y", "y[1]". In
       TRAIN backward begins with the caller's gradients of them; such a model needs no loss. NULL: none */
    const char *const *outputs;
    size_t output_count;
    int input_gradients; /* TRAIN: also the gradients of features of inputs */
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

/* The tensors of a weights file for this model: trained weights, and running statistics of norms. A weight on which no loss,
   metric, output or result depends is none of them. */
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

/* What the rows of a value are. CELLS, of outputs alone: the rows of a level that was sampled from points, by sample, then along
   its curve, as pnet_points_grid gives the level of a grid. */
enum pnet_rows {
    PNET_ROWS_POINTS = 0,    /* a row for each point of the input `input`, in the caller's order */
    PNET_ROWS_SAMPLES = 1,   /* a row for each sample */
    PNET_ROWS_GENERATED = 2, /* a row for each point that the net generates */
    PNET_ROWS_CELLS = 3
};

/* INFER: what a session computes. PNET_USAGE: the model was compiled for another purpose. */
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

/* The outputs that the options named, in their order. */
struct pnet_output_info {
    size_t size;
    const char *name; /* as the options have it */
    const char *path; /* of the value */
    int32_t width;    /* channels of a row */
    enum pnet_rows rows;
    const char *input; /* POINTS; CELLS: whose points the level was sampled from; else NULL */
    double cell;       /* CELLS: edge of a cell, metres; 0: none */
    int gradient;      /* TRAIN: something that learns leads to it, so that it has a gradient */
};
PNET_API size_t pnet_model_outputs(const struct pnet_model *m);
PNET_API enum pnet_status pnet_model_output(
    const struct pnet_model *m, size_t index, struct pnet_output_info *o, struct pnet_error *e);

#ifdef __cplusplus
}
#endif

#endif
