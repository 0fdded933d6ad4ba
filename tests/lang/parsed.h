/* A parse with all it left behind, for tests. */
#ifndef PNET_TESTS_LANG_PARSED_H
#define PNET_TESTS_LANG_PARSED_H

#include "lang/dump.h"
#include "lang/parse.h"
#include "tests/check.h"

struct parsed {
    struct pnet_arena arena;
    struct pnet_sources *sources;
    struct pnet_diags *diags;
    struct pnet_file *file;
    char *tree;     /* its dump; "" without a file */
    char *messages; /* as printed */
};

static inline struct parsed *parsed_start(size_t fail_at)
{
    struct parsed *p = calloc(1, sizeof *p);
    if (!p) exit(1);
    p->arena.fail_at = fail_at;
    p->sources = pnet_sources_new(&p->arena);
    p->diags = p->sources ? pnet_diags_new(&p->arena, p->sources) : NULL;
    return p;
}

static inline struct parsed *parsed_end(struct parsed *p)
{
    size_t ignored;
    FILE *out = open_memstream(&p->tree, &ignored);
    if (p->file) pnet_ast_dump(out, p->file, NULL);
    fclose(out);
    out = open_memstream(&p->messages, &ignored);
    if (p->diags) pnet_diags_print(p->diags, out, false);
    fclose(out);
    return p;
}

static inline struct parsed *parsed_bytes(const char *text, size_t length, size_t fail_at)
{
    struct parsed *p = parsed_start(fail_at);
    if (p->diags)
        p->file = pnet_parse_text(&p->arena, p->sources, p->diags, "t.pnet", text, length);
    return parsed_end(p);
}

static inline struct parsed *parsed_text(const char *text)
{
    return parsed_bytes(text, strlen(text), 0);
}

static inline struct parsed *parsed_file(const char *path)
{
    struct parsed *p = parsed_start(0);
    if (p->diags) p->file = pnet_parse_file(&p->arena, p->sources, p->diags, path);
    return parsed_end(p);
}

static inline int parsed_errors(const struct parsed *p)
{
    return pnet_diags_errors(p->diags);
}

static inline void parsed_free(struct parsed *p)
{
    pnet_arena_free(&p->arena);
    free(p->tree);
    free(p->messages);
    free(p);
}

/* The dump of an expression, or the messages about it; the caller frees it. */
static inline char *parsed_expr(const char *text, size_t length)
{
    struct parsed *p = parsed_start(0);
    size_t ignored;
    char *dump = NULL;
    struct pnet_expr *e = pnet_parse_expr(&p->arena, p->sources, p->diags, "--set x", text, length);
    FILE *out = open_memstream(&dump, &ignored);
    if (e)
        pnet_expr_dump(out, e);
    else
        pnet_diags_print(p->diags, out, false);
    fclose(out);
    CHECKF(!e == (parsed_errors(p) > 0), "%.*s", (int)length, text);
    parsed_free(parsed_end(p));
    return dump;
}

#endif
