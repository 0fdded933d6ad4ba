/* Element-wise kernels, normalisations and the optimisers on a GPU against their twins on the CPU: random data, rows
   behind the live ones poisoned, the same bits for any capacity. */
#include "tests/cuda/dense_case.h"

#ifdef PNET_CUDA_BUILT

#include "kernels/act.h"
#include "kernels/drop_path.h"
#include "kernels/norm.h"
#include "kernels/optim.h"
#include "kernels/rows.h"
#include "kernels/swiglu.h"
#include "runtime/run/optim.h"

#define BOTH(d, name) (*((d)->gpu ? pnet_cuda_##name : pnet_cpu_##name))

/* Each writes d->y, [rows, c]: b and g are further inputs, `add` as in their headers. */

static void do_relu(const struct side *d)
{
    BOTH(d, act)(d->elements, PNET_ACT_RELU, 0, d->a, d->y);
}

static void do_leaky(const struct side *d)
{
    BOTH(d, act)(d->elements, PNET_ACT_LEAKY, 0.2f, d->a, d->y);
}

static void do_act_none(const struct side *d)
{
    BOTH(d, act)(d->elements, PNET_ACT_NONE, 0, d->a, d->y);
}

static void do_act_gradient(const struct side *d)
{
    BOTH(d, act_gradient)(d->elements, PNET_ACT_LEAKY, 0.1f, d->a, d->b, d->add, d->y);
}

static void do_act_backward(const struct side *d)
{
    BOTH(d, act_backward)(d->elements, PNET_ACT_RELU, 0, d->a, d->y);
}

static void do_gelu(const struct side *d)
{
    BOTH(d, gelu)(d->elements, d->a, d->y);
}

static void do_gelu_backward(const struct side *d)
{
    BOTH(d, gelu_backward)(d->elements, d->a, d->b, d->add, d->y);
}

static void do_sigmoid(const struct side *d)
{
    BOTH(d, sigmoid)(d->elements, d->a, d->y);
}

static void do_sigmoid_backward(const struct side *d)
{
    BOTH(d, sigmoid_backward)(d->elements, d->a, d->b, d->add, d->y);
}

/* a and y as matrices of two halves; the last channel of an odd width is left over behind them. */
static void do_swiglu(const struct side *d)
{
    BOTH(d, swiglu)(d->rows, d->c / 2, d->a, d->y);
}

static void do_swiglu_backward(const struct side *d)
{
    BOTH(d, swiglu_backward)(d->rows, d->c / 2, d->a, d->b, d->add, d->y);
}

static void do_fill(const struct side *d)
{
    BOTH(d, fill)(d->elements, 3.5f, d->y);
}

static void do_scale(const struct side *d)
{
    BOTH(d, scale)(d->elements, -1.7f, d->a, d->add, d->y);
}

/* In place. */
static void do_double(const struct side *d)
{
    BOTH(d, scale)(d->elements, 2, d->y, d->add, d->y);
}

static void do_add(const struct side *d)
{
    enum pnet_activation act = d->add ? PNET_ACT_RELU : PNET_ACT_NONE;
    BOTH(d, add)(d->elements, d->a, d->b, -0.3f, act, 0, d->y);
}

static void do_add_leaky(const struct side *d)
{
    BOTH(d, add)(d->elements, d->a, d->y, 1, PNET_ACT_LEAKY, 0.1f, d->y);
}

static void do_mul(const struct side *d)
{
    BOTH(d, mul)(d->rows, d->c, d->a, d->b, d->c, d->add, d->y);
}

static void do_gate(const struct side *d)
{
    BOTH(d, mul)(d->rows, d->c, d->a, d->one, 1, d->add, d->y);
}

/* y as [rows, 1] and whatever was behind it. */
static void do_row_dot(const struct side *d)
{
    BOTH(d, row_dot)(d->rows, d->c, d->a, d->b, d->add, d->y);
}

/* On a GPU the step is read from the device. */
static void do_dropout(const struct side *d)
{
    struct pnet_rand rand = {.seed = 77, .purpose = PNET_DRAW_DROPOUT, .a = 41, .b = 6};
    if (d->gpu) {
        rand.a = 0;
        rand.live = d->step;
    }
    BOTH(d, dropout)(d->elements, 0.3f, &rand, d->a, d->add, d->y);
}

static void do_dropout_all(const struct side *d)
{
    struct pnet_rand rand = {.seed = 1, .purpose = PNET_DRAW_DROPOUT, .a = 3, .b = 6};
    BOTH(d, dropout)(d->elements, 1, &rand, d->a, d->add, d->y);
}

static void drop_path(const struct side *d, enum pnet_drop_each each)
{
    struct pnet_rand rand = {.seed = 78, .purpose = PNET_DRAW_DROPOUT, .a = 41, .b = 6};
    if (d->gpu) {
        rand.a = 0;
        rand.live = d->step;
    }
    struct pnet_segments samples = {d->rows.most, SEGMENTS, d->splits, 0, d->rows.storage};
    BOTH(d, drop_path)(samples, d->c, each, 0.6f, &rand, d->a, d->add, d->y);
}

static void do_drop_points(const struct side *d)
{
    drop_path(d, PNET_DROP_POINT);
}

static void do_drop_samples(const struct side *d)
{
    drop_path(d, PNET_DROP_SAMPLE);
}

/* A third of the columns; y is the wide matrix, then the narrow one. */
static void do_columns_put(const struct side *d)
{
    int32_t c = (d->c + 2) / 3;
    BOTH(d, columns_put)(d->rows, c, d->a, d->c, d->c - c, d->y);
}

static void do_columns_take(const struct side *d)
{
    int32_t c = (d->c + 2) / 3;
    BOTH(d, columns_take)(d->rows, c, d->a, d->c, d->c - c, d->add, d->y);
}

/* At an offset that keeps 16-byte accesses where the width has them. */
static void do_columns_half(const struct side *d)
{
    int32_t c = d->c >= 8 ? d->c / 8 * 4 : d->c;
    BOTH(d, columns_put)(d->rows, c, d->a, d->c, d->c >= 8 ? 4 : 0, d->y);
}

/* The same with room for eight numbers of 16 bits. */
static void do_columns_eighth(const struct side *d)
{
    int32_t c = d->c >= 16 ? d->c / 16 * 8 : d->c;
    BOTH(d, columns_take)(d->rows, c, d->a, d->c, d->c >= 16 ? 8 : 0, d->add, d->y);
}

static void do_layernorm(const struct side *d)
{
    enum pnet_activation act = d->add ? PNET_ACT_RELU : PNET_ACT_NONE;
    BOTH(d, layernorm)(d->rows, d->c, 1e-5, d->a, d->weight, d->bias, act, 0, d->y);
}

static struct pnet_norm_gradient gradient_of(const struct side *d)
{
    return (struct pnet_norm_gradient){.gout = d->b,
        .gx = d->y,
        .gweight = d->gweight,
        .gbias = d->gbias,
        .gx_add = d->add,
        .gweight_add = d->add,
        .gbias_add = !d->add};
}

static void run_layernorm_backward(const struct side *d, const struct pnet_norm_gradient *g)
{
    void *work = take_work(d, BOTH(d, layernorm_backward_work)(d->rows, d->c));
    BOTH(d, layernorm_backward)(d->rows, d->c, 1e-3, d->a, d->weight, g, work);
    give_work(d, work);
}

static void do_layernorm_backward(const struct side *d)
{
    struct pnet_norm_gradient g = gradient_of(d);
    run_layernorm_backward(d, &g);
}

/* Only gradients of weight and bias, or of one of them. */
static void do_layernorm_weights(const struct side *d)
{
    struct pnet_norm_gradient g = gradient_of(d);
    g.gx = NULL;
    if (d->add) g.gbias = NULL;
    run_layernorm_backward(d, &g);
}

/* Only the gradient of the input, in place of that of the result. */
static void do_layernorm_input(const struct side *d)
{
    struct pnet_norm_gradient g = {.gout = d->y, .gx = d->y};
    run_layernorm_backward(d, &g);
}

static void do_l2norm(const struct side *d)
{
    BOTH(d, l2norm)(d->rows, d->c, 0.5, d->a, d->y);
}

static void do_l2norm_backward(const struct side *d)
{
    BOTH(d, l2norm_backward)(d->rows, d->c, 0.5, d->a, d->b, d->add, d->y);
}

static void do_softmax(const struct side *d)
{
    BOTH(d, softmax)(d->rows, d->c, d->a, d->y);
}

static void do_softmax_backward(const struct side *d)
{
    BOTH(d, softmax_backward)(d->rows, d->c, d->a, d->b, d->add, d->y);
}

/* Norms over segments; `all` as one segment over the splits of four. */

static struct pnet_norm norm_of(const struct side *d, bool all, int32_t groups)
{
    return (struct pnet_norm){
        .segments =
            all ? (struct pnet_segments){d->rows.most, 1, d->splits, SEGMENTS, d->rows.storage}
                : (struct pnet_segments){d->rows.most, SEGMENTS, d->splits, 0, d->rows.storage},
        .c = d->c,
        .groups = groups,
        .x = d->a,
        .weight = d->weight,
        .bias = d->bias,
        .act = d->add ? PNET_ACT_LEAKY : PNET_ACT_NONE,
        .slope = 0.1f};
}

static void do_sums(const struct side *d)
{
    struct pnet_norm n = norm_of(d, false, 1);
    void *work = take_work(d, BOTH(d, segment_sums_work)(n.segments, d->c));
    BOTH(d, segment_sums)
    (n.segments, d->c, d->a, d->add ? d->b : NULL, d->sums,
        d->add ? d->sums + SEGMENTS * d->c : NULL, work);
    give_work(d, work);
}

static void do_norm(const struct side *d, bool all, int32_t groups)
{
    struct pnet_norm n = norm_of(d, all, groups);
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    BOTH(d, norm_statistics)(&n, 1e-3, d->mean, d->inverse, work);
    BOTH(d, norm_forward)(&n, d->mean, d->inverse, d->y, work);
    give_work(d, work);
}

static void run_norm_backward(
    const struct side *d, const struct pnet_norm *n, const struct pnet_norm_gradient *g)
{
    void *work = take_work(d, BOTH(d, norm_work)(n));
    BOTH(d, norm_statistics)(n, 1e-3, d->mean, d->inverse, work);
    BOTH(d, norm_backward)(n, d->mean, d->inverse, g, work);
    give_work(d, work);
}

static void do_norm_backward(const struct side *d, bool all, int32_t groups, int64_t constant_rows)
{
    struct pnet_norm n = norm_of(d, all, groups);
    struct pnet_norm_gradient g = gradient_of(d);
    g.constant_rows = constant_rows;
    n.act = PNET_ACT_NONE;
    run_norm_backward(d, &n, &g);
}

static void do_batchnorm(const struct side *d)
{
    struct pnet_norm n = norm_of(d, true, d->c);
    struct pnet_running running = {d->gweight, d->gbias, 0.1};
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    BOTH(d, batchnorm_statistics)(&n, 1e-5, d->add, running, d->mean, d->inverse, work);
    BOTH(d, norm_forward)(&n, d->mean, d->inverse, d->y, work);
    give_work(d, work);
}

/* The same where statistics and result are asked for together. */

static void do_at_once(const struct side *d, bool all, int32_t groups)
{
    struct pnet_norm n = norm_of(d, all, groups);
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    BOTH(d, norm)(&n, 1e-3, d->mean, d->inverse, d->y, work);
    give_work(d, work);
}

static void do_batchnorm_at_once(const struct side *d)
{
    struct pnet_norm n = norm_of(d, true, d->c);
    struct pnet_running running = {d->gweight, d->gbias, 0.1};
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    BOTH(d, batchnorm)(&n, 1e-5, d->add, running, d->mean, d->inverse, d->y, work);
    give_work(d, work);
}

static void do_batchnorm_in_place(const struct side *d)
{
    struct pnet_norm n = norm_of(d, true, d->c);
    struct pnet_running running = {d->gweight, d->gbias, 0.1};
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    n.x = d->y;
    n.act = PNET_ACT_RELU;
    BOTH(d, batchnorm)(&n, 1e-5, true, running, d->mean, d->inverse, d->y, work);
    give_work(d, work);
}

/* n numbers of a column of y times what a norm has of those of a, with an eps of 1e-3: in double, so that all sides get
   the same bits. */
static void shrink_column(
    const struct side *d, const float *a, float weight, float bias, int64_t n, float *y)
{
    int32_t c = d->c;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)a[i * c] / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += ((double)a[i * c] - mean) * ((double)a[i * c] - mean) / (double)n;
    double scale = (double)weight / sqrt(square + 1e-3);
    for (int64_t i = 0; i < n; i++)
        y[i * c] *= (float)(((double)a[i * c] - mean) * scale + (double)bias);
}

static void shrink(const struct side *d, bool all)
{
    int64_t splits[SEGMENTS + 1];
    get(d, splits, d->splits, sizeof splits);
    int64_t n = splits[SEGMENTS] * d->c;
    size_t vector = (size_t)d->c * sizeof(float);
    float *a = malloc((size_t)n * sizeof *a + 1), *y = malloc((size_t)n * sizeof *y + 1),
          *weight = malloc(vector), *bias = malloc(vector);
    if (!a || !y || !weight || !bias) exit(1);
    get_features(d, a, d->a, n);
    get_features(d, y, d->y, n);
    get(d, weight, d->weight, vector);
    get(d, bias, d->bias, vector);
    for (int s = 0; s < (all ? 1 : SEGMENTS); s++) {
        int64_t first = splits[s], end = splits[all ? SEGMENTS : s + 1];
        for (int32_t j = 0; j < d->c; j++)
            shrink_column(
                d, a + first * d->c + j, weight[j], bias[j], end - first, y + first * d->c + j);
    }
    round_to_storage(d->storage, y, n);
    put_features(d, d->y, y, n);
    free(a);
    free(y);
    free(weight);
    free(bias);
}

/* An activation behind the norm; the gradient is in place, and as small as the result is, so that it does not matter on
   which side of zero rounding leaves one. The slope is a power of two: in 16 bits the GPU rounds. */
static void do_act_norm_backward(const struct side *d, bool all, int64_t constant_rows)
{
    struct pnet_norm n = norm_of(d, all, d->c);
    struct pnet_norm_gradient g = gradient_of(d);
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    float *out =
        take_work(d, storage_bytes(d->gpu ? d->storage : PNET_STORE_F32, d->rows.most * d->c));
    g.constant_rows = constant_rows;
    g.gout = d->y;
    g.gx_add = false;
    g.out = out;
    n.act = d->add ? PNET_ACT_LEAKY : PNET_ACT_RELU;
    n.slope = 0.25f;
    shrink(d, all);
    BOTH(d, norm)(&n, 1e-3, d->mean, d->inverse, out, work);
    run_norm_backward(d, &n, &g);
    give_work(d, out);
    give_work(d, work);
}

static void do_batchnorm_act_backward(const struct side *d)
{
    do_act_norm_backward(d, true, 1);
}

static void do_instancenorm_act_backward(const struct side *d)
{
    do_act_norm_backward(d, false, 0);
}

static int32_t some_groups(int32_t c)
{
    return c % 4 == 0 ? c / 4 : c % 3 == 0 ? 3 : 1;
}

/* Norms with something added behind them: b. */

static void do_sum(const struct side *d, bool all, int32_t groups)
{
    struct pnet_norm n = norm_of(d, all, groups);
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    n.sum = true;
    n.added = d->b;
    BOTH(d, norm)(&n, 1e-3, d->mean, d->inverse, d->y, work);
    give_work(d, work);
}

static void do_batchnorm_sum(const struct side *d)
{
    do_sum(d, true, d->c);
}

static void do_instancenorm_sum(const struct side *d)
{
    do_sum(d, false, d->c);
}

static void do_groupnorm_sum(const struct side *d)
{
    do_sum(d, false, some_groups(d->c));
}

/* The gradients of a norm to whose result something is added. y holds the incoming gradient; `added` says which gradient y holds
   afterwards: that of what was added, or that of the norm's input. With `add` it is added to y. The activation takes its signs
   from b, which has the same values on both devices. */
static void do_sum_backward(const struct side *d, bool all, int32_t groups, bool added)
{
    struct pnet_norm n = norm_of(d, all, groups);
    struct pnet_norm_gradient g = gradient_of(d);
    int64_t count = d->rows.most * d->c;
    size_t bytes = storage_bytes(d->gpu ? d->storage : PNET_STORE_F32, count);
    float *gradient = take_work(d, bytes), *other = take_work(d, bytes);
    struct pnet_count live = {count, NULL, 1, d->rows.storage};
    void *work = take_work(d, BOTH(d, norm_work)(&n));
    n.sum = true;
    n.act = d->add ? PNET_ACT_LEAKY : PNET_ACT_RELU;
    n.slope = 0.25f;
    BOTH(d, scale)(live, 0.5f, d->y, false, gradient);
    g.gout = gradient;
    g.out = d->b;
    g.gx = added ? gradient : d->y;
    g.gadded = added ? d->y : other;
    g.gadded_add = added && d->add;
    g.gx_add = !added && d->add;
    BOTH(d, norm_statistics)(&n, 1e-3, d->mean, d->inverse, work);
    BOTH(d, norm_backward)(&n, d->mean, d->inverse, &g, work);
    give_work(d, work);
    give_work(d, gradient);
    give_work(d, other);
}

static void do_batchnorm_sum_backward(const struct side *d)
{
    do_sum_backward(d, true, d->c, false);
}

static void do_batchnorm_sum_added(const struct side *d)
{
    do_sum_backward(d, true, d->c, true);
}

static void do_instancenorm_sum_backward(const struct side *d)
{
    do_sum_backward(d, false, d->c, false);
}

static void do_groupnorm_sum_added(const struct side *d)
{
    do_sum_backward(d, false, some_groups(d->c), true);
}

/* Only gradients of weight and bias. */
static void do_batchnorm_weights(const struct side *d)
{
    struct pnet_norm n = norm_of(d, true, d->c);
    struct pnet_norm_gradient g = gradient_of(d);
    g.gx = NULL;
    n.act = PNET_ACT_NONE;
    run_norm_backward(d, &n, &g);
}

static void do_instancenorm(const struct side *d)
{
    do_norm(d, false, d->c);
}

static void do_groupnorm(const struct side *d)
{
    do_norm(d, false, some_groups(d->c));
}

static void do_instancenorm_at_once(const struct side *d)
{
    do_at_once(d, false, d->c);
}

static void do_groupnorm_at_once(const struct side *d)
{
    do_at_once(d, false, some_groups(d->c));
}

static void do_one_group(const struct side *d)
{
    do_norm(d, true, 1);
}

static void do_instancenorm_backward(const struct side *d)
{
    do_norm_backward(d, false, d->c, 0);
}

static void do_groupnorm_backward(const struct side *d)
{
    do_norm_backward(d, false, some_groups(d->c), 0);
}

static void do_one_group_backward(const struct side *d)
{
    do_norm_backward(d, true, 1, 0);
}

static void do_batchnorm_backward(const struct side *d)
{
    do_norm_backward(d, true, d->c, 1);
}

static void do_batchnorm_constant(const struct side *d)
{
    do_norm_backward(d, true, d->c, INT64_MAX);
}

#define CASE(name)                                                                                 \
    {                                                                                              \
#name, do_##name, 0                                                                        \
    }
#define NEAR(name, floor)                                                                          \
    {                                                                                              \
#name, do_##name, floor                                                                    \
    } /* eps of 1e-3: inverse is 32 at most */
static const struct dense_case cases[] = {CASE(relu), CASE(leaky), CASE(act_none),
    CASE(act_gradient), CASE(act_backward), CASE(gelu), CASE(gelu_backward), CASE(sigmoid),
    CASE(sigmoid_backward), CASE(swiglu), CASE(swiglu_backward), CASE(fill), CASE(scale),
    CASE(double), CASE(add), CASE(add_leaky), CASE(mul), CASE(gate), CASE(row_dot), CASE(dropout),
    CASE(dropout_all), CASE(drop_points), CASE(drop_samples), CASE(columns_put), CASE(columns_take),
    CASE(columns_half), CASE(columns_eighth), CASE(layernorm), NEAR(layernorm_backward, 32),
    NEAR(layernorm_weights, 32), NEAR(layernorm_input, 32), CASE(l2norm), NEAR(l2norm_backward, 2),
    CASE(softmax), CASE(softmax_backward), CASE(sums), CASE(instancenorm), CASE(groupnorm),
    CASE(one_group), CASE(batchnorm), NEAR(instancenorm_backward, 32), NEAR(groupnorm_backward, 32),
    NEAR(one_group_backward, 32), NEAR(batchnorm_backward, 32), NEAR(batchnorm_constant, 32),
    CASE(instancenorm_at_once), CASE(groupnorm_at_once), CASE(batchnorm_at_once),
    CASE(batchnorm_in_place), NEAR(batchnorm_act_backward, 32), NEAR(instancenorm_act_backward, 32),
    NEAR(batchnorm_weights, 32), CASE(batchnorm_sum), CASE(instancenorm_sum), CASE(groupnorm_sum),
    NEAR(batchnorm_sum_backward, 32), CASE(batchnorm_sum_added),
    NEAR(instancenorm_sum_backward, 32), CASE(groupnorm_sum_added)};

static void check_kernels(enum pnet_storage storage, int64_t most)
{
    static const struct {
        int64_t rows;
        int32_t c;
    } shapes[] = {{0, 4}, {1, 1}, {1, 64}, {2, 33}, {7, 1}, {63, 3}, {65, 20}, {1000, 33},
        {1000, 64}, {517, 44}, {997, 512}, {4099, 20}, {100000, 1}, {100000, 3}, {100003, 33},
        {140000, 64}, {300, 1030}, {300, 768}, {333, 101}, {130, 64}, {640, 8}, {1200, 8},
        /* nearly as many rows as norms of few have, and wide ones */
        {7300, 64}, {7301, 72}, {8192, 32}, {1001, 256}, {1001, 264},
        /* 16 bits, of more rows than those: a tile of few channels, several, more rows than registers keep */
        {8193, 24}, {9001, 64}, {12000, 40}, {132001, 8}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        if (shapes[s].rows * shapes[s].c > most) continue;
        struct world *w = world_new(storage, shapes[s].rows, shapes[s].c);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (int add = 0; add < 2; add++) check_case(w, &cases[i], add);
        world_free(w);
    }
}

/* Optimisers: several steps, recorded once and replayed, among them one whose gradient is not finite. */

enum { N = 50021, STEPS = 6, BAD_STEP = 3 };

static void *to_device(const void *from, size_t bytes)
{
    void *p = device_alloc(bytes);
    pnet_cuda_copy_in(p, from, bytes);
    return p;
}

static void gradient_at(int step, float *g)
{
    for (int64_t i = 0; i < N; i++) g[i] = 4 * (random_at((uint64_t)step + 9, i) - 0.4f);
    for (int64_t i = 30000; i < 30010; i++) g[i] = NAN; /* between the parts */
    if (step == BAD_STEP) g[49999] = INFINITY;
}

static void check_optimizer(const char *name, const struct pnet_optim *o)
{
    static const struct pnet_optim_part parts[] = {{0, 30000, true, 1}, {30010, 64, false, 1},
        {30074, 3, false, 1}, {30077, 19923, true, 0.25f}};
    struct pnet_optim_chunk chunks[64];
    int64_t chunk_count = pnet_optim_chunks(o, parts, 4, chunks);
    int states = pnet_optim_state_count(o);
    size_t bytes = N * sizeof(float);
    float *w = malloc(bytes), *g = malloc(bytes), *state[2] = {NULL, NULL}, *got = malloc(bytes);
    double losses[2] = {1, 2};
    void *work = malloc(pnet_optim_work(PNET_CPU, chunk_count));
    struct pnet_optim_record record = {.clip = 50, .loss_scale = 4}, seen;
    for (int64_t i = 0; i < N; i++) w[i] = random_at(5, i) - 0.5f;
    struct pnet_optim_update cpu = {
        pnet_optim_rule(o), chunks, chunk_count, g, w, {NULL, NULL}, losses, 2, &record, 0};
    struct pnet_optim_update gpu = cpu;
    float *gpu_g = device_alloc(bytes);
    gpu.chunks = to_device(chunks, (size_t)chunk_count * sizeof *chunks);
    gpu.g = gpu_g;
    gpu.w = to_device(w, bytes);
    gpu.losses = to_device(losses, sizeof losses);
    gpu.record = to_device(&record, sizeof record);
    for (int i = 0; i < states; i++) {
        cpu.state[i] = state[i] = calloc(N, sizeof(float));
        gpu.state[i] = to_device(state[i], bytes);
    }
    void *gpu_work = device_alloc(pnet_optim_work(PNET_CUDA, chunk_count));
    gpu.squared = chunk_count - 3;
    pnet_cuda_record_begin();
    pnet_optim_squares(PNET_CUDA, &gpu, 0, 2, gpu_work);
    pnet_optim_squares(PNET_CUDA, &gpu, 2, gpu.squared - 2, gpu_work);
    pnet_optim_step(PNET_CUDA, &gpu, gpu_work);
    void *graph = pnet_cuda_record_end();
    CHECK(graph);
    for (int step = 1; step <= STEPS && graph; step++) {
        gradient_at(step, g);
        record.lr = 0.01 * step;
        pnet_cuda_copy_in(gpu_g, g, bytes);
        pnet_cuda_copy_in(&gpu.record->lr, &record.lr, sizeof record.lr);
        pnet_optim_step(PNET_CPU, &cpu, work);
        pnet_cuda_replay(graph);
        pnet_cuda_copy_out(&seen, gpu.record, sizeof seen);
        CHECKF(seen.skipped == record.skipped && seen.skips == record.skips &&
                   seen.step == record.step && record.skipped == (step == BAD_STEP),
            "%s, step %d: skipped %d, %g steps", name, step, seen.skipped, seen.step);
        if (!record.skipped)
            CHECKF(fabs(seen.norm - record.norm) <= 1e-13 * record.norm && record.norm > 50,
                "%s: norm %.17g, %.17g", name, seen.norm, record.norm);
        pnet_cuda_copy_out(got, gpu.w, bytes);
        check_close(name, "weights", got, w, N, 0);
        for (int i = 0; i < states; i++) {
            pnet_cuda_copy_out(got, gpu.state[i], bytes);
            check_close(name, "state", got, state[i], N, 0);
        }
    }
    check_sync(name);
    pnet_cuda_record_free(graph);
    pnet_cuda_free(gpu_g);
    pnet_cuda_free((void *)gpu.chunks);
    pnet_cuda_free((void *)gpu.losses);
    pnet_cuda_free(gpu.w);
    pnet_cuda_free(gpu.record);
    pnet_cuda_free(gpu_work);
    for (int i = 0; i < states; i++) {
        pnet_cuda_free(gpu.state[i]);
        free(state[i]);
    }
    free(w);
    free(g);
    free(got);
    free(work);
}

static void check_optimizers(void)
{
    static const struct {
        const char *name;
        struct pnet_optim o;
    } kinds[] = {
        {"sgd", {.kind = PNET_SGD, .weight_decay = 0.1}},
        {"sgd, momentum", {.kind = PNET_SGD, .momentum = 0.9, .weight_decay = 0.01}},
        {"sgd, nesterov", {.kind = PNET_SGD, .momentum = 0.8, .nesterov = true, .decay_all = true}},
        {"adam",
            {.kind = PNET_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1}},
        {"adamw",
            {.kind = PNET_ADAMW, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1}},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_optimizer(kinds[i].name, &kinds[i].o);
}

static void check_loss_add(void)
{
    float loss = 1.25f;
    double sum = 0, *gpu_sum = device_alloc(sizeof sum);
    float *gpu_loss = to_device(&loss, sizeof loss);
    pnet_cuda_loss_add(gpu_loss, 0.5, false, gpu_sum);
    pnet_cuda_loss_add(gpu_loss, 0.25, true, gpu_sum);
    pnet_cuda_copy_out(&sum, gpu_sum, sizeof sum);
    CHECK(sum == 1.25 * 0.75);
    pnet_cuda_free(gpu_sum);
    pnet_cuda_free(gpu_loss);
}

/* More than 2^31 elements, where the GPU has the memory: numbers whose sums are known. */
static void check_large(void)
{
    int64_t rows = 70000003, n = rows * 33;
    int32_t c = 33;
    struct pnet_cuda_info info;
    struct pnet_count elements = pnet_count(n), r = pnet_count(rows);
    struct pnet_segments s = {rows, 1, NULL, 1, PNET_STORE_F32};
    if (pnet_cuda_describe(0, &info) || info.free_memory < (size_t)n * 9) {
        printf("not enough memory for more than 2^31 elements\n");
        return;
    }
    float *x = device_alloc((size_t)n * sizeof(float)),
          *y = device_alloc((size_t)n * sizeof(float));
    double *sum = device_alloc((size_t)c * sizeof *sum), got[33];
    void *work = device_alloc(pnet_cuda_segment_sums_work(s, c));
    pnet_cuda_fill(elements, 2, x);
    pnet_cuda_scale(elements, 1.5f, x, false, y);
    pnet_cuda_columns_put(r, 1, x, c, 32, y); /* the last column: 2 of the first rows of x */
    pnet_cuda_segment_sums(s, c, y, NULL, sum, NULL, work);
    pnet_cuda_copy_out(got, sum, sizeof got);
    for (int32_t i = 0; i < c; i++) CHECK(got[i] == (double)rows * (i == 32 ? 2 : 3));
    pnet_cuda_softmax(r, c, x, y);
    pnet_cuda_segment_sums(s, c, y, NULL, sum, NULL, work);
    pnet_cuda_copy_out(got, sum, sizeof got);
    for (int32_t i = 0; i < c; i++) CHECK(fabs(got[i] / (double)rows * 33 - 1) < 1e-6);
    float last[33];
    pnet_cuda_copy_out(last, y + (rows - 1) * c, sizeof last);
    for (int32_t i = 0; i < c; i++) CHECK(fabsf(last[i] * 33 - 1) < 1e-6f);
    check_sync("large");
    pnet_cuda_free(x);
    pnet_cuda_free(y);
    pnet_cuda_free(sum);
    pnet_cuda_free(work);
}

/* With the argument small only what a sanitizer gets through in seconds; every kernel is among it. */
int main(int argc, char **argv)
{
    const char *why = "";
    const bool small = getenv("PNET_SHORT") || (argc > 1 && strcmp(argv[1], "small") == 0);
    if (!pnet_cuda_devices(&why)) {
        printf("skipped: no GPU: %s\n", why);
        return 77;
    }
    check_kernels(PNET_STORE_F32, small ? 10000 : INT64_MAX);
    check_kernels(PNET_STORE_BF16, small ? 10000 : 1100000);
    check_kernels(PNET_STORE_FP16, small ? 10000 : 1100000);
    check_optimizers();
    check_loss_add();
    if (!small) check_large();
    return check_end();
}

#else

int main(void)
{
    printf("skipped: built without CUDA\n");
    return 77;
}

#endif
