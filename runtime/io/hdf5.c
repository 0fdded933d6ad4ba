#include "runtime/io/hdf5.h"
#include "runtime/io/format.h"
#include "runtime/io/zip.h"

#include <stdlib.h>
#include <string.h>

enum { LINKS_MOST = 1 << 16, GROUPS_DEEP = 16 };

bool pnet_hdf5_probe(const struct pnet_bytes *b)
{
    return b->size >= 8 && memcmp(b->data, "\x89HDF\r\n\x1a\n", 8) == 0;
}

/* The library takes the bytes of the file as they are, instead of three copies. It opens them for reading, and never writes or
   resizes them. */
static void *take_image(size_t size, int operation, void *data)
{
    const struct pnet_bytes *b = data;
    (void)operation;
    return size == b->size ? (void *)(uintptr_t)b->data : NULL;
}

static void *copy_image(void *to, const void *from, size_t size, int operation, void *data)
{
    (void)size, (void)operation, (void)data;
    return to == from ? to : NULL;
}

static void *resize_image(void *image, size_t size, int operation, void *data)
{
    (void)image, (void)size, (void)operation, (void)data;
    return NULL;
}

static int leave_image(void *image, int operation, void *data)
{
    (void)image, (void)operation, (void)data;
    return 0;
}

static void *copy_data(void *data)
{
    return data;
}

static int leave_data(void *data)
{
    (void)data;
    return 0;
}

/* Opens the bytes under a name that no file can have, and that no other open file has: equal names are one file to the
   library. */
static pnet_hid open_image(const struct pnet_hdf5 *f)
{
    const struct pnet_hdf5_library *l = f->l;
    struct pnet_hdf5_image image = {.image_malloc = take_image,
        .image_memcpy = copy_image,
        .image_realloc = resize_image,
        .image_free = leave_image,
        .udata_copy = copy_data,
        .udata_free = leave_data,
        .udata = (void *)(uintptr_t)f->b};
    char name[64];
    snprintf(name, sizeof name, "/dev/null/%p", (const void *)f->b->data);
    pnet_hid list = l->H5Pcreate(l->file_access), file = -1;
    if (list < 0) return -1;
    if (l->H5Pset_fapl_core(list, 1 << 16, 0) >= 0 &&
        l->H5Pset_file_image_callbacks(list, &image) >= 0 &&
        l->H5Pset_file_image(list, (void *)(uintptr_t)f->b->data, f->b->size) >= 0)
        file = l->H5Fopen(name, 0, list);
    l->H5Pclose(list);
    return file;
}

/* On failure nothing is to be ended. */
static enum pnet_status begin(struct pnet_hdf5 *f, const struct pnet_bytes *b, const char *path,
    struct pnet_named_arrays *arrays, struct pnet_error *e)
{
    *f = (struct pnet_hdf5){.b = b, .path = path, .arrays = arrays, .room = PNET_ZIP_LEAST};
    if (b->size > PNET_ZIP_LEAST / PNET_ZIP_RATIO) f->room = PNET_ZIP_RATIO * (uint64_t)b->size;
    enum pnet_status status = pnet_hdf5_begin(path, &f->l, e);
    if (status != PNET_OK) return status;
    f->file = open_image(f);
    if (f->file >= 0) return PNET_OK;
    status = pnet_hdf5_fail(f->l, path, e);
    pnet_hdf5_end();
    return status;
}

static void end(struct pnet_hdf5 *f)
{
    for (int i = 0; i < f->arrays->count; i++)
        if (f->datasets[i] >= 0) f->l->H5Oclose(f->datasets[i]);
    f->l->H5Fclose(f->file);
    pnet_hdf5_end();
}

/* A walk through the groups of a file. */
struct walk {
    struct pnet_hdf5 *f;
    const char *only; /* the array looked for; NULL: all */
    int links, depth;
    const char *group; /* its name ends in /, or is "" */
    enum pnet_status status;
    struct pnet_error *e;
};

static int see_link(pnet_hid group, const char *name, const int *info, void *data);

static void walk_group(struct walk *w, pnet_hid group, const char *name)
{
    const char *outer = w->group;
    uint64_t from = 0;
    w->group = name;
    if (++w->depth > GROUPS_DEEP)
        w->status = pnet_error_set(
            w->e, PNET_BAD_DATA, "%.500s: groups within groups beyond %d", w->f->path, GROUPS_DEEP);
    else if (w->f->l->H5Literate(group, PNET_H5_INDEX_NAME, PNET_H5_ITER_INC, &from, see_link, w) <
                 0 &&
             w->status == PNET_OK)
        w->status = pnet_hdf5_fail(w->f->l, w->f->path, w->e);
    w->depth--;
    w->group = outer;
}

/* Adds the array `name`, which the list owns from then on. `unfit` (or NULL): it is a link that is not followed. Returns false if
   the dataset is left to the caller to close. */
static bool add_array(struct walk *w, pnet_hid dataset, char *name, const char *unfit)
{
    struct pnet_named_arrays *a = w->f->arrays;
    if (a->count == PNET_NAMED_ARRAYS_MOST) {
        w->status = pnet_error_set(
            w->e, PNET_BAD_DATA, "%.500s: more than %d arrays", w->f->path, PNET_NAMED_ARRAYS_MOST);
        free(name);
        return false;
    }
    struct pnet_named_array *m = &a->items[a->count];
    *m = (struct pnet_named_array){.name = pnet_span_of(name), .text = name, .unfit = unfit};
    w->f->datasets[a->count++] = dataset;
    if (!unfit) w->status = pnet_hdf5_describe(w->f, dataset, m, w->e);
    if (w->status != PNET_OK || !m->unfit) return true;
    int length = asprintf(&m->why, "%.500s: %s: %s, expected an array of numbers", w->f->path,
        pnet_span_quote(m->name).text, m->unfit);
    if (length < 0) {
        m->why = NULL;
        w->status = pnet_error_memory(w->e);
    }
    return true;
}

static void see_object(struct walk *w, pnet_hid group, const char *name, char *full)
{
    const struct pnet_hdf5_library *l = w->f->l;
    size_t length = strlen(full);
    bool wanted = !w->only || strcmp(w->only, full) == 0;
    bool within = !w->only || (strncmp(w->only, full, length) == 0 && w->only[length] == '/');
    pnet_hid object = wanted || within ? l->H5Oopen(group, name, PNET_H5_ALL) : 0;
    if (object < 0) {
        char place[600];
        snprintf(place, sizeof place, "%.500s: %s", w->f->path,
            pnet_span_quote(pnet_span_of(full)).text);
        w->status = pnet_hdf5_fail(l, place, w->e);
    }
    int type = object > 0 ? l->H5Iget_type(object) : -1;
    bool kept = false;
    if (type == PNET_H5I_DATASET && wanted) {
        kept = add_array(w, object, full, NULL);
        full = NULL;
    } else if (type == PNET_H5I_GROUP && within) {
        full[length] = '/';
        walk_group(w, object, full);
    }
    if (object > 0 && !kept) l->H5Oclose(object);
    free(full);
}

static int see_link(pnet_hid group, const char *name, const int *info, void *data)
{
    struct walk *w = data;
    size_t n = strlen(w->group), m = strlen(name);
    char *full = malloc(n + m + 2); /* a group gets a / */
    if (++w->links > LINKS_MOST || !full) {
        w->status = full ? pnet_error_set(w->e, PNET_BAD_DATA, "%.500s: more than %d links",
                               w->f->path, LINKS_MOST)
                         : pnet_error_memory(w->e);
        free(full);
        return 1;
    }
    memcpy(full, w->group, n);
    memcpy(full + n, name, m);
    full[n + m] = full[n + m + 1] = '\0';
    if (*info == PNET_H5L_TYPE_HARD)
        see_object(w, group, name, full);
    else if (!w->only || strcmp(w->only, full) == 0)
        add_array(w, -1, full,
            *info == PNET_H5L_TYPE_EXTERNAL ? "a link to another file" : "a soft link");
    else
        free(full);
    return w->status != PNET_OK;
}

/* Lists the arrays of the file, or only the one of that name. */
static enum pnet_status list_arrays(struct pnet_hdf5 *f, const char *only, struct pnet_error *e)
{
    struct walk w = {.f = f, .only = only, .e = e, .status = PNET_OK};
    walk_group(&w, f->file, "");
    return w.status;
}

static enum pnet_status load(void *file, struct pnet_named_array *m, struct pnet_error *e)
{
    struct pnet_hdf5 *f = file;
    return pnet_hdf5_load(f, f->datasets[m - f->arrays->items], m, e);
}

enum pnet_status pnet_hdf5_cloud_read_as(const struct pnet_bytes *b, const char *path,
    const struct pnet_cloud_hints *hints, struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_hdf5 f;
    struct pnet_named_arrays *a = calloc(1, sizeof *a);
    if (!a) return pnet_error_memory(e);
    enum pnet_status status = begin(&f, b, path, a, e);
    if (status == PNET_OK) {
        a->path = path;
        a->nothing = "an HDF5 file without arrays of numbers";
        a->load = load;
        a->file = &f;
        status = list_arrays(&f, NULL, e);
        if (status == PNET_OK) status = pnet_named_arrays_cloud(a, hints->coordinates, c, e);
        end(&f);
    }
    pnet_named_arrays_free(a);
    free(a);
    return status;
}

enum pnet_status pnet_hdf5_cloud_read(
    const struct pnet_bytes *b, const char *path, struct pnet_cloud *c, struct pnet_error *e)
{
    return pnet_hdf5_cloud_read_as(b, path, &(struct pnet_cloud_hints){.columns = NULL}, c, e);
}

static enum pnet_status take_array(
    struct pnet_hdf5 *f, const char *name, struct pnet_npy *a, struct pnet_error *e)
{
    struct pnet_named_arrays *arrays = f->arrays;
    enum pnet_status status = list_arrays(f, name, e);
    int i = 0;
    if (status != PNET_OK) return status;
    while (!name && i < arrays->count && arrays->items[i].unfit) i++;
    if (i == arrays->count)
        return pnet_error_set(e, PNET_BAD_DATA, "%.400s: expected an array \"%.100s\" in the file",
            f->path, name ? name : "of numbers");
    struct pnet_named_array *m = &arrays->items[i];
    if (m->unfit) return pnet_error_set(e, PNET_BAD_DATA, "%.900s", m->why);
    char place[600];
    snprintf(place, sizeof place, "%.500s: %s", f->path, pnet_span_quote(m->name).text);
    status = load(f, m, e);
    return status == PNET_OK ? pnet_npy_convert(&m->h, place, a, e) : status;
}

enum pnet_status pnet_hdf5_array(const struct pnet_bytes *b, const char *path, const char *name,
    struct pnet_npy *a, struct pnet_error *e)
{
    struct pnet_hdf5 f;
    struct pnet_named_arrays *arrays = calloc(1, sizeof *arrays);
    if (!arrays) return pnet_error_memory(e);
    enum pnet_status status = begin(&f, b, path, arrays, e);
    if (status == PNET_OK) {
        status = take_array(&f, name, a, e);
        end(&f);
    }
    pnet_named_arrays_free(arrays);
    free(arrays);
    return status;
}

enum pnet_status pnet_hdf5_search(
    const struct pnet_bytes *b, const char *path, struct pnet_array_search *s, struct pnet_error *e)
{
    struct pnet_hdf5 f;
    struct pnet_named_arrays *a = calloc(1, sizeof *a);
    if (!a) return pnet_error_memory(e);
    enum pnet_status status = begin(&f, b, path, a, e);
    if (status == PNET_OK) {
        status = list_arrays(&f, NULL, e);
        for (int i = 0; i < a->count && status == PNET_OK; i++) {
            struct pnet_named_array *m = &a->items[i];
            pnet_array_search_see(s, m->name, m->unfit ? NULL : &m->h, m->unfit);
        }
        end(&f);
    }
    pnet_named_arrays_free(a);
    free(a);
    return status;
}
