/* Nearest rows of another set on the CPU, against comparing all pairs. The GPU's are compared with these
   (tests/cuda/test_cuda_sets.c). */
#include "kernels/philox.h"
#include "kernels/sets.h"
#include "tests/check.h"

enum { MOST = 4096, SAMPLES = 4 };

struct set {
    int64_t splits[SAMPLES + 1];
    float xyz[3 * MOST];
};

static uint64_t drawn; /* numbers so far */

static float draw(void)
{
    struct pnet_rand r = {.seed = 5, .purpose = PNET_DRAW_TEST};
    return pnet_rand_unit(&r, drawn++);
}

/* Rounded after each operation: the numbers are stored in between. */
static float distance2(const float *a, const float *b)
{
    volatile float square[3], sum;
    for (int c = 0; c < 3; c++) {
        volatile float d = a[c] - b[c];
        square[c] = d * d;
    }
    sum = square[0] + square[1];
    sum = sum + square[2];
    return sum;
}

static int32_t nearest(const struct set *b, int32_t sample, const float *at)
{
    int32_t best = -1;
    float least = INFINITY;
    for (int64_t j = b->splits[sample]; j < b->splits[sample + 1]; j++) {
        float d = distance2(at, b->xyz + 3 * j);
        if (!(d < least)) continue;
        least = d;
        best = (int32_t)j;
    }
    return best;
}

static void check_near(const char *what, const struct set *a, const struct set *b)
{
    static int32_t near[MOST];
    int64_t n = a->splits[SAMPLES], wrong = 0;
    struct pnet_point_set from = {pnet_count(n), SAMPLES, a->splits, a->xyz},
                          to = {pnet_count(b->splits[SAMPLES]), SAMPLES, b->splits, b->xyz};
    void *work = malloc(pnet_cpu_set_near_work(&from, &to));
    if (!work) exit(1);
    pnet_cpu_set_near(&from, &to, near, work);
    for (int32_t s = 0; s < SAMPLES; s++)
        for (int64_t i = a->splits[s]; i < a->splits[s + 1]; i++)
            wrong += near[i] != nearest(b, s, a->xyz + 3 * i);
    CHECKF(!wrong, "%s: %lld of %lld rows", what, (long long)wrong, (long long)n);
    free(work);
}

/* `steps`: coordinates are whole numbers up to that. One coordinate of `rare` is bad. */
static void fill(struct set *s, const int64_t points[SAMPLES], float steps, int rare, float scale)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < SAMPLES; k++) s->splits[k + 1] = s->splits[k] + points[k];
    for (int64_t i = 0; i < 3 * s->splits[SAMPLES]; i++) {
        float v = draw();
        s->xyz[i] = scale * (steps > 0 ? floorf(v * steps) : v);
        if (rare && draw() * (float)rare < 1) s->xyz[i] = bad[(int)(draw() * 3) % 3];
    }
}

int main(void)
{
    static const int64_t some[SAMPLES] = {700, 0, 3, 900}, other[SAMPLES] = {500, 5, 0, 1200};
    static struct set a, b;
    fill(&a, some, 0, 0, 1);
    fill(&b, other, 0, 0, 1);
    check_near("random points", &a, &b);
    check_near("the same points", &a, &a);
    fill(&a, some, 6, 0, 1);
    fill(&b, other, 6, 0, 1);
    check_near("points that coincide", &a, &b);
    fill(&a, some, 0, 0, 3e-22f);
    fill(&b, other, 0, 0, 3e-22f);
    check_near("tiny distances", &a, &b);
    fill(&a, some, 0, 0, 9e19f);
    fill(&b, other, 0, 0, 9e19f);
    check_near("distances that overflow", &a, &b);
    fill(&a, some, 0, 50, 1);
    fill(&b, other, 0, 0, 1);
    check_near("a first set that is not finite", &a, &b);
    check_near("a second set that is not finite", &b, &a);
    fill(&b, other, 0, 50, 1);
    check_near("sets that are not finite", &a, &b);
    return check_end();
}
