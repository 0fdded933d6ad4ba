/* Messages about models that can be read, but not made into a graph: text and caret. And for every message that
   the sources hold there is a case. */
#include "compiler/compile.h"
#include "tests/lang/golden.h"

#include <ctype.h>
#include <glob.h>

static struct pnet_compile_options options;

static void run(FILE *out)
{
    struct pnet_compilation *c = pnet_compile_file("main.pnet", &options);
    CHECK(c != NULL);
    if (!c) return;
    pnet_compilation_report(c, out, false, false);
    bool bad = pnet_compilation_errors(c) > 0;
    CHECK(bad == (pnet_compilation_plan(c) == NULL));
    CHECK(bad == (pnet_compilation_code(c) == PNET_BAD_MODEL));
    pnet_compilation_free(c);
}

static int cases(const char *name, struct pnet_compile_options o)
{
    char path[256];
    options = o;
    snprintf(path, sizeof path, "tests/lang/golden/%s.txt", name);
    return golden_run(path, run);
}

/* All files of a pattern, one behind the other; the caller frees it. */
static char *read_all(const char *pattern, char *text)
{
    glob_t files;
    CHECKF(glob(pattern, 0, NULL, &files) == 0, "%s", pattern);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        size_t length = 0, had = text ? strlen(text) : 0;
        char *more = golden_read(files.gl_pathv[i], &length);
        text = realloc(text, had + length + 1);
        if (!more || !text) exit(1);
        memcpy(text + had, more, length + 1);
        free(more);
    }
    globfree(&files);
    return text;
}

/* The end of what begins at `at` and is no code: a comment, a character, a line of the preprocessor; or `at`. */
static const char *skip(const char *at, const char *begin)
{
    const char *end = at;
    if (*at == '#' && (at == begin || at[-1] == '\n'))
        end = strchr(at, '\n');
    else if (at[0] == '/' && at[1] == '*')
        end = strstr(at + 2, "*/") + 2;
    else if (at[0] == '/' && at[1] == '/')
        end = strchr(at, '\n');
    else if (*at == '\'')
        end = strchr(at + (at[1] == '\\' ? 3 : 1), '\'') + 1;
    return end;
}

/* The next string of C text behind *at, pieces of it joined; false at the end, or where the call ends that *at is in. */
static bool next_string(const char **at, const char *begin, bool in_call, char *out, size_t size)
{
    size_t n = 0;
    bool any = false;
    int depth = 1;
    for (; **at; ++*at) {
        const char *code = skip(*at, begin);
        if (code != *at) {
            *at = code - 1;
            continue;
        }
        if (any && !isspace((unsigned char)**at) && **at != '"') break;
        depth += (**at == '(') - (**at == ')');
        if (in_call && !depth) break;
        if (**at != '"') continue;
        any = true;
        for (++*at; **at != '"'; ++*at) {
            if (**at == '\\') ++*at;
            if (n + 1 < size) out[n++] = **at;
        }
    }
    out[n] = 0;
    return any;
}

/* Does the text hold the format, with anything on the same line in place of what it prints? */
static bool holds(const char *text, const char *format)
{
    char part[256] = "";
    size_t n = 0;
    for (; *format && *format != '%'; format++) part[n++] = *format;
    if (*format == '%' && format[1] == '%') { /* its longer part is enough */
        part[n] = 0;
        return strstr(text, part) != NULL;
    }
    part[n] = 0;
    if (*format) {
        format++;
        format += strspn(format, "-.*0123456789l");
        format++;
    }
    for (const char *at = text; (at = strstr(at, part)); at++) {
        if (!*format) return true;
        const char *end = strchr(at, '\n');
        char *rest = strndup(at + n, end ? (size_t)(end - at) - n : strlen(at + n));
        bool found = rest && holds(rest, format);
        free(rest);
        if (found) return true;
        if (!*at) break;
    }
    return false;
}

/* Strings with a space that no message has. */
static const char *const others[] = {
    /* assertions */
    "one row a token",
    "a set of tokens is one word",
    /* of the text that a checkpoint keeps */
    "n# file ",
    /* of editors alone: tests/lsp/golden/diagnostics.txt */
    "not a regular file",
    /* tests/cli/test_pipes.sh */
    "a named pipe",
    /* tokens that are not expected by name */
    "the end of the file",
    "a body",
    /* guards: a field has at most 65536 classes; levels of one chain have one grid */
    "dice() cannot take %d classes",
    "conv() has no voxel mode between %s and %s: their grids are not of one chain",
};

/* Does the string stand for a message, or for a part of one that can be told from others? */
static bool is_message(const char *text)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(text, others[i])) return false;
    return strchr(text, ' ') && text[strcspn(text, "abcdefghijklmnopqrstuvwxyz")];
}

/* Of the sources of the pattern each string counts, or with `calls` (a list that ends with NULL) those within such calls. */
static int check_sources(const char *pattern, const char *const *calls, const char *tests)
{
    int messages = 0;
    char *sources = read_all(pattern, NULL), format[512];
    for (const char *at = sources; *at;) {
        size_t n = 0;
        for (int i = 0; calls && calls[i] && !n; i++)
            n = strncmp(at, calls[i], strlen(calls[i])) == 0 ? strlen(calls[i]) : 0;
        if (calls && !n) {
            at++;
            continue;
        }
        at += n;
        while (next_string(&at, sources, calls, format, sizeof format)) {
            if (!is_message(format)) continue;
            messages++;
            CHECKF(holds(tests, format), "%s: no golden case has \"%s\"", pattern, format);
        }
    }
    free(sources);
    return messages;
}

/* Every message, label, second place and help, with the parts that they are made of, stands in a golden case. Not looked at:
   files that print listings, trees and canonical forms. */
static void test_coverage(void)
{
    static const char *const all[] = {"compiler/builtin.c", "compiler/c*.c", "compiler/e*.c",
        "compiler/graph.c", "compiler/item.c", "compiler/m*.c", "compiler/node.c",
        "compiler/pass_*.c", "lang/mistake.c", "lang/parse.c", "lang/recover.c", "lang/source.c",
        "lang/t*.c", "lang/arena.c", "lang/diag.c"};
    static const char *const rules[] = {
        "pnet_rule_fail(", "pnet_rule_help(", "pnet_rule_warn(", NULL};
    static const char *const scans[] = {
        "pnet_diag_new(", "pnet_diag_help(", "slip(yyextra", "bad(", NULL};
    /* limits that take a large text are in test_limits.c */
    char *tests = read_all("tests/lang/test_limits.c", read_all("tests/lang/golden/*.txt", NULL));
    int messages = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        messages += check_sources(all[i], NULL, tests);
    CHECKF(messages > 250, "only %d messages found", messages);
    messages = check_sources("runtime/ops/*.c", rules, tests);
    CHECKF(messages > 50, "only %d messages of rules found", messages);
    messages = check_sources("lang/scanner.l", scans, tests);
    CHECKF(messages > 10, "only %d messages of the scanner found", messages);
    free(tests);
}

int main(void)
{
    static const char *const sets[] = {
        "v=3", "w=nothing", "first=no", "p69=2", "k=3", "vv=1", "q", "w=1 +"};
    const struct pnet_compile_options none = {.purpose = PNET_FOR_EVAL};
    struct pnet_compile_options o = none;
    CHECK(cases("elaborate", none) == 33);
    CHECK(cases("limits", none) == 16);
    CHECK(cases("rules", none) == 17);
    CHECK(cases("attention", none) == 2);
    o.purpose = PNET_FOR_TRAINING;
    CHECK(cases("training", o) == 1);
    o = none;
    o.sets = sets;
    o.set_count = sizeof sets / sizeof *sets;
    CHECK(cases("sets", o) == 1);
    o = none;
    o.purpose = PNET_FOR_INFERENCE;
    o.net = "tinny";
    CHECK(cases("inference", o) == 2);
    o.net = NULL;
    CHECK(cases("no_net", o) == 1);
    o = none;
    o.degrade = PNET_VOXEL;
    CHECK(cases("rules_voxel", o) == 2);
    test_coverage();
    return check_end();
}
