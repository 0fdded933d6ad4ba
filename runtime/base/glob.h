/* Lists of files: patterns, and pairs of patterns. */
#ifndef PNET_RUNTIME_GLOB_H
#define PNET_RUNTIME_GLOB_H

#include "runtime/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct pnet_paths {
    char **items;
    int64_t count;
};

/* Whether there is any of * ? [ in it. */
bool pnet_is_pattern(const char *text);
/* `path` seen from `folder`: itself where it begins with /. Allocated; NULL: out of memory. */
char *pnet_path_join(const char *folder, const char *path);
/* The folder of a path: "" where it has none, else with the last /. Allocated. */
char *pnet_path_folder(const char *path);

/* The files a pattern stands for, seen from `folder`, in byte order whatever the locale. Wildcards
   take no / and no leading point. None: PNET_BAD_DATA; a folder that cannot be read: PNET_FAILED.
 */
enum pnet_status pnet_glob(
    const char *folder, const char *pattern, struct pnet_paths *p, struct pnet_error *e);
/* For each path of `from` (found by `pattern` in `folder`, which has no wildcard but *), `pair`
   with each * replaced by what the * of the pattern at the same place stands for. The shortest
   match counts where there are several. */
enum pnet_status pnet_glob_pair(const char *folder, const char *pattern, const char *pair,
    const struct pnet_paths *from, struct pnet_paths *to, struct pnet_error *e);
void pnet_paths_free(struct pnet_paths *p);

#endif
