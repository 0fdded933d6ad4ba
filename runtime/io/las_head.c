/* The header of LAS files, and the records between header and points. */
#include "runtime/io/las.h"

#include <stdlib.h>

static const char spec_user[] = "LASF_Spec", laszip_user[] = "laszip encoded", copc_user[] = "copc";
enum { EXTRA_ID = 4, LASZIP_ID = 22204, VLR_BODY_MOST = 65535 };

void pnet_las_next_vlr(const uint8_t *data, uint64_t i, struct pnet_las_vlr *v)
{
    v->at = i ? v->body + v->length : pnet_las_load(data, LAS_HEADER_SIZE, 2);
    v->body = v->at + LAS_VLR_SIZE;
    v->length = pnet_las_load(data, v->at + 20, 2);
}

static bool is_vlr(const uint8_t *data, const struct pnet_las_vlr *v, const char *user, unsigned id)
{
    return memcmp(data + v->at + 2, user, strlen(user) + 1) == 0 &&
           pnet_las_load(data, v->at + 18, 2) == id;
}

bool pnet_las_is_laszip(const uint8_t *data, const struct pnet_las_vlr *v)
{
    return is_vlr(data, v, laszip_user, LASZIP_ID);
}

bool pnet_las_is_extra(const uint8_t *data, const struct pnet_las_vlr *v)
{
    return is_vlr(data, v, spec_user, EXTRA_ID);
}

/* Tells whether a header has the members up to `size` bytes, which belong to versions from 1.`minor` on. */
static bool reaches(const uint8_t *head, unsigned minor, unsigned size)
{
    return head[LAS_VERSION + 1] >= minor && pnet_las_load(head, LAS_HEADER_SIZE, 2) >= size;
}

static bool has_waves_offset(const uint8_t *head)
{
    return reaches(head, 3, LAS_HEADER_WAVES_LEAST);
}

static bool has_members64(const uint8_t *head)
{
    return reaches(head, 4, LAS_HEADER64_LEAST);
}

/* Tells whether a record, whose user stands at `user`, is about the octree of a COPC. */
static bool is_copc(const uint8_t *user)
{
    return memcmp(user, copc_user, sizeof copc_user) == 0;
}

/* Copies the head of a compressed file without the records about the compression and the octree of a COPC. */
static void keep_head_of_laz(struct pnet_las_kept *k, const uint8_t *data, uint64_t points_at)
{
    uint64_t count = pnet_las_load(data, LAS_VLR_COUNT, 4), left = 0;
    uint64_t from = pnet_las_load(data, LAS_HEADER_SIZE, 2);
    struct pnet_las_vlr v = {.at = 0};
    memcpy(k->head, data, from);
    k->head_size = from;
    for (uint64_t i = 0; i < count; i++) {
        pnet_las_next_vlr(data, i, &v);
        uint64_t size = LAS_VLR_SIZE + v.length;
        from = v.at + size;
        if (pnet_las_is_laszip(data, &v) || is_copc(data + v.at + 2)) continue;
        memcpy(k->head + k->head_size, data + v.at, size);
        k->head_size += size;
        left++;
    }
    memcpy(k->head + k->head_size, data + from, points_at - from);
    k->head_size += points_at - from;
    pnet_las_store(k->head, LAS_VLR_COUNT, left, 4);
    pnet_las_store(k->head, LAS_POINT_OFFSET, k->head_size, 4);
    k->head[LAS_POINT_FORMAT] = (uint8_t)k->layout.format;
    if (has_waves_offset(k->head)) pnet_las_store(k->head, LAS_WAVES_OFFSET, 0, 8);
}

/* Returns where extended records begin, or the end of the file where there are none. */
static uint64_t find_extended(const struct pnet_bytes *b)
{
    bool any = has_members64(b->data) && pnet_las_load(b->data, LAS_EVLR_COUNT, 4);
    uint64_t at = any ? pnet_las_load(b->data, LAS_EVLR_OFFSET, 8) : b->size;
    return at < b->size ? at : b->size;
}

/* Copies the extended records of a compressed file, up to the first one that the file does not hold. k->tail has room for all
   that follows them. */
static void keep_tail_of_laz(struct pnet_las_kept *k, const struct pnet_bytes *b)
{
    if (!has_members64(b->data)) return;
    uint64_t at = find_extended(b), left = 0, count = pnet_las_load(b->data, LAS_EVLR_COUNT, 4);
    for (; count && b->size - at >= LAS_EVLR_SIZE; count--) {
        uint64_t length = pnet_las_load(b->data, at + 20, 8);
        if (length > b->size - at - LAS_EVLR_SIZE) break;
        length += LAS_EVLR_SIZE;
        if (!is_copc(b->data + at + 2)) {
            memcpy(k->tail + k->tail_size, b->data + at, length);
            k->tail_size += length;
            left++;
        }
        at += length;
    }
    uint64_t end = k->head_size + (uint64_t)k->rows * k->layout.record;
    pnet_las_store(k->head, LAS_EVLR_OFFSET, left ? end : 0, 8);
    pnet_las_store(k->head, LAS_EVLR_COUNT, left, 4);
}

enum pnet_status pnet_las_keep_file(
    struct pnet_las_kept *k, struct pnet_file_parts *f, struct pnet_error *e)
{
    const struct pnet_bytes *b = &f->bytes;
    uint64_t points_at = pnet_las_load(b->data, LAS_POINT_OFFSET, 4);
    bool compressed = b->data[LAS_POINT_FORMAT] >> 6;
    uint64_t tail_at =
        compressed ? find_extended(b) : points_at + (uint64_t)k->rows * k->layout.record;
    enum pnet_status st = pnet_bytes_fit(f->path, points_at + (b->size - tail_at), e);
    if (!st) st = pnet_file_parts_load(f, tail_at, b->size - tail_at, e);
    if (st) return st;
    k->head = malloc(points_at);
    k->tail = malloc(b->size - tail_at + 1);
    if (!k->head || !k->tail) return pnet_error_memory(e);
    if (compressed) {
        keep_head_of_laz(k, b->data, points_at);
        keep_tail_of_laz(k, b);
        return PNET_OK;
    }
    k->head_size = points_at;
    k->tail_size = b->size - tail_at;
    memcpy(k->head, b->data, k->head_size);
    memcpy(k->tail, b->data + tail_at, k->tail_size);
    return PNET_OK;
}

static void store_double(uint8_t *data, uint64_t at, double v)
{
    memcpy(data + at, &v, sizeof v);
}

/* Writes the box. Empty clouds have one at 0. */
static void put_box(
    uint8_t *head, const struct pnet_las_layout *l, const struct pnet_las_summary *s)
{
    for (int a = 0; a < 3; a++) {
        const struct pnet_las_part *p = &l->parts[a];
        for (int end = 0; end < 2; end++) {
            double v = end ? s->low[a] : s->high[a];
            store_double(head, LAS_BOX + 16 * (uint64_t)a + 8 * (uint64_t)end,
                s->rows ? v * p->scale + p->shift : 0);
        }
    }
}

/* Writes the number of points, and of points by their return. A header of LAS 1.4 has both twice; numbers of 32 bits are 0
   there in point formats from 6 on, and where they would not do. */
static void put_counts(uint8_t *head, unsigned format, const struct pnet_las_summary *s)
{
    bool wide = has_members64(head), narrow = !wide || (format < 6 && s->rows <= UINT32_MAX);
    pnet_las_store(head, LAS_COUNT32, narrow ? (uint64_t)s->rows : 0, 4);
    for (uint64_t r = 0; r < 5; r++)
        pnet_las_store(head, LAS_RETURNS32 + 4 * r, narrow ? (uint64_t)s->returns[r] : 0, 4);
    if (!wide) return;
    pnet_las_store(head, LAS_COUNT64, (uint64_t)s->rows, 8);
    for (uint64_t r = 0; r < LAS_RETURNS; r++)
        pnet_las_store(head, LAS_RETURNS64 + 8 * r, (uint64_t)s->returns[r], 8);
}

static bool same_summary(const struct pnet_las_summary *a, const struct pnet_las_summary *b)
{
    return a->rows == b->rows && memcmp(a->low, b->low, sizeof a->low) == 0 &&
           memcmp(a->high, b->high, sizeof a->high) == 0 &&
           memcmp(a->returns, b->returns, sizeof a->returns) == 0;
}

/* Writes the record of descriptions to `to`, and returns its size. `head`: that of the record in its place, or NULL. */
static size_t put_extras(uint8_t *to, const uint8_t *head, const struct pnet_las_frame *f)
{
    size_t length = (size_t)f->layout->extras * LAS_EXTRA_SIZE;
    if (!length) return 0;
    if (head) {
        memcpy(to, head, LAS_VLR_SIZE);
    } else {
        memset(to, 0, LAS_VLR_SIZE);
        memcpy(to + 2, spec_user, sizeof spec_user);
        pnet_las_store(to, 18, EXTRA_ID, 2);
    }
    pnet_las_store(to, 20, length, 2);
    memcpy(to + LAS_VLR_SIZE, f->extras, length);
    return LAS_VLR_SIZE + length;
}

/* Copies the head to `to`, with the descriptions in the place of those that are there, or behind the last record. Returns its
   size. */
static size_t copy_head(const struct pnet_las_kept *k, const struct pnet_las_frame *f, uint8_t *to)
{
    const uint8_t *data = k->head;
    uint64_t count = pnet_las_load(data, LAS_VLR_COUNT, 4), left = 0;
    uint64_t from = pnet_las_load(data, LAS_HEADER_SIZE, 2), size = from;
    struct pnet_las_vlr v = {.at = 0};
    bool described = false;
    memcpy(to, data, from);
    for (uint64_t i = 0; i < count; i++) {
        pnet_las_next_vlr(data, i, &v);
        size_t length = LAS_VLR_SIZE + v.length;
        from = v.at + length;
        if (!pnet_las_is_extra(data, &v))
            memcpy(to + size, data + v.at, length);
        else if (!described)
            length = put_extras(to + size, data + v.at, f);
        else
            length = 0;
        described |= pnet_las_is_extra(data, &v);
        size += length;
        left += length > 0;
    }
    if (!described) {
        size_t length = put_extras(to + size, NULL, f);
        size += length;
        left += length > 0;
    }
    memcpy(to + size, data + from, k->head_size - from);
    pnet_las_store(to, LAS_VLR_COUNT, left, 4);
    return size + k->head_size - from;
}

/* Moves the places of what follows the points, from `before` on, to `end`. */
static void move_tail(uint8_t *head, uint64_t before, uint64_t end)
{
    uint64_t waves = has_waves_offset(head) ? pnet_las_load(head, LAS_WAVES_OFFSET, 8) : 0;
    uint64_t extended = has_members64(head) ? pnet_las_load(head, LAS_EVLR_OFFSET, 8) : 0;
    if (waves >= before) pnet_las_store(head, LAS_WAVES_OFFSET, waves - before + end, 8);
    if (extended >= before) pnet_las_store(head, LAS_EVLR_OFFSET, extended - before + end, 8);
}

/* Returns the least minor version with the point format, of those that old headers may be raised to. */
static unsigned least_minor(unsigned format)
{
    return format == 2 || format == 3 ? 2 : 0;
}

enum pnet_status pnet_las_make_head(const struct pnet_las_kept *k, const struct pnet_las_frame *f,
    uint8_t **head, size_t *size, struct pnet_error *e)
{
    const struct pnet_las_layout *l = f->layout;
    size_t room = k->head_size + LAS_VLR_SIZE + (size_t)l->extras * LAS_EXTRA_SIZE;
    uint8_t *to = malloc(room);
    if (!to) return pnet_error_memory(e);
    *head = to;
    *size = k->head_size;
    if (f->relaid)
        *size = copy_head(k, f, to);
    else
        memcpy(to, k->head, k->head_size);
    if (f->relaid) {
        pnet_las_store(to, LAS_POINT_OFFSET, *size, 4);
        pnet_las_store(to, LAS_RECORD_LENGTH, l->record, 2);
        to[LAS_POINT_FORMAT] = (uint8_t)l->format;
        if (to[LAS_VERSION + 1] < least_minor(l->format))
            to[LAS_VERSION + 1] = (uint8_t)least_minor(l->format);
    }
    if (!same_summary(&k->summary, f->summary)) {
        put_counts(to, l->format, f->summary);
        put_box(to, l, f->summary);
    }
    move_tail(to, k->head_size + (uint64_t)k->rows * k->layout.record,
        *size + (uint64_t)f->summary->rows * l->record);
    return PNET_OK;
}

enum pnet_status pnet_las_pack_head(const uint8_t *head, size_t size, uint64_t points_size,
    const struct pnet_las_frame *f, const uint8_t *vlr, size_t vlr_size, uint8_t **packed,
    struct pnet_error *e)
{
    struct pnet_las_vlr v = {.at = 0};
    uint64_t count = pnet_las_load(head, LAS_VLR_COUNT, 4);
    size_t records_end = (size_t)pnet_las_load(head, LAS_HEADER_SIZE, 2);
    for (uint64_t i = 0; i < count; i++) {
        pnet_las_next_vlr(head, i, &v);
        records_end = v.body + v.length;
    }
    uint8_t *to = *packed = malloc(size + vlr_size);
    if (!to) return pnet_error_memory(e);
    memcpy(to, head, records_end);
    memcpy(to + records_end, vlr, vlr_size);
    memcpy(to + records_end + vlr_size, head + records_end, size - records_end);
    pnet_las_store(to, LAS_VLR_COUNT, count + 1, 4);
    pnet_las_store(to, LAS_POINT_OFFSET, size + vlr_size, 4);
    to[LAS_POINT_FORMAT] |= 0x80; /* compressed */
    move_tail(
        to, size + (uint64_t)f->summary->rows * f->layout->record, size + vlr_size + points_size);
    return PNET_OK;
}

enum pnet_status pnet_las_new_head(
    const struct pnet_las_frame *f, uint8_t **head, size_t *size, struct pnet_error *e)
{
    enum {
        WELL_KNOWN_TEXT = 16
    }; /* the only way in which point formats from 6 on state a coordinate system */
    static const char name[] = "pnet";
    const struct pnet_las_layout *l = f->layout;
    uint8_t *to = calloc(LAS_HEADER64_LEAST + LAS_VLR_SIZE + (size_t)l->extras * LAS_EXTRA_SIZE, 1);
    if (!to) return pnet_error_memory(e);
    memcpy(to, "LASF", 4);
    to[LAS_ENCODING] = WELL_KNOWN_TEXT;
    to[LAS_VERSION] = 1;
    to[LAS_VERSION + 1] = 4;
    memcpy(to + LAS_SYSTEM, name, sizeof name);
    memcpy(to + LAS_SOFTWARE, name, sizeof name);
    pnet_las_store(to, LAS_HEADER_SIZE, LAS_HEADER64_LEAST, 2);
    size_t extras = put_extras(to + LAS_HEADER64_LEAST, NULL, f);
    *head = to;
    *size = LAS_HEADER64_LEAST + extras;
    pnet_las_store(to, LAS_POINT_OFFSET, *size, 4);
    pnet_las_store(to, LAS_VLR_COUNT, extras > 0, 4);
    to[LAS_POINT_FORMAT] = (uint8_t)l->format;
    pnet_las_store(to, LAS_RECORD_LENGTH, l->record, 2);
    for (uint64_t a = 0; a < 3; a++) {
        store_double(to, LAS_SCALES + 8 * a, l->parts[a].scale);
        store_double(to, LAS_SHIFTS + 8 * a, l->parts[a].shift);
    }
    put_counts(to, l->format, f->summary);
    put_box(to, l, f->summary);
    return PNET_OK;
}
