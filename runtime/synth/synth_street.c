#include "runtime/synth/synth_models.h"

static const float HALF_LENGTH = 90; /* of the street, from the scanner */
static const float HALF_TURN = 3.14159265f;

/* One side of the street in its own frame: x along, y outwards from the kerb; both sides are built
   alike and then placed. */
struct side {
    struct pnet_scene *s;
    struct pnet_draw *d;
    float pavement_m, green_m, gap_low, gap_high; /* the gap is a side road */
    float kerb_m;
};

static bool in_gap(const struct side *k, float low, float high)
{
    return high > k->gap_low && low < k->gap_high;
}

static void put(struct side *k, int first, float x, float y, float z, float yaw)
{
    pnet_scene_place(k->s, first, yaw, vec(x, y, z));
}

/* Pavement and green, left out where the side road is. */
static void add_ground(struct side *k)
{
    float ends[3][2] = {
        {-HALF_LENGTH, k->gap_low}, {k->gap_high, HALF_LENGTH}, {k->gap_low, k->gap_high}};
    for (int i = 0; i < 2; i++) {
        pnet_brush_street(k->s, PNET_SIDEWALK, 0.42f);
        pnet_scene_box(k->s, ends[i][0], 0, -0.3f, ends[i][1], k->pavement_m, k->kerb_m);
        pnet_brush_street(k->s, PNET_TERRAIN, 0.55f);
        pnet_scene_box(k->s, ends[i][0], k->pavement_m, -0.3f, ends[i][1], 70, k->kerb_m - 0.03f);
    }
    pnet_brush_street(k->s, PNET_ROAD, 0.2f);
    pnet_scene_box(k->s, k->gap_low, 0, -0.3f, k->gap_high, 70, 0);
}

/* Houses in a row, some of them back from it, a fence before those; a few green gaps. */
static void add_houses(struct side *k)
{
    struct pnet_draw *d = k->d;
    float front = k->pavement_m + k->green_m, ground = k->kerb_m - 0.03f;
    for (float x = -HALF_LENGTH + 5; x < HALF_LENGTH - 10;) {
        float wide = draw_between(d, 8, 20), deep = draw_between(d, 8, 12);
        float back = draw_chance(d, 0.55f) ? draw_between(d, 2.5f, 7) : 0;
        bool house = !in_gap(k, x - 1, x + wide + 1) && draw_chance(d, 0.85f);
        int first = k->s->count;
        if (house) {
            pnet_model_building(k->s, d, wide, deep);
            put(k, first, x, front + back, ground, 0);
        }
        if ((back > 0 || !house) && !in_gap(k, x, x + wide)) {
            first = k->s->count;
            if (draw_chance(d, 0.8f)) {
                pnet_model_fence(k->s, d, wide - 0.5f);
                put(k, first, x, front - 0.1f, ground, 0);
            }
            for (int i = 1 + draw_below(d, 4) + (house ? 0 : 4); i > 0; i--) {
                float at = x + wide * draw_unit(d),
                      y = front + (back > 2 ? back : 8) * draw_between(d, 0.2f, 0.8f);
                first = k->s->count;
                if (draw_chance(d, house ? 0.2f : 0.6f))
                    pnet_model_tree(k->s, d);
                else
                    pnet_model_bush(k->s, d);
                put(k, first, at, y, ground, draw_between(d, 0, 6.28f));
            }
        }
        x += wide + (draw_chance(d, 0.5f) ? 0 : draw_between(d, 1.5f, 5));
    }
}

/* Lamps, trees and signs at the kerb; each has its own stretch, so nothing meets. */
static void add_kerb(struct side *k)
{
    struct pnet_draw *d = k->d;
    int number = draw_below(d, 3);
    bool avenue = draw_chance(d, 0.6f);
    for (float x = -HALF_LENGTH + 3; x < HALF_LENGTH - 3; x += 8, number++) {
        float at = x + draw_between(d, -1.5f, 1.5f);
        if (in_gap(k, at - 2, at + 2)) continue;
        int first = k->s->count, kind = number % 3;
        if (kind == 0) {
            pnet_model_street_lamp(k->s, d);
            put(k, first, at, 0.45f, k->kerb_m, 0);
        } else if (kind == 1 && avenue) {
            pnet_model_tree(k->s, d);
            put(k, first, at, 0.7f, k->kerb_m, draw_between(d, 0, 6.28f));
        } else if (kind == 2 && draw_chance(d, 0.7f)) {
            pnet_model_sign(k->s, d);
            put(k, first, at, 0.4f, k->kerb_m, draw_chance(d, 0.5f) ? 0 : HALF_TURN);
        }
    }
}

/* Ahead or behind, more often near: far away, people are a point or two. */
static float along_street(struct pnet_draw *d, float least, float most)
{
    float share = draw_unit(d);
    return draw_sign(d) * (least + (most - least) * share * share);
}

static void add_people(struct side *k)
{
    struct pnet_draw *d = k->d;
    for (int i = 5 + draw_below(d, 8); i > 0; i--) {
        float x = along_street(d, 3, 48);
        float y = draw_between(d, 1.3f, fmaxf(1.5f, k->pavement_m - 0.3f)),
              yaw = draw_between(d, 0, 6.28f);
        if (in_gap(k, x - 1, x + 1)) continue;
        int first = k->s->count;
        pnet_model_person(k->s, d);
        put(k, first, x, y, k->kerb_m, yaw);
    }
}

static void add_parked(struct side *k, float share)
{
    struct pnet_draw *d = k->d;
    for (float x = -HALF_LENGTH + 6; x < HALF_LENGTH - 6;) {
        bool truck = draw_chance(d, 0.1f);
        float room = truck ? 10.5f : 5.8f, at = x + room / 2, y = draw_between(d, -0.1f, 0.1f);
        int first = k->s->count;
        bool turned = draw_chance(d, 0.2f);
        x += room + draw_between(d, 0, 1);
        if (in_gap(k, at - room / 2, at + room / 2) || !draw_chance(d, share)) continue;
        if (truck)
            pnet_model_truck(k->s, d);
        else
            pnet_model_car(k->s, d);
        put(k, first, at, (truck ? -1.35f : -1.15f) + y, 0, turned ? HALF_TURN : 0);
    }
}

/* Traffic in one lane, `y` from the middle of the road, heading by its sign. */
static void add_lane(struct pnet_scene *s, struct pnet_draw *d, float y, bool ours)
{
    for (float x = -HALF_LENGTH + 10; x < HALF_LENGTH - 10; x += draw_between(d, 11, 30)) {
        float aside = draw_between(d, -0.25f, 0.25f), kind = draw_unit(d);
        if (ours && fabsf(x) < 9) continue;
        int first = s->count;
        if (kind < 0.18f)
            pnet_model_truck(s, d);
        else
            pnet_model_car(s, d);
        pnet_scene_place(s, first, ours ? 0 : HALF_TURN, vec(x, y + aside, 0));
    }
}

static void add_cyclists(struct pnet_scene *s, struct pnet_draw *d, float y, bool ours)
{
    for (int i = 2 + draw_below(d, 3); i > 0; i--) {
        float x = along_street(d, 4, 36), aside = draw_between(d, -0.15f, 0.15f);
        float yaw = draw_between(d, -0.15f, 0.15f) + (ours ? 0 : HALF_TURN);
        int first = s->count;
        pnet_model_cyclist(s, d);
        pnet_scene_place(s, first, yaw, vec(x, y + aside, 0));
    }
}

void pnet_street_build(struct pnet_scene *s, struct pnet_draw *d)
{
    /* A lane each way, a strip for bicycles, and one to park at either side. */
    float lane = draw_between(d, 3, 3.5f), cycle = 1.2f, park = 2.3f, half = lane + cycle + park;
    float left = draw_sign(d), ours = left * lane / 2;
    pnet_brush_street(s, PNET_ROAD, 0.2f);
    pnet_scene_box(s, -HALF_LENGTH, -half, -0.3f, HALF_LENGTH, half, 0);
    for (int i = 0; i < 2; i++) {
        int first = s->count;
        float gap = draw_between(d, -60, 60), wide = draw_between(d, 5, 9);
        struct side k = {.s = s, .d = d, .gap_low = gap, .gap_high = gap + wide};
        k.pavement_m = draw_between(d, 2.2f, 4);
        k.green_m = draw_between(d, 0.4f, 3);
        k.kerb_m = draw_between(d, 0.1f, 0.16f);
        add_ground(&k);
        add_houses(&k);
        add_kerb(&k);
        add_people(&k);
        add_parked(&k, draw_between(d, 0.35f, 0.75f));
        if (i)
            pnet_scene_place(s, first, HALF_TURN, vec(0, -half, 0));
        else
            pnet_scene_place(s, first, 0, vec(0, half, 0));
    }
    add_lane(s, d, ours, true);
    add_lane(s, d, -ours, false);
    add_cyclists(s, d, left * (lane + cycle / 2), true);
    add_cyclists(s, d, -left * (lane + cycle / 2), false);
    /* Our own lane to where the scanner is. */
    const struct pnet_vec still[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    float stray = draw_between(d, -0.3f, 0.3f);
    pnet_scene_move(s, 0, still, vec(0, stray - ours, 0));
}
