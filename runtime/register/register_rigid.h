/* Rigid motions, and the best one between points that belong together. */
#ifndef PNET_RUNTIME_REGISTER_RIGID_H
#define PNET_RUNTIME_REGISTER_RIGID_H

#include <stdbool.h>
#include <stdint.h>

/* A motion is double[16]: row-major 4x4, last row 0 0 0 1, p' = T p in metres. Between two clouds it is
   T_target_source. Results may stand where an operand stands. */
void pnet_rigid_identity(double t[16]);
void pnet_rigid_multiply(const double a[16], const double b[16], double ab[16]);
/* Of a motion: the transposed rotation. */
void pnet_rigid_invert(const double t[16], double inverse[16]);
/* from, to [n, 3]; `to` may be `from`. Computed in double. */
void pnet_rigid_apply(const double t[16], int64_t n, const float *from, float *to);
/* The angle of the rotation in degrees, 0 to 180; exact for small ones (no arc cosine). */
double pnet_rigid_angle(const double t[16]);
/* The length of the translation. */
double pnet_rigid_length(const double t[16]);
/* Rotation about `axis` (any length but 0) by `angle` degrees, then translation. */
void pnet_rigid_make(
    const double axis[3], double angle_deg, const double translation[3], double t[16]);
/* Replaces the upper left 3x3 of t, which may be off by rounding, by the nearest rotation. False: t is no rigid motion; its 3x3
   is not orthonormal within `tolerance` or mirrors, or its last row is not 0 0 0 1. */
bool pnet_rigid_clean(double t[16], double tolerance);
/* Poses of a batch are float32. */
void pnet_rigid_from_floats(const float from[16], double t[16]);
/* Converts a motion between local coordinates to one between file coordinates: a file's coordinate is offset + local.
   pnet_pose_local does the opposite. */
void pnet_rigid_to_file(const double local[16], const double source_offset[3],
    const double target_offset[3], double file[16]);

/* A row of the source cloud and the row of the target cloud it belongs to. */
struct pnet_match {
    int32_t source, target;
};

/* The motion with the least sum of |T p - q|^2 over pairs of p (of source [.., 3]) and q (of target): Horn, "Closed-form
   solution of absolute orientation using unit quaternions" (1987). Never a reflection. False where the rotation is
   not determined (fewer than three pairs, all on a line): then it is the one of the best that turns least. */
bool pnet_rigid_fit(int64_t n, const struct pnet_match *pairs, const float *source,
    const float *target, double t[16]);

/* Eigenvalues of a symmetric matrix a [n, n], n <= 6, descending, and their vectors in the columns of v (Jacobi's
   method); a is destroyed. */
void pnet_symmetric_eigen(int n, double *a, double *values, double *v);

#endif
