#include "runtime/exchange/names.h"
#include "runtime/base/yaml.h"

#include <stdlib.h>
#include <string.h>

static const char weight_word[] = "weight", kernel_word[] = "kernel"; /* of one length */

const char *pnet_last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

bool pnet_name_is_kernel(const char *name)
{
    return strcmp(pnet_last_word(name), kernel_word) == 0;
}

/* Writes another last word of the same length if the last word is `from`. */
static void swap_word(char *name, const char *from, const char *to)
{
    char *word = name + (pnet_last_word(name) - name);
    if (strcmp(word, from) == 0) memcpy(word, to, strlen(to));
}

static bool has_kernels(enum pnet_library l)
{
    return l == PNET_LIBRARY_MINKOWSKI || l == PNET_LIBRARY_TORCHSPARSE;
}

/* How many batches a norm has seen, and how many voxels a strided convolution of spconv has. */
static bool is_counter(const char *name)
{
    const char *word = pnet_last_word(name);
    return strcmp(word, "num_batches_tracked") == 0 ||
           strcmp(word, "max_num_voxels_during_training") == 0;
}

enum pnet_status pnet_names_theirs(enum pnet_library l, const struct pnet_safetensors *file,
    const struct pnet_name_rules *map, const char *map_name, struct pnet_renamed *r,
    struct pnet_error *e)
{
    enum pnet_status st = pnet_renamed_new(file, map, r, e);
    if (st) return st;
    for (size_t i = 0; i < file->count; i++) {
        r->left[i] = is_counter(file->tensors[i].name);
        if (has_kernels(l)) swap_word(r->names[i], kernel_word, weight_word);
    }
    st = pnet_renamed_index(r, map_name, e);
    if (st) pnet_renamed_free(r);
    return st;
}

/* ---- backwards ---- */

struct search {
    enum pnet_library library;
    const struct pnet_name_rules *map;
    const char *name; /* in pnet */
};

/* Tells whether the library's name stands for the searched one; false with *failed set: out of memory. */
static bool leads_back(const struct search *s, const char *theirs, bool *failed)
{
    char *ours = pnet_name_map(s->map, theirs);
    if (!ours) {
        *failed = true;
        return false;
    }
    if (has_kernels(s->library)) swap_word(ours, kernel_word, weight_word);
    bool same = strcmp(ours, s->name) == 0;
    free(ours);
    return same;
}

/* Undoes rule number `rule` (-1: none) on the name, as it is and then with "kernel" in place of its last word "weight".
   `as_kernel`: the last word "weight" of what results becomes "kernel". Returns the result if the map leads back from it, else
   NULL; *failed: out of memory. */
static char *try_rule(const struct search *s, int rule, bool as_kernel, bool *failed)
{
    for (int before = 0; before < 2; before++) {
        char *ours = strdup(s->name), *theirs = NULL;
        if (ours && before) swap_word(ours, weight_word, kernel_word);
        if (ours && rule < 0)
            theirs = strdup(ours);
        else if (ours)
            theirs = pnet_name_unmap(s->map, rule, ours, failed);
        *failed |= !ours || (rule < 0 && !theirs);
        free(ours);
        if (theirs && as_kernel) swap_word(theirs, weight_word, kernel_word);
        if (theirs && !*failed && leads_back(s, theirs, failed)) return theirs;
        free(theirs);
        if (*failed || !has_kernels(s->library)) return NULL;
    }
    return NULL;
}

char *pnet_name_theirs(enum pnet_library l, const struct pnet_name_rules *map, const char *map_name,
    const char *name, enum pnet_param_kind kind, struct pnet_error *e)
{
    struct search s = {l, map, name};
    bool failed = false, as_kernel = has_kernels(l) && kind == PNET_PARAM_CELLS;
    for (int rule = 0; rule <= map->count && !failed; rule++) {
        char *found = try_rule(&s, rule < map->count ? rule : -1, as_kernel, &failed);
        if (!found && !failed && as_kernel) /* a rule that names a "weight" */
            found = try_rule(&s, rule < map->count ? rule : -1, false, &failed);
        if (found) return found;
    }
    if (failed)
        pnet_error_memory(e);
    else
        pnet_error_set(e, PNET_USAGE, "%s: gives no tensor the name %.200s", map_name, name);
    return NULL;
}

enum pnet_status pnet_names_read(const char *path, struct pnet_name_rules *r, struct pnet_error *e)
{
    struct pnet_yaml *y;
    *r = (struct pnet_name_rules){0};
    enum pnet_status st = pnet_yaml_read(path, PNET_USAGE, &y, e);
    if (st) return st;
    const struct pnet_yaml_node *root = pnet_yaml_root(y);
    if (root && root->kind == PNET_YAML_MAP)
        pnet_name_rules_map(y, root, r);
    else
        pnet_yaml_fail(y, root, "expected `from: to` pairs");
    st = pnet_yaml_end(y, e);
    pnet_yaml_free(y);
    return st;
}
