/* Clouds from files as one batch, ordered as a level is, and the triplet sets of a convolution on
 * it. */
#ifndef PNET_BENCH_SCENE_H
#define PNET_BENCH_SCENE_H

#include "kernels/geometry_stage.h"
#include "runtime/io/cloud.h"

enum { SCENES_MAX = 64 };

struct scene {
    struct pnet_level level;
    int64_t splits[SCENES_MAX + 1];
    float *xyz;
    uint64_t *key;
};

/* A set that owns its arrays. */
struct scene_set {
    struct pnet_triplets t;
    int64_t *start;
    int32_t *other;
    uint16_t *cell;
    int32_t *row, *place; /* of mixed rows; NULL */
};

/* One sample a path: a cloud of any format, or "sphere:N", the shell of a ball in a grid of N cells an axis whose edge
   is `cell` metres: all voxels v with N/2 - 1.25 <= |v - N/2 + 0.5| <= N/2, as points at their centres. `times` over, one
   sample behind the other. */
enum pnet_status pnet_bench_scene_read(struct scene *s, int paths, const char *const *path,
    int times, double cell, struct pnet_error *e);
/* Sorts the points by their key on a grid of `cell` metres. False: the grid does not reach them
 * all. */
bool pnet_bench_scene_order(struct scene *s, double cell);
/* Keeps one point in each cell of the grid that an ordered scene is ordered by: the one nearest to the middle of its cell. */
void pnet_bench_scene_thin(struct scene *s);
/* The first rows of an ordered scene: they follow a curve, so they are a piece of it. It lives in the scene's memory, and
   its level in `piece`. */
void pnet_bench_scene_piece(const struct scene *s, int64_t rows, struct scene *piece);
void pnet_bench_scene_free(struct scene *s);

/* What the commands' options say: one more path; "native" or "voxel". False: too many of them, another word. */
bool pnet_bench_scene_file(const char *paths[SCENES_MAX], int *count, const char *path);
bool pnet_bench_scene_mode(const char *text, unsigned *degrade);

struct scene_set pnet_bench_scene_triplets(
    const struct scene *s, const struct pnet_neighbourhood *nb);
struct scene_set pnet_bench_scene_transposed(const struct pnet_triplets *t);
/* Puts the rows of both sides, which are one level's, in a random order. The triplets stay where they are. */
void pnet_bench_scene_mix(struct scene_set *forward, struct scene_set *backward);
void pnet_bench_scene_set_free(struct scene_set *s);

#endif
