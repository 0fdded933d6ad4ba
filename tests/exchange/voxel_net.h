/* Layers of sparse convolution libraries in double, by the libraries' own definitions and layouts, on weights in float32 that are
   drawn at random. Nothing here is of pnet but the writer of files and the random numbers. */
#ifndef PNET_TESTS_EXCHANGE_VOXEL_NET_H
#define PNET_TESTS_EXCHANGE_VOXEL_NET_H

#include "runtime/train/safetensors.h"
#include "tests/models/batch.h"

enum library { MINKOWSKI, SPCONV, TORCHSPARSE, TORCH, LIBRARIES };
static const char *const library_names[LIBRARIES] = {"minkowski", "spconv", "torchsparse", "torch"};

/* ---- weights ---- */

enum { MOST_TENSORS = 256 };
struct store {
    struct pnet_safetensor tensors[MOST_TENSORS];
    char names[MOST_TENSORS][160];
    int count;
    uint64_t seed;
};

static inline const float *store_add(
    struct store *s, const char *name, int dims, const int64_t *shape, float centre, float spread)
{
    struct pnet_safetensor *t = &s->tensors[s->count];
    int64_t count = 1;
    for (int d = 0; d < dims; d++) count *= t->shape[d] = shape[d];
    float *data = must(malloc((size_t)count * sizeof *data));
    for (int64_t i = 0; i < count; i++)
        data[i] = centre + spread * (2 * cloud_unit(s->seed + (uint64_t)s->count, (uint64_t)i) - 1);
    snprintf(s->names[s->count], sizeof s->names[0], "%s", name);
    t->name = s->names[s->count++];
    t->dtype = PNET_TENSOR_F32;
    t->dims = dims;
    t->data = data;
    return data;
}

/* PyTorch's norms count their batches. */
static inline void store_counter(struct store *s, const char *name)
{
    struct pnet_safetensor *t = &s->tensors[s->count];
    int64_t *data = must(calloc(1, sizeof *data));
    snprintf(s->names[s->count], sizeof s->names[0], "%s", name);
    *t = (struct pnet_safetensor){
        .name = s->names[s->count++], .dtype = PNET_TENSOR_I64, .data = data};
}

static inline const float *store_get(const struct store *s, const char *layer, const char *word)
{
    char name[160];
    snprintf(name, sizeof name, "%s.%s", layer, word);
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->names[i], name) == 0) return s->tensors[i].data;
    return NULL;
}

static inline void store_free(struct store *s)
{
    for (int i = 0; i < s->count; i++) free((void *)(uintptr_t)s->tensors[i].data);
    s->count = 0;
}

/* ---- sites and their values ---- */

/* Distinct voxels, sorted; coordinates are multiples of the stride. */
struct sites {
    int count, stride;
    int (*at)[3]; /* x, y, z */
};

struct values {
    const struct sites *sites;
    int width;
    double *v; /* [sites->count][width] */
};

static inline int by_place(const void *a, const void *b)
{
    const int *p = a, *q = b;
    for (int k = 0; k < 3; k++)
        if (p[k] != q[k]) return p[k] < q[k] ? -1 : 1;
    return 0;
}

static inline struct sites sites_unique(int (*at)[3], int count, int stride)
{
    struct sites s = {.stride = stride, .at = at};
    qsort(at, (size_t)count, sizeof *at, by_place);
    for (int i = 0; i < count; i++)
        if (!i || by_place(at[i], at[s.count - 1])) memcpy(at[s.count++], at[i], sizeof *at);
    return s;
}

/* The sites of twice the stride: each coordinate is rounded down. */
static inline struct sites sites_coarser(const struct sites *fine)
{
    int(*at)[3] = must(malloc((size_t)fine->count * sizeof *at + 1)), step = 2 * fine->stride;
    for (int i = 0; i < fine->count; i++)
        for (int k = 0; k < 3; k++) {
            int rest = fine->at[i][k] % step;
            at[i][k] = fine->at[i][k] - (rest < 0 ? rest + step : rest);
        }
    return sites_unique(at, fine->count, step);
}

static inline int sites_find(const struct sites *s, const int at[3])
{
    const int(*found)[3] =
        (const int(*)[3])bsearch(at, s->at, (size_t)s->count, sizeof *s->at, by_place);
    return found ? (int)(found - (const int(*)[3])s->at) : -1;
}

static inline struct values values_new(const struct sites *s, int width)
{
    return (struct values){
        s, width, must(calloc((size_t)s->count * (size_t)width + 1, sizeof(double)))};
}

/* ---- layers ---- */

/* On one level, to a coarser one, or to a finer one, which is a transposed convolution. */
enum way { SAME, DOWN, UP };

struct conv {
    enum library library;
    const char *name;
    int kernel, in, out, groups;
    enum way way;
};

/* The place of a weight: tap (x, y, z), channel `i` of the group, channel `o` of all. */
static inline int64_t weight_at(const struct conv *c, const int tap[3], int i, int o)
{
    int64_t k = c->kernel, x = tap[0], y = tap[1], z = tap[2], in = c->in / c->groups, out = c->out;
    int64_t first_fastest = (z * k + y) * k + x, first_slowest = (x * k + y) * k + z;
    int64_t block = out / c->groups;
    switch (c->library) {
    case MINKOWSKI:
        return c->groups > 1 ? first_fastest * out + o : (first_fastest * in + i) * out + o;
    case TORCHSPARSE: return ((k % 2 ? first_fastest : first_slowest) * in + i) * out + o;
    case SPCONV: /* a product with weight.view(in, out) where the kernel and the stride are 1 */
        if (k == 1 && c->way == SAME && c->groups == 1) return (int64_t)i * out + o;
        return ((((int64_t)o * k + z) * k + y) * k + x) * in + i;
    default:
        if (c->way == UP)
            return (((((o / block) * in + i) * block + o % block) * k + z) * k + y) * k + x;
        return ((((int64_t)o * in + i) * k + z) * k + y) * k + x;
    }
}

/* Draws weights in the library's shape, of about unit gain, and a bias if asked for. */
static inline void conv_draw(struct store *s, const struct conv *c, bool bias)
{
    char name[128];
    int64_t k = c->kernel, volume = k * k * k, in = c->in / c->groups, out = c->out;
    float spread = (float)sqrt(6.0 / (double)(in * (volume < 5 ? volume : 5)));
    bool kernel = c->library == MINKOWSKI || c->library == TORCHSPARSE;
    snprintf(name, sizeof name, "%s.%s", c->name, kernel ? "kernel" : "weight");
    if (c->library == SPCONV)
        store_add(s, name, 5, (int64_t[]){out, k, k, k, in}, 0, spread);
    else if (c->library == TORCH && c->way == UP)
        store_add(s, name, 5, (int64_t[]){c->in, out / c->groups, k, k, k}, 0, spread);
    else if (c->library == TORCH)
        store_add(s, name, 5, (int64_t[]){out, in, k, k, k}, 0, spread);
    else if (volume == 1 && c->way == SAME)
        store_add(s, name, 2, (int64_t[]){in, out}, 0, spread);
    else if (c->groups > 1)
        store_add(s, name, 2, (int64_t[]){volume, out}, 0, spread);
    else
        store_add(s, name, 3, (int64_t[]){volume, in, out}, 0, spread);
    snprintf(name, sizeof name, "%s.bias", c->name);
    if (bias && c->library == MINKOWSKI)
        store_add(s, name, 2, (int64_t[]){1, out}, 0, 0.3f);
    else if (bias)
        store_add(s, name, 1, (int64_t[]){out}, 0, 0.3f);
}

/* Adds the products of one pair of sites. */
static inline void conv_pair(
    const struct conv *c, const float *w, const int tap[3], const double *from, double *to)
{
    int in = c->in / c->groups, block = c->out / c->groups;
    for (int o = 0; o < c->out; o++)
        for (int i = 0; i < in; i++)
            to[o] += (double)w[weight_at(c, tap, i, o)] * from[o / block * in + i];
}

/* A convolution: tap t of site y reads the site y + (t - K/2) steps for odd K, y + t steps for even K, a step being the
   stride of the finer sites. (spconv and PyTorch: the padding K/2 for odd K, 0 for even K.) A transposed one has the same
   pairs, and gives what the other one reads. */
static inline struct values convolve(
    const struct store *s, const struct conv *c, const struct values *x, const struct sites *to)
{
    struct values r = values_new(to, c->out);
    bool kernel = c->library == MINKOWSKI || c->library == TORCHSPARSE;
    const float *w = store_get(s, c->name, kernel ? "kernel" : "weight"),
                *bias = store_get(s, c->name, "bias");
    const struct sites *coarse = c->way == UP ? x->sites : to, *fine = c->way == UP ? to : x->sites;
    int k = c->kernel, centre = k % 2 ? k / 2 : 0;
    for (int y = 0; y < coarse->count; y++)
        for (int t = 0; t < k * k * k; t++) {
            int tap[3] = {t % k, t / k % k, t / (k * k)}, at[3];
            for (int a = 0; a < 3; a++) at[a] = coarse->at[y][a] + (tap[a] - centre) * fine->stride;
            int f = sites_find(fine, at);
            if (f < 0) continue;
            int from = c->way == UP ? y : f, into = c->way == UP ? f : y;
            conv_pair(c, w, tap, x->v + (int64_t)from * c->in, r.v + (int64_t)into * c->out);
        }
    for (int64_t i = 0; bias && i < (int64_t)to->count * c->out; i++)
        r.v[i] += (double)bias[i % c->out];
    return r;
}

/* nn.Linear: weight [out, in]. */
static inline void linear_draw(struct store *s, const char *layer, int in, int out)
{
    char name[128];
    snprintf(name, sizeof name, "%s.weight", layer);
    store_add(s, name, 2, (int64_t[]){out, in}, 0, (float)sqrt(3.0 / in));
    snprintf(name, sizeof name, "%s.bias", layer);
    store_add(s, name, 1, (int64_t[]){out}, 0, 0.3f);
}

static inline struct values linear(
    const struct store *s, const char *layer, const struct values *x, int out)
{
    struct values r = values_new(x->sites, out);
    const float *w = store_get(s, layer, "weight"), *bias = store_get(s, layer, "bias");
    for (int n = 0; n < x->sites->count; n++)
        for (int o = 0; o < out; o++) {
            double sum = (double)bias[o];
            for (int i = 0; i < x->width; i++)
                sum += (double)w[o * x->width + i] * x->v[(int64_t)n * x->width + i];
            r.v[(int64_t)n * out + o] = sum;
        }
    return r;
}

/* BatchNorm1d in evaluation, with eps 1e-5. */
static inline void norm_draw(struct store *s, const char *layer, int width)
{
    static const struct {
        const char *word;
        float centre, spread;
    } parts[] = {{"weight", 1, 0.3f}, {"bias", 0, 0.3f}, {"running_mean", 0, 0.3f},
        {"running_var", 1, 0.5f}};
    char name[160];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s.%s", layer, parts[i].word);
        store_add(s, name, 1, (int64_t[]){width}, parts[i].centre, parts[i].spread);
    }
    snprintf(name, sizeof name, "%s.num_batches_tracked", layer);
    store_counter(s, name);
}

static inline void normalise(const struct store *s, const char *layer, struct values *x)
{
    const float *weight = store_get(s, layer, "weight"), *bias = store_get(s, layer, "bias"),
                *mean = store_get(s, layer, "running_mean"),
                *variance = store_get(s, layer, "running_var");
    for (int64_t i = 0; i < (int64_t)x->sites->count * x->width; i++) {
        int64_t c = i % x->width;
        x->v[i] =
            (x->v[i] - (double)mean[c]) / sqrt((double)variance[c] + 1e-5) * (double)weight[c] +
            (double)bias[c];
    }
}

static inline void rectify(struct values *x)
{
    for (int64_t i = 0; i < (int64_t)x->sites->count * x->width; i++) x->v[i] = fmax(x->v[i], 0);
}

static inline struct values concatenate(const struct values *a, const struct values *b)
{
    struct values r = values_new(a->sites, a->width + b->width);
    for (int n = 0; n < a->sites->count; n++) {
        memcpy(r.v + (int64_t)n * r.width, a->v + (int64_t)n * a->width,
            (size_t)a->width * sizeof(double));
        memcpy(r.v + (int64_t)n * r.width + a->width, b->v + (int64_t)n * b->width,
            (size_t)b->width * sizeof(double));
    }
    return r;
}

/* ---- clouds ---- */

/* One point in each of some voxels of `cell` metres along three walls and in the space between them, around the origin, anywhere
   in its voxel but at its faces; features and all. voxels[i] is that of point i. */
static inline struct cloud cloud_voxels(int edge, float cell, uint64_t seed, int (**voxels)[3])
{
    int n = 0, all = edge * edge * edge;
    struct cloud c = cloud_new(all);
    *voxels = must(malloc((size_t)all * sizeof **voxels));
    for (int v = 0; v < all; v++) {
        int at[3] = {v % edge, v / edge % edge, v / (edge * edge)};
        int walls = !at[0] + !at[1] + !at[2];
        if (cloud_unit(seed, (uint64_t)v) > (walls ? 0.5f : 0.04f)) continue;
        for (int k = 0; k < 3; k++) {
            (*voxels)[n][k] = at[k] - edge / 2 + 1;
            c.xyz[3 * n + k] =
                cell * ((float)(*voxels)[n][k] + 0.1f +
                           0.8f * cloud_unit(seed + 1, (uint64_t)v * 3 + (uint64_t)k));
        }
        n++;
    }
    c.n = n;
    cloud_paint(&c, seed);
    return c;
}

static inline struct sites cloud_sites(const struct cloud *c, const int (*voxels)[3])
{
    int(*at)[3] = must(malloc((size_t)c->n * sizeof *at));
    memcpy(at, voxels, (size_t)c->n * sizeof *at);
    return sites_unique(at, (int)c->n, 1);
}

/* The first channels of the points' features, at their voxels. */
static inline struct values cloud_values(
    const struct cloud *c, const int (*voxels)[3], const struct sites *s, int width)
{
    struct values r = values_new(s, width);
    for (int64_t i = 0; i < c->n; i++)
        for (int k = 0; k < width; k++)
            r.v[(int64_t)sites_find(s, voxels[i]) * width + k] =
                (double)c->features[CLOUD_FEATURES * i + k];
    return r;
}

#endif
