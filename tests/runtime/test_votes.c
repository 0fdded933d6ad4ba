/* Votes against the definition in plain loops: copies by matrices, fragments voxel by voxel, sums of probabilities in double. */
#include "runtime/train/votes.h"
#include "tests/models/batch.h"

#include <math.h>

#define HEAD                                                                                       \
    "pnet 1\ninput cloud { xyz : position  normal : feature[3]  label : class[5] per point "       \
    "}\nnet test(p: cloud) {\n"
#define TAIL "\n}\ny = test(cloud)\nloss ce = cross_entropy(y, cloud.label)\n"

static const float *give(void *context, const char *name, int64_t count)
{
    float *data = context;
    uint64_t seed = 3;
    for (const char *c = name; *c; c++) seed = seed * 31 + (uint8_t)*c;
    for (int64_t i = 0; i < count; i++) data[i] = 2 * cloud_unit(seed, (uint64_t)i) - 1;
    return data;
}

/* What the network makes of some points; calls are counted. */
struct network {
    const struct pnet_plan *plan;
    struct pnet_runner *runner;
    int64_t calls, points;
};

static enum pnet_status run(
    void *context, const struct pnet_batch *b, float **scores, struct pnet_error *e)
{
    struct network *n = context;
    int64_t rows;
    n->calls++;
    n->points += b->inputs[0].rows;
    enum pnet_status st = pnet_runner_prepare(n->runner, 0, b, e);
    if (!st) st = pnet_runner_forward(n->runner, 0, false, 0, e);
    return st ? st : pnet_runner_result(n->runner, 0, scores, &rows, e);
}

static float *scores_of(struct network *n, const struct cloud *c)
{
    struct pnet_batch *b = batch_of(n->plan, c, 1);
    struct pnet_error e;
    float *scores;
    need(run(n, b, &scores, &e), &e, "network");
    pnet_batch_free(b);
    return scores;
}

/* Copy k of docs/training.md: the features of the cloud are normals. */
static struct cloud copy_of(const struct cloud *c, int k)
{
    struct cloud d = cloud_new(c->n);
    double scale = k % 12 < 4 ? 1 : k % 12 < 8 ? 0.95 : 1.05, centre[3] = {0, 0, 0}, pi = acos(-1);
    for (int64_t i = 0; i < c->n; i++)
        for (int a = 0; a < 3; a++) centre[a] += (double)c->xyz[3 * i + a] / (double)c->n;
    for (int64_t i = 0; i < c->n; i++) {
        double angle = pi / 2 * (k % 4), mirror = k < 12 ? 1 : -1;
        for (int normal = 0; normal < 2; normal++) {
            const float *from = normal ? c->features + CLOUD_FEATURES * i : c->xyz + 3 * i;
            float *to = normal ? d.features + CLOUD_FEATURES * i : d.xyz + 3 * i;
            double s = normal ? 1 : scale, x = (double)from[0] - (normal ? 0 : centre[0]),
                   y = (double)from[1] - (normal ? 0 : centre[1]),
                   z = (double)from[2] - (normal ? 0 : centre[2]);
            to[0] =
                (float)((normal ? 0 : centre[0]) + mirror * s * (cos(angle) * x - sin(angle) * y));
            to[1] = (float)((normal ? 0 : centre[1]) + s * (sin(angle) * x + cos(angle) * y));
            to[2] = (float)((normal ? 0 : centre[2]) + s * z);
        }
    }
    return d;
}

/* The rank of a point among those of its voxel that come before it, and their number in all. */
static void rank_of(const struct cloud *c, int64_t row, double cell, int64_t *rank, int64_t *points)
{
    *rank = *points = 0;
    for (int64_t i = 0; i < c->n; i++) {
        bool same = true;
        for (int a = 0; a < 3; a++)
            same &= floor((double)c->xyz[3 * i + a] / cell) ==
                    floor((double)c->xyz[3 * row + a] / cell);
        *points += same;
        *rank += same && i < row;
    }
}

static void add(
    const float *scores, const int64_t *rows, int64_t count, int width, double *sum, int64_t *votes)
{
    for (int64_t i = 0; i < count; i++) {
        double all = 0;
        for (int c = 0; c < width; c++) all += exp((double)scores[i * width + c]);
        for (int c = 0; c < width; c++)
            sum[rows[i] * width + c] += exp((double)scores[i * width + c]) / all;
        votes[rows[i]]++;
    }
}

/* Adds the votes of a copy; returns the number of its fragments. */
static int64_t vote_by_hand(
    struct network *n, const struct cloud *copy, double cell, double *sum, int64_t *votes)
{
    int64_t *rank = must(malloc((size_t)copy->n * sizeof *rank)),
            *points = must(malloc((size_t)copy->n * sizeof *points)),
            *rows = must(malloc((size_t)copy->n * sizeof *rows)), fullest = 1;
    for (int64_t i = 0; i < copy->n; i++) {
        rank[i] = 0;
        points[i] = 1;
        if (cell > 0) rank_of(copy, i, cell, &rank[i], &points[i]);
        if (points[i] > fullest) fullest = points[i];
    }
    for (int64_t f = 0; f < fullest; f++) {
        int64_t count = 0;
        for (int64_t i = 0; i < copy->n; i++)
            if (rank[i] == f % points[i]) rows[count++] = i;
        struct cloud fragment = cloud_pick(copy, rows, count);
        float *scores = scores_of(n, &fragment);
        add(scores, rows, count, 5, sum, votes);
        free(scores);
        cloud_free(&fragment);
    }
    free(rank);
    free(points);
    free(rows);
    return fullest;
}

static void check_net(const char *name, const char *body, double cell, int copies)
{
    char text[1024];
    struct pnet_compile_options co = {.purpose = PNET_FOR_INFERENCE};
    struct pnet_runner_options o = {.slots = 1, .seed = 1};
    struct pnet_error e;
    float *weights = must(malloc(sizeof(float) * 100000)), *scores;
    snprintf(text, sizeof text, HEAD "%s" TAIL, body);
    struct pnet_compilation *compilation =
        need_plan(pnet_compile_text(name, text, strlen(text), &co), name);
    struct network n = {.plan = pnet_compilation_plan(compilation)};
    need(pnet_runner_new(need_bound(n.plan, (struct pnet_device){0}, PNET_FP32), &o, &n.runner, &e),
        &e, "runner");
    need(pnet_runner_load_params(n.runner, give, weights, &e), &e, "weights");
    struct cloud c = cloud_corner(250, 2, 17);
    double *sum = must(calloc((size_t)c.n * 5, sizeof *sum)), far = 0;
    int64_t *votes = must(calloc((size_t)c.n, sizeof *votes)), fragments = 0;
    for (int k = 0; k < copies; k++) {
        struct cloud copy = copy_of(&c, k);
        fragments += vote_by_hand(&n, &copy, cell, sum, votes);
        cloud_free(&copy);
    }
    int64_t calls = n.calls, points = n.points;
    struct pnet_voting v = pnet_voting_new(n.plan, copies);
    struct pnet_voting_work work;
    struct pnet_batch *b = batch_of(n.plan, &c, 1);
    need(pnet_votes(n.plan, b, 0, &v, run, &n, &scores, &work, &e), &e, "votes");
    CHECKF(n.calls == 2 * calls && n.points == 2 * points,
        "%s: %lld calls with %lld points, by hand %lld with %lld", name,
        (long long)(n.calls - calls), (long long)(n.points - points), (long long)calls,
        (long long)points);
    CHECKF(work.fragments == fragments && work.computed == points,
        "%s: %lld fragments, %lld points", name, (long long)work.fragments,
        (long long)work.computed);
    for (int64_t i = 0; i < 5 * c.n; i++)
        far = fmax(far, fabs(exp((double)scores[i]) - sum[i] / (double)votes[i / 5]));
    CHECKF(far < 2e-6, "%s, %d copies: probabilities are off by %g", name, copies, far);
    CHECKF(cell <= 0 || fragments > 2 * copies, "%s: %lld fragments", name, (long long)fragments);
    free(scores);
    free(sum);
    free(votes);
    free(weights);
    pnet_batch_free(b);
    cloud_free(&c);
    runner_end(n.runner);
    pnet_compilation_free(compilation);
}

int main(void)
{
    check_net("points", "  return cat(p.xyz, p.normal) -> linear(8) -> relu -> linear(5)", 0,
        PNET_VOTES_MOST);
    check_net("voxels",
        "  g = grid(p, 25cm * [1, 2])\n  a = cat(p.xyz, p.normal) -> pool(mean, to=g[0]) -> "
        "conv(8, kernel=3) -> relu\n"
        "  return a -> conv(8, kernel=2, to=g[1]) -> conv(5, kernel=2, to=g[0])",
        0.25, 13);
    check_net("one copy",
        "  g = grid(p, 40cm)\n  return p.normal -> pool(max, to=g) -> conv(5, kernel=3)", 0.4, 1);
    return check_end();
}
