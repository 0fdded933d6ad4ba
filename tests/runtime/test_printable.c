/* Text out of files is shown, not sent to the terminal. */
#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "tests/check.h"

#include <stdbool.h>

static void check_text(const char *text, const char *want)
{
    char out[200];
    CHECK(pnet_printable(text, out, sizeof out) == out);
    CHECK_STR(out, want);
}

/* Of any bytes nothing comes out that a terminal obeys, and what fits is never overrun. */
static void check_bytes(void)
{
    unsigned state = 1;
    for (int round = 0; round < 20000; round++) {
        char text[40], out[64];
        memset(out, 1, sizeof out);
        for (int i = 0; i < 39; i++) {
            state = state * 1664525 + 1013904223;
            text[i] = (char)(1 + (state >> 24) % 255);
        }
        text[39] = '\0';
        size_t size = 1 + (state >> 8) % 60;
        pnet_printable(text, out, size);
        CHECK(strlen(out) < size && out[size] == 1);
        for (const unsigned char *s = (unsigned char *)out; *s;) {
            size_t length = pnet_utf8_length(s);
            if (!length || *s < 32 || *s == 127 || (s[0] == 0xc2 && s[1] < 0xa0)) {
                CHECKF(0, "byte %02x", *s);
                break;
            }
            s += length;
        }
    }
}

int main(void)
{
    struct pnet_error e;
    check_text("", "");
    check_text("plain \\ text", "plain \\ text");
    check_text(
        "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80");
    check_text("a\x1b[31mb\a\n\r\t\x7f", "a\\x1b[31mb\\x07\\x0a\\x0d\\x09\\x7f");
    check_text("c1 \xc2\x9b"
               "31m",
        "c1 \\xc2\\x9b"
        "31m");
    check_text("turned \xe2\x80\xae"
               "back",
        "turned \\xe2\\x80\\xae"
        "back");
    check_text("cut \xc3", "cut \\xc3");
    check_text("long \xc0\x80", "long \\xc0\\x80");
    CHECK(
        pnet_is_utf8("") && pnet_is_utf8("a \xf0\x9f\x98\x80") && pnet_is_utf8("\xf4\x8f\xbf\xbf"));
    CHECK(!pnet_is_utf8("\xff") && !pnet_is_utf8("a\xe6\x97") && !pnet_is_utf8("\xed\xa0\x80 b"));
    char out[6];
    CHECK_STR(pnet_printable("abcdefgh", out, sizeof out), "abcde");
    CHECK_STR(pnet_printable("abc\x1b", out, sizeof out), "abc"); /* whole or not at all */
    pnet_error_set(&e, PNET_FAILED, "%s\nsecond line", "\x1b[2J");
    CHECK_STR(e.message, "\\x1b[2J\nsecond line");
    check_bytes();
    return check_end();
}
