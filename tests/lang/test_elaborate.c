/* Messages about models that can be read, but not made into a graph: text and caret. And for every message that
   the sources hold there is a case. */
#include "compiler/pnet.h"
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

/* The first string between the parentheses that open before `at`, pieces of it joined; false where there is none. */
static bool first_string(const char *at, char *out, size_t size)
{
    size_t n = 0;
    bool any = false;
    for (int depth = 1; depth; at++) {
        if (*at == '(') depth++;
        if (*at == ')') depth--;
        if (any && !isspace((unsigned char)*at) && *at != '"') break;
        if (*at != '"') continue;
        for (at++; *at != '"'; at++) {
            if (*at == '\\') at++;
            if (depth == 1 && n + 1 < size) out[n++] = *at;
        }
        any |= depth == 1;
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

/* Calls whose first string is a message. */
static const char *const makers[] = {"ERROR", "pnet_diag_new", "file_error", "include_error",
    "include_limit", "bad_number", "stop", "too_deep"};

static void test_coverage(void)
{
    char *sources = read_all("compiler/*.c", read_all("lang/*.[cly]", NULL));
    /* limits that take a large text are in test_limits.c */
    char *tests = read_all("tests/lang/test_limits.c", read_all("tests/lang/golden/*.txt", NULL));
    int messages = 0;
    for (const char *at = sources; *at; at++) {
        size_t n = 0;
        if (at > sources && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) continue;
        for (size_t i = 0; i < sizeof makers / sizeof *makers && !n; i++)
            if (!strncmp(at, makers[i], strlen(makers[i])) && at[strlen(makers[i])] == '(')
                n = strlen(makers[i]) + 1;
        char format[256];
        if (!n || !first_string(at + n, format, sizeof format) || !strcmp(format, "%s")) continue;
        messages++;
        CHECKF(holds(tests, format), "no golden case has the message \"%s\"", format);
    }
    CHECKF(messages > 100, "only %d messages found", messages);
    free(sources);
    free(tests);
}

int main(void)
{
    static const char *const sets[] = {
        "v=3", "w=nothing", "first=no", "p69=2", "k=3", "vv=1", "q", "w=1 +"};
    const struct pnet_compile_options none = {.purpose = PNET_FOR_EVAL};
    struct pnet_compile_options o = none;
    CHECK(cases("elaborate", none) == 31);
    CHECK(cases("limits", none) == 16);
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
    o.algo = PNET_ALGO_IM2COL;
    o.precision = PNET_BF16;
    CHECK(cases("precision", o) == 1);
    test_coverage();
    return check_end();
}
