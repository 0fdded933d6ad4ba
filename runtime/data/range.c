#include "runtime/data/range.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

enum { RANGES_MOST = 4096 };
static const double NUMBER_MOST = 1e39; /* more than any float32 */

const char *const pnet_range_kind_names[PNET_RANGE_KINDS] = {"uint8", "integer", "real", "fed"};

struct pnet_range pnet_range_begin(const char *field)
{
    return (struct pnet_range){.field = (char *)(uintptr_t)field,
        .kind = PNET_RANGE_FED,
        .least = INFINITY,
        .most = -INFINITY};
}

void pnet_ranges_free(struct pnet_ranges *r)
{
    for (int i = 0; i < r->count; i++) free(r->items[i].field);
    free(r->items);
    *r = (struct pnet_ranges){.count = 0};
}

static struct pnet_range *find(
    const struct pnet_ranges *r, const char *field, enum pnet_range_kind kind)
{
    for (int i = 0; i < r->count; i++)
        if (r->items[i].kind == kind && strcmp(r->items[i].field, field) == 0) return &r->items[i];
    return NULL;
}

const struct pnet_range *pnet_ranges_find(
    const struct pnet_ranges *r, const char *field, enum pnet_range_kind kind)
{
    return find(r, field, kind);
}

bool pnet_ranges_have_colours(const struct pnet_ranges *r)
{
    for (int i = 0; i < r->count; i++)
        if (r->items[i].kind != PNET_RANGE_FED) return true;
    return false;
}

enum pnet_range_kind pnet_range_kind_of(const struct pnet_field *f)
{
    if (f->untyped || f->type == PNET_F32 || f->type == PNET_F64) return PNET_RANGE_REALS;
    return f->type == PNET_U8 ? PNET_RANGE_BYTES : PNET_RANGE_INTEGERS;
}

double pnet_range_divisor(enum pnet_range_kind kind, double most)
{
    if (kind == PNET_RANGE_FED) return 0;
    if (kind == PNET_RANGE_BYTES) return 255;
    if (kind == PNET_RANGE_REALS && most <= PNET_RANGE_ONE) return 1;
    return most <= 255 ? 255 : 65535;
}

/* Adds an empty range. Returns NULL if memory is out. */
static struct pnet_range *append(
    struct pnet_ranges *r, const char *field, enum pnet_range_kind kind)
{
    struct pnet_range *items = realloc(r->items, ((size_t)r->count + 1) * sizeof *items);
    if (items) r->items = items;
    char *name = items ? strdup(field) : NULL;
    if (!name) return NULL;
    items[r->count] =
        (struct pnet_range){.field = name, .kind = kind, .least = INFINITY, .most = -INFINITY};
    return &items[r->count++];
}

/* Replaces `to` by `from`, but for its name. */
static void put(struct pnet_range *to, const struct pnet_range *from)
{
    char *field = to->field;
    *to = *from;
    to->field = field;
}

enum pnet_status pnet_ranges_copy(
    const struct pnet_ranges *r, struct pnet_ranges *copy, struct pnet_error *e)
{
    for (int i = 0; i < r->count; i++) {
        struct pnet_range *to = append(copy, r->items[i].field, r->items[i].kind);
        if (!to) {
            pnet_ranges_free(copy);
            return pnet_error_memory(e);
        }
        put(to, &r->items[i]);
    }
    return PNET_OK;
}

enum pnet_status pnet_ranges_add(
    struct pnet_ranges *r, const struct pnet_range *from, struct pnet_error *e)
{
    struct pnet_range *to = find(r, from->field, from->kind);
    if (!to) to = append(r, from->field, from->kind);
    if (!to) return pnet_error_memory(e);
    to->least = fmin(to->least, from->least);
    if (from->most > to->most) {
        to->most = from->most;
        memcpy(to->place, from->place, sizeof to->place);
    }
    to->divisor = pnet_range_divisor(to->kind, to->most);
    return PNET_OK;
}

enum pnet_status pnet_ranges_add_cloud(
    struct pnet_ranges *r, const struct pnet_ranges *cloud, const char *path, struct pnet_error *e)
{
    for (int i = 0; i < cloud->count; i++) {
        const struct pnet_range *from = &cloud->items[i];
        enum pnet_status status = pnet_ranges_add(r, from, e);
        if (status) return status;
        /* Black is black whatever it is divided by. */
        if (from->divisor == 0 || from->divisor > 255 || from->most == 0) continue;
        struct pnet_range *to = find(r, from->field, from->kind);
        struct pnet_range_alone *alone = &to->alone[from->divisor == 255];
        if (!alone->count++) snprintf(alone->first, sizeof alone->first, "%s", path);
    }
    return PNET_OK;
}

static const char *what_of(enum pnet_range_kind kind)
{
    return kind == PNET_RANGE_INTEGERS ? "integers" : "real numbers";
}

const char *pnet_range_text(const struct pnet_range *r, char text[200])
{
    if (r->kind == PNET_RANGE_FED)
        pnet_number_format(text, 200, "from %g to %g", r->least, r->most);
    else if (r->kind == PNET_RANGE_BYTES)
        snprintf(text, 200, "uint8, divided by 255");
    else if (r->divisor == 1)
        pnet_number_format(text, 200, "%s up to %g, as they are", what_of(r->kind), r->most);
    else
        pnet_number_format(
            text, 200, "%s up to %g, divided by %g", what_of(r->kind), r->most, r->divisor);
    return text;
}

bool pnet_range_is_outside(const struct pnet_range *trained, double least, double most)
{
    double width = trained->most - trained->least;
    double size = fmax(fabs(trained->least), fabs(trained->most));
    /* Rounding of the record must not matter where a training saw one number alone. */
    double slack = width + 1e-6 * size;
    if (least < trained->least - slack || most > trained->most + slack) return true;
    return 50 * fmax(fabs(least), fabs(most)) < size;
}

static const char remedy[] = PNET_RANGE_REMEDY;

typedef void (*tell_function)(void *context, const char *text);

/* Decides by the record of the training. Returns whether it was the record that decided. */
static bool follow(
    const struct pnet_range *was, struct pnet_range *now, tell_function tell, void *context)
{
    char text[900];
    if (!was || was->divisor == now->divisor || now->most == 0) return false;
    if (now->kind == PNET_RANGE_REALS && now->divisor == 1) {
        pnet_number_format(text, sizeof text,
            "%.80s: the colours are real numbers up to %g and stay as they are; those of the "
            "training reached %g and were divided by %g: %s",
            now->field, now->most, was->most, was->divisor, remedy);
        tell(context, text);
        return false;
    }
    if (now->most <= was->divisor) {
        now->divisor = was->divisor;
        return true;
    }
    pnet_number_format(text, sizeof text,
        "%.80s: the colours reach %g and are divided by %g, those of the training by %g: %s",
        now->field, now->most, now->divisor, was->divisor, remedy);
    tell(context, text);
    return false;
}

static void tell_alone(const struct pnet_range *r, tell_function tell, void *context)
{
    char text[900];
    for (int i = 0; i < 2; i++) {
        const struct pnet_range_alone *a = &r->alone[i];
        double alone = i ? 255 : 1;
        if (!a->count || alone >= r->divisor) continue;
        pnet_number_format(text, sizeof text,
            "%.80s: the colours of %s alone would %s; as others of the source reach %g, all are "
            "divided by %g",
            r->field, a->first, i ? "be divided by 255" : "stay as they are", r->most, r->divisor);
        if (a->count > 1) {
            size_t n = strlen(text);
            snprintf(
                text + n, sizeof text - n, " (the same of %lld more)", (long long)a->count - 1);
        }
        tell(context, text);
    }
}

static void tell_nothing(void *context, const char *text)
{
    (void)context, (void)text;
}

static enum pnet_status say_doubtful(const struct pnet_range *r, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s is %g, the largest of its source, and real numbers are expected to reach 1, 255 or "
        "65535\n"
        "  help: give the scale in the run config, inputs: {cloud: {%.80s: {field: [red, green, "
        "blue], scale: 1/255}}}; scale: 1 takes the numbers as they are",
        *r->place ? r->place : r->field, r->most, r->field);
}

enum pnet_status pnet_ranges_settle(struct pnet_ranges *record, struct pnet_ranges *source,
    void (*tell)(void *context, const char *text), void *context, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    if (!tell) tell = tell_nothing;
    for (int i = 0; i < source->count && !status; i++) {
        struct pnet_range *now = &source->items[i];
        struct pnet_range *was = find(record, now->field, now->kind);
        bool followed = follow(was, now, tell, context);
        bool doubtful = now->kind == PNET_RANGE_REALS && now->divisor == 255 && now->most < 2;
        if (doubtful && !(was && was->divisor >= 255)) {
            status = say_doubtful(now, e);
            break;
        }
        if (!followed) tell_alone(now, tell, context);
        if (!was) was = append(record, now->field, now->kind);
        if (!was) {
            status = pnet_error_memory(e);
            break;
        }
        put(was, now);
    }
    pnet_ranges_free(source);
    return status;
}

static void print_alone(const struct pnet_range *r, FILE *out)
{
    for (int i = 0; i < 2; i++) {
        if (!r->alone[i].count) continue;
        fprintf(out, ", %s: {count: %lld, first: ", i ? "alone_255" : "alone_1",
            (long long)r->alone[i].count);
        pnet_yaml_put_word(r->alone[i].first, out);
        putc('}', out);
    }
}

void pnet_ranges_print(const struct pnet_ranges *r, bool alone, FILE *out)
{
    for (int i = 0; i < r->count; i++) {
        const struct pnet_range *t = &r->items[i];
        fputs("\n  - {field: ", out);
        pnet_yaml_put_word(t->field, out);
        fprintf(out, ", type: %s", pnet_range_kind_names[t->kind]);
        pnet_number_write(out, ", from: %.17g, to: %.17g", t->least, t->most);
        if (t->kind != PNET_RANGE_FED) pnet_number_write(out, ", divisor: %.17g", t->divisor);
        if (alone) print_alone(t, out);
        putc('}', out);
    }
    putc('\n', out);
}

static void parse_alone(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_range_alone *a)
{
    static const char *const keys[] = {"count", "first"};
    if (!n || !pnet_yaml_map(y, n, n->key, keys, COUNT(keys))) return;
    a->count = pnet_yaml_int(y, pnet_yaml_get(n, "count"), 1, INT64_MAX, 1);
    snprintf(a->first, sizeof a->first, "%s", pnet_yaml_string(y, pnet_yaml_get(n, "first"), ""));
}

static void parse_one(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_ranges *r)
{
    static const char *const keys[] = {
        "field", "type", "from", "to", "divisor", "alone_1", "alone_255"};
    if (!pnet_yaml_map(y, n, "a range", keys, COUNT(keys))) return;
    const char *field = pnet_yaml_string(y, pnet_yaml_get(n, "field"), "");
    int kind = pnet_yaml_choice(
        y, pnet_yaml_get(n, "type"), pnet_range_kind_names, PNET_RANGE_KINDS, PNET_RANGE_FED);
    if (find(r, field, (enum pnet_range_kind)kind)) {
        pnet_yaml_fail(y, n, "a range: `%.80s` is there twice", field);
        return;
    }
    struct pnet_range *t = append(r, field, (enum pnet_range_kind)kind);
    if (!t) {
        pnet_yaml_fail_memory(y);
        return;
    }
    t->least = pnet_yaml_real(y, pnet_yaml_get(n, "from"), -NUMBER_MOST, NUMBER_MOST, 0);
    t->most = pnet_yaml_real(y, pnet_yaml_get(n, "to"), t->least, NUMBER_MOST, t->least);
    if (t->kind != PNET_RANGE_FED)
        t->divisor = pnet_yaml_real(y, pnet_yaml_get(n, "divisor"), 1, 65535, 255);
    parse_alone(y, pnet_yaml_get(n, "alone_1"), &t->alone[0]);
    parse_alone(y, pnet_yaml_get(n, "alone_255"), &t->alone[1]);
}

void pnet_ranges_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_ranges *r)
{
    if (n->kind == PNET_YAML_NULL || !pnet_yaml_list(y, n, 0, RANGES_MOST)) return;
    for (const struct pnet_yaml_node *c = n->first; c && pnet_yaml_ok(y); c = c->next)
        parse_one(y, c, r);
}
