/* Shapes: what the labels promise about the points. */
#include "runtime/synth/synth.h"
#include "runtime/synth/synth_models.h"
#include "tests/check.h"

static struct pnet_cloud make(uint32_t index, const struct pnet_synth_options *o, int *label)
{
    struct pnet_cloud c;
    struct pnet_error e = {0};
    CHECKF(pnet_synth_make(PNET_SYNTH_SHAPES, 11, index, o, &c, label, &e) == PNET_OK, "%s",
        e.message);
    return c;
}

static int class_of(const char *name)
{
    for (int i = 0; i < PNET_OBJECTS; i++)
        if (!strcmp(pnet_object_names[i], name)) return i;
    return -1;
}

static void box_of(const struct pnet_cloud *c, float low[3], float high[3])
{
    for (int k = 0; k < 3; k++) low[k] = high[k] = c->xyz[k];
    for (int64_t i = 0; i < 3 * c->rows; i++) {
        low[i % 3] = fminf(low[i % 3], c->xyz[i]);
        high[i % 3] = fmaxf(high[i % 3], c->xyz[i]);
    }
}

static void test_counts_and_extent(void)
{
    int count[PNET_OBJECTS] = {0}, last = -1, changes = 0;
    enum { RUNS = 6 };
    for (uint32_t n = 0; n < RUNS * PNET_OBJECTS; n++) {
        struct pnet_synth_options o = {.any_rotation = n & 1};
        int label;
        struct pnet_cloud c = make(n, &o, &label);
        float low[3], high[3], edge = 0;
        CHECK(label >= 0 && label < PNET_OBJECTS);
        count[label]++;
        changes += label != last + 1;
        last = label;
        CHECK(c.rows >= 1024 && c.rows <= 2048 && c.field_count == 3);
        bool finite = true, unit = true;
        for (int64_t i = 0; i < c.rows; i++) {
            double n2 = 0;
            for (int k = 0; k < 3; k++) {
                double x = pnet_field_get(&c.fields[k], i);
                finite = finite && isfinite(c.xyz[3 * i + k]);
                n2 += x * x;
            }
            unit = unit && fabs(n2 - 1) < 1e-4;
        }
        CHECK(finite && unit);
        box_of(&c, low, high);
        for (int k = 0; k < 3; k++) edge = fmaxf(edge, high[k] - low[k]);
        CHECKF(edge > 0.95f && edge < 2.3f, "%g", (double)edge);
        pnet_cloud_free(&c);
    }
    for (int k = 0; k < PNET_OBJECTS; k++) CHECK(count[k] == RUNS);
    CHECK(changes > PNET_OBJECTS); /* not in a fixed turn */
}

/* On clean clouds: |p| and the normal of a sphere; the faces of a cube; the ring of a torus. */
static void test_clean(void)
{
    const struct pnet_synth_options o = {.points = 2000, .clean = true};
    int seen = 0;
    for (uint32_t n = 0; n < 3 * PNET_OBJECTS; n++) {
        int label, on = 0, off = 0;
        struct pnet_cloud c = make(n, &o, &label);
        float low[3], high[3];
        box_of(&c, low, high);
        CHECK(c.rows == 2000);
        for (int64_t i = 0; i < c.rows; i++) {
            const float *p = c.xyz + 3 * i;
            float nx = (float)pnet_field_get(&c.fields[0], i),
                  ny = (float)pnet_field_get(&c.fields[1], i);
            float nz = (float)pnet_field_get(&c.fields[2], i), r = high[0];
            bool good = true;
            if (label == class_of("sphere")) {
                float along = (p[0] * nx + p[1] * ny + p[2] * nz) / r;
                good = fabsf(sqrtf(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) / r - 1) < 0.01f &&
                       along > 0.99f;
            } else if (label == class_of("cube")) {
                float most = fmaxf(fmaxf(fabsf(p[0]), fabsf(p[1])), fabsf(p[2]));
                good = fabsf(most / r - 1) < 0.01f && fabsf(nx) + fabsf(ny) + fabsf(nz) < 1.001f;
            } else if (label == class_of("torus")) {
                float tube = high[2], ring = r - tube,
                      from = sqrtf(p[0] * p[0] + p[1] * p[1]) - ring;
                good = fabsf(sqrtf(from * from + p[2] * p[2]) / tube - 1) < 0.05f;
            } else if (label == class_of("pyramid")) {
                good = nz > 0.1f || nz < -0.999f;
            } else {
                break;
            }
            on += good;
            off += !good;
        }
        seen += on > 0;
        CHECKF(off == 0, "%s %u: %d of %d points off", pnet_object_names[label], n, off, on + off);
        pnet_cloud_free(&c);
    }
    CHECK(seen == 12);
}

/* Points of a sphere lie on it evenly: each octant gets its eighth. */
static void test_even(void)
{
    const struct pnet_synth_options o = {.points = 40000, .clean = true};
    for (uint32_t n = 0; n < PNET_OBJECTS; n++) {
        int label, octant[8] = {0};
        struct pnet_cloud c = make(n, &o, &label);
        for (int64_t i = 0; i < c.rows; i++)
            octant[(c.xyz[3 * i] > 0) + 2 * (c.xyz[3 * i + 1] > 0) + 4 * (c.xyz[3 * i + 2] > 0)]++;
        for (int k = 0; k < 8 && label == class_of("sphere"); k++)
            CHECKF(abs(octant[k] - 5000) < 350, "%d", octant[k]);
        pnet_cloud_free(&c);
    }
}

/* Simple numbers about a cloud: flatness of the box, and the spread of distances from the centre.
 */
static void features(const struct pnet_cloud *c, double f[4])
{
    float low[3], high[3];
    box_of(c, low, high);
    double edge = 0, sum = 0, sum2 = 0;
    for (int k = 0; k < 3; k++) edge = fmax(edge, (double)(high[k] - low[k]));
    for (int64_t i = 0; i < c->rows; i++) {
        double r2 = 0;
        for (int k = 0; k < 3; k++) r2 += pow((double)(c->xyz[3 * i + k]), 2);
        sum += sqrt(r2);
        sum2 += r2;
    }
    double mean = sum / (double)c->rows;
    f[0] = (double)(high[2] - low[2]) / edge;
    f[1] = fmin((double)(high[0] - low[0]), (double)(high[1] - low[1])) / edge;
    f[2] = mean / edge;
    f[3] = sqrt(fmax(0, sum2 / (double)c->rows - mean * mean)) / edge;
}

/* The nearest class mean of such numbers beats chance, and is far from enough. */
static void test_neither_trivial_nor_noise(void)
{
    enum { CLOUDS = 20 * PNET_OBJECTS };
    static double f[CLOUDS][4];
    static int label[CLOUDS];
    double mean[PNET_OBJECTS][4] = {{0}};
    const struct pnet_synth_options o = {.points = 600};
    for (int n = 0; n < CLOUDS; n++) {
        struct pnet_cloud c = make((uint32_t)n, &o, &label[n]);
        features(&c, f[n]);
        pnet_cloud_free(&c);
        if (n < CLOUDS / 2)
            for (int k = 0; k < 4; k++) mean[label[n]][k] += f[n][k] * PNET_OBJECTS / (CLOUDS / 2);
    }
    int right = 0;
    for (int n = CLOUDS / 2; n < CLOUDS; n++) {
        int best = 0;
        double least = 1e9;
        for (int m = 0; m < PNET_OBJECTS; m++) {
            double far = 0;
            for (int k = 0; k < 4; k++) far += pow(f[n][k] - mean[m][k], 2) * (k < 2 ? 1 : 16);
            if (far < least) {
                least = far;
                best = m;
            }
        }
        right += best == label[n];
    }
    double share = right / (CLOUDS / 2.0);
    CHECKF(share > 2.0 / PNET_OBJECTS && share < 0.75, "%g", share);
}

int main(void)
{
    test_counts_and_extent();
    test_clean();
    test_even();
    test_neither_trivial_nor_noise();
    return check_end();
}
