/* The pieces of a text as an editor sees them, in a text that need not be a model yet. */
#ifndef PNET_LANG_LEXEME_H
#define PNET_LANG_LEXEME_H

#include "lang/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pnet_lexeme_kind {
    PNET_LEXEME_NAME = 'n',
    PNET_LEXEME_KEYWORD = 'k',
    PNET_LEXEME_NUMBER = '0',
    PNET_LEXEME_STRING = '"',
    PNET_LEXEME_ARROW = '>',
    PNET_LEXEME_OPERATOR =
        'o', /* of two operands, and `..`; brackets, `=`, `,`, `:` and `.` are their own kinds */
    PNET_LEXEME_COMMENT = '#',
};

struct pnet_lexeme {
    uint32_t begin, end;
    char kind;          /* of enum pnet_lexeme_kind, or one of ( ) [ ] { } = , : . */
    bool first_on_line; /* a comment never is */
};

struct pnet_lexemes {
    struct pnet_lexeme *items;
    size_t count;
};

/* Cuts a text, which must be UTF-8; reports no errors, and leaves out what belongs to no token. Returns false if memory is out,
   or the text is larger than a model may be. */
bool pnet_lexemes_scan(
    struct pnet_arena *a, const char *text, size_t length, struct pnet_lexemes *out);

/* The reserved words, one for each index from 0; NULL behind the last. */
const char *pnet_keyword(int index);
/* May a value, block, net or param be called so? No keyword, at most PNET_MAX_NAME letters, digits and `_`. */
bool pnet_is_name(const char *text, size_t length);

#endif
