/* What no file may do: nest too deeply, be too large, include for ever; and memory that runs out.
 */
#include "compiler/internal.h"
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
    check_message(p, "one byte more",
        "t.pnet: error: the file is too large\n  help: the limit is 4194304 bytes");
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

/* A file is included once, and not read again to see that; a limit counts the files. */
static void test_include_count(void)
{
    char folder[4096], path[4200], text[64];
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/pnet-include-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) exit(1);
    char *again = repeat("pnet 1\n", "include \"big.pnet\"\n", 1000, "");
    char *big = repeat("pnet 1\n", "# comment\n", 100000, "");
    snprintf(path, sizeof path, "%s/big.pnet", folder);
    write_file(path, big);
    snprintf(path, sizeof path, "%s/main.pnet", folder);
    write_file(path, again);
    struct parsed *p = parsed_file(path);
    check_message(p, "again", NULL);
    CHECKF(p->arena.total < 20 << 20, "%zu bytes", p->arena.total);
    parsed_free(p);
    free(again);
    free(big);

    FILE *f = fopen(path, "w");
    if (!f) exit(1);
    fputs("pnet 1\n", f);
    for (int i = 1; i <= PNET_MAX_FILES; i++) {
        fprintf(f, "include \"%d.pnet\"\n", i);
        snprintf(text, sizeof text, "pnet 1\nx%d = 1\n", i);
        char included[4300];
        snprintf(included, sizeof included, "%s/%d.pnet", folder, i);
        write_file(included, text);
    }
    fclose(f);
    p = parsed_file(path);
    check_message(p, "files", "main.pnet:1025:9: error: there are too many files");
    parsed_free(p);
    char command[5000];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command)) exit(1);
}

/* What a text costs: steps of elaboration and bytes. Whatever it says, it ends within the limits, and says which
   one it met; NULL: it meets none. */
static void check_work(const char *what, char *text, const char *message)
{
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING};
    size_t length = strlen(text), ignored;
    CHECKF(length <= PNET_MAX_SOURCE_BYTES, "%s: %zu bytes", what, length);
    struct pnet_compilation *c = pnet_compile_text("t.pnet", text, length, &o);
    if (!c) exit(1);
    char *printed = NULL;
    FILE *out = open_memstream(&printed, &ignored);
    pnet_compilation_report(c, out, false, false);
    fclose(out);
    CHECKF(!c->arena.failed && c->arena.total <= PNET_MAX_BYTES, "%s: %zu bytes", what,
        c->arena.total);
    CHECKF(c->steps <= MAX_STEPS + MAX_ITEMS + 100, "%s: %lld steps", what, (long long)c->steps);
    CHECKF(strlen(printed) < 100000, "%s: messages of %zu bytes", what, strlen(printed));
    if (message)
        CHECKF(strstr(printed, message) != NULL, "%s: %.2000s", what, printed);
    else
        CHECKF(pnet_compilation_plan(c) != NULL, "%s: %.2000s", what, printed);
    free(printed);
    pnet_compilation_free(c);
    free(text);
}

/* `count` lines by a format with the number of each in it, twice. */
static char *numbered(const char *head, const char *format, int count, const char *tail)
{
    size_t room = strlen(head) + (size_t)count * (strlen(format) + 16) + strlen(tail) + 1;
    char *text = malloc(room), *at = text;
    if (!text) exit(1);
    at = stpcpy(at, head);
    for (int i = 0; i < count; i++)
        for (const char *f = format; *f; f++) {
            if (*f == '#')
                at += sprintf(at, "%d", i);
            else
                *at++ = *f;
        }
    strcpy(at, tail);
    return text;
}

static const char cloud[] = "pnet 1\ninput c { xyz : position  label : class[8] per point }\n";
static const char objective[] = "y = n(c)\nloss l = cross_entropy(y, c.label)\n";

static void test_work(void)
{
    /* wide: many of one thing */
    check_work("names", numbered(cloud, "a# = #\n", 200000, ""), "no loss");
    check_work("unknown names", numbered("pnet 1\n", "a# = b#\n", 200000, ""), "unknown name 'b0'");
    check_work("one line", numbered("pnet 1 ", "a# = b# ", 200000, ""), "unknown name 'b0'");
    check_work("params", numbered("pnet 1\n", "param a# = #\n", 150000, ""), "no loss");
    check_work(
        "duplicates", numbered("pnet 1\n", "const a = #\n", 200000, ""), "'a' is declared twice");
    check_work("nets", numbered("pnet 1\n", "net a#() { return # }\n", 100000, ""), "no loss");
    check_work("inputs", numbered("pnet 1\n", "input c# { x : position }\n", 100000, ""),
        "too many levels");
    check_work(
        "fields", numbered("pnet 1\ninput c {", " f# : feature", 200000, "}"), "over 256 fields");
    check_work("losses", numbered(cloud, "loss l# = l#\n", 150000, ""), "61 errors");
    check_work("parameters", numbered("pnet 1\nnet n(", "a#,", 300000, "b) { return 1 }"),
        "over 64 parameters");
    check_work("arguments", numbered("pnet 1\nx = f(", "a#=1,", 300000, ")"), "too many arguments");
    check_work(
        "a long list", repeat("pnet 1\nx = [", "1,", 65537, "]"), "the list has over 65536 items");
    check_work("a large list", repeat("pnet 1\nx = [", "1,", 65536, "]"), "no loss");
    check_work("a long name", repeat("pnet 1\n", "a", 4000000, " = 1"), "the name is too long");
    check_work("a long text", repeat("pnet 1\nx = \"", "a", 4000000, "\"\ny = x + 1"),
        "this cannot be computed");
    /* deep: one thing in the other */
    check_work("lists that double",
        repeat("pnet 1\nnet n() { a = [1,1] for i = 1..22 { a = [a, a] } return a }\nx = n()", "",
            0, ""),
        "too many steps");
    check_work("lists of items",
        repeat("pnet 1\nnet n() { a = [1]  for i = 0..15 { a = [a, a] }"
               " for i = 0..65535 { b = a * 2 } return b }\nx = n()",
            "", 0, ""),
        "too ");
    check_work("loops",
        repeat("pnet 1\nnet n() { for i = 0..65535 { for j = 0..65535 { } } return 1 }\nx = n()",
            "", 0, ""),
        "too many steps");
    check_work("items",
        repeat("pnet 1\nnet n() { for i = 0..65535 { t[i][65535] = i } return 1 }\nx = n()", "", 0,
            ""),
        "too ");
    check_work("defaults",
        numbered("pnet 1\nnet a(x = 1) { return x }\n", "net a#(x = b#() + b#()) { return x }\n",
            25, ""),
        "no loss");
    /* the largest that fit */
    char text[512];
    snprintf(text, sizeof text,
        "%sg = grid(c, 5cm)\nnet n(p) {\nx = ones(g) -> linear(8)\n"
        "for i = 1..32000 { x = x -> conv(8, radius=5cm+i*1mm) -> bn }\nreturn x }\n%s",
        cloud, objective);
    check_work("64,000 layers", strdup(text), NULL);
    snprintf(text, sizeof text,
        "%sg = grid(c, 5cm)\nnet n(p) {\nx = ones(g) -> linear(8)\n"
        "for i = 1..16000 { x = (x -> conv(8) -> bn -> relu) + x }\nreturn x }\n%s",
        cloud, objective);
    check_work("16,000 residuals", strdup(text), NULL);
}

/* Errors of the parser, on one line or on many, cost no more than the text is long: its tokens are counted once, and
   what is kept is bounded. The time of a test that is quadratic again is hours. */
static void test_wrong_texts(void)
{
    static const struct {
        const char *head, *unit, *message;
    } cases[] = {{"pnet 1\n", "net n( ", "unexpected 'net'"},
        {"pnet 1\nnet n() {", "for i ", "unexpected 'for'"},
        {"pnet 1\nnet n() {", "if a ", "unexpected 'if'"}, {"pnet 1\n", "x = ", "unexpected '='"},
        {"pnet 1\n", "/*", "unexpected '/*/*/'"}, {"pnet 1\n", "/* ", "unexpected '/'"},
        {"pnet 1\n", "'", "text in single quotes"}, {"pnet 1\nx = ", "\\", "unexpected character"},
        {"pnet 1\n", "(", "unexpected '('"}, {"pnet 1\n", "input c { ", "unexpected 'input'"},
        {"pnet 1\n", "block b(x) { out = ", "unexpected 'block'"},
        {"pnet 1\nx = [", "if a then ", "nested too deeply"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int count = (int)((PNET_MAX_SOURCE_BYTES - strlen(cases[i].head)) / strlen(cases[i].unit));
        check_work(
            cases[i].unit, repeat(cases[i].head, cases[i].unit, count, ""), cases[i].message);
    }
}

/* The canonical form of a file may be larger than a file may be: then there is none. */
static void test_format_size(void)
{
    static const struct {
        const char *head, *unit, *tail;
        int count;
        bool fits;
    } cases[] = {{"pnet 1\n", "x = 1 # c\n", "", 300000, true},
        {"pnet 1\nnet n() { if a { if a { if a { if a { if a {\n", "#\n", "}}}}}}\n", 1500000,
            false},
        {"pnet 1\nx = "
         "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30] # c\n",
            "y=1 #\n", "", 200000, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeat(cases[i].head, cases[i].unit, cases[i].count, cases[i].tail);
        struct parsed *p = parsed_text(text);
        size_t length = 0;
        check_message(p, cases[i].unit, NULL);
        const char *formatted = pnet_format(&p->arena, p->sources, p->file, &length);
        CHECKF((formatted != NULL) == cases[i].fits, "%s", cases[i].unit);
        CHECK(
            !p->arena.failed && length <= PNET_MAX_SOURCE_BYTES && p->arena.total < PNET_MAX_BYTES);
        parsed_free(p);
        free(text);
    }
}

/* The limit of memory that no other limit comes before: the whole is told, with no place. */
static void test_arena_limit(void)
{
    struct parsed *p = parsed_start(0);
    p->arena.limit = 1 << 20;
    char *text = repeat("pnet 1\n", "x = 1\n", 100000, "");
    size_t ignored;
    p->file = pnet_parse_text(&p->arena, p->sources, p->diags, "t.pnet", text, strlen(text));
    p = parsed_end(p);
    CHECK(!p->file && p->arena.failed && p->arena.full && p->arena.total <= 1 << 20);
    CHECK_STR(p->messages,
        "t.pnet: error: the model is too large: it takes more than 448 MiB of memory\n");
    char *json = NULL;
    FILE *out = open_memstream(&json, &ignored);
    pnet_diags_json(p->diags, out);
    fclose(out);
    CHECK(strstr(json, "\"message\": \"the model is too large"));
    free(json);
    parsed_free(p);
    free(text);
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
    test_include_count();
    test_unreadable();
    test_memory();
    test_work();
    test_wrong_texts();
    test_format_size();
    test_arena_limit();
    return check_end();
}
