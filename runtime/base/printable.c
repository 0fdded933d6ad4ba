#include "runtime/base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t pnet_utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    size_t length = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    /* Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte. */
    unsigned low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < low || s[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if (s[i] < 0x80 || s[i] > 0xBF) return 0;
    return length;
}

bool pnet_is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t length = 1;
    while (*s && length) s += length = pnet_utf8_length(s);
    return length > 0;
}

bool pnet_utf8_is_control(const unsigned char *s, size_t length)
{
    if (length == 1) return s[0] < 0x20 || s[0] == 0x7f;
    if (length == 2) return s[0] == 0xc2 && s[1] < 0xa0;
    if (length != 3 || s[0] != 0xe2) return false;
    return (s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae))) ||
           (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

static const char *copy(const char *text, bool lines, char *out, size_t size)
{
    size_t used = 0;
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t length = pnet_utf8_length(s), bytes = length ? length : 1;
        bool plain = length && (!pnet_utf8_is_control(s, length) || (lines && *s == '\n'));
        size_t room = plain ? bytes : 4 * bytes;
        if (used + room >= size) break;
        if (plain) memcpy(out + used, s, bytes);
        for (size_t i = 0; i < bytes && !plain; i++)
            snprintf(out + used + 4 * i, 5, "\\x%02x", (unsigned)s[i]);
        used += room;
        s += bytes;
    }
    out[used] = '\0';
    return out;
}

const char *pnet_printable(const char *text, char *out, size_t size)
{
    return copy(text, false, out, size);
}

const char *pnet_printable_lines(const char *text, char *out, size_t size)
{
    return copy(text, true, out, size);
}
