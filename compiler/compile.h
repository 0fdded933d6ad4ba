/* The interface of the compiler: from text to a plan, which runtime/run/bound.h binds to a device and
   runtime/run/runner.h runs. */
#ifndef PNET_COMPILER_COMPILE_H
#define PNET_COMPILER_COMPILE_H

#include "lang/diag.h"
#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum pnet_purpose_kind {
    PNET_FOR_TRAINING,  /* losses, metrics and backward */
    PNET_FOR_EVAL,      /* losses and metrics */
    PNET_FOR_INFERENCE, /* the result of one net, or one value */
};

struct pnet_compile_options {
    enum pnet_purpose_kind purpose;
    unsigned degrade;        /* of enum pnet_degrade: 0 native, PNET_VOXEL voxel mode */
    const char *const *sets; /* "name=value" each, for the model's params */
    int set_count;
    const char *net;   /* INFERENCE: this net's result; NULL: the last net's. The last
                                    value of a list */
    const char *value; /* INFERENCE: a value instead, by its path (fcgf.s.0), its name in
                                    the file (y), or its place in a list (y[1], or pcn[1] of a net) */
    /* values that the caller reads besides, and from which backward begins in training, as `value` names them:
       [output_count] */
    const char *const *outputs;
    int output_count;
    const double *class_weights; /* for losses whose `weights` the model leaves out:
                                    [class_weight_count], or NULL */
    int class_weight_count;
    bool no_fusion;       /* keep every node apart, for tests and dumps */
    bool input_gradients; /* TRAINING: also with respect to input features */
    const char *dump;     /* name of a pass: the graph after it goes to dump_to */
    FILE *dump_to;
    const struct pnet_overlay *overlay; /* texts in place of files; NULL: none */
    bool
        inspect; /* for editors: keep what compiler/inspect.h tells, and go on behind syntax errors */
};

/* Source, tree, diagnostics and plan of one model; frees at once. */
struct pnet_compilation;

/* Compiles the model at `path` ("-": standard input). The compilation is returned even when the
   model has errors (then its plan is NULL and the diagnostics say why); NULL when memory is out. */
struct pnet_compilation *pnet_compile_file(const char *path, const struct pnet_compile_options *o);
/* The same from memory. */
struct pnet_compilation *pnet_compile_text(
    const char *name, const char *text, size_t length, const struct pnet_compile_options *o);
void pnet_compilation_free(struct pnet_compilation *c);

/* Records the model and its includes as inputs of the program (runtime/base/guard.h). */
enum pnet_status pnet_compilation_guard(const struct pnet_compilation *c, struct pnet_error *e);

/* The plan, or NULL where there were errors. It is the same for every device, and nothing changes it. */
const struct pnet_plan *pnet_compilation_plan(const struct pnet_compilation *c);
/* Errors and warnings, for pnet_diags_record. */
const struct pnet_diags *pnet_compilation_diags(const struct pnet_compilation *c);
/* Errors and warnings, with carets. */
void pnet_compilation_report(const struct pnet_compilation *c, FILE *out, bool colour, bool json);
int pnet_compilation_errors(const struct pnet_compilation *c);
/* PNET_OK, PNET_BAD_MODEL where there are errors, PNET_NO_MEMORY where memory ran out. */
enum pnet_status pnet_compilation_code(const struct pnet_compilation *c);
int pnet_compilation_warnings(const struct pnet_compilation *c);
/* The name of the result, "pcn[1]", if it is the last value of a list that the net gives and `value` did not choose it; else
   NULL. */
const char *pnet_compilation_result(const struct pnet_compilation *c);
/* The text of the model with its includes in place, for checkpoints: it compiles alone; NUL-terminated, owned by the
 * compilation. */
const char *pnet_compilation_text(const struct pnet_compilation *c);

/* Names of the passes, in order, for `dump`. */
extern const char *const pnet_pass_names[];
extern const int pnet_pass_count;

/* Listings of a plan; pnet_plan_svg draws the graph. Whether they could be written, the stream
   tells; false: memory is out. */
bool pnet_plan_print(const struct pnet_plan *p, FILE *out);
void pnet_plan_dot(const struct pnet_plan *p, FILE *out);
bool pnet_plan_svg(const struct pnet_plan *p, FILE *out);

#endif
