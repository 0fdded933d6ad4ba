#include "runtime/train/name_rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocates as many rules as the node has children. Returns false if it has none, or memory is out. */
static bool make_room(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r)
{
    r->items = calloc((size_t)n->count + 1, sizeof *r->items);
    if (!r->items) pnet_yaml_fail_memory(y);
    return r->items != NULL;
}

static void add(struct pnet_yaml *y, struct pnet_name_rules *r, const char *pattern, const char *to,
    double rate)
{
    struct pnet_name_rule *rule = &r->items[r->count++];
    *rule = (struct pnet_name_rule){strdup(pattern), to ? strdup(to) : NULL, rate};
    if (!rule->pattern || (to && !rule->to)) pnet_yaml_fail_memory(y);
}

void pnet_name_rules_list(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r)
{
    if (!pnet_yaml_list(y, n, 0, 1000) || !make_room(y, n, r)) return;
    for (const struct pnet_yaml_node *item = n->first; item && pnet_yaml_ok(y); item = item->next)
        add(y, r, pnet_yaml_string(y, item, ""), NULL, 0);
}

static bool is_map(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *pairs)
{
    if (n->kind != PNET_YAML_MAP) pnet_yaml_fail(y, n, "%s: expected `%s` pairs", n->key, pairs);
    return n->kind == PNET_YAML_MAP;
}

void pnet_name_rules_rates(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r)
{
    if (!is_map(y, n, "pattern: factor") || !make_room(y, n, r)) return;
    for (const struct pnet_yaml_node *item = n->first; item && pnet_yaml_ok(y); item = item->next)
        add(y, r, item->key, NULL, pnet_yaml_real(y, item, 0, 1e6, 1));
}

static int stars(const char *text)
{
    int count = 0;
    for (; *text; text++) count += *text == '*';
    return count;
}

/* Fails if a pair still has the mark of a guess; the message lists these pairs. */
static void check_confirmed(struct pnet_yaml *y, const struct pnet_yaml_node *n)
{
    char names[640] = "";
    size_t end = 0, more = 0;
    const struct pnet_yaml_node *first = NULL;
    for (const struct pnet_yaml_node *item = n->first; item; item = item->next) {
        if (item->kind != PNET_YAML_SCALAR || item->text[0] != PNET_NAME_GUESS) continue;
        size_t room = sizeof names - end, length = strlen(item->key) + 2;
        if (!more && length < room)
            end += (size_t)snprintf(names + end, room, "%s%s", first ? ", " : "", item->key);
        else
            more++;
        if (!first) first = item;
    }
    char rest[40] = "";
    if (more) snprintf(rest, sizeof rest, "%s%zu more", end ? " and " : "", more);
    if (first)
        pnet_yaml_fail(y, first,
            "matched by order alone, and not confirmed: %s%s; compare each with the network, and "
            "take the %c before its new name away",
            names, rest, PNET_NAME_GUESS);
}

void pnet_name_rules_map(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_name_rules *r)
{
    if (!is_map(y, n, "from: to") || !make_room(y, n, r)) return;
    check_confirmed(y, n);
    for (const struct pnet_yaml_node *item = n->first; item && pnet_yaml_ok(y); item = item->next) {
        const char *to = pnet_yaml_string(y, item, "");
        if (stars(item->key) > 1 || stars(to) != stars(item->key))
            pnet_yaml_fail(y, item, "%s: both sides have one *, or neither has", item->key);
        add(y, r, item->key, to, 0);
    }
}

void pnet_name_rules_free(struct pnet_name_rules *r)
{
    for (int i = 0; i < r->count; i++) {
        free(r->items[i].pattern);
        free(r->items[i].to);
    }
    free(r->items);
    *r = (struct pnet_name_rules){0};
}

static bool begins_with_words(const char *name, const char *words)
{
    size_t n = strlen(words);
    return strncmp(name, words, n) == 0 && (!name[n] || name[n] == '.');
}

bool pnet_name_matches(const char *pattern, const char *name)
{
    return begins_with_words(name, pattern) || fnmatch(pattern, name, 0) == 0;
}

/* Returns the part of the name that the star matches; NULL: the name does not match. */
static const char *star_of(const char *pattern, const char *name, size_t *length)
{
    size_t head = strcspn(pattern, "*"), tail = strlen(pattern) - head - 1, n = strlen(name);
    if (n < head + tail || strncmp(name, pattern, head) != 0) return NULL;
    if (strcmp(name + n - tail, pattern + head + 1) != 0) return NULL;
    *length = n - head - tail;
    return name + head;
}

/* Sets *text to the name with `to` in place of what `from` matches. Returns 1, 0 if it does not match, or -1 if memory is out. */
static int replace(const char *from, const char *to, const char *name, char **text)
{
    size_t length = 0, head = strcspn(to, "*");
    bool has_star = strchr(from, '*') != NULL;
    const char *star = has_star ? star_of(from, name, &length) : NULL;
    int size = -2;
    if (star)
        size = asprintf(text, "%.*s%.*s%s", (int)head, to, (int)length, star, to + head + 1);
    else if (!has_star && begins_with_words(name, from))
        size = asprintf(text, "%s%s", to, name + strlen(from));
    return size >= 0 ? 1 : size == -2 ? 0 : -1;
}

char *pnet_name_rule_apply(
    const struct pnet_name_rule *rule, bool backwards, const char *name, bool *failed)
{
    char *text;
    int done = backwards ? replace(rule->to, rule->pattern, name, &text)
                         : replace(rule->pattern, rule->to, name, &text);
    *failed |= done < 0;
    return done > 0 ? text : NULL;
}
