#include "runtime/synth/synth_scene.h"

#include <stdlib.h>

static const float TAU = 6.28318531f;

void pnet_scene_free(struct pnet_scene *s)
{
    free(s->solids);
    *s = (struct pnet_scene){0};
}

static void set_duals(struct pnet_solid *s)
{
    s->dual[0] = vec_cross(s->axis[1], s->axis[2]);
    s->dual[1] = vec_cross(s->axis[2], s->axis[0]);
    s->dual[2] = vec_cross(s->axis[0], s->axis[1]);
    s->volume = vec_dot(s->axis[0], s->dual[0]);
}

static struct pnet_solid *add_axes(struct pnet_scene *s, enum pnet_form form,
    struct pnet_vec centre, const struct pnet_vec axis[3])
{
    if (s->count == s->capacity && !s->failed) {
        int capacity = s->capacity ? s->capacity * 2 : 64;
        struct pnet_solid *more = realloc(s->solids, (size_t)capacity * sizeof *more);
        if (more) {
            s->solids = more;
            s->capacity = capacity;
        } else {
            s->failed = true;
        }
    }
    struct pnet_solid *solid = s->failed ? &s->spare : &s->solids[s->count++];
    *solid = (struct pnet_solid){.form = form,
        .taper = 1,
        .sweep = 1,
        .centre = centre,
        .brush = s->brush,
        .axis = {axis[0], axis[1], axis[2]}};
    solid->faces = (uint8_t)((1 << pnet_solid_faces(solid)) - 1);
    set_duals(solid);
    return solid;
}

struct pnet_solid *pnet_scene_add(
    struct pnet_scene *s, enum pnet_form form, struct pnet_vec centre, struct pnet_vec half)
{
    struct pnet_vec axis[3] = {vec(half.x, 0, 0), vec(0, half.y, 0), vec(0, 0, half.z)};
    return add_axes(s, form, centre, axis);
}

struct pnet_solid *pnet_scene_box(
    struct pnet_scene *s, float x0, float y0, float z0, float x1, float y1, float z1)
{
    return pnet_scene_add(s, PNET_FORM_BOX, vec((x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2),
        vec((x1 - x0) / 2, (y1 - y0) / 2, (z1 - z0) / 2));
}

struct pnet_solid *pnet_scene_rod(
    struct pnet_scene *s, struct pnet_vec from, struct pnet_vec to, float radius0, float radius1)
{
    struct pnet_vec along = vec_scale(vec_sub(to, from), 0.5f);
    struct pnet_vec unit = vec_scale(along, 1 / vec_length(along));
    struct pnet_vec other = fabsf(unit.z) < 0.9f ? vec(0, 0, 1) : vec(1, 0, 0);
    struct pnet_vec side = vec_cross(other, unit);
    side = vec_scale(side, radius0 / vec_length(side));
    struct pnet_vec axis[3] = {side, vec_cross(unit, side), along};
    struct pnet_solid *solid = add_axes(s, PNET_FORM_CYLINDER, vec_add(from, along), axis);
    solid->taper = radius1 / radius0;
    return solid;
}

void pnet_turn(struct pnet_vec m[3], struct pnet_vec a, float angle)
{
    float c = cosf(angle), s = sinf(angle), k = 1 - c;
    m[0] = vec(c + k * a.x * a.x, k * a.x * a.y - s * a.z, k * a.x * a.z + s * a.y);
    m[1] = vec(k * a.y * a.x + s * a.z, c + k * a.y * a.y, k * a.y * a.z - s * a.x);
    m[2] = vec(k * a.z * a.x - s * a.y, k * a.z * a.y + s * a.x, c + k * a.z * a.z);
}

static struct pnet_vec apply(const struct pnet_vec m[3], struct pnet_vec p)
{
    return vec(vec_dot(m[0], p), vec_dot(m[1], p), vec_dot(m[2], p));
}

void pnet_scene_move(
    struct pnet_scene *s, int first, const struct pnet_vec m[3], struct pnet_vec shift)
{
    for (int i = first; i < s->count; i++) {
        struct pnet_solid *solid = &s->solids[i];
        solid->centre = vec_add(apply(m, solid->centre), shift);
        for (int k = 0; k < 3; k++) solid->axis[k] = apply(m, solid->axis[k]);
        set_duals(solid);
    }
}

void pnet_scene_place(struct pnet_scene *s, int first, float yaw, struct pnet_vec shift)
{
    struct pnet_vec m[3];
    pnet_turn(m, vec(0, 0, 1), yaw);
    pnet_scene_move(s, first, m, shift);
}

struct pnet_vec pnet_solid_reach(const struct pnet_solid *s)
{
    float wide = s->form == PNET_FORM_TORUS ? 1 + s->taper : fmaxf(1, s->taper);
    if (s->form == PNET_FORM_BALL) wide = 1;
    float deep = s->form == PNET_FORM_TORUS ? s->taper : 1;
    struct pnet_vec a = vec_scale(s->axis[0], wide), b = vec_scale(s->axis[1], wide);
    struct pnet_vec c = vec_scale(s->axis[2], deep);
    return vec(fabsf(a.x) + fabsf(b.x) + fabsf(c.x), fabsf(a.y) + fabsf(b.y) + fabsf(c.y),
        fabsf(a.z) + fabsf(b.z) + fabsf(c.z));
}

int pnet_solid_faces(const struct pnet_solid *s)
{
    switch (s->form) {
    case PNET_FORM_BOX: return 6;
    case PNET_FORM_CYLINDER: return 3;
    case PNET_FORM_BALL:
    case PNET_FORM_TORUS: break;
    }
    return 1;
}

/* h(z) = a + b z */
static float slope(const struct pnet_solid *s)
{
    return (s->taper - 1) / 2;
}
static float width_at(const struct pnet_solid *s, float z)
{
    return (1 + s->taper) / 2 + slope(s) * z;
}

static void box_point(const struct pnet_solid *s, int face, float u, float v, struct pnet_vec *p,
    struct pnet_vec *area)
{
    float sign = face & 1 ? 1.0f : -1.0f;
    if (face >= 4) {
        float h = face == 5 ? s->taper : 1;
        *p = vec(h * (2 * u - 1), h * (2 * v - 1), sign);
        *area = vec(0, 0, sign * 4 * h * h);
        return;
    }
    float z = 2 * v - 1, h = width_at(s, z), across = h * (2 * u - 1), up = -4 * h * slope(s);
    *p = face < 2 ? vec(sign * h, across, z) : vec(across, sign * h, z);
    *area = face < 2 ? vec(sign * 4 * h, 0, up) : vec(0, sign * 4 * h, up);
}

static void cylinder_point(const struct pnet_solid *s, int face, float u, float v,
    struct pnet_vec *p, struct pnet_vec *area)
{
    float c = cosf(TAU * u), n = sinf(TAU * u);
    if (face > 0) {
        float h = face == 2 ? s->taper : 1, r = h * sqrtf(v), sign = face == 2 ? 1.0f : -1.0f;
        *p = vec(r * c, r * n, sign);
        *area = vec(0, 0, sign * TAU / 2 * h * h);
        return;
    }
    float z = 2 * v - 1, r = width_at(s, z), k = 2 * TAU * r;
    *p = vec(r * c, r * n, z);
    *area = vec(k * c, k * n, -k * slope(s));
}

static void torus_point(
    const struct pnet_solid *s, float u, float v, struct pnet_vec *p, struct pnet_vec *area)
{
    float c = cosf(TAU * s->sweep * u), n = sinf(TAU * s->sweep * u);
    float ct = cosf(TAU * v), nt = sinf(TAU * v), r = 1 + s->taper * ct;
    float k = TAU * TAU * s->sweep * s->taper * r;
    *p = vec(r * c, r * n, s->taper * nt);
    *area = vec(k * ct * c, k * ct * n, k * nt);
}

void pnet_solid_point(const struct pnet_solid *s, int face, float u, float v, struct pnet_vec *p,
    struct pnet_vec *area)
{
    struct pnet_vec q = {0, 0, 0}, n = {0, 0, 0};
    switch (s->form) {
    case PNET_FORM_BOX: box_point(s, face, u, v, &q, &n); break;
    case PNET_FORM_CYLINDER: cylinder_point(s, face, u, v, &q, &n); break;
    case PNET_FORM_BALL: {
        float z = 2 * v - 1, r = sqrtf(fmaxf(0, 1 - z * z));
        q = vec(r * cosf(TAU * u), r * sinf(TAU * u), z);
        n = vec_scale(q, 2 * TAU);
        break;
    }
    case PNET_FORM_TORUS: torus_point(s, u, v, &q, &n); break;
    }
    *p = s->centre;
    *p = vec_add(*p, vec_scale(s->axis[0], q.x));
    *p = vec_add(*p, vec_scale(s->axis[1], q.y));
    *p = vec_add(*p, vec_scale(s->axis[2], q.z));
    *area = vec_scale(s->dual[0], n.x);
    *area = vec_add(*area, vec_scale(s->dual[1], n.y));
    *area = vec_add(*area, vec_scale(s->dual[2], n.z));
    if (s->inside_out) *area = vec_scale(*area, -1);
}

float pnet_solid_area(const struct pnet_solid *s, int face, float *most)
{
    enum { STEPS = 12 };
    float sum = 0, top = 0;
    for (int i = 0; i <= STEPS; i++) {
        for (int j = 0; j <= STEPS; j++) {
            struct pnet_vec p, area;
            pnet_solid_point(s, face, (float)i / STEPS, (float)j / STEPS, &p, &area);
            float length = vec_length(area);
            float share = (i % STEPS ? 1.0f : 0.5f) * (j % STEPS ? 1.0f : 0.5f);
            sum += share * length;
            top = fmaxf(top, length);
        }
    }
    *most = top;
    return sum / (STEPS * STEPS);
}

/* A point, or a direction (which the centre does not move), in the unit form. */
static struct pnet_vec unit_of(const struct pnet_solid *s, struct pnet_vec p)
{
    float k = 1 / s->volume;
    return vec(vec_dot(s->dual[0], p) * k, vec_dot(s->dual[1], p) * k, vec_dot(s->dual[2], p) * k);
}

bool pnet_solid_contains(const struct pnet_solid *s, struct pnet_vec p, float margin)
{
    if (s->faces != (1 << pnet_solid_faces(s)) - 1) return false;
    struct pnet_vec q = unit_of(s, vec_sub(p, s->centre));
    float h = width_at(s, q.z) - margin;
    switch (s->form) {
    case PNET_FORM_BOX: return fabsf(q.z) < 1 - margin && fabsf(q.x) < h && fabsf(q.y) < h;
    case PNET_FORM_CYLINDER:
        return fabsf(q.z) < 1 - margin && h > 0 && q.x * q.x + q.y * q.y < h * h;
    case PNET_FORM_BALL: return vec_dot(q, q) < (1 - margin) * (1 - margin);
    case PNET_FORM_TORUS: break;
    }
    return false;
}

/* Keeps the part of [*enter, *leave] with value + t change <= 0. */
static bool clip(float value, float change, float *enter, float *leave)
{
    if (change == 0) return value <= 0 && *enter <= *leave;
    float t = -value / change;
    if (change > 0) {
        if (t < *leave) *leave = t;
    } else {
        if (t > *enter) *enter = t;
    }
    return *enter <= *leave;
}

/* Keeps the part with a t^2 + 2 b t + c <= 0, known to be one interval. */
static bool clip_quadric(float a, float b, float c, float *enter, float *leave)
{
    if (fabsf(a) < 1e-12f) return clip(c, 2 * b, enter, leave);
    float root = b * b - a * c;
    if (root < 0) return a < 0;
    root = sqrtf(root);
    /* The smaller root by the product of both: no cancellation. */
    float far = b > 0 ? -b - root : -b + root;
    float t0 = far / a, t1 = far != 0 ? c / far : 0;
    if (t0 > t1) {
        float swap = t0;
        t0 = t1;
        t1 = swap;
    }
    if (a > 0) {
        *enter = fmaxf(*enter, t0);
        *leave = fminf(*leave, t1);
        return *enter <= *leave;
    }
    /* Inside before t0 and after t1; the mirrored half of a double cone is already clipped away. */
    if (*enter <= t0) {
        *leave = fminf(*leave, t0);
        return true;
    }
    *enter = fmaxf(*enter, t1);
    return *enter <= *leave;
}

bool pnet_solid_cut(const struct pnet_solid *s, struct pnet_vec origin, struct pnet_vec direction,
    float *enter, float *leave)
{
    if (s->form == PNET_FORM_TORUS) return false;
    struct pnet_vec o = unit_of(s, vec_sub(origin, s->centre)), d = unit_of(s, direction);
    if (s->form == PNET_FORM_BALL)
        return clip_quadric(vec_dot(d, d), vec_dot(o, d), vec_dot(o, o) - 1, enter, leave);
    if (!clip(o.z - 1, d.z, enter, leave) || !clip(-o.z - 1, -d.z, enter, leave)) return false;
    float h = width_at(s, o.z), dh = slope(s) * d.z;
    if (s->form == PNET_FORM_BOX)
        return clip(o.x - h, d.x - dh, enter, leave) && clip(-o.x - h, -d.x - dh, enter, leave) &&
               clip(o.y - h, d.y - dh, enter, leave) && clip(-o.y - h, -d.y - dh, enter, leave);
    return clip_quadric(d.x * d.x + d.y * d.y - dh * dh, o.x * d.x + o.y * d.y - h * dh,
        o.x * o.x + o.y * o.y - h * h, enter, leave);
}

struct pnet_vec pnet_solid_normal(const struct pnet_solid *s, struct pnet_vec p)
{
    struct pnet_vec q = unit_of(s, vec_sub(p, s->centre)), n = q;
    float h = width_at(s, q.z), side = 0;
    if (s->form == PNET_FORM_BOX) side = fmaxf(fabsf(q.x), fabsf(q.y)) - h;
    if (s->form == PNET_FORM_CYLINDER) side = sqrtf(q.x * q.x + q.y * q.y) - h;
    if (s->form == PNET_FORM_BOX || s->form == PNET_FORM_CYLINDER) {
        if (fabsf(q.z) - 1 > side)
            n = vec(0, 0, q.z);
        else if (s->form == PNET_FORM_CYLINDER)
            n = vec(q.x, q.y, -slope(s) * h);
        else if (fabsf(q.x) > fabsf(q.y))
            n = vec(copysignf(1, q.x), 0, -slope(s));
        else
            n = vec(0, copysignf(1, q.y), -slope(s));
    }
    struct pnet_vec world = vec_scale(s->dual[0], n.x);
    world = vec_add(world, vec_scale(s->dual[1], n.y));
    world = vec_add(world, vec_scale(s->dual[2], n.z));
    return vec_scale(world, 1 / vec_length(world));
}
