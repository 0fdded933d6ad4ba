/* textDocument/definition and references. */
#include "compiler/lsp/internal.h"

#include <stdlib.h>
#include <string.h>

static void put_location(struct server *s, struct ruler *r, const struct pnet_sources *sources,
    struct pnet_span span, struct pnet_json *j)
{
    const struct pnet_source *source = pnet_sources_get(sources, span.file);
    char *uri = source ? pnet_lsp_source_uri(s, source) : NULL;
    if (!uri) return;
    pnet_ruler_use(r, source->text, source->length);
    pnet_json_begin(j, NULL, '{');
    pnet_json_string(j, "uri", uri);
    pnet_ruler_range(r, "range", span.begin, span.end, j);
    pnet_json_end(j, '}');
    free(uri);
}

void pnet_lsp_definition(struct server *s, json_t *params, struct reply *r)
{
    struct spot spot;
    if (!pnet_lsp_spot(s, params, r, &spot)) return;
    const struct pnet_index *x = spot.index;
    const struct occurrence *o = pnet_index_at(x, spot.file, spot.offset);
    const struct symbol *symbol = o ? &x->symbols[o->symbol] : NULL;
    const struct occurrence *binding =
        symbol && pnet_symbol_is_named(symbol) ? pnet_index_binding(x, o) : NULL;
    struct ruler ruler = {.utf8 = s->utf8};
    if (symbol && symbol->kind == SYMBOL_INCLUDE && symbol->file >= 0)
        put_location(
            s, &ruler, x->sources, (struct pnet_span){.file = (uint32_t)symbol->file}, &r->result);
    else if (binding)
        put_location(s, &ruler, x->sources, binding->span, &r->result);
    else
        pnet_json_null(&r->result, NULL);
    s->no_memory |= ruler.failed;
    pnet_ruler_free(&ruler);
}

/* The places of the name in one root. */
static void collect(struct server *s, struct document *root, const struct spot *spot, bool binding,
    struct bucket *list, struct reply *r)
{
    int64_t file = pnet_lsp_source_of(root, spot->document);
    struct pnet_index *x = file >= 0 ? pnet_lsp_index(s, root, r) : NULL;
    const struct occurrence *o = x ? pnet_index_at(x, (uint32_t)file, spot->offset) : NULL;
    struct ruler ruler = {.utf8 = s->utf8};
    for (int i = 0; o && i < x->occurrence_count && !s->no_memory; i++) {
        const struct occurrence *p = &x->occurrences[i];
        if (p->symbol != o->symbol || (p->binds && !binding)) continue;
        struct pnet_json one = {0};
        put_location(s, &ruler, x->sources, p->span, &one);
        pnet_lsp_add(s, list, &one, root != spot->root);
    }
    s->no_memory |= ruler.failed;
    pnet_ruler_free(&ruler);
}

void pnet_lsp_references(struct server *s, json_t *params, struct reply *r)
{
    struct spot spot;
    if (!pnet_lsp_spot(s, params, r, &spot)) return;
    const json_t *context = json_object_get(params, "context");
    bool binding = json_is_true(json_object_get(context, "includeDeclaration"));
    struct bucket *list = NULL, *own = pnet_lsp_bucket(s, &list, strdup(spot.document->uri));
    if (own)
        for (struct document *d = spot.root; d && !r->code && !s->no_memory;
             d = pnet_lsp_root(s, spot.document, d))
            collect(s, d, &spot, binding, own, r);
    if (own) {
        pnet_json_end(&own->list, ']');
        s->no_memory |= own->list.failed;
        if (!s->no_memory) pnet_json_raw(&r->result, own->list.text, own->list.size);
    }
    s->no_memory |= !own;
    pnet_lsp_free_buckets(list);
}
