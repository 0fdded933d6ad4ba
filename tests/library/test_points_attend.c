/* Attention in buckets of points: the bits of a model's layer in every order, sums in double by the definition, rows in another
   order, errors. */
#include "tests/library/points.h"

#include <omp.h>

enum { ROWS = 900, WIDTH = 48, CHANNELS = WIDTH / 3 };

struct way {
    const char *words; /* of a model */
    int32_t heads;
    struct pnet_buckets_options o;
};
#define BUCKETS(...)                                                                               \
    {                                                                                              \
        .size = sizeof(struct pnet_buckets_options), __VA_ARGS__                                   \
    }

static const struct way ways[] = {
    {"attend(1, bucket=16, scope=2)", 1, BUCKETS(.bucket = 16, .scope = 2)},
    {"attend(2, order=\"z_trans\", bucket=16, scope=2, shift=1)", 2,
        BUCKETS(.order = PNET_BUCKETS_Z_TRANS, .bucket = 16, .scope = 2, .shift = 1)},
    {"attend(2, order=\"hilbert\", bucket=32, scope=1)", 2,
        BUCKETS(.order = PNET_BUCKETS_HILBERT, .bucket = 32, .scope = 1)},
    {"attend(1, order=\"hilbert_trans\", bucket=16, scope=2, stride=2)", 1,
        BUCKETS(.order = PNET_BUCKETS_HILBERT_TRANS, .bucket = 16, .scope = 2, .stride = 2)},
    {"attend(2, order=\"xor_div\", bucket=16, scope=2, stride=2, shift=1)", 2,
        BUCKETS(.order = PNET_BUCKETS_XOR_DIV, .bucket = 16, .scope = 2, .stride = 2, .shift = 1)},
    {"attend(2, order=\"xor_mod\", bucket=16, scope=2, stride=2, shift=3, wrap=yes)", 2,
        BUCKETS(.order = PNET_BUCKETS_XOR_MOD, .bucket = 16, .scope = 2, .stride = 2, .shift = 3,
            .wrap = 1)},
    {"attend(2, order=\"z_mod\", bucket=16)", 2,
        BUCKETS(.order = PNET_BUCKETS_Z_MOD, .bucket = 16)},
};
enum { WAYS = sizeof ways / sizeof *ways };

static struct pnet_buckets *make_buckets(
    const struct pnet_points *p, const struct pnet_buckets_options *o)
{
    struct pnet_buckets *b = NULL;
    NEED(pnet_buckets_new(p, o, &b, &e));
    return b;
}

/* Forward and backward of rows. */
struct attention {
    int64_t rows;
    float *qkv, *gradient, *out, *log_sum, *back;
};

static struct attention attend(
    const struct pnet_buckets *b, const float *qkv, const float *g, int64_t rows, int32_t heads)
{
    struct attention a = {rows, sets_floats(rows * WIDTH), sets_floats(rows * CHANNELS),
        sets_floats(rows * CHANNELS), sets_floats(rows * heads), sets_floats(rows * WIDTH)};
    memcpy(a.qkv, qkv, (size_t)(rows * WIDTH) * 4);
    if (g) memcpy(a.gradient, g, (size_t)(rows * CHANNELS) * 4);
    struct pnet_attend_options o = {.size = sizeof o, .heads = heads, .log_sum = a.log_sum};
    struct pnet_array from = sets_array(a.qkv, rows, WIDTH),
                      of = sets_array(a.gradient, rows, CHANNELS),
                      out = sets_array(a.out, rows, CHANNELS);
    struct pnet_array_out to = sets_out(a.out, rows, CHANNELS),
                          into = sets_out(a.back, rows, WIDTH);
    NEED(pnet_attend_workspace(b, 0, heads, CHANNELS, &o.workspace_bytes, &e));
    o.workspace = sets_room(o.workspace_bytes, 1);
    NEED(pnet_attend_forward(b, &from, &o, &to, &e));
    free(o.workspace);
    o.workspace = NULL;
    NEED(pnet_attend_backward(b, &from, &out, &of, &o, &into, &e));
    return a;
}

static void drop(struct attention *a)
{
    free(a->qkv);
    free(a->gradient);
    free(a->out);
    free(a->log_sum);
    free(a->back);
}

/* On the points, with voxels of their own, and on a level. */
static void test_model(void)
{
    struct points_cloud c = points_fill_wide(ROWS, WIDTH);
    struct pnet_points *p = points_make(&c, 0.1), *g = points_grid(p, 0.1);
    struct pnet_map_options mean = {.size = sizeof mean};
    struct pnet_map *map = NULL;
    int64_t cells = points_info(g).rows, numbers;
    float *pooled = sets_floats(cells * WIDTH);
    struct pnet_array from = sets_array(c.f, ROWS, WIDTH);
    struct pnet_array_out to = sets_out(pooled, cells, WIDTH);
    NEED(pnet_map_new(g, p, &mean, &map, &e));
    NEED(pnet_map_forward(map, &from, NULL, &to, &e));
    for (int k = 0; k < 2 * WAYS; k++) {
        const struct way *w = &ways[k / 2];
        struct pnet_buckets_options o = w->o;
        char text[512];
        bool level = k % 2;
        if (!level && o.order != PNET_BUCKETS_Z) o.cell = 0.03;
        snprintf(text, sizeof text,
            "pnet 1\ninput cloud {\n  xyz : position\n  f : feature[48]\n}\nnet n(p: cloud) {\n"
            "  g = grid(p, 10cm)\n  return p.f%s -> %.*s%s)\n}\ny = n(cloud)\n",
            level ? " -> pool(mean, to=g)" : "", (int)strlen(w->words) - 1, w->words,
            o.cell > 0 ? ", cell=3cm" : "");
        struct pnet_buckets *b = make_buckets(level ? g : p, &o);
        struct attention a = attend(b, level ? pooled : c.f, NULL, level ? cells : ROWS, w->heads);
        float *want = points_run_net(&c, text, "native", NULL, 0, &numbers);
        points_same(p, level ? g : p, a.out, want, CHANNELS, text);
        drop(&a);
        free(want);
        pnet_buckets_free(b);
    }
    free(pooled);
    pnet_map_free(map);
    pnet_points_free(p);
    pnet_points_free(g);
    points_drop(&c);
}

/* The scope of a place in a sample: buckets of equal size, cut into chunks of scope * stride, the first one short by `shift`. */
static int64_t scope_of(const struct pnet_buckets_options *o, int64_t rows, int64_t place)
{
    int64_t buckets = rows > o->bucket ? (rows + o->bucket - 1) / o->bucket : 1, at = 0;
    int64_t chunk = o->scope * o->stride, first = o->shift % chunk;
    if (buckets <= o->scope) return 0;
    while ((at + 1) * rows / buckets <= place) at++;
    if (at < first) return at % o->stride;
    return o->stride * (1 + (at - first) / chunk) + (at - first) % chunk % o->stride;
}

/* One row of the definition, with its shares of the gradient. */
static void add_row(const struct attention *a, const int64_t *scope, const int32_t *sample,
    int64_t i, int head, int width, double *out, double *back)
{
    double sum = 0, scale = 1 / sqrt(width), dot = 0;
    double *p = sets_room((size_t)a->rows, sizeof *p);
    const float *q = a->qkv + i * WIDTH + head * width,
                *g = a->gradient + i * CHANNELS + head * width;
#define IN(j, third) (a->qkv + (j)*WIDTH + (third)*CHANNELS + head * width)
#define INTO(j, third) (back + (j)*WIDTH + (third)*CHANNELS + head * width)
#define JOINED(j) (sample[j] == sample[i] && scope[j] == scope[i])
    for (int64_t j = 0; j < a->rows; j++) {
        if (!JOINED(j)) continue;
        for (int c = 0; c < width; c++) p[j] += scale * (double)q[c] * (double)IN(j, 1)[c];
        p[j] = exp(p[j]);
        sum += p[j];
    }
    for (int64_t j = 0; j < a->rows; j++)
        for (int c = 0; c < width && JOINED(j); c++)
            out[i * CHANNELS + head * width + c] += p[j] / sum * (double)IN(j, 2)[c];
    for (int c = 0; c < width; c++) dot += (double)g[c] * out[i * CHANNELS + head * width + c];
    for (int64_t j = 0; j < a->rows; j++) {
        double slope = -dot;
        if (!JOINED(j)) continue;
        for (int c = 0; c < width; c++) slope += (double)g[c] * (double)IN(j, 2)[c];
        slope *= p[j] / sum;
        for (int c = 0; c < width; c++) {
            INTO(j, 2)[c] += p[j] / sum * (double)g[c];
            INTO(i, 0)[c] += scale * slope * (double)IN(j, 1)[c];
            INTO(j, 1)[c] += scale * slope * (double)q[c];
        }
    }
#undef IN
#undef INTO
#undef JOINED
    free(p);
}

static void test_double(void)
{
    struct points_cloud c = points_fill_wide(ROWS, WIDTH);
    struct pnet_points *p = points_make(&c, 0), *g = points_grid(p, 0.1);
    struct pnet_buckets_options o = BUCKETS(.bucket = 16, .scope = 3, .stride = 2, .shift = 4);
    struct pnet_buckets *b = make_buckets(g, &o);
    int64_t rows = points_info(g).rows, first[POINTS_SAMPLES] = {0}, count[POINTS_SAMPLES] = {0};
    struct attention a = attend(b, c.f, c.f, rows, 2);
    int32_t *sample = points_samples(g);
    int64_t *scope = sets_room((size_t)rows, sizeof *scope);
    double *out = sets_room((size_t)(rows * CHANNELS), sizeof *out),
           *back = sets_room((size_t)(rows * WIDTH), sizeof *back);
    for (int64_t i = rows - 1; i >= 0; i--) {
        first[sample[i]] = i;
        count[sample[i]]++;
    }
    for (int64_t i = 0; i < rows; i++)
        scope[i] = scope_of(&o, count[sample[i]], i - first[sample[i]]);
    for (int64_t i = 0; i < rows; i++)
        for (int head = 0; head < 2; head++)
            add_row(&a, scope, sample, i, head, CHANNELS / 2, out, back);
    CHECKF(sets_error(a.out, out, rows * CHANNELS) < 1e-6 &&
               sets_error(a.back, back, rows * WIDTH) < 2e-6,
        "%g, %g", sets_error(a.out, out, rows * CHANNELS), sets_error(a.back, back, rows * WIDTH));
    drop(&a);
    free(sample);
    free(scope);
    free(out);
    free(back);
    pnet_buckets_free(b);
    pnet_points_free(p);
    pnet_points_free(g);
    points_drop(&c);
}

/* Rows in another order, by another number of threads: how many rows of all ways have other bits, forward or backward. `cell`: of
   points and orders; 0: no two points share one. `keep`: points of one cell stay in their order. */
static int64_t count_others(double cell, bool keep)
{
    struct points_cloud c = points_fill_wide(ROWS, WIDTH), mixed = points_fill_wide(ROWS, WIDTH);
    int64_t moved[ROWS], wrong = 0;
    for (int64_t i = 0; i < 3 * ROWS; i++) c.xyz[i] = sets_float(); /* none are there twice */
    memcpy(mixed.xyz, c.xyz, ROWS * 12);
    memcpy(mixed.f, c.f, ROWS * WIDTH * 4);
    if (keep)
        points_shuffle_cells(&mixed, cell, moved);
    else
        points_shuffle(&mixed, moved);
    struct pnet_points *p = points_make(&c, cell), *q = points_make_mixed(&mixed, cell);
    float *g = sets_floats(ROWS * CHANNELS), *h = sets_floats(ROWS * CHANNELS);
    for (int64_t r = 0; r < ROWS; r++)
        memcpy(h + r * CHANNELS, g + moved[r] * CHANNELS, CHANNELS * 4);
    for (int k = 0; k < WAYS; k++) {
        struct pnet_buckets_options o = ways[k].o;
        if (o.order != PNET_BUCKETS_Z) o.cell = cell > 0 ? cell : 0.001;
        struct pnet_buckets *one = make_buckets(p, &o), *two = make_buckets(q, &o);
        omp_set_num_threads(1);
        struct attention a = attend(one, c.f, g, ROWS, 2);
        omp_set_num_threads(3);
        struct attention b = attend(two, mixed.f, h, ROWS, 2);
        for (int64_t r = 0; r < ROWS; r++)
            wrong += memcmp(b.out + r * CHANNELS, a.out + moved[r] * CHANNELS, CHANNELS * 4) != 0 ||
                     memcmp(b.back + r * WIDTH, a.back + moved[r] * WIDTH, WIDTH * 4) != 0;
        drop(&a);
        drop(&b);
        pnet_buckets_free(one);
        pnet_buckets_free(two);
    }
    free(g);
    free(h);
    pnet_points_free(p);
    pnet_points_free(q);
    points_drop(&c);
    points_drop(&mixed);
    return wrong;
}

static void test_orders(void)
{
    CHECK(count_others(0, false) == 0);
    CHECK(count_others(0.25, true) == 0);
    CHECK(count_others(0.25, false) > 0); /* the order of the caller chooses buckets */
}

static void test_errors(void)
{
    struct points_cloud c = points_fill_wide(40, WIDTH);
    struct pnet_points *p = points_make(&c, 0);
    struct pnet_buckets *b = NULL;
#define TRY(status, part, ...)                                                                     \
    do {                                                                                           \
        struct pnet_buckets_options o = {.size = sizeof o, __VA_ARGS__};                           \
        REFUSED(pnet_buckets_new(p, &o, &b, &e), status, part);                                    \
    } while (0)
    TRY(PNET_USAGE, "multiple of 16", .bucket = 24);
    TRY(PNET_USAGE, "bucket 8", .bucket = 8);
    TRY(PNET_USAGE, "scope 65", .scope = 65);
    TRY(PNET_USAGE, "shift -1", .shift = -1);
    TRY(PNET_USAGE, "stride 9", .stride = 9);
    TRY(PNET_USAGE, "order 7", .order = (enum pnet_buckets_order)7);
    TRY(PNET_USAGE, "cell: it is needed", .order = PNET_BUCKETS_HILBERT);
    TRY(PNET_USAGE, "cell -1", .cell = -1);
    c.xyz[0] = 2000;
    pnet_points_free(p);
    p = points_make(&c, 0);
    TRY(PNET_BAD_DATA, "1 points lie beyond", .order = PNET_BUCKETS_HILBERT, .cell = 1e-3);
    CHECK(!b);
    NEED(pnet_buckets_new(p, NULL, &b, &e));
    struct pnet_array x = sets_array(c.f, 40, WIDTH), y = sets_array(c.f, 40, CHANNELS),
                      wrong = sets_array(c.f, 40, 47);
    struct pnet_array_out to = sets_out(c.f, 40, CHANNELS), into = sets_out(c.f, 40, WIDTH);
    struct pnet_attend_options o = {.size = sizeof o, .heads = 3};
    REFUSED(pnet_attend_forward(b, &x, &o, &to, &e), PNET_USAGE, "for 3 heads");
    o.heads = 4;
    REFUSED(pnet_attend_forward(b, &x, &o, &to, &e), PNET_USAGE, "a head has 4 channels");
    REFUSED(pnet_attend_forward(b, &wrong, NULL, &to, &e), PNET_USAGE, "width 47");
    REFUSED(pnet_attend_forward(b, &x, NULL, &into, &e), PNET_USAGE, "result: [40, 48]");
    REFUSED(pnet_attend_backward(b, &x, &y, &y, NULL, &into, &e), PNET_USAGE, "log_sum");
    const double scales[] = {NAN, INFINITY, -INFINITY, 1e39};
    for (int k = 0; k < 4; k++) {
        o = (struct pnet_attend_options){.size = sizeof o, .scale = scales[k]};
        REFUSED(pnet_attend_forward(b, &x, &o, &to, &e), PNET_USAGE, "expected a finite float32");
    }
    o = (struct pnet_attend_options){.size = sizeof o, .workspace = c.f, .workspace_bytes = 1};
    REFUSED(pnet_attend_forward(b, &x, &o, &to, &e), PNET_USAGE, "pnet_attend_workspace");
    pnet_buckets_free(b);
    pnet_buckets_free(NULL);
    pnet_points_free(p);
    points_drop(&c);
}

int main(void)
{
    test_model();
    test_double();
    test_orders();
    test_errors();
    return check_end();
}
