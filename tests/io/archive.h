/* NPY arrays and NPZ archives put together in memory, for tests. */
#ifndef PNET_TESTS_IO_ARCHIVE_H
#define PNET_TESTS_IO_ARCHIVE_H

#include "tests/io/files.h"

#include <zlib.h>

/* A growing file in memory. */
struct buffer {
    uint8_t data[1 << 16];
    size_t size;
};

static inline void put(struct buffer *b, const void *data, size_t size)
{
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void put_number(struct buffer *b, uint64_t v, size_t bytes)
{
    put(b, &v, bytes);
}

/* An NPY file: version, the dictionary, the data. */
static inline void put_npy(
    struct buffer *b, int version, const char *dictionary, const void *data, size_t size)
{
    put(b, "\x93NUMPY", 6);
    put_number(b, (uint64_t)version, 2);
    put_number(b, strlen(dictionary), version == 1 ? 2 : 4);
    put(b, dictionary, strlen(dictionary));
    put(b, data, size);
}

#define DICT(type, order, shape)                                                                   \
    "{'descr': " type ", 'fortran_order': " order ", 'shape': " shape ", }\n"

struct entry {
    const char *name;
    int deflated;
    struct buffer content;
    uint32_t at, packed, crc;
};

static inline void put_member(struct buffer *b, struct entry *m)
{
    static uint8_t packed[1 << 16];
    z_stream s = {.next_in = m->content.data,
        .avail_in = (uInt)m->content.size,
        .next_out = packed,
        .avail_out = sizeof packed};
    deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    CHECK(deflate(&s, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&s);
    m->at = (uint32_t)b->size;
    m->crc = (uint32_t)crc32(0, m->content.data, (uInt)m->content.size);
    m->packed = m->deflated ? (uint32_t)s.total_out : (uint32_t)m->content.size;
    put(b, "PK\3\4\x14\0\0\0", 8);
    put_number(b, m->deflated ? 8 : 0, 6); /* method, time, date */
    put_number(b, m->crc, 4);
    put_number(b, m->packed, 4);
    put_number(b, m->content.size, 4);
    put_number(b, strlen(m->name), 4); /* no extra */
    put(b, m->name, strlen(m->name));
    put(b, m->deflated ? packed : m->content.data, m->packed);
}

/* With `wide` sizes and offset stand in the 64-bit extension, as numpy writes them. */
static inline void put_archive(struct buffer *b, struct entry *m, int count, int wide)
{
    for (int i = 0; i < count; i++) put_member(b, &m[i]);
    size_t start = b->size;
    for (int i = 0; i < count; i++) {
        put(b, "PK\1\2\x14\0\x14\0\0\0", 10);
        put_number(b, m[i].deflated ? 8 : 0, 6);
        put_number(b, m[i].crc, 4);
        put_number(b, wide ? UINT32_MAX : m[i].packed, 4);
        put_number(b, wide ? UINT32_MAX : m[i].content.size, 4);
        put_number(b, strlen(m[i].name), 2);
        put_number(b, wide ? 28 : 0, 2);
        put_number(b, 0, 8);
        put_number(b, 0, 2);
        put_number(b, wide ? UINT32_MAX : m[i].at, 4);
        put(b, m[i].name, strlen(m[i].name));
        if (!wide) continue;
        put_number(b, 1 | 24 << 16, 4);
        put_number(b, m[i].content.size, 8);
        put_number(b, m[i].packed, 8);
        put_number(b, m[i].at, 8);
    }
    size_t end = b->size;
    put(b, "PK\5\6\0\0\0\0", 8);
    put_number(b, (uint64_t)count, 2);
    put_number(b, (uint64_t)count, 2);
    put_number(b, end - start, 4);
    put_number(b, start, 4);
    put(b, "\x05\0hello", 7); /* a comment */
}

#endif
