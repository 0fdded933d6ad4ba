/* Errors: a status, and a message that names the place. */
#ifndef PNET_RUNTIME_ERROR_H
#define PNET_RUNTIME_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

/* include/pnet/base.h defines these two, too, for programs around the library; tests/library/test_header.sh compares them. */
#ifndef PNET_API_BASE_H
/* The values are also exit codes of pnetc. */
enum pnet_status {
    PNET_OK = 0,
    PNET_FAILED = 1,    /* the operating system refused something */
    PNET_USAGE = 2,     /* command line or run config */
    PNET_BAD_MODEL = 3, /* .pnet text, or weights that do not fit it */
    PNET_BAD_DATA = 4,  /* an input file is malformed */
    PNET_NO_MEMORY = 5, /* memory budget or allocation */
    PNET_NO_DEVICE = 6,
    PNET_INTERRUPTED = 130
};

/* The function that fails fills it and overwrites what it held. The caller owns it, on the stack. */
struct pnet_error {
    enum pnet_status status;
    char message[1024]; /* one line or several, no newline at the end; printable (printable.h) */
};
#endif

/* Sets `e` (which may be NULL) and returns `status`. Messages too long are cut, never overrun. Line ends of the format stay,
   those of arguments become escapes as other control characters do; but the format "%s" takes a text that may have lines. */
enum pnet_status pnet_error_set(struct pnet_error *e, enum pnet_status status, const char *format,
    ...) __attribute__((format(printf, 3, 4)));
enum pnet_status pnet_error_vset(struct pnet_error *e, enum pnet_status status, const char *format,
    va_list args) __attribute__((format(printf, 3, 0)));

/* Puts a text, which is printable and may have lines, at the end of a message. */
void pnet_error_append(struct pnet_error *e, const char *text);

/* Does the same, with ": " and the text of errno `code` after the message. If `code` is ENOMEM, PNET_FAILED becomes
   PNET_NO_MEMORY. */
enum pnet_status pnet_error_errno(struct pnet_error *e, enum pnet_status status, int code,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets "out of memory" and returns PNET_NO_MEMORY. Inline, so that static analysis knows the result. */
static inline enum pnet_status pnet_error_memory(struct pnet_error *e)
{
    pnet_error_set(e, PNET_NO_MEMORY, "out of memory");
    return PNET_NO_MEMORY;
}

/* Returns the candidate nearest to `word` in edit distance, or NULL if none is near enough to suggest. */
const char *pnet_nearest(const char *word, const char *const *candidates, int count);

#endif
