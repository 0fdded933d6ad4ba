#include "lang/internal.h"

#include <string.h>

/* A file that is copied: its bytes up to `at` are in the text. */
struct copied {
    const struct pnet_source *source;
    uint32_t file, at;
};

struct joined {
    char *at;
    struct copied open[PNET_MAX_INCLUDE_DEPTH + 1];
    int depth; /* of the last open file */
};

static void copy_to(struct joined *j, size_t end)
{
    struct copied *c = &j->open[j->depth];
    if (end <= c->at) return;
    memcpy(j->at, c->source->text + c->at, end - c->at);
    j->at += end - c->at;
    c->at = (uint32_t)end;
}

/* What follows an included file begins on a line of its own: a comment may end the file. */
static void close_file(struct joined *j)
{
    const struct pnet_source *s = j->open[j->depth].source;
    copy_to(j, s->length);
    if (s->length && s->text[s->length - 1] != '\n') *j->at++ = '\n';
    j->depth--;
}

char *pnet_join(
    struct pnet_arena *a, const struct pnet_sources *s, const struct pnet_file *f, size_t *length)
{
    const struct pnet_source *source;
    size_t size = 1;
    for (uint32_t file = 0; (source = pnet_sources_get(s, file)); file++)
        size += source->length + 1;
    char *text = pnet_arena_alloc(a, size);
    if (!text) return NULL;
    struct joined j = {.at = text, .open = {{.source = pnet_sources_get(s, 0)}}};
    for (const struct pnet_item *i = f ? f->items : NULL; i; i = i->next) {
        if (i->kind != PNET_ITEM_INCLUDE) continue;
        while (j.depth && j.open[j.depth].file != i->span.file) close_file(&j);
        copy_to(&j, i->span.begin);
        j.open[j.depth].at = i->span.end;
        source = i->header.file ? pnet_sources_get(s, i->header.file) : NULL;
        if (!source) continue;
        j.open[++j.depth] = (struct copied){.source = source, .file = i->header.file};
        copy_to(&j, i->header.begin);
        j.open[j.depth].at = i->header.end;
    }
    while (j.depth) close_file(&j);
    copy_to(&j, j.open[0].source->length);
    *j.at = '\0';
    *length = (size_t)(j.at - text);
    return text;
}
