/* Points, levels and sets between them beside a model's layers: the same weights give the same bits. */
#include "tests/library/points.h"

#include <omp.h>

enum { LAYERS = 5, LEVELS = 4, ROWS = 1500 };

/* One layer: between which levels (0: the points, 1 ..: grids), as a model writes it, and as the library does. */
struct layer {
    int to, from;
    int32_t channels;
    const char *words;
    struct pnet_near_options o;
};

struct net {
    const char *mode, *levels; /* "": there are none */
    double cell;               /* finest; 0: there are no levels */
    int count;
    struct layer layer[LAYERS];
};

#define NEAR(...)                                                                                  \
    {                                                                                              \
        .size = sizeof(struct pnet_near_options), __VA_ARGS__                                      \
    }

static const struct net nets[] = {
    /* the thinnest path: a ball on the points themselves, once without any grid */
    {"native", "", 0, 1, {{0, 0, 8, "radius=20cm", NEAR(.radius = 0.2)}}},
    {"native", "g = grid(p, 10cm * [1, 2, 4])", 0.1, 1,
        {{0, 0, 8, "radius=20cm", NEAR(.radius = 0.2)}}},
    {"native", "", 0, 3,
        {{0, 0, 6, "kernel=5, knn=9", NEAR(.kernel = 5, .knn = 9)},
            {0, 0, 7, "kernel=1", NEAR(.kernel = 1)},
            {0, 0, 8, "kernel=3, radius=15cm, shape=cube",
                NEAR(.radius = 0.15, .shape = PNET_NEAR_CUBE)}}},
    /* down and up a chain, and past a level */
    {"native", "g = grid(p, 10cm * [1, 2, 4])", 0.1, 5,
        {{1, 0, 6, "kernel=2, radius=9cm, to=g[0]", NEAR(.kernel = 2, .radius = 0.09)},
            {1, 1, 7, "kernel=3", NEAR(.kernel = 3)},
            {3, 1, 8, "kernel=4, to=g[2]", NEAR(.kernel = 4)},
            {3, 3, 6, "kernel=3, shape=cube", NEAR(.shape = PNET_NEAR_CUBE)},
            {1, 3, 5, "kernel=4, to=g[0]", NEAR(.kernel = 4)}}},
    {"native", "g = grid(p, 5cm * [1, 3])", 0.05, 3,
        {{2, 0, 6, "kernel=3, knn=12, to=g[1]", NEAR(.knn = 12)},
            {0, 2, 5, "kernel=3, knn=4, to=level(p.f)", NEAR(.knn = 4)},
            {2, 0, 4, "kernel=3, radius=5cm, to=g[1]", NEAR(.radius = 0.05)}}},
    /* voxel mode, and each of its parts alone */
    {"voxel", "g = grid(p, 10cm * [1, 2, 4])", 0.1, 4,
        {{1, 1, 7, "kernel=3", NEAR(.degrade = PNET_DEGRADE_VOXEL)},
            {2, 1, 8, "kernel=2, to=g[1]", NEAR(.kernel = 2, .degrade = PNET_DEGRADE_VOXEL)},
            {2, 2, 6, "kernel=5", NEAR(.kernel = 5, .degrade = PNET_DEGRADE_VOXEL)},
            {1, 2, 5, "kernel=2, to=g[0]", NEAR(.kernel = 2, .degrade = PNET_DEGRADE_VOXEL)}}},
    {"centre", "g = grid(p, 10cm * [1, 2])", 0.1, 2,
        {{1, 1, 7, "kernel=3", NEAR(.degrade = PNET_DEGRADE_CENTRE)},
            {2, 1, 8, "kernel=2, to=g[1]", NEAR(.kernel = 2, .degrade = PNET_DEGRADE_CENTRE)}}},
    {"neighbour", "g = grid(p, 10cm * [1, 2])", 0.1, 2,
        {{1, 1, 7, "kernel=3", NEAR(.degrade = PNET_DEGRADE_NEIGHBOUR)},
            {2, 1, 8, "kernel=2, to=g[1]", NEAR(.kernel = 2, .degrade = PNET_DEGRADE_NEIGHBOUR)}}},
    {"kernel", "g = grid(p, 10cm * [1, 2])", 0.1, 2,
        {{1, 1, 7, "kernel=3", NEAR(.degrade = PNET_DEGRADE_KERNEL)},
            {2, 1, 8, "kernel=2, to=g[1]", NEAR(.kernel = 2, .degrade = PNET_DEGRADE_KERNEL)}}},
};

/* Features of the first level a net reads: of points, or the mean of a grid's cells, which a model pools. */
static float *first_features(
    const struct points_cloud *c, const struct pnet_points *points, const struct pnet_points *level)
{
    int64_t n = points_info(level).rows;
    float *x = sets_room((size_t)n, POINTS_FEATURES * sizeof *x);
    int32_t *parent = points_parents(points, level);
    for (int64_t i = 0; i < c->rows; i++) /* the largest of each cell */
        for (int a = 0; a < POINTS_FEATURES; a++) {
            float v = c->f[i * POINTS_FEATURES + a], *to = x + parent[i] * POINTS_FEATURES + a;
            if (points == level || v > *to) *to = v;
        }
    free(parent);
    return x;
}

static void write_text(const struct net *n, char *text, size_t size)
{
    static const char *const pools[] = {
        "", " -> relu -> pool(max, to=g[0])", " -> relu -> pool(max, to=g[1])"};
    int from = n->layer[0].from;
    int length = snprintf(text, size,
        "pnet 1\ninput cloud {\n  xyz : position\n  f : feature[5]\n}\nnet n(p: cloud) {\n"
        "  %s\n  return p.f%s",
        n->levels, pools[from]);
    for (int i = 0; i < n->count; i++)
        length += snprintf(text + length, size - (size_t)length, " -> conv(%d, bias=yes, %s)",
            (int)n->layer[i].channels, n->layer[i].words);
    snprintf(text + length, size - (size_t)length, "\n}\ny = n(cloud)\n");
}

static void check_net(const struct points_cloud *c, const struct net *n)
{
    static const double factor[] = {1, 2, 4};
    bool thirds = strstr(n->levels, "[1, 3]") != NULL;
    struct pnet_points *level[LEVELS] = {points_make(c, n->cell)};
    for (int i = 1; i < LEVELS && n->cell > 0; i++)
        level[i] = points_grid(level[i - 1], n->cell * (thirds ? pow(3, i - 1) : factor[i - 1]));
    char text[1024], name[2 * LAYERS][64];
    struct points_weight weight[2 * LAYERS];
    int32_t width = POINTS_FEATURES;
    float *x = first_features(c, level[0], level[n->layer[0].from]);
    for (int i = 0; i < n->count; i++) {
        const struct layer *l = &n->layer[i];
        struct pnet_set *set = NULL;
        NEED(pnet_set_points(level[l->to], level[l->from], &l->o, &set, &e));
        struct pnet_set_info info = sets_info(set);
        int64_t weights = (int64_t)info.taps * width * l->channels;
        float *w = sets_floats(weights), *bias = sets_floats(l->channels),
              *y = sets_floats(info.rows_out * l->channels);
        struct pnet_array in = sets_array(x, info.rows_in, width),
                          by = sets_array(w, (int64_t)info.taps * width, l->channels);
        struct pnet_array_out out = sets_out(y, info.rows_out, l->channels);
        struct pnet_conv_options o = {.size = sizeof o, .bias = bias};
        NEED(pnet_conv_forward(set, &in, &by, &o, &out, &e));
        snprintf(
            name[2 * i], sizeof name[0], i ? "n.out.conv_%d.weight" : "n.out.conv.weight", i + 1);
        snprintf(
            name[2 * i + 1], sizeof name[0], i ? "n.out.conv_%d.bias" : "n.out.conv.bias", i + 1);
        weight[2 * i] = (struct points_weight){name[2 * i], w, weights};
        weight[2 * i + 1] = (struct points_weight){name[2 * i + 1], bias, l->channels};
        free(x);
        x = y;
        width = l->channels;
        pnet_set_free(set);
    }
    int64_t numbers;
    write_text(n, text, sizeof text);
    float *want = points_run_net(c, text, n->mode, weight, 2 * n->count, &numbers);
    points_same(level[0], level[n->layer[n->count - 1].to], x, want, width, text);
    free(x);
    free(want);
    for (int i = 0; i < 2 * n->count; i++) free((void *)weight[i].x);
    for (int i = 0; i < LEVELS; i++) pnet_points_free(level[i]);
}

int main(void)
{
    struct points_cloud c = points_fill(ROWS);
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) check_net(&c, &nets[i]);
    points_drop(&c);
    return check_end();
}
