#include "runtime/data/lowest.h"

#include <string.h>

/* Maps doubles to integers of the same order. */
static uint64_t key_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double value_of(uint64_t key)
{
    uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Finds the bytes of the key from the highest on: each pass counts the next byte of the keys that begin as it does. */
double pnet_cloud_lowest(const struct pnet_cloud *c)
{
    int64_t rank = (c->rows - 1) / 100;
    uint64_t begin = 0;
    for (int shift = 56; shift >= 0 && c->rows; shift -= 8) {
        int64_t counts[256] = {0};
        uint64_t byte = 0;
        for (int64_t i = 0; i < c->rows; i++) {
            uint64_t key = key_of(pnet_cloud_at(c, i, 2));
            counts[key >> shift & 255] += key >> shift >> 8 == begin;
        }
        while (rank >= counts[byte]) rank -= counts[byte++];
        begin = begin << 8 | byte;
    }
    return c->rows ? value_of(begin) : 0;
}
