/* Synthetic data sets: labelled clouds of objects with known geometry, for examples, tests and first steps. Nothing is
   downloaded, and the same seed gives the same bits. */
#ifndef PNET_RUNTIME_SYNTH_H
#define PNET_RUNTIME_SYNTH_H

#include "runtime/io/cloud.h"
#include "runtime/data/dataset_pose.h"
#include "runtime/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum pnet_synth_kind {
    PNET_SYNTH_SHAPES, /* classification: single objects, extent 1 to 2 m; fields nx ny nz (f32) */
    PNET_SYNTH_ROOMS, /* segmentation: furnished rooms, corner at the origin, floor at z = 0; fields
                         red green blue (u8), label (u8) */
    PNET_SYNTH_LIDAR, /* segmentation: one turn of a spinning scanner in a street, the scanner at
                         the origin, x ahead; fields intensity (f32, 0 to 1), ring (u8), label (u8)
                       */
    PNET_SYNTH_PAIRS, /* registration: two views of a room, or two scans of a street, each in a frame
                         of its own; fields as of those */
    PNET_SYNTH_PARTIAL, /* completion: the objects of shapes, stretched, whole and without flaws. The full
                           cloud is drawn from the surface; its mean is the origin, its farthest point
                           1 away. The partial cloud is what the depth camera of PCN sees from any side
                           (runtime/data/surface.h), with the distance 2 */
    PNET_SYNTH_KINDS,
};

/* Zero means the default for every member. */
struct pnet_synth_options {
    int64_t
        points;   /* a cloud, 64 to 4e9; shapes: drawn from 1024 .. 2048, rooms: 16384, partial: of
                       the full cloud, 16384, lidar:
                       what 0.25 degrees give (about 75,000). What comes out differs by less than
                       20%, or by one firing of all beams */
    float room_m; /* rooms: mean edge of a room, 2.5 to 12 m (4.5) */
    int64_t room_points; /* rooms: a cloud of more points than this is a floor of several rooms
                            (1,000,000) */
    int beams;           /* lidar: 1 to 128 (64), from 15 degrees up to 25 degrees down, ring 0
                             on top */
    float azimuth_deg;   /* lidar: between two firings (0.25); not together with `points` */
    bool any_rotation;   /* shapes: turned about any axis, not about z alone; pairs: frames too;
                            partial: turned about any axis, not upright */
    bool street;         /* pairs: two scans of a street, some metres apart, instead of a room */
    bool clean;  /* exact surfaces: no noise, no drop-outs; shapes: nothing cut off, stretched,
                    turned or added either; partial: not stretched */
    int threads; /* all processors; changes no bit of the result */
};

struct pnet_synth {
    enum pnet_synth_kind kind;
    const char *folder; /* made if it does not exist */
    int64_t count;      /* clouds, 1 to 2^32 - 1 */
    uint64_t seed;
    bool replace; /* replaces a data set in the folder; without it, such a folder is refused */
    struct pnet_synth_options options;
    /* Called after each cloud, never by two threads at once; false stops with PNET_INTERRUPTED. May
       be NULL. */
    bool (*progress)(void *context, int64_t done, int64_t count);
    void *context;
};

/* Returns "shapes", "rooms", "lidar", "pairs" or "partial"; NULL from PNET_SYNTH_KINDS on. */
const char *pnet_synth_kind_name(enum pnet_synth_kind kind);
/* Returns the names of the classes, by label; `count` gets their number, 0 for pairs. */
const char *const *pnet_synth_classes(enum pnet_synth_kind kind, int *count);

/* Makes cloud `index` of the data set (kind, seed, options), with the same bits whatever the number of clouds or threads.
   Overwrites `c`, which the caller frees; empty on failure. `label` (or NULL) gets the class of a cloud of shapes, else -1;
   each class occurs once in every run of as many clouds as there are classes. PNET_USAGE: options out of range, or pairs
   of clouds;
   PNET_NO_MEMORY. */
enum pnet_status pnet_synth_make(enum pnet_synth_kind kind, uint64_t seed, uint32_t index,
    const struct pnet_synth_options *options, struct pnet_cloud *c, int *label,
    struct pnet_error *e);

/* The same for pairs. `pose` maps the source onto the target. Sampling, noise and what is hidden
   are each view's own; of rooms at least 30% of the source is seen in the target (within 10 cm, or
   12 m / sqrt(points)), unless eight tries found no such views. */
struct pnet_synth_pair {
    struct pnet_cloud source, target;
    struct pnet_pose pose;
};
enum pnet_status pnet_synth_make_pair(uint64_t seed, uint32_t index,
    const struct pnet_synth_options *options, struct pnet_synth_pair *p, struct pnet_error *e);
void pnet_synth_pair_free(struct pnet_synth_pair *p);

/* The same for completion: the source is the partial cloud, the target the full one, the pose the identity. `label` gets the
   class. */
enum pnet_status pnet_synth_make_partial(uint64_t seed, uint32_t index,
    const struct pnet_synth_options *options, struct pnet_synth_pair *p, int *label,
    struct pnet_error *e);

/* Writes `count` clouds to FOLDER/train, val and test, as PLY, then the index FOLDER/dataset.yaml:
   of ten clouds eight, one and one (of 3 to 9 clouds the last two are val and test; fewer are all
   train). Pairs are NUMBER_source.ply and NUMBER_target.ply, or NUMBER_partial.ply and NUMBER_full.ply. A folder with an
   index is complete; where one is already there: PNET_USAGE, or with `replace` the new set takes the place of the older one
   (synth_replace.h). Where a cloud without an index is in the way: PNET_USAGE, or with `replace` it is written over. A set that
   fails or is interrupted leaves no cloud of its own, and the older set as it was. */
enum pnet_status pnet_synth_generate(const struct pnet_synth *s, struct pnet_error *e);

#endif
