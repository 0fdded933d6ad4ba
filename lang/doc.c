/* `##` comments are not tokens. When the tree is complete, they are attached to the declarations they document. */
#include "lang/internal.h"
#include "parser.h"

#include <string.h>

/* A declaration that can have a doc comment. */
struct place {
    uint32_t begin;
    const char **doc;
};

/* In source order. Of several that begin at the same byte, only the outermost is listed. */
struct places {
    struct pnet_arena *arena;
    struct place *items;
    size_t count, capacity;
};

static bool add_place(struct places *list, uint32_t begin, const char **doc)
{
    if (list->count && list->items[list->count - 1].begin == begin) return true;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        struct place *grown = pnet_arena_array(list->arena, capacity, sizeof *grown);
        if (!grown) return false;
        if (list->count) memcpy(grown, list->items, list->count * sizeof *grown);
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = (struct place){begin, doc};
    return true;
}

/* Recursion is as deep as statements nest: PNET_MAX_NESTING. */
static bool add_stmts(struct places *list, struct pnet_stmt *s)
{
    for (; s; s = s->next) {
        if (!add_place(list, s->span.begin, &s->doc)) return false;
        if (s->kind == PNET_STMT_FOR && !add_stmts(list, s->loop.body)) return false;
        if (s->kind == PNET_STMT_IF &&
            (!add_stmts(list, s->conditional.then) || !add_stmts(list, s->conditional.otherwise)))
            return false;
    }
    return true;
}

static bool add_items(struct places *list, struct pnet_item *item, uint32_t file)
{
    for (; item; item = item->next) {
        if (item->span.file != file)
            continue; /* of an included file, which has its comments already */
        if (!add_place(list, item->span.begin, &item->doc)) return false;
        for (struct pnet_field_decl *f = item->fields; f; f = f->next)
            if (!add_place(list, f->name_span.begin, &f->doc)) return false;
        if (!add_stmts(list, item->stmt)) return false;
    }
    return true;
}

/* Returns the text of a comment without its `##`, without one space after it, and without white space at the end. */
static struct pnet_span inner(const char *text, const struct pnet_comment *c)
{
    struct pnet_span s = {c->span.file, c->span.begin + 2, c->span.end};
    if (s.begin < s.end && text[s.begin] == ' ') s.begin++;
    while (s.end > s.begin && strchr(" \t\r", text[s.end - 1])) s.end--;
    return s;
}

/* The comments that document one place, while they are joined to one text. */
struct run {
    const char **doc; /* NULL: none yet */
    size_t first, last;
};

/* Joins the lines; comments between them that are no doc comments are left out. */
static bool flush(struct pnet_parser *p, struct run *run)
{
    if (!run->doc) return true;
    const char *text = pnet_sources_get(p->all->sources, p->file)->text;
    const struct pnet_comment *comments = p->tokens.comments;
    size_t length = 0;
    for (size_t i = run->first; i <= run->last; i++)
        length += comments[i].span.end - comments[i].span.begin;
    char *joined = pnet_arena_alloc(p->all->arena, length + 1), *out = joined;
    if (!joined) return false;
    for (size_t i = run->first; i <= run->last; i++) {
        if (!comments[i].is_doc) continue;
        struct pnet_span s = inner(text, &comments[i]);
        if (out > joined || i > run->first) *out++ = '\n';
        memcpy(out, text + s.begin, s.end - s.begin);
        out += s.end - s.begin;
    }
    *run->doc = joined;
    run->doc = NULL;
    return true;
}

static uint32_t line_of(const struct pnet_parser *p, uint32_t offset)
{
    return pnet_source_line_at(p->all->sources, p->file, offset);
}

/* Finds the place that a comment documents: the first one on its line, or else at the next token. `from` advances with the
   comments. */
static const char **find_place(const struct pnet_parser *p, const struct places *list, size_t *from,
    const struct pnet_comment *c)
{
    uint32_t wanted = p->tokens.items[c->next].span.begin;
    if (!c->own_line) {
        size_t first = c->next - 1;
        while (first && !(p->tokens.items[first].flags & PNET_TOKEN_FIRST_ON_LINE)) first--;
        wanted = p->tokens.items[first].span.begin;
    }
    while (*from < list->count && list->items[*from].begin < wanted) ++*from;
    if (*from == list->count) return NULL;
    if (c->own_line) return list->items[*from].begin == wanted ? list->items[*from].doc : NULL;
    return list->items[*from].begin < c->span.begin ? list->items[*from].doc : NULL;
}

bool pnet_doc_attach(struct pnet_parser *p, struct pnet_file *file)
{
    struct places list = {.arena = p->all->arena};
    if (!add_items(&list, file->items, p->file)) return false;
    /* Doc comments directly below `pnet 1` document the file. */
    uint32_t file_line = 0;
    const struct pnet_token *tokens = p->tokens.items;
    if (p->tokens.count > 2 && tokens[0].kind == TOKEN_PNET && tokens[1].kind == TOKEN_NUMBER)
        file_line = line_of(p, tokens[1].span.end);
    size_t from = 0;
    struct run run = {0};
    for (size_t i = 0; i < p->tokens.comment_count; i++) {
        const struct pnet_comment *c = &p->tokens.comments[i];
        uint32_t line = file_line ? line_of(p, c->span.begin) : 0;
        const char **doc;
        if (c->is_doc && file_line && c->next == 2 && line <= file_line + 1) {
            file_line = line;
            doc = &file->doc;
        } else {
            file_line = 0;
            doc = c->is_doc ? find_place(p, &list, &from, c) : NULL;
        }
        if (!doc) continue;
        if (doc != run.doc) {
            if (!flush(p, &run)) return false;
            run = (struct run){.doc = doc, .first = i};
        }
        run.last = i;
    }
    return flush(p, &run);
}
