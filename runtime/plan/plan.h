/* The plan: what the compiler makes of a model and a runner runs. Static in everything but point
   counts. The same for every device and precision: what is chosen for those stands beside it (runtime/run/bound.h).

   nodes      the forward graph, in source order: every node comes behind what it reads
   tensors    every value, saved tensor and gradient, with the steps between which it lives
   steps      the schedule: forward, then backward; `forward_steps` of them run in inference
   geo        the geometry recipe: levels first, finer before coarser, then triplet sets and maps
   A plan is immutable and owned by its compilation (compiler/compile.h). */
#ifndef PNET_RUNTIME_PLAN_H
#define PNET_RUNTIME_PLAN_H

#include "runtime/plan/input.h"
#include "runtime/plan/op.h"

enum pnet_tensor_role {
    PNET_ROLE_INPUT,  /* a field of an input: lives with the batch, not in the arena */
    PNET_ROLE_RESULT, /* of a node */
    PNET_ROLE_SAVED,  /* kept by a node for its backward */
    PNET_ROLE_GRAD,   /* gradient of another tensor */
};

struct pnet_plan_tensor {
    struct pnet_type type;
    enum pnet_tensor_role role;
    const char *name;   /* "fcgf.s.0.conv"; of a gradient: that of the tensor */
    int input, field;   /* INPUT */
    int node;           /* RESULT SAVED: who makes it; GRAD: -1 */
    int of;             /* GRAD: the tensor it is the gradient of; -1 */
    bool training_only; /* SAVED: not there in inference */
    int first,
        last;   /* steps between which the memory is needed, inclusive; first < 0: never made */
    int shares; /* the tensor whose memory this one lives in; itself where it has its own */
    bool kept;  /* read by the caller: lives to the end of the schedule */
    bool exact; /* features: stored in float32 in every precision */
};

struct pnet_plan_param {
    struct pnet_param_info info;
    const char *name; /* "fcgf.s.0.conv.weight" */
    int64_t count;    /* elements */
    int64_t offset;   /* elements from the start of the parameter block; gradients, in the order
                         backward   finishes them, have the same offsets */
    int last_use;     /* backward step that finishes its gradient; -1 */
    int node;         /* the first node that reads it, of those that are not dead; -1: none */
};

/* Batch norm folded into the layer before it, for inference: weight' = weight * s per output
   channel, bias' = (bias - mean) * s + shift, with s = scale / sqrt(var + eps). */
struct pnet_plan_fold {
    int weight, bias; /* parameters of the layer; the bias param always exists, made by the pass if
                         need be */
    bool bias_was_there; /* false: starts from zero */
    bool out_first;      /* weight is [Cout, Cin] (linear); else Cout is the last dimension */
    int scale, shift, mean, var; /* parameters of the norm: read at load, no memory in the runner */
    double eps;
};

struct pnet_node {
    const struct pnet_op *op;
    struct pnet_attr attr[PNET_MAX_ARGS];
    int in[PNET_MAX_IN];
    int in_count;
    int out;
    int param[PNET_MAX_PARAMS];
    int param_count;
    int saved[PNET_MAX_SAVED];
    int saved_count;
    int geo[PNET_MAX_GEO];
    unsigned forward_forms[PNET_MAX_GEO], backward_forms[PNET_MAX_GEO];
    int geo_count;
    bool exact; /* reads positions: multiplies them in fp32 in every precision */
    bool sums;  /* in[1] was fused behind it, before `act` */
    int act;    /* fused behind it */
    float slope;
    const char *path; /* "fcgf.s.0.conv" */
    uint32_t draw;    /* its stream of random numbers: a hash of the path and the use */
    uint32_t line;    /* in the main source, for listings; 0 elsewhere */
    bool dead;        /* removed by a pass */
};

struct pnet_step {
    int node;
    bool backward;
    int gout;             /* backward: gradient of the node's result */
    int gin[PNET_MAX_IN]; /* backward: -1: not wanted */
    bool gin_add[PNET_MAX_IN];
    bool gparam_add[PNET_MAX_PARAMS];
};

struct pnet_geo_item {
    struct pnet_geo_request request; /* forms: the union of what is asked for in this plan */
    unsigned forms; /* that the schedule reads on every device; ops add theirs by `forms` */
    int users;      /* nodes that ask for it */
};

struct pnet_objective {
    const char *name;
    const char *doc; /* or NULL */
    bool metric;
    int tensor; /* [1, width] */
    int node;   /* METRIC: whose `finish` it is; -1 for a loss */
};

/* A value that the caller reads. */
struct pnet_plan_output {
    const char *name; /* as the caller named it */
    int tensor;
    int gradient; /* with which backward begins, set by the caller; -1: nothing that learns leads to the value */
};

struct pnet_plan {
    struct pnet_input *inputs;
    int input_count;
    struct pnet_level_info *levels;
    int level_count, sample_level, scalar_level;
    struct pnet_node *nodes;
    int node_count;
    struct pnet_plan_tensor *tensors;
    int tensor_count;
    struct pnet_plan_param *params;
    int param_count;
    int *params_by_name;      /* [param_count] in the order of their names */
    int64_t param_elements;   /* of the parameter block */
    int64_t trained_elements; /* the first ones: those with gradient and optimiser state */
    int64_t parameter_count;  /* trained numbers, without padding: what papers quote */
    struct pnet_plan_fold *folds;
    int fold_count;
    struct pnet_geo_item *geo;
    int geo_count;
    struct pnet_step *steps;
    int step_count, forward_steps;
    struct pnet_objective *objectives;
    int objective_count;
    struct pnet_plan_output *outputs; /* kept, apart from each other */
    int output_count;
    int result;       /* inference: the tensor asked for; -1 */
    int result_input; /* the input whose points it belongs to, or which its net takes first; -1 */
    int prediction;   /* training, evaluation: generated points that a metric, else a loss, compares
                           with others: kept, for pictures; -1 */
    int result_classes; /* it holds scores of that many classes; 0: features */
    bool training;      /* has a backward part */
    unsigned degrade;
    uint64_t hash; /* of everything above that fixes results: FNV-1a 64 */
};

/* Does the node sum over triplets, so that an algorithm is chosen for it? */
bool pnet_plan_convolves(const struct pnet_plan *p, int node);

/* The radius of a receptive field: how far the points lie at most, on each axis, that a row of a tensor depends on, from where
   the row lies. */
struct pnet_receptive_field {
    double metres; /* INFINITY: anywhere in the sample */
    int node; /* then: the first on the way from the inputs whose result has no bound; -1: an input; else -1 */
};

/* Of a tensor in inference. Distances are those of exact arithmetic: of coordinates in float32, some 1e-6 of the largest one come
   on top. PNET_NO_MEMORY. */
enum pnet_status pnet_plan_receptive_field(const struct pnet_plan *p, int tensor,
    struct pnet_receptive_field *reach, struct pnet_error *e);

/* Is the tensor the places of generated points: a row of three channels for each? Inference stores them in float32, and writes
   them as a cloud. */
bool pnet_plan_is_cloud(const struct pnet_plan *p, int tensor);

/* Does the tensor hold labels? */
bool pnet_plan_is_label(const struct pnet_plan *p, int tensor);

/* Does an item join the points of two inputs as they lie, without a pose? Then the clouds must be of one frame. */
bool pnet_plan_one_frame(const struct pnet_plan *p);

/* Splits a loss, the result `tensor`, into the values that it is a sum of: factor[tensor_count] of each of them, NaN for all
   other tensors. `a + b * 0.5` has two; what is neither a sum nor a number times a value is one. */
void pnet_plan_terms(const struct pnet_plan *p, int tensor, double *factor);

/* The parameter of that name, or -1: a binary search. */
int pnet_plan_param_find(const struct pnet_plan *p, const char *name);

#endif
