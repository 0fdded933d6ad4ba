#include "runtime/synth/synth_models.h"

#include <stddef.h>

enum { FOOTPRINTS_MOST = 128 /* the largest room takes 90 */, OPENINGS_MOST = 4, TRIES = 30 };

static const float QUARTER = 1.57079633f;
static const float WALL_M = 0.14f;

enum opening_kind { OPENING_DOOR, OPENING_WINDOW, OPENING_BOARD };

/* A part of a wall that is taken: from `low` to `high` along it, and in height. */
struct opening {
    enum opening_kind kind;
    float low, high, bottom, top;
};

/* A wall in its own frame: along x from 0, the room at y < 0. Furniture, whose front is -y, stands
   with its back to it. */
struct wall {
    float length, yaw;
    struct pnet_vec corner;
    struct opening opening[OPENINGS_MOST];
    int openings;
};

struct footprint {
    float x0, y0, x1, y1;
};

struct layout {
    struct pnet_scene *s;
    struct pnet_draw *d;
    struct pnet_room *room;
    struct wall wall[4];
    struct footprint taken[FOOTPRINTS_MOST];
    int taken_count;
};

static void set_walls(struct layout *l)
{
    float x = l->room->size.x, y = l->room->size.y;
    l->wall[0] = (struct wall){.length = x, .yaw = 0, .corner = {0, y, 0}};
    l->wall[1] = (struct wall){.length = y, .yaw = QUARTER, .corner = {0, 0, 0}};
    l->wall[2] = (struct wall){.length = x, .yaw = 2 * QUARTER, .corner = {x, 0, 0}};
    l->wall[3] = (struct wall){.length = y, .yaw = -QUARTER, .corner = {x, y, 0}};
}

/* From the frame of a wall to the room. */
static struct pnet_vec on_wall(const struct wall *w, float along, float inwards)
{
    float c = cosf(w->yaw), s = sinf(w->yaw);
    return vec(w->corner.x + c * along + s * inwards, w->corner.y + s * along - c * inwards, 0);
}

static struct footprint around(struct pnet_vec p, struct pnet_size size, float yaw)
{
    float c = fabsf(cosf(yaw)), s = fabsf(sinf(yaw)), x = c * size.x + s * size.y,
          y = s * size.x + c * size.y;
    return (struct footprint){p.x - x, p.y - y, p.x + x, p.y + y};
}

static bool is_free(const struct layout *l, struct footprint f, float margin)
{
    if (f.x0 < 0.01f || f.y0 < 0.01f || f.x1 > l->room->size.x - 0.01f ||
        f.y1 > l->room->size.y - 0.01f)
        return false;
    for (int i = 0; i < l->taken_count; i++) {
        const struct footprint *t = &l->taken[i];
        if (f.x0 < t->x1 + margin && f.x1 > t->x0 - margin && f.y0 < t->y1 + margin &&
            f.y1 > t->y0 - margin)
            return false;
    }
    return true;
}

static void take(struct layout *l, struct footprint f)
{
    if (l->taken_count < FOOTPRINTS_MOST) l->taken[l->taken_count++] = f;
}

/* Moves the solids from `first` on to their places. */
static void settle(struct layout *l, int first, struct pnet_size size, struct pnet_vec p, float yaw)
{
    pnet_scene_place(l->s, first, yaw, p);
    take(l, around(p, size, yaw));
}

static bool wall_is_free(const struct wall *w, float low, float high, float top)
{
    for (int i = 0; i < w->openings; i++) {
        const struct opening *o = &w->opening[i];
        if (low < o->high + 0.1f && high > o->low - 0.1f && top > o->bottom - 0.05f) return false;
    }
    return true;
}

/* Finds room for an opening on a random wall; returns NULL if there is none. */
static struct opening *cut_wall(struct layout *l, enum opening_kind kind, float width, float bottom,
    float top, struct wall **which)
{
    for (int i = 0; i < TRIES; i++) {
        struct wall *w = &l->wall[draw_below(l->d, 4)];
        float slack = w->length - width - 0.4f, at = 0.2f + slack * draw_unit(l->d);
        if (slack < 0 || w->openings == OPENINGS_MOST || !wall_is_free(w, at, at + width, 10))
            continue;
        w->opening[w->openings] = (struct opening){kind, at, at + width, bottom, top};
        *which = w;
        return &w->opening[w->openings++];
    }
    return NULL;
}

static void build_door(struct layout *l, struct wall *w, const struct opening *o)
{
    struct pnet_scene *s = l->s;
    float a = o->low, b = o->high, t = o->top, frame = 0.06f;
    s->brush.label = PNET_DOOR;
    static const enum pnet_palette leaves[6] = {
        PNET_WOOD, PNET_WOOD, PNET_WOOD, PNET_METAL, PNET_FABRIC, PNET_PAINT};
    pnet_brush_colour(s, l->d, leaves[draw_below(l->d, 6)]);
    pnet_scene_box(s, a, -0.025f, 0, a + frame, WALL_M, t);
    pnet_scene_box(s, b - frame, -0.025f, 0, b, WALL_M, t);
    pnet_scene_box(s, a + frame, -0.025f, t - frame, b - frame, WALL_M, t);
    int leaf = s->count;
    float wide = b - a - 2 * frame;
    pnet_scene_box(s, 0, -0.04f, 0.005f, wide, 0, t - frame);
    pnet_brush_colour(s, l->d, PNET_METAL);
    pnet_scene_rod(
        s, vec(wide - 0.07f, -0.09f, 1.03f), vec(wide - 0.19f, -0.09f, 1.03f), 0.012f, 0.012f);
    pnet_scene_rod(
        s, vec(wide - 0.07f, -0.03f, 1.03f), vec(wide - 0.07f, -0.1f, 1.03f), 0.012f, 0.012f);
    /* Shut, or swung into the room about its hinge, far enough to stand in the doorway. */
    float swing = draw_chance(l->d, 0.25f) ? draw_between(l->d, -1.5f, -1.1f) : 0;
    pnet_scene_place(s, leaf, swing, vec(a + frame, swing < 0 ? -0.01f : 0.13f, 0));
    struct pnet_vec at = on_wall(w, (a + b) / 2, 0.5f);
    take(l, around(at, (struct pnet_size){(b - a) / 2, 0.5f, 0}, w->yaw));
}

static void build_window(struct layout *l, const struct opening *o)
{
    struct pnet_scene *s = l->s;
    float a = o->low, b = o->high, z0 = o->bottom, z1 = o->top, bar = 0.05f;
    s->brush.label = PNET_WINDOW;
    pnet_brush_colour(s, l->d, PNET_SKY);
    pnet_scene_box(s, a, 0.1f, z0, b, 0.11f, z1);
    pnet_brush_colour(s, l->d, draw_chance(l->d, 0.6f) ? PNET_PAINT : PNET_WOOD);
    pnet_scene_box(s, a, 0.06f, z0, b, 0.12f, z0 + bar);
    pnet_scene_box(s, a, 0.06f, z1 - bar, b, 0.12f, z1);
    int bars = 2 + draw_below(l->d, 2);
    for (int i = 0; i <= bars; i++) {
        float x = a + (b - a - bar) * (float)i / (float)bars;
        pnet_scene_box(s, x, 0.06f, z0 + bar, x + bar, 0.12f, z1 - bar);
    }
    pnet_scene_box(s, a - 0.05f, -0.1f, z0 - 0.03f, b + 0.05f, 0.06f, z0);
}

static void build_board(struct layout *l, const struct opening *o)
{
    struct pnet_scene *s = l->s;
    float a = o->low, b = o->high, z0 = o->bottom, z1 = o->top, edge = 0.045f;
    s->brush.label = PNET_BOARD;
    /* White to write on, brighter than any wall, or dark green to black. */
    bool white = draw_chance(l->d, 0.4f);
    s->brush.colour[0] = (uint8_t)((white ? 225 : 20) + draw_below(l->d, 30));
    s->brush.colour[1] = (uint8_t)((white ? 225 : 40) + draw_below(l->d, 30));
    s->brush.colour[2] = (uint8_t)((white ? 225 : 30) + draw_below(l->d, 30));
    s->brush.grain = white ? 2 : 8;
    pnet_scene_box(s, a + edge, -0.065f, z0 + edge, b - edge, -0.005f, z1 - edge);
    pnet_brush_colour(s, l->d, draw_chance(l->d, 0.5f) ? PNET_METAL : PNET_WOOD);
    pnet_scene_box(s, a, -0.08f, z0, a + edge, -0.005f, z1);
    pnet_scene_box(s, b - edge, -0.08f, z0, b, -0.005f, z1);
    pnet_scene_box(s, a + edge, -0.08f, z1 - edge, b - edge, -0.005f, z1);
    pnet_scene_box(s, a + edge, -0.13f, z0, b - edge, -0.005f, z0 + edge);
}

/* Builds the wall: whole strips between its openings, and the parts below and above each opening. */
static void build_wall(struct layout *l, struct wall *w, const struct pnet_brush *paint)
{
    struct pnet_scene *s = l->s;
    int first = s->count;
    float height = l->room->size.z, done = -WALL_M;
    s->brush = *paint;
    for (;;) {
        const struct opening *next = NULL;
        for (int i = 0; i < w->openings; i++) {
            const struct opening *o = &w->opening[i];
            if (o->kind != OPENING_BOARD && o->low > done && (!next || o->low < next->low))
                next = o;
        }
        pnet_scene_box(s, done, 0, 0, next ? next->low : w->length, WALL_M, height);
        if (!next) break;
        pnet_scene_box(s, next->low, 0, next->top, next->high, WALL_M, height);
        if (next->bottom > 0) pnet_scene_box(s, next->low, 0, 0, next->high, WALL_M, next->bottom);
        done = next->high;
    }
    for (int i = 0; i < w->openings; i++) {
        switch (w->opening[i].kind) {
        case OPENING_DOOR: build_door(l, w, &w->opening[i]); break;
        case OPENING_WINDOW: build_window(l, &w->opening[i]); break;
        case OPENING_BOARD: build_board(l, &w->opening[i]); break;
        }
    }
    pnet_scene_place(s, first, w->yaw, w->corner);
}

static void build_shell(struct layout *l)
{
    struct pnet_scene *s = l->s;
    struct pnet_draw *d = l->d;
    struct pnet_size size = l->room->size;
    static const enum pnet_palette floors[3] = {PNET_WOOD, PNET_FABRIC, PNET_METAL};
    pnet_brush_colour(s, d, floors[draw_below(d, 3)]);
    s->brush.label = PNET_FLOOR;
    pnet_scene_box(s, -WALL_M, -WALL_M, -0.1f, size.x + WALL_M, size.y + WALL_M, 0);
    pnet_brush_colour(s, d, PNET_PAINT);
    s->brush.label = PNET_CEILING;
    pnet_scene_box(s, -WALL_M, -WALL_M, size.z, size.x + WALL_M, size.y + WALL_M, size.z + 0.1f);

    struct wall *w;
    float top = draw_between(d, 1.98f, 2.12f);
    cut_wall(l, OPENING_DOOR, draw_between(d, 0.85f, 1), 0, top, &w);
    for (int i = 1 + draw_below(d, 2); i > 0; i--) {
        float sill = draw_between(d, 0.8f, 1), lintel = draw_between(d, 1.95f, 2.25f);
        cut_wall(l, OPENING_WINDOW, draw_between(d, 0.9f, 1.7f), sill, lintel, &w);
    }
    if (draw_chance(d, 0.85f)) {
        float low = draw_between(d, 0.85f, 1), high = draw_between(d, 1.8f, 2.1f);
        cut_wall(l, OPENING_BOARD, draw_between(d, 1.1f, 1.9f), low, high, &w);
    }
    pnet_brush_colour(s, d, PNET_PAINT);
    s->brush.label = PNET_WALL;
    for (int k = 0; k < 3; k++) s->brush.colour[k] = (uint8_t)(s->brush.colour[k] - 30 - 6 * k);
    struct pnet_brush plain = s->brush;
    int accent = draw_chance(d, 0.4f) ? draw_below(d, 4) : -1;
    for (int i = 0; i < 4; i++) {
        struct pnet_brush paint = plain;
        if (i == accent) {
            pnet_brush_colour(s, d, PNET_FABRIC);
            for (int k = 0; k < 3; k++)
                paint.colour[k] = (uint8_t)((2 * plain.colour[k] + s->brush.colour[k]) / 3);
        }
        build_wall(l, &l->wall[i], &paint);
    }
}

static void add_lights(struct layout *l)
{
    struct pnet_scene *s = l->s;
    struct pnet_draw *d = l->d;
    struct pnet_size size = l->room->size;
    int count = 1 + draw_below(d, 2) + (size.x * size.y > 25), kind = draw_below(d, 3);
    float top = size.z;
    s->brush.label = PNET_LAMP;
    for (int i = 0; i < count && i < PNET_ROOM_LIGHTS; i++) {
        float x = size.x * (0.5f + (float)i) / (float)count,
              y = size.y * draw_between(d, 0.35f, 0.65f);
        float drop = kind ? draw_between(d, 0.35f, 0.75f) : 0.08f;
        pnet_brush_colour(s, d, PNET_PAINT);
        if (kind == 0) {
            pnet_scene_box(
                s, x - 0.18f, y - 0.55f, top - 0.09f, x + 0.18f, y + 0.55f, top - 0.005f);
        } else {
            float r = draw_between(d, 0.18f, 0.28f), h = draw_between(d, 0.18f, 0.28f);
            if (kind == 1)
                pnet_scene_rod(s, vec(x, y, top - drop - h), vec(x, y, top - drop), r, r * 0.4f);
            else
                pnet_scene_add(s, PNET_FORM_BALL, vec(x, y, top - drop), vec(r, r, r * 0.8f));
            pnet_brush_colour(s, d, PNET_METAL);
            pnet_scene_rod(s, vec(x, y, top - drop), vec(x, y, top), 0.012f, 0.012f);
        }
        l->room->light[l->room->lights++] = vec(x, y, top - drop - 0.25f);
    }
}

/* Places what was built since `first` with its back to a wall. Returns false if there is no room, and removes it. */
static bool put_at_wall(struct layout *l, int first, struct pnet_size size, float gap)
{
    for (int i = 0; i < TRIES; i++) {
        const struct wall *w = &l->wall[draw_below(l->d, 4)];
        float slack = w->length - 2 * size.x - 0.04f, at = 0.02f + size.x + slack * draw_unit(l->d);
        if (slack < 0 || !wall_is_free(w, at - size.x, at + size.x, size.z)) continue;
        struct pnet_vec p = on_wall(w, at, size.y + gap);
        if (!is_free(l, around(p, size, w->yaw), 0.05f)) continue;
        settle(l, first, size, p, w->yaw);
        return true;
    }
    l->s->count = first;
    return false;
}

static bool put_anywhere(struct layout *l, int first, struct pnet_size size, float margin,
    float *yaw, struct pnet_vec *p)
{
    for (int i = 0; i < TRIES; i++) {
        float x = l->room->size.x * draw_unit(l->d), y = l->room->size.y * draw_unit(l->d);
        *p = vec(x, y, 0);
        if (!is_free(l, around(*p, size, *yaw), margin)) continue;
        settle(l, first, size, *p, *yaw);
        return true;
    }
    l->s->count = first;
    return false;
}

/* A chair drawn up to one side of a table: `side` -1 its front, 1 its back; `along` in [-1, 1]. */
static void add_chair(struct layout *l, struct pnet_size table, struct pnet_vec at, float yaw,
    float side, float along)
{
    int first = l->s->count;
    l->s->brush.label = PNET_CHAIR;
    struct pnet_size size = pnet_model_chair(l->s, l->d);
    float turn = yaw + (side < 0 ? 2 * QUARTER : 0) + draw_between(l->d, -0.3f, 0.3f);
    float out = side * (table.y + size.y * draw_between(l->d, 0.5f, 1.4f));
    float x = along * fmaxf(table.x - size.x, 0), c = cosf(yaw), s = sinf(yaw);
    struct pnet_vec p = vec(at.x + c * x - s * out, at.y + s * x + c * out, 0);
    /* Its own table does not count: a chair may stand under it. */
    struct footprint own = l->taken[l->taken_count - 1], f = around(p, size, turn);
    int count = l->taken_count--;
    bool fits = is_free(l, f, 0);
    l->taken_count = count;
    l->taken[count - 1] = own;
    if (!fits) {
        l->s->count = first;
        return;
    }
    pnet_scene_place(l->s, first, turn, p);
    /* The table stays last, for the next chair. */
    take(l, own);
    l->taken[count - 1] = f;
}

static void add_on_table(struct layout *l, struct pnet_size table, struct pnet_vec at, float yaw)
{
    struct pnet_draw *d = l->d;
    int things = draw_below(d, 4), lamp = draw_chance(d, 0.35f) ? draw_below(d, 3) : -1;
    for (int i = 0; i < 3; i++) {
        if (i >= things && i != lamp) continue;
        int first = l->s->count;
        l->s->brush.label = i == lamp ? PNET_LAMP : PNET_CLUTTER;
        struct pnet_size size =
            i == lamp ? pnet_model_lamp(l->s, d, 0.35f) : pnet_model_clutter(l->s, d, true);
        /* A third of the table each. */
        float x = table.x * (0.667f * (float)i - 0.667f);
        float y = fmaxf(table.y - size.y - 0.02f, 0) * draw_between(d, -0.6f, 0.9f);
        if (size.x > table.x / 3 + 0.08f || size.y > table.y) {
            l->s->count = first;
            continue;
        }
        pnet_scene_place(l->s, first, 0, vec(x, y, table.z + 0.001f));
        pnet_scene_place(l->s, first, yaw, at);
    }
}

static void add_table(struct layout *l)
{
    struct pnet_draw *d = l->d;
    int first = l->s->count;
    l->s->brush.label = PNET_TABLE;
    struct pnet_size size = pnet_model_table(l->s, d);
    float yaw = QUARTER * (float)draw_below(d, 4);
    struct pnet_vec at;
    if (!put_anywhere(l, first, size, 0.35f, &yaw, &at)) return;
    int chairs = 1 + draw_below(d, 3);
    for (int i = 0; i < chairs; i++) {
        float side = i & 1 ? 1.0f : -1.0f,
              along = size.x > 0.65f ? draw_between(d, -0.9f, 0.9f) : 0;
        add_chair(l, size, at, yaw, side, along);
    }
    add_on_table(l, size, at, yaw);
}

static void furnish(struct layout *l)
{
    struct pnet_draw *d = l->d;
    struct pnet_scene *s = l->s;
    float floor_m2 = l->room->size.x * l->room->size.y, yaw;
    struct pnet_vec p;
    for (int i = 1 + draw_below(d, 2); i > 0; i--) {
        int first = s->count;
        s->brush.label = PNET_SHELF;
        put_at_wall(l, first, pnet_model_shelf(s, d), draw_between(d, 0.005f, 0.03f));
    }
    for (int i = draw_chance(d, 0.8f) + (floor_m2 > 28); i > 0; i--) {
        int first = s->count;
        s->brush.label = PNET_SOFA;
        put_at_wall(l, first, pnet_model_sofa(s, d), 0.04f);
    }
    for (int i = 1 + draw_below(d, 2) + (int)(floor_m2 / 16); i > 0; i--) add_table(l);
    if (draw_chance(d, 0.7f)) {
        int first = s->count;
        s->brush.label = PNET_LAMP;
        put_at_wall(l, first, pnet_model_lamp(s, d, 1), 0.1f);
    }
    for (int i = draw_below(d, 2) + (int)(floor_m2 / 20); i > 0; i--) {
        int first = s->count;
        s->brush.label = PNET_CHAIR;
        struct pnet_size size = pnet_model_chair(s, d);
        yaw = draw_between(d, 0, 4 * QUARTER);
        put_anywhere(l, first, size, 0.05f, &yaw, &p);
    }
    for (int i = 2 + draw_below(d, 3); i > 0; i--) {
        int first = s->count;
        s->brush.label = PNET_CLUTTER;
        struct pnet_size size = pnet_model_clutter(s, d, false);
        yaw = draw_between(d, 0, 4 * QUARTER);
        if (draw_chance(d, 0.6f))
            put_at_wall(l, first, size, 0.03f);
        else
            put_anywhere(l, first, size, 0.03f, &yaw, &p);
    }
}

/* The scanner stands on free floor; before the door there is always some. */
static void choose_scans(struct layout *l)
{
    struct pnet_size foot = {0.2f, 0.2f, 0};
    for (int i = 0; i < PNET_ROOM_SCANS; i++) {
        struct footprint door = l->taken[0];
        struct pnet_vec p = vec((door.x0 + door.x1) / 2, (door.y0 + door.y1) / 2, 0);
        float far = 0;
        for (int k = 0; k < TRIES && i; k++) {
            float x = l->room->size.x * draw_unit(l->d), y = l->room->size.y * draw_unit(l->d);
            float nearest = INFINITY;
            for (int j = 0; j < i; j++)
                nearest = fminf(nearest, hypotf(x - l->room->scan[j].x, y - l->room->scan[j].y));
            if (nearest < far || !is_free(l, around(vec(x, y, 0), foot, 0), 0)) continue;
            far = nearest;
            p = vec(x, y, 0);
        }
        p.z = draw_between(l->d, 1.25f, 1.75f);
        l->room->scan[i] = p;
    }
}

void pnet_room_build(
    struct pnet_scene *s, struct pnet_draw *d, float edge_m, struct pnet_room *room)
{
    struct layout l = {.s = s, .d = d, .room = room};
    *room = (struct pnet_room){.lights = 0};
    room->size.x = edge_m * draw_between(d, 0.75f, 1.25f);
    room->size.y = edge_m * draw_between(d, 0.75f, 1.25f);
    room->size.z = draw_between(d, 2.5f, 3);
    set_walls(&l);
    build_shell(&l);
    add_lights(&l);
    furnish(&l);
    choose_scans(&l);
}
