/* The texts that the editor holds, and its edits. */
#include "compiler/lsp/internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void pnet_lsp_log(struct server *s, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "jsonrpc", "2.0");
    pnet_json_string(&j, "method", "window/logMessage");
    pnet_json_begin(&j, "params", '{');
    pnet_json_int(&j, "type", 1); /* an error */
    pnet_json_string(&j, "message", text);
    pnet_json_end(&j, '}');
    pnet_json_end(&j, '}');
    s->no_memory |= !pnet_lsp_write(s->out, &j);
}

struct document *pnet_lsp_document(struct server *s, const char *uri)
{
    struct document *d = s->documents;
    while (d && strcmp(d->uri, uri) != 0) d = d->next;
    return d;
}

struct document *pnet_lsp_held(struct server *s, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        for (struct document *d = s->documents; d; d = d->next)
            if (d->on_disk && d->device == st.st_dev && d->inode == st.st_ino) return d;
        return NULL;
    }
    char *plain = strdup(path);
    if (!plain) {
        s->no_memory = true;
        return NULL;
    }
    pnet_lsp_normalise(plain);
    struct document *d = s->documents;
    while (d && (d->on_disk || strcmp(d->path, plain) != 0)) d = d->next;
    free(plain);
    return d;
}

char *pnet_lsp_source_uri(struct server *s, const struct pnet_source *source)
{
    const struct document *d = pnet_lsp_held(s, source->name);
    char *uri = s->no_memory ? NULL : d ? strdup(d->uri) : pnet_lsp_uri(source->name);
    s->no_memory |= !uri;
    return uri;
}

/* Finds the file of each document on disk; an editor that saves may have put another one in its place. */
static void find_files(struct server *s)
{
    struct stat st;
    for (struct document *d = s->documents; d; d = d->next) {
        d->on_disk = stat(d->path, &st) == 0;
        d->device = d->on_disk ? st.st_dev : 0;
        d->inode = d->on_disk ? st.st_ino : 0;
    }
    for (struct document *d = s->documents; d; d = d->next) pnet_lsp_link(s, d);
}

static void forget(struct document *d)
{
    pnet_index_free(d->index);
    pnet_compilation_free(d->compilation);
    free(d->sources);
    d->index = NULL;
    d->compilation = NULL;
    d->sources = NULL;
    d->source_count = 0;
}

static void document_free(struct document *d)
{
    if (!d) return;
    forget(d);
    free(d->uri);
    free(d->path);
    free(d->text);
    free(d);
}

void pnet_lsp_free_documents(struct server *s)
{
    while (s->documents) {
        struct document *d = s->documents;
        s->documents = d->next;
        document_free(d);
    }
    while (s->published) {
        struct published *p = s->published;
        s->published = p->next;
        free(p->uri);
        free(p->text);
        free(p);
    }
}

/* Marks every document that reads the text of `d`, or may read it now: an include may have failed. */
static void make_stale(struct server *s, const struct document *d)
{
    for (struct document *e = s->documents; e; e = e->next) {
        const struct pnet_file *tree =
            e->compilation ? pnet_compilation_tree(e->compilation) : NULL;
        e->stale |= e == d || !tree || tree->cut || pnet_lsp_reads(e, d);
    }
}

static bool set_text(struct server *s, struct document *d, char *text, size_t length)
{
    if (!text) {
        s->no_memory = true;
        return false;
    }
    free(d->text);
    d->text = text;
    d->held = (struct pnet_held_text){.text = text, .length = length};
    return true;
}

static void set_version(struct document *d, const json_t *text_document)
{
    const json_t *version = json_object_get(text_document, "version");
    d->has_version = json_is_integer(version);
    d->version = d->has_version ? json_integer_value(version) : 0;
}

static char *copy(const char *text, size_t length)
{
    char *out = malloc(length + 1);
    if (!out) return NULL;
    memcpy(out, text, length);
    out[length] = 0;
    return out;
}

/* The document at the end of the list, or NULL: memory is out. */
static struct document *new_document(struct server *s, const char *uri)
{
    struct document *d = calloc(1, sizeof *d), **last = &s->documents;
    if (d) {
        d->uri = strdup(uri);
        d->path = pnet_lsp_path(uri);
    }
    if (!d || !d->uri || !d->path) {
        document_free(d);
        s->no_memory = true;
        return NULL;
    }
    while (*last) last = &(*last)->next;
    return *last = d;
}

static const char *uri_of(const json_t *params)
{
    return pnet_lsp_string(json_object_get(json_object_get(params, "textDocument"), "uri"));
}

/* Takes the whole text of a document: it is in step with the editor. */
static bool take_text(struct server *s, struct document *d, const json_t *text)
{
    size_t length = json_string_length(text);
    if (!set_text(s, d, copy(json_string_value(text), length), length)) return false;
    d->lost = false;
    d->halves = s->halves;
    return true;
}

void pnet_lsp_lose(struct server *s, const json_t *params, const char *what)
{
    const char *uri = uri_of(params);
    struct document *one = uri ? pnet_lsp_document(s, uri) : NULL;
    if (uri && !one) {
        one = new_document(s, uri);
        if (!one || !set_text(s, one, copy("", 0), 0)) return;
        find_files(s);
        make_stale(s, one);
    }
    bool any = false;
    for (struct document *d = s->documents; d; d = d->next) {
        if (d->lost || (one && d != one)) continue;
        any = d->lost = true;
        d->has_version = false;
    }
    if (!any && !s->documents) pnet_lsp_log(s, "%s", what);
    if (!any) return;
    pnet_lsp_log(s, "%s: %.300s %s out of step with the editor until the server gets %s whole text",
        what, one ? one->uri : "all open documents", one ? "is" : "are", one ? "its" : "their");
    pnet_lsp_refresh(s, NULL);
}

void pnet_lsp_did_open(struct server *s, json_t *params)
{
    const json_t *given = json_object_get(params, "textDocument"),
                 *text = json_object_get(given, "text");
    const char *uri = uri_of(params);
    if (!uri || !json_is_string(text)) {
        pnet_lsp_lose(s, params, "textDocument/didOpen: expected a uri and a text");
        return;
    }
    struct document *d = pnet_lsp_document(s, uri);
    if (!d) d = new_document(s, uri);
    if (!d || !take_text(s, d, text)) return;
    set_version(d, given);
    find_files(s);
    make_stale(s, d);
    pnet_lsp_refresh(s, d);
}

/* Where an edit begins or ends in the text. */
struct edge {
    uint32_t at;
    bool inside; /* of a character of two UTF-16 units: between them */
};

/* Replaces what is between the edges. An edge inside of a character leaves half a surrogate pair, one unit: U+FFFD. */
static bool splice(struct server *s, struct document *d, const struct edge edges[2],
    const char *text, size_t length)
{
    static const char half[] = "\xEF\xBF\xBD";
    enum { PAIR = 4 }; /* bytes of a character of two units */
    size_t end = edges[1].at + (edges[1].inside ? PAIR : 0), rest = d->held.length - end;
    size_t halves = (edges[0].inside + edges[1].inside) * (sizeof half - 1),
           whole = edges[0].at + length + halves + rest;
    if (whole > PNET_LSP_MAX_BODY) return false;
    char *out = malloc(whole + 1), *at = out;
    if (out) {
        at = mempcpy(at, d->text, edges[0].at);
        if (edges[0].inside) at = mempcpy(at, half, sizeof half - 1);
        at = mempcpy(at, text, length);
        if (edges[1].inside) at = mempcpy(at, half, sizeof half - 1);
        at = mempcpy(at, d->text + end, rest);
        *at = 0;
    }
    d->halves |= s->halves || halves;
    return set_text(s, d, out, whole);
}

static bool is_place(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* False: the change is malformed, or does not fit the text, or memory is out. */
static bool apply_range(struct server *s, struct document *d, const json_t *change)
{
    const json_t *text = json_object_get(change, "text"), *range = json_object_get(change, "range");
    static const char *const ends[] = {"start", "end"};
    struct edge edges[2];
    struct ruler r = {.utf8 = s->utf8};
    pnet_ruler_use(&r, d->held.text, d->held.length);
    bool good = json_is_string(text);
    for (int i = 0; i < 2 && good; i++) {
        const json_t *end = json_object_get(range, ends[i]), *line = json_object_get(end, "line"),
                     *character = json_object_get(end, "character");
        good = is_place(line) && is_place(character);
        if (!good) break;
        enum place place = pnet_ruler_place(
            &r, json_integer_value(line), json_integer_value(character), &edges[i].at);
        edges[i].inside = place == PLACE_INSIDE;
        good = place == PLACE_FOUND || (place == PLACE_INSIDE && !s->utf8);
    }
    s->no_memory |= r.failed;
    pnet_ruler_free(&r);
    if (!good || s->no_memory || edges[1].at < edges[0].at) return false;
    if (edges[1].at == edges[0].at && edges[0].inside && !edges[1].inside) return false;
    return splice(s, d, edges, json_string_value(text), json_string_length(text));
}

/* A change without a range is the whole text, which brings a document in step. Returns whether it is in step after the change. */
static bool apply_change(struct server *s, struct document *d, const json_t *change, bool in_step)
{
    const json_t *text = json_object_get(change, "text"), *range = json_object_get(change, "range");
    if (json_is_string(text) && (!range || json_is_null(range))) return take_text(s, d, text);
    return in_step && apply_range(s, d, change);
}

/* Has the version gone back? Then a change is missing, or came too late. Versions may leave numbers out, and an editor that has
   none leaves them out altogether. */
static bool goes_back(const struct document *d, const json_t *text_document)
{
    const json_t *version = json_object_get(text_document, "version");
    return d->has_version && json_is_integer(version) && json_integer_value(version) < d->version;
}

void pnet_lsp_did_change(struct server *s, json_t *params)
{
    const char *uri = uri_of(params);
    struct document *d = uri ? pnet_lsp_document(s, uri) : NULL;
    const json_t *changes = json_object_get(params, "contentChanges"),
                 *given = json_object_get(params, "textDocument");
    if (!d || !json_is_array(changes) || goes_back(d, given)) {
        pnet_lsp_lose(s, params,
            !d ? "textDocument/didChange: this document is not open"
               : "textDocument/didChange: expected contentChanges, and a version that grows");
        return;
    }
    bool in_step = !d->lost;
    for (size_t i = 0; i < json_array_size(changes) && !s->no_memory; i++)
        in_step = apply_change(s, d, json_array_get(changes, i), in_step);
    if (s->no_memory) return;
    if (!in_step) {
        pnet_lsp_lose(s, params,
            "textDocument/didChange: a change is malformed, does not fit the text, or makes it too "
            "large");
        return;
    }
    set_version(d, given);
    find_files(s);
    make_stale(s, d);
    pnet_lsp_refresh(s, d);
}

static void close_document(struct server *s, struct document *d)
{
    make_stale(s, d);
    struct document **at = &s->documents;
    while (*at && *at != d) at = &(*at)->next;
    if (*at) *at = d->next;
    document_free(d);
    find_files(s);
    pnet_lsp_refresh(s, NULL);
}

void pnet_lsp_did_close(struct server *s, json_t *params)
{
    const char *uri = uri_of(params);
    struct document *d = uri ? pnet_lsp_document(s, uri) : NULL;
    if (d)
        close_document(s, d);
    else if (uri)
        pnet_lsp_log(s, "textDocument/didClose: this document is not open");
    else
        pnet_lsp_lose(s, params, "textDocument/didClose: expected a uri");
}

void pnet_lsp_did_save(struct server *s, json_t *params)
{
    const char *uri = uri_of(params);
    struct document *d = uri ? pnet_lsp_document(s, uri) : NULL;
    const json_t *text = json_object_get(params, "text");
    bool given = d && json_is_string(text);
    bool same = given && !d->lost && json_string_length(text) == d->held.length &&
                memcmp(json_string_value(text), d->text, d->held.length) == 0;
    if (given && !same && !take_text(s, d, text)) return;
    pnet_lsp_files_changed(s, params);
}

void pnet_lsp_files_changed(struct server *s, json_t *params)
{
    (void)params;
    find_files(s);
    for (struct document *d = s->documents; d; d = d->next) d->stale = true;
    pnet_lsp_refresh(s, NULL);
}
