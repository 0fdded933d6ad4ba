/* What holds for every text: the server's diagnostics are those of `check`; edits in pieces leave the text that they should; a
   renamed model is a model; definitions and references belong together; formatting is that of `fmt`. */
#include "compiler/compile.h"
#include "compiler/op_page.h"
#include "lang/parse.h"
#include "tests/lang/golden.h"
#include "tests/lsp/client.h"

#include <ctype.h>
#include <glob.h>

static const char uri[] = "file:///nowhere/main.pnet";
static const struct pnet_compile_options options = {.purpose = PNET_FOR_EVAL};

/* ---- diagnostics ---- */

/* Where memory ran out, another line will do: the server holds more of a model than `check`. */
static bool has_message(const json_t *list, const char *message, uint32_t line)
{
    bool anywhere = strcmp(message, "the model takes too much memory to compile") == 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *d = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(d, "message"));
        size_t length = strcspn(text, "\n");
        if (length == strlen(message) && memcmp(text, message, length) == 0 &&
            (anywhere || client_line(json_object_get(d, "range"), "start") + 1 == (int)line))
            return true;
    }
    return false;
}

static const json_t *diagnostics_of(const struct client *c, const char *file)
{
    char cwd[4096], of[5000];
    if (!getcwd(cwd, sizeof cwd)) exit(1);
    snprintf(of, sizeof of, "file://%s/%s", cwd, file);
    return client_diagnostics(c, of);
}

/* Prints what the golden file has: the messages of the parser, or of the compiler. Returns the number of syntax errors, behind
   which the server may say more than `check`. */
static int print_expected(bool parser_alone, const struct pnet_compilation *c, FILE *out)
{
    struct pnet_arena a = {0};
    struct pnet_sources *s = pnet_sources_new(&a);
    struct pnet_diags *d = pnet_diags_new(&a, s);
    pnet_parse_file(&a, s, d, "main.pnet");
    int errors = pnet_diags_errors(d);
    if (parser_alone)
        pnet_diags_print(d, out, false);
    else
        pnet_compilation_report(c, out, false, false);
    pnet_arena_free(&a);
    return errors;
}

static bool parser_alone;
static int compared;

static void compare_published(const struct client *c, const struct pnet_diags *diags, bool more)
{
    size_t published = 0;
    for (size_t i = 0; i < json_array_size(c->answers); i++) {
        const json_t *params = json_object_get(json_array_get(c->answers, i), "params");
        published += json_array_size(json_object_get(params, "diagnostics"));
    }
    for (int i = 0; i < pnet_diags_count(diags); i++) {
        struct pnet_diag_record r;
        pnet_diags_record(diags, i, &r);
        CHECKF(has_message(diagnostics_of(c, r.file), r.message, r.line ? r.line : 1), "%s: %s",
            r.file, r.message);
        compared++;
    }
    bool cut = pnet_diags_errors(diags) + pnet_diags_warnings(diags) > pnet_diags_count(diags);
    if (!more)
        CHECKF(published == (size_t)pnet_diags_count(diags) + cut, "%zu published, %d found",
            published, pnet_diags_count(diags));
}

/* Of the cases of the compiler's tests: each message of `check` is published, at its line of its file; and where there is no
   syntax error, nothing else is. */
static void compare_case(FILE *out)
{
    char cwd[4096], of[5000];
    size_t length;
    char *text = golden_read("main.pnet", &length);
    if (!text || !getcwd(cwd, sizeof cwd)) exit(1);
    struct pnet_compilation *want = pnet_compile_file("main.pnet", &options);
    int syntax = print_expected(parser_alone, want, out);
    json_t *sendable = json_stringn(text, length); /* what is no text cannot be sent */
    if (sendable) {
        struct client c;
        snprintf(of, sizeof of, "file://%s/main.pnet", cwd);
        client_start(&c, "{}");
        client_open_bytes(&c, of, text, length);
        client_finish(&c);
        compare_published(&c, pnet_compilation_diags(want), syntax > 0);
        client_end(&c);
    }
    json_decref(sendable);
    pnet_compilation_free(want);
    free(text);
}

static void diagnostics_are_those_of_check(void)
{
    static const char *const files[] = {"elaborate", "rules", "limits", "attention", "lexical",
        "syntax", "recovery", "place", "include"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        snprintf(path, sizeof path, "tests/lang/golden/%s.txt", files[i]);
        parser_alone = i >= 4;
        CHECK(golden_run(path, compare_case) > 0);
    }
    CHECKF(compared > 300, "%d messages", compared);
}

/* ---- models ---- */

struct model {
    char *text;
    char path[256];
};

static struct model *models;
static size_t model_count;

static void read_models(void)
{
    glob_t files;
    CHECK(glob("models/*.pnet", 0, NULL, &files) == 0 &&
          glob("tests/lang/models/*.pnet", GLOB_APPEND, NULL, &files) == 0);
    models = calloc(files.gl_pathc, sizeof *models);
    for (size_t i = 0; models && i < files.gl_pathc; i++) {
        size_t length;
        models[i].text = golden_read(files.gl_pathv[i], &length);
        snprintf(models[i].path, sizeof models[i].path, "%s", files.gl_pathv[i]);
        if (models[i].text) model_count++;
    }
    globfree(&files);
    CHECK(model_count > 10);
}

/* Places of all words outside of comments; returns how many. */
static int find_words(const char *text, int (*at)[2], int most)
{
    int line = 0, character = 0, count = 0;
    bool comment = false, word = false;
    for (; *text && count < most; text++) {
        bool letter = isalnum((unsigned char)*text) || *text == '_';
        if (*text == '#') comment = true;
        if (letter && !word && !comment && !isdigit((unsigned char)*text)) {
            at[count][0] = line;
            at[count++][1] = character;
        }
        word = letter;
        character += ((unsigned char)*text & 0xc0) == 0x80 ? 0
                     : (unsigned char)*text >= 0xf0        ? 2
                                                           : 1;
        if (*text == '\n') {
            line++;
            character = 0;
            comment = false;
        }
    }
    return count;
}

static int errors_of(const char *text)
{
    struct pnet_compilation *c = pnet_compile_text("renamed.pnet", text, strlen(text), &options);
    int errors = pnet_compilation_errors(c);
    pnet_compilation_free(c);
    return errors;
}

static size_t count_words(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) count++;
    return count;
}

enum { MOST = 4000 };

/* Every name of every model gets another one: the model still compiles, has that name at as many places as the old one was
   referred to, and gets its old text back by the same way. */
static void renamed_models_are_models(void)
{
    static int at[MOST][2], rename[MOST], refer[MOST];
    size_t renamed = 0;
    for (size_t m = 0; m < model_count; m++) {
        const char *text = models[m].text;
        int count = find_words(text, at, MOST), before = errors_of(text);
        struct client c;
        client_start(&c, "{}");
        client_open(&c, uri, text);
        for (int i = 0; i < count; i++) {
            rename[i] = client_ask(
                &c, "rename", uri, at[i][0], at[i][1], json_pack("{s:s}", "newName", "zz_new"));
            refer[i] = client_ask(&c, "references", uri, at[i][0], at[i][1],
                json_pack("{s:{s:b}}", "context", "includeDeclaration", 1));
        }
        client_finish(&c);
        for (int i = 0; i < count; i++) {
            if (client_code(&c, rename[i])) continue;
            const json_t *changes = json_object_get(client_result(&c, rename[i]), "changes"),
                         *edits = json_object_get(changes, uri);
            char *new = client_apply(text, edits);
            CHECKF(errors_of(new) == before, "%s:%d:%d", models[m].path, at[i][0], at[i][1]);
            size_t places = json_array_size(client_result(&c, refer[i]));
            CHECKF(places == json_array_size(edits) && places == count_words(new, "zz_new"),
                "%s:%d:%d: %zu places", models[m].path, at[i][0], at[i][1], places);
            renamed++;
            free(new);
        }
        client_end(&c);
    }
    CHECKF(renamed > 1000, "%zu renamed", renamed);
}

static bool is_in(const json_t *list, const json_t *location)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), location)) return true;
    return false;
}

/* A definition is one of the references, and so is the place asked about. */
static void definitions_are_references(void)
{
    static int at[MOST][2], define[MOST], refer[MOST];
    size_t defined = 0;
    for (size_t m = 0; m < model_count; m++) {
        int count = find_words(models[m].text, at, MOST);
        struct client c;
        client_start(&c, "{}");
        client_open(&c, uri, models[m].text);
        for (int i = 0; i < count; i++) {
            define[i] = client_ask(&c, "definition", uri, at[i][0], at[i][1], NULL);
            refer[i] = client_ask(&c, "references", uri, at[i][0], at[i][1],
                json_pack("{s:{s:b}}", "context", "includeDeclaration", 1));
        }
        client_finish(&c);
        for (int i = 0; i < count; i++) {
            const json_t *d = client_result(&c, define[i]), *r = client_result(&c, refer[i]);
            if (json_is_null(d)) continue;
            defined++;
            bool here = false;
            for (size_t k = 0; k < json_array_size(r); k++) {
                const json_t *range = json_object_get(json_array_get(r, k), "range");
                here |= client_line(range, "start") == at[i][0] &&
                        client_character(range, "start") == at[i][1];
            }
            CHECKF(here && is_in(r, d), "%s:%d:%d", models[m].path, at[i][0], at[i][1]);
        }
        client_end(&c);
    }
    CHECKF(defined > 1000, "%zu defined", defined);
}

/* ---- edits ---- */

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* The line and the UTF-16 column of a byte, counted from the begin of the text. */
static void place_of(const char *text, size_t offset, int *line, int *character)
{
    *line = *character = 0;
    for (size_t i = 0; i < offset; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c & 0xc0) != 0x80) *character += c >= 0xf0 ? 2 : 1;
        if (c == '\n') {
            ++*line;
            *character = 0;
        }
    }
}

static size_t draw_place(unsigned *state, const char *text)
{
    size_t at = draw(state, (unsigned)strlen(text) + 1);
    while (at && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
    return at;
}

/* Many edits at random, also of characters of two UTF-16 units: what the server holds then is what it would have been sent as a
   whole. Its diagnostics and symbols tell. */
static void edits_in_pieces_equal_the_whole(unsigned seed)
{
    static const char *const pieces[] = {"", "x", "\n", "y = 1\n",
        "# \xc3\xa4\xf0\x9f\x9a\x80 \xe2\x86\x92\n", "param p = 5cm\n", "(", ")", " -> relu",
        "\"\xf0\x9f\x9a\x80\"", "input T : pose\n"};
    const char other[] = "file:///elsewhere/main.pnet";
    struct client c;
    char *text = strdup(models[seed % model_count].text);
    client_start(&c, "{}");
    client_open(&c, uri, text);
    for (int i = 0; i < 60; i++) {
        size_t a = draw_place(&seed, text), b = draw(&seed, 3) ? a : draw_place(&seed, text);
        if (b > a + 200) b = a;
        size_t begin = a < b ? a : b, end = a < b ? b : a;
        const char *with = pieces[draw(&seed, sizeof pieces / sizeof *pieces)];
        int at[4];
        place_of(text, begin, &at[0], &at[1]);
        place_of(text, end, &at[2], &at[3]);
        client_change(&c, uri, at, with);
        char *next = malloc(strlen(text) + strlen(with) + 1);
        if (!next) exit(1);
        sprintf(next, "%.*s%s%s", (int)begin, text, with, text + end);
        free(text);
        text = next;
    }
    int symbols = client_ask(&c, "documentSymbol", uri, -1, -1, NULL);
    client_open(&c, other, text);
    int same = client_ask(&c, "documentSymbol", other, -1, -1, NULL);
    client_finish(&c);
    char *got = json_dumps(client_diagnostics(&c, uri), JSON_SORT_KEYS),
         *want = json_dumps(client_diagnostics(&c, other), JSON_SORT_KEYS);
    for (char *at; got && (at = strstr(got, "nowhere"));) memcpy(at, "other..", 7);
    for (char *at; want && (at = strstr(want, "elsewhere"));) {
        memcpy(at, "other..", 7);
        memmove(at + 7, at + 9, strlen(at + 9) + 1);
    }
    CHECKF(got && want && strcmp(got, want) == 0, "seed %u", seed);
    CHECK(json_array_size(client_result(&c, symbols)) == json_array_size(client_result(&c, same)));
    free(got);
    free(want);
    free(text);
    client_end(&c);
}

/* How many errors the parser alone finds. */
static int syntax_errors_of(const char *text)
{
    struct pnet_arena a = {0};
    struct pnet_sources *s = pnet_sources_new(&a);
    struct pnet_diags *d = pnet_diags_new(&a, s);
    pnet_parse_text(&a, s, d, "main.pnet", text, strlen(text));
    int errors = pnet_diags_errors(d);
    pnet_arena_free(&a);
    return errors;
}

/* A statement that loses its value, and the rest of its line, is a syntax error; nothing else is wrong with the model then. */
static void nothing_follows_from_a_syntax_error(void)
{
    int broken = 0;
    for (size_t m = 0; m < model_count; m++) {
        const char *text = models[m].text;
        for (const char *at = text; (at = strstr(at, " = ")); at += 3) {
            const char *end = strchr(at, '\n');
            char *torn = malloc(strlen(text) + 1);
            if (!torn || !end) exit(1);
            sprintf(torn, "%.*s%s", (int)(at + 3 - text), text, end);
            struct client c;
            client_start(&c, "{}");
            client_open(&c, uri, torn);
            client_finish(&c);
            int errors = syntax_errors_of(torn),
                got = (int)json_array_size(client_diagnostics(&c, uri));
            char *said = json_dumps(client_diagnostics(&c, uri), JSON_COMPACT);
            CHECKF(got == errors || !errors, "%s: %.*s: %s", models[m].path, 40, at - 10, said);
            broken += errors > 0;
            free(said);
            free(torn);
            client_end(&c);
        }
    }
    CHECKF(broken > 200, "%d broken", broken);
}

/* The text of `fmt`. */
static char *formatted(const char *text)
{
    struct pnet_arena a = {0};
    struct pnet_sources *s = pnet_sources_new(&a);
    struct pnet_diags *d = pnet_diags_new(&a, s);
    struct pnet_file *f = pnet_parse_text(&a, s, d, "main.pnet", text, strlen(text));
    size_t length;
    char *out = strdup(pnet_format(&a, s, f, &length));
    pnet_arena_free(&a);
    return out;
}

static void formatting_is_that_of_fmt(void)
{
    for (size_t m = 0; m < model_count; m++) {
        /* spaces and empty lines where none belong */
        char *loose = malloc(4 * strlen(models[m].text) + 1), *out = loose;
        bool comment = false;
        if (!loose) exit(1);
        for (const char *at = models[m].text; *at; at++) {
            comment = *at == '#' || (comment && *at != '\n');
            if (!comment && (*at == ' ' || *at == '\n') && (at - models[m].text) % 3 == 0)
                *out++ = *at;
            *out++ = *at;
        }
        *out = 0;
        struct client c;
        client_start(&c, "{}");
        client_open(&c, uri, loose);
        int id = client_ask(&c, "formatting", uri, -1, -1, NULL);
        client_finish(&c);
        char *got = client_apply(loose, client_result(&c, id)), *want = formatted(loose);
        CHECKF(strcmp(got, want) == 0, "%s", models[m].path);
        CHECK(strcmp(got, loose) != 0);
        free(got);
        free(want);
        free(loose);
        client_end(&c);
    }
}

static char *page_of(const struct pnet_op *op, bool markdown)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    pnet_op_page(op, markdown, out);
    fclose(out);
    while (length && text[length - 1] == '\n') text[--length] = 0;
    return text;
}

/* Of every layer, loss and metric the hover is its page, and completion names its arguments. */
static void hovers_are_pages(void)
{
    static const char *const capabilities[] = {
        "{}", "{\"textDocument\": {\"hover\": {\"contentFormat\": [\"markdown\"]}}}"};
    for (int i = 0; i < 2 * pnet_op_count; i++) {
        const struct pnet_op *op = pnet_ops[i / 2];
        char text[256], *page = page_of(op, i % 2);
        struct client c;
        snprintf(text, sizeof text, "pnet 1\nx = %s()\n", op->name);
        client_start(&c, capabilities[i % 2]);
        client_open(&c, uri, text);
        int hover = client_ask(&c, "hover", uri, 1, 5, NULL);
        int complete = client_ask(&c, "completion", uri, 1, 5 + (int)strlen(op->name), NULL);
        client_finish(&c);
        const json_t *contents = json_object_get(client_result(&c, hover), "contents");
        CHECK_STR(json_string_value(json_object_get(contents, "value")), page);
        for (int a = 0; a < PNET_MAX_ARGS && op->args[a].name; a++) {
            char label[64];
            bool listed = false;
            snprintf(label, sizeof label, "%s=", op->args[a].name);
            for (size_t k = 0; k < json_array_size(client_result(&c, complete)); k++) {
                const json_t *item = json_array_get(client_result(&c, complete), k);
                listed |= strcmp(json_string_value(json_object_get(item, "label")), label) == 0;
            }
            CHECKF(listed, "%s of %s", label, op->name);
        }
        free(page);
        client_end(&c);
    }
}

int main(void)
{
    hovers_are_pages();
    read_models();
    diagnostics_are_those_of_check();
    renamed_models_are_models();
    definitions_are_references();
    for (unsigned seed = 1; seed <= 20; seed++) edits_in_pieces_equal_the_whole(seed);
    nothing_follows_from_a_syntax_error();
    formatting_is_that_of_fmt();
    for (size_t m = 0; m < model_count; m++) free(models[m].text);
    free(models);
    return check_end();
}
