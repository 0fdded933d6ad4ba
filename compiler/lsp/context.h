/* What may stand at a place of a text that is being written. */
#ifndef PNET_COMPILER_LSP_CONTEXT_H
#define PNET_COMPILER_LSP_CONTEXT_H

#include "lang/lexeme.h"

enum wanted {
    WANT_NOTHING,   /* a new name, a comment, a text, a number */
    WANT_ITEM,      /* a statement of the file */
    WANT_STATEMENT, /* of a block or net */
    WANT_EXPRESSION,
    WANT_OPERATOR,   /* a word that goes on with an expression */
    WANT_STAGE,      /* of a pipe */
    WANT_ARGUMENT,   /* of `call`: its name or its value */
    WANT_VALUE,      /* of the argument `argument` of `call` */
    WANT_FIELD,      /* of the value called `base` */
    WANT_FIELD_TYPE, /* of a field of an input */
    WANT_PER,
    WANT_INPUT_TYPE,
    WANT_PARAMETER_TYPE,
};

struct context {
    const char *text;
    struct pnet_lexemes lexemes;
    size_t at; /* the first lexeme that is not before the word at the place */
    enum wanted wanted;
    const struct pnet_lexeme *call;     /* its name; NULL: within no call */
    bool piped;                         /* the call has a value from a pipe */
    int position;                       /* of the argument, among those without a name */
    size_t arguments;                   /* the lexeme behind the opening bracket of the call */
    const struct pnet_lexeme *argument; /* the name before `=` */
    const struct pnet_lexeme *base;
    size_t definition; /* the keyword of the block or net around the place; lexemes.count: none */
};

/* Looks at the text before `offset`. False: memory is out, or the text is too large for a model. */
bool pnet_context_find(
    struct pnet_arena *a, const char *text, size_t length, uint32_t offset, struct context *c);
bool pnet_lexeme_is(const struct context *c, const struct pnet_lexeme *l, const char *word);

#endif
