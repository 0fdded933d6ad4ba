/* Text in files: lines, words and numbers, the same in every locale. No function needs a zero at the end of the text, or
   reads beyond it. */
#ifndef PNET_RUNTIME_IO_TEXT_H
#define PNET_RUNTIME_IO_TEXT_H

#include "runtime/io/cloud.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file, [at, end). */
struct pnet_span {
    const char *at, *end;
};

static inline struct pnet_span pnet_span_of(const char *text)
{
    return (struct pnet_span){text, text + __builtin_strlen(text)};
}
static inline size_t pnet_span_size(struct pnet_span s)
{
    return (size_t)(s.end - s.at);
}

bool pnet_span_is(struct pnet_span s, const char *text);
bool pnet_span_is_nocase(struct pnet_span s, const char *text);
/* Takes the next word, which spaces and tabs end, from the front of `s`. Returns false if there is none. */
bool pnet_span_word(struct pnet_span *s, struct pnet_span *word);
/* Parses all of the span as a number of at most `most`. Returns false if it is not one. */
bool pnet_span_count(struct pnet_span s, uint64_t most, uint64_t *value);

/* Parses all of the span as an integer: digits, with a sign or without. Returns false if it is none, or beyond 64 bits. */
bool pnet_span_integer(struct pnet_span s, bool *minus, uint64_t *magnitude);
/* Tells whether a line reads as three numbers or more with decimal commas: 1,5 2,25 3,0 with blanks or semicolons between
   them, or commas that blanks follow. `strict`: as nothing else, because the first three have commas. */
bool pnet_span_decimal_commas(struct pnet_span line, bool strict);

/* A span for a message: control bytes replaced, cut at 40. */
struct pnet_quote {
    char text[44];
};
struct pnet_quote pnet_span_quote(struct pnet_span s);

/* Walks the lines of a file. The first line tells whether lines end in \n (or \r\n), or in \r
 * alone. */
struct pnet_text {
    const char *begin, *at, *end;
    const char *path;
    int64_t line; /* number of the line last given, from 1 */
    char ending;
};
void pnet_text_begin(struct pnet_text *t, const struct pnet_bytes *b, const char *path);
/* Begins with the first bytes of a file, those that are in memory: for a head of lines whose length nothing says. */
void pnet_text_begin_head(struct pnet_text *t, const struct pnet_file_parts *f);
/* Once the head has been read, with a status, tells whether more bytes are needed to know what it says. If not, the text reaches
   to the end of the file from now on. */
bool pnet_text_end_head(
    struct pnet_text *t, const struct pnet_file_parts *f, enum pnet_status status);
/* Takes the next line, without its end. Returns false if there is none. */
bool pnet_text_line(struct pnet_text *t, struct pnet_span *line);
/* As pnet_text_line, but skips lines that are empty or blank. */
bool pnet_text_full_line(struct pnet_text *t, struct pnet_span *line);
/* "path:line", to begin a message with. */
struct pnet_place {
    char text[512];
};
struct pnet_place pnet_text_place(const struct pnet_text *t);
/* PNET_BAD_DATA, "path:line: ...". */
enum pnet_status pnet_text_error(const struct pnet_text *t, struct pnet_error *e,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Says that the line has decimal commas. */
enum pnet_status pnet_text_error_commas(
    const struct pnet_text *t, struct pnet_span line, struct pnet_error *e);

/* Parses the decimal number at the front of [p, end), correctly rounded: digits, point, exponent (e or d), nan, inf, and
   what Microsoft's C library prints for those. Returns the address after it; NULL: there is no number. */
const char *pnet_number_parse(const char *p, const char *end, double *value);
/* Parses all of the word as a value of that type into `to` (any alignment). Returns false if it is not a number, is out of
   the type's range, or has a fraction that the type has not. */
bool pnet_value_parse(struct pnet_span word, enum pnet_scalar type, void *to);

/* Prints the shortest of 15 to 17 digits (float32: 6 to 9) that reads back as the same bits; `size` >= 32. Returns the
   length. */
int pnet_number_print(char *text, size_t size, double value, bool single);

#endif
