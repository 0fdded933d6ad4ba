/* Sessions as they stand in tests/lsp/golden: what the client says, and all that the server answers.

   A line of `--- session` is a body in JSON, or short for one, with places as line:character, from 0:
     capabilities JSON            begins another session, with these
     open NAME [FILE]             the text of FILE as that of NAME, which need not be on disk
     change NAME L:C-L:C TEXT     TEXT in JSON, with its quotes
     replace NAME FILE            the whole text
     save NAME, close NAME
     symbols NAME, format NAME
     hover NAME L:C, and likewise complete, define, refer, prepare
     rename NAME L:C NEW
     end                          shutdown and exit */
#include "tests/lang/golden.h"
#include "tests/lsp/client.h"

static char here[4096];

static void uri_of(const char *name, char *uri, size_t size)
{
    if (strchr(name, ':'))
        snprintf(uri, size, "%s", name);
    else
        snprintf(uri, size, "file://%s/%s", here, name);
}

/* The answers, one a line; of completions, only the labels and details. */
static void print_answers(const struct client *c, FILE *out)
{
    for (size_t i = 0; i < json_array_size(c->answers); i++) {
        json_t *m = json_array_get(c->answers, i), *result = json_object_get(m, "result");
        json_object_del(m, "jsonrpc");
        json_object_del(json_object_get(result, "serverInfo"), "version");
        for (size_t k = 0; k < json_array_size(result); k++)
            json_object_del(json_array_get(result, k), "documentation");
        char *text = json_dumps(m, JSON_SORT_KEYS);
        size_t length = strlen(here);
        for (const char *at = text; *at;) {
            bool folder = strncmp(at, here, length) == 0;
            fputs(folder ? "DIR" : (char[]){*at, 0}, out);
            at += folder ? length : 1;
        }
        fputc('\n', out);
        free(text);
    }
    if (c->status) fprintf(out, "status %d: %s\n", c->status, c->error.message);
}

static void finish(struct client *c, FILE *out)
{
    client_run(c);
    print_answers(c, out);
    client_end(c);
}

static void open_text(struct client *c, const char *uri, const char *file, bool whole)
{
    size_t length;
    char *text = golden_read(file, &length);
    CHECKF(text, "%s", file);
    if (text && whole) client_change(c, uri, NULL, text);
    if (text && !whole) client_open(c, uri, text);
    free(text);
}

static void short_change(struct client *c, const char *uri, const char *rest)
{
    int at[4], n = 0;
    CHECKF(
        sscanf(rest, "%d:%d-%d:%d %n", &at[0], &at[1], &at[2], &at[3], &n) == 4 && n, "%s", rest);
    json_t *text = json_loads(rest + n, JSON_DECODE_ANY, NULL);
    CHECKF(json_is_string(text), "%s", rest);
    client_change(c, uri, at, json_string_value(text));
    json_decref(text);
}

static void short_place(struct client *c, const char *verb, const char *uri, const char *rest)
{
    static const char *const verbs[][2] = {{"hover", "hover"}, {"complete", "completion"},
        {"define", "definition"}, {"refer", "references"}, {"prepare", "prepareRename"},
        {"rename", "rename"}};
    int line = -1, character = -1, n = 0;
    sscanf(rest, "%d:%d %n", &line, &character, &n);
    json_t *more = NULL;
    if (strcmp(verb, "refer") == 0)
        more = json_pack("{s:{s:b}}", "context", "includeDeclaration", 1);
    if (strcmp(verb, "rename") == 0) more = json_pack("{s:s}", "newName", rest + n);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verb, verbs[i][0]) == 0) {
            client_ask(c, verbs[i][1], uri, line, character, more);
            return;
        }
    CHECKF(false, "no verb %s", verb);
    json_decref(more);
}

static void short_line(struct client *c, const char *line)
{
    char verb[16] = "", name[256] = "", uri[5000];
    int n = 0;
    sscanf(line, "%15s %255s %n", verb, name, &n);
    const char *rest = line + n;
    uri_of(name, uri, sizeof uri);
    if (strcmp(verb, "open") == 0)
        open_text(c, uri, *rest ? rest : name, false);
    else if (strcmp(verb, "replace") == 0)
        open_text(c, uri, rest, true);
    else if (strcmp(verb, "change") == 0)
        short_change(c, uri, rest);
    else if (strcmp(verb, "save") == 0)
        client_message(c, "textDocument/didSave", client_document(uri), false);
    else if (strcmp(verb, "close") == 0)
        client_close(c, uri);
    else if (strcmp(verb, "symbols") == 0)
        client_ask(c, "documentSymbol", uri, -1, -1, NULL);
    else if (strcmp(verb, "format") == 0)
        client_ask(c, "formatting", uri, -1, -1, NULL);
    else
        short_place(c, verb, uri, rest);
}

static void run(FILE *out)
{
    struct client c;
    size_t length;
    char *session = golden_read("session", &length), *next = session;
    CHECK(session && getcwd(here, sizeof here));
    if (!session) return;
    bool begun = false;
    for (char *line; (line = strsep(&next, "\n"));) {
        if (strncmp(line, "capabilities ", 13) == 0) {
            if (begun) finish(&c, out);
            client_start(&c, line + 13);
            begun = true;
        } else if (*line == '{' || *line == '[') {
            client_body(&c, line);
        } else if (strcmp(line, "end") == 0) {
            client_message(&c, "shutdown", NULL, true);
            client_message(&c, "exit", NULL, false);
        } else if (*line) {
            short_line(&c, line);
        }
    }
    if (begun) finish(&c, out);
    free(session);
}

int main(void)
{
    CHECK(golden_run("tests/lsp/golden/session.txt", run) == 7);
    CHECK(golden_run("tests/lsp/golden/diagnostics.txt", run) == 7);
    CHECK(golden_run("tests/lsp/golden/names.txt", run) == 7);
    CHECK(golden_run("tests/lsp/golden/complete.txt", run) == 6);
    CHECK(golden_run("tests/lsp/golden/text.txt", run) == 4);
    return check_end();
}
