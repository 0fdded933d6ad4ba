#include "lang/diag_internal.h"
#include "lang/parse.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct pnet_diags *pnet_diags_new(struct pnet_arena *a, struct pnet_sources *sources)
{
    struct pnet_diags *d = pnet_arena_alloc(a, sizeof *d);
    if (d) {
        d->arena = a;
        d->sources = sources;
    }
    return d;
}

static bool same_span(struct pnet_span a, struct pnet_span b)
{
    return a.file == b.file && a.begin == b.begin && a.end == b.end;
}

/* A body that is used several times repeats its message. */
static bool said_before(const struct pnet_diags *d, enum pnet_severity severity,
    struct pnet_span span, const char *message)
{
    for (int i = 0; i < d->kept_count; i++) {
        const struct pnet_diag *k = d->kept[i];
        if (k->severity == severity && same_span(k->span, span) && !strcmp(k->message, message))
            return true;
    }
    return false;
}

struct pnet_diag *pnet_diag_new(struct pnet_diags *d, enum pnet_severity severity,
    struct pnet_span span, const char *format, ...)
{
    if (d->found[severity] >= PNET_DIAGS_KEPT) {
        d->found[severity]++;
        return NULL;
    }
    va_list args;
    va_start(args, format);
    char *message = pnet_arena_vprintf(d->arena, format, args);
    va_end(args);
    if (message && said_before(d, severity, span, message)) return NULL;
    d->found[severity]++;
    struct pnet_diag *n = message ? pnet_arena_alloc(d->arena, sizeof *n) : NULL;
    if (!n) return NULL;
    n->arena = d->arena;
    n->severity = severity;
    n->order = d->kept_count;
    n->span = span;
    n->message = message;
    d->kept[d->kept_count++] = n;
    return n;
}

void pnet_diag_label(struct pnet_diag *d, const char *format, ...)
{
    if (!d) return;
    va_list args;
    va_start(args, format);
    d->label = pnet_arena_vprintf(d->arena, format, args);
    va_end(args);
}

void pnet_diag_second(struct pnet_diag *d, struct pnet_span span, const char *format, ...)
{
    if (!d) return;
    va_list args;
    va_start(args, format);
    d->second_label = pnet_arena_vprintf(d->arena, format, args);
    va_end(args);
    d->second = span;
    d->has_second = d->second_label != NULL;
}

void pnet_diag_help(struct pnet_diag *d, const char *format, ...)
{
    if (!d) return;
    va_list args;
    va_start(args, format);
    char *help = pnet_arena_vprintf(d->arena, format, args);
    va_end(args);
    if (help && d->help) help = pnet_arena_printf(d->arena, "%s\n%s", d->help, help);
    if (help) d->help = help;
}

int pnet_diags_errors(const struct pnet_diags *d)
{
    return d->found[PNET_ERROR];
}

int pnet_diags_warnings(const struct pnet_diags *d)
{
    return d->found[PNET_WARNING];
}

bool pnet_diags_full(const struct pnet_diags *d)
{
    return d->found[PNET_ERROR] >= PNET_DIAGS_KEPT;
}

/* A place as a list of offsets: those of the include statements on the way to it, then its own. */
struct path {
    uint32_t offsets[PNET_MAX_INCLUDE_DEPTH + 2];
    int count;
    const struct pnet_diag *diag;
};

static struct path path_of(const struct pnet_diags *d, const struct pnet_diag *diag)
{
    struct path p = {.diag = diag};
    const int capacity = (int)(sizeof p.offsets / sizeof *p.offsets);
    struct pnet_span span = diag->span;
    for (;;) {
        p.offsets[p.count++] = span.begin;
        const struct pnet_source *s = pnet_sources_get(d->sources, span.file);
        if (!s || s->included_from.end == s->included_from.begin || p.count == capacity) break;
        span = s->included_from;
    }
    for (int i = 0, j = p.count - 1; i < j; i++, j--) {
        uint32_t swap = p.offsets[i];
        p.offsets[i] = p.offsets[j];
        p.offsets[j] = swap;
    }
    return p;
}

static int compare_paths(const void *left, const void *right)
{
    const struct path *a = left, *b = right;
    for (int i = 0; i < a->count && i < b->count; i++)
        if (a->offsets[i] != b->offsets[i]) return a->offsets[i] < b->offsets[i] ? -1 : 1;
    if (a->count != b->count) return a->count - b->count;
    return a->diag->order - b->diag->order;
}

int pnet_diags_count(const struct pnet_diags *d)
{
    return d->kept_count;
}

void pnet_diags_record(const struct pnet_diags *d, int index, struct pnet_diag_record *r)
{
    const struct pnet_diag *sorted[2 * PNET_DIAGS_KEPT];
    pnet_diags_sorted(d, sorted);
    const struct pnet_diag *diag = sorted[index];
    struct pnet_span span = diag->span;
    const struct pnet_source *source = pnet_sources_get(d->sources, span.file);
    *r = (struct pnet_diag_record){.severity = diag->severity,
        .file = source ? source->name : "pnet",
        .message = diag->message,
        .label = diag->label,
        .help = diag->help,
        .span = span,
        .second = diag->second,
        .second_label = diag->has_second ? diag->second_label : NULL};
    if (!source || span.end == 0) return;
    struct pnet_place begin = pnet_source_place(d->sources, span.file, span.begin);
    struct pnet_place end = pnet_source_place(d->sources, span.file, span.end);
    r->line = begin.line;
    r->column = begin.column;
    r->end_line = end.line;
    r->end_column = end.column;
}

void pnet_diags_sorted(const struct pnet_diags *d, const struct pnet_diag **sorted)
{
    struct path paths[2 * PNET_DIAGS_KEPT];
    for (int i = 0; i < d->kept_count; i++) paths[i] = path_of(d, d->kept[i]);
    qsort(paths, (size_t)d->kept_count, sizeof *paths, compare_paths);
    for (int i = 0; i < d->kept_count; i++) sorted[i] = paths[i].diag;
}
