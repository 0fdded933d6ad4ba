#include "runtime/register/register_verdict.h"

/* A pose is registered if SURE_TIMES times as many matches agree on it as agree by chance, or if more than half of the
   matches agree and these are at least SURE_MATCHES: among few matches chance has a large share. It is doubtful from
   LEAST_TIMES times on. */
enum { SURE_TIMES = 20, LEAST_TIMES = 3, SURE_MATCHES = 12 };
/* Percent of the source's points. */
enum { SURE_PERCENT = 40, LEAST_PERCENT = 10 };
/* The least mean square of the share of normals in a motion. Smooth shapes of 2,000 points, with noise of 5 mm on 3 m, have less
   than 0.002 along their free motions; 49 real pairs have 0.009 and more. */
static const double least_hold = 0.006;

const char *pnet_verdict_name(enum pnet_verdict v)
{
    static const char *const names[] = {"registered", "doubtful", "failed"};
    return names[v];
}

enum pnet_verdict pnet_verdict_matches(int64_t matches, int64_t inliers, int64_t chance)
{
    int64_t times = chance > 0 ? chance : 1;
    if (inliers >= SURE_TIMES * times || (2 * inliers > matches && inliers >= SURE_MATCHES))
        return PNET_POSE_REGISTERED;
    return inliers >= LEAST_TIMES * times ? PNET_POSE_DOUBTFUL : PNET_POSE_FAILED;
}

enum pnet_verdict pnet_verdict_points(int64_t rows, int64_t inliers)
{
    if (100 * inliers >= SURE_PERCENT * rows && inliers > 0) return PNET_POSE_REGISTERED;
    return 100 * inliers >= LEAST_PERCENT * rows && inliers > 0 ? PNET_POSE_DOUBTFUL
                                                                : PNET_POSE_FAILED;
}

int pnet_verdict_free(const double hold[6])
{
    int free = 0;
    for (int k = 0; k < 6; k++) free += !(hold[k] >= least_hold);
    return free;
}

bool pnet_verdict_hold(int64_t inliers, double off_line_m, double distance_m)
{
    return inliers >= 3 &&
           2 * off_line_m > distance_m; /* half a turn moves a point by twice its distance */
}
