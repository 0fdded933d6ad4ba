/* The session: its states, requests and their answers. */
#include "compiler/lsp/lsp.h"
#include "compiler/lsp/internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void pnet_lsp_fail(struct reply *r, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
    r->code = code;
}

const char *pnet_lsp_string(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static void put_id(struct pnet_json *j, const json_t *id)
{
    if (json_is_integer(id))
        pnet_json_int(j, "id", json_integer_value(id));
    else if (json_is_string(id))
        pnet_json_string(j, "id", json_string_value(id));
    else
        pnet_json_null(j, "id");
}

/* Sends the reply and frees it. */
static void answer(struct server *s, const json_t *id, struct reply *r)
{
    static const char key[] = ",\"result\":";
    struct pnet_json j = {0};
    pnet_json_begin(&j, NULL, '{');
    pnet_json_string(&j, "jsonrpc", "2.0");
    put_id(&j, id);
    if (r->code) {
        pnet_json_begin(&j, "error", '{');
        pnet_json_int(&j, "code", r->code);
        pnet_json_string(&j, "message", r->message);
        pnet_json_end(&j, '}');
    } else {
        s->no_memory |= r->result.failed || !r->result.text;
        if (!s->no_memory) {
            pnet_json_raw(&j, key, sizeof key - 1);
            pnet_json_raw(&j, r->result.text, r->result.size);
        }
    }
    pnet_json_end(&j, '}');
    pnet_json_free(&r->result);
    if (s->no_memory)
        pnet_json_free(&j);
    else
        s->no_memory |= !pnet_lsp_write(s->out, &j);
}

static void refuse(struct server *s, const json_t *id, int code, const char *message)
{
    struct reply r = {0};
    pnet_lsp_fail(&r, code, "%s", message);
    answer(s, id, &r);
}

/* The member of members: "general.positionEncodings". */
static const json_t *look(const json_t *at, const char *path)
{
    char name[64];
    while (at && *path) {
        size_t length = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        at = json_object_get(at, name);
        path += length + (path[length] == '.');
    }
    return at;
}

static bool holds(const json_t *list, const char *word)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *item = pnet_lsp_string(json_array_get(list, i));
        if (item && strcmp(item, word) == 0) return true;
    }
    return false;
}

static void put_capabilities(struct server *s, struct pnet_json *j)
{
    static const char *const triggers[] = {".", ">", "(", ",", "=", ":"};
    pnet_json_begin(j, "capabilities", '{');
    pnet_json_string(j, "positionEncoding", s->utf8 ? "utf-8" : "utf-16");
    pnet_json_begin(j, "textDocumentSync", '{');
    pnet_json_bool(j, "openClose", true);
    pnet_json_int(j, "change", 2); /* incremental */
    pnet_json_begin(j, "save", '{');
    pnet_json_bool(j, "includeText", true);
    pnet_json_end(j, '}');
    pnet_json_end(j, '}');
    pnet_json_begin(j, "completionProvider", '{');
    pnet_json_begin(j, "triggerCharacters", '[');
    for (size_t i = 0; i < sizeof triggers / sizeof *triggers; i++)
        pnet_json_string(j, NULL, triggers[i]);
    pnet_json_end(j, ']');
    pnet_json_end(j, '}');
    pnet_json_bool(j, "hoverProvider", true);
    pnet_json_bool(j, "definitionProvider", true);
    pnet_json_bool(j, "referencesProvider", true);
    pnet_json_bool(j, "documentSymbolProvider", true);
    pnet_json_bool(j, "documentFormattingProvider", true);
    pnet_json_begin(j, "renameProvider", '{');
    pnet_json_bool(j, "prepareProvider", true);
    pnet_json_end(j, '}');
    pnet_json_end(j, '}');
}

static void initialize(struct server *s, json_t *params, struct reply *r)
{
    if (s->initialized) {
        pnet_lsp_fail(r, PNET_LSP_INVALID_REQUEST, "the session is initialized already");
        return;
    }
    if (!json_is_object(params)) {
        pnet_lsp_fail(r, PNET_LSP_INVALID_PARAMS, "expected params");
        return;
    }
    const json_t *c = json_object_get(params, "capabilities");
    s->utf8 = holds(look(c, "general.positionEncodings"), "utf-8");
    s->markdown_hover = holds(look(c, "textDocument.hover.contentFormat"), "markdown");
    s->markdown_completion =
        holds(look(c, "textDocument.completion.completionItem.documentationFormat"), "markdown");
    s->nested_symbols =
        json_is_true(look(c, "textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"));
    s->versioned_edits = json_is_true(look(c, "workspace.workspaceEdit.documentChanges"));
    s->initialized = true;
    pnet_json_begin(&r->result, NULL, '{');
    put_capabilities(s, &r->result);
    pnet_json_begin(&r->result, "serverInfo", '{');
    pnet_json_string(&r->result, "name", "pnetc");
    pnet_json_string(&r->result, "version", PNET_VERSION);
    pnet_json_end(&r->result, '}');
    pnet_json_end(&r->result, '}');
}

static void shut_down(struct server *s, json_t *params, struct reply *r)
{
    (void)params;
    s->shut_down = true;
    pnet_json_null(&r->result, NULL);
}

static const struct request {
    const char *method;
    void (*run)(struct server *s, json_t *params, struct reply *r);
} requests[] = {{"initialize", initialize}, {"shutdown", shut_down},
    {"textDocument/hover", pnet_lsp_hover}, {"textDocument/completion", pnet_lsp_completion},
    {"textDocument/definition", pnet_lsp_definition},
    {"textDocument/references", pnet_lsp_references},
    {"textDocument/prepareRename", pnet_lsp_prepare_rename},
    {"textDocument/rename", pnet_lsp_rename}, {"textDocument/formatting", pnet_lsp_formatting},
    {"textDocument/documentSymbol", pnet_lsp_symbols}};

/* Notifications that are not listed are none of the server's: initialized; $/cancelRequest, because each request is answered
   before the next message is read. */
static const struct notice {
    const char *method;
    void (*run)(struct server *s, json_t *params);
    bool edits; /* tells of a text that the editor holds */
} notices[] = {{"textDocument/didOpen", pnet_lsp_did_open, true},
    {"textDocument/didChange", pnet_lsp_did_change, true},
    {"textDocument/didClose", pnet_lsp_did_close, true},
    {"textDocument/didSave", pnet_lsp_did_save, false},
    {"workspace/didChangeWatchedFiles", pnet_lsp_files_changed, false}};

static const struct notice *find_notice(const char *method)
{
    for (size_t i = 0; i < sizeof notices / sizeof *notices; i++)
        if (strcmp(notices[i].method, method) == 0) return &notices[i];
    return NULL;
}

/* A message was refused: texts are out of step if it may have been about them. `method`: NULL: not known. */
static void lose_texts(struct server *s, const char *method, const json_t *params)
{
    const struct notice *n = method ? find_notice(method) : NULL;
    if (!s->initialized || s->shut_down || !s->documents || (method && !(n && n->edits))) return;
    pnet_lsp_lose(s, params, "a message could not be read");
}

static void run_request(struct server *s, const char *method, const json_t *id, json_t *params)
{
    const struct request *q = NULL;
    for (size_t i = 0; i < sizeof requests / sizeof *requests && !q; i++)
        if (strcmp(requests[i].method, method) == 0) q = &requests[i];
    struct reply r = {0};
    if (s->shut_down)
        pnet_lsp_fail(&r, PNET_LSP_INVALID_REQUEST, "the session is shut down");
    else if (!s->initialized && (!q || q->run != initialize))
        pnet_lsp_fail(&r, PNET_LSP_NOT_INITIALIZED, "the session is not initialized");
    else if (!q && find_notice(method))
        pnet_lsp_fail(
            &r, PNET_LSP_INVALID_REQUEST, "'%s' is a notification, without an id", method);
    else if (!q)
        pnet_lsp_fail(&r, PNET_LSP_METHOD_NOT_FOUND, "there is no method '%.128s'", method);
    else
        q->run(s, params, &r);
    answer(s, id, &r);
    lose_texts(s, method, params);
}

static void run_notice(struct server *s, const char *method, json_t *params)
{
    if (strcmp(method, "exit") == 0) s->ended = true;
    if (!s->initialized || s->shut_down) return;
    const struct notice *n = find_notice(method);
    if (n) n->run(s, params);
}

static void handle(struct server *s, json_t *message)
{
    const char *version = pnet_lsp_string(json_object_get(message, "jsonrpc")),
               *method = pnet_lsp_string(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id");
    json_t *params = json_object_get(message, "params");
    bool known_id = json_is_integer(id) || pnet_lsp_string(id);
    bool right = json_is_object(message) && version && strcmp(version, "2.0") == 0;
    bool response = json_object_get(message, "result") || json_object_get(message, "error");
    if (right && !json_object_get(message, "method") && response)
        return; /* nothing is asked of the client */
    const char *problem = NULL;
    if (!right)
        problem = "expected a message of JSON-RPC 2.0";
    else if (!method || (id && !known_id) ||
             (params && !json_is_object(params) && !json_is_array(params) && !json_is_null(params)))
        problem = "expected a method, and an id that is an integer or a string";
    if (problem) {
        refuse(s, known_id ? id : NULL, PNET_LSP_INVALID_REQUEST, problem);
        if (params || !json_is_object(message)) lose_texts(s, method, params);
    } else if (id) {
        run_request(s, method, id, params);
    } else {
        run_notice(s, method, params);
    }
}

static void read_message(struct server *s, char *body, size_t length)
{
    json_t *message;
    struct pnet_error e;
    struct pnet_json_reading how = {.zeros = true};
    s->halves = pnet_json_replace_halves(body, length);
    enum pnet_status st = pnet_json_read("message", body, length, &how, &message, &e);
    if (st == PNET_NO_MEMORY) {
        s->no_memory = true;
    } else if (st) {
        refuse(s, NULL, PNET_LSP_PARSE_ERROR, e.message);
        lose_texts(s, NULL, NULL);
    } else {
        handle(s, message);
    }
    json_decref(message);
}

enum pnet_status pnet_lsp_serve(FILE *in, FILE *out, struct pnet_error *e)
{
    struct server s = {.in = in, .out = out};
    enum pnet_status st = PNET_OK;
    bool broken = false;
    while (!s.ended && !s.no_memory && !ferror(out)) {
        char *body;
        size_t length;
        enum frame f = pnet_lsp_read(in, &body, &length);
        if (f == FRAME_MESSAGE) {
            read_message(&s, body, length);
            free(body);
        } else if (f == FRAME_LONG) {
            refuse(&s, NULL, PNET_LSP_INVALID_REQUEST, "the message is longer than 64 MiB");
            lose_texts(&s, NULL, NULL);
        } else if (f == FRAME_BROKEN) {
            broken = s.ended = true;
            refuse(&s, NULL, PNET_LSP_PARSE_ERROR,
                "expected Content-Length, at most 1 GiB, an empty line, and as many bytes");
        } else {
            s.no_memory |= f == FRAME_NO_MEMORY;
            s.ended = true;
        }
    }
    if (s.no_memory)
        st = pnet_error_memory(e);
    else if (broken)
        st = pnet_error_set(
            e, PNET_FAILED, "standard input: this is no stream of the language server protocol");
    else if (!s.shut_down)
        st = pnet_error_set(e, PNET_FAILED, "the session ended without a shutdown");
    pnet_lsp_free_documents(&s);
    return st;
}
