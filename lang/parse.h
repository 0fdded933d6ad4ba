/* Parses text to a syntax tree. */
#ifndef PNET_LANG_PARSE_H
#define PNET_LANG_PARSE_H

#include "lang/arena.h"
#include "lang/ast.h"
#include "lang/diag.h"
#include "lang/source.h"

enum {
    PNET_LANGUAGE_VERSION = 1, /* every file begins with it: `pnet 1` */
    PNET_MAX_INCLUDE_DEPTH = 16,
    PNET_MAX_SOURCE_BYTES = 4 << 20,
    PNET_MAX_NODES = 1 << 20, /* expressions and statements of one compilation */
    PNET_MAX_NESTING = 200,   /* of expressions and statements: no input overflows the stack */
    PNET_MAX_NAME = 128,      /* characters of a name */
    PNET_MAX_FILES = 1024,
    PNET_MAX_BYTES = 448 << 20, /* of memory for one compilation, formatting or listing */
};

struct pnet_sources *pnet_sources_new(struct pnet_arena *a);

/* Parses the file at `path` ("-": standard input) with all its includes (paths are relative to the including file; a file is
   included once; a cycle is an error). Errors go to `diags`; the tree of the parts that could be parsed is returned even then.
   Returns NULL only if the file cannot be read or memory is out (reported in `diags`, or a->failed). */
struct pnet_file *pnet_parse_file(
    struct pnet_arena *a, struct pnet_sources *s, struct pnet_diags *d, const char *path);
/* Does the same from memory; messages name the text `name`. Includes are relative to the current folder. */
struct pnet_file *pnet_parse_text(struct pnet_arena *a, struct pnet_sources *s,
    struct pnet_diags *d, const char *name, const char *text, size_t length);

/* Parses one expression, for --set name=value. Returns NULL with a diagnostic on error. */
struct pnet_expr *pnet_parse_expr(struct pnet_arena *a, struct pnet_sources *s,
    struct pnet_diags *d, const char *name, const char *text, size_t length);

/* Returns the file at index 0 of `s` (parsed without error) in canonical form: 2 spaces, one statement a line, aligned fields,
   comments and single blank lines kept. Idempotent. The text lies in the arena. NULL: memory is out (a->failed), or the form
   would be too large for a file. */
const char *pnet_format(
    struct pnet_arena *a, const struct pnet_sources *s, const struct pnet_file *f, size_t *length);

/* Returns the files of `s` as one text that compiles alone: each include statement of `f`, the tree of file 0, is replaced by
   the file that was read for it, without its `pnet 1`, and by nothing where that file was read before. NUL-terminated, in the
   arena. Where there are errors it is what could be joined. NULL: memory is out (a->failed). */
char *pnet_join(
    struct pnet_arena *a, const struct pnet_sources *s, const struct pnet_file *f, size_t *length);

#endif
