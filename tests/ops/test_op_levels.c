/* Layers that go between levels: pool, upsample, expand. */
#include "tests/ops/opcase.h"

enum { MEAN, MAX, SUM };                  /* of pool */
enum { NEAREST_POINT, INVERSE_DISTANCE }; /* of upsample */

static struct opcase pool_of(const struct world *w, int32_t width, int from, int to, int kind)
{
    struct opcase c = opcase_of(w, "pool");
    opcase_in(&c, width, from);
    opcase_int(&c, "to", to);
    opcase_int(&c, "kind", kind);
    return c;
}

static void pools(const struct world *w, int32_t width, void (*check)(struct opcase *))
{
    const int pairs[][2] = {{POINTS, FINE}, {POINTS, COARSE}, {FINE, COARSE}, {FINE, FINE},
        {POINTS, SAMPLE}, {COARSE, SAMPLE}, {SAMPLE, SAMPLE}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int kind = MEAN; kind <= SUM; kind++) {
            struct opcase c = pool_of(w, width, pairs[i][0], pairs[i][1], kind);
            check(&c);
        }
}

static void label_pools(const struct world *w, int32_t classes, void (*check)(struct opcase *))
{
    const int pairs[][2] = {{POINTS, FINE}, {POINTS, COARSE}, {POINTS, SAMPLE}, {POINTS, POINTS}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct opcase c = opcase_of(w, "pool");
        opcase_label(&c, classes, pairs[i][0]);
        opcase_int(&c, "to", pairs[i][1]);
        check(&c);
    }
}

static void upsamples(const struct world *w, int32_t width, void (*check)(struct opcase *))
{
    const int pairs[][2] = {{FINE, POINTS}, {COARSE, POINTS}, {COARSE, FINE}, {FINE, FINE}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int kind = NEAREST_POINT; kind <= INVERSE_DISTANCE; kind++)
            for (int k = 1; k <= 5; k += 2) {
                if (kind == NEAREST_POINT && k > 1) continue;
                struct opcase c = opcase_of(w, "upsample");
                opcase_in(&c, width, pairs[i][0]);
                opcase_int(&c, "to", pairs[i][1]);
                opcase_int(&c, "kind", kind);
                opcase_int(&c, "k", k);
                check(&c);
            }
}

static void expands(const struct world *w, int32_t width, void (*check)(struct opcase *))
{
    for (int to = POINTS; to <= COARSE; to++) {
        struct opcase c = opcase_of(w, "expand");
        opcase_in(&c, width, SAMPLE);
        opcase_int(&c, "to", to);
        check(&c);
    }
}

/* Ties of a maximum go to the lowest row, which then gets all of the gradient. */
static void test_ties(int to)
{
    const int64_t sizes[] = {700, 900};
    struct world w = world_make(2, sizes);
    struct opcase c = pool_of(&w, 2, POINTS, to, MAX);
    opcase_fill(&c);
    float *in = c.in_data[0];
    for (size_t k = 0; k < type_count(&w, c.in[0]); k++) in[k] = -1;
    opcase_forward(&c);
    opcase_backward(&c, false, false);
    bool *seen = calloc(type_count(&w, c.rule.out), sizeof *seen);
    if (!seen) abort();
    size_t wrong = 0;
    for (int64_t row = 0; row < w.rows[POINTS]; row++)
        for (int64_t ch = 0; ch < 2; ch++) {
            int64_t cell = to == SAMPLE ? row >= 700 : w.parent[0][row], at = cell * 2 + ch;
            float want = seen[at] ? 0 : seed_of((uint64_t)at);
            seen[at] = true;
            wrong += c.gin[0][row * 2 + ch] != want;
        }
    CHECKF(wrong == 0, "%zu wrong", wrong);
    free(seen);
    opcase_free(&c);
    world_free(&w);
}

/* An empty cell or sample gives 0 and takes no gradient; so does one whose labels are all ignored.
 */
static void test_empty(void)
{
    const int64_t sizes[] = {40, 0, 3};
    struct world w = world_make(3, sizes);
    for (int64_t row = 0; row < w.rows[POINTS]; row++)
        if (w.parent[0][row] == 3) w.parent[0][row] = 4;
    for (int kind = MEAN; kind <= SUM; kind++) {
        struct opcase c = pool_of(&w, 3, POINTS, FINE, kind);
        opcase_fill(&c);
        opcase_forward(&c);
        for (int ch = 0; ch < 3; ch++) CHECK(c.out[3 * 3 + ch] == 0);
        opcase_free(&c);
        c = pool_of(&w, 3, POINTS, SAMPLE, kind);
        opcase_fill(&c);
        opcase_forward(&c);
        for (int ch = 0; ch < 3; ch++) CHECK(c.out[3 + ch] == 0);
        opcase_free(&c);
    }
    struct opcase c = opcase_of(&w, "pool");
    opcase_label(&c, 4, POINTS);
    opcase_int(&c, "to", SAMPLE);
    opcase_fill(&c);
    CHECK(c.rule.out.classes == 4 && c.rule.out.type == PNET_I32);
    int32_t *label = c.in_data[0];
    const int32_t *out = (const int32_t *)(const void *)c.out;
    for (int i = 0; i < 43; i++) label[i] = i < 21 ? 3 : 2; /* as often as 2 once one is taken */
    label[20] = -1;
    label[21] = -1;
    label[40] = label[41] = -1;
    label[42] = 0;
    opcase_forward(&c);
    CHECK(out[0] == 3); /* 20 of 3, 18 of 2 */
    CHECK(out[1] == -1);
    CHECK(out[2] == 0);
    label[0] = label[1] = -1; /* 18 each: the lower label */
    label[42] = -1;
    opcase_forward(&c);
    CHECK(out[0] == 2);
    CHECK(out[2] == -1);
    opcase_free(&c);
    world_free(&w);
}

/* Interpolation with one neighbour at distance 0 is that neighbour; weights sum to 1. */
static void test_interpolation(void)
{
    const int64_t sizes[] = {60, 2};
    struct world w = world_make(2, sizes);
    memcpy(w.xyz[POINTS], w.xyz[COARSE], 3 * sizeof(float));
    struct opcase c = opcase_of(&w, "upsample");
    opcase_in(&c, 2, COARSE);
    opcase_int(&c, "to", POINTS);
    opcase_int(&c, "kind", INVERSE_DISTANCE);
    opcase_fill(&c);
    opcase_forward(&c);
    const float *in = c.in_data[0];
    CHECK(fabsf(c.out[0] - in[0]) < 1e-5f && fabsf(c.out[1] - in[1]) < 1e-5f);
    for (size_t k = 0; k < type_count(&w, c.in[0]); k++) ((float *)c.in_data[0])[k] = 7;
    opcase_forward(&c);
    for (size_t k = 0; k < type_count(&w, c.rule.out); k++)
        CHECKF(fabsf(c.out[k] - 7) < 1e-5f, "%g", (double)c.out[k]);
    opcase_free(&c);
    world_free(&w);
}

int main(void)
{
    const int64_t some[] = {37, 0, 1, 24}, one[] = {1}, none[] = {0, 0};
    const int64_t many[] = {9000, 0, 20001, 517};
    struct world w = world_make(4, some);
    pools(&w, 5, check_op);
    pools(&w, 1, check_op);
    label_pools(&w, 4, check_op);
    upsamples(&w, 3, check_op);
    expands(&w, 4, check_op);
    world_free(&w);
    w = world_make(1, one);
    pools(&w, 3, check_op);
    label_pools(&w, 1, check_op);
    upsamples(&w, 1, check_op);
    expands(&w, 1, check_op);
    world_free(&w);
    w = world_make(2, none);
    pools(&w, 3, check_op);
    label_pools(&w, 3, check_op);
    upsamples(&w, 3, check_op);
    expands(&w, 3, check_op);
    world_free(&w);
    w = world_make(4, many);
    pools(&w, 5, check_threads);
    label_pools(&w, 20, check_threads);
    expands(&w, 6, check_threads);
    world_free(&w);
    const int64_t fewer[] = {3000, 1, 2500};
    w = world_make(3, fewer); /* the nearest points are found by brute force */
    upsamples(&w, 8, check_threads);
    world_free(&w);
    test_ties(FINE);
    test_ties(SAMPLE);
    test_empty();
    test_interpolation();
    return check_end();
}
