/* A text with syntax errors lacks some of its statements. Elaborated for an editor, it must not report what follows from that:
   names that only those statements declare, and expressions with a mistake in them, are unknown, as values are behind any other
   error. */
#include "compiler/internal.h"

#include <string.h>

enum { MAX_TORN = 20 };

struct torn {
    struct map lost;
    bool cut; /* any name may be lost */
    struct pnet_span places[MAX_TORN];
    int count;
};

void pnet_torn_begin(struct pnet_compilation *c)
{
    if (!c->options.inspect || !pnet_diags_errors(c->diags)) return;
    struct torn *t = pnet_arena_alloc(&c->arena, sizeof *t);
    if (!t) return;
    t->cut = c->file->cut || pnet_diags_full(c->diags);
    for (const struct pnet_lost_name *n = c->file->lost; n; n = n->next)
        if (!pnet_map_get(&c->arena, &t->lost, n->name, 1)) return;
    for (int i = 0; i < pnet_diags_count(c->diags); i++) {
        struct pnet_diag_record r;
        pnet_diags_record(c->diags, i, &r);
        if (r.severity == PNET_ERROR && r.span.end && t->count < MAX_TORN)
            t->places[t->count++] = r.span;
    }
    c->torn = t;
}

bool pnet_is_lost(const struct pnet_compilation *c, const char *name)
{
    return c->torn && pnet_map_find(&c->torn->lost, name);
}

bool pnet_may_be_lost(const struct pnet_compilation *c, const char *name)
{
    return c->torn && (c->torn->cut || pnet_is_lost(c, name));
}

bool pnet_is_torn(const struct pnet_compilation *c, struct pnet_span span)
{
    for (int i = 0; c->torn && i < c->torn->count; i++) {
        struct pnet_span p = c->torn->places[i];
        if (p.file == span.file && p.begin >= span.begin && p.begin < span.end) return true;
    }
    return false;
}
