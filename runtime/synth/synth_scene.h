/* Scenes of the synthetic clouds: solids that can be sampled, tested and hit by rays. Private to
   runtime/synth/synth*.c. */
#ifndef PNET_RUNTIME_SYNTH_SCENE_H
#define PNET_RUNTIME_SYNTH_SCENE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct pnet_vec {
    float x, y, z;
};

static inline struct pnet_vec vec(float x, float y, float z)
{
    return (struct pnet_vec){x, y, z};
}
static inline struct pnet_vec vec_add(struct pnet_vec a, struct pnet_vec b)
{
    return vec(a.x + b.x, a.y + b.y, a.z + b.z);
}
static inline struct pnet_vec vec_sub(struct pnet_vec a, struct pnet_vec b)
{
    return vec(a.x - b.x, a.y - b.y, a.z - b.z);
}
static inline struct pnet_vec vec_scale(struct pnet_vec a, float s)
{
    return vec(a.x * s, a.y * s, a.z * s);
}
static inline float vec_dot(struct pnet_vec a, struct pnet_vec b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
static inline struct pnet_vec vec_cross(struct pnet_vec a, struct pnet_vec b)
{
    return vec(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static inline float vec_length(struct pnet_vec a)
{
    return sqrtf(vec_dot(a, a));
}

/* A form is the unit one of its kind, put into the world by an affine map. With h(z) = 1 at z = -1
   going to `taper` at z = 1:
     box       |x| <= h, |y| <= h, |z| <= 1      faces -x +x -y +y -z +z
     cylinder  x^2 + y^2 <= h^2, |z| <= 1        faces side, bottom, top
     ball      x^2 + y^2 + z^2 <= 1              one face
     torus     tube of radius `taper` about the unit circle in z = 0, `sweep` of a full turn; one
   face; rays do not see it */
enum pnet_form {
    PNET_FORM_BOX,
    PNET_FORM_CYLINDER,
    PNET_FORM_BALL,
    PNET_FORM_TORUS,
};
enum { PNET_FACES_MOST = 6 };

/* Properties of every solid that is added: set the brush, then build. */
struct pnet_brush {
    uint8_t label;
    uint8_t colour[3];
    uint8_t grain; /* rooms: standard deviation of the colour from point to point */
    float reflect; /* lidar: of the light that comes in, 0 to 1 */
    float clear_m; /* mean path of a ray before it is caught (leaves, wire); 0: opaque */
};

struct pnet_solid {
    enum pnet_form form;
    uint8_t faces;   /* bit f: face f exists, for sampling */
    bool inside_out; /* normals of points point inwards: the inner wall of a vessel */
    float taper, sweep;
    struct pnet_vec centre, axis[3];
    struct pnet_vec dual[3]; /* cross products of the axes: the inverse map times `volume` */
    float volume;            /* the determinant, > 0 */
    struct pnet_brush brush;
};

struct pnet_scene {
    struct pnet_solid *solids;
    int count, capacity;
    bool failed; /* out of memory: sticky, later additions go to `spare` and are lost */
    struct pnet_solid spare;
    struct pnet_brush brush;
};

void pnet_scene_free(struct pnet_scene *s);

/* Each function adds one solid with all faces, and returns it for changes until the next one is added; never NULL. Lengths
   are positive, in metres. */
struct pnet_solid *pnet_scene_add(
    struct pnet_scene *s, enum pnet_form form, struct pnet_vec centre, struct pnet_vec half);
/* Adds a box from corner to corner. */
struct pnet_solid *pnet_scene_box(
    struct pnet_scene *s, float x0, float y0, float z0, float x1, float y1, float z1);
/* Adds a round rod between two points, with its radius at either end (the first one > 0). */
struct pnet_solid *pnet_scene_rod(
    struct pnet_scene *s, struct pnet_vec from, struct pnet_vec to, float radius0, float radius1);

/* Sets the rows of `m` from a turn about a unit axis. */
void pnet_turn(struct pnet_vec m[3], struct pnet_vec axis, float angle);
/* Applies p -> m p + shift to the solids from `first` on; m must not mirror. */
void pnet_scene_move(
    struct pnet_scene *s, int first, const struct pnet_vec m[3], struct pnet_vec shift);
/* The same with a turn about z. */
void pnet_scene_place(struct pnet_scene *s, int first, float yaw, struct pnet_vec shift);
/* Returns half the extent of a box around the solid, along the axes of the world. */
struct pnet_vec pnet_solid_reach(const struct pnet_solid *s);

int pnet_solid_faces(const struct pnet_solid *s);
/* The point (u, v), both in [0, 1], of a face. `area` is the outward normal times the surface that
   du dv covers: its length is what makes draws uniform. */
void pnet_solid_point(const struct pnet_solid *s, int face, float u, float v, struct pnet_vec *p,
    struct pnet_vec *area);
/* Returns the surface of a face in square metres, and the largest length of `area` over it; both are computed on a grid. */
float pnet_solid_area(const struct pnet_solid *s, int face, float *most);
/* Tells whether the point is deeper than `margin` (of the unit form) inside; false for a torus, and if faces are missing. */
bool pnet_solid_contains(const struct pnet_solid *s, struct pnet_vec p, float margin);
/* Clips [*enter, *leave] to the part of the ray inside the solid. Returns false if there is none. */
bool pnet_solid_cut(const struct pnet_solid *s, struct pnet_vec origin, struct pnet_vec direction,
    float *enter, float *leave);
/* Returns the outward unit normal at a point on the surface. */
struct pnet_vec pnet_solid_normal(const struct pnet_solid *s, struct pnet_vec p);

/* A uniform grid over a scene, for rays; the solids must stay where they are. */
struct pnet_tracer {
    const struct pnet_scene *scene;
    struct pnet_vec low;
    float cell_m;
    int size[3];
    int32_t *start; /* [cells + 1] */
    int32_t *item;  /* solids, cell by cell */
};

/* false: out of memory; the grid is then empty. */
bool pnet_tracer_build(struct pnet_tracer *g, const struct pnet_scene *scene, float cell_m);
void pnet_tracer_free(struct pnet_tracer *g);

/* How far a ray goes into solids with clear_m: the same for the same ray. */
struct pnet_rand;
struct pnet_hit {
    int solid; /* -1: none */
    float t;   /* in lengths of the direction */
};
/* Returns the first hit with t in [0, reach]. `ray` numbers the draws of `rand` for solids that rays may pass. */
struct pnet_hit pnet_tracer_cast(const struct pnet_tracer *g, struct pnet_vec origin,
    struct pnet_vec direction, float reach, const struct pnet_rand *rand, uint64_t ray);
/* Tells whether nothing lies between the two points, whatever its clear_m. */
bool pnet_tracer_sees(const struct pnet_tracer *g, struct pnet_vec from, struct pnet_vec to);

#endif
