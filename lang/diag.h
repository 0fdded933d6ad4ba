/* Diagnostics, collected during a compilation, then sorted and printed. */
#ifndef PNET_LANG_DIAG_H
#define PNET_LANG_DIAG_H

#include "lang/arena.h"
#include "lang/source.h"

#include <stdbool.h>
#include <stdio.h>

enum pnet_severity { PNET_ERROR, PNET_WARNING };

/* One diagnostic. Fill it through the calls below, in any order after pnet_diag_new. */
struct pnet_diag;

/* All messages of one compilation. The arena owns them. At most 20 errors and 20 warnings are kept; the others are counted. A
   message that repeats an earlier one word for word at the same place is neither kept nor counted. */
struct pnet_diags;

struct pnet_diags *pnet_diags_new(struct pnet_arena *a, struct pnet_sources *sources);

/* The message is one line without a full stop: "cat() joins points of different levels".
   Returns NULL when memory is out or the cap is reached; the calls below accept NULL. */
struct pnet_diag *pnet_diag_new(struct pnet_diags *d, enum pnet_severity severity,
    struct pnet_span span, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets the text after the carets on the caret line. */
void pnet_diag_label(struct pnet_diag *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a second place, underlined with ~ and labelled, on the same line if it lies there. */
void pnet_diag_second(struct pnet_diag *d, struct pnet_span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "  help: ..." below; a second call adds a second line. */
void pnet_diag_help(struct pnet_diag *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints a text of at most `length` bytes, up to its NUL, to a terminal. Control characters, characters that change the
   direction of the text, and bytes that are not UTF-8 are printed as \n, \t, \x1b, \u202e. */
void pnet_put_visible(const char *text, size_t length, FILE *out);

/* Tells whether the text contains no such character. */
bool pnet_is_visible(const char *text);

int pnet_diags_errors(const struct pnet_diags *d);
int pnet_diags_warnings(const struct pnet_diags *d);
/* Returns true if the cap of errors is reached; then the caller may skip making a message. */
bool pnet_diags_full(const struct pnet_diags *d);

/* Prints all in source order (an included file's where it is included), then "N errors, M warnings"
   where more were found than kept. Colours only with `colour`. If memory ran out or its limit was reached,
   prints an error that says so. */
void pnet_diags_print(const struct pnet_diags *d, FILE *out, bool colour);
/* Writes the same as a JSON array of {file, line, column, end_line, end_column, severity, message, label, second, help}: label,
   second and help may be null; second is {file, line, column, end_line, end_column, label}; the end is the place of the
   character after the last. */
void pnet_diags_json(const struct pnet_diags *d, FILE *out);

/* One of the kept ones, as a record; the texts belong to the arena. Not for several threads at once. */
struct pnet_diag_record {
    enum pnet_severity severity;
    const char *file; /* as the user wrote it; "pnet": none */
    /* of the first character, and of the one after the last, from 1; all 0: the file as a whole */
    uint32_t line, column, end_line, end_column;
    const char *message, *label, *help; /* label, help: NULL where there is none */
    struct pnet_span span, second;
    const char *second_label; /* NULL: there is no second place */
};
int pnet_diags_count(const struct pnet_diags *d);
/* The one at `index`, in source order. */
void pnet_diags_record(const struct pnet_diags *d, int index, struct pnet_diag_record *r);

#endif
