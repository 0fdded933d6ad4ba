/* Sets of voxels and their sums against dense convolutions in double, by the definition: each voxel, each tap. Nothing is
   searched for here: where a voxel's row is stands in an array over the whole grid. */
#include "tests/library/sets.h"

#include <omp.h>

/* The dense grids of both sides: the row of each voxel, or -1. */
struct dense {
    int32_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int32_t samples, taps;
    int64_t *in_row, *out_row;
    int64_t in_cells, out_cells; /* of a sample */
};

static int64_t cell_of(const int32_t extent[3], const int64_t at[3])
{
    for (int a = 0; a < 3; a++)
        if (at[a] < 0 || at[a] >= extent[a]) return -1;
    return (at[0] * extent[1] + at[1]) * extent[2] + at[2];
}

static void place_of(const int32_t extent[3], int64_t cell, int64_t at[3])
{
    at[0] = cell / extent[2] / extent[1];
    at[1] = cell / extent[2] % extent[1];
    at[2] = cell % extent[2];
}

typedef void visit(void *to, int64_t in, int64_t out, int64_t tap);

/* Calls `f` for all pairs of cells of the two grids that meet, whether something is there or not. */
static void visit_pairs(const struct dense *d, bool transposed, visit *f, void *to)
{
    const int32_t *y_extent = transposed ? d->in : d->out, *x_extent = transposed ? d->out : d->in;
    int64_t cells = (int64_t)y_extent[0] * y_extent[1] * y_extent[2];
    for (int64_t cell = 0; cell < cells; cell++)
        for (int32_t tap = 0; tap < d->taps; tap++) {
            int64_t y[3], x[3], t[3];
            place_of(y_extent, cell, y);
            place_of(d->kernel, tap, t);
            for (int a = 0; a < 3; a++)
                x[a] = y[a] * d->stride[a] + t[a] * d->dilation[a] - d->padding[a];
            int64_t other = cell_of(x_extent, x);
            if (other >= 0) f(to, transposed ? cell : other, transposed ? other : cell, tap);
        }
}

/* The dense grids of a case; output extents are PyTorch's, of Conv3d and ConvTranspose3d. */
static struct dense densify(const struct sets_case *c)
{
    struct dense d = {.samples = c->o.batches ? c->o.batches : 1, .taps = 1};
    for (int a = 0; a < 3; a++) {
        bool there = a < c->axes, same = c->o.kind == PNET_SET_SUBMANIFOLD;
        d.kernel[a] = there ? c->o.kernel[a] : 1;
        d.in[a] = there ? c->o.extent[a] : 1;
        d.stride[a] = there && !same && c->o.stride[a] ? c->o.stride[a] : 1;
        d.dilation[a] = there && c->o.dilation[a] ? c->o.dilation[a] : 1;
        d.padding[a] = same ? d.kernel[a] / 2 * d.dilation[a] : there ? c->o.padding[a] : 0;
        int32_t k = d.dilation[a] * (d.kernel[a] - 1);
        d.out[a] = (int32_t)floor((d.in[a] + 2 * d.padding[a] - k - 1) / (double)d.stride[a] + 1);
        if (c->o.kind == PNET_SET_TRANSPOSED && there)
            d.out[a] =
                (d.in[a] - 1) * d.stride[a] - 2 * d.padding[a] + k + c->o.output_padding[a] + 1;
        d.taps *= d.kernel[a];
    }
    d.in_cells = (int64_t)d.in[0] * d.in[1] * d.in[2];
    d.out_cells = (int64_t)d.out[0] * d.out[1] * d.out[2];
    d.in_row = sets_room((size_t)(d.in_cells * d.samples), sizeof *d.in_row);
    d.out_row = sets_room((size_t)(d.out_cells * d.samples), sizeof *d.out_row);
    for (int64_t i = 0; i < d.in_cells * d.samples; i++) d.in_row[i] = -1;
    for (int64_t i = 0; i < d.out_cells * d.samples; i++) d.out_row[i] = -1;
    for (int64_t r = 0; r < c->rows; r++) {
        const int32_t *at = c->index + r * (1 + c->axes);
        int64_t x[3] = {0, 0, 0};
        for (int a = 0; a < c->axes; a++) x[a] = at[a + 1];
        d.in_row[at[0] * d.in_cells + cell_of(d.in, x)] = r;
    }
    return d;
}

struct marking {
    struct dense *d;
};
static void mark(void *to, int64_t in, int64_t out, int64_t tap)
{
    struct dense *d = ((struct marking *)to)->d;
    (void)tap;
    for (int32_t b = 0; b < d->samples; b++)
        if (d->in_row[b * d->in_cells + in] >= 0) d->out_row[b * d->out_cells + out] = 0;
}

/* Gives the outputs their rows, and compares the voxels of the set with them. */
static int64_t number_outputs(
    const struct sets_case *c, struct dense *d, const struct pnet_set *set)
{
    struct pnet_set_info info = sets_info(set);
    int64_t rows = 0, width = 1 + c->axes, wrong = 0;
    int32_t *got = sets_room((size_t)(info.rows_out * width), sizeof *got);
    NEED(pnet_set_indices(set, got, info.rows_out * width, &e));
    for (int a = 0; a < 3; a++)
        CHECK(info.extent_out[a] == d->out[a] && info.extent_in[a] == d->in[a]);
    if (c->o.kind == PNET_SET_SUBMANIFOLD) {
        memcpy(d->out_row, d->in_row, (size_t)(d->in_cells * d->samples) * sizeof *d->in_row);
        wrong = memcmp(got, c->index, (size_t)(c->rows * width) * sizeof *got) != 0;
        rows = c->rows;
    } else {
        visit_pairs(d, c->o.kind == PNET_SET_TRANSPOSED, mark, &(struct marking){d});
        for (int64_t i = 0; i < d->out_cells * d->samples; i++) {
            if (d->out_row[i] < 0) continue;
            int64_t at[3];
            place_of(d->out, i % d->out_cells, at);
            d->out_row[i] = rows;
            if (rows < info.rows_out) {
                wrong += got[rows * width] != i / d->out_cells;
                for (int a = 0; a < c->axes; a++) wrong += got[rows * width + 1 + a] != at[a];
            }
            rows++;
        }
    }
    CHECKF(rows == info.rows_out && !wrong, "%d rows, expected %d; %d wrong numbers",
        (int)info.rows_out, (int)rows, (int)wrong);
    free(got);
    return rows == info.rows_out ? rows : -1;
}

/* The three sums in double. */
struct summing {
    const struct sets_case *c;
    const struct dense *d;
    const struct sets_sums *s;
    double *y, *x, *w;
    int64_t triplets;
};
static void add(void *to, int64_t in, int64_t out, int64_t tap)
{
    struct summing *m = to;
    for (int32_t b = 0; b < m->d->samples; b++) {
        int64_t j = m->d->in_row[b * m->d->in_cells + in],
                i = m->d->out_row[b * m->d->out_cells + out];
        if (i < 0 || j < 0) continue;
        sets_add(m->c, m->s, i, j, tap, m->y, m->x, m->w);
        m->triplets++;
    }
}

static void compare(const struct sets_case *c)
{
    struct pnet_set *set = sets_make(c);
    struct dense d = densify(c);
    if (number_outputs(c, &d, set) >= 0) {
        struct sets_sums s = sets_take(c, set);
        struct summing m = {c, &d, &s, sets_room((size_t)s.result_count, sizeof(double)),
            sets_room((size_t)s.feature_count, sizeof(double)),
            sets_room((size_t)s.weight_count, sizeof(double)), 0};
        sets_run(c, set, &s);
        visit_pairs(&d, c->o.kind == PNET_SET_TRANSPOSED, add, &m);
        CHECK(m.triplets == sets_info(set).triplets);
        double y = sets_error(s.result, m.y, s.result_count),
               x = sets_error(s.to_features, m.x, s.feature_count),
               w = sets_error(s.to_weights, m.w, s.weight_count);
        CHECKF(y < 1e-6 && x < 1e-6 && w < 1e-6,
            "kind %d, kernel %d %d %d, %d rows, %d to %d channels: %g %g %g", (int)c->o.kind,
            (int)d.kernel[0], (int)d.kernel[1], (int)d.kernel[2], (int)c->rows, (int)c->in,
            (int)c->out, y, x, w);
        free(m.y);
        free(m.x);
        free(m.w);
        sets_drop(&s);
    }
    free(d.in_row);
    free(d.out_row);
    pnet_set_free(set);
}

/* All kinds; kernels of 1 to 5, strides of 1 to 3, paddings, dilations; channels and groups; samples, some of them empty. */
static void test_random(void)
{
    static const int32_t channels[][3] = {
        {1, 1, 1}, {3, 5, 1}, {4, 6, 2}, {6, 6, 6}, {18, 17, 1}, {8, 24, 4}};
    int64_t rows = 0;
    for (int n = 0; n < 600; n++) {
        const int32_t *width = channels[n % 6];
        struct sets_case c = {.o = {.size = sizeof c.o, .kind = (enum pnet_set_kind)(n % 3)},
            .axes = n % 10 == 9  ? 1
                    : n % 5 == 4 ? 2
                                 : 3,
            .in = width[0],
            .out = width[1],
            .groups = width[2]};
        c.o.batches = (int32_t)sets_random(4);
        for (int a = 0; a < c.axes; a++) {
            bool same = c.o.kind == PNET_SET_SUBMANIFOLD;
            c.o.kernel[a] = (int32_t)(same ? 1 + 2 * sets_random(3) : 1 + sets_random(5));
            c.o.stride[a] = (int32_t)sets_random(4);
            c.o.dilation[a] = (int32_t)sets_random(3);
            c.o.padding[a] = (int32_t)sets_random(3);
            c.o.output_padding[a] = (int32_t)sets_random(3);
            int32_t reach = (c.o.kernel[a] - 1) * (c.o.dilation[a] ? c.o.dilation[a] : 1);
            /* large enough for an output extent of 1 */
            int32_t least = c.o.kind == PNET_SET_STRIDED ? reach + 1 - 2 * c.o.padding[a] : 1;
            if (c.o.kind == PNET_SET_TRANSPOSED) least = 1 + 2 * c.o.padding[a];
            c.o.extent[a] = (least > 1 ? least : 1) + (int32_t)sets_random(c.axes < 3 ? 9 : 5);
        }
        sets_fill(&c, 1 + sets_random(8), (int32_t)sets_random(4));
        compare(&c);
        rows += c.rows;
        free(c.index);
    }
    CHECKF(rows > 15000, "%d rows in all", (int)rows);
}

/* One voxel; none; each voxel of the grid. */
static void test_few(void)
{
    for (int kind = 0; kind < 3; kind++)
        for (int few = 0; few < 3; few++) {
            struct sets_case c = {.o = {.size = sizeof c.o,
                                      .kind = (enum pnet_set_kind)kind,
                                      .kernel = {3, 3, 3},
                                      .padding = {1, 1, 1},
                                      .extent = {5, 4, 6},
                                      .batches = 2},
                .axes = 3,
                .in = 4,
                .out = 3,
                .groups = 1};
            sets_fill(&c, 1, -1);
            if (few < 2) c.rows = few;
            compare(&c);
            free(c.index);
        }
}

/* Many rows: several blocks of rows and chunks, several levels of the sort. */
static void fill_many(struct sets_case *c, int32_t edge)
{
    *c = (struct sets_case){.o = {.size = sizeof c->o,
                                .kernel = {3, 3, 3},
                                .padding = {1, 1, 1},
                                .extent = {edge, edge, edge},
                                .batches = 2},
        .axes = 3,
        .in = 9,
        .out = 20,
        .groups = 1};
    sets_fill(c, 6, -1);
}

static bool same(const float *a, const float *b, int64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Rows shuffled give the shuffled results, bit for bit, and the same gradients of weights. */
static void test_shuffled(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct sets_case c;
        fill_many(&c, 20);
        c.o.kind = (enum pnet_set_kind)kind;
        for (int a = 0; a < 3; a++) c.o.stride[a] = kind ? 2 : 1;
        bool moves = kind == PNET_SET_SUBMANIFOLD; /* the rows of the outputs, too */
        struct pnet_set *set = sets_make(&c);
        struct sets_sums s = sets_take(&c, set);
        sets_run(&c, set, &s);
        int64_t *moved = sets_room((size_t)c.rows, sizeof *moved), wrong = 0;
        sets_shuffle(&c, moved);
        struct pnet_set *other = sets_make(&c);
        struct sets_sums t = sets_take(&c, other);
        memcpy(t.weights, s.weights, (size_t)s.weight_count * sizeof *t.weights);
        memcpy(t.gradient, s.gradient, (size_t)s.result_count * sizeof *t.gradient);
        for (int64_t i = 0; i < c.rows; i++) {
            memcpy(
                t.features + i * c.in, s.features + moved[i] * c.in, (size_t)c.in * sizeof(float));
            if (moves)
                memcpy(t.gradient + i * c.out, s.gradient + moved[i] * c.out,
                    (size_t)c.out * sizeof(float));
        }
        sets_run(&c, other, &t);
        CHECK(moved[0] != 0 && t.result_count == s.result_count);
        for (int64_t i = 0; i < c.rows; i++) {
            wrong += !same(t.to_features + i * c.in, s.to_features + moved[i] * c.in, c.in);
            wrong += moves && !same(t.result + i * c.out, s.result + moved[i] * c.out, c.out);
        }
        if (!moves) CHECK(same(t.result, s.result, s.result_count));
        CHECKF(same(t.to_weights, s.to_weights, s.weight_count), "kind %d: weights differ", kind);
        CHECKF(!wrong, "kind %d: %d of %d rows differ", kind, (int)wrong, (int)c.rows);
        free(moved);
        sets_drop(&s);
        sets_drop(&t);
        pnet_set_free(set);
        pnet_set_free(other);
        free(c.index);
    }
}

/* Threads do not change a bit. */
static void test_threads(void)
{
    int usual = omp_get_max_threads();
    for (int kind = 0; kind < 3; kind++) {
        struct sets_case c;
        fill_many(&c, 60);
        CHECK(c.rows > 70000);
        c.o.kind = (enum pnet_set_kind)kind;
        for (int a = 0; a < 3; a++) c.o.stride[a] = 2;
        struct sets_sums s = {0}, t;
        int64_t triplets = 0;
        for (int threads = 1; threads <= 3; threads++) {
            omp_set_num_threads(threads);
            struct pnet_set *set = sets_make(&c);
            sets_state = 77; /* the same numbers */
            t = sets_take(&c, set);
            sets_run(&c, set, &t);
            if (threads == 1) {
                s = t;
                triplets = sets_info(set).triplets;
            } else {
                CHECK(triplets == sets_info(set).triplets);
                CHECK(same(s.result, t.result, s.result_count));
                CHECK(same(s.to_features, t.to_features, s.feature_count));
                CHECK(same(s.to_weights, t.to_weights, s.weight_count));
                sets_drop(&t);
            }
            pnet_set_free(set);
        }
        sets_drop(&s);
        free(c.index);
    }
    omp_set_num_threads(usual);
}

int main(void)
{
    test_random();
    test_few();
    test_shuffled();
    test_threads();
    return check_end();
}
