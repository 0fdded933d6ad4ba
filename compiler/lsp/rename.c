/* textDocument/rename: every place of a name, if the new one means nothing else there. */
#include "compiler/lsp/internal.h"
#include "lang/lexeme.h"
#include "runtime/plan/reserved.h"

#include <stdlib.h>
#include <string.h>

static bool is_value(const struct symbol *s)
{
    return s->kind == SYMBOL_PARAM || s->kind == SYMBOL_CONST || s->kind == SYMBOL_INPUT ||
           s->kind == SYMBOL_VALUE || s->kind == SYMBOL_LOOP || s->kind == SYMBOL_PARAMETER;
}

static bool is_definition(const struct symbol *s)
{
    return s->kind == SYMBOL_BLOCK || s->kind == SYMBOL_NET;
}

static bool is_objective(const struct symbol *s)
{
    return s->kind == SYMBOL_LOSS || s->kind == SYMBOL_METRIC;
}

/* The block or net whose name a value is; NULL: of the file. */
static const struct pnet_item *scope_of(const struct symbol *s)
{
    return is_value(s) && s->kind != SYMBOL_INPUT ? s->item : NULL;
}

/* Does the symbol occur inside of `item`; anywhere, if that is NULL? */
static bool occurs_in(const struct pnet_index *x, int symbol, const struct pnet_item *item)
{
    for (int i = 0; i < x->occurrence_count; i++) {
        const struct occurrence *o = &x->occurrences[i];
        if (o->symbol != symbol) continue;
        if (!item || (o->span.file == item->span.file && o->span.begin >= item->span.begin &&
                         o->span.end <= item->span.end))
            return true;
    }
    return false;
}

/* Would `s`, called like `other`, be taken for it, or it for `s`? */
static bool clashes(const struct pnet_index *x, int s, int other)
{
    const struct symbol *a = &x->symbols[s], *b = &x->symbols[other];
    if (is_objective(a)) return is_objective(b);
    if (a->kind == SYMBOL_FIELD) return b->kind == SYMBOL_FIELD && b->item == a->item;
    if (is_definition(a)) return is_definition(b) || (is_value(b) && !scope_of(b));
    const struct pnet_item *own = scope_of(a), *its = scope_of(b);
    if (is_definition(b)) return !own;
    if (b->kind == SYMBOL_WORD) return occurs_in(x, other, own);
    if (!is_value(b)) return false;
    if (own == its) return true;
    if (own && its) return false;
    return own ? occurs_in(x, other, own) : occurs_in(x, s, its);
}

static bool is_word(const char *name)
{
    static const char *const words[] = {
        "in", "out", "yes", "no", "sample", "true", "false", "True", "False"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0) return true;
    return false;
}

static bool is_function(const char *name)
{
    for (int i = 0; pnet_builtin_info(i); i++)
        if (strcmp(name, pnet_builtin_info(i)->name) == 0) return true;
    return false;
}

/* May anything be called so? */
static bool check_name(const char *name, size_t length, struct reply *r)
{
    if (!pnet_is_name(name, length))
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS,
            "'%.128s' is no name: a letter or _, then letters, digits and _, and no reserved word",
            name);
    else if (is_word(name) || is_function(name))
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "'%s' is a word of the language", name);
    else if (pnet_op_find(name))
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "'%s' is a layer, loss or metric", name);
    return !r->code;
}

/* May this be renamed at all? */
static bool check_symbol(const struct pnet_index *x, int index, struct reply *r)
{
    const struct symbol *s = &x->symbols[index];
    const int *first = s->kind == SYMBOL_FIELD ? pnet_map_find(&x->fields, s->name) : NULL;
    if (!pnet_symbol_is_named(s))
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED, "'%.128s' is no name of the model", s->name);
    else if (s->item && is_word(s->name))
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED, "'%s' is a word of the language", s->name);
    else if (pnet_compilation_torn(x->compilation))
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED,
            "the text has syntax errors, which may hide places of '%s'", s->name);
    else if (s->mixed)
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED,
            "'%s' is a name of the file in one line of a block or net, and its own in another",
            s->name);
    else if (s->twin && first && x->symbols[*first].guessed)
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED,
            "several inputs have a field '%s', and a place may mean each of them", s->name);
    return !r->code;
}

static bool check_clashes(const struct pnet_index *x, int index, const char *name, struct reply *r)
{
    const struct symbol *s = &x->symbols[index];
    if (is_objective(s) && pnet_name_is_reserved(name))
        pnet_lsp_fail(
            r, PNET_LSP_INVALID_PARAMS, "checkpoints and reports use '%s' themselves", name);
    if (s->kind == SYMBOL_PARAMETER && strcmp(name, "name") == 0)
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "name= of a call names its weights");
    for (int i = 0; i < x->symbol_count && !r->code; i++)
        if (i != index && strcmp(x->symbols[i].name, name) == 0 && clashes(x, index, i))
            pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "'%s' means something else already", name);
    return !r->code;
}

static void collect(struct server *s, struct document *root, const struct spot *spot,
    const char *name, struct bucket **all, struct reply *r)
{
    int64_t file = pnet_lsp_source_of(root, spot->document);
    struct pnet_index *x = file >= 0 ? pnet_lsp_index(s, root, r) : NULL;
    const struct occurrence *o = x ? pnet_index_at(x, (uint32_t)file, spot->offset) : NULL;
    if (!o || !check_symbol(x, o->symbol, r)) return;
    if (strcmp(x->symbols[o->symbol].name, name) == 0) return;
    if (!check_clashes(x, o->symbol, name, r)) return;
    struct ruler ruler = {.utf8 = s->utf8};
    for (int i = 0; i < x->occurrence_count && !s->no_memory; i++) {
        const struct occurrence *p = &x->occurrences[i];
        const struct pnet_source *source = pnet_sources_get(x->sources, p->span.file);
        if (p->symbol != o->symbol || !source) continue;
        struct bucket *b = pnet_lsp_bucket(s, all, pnet_lsp_source_uri(s, source));
        if (!b) break;
        struct pnet_json one = {0};
        pnet_ruler_use(&ruler, source->text, source->length);
        pnet_json_begin(&one, NULL, '{');
        pnet_ruler_range(&ruler, "range", p->span.begin, p->span.end, &one);
        pnet_json_string(&one, "newText", name);
        pnet_json_end(&one, '}');
        pnet_lsp_add(s, b, &one, root != spot->root);
    }
    s->no_memory |= ruler.failed;
    pnet_ruler_free(&ruler);
}

/* The versions of the texts let an editor refuse edits of a text that has changed since; NULL: the file on disk, or not known. */
static void begin_edits(struct server *s, const char *uri, struct pnet_json *j)
{
    const struct document *d = pnet_lsp_document(s, uri);
    pnet_json_begin(j, NULL, '{');
    pnet_json_begin(j, "textDocument", '{');
    pnet_json_string(j, "uri", uri);
    if (d && d->has_version)
        pnet_json_int(j, "version", d->version);
    else
        pnet_json_null(j, "version");
    pnet_json_end(j, '}');
    pnet_json_begin(j, "edits", '[');
}

static void put_changes(struct server *s, struct bucket *all, struct pnet_json *j)
{
    pnet_json_begin(j, NULL, '{');
    pnet_json_begin(
        j, s->versioned_edits ? "documentChanges" : "changes", s->versioned_edits ? '[' : '{');
    for (struct bucket *b = all; b; b = b->next) {
        pnet_json_end(&b->list, ']');
        s->no_memory |= b->list.failed;
        if (s->no_memory) return;
        if (s->versioned_edits)
            begin_edits(s, b->uri, j);
        else
            pnet_json_begin(j, b->uri, '[');
        pnet_json_raw(j, b->list.text + 1, b->list.size - 2);
        pnet_json_end(j, ']');
        if (s->versioned_edits) pnet_json_end(j, '}');
    }
    pnet_json_end(j, s->versioned_edits ? ']' : '}');
    pnet_json_end(j, '}');
}

/* Edits must fit every text that has the name: those that editors hold, and those on disk, which may have changed. */
static bool check_texts(struct server *s, struct reply *r)
{
    bool disk = false;
    for (const struct document *d = s->documents; d; d = d->next) {
        if (d->lost) {
            pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED,
                "an open document is out of step with the editor, and may have the name: %.150s",
                d->uri);
            return false;
        }
        disk |= pnet_lsp_reads_disk(d);
    }
    if (disk) pnet_lsp_files_changed(s, NULL);
    return !s->no_memory;
}

void pnet_lsp_rename(struct server *s, json_t *params, struct reply *r)
{
    struct spot spot;
    const json_t *name = json_object_get(params, "newName");
    if (!json_is_string(name)) {
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "expected newName");
        return;
    }
    if (!check_texts(s, r) || !pnet_lsp_spot(s, params, r, &spot)) return;
    if (!pnet_index_at(spot.index, spot.file, spot.offset)) {
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED, "there is no name here");
        return;
    }
    if (!check_name(json_string_value(name), json_string_length(name), r)) return;
    struct bucket *all = NULL;
    for (struct document *d = spot.root; d && !r->code && !s->no_memory;
         d = pnet_lsp_root(s, spot.document, d))
        collect(s, d, &spot, json_string_value(name), &all, r);
    if (!r->code && !s->no_memory) put_changes(s, all, &r->result);
    pnet_lsp_free_buckets(all);
}

void pnet_lsp_prepare_rename(struct server *s, json_t *params, struct reply *r)
{
    struct spot spot;
    if (!pnet_lsp_spot(s, params, r, &spot)) return;
    const struct occurrence *o = pnet_index_at(spot.index, spot.file, spot.offset);
    if (!o) {
        pnet_json_null(&r->result, NULL);
        return;
    }
    if (!check_symbol(spot.index, o->symbol, r)) return;
    struct ruler ruler = {.utf8 = s->utf8};
    pnet_ruler_use(&ruler, spot.document->held.text, spot.document->held.length);
    pnet_json_begin(&r->result, NULL, '{');
    pnet_ruler_range(&ruler, "range", o->span.begin, o->span.end, &r->result);
    pnet_json_string(&r->result, "placeholder", spot.index->symbols[o->symbol].name);
    pnet_json_end(&r->result, '}');
    s->no_memory |= ruler.failed;
    pnet_ruler_free(&ruler);
}
