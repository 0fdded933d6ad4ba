#include "runtime/data/dataset_listing.h"
#include "runtime/base/glob.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(struct pnet_listing *l, struct pnet_entry entry, const char *source,
    const char *target, int64_t view)
{
    struct pnet_index *r = l->r;
    entry.label = l->label;
    entry.cloud = pnet_index_copy(r, source);
    entry.pair = calloc(1, sizeof *entry.pair);
    if (!entry.pair) {
        pnet_yaml_fail_memory(r->y);
        pnet_entry_free(&entry);
        return;
    }
    *entry.pair = l->common;
    entry.pair->view = view;
    if (target) entry.pair->target = pnet_index_copy(r, target);
    pnet_index_add(r, l->split, entry);
}

void pnet_listing_add(struct pnet_listing *l, const char *source, const char *target, int64_t view)
{
    add(l, (struct pnet_entry){.array = -1}, source, target, view);
}

void pnet_listing_add_row(struct pnet_listing *l, const char *path, int array, int64_t row)
{
    add(l, (struct pnet_entry){.array = array, .row = row}, path, path, 0);
}

bool pnet_listing_pair(struct pnet_listing *l, const char *source, const char *target)
{
    if (!pnet_index_takes(&l->share, l->number++)) return false;
    if (l->skip && (access(source, F_OK) != 0 || access(target, F_OK) != 0)) return false;
    if (!pnet_index_is_file(l->r, l->n, source) || !pnet_index_is_file(l->r, l->n, target))
        return false;
    pnet_listing_add(l, source, target, 0);
    return pnet_yaml_ok(l->r->y);
}

struct pnet_listing pnet_listing_begin(
    struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s)
{
    return (struct pnet_listing){.r = r,
        .n = n,
        .split = s,
        .share = pnet_index_share(r, n),
        .common = {.pose = pnet_pose_identity(), .views = -1, .partial = -1, .array = -1},
        .label = PNET_LABEL_NONE};
}

char *pnet_index_find_file(struct pnet_index *r, const struct pnet_yaml_node *n, const char *name)
{
    char *path = pnet_path_join(r->folder, name);
    if (!path) pnet_yaml_fail_memory(r->y);
    if (path && pnet_index_is_file(r, n, path)) return path;
    free(path);
    return NULL;
}

/* Lists the views of one file, one after the other. */
static void add_views(struct pnet_listing *l, const char *path, int64_t count)
{
    for (int64_t i = 0; i < count && pnet_yaml_ok(l->r->y); i++) pnet_listing_add(l, path, NULL, i);
}

void pnet_listing_views(struct pnet_listing *l, const char *name, int64_t count)
{
    struct pnet_index *r = l->r;
    struct pnet_paths files;
    struct pnet_error e;
    if (!pnet_is_pattern_in(r->folder, name)) {
        char *path = pnet_index_find_file(r, l->n, name);
        if (path) add_views(l, path, count);
        free(path);
        return;
    }
    enum pnet_status status = pnet_glob(r->folder, name, &files, &e);
    if (status) {
        pnet_index_fail(r, l->n, status, &e);
        return;
    }
    for (int64_t i = 0; i < files.count && pnet_yaml_ok(r->y); i++)
        if (pnet_index_takes(&l->share, i) && pnet_index_is_file(r, l->n, files.items[i]))
            add_views(l, files.items[i], count);
    pnet_paths_free(&files);
}

static bool has_key(const struct pnet_entry_kind *kind, const char *key)
{
    for (int i = 0; i < PNET_KIND_KEYS && kind->keys[i]; i++)
        if (strcmp(kind->keys[i], key) == 0) return true;
    return false;
}

int pnet_entry_find_kind(struct pnet_index *r, const struct pnet_yaml_node *n,
    const struct pnet_entry_kind *kinds, int kind_count, const char *expected)
{
    const char *all[PNET_KIND_KEYS * 8] = {NULL};
    int kind = -1, count = 0;
    for (int i = 0; i < kind_count; i++)
        for (int k = 0; k < PNET_KIND_KEYS && kinds[i].keys[k]; k++)
            all[count++] = kinds[i].keys[k];
    if (!pnet_yaml_map(r->y, n, "entry", all, count)) return -1;
    for (int i = 0; i < kind_count; i++)
        if (kind < 0 && pnet_yaml_get(n, kinds[i].keys[0])) kind = i;
    if (kind < 0) {
        pnet_yaml_fail(r->y, n, "%s", expected);
        return -1;
    }
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next) {
        if (has_key(&kinds[kind], c->key)) continue;
        pnet_yaml_fail(r->y, c, "%s: not together with `%s`", c->key, kinds[kind].keys[0]);
        return -1;
    }
    return kind;
}

const char *pnet_index_need(
    struct pnet_index *r, const struct pnet_yaml_node *n, const char *key, const char *with)
{
    const struct pnet_yaml_node *c = pnet_yaml_get(n, key);
    if (!c) pnet_yaml_fail(r->y, n, "`%s` needs `%s`", with, key);
    return pnet_yaml_string(r->y, c, NULL);
}
