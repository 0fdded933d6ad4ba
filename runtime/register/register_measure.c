/* Measures of a pose and its correspondences. */
#include "runtime/register/register.h"

#include <math.h>

void pnet_register_error(
    const double truth[16], const double pose[16], double *rre_deg, double *rte_m)
{
    double back[16], x = pose[3] - truth[3], y = pose[7] - truth[7], z = pose[11] - truth[11];
    pnet_rigid_invert(truth, back);
    pnet_rigid_multiply(back, pose, back);
    *rre_deg = pnet_rigid_angle(back);
    *rte_m = sqrt(x * x + y * y + z * z);
}

/* Returns the squared distance of a pair under the pose. */
static double apart(
    const struct pnet_match *pair, const float *source, const float *target, const double pose[16])
{
    const float *p = source + 3 * (int64_t)pair->source;
    const float *q = target + 3 * (int64_t)pair->target;
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        double d = pose[4 * k] * p[0] + pose[4 * k + 1] * p[1] + pose[4 * k + 2] * p[2] +
                   pose[4 * k + 3] - q[k];
        sum += d * d;
    }
    return sum;
}

int64_t pnet_register_inliers(int64_t count, const struct pnet_match *pairs, const float *source,
    const float *target, const double pose[16], double distance)
{
    int64_t inside = 0;
#pragma omp parallel for schedule(static) reduction(+ : inside)
    for (int64_t i = 0; i < count; i++)
        inside += apart(&pairs[i], source, target, pose) <= distance * distance;
    return inside;
}

int64_t pnet_register_right(int64_t count, struct pnet_match *pairs, const float *source,
    const float *target, const double pose[16], double distance, double *rms_m)
{
    int64_t right = 0;
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = apart(&pairs[i], source, target, pose);
        if (d > distance * distance) continue;
        squares += d;
        pairs[right++] = pairs[i];
    }
    *rms_m = right ? sqrt(squares / (double)right) : (double)NAN;
    return right;
}

/* Sets the centre of the pairs' source points, and their mean squared distances from it along the principal axes, descending. */
static void extents(int64_t count, const struct pnet_match *pairs, const float *source,
    double middle[3], double squares[3])
{
    double a[9] = {0}, axes[9];
    for (int k = 0; k < 3; k++) {
        middle[k] = 0;
        for (int64_t i = 0; i < count; i++) middle[k] += source[3 * (int64_t)pairs[i].source + k];
        middle[k] /= (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        const float *p = source + 3 * (int64_t)pairs[i].source;
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                a[3 * r + c] += (p[r] - middle[r]) * (p[c] - middle[c]) / (double)count;
    }
    pnet_symmetric_eigen(3, a, squares, axes);
}

double pnet_register_spread(
    int64_t count, const struct pnet_match *pairs, const float *source, double middle[3])
{
    double squares[3], inverses = 0;
    extents(count, pairs, source, middle, squares);
    /* the distance from one axis comes from the extents along the other two */
    for (int k = 0; k < 3; k++)
        inverses += 1 / fmax(squares[(k + 1) % 3] + squares[(k + 2) % 3], 0);
    return sqrt(3 / inverses);
}

double pnet_register_off_line(int64_t count, const struct pnet_match *pairs, const float *source)
{
    double middle[3], squares[3];
    if (count <= 0) return 0;
    extents(count, pairs, source, middle, squares);
    return sqrt(fmax(squares[1] + squares[2], 0));
}

double pnet_register_info_rmse(const double info[36], const double truth[16], const double pose[16])
{
    double back[16], e[6], sum = 0;
    pnet_rigid_invert(truth, back);
    pnet_rigid_multiply(back, pose, back);
    double half = pnet_rigid_angle(back) / 2 / 57.295779513082320877;
    double axis[3] = {back[9] - back[6], back[2] - back[8], back[4] - back[1]};
    double length = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
    for (int k = 0; k < 3; k++) {
        e[k] = back[4 * k + 3];
        e[3 + k] = length > 0 ? axis[k] / length * sin(half) : 0;
    }
    for (int r = 0; r < 6; r++)
        for (int c = 0; c < 6; c++) sum += e[r] * info[6 * r + c] * e[c];
    return sqrt(fmax(sum, 0) / info[0]);
}
