#include "runtime/io/lzf.h"

#include <string.h>

bool pnet_lzf_unpack(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    const uint8_t *end = in + in_size;
    size_t done = 0;
    while (in < end) {
        unsigned control = *in++;
        if (control < 32) { /* control + 1 bytes follow as they are */
            size_t n = control + 1;
            if (n > (size_t)(end - in) || n > out_size - done) return false;
            memcpy(out + done, in, n);
            in += n;
            done += n;
            continue;
        }
        size_t n = control >> 5;
        if (n == 7) {
            if (in == end) return false;
            n += *in++;
        }
        n += 2;
        if (in == end) return false;
        size_t back = ((size_t)(control & 31) << 8 | *in++) + 1;
        if (back > done || n > out_size - done) return false;
        /* The copy may read bytes that it has just written: this repeats them. */
        for (size_t i = 0; i < n; i++) out[done + i] = out[done + i - back];
        done += n;
    }
    return done == out_size;
}
