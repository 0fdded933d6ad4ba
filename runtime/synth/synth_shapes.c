#include "runtime/synth/synth_cloud.h"
#include "runtime/synth/synth_models.h"

#include <stdlib.h>

/* The flaws of the scan of one object. */
struct shape_flaws {
    struct pnet_vec cut; /* points with cut . p < level are missing; zero: none */
    float level;
    struct pnet_vec view; /* surface turned away from here is mostly missing; zero: none */
    float noise, clutter; /* of the extent; share of the points */
};

int pnet_synth_shape_class(const struct pnet_synth_job *job)
{
    struct pnet_draw d = draw_begin(job->seed, job->index / PNET_OBJECTS, SYNTH_LABEL, 0);
    int order[PNET_OBJECTS];
    for (int i = 0; i < PNET_OBJECTS; i++) order[i] = i;
    for (int i = PNET_OBJECTS - 1; i > 0; i--) {
        int j = draw_below(&d, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    return order[job->index % PNET_OBJECTS];
}

static struct pnet_vec any_direction(struct pnet_draw *d)
{
    float z = draw_between(d, -1, 1), turn = draw_between(d, 0, 6.2831853f), r = sqrtf(1 - z * z);
    return vec(r * cosf(turn), r * sinf(turn), z);
}

void pnet_synth_stretch(struct pnet_scene *s, struct pnet_draw *d)
{
    float x = draw_between(d, 0.75f, 1.3f), y = draw_between(d, 0.75f, 1.3f),
          z = draw_between(d, 0.75f, 1.3f);
    struct pnet_vec stretch[3] = {{x, 0, 0}, {0, y, 0}, {0, 0, z}};
    pnet_scene_move(s, 0, stretch, vec(0, 0, 0));
}

void pnet_synth_turn(struct pnet_scene *s, struct pnet_draw *d, bool any_rotation)
{
    pnet_scene_place(s, 0, draw_between(d, 0, 6.2831853f), vec(0, 0, 0));
    if (any_rotation) {
        struct pnet_vec m[3], axis = any_direction(d);
        pnet_turn(m, axis, draw_between(d, 0, 6.2831853f));
        pnet_scene_move(s, 0, m, vec(0, 0, 0));
    }
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static struct shape_flaws draw_flaws(
    const struct pnet_scene *s, const struct pnet_faces *f, struct pnet_draw *d)
{
    enum { PROBES = 128 };
    struct shape_flaws w = {0};
    int kind = draw_below(d, 3);
    if (kind == 1) {
        w.cut = any_direction(d);
        float along[PROBES] = {0};
        for (int i = 0; i < PROBES; i++) {
            struct pnet_vec p = {0, 0, 0}, normal;
            pnet_faces_draw(s, f, d, &p, &normal);
            along[i] = vec_dot(w.cut, p);
        }
        qsort(along, PROBES, sizeof *along, ascending);
        w.level = along[draw_below(d, PROBES * 3 / 10)];
    } else if (kind == 2) {
        w.view = any_direction(d);
        w.view.z = fabsf(w.view.z); /* objects are seldom seen from below */
    }
    w.noise = draw_between(d, 0.002f, 0.01f);
    w.clutter = draw_between(d, 0, 0.05f);
    return w;
}

static bool missing(
    const struct shape_flaws *w, struct pnet_vec p, struct pnet_vec normal, struct pnet_draw *d)
{
    if (vec_dot(w->cut, p) < w->level) return true;
    return vec_dot(w->view, normal) < -0.15f && draw_chance(d, 0.85f);
}

/* Fills a cloud from the scene; rows that could not be filled are NaN. */
static void sample(const struct pnet_scene *s, const struct pnet_faces *f,
    const struct shape_flaws *w, struct pnet_draw *d, struct pnet_cloud *c)
{
    float *normals[3];
    for (int k = 0; k < 3; k++) normals[k] = c->fields[k].data;
    for (int64_t i = 0; i < c->rows; i++) {
        struct pnet_vec p = {NAN, NAN, NAN}, normal = {0, 0, 0};
        for (int tries = 0; tries < 64; tries++) {
            if (pnet_faces_draw(s, f, d, &p, &normal) && !missing(w, p, normal, d)) break;
            p.x = NAN;
        }
        c->xyz[3 * i] = p.x;
        c->xyz[3 * i + 1] = p.y;
        c->xyz[3 * i + 2] = p.z;
        normals[0][i] = normal.x;
        normals[1][i] = normal.y;
        normals[2][i] = normal.z;
    }
}

/* Scales the longest edge of the box to `extent` metres and moves its centre to the origin. */
static void fit(struct pnet_cloud *c, float extent)
{
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY},
          edge = 0;
    for (int64_t i = 0; i < 3 * c->rows; i++) {
        low[i % 3] = fminf(low[i % 3], c->xyz[i]);
        high[i % 3] = fmaxf(high[i % 3], c->xyz[i]);
    }
    for (int k = 0; k < 3; k++) edge = fmaxf(edge, high[k] - low[k]);
    for (int64_t i = 0; i < 3 * c->rows; i++)
        c->xyz[i] = (c->xyz[i] - (low[i % 3] + high[i % 3]) / 2) * (extent / edge);
}

/* Adds noise to every point, and moves a share of the points anywhere near, with any normal. */
static void spoil(
    struct pnet_cloud *c, const struct shape_flaws *w, float extent, struct pnet_draw *d)
{
    for (int64_t i = 0; i < c->rows; i++) {
        float *p = c->xyz + 3 * i;
        bool stray = draw_chance(d, w->clutter);
        for (int k = 0; k < 3; k++) {
            if (stray)
                p[k] = draw_between(d, -0.55f, 0.55f) * extent;
            else
                p[k] += w->noise * extent * draw_normal(d);
        }
        if (!stray) continue;
        struct pnet_vec n = any_direction(d);
        ((float *)c->fields[0].data)[i] = n.x;
        ((float *)c->fields[1].data)[i] = n.y;
        ((float *)c->fields[2].data)[i] = n.z;
    }
}

enum pnet_status pnet_synth_shape(
    const struct pnet_synth_job *job, struct pnet_cloud *c, int *label, struct pnet_error *e)
{
    static const struct pnet_synth_field fields[] = {
        {"nx", PNET_F32}, {"ny", PNET_F32}, {"nz", PNET_F32}};
    struct pnet_draw layout = draw_begin(job->seed, job->index, SYNTH_LAYOUT, 0);
    struct pnet_draw points = draw_begin(job->seed, job->index, SYNTH_POINTS, 0);
    struct pnet_draw number = draw_begin(job->seed, job->index, SYNTH_COUNT, 0);
    struct pnet_scene scene = {0};
    struct pnet_faces faces = {0};
    int64_t rows = job->options.points ? job->options.points : 1024 + draw_below(&number, 1025);
    int object = pnet_synth_shape_class(job);
    pnet_model_object(&scene, &layout, object);
    if (!job->options.clean) {
        pnet_synth_stretch(&scene, &layout);
        pnet_synth_turn(&scene, &layout, job->options.any_rotation);
    }
    float extent = draw_between(&layout, 1, 2);

    enum pnet_status status = pnet_faces_list(&faces, &scene, e);
    if (!status) status = pnet_synth_cloud(c, rows, fields, 3, e);
    if (status) goto out;
    struct shape_flaws flaws = {0};
    if (!job->options.clean) flaws = draw_flaws(&scene, &faces, &points);
    sample(&scene, &faces, &flaws, &points, c);
    pnet_synth_pack(c);
    fit(c, extent);
    if (!job->options.clean) spoil(c, &flaws, extent, &points);
    if (label) *label = object;
out:
    free(faces.face);
    pnet_scene_free(&scene);
    return status;
}
