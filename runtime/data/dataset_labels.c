#include "runtime/data/dataset_labels.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAP_TEXT = 440 };

/* Can it be the key of a map? */
static bool is_whole(double raw)
{
    return raw == floor(raw) && fabs(raw) < 0x1p53;
}

int32_t pnet_dataset_class(const struct pnet_dataset *d, double raw)
{
    if (isnan(raw)) return d->others;
    return is_whole(raw) ? pnet_dataset_label(d, (int64_t)raw) : PNET_LABEL_NONE;
}

/* A class as the right side of `map` names it: its index where YAML would have to quote the name. */
static int put_class(const struct pnet_dataset *d, int c, char *text, size_t size)
{
    const char *name = d->classes[c];
    bool plain = isalpha((unsigned char)*name);
    for (const char *p = name; *p && plain; p++)
        plain = isalnum((unsigned char)*p) || *p == '_' || *p == '-';
    return plain && strlen(name) < 80 ? snprintf(text, size, "%s", name)
                                      : snprintf(text, size, "%d", c);
}

/* Writes the map of labels that count from 1. Of more classes than fit the first ones and the last one stand there. */
static void write_shift(const struct pnet_dataset *d, bool zero, char text[MAP_TEXT])
{
    enum { LAST = 110 }; /* room for the end */
    size_t n = (size_t)snprintf(text, MAP_TEXT, "map: {%s", zero ? "0: ignore, " : "");
    for (int c = 0; c < d->class_count; c++) {
        bool last = c == d->class_count - 1;
        if (!last && n > MAP_TEXT - 2 * LAST) {
            n += (size_t)snprintf(text + n, MAP_TEXT - n, "..., ");
            c = d->class_count - 1;
            last = true;
        }
        n += (size_t)snprintf(text + n, MAP_TEXT - n, "%d: ", c + 1);
        n += (size_t)put_class(d, c, text + n, MAP_TEXT - n);
        n += (size_t)snprintf(text + n, MAP_TEXT - n, "%s", last ? "}" : ", ");
    }
}

/* Is there a label 0 that is not listed? */
static bool has_zero(const struct pnet_dataset *d, const struct pnet_raw_labels *l)
{
    bool listed = false, found = false;
    for (int i = 0; i < d->map_count; i++) listed |= d->raw[i] == 0;
    for (int64_t i = 0; i < l->count && !listed && !found; i++)
        found = pnet_field_get(l->field, l->begin + i) == 0;
    return found;
}

/* The label is the number of classes: the labels count from 1, or there is one class more. */
static enum pnet_status refuse_last(const struct pnet_dataset *d, const struct pnet_raw_labels *l,
    int64_t row, struct pnet_error *e)
{
    char map[MAP_TEXT];
    bool zero = has_zero(d, l);
    write_shift(d, zero, map);
    if (!zero)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.200s: row %" PRId64
            ": label %d is beyond the classes, which count from 0, and none of "
            "the labels is 0: if they count from 1, write\n  %s\ninto %.200s",
            l->path, row, d->class_count, map, d->path);
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.200s: row %" PRId64
        ": label %d is beyond the %d classes, which count from 0: if 0 marks "
        "points without a class, write\n  %s\ninto %.200s; if %d does, `ignore: [%d]`",
        l->path, row, d->class_count, d->class_count, map, d->path, d->class_count, d->class_count);
}

/* Sets the error about a label without a class. */
static enum pnet_status refuse(const struct pnet_dataset *d, const struct pnet_raw_labels *l,
    double raw, int64_t row, struct pnet_error *e)
{
    if (isnan(raw))
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: row %" PRId64 ": the label is NaN: set `map_other: ignore` in %s if such points "
            "have no label",
            l->path, row, d->path);
    if (!is_whole(raw) && l->of_field)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: row %" PRId64
            ": label %.17g is no integer below 2^53: `label_field` of %s says which field "
            "holds the classes, and `%.80s` holds other numbers",
            l->path, row, raw, d->path, d->label_field);
    if (!is_whole(raw))
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: row %" PRId64 ": label %.17g is no integer below 2^53, as a label has to be",
            l->path, row, raw);
    if (d->mapped)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: row %" PRId64
            ": label %.17g is not in the map; list it in the `map` of %s, or set "
            "`map_other: ignore`",
            l->path, row, raw, d->path);
    if (raw == d->class_count) return refuse_last(d, l, row, e);
    return pnet_error_set(e, PNET_BAD_DATA,
        "%s: row %" PRId64 ": label %.17g is beyond the classes; give it a class in the `map` of "
        "%s, list it in `ignore`, or set `map_other: ignore`",
        l->path, row, raw, d->path);
}

enum pnet_status pnet_labels_convert(const struct pnet_dataset *d, const struct pnet_raw_labels *l,
    int64_t at, int64_t row, int32_t *label, struct pnet_error *e)
{
    double raw = pnet_field_get(l->field, l->begin + at);
    *label = pnet_dataset_class(d, raw);
    return *label == PNET_LABEL_NONE ? refuse(d, l, raw, row, e) : PNET_OK;
}
