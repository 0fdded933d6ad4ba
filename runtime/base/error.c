#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Makes text[..] printable. Where `marked`, the same text printed by a format with other bytes for line ends, differs, the line
   end is the format's and stays. */
static void make_printable(char *text, const char *marked, char *out, size_t size)
{
    size_t used = 0;
    for (char *line = text; line;) {
        char *end = line;
        while (*end && *end == marked[end - text]) end++;
        bool more = *end;
        *end = '\0';
        pnet_printable(line, out + used, size - used);
        used += strlen(out + used);
        if (!more || used + 2 > size) break;
        out[used++] = '\n';
        out[used] = '\0';
        line = end + 1;
    }
}

enum pnet_status pnet_error_vset(
    struct pnet_error *e, enum pnet_status status, const char *format, va_list args)
{
    if (!e) return status;
    enum { SIZE = sizeof e->message };
    char text[SIZE], marked[SIZE], pattern[SIZE]; /* an argument may point to e->message */
    size_t length = 0;
    va_list again;
    va_copy(again, args);
    pnet_number_vformat(text, SIZE, format, args);
    for (; format[length] && length + 1 < SIZE; length++)
        pattern[length] = format[length] == '\n' ? '\f' : format[length];
    pattern[length] = '\0';
    pnet_number_vformat(marked, SIZE, format[length] ? format : pattern, again);
    va_end(again);
    e->status = status;
    if (strcmp(format, "%s") == 0)
        pnet_printable_lines(text, e->message, SIZE);
    else
        make_printable(text, marked, e->message, SIZE);
    return status;
}

enum pnet_status pnet_error_set(
    struct pnet_error *e, enum pnet_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pnet_error_vset(e, status, format, args);
    va_end(args);
    return status;
}

void pnet_error_append(struct pnet_error *e, const char *text)
{
    size_t used = strlen(e->message);
    snprintf(e->message + used, sizeof e->message - used, "%s", text);
}

enum pnet_status pnet_error_errno(
    struct pnet_error *e, enum pnet_status status, int code, const char *format, ...)
{
    if (status == PNET_FAILED && code == ENOMEM) status = PNET_NO_MEMORY;
    if (!e) return status;
    char reason[128], why[160];
    va_list args;
    va_start(args, format);
    pnet_error_vset(e, status, format, args);
    va_end(args);
    snprintf(why, sizeof why, ": %s", strerror_r(code, reason, sizeof reason));
    size_t most = sizeof e->message - sizeof why;
    if (strlen(e->message) > most) e->message[most] = '\0';
    pnet_error_append(e, why);
    return status;
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
