/* The diagnostics that diag.c collects and diag_print.c prints. */
#ifndef PNET_LANG_DIAG_INTERNAL_H
#define PNET_LANG_DIAG_INTERNAL_H

#include "lang/diag.h"

enum { PNET_DIAGS_KEPT = 20 }; /* of either severity */

struct pnet_diag {
    struct pnet_arena *arena;
    enum pnet_severity severity;
    int order; /* order of arrival */
    struct pnet_span span;
    const char *message;
    const char *label; /* NULL: none */
    bool has_second;
    struct pnet_span second;
    const char *second_label;
    const char *help; /* lines, or NULL */
};

struct pnet_diags {
    struct pnet_arena *arena;
    struct pnet_sources *sources;
    struct pnet_diag *kept[2 * PNET_DIAGS_KEPT];
    int kept_count;
    int found[2]; /* by severity */
};

/* Lists the kept ones in source order. */
void pnet_diags_sorted(const struct pnet_diags *d, const struct pnet_diag **sorted);

#endif
