/* Rigid poses, and the files that hold them. */
#ifndef PNET_RUNTIME_DATASET_POSE_H
#define PNET_RUNTIME_DATASET_POSE_H

#include "runtime/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* p -> R p + t: [R t; 0 0 0 1], row-major, metres. A pose of a pair maps the source onto the
   target. */
struct pnet_pose {
    double m[16];
};

struct pnet_pose pnet_pose_identity(void);
/* Returns the pose that applies b first, then a. */
struct pnet_pose pnet_pose_multiply(const struct pnet_pose *a, const struct pnet_pose *b);
/* Returns the exact inverse of the matrix, even if its numbers are rounded to few digits. */
struct pnet_pose pnet_pose_inverse(const struct pnet_pose *a);
void pnet_pose_apply(const struct pnet_pose *a, const double p[3], double q[3]);
/* Converts a pose between file coordinates to one between local coordinates: shift(-target) a shift(source). */
struct pnet_pose pnet_pose_local(
    const struct pnet_pose *a, const double source[3], const double target[3]);

/* Sets a pose from 12 numbers (three rows) or 16. Returns NULL if it is rigid, else what is wrong with it, for a message.
   The rotation may be off by 1e-3, because files print few digits. */
const char *pnet_pose_set(struct pnet_pose *a, const double *numbers, int count);

/* Reads one pose: .npy of 12 or 16 numbers, .log with one block, else text of 12 or 16 numbers, in lines of any length. This
   and the functions below return PNET_BAD_DATA with file and line, PNET_FAILED if the file cannot be read, or
   PNET_NO_MEMORY. */
enum pnet_status pnet_pose_read(const char *path, struct pnet_pose *a, struct pnet_error *e);
/* The parse functions, here and below, read text from memory; `path` stands in messages. */
enum pnet_status pnet_pose_parse(
    const char *path, const void *text, size_t size, struct pnet_pose *a, struct pnet_error *e);

/* The log of a scene of 3DMatch (as in Redwood): blocks of a line "i j n" and the 4x4 matrix that
   maps fragment j, the source, into fragment i, the target. */
struct pnet_log_pair {
    int64_t target, source;
    struct pnet_pose pose;
};
struct pnet_pose_log {
    struct pnet_log_pair *pairs;
    int64_t count;
};
enum pnet_status pnet_pose_log_read(
    const char *path, struct pnet_pose_log *log, struct pnet_error *e);
enum pnet_status pnet_pose_log_parse(const char *path, const void *text, size_t size,
    struct pnet_pose_log *log, struct pnet_error *e);
void pnet_pose_log_free(struct pnet_pose_log *log);

/* The gt.info of such a scene: blocks of a line "i j n" and the 6x6 information matrix of that pair, row-major. With
   q = T p the points that the pair shares, it is the sum of G^T G, G = [I, -[q]x] (Choi, Zhou, Koltun 2015). */
struct pnet_log_information {
    int64_t target, source;
    int64_t number; /* its place in the file, from 0 */
    double matrix[36];
};
struct pnet_information {
    struct pnet_log_information *pairs; /* [count] by target, then by source */
    int64_t count;
};
enum pnet_status pnet_information_read(
    const char *path, struct pnet_information *n, struct pnet_error *e);
enum pnet_status pnet_information_parse(const char *path, const void *text, size_t size,
    struct pnet_information *n, struct pnet_error *e);
/* Returns the matrix of a pair, the first of the file if it has several; NULL: it has none. */
const struct pnet_log_information *pnet_information_find(
    const struct pnet_information *n, int64_t target, int64_t source);
void pnet_information_free(struct pnet_information *n);

/* Poses of KITTI's odometry: a line of 12 numbers a frame. */
struct pnet_poses {
    struct pnet_pose *frames;
    int64_t count;
};
enum pnet_status pnet_poses_read(const char *path, struct pnet_poses *p, struct pnet_error *e);
enum pnet_status pnet_poses_parse(
    const char *path, const void *text, size_t size, struct pnet_poses *p, struct pnet_error *e);
void pnet_poses_free(struct pnet_poses *p);

/* `Tr` of KITTI's calib.txt, from the scanner to the camera that the poses are of; or a file of that
   matrix alone, for calibrations that lack it. */
enum pnet_status pnet_calib_read(const char *path, struct pnet_pose *tr, struct pnet_error *e);
enum pnet_status pnet_calib_parse(
    const char *path, const void *text, size_t size, struct pnet_pose *tr, struct pnet_error *e);

#endif
