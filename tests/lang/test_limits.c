/* What no file may do: nest too deeply, be too large, include for ever; and memory that runs out.
 */
#include "tests/lang/parsed.h"

#include <sys/stat.h>
#include <unistd.h>

/* head, `count` times `unit`, tail; the caller frees it. */
static char *repeat(const char *head, const char *unit, int count, const char *tail)
{
    size_t step = strlen(unit), length = strlen(head) + step * (size_t)count + strlen(tail);
    char *text = malloc(length + 1), *at = text;
    if (!text) exit(1);
    at = stpcpy(at, head);
    for (int i = 0; i < count; i++) at = stpcpy(at, unit);
    memcpy(at, tail, strlen(tail) + 1);
    return text;
}

static char *join(char *head, char *tail)
{
    char *text = repeat(head, tail, 1, "");
    free(head);
    free(tail);
    return text;
}

static void check_message(const struct parsed *p, const char *what, const char *message)
{
    if (message)
        CHECKF(parsed_errors(p) == 1 && strstr(p->messages, message), "%s: %s", what, p->messages);
    else
        CHECKF(parsed_errors(p) == 0, "%s: %s", what, p->messages);
}

/* A text that nests `count` levels with `open`, and closes them again. */
static void check_nesting(const char *head, const char *open, const char *middle, const char *close,
    const char *tail, int count, bool fits)
{
    char *text = join(repeat(head, open, count, middle), repeat("", close, count, tail));
    struct parsed *p = parsed_text(text);
    check_message(p, open, fits ? NULL : "error: this is nested too deeply");
    parsed_free(p);
    free(text);
}

/* The greatest number of levels that fits. */
static int nesting_limit(
    const char *head, const char *open, const char *middle, const char *close, const char *tail)
{
    int low = 0, high = 1000;
    while (high - low > 1) {
        int count = (low + high) / 2;
        char *text = join(repeat(head, open, count, middle), repeat("", close, count, tail));
        struct parsed *p = parsed_text(text);
        *(parsed_errors(p) ? &high : &low) = count;
        parsed_free(p);
        free(text);
    }
    return low;
}

static void test_nesting(void)
{
    static const struct {
        const char *head, *open, *middle, *close, *tail;
    } cases[] = {
        {"pnet 1\nx = ", "(", "a", ")", "\n"},
        {"pnet 1\nx = ", "[", "a", "]", "\n"},
        {"pnet 1\nx = a", "[b", "", "]", "\n"},
        {"pnet 1\nx = ", "f(", "a", ")", "\n"},
        {"pnet 1\nx = ", "f(a=", "a", ")", "\n"},
        {"pnet 1\nx = ", "not ", "a", "", "\n"},
        {"pnet 1\nx = ", "- ", "a", "", "\n"},
        {"pnet 1\nx = a", " + a", "", "", "\n"},
        {"pnet 1\nx = a", " -> f", "", "", "\n"},
        {"pnet 1\nx = a", ".b", "", "", "\n"},
        {"pnet 1\nx = a", "[0]", "", "", "\n"},
        {"pnet 1\nx = ", "if a then b else ", "c", "", "\n"},
        {"pnet 1\nx = ", "if ", "c", " then a else b", "\n"},
        {"pnet 1\nnet f(p) { ", "for i = 0..1 { ", "x = 3", " }", " }\n"},
        {"pnet 1\nnet f(p) { ", "if a { ", "x = 3", " }", " }\n"},
        {"pnet 1\nnet f(p) { ", "if a { x = 3 } else ", "{ x = 3 }", "", " }\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *head = cases[i].head, *open = cases[i].open, *middle = cases[i].middle;
        const char *close = cases[i].close, *tail = cases[i].tail;
        int limit = nesting_limit(head, open, middle, close, tail);
        CHECKF(limit >= 90 && limit <= PNET_MAX_NESTING, "%s: %d", open, limit);
        check_nesting(head, open, middle, close, tail, limit, true);
        check_nesting(head, open, middle, close, tail, limit + 1, false);
        check_nesting(head, open, middle, close, tail, 100000, false);
    }
}

/* No path of a tree is longer than what consumers may rely on. */
static int height(const struct pnet_expr *e)
{
    return e->kind == PNET_EXPR_BINARY ? 1 + height(e->binary.left) : 1;
}

static void test_height(void)
{
    char *text = repeat("pnet 1\nx = a", " + a", PNET_MAX_NESTING - 2, "\n");
    struct parsed *p = parsed_text(text);
    check_message(p, "sum", NULL);
    const struct pnet_stmt *s = p->file->items->stmt;
    CHECK(s->height == PNET_MAX_NESTING);
    CHECK(s->assign.value->height == PNET_MAX_NESTING - 1);
    CHECK(height(s->assign.value) == PNET_MAX_NESTING - 1);
    parsed_free(p);
    free(text);
}

static void test_sizes(void)
{
    /* Wide is not deep. */
    char *text = repeat("pnet 1\nx = [", "1,", 100000, "]\n");
    struct parsed *p = parsed_text(text);
    check_message(p, "list", NULL);
    CHECK(p->file->items->stmt->assign.value->list.count == 100000);
    parsed_free(p);
    free(text);

    text = repeat("pnet 1\nx = [", "1,", PNET_MAX_NODES, "]\n");
    p = parsed_text(text);
    check_message(p, "nodes", "there are too many expressions and statements");
    parsed_free(p);
    free(text);

    const char *comment = "# 34567\n";
    text = repeat("pnet 1 \n", comment, PNET_MAX_SOURCE_BYTES / 8 - 1, "");
    CHECK(strlen(text) == PNET_MAX_SOURCE_BYTES);
    p = parsed_text(text);
    check_message(p, "bytes", NULL);
    parsed_free(p);
    free(text);
    text = repeat("pnet 1 \n", comment, PNET_MAX_SOURCE_BYTES / 8 - 1, " ");
    p = parsed_text(text);
    check_message(p, "one byte more", "t.pnet: error: the file is too large");
    parsed_free(p);
    free(text);
}

/* Many errors and many lines take no more than proportional time. */
static void test_error_count(void)
{
    char *text = repeat("pnet 1\n", "x = )\n", 200000, "");
    struct parsed *p = parsed_text(text);
    CHECK(parsed_errors(p) == 200000);
    CHECK(strstr(p->messages, "\n200000 errors, 0 warnings\n"));
    parsed_free(p);
    free(text);
    text = repeat("pnet 1\nx = ", ")", 200000, "\n");
    p = parsed_text(text);
    CHECK(parsed_errors(p) == 1);
    parsed_free(p);
    free(text);
    text = repeat("pnet 1\n\n", "## doc\n", 100000, "x = 3\n");
    p = parsed_text(text);
    CHECK(strlen(p->file->items->doc) == 100000 * 4 - 1);
    parsed_free(p);
    free(text);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    if (!f) return;
    fputs(text, f);
    fclose(f);
}

static void test_include_depth(void)
{
    char folder[4096], path[4200], text[64];
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/pnet-include-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) exit(1);
    for (int i = 0; i <= PNET_MAX_INCLUDE_DEPTH + 1; i++) {
        snprintf(path, sizeof path, "%s/%d.pnet", folder, i);
        snprintf(text, sizeof text, "pnet 1\ninclude \"%d.pnet\"\nx%d = 3\n", i + 1, i);
        write_file(path, i <= PNET_MAX_INCLUDE_DEPTH ? text : "pnet 1\n");
    }
    snprintf(path, sizeof path, "%s/1.pnet", folder);
    struct parsed *p = parsed_file(path);
    check_message(p, "depth", NULL);
    int assigned = 0;
    for (const struct pnet_item *i = p->file->items; i; i = i->next)
        assigned += i->kind == PNET_ITEM_ASSIGN;
    CHECK(assigned == PNET_MAX_INCLUDE_DEPTH);
    /* What is included stands in place, so the innermost comes first. */
    CHECK(strstr(p->tree, "x16 = 3\nx15 = 3\n"));
    parsed_free(p);
    snprintf(path, sizeof path, "%s/0.pnet", folder);
    p = parsed_file(path);
    check_message(p, "depth", "includes are nested too deeply");
    parsed_free(p);
    for (int i = 0; i <= PNET_MAX_INCLUDE_DEPTH + 1; i++) {
        snprintf(path, sizeof path, "%s/%d.pnet", folder, i);
        unlink(path);
    }
    rmdir(folder);
}

static void test_unreadable(void)
{
    struct parsed *p = parsed_file("/nowhere/x.pnet");
    CHECK(!p->file && !p->arena.failed);
    CHECK_STR(
        p->messages, "/nowhere/x.pnet: error: cannot read the file: No such file or directory\n");
    parsed_free(p);
    p = parsed_file("tests");
    CHECK(!p->file);
    CHECK_STR(p->messages, "tests: error: cannot read the file: Is a directory\n");
    parsed_free(p);
}

/* With memory out at the n-th request, for every n: no tree with holes, nothing leaks or crashes.
 */
static void check_memory(const char *text, bool format)
{
    size_t length = strlen(text);
    for (size_t n = 1;; n++) {
        struct parsed *p = parsed_bytes(text, length, n);
        bool formatted = false;
        size_t formatted_length;
        if (p->file && format)
            formatted = pnet_format(&p->arena, p->sources, p->file, &formatted_length) != NULL;
        bool failed = p->arena.failed;
        CHECK(failed == (p->arena.calls >= n));
        CHECK(failed || p->file);
        CHECK(!(failed && formatted));
        parsed_free(p);
        if (!failed) {
            CHECKF(n > 50, "only %zu allocations", n);
            break;
        }
    }
}

static void test_memory(void)
{
    check_memory(
        "pnet 1\n## file\n## more\ninput p { a : b[3] per c }\nblock f(a, b: c = 3) { out = in }\n"
        "net g(p) {\n  x[0] = [1, \"t\"] -> f(k=5cm) * 2 # c\n  for i = 1..2 { y = -a.b }\n"
        "  if not a { z = 3 } else { return if a then b else c[0] }\n}\n",
        true);
    check_memory("pnet 1\nx = )\ny = 5foo\nz = f(a\nnet f(p) {\n  w = 1.\n  v = true }\n}\n$\n"
                 "include \"/nowhere\"\ninclude \"/dev/null\"\nq = \"abc\n",
        false);
}

int main(void)
{
    test_nesting();
    test_height();
    test_sizes();
    test_error_count();
    test_include_depth();
    test_unreadable();
    test_memory();
    return check_end();
}
