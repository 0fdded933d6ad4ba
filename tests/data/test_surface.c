/* Surfaces: points are drawn by area, and a depth camera sees the nearest point of each ray, against brute force. Cuts and
   farthest points, against brute force. */
#include "runtime/data/partial.h"
#include "tests/check.h"

static double uniform(struct pnet_rand *r, uint64_t *draw)
{
    return 2 * (double)pnet_rand_unit(r, (*draw)++) - 1;
}

/* Random triangles; some share edges, some have no area. */
static struct pnet_mesh random_mesh(uint64_t seed, int triangles)
{
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    uint64_t draw = 0;
    int corners = triangles + 2;
    struct pnet_mesh m = {.corner_count = corners, .triangle_count = triangles};
    m.corners = malloc((size_t)corners * 3 * sizeof *m.corners);
    m.triangles = malloc((size_t)triangles * 3 * sizeof *m.triangles);
    if (!m.corners || !m.triangles) exit(1);
    for (int i = 0; i < 3 * corners; i++)
        m.corners[i] = uniform(&r, &draw) * (i % 7 ? 3 : 0.2) + (i % 3 == 1) * 40;
    for (int i = 0; i < triangles; i++)
        for (int k = 0; k < 3; k++) m.triangles[3 * i + k] = i + (i % 9 == 8 && k ? 1 : k);
    return m;
}

static struct pnet_surface make_surface(uint64_t seed, int triangles)
{
    struct pnet_mesh m = random_mesh(seed, triangles);
    struct pnet_surface s;
    struct pnet_error e = {.message = ""};
    CHECKF(!pnet_surface_make("m", &m, &s, &e), "%s", e.message);
    CHECK(!m.corners);
    return s;
}

static const double *corner(const struct pnet_mesh *m, int64_t t, int k)
{
    return m->corners + 3 * (ptrdiff_t)m->triangles[3 * t + k];
}

static double minus(const double *a, const double *b, double *c)
{
    for (int i = 0; i < 3; i++) c[i] = a[i] - b[i];
    return 0;
}
static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* By the formula of Heron. */
static double area_of(const struct pnet_mesh *m, int64_t t)
{
    double side[3], d[3];
    for (int k = 0; k < 3; k++) {
        minus(corner(m, t, k), corner(m, t, (k + 1) % 3), d);
        side[k] = sqrt(dot(d, d));
    }
    double half = (side[0] + side[1] + side[2]) / 2;
    return sqrt(fmax(0, half * (half - side[0]) * (half - side[1]) * (half - side[2])));
}

/* The distance of a point to a triangle's plane and its barycentric coordinates; false: the triangle has no area. */
static bool place(const struct pnet_mesh *m, int64_t t, const double *p, double *off, double w[3])
{
    double u[3], v[3], q[3];
    minus(corner(m, t, 1), corner(m, t, 0), u);
    minus(corner(m, t, 2), corner(m, t, 0), v);
    minus(p, corner(m, t, 0), q);
    double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), qu = dot(q, u), qv = dot(q, v);
    double det = uu * vv - uv * uv;
    if (!(det > 1e-14)) return false;
    w[1] = (qu * vv - qv * uv) / det;
    w[2] = (qv * uu - qu * uv) / det;
    w[0] = 1 - w[1] - w[2];
    for (int c = 0; c < 3; c++) q[c] -= w[1] * u[c] + w[2] * v[c];
    *off = sqrt(dot(q, q));
    return true;
}

static bool on_triangle(const struct pnet_mesh *m, int64_t t, const float *p, double off)
{
    double q[3] = {(double)p[0], (double)p[1], (double)p[2]}, away, w[3];
    return place(m, t, q, &away, w) && away < off && w[0] > -off && w[1] > -off && w[2] > -off;
}

/* The centroid is the origin, the farthest corner of a triangle 1 away. */
static void test_fit(void)
{
    struct pnet_surface s = make_surface(1, 30);
    double centre[3] = {0, 0, 0}, whole = 0, most = 0;
    for (int64_t t = 0; t < s.mesh.triangle_count; t++) {
        double a = area_of(&s.mesh, t);
        whole += a;
        CHECK(fabs(s.until[t] - whole) < 1e-6);
        for (int k = 0; k < 3; k++) {
            const double *p = corner(&s.mesh, t, k);
            for (int c = 0; c < 3; c++) centre[c] += a * p[c] / 3;
            most = fmax(most, dot(p, p));
        }
    }
    for (int c = 0; c < 3; c++) CHECKF(fabs(centre[c] / whole) < 1e-7, "%g", centre[c]);
    CHECK(fabs(most - 1) < 1e-12);
    CHECK(pnet_surface_bytes(&s) == 32 * 3 * 8 + 30 * (12 + 8));
    pnet_surface_free(&s);
    CHECK(!s.until && !s.mesh.corners);

    struct pnet_mesh flat = random_mesh(2, 4);
    struct pnet_error e;
    for (int i = 0; i < 12; i++) flat.triangles[i] = i % 3 == 2;
    CHECK(pnet_surface_make("plate.off", &flat, &s, &e) == PNET_BAD_DATA && !s.until);
    CHECK_STR(
        e.message, "plate.off: its 4 triangles have no area: no points can be drawn from them");
    CHECK(!flat.corners);
}

/* Shares of the triangles: the sum of (got - expected)^2 / expected has the mean n - 1 and the variance 2 (n - 1). */
static void test_draw(void)
{
    enum { COUNT = 60000, TRIANGLES = 24 };
    static float xyz[3 * COUNT], again[30];
    struct pnet_surface s = make_surface(3, TRIANGLES);
    struct pnet_rand r = {.seed = 9, .purpose = PNET_DRAW_TEST};
    int times[TRIANGLES] = {0}, lost = 0, kinds = 0;
    double whole = s.until[TRIANGLES - 1], chi2 = 0, mean[3] = {0, 0, 0};
    pnet_surface_draw(&s, &r, 5, COUNT, xyz);
    for (int i = 0; i < COUNT; i++) {
        int t = 0;
        while (t < TRIANGLES && !on_triangle(&s.mesh, t, xyz + 3 * i, 1e-6)) t++;
        if (t < TRIANGLES)
            times[t]++;
        else
            lost++;
        for (int c = 0; c < 3; c++) mean[c] += (double)xyz[3 * i + c] / COUNT;
    }
    CHECKF(!lost, "%d points lie on no triangle", lost);
    for (int t = 0; t < TRIANGLES; t++) {
        double want = COUNT * area_of(&s.mesh, t) / whole;
        if (t % 9 == 8) {
            CHECK(times[t] == 0); /* no area */
            continue;
        }
        chi2 += (times[t] - want) * (times[t] - want) / want;
        kinds++;
    }
    CHECKF(chi2 < kinds - 1 + 5 * sqrt(2 * (kinds - 1)), "%g of %d", chi2, kinds);
    CHECK(chi2 > (kinds - 1) / 8.0); /* points at random, not dealt out */
    for (int c = 0; c < 3; c++) CHECKF(fabs(mean[c]) < 5 / sqrt(COUNT), "%g", mean[c]);
    /* Point i depends on i alone; another part draws others. */
    pnet_surface_draw(&s, &r, 5, 10, again);
    CHECK(memcmp(again, xyz, sizeof again) == 0);
    pnet_surface_draw(&s, &r, 6, 10, again);
    CHECK(memcmp(again, xyz, sizeof again) != 0);
    pnet_surface_free(&s);
}

/* Uniform within a triangle: the quarter at each corner, and the one in the middle, get a quarter of the points each. */
static void test_draw_within(void)
{
    enum { COUNT = 40000 };
    static float xyz[3 * COUNT];
    struct pnet_surface s = make_surface(4, 1);
    struct pnet_rand r = {.seed = 10, .purpose = PNET_DRAW_TEST};
    int times[4] = {0};
    pnet_surface_draw(&s, &r, 5, COUNT, xyz);
    for (int i = 0; i < COUNT; i++) {
        double p[3] = {(double)xyz[3 * i], (double)xyz[3 * i + 1], (double)xyz[3 * i + 2]}, off,
               w[3];
        int part = 3;
        CHECK(place(&s.mesh, 0, p, &off, w));
        for (int k = 0; k < 3; k++)
            if (w[k] > 0.5) part = k;
        times[part]++;
    }
    for (int k = 0; k < 4; k++)
        CHECKF(abs(times[k] - COUNT / 4) < 5 * sqrt(COUNT * 3.0 / 16), "%d", times[k]);
    pnet_surface_free(&s);
}

/* The nearest intersection of a ray with any triangle (Moeller, Trumbore: Fast, Minimum Storage Ray/Triangle Intersection, 1997);
   INFINITY: none. `edge` gets how near the ray comes to an edge, in barycentric coordinates. */
static double cast(const struct pnet_mesh *m, const double *from, const double *d, double *edge)
{
    double best = INFINITY;
    *edge = INFINITY;
    for (int64_t t = 0; t < m->triangle_count; t++) {
        double u[3], v[3], s[3];
        minus(corner(m, t, 1), corner(m, t, 0), u);
        minus(corner(m, t, 2), corner(m, t, 0), v);
        minus(from, corner(m, t, 0), s);
        double p[3] = {
            d[1] * v[2] - d[2] * v[1], d[2] * v[0] - d[0] * v[2], d[0] * v[1] - d[1] * v[0]};
        double q[3] = {
            s[1] * u[2] - s[2] * u[1], s[2] * u[0] - s[0] * u[2], s[0] * u[1] - s[1] * u[0]};
        double det = dot(u, p);
        if (fabs(det) < 1e-12) continue;
        double a = dot(s, p) / det, b = dot(d, q) / det, at = dot(v, q) / det;
        double inside = fmin(fmin(a, b), 1 - a - b);
        *edge = fmin(*edge, fabs(inside));
        if (inside >= 0 && at > 0 && at < best) best = at;
    }
    return best;
}

/* Each ray has its nearest hit, in the order of the pixels; rays that graze an edge are left out. */
static void check_view(const struct pnet_surface *s, uint64_t seed)
{
    static float xyz[3 * PNET_VIEW_RAYS];
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    struct pnet_error e;
    double turn[3][3], eye[3];
    int64_t count, at = 0;
    int hits = 0, grazed = 0, wrong = 0;
    pnet_surface_turn(&r, 0, turn);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) CHECK(fabs(dot(turn[i], turn[k]) - (i == k)) < 1e-12);
    CHECK(!pnet_surface_view(&s->mesh, turn, 2, xyz, &count, &e));
    for (int c = 0; c < 3; c++) eye[c] = -2 * turn[2][c];
    for (int i = 0; i < PNET_VIEW_RAYS; i++) {
        double x = (i % PNET_VIEW_WIDTH + 0.5 - 80) / 100,
               y = (i / PNET_VIEW_WIDTH + 0.5 - 60) / 100;
        double d[3], edge;
        for (int c = 0; c < 3; c++) d[c] = x * turn[0][c] + y * turn[1][c] + turn[2][c];
        double want = cast(&s->mesh, eye, d, &edge);
        bool near = false;
        double away = 0;
        for (int c = 0; at < count && c < 3; c++)
            away = fmax(away, fabs((double)xyz[3 * at + c] - (eye[c] + want * d[c])));
        near = at < count && want < INFINITY && away < 1e-5;
        hits += near;
        if (near) {
            at++;
        } else if (edge < 1e-9) {
            grazed++;
        } else if (want < INFINITY) {
            wrong++;
        }
    }
    CHECKF(at == count && !wrong, "%d of %d rays are wrong, %d taken of %d", wrong, hits, (int)at,
        (int)count);
    CHECK(hits > 200 && grazed < 3);
}

static void test_view(void)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct pnet_surface s = make_surface(seed, seed == 5 ? 200 : 12);
        check_view(&s, 100 + seed);
        pnet_surface_free(&s);
    }
}

/* A closed body shows no gap: of a ball of many triangles no ray of its disc passes. */
static void test_watertight(void)
{
    enum { ACROSS = 90, DOWN = 45 };
    static float xyz[3 * PNET_VIEW_RAYS];
    struct pnet_mesh m = {.corners = malloc(sizeof(double) * 3 * ACROSS * (DOWN + 1)),
        .triangles = malloc(sizeof(int32_t) * 6 * ACROSS * DOWN)};
    for (int j = 0; j <= DOWN; j++)
        for (int i = 0; i < ACROSS; i++) {
            double *p = m.corners + 3 * m.corner_count++, a = 2 * M_PI * i / ACROSS,
                   b = M_PI * j / DOWN;
            p[0] = sin(b) * cos(a);
            p[1] = sin(b) * sin(a);
            p[2] = cos(b);
        }
    for (int j = 0; j < DOWN; j++)
        for (int i = 0; i < ACROSS; i++) {
            int a = j * ACROSS + i, b = j * ACROSS + (i + 1) % ACROSS;
            const int32_t two[6] = {a, b, a + ACROSS, b, b + ACROSS, a + ACROSS};
            memcpy(m.triangles + 3 * m.triangle_count, two, sizeof two);
            m.triangle_count += 2;
        }
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
        struct pnet_error e;
        double turn[3][3];
        int64_t count, disc = 0;
        pnet_surface_turn(&r, 0, turn);
        CHECK(!pnet_surface_view(&m, turn, 2, xyz, &count, &e));
        /* the disc that the ball certainly covers: rays that pass the centre at less than 0.99 */
        for (int i = 0; i < PNET_VIEW_RAYS; i++) {
            double x = (i % 160 + 0.5 - 80) / 100, y = (i / 160 + 0.5 - 60) / 100,
                   q = x * x + y * y;
            disc += 4 * q / (1 + q) < 0.99 * 0.99;
        }
        CHECKF(count >= disc && count < disc + disc / 20, "%d of %d", (int)count, (int)disc);
        for (int64_t i = 0; i < count; i++) { /* nothing of the far side */
            double p[3] = {(double)xyz[3 * i], (double)xyz[3 * i + 1], (double)xyz[3 * i + 2]};
            CHECK(fabs(sqrt(dot(p, p)) - 1) < 3e-3 && dot(p, turn[2]) < -0.45);
        }
    }
    pnet_mesh_free(&m);
}

static void random_points(uint64_t seed, int count, float *xyz)
{
    struct pnet_rand r = {.seed = seed, .purpose = PNET_DRAW_TEST};
    /* on a coarse lattice: many are equally far away */
    for (int i = 0; i < 3 * count; i++)
        xyz[i] = floorf(8 * pnet_rand_unit(&r, (uint64_t)i)) / 4 - 1;
}

static double distance2(const float *p, const double *c)
{
    double sum = 0;
    for (int k = 0; k < 3; k++) sum += ((double)p[k] - c[k]) * ((double)p[k] - c[k]);
    return sum;
}

static void test_cut(void)
{
    enum { COUNT = 300 };
    static float xyz[3 * COUNT];
    const double centre[3] = {0.6, -0.64, 0.48};
    struct pnet_error e;
    random_points(7, COUNT, xyz);
    for (int gone = 0; gone <= COUNT; gone += 75) {
        int64_t kept[COUNT];
        bool there[COUNT] = {false};
        CHECK(!pnet_cut_away(xyz, COUNT, centre, gone, kept, &e));
        for (int i = 0; i < COUNT - gone; i++) {
            CHECK(kept[i] >= 0 && kept[i] < COUNT && (!i || kept[i] > kept[i - 1]));
            there[kept[i]] = true;
        }
        /* a point is cut away exactly where fewer than `gone` are before it */
        for (int i = 0; i < COUNT; i++) {
            int before = 0;
            for (int k = 0; k < COUNT; k++) {
                double a = distance2(xyz + 3 * k, centre), b = distance2(xyz + 3 * i, centre);
                before += a < b || (a == b && k < i);
            }
            CHECK(there[i] == (before >= gone));
        }
    }
}

static void test_farthest(void)
{
    enum { COUNT = 200, FROM = 130, MOST = 130 };
    static float xyz[3 * COUNT];
    int64_t from[FROM], chosen[MOST];
    struct pnet_error e;
    random_points(8, COUNT, xyz);
    for (int i = 0; i < FROM; i++) from[i] = (i * 3 + 5) % COUNT;
    CHECK(!pnet_farthest_points(xyz, from, FROM, MOST, chosen, &e));
    CHECK(chosen[0] == from[0]);
    for (int k = 1; k < MOST; k++) {
        int best = -1;
        double most = -1;
        for (int i = 0; i < FROM; i++) {
            double near = INFINITY;
            for (int j = 0; j < k; j++) {
                const float *p = xyz + 3 * chosen[j];
                const double c[3] = {(double)p[0], (double)p[1], (double)p[2]};
                near = fmin(near, distance2(xyz + 3 * from[i], c));
            }
            if (near > most) {
                most = near;
                best = i;
            }
        }
        CHECKF(chosen[k] == from[best], "point %d: %d, not %d", k, (int)chosen[k], (int)from[best]);
    }
}

int main(void)
{
    test_fit();
    test_draw();
    test_draw_within();
    test_view();
    test_watertight();
    test_cut();
    test_farthest();
    return check_end();
}
