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

bool pnet_naming_new(enum pnet_library l, const struct pnet_name_rules *map, const char *map_name,
    struct pnet_naming *n)
{
    *n = (struct pnet_naming){.library = l, .map = map, .map_name = map_name};
    if (!pnet_name_index_new(map, false, &n->theirs)) return false;
    if (pnet_name_index_new(map, true, &n->ours)) return true;
    pnet_name_index_free(&n->theirs);
    return false;
}

void pnet_naming_free(struct pnet_naming *n)
{
    pnet_name_index_free(&n->theirs);
    pnet_name_index_free(&n->ours);
}

struct search {
    const struct pnet_naming *naming;
    const char *name; /* in pnet */
    bool failed;      /* memory is out */
};

/* Tells whether the library's name stands for the searched one. */
static bool leads_back(struct search *s, const char *theirs)
{
    char *ours = pnet_name_map(s->naming->map, &s->naming->theirs, theirs);
    if (!ours) {
        s->failed = true;
        return false;
    }
    if (has_kernels(s->naming->library)) swap_word(ours, kernel_word, weight_word);
    bool same = strcmp(ours, s->name) == 0;
    free(ours);
    return same;
}

/* Undoes rule number `rule` (-1: none) on the name, with "kernel" in place of its last word "weight" if `swapped`. `as_kernel`:
   the last word "weight" of what results becomes "kernel". Returns the result if the map leads back from it, else NULL. */
static char *try_name(struct search *s, int rule, bool swapped, bool as_kernel)
{
    char *ours = strdup(s->name), *theirs = NULL;
    s->failed |= !ours;
    if (ours && swapped) swap_word(ours, weight_word, kernel_word);
    if (ours && rule >= 0)
        theirs = pnet_name_rule_apply(&s->naming->map->items[rule], true, ours, &s->failed);
    else if (ours)
        s->failed |= !(theirs = strdup(ours));
    free(ours);
    if (theirs && as_kernel) swap_word(theirs, weight_word, kernel_word);
    if (theirs && !s->failed && leads_back(s, theirs)) return theirs;
    free(theirs);
    return NULL;
}

/* The same with the name as it is, then with "kernel"; all of that with `as_kernel`, if the library has kernels there, then
   without, for a rule that names a "weight". */
static char *try_rule(struct search *s, int rule, bool kernels)
{
    char *found = NULL;
    for (int as_kernel = kernels; as_kernel >= 0 && !found && !s->failed; as_kernel--)
        for (int swapped = 0; swapped <= has_kernels(s->naming->library) && !found && !s->failed;
             swapped++)
            found = try_name(s, rule, swapped, as_kernel);
    return found;
}

/* Sets *rules to those whose right side matches the name, with either last word, in their order. The caller frees it. */
static void find_rules(struct search *s, int **rules, int *count)
{
    const struct pnet_name_index *x = &s->naming->ours;
    int *more = NULL, added = 0, kept = 0;
    char *other = strdup(s->name);
    *rules = NULL;
    *count = 0;
    s->failed |= !other || !pnet_name_index_find(x, s->name, rules, count);
    if (other && has_kernels(s->naming->library)) {
        swap_word(other, weight_word, kernel_word);
        if (strcmp(other, s->name) != 0)
            s->failed |= !pnet_name_index_find(x, other, &more, &added);
    }
    free(other);
    int *all = s->failed ? NULL : malloc(((size_t)*count + (size_t)added + 1) * sizeof *all);
    s->failed |= !all;
    for (int i = 0, k = 0; all && (i < *count || k < added);) { /* merges them */
        bool first = k == added || (i < *count && (*rules)[i] <= more[k]);
        int rule = first ? (*rules)[i++] : more[k++];
        if (!kept || all[kept - 1] != rule) all[kept++] = rule;
    }
    free(*rules);
    free(more);
    *rules = all;
    *count = kept;
}

char *pnet_name_theirs(
    const struct pnet_naming *n, const char *name, enum pnet_param_kind kind, struct pnet_error *e)
{
    struct search s = {.naming = n, .name = name};
    bool kernels = has_kernels(n->library) && kind == PNET_PARAM_CELLS;
    int *rules, count;
    char *found = NULL;
    find_rules(&s, &rules, &count);
    for (int i = 0; i <= count && !found && !s.failed; i++)
        found = try_rule(&s, i < count ? rules[i] : -1, kernels);
    free(rules);
    if (found) return found;
    if (s.failed)
        pnet_error_memory(e);
    else
        pnet_error_set(e, PNET_USAGE, "%s: gives no tensor the name %.200s", n->map_name, name);
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
