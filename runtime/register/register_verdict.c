#include "runtime/register/register_verdict.h"

/* Times as many matches as agree by chance; and matches of which more than half agree, however many do by chance: among
   a few matches chance has its share. */
enum { SURE_TIMES = 20, LEAST_TIMES = 3, SURE_MATCHES = 12 };
/* Percent of the source's points. */
enum { SURE_PERCENT = 40, LEAST_PERCENT = 10 };

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
