#include "runtime/data/surface.h"
#include "runtime/data/augment_draw.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Twice the area that the camera sees of a triangle, at the depth 1, below which rounding errors decide. */
static const double NO_AREA = 1e-13;

static void subtract(const double a[3], const double b[3], double c[3])
{
    for (int i = 0; i < 3; i++) c[i] = a[i] - b[i];
}

static void cross(const double a[3], const double b[3], double c[3])
{
    for (int i = 0; i < 3; i++)
        c[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Returns corner k of triangle i. */
static double *corner(const struct pnet_mesh *m, int64_t i, int k)
{
    return m->corners + 3 * (ptrdiff_t)m->triangles[3 * i + k];
}

static double area(const struct pnet_mesh *m, int64_t i)
{
    double u[3], v[3], n[3];
    subtract(corner(m, i, 1), corner(m, i, 0), u);
    subtract(corner(m, i, 2), corner(m, i, 0), v);
    cross(u, v, n);
    return sqrt(dot(n, n)) / 2;
}

void pnet_surface_free(struct pnet_surface *s)
{
    pnet_mesh_free(&s->mesh);
    free(s->until);
    s->until = NULL;
}

uint64_t pnet_surface_bytes(const struct pnet_surface *s)
{
    return (uint64_t)s->mesh.corner_count * 3 * sizeof *s->mesh.corners +
           (uint64_t)s->mesh.triangle_count * (3 * sizeof *s->mesh.triangles + sizeof *s->until);
}

/* Moves and scales the corners. Corners of no triangle move along, and do not count. */
static void fit(struct pnet_mesh *m, double whole)
{
    double centre[3] = {0, 0, 0}, far2 = 0, d[3];
    for (int64_t i = 0; i < m->triangle_count; i++) {
        double share = area(m, i) / whole / 3;
        for (int k = 0; k < 3; k++)
            for (int c = 0; c < 3; c++) centre[c] += share * corner(m, i, k)[c];
    }
    for (int64_t i = 0; i < m->triangle_count; i++)
        for (int k = 0; k < 3; k++) {
            subtract(corner(m, i, k), centre, d);
            far2 = fmax(far2, dot(d, d));
        }
    double scale = 1 / sqrt(far2);
    for (int64_t i = 0; i < 3 * m->corner_count; i++)
        m->corners[i] = (m->corners[i] - centre[i % 3]) * scale;
}

/* Sets `until`. Returns the area of all triangles. */
static double add_up(struct pnet_surface *s)
{
    double sum = 0;
    for (int64_t i = 0; i < s->mesh.triangle_count; i++) s->until[i] = sum += area(&s->mesh, i);
    return sum;
}

enum pnet_status pnet_surface_make(
    const char *name, struct pnet_mesh *mesh, struct pnet_surface *s, struct pnet_error *e)
{
    *s = (struct pnet_surface){.mesh = *mesh};
    *mesh = (struct pnet_mesh){.corner_count = 0};
    s->until = malloc((size_t)s->mesh.triangle_count * sizeof *s->until);
    enum pnet_status status = s->until ? PNET_OK : pnet_error_memory(e);
    double whole = status ? 0 : add_up(s);
    if (whole > 0) {
        fit(&s->mesh, whole);
        whole = add_up(s); /* 0 where it was too small for its extent */
    }
    if (!status && !(whole > 0))
        status = pnet_error_set(e, PNET_BAD_DATA,
            "%s: its %" PRId64 " triangles have no area: no points can be drawn from them", name,
            s->mesh.triangle_count);
    if (status) pnet_surface_free(s);
    return status;
}

/* Returns the first triangle whose `until` is above `at`: one with an area. */
static int64_t find_triangle(const struct pnet_surface *s, double at)
{
    int64_t low = 0, high = s->mesh.triangle_count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->until[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void pnet_surface_draw(
    const struct pnet_surface *s, const struct pnet_rand *r, int part, int64_t count, float *xyz)
{
    double whole = s->until[s->mesh.triangle_count - 1];
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits[4];
        pnet_philox(r, (uint64_t)part << 42 | (uint64_t)i, bits);
        uint64_t wide = (uint64_t)bits[0] << 21 | bits[1] >> 11;
        int64_t t = find_triangle(s, (double)wide * 0x1p-53 * whole);
        /* uniform on a triangle: Osada, Funkhouser, Chazelle, Dobkin: Shape Distributions, 2002 */
        double root = sqrt((double)bits[2] * 0x1p-32), share = (double)bits[3] * 0x1p-32;
        double w[3] = {1 - root, root * (1 - share), root * share};
        for (int c = 0; c < 3; c++)
            xyz[3 * i + c] =
                (float)(w[0] * corner(&s->mesh, t, 0)[c] + w[1] * corner(&s->mesh, t, 1)[c] +
                        w[2] * corner(&s->mesh, t, 2)[c]);
    }
}

void pnet_surface_turn(const struct pnet_rand *r, int attempt, double turn[3][3])
{
    static const struct pnet_augment any = {.rotate = PNET_ROTATE_XYZ};
    pnet_turn_draw(&any, r, DRAW_CAMERA + 16 * attempt, turn);
}

/* An image while triangles are drawn into it. The camera is at the origin and looks along z. */
struct image {
    double (*at)[3]; /* [corner_count] corners in the frame of the camera */
    double *depth;   /* [PNET_VIEW_RAYS] z of the nearest point so far, or infinite */
};

/* Sets the direction of the ray through the centre of a pixel; its z is 1. */
static void ray(int x, int y, double d[3])
{
    d[0] = (x + 0.5 - PNET_VIEW_WIDTH / 2.0) / PNET_VIEW_FOCAL;
    d[1] = (y + 0.5 - PNET_VIEW_HEIGHT / 2.0) / PNET_VIEW_FOCAL;
    d[2] = 1;
}

/* Sets the pixels [from, to) along an axis whose rays may meet the triangle. */
static void find_range(double *const p[3], int axis, int size, int *from, int *to)
{
    double low = INFINITY, high = -INFINITY;
    for (int k = 0; k < 3; k++) {
        double pixel = PNET_VIEW_FOCAL * p[k][axis] / p[k][2] + size / 2.0 - 0.5;
        low = fmin(low, pixel);
        high = fmax(high, pixel);
    }
    *from = (int)fmax(0, fmin(size, floor(low)));
    *to = (int)fmax(0, fmin(size, ceil(high) + 1));
}

static void draw_triangle(struct image *image, double *const p[3])
{
    double n[3][3], d[3], whole;
    int x0, x1, y0, y1;
    for (int k = 0; k < 3; k++) cross(p[(k + 1) % 3], p[(k + 2) % 3], n[k]);
    whole = dot(p[0], n[0]);
    find_range(p, 0, PNET_VIEW_WIDTH, &x0, &x1);
    find_range(p, 1, PNET_VIEW_HEIGHT, &y0, &y1);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            /* The ray is inside of all edges, whichever way round they go. Two triangles compute the same number, with the other
               sign, at the edge they share: no ray passes between them. */
            ray(x, y, d);
            double a = dot(d, n[0]), b = dot(d, n[1]), c = dot(d, n[2]), sum = a + b + c;
            if (!(a >= 0 && b >= 0 && c >= 0) && !(a <= 0 && b <= 0 && c <= 0)) continue;
            if (fabs(sum) < NO_AREA) continue;
            double depth = whole / sum, *nearest = &image->depth[y * PNET_VIEW_WIDTH + x];
            if (depth > 0 && depth < *nearest) *nearest = depth;
        }
}

/* Moves the points of the rays back into the frame of the mesh. */
static int64_t take_points(
    const struct image *image, const double turn[3][3], double distance, float *xyz)
{
    int64_t count = 0;
    for (int y = 0; y < PNET_VIEW_HEIGHT; y++)
        for (int x = 0; x < PNET_VIEW_WIDTH; x++) {
            double depth = image->depth[y * PNET_VIEW_WIDTH + x], p[3];
            if (!(depth < INFINITY)) continue;
            ray(x, y, p);
            for (int c = 0; c < 3; c++) p[c] *= depth;
            p[2] -= distance;
            for (int c = 0; c < 3; c++)
                xyz[3 * count + c] =
                    (float)(turn[0][c] * p[0] + turn[1][c] * p[1] + turn[2][c] * p[2]);
            count++;
        }
    return count;
}

enum pnet_status pnet_surface_view(const struct pnet_mesh *m, const double turn[3][3],
    double distance, float *xyz, int64_t *count, struct pnet_error *e)
{
    struct image image = {.at = malloc((size_t)m->corner_count * sizeof *image.at),
        .depth = malloc(PNET_VIEW_RAYS * sizeof *image.depth)};
    enum pnet_status status = image.at && image.depth ? PNET_OK : pnet_error_memory(e);
    for (int64_t i = 0; i < m->corner_count && !status; i++)
        for (int c = 0; c < 3; c++)
            image.at[i][c] = dot(turn[c], m->corners + 3 * i) + (c == 2 ? distance : 0);
    for (int i = 0; i < PNET_VIEW_RAYS && !status; i++) image.depth[i] = INFINITY;
    for (int64_t i = 0; i < m->triangle_count && !status; i++) {
        double *p[3];
        for (int k = 0; k < 3; k++) p[k] = image.at[m->triangles[3 * i + k]];
        assert(p[0][2] > 0 && p[1][2] > 0 && p[2][2] > 0);
        draw_triangle(&image, p);
    }
    if (!status) *count = take_points(&image, turn, distance, xyz);
    free(image.at);
    free(image.depth);
    return status;
}
