/* Rigid motions, and the best motion between matched points. */
#ifndef PNET_RUNTIME_REGISTER_RIGID_H
#define PNET_RUNTIME_REGISTER_RIGID_H

#include <stdbool.h>
#include <stdint.h>

/* A motion is double[16]: row-major 4x4, last row 0 0 0 1, p' = T p in metres. Between two clouds it is T_target_source. A
   result may overwrite an operand. */
void pnet_rigid_identity(double t[16]);
void pnet_rigid_multiply(const double a[16], const double b[16], double ab[16]);
/* Inverts a motion. */
void pnet_rigid_invert(const double t[16], double inverse[16]);
/* Moves points: from, to [n, 3] in metres; `to` may be `from`. Computed in double. */
void pnet_rigid_apply(const double t[16], int64_t n, const float *from, float *to);
/* Returns the angle of the rotation in degrees, 0 to 180; accurate for small angles, because no arc cosine is taken. */
double pnet_rigid_angle(const double t[16]);
/* Returns the length of the translation in metres. */
double pnet_rigid_length(const double t[16]);
/* Makes a rotation about `axis` (of any length but 0) by `angle` degrees, followed by a translation. */
void pnet_rigid_make(
    const double axis[3], double angle_deg, const double translation[3], double t[16]);
/* Replaces the upper left 3x3 of t by the nearest rotation, which removes rounding. Returns false if t is not a rigid
   motion: its 3x3 is not orthonormal within `tolerance`, or mirrors, or its last row is not 0 0 0 1. */
bool pnet_rigid_clean(double t[16], double tolerance);
/* Converts the float32 pose of a batch. */
void pnet_rigid_from_floats(const float from[16], double t[16]);
/* Converts a motion between local coordinates to one between file coordinates: a file's coordinate is offset + local.
   pnet_pose_local does the opposite. */
void pnet_rigid_to_file(const double local[16], const double source_offset[3],
    const double target_offset[3], double file[16]);

/* A row of the source cloud and the matching row of the target cloud. */
struct pnet_match {
    int32_t source, target;
};

/* Finds the motion with the least sum of |T p - q|^2 over pairs of p (in source [.., 3]) and q (in target [.., 3]): Horn,
   "Closed-form solution of absolute orientation using unit quaternions" (1987). It never mirrors. Returns false if the pairs
   do not determine the rotation (fewer than three pairs, or all on a line); then the motion is the one with the smallest
   rotation among the best. */
bool pnet_rigid_fit(int64_t n, const struct pnet_match *pairs, const float *source,
    const float *target, double t[16]);

/* Computes the eigenvalues of a symmetric matrix a [n, n], n <= 6, in descending order, and the eigenvectors as columns of v
   (Jacobi's method). Destroys a. */
void pnet_symmetric_eigen(int n, double *a, double *values, double *v);

#endif
