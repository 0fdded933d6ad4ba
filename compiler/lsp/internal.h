/* What the files of the language server share. */
#ifndef PNET_COMPILER_LSP_INTERNAL_H
#define PNET_COMPILER_LSP_INTERNAL_H

#include "compiler/inspect.h"
#include "compiler/lsp/index.h"
#include "runtime/base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum {
    PNET_LSP_MAX_BODY =
        64
        << 20, /* bytes of a message: a text of the largest size, every byte of it escaped, fits */
    PNET_LSP_MAX_SKIP =
        1 << 30, /* a longer message is answered and skipped up to here; beyond, the server ends */
};

/* Codes of errors, of JSON-RPC and of the protocol. */
enum {
    PNET_LSP_PARSE_ERROR = -32700,
    PNET_LSP_INVALID_REQUEST = -32600,
    PNET_LSP_METHOD_NOT_FOUND = -32601,
    PNET_LSP_INVALID_PARAMS = -32602,
    PNET_LSP_NOT_INITIALIZED = -32002,
    PNET_LSP_REQUEST_FAILED = -32803,
};

/* A text that the editor holds. */
struct document {
    char *uri;
    char *path; /* of a file; of other URIs, the URI */
    struct pnet_held_text held;
    char *text; /* of `held` */
    int64_t version;
    bool has_version;
    bool stale; /* to be compiled anew */
    bool
        lost; /* out of step: `text` may not be what the editor holds, so nothing is said of it and nothing edited */
    bool halves;  /* U+FFFD may stand for half a surrogate pair, which UTF-8 cannot hold */
    bool on_disk; /* there is a file at `path`: */
    dev_t device;
    ino_t inode;
    struct pnet_compilation *compilation;
    bool
        part; /* of another open document; of two that include each other, the one opened first is not */
    size_t number; /* its place in the order in which they were opened */
    /* [source_count] of `compilation`: the open document of each; NULL: none is. */
    struct document **sources;
    uint32_t source_count;
    struct pnet_index *index; /* of `compilation`; made when first asked for */
    struct document *next;    /* in the order in which they were opened */
};

/* What was published last for a file. */
struct published {
    char *uri, *text;
    struct published *next;
};

struct server {
    FILE *in, *out;
    bool initialized, shut_down, ended;
    bool utf8; /* positions count bytes, not UTF-16 */
    bool markdown_hover, markdown_completion, nested_symbols;
    bool versioned_edits; /* the client takes edits with the versions of the texts that they fit */
    bool no_memory;       /* sticks; ends the server */
    bool halves; /* the message at hand had halves of surrogate pairs, which U+FFFD replaces */
    struct document *documents;
    struct published *published;
};

/* A response under construction. */
struct reply {
    struct pnet_json result; /* one value */
    int code;                /* 0: no error */
    char message[256];
};

void pnet_lsp_fail(struct reply *r, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The text of a string; NULL: it is none, or has zero bytes, which would cut it short. */
const char *pnet_lsp_string(const json_t *value);

/* frame.c: messages in a stream */

enum frame {
    FRAME_MESSAGE,
    FRAME_LONG,   /* skipped: longer than PNET_LSP_MAX_BODY */
    FRAME_END,    /* of the stream */
    FRAME_BROKEN, /* no header that tells where the next message begins */
    FRAME_NO_MEMORY,
};
/* The caller frees *body, which ends with a zero byte. */
enum frame pnet_lsp_read(FILE *in, char **body, size_t *length);
/* Writes and frees `j`; false: memory ran out while it was made. */
bool pnet_lsp_write(FILE *out, struct pnet_json *j);

/* uri.c */

/* The path of a file: URI without `.`, `..` and double slashes; other URIs stay as they are. NULL: memory is out. */
char *pnet_lsp_path(const char *uri);
/* The URI of a path. NULL: memory is out. */
char *pnet_lsp_uri(const char *path);
/* Takes `.`, `..` and double slashes out of a path, in place. */
void pnet_lsp_normalise(char *path);

/* place.c: places as the protocol counts them: lines end with \n, \r\n or \r, columns count UTF-16 units or bytes */

struct ruler {
    const char *text; /* that is measured now */
    size_t length;
    bool utf8;
    uint32_t *starts; /* of lines */
    size_t count, capacity;
    uint32_t last, last_start,
        last_column; /* the last place; a later one on its line is counted from there */
    bool failed;     /* memory is out */
};
void pnet_ruler_use(struct ruler *r, const char *text, size_t length);
void pnet_ruler_free(struct ruler *r);
enum place {
    PLACE_FOUND,
    PLACE_INSIDE, /* of a character of several units: its first byte */
    PLACE_BEYOND, /* the last line: the end of the text */
};
/* Finds the byte of a place. As the protocol has it, a place beyond the end of a line is that end. The begin of the line after
   the last is the end of the text: editors end a range there that takes the last line as a whole. */
enum place pnet_ruler_place(struct ruler *r, int64_t line, int64_t character, uint32_t *offset);
/* The byte of a place, whichever of these it is. */
uint32_t pnet_ruler_offset(struct ruler *r, int64_t line, int64_t character);
void pnet_ruler_position(struct ruler *r, const char *key, uint32_t offset, struct pnet_json *j);
void pnet_ruler_range(
    struct ruler *r, const char *key, uint32_t begin, uint32_t end, struct pnet_json *j);

/* document.c */

struct document *pnet_lsp_document(struct server *s, const char *uri);
/* The document that stands for the file at `path`, or NULL. */
struct document *pnet_lsp_held(struct server *s, const char *path);
/* The URI of a source; the caller frees it. NULL: memory is out (s->no_memory). */
char *pnet_lsp_source_uri(struct server *s, const struct pnet_source *source);
void pnet_lsp_did_open(struct server *s, json_t *params);
void pnet_lsp_did_change(struct server *s, json_t *params);
void pnet_lsp_did_close(struct server *s, json_t *params);
/* A document was saved; with its text, if the editor follows the server's capabilities. */
void pnet_lsp_did_save(struct server *s, json_t *params);
/* Files may have changed: a document was saved, or the editor tells of other files. */
void pnet_lsp_files_changed(struct server *s, json_t *params);
/* A message that may change texts could not be read: the document that its params name is out of step with the editor until its
   whole text comes; if they name none, every open document is. A document that is not open is added: the editor holds a text of
   it that the server does not have. */
void pnet_lsp_lose(struct server *s, const json_t *params, const char *what);
void pnet_lsp_free_documents(struct server *s);
/* Tells the user, who sees it in the editor's log. */
void pnet_lsp_log(struct server *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* analysis.c */

/* Compiles the stale documents and publishes the diagnostics that changed, and those of `changed` (or NULL) in any case. */
void pnet_lsp_refresh(struct server *s, const struct document *changed);
/* Finds the open documents of a root's sources anew: after it was compiled, and when documents come or go, or files on disk. */
void pnet_lsp_link(struct server *s, struct document *root);
/* Is a document out of step that `root` reads? What was compiled from it says nothing of the texts of the editor then. */
bool pnet_lsp_reads_lost(const struct document *root);
/* Do the sources of `root` have a file that is not open? */
bool pnet_lsp_reads_disk(const struct document *root);
/* Do the sources of `root` have the text of `d`? */
bool pnet_lsp_reads(const struct document *root, const struct document *d);
/* A document that no other open one includes, and that has the text of `d`; `after`: the one before it, NULL: the first. */
struct document *pnet_lsp_root(
    struct server *s, const struct document *d, const struct document *after);
/* The index of a root; NULL: it could not be made (`r` says why, or s->no_memory). */
struct pnet_index *pnet_lsp_index(struct server *s, struct document *root, struct reply *r);
/* The number of `d` among the sources of `root`; -1. */
int64_t pnet_lsp_source_of(const struct document *root, const struct document *d);

/* What is collected for each file: diagnostics, edits. */
struct bucket {
    char *uri;
    struct pnet_json list; /* its closing bracket is missing */
    struct bucket *next;
};
/* The bucket of `uri`, which it takes, made at the end where there is none. NULL: memory is out (s->no_memory). */
struct bucket *pnet_lsp_bucket(struct server *s, struct bucket **all, char *uri);
/* Adds and frees a value; `once`: unless the list has the same, because two documents may include a file, and say the same of
   it. */
void pnet_lsp_add(struct server *s, struct bucket *b, struct pnet_json *one, bool once);
void pnet_lsp_free_buckets(struct bucket *all);

/* A place in a document, from the params of a request. */
struct spot {
    struct document *document, *root; /* root: the first one */
    struct pnet_index *index;         /* of the root */
    uint32_t file, offset;            /* in the root's sources */
};
/* False: the request failed, `r` says why. */
bool pnet_lsp_spot(struct server *s, json_t *params, struct reply *r, struct spot *spot);
/* The same: of a document that is open and in step. */
bool pnet_lsp_params_document(
    struct server *s, json_t *params, struct reply *r, struct document **d);

/* Requests: each writes one value to r->result, or fails. */
void pnet_lsp_hover(struct server *s, json_t *params, struct reply *r);
void pnet_lsp_completion(struct server *s, json_t *params, struct reply *r);
void pnet_lsp_definition(struct server *s, json_t *params, struct reply *r);
void pnet_lsp_references(struct server *s, json_t *params, struct reply *r);
void pnet_lsp_prepare_rename(struct server *s, json_t *params, struct reply *r);
void pnet_lsp_rename(struct server *s, json_t *params, struct reply *r);
void pnet_lsp_formatting(struct server *s, json_t *params, struct reply *r);
void pnet_lsp_symbols(struct server *s, json_t *params, struct reply *r);

#endif
