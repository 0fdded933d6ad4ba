#include "runtime/base/json.h"
#include "runtime/base/blocks.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pnet_json_raw(struct pnet_json *j, const char *bytes, size_t size)
{
    if (j->failed) return;
    if (size >= j->capacity - j->size) {
        size_t capacity = j->capacity ? j->capacity : 256;
        while (capacity - j->size <= size && capacity <= SIZE_MAX / 2) capacity *= 2;
        char *text = capacity - j->size > size ? realloc(j->text, capacity) : NULL;
        if (!text) {
            j->failed = true;
            return;
        }
        j->text = text;
        j->capacity = capacity;
    }
    memcpy(j->text + j->size, bytes, size);
    j->size += size;
    j->text[j->size] = '\0';
}

void pnet_json_free(struct pnet_json *j)
{
    free(j->text);
    *j = (struct pnet_json){.text = NULL};
}

static void put_char(struct pnet_json *j, unsigned char c)
{
    static const char named[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *at = memchr(named, c, sizeof named - 1);
    char text[8];
    int size = 1;
    if (at)
        size = snprintf(text, sizeof text, "\\%c", letter[at - named]);
    else if (c < 0x20 || c == 0x7F)
        size = snprintf(text, sizeof text, "\\u%04x", c);
    else
        text[0] = (char)c;
    pnet_json_raw(j, text, (size_t)size);
}

/* Characters of two and three bytes. */
static void put_code(struct pnet_json *j, const unsigned char *s, size_t length)
{
    unsigned code = length == 2 ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
                                : (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    char text[8];
    pnet_json_raw(j, text, (size_t)snprintf(text, sizeof text, "\\u%04x", code));
}

static void put_string(struct pnet_json *j, const char *text)
{
    pnet_json_raw(j, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t length = pnet_utf8_length(s);
        if (length == 1)
            put_char(j, *s);
        else if (length > 1 && pnet_utf8_is_control(s, length))
            put_code(j, s, length);
        else if (length > 1)
            pnet_json_raw(j, (const char *)s, length);
        else
            pnet_json_raw(j, "\xEF\xBF\xBD", 3);
        s += length ? length : 1;
    }
    pnet_json_raw(j, "\"", 1);
}

/* Writes the comma and the key before a value. */
static void place(struct pnet_json *j, const char *key)
{
    if (j->comma) pnet_json_raw(j, ",", 1);
    if (key) {
        put_string(j, key);
        pnet_json_raw(j, ":", 1);
    }
    j->comma = true;
}

void pnet_json_begin(struct pnet_json *j, const char *key, char bracket)
{
    place(j, key);
    pnet_json_raw(j, &bracket, 1);
    j->comma = false;
}

void pnet_json_end(struct pnet_json *j, char bracket)
{
    pnet_json_raw(j, &bracket, 1);
    j->comma = true;
}

void pnet_json_string(struct pnet_json *j, const char *key, const char *text)
{
    place(j, key);
    put_string(j, text);
}

void pnet_json_int(struct pnet_json *j, const char *key, int64_t value)
{
    char text[24];
    place(j, key);
    pnet_json_raw(j, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void pnet_json_double(struct pnet_json *j, const char *key, double value)
{
    char text[40];
    if (!isfinite(value)) {
        pnet_json_null(j, key);
        return;
    }
    place(j, key);
    for (int digits = 15; digits <= 17; digits++) {
        pnet_number_format(text, sizeof text, "%.*g", digits, value);
        if (pnet_number_read(text, NULL) == value) break;
    }
    pnet_json_raw(j, text, strlen(text));
}

void pnet_json_float(struct pnet_json *j, const char *key, float value)
{
    char text[40];
    if (!isfinite(value)) {
        pnet_json_null(j, key);
        return;
    }
    place(j, key);
    for (int digits = 6; digits <= 9; digits++) {
        pnet_number_format(text, sizeof text, "%.*g", digits, (double)value);
        if (pnet_number_read_single(text, NULL) == value) break;
    }
    pnet_json_raw(j, text, strlen(text));
}

void pnet_json_bool(struct pnet_json *j, const char *key, bool value)
{
    place(j, key);
    pnet_json_raw(j, value ? "true" : "false", value ? 4 : 5);
}

void pnet_json_null(struct pnet_json *j, const char *key)
{
    place(j, key);
    pnet_json_raw(j, "null", 4);
}

enum pnet_status pnet_json_print(struct pnet_json *j, FILE *f, struct pnet_error *e)
{
    enum pnet_status st = j->failed ? pnet_error_memory(e) : PNET_OK;
    if (!st && j->text) fprintf(f, "%s\n", j->text);
    pnet_json_free(j);
    return st;
}

/* jansson cannot handle an allocation that fails while it reads: it cuts names and numbers short, reports a syntax error, or
   crashes. So no allocation fails for jansson: a jump leaves the reader, and the blocks that it held are freed here. The
   functions hold for the whole process, and the program around this library may use jansson too. So blocks come from the
   functions that were set before, malloc and free by default, and a set says which ones a reading holds. */
struct reading {
    struct pnet_blocks held;
    jmp_buf refused;
};
static _Thread_local struct reading *reading; /* the reading of this thread; NULL: none */

/* The functions that were set before; written once. */
static json_malloc_t take;
static json_free_t give;

static void *block_new(size_t size)
{
    struct reading *r = reading;
    if (!r) return take(size);
    if (!pnet_blocks_reserve(&r->held)) longjmp(r->refused, 1);
    void *block = take(size);
    if (!block) longjmp(r->refused, 1);
    pnet_blocks_add(&r->held, block);
    return block;
}

static void block_free(void *block)
{
    if (reading) pnet_blocks_remove(&reading->held, block);
    give(block);
}

static void take_blocks_of_jansson(void)
{
    json_get_alloc_funcs(&take, &give);
    json_set_alloc_funcs(block_new, block_free);
}

/* Returns false if memory is out; then nothing is held. */
static bool load(const void *text, size_t size, struct pnet_json_reading *how, json_t **root,
    json_error_t *error)
{
    struct reading r;
    volatile bool whole = false;
    r.held = (struct pnet_blocks){.held = NULL};
    reading = &r;
    if (setjmp(r.refused) == 0) {
        *root = json_loadb(
            text, size, JSON_REJECT_DUPLICATES | (how->zeros ? JSON_ALLOW_NUL : 0), error);
        whole = true;
    }
    reading = NULL;
    for (size_t i = 0; i < r.held.size && !whole; i++)
        if (r.held.held[i]) give(r.held.held[i]);
    how->steps = r.held.steps;
    pnet_blocks_free(&r.held);
    return whole;
}

enum pnet_status pnet_json_read(const char *name, const void *text, size_t size,
    struct pnet_json_reading *how, json_t **root, struct pnet_error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, take_blocks_of_jansson);
    json_error_t error;
    *root = NULL;
    if (!load(text, size, how, root, &error)) {
        *root = NULL;
        return pnet_error_memory(e);
    }
    if (*root) return PNET_OK;
    return pnet_error_set(e, PNET_BAD_DATA, "%s:%d:%d: expected JSON: %s", name, error.line,
        error.column, error.text);
}

enum pnet_status pnet_json_parse(
    const char *name, const void *text, size_t size, json_t **root, struct pnet_error *e)
{
    return pnet_json_read(name, text, size, &(struct pnet_json_reading){.zeros = false}, root, e);
}

/* The code of an escape \uXXXX of six bytes; -1: this is none. */
static int escaped(const char *text, size_t size)
{
    int code = 0;
    if (size < 6 || text[0] != '\\' || text[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return -1;
        code = code << 4 | digit;
    }
    return code;
}

bool pnet_json_replace_halves(char *text, size_t size)
{
    bool replaced = false;
    for (size_t at = 0; at < size;) {
        char *next = memchr(text + at, '\\', size - at);
        if (!next) break;
        at = (size_t)(next - text);
        int code = escaped(next, size - at);
        if (code < 0) {
            at += 2; /* another escape, or no JSON */
            continue;
        }
        int second = code >= 0xD800 && code < 0xDC00 ? escaped(next + 6, size - at - 6) : -1;
        bool whole = second >= 0xDC00 && second < 0xE000;
        if (code >= 0xD800 && code < 0xE000 && !whole) {
            memcpy(next, "\\uFFFD", 6);
            replaced = true;
        }
        at += whole ? 12 : 6;
    }
    return replaced;
}

enum pnet_status pnet_json_get(const char *name, json_t *object, const char *key, json_type type,
    json_t **value, struct pnet_error *e)
{
    *value = json_object_get(object, key);
    if (*value && json_typeof(*value) == type) return PNET_OK;
    static const char *const words[] = {[JSON_OBJECT] = "an object",
        [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number"};
    return pnet_error_set(e, PNET_BAD_DATA, "%s: expected %s under \"%s\"%s", name, words[type],
        key, *value ? "" : ", which is missing");
}

enum pnet_status pnet_json_get_int(
    const char *name, json_t *object, const char *key, int64_t *value, struct pnet_error *e)
{
    json_t *v;
    enum pnet_status status = pnet_json_get(name, object, key, JSON_INTEGER, &v, e);
    if (status == PNET_OK) *value = json_integer_value(v);
    return status;
}

enum pnet_status pnet_json_get_number(
    const char *name, json_t *object, const char *key, double *value, struct pnet_error *e)
{
    json_t *v = json_object_get(object, key);
    if (!json_is_number(v)) return pnet_json_get(name, object, key, JSON_REAL, &v, e);
    *value = json_number_value(v);
    return PNET_OK;
}

enum pnet_status pnet_json_get_string(
    const char *name, json_t *object, const char *key, const char **value, struct pnet_error *e)
{
    json_t *v;
    enum pnet_status status = pnet_json_get(name, object, key, JSON_STRING, &v, e);
    if (status == PNET_OK) *value = json_string_value(v);
    return status;
}
