/* A text with syntax errors lacks some of its statements. Elaborated for an editor, it must not report what follows from that:
   names that only those statements declare, and expressions with a mistake in them, are unknown, as values are behind any other
   error. */
#include "compiler/internal.h"
#include "lang/lexeme.h"

#include <string.h>

enum { MAX_TORN = 20 };

struct torn {
    struct map lost;     /* names that may be declared or assigned where the tree lacks it */
    struct map declared; /* names that the text seems to declare or assign somewhere */
    bool cut;            /* any name may be lost */
    struct pnet_span places[MAX_TORN];
    int count;
};

/* Does the name at `i` stand where names are declared or assigned? `head`: among the parameters of a block or net. */
static bool declares(const struct pnet_lexemes *l, size_t i, bool head)
{
    char before = i ? l->items[i - 1].kind : 0, next = i + 1 < l->count ? l->items[i + 1].kind : 0;
    return head || before == PNET_LEXEME_KEYWORD || next == '=' || next == ':' ||
           (next == '[' && l->items[i].first_on_line);
}

static void find_declared(struct pnet_compilation *c, struct torn *t, const struct pnet_source *s)
{
    struct pnet_lexemes l;
    if (!pnet_lexemes_scan(&c->arena, s->text, s->length, &l)) {
        t->cut = true;
        return;
    }
    bool head = false;
    for (size_t i = 0; i < l.count; i++) {
        const struct pnet_lexeme *at = &l.items[i];
        if (at->kind == PNET_LEXEME_KEYWORD) {
            size_t length = at->end - at->begin;
            const char *word = s->text + at->begin;
            head = (length == 5 && memcmp(word, "block", 5) == 0) ||
                   (length == 3 && memcmp(word, "net", 3) == 0);
        }
        if (at->kind == '{') head = false;
        if (at->kind != PNET_LEXEME_NAME || !declares(&l, i, head)) continue;
        const char *name = pnet_arena_copy(&c->arena, s->text + at->begin, at->end - at->begin);
        if (!name || !pnet_map_get(&c->arena, &t->declared, name, 1)) return;
    }
}

static void find_names(struct pnet_compilation *c, struct torn *t)
{
    const struct pnet_source *s;
    t->cut = c->file->cut || pnet_diags_full(c->diags);
    for (uint32_t f = 0; !t->cut && (s = pnet_sources_get(c->sources, f)); f++)
        find_declared(c, t, s);
    pnet_map_get(&c->arena, &t->declared, "in", 1);
    for (const struct pnet_lost_name *n = c->file->lost; n; n = n->next)
        if (!pnet_map_get(&c->arena, &t->lost, n->name, 1)) return;
}

void pnet_torn_begin(struct pnet_compilation *c)
{
    if (!c->options.inspect || !pnet_diags_errors(c->diags)) return;
    struct torn *t = pnet_arena_alloc(&c->arena, sizeof *t);
    if (!t) return;
    find_names(c, t);
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
    return c->torn && (c->torn->cut || pnet_is_lost(c, name) || pnet_op_find(name) ||
                          pnet_map_find(&c->torn->declared, name));
}

bool pnet_is_torn(const struct pnet_compilation *c, struct pnet_span span)
{
    for (int i = 0; c->torn && i < c->torn->count; i++) {
        struct pnet_span p = c->torn->places[i];
        if (p.file == span.file && p.begin >= span.begin && p.begin < span.end) return true;
    }
    return false;
}
