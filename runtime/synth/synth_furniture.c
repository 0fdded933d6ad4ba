#include "runtime/synth/synth_models.h"

static uint8_t channel(float x)
{
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

void pnet_brush_colour(struct pnet_scene *s, struct pnet_draw *d, enum pnet_palette palette)
{
    float r = 0, g = 0, b = 0, light = draw_unit(d), tint = draw_unit(d);
    uint8_t grain = 5;
    switch (palette) {
    case PNET_PAINT:
        r = 195 + 55 * light;
        g = r - 14 * tint;
        b = r - 10 * draw_unit(d) - 24 * tint * tint;
        break;
    case PNET_WOOD:
        r = 85 + 120 * light;
        g = r * (0.66f + 0.14f * tint);
        b = r * (0.36f + 0.24f * tint);
        grain = 11;
        break;
    case PNET_METAL:
        r = 35 + 150 * light;
        g = r + 4 * tint;
        b = r + 9 * tint;
        break;
    case PNET_FABRIC:
    case PNET_BRIGHT: {
        float spread = palette == PNET_BRIGHT ? 160.0f : 80.0f,
              base = palette == PNET_BRIGHT ? 50 : 40;
        r = base + 50 * light + spread * draw_unit(d);
        g = base + 50 * light + spread * draw_unit(d);
        b = base + 50 * light + spread * draw_unit(d);
        grain = 9;
        break;
    }
    case PNET_SKY:
        r = 120 + 70 * light;
        g = r + 25;
        b = r + 40 + 20 * tint;
        grain = 14;
        break;
    }
    s->brush.colour[0] = channel(r);
    s->brush.colour[1] = channel(g);
    s->brush.colour[2] = channel(b);
    s->brush.grain = grain;
}

static void four_legs(struct pnet_scene *s, float x, float y, float top, float radius, float spread)
{
    for (int i = 0; i < 4; i++) {
        float sx = i & 1 ? 1.0f : -1.0f, sy = i & 2 ? 1.0f : -1.0f;
        pnet_scene_rod(s, vec(sx * (x + spread), sy * (y + spread), 0), vec(sx * x, sy * y, top),
            radius, radius);
    }
}

/* Five feet below a pole. */
static void star_foot(struct pnet_scene *s, float reach, float top, float radius)
{
    for (int i = 0; i < 5; i++) {
        float turn = 1.2566371f * (float)i;
        pnet_scene_rod(s, vec(reach * cosf(turn), reach * sinf(turn), 0.03f), vec(0, 0, 0.09f),
            0.022f, 0.028f);
    }
    pnet_scene_rod(s, vec(0, 0, 0.07f), vec(0, 0, top), radius, radius);
}

static void chair_back(
    struct pnet_scene *s, struct pnet_draw *d, float w, float y, float seat, float top)
{
    float lean = draw_between(d, 0.02f, 0.08f);
    int kind = draw_below(d, 3);
    if (kind == 0) {
        pnet_scene_box(s, -w, y - 0.02f, seat + 0.08f, w, y + 0.02f, top);
        pnet_scene_rod(s, vec(-w * 0.8f, y, seat), vec(-w * 0.8f, y, seat + 0.1f), 0.015f, 0.015f);
        pnet_scene_rod(s, vec(w * 0.8f, y, seat), vec(w * 0.8f, y, seat + 0.1f), 0.015f, 0.015f);
        return;
    }
    int bars = kind == 1 ? 4 : 2;
    for (int i = 0; i < bars; i++) {
        float x = w * (2 * (float)i / (float)(bars - 1) - 1) * 0.92f;
        pnet_scene_rod(s, vec(x, y, seat), vec(x, y + lean, top), 0.017f, 0.015f);
    }
    pnet_scene_box(s, -w, y + lean - 0.02f, top - 0.08f, w, y + lean + 0.02f, top);
    if (kind == 2)
        pnet_scene_box(s, -w, y - 0.015f, seat + 0.15f, w, y + lean + 0.01f, seat + 0.27f);
}

struct pnet_size pnet_model_chair(struct pnet_scene *s, struct pnet_draw *d)
{
    float w = draw_between(d, 0.19f, 0.25f), depth = draw_between(d, 0.19f, 0.24f);
    float seat = draw_between(d, 0.42f, 0.49f), top = draw_between(d, 0.8f, 1.0f);
    bool office = draw_chance(d, 0.35f);
    pnet_brush_colour(s, d, office || draw_chance(d, 0.4f) ? PNET_FABRIC : PNET_WOOD);
    float thick = draw_between(d, 0.03f, 0.07f);
    pnet_scene_box(s, -w, -depth, seat - thick, w, depth, seat);
    if (office) {
        pnet_scene_box(s, -w * 0.9f, depth, seat + 0.12f, w * 0.9f, depth + 0.05f, top)->taper =
            0.9f;
        pnet_brush_colour(s, d, PNET_METAL);
        pnet_scene_box(s, -0.03f, depth - 0.08f, seat - 0.08f, 0.03f, depth + 0.07f, seat - 0.05f);
        pnet_scene_box(s, -0.03f, depth + 0.05f, seat - 0.08f, 0.03f, depth + 0.07f, seat + 0.25f);
        star_foot(s, 0.28f, seat - thick, 0.03f);
    } else {
        chair_back(s, d, w, depth - 0.02f, seat, top);
        if (draw_chance(d, 0.5f)) pnet_brush_colour(s, d, PNET_METAL);
        float radius = draw_between(d, 0.014f, 0.022f), spread = draw_between(d, 0, 0.03f);
        four_legs(s, w - 0.025f, depth - 0.025f, seat - thick, radius, spread);
    }
    if (draw_chance(d, office ? 0.6f : 0.25f)) {
        for (int i = -1; i <= 1; i += 2) {
            float x = (float)i * (w + 0.02f), arm = seat + 0.2f;
            pnet_scene_box(s, x - 0.025f, -depth * 0.7f, arm, x + 0.025f, depth, arm + 0.03f);
            pnet_scene_rod(s, vec(x, -depth * 0.3f, seat - thick / 2), vec(x, -depth * 0.3f, arm),
                0.014f, 0.014f);
        }
        w += 0.045f;
    }
    return (struct pnet_size){fmaxf(w, 0.24f) + 0.02f, depth + 0.07f, top};
}

/* Two sides, or one and a block of drawers. */
static void desk_sides(struct pnet_scene *s, struct pnet_draw *d, float x, float y, float top)
{
    float block = draw_chance(d, 0.6f) ? 0.42f : 0.035f;
    pnet_scene_box(s, -x + 0.02f, -y + 0.02f, 0, -x + 0.02f + block, y - 0.02f, top);
    pnet_scene_box(s, x - 0.055f, -y + 0.02f, 0, x - 0.02f, y - 0.02f, top);
    if (draw_chance(d, 0.6f))
        pnet_scene_box(s, -x + 0.03f, y - 0.05f, 0.3f, x - 0.03f, y - 0.03f, top);
}

struct pnet_size pnet_model_table(struct pnet_scene *s, struct pnet_draw *d)
{
    float x = draw_between(d, 0.5f, 0.9f), y = draw_between(d, 0.34f, 0.48f);
    float height = draw_between(d, 0.69f, 0.77f), thick = draw_between(d, 0.025f, 0.05f);
    pnet_brush_colour(s, d, draw_chance(d, 0.65f) ? PNET_WOOD : PNET_PAINT);
    if (draw_chance(d, 0.25f)) {
        x = y = draw_between(d, 0.4f, 0.6f);
        pnet_scene_add(s, PNET_FORM_CYLINDER, vec(0, 0, height - thick / 2), vec(x, x, thick / 2));
        if (draw_chance(d, 0.5f)) pnet_brush_colour(s, d, PNET_METAL);
        pnet_scene_rod(s, vec(0, 0, 0), vec(0, 0, height - thick), 0.05f, 0.04f);
        pnet_scene_rod(s, vec(0, 0, 0), vec(0, 0, 0.04f), x * 0.55f, x * 0.4f);
        return (struct pnet_size){x, y, height};
    }
    pnet_scene_box(s, -x, -y, height - thick, x, y, height);
    if (draw_chance(d, 0.4f)) {
        desk_sides(s, d, x, y, height - thick);
    } else {
        if (draw_chance(d, 0.4f)) pnet_brush_colour(s, d, PNET_METAL);
        float r = draw_between(d, 0.02f, 0.04f);
        four_legs(s, x - 0.05f, y - 0.05f, height - thick, r, 0);
        if (draw_chance(d, 0.5f))
            pnet_scene_box(
                s, -x + 0.05f, y - 0.07f, height - 0.14f, x - 0.05f, y - 0.05f, height - thick);
    }
    return (struct pnet_size){x, y, height};
}

struct pnet_size pnet_model_sofa(struct pnet_scene *s, struct pnet_draw *d)
{
    int seats = 1 + draw_below(d, 3);
    float x = 0.33f * (float)seats, y = draw_between(d, 0.38f, 0.46f),
          seat = draw_between(d, 0.38f, 0.45f);
    float arm = draw_between(d, 0.1f, 0.2f), top = draw_between(d, 0.75f, 0.92f);
    pnet_brush_colour(s, d, PNET_FABRIC);
    pnet_scene_box(s, -x, -y, 0.06f, x, y, seat - 0.14f);
    pnet_scene_box(s, -x - arm, y - 0.22f, 0.06f, x + arm, y, top);
    for (int i = -1; i <= 1; i += 2)
        pnet_scene_box(s, (float)i * (x + arm / 2) - arm / 2, -y, 0.06f,
            (float)i * (x + arm / 2) + arm / 2, y - 0.2f, seat + draw_between(d, 0.15f, 0.22f));
    for (int i = 0; i < seats; i++) {
        float left = -x + 0.66f * (float)i;
        pnet_scene_box(s, left + 0.01f, -y - 0.03f, seat - 0.14f, left + 0.65f, y - 0.2f, seat);
        struct pnet_solid *back =
            pnet_scene_box(s, left + 0.02f, y - 0.38f, seat, left + 0.64f, y - 0.2f, top + 0.03f);
        back->taper = 0.85f;
    }
    if (draw_chance(d, 0.5f)) {
        pnet_brush_colour(s, d, PNET_FABRIC);
        float side = draw_sign(d) * (x - 0.2f);
        pnet_scene_add(
            s, PNET_FORM_BALL, vec(side, y - 0.42f, seat + 0.19f), vec(0.2f, 0.1f, 0.18f));
    }
    return (struct pnet_size){x + arm, y + 0.03f, top + 0.03f};
}

/* Books of random heights from one side of the board to somewhere on it. */
static void books(
    struct pnet_scene *s, struct pnet_draw *d, float x0, float x1, float y, float z, float room)
{
    while (x0 < x1 - 0.06f) {
        float w = draw_between(d, 0.05f, 0.16f), h = room * draw_between(d, 0.55f, 0.92f);
        if (x0 + w > x1) break;
        pnet_brush_colour(s, d, PNET_BRIGHT);
        pnet_scene_box(s, x0, -y + draw_between(d, 0.02f, 0.08f), z, x0 + w, y - 0.03f, z + h);
        x0 += w + (draw_chance(d, 0.12f) ? draw_between(d, 0.05f, 0.2f) : 0.002f);
    }
}

struct pnet_size pnet_model_shelf(struct pnet_scene *s, struct pnet_draw *d)
{
    float x = draw_between(d, 0.38f, 0.75f), y = draw_between(d, 0.14f, 0.2f);
    float height = draw_between(d, 1.2f, 2.1f), t = 0.025f;
    int boards = 3 + (int)(height / 0.42f) - 1;
    pnet_brush_colour(s, d, draw_chance(d, 0.7f) ? PNET_WOOD : PNET_PAINT);
    pnet_scene_box(s, -x, -y, 0, -x + t, y, height);
    pnet_scene_box(s, x - t, -y, 0, x, y, height);
    if (draw_chance(d, 0.7f)) pnet_scene_box(s, -x + t, y - 0.015f, 0.05f, x - t, y, height);
    struct pnet_brush wood = s->brush;
    float step = (height - 0.08f) / (float)(boards - 1);
    for (int i = 0; i < boards; i++) {
        float z = 0.05f + step * (float)i;
        s->brush = wood;
        pnet_scene_box(s, -x + t, -y, z, x - t, y - 0.01f, z + t);
        if (i < boards - 1 && draw_chance(d, 0.85f))
            books(s, d, -x + t + 0.01f, x - t - draw_between(d, 0, 0.3f), y, z + t, step - t);
    }
    return (struct pnet_size){x, y, height};
}

struct pnet_size pnet_model_lamp(struct pnet_scene *s, struct pnet_draw *d, float scale)
{
    float height = scale * draw_between(d, 1.35f, 1.75f),
          foot = scale * draw_between(d, 0.14f, 0.19f);
    float shade = scale * draw_between(d, 0.17f, 0.26f),
          tall = scale * draw_between(d, 0.22f, 0.34f);
    if (scale < 1) {
        shade *= 1.5f;
        foot *= 1.2f;
        tall *= 1.4f;
    }
    pnet_brush_colour(s, d, PNET_METAL);
    pnet_scene_rod(s, vec(0, 0, 0), vec(0, 0, 0.03f), foot, foot * 0.8f);
    pnet_scene_rod(s, vec(0, 0, 0.02f), vec(0, 0, height - tall * 0.3f), 0.018f, 0.015f);
    pnet_brush_colour(s, d, PNET_PAINT);
    struct pnet_solid *hat = pnet_scene_rod(s, vec(0, 0, height - tall), vec(0, 0, height), shade,
        shade * draw_between(d, 0.4f, 0.85f));
    hat->faces = 1;
    return (struct pnet_size){fmaxf(shade, foot), fmaxf(shade, foot), height};
}

static struct pnet_size table_clutter(struct pnet_scene *s, struct pnet_draw *d)
{
    switch (draw_below(d, 4)) {
    case 0: { /* a screen on its foot */
        float w = draw_between(d, 0.22f, 0.32f), h = draw_between(d, 0.28f, 0.38f);
        pnet_brush_colour(s, d, PNET_METAL);
        pnet_scene_box(s, -w, -0.02f, 0.1f, w, 0.02f, 0.1f + h);
        pnet_scene_box(s, -0.04f, 0, 0, 0.04f, 0.04f, 0.2f);
        pnet_scene_box(s, -0.12f, -0.09f, 0, 0.12f, 0.09f, 0.015f);
        return (struct pnet_size){w, 0.1f, 0.5f};
    }
    case 1: { /* a pile of books */
        float z = 0;
        for (int i = 2 + draw_below(d, 4); i > 0; i--) {
            float t = draw_between(d, 0.02f, 0.05f), x = draw_between(d, 0.1f, 0.15f);
            pnet_brush_colour(s, d, PNET_BRIGHT);
            pnet_scene_box(s, -x, -0.1f, z, x, 0.1f, z + t);
            z += t;
        }
        return (struct pnet_size){0.15f, 0.1f, z};
    }
    case 2: { /* a vase */
        float r = draw_between(d, 0.05f, 0.09f), h = draw_between(d, 0.15f, 0.28f);
        pnet_brush_colour(s, d, PNET_BRIGHT);
        pnet_scene_rod(s, vec(0, 0, 0), vec(0, 0, h), r, r * draw_between(d, 0.5f, 1.1f));
        return (struct pnet_size){r, r, h};
    }
    default: { /* a box */
        float x = draw_between(d, 0.08f, 0.16f), y = draw_between(d, 0.08f, 0.14f);
        float z = draw_between(d, 0.08f, 0.22f);
        pnet_brush_colour(s, d, PNET_FABRIC);
        pnet_scene_box(s, -x, -y, 0, x, y, z);
        return (struct pnet_size){x, y, z};
    }
    }
}

/* A pot with leaves. */
static struct pnet_size plant(struct pnet_scene *s, struct pnet_draw *d)
{
    float pot = draw_between(d, 0.12f, 0.18f), h = draw_between(d, 0.22f, 0.35f), top = h + 0.2f;
    pnet_brush_colour(s, d, PNET_WOOD);
    pnet_scene_rod(s, vec(0, 0, 0), vec(0, 0, h), pot * 0.75f, pot);
    s->brush.colour[0] = (uint8_t)(30 + draw_below(d, 50));
    s->brush.colour[1] = (uint8_t)(90 + draw_below(d, 60));
    s->brush.colour[2] = (uint8_t)(25 + draw_below(d, 40));
    s->brush.grain = 22;
    for (int i = 5 + draw_below(d, 4); i > 0; i--) {
        float r = draw_between(d, 0.09f, 0.17f), a = draw_between(d, 0, 6.28f),
              out = draw_between(d, 0, 0.17f);
        float z = h + draw_between(d, 0.05f, 0.5f), flat = draw_between(d, 0.4f, 1);
        pnet_scene_add(
            s, PNET_FORM_BALL, vec(out * cosf(a), out * sinf(a), z), vec(r, r, r * flat));
        top = fmaxf(top, h + 0.6f);
    }
    return (struct pnet_size){0.28f, 0.28f, top};
}

struct pnet_size pnet_model_clutter(struct pnet_scene *s, struct pnet_draw *d, bool on_table)
{
    if (on_table) return table_clutter(s, d);
    int kind = draw_below(d, 4);
    if (kind == 0) return plant(s, d);
    if (kind == 1) { /* a waste bin, open */
        float r = draw_between(d, 0.12f, 0.18f), h = draw_between(d, 0.28f, 0.45f);
        pnet_brush_colour(s, d, PNET_METAL);
        pnet_scene_rod(s, vec(0, 0, 0), vec(0, 0, h), r * 0.8f, r)->faces = 1;
        return (struct pnet_size){r, r, h};
    }
    float x = draw_between(d, 0.14f, 0.28f), y = draw_between(d, 0.12f, 0.25f),
          z = draw_between(d, 0.15f, 0.4f);
    pnet_brush_colour(s, d, kind == 2 ? PNET_WOOD : PNET_FABRIC);
    struct pnet_solid *box = pnet_scene_box(s, -x, -y, 0, x, y, z);
    if (kind == 3) box->taper = 0.7f;        /* a bag */
    if (kind == 2 && draw_chance(d, 0.5f)) { /* a second one on top */
        pnet_brush_colour(s, d, PNET_WOOD);
        pnet_scene_box(s, -x * 0.8f, -y * 0.9f, z, x * 0.7f, y * 0.8f, z * 1.8f);
    }
    return (struct pnet_size){x, y, z * 1.8f};
}
