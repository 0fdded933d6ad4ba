#include "runtime/data/cloud_tiles.h"
#include "runtime/data/stretches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Indices of tiles: those of points farther away are cut to it. */
static const float INDEX_MOST = 1 << 30;
/* What float32 may take from differences of coordinates, of the largest coordinate: a few of its last bits. */
static const double rounding = 4e-6;

struct pnet_tiling pnet_tiling_new(const struct pnet_plan *p, double edge)
{
    enum { FACTOR_MOST = 1 << 21 }; /* cells of a grid on an axis */
    const struct pnet_level_info *coarsest = NULL;
    for (int l = 0; l < p->level_count; l++)
        if (p->levels[l].grid.base > 0 && (!coarsest || p->levels[l].cell > coarsest->cell))
            coarsest = &p->levels[l];
    if (!coarsest)
        return (struct pnet_tiling){.grid = {(float)edge, (float)(1 / edge), 1}, .edge = edge};
    struct pnet_grid g = coarsest->grid;
    int32_t most = g.factor < FACTOR_MOST ? FACTOR_MOST / g.factor : 1;
    int32_t count = (int32_t)fmin(fmax(rint(edge / coarsest->cell), 1), most);
    g.factor *= count;
    return (struct pnet_tiling){.grid = g, .edge = coarsest->cell * count};
}

static int32_t floor_div(int32_t a, int32_t b)
{
    return a / b - (a % b < 0);
}

/* The rule of docs/geometry.md for voxels. */
static int32_t index_of(struct pnet_grid g, float x)
{
    float cell = floorf(x * g.inverse_base);
    return floor_div((int32_t)fminf(fmaxf(cell, -INDEX_MOST), INDEX_MOST), g.factor);
}

void pnet_tiling_place(const struct pnet_tiling *t, const float xyz[3], int32_t place[3])
{
    for (int k = 0; k < 3; k++) place[k] = index_of(t->grid, xyz[k]);
}

double pnet_tiling_reach(const struct pnet_tiling *t, float largest)
{
    return t->margin + rounding * (double)largest;
}

/* A point and its tile, while they are sorted. */
struct placed {
    int32_t place[3];
    int64_t row;
};

static int compare_places(const int32_t *a, const int32_t *b)
{
    for (int k = 0; k < 3; k++)
        if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = compare_places(x->place, y->place);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static void fill(struct pnet_cloud_tiles *t, const struct placed *points)
{
    for (int64_t i = 0; i < t->rows; i++) {
        bool next = i == 0 || compare_places(points[i].place, points[i - 1].place) != 0;
        if (next) {
            memcpy(t->place[t->count], points[i].place, sizeof t->place[0]);
            t->first[t->count++] = i;
        }
        t->row[i] = points[i].row;
    }
    t->first[t->count] = t->rows;
}

enum pnet_status pnet_cloud_tiles_new(const struct pnet_tiling *tiling, int64_t rows,
    const float *xyz, struct pnet_cloud_tiles *t, struct pnet_error *e)
{
    *t = (struct pnet_cloud_tiles){.tiling = *tiling, .rows = rows, .xyz = xyz};
    struct placed *points = malloc((size_t)rows * sizeof *points + 1);
    int64_t tiles = 0;
    for (int64_t i = 0; points && i < rows; i++) {
        points[i].row = i;
        pnet_tiling_place(tiling, xyz + 3 * i, points[i].place);
        for (int k = 0; k < 3; k++) t->largest = fmaxf(t->largest, fabsf(xyz[3 * i + k]));
    }
    if (points) qsort(points, (size_t)rows, sizeof *points, by_place);
    for (int64_t i = 0; points && i < rows; i++)
        tiles += i == 0 || compare_places(points[i].place, points[i - 1].place) != 0;
    t->place = malloc((size_t)tiles * sizeof *t->place + 1);
    t->first = malloc((size_t)(tiles + 1) * sizeof *t->first);
    t->row = malloc((size_t)rows * sizeof *t->row + 1);
    bool ok = points && t->place && t->first && t->row;
    if (ok) fill(t, points);
    free(points);
    if (ok) return PNET_OK;
    pnet_cloud_tiles_free(t);
    return pnet_error_memory(e);
}

void pnet_cloud_tiles_free(struct pnet_cloud_tiles *t)
{
    free(t->place);
    free(t->first);
    free(t->row);
    *t = (struct pnet_cloud_tiles){.count = 0};
}

/* ---- one tile ---- */

/* The points of a tile reach that far, with its margin: [0] below, [1] above. */
struct box {
    double side[2][3];
};

static struct box box_of(const struct pnet_cloud_tiles *t, int64_t number)
{
    struct box b;
    double margin = pnet_tiling_reach(&t->tiling, t->largest);
    for (int k = 0; k < 3; k++) {
        b.side[0][k] = INFINITY;
        b.side[1][k] = -INFINITY;
    }
    for (int64_t i = t->first[number]; i < t->first[number + 1]; i++)
        for (int k = 0; k < 3; k++) {
            double x = (double)t->xyz[3 * t->row[i] + k];
            b.side[0][k] = fmin(b.side[0][k], x - margin);
            b.side[1][k] = fmax(b.side[1][k], x + margin);
        }
    return b;
}

static bool holds(const struct box *b, const float *p)
{
    for (int k = 0; k < 3; k++)
        if ((double)p[k] < b->side[0][k] || (double)p[k] > b->side[1][k]) return false;
    return true;
}

/* Stretches of rows that ascend, one for each tile that the box reaches. */
struct stretches {
    struct pnet_placed_row *row;
    int64_t rows;
    int64_t *end, count; /* of each: where it ends in `row` */
};

static bool reaches(const struct box *b, struct pnet_grid g, const int32_t *place)
{
    for (int k = 0; k < 3; k++)
        if (place[k] < index_of(g, (float)b->side[0][k]) - 1 ||
            place[k] > index_of(g, (float)b->side[1][k]) + 1)
            return false;
    return true;
}

/* Takes, or with `s->row` NULL counts, the points in the box. */
static void collect(const struct pnet_cloud_tiles *t, const struct box *b, struct stretches *s)
{
    s->rows = s->count = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (!reaches(b, t->tiling.grid, t->place[i])) continue;
        int64_t before = s->rows;
        for (int64_t k = t->first[i]; k < t->first[i + 1]; k++) {
            if (!holds(b, t->xyz + 3 * t->row[k])) continue;
            if (s->row) s->row[s->rows] = (struct pnet_placed_row){t->row[k], k};
            s->rows++;
        }
        if (s->rows == before) continue;
        if (s->end) s->end[s->count] = s->rows;
        s->count++;
    }
}

/* Both lists ascend. */
static void mark_own(const struct pnet_cloud_tiles *t, int64_t number, struct pnet_cloud_tile *tile)
{
    const int64_t *own = t->row + t->first[number];
    int64_t next = 0;
    tile->own = t->first[number + 1] - t->first[number];
    for (int64_t i = 0; i < tile->rows; i++) {
        tile->is_own[i] = next < tile->own && own[next] == tile->row[i];
        next += tile->is_own[i];
    }
}

enum pnet_status pnet_cloud_tile_new(const struct pnet_cloud_tiles *t, int64_t number,
    struct pnet_cloud_tile *tile, struct pnet_error *e)
{
    struct box b = box_of(t, number);
    struct stretches s = {.rows = 0};
    *tile = (struct pnet_cloud_tile){.rows = 0};
    collect(t, &b, &s);
    size_t bytes = (size_t)s.rows * sizeof *s.row + 1;
    struct pnet_placed_row *room = malloc(bytes);
    s.row = malloc(bytes);
    s.end = malloc((size_t)s.count * sizeof *s.end + 1);
    tile->row = malloc((size_t)s.rows * sizeof *tile->row + 1);
    tile->is_own = malloc((size_t)s.rows * sizeof *tile->is_own + 1);
    bool ok = s.row && s.end && room && tile->row && tile->is_own;
    if (ok) {
        collect(t, &b, &s);
        const struct pnet_placed_row *all = pnet_merge_stretches(s.row, room, s.end, s.count);
        tile->rows = s.rows;
        for (int64_t i = 0; i < s.rows; i++) tile->row[i] = all[i].row;
        mark_own(t, number, tile);
    }
    free(room);
    free(s.row);
    free(s.end);
    if (ok) return PNET_OK;
    pnet_cloud_tile_free(tile);
    return pnet_error_memory(e);
}

void pnet_cloud_tile_free(struct pnet_cloud_tile *t)
{
    free(t->row);
    free(t->is_own);
    *t = (struct pnet_cloud_tile){.rows = 0};
}

double pnet_cloud_tile_weight(const struct pnet_cloud_tiles *t, int64_t number, const float xyz[3])
{
    double weight = 1, edge = t->tiling.edge, margin = t->tiling.margin;
    if (margin <= 0) return 1;
    for (int k = 0; k < 3; k++) {
        double low = t->place[number][k] * edge - margin, high = low + edge + 2 * margin,
               x = (double)xyz[k], within = fmin(x - low, high - x);
        weight *= fmin(fmax(within / (2 * margin), 0), 1);
    }
    return weight;
}
