/* From scene to cloud: functions that all kinds of synthetic data share. Private to runtime/synth/synth*.c. */
#ifndef PNET_RUNTIME_SYNTH_CLOUD_H
#define PNET_RUNTIME_SYNTH_CLOUD_H

#include "runtime/synth/synth.h"
#include "runtime/synth/synth_rand.h"
#include "runtime/synth/synth_scene.h"

/* The arguments of every maker; options are filled in and checked. */
struct pnet_synth_job {
    uint64_t seed;
    uint32_t index;
    struct pnet_synth_options options;
    int threads;
};

/* Returns the class of a shape. Each class occurs once in each run of PNET_OBJECTS clouds, in random order: classes are
   balanced, and none always falls into the same split. */
int pnet_synth_shape_class(const struct pnet_synth_job *job);
/* Scales an object by a random factor along each axis. */
void pnet_synth_stretch(struct pnet_scene *s, struct pnet_draw *d);
/* Turns an object at random about z or, with `any_rotation`, about any axis. */
void pnet_synth_turn(struct pnet_scene *s, struct pnet_draw *d, bool any_rotation);
enum pnet_status pnet_synth_shape(
    const struct pnet_synth_job *job, struct pnet_cloud *c, int *label, struct pnet_error *e);
enum pnet_status pnet_synth_room(
    const struct pnet_synth_job *job, struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_synth_scan(
    const struct pnet_synth_job *job, struct pnet_cloud *c, struct pnet_error *e);

/* One of the two views of a pair. */
struct pnet_synth_view {
    uint32_t number;        /* 1: the source, 2: the target */
    uint32_t attempt;       /* another number gives other positions */
    struct pnet_pose world; /* set: from the frame of the cloud to the frame of the scene */
};
/* Make views of the scene of a job; both views of a pair have the same scene. */
enum pnet_status pnet_synth_room_view(const struct pnet_synth_job *job, struct pnet_synth_view *v,
    struct pnet_cloud *c, struct pnet_error *e);
enum pnet_status pnet_synth_scan_view(const struct pnet_synth_job *job, struct pnet_synth_view *v,
    struct pnet_cloud *c, struct pnet_error *e);
/* Makes both views; the options are filled in and checked. In synth_pairs.c. */
enum pnet_status pnet_synth_views(
    const struct pnet_synth_job *job, struct pnet_synth_pair *p, struct pnet_error *e);

/* Makes both clouds of an object; in synth_partial.c. */
enum pnet_status pnet_synth_partial(
    const struct pnet_synth_job *job, struct pnet_synth_pair *p, int *label, struct pnet_error *e);

/* An empty cloud of `rows` points with the fields of these names and types; offset zero. */
struct pnet_synth_field {
    const char *name;
    enum pnet_scalar type;
};
enum pnet_status pnet_synth_cloud(struct pnet_cloud *c, int64_t rows,
    const struct pnet_synth_field *fields, int count, struct pnet_error *e);
/* Removes the rows whose first coordinate is NaN, which were not filled. Order stays. */
void pnet_synth_pack(struct pnet_cloud *c);

/* The faces of a scene, for drawing points uniformly over a surface. */
struct pnet_face {
    int solid, face;
    float most;    /* see pnet_solid_area */
    double weight; /* set to the area; the caller may change it */
    double before; /* sum of the weights of the faces before */
};
struct pnet_faces {
    struct pnet_face *face;
    int count;
    double sum;
};
enum pnet_status pnet_faces_list(
    struct pnet_faces *f, const struct pnet_scene *s, struct pnet_error *e);
/* Recomputes `before` and `sum` after weights changed. */
void pnet_faces_sum(struct pnet_faces *f);
/* Returns the face at a share in [0, 1) of the sum. */
int pnet_faces_find(const struct pnet_faces *f, double share);
/* Draws a point uniformly over the face, with its unit normal. */
void pnet_face_draw(const struct pnet_scene *s, const struct pnet_face *f, struct pnet_draw *d,
    struct pnet_vec *p, struct pnet_vec *normal);
/* Draws a point of the outer surface, with its unit normal: points inside another solid are drawn again. Returns false if all
   tries were inside. */
bool pnet_faces_draw(const struct pnet_scene *s, const struct pnet_faces *f, struct pnet_draw *d,
    struct pnet_vec *p, struct pnet_vec *normal);

#endif
