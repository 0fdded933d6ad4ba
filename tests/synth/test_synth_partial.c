/* Objects for completion: the full cloud is centred and scaled, the partial one is a part of the same surface, bits depend
   on seed and number alone. */
#include "runtime/synth/synth.h"
#include "tests/check.h"

enum { POINTS = 3000 };

static struct pnet_synth_pair make(uint64_t seed, uint32_t index, bool clean, int *label)
{
    struct pnet_synth_options o = {.points = POINTS, .clean = clean};
    struct pnet_synth_pair p;
    struct pnet_error e = {.message = ""};
    CHECKF(!pnet_synth_make_partial(seed, index, &o, &p, label, &e), "%s", e.message);
    return p;
}

static double length2(const float *p)
{
    double x = (double)p[0], y = (double)p[1], z = (double)p[2];
    return x * x + y * y + z * z;
}

/* The share of points of `a` that have no point of `b` within `near`. */
static double apart(const struct pnet_cloud *a, const struct pnet_cloud *b, double near, int step)
{
    int far = 0, all = 0;
    for (int64_t i = 0; i < a->rows; i += step, all++) {
        double best = INFINITY;
        for (int64_t k = 0; k < b->rows; k++) {
            float d[3];
            for (int c = 0; c < 3; c++) d[c] = a->xyz[3 * i + c] - b->xyz[3 * k + c];
            best = fmin(best, length2(d));
        }
        far += best > near * near;
    }
    return (double)far / all;
}

static void test_objects(void)
{
    int times[12] = {0}, one_sided = 0;
    for (uint32_t i = 0; i < 24; i++) {
        int label = -1, again;
        struct pnet_synth_pair p = make(3, i, false, &label), q = make(3, i, false, &again);
        double mean[3] = {0, 0, 0}, most = 0;
        CHECK(label >= 0 && label < 12 && label == again);
        times[label]++;
        CHECK(p.target.rows == POINTS && !p.target.field_count);
        for (int64_t k = 0; k < 3 * p.target.rows; k++)
            mean[k % 3] += (double)p.target.xyz[k] / POINTS;
        for (int64_t k = 0; k < p.target.rows; k++)
            most = fmax(most, length2(p.target.xyz + 3 * k));
        for (int c = 0; c < 3; c++) CHECKF(fabs(mean[c]) < 1e-5, "%g", mean[c]);
        CHECKF(fabs(most - 1) < 1e-5, "%g", most);
        CHECKF(p.source.rows > 200 && p.source.rows < 160 * 120, "%d", (int)p.source.rows);
        /* some 2 square metres at 3,000 points: neighbours are 4 cm apart */
        double stray = apart(&p.source, &p.target, 0.15, 17);
        CHECKF(stray < 0.005, "label %d: %g of the partial cloud is far from the full one", label,
            stray);
        one_sided += apart(&p.target, &p.source, 0.15, 17) > 0.1;
        CHECK(p.source.rows == q.source.rows &&
              memcmp(p.source.xyz, q.source.xyz, (size_t)p.source.rows * 12) == 0);
        CHECK(memcmp(p.target.xyz, q.target.xyz, POINTS * 12) == 0);
        pnet_synth_pair_free(&p);
        pnet_synth_pair_free(&q);
    }
    for (int k = 0; k < 12; k++) CHECKF(times[k] == 2, "label %d: %d", k, times[k]);
    CHECKF(one_sided >= 18, "%d", one_sided); /* the camera sees one side of most */
}

/* The centre of the sphere through four points. */
static void find_centre(const float *p[4], double centre[3])
{
    double m[3][4];
    for (int i = 0; i < 3; i++) {
        for (int c = 0; c < 3; c++) m[i][c] = 2 * ((double)p[i + 1][c] - (double)p[0][c]);
        m[i][3] = length2(p[i + 1]) - length2(p[0]);
    }
    for (int k = 0; k < 3; k++) {
        int best = k;
        for (int i = k; i < 3; i++)
            if (fabs(m[i][k]) > fabs(m[best][k])) best = i;
        for (int c = 0; c < 4; c++) {
            double swap = m[k][c];
            m[k][c] = m[best][c];
            m[best][c] = swap;
        }
        for (int i = 0; i < 3; i++) {
            double f = i == k ? 0 : m[i][k] / m[k][k];
            for (int c = 0; c < 4; c++) m[i][c] -= f * m[k][c];
        }
    }
    for (int c = 0; c < 3; c++) centre[c] = m[c][3] / m[c][c];
}

/* A sphere, not stretched: all points lie on it, those of the camera at most a chord below, and within a cap. */
static void test_sphere(void)
{
    for (uint32_t i = 0; i < 12; i++) {
        int label;
        struct pnet_synth_pair p = make(5, i, true, &label);
        if (label == 0) {
            const float *four[4] = {p.target.xyz, p.target.xyz, p.target.xyz, p.target.xyz};
            double centre[3], radius = 0, sum[3] = {0, 0, 0};
            for (int64_t k = 0; k < p.target.rows; k++) {
                const float *at = p.target.xyz + 3 * k;
                if (at[0] > four[0][0]) four[0] = at;
                if (at[1] > four[1][1]) four[1] = at;
                if (at[2] > four[2][2]) four[2] = at;
                if (at[0] + at[1] + at[2] < four[3][0] + four[3][1] + four[3][2]) four[3] = at;
            }
            find_centre(four, centre);
            for (int c = 0; c < 3; c++) radius += pow((double)four[0][c] - centre[c], 2);
            radius = sqrt(radius);
            for (int side = 0; side < 2; side++) {
                const struct pnet_cloud *c = side ? &p.target : &p.source;
                for (int64_t k = 0; k < c->rows; k++) {
                    double r = 0;
                    for (int n = 0; n < 3; n++) r += pow((double)c->xyz[3 * k + n] - centre[n], 2);
                    r = sqrt(r) - radius;
                    CHECKF(r < 2e-6 && r > (side ? -2e-6 : -5e-4), "%g", r);
                    for (int n = 0; n < 3 && !side; n++)
                        sum[n] += ((double)c->xyz[3 * k + n] - centre[n]) / (double)c->rows;
                }
            }
            /* the cap that an eye at the distance 2 sees: angles up to 60 degrees, evenly by pixels */
            double off = sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);
            CHECKF(off > 0.7 && off < 0.9, "%g", off);
        }
        pnet_synth_pair_free(&p);
    }
}

static void test_refused(void)
{
    struct pnet_synth_options few = {.points = 10}, street = {.street = true};
    struct pnet_synth_pair p;
    struct pnet_cloud c;
    struct pnet_error e;
    int label;
    CHECK(pnet_synth_make_partial(1, 0, &few, &p, &label, &e) == PNET_USAGE && !p.source.xyz);
    CHECK(pnet_synth_make_partial(1, 0, &street, &p, &label, &e) == PNET_USAGE);
    CHECK(pnet_synth_make(PNET_SYNTH_PARTIAL, 1, 0, &(struct pnet_synth_options){0}, &c, &label,
              &e) == PNET_USAGE);
    int count;
    CHECK(pnet_synth_classes(PNET_SYNTH_PARTIAL, &count) && count == 12);
    CHECK_STR(pnet_synth_kind_name(PNET_SYNTH_PARTIAL), "partial");
}

int main(void)
{
    test_objects();
    test_sphere();
    test_refused();
    return check_end();
}
