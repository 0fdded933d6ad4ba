#include "runtime/synth/synth_models.h"

void pnet_brush_street(struct pnet_scene *s, enum pnet_street_class label, float reflect)
{
    s->brush.label = (uint8_t)label;
    s->brush.reflect = reflect;
    s->brush.clear_m = 0;
}

/* An upright wheel, its axle along y. */
static struct pnet_solid *wheel(
    struct pnet_scene *s, float x, float y, float radius, float half_width)
{
    return pnet_scene_rod(
        s, vec(x, y - half_width, radius), vec(x, y + half_width, radius), radius, radius);
}

static void four_wheels(struct pnet_scene *s, float x, float y, float radius)
{
    for (int i = 0; i < 4; i++) wheel(s, i & 1 ? x : -x, i & 2 ? y : -y, radius, 0.11f);
}

/* A tapered cabin: a box whose top is narrower by `narrow`, moved back by `back` there. */
static void cabin(
    struct pnet_scene *s, float x0, float x1, float y, float z0, float z1, float narrow, float back)
{
    int first = s->count;
    pnet_scene_box(s, (x0 - x1) / 2, -y, 0, (x1 - x0) / 2, y, z1 - z0)->taper = narrow;
    const struct pnet_vec lean[3] = {{1, 0, -back / (z1 - z0)}, {0, 1, 0}, {0, 0, 1}};
    pnet_scene_move(s, first, lean, vec((x0 + x1) / 2, 0, z0));
}

void pnet_model_car(struct pnet_scene *s, struct pnet_draw *d)
{
    float x = draw_between(d, 1.85f, 2.35f), y = draw_between(d, 0.82f, 0.95f);
    float waist = draw_between(d, 0.85f, 1), top = draw_between(d, 1.42f, 1.75f);
    int kind = draw_below(d, 3); /* saloon, hatchback, van */
    float paint = draw_between(d, 0.12f, 0.75f);
    pnet_brush_street(s, PNET_CAR, paint);
    pnet_scene_box(s, -x, -y, 0.25f, x, y, 0.62f);
    pnet_scene_box(s, -x + 0.03f, -y, 0.62f, x - 0.05f, y, waist)->taper = 0.95f;
    float tail = kind == 0 ? -x * 0.62f : -x * 0.96f, nose = kind == 2 ? x * 0.62f : x * 0.36f;
    if (kind == 2) top += 0.3f;
    pnet_brush_street(s, PNET_CAR, 0.1f);
    cabin(s, tail, nose, y * 0.95f, waist, top - 0.04f, 0.76f, 0.12f);
    pnet_brush_street(s, PNET_CAR, paint);
    cabin(s, tail + 0.32f, nose - 0.5f, y * 0.72f, top - 0.05f, top, 0.95f, 0.05f);
    for (float side = -1; side <= 1; side += 2)
        pnet_scene_box(s, nose - 0.3f, side * (y + 0.08f) - 0.08f, waist, nose - 0.15f,
            side * (y + 0.08f) + 0.08f, waist + 0.13f);
    pnet_brush_street(s, PNET_CAR, 0.06f);
    four_wheels(s, x * 0.62f, y - 0.11f, draw_between(d, 0.3f, 0.35f));
    /* Number plates shine. */
    pnet_brush_street(s, PNET_CAR, 0.95f);
    pnet_scene_box(s, -x - 0.01f, -0.26f, 0.45f, -x + 0.01f, 0.26f, 0.56f);
    pnet_scene_box(s, x - 0.01f, -0.26f, 0.4f, x + 0.01f, 0.26f, 0.51f);
}

void pnet_model_truck(struct pnet_scene *s, struct pnet_draw *d)
{
    float x = draw_between(d, 3, 4.6f), y = draw_between(d, 1.1f, 1.25f),
          top = draw_between(d, 2.8f, 3.8f);
    float cab = draw_between(d, 1.6f, 2.1f), roof = draw_between(d, 2.3f, 2.9f);
    pnet_brush_street(s, PNET_TRUCK, draw_between(d, 0.3f, 0.8f));
    pnet_scene_box(s, -x, -y, 1, x - cab - 0.25f, y, top);
    pnet_brush_street(s, PNET_TRUCK, draw_between(d, 0.15f, 0.7f));
    pnet_scene_box(s, x - cab, -y * 0.95f, 0.5f, x, y * 0.95f, 1.5f);
    cabin(s, x - cab, x - 0.02f, y * 0.94f, 1.5f, roof, 0.9f, 0.08f);
    pnet_brush_street(s, PNET_TRUCK, 0.12f);
    pnet_scene_box(s, -x, -0.4f, 0.6f, x - 0.2f, 0.4f, 1);
    four_wheels(s, x - 0.9f, y - 0.16f, 0.48f);
    for (float side = -1; side <= 1; side += 2)
        wheel(s, -x + 2.1f, side * (y - 0.16f), 0.48f, 0.14f);
}

/* A body on top of `hip`: trunk leaning forward by `lean`, arms, head. */
static void torso(struct pnet_scene *s, struct pnet_draw *d, float hip, float scale, float lean)
{
    struct pnet_vec low = vec(0, 0, hip), neck = vec(lean, 0, hip + 0.52f * scale);
    pnet_scene_rod(s, low, neck, 0.17f * scale, 0.2f * scale);
    pnet_scene_add(s, PNET_FORM_BALL, vec(lean * 1.25f, 0, hip + 0.72f * scale),
        vec(0.11f * scale, 0.1f * scale, 0.14f * scale));
    for (float side = -1; side <= 1; side += 2) {
        float swing = lean > 0.15f ? 0.35f : draw_between(d, -0.2f, 0.2f);
        pnet_scene_rod(s, vec(lean * 0.9f, side * 0.21f * scale, hip + 0.5f * scale),
            vec(lean + swing, side * 0.25f * scale, hip + (lean > 0.15f ? 0.15f : -0.05f)),
            0.06f * scale, 0.045f * scale);
    }
}

void pnet_model_person(struct pnet_scene *s, struct pnet_draw *d)
{
    float scale = draw_between(d, 0.85f, 1.12f), hip = 0.86f * scale,
          stride = draw_between(d, 0, 0.3f);
    pnet_brush_street(s, PNET_PERSON, draw_between(d, 0.15f, 0.6f));
    for (float side = -1; side <= 1; side += 2)
        pnet_scene_rod(s, vec(side * stride, side * 0.1f, 0), vec(0, side * 0.09f, hip),
            0.065f * scale, 0.09f * scale);
    torso(s, d, hip, scale, draw_between(d, 0, 0.06f));
}

void pnet_model_cyclist(struct pnet_scene *s, struct pnet_draw *d)
{
    float scale = draw_between(d, 0.92f, 1.1f), hip = 0.95f * scale;
    pnet_brush_street(s, PNET_CYCLIST, draw_between(d, 0.2f, 0.6f));
    for (float end = -1; end <= 1; end += 2) {
        wheel(s, end * 0.52f, 0, 0.34f, 0.025f)->brush.clear_m = 0.06f; /* spokes */
    }
    pnet_scene_rod(s, vec(-0.52f, 0, 0.34f), vec(-0.1f, 0, 0.85f), 0.025f, 0.025f);
    pnet_scene_rod(s, vec(-0.1f, 0, 0.85f), vec(0.42f, 0, 0.9f), 0.025f, 0.025f);
    pnet_scene_rod(s, vec(0.52f, 0, 0.34f), vec(0.4f, 0, 1.02f), 0.025f, 0.025f);
    pnet_scene_rod(s, vec(0.4f, -0.28f, 1.02f), vec(0.4f, 0.28f, 1.02f), 0.02f, 0.02f);
    for (float side = -1; side <= 1; side += 2) {
        float pedal = 0.3f + side * 0.13f;
        pnet_scene_rod(
            s, vec(0.1f, side * 0.12f, pedal), vec(0.2f, side * 0.11f, hip - 0.2f), 0.055f, 0.07f);
        pnet_scene_rod(
            s, vec(0.2f, side * 0.11f, hip - 0.2f), vec(-0.1f, side * 0.1f, hip), 0.07f, 0.085f);
    }
    int first = s->count;
    torso(s, d, hip, scale, 0.3f);
    const struct pnet_vec still[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    pnet_scene_move(s, first, still, vec(-0.1f, 0, 0));
}

void pnet_model_tree(struct pnet_scene *s, struct pnet_draw *d)
{
    float height = draw_between(d, 4.5f, 10), fork = height * draw_between(d, 0.25f, 0.4f);
    float radius = draw_between(d, 0.11f, 0.26f), wide = height * draw_between(d, 0.18f, 0.3f);
    pnet_brush_street(s, PNET_TRUNK, 0.35f);
    pnet_scene_rod(s, vec(0, 0, -0.05f), vec(0, 0, fork), radius, radius * 0.8f);
    pnet_scene_rod(
        s, vec(0, 0, fork), vec(0.2f, 0.1f, height * 0.7f), radius * 0.8f, radius * 0.3f);
    pnet_brush_street(s, PNET_VEGETATION, 0.5f);
    s->brush.clear_m = draw_between(d, 0.35f, 0.8f);
    int clumps = 5 + draw_below(d, 6);
    for (int i = 0; i < clumps; i++) {
        float turn = draw_between(d, 0, 6.28f), out = wide * draw_between(d, 0.1f, 0.75f);
        float z = fork + (height - fork) * draw_between(d, 0.25f, 0.9f),
              r = wide * draw_between(d, 0.4f, 0.7f);
        pnet_scene_add(
            s, PNET_FORM_BALL, vec(out * cosf(turn), out * sinf(turn), z), vec(r, r, r * 0.8f));
    }
    s->brush.clear_m = 0;
}

void pnet_model_bush(struct pnet_scene *s, struct pnet_draw *d)
{
    pnet_brush_street(s, PNET_VEGETATION, 0.5f);
    s->brush.clear_m = draw_between(d, 0.1f, 0.25f);
    for (int i = 2 + draw_below(d, 4); i > 0; i--) {
        float r = draw_between(d, 0.3f, 0.75f), x = draw_between(d, -0.8f, 0.8f),
              y = draw_between(d, -0.4f, 0.4f);
        pnet_scene_add(s, PNET_FORM_BALL, vec(x, y, r * 0.7f), vec(r, r, r * 0.9f));
    }
    s->brush.clear_m = 0;
}

void pnet_model_street_lamp(struct pnet_scene *s, struct pnet_draw *d)
{
    float height = draw_between(d, 5, 8), reach = draw_between(d, 0.5f, 1.8f);
    pnet_brush_street(s, PNET_POLE, 0.45f);
    pnet_scene_rod(s, vec(0, 0, -0.02f), vec(0, 0, 0.9f), 0.11f, 0.1f);
    pnet_scene_rod(s, vec(0, 0, 0.9f), vec(0, 0, height), 0.08f, 0.05f);
    pnet_scene_rod(s, vec(0, 0, height), vec(0, -reach, height + 0.25f), 0.04f, 0.035f);
    pnet_scene_box(s, -0.12f, -reach - 0.6f, height + 0.2f, 0.12f, -reach, height + 0.32f);
}

void pnet_model_sign(struct pnet_scene *s, struct pnet_draw *d)
{
    float height = draw_between(d, 2.2f, 2.9f), r = draw_between(d, 0.3f, 0.42f);
    pnet_brush_street(s, PNET_POLE, 0.45f);
    pnet_scene_rod(s, vec(0, 0, -0.02f), vec(0, 0, height + r), 0.035f, 0.035f);
    /* The sheeting of signs sends most of the light back. */
    pnet_brush_street(s, PNET_SIGN, 1);
    int first = s->count, kind = draw_below(d, 3);
    if (kind == 0) {
        pnet_scene_rod(s, vec(-0.06f, 0, height), vec(-0.04f, 0, height), r, r);
    } else if (kind == 1) {
        pnet_scene_box(s, -0.06f, -r, height - 0.25f, -0.04f, r, height + 0.25f);
    } else {
        /* A triangle, in all but the last tenth of its tip. */
        pnet_scene_box(s, -r, -0.01f, 0, r, 0.01f, 1.6f * r)->taper = 0.1f;
        const struct pnet_vec aside[3] = {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}};
        pnet_scene_move(s, first, aside, vec(-0.05f, 0, height - 0.8f * r));
    }
}

void pnet_model_building(struct pnet_scene *s, struct pnet_draw *d, float x, float y)
{
    float height = draw_between(d, 5, 15), floor_m = 3.1f, sill = draw_between(d, 0.8f, 1.1f);
    pnet_brush_street(s, PNET_BUILDING, draw_between(d, 0.25f, 0.65f));
    pnet_scene_box(s, 0, 0, -0.1f, x, y, height);
    if (draw_chance(d, 0.6f))
        pnet_scene_box(
            s, -0.3f, -0.4f, height, x + 0.3f, y + 0.4f, height + draw_between(d, 1.5f, 3.5f))
            ->taper = 0.4f;
    struct pnet_brush wall = s->brush;
    /* Frames stand out, and bay windows and balconies more so. */
    int across = (int)(x / 2.6f);
    bool balconies = draw_chance(d, 0.4f);
    for (int i = 0; i < across; i++) {
        float at = (x - 2.6f * (float)across) / 2 + 2.6f * (float)i + 0.6f;
        for (float z = sill; z < height - 2 && z < 10; z += floor_m) {
            s->brush = wall;
            pnet_scene_box(s, at - 0.1f, -0.08f, z - 0.12f, at + 1.4f, 0.02f, z);
            if (balconies && z > sill && i % 2)
                pnet_scene_box(s, at - 0.5f, -1.1f, z - 1, at + 1.8f, 0, z - 0.05f);
            pnet_brush_street(s, PNET_BUILDING, 0.08f);
            pnet_scene_box(s, at, -0.03f, z, at + 1.3f, 0.02f, z + 1.4f);
        }
    }
}

void pnet_model_fence(struct pnet_scene *s, struct pnet_draw *d, float length)
{
    float height = draw_between(d, 0.9f, 1.8f);
    bool wire = draw_chance(d, 0.5f);
    pnet_brush_street(s, PNET_FENCE, draw_between(d, 0.25f, 0.5f));
    int posts = 1 + (int)(length / 2);
    for (int i = 0; i <= posts; i++) {
        float x = length * (float)i / (float)posts;
        pnet_scene_box(s, x - 0.05f, -0.05f, -0.05f, x + 0.05f, 0.05f, height + 0.05f);
    }
    pnet_scene_box(s, 0, -0.03f, height - 0.1f, length, 0.03f, height);
    pnet_scene_box(s, 0, -0.03f, 0.25f, length, 0.03f, 0.35f);
    /* Boards with gaps, or a mesh that lets most through. */
    s->brush.clear_m = wire ? 0.08f : 0.02f;
    pnet_scene_box(s, 0, -0.02f, 0.1f, length, 0.02f, height - 0.05f);
    s->brush.clear_m = 0;
}
