#include "runtime/base/yaml.h"
#include "runtime/base/file.h"
#include "runtime/base/number.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct chunk {
    struct chunk *next;
    size_t used, size;
    max_align_t data[];
};

struct pnet_yaml {
    char *name;
    enum pnet_status bad;
    struct chunk *chunks;
    struct pnet_yaml_node *root;
    enum pnet_status status; /* sticky */
    struct pnet_error error;
};

/* The chain of open lists and maps while the tree grows. */
struct level {
    struct pnet_yaml_node *node;
    struct pnet_yaml_node **tail;
    const char *key; /* MAP: the key that was read, while its value was not */
    uint32_t key_line;
};

struct builder {
    struct pnet_yaml *y;
    struct level levels[PNET_YAML_MAX_NESTING];
    int depth;
    uint32_t line; /* of the event */
};

/* Zeroed memory that lives as long as the document. */
static void *take(struct pnet_yaml *y, size_t size)
{
    enum { ALIGN = _Alignof(max_align_t), CHUNK = 16 << 10 };
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    struct chunk *c = y->chunks;
    if (!c || c->size - c->used < size) {
        size_t room = size > CHUNK ? size : CHUNK;
        c = calloc(1, sizeof *c + room);
        if (!c) {
            pnet_yaml_fail_memory(y);
            return NULL;
        }
        c->size = room;
        c->next = y->chunks;
        y->chunks = c;
    }
    void *p = (char *)c->data + c->used;
    c->used += size;
    return p;
}

static void fail_line(struct pnet_yaml *y, uint32_t line, const char *format, va_list args)
{
    struct pnet_error what;
    if (y->status) return;
    pnet_error_vset(&what, y->bad, format, args);
    y->status = pnet_error_set(&y->error, y->bad, "%.300s:%u: ", y->name, line);
    pnet_error_append(&y->error, what.message);
}

static void fail_at(struct pnet_yaml *y, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void fail_at(struct pnet_yaml *y, uint32_t line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_line(y, line, format, args);
    va_end(args);
}

void pnet_yaml_fail(struct pnet_yaml *y, const struct pnet_yaml_node *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_line(y, at ? at->line : 1, format, args);
    va_end(args);
}

void pnet_yaml_fail_memory(struct pnet_yaml *y)
{
    if (!y->status) y->status = pnet_error_memory(&y->error);
}

bool pnet_yaml_ok(const struct pnet_yaml *y)
{
    return !y->status;
}

enum pnet_status pnet_yaml_end(const struct pnet_yaml *y, struct pnet_error *e)
{
    if (y->status && e) *e = y->error;
    return y->status;
}

const struct pnet_yaml_node *pnet_yaml_root(const struct pnet_yaml *y)
{
    return y->root;
}

/* Copies the text of a scalar. It must not contain NUL, because messages print it as a string. */
static const char *copy_text(struct builder *b, const yaml_char_t *text, size_t length)
{
    if (memchr(text, 0, length)) {
        fail_at(b->y, b->line, "a zero byte inside a word");
        return NULL;
    }
    char *copy = take(b->y, length + 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

/* Adds a new node to the open list or map, or makes it the root. */
static struct pnet_yaml_node *add(struct builder *b, enum pnet_yaml_kind kind)
{
    struct pnet_yaml_node *n = take(b->y, sizeof *n);
    if (!n) return NULL;
    n->kind = kind;
    n->line = b->line;
    if (!b->depth) {
        b->y->root = n;
        return n;
    }
    struct level *l = &b->levels[b->depth - 1];
    if (l->node->kind == PNET_YAML_MAP) {
        if (!l->key) {
            fail_at(b->y, b->line, "a key must be a plain word");
            return NULL;
        }
        n->key = l->key;
        if (kind == PNET_YAML_NULL) n->line = l->key_line;
        l->key = NULL;
    }
    *l->tail = n;
    l->tail = &n->next;
    l->node->count++;
    return n;
}

static bool is_null(const yaml_event_t *event)
{
    const char *t = (const char *)event->data.scalar.value;
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*t || strcmp(t, "~") == 0 || strcmp(t, "null") == 0);
}

static void on_scalar(struct builder *b, const yaml_event_t *event)
{
    const yaml_char_t *text = event->data.scalar.value;
    size_t length = event->data.scalar.length;
    struct level *l = b->depth ? &b->levels[b->depth - 1] : NULL;
    if (event->data.scalar.tag) {
        fail_at(b->y, b->line, "tags (!...) are not supported");
    } else if (l && l->node->kind == PNET_YAML_MAP && !l->key) {
        l->key = copy_text(b, text, length);
        l->key_line = b->line;
    } else if (is_null(event)) {
        add(b, PNET_YAML_NULL);
    } else {
        struct pnet_yaml_node *n = add(b, PNET_YAML_SCALAR);
        if (n) n->text = copy_text(b, text, length);
    }
}

static void on_open(struct builder *b, enum pnet_yaml_kind kind, const yaml_char_t *tag)
{
    if (tag) {
        fail_at(b->y, b->line, "tags (!...) are not supported");
    } else if (b->depth == PNET_YAML_MAX_NESTING) {
        fail_at(b->y, b->line, "nested more than %d deep", PNET_YAML_MAX_NESTING);
    } else {
        struct pnet_yaml_node *n = add(b, kind);
        if (n) b->levels[b->depth++] = (struct level){.node = n, .tail = &n->first};
    }
}

static int by_key(const void *a, const void *b)
{
    const struct pnet_yaml_node *x = *(const struct pnet_yaml_node *const *)a;
    const struct pnet_yaml_node *y = *(const struct pnet_yaml_node *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static void check_duplicates(struct pnet_yaml *y, const struct pnet_yaml_node *map)
{
    size_t count = (size_t)map->count, i = 0;
    if (count < 2) return;
    const struct pnet_yaml_node **sorted = malloc(count * sizeof *sorted);
    if (!sorted) {
        pnet_yaml_fail_memory(y);
        return;
    }
    for (const struct pnet_yaml_node *n = map->first; n; n = n->next) sorted[i++] = n;
    qsort(sorted, count, sizeof *sorted, by_key);
    for (i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            fail_at(y, sorted[i]->line, "the key `%.80s` is there twice, first in line %u",
                sorted[i]->key, sorted[i - 1]->line);
    free(sorted);
}

static void on_event(struct builder *b, const yaml_event_t *event)
{
    b->line = (uint32_t)event->start_mark.line + 1;
    switch (event->type) {
    case YAML_SCALAR_EVENT: on_scalar(b, event); break;
    case YAML_SEQUENCE_START_EVENT:
        on_open(b, PNET_YAML_LIST, event->data.sequence_start.tag);
        break;
    case YAML_MAPPING_START_EVENT: on_open(b, PNET_YAML_MAP, event->data.mapping_start.tag); break;
    case YAML_MAPPING_END_EVENT:
        assert(b->depth); /* the parser closes every list and map that it opened */
        check_duplicates(b->y, b->levels[--b->depth].node);
        break;
    case YAML_SEQUENCE_END_EVENT:
        assert(b->depth);
        b->depth--;
        break;
    case YAML_ALIAS_EVENT: fail_at(b->y, b->line, "aliases (*name) are not supported"); break;
    case YAML_DOCUMENT_START_EVENT:
        if (b->y->root) fail_at(b->y, b->line, "a second document");
        break;
    default: break;
    }
}

static void build(struct pnet_yaml *y, yaml_parser_t *parser)
{
    struct builder b = {.y = y};
    bool more = true;
    while (more && !y->status) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            if (parser->error == YAML_MEMORY_ERROR)
                pnet_yaml_fail_memory(y);
            else
                fail_at(y, (uint32_t)parser->problem_mark.line + 1, "not YAML: %s",
                    parser->problem ? parser->problem : "unknown problem");
            return;
        }
        on_event(&b, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    b.line = 1;
    if (!y->root && !y->status) add(&b, PNET_YAML_NULL);
}

enum pnet_status pnet_yaml_parse(const char *name, const void *text, size_t size,
    enum pnet_status bad, struct pnet_yaml **y, struct pnet_error *e)
{
    yaml_parser_t parser;
    *y = NULL;
    if (size > PNET_YAML_MAX_BYTES)
        return pnet_error_set(
            e, bad, "%.300s: %zu bytes, the limit is %d", name, size, PNET_YAML_MAX_BYTES);
    struct pnet_yaml *d = calloc(1, sizeof *d);
    if (!d) return pnet_error_memory(e);
    d->bad = bad;
    d->name = strdup(name);
    if (!d->name || !yaml_parser_initialize(&parser)) {
        pnet_yaml_free(d);
        return pnet_error_memory(e);
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, size ? text : (const unsigned char *)"", size);
    build(d, &parser);
    yaml_parser_delete(&parser);
    enum pnet_status status = pnet_yaml_end(d, e);
    if (status)
        pnet_yaml_free(d);
    else
        *y = d;
    return status;
}

enum pnet_status pnet_yaml_read(
    const char *path, enum pnet_status bad, struct pnet_yaml **y, struct pnet_error *e)
{
    struct pnet_bytes b;
    *y = NULL;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status) return status;
    status = pnet_yaml_parse(path, b.data, b.size, bad, y, e);
    pnet_bytes_free(&b);
    return status;
}

void pnet_yaml_free(struct pnet_yaml *y)
{
    if (!y) return;
    for (struct chunk *c = y->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(y->name);
    free(y);
}
