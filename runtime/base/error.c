#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum pnet_status pnet_error_set(
    struct pnet_error *e, enum pnet_status status, const char *format, ...)
{
    if (!e) return status;
    char text[sizeof e->message]; /* an argument may point to e->message */
    va_list args;
    va_start(args, format);
    pnet_number_vformat(text, sizeof text, format, args);
    va_end(args);
    e->status = status;
    pnet_printable_lines(
        text, e->message, sizeof e->message); /* the arguments may contain names from files */
    return status;
}

enum pnet_status pnet_error_errno(
    struct pnet_error *e, enum pnet_status status, int code, const char *format, ...)
{
    if (status == PNET_FAILED && code == ENOMEM) status = PNET_NO_MEMORY;
    if (!e) return status;
    char text[sizeof e->message], reason[128];
    va_list args;
    va_start(args, format);
    pnet_number_vformat(text, sizeof text, format, args);
    va_end(args);
    const char *why = strerror_r(code, reason, sizeof reason);
    return pnet_error_set(e, status, "%.800s: %s", text, why);
}

/* Returns the optimal string alignment distance; words are cut at 63 bytes. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 63 };
    size_t n = strnlen(a, MAX), m = strnlen(b, MAX);
    uint8_t row[3][MAX + 1];
    for (size_t j = 0; j <= m; j++) row[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint8_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (uint8_t)i;
        for (size_t j = 1; j <= m; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = (uint8_t)best;
        }
    }
    return row[n % 3][m];
}

const char *pnet_nearest(const char *word, const char *const *candidates, int count)
{
    const char *best = NULL;
    size_t best_distance = (strlen(word) + 2) / 3 + 1; /* one edit for three letters */
    for (int i = 0; i < count; i++) {
        size_t d = distance(word, candidates[i]);
        if (d < best_distance && d < strlen(candidates[i])) {
            best_distance = d;
            best = candidates[i];
        }
    }
    return best;
}
