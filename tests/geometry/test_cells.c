/* Kernel cells against an evaluation in float64 that shares nothing with the project: a centre's own point at every size
   of cell, even kernels between levels, and radii that leave no finite scale. */
#include <omp.h>

#include "kernels/conv.h"
#include "tests/check.h"
#include "tests/geometry/cloud.h"

static const char *const isa[] = {"base", "avx2", "avx512"};

/* The cell number of the centre cell on all axes. */
static int32_t centre_cell(int32_t kernel)
{
    return kernel / 2 * (kernel * kernel + kernel + 1);
}

/* The set of one centre and its own point, which is its child. Its one cell, or -1. */
static int32_t own_cell(const struct pnet_neighbourhood *nb)
{
    const int64_t splits[] = {0, 1};
    const float xyz[] = {0.3f, -1.7f, 12.1f};
    const int32_t parent[] = {0};
    struct cloud *fine = cloud_of(1, splits, xyz, grid_of(0.05f, 1));
    struct cloud *coarse = cloud_of(1, splits, xyz, grid_of(0.05f, 2));
    struct set s = set_make(&coarse->level, &fine->level, nb, parent);
    int32_t cell = s.t.count == 1 ? s.cell[0] : -1;
    set_free(&s);
    cloud_free(coarse);
    cloud_free(fine);
    return cell;
}

/* A centre's own point lies on the border of two cells where K is even: it belongs to the upper one at every size. */
static void check_own_point(void)
{
    for (int millimetres = 1; millimetres <= 2000; millimetres++)
        for (int32_t kernel = 1; kernel <= 8; kernel++) {
            float base = (float)(millimetres / 1000.0);
            struct pnet_neighbourhood nb = {.kernel = kernel, .radius = (float)kernel / 2 * base};
            int32_t cell = own_cell(&nb);
            CHECKF(cell == centre_cell(kernel), "%d mm, kernel %d: cell %d", millimetres,
                (int)kernel, (int)cell);
        }
}

/* No radius, or one so small that its scale is infinite: the centre cell. */
static void check_no_scale(void)
{
    for (int32_t kernel = 1; kernel <= 31; kernel++) {
        const struct pnet_neighbourhood all[] = {{.kernel = kernel, .knn = 1},
            {.kernel = kernel, .radius = 1e-44f}, {.kernel = kernel, .radius = 1e38f},
            {.kernel = kernel, .radius = 3e38f}};
        for (int n = 0; n < 4; n++)
            CHECKF(own_cell(&all[n]) == centre_cell(kernel), "kernel %d, radius %g", (int)kernel,
                (double)all[n].radius);
    }
}

/* The cell on one axis, by the definition, in float64; -1 where float32 may decide either way. */
static int axis_cell(double d, double radius, int32_t kernel)
{
    double at = d * (kernel / (2 * radius)) + kernel / 2.0;
    double border = fabs(at - round(at));
    bool inside = at > 0.5 && at < kernel - 0.5; /* beyond there is no border but the clamp's */
    if (d != 0 && inside && border < 1e-4) return -1;
    double cell = floor(at);
    return (int)(cell < 0 ? 0 : cell > kernel - 1 ? kernel - 1 : cell);
}

static bool same_cell(const double d[3], double radius, int32_t kernel, int32_t cell)
{
    int32_t at[3] = {cell / (kernel * kernel), cell / kernel % kernel, cell % kernel};
    for (int a = 0; a < 3; a++) {
        int want = axis_cell(d[a], radius, kernel);
        if (want >= 0 && want != at[a]) return false;
    }
    return true;
}

/* A set from a level to the next coarser one, at a cell of 5.2 cm. */
static void check_even(int32_t kernel, enum pnet_shape shape)
{
    const float base = 0.052f;
    int32_t *parent;
    struct cloud *raw = cloud_random(UNIFORM, 2, 900, grid_of(base, 1), (uint32_t)kernel);
    struct cloud *fine = cloud_sorted(raw);
    struct cloud *coarse = cloud_coarser(fine, grid_of(base, 2), &parent);
    struct pnet_neighbourhood nb = {
        .kernel = kernel, .radius = (float)kernel / 2 * base, .shape = shape};
    struct set s = set_make(&coarse->level, &fine->level, &nb, parent);
    int64_t own = 0, wrong = 0, missing = 0;
    for (int64_t i = 0; i < coarse->level.rows; i++) {
        int32_t in = i >= coarse->splits[1];
        for (int64_t j = fine->splits[in]; j < fine->splits[in + 1]; j++) {
            double d[3], far = 0, square = 0, r = (double)nb.radius;
            for (int a = 0; a < 3; a++) {
                d[a] = (double)fine->xyz[3 * j + a] - (double)coarse->xyz[3 * i + a];
                square += d[a] * d[a];
                far = fmax(far, fabs(d[a]));
            }
            double distance = shape == PNET_BALL ? sqrt(square) : far;
            const int64_t end = s.start[i + 1];
            int64_t at = s.start[i];
            while (at < end && s.other[at] != j) at++;
            bool there = parent[j] == i || distance <= r, sure = fabs(distance - r) > 1e-6 * r;
            if ((at < end) != there && (sure || parent[j] == i)) missing++;
            if (at < end && !same_cell(d, r, kernel, s.cell[at])) wrong++;
            own += at < end && square == 0;
        }
    }
    CHECKF(missing == 0 && wrong == 0, "kernel %d: %d pairs, %d cells wrong", (int)kernel,
        (int)missing, (int)wrong);
    CHECK(own == coarse->level.rows); /* each centre is one of the points */
    set_free(&s);
    cloud_free(coarse);
    cloud_free(fine);
    cloud_free(raw);
    free(parent);
}

int main(void)
{
    omp_set_num_threads(1);
    for (int i = 0; i < 3; i++) {
        pnet_cpu_isa_limit(isa[i]);
        check_own_point();
        check_no_scale();
        for (int32_t kernel = 2; kernel <= 8; kernel += 2) {
            check_even(kernel, PNET_BALL);
            check_even(kernel, PNET_CUBE);
        }
    }
    return check_end();
}
