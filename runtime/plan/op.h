/* The op table: one row a layer, loss or metric. Everything about a layer stands in its row;
   argument checking, documentation, gradient and parity tests are derived from there.

   To add a layer: one file in runtime/ops/ that ends in its row, its kernels, one line in
   runtime/plan/ops.def. */
#ifndef PNET_RUNTIME_OP_H
#define PNET_RUNTIME_OP_H

#include "kernels/count.h"
#include "kernels/geometry.h"
#include "kernels/philox.h"
#include "kernels/conv_algo.h"
#include "kernels/precision.h"
#include "runtime/io/cloud.h"
#include "runtime/device/device.h"
#include "runtime/plan/geo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PNET_MAX_ARGS = 16,  /* of one op */
    PNET_MAX_IN = 16,    /* values an op reads */
    PNET_MAX_PARAMS = 4, /* weights and running statistics of an op */
    PNET_MAX_SAVED = 3,  /* tensors an op keeps for its backward */
    PNET_MAX_GEO = 3,    /* geometry items an op uses */
    PNET_MAX_READS = 4,  /* results of hidden rows that an op reads */
    PNET_MAX_LIST = 256, /* numbers in a list argument */
    PNET_MAX_NAMED = 32, /* numbers of a metric besides its headline */
};

enum {
    PNET_MAX_CHUNK = 1 << 16,
    PNET_MAX_ROWS = INT32_MAX, /* of a level: indices of rows are int32 */
};

struct pnet_level_info {
    enum pnet_geo_id kind; /* where its rows come from */
    int input;             /* which input cloud; -1 for SAMPLE, POINTS and SCALAR */
    int finer;             /* GRID, CHUNKS: the level this one was sampled from; else -1 */
    int from;      /* POINTS: the level each of whose rows has `count` of these; else unused */
    int32_t count; /* POINTS; CHUNKS: how many rows of `finer` a row has, 2 to PNET_MAX_CHUNK */
    double cell;   /* edge of its cells in metres; 0: none */
    struct pnet_grid grid; /* GRID; INPUT: the grid its rows are ordered by */
    const char *name;      /* "g[2]", "cloud", "sample" */
};

/* A value is width@level. */
struct pnet_type {
    enum pnet_scalar type; /* PNET_F32; PNET_I32: class labels; PNET_F64: statistics */
    int32_t width;
    int level; /* index into the plan's levels */
    /* PNET_I32: labels are 0 .. classes-1, -1 ignored; PNET_F32: scores of that many classes, as a loss or metric takes them;
       PNET_F64: statistics by class; else 0 */
    int32_t classes;
    bool pose; /* 4x4 matrices, one a sample: no features */
};

enum pnet_arg_type {
    PNET_ARG_VALUE,  /* a value with features (float32) */
    PNET_ARG_LABEL,  /* a value with labels (int32) */
    PNET_ARG_VALUES, /* one or more values: last value argument of the row, takes all positional
                        values */
    PNET_ARG_INT,
    PNET_ARG_REAL,   /* a plain number or a percentage */
    PNET_ARG_LENGTH, /* metres: needs a unit */
    PNET_ARG_BOOL,   /* yes, no */
    PNET_ARG_CHOICE, /* one of the words in `choices` */
    PNET_ARG_LEVEL,
    PNET_ARG_REALS,   /* a list of numbers */
    PNET_ARG_ANY,     /* a value with features or labels: the rule looks at its type */
    PNET_ARG_POSE,    /* a pose: [samples, 16], row-major 4x4; counts as a value */
    PNET_ARG_MATCHES, /* what matches(..) gives */
    PNET_ARG_ANGLE,   /* radians: needs a unit; default in degrees: "5deg" */
};

struct pnet_arg {
    const char *name;
    enum pnet_arg_type type;
    const char *standard; /* default as text: "3", "yes", "mean"; "" : may be left out (attr.set is
                             false); NULL: required */
    double min, max;      /* inclusive; both 0: any */
    const char *choices;  /* CHOICE: "mean|max|sum"; attr.i is the position */
    const char *help;     /* half a line, no full stop */
};

/* Which rows of two levels lie near each other under a pose: matches(..) of the language. */
struct pnet_matches {
    int a, b;     /* levels: source, target */
    int pose;     /* tensor: source to target */
    float radius; /* metres */
};

/* An argument's value, at the position of its row's argument. Values (tensors) are in the node's
 * `in` instead. */
struct pnet_attr {
    bool set; /* given, or has a default */
    union {
        int64_t i; /* INT BOOL CHOICE LEVEL */
        double r;  /* REAL LENGTH ANGLE */
        struct {
            const double *items;
            int count;
        } list;
        const struct pnet_matches *matches;
    };
};

enum pnet_init {
    PNET_INIT_ZERO,
    PNET_INIT_ONE,
    PNET_INIT_KAIMING, /* normal, std sqrt(2 / fan) (He et al., 2015) */
    PNET_INIT_UNIFORM, /* uniform in +-1/sqrt(fan) */
};

/* What the dimensions of a weight are, which other programs order otherwise (runtime/exchange). */
enum pnet_param_kind {
    PNET_PARAM_PLAIN,  /* the same in every program */
    PNET_PARAM_CELLS,  /* kernel cells, x slowest; channels in / groups; channels out */
    PNET_PARAM_MATRIX, /* channels out, channels in */
};

struct pnet_param_info {
    const char *suffix; /* "weight": behind the op's path */
    enum pnet_param_kind kind;
    int dims;
    int64_t shape[4];
    enum pnet_init init;
    int64_t fan;
    bool trained; /* false: running statistics */
    bool decay;   /* weight decay applies */
};

struct pnet_saved_info {
    struct pnet_type type; /* any level; width 0: not saved */
    bool training_only;    /* not there in inference */
};

struct pnet_op;

/* The result of a row without arguments other than values, of inputs `a` and `b` of the row that asks for it. Requests of the
   same row and values share one node. The row need not be in ops.def: then models cannot name it. */
struct pnet_rule_read {
    const struct pnet_op *op;
    int a, b;
};

/* What the rule of an op sees and fills. The rule runs once a use, at compile time. */
struct pnet_rule {
    /* given */
    const struct pnet_attr *attr;
    const struct pnet_type *in; /* [in_count] */
    int in_count;
    const struct pnet_level_info *levels;
    int level_count;
    int sample_level, scalar_level;
    unsigned degrade; /* of enum pnet_degrade */
    /* to fill */
    struct pnet_type out;
    struct pnet_param_info params[PNET_MAX_PARAMS];
    int param_count;
    struct pnet_saved_info saved[PNET_MAX_SAVED];
    int saved_count;
    struct pnet_geo_request geo[PNET_MAX_GEO];
    int geo_count;
    struct pnet_rule_read reads[PNET_MAX_READS]; /* they become inputs behind those given */
    int read_count;
    bool scores;                /* in[0] holds scores of the classes of in[1] */
    char error[256], help[256]; /* set by pnet_rule_fail */
    int error_arg;              /* the argument at fault; -1: the call */
    int error_in;               /* or the input at fault, whose origin is shown too; -1: none */
    char warning[256];          /* set by pnet_rule_warn */
};

/* For rules: sets the error (one line, no full stop) and returns false. `arg`: index of the
 * argument, or -1. */
bool pnet_rule_fail(struct pnet_rule *r, int arg, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void pnet_rule_help(struct pnet_rule *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pnet_rule_warn(struct pnet_rule *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a weight. Returns its index. */
int pnet_rule_param(struct pnet_rule *r, struct pnet_param_info p);
int pnet_rule_geo(struct pnet_rule *r, struct pnet_geo_request q);
/* Asks for matches of that radius: that of `m`, or another one. */
int pnet_rule_matches(struct pnet_rule *r, const struct pnet_matches *m, float radius);
int pnet_rule_save(struct pnet_rule *r, struct pnet_type type, bool training_only);
/* Asks for the result of another row. Returns the index of the input that it becomes. */
int pnet_rule_reads(struct pnet_rule *r, const struct pnet_op *op, int a, int b);

/* Is `coarse` reached from `fine` by going coarser (or the same level)? From POINTS the next one is `from`. */
bool pnet_level_reaches(const struct pnet_level_info *levels, int fine, int coarse);
/* The first level on the way from `level` by `from` that is not POINTS, or is `stop` (-1: none): `level` itself where it is
   such a level. *each: how many rows of `level` each of its rows has, 1 to PNET_MAX_ROWS. */
int pnet_level_root(const struct pnet_level_info *levels, int level, int stop, int64_t *each);
/* A level as a file writes it, "g[1]" or "level(cloud)": without the input that tells levels of several clouds apart. Returns
   `text`. */
const char *pnet_level_written(const struct pnet_level_info *l, char text[96]);
/* "64@g[1] (10cm)" for messages; returns `text`. */
const char *pnet_type_text(const struct pnet_level_info *levels, struct pnet_type t, char text[96]);

/* A tensor at run time: [rows, width], row-major, contiguous. */
struct pnet_tensor {
    void *data; /* float, int32_t or double, as `type` says; NULL: not there */
    int64_t rows;
    int32_t width;
    enum pnet_scalar type;
    enum pnet_storage storage; /* PNET_F32: how it lies in memory */
    int level;
    int32_t
        generated; /* level of POINTS: how many for each row that they are generated for; else 0 */
    int32_t samples;
    const int64_t *row_splits; /* [samples + 1]; NULL for SCALAR */
    const int64_t *live; /* GPU: where the true number of rows stands, `rows` being that of the
                                  capacity class; NULL: `rows` is the number */
};

/* The sums of a convolution, each of which is formed by an algorithm of its own. */
enum pnet_direction { PNET_FORWARD, PNET_DF, PNET_DW, PNET_DIRECTIONS };
struct pnet_algos {
    enum pnet_conv_algo of[PNET_DIRECTIONS];
};
/* "forward", "dF", "dW", then NULL. */
extern const char *const pnet_direction_names[];

/* Bytes of workspace that a step may have where it could do with less. */
enum { PNET_WORK_MOST = 64 << 20 };

/* What a reference keeps from its first run to the next ones: numbers that the row's gradient takes as constant, such as an
   assignment of points. A test zeroes it, perturbs inputs after the first run, and frees `value`. */
struct pnet_constants {
    double *value; /* NULL: nothing has run */
    size_t count;
};

/* Everything one step of the schedule gets. Kernels write all of what they are asked to write, and
 * nothing else. */
struct pnet_exec {
    enum pnet_device_kind device;  /* where all pointers below lead, but attr and geo */
    int architecture;              /* of the GPU that sizes are for; 0: the one at hand */
    enum pnet_precision precision; /* of products */
    struct pnet_algos algos;       /* of convolutions */
    const struct pnet_attr *attr;
    int in_count;
    struct pnet_tensor in[PNET_MAX_IN]; /* backward: data is NULL unless the row keeps it */
    struct pnet_tensor out;             /* backward: likewise */
    struct pnet_tensor saved[PNET_MAX_SAVED];
    struct pnet_tensor gout;             /* backward: gradient of out; may be overwritten */
    struct pnet_tensor gin[PNET_MAX_IN]; /* backward: gradient to make; data NULL: not wanted */
    bool gin_add[PNET_MAX_IN];           /* add to it instead of writing it */
    void *param[PNET_MAX_PARAMS];        /* float */
    void *gparam[PNET_MAX_PARAMS];       /* float; NULL: not wanted */
    bool gparam_add[PNET_MAX_PARAMS];
    const struct pnet_geo_view *geo[PNET_MAX_GEO];
    void *work;        /* `work` bytes of the row, 64-byte aligned */
    size_t work_bytes; /* how many these are where the row may use more than it needs; else 0 */
    int act;           /* enum pnet_activation fused behind the op (rows with PNET_FUSES_ACT) */
    float slope;
    bool training;
    struct pnet_constants *constants; /* references: of this node; else NULL */
    struct pnet_rand rand;            /* for dropout and the like: set but for the block counter */
};

typedef void pnet_kernel(const struct pnet_exec *x);

/* The kernel of that name on the device of `x`: kernels come in pairs of equal signature, pnet_cpu_NAME and
   pnet_cuda_NAME. A row that has one for the CPU alone says PNET_CPU_ONLY and calls it by its full name. */
#ifdef PNET_CUDA_BUILT
#define PNET_KERNEL(x, name) (*((x)->device == PNET_CUDA ? pnet_cuda_##name : pnet_cpu_##name))
#else
#define PNET_KERNEL(x, name) pnet_cpu_##name
#endif

/* The same for the function *_work of a kernel, the bytes of its workspace, which every build has for both devices: a plan
   for a GPU is made where there is none. */
#define PNET_WORK(device, name) (*((device) == PNET_CUDA ? pnet_cuda_##name : pnet_cpu_##name))

/* A number of a metric besides its headline: "rre_all_deg", with the unit in the name. */
struct pnet_named_value {
    const char *name; /* static */
    double value;     /* NaN where undefined */
};

/* What a metric's sums amount to. */
struct pnet_metric_result {
    double value;      /* the headline: accuracy, mIoU */
    double *per_class; /* [classes] to fill, NaN where undefined; NULL: not asked for */
    int32_t classes;
    const double
        *matrix; /* [classes, classes] counts by label, then prediction, within the sums; NULL */
    struct pnet_named_value values[PNET_MAX_NAMED]; /* what else there is to say, in this order */
    int value_count;
    /* Of a single pair whose pose was found: T_true^-1 T, what is left between the true pose and the one found. */
    bool has_error_pose;
    double error_pose[16];
};

/* A mean over some things, such as points, as a sum and their number (of points with weights: the sum of the weights). */
struct pnet_mean {
    double sum, count; /* count 0: a mean of nothing */
};

enum pnet_op_class { PNET_LAYER, PNET_LOSS, PNET_METRIC };

enum pnet_op_flags {
    PNET_FUSES_ACT =
        1, /* forward applies x->act to its result; backward is told too, and gets `out` */
    PNET_IN_PLACE = 2,      /* out may share the memory of in[0] where that dies here */
    PNET_GRAD_IN_PLACE = 4, /* gin[0] (written, not added) may share the memory of gout */
    PNET_RUNS_ALWAYS = 8,   /* has an effect beyond its result (running statistics) */
    PNET_LINEAR_OUT = 16,   /* out = linear in (weight, bias): batch norm can be folded into it */
    PNET_NO_GRAD = 32,      /* has no gradient by nature */
    PNET_FOLDS =
        64, /* in inference a scale and shift per channel: params weight, bias, running_mean,
               running_var, argument eps; can be folded into a layer with PNET_LINEAR_OUT */
    PNET_CPU_ONLY = 128, /* has no kernels for a GPU */
    PNET_ON_HOST = 256,  /* metrics without saved tensors: on a GPU too, forward runs on the CPU, on
                            copies of what it reads */
    PNET_CONVOLVES = 512, /* where it asks for triplets, forward, gin[0] and gparam[0] are sums over
                             them, each formed as x->algos has it */
    PNET_FUSES_SUM =
        1024, /* has one input; where x->in_count is 2, forward adds in[1], of the type of out, to
                 its result before x->act is applied, and backward makes gin[1] too */
    PNET_SUMS = 2048, /* out = in[0] + scale * in[1], by an argument: so that it can be fused */
    PNET_GRADS_APART = 4096,  /* backward ends in pnet_op_backward_both */
    PNET_JOINS = 8192,        /* out = the inputs side by side */
    PNET_REPEATS = 16384,     /* each row of out is a row of in[0], which lies on a coarser level */
    PNET_READS_EXACT = 32768, /* its inputs are coordinates: float32 in every precision */
    PNET_WIDENS = 65536,      /* out may be stored in float32 where in[0] is not */
    PNET_SAME_SIZES =
        131072, /* in each sample in[0] and in[1] have as many rows, or one of them has none */
    PNET_NARROWS =
        524288, /* in[0] of at most PNET_EXACT_CHANNELS may be float32 where out is not */
    PNET_LESS_IS_BETTER = 262144, /* metrics: the headline is an error */
    PNET_MOVES_SCORES =
        1048576, /* where in[0] holds scores of classes, so does out, on other points */
    PNET_OF_SAMPLE = 2097152, /* each row of out depends on all rows of its sample in in[0] */
};

enum pnet_keep { /* what backward reads */
    PNET_KEEP_IN0 = 1,
    PNET_KEEP_IN1 = 2,
    PNET_KEEP_ALL_IN = 0xffff,
    PNET_KEEP_OUT = 0x10000,
};

/* A row. */
struct pnet_op {
    const char *name;
    enum pnet_op_class class_;
    const char *summary; /* one line, no full stop */
    const char *doc;     /* paragraphs of Markdown: formula, arguments' interplay, reference */
    struct pnet_arg args[PNET_MAX_ARGS]; /* values first; ends with a NULL name */
    unsigned flags, keep;
    bool (*rule)(struct pnet_rule *r);
    /* Bytes of x->work for either direction, from the row counts in `x` (data pointers are not to
     * be read). */
    size_t (*work)(const struct pnet_exec *x, bool backward);
    /* Where that depends on more than the rule knows: the forms of geo[0] that one sum reads, from the levels, widths and
       cells in `x`, on its device and with its algorithms; nothing is counted yet. A backward step forms PNET_DW, and
       PNET_DF where the gradient of in[0] is wanted. Beside what the request says. */
    unsigned (*forms)(const struct pnet_exec *x, enum pnet_direction direction);
    /* Rows that sum products: the name of the kernel that forms a sum, from the same as `work`; NULL: x asks for no such
       sum. */
    const char *(*kernel)(const struct pnet_exec *x, enum pnet_direction direction);
    pnet_kernel *forward, *backward; /* on the device of `x`, through PNET_KERNEL */
    pnet_kernel *reference; /* forward, plain and serial, on doubles: every float tensor and
                               parameter is double */
    void (*finish)(
        const struct pnet_attr *attr, const double *sum, struct pnet_metric_result *r); /* METRIC */
    /* LOSS: of what `value`, the result, is the mean, so that evaluation can give the mean over batches. It runs on the host:
       of in[] only labels, of saved[] only what inference has at the SCALAR level, and row splits lead somewhere; all other
       pointers are NULL or lead to the device. NULL: the mean over the samples. */
    struct pnet_mean (*mean)(const struct pnet_exec *x, double value);
    /* Expressions of the language over the values of tests/ops/case.h (x, y, z, g, p ...),
     * one a line. */
    const char *cases;
    int act; /* enum pnet_activation this row stands for, so that it can be fused; 0: none */
    /* The row that does the same where in[0] is joined from values of which one is repeated from a coarser level: its inputs are
       the other values, then that one on its own level; its geometry is that of the repetition; its argument `at` is the first
       channel of the repeated value in the join. NULL: none. */
    const struct pnet_op *parts;
};

/* All rows, in the order of ops.def. */
extern const struct pnet_op *const pnet_ops[];
extern const int pnet_op_count;
const struct pnet_op *pnet_op_find(const char *name); /* or NULL */

#endif
