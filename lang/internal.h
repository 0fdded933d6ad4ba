/* Declarations that the files of lang/ share: tokens, the state of the parser, the calls between files. */
#ifndef PNET_LANG_INTERNAL_H
#define PNET_LANG_INTERNAL_H

#include "lang/arena.h"
#include "lang/ast.h"
#include "lang/diag.h"
#include "lang/parse.h"
#include "lang/source.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* source.c */

/* The file on disk, or the held text, that a source came from, so that it is included once. */
struct pnet_source_id {
    bool known;
    const struct pnet_held_text *held; /* NULL: the file below */
    dev_t device;
    ino_t inode;
};

/* Text read from a file, NUL-terminated, in the arena. */
struct pnet_source_text {
    const char *text;
    size_t length;
    struct pnet_source_id id;
};

/* Reads `path` ("-": standard input). On failure returns false with the reason in `error`; NULL there: memory is out. */
bool pnet_source_read(
    struct pnet_sources *s, const char *path, struct pnet_source_text *out, const char **error);
/* Adds a file; returns false if memory is out. `included_from` is all zeros for the main file. */
bool pnet_sources_add(struct pnet_sources *s, const char *name, struct pnet_source_text text,
    struct pnet_span included_from, uint32_t *file);
uint32_t pnet_sources_count(const struct pnet_sources *s);
/* Finds what a path leads to; not known if there is nothing. */
struct pnet_source_id pnet_source_identify(const struct pnet_sources *s, const char *path);
/* Finds the file that was read from the same place on disk; returns false if there is none. */
bool pnet_sources_find(const struct pnet_sources *s, struct pnet_source_id id, uint32_t *file);
/* Returns the bytes of a line (1-based) without its line end. */
struct pnet_span pnet_source_line(const struct pnet_sources *s, uint32_t file, uint32_t line);
/* Returns the length in bytes of the character at `text`; `code` gets its number. 0: the bytes are not UTF-8. */
int pnet_utf8_decode(const char *text, size_t length, uint32_t *code);

/* tokens */

enum {
    PNET_TOKEN_FIRST_ON_LINE = 1,
    PNET_TOKEN_AFTER_BAD = 2, /* characters before it were reported and left out */
};

struct pnet_number {
    double value;
    enum pnet_unit unit;
    bool is_integer;
};

struct pnet_args {
    struct pnet_call_arg *first, *last;
};
struct pnet_stmts {
    struct pnet_stmt *first, *last;
};
struct pnet_fields {
    struct pnet_field_decl *first, *last;
};
struct pnet_params {
    struct pnet_param_decl *first, *last;
};
struct pnet_expr_cell {
    struct pnet_expr *expr;
    struct pnet_expr_cell *next;
};
struct pnet_exprs {
    struct pnet_expr_cell *first, *last;
};

/* The semantic values of tokens and of rules. */
union pnet_value {
    const char *text; /* NAME; STRING, without its quotes */
    struct pnet_number number;
    enum pnet_operator op;
    struct pnet_expr *expr;
    struct pnet_stmt *stmt;
    struct pnet_item *item;
    struct pnet_call_arg *arg;
    struct pnet_field_decl *field;
    struct pnet_param_decl *param;
    struct pnet_args args;
    struct pnet_stmts stmts;
    struct pnet_fields fields;
    struct pnet_params params;
    struct pnet_exprs exprs;
};

struct pnet_token {
    uint16_t kind; /* enum pnet_tree_tokentype of the generated parser.h */
    uint16_t flags;
    struct pnet_span span;
    union pnet_value value;
};

struct pnet_comment {
    struct pnet_span span; /* from `#` to the end of the line */
    bool is_doc;           /* `##`, but not `###` */
    bool own_line;         /* no token precedes it on its line */
    uint32_t next;         /* index of the token that follows */
};

/* All tokens of a file; the last one is TOKEN_END, just behind the last piece of code. */
struct pnet_tokens {
    struct pnet_token *items;
    size_t count;
    struct pnet_comment *comments;
    size_t comment_count;
};

/* The words, numbers and strings behind the scanner's rules. `diags` may be NULL. */
struct pnet_scan {
    struct pnet_arena *arena;
    struct pnet_diags *diags;
    struct pnet_tokens *tokens;
    uint32_t file;
    uint32_t offset;  /* of the next byte to match */
    bool first;       /* no token yet on this line */
    bool bad;         /* characters were left out since the last token */
    void *jump;       /* where the generated scanner's fatal errors go */
    const char *text; /* all of the file, `length` bytes */
    size_t length;
    uint32_t comment_begin; /* of a C comment */
    bool no_comment_end;    /* none closes any more */
};

/* scanner.l: returns false if memory is out. The text must be UTF-8. */
bool pnet_scan_text(struct pnet_scan *scan, const char *text, size_t length);

/* token.c */

/* Returns the keyword that a word is, or TOKEN_NAME. */
int pnet_token_word(const char *text, size_t length);
/* Returns the name of a kind in messages: "'->'", "a name". */
const char *pnet_token_text(int kind);
/* Returns the keyword of a kind, NULL: it is none. */
const char *pnet_token_word_of(int kind);
/* Tells whether the token is a word of the language, not a name. */
bool pnet_token_is_keyword(int kind);
/* Tells whether the kind can be the last token of an expression. */
bool pnet_token_ends_operand(int kind);
/* Returns the word as a name; a name that is too long is reported. NULL when memory is out. */
const char *pnet_token_name(
    struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span);
/* Decodes digits and a unit; reports errors in them. */
struct pnet_number pnet_token_number(
    struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span);
/* Decodes the text between quotes; NULL when memory is out. */
const char *pnet_token_string(
    struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span);
/* Reports characters that belong to no token. */
void pnet_token_bad(struct pnet_scan *scan, const char *text, size_t length, struct pnet_span span);

/* the parser */

/* The state that one call of pnet_parse_file and its includes share. */
struct pnet_parse {
    struct pnet_arena *arena;
    struct pnet_sources *sources;
    struct pnet_diags *diags;
    int nodes;
    int depth;    /* of includes */
    bool stopped; /* a limit was reached and reported, or memory is out */
    struct pnet_lost_name *lost;
    bool cut; /* as in pnet_file */
};

/* The state of one file's parse. */
struct pnet_parser {
    struct pnet_parse *all;
    uint32_t file;
    int start;       /* TOKEN_START_FILE or TOKEN_START_EXPR; 0 once it was sent */
    bool expr_alone; /* `start` was TOKEN_START_EXPR */
    struct pnet_tokens tokens;
    size_t next;                   /* token to send next */
    size_t open[PNET_MAX_NESTING]; /* tokens of the brackets open before `next` */
    int depth, depth_before;       /* of `open`; the latter before the last token sent */
    int synthetic;                 /* TOKEN_SYNC or TOKEN_BODY to send first */
    int closers;                   /* then so many `}` that were forgotten */
    size_t resumed;                /* token at which parsing last continued after an error */
    size_t failed;                 /* one more than the token of the last error */
    size_t lost;                   /* names before this token, where they are lost, are kept */
    uint32_t
        *stops; /* of each token: the next of it and those behind it that is a brace, first on a
                        line or the end; made at the first error */
    struct pnet_item *items, **last;
    struct pnet_expr *expr; /* of START_EXPR */
};

/* recover.c */

/* The parser's source of tokens. */
int pnet_tree_lex(union pnet_value *value, struct pnet_span *span, struct pnet_parser *p);
/* Reports the token just sent, which fits none of `expected` (bit k: token TOKEN_END + k), and finds the token at which to
   continue. */
void pnet_recover(struct pnet_parser *p, uint64_t expected);
/* Called by the generated parser when its stack is full. */
void pnet_tree_error(const struct pnet_span *span, struct pnet_parser *p, const char *message);
/* For `x =` and, on the next line, `y = 3`: was the `y` before the `=` at `at` (between fields: before the `:`) taken for
   the value of `x`? Then *start is the first token of the statement `y = 3`. `depth`: of p->open before `at`. */
bool pnet_recover_swallowed(const struct pnet_parser *p, size_t at, int depth, size_t *start);
/* Is token `i`, a keyword of the file's level or its end, indented no deeper than the line of the
   innermost open brace? Then that was not closed. */
bool pnet_recover_outside(const struct pnet_parser *p, size_t i, int depth);

enum pnet_level { PNET_LEVEL_FILE, PNET_LEVEL_BODY, PNET_LEVEL_FIELDS };
/* The kind of content inside the innermost brace among the first `depth` open brackets. *braces: how many brackets are open
   up to that brace, with it; 0: no brace is. */
enum pnet_level pnet_recover_level(const struct pnet_parser *p, int depth, int *braces);

/* mistake.c: messages of syntax errors */

struct pnet_mistake {
    const struct pnet_parser *p;
    size_t at;         /* the token that does not fit */
    uint64_t expected; /* as above */
    int depth;         /* of p->open before it */
};
void pnet_mistake_report(const struct pnet_mistake *m);

/* tree.c: nodes. All return NULL, and stop the parse, when memory is out or a limit is reached. */

struct pnet_expr *pnet_tree_number(
    struct pnet_parser *p, struct pnet_span span, struct pnet_number n);
struct pnet_expr *pnet_tree_string(struct pnet_parser *p, struct pnet_span span, const char *text);
struct pnet_expr *pnet_tree_name(struct pnet_parser *p, struct pnet_span span, const char *name);
struct pnet_expr *pnet_tree_list(
    struct pnet_parser *p, struct pnet_span span, struct pnet_exprs items);
struct pnet_expr *pnet_tree_index(
    struct pnet_parser *p, struct pnet_span span, struct pnet_expr *base, struct pnet_expr *index);
struct pnet_expr *pnet_tree_field(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *base, const char *name, struct pnet_span name_span);
struct pnet_expr *pnet_tree_call(struct pnet_parser *p, struct pnet_span span, const char *name,
    struct pnet_span name_span, struct pnet_args args);
/* Turns a call into a stage of a pipe. */
struct pnet_expr *pnet_tree_pipe(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *piped, struct pnet_expr *stage, struct pnet_expr *repeat);
struct pnet_expr *pnet_tree_operation(struct pnet_parser *p, struct pnet_span span,
    enum pnet_operator op, struct pnet_span op_span, struct pnet_expr *left,
    struct pnet_expr *right);
struct pnet_expr *pnet_tree_if(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *condition, struct pnet_expr *then, struct pnet_expr *otherwise);
struct pnet_call_arg *pnet_tree_arg(
    struct pnet_parser *p, const char *name, struct pnet_span name_span, struct pnet_expr *value);
struct pnet_stmt *pnet_tree_assign(struct pnet_parser *p, struct pnet_span span, const char *name,
    struct pnet_span name_span, struct pnet_exprs indices, struct pnet_expr *value);
struct pnet_stmt *pnet_tree_for(struct pnet_parser *p, struct pnet_span span, const char *name,
    struct pnet_span name_span, struct pnet_expr *from, struct pnet_expr *to,
    struct pnet_stmts body);
struct pnet_stmt *pnet_tree_branch(struct pnet_parser *p, struct pnet_span span,
    struct pnet_expr *condition, struct pnet_stmts then, struct pnet_stmts otherwise);
struct pnet_stmt *pnet_tree_return(
    struct pnet_parser *p, struct pnet_span span, struct pnet_expr *value);
struct pnet_field_decl *pnet_tree_field_decl(struct pnet_parser *p, const char *name,
    struct pnet_span name_span, const char *type, struct pnet_span type_span);
struct pnet_param_decl *pnet_tree_param_decl(
    struct pnet_parser *p, const char *name, struct pnet_span name_span, struct pnet_expr *value);
struct pnet_item *pnet_tree_item(struct pnet_parser *p, enum pnet_item_kind kind,
    struct pnet_span span, const char *name, struct pnet_span name_span);
struct pnet_expr_cell *pnet_tree_cell(struct pnet_parser *p, struct pnet_expr *expr);

/* parse.c */

/* Appends an item, and after an include the items of its file. Returns false if the parse must stop. */
bool pnet_parse_item(struct pnet_parser *p, struct pnet_item *item);

/* doc.c: attaches the `##` comments to the items, statements and fields of the file. */
bool pnet_doc_attach(struct pnet_parser *p, struct pnet_file *file);

#endif
