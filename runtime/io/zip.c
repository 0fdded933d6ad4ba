#include "runtime/io/zip.h"
#include "runtime/io/format.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    COMMENT_MOST = 65535,
    DEFLATE_RATIO = 1032, /* largest factor by which the format compresses */
};

static uint64_t load(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, (size_t)bytes);
    return v;
}

/* If 32 bits are too few, a second record before the first one has 64. */
static enum pnet_status find_directory64(
    struct pnet_zip *z, uint64_t end, uint64_t *size, uint64_t *offset, struct pnet_error *e)
{
    const uint8_t *data = z->b->data;
    if (end < LOCATOR_SIZE || memcmp(data + end - LOCATOR_SIZE, "PK\6\7", 4) != 0) return PNET_OK;
    uint64_t at = load(data + end - LOCATOR_SIZE + 8, 8);
    if (at > z->b->size || z->b->size - at < END64_SIZE || memcmp(data + at, "PK\6\6", 4) != 0)
        return pnet_byte_error(z->path, end - LOCATOR_SIZE, e,
            "expected the archive's directory at %llu", (unsigned long long)at);
    z->left = load(data + at + 32, 8);
    *size = load(data + at + 40, 8);
    *offset = load(data + at + 48, 8);
    return PNET_OK;
}

enum pnet_status pnet_zip_begin(
    struct pnet_zip *z, const struct pnet_bytes *b, const char *path, struct pnet_error *e)
{
    *z = (struct pnet_zip){.b = b, .path = path, .room = PNET_ZIP_LEAST};
    if (b->size > PNET_ZIP_LEAST / PNET_ZIP_RATIO) z->room = PNET_ZIP_RATIO * (uint64_t)b->size;
    /* The record is the last one; only a comment of any text may follow it. */
    uint64_t from = b->size > END_SIZE + COMMENT_MOST ? b->size - END_SIZE - COMMENT_MOST : 0;
    uint64_t at = b->size >= END_SIZE ? b->size - END_SIZE + 1 : 0;
    while (at > from && memcmp(b->data + at - 1, "PK\5\6", 4) != 0) at--;
    if (at == from)
        return pnet_byte_error(
            path, b->size, e, "the file ends, expected the directory of a ZIP archive");
    at--;
    z->left = load(b->data + at + 10, 2);
    uint64_t size = load(b->data + at + 12, 4), offset = load(b->data + at + 16, 4);
    enum pnet_status status = find_directory64(z, at, &size, &offset, e);
    if (status != PNET_OK) return status;
    if (offset > b->size || size > b->size - offset)
        return pnet_byte_error(
            path, at, e, "the archive's directory lies beyond the end of the file");
    z->next = offset;
    z->end = offset + size;
    return PNET_OK;
}

/* Reads the 64-bit values of an entry: those whose 32-bit values are all ones, in this order. */
static void read_extra64(struct pnet_zip *z, const uint8_t *p, uint64_t length)
{
    uint64_t *const values[] = {&z->size, &z->packed, &z->header};
    while (length >= 4) {
        uint64_t id = load(p, 2), n = load(p + 2, 2);
        p += 4;
        length -= 4;
        if (n > length) return;
        if (id == 1) {
            for (int i = 0; i < 3; i++) {
                if (*values[i] != UINT32_MAX || n < 8) continue;
                *values[i] = load(p, 8);
                p += 8;
                n -= 8;
            }
            return;
        }
        p += n;
        length -= n;
    }
}

enum pnet_status pnet_zip_next(struct pnet_zip *z, bool *found, struct pnet_error *e)
{
    *found = z->left > 0;
    if (!*found) return PNET_OK;
    const uint8_t *p = z->b->data + z->next;
    if (z->end - z->next < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0)
        return pnet_byte_error(z->path, z->next, e, "expected an entry of the archive's directory");
    uint64_t name = load(p + 28, 2), extra = load(p + 30, 2), comment = load(p + 32, 2);
    if (name + extra + comment > z->end - z->next - ENTRY_SIZE)
        return pnet_byte_error(z->path, z->next, e, "the archive's directory ends within an entry");
    z->flags = (unsigned)load(p + 8, 2);
    z->method = (unsigned)load(p + 10, 2);
    z->crc = (uint32_t)load(p + 16, 4);
    z->packed = load(p + 20, 4);
    z->size = load(p + 24, 4);
    z->header = load(p + 42, 4);
    const char *text = (const char *)p + ENTRY_SIZE;
    z->name = (struct pnet_span){text, text + name};
    read_extra64(z, p + ENTRY_SIZE + name, extra);
    z->next += ENTRY_SIZE + name + extra + comment;
    z->left--;
    return PNET_OK;
}

/* Unpacks raw deflate, in pieces that fit zlib's 32-bit counters. */
static bool inflate_all(
    const uint8_t *in, uint64_t in_size, uint8_t *out, uint64_t out_size, bool *memory)
{
    const uint64_t most = UINT64_C(1) << 30;
    z_stream s;
    memset(&s, 0, sizeof s);
    *memory = inflateInit2(&s, -MAX_WBITS) != Z_OK;
    if (*memory) return false;
    uint64_t in_left = in_size, out_left = out_size;
    int code = Z_OK;
    s.next_in = (Bytef *)(uintptr_t)in;
    s.next_out = out;
    while (code == Z_OK) {
        if (!s.avail_in) {
            s.avail_in = (uInt)(in_left < most ? in_left : most);
            in_left -= s.avail_in;
        }
        if (!s.avail_out) {
            s.avail_out = (uInt)(out_left < most ? out_left : most);
            out_left -= s.avail_out;
        }
        code = inflate(&s, Z_NO_FLUSH);
    }
    *memory = code == Z_MEM_ERROR; /* zlib allocates its window here */
    bool full = code == Z_STREAM_END && !s.avail_out && !out_left;
    inflateEnd(&s);
    return full;
}

static uint32_t checksum(const uint8_t *p, uint64_t n)
{
    return (uint32_t)crc32_z(0, p, n);
}

enum pnet_status pnet_zip_member(struct pnet_zip *z, struct pnet_bytes *m, struct pnet_error *e)
{
    *m = (struct pnet_bytes){.data = NULL};
    const struct pnet_bytes *b = z->b;
    struct pnet_quote name = pnet_span_quote(z->name);
    if (z->header > b->size || b->size - z->header < LOCAL_SIZE ||
        memcmp(b->data + z->header, "PK\3\4", 4) != 0)
        return pnet_byte_error(
            z->path, z->header, e, "expected the member \"%s\" of the archive", name.text);
    if ((z->flags & 1) || (z->method != 0 && z->method != 8))
        return pnet_byte_error(z->path, z->header, e,
            "member \"%s\": expected it stored or deflated, found method %u%s", name.text,
            z->method, z->flags & 1 ? ", encrypted" : "");
    uint64_t skip =
        LOCAL_SIZE + load(b->data + z->header + 26, 2) + load(b->data + z->header + 28, 2);
    uint64_t left = b->size - z->header;
    if (skip > left || z->packed > left - skip)
        return pnet_byte_error(
            z->path, z->header, e, "member \"%s\" ends beyond the file", name.text);
    const uint8_t *data = b->data + z->header + skip;

    if (z->method == 0 ? z->size != z->packed : z->size / DEFLATE_RATIO > z->packed)
        return pnet_byte_error(z->path, z->header, e,
            "member \"%s\": %llu bytes cannot hold the %llu it claims", name.text,
            (unsigned long long)z->packed, (unsigned long long)z->size);
    uint8_t *copy = NULL;
    bool memory = false;
    if (z->method == 8) {
        if (z->size > z->room)
            return pnet_byte_error(z->path, z->header, e,
                "member \"%s\" unpacks to %llu bytes: the members of an archive of %zu may have "
                "%llu more; save it without compression",
                name.text, (unsigned long long)z->size, b->size, (unsigned long long)z->room);
        z->room -= z->size;
        enum pnet_status status = pnet_bytes_fit(z->path, z->size, e);
        if (status != PNET_OK) return status;
        copy = malloc(z->size ? z->size : 1);
        if (!copy) return pnet_error_memory(e);
        bool whole = inflate_all(data, z->packed, copy, z->size, &memory);
        data = copy;
        if (!whole) goto damaged;
    }
    if (checksum(data, z->size) != z->crc) goto damaged;
    *m = (struct pnet_bytes){.data = data, .size = z->size, .borrowed = !copy};
    return PNET_OK;
damaged:
    free(copy);
    if (memory) return pnet_error_memory(e);
    return pnet_byte_error(z->path, z->header, e, "member \"%s\" is damaged", name.text);
}
