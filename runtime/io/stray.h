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

/* Calls `see` with each point that is kept, in the order of the file: its row there, and its coordinates in metres. Ends early
   where `see` returns false. The errors are those of `points`. */
typedef bool pnet_see_point(void *to, int64_t file_row, const double v[3]);
typedef enum pnet_status pnet_walk(
    void *points, pnet_see_point *see, void *to, struct pnet_error *e);
/* Walks a cloud, `points` is a const struct pnet_cloud. */
enum pnet_status pnet_cloud_walk(void *points, pnet_see_point *see, void *to, struct pnet_error *e);

/* Finds the core, whose box it writes, and the strays. The core grows from the median of each axis. Without a core of more than
   half of the points there are no strays. PNET_NO_MEMORY, and errors of `walk`. */
enum pnet_status pnet_strays_find(pnet_walk *walk, void *points, struct pnet_box *core,
    struct pnet_strays *strays, struct pnet_error *e);

#endif
