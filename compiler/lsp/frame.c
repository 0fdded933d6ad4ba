/* Messages in a stream: header lines, an empty line, and as many bytes as Content-Length says. */
#include "compiler/lsp/internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_LINE = 1024, MAX_LINES = 32, FIRST_CHUNK = 64 << 10 };

/* Reads a line of at most MAX_LINE bytes, without its end. Returns its length, -1 at the end of the stream, -2: it is longer. */
static int read_line(FILE *in, char line[MAX_LINE + 1])
{
    int length = 0, c;
    while ((c = getc(in)) != EOF && c != '\n') {
        if (length == MAX_LINE) return -2;
        line[length++] = (char)c;
    }
    if (c == EOF) return length ? -2 : -1;
    if (length && line[length - 1] == '\r') length--;
    line[length] = 0;
    return length;
}

/* Reads the number of a Content-Length, at most `PNET_LSP_MAX_SKIP`; -1: it is none, or larger. */
static int64_t read_length(const char *text)
{
    int64_t n = 0;
    while (*text == ' ' || *text == '\t') text++;
    if (!*text) return -1;
    for (; *text >= '0' && *text <= '9'; text++) {
        n = 10 * n + (*text - '0');
        if (n > PNET_LSP_MAX_SKIP) return -1;
    }
    while (*text == ' ' || *text == '\t') text++;
    return *text ? -1 : n;
}

static enum frame read_header(FILE *in, int64_t *length)
{
    static const char key[] = "Content-Length:";
    char line[MAX_LINE + 1];
    *length = -1;
    for (int i = 0; i < MAX_LINES; i++) {
        int n = read_line(in, line);
        if (n == -1 && i == 0) return FRAME_END;
        if (n < 0) return FRAME_BROKEN;
        if (n == 0) return *length >= 0 ? FRAME_MESSAGE : FRAME_BROKEN;
        if (strlen(line) != (size_t)n || !strchr(line, ':')) return FRAME_BROKEN;
        if (strncasecmp(line, key, sizeof key - 1) != 0) continue;
        if (*length >= 0) return FRAME_BROKEN; /* given twice */
        *length = read_length(line + sizeof key - 1);
        if (*length < 0) return FRAME_BROKEN;
    }
    return FRAME_BROKEN;
}

static enum frame skip(FILE *in, int64_t length)
{
    char chunk[4096];
    while (length > 0) {
        size_t want = length < (int64_t)sizeof chunk ? (size_t)length : sizeof chunk;
        size_t n = fread(chunk, 1, want, in);
        if (n < want) return FRAME_BROKEN;
        length -= (int64_t)n;
    }
    return FRAME_LONG;
}

enum frame pnet_lsp_read(FILE *in, char **body, size_t *length)
{
    int64_t announced;
    *body = NULL;
    *length = 0;
    enum frame f = read_header(in, &announced);
    if (f != FRAME_MESSAGE) return f;
    if (announced > PNET_LSP_MAX_BODY) return skip(in, announced);
    /* memory is taken as bytes come, not as they are announced */
    size_t size = (size_t)announced, capacity = size < FIRST_CHUNK ? size : FIRST_CHUNK, got = 0;
    char *text = malloc(capacity + 1);
    while (text) {
        got += fread(text + got, 1, capacity - got, in);
        if (got < capacity) {
            free(text);
            return FRAME_BROKEN;
        }
        if (got == size) break;
        capacity = size - capacity < capacity ? size : 2 * capacity;
        char *grown = realloc(text, capacity + 1);
        if (!grown) free(text);
        text = grown;
    }
    if (!text) return FRAME_NO_MEMORY;
    text[size] = 0;
    *body = text;
    *length = size;
    return FRAME_MESSAGE;
}

bool pnet_lsp_write(FILE *out, struct pnet_json *j)
{
    bool whole = !j->failed && j->text;
    if (whole) {
        fprintf(out, "Content-Length: %zu\r\n\r\n", j->size);
        fwrite(j->text, 1, j->size, out); /* the owner of the stream sees its errors */
        fflush(out);
    }
    pnet_json_free(j);
    return whole;
}
