/* Tiles of a cloud: each point belongs to one, each tile has all points within its margin, and no tile cuts a cell. */
#include "runtime/data/cloud_tiles.h"
#include "tests/models/batch.h"

#include <math.h>

enum { POINTS = 1500 };

static struct cloud made_up(double low, double high, uint64_t seed)
{
    struct cloud c = cloud_new(POINTS);
    for (int64_t i = 0; i < 3 * c.n; i++)
        c.xyz[i] = (float)(low + (high - low) * (double)cloud_unit(seed, (uint64_t)i));
    return c;
}

/* How far the coordinate lies beyond those of a tile's own points. */
static double beyond(const struct cloud *c, const struct pnet_cloud_tile *t, int64_t row)
{
    double far = 0;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY, x = (double)c->xyz[3 * row + k];
        for (int64_t i = 0; i < t->rows; i++) {
            if (!t->is_own[i]) continue;
            low = fmin(low, (double)c->xyz[3 * t->row[i] + k]);
            high = fmax(high, (double)c->xyz[3 * t->row[i] + k]);
        }
        far = fmax(far, fmax(low - x, x - high));
    }
    return far;
}

static void check_tile(
    const struct cloud *c, const struct pnet_cloud_tiles *t, int64_t number, int *owners)
{
    struct pnet_cloud_tile tile;
    struct pnet_error e;
    double margin = t->tiling.margin, slack = 1e-5 * (double)t->largest;
    need(pnet_cloud_tile_new(t, number, &tile, &e), &e, "tile");
    int64_t at = 0, own = 0;
    for (int64_t row = 0; row < c->n; row++) {
        bool in = at < tile.rows && tile.row[at] == row;
        double far = beyond(c, &tile, row);
        CHECKF(in || far > margin, "row %lld, %g m beyond tile %lld, is missing", (long long)row,
            far, (long long)number);
        CHECKF(!in || far < margin + slack, "row %lld is %g m beyond tile %lld", (long long)row,
            far, (long long)number);
        if (!in) continue;
        owners[row] += tile.is_own[at];
        own += tile.is_own[at];
        at++;
    }
    CHECKF(at == tile.rows, "tile %lld: its rows do not ascend", (long long)number);
    CHECKF(own == tile.own, "tile %lld: %lld own rows, not %lld", (long long)number, (long long)own,
        (long long)tile.own);
    pnet_cloud_tile_free(&tile);
}

/* Do all points of a cell lie in one tile? By the place of their cells in double: points near borders of cells are left out. */
static void check_cells(const struct cloud *c, const struct pnet_cloud_tiles *t, double cell)
{
    int64_t tile_of[POINTS];
    for (int64_t n = 0; n < t->count; n++)
        for (int64_t i = t->first[n]; i < t->first[n + 1]; i++) tile_of[t->row[i]] = n;
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = 0; j < i; j++) {
            bool same = true, clear = true;
            for (int k = 0; k < 3; k++) {
                double x = (double)c->xyz[3 * i + k] / cell, y = (double)c->xyz[3 * j + k] / cell;
                same &= floor(x) == floor(y);
                clear &= fabs(x - rint(x)) > 1e-4 && fabs(y - rint(y)) > 1e-4;
            }
            if (same && clear)
                CHECKF(tile_of[i] == tile_of[j], "rows %lld and %lld of one cell lie in two tiles",
                    (long long)i, (long long)j);
        }
}

static void check_cloud(double low, double high, struct pnet_tiling tiling, double cell)
{
    struct cloud c = made_up(low, high, 11);
    struct pnet_cloud_tiles t;
    struct pnet_error e;
    int owners[POINTS] = {0};
    need(pnet_cloud_tiles_new(&tiling, c.n, c.xyz, &t, &e), &e, "tiles");
    CHECKF(t.count > 20, "%lld tiles", (long long)t.count);
    for (int64_t n = 0; n < t.count; n++) check_tile(&c, &t, n, owners);
    for (int64_t i = 0; i < c.n; i++)
        CHECKF(owners[i] == 1, "row %lld has %d tiles", (long long)i, owners[i]);
    if (cell > 0) check_cells(&c, &t, cell);
    pnet_cloud_tiles_free(&t);
    cloud_free(&c);
}

/* Weights of all tiles add up to 1 where all of them are there. */
static void check_weights(struct pnet_tiling tiling)
{
    struct cloud c = made_up(-5, 5, 13);
    struct pnet_cloud_tiles t;
    struct pnet_error e;
    need(pnet_cloud_tiles_new(&tiling, c.n, c.xyz, &t, &e), &e, "tiles");
    int partial = 0;
    for (int64_t i = 0; i < c.n; i++) {
        double sum = 0;
        bool inner = true;
        for (int k = 0; k < 3; k++) inner &= fabs((double)c.xyz[3 * i + k]) < 2.5;
        if (!inner) continue;
        for (int64_t n = 0; n < t.count; n++) {
            double w = pnet_cloud_tile_weight(&t, n, c.xyz + 3 * i);
            partial += w > 0 && w < 1;
            sum += w;
        }
        CHECKF(fabs(sum - 1) < 1e-6, "row %lld: weights of %g", (long long)i, sum);
    }
    CHECKF(partial > 25, "%d partial weights", partial);
    pnet_cloud_tiles_free(&t);
    cloud_free(&c);
}

static struct pnet_tiling tiling_of(const char *net, double edge, double margin)
{
    char text[512];
    snprintf(text, sizeof text,
        "pnet 1\ninput cloud { xyz : position  rgb : feature[3] }\nnet test(p: cloud) {\n%s}\ny = "
        "test(cloud)\n",
        net);
    struct pnet_compile_options o = {.purpose = PNET_FOR_INFERENCE};
    struct pnet_compilation *c =
        need_plan(pnet_compile_text("tiles.pnet", text, strlen(text), &o), net);
    struct pnet_tiling t = pnet_tiling_new(pnet_compilation_plan(c), edge);
    t.margin = margin;
    pnet_compilation_free(c);
    return t;
}

int main(void)
{
    const char *grids = "  g = grid(p, 7cm * [1, 3, 6])\n  return p.rgb -> pool(mean, to=g[0]) -> "
                        "conv(4, kernel=2, to=g[1]) -> "
                        "conv(4, kernel=2, to=g[2]) -> upsample(to=level(p))\n",
               *none = "  return p.rgb -> conv(4, kernel=3, radius=20cm)\n";
    struct pnet_tiling t = tiling_of(grids, 1.5, 0.3);
    CHECKF(fabs(t.edge - 4 * 0.42) < 1e-9, "an edge of %g m is no four cells of 0.42 m", t.edge);
    check_cloud(-3, 2.6, t, 0.42);
    check_cloud(0, 4, tiling_of(grids, 0.01, 0), 0.42);
    check_cloud(900, 905, tiling_of(none, 1.37, 2.5), 0);
    check_weights(tiling_of(grids, 1.7, 0.5));
    check_weights(tiling_of(none, 2, 1));
    return check_end();
}
