#include "runtime/data/range_scan.h"

#include "runtime/base/memory_stream.h"
#include "runtime/base/number.h"
#include "runtime/data/dataset_array.h"
#include "runtime/data/dataset_pieces.h"
#include "runtime/data/partial.h"
#include "runtime/data/range_cache.h"
#include "runtime/io/format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { NAME_MOST = 512 };
static const int64_t LARGE = (int64_t)256 << 20;

/* A cloud that is looked at once, whatever the number of entries that name it. */
struct item {
    const char *path;
    int array; /* index into the data set's arrays, or -1 */
    int64_t row;
    unsigned roles; /* bit k: it is the k-th cloud of an entry */
    bool fed;       /* features that are no colours count too */
};

struct scan {
    const struct pnet_range_scan *s;
    const struct pnet_dataset *d; /* NULL: files */
    struct pnet_cloud_hints hints;
    struct item *items;
    int64_t count;
    struct pnet_ranges *r;
    bool read; /* a file was read, and not its header alone */
};

/* Tells whether a field of the model may come from fields of clouds. */
static bool may_be_read(const struct pnet_range_scan *s, const struct pnet_input *input,
    const struct pnet_input_field *f)
{
    if (f->kind != PNET_INPUT_FEATURE || f->unused || f->per_cloud) return false;
    for (int i = 0; i < s->map->count; i++) {
        const struct pnet_input_source *from = &s->map->sources[i];
        if (strcmp(from->input, input->name) == 0 && strcmp(from->field, f->name) == 0)
            return from->count > 0;
    }
    return true;
}

static bool is_needed(const struct pnet_range_scan *s)
{
    for (int k = 0; k < 2; k++) {
        const struct pnet_input *input = s->roles[k] < 0 ? NULL : &s->inputs[s->roles[k]];
        for (int i = 0; input && i < input->field_count; i++)
            if (may_be_read(s, input, &input->fields[i])) return true;
    }
    return false;
}

/* Adds the ranges of one cloud to those of the source. */
static enum pnet_status add(const struct scan *scan, const struct pnet_ranges *cloud,
    const char *name, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    if (scan->s->whole) return pnet_ranges_add_cloud(scan->r, cloud, name, e);
    for (int i = 0; i < cloud->count && !status; i++)
        status = pnet_ranges_add(scan->r, &cloud->items[i], e);
    return status;
}

/* Adds the ranges of one cloud to `r`. */
static enum pnet_status measure(const struct pnet_range_scan *s, const struct item *item,
    const struct pnet_cloud *c, const char *name, struct pnet_ranges *r, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int k = 0; k < 2; k++) {
        if (!(item->roles >> k & 1) || s->roles[k] < 0) continue;
        const struct pnet_input *input = &s->inputs[s->roles[k]];
        for (int i = 0; i < input->field_count && !status; i++)
            if (item->fed || pnet_input_map_divides(s->map, input, &input->fields[i]))
                status = pnet_input_map_range(s->map, input, &input->fields[i], c, name, r, e);
    }
    return status;
}

/* Tells whether the colours of a kind get the largest divisor already, so that more clouds cannot change it. */
static bool is_decided(const struct scan *scan, const char *field, enum pnet_range_kind kind)
{
    const struct pnet_range *t = pnet_ranges_find(scan->r, field, kind);
    return t && t->divisor == 65535 && !scan->s->whole;
}

/* Tells whether a cloud with the fields of `c`, which has no points, cannot change a range of one input. */
static bool changes_nothing(const struct scan *scan, const struct item *item,
    const struct pnet_input *input, const struct pnet_cloud *c)
{
    const struct pnet_range_scan *s = scan->s;
    for (int i = 0; i < input->field_count; i++) {
        const struct pnet_input_field *f = &input->fields[i];
        enum pnet_range_kind colours[3];
        if (!may_be_read(s, input, f)) continue;
        if (!pnet_input_map_divides(s->map, input, f)) {
            if (item->fed && !pnet_input_map_is_placed(s->map, input, f, c)) return false;
            continue;
        }
        if (!pnet_input_map_kinds(s->map, input, f, c, colours)) return false;
        for (int k = 0; k < 3; k++)
            if (colours[k] != PNET_RANGE_FED && colours[k] != PNET_RANGE_BYTES &&
                !is_decided(scan, f->name, colours[k]))
                return false;
    }
    return true;
}

/* Tells the same of a file whose numbers are all real ones by its name: text, and bare float32. */
static bool is_real_and_decided(const struct scan *scan, const struct item *item)
{
    static const char *const endings[] = {".xyz", ".txt", ".csv", ".pts", ".bin"};
    const struct pnet_range_scan *s = scan->s;
    bool real = false;
    for (int i = 0; i < 5; i++) real |= pnet_path_ends(item->path, endings[i]);
    for (int k = 0; k < 2 && real; k++) {
        const struct pnet_input *input = s->roles[k] < 0 ? NULL : &s->inputs[s->roles[k]];
        for (int i = 0; input && item->roles >> k & 1 && i < input->field_count; i++) {
            const struct pnet_input_field *f = &input->fields[i];
            if (!may_be_read(s, input, f)) continue;
            real = real && (pnet_input_map_divides(s->map, input, f)
                                   ? is_decided(scan, f->name, PNET_RANGE_REALS)
                                   : !item->fed);
        }
    }
    return real;
}

/* Leaves a file out, with no more than its header read, if it cannot change a decision; of uint8 colours it notes that they are
   there. */
static enum pnet_status leave_out(
    const struct scan *scan, const struct item *item, bool *left, struct pnet_error *e)
{
    struct pnet_cloud c;
    enum pnet_status status = PNET_OK;
    *left = item->array < 0 && is_real_and_decided(scan, item);
    if (*left || item->array >= 0 || !pnet_cloud_peek(item->path, &c)) return PNET_OK;
    *left = true;
    for (int k = 0; k < 2 && *left; k++)
        if (item->roles >> k & 1 && scan->s->roles[k] >= 0)
            *left = changes_nothing(scan, item, &scan->s->inputs[scan->s->roles[k]], &c);
    struct pnet_ranges bytes = {.count = 0};
    struct item colours = *item;
    colours.fed = false;
    if (*left) status = measure(scan->s, &colours, &c, item->path, &bytes, e);
    if (*left && !status) status = add(scan, &bytes, item->path, e);
    pnet_ranges_free(&bytes);
    pnet_cloud_free(&c);
    return status;
}

/* Tells how much is read, before the first file that is read and not its header alone. */
static void note_size(const struct scan *scan)
{
    int64_t bytes = 0;
    char text[300], size[32];
    struct stat st;
    if (!scan->s->note) return;
    for (int64_t i = 0; i < scan->count; i++)
        if (scan->items[i].array < 0 && stat(scan->items[i].path, &st) == 0) bytes += st.st_size;
    if (bytes <= LARGE) return;
    snprintf(text, sizeof text,
        "reading %s of clouds for the ranges of their colours and features%s",
        pnet_bytes_text((size_t)bytes, size),
        scan->s->cache && scan->d ? "; the result is kept" : "");
    scan->s->note(scan->s->context, text);
}

static void begin_reading(struct scan *scan)
{
    if (!scan->read) note_size(scan);
    scan->read = true;
}

static enum pnet_status load(struct scan *scan, const struct item *item, struct pnet_cloud *c,
    char name[NAME_MOST], struct pnet_error *e)
{
    enum pnet_status status;
    assert(item->array < 0 || scan->d);
    begin_reading(scan);
    snprintf(name, NAME_MOST, item->array < 0 ? "%s" : "%s[%" PRId64 "]", item->path, item->row);
    if (item->array >= 0)
        status = pnet_array_cloud(&scan->d->arrays[item->array], item->row, &scan->hints, c, e);
    else
        status = pnet_cloud_read_as(item->path, &scan->hints, c, NULL, e);
    if (!status)
        status = pnet_cloud_name_columns(scan->hints.columns, scan->hints.column_count, c, name, e);
    if (status) pnet_cloud_free(c);
    return status;
}

/* A channel of a field of the model, and its range in the pieces of a cloud. */
struct channel {
    const struct pnet_input *input;
    const struct pnet_input_field *field;
    int number;
    struct pnet_range range;
};

struct channels {
    const struct scan *scan;
    const char *path;
    struct channel *items; /* in the order in which `measure` adds their ranges */
    int count;
};

/* Lists the channels that count for an item. */
static enum pnet_status list_channels(const struct pnet_range_scan *s, const struct item *item,
    struct channels *l, struct pnet_error *e)
{
    for (int k = 0; k < 2; k++) {
        if (!(item->roles >> k & 1) || s->roles[k] < 0) continue;
        const struct pnet_input *input = &s->inputs[s->roles[k]];
        for (int i = 0; i < input->field_count; i++) {
            const struct pnet_input_field *f = &input->fields[i];
            if (!item->fed && !pnet_input_map_divides(s->map, input, f)) continue;
            size_t all = (size_t)l->count + (size_t)f->width;
            struct channel *grown = realloc(l->items, all * sizeof *grown);
            if (!grown) return pnet_error_memory(e);
            l->items = grown;
            for (int c = 0; c < f->width; c++)
                grown[l->count++] = (struct channel){input, f, c, pnet_range_begin(f->name)};
        }
    }
    return PNET_OK;
}

static enum pnet_status measure_piece(
    void *to, const struct pnet_cloud *c, int64_t first, struct pnet_error *e)
{
    const struct channels *l = to;
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < l->count && !status; i++) {
        struct channel *n = &l->items[i];
        status = pnet_input_map_channel_range(
            l->scan->s->map, n->input, n->field, n->number, c, first, l->path, &n->range, e);
    }
    return status;
}

/* Looks at a large file in pieces; *done is false for others. */
static enum pnet_status look_at_large(
    struct scan *scan, const struct item *item, bool *done, struct pnet_error *e)
{
    struct channels l = {.scan = scan, .path = item->path};
    struct pnet_ranges r = {.count = 0};
    *done = false;
    if (item->array >= 0) return PNET_OK;
    begin_reading(scan);
    enum pnet_status status = list_channels(scan->s, item, &l, e);
    if (!status)
        status = pnet_see_large_cloud(item->path, &scan->hints, measure_piece, &l, NULL, done, e);
    for (int i = 0; i < l.count && *done && !status; i++)
        if (l.items[i].range.least <= l.items[i].range.most)
            status = pnet_ranges_add(&r, &l.items[i].range, e);
    if (*done && !status) status = add(scan, &r, item->path, e);
    pnet_ranges_free(&r);
    free(l.items);
    return status;
}

static enum pnet_status look(struct scan *scan, const struct item *item, struct pnet_error *e)
{
    struct pnet_cloud c;
    struct pnet_ranges r = {.count = 0};
    char name[NAME_MOST];
    bool left, done;
    enum pnet_status status = leave_out(scan, item, &left, e);
    if (status || left) return status;
    status = look_at_large(scan, item, &done, e);
    if (status || done) return status;
    status = load(scan, item, &c, name, e);
    if (status) return status;
    status = measure(scan->s, item, &c, name, &r, e);
    if (!status) status = add(scan, &r, name, e);
    pnet_ranges_free(&r);
    pnet_cloud_free(&c);
    return status;
}

static enum pnet_status look_at_all(struct scan *scan, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int64_t i = 0; i < scan->count && !status; i++) {
        if (scan->s->stop && scan->s->stop())
            return pnet_error_set(e, PNET_INTERRUPTED, "interrupted");
        status = look(scan, &scan->items[i], e);
    }
    return status;
}

/* ---- data sets ---- */

static bool is_mesh(const struct pnet_dataset *d, const struct pnet_entry *entry)
{
    if (!entry->pair || entry->pair->partial < 0) return false;
    const struct pnet_partial *p = &d->partials[entry->pair->partial];
    return p->kind != PNET_PARTIAL_FILE && !p->cloud;
}

static void list_entry(struct scan *scan, const struct pnet_entry *entry, bool fed)
{
    const char *target = entry->pair ? entry->pair->target : NULL;
    unsigned roles = entry->pair && !target ? 3 : 1;
    if (is_mesh(scan->d, entry)) return;
    scan->items[scan->count++] = (struct item){entry->cloud, entry->array, entry->row, roles, fed};
    if (target)
        scan->items[scan->count++] =
            (struct item){target, entry->pair->array, entry->pair->row, 2, fed};
}

static int by_path(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    if (!order) order = (x->array > y->array) - (x->array < y->array);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Lists each cloud of the splits once, in the order of the paths. */
static enum pnet_status list_clouds(
    struct scan *scan, unsigned splits, unsigned fed, struct pnet_error *e)
{
    const struct pnet_dataset *d = scan->d;
    int64_t most = 1, distinct = 0;
    for (int s = 0; s < PNET_SPLITS; s++)
        if (splits >> s & 1) most += 2 * d->counts[s];
    scan->items = calloc((size_t)most, sizeof *scan->items);
    if (!scan->items) return pnet_error_memory(e);
    for (int s = 0; s < PNET_SPLITS; s++)
        for (int64_t i = 0; splits >> s & 1 && i < d->counts[s]; i++)
            list_entry(scan, &d->entries[s][i], fed >> s & 1);
    qsort(scan->items, (size_t)scan->count, sizeof *scan->items, by_path);
    for (int64_t i = 0; i < scan->count; i++) {
        struct item *last = distinct ? &scan->items[distinct - 1] : NULL;
        if (last && by_path(last, &scan->items[i]) == 0) {
            last->roles |= scan->items[i].roles;
            last->fed |= scan->items[i].fed;
        } else {
            scan->items[distinct++] = scan->items[i];
        }
    }
    scan->count = distinct;
    return PNET_OK;
}

/* Writes what the result depends on besides the files; NULL: out of memory. */
static char *print_key(const struct pnet_range_scan *s, unsigned splits, unsigned fed)
{
    struct pnet_memory_stream t;
    struct pnet_input_map map = *s->map;
    map.ranges = (struct pnet_ranges){.count = 0};
    map.label_count = 0; /* classes feed no range */
    if (!pnet_memory_stream_open(&t)) return NULL;
    fprintf(t.file, "splits %u %u %d\n", splits, fed, (int)s->whole);
    for (int k = 0; k < 2; k++) {
        const struct pnet_input *input = s->roles[k] < 0 ? NULL : &s->inputs[s->roles[k]];
        if (input) fprintf(t.file, "input %s\n", input->name);
        for (int i = 0; input && i < input->field_count; i++)
            if (may_be_read(s, input, &input->fields[i]))
                fprintf(
                    t.file, "field %s %d\n", input->fields[i].name, (int)input->fields[i].width);
    }
    pnet_input_map_print(&map, t.file);
    return pnet_memory_stream_close(&t, NULL);
}

static enum pnet_status open_cache(const struct scan *scan, unsigned splits, unsigned fed,
    struct pnet_range_cache *cache, struct pnet_error *e)
{
    char *key = print_key(scan->s, splits, fed);
    if (!key) return pnet_error_memory(e);
    pnet_range_cache_open(cache, scan->s->cache, scan->d->path, key);
    free(key);
    for (int64_t i = 0; i < scan->count; i++)
        if (!i || strcmp(scan->items[i].path, scan->items[i - 1].path) != 0)
            pnet_range_cache_add(cache, scan->items[i].path);
    return PNET_OK;
}

enum pnet_status pnet_ranges_of_dataset(const struct pnet_range_scan *s,
    const struct pnet_dataset *d, unsigned splits, unsigned fed, struct pnet_ranges *r,
    struct pnet_error *e)
{
    struct scan scan = {.s = s, .d = d, .hints = pnet_dataset_hints(d), .r = r};
    struct pnet_range_cache cache;
    if (!is_needed(s)) return PNET_OK;
    enum pnet_status status = list_clouds(&scan, splits, fed, e);
    if (!status) status = open_cache(&scan, splits, fed, &cache, e);
    if (!status && !pnet_range_cache_read(&cache, r)) {
        status = look_at_all(&scan, e);
        if (!status && scan.read) pnet_range_cache_write(&cache, r);
    }
    free(scan.items);
    if (status) pnet_ranges_free(r);
    return status;
}

/* ---- files ---- */

enum pnet_status pnet_ranges_of_files(const struct pnet_range_scan *s, char *const *paths,
    int64_t count, const struct pnet_cloud_hints *hints, struct pnet_ranges *r,
    struct pnet_error *e)
{
    struct scan scan = {.s = s, .hints = *hints, .r = r};
    struct stat st;
    if (!is_needed(s)) return PNET_OK;
    struct item *items = calloc((size_t)count + 1, sizeof *items);
    if (!items) return pnet_error_memory(e);
    scan.items = items;
    for (int64_t i = 0; i < count; i++)
        if (stat(paths[i], &st) == 0 && S_ISREG(st.st_mode))
            items[scan.count++] = (struct item){paths[i], -1, 0, 1, false};
    enum pnet_status status = look_at_all(&scan, e);
    free(items);
    if (status) pnet_ranges_free(r);
    return status;
}
