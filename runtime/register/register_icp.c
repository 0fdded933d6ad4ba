/* Iterative closest point. Every sum runs over the rows in their order. */
#include "runtime/register/register.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/geometry_stage.h"
#include "runtime/register/register_room.h"

struct icp {
    int64_t source_rows, target_rows;
    const float *source, *target;
    const struct pnet_icp *o;
    float middle[3]; /* centre of the source */
    float *moved;    /* source points under the pose */
    int32_t *nearest;
    float *distance2;
    struct pnet_match *pairs; /* pairs within the distance */
    int64_t count;
    float *normal;   /* [target_rows, 3]; set for distances to planes */
    int32_t *around; /* [target_rows, neighbours] */
    float *around2;
    void *search;
    size_t bytes;
};

static struct pnet_level cloud(int64_t rows, const int64_t splits[2], const float *xyz)
{
    return (struct pnet_level){.rows = rows, .samples = 1, .row_splits = splits, .xyz = xyz};
}

static size_t search_work(int64_t queries, int64_t rows, int32_t k)
{
    int64_t a[2] = {0, queries}, b[2] = {0, rows};
    struct pnet_level out = cloud(queries, a, NULL), in = cloud(rows, b, NULL);
    return pnet_cpu_nearest_work(&out, &in, k);
}

static void search(int64_t queries, const float *at, int64_t rows, const float *xyz, int32_t k,
    int32_t *index, float *distance2, void *work)
{
    int64_t a[2] = {0, queries}, b[2] = {0, rows};
    struct pnet_level out = cloud(queries, a, at), in = cloud(rows, b, xyz);
    pnet_cpu_nearest(&out, &in, k, index, distance2, work);
}

static struct icp icp_take(
    void *work, int64_t source_rows, int64_t target_rows, const struct pnet_icp *o)
{
    struct room r = {.base = work};
    struct icp c = {.source_rows = source_rows, .target_rows = target_rows, .o = o};
    size_t s = (size_t)source_rows, t = o->planes ? (size_t)target_rows : 0;
    c.moved = room_take(&r, s * 3 * sizeof(float));
    c.nearest = room_take(&r, s * sizeof(int32_t));
    c.distance2 = room_take(&r, s * sizeof(float));
    c.pairs = room_take(&r, s * sizeof *c.pairs);
    c.normal = room_take(&r, t * 3 * sizeof(float));
    c.around = room_take(&r, t * (size_t)o->neighbours * sizeof(int32_t));
    c.around2 = room_take(&r, t * (size_t)o->neighbours * sizeof(float));
    size_t pairs = search_work(source_rows, target_rows, 1),
           normals = o->planes ? search_work(target_rows, target_rows, o->neighbours) : 0;
    c.search = room_take(&r, pairs > normals ? pairs : normals);
    c.bytes = r.used;
    return c;
}

size_t pnet_register_icp_work(int64_t source_rows, int64_t target_rows, const struct pnet_icp *o)
{
    return icp_take(NULL, source_rows, target_rows, o).bytes;
}

/* Sets the normal of a point: the direction in which the points around it spread least; 0 if the mean square of their spread in
   the second direction is not above `least` of that in the first. */
static void normal_of(const struct icp *c, int64_t row, double least)
{
    const int32_t *around = c->around + row * c->o->neighbours;
    double mean[3] = {0}, spread[9] = {0}, values[3], v[9];
    int n = 0;
    for (; n < c->o->neighbours && around[n] >= 0; n++)
        for (int k = 0; k < 3; k++) mean[k] += c->target[3 * (int64_t)around[n] + k];
    for (int k = 0; k < 3; k++) mean[k] /= n;
    for (int i = 0; i < n; i++) {
        const float *p = c->target + 3 * (int64_t)around[i];
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) spread[3 * a + b] += (p[a] - mean[a]) * (p[b] - mean[b]);
    }
    pnet_symmetric_eigen(3, spread, values, v);
    bool flat = values[1] > least * values[0];
    for (int k = 0; k < 3; k++) c->normal[3 * row + k] = flat ? (float)v[3 * k + 2] : 0;
}

static void make_normals(struct icp *c, double least)
{
    search(c->target_rows, c->target, c->target_rows, c->target, c->o->neighbours, c->around,
        c->around2, c->search);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < c->target_rows; i++) normal_of(c, i, least);
}

/* Pairs each source point with its nearest target point under the pose. */
static void associate(struct icp *c, struct pnet_icp_result *r)
{
    float limit2 = (float)(c->o->distance * c->o->distance);
    double sum = 0;
    pnet_rigid_apply(r->pose, c->source_rows, c->source, c->moved);
    search(c->source_rows, c->moved, c->target_rows, c->target, 1, c->nearest, c->distance2,
        c->search);
    c->count = 0;
    for (int64_t i = 0; i < c->source_rows; i++) {
        if (!(c->distance2[i] <= limit2)) continue;
        c->pairs[c->count++] = (struct pnet_match){(int32_t)i, c->nearest[i]};
        sum += c->distance2[i];
    }
    r->inliers = c->count;
    r->rmse = c->count ? sqrt(sum / (double)c->count) : 0;
}

static void place(const double t[16], const float *p, double to[3])
{
    for (int k = 0; k < 3; k++)
        to[k] = t[4 * k] * p[0] + t[4 * k + 1] * p[1] + t[4 * k + 2] * p[2] + t[4 * k + 3];
}

/* Sets the centre, and returns the root mean square radius, of the pairs' source points under the pose. */
static double extent(const struct icp *c, const double pose[16], double centre[3])
{
    double p[3], sum = 0;
    memset(centre, 0, 3 * sizeof *centre);
    for (int64_t i = 0; i < c->count; i++) {
        place(pose, c->source + 3 * (int64_t)c->pairs[i].source, p);
        for (int k = 0; k < 3; k++) centre[k] += p[k];
    }
    for (int k = 0; k < 3; k++) centre[k] /= (double)c->count;
    for (int64_t i = 0; i < c->count; i++) {
        place(pose, c->source + 3 * (int64_t)c->pairs[i].source, p);
        for (int k = 0; k < 3; k++) sum += (p[k] - centre[k]) * (p[k] - centre[k]);
    }
    return sqrt(sum / (double)c->count);
}

/* Solves a x = b by least squares through the eigenvectors of a. x is 0 along eigenvectors whose eigenvalues are nearly 0. */
static void solve(double a[36], const double b[6], double x[6])
{
    double values[6], v[36];
    pnet_symmetric_eigen(6, a, values, v);
    memset(x, 0, 6 * sizeof *x);
    for (int e = 0; e < 6 && values[e] > 1e-6 * values[0]; e++) {
        double along = 0;
        for (int k = 0; k < 6; k++) along += v[6 * k + e] * b[k];
        for (int k = 0; k < 6; k++) x[k] += v[6 * k + e] * along / values[e];
    }
}

/* Sums j j^T and -j r over the pairs: r is the distance of a point under the pose from the plane of its target, j its derivative
   by a rotation about the centre, then by a shift, with lengths in radii, so that both have equal weight. */
static void sum_planes(const struct icp *c, const double pose[16], const double centre[3],
    double radius, double a[36], double b[6])
{
    for (int64_t i = 0; i < c->count; i++) {
        const float *q = c->target + 3 * (int64_t)c->pairs[i].target;
        const float *n = c->normal + 3 * (int64_t)c->pairs[i].target;
        double p[3], j[6], residual = 0;
        place(pose, c->source + 3 * (int64_t)c->pairs[i].source, p);
        for (int k = 0; k < 3; k++) {
            residual += n[k] * (p[k] - q[k]) / radius;
            p[k] = (p[k] - centre[k]) / radius;
            j[3 + k] = n[k];
        }
        j[0] = p[1] * n[2] - p[2] * n[1];
        j[1] = p[2] * n[0] - p[0] * n[2];
        j[2] = p[0] * n[1] - p[1] * n[0];
        for (int r = 0; r < 6; r++) {
            b[r] -= j[r] * residual;
            for (int k = 0; k < 6; k++) a[6 * r + k] += j[r] * j[k];
        }
    }
}

/* Makes one Gauss-Newton step on the distances to planes. */
static void plane_step(const struct icp *c, const double pose[16], double step[16])
{
    double centre[3], a[36] = {0}, b[6] = {0}, x[6], turn[16], to_centre[16];
    double radius = extent(c, pose, centre);
    pnet_rigid_identity(step);
    if (!(radius > 0)) return;
    sum_planes(c, pose, centre, radius, a, b);
    solve(a, b, x);
    double angle = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    double axis[3] = {angle > 0 ? x[0] : 1, x[1], x[2]};
    double move[3] = {x[3] * radius, x[4] * radius, x[5] * radius};
    pnet_rigid_make(axis, angle * 57.295779513082320877, (double[3]){0, 0, 0}, turn);
    pnet_rigid_identity(to_centre);
    for (int k = 0; k < 3; k++) to_centre[4 * k + 3] = -centre[k];
    pnet_rigid_multiply(turn, to_centre, step);
    for (int k = 0; k < 3; k++) step[4 * k + 3] += centre[k] + move[k];
}

/* Tells whether two poses have the same rotation and move the centre of the source to the same place. The rotations may be
   rounded, as those of a file are. */
static bool stands_still(const struct icp *c, const double before[16], const double behind[16])
{
    double turn[16], a[3], b[3], moved = 0;
    pnet_rigid_invert(before, turn);
    pnet_rigid_multiply(behind, turn, turn);
    place(before, c->middle, a);
    place(behind, c->middle, b);
    for (int k = 0; k < 3; k++) moved += (a[k] - b[k]) * (a[k] - b[k]);
    return pnet_rigid_angle(turn) <= 1e-6 && sqrt(moved) <= 1e-6 * c->o->distance;
}

static void find_middle(struct icp *c)
{
    double sum[3] = {0};
    for (int64_t i = 0; i < 3 * c->source_rows; i++) sum[i % 3] += (double)c->source[i];
    for (int k = 0; k < 3; k++) c->middle[k] = (float)(sum[k] / (double)c->source_rows);
}

void pnet_register_icp(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], const struct pnet_icp *o, struct pnet_icp_result *r,
    void *work)
{
    assert(work);
    struct icp c = icp_take(work, source_rows, target_rows, o);
    c.source = source;
    c.target = target;
    *r = (struct pnet_icp_result){0};
    memcpy(r->pose, pose, sizeof r->pose);
    if (!source_rows || !target_rows) return;
    find_middle(&c);
    if (o->planes) make_normals(&c, -1);
    associate(&c, r);
    while (r->iterations < o->iterations && c.count >= 3) {
        double next[16];
        if (o->planes) {
            plane_step(&c, r->pose, next);
            pnet_rigid_multiply(next, r->pose, next);
        } else if (!pnet_rigid_fit(c.count, c.pairs, source, target, next)) {
            break;
        }
        bool still = stands_still(&c, r->pose, next);
        memcpy(r->pose, next, sizeof next);
        r->iterations++;
        associate(&c, r);
        if (still) break;
    }
}

void pnet_register_hold(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], const struct pnet_icp *o, double hold[6],
    void *work)
{
    /* Points around a point that lie along a line, as those of one turn of a scanner, have no normal. */
    static const double least = 0.01;
    struct pnet_icp_result r = {.inliers = 0};
    double centre[3], a[36] = {0}, b[6] = {0}, v[36], rows = 0;
    assert(work && o->planes);
    struct icp c = icp_take(work, source_rows, target_rows, o);
    c.source = source;
    c.target = target;
    memcpy(r.pose, pose, sizeof r.pose);
    memset(hold, 0, 6 * sizeof *hold);
    if (!source_rows || !target_rows) return;
    make_normals(&c, least);
    associate(&c, &r);
    double radius = c.count ? extent(&c, pose, centre) : 0;
    if (!(radius > 0)) return;
    sum_planes(&c, pose, centre, radius, a, b);
    for (int k = 3; k < 6; k++) rows += a[7 * k]; /* normals have the length 1, or 0 */
    for (int k = 0; k < 36; k++) a[k] /= rows > 0 ? rows : 1;
    pnet_symmetric_eigen(6, a, hold, v);
}

struct rmse_room {
    float *moved;
    int32_t *nearest;
    float *distance2;
    void *search;
    size_t bytes;
};

static struct rmse_room rmse_room(void *work, int64_t source_rows, int64_t target_rows)
{
    struct room r = {.base = work};
    struct rmse_room m;
    m.moved = room_take(&r, (size_t)source_rows * 3 * sizeof(float));
    m.nearest = room_take(&r, (size_t)source_rows * sizeof(int32_t));
    m.distance2 = room_take(&r, (size_t)source_rows * sizeof(float));
    m.search = room_take(&r, search_work(source_rows, target_rows, 1));
    m.bytes = r.used;
    return m;
}

size_t pnet_register_rmse_work(int64_t source_rows, int64_t target_rows)
{
    return rmse_room(NULL, source_rows, target_rows).bytes;
}

double pnet_register_rmse(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double truth[16], const double pose[16], double distance, void *work)
{
    assert(work);
    struct rmse_room m = rmse_room(work, source_rows, target_rows);
    double sum = 0;
    int64_t n = 0;
    if (!source_rows || !target_rows) return (double)NAN;
    pnet_rigid_apply(truth, source_rows, source, m.moved);
    search(source_rows, m.moved, target_rows, target, 1, m.nearest, m.distance2, m.search);
    for (int64_t i = 0; i < source_rows; i++) {
        double a[3], b[3];
        if (!(m.distance2[i] <= (float)(distance * distance))) continue;
        place(truth, source + 3 * i, a);
        place(pose, source + 3 * i, b);
        for (int k = 0; k < 3; k++) sum += (a[k] - b[k]) * (a[k] - b[k]);
        n++;
    }
    return n ? sqrt(sum / (double)n) : (double)NAN;
}

double pnet_register_overlap(int64_t source_rows, const float *source, int64_t target_rows,
    const float *target, const double pose[16], double distance, void *work)
{
    assert(work);
    struct rmse_room m = rmse_room(work, source_rows, target_rows);
    int64_t n = 0;
    if (!source_rows || !target_rows) return 0;
    pnet_rigid_apply(pose, source_rows, source, m.moved);
    search(source_rows, m.moved, target_rows, target, 1, m.nearest, m.distance2, m.search);
    for (int64_t i = 0; i < source_rows; i++) n += m.distance2[i] <= (float)(distance * distance);
    return (double)n / (double)source_rows;
}
