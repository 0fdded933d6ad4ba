/* Prints the effective config as text. */
#include "runtime/train/config.h"
#include "runtime/train/config_origin.h"
#include "runtime/base/glob.h"
#include "runtime/base/memory_stream.h"
#include "runtime/base/printable.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the path from the root; NULL: out of memory. */
static char *whole_path(const char *path)
{
    char here[PATH_MAX], whole[PATH_MAX];
    if (realpath(path, whole)) return strdup(whole);
    if (errno == ENOMEM) return NULL;
    return getcwd(here, sizeof here) ? pnet_path_join(here, path) : strdup(path);
}

/* False: out of memory. */
static bool put_path(const char *path, FILE *out)
{
    char *whole = whole_path(path);
    if (whole) pnet_yaml_put_word(whole, out);
    free(whole);
    return whole != NULL;
}

enum pnet_status pnet_config_check_paths(const struct pnet_config *c, struct pnet_error *e)
{
    const char *const paths[] = {c->data, c->weights};
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < 2 && !status; i++) {
        char *whole = paths[i] ? whole_path(paths[i]) : NULL;
        if (paths[i] && !whole)
            status = pnet_error_memory(e);
        else if (whole && !pnet_is_utf8(whole))
            status = pnet_error_set(e, PNET_USAGE,
                "%s: the path is not UTF-8, so that the run's config.yaml could not name it: "
                "rename its folder or file",
                whole);
        free(whole);
    }
    return status;
}

/* False: out of memory. */
static bool put_sets(const char *const *sets, int count, FILE *out)
{
    fputc('{', out);
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(sets[i], "=");
        char *name = strndup(sets[i], length);
        if (!name) return false;
        if (i) fputs(", ", out);
        pnet_yaml_put_key(name, out);
        pnet_yaml_put_word(sets[i][length] ? sets[i] + length + 1 : "", out);
        free(name);
    }
    fputc('}', out);
    return true;
}

enum put { PUT_NOTHING, PUT_VALUE, PUT_NO_MEMORY };

/* Writes the effective value of a key if it has one. */
static enum put put_value(
    const struct pnet_config *c, int key, const char *const *sets, int set_count, FILE *out)
{
    const char *name = pnet_config_key(key)->name, *standard = pnet_config_key(key)->standard;
    const struct pnet_yaml_node *n = c->origin->nodes[key];
    if (strcmp(name, "data") == 0)
        return put_path(c->data, out) ? PUT_VALUE : PUT_NO_MEMORY;
    else if (strcmp(name, "weights") == 0 && c->weights)
        return put_path(c->weights, out) ? PUT_VALUE : PUT_NO_MEMORY;
    else if (strcmp(name, "set") == 0)
        return put_sets(sets, set_count, out) ? PUT_VALUE : PUT_NO_MEMORY;
    else if (strcmp(name, "version") == 0)
        pnet_yaml_put_word(PNET_VERSION, out);
    else if (n)
        pnet_yaml_put(n, out);
    else if (*standard && !(strcmp(name, "epochs") == 0 && c->steps))
        fputs(standard, out);
    else
        return PUT_NOTHING;
    return PUT_VALUE;
}

char *pnet_config_print(const struct pnet_config *c, const char *const *sets, int set_count)
{
    struct pnet_memory_stream out;
    bool whole = true;
    if (!pnet_memory_stream_open(&out)) return NULL;
    for (int i = 0; i < PNET_CONFIG_KEYS && whole; i++) {
        struct pnet_memory_stream one;
        if (!(whole = pnet_memory_stream_open(&one))) break;
        enum put put = put_value(c, i, sets, set_count, one.file);
        char *value = pnet_memory_stream_close(&one, NULL);
        whole = value && put != PUT_NO_MEMORY;
        if (whole && put == PUT_VALUE)
            fprintf(out.file, "%s: %s\n", pnet_config_key(i)->name, value);
        free(value);
    }
    char *text = pnet_memory_stream_close(&out, NULL);
    if (whole) return text;
    free(text);
    return NULL;
}

/* Returns the value of a key in a text of pnet_config_print, up to the end of its line; NULL: the key is missing. */
static char *value_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            return strndup(line + length + 2, strcspn(line + length + 2, "\n"));
    return strdup("");
}

enum pnet_status pnet_config_compare(const char *name, const char *was, const char *now,
    void (*differs)(void *context, const char *key, const char *was, const char *now),
    void *context, struct pnet_error *e)
{
    struct pnet_config *c;
    enum pnet_status status = pnet_config_parse(name, was, strlen(was), &c, e);
    if (status) return status;
    bool printed = c->origin->nodes[pnet_config_find("version")] != NULL;
    char *text = pnet_config_print(c, (const char *const *)c->sets, c->set_count);
    if (!text) status = pnet_error_memory(e);
    for (int i = 0; i < PNET_CONFIG_KEYS && !status; i++) {
        const char *key = pnet_config_key(i)->name;
        bool version = strcmp(key, "version") == 0;
        if (!printed && (version || strcmp(key, "data") == 0)) continue;
        /* because printing writes the version of this program into the other text too */
        char *a = value_of(version ? was : text, key), *b = value_of(now, key);
        if (!a || !b)
            status = pnet_error_memory(e);
        else if (strcmp(a, b) != 0)
            differs(context, key, a, b);
        free(a);
        free(b);
    }
    free(text);
    pnet_config_free(c);
    return status;
}
