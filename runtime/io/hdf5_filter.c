/* The filters of packed chunks. Those of the library trust what a file says of sizes: chunks of damaged files could end the
   program. */
#include "runtime/io/hdf5_filter.h"
#include "runtime/io/lzf.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

bool pnet_hdf5_filter_known(int filter)
{
    return filter == PNET_HDF5_DEFLATE || filter == PNET_HDF5_SHUFFLE ||
           filter == PNET_HDF5_FLETCHER32 || filter == PNET_HDF5_LZF;
}

/* Returns the checksum that HDF5 keeps: Fletcher's, of words of 16 bits that begin with their high byte (J. Fletcher, An
   arithmetic checksum for serial transmissions, 1982). */
static uint32_t fletcher32(const uint8_t *data, size_t size)
{
    uint64_t low = 0, high = 0;
    for (size_t i = 0; i < size; i += 2) {
        low += (uint64_t)data[i] << 8 | (i + 1 < size ? data[i + 1] : 0);
        high += low;
        /* Sums to 65535 and not to 0, as folding the carry gives them; 64 bits hold 2^20 words without it. */
        if (i % (1 << 21) == 0 || i + 2 >= size) {
            while (low >> 16) low = (low & 0xffff) + (low >> 16);
            while (high >> 16) high = (high & 0xffff) + (high >> 16);
        }
    }
    return (uint32_t)(high << 16 | low);
}

/* The checksum follows the bytes. Versions before 1.6.3 swapped the bytes of both sums. */
static bool check_fletcher32(const uint8_t *data, size_t *size)
{
    uint32_t kept;
    if (*size < sizeof kept) return false;
    *size -= sizeof kept;
    memcpy(&kept, data + *size, sizeof kept);
    uint32_t sum = fletcher32(data, *size);
    return kept == sum || kept == ((sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff));
}

/* Puts the bytes of each item together: first bytes come first, then second ones. Rests of an item stay. */
static void unshuffle(const uint8_t *from, size_t size, unsigned item, uint8_t *to)
{
    size_t count = item ? size / item : 0;
    for (size_t k = 0; count && k < item; k++)
        for (size_t i = 0; i < count; i++) to[i * item + k] = from[k * count + i];
    memcpy(to + count * item, from + count * item, size - count * item);
}

/* Returns the number of bytes that the chunk unpacks to, at most `most`; 0: it is damaged, or, with *memory, memory is out. */
static size_t inflate_chunk(
    const uint8_t *from, size_t size, uint8_t *to, size_t most, bool *memory)
{
    z_stream s;
    memset(&s, 0, sizeof s);
    if (size > UINT32_MAX || most > UINT32_MAX) return 0;
    *memory = inflateInit(&s) != Z_OK;
    if (*memory) return 0;
    s.next_in = (Bytef *)(uintptr_t)from;
    s.avail_in = (uInt)size;
    s.next_out = to;
    s.avail_out = (uInt)most;
    int code = inflate(&s, Z_FINISH);
    *memory = code == Z_MEM_ERROR;
    size_t got = code == Z_STREAM_END ? most - s.avail_out : 0;
    inflateEnd(&s);
    return got;
}

const uint8_t *pnet_hdf5_unpack(
    struct pnet_hdf5_pipeline *p, const uint8_t *data, size_t size, unsigned left_out, bool *memory)
{
    *memory = false;
    for (int i = p->count - 1; i >= 0; i--) {
        uint8_t *to = data == p->buffers[0] ? p->buffers[1] : p->buffers[0];
        if (left_out >> i & 1) continue;
        switch (p->filters[i].id) {
        case PNET_HDF5_FLETCHER32:
            if (!check_fletcher32(data, &size)) return NULL;
            continue;
        case PNET_HDF5_SHUFFLE:
            if (size > p->room) return NULL;
            unshuffle(data, size, p->filters[i].value, to);
            break;
        case PNET_HDF5_LZF:
            if (!pnet_lzf_unpack(data, size, to, p->size)) return NULL;
            size = p->size;
            break;
        default:
            size = inflate_chunk(data, size, to, p->room, memory);
            if (!size) return NULL;
        }
        data = to;
    }
    return size == p->size ? data : NULL;
}

bool pnet_hdf5_pipeline_begin(struct pnet_hdf5_pipeline *p, size_t size)
{
    p->size = size;
    p->room = size + 4 * PNET_HDF5_FILTERS_MOST; /* each may have added a checksum */
    for (int i = 0; i < 2; i++) p->buffers[i] = malloc(p->room);
    if (p->buffers[0] && p->buffers[1]) return true;
    pnet_hdf5_pipeline_end(p);
    return false;
}

void pnet_hdf5_pipeline_end(struct pnet_hdf5_pipeline *p)
{
    for (int i = 0; i < 2; i++) {
        free(p->buffers[i]);
        p->buffers[i] = NULL;
    }
}
