/* Arrays in NPZ archives: a cloud of several, one array, and the one that is many clouds. */
#include "runtime/io/foreign.h"
#include "runtime/io/format.h"
#include "runtime/io/named_arrays.h"
#include "runtime/io/npz.h"
#include "runtime/io/zip.h"

#include <stdlib.h>
#include <string.h>

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

/* Reads the header of a member. One that is no array of numbers, of text for example, is kept with the reason. */
static enum pnet_status read_header(
    struct pnet_named_array *m, const char *path, struct pnet_error *e)
{
    char place[600];
    struct pnet_error why;
    snprintf(place, sizeof place, "%.500s: %s", path, pnet_span_quote(m->name).text);
    enum pnet_status status = pnet_npy_header_read(&m->bytes, place, &m->h, &why);
    if (status == PNET_OK) return status;
    m->unfit = "not numbers";
    if (status != PNET_NO_MEMORY) m->why = strdup(why.message);
    return m->why ? PNET_OK : pnet_error_memory(e);
}

static enum pnet_status read_members(
    struct pnet_named_arrays *a, const struct pnet_bytes *b, struct pnet_error *e)
{
    struct pnet_zip z;
    bool found;
    uint64_t packed = 0;
    enum pnet_status status = pnet_zip_begin(&z, b, a->path, e);
    while (status == PNET_OK) {
        status = pnet_zip_next(&z, &found, e);
        if (status != PNET_OK || !found) break;
        if (a->count == PNET_NAMED_ARRAYS_MOST)
            return pnet_byte_error(
                a->path, z.header, e, "more than %d arrays", PNET_NAMED_ARRAYS_MOST);
        /* Members that share bytes would let a small file ask for any amount of memory. */
        if (__builtin_add_overflow(packed, z.packed, &packed) || packed > b->size)
            return pnet_byte_error(a->path, z.header, e, "the members of the archive overlap");
        if (ends_in(z.name, "/data.pkl"))
            return pnet_error_set(e, PNET_BAD_DATA, "%.500s: %s", a->path, pnet_foreign_torch);
        struct pnet_named_array *m = &a->items[a->count];
        *m = (struct pnet_named_array){.name = without_ending(z.name)};
        status = pnet_zip_member(&z, &m->bytes, e);
        if (status != PNET_OK) break;
        a->count++;
        status = read_header(m, a->path, e);
    }
    return status;
}

enum pnet_status pnet_npz_cloud_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_named_arrays *a = calloc(1, sizeof *a);
    if (!a) return pnet_error_memory(e);
    a->path = path;
    a->nothing = "a ZIP archive without arrays of numbers; unpack it first: unzip IN.zip";
    enum pnet_status status = read_members(a, b, e);
    if (status == PNET_OK) status = pnet_named_arrays_cloud(a, hints->coordinates, c, e);
    pnet_named_arrays_free(a);
    free(a);
    return status;
}

enum pnet_status pnet_npz_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_npz_cloud_read_as(b, path, &(struct pnet_cloud_hints){.columns = NULL}, c, e);
}

static enum pnet_status see_member(
    struct pnet_zip *z, const char *path, struct pnet_array_search *s, struct pnet_error *e)
{
    struct pnet_bytes m;
    struct pnet_npy_header h;
    enum pnet_status status = pnet_zip_member(z, &m, e);
    if (status != PNET_OK) return status;
    status = pnet_npy_header_read(&m, path, &h, e);
    pnet_array_search_see(s, without_ending(z->name), status == PNET_OK ? &h : NULL, "not numbers");
    pnet_columns_free(&h.columns);
    pnet_bytes_free(&m);
    return status == PNET_NO_MEMORY ? status : PNET_OK;
}

enum pnet_status pnet_npz_search(
    const struct pnet_bytes *b, const char *path, struct pnet_array_search *s, struct pnet_error *e)
{
    struct pnet_zip z;
    bool found = true;
    enum pnet_status status = pnet_zip_begin(&z, b, path, e);
    while (status == PNET_OK && found) {
        status = pnet_zip_next(&z, &found, e);
        if (status == PNET_OK && found) status = see_member(&z, path, s, e);
    }
    return status;
}

/* Moves the walk to the member `name` or `name`.npy. */
static enum pnet_status find_member(struct pnet_zip *z, const char *name, struct pnet_error *e)
{
    bool found;
    for (;;) {
        enum pnet_status status = pnet_zip_next(z, &found, e);
        if (status != PNET_OK) return status;
        if (!found) break;
        if (!name || pnet_span_is(z->name, name)) return PNET_OK;
        size_t n = strlen(name), m = pnet_span_size(z->name);
        if (m == n + 4 && memcmp(z->name.at, name, n) == 0 &&
            memcmp(z->name.end - 4, ".npy", 4) == 0)
            return PNET_OK;
    }
    return pnet_error_set(e, PNET_BAD_DATA, "%.400s: expected a member \"%.100s\" in the archive",
        z->path, name ? name : "*.npy");
}

enum pnet_status pnet_npz_array(const struct pnet_bytes *b, const char *path, const char *name,
    struct pnet_npy *a, struct pnet_error *e)
{
    struct pnet_bytes m;
    struct pnet_zip z;
    enum pnet_status status = pnet_zip_begin(&z, b, path, e);
    if (status == PNET_OK) status = find_member(&z, name, e);
    if (status == PNET_OK) status = pnet_zip_member(&z, &m, e);
    if (status == PNET_OK) {
        char place[1024];
        snprintf(place, sizeof place, "%.700s: %s", path, pnet_span_quote(z.name).text);
        status = pnet_npy_read_bytes(&m, place, a, e);
        pnet_bytes_free(&m);
    }
    return status;
}
