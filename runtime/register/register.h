/* From features to a pose: correspondences, RANSAC, and measures of their quality (docs/registration.md).

   Clouds are xyz [rows, 3] in metres, features [rows, width]. No function allocates: callers pass workspaces, aligned to 64,
   with the bytes that the *_work functions return. All functions use OpenMP's current number of threads; the results have
   the same bits for any number. */
#ifndef PNET_RUNTIME_REGISTER_H
#define PNET_RUNTIME_REGISTER_H

#include "kernels/philox.h"
#include "runtime/register/register_rigid.h"

#include <stddef.h>

/* Draws `count` of the rows 0 .. rows-1, or all rows if there are not more, into row[count], ascending. Every set is equally
   likely. Returns the number of rows drawn. */
size_t pnet_register_draw_work(int64_t rows);
int64_t pnet_register_draw(
    int64_t rows, int64_t count, const struct pnet_rand *rand, int32_t *row, void *work);

/* One side of a matching: rows `row[count]` of a cloud's features. */
struct pnet_described {
    const float *features;
    int32_t width;
    const int32_t *row;
    int64_t count;
    const float *xyz; /* of the rows of the cloud; may be NULL if `chosen` is NULL */
};

/* The target rows that the drawn source rows are nearest to, before any pair is left out: how many different target rows,
   and how many source rows share theirs with the drawn source row nearest to them in space (lowest row among equals). */
struct pnet_register_choice {
    int64_t distinct, shared;
};

/* Pairs each drawn source row with the target row nearest to it in feature space (Euclidean; lowest row among equals); with
   `mutual` only if the source row is also the nearest to that target row. Writes pairs[source->count], source rows
   ascending, and returns their number. `chosen` may be NULL. */
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
        /* if > 0, the ratio of the lengths of corresponding edges is at least this, 0.9; 0: no check */
        similarity;
    double
        /* stop when the chance of having missed a better pose is below 1 - confidence; 0: never stop early */
        confidence;
    struct pnet_rand rand;
};

struct pnet_ransac_result {
    double pose[16];    /* T_target_source; the identity where !found */
    bool found;         /* some hypothesis passed the checks */
    int64_t inliers;    /* pairs */
    double rmse;        /* of the inliers, metres */
    int64_t iterations; /* hypotheses tried */
};

/* Finds the hypothesis with the most inliers; among equals the one with the least sum of their squared distances, then the
   first one. Refits the pose on its inliers as long as that improves it. */
size_t pnet_register_ransac_work(int64_t pair_count);
void pnet_register_ransac(int64_t pair_count, const struct pnet_match *pairs, const float *source,
    const float *target, const struct pnet_ransac *o, struct pnet_ransac_result *r, void *work);

/* Iterative closest point (Besl and McKay 1992; to planes: Chen and Medioni 1991). */
struct pnet_icp {
    double distance; /* metres: pairs farther apart do not count */
    int iterations;  /* at most */
    bool
        planes; /* distances to the target's tangent planes, from the normals of `neighbours` points */
    int neighbours; /* points from which a normal is computed, including the point itself */
};

struct pnet_icp_result {
    double pose[16];
    int64_t inliers; /* source points that have a target point within the distance, at the end */
    double rmse;     /* of their distances, metres */
    /* done; stops early if the pose changes by less than 1e-6 of a degree and of the distance */
    int iterations;
};

size_t pnet_register_icp_work(int64_t source_rows, int64_t target_rows, const struct pnet_icp *o);
/* `pose` holds the initial pose, then the result. Motions that the points do not determine (along a single plane, along a
   corridor) are left out. */
void pnet_register_icp(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], const struct pnet_icp *o, struct pnet_icp_result *r,
    void *work);

/* How firmly surfaces hold a pose: the eigenvalues, in descending order, of the mean of j j^T over the source points that have a
   target point within the distance under the pose. j is the derivative of a point's distance from the plane of its target by a
   rotation about the centre of these points, then by a shift, with lengths in root mean square radii (Gelfand, Ikemoto,
   Rusinkiewicz, Levoy, "Geometrically Stable Sampling for the ICP Algorithm", 2003). Each is the mean square of the normals'
   share in a motion: motions along which the surfaces slide have 0, as three of a plane or a sphere, two of a cylinder, one of a
   surface of revolution. All are 0 if no points are that near, or all are equal. `o->planes` is set; `work` has
   pnet_register_icp_work bytes. */
void pnet_register_hold(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], const struct pnet_icp *o, double hold[6],
    void *work);

/* Relative rotation error in degrees, arccos((trace(R_true^T R) - 1) / 2), and relative translation error in metres,
   |t - t_true| (Ma et al. 2016; all registration papers since). */
void pnet_register_error(
    const double truth[16], const double pose[16], double *rre_deg, double *rte_m);

/* Returns how many pairs lie within `distance`, in metres, under `pose`. Divided by the number of pairs it is the inlier
   ratio; with the true pose and 10 cm, more than 5 % is the condition of feature-match recall (Deng, Birdal, Ilic, PPFNet,
   2018). */
int64_t pnet_register_inliers(int64_t count, const struct pnet_match *pairs, const float *source,
    const float *target, const double pose[16], double distance);

/* Moves the pairs that lie within `distance` under `pose` to the front, in their order. Returns their number, and the root
   mean square of their distances in metres (NaN if there are none). */
int64_t pnet_register_right(int64_t count, struct pnet_match *pairs, const float *source,
    const float *target, const double pose[16], double distance, double *rms_m);

/* Measures how well the source points of pairs determine a rotation: returns the root of the harmonic mean of their mean
   squared distances, in metres, from the three principal axes through their centre; also writes the centre. 0 if they lie on
   a line. If the errors of the pairs are independent, the same in all directions, and of root mean square e, the fitted
   rotation is off by e / (spread sqrt(count)) radians and the centre by e / sqrt(count), root mean square: the covariance of
   the rotation is e^2 / 3 times the inverse of the points' inertia. (The error of the centre holds for any distribution of
   directions.) */
double pnet_register_spread(
    int64_t count, const struct pnet_match *pairs, const float *source, double middle[3]);

/* Returns the root mean square distance, in metres, of the source points of pairs from the line that fits them best: a pose that
   turns the points about this line moves them by at most twice that, root mean square. 0 without pairs. */
double pnet_register_off_line(int64_t count, const struct pnet_match *pairs, const float *source);

/* Returns the root mean square of |T p - T_true p|, in metres, over ground-truth correspondences: the condition of
   registration recall (Choi, Zhou, Koltun 2015: below 0.2 m). Correspondences are the source points that have a target point
   within `distance` under the true pose. NaN if there are none. */
size_t pnet_register_rmse_work(int64_t source_rows, int64_t target_rows);
double pnet_register_rmse(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double truth[16], const double pose[16], double distance,
    void *work);

/* Returns the share of the source points that have a target point within `distance` under the pose; 0 without points. `work`
   has pnet_register_rmse_work bytes. */
double pnet_register_overlap(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], double distance, void *work);

/* pnet_register_rmse from the 6x6 information matrix of a gt.info file, as GeoTransformer's and Predator's evaluation computes
   it: sqrt(e^T C e / C[0][0]) with e the translation and the vector part of the unit quaternion (half the angle) of
   T_true^-1 T. */
double pnet_register_info_rmse(
    const double info[36], const double truth[16], const double pose[16]);

#endif
