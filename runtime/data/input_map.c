/* Reads, writes and checks the text of an input map. */
#include "runtime/data/doubt.h"
#include "runtime/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHANNELS = 4096, MOST_NAMES = 65536, MOST_LABELS = 1 << 24 };

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void free_words(char **words, int count)
{
    for (int i = 0; i < count; i++) free(words[i]);
    free(words);
}

void pnet_input_map_free(struct pnet_input_map *m)
{
    for (int i = 0; i < m->count; i++) {
        free(m->sources[i].input);
        free(m->sources[i].field);
        free_words(m->sources[i].names, m->sources[i].count);
    }
    free(m->sources);
    free_words(m->columns, m->column_count);
    free_words(m->classes, m->class_count);
    free(m->labels);
    free(m->coordinates);
    pnet_ranges_free(&m->ranges);
    *m = (struct pnet_input_map){.count = 0};
}

static char *copy(struct pnet_yaml *y, const char *text)
{
    char *c = strdup(text);
    if (!c) pnet_yaml_fail_memory(y);
    return c;
}

static void read_words(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, int most, char ***words, int *count)
{
    if (!pnet_yaml_list(y, n, 1, most)) return;
    *words = calloc((size_t)n->count, sizeof **words);
    if (!*words) {
        pnet_yaml_fail_memory(y);
        return;
    }
    for (const struct pnet_yaml_node *c = n->first; c && pnet_yaml_ok(y); c = c->next) {
        const char *text = pnet_yaml_string(y, c, NULL);
        char *word = text ? copy(y, text) : NULL;
        if (word) (*words)[(*count)++] = word;
    }
}

/* Reads a name, or a list of names. */
static void read_names(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_input_source *s)
{
    if (n->kind != PNET_YAML_SCALAR) {
        read_words(y, n, MOST_CHANNELS, &s->names, &s->count);
        return;
    }
    s->names = calloc(1, sizeof *s->names);
    if (!s->names) {
        pnet_yaml_fail_memory(y);
        return;
    }
    s->names[0] = copy(y, n->text);
    s->count = s->names[0] != NULL;
}

static void read_source(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_input_source *s)
{
    static const char *const keys[] = {"field", "scale", "shift", "value", "missing"};
    s->scale = 1;
    if (n->kind != PNET_YAML_MAP) {
        read_names(y, n, s);
        return;
    }
    if (!pnet_yaml_map(y, n, n->key, keys, COUNT(keys))) return;
    const struct pnet_yaml_node *field = pnet_yaml_get(n, "field"),
                                *value = pnet_yaml_get(n, "value");
    const struct pnet_yaml_node *scale = pnet_yaml_get(n, "scale"),
                                *shift = pnet_yaml_get(n, "shift");
    const struct pnet_yaml_node *missing = pnet_yaml_get(n, "missing");
    if (!field == !value)
        pnet_yaml_fail(y, n, "%.80s: needs one of `field` and `value`", n->key);
    else if (value && (scale || shift || missing))
        pnet_yaml_fail(y, n, "%.80s: scale, shift and missing are for fields", n->key);
    else if (field)
        read_names(y, field, s);
    s->scale = pnet_yaml_real(y, scale, -1e30, 1e30, 1);
    s->scaled = scale != NULL;
    s->shift = pnet_yaml_real(y, value ? value : shift, -1e30, 1e30, 0);
    s->replaced = missing != NULL;
    s->missing = pnet_yaml_real(y, missing, -1e30, 1e30, 0);
}

void pnet_input_map_parse(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_input_map *m)
{
    int64_t total = 0;
    if (n->kind == PNET_YAML_NULL) return;
    if (n->kind != PNET_YAML_MAP) {
        pnet_yaml_fail(y, n, "inputs: expected `input: {field: source}`");
        return;
    }
    for (const struct pnet_yaml_node *i = n->first; i; i = i->next) {
        if (i->kind != PNET_YAML_MAP && i->kind != PNET_YAML_NULL)
            pnet_yaml_fail(y, i, "inputs: %.80s: expected `field: source` pairs", i->key);
        total += i->count;
    }
    if (!pnet_yaml_ok(y) || !total) return;
    m->sources = total <= MOST_NAMES ? calloc((size_t)total, sizeof *m->sources) : NULL;
    if (!m->sources) {
        pnet_yaml_fail_memory(y);
        return;
    }
    for (const struct pnet_yaml_node *i = n->first; i; i = i->next)
        for (const struct pnet_yaml_node *f = i->first; f && pnet_yaml_ok(y); f = f->next) {
            struct pnet_input_source *s = &m->sources[m->count++];
            s->input = copy(y, i->key);
            s->field = copy(y, f->key);
            read_source(y, f, s);
        }
}

static char **copy_words(char *const *words, int count)
{
    char **all = calloc((size_t)count + 1, sizeof *all);
    for (int i = 0; all && i < count; i++) {
        all[i] = strdup(words[i]);
        if (!all[i]) {
            free_words(all, i);
            return NULL;
        }
    }
    return all;
}

enum pnet_status pnet_input_map_adopt(struct pnet_input_map *m,
    const struct pnet_cloud_hints *hints, char *const *classes, int class_count,
    struct pnet_error *e)
{
    char **c = copy_words(hints->columns, hints->column_count);
    char **k = copy_words(classes, class_count);
    char *array = hints->coordinates ? strdup(hints->coordinates) : NULL;
    if (!c || !k || (hints->coordinates && !array)) {
        if (c) free_words(c, hints->column_count);
        if (k) free_words(k, class_count);
        free(array);
        return pnet_error_memory(e);
    }
    free_words(m->columns, m->column_count);
    free_words(m->classes, m->class_count);
    free(m->coordinates);
    m->columns = c;
    m->column_count = hints->column_count;
    m->classes = k;
    m->class_count = class_count;
    m->coordinates = array;
    m->unit = hints->unit;
    m->origin = (struct pnet_origin){.named = hints->origin != NULL};
    for (int a = 0; hints->origin && a < 3; a++) m->origin.at[a] = hints->origin[a];
    return PNET_OK;
}

static int by_class(const void *a, const void *b)
{
    const struct pnet_class_label *x = a, *y = b;
    if (x->class_ != y->class_) return x->class_ < y->class_ ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

enum pnet_status pnet_input_map_adopt_labels(struct pnet_input_map *m, const int64_t *raw,
    const int32_t *raw_class, int count, struct pnet_error *e)
{
    struct pnet_class_label *all = malloc((size_t)count * sizeof *all + 1);
    int kept = 0;
    if (!all) return pnet_error_memory(e);
    for (int i = 0; i < count; i++)
        if (raw_class[i] >= 0)
            all[kept++] = (struct pnet_class_label){.class_ = raw_class[i], .label = raw[i]};
    qsort(all, (size_t)kept, sizeof *all, by_class);
    free(m->labels);
    m->labels = all;
    m->label_count = kept;
    return PNET_OK;
}

/* Prints a word in double quotes, which every YAML reader takes for that word. Characters beyond ASCII are escaped: some of
   them end lines, or may not occur in YAML. */
static void print_word(const char *word, FILE *out)
{
    putc('"', out);
    for (const unsigned char *c = (const unsigned char *)word; *c;) {
        unsigned length = *c < 0x80 ? 1 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;
        unsigned code = *c & (length == 1 ? 0x7f : 0x7fu >> length);
        for (unsigned i = 1; i < length && c[i]; i++) code = code << 6 | (c[i] & 0x3f);
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < ' ' || *c >= 127)
            fprintf(out, "\\U%08x", code);
        else
            putc(*c, out);
        while (length-- && *c) c++;
    }
    putc('"', out);
}

static void print_words(char *const *words, int count, FILE *out)
{
    putc('[', out);
    for (int i = 0; i < count; i++) {
        if (i) fputs(", ", out);
        print_word(words[i], out);
    }
    putc(']', out);
}

/* Prints a word as a key, with its colon. YAML requires keys of more than 1024 characters to be marked; a byte is printed as
   ten characters at most. */
static void print_key(const char *indent, const char *word, FILE *out)
{
    bool announced = strlen(word) > 100;
    fputs(indent, out);
    if (announced) fputs("? ", out);
    print_word(word, out);
    if (announced) fprintf(out, "\n%s", indent);
    putc(':', out);
}

static void print_source(const struct pnet_input_source *s, FILE *out)
{
    print_key("    ", s->field, out);
    if (s->count) {
        fputs(" {field: ", out);
        print_words(s->names, s->count, out);
        if (s->scaled) pnet_number_write(out, ", scale: %.17g", s->scale);
        if (s->replaced) pnet_number_write(out, ", missing: %.17g", s->missing);
        pnet_number_write(out, ", shift: %.17g}\n", s->shift);
    } else {
        pnet_number_write(out, " {value: %.17g}\n", s->shift);
    }
}

/* Prints a list for each class up to the last one that has labels. */
static void print_labels(const struct pnet_input_map *m, FILE *out)
{
    fputs("labels: [", out);
    for (int i = 0, c = 0; i < m->label_count; c++) {
        fputs(c ? ", [" : "[", out);
        for (int first = i; i < m->label_count && m->labels[i].class_ == c; i++)
            fprintf(out, "%s%" PRId64, i > first ? ", " : "", m->labels[i].label);
        putc(']', out);
    }
    fputs("]\n", out);
}

void pnet_input_map_print(const struct pnet_input_map *m, FILE *out)
{
    fputs(m->count ? "inputs:\n" : "inputs: {}\n", out);
    for (int i = 0; i < m->count; i++) {
        const struct pnet_input_source *s = &m->sources[i];
        if (!i || strcmp(s->input, m->sources[i - 1].input) != 0) {
            print_key("  ", s->input, out);
            putc('\n', out);
        }
        print_source(s, out);
    }
    if (m->column_count) {
        fputs("columns: ", out);
        print_words(m->columns, m->column_count, out);
        putc('\n', out);
    }
    if (m->class_count) {
        fputs("classes: ", out);
        print_words(m->classes, m->class_count, out);
        putc('\n', out);
    }
    if (m->label_count) print_labels(m, out);
    char text[PNET_ORIGIN_TEXT];
    if (m->origin.named) fprintf(out, "origin: [%s]\n", pnet_origin_text(&m->origin, text));
    pnet_frame_print(&m->frame, out);
    if (m->ranges.count) {
        fputs("ranges:", out);
        pnet_ranges_print(&m->ranges, false, out);
    }
    char unit[32];
    pnet_unit_print(&m->unit, unit);
    if (*unit) fprintf(out, "unit: \"%s\"\n", unit);
    if (!m->coordinates) return;
    fputs("coordinates: ", out);
    print_word(m->coordinates, out);
    putc('\n', out);
}

/* Reads what is known of files. */
static void read_hints(
    struct pnet_yaml *y, const struct pnet_yaml_node *root, struct pnet_input_map *m)
{
    const struct pnet_yaml_node *columns = pnet_yaml_get(root, "columns");
    const struct pnet_yaml_node *origin = pnet_yaml_get(root, "origin");
    const struct pnet_yaml_node *unit = pnet_yaml_get(root, "unit");
    const struct pnet_yaml_node *array = pnet_yaml_get(root, "coordinates");
    const char *word = unit ? pnet_yaml_string(y, unit, NULL) : NULL;
    const char *name = array ? pnet_yaml_string(y, array, NULL) : NULL;
    if (columns) read_words(y, columns, MOST_NAMES, &m->columns, &m->column_count);
    if (origin) pnet_origin_parse(y, origin, &m->origin);
    if (word && !pnet_unit_parse(word, &m->unit))
        pnet_yaml_fail(y, unit, "unit: `%.60s` is not known", word);
    if (name) m->coordinates = copy(y, name);
}

/* Reads a list of labels for each class. */
static void read_labels(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_input_map *m)
{
    int64_t total = 0;
    int32_t class_ = 0;
    if (!pnet_yaml_list(y, n, 0, MOST_NAMES)) return;
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next) {
        if (!pnet_yaml_list(y, c, 0, MOST_LABELS)) return;
        total += c->count;
    }
    if (total > MOST_LABELS) {
        pnet_yaml_fail(y, n, "labels: more than %d", MOST_LABELS);
        return;
    }
    m->labels = malloc((size_t)total * sizeof *m->labels + 1);
    if (!m->labels) {
        pnet_yaml_fail_memory(y);
        return;
    }
    for (const struct pnet_yaml_node *c = n->first; c; c = c->next, class_++)
        for (const struct pnet_yaml_node *l = c->first; l; l = l->next)
            m->labels[m->label_count++] = (struct pnet_class_label){
                .class_ = class_, .label = pnet_yaml_int(y, l, INT64_MIN, INT64_MAX, 0)};
    qsort(m->labels, (size_t)m->label_count, sizeof *m->labels, by_class);
}

enum pnet_status pnet_input_map_read(
    const char *name, const void *text, size_t size, struct pnet_input_map *m, struct pnet_error *e)
{
    static const char *const keys[] = {"inputs", "columns", "classes", "labels", "origin", "frame",
        "ranges", "unit", "coordinates"};
    struct pnet_yaml *y;
    *m = (struct pnet_input_map){.count = 0};
    enum pnet_status status = pnet_yaml_parse(name, text, size, PNET_BAD_DATA, &y, e);
    if (status) return status;
    const struct pnet_yaml_node *root = pnet_yaml_root(y);
    if (pnet_yaml_map(y, root, "input map", keys, COUNT(keys))) {
        const struct pnet_yaml_node *inputs = pnet_yaml_get(root, "inputs");
        const struct pnet_yaml_node *classes = pnet_yaml_get(root, "classes");
        const struct pnet_yaml_node *labels = pnet_yaml_get(root, "labels");
        const struct pnet_yaml_node *frame = pnet_yaml_get(root, "frame");
        const struct pnet_yaml_node *ranges = pnet_yaml_get(root, "ranges");
        if (inputs) pnet_input_map_parse(y, inputs, m);
        if (classes) read_words(y, classes, MOST_NAMES, &m->classes, &m->class_count);
        if (labels) read_labels(y, labels, m);
        if (frame) pnet_frame_parse(y, frame, &m->frame);
        if (ranges) pnet_ranges_parse(y, ranges, &m->ranges);
        read_hints(y, root, m);
    }
    status = pnet_yaml_end(y, e);
    pnet_yaml_free(y);
    if (status) pnet_input_map_free(m);
    return status;
}

static enum pnet_status check_source(
    const struct pnet_input_source *s, const struct pnet_input *in, struct pnet_error *e)
{
    const struct pnet_input_field *f = NULL;
    const char *names[256];
    int count = 0;
    for (int i = 0; i < in->field_count && i < COUNT(names); i++) {
        if (in->fields[i].kind != PNET_INPUT_POSITION) names[count++] = in->fields[i].name;
        if (strcmp(in->fields[i].name, s->field) == 0) f = &in->fields[i];
    }
    if (!f) {
        const char *near = pnet_nearest(s->field, names, count);
        return pnet_error_set(e, PNET_USAGE,
            "inputs: the model's input `%s` has no field `%s`%s%s%s", in->name, s->field,
            near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    }
    if (f->kind == PNET_INPUT_POSITION)
        return pnet_error_set(
            e, PNET_USAGE, "inputs: %s.%s: positions are not mapped", in->name, f->name);
    if (f->kind == PNET_INPUT_CLASS &&
        (s->count != 1 || s->scale != 1 || s->shift != 0 || s->replaced))
        return pnet_error_set(e, PNET_USAGE, "inputs: %s.%s: classes come from one field, unscaled",
            in->name, f->name);
    if (f->per_cloud && f->kind == PNET_INPUT_FEATURE && s->count)
        return pnet_error_set(e, PNET_USAGE,
            "inputs: %s.%s: a feature of the whole cloud can only be a constant, {value: 1}",
            in->name, f->name);
    if (f->kind == PNET_INPUT_FEATURE && s->count && s->count != f->width)
        return pnet_error_set(e, PNET_USAGE,
            "inputs: %s.%s has %d channels, but is mapped to %d field%s", in->name, f->name,
            f->width, s->count, s->count == 1 ? "" : "s");
    return PNET_OK;
}

enum pnet_status pnet_input_map_check_sources(const struct pnet_input_map *m,
    const struct pnet_input *inputs, int input_count, struct pnet_error *e)
{
    for (int i = 0; i < m->count; i++) {
        int k = 0;
        while (k < input_count && strcmp(inputs[k].name, m->sources[i].input) != 0) k++;
        if (k == input_count)
            return pnet_error_set(
                e, PNET_USAGE, "inputs: the model has no input `%s`", m->sources[i].input);
        if (pnet_input_is_pose(&inputs[k]))
            return pnet_error_set(
                e, PNET_USAGE, "inputs: %s is a pose, which comes with the pairs", inputs[k].name);
        enum pnet_status status = check_source(&m->sources[i], &inputs[k], e);
        if (status) return status;
    }
    return PNET_OK;
}

enum pnet_status pnet_input_map_check(const struct pnet_input_map *m,
    const struct pnet_input *inputs, int input_count, int *input, struct pnet_error *e)
{
    *input = -1;
    for (int i = 0; i < input_count; i++) {
        if (inputs[i].unused || pnet_input_is_pose(&inputs[i])) continue;
        if (*input >= 0)
            return pnet_error_set(e, PNET_USAGE,
                "the model reads two clouds, `%s` and `%s`, but the entries of a data set are one "
                "cloud each",
                inputs[*input].name, inputs[i].name);
        *input = i;
    }
    if (*input < 0) return pnet_error_set(e, PNET_USAGE, "the model reads no cloud");
    return pnet_input_map_check_sources(m, inputs, input_count, e);
}

enum pnet_status pnet_input_map_check_pair(const struct pnet_input_map *m,
    const struct pnet_input *inputs, int input_count, const char *const *sides,
    struct pnet_input_roles *roles, struct pnet_error *e)
{
    int clouds = 0;
    *roles = (struct pnet_input_roles){-1, -1, -1};
    for (int i = 0; i < input_count; i++) {
        if (pnet_input_is_pose(&inputs[i])) {
            if (!inputs[i].unused && !inputs[i].fields[0].unused) roles->pose = i;
            continue;
        }
        if (clouds < 2) *(clouds ? &roles->target : &roles->source) = i;
        clouds++;
    }
    if (clouds != 2)
        return pnet_error_set(e, PNET_USAGE,
            "the data set has pairs of clouds, a %s and a %s, but the model declares %d", sides[0],
            sides[1], clouds);
    if (strcmp(inputs[roles->source].name, sides[1]) == 0 ||
        strcmp(inputs[roles->target].name, sides[0]) == 0)
        return pnet_error_set(e, PNET_USAGE,
            "the first cloud that the model declares is the %s, the second the %s, but these are "
            "called `%s` and `%s`: swap the two",
            sides[0], sides[1], inputs[roles->source].name, inputs[roles->target].name);
    for (int i = 0; i < 2; i++) {
        const struct pnet_input *in = &inputs[i ? roles->target : roles->source];
        if (in->unused)
            return pnet_error_set(e, PNET_USAGE,
                "the data set has pairs of clouds, but the model does not read `%s`, the %s",
                in->name, sides[i]);
    }
    return pnet_input_map_check_sources(m, inputs, input_count, e);
}
