#include "runtime/train/name_index.h"

#include <stdlib.h>
#include <string.h>

void pnet_name_index_free(struct pnet_name_index *x)
{
    pnet_name_table_free(&x->words);
    pnet_name_table_free(&x->stars);
    free(x->next);
    free(x->shapes);
    *x = (struct pnet_name_index){.next = NULL};
}

static int by_shape(const void *a, const void *b)
{
    const struct pnet_star_shape *x = a, *y = b;
    if (x->head != y->head) return x->head < y->head ? -1 : 1;
    return (x->tail > y->tail) - (x->tail < y->tail);
}

/* Keeps one of each shape. */
static void sort_shapes(struct pnet_name_index *x)
{
    size_t count = 0;
    qsort(x->shapes, x->shape_count, sizeof *x->shapes, by_shape);
    for (size_t i = 0; i < x->shape_count; i++)
        if (!count || by_shape(&x->shapes[i], &x->shapes[count - 1]) != 0)
            x->shapes[count++] = x->shapes[i];
    x->shape_count = count;
}

static void add_shape(struct pnet_name_index *x, const char *pattern, const char *star)
{
    x->shapes[x->shape_count++] =
        (struct pnet_star_shape){(size_t)(star - pattern), strlen(star + 1)};
}

bool pnet_name_index_new(const struct pnet_name_rules *r, bool backwards, struct pnet_name_index *x)
{
    *x = (struct pnet_name_index){.next = NULL};
    x->next = calloc((size_t)r->count + 1, sizeof *x->next);
    x->shapes = calloc((size_t)r->count + 1, sizeof *x->shapes);
    bool made = x->next && x->shapes;
    for (int i = r->count;
         made && i-- > 0;) { /* so that the first of a pattern is the last one put there */
        const char *pattern = backwards ? r->items[i].to : r->items[i].pattern,
                   *star = strchr(pattern, '*');
        int64_t *first =
            pnet_name_table_at(star ? &x->stars : &x->words, pattern, strlen(pattern), -1);
        made = first != NULL;
        if (!made) break;
        if (star && *first < 0) add_shape(x, pattern, star);
        x->next[i] = (int)*first;
        *first = i;
    }
    if (made)
        sort_shapes(x);
    else
        pnet_name_index_free(x);
    return made;
}

/* The rules found so far. */
struct found {
    int *rules; /* [room] */
    int count, room;
    bool failed;
};

static void add_rules(const struct pnet_name_index *x, const struct pnet_name_table *t,
    const char *pattern, size_t length, struct found *f)
{
    int rule = (int)pnet_name_table_find(t, pattern, length);
    for (; rule >= 0 && !f->failed; rule = x->next[rule]) {
        if (f->count == f->room) {
            int room = f->room ? 2 * f->room : 8;
            int *grown = realloc(f->rules, (size_t)room * sizeof *grown);
            f->failed = !grown;
            if (!grown) return;
            f->rules = grown;
            f->room = room;
        }
        f->rules[f->count++] = rule;
    }
}

/* Patterns of words: each number of first words of the name is looked up. */
static void find_words(const struct pnet_name_index *x, const char *name, struct found *f)
{
    for (size_t at = 0;; at++) {
        if (!name[at] || name[at] == '.') add_rules(x, &x->words, name, at, f);
        if (!name[at]) return;
    }
}

/* Patterns with a *: for each shape, the pattern of that shape that matches the name is looked up. */
static void find_stars(const struct pnet_name_index *x, const char *name, struct found *f)
{
    size_t length = strlen(name);
    char *pattern = x->shape_count ? malloc(length + 2) : NULL;
    f->failed |= x->shape_count && !pattern;
    for (size_t i = 0; i < x->shape_count && !f->failed; i++) {
        size_t head = x->shapes[i].head, tail = x->shapes[i].tail;
        if (head > length || tail > length - head) continue;
        memcpy(pattern, name, head);
        pattern[head] = '*';
        memcpy(pattern + head + 1, name + length - tail, tail);
        add_rules(x, &x->stars, pattern, head + 1 + tail, f);
    }
    free(pattern);
}

static int ascending(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

bool pnet_name_index_find(
    const struct pnet_name_index *x, const char *name, int **rules, int *count)
{
    struct found f = {.rules = NULL};
    find_words(x, name, &f);
    find_stars(x, name, &f);
    *rules = NULL;
    *count = 0;
    if (f.failed) {
        free(f.rules);
        return false;
    }
    if (f.count) qsort(f.rules, (size_t)f.count, sizeof *f.rules, ascending);
    *rules = f.rules;
    *count = f.count;
    return true;
}

char *pnet_name_map(
    const struct pnet_name_rules *map, const struct pnet_name_index *x, const char *name)
{
    int *rules, count;
    bool failed = false;
    if (!pnet_name_index_find(x, name, &rules, &count)) return NULL;
    char *mapped =
        count ? pnet_name_rule_apply(&map->items[rules[0]], false, name, &failed) : strdup(name);
    free(rules);
    return mapped;
}
