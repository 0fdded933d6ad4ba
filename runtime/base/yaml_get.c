/* The typed getters, which convert words to numbers. */
#include "runtime/base/yaml.h"
#include "runtime/base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const char *kind_name(const struct pnet_yaml_node *n)
{
    static const char *const names[] = {"nothing", "a word", "a list", "a map"};
    return names[n->kind];
}

const struct pnet_yaml_node *pnet_yaml_get(const struct pnet_yaml_node *map, const char *key)
{
    if (!map || map->kind != PNET_YAML_MAP) return NULL;
    for (const struct pnet_yaml_node *n = map->first; n; n = n->next)
        if (strcmp(n->key, key) == 0) return n;
    return NULL;
}

bool pnet_yaml_map(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *what,
    const char *const *known, int known_count)
{
    if (n->kind != PNET_YAML_MAP) {
        pnet_yaml_fail(y, n, "%s: expected `key: value` pairs, got %s", what, kind_name(n));
        return false;
    }
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next) {
        int i = 0;
        while (i < known_count && strcmp(known[i], c->key) != 0) i++;
        if (i < known_count) continue;
        const char *near = pnet_nearest(c->key, known, known_count);
        pnet_yaml_fail(y, c, "%s: unknown key `%.80s`%s%s%s", what, c->key,
            near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
        return false;
    }
    return true;
}

bool pnet_yaml_list(struct pnet_yaml *y, const struct pnet_yaml_node *n, int64_t min, int64_t max)
{
    const char *key = n->key ? n->key : "", *colon = n->key ? ": " : "";
    if (n->kind != PNET_YAML_LIST)
        pnet_yaml_fail(y, n, "%.80s%sexpected a list [a, b], got %s", key, colon, kind_name(n));
    else if (n->count < min || n->count > max)
        pnet_yaml_fail(y, n, "%.80s%sa list of %" PRId64 " items, expected %s%" PRId64, key, colon,
            n->count,
            min == max       ? ""
            : n->count < min ? "at least "
                             : "at most ",
            n->count < min ? min : max);
    else
        return true;
    return false;
}

/* Returns the word that a getter reads; NULL: the default applies. */
static const char *word(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *expected)
{
    if (!n) return NULL;
    if (n->kind == PNET_YAML_SCALAR) return n->text;
    if (n->key)
        pnet_yaml_fail(y, n, "%.80s: expected %s, got %s", n->key, expected, kind_name(n));
    else
        pnet_yaml_fail(y, n, "expected %s, got %s", expected, kind_name(n));
    return NULL;
}

static void refuse(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *expected)
{
    pnet_yaml_fail(y, n, "%.80s%sexpected %s, got `%.80s`", n->key ? n->key : "",
        n->key ? ": " : "", expected, n->text);
}

const char *pnet_yaml_string(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *standard)
{
    const char *t = word(y, n, "a word");
    return t ? t : standard;
}

int64_t pnet_yaml_int(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, int64_t min, int64_t max, int64_t standard)
{
    char *end;
    const char *t = word(y, n, "an integer");
    if (!t) return standard;
    errno = 0;
    int64_t value = strtoll(t, &end, 10);
    if (*end || end == t || t[0] == ' ' || errno) {
        refuse(y, n, "an integer");
    } else if (value < min || value > max) {
        pnet_yaml_fail(y, n, "%.80s%s%" PRId64 " is out of range, %" PRId64 " to %" PRId64,
            n->key ? n->key : "", n->key ? ": " : "", value, min, max);
    } else {
        return value;
    }
    return standard;
}

uint64_t pnet_yaml_seed(struct pnet_yaml *y, const struct pnet_yaml_node *n, uint64_t standard)
{
    char *end;
    const char *t = word(y, n, "an integer");
    if (!t) return standard;
    errno = 0;
    uint64_t value = strtoull(t, &end, 10);
    if (t[0] >= '0' && t[0] <= '9' && !*end && !errno) return value;
    refuse(y, n, "an integer from 0 to 2^64 - 1");
    return standard;
}

/* Parses a decimal number at the front of `t`: no blanks, no hexadecimal, no words. */
static bool number(const char *t, const char **end, double *value)
{
    const char *digits = t + (*t == '-' || *t == '+');
    bool plain = (digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.';
    if (!plain || (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))) return false;
    char *stop;
    *value = pnet_number_read(t, &stop);
    *end = stop;
    return stop != t && isfinite(*value);
}

/* Parses a number, followed by one of the units, and checks its range. */
static double quantity(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *expected,
    const struct unit *units, double min, double max, double standard)
{
    const char *end, *t = word(y, n, expected);
    double value;
    if (!t) return standard;
    if (!number(t, &end, &value)) {
        refuse(y, n, expected);
        return standard;
    }
    while (units->name && strcmp(units->name, end) != 0) units++;
    if (!units->name) {
        refuse(y, n, expected);
        return standard;
    }
    value *= units->factor;
    if (value >= min && value <= max) return value;
    if (isinf(max))
        pnet_yaml_fail(y, n, "%.80s%s`%.80s` is out of range, at least %g", n->key ? n->key : "",
            n->key ? ": " : "", t, min);
    else
        pnet_yaml_fail(y, n, "%.80s%s`%.80s` is out of range, %g to %g", n->key ? n->key : "",
            n->key ? ": " : "", t, min, max);
    return standard;
}

double pnet_yaml_real(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard)
{
    static const struct unit units[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
    const char *slash = n && n->kind == PNET_YAML_SCALAR ? strchr(n->text, '/') : NULL;
    double above, below;
    const char *end;
    if (slash && number(n->text, &end, &above) && end == slash && number(slash + 1, &end, &below) &&
        !*end && below != 0) {
        double value = above / below;
        if (value >= min && value <= max) return value;
        pnet_yaml_fail(y, n, "`%.80s` is out of range, %g to %g", n->text, min, max);
        return standard;
    }
    return quantity(y, n, "a number", units, min, max, standard);
}

double pnet_yaml_length(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard)
{
    static const struct unit units[] = {
        {"", 1}, {"m", 1}, {"mm", 1e-3}, {"cm", 1e-2}, {"km", 1e3}, {NULL, 0}};
    return quantity(y, n, "a length (metres, or mm cm m km)", units, min, max, standard);
}

double pnet_yaml_unit_length(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard)
{
    const char *end;
    double value;
    bool scalar = n && n->kind == PNET_YAML_SCALAR;
    if (!scalar || !number(n->text, &end, &value) || *end || value == 0)
        return pnet_yaml_length(y, n, min, max, standard);
    pnet_yaml_fail(y, n, "%.80s%s`%.60s` has no unit: write %.60sm, %.60scm or %.60smm",
        n->key ? n->key : "", n->key ? ": " : "", n->text, n->text, n->text, n->text);
    return standard;
}

double pnet_yaml_degrees(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, double min, double max, double standard)
{
    static const struct unit units[] = {{"", 1}, {"deg", 1}, {"rad", 180 / M_PI}, {NULL, 0}};
    return quantity(y, n, "an angle (degrees, or deg rad)", units, min, max, standard);
}

uint64_t pnet_yaml_bytes(struct pnet_yaml *y, const struct pnet_yaml_node *n, uint64_t standard)
{
    static const struct unit units[] = {{"", 1}, {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20},
        {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
        {NULL, 0}};
    double bytes = quantity(y, n, "a size such as 512MiB or 2GiB", units, 0, 0x1p60, -1);
    return bytes < 0 ? standard : (uint64_t)bytes;
}

bool pnet_yaml_bool(struct pnet_yaml *y, const struct pnet_yaml_node *n, bool standard)
{
    static const char *const words[] = {"no", "yes", "false", "true"};
    const char *t = word(y, n, "yes or no");
    if (!t) return standard;
    for (int i = 0; i < 4; i++)
        if (strcmp(t, words[i]) == 0) return i & 1;
    refuse(y, n, "yes or no");
    return standard;
}

int pnet_yaml_choice(struct pnet_yaml *y, const struct pnet_yaml_node *n, const char *const *words,
    int word_count, int standard)
{
    const char *t = word(y, n, "a word");
    if (!t) return standard;
    char list[256] = "";
    for (int i = 0; i < word_count; i++) {
        if (strcmp(t, words[i]) == 0) return i;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    const char *near = pnet_nearest(t, words, word_count);
    pnet_yaml_fail(y, n, "%.80s%s`%.80s` is not one of %s%s%s%s", n->key ? n->key : "",
        n->key ? ": " : "", t, list, near ? "; did you mean `" : "", near ? near : "",
        near ? "`?" : "");
    return standard;
}
