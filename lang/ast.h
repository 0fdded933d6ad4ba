/* The syntax tree of a .pnet file. Nodes live in the compilation's arena; strings are
   NUL-terminated and interned only by value. The tree knows no layer and no type: names are
   resolved by the compiler. */
#ifndef PNET_LANG_AST_H
#define PNET_LANG_AST_H

#include "lang/source.h"

#include <stdbool.h>

enum pnet_unit {
    PNET_UNIT_NONE,
    PNET_UNIT_LENGTH,  /* mm cm m km; the number is in metres */
    PNET_UNIT_ANGLE,   /* deg rad; in radians */
    PNET_UNIT_PERCENT, /* %; the number is the fraction */
};

enum pnet_expr_kind {
    PNET_EXPR_NUMBER,
    PNET_EXPR_STRING,
    PNET_EXPR_NAME,
    PNET_EXPR_LIST,  /* [a, b] */
    PNET_EXPR_INDEX, /* a[i] */
    PNET_EXPR_FIELD, /* a.name */
    PNET_EXPR_CALL,  /* f(args) */
    PNET_EXPR_PIPE,  /* left -> f(args) * count */
    PNET_EXPR_UNARY, /* -a, not a */
    PNET_EXPR_BINARY,
    PNET_EXPR_IF, /* if c then a else b */
};

enum pnet_operator {
    PNET_OP_ADD,
    PNET_OP_SUB,
    PNET_OP_MUL,
    PNET_OP_DIV,
    PNET_OP_MOD,
    PNET_OP_NEG,
    PNET_OP_EQ,
    PNET_OP_NE,
    PNET_OP_LT,
    PNET_OP_LE,
    PNET_OP_GT,
    PNET_OP_GE,
    PNET_OP_AND,
    PNET_OP_OR,
    PNET_OP_NOT,
};

struct pnet_call_arg {
    const char *name; /* NULL: positional */
    struct pnet_span name_span;
    struct pnet_expr *value;
    struct pnet_call_arg *next;
};

struct pnet_expr {
    enum pnet_expr_kind kind;
    int height;            /* nodes on the longest way down, at most PNET_MAX_NESTING */
    struct pnet_span span; /* place of the whole expression, with the parentheses around it */
    union {
        struct {
            double value; /* in the base unit: metres, radians, fraction */
            enum pnet_unit unit;
            bool is_integer; /* written without a point or exponent, and without a unit */
        } number;
        const char *string;
        struct {
            const char *name;           /* NAME */
            struct pnet_span name_span; /* without the parentheses around it */
        };
        struct {
            struct pnet_expr **items;
            int count;
        } list;
        struct {
            struct pnet_expr *base, *index;
        } index;
        struct {
            struct pnet_expr *base;
            const char *name;
            struct pnet_span name_span;
        } field;
        struct {
            struct pnet_expr *piped; /* PIPE: the value on the left; CALL: NULL */
            const char *name;        /* the function */
            struct pnet_span name_span;
            struct pnet_call_arg *args;
            struct pnet_expr *repeat; /* PIPE: the count behind `*`, or NULL */
        } call;                       /* CALL and PIPE */
        struct {
            enum pnet_operator op;
            struct pnet_span op_span;
            struct pnet_expr *left, *right; /* UNARY: left only */
        } binary;                           /* UNARY and BINARY */
        struct {
            struct pnet_expr *condition, *then, *otherwise;
        } conditional;
    };
};

enum pnet_stmt_kind {
    PNET_STMT_ASSIGN, /* name[i][j] = value */
    PNET_STMT_FOR,    /* for name = from..to { body } */
    PNET_STMT_IF,     /* if c { then } else { otherwise } */
    PNET_STMT_RETURN,
};

struct pnet_stmt {
    enum pnet_stmt_kind kind;
    int height; /* height as of an expression; `next` does not count */
    struct pnet_span span;
    const char *doc; /* or NULL; of ASSIGN at file level, its item has it */
    struct pnet_stmt *next;
    union {
        struct {
            const char *name;
            struct pnet_span name_span;
            struct pnet_expr **indices;
            int index_count;
            struct pnet_expr *value;
        } assign;
        struct {
            const char *name;
            struct pnet_span name_span;
            struct pnet_expr *from, *to;
            struct pnet_stmt *body;
        } loop;
        struct {
            struct pnet_expr *condition;
            struct pnet_stmt *then,
                *otherwise; /* otherwise: NULL, or statements (else if: one IF) */
        } conditional;
        struct pnet_expr *value; /* RETURN */
    };
};

/* input cloud { xyz : position   rgb : feature[3]   label : class[n] per point } */
struct pnet_field_decl {
    const char *name;
    struct pnet_span name_span;
    const char *type; /* as written: position, feature, class ... */
    struct pnet_span type_span;
    struct pnet_expr *size; /* feature[SIZE], class[SIZE]; or NULL */
    const char *per;        /* `point`, `cloud`; NULL where not written */
    struct pnet_span per_span;
    const char *doc;
    struct pnet_field_decl *next;
};

struct pnet_param_decl { /* of a block or net: name [: type] [= default] */
    const char *name;
    struct pnet_span name_span;
    const char *type; /* `cloud`; NULL where not written */
    struct pnet_span type_span;
    struct pnet_expr *value; /* default; or NULL */
    struct pnet_param_decl *next;
};

enum pnet_item_kind {
    PNET_ITEM_INCLUDE, /* kept for `fmt`; the included file's items follow it in the list */
    PNET_ITEM_PARAM,
    PNET_ITEM_CONST,
    PNET_ITEM_INPUT,
    PNET_ITEM_BLOCK,
    PNET_ITEM_NET,
    PNET_ITEM_LOSS,
    PNET_ITEM_METRIC,
    PNET_ITEM_ASSIGN, /* a statement at file level: fs = fcgf(src) */
};

struct pnet_item {
    enum pnet_item_kind kind;
    struct pnet_span span;
    const char *name; /* name of the declaration; the path for INCLUDE */
    struct pnet_span name_span;
    const char *doc; /* or NULL */
    struct pnet_item *next;
    struct pnet_expr *value;        /* PARAM CONST LOSS METRIC; ASSIGN uses stmt */
    struct pnet_stmt *stmt;         /* ASSIGN: the one statement; BLOCK NET: the body */
    struct pnet_param_decl *params; /* BLOCK NET */
    struct pnet_field_decl *fields; /* INPUT with braces */
    const char *input_type;         /* INPUT without: `input T : pose` */
    struct pnet_span input_type_span;
    struct pnet_span
        header; /* INCLUDE: that of the file, whose items follow; .file is 0 where none follow */
};

/* A name that tokens declare which a syntax error left out of the tree. */
struct pnet_lost_name {
    const char *name;
    struct pnet_lost_name *next;
};

struct pnet_file {
    int version;             /* the number in `pnet 1` */
    struct pnet_span header; /* `pnet 1` in its file; empty where it is missing */
    const char *doc;
    struct pnet_item *items;     /* in source order, included files in place */
    struct pnet_lost_name *lost; /* of all files; a name may stand there for each mistake */
    bool cut;                    /* the rest of a file, or an included one, is missing */
};

#endif
