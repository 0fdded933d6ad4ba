/* A client of the language server, in one process with it: messages are collected, then the server reads them all. */
#ifndef PNET_TESTS_LSP_CLIENT_H
#define PNET_TESTS_LSP_CLIENT_H

#include "compiler/lsp/lsp.h"
#include "tests/check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

struct client {
    FILE *to;
    char *sent; /* by the client */
    size_t sent_length;
    int id, version;
    size_t read,
        pause; /* bytes that the server has read; where it stops to call this, unless it is NULL: */
    void (*at_pause)(void); /* the world outside changes */
    json_t *answers;        /* all messages of the server, in order */
    const json_t **by_id;   /* [id + 1] answers to requests */
    enum pnet_status status;
    struct pnet_error error;
};

static inline void client_raw(struct client *c, const char *bytes, size_t length)
{
    fwrite(bytes, 1, length, c->to);
}

static inline void client_body(struct client *c, const char *body)
{
    fprintf(c->to, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
}

/* Takes `params`. Returns the id; of a notification, 0. */
static inline int client_message(struct client *c, const char *method, json_t *params, bool request)
{
    json_t *m = json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method);
    if (params) json_object_set_new(m, "params", params);
    if (request) json_object_set_new(m, "id", json_integer(++c->id));
    char *body = json_dumps(m, JSON_COMPACT);
    client_body(c, body);
    free(body);
    json_decref(m);
    return request ? c->id : 0;
}

/* `capabilities`: JSON. */
static inline void client_start(struct client *c, const char *capabilities)
{
    *c = (struct client){.status = PNET_OK};
    c->to = open_memstream(&c->sent, &c->sent_length);
    json_t *given = json_loads(capabilities, 0, NULL);
    CHECKF(given, "%s", capabilities);
    client_message(c, "initialize",
        json_pack("{s:n, s:n, s:o}", "processId", "rootUri", "capabilities", given), true);
    client_message(c, "initialized", json_object(), false);
}

static inline json_t *client_document(const char *uri)
{
    return json_pack("{s:{s:s}}", "textDocument", "uri", uri);
}

/* The text may have zero bytes. */
static inline void client_open_bytes(
    struct client *c, const char *uri, const char *text, size_t length)
{
    client_message(c, "textDocument/didOpen",
        json_pack("{s:{s:s, s:s, s:i, s:o}}", "textDocument", "uri", uri, "languageId", "pnet",
            "version", ++c->version, "text", json_stringn(text, length)),
        false);
}

static inline void client_open(struct client *c, const char *uri, const char *text)
{
    client_open_bytes(c, uri, text, strlen(text));
}

static inline void client_close(struct client *c, const char *uri)
{
    client_message(c, "textDocument/didClose", client_document(uri), false);
}

static inline json_t *client_range(const int at[4])
{
    return json_pack("{s:{s:i, s:i}, s:{s:i, s:i}}", "start", "line", at[0], "character", at[1],
        "end", "line", at[2], "character", at[3]);
}

/* `at`: begin and end, as line and character; NULL: the whole text. */
static inline void client_change(struct client *c, const char *uri, const int *at, const char *text)
{
    json_t *change = json_pack("{s:s}", "text", text);
    if (at) json_object_set_new(change, "range", client_range(at));
    client_message(c, "textDocument/didChange",
        json_pack("{s:{s:s, s:i}, s:[o]}", "textDocument", "uri", uri, "version", ++c->version,
            "contentChanges", change),
        false);
}

/* A request "textDocument/NAME" at a place; line -1: of the document. `more` (or NULL) joins its params. */
static inline int client_ask(
    struct client *c, const char *name, const char *uri, int line, int character, json_t *more)
{
    char method[64];
    snprintf(method, sizeof method, "textDocument/%s", name);
    json_t *params = client_document(uri);
    if (line >= 0)
        json_object_set_new(
            params, "position", json_pack("{s:i, s:i}", "line", line, "character", character));
    if (more) json_object_update(params, more);
    json_decref(more);
    return client_message(c, method, params, true);
}

/* Takes the server's output apart; every byte of it belongs to a message. */
static inline json_t *client_take_apart(const char *out, size_t length)
{
    json_t *answers = json_array();
    for (size_t at = 0; at < length;) {
        size_t size = 0;
        int head = 0;
        bool framed = sscanf(out + at, "Content-Length: %zu\r\n\r\n%n", &size, &head) == 1 &&
                      head > 0 && at + (size_t)head + size <= length;
        CHECKF(framed, "no frame: %.80s", out + at);
        if (!framed) break;
        json_error_t e;
        json_t *m = json_loadb(out + at + head, size, JSON_REJECT_DUPLICATES, &e);
        CHECKF(m, "no JSON: %s: %.*s", e.text, (int)size, out + at + head);
        const char *version = json_string_value(json_object_get(m, "jsonrpc"));
        CHECK(version && strcmp(version, "2.0") == 0);
        json_array_append_new(answers, m);
        at += (size_t)head + size;
    }
    return answers;
}

/* When the server has read all messages so far, something happens that no message tells of. */
static inline void client_pause(struct client *c, void (*at_pause)(void))
{
    fflush(c->to);
    c->pause = c->sent_length;
    c->at_pause = at_pause;
}

static inline ssize_t client_read(void *cookie, char *to, size_t size)
{
    struct client *c = cookie;
    size_t end = c->at_pause && c->read < c->pause ? c->pause : c->sent_length;
    if (c->at_pause && c->read == c->pause) c->at_pause();
    if (size > end - c->read) size = end - c->read;
    memcpy(to, c->sent + c->read, size);
    c->read += size;
    return (ssize_t)size;
}

/* Lets the server read all. */
static inline void client_run(struct client *c)
{
    char *out = NULL;
    size_t length = 0;
    fclose(c->to);
    FILE *in = fopencookie(c, "r", (cookie_io_functions_t){.read = client_read}),
         *to = open_memstream(&out, &length);
    if (!in || !to) exit(1);
    c->status = pnet_lsp_serve(in, to, &c->error);
    fclose(in);
    fclose(to);
    c->answers = client_take_apart(out, length);
    free(out);
    c->by_id = calloc((size_t)c->id + 1, sizeof *c->by_id);
    if (!c->by_id) exit(1);
    for (size_t i = 0; i < json_array_size(c->answers); i++) {
        const json_t *m = json_array_get(c->answers, i), *id = json_object_get(m, "id");
        if (!json_is_integer(id) || json_integer_value(id) > c->id) continue;
        CHECK(!c->by_id[json_integer_value(id)]); /* one answer each */
        c->by_id[json_integer_value(id)] = m;
    }
}

/* The same, and ends the session as it should end. */
static inline void client_finish(struct client *c)
{
    client_message(c, "shutdown", NULL, true);
    client_message(c, "exit", NULL, false);
    client_run(c);
    CHECKF(c->status == PNET_OK, "%s", c->error.message);
}

static inline void client_end(struct client *c)
{
    json_decref(c->answers);
    free(c->by_id);
    free(c->sent);
}

static inline const json_t *client_answer(const struct client *c, int id)
{
    CHECKF(c->by_id[id], "no answer to %d", id);
    return c->by_id[id];
}

static inline const json_t *client_result(const struct client *c, int id)
{
    const json_t *m = client_answer(c, id), *result = json_object_get(m, "result");
    CHECKF(
        result, "%s", json_string_value(json_object_get(json_object_get(m, "error"), "message")));
    return result;
}

/* 0: it did not fail. */
static inline int client_code(const struct client *c, int id)
{
    const json_t *e = json_object_get(client_answer(c, id), "error");
    return (int)json_integer_value(json_object_get(e, "code"));
}

/* What was published last for a document; NULL: nothing was. */
static inline const json_t *client_diagnostics(const struct client *c, const char *uri)
{
    const json_t *last = NULL;
    for (size_t i = 0; i < json_array_size(c->answers); i++) {
        const json_t *params = json_object_get(json_array_get(c->answers, i), "params");
        const char *of = json_string_value(json_object_get(params, "uri"));
        if (of && strcmp(of, uri) == 0) last = json_object_get(params, "diagnostics");
    }
    return last;
}

static inline int client_line(const json_t *range, const char *end)
{
    return (int)json_integer_value(json_object_get(json_object_get(range, end), "line"));
}

static inline int client_character(const json_t *range, const char *end)
{
    return (int)json_integer_value(json_object_get(json_object_get(range, end), "character"));
}

/* The byte of a place in a text whose lines end with \n, counted by UTF-16. */
static inline size_t client_offset(const char *text, int line, int character)
{
    const char *at = text;
    while (line-- > 0) at = strchr(at, '\n') + 1;
    while (character > 0) {
        unsigned char c = (unsigned char)*at;
        character -= c >= 0xf0 ? 2 : 1;
        at += c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    }
    return (size_t)(at - text);
}

/* The text with edits that do not overlap; the caller frees it. */
static inline char *client_apply(const char *text, const json_t *edits)
{
    char *out = strdup(text);
    size_t done = strlen(text) + 1;
    for (size_t left = json_array_size(edits); out && left > 0; left--) {
        const json_t *last = NULL; /* the last one before `done` */
        size_t begin = 0, end = 0;
        for (size_t i = 0; i < json_array_size(edits); i++) {
            const json_t *edit = json_array_get(edits, i), *range = json_object_get(edit, "range");
            size_t b =
                client_offset(text, client_line(range, "start"), client_character(range, "start"));
            if (b >= done || (last && b < begin)) continue;
            last = edit;
            begin = b;
            end = client_offset(text, client_line(range, "end"), client_character(range, "end"));
        }
        CHECK(last != NULL && end <= done);
        const char *with = json_string_value(json_object_get(last, "newText"));
        if (!with) break;
        char *next = malloc(strlen(out) + strlen(with) + 1);
        if (!next) exit(1);
        sprintf(next, "%.*s%s%s", (int)begin, out, with, out + end);
        free(out);
        out = next;
        done = begin;
    }
    return out;
}

#endif
