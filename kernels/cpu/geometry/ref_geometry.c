#include "kernels/cpu/geometry/ref_geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b > a ? q - 1 : q;
}

void pnet_ref_voxel(const float p[3], struct pnet_grid grid, int32_t voxel[3])
{
    for (int a = 0; a < 3; a++) {
        double x = floorf(p[a] * grid.inverse_base);
        x = fmin(fmax(x, -0x1p31), 0x1p31);
        int64_t index = floor_div((int64_t)x, grid.factor);
        if (index < -PNET_KEY_BIAS) index = -PNET_KEY_BIAS;
        if (index >= PNET_KEY_BIAS) index = PNET_KEY_BIAS - 1;
        voxel[a] = (int32_t)index;
    }
}

uint64_t pnet_ref_key(const int32_t voxel[3])
{
    uint64_t key = 0;
    for (int bit = 20; bit >= 0; bit--)
        for (int a = 0; a < 3; a++)
            key = key << 1 | ((uint32_t)(voxel[a] + PNET_KEY_BIAS) >> bit & 1);
    return key;
}

static float distance2(const float p[3], const float c[3])
{
    float dx = p[0] - c[0], dy = p[1] - c[1], dz = p[2] - c[2];
    return (dx * dx + dy * dy) + dz * dz;
}

static uint64_t key_of(const float *p, struct pnet_grid grid)
{
    int32_t v[3];
    pnet_ref_voxel(p, grid, v);
    return pnet_ref_key(v);
}

static float distance2_to_centre(const float *p, struct pnet_grid grid)
{
    int32_t v[3];
    float centre[3];
    pnet_ref_voxel(p, grid, v);
    for (int a = 0; a < 3; a++) centre[a] = ((float)v[a] + 0.5f) * (grid.base * (float)grid.factor);
    return distance2(p, centre);
}

int64_t pnet_ref_sample(const struct pnet_level *fine, struct pnet_grid grid, int32_t *keep,
    int32_t *parent, int64_t *row_splits)
{
    int64_t coarse = 0;
    row_splits[0] = 0;
    for (int32_t s = 0; s < fine->samples; s++) {
        int64_t begin = fine->row_splits[s], end = fine->row_splits[s + 1];
        for (int64_t i = begin; i < end; i++) parent[i] = -1;
        for (;;) { /* the lowest key that remains */
            uint64_t key = UINT64_MAX;
            for (int64_t i = begin; i < end; i++) {
                uint64_t own = key_of(fine->xyz + 3 * i, grid);
                if (parent[i] < 0 && own < key) key = own;
            }
            if (key == UINT64_MAX) break;
            int64_t best = -1;
            for (int64_t i = begin; i < end; i++) {
                if (key_of(fine->xyz + 3 * i, grid) != key) continue;
                parent[i] = (int32_t)coarse;
                if (best < 0 || distance2_to_centre(fine->xyz + 3 * i, grid) <
                                    distance2_to_centre(fine->xyz + 3 * best, grid))
                    best = i;
            }
            keep[coarse++] = (int32_t)best;
        }
        row_splits[s + 1] = coarse;
    }
    return coarse;
}

/* The squared distance of one of `count` points to their mean. Two points are equally near to it, however it is rounded: 0. */
static double distance2_to_mean(const float *p, const float *points, int64_t count)
{
    double d[3];
    for (int a = 0; a < 3; a++) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++) sum += (double)points[3 * i + a];
        d[a] = (double)p[a] - sum / (double)count;
    }
    return count == 2 ? 0 : (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2];
}

int64_t pnet_ref_chunks(const struct pnet_level *fine, int64_t size, int32_t *keep, int32_t *parent,
    int64_t *row_splits)
{
    int64_t coarse = 0;
    row_splits[0] = 0;
    for (int32_t s = 0; s < fine->samples; s++) {
        int64_t last = fine->row_splits[s + 1];
        for (int64_t begin = fine->row_splits[s]; begin < last; begin += size) {
            int64_t count = last - begin < size ? last - begin : size, best = begin;
            const float *points = fine->xyz + 3 * begin;
            for (int64_t i = begin; i < begin + count; i++) {
                parent[i] = (int32_t)coarse;
                if (distance2_to_mean(fine->xyz + 3 * i, points, count) <
                    distance2_to_mean(fine->xyz + 3 * best, points, count))
                    best = i;
            }
            keep[coarse++] = (int32_t)best;
        }
        row_splits[s + 1] = coarse;
    }
    return coarse;
}

struct neighbour {
    float distance2;
    int32_t not_self, row;
};

static int compare_neighbours(const void *x, const void *y)
{
    const struct neighbour *a = x, *b = y;
    if (a->distance2 != b->distance2) return a->distance2 < b->distance2 ? -1 : 1;
    if (a->not_self != b->not_self) return a->not_self - b->not_self;
    return (a->row > b->row) - (a->row < b->row);
}

/* Ranks all points of a sample, nearest first. */
static void rank_points(const struct pnet_level *in, int32_t sample, const float *centre,
    int64_t self, struct neighbour *list)
{
    int64_t begin = in->row_splits[sample], end = in->row_splits[sample + 1];
    for (int64_t j = begin; j < end; j++)
        list[j - begin] =
            (struct neighbour){distance2(in->xyz + 3 * j, centre), j != self, (int32_t)j};
    qsort(list, (size_t)(end - begin), sizeof *list, compare_neighbours);
}

/* The constants of one row of centres. */
struct view {
    const struct pnet_level *out, *in;
    const struct pnet_neighbourhood *nb;
    const int32_t *parent;
    int64_t i;
    float centre[3];   /* metres */
    int64_t anchor[3]; /* the voxel of the finer level from which the window is placed */
    float radius;
};

static int32_t clamp_cell(float x, int32_t kernel)
{
    if (!(x > 0)) return 0;
    return x < (float)kernel ? (int32_t)floorf(x) : kernel - 1;
}

static int32_t native_cell(const struct view *v, int64_t j)
{
    int32_t K = v->nb->kernel, cell = 0;
    float scale = (float)((double)K / (2.0 * (double)v->radius)), half = (float)K / 2;
    bool centre = !(v->radius > 0) || !isfinite(scale);
    for (int a = 0; a < 3; a++) {
        float d = v->in->xyz[3 * j + a] - v->centre[a];
        int32_t c = centre ? K / 2 : clamp_cell(d * scale + half, K);
        cell = cell * K + c;
    }
    return cell;
}

/* Computes the offset of j's voxel in the window, from 0 to K - 1; other numbers: outside of it. */
static void window_offset(const struct view *v, int64_t j, int64_t offset[3])
{
    int32_t voxel[3], K = v->nb->kernel;
    pnet_ref_voxel(v->in->xyz + 3 * j, v->in->grid, voxel);
    for (int a = 0; a < 3; a++) offset[a] = voxel[a] - v->anchor[a] + (K % 2 ? (K - 1) / 2 : 0);
}

static int32_t voxel_cell(const struct view *v, int64_t j)
{
    int64_t offset[3];
    int32_t K = v->nb->kernel, cell = 0;
    window_offset(v, j, offset);
    for (int a = 0; a < 3; a++) {
        int64_t c = offset[a] < 0 ? 0 : offset[a] >= K ? K - 1 : offset[a];
        cell = cell * K + (int32_t)c;
    }
    return cell;
}

static bool in_window(const struct view *v, int64_t j)
{
    int64_t offset[3];
    window_offset(v, j, offset);
    for (int a = 0; a < 3; a++)
        if (offset[a] < 0 || offset[a] >= v->nb->kernel) return false;
    return true;
}

static bool in_radius(const struct view *v, int64_t j)
{
    const float *p = v->in->xyz + 3 * j;
    if (v->nb->shape == PNET_BALL) return distance2(p, v->centre) <= v->radius * v->radius;
    for (int a = 0; a < 3; a++)
        if (!(fabsf(p[a] - v->centre[a]) <= v->radius)) return false;
    return true;
}

static void look_from(struct view *v, int64_t i)
{
    v->i = i;
    v->radius = v->nb->radius;
    memcpy(v->centre, v->out->xyz + 3 * i, sizeof v->centre);
    if (!v->nb->degrade) return;
    int32_t voxel[3], step = v->out->grid.factor / v->in->grid.factor;
    float cell = v->in->grid.base * (float)v->in->grid.factor;
    pnet_ref_voxel(v->centre, v->out->grid, voxel);
    for (int a = 0; a < 3; a++) {
        v->anchor[a] = (int64_t)step * voxel[a];
        if (v->nb->degrade & PNET_CENTRE) v->centre[a] = ((float)v->anchor[a] + 0.5f) * cell;
    }
}

struct list {
    struct pnet_ref_triplet *t;
    int64_t count, room;
    bool failed;
};

static void add(struct list *l, const struct view *v, int64_t j)
{
    if (l->count == l->room && !l->failed) {
        int64_t room = 2 * l->room + 64;
        void *t = realloc(l->t, (size_t)room * sizeof *l->t);
        l->failed = !t;
        if (t) {
            l->t = t;
            l->room = room;
        }
    }
    if (l->failed) return;
    int32_t cell = v->nb->pointwise               ? 0
                   : v->nb->degrade & PNET_KERNEL ? voxel_cell(v, j)
                                                  : native_cell(v, j);
    l->t[l->count++] = (struct pnet_ref_triplet){(int32_t)v->i, (int32_t)j, cell};
}

static void add_nearest(struct list *l, struct view *v, int32_t sample, struct neighbour *ranked)
{
    int64_t begin = v->in->row_splits[sample], n = v->in->row_splits[sample + 1] - begin;
    int64_t taken = n < v->nb->knn ? n : v->nb->knn;
    rank_points(v->in, sample, v->centre, v->parent ? -1 : v->i, ranked);
    v->radius = taken ? sqrtf(ranked[taken - 1].distance2) : 0;
    for (int64_t r = 0; r < n; r++)
        if (r < taken || (v->parent && v->parent[ranked[r].row] == v->i)) add(l, v, ranked[r].row);
}

static void add_in_reach(struct list *l, const struct view *v, int32_t sample)
{
    bool window = v->nb->degrade & PNET_NEIGHBOUR;
    for (int64_t j = v->in->row_splits[sample]; j < v->in->row_splits[sample + 1]; j++) {
        bool hit = v->nb->pointwise ? j == v->i : window ? in_window(v, j) : in_radius(v, j);
        if (v->parent && !window && v->parent[j] == v->i) hit = true;
        if (hit) add(l, v, j);
    }
}

static int compare_triplets(const void *x, const void *y)
{
    const struct pnet_ref_triplet *a = x, *b = y;
    if (a->i != b->i) return a->i < b->i ? -1 : 1;
    if (a->k != b->k) return a->k < b->k ? -1 : 1;
    return (a->j > b->j) - (a->j < b->j);
}

struct pnet_ref_triplet *pnet_ref_triplets(const struct pnet_level *out,
    const struct pnet_level *in, const struct pnet_neighbourhood *nb, const int32_t *parent,
    int64_t *count)
{
    struct neighbour *ranked = malloc((size_t)(in->rows + 1) * sizeof *ranked);
    struct list l = {.t = malloc(sizeof *l.t), .room = 1};
    struct view v = {.out = out, .in = in, .nb = nb, .parent = parent};
    l.failed = !ranked || !l.t;
    for (int32_t s = 0; s < out->samples && !l.failed; s++)
        for (int64_t i = out->row_splits[s]; i < out->row_splits[s + 1]; i++) {
            look_from(&v, i);
            if (nb->knn)
                add_nearest(&l, &v, s, ranked);
            else
                add_in_reach(&l, &v, s);
        }
    free(ranked);
    if (l.failed) {
        free(l.t);
        return NULL;
    }
    qsort(l.t, (size_t)l.count, sizeof *l.t, compare_triplets);
    *count = l.count;
    return l.t;
}

void pnet_ref_transpose(int64_t count, struct pnet_ref_triplet *t)
{
    for (int64_t n = 0; n < count; n++) t[n] = (struct pnet_ref_triplet){t[n].j, t[n].i, t[n].k};
    qsort(t, (size_t)count, sizeof *t, compare_triplets);
}

bool pnet_ref_nearest(
    const struct pnet_level *out, const struct pnet_level *in, int32_t k, int32_t *index, float *d2)
{
    struct neighbour *ranked = malloc((size_t)(in->rows + 1) * sizeof *ranked);
    if (!ranked) return false;
    for (int32_t s = 0; s < out->samples; s++)
        for (int64_t i = out->row_splits[s]; i < out->row_splits[s + 1]; i++) {
            rank_points(in, s, out->xyz + 3 * i, -1, ranked);
            for (int64_t r = 0; r < k; r++) {
                bool there = r < in->row_splits[s + 1] - in->row_splits[s];
                index[i * k + r] = there ? ranked[r].row : -1;
                d2[i * k + r] = there ? ranked[r].distance2 : INFINITY;
            }
        }
    free(ranked);
    return true;
}

/* Returns the row of a sample's voxel; -1: none. */
static int32_t row_in_voxel(const struct pnet_level *l, int32_t sample, const int32_t voxel[3])
{
    for (int64_t i = l->row_splits[sample]; i < l->row_splits[sample + 1]; i++) {
        int32_t v[3];
        pnet_ref_voxel(l->xyz + 3 * i, l->grid, v);
        if (v[0] == voxel[0] && v[1] == voxel[1] && v[2] == voxel[2]) return (int32_t)i;
    }
    return -1;
}

/* Sets the rows of the eight corners of a query and their weights. */
static void trilinear(const struct pnet_level *source, int32_t sample, const float p[3],
    int32_t row[PNET_CORNERS], float weight[PNET_CORNERS])
{
    float sum = 0;
    for (int e = 0; e < PNET_CORNERS; e++) {
        int32_t voxel[3];
        weight[e] = 1;
        for (int a = 0; a < 3; a++) {
            float t = p[a] * source->grid.inverse_base, q = t / (float)source->grid.factor;
            float corner = floorf(q - 0.5f) + (float)(e >> (2 - a) & 1);
            voxel[a] = (int32_t)fminf(fmaxf(corner, -0x1p30f), 0x1p30f);
            weight[e] *= fmaxf(1 - fabsf(q - corner - 0.5f), 0);
        }
        row[e] = weight[e] > 0 ? row_in_voxel(source, sample, voxel) : -1;
        sum += row[e] < 0 ? 0 : weight[e];
    }
    for (int e = 0; e < PNET_CORNERS; e++) weight[e] /= fmaxf(sum, 1e-12f);
}

bool pnet_ref_corners(const struct pnet_level *queries, const struct pnet_level *source,
    enum pnet_corner_kind kind, bool outside, int32_t *row, float *weight)
{
    int32_t *nearest = malloc((size_t)queries->rows * sizeof *nearest + 1);
    float *d2 = malloc((size_t)queries->rows * sizeof *d2 + 1);
    bool there = nearest && d2 && pnet_ref_nearest(queries, source, 1, nearest, d2);
    for (int32_t s = 0; s < queries->samples && there; s++)
        for (int64_t i = queries->row_splits[s]; i < queries->row_splits[s + 1]; i++) {
            int32_t *of = row + i * PNET_CORNERS, count = 0, voxel[3];
            for (int e = 0; e < PNET_CORNERS; e++) of[e] = -1;
            if (kind == PNET_CORNERS_TRILINEAR) {
                trilinear(source, s, queries->xyz + 3 * i, of, weight + i * PNET_CORNERS);
            } else {
                pnet_ref_voxel(queries->xyz + 3 * i, source->grid, voxel);
                of[0] = row_in_voxel(source, s, voxel);
                weight[i * PNET_CORNERS] = 1;
            }
            for (int e = 0; e < PNET_CORNERS; e++) count += of[e] >= 0;
            if (count || !outside) continue;
            of[0] = nearest[i];
            weight[i * PNET_CORNERS] = 1;
        }
    free(nearest);
    free(d2);
    return there;
}
