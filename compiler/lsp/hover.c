/* textDocument/hover: what the name at a place stands for. */
#include "compiler/lsp/internal.h"
#include "compiler/op_page.h"
#include "runtime/base/memory_stream.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CODE = 2000 }; /* bytes of a declaration that are shown */

static void put_code(FILE *out, bool markdown, const char *text, size_t length)
{
    bool cut = length > MAX_CODE;
    if (cut) {
        length = MAX_CODE;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    }
    if (markdown) fputs("```pnet\n", out);
    fwrite(text, 1, length, out);
    fputs(cut ? "\n..\n" : "\n", out);
    if (markdown) fputs("```\n", out);
}

static void put_declaration(
    const struct pnet_index *x, const struct symbol *s, bool markdown, FILE *out)
{
    struct pnet_span span = s->declaration;
    const struct pnet_source *source = pnet_sources_get(x->sources, span.file);
    if (!source || span.end <= span.begin || span.end > source->length) return;
    put_code(out, markdown, source->text + span.begin, span.end - span.begin);
}

static void put_argument(const struct symbol *s, bool markdown, FILE *out)
{
    char type[PNET_ARGUMENT_TEXT], help[PNET_ARGUMENT_TEXT];
    fprintf(out, markdown ? "`%s=` of `%s`: %s\n\n%s\n" : "%s= of %s: %s\n\n%s\n", s->name,
        s->op->name, pnet_argument_type(s->arg, type), pnet_argument_help(s->arg, help));
}

static const char *word_meaning(const char *word)
{
    if (strcmp(word, "in") == 0) return "the input of the block";
    if (strcmp(word, "sample") == 0) return "the level with one row for each cloud of a batch";
    if (strcmp(word, "yes") == 0 || strcmp(word, "no") == 0) return "a value: yes or no";
    return "a word that the argument takes";
}

/* What a name of the model is: the statement that gave it its value, or its declaration. */
static void put_named(
    const struct pnet_index *x, const struct occurrence *o, bool markdown, FILE *out)
{
    struct symbol s = x->symbols[o->symbol];
    const struct occurrence *b = pnet_index_binding(x, o);
    if (b && b->stmt) {
        s.declaration = b->stmt->span;
        if (b->stmt->doc) s.doc = b->stmt->doc;
        if (b->stmt->kind == PNET_STMT_FOR) s.declaration.end = b->stmt->loop.to->span.end;
    }
    put_declaration(x, &s, markdown, out);
    if (s.kind == SYMBOL_FIELD || s.kind == SYMBOL_PARAMETER)
        fprintf(
            out, "\n%s of %s\n", s.kind == SYMBOL_FIELD ? "a field" : "a parameter", s.item->name);
    if (s.doc && *s.doc) fprintf(out, "\n%s\n", s.doc);
}

static void put_symbol(
    const struct pnet_index *x, const struct occurrence *o, bool markdown, FILE *out)
{
    const struct symbol *s = &x->symbols[o->symbol];
    switch (s->kind) {
    case SYMBOL_OP: pnet_op_page(s->op, markdown, out); break;
    case SYMBOL_ARGUMENT: put_argument(s, markdown, out); break;
    case SYMBOL_BUILTIN:
        put_code(out, markdown, s->builtin->synopsis, strlen(s->builtin->synopsis));
        fprintf(out, "\n%s\n", s->builtin->meaning);
        break;
    case SYMBOL_WORD: fprintf(out, "%s: %s\n", s->name, word_meaning(s->name)); break;
    case SYMBOL_INCLUDE: {
        const struct pnet_source *source =
            s->file >= 0 ? pnet_sources_get(x->sources, (uint32_t)s->file) : NULL;
        fprintf(out, "%s\n",
            source ? source->name : "this file could not be read, or is included before");
        break;
    }
    default: put_named(x, o, markdown, out); break;
    }
}

/* Levels and widths of what the name was; of a call, of its result. */
static void put_value(const struct pnet_index *x, const struct occurrence *o,
    const struct symbol *s, bool markdown, FILE *out)
{
    const char *value = pnet_compilation_value(x->compilation, o->span);
    bool call = s->kind == SYMBOL_OP || s->kind == SYMBOL_BLOCK || s->kind == SYMBOL_NET ||
                s->kind == SYMBOL_BUILTIN;
    if (!value || (s->op && s->op->class_ != PNET_LAYER)) return; /* of a metric: its sums */
    if (call)
        fprintf(out, markdown ? "gives `%s`\n\n" : "gives %s\n\n", value);
    else
        fprintf(out, markdown ? "\n`%s`\n" : "\n%s\n", value);
}

static void put_hover(
    struct server *s, const struct spot *spot, const struct occurrence *o, struct reply *r)
{
    const struct pnet_index *x = spot->index;
    const struct symbol *symbol = &x->symbols[o->symbol];
    struct pnet_memory_stream text;
    if (!pnet_memory_stream_open(&text)) {
        s->no_memory = true;
        return;
    }
    bool first = symbol->kind == SYMBOL_OP || symbol->kind == SYMBOL_BLOCK ||
                 symbol->kind == SYMBOL_NET || symbol->kind == SYMBOL_BUILTIN;
    if (first) put_value(x, o, symbol, s->markdown_hover, text.file);
    put_symbol(x, o, s->markdown_hover, text.file);
    if (!first) put_value(x, o, symbol, s->markdown_hover, text.file);
    size_t length;
    char *whole = pnet_memory_stream_close(&text, &length);
    if (!whole) {
        s->no_memory = true;
        return;
    }
    while (length && whole[length - 1] == '\n') whole[--length] = 0;
    struct ruler ruler = {.utf8 = s->utf8};
    pnet_ruler_use(&ruler, spot->document->held.text, spot->document->held.length);
    pnet_json_begin(&r->result, NULL, '{');
    pnet_json_begin(&r->result, "contents", '{');
    pnet_json_string(&r->result, "kind", s->markdown_hover ? "markdown" : "plaintext");
    pnet_json_string(&r->result, "value", whole);
    pnet_json_end(&r->result, '}');
    pnet_ruler_range(&ruler, "range", o->span.begin, o->span.end, &r->result);
    pnet_json_end(&r->result, '}');
    s->no_memory |= ruler.failed;
    pnet_ruler_free(&ruler);
    free(whole);
}

void pnet_lsp_hover(struct server *s, json_t *params, struct reply *r)
{
    struct spot spot;
    if (!pnet_lsp_spot(s, params, r, &spot)) return;
    const struct occurrence *o = pnet_index_at(spot.index, spot.file, spot.offset);
    if (o)
        put_hover(s, &spot, o, r);
    else
        pnet_json_null(&r->result, NULL);
}
