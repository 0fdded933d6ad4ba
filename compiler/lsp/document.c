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
}

static void forget(struct document *d)
{
    pnet_index_free(d->index);
    pnet_compilation_free(d->compilation);
    d->index = NULL;
    d->compilation = NULL;
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
        e->stale |= e == d || !tree || tree->cut || pnet_lsp_reads(s, e, d);
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

void pnet_lsp_did_open(struct server *s, json_t *params)
{
    const json_t *given = json_object_get(params, "textDocument");
    const json_t *uri = json_object_get(given, "uri"), *text = json_object_get(given, "text");
    if (!json_is_string(uri) || !json_is_string(text)) {
        pnet_lsp_log(s, "textDocument/didOpen: expected a uri and a text");
        return;
    }
    struct document *d = pnet_lsp_document(s, json_string_value(uri));
    if (!d) d = new_document(s, json_string_value(uri));
    size_t length = json_string_length(text);
    if (!d || !set_text(s, d, copy(json_string_value(text), length), length)) return;
    set_version(d, given);
    find_files(s);
    make_stale(s, d);
    pnet_lsp_refresh(s, d);
}

/* Replaces the bytes [begin, end) of the text. */
static bool splice(
    struct server *s, struct document *d, size_t begin, size_t end, const char *text, size_t length)
{
    size_t whole = d->held.length - (end - begin) + length;
    char *out = malloc(whole + 1);
    if (out) {
        memcpy(out, d->text, begin);
        memcpy(out + begin, text, length);
        memcpy(out + begin + length, d->text + end, d->held.length - end);
        out[whole] = 0;
    }
    return set_text(s, d, out, whole);
}

/* False: the change is malformed; then what the document holds is not known any more. */
static bool apply_change(struct server *s, struct document *d, const json_t *change)
{
    const json_t *text = json_object_get(change, "text"), *range = json_object_get(change, "range");
    if (!json_is_string(text)) return false;
    size_t length = json_string_length(text);
    if (!range) return set_text(s, d, copy(json_string_value(text), length), length);
    static const char *const ends[] = {"start", "end"};
    uint32_t at[2];
    struct ruler r = {.utf8 = s->utf8};
    pnet_ruler_use(&r, d->held.text, d->held.length);
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        const json_t *end = json_object_get(range, ends[i]), *line = json_object_get(end, "line"),
                     *character = json_object_get(end, "character");
        good = json_is_integer(line) && json_is_integer(character) &&
               json_integer_value(line) >= 0 && json_integer_value(character) >= 0;
        if (good)
            at[i] = pnet_ruler_offset(&r, json_integer_value(line), json_integer_value(character));
    }
    s->no_memory |= r.failed;
    pnet_ruler_free(&r);
    if (!good || s->no_memory || at[1] < at[0]) return false;
    if (d->held.length - (at[1] - at[0]) + length > PNET_LSP_MAX_BODY) return false;
    return splice(s, d, at[0], at[1], json_string_value(text), length);
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

static struct document *params_document(struct server *s, const json_t *params, const char *method)
{
    const json_t *uri = json_object_get(json_object_get(params, "textDocument"), "uri");
    struct document *d = json_is_string(uri) ? pnet_lsp_document(s, json_string_value(uri)) : NULL;
    if (!d) pnet_lsp_log(s, "%s: this document is not open", method);
    return d;
}

void pnet_lsp_did_change(struct server *s, json_t *params)
{
    static const char method[] = "textDocument/didChange";
    struct document *d = params_document(s, params, method);
    if (!d) return;
    const json_t *changes = json_object_get(params, "contentChanges");
    bool good = json_is_array(changes);
    for (size_t i = 0; good && i < json_array_size(changes); i++)
        good = apply_change(s, d, json_array_get(changes, i));
    if (s->no_memory) return;
    if (!good) {
        pnet_lsp_log(s,
            "%s: malformed, or the text grows beyond %d bytes: %.300s counts as closed now", method,
            PNET_LSP_MAX_BODY, d->uri);
        close_document(s, d);
        return;
    }
    set_version(d, json_object_get(params, "textDocument"));
    find_files(s);
    make_stale(s, d);
    pnet_lsp_refresh(s, d);
}

void pnet_lsp_did_close(struct server *s, json_t *params)
{
    struct document *d = params_document(s, params, "textDocument/didClose");
    if (d) close_document(s, d);
}

void pnet_lsp_files_changed(struct server *s)
{
    find_files(s);
    for (struct document *d = s->documents; d; d = d->next) d->stale = true;
    pnet_lsp_refresh(s, NULL);
}
