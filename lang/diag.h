/* Diagnostics: collected while a compilation runs, sorted and printed at its end. */
#ifndef PNET_LANG_DIAG_H
#define PNET_LANG_DIAG_H

#include "lang/arena.h"
#include "lang/source.h"

#include <stdbool.h>
#include <stdio.h>

enum pnet_severity { PNET_ERROR, PNET_WARNING };

/* One diagnostic. Fill it through the calls below, in any order after pnet_diag_new. */
struct pnet_diag;

/* Everything one compilation says. Owned by the arena. At most 20 errors and 20 warnings are kept;
   the rest are counted. What was said before, word for word of the same place, is neither. */
struct pnet_diags;

struct pnet_diags *pnet_diags_new(struct pnet_arena *a, struct pnet_sources *sources);

/* The message is one line without a full stop: "cat() joins points of different levels".
   Returns NULL when memory is out or the cap is reached; the calls below accept NULL. */
struct pnet_diag *pnet_diag_new(struct pnet_diags *d, enum pnet_severity severity,
    struct pnet_span span, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Text behind the carets on the caret line. */
void pnet_diag_label(struct pnet_diag *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A second place, underlined with ~ and labelled (on the same line where it lies there). */
void pnet_diag_second(struct pnet_diag *d, struct pnet_span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "  help: ..." below; a second call adds a second line. */
void pnet_diag_help(struct pnet_diag *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A text of at most `length` bytes, up to its NUL, for a terminal: characters that would move the
   cursor or turn the direction of the text are shown as \n, \t, \x1b, \u202e; so are bytes that are no
   UTF-8. */
void pnet_put_visible(const char *text, size_t length, FILE *out);

/* Has the text none of those? */
bool pnet_is_visible(const char *text);

int pnet_diags_errors(const struct pnet_diags *d);
int pnet_diags_warnings(const struct pnet_diags *d);
/* True once the cap of errors is reached: a message need not be made up any more. */
bool pnet_diags_full(const struct pnet_diags *d);

/* Prints all in source order (an included file's where it is included), then "N errors, M warnings"
   where more were found than kept. Colours only with `colour`. That memory is out, or its limit met,
   is told as an error too. */
void pnet_diags_print(const struct pnet_diags *d, FILE *out, bool colour);
/* The same as a JSON array of {file, line, column, end_line, end_column, severity, message, label,
   second, help}: label, second and help may be null; second is {file, line, column, end_line,
   end_column, label}; the end is that of the character behind the last. */
void pnet_diags_json(const struct pnet_diags *d, FILE *out);

#endif
