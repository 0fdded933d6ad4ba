/* Pairs made of one cloud: two views of it under a random pose. An entry of a data set says how:

     {cloud: scan.bin, views: {count: 4, overlap: [50%, 90%], points: [40%, 80%], noise: 1cm}}

     count: 4              # pairs of each cloud (1)
     overlap: [50%, 90%]   # share of a view that the other one covers (all): each view is the part
                           # of the cloud on one side of a plane of random direction
     disjoint: yes         # no point of the cloud is in both views (no)
     points: [40%, 80%]    # share of its points that each view keeps, drawn by itself (all)
     noise: 1cm            # normal noise on each coordinate of each view, cut at 3 sigma (0)
     rotate: z             # the source is turned about the centroid, as in augment.h (xyz)
     shift: 2m             # and then moved, by at most this along each axis (0)
     level: yes            # the plane is vertical: views of scans, whose z points up (no)
     seed: 1               # of the views that evaluation sees (1)

   Training draws other views each epoch, from the seed of the run. Evaluation always sees the same
   ones, whatever the run: its draws depend on the seed above, the split and the number of the
   entry. The target keeps the coordinates of the cloud. */
#ifndef PNET_RUNTIME_AUGMENT_VIEWS_H
#define PNET_RUNTIME_AUGMENT_VIEWS_H

#include "runtime/data/augment.h"
#include "runtime/data/dataset_pose.h"

struct pnet_views {
    int64_t count;
    double overlap[2], points[2]; /* from, to */
    bool disjoint, level;
    double noise_m, shift_m;
    enum pnet_rotate rotate;
    double angle_deg[3]; /* PNET_ROTATE_ANGLES */
    uint64_t seed;
};

/* Reads a `views:` block; errors stick to `y`. */
void pnet_views_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_views *v);

/* The stream of random numbers from which views are drawn. */
struct pnet_views_draw {
    uint64_t seed;
    uint32_t epoch, sample;
};
/* Returns the stream of evaluation for an entry of a split. */
struct pnet_views_draw pnet_views_fixed(const struct pnet_views *v, int split, uint32_t sample);

/* Makes the views. Both samples hold the whole cloud, with the same rows; `pose` gets the map from the source to the target.
   Each view keeps at least one point. PNET_NO_MEMORY. */
enum pnet_status pnet_views_apply(const struct pnet_views *v, const struct pnet_views_draw *draw,
    struct pnet_sample *source, struct pnet_sample *target, struct pnet_pose *pose,
    struct pnet_error *e);

#endif
