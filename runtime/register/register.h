/* From features to a pose: correspondences, RANSAC, and what they are worth (docs/registration.md).

   Clouds are xyz [rows, 3] in metres, features [rows, width]. Nothing here allocates: callers hand in workspaces,
   aligned to 64, of the bytes the *_work functions give. All use OpenMP's current number of threads and give the same
   bits for any. */
#ifndef PNET_RUNTIME_REGISTER_H
#define PNET_RUNTIME_REGISTER_H

#include "kernels/philox.h"
#include "runtime/register/register_rigid.h"

#include <stddef.h>

/* `count` of the rows 0 .. rows-1 (all where there are not more), each set as likely as any other, ascending: into
   row[count]. Returns how many. */
size_t pnet_register_draw_work(int64_t rows);
int64_t pnet_register_draw(
    int64_t rows, int64_t count, const struct pnet_rand *rand, int32_t *row, void *work);

/* One side of a matching: the rows `row[count]` of a cloud's features. */
struct pnet_described {
    const float *features;
    int32_t width;
    const int32_t *row;
    int64_t count;
    const float *xyz; /* of the rows of the cloud; NULL unless what is chosen is asked for */
};

/* Which target rows the drawn source rows are nearest to, before anything is left out: of how many different ones, and
   how many source rows have the same as the drawn source row nearest to them in space (lowest row among equals). */
struct pnet_register_choice {
    int64_t distinct, shared;
};

/* Each drawn source row with the target row nearest in feature space (Euclidean; lowest row among equals); with
   `mutual` only where the source row is the nearest of the target row in turn. Into pairs[source->count], source rows
   ascending; returns how many. `chosen` is NULL where it is not asked for. */
size_t pnet_register_match_work(int64_t source_count, int64_t target_count, int32_t width);
int64_t pnet_register_match(const struct pnet_described *source,
    const struct pnet_described *target, bool mutual, struct pnet_match *pairs,
    struct pnet_register_choice *chosen, void *work);

/* RANSAC after Fischler and Bolles (1981), with the checks of Open3D's registration_ransac_based_on_correspondence. */
struct pnet_ransac {
    double distance;    /* metres: a pair within it after the pose is an inlier */
    int64_t iterations; /* hypotheses: 50,000 in the papers */
    int points;         /* pairs of a hypothesis: 3 or 4 */
    double
        similarity; /* edges between its points keep their length but for this factor: 0.9; 0: no check */
    double
        confidence; /* stop when an unseen better pose is less likely than 1 - confidence; 0: never before the end */
    struct pnet_rand rand;
};

struct pnet_ransac_result {
    double pose[16];    /* T_target_source; the identity where !found */
    bool found;         /* some hypothesis stood the checks */
    int64_t inliers;    /* pairs */
    double rmse;        /* of the inliers, metres */
    int64_t iterations; /* done */
};

/* The hypothesis with the most inliers, then the least sum of their squared distances, then the first, refitted on
   its inliers as long as that makes it better. */
size_t pnet_register_ransac_work(int64_t pair_count);
void pnet_register_ransac(int64_t pair_count, const struct pnet_match *pairs, const float *source,
    const float *target, const struct pnet_ransac *o, struct pnet_ransac_result *r, void *work);

/* Iterated closest points (Besl and McKay 1992; to planes: Chen and Medioni 1991). */
struct pnet_icp {
    double distance; /* metres: pairs farther apart do not count */
    int iterations;  /* at most */
    bool
        planes; /* distances to the target's tangent planes, from the normals of `neighbours` points */
    int neighbours; /* of a normal, the point itself among them */
};

struct pnet_icp_result {
    double pose[16];
    int64_t inliers; /* source points with a target point within the distance, at the end */
    double rmse;     /* of their distances, metres */
    int iterations; /* done: ends where the pose stands still (1e-6 of a degree and of the distance) */
};

size_t pnet_register_icp_work(int64_t source_rows, int64_t target_rows, const struct pnet_icp *o);
/* `pose` is where it begins. Directions that the points leave open (a single plane, a corridor) are not moved in. */
void pnet_register_icp(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], const struct pnet_icp *o, struct pnet_icp_result *r,
    void *work);

/* Relative rotation error in degrees, arccos((trace(R_true^T R) - 1) / 2), and relative translation error in metres,
   |t - t_true| (Ma et al. 2016; all registration papers since). */
void pnet_register_error(
    const double truth[16], const double pose[16], double *rre_deg, double *rte_m);

/* How many pairs lie within `distance` after `pose`: over the number of pairs that is the inlier ratio, with the true
   pose, 10 cm and more than 5 % the condition of feature-match recall (Deng, Birdal, Ilic, PPFNet, 2018). */
int64_t pnet_register_inliers(int64_t count, const struct pnet_match *pairs, const float *source,
    const float *target, const double pose[16], double distance);

/* The pairs that lie within `distance` after `pose`, moved to the front in their order: how many, and the root of the
   mean of their squared distances in metres (NaN where there are none). */
int64_t pnet_register_right(int64_t count, struct pnet_match *pairs, const float *source,
    const float *target, const double pose[16], double distance, double *rms_m);

/* How well apart the source points of pairs lie for a rotation to be fitted to them: the root of the harmonic mean of
   their mean squared distances, in metres, from the three principal axes through their middle, which it writes too.
   0 on a line. Were the pairs' errors independent and alike in all directions, of root mean square e, the fit would
   turn by e / (spread sqrt(count)) radians and move the middle by e / sqrt(count), root mean square: the rotation's
   covariance is e^2 / 3 times the inverse of the points' inertia. (The middle moves so whatever the directions.) */
double pnet_register_spread(
    int64_t count, const struct pnet_match *pairs, const float *source, double middle[3]);

/* The root of the mean over ground-truth correspondences of |T p - T_true p|^2: the condition of registration recall
   (Choi, Zhou, Koltun 2015: below 0.2 m). Correspondences are the source points with a target point within `distance`
   after the true pose; NaN where there are none. */
size_t pnet_register_rmse_work(int64_t source_rows, int64_t target_rows);
double pnet_register_rmse(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double truth[16], const double pose[16], double distance,
    void *work);

/* The share of the source points with a target point within `distance` after the pose; 0 of none. `work` as for the above. */
double pnet_register_overlap(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], double distance, void *work);

/* pnet_register_rmse from the 6x6 information matrix of a gt.info file, as GeoTransformer's and Predator's evaluation computes
   it: sqrt(e^T C e / C[0][0]) with e the translation and the vector part of the unit quaternion (half the angle) of
   T_true^-1 T. */
double pnet_register_info_rmse(
    const double info[36], const double truth[16], const double pose[16]);

#endif
