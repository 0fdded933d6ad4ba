/* Maps between points: as matrices in double by their definitions, forward and backward; the bits of a model's layers; rows in
   another order; errors. */
#include "tests/library/points.h"

#include <omp.h>

enum { ROWS = 600, CHANNELS = POINTS_FEATURES };

/* [rows out, rows in] of a map that is linear. */
struct matrix {
    int64_t rows, columns;
    double *at;
};

static struct matrix matrix_of(const struct pnet_points *out, const struct pnet_points *in)
{
    struct matrix m = {points_info(out).rows, points_info(in).rows, NULL};
    m.at = sets_room((size_t)(m.rows * m.columns), sizeof *m.at);
    return m;
}

static struct matrix cells_of(
    const struct pnet_points *out, const struct pnet_points *in, enum pnet_map_kind kind)
{
    struct matrix m = matrix_of(out, in);
    bool up = kind == PNET_MAP_PARENT;
    int32_t *parent = points_parents(up ? out : in, up ? in : out);
    for (int64_t i = 0; i < m.rows; i++) {
        double count = 0;
        for (int64_t j = 0; j < m.columns; j++) {
            bool joined = up ? parent[i] == j : parent[j] == i;
            m.at[i * m.columns + j] = joined;
            count += joined;
        }
        for (int64_t j = 0; j < m.columns && kind == PNET_MAP_MEAN; j++)
            m.at[i * m.columns + j] /= count;
    }
    free(parent);
    return m;
}

/* The k nearest rows of a level, whose rows are in the order that decides between equals. */
static struct matrix nearest_of(
    const struct pnet_points *out, const struct pnet_points *in, int k, bool weigh)
{
    struct matrix m = matrix_of(out, in);
    float *p = points_positions(out), *q = points_positions(in);
    int32_t *of_p = points_samples(out), *of_q = points_samples(in);
    for (int64_t i = 0; i < m.rows; i++) {
        double *w = m.at + i * m.columns, sum = 0;
        for (int n = 0; n < k; n++) {
            int64_t best = -1;
            for (int64_t j = 0; j < m.columns; j++)
                if (of_p[i] == of_q[j] && w[j] == 0 &&
                    (best < 0 || points_square(p + 3 * i, q + 3 * j) <
                                     points_square(p + 3 * i, q + 3 * best)))
                    best = j;
            if (best < 0) break;
            w[best] = weigh ? 1 / ((double)points_square(p + 3 * i, q + 3 * best) + 1e-8) : 1;
            sum += w[best];
        }
        for (int64_t j = 0; j < m.columns && sum > 0; j++) w[j] /= sum;
    }
    free(p);
    free(q);
    free(of_p);
    free(of_q);
    return m;
}

/* The weight of a cell of a level for a query: 0 where it is none of those around. */
static double weight_of(const float *p, const int cell[3], double base, int factor, bool trilinear)
{
    int own[3];
    double w = 1;
    points_voxel_of(p, base, factor, own);
    if (!trilinear) return points_same_voxel(own, cell);
    for (int a = 0; a < 3; a++) {
        volatile float scaled = p[a] * (float)(1 / base);
        volatile float q = scaled / (float)factor;
        w *= fmax(0, 1 - fabs((double)q - cell[a] - 0.5));
    }
    return w < 1e-15 ? 0 : w;
}

static struct matrix corners_of(const struct pnet_points *out, const struct pnet_points *in,
    double base, int factor, bool trilinear, bool outside)
{
    struct matrix m = matrix_of(out, in), nearest = nearest_of(out, in, 1, false);
    float *p = points_positions(out), *q = points_positions(in);
    int32_t *of_p = points_samples(out), *of_q = points_samples(in);
    int64_t alone = 0;
    for (int64_t i = 0; i < m.rows; i++) {
        double *w = m.at + i * m.columns, sum = 0;
        for (int64_t j = 0; j < m.columns; j++) {
            int cell[3];
            points_voxel_of(q + 3 * j, base, factor, cell);
            if (of_p[i] == of_q[j]) w[j] = weight_of(p + 3 * i, cell, base, factor, trilinear);
            sum += w[j];
        }
        for (int64_t j = 0; j < m.columns; j++)
            w[j] =
                sum > 0 ? w[j] / fmax(sum, 1e-12) : (outside ? nearest.at[i * m.columns + j] : 0);
        alone += sum == 0;
    }
    CHECKF(alone > 0 && alone < m.rows, "%d of %d alone", (int)alone, (int)m.rows);
    free(nearest.at);
    free(p);
    free(q);
    free(of_p);
    free(of_q);
    return m;
}

static struct pnet_map *make_map(
    const struct pnet_points *out, const struct pnet_points *in, const struct pnet_map_options *o)
{
    struct pnet_map *map = NULL;
    NEED(pnet_map_new(out, in, o, &map, &e));
    return map;
}

/* Runs a map on random features and gradients, with a workspace of its own for the backward, which adds. */
static void check_linear(struct pnet_map *map, struct matrix m, const char *what)
{
    float *x = sets_floats(m.columns * CHANNELS), *g = sets_floats(m.rows * CHANNELS),
          *y = sets_floats(m.rows * CHANNELS), *gx = sets_floats(m.columns * CHANNELS);
    double *want = sets_room((size_t)(m.rows * CHANNELS), sizeof *want),
           *back = sets_room((size_t)(m.columns * CHANNELS), sizeof *back);
    struct pnet_array from = sets_array(x, m.columns, CHANNELS),
                      of = sets_array(g, m.rows, CHANNELS);
    struct pnet_array_out to = sets_out(y, m.rows, CHANNELS),
                          into = sets_out(gx, m.columns, CHANNELS);
    struct pnet_map_run o = {.size = sizeof o, .accumulate = 1};
    for (int64_t n = 0; n < m.columns * CHANNELS; n++) back[n] = (double)gx[n];
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.columns; j++)
            for (int c = 0; c < CHANNELS; c++) {
                double w = m.at[i * m.columns + j];
                want[i * CHANNELS + c] += w * (double)x[j * CHANNELS + c];
                back[j * CHANNELS + c] += w * (double)g[i * CHANNELS + c];
            }
    NEED(pnet_map_forward(map, &from, NULL, &to, &e));
    NEED(pnet_map_workspace(map, 1, CHANNELS, &o.workspace_bytes, &e));
    o.workspace = sets_room(o.workspace_bytes + 16, 1);
    if (o.workspace_bytes) {
        o.workspace_bytes--;
        REFUSED(pnet_map_backward(map, &of, &o, &into, &e), PNET_USAGE, "pnet_map_workspace");
        o.workspace_bytes++;
    }
    NEED(pnet_map_backward(map, &of, &o, &into, &e));
    CHECKF(sets_error(y, want, m.rows * CHANNELS) < 2e-6, "%s: forward %g", what,
        sets_error(y, want, m.rows * CHANNELS));
    CHECKF(sets_error(gx, back, m.columns * CHANNELS) < 2e-6, "%s: backward %g", what,
        sets_error(gx, back, m.columns * CHANNELS));
    free(o.workspace);
    free(x);
    free(g);
    free(y);
    free(gx);
    free(want);
    free(back);
    free(m.at);
    pnet_map_free(map);
}

static void test_linear(void)
{
    struct points_cloud c = points_fill(ROWS), d = points_fill(ROWS / 2);
    for (int64_t i = 0; i < 3 * d.rows; i++) d.xyz[i] *= 1.6F; /* some lie outside */
    struct pnet_points *p = points_make(&c, 0.125), *g0 = points_grid(p, 0.125),
                       *g1 = points_grid(g0, 0.25), *q = points_make(&d, 0);
#define LINEAR(out, in, matrix, ...)                                                               \
    check_linear(                                                                                  \
        make_map(out, in,                                                                          \
            &(struct pnet_map_options){.size = sizeof(struct pnet_map_options), __VA_ARGS__}),     \
        matrix, #matrix)
    LINEAR(g0, p, cells_of(g0, p, PNET_MAP_MEAN), .kind = PNET_MAP_MEAN);
    LINEAR(g1, p, cells_of(g1, p, PNET_MAP_SUM), .kind = PNET_MAP_SUM);
    LINEAR(g1, g0, cells_of(g1, g0, PNET_MAP_MEAN), .kind = PNET_MAP_MEAN);
    LINEAR(p, g1, cells_of(p, g1, PNET_MAP_PARENT), .kind = PNET_MAP_PARENT);
    LINEAR(g0, g1, cells_of(g0, g1, PNET_MAP_PARENT), .kind = PNET_MAP_PARENT);
    LINEAR(p, g0, nearest_of(p, g0, 3, true), .kind = PNET_MAP_INVERSE_DISTANCE);
    LINEAR(q, g1, nearest_of(q, g1, 7, true), .kind = PNET_MAP_INVERSE_DISTANCE, .k = 7);
    LINEAR(q, g0, corners_of(q, g0, 0.125, 1, true, false), .kind = PNET_MAP_TRILINEAR);
    LINEAR(q, g1, corners_of(q, g1, 0.125, 2, true, true), .kind = PNET_MAP_TRILINEAR,
        .outside_nearest = 1);
    LINEAR(q, g1, corners_of(q, g1, 0.125, 2, false, true), .kind = PNET_MAP_NEAREST,
        .outside_nearest = 1);
    LINEAR(q, g0, corners_of(q, g0, 0.125, 1, false, false), .kind = PNET_MAP_NEAREST);
    pnet_points_free(p);
    pnet_points_free(g0);
    pnet_points_free(g1);
    pnet_points_free(q);
    points_drop(&c);
    points_drop(&d);
}

static void test_max(void)
{
    struct points_cloud c = points_fill(ROWS);
    struct pnet_points *p = points_make(&c, 0), *g = points_grid(p, 0.2);
    int64_t cells = points_info(g).rows, n = cells * CHANNELS, wrong = 0;
    struct pnet_map *map = make_map(g, p,
        &(struct pnet_map_options){.size = sizeof(struct pnet_map_options), .kind = PNET_MAP_MAX});
    float *y = sets_floats(n), *gradient = sets_floats(n), *gx = sets_floats(ROWS * CHANNELS);
    int32_t *argmax = sets_room((size_t)n, sizeof *argmax), *parent = points_parents(p, g);
    struct pnet_array from = sets_array(c.f, ROWS, CHANNELS),
                      of = sets_array(gradient, cells, CHANNELS);
    struct pnet_array_out to = sets_out(y, cells, CHANNELS), into = sets_out(gx, ROWS, CHANNELS);
    struct pnet_map_run o = {.size = sizeof o, .argmax = argmax};
    NEED(pnet_map_forward(map, &from, &o, &to, &e));
    NEED(pnet_map_backward(map, &of, &o, &into, &e));
    for (int64_t i = 0; i < n; i++) {
        int32_t row = argmax[i];
        wrong += row < 0 || row >= ROWS || parent[row] != i / CHANNELS ||
                 c.f[row * CHANNELS + i % CHANNELS] != y[i] ||
                 gx[row * CHANNELS + i % CHANNELS] != gradient[i];
    }
    for (int64_t i = 0; i < ROWS * CHANNELS; i++) {
        int64_t at = (int64_t)parent[i / CHANNELS] * CHANNELS + i % CHANNELS;
        wrong += c.f[i] > y[at] || (argmax[at] != i / CHANNELS && gx[i] != 0);
    }
    CHECKF(wrong == 0, "%d wrong", (int)wrong);
    o.argmax = NULL;
    NEED(pnet_map_forward(map, &from, &o, &to, &e));
    REFUSED(pnet_map_backward(map, &of, &o, &into, &e), PNET_USAGE, "argmax");
    pnet_map_free(map);
    free(y);
    free(gradient);
    free(gx);
    free(argmax);
    free(parent);
    pnet_points_free(p);
    pnet_points_free(g);
    points_drop(&c);
}

/* Features of the points through maps in turn; out[i]: 0 for the points, 1 and 2 for levels. */
struct way {
    const char *words; /* of a model */
    int count, out[3];
    struct pnet_map_options o[3];
};
#define MAP(...)                                                                                   \
    {                                                                                              \
        .size = sizeof(struct pnet_map_options), __VA_ARGS__                                       \
    }

static float *run_way(const struct way *w, struct pnet_points *const level[3], const float *f)
{
    int64_t rows = points_info(level[0]).rows;
    float *x = sets_floats(rows * CHANNELS);
    memcpy(x, f, (size_t)(rows * CHANNELS) * sizeof *x);
    for (int i = 0, at = 0; i < w->count; at = w->out[i++]) {
        struct pnet_map *map = make_map(level[w->out[i]], level[at], &w->o[i]);
        int64_t to_rows = points_info(level[w->out[i]]).rows;
        float *y = sets_floats(to_rows * CHANNELS);
        struct pnet_array from = sets_array(x, rows, CHANNELS);
        struct pnet_array_out to = sets_out(y, to_rows, CHANNELS);
        NEED(pnet_map_forward(map, &from, NULL, &to, &e));
        pnet_map_free(map);
        free(x);
        x = y;
        rows = to_rows;
    }
    return x;
}

/* The bits of a model; and those of rows in another order, r being moved[r] of the first: the same bits where points of one cell
   stay in their order, which they are summed in. */
static void test_model(bool keep)
{
    static const struct way ways[] = {
        {"pool(mean, to=g[0])", 1, {1}, {MAP(.kind = PNET_MAP_MEAN)}},
        {"pool(max, to=g[1])", 1, {2}, {MAP(.kind = PNET_MAP_MAX)}},
        {"pool(sum, to=g[0]) -> pool(mean, to=g[1]) -> upsample(to=level(p.f))", 3, {1, 2, 0},
            {MAP(.kind = PNET_MAP_SUM), MAP(.kind = PNET_MAP_MEAN), MAP(.kind = PNET_MAP_PARENT)}},
        {"pool(mean, to=g[1]) -> upsample(to=g[0], kind=inverse_distance, k=5)", 2, {2, 1},
            {MAP(.kind = PNET_MAP_MEAN), MAP(.kind = PNET_MAP_INVERSE_DISTANCE, .k = 5)}},
        {"pool(mean, to=g[0]) -> interpolate(to=level(p.f))", 2, {1, 0},
            {MAP(.kind = PNET_MAP_MEAN), MAP(.kind = PNET_MAP_TRILINEAR)}},
        {"pool(mean, to=g[0]) -> interpolate(to=g[1], kind=nearest, outside=nearest)", 2, {1, 2},
            {MAP(.kind = PNET_MAP_MEAN), MAP(.kind = PNET_MAP_NEAREST, .outside_nearest = 1)}},
    };
    struct points_cloud c = points_fill(ROWS), mixed = points_fill(ROWS);
    int64_t moved[ROWS], numbers;
    memcpy(mixed.xyz, c.xyz, ROWS * 12);
    memcpy(mixed.f, c.f, ROWS * CHANNELS * 4);
    if (keep)
        points_shuffle_cells(&mixed, 0.1, moved);
    else
        points_shuffle(&mixed, moved);
    struct pnet_points *a[3] = {points_make(&c, 0.1)}, *b[3] = {points_make_mixed(&mixed, 0.1)};
    for (int i = 1; i < 3; i++) {
        a[i] = points_grid(a[i - 1], 0.1 * i);
        b[i] = points_grid(b[i - 1], 0.1 * i);
    }
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        const struct way *w = &ways[k];
        char text[512];
        snprintf(text, sizeof text,
            "pnet 1\ninput cloud {\n  xyz : position\n  f : feature[5]\n}\nnet n(p: cloud) {\n"
            "  g = grid(p, 10cm * [1, 2])\n  return p.f -> %s\n}\ny = n(cloud)\n",
            w->words);
        int last = w->out[w->count - 1];
        omp_set_num_threads(1);
        float *got = run_way(w, a, c.f),
              *want = points_run_net(&c, text, "native", NULL, 0, &numbers);
        points_same(a[0], a[last], got, want, CHANNELS, text);
        omp_set_num_threads(3);
        float *other = run_way(w, b, mixed.f);
        double wrong = 0;
        for (int64_t i = 0; i < points_info(b[last]).rows; i++)
            for (int ch = 0; ch < CHANNELS; ch++) {
                int64_t of = last ? i : moved[i];
                wrong =
                    fmax(wrong, fabs((double)(other[i * CHANNELS + ch] - got[of * CHANNELS + ch])));
            }
        CHECKF(keep ? wrong == 0 : wrong < 1e-6, "%s: %g", w->words, wrong);
        free(got);
        free(want);
        free(other);
    }
    for (int i = 0; i < 3; i++) {
        pnet_points_free(a[i]);
        pnet_points_free(b[i]);
    }
    points_drop(&c);
    points_drop(&mixed);
}

/* Points of one cell are summed in the order of the caller's rows: in double, which the middle one is lost in here. */
static void test_order_in_cell(void)
{
    static const float xyz[3][3] = {
        {0.01F, 0.02F, 0.03F}, {0.04F, 0.05F, 0.06F}, {0.07F, 0.08F, 0.09F}};
    static const float large = 0x1p60F;
    const float f[2][3] = {{large, 1, -large}, {large, -large, 1}};
    for (int turn = 0; turn < 2; turn++) {
        struct pnet_array at = sets_array(xyz[0], 3, 3), from = sets_array(f[turn], 3, 1);
        struct pnet_points_options o = {.size = sizeof o, .cell = 0.1};
        struct pnet_points *p = NULL;
        NEED(pnet_points_new(&at, &o, &p, &e));
        struct pnet_points *g = points_grid(p, 0.1);
        struct pnet_map_options sum = {.size = sizeof sum, .kind = PNET_MAP_SUM};
        struct pnet_map *map = NULL;
        float got = -1;
        struct pnet_array_out to = sets_out(&got, 1, 1);
        NEED(pnet_map_new(g, p, &sum, &map, &e));
        NEED(pnet_map_forward(map, &from, NULL, &to, &e));
        CHECKF(got == (float)turn, "%g", (double)got);
        pnet_map_free(map);
        pnet_points_free(g);
        pnet_points_free(p);
    }
}

static void test_errors(void)
{
    struct points_cloud c = points_fill(40);
    struct pnet_array at = sets_array(c.xyz, 40, 3);
    struct pnet_points *p = points_make(&c, 0), *g = points_grid(p, 0.2), *one = NULL;
    struct pnet_map *map = NULL;
    size_t bytes;
    NEED(pnet_points_new(&at, NULL, &one, &e));
#define TRY(out, in, part, ...)                                                                    \
    do {                                                                                           \
        struct pnet_map_options o = {.size = sizeof o, __VA_ARGS__};                               \
        REFUSED(pnet_map_new(out, in, &o, &map, &e), PNET_USAGE, part);                            \
    } while (0)
    TRY(p, g, "was not sampled from `in`: mean, max and sum go from points to a level",
        .kind = PNET_MAP_MEAN);
    TRY(p, p, "was not sampled from `in`", .kind = PNET_MAP_MAX);
    TRY(g, p, "was not sampled from `out`", .kind = PNET_MAP_PARENT);
    TRY(g, p, "no level", .kind = PNET_MAP_TRILINEAR);
    TRY(p, g, "k 65", .kind = PNET_MAP_INVERSE_DISTANCE, .k = 65);
    TRY(p, g, "kind 7", .kind = (enum pnet_map_kind)7);
    TRY(one, g, "out has 1 samples, and in has 3", .kind = PNET_MAP_NEAREST);
    CHECK(!map);
    map = make_map(g, p, &(struct pnet_map_options){.size = sizeof(struct pnet_map_options)});
    struct pnet_array f = sets_array(c.f, 40, CHANNELS), narrow = sets_array(c.f, 40, 4);
    struct pnet_array_out y = sets_out(c.f, points_info(g).rows, CHANNELS);
    struct pnet_map_run o = {.size = sizeof o, .accumulate = 1};
    REFUSED(pnet_map_forward(map, &narrow, NULL, &y, &e), PNET_USAGE, "result: [");
    REFUSED(pnet_map_forward(map, &f, &o, &y, &e), PNET_USAGE, "accumulate");
    REFUSED(pnet_map_backward(map, &f, NULL, &y, &e), PNET_USAGE, "gradient: [40, 5]");
    REFUSED(pnet_map_workspace(map, 0, 0, &bytes, &e), PNET_USAGE, "0 channels");
    pnet_map_free(map);
    pnet_map_free(NULL);
    pnet_points_free(p);
    pnet_points_free(g);
    pnet_points_free(one);
    points_drop(&c);
}

int main(void)
{
    test_linear();
    test_max();
    test_model(true);
    test_model(false);
    test_order_in_cell();
    test_errors();
    return check_end();
}
