#include "compiler/cli/ranges.h"
#include "compiler/cli/origin.h"

#include "runtime/base/cache.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/printable.h"

#include <stdlib.h>
#include <string.h>

enum { WARNINGS_SHOWN = 5 };

void pnet_cli_say(void *context, const char *text)
{
    (void)context;
    pnet_cli_notice("%s", text);
}

/* Finds the inputs that the clouds of an entry feed. */
static enum pnet_status find_roles(const struct run *run, int roles[2], struct pnet_error *e)
{
    const struct pnet_input_map *map = &run->config->inputs;
    const struct pnet_plan *p = run->plan;
    struct pnet_input_roles r;
    roles[1] = -1;
    if (!pnet_task_pairs(run->data->task))
        return pnet_input_map_check(map, p->inputs, p->input_count, &roles[0], e);
    enum pnet_status st = pnet_input_map_check_pair(
        map, p->inputs, p->input_count, pnet_task_sides(run->data->task), &r, e);
    roles[0] = r.source;
    roles[1] = r.target;
    return st;
}

/* Older versions divided integers by the largest number of their type, and kept no record of that. */
static void say_unrecorded(const struct pnet_ranges *record, const struct pnet_ranges *source)
{
    if (pnet_ranges_have_colours(record)) return;
    for (int i = 0; i < source->count; i++)
        if (source->items[i].kind == PNET_RANGE_INTEGERS && source->items[i].most > 0) {
            pnet_cli_notice(
                "%s: the checkpoint does not record what the colours of its training were "
                "divided by; older versions of pnet divided integers by the largest number of "
                "their "
                "type",
                source->items[i].field);
            return;
        }
}

static bool same_columns(const struct pnet_input_source *a, const struct pnet_input_source *b)
{
    bool same = strcmp(a->input, b->input) == 0 && strcmp(a->field, b->field) == 0 && a->count &&
                a->count == b->count;
    for (int i = 0; i < a->count && same; i++) same = strcmp(a->names[i], b->names[i]) == 0;
    return same;
}

/* Columns that a run config lists without a scale keep the scale with which the training read them: older versions took colours
   that were listed as they were. */
static void keep_scales(struct pnet_input_map *m, const struct pnet_input_map *trained)
{
    for (int i = 0; i < m->count; i++)
        for (int k = 0; k < trained->count; k++) {
            const struct pnet_input_source *was = &trained->sources[k];
            struct pnet_input_source *now = &m->sources[i];
            if (now->scaled || !was->scaled || !same_columns(was, now)) continue;
            now->scale = was->scale;
            now->scaled = true;
        }
}

enum pnet_status pnet_cli_data_ranges(const struct run *run, unsigned splits, unsigned fed,
    const struct pnet_input_map *map, bool told, struct pnet_error *e)
{
    struct pnet_input_map *m = &run->config->inputs;
    char folder[PNET_PATH_MOST];
    struct pnet_range_scan s = {.map = m,
        .inputs = run->plan->inputs,
        .cache = pnet_cache_folder(folder) ? folder : NULL,
        .stop = pnet_cli_interrupted,
        .note = run->o.model.quiet || told ? NULL : pnet_cli_say};
    struct pnet_ranges source = {.count = 0};
    pnet_ranges_free(&m->ranges);
    if (map) keep_scales(m, map);
    enum pnet_status st = find_roles(run, s.roles, e);
    if (!st) st = pnet_ranges_of_dataset(&s, run->data, splits, fed, &source, e);
    if (!st && map) {
        if (!told) say_unrecorded(&map->ranges, &source);
        st = pnet_ranges_copy(&map->ranges, &m->ranges, e);
    }
    if (!st) st = pnet_ranges_settle(&m->ranges, &source, told ? NULL : pnet_cli_say, NULL, e);
    pnet_ranges_free(&source);
    return st;
}

/* A training that resumes goes on with the numbers that it has read so far. */
static enum pnet_status compare(const struct pnet_ranges *was, const struct pnet_ranges *now,
    const char *data, struct pnet_error *e)
{
    for (int i = 0; i < was->count; i++) {
        const struct pnet_range *a = &was->items[i];
        const struct pnet_range *b = pnet_ranges_find(now, a->field, a->kind);
        if (b && b->divisor != a->divisor)
            return pnet_error_set(e, PNET_USAGE,
                "%s: the colours of %s reach %g and would be divided by %g, but those of the run "
                "by %g: the data set has changed, so the run cannot be resumed with it",
                data, a->field, b->most, b->divisor, a->divisor);
    }
    return PNET_OK;
}

enum pnet_status pnet_cli_training_ranges(const struct run *run, const char *text,
    const struct pnet_input_map *weights, struct pnet_error *e)
{
    const struct pnet_dataset *d = run->data;
    struct pnet_input_map was = {.count = 0};
    unsigned train = 1u << PNET_TRAIN, splits = train | (d->counts[PNET_VAL] ? 1u << PNET_VAL : 0);
    enum pnet_status st = PNET_OK;
    if (text && *text)
        st = pnet_input_map_read("the input map of the checkpoint", text, strlen(text), &was, e);
    if (!st && text && *text) st = pnet_cli_check_reading(&was, &run->config->inputs, d->path, e);
    if (!st) st = pnet_cli_data_ranges(run, splits, train, text ? &was : weights, false, e);
    if (!st) st = compare(&was.ranges, &run->config->inputs.ranges, d->path, e);
    pnet_input_map_free(&was);
    return st;
}

enum pnet_status pnet_cli_settle_ranges(
    struct weights *w, struct pnet_ranges *source, struct pnet_error *e)
{
    if (w->from.checkpoint) say_unrecorded(&w->map.ranges, source);
    return pnet_ranges_settle(&w->map.ranges, source, pnet_cli_say, NULL, e);
}

enum pnet_status pnet_cli_add_colours(const struct pnet_input_map *map,
    const struct pnet_input *input, const struct pnet_cloud *c, const char *path,
    struct pnet_ranges *r, struct pnet_error *e)
{
    struct pnet_ranges cloud = {.count = 0};
    enum pnet_status st = PNET_OK;
    for (int i = 0; i < input->field_count && !st; i++)
        if (pnet_input_map_divides(map, input, &input->fields[i]))
            st = pnet_input_map_range(map, input, &input->fields[i], c, path, &cloud, e);
    for (int i = 0; i < cloud.count && !st; i++) st = pnet_ranges_add(r, &cloud.items[i], e);
    pnet_ranges_free(&cloud);
    return st;
}

void pnet_cli_few_warn(void *few, const char *text)
{
    struct few_warnings *w = few;
    if (w->count++ < WARNINGS_SHOWN) pnet_cli_say(NULL, text);
}

void pnet_cli_few_end(const struct few_warnings *few)
{
    if (few->count > WARNINGS_SHOWN)
        pnet_cli_notice("%lld more warnings", (long long)few->count - WARNINGS_SHOWN);
}

void pnet_cli_warn_unusual(const struct pnet_input_map *map, const struct pnet_ranges *r,
    const char *path, struct few_warnings *few)
{
    char text[PNET_OUTSIDE_TEXT];
    pnet_input_map_alone(map, r, path, text);
    if (*text) pnet_cli_few_warn(few, text);
    pnet_input_map_outside(map, r, path, text);
    if (*text) pnet_cli_few_warn(few, text);
}

/* ---- colours by name ---- */

static const struct pnet_input_map no_map = {.count = 0};
static struct pnet_input_field colours[COLOUR_FIELDS] = {
    {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3},
    {.name = "color", .kind = PNET_INPUT_FEATURE, .width = 3},
    {.name = "colour", .kind = PNET_INPUT_FEATURE, .width = 3}};
static const struct pnet_input by_name = {
    .name = "cloud", .fields = colours, .field_count = COLOUR_FIELDS};

/* Settles the ranges of the first field that found colours; empties `source`. */
static enum pnet_status settle_first(
    struct pnet_ranges *source, struct pnet_ranges *r, struct pnet_error *e)
{
    int left = 0;
    for (int i = 0; i < source->count; i++) {
        if (strcmp(source->items[i].field, source->items[0].field) == 0)
            source->items[left++] = source->items[i];
        else
            free(source->items[i].field);
    }
    source->count = left;
    return pnet_ranges_settle(r, source, pnet_cli_say, NULL, e);
}

void pnet_cli_colours_begin(struct cloud_colours *k)
{
    for (int f = 0; f < COLOUR_FIELDS; f++)
        for (int i = 0; i < COLOUR_CHANNELS; i++) {
            k->of[f][i] = pnet_range_begin(colours[f].name);
            k->faults[f][i].status = PNET_OK;
        }
}

void pnet_cli_colours_add(
    struct cloud_colours *k, const struct pnet_cloud *c, int64_t first, const char *path)
{
    for (int f = 0; f < COLOUR_FIELDS; f++)
        for (int i = 0; i < COLOUR_CHANNELS; i++)
            if (!k->faults[f][i].status)
                (void)pnet_input_map_channel_range(&no_map, &by_name, &colours[f], i, c, first,
                    path, &k->of[f][i], &k->faults[f][i]);
}

enum pnet_status pnet_cli_colours_end(
    const struct cloud_colours *k, struct pnet_ranges *r, struct pnet_error *e)
{
    struct pnet_ranges source = {.count = 0};
    enum pnet_status st = PNET_OK;
    for (int f = 0; f < COLOUR_FIELDS && !st; f++)
        for (int i = 0; i < COLOUR_CHANNELS && !st; i++) {
            const struct pnet_range *range = &k->of[f][i];
            st = k->faults[f][i].status;
            if (st) *e = k->faults[f][i];
            if (!st && range->least <= range->most) st = pnet_ranges_add(&source, range, e);
        }
    if (!st) st = settle_first(&source, r, e);
    pnet_ranges_free(&source);
    return st;
}

enum pnet_status pnet_cli_colours_of_dataset(
    const struct pnet_dataset *d, struct pnet_ranges *r, struct pnet_error *e)
{
    char folder[PNET_PATH_MOST];
    struct pnet_range_scan s = {.map = &no_map,
        .inputs = &by_name,
        .roles = {0, pnet_task_pairs(d->task) ? 0 : -1},
        .whole = true,
        .cache = pnet_cache_folder(folder) ? folder : NULL,
        .stop = pnet_cli_interrupted};
    struct pnet_ranges source = {.count = 0};
    unsigned splits = 0;
    for (int k = 0; k < PNET_SPLITS; k++) splits |= d->counts[k] ? 1u << k : 0;
    enum pnet_status st = pnet_ranges_of_dataset(&s, d, splits, 0, &source, e);
    if (!st) st = settle_first(&source, r, e);
    pnet_ranges_free(&source);
    return st;
}

void pnet_cli_print_ranges(const struct pnet_ranges *r, bool named)
{
    char text[200], name[200];
    for (int i = 0; i < r->count; i++)
        printf("  %s: %s\n",
            named ? pnet_printable(r->items[i].field, name, sizeof name) : "colours",
            pnet_range_text(&r->items[i], text));
}

void pnet_cli_put_ranges(struct pnet_json *j, const char *key, const struct pnet_ranges *r)
{
    pnet_json_begin(j, key, '[');
    for (int i = 0; i < r->count; i++) {
        const struct pnet_range *t = &r->items[i];
        pnet_json_begin(j, NULL, '{');
        pnet_json_string(j, "field", t->field);
        pnet_json_string(j, "type", pnet_range_kind_names[t->kind]);
        pnet_json_double(j, "from", t->least);
        pnet_json_double(j, "to", t->most);
        if (t->kind != PNET_RANGE_FED) pnet_json_double(j, "divisor", t->divisor);
        pnet_json_end(j, '}');
    }
    pnet_json_end(j, ']');
}
