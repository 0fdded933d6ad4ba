#include "lang/dump.h"
#include "lang/number.h"

#include <stdlib.h>
#include <string.h>

static const char *const operators[] = {
    "+", "-", "*", "/", "%", "neg", "==", "!=", "<", "<=", ">", ">=", "and", "or", "not"};
static const char *const units[] = {"", "m", "rad", ":1"};

static void dump_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void dump_number(FILE *out, const struct pnet_expr *e)
{
    char digits[40];
    locale_t before = uselocale(pnet_plain_locale());
    int precision = 15; /* the fewest digits that read back as the same number */
    do {
        snprintf(digits, sizeof digits, "%.*g", precision, e->number.value);
    } while (precision++ < 17 && pnet_plain_number(digits) != e->number.value);
    uselocale(before);
    bool real = !e->number.is_integer && !strpbrk(digits, ".e");
    fprintf(out, "%s%s%s", digits, real ? ".0" : "", units[e->number.unit]);
}

static void dump_call(FILE *out, const struct pnet_expr *e)
{
    fprintf(out, "(%s %s", e->kind == PNET_EXPR_PIPE ? "pipe" : "call", e->call.name);
    if (e->kind == PNET_EXPR_PIPE) {
        fputs(" ", out);
        pnet_expr_dump(out, e->call.piped);
    }
    for (const struct pnet_call_arg *a = e->call.args; a; a = a->next) {
        fprintf(out, " %s%s", a->name ? a->name : "", a->name ? "=" : "");
        pnet_expr_dump(out, a->value);
    }
    if (e->call.repeat) {
        fputs(" * ", out);
        pnet_expr_dump(out, e->call.repeat);
    }
    fputc(')', out);
}

/* Writes a head and up to three parts; NULL ends them. */
static void dump_parts(FILE *out, const char *head, const struct pnet_expr *a,
    const struct pnet_expr *b, const struct pnet_expr *c)
{
    const struct pnet_expr *parts[] = {a, b, c, NULL};
    fprintf(out, "(%s", head);
    for (int i = 0; parts[i]; i++) {
        fputc(' ', out);
        pnet_expr_dump(out, parts[i]);
    }
    fputc(')', out);
}

void pnet_expr_dump(FILE *out, const struct pnet_expr *e)
{
    switch (e->kind) {
    case PNET_EXPR_NUMBER: dump_number(out, e); break;
    case PNET_EXPR_STRING: dump_text(out, e->string); break;
    case PNET_EXPR_NAME: fputs(e->name, out); break;
    case PNET_EXPR_LIST:
        fputc('[', out);
        for (int i = 0; i < e->list.count; i++) {
            fputs(i ? " " : "", out);
            pnet_expr_dump(out, e->list.items[i]);
        }
        fputc(']', out);
        break;
    case PNET_EXPR_INDEX: dump_parts(out, "index", e->index.base, e->index.index, NULL); break;
    case PNET_EXPR_FIELD:
        fputs("(field ", out);
        pnet_expr_dump(out, e->field.base);
        fprintf(out, " %s)", e->field.name);
        break;
    case PNET_EXPR_CALL:
    case PNET_EXPR_PIPE: dump_call(out, e); break;
    case PNET_EXPR_UNARY:
    case PNET_EXPR_BINARY:
        dump_parts(out, operators[e->binary.op], e->binary.left, e->binary.right, NULL);
        break;
    case PNET_EXPR_IF:
        dump_parts(
            out, "if", e->conditional.condition, e->conditional.then, e->conditional.otherwise);
        break;
    }
}

struct writer {
    FILE *out;
    const struct pnet_sources *sources;
};

/* Begins a line. */
static void start(const struct writer *w, struct pnet_span span, int indent)
{
    if (w->sources) {
        struct pnet_place place = pnet_source_place(w->sources, span.file, span.begin);
        char text[32];
        snprintf(text, sizeof text, "%u:%u", (unsigned)place.line, (unsigned)place.column);
        fprintf(w->out, "%-8s", text);
    }
    fprintf(w->out, "%*s", indent, "");
}

static void end(const struct writer *w, const char *doc)
{
    if (doc) {
        fputs("  ## ", w->out);
        dump_text(w->out, doc);
    }
    fputc('\n', w->out);
}

static void dump_stmts(const struct writer *w, const struct pnet_stmt *s, int indent);

static void dump_stmt(const struct writer *w, const struct pnet_stmt *s, int indent)
{
    start(w, s->span, indent);
    switch (s->kind) {
    case PNET_STMT_ASSIGN:
        fputs(s->assign.name, w->out);
        for (int i = 0; i < s->assign.index_count; i++) {
            fputc('[', w->out);
            pnet_expr_dump(w->out, s->assign.indices[i]);
            fputc(']', w->out);
        }
        fputs(" = ", w->out);
        pnet_expr_dump(w->out, s->assign.value);
        end(w, s->doc);
        break;
    case PNET_STMT_FOR:
        fprintf(w->out, "for %s = ", s->loop.name);
        pnet_expr_dump(w->out, s->loop.from);
        fputs(" .. ", w->out);
        pnet_expr_dump(w->out, s->loop.to);
        end(w, s->doc);
        dump_stmts(w, s->loop.body, indent + 2);
        break;
    case PNET_STMT_IF:
        fputs("if ", w->out);
        pnet_expr_dump(w->out, s->conditional.condition);
        end(w, s->doc);
        dump_stmts(w, s->conditional.then, indent + 2);
        if (!s->conditional.otherwise) break;
        start(w, s->conditional.otherwise->span, indent);
        fputs("else\n", w->out);
        dump_stmts(w, s->conditional.otherwise, indent + 2);
        break;
    case PNET_STMT_RETURN:
        fputs("return ", w->out);
        pnet_expr_dump(w->out, s->value);
        end(w, s->doc);
        break;
    }
}

static void dump_stmts(const struct writer *w, const struct pnet_stmt *s, int indent)
{
    for (; s; s = s->next) dump_stmt(w, s, indent);
}

static void dump_params(const struct writer *w, const struct pnet_param_decl *d)
{
    fputc('(', w->out);
    for (; d; d = d->next) {
        fprintf(w->out, "%s%s%s", d->name, d->type ? ": " : "", d->type ? d->type : "");
        if (d->value) {
            fputs(" = ", w->out);
            pnet_expr_dump(w->out, d->value);
        }
        fputs(d->next ? ", " : "", w->out);
    }
    fputc(')', w->out);
}

static void dump_fields(const struct writer *w, const struct pnet_field_decl *f)
{
    for (; f; f = f->next) {
        start(w, f->name_span, 2);
        fprintf(w->out, "%s : %s", f->name, f->type);
        if (f->size) {
            fputc('[', w->out);
            pnet_expr_dump(w->out, f->size);
            fputc(']', w->out);
        }
        if (f->per) fprintf(w->out, " per %s", f->per);
        end(w, f->doc);
    }
}

static void dump_item(const struct writer *w, const struct pnet_item *item)
{
    static const char *const words[] = {
        "include", "param", "const", "input", "block", "net", "loss", "metric"};
    if (item->kind == PNET_ITEM_ASSIGN) {
        struct pnet_stmt assign = *item->stmt;
        assign.doc = item->doc;
        dump_stmt(w, &assign, 0);
        return;
    }
    start(w, item->span, 0);
    fprintf(w->out, "%s ", words[item->kind]);
    if (item->kind == PNET_ITEM_INCLUDE)
        dump_text(w->out, item->name);
    else
        fputs(item->name, w->out);
    if (item->kind == PNET_ITEM_BLOCK || item->kind == PNET_ITEM_NET) dump_params(w, item->params);
    if (item->input_type) fprintf(w->out, " : %s", item->input_type);
    if (item->value) {
        fputs(" = ", w->out);
        pnet_expr_dump(w->out, item->value);
    }
    end(w, item->doc);
    dump_fields(w, item->fields);
    dump_stmts(w, item->stmt, 2);
}

void pnet_ast_dump(FILE *out, const struct pnet_file *file, const struct pnet_sources *s)
{
    struct writer w = {out, s};
    if (s) fprintf(out, "%-8s", "1:1");
    fprintf(out, "pnet %d", file->version);
    end(&w, file->doc);
    for (const struct pnet_item *item = file->items; item; item = item->next) dump_item(&w, item);
}
