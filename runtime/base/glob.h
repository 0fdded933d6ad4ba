/* Patterns for names of files, and pairs of patterns. */
#ifndef PNET_RUNTIME_GLOB_H
#define PNET_RUNTIME_GLOB_H

#include "runtime/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct pnet_paths {
    char **items;
    int64_t count;
};

/* Tells whether the text contains *, ? or [. */
bool pnet_is_pattern(const char *text);
/* Tells whether `name`, relative to `folder`, is a pattern: it contains *, ? or [, and nothing is called so as it is written. */
bool pnet_is_pattern_in(const char *folder, const char *name);
/* Returns `path` relative to `folder`, or `path` itself if it begins with /. The caller frees it; NULL: out of memory. */
char *pnet_path_join(const char *folder, const char *path);
/* Returns the folder of a path, with the last /, or "" if it has none. The caller frees it. */
char *pnet_path_folder(const char *path);

/* Lists the files that match a pattern relative to `folder`, in byte order for any locale. Wildcards match neither / nor a
   leading point; \ takes a wildcard's meaning away. A part of the pattern, between two /, that is the name of a file or folder
   as it is written stands for that alone. PNET_BAD_DATA: no file matches; PNET_FAILED: a folder cannot be read. */
enum pnet_status pnet_glob(
    const char *folder, const char *pattern, struct pnet_paths *p, struct pnet_error *e);
/* For each path of `from` (found by `pattern` in `folder`, with * as the only wildcard; ?, [ and \ stand for themselves),
   returns `pair` with each * replaced by
   the text that the * at the same place of the pattern matches. If several matches are possible, the shortest counts. */
enum pnet_status pnet_glob_pair(const char *folder, const char *pattern, const char *pair,
    const struct pnet_paths *from, struct pnet_paths *to, struct pnet_error *e);
void pnet_paths_free(struct pnet_paths *p);

#endif
