/* What the files of the compiler share. Everything lives in the compilation's arena. */
#ifndef PNET_COMPILER_INTERNAL_H
#define PNET_COMPILER_INTERNAL_H

#include "compiler/pnet.h"
#include "lang/arena.h"
#include "lang/ast.h"
#include "lang/diag.h"
#include "lang/parse.h"

enum {
    MAX_NODES = 1 << 16, /* of the graph */
    MAX_LEVELS = 256,
    MAX_STATEMENTS = 1 << 20, /* executed while elaborating: loops multiply them */
    MAX_CALL_DEPTH = 64,
    MAX_ITEMS = 1 << 16, /* of a list, and of a repetition */
};

/* map.c: strings to numbers */

struct map {
    struct map_entry *entries;
    int capacity, count;
};
/* The number of `key`, or NULL. Stays valid until the next insertion. */
int *map_find(const struct map *m, const char *key);
/* Same, made with `value` where missing; NULL when memory is out. */
int *map_get(struct pnet_arena *a, struct map *m, const char *key, int value);

/* values of the language */

enum value_kind {
    V_NONE, /* an error was reported, or a hole in a list */
    V_NUMBER,
    V_BOOL,
    V_WORD, /* an enum word */
    V_TEXT,
    V_LIST,
    V_LEVEL,
    V_TENSOR,
    V_CLOUD,
    V_POSE,
    V_MATCHES,
};

struct value {
    enum value_kind kind;
    struct pnet_span span; /* where it came from, for second places */
    union {
        struct {
            double number;
            enum pnet_unit unit;
        };
        bool truth;
        const char *text; /* WORD TEXT */
        struct {
            struct value *items;
            int count, capacity;
        };
        int index; /* LEVEL TENSOR CLOUD (input) POSE (tensor) */
        const struct pnet_matches *matches;
    };
};

/* elaboration */

struct binding {
    const char *name;
    struct value value;
    int use; /* index into elab.uses, or -1 */
    struct binding *next;
};

/* One run of a block's or net's body, or of the file's statements. */
struct scope {
    struct scope *outer; /* where names are looked up next: the file */
    struct binding *bindings;
    const char *prefix;     /* path of the instance: "fcgf.s.0.res" */
    const char *value_path; /* of the statement being run: "s.0" */
    struct map *counters;   /* how often an op stands under a path, for _2, _3 */
    struct loop {
        const char *name;
        int64_t value;
        struct loop *outer;
    } * loops;
    struct value result; /* of return, or out */
    bool returned;
    int net_use; /* which use of a net this is inside of; 0: none */
};

/* A value that was given a name: was it ever read? */
struct use {
    struct pnet_span span;
    const char *name;
    bool used;
};

struct definition {
    const struct pnet_item *item;
    bool active; /* being run: recursion is an error */
    int result;  /* NET: tensor of its first use; -1 */
    int input;   /* NET: the input of its first use; -1 */
};

/* Growing arrays: count and capacity beside the pointer in the plan. */
struct capacities {
    int nodes, tensors, params, levels, geo, steps, objectives, folds;
};

struct pnet_compilation {
    struct pnet_arena arena;
    struct pnet_sources *sources;
    struct pnet_diags *diags;
    struct pnet_file *file;
    struct pnet_compile_options options;
    struct pnet_plan plan;
    struct capacities capacity;
    const char *text;
    bool done; /* the plan may be used */
    /* elaboration */
    struct scope *global;
    struct definition *definitions;
    int definition_count;
    struct map definition_names, param_names;
    int *param_use; /* per parameter: the net use that touched it last */
    int param_use_capacity;
    struct use *uses;
    int use_count, use_capacity;
    struct map use_places;
    struct map *set_used;
    struct pnet_span *tensor_spans; /* per tensor: where it was made */
    int tensor_span_capacity;
    int statements, depth, net_uses;
    struct map draws;
};

/* All errors are collected; true when there are none and memory is not out. */
bool compilation_ok(const struct pnet_compilation *c);

/* graph.c: the plan's tables grow */

int add_level(struct pnet_compilation *c, struct pnet_level_info l);
int add_tensor(struct pnet_compilation *c, struct pnet_plan_tensor t, struct pnet_span span);
int add_node(struct pnet_compilation *c, struct pnet_node n);
int add_param(struct pnet_compilation *c, struct pnet_plan_param p);
int add_step(struct pnet_compilation *c, struct pnet_step s);
int add_geo(struct pnet_compilation *c, struct pnet_geo_request q);
int add_objective(struct pnet_compilation *c, struct pnet_objective o);
int add_fold(struct pnet_compilation *c, struct pnet_plan_fold f);

/* elab.c, expr.c, call.c: names to graph */

void elaborate(struct pnet_compilation *c);
void warn_unused(struct pnet_compilation *c); /* a warning for each name that no one read */
void run_statements(struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *first);
struct value evaluate(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e);
struct value evaluate_call(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e);
struct value arithmetic(struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e,
    enum pnet_operator op, struct value a, struct value b);
/* A node of the op called `name`, with values in order and named numeric arguments given as
 * text-free attrs. */
struct value apply_op(struct pnet_compilation *c, struct scope *s, struct pnet_span span,
    const struct pnet_op *op, const struct value *in, int in_count, const struct pnet_attr *attr,
    const struct pnet_span *arg_spans, const char *name);
bool default_attrs(struct pnet_compilation *c, const struct pnet_op *op, struct pnet_attr *attr);

struct binding *find_binding(struct scope *s, const char *name);
void bind_value(struct pnet_compilation *c, struct scope *s, const char *name, struct value v,
    struct pnet_span span, bool track);
const char *describe(
    struct pnet_compilation *c, struct value v); /* "a number", "128@g[2] (1.2m)" */
const char *source_text(struct pnet_compilation *c, struct pnet_span span); /* short, for labels */
struct value builtin_grid(
    struct pnet_compilation *c, struct pnet_span span, struct value from, struct value cells);

#define ERROR(c, span, ...) pnet_diag_new((c)->diags, PNET_ERROR, (span), __VA_ARGS__)

/* passes: what each requires and guarantees stands in its file */

void pass_prune(struct pnet_compilation *c);
void pass_fold(struct pnet_compilation *c);
void pass_fuse(struct pnet_compilation *c);
void pass_parameters(struct pnet_compilation *c);
void pass_schedule(struct pnet_compilation *c);
void pass_geometry(struct pnet_compilation *c);
void pass_lifetimes(struct pnet_compilation *c);
void pass_hash(struct pnet_compilation *c);

#endif
