/* Text from files, made safe for a terminal: bytes that would move the cursor, change colours or reverse the order of
   the text are shown as escapes. */
#ifndef PNET_RUNTIME_PRINTABLE_H
#define PNET_RUNTIME_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `text` to out[size]. Control characters (of Unicode too) and bytes that are not UTF-8 become \xNN. Text that does not
   fit is cut. Returns `out`. */
const char *pnet_printable(const char *text, char *out, size_t size);
/* Does the same, but keeps line ends. */
const char *pnet_printable_lines(const char *text, char *out, size_t size);

/* Returns the length of the UTF-8 sequence at `s` (Unicode, table 3-7), which ends with a zero byte; 0: it is not one. */
size_t pnet_utf8_length(const unsigned char *s);
/* Tells whether a sequence of that length is a control character (C0, C1) or changes the direction of text. */
bool pnet_utf8_is_control(const unsigned char *s, size_t length);
/* Tells whether the whole text is UTF-8. */
bool pnet_is_utf8(const char *text);

#endif
