/* Surfaces of triangles: points drawn from them, and what a depth camera sees of them. */
#ifndef PNET_RUNTIME_SURFACE_H
#define PNET_RUNTIME_SURFACE_H

#include "kernels/philox.h"
#include "runtime/base/error.h"
#include "runtime/io/mesh.h"

#include <stdint.h>

/* Owns its arrays. Zeroed: empty. */
struct pnet_surface {
    struct pnet_mesh mesh;
    double *until; /* [triangle_count] area of the triangles up to this one and with it */
};

/* Takes the mesh over, also on failure: moves the centroid of its surface to the origin, and scales it so that its farthest
   corner has the distance 1. `name` stands in messages. The caller frees *s; on failure it is empty. PNET_BAD_DATA: the triangles
   have no area; PNET_NO_MEMORY. */
enum pnet_status pnet_surface_make(
    const char *name, struct pnet_mesh *mesh, struct pnet_surface *s, struct pnet_error *e);
void pnet_surface_free(struct pnet_surface *s);
/* Returns the bytes of memory of a surface. */
uint64_t pnet_surface_bytes(const struct pnet_surface *s);

/* Draws `count` points uniformly from the surface: xyz[3 count]. Point i depends on r, `part` (augment_draw.h) and i alone. */
void pnet_surface_draw(
    const struct pnet_surface *s, const struct pnet_rand *r, int part, int64_t count, float *xyz);

/* The depth camera of PCN: a focal length of 100 pixels. */
enum { PNET_VIEW_WIDTH = 160, PNET_VIEW_HEIGHT = 120, PNET_VIEW_FOCAL = 100 };
enum { PNET_VIEW_RAYS = PNET_VIEW_WIDTH * PNET_VIEW_HEIGHT };

/* Draws a uniform rotation for the camera; another attempt looks from elsewhere. */
void pnet_surface_turn(const struct pnet_rand *r, int attempt, double turn[3][3]);

/* Casts a ray through the centre of each pixel at the mesh, turned by `turn` (a rotation) and moved `distance` away from the
   camera along its axis. xyz gets the nearest point of the mesh on each ray that meets it, in the coordinates of the mesh, row by
   row of the image: room for 3 PNET_VIEW_RAYS numbers. All corners are nearer to the origin than `distance`. PNET_NO_MEMORY. */
enum pnet_status pnet_surface_view(const struct pnet_mesh *m, const double turn[3][3],
    double distance, float *xyz, int64_t *count, struct pnet_error *e);

#endif
