#include "runtime/plan/frame.h"

#include <math.h>
#include <string.h>

void pnet_frame_add(struct pnet_frame *f, const float *xyz, int64_t rows, const double offset[3])
{
    struct pnet_frame one = {.clouds = 1,
        .boxed = true,
        .low = {INFINITY, INFINITY, INFINITY},
        .high = {-INFINITY, -INFINITY, -INFINITY},
        .offset_known = true};
    if (!rows) return;
    for (int64_t i = 0; i < 3 * rows; i++) {
        double v = (double)xyz[i];
        one.low[i % 3] = v < one.low[i % 3] ? v : one.low[i % 3];
        one.high[i % 3] = v > one.high[i % 3] ? v : one.high[i % 3];
    }
    for (int a = 0; a < 3; a++) one.most = fmax(one.most, one.high[a] - one.low[a]);
    one.least = one.most;
    memcpy(one.offset, offset, sizeof one.offset);
    pnet_frame_merge(f, &one);
}

void pnet_frame_merge(struct pnet_frame *f, const struct pnet_frame *more)
{
    if (!more->clouds) return;
    if (!f->clouds) {
        *f = *more;
        return;
    }
    f->clouds += more->clouds;
    f->boxed = f->boxed && more->boxed;
    for (int a = 0; a < 3; a++) {
        f->low[a] = fmin(f->low[a], more->low[a]);
        f->high[a] = fmax(f->high[a], more->high[a]);
    }
    f->least = fmin(f->least, more->least);
    f->most = fmax(f->most, more->most);
    f->offset_known = f->offset_known && more->offset_known;
    if (f->offsets_differ) return;
    bool differs = memcmp(f->offset, more->offset, sizeof f->offset) != 0;
    f->offsets_differ = differs || more->offsets_differ;
    memcpy(f->other, differs ? more->offset : more->other, sizeof f->other);
}
