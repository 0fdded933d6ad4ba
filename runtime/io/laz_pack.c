/* liblaszip writes files by their names. It writes a file in memory here, of which the points are taken: it knows neither
   extended records nor what stands in longer headers. */
#include "runtime/io/laz_pack.h"
#include "runtime/io/las.h"
#include "runtime/io/laszip_library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POINT10 = 20, POINT14 = 30, GPS_TIME = 8, TABLE_PLACE = 8 };

struct pnet_laz_packer {
    const struct pnet_laszip_library *l;
    const char *path;
    unsigned format;
    size_t record;
    void *writer;
    bool open;
    struct pnet_laszip_point *point;
    int file; /* or -1 */
    uint8_t *data;
    size_t size; /* of `data`, once it is mapped */
};

/* Takes over what the library says of its last failure. */
static enum pnet_status fail(const struct pnet_laz_packer *p, struct pnet_error *e)
{
    char *text = NULL;
    bool said = p->writer && p->l->laszip_get_error(p->writer, &text) == 0 && text && *text;
    return pnet_error_set(e, PNET_FAILED, "%.400s: LASzip %u.%u.%u: %.300s", p->path, p->l->major,
        p->l->minor, p->l->revision, said ? text : "no reason given");
}

static enum pnet_status refuse(
    const struct pnet_laz_packer *p, const char *what, struct pnet_error *e)
{
    return pnet_error_set(e, PNET_FAILED, "%.400s: %s: %s", p->path, what, strerror(errno));
}

static enum pnet_status begin(struct pnet_laz_packer *p, struct pnet_error *e)
{
    struct pnet_laszip_header *h = NULL;
    bool new = p->format >= 6;
    char name[64];
    p->file = memfd_create("pnet", MFD_CLOEXEC);
    if (p->file < 0) return refuse(p, "a file in memory", e);
    if (p->l->laszip_create(&p->writer)) return pnet_error_memory(e);
    if (p->l->laszip_get_header_pointer(p->writer, &h)) return fail(p, e);
    h->major = 1;
    h->minor = new ? 4 : 2;
    h->header_size = new ? LAS_HEADER64_LEAST : LAS_HEADER_LEAST;
    h->points_at = h->header_size;
    h->format = (uint8_t)p->format;
    h->record = (uint16_t)p->record;
    if (new && p->l->laszip_request_native_extension(p->writer, 1)) return fail(p, e);
    snprintf(name, sizeof name, "/proc/self/fd/%d", p->file);
    if (p->l->laszip_open_writer(p->writer, name, 1)) return fail(p, e);
    p->open = true;
    if (p->l->laszip_get_point_pointer(p->writer, &p->point)) return fail(p, e);
    size_t extra = p->record - pnet_las_format_size(p->format);
    if (!extra || (p->point->extra && p->point->extra_size == (int32_t)extra)) return PNET_OK;
    return pnet_error_set(e, PNET_FAILED, "%.400s: LASzip %u.%u.%u has other structures than 3.4",
        p->path, p->l->major, p->l->minor, p->l->revision);
}

enum pnet_status pnet_laz_check_format(const char *path, unsigned format, struct pnet_error *e)
{
    if (format != 4 && format != 5 && format <= 8) return PNET_OK;
    return pnet_error_set(e, PNET_USAGE,
        "%.400s: points with waveforms (format %u) are not written as LAZ: write .las", path,
        format);
}

enum pnet_status pnet_laz_pack_new(const char *path, unsigned format, size_t record,
    struct pnet_laz_packer **p, struct pnet_error *e)
{
    const struct pnet_laszip_library *l;
    enum pnet_status st = pnet_laszip_open(path, &l, e);
    *p = NULL;
    if (st) return st;
    *p = malloc(sizeof **p);
    if (!*p) return pnet_error_memory(e);
    **p = (struct pnet_laz_packer){
        .l = l, .path = path, .format = format, .record = record, .file = -1};
    st = begin(*p, e);
    if (st) {
        pnet_laz_pack_free(*p);
        *p = NULL;
    }
    return st;
}

/* Sets the point to a record. The library wants the bits that old point formats have too to be the same in both places, and the
   class to be 0 there. */
static void set_point(const struct pnet_laz_packer *p, const uint8_t *from)
{
    struct pnet_laszip_point *to = p->point;
    bool time = p->format == 1 || p->format == 3;
    if (p->format < 6) {
        memcpy(to->point10, from, POINT10);
        from += POINT10;
    } else {
        uint8_t flags = from[15];
        memcpy(to->point10, from, 14);
        to->point10[14] = flags & 0xc0; /* direction and edge of the scan */
        to->point10[15] = (uint8_t)((flags & 7) << 5);
        to->point10[17] = from[17];
        memcpy(to->point10 + 18, from + 20, 2);
        memcpy(&to->scan_angle, from + 18, 2);
        to->flags = (uint8_t)(1 | (flags >> 4 & 3) << 2 | (flags & 15) << 4);
        to->classification = from[16];
        to->returns = from[14];
        memcpy(&to->gps_time, from + 22, GPS_TIME);
        from += POINT14;
    }
    if (time) memcpy(&to->gps_time, from, GPS_TIME);
    if (time) from += GPS_TIME;
    size_t colours = p->format == 8 ? 8 : pnet_las_has_colours(p->format) ? 6 : 0;
    memcpy(to->colours, from, colours);
    size_t extra = p->record - pnet_las_format_size(p->format);
    if (extra) memcpy(to->extra, from + colours, extra);
}

enum pnet_status pnet_laz_pack(
    struct pnet_laz_packer *p, const uint8_t *records, int64_t n, struct pnet_error *e)
{
    for (int64_t i = 0; i < n; i++) {
        set_point(p, records + (size_t)i * p->record);
        if (p->l->laszip_write_point(p->writer)) return fail(p, e);
    }
    return PNET_OK;
}

/* Finds the parts of the file that the library wrote. The system may have refused a part of it, which the library does not
   say. */
static bool find_parts(const struct pnet_laz_packer *p, struct pnet_laz_packed *packed)
{
    const uint8_t *data = p->data;
    struct pnet_las_vlr v = {.at = 0};
    if (p->size < LAS_HEADER_LEAST) return false;
    uint64_t points_at = pnet_las_load(data, LAS_POINT_OFFSET, 4);
    uint64_t first = pnet_las_load(data, LAS_HEADER_SIZE, 2);
    if (pnet_las_load(data, LAS_VLR_COUNT, 4) != 1 || points_at < first + LAS_VLR_SIZE ||
        p->size - TABLE_PLACE < points_at)
        return false;
    pnet_las_next_vlr(data, 0, &v);
    if (!pnet_las_is_laszip(data, &v) || v.body + v.length != points_at) return false;
    uint64_t table = pnet_las_load(data, points_at, TABLE_PLACE);
    if (table < points_at + TABLE_PLACE || table > p->size - TABLE_PLACE) return false;
    pnet_las_store(p->data, points_at, table - points_at, TABLE_PLACE);
    *packed = (struct pnet_laz_packed){.vlr = data + v.at,
        .vlr_size = points_at - v.at,
        .points = data + points_at,
        .points_size = p->size - points_at};
    return true;
}

enum pnet_status pnet_laz_pack_end(
    struct pnet_laz_packer *p, struct pnet_laz_packed *packed, struct pnet_error *e)
{
    struct stat s;
    p->open = false;
    if (p->l->laszip_close_writer(p->writer)) return fail(p, e);
    if (fstat(p->file, &s)) return refuse(p, "a file in memory", e);
    if (s.st_size > 0) {
        void *data = mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, p->file, 0);
        if (data == MAP_FAILED) return pnet_error_memory(e);
        p->data = data;
        p->size = (size_t)s.st_size;
    }
    if (find_parts(p, packed)) return PNET_OK;
    return pnet_error_set(e, PNET_FAILED, "%.400s: LASzip %u.%u.%u wrote no whole file", p->path,
        p->l->major, p->l->minor, p->l->revision);
}

void pnet_laz_pack_free(struct pnet_laz_packer *p)
{
    if (!p) return;
    if (p->open) p->l->laszip_close_writer(p->writer);
    if (p->writer) p->l->laszip_destroy(p->writer);
    if (p->data) munmap(p->data, p->size);
    if (p->file >= 0) close(p->file);
    free(p);
}
