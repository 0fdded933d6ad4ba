/* Completion: how many points the clouds of an entry have, and how both clouds are made from a mesh.

     {partial: p/0*.ply, full: f/0*.ply, points: 2048, full_points: 16384}
     {array: mvp.h5, partial: incomplete_pcds, full: complete_pcds, labels: labels}
     {mesh: chairs/0*.off, points: 16384, views: {count: 8, kind: depth, points: 2048}}
     {full: chairs/0*.npy, full_points: 8192, views: {count: 8, kind: cut, points: 2048}}

   A cloud of two files gets `points` (the partial one) or `full_points` (the full one) by a random draw: without repeats if it
   has more points, else all of them and as many repeats as are missing, as the loader of PCN does (Yuan, Khot, Held, Mertz,
   Hebert: PCN: Point Completion Network, 3DV 2018). Without the key a cloud keeps its points.

   A mesh is moved and scaled so that the centroid of its surface is the origin and its farthest corner has the distance 1. The
   full cloud is `points` points drawn uniformly from its surface, always the same ones. A cloud that stands for both (`full` with
   `views`) is moved and scaled likewise: the mean of its points is the origin, its farthest point has the distance 1.
   `full_points` draws so many of its points, always the same ones. Keys of `views`:

     count: 8          # entries of each mesh or cloud (1)
     kind: depth       # what a depth camera of PCN sees, or `cut`, the only one of clouds (depth, of clouds cut)
     points: 2048      # of the partial cloud (2048)
     part: [25%, 75%]  # cut: share of the full cloud that is cut away, or one number (25% to 75%)
     seed: 1           # of the full clouds, and of the views that evaluation sees (1)

   depth: 160 x 120 rays of a camera with a focal length of 100 pixels that looks at the origin from any direction, at the
   distance of the diameter of the sphere around the mesh, 2: the models of PCN have the diameter 1, its camera the distance 1.
   What the rays hit is drawn to `points` as above.

   cut: the points nearest to a random place on the unit sphere are cut away; of the others farthest point sampling takes
   `points`, as PoinTr does with ShapeNet-55 (Yu et al.: PoinTr, ICCV 2021). In evaluation the place of view k is corner k of 8 of
   the cube (+-1, +-1, +-1); x changes first.

   Training draws counts and views anew each epoch, from the seed of the run. Evaluation always sees the same ones: its draws
   depend on the seed above, the split and the number of the entry. */
#ifndef PNET_RUNTIME_PARTIAL_H
#define PNET_RUNTIME_PARTIAL_H

#include "runtime/data/augment_views.h"
#include "runtime/data/sample.h"
#include "runtime/data/surface.h"

enum pnet_partial_kind { PNET_PARTIAL_FILE, PNET_PARTIAL_DEPTH, PNET_PARTIAL_CUT };

struct pnet_partial {
    enum pnet_partial_kind kind;
    bool cloud;                  /* CUT: of a cloud, not of a mesh */
    int64_t points, full_points; /* 0: as the file has them */
    int64_t count;               /* views of a mesh or cloud */
    double part[2];              /* from, to */
    uint64_t seed;
};

enum {
    PNET_PARTIAL_CORNERS = 8,
    PNET_PARTIAL_ATTEMPTS = 16, /* a camera that sees nothing looks again, from elsewhere */
};

/* Read the counts of an entry of two files, and the keys of an entry with `mesh` and with `full` and `views`; errors stick to
   `y`. */
void pnet_partial_parse_files(
    struct pnet_yaml *y, const struct pnet_yaml_node *entry, struct pnet_partial *p);
void pnet_partial_parse_mesh(
    struct pnet_yaml *y, const struct pnet_yaml_node *entry, struct pnet_partial *p);
void pnet_partial_parse_cloud(
    struct pnet_yaml *y, const struct pnet_yaml_node *entry, struct pnet_partial *p);

/* Returns the stream of evaluation for an entry of a split. */
struct pnet_views_draw pnet_partial_fixed(const struct pnet_partial *p, int split, uint32_t sample);
/* Returns the stream of the full cloud of a mesh or cloud; `sample` is the entry of its first view. */
struct pnet_views_draw pnet_partial_full(const struct pnet_partial *p, int split, uint32_t sample);

/* Draws the full cloud of a mesh: xyz[3 p->full_points]. */
void pnet_partial_draw_full(const struct pnet_partial *p, const struct pnet_views_draw *draw,
    const struct pnet_surface *s, float *xyz);
/* Moves and scales a cloud so that the mean of its points is the origin and the farthest has the distance 1; its offset becomes
   0. A cloud without points stays as it is. PNET_BAD_DATA: all points lie in one place; `name` stands in the message. */
enum pnet_status pnet_partial_normalise(
    const char *name, struct pnet_cloud *c, struct pnet_error *e);
/* Cuts a part of xyz[3 rows] away and thins the rest: (*chosen)[*count] gets the rows that are left, which the caller frees; 1 <=
   *count <= p->points, where that is not 0. `view` as below. rows > 0. PNET_NO_MEMORY. */
enum pnet_status pnet_partial_cut(const struct pnet_partial *p, const struct pnet_views_draw *draw,
    int64_t view, const float *xyz, int64_t rows, int64_t **chosen, int64_t *count,
    struct pnet_error *e);
/* Makes a view of a mesh or of its full cloud, as p->kind says; `name` stands in messages. `view` is its number in
   evaluation, -1 in training. The view may have more points than p->points (depth), or fewer. The caller frees *xyz,
   [3 *count]. PNET_BAD_DATA: the camera sees nothing; PNET_NO_MEMORY. */
enum pnet_status pnet_partial_view(const char *name, const struct pnet_partial *p,
    const struct pnet_views_draw *draw, int64_t view, const struct pnet_surface *s,
    const float *full, int64_t rows, float **xyz, int64_t *count, struct pnet_error *e);

/* Keeps the points that a cut leaves: without the `gone` points nearest to `centre` (of points as far away, those of lower
   row). kept[rows - gone] gets their rows, ascending. 0 <= gone <= rows. PNET_NO_MEMORY. */
enum pnet_status pnet_cut_away(const float *xyz, int64_t rows, const double centre[3], int64_t gone,
    int64_t *kept, struct pnet_error *e);
/* Farthest point sampling (Eldar, Lindenbaum, Porat, Zeevi 1997) of the points with the rows from[count]: the first is from[0],
   each further one is the farthest from those chosen (of several the first). chosen[most] gets rows; most <= count.
   PNET_NO_MEMORY. */
enum pnet_status pnet_farthest_points(const float *xyz, const int64_t *from, int64_t count,
    int64_t most, int64_t *chosen, struct pnet_error *e);

/* Draws the points of a full cloud, from pnet_partial_full; of several samples of one cloud the same rows. PNET_NO_MEMORY. */
enum pnet_status pnet_partial_count_full(const struct pnet_partial *p,
    const struct pnet_views_draw *draw, struct pnet_sample *full, struct pnet_error *e);
/* Gives each cloud its number of points. Clouds without points stay as they are. PNET_NO_MEMORY. */
enum pnet_status pnet_partial_count(const struct pnet_partial *p,
    const struct pnet_views_draw *draw, struct pnet_sample *partial, struct pnet_sample *full,
    struct pnet_error *e);

#endif
