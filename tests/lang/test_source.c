/* The arena, places in files, and UTF-8. */
#include "lang/arena.h"
#include "lang/internal.h"
#include "tests/check.h"

#include <stdint.h>

static void test_arena(void)
{
    struct pnet_arena a = {0};
    enum { COUNT = 3000 };
    static unsigned char *blocks[COUNT];
    static size_t sizes[COUNT];
    size_t total = 0;
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = i % 500 == 499 ? 600000 + i : i % 97;
        blocks[i] = pnet_arena_alloc(&a, sizes[i]);
        CHECK(blocks[i] && (uintptr_t)blocks[i] % _Alignof(max_align_t) == 0);
        bool zero = true;
        for (size_t k = 0; k < sizes[i]; k++) zero = zero && !blocks[i][k];
        CHECK(zero);
        memset(blocks[i], (int)(i % 251), sizes[i]);
        total += sizes[i];
    }
    /* Nobody wrote into what belongs to another. */
    for (size_t i = 0; i < COUNT; i++) {
        bool kept = true;
        for (size_t k = 0; k < sizes[i]; k++) kept = kept && blocks[i][k] == i % 251;
        CHECKF(kept, "block %zu", i);
    }
    CHECK(a.calls == COUNT && a.total >= total);
    char *copy = pnet_arena_copy(&a, "abcdef", 3);
    CHECK_STR(copy, "abc");
    CHECK_STR(pnet_arena_printf(&a, "%s %d%%", "x", 42), "x 42%");
    pnet_arena_free(&a);
    CHECK(!a.chunks && !a.total);
}

static void test_arena_failure(void)
{
    struct pnet_arena a = {.fail_at = 3};
    CHECK(pnet_arena_alloc(&a, 10) && pnet_arena_alloc(&a, 10) && !a.failed);
    CHECK(!pnet_arena_alloc(&a, 10) && a.failed);
    CHECK(!pnet_arena_alloc(&a, 10) && !pnet_arena_copy(&a, "x", 1) && !pnet_arena_printf(&a, "x"));
    pnet_arena_free(&a);
    CHECK(!pnet_arena_array(&a, SIZE_MAX / 2, 3) && a.failed);
    pnet_arena_free(&a);
    CHECK(!pnet_arena_alloc(&a, SIZE_MAX) && a.failed);
    pnet_arena_free(&a);
}

/* Every code point, and what the standard calls ill-formed (Unicode, table 3-7). */
static void test_utf8(void)
{
    int good = 0;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code < 0xe000) continue;
        char s[4];
        int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (int i = n - 1; i > 0; i--) s[i] = (char)(0x80 | (code >> 6 * (n - 1 - i) & 0x3f));
        s[0] = (char)(lead[n] | code >> 6 * (n - 1));
        uint32_t got;
        good += pnet_utf8_decode(s, 4, &got) == n && got == code &&
                !pnet_utf8_decode(s, (size_t)n - 1, &got);
    }
    CHECK(good == 0x110000 - 0x800);
    static const char *const bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41",
        "\xe0\x9f\x80", "\xed\xa0\x80", "\xe1\x80", "\xf0\x8f\x80\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xe1\x80\x41"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t got;
        CHECKF(!pnet_utf8_decode(bad[i], strlen(bad[i]), &got), "case %zu", i);
    }
}

/* Places against counting from the start of the text. */
static void check_places(const char *text, bool without_memory)
{
    struct pnet_arena a = {0};
    struct pnet_sources *s = pnet_sources_new(&a);
    uint32_t file;
    struct pnet_source_text source = {.text = text, .length = strlen(text)};
    CHECK(pnet_sources_add(s, "t", source, (struct pnet_span){0}, &file) && file == 0);
    CHECK(pnet_sources_get(s, 0) && !pnet_sources_get(s, 1));
    a.failed = without_memory;
    uint32_t line = 1, column = 1;
    for (uint32_t i = 0; i <= source.length; i++) {
        struct pnet_place p = pnet_source_place(s, 0, i);
        if ((text[i] & 0xc0) != 0x80)
            CHECKF(p.line == line && p.column == column, "byte %u: %u:%u, not %u:%u", i, p.line,
                p.column, line, column);
        struct pnet_span l = pnet_source_line(s, 0, line);
        CHECK(l.begin <= i && (l.end >= i || text[l.end] == '\r' || text[l.end] == '\n'));
        CHECK(l.begin == 0 || text[l.begin - 1] == '\n');
        CHECK(!memchr(text + l.begin, '\n', l.end - l.begin));
        if (text[i] == '\n') {
            line++;
            column = 1;
        } else if ((text[i + (i < source.length)] & 0xc0) != 0x80) {
            column++;
        }
    }
    /* in any order: what was asked before changes no answer */
    for (uint32_t i = 0; i <= source.length; i++)
        for (uint32_t j = 0; j <= source.length; j++) {
            struct pnet_arena fresh = {0};
            struct pnet_sources *t = pnet_sources_new(&fresh);
            CHECK(pnet_sources_add(t, "t", source, (struct pnet_span){0}, &file));
            struct pnet_place want = pnet_source_place(t, 0, j);
            pnet_source_place(s, 0, i);
            struct pnet_place got = pnet_source_place(s, 0, j);
            CHECK(got.line == want.line && got.column == want.column);
            CHECK(pnet_source_line_at(s, 0, j) == want.line);
            pnet_arena_free(&fresh);
        }
    pnet_arena_free(&a);
}

static void test_places(void)
{
    static const char *const texts[] = {"", "a", "\n", "\n\n", "a\nbc\n", "a\nbc", "\r\na\r\n\r\nb",
        "\ta\n\t\tb", "gr\xc3\xb6\xc3\x9f\x65\n\xe6\x95\xb0\xe5\xad\x97 x\n\xf0\x9f\x99\x82y"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_places(texts[i], false);
        check_places(texts[i], true);
    }
}

int main(void)
{
    test_arena();
    test_arena_failure();
    test_utf8();
    test_places();
    return check_end();
}
