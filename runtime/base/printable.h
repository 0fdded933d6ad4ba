/* Text from files, made safe for a terminal: bytes that would move the cursor, change colours or reverse the order of
   the text are shown as escapes. */
#ifndef PNET_RUNTIME_PRINTABLE_H
#define PNET_RUNTIME_PRINTABLE_H

#include <stddef.h>

/* Copies `text` to out[size], control characters (of Unicode too) and bytes that are not UTF-8 as \xNN,
   and cuts what does not fit. Returns `out`. */
const char *pnet_printable(const char *text, char *out, size_t size);
/* The same, but line ends stay. */
const char *pnet_printable_lines(const char *text, char *out, size_t size);

/* Length of the UTF-8 sequence at `s` (Unicode, table 3-7), which ends with a zero byte; 0: it is none. */
size_t pnet_utf8_length(const unsigned char *s);

#endif
