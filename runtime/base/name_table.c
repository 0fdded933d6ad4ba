#include "runtime/base/name_table.h"

#include <stdlib.h>
#include <string.h>

static size_t home(const char *name, size_t length, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 32) & (size - 1);
}

/* The slot of the name, or the empty one where it belongs. */
static struct pnet_name_slot *slot_of(
    const struct pnet_name_table *t, const char *name, size_t length)
{
    for (size_t at = home(name, length, t->size);; at = (at + 1) & (t->size - 1)) {
        struct pnet_name_slot *s = &t->slots[at];
        if (!s->name || (s->length == length && memcmp(s->name, name, length) == 0)) return s;
    }
}

static bool grow(struct pnet_name_table *t)
{
    struct pnet_name_table larger = {.count = t->count, .size = t->size ? 2 * t->size : 16};
    larger.slots = calloc(larger.size, sizeof *larger.slots);
    if (!larger.slots) return false;
    for (size_t i = 0; i < t->size; i++)
        if (t->slots[i].name) *slot_of(&larger, t->slots[i].name, t->slots[i].length) = t->slots[i];
    free(t->slots);
    *t = larger;
    return true;
}

int64_t *pnet_name_table_at(
    struct pnet_name_table *t, const char *name, size_t length, int64_t number)
{
    if (t->count >= t->size / 2 && !grow(t)) return NULL;
    struct pnet_name_slot *s = slot_of(t, name, length);
    if (!s->name) {
        *s = (struct pnet_name_slot){name, length, number};
        t->count++;
    }
    return &s->number;
}

int64_t pnet_name_table_find(const struct pnet_name_table *t, const char *name, size_t length)
{
    const struct pnet_name_slot *s = t->size ? slot_of(t, name, length) : NULL;
    return s && s->name ? s->number : -1;
}

void pnet_name_table_free(struct pnet_name_table *t)
{
    free(t->slots);
    *t = (struct pnet_name_table){.slots = NULL};
}
