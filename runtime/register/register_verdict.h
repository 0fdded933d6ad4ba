/* Whether to trust a pose: criteria measured on pairs that fit and on pairs of unrelated clouds (docs/registration.md has
   the limits, docs/registration-results.md the pairs). */
#ifndef PNET_RUNTIME_REGISTER_VERDICT_H
#define PNET_RUNTIME_REGISTER_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

enum pnet_verdict { PNET_POSE_REGISTERED, PNET_POSE_DOUBTFUL, PNET_POSE_FAILED };
/* "registered", "doubtful", "failed". */
const char *pnet_verdict_name(enum pnet_verdict v);

/* Judges by the matches that agree on a pose. `chance`: how many agree after their targets were shuffled. */
enum pnet_verdict pnet_verdict_matches(int64_t matches, int64_t inliers, int64_t chance);
/* Judges by the source points that have a target point within the distance of ICP. */
enum pnet_verdict pnet_verdict_points(int64_t rows, int64_t inliers);

/* Returns how many of the six motions of a body the surfaces leave free: `hold` is of pnet_register_hold. */
int pnet_verdict_free(const double hold[6]);
/* Tells whether matches that agree on a pose determine it: no rotation about a line moves them, root mean square, by less than
   the distance within which they agree. `off_line_m` is of pnet_register_off_line. */
bool pnet_verdict_hold(int64_t inliers, double off_line_m, double distance_m);

#endif
