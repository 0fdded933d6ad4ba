/* Objects for completion: the full cloud is drawn from the surface, the partial one is what a depth camera sees. */
#include "runtime/data/surface.h"
#include "runtime/synth/synth_cloud.h"
#include "runtime/synth/synth_models.h"

#include <stdlib.h>

/* Steps of a full turn. Flat triangles between points of a circle of radius 1 lie at most 1 - cos(pi / STEPS) = 1.4e-4 below
   it. */
enum { STEPS = 192 };
/* The camera's distance: the diameter of the sphere around the object, as PCN has it. */
static const double DISTANCE = 2;

/* A face as a grid of points: across x down cells. */
struct grid {
    int across, down;
    bool closed,
        arcs; /* its first and last column are one; rows are at equal angles, not equal v */
};

static struct grid grid_of(const struct pnet_solid *s)
{
    switch (s->form) {
    case PNET_FORM_BOX: break;
    case PNET_FORM_CYLINDER: return (struct grid){STEPS, 1, true, false};
    case PNET_FORM_BALL: return (struct grid){STEPS, STEPS / 2, true, true};
    case PNET_FORM_TORUS: return (struct grid){STEPS, STEPS, s->sweep >= 1, false};
    }
    return (struct grid){1, 1, false, false};
}

static void add_face(struct pnet_mesh *m, const struct pnet_solid *s, int face)
{
    struct grid g = grid_of(s);
    int columns = g.closed ? g.across : g.across + 1;
    int32_t first = (int32_t)m->corner_count;
    for (int j = 0; j <= g.down; j++)
        for (int i = 0; i < columns; i++) {
            struct pnet_vec p, area;
            float v = (float)j / (float)g.down;
            if (g.arcs) v = (1 - cosf(3.14159265f * v)) / 2;
            pnet_solid_point(s, face, (float)i / (float)g.across, v, &p, &area);
            double *to = m->corners + 3 * m->corner_count++;
            to[0] = (double)p.x;
            to[1] = (double)p.y;
            to[2] = (double)p.z;
        }
    for (int j = 0; j < g.down; j++)
        for (int i = 0; i < g.across; i++) {
            int32_t a = first + j * columns + i, b = first + j * columns + (i + 1) % columns;
            int32_t *t = m->triangles + 3 * m->triangle_count;
            const int32_t two[6] = {a, b, a + columns, b, b + columns, a + columns};
            for (int k = 0; k < 6; k++) t[k] = two[k];
            m->triangle_count += 2;
        }
}

/* Makes triangles of all faces of the scene. */
static enum pnet_status make_mesh(const struct pnet_scene *s, const struct pnet_faces *f,
    struct pnet_mesh *m, struct pnet_error *e)
{
    size_t corners = 0, cells = 0;
    for (int i = 0; i < f->count; i++) {
        struct grid g = grid_of(&s->solids[f->face[i].solid]);
        corners += (size_t)(g.across + 1) * (size_t)(g.down + 1);
        cells += (size_t)g.across * (size_t)g.down;
    }
    *m = (struct pnet_mesh){.corners = malloc(corners * 3 * sizeof *m->corners + 1),
        .triangles = malloc(cells * 6 * sizeof *m->triangles + 1)};
    if (!m->corners || !m->triangles) {
        pnet_mesh_free(m);
        return pnet_error_memory(e);
    }
    for (int i = 0; i < f->count; i++) add_face(m, &s->solids[f->face[i].solid], f->face[i].face);
    return PNET_OK;
}

/* Draws the full cloud; a point for which all tries fail is left out. */
static void draw_full(const struct pnet_scene *s, const struct pnet_faces *f, struct pnet_draw *d,
    struct pnet_cloud *c)
{
    for (int64_t i = 0; i < c->rows; i++) {
        struct pnet_vec p, normal;
        bool drawn = pnet_faces_draw(s, f, d, &p, &normal);
        c->xyz[3 * i] = drawn ? p.x : NAN;
        c->xyz[3 * i + 1] = p.y;
        c->xyz[3 * i + 2] = p.z;
    }
    pnet_synth_pack(c);
}

/* Moves the mean of the full cloud to the origin and scales its farthest point to the distance 1, and the mesh with it. */
static void fit(struct pnet_cloud *c, struct pnet_mesh *m)
{
    double centre[3] = {0, 0, 0}, far2 = 0;
    for (int64_t i = 0; i < 3 * c->rows; i++) centre[i % 3] += (double)c->xyz[i] / (double)c->rows;
    for (int64_t i = 0; i < c->rows; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += pow((double)c->xyz[3 * i + k] - centre[k], 2);
        far2 = fmax(far2, sum);
    }
    double scale = 1 / sqrt(far2);
    for (int64_t i = 0; i < 3 * c->rows; i++)
        c->xyz[i] = (float)(((double)c->xyz[i] - centre[i % 3]) * scale);
    for (int64_t i = 0; i < 3 * m->corner_count; i++)
        m->corners[i] = (m->corners[i] - centre[i % 3]) * scale;
}

/* Takes what the camera sees from any side. */
static enum pnet_status look(const struct pnet_synth_job *job, const struct pnet_mesh *m,
    struct pnet_cloud *c, struct pnet_error *e)
{
    struct pnet_rand r = {
        .seed = job->seed, .purpose = PNET_DRAW_SYNTH, .a = job->index, .b = SYNTH_AIM};
    double turn[3][3];
    int64_t count = 0;
    enum pnet_status status = pnet_synth_cloud(c, PNET_VIEW_RAYS, NULL, 0, e);
    if (status) return status;
    pnet_surface_turn(&r, 0, turn);
    status = pnet_surface_view(m, turn, DISTANCE, c->xyz, &count, e);
    c->rows = c->file_rows = count;
    if (!status && !count)
        status =
            pnet_error_set(e, PNET_FAILED, "object %lu of seed %llu: the camera sees nothing of it",
                (unsigned long)job->index, (unsigned long long)job->seed);
    return status;
}

enum pnet_status pnet_synth_partial(
    const struct pnet_synth_job *job, struct pnet_synth_pair *p, int *label, struct pnet_error *e)
{
    struct pnet_draw layout = draw_begin(job->seed, job->index, SYNTH_LAYOUT, 0);
    struct pnet_draw points = draw_begin(job->seed, job->index, SYNTH_POINTS, 0);
    struct pnet_scene scene = {0};
    struct pnet_faces faces = {0};
    struct pnet_mesh mesh = {.corner_count = 0};
    *label = pnet_synth_shape_class(job);
    pnet_model_object(&scene, &layout, *label);
    if (!job->options.clean) pnet_synth_stretch(&scene, &layout);
    if (job->options.any_rotation) pnet_synth_turn(&scene, &layout, true);
    enum pnet_status status = pnet_faces_list(&faces, &scene, e);
    if (!status) status = make_mesh(&scene, &faces, &mesh, e);
    if (!status) status = pnet_synth_cloud(&p->target, job->options.points, NULL, 0, e);
    if (!status) {
        draw_full(&scene, &faces, &points, &p->target);
        fit(&p->target, &mesh);
        status = look(job, &mesh, &p->source, e);
    }
    pnet_mesh_free(&mesh);
    free(faces.face);
    pnet_scene_free(&scene);
    if (status) pnet_synth_pair_free(p);
    return status;
}
