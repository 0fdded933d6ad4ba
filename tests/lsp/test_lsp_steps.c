/* The texts of the server and of the editor stay in step: with every string that JSON allows; and where a message cannot be read,
   nothing is said of a text or edited until its whole text has come. */
#include "tests/lsp/client.h"

static const char uri[] = "file:///nowhere/main.pnet", other[] = "file:///nowhere/other.pnet";

enum { REQUEST_FAILED = -32803 };

/* ---- strings ---- */

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* A text as an editor has it: units of UTF-16, of which a surrogate may have lost its other half. */
struct units {
    uint16_t at[4096];
    size_t count;
};

static void units_splice(
    struct units *u, size_t begin, size_t end, const uint16_t *with, size_t count)
{
    if (u->count - (end - begin) + count > 4096) exit(1);
    memmove(u->at + begin + count, u->at + end, (u->count - end) * sizeof *u->at);
    memcpy(u->at + begin, with, count * sizeof *with);
    u->count += count - (end - begin);
}

/* Sends units as JSON: each one escaped, so that any of them can be sent. */
static void client_units(
    struct client *c, const char *before, const uint16_t *units, size_t count, const char *after)
{
    char *body = malloc(strlen(before) + 6 * count + strlen(after) + 1), *at = body;
    if (!body) exit(1);
    at = stpcpy(at, before);
    for (size_t i = 0; i < count; i++) at += sprintf(at, "\\u%04x", units[i]);
    strcpy(at, after);
    client_body(c, body);
    free(body);
}

/* The line whose text is changed: units of any kind, then a name that must be found where it is. */
static const char above[] = "pnet 1\nparam r = 5cm\ninput cloud { xyz : position }\n",
                  begin_of_line[] = "x = ones(grid(cloud, r)) -> conv(4, name=\"",
                  end_of_line[] = "\", radius=r)\n";
enum { LINE = 3 };

static void change_units(
    struct client *c, size_t begin, size_t end, const uint16_t *with, size_t count)
{
    char before[512];
    snprintf(before, sizeof before,
        "{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": "
        "{\"textDocument\": "
        "{\"uri\": \"%s\", \"version\": %d}, \"contentChanges\": [{\"range\": {\"start\": "
        "{\"line\": %d, "
        "\"character\": %zu}, \"end\": {\"line\": %d, \"character\": %zu}}, \"text\": \"",
        uri, ++c->version, LINE, begin, LINE, end);
    client_units(c, before, with, count, "\"}]}}");
}

static size_t character_of_last(const json_t *list)
{
    size_t last = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *range = json_object_get(json_array_get(list, i), "range");
        size_t character = (size_t)client_character(range, "start");
        if (client_line(range, "start") == LINE && character > last) last = character;
    }
    return last;
}

/* Edits at any unit, also between the two of a pair, with units of any kind: the name after them stays where it is. With `zeros`
   it is the first zero byte whose place tells. */
static void check_units(unsigned seed, bool zeros)
{
    static const uint16_t pieces[][4] = {{'a'}, {0xe4}, {0x2192}, {0xd83d, 0xde80}, {0xd83d},
        {0xde80}, {0xde80, 0xd83d}, {0xfffd, 'b'}, {'c', 0xd83d, 0xde80, 'd'}};
    struct client c;
    struct units u = {.count = 0};
    char *whole = malloc(sizeof above + sizeof begin_of_line + sizeof end_of_line);
    if (!whole) exit(1);
    sprintf(whole, "%s%s%s", above, begin_of_line, end_of_line);
    client_start(&c, "{}");
    client_open(&c, uri, whole);
    free(whole);
    size_t first = strlen(begin_of_line), want[60];
    int ask[60];
    for (int i = 0; i < 60; i++) {
        size_t begin = draw(&seed, (unsigned)u.count + 1), end = begin, count = 0;
        if (!draw(&seed, 3))
            end += draw(&seed, (unsigned)(u.count - begin < 4 ? u.count - begin : 4) + 1);
        const uint16_t *with = pieces[draw(&seed, sizeof pieces / sizeof *pieces)];
        while (count < 4 && with[count]) count++;
        static const uint16_t zero[1] = {0};
        if (zeros && !draw(&seed, 4)) {
            with = zero;
            count = 1;
        }
        change_units(&c, first + begin, first + end, with, count);
        units_splice(&u, begin, end, with, count);
        ask[i] = client_ask(&c, "references", uri, 1, 6, json_pack("{s:{}}", "context"));
        want[i] = first + u.count + strlen("\", radius=");
    }
    client_finish(&c);
    for (int i = 0; i < 60 && !zeros; i++)
        CHECKF(
            character_of_last(client_result(&c, ask[i])) == want[i], "seed %u, edit %d", seed, i);
    size_t zero = 0;
    while (zero < u.count && u.at[zero]) zero++;
    const json_t *last = client_diagnostics(&c, uri);
    const char *message = json_string_value(json_object_get(json_array_get(last, 0), "message"));
    if (zero < u.count) {
        CHECKF(message && strncmp(message, "byte 0x00 is no text\n", 21) == 0 &&
                   character_of_last(last) == first + zero,
            "seed %u", seed);
    }
    client_end(&c);
}

/* The fault itself: what is inserted is in the text, is taken out again, and formatting knows of both. */
static void check_inserted(const char *escaped, bool utf8, int width)
{
    static const char text[] = "pnet 1\n# a\nx=1\n", want[] = "pnet 1\n# a\ny = 1\n";
    struct client c;
    char body[512];
    client_start(&c, utf8 ? "{\"general\": {\"positionEncodings\": [\"utf-8\"]}}" : "{}");
    client_open(&c, uri, text);
    snprintf(body, sizeof body,
        "{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": "
        "{\"textDocument\": {\"uri\": "
        "\"%s\", \"version\": %d}, \"contentChanges\": [{\"range\": {\"start\": {\"line\": 1, "
        "\"character\": 2}, "
        "\"end\": {\"line\": 1, \"character\": 2}}, \"text\": \"%s\"}]}}",
        uri, ++c.version, escaped);
    client_body(&c, body);
    client_change(&c, uri, (const int[]){1, 2 + width, 1, 3 + width}, "b\n"); /* a */
    client_change(&c, uri, (const int[]){1, 2, 2, 0}, "a"); /* takes it out, and the line end */
    client_change(&c, uri, (const int[]){2, 0, 2, 1}, "y");
    int format = client_ask(&c, "formatting", uri, -1, -1, NULL);
    client_finish(&c);
    CHECK(json_array_size(client_result(&c, format)) == 1);
    char *got = client_apply("pnet 1\n# a\ny=1\n", client_result(&c, format));
    CHECK_STR(got, want);
    free(got);
    for (size_t i = 0; i < json_array_size(c.answers); i++)
        CHECK(!json_object_get(json_array_get(c.answers, i), "error"));
    client_end(&c);
}

/* Formatting writes no line with half a pair: it would be U+FFFD then. It does write lines with U+FFFD. */
static void check_formatting_of_halves(const char *escaped, bool refused)
{
    struct client c;
    char body[512];
    client_start(&c, "{}");
    snprintf(body, sizeof body,
        "{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didOpen\", \"params\": "
        "{\"textDocument\": {\"uri\": "
        "\"%s\", \"version\": 1, \"text\": \"pnet 1\\nx=1 # %s\\n\"}}}",
        uri, escaped);
    client_body(&c, body);
    int all = client_ask(&c, "formatting", uri, -1, -1, NULL);
    client_change(&c, uri, (const int[]){1, 0, 1, 3}, "x = 1 ");
    client_change(&c, uri, (const int[]){2, 0, 2, 0}, "y=1\n"); /* a line without any */
    int rest = client_ask(&c, "formatting", uri, -1, -1, NULL);
    client_finish(&c);
    CHECKF(client_code(&c, all) == (refused ? REQUEST_FAILED : 0), "%s", escaped);
    CHECKF(json_array_size(client_result(&c, rest)) == 1, "%s", escaped);
    client_end(&c);
}

/* ---- messages that cannot be read ---- */

static const char utf8_client[] = "{\"general\": {\"positionEncodings\": [\"utf-8\"]}}";
#define CHANGE                                                                                     \
    "{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": "                  \
    "{\"textDocument\": {\"uri\": \"file:///nowhere/main.pnet\", \"version\": 5}"
#define RANGE(a, b, c, d)                                                                          \
    "{\"range\": {\"start\": {\"line\": " #a ", \"character\": " #b "}, \"end\": {\"line\": " #c   \
    ", \"character\": " #d "}}"

/* Of two documents that are open; LOSES_NONE: the message leaves both in step. */
enum loss { LOSES_NONE, LOSES_ONE, LOSES_BOTH };
static const struct {
    const char *body;
    enum loss loss;
    bool utf8;
} messages[] = {
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, 0) ", \"text\": \"# \"}]}", LOSES_BOTH,
        false}, /* a brace is missing */
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, 0) ", \"text\": \"\xff\"}]}}", LOSES_BOTH,
        false},
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, 0) ", \"text\": \"\xed\xa0\x80\"}]}}",
        LOSES_BOTH, false},
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, 0) ", \"text\": \"a\", \"text\": \"b\"}]}}",
        LOSES_BOTH, false},
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, 0) ", \"text\": \"\t\"}]}}", LOSES_BOTH,
        false},
    {CHANGE ", \"contentChanges\": [" RANGE(
         0, 0, 0, 0) ", \"text\": \"a\", \"rangeLength\": 99999999999999999999}]}}",
        LOSES_BOTH, false},
    {"\xef\xbb\xbf{}", LOSES_BOTH, false},
    {"", LOSES_BOTH, false},
    {"[" CHANGE ", \"contentChanges\": []}}]", LOSES_BOTH, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": []}", LOSES_BOTH,
        false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\"}", LOSES_BOTH, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": 7}", LOSES_BOTH,
        false},
    {"{\"jsonrpc\": \"2.0\", \"method\": 7, \"params\": {\"contentChanges\": []}}", LOSES_BOTH,
        false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\\u0000\", \"params\": {}}",
        LOSES_BOTH, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": "
     "{\"textDocument\": {\"uri\": 3}}}",
        LOSES_BOTH, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": "
     "{\"textDocument\": {\"uri\": "
     "\"file:///nowhere/main.pnet\\u0000\"}, \"contentChanges\": [{\"text\": \"\"}]}}",
        LOSES_BOTH, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didOpen\", \"params\": {\"textDocument\": "
     "{\"text\": \"\"}}}",
        LOSES_BOTH, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didClose\", \"params\": {\"textDocument\": "
     "{}}}",
        LOSES_BOTH, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didOpen\", \"params\": {\"textDocument\": "
     "{\"uri\": "
     "\"file:///nowhere/main.pnet\", \"version\": 5}}}",
        LOSES_ONE, false},
    {"{\"jsonrpc\": \"2.0\", \"id\": 900, \"method\": \"textDocument/didChange\", \"params\": "
     "{\"textDocument\": {\"uri\": "
     "\"file:///nowhere/main.pnet\", \"version\": 5}, \"contentChanges\": [{\"text\": \"\"}]}}",
        LOSES_ONE, false},
    {"{\"jsonrpc\": \"1.0\", \"method\": \"textDocument/didChange\", \"params\": "
     "{\"textDocument\": {\"uri\": "
     "\"file:///nowhere/main.pnet\", \"version\": 5}, \"contentChanges\": [{\"text\": \"\"}]}}",
        LOSES_ONE, false},
    {CHANGE "}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": {}}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [7]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [{}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [{\"text\": 7}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, 0) "}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [{\"range\": 7, \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [{\"range\": {}, \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(-1, 0, 0, 0) ", \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, -1) ", \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(0, 0, 0, 1.5) ", \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(1, 0, 0, 0) ", \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(3, 0, 99, 0) ", \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(3, 0, 4, 1) ", \"text\": \"\"}]}}", LOSES_ONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(1, 7, 1, 7) ", \"text\": \"\"}, 7]}}", LOSES_ONE,
        false},
    {CHANGE ", \"contentChanges\": [" RANGE(1, 3, 1, 3) ", \"text\": \"\"}]}}", LOSES_ONE,
        true}, /* inside of an ä */
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": "
     "{\"textDocument\": {\"uri\": "
     "\"file:///nowhere/main.pnet\", \"version\": 1}, \"contentChanges\": [" RANGE(
         0, 0, 0, 0) ", \"text\": \"\"}]}}",
        LOSES_ONE, false},
    /* these say nothing that is lost */
    {CHANGE ", \"contentChanges\": []}}", LOSES_NONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(3, 0, 3, 99) ", \"text\": \"\"}]}}", LOSES_NONE, false},
    {CHANGE ", \"contentChanges\": [" RANGE(4, 0, 4, 0) ", \"text\": \"\"}]}}", LOSES_NONE,
        false}, /* after the last line */
    {CHANGE ", \"contentChanges\": [7, {\"text\": \"pnet 1\\n# \xc3\xa4\\nx=1\\n\"}]}}", LOSES_NONE,
        false}, /* the whole text follows */
    {CHANGE
        ", \"contentChanges\": [{\"range\": null, \"text\": \"pnet 1\\n# \xc3\xa4\\nx=1\\n\"}]}}",
        LOSES_NONE, false},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/didChange\", \"params\": "
     "{\"textDocument\": {\"uri\": "
     "\"file:///nowhere/main.pnet\", \"version\": 2000}, \"contentChanges\": [" RANGE(
         0, 0, 0, 0) ", \"text\": \"\"}]}}",
        LOSES_NONE, false},
    {"{}", LOSES_NONE, false},
    {"{\"jsonrpc\": \"2.0\", \"id\": 900, \"method\": \"textDocument/hover\", \"params\": 7}",
        LOSES_NONE, false},
    {"{\"jsonrpc\": \"2.0\", \"id\": 900, \"result\": {}}", LOSES_NONE, false},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"textDocument/hover\", \"params\": {}}",
        LOSES_NONE, false},
    {"{\"jsonrpc\": \"2.0\", \"id\": 900, \"method\": \"workspace/symbol\", \"params\": "
     "{\"query\": \"\\ud800\"}}",
        LOSES_NONE, false},
};

/* How many times the document was said to be lost. */
static int times_lost(const struct client *c, const char *of)
{
    int times = 0;
    for (size_t i = 0; i < json_array_size(c->answers); i++) {
        const json_t *params = json_object_get(json_array_get(c->answers, i), "params"),
                     *first = json_array_get(json_object_get(params, "diagnostics"), 0);
        const char *name = json_string_value(json_object_get(params, "uri")),
                   *message = json_string_value(json_object_get(first, "message"));
        times += name && message && strcmp(name, of) == 0 &&
                 strncmp(message, "the server does not have this text any more", 43) == 0;
    }
    return times;
}

enum { REQUESTS = 8 };

/* Every request, of `x` in line 2. */
static void ask_all(struct client *c, const char *of, int ids[REQUESTS])
{
    static const char *const names[] = {"hover", "completion", "definition", "references",
        "prepareRename", "documentSymbol", "formatting"};
    for (int i = 0; i < 7; i++) ids[i] = client_ask(c, names[i], of, i < 5 ? 2 : -1, 0, NULL);
    ids[7] = client_ask(c, "rename", of, 2, 0, json_pack("{s:s}", "newName", "z"));
}

static const char text[] = "pnet 1\n# \xc3\xa4\nx=1\n";

enum { OPEN, REOPEN, WHOLE, SAVE, WAYS };

/* The whole text comes, in one of the ways. */
static void bring(struct client *c, const char *of, int way)
{
    json_t *saved = client_document(of);
    json_object_set_new(saved, "text", json_string(text));
    if (way == REOPEN) client_close(c, of);
    if (way == OPEN || way == REOPEN) client_open(c, of, text);
    if (way == WHOLE) client_change(c, of, NULL, text);
    if (way == SAVE)
        client_message(c, "textDocument/didSave", saved, false);
    else
        json_decref(saved);
}

static void check_answers(const struct client *c, const int ids[REQUESTS], bool lost, size_t row)
{
    for (int i = 0; i < REQUESTS; i++)
        CHECKF(client_code(c, ids[i]) == (lost ? REQUEST_FAILED : 0), "message %zu, request %d: %d",
            row, i, client_code(c, ids[i]));
}

static void check_message(size_t row, int way)
{
    enum loss loss = messages[row].loss;
    struct client c;
    int first[REQUESTS], later[REQUESTS], after[REQUESTS], second[REQUESTS];
    client_start(&c, messages[row].utf8 ? utf8_client : "{}");
    client_open(&c, other, text);
    client_open(&c, uri, text);
    client_body(&c, messages[row].body);
    ask_all(&c, uri, first);
    ask_all(&c, other, second);
    c.version = 3000;
    if (loss) { /* edits that fit do not help */
        client_change(&c, uri, (const int[]){0, 0, 0, 0}, "#");
        ask_all(&c, uri, later);
    }
    bring(&c, uri, way);
    if (loss == LOSES_BOTH) bring(&c, other, way);
    ask_all(&c, uri, after);
    client_finish(&c);
    check_answers(&c, first, loss != LOSES_NONE, row);
    if (loss) check_answers(&c, later, true, row);
    check_answers(&c, after, false, row);
    for (int i = 0; i < REQUESTS;
         i++) /* names of the other one may occur in the one that is lost */
        CHECKF(client_code(&c, second[i]) ==
                   (loss == LOSES_BOTH || (loss && i == 7) ? REQUEST_FAILED : 0),
            "message %zu, request %d of the other", row, i);
    CHECKF(times_lost(&c, uri) == (loss != LOSES_NONE), "message %zu", row);
    CHECKF(times_lost(&c, other) == (loss == LOSES_BOTH), "message %zu", row);
    const json_t *last = client_diagnostics(&c, uri);
    CHECK(json_array_size(last) == 1 && /* 'x' is never used */
          json_integer_value(json_object_get(json_array_get(last, 0), "severity")) == 2);
    char *got = client_apply(text, client_result(&c, after[6]));
    CHECK_STR(got, "pnet 1\n# \xc3\xa4\nx = 1\n");
    free(got);
    client_end(&c);
}

/* A message of more than 64 MiB may have been a change. */
static void check_long_message(void)
{
    enum { LENGTH = (64 << 20) + 1 };
    struct client c;
    int ids[REQUESTS];
    char *body = malloc(LENGTH + 1);
    if (!body) exit(1);
    memset(body, ' ', LENGTH);
    body[LENGTH] = 0;
    client_start(&c, "{}");
    client_open(&c, uri, text);
    client_body(&c, body);
    free(body);
    ask_all(&c, uri, ids);
    client_finish(&c);
    check_answers(&c, ids, true, 0);
    client_end(&c);
}

/* ---- documents that belong together ---- */

static void lose_one(struct client *c, const char *of)
{
    client_change(c, of, (const int[]){90, 0, 91, 0}, "");
}

/* What a document includes is lost: of names, nothing is said; its own text can be formatted. A document that has nothing to do
   with it only cannot rename. */
static void check_include(void)
{
    static const char main_text[] = "pnet 1\ninclude \"other.pnet\"\nx=v\n",
                      third[] = "file:///nowhere/third.pnet";
    struct client c;
    client_start(&c, "{}");
    client_open(&c, uri, main_text);
    client_open(&c, other, "pnet 1\nparam v = 1\n");
    client_open(&c, third, "pnet 1\nx=1\n");
    int before = client_ask(&c, "rename", uri, 2, 2, json_pack("{s:s}", "newName", "z"));
    lose_one(&c, other);
    int hover = client_ask(&c, "hover", uri, 2, 2, NULL),
        define = client_ask(&c, "definition", uri, 2, 2, NULL),
        rename = client_ask(&c, "rename", uri, 2, 2, json_pack("{s:s}", "newName", "z")),
        format = client_ask(&c, "formatting", uri, -1, -1, NULL),
        hover_third = client_ask(&c, "hover", third, 1, 0, NULL),
        rename_third = client_ask(&c, "rename", third, 1, 0, json_pack("{s:s}", "newName", "z"));
    client_change(&c, other, NULL, "pnet 1\n\nparam v = 1\n");
    int after = client_ask(&c, "rename", uri, 2, 2, json_pack("{s:s}", "newName", "z"));
    client_finish(&c);
    CHECK(client_code(&c, hover) == REQUEST_FAILED && client_code(&c, define) == REQUEST_FAILED);
    CHECK(client_code(&c, rename) == REQUEST_FAILED &&
          client_code(&c, rename_third) == REQUEST_FAILED);
    CHECK(json_array_size(client_result(&c, format)) == 1 &&
          json_is_object(client_result(&c, hover_third)));
    const int ids[] = {before, after};
    for (int i = 0; i < 2; i++) {
        const json_t *changes = json_object_get(client_result(&c, ids[i]), "changes"),
                     *edit = json_array_get(json_object_get(changes, other), 0);
        CHECK(json_object_size(changes) == 2 &&
              client_line(json_object_get(edit, "range"), "start") == 1 + i);
    }
    int checked = 0;
    for (size_t i = 0; i < json_array_size(c.answers); i++) {
        char *said = json_dumps(json_array_get(c.answers, i), JSON_COMPACT);
        checked += strstr(said, "this file is not checked") && strstr(said, uri);
        free(said);
    }
    CHECKF(checked == 1, "%d", checked);
    CHECK(json_array_size(client_diagnostics(&c, uri)) == 1);
    client_end(&c);
}

/* The editor changes a document that the server has not got: it is not read from disk in its place. */
static void check_unknown(void)
{
    struct client c;
    client_start(&c, "{}");
    client_open(&c, uri, "pnet 1\ninclude \"other.pnet\"\nx=v\n");
    client_change(&c, other, (const int[]){0, 0, 0, 0}, "");
    int ask = client_ask(&c, "hover", other, 0, 0, NULL),
        hover = client_ask(&c, "hover", uri, 2, 0, NULL);
    client_close(&c, other);
    int closed = client_ask(&c, "hover", uri, 2, 0, NULL);
    client_finish(&c);
    CHECK(client_code(&c, ask) == REQUEST_FAILED && client_code(&c, hover) == REQUEST_FAILED);
    CHECK(client_code(&c, closed) == 0 && times_lost(&c, other) == 1);
    client_end(&c);
}

/* Saved texts: the one that the server has changes nothing; another one replaces it. */
static void check_saved(void)
{
    struct client c;
    client_start(&c, "{}");
    client_open(&c, uri, "pnet 1\ny=1\n");
    bring(&c, uri, SAVE);
    int format = client_ask(&c, "formatting", uri, -1, -1, NULL);
    client_finish(&c);
    const json_t *edit = json_array_get(client_result(&c, format), 0);
    CHECK_STR(json_string_value(json_object_get(edit, "newText")), "x = 1\n");
    client_end(&c);
}

/* Edits carry the versions of their texts where the client takes them. */
static void check_versions(void)
{
    struct client c;
    client_start(&c, "{\"workspace\": {\"workspaceEdit\": {\"documentChanges\": true}}}");
    client_open(&c, uri, text);
    client_change(&c, uri, (const int[]){0, 0, 0, 0}, "");
    int rename = client_ask(&c, "rename", uri, 2, 0, json_pack("{s:s}", "newName", "z"));
    client_finish(&c);
    const json_t *result = client_result(&c, rename),
                 *one = json_array_get(json_object_get(result, "documentChanges"), 0),
                 *of = json_object_get(one, "textDocument");
    CHECK(json_object_size(result) == 1 && json_integer_value(json_object_get(of, "version")) == 2);
    CHECK_STR(json_string_value(json_object_get(of, "uri")), uri);
    CHECK(json_array_size(json_object_get(one, "edits")) == 1);
    client_end(&c);
}

static char part[4096];

static void write_part(const char *content)
{
    FILE *f = fopen(part, "w");
    CHECK(f && fputs(content, f) >= 0);
    if (f) fclose(f);
}

static void add_a_line(void)
{
    write_part("pnet 1\n# new\nparam v = 1\n");
}

/* A file that is not open changes on disk, and the editor sends no notice: a rename edits the text that the disk has now. */
static void check_disk(void)
{
    char folder[4000], main_uri[4096], part_uri[4200];
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/pnet-steps-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(part, sizeof part, "%s/part.pnet", folder);
    snprintf(main_uri, sizeof main_uri, "file://%s/main.pnet", folder);
    snprintf(part_uri, sizeof part_uri, "file://%s", part);
    write_part("pnet 1\nparam v = 1\n");
    struct client c;
    client_start(&c, "{}");
    client_open(&c, main_uri, "pnet 1\ninclude \"part.pnet\"\nx = v\n");
    int ids[2];
    for (int i = 0; i < 2; i++) {
        ids[i] = client_ask(&c, "rename", main_uri, 2, 4, json_pack("{s:s}", "newName", "z"));
        if (i == 0) client_pause(&c, add_a_line);
    }
    client_finish(&c);
    for (int i = 0; i < 2; i++) {
        const json_t *changes = json_object_get(client_result(&c, ids[i]), "changes"),
                     *edit = json_array_get(json_object_get(changes, part_uri), 0);
        CHECKF(edit && client_line(json_object_get(edit, "range"), "start") == 1 + i, "%d", i);
    }
    client_end(&c);
    CHECK(remove(part) == 0 && rmdir(folder) == 0);
}

int main(void)
{
    for (unsigned seed = 1; seed <= 40; seed++) check_units(seed, seed % 2);
    static const struct {
        const char *escaped;
        int units, bytes;
    } strings[] = {{"\\u0000", 1, 1}, {"\\ud800", 1, 3}, {"\\udfff", 1, 3},
        {"\\ud83d\\ude80", 2, 4}, {"\\ude80\\ud83d\\u0000", 3, 7}, {"\\ufffd", 1, 3}};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        check_inserted(strings[i].escaped, false, strings[i].units);
        check_inserted(strings[i].escaped, true, strings[i].bytes);
    }
    check_formatting_of_halves("\\ud800", true);
    check_formatting_of_halves("a\\udc00b", true);
    check_formatting_of_halves("\\ufffd", false);
    check_formatting_of_halves("\\ud83d\\ude80", false);
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        for (int way = 0; way < WAYS; way++) check_message(i, way);
    check_long_message();
    check_include();
    check_unknown();
    check_saved();
    check_versions();
    check_disk();
    return check_end();
}
