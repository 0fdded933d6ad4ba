/* textDocument/documentSymbol and textDocument/formatting. */
#include "compiler/lsp/internal.h"
#include "lang/parse.h"

#include <string.h>

/* SymbolKind of the protocol. */
enum {
    KIND_CLASS = 5,
    KIND_PROPERTY = 7,
    KIND_FIELD = 8,
    KIND_FUNCTION = 12,
    KIND_VARIABLE = 13,
    KIND_CONSTANT = 14,
    KIND_STRUCT = 23
};

struct outline {
    struct server *server;
    struct ruler ruler;
    const char *uri;
    struct pnet_json *j;
};

/* Begins a symbol; `container` is that of a flat list. */
static void begin(struct outline *o, const char *name, const char *container, int kind,
    struct pnet_span whole, struct pnet_span name_span)
{
    pnet_json_begin(o->j, NULL, '{');
    pnet_json_string(o->j, "name", name);
    pnet_json_int(o->j, "kind", kind);
    if (o->server->nested_symbols) {
        pnet_ruler_range(&o->ruler, "range", whole.begin, whole.end, o->j);
        pnet_ruler_range(&o->ruler, "selectionRange", name_span.begin, name_span.end, o->j);
        return;
    }
    pnet_json_begin(o->j, "location", '{');
    pnet_json_string(o->j, "uri", o->uri);
    pnet_ruler_range(&o->ruler, "range", whole.begin, whole.end, o->j);
    pnet_json_end(o->j, '}');
    if (container) pnet_json_string(o->j, "containerName", container);
}

static int kind_of(const struct pnet_item *item)
{
    switch (item->kind) {
    case PNET_ITEM_PARAM:
    case PNET_ITEM_CONST: return KIND_CONSTANT;
    case PNET_ITEM_INPUT: return KIND_STRUCT;
    case PNET_ITEM_BLOCK: return KIND_FUNCTION;
    case PNET_ITEM_NET: return KIND_CLASS;
    case PNET_ITEM_LOSS:
    case PNET_ITEM_METRIC: return KIND_PROPERTY;
    default: return KIND_VARIABLE;
    }
}

static void put_fields(struct outline *o, const struct pnet_item *item)
{
    for (const struct pnet_field_decl *f = item->fields; f; f = f->next) {
        begin(o, f->name, item->name, KIND_FIELD, f->name_span, f->name_span);
        pnet_json_end(o->j, '}');
    }
}

void pnet_lsp_symbols(struct server *s, json_t *params, struct reply *r)
{
    struct document *d;
    if (!pnet_lsp_params_document(s, params, r, &d)) return;
    const struct pnet_file *tree = pnet_compilation_tree(d->compilation);
    struct outline o = {.server = s, .ruler = {.utf8 = s->utf8}, .uri = d->uri, .j = &r->result};
    pnet_ruler_use(&o.ruler, d->held.text, d->held.length);
    pnet_json_begin(o.j, NULL, '[');
    for (const struct pnet_item *i = tree ? tree->items : NULL; i; i = i->next) {
        if (i->span.file != 0 || i->kind == PNET_ITEM_INCLUDE) continue;
        begin(&o, i->name, NULL, kind_of(i), i->span, i->name_span);
        if (s->nested_symbols && i->fields) {
            pnet_json_begin(o.j, "children", '[');
            put_fields(&o, i);
            pnet_json_end(o.j, ']');
        }
        pnet_json_end(o.j, '}');
        if (!s->nested_symbols) put_fields(&o, i);
    }
    pnet_json_end(o.j, ']');
    s->no_memory |= o.ruler.failed;
    pnet_ruler_free(&o.ruler);
}

/* One edit of the lines that differ, so that the cursor stays where it is. */
static void put_edit(
    struct server *s, const struct document *d, const char *text, size_t length, struct reply *r)
{
    static const char half[] = "\xEF\xBF\xBD";
    const char *old = d->held.text;
    size_t before = d->held.length, front = 0, back = 0;
    struct pnet_json *j = &r->result;
    pnet_json_begin(j, NULL, '[');
    if (before != length || memcmp(old, text, length) != 0) {
        size_t least = before < length ? before : length;
        while (front < least && old[front] == text[front]) front++;
        while (front && old[front - 1] != '\n') front--;
        while (back < least - front && old[before - 1 - back] == text[length - 1 - back]) back++;
        while (back && old[before - back - 1] != '\n') back--;
        if (d->halves && memmem(text + front, length - back - front, half, sizeof half - 1)) {
            pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED,
                "the text has half a surrogate pair, which is no character: an edit would replace "
                "it");
            return;
        }
        struct ruler ruler = {.utf8 = s->utf8};
        pnet_ruler_use(&ruler, old, before);
        pnet_json_begin(j, NULL, '{');
        pnet_ruler_range(&ruler, "range", (uint32_t)front, (uint32_t)(before - back), j);
        struct pnet_arena a = {0};
        const char *middle = pnet_arena_copy(&a, text + front, length - back - front);
        pnet_json_string(j, "newText", middle ? middle : "");
        s->no_memory |= ruler.failed || a.failed;
        pnet_arena_free(&a);
        pnet_json_end(j, '}');
        pnet_ruler_free(&ruler);
    }
    pnet_json_end(j, ']');
}

void pnet_lsp_formatting(struct server *s, json_t *params, struct reply *r)
{
    struct document *d;
    if (!pnet_lsp_params_document(s, params, r, &d)) return;
    const struct pnet_file *tree = pnet_compilation_tree(d->compilation);
    if (!tree || pnet_compilation_torn(d->compilation)) {
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED, "a text with syntax errors cannot be formatted");
        return;
    }
    struct pnet_arena a = {.limit = PNET_MAX_BYTES};
    size_t length;
    const char *text = pnet_format(&a, pnet_compilation_sources(d->compilation), tree, &length);
    if (text)
        put_edit(s, d, text, length, r);
    else if (a.failed && !a.full)
        s->no_memory = true;
    else
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED,
            "the canonical form would be larger than a model may be, %d bytes",
            PNET_MAX_SOURCE_BYTES);
    pnet_arena_free(&a);
}
