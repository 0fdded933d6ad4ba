/* Attention on the CPU against its definition in double, and properties that no tiling may break. */
#include "tests/attend/attend_exact.h"

#include <omp.h>

/* The structs are copied around, so pointers into them are set here. */
static void run(struct problem *p)
{
    p->a.splits = p->splits;
    void *work = room((int64_t)pnet_cpu_attend_work(&p->a, true), 1);
    pnet_cpu_attend(&p->a, p->qkv, p->out, p->log_sum, work);
    pnet_cpu_attend_backward(&p->a, p->qkv, p->out, p->log_sum, p->gout, false, p->gqkv, work);
    free(work);
}

static void check_values(const char *what, const struct problem *p, double bound, double gradient)
{
    int64_t n = p->splits[p->a.samples], c = (int64_t)p->a.heads * p->a.width;
    double *out = room(n * c, sizeof *out), *g = room(3 * n * c, sizeof *g);
    define_all(p, out, g);
    double forward = difference(n * c, p->out, out), backward = difference(3 * n * c, p->gqkv, g);
    CHECKF(forward < bound && backward < gradient, "%s: %g, gradient %g", what, forward, backward);
    free(out);
    free(g);
}

/* Sizes around those of tiles, of every width. */
static void test_values(void)
{
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 47, 48, 49, 63, 64, 65, 127, 128, 129, 300};
    static const int32_t widths[] = {8, 16, 32, 64, 128};
    char what[80];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
            for (int form = 0; form < 3; form++) {
                struct pnet_scopes s = {
                    form ? 16 : 512, form ? 3 : 8, form, form ? form : 1, false};
                struct problem p =
                    make((int64_t[]){sizes[i], 0, 20}, 3, k < 2 ? 2 : 1, widths[k], s, form != 1);
                snprintf(what, sizeof what, "%lld rows, width %d, form %d", (long long)sizes[i],
                    widths[k], form);
                run(&p);
                check_values(what, &p, 1e-6, 2e-6);
                drop(&p);
            }
}

static bool same(const void *a, const void *b, int64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof(float)) == 0;
}

/* The same bits with 1, 2 and 3 threads, and of a sample that is alone. */
static void test_bits(void)
{
    struct pnet_scopes s = {32, 2, 1, 2, false};
    struct problem p = make((int64_t[]){150, 333, 40}, 3, 2, 16, s, true), alone = p;
    int64_t n = p.splits[3], threads = omp_get_max_threads();
    run(&p);
    for (int t = 1; t <= 3; t++) {
        struct problem q = p;
        q.out = room(n * 32, sizeof(float));
        q.gqkv = room(n * 96, sizeof(float));
        omp_set_num_threads(t);
        run(&q);
        CHECK(same(p.out, q.out, n * 32) && same(p.gqkv, q.gqkv, n * 96));
        free(q.out);
        free(q.gqkv);
    }
    omp_set_num_threads((int)threads);
    /* the second sample */
    alone = make((int64_t[]){333}, 1, 2, 16, s, true);
    memcpy(alone.qkv, p.qkv + 150 * 96, 333 * 96 * sizeof(float));
    memcpy(alone.gout, p.gout + 150 * 32, 333 * 32 * sizeof(float));
    run(&alone);
    CHECK(same(alone.out, p.out + 150 * 32, 333 * 32));
    CHECK(same(alone.gqkv, p.gqkv + 150 * 96, 333 * 96));
    drop(&p);
    drop(&alone);
}

/* One row gets its own value, and neither query nor key a gradient. */
static void test_one_row(void)
{
    struct pnet_scopes s = {512, 8, 0, 1, false};
    struct problem p = make((int64_t[]){1}, 1, 2, 16, s, false);
    run(&p);
    CHECK(same(p.out, p.qkv + 64, 32));
    for (int i = 0; i < 64; i++) CHECK(fabsf(p.gqkv[i]) < 1e-6f);
    drop(&p);
}

/* Products of +-1e4 leave one key, or several equal ones; what is not finite stays visible, in its own sample alone. */
static void test_extremes(void)
{
    struct pnet_scopes s = {512, 8, 0, 1, false};
    struct problem p = make((int64_t[]){100, 70}, 2, 1, 16, s, false);
    int64_t infinite = 0, spread = 0;
    for (int i = 0; i < 170; i++)
        for (int k = 0; k < 32; k++) p.qkv[48 * i + k] *= 60;
    run(&p);
    for (int i = 0; i < 170 * 48; i++) infinite += !isfinite(p.gqkv[i]);
    for (int i = 0; i < 170 * 16; i++) infinite += !isfinite(p.out[i]);
    CHECKF(!infinite, "%lld numbers are not finite", (long long)infinite);
    check_values("large products", &p, 1e-3, 1e-2); /* float32 has steps of 1e-3 at 1e4 */
    p.qkv[48 * 3] = NAN;
    run(&p);
    for (int k = 0; k < 16; k++) CHECK(isnan(p.out[16 * 3 + k]));
    for (int i = 100 * 16; i < 170 * 16; i++) spread += !isfinite(p.out[i]);
    CHECK(!spread);
    drop(&p);
}

int main(void)
{
    test_values();
    test_bits();
    test_one_row();
    exact_all(&(struct exact){run, 1e-6, 2e-6});
    test_extremes();
    return check_end();
}
