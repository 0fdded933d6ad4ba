/* The names of a compilation: what each one stands for, and where it occurs. */
#ifndef PNET_COMPILER_LSP_INDEX_H
#define PNET_COMPILER_LSP_INDEX_H

#include "compiler/inspect.h"
#include "compiler/map.h"
#include "runtime/plan/op.h"

enum symbol_kind {
    SYMBOL_PARAM,
    SYMBOL_CONST,
    SYMBOL_INPUT,
    SYMBOL_FIELD, /* of an input */
    SYMBOL_BLOCK,
    SYMBOL_NET,
    SYMBOL_PARAMETER, /* of a block or net */
    SYMBOL_LOSS,
    SYMBOL_METRIC,
    SYMBOL_VALUE,
    SYMBOL_LOOP,
    SYMBOL_INCLUDE,
    SYMBOL_OP,
    SYMBOL_ARGUMENT, /* of an op */
    SYMBOL_BUILTIN,
    SYMBOL_WORD, /* of the language, or one that an argument takes: in, yes, mean */
};

struct symbol {
    enum symbol_kind kind;
    const char *name;
    struct pnet_span declared;    /* the name, where it occurs first; nothing of an op or a word */
    struct pnet_span declaration; /* what hover shows of it */
    const char *doc;              /* or NULL */
    const struct pnet_item *
        item; /* INPUT BLOCK NET: itself; FIELD PARAMETER: of it; values of a block or net: that; or NULL */
    const struct pnet_op *op;   /* OP ARGUMENT */
    const struct pnet_arg *arg; /* ARGUMENT */
    const struct pnet_builtin_info *builtin;
    int64_t file; /* INCLUDE: the source, or -1 */
    bool bound;   /* while the index is made: a statement before gave it a value */
    bool mixed;   /* an occurrence may mean this one or another one of the same name */
    bool twin;    /* FIELD: another input has a field of that name */
    bool
        guessed; /* FIELD, the first of its name: an occurrence counts as this one, and may mean any of that name */
};

struct occurrence {
    struct pnet_span span;
    int symbol;
    bool binds;                   /* declares it, or gives it a value: */
    const struct pnet_stmt *stmt; /* by this; NULL: by another declaration */
};

struct pnet_index {
    struct pnet_arena arena;
    const struct pnet_compilation *compilation;
    const struct pnet_sources *sources;
    struct symbol *symbols;
    int symbol_count, symbol_capacity;
    struct occurrence *occurrences; /* in order of file and place */
    int occurrence_count, occurrence_capacity;
    struct map globals;     /* values of the file */
    struct map definitions; /* blocks and nets */
    struct map fields;      /* the first of each name */
    struct map members;     /* "input.field", "block(parameter", "op=argument", "op", "word " */
};

/* NULL: memory is out. An index that is too large has `arena.full`. */
struct pnet_index *pnet_index_new(const struct pnet_compilation *c);
void pnet_index_free(struct pnet_index *x);
/* The occurrence at a byte, or that ends there; NULL. */
const struct occurrence *pnet_index_at(const struct pnet_index *x, uint32_t file, uint32_t offset);
/* The place that gave a name its value: the last one before `o` in the text of its file, else any. NULL: none does. */
const struct occurrence *pnet_index_binding(const struct pnet_index *x, const struct occurrence *o);
/* The item of an input, block or net of that name, or NULL. */
const struct pnet_item *pnet_index_input(const struct pnet_index *x, const char *name);
const struct pnet_item *pnet_index_definition(const struct pnet_index *x, const char *name);
/* Is it a name of the model, and not one of the language? */
bool pnet_symbol_is_named(const struct symbol *s);

#endif
