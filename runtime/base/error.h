/* How failure travels: a status, and a message that names the place. */
#ifndef PNET_RUNTIME_ERROR_H
#define PNET_RUNTIME_ERROR_H

#include <stdbool.h>

/* Also the exit code of pnetc. */
enum pnet_status {
    PNET_OK = 0,
    PNET_FAILED = 1,    /* the operating system refused something */
    PNET_USAGE = 2,     /* command line or run config */
    PNET_BAD_MODEL = 3, /* .pnet text, or weights that do not fit it */
    PNET_BAD_DATA = 4,  /* a file handed over is not what it should be */
    PNET_NO_MEMORY = 5, /* memory budget or allocation */
    PNET_NO_DEVICE = 6,
    PNET_INTERRUPTED = 130,
};

/* Filled by the function that fails; what was there is overwritten. Callers own it, on the stack.
 */
struct pnet_error {
    enum pnet_status status;
    char message
        [1024]; /* one line or several, no newline at the end; printable (runtime/base/printable.h) */
};

/* Sets `e` (which may be NULL) and returns `status`. Messages too long are cut, never overrun. */
enum pnet_status pnet_error_set(struct pnet_error *e, enum pnet_status status, const char *format,
    ...) __attribute__((format(printf, 3, 4)));

/* Same, with ": " and the text of errno `code` behind the message. PNET_FAILED for want of memory, ENOMEM, is
   PNET_NO_MEMORY. */
enum pnet_status pnet_error_errno(struct pnet_error *e, enum pnet_status status, int code,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* "out of memory", PNET_NO_MEMORY. Inline, so that static analysis knows what comes back. */
static inline enum pnet_status pnet_error_memory(struct pnet_error *e)
{
    pnet_error_set(e, PNET_NO_MEMORY, "out of memory");
    return PNET_NO_MEMORY;
}

/* The candidate nearest to `word` in edit distance, or NULL where none is near enough to suggest.
 */
const char *pnet_nearest(const char *word, const char *const *candidates, int count);

#endif
