/* Registration of two clouds; allocates the workspaces. */
#ifndef PNET_RUNTIME_REGISTER_CLOUDS_H
#define PNET_RUNTIME_REGISTER_CLOUDS_H

#include "runtime/base/error.h"
#include "runtime/register/register.h"

/* Points with features. */
struct pnet_register_cloud {
    int64_t rows;
    const float *xyz;      /* [rows, 3] */
    const float *features; /* [rows, width] */
    int32_t width;
};

struct pnet_register_options {
    int64_t points; /* points drawn on each side */
    bool mutual;
    struct pnet_ransac ransac; /* its rand draws the points too */
};

struct pnet_register_found {
    struct pnet_ransac_result ransac;
    int64_t matches;
    int64_t
        chance; /* inliers of the best of as many poses after the targets of the matches were shuffled */
    double off_line_m; /* of the inliers: pnet_register_off_line */
};

/* Matches features and estimates T_target_source, as the metric `registration` does. PNET_NO_MEMORY. */
enum pnet_status pnet_register_features(const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, const struct pnet_register_options *o,
    struct pnet_register_found *found, struct pnet_error *e);

/* Runs ICP from `pose`; features are not read. `hold`: of its result, as pnet_register_hold sets it. PNET_NO_MEMORY. */
enum pnet_status pnet_register_refine(const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, const double pose[16], const struct pnet_icp *o,
    struct pnet_icp_result *r, double hold[6], struct pnet_error *e);

/* Writes an SVG picture of both clouds from above and from the side, before and after: the source unmoved, and moved by
   `pose`. */
enum pnet_status pnet_register_picture(const char *path, const struct pnet_register_cloud *source,
    const struct pnet_register_cloud *target, const double before[16], const double after[16],
    struct pnet_error *e);

#endif
