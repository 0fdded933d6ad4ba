/* Points far from all others, such as one at the origin among points of a national grid. An offset for all points would be as
   far from most of them as the stray is, and float32 would move these by centimetres. */
#ifndef PNET_RUNTIME_IO_STRAY_H
#define PNET_RUNTIME_IO_STRAY_H

#include "runtime/io/cloud.h"

/* A point is a stray if the gap between it and the box of most points (the core) is, along some axis, at least this wide and ten
   times as wide as the core along that axis. Within the least gap float32 is off by at most 0.06 mm. */
#define PNET_STRAY_GAP_M 2048.0

struct pnet_box {
    double low[3], high[3];
};

/* Finds the core, whose box it writes, and the strays. The core grows from the median of each axis. Without a core of more than
   half of the points there are no strays. PNET_NO_MEMORY. */
enum pnet_status pnet_strays_find(const struct pnet_cloud *c, struct pnet_box *core,
    struct pnet_strays *strays, struct pnet_error *e);

#endif
