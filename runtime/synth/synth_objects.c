#include "runtime/synth/synth_models.h"

const char *const pnet_object_names[PNET_OBJECTS] = {
    "sphere",
    "cube",
    "cylinder",
    "cone",
    "pyramid",
    "torus",
    "stairs",
    "mug",
    "table",
    "chair",
    "lamp",
    "airplane",
};

static void sphere(struct pnet_scene *s, struct pnet_draw *d)
{
    (void)d;
    pnet_scene_add(s, PNET_FORM_BALL, vec(0, 0, 0), vec(1, 1, 1));
}

static void cube(struct pnet_scene *s, struct pnet_draw *d)
{
    (void)d;
    pnet_scene_add(s, PNET_FORM_BOX, vec(0, 0, 0), vec(1, 1, 1));
}

static void cylinder(struct pnet_scene *s, struct pnet_draw *d)
{
    pnet_scene_add(s, PNET_FORM_CYLINDER, vec(0, 0, 0), vec(1, 1, draw_between(d, 0.7f, 1.6f)));
}

static void cone(struct pnet_scene *s, struct pnet_draw *d)
{
    struct pnet_solid *c =
        pnet_scene_add(s, PNET_FORM_CYLINDER, vec(0, 0, 0), vec(1, 1, draw_between(d, 0.7f, 1.4f)));
    c->taper = draw_between(d, 0, 0.15f);
}

static void pyramid(struct pnet_scene *s, struct pnet_draw *d)
{
    struct pnet_solid *p =
        pnet_scene_add(s, PNET_FORM_BOX, vec(0, 0, 0), vec(1, 1, draw_between(d, 0.6f, 1.2f)));
    p->taper = draw_between(d, 0, 0.15f);
}

static void torus(struct pnet_scene *s, struct pnet_draw *d)
{
    pnet_scene_add(s, PNET_FORM_TORUS, vec(0, 0, 0), vec(1, 1, 1))->taper =
        draw_between(d, 0.18f, 0.5f);
}

static void stairs(struct pnet_scene *s, struct pnet_draw *d)
{
    int steps = 3 + draw_below(d, 4);
    float wide = draw_between(d, 0.5f, 1.2f), high = draw_between(d, 0.6f, 1.1f) / (float)steps;
    float deep = 1.6f / (float)steps;
    for (int i = 0; i < steps; i++)
        pnet_scene_box(s, deep * (float)i, -wide / 2, 0, deep * (float)(i + 1), wide / 2,
            high * (float)(i + 1));
}

static void mug(struct pnet_scene *s, struct pnet_draw *d)
{
    float high = draw_between(d, 0.8f, 1.3f), wall = 0.94f, mouth = draw_between(d, 0.9f, 1.25f);
    struct pnet_solid *outside =
        pnet_scene_add(s, PNET_FORM_CYLINDER, vec(0, 0, 0), vec(1, 1, high));
    outside->taper = mouth;
    outside->faces = 1 | 2;
    struct pnet_solid *inside =
        pnet_scene_add(s, PNET_FORM_CYLINDER, vec(0, 0, 0.04f), vec(wall, wall, high - 0.04f));
    inside->taper = mouth;
    inside->faces = 1 | 2;
    inside->inside_out = true;
    int first = s->count;
    float reach = draw_between(d, 0.45f, 0.7f) * high;
    struct pnet_solid *handle =
        pnet_scene_add(s, PNET_FORM_TORUS, vec(0, 0, 0), vec(reach, reach, reach));
    handle->taper = draw_between(d, 0.18f, 0.28f);
    handle->sweep = 0.5f;
    /* Half a ring, stood up with its ends in the wall. */
    const struct pnet_vec upright[3] = {{0, 1, 0}, {0, 0, 1}, {1, 0, 0}};
    pnet_scene_move(s, first, upright, vec((1 + mouth) / 2, 0, 0));
}

static void table(struct pnet_scene *s, struct pnet_draw *d)
{
    pnet_model_table(s, d);
}

static void chair(struct pnet_scene *s, struct pnet_draw *d)
{
    pnet_model_chair(s, d);
}

static void lamp(struct pnet_scene *s, struct pnet_draw *d)
{
    pnet_model_lamp(s, d, draw_chance(d, 0.5f) ? 1.0f : 0.4f);
}

/* A flat blade from `root` outwards, along y times `side`, or up for side 0; it leans back to -x.
 */
static void blade(struct pnet_scene *s, struct pnet_vec root, float side, float span, float chord,
    float lean, float taper)
{
    int first = s->count;
    pnet_scene_box(s, -chord / 2, -0.015f, 0, chord / 2, 0.015f, span)->taper = taper;
    struct pnet_vec m[3] = {{1, 0, -lean}, {0, side == 0, side}, {0, -side, side == 0}};
    pnet_scene_move(s, first, m, root);
}

static void airplane(struct pnet_scene *s, struct pnet_draw *d)
{
    float radius = draw_between(d, 0.09f, 0.14f), span = draw_between(d, 0.75f, 1.05f);
    float lean = draw_between(d, 0.1f, 0.6f), chord = draw_between(d, 0.3f, 0.42f);
    float tail = draw_between(d, 0.25f, 0.38f);
    pnet_scene_rod(s, vec(-0.6f, 0, 0), vec(0.7f, 0, 0), radius, radius);
    pnet_scene_add(s, PNET_FORM_BALL, vec(0.7f, 0, 0), vec(0.3f, radius, radius));
    pnet_scene_rod(s, vec(-0.6f, 0, 0), vec(-1, 0, radius * 0.5f), radius, radius * 0.3f);
    for (float side = -1; side <= 1; side += 2) {
        blade(s, vec(0.15f, 0, -radius * 0.4f), side, span, chord, lean, 0.35f);
        blade(s, vec(-0.88f, 0, radius * 0.4f), side, tail, 0.2f, lean, 0.5f);
    }
    blade(s, vec(-0.85f, 0, 0), 0, tail + 0.1f, 0.24f, 0.5f, 0.5f);
    int engines = draw_below(d, 3);
    for (int i = 0; i < engines; i++) {
        float y = span * (0.35f + 0.3f * (float)i), x = 0.25f - lean * y;
        for (float side = -1; side <= 1; side += 2)
            pnet_scene_rod(s, vec(x - 0.1f, side * y, -radius), vec(x + 0.15f, side * y, -radius),
                0.045f, 0.055f);
    }
}

void pnet_model_object(struct pnet_scene *s, struct pnet_draw *d, int object)
{
    static void (*const build[PNET_OBJECTS])(struct pnet_scene *, struct pnet_draw *) = {
        sphere,
        cube,
        cylinder,
        cone,
        pyramid,
        torus,
        stairs,
        mug,
        table,
        chair,
        lamp,
        airplane,
    };
    build[object](s, d);
}
