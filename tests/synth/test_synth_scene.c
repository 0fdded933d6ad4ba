/* Forms, their surfaces, and rays: against formulas, finite differences and brute force. */
#include "runtime/synth/synth_rand.h"
#include "runtime/synth/synth_scene.h"
#include "tests/check.h"

static const double PI = 3.14159265358979;

/* A solid of any form, stretched and turned any way. */
static void add_any(struct pnet_scene *s, struct pnet_draw *d, bool torus)
{
    int first = s->count;
    float hx = draw_between(d, 0.2f, 1.5f), hy = draw_between(d, 0.2f, 1.5f),
          hz = draw_between(d, 0.2f, 1.5f);
    struct pnet_solid *solid = pnet_scene_add(
        s, (enum pnet_form)draw_below(d, torus ? 4 : 3), vec(0, 0, 0), vec(hx, hy, hz));
    solid->taper = draw_between(d, 0.05f, 1.6f);
    if (solid->form == PNET_FORM_TORUS) solid->taper = draw_between(d, 0.1f, 0.7f);
    struct pnet_vec m[3], axis = vec(draw_between(d, -1, 1), 0.6f, 0.3f);
    pnet_turn(m, vec_scale(axis, 1 / vec_length(axis)), draw_between(d, 0, 6));
    float x = draw_between(d, -4, 4), y = draw_between(d, -4, 4), z = draw_between(d, -4, 4);
    pnet_scene_move(s, first, m, vec(x, y, z));
}

static double surface(const struct pnet_solid *s)
{
    double sum = 0;
    float most;
    for (int f = 0; f < pnet_solid_faces(s); f++) sum += (double)pnet_solid_area(s, f, &most);
    return sum;
}

static void test_areas(void)
{
    struct pnet_scene s = {0};
    pnet_scene_box(&s, 0, 0, 0, 2, 3, 4);
    pnet_scene_rod(&s, vec(1, 1, 1), vec(1, 4, 5), 2, 2);
    pnet_scene_add(&s, PNET_FORM_BALL, vec(0, 5, 0), vec(3, 3, 3));
    pnet_scene_rod(&s, vec(0, 0, 0), vec(0, 0, 4), 3, 0);
    pnet_scene_add(&s, PNET_FORM_TORUS, vec(0, 0, 0), vec(2, 2, 2))->taper = 0.25f;
    const double want[5] = {
        52, 2 * PI * 2 * 5 + 2 * PI * 4, 4 * PI * 9, PI * 9 + PI * 3 * 5, 4 * PI * PI * 2 * 0.5};
    for (int i = 0; i < s.count; i++)
        CHECKF(fabs(surface(&s.solids[i]) - want[i]) < 1e-4 * want[i], "solid %d: %g, expected %g",
            i, surface(&s.solids[i]), want[i]);
    pnet_scene_free(&s);
}

/* The area vector is the cross product of the tangents, up to sign, and points out of the solid. */
static void test_area_vectors(void)
{
    struct pnet_draw d = draw_begin(1, 0, 0, 0);
    struct pnet_scene s = {0};
    for (int i = 0; i < 60; i++) add_any(&s, &d, true);
    for (int i = 0; i < s.count; i++) {
        const struct pnet_solid *solid = &s.solids[i];
        for (int f = 0; f < pnet_solid_faces(solid); f++) {
            float u = draw_between(&d, 0.1f, 0.9f), v = draw_between(&d, 0.1f, 0.9f), h = 2e-3f;
            struct pnet_vec p, area, p0, p1, q0, q1, unused;
            pnet_solid_point(solid, f, u, v, &p, &area);
            pnet_solid_point(solid, f, u - h, v, &p0, &unused);
            pnet_solid_point(solid, f, u + h, v, &p1, &unused);
            pnet_solid_point(solid, f, u, v - h, &q0, &unused);
            pnet_solid_point(solid, f, u, v + h, &q1, &unused);
            struct pnet_vec cross = vec_cross(vec_sub(p1, p0), vec_sub(q1, q0));
            cross = vec_scale(cross, 1 / (4 * h * h));
            if (vec_dot(cross, area) < 0) cross = vec_scale(cross, -1);
            CHECK(vec_length(vec_sub(cross, area)) < 0.01f * vec_length(area));
            struct pnet_vec out = vec_scale(area, 0.05f / vec_length(area));
            if (solid->form != PNET_FORM_TORUS) {
                CHECK(!pnet_solid_contains(solid, vec_add(p, vec_scale(out, 0.1f)), 0));
                CHECK(pnet_solid_contains(solid, vec_sub(p, vec_scale(out, 0.1f)), 0));
                struct pnet_vec n = pnet_solid_normal(solid, p);
                CHECK(vec_dot(n, area) > 0.999f * vec_length(area));
            }
        }
    }
    pnet_scene_free(&s);
}

/* Where a ray enters and leaves, found again by walking along it in small steps. */
static void test_cuts(void)
{
    struct pnet_draw d = draw_begin(2, 0, 0, 0);
    struct pnet_scene s = {0};
    int hits = 0;
    for (int i = 0; i < 100; i++) add_any(&s, &d, false);
    for (int i = 0; i < s.count; i++) {
        const struct pnet_solid *solid = &s.solids[i];
        float x = draw_between(&d, -3, 3), y = draw_between(&d, -3, 3), z = draw_between(&d, -3, 3);
        struct pnet_vec from = vec_add(solid->centre, vec(x, y, z));
        x = draw_between(&d, -0.3f, 0.3f);
        y = draw_between(&d, -0.3f, 0.3f);
        struct pnet_vec to = vec_add(solid->centre, vec(x, y, 0)), ray = vec_sub(to, from);
        float enter = 0, leave = 2, low = 9, high = -9;
        bool cut = pnet_solid_cut(solid, from, ray, &enter, &leave);
        for (int k = 0; k <= 2000; k++) {
            float t = 0.001f * (float)k;
            if (!pnet_solid_contains(solid, vec_add(from, vec_scale(ray, t)), 0)) continue;
            low = fminf(low, t);
            high = fmaxf(high, t);
        }
        hits += cut;
        CHECK(cut || low > high || high - low < 0.003f);
        if (cut && low <= high) CHECK(fabsf(enter - low) < 0.003f && fabsf(leave - high) < 0.003f);
        if (cut && leave - enter > 0.004f) CHECK(low <= high);
    }
    CHECKF(hits > 50, "%d", hits);
    pnet_scene_free(&s);
}

static void test_grid(void)
{
    struct pnet_draw d = draw_begin(3, 0, 0, 0);
    struct pnet_rand rand = {.seed = 4};
    struct pnet_scene s = {0};
    struct pnet_tracer g;
    int hits = 0;
    for (int i = 0; i < 40; i++) add_any(&s, &d, false);
    pnet_scene_box(&s, -8, -8, -6, 8, 8, -5.9f);
    CHECK(pnet_tracer_build(&g, &s, 0.7f));
    for (int i = 0; i < 4000; i++) {
        float x = draw_between(&d, -9, 9), y = draw_between(&d, -9, 9), z = draw_between(&d, -9, 9);
        struct pnet_vec from = vec(x, y, z);
        x = draw_between(&d, -6, 6);
        y = i % 5 ? draw_between(&d, -6, 6) : from.y; /* along an axis, too */
        z = i % 7 ? draw_between(&d, -6, 6) : from.z;
        struct pnet_vec ray = vec_sub(vec(x, y, z), from);
        float first = 1;
        int want = -1;
        for (int k = 0; k < s.count; k++) {
            float enter = 0, leave = 1;
            if (!pnet_solid_cut(&s.solids[k], from, ray, &enter, &leave)) continue;
            if (want < 0 || enter < first) {
                want = k;
                first = enter;
            }
        }
        struct pnet_hit hit = pnet_tracer_cast(&g, from, ray, 1, &rand, 0);
        hits += want >= 0;
        CHECK((hit.solid < 0) == (want < 0));
        if (want >= 0 && hit.solid >= 0) CHECK(hit.t == first);
        CHECK(pnet_tracer_sees(&g, from, vec_add(from, ray)) == (want < 0));
    }
    CHECKF(hits > 800 && hits < 3800, "%d", hits);
    pnet_tracer_free(&g);
    pnet_scene_free(&s);
}

/* Through `clear_m` of a solid with that mean path, the share exp(-1) of all rays passes; where the
   others end is spread over its depth. */
static void test_clear(void)
{
    struct pnet_rand rand = {.seed = 5};
    struct pnet_scene s = {.brush = {.clear_m = 0.5f}};
    struct pnet_tracer g;
    int passed = 0, deep = 0;
    enum { RAYS = 20000 };
    pnet_scene_box(&s, 0, -1, -1, 0.5f, 1, 1);
    CHECK(pnet_tracer_build(&g, &s, 0.3f));
    for (int i = 0; i < RAYS; i++) {
        struct pnet_hit hit =
            pnet_tracer_cast(&g, vec(-2, 0, 0), vec(2, 0, 0), 9, &rand, (uint64_t)i);
        passed += hit.solid < 0;
        deep += hit.solid >= 0 && hit.t > 1.125f;
    }
    CHECKF(abs(passed - (int)(RAYS * exp(-1))) < 250, "%d", passed);
    CHECKF(abs(deep - (int)(RAYS * (exp(-0.5) - exp(-1)))) < 250, "%d", deep);
    pnet_tracer_free(&g);
    pnet_scene_free(&s);
}

int main(void)
{
    test_areas();
    test_area_vectors();
    test_cuts();
    test_grid();
    test_clear();
    return check_end();
}
