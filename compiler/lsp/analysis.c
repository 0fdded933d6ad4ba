/* Compiles documents and publishes what is wrong with them. */
#include "compiler/lsp/internal.h"
#include "lang/parse.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What brings a document in step. */
static const char again[] = "save it, or close and open it again";

static const struct pnet_held_text *find_text(void *context, const char *path)
{
    struct server *s = context;
    const struct document *d = pnet_lsp_held(s, path);
    return d ? &d->held : NULL;
}

void pnet_lsp_link(struct server *s, struct document *root)
{
    const struct pnet_sources *all =
        root->compilation ? pnet_compilation_sources(root->compilation) : NULL;
    uint32_t count = 0;
    while (all && pnet_sources_get(all, count)) count++;
    struct document **sources = calloc((size_t)count + 1, sizeof(struct document *));
    free(root->sources);
    root->sources = sources;
    root->source_count = sources ? count : 0;
    s->no_memory |= !sources;
    for (uint32_t f = 0; f < root->source_count; f++)
        sources[f] = pnet_lsp_held(s, pnet_sources_get(all, f)->name);
}

static void compile(struct server *s, struct document *d)
{
    struct pnet_overlay overlay = {.find = find_text, .context = s};
    struct pnet_compile_options o = {
        .purpose = PNET_FOR_EVAL, .overlay = &overlay, .inspect = true};
    pnet_index_free(d->index);
    pnet_compilation_free(d->compilation);
    d->index = NULL;
    d->compilation = pnet_compile_file(d->path, &o);
    d->stale = false;
    pnet_lsp_link(s, d);
    if (!d->compilation || pnet_compilation_code(d->compilation) == PNET_NO_MEMORY)
        s->no_memory = true;
}

int64_t pnet_lsp_source_of(const struct document *root, const struct document *d)
{
    for (uint32_t f = 0; f < root->source_count; f++)
        if (root->sources[f] == d) return f;
    return -1;
}

bool pnet_lsp_reads(const struct document *root, const struct document *d)
{
    return root == d || pnet_lsp_source_of(root, d) >= 0;
}

bool pnet_lsp_reads_disk(const struct document *root)
{
    return pnet_lsp_source_of(root, NULL) >= 0;
}

/* Finds which documents are part of others. */
static void find_parts(struct server *s)
{
    size_t number = 0;
    for (struct document *d = s->documents; d; d = d->next) {
        d->part = false;
        d->number = number++;
    }
    for (struct document *e = s->documents; e; e = e->next)
        for (uint32_t f = 0; f < e->source_count; f++) {
            struct document *d = e->sources[f];
            if (d && d != e) d->part |= e->number < d->number || !pnet_lsp_reads(d, e);
        }
}

struct document *pnet_lsp_root(
    struct server *s, const struct document *d, const struct document *after)
{
    for (struct document *e = after ? after->next : s->documents; e; e = e->next)
        if (pnet_lsp_reads(e, d) && !e->part) return e;
    return NULL;
}

bool pnet_lsp_reads_lost(const struct document *root)
{
    for (uint32_t f = 0; f < root->source_count; f++)
        if (root->sources[f] && root->sources[f]->lost) return true;
    return root->lost;
}

struct bucket *pnet_lsp_bucket(struct server *s, struct bucket **all, char *uri)
{
    if (!uri) return NULL;
    for (; *all; all = &(*all)->next)
        if (strcmp((*all)->uri, uri) == 0) {
            free(uri);
            return *all;
        }
    struct bucket *b = calloc(1, sizeof *b);
    if (!b) {
        free(uri);
        s->no_memory = true;
        return NULL;
    }
    b->uri = uri;
    pnet_json_begin(&b->list, NULL, '[');
    return *all = b;
}

void pnet_lsp_free_buckets(struct bucket *all)
{
    while (all) {
        struct bucket *b = all;
        all = b->next;
        pnet_json_free(&b->list);
        free(b->uri);
        free(b);
    }
}

static void put_range(
    struct ruler *r, const struct pnet_sources *sources, struct pnet_span span, struct pnet_json *j)
{
    const struct pnet_source *source = pnet_sources_get(sources, span.file);
    pnet_ruler_use(r, source ? source->text : "", source ? source->length : 0);
    pnet_ruler_range(r, "range", span.begin, span.end, j);
}

static void put_related(struct server *s, struct ruler *r, const struct pnet_sources *sources,
    struct pnet_span span, const char *message, struct pnet_json *j)
{
    const struct pnet_source *source = pnet_sources_get(sources, span.file);
    char *uri = source ? pnet_lsp_source_uri(s, source) : NULL;
    if (!uri) return;
    pnet_json_begin(j, NULL, '{');
    pnet_json_begin(j, "location", '{');
    pnet_json_string(j, "uri", uri);
    put_range(r, sources, span, j);
    pnet_json_end(j, '}');
    pnet_json_string(j, "message", message);
    pnet_json_end(j, '}');
    free(uri);
}

/* The message with its label and help on lines of their own. */
static void put_message(struct server *s, const struct pnet_diag_record *d, struct pnet_json *j)
{
    struct pnet_arena a = {0};
    const char *text = d->message, *at = d->help;
    if (d->label && *d->label) text = pnet_arena_printf(&a, "%s\n%s", text, d->label);
    while (at && text) {
        int length = (int)strcspn(at, "\n");
        text = pnet_arena_printf(&a, "%s\nhelp: %.*s", text, length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    pnet_json_string(j, "message", text ? text : "");
    s->no_memory |= a.failed;
    pnet_arena_free(&a);
}

enum { LSP_ERROR = 1, LSP_WARNING = 2, LSP_INFORMATION = 3 };

static void put_diagnostic(struct server *s, struct ruler *r, const struct pnet_sources *sources,
    const struct pnet_diag_record *d, struct pnet_json *j)
{
    pnet_json_begin(j, NULL, '{');
    put_range(r, sources, d->span, j);
    pnet_json_int(j, "severity", d->severity == PNET_ERROR ? LSP_ERROR : LSP_WARNING);
    pnet_json_string(j, "source", "pnet");
    put_message(s, d, j);
    const struct pnet_source *source = pnet_sources_get(sources, d->span.file);
    bool included = source && source->included_from.end > source->included_from.begin;
    if (d->second_label || included) {
        pnet_json_begin(j, "relatedInformation", '[');
        if (d->second_label) put_related(s, r, sources, d->second, d->second_label, j);
        for (; included; included = source->included_from.end > source->included_from.begin) {
            put_related(s, r, sources, source->included_from, "included here", j);
            source = pnet_sources_get(sources, source->included_from.file);
        }
        pnet_json_end(j, ']');
    }
    pnet_json_end(j, '}');
}

void pnet_lsp_add(struct server *s, struct bucket *b, struct pnet_json *one, bool once)
{
    s->no_memory |= one->failed;
    if (!one->failed && one->text && !(once && b->list.text && strstr(b->list.text, one->text))) {
        if (b->list.comma) pnet_json_raw(&b->list, ",", 1);
        pnet_json_raw(&b->list, one->text, one->size);
        b->list.comma = true;
    }
    pnet_json_free(one);
}

/* What is said of the text as a whole, at its begin. */
static void add_note(
    struct server *s, struct ruler *r, struct bucket *b, int severity, const char *message)
{
    struct pnet_json one = {0};
    pnet_json_begin(&one, NULL, '{');
    pnet_ruler_use(r, "", 0);
    pnet_ruler_range(r, "range", 0, 0, &one);
    pnet_json_int(&one, "severity", severity);
    pnet_json_string(&one, "source", "pnet");
    pnet_json_string(&one, "message", message);
    pnet_json_end(&one, '}');
    pnet_lsp_add(s, b, &one, true);
}

static void collect(struct server *s, const struct document *root, struct bucket **all)
{
    const struct pnet_compilation *c = root->compilation;
    const struct pnet_sources *sources = pnet_compilation_sources(c);
    const struct pnet_diags *diags = pnet_compilation_diags(c);
    const struct pnet_source *source;
    struct ruler r = {.utf8 = s->utf8};
    for (uint32_t f = 0; (source = pnet_sources_get(sources, f)); f++)
        pnet_lsp_bucket(s, all, pnet_lsp_source_uri(s, source));
    int count = pnet_diags_count(diags);
    for (int i = 0; i < count && !s->no_memory; i++) {
        struct pnet_diag_record d;
        pnet_diags_record(diags, i, &d);
        source = pnet_sources_get(sources, d.span.file);
        struct bucket *b = source ? pnet_lsp_bucket(s, all, pnet_lsp_source_uri(s, source)) : NULL;
        struct pnet_json one = {0};
        put_diagnostic(s, &r, sources, &d, &one);
        if (b)
            pnet_lsp_add(s, b, &one, true);
        else
            pnet_json_free(&one);
    }
    struct bucket *own = s->no_memory ? NULL : pnet_lsp_bucket(s, all, strdup(root->uri));
    int found = pnet_diags_errors(diags) + pnet_diags_warnings(diags);
    char text[160];
    snprintf(text, sizeof text, "%d errors, %d warnings: the others are not shown",
        pnet_diags_errors(diags), pnet_diags_warnings(diags));
    if (own && found > count) add_note(s, &r, own, LSP_INFORMATION, text);
    snprintf(text, sizeof text, "the model is too large: it takes more than %d MiB of memory",
        PNET_MAX_BYTES >> 20);
    if (own && pnet_compilation_errors(c) > pnet_diags_errors(diags))
        add_note(s, &r, own, LSP_ERROR, text);
    s->no_memory |= r.failed || !own;
    pnet_ruler_free(&r);
}

/* What is said in the place of diagnostics where a text is out of step: of that, and of the open documents that are checked
   together with it. */
static void collect_lost(struct server *s, const struct document *root, struct bucket **all)
{
    static const char lost[] =
        "the server does not have this text any more: a change could not be read",
                      part[] = "this file is not checked: the server does not have the text of an "
                               "open file that belongs to it";
    char text[160];
    snprintf(text, sizeof text, "%s; %s", lost, again);
    struct ruler r = {.utf8 = s->utf8};
    for (const struct document *d = s->documents; d && !s->no_memory; d = d->next) {
        if (!pnet_lsp_reads(root, d)) continue;
        struct bucket *b = pnet_lsp_bucket(s, all, strdup(d->uri));
        if (b) add_note(s, &r, b, d->lost ? LSP_ERROR : LSP_WARNING, d->lost ? text : part);
        s->no_memory |= !b;
    }
    s->no_memory |= r.failed;
    pnet_ruler_free(&r);
}

static void send(struct server *s, const char *uri, const char *list)
{
    const struct document *d = pnet_lsp_document(s, uri);
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "jsonrpc", "2.0");
    pnet_json_string(&j, "method", "textDocument/publishDiagnostics");
    pnet_json_begin(&j, "params", '{');
    pnet_json_string(&j, "uri", uri);
    if (d && d->has_version) pnet_json_int(&j, "version", d->version);
    static const char key[] = ",\"diagnostics\":";
    pnet_json_raw(&j, key, sizeof key - 1);
    pnet_json_raw(&j, list, strlen(list));
    pnet_json_end(&j, '}');
    pnet_json_end(&j, '}');
    s->no_memory |= !pnet_lsp_write(s->out, &j);
}

/* Sends a list that is not what the editor has, and keeps it. */
static void publish(struct server *s, const char *uri, const char *list, bool always)
{
    struct published **at = &s->published;
    while (*at && strcmp((*at)->uri, uri) != 0) at = &(*at)->next;
    bool empty = strcmp(list, "[]") == 0, same = *at ? strcmp((*at)->text, list) == 0 : empty;
    if (!same || always) send(s, uri, list);
    if (same) return;
    if (*at) {
        struct published *old = *at;
        *at = old->next;
        free(old->uri);
        free(old->text);
        free(old);
    }
    if (empty) return;
    struct published *p = calloc(1, sizeof *p);
    if (p) {
        p->uri = strdup(uri);
        p->text = strdup(list);
        p->next = s->published;
        s->published = p;
    }
    s->no_memory |= !p || !p->uri || !p->text;
}

/* Takes back what was said of files that no document reads any more. */
static void withdraw(struct server *s, const struct bucket *all)
{
    for (struct published *p = s->published; p && !s->no_memory;) {
        const struct bucket *b = all;
        while (b && strcmp(b->uri, p->uri) != 0) b = b->next;
        struct published *next = p->next;
        if (!b) {
            char *uri = strdup(p->uri); /* publish frees that of `p` */
            s->no_memory |= !uri;
            if (uri) publish(s, uri, "[]", false);
            free(uri);
        }
        p = next;
    }
}

void pnet_lsp_refresh(struct server *s, const struct document *changed)
{
    for (struct document *d = s->documents; d && !s->no_memory; d = d->next)
        if (d->stale || !d->compilation) compile(s, d);
    find_parts(s);
    struct bucket *all = NULL;
    for (struct document *d = s->documents; d && !s->no_memory; d = d->next)
        if (d->lost || (!d->part && pnet_lsp_reads_lost(d)))
            collect_lost(s, d, &all);
        else if (!d->part)
            collect(s, d, &all);
    for (struct bucket *b = all; b; b = b->next) {
        pnet_json_end(&b->list, ']');
        s->no_memory |= b->list.failed;
        if (!s->no_memory)
            publish(s, b->uri, b->list.text, changed && strcmp(changed->uri, b->uri) == 0);
    }
    withdraw(s, all);
    pnet_lsp_free_buckets(all);
}

struct pnet_index *pnet_lsp_index(struct server *s, struct document *root, struct reply *r)
{
    if (!root->index) root->index = pnet_index_new(root->compilation);
    if (root->index && !root->index->arena.failed) return root->index;
    if (!root->index || !root->index->arena.full)
        s->no_memory = true;
    else
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED, "the model is too large");
    return NULL;
}

bool pnet_lsp_params_document(
    struct server *s, json_t *params, struct reply *r, struct document **d)
{
    const char *uri =
        pnet_lsp_string(json_object_get(json_object_get(params, "textDocument"), "uri"));
    *d = NULL;
    if (!uri) {
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "expected textDocument with a uri");
        return false;
    }
    *d = pnet_lsp_document(s, uri);
    if (!*d)
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "this document is not open");
    else if ((*d)->lost)
        pnet_lsp_fail(
            r, PNET_LSP_REQUEST_FAILED, "this document is out of step with the editor: %s", again);
    return !r->code;
}

bool pnet_lsp_spot(struct server *s, json_t *params, struct reply *r, struct spot *spot)
{
    *spot = (struct spot){0};
    if (!pnet_lsp_params_document(s, params, r, &spot->document)) return false;
    const json_t *position = json_object_get(params, "position"),
                 *line = json_object_get(position, "line"),
                 *character = json_object_get(position, "character");
    if (!json_is_integer(line) || !json_is_integer(character) || json_integer_value(line) < 0 ||
        json_integer_value(character) < 0) {
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "expected a position with line and character");
        return false;
    }
    struct ruler ruler = {.utf8 = s->utf8};
    pnet_ruler_use(&ruler, spot->document->held.text, spot->document->held.length);
    spot->offset =
        pnet_ruler_offset(&ruler, json_integer_value(line), json_integer_value(character));
    s->no_memory |= ruler.failed;
    pnet_ruler_free(&ruler);
    for (struct document *d = NULL; (d = pnet_lsp_root(s, spot->document, d));)
        if (pnet_lsp_reads_lost(d)) {
            pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED,
                "a document that belongs to this one is out of step with the editor: %s", again);
            return false;
        }
    spot->root = pnet_lsp_root(s, spot->document, NULL);
    int64_t file = spot->root ? pnet_lsp_source_of(spot->root, spot->document) : -1;
    if (file < 0) {
        pnet_lsp_fail(r, PNET_LSP_REQUEST_FAILED, "this document could not be read");
        return false;
    }
    spot->file = (uint32_t)file;
    spot->index = pnet_lsp_index(s, spot->root, r);
    return spot->index && !s->no_memory;
}
