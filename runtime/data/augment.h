/* Augmentation: random changes of a sample, for training. In the order they are applied:

     augment:
       crop: {points: 20000}  # the points nearest to a random one; {radius: 3m}: in a ball
       drop_points: 10%       # leaves each point out with this probability; one always stays
       elastic: {granularity: 20cm, magnitude: 40cm}  # or a list of them; see below
       flip: [x, y]           # mirrors each of these axes with probability 1/2
       rotate: z              # any angle about z; xyz: any rotation; [5, 5, 180]: up to so
                              # many degrees either way about x, then y, then z
       scale: [0.9, 1.1]      # one factor, uniform between the two
       jitter: 5mm            # normal noise on each coordinate, cut at 3 sigma
       colour: {drop: 20%, shift: 0.05, jitter: 0.01}

   Flips, rotations and scales are about the centroid of the points: the coordinates stay small, and
   networks whose geometry is made of differences see no more than another placing of the grid. A
   feature field called `normal` of width 3 is flipped and rotated along. `colour` acts on fields of
   width 3 called `rgb`, `color` or `colour`, in the units of the feature: drop makes all of them 0
   with this probability, shift adds a uniform number to each channel of the cloud, jitter normal
   noise to each value.

   Elastic distortion (Simard, Steinkraus, Platt, ICDAR 2003; on points as in the SparseConvNet and
   MinkowskiEngine examples): standard normal noise on a lattice of `granularity` metres, smoothed
   by two box filters of width 3 along each axis, interpolated linearly and multiplied by
   `magnitude` metres.

   For a pair everything is drawn for each cloud, except the flips and the scale, which are
   drawn once for both: the pose is changed accordingly and stays rigid. Pairs have no elastic distortion.

   The clouds of a completion data set stay in one frame: flips, rotation and scale are the same for both, about the origin of
   their coordinates. `flip: [x, z]` is what PCN does. drop_points, jitter and colour change the partial cloud alone; crop and
   elastic are not for completion.

   All randomness is a function of (seed, epoch, sample, element): the same sample of the same epoch
   has the same bits, on any thread. */
#ifndef PNET_RUNTIME_AUGMENT_H
#define PNET_RUNTIME_AUGMENT_H

#include "runtime/data/dataset_pose.h"
#include "runtime/base/error.h"
#include "runtime/data/sample.h"
#include "runtime/base/yaml.h"

#include <stdbool.h>
#include <stdint.h>

enum { PNET_MAX_ELASTIC = 4 };

enum pnet_rotate { PNET_ROTATE_NONE, PNET_ROTATE_Z, PNET_ROTATE_XYZ, PNET_ROTATE_ANGLES };

struct pnet_elastic {
    double granularity_m, magnitude_m;
};

/* Zeroed: nothing changes. */
struct pnet_augment {
    int64_t crop_points; /* 0: none */
    double crop_radius_m;
    double drop_points; /* probability */
    struct pnet_elastic elastic[PNET_MAX_ELASTIC];
    int elastic_count;
    bool flip[3];
    enum pnet_rotate rotate;
    double angle_deg[3]; /* ANGLES */
    double scale[2];     /* from, to; both 0: none */
    double jitter_m;
    double colour_drop, colour_shift, colour_jitter;
};

/* Reads an `augment:` block into the zeroed `a`; errors stick to `y`. */
void pnet_augment_parse(
    struct pnet_yaml *y, const struct pnet_yaml_node *n, struct pnet_augment *a);
/* Reads the value of `rotate`. Sets angle_deg for PNET_ROTATE_ANGLES. */
void pnet_rotate_parse(struct pnet_yaml *y, const struct pnet_yaml_node *n,
    enum pnet_rotate *rotate, double angle_deg[3]);
/* Tells whether the augmentation changes anything. */
bool pnet_augment_any(const struct pnet_augment *a);

/* Changes the sample in place. PNET_NO_MEMORY; PNET_USAGE if a granularity is too fine for the extent of the cloud. */
enum pnet_status pnet_augment_apply(const struct pnet_augment *a, uint64_t seed, uint32_t epoch,
    uint32_t sample, struct pnet_sample *s, struct pnet_error *e);
/* Changes the clouds of a pair, without elastic distortion. *pose, from the source to the target, is updated by the motions
   of both. PNET_NO_MEMORY. */
enum pnet_status pnet_augment_pair(const struct pnet_augment *a, uint64_t seed, uint32_t epoch,
    uint32_t sample, struct pnet_sample *source, struct pnet_sample *target, struct pnet_pose *pose,
    struct pnet_error *e);
/* Changes the clouds of a completion entry, without crop and elastic distortion: both move alike. PNET_NO_MEMORY. */
enum pnet_status pnet_augment_partial(const struct pnet_augment *a, uint64_t seed, uint32_t epoch,
    uint32_t sample, struct pnet_sample *partial, struct pnet_sample *full, struct pnet_error *e);
/* Keeps a random subset of `most` points if there are more; every point is equally likely, and order stays. PNET_NO_MEMORY. */
enum pnet_status pnet_sample_limit(int64_t most, uint64_t seed, uint32_t epoch, uint32_t sample,
    struct pnet_sample *s, struct pnet_error *e);
/* Does the same with each cloud of a pair. */
enum pnet_status pnet_pair_limit(int64_t most, uint64_t seed, uint32_t epoch, uint32_t sample,
    struct pnet_sample *source, struct pnet_sample *target, struct pnet_error *e);

#endif
