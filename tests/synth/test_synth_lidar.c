/* Street scans: the scanner's geometry, the labels against height, bits against threads. */
#include "runtime/synth/synth.h"
#include "runtime/synth/synth_models.h"
#include "tests/check.h"

#include <time.h>

static struct pnet_cloud make(uint64_t seed, uint32_t index, const struct pnet_synth_options *o)
{
    struct pnet_cloud c;
    struct pnet_error e = {0};
    CHECKF(pnet_synth_make(PNET_SYNTH_LIDAR, seed, index, o, &c, NULL, &e) == PNET_OK, "%s",
        e.message);
    return c;
}

static const void *data(const struct pnet_cloud *c, const char *name, enum pnet_scalar type)
{
    const struct pnet_field *f = pnet_cloud_field(c, name);
    CHECK(f && f->type == type);
    return f ? f->data : NULL;
}

static void test_bits(void)
{
    struct pnet_synth_options o = {.threads = 1}, many = {.threads = 3};
    struct pnet_cloud a = make(3, 5, &o), b = make(3, 5, &many), other = make(3, 6, &o);
    CHECK(a.rows == b.rows && !memcmp(a.xyz, b.xyz, (size_t)a.rows * 12));
    for (int k = 0; k < 3; k++)
        CHECK(!memcmp(a.fields[k].data, b.fields[k].data,
            (size_t)a.rows * pnet_scalar_size(a.fields[k].type)));
    CHECK(a.rows != other.rows || memcmp(a.xyz, other.xyz, (size_t)a.rows * 12) != 0);
    pnet_cloud_free(&a);
    pnet_cloud_free(&b);
    pnet_cloud_free(&other);
}

static void test_counts(void)
{
    static const int64_t asked[] = {2000, 30000, 120000, 500000};
    for (int i = 0; i < 4; i++) {
        struct pnet_synth_options o = {.points = asked[i], .beams = i == 1 ? 16 : 0};
        struct pnet_cloud c = make(2, (uint32_t)i, &o);
        CHECKF(llabs(c.rows - asked[i]) < asked[i] / 5, "%lld of %lld", (long long)c.rows,
            (long long)asked[i]);
        pnet_cloud_free(&c);
    }
}

/* Every beam keeps its angle above the horizon, up to the motion and the tilt of the scanner;
   ranges stay in reach; intensities in [0, 1]; all classes turn up. */
static void test_scans(void)
{
    int seen[PNET_STREET_CLASSES] = {0};
    const struct pnet_synth_options o = {.azimuth_deg = 0.5f};
    for (uint32_t n = 0; n < 10; n++) {
        struct pnet_cloud c = make(4, n, &o);
        const float *intensity = data(&c, "intensity", PNET_F32);
        const uint8_t *ring = data(&c, "ring", PNET_U8), *label = data(&c, "label", PNET_U8);
        int64_t count[PNET_STREET_CLASSES] = {0}, off = 0, bad = 0;
        for (int64_t i = 0; i < c.rows; i++) {
            const float *p = c.xyz + 3 * i;
            float flat = sqrtf(p[0] * p[0] + p[1] * p[1]), far = sqrtf(flat * flat + p[2] * p[2]);
            float degrees = atan2f(p[2], flat) * 57.29578f, want = 15 - 40 * (float)ring[i] / 63;
            /* The scanner moves by up to 0.7 m either way, level with the road. */
            off += fabsf(degrees - want) > 0.7f * 57.3f * fabsf(sinf(want / 57.3f)) / far + 0.5f;
            bad += !(far > 0.5f && far < 92) || !(intensity[i] >= 0 && intensity[i] <= 1) ||
                   label[i] >= PNET_STREET_CLASSES;
            count[label[i] % PNET_STREET_CLASSES]++;
        }
        CHECKF(!off && !bad, "scan %u: %lld off their beam, %lld bad of %lld", n, (long long)off,
            (long long)bad, (long long)c.rows);
        for (int k = 0; k < PNET_STREET_CLASSES; k++) seen[k] += count[k] > 5;
        pnet_cloud_free(&c);
    }
    for (int k = 0; k < PNET_STREET_CLASSES; k++)
        CHECKF(seen[k] >= 5, "%s: in %d of 10 scans", pnet_street_names[k], seen[k]);
}

/* The height above the road, which is level in the scanner's frame up to 0.8 degrees of tilt. */
static void test_heights(void)
{
    static const float low[PNET_STREET_CLASSES] = {0, 0, 0, -0.1f, 0, 0, 1.5f, 0, 0, 0, 0, 0, 0};
    static const float high[PNET_STREET_CLASSES] = {
        0.01f, 0.17f, 0.17f, 20, 2.2f, 9, 3.7f, 8, 11.5f, 2.2f, 3.9f, 2.2f, 2.2f};
    const struct pnet_synth_options o = {.clean = true, .azimuth_deg = 0.5f};
    for (uint32_t n = 0; n < 8; n++) {
        struct pnet_cloud c = make(5, n, &o);
        const uint8_t *label = data(&c, "label", PNET_U8);
        int64_t wrong[PNET_STREET_CLASSES] = {0}, near = 0;
        double ground = 0;
        for (int64_t i = 0; i < c.rows; i++) {
            const float *p = c.xyz + 3 * i;
            if (label[i] != PNET_ROAD || hypotf(p[0], p[1]) > 8) continue;
            ground += (double)p[2];
            near++;
        }
        CHECK(near > 1000);
        ground /= (double)near;
        CHECK(ground < -1.6 && ground > -1.9);
        for (int64_t i = 0; i < c.rows; i++) {
            const float *p = c.xyz + 3 * i;
            float tilt = 0.03f + 0.0145f * hypotf(p[0], p[1]), z = p[2] - (float)ground;
            wrong[label[i]] += z < low[label[i]] - tilt || z > high[label[i]] + tilt;
        }
        for (int k = 0; k < PNET_STREET_CLASSES; k++)
            CHECKF(!wrong[k], "scan %u: %lld points of %s out of place", n, (long long)wrong[k],
                pnet_street_names[k]);
        pnet_cloud_free(&c);
    }
}

/* Without noise, road points lie in one plane. */
static void test_plane(void)
{
    const struct pnet_synth_options o = {.clean = true};
    struct pnet_cloud c = make(6, 0, &o);
    const uint8_t *label = data(&c, "label", PNET_U8);
    /* Least squares z = a + b x + c y by the normal equations. */
    double m[3][4] = {{0}}, most = 0;
    for (int64_t i = 0; i < c.rows; i++) {
        double v[4] = {1, (double)c.xyz[3 * i], (double)c.xyz[3 * i + 1], (double)c.xyz[3 * i + 2]};
        for (int r = 0; r < 3 && label[i] == PNET_ROAD; r++)
            for (int k = 0; k < 4; k++) m[r][k] += v[r] * v[k];
    }
    for (int r = 0; r < 3; r++)
        for (int q = 0; q < 3; q++) {
            double f = q == r ? 0 : m[q][r] / m[r][r];
            for (int k = 0; k < 4 && q != r; k++) m[q][k] -= f * m[r][k];
        }
    for (int64_t i = 0; i < c.rows; i++) {
        double x = (double)c.xyz[3 * i], y = (double)c.xyz[3 * i + 1], z = (double)c.xyz[3 * i + 2];
        if (label[i] == PNET_ROAD)
            most = fmax(
                most, fabs(z - m[0][3] / m[0][0] - m[1][3] / m[1][1] * x - m[2][3] / m[2][2] * y));
    }
    CHECKF(most < 0.01, "%g m", most);
    pnet_cloud_free(&c);
}

static void test_time(void)
{
    const struct pnet_synth_options o = {.points = 100000, .threads = 1};
    struct timespec t0, t1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    struct pnet_cloud c = make(7, 0, &o);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    double seconds = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    /* A tenth of a second; sanitizers are slow. */
    CHECKF(seconds < 5, "%g s", seconds);
    pnet_cloud_free(&c);
}

int main(void)
{
    test_bits();
    test_counts();
    test_scans();
    test_heights();
    test_plane();
    test_time();
    return check_end();
}
