/* Rooms: labels against the geometry around each point, and bits against threads. */
#include "runtime/synth/synth.h"
#include "runtime/synth/synth_models.h"
#include "tests/check.h"

#include <time.h>

static struct pnet_cloud make(uint64_t seed, uint32_t index, const struct pnet_synth_options *o)
{
    struct pnet_cloud c;
    struct pnet_error e = {0};
    CHECKF(pnet_synth_make(PNET_SYNTH_ROOMS, seed, index, o, &c, NULL, &e) == PNET_OK, "%s",
        e.message);
    return c;
}

static const uint8_t *bytes(const struct pnet_cloud *c, const char *name)
{
    const struct pnet_field *f = pnet_cloud_field(c, name);
    CHECK(f && f->type == PNET_U8);
    return f ? f->data : NULL;
}

static bool same(const struct pnet_cloud *a, const struct pnet_cloud *b)
{
    if (a->rows != b->rows || a->field_count != b->field_count) return false;
    if (memcmp(a->xyz, b->xyz, (size_t)a->rows * 12) != 0) return false;
    for (int k = 0; k < a->field_count; k++)
        if (memcmp(a->fields[k].data, b->fields[k].data, (size_t)a->rows) != 0) return false;
    return true;
}

static void test_bits(void)
{
    struct pnet_synth_options o = {.points = 30000, .threads = 1},
                              many = {.points = 30000, .threads = 4};
    struct pnet_cloud a = make(3, 5, &o), b = make(3, 5, &many), other = make(3, 6, &o),
                      seed = make(4, 5, &o);
    CHECK(same(&a, &b));
    CHECK(!same(&a, &other));
    CHECK(!same(&a, &seed));
    pnet_cloud_free(&a);
    pnet_cloud_free(&b);
    pnet_cloud_free(&other);
    pnet_cloud_free(&seed);
}

static void test_counts(void)
{
    static const int64_t asked[] = {0, 1000, 4096, 50000, 300000};
    for (int i = 0; i < 5; i++) {
        struct pnet_synth_options o = {.points = asked[i]};
        struct pnet_cloud c = make(1, (uint32_t)i, &o);
        double want = asked[i] ? (double)asked[i] : 16384;
        CHECKF(fabs((double)c.rows - want) < 0.05 * want, "%lld of %g", (long long)c.rows, want);
        pnet_cloud_free(&c);
    }
}

/* All classes over a few rooms, each in most; nothing outside of the room; everything finite. */
static void test_classes(void)
{
    enum { ROOMS = 24 };
    int in[PNET_ROOM_CLASSES] = {0};
    const struct pnet_synth_options o = {0};
    for (uint32_t n = 0; n < ROOMS; n++) {
        struct pnet_cloud c = make(7, n, &o);
        int64_t count[PNET_ROOM_CLASSES] = {0};
        const uint8_t *label = bytes(&c, "label");
        bool inside = true;
        for (int64_t i = 0; i < c.rows; i++) {
            const float *p = c.xyz + 3 * i;
            for (int k = 0; k < 3; k++)
                inside = inside && p[k] > -0.2f && p[k] < (k == 2 ? 3.05f : 5.85f);
            inside = inside && label[i] < PNET_ROOM_CLASSES;
            count[label[i] % PNET_ROOM_CLASSES]++;
        }
        CHECK(inside);
        for (int k = 0; k < PNET_ROOM_CLASSES; k++) in[k] += count[k] > 20;
        pnet_cloud_free(&c);
    }
    for (int k = 0; k < PNET_ROOM_CLASSES; k++)
        CHECKF(in[k] >= ROOMS / 2, "%s: in %d of %d rooms", pnet_room_names[k], in[k], ROOMS);
}

/* Where each class may be, by height alone and by the distance to the walls. */
static void test_places(void)
{
    const struct pnet_synth_options o = {.points = 20000, .clean = true};
    for (uint32_t n = 0; n < 12; n++) {
        struct pnet_cloud c = make(8, n, &o);
        const uint8_t *label = bytes(&c, "label");
        float high[3] = {0, 0, 0};
        /* The size of the room: of its ceiling, which no wall lets one see beyond. */
        for (int64_t i = 0; i < c.rows; i++)
            for (int k = 0; k < 3 && label[i] == PNET_CEILING; k++)
                high[k] = fmaxf(high[k], c.xyz[3 * i + k]);
        int64_t wrong[PNET_ROOM_CLASSES] = {0};
        for (int64_t i = 0; i < c.rows; i++) {
            const float *p = c.xyz + 3 * i;
            float x = fminf(p[0], high[0] - p[0]), y = fminf(p[1], high[1] - p[1]),
                  wall = fminf(x, y);
            bool good = true;
            switch (label[i]) {
            case PNET_FLOOR: good = fabsf(p[2]) < 1e-4f; break;
            case PNET_CEILING: good = fabsf(p[2] - high[2]) < 1e-4f && p[2] >= 2.5f; break;
            case PNET_WALL: good = wall < 0.05f; break;
            case PNET_WINDOW: good = wall < 0.15f && p[2] > 0.7f && p[2] < 2.3f; break;
            case PNET_BOARD: good = wall < 0.18f && p[2] > 0.8f && p[2] < 2.15f; break;
            case PNET_DOOR: good = p[2] < 2.15f && wall < 1.05f; break;
            case PNET_TABLE: good = p[2] < 0.8f; break;
            case PNET_CHAIR: good = p[2] < 1.05f; break;
            case PNET_SOFA: good = p[2] < 1 && wall < 1.1f; break;
            case PNET_SHELF: good = p[2] < 2.2f && wall < 0.5f; break;
            case PNET_LAMP: good = p[2] > -1e-4f && p[2] < high[2] + 1e-4f; break;
            case PNET_CLUTTER: good = p[2] > -1e-4f && p[2] < 1.5f; break;
            default: good = false; break;
            }
            wrong[label[i] % PNET_ROOM_CLASSES] += !good;
        }
        for (int k = 0; k < PNET_ROOM_CLASSES; k++)
            CHECKF(!wrong[k], "room %u: %lld points of %s out of place", n, (long long)wrong[k],
                pnet_room_names[k]);
        pnet_cloud_free(&c);
    }
}

/* No piece of furniture stands in another: solids of two pieces on the floor share no volume. */
static void test_no_collisions(void)
{
    for (uint32_t n = 0; n < 20; n++) {
        struct pnet_scene s = {0};
        struct pnet_room room;
        struct pnet_draw d = draw_begin(5, n, SYNTH_LAYOUT, 0), probe = draw_begin(5, n, 99, 0);
        pnet_room_build(&s, &d, 4.5f, &room);
        CHECK(!s.failed);
        for (int i = 0; i < PNET_ROOM_SCANS; i++)
            for (int k = 0; k < s.count; k++)
                CHECK(!pnet_solid_contains(&s.solids[k], room.scan[i], 0));
        int hits = 0;
        for (int i = 0; i < 40000; i++) {
            float x = draw_between(&probe, 0, room.size.x),
                  y = draw_between(&probe, 0, room.size.y);
            struct pnet_vec p = vec(x, y, draw_between(&probe, 0.02f, 2.2f));
            uint32_t classes = 0;
            for (int k = 0; k < s.count; k++)
                if (pnet_solid_contains(&s.solids[k], p, 0.05f))
                    classes |= 1u << s.solids[k].brush.label;
            classes &= 1u << PNET_SOFA | 1u << PNET_SHELF | 1u << PNET_CHAIR | 1u << PNET_TABLE |
                       1u << PNET_DOOR;
            hits += (classes & (classes - 1)) != 0;
        }
        CHECKF(hits == 0, "room %u: %d of 40000 points in two things", n, hits);
        pnet_scene_free(&s);
    }
}

/* Colour tells something, not all: the classes' mean colours differ, but the nearest one is mostly
 * wrong. */
static void test_colour(void)
{
    enum { ROOMS = 12 };
    const struct pnet_synth_options o = {.points = 4000};
    double mean[PNET_ROOM_CLASSES][3] = {{0}}, count[PNET_ROOM_CLASSES] = {0};
    int64_t right = 0, all = 0;
    for (uint32_t n = 0; n < 2 * ROOMS; n++) {
        struct pnet_cloud c = make(9, n, &o);
        const uint8_t *label = bytes(&c, "label"),
                      *rgb[3] = {bytes(&c, "red"), bytes(&c, "green"), bytes(&c, "blue")};
        for (int64_t i = 0; i < c.rows; i++) {
            double least = 1e9;
            int best = -1;
            for (int m = 0; m < PNET_ROOM_CLASSES; m++) {
                double far = 0;
                for (int k = 0; k < 3; k++)
                    far += pow(rgb[k][i] - mean[m][k] / fmax(count[m], 1), 2);
                if (n >= ROOMS && far < least) {
                    least = far;
                    best = m;
                }
            }
            right += best == label[i];
            all += n >= ROOMS;
            for (int k = 0; k < 3 && n < ROOMS; k++) mean[label[i]][k] += rgb[k][i];
            if (n < ROOMS) count[label[i]]++;
        }
        pnet_cloud_free(&c);
    }
    double share = (double)right / (double)all;
    CHECKF(share > 0.15 && share < 0.65, "%g", share);
}

/* Density falls with the distance: some patches of the floor have several times the points of
 * others. */
static void test_uneven(void)
{
    const struct pnet_synth_options o = {.points = 100000};
    struct pnet_cloud c = make(10, 0, &o);
    const uint8_t *label = bytes(&c, "label");
    int patch[100] = {0}, most = 0, some = 0;
    for (int64_t i = 0; i < c.rows; i++) {
        int x = (int)(c.xyz[3 * i] / 0.6f), y = (int)(c.xyz[3 * i + 1] / 0.6f);
        if (label[i] == PNET_FLOOR && x >= 0 && x < 10 && y >= 0 && y < 10) patch[10 * x + y]++;
    }
    for (int k = 0; k < 100; k++) most = patch[k] > most ? patch[k] : most;
    for (int k = 0; k < 100; k++) some += patch[k] > 0 && patch[k] < most / 2;
    CHECKF(some > 3, "%d", some);
    pnet_cloud_free(&c);
}

static void test_floor_of_rooms(void)
{
    struct timespec t0, t1;
    const struct pnet_synth_options o = {.points = 5000000, .room_points = 600000};
    clock_gettime(CLOCK_MONOTONIC, &t0);
    struct pnet_cloud c = make(12, 0, &o);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    double seconds = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    CHECKF(seconds < 120, "%g s", seconds);
    CHECK(c.rows > 4500000);
    /* Nine rooms, three by three: points in each ninth of the box. */
    int64_t part[9] = {0}, outside = 0;
    float pitch = 1.25f * 4.5f + 0.3f;
    for (int64_t i = 0; i < c.rows; i++) {
        int x = (int)((c.xyz[3 * i] + 0.2f) / pitch), y = (int)((c.xyz[3 * i + 1] + 0.2f) / pitch);
        bool known = x >= 0 && x < 3 && y >= 0 && y < 3;
        outside += !known;
        if (known) part[3 * y + x]++;
    }
    CHECK(outside == 0);
    for (int k = 0; k < 9; k++)
        CHECKF(llabs(part[k] - c.rows / 9) < c.rows / 90, "%lld", (long long)part[k]);
    pnet_cloud_free(&c);
}

int main(void)
{
    test_bits();
    test_counts();
    test_classes();
    test_places();
    test_no_collisions();
    test_colour();
    test_uneven();
    test_floor_of_rooms();
    return check_end();
}
