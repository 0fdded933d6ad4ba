/* What names and calls were while the model was elaborated, for editors: by the place where a name stands. */
#include "compiler/inspect.h"
#include "compiler/internal.h"
#include "runtime/base/number.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_PLACES = 1 << 16, /* what is beyond is not kept */
    PLACE_VALUES = 4,     /* different ones of a place */
    SHOWN_ITEMS = 8,      /* of a list */
    SHOWN_DEPTH = 3,
};

struct place {
    uint64_t key; /* of the first byte; 0: free */
    struct value values[PLACE_VALUES];
    int count;
    bool more; /* than are kept */
    const char *text;
    int input; /* that all values are; -1: none is, or they differ */
};

struct seen {
    struct pnet_arena arena; /* apart from the compilation's, whose size limits the model */
    struct place *places;    /* by hash */
    uint32_t capacity, count;
};

/* File and byte; never 0. */
static uint64_t key_of(struct pnet_span place)
{
    return (((uint64_t)place.file + 1) << 32) | place.begin;
}

static struct place *find(const struct seen *s, uint64_t key)
{
    uint32_t mask = s->capacity - 1, i = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
    while (s->places[i].key && s->places[i].key != key) i = (i + 1) & mask;
    return &s->places[i];
}

static bool grow(struct pnet_compilation *c, struct seen *s)
{
    struct seen bigger = {.capacity = s->capacity ? 2 * s->capacity : 256, .count = s->count};
    bigger.arena = s->arena;
    bigger.places = pnet_arena_array(&bigger.arena, bigger.capacity, sizeof *bigger.places);
    s->arena = bigger.arena;
    if (!bigger.places) {
        c->arena.failed = true;
        return false;
    }
    for (uint32_t i = 0; i < s->capacity; i++)
        if (s->places[i].key) *find(&bigger, s->places[i].key) = s->places[i];
    *s = bigger;
    return true;
}

/* Would both look the same? Lists are told apart by their items when they are shown. */
static bool same(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case V_NUMBER: return a->number == b->number && a->unit == b->unit;
    case V_BOOL: return a->truth == b->truth;
    case V_WORD:
    case V_TEXT: return strcmp(a->text, b->text) == 0;
    case V_LIST: return a->items == b->items && a->count == b->count;
    case V_LEVEL:
    case V_TENSOR:
    case V_CLOUD:
    case V_POSE: return a->index == b->index;
    default: return true;
    }
}

void pnet_seen_begin(struct pnet_compilation *c)
{
    if (c->options.inspect) c->seen = pnet_arena_alloc(&c->arena, sizeof *c->seen);
}

void pnet_seen_free(struct pnet_compilation *c)
{
    if (c->seen) pnet_arena_free(&c->seen->arena);
}

void pnet_seen_add(struct pnet_compilation *c, struct pnet_span place, struct value v)
{
    struct seen *s = c->seen;
    if (!s || v.kind == V_UNKNOWN || v.kind == V_NONE || (v.kind == V_LIST && !v.count)) return;
    if (2 * s->count >= s->capacity && !grow(c, s)) return;
    struct place *p = find(s, key_of(place));
    if (!p->key) {
        if (s->count == MAX_PLACES) return;
        s->count++;
        p->key = key_of(place);
    }
    for (int i = 0; i < p->count; i++)
        if (same(&p->values[i], &v)) return;
    if (p->count < PLACE_VALUES)
        p->values[p->count++] = v;
    else
        p->more = true;
}

static const char *number_text(struct pnet_compilation *c, struct value v)
{
    char text[48];
    double x = v.number;
    switch (v.unit) {
    case PNET_UNIT_LENGTH:
        if (x != 0 && x > -1 && x < 1)
            pnet_number_format(text, sizeof text, "%.6gcm", 100 * x);
        else
            pnet_number_format(text, sizeof text, "%.6gm", x);
        break;
    case PNET_UNIT_ANGLE: pnet_number_format(text, sizeof text, "%.6grad", x); break;
    case PNET_UNIT_PERCENT: pnet_number_format(text, sizeof text, "%.6g%%", 100 * x); break;
    case PNET_UNIT_NONE: pnet_number_format(text, sizeof text, "%.9g", x); break;
    }
    return pnet_arena_printf(&c->arena, "%s", text);
}

static const char *value_text(struct pnet_compilation *c, const struct value *v, int depth);

static const char *list_text(struct pnet_compilation *c, const struct value *v, int depth)
{
    if (depth == SHOWN_DEPTH) return pnet_value_text(c, *v);
    const char *text = "[";
    for (int i = 0; i < v->count && i < SHOWN_ITEMS && text; i++) {
        const char *item = value_text(c, &v->items[i], depth + 1);
        text = item ? pnet_arena_printf(&c->arena, "%s%s%s", text, i ? ", " : "", item) : NULL;
    }
    if (!text) return NULL;
    if (v->count <= SHOWN_ITEMS) return pnet_arena_printf(&c->arena, "%s]", text);
    return pnet_arena_printf(&c->arena, "%s, ..], %d items", text, v->count);
}

static const char *value_text(struct pnet_compilation *c, const struct value *v, int depth)
{
    switch (v->kind) {
    case V_NUMBER: return number_text(c, *v);
    case V_TEXT: return pnet_arena_printf(&c->arena, "\"%s\"", v->text);
    case V_LIST: return list_text(c, v, depth);
    case V_NONE:
    case V_UNKNOWN: return "..";
    case V_LEVEL: {
        const struct pnet_level_info *l = &c->plan.levels[v->index];
        if (!(l->cell > 0)) return pnet_value_text(c, *v);
        const char *cell =
            number_text(c, (struct value){.number = l->cell, .unit = PNET_UNIT_LENGTH});
        return cell ? pnet_arena_printf(&c->arena, "%s (%s)", pnet_value_text(c, *v), cell) : NULL;
    }
    case V_TENSOR: {
        const char *type = pnet_value_text(c, *v);
        struct pnet_type t = c->plan.tensors[v->index].type;
        if (!type || t.type != PNET_I32) return type;
        return pnet_arena_printf(&c->arena, "labels of %d classes, %s", (int)t.classes, type);
    }
    default: return pnet_value_text(c, *v);
    }
}

static void end_place(struct pnet_compilation *c, struct place *p)
{
    const char *shown[PLACE_VALUES];
    int count = 0;
    p->input = p->more || p->values[0].kind != V_CLOUD ? -1 : p->values[0].index;
    for (int i = 0; i < p->count; i++) {
        const char *text = value_text(c, &p->values[i], 0);
        if (!text) return;
        if (p->values[i].kind != V_CLOUD || p->values[i].index != p->input) p->input = -1;
        bool known = false;
        for (int k = 0; k < count; k++) known |= strcmp(shown[k], text) == 0;
        if (!known) shown[count++] = text;
    }
    for (int i = 0; i < count && (i == 0 || p->text); i++)
        p->text = i ? pnet_arena_printf(&c->arena, "%s | %s", p->text, shown[i]) : shown[0];
    if (p->more && p->text) p->text = pnet_arena_printf(&c->arena, "%s | ..", p->text);
}

void pnet_seen_end(struct pnet_compilation *c)
{
    struct seen *s = c->seen;
    for (uint32_t i = 0; s && i < s->capacity && !c->arena.failed; i++)
        if (s->places[i].key) end_place(c, &s->places[i]);
}

static const struct place *look(const struct pnet_compilation *c, struct pnet_span place)
{
    if (!c->seen || !c->seen->count) return NULL;
    const struct place *p = find(c->seen, key_of(place));
    return p->key ? p : NULL;
}

const char *pnet_compilation_value(const struct pnet_compilation *c, struct pnet_span place)
{
    const struct place *p = look(c, place);
    return p ? p->text : NULL;
}

const char *pnet_compilation_cloud(const struct pnet_compilation *c, struct pnet_span place)
{
    const struct place *p = look(c, place);
    return p && p->text && p->input >= 0 ? c->plan.inputs[p->input].name : NULL;
}

const struct pnet_file *pnet_compilation_tree(const struct pnet_compilation *c)
{
    return c->file;
}

const struct pnet_sources *pnet_compilation_sources(const struct pnet_compilation *c)
{
    return c->sources;
}

bool pnet_compilation_torn(const struct pnet_compilation *c)
{
    return c->torn != NULL || !c->file;
}
