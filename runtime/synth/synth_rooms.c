#include "runtime/synth/synth_cloud.h"
#include "runtime/synth/synth_models.h"

#include <stdlib.h>

const char *const pnet_room_names[PNET_ROOM_CLASSES] = {
    "ceiling",
    "floor",
    "wall",
    "door",
    "window",
    "board",
    "table",
    "chair",
    "sofa",
    "shelf",
    "lamp",
    "clutter",
};

enum { PROBES = 32, TRIES = 64, CHUNK = 4096 };

/* The places from which a cloud is taken: each point is seen from a scanner or camera at one of them. */
struct sight {
    struct pnet_vec at[PNET_ROOM_SCANS];
    struct pnet_vec look; /* level, unit: what is more than half_angle to a side is not seen */
    float cos_half;       /* -1: all around */
};

/* One room of the cloud: its rows are first .. first + rows - 1. */
struct room_task {
    const struct pnet_synth_job *job;
    uint32_t number;
    int64_t first, rows;
    struct pnet_vec corner; /* of the room on the floor */
    struct pnet_scene scene;
    struct pnet_room room;
    struct sight sight;
    struct pnet_tracer grid;
    struct pnet_faces faces;
};

struct seen {
    struct pnet_vec p, normal;
    struct pnet_vec ray; /* from the scanner, unit */
};

static uint32_t stream(const struct room_task *t, uint32_t purpose)
{
    return t->number << SYNTH_PURPOSE_BITS | purpose;
}

/* Draws a point of the face and a scanner. Returns false if that scanner gets no return from the point: it is hidden or
   turned away, or missed by chance, because distance and slant spread the beams. */
static bool draw_seen(
    const struct room_task *t, const struct pnet_face *face, struct pnet_draw *d, struct seen *seen)
{
    const struct pnet_solid *solid = &t->scene.solids[face->solid];
    pnet_face_draw(&t->scene, face, d, &seen->p, &seen->normal);
    struct pnet_vec from = t->sight.at[draw_below(d, PNET_ROOM_SCANS)];
    float chance = draw_unit(d);
    struct pnet_vec ray = vec_sub(seen->p, from);
    float far = vec_length(ray);
    seen->ray = vec_scale(ray, 1 / far);
    float flat = sqrtf(ray.x * ray.x + ray.y * ray.y), ahead = vec_dot(ray, t->sight.look);
    if (ahead < t->sight.cos_half * flat) return false;
    /* Of an open form, the inside is seen as well. */
    float slant = -vec_dot(seen->ray, seen->normal);
    bool open = solid->faces != (1 << pnet_solid_faces(solid)) - 1;
    if (slant < 0 && open) {
        slant = -slant;
        seen->normal = vec_scale(seen->normal, -1);
    }
    if (slant < 0.03f || chance * (0.5f + 0.12f * far * far) > 0.25f + 0.75f * slant) return false;
    return pnet_tracer_sees(&t->grid, from, vec_add(seen->p, vec_scale(seen->normal, 2e-3f)));
}

/* Sets the weight of every face to the part of its area that is seen. */
static void weigh_faces(struct room_task *t)
{
    for (int i = 0; i < t->faces.count; i++) {
        struct pnet_draw d =
            draw_begin(t->job->seed, t->job->index, stream(t, SYNTH_FACES), (uint64_t)i << 16);
        struct seen seen;
        int hits = 0;
        for (int k = 0; k < PROBES; k++) hits += draw_seen(t, &t->faces.face[i], &d, &seen);
        t->faces.face[i].weight *= hits / (double)PROBES;
    }
    pnet_faces_sum(&t->faces);
}

static uint8_t byte(float x)
{
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x + 0.5f);
}

/* The material's colour under the room's lights, with the grain of the material and of the camera.
 */
static void set_colour(const struct room_task *t, const struct seen *seen,
    const struct pnet_brush *brush, struct pnet_draw *d, uint8_t colour[3])
{
    float light = 0.62f;
    for (int i = 0; i < t->room.lights; i++) {
        struct pnet_vec to = vec_sub(t->room.light[i], seen->p);
        float far2 = vec_dot(to, to);
        float facing = fmaxf(0, vec_dot(to, seen->normal)) / sqrtf(far2 + 1e-6f);
        light += 0.75f * (0.25f + facing) / (1 + far2) / sqrtf((float)t->room.lights);
    }
    float noise = t->job->options.clean ? 0 : 1,
          grain = noise * draw_normal(d) * (float)brush->grain;
    for (int k = 0; k < 3; k++)
        colour[k] = byte(light * (float)brush->colour[k] + grain + 3 * noise * draw_normal(d));
}

static void fill_row(
    const struct room_task *t, struct pnet_cloud *c, int64_t row, const struct pnet_face *face)
{
    struct pnet_draw d = draw_begin(
        t->job->seed, t->job->index, stream(t, SYNTH_POINTS), (uint64_t)(row - t->first) << 16);
    const struct pnet_brush *brush = &t->scene.solids[face->solid].brush;
    float *xyz = c->xyz + 3 * row;
    struct seen seen;
    int tries = 0;
    while (!draw_seen(t, face, &d, &seen)) {
        if (++tries == TRIES) { /* all but hidden: the slot stays empty */
            xyz[0] = NAN;
            return;
        }
    }
    uint8_t colour[3];
    set_colour(t, &seen, brush, &d, colour);
    for (int k = 0; k < 3; k++) ((uint8_t *)c->fields[k].data)[row] = colour[k];
    ((uint8_t *)c->fields[3].data)[row] = brush->label;
    float noise = t->job->options.clean ? 0 : 0.004f * draw_normal(&d);
    struct pnet_vec p = vec_add(vec_add(seen.p, vec_scale(seen.ray, noise)), t->corner);
    xyz[0] = p.x;
    xyz[1] = p.y;
    xyz[2] = p.z;
}

/* Rows go to the faces by weight, in the order of the faces. */
static void fill_chunk(const struct room_task *t, struct pnet_cloud *c, int64_t chunk)
{
    int64_t low = chunk * CHUNK, high = low + CHUNK < t->rows ? low + CHUNK : t->rows;
    for (int64_t i = low; i < high; i++) {
        int face = pnet_faces_find(&t->faces, ((double)i + 0.5) / (double)t->rows);
        fill_row(t, c, t->first + i, &t->faces.face[face]);
    }
}

/* All of the room. */
static void look_around(struct room_task *t)
{
    t->sight = (struct sight){.cos_half = -1};
    for (int i = 0; i < PNET_ROOM_SCANS; i++) t->sight.at[i] = t->room.scan[i];
}

static void build_room(struct room_task *t, uint32_t number)
{
    struct pnet_draw layout =
        draw_begin(t->job->seed, t->job->index, number << SYNTH_PURPOSE_BITS | SYNTH_LAYOUT, 0);
    pnet_room_build(&t->scene, &layout, t->job->options.room_m, &t->room);
}

/* Makes the cloud of a room that is built, and frees the room. */
static enum pnet_status fill_room(struct room_task *t, struct pnet_cloud *c, struct pnet_error *e)
{
    enum pnet_status status = pnet_faces_list(&t->faces, &t->scene, e);
    if (!status && !pnet_tracer_build(&t->grid, &t->scene, 0.35f)) status = pnet_error_memory(e);
    if (!status) {
        weigh_faces(t);
        int64_t chunks = (t->rows + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(dynamic, 1) num_threads(t->job->threads)
        for (int64_t i = 0; i < chunks; i++) fill_chunk(t, c, i);
    }
    free(t->faces.face);
    pnet_tracer_free(&t->grid);
    pnet_scene_free(&t->scene);
    return status;
}

static const struct pnet_synth_field fields[] = {
    {"red", PNET_U8}, {"green", PNET_U8}, {"blue", PNET_U8}, {"label", PNET_U8}};

enum pnet_status pnet_synth_room(
    const struct pnet_synth_job *job, struct pnet_cloud *c, struct pnet_error *e)
{
    int64_t rows = job->options.points, rooms = (rows - 1) / job->options.room_points + 1,
            across = 1;
    while (across * across < rooms) across++;
    /* Rooms are at most 1.25 times the mean edge, walls 0.14 m. */
    float pitch = 1.25f * job->options.room_m + 0.3f;
    enum pnet_status status = pnet_synth_cloud(c, rows, fields, 4, e);
    for (int64_t i = 0; i < rooms && !status; i++) {
        int64_t column = i % across, line = i / across;
        struct room_task task = {.job = job,
            .number = (uint32_t)i,
            .first = rows * i / rooms,
            .corner = {pitch * (float)column, pitch * (float)line, 0}};
        task.rows = rows * (i + 1) / rooms - task.first;
        build_room(&task, task.number);
        look_around(&task);
        status = fill_room(&task, c, e);
    }
    if (!status) pnet_synth_pack(c);
    return status;
}

/* Both views look at one place of the room, each from a position of its own, past the place by up to 25 degrees; the camera is
   also moved by up to 15 cm along each axis. */
static void aim(struct room_task *t, const struct pnet_synth_view *v)
{
    struct pnet_draw d =
        draw_begin(t->job->seed, t->job->index, SYNTH_AIM, (uint64_t)v->attempt << 16);
    struct pnet_size size = t->room.size;
    float x = size.x * draw_between(&d, 0.15f, 0.85f), y = size.y * draw_between(&d, 0.15f, 0.85f);
    for (uint32_t number = 1; number <= v->number; number++) {
        struct pnet_vec stand = t->room.scan[draw_below(&d, PNET_ROOM_SCANS)];
        float yaw = atan2f(y - stand.y, x - stand.x) + draw_between(&d, -0.45f, 0.45f);
        t->sight.look = vec(cosf(yaw), sinf(yaw), 0);
        t->sight.cos_half = cosf(draw_between(&d, 0.7f, 1.2f));
        for (int i = 0; i < PNET_ROOM_SCANS; i++) {
            float east = draw_between(&d, -0.15f, 0.15f), north = draw_between(&d, -0.15f, 0.15f);
            t->sight.at[i] = vec_add(stand, vec(east, north, draw_between(&d, -0.15f, 0.15f)));
        }
    }
}

enum pnet_status pnet_synth_room_view(const struct pnet_synth_job *job, struct pnet_synth_view *v,
    struct pnet_cloud *c, struct pnet_error *e)
{
    struct room_task task = {.job = job, .number = v->number, .rows = job->options.points};
    enum pnet_status status = pnet_synth_cloud(c, task.rows, fields, 4, e);
    if (status) return status;
    build_room(&task, 0);
    aim(&task, v);
    v->world = pnet_pose_identity();
    status = fill_room(&task, c, e);
    if (!status) pnet_synth_pack(c);
    return status;
}
