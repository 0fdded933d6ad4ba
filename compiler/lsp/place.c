/* Bytes of a text to lines and columns of the protocol, and back. */
#include "compiler/lsp/internal.h"
#include "runtime/base/printable.h"

#include <stdlib.h>
#include <string.h>

static bool add_start(struct ruler *r, uint32_t start)
{
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 256;
        uint32_t *grown = realloc(r->starts, capacity * sizeof *grown);
        if (!grown) {
            r->failed = true;
            return false;
        }
        r->starts = grown;
        r->capacity = capacity;
    }
    r->starts[r->count++] = start;
    return true;
}

void pnet_ruler_use(struct ruler *r, const char *text, size_t length)
{
    if (r->text == text && r->length == length && r->count) return;
    r->text = text;
    r->length = length;
    r->count = 0;
    r->last = r->last_start = r->last_column = 0;
    if (!add_start(r, 0)) return;
    for (size_t i = 0; i < length; i++) {
        bool end = text[i] == '\n' || (text[i] == '\r' && (i + 1 == length || text[i + 1] != '\n'));
        if (end && !add_start(r, (uint32_t)i + 1)) return;
    }
}

void pnet_ruler_free(struct ruler *r)
{
    free(r->starts);
    *r = (struct ruler){0};
}

/* Bytes of the character at `at`, and its columns. */
static uint32_t step(const struct ruler *r, uint32_t at, uint32_t *columns)
{
    size_t length = pnet_utf8_length((const unsigned char *)r->text + at);
    if (!length || length > r->length - at) length = 1; /* files on disk may hold any bytes */
    *columns = r->utf8 ? (uint32_t)length : length == 4 ? 2 : 1;
    return (uint32_t)length;
}

/* The end of a line without its line end. */
static uint32_t line_end(const struct ruler *r, size_t line)
{
    if (line + 1 == r->count) return (uint32_t)r->length;
    uint32_t end = r->starts[line + 1];
    if (end > r->starts[line] && r->text[end - 1] == '\n') end--;
    if (end > r->starts[line] && r->text[end - 1] == '\r') end--;
    return end;
}

enum place pnet_ruler_place(struct ruler *r, int64_t line, int64_t character, uint32_t *offset)
{
    *offset = (uint32_t)r->length;
    if (line >= (int64_t)r->count)
        return line == (int64_t)r->count && !character ? PLACE_FOUND : PLACE_BEYOND;
    uint32_t at = r->starts[line], end = line_end(r, (size_t)line);
    int64_t column = 0;
    for (uint32_t columns; at < end && column < character; column += columns) {
        uint32_t bytes = step(r, at, &columns);
        if (column + columns > character) break;
        at += bytes;
    }
    *offset = at;
    return at < end && column < character ? PLACE_INSIDE : PLACE_FOUND;
}

uint32_t pnet_ruler_offset(struct ruler *r, int64_t line, int64_t character)
{
    uint32_t offset;
    pnet_ruler_place(r, line, character, &offset);
    return offset;
}

static size_t find_line(const struct ruler *r, uint32_t offset)
{
    size_t low = 0, high = r->count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (r->starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void pnet_ruler_position(struct ruler *r, const char *key, uint32_t offset, struct pnet_json *j)
{
    size_t line = 0;
    uint32_t column = 0;
    if (r->count) {
        if (offset > r->length) offset = (uint32_t)r->length;
        line = find_line(r, offset);
        uint32_t at = r->starts[line];
        if (r->last_start == at && r->last <= offset && r->last > at) {
            at = r->last;
            column = r->last_column;
        }
        while (at < offset) {
            uint32_t columns, bytes = step(r, at, &columns);
            if (at + bytes > offset) break;
            at += bytes;
            column += columns;
        }
        r->last = at;
        r->last_start = r->starts[line];
        r->last_column = column;
    }
    pnet_json_begin(j, key, '{');
    pnet_json_int(j, "line", (int64_t)line);
    pnet_json_int(j, "character", column);
    pnet_json_end(j, '}');
}

void pnet_ruler_range(
    struct ruler *r, const char *key, uint32_t begin, uint32_t end, struct pnet_json *j)
{
    pnet_json_begin(j, key, '{');
    pnet_ruler_position(r, "start", begin, j);
    pnet_ruler_position(r, "end", end, j);
    pnet_json_end(j, '}');
}
