/* Reads the index of a data set. */
#include "runtime/data/dataset_array.h"
#include "runtime/io/archive.h"
#include "runtime/data/dataset_index.h"
#include "runtime/data/dataset_labels.h"
#include "runtime/base/glob.h"
#include "runtime/base/guard.h"
#include "runtime/base/memory_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, PATH_MOST = 4096 };

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

void pnet_index_fail(struct pnet_index *r, const struct pnet_yaml_node *at, enum pnet_status status,
    const struct pnet_error *e)
{
    if (status == PNET_NO_MEMORY)
        pnet_yaml_fail_memory(r->y);
    else
        pnet_yaml_fail(r->y, at, "%s", e->message);
}

char *pnet_index_copy(struct pnet_index *r, const char *text)
{
    char *c = strdup(text);
    if (!c) pnet_yaml_fail_memory(r->y);
    return c;
}

/* Reads a list of words, all different. */
static void read_words(
    struct pnet_index *r, const struct pnet_yaml_node *n, int most, char ***words, int *count)
{
    if (!pnet_yaml_list(r->y, n, 1, most)) return;
    *words = calloc((size_t)n->count, sizeof **words);
    if (!*words) {
        pnet_yaml_fail_memory(r->y);
        return;
    }
    for (const struct pnet_yaml_node *c = n->first; c && pnet_yaml_ok(r->y); c = c->next) {
        const char *text = pnet_yaml_string(r->y, c, NULL);
        if (!text) return;
        char *word = pnet_index_copy(r, text);
        if (word) (*words)[(*count)++] = word;
    }
}

/* Makes the classes findable, which must differ. */
static void index_classes(struct pnet_index *r, const struct pnet_yaml_node *n)
{
    for (int i = 0; i < r->d->class_count; i++) {
        const char *name = r->d->classes[i];
        if (!pnet_name_table_at(&r->classes, name, strlen(name), i)) {
            pnet_yaml_fail_memory(r->y);
            return;
        }
        if (r->classes.count == (size_t)i)
            pnet_yaml_fail(r->y, n, "classes: `%.80s` is there twice", name);
        if (!pnet_yaml_ok(r->y)) return;
    }
}

static int find_class(const struct pnet_index *r, const char *name)
{
    return (int)pnet_name_table_find(&r->classes, name, strlen(name));
}

static bool is_integer(const char *text, int64_t *value)
{
    char *end;
    const char *digits = text + (*text == '-');
    if (*digits < '0' || *digits > '9') return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return !*end && !errno;
}

static void refuse_class(struct pnet_index *r, const struct pnet_yaml_node *n, const char *name)
{
    const char *near = pnet_nearest(name, (const char *const *)r->d->classes, r->d->class_count);
    pnet_yaml_fail(r->y, n, "`%.80s` is none of the %d classes%s%.80s%s", name, r->d->class_count,
        near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
}

/* Reads the right side of a `map` item, or of `map_other`: a class, its index, or `ignore`. */
static int32_t read_target(struct pnet_index *r, const struct pnet_yaml_node *n)
{
    const char *text = pnet_yaml_string(r->y, n, "ignore");
    int64_t index;
    int found = find_class(r, text);
    if (found >= 0) return (int32_t)found;
    if (strcmp(text, "ignore") == 0) return PNET_LABEL_IGNORED;
    if (is_integer(text, &index) && index >= 0 && index < r->d->class_count) return (int32_t)index;
    refuse_class(r, n, text);
    return PNET_LABEL_IGNORED;
}

struct pair {
    int64_t raw;
    int32_t to;
};

static int by_raw(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return (x->raw > y->raw) - (x->raw < y->raw);
}

static void store_pairs(
    struct pnet_index *r, const struct pnet_yaml_node *at, struct pair *pairs, int count)
{
    struct pnet_dataset *d = r->d;
    qsort(pairs, (size_t)count, sizeof *pairs, by_raw);
    d->raw = malloc(((size_t)count + 1) * sizeof *d->raw);
    d->raw_class = malloc(((size_t)count + 1) * sizeof *d->raw_class);
    if (!d->raw || !d->raw_class) {
        pnet_yaml_fail_memory(r->y);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (i && pairs[i].raw == pairs[i - 1].raw)
            pnet_yaml_fail(r->y, at, "the raw label %" PRId64 " is there twice", pairs[i].raw);
        d->raw[i] = pairs[i].raw;
        d->raw_class[i] = pairs[i].to;
    }
    d->map_count = count;
}

static void read_map(struct pnet_index *r, const struct pnet_yaml_node *root)
{
    const struct pnet_yaml_node *map = pnet_yaml_get(root, "map"),
                                *ignore = pnet_yaml_get(root, "ignore");
    const struct pnet_yaml_node *others = pnet_yaml_get(root, "map_other");
    int count = 0;
    if (others) r->d->others = read_target(r, others);
    r->d->mapped = map != NULL;
    if (map && map->kind != PNET_YAML_MAP)
        pnet_yaml_fail(r->y, map, "map: expected `raw label: class` pairs");
    if (ignore) pnet_yaml_list(r->y, ignore, 0, PNET_MAX_CLASSES);
    int64_t most = (map ? map->count : 0) + (ignore ? ignore->count : 0);
    if (!pnet_yaml_ok(r->y) || !most) return;
    struct pair *pairs = most <= INT32_MAX ? calloc((size_t)most, sizeof *pairs) : NULL;
    if (!pairs) {
        pnet_yaml_fail_memory(r->y);
        return;
    }
    for (const struct pnet_yaml_node *n = map ? map->first : NULL; n; n = n->next, count++) {
        if (!is_integer(n->key, &pairs[count].raw))
            pnet_yaml_fail(r->y, n, "map: `%.80s` is no raw label, an integer", n->key);
        pairs[count].to = read_target(r, n);
    }
    for (const struct pnet_yaml_node *n = ignore ? ignore->first : NULL; n; n = n->next)
        pairs[count++] =
            (struct pair){pnet_yaml_int(r->y, n, INT64_MIN, INT64_MAX, 0), PNET_LABEL_IGNORED};
    if (pnet_yaml_ok(r->y)) store_pairs(r, ignore ? ignore : map, pairs, count);
    free(pairs);
}

int32_t pnet_index_label(struct pnet_index *r, const struct pnet_yaml_node *n)
{
    int64_t raw;
    const char *text = pnet_yaml_string(r->y, n, NULL);
    if (!text) return PNET_LABEL_NONE;
    int found = find_class(r, text);
    if (found >= 0) return (int32_t)found;
    if (!is_integer(text, &raw)) {
        refuse_class(r, n, text);
        return PNET_LABEL_NONE;
    }
    int32_t label = pnet_dataset_label(r->d, raw);
    if (label == PNET_LABEL_NONE)
        pnet_yaml_fail(r->y, n, "label: %" PRId64 " is none of the %d classes%s", raw,
            r->d->class_count, r->d->mapped ? ", and not in `map`" : ", which count from 0");
    return label;
}

void pnet_index_add(struct pnet_index *r, enum pnet_split s, struct pnet_entry entry)
{
    struct pnet_dataset *d = r->d;
    if (d->counts[s] == r->room[s]) {
        int64_t room = r->room[s] ? 2 * r->room[s] : 64;
        struct pnet_entry *grown = realloc(d->entries[s], (size_t)room * sizeof *grown);
        if (!grown) {
            pnet_yaml_fail_memory(r->y);
            pnet_entry_free(&entry);
            return;
        }
        d->entries[s] = grown;
        r->room[s] = room;
    }
    d->entries[s][d->counts[s]++] = entry;
}

struct pnet_index_share pnet_index_share(struct pnet_index *r, const struct pnet_yaml_node *n)
{
    const struct pnet_yaml_node *keep = pnet_yaml_get(n, "keep_every"),
                                *drop = pnet_yaml_get(n, "drop_every");
    if (keep && drop) pnet_yaml_fail(r->y, n, "keep_every and drop_every exclude each other");
    return (struct pnet_index_share){.keep = pnet_yaml_int(r->y, keep, 2, INT32_MAX, 0),
        .drop = pnet_yaml_int(r->y, drop, 2, INT32_MAX, 0)};
}

bool pnet_index_takes(const struct pnet_index_share *s, int64_t i)
{
    return !(s->keep && i % s->keep != 0) && !(s->drop && i % s->drop == 0);
}

bool pnet_index_is_file(struct pnet_index *r, const struct pnet_yaml_node *at, const char *path)
{
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (there && !S_ISREG(info.st_mode))
        pnet_yaml_fail(r->y, at, "%s: is not a file", path);
    else if (!there || access(path, R_OK) != 0)
        pnet_yaml_fail(r->y, at, "%s: %s", path, strerror(errno));
    else
        return true;
    return false;
}

static void add_cloud(struct pnet_index *r, const struct pnet_yaml_node *at, enum pnet_split s,
    const char *cloud, const char *labels, int32_t label)
{
    if (!pnet_index_is_file(r, at, cloud) || (labels && !pnet_index_is_file(r, at, labels))) return;
    struct pnet_entry entry = {.array = -1, .label = label};
    entry.cloud = pnet_index_copy(r, cloud);
    entry.labels = labels ? pnet_index_copy(r, labels) : NULL;
    pnet_index_add(r, s, entry);
}

static void read_clouds(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s,
    const char *cloud, const char *labels, int32_t label)
{
    struct pnet_error e;
    struct pnet_paths clouds = {.count = 0}, pairs = {.count = 0};
    struct pnet_index_share share = pnet_index_share(r, n);
    enum pnet_status status = PNET_OK;
    if (!pnet_is_pattern_in(r->folder, cloud)) {
        char *path = pnet_path_join(r->folder, cloud);
        char *second = labels ? pnet_path_join(r->folder, labels) : NULL;
        if (!path || (labels && !second))
            pnet_yaml_fail_memory(r->y);
        else
            add_cloud(r, n, s, path, second, label);
        free(path);
        free(second);
        return;
    }
    status = pnet_glob(r->folder, cloud, &clouds, &e);
    if (!status && labels) status = pnet_glob_pair(r->folder, cloud, labels, &clouds, &pairs, &e);
    if (status) pnet_index_fail(r, n, status, &e);
    for (int64_t i = 0; !status && i < clouds.count && pnet_yaml_ok(r->y); i++)
        if (pnet_index_takes(&share, i))
            add_cloud(r, n, s, clouds.items[i], labels ? pairs.items[i] : NULL, label);
    pnet_paths_free(&clouds);
    pnet_paths_free(&pairs);
}

int32_t pnet_index_row_label(struct pnet_index *r, const struct pnet_yaml_node *n,
    const struct pnet_array *a, const char *path, int64_t row)
{
    if (!a->labels.dims) return PNET_LABEL_NONE;
    struct pnet_error e;
    int32_t label;
    const struct pnet_field f = {.type = a->labels.type, .data = a->labels.data};
    const struct pnet_raw_labels raw = {.field = &f, .count = a->labels.count, .path = path};
    enum pnet_status status = pnet_labels_convert(r->d, &raw, row, row, &label, &e);
    if (status) pnet_index_fail(r, n, status, &e);
    return label;
}

static void add_rows(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s,
    const char *path, int index)
{
    const struct pnet_array *a = &r->d->arrays[index];
    struct pnet_index_share share = pnet_index_share(r, n);
    bool clouds = r->d->task == PNET_CLASSIFICATION;
    if (a->labels.dims && clouds == pnet_array_labels_points(a))
        pnet_yaml_fail(r->y, n, "labels: the task needs one a %s", clouds ? "cloud" : "point");
    for (int64_t row = 0; row < a->points.shape[0] && pnet_yaml_ok(r->y); row++) {
        if (!pnet_index_takes(&share, row)) continue;
        struct pnet_entry entry = {.array = index, .row = row, .label = PNET_LABEL_NONE};
        if (clouds) entry.label = pnet_index_row_label(r, n, a, path, row);
        entry.cloud = pnet_index_copy(r, path);
        pnet_index_add(r, s, entry);
    }
}

/* Returns what stands for an array in the table, because entries that list the same one share it, as train and val of one file
   do: its path and what else is said of it, each text with its length. The caller frees it; NULL: memory is out. */
static char *array_key(const struct pnet_index_array *a, const char *path, const char *labels)
{
    const char *const texts[] = {path, a->points, labels};
    struct pnet_memory_stream key;
    if (!pnet_memory_stream_open(&key)) return NULL;
    for (int i = 0; i < COUNT(texts); i++)
        if (texts[i])
            fprintf(key.file, "%zu:%s", strlen(texts[i]), texts[i]);
        else
            fputc('-', key.file);
    fprintf(key.file, "%d %a", (int)a->kind, a->cell_m);
    return pnet_memory_stream_close(&key, NULL);
}

/* Makes room for one more array. */
static bool grow_arrays(struct pnet_index *r)
{
    if (r->d->array_count < r->array_room) return true;
    int room = r->array_room ? 2 * r->array_room : 4;
    struct pnet_array *arrays = realloc(r->d->arrays, (size_t)room * sizeof *arrays);
    if (arrays) r->d->arrays = arrays;
    char **keys = realloc(r->array_keys, (size_t)room * sizeof *keys);
    if (keys) r->array_keys = keys;
    if (!arrays || !keys) return false;
    r->array_room = room;
    return true;
}

/* Takes over the key of the array that was read last. */
static void keep_array(struct pnet_index *r, char *key)
{
    int array = r->d->array_count++;
    r->array_keys[array] = key;
    if (!pnet_name_table_at(&r->arrays, key, strlen(key), array)) pnet_yaml_fail_memory(r->y);
}

int pnet_index_array(struct pnet_index *r, const struct pnet_yaml_node *n,
    const struct pnet_index_array *a, const char *path, const char *labels)
{
    struct pnet_dataset *d = r->d;
    struct pnet_error e;
    char *key = array_key(a, path, labels);
    int found = key ? (int)pnet_name_table_find(&r->arrays, key, strlen(key)) : -1;
    if (!key || !grow_arrays(r)) {
        pnet_yaml_fail_memory(r->y);
    } else if (found < 0 && pnet_index_is_file(r, n, path)) {
        enum pnet_status status = pnet_array_read(
            path, a->points, labels, a->kind, a->cell_m, &d->arrays[d->array_count], &e);
        if (status) {
            pnet_index_fail(r, n, status, &e);
        } else {
            found = d->array_count;
            keep_array(r, key);
            key = NULL;
        }
    }
    free(key);
    return found;
}

static void read_one_array(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s,
    const struct pnet_index_array *a, const char *path, const char *labels)
{
    int array = pnet_index_array(r, n, a, path, labels);
    if (array >= 0) add_rows(r, n, s, path, array);
}

/* Reads the arrays that match a pattern. Labels are arrays of the same archives, or files with the same text in the place
   of *. */
static void read_many_arrays(struct pnet_index *r, const struct pnet_yaml_node *n,
    enum pnet_split s, const struct pnet_index_array *a, const char *pattern, const char *labels)
{
    struct pnet_error e;
    struct pnet_paths paths = {.count = 0}, pairs = {.count = 0};
    bool apart = labels && !pnet_is_archive(pattern);
    enum pnet_status status = pnet_glob(r->folder, pattern, &paths, &e);
    if (!status && apart) status = pnet_glob_pair(r->folder, pattern, labels, &paths, &pairs, &e);
    if (status) pnet_index_fail(r, n, status, &e);
    for (int64_t i = 0; !status && i < paths.count && pnet_yaml_ok(r->y); i++)
        read_one_array(r, n, s, a, paths.items[i], apart ? pairs.items[i] : labels);
    pnet_paths_free(&paths);
    pnet_paths_free(&pairs);
}

static void read_array(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s,
    const char *name, const char *labels)
{
    static const char *const kinds[] = {"points", "voxels"};
    struct pnet_index_array a = {.points = pnet_yaml_string(r->y, pnet_yaml_get(n, "points"), NULL),
        .kind = (enum pnet_array_kind)pnet_yaml_choice(
            r->y, pnet_yaml_get(n, "kind"), kinds, COUNT(kinds), PNET_ARRAY_POINTS),
        .cell_m = pnet_yaml_length(r->y, pnet_yaml_get(n, "cell"), 1e-6, 1e6, 1)};
    if (pnet_yaml_get(n, "cell") && a.kind != PNET_ARRAY_VOXELS)
        pnet_yaml_fail(r->y, n, "cell: is for kind: voxels");
    if (r->d->unit.of_file && a.kind == PNET_ARRAY_POINTS)
        pnet_yaml_fail(r->y, n, "unit: file: an array does not state its unit: name it, m, ft ...");
    if (!pnet_yaml_ok(r->y)) return;
    if (pnet_is_pattern_in(r->folder, name)) {
        read_many_arrays(r, n, s, &a, name, labels);
        return;
    }
    char *path = pnet_path_join(r->folder, name);
    bool apart = path && labels && !pnet_is_archive(path);
    char *second = apart ? pnet_path_join(r->folder, labels) : NULL;
    if (!path || (apart && !second))
        pnet_yaml_fail_memory(r->y);
    else
        read_one_array(r, n, s, &a, path, apart ? second : labels);
    free(path);
    free(second);
}

static void read_entry(struct pnet_index *r, const struct pnet_yaml_node *n, enum pnet_split s)
{
    static const char *const keys[] = {
        "cloud", "labels", "label", "array", "points", "kind", "cell", "keep_every", "drop_every"};
    if (n->kind == PNET_YAML_SCALAR) {
        read_clouds(r, n, s, n->text, NULL, PNET_LABEL_NONE);
        return;
    }
    if (!pnet_yaml_map(r->y, n, "entry", keys, COUNT(keys))) return;
    const char *cloud = pnet_yaml_string(r->y, pnet_yaml_get(n, "cloud"), NULL);
    const char *array = pnet_yaml_string(r->y, pnet_yaml_get(n, "array"), NULL);
    const char *labels = pnet_yaml_string(r->y, pnet_yaml_get(n, "labels"), NULL);
    const struct pnet_yaml_node *label = pnet_yaml_get(n, "label");
    if (!cloud == !array) {
        pnet_yaml_fail(r->y, n, "an entry needs one of `cloud` and `array`");
    } else if (label && (array || r->d->task != PNET_CLASSIFICATION)) {
        pnet_yaml_fail(r->y, label, "label: is for single clouds of a classification task");
    } else if (labels && cloud && r->d->task == PNET_CLASSIFICATION) {
        pnet_yaml_fail(r->y, n, "labels: a file of labels is for segmentation; use `label: CLASS`");
    } else if (cloud && (pnet_yaml_get(n, "points") || pnet_yaml_get(n, "kind") ||
                            pnet_yaml_get(n, "cell"))) {
        pnet_yaml_fail(r->y, n, "points, kind and cell are for `array` entries");
    } else if (array) {
        read_array(r, n, s, array, labels);
    } else {
        int32_t class_of = label ? pnet_index_label(r, label) : PNET_LABEL_NONE;
        read_clouds(r, n, s, cloud, labels, class_of);
    }
}

static void read_columns(struct pnet_index *r, const struct pnet_yaml_node *columns)
{
    static const char *const axes[] = {"x", "y", "z"};
    struct pnet_dataset *d = r->d;
    read_words(r, columns, 4096, &d->columns, &d->column_count);
    for (int i = 0; i < 3 && pnet_yaml_ok(r->y); i++) {
        const char *name = i < d->column_count ? d->columns[i] : NULL;
        if (!name || strcmp(name, axes[i]) != 0)
            pnet_yaml_fail(r->y, columns, "columns: the first three are x, y and z");
    }
}

static void read_unit(struct pnet_index *r, const struct pnet_yaml_node *n)
{
    const char *text = pnet_yaml_string(r->y, n, NULL);
    if (text && !pnet_unit_parse(text, &r->d->unit))
        pnet_yaml_fail(r->y, n,
            "unit: `%.60s`: expected file, m, km, cm, mm, in, ft, us-ft or yd; or two of them for "
            "x "
            "and y, and for z: m,ft",
            text);
}

/* Refuses keys about classes that the task has no use for. */
static bool refuse_class_keys(struct pnet_index *r, const struct pnet_yaml_node *root)
{
    static const char *const keys[] = {"label_field", "classes", "map", "map_other", "ignore"};
    bool completion = r->d->task == PNET_COMPLETION, classes = pnet_yaml_get(root, "classes");
    int count = !pnet_task_pairs(r->d->task) ? 0 : completion && classes ? 1 : COUNT(keys);
    for (int i = 0; i < count; i++)
        if (pnet_yaml_get(root, keys[i]))
            pnet_yaml_fail(r->y, pnet_yaml_get(root, keys[i]),
                !completion ? "%s: pairs of clouds have no classes; `task: registration` goes "
                              "without it"
                : i         ? "%s: is about classes, and the data set has no `classes`"
                            : "%s: points have no labels in `task: completion`; an entry has "
                              "`label: CLASS`",
                keys[i]);
    return pnet_yaml_ok(r->y);
}

/* Reads classes, and how labels are converted to classes. */
static void read_classes(struct pnet_index *r, const struct pnet_yaml_node *root)
{
    const struct pnet_yaml_node *classes = pnet_yaml_get(root, "classes");
    if (!refuse_class_keys(r, root) || (!classes && pnet_task_pairs(r->d->task))) return;
    if (!classes) {
        pnet_yaml_fail(
            r->y, root, "a data set needs `pnet_dataset: %d`, `task` and `classes`", VERSION);
        return;
    }
    read_words(r, classes, PNET_MAX_CLASSES, &r->d->classes, &r->d->class_count);
    if (!pnet_yaml_ok(r->y)) return;
    index_classes(r, classes);
    r->d->label_field =
        pnet_index_copy(r, pnet_yaml_string(r->y, pnet_yaml_get(root, "label_field"), "label"));
    read_map(r, root);
}

static void read_root(struct pnet_index *r, const struct pnet_yaml_node *root)
{
    static const char *const keys[] = {"pnet_dataset", "task", "classes", "label_field", "train",
        "val", "test", "map", "map_other", "ignore", "columns", "origin", "coordinates", "unit"};
    static const char *const tasks[] = {
        "segmentation", "classification", "registration", "completion"};
    struct pnet_yaml *y = r->y;
    if (!pnet_yaml_map(y, root, "data set", keys, COUNT(keys))) return;
    const struct pnet_yaml_node *version = pnet_yaml_get(root, "pnet_dataset");
    const struct pnet_yaml_node *task = pnet_yaml_get(root, "task");
    const struct pnet_yaml_node *columns = pnet_yaml_get(root, "columns");
    const struct pnet_yaml_node *origin = pnet_yaml_get(root, "origin");
    const struct pnet_yaml_node *coordinates = pnet_yaml_get(root, "coordinates");
    const struct pnet_yaml_node *unit = pnet_yaml_get(root, "unit");
    if (!version || !task) {
        pnet_yaml_fail(
            y, root, "a data set needs `pnet_dataset: %d`, `task` and `classes`", VERSION);
        return;
    }
    if (pnet_yaml_int(y, version, 0, INT32_MAX, VERSION) != VERSION)
        pnet_yaml_fail(y, version, "pnet_dataset: version %.20s is unknown, expected %d",
            version->text, VERSION);
    r->d->task = (enum pnet_task)pnet_yaml_choice(y, task, tasks, COUNT(tasks), PNET_SEGMENTATION);
    if (pnet_yaml_ok(y)) read_classes(r, root);
    if (columns && pnet_yaml_ok(y)) read_columns(r, columns);
    if (origin) pnet_origin_parse(y, origin, &r->d->origin);
    if (coordinates && pnet_yaml_string(y, coordinates, NULL))
        r->d->coordinates = pnet_index_copy(r, coordinates->text);
    if (unit && pnet_yaml_ok(y)) read_unit(r, unit);
    for (int s = 0; s < PNET_SPLITS && pnet_yaml_ok(y); s++) {
        const struct pnet_yaml_node *list =
            pnet_yaml_get(root, pnet_split_name((enum pnet_split)s));
        if (!list || list->kind == PNET_YAML_NULL || !pnet_yaml_list(y, list, 0, INT32_MAX))
            continue;
        for (const struct pnet_yaml_node *n = list->first; n && pnet_yaml_ok(y); n = n->next)
            if (r->d->task == PNET_REGISTRATION)
                pnet_index_pairs(r, n, (enum pnet_split)s);
            else if (r->d->task == PNET_COMPLETION)
                pnet_index_completion(r, n, (enum pnet_split)s);
            else
                read_entry(r, n, (enum pnet_split)s);
    }
}

/* Returns the path of an index: for a folder its dataset.yaml. */
static char *index_path(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return pnet_path_join(path, "dataset.yaml");
    return strdup(path);
}

/* Reads the document and frees it. */
static enum pnet_status finish(
    struct pnet_yaml *y, const char *path, struct pnet_dataset **d, struct pnet_error *e)
{
    struct pnet_index r = {.y = y, .d = calloc(1, sizeof *r.d), .folder = pnet_path_folder(path)};
    enum pnet_status status = PNET_OK;
    if (r.d) {
        r.d->path = strdup(path);
        r.d->others = PNET_LABEL_NONE;
    }
    if (r.d && r.d->path && r.folder) {
        read_root(&r, pnet_yaml_root(y));
        status = pnet_yaml_end(y, e);
    } else {
        status = pnet_error_memory(e);
    }
    pnet_yaml_free(y);
    for (int i = 0; r.array_keys && i < r.d->array_count; i++) free(r.array_keys[i]);
    free(r.array_keys);
    pnet_name_table_free(&r.arrays);
    pnet_name_table_free(&r.classes);
    free(r.folder);
    if (status)
        pnet_dataset_free(r.d);
    else
        *d = r.d;
    return status;
}

enum pnet_status pnet_dataset_parse(
    const char *path, const void *text, size_t size, struct pnet_dataset **d, struct pnet_error *e)
{
    struct pnet_yaml *y;
    *d = NULL;
    enum pnet_status status = pnet_yaml_parse(path, text, size, PNET_BAD_DATA, &y, e);
    return status ? status : finish(y, path, d, e);
}

/* Records all files of the set as inputs, those of splits that are not read too. Files that were read with the index are. */
static enum pnet_status guard_files(const struct pnet_dataset *d, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int s = 0; s < PNET_SPLITS; s++)
        for (int64_t i = 0; i < d->counts[s] && !status; i++) {
            const struct pnet_entry *entry = &d->entries[s][i];
            bool again = i && strcmp(entry->cloud, d->entries[s][i - 1].cloud) == 0;
            if (!again) status = pnet_guard_input(entry->cloud, e);
            if (!status && entry->labels) status = pnet_guard_input(entry->labels, e);
            if (!status && entry->pair && entry->pair->target)
                status = pnet_guard_input(entry->pair->target, e);
        }
    return status;
}

enum pnet_status pnet_dataset_read(const char *path, struct pnet_dataset **d, struct pnet_error *e)
{
    struct pnet_yaml *y;
    *d = NULL;
    char *index = index_path(path);
    if (!index) return pnet_error_memory(e);
    enum pnet_status status = pnet_yaml_read(index, PNET_BAD_DATA, &y, e);
    if (!status) status = finish(y, index, d, e);
    free(index);
    if (!status) status = guard_files(*d, e);
    if (status && *d) {
        pnet_dataset_free(*d);
        *d = NULL;
    }
    return status;
}
