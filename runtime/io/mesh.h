/* Triangle meshes: the corners and faces of OFF and OBJ files. */
#ifndef PNET_RUNTIME_IO_MESH_H
#define PNET_RUNTIME_IO_MESH_H

#include "runtime/base/error.h"
#include "runtime/base/file.h"

#include <stdint.h>

/* Owns its arrays. Zeroed: empty. */
struct pnet_mesh {
    int64_t corner_count, triangle_count;
    double *corners;    /* [corner_count, 3] in the units of the file, finite, below 1e9 */
    int32_t *triangles; /* [triangle_count, 3] indices of corners */
};

/* Reads a mesh with at least one triangle. A polygon of n corners is the fan of n - 2 triangles around its first corner; faces of
   fewer than three corners are left out. On failure `m` is empty: PNET_BAD_DATA (the message names file and line), PNET_FAILED,
   PNET_NO_MEMORY. */
enum pnet_status pnet_mesh_read(const char *path, struct pnet_mesh *m, struct pnet_error *e);
/* The same from memory; `path` stands in messages, its ending tells OBJ, or an OFF that begins with a comment. */
enum pnet_status pnet_mesh_parse(
    const struct pnet_bytes *b, const char *path, struct pnet_mesh *m, struct pnet_error *e);
void pnet_mesh_free(struct pnet_mesh *m);

#endif
