#include "runtime/io/text.h"
#include "runtime/base/number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pnet_span_is(struct pnet_span s, const char *text)
{
    size_t n = strlen(text);
    return pnet_span_size(s) == n && memcmp(s.at, text, n) == 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Compares ASCII without case: a locale may have other small letters. */
static bool same_nocase(const char *a, const char *b, size_t n)
{
    size_t i = 0;
    while (i < n && lower(a[i]) == lower(b[i])) i++;
    return i == n;
}

bool pnet_span_is_nocase(struct pnet_span s, const char *text)
{
    size_t n = strlen(text);
    return pnet_span_size(s) == n && same_nocase(s.at, text, n);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool pnet_span_word(struct pnet_span *s, struct pnet_span *word)
{
    const char *p = s->at;
    while (p < s->end && is_blank(*p)) p++;
    word->at = p;
    while (p < s->end && !is_blank(*p)) p++;
    word->end = s->at = p;
    return word->at < word->end;
}

bool pnet_span_count(struct pnet_span s, uint64_t most, uint64_t *value)
{
    uint64_t n = 0;
    if (s.at == s.end) return false;
    for (const char *p = s.at; p < s.end; p++) {
        if (*p < '0' || *p > '9') return false;
        unsigned digit = (unsigned)(*p - '0');
        if (n > (most - digit) / 10 || digit > most) return false;
        n = n * 10 + digit;
    }
    *value = n;
    return true;
}

bool pnet_span_integer(struct pnet_span s, bool *minus, uint64_t *magnitude)
{
    uint64_t n = 0;
    *minus = false;
    if (s.at < s.end && (*s.at == '-' || *s.at == '+')) *minus = *s.at++ == '-';
    if (s.at == s.end) return false;
    for (const char *p = s.at; p < s.end; p++) {
        if (*p < '0' || *p > '9') return false;
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
            return false;
    }
    *magnitude = n;
    return true;
}

static bool is_digit(char c)
{
    return (unsigned)c - '0' < 10;
}

/* Parses exponent digits at p; exponents far out of range stay out of range. */
static const char *parse_exponent(const char *p, const char *end, int64_t *scale)
{
    const char *q = p + 1;
    bool minus = false;
    if (q < end && (*q == '-' || *q == '+')) minus = *q++ == '-';
    if (q == end || !is_digit(*q)) return p;
    int64_t exponent = 0;
    for (; q < end && is_digit(*q); q++)
        if (exponent < 1000000) exponent = exponent * 10 + (*q - '0');
    *scale += minus ? -exponent : exponent;
    return q;
}

/* Takes sign, digits, and a comma with digits (*comma) from the front of `s`, and an exponent. */
static bool take_comma_number(struct pnet_span *s, bool *comma)
{
    const char *p = s->at, *first;
    *comma = false;
    if (p < s->end && (*p == '-' || *p == '+')) p++;
    first = p;
    while (p < s->end && is_digit(*p)) p++;
    if (p == first) return false;
    if (p + 1 < s->end && *p == ',' && is_digit(p[1])) {
        *comma = true;
        for (p++; p < s->end && is_digit(*p);) p++;
    }
    if (p < s->end && (*p == 'e' || *p == 'E')) {
        int64_t scale = 0;
        p = parse_exponent(p, s->end, &scale);
    }
    s->at = p;
    return true;
}

bool pnet_span_decimal_commas(struct pnet_span line, bool strict)
{
    int count = 0, commas = 0;
    for (struct pnet_span s = line;; count++) {
        bool comma;
        while (s.at < s.end && (is_blank(*s.at) || *s.at == '"')) s.at++;
        if (s.at == s.end) break;
        if (!take_comma_number(&s, &comma)) return false;
        if (strict && count < 3 && !comma) return false;
        commas += comma;
        /* what ends a number: a blank, a semicolon, or a comma before a blank */
        if (s.at < s.end && *s.at == '"') s.at++;
        if (s.at == s.end) continue;
        bool ends = is_blank(*s.at) || *s.at == ';' ||
                    (*s.at == ',' && (s.at + 1 == s.end || is_blank(s.at[1]) || s.at[1] == '"'));
        if (!ends) return false;
        s.at++;
    }
    return count >= 3 && commas > 0;
}

struct pnet_quote pnet_span_quote(struct pnet_span s)
{
    enum { MOST = 40 };
    struct pnet_quote q;
    size_t n = pnet_span_size(s), shown = n < MOST ? n : MOST;
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)s.at[i];
        q.text[i] = c < 32 || c >= 127 ? '?' : (char)c;
    }
    memcpy(q.text + shown, n > MOST ? "..." : "", n > MOST ? 4 : 1);
    return q;
}

void pnet_text_begin(struct pnet_text *t, const struct pnet_bytes *b, const char *path)
{
    const char *p = (const char *)b->data, *end = p + b->size;
    *t = (struct pnet_text){.begin = p, .at = p, .end = end, .path = path, .ending = '\n'};
    while (p < end && *p != '\n' && *p != '\r') p++;
    if (end - p > 1 && p[0] == '\r' && p[1] != '\n') t->ending = '\r';
}

void pnet_text_begin_head(struct pnet_text *t, const struct pnet_file_parts *f)
{
    pnet_text_begin(t, &(struct pnet_bytes){f->bytes.data, f->head, true}, f->path);
}

/* A line that ends where the memory does may go on. */
bool pnet_text_end_head(
    struct pnet_text *t, const struct pnet_file_parts *f, enum pnet_status status)
{
    bool known = status == PNET_NO_MEMORY || (status == PNET_OK && t->at < t->end);
    if (!known && f->head < f->bytes.size) return true;
    t->end = t->begin + f->bytes.size;
    return false;
}

bool pnet_text_line(struct pnet_text *t, struct pnet_span *line)
{
    if (t->at == t->end) return false;
    const char *stop = memchr(t->at, t->ending, (size_t)(t->end - t->at));
    line->at = t->at;
    line->end = stop ? stop : t->end;
    t->at = stop ? stop + 1 : t->end;
    t->line++;
    if (line->end > line->at && line->end[-1] == '\r') line->end--;
    return true;
}

bool pnet_text_full_line(struct pnet_text *t, struct pnet_span *line)
{
    while (pnet_text_line(t, line)) {
        for (const char *p = line->at; p < line->end; p++)
            if (!is_blank(*p)) return true;
    }
    return false;
}

/* In a file without lines, errors are at the first line. */
struct pnet_place pnet_text_place(const struct pnet_text *t)
{
    struct pnet_place place;
    snprintf(
        place.text, sizeof place.text, "%.480s:%lld", t->path, (long long)(t->line ? t->line : 1));
    return place;
}

enum pnet_status pnet_text_error(
    const struct pnet_text *t, struct pnet_error *e, const char *format, ...)
{
    char text[480];
    va_list args;
    va_start(args, format);
    pnet_number_vformat(text, sizeof text, format, args);
    va_end(args);
    return pnet_error_set(e, PNET_BAD_DATA, "%s: %s", pnet_text_place(t).text, text);
}

enum pnet_status pnet_text_error_commas(
    const struct pnet_text *t, struct pnet_span line, struct pnet_error *e)
{
    return pnet_text_error(t, e,
        "numbers with decimal commas, \"%s\": write them with decimal points",
        pnet_span_quote(line).text);
}

/* strtod on [p, end), for what the exact path cannot do. `single` gives strtof: rounding once. */
static bool slow_number(const char *p, const char *end, bool single, double *value)
{
    /* No double needs more than 767 digits; zeros and exponent leave room to spare. */
    char text[1200];
    size_t n = (size_t)(end - p);
    if (n >= sizeof text) return false;
    for (size_t i = 0; i < n; i++) text[i] = p[i] == 'd' || p[i] == 'D' ? 'e' : p[i];
    text[n] = '\0';
    char *stop;
    *value = single ? (double)pnet_number_read_single(text, &stop) : pnet_number_read(text, &stop);
    return stop == text + n;
}

static bool starts_with(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && same_nocase(p, word, n);
}

/* nan, inf, infinity, and a payload in parentheses. */
static const char *parse_special(const char *p, const char *end, bool minus, double *value)
{
    if (starts_with(p, end, "inf")) {
        *value = minus ? -INFINITY : INFINITY;
        return p + (starts_with(p, end, "infinity") ? 8 : 3);
    }
    if (!starts_with(p, end, "nan")) return NULL;
    *value = NAN;
    p += 3;
    const char *close = p < end && *p == '(' ? memchr(p, ')', (size_t)(end - p)) : NULL;
    return close ? close + 1 : p;
}

/* 1.#INF, 1.#QNAN, 1.#IND00: `p` is at the #. */
static const char *parse_microsoft(const char *p, const char *end, bool minus, double *value)
{
    static const char *const words[] = {"#INF", "#QNAN", "#SNAN", "#IND"};
    for (int i = 0; i < 4; i++) {
        if (!starts_with(p, end, words[i])) continue;
        *value = i ? (double)NAN : minus ? -INFINITY : INFINITY;
        p += strlen(words[i]);
        while (p < end && *p == '0') p++;
        return p;
    }
    return NULL;
}

const char *pnet_number_parse(const char *p, const char *end, double *value)
{
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *start = p;
    bool minus = false;
    if (p < end && (*p == '-' || *p == '+')) minus = *p++ == '-';

    /* Up to 18 digits are gathered as an integer; more are left to the library. */
    const uint64_t full = UINT64_C(100000000000000000);
    uint64_t digits = 0;
    int64_t scale = 0;
    bool cut = false;
    const char *first = p;
    for (; p < end && is_digit(*p); p++) {
        if (digits < full)
            digits = digits * 10 + (unsigned)(*p - '0');
        else
            cut = true;
    }
    ptrdiff_t seen = p - first;
    if (p < end && *p == '.') {
        first = ++p;
        for (; p < end && is_digit(*p); p++) {
            if (digits < full)
                digits = digits * 10 + (unsigned)(*p - '0'), scale--;
            else
                cut = true;
        }
        seen += p - first;
        if (seen == 1 && digits == 1 && p < end && *p == '#')
            return parse_microsoft(p, end, minus, value);
    }
    if (!seen) return parse_special(p, end, minus, value);
    if (p < end && (*p == 'e' || *p == 'E' || *p == 'd' || *p == 'D'))
        p = parse_exponent(p, end, &scale);

    /* Both operands are exact and the one operation rounds once (Clinger, 1990). */
    if (!cut && digits <= UINT64_C(1) << 53 && scale >= -22 && scale <= 22) {
        double x = (double)digits;
        x = scale < 0 ? x / tens[-scale] : x * tens[scale];
        *value = minus ? -x : x;
        return p;
    }
    return slow_number(start, p, false, value) ? p : NULL;
}

static bool store_integer(bool minus, uint64_t magnitude, enum pnet_scalar type, void *to)
{
    size_t size = pnet_scalar_size(type);
    bool is_signed = type == PNET_I8 || type == PNET_I16 || type == PNET_I32 || type == PNET_I64;
    uint64_t most = UINT64_MAX >> (64 - 8 * size);
    if (is_signed)
        most = (most >> 1) + minus;
    else if (minus)
        most = 0;
    if (magnitude > most) return false;
    uint64_t bits = minus ? 0 - magnitude : magnitude;
    memcpy(to, &bits, size); /* little endian: the low bytes come first */
    return true;
}

bool pnet_value_parse(struct pnet_span word, enum pnet_scalar type, void *to)
{
    bool minus, real = type == PNET_F32 || type == PNET_F64;
    uint64_t magnitude;
    double value;
    if (!real && pnet_span_integer(word, &minus, &magnitude))
        return store_integer(minus, magnitude, type, to);
    if (pnet_number_parse(word.at, word.end, &value) != word.end) return false;
    if (type == PNET_F64) {
        memcpy(to, &value, sizeof value);
        return true;
    }
    if (!real) {
        if (value != floor(value) || fabs(value) >= 0x1p63) return false;
        return store_integer(value < 0, (uint64_t)fabs(value), type, to);
    }
    /* Half-way between two floats the first rounding may have hidden on which side the text is. Below the normal floats,
       half-way is elsewhere. */
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool doubtful = (bits & 0x1fffffff) == 0x10000000 || (fabs(value) < 0x1p-126 && value != 0);
    if (doubtful && !slow_number(word.at, word.end, true, &value)) return false;
    float single = (float)value;
    memcpy(to, &single, sizeof single);
    return true;
}

/* The decimal point put into the digits of an integer. */
static int print_decimal(char *text, bool minus, uint64_t digits, int decimals)
{
    char reversed[40];
    int n = 0, length = 0;
    do {
        reversed[n++] = (char)('0' + digits % 10);
        digits /= 10;
        if (n == decimals) reversed[n++] = '.';
    } while (digits || n <= decimals + (decimals > 0));
    if (minus) text[length++] = '-';
    while (n) text[length++] = reversed[--n];
    text[length] = '\0';
    return length;
}

int pnet_number_print(char *text, size_t size, double value, bool single)
{
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};
    enum { DECIMALS = 10 };
    if (!isfinite(value))
        return snprintf(text, size, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    /* Up to 2^53 the digits and the power of ten are exact, so what the reader computes from the
       text is this quotient. */
    double magnitude = fabs(value);
    for (int d = 0; d <= DECIMALS && magnitude * tens[d] < 0x1p53; d++) {
        double digits = rint(magnitude * tens[d]), back = digits / tens[d];
        if (single ? (float)back == (float)magnitude : back == magnitude)
            return print_decimal(text, signbit(value), (uint64_t)digits, d);
    }
    int n = 0;
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        double back = 0;
        n = pnet_number_format(text, size, "%.*g", digits, value);
        if (!pnet_number_parse(text, text + n, &back)) continue;
        if (single ? (float)back == (float)value : back == value) break;
    }
    return n;
}
