/* What a set between points is made of. */
#ifndef PNET_LIBRARY_SET_POINTS_H
#define PNET_LIBRARY_SET_POINTS_H

#include "library/points.h"
#include "library/set.h"

/* `coarse` has the centres, `fine` the neighbours; they may be the same. `up`: outputs are the fine side. */
struct pnet_between {
    struct pnet_neighbourhood nb;
    const struct pnet_points *coarse, *fine;
    bool up;
};

/* GPU. Makes the forms of a set whose home and sides are known. What it takes belongs to the set, also after a failure. */
enum pnet_status pnet_set_points_on_gpu(
    struct pnet_set *s, const struct pnet_between *b, struct pnet_error *e);

#endif
