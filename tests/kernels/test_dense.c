/* Dense products and column sums against plain loops in double. */
#include <omp.h>
#include "kernels/conv.h"
#include "tests/kernels/product_case.h"

static const double TOLERANCE = 1e-6;

static void check_gemm(
    struct product p, bool transposed, bool add, bool with_bias, enum pnet_activation act)
{
    size_t x_size = (size_t)p.n * (size_t)p.cin, y_size = (size_t)p.n * (size_t)p.cout;
    float *x = conv_random_floats(x_size, 1),
          *w = conv_random_floats((size_t)p.cin * (size_t)p.cout, 2);
    float *bias = conv_random_floats((size_t)p.cout, 3), *old = conv_random_floats(y_size, 4);
    double *want =
        product_gemm(p, x, w, transposed, with_bias ? bias : NULL, add ? old : NULL, act);
    float *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        float *y = conv_poison(y_size);
        if (add) memcpy(y, old, y_size * sizeof *y);
        struct conv_work work =
            conv_work(pnet_cpu_gemm_work(pnet_count(p.n), p.cin, p.cout, PNET_FP32));
        pnet_cpu_gemm(&(struct pnet_gemm){.n = pnet_count(p.n),
                          .cin = p.cin,
                          .cout = p.cout,
                          .x = x,
                          .w = w,
                          .bias = with_bias ? bias : NULL,
                          .y = y,
                          .transposed = transposed,
                          .add = add,
                          .act = act,
                          .slope = 0.25f},
            conv_work_use(&work));
        CHECK(conv_work_end(&work));
        double error = conv_error(y, want, y_size);
        CHECKF(error <= TOLERANCE, "%s gemm %lld x %d x %d: error %g", pnet_cpu_isa(),
            (long long)p.n, p.cin, p.cout, error);
        CHECK(!first || !y_size || memcmp(y, first, y_size * sizeof *y) == 0);
        if (first) free(first);
        first = y;
    }
    free(first);
    free(x), free(w), free(bias), free(old), free(want);
}

static void check_outer(struct product p, bool transposed, bool add)
{
    size_t size = (size_t)p.cin * (size_t)p.cout;
    float *x = conv_random_floats((size_t)p.n * (size_t)p.cin, 5);
    float *g = conv_random_floats((size_t)p.n * (size_t)p.cout, 6),
          *old = conv_random_floats(size, 7);
    double *want = product_outer(p, x, g, transposed, add ? old : NULL);
    float *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        float *gw = conv_poison(size);
        if (add) memcpy(gw, old, size * sizeof *gw);
        struct conv_work work =
            conv_work(pnet_cpu_outer_work(pnet_count(p.n), p.cin, p.cout, PNET_FP32));
        pnet_cpu_outer(&(struct pnet_outer){.n = pnet_count(p.n),
                           .cin = p.cin,
                           .cout = p.cout,
                           .x = x,
                           .g = g,
                           .gw = gw,
                           .transposed = transposed,
                           .add = add},
            conv_work_use(&work));
        CHECK(conv_work_end(&work));
        double error = conv_error(gw, want, size);
        CHECKF(error <= TOLERANCE, "%s outer %lld x %d x %d: error %g", pnet_cpu_isa(),
            (long long)p.n, p.cin, p.cout, error);
        CHECK(!first || memcmp(gw, first, size * sizeof *gw) == 0);
        if (first) free(first);
        first = gw;
    }
    free(first);
    free(x), free(g), free(old), free(want);
}

static void check_column_sum(int64_t n, int32_t c, bool add)
{
    float *x = conv_random_floats((size_t)n * (size_t)c, 8),
          *old = conv_random_floats((size_t)c, 9);
    double *want = conv_widen(old, (size_t)c);
    for (int32_t i = 0; i < c; i++) {
        if (!add) want[i] = 0;
        for (int64_t r = 0; r < n; r++) want[i] += (double)x[r * c + i];
    }
    float *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        float *sum = conv_poison((size_t)c);
        if (add) memcpy(sum, old, (size_t)c * sizeof *sum);
        struct conv_work work = conv_work(pnet_cpu_column_sum_work(pnet_count(n), c));
        pnet_cpu_column_sum(pnet_count(n), c, x, add, sum, conv_work_use(&work));
        CHECK(conv_work_end(&work));
        double error = conv_error(sum, want, (size_t)c);
        CHECKF(error <= TOLERANCE, "column sum %lld x %d: error %g", (long long)n, c, error);
        CHECK(!first || memcmp(sum, first, (size_t)c * sizeof *sum) == 0);
        if (first) free(first);
        first = sum;
    }
    free(first);
    free(x), free(old), free(want);
}

int main(void)
{
    static const struct product products[] = {{0, 4, 5}, {1, 1, 1}, {1, 512, 40}, {7, 3, 20},
        {13, 20, 3}, {64, 64, 64}, {257, 33, 129}, {100, 130, 17}, {600, 128, 128}, {40, 700, 300},
        {3000, 16, 1}, {2500, 1, 16}};
    const char *names[3];
    int isas = conv_isa_list(names);
    for (int i = 0; i < isas; i++) {
        pnet_cpu_isa_limit(names[i]);
        for (size_t p = 0; p < sizeof products / sizeof *products; p++) {
            check_gemm(products[p], false, false, true, PNET_ACT_NONE);
            check_gemm(products[p], true, false, true, PNET_ACT_RELU);
            check_gemm(products[p], true, true, false, PNET_ACT_NONE);
            check_gemm(products[p], false, false, false, PNET_ACT_LEAKY);
            check_outer(products[p], false, false);
            check_outer(products[p], true, true);
        }
    }
    static const int64_t rows[] = {0, 1, 256, 257, 16384, 50000};
    static const int32_t columns[] = {1, 3, 64, 65, 200};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            check_column_sum(rows[r], columns[c], false);
            check_column_sum(rows[r], columns[c], true);
        }
    }
    return check_end();
}
