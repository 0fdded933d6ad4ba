#include "compiler/cli/cloud_options.h"

#include "runtime/train/config.h"
#include "runtime/base/guard.h"
#include "runtime/base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes the sources of a run config instead of those of the weights; columns and classes stay. */
static enum pnet_status take_config(
    struct pnet_input_map *map, const char *path, struct pnet_error *e)
{
    struct pnet_config *c;
    enum pnet_status st = pnet_config_read(path, &c, e);
    if (st) return st;
    struct pnet_input_source *sources = map->sources;
    int count = map->count;
    map->sources = c->inputs.sources;
    map->count = c->inputs.count;
    c->inputs.sources = sources;
    c->inputs.count = count;
    pnet_config_free(c);
    return PNET_OK;
}

/* Tells whether `name` is FIELD or INPUT.FIELD. */
static bool names_field(
    const char *name, size_t length, const struct pnet_input *in, const struct pnet_input_field *f)
{
    char full[256];
    if (f->kind != PNET_INPUT_FEATURE) return false;
    if (strlen(f->name) == length && memcmp(f->name, name, length) == 0) return true;
    snprintf(full, sizeof full, "%s.%s", in->name, f->name);
    return strlen(full) == length && memcmp(full, name, length) == 0;
}

static enum pnet_status no_field(
    const char *text, const struct pnet_input *inputs, int input_count, struct pnet_error *e)
{
    char list[400] = "";
    for (int i = 0; i < input_count; i++)
        for (int f = 0; f < inputs[i].field_count; f++) {
            size_t used = strlen(list);
            if (inputs[i].fields[f].kind == PNET_INPUT_FEATURE)
                snprintf(list + used, sizeof list - used, "%s%s.%s", used ? ", " : "",
                    inputs[i].name, inputs[i].fields[f].name);
        }
    return pnet_error_set(e, PNET_USAGE, "--map %s: the model has no such field; it has %s", text,
        *list ? list : "none that a cloud feeds");
}

/* Returns the source of a field, a new one if there is none yet; NULL: out of memory. Scale and shift stay. */
static struct pnet_input_source *source_of(
    struct pnet_input_map *map, const struct pnet_input *in, const struct pnet_input_field *f)
{
    for (int i = 0; i < map->count; i++)
        if (strcmp(map->sources[i].input, in->name) == 0 &&
            strcmp(map->sources[i].field, f->name) == 0)
            return &map->sources[i];
    struct pnet_input_source *grown =
        realloc(map->sources, ((size_t)map->count + 1) * sizeof *grown);
    if (!grown) return NULL;
    map->sources = grown;
    struct pnet_input_source *s = &grown[map->count];
    *s =
        (struct pnet_input_source){.input = strdup(in->name), .field = strdup(f->name), .scale = 1};
    if (s->input && s->field) {
        map->count++;
        return s;
    }
    free(s->input);
    free(s->field);
    return NULL;
}

static void forget_names(struct pnet_input_source *s)
{
    for (int i = 0; i < s->count; i++) free(s->names[i]);
    free(s->names);
    s->names = NULL;
    s->count = 0;
}

/* Reads a scale, 0.5 or 1/255. Returns false if the text is none. */
static bool read_scale(const char *text, double *scale)
{
    char *end;
    *scale = pnet_number_read(text, &end);
    if (end == text) return false;
    if (*end == '/') {
        const char *below = end + 1;
        *scale /= pnet_number_read(below, &end);
        if (end == below) return false;
    }
    return !*end && fabs(*scale) <= 1e30;
}

/* Returns the columns of "a,b,c*1/255", and sets the scale; a star in front of anything else belongs to the name of a column.
   The caller frees them; NULL: out of memory. */
static char *take_scale(const char *value, struct pnet_input_source *s)
{
    const char *star = strrchr(value, '*');
    double scale;
    if (!star || !read_scale(star + 1, &scale)) return strdup(value);
    s->scale = scale;
    s->scaled = true;
    return strndup(value, (size_t)(star - value));
}

/* One column feeds all channels, else there is one for each. */
static enum pnet_status take_columns(const char *text, const char *columns,
    const struct pnet_input_field *f, struct pnet_input_source *s, struct pnet_error *e)
{
    int count = 1;
    for (const char *c = columns; *c; c++) count += *c == ',';
    if (count != 1 && count != f->width)
        return pnet_error_set(e, PNET_USAGE, "--map %s: %d columns for the %d channel%s of %s",
            text, count, f->width, f->width == 1 ? "" : "s", f->name);
    s->names = calloc((size_t)f->width, sizeof *s->names);
    if (!s->names) return pnet_error_memory(e);
    for (const char *at = columns; s->count < f->width; s->count++) {
        size_t n = strcspn(at, ",");
        if (!n) return pnet_error_set(e, PNET_USAGE, "--map %s: a column without a name", text);
        s->names[s->count] = strndup(at, n);
        if (!s->names[s->count]) return pnet_error_memory(e);
        if (count > 1) at += n + (at[n] == ',');
    }
    return PNET_OK;
}

/* `value`: the text after the =. */
static enum pnet_status take_value(struct pnet_input_map *map, const char *text, const char *value,
    const struct pnet_input *in, const struct pnet_input_field *f, struct pnet_error *e)
{
    struct pnet_input_source *s = source_of(map, in, f);
    char *end;
    double constant = pnet_number_read(value, &end);
    if (!s) return pnet_error_memory(e);
    if (!s->count) s->shift = 0; /* a constant until now */
    forget_names(s);
    if (*end) {
        char *columns = take_scale(value, s);
        enum pnet_status st = columns ? take_columns(text, columns, f, s, e) : pnet_error_memory(e);
        free(columns);
        return st;
    }
    if (!(fabs(constant) <= 1e30))
        return pnet_error_set(
            e, PNET_USAGE, "--map %s: a constant lies between -1e30 and 1e30", text);
    s->shift = constant;
    return PNET_OK;
}

/* A field of several inputs is set in all of them. */
static enum pnet_status take_map(struct pnet_input_map *map, const char *text,
    const struct pnet_input *inputs, int input_count, struct pnet_error *e)
{
    const char *equals = strchr(text, '=');
    bool found = false;
    enum pnet_status st = PNET_OK;
    if (!equals || !equals[1])
        return pnet_error_set(e, PNET_USAGE,
            "--map takes FIELD=COLUMN, such as rgb=r,g,b or rgb=0.5, not '%s'", text);
    for (int i = 0; i < input_count; i++)
        for (int k = 0; k < inputs[i].field_count && !st; k++) {
            const struct pnet_input_field *f = &inputs[i].fields[k];
            if (!names_field(text, (size_t)(equals - text), &inputs[i], f)) continue;
            found = true;
            st = take_value(map, text, equals + 1, &inputs[i], f, e);
        }
    return st || found ? st : no_field(text, inputs, input_count, e);
}

enum pnet_status pnet_cli_map_clouds(struct pnet_input_map *map, const struct map_options *o,
    const struct pnet_input *inputs, int input_count, struct pnet_error *e)
{
    enum pnet_status st = o->config ? take_config(map, o->config, e) : PNET_OK;
    for (int i = 0; i < o->maps.count && !st; i++)
        st = take_map(map, o->maps.items[i], inputs, input_count, e);
    return st;
}

static enum pnet_status parse_unit(
    const char *text, struct pnet_unit_choice *unit, struct pnet_error *e)
{
    return pnet_unit_parse(text, unit) ? PNET_OK
                                       : pnet_error_set(e, PNET_USAGE,
                                             "--unit %.60s: expected file, m, km, cm, mm, in, ft, "
                                             "us-ft or yd; or two of them "
                                             "for x and y, and for z: m,ft",
                                             text);
}

enum pnet_status pnet_cli_parse_hints(struct hint_options *o, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    if (o->unit) st = parse_unit(o->unit, &o->choice, e);
    if (!st && o->columns) st = pnet_cloud_parse_columns(o->columns, &o->names, &o->name_count, e);
    return st;
}

void pnet_cli_free_hints(struct hint_options *o)
{
    pnet_cloud_free_columns(o->names, o->name_count);
    o->names = NULL;
    o->name_count = 0;
}

struct pnet_cloud_hints pnet_cli_hints(
    const struct hint_options *o, const struct pnet_input_map *map)
{
    bool mapped = !o->names && map;
    return (struct pnet_cloud_hints){.columns = mapped ? map->columns : o->names,
        .column_count = mapped ? map->column_count : o->name_count,
        .coordinates = o->coordinates || !map ? o->coordinates : map->coordinates,
        .unit = o->unit || !map ? o->choice : map->unit};
}

enum pnet_status pnet_cli_read_cloud(const struct hint_options *o, const struct pnet_input_map *map,
    const struct pnet_origin *origin, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    char warning[256];
    struct pnet_cloud_hints hints = pnet_cli_hints(o, map);
    if (origin) hints.origin = pnet_origin_hint(origin);
    enum pnet_status st = pnet_cloud_read_as(path, &hints, c, warning, e);
    if (st) return st;
    if (*warning) pnet_cli_notice("%s", warning);
    st = pnet_cloud_name_columns(hints.columns, hints.column_count, c, path, e);
    if (st) pnet_cloud_free(c);
    return st;
}

static bool is_cloud(const char *path)
{
    struct stat st;
    return pnet_cloud_read_by(path) && stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Takes ownership of the path. */
static enum pnet_status add(struct pnet_paths *p, char *path, struct pnet_error *e)
{
    char **grown = path ? realloc(p->items, ((size_t)p->count + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(path);
        return pnet_error_memory(e);
    }
    p->items = grown;
    p->items[p->count++] = path;
    return PNET_OK;
}

/* Adds the entries found; of a folder, only the clouds. */
static enum pnet_status add_found(
    struct pnet_paths *p, struct pnet_paths *found, bool folder, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    for (int64_t i = 0; i < found->count && !st; i++) {
        if (folder && !is_cloud(found->items[i])) continue;
        char *path = found->items[i];
        found->items[i] = NULL;
        st = add(p, path, e);
    }
    pnet_paths_free(found);
    return st;
}

enum pnet_status pnet_cli_list_clouds(
    const struct text_list *inputs, struct pnet_paths *clouds, bool *many, struct pnet_error *e)
{
    enum pnet_status st = PNET_OK;
    *clouds = (struct pnet_paths){.count = 0};
    *many = inputs->count > 1;
    for (int i = 0; i < inputs->count && !st; i++) {
        const char *path = inputs->items[i];
        struct stat s;
        bool there = stat(path, &s) == 0, folder = there && S_ISDIR(s.st_mode);
        struct pnet_paths found;
        int64_t before = clouds->count;
        if (!folder && (there || !pnet_is_pattern(path))) {
            st = add(clouds, strdup(path), e);
            continue;
        }
        *many = true;
        st = folder ? pnet_glob(path, "*", &found, e) : pnet_glob("", path, &found, e);
        if (st && e->status == PNET_BAD_DATA && folder)
            st = PNET_OK;
        else if (!st)
            st = add_found(clouds, &found, folder, e);
        if (!st && clouds->count == before)
            st = pnet_error_set(e, PNET_FAILED,
                "%s: no file in this folder has a name that ends as clouds do (.ply, .las, .bin "
                "...)",
                path);
    }
    for (int64_t i = 0; i < clouds->count && !st; i++) st = pnet_guard_input(clouds->items[i], e);
    if (st) pnet_paths_free(clouds);
    return st;
}
