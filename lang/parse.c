#include "lang/internal.h"
#include "parser.h"

#include <string.h>

static struct pnet_file *parse_source(struct pnet_parse *all, uint32_t file);

/* Reports an error about a file as a whole. */
static struct pnet_diag *file_error(struct pnet_parse *all, uint32_t file, const char *message)
{
    return pnet_diag_new(all->diags, PNET_ERROR, (struct pnet_span){.file = file}, "%s", message);
}

/* Tells whether all of the file is text, and reports the place where it is not. */
static bool check_text(struct pnet_parse *all, uint32_t file)
{
    const struct pnet_source *s = pnet_sources_get(all->sources, file);
    if (s->length > PNET_MAX_SOURCE_BYTES) {
        pnet_diag_help(file_error(all, file, "the file is too large"), "the limit is %d bytes",
            PNET_MAX_SOURCE_BYTES);
        return false;
    }
    for (size_t at = 0; at < s->length;) {
        uint32_t code;
        int bytes = pnet_utf8_decode(s->text + at, s->length - at, &code);
        if (!bytes || !code) {
            struct pnet_span span = {file, (uint32_t)at, (uint32_t)at + 1};
            struct pnet_diag *d = pnet_diag_new(all->diags, PNET_ERROR, span,
                "byte 0x%02x is no text", (unsigned)(unsigned char)s->text[at]);
            pnet_diag_help(d, "a .pnet file is UTF-8");
            return false;
        }
        at += (size_t)bytes;
    }
    return true;
}

/* Returns the end of the folder part of a path. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Tells whether `file` contains `span`, or includes the file that does. */
static bool is_open(const struct pnet_parse *all, uint32_t file, struct pnet_span span)
{
    for (;;) {
        if (span.file == file) return true;
        span = pnet_sources_get(all->sources, span.file)->included_from;
        if (span.begin == span.end) return false;
    }
}

static void include_error(
    struct pnet_parse *all, const struct pnet_item *item, const char *message, const char *reason)
{
    struct pnet_diag *d = pnet_diag_new(all->diags, PNET_ERROR, item->name_span, "%s", message);
    if (reason) pnet_diag_label(d, "%s", reason);
}

static bool include_limit(
    struct pnet_parse *all, const struct pnet_item *item, const char *message, int limit)
{
    pnet_diag_help(pnet_diag_new(all->diags, PNET_ERROR, item->name_span, "%s", message),
        "the limit is %d", limit);
    return false;
}

/* Opens the file of an include statement. Returns false if there is nothing to parse. */
static bool open_include(struct pnet_parser *p, const struct pnet_item *item, uint32_t *file)
{
    struct pnet_parse *all = p->all;
    const char *from = pnet_sources_get(all->sources, p->file)->name;
    int folder = item->name[0] == '/' ? 0 : (int)folder_length(from);
    const char *path = pnet_arena_printf(all->arena, "%.*s%s", folder, from, item->name);
    if (!path) return false;
    if (!*item->name || !strcmp(item->name, "-")) {
        include_error(all, item, "an include needs the path of a file", NULL);
        return false;
    }
    /* A path without its closing quote has been reported. */
    if (pnet_sources_get(all->sources, p->file)->text[item->span.end - 1] != '"') {
        all->cut = true;
        return false;
    }
    if (pnet_sources_find(all->sources, pnet_source_identify(all->sources, path), file)) {
        if (is_open(all, *file, item->span))
            include_error(all, item, "the file includes itself", NULL);
        return false;
    }
    if (all->depth >= PNET_MAX_INCLUDE_DEPTH)
        return include_limit(all, item, "includes are nested too deeply", PNET_MAX_INCLUDE_DEPTH);
    if (pnet_sources_count(all->sources) >= PNET_MAX_FILES)
        return include_limit(all, item, "there are too many files", PNET_MAX_FILES);
    struct pnet_source_text text;
    const char *error;
    if (!pnet_source_read(all->sources, path, &text, &error)) {
        if (error) include_error(all, item, "cannot read the file", error);
        return false;
    }
    return pnet_sources_add(all->sources, path, text, item->span, file);
}

bool pnet_parse_item(struct pnet_parser *p, struct pnet_item *item)
{
    *p->last = item;
    p->last = &item->next;
    if (item->kind != PNET_ITEM_INCLUDE) return true;
    uint32_t file;
    int errors = pnet_diags_errors(p->all->diags);
    if (open_include(p, item, &file)) {
        p->all->depth++;
        struct pnet_file *included = parse_source(p->all, file);
        p->all->depth--;
        if (included) {
            item->header = included->header;
            *p->last = included->items;
        }
        while (*p->last) p->last = &(*p->last)->next;
    } else {
        p->all->cut |= pnet_diags_errors(p->all->diags) > errors;
    }
    return !p->all->stopped && !p->all->arena->failed;
}

/* Parses `pnet 1`. Returns false if the rest is in another version of the language; a missing line is only an error. */
static bool check_header(struct pnet_parser *p, struct pnet_file *f)
{
    const struct pnet_token *t = p->tokens.items;
    bool word = t[0].kind == TOKEN_PNET, number = word && t[1].kind == TOKEN_NUMBER;
    p->next = (size_t)word + (size_t)number;
    f->version = PNET_LANGUAGE_VERSION;
    f->header.file = p->file;
    if (number) f->header = (struct pnet_span){p->file, t[0].span.begin, t[1].span.end};
    if (!number) {
        struct pnet_diag *d = pnet_diag_new(p->all->diags, PNET_ERROR, t[0].span,
            word ? "the version is missing behind 'pnet'"
                 : "the version of the language is missing");
        pnet_diag_help(d, "begin the file with: pnet %d", PNET_LANGUAGE_VERSION);
        return true;
    }
    struct pnet_number version = t[1].value.number;
    if (version.is_integer && version.value == PNET_LANGUAGE_VERSION) return true;
    struct pnet_diag *d =
        pnet_diag_new(p->all->diags, PNET_ERROR, t[1].span, "unknown version of the language");
    pnet_diag_help(d, "this program knows: pnet %d", PNET_LANGUAGE_VERSION);
    return false;
}

/* Scans a source into `p`. Returns false if it is not text, or memory is out. */
static bool scan_source(struct pnet_parse *all, uint32_t file, struct pnet_parser *p)
{
    const struct pnet_source *source = pnet_sources_get(all->sources, file);
    *p = (struct pnet_parser){.all = all, .file = file};
    p->last = &p->items;
    if (!check_text(all, file)) return false;
    struct pnet_scan scan = {
        .arena = all->arena, .diags = all->diags, .tokens = &p->tokens, .file = file};
    return pnet_scan_text(&scan, source->text, source->length);
}

/* Returns NULL only if memory is out. */
static struct pnet_file *parse_source(struct pnet_parse *all, uint32_t file)
{
    struct pnet_file *f = pnet_arena_alloc(all->arena, sizeof *f);
    struct pnet_parser *p = pnet_arena_alloc(all->arena, sizeof *p);
    if (!f || !p) return NULL;
    if (scan_source(all, file, p) && check_header(p, f)) {
        p->start = TOKEN_START_FILE;
        p->resumed = p->next;
        pnet_tree_parse(p);
        f->items = p->items;
        if (!all->arena->failed) pnet_doc_attach(p, f);
    } else {
        all->cut = true;
    }
    return all->arena->failed ? NULL : f;
}

static struct pnet_file *parse_main(struct pnet_arena *a, struct pnet_sources *s,
    struct pnet_diags *d, const char *name, struct pnet_source_text text)
{
    struct pnet_parse all = {.arena = a, .sources = s, .diags = d};
    uint32_t file;
    if (!pnet_sources_add(s, name, text, (struct pnet_span){0}, &file)) return NULL;
    struct pnet_file *f = parse_source(&all, file);
    if (!f) return NULL;
    f->lost = all.lost;
    f->cut = all.cut || all.stopped;
    return f;
}

struct pnet_file *pnet_parse_file(
    struct pnet_arena *a, struct pnet_sources *s, struct pnet_diags *d, const char *path)
{
    struct pnet_source_text text;
    const char *error, *name = strcmp(path, "-") ? path : "<stdin>";
    if (pnet_source_read(s, path, &text, &error)) return parse_main(a, s, d, name, text);
    uint32_t file;
    text = (struct pnet_source_text){.text = ""};
    if (error && pnet_sources_add(s, name, text, (struct pnet_span){0}, &file))
        pnet_diag_new(
            d, PNET_ERROR, (struct pnet_span){.file = file}, "cannot read the file: %s", error);
    return NULL;
}

/* Copies text from memory, followed by a NUL, as sources keep it. */
static bool copy_text(
    struct pnet_arena *a, const char *text, size_t length, struct pnet_source_text *out)
{
    /* Of a text that is too large, only enough is read to see that. */
    if (length > PNET_MAX_SOURCE_BYTES) length = PNET_MAX_SOURCE_BYTES + 1;
    *out = (struct pnet_source_text){.text = pnet_arena_copy(a, text, length), .length = length};
    return out->text != NULL;
}

struct pnet_file *pnet_parse_text(struct pnet_arena *a, struct pnet_sources *s,
    struct pnet_diags *d, const char *name, const char *text, size_t length)
{
    struct pnet_source_text copy;
    return copy_text(a, text, length, &copy) ? parse_main(a, s, d, name, copy) : NULL;
}

struct pnet_expr *pnet_parse_expr(struct pnet_arena *a, struct pnet_sources *s,
    struct pnet_diags *d, const char *name, const char *text, size_t length)
{
    struct pnet_parse all = {.arena = a, .sources = s, .diags = d};
    struct pnet_source_text copy;
    uint32_t file;
    if (!copy_text(a, text, length, &copy) ||
        !pnet_sources_add(s, name, copy, (struct pnet_span){0}, &file))
        return NULL;
    struct pnet_parser *p = pnet_arena_alloc(a, sizeof *p);
    int errors = pnet_diags_errors(d);
    if (!p || !scan_source(&all, file, p)) return NULL;
    p->start = TOKEN_START_EXPR;
    p->expr_alone = true;
    bool ok = pnet_tree_parse(p) == 0;
    return ok && !a->failed && pnet_diags_errors(d) == errors ? p->expr : NULL;
}
