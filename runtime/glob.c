#include "runtime/glob.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STARS = 16 };

bool pnet_is_pattern(const char *text)
{
    return text[strcspn(text, "*?[")] != 0;
}

char *pnet_path_join(const char *folder, const char *path)
{
    if (path[0] == '/' || !folder[0]) return strdup(path);
    size_t n = strlen(folder), m = strlen(path);
    char *joined = malloc(n + m + 2);
    if (!joined) return NULL;
    memcpy(joined, folder, n);
    if (folder[n - 1] != '/') joined[n++] = '/';
    memcpy(joined + n, path, m + 1);
    return joined;
}

char *pnet_path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
}

void pnet_paths_free(struct pnet_paths *p)
{
    for (int64_t i = 0; i < p->count; i++) free(p->items[i]);
    free(p->items);
    *p = (struct pnet_paths){.count = 0};
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The folder with its wildcards escaped, the pattern behind it. */
static char *escape(const char *folder, const char *pattern)
{
    if (pattern[0] == '/') return strdup(pattern);
    char *quoted = malloc(2 * strlen(folder) + 1), *to = quoted;
    if (!quoted) return NULL;
    for (const char *c = folder; *c; c++) {
        if (strchr("*?[\\", *c)) *to++ = '\\';
        *to++ = *c;
    }
    *to = 0;
    char *all = pnet_path_join(quoted, pattern);
    free(quoted);
    return all;
}

/* A folder that is not there matches nothing; one that cannot be read hides files. */
static int stop(const char *path, int code)
{
    (void)path;
    return code != ENOENT && code != ENOTDIR;
}

enum pnet_status pnet_glob(
    const char *folder, const char *pattern, struct pnet_paths *p, struct pnet_error *e)
{
    glob_t found;
    *p = (struct pnet_paths){.count = 0};
    char *all = escape(folder, pattern);
    if (!all) return pnet_error_memory(e);
    int code = glob(all, GLOB_NOSORT, stop, &found);
    free(all);
    if (code == GLOB_NOMATCH)
        return pnet_error_set(e, PNET_BAD_DATA, "no file is called `%s`", pattern);
    if (code == GLOB_NOSPACE) return pnet_error_memory(e);
    if (code) return pnet_error_set(e, PNET_FAILED, "cannot list the files `%s`", pattern);

    enum pnet_status status = PNET_OK;
    p->items = calloc(found.gl_pathc, sizeof *p->items);
    if (!p->items) status = pnet_error_memory(e);
    for (size_t i = 0; i < found.gl_pathc && !status; i++) {
        p->items[i] = strdup(found.gl_pathv[i]);
        if (!p->items[i]) status = pnet_error_memory(e);
        p->count += !status;
    }
    globfree(&found);
    if (status)
        pnet_paths_free(p);
    else
        qsort(p->items, (size_t)p->count, sizeof *p->items, by_bytes);
    return status;
}

struct star {
    const char *at;
    size_t length;
};

/* Matches text against a pattern of *, none of which takes a /; says what each took. Tries short
   ones first and goes back on failure; `steps` bounds the work. */
static bool match(const char *pattern, const char *text, struct star *stars, int *steps)
{
    while (*pattern && *pattern != '*') {
        if (*pattern != *text) return false;
        pattern++;
        text++;
    }
    if (!*pattern) return !*text;
    for (size_t n = 0;; n++) {
        if (--*steps < 0) return false;
        *stars = (struct star){text, n};
        if (match(pattern + 1, text + n, stars + 1, steps)) return true;
        if (!text[n] || text[n] == '/') return false;
    }
}

static char *fill(const char *pattern, const struct star *stars)
{
    size_t size = 1;
    int s = 0;
    for (const char *c = pattern; *c; c++) size += *c == '*' ? stars[s++].length : 1;
    char *text = malloc(size), *to = text;
    if (!text) return NULL;
    for (const char *c = pattern; *c; c++) {
        if (*c != '*') {
            *to++ = *c;
            continue;
        }
        memcpy(to, stars->at, stars->length);
        to += stars->length;
        stars++;
    }
    *to = 0;
    return text;
}

static int count_stars(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '*';
    return n;
}

enum pnet_status pnet_glob_pair(const char *folder, const char *pattern, const char *pair,
    const struct pnet_paths *from, struct pnet_paths *to, struct pnet_error *e)
{
    *to = (struct pnet_paths){.count = 0};
    if (count_stars(pattern) != count_stars(pair) || count_stars(pair) > MOST_STARS ||
        strpbrk(pattern, "?[\\") || strpbrk(pair, "?[\\"))
        return pnet_error_set(e, PNET_BAD_DATA,
            "`%s` and `%s` cannot be paired: both need the same number of *, at most %d, and no "
            "other wildcard",
            pattern, pair, MOST_STARS);
    size_t skip = pattern[0] == '/' || !folder[0] ? 0 : strlen(folder);
    if (skip && folder[skip - 1] != '/') skip++;
    to->items = calloc((size_t)from->count + 1, sizeof *to->items);
    if (!to->items) return pnet_error_memory(e);
    for (int64_t i = 0; i < from->count; i++) {
        struct star stars[MOST_STARS + 1];
        int steps = 1 << 20;
        enum pnet_status status = PNET_OK;
        char *name = NULL, *path = NULL;
        if (!match(pattern, from->items[i] + skip, stars, &steps))
            status = pnet_error_set(
                e, PNET_BAD_DATA, "%s: does not match `%s`", from->items[i], pattern);
        else if (!(name = fill(pair, stars)) || !(path = pnet_path_join(folder, name)))
            status = pnet_error_memory(e);
        free(name);
        if (status) {
            pnet_paths_free(to);
            return status;
        }
        to->items[to->count++] = path;
    }
    return PNET_OK;
}
