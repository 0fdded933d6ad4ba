/* The numbers of a dataset, by the addresses in the file that the library tells. */
#include "runtime/io/format.h"
#include "runtime/io/hdf5.h"
#include "runtime/io/hdf5_filter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A dataset while it is read. */
struct source {
    struct pnet_hdf5 *f;
    struct pnet_named_array *m;
    pnet_hid dataset, list, type; /* list: with which it was created */
    struct pnet_error *e;
};

enum pnet_status pnet_hdf5_array_fail(
    const struct pnet_hdf5 *f, const struct pnet_named_array *m, struct pnet_error *e)
{
    char place[600];
    snprintf(place, sizeof place, "%.500s: %s", f->path, pnet_span_quote(m->name).text);
    return pnet_hdf5_fail(f->l, place, e);
}

enum pnet_status pnet_hdf5_refuse(const struct pnet_hdf5 *f, const struct pnet_named_array *m,
    struct pnet_error *e, const char *reason)
{
    return pnet_error_set(
        e, PNET_BAD_DATA, "%.500s: %s: %s", f->path, pnet_span_quote(m->name).text, reason);
}

static enum pnet_status fail(const struct source *s)
{
    return pnet_hdf5_array_fail(s->f, s->m, s->e);
}

static enum pnet_status refuse(const struct source *s, const char *reason)
{
    return pnet_hdf5_refuse(s->f, s->m, s->e, reason);
}

/* Allocates h.data, which has the value of what was never written, and takes its bytes from the room. */
static enum pnet_status allocate(struct source *s, uint8_t **data)
{
    const struct pnet_hdf5_library *l = s->f->l;
    struct pnet_npy_header *h = &s->m->h;
    uint64_t bytes;
    int fill = 0;
    if (__builtin_mul_overflow((uint64_t)h->count, h->item, &bytes) || bytes > s->f->room) {
        char text[200];
        snprintf(text, sizeof text,
            "%" PRId64 " items of %zu bytes: the arrays of a file of %zu bytes may have %" PRIu64
            " more; write it without compression",
            h->count, h->item, s->f->b->size, s->f->room);
        return refuse(s, text);
    }
    s->f->room -= bytes;
    enum pnet_status status = pnet_bytes_fit(s->f->path, bytes, s->e);
    if (status != PNET_OK) return status;
    *data = calloc(1, bytes ? bytes : 1);
    if (!*data) return pnet_error_memory(s->e);
    s->m->bytes = (struct pnet_bytes){.data = *data, .size = bytes};
    h->data = *data;
    if (l->H5Pfill_value_defined(s->list, &fill) < 0) return fail(s);
    if (fill != PNET_H5D_FILL_VALUE_USER_DEFINED || !h->count) return PNET_OK;
    if (l->H5Pget_fill_value(s->list, s->type, *data) < 0) return fail(s);
    for (int64_t i = 1; i < h->count; i++) memcpy(*data + (size_t)i * h->item, *data, h->item);
    return PNET_OK;
}

/* The numbers lie in the file one after the other, or were never written. */
static enum pnet_status read_contiguous(struct source *s)
{
    const struct pnet_bytes *b = s->f->b;
    struct pnet_npy_header *h = &s->m->h;
    uint64_t at = s->f->l->H5Dget_offset(s->dataset);
    uint8_t *data = NULL;
    if (at == PNET_H5_NOWHERE) return allocate(s, &data);
    if (at > b->size || (uint64_t)h->count > (b->size - at) / h->item)
        return refuse(s, "ends beyond the file");
    h->data = b->data + at;
    return PNET_OK;
}

/* The numbers are part of the header, which the library has read. */
static enum pnet_status read_compact(struct source *s)
{
    const struct pnet_hdf5_library *l = s->f->l;
    const struct pnet_npy_header *h = &s->m->h;
    uint8_t *data = NULL;
    if ((uint64_t)h->count > l->H5Dget_storage_size(s->dataset) / h->item)
        return refuse(s, "ends beyond its header");
    enum pnet_status status = allocate(s, &data);
    if (status == PNET_OK && h->count &&
        l->H5Dread(s->dataset, s->type, PNET_H5_ALL, PNET_H5_ALL, PNET_H5_ALL, data) < 0)
        return fail(s);
    return status;
}

/* Others than gzip, shuffled bytes, checksums and h5py's LZF are refused: most come from plugins. */
static enum pnet_status find_filters(struct source *s, struct pnet_hdf5_pipeline *p)
{
    const struct pnet_hdf5_library *l = s->f->l;
    p->count = l->H5Pget_nfilters(s->list);
    if (p->count < 0) return fail(s);
    if (p->count > PNET_HDF5_FILTERS_MOST) return refuse(s, "packed by more than 8 filters");
    for (int i = 0; i < p->count; i++) {
        char name[32] = "", text[200];
        size_t values = 1;
        unsigned flags, config;
        p->filters[i].value = 0;
        p->filters[i].id = l->H5Pget_filter2(s->list, (unsigned)i, &flags, &values,
            &p->filters[i].value, sizeof name - 1, name, &config);
        if (p->filters[i].id < 0) return fail(s);
        if (pnet_hdf5_filter_known(p->filters[i].id)) continue;
        snprintf(text, sizeof text, "packed by the filter %d%s%s%s: write it with gzip instead",
            p->filters[i].id, *name ? " (" : "", name, *name ? ")" : "");
        return refuse(s, text);
    }
    return PNET_OK;
}

/* Chunks of an array, all of one size; those at the upper ends reach beyond it. */
struct chunks {
    int dims;
    uint64_t shape[PNET_NPY_DIMS]; /* of one chunk, in items */
    size_t bytes;
    struct pnet_hdf5_pipeline pipeline;
};

static enum pnet_status find_chunks(struct source *s, struct chunks *c)
{
    const struct pnet_npy_header *h = &s->m->h;
    const char *large = "its chunks are larger than the file may unpack to";
    uint64_t bytes = h->item, number = 1;
    unsigned options = 0;
    c->dims = s->f->l->H5Pget_chunk(s->list, PNET_NPY_DIMS, c->shape);
    if (c->dims < 0 || s->f->l->H5Pget_chunk_opts(s->list, &options) < 0) return fail(s);
    if (c->dims != h->dims) return refuse(s, "its chunks have other dimensions than itself");
    if (options & PNET_H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS)
        return refuse(s, "packed but for the chunks at its ends: write it with gzip instead");
    for (int i = 0; i < c->dims; i++) {
        if (!c->shape[i]) return refuse(s, "its chunks are empty");
        if (__builtin_mul_overflow(bytes, c->shape[i], &bytes)) return refuse(s, large);
        uint64_t along = (uint64_t)h->shape[i] / c->shape[i] + 1;
        if (__builtin_mul_overflow(number, along, &number)) number = UINT64_MAX;
    }
    if (bytes > s->f->room || bytes > INT32_MAX) return refuse(s, large);
    /* Each takes some bytes of an index, unless most were never written. */
    if (h->count && number > 1 << 16 && number > s->f->b->size)
        return refuse(s, "more chunks than the file has bytes");
    c->bytes = bytes;
    return find_filters(s, &c->pipeline);
}

/* Copies the part of a chunk that lies within the array, along dimension `dim` and those after it. */
static void copy_chunk(const struct pnet_npy_header *h, const struct chunks *c,
    const uint64_t *offset, int dim, const uint8_t *from, uint8_t *to)
{
    uint64_t left = (uint64_t)h->shape[dim] - offset[dim];
    uint64_t count = left < c->shape[dim] ? left : c->shape[dim];
    size_t inner_from = h->item, inner_to = h->item; /* bytes of one step along the dimension */
    for (int d = dim + 1; d < c->dims; d++) {
        inner_from *= c->shape[d];
        inner_to *= (size_t)h->shape[d];
    }
    to += offset[dim] * inner_to;
    if (dim + 1 == c->dims)
        memcpy(to, from, count * inner_from);
    else
        for (uint64_t i = 0; i < count; i++)
            copy_chunk(h, c, offset, dim + 1, from + i * inner_from, to + i * inner_to);
}

static enum pnet_status read_chunk(
    struct source *s, struct chunks *c, const uint64_t *offset, uint8_t *data)
{
    const struct pnet_bytes *b = s->f->b;
    uint64_t at, size;
    unsigned left_out;
    bool memory;
    if (s->f->l->H5Dget_chunk_info_by_coord(s->dataset, offset, &left_out, &at, &size) < 0)
        return fail(s);
    if (at == PNET_H5_NOWHERE) return PNET_OK; /* never written */
    if (at > b->size || size > b->size - at) return refuse(s, "a chunk ends beyond the file");
    const uint8_t *chunk =
        pnet_hdf5_unpack(&c->pipeline, b->data + at, (size_t)size, left_out, &memory);
    if (!chunk) return memory ? pnet_error_memory(s->e) : refuse(s, "a chunk is damaged");
    copy_chunk(&s->m->h, c, offset, 0, chunk, data);
    return PNET_OK;
}

/* Moves to the next chunk, the last dimension first. Returns false behind the last one. */
static bool next_chunk(
    const struct pnet_npy_header *h, const struct chunks *c, uint64_t offset[PNET_NPY_DIMS])
{
    for (int d = c->dims - 1; d >= 0; d--) {
        offset[d] += c->shape[d];
        if (offset[d] < (uint64_t)h->shape[d]) return true;
        offset[d] = 0;
    }
    return false;
}

static enum pnet_status read_chunks(struct source *s)
{
    struct chunks c = {.dims = 0};
    uint64_t offset[PNET_NPY_DIMS] = {0};
    uint8_t *data = NULL;
    enum pnet_status status = find_chunks(s, &c);
    if (status == PNET_OK) status = allocate(s, &data);
    if (status != PNET_OK || !s->m->h.count) return status;
    status = pnet_bytes_fit(s->f->path, 2 * (uint64_t)c.bytes, s->e);
    if (status == PNET_OK && !pnet_hdf5_pipeline_begin(&c.pipeline, c.bytes))
        status = pnet_error_memory(s->e);
    if (status != PNET_OK) return status;
    do status = read_chunk(s, &c, offset, data);
    while (status == PNET_OK && next_chunk(&s->m->h, &c, offset));
    pnet_hdf5_pipeline_end(&c.pipeline);
    return status;
}

static enum pnet_status read_numbers(struct source *s)
{
    int layout = s->f->l->H5Pget_layout(s->list),
        external = s->f->l->H5Pget_external_count(s->list);
    if (layout < 0 || external < 0) return fail(s);
    if (external) return refuse(s, "its numbers lie in another file");
    if (layout == PNET_H5D_VIRTUAL) return refuse(s, "a virtual array, which lies in other files");
    return layout == PNET_H5D_CHUNKED      ? read_chunks(s)
           : layout == PNET_H5D_CONTIGUOUS ? read_contiguous(s)
                                           : read_compact(s);
}

enum pnet_status pnet_hdf5_load(
    struct pnet_hdf5 *f, pnet_hid dataset, struct pnet_named_array *m, struct pnet_error *e)
{
    const struct pnet_hdf5_library *l = f->l;
    struct source s = {.f = f,
        .m = m,
        .dataset = dataset,
        .list = l->H5Dget_create_plist(dataset),
        .type = l->H5Dget_type(dataset),
        .e = e};
    enum pnet_status status = s.list < 0 || s.type < 0 ? fail(&s) : read_numbers(&s);
    if (status == PNET_OK) pnet_hdf5_place(f, s.type, &m->h);
    if (s.list >= 0) l->H5Pclose(s.list);
    if (s.type >= 0) l->H5Tclose(s.type);
    return status;
}
