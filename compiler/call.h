/* What the files that handle calls share. */
#ifndef PNET_COMPILER_CALL_H
#define PNET_COMPILER_CALL_H

#include "compiler/inspect.h"
#include "compiler/internal.h"

/* The call as written, sorted into places. */
struct arguments {
    const struct pnet_expr *expr;
    const char *name; /* name="..", which overrides the path; or NULL */
    bool is_piped;
    struct value piped;
    int count; /* of the others, at most MAX_ARGUMENTS */
    struct argument {
        const char *name; /* NULL: positional */
        struct pnet_span name_span;
        const struct pnet_expr *expr;
    } * items;
};

/* call.c */
bool pnet_unknown_argument(struct pnet_compilation *c, struct pnet_span span, const char *function,
    const char *name, const char *const *names, int count);

/* call_op.c: a layer of the op table */
struct value pnet_call_op(struct pnet_compilation *c, struct scope *s, const struct pnet_op *op,
    const struct arguments *a);

/* node.c: "prefix.value.op", with _2, _3 where the same stands there already */
const char *pnet_op_path(
    struct pnet_compilation *c, struct scope *s, const char *op, const char *name);

/* call_block.c */
struct value pnet_call_block(
    struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a);
struct value pnet_call_net(
    struct pnet_compilation *c, struct scope *s, struct definition *d, const struct arguments *a);

/* The functions of the language. */
enum builtin_id {
    GRID,
    POINTS,
    CHUNKS,
    LEVEL,
    WIDTH,
    LEN,
    MATCHES,
    SMALLEST, /* of numbers, from here on */
    LARGEST,
    FLOOR,
    CEIL,
    ROUND,
    FAIL,
    BUILTINS
};

struct builtin {
    struct pnet_builtin_info info;
    int least, most;   /* arguments */
    const char *named; /* the last argument may be given by this name */
};
extern const struct builtin pnet_builtins[BUILTINS];

/* function.c: the function called `name`, or -1; `names` of all for suggestions */
int pnet_find_builtin(const char *name);
int pnet_builtin_names(const char **names);
/* builtin.c */
struct value pnet_call_builtin(
    struct pnet_compilation *c, struct scope *s, int which, const struct arguments *a);

#endif
