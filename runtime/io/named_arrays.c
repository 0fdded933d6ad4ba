/* Clouds from arrays with names: one array, or three, hold the coordinates; the others with a row for each point are fields.
   Names decide which array holds the coordinates. */
#include "runtime/io/named_arrays.h"
#include "runtime/io/npy_cloud.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_MOST = 12 };

/* What may hold the coordinates: one array, or arrays x, y and z. */
struct candidate {
    const struct pnet_named_array *parts[3]; /* parts[1] NULL: one array */
    int64_t rows;
};

struct candidates {
    struct candidate items[2 * PNET_NAMED_ARRAYS_MOST];
    int count;
};

/* Returns the name without those of the groups that the array lies in: "scan/points" is called points. */
static struct pnet_span base_of(struct pnet_span name)
{
    const char *slash = memrchr(name.at, '/', pnet_span_size(name));
    return slash ? (struct pnet_span){slash + 1, name.end} : name;
}

static bool is_same(struct pnet_span a, struct pnet_span b)
{
    return pnet_span_size(a) == pnet_span_size(b) && memcmp(a.at, b.at, pnet_span_size(a)) == 0;
}

static bool is_in_group(struct pnet_span name, struct pnet_span group)
{
    size_t n = pnet_span_size(group);
    return pnet_span_size(name) > n && memcmp(name.at, group.at, n) == 0;
}

/* Returns the names of the groups of an array, to the last /, or an empty span. */
static struct pnet_span group_of(struct pnet_span name)
{
    return (struct pnet_span){name.at, base_of(name).at};
}

static bool names_coordinates(const struct pnet_named_array *m)
{
    return pnet_names_coordinates(base_of(m->name));
}

/* Returns the header of an array that may hold points: [1, points, 3] stands for [points, 3]. */
static struct pnet_npy_header points_of(const struct pnet_named_array *m)
{
    return m->h.dims == 2 + !m->h.structured ? pnet_npy_without_lead(&m->h) : m->h;
}

static bool holds_points(const struct pnet_named_array *m)
{
    struct pnet_npy_header h = points_of(m);
    return !m->unfit && pnet_npy_holds_points(&h);
}

/* Finds how the array has `rows` rows: as it is, or without a first dimension of 1. Returns false if it has not. */
static bool has_rows(const struct pnet_named_array *m, int64_t rows, struct pnet_npy_header *h)
{
    *h = m->h;
    if (m->unfit || h->structured || !h->dims) return false;
    if (h->shape[0] != rows) *h = pnet_npy_without_lead(h);
    return h->dims <= 2 && h->shape[0] == rows;
}

static void add_candidate(struct candidates *c, const struct pnet_named_array *m, int64_t rows)
{
    c->items[c->count++] = (struct candidate){.parts = {m}, .rows = rows};
}

/* Finds the arrays x, y and z of a group, one value a point. Returns false if they are not all there, once each. */
static bool find_apart(
    const struct pnet_named_arrays *a, struct pnet_span group, struct candidate *apart)
{
    static const char *const names[] = {"x", "y", "z"};
    *apart = (struct candidate){.rows = -1};
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < 3; k++) {
            const struct pnet_named_array *m = &a->items[i];
            if (m->unfit || !pnet_span_is_nocase(base_of(m->name), names[k]) ||
                !is_same(group_of(m->name), group))
                continue;
            if (apart->rows < 0) apart->rows = m->h.count;
            struct pnet_npy_header h;
            if (apart->parts[k] || m->h.count != apart->rows || !has_rows(m, apart->rows, &h))
                return false;
            apart->parts[k] = m;
        }
    return apart->parts[0] && apart->parts[1] && apart->parts[2];
}

/* Adds the arrays x, y and z of each group that has all three. */
static void add_apart(struct candidates *c, const struct pnet_named_arrays *a)
{
    for (int i = 0; i < a->count; i++) {
        struct candidate apart;
        if (pnet_span_is_nocase(base_of(a->items[i].name), "x") &&
            find_apart(a, group_of(a->items[i].name), &apart) && apart.parts[0] == &a->items[i])
            c->items[c->count++] = apart;
    }
}

/* Names that hold something else, whatever the shape. */
static bool names_others(struct pnet_span name)
{
    static const char *const names[] = {"normal", "normals", "color", "colors", "colour", "colours",
        "rgb", "rgba", "feat", "feats", "feature", "features", "desc", "descriptor", "descriptors",
        "label", "labels", "faces", "triangles", "edges"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pnet_span_is_nocase(name, names[i])) return true;
    return false;
}

/* A matrix that can be a cloud though its name does not say so: not that of a transform, and no wider than points are. */
static bool may_be_cloud(const struct pnet_named_array *m)
{
    struct pnet_npy_header h = points_of(m);
    bool transform = h.shape[0] >= 3 && h.shape[0] <= h.shape[1] && h.shape[1] <= 4;
    return !transform && h.shape[1] <= PNET_COLUMNS_LIKELY && !names_others(base_of(m->name));
}

enum rank { NAMED, RECORDS, LIKELY, RANKS };

/* Lists what may hold the coordinates by the first of these that anything meets: a name of coordinates, or x, y and z; records
   with coordinates; the shape of a cloud. */
static void find_candidates(const struct pnet_named_arrays *a, struct candidates *c)
{
    c->count = 0;
    for (int rank = NAMED; rank < RANKS && !c->count; rank++) {
        for (int i = 0; i < a->count; i++) {
            const struct pnet_named_array *m = &a->items[i];
            if (!holds_points(m)) continue;
            bool meets = rank == NAMED     ? names_coordinates(m)
                         : rank == RECORDS ? m->h.structured
                                           : may_be_cloud(m);
            if (meets) add_candidate(c, m, points_of(m).shape[0]);
        }
        if (rank == NAMED) add_apart(c, a);
    }
}

/* A position of the scanner, [1, 3], gives way to a cloud of more points. */
static void drop_single_rows(struct candidates *c)
{
    int kept = 0;
    for (int i = 0; i < c->count; i++)
        if (c->items[i].rows != 1) c->items[kept++] = c->items[i];
    if (kept) c->count = kept;
}

static void append(char list[PNET_ARRAY_LIST], const char *text)
{
    size_t used = strlen(list);
    snprintf(list + used, PNET_ARRAY_LIST - used, "%s", text);
}

/* Appends "points [2000, 3]". `h` NULL: the array is `unfit`. */
static void append_array(char list[PNET_ARRAY_LIST], struct pnet_span name,
    const struct pnet_npy_header *h, const char *unfit)
{
    char number[32];
    if (*list) append(list, ", ");
    append(list, pnet_span_quote(name).text);
    append(list, h ? " [" : " (");
    if (!h) append(list, unfit);
    for (int d = 0; h && d < h->dims; d++) {
        snprintf(number, sizeof number, "%s%" PRId64, d ? ", " : "", h->shape[d]);
        append(list, number);
    }
    append(list, h ? "]" : ")");
}

static void append_member(char list[PNET_ARRAY_LIST], const struct pnet_named_array *m)
{
    append_array(list, m->name, m->unfit ? NULL : &m->h, m->unfit);
}

static const char how[] = "--coordinates NAME chooses one, in a data set `coordinates: NAME`";

static const char many_clouds[] = "; for many clouds a data set has the entry `array`";

static enum pnet_status several(const struct candidates *c, const char *path, struct pnet_error *e)
{
    char list[PNET_ARRAY_LIST] = "";
    for (int i = 0; i < c->count && i < LISTED_MOST; i++)
        for (int k = 0; k < 3 && c->items[i].parts[k]; k++)
            append_member(list, c->items[i].parts[k]);
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.400s: several arrays may hold the coordinates: %s%s; %s", path, list,
        c->count > LISTED_MOST ? " ..." : "", how);
}

static enum pnet_status none(
    const struct pnet_named_arrays *a, const char *path, struct pnet_error *e)
{
    char list[PNET_ARRAY_LIST] = "";
    bool choice = false, arrays = false, many = false;
    for (int i = 0; i < a->count; i++) {
        arrays |= !a->items[i].unfit;
        many |= !a->items[i].unfit && a->items[i].h.dims >= 3;
    }
    if (a->count && !arrays)
        return pnet_error_set(e, PNET_BAD_DATA, "%.500s: %s", path, a->nothing);
    for (int i = 0; i < a->count; i++) {
        choice |= holds_points(&a->items[i]);
        if (i < LISTED_MOST) append_member(list, &a->items[i]);
    }
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.400s: expected an array [points, 3 or more] called xyz, points or the like, or arrays "
        "x, y and z; found %s%s%s%s%s",
        path, *list ? list : "none", a->count > LISTED_MOST ? " ..." : "", choice ? "; " : "",
        choice ? how : "", many ? many_clouds : "");
}

/* An array that has a name of coordinates but cannot hold them is an error: another array is not what was meant. Plain arrays
   of one dimension, such as the position of the scanner, are no such array. */
static enum pnet_status check_names(
    const struct pnet_named_arrays *a, const char *path, struct pnet_error *e)
{
    for (int i = 0; i < a->count; i++) {
        const struct pnet_named_array *m = &a->items[i];
        if (!names_coordinates(m)) continue;
        char list[PNET_ARRAY_LIST] = "";
        if (m->unfit)
            return pnet_error_set(e, PNET_BAD_DATA, "%.900s; %s", m->why ? m->why : path, how);
        append_member(list, m);
        if (m->h.structured || m->h.dims >= 2)
            return pnet_error_set(e, PNET_BAD_DATA,
                "%.400s: found the array %s, expected [points, 3 or more] or records with x, y and "
                "z; %s%s",
                path, list, how, m->h.dims >= 3 ? many_clouds : "");
    }
    return PNET_OK;
}

/* Takes the array that the user has named, or that has the field; "x,y,z" are the arrays x, y and z. */
static enum pnet_status take_choice(const struct pnet_named_arrays *a, const char *choice,
    struct candidates *c, const char *path, struct pnet_error *e)
{
    char list[PNET_ARRAY_LIST] = "";
    c->count = 0;
    if (strcmp(choice, "x,y,z") == 0) add_apart(c, a);
    for (int i = 0; i < a->count && !c->count; i++) {
        const struct pnet_named_array *m = &a->items[i];
        struct pnet_npy_header h = points_of(m);
        if (!m->unfit && ((pnet_span_is(m->name, choice) && pnet_npy_holds_points(&h)) ||
                             pnet_npy_has_field(&h, choice)))
            add_candidate(c, m, h.shape[0]);
        else if (i < LISTED_MOST)
            append_member(list, m);
        if (m->why && pnet_span_is(m->name, choice))
            return pnet_error_set(e, PNET_BAD_DATA, "%.900s", m->why);
    }
    if (c->count == 1) return PNET_OK;
    if (c->count) return several(c, path, e);
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.400s: no array \"%.80s\" [points, 3 or more]; it has %s; %s", path, choice, list, how);
}

/* Finds what holds the coordinates among `c`, which it fills; *chosen is NULL on failure. */
static enum pnet_status choose(const struct pnet_named_arrays *a, const char *choice,
    struct candidates *c, const struct candidate **chosen, const char *path, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    *chosen = NULL;
    if (choice) {
        status = take_choice(a, choice, c, path, e);
    } else {
        find_candidates(a, c);
        drop_single_rows(c);
        bool named = c->count && (c->items[0].parts[1] || names_coordinates(c->items[0].parts[0]));
        if (!named) status = check_names(a, path, e);
        if (status == PNET_OK && c->count > 1) status = several(c, path, e);
        if (status == PNET_OK && !c->count) status = none(a, path, e);
    }
    if (status == PNET_OK && c->count) *chosen = &c->items[0];
    return status;
}

/* Adds the columns of the coordinates. */
static enum pnet_status add_coordinates(struct pnet_columns *t, const struct candidate *from,
    const char *choice, int axis[3], const char *path, struct pnet_error *e)
{
    if (!from->parts[1]) {
        struct pnet_npy_header h = points_of(from->parts[0]);
        char place[600];
        snprintf(
            place, sizeof place, "%.500s: %s", path, pnet_span_quote(from->parts[0]->name).text);
        return pnet_npy_add_points(t, &h, choice, axis, place, e);
    }
    enum pnet_status status = PNET_OK;
    for (int k = 0; k < 3 && status == PNET_OK; k++) {
        struct pnet_npy_header h;
        has_rows(from->parts[k], from->rows, &h);
        axis[k] = k;
        status = pnet_npy_add_matrix(t, &h, from->parts[k]->name, path, e);
    }
    return status;
}

static bool is_part(const struct candidate *of, const struct pnet_named_array *m)
{
    return m == of->parts[0] || m == of->parts[1] || m == of->parts[2];
}

/* Names the array of the coordinates for `info`. Returns false if memory is out. */
static bool set_array(struct pnet_cloud *c, const struct candidate *from)
{
    const struct pnet_span *name = &from->parts[0]->name;
    c->array = from->parts[1] ? strdup("x, y, z") : strndup(name->at, pnet_span_size(*name));
    return c->array != NULL;
}

/* Loads the parts, and the other arrays with a row for each point. */
static enum pnet_status load(
    struct pnet_named_arrays *a, const struct candidate *from, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    for (int i = 0; a->load && i < a->count && status == PNET_OK; i++) {
        struct pnet_named_array *m = &a->items[i];
        struct pnet_npy_header h;
        if (is_part(from, m) || has_rows(m, from->rows, &h)) status = a->load(a->file, m, e);
    }
    return status;
}

/* The group that the coordinates lie in is left out of the names of its other arrays. */
static struct pnet_span field_name(const struct candidate *from, const struct pnet_named_array *m)
{
    struct pnet_span group = group_of(from->parts[0]->name);
    size_t n = is_in_group(m->name, group) ? pnet_span_size(group) : 0;
    return (struct pnet_span){m->name.at + n, m->name.end};
}

static enum pnet_status join(const struct pnet_named_arrays *a, const struct candidate *from,
    const char *choice, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_columns t = {.count = 0};
    int axis[3];
    enum pnet_status status = add_coordinates(&t, from, choice, axis, a->path, e);
    for (int i = 0; i < a->count && status == PNET_OK; i++) {
        const struct pnet_named_array *m = &a->items[i];
        struct pnet_npy_header h;
        if (!is_part(from, m) && has_rows(m, from->rows, &h))
            status = pnet_npy_add_matrix(&t, &h, field_name(from, m), a->path, e);
    }
    if (status == PNET_OK) status = pnet_columns_cloud(&t, axis, from->rows, c, e);
    if (status == PNET_OK && !set_array(c, from)) {
        pnet_cloud_free(c);
        status = pnet_error_memory(e);
    }
    pnet_columns_free(&t);
    return status;
}

enum pnet_status pnet_named_arrays_cloud(
    struct pnet_named_arrays *a, const char *choice, struct pnet_cloud *c, struct pnet_error *e)
{
    struct candidates *found = calloc(1, sizeof *found);
    if (!found) return pnet_error_memory(e);
    const struct candidate *from = NULL;
    enum pnet_status status = choose(a, choice, found, &from, a->path, e);
    if (from) status = load(a, from, e);
    if (from && status == PNET_OK) status = join(a, from, choice, c, e);
    free(found);
    return status;
}

void pnet_named_arrays_free(struct pnet_named_arrays *a)
{
    for (int i = 0; i < a->count; i++) {
        struct pnet_named_array *m = &a->items[i];
        pnet_columns_free(&m->h.columns);
        pnet_bytes_free(&m->bytes);
        free(m->why);
        free(m->text);
    }
    a->count = 0;
}

void pnet_array_search_see(struct pnet_array_search *s, struct pnet_span name,
    const struct pnet_npy_header *h, const char *unfit)
{
    struct pnet_span base = base_of(name);
    bool fits = h && !h->structured && h->dims == s->dims;
    bool named = fits && pnet_names_coordinates(base), likely = fits && !names_others(base);
    append_array(s->list, name, h, unfit);
    if (fits && (named || !s->named) && (likely || !s->likely))
        snprintf(s->name, sizeof s->name, "%.*s", (int)pnet_span_size(name), name.at);
    s->count += fits;
    s->likely += likely;
    s->named += named;
}

enum pnet_status pnet_array_search_end(
    const struct pnet_array_search *s, const char *path, struct pnet_error *e)
{
    int best = s->named ? s->named : s->likely ? s->likely : s->count;
    if (best == 1) return PNET_OK;
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.400s: %s %d dimensions: `points: NAME` says which; found %s", path,
        s->count ? "several arrays have" : "no array has", s->dims, *s->list ? s->list : "none");
}
