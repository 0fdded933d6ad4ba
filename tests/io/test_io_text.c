/* Numbers in text against the C library, lines and words against what was put together. */
#include "runtime/io/text.h"
#include "tests/io/files.h"

static double parsed(const char *text)
{
    double value = -12345;
    const char *end = pnet_number_parse(text, text + strlen(text), &value);
    CHECKF(end == text + strlen(text), "\"%s\"", text);
    return value;
}

static int same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_against_library(void)
{
    uint64_t state = 1;
    static const char *const formats[] = {"%.17g", "%.15g", "%.9g", "%.6f", "%.3f", "%.0f", "%e"};
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random_bits(&state);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (i % 2) v = (double)(int64_t)bits * 0x1p-44; /* the size of coordinates */
        if (!isfinite(v)) continue;
        char text[512];
        snprintf(text, sizeof text, formats[(size_t)i % 7], v);
        double got = parsed(text), want = strtod(text, NULL);
        CHECKF(same(got, want), "\"%s\": %a, expected %a", text, got, want);
    }
}

/* Texts with many digits, and those half way between two doubles or two floats. */
static void check_hard_numbers(void)
{
    static const char *const texts[] = {"9007199254740993", "9007199254740992", "9007199254740991",
        "1e22", "1e23", "8.5e22", "123456789012345678901234567890", "0.1", "0.30000000000000004",
        "2.2250738585072011e-308", "4.9406564584124654e-324", "1e-400", "1.7976931348623157e308",
        "0.000000000000000000000000000001", "1.00000000000000011102230246251565", "179769e304",
        "00000000000000000000000001.5", "-0", "-0.0", "+7", "1.", ".5", "5e-1", "5E+1",
        "1.00000005960464477540", "1.0000000596046447753906249", "16777217", "16777219"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double got = parsed(texts[i]), want = strtod(texts[i], NULL);
        CHECKF(same(got, want), "\"%s\": %a, expected %a", texts[i], got, want);
        float single, direct = strtof(texts[i], NULL);
        struct pnet_span word = pnet_span_of(texts[i]);
        CHECK(pnet_value_parse(word, PNET_F32, &single));
        CHECKF(memcmp(&single, &direct, 4) == 0, "\"%s\": %a, expected %a", texts[i],
            (double)single, (double)direct);
    }
}

static void check_floats_round_once(void)
{
    uint64_t state = 2;
    for (int i = 0; i < 100000; i++) {
        uint32_t bits = (uint32_t)random_bits(&state) & 0x7fffffff;
        float low, high;
        memcpy(&low, &bits, 4);
        bits++;
        memcpy(&high, &bits, 4);
        if (!isfinite(low) || !isfinite(high)) continue;
        char text[512]; /* just beside the middle of two floats: a double cannot tell */
        int n = snprintf(text, sizeof text, "%.60e", ((double)low + (double)high) / 2);
        text[60] = i % 2 ? '1' : text[60];
        (void)n;
        float got = 0, want = strtof(text, NULL);
        CHECK(pnet_value_parse(pnet_span_of(text), PNET_F32, &got));
        CHECKF(memcmp(&got, &want, 4) == 0, "\"%s\": %a, expected %a", text, (double)got,
            (double)want);
    }
}

static void check_specials(void)
{
    CHECK(isnan(parsed("nan")) && isnan(parsed("NaN")) && isnan(parsed("-nan")));
    CHECK(isnan(parsed("nan(ind)")) && isnan(parsed("-1.#IND00")) && isnan(parsed("1.#QNAN")));
    CHECK(parsed("inf") == INFINITY && parsed("-Infinity") == -INFINITY);
    CHECK(parsed("1.#INF") == INFINITY && parsed("-1.#INF00") == -INFINITY);
    CHECK(parsed("1d3") == 1000 && parsed("1D-1") == 0.1);
    static const char *const bad[] = {"", "-", "+", ".", "e5", "x", "--1", "#INF", "-e", "n", "in"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double v;
        CHECKF(!pnet_number_parse(bad[i], bad[i] + strlen(bad[i]), &v), "\"%s\"", bad[i]);
    }
    static const char *const partly[] = {"1.5x", "1e", "1e+", "12#", "1..2", "0x10", "1,5"};
    for (size_t i = 0; i < sizeof partly / sizeof *partly; i++) {
        double v;
        struct pnet_span word = pnet_span_of(partly[i]);
        CHECKF(!pnet_value_parse(word, PNET_F64, &v), "\"%s\"", partly[i]);
    }
    /* The end is where it is said to be. */
    double v;
    const char *text = "12345";
    CHECK(pnet_number_parse(text, text + 2, &v) == text + 2 && v == 12);
}

static void check_integers(void)
{
    static const struct {
        const char *text;
        enum pnet_scalar type;
        int fits;
        int64_t value;
    } cases[] = {{"255", PNET_U8, 1, 255}, {"256", PNET_U8, 0, 0}, {"-1", PNET_U8, 0, 0},
        {"-128", PNET_I8, 1, -128}, {"128", PNET_I8, 0, 0}, {"-129", PNET_I8, 0, 0},
        {"32767", PNET_I16, 1, 32767}, {"65536", PNET_U16, 0, 0},
        {"-2147483648", PNET_I32, 1, INT32_MIN}, {"2147483648", PNET_I32, 0, 0},
        {"4294967295", PNET_U32, 1, UINT32_MAX}, {"9223372036854775807", PNET_I64, 1, INT64_MAX},
        {"-9223372036854775808", PNET_I64, 1, INT64_MIN}, {"9223372036854775808", PNET_I64, 0, 0},
        {"18446744073709551616", PNET_U64, 0, 0}, {"5.0", PNET_U8, 1, 5}, {"5.5", PNET_U8, 0, 0},
        {"1e2", PNET_I32, 1, 100}, {"nan", PNET_I32, 0, 0}, {"-3.0", PNET_I16, 1, -3},
        {"+4", PNET_I16, 1, 4}, {"", PNET_I32, 0, 0}, {"-", PNET_I32, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t raw[8] = {0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee};
        int fits = pnet_value_parse(pnet_span_of(cases[i].text), cases[i].type, raw);
        CHECKF(fits == cases[i].fits, "\"%s\" as %d", cases[i].text, cases[i].type);
        size_t size = pnet_scalar_size(cases[i].type);
        if (fits) CHECKF(memcmp(raw, &cases[i].value, size) == 0, "\"%s\"", cases[i].text);
        CHECK(size == 8 || raw[size] == 0xee); /* no byte beyond the type */
    }
    uint64_t most = 0;
    CHECK(pnet_value_parse(pnet_span_of("18446744073709551615"), PNET_U64, &most) &&
          most == UINT64_MAX);
    CHECK(!pnet_span_count(pnet_span_of("101"), 100, &most));
    CHECK(pnet_span_count(pnet_span_of("100"), 100, &most) && most == 100);
    CHECK(!pnet_span_count(pnet_span_of("5"), 4, &most) &&
          !pnet_span_count(pnet_span_of(""), 9, &most));
}

static void check_printing(void)
{
    uint64_t state = 3;
    char text[40];
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random_bits(&state);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (i % 3 == 1) v = (double)((int64_t)bits >> 20) / 1000; /* few decimals */
        if (i % 3 == 2) v = (double)(int64_t)bits * 0x1p-44;
        if (!isfinite(v)) continue;
        int n = pnet_number_print(text, sizeof text, v, false);
        CHECKF(
            n == (int)strlen(text) && n < 32 && same(strtod(text, NULL), v), "%a: \"%s\"", v, text);
        float single = (float)v;
        if (!isfinite(single)) continue;
        pnet_number_print(text, sizeof text, (double)single, true);
        float back = strtof(text, NULL);
        CHECKF(memcmp(&back, &single, 4) == 0, "%a: \"%s\"", (double)single, text);
    }
    static const struct {
        double value;
        const char *text;
    } exact[] = {{0.1, "0.1"}, {-2.5, "-2.5"}, {100, "100"}, {0, "0"}, {-0.0, "-0"}, {0.05, "0.05"},
        {5648349.776039, "5648349.776039"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"}};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        pnet_number_print(text, sizeof text, exact[i].value, false);
        CHECK_STR(text, exact[i].text);
    }
    pnet_number_print(text, sizeof text, (double)0.1f, true);
    CHECK_STR(text, "0.1");
}

static void check_lines(const char *file, const char *const *lines, int count)
{
    struct pnet_bytes b = bytes_of(file, strlen(file));
    struct pnet_text t;
    struct pnet_span line;
    pnet_text_begin(&t, &b, "f");
    for (int i = 0; i < count; i++) {
        CHECK(pnet_text_line(&t, &line) && t.line == i + 1);
        CHECKF(pnet_span_is(line, lines[i]), "\"%.*s\"", (int)pnet_span_size(line), line.at);
    }
    CHECK(!pnet_text_line(&t, &line));
}

static void check_spans(void)
{
    static const char *const lines[] = {"ab", "", " c ", "d"};
    check_lines("ab\n\n c \nd", lines, 4);
    check_lines("ab\r\n\r\n c \r\nd\r\n", lines, 4);
    check_lines("ab\r\r c \rd", lines, 4);
    check_lines("", lines, 0);
    struct pnet_span s = pnet_span_of(" \tone  two\t"), word;
    CHECK(pnet_span_word(&s, &word) && pnet_span_is(word, "one"));
    CHECK(pnet_span_word(&s, &word) && pnet_span_is_nocase(word, "TWO"));
    CHECK(!pnet_span_word(&s, &word));
    CHECK_STR(pnet_span_quote(pnet_span_of("a\1b\xff")).text, "a?b?");
    CHECK(strlen(pnet_span_quote(pnet_span_of("0123456789012345678901234567890123456789x")).text) ==
          43);
    struct pnet_error e;
    struct pnet_text t;
    struct pnet_bytes b = bytes_of("x\ny", 3);
    pnet_text_begin(&t, &b, "file.xyz");
    pnet_text_line(&t, &word);
    pnet_text_line(&t, &word);
    CHECK(pnet_text_error(&t, &e, "wanted %d", 7) == PNET_BAD_DATA && e.status == PNET_BAD_DATA);
    CHECK_STR(e.message, "file.xyz:2: wanted 7");
}

int main(void)
{
    check_against_library();
    check_hard_numbers();
    check_floats_round_once();
    check_specials();
    check_integers();
    check_printing();
    check_spans();
    return check_end();
}
