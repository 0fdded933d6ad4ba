/* Fills the channels of a model's input from the fields of a cloud. */
#include "runtime/data/input_map.h"
#include "runtime/data/lowest.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 256, SCALED_MOST = 512 };

/* The source of one channel. */
struct channel {
    const struct pnet_field *field;
    int axis;   /* axis of the coordinates, if field is NULL */
    bool above; /* of z, less the lowest */
    double scale, shift;
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
        return pnet_error_set(e, PNET_BAD_DATA, "%s: has %d columns, but `columns` names %d", path,
            c->field_count + 3, column_count);
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

/* Makes the name of channel `i` by rule `rule`. Returns false if the field has no such rule. */
static bool rule_name(
    const struct pnet_input_field *f, int rule, int i, char name[NAME_MOST], bool *colour)
{
    static const char *const triples[][3] = {{"red", "green", "blue"}, {"r", "g", "b"},
        {"nx", "ny", "nz"}, {"normal_x", "normal_y", "normal_z"}};
    bool normal = strcmp(f->name, "normal") == 0;
    *colour = pnet_input_is_colour(f);
    switch (rule) {
    case 0: snprintf(name, NAME_MOST, "%s", f->name); return f->width == 1;
    case 1:
    case 2:
    case 3:
    case 4:
        if (f->width == 3) snprintf(name, NAME_MOST, "%s", triples[rule - 1][i]);
        return f->width == 3 && (rule <= 2 ? *colour : normal);
    default: snprintf(name, NAME_MOST, "%s_%d", f->name, i); return rule == 5;
    }
}

/* Returns the divisor of a colour: 1 for a real type, else the largest value of the type. */
static double full_scale(enum pnet_scalar type)
{
    switch (type) {
    case PNET_U8: return 255;
    case PNET_U16: return 65535;
    case PNET_U32: return 4294967295.0;
    case PNET_I8: return 127;
    case PNET_I16: return 32767;
    case PNET_I32: return 2147483647.0;
    default: return 1;
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

/* Finds the source of channel `i`. `rule` is the rule by which the first channel was found, or -1 to try all. */
static enum pnet_status resolve(const struct pnet_input_source *s, const struct pnet_input *input,
    const struct pnet_input_field *f, const struct pnet_cloud *c, const char *path, int i,
    int *rule, struct channel *to, struct pnet_error *e)
{
    char name[NAME_MOST];
    bool colour;
    if (s) {
        *to = (struct channel){.scale = s->scale, .shift = s->shift};
        bool found = find_channel(c, s->names[i], to);
        if (found && s->colour && to->field) to->scale = 1 / full_scale(to->field->type);
        if (found) return PNET_OK;
        return say_missing(input, f, c, path, s->names[i], e);
    }
    *to = (struct channel){.scale = 1};
    for (int r = *rule < 0 ? 0 : *rule; r < (*rule < 0 ? 6 : *rule + 1); r++) {
        if (!rule_name(f, r, i, name, &colour) || !find_channel(c, name, to)) continue;
        if (colour && to->field && r != 0) to->scale = 1 / full_scale(to->field->type);
        *rule = r;
        return PNET_OK;
    }
    return say_missing(input, f, c, path, *rule < 0 ? "field" : name, e);
}

/* Writes what the run config says to divide colours up to 255. */
static void say_scale(const struct pnet_input *input, const struct pnet_input_field *f,
    const struct pnet_input_source *s, int rule, char text[SCALED_MOST])
{
    char names[3][NAME_MOST];
    bool colour;
    for (int i = 0; i < 3; i++) {
        if (s)
            snprintf(names[i], NAME_MOST, "%s", s->names[i]);
        else
            rule_name(f, rule, i, names[i], &colour);
    }
    snprintf(text, SCALED_MOST,
        "inputs: {%.80s: {%.80s: {field: [%.80s, %.80s, %.80s], scale: 1/255}}}", input->name,
        f->name, names[0], names[1], names[2]);
}

/* `scaled` is what the run config says to scale a colour; NULL: the channel is no colour. */
static enum pnet_status fill(const struct channel *from, const struct pnet_cloud *c,
    const char *path, const char *scaled, float *out, int width, struct pnet_error *e)
{
    static const char *const axes[] = {"x", "y", "z"};
    assert(from->field || (from->axis >= 0 && from->axis < 3));
    const char *name = from->field ? from->field->name : axes[from->axis];
    double lowest = from->above ? pnet_cloud_lowest(c) : 0;
    for (int64_t row = 0; row < c->rows; row++) {
        double v = from->field   ? pnet_field_get(from->field, row)
                   : from->above ? pnet_cloud_at(c, row, 2) - lowest
                                 : (double)c->xyz[3 * row + from->axis];
        float value = (float)(v * from->scale + from->shift);
        int64_t file_row = c->file_row ? c->file_row[row] : row;
        if (!isfinite(value))
            return pnet_error_set(
                e, PNET_BAD_DATA, "%s: row %" PRId64 ": %s is not finite", path, file_row, name);
        if (scaled && value > 1)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%s: row %" PRId64
                ": the colour %s is %g, and real numbers are expected to reach 1 at most\n"
                "  help: give the scale in the run config, %s",
                path, file_row, name, (double)value, scaled);
        out[row * width] = value;
    }
    return PNET_OK;
}

enum pnet_status pnet_input_map_feature(const struct pnet_input_map *m,
    const struct pnet_input *input, const struct pnet_input_field *field,
    const struct pnet_cloud *c, const char *path, float *out, struct pnet_error *e)
{
    const struct pnet_input_source *s = find_source(m, input, field);
    char scaled[SCALED_MOST];
    int rule = -1;
    if (s && !s->count) {
        int64_t n = (field->per_cloud ? 1 : c->rows) * field->width;
        for (int64_t i = 0; i < n; i++) out[i] = (float)s->shift;
        return PNET_OK;
    }
    if (field->per_cloud)
        return pnet_error_set(e, PNET_USAGE,
            "%s.%s: a feature of the whole cloud needs a constant in the run config, inputs: {%s: "
            "{%s: {value: 1}}}",
            input->name, field->name, input->name, field->name);
    for (int i = 0; i < field->width; i++) {
        struct channel from;
        enum pnet_status status = resolve(s, input, field, c, path, i, &rule, &from, e);
        bool colour = s ? s->colour : rule == 1 || rule == 2;
        if (colour) say_scale(input, field, s, rule, scaled);
        if (!status)
            status = fill(&from, c, path, colour ? scaled : NULL, out + i, field->width, e);
        if (status) return status;
    }
    return PNET_OK;
}
