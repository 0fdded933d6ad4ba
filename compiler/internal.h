/* What the files of the compiler share. Everything lives in the compilation's arena. */
#ifndef PNET_COMPILER_INTERNAL_H
#define PNET_COMPILER_INTERNAL_H

#include "compiler/compile.h"
#include "compiler/map.h"
#include "lang/arena.h"
#include "lang/ast.h"
#include "lang/diag.h"
#include "lang/parse.h"

enum {
    MAX_NODES = 1 << 16, /* of the graph */
    MAX_LEVELS = 256,
    MAX_STATEMENTS = 1 << 20, /* executed while elaborating: loops multiply them */
    MAX_STEPS = 1 << 24,      /* of elaborating, whatever it does: see pnet_spend_steps */
    MAX_ELABORATED =
        320 << 20, /* bytes of the arena when elaboration ends; passes need some more */
    MAX_CALL_DEPTH = 64,
    MAX_RUN_DEPTH =
        1000, /* statements and expressions inside of each other, through blocks and nets */
    MAX_ITEMS = 1 << 16, /* of a list, and of a repetition */
    MAX_LIST_DEPTH = 64,
    MAX_ARGUMENTS = 64,  /* of a call; parameters of a block or net */
    MAX_FIELDS = 256,    /* of an input */
    MAX_OBJECTIVES = 60, /* a bit of 64 each: pnet_loss_terms_idle */
};

/* values of the language */

enum value_kind {
    V_NONE,    /* a hole in a list */
    V_UNKNOWN, /* an error was reported; values computed from it are unknown too, without an error */
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

/* A list is copied when it gets a name: a value without a name shares its items with another value. */
struct value {
    enum value_kind kind;
    struct pnet_span span; /* of the expression that made it, for the second place of a message */
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
};

/* One run of a block's or net's body, or of the file's statements. */
struct scope {
    struct scope *outer;       /* where names are looked up next: the file */
    struct binding **bindings; /* in order of their first values */
    int binding_count, binding_capacity;
    struct map binding_names;
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
    bool unsure; /* a return may have run: a condition around it is unknown */
    int net_use; /* which use of a net this is inside of; 0: none */
};

/* A value that was given a name: was it ever read? */
struct use {
    struct pnet_span span;
    const char *name;
    bool used;
    bool
        result; /* features of the file that layers made: without a loss, they are what the model is for */
};

struct definition {
    const struct pnet_item *item;
    bool active;        /* being run: recursion is an error */
    bool broken;        /* its parameters had errors, which were reported */
    struct value value; /* NET: features, or the list, that its first use gives; V_NONE */
    int input;          /* NET: the input of its first use; -1 */
    bool inner;         /* NET: its first use stands in another net */
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
    const char *
        result_name; /* "pcn[1]": the result is one value of the list that a net gives; else NULL */
    bool done;       /* the plan may be used */
    /* elaboration */
    struct scope *global;
    struct definition *definitions;
    int definition_count;
    const struct pnet_item **items; /* declared: the first of each name */
    struct map item_names;          /* index into them */
    struct map definition_names, param_names, objective_names;
    struct map unknown_fields;        /* "cloud.rgb" */
    int first_tensor[MAX_LEVELS + 1]; /* per input: tensor of its first field */
    bool has_loss;
    int *param_use; /* per parameter: the net use that touched it last */
    int param_use_capacity;
    struct use *uses;
    int use_count, use_capacity;
    struct map use_places;
    struct map *set_used;
    struct pnet_span *tensor_spans; /* per tensor: where it was made */
    int tensor_span_capacity;
    int statements, depth, net_uses;
    int64_t steps;
    int run_depth;
    bool stopped;      /* a limit was reached, and reported */
    struct seen *seen; /* with options.inspect */
    struct torn *torn; /* with options.inspect, where there are syntax errors */
    struct map draws;
    struct map read_nodes; /* what rules ask for, by row and values: tensor */
};

static const struct value unknown = {.kind = V_UNKNOWN};

/* Has no statement named the level yet? Messages then call it by the function that made it; after elaboration it is called
   "grid3", by its number. */
bool pnet_level_unnamed(const struct pnet_level_info *l);

/* All errors are collected; true when there are none and memory is not out. */
bool pnet_compilation_ok(const struct pnet_compilation *c);

/* graph.c: the plan's tables grow */

int pnet_plan_add_level(struct pnet_compilation *c, struct pnet_level_info l);
int pnet_plan_add_tensor(
    struct pnet_compilation *c, struct pnet_plan_tensor t, struct pnet_span span);
int pnet_plan_add_node(struct pnet_compilation *c, struct pnet_node n);
int pnet_plan_add_param(struct pnet_compilation *c, struct pnet_plan_param p);
int pnet_plan_add_step(struct pnet_compilation *c, struct pnet_step s);
int pnet_plan_add_geo(struct pnet_compilation *c, struct pnet_geo_request q);
int pnet_plan_add_objective(struct pnet_compilation *c, struct pnet_objective o);
int pnet_plan_add_fold(struct pnet_compilation *c, struct pnet_plan_fold f);

/* item.c, elab.c, expr.c, call.c: names to graph */

void pnet_elaborate(struct pnet_compilation *c);
void pnet_warn_unused(struct pnet_compilation *c); /* a warning for each name that no one read */
/* Counts work done at `span`. False where elaboration must end: a limit is met (then that was said), or
   memory is out. Whatever repeats something asks here. */
bool pnet_spend_steps(struct pnet_compilation *c, struct pnet_span span, int64_t steps);
/* The same for a level more of statements or expressions; pnet_ascend ends it, also where this is false. */
bool pnet_descend(struct pnet_compilation *c, struct pnet_span span);
void pnet_ascend(struct pnet_compilation *c);
void pnet_run_statements(
    struct pnet_compilation *c, struct scope *s, const struct pnet_stmt *first);
struct value pnet_evaluate_expr(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e);
struct value pnet_evaluate_call(
    struct pnet_compilation *c, struct scope *s, const struct pnet_expr *e);
struct value pnet_evaluate_operator(struct pnet_compilation *c, struct scope *s,
    const struct pnet_expr *e, enum pnet_operator op, struct value a, struct value b);
/* A node of the op called `name`, with values in order and named numeric arguments given as
 * text-free attrs. */
struct value pnet_apply_op(struct pnet_compilation *c, struct scope *s, struct pnet_span span,
    const struct pnet_op *op, const struct value *in, int in_count, const struct pnet_attr *attr,
    const struct pnet_span *arg_spans, const char *name);
/* Is it a word that an argument of a layer takes, such as mean or hilbert? */
bool pnet_is_choice(const char *word);
bool pnet_default_attrs(
    struct pnet_compilation *c, const struct pnet_op *op, struct pnet_attr *attr);

struct binding *pnet_find_binding(struct scope *s, const char *name);
/* The same in this scope alone. */
struct binding *pnet_find_own_binding(struct scope *s, const char *name);
void pnet_bind_value(struct pnet_compilation *c, struct scope *s, const char *name, struct value v,
    struct pnet_span span, bool track);
const char *pnet_value_text(
    struct pnet_compilation *c, struct value v); /* "a number", "128@g[2] (1.2m)" */
const char *pnet_span_text(
    struct pnet_compilation *c, struct pnet_span span); /* short, for labels */
struct value pnet_builtin_grid(
    struct pnet_compilation *c, struct pnet_span span, struct value from, struct value cells);

/* seen.c: what names and calls were, for editors. All do nothing without options.inspect. */

void pnet_seen_begin(struct pnet_compilation *c);
void pnet_seen_free(struct pnet_compilation *c);
void pnet_seen_add(struct pnet_compilation *c, struct pnet_span place, struct value v);
/* Called when elaboration ends: levels have their names. */
void pnet_seen_end(struct pnet_compilation *c);

/* torn.c: what syntax errors left out of the tree, so that no errors follow from it. Without syntax errors nothing is. */

void pnet_torn_begin(struct pnet_compilation *c);
/* May a name be declared, or assigned, where the tree lacks it? */
bool pnet_is_lost(const struct pnet_compilation *c, const char *name);
/* The same of a name that has no value, and a layer that is not called. */
bool pnet_may_be_lost(const struct pnet_compilation *c, const char *name);
/* Is a syntax error in it? */
bool pnet_is_torn(const struct pnet_compilation *c, struct pnet_span span);

/* result.c: sets the result of the plan; reports an error if there is none. */
void pnet_choose_result(struct pnet_compilation *c);
/* The values that the options name, for every purpose. */
void pnet_choose_outputs(struct pnet_compilation *c);

#define ERROR(c, span, ...) pnet_diag_new((c)->diags, PNET_ERROR, (span), __VA_ARGS__)

/* passes: what each requires and guarantees stands in its file */

void pnet_pass_prune(struct pnet_compilation *c);
void pnet_pass_fold(struct pnet_compilation *c);
void pnet_pass_fuse(struct pnet_compilation *c);
void pnet_pass_parameters(struct pnet_compilation *c);
void pnet_pass_exact(struct pnet_compilation *c);
void pnet_pass_schedule(struct pnet_compilation *c);
void pnet_pass_geometry(struct pnet_compilation *c);
void pnet_pass_lifetimes(struct pnet_compilation *c);
void pnet_pass_hash(struct pnet_compilation *c);

#endif
