/* Augmentation: what each step keeps, and that draws depend on seed, epoch and sample alone. */
#include "runtime/data/augment_draw.h"
#include "tests/check.h"

#include <stdbool.h>

enum { ROWS = 4000 };

static struct pnet_input_field fields[] = {{.name = "xyz", .kind = PNET_INPUT_POSITION},
    {.name = "rgb", .kind = PNET_INPUT_FEATURE, .width = 3},
    {.name = "normal", .kind = PNET_INPUT_FEATURE, .width = 3},
    {.name = "label", .kind = PNET_INPUT_CLASS, .width = 1, .classes = ROWS},
    {.name = "kind", .kind = PNET_INPUT_CLASS, .width = 1, .classes = 9, .per_cloud = true}};
static const struct pnet_input input = {.name = "cloud", .fields = fields, .field_count = 5};

/* A lattice of points, its rows as labels, the position again as normal and colour: what stays
   together can be seen. */
static struct pnet_sample *make_sample(void)
{
    struct pnet_sample *s = calloc(1, sizeof *s);
    s->input = &input;
    s->rows = ROWS;
    s->xyz = malloc(ROWS * 3 * sizeof *s->xyz);
    s->fields = calloc(6, sizeof *s->fields);
    float *rgb = s->fields[1] = malloc(ROWS * 3 * sizeof *rgb);
    float *normal = s->fields[2] = malloc(ROWS * 3 * sizeof *normal);
    int32_t *label = s->fields[3] = malloc(ROWS * sizeof *label),
            *kind = s->fields[4] = malloc(sizeof *kind);
    *kind = 4;
    for (int i = 0; i < ROWS; i++) {
        float p[3] = {(float)(i % 20) * 0.1f, (float)(i / 20 % 20) * 0.1f, (float)(i / 400) * 0.1f};
        for (int c = 0; c < 3; c++) s->xyz[3 * i + c] = rgb[3 * i + c] = p[c];
        for (int c = 0; c < 3; c++) normal[3 * i + c] = p[c] - (c < 2 ? 0.95f : 0.45f);
        label[i] = i;
    }
    return s;
}

static struct pnet_sample *augmented(
    const struct pnet_augment *a, uint64_t seed, uint32_t epoch, uint32_t index)
{
    struct pnet_error e = {.message = ""};
    struct pnet_sample *s = make_sample();
    enum pnet_status status = pnet_augment_apply(a, seed, epoch, index, s, &e);
    CHECKF(!status, "%s", e.message);
    return s;
}

static bool same(const struct pnet_sample *a, const struct pnet_sample *b)
{
    return a->rows == b->rows && memcmp(a->xyz, b->xyz, (size_t)a->rows * 12) == 0 &&
           memcmp(a->fields[1], b->fields[1], (size_t)a->rows * 12) == 0 &&
           memcmp(a->fields[2], b->fields[2], (size_t)a->rows * 12) == 0 &&
           memcmp(a->fields[3], b->fields[3], (size_t)a->rows * 4) == 0;
}

static double length(const float *a, const float *b)
{
    double d = 0;
    for (int c = 0; c < 3; c++) d += pow((double)a[c] - (b ? (double)b[c] : 0), 2);
    return sqrt(d);
}

static double determinant(const float *a, const float *b, const float *c)
{
    return (double)a[0] * ((double)b[1] * (double)c[2] - (double)b[2] * (double)c[1]) -
           (double)a[1] * ((double)b[0] * (double)c[2] - (double)b[2] * (double)c[0]) +
           (double)a[2] * ((double)b[0] * (double)c[1] - (double)b[1] * (double)c[0]);
}

static void test_draws(void)
{
    struct pnet_augment a = {.rotate = PNET_ROTATE_XYZ,
        .scale = {0.8, 1.25},
        .flip = {true, true, true},
        .jitter_m = 0.01,
        .drop_points = 0.3,
        .crop_points = 2000,
        .elastic = {{0.2, 0.4}},
        .elastic_count = 1,
        .colour_shift = 0.1,
        .colour_jitter = 0.05};
    struct pnet_sample *base = augmented(&a, 1, 2, 3), *again = augmented(&a, 1, 2, 3);
    struct pnet_sample *seed = augmented(&a, 2, 2, 3), *epoch = augmented(&a, 1, 3, 3);
    struct pnet_sample *index = augmented(&a, 1, 2, 4), *plain = make_sample();
    CHECK(same(base, again) && !same(base, seed) && !same(base, epoch) && !same(base, index) &&
          !same(base, plain));
    CHECK(*(int32_t *)base->fields[4] == 4);
    struct pnet_augment none = {.crop_points = 0};
    struct pnet_sample *untouched = augmented(&none, 1, 2, 3);
    CHECK(same(plain, untouched) && !pnet_augment_any(&none) && pnet_augment_any(&a));
    struct pnet_sample *all[] = {base, again, seed, epoch, index, plain, untouched};
    for (int i = 0; i < 7; i++) pnet_sample_free(all[i]);
}

/* Two at once are the same numbers as one by one: resumed runs depend on them. */
static void test_normals(void)
{
    static const int parts[] = {DRAW_JITTER, DRAW_VIEW_NOISE + DRAW_TARGET};
    struct pnet_rand r = {.seed = 77, .purpose = PNET_DRAW_AUGMENT, .a = 3, .b = 9};
    for (uint64_t i = 0; i < 1000; i++)
        for (int p = 0; p < 2; p++) {
            double two[2];
            draw_two_normals(&r, parts[p], i, two);
            CHECK(two[0] == draw_normal(&r, parts[p], 2 * i) &&
                  two[1] == draw_normal(&r, parts[p], 2 * i + 1));
        }
}

/* Distances keep, up to the factor; the centroid stays; normals turn with the points; the hand
   flips with each mirrored axis. */
static void test_motions(void)
{
    static const struct pnet_augment motions[] = {{.rotate = PNET_ROTATE_Z},
        {.rotate = PNET_ROTATE_XYZ}, {.rotate = PNET_ROTATE_ANGLES, .angle_deg = {10, 20, 30}},
        {.flip = {true, false, false}}, {.scale = {0.5, 2}},
        {.flip = {true, true, true}, .rotate = PNET_ROTATE_XYZ, .scale = {0.5, 2}}};
    static const int pairs[][2] = {{0, 3999}, {17, 2222}, {5, 6}, {100, 1900}};
    struct pnet_sample *plain = make_sample();
    int mirrored = 0, runs = 0;
    for (size_t m = 0; m < sizeof motions / sizeof *motions; m++)
        for (uint32_t index = 0; index < 20; index++) {
            struct pnet_sample *s = augmented(&motions[m], 5, 1, index);
            double factor =
                length(s->xyz, s->xyz + 3 * 3999) / length(plain->xyz, plain->xyz + 3 * 3999);
            if (motions[m].scale[1] > 0)
                CHECK(factor > 0.499 && factor < 2.001);
            else
                CHECK(fabs(factor - 1) < 1e-5);
            for (int p = 0; p < 4; p++) {
                double was = length(plain->xyz + 3 * pairs[p][0], plain->xyz + 3 * pairs[p][1]);
                double is = length(s->xyz + 3 * pairs[p][0], s->xyz + 3 * pairs[p][1]);
                CHECKF(fabs(is - factor * was) < 1e-5, "%g %g", is, factor * was);
            }
            double centre[3] = {0, 0, 0}, gap = 0;
            const float *normal = s->fields[2], *before = plain->fields[2];
            for (int i = 0; i < ROWS; i++)
                for (int c = 0; c < 3; c++) centre[c] += (double)s->xyz[3 * i + c] / ROWS;
            CHECK(fabs(centre[0] - 0.95) < 1e-5 && fabs(centre[1] - 0.95) < 1e-5 &&
                  fabs(centre[2] - 0.45) < 1e-5);
            for (int i = 0; i < ROWS; i++)
                for (int c = 0; c < 3; c++)
                    gap = fmax(gap, fabs(centre[c] + factor * (double)normal[3 * i + c] -
                                         (double)s->xyz[3 * i + c]));
            CHECKF(gap < 1e-5, "%g", gap);
            double hand = determinant(normal, normal + 3 * 19, normal + 3 * 399) /
                          determinant(before, before + 3 * 19, before + 3 * 399);
            CHECK(fabs(fabs(hand) - 1) < 1e-4);
            mirrored += hand < 0;
            runs += motions[m].flip[0];
            if (!motions[m].flip[0]) CHECK(hand > 0);
            if (motions[m].rotate == PNET_ROTATE_Z)
                for (int i = 0; i < ROWS; i += 99)
                    CHECK(fabsf(s->xyz[3 * i + 2] - plain->xyz[3 * i + 2]) < 1e-6f);
            pnet_sample_free(s);
        }
    CHECK(mirrored > runs / 5 && mirrored < runs * 4 / 5);
    pnet_sample_free(plain);
}

/* Rows that are left keep their fields: the label says which row it was. */
static void check_together(const struct pnet_sample *s, const struct pnet_sample *plain)
{
    const int32_t *label = s->fields[3];
    const float *rgb = s->fields[1];
    bool whole = true;
    for (int64_t i = 0; i < s->rows; i++) {
        whole &= memcmp(s->xyz + 3 * i, plain->xyz + 3 * label[i], 12) == 0;
        whole &= memcmp(rgb + 3 * i, plain->xyz + 3 * label[i], 12) == 0;
        whole &= i == 0 || label[i] > label[i - 1];
    }
    CHECK(whole);
}

static void test_subsets(void)
{
    struct pnet_sample *plain = make_sample(), *s;
    struct pnet_error e;
    struct pnet_augment a = {.drop_points = 0.25};
    s = augmented(&a, 1, 0, 0);
    CHECK(s->rows > 2880 && s->rows < 3120); /* 3000, sigma 27 */
    check_together(s, plain);
    pnet_sample_free(s);
    a.drop_points = 1;
    s = augmented(&a, 1, 0, 0);
    CHECK(s->rows == 1);
    pnet_sample_free(s);

    a = (struct pnet_augment){.crop_radius_m = 0.55};
    s = augmented(&a, 1, 0, 0);
    CHECK(s->rows > 50 && s->rows < ROWS);
    check_together(s, plain);
    for (int64_t i = 1; i < s->rows; i++) CHECK(length(s->xyz, s->xyz + 3 * i) <= 1.1001);
    pnet_sample_free(s);

    /* The nearest ones: the points left are those of a ball around one of them. */
    a = (struct pnet_augment){.crop_points = 300};
    s = augmented(&a, 1, 0, 0);
    CHECK(s->rows == 300);
    check_together(s, plain);
    bool ball = false;
    for (int64_t centre = 0; centre < s->rows && !ball; centre++) {
        double farthest = 0;
        int64_t nearer = 0;
        for (int64_t i = 0; i < s->rows; i++)
            farthest = fmax(farthest, length(s->xyz + 3 * centre, s->xyz + 3 * i));
        for (int64_t i = 0; i < ROWS; i++)
            nearer += length(s->xyz + 3 * centre, plain->xyz + 3 * i) < farthest - 1e-6;
        ball = nearer < 300;
    }
    CHECK(ball);
    pnet_sample_free(s);

    /* Each point is in a limited subset equally often. */
    static int seen[ROWS];
    for (uint32_t i = 0; i < 200; i++) {
        s = make_sample();
        CHECK(!pnet_sample_limit(1000, 3, 0, i, s, &e) && s->rows == 1000);
        check_together(s, plain);
        for (int k = 0; k < 1000; k++) seen[((int32_t *)s->fields[3])[k]]++;
        pnet_sample_free(s);
    }
    double most = 0, square = 0;
    for (int i = 0; i < ROWS; i++) {
        double z = (seen[i] - 50) / sqrt(200 * 0.25 * 0.75);
        most = fmax(most, fabs(z));
        square += z * z / ROWS;
    }
    CHECKF(most < 5.5 && square > 0.9 && square < 1.1, "%g %g", most, square);
    s = make_sample();
    CHECK(!pnet_sample_limit(ROWS, 3, 0, 0, s, &e) && same(s, plain));
    CHECK(!pnet_sample_limit(0, 3, 0, 0, s, &e) && same(s, plain));
    pnet_sample_free(s);
    pnet_sample_free(plain);
}

static void test_noise(void)
{
    struct pnet_sample *plain = make_sample();
    struct pnet_augment a = {.jitter_m = 0.01};
    struct pnet_sample *s = augmented(&a, 1, 0, 0);
    double sum = 0, square = 0, most = 0;
    for (int i = 0; i < 3 * ROWS; i++) {
        double d = (double)s->xyz[i] - (double)plain->xyz[i];
        sum += d / (3 * ROWS);
        square += d * d / (3 * ROWS);
        most = fmax(most, fabs(d));
    }
    CHECKF(fabs(sum) < 4e-4 && fabs(sqrt(square) - 0.01) < 4e-4, "%g %g", sum, sqrt(square));
    CHECK(most <= 0.030001 && most > 0.025);
    CHECK(memcmp(s->fields[2], plain->fields[2], ROWS * 12) == 0);
    pnet_sample_free(s);

    /* Elastic: smooth, as neighbours move alike, and as far as said. */
    a = (struct pnet_augment){.elastic = {{0.5, 0.3}}, .elastic_count = 1};
    s = augmented(&a, 1, 0, 0);
    double moved = 0, apart = 0;
    for (int i = 0; i + 1 < ROWS; i++) {
        moved = fmax(moved, length(s->xyz + 3 * i, plain->xyz + 3 * i));
        if (i % 20 == 19) continue;
        float d[3], n[3];
        for (int c = 0; c < 3; c++) {
            d[c] = s->xyz[3 * i + c] - plain->xyz[3 * i + c];
            n[c] = s->xyz[3 * i + 3 + c] - plain->xyz[3 * i + 3 + c];
        }
        apart = fmax(apart, length(d, n));
    }
    CHECKF(moved > 0.02 && moved < 0.9 && apart < moved / 2 && apart > 0, "%g %g", moved, apart);
    pnet_sample_free(s);
    struct pnet_error e;
    a.elastic[0].granularity_m = 1e-5;
    s = make_sample();
    CHECK(pnet_augment_apply(&a, 1, 0, 0, s, &e) == PNET_USAGE && strstr(e.message, "too fine"));
    pnet_sample_free(s);
    pnet_sample_free(plain);
}

static void test_colours(void)
{
    struct pnet_sample *plain = make_sample(), *s;
    struct pnet_augment a = {.colour_shift = 0.1};
    s = augmented(&a, 1, 0, 0);
    const float *now = s->fields[1], *was = plain->fields[1];
    double gap = 0;
    for (int c = 0; c < 3; c++) {
        double shift = (double)now[c] - (double)was[c];
        CHECK(fabs(shift) <= 0.1 && shift != 0);
        for (int i = 0; i < ROWS; i++)
            gap = fmax(gap, fabs((double)now[3 * i + c] - (double)was[3 * i + c] - shift));
    }
    CHECK(gap < 1e-6 && memcmp(s->xyz, plain->xyz, ROWS * 12) == 0);
    CHECK(memcmp(s->fields[2], plain->fields[2], ROWS * 12) == 0);
    pnet_sample_free(s);
    a = (struct pnet_augment){.colour_drop = 0.3};
    int dropped = 0;
    for (uint32_t i = 0; i < 200; i++) {
        s = augmented(&a, 1, 0, i);
        now = s->fields[1];
        bool zero = true;
        for (int k = 0; k < 3 * ROWS; k++) zero &= now[k] == 0;
        CHECK(zero || memcmp(now, was, ROWS * 12) == 0);
        dropped += zero;
        pnet_sample_free(s);
    }
    CHECKF(dropped > 30 && dropped < 90, "%d", dropped);
    pnet_sample_free(plain);
}

int main(void)
{
    test_draws();
    test_normals();
    test_motions();
    test_subsets();
    test_noise();
    test_colours();
    return check_end();
}
