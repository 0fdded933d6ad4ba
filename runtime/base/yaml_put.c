/* Writes nodes as text. */
#include "runtime/base/printable.h"
#include "runtime/base/yaml.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Characters without a meaning in YAML, at any place in a word. */
static bool is_plain(const char *text)
{
    static const char any[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./";
    static const char inside[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-%";
    bool sign = (text[0] == '-' || text[0] == '+') && text[1] >= '0' && text[1] <= '9';
    if (!*text || strcmp(text, "null") == 0) return false;
    return (sign || strchr(any, text[0])) && !text[strspn(text, inside)];
}

/* Returns the code point at `t`, that of a replacement for a byte that is not UTF-8; *size gets its bytes. */
static uint32_t code_point(const unsigned char *t, size_t *size)
{
    enum { REPLACEMENT = 0xFFFD };
    size_t length = pnet_utf8_length(t);
    *size = length ? length : 1;
    if (!length) return REPLACEMENT;
    uint32_t c = length == 1 ? t[0] : t[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) c = c << 6 | (t[i] & 0x3Fu);
    return c;
}

void pnet_yaml_put_word(const char *text, FILE *out)
{
    if (is_plain(text)) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const unsigned char *t = (const unsigned char *)text; *t;) {
        size_t size;
        uint32_t c = code_point(t, &size);
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", (int)c);
        else if (c >= 0x20 && c < 0x7F)
            fputc((int)c, out);
        else
            fprintf(out, "\\U%08" PRIX32, c);
        t += size;
    }
    fputc('"', out);
}

void pnet_yaml_put_key(const char *text, FILE *out)
{
    enum { SURELY_SHORT = 90 }; /* a byte takes ten characters at most */
    if (strlen(text) > SURELY_SHORT) fputs("? ", out);
    pnet_yaml_put_word(text, out);
    fputs(": ", out);
}

static void put_children(const struct pnet_yaml_node *n, FILE *out)
{
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next) {
        if (c != n->first) fputs(", ", out);
        if (n->kind == PNET_YAML_MAP) pnet_yaml_put_key(c->key, out);
        pnet_yaml_put(c, out);
    }
}

void pnet_yaml_put(const struct pnet_yaml_node *n, FILE *out)
{
    switch (n->kind) {
    case PNET_YAML_NULL: fputs("null", out); break;
    case PNET_YAML_SCALAR: pnet_yaml_put_word(n->text, out); break;
    case PNET_YAML_LIST:
    case PNET_YAML_MAP:
        fputc(n->kind == PNET_YAML_LIST ? '[' : '{', out);
        put_children(n, out);
        fputc(n->kind == PNET_YAML_LIST ? ']' : '}', out);
        break;
    }
}
