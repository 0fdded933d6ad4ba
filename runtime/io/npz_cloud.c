/* Clouds in NPZ archives: one array, or three, hold the coordinates; the other arrays with a row for each point are fields.
   Names decide which array holds the coordinates. */
#include "runtime/io/foreign.h"
#include "runtime/io/format.h"
#include "runtime/io/npy.h"
#include "runtime/io/npy_cloud.h"
#include "runtime/io/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS_MOST = 256, LISTED_MOST = 12, LIST_SIZE = 400 };

struct member {
    struct pnet_span name; /* without .npy */
    struct pnet_bytes bytes;
    struct pnet_npy_header h;
    bool numbers; /* the header could be read; arrays of strings, for example, are ignored */
};

struct archive {
    struct member members[MEMBERS_MOST];
    int count;
};

/* What may hold the coordinates: one array, or arrays x, y and z. */
struct candidate {
    const struct member *parts[3]; /* parts[1] NULL: one array */
    int64_t rows;
};

struct candidates {
    struct candidate items[MEMBERS_MOST + 1];
    int count;
};

bool pnet_npz_probe(const struct pnet_bytes *b)
{
    return b->size >= 4 && (memcmp(b->data, "PK\3\4", 4) == 0 || memcmp(b->data, "PK\5\6", 4) == 0);
}

static bool ends_in(struct pnet_span name, const char *ending)
{
    size_t n = strlen(ending);
    return pnet_span_size(name) >= n && memcmp(name.end - n, ending, n) == 0;
}

static struct pnet_span without_ending(struct pnet_span name)
{
    return (struct pnet_span){name.at, name.end - (ends_in(name, ".npy") ? 4 : 0)};
}

static enum pnet_status read_members(
    struct archive *a, const struct pnet_bytes *b, const char *path, struct pnet_error *e)
{
    struct pnet_zip z;
    bool found;
    uint64_t packed = 0;
    enum pnet_status status = pnet_zip_begin(&z, b, path, e);
    while (status == PNET_OK) {
        status = pnet_zip_next(&z, &found, e);
        if (status != PNET_OK || !found) break;
        if (a->count == MEMBERS_MOST)
            return pnet_byte_error(path, z.header, e, "more than %d arrays", MEMBERS_MOST);
        /* Members that share bytes would let a small file ask for any amount of memory. */
        if (__builtin_add_overflow(packed, z.packed, &packed) || packed > b->size)
            return pnet_byte_error(path, z.header, e, "the members of the archive overlap");
        if (ends_in(z.name, "/data.pkl"))
            return pnet_error_set(e, PNET_BAD_DATA, "%.500s: %s", path, pnet_foreign_torch);
        struct member *m = &a->members[a->count];
        *m = (struct member){.name = without_ending(z.name)};
        status = pnet_zip_member(&z, &m->bytes, e);
        if (status != PNET_OK) break;
        a->count++;
        enum pnet_status header = pnet_npy_header_read(&m->bytes, path, &m->h, e);
        if (header == PNET_NO_MEMORY) return header;
        m->numbers = header == PNET_OK;
    }
    return status;
}

/* Returns the header of an array that may hold points: [1, points, 3] stands for [points, 3]. */
static struct pnet_npy_header points_of(const struct member *m)
{
    return m->h.dims == 2 + !m->h.structured ? pnet_npy_without_lead(&m->h) : m->h;
}

static bool holds_points(const struct member *m)
{
    struct pnet_npy_header h = points_of(m);
    return m->numbers && pnet_npy_holds_points(&h);
}

/* Finds how the array has `rows` rows: as it is, or without a first dimension of 1. Returns false if it has not. */
static bool has_rows(const struct member *m, int64_t rows, struct pnet_npy_header *h)
{
    *h = m->h;
    if (!m->numbers || h->structured || !h->dims) return false;
    if (h->shape[0] != rows) *h = pnet_npy_without_lead(h);
    return h->dims <= 2 && h->shape[0] == rows;
}

static void add_candidate(struct candidates *c, const struct member *m, int64_t rows)
{
    c->items[c->count++] = (struct candidate){.parts = {m}, .rows = rows};
}

/* Adds the arrays x, y and z if all three are there, one value a point. */
static void add_apart(struct candidates *c, const struct archive *a)
{
    static const char *const names[] = {"x", "y", "z"};
    struct candidate apart = {.rows = -1};
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < 3; k++) {
            const struct member *m = &a->members[i];
            if (!m->numbers || !pnet_span_is_nocase(m->name, names[k])) continue;
            if (apart.rows < 0) apart.rows = m->h.count;
            struct pnet_npy_header h;
            if (apart.parts[k] || m->h.count != apart.rows || !has_rows(m, apart.rows, &h)) return;
            apart.parts[k] = m;
        }
    if (apart.parts[0] && apart.parts[1] && apart.parts[2]) c->items[c->count++] = apart;
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
static bool may_be_cloud(const struct member *m)
{
    struct pnet_npy_header h = points_of(m);
    bool transform = h.shape[0] >= 3 && h.shape[0] <= h.shape[1] && h.shape[1] <= 4;
    return !transform && h.shape[1] <= PNET_COLUMNS_LIKELY && !names_others(m->name);
}

enum rank { NAMED, RECORDS, LIKELY, RANKS };

/* Lists what may hold the coordinates by the first of these that anything meets: a name of coordinates, or x, y and z; records
   with coordinates; the shape of a cloud. */
static void find_candidates(const struct archive *a, struct candidates *c)
{
    c->count = 0;
    for (int rank = NAMED; rank < RANKS && !c->count; rank++) {
        for (int i = 0; i < a->count; i++) {
            const struct member *m = &a->members[i];
            if (!holds_points(m)) continue;
            bool meets = rank == NAMED     ? pnet_names_coordinates(m->name)
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

static void append(char list[LIST_SIZE], const char *text)
{
    size_t used = strlen(list);
    snprintf(list + used, LIST_SIZE - used, "%s", text);
}

/* Appends "points [2000, 3]". `h` NULL: the array does not hold numbers. */
static void append_array(
    char list[LIST_SIZE], struct pnet_span name, const struct pnet_npy_header *h)
{
    char number[32];
    if (*list) append(list, ", ");
    append(list, pnet_span_quote(name).text);
    append(list, h ? " [" : " (not numbers)");
    for (int d = 0; h && d < h->dims; d++) {
        snprintf(number, sizeof number, "%s%" PRId64, d ? ", " : "", h->shape[d]);
        append(list, number);
    }
    if (h) append(list, "]");
}

static void append_member(char list[LIST_SIZE], const struct member *m)
{
    append_array(list, m->name, m->numbers ? &m->h : NULL);
}

static const char how[] = "--coordinates NAME chooses one, in a data set `coordinates: NAME`";

static const char many_clouds[] = "; for many clouds a data set has the entry `array`";

static enum pnet_status several(const struct candidates *c, const char *path, struct pnet_error *e)
{
    char list[LIST_SIZE] = "";
    for (int i = 0; i < c->count && i < LISTED_MOST; i++)
        for (int k = 0; k < 3 && c->items[i].parts[k]; k++)
            append_member(list, c->items[i].parts[k]);
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.400s: several arrays may hold the coordinates: %s%s; %s", path, list,
        c->count > LISTED_MOST ? " ..." : "", how);
}

static enum pnet_status none(const struct archive *a, const char *path, struct pnet_error *e)
{
    char list[LIST_SIZE] = "";
    bool choice = false, arrays = false, many = false;
    for (int i = 0; i < a->count; i++) {
        arrays |= a->members[i].numbers;
        many |= a->members[i].numbers && a->members[i].h.dims >= 3;
    }
    if (a->count && !arrays)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.500s: a ZIP archive without arrays of numbers; unpack it first: unzip IN.zip", path);
    for (int i = 0; i < a->count; i++) {
        choice |= holds_points(&a->members[i]);
        if (i < LISTED_MOST) append_member(list, &a->members[i]);
    }
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.400s: expected an array [points, 3 or more] called xyz, points or the like, or arrays "
        "x, y and z; found %s%s%s%s%s",
        path, *list ? list : "none", a->count > LISTED_MOST ? " ..." : "", choice ? "; " : "",
        choice ? how : "", many ? many_clouds : "");
}

/* An array that has a name of coordinates but cannot hold them is an error: another array is not what was meant. Plain arrays
   of one dimension, such as the position of the scanner, are no such array. */
static enum pnet_status check_names(const struct archive *a, const char *path, struct pnet_error *e)
{
    for (int i = 0; i < a->count; i++) {
        const struct member *m = &a->members[i];
        if (!pnet_names_coordinates(m->name)) continue;
        char place[600], list[LIST_SIZE] = "";
        snprintf(place, sizeof place, "%.500s: %s", path, pnet_span_quote(m->name).text);
        if (!m->numbers) {
            struct pnet_npy_header h;
            struct pnet_error why;
            enum pnet_status status = pnet_npy_header_read(&m->bytes, place, &h, &why);
            pnet_columns_free(&h.columns);
            return pnet_error_set(e, status, "%.900s; %s", why.message, how);
        }
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
static enum pnet_status take_choice(const struct archive *a, const char *choice,
    struct candidates *c, const char *path, struct pnet_error *e)
{
    char list[LIST_SIZE] = "";
    c->count = 0;
    if (strcmp(choice, "x,y,z") == 0) add_apart(c, a);
    for (int i = 0; i < a->count && !c->count; i++) {
        const struct member *m = &a->members[i];
        struct pnet_npy_header h = points_of(m);
        if (m->numbers && ((pnet_span_is(m->name, choice) && pnet_npy_holds_points(&h)) ||
                              pnet_npy_has_field(&h, choice)))
            add_candidate(c, m, h.shape[0]);
        else if (i < LISTED_MOST)
            append_member(list, m);
    }
    if (c->count) return PNET_OK;
    return pnet_error_set(e, PNET_BAD_DATA,
        "%.400s: no array \"%.80s\" [points, 3 or more]; it has %s; %s", path, choice, list, how);
}

/* Finds what holds the coordinates among `c`, which it fills; *chosen is NULL on failure. */
static enum pnet_status choose(const struct archive *a, const char *choice, struct candidates *c,
    const struct candidate **chosen, const char *path, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    *chosen = NULL;
    if (choice) {
        status = take_choice(a, choice, c, path, e);
    } else {
        find_candidates(a, c);
        drop_single_rows(c);
        bool named = c->count &&
                     (c->items[0].parts[1] || pnet_names_coordinates(c->items[0].parts[0]->name));
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

static bool is_part(const struct candidate *of, const struct member *m)
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

static enum pnet_status join(const struct archive *a, const struct candidate *from,
    const char *choice, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_columns t = {.count = 0};
    int axis[3];
    enum pnet_status status = add_coordinates(&t, from, choice, axis, path, e);
    for (int i = 0; i < a->count && status == PNET_OK; i++) {
        const struct member *m = &a->members[i];
        struct pnet_npy_header h;
        if (!is_part(from, m) && has_rows(m, from->rows, &h))
            status = pnet_npy_add_matrix(&t, &h, m->name, path, e);
    }
    if (status == PNET_OK) status = pnet_columns_cloud(&t, axis, from->rows, c, e);
    if (status == PNET_OK && !set_array(c, from)) {
        pnet_cloud_free(c);
        status = pnet_error_memory(e);
    }
    pnet_columns_free(&t);
    return status;
}

enum pnet_status pnet_npz_cloud_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e)
{
    struct archive *a = calloc(1, sizeof *a);
    struct candidates *found = calloc(1, sizeof *found);
    enum pnet_status status = a && found ? read_members(a, b, path, e) : pnet_error_memory(e);
    const struct candidate *from = NULL;
    if (status == PNET_OK) status = choose(a, hints->coordinates, found, &from, path, e);
    if (from) status = join(a, from, hints->coordinates, path, c, e);
    for (int i = 0; a && i < a->count; i++) {
        pnet_columns_free(&a->members[i].h.columns);
        pnet_bytes_free(&a->members[i].bytes);
    }
    free(found);
    free(a);
    return status;
}

enum pnet_status pnet_npz_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_npz_cloud_read_as(b, path, &(struct pnet_cloud_hints){.columns = NULL}, c, e);
}

/* The arrays seen so far that have as many dimensions as wanted, and all of them as a list. */
struct search {
    int dims, count, named;
    char name[PNET_NPZ_NAME];
    char list[LIST_SIZE];
};

static enum pnet_status see_member(
    struct pnet_zip *z, const char *path, struct search *s, struct pnet_error *e)
{
    struct pnet_bytes m;
    struct pnet_npy_header h;
    struct pnet_span name = without_ending(z->name);
    enum pnet_status status = pnet_zip_member(z, &m, e);
    if (status != PNET_OK) return status;
    status = pnet_npy_header_read(&m, path, &h, e);
    bool numbers = status == PNET_OK, fits = numbers && !h.structured && h.dims == s->dims;
    bool named = fits && pnet_names_coordinates(name);
    append_array(s->list, name, numbers ? &h : NULL);
    if (fits && (named || !s->named))
        snprintf(s->name, sizeof s->name, "%.*s", (int)pnet_span_size(name), name.at);
    s->count += fits;
    s->named += named;
    pnet_columns_free(&h.columns);
    pnet_bytes_free(&m);
    return status == PNET_NO_MEMORY ? status : PNET_OK;
}

enum pnet_status pnet_npz_find(
    const char *path, int dims, char name[PNET_NPZ_NAME], struct pnet_error *e)
{
    struct pnet_bytes b;
    struct pnet_zip z;
    struct search s = {.dims = dims};
    bool found = true;
    enum pnet_status status = pnet_bytes_read(path, &b, e);
    if (status != PNET_OK) return status;
    status = pnet_zip_begin(&z, &b, path, e);
    while (status == PNET_OK && found) {
        status = pnet_zip_next(&z, &found, e);
        if (status == PNET_OK && found) status = see_member(&z, path, &s, e);
    }
    pnet_bytes_free(&b);
    if (status == PNET_OK && s.named != 1 && (s.named || s.count != 1))
        return pnet_error_set(e, PNET_BAD_DATA,
            "%.400s: %s %d dimensions: `points: NAME` says which; found %s", path,
            s.count ? "several arrays have" : "no array has", dims, *s.list ? s.list : "none");
    if (status == PNET_OK) memcpy(name, s.name, sizeof s.name);
    return status;
}
