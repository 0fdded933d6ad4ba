/* What format.c knows about every token before it lays out lines. */
#ifndef PNET_LANG_FORMAT_INTERNAL_H
#define PNET_LANG_FORMAT_INTERNAL_H

#include "lang/internal.h"

struct pnet_spacing {
    bool gap;       /* a space stands before it where it is not first on a line */
    bool begins;    /* an item, statement or field begins with it */
    uint32_t match; /* LBRACE: index of its RBRACE */
    uint32_t begun; /* LBRACE: how many statements or fields begin directly inside */
};

/* One row a token of a file without errors; NULL when memory is out. */
struct pnet_spacing *pnet_spacing_new(struct pnet_arena *a, const struct pnet_tokens *t);

#endif
