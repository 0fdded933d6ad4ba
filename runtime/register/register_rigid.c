#include "runtime/register/register_rigid.h"

#include <math.h>
#include <string.h>

static const double degrees = 57.295779513082320877;

void pnet_rigid_identity(double t[16])
{
    for (int i = 0; i < 16; i++) t[i] = i % 5 == 0;
}

void pnet_rigid_multiply(const double a[16], const double b[16], double ab[16])
{
    double out[16];
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            double sum = 0;
            for (int k = 0; k < 4; k++) sum += a[4 * r + k] * b[4 * k + c];
            out[4 * r + c] = sum;
        }
    memcpy(ab, out, sizeof out);
}

void pnet_rigid_invert(const double t[16], double inverse[16])
{
    double out[16];
    pnet_rigid_identity(out);
    for (int r = 0; r < 3; r++) {
        double moved = 0;
        for (int c = 0; c < 3; c++) {
            out[4 * r + c] = t[4 * c + r];
            moved += t[4 * c + r] * t[4 * c + 3];
        }
        out[4 * r + 3] = -moved;
    }
    memcpy(inverse, out, sizeof out);
}

void pnet_rigid_apply(const double t[16], int64_t n, const float *from, float *to)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double x = from[3 * i], y = from[3 * i + 1], z = from[3 * i + 2];
        for (int k = 0; k < 3; k++)
            to[3 * i + k] =
                (float)(t[4 * k] * x + t[4 * k + 1] * y + t[4 * k + 2] * z + t[4 * k + 3]);
    }
}

double pnet_rigid_angle(const double t[16])
{
    double x = t[9] - t[6], y = t[2] - t[8], z = t[4] - t[1]; /* axis times 2 sin */
    return atan2(sqrt(x * x + y * y + z * z), t[0] + t[5] + t[10] - 1) * degrees;
}

double pnet_rigid_length(const double t[16])
{
    return sqrt(t[3] * t[3] + t[7] * t[7] + t[11] * t[11]);
}

/* Rotation by a unit quaternion w x y z. */
static void from_quaternion(const double q[4], double t[16])
{
    double w = q[0], x = q[1], y = q[2], z = q[3];
    pnet_rigid_identity(t);
    t[0] = 1 - 2 * (y * y + z * z);
    t[1] = 2 * (x * y - w * z);
    t[2] = 2 * (x * z + w * y);
    t[4] = 2 * (x * y + w * z);
    t[5] = 1 - 2 * (x * x + z * z);
    t[6] = 2 * (y * z - w * x);
    t[8] = 2 * (x * z - w * y);
    t[9] = 2 * (y * z + w * x);
    t[10] = 1 - 2 * (x * x + y * y);
}

void pnet_rigid_make(
    const double axis[3], double angle_deg, const double translation[3], double t[16])
{
    double length = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
    double s = sin(angle_deg / degrees / 2) / length;
    from_quaternion(
        (double[4]){cos(angle_deg / degrees / 2), s * axis[0], s * axis[1], s * axis[2]}, t);
    for (int k = 0; k < 3; k++) t[4 * k + 3] = translation[k];
}

/* Makes one sweep of Jacobi's rotations. Returns the largest off-diagonal element before it. */
static double sweep(int n, double *a, double *v)
{
    double largest = 0;
    for (int p = 0; p < n; p++)
        for (int q = p + 1; q < n; q++) {
            double off = a[n * p + q];
            largest = fmax(largest, fabs(off));
            if (off == 0) continue;
            double theta = (a[n * q + q] - a[n * p + p]) / (2 * off);
            double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
            double c = 1 / sqrt(t * t + 1), s = t * c;
            for (int k = 0; k < n; k++) {
                double x = a[n * k + p], y = a[n * k + q];
                a[n * k + p] = c * x - s * y;
                a[n * k + q] = s * x + c * y;
            }
            for (int k = 0; k < n; k++) {
                double x = a[n * p + k], y = a[n * q + k];
                a[n * p + k] = c * x - s * y;
                a[n * q + k] = s * x + c * y;
                x = v[n * k + p];
                y = v[n * k + q];
                v[n * k + p] = c * x - s * y;
                v[n * k + q] = s * x + c * y;
            }
        }
    return largest;
}

void pnet_symmetric_eigen(int n, double *a, double *values, double *v)
{
    double scale = 0;
    for (int i = 0; i < n * n; i++) {
        scale = fmax(scale, fabs(a[i]));
        v[i] = i % (n + 1) == 0;
    }
    for (int i = 0; i < 40 && sweep(n, a, v) > 1e-17 * scale; i++) {
    }
    for (int i = 0; i < n; i++) values[i] = a[n * i + i];
    for (int i = 0; i < n; i++) { /* sorts by size */
        int best = i;
        for (int k = i + 1; k < n; k++)
            if (values[k] > values[best]) best = k;
        double x = values[i];
        values[i] = values[best];
        values[best] = x;
        for (int k = 0; k < n && best != i; k++) {
            x = v[n * k + i];
            v[n * k + i] = v[n * k + best];
            v[n * k + best] = x;
        }
    }
}

/* Finds the rotation that maximises the sum of p^T R^T q, given s = sum of p q^T. */
static bool best_rotation(const double s[9], double t[16])
{
    double n[16] = {s[0] + s[4] + s[8], s[5] - s[7], s[6] - s[2], s[1] - s[3], /**/
        0, s[0] - s[4] - s[8], s[1] + s[3], s[6] + s[2],                       /**/
        0, 0, -s[0] + s[4] - s[8], s[5] + s[7],                                /**/
        0, 0, 0, -s[0] - s[4] + s[8]};
    double values[4], v[16], q[4] = {0}, scale = 0, length = 0;
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < r; c++) n[4 * r + c] = n[4 * c + r];
    pnet_symmetric_eigen(4, n, values, v);
    for (int i = 0; i < 4; i++) scale = fmax(scale, fabs(values[i]));
    /* If several quaternions are equally good, takes the projection of the identity onto their span. */
    bool sure = values[0] - values[1] > 1e-9 * scale;
    for (int e = 0; e < 4 && values[0] - values[e] <= 1e-9 * scale; e++)
        for (int k = 0; k < 4; k++) q[k] += sure ? v[4 * k] : v[e] * v[4 * k + e];
    for (int k = 0; k < 4; k++) length += q[k] * q[k];
    for (int k = 0; k < 4; k++) /* the projection is 0: half a turn about any axis */
        q[k] = length > 1e-12 ? q[k] / sqrt(length) : v[4 * k];
    from_quaternion(q, t);
    return sure;
}

bool pnet_rigid_clean(double t[16], double tolerance)
{
    double s[9];
    for (int i = 0; i < 16; i++)
        if (!isfinite(t[i])) return false;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            double sum = 0;
            for (int k = 0; k < 3; k++) sum += t[4 * r + k] * t[4 * c + k];
            if (fabs(sum - (r == c)) > tolerance) return false;
            s[3 * r + c] = t[4 * c + r];
        }
    double det = t[0] * (t[5] * t[10] - t[6] * t[9]) - t[1] * (t[4] * t[10] - t[6] * t[8]) +
                 t[2] * (t[4] * t[9] - t[5] * t[8]);
    if (det < 0) return false;
    for (int k = 0; k < 4; k++)
        if (fabs(t[12 + k] - (k == 3)) > tolerance) return false;
    double clean[16];
    best_rotation(s, clean);
    for (int k = 0; k < 3; k++) clean[4 * k + 3] = t[4 * k + 3];
    memcpy(t, clean, sizeof clean);
    return true;
}

void pnet_rigid_from_floats(const float from[16], double t[16])
{
    for (int i = 0; i < 16; i++) t[i] = (double)from[i];
    pnet_rigid_clean(t, 1e-3);
}

void pnet_rigid_to_file(const double local[16], const double source_offset[3],
    const double target_offset[3], double file[16])
{
    double out[16];
    memcpy(out, local, sizeof out);
    for (int k = 0; k < 3; k++) {
        double turned = 0;
        for (int c = 0; c < 3; c++) turned += local[4 * k + c] * source_offset[c];
        out[4 * k + 3] = local[4 * k + 3] - (turned - target_offset[k]);
    }
    memcpy(file, out, sizeof out);
}

bool pnet_rigid_fit(int64_t n, const struct pnet_match *pairs, const float *source,
    const float *target, double t[16])
{
    double from[3] = {0}, to[3] = {0}, s[9] = {0};
    pnet_rigid_identity(t);
    if (n <= 0) return false;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            from[k] += source[3 * (int64_t)pairs[i].source + k];
            to[k] += target[3 * (int64_t)pairs[i].target + k];
        }
    for (int k = 0; k < 3; k++) {
        from[k] /= (double)n;
        to[k] /= (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        const float *p = source + 3 * (int64_t)pairs[i].source;
        const float *q = target + 3 * (int64_t)pairs[i].target;
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++) s[3 * r + c] += (p[r] - from[r]) * (q[c] - to[c]);
    }
    bool sure = best_rotation(s, t);
    for (int k = 0; k < 3; k++) {
        double turned = t[4 * k] * from[0] + t[4 * k + 1] * from[1] + t[4 * k + 2] * from[2];
        t[4 * k + 3] = to[k] - turned;
    }
    return sure && n >= 3;
}
