/* Partial clouds: what a depth camera sees of a mesh, and what a cut leaves of a full cloud. */
#include "runtime/data/augment_draw.h"
#include "runtime/data/partial.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The camera's distance: the diameter of the sphere around a mesh. */
static const double DISTANCE = 2;

void pnet_partial_draw_full(const struct pnet_partial *p, const struct pnet_views_draw *draw,
    const struct pnet_surface *s, float *xyz)
{
    struct pnet_rand r = augment_stream(draw->seed, draw->epoch, draw->sample);
    pnet_surface_draw(s, &r, DRAW_SURFACE, p->full_points, xyz);
}

struct near {
    double distance2;
    int64_t row;
};

static int by_distance(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    if (x->distance2 != y->distance2) return x->distance2 < y->distance2 ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_row(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum pnet_status pnet_cut_away(const float *xyz, int64_t rows, const double centre[3], int64_t gone,
    int64_t *kept, struct pnet_error *e)
{
    struct near *all = malloc((size_t)rows * sizeof *all + 1);
    if (!all) return pnet_error_memory(e);
    for (int64_t i = 0; i < rows; i++) {
        all[i] = (struct near){0, i};
        for (int c = 0; c < 3; c++) {
            double d = (double)xyz[3 * i + c] - centre[c];
            all[i].distance2 += d * d;
        }
    }
    qsort(all, (size_t)rows, sizeof *all, by_distance);
    for (int64_t i = gone; i < rows; i++) kept[i - gone] = all[i].row;
    qsort(kept, (size_t)(rows - gone), sizeof *kept, by_row);
    free(all);
    return PNET_OK;
}

/* Points at a time: each has a maximum of its own, so that none waits for the one before. */
enum { LANES = 64 };

/* Updates the squared distances of `count` points to the nearest chosen one by the distances to `p`, and the maxima. */
static inline void update(const float *const axis[3], const float p[3], int count,
    float *restrict distance2, float *restrict most)
{
    const float *x = axis[0], *y = axis[1], *z = axis[2];
#pragma omp simd
    for (int i = 0; i < count; i++) {
        float a = x[i] - p[0], b = y[i] - p[1], c = z[i] - p[2], now = (a * a + b * b) + c * c;
        now = now < distance2[i] ? now : distance2[i];
        distance2[i] = now;
        most[i] = now > most[i] ? now : most[i];
    }
}

/* Returns the first of the points that are the farthest from all chosen ones and `p`. */
static int64_t farthest_of(
    const float *const axis[3], const float p[3], int64_t count, float *distance2)
{
    float most[LANES] = {0};
    for (int64_t i = 0; i < count; i += LANES) {
        const float *const part[3] = {axis[0] + i, axis[1] + i, axis[2] + i};
        if (count - i >= LANES)
            update(part, p, LANES, distance2 + i, most);
        else
            update(part, p, (int)(count - i), distance2 + i, most);
    }
    for (int k = 1; k < LANES; k++) most[0] = fmaxf(most[0], most[k]);
    for (int64_t i = 0; i < count; i++)
        if (distance2[i] >= most[0]) return i;
    return 0;
}

enum pnet_status pnet_farthest_points(const float *xyz, const int64_t *from, int64_t count,
    int64_t most, int64_t *chosen, struct pnet_error *e)
{
    float *all = malloc((size_t)count * 4 * sizeof *all + 1);
    if (!all) return pnet_error_memory(e);
    const float *const axis[3] = {all, all + count, all + 2 * count};
    float *distance2 = all + 3 * count;
    assert(most <= count);
    for (int64_t i = 0; i < count; i++) {
        for (int c = 0; c < 3; c++) all[c * count + i] = xyz[3 * from[i] + c];
        distance2[i] = INFINITY;
    }
    for (int64_t k = 0, next = 0; k < most; k++) {
        chosen[k] = from[next];
        next = farthest_of(axis, xyz + 3 * from[next], count, distance2);
    }
    free(all);
    return PNET_OK;
}

/* Sets the place around which a cut takes points away: random or, for a view of evaluation, a corner of the cube. */
static void set_centre(const struct pnet_rand *r, int64_t view, double centre[3])
{
    if (view >= 0) {
        for (int c = 0; c < 3; c++) centre[c] = (view >> c & 1 ? 1 : -1) / sqrt(3);
        return;
    }
    double turn = 2 * M_PI * draw_unit(r, DRAW_CUT, 0);
    centre[2] = 2 * draw_unit(r, DRAW_CUT, 1) - 1;
    centre[0] = sqrt(1 - centre[2] * centre[2]) * cos(turn);
    centre[1] = sqrt(1 - centre[2] * centre[2]) * sin(turn);
}

enum pnet_status pnet_partial_cut(const struct pnet_partial *p, const struct pnet_views_draw *draw,
    int64_t view, const float *xyz, int64_t rows, int64_t **chosen, int64_t *count,
    struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(draw->seed, draw->epoch, draw->sample);
    double centre[3], share = p->part[0] + (p->part[1] - p->part[0]) * draw_unit(&r, DRAW_CUT, 2);
    int64_t gone = llround(share * (double)rows);
    if (gone >= rows) gone = rows - 1;
    int64_t left = rows - gone, most = p->points && p->points < left ? p->points : left;
    int64_t *kept = malloc((size_t)left * sizeof *kept);
    *chosen = malloc((size_t)most * sizeof **chosen);
    enum pnet_status status = kept && *chosen ? PNET_OK : pnet_error_memory(e);
    set_centre(&r, view, centre);
    if (!status) status = pnet_cut_away(xyz, rows, centre, gone, kept, e);
    if (!status) status = pnet_farthest_points(xyz, kept, left, most, *chosen, e);
    *count = most;
    free(kept);
    if (!status) return PNET_OK;
    free(*chosen);
    *chosen = NULL;
    return status;
}

/* Copies what a cut leaves of a full cloud. */
static enum pnet_status cut(const struct pnet_partial *p, const struct pnet_views_draw *draw,
    int64_t view, const float *full, int64_t rows, float *xyz, int64_t *count, struct pnet_error *e)
{
    int64_t *chosen;
    enum pnet_status status = pnet_partial_cut(p, draw, view, full, rows, &chosen, count, e);
    if (status) return status;
    for (int64_t i = 0; i < *count; i++) memcpy(xyz + 3 * i, full + 3 * chosen[i], 3 * sizeof *xyz);
    free(chosen);
    return PNET_OK;
}

enum pnet_status pnet_partial_normalise(
    const char *name, struct pnet_cloud *c, struct pnet_error *e)
{
    double mean[3] = {0}, farthest = 0;
    if (!c->rows) return PNET_OK;
    for (int64_t i = 0; i < 3 * c->rows; i++) mean[i % 3] += (double)c->xyz[i];
    for (int k = 0; k < 3; k++) mean[k] /= (double)c->rows;
    for (int64_t i = 0; i < c->rows; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += pow((double)c->xyz[3 * i + k] - mean[k], 2);
        farthest = fmax(farthest, sqrt(sum));
    }
    bool flat = true;
    for (int64_t i = 3; i < 3 * c->rows && flat; i++) flat = c->xyz[i] == c->xyz[i % 3];
    if (flat)
        return pnet_error_set(e, PNET_BAD_DATA,
            "%s: all of its points lie in one place, so there is no size to scale to 1", name);
    for (int64_t i = 0; i < 3 * c->rows; i++)
        c->xyz[i] = (float)(((double)c->xyz[i] - mean[i % 3]) / farthest);
    memset(c->offset, 0, sizeof c->offset);
    pnet_cloud_forget_exact(c);
    return PNET_OK;
}

/* Turns the mesh at random and takes what the camera sees; again where that is nothing, as of a plate seen from its edge. */
static enum pnet_status look(const char *name, const struct pnet_rand *r, const struct pnet_mesh *m,
    float *xyz, int64_t *count, struct pnet_error *e)
{
    enum pnet_status status = PNET_OK;
    *count = 0;
    for (int attempt = 0; attempt < PNET_PARTIAL_ATTEMPTS && !*count && !status; attempt++) {
        double turn[3][3];
        pnet_surface_turn(r, attempt, turn);
        status = pnet_surface_view(m, turn, DISTANCE, xyz, count, e);
    }
    if (!status && !*count)
        status = pnet_error_set(e, PNET_BAD_DATA,
            "%s: the depth camera sees nothing of it from %d sides: its parts are thinner than a "
            "pixel, 2%% of the distance from its centroid to its farthest corner; use `kind: cut`",
            name, PNET_PARTIAL_ATTEMPTS);
    return status;
}

enum pnet_status pnet_partial_view(const char *name, const struct pnet_partial *p,
    const struct pnet_views_draw *draw, int64_t view, const struct pnet_surface *s,
    const float *full, int64_t rows, float **xyz, int64_t *count, struct pnet_error *e)
{
    struct pnet_rand r = augment_stream(draw->seed, draw->epoch, draw->sample);
    int64_t room = p->kind == PNET_PARTIAL_CUT ? rows : PNET_VIEW_RAYS;
    *xyz = malloc((size_t)room * 3 * sizeof **xyz);
    if (!*xyz) return pnet_error_memory(e);
    enum pnet_status status = p->kind == PNET_PARTIAL_CUT
                                  ? cut(p, draw, view, full, rows, *xyz, count, e)
                                  : look(name, &r, &s->mesh, *xyz, count, e);
    if (status) {
        free(*xyz);
        *xyz = NULL;
    }
    return status;
}
