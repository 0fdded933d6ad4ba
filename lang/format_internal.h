/* The table of tokens from which format.c lays out lines. */
#ifndef PNET_LANG_FORMAT_INTERNAL_H
#define PNET_LANG_FORMAT_INTERNAL_H

#include "lang/internal.h"

struct pnet_spacing {
    bool gap;       /* a space precedes it, unless it is first on a line */
    bool begins;    /* an item, statement or field begins with it */
    uint32_t match; /* LBRACE: index of its RBRACE */
    uint32_t begun; /* LBRACE: how many statements or fields begin directly inside */
};

/* Makes one row for each token of a file without errors; NULL when memory is out. */
struct pnet_spacing *pnet_spacing_new(struct pnet_arena *a, const struct pnet_tokens *t);

#endif
