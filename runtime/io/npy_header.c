#include "runtime/io/npy_header.h"
#include "runtime/io/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *path;
    const char *begin, *at, *end;
    struct pnet_npy_header *h;
    struct pnet_error *e;
};

static enum pnet_status expected(struct parser *p, const char *what)
{
    struct pnet_span rest = {p->at, p->end};
    return pnet_byte_error(p->path, (uint64_t)(p->at - p->begin), p->e, "expected %s, found \"%s\"",
        what, pnet_span_quote(rest).text);
}

static void pass_blanks(struct parser *p)
{
    while (p->at < p->end && strchr(" \t\r\n", *p->at) && *p->at) p->at++;
}

/* Takes the character if it comes next. */
static bool take(struct parser *p, char c)
{
    pass_blanks(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* A Python string without escapes: names and types have none. */
static bool take_string(struct parser *p, struct pnet_span *text)
{
    pass_blanks(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
    const char *stop = memchr(p->at + 1, *p->at, (size_t)(p->end - p->at - 1));
    if (!stop) return false;
    *text = (struct pnet_span){p->at + 1, stop};
    p->at = stop + 1;
    return true;
}

static bool take_number(struct parser *p, int64_t *value)
{
    pass_blanks(p);
    struct pnet_span digits = {p->at, p->at};
    while (digits.end < p->end && *digits.end >= '0' && *digits.end <= '9') digits.end++;
    uint64_t n;
    if (!pnet_span_count(digits, INT64_MAX, &n)) return false;
    *value = (int64_t)n;
    p->at = digits.end;
    if (p->at < p->end && *p->at == 'L') p->at++; /* as Python 2 writes it */
    return true;
}

/* (3, 4), (3,), (), or a bare number. */
static enum pnet_status parse_shape(struct parser *p, int *dims, int64_t shape[PNET_NPY_DIMS])
{
    *dims = 0;
    if (!take(p, '(')) {
        *dims = 1;
        return take_number(p, &shape[0]) ? PNET_OK : expected(p, "a shape");
    }
    while (!take(p, ')')) {
        if (*dims == PNET_NPY_DIMS) return expected(p, "a shape of 8 dimensions at most");
        if (!take_number(p, &shape[*dims])) return expected(p, "the length of a dimension");
        ++*dims;
        if (!take(p, ',')) {
            if (take(p, ')')) break;
            return expected(p, ", or ) in a shape");
        }
    }
    return PNET_OK;
}

/* Parses '<f4': byte order, kind, bytes. `c` gets type, swap and half. Padding ('|V3') gives *padding, the number of bytes. */
static bool parse_type(struct pnet_span s, struct pnet_column *c, uint64_t *padding)
{
    static const struct {
        const char *code;
        enum pnet_scalar type;
    } known[] = {{"b1", PNET_U8}, {"i1", PNET_I8}, {"u1", PNET_U8}, {"i2", PNET_I16},
        {"u2", PNET_U16}, {"i4", PNET_I32}, {"u4", PNET_U32}, {"i8", PNET_I64}, {"u8", PNET_U64},
        {"f2", PNET_F32}, {"f4", PNET_F32}, {"f8", PNET_F64}};
    *padding = 0;
    if (s.at < s.end && strchr("<>|=", *s.at) && *s.at) c->swap = *s.at++ == '>';
    if (s.at < s.end && *s.at == 'V') {
        s.at++;
        return pnet_span_count(s, PNET_COLUMNS_MOST, padding) && *padding;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!pnet_span_is(s, known[i].code)) continue;
        c->type = known[i].type;
        c->half = pnet_span_is(s, "f2");
        return true;
    }
    return false;
}

static enum pnet_status add_columns(
    struct parser *p, struct pnet_span name, struct pnet_span code, int64_t repeat)
{
    struct pnet_column found = {.type = PNET_U8};
    uint64_t padding;
    if (!parse_type(code, &found, &padding) || (padding && !p->h->structured)) {
        p->at = code.at;
        return expected(p, "a type of plain numbers: i1 to i8, u1 to u8, f2, f4, f8 or b1");
    }
    if (padding && __builtin_mul_overflow(repeat, (int64_t)padding, &repeat))
        return expected(p, "less padding");
    for (int64_t k = 0; k < repeat; k++) {
        struct pnet_column *c;
        enum pnet_status status =
            pnet_columns_add(&p->h->columns, name, found.type, &c, p->path, p->e);
        if (status != PNET_OK) return status;
        c->number = repeat > 1 ? (int)k : -1;
        c->swap = found.swap;
        c->half = found.half;
        c->skip = padding > 0;
    }
    return PNET_OK;
}

/* One ('name', '<f4') or ('name', '<f4', (3,)). */
static enum pnet_status parse_member(struct parser *p)
{
    struct pnet_span name, code;
    int64_t shape[PNET_NPY_DIMS], repeat = 1;
    int dims = 0;
    if (!take(p, '(')) return expected(p, "( before a field");
    if (!take_string(p, &name)) return expected(p, "the name of a field");
    if (!take(p, ',')) return expected(p, ", after a name");
    if (!take_string(p, &code)) return expected(p, "the type of a field, a string");
    if (take(p, ',')) {
        enum pnet_status status = parse_shape(p, &dims, shape);
        if (status != PNET_OK) return status;
    }
    for (int i = 0; i < dims; i++)
        if (__builtin_mul_overflow(repeat, shape[i], &repeat))
            return expected(p, "a shape within 64 bits");
    if (!take(p, ')')) return expected(p, ") after a field");
    return add_columns(p, name, code, repeat);
}

static enum pnet_status parse_descr(struct parser *p)
{
    struct pnet_span code;
    if (take_string(p, &code)) return add_columns(p, (struct pnet_span){NULL, NULL}, code, 1);
    if (!take(p, '[')) return expected(p, "a type, or a list of fields");
    p->h->structured = true;
    while (!take(p, ']')) {
        enum pnet_status status = parse_member(p);
        if (status != PNET_OK) return status;
        if (!take(p, ',')) {
            if (take(p, ']')) break;
            return expected(p, ", or ] in a list of fields");
        }
    }
    return PNET_OK;
}

static enum pnet_status parse_order(struct parser *p)
{
    static const char *const words[] = {"False", "True"};
    pass_blanks(p);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(p->end - p->at) < n || memcmp(p->at, words[i], n) != 0) continue;
        p->h->fortran = i;
        p->at += n;
        return PNET_OK;
    }
    return expected(p, "True or False");
}

static enum pnet_status parse_dictionary(struct parser *p)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};
    if (!take(p, '{')) return expected(p, "{");
    while (!take(p, '}')) {
        struct pnet_span key;
        if (!take_string(p, &key)) return expected(p, "a key");
        int which = 0;
        while (which < 3 && !pnet_span_is(key, keys[which])) which++;
        if (which == 3 || seen[which]) {
            p->at = key.at;
            return expected(p, "descr, fortran_order and shape, once each");
        }
        seen[which] = true;
        if (!take(p, ':')) return expected(p, ": after a key");
        enum pnet_status status = which == 0   ? parse_descr(p)
                                  : which == 1 ? parse_order(p)
                                               : parse_shape(p, &p->h->dims, p->h->shape);
        if (status != PNET_OK) return status;
        if (!take(p, ',')) {
            if (take(p, '}')) break;
            return expected(p, ", or } in the header");
        }
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return expected(p, "descr, fortran_order and shape in the header");
    return PNET_OK;
}

enum pnet_status pnet_npy_header_read(
    const struct pnet_bytes *b, const char *path, struct pnet_npy_header *h, struct pnet_error *e)
{
    *h = (struct pnet_npy_header){.count = 1};
    if (b->size < 10 || memcmp(b->data, "\x93NUMPY", 6) != 0)
        return pnet_byte_error(path, 0, e, "expected an NPY header");
    unsigned version = b->data[6];
    size_t head = version == 1 ? 10 : 12;
    uint32_t length = 0;
    if (version < 1 || version > 3)
        return pnet_byte_error(path, 6, e, "expected version 1 to 3, found %u", version);
    if (b->size >= head) memcpy(&length, b->data + 8, version == 1 ? 2 : 4);
    if (b->size < head || length > b->size - head)
        return pnet_byte_error(path, b->size, e, "the file ends within the header");

    const char *text = (const char *)b->data;
    struct parser p = {.path = path,
        .begin = text,
        .at = text + head,
        .end = text + head + length,
        .h = h,
        .e = e};
    enum pnet_status status = parse_dictionary(&p);
    if (status != PNET_OK) return status;

    h->data = b->data + head + length;
    h->item = pnet_columns_pack(&h->columns, h->data);
    for (int i = 0; i < h->dims; i++)
        if (__builtin_mul_overflow(h->count, h->shape[i], &h->count))
            return pnet_byte_error(path, head, e, "the shape's product is beyond 64 bits");
    uint64_t left = b->size - head - length;
    if (!h->item || (uint64_t)h->count > left / h->item)
        return pnet_byte_error(path, b->size, e,
            "the file ends, expected %" PRId64 " items of %zu bytes behind the header", h->count,
            h->item);
    return PNET_OK;
}

const char *pnet_npy_code(enum pnet_scalar type)
{
    static const char *const codes[] = {
        "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"};
    return codes[type];
}

/* Version 3 has UTF-8 in the header, and 32 bits for its length, which version 1 has not. */
void pnet_npy_header_write(FILE *f, const char *descr, int dims, const int64_t *shape)
{
    static const char order[] = "{'descr': %s, 'fortran_order': False, 'shape': (";
    char tail[PNET_NPY_DIMS * 24 + 16];
    int n = 0;
    for (int i = 0; i < dims; i++)
        n += snprintf(tail + n, sizeof tail - (size_t)n, "%s%" PRId64, i ? ", " : "", shape[i]);
    snprintf(tail + n, sizeof tail - (size_t)n, dims == 1 ? ",), }" : "), }");
    bool plain = true;
    for (const char *c = descr; *c; c++) plain &= (unsigned char)*c < 128;
    size_t text = sizeof order - 1 - 2 + strlen(descr) + strlen(tail) + 1;
    bool wide = !plain || text > 60000;
    size_t head = wide ? 12 : 10, fill = (64 - (head + text) % 64) % 64, length = text + fill;
    fwrite("\x93NUMPY", 1, 6, f);
    fputc(wide ? 3 : 1, f);
    fputc(0, f);
    for (size_t k = 0; k < head - 8; k++) fputc((int)(length >> 8 * k & 255), f);
    fprintf(f, order, descr);
    fprintf(f, "%s%*s\n", tail, (int)fill, "");
}
