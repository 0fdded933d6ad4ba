/* Where the fields of a cloud go in the records of a LAS file: into the dimensions of the point format, into those that they were
   read from, and else into extra dimensions. */
#include "runtime/io/las_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    EXTRAS_MOST = 65535 / LAS_EXTRA_SIZE, /* descriptions of one record */
    BYTES_MOST = 255,                     /* that one description of bytes covers */
    REST_MOST = 65535 / BYTES_MOST + 1, /* descriptions of the bytes behind all that is described */
    STANDARD_MOST = 32,                 /* parts of a point format */
    OLD_CLASSES = 31,                   /* the last class of point formats 0 to 5 */
    PLAIN = 6,                          /* the point format of clouds that were not read from LAS */
};

/* Returns the part that the field was read from, or NULL. */
static const struct pnet_las_part *part_of(
    const struct pnet_las_writer *w, const struct pnet_field *f)
{
    return w->k && f->part ? &w->k->layout.parts[f->part - 1] : NULL;
}

/* Tells whether the field belongs into a dimension of point formats, if it has the name: it was read from one, or is new. */
static bool is_standard(const struct pnet_las_writer *w, const struct pnet_field *f)
{
    const struct pnet_las_part *p = part_of(w, f);
    return !p || p->extra < 0;
}

/* Bytes are colours of 0 to 255; LAS has 0 to 65535. */
static double factor_of(const struct pnet_las_part *p, const struct pnet_field *f)
{
    static const char *const channels[] = {"red", "green", "blue", "nir"};
    for (int i = 0; i < 4; i++)
        if (p->extra < 0 && f->type == PNET_U8 && strcmp(p->name, channels[i]) == 0) return 257;
    return 1;
}

static bool is_real(enum pnet_scalar type)
{
    return type == PNET_F32 || type == PNET_F64;
}

/* Returns the name of the dimension of point formats that a field belongs into, if there is one. */
static const char *standard_name(const struct pnet_las_writer *w, const struct pnet_field *f)
{
    const struct pnet_las_part *was = part_of(w, f);
    return was ? was->name : f->name;
}

/* Copies the dimension of a field, if there is one. */
static bool find_dimension(
    const struct pnet_las_layout *l, const char *name, struct pnet_las_fit *fit)
{
    for (int i = 0; i < l->count; i++) {
        if (!l->parts[i].field || strcmp(l->parts[i].name, name) != 0) continue;
        fit->part = l->parts[i];
        return true;
    }
    return false;
}

/* The file's point format, or those of its kind that have more, decide: a dimension is the same in all of them. One that only
   others have is not asked for. */
enum pnet_status pnet_las_fit_begin(struct pnet_las_writer *w, struct pnet_error *e)
{
    unsigned format = pnet_las_raise(w->k ? w->k->layout.format : PLAIN, true, true, true);
    struct pnet_las_layout most = {.count = 0};
    w->fits = calloc((size_t)w->like->field_count + 1, sizeof *w->fits);
    bool ok = w->fits && pnet_las_begin(&most, format);
    for (int i = 0; i < w->like->field_count && ok; i++) {
        const struct pnet_field *f = &w->like->fields[i];
        struct pnet_las_fit *fit = &w->fits[i];
        fit->row = -1;
        if (!is_standard(w, f) || !find_dimension(&most, standard_name(w, f), fit)) continue;
        fit->depends = !is_real(fit->part.type) || f->type == PNET_I64 || f->type == PNET_U64;
    }
    pnet_las_layout_free(&most);
    return ok ? PNET_OK : pnet_error_memory(e);
}

/* Finds the first row whose value the dimension does not hold as it is, angles as the nearest ones. */
static void find_misfit(
    struct pnet_las_fit *fit, const struct pnet_field *f, const struct pnet_las_piece *piece)
{
    const struct pnet_las_part *p = &fit->part;
    double low, high, factor = factor_of(p, f);
    pnet_las_limits(p, &low, &high);
    for (int64_t row = 0; row < piece->c->rows; row++) {
        double v = pnet_field_get(f, row) * factor;
        if (p->scaled) v = rint((v - p->shift) / p->scale);
        bool fits = is_real(p->type) ? fabs(v) <= 0x1p53 : v >= low && v <= high && v == rint(v);
        if (fits) continue;
        fit->row = piece->first + pnet_las_row(piece, row);
        fit->value = pnet_field_get(f, row);
        return;
    }
}

void pnet_las_fit_add(struct pnet_las_writer *w, const struct pnet_las_piece *piece)
{
    for (int i = 0; i < w->like->field_count; i++)
        if (w->fits[i].depends && w->fits[i].row < 0)
            find_misfit(&w->fits[i], &piece->c->fields[i], piece);
}

/* Returns the field of a dimension of the point format, or NULL. One whose values do not fit gets none: it becomes an extra
   dimension. Classes alone are refused: readers look for them in one place. */
static enum pnet_status find_field(const struct pnet_las_writer *w, const struct pnet_las_part *p,
    const struct pnet_field **found, struct pnet_error *e)
{
    const struct pnet_cloud *c = w->like;
    *found = NULL;
    for (int i = 0; i < c->field_count && !*found; i++) {
        const struct pnet_field *f = &c->fields[i];
        if (is_standard(w, f) && strcmp(standard_name(w, f), p->name) == 0) *found = f;
    }
    if (!*found) return PNET_OK;
    const struct pnet_las_fit *fit = &w->fits[*found - c->fields];
    if (fit->row < 0) return PNET_OK;
    *found = NULL;
    if (strcmp(p->name, "classification") != 0 || p->bits == 0) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%.400s: row %" PRId64 ": classification %g: point format %u of the file that was read has "
        "classes 0 to %d: convert that file first, for example with pdal translate IN.las OUT.las "
        "--writers.las.minor_version=4 --writers.las.dataformat_id=%d",
        w->path, fit->row, fit->value, w->layout.format, OLD_CLASSES,
        pnet_las_has_colours(w->layout.format) ? 7 : 6);
}

/* Tells whether there is a new field of this name, with values that its dimension holds. */
static bool is_new(const struct pnet_las_writer *w, const char *name)
{
    const struct pnet_field *f = pnet_cloud_field(w->like, name);
    return f && !part_of(w, f) && w->fits[f - w->like->fields].row < 0;
}

/* Returns the point format by the fields that there are. */
static unsigned choose_format(const struct pnet_las_writer *w)
{
    return pnet_las_raise(w->k ? w->k->layout.format : PLAIN, is_new(w, "gps_time"),
        is_new(w, "red") || is_new(w, "green") || is_new(w, "blue"), is_new(w, "nir"));
}

/* Returns the part of the file that is the same dimension, coordinate or waveform, or NULL. */
static const struct pnet_las_part *same_part(
    const struct pnet_las_kept *k, const struct pnet_las_part *p)
{
    for (int i = 0; k && i < k->layout.count; i++) {
        const struct pnet_las_part *q = &k->layout.parts[i];
        if (q->at >= pnet_las_format_size(k->layout.format)) return NULL;
        if (q->axis == p->axis && q->field == p->field &&
            (!p->field || strcmp(q->name, p->name) == 0))
            return q;
    }
    return NULL;
}

static void give_field(struct pnet_las_writer *w, int part, const struct pnet_field *f)
{
    w->sources[part] = (struct pnet_las_source){f, factor_of(&w->layout.parts[part], f)};
    w->placed[f - w->like->fields] = true;
}

/* Places what the point format has. */
static enum pnet_status place_standard(struct pnet_las_writer *w, struct pnet_error *e)
{
    unsigned format = choose_format(w);
    enum pnet_status st = pnet_las_begin(&w->layout, format) ? PNET_OK : pnet_error_memory(e);
    w->relaid = !st && w->k && format != w->k->layout.format;
    for (int i = 0; i < w->layout.count && !st; i++) {
        struct pnet_las_part *p = &w->layout.parts[i];
        const struct pnet_las_part *was = same_part(w->k, p);
        const struct pnet_field *f = NULL;
        if (was) p->kept = was->kept;
        if (was && p->axis >= 0) {
            p->scale = was->scale;
            p->shift = was->shift;
        }
        if (p->field) st = find_field(w, p, &f, e);
        if (f) give_field(w, i, f);
    }
    return st;
}

/* Returns the place for one more description, zeroed. */
static uint8_t *next_extra(struct pnet_las_writer *w)
{
    return w->extras + (size_t)w->layout.extras++ * LAS_EXTRA_SIZE;
}

/* Returns the field that was read from a part and still has its type, or NULL. */
static const struct pnet_field *field_from(const struct pnet_las_writer *w, int part)
{
    const struct pnet_las_part *p = &w->k->layout.parts[part];
    for (int i = 0; i < w->like->field_count; i++) {
        const struct pnet_field *f = &w->like->fields[i];
        if (f->part == part + 1 && f->type == (p->scaled ? PNET_F64 : p->type)) return f;
    }
    return NULL;
}

/* Tells whether the parts from `first` to `past`, of one description, still have their fields. */
static bool is_whole(const struct pnet_las_writer *w, int first, int past)
{
    for (int i = first; i < past; i++) {
        const struct pnet_las_part *p = &w->k->layout.parts[i];
        const struct pnet_field *f = p->field ? field_from(w, i) : NULL;
        bool renamed = f && strcmp(f->name, p->name) != 0;
        if (p->field && (!f || (renamed && (p->number >= 0 || strlen(f->name) > LAS_EXTRA_NAME))))
            return false;
    }
    return true;
}

/* Places the parts of one description of the file, with the description. */
static bool place_described(
    struct pnet_las_writer *w, int first, int past, const uint8_t *description)
{
    uint8_t *d = next_extra(w);
    memcpy(d, description, LAS_EXTRA_SIZE);
    for (int i = first; i < past; i++) {
        const struct pnet_las_part *was = &w->k->layout.parts[i];
        const struct pnet_field *f = was->field ? field_from(w, i) : NULL;
        if (!f) {
            if (!pnet_las_add_bytes(&w->layout, was->size, was->extra)) return false;
            d[3] = (uint8_t)was->size;
            w->layout.parts[w->layout.count - 1].kept = was->kept;
            continue;
        }
        struct pnet_las_part *p = pnet_las_add(&w->layout, was->type);
        if (!p) return false;
        size_t at = p->at;
        *p = *was;
        p->at = at;
        give_field(w, w->layout.count - 1, f);
        if (strcmp(f->name, was->name) == 0) continue;
        w->relaid = true;
        memset(d + 4, 0, LAS_EXTRA_NAME);
        memcpy(d + 4, f->name, strlen(f->name));
    }
    return true;
}

/* Returns the descriptions of the file, [extras, LAS_EXTRA_SIZE], which the caller frees; NULL: out of memory. */
static uint8_t *list_descriptions(const struct pnet_las_kept *k)
{
    uint8_t *all = malloc((size_t)k->layout.extras * LAS_EXTRA_SIZE + 1), *to = all;
    uint64_t count = pnet_las_load(k->head, LAS_VLR_COUNT, 4);
    struct pnet_las_vlr v = {.at = 0};
    for (uint64_t i = 0; i < count && all; i++) {
        pnet_las_next_vlr(k->head, i, &v);
        if (!pnet_las_is_extra(k->head, &v)) continue;
        size_t size = v.length / LAS_EXTRA_SIZE * LAS_EXTRA_SIZE;
        memcpy(to, k->head + v.body, size);
        to += size;
    }
    return all;
}

/* Places the described bytes of the file's records. Those whose fields are gone or were replaced have no place any more. */
static bool place_extras(struct pnet_las_writer *w)
{
    const struct pnet_las_layout *l = &w->k->layout;
    uint8_t *all = list_descriptions(w->k);
    bool ok = all != NULL;
    for (int i = 0, past; i < l->count && ok; i = past) {
        int extra = l->parts[i].extra;
        for (past = i + 1; past < l->count && extra >= 0 && l->parts[past].extra == extra;) past++;
        if (extra < 0) continue;
        if (is_whole(w, i, past))
            ok = place_described(w, i, past, all + (size_t)extra * LAS_EXTRA_SIZE);
        else
            w->relaid = true;
    }
    free(all);
    return ok;
}

/* Places the bytes behind all that is described. Where descriptions of others follow, they are described too, as bytes. */
static bool place_rest(struct pnet_las_writer *w, bool others)
{
    const struct pnet_las_layout *l = &w->k->layout;
    const struct pnet_las_part *rest = &l->parts[l->count - 1];
    if (rest->field || rest->extra >= 0 || rest->at < pnet_las_format_size(l->format)) return true;
    for (size_t done = 0, size; done < rest->size; done += size) {
        size = rest->size - done;
        if (others && size > BYTES_MOST) size = BYTES_MOST;
        if (!pnet_las_add_bytes(&w->layout, size, -1)) return false;
        w->layout.parts[w->layout.count - 1].kept = rest->kept + done;
        if (!others) continue;
        uint8_t *d = next_extra(w);
        d[3] = (uint8_t)size;
        snprintf((char *)d + 4, LAS_EXTRA_NAME, "bytes_%d", w->layout.extras);
    }
    return true;
}

/* Finds a name for an extra dimension that no dimension of the point format and no other field has. */
static enum pnet_status name_extra(const struct pnet_las_writer *w, const struct pnet_field *f,
    char name[LAS_EXTRA_NAME + 32], struct pnet_error *e)
{
    bool taken = true;
    if (strlen(f->name) > LAS_EXTRA_NAME)
        return pnet_error_set(e, PNET_USAGE,
            "%.400s: \"%.100s\": names of LAS have at most %d bytes: rename the column, or write "
            "another format",
            w->path, f->name, LAS_EXTRA_NAME);
    snprintf(name, LAS_EXTRA_NAME + 32, "%s", f->name);
    for (int again = 1; taken; again++) {
        if (again > 1) snprintf(name, LAS_EXTRA_NAME + 32, "%.26s_%d", f->name, again);
        const struct pnet_field *same = pnet_cloud_field(w->like, name);
        taken = same && same != f;
        for (int i = 0; i < w->layout.count && !taken; i++)
            taken = w->layout.parts[i].extra < 0 && w->layout.parts[i].field &&
                    strcmp(w->layout.parts[i].name, name) == 0;
    }
    return PNET_OK;
}

/* Appends a field as an extra dimension of its type. */
static enum pnet_status append(
    struct pnet_las_writer *w, const struct pnet_field *f, struct pnet_error *e)
{
    static const uint8_t codes[] = {[PNET_U8] = 1,
        [PNET_I8] = 2,
        [PNET_U16] = 3,
        [PNET_I16] = 4,
        [PNET_U32] = 5,
        [PNET_I32] = 6,
        [PNET_U64] = 7,
        [PNET_I64] = 8,
        [PNET_F32] = 9,
        [PNET_F64] = 10};
    char name[LAS_EXTRA_NAME + 32];
    enum pnet_status st = name_extra(w, f, name, e);
    if (st) return st;
    int extra = w->layout.extras;
    uint8_t *d = next_extra(w);
    struct pnet_las_part *p = pnet_las_add(&w->layout, f->type);
    if (!p) return pnet_error_memory(e);
    p->field = true;
    p->extra = extra;
    strcpy(p->name, name);
    d[2] = codes[f->type];
    memcpy(d + 4, name, strlen(name));
    give_field(w, w->layout.count - 1, f);
    w->relaid = true;
    return PNET_OK;
}

enum pnet_status pnet_las_place(struct pnet_las_writer *w, struct pnet_error *e)
{
    const struct pnet_cloud *c = w->like;
    size_t fields = (size_t)c->field_count, parts = STANDARD_MOST + REST_MOST + fields;
    size_t extras = REST_MOST + fields;
    if (w->k) parts += (size_t)w->k->layout.count;
    if (w->k) extras += (size_t)w->k->layout.extras;
    w->sources = calloc(parts, sizeof *w->sources);
    w->extras = calloc(extras, LAS_EXTRA_SIZE);
    w->placed = calloc(fields + 1, sizeof *w->placed);
    if (!w->sources || !w->extras || !w->placed) return pnet_error_memory(e);
    enum pnet_status st = place_standard(w, e);
    if (!st && w->k && !place_extras(w)) st = pnet_error_memory(e);
    int left = 0;
    for (int i = 0; i < c->field_count; i++) left += !w->placed[i];
    if (!st && w->k && !place_rest(w, left > 0)) st = pnet_error_memory(e);
    for (int i = 0; i < c->field_count && !st; i++)
        if (!w->placed[i]) st = append(w, &c->fields[i], e);
    if (!st && w->relaid && (w->layout.extras > EXTRAS_MOST || w->layout.record > LAS_RECORD_MOST))
        st = pnet_error_set(e, PNET_USAGE,
            "%.400s: %d extra dimensions, points of %zu bytes: LAS has at most %d and %d", w->path,
            w->layout.extras, w->layout.record, EXTRAS_MOST, LAS_RECORD_MOST);
    return st;
}
