/* Reads the entries of a completion data set. */
#include "runtime/data/dataset_listing.h"
#include "runtime/data/partial.h"
#include "runtime/base/glob.h"

#include <inttypes.h>
#include <stdlib.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Makes room for one more partial, which all pairs of the entry get. NULL: out of memory, which sticks. */
static struct pnet_partial *add_partial(struct pnet_listing *l)
{
    struct pnet_dataset *d = l->r->d;
    struct pnet_partial *grown =
        realloc(d->partials, ((size_t)d->partial_count + 1) * sizeof *grown);
    if (!grown) {
        pnet_yaml_fail_memory(l->r->y);
        return NULL;
    }
    d->partials = grown;
    l->common.partial = d->partial_count++;
    grown[l->common.partial] = (struct pnet_partial){.kind = PNET_PARTIAL_FILE};
    return &grown[l->common.partial];
}

static void read_one_pair(struct pnet_listing *l, const char *partial, const char *full)
{
    char *from = pnet_path_join(l->r->folder, partial);
    char *to = from ? pnet_path_join(l->r->folder, full) : NULL;
    if (from && to)
        pnet_listing_pair(l, from, to);
    else
        pnet_yaml_fail_memory(l->r->y);
    free(from);
    free(to);
}

/* Lists pairs whose partial clouds match a pattern; the full ones have the same text in the place of *. */
static void read_many_pairs(struct pnet_listing *l, const char *partial, const char *full)
{
    struct pnet_index *r = l->r;
    struct pnet_paths from = {.count = 0}, to = {.count = 0};
    struct pnet_error e;
    enum pnet_status status = pnet_glob(r->folder, partial, &from, &e);
    if (!status) status = pnet_glob_pair(r->folder, partial, full, &from, &to, &e);
    for (int64_t i = 0; !status && i < from.count && pnet_yaml_ok(r->y); i++)
        pnet_listing_pair(l, from.items[i], to.items[i]);
    if (status) pnet_index_fail(r, l->n, status, &e);
    pnet_paths_free(&from);
    pnet_paths_free(&to);
}

static void read_label(struct pnet_listing *l)
{
    const struct pnet_yaml_node *label = pnet_yaml_get(l->n, "label");
    if (label && !l->r->d->class_count)
        pnet_yaml_fail(l->r->y, label, "label: the data set lists no `classes`");
    else if (label)
        l->label = pnet_index_label(l->r, label);
}

/* Lists the clouds of two arrays of one file: several partial ones, one after the other, may be of one full cloud, 26 in MVP. */
static void read_arrays(struct pnet_listing *l, const char *name, const char *partial,
    const char *full, const char *labels)
{
    struct pnet_index *r = l->r;
    const struct pnet_index_array of_partial = {.points = partial, .cell_m = 1},
                                  of_full = {.points = full, .cell_m = 1};
    if (r->d->unit.of_file)
        pnet_yaml_fail(
            r->y, l->n, "unit: file: an array does not state its unit: name it, m, ft ...");
    char *path = pnet_yaml_ok(r->y) ? pnet_index_find_file(r, l->n, name) : NULL;
    int from = path ? pnet_index_array(r, l->n, &of_partial, path, labels) : -1;
    int to = from >= 0 ? pnet_index_array(r, l->n, &of_full, path, NULL) : -1;
    if (to >= 0) {
        const struct pnet_array *a = &r->d->arrays[from];
        int64_t rows = a->points.shape[0], full_rows = r->d->arrays[to].points.shape[0];
        int64_t each = full_rows ? rows / full_rows : 0;
        if (each * full_rows != rows)
            pnet_yaml_fail(r->y, l->n,
                "%s: %" PRId64 " partial clouds of %" PRId64
                " full ones: expected one or several of each",
                name, rows, full_rows);
        if (a->labels.dims && pnet_array_labels_points(a))
            pnet_yaml_fail(r->y, l->n, "labels: the task needs one a cloud");
        for (int64_t row = 0; each && row < rows && pnet_yaml_ok(r->y); row++) {
            if (!pnet_index_takes(&l->share, row)) continue;
            l->common.array = to;
            l->common.row = row / each;
            l->label = pnet_index_row_label(r, l->n, a, path, row);
            pnet_listing_add_row(l, path, from, row);
        }
    }
    free(path);
}

/* ARRAYS comes first, for its entries have the key `partial` too. */
enum { ARRAYS, TWO_FILES, MESH, CLOUD };

void pnet_index_completion(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s)
{
    static const struct pnet_entry_kind kinds[] = {
        [TWO_FILES] = {{"partial", "full", "label", "points", "full_points", "keep_every",
            "drop_every"}},
        [MESH] = {{"mesh", "points", "views", "label", "keep_every", "drop_every"}},
        [CLOUD] = {{"full", "full_points", "points", "views", "label", "keep_every", "drop_every"}},
        [ARRAYS] = {{"array", "partial", "full", "labels", "points", "full_points", "keep_every",
            "drop_every"}}};
    int kind = pnet_entry_find_kind(r, n, kinds, COUNT(kinds),
        "an entry needs `partial` and `full`, `full` and `views`, or `mesh`");
    if (kind < 0) return;
    const char *name = pnet_yaml_string(r->y, pnet_yaml_get(n, kinds[kind].keys[0]), NULL);
    if (kind == CLOUD && !pnet_yaml_get(n, "views")) {
        pnet_yaml_fail(r->y, n, "`full` needs `partial`, or `views` that are cut from it");
        return;
    }
    struct pnet_listing l = pnet_listing_begin(r, n, s);
    read_label(&l);
    struct pnet_partial *p = pnet_yaml_ok(r->y) ? add_partial(&l) : NULL;
    if (!name || !p) return;
    if (kind == MESH || kind == CLOUD) {
        (kind == MESH ? pnet_partial_parse_mesh : pnet_partial_parse_cloud)(r->y, n, p);
        if (pnet_yaml_ok(r->y)) pnet_listing_views(&l, name, p->count);
        return;
    }
    pnet_partial_parse_files(r->y, n, p);
    if (kind == ARRAYS) {
        const char *partial = pnet_index_need(r, n, "partial", "array");
        const char *of_full = pnet_index_need(r, n, "full", "array");
        const char *labels = pnet_yaml_string(r->y, pnet_yaml_get(n, "labels"), NULL);
        if (labels && !r->d->class_count)
            pnet_yaml_fail(r->y, n, "labels: the data set lists no `classes`");
        if (pnet_yaml_ok(r->y)) read_arrays(&l, name, partial, of_full, labels);
        return;
    }
    const char *full = pnet_index_need(r, n, "full", "partial");
    if (full && pnet_yaml_ok(r->y))
        (pnet_is_pattern_in(r->folder, name) ? read_many_pairs : read_one_pair)(&l, name, full);
}
