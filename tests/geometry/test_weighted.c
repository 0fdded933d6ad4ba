/* Weighted sums of rows against double, on every instruction set; interpolation between voxels against its formula, written
   once more on a dense grid. */
#include <omp.h>

#include "kernels/conv.h"
#include "tests/check.h"
#include "tests/geometry/corners.h"
#include "tests/kernels/conv_case.h"

enum { ROWS = 300, OTHERS = 90, MOST_C = 131 };

static struct pnet_rand numbers = {.seed = 6, .purpose = PNET_DRAW_TEST};

/* Lists of 0 to 12 entries, and one of many. */
static int64_t make_lists(int64_t *start, int32_t *other, float *weight)
{
    int64_t at = 0;
    for (int64_t row = 0; row < ROWS; row++) {
        int64_t n = row == 17 ? 5000 : (int64_t)(pnet_rand_bits(&numbers, (uint64_t)row) % 13);
        start[row] = at;
        for (int64_t k = 0; k < n; k++, at++) {
            other[at] = (int32_t)(pnet_rand_bits(&numbers, (uint64_t)(1000 + at)) % OTHERS);
            weight[at] = pnet_rand_unit(&numbers, (uint64_t)(90000 + at));
        }
    }
    return start[ROWS] = at;
}

static void check_sums(
    const struct pnet_weighted *w, int32_t c, const float *x, bool add, const char *isa)
{
    static float y[ROWS * MOST_C], again[ROWS * MOST_C];
    double worst = 0;
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        for (int i = 0; i < ROWS * c; i++) again[i] = add ? (float)(i % 7) : NAN;
        pnet_cpu_weighted_rows(w, c, x, add, again);
        if (threads == 1) memcpy(y, again, sizeof y);
        CHECK(memcmp(y, again, (size_t)ROWS * (size_t)c * sizeof *y) == 0);
    }
    for (int64_t row = 0; row < ROWS; row++)
        for (int32_t i = 0; i < c; i++) {
            double sum = add ? (double)((row * c + i) % 7) : 0, size = fabs(sum);
            for (int64_t at = w->start[row]; at < w->start[row + 1]; at++) {
                double v =
                    (w->weight ? (double)w->weight[at] : 1) * (double)x[w->other[at] * c + i];
                sum += v;
                size += fabs(v);
            }
            worst = fmax(worst, fabs((double)y[row * c + i] - sum) / (size + 1e-30));
        }
    CHECKF(worst < 1e-5, "%s, %d channels: error %g", isa, (int)c, worst);
}

static void test_sums(void)
{
    static const int32_t widths[] = {1, 3, 4, 8, 15, 16, 33, 64, 100, MOST_C};
    static int64_t start[ROWS + 1];
    static int32_t other[ROWS * 40];
    static float weight[ROWS * 40], x[OTHERS * MOST_C];
    const char *names[3];
    int count = conv_isa_list(names);
    int64_t entries = make_lists(start, other, weight);
    CHECK(entries < ROWS * 40);
    for (int i = 0; i < OTHERS * MOST_C; i++) x[i] = pnet_rand_unit(&numbers, (uint64_t)i) - 0.5f;
    for (int n = 0; n < count; n++) {
        pnet_cpu_isa_limit(names[n]);
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
            for (int variant = 0; variant < 4; variant++) {
                struct pnet_weighted w = {.rows = pnet_count(ROWS),
                    .start = start,
                    .other = other,
                    .weight = variant & 2 ? weight : NULL};
                check_sums(&w, widths[k], x, variant & 1, names[n]);
            }
    }
    pnet_cpu_isa_limit(NULL);
    int32_t label[OTHERS], got[ROWS];
    struct pnet_weighted w = {.rows = pnet_count(ROWS), .start = start, .other = other};
    for (int i = 0; i < OTHERS; i++) label[i] = i * 3;
    pnet_cpu_weighted_labels(&w, label, got);
    for (int row = 0; row < ROWS; row++)
        CHECK(got[row] == (start[row] < start[row + 1] ? label[other[start[row]]] : -1));
}

/* Voxels whose centres lie within half a voxel of a sphere of diameter `edge` - 1, and as many queries as the edge squared on
   it, in voxels, as the benchmark of FlexGEMM has them. voxel[edge^3]: the row; -1: none. */
struct shell {
    struct cloud *source, *queries;
    int32_t *voxel;
};

static struct shell shell_make(int edge)
{
    double radius = (double)edge / 2 - 0.5, middle = (double)edge / 2;
    int64_t cells = (int64_t)edge * edge * edge, splits[2] = {0, 0},
            many[2] = {0, (int64_t)edge * edge};
    struct shell s = {.voxel = memory((size_t)cells * sizeof *s.voxel)};
    float *xyz = memory((size_t)cells * 3 * sizeof *xyz), *at = memory((size_t)many[1] * 12);
    struct pnet_grid unit = grid_of(1, 1);
    for (int64_t i = 0; i < cells; i++) {
        double p[3] = {(double)(i / edge / edge) + 0.5, (double)(i / edge % edge) + 0.5,
            (double)(i % edge) + 0.5};
        double d = sqrt(pow(p[0] - middle, 2) + pow(p[1] - middle, 2) + pow(p[2] - middle, 2));
        if (fabs(d - radius) > 0.5) continue;
        for (int a = 0; a < 3; a++) xyz[3 * splits[1] + a] = (float)p[a];
        splits[1]++;
    }
    for (int64_t i = 0; i < many[1]; i++) {
        double turn = 2 * M_PI * (double)(i % edge) / edge,
               tilt = M_PI * ((double)(i / edge) + 0.5) / edge; /* from one pole to the other */
        at[3 * i] = (float)(middle + radius * sin(tilt) * cos(turn));
        at[3 * i + 1] = (float)(middle + radius * sin(tilt) * sin(turn));
        at[3 * i + 2] = (float)(middle + radius * cos(tilt));
    }
    struct cloud *shuffled = cloud_of(1, splits, xyz, unit);
    s.source = cloud_sorted(shuffled);
    s.queries = cloud_of(1, many, at, unit);
    memset(s.voxel, 0xff, (size_t)cells * sizeof *s.voxel);
    for (int64_t i = 0; i < s.source->level.rows; i++) {
        const float *p = s.source->xyz + 3 * i;
        s.voxel[((int64_t)p[0] * edge + (int64_t)p[1]) * edge + (int64_t)p[2]] = (int32_t)i;
    }
    cloud_free(shuffled);
    free(xyz);
    free(at);
    return s;
}

static void shell_free(struct shell *s)
{
    cloud_free(s->source);
    cloud_free(s->queries);
    free(s->voxel);
}

/* The weights and rows of a query at q voxels: x fastest, and rows that are not there left out. */
static double formula(
    const struct shell *s, int edge, const float q[3], int32_t row[8], double w[8])
{
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        int64_t at = 0;
        bool inside = true;
        w[i] = 1;
        for (int a = 0; a < 3; a++) {
            double corner = floor((double)q[a] - 0.5) + (i >> a & 1);
            inside &= corner >= 0 && corner < edge;
            at = at * edge + (int64_t)corner;
            w[i] *= 1 - fabs((double)q[a] - corner - 0.5);
        }
        row[i] = inside ? s->voxel[at] : -1;
        sum += row[i] < 0 ? 0 : w[i];
    }
    return fmax(sum, 1e-12);
}

/* Forward and backward. Row 0 holds NaN: a query without it must not see it. */
static void check_shell(int edge, int32_t c)
{
    struct shell s = shell_make(edge);
    int64_t rows = s.source->level.rows, queries = s.queries->level.rows, nans = 0, wrong = 0;
    size_t n = (size_t)rows * (size_t)c, m = (size_t)queries * (size_t)c;
    float *f = memory(n * sizeof *f), *y = memory(m * sizeof *y), *df = memory(n * sizeof *df);
    double *want = calloc(n, sizeof *want), worst = 0;
    if (!want) abort();
    for (size_t i = 0; i < n; i++)
        f[i] = (int32_t)i < c ? NAN : pnet_rand_unit(&numbers, (uint64_t)i) - 0.5f;
    struct corners lists =
        corners_make(&s.queries->level, &s.source->level, PNET_CORNERS_TRILINEAR, false);
    struct pnet_weighted w = corners_weighted(&lists, false), back = corners_weighted(&lists, true);
    pnet_cpu_weighted_rows(&w, c, f, false, y);
    for (int64_t i = 0; i < queries; i++) {
        int32_t row[8];
        double weight[8], sum = formula(&s, edge, s.queries->xyz + 3 * i, row, weight);
        for (int32_t k = 0; k < c; k++) {
            double v = 0;
            for (int e = 0; e < 8; e++) {
                if (row[e] < 0) continue;
                v += weight[e] / sum * (double)f[(int64_t)row[e] * c + k];
                want[(int64_t)row[e] * c + k] += weight[e] / sum * (double)y[i * c + k];
            }
            nans += k == 0 && isnan(v);
            wrong += isnan(v) != isnan(y[i * c + k]);
            if (!isnan(v)) worst = fmax(worst, fabs((double)y[i * c + k] - v));
        }
    }
    CHECKF(worst < 2e-5 && wrong == 0 && nans < 40, "shell %d: error %g, %lld NaN, %lld wrong",
        edge, worst, (long long)nans, (long long)wrong);
    pnet_cpu_weighted_rows(&back, c, y, false, df);
    worst = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(want[i])) worst = fmax(worst, fabs((double)df[i] - want[i]));
    CHECKF(worst < 2e-4, "shell %d: gradient is off by %g", edge, worst);
    shell_free(&s);
    corners_free(&lists);
    free(f);
    free(y);
    free(df);
    free(want);
}

int main(void)
{
    test_sums();
    omp_set_num_threads(2);
    check_shell(8, 64);
    check_shell(16, 20);
    check_shell(64, 7);
    check_shell(128, 4);
    return check_end();
}
