/* Fills the channels of a model's input from the fields of a cloud. */
#include "runtime/data/input_map.h"
#include "runtime/base/number.h"
#include "runtime/data/lowest.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 256, SOURCE_MOST = 512 };
static const double COLOUR_MOST = 65535;

/* The source of one channel. */
struct channel {
    const struct pnet_field *field;
    int axis;   /* axis of the coordinates, if field is NULL */
    bool above; /* of z, less the lowest */
};

static const struct pnet_input_source *find_source(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field)
{
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->sources[i].input, input->name) == 0 &&
            strcmp(m->sources[i].field, field->name) == 0)
            return &m->sources[i];
    return NULL;
}

void pnet_input_map_class(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field, const char **name)
{
    const struct pnet_input_source *s = find_source(m, input, field);
    *name = s && s->count && strcmp(s->names[0], "label") != 0 ? s->names[0] : NULL;
}

static bool is_nameless(const struct pnet_field *f, int column)
{
    char name[16];
    snprintf(name, sizeof name, "c%d", column);
    return strcmp(f->name, name) == 0;
}

enum pnet_status pnet_cloud_name_columns(char *const *columns, int column_count,
    struct pnet_cloud *c, const char *path, struct pnet_error *e)
{
    int nameless = 0;
    for (int i = 0; i < c->field_count; i++) nameless += is_nameless(&c->fields[i], i + 3);
    if (column_count <= 3 || !nameless) return PNET_OK;
    if (column_count > c->field_count + 3)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: has %d columns, but `columns` names %d: name those of this file, --columns "
            "x,y,z,...",
            path, c->field_count + 3, column_count);
    for (int i = 3; i < column_count; i++) {
        if (!is_nameless(&c->fields[i - 3], i)) continue;
        char *name = strdup(columns[i]);
        if (!name) return pnet_error_memory(e);
        free(c->fields[i - 3].name);
        c->fields[i - 3].name = name;
    }
    return PNET_OK;
}

static bool find_channel(const struct pnet_cloud *c, const char *name, struct channel *to)
{
    to->field = pnet_cloud_field(c, name);
    to->axis = -1;
    to->above = !to->field && strcmp(name, PNET_ABOVE_LOWEST) == 0;
    if (to->above) to->axis = 2;
    if (to->field || to->above) return true;
    if (!name[0] || name[1] || !strchr("xyz", name[0])) return false;
    to->axis = name[0] - 'x';
    return true;
}

bool pnet_input_is_colour(const struct pnet_input_field *f)
{
    static const char *const names[] = {"rgb", "color", "colour"};
    for (int k = 0; k < 3; k++)
        if (f->width == 3 && strcmp(f->name, names[k]) == 0) return true;
    return false;
}

enum {
    OWN = 5,
    RULES = 11
}; /* OWN: the field's name, with numbers; then what arrays of the same thing are called */

/* Makes the name of channel `i` by rule `rule`. Returns false if the field has no such rule. */
static bool rule_name(const struct pnet_input_field *f, int rule, int i, char name[NAME_MOST])
{
    static const char *const colours[] = {"rgb", "color", "colour", "colors", "colours"};
    static const char *const triples[][3] = {{"red", "green", "blue"}, {"r", "g", "b"},
        {"nx", "ny", "nz"}, {"normal_x", "normal_y", "normal_z"}};
    bool normal = strcmp(f->name, "normal") == 0;
    switch (rule) {
    case 0: snprintf(name, NAME_MOST, "%s", f->name); return f->width == 1;
    case 1:
    case 2:
    case 3:
    case 4:
        if (f->width == 3) snprintf(name, NAME_MOST, "%s", triples[rule - 1][i]);
        return f->width == 3 && (rule <= 2 ? pnet_input_is_colour(f) : normal);
    case OWN: snprintf(name, NAME_MOST, "%s_%d", f->name, i); return true;
    default:
        snprintf(name, NAME_MOST, "%s_%d", normal ? "normals" : colours[rule - OWN - 1], i);
        return f->width == 3 && (normal ? rule == OWN + 1 : pnet_input_is_colour(f));
    }
}

static enum pnet_status say_missing(const struct pnet_input *input,
    const struct pnet_input_field *f, const struct pnet_cloud *c, const char *path,
    const char *wanted, struct pnet_error *e)
{
    char list[400] = "";
    for (int i = 0; i < c->field_count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", c->fields[i].name);
    }
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: has no %s for %s.%s (%d channel%s); its fields: %s%s\n"
        "  help: say where it comes from: --map %s=%s of infer and register, or in the run config, "
        "inputs: {%s: {%s: {field: [a, b, ..]}}}, or {value: 1}",
        path, wanted, input->name, f->name, f->width, f->width == 1 ? "" : "s",
        list[0] ? list : "none", ", and x y z z_above_lowest", f->name,
        f->width == 1 ? "a" : "a,b,..", input->name, f->name);
}

/* Finds the source of channel `i`. `rule` is the rule by which the first channel was found, or -1 to try all. Returns false if
   the cloud lacks it; then `wanted` is what it lacks. */
static bool resolve(const struct pnet_input_source *s, const struct pnet_input_field *f,
    const struct pnet_cloud *c, int i, int *rule, struct channel *to, char wanted[NAME_MOST])
{
    if (s) {
        snprintf(wanted, NAME_MOST, "%s", s->names[i]);
        return find_channel(c, s->names[i], to);
    }
    for (int r = *rule < 0 ? 0 : *rule; r < (*rule < 0 ? RULES : *rule + 1); r++) {
        if (!rule_name(f, r, i, wanted) || !find_channel(c, wanted, to)) continue;
        *rule = r;
        return true;
    }
    if (*rule < 0) snprintf(wanted, NAME_MOST, "field");
    return false;
}

/* A field of the model with what feeds it from one cloud. */
struct feed {
    const struct pnet_input_map *map;
    const struct pnet_input *input;
    const struct pnet_input_field *field;
    const struct pnet_input_source *source; /* NULL: found by name */
    const struct pnet_cloud *cloud;
    const char *path;
    int64_t first; /* row of the file at which the cloud begins */
};

static struct feed feed_of(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *f, const struct pnet_cloud *c, const char *path)
{
    return (struct feed){m, input, f, find_source(m, input, f), c, path, 0};
}

bool pnet_input_map_divides(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field)
{
    const struct pnet_input_source *s = find_source(m, input, field);
    return pnet_input_is_colour(field) && !(s && (s->scaled || !s->count));
}

bool pnet_input_map_kinds(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field, const struct pnet_cloud *c, enum pnet_range_kind kinds[3])
{
    char wanted[NAME_MOST];
    int rule = -1;
    for (int i = 0; i < 3; i++) {
        struct channel from;
        if (!resolve(find_source(m, input, field), field, c, i, &rule, &from, wanted)) return false;
        kinds[i] = from.field ? pnet_range_kind_of(from.field) : PNET_RANGE_FED;
    }
    return true;
}

bool pnet_input_map_is_placed(const struct pnet_input_map *m, const struct pnet_input *input,
    const struct pnet_input_field *field, const struct pnet_cloud *c)
{
    char wanted[NAME_MOST];
    int rule = -1;
    for (int i = 0; i < field->width; i++) {
        struct channel from;
        if (!resolve(find_source(m, input, field), field, c, i, &rule, &from, wanted) || from.field)
            return false;
    }
    return true;
}

static int64_t file_row(const struct feed *f, int64_t row)
{
    return f->first + (f->cloud->file_row ? f->cloud->file_row[row] : row);
}

/* Writes what a run config says to feed the field as it is fed now, with `more`, such as "scale: 1/255". */
static void say_source(const struct feed *f, int rule, const char *more, char text[SOURCE_MOST])
{
    char names[3][NAME_MOST] = {"", "", ""};
    int width = f->field->width, shown = width < 3 ? width : 3;
    for (int i = 0; i < shown; i++) {
        if (f->source)
            snprintf(names[i], NAME_MOST, "%s", f->source->names[i]);
        else
            rule_name(f->field, rule, i, names[i]);
    }
    snprintf(text, SOURCE_MOST, "inputs: {%.60s: {%.60s: {field: %s%.60s%s%.60s%s%.60s%s%s, %s}}}",
        f->input->name, f->field->name, width > 1 ? "[" : "", names[0], width > 1 ? ", " : "",
        names[1], width > 2 ? ", " : "", names[2], width > 3 ? ", .." : "", width > 1 ? "]" : "",
        more);
}

static enum pnet_status say_beyond(const struct feed *f, int rule, const char *name, int64_t row,
    double value, double most, struct pnet_error *e)
{
    char source[SOURCE_MOST], expected[80];
    say_source(f, rule, "scale: 1/255", source);
    if (most < COLOUR_MOST)
        pnet_number_format(
            expected, sizeof expected, "those of this source are divided by %g", most);
    else
        snprintf(expected, sizeof expected, "colours reach from 0 to 1, to 255 or to 65535");
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: row %" PRId64 ": the colour %s is %g, and %s\n"
        "  help: give the scale in the run config, %s; scale: 1 takes the numbers as they are",
        f->path, file_row(f, row), name, value, expected, source);
}

static enum pnet_status say_not_finite(const struct feed *f, int rule, const char *name,
    int64_t row, double value, struct pnet_error *e)
{
    char source[SOURCE_MOST];
    int64_t at = file_row(f, row);
    if (isfinite(value)) {
        say_source(f, rule, "scale: 1/1000", source);
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: row %" PRId64 ": %s is %g, too large for float32\n"
            "  help: give a scale in the run config, %s",
            f->path, at, name, value, source);
    }
    say_source(f, rule, "missing: 0", source);
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: row %" PRId64 ": %s is not finite\n"
        "  help: give a number in its place in the run config (--config of infer and register), "
        "%s, or feed %s from other columns or a constant, --map %s=0",
        f->path, at, name, source, f->field->name, f->field->name);
}

/* Sets *range to that of a channel of colours. Returns false, and sets the error, if one is beyond all scales. */
static bool measure_colour(const struct feed *f, int rule, const struct pnet_field *from,
    struct pnet_range *range, struct pnet_error *e)
{
    range->kind = pnet_range_kind_of(from);
    if (range->kind == PNET_RANGE_BYTES) { /* the decision needs no look */
        range->least = 0;
        range->most = 255;
        return true;
    }
    int64_t highest = -1;
    for (int64_t row = 0; row < f->cloud->rows; row++) {
        double v = pnet_field_get(from, row);
        if (!isfinite(v)) continue;
        if (v < 0 || v > COLOUR_MOST) {
            say_beyond(f, rule, from->name, row, v, COLOUR_MOST, e);
            return false;
        }
        if (v < range->least) range->least = v;
        if (v <= range->most) continue;
        range->most = v;
        highest = row;
    }
    if (highest < 0) return true;
    snprintf(range->place, sizeof range->place, "%.200s: row %" PRId64 ": the colour %.60s",
        f->path, file_row(f, highest), from->name);
    return true;
}

/* Returns what a number becomes on its way to the model. */
static float feed_number(const struct pnet_input_source *s, double scale, double v)
{
    if (s && s->replaced && !isfinite(v)) return (float)s->missing;
    return (float)(v * scale + (s ? s->shift : 0));
}

static void measure_fed(
    const struct feed *f, const struct pnet_field *from, struct pnet_range *range)
{
    for (int64_t row = 0; row < f->cloud->rows; row++) {
        float v =
            feed_number(f->source, f->source ? f->source->scale : 1, pnet_field_get(from, row));
        if (!isfinite(v)) continue;
        range->least = fmin(range->least, (double)v);
        range->most = fmax(range->most, (double)v);
    }
}

/* Tells whether numbers of the cloud feed all channels of the field, and finds the source of channel `i`. */
static bool find_fed(const struct feed *f, int i, int *rule, struct channel *from)
{
    char wanted[NAME_MOST];
    const struct pnet_input_field *field = f->field;
    *rule = -1;
    if (field->kind != PNET_INPUT_FEATURE || field->unused || field->per_cloud) return false;
    if (f->source && !f->source->count) return false;
    for (int k = 0; k < field->width; k++)
        if (!resolve(f->source, field, f->cloud, k, rule, from, wanted)) return false;
    return resolve(f->source, field, f->cloud, i, rule, from, wanted) && from->field;
}

enum pnet_status pnet_input_map_channel_range(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field, int channel,
    const struct pnet_cloud *c, int64_t first, const char *path, struct pnet_range *range,
    struct pnet_error *e)
{
    struct feed f = feed_of(m, input, field, c, path);
    struct channel from;
    int rule;
    f.first = first;
    if (!find_fed(&f, channel, &rule, &from)) return PNET_OK;
    if (!pnet_input_map_divides(m, input, field))
        measure_fed(&f, from.field, range);
    else if (!measure_colour(&f, rule, from.field, range, e))
        return PNET_BAD_DATA;
    return PNET_OK;
}

enum pnet_status pnet_input_map_range(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field,
    const struct pnet_cloud *c, const char *path, struct pnet_ranges *r, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < field->width && !status; i++) {
        struct pnet_range range = pnet_range_begin(field->name);
        status = pnet_input_map_channel_range(m, input, field, i, c, 0, path, &range, e);
        if (!status && range.least <= range.most) status = pnet_ranges_add(r, &range, e);
    }
    return status;
}

enum pnet_status pnet_input_map_ranges(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_cloud *c, const char *path,
    struct pnet_ranges *r, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int i = 0; i < input->field_count && !status; i++)
        status = pnet_input_map_range(m, input, &input->fields[i], c, path, r, e);
    return status;
}

void pnet_input_map_outside(const struct pnet_input_map *m, const struct pnet_ranges *r,
    const char *path, char text[PNET_OUTSIDE_TEXT])
{
    text[0] = 0;
    for (int i = 0; i < r->count && !text[0]; i++) {
        const struct pnet_range *now = &r->items[i],
                                *was = pnet_ranges_find(&m->ranges, now->field, PNET_RANGE_FED);
        if (now->kind != PNET_RANGE_FED || !was) continue;
        if (pnet_range_is_outside(was, now->least, now->most))
            pnet_number_format(text, PNET_OUTSIDE_TEXT,
                "%.200s: %.60s reaches from %g to %g, in the training from %g to %g: is it in "
                "another unit?",
                path, now->field, now->least, now->most, was->least, was->most);
    }
}

void pnet_input_map_alone(const struct pnet_input_map *m, const struct pnet_ranges *r,
    const char *path, char text[PNET_OUTSIDE_TEXT])
{
    text[0] = 0;
    for (int i = 0; i < r->count && !text[0]; i++) {
        const struct pnet_range *t = &r->items[i],
                                *all = pnet_ranges_find(&m->ranges, t->field, t->kind);
        /* Black is black whatever it is divided by. */
        if (t->kind == PNET_RANGE_FED || !all || all->divisor <= t->divisor || t->most == 0)
            continue;
        pnet_number_format(text, PNET_OUTSIDE_TEXT,
            "%.200s: the colours reach %g and alone would be divided by %g; they are divided by "
            "%g, as "
            "others of their source or of the training: %s",
            path, t->most, t->divisor, all->divisor, PNET_RANGE_REMEDY);
    }
}

/* Finds what colours of a kind are divided by: as the source decides, or, where that is not known, the cloud. */
static enum pnet_status find_divisor(
    const struct feed *f, enum pnet_range_kind kind, double *divisor, struct pnet_error *e)
{
    const struct pnet_range *r = pnet_ranges_find(&f->map->ranges, f->field->name, kind);
    struct pnet_ranges cloud = {.count = 0}, alone = {.count = 0};
    enum pnet_status status = PNET_OK;
    *divisor = r ? r->divisor : 255;
    if (r || kind == PNET_RANGE_BYTES) return PNET_OK;
    status = pnet_input_map_range(f->map, f->input, f->field, f->cloud, f->path, &cloud, e);
    if (!status) status = pnet_ranges_settle(&alone, &cloud, NULL, NULL, e);
    r = pnet_ranges_find(&alone, f->field->name, kind);
    if (r) *divisor = r->divisor;
    pnet_ranges_free(&cloud);
    pnet_ranges_free(&alone);
    return status;
}

/* Fills one channel. `divisor`: of a colour, whose largest number it is; 0: none. */
static enum pnet_status fill(const struct feed *f, int rule, const struct channel *from,
    double divisor, float *out, struct pnet_error *e)
{
    static const char *const axes[] = {"x", "y", "z"};
    assert(from->field || (from->axis >= 0 && from->axis < 3));
    const struct pnet_cloud *c = f->cloud;
    const char *name = from->field ? from->field->name : axes[from->axis];
    double lowest = from->above ? pnet_cloud_lowest(c) : 0;
    double scale = divisor > 0 ? 1 / divisor : f->source ? f->source->scale : 1;
    double most = divisor == 1 ? PNET_RANGE_ONE : divisor;
    for (int64_t row = 0; row < c->rows; row++) {
        double v = from->field   ? pnet_field_get(from->field, row)
                   : from->above ? pnet_cloud_at(c, row, 2) - lowest
                                 : (double)c->xyz[3 * row + from->axis];
        float value = feed_number(f->source, scale, v);
        if (!isfinite(value)) return say_not_finite(f, rule, name, row, v, e);
        if (divisor > 0 && isfinite(v) && (v < 0 || v > most))
            return say_beyond(f, rule, name, row, v, divisor, e);
        out[row * f->field->width] = value;
    }
    return PNET_OK;
}

enum pnet_status pnet_input_map_feature(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field,
    const struct pnet_cloud *c, const char *path, float *out, struct pnet_error *e)
{
    struct feed f = feed_of(m, input, field, c, path);
    bool divides = pnet_input_map_divides(m, input, field);
    int rule = -1;
    if (f.source && !f.source->count) {
        int64_t n = (field->per_cloud ? 1 : c->rows) * field->width;
        for (int64_t i = 0; i < n; i++) out[i] = (float)f.source->shift;
        return PNET_OK;
    }
    if (field->per_cloud)
        return pnet_error_set(e, PNET_USAGE,
            "%s.%s: a feature of the whole cloud needs a constant in the run config, inputs: {%s: "
            "{%s: {value: 1}}}",
            input->name, field->name, input->name, field->name);
    for (int i = 0; i < field->width; i++) {
        struct channel from;
        char wanted[NAME_MOST];
        double divisor = 0;
        enum pnet_status status = PNET_OK;
        if (!resolve(f.source, field, c, i, &rule, &from, wanted))
            return say_missing(input, field, c, path, wanted, e);
        if (divides && from.field)
            status = find_divisor(&f, pnet_range_kind_of(from.field), &divisor, e);
        if (!status) status = fill(&f, rule, &from, divisor, out + i, e);
        if (status) return status;
    }
    return PNET_OK;
}
