/* Diagnostics as other parts make them: labels, second places, order, the cap, JSON. */
#include "lang/diag.h"
#include "lang/parse.h"
#include "tests/check.h"

#include <jansson.h>

struct setup {
    struct pnet_arena arena;
    struct pnet_sources *sources;
    struct pnet_diags *diags;
    const char *text;
};

/* The text becomes file 0; that it does not parse is not looked at. */
static struct setup *setup(const char *name, const char *text)
{
    struct setup *s = calloc(1, sizeof *s);
    if (!s) exit(1);
    s->text = text;
    s->sources = pnet_sources_new(&s->arena);
    struct pnet_diags *unused = pnet_diags_new(&s->arena, s->sources);
    pnet_parse_text(&s->arena, s->sources, unused, name, text, strlen(text));
    s->diags = pnet_diags_new(&s->arena, s->sources);
    return s;
}

static void release(struct setup *s)
{
    pnet_arena_free(&s->arena);
    free(s);
}

/* The n-th place (from 0) at which `part` stands in the text. */
static struct pnet_span place(const struct setup *s, const char *part, int n)
{
    const char *at = strstr(s->text, part);
    while (at && n--) at = strstr(at + 1, part);
    CHECKF(at, "%s is not in the text", part);
    if (!at) exit(1);
    uint32_t begin = (uint32_t)(at - s->text);
    return (struct pnet_span){0, begin, begin + (uint32_t)strlen(part)};
}

static void check_printed(struct setup *s, bool colour, const char *want)
{
    char *got = NULL;
    size_t length;
    FILE *out = open_memstream(&got, &length);
    pnet_diags_print(s->diags, out, colour);
    fclose(out);
    CHECKF(!strcmp(got, want), "got\n%s\n--- expected\n%s", got, want);
    free(got);
    release(s);
}

static void test_sample(void)
{
    char text[256];
    memset(text, '\n', 21);
    snprintf(text + 21, sizeof text - 21, "    x = cat(x, s[i+1])\n");
    struct setup *s = setup("fcgf.pnet", text);
    struct pnet_diag *d = pnet_diag_new(
        s->diags, PNET_ERROR, place(s, "cat", 0), "%s() joins points of different levels", "cat");
    pnet_diag_label(d, "x is 128@g[2] (1.2m, line 21), s[3] is 256@g[3] (2.4m)");
    pnet_diag_help(d, "use s[2], or move s[3] with -> conv(.., to=g[2])");
    check_printed(s, false,
        "fcgf.pnet:22:9: error: cat() joins points of different levels\n"
        "   22 |     x = cat(x, s[i+1])\n"
        "      |         ^~~ x is 128@g[2] (1.2m, line 21), s[3] is 256@g[3] (2.4m)\n"
        "  help: use s[2], or move s[3] with -> conv(.., to=g[2])\n");
}

static void test_seconds(void)
{
    struct setup *s = setup("t.pnet", "one two three\nfour\n");
    struct pnet_diag *d = pnet_diag_new(s->diags, PNET_ERROR, place(s, "two", 0), "first");
    pnet_diag_label(d, "label");
    pnet_diag_second(d, place(s, "one", 0), "before");
    d = pnet_diag_new(s->diags, PNET_ERROR, place(s, "two", 0), "second");
    pnet_diag_label(d, "label");
    pnet_diag_second(d, place(s, "three", 0), "behind");
    d = pnet_diag_new(s->diags, PNET_ERROR, place(s, "two", 0), "third");
    pnet_diag_second(d, place(s, "three", 0), "%s", "");
    d = pnet_diag_new(s->diags, PNET_WARNING, place(s, "four", 0), "fourth");
    pnet_diag_second(d, place(s, "one two three\nfo", 0), "above");
    pnet_diag_help(d, "one");
    pnet_diag_help(d, "two");
    check_printed(s, false,
        "t.pnet:1:5: error: first\n"
        "    1 | one two three\n"
        "      | ~~~ ^~~ label\n"
        "      | ~~~ before\n"
        "t.pnet:1:5: error: second\n"
        "    1 | one two three\n"
        "      |     ^~~ ~~~~~ behind\n"
        "      |     ^~~ label\n"
        "t.pnet:1:5: error: third\n"
        "    1 | one two three\n"
        "      |     ^~~ ~~~~~\n"
        "t.pnet:2:1: warning: fourth\n"
        "    2 | four\n"
        "      | ^~~~\n"
        "    1 | one two three\n"
        "      | ~~~~~~~~~~~~~ above\n"
        "  help: one\n"
        "  help: two\n");
}

static void test_colour(void)
{
    struct setup *s = setup("t.pnet", "one two\n");
    struct pnet_diag *d = pnet_diag_new(s->diags, PNET_WARNING, place(s, "two", 0), "text");
    pnet_diag_second(d, place(s, "one", 0), "%s", "");
    check_printed(s, true,
        "\033[1mt.pnet:1:5:\033[0m \033[1;35mwarning:\033[0m \033[1mtext\033[0m\n"
        "    1 | one two\n"
        "      | \033[36m~~~\033[0m \033[1;35m^~~\033[0m\n");
}

static void test_whole_file(void)
{
    struct setup *s = setup("t.pnet", "one\n");
    struct pnet_diag *d = pnet_diag_new(s->diags, PNET_ERROR, (struct pnet_span){0}, "no loss");
    pnet_diag_help(d, "add one");
    check_printed(s, false, "t.pnet: error: no loss\n  help: add one\n");
}

/* Sorted by place, then by arrival; said twice, printed once; counted beyond 20 of a kind. */
static void test_order(void)
{
    struct setup *s = setup("t.pnet", "one two\nthree\n");
    pnet_diag_new(s->diags, PNET_ERROR, place(s, "three", 0), "c");
    pnet_diag_new(s->diags, PNET_WARNING, place(s, "one", 0), "a");
    pnet_diag_new(s->diags, PNET_ERROR, place(s, "one", 0), "b");
    CHECK(pnet_diag_new(s->diags, PNET_ERROR, place(s, "three", 0), "c") == NULL);
    CHECK(pnet_diags_errors(s->diags) == 2 && pnet_diags_warnings(s->diags) == 1);
    check_printed(s, false,
        "t.pnet:1:1: warning: a\n    1 | one two\n      | ^~~\n"
        "t.pnet:1:1: error: b\n    1 | one two\n      | ^~~\n"
        "t.pnet:2:1: error: c\n    2 | three\n      | ^~~~~\n");
}

static void test_cap(void)
{
    struct setup *s = setup("t.pnet", "one\n");
    for (int i = 0; i < 30; i++) {
        CHECK(pnet_diags_full(s->diags) == (i >= 20));
        struct pnet_diag *d =
            pnet_diag_new(s->diags, PNET_ERROR, place(s, "one", 0), "error %d", i);
        CHECK((d != NULL) == (i < 20));
        pnet_diag_label(d, "l");
        pnet_diag_second(d, place(s, "one", 0), "s");
        pnet_diag_help(d, "h");
    }
    pnet_diag_new(s->diags, PNET_WARNING, place(s, "one", 0), "a warning");
    CHECK(pnet_diags_errors(s->diags) == 30);
    char *got = NULL;
    size_t length;
    FILE *out = open_memstream(&got, &length);
    pnet_diags_print(s->diags, out, false);
    fclose(out);
    CHECK(strstr(got, "error 19\n") && !strstr(got, "error 20\n") && strstr(got, "a warning\n"));
    CHECK(strstr(got, "\n30 errors, 1 warning\n"));
    free(got);
    release(s);
}

/* Control characters and what is no text are shown, wherever they come from; on long lines too places are right. */
static void test_visible(void)
{
    struct setup *s = setup("t\033[2J\n.pnet", "one two\n");
    struct pnet_diag *d = pnet_diag_new(
        s->diags, PNET_ERROR, place(s, "two", 0), "a \033 \xc2\x9b \xe2\x80\xae \xff \xc3\xb6\t");
    pnet_diag_label(d, "\r");
    pnet_diag_second(d, place(s, "one", 0), "\x7f");
    pnet_diag_help(d, "\b");
    check_printed(s, false,
        "t\\x1b[2J\\n.pnet:1:5: error: a \\x1b \\u009b \\u202e \\xff \xc3\xb6\\t\n"
        "    1 | one two\n"
        "      | ~~~ ^~~ \\x0d\n"
        "      | ~~~ \\x7f\n"
        "  help: \\x08\n");
}

/* A line of many kilobytes, of characters of one and of two bytes: where a mark stands does not depend on those before. */
static void test_long_line(void)
{
    enum { WORDS = 4000 };
    char *text = calloc(WORDS, 12), *got = NULL, want[512];
    size_t length;
    if (!text) exit(1);
    for (int i = 0; i < WORDS; i++) sprintf(text + strlen(text), "w%04d \xc3\xb6 ", i);
    struct setup *s = setup("t.pnet", text);
    for (int i = 3999; i > 0; i -= 399) {
        snprintf(want, sizeof want, "w%04d", i);
        pnet_diag_new(s->diags, PNET_ERROR, place(s, want, 0), "at %d", i);
    }
    FILE *out = open_memstream(&got, &length);
    pnet_diags_print(s->diags, out, false);
    fclose(out);
    int lines = 0;
    for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        int column, word;
        CHECKF(sscanf(line, "t.pnet:1:%d: error: at %d", &column, &word) == 2 &&
                   column == 8 * word + 1,
            "%s", line);
        const char *source = strtok(NULL, "\n"), *mark = strtok(NULL, "\n");
        if (!source || !mark) exit(1);
        snprintf(want, sizeof want, "w%04d", word);
        const char *at = strstr(source, want);
        int shown = 0;
        for (const char *p = source; at && p < at; p++) shown += (*p & 0xc0) != 0x80;
        CHECKF(at && shown == (int)strcspn(mark, "^"), "%s\n%s", source, mark);
    }
    CHECK(lines == 11);
    free(got);
    free(text);
    release(s);
}

static void check_place(const json_t *o, int line, int column, int end_line, int end_column)
{
    CHECK_STR(json_string_value(json_object_get(o, "file")), "t.pnet");
    CHECK(json_integer_value(json_object_get(o, "line")) == line);
    CHECK(json_integer_value(json_object_get(o, "column")) == column);
    CHECK(json_integer_value(json_object_get(o, "end_line")) == end_line);
    CHECK(json_integer_value(json_object_get(o, "end_column")) == end_column);
}

static void test_json(void)
{
    struct setup *s = setup("t.pnet", "\"gr\xc3\xb6\xc3\x9f"
                                      "e\" two\nthree\n");
    struct pnet_diag *d = pnet_diag_new(
        s->diags, PNET_ERROR, place(s, "two\nth", 0), "a \"quote\" \\ \xc3\xb6 \x01 \xff");
    pnet_diag_label(d, "label");
    pnet_diag_second(d, place(s, "three", 0), "second");
    pnet_diag_help(d, "one");
    pnet_diag_help(d, "two");
    pnet_diag_new(s->diags, PNET_WARNING, place(s, "three", 0), "plain");
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    pnet_diags_json(s->diags, out);
    fclose(out);
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    CHECKF(root && json_array_size(root) == 2, "%s\n%s", error.text, text);
    if (!root) exit(1);
    const json_t *first = json_array_get(root, 0), *second = json_array_get(root, 1);
    check_place(first, 1, 9, 2, 3);
    CHECK_STR(json_string_value(json_object_get(first, "severity")), "error");
    CHECK_STR(json_string_value(json_object_get(first, "message")),
        "a \"quote\" \\ \xc3\xb6 \x01 \xef\xbf\xbd");
    CHECK_STR(json_string_value(json_object_get(first, "label")), "label");
    CHECK_STR(json_string_value(json_object_get(first, "help")), "one\ntwo");
    check_place(json_object_get(first, "second"), 2, 1, 2, 6);
    CHECK_STR(
        json_string_value(json_object_get(json_object_get(first, "second"), "label")), "second");
    check_place(second, 2, 1, 2, 6);
    CHECK_STR(json_string_value(json_object_get(second, "severity")), "warning");
    CHECK(json_is_null(json_object_get(second, "label")));
    CHECK(json_is_null(json_object_get(second, "help")));
    CHECK(json_is_null(json_object_get(second, "second")));
    json_decref(root);
    free(text);
    release(s);
}

int main(void)
{
    test_sample();
    test_seconds();
    test_colour();
    test_whole_file();
    test_order();
    test_cap();
    test_visible();
    test_long_line();
    test_json();
    return check_end();
}
