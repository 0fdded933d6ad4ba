/* The auction against exact assignments, against the same auction without its memory of the best objects, and against the
   greedy completion by its definition. */
#include "kernels/conv.h"
#include "kernels/emd.h"
#include "tests/sets/assign_exact.h"
#include "tests/kernels/set_case.h"

#include <float.h>
#include <time.h>

static int32_t *assign_as(
    const struct set_case *c, double eps, int32_t rounds, bool complete, bool scaled)
{
    struct pnet_emd e = {c->pair, eps, rounds, complete, scaled, .tell = scaled};
    size_t bytes = pnet_cpu_emd_assign_work(&e);
    void *work = set_work(bytes);
    int32_t *partner = set_take((size_t)c->pair.x.rows.most * sizeof *partner);
    pnet_cpu_emd_assign(&e, partner, work);
    set_work_end(work, bytes);
    return partner;
}

static int32_t *assign(const struct set_case *c, double eps, int32_t rounds, bool complete)
{
    return assign_as(c, eps, rounds, complete, false);
}

static double mean_of(const struct set_case *c, const int32_t *partner)
{
    double mean[SETS_MOST];
    float loss;
    pnet_cpu_emd(&c->pair, partner, mean, &loss);
    CHECK((double)loss == (double)(float)mean[0]);
    return mean[0];
}

static float distance(const struct set_case *c, int64_t i, int64_t j)
{
    const float *x = c->xyz[0] + 3 * i, *y = c->xyz[1] + 3 * j;
    float dx = x[0] - y[0], dy = x[1] - y[1], dz = x[2] - y[2];
    volatile float a = dx * dx, b = dy * dy, d = dz * dz; /* each rounded */
    volatile float sum = a + b;
    return sqrtf(sum + d);
}

static void check_whole(const char *what, const int32_t *partner, int64_t n)
{
    char *taken = calloc((size_t)n + 1, 1);
    bool whole = true;
    for (int64_t i = 0; i < n && whole; i++) {
        whole = partner[i] >= 0 && partner[i] < n && !taken[partner[i]];
        if (whole) taken[partner[i]] = 1;
    }
    CHECKF(whole, "%s: not every person has an object of its own", what);
    free(taken);
}

enum shape {
    RANDOM,
    COLLAPSED,
    LATTICE,
    TWINS,
    FAR,
    NEAR,
    SHAPES,
    EQUAL = SHAPES, /* both in one place */
    CLOSE,          /* x within a thousandth of one place */
    FLOWN,          /* x at the distance 10, and far less wide */
    CURVE,          /* x on a curve */
    HALF,           /* half of x in one place */
    SURFACES,       /* both on a sphere */
    ALL_SHAPES
};
static const char *const names[] = {"random", "collapsed", "lattice", "twins", "far", "near",
    "equal", "close", "flown", "curve", "half", "surfaces"};

static void shape_point(enum shape shape, int side, int64_t i, float *p)
{
    float t = p[0], norm = sqrtf((p[0] * p[0] + p[1] * p[1]) + p[2] * p[2]) + 1e-9f;
    for (int k = 0; k < 3; k++) {
        float at = 0.25f * (float)k;
        if (shape == EQUAL) p[k] = at;
        if (side == 1 && shape >= CLOSE) p[k] /= norm;
        if (side == 1 || shape < CLOSE) continue;
        if (shape == CLOSE) p[k] = at + 0.001f * p[k];
        if (shape == FLOWN) p[k] = 0.01f * p[k] + (k == 1 ? 10 : 0);
        if (shape == CURVE) p[k] = k == 0 ? t : k == 1 ? cosf(4 * t) : sinf(3 * t);
        if (shape == HALF) p[k] = i % 2 ? p[k] / norm : at;
        if (shape == SURFACES) p[k] /= norm;
    }
}

/* Sets with many ties, and sets that bid for the same. */
static struct set_case *make(enum shape shape, int64_t n, uint32_t seed)
{
    struct set_case *c = set_case_of(n, n, seed);
    for (int64_t i = 0; i < 3 * n; i++) {
        if (shape == COLLAPSED) c->xyz[0][i] = c->xyz[0][i % 3];
        if (shape == TWINS) c->xyz[0][i] = c->xyz[1][i / 6 * 3 + i % 3];
        if (shape == NEAR) c->xyz[0][i] = c->xyz[1][i] + 0.01f * c->xyz[0][i];
        for (int k = 0; k < 2 && shape == LATTICE; k++) c->xyz[k][i] = floorf(4 * c->xyz[k][i]);
    }
    for (int64_t i = 0; i < n && shape >= SHAPES; i++)
        for (int k = 0; k < 2; k++) shape_point(shape, k, i, c->xyz[k] + 3 * i);
    if (shape == FAR) set_case_move(c, 1, 1e4f, 0, 0);
    return c;
}

static void test_optimum(void)
{
    const int64_t sizes[] = {1, 2, 3, 15, 16, 17, 64};
    const double eps = 0.002;
    for (enum shape shape = 0; shape < SHAPES; shape++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (uint32_t seed = 0; seed < 4; seed++) {
                struct set_case *c = make(shape, sizes[k], seed);
                int32_t *partner = assign(c, eps, 100000, false);
                double got = mean_of(c, partner),
                       best = assign_exact(sizes[k], c->xyz[0], c->xyz[1]);
                double rounding =
                    shape == FAR ? 1e-2
                                 : 1e-5; /* float32 at a distance of 10^4, added up over prices */
                check_whole(names[shape], partner, sizes[k]);
                CHECKF(got <= best + eps + rounding && got >= best - rounding,
                    "%s, %lld: %g, best %g", names[shape], (long long)sizes[k], got, best);
                free(partner);
                set_case_free(c);
            }
}

/* A scaled auction with the defaults of the metric `completion` assigns everybody, to within eps of the optimum. */
static void test_scaled(void)
{
    const int64_t sizes[] = {1, 2, 17, 64, 255, 256, 600};
    const double eps = 0.002;
    for (enum shape shape = 0; shape < ALL_SHAPES; shape++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            struct set_case *c = make(shape, sizes[k], 11);
            int32_t *partner = assign_as(c, eps, 20000, false, true);
            double got = mean_of(c, partner), best = assign_exact(sizes[k], c->xyz[0], c->xyz[1]);
            double rounding = shape == FAR ? 1e-2 : 1e-5;
            check_whole(names[shape], partner, sizes[k]);
            CHECKF(got <= best + eps + rounding && got >= best - rounding,
                "scaled, %s, %lld: %g, best %g", names[shape], (long long)sizes[k], got, best);
            free(partner);
            set_case_free(c);
        }
}

/* Points that bid for the same: so few rounds that an auction of one phase leaves many without an object. */
static void test_degenerate(void)
{
    static const struct {
        enum shape shape;
        int32_t rounds;
        bool alone; /* do the phases alone suffice? */
    } of[] = {{EQUAL, 300, true}, {COLLAPSED, 600, true}, {CLOSE, 3000, true}, {FLOWN, 3000, true},
        {CURVE, 10000, false}, {HALF, 10000, false}, {SURFACES, 20000, false}};
    const int64_t n = 1024;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        struct set_case *c = make(of[k].shape, n, 3);
        int32_t *partner = assign_as(c, 0.002, of[k].rounds, false, true);
        check_whole(names[of[k].shape], partner, n);
        free(partner);
        if (of[k].alone) {
            int64_t left = 0;
            partner = assign(c, 0.002, of[k].rounds, false);
            for (int64_t i = 0; i < n; i++) left += partner[i] < 0;
            CHECKF(left > 0, "%s: phases are not needed", names[of[k].shape]);
            free(partner);
        }
        set_case_free(c);
    }
}

static double diagonal(const struct set_case *c, int64_t n)
{
    double square = 0;
    for (int a = 0; a < 3; a++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < 2 * n; i++) {
            double v = (double)c->xyz[i / n][3 * (i % n) + a];
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        square += (high - low) * (high - low);
    }
    return sqrt(square);
}

/* The hash of kernels/emd.h, written down once more. */
static uint32_t shift_of(uint32_t person, uint32_t round)
{
    uint32_t h = person * 2654435761u ^ round * 2246822519u;
    h ^= h >> 15;
    h *= 739982445u;
    h ^= h >> 12;
    h *= 695872825u;
    return h ^ (h >> 15);
}

/* The scaled auction by its definition. Persons who are left have -1. */
static void plain_scaled(
    const struct set_case *c, int64_t n, float eps, int32_t rounds, int32_t *partner)
{
    float *price = calloc((size_t)n, sizeof *price), *bid = calloc((size_t)n, sizeof *bid),
          *v = calloc((size_t)n, sizeof *v);
    int32_t *bidder = calloc((size_t)n, sizeof *bidder);
    int phase = 0;
    int64_t left = n;
    while ((double)eps * pow(4, phase + 1) <= diagonal(c, n) / 8) phase++;
    for (int64_t i = 0; i < n; i++) partner[i] = -1;
    for (int32_t round = 0; round < rounds; round++) {
        float step = eps * powf(4, (float)phase), inverse = 2 / step;
        bool crowded = left > n / 1024;
        for (int64_t j = 0; j < n; j++) bidder[j] = -1;
        for (int64_t i = 0; i < n; i++) {
            if (partner[i] >= 0) continue;
            int64_t best = 0;
            float second = INFINITY;
            for (int64_t j = 0; j < n; j++) {
                v[j] = distance(c, i, j) + price[j];
                if (v[j] < v[best]) best = j;
            }
            int64_t chosen = crowded ? -1 : best;
            for (int64_t j = 0; j < n && crowded; j++) {
                uint32_t shift = shift_of((uint32_t)i, (uint32_t)round);
                if (truncf(v[j] * inverse) != truncf(v[best] * inverse)) continue;
                if (chosen < 0 ||
                    (uint32_t)j * 2654435761u + shift < (uint32_t)chosen * 2654435761u + shift)
                    chosen = j;
            }
            for (int64_t j = 0; j < n; j++)
                if (j != chosen) second = fminf(second, v[j]);
            float offer = price[chosen] + (second == INFINITY ? 0 : second - v[chosen]) + step;
            if (!(offer > price[chosen])) offer = nextafterf(price[chosen], INFINITY);
            if (bidder[chosen] >= 0 && offer <= bid[chosen]) continue;
            bid[chosen] = offer;
            bidder[chosen] = (int32_t)i;
        }
        for (int64_t i = 0; i < n; i++)
            if (partner[i] >= 0 && bidder[partner[i]] >= 0) partner[i] = -1;
        for (int64_t j = 0; j < n; j++) {
            if (bidder[j] < 0) continue;
            price[j] = bid[j];
            partner[bidder[j]] = (int32_t)j;
        }
        left = 0;
        for (int64_t i = 0; i < n; i++) left += partner[i] < 0;
        if (phase == 0 || left > n / 1024) continue;
        phase--;
        left = n;
        for (int64_t i = 0; i < n; i++) partner[i] = -1;
    }
    free(price);
    free(bid);
    free(v);
    free(bidder);
}

/* The auction by its definition: every bid looks at all objects. */
static void plain_auction(
    const struct set_case *c, int64_t n, double eps, int32_t rounds, int32_t *partner)
{
    float *price = calloc((size_t)n, sizeof *price), *bid = calloc((size_t)n, sizeof *bid);
    int32_t *holder = calloc((size_t)n, sizeof *holder),
            *bidder = calloc((size_t)n, sizeof *bidder);
    for (int64_t i = 0; i < n; i++) partner[i] = holder[i] = -1;
    for (int32_t round = 0; round < rounds; round++) {
        for (int64_t j = 0; j < n; j++) bidder[j] = -1;
        for (int64_t i = 0; i < n; i++) {
            if (partner[i] >= 0) continue;
            float least = INFINITY, second = INFINITY;
            int64_t best = 0;
            for (int64_t j = 0; j < n; j++) {
                float v = distance(c, i, j) + price[j];
                second = v < least ? least : fminf(second, v);
                best = v < least ? j : best;
                least = fminf(least, v);
            }
            float offer = price[best] + (second == INFINITY ? 0 : second - least) + (float)eps;
            if (!(offer > price[best])) offer = nextafterf(price[best], INFINITY);
            if (bidder[best] >= 0 && offer <= bid[best]) continue;
            bid[best] = offer;
            bidder[best] = (int32_t)i;
        }
        for (int64_t j = 0; j < n; j++) {
            if (bidder[j] < 0) continue;
            if (holder[j] >= 0) partner[holder[j]] = -1;
            holder[j] = bidder[j];
            partner[bidder[j]] = (int32_t)j;
            price[j] = bid[j];
        }
    }
    free(price);
    free(bid);
    free(holder);
    free(bidder);
}

/* Completes by the definition: the pair of least (distance, person, object), again and again. */
static void plain_complete(const struct set_case *c, int64_t n, int32_t *partner)
{
    char *taken = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++)
        if (partner[i] >= 0) taken[partner[i]] = 1;
    for (;;) {
        float least = INFINITY;
        int64_t person = -1, object = -1;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n && partner[i] < 0; j++)
                if (!taken[j] && distance(c, i, j) < least) {
                    least = distance(c, i, j);
                    person = i;
                    object = j;
                }
        if (person < 0) break;
        partner[person] = (int32_t)object;
        taken[object] = 1;
    }
    free(taken);
}

/* The same partners as by the definition, from every instruction set and number of threads: sizes above the number of
   objects that a person remembers (256). */
static void test_definition(void)
{
    const int64_t sizes[] = {5, 64, 301};
    const int32_t rounds[] = {1, 50, 1000};
    const char *const sets[] = {"base", "avx2", "avx512"};
    for (enum shape shape = 0; shape < SHAPES; shape++)
        for (int k = 0; k < 3; k++)
            for (int r = 0; r < 3; r++) {
                int64_t n = sizes[k];
                struct set_case *c = make(shape, n, 7);
                int32_t *want = set_take((size_t)n * sizeof *want);
                plain_auction(c, n, 0.005, rounds[r], want);
                for (int complete = 0; complete < 2; complete++) {
                    if (complete) plain_complete(c, n, want);
                    for (int variant = 0; variant < 3; variant++) {
                        pnet_cpu_isa_limit(sets[variant]);
                        omp_set_num_threads(variant + 1);
                        int32_t *got = assign(c, 0.005, rounds[r], complete);
                        CHECKF(memcmp(got, want, (size_t)n * sizeof *want) == 0,
                            "%s, %lld, %d rounds, completed %d, %s: other partners", names[shape],
                            (long long)n, rounds[r], complete, sets[variant]);
                        free(got);
                    }
                }
                free(want);
                set_case_free(c);
            }
    pnet_cpu_isa_limit(NULL);
    omp_set_num_threads(2);
}

/* The same of the scaled auction, which tells who was left; in the range of eps that has no phase but the last one, too. */
static void test_definition_scaled(void)
{
    static const struct {
        int64_t n;
        float eps;
        int32_t rounds;
        enum shape shape; /* only this one; ALL_SHAPES: each */
    } of[] = {{5, 0.005f, 50, ALL_SHAPES}, {64, 0.005f, 7, ALL_SHAPES},
        {64, 0.002f, 5000, ALL_SHAPES}, {301, 0.002f, 40, ALL_SHAPES},
        {301, 0.1f, 3000, ALL_SHAPES}, {301, 100, 2, ALL_SHAPES},
        {600, 0.01f, 3000, ALL_SHAPES}, /* more than 1,024: phases that leave persons */
        {1100, 0.01f, 3000, SURFACES}, {1100, 0.01f, 3000, CURVE}, {2100, 0.01f, 3000, RANDOM}};
    const char *const sets[] = {"base", "avx2", "avx512"};
    for (enum shape shape = 0; shape < ALL_SHAPES; shape++)
        for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
            int64_t n = of[k].n;
            if (of[k].shape != ALL_SHAPES && of[k].shape != shape) continue;
            struct set_case *c = make(shape, n, 7);
            int32_t *want = set_take((size_t)n * sizeof *want),
                    *done = set_take((size_t)n * sizeof *done);
            plain_scaled(c, n, of[k].eps, of[k].rounds, want);
            memcpy(done, want, (size_t)n * sizeof *want);
            plain_complete(c, n, done);
            for (int64_t i = 0; i < n; i++)
                if (want[i] < 0) done[i] = -2 - done[i];
            for (int variant = 0; variant < 6; variant++) {
                bool complete = variant >= 3;
                pnet_cpu_isa_limit(sets[variant % 3]);
                omp_set_num_threads(variant % 3 + 1);
                int32_t *got = assign_as(c, (double)of[k].eps, of[k].rounds, complete, true);
                CHECKF(memcmp(got, complete ? done : want, (size_t)n * sizeof *want) == 0,
                    "scaled, %s, %lld, eps %g, %d rounds, completed %d, %s: other partners",
                    names[shape], (long long)n, (double)of[k].eps, of[k].rounds, complete,
                    sets[variant % 3]);
                free(got);
            }
            free(done);
            free(want);
            set_case_free(c);
        }
    pnet_cpu_isa_limit(NULL);
    omp_set_num_threads(2);
}

/* With many points a person remembers few objects; what a batch holds beside a sample changes nothing. */
static void test_batch(bool scaled)
{
    const int64_t sizes[] = {700, 0, 1, 33, 0, 700, 2100};
    struct set_case *c = set_case_new(7, sizes, sizes, 3);
    for (int64_t i = 0; i < 3 * 700; i++) c->xyz[0][i] *= 0.01f; /* the first sample bids long */
    int32_t *whole = assign_as(c, 0.005, scaled ? 20000 : 30, true, scaled);
    check_whole("batch", whole, c->splits[0][7]);
    for (int32_t s = 0; s < 7; s++) {
        int64_t n = sizes[s], begin = c->splits[0][s];
        struct set_case *one = set_case_of(n, n, 0);
        for (int k = 0; k < 2; k++)
            memcpy(one->xyz[k], c->xyz[k] + 3 * begin, (size_t)n * 3 * sizeof(float));
        int32_t *alone = assign_as(one, 0.005, scaled ? 20000 : 30, true, scaled);
        bool same = true;
        for (int64_t i = 0; i < n; i++) same &= whole[begin + i] == alone[i] + begin;
        CHECKF(same, "sample %d has other partners alone", s);
        free(alone);
        set_case_free(one);
    }
    free(whole);
    set_case_free(c);
}

/* So many points that a person remembers the least number of objects; those of one sample lie together and bid for the same. */
static void test_many(void)
{
    int64_t sizes[SETS_MOST] = {0};
    for (int s = 0; s < SETS_MOST; s++) sizes[s] = 20000;
    sizes[SETS_MOST - 1] = 301;
    struct set_case *c = set_case_new(SETS_MOST, sizes, sizes, 5);
    for (int s = 0; s + 1 < SETS_MOST; s++) /* of no assignment, so that they take no time */
        c->xyz[0][3 * c->splits[0][s]] = NAN;
    int64_t begin = c->splits[0][SETS_MOST - 1];
    for (int64_t i = 3 * begin; i < 3 * (begin + 301); i++) c->xyz[0][i] *= 0.1f;
    int32_t *whole = assign(c, 0.005, 800, true);
    struct set_case *one = set_case_of(301, 301, 0);
    for (int k = 0; k < 2; k++) memcpy(one->xyz[k], c->xyz[k] + 3 * begin, 3 * 301 * sizeof(float));
    int32_t *want = set_take(301 * sizeof *want);
    plain_auction(one, 301, 0.005, 800, want);
    plain_complete(one, 301, want);
    bool same = true;
    for (int64_t i = 0; i < 301; i++) same &= whole[begin + i] == want[i] + begin;
    CHECKF(same, "other partners where a person remembers few objects");
    free(want);
    free(whole);
    set_case_free(one);
    set_case_free(c);
}

/* Samples without an assignment: NaN where both sets are there, 0 where one is empty. */
static void test_none(void)
{
    const int64_t n[] = {3, 3, 0, 4, 3, 3}, m[] = {3, 0, 3, 3, 3, 3};
    const float bad[] = {NAN, INFINITY, 1e30f};
    for (int k = 0; k < 3; k++) {
        struct set_case *c = set_case_new(6, n, m, 1);
        double mean[6];
        float loss;
        c->xyz[0][3 * c->splits[0][4] + 1] = bad[k];
        c->xyz[1][3 * c->splits[1][5] + 8] = bad[k];
        int32_t *partner = assign(c, 0.005, 50, true);
        pnet_cpu_emd(&c->pair, partner, mean, &loss);
        CHECK(mean[0] > 0 && mean[1] == 0 && mean[2] == 0);
        CHECK(isnan(mean[3]) && isnan(mean[4]) && isnan(mean[5]) && isnan(loss));
        for (int64_t i = c->splits[0][1]; i < c->splits[0][6]; i++) CHECK(partner[i] == -1);
        float one = 1, gx[16 * 3], gy[15 * 3];
        struct pnet_set_gradients g = {gx, gy, false, false};
        memset(gx, 0x7f, sizeof gx);
        memset(gy, 0x7f, sizeof gy);
        pnet_cpu_emd_backward(&c->pair, partner, &one, &g);
        for (int64_t i = 0; i < 3 * c->splits[0][6]; i++)
            CHECK(i < 9 ? isfinite(gx[i]) : i < 18 ? gx[i] == 0 : isnan(gx[i]));
        for (int64_t i = 0; i < 3 * c->splits[1][6]; i++)
            CHECK(i < 9 ? isfinite(gy[i]) : i < 18 ? gy[i] == 0 : isnan(gy[i]));
        free(partner);
        set_case_free(c);
    }
    struct set_case *none = set_case_new(0, n, m, 1);
    float loss = 1;
    int32_t *partner = assign(none, 0.005, 50, true);
    pnet_cpu_emd(&none->pair, partner, NULL, &loss);
    CHECK(loss == 0);
    free(partner);
    set_case_free(none);
}

/* Gradients against central differences with the partners held. */
static void test_gradient(void)
{
    const int64_t n[] = {20, 0, 7};
    struct set_case *c = set_case_new(3, n, n, 9);
    for (int a = 0; a < 3; a++) c->xyz[0][a] = c->xyz[1][a]; /* on its partner */
    int32_t *partner = assign(c, 0.001, 1000, true);
    CHECK(partner[0] == 0);
    enum { ALL = 27 * 3 };
    float g[2][ALL], seed = 1.5f;
    for (int k = 0; k < ALL; k++) g[0][k] = g[1][k] = 0.25f;
    struct pnet_set_gradients to = {g[0], g[1], false, true};
    pnet_cpu_emd_backward(&c->pair, partner, &seed, &to);
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < ALL; k++) {
            double mean[3], value[2], at[2];
            float kept = c->xyz[side][k];
            for (int sign = 0; sign < 2; sign++) {
                c->xyz[side][k] = sign ? kept + 1e-4f : kept - 1e-4f;
                at[sign] = (double)c->xyz[side][k];
                pnet_cpu_emd(&c->pair, partner, mean, NULL);
                value[sign] = (mean[0] + mean[1] + mean[2]) / 3;
            }
            c->xyz[side][k] = kept;
            double want = 1.5 * (value[1] - value[0]) / (at[1] - at[0]) + (side ? 0.25 : 0);
            CHECKF(fabs((double)g[side][k] - want) < 2e-5, "side %d, element %d: %g, not %g", side,
                k, (double)g[side][k], want);
        }
    free(partner);
    set_case_free(c);
}

/* Memory is planned for the capacity class of a batch: fewer points never need more. */
static void test_work(void)
{
    struct pnet_emd e = {.eps = 1, .rounds = 1};
    size_t before = 0;
    bool grows = true;
    for (int64_t n = 0; n < 200000 && grows; n++) {
        e.sets.x = e.sets.y = (struct pnet_point_set){.rows = pnet_count(n), .samples = 3};
        size_t bytes = pnet_cpu_emd_assign_work(&e);
        grows = bytes >= before;
        CHECKF(grows, "%lld points need %zu bytes, fewer %zu", (long long)n, bytes, before);
        before = bytes;
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The auction of the metric `completion`, and that of one phase, each for so many rounds at most. */
static void print_times(int64_t n, bool scaled, int32_t rounds, const char *name)
{
    for (enum shape shape = 0; shape < ALL_SHAPES; shape++) {
        if (name ? strcmp(name, names[shape]) != 0
                 : shape == LATTICE || shape == TWINS || shape == FAR)
            continue;
        struct set_case *c = make(shape, n, 1);
        double begin = seconds();
        int32_t *partner = assign_as(c, 0.002, rounds, false, scaled), left = 0;
        double took = seconds() - begin;
        for (int64_t i = 0; i < n; i++) left += partner[i] < 0;
        printf("%lld points, %s, %s: %.3f s of CPU time, %d left by %d rounds\n", (long long)n,
            names[shape], scaled ? "scaled" : "one phase", took, left, rounds);
        fflush(stdout);
        free(partner);
        set_case_free(c);
    }
}

/* With `time`, prints times alone: test_emd time [POINTS [ROUNDS [scaled|one [SHAPE]]]]. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "time") == 0) {
        print_times(argc > 2 ? atoll(argv[2]) : 4096, argc <= 4 || strcmp(argv[4], "scaled") == 0,
            argc > 3 ? (int32_t)atoll(argv[3]) : 100000, argc > 5 ? argv[5] : NULL);
        return 0;
    }
    omp_set_num_threads(2);
    test_optimum();
    test_scaled();
    test_degenerate();
    test_definition();
    test_definition_scaled();
    test_batch(false);
    test_batch(true);
    test_many();
    test_none();
    test_gradient();
    test_work();
    return check_end();
}
