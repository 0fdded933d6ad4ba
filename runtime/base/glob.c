#include "runtime/base/glob.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_STARS = 16 };

bool pnet_is_pattern(const char *text)
{
    return text[strcspn(text, "*?[")] != 0;
}

bool pnet_is_pattern_in(const char *folder, const char *name)
{
    if (!pnet_is_pattern(name)) return false;
    char *path = pnet_path_join(folder, name);
    bool there = path && access(path, F_OK) == 0;
    free(path);
    return !there; /* without memory for the path too: pnet_glob finds such a file as well */
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

/* Takes over `path`, which may be NULL. */
static enum pnet_status add_path(
    struct pnet_paths *p, int64_t *room, char *path, struct pnet_error *e)
{
    if (path && p->count == *room) {
        int64_t more = *room ? 2 * *room : 64;
        char **items = realloc(p->items, (size_t)more * sizeof *items);
        if (items) {
            p->items = items;
            *room = more;
        }
    }
    if (!path || p->count == *room) {
        free(path);
        return pnet_error_memory(e);
    }
    p->items[p->count++] = path;
    return PNET_OK;
}

/* Adds the entries of a folder that match one component of a pattern: `prefix`, the name, then `after`, which is "/" or "". A
   folder that does not exist has no entries; one that cannot be read is an error, because it hides files. */
static enum pnet_status list(const char *prefix, const char *component, const char *after,
    struct pnet_paths *p, struct pnet_error *e)
{
    int64_t room = 0;
    DIR *d = opendir(*prefix ? prefix : ".");
    if (!d && (errno == ENOENT || errno == ENOTDIR)) return PNET_OK;
    if (!d && errno == ENOMEM) return pnet_error_memory(e);
    if (!d) return pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot be listed", prefix);
    enum pnet_status status = PNET_OK;
    while (!status) {
        char *path;
        errno = 0;
        const struct dirent *found = readdir(d);
        if (!found) {
            if (errno)
                status = pnet_error_errno(e, PNET_FAILED, errno, "%s: cannot be listed", prefix);
            break;
        }
        if (fnmatch(component, found->d_name, FNM_PERIOD) != 0) continue;
        if (asprintf(&path, "%s%s%s", prefix, found->d_name, after) < 0) path = NULL;
        status = add_path(p, &room, path, e);
    }
    closedir(d);
    return status;
}

/* Matches one more component: replaces the paths found so far, `from`, each ending in "/" or empty, by their matching
   entries. */
static enum pnet_status step(
    struct pnet_paths *from, const char *component, const char *after, struct pnet_error *e)
{
    struct pnet_paths next = {.count = 0}, found = {.count = 0};
    int64_t room = 0;
    enum pnet_status status = PNET_OK;
    for (int64_t i = 0; i < from->count && !status; i++) {
        if (pnet_is_pattern_in(from->items[i], component)) {
            status = list(from->items[i], component, after, &found, e);
        } else {
            char *path;
            int64_t none = 0;
            if (asprintf(&path, "%s%s%s", from->items[i], component, after) < 0) path = NULL;
            if (!path)
                status = pnet_error_memory(e);
            else if (*after || access(path, F_OK) == 0)
                status = add_path(&found, &none, path, e);
            else
                free(path);
        }
        for (int64_t k = 0; k < found.count; k++) {
            char *path = found.items[k];
            found.items[k] = NULL;
            if (!status)
                status = add_path(&next, &room, path, e);
            else
                free(path);
        }
        pnet_paths_free(&found);
    }
    pnet_paths_free(from);
    *from = next;
    return status;
}

enum pnet_status pnet_glob(
    const char *folder, const char *pattern, struct pnet_paths *p, struct pnet_error *e)
{
    int64_t room = 0;
    *p = (struct pnet_paths){.count = 0};
    char *copy = strdup(pattern), *at = copy;
    enum pnet_status status =
        copy ? add_path(p, &room, pnet_path_join(folder, *at == '/' ? "/" : ""), e)
             : pnet_error_memory(e);
    while (!status && *at && p->count) {
        at += strspn(at, "/");
        char *end = at + strcspn(at, "/");
        bool last = !*end;
        *end = 0;
        status = step(p, at, last ? "" : "/", e);
        at = end + !last;
    }
    free(copy);
    if (!status && !p->count)
        status = pnet_error_set(e, PNET_BAD_DATA, "no file is called `%s`", pattern);
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

/* Matches text against a pattern of *, none of which matches a /, and records what each * matched. Tries short matches first
   and backtracks on failure; `steps` bounds the work. */
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

static enum pnet_status not_paired(const char *pattern, const char *pair, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA,
        "`%s` and `%s` cannot be paired: both need the same number of *, at most %d, and no other "
        "wildcard",
        pattern, pair, MOST_STARS);
}

enum pnet_status pnet_glob_pair(const char *folder, const char *pattern, const char *pair,
    const struct pnet_paths *from, struct pnet_paths *to, struct pnet_error *e)
{
    *to = (struct pnet_paths){.count = 0};
    if (count_stars(pattern) != count_stars(pair) || count_stars(pair) > MOST_STARS)
        return not_paired(pattern, pair, e);
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
            status = strpbrk(pattern, "?[\\")
                         ? not_paired(pattern, pair, e)
                         : pnet_error_set(e, PNET_BAD_DATA, "%s: does not match `%s`",
                               from->items[i], pattern);
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
