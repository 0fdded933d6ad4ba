/* Sets of voxels and networks in voxel mode: kernel cells of a layer are taps of a set, so that a layer on a grid and
   a convolution on its voxels give the same numbers with the same weights. */
#include "tests/library/sets.h"

enum { EDGE = 12, FEATURES = 5, SAME = 7, COARSE = 9, FINE = 4 };

/* One level; then to a coarser level, and back to the finer one. */
static const char text[] =
    "pnet 1\n"
    "input cloud {\n"
    "  xyz : position\n"
    "  f   : feature[5]\n"
    "}\n"
    "net same(p: cloud) {\n"
    "  g = grid(p, 10cm * [1, 2])\n"
    "  return p.f -> pool(mean, to=g[0]) -> conv(7, kernel=3, bias=yes)\n"
    "}\n"
    "net back(p: cloud) {\n"
    "  g = grid(p, 10cm * [1, 2])\n"
    "  return p.f -> pool(mean, to=g[0]) -> conv(9, kernel=2, to=g[1], bias=yes) -> "
    "conv(4, kernel=2, to=g[0], bias=yes)\n"
    "}\n"
    "a = same(cloud)\n"
    "b = back(cloud)\n";

/* A case whose indices are (sample, x, y, z), sorted by sample, and the centres of its voxels. */
struct both {
    struct sets_case c;
    float *xyz, *f;
    int64_t splits[3];
};

static struct both fill(void)
{
    struct both b = {.c = {.o = {.size = sizeof b.c.o,
                               .kernel = {3, 3, 3},
                               .extent = {EDGE, EDGE, EDGE},
                               .batches = 2},
                         .axes = 3,
                         .in = FEATURES,
                         .groups = 1}};
    sets_fill(&b.c, 4, -1);
    int32_t *sorted = sets_room((size_t)b.c.rows * 4, sizeof *sorted);
    int64_t row = 0;
    for (int32_t s = 0; s < 2; s++) {
        for (int64_t r = 0; r < b.c.rows; r++)
            if (b.c.index[4 * r] == s) memcpy(sorted + 4 * row++, b.c.index + 4 * r, 16);
        b.splits[s + 1] = row;
    }
    free(b.c.index);
    b.c.index = sorted;
    b.f = sets_floats(b.c.rows * FEATURES);
    b.xyz = sets_floats(b.c.rows * 3);
    for (int64_t r = 0; r < b.c.rows; r++)
        for (int a = 0; a < 3; a++) b.xyz[3 * r + a] = 0.1F * ((float)sorted[4 * r + 1 + a] + 0.5F);
    return b;
}

/* Result and weights of a net on these voxels. */
static float *run_net(const struct both *b, const char *net, const char *const *names,
    float **weights, const int64_t *counts, int layers)
{
    struct pnet_model_options o = {.size = sizeof o, .net = net, .mode = "voxel"};
    struct pnet_model *m = NULL;
    struct pnet_value v[] = {{"cloud", {b->splits, PNET_DTYPE_I64, 3, 1, 0}},
        {"cloud.xyz", {b->xyz, PNET_DTYPE_F32, b->c.rows, 3, 0}},
        {"cloud.f", {b->f, PNET_DTYPE_F32, b->c.rows, FEATURES, 0}}};
    NEED(pnet_model_compile("voxels.pnet", text, sizeof text - 1, &o, &m, &e));
    struct pnet_session *s = api_session(m, NULL);
    NEED(pnet_session_init(s, &e));
    for (int i = 0; i < layers; i++) {
        char name[64];
        weights[2 * i] = sets_floats(counts[2 * i]);
        weights[2 * i + 1] = sets_floats(counts[2 * i + 1]);
        snprintf(name, sizeof name, "%s.weight", names[i]);
        NEED(pnet_session_set_weight(s, name, weights[2 * i], counts[2 * i], &e));
        snprintf(name, sizeof name, "%s.bias", names[i]);
        NEED(pnet_session_set_weight(s, name, weights[2 * i + 1], counts[2 * i + 1], &e));
    }
    NEED(pnet_session_bind(s, v, 3, &e));
    int64_t count;
    float *x = api_result(s, &count);
    pnet_session_free(s);
    pnet_model_free(m);
    return x;
}

/* Features through one set. */
static float *convolve(
    const struct pnet_set *set, const float *x, int32_t in, int32_t out, float *const weights[2])
{
    struct pnet_set_info i = sets_info(set);
    struct pnet_conv_options o = {.size = sizeof o, .bias = weights[1]};
    float *y = sets_floats(i.rows_out * out);
    struct pnet_array f = sets_array(x, i.rows_in, in),
                      w = sets_array(weights[0], (int64_t)i.taps * in, out);
    struct pnet_array_out to = sets_out(y, i.rows_out, out);
    NEED(pnet_conv_forward(set, &f, &w, &o, &to, &e));
    return y;
}

static void compare(const float *got, const float *want, int64_t count)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)got[i] - (double)want[i];
        difference += d * d;
        norm += (double)want[i] * (double)want[i];
    }
    CHECKF(count > 1000 && norm > 100 && difference <= 1e-12 * norm, "%d numbers: %g of %g",
        (int)count, sqrt(difference), sqrt(norm));
}

static void test_same(void)
{
    struct both b = fill();
    const char *const names[] = {"same.out.conv"};
    const int64_t counts[] = {27L * FEATURES * SAME, SAME};
    float *weights[2];
    float *want = run_net(&b, "same", names, weights, counts, 1);
    struct pnet_set *set = sets_make(&b.c);
    float *got = convolve(set, b.f, FEATURES, SAME, weights);
    compare(got, want, b.c.rows * SAME);
    free(got);
    free(want);
    free(weights[0]);
    free(weights[1]);
    free(b.xyz);
    free(b.f);
    free(b.c.index);
    pnet_set_free(set);
}

static void test_back(void)
{
    struct both b = fill();
    const char *const names[] = {"back.out.conv", "back.out.conv_2"};
    const int64_t counts[] = {8L * FEATURES * COARSE, COARSE, 8L * COARSE * FINE, FINE};
    float *weights[4];
    float *want = run_net(&b, "back", names, weights, counts, 2);
    b.c.o.kind = PNET_SET_STRIDED;
    for (int a = 0; a < 3; a++) b.c.o.kernel[a] = b.c.o.stride[a] = 2;
    struct pnet_set *set = sets_make(&b.c), *back = NULL;
    NEED(pnet_set_inverse(set, &back, &e));
    float *coarse = convolve(set, b.f, FEATURES, COARSE, weights);
    float *got = convolve(back, coarse, COARSE, FINE, weights + 2);
    compare(got, want, b.c.rows * FINE);
    free(coarse);
    free(got);
    free(want);
    for (int i = 0; i < 4; i++) free(weights[i]);
    free(b.xyz);
    free(b.f);
    free(b.c.index);
    pnet_set_free(set);
    pnet_set_free(back);
}

int main(void)
{
    test_same();
    test_back();
    return check_end();
}
