#include "runtime/synth/synth_cloud.h"
#include "runtime/synth/synth_models.h"

#include <stdlib.h>

const char *const pnet_street_names[PNET_STREET_CLASSES] = {
    "road",
    "sidewalk",
    "terrain",
    "building",
    "fence",
    "pole",
    "sign",
    "trunk",
    "vegetation",
    "car",
    "truck",
    "person",
    "cyclist",
};

static const float REACH_M = 90;
static const float TOP_DEG = 15, BOTTOM_DEG = -25; /* as scanners on cars have */
static const float RADIANS = 0.0174532925f;

struct scanner {
    const struct pnet_synth_job *job;
    uint32_t view; /* number of the view of a pair, or 0; selects draws */
    struct pnet_scene scene;
    struct pnet_tracer grid;
    struct pnet_vec frame[3]; /* rows: from the scanner to the street */
    struct pnet_vec at;       /* position in the middle of the turn */
    float travel_m;           /* within one turn, along the street */
    int beams;
    int64_t firings; /* a turn */
    float *slope;    /* [beams, 2] cosine and sine of each beam above the horizon, from the top */
};

/* The return of one ray; `t` in metres. */
struct echo {
    float t, intensity;
    int solid; /* -1: nothing came back */
    struct pnet_vec p;
};

static uint32_t stream(const struct scanner *k, uint32_t purpose)
{
    return k->view << SYNTH_PURPOSE_BITS | purpose;
}

static bool set_beams(struct scanner *k)
{
    k->slope = malloc((size_t)k->beams * 2 * sizeof *k->slope);
    if (!k->slope) return false;
    for (int i = 0; i < k->beams; i++) {
        float share = k->beams > 1 ? (float)i / (float)(k->beams - 1) : 0.5f;
        float up = TOP_DEG + (BOTTOM_DEG - TOP_DEG) * share;
        k->slope[2 * i] = cosf(up * RADIANS);
        k->slope[2 * i + 1] = sinf(up * RADIANS);
    }
    return true;
}

/* Light that comes back: the material, the slant, and some loss on the way. */
static float intensity_of(
    const struct pnet_solid *s, struct pnet_vec hit, struct pnet_vec ray, float t)
{
    float facing = fabsf(vec_dot(pnet_solid_normal(s, hit), ray));
    if (s->brush.clear_m > 0) facing = 0.7f; /* leaves face everywhere */
    return s->brush.reflect * sqrtf(facing) * (1 - 0.4f * t / REACH_M);
}

/* The scanner moves on while it turns; points are given in its frame of the middle of the turn. */
static struct echo cast(
    const struct scanner *k, int64_t firing, int beam, int64_t firings, uint32_t purpose)
{
    float share = ((float)firing + 0.5f) / (float)firings, turn = -360 * share * RADIANS;
    float level = k->slope[2 * beam];
    struct pnet_vec v = vec(-level * cosf(turn), -level * sinf(turn), k->slope[2 * beam + 1]);
    struct pnet_vec ray =
        vec(vec_dot(k->frame[0], v), vec_dot(k->frame[1], v), vec_dot(k->frame[2], v));
    struct pnet_vec from = vec_add(k->at, vec((share - 0.5f) * k->travel_m, 0, 0));
    uint64_t number = (uint64_t)(firing * k->beams + beam);
    struct pnet_rand rand = {.seed = k->job->seed,
        .purpose = PNET_DRAW_SYNTH,
        .a = k->job->index,
        .b = stream(k, SYNTH_FACES)};
    struct pnet_hit hit = pnet_tracer_cast(&k->grid, from, ray, REACH_M, &rand, number);
    struct echo echo = {.solid = hit.solid, .t = hit.t};
    if (hit.solid < 0) return echo;
    const struct pnet_solid *s = &k->scene.solids[hit.solid];
    struct pnet_vec p = vec_add(from, vec_scale(ray, hit.t));
    echo.intensity = intensity_of(s, p, ray, hit.t);
    if (!k->job->options.clean) {
        struct pnet_draw d =
            draw_begin(k->job->seed, k->job->index, stream(k, purpose), number << 2);
        /* Dark, slanted and far surfaces are lost first. */
        float lost = 0.01f + 0.35f * expf(-25 * echo.intensity) + 0.05f * hit.t / REACH_M;
        if (draw_chance(&d, lost)) echo.solid = -1;
        echo.t += 0.015f * draw_normal(&d);
        echo.intensity += 0.02f * draw_normal(&d);
    }
    echo.intensity = fminf(fmaxf(echo.intensity, 0), 1);
    struct pnet_vec q = vec_sub(vec_add(from, vec_scale(ray, echo.t)), k->at);
    /* The inverse of a rotation is its transpose. */
    echo.p = vec_scale(k->frame[0], q.x);
    echo.p = vec_add(echo.p, vec_scale(k->frame[1], q.y));
    echo.p = vec_add(echo.p, vec_scale(k->frame[2], q.z));
    return echo;
}

/* Returns how many firings give the wanted points, from the share of rays of a coarse turn that return. */
static int64_t firings_for(const struct scanner *k, int64_t points)
{
    enum { COARSE = 90 };
    int64_t hits = 0;
    for (int64_t f = 0; f < COARSE; f++)
        for (int b = 0; b < k->beams; b++) hits += cast(k, f, b, COARSE, SYNTH_PILOT).solid >= 0;
    int64_t firings = hits ? (int64_t)((double)points * COARSE / (double)hits + 0.5) : 1;
    return firings > 0 ? firings : 1;
}

static void fill_firing(const struct scanner *k, struct pnet_cloud *c, int64_t firing)
{
    float *intensity = c->fields[0].data;
    uint8_t *ring = c->fields[1].data, *label = c->fields[2].data;
    for (int b = 0; b < k->beams; b++) {
        struct echo echo = cast(k, firing, b, k->firings, SYNTH_POINTS);
        int64_t row = firing * k->beams + b;
        c->xyz[3 * row] = echo.solid < 0 ? NAN : echo.p.x;
        if (echo.solid < 0) continue;
        c->xyz[3 * row + 1] = echo.p.y;
        c->xyz[3 * row + 2] = echo.p.z;
        intensity[row] = echo.intensity;
        ring[row] = (uint8_t)b;
        label[row] = k->scene.solids[echo.solid].brush.label;
    }
}

static void set_pose(struct scanner *k, struct pnet_draw *d)
{
    struct pnet_vec yaw[3], pitch[3], roll[3];
    pnet_turn(yaw, vec(0, 0, 1), draw_between(d, -0.05f, 0.05f));
    pnet_turn(pitch, vec(0, 1, 0), draw_between(d, -0.01f, 0.01f));
    pnet_turn(roll, vec(1, 0, 0), draw_between(d, -0.01f, 0.01f));
    struct pnet_vec column[3], unit[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int i = 0; i < 3; i++) {
        struct pnet_vec a =
            vec(vec_dot(roll[0], unit[i]), vec_dot(roll[1], unit[i]), vec_dot(roll[2], unit[i]));
        struct pnet_vec b = vec(vec_dot(pitch[0], a), vec_dot(pitch[1], a), vec_dot(pitch[2], a));
        column[i] = vec(vec_dot(yaw[0], b), vec_dot(yaw[1], b), vec_dot(yaw[2], b));
    }
    k->frame[0] = vec(column[0].x, column[1].x, column[2].x);
    k->frame[1] = vec(column[0].y, column[1].y, column[2].y);
    k->frame[2] = vec(column[0].z, column[1].z, column[2].z);
    k->at = vec(0, 0, draw_between(d, 1.65f, 1.85f));
    k->travel_m = draw_between(d, 0, 1.4f); /* up to 50 km/h at ten turns a second */
}

/* Scans one turn with street and pose set; frees the street. */
static enum pnet_status scan(struct scanner *k, struct pnet_cloud *c, struct pnet_error *e)
{
    static const struct pnet_synth_field fields[] = {
        {"intensity", PNET_F32}, {"ring", PNET_U8}, {"label", PNET_U8}};
    const struct pnet_synth_job *job = k->job;
    enum pnet_status status = PNET_OK;
    k->beams = job->options.beams;
    if (k->scene.failed || !set_beams(k) || !pnet_tracer_build(&k->grid, &k->scene, 1.5f))
        status = pnet_error_memory(e);
    if (status) goto out;
    k->firings = job->options.points ? firings_for(k, job->options.points)
                                     : (int64_t)(360 / job->options.azimuth_deg + 0.5f);
    status = pnet_synth_cloud(c, k->firings * k->beams, fields, 3, e);
    if (status) goto out;
#pragma omp parallel for schedule(static, 16) num_threads(job->threads)
    for (int64_t i = 0; i < k->firings; i++) fill_firing(k, c, i);
    pnet_synth_pack(c);
out:
    free(k->slope);
    pnet_tracer_free(&k->grid);
    pnet_scene_free(&k->scene);
    return status;
}

enum pnet_status pnet_synth_scan(
    const struct pnet_synth_job *job, struct pnet_cloud *c, struct pnet_error *e)
{
    struct scanner k = {.job = job};
    struct pnet_draw layout = draw_begin(job->seed, job->index, SYNTH_LAYOUT, 0);
    pnet_street_build(&k.scene, &layout);
    set_pose(&k, &layout);
    return scan(&k, c, e);
}

/* The car stands up to 6 m before or behind the middle, where its own lane is free. */
enum pnet_status pnet_synth_scan_view(const struct pnet_synth_job *job, struct pnet_synth_view *v,
    struct pnet_cloud *c, struct pnet_error *e)
{
    struct scanner k = {.job = job, .view = v->number};
    struct pnet_draw layout = draw_begin(job->seed, job->index, SYNTH_LAYOUT, 0);
    struct pnet_draw d = draw_begin(job->seed, job->index, SYNTH_AIM, (uint64_t)v->attempt << 16);
    struct pnet_draw own = draw_begin(job->seed, job->index, stream(&k, SYNTH_LAYOUT), 0);
    float apart = draw_sign(&d) * draw_between(&d, 1, 12);
    pnet_street_build(&k.scene, &layout);
    set_pose(&k, &own);
    k.at.x = v->number == 1 ? -apart / 2 : apart / 2;
    k.at.y = draw_between(&own, -0.2f, 0.2f);
    const float at[3] = {k.at.x, k.at.y, k.at.z};
    v->world = pnet_pose_identity();
    for (int i = 0; i < 3; i++) {
        const float row[3] = {k.frame[i].x, k.frame[i].y, k.frame[i].z};
        for (int n = 0; n < 3; n++) v->world.m[4 * i + n] = (double)row[n];
        v->world.m[4 * i + 3] = (double)at[i];
    }
    return scan(&k, c, e);
}
