/* Threads judge hypotheses in rounds. The best of a round does not depend on which thread judged which hypothesis, so
   neither does the result. */
#include "runtime/register/register.h"

#include <assert.h>
#include <math.h>
#include <omp.h>

#include "runtime/register/register_room.h"

enum { ROUND = 4096, LANES = 16, BLOCK = 1024, MOST_POINTS = 4, MOST_REFITS = 30 };

/* The pairs as columns, each side about its own centre, to keep float32 precise. Padding pairs are far apart. */
struct columns {
    int64_t count, padded;
    float *p[3], *q[3];
    double from[3], to[3];      /* the centres */
    struct pnet_match *inliers; /* [count] */
    size_t bytes;
};

static struct columns columns_take(void *work, int64_t count)
{
    struct room r = {.base = work};
    struct columns c = {.count = count, .padded = (count + LANES - 1) / LANES * LANES};
    for (int k = 0; k < 3; k++) {
        c.p[k] = room_take(&r, (size_t)c.padded * sizeof(float));
        c.q[k] = room_take(&r, (size_t)c.padded * sizeof(float));
    }
    c.inliers = room_take(&r, (size_t)count * sizeof *c.inliers);
    c.bytes = r.used;
    return c;
}

size_t pnet_register_ransac_work(int64_t pair_count)
{
    return columns_take(NULL, pair_count).bytes;
}

static void columns_fill(
    struct columns *c, const struct pnet_match *pairs, const float *source, const float *target)
{
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < c->count; i++) {
            c->from[k] += source[3 * (int64_t)pairs[i].source + k];
            c->to[k] += target[3 * (int64_t)pairs[i].target + k];
        }
        c->from[k] /= (double)c->count;
        c->to[k] /= (double)c->count;
        for (int64_t i = 0; i < c->count; i++) {
            c->p[k][i] = (float)(source[3 * (int64_t)pairs[i].source + k] - c->from[k]);
            c->q[k][i] = (float)(target[3 * (int64_t)pairs[i].target + k] - c->to[k]);
        }
        for (int64_t i = c->count; i < c->padded; i++) {
            c->p[k][i] = 0;
            c->q[k][i] = 1e18f;
        }
    }
}

/* A pose between the centred columns, in float32. */
struct centred {
    float r[9], t[3];
};

static struct centred centre(const struct columns *c, const double pose[16])
{
    struct centred m;
    for (int k = 0; k < 3; k++) {
        double t = pose[4 * k + 3] - c->to[k];
        for (int j = 0; j < 3; j++) {
            m.r[3 * k + j] = (float)pose[4 * k + j];
            t += pose[4 * k + j] * c->from[j];
        }
        m.t[k] = (float)t;
    }
    return m;
}

struct score {
    int64_t inliers, iteration; /* -1: no pose yet */
    double sum;                 /* of the squared distances of the inliers */
};

static bool better(struct score a, struct score b)
{
    if (b.iteration < 0) return a.iteration >= 0;
    if (a.inliers != b.inliers) return a.inliers > b.inliers;
    if (a.sum != b.sum) return a.sum < b.sum;
    return a.iteration < b.iteration;
}

static float distance2(const struct columns *c, const struct centred *m, int64_t i)
{
    float x = c->p[0][i], y = c->p[1][i], z = c->p[2][i];
    float dx = m->r[0] * x + m->r[1] * y + m->r[2] * z + m->t[0] - c->q[0][i];
    float dy = m->r[3] * x + m->r[4] * y + m->r[5] * z + m->t[1] - c->q[1][i];
    float dz = m->r[6] * x + m->r[7] * y + m->r[8] * z + m->t[2] - c->q[2][i];
    return dx * dx + dy * dy + dz * dz;
}

static struct score judge(
    const struct columns *c, const double pose[16], float limit2, int64_t iteration)
{
    struct centred m = centre(c, pose);
    struct score s = {.iteration = iteration};
    for (int64_t first = 0; first < c->padded; first += BLOCK) {
        int64_t end = first + BLOCK < c->padded ? first + BLOCK : c->padded;
        int inside = 0;
        float sum = 0;
#pragma omp simd reduction(+ : inside, sum)
        for (int64_t i = first; i < end; i++) {
            float d = distance2(c, &m, i);
            inside += d <= limit2;
            sum += d <= limit2 ? d : 0;
        }
        s.inliers += inside;
        s.sum += (double)sum;
    }
    return s;
}

/* Draws different pairs for one hypothesis: the k-th number counts among the pairs that are not drawn yet. */
static void draw(
    const struct pnet_ransac *o, int64_t iteration, int64_t count, int64_t drawn[MOST_POINTS])
{
    uint32_t bits[4];
    pnet_philox(&o->rand, (uint64_t)iteration, bits);
    for (int k = 0; k < o->points; k++) {
        int64_t at = (int64_t)((uint64_t)bits[k] * (uint64_t)(count - k) >> 32);
        int place = k;
        for (int j = 0; j < k; j++) at += drawn[j] <= at; /* drawn[] is in ascending order */
        for (; place > 0 && drawn[place - 1] > at; place--) drawn[place] = drawn[place - 1];
        drawn[place] = at;
    }
}

static double edge(float *const p[3], int64_t a, int64_t b)
{
    double x = p[0][a] - p[0][b], y = p[1][a] - p[1][b], z = p[2][a] - p[2][b];
    return sqrt(x * x + y * y + z * z);
}

static bool edges_agree(
    const struct columns *c, const struct pnet_ransac *o, const int64_t drawn[MOST_POINTS])
{
    for (int a = 0; a < o->points; a++)
        for (int b = a + 1; b < o->points; b++) {
            double from = edge(c->p, drawn[a], drawn[b]), to = edge(c->q, drawn[a], drawn[b]);
            if (from < o->similarity * to || to < o->similarity * from) return false;
        }
    return true;
}

struct problem {
    const struct pnet_match *pairs;
    const float *source, *target;
    const struct pnet_ransac *o;
    float limit2;
};

/* Computes the pose of one hypothesis. Returns false if a check refuses it. */
static bool hypothesis(
    const struct columns *c, const struct problem *b, int64_t iteration, double pose[16])
{
    int64_t drawn[MOST_POINTS];
    struct pnet_match pairs[MOST_POINTS];
    draw(b->o, iteration, c->count, drawn);
    if (!edges_agree(c, b->o, drawn)) return false;
    for (int k = 0; k < b->o->points; k++) pairs[k] = b->pairs[drawn[k]];
    if (!pnet_rigid_fit(b->o->points, pairs, b->source, b->target, pose)) return false;
    struct centred m = centre(c, pose);
    for (int k = 0; k < b->o->points; k++)
        if (!(distance2(c, &m, drawn[k]) <= b->limit2)) return false;
    return true;
}

/* The best result of one thread. */
struct found {
    struct score score;
    double pose[16];
};

static void round_of(const struct columns *c, const struct problem *b, int64_t first, int64_t end,
    struct score *best, double pose[16])
{
    enum { MOST_THREADS = 256 };
    struct found found[MOST_THREADS];
    int threads = omp_get_max_threads() < MOST_THREADS ? omp_get_max_threads() : MOST_THREADS;
    for (int n = 0; n < threads; n++) found[n] = (struct found){.score = {.iteration = -1}};
#pragma omp parallel num_threads(threads)
    {
        struct found *mine = &found[omp_get_thread_num()];
#pragma omp for schedule(dynamic, 64)
        for (int64_t i = first; i < end; i++) {
            double t[16];
            if (!hypothesis(c, b, i, t)) continue;
            struct score s = judge(c, t, b->limit2, i);
            if (!better(s, mine->score)) continue;
            mine->score = s;
            for (int k = 0; k < 16; k++) mine->pose[k] = t[k];
        }
    }
    for (int n = 0; n < threads; n++) {
        if (found[n].score.iteration < 0 || !better(found[n].score, *best)) continue;
        *best = found[n].score;
        for (int k = 0; k < 16; k++) pose[k] = found[n].pose[k];
    }
}

/* Returns the number of hypotheses after which, at the inlier ratio of the best pose, the chance that none was drawn from
   inliers alone is 1 - confidence. */
static double enough(const struct pnet_ransac *o, int64_t inliers, int64_t count)
{
    double all_in = pow((double)inliers / (double)count, o->points);
    if (o->confidence <= 0 || all_in <= 0) return INFINITY;
    return all_in >= 1 ? 1 : log(1 - o->confidence) / log1p(-all_in);
}

static void refit(struct columns *c, const struct problem *b, struct score *best, double pose[16])
{
    for (int pass = 0; pass < MOST_REFITS; pass++) {
        struct centred m = centre(c, pose);
        int64_t n = 0;
        double t[16];
        for (int64_t i = 0; i < c->count; i++)
            if (distance2(c, &m, i) <= b->limit2) c->inliers[n++] = b->pairs[i];
        if (!pnet_rigid_fit(n, c->inliers, b->source, b->target, t)) return;
        struct score s = judge(c, t, b->limit2, best->iteration);
        if (!better(s, *best)) return;
        *best = s;
        for (int k = 0; k < 16; k++) pose[k] = t[k];
    }
}

void pnet_register_ransac(int64_t pair_count, const struct pnet_match *pairs, const float *source,
    const float *target, const struct pnet_ransac *o, struct pnet_ransac_result *r, void *work)
{
    struct problem b = {pairs, source, target, o, (float)(o->distance * o->distance)};
    struct score best = {.iteration = -1};
    *r = (struct pnet_ransac_result){0};
    pnet_rigid_identity(r->pose);
    if (pair_count < o->points || o->points < 3 || o->points > MOST_POINTS) return;
    assert(work);
    struct columns c = columns_take(work, pair_count);
    columns_fill(&c, pairs, source, target);
    while (r->iterations < o->iterations &&
           (double)r->iterations < enough(o, best.inliers, pair_count)) {
        int64_t left = o->iterations - r->iterations;
        int64_t end = r->iterations + (left < ROUND ? left : ROUND);
        round_of(&c, &b, r->iterations, end, &best, r->pose);
        r->iterations = end;
    }
    if (best.iteration < 0) return;
    refit(&c, &b, &best, r->pose);
    r->found = true;
    r->inliers = best.inliers;
    r->rmse = best.inliers ? sqrt(best.sum / (double)best.inliers) : 0;
}
