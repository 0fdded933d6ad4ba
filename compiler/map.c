#include "compiler/map.h"

#include <stdint.h>
#include <string.h>

struct map_entry {
    const char *key;
    int value;
};

static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++) h = (h ^ (uint8_t)*s) * 16777619u;
    return h;
}

/* The entry of the key, or the free one where it belongs. */
static struct map_entry *place(const struct map *m, const char *key)
{
    uint32_t mask = (uint32_t)m->capacity - 1;
    uint32_t i = hash(key) & mask;
    while (m->entries[i].key && strcmp(m->entries[i].key, key) != 0) i = (i + 1) & mask;
    return &m->entries[i];
}

int *pnet_map_find(const struct map *m, const char *key)
{
    if (!m->count) return NULL;
    struct map_entry *e = place(m, key);
    return e->key ? &e->value : NULL;
}

static bool grow(struct pnet_arena *a, struct map *m)
{
    struct map bigger = {.capacity = m->capacity ? 2 * m->capacity : 16, .count = m->count};
    bigger.entries = pnet_arena_array(a, (size_t)bigger.capacity, sizeof *bigger.entries);
    if (!bigger.entries) return false;
    for (int i = 0; i < m->capacity; i++)
        if (m->entries[i].key) *place(&bigger, m->entries[i].key) = m->entries[i];
    *m = bigger;
    return true;
}

int *pnet_map_get(struct pnet_arena *a, struct map *m, const char *key, int value)
{
    if (2 * (m->count + 1) > m->capacity && !grow(a, m)) return NULL;
    struct map_entry *e = place(m, key);
    if (!e->key) {
        e->key = key;
        e->value = value;
        m->count++;
    }
    return &e->value;
}
