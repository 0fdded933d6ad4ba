/* Outputs of a model and backward from the caller's gradients: against differences of losses that are evaluated here in double,
   against the model's own losses, and in the rows that the header says. */
#include "tests/library/api.h"

enum { ROWS = 90, SAMPLES = 3, IN = 4, MIDDLE = 5, OUT = 2 };

/* Points and samples, a norm by the batch, outputs that feed each other. */
static const char mlp_text[] = "pnet 1\n"
                               "input cloud {\n"
                               "  xyz : position\n"
                               "  f   : feature[4]\n"
                               "}\n"
                               "net n(p: cloud) {\n"
                               "  h = p.f -> linear(5) -> bn -> sigmoid\n"
                               "  return h -> pool(mean, to=sample) -> linear(2)\n"
                               "}\n"
                               "y = n(cloud)\n";

static float xyz[ROWS][3], field[ROWS][IN];
static const int64_t splits[SAMPLES + 1] = {0, 20, 65, ROWS};

static uint64_t state = 5;
static float draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(state >> 40) / 16777216;
}

/* In the order of the model's weights, as one list of numbers: of the first layer and its bias, the norm, the second layer. */
enum { W1 = MIDDLE * IN, B1 = MIDDLE, W2 = OUT * MIDDLE, B2 = OUT };
struct numbers {
    double w1[MIDDLE][IN], b1[MIDDLE], scale[MIDDLE], shift[MIDDLE], w2[OUT][MIDDLE], b2[OUT];
    double f[ROWS][IN];
};
static struct numbers net;
static const struct {
    const char *name;
    size_t at, count;
} parts[] = {{"n.h.linear.weight", offsetof(struct numbers, w1), W1},
    {"n.h.linear.bias", offsetof(struct numbers, b1), B1},
    {"n.h.bn.weight", offsetof(struct numbers, scale), MIDDLE},
    {"n.h.bn.bias", offsetof(struct numbers, shift), MIDDLE},
    {"n.out.linear.weight", offsetof(struct numbers, w2), W2},
    {"n.out.linear.bias", offsetof(struct numbers, b2), B2}};
enum { PARTS = sizeof parts / sizeof *parts };

static double *part_of(struct numbers *n, int i)
{
    return (double *)(void *)((char *)n + parts[i].at);
}

struct values {
    double h[ROWS][MIDDLE], y[SAMPLES][OUT];
};

/* The network in double. */
static void evaluate(const struct numbers *n, struct values *v)
{
    for (int c = 0; c < MIDDLE; c++) {
        double x[ROWS], mean = 0, var = 0;
        for (int i = 0; i < ROWS; i++) {
            x[i] = n->b1[c];
            for (int k = 0; k < IN; k++) x[i] += n->w1[c][k] * n->f[i][k];
            mean += x[i] / ROWS;
        }
        for (int i = 0; i < ROWS; i++) var += (x[i] - mean) * (x[i] - mean) / ROWS;
        for (int i = 0; i < ROWS; i++) {
            double z = (x[i] - mean) / sqrt(var + 1e-5) * n->scale[c] + n->shift[c];
            v->h[i][c] = 1 / (1 + exp(-z));
        }
    }
    for (int s = 0; s < SAMPLES; s++)
        for (int o = 0; o < OUT; o++) {
            v->y[s][o] = n->b2[o];
            for (int64_t i = splits[s]; i < splits[s + 1]; i++)
                for (int c = 0; c < MIDDLE; c++)
                    v->y[s][o] += n->w2[o][c] * v->h[i][c] / (double)(splits[s + 1] - splits[s]);
        }
}

/* A loss that no model has: it reads points and samples. */
static double loss_of(const struct values *v)
{
    double loss = 0;
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < MIDDLE; c++) loss += sin((i % 7 + 1) * v->h[i][c]) / ROWS;
    for (int s = 0; s < SAMPLES; s++)
        for (int o = 0; o < OUT; o++) loss += (s + 1) * v->y[s][o] * v->y[s][o] * v->y[s][o];
    return loss;
}

static struct pnet_model *compile(const char *text, const struct pnet_model_options *o)
{
    struct pnet_model *m = NULL;
    NEED(pnet_model_compile("outputs.pnet", text, strlen(text), o, &m, &e));
    return m;
}

static const char *const mlp_outputs[] = {"n.h", "y"};

static struct pnet_model *mlp_model(void)
{
    struct pnet_model_options o = {.size = sizeof o,
        .purpose = PNET_PURPOSE_TRAIN,
        .outputs = mlp_outputs,
        .output_count = 2,
        .input_gradients = 1};
    return compile(mlp_text, &o);
}

static void bind_mlp(struct pnet_session *s)
{
    struct pnet_value v[] = {{"cloud", {splits, PNET_DTYPE_I64, SAMPLES + 1, 1, 0}},
        {"cloud.xyz", {xyz, PNET_DTYPE_F32, ROWS, 3, 0}},
        {"cloud.f", {field, PNET_DTYPE_F32, ROWS, IN, 0}}};
    NEED(pnet_session_bind(s, v, 3, &e));
}

/* Sets weights and fields of both networks to the same numbers. */
static void draw_all(struct pnet_session *s)
{
    float w[W1];
    for (int i = 0; i < PARTS; i++) {
        for (size_t k = 0; k < parts[i].count; k++) {
            w[k] = 2 * draw() - 1;
            part_of(&net, i)[k] = (double)w[k];
        }
        NEED(pnet_session_set_weight(s, parts[i].name, w, (int64_t)parts[i].count, &e));
    }
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 3; k++) xyz[i][k] = draw();
        for (int k = 0; k < IN; k++) net.f[i][k] = (double)(field[i][k] = 2 * draw() - 1);
    }
}

static float h[ROWS][MIDDLE], y[SAMPLES][OUT], to_h[ROWS][MIDDLE], to_y[SAMPLES][OUT];

/* The outputs are those of the network in double; then fills the gradients of the loss by them. */
static void read_outputs(struct pnet_session *s, struct pnet_value gradients[2])
{
    struct values v;
    double worst = 0;
    evaluate(&net, &v);
    NEED(pnet_session_output(s, "n.h", h[0], (int64_t)ROWS * MIDDLE, &e));
    NEED(pnet_session_output(s, "y", y[0], (int64_t)SAMPLES * OUT, &e));
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < MIDDLE; c++) {
            worst = fmax(worst, fabs((double)h[i][c] - v.h[i][c]));
            to_h[i][c] = (float)((i % 7 + 1) * cos((i % 7 + 1) * (double)h[i][c]) / ROWS);
        }
    for (int i = 0; i < SAMPLES; i++)
        for (int o = 0; o < OUT; o++) {
            worst = fmax(worst, fabs((double)y[i][o] - v.y[i][o]));
            to_y[i][o] = 3 * (float)(i + 1) * y[i][o] * y[i][o];
        }
    CHECKF(worst < 1e-5, "outputs differ by %g", worst);
    gradients[0] = (struct pnet_value){"y", {to_y, PNET_DTYPE_F32, SAMPLES, OUT, 0}};
    gradients[1] = (struct pnet_value){"n.h", {to_h, PNET_DTYPE_F32, ROWS, MIDDLE, 0}};
}

static double by_differences(double *x)
{
    struct values v;
    double was = *x, step = 1e-5;
    *x = was + step;
    evaluate(&net, &v);
    double up = loss_of(&v);
    *x = was - step;
    evaluate(&net, &v);
    *x = was;
    return (up - loss_of(&v)) / (2 * step);
}

/* Compares gradients with differences. */
static void compare(const char *name, double *x, const float *gradient, size_t count, double scale)
{
    double worst = 0, most = 0;
    for (size_t k = 0; k < count; k++) {
        double measured = scale * by_differences(&x[k]);
        worst = fmax(worst, fabs(measured - (double)gradient[k]));
        most = fmax(most, fabs(measured));
    }
    /* a bias before a norm by the batch has none */
    bool none = strcmp(name, "n.h.linear.bias") == 0;
    CHECKF(none ? worst < 1e-5 : most > 1e-2 && worst < 2e-5 * most, "%s: %g of %g", name, worst,
        most);
}

static void compare_all(struct pnet_session *s, double weights, double inputs)
{
    float g[W1], by_field[ROWS][IN];
    for (int i = 0; i < PARTS; i++) {
        NEED(pnet_session_get_gradient(s, parts[i].name, g, (int64_t)parts[i].count, &e));
        compare(parts[i].name, part_of(&net, i), g, parts[i].count, weights);
    }
    NEED(pnet_session_input_gradient(s, "cloud.f", by_field[0], (int64_t)ROWS * IN, &e));
    compare("cloud.f", net.f[0], by_field[0], (size_t)ROWS * IN, inputs);
}

static void test_differences(void)
{
    struct pnet_model *m = mlp_model();
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_value gradients[2];
    float by_xyz[ROWS][3], sum = 0;
    NEED(pnet_session_init(s, &e));
    draw_all(s);
    bind_mlp(s);
    NEED(pnet_session_forward_training(s, &e));
    read_outputs(s, gradients);
    NEED(pnet_session_backward(s, gradients, 2, 1, 0, &e));
    compare_all(s, 1, 1);
    read_outputs(s, gradients); /* they are still there */
    /* a second batch adds to the gradients of weights, and replaces those of inputs */
    NEED(pnet_session_forward_training(s, &e));
    NEED(pnet_session_backward(s, gradients, 2, 1, 1, &e));
    compare_all(s, 2, 1);
    /* without gradients all of them are zero */
    NEED(pnet_session_forward_training(s, &e));
    NEED(pnet_session_backward(s, NULL, 0, 1, 1, &e));
    float by_field[ROWS * IN];
    NEED(pnet_session_input_gradient(s, "cloud.f", by_field, (int64_t)ROWS * IN, &e));
    for (int i = 0; i < ROWS * IN; i++) sum += fabsf(by_field[i]);
    NEED(pnet_session_input_gradient(s, "cloud.xyz", by_xyz[0], (int64_t)ROWS * 3, &e));
    for (int i = 0; i < ROWS; i++)
        sum += fabsf(by_xyz[i][0]) + fabsf(by_xyz[i][1]) + fabsf(by_xyz[i][2]);
    CHECK(sum == 0);
    pnet_session_free(s);
    pnet_model_free(m);
}

/* What the model says of its outputs. */
static void test_info(void)
{
    struct pnet_model *m = mlp_model();
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_output_info o = {.size = sizeof o};
    int64_t rows, width, at[SAMPLES + 1];
    CHECK(pnet_model_outputs(m) == 2);
    NEED(pnet_model_output(m, 0, &o, &e));
    CHECK(strcmp(o.name, "n.h") == 0 && strcmp(o.path, "n.h.sigmoid") == 0);
    CHECK(o.width == MIDDLE && o.rows == PNET_ROWS_POINTS && strcmp(o.input, "cloud") == 0);
    CHECK(o.gradient && o.cell == 0);
    NEED(pnet_model_output(m, 1, &o, &e));
    CHECK(o.width == OUT && o.rows == PNET_ROWS_SAMPLES && !o.input && o.gradient);
    REFUSED(pnet_model_output(m, 2, &o, &e), PNET_USAGE, "there is no output 2");
    REFUSED(pnet_session_output_shape(s, "y", &rows, &width, &e), PNET_USAGE, "no batch");
    bind_mlp(s);
    NEED(pnet_session_output_shape(s, "n.h", &rows, &width, &e));
    CHECK(rows == ROWS && width == MIDDLE);
    NEED(pnet_session_output_splits(s, "n.h", at, SAMPLES + 1, &e));
    CHECK(memcmp(at, splits, sizeof at) == 0);
    NEED(pnet_session_output_splits(s, "y", at, SAMPLES + 1, &e));
    for (int i = 0; i <= SAMPLES; i++) CHECK(at[i] == i);
    REFUSED(pnet_session_output_splits(s, "y", at, 2, &e), PNET_USAGE, "3 samples");
    pnet_session_free(s);
    pnet_model_free(m);
}

static const char mse_net[] =
    "pnet 1\n"
    "input cloud {\n"
    "  xyz    : position\n"
    "  rgb    : feature[3]\n"
    "  target : feature[4]\n"
    "}\n"
    "net small(p: cloud) {\n"
    "  g = grid(p, 20cm * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(8, kernel=3) -> bn -> relu -> dropout(20%)\n"
    "  b = a -> conv(16, kernel=2, to=g[1]) -> bn -> relu\n"
    "  c = cat(b -> conv(8, kernel=2, to=g[0]), a) -> linear(8) -> relu\n"
    "  return cat(c -> upsample(to=level(p)), p.rgb) -> linear(4)\n"
    "}\n"
    "y = small(cloud)\n"
    "loss m = mse(y, cloud.target)\n";

static struct api_cloud cloud;
static float target[API_ROWS][4], out[API_ROWS][4], to_out[API_ROWS][4];
static float mine[API_ROWS][3], theirs[API_ROWS][3];

static struct pnet_session *mse_session(const char *without, bool outputs, struct pnet_model **m)
{
    static const char *const names[] = {"y"};
    char text[1024];
    struct pnet_model_options o = {.size = sizeof o,
        .purpose = PNET_PURPOSE_TRAIN,
        .outputs = names,
        .output_count = outputs,
        .input_gradients = 1};
    snprintf(text, sizeof text, "%s", mse_net);
    if (without) *strstr(text, without) = '\0';
    *m = compile(text, &o);
    struct pnet_session *s = api_session(*m, NULL);
    struct pnet_value v[] = {{"cloud", {cloud.splits, PNET_DTYPE_I64, 3, 1, 0}},
        {"cloud.xyz", {cloud.xyz, PNET_DTYPE_F32, API_ROWS, 3, 0}},
        {"cloud.rgb", {cloud.rgb, PNET_DTYPE_F32, API_ROWS, 3, 0}},
        {"cloud.target", {target, PNET_DTYPE_F32, API_ROWS, 4, 0}}};
    NEED(pnet_session_init(s, &e));
    NEED(pnet_session_bind(s, v, 4, &e));
    return s;
}

/* All gradients of two sessions of the same network are the same bits. */
static void check_same(struct pnet_session *a, struct pnet_session *b, const struct pnet_model *m)
{
    static float x[1 << 14], z[1 << 14];
    size_t compared = 0;
    for (size_t i = 0; i < pnet_model_weights(m); i++) {
        struct pnet_weight_info w = {.size = sizeof w};
        NEED(pnet_model_weight(m, i, &w, &e));
        if (!w.trained) continue;
        NEED(pnet_session_get_gradient(a, w.name, x, w.count, &e));
        NEED(pnet_session_get_gradient(b, w.name, z, w.count, &e));
        CHECKF(memcmp(x, z, (size_t)w.count * sizeof *x) == 0, "%s differs", w.name);
        compared++;
    }
    CHECK(compared > 8);
    NEED(pnet_session_input_gradient(a, "cloud.rgb", mine[0], (int64_t)API_ROWS * 3, &e));
    NEED(pnet_session_input_gradient(b, "cloud.rgb", theirs[0], (int64_t)API_ROWS * 3, &e));
    CHECK(memcmp(mine, theirs, sizeof mine) == 0);
    float sum = 0;
    for (int i = 0; i < API_ROWS; i++) sum += fabsf(mine[i][0]);
    CHECK(sum > 0);
}

/* The mean of squares of the outputs read last, in double. */
static double mean_of_squares(void)
{
    double sum = 0;
    for (int i = 0; i < API_ROWS; i++)
        for (int k = 0; k < 4; k++) sum += pow((double)out[i][k] - (double)target[i][k], 2);
    return sum / (API_ROWS * 4);
}

/* The gradient of the mean of squares, as its definition has it. */
static void differentiate(struct pnet_session *s, float scale)
{
    float each = (float)((double)scale / (API_ROWS * 4));
    NEED(pnet_session_output(s, "y", out[0], (int64_t)API_ROWS * 4, &e));
    for (int i = 0; i < API_ROWS; i++)
        for (int k = 0; k < 4; k++) to_out[i][k] = each * (2 * (out[i][k] - target[i][k]));
}

static const struct pnet_value of_y = {"y", {to_out, PNET_DTYPE_F32, API_ROWS, 4, 0}};

/* The caller's gradient of the model's own loss gives the model's own gradients, with the loss in the model and without. */
static void test_own_loss(void)
{
    struct pnet_model *m, *n, *k;
    struct pnet_session *own = mse_session(NULL, false, &m), *with = mse_session(NULL, true, &n),
                        *without = mse_session("loss", true, &k);
    double loss = 0, by_hand;
    for (int round = 0; round < 3; round++) { /* each draws other numbers for dropout */
        NEED(pnet_session_gradients(own, 0.5F, round == 2, &e));
        NEED(pnet_session_forward_training(with, &e));
        differentiate(with, 0.5F);
        NEED(pnet_session_backward(with, &of_y, 1, 0, round == 2, &e));
        check_same(own, with, m);
        NEED(pnet_session_forward_training(without, &e));
        differentiate(without, 0.5F);
        NEED(pnet_session_backward(without, &of_y, 1, 1, round == 2, &e));
        check_same(own, without, m);
        NEED(pnet_session_objective(own, "m", &loss, &e));
    }
    by_hand = mean_of_squares();
    CHECKF(fabs(loss - by_hand) < 1e-6 * loss, "%g, expected %g", by_hand, loss);
    /* the two halves are the whole, and losses add to the caller's gradients */
    NEED(pnet_session_gradients(own, 1, 0, &e));
    NEED(pnet_session_forward_training(with, &e));
    NEED(pnet_session_backward(with, NULL, 0, 1, 0, &e));
    check_same(own, with, m);
    NEED(pnet_session_gradients(own, 1, 0, &e));
    NEED(pnet_session_gradients(with, 1, 0, &e));
    check_same(own, with, m);
    pnet_session_free(own);
    pnet_session_free(with);
    pnet_session_free(without);
    pnet_model_free(m);
    pnet_model_free(n);
    pnet_model_free(k);
}

/* Half of a loss in the model and half of it by the caller is the loss. */
static void test_sum(void)
{
    struct pnet_model *m, *n;
    struct pnet_session *own = mse_session(NULL, false, &m), *with = mse_session(NULL, true, &n);
    static float x[4096], z[4096];
    NEED(pnet_session_gradients(own, 1, 0, &e));
    NEED(pnet_session_forward_training(with, &e));
    differentiate(with, 0.5F);
    NEED(pnet_session_backward(with, &of_y, 1, 0.5F, 0, &e));
    for (size_t i = 0; i < pnet_model_weights(m); i++) {
        struct pnet_weight_info w = {.size = sizeof w};
        float worst = 0, most = 0;
        NEED(pnet_model_weight(m, i, &w, &e));
        if (!w.trained || w.count > 4096) continue;
        NEED(pnet_session_get_gradient(own, w.name, x, w.count, &e));
        NEED(pnet_session_get_gradient(with, w.name, z, w.count, &e));
        for (int64_t k = 0; k < w.count; k++) {
            worst = fmaxf(worst, fabsf(x[k] - z[k]));
            most = fmaxf(most, fabsf(x[k]));
        }
        if (most > 1e-6F)
            CHECKF(worst < 1e-5F * most, "%s: %g of %g", w.name, (double)worst, (double)most);
    }
    pnet_session_free(own);
    pnet_session_free(with);
    pnet_model_free(m);
    pnet_model_free(n);
}

static const char levels_text[] = "pnet 1\n"
                                  "input cloud {\n"
                                  "  xyz : position\n"
                                  "  rgb : feature[3]\n"
                                  "}\n"
                                  "net n(p: cloud) {\n"
                                  "  g = grid(p, 20cm * [1, 2])\n"
                                  "  a = p.rgb -> pool(mean, to=g[0])\n"
                                  "  b = a -> pool(max, to=g[1])\n"
                                  "  c = p.rgb -> linear(6) -> split(to=points(level(p), 2))\n"
                                  "  return [a, b, c]\n"
                                  "}\n"
                                  "y = n(cloud)\n";

/* The same means and maxima by levels and maps without a model. */
static void check_levels(struct pnet_session *s)
{
    struct pnet_array positions = {cloud.xyz, PNET_DTYPE_F32, API_ROWS, 3, 0},
                      begins = {cloud.splits, PNET_DTYPE_I64, 3, 1, 0},
                      colours = {cloud.rgb, PNET_DTYPE_F32, API_ROWS, 3, 0};
    struct pnet_points_options o = {.size = sizeof o, .row_splits = &begins, .cell = 0.2};
    struct pnet_points_info i = {.size = sizeof i};
    struct pnet_map_options mean = {.size = sizeof mean, .kind = PNET_MAP_MEAN},
                            max = {.size = sizeof max, .kind = PNET_MAP_MAX};
    struct pnet_points *p = NULL, *g[2] = {NULL};
    struct pnet_map *to[2] = {NULL};
    static float want[2][API_ROWS][3], got[API_ROWS][3];
    static int32_t sample[API_ROWS];
    struct pnet_array from = colours;
    NEED(pnet_points_new(&positions, &o, &p, &e));
    for (int l = 0; l < 2; l++) {
        const char *name = l ? "y[1]" : "y[0]";
        int64_t rows, width, at[3];
        NEED(pnet_points_grid(l ? g[0] : p, l ? 0.4 : 0.2, &g[l], &e));
        NEED(pnet_points_counts(g[l], &i, &e));
        NEED(pnet_map_new(g[l], l ? g[0] : p, l ? &max : &mean, &to[l], &e));
        struct pnet_array_out filled = {want[l], PNET_DTYPE_F32, i.rows, 3, 0},
                              samples = {sample, PNET_DTYPE_I32, i.rows, 1, 0};
        NEED(pnet_map_forward(to[l], &from, NULL, &filled, &e));
        NEED(pnet_session_output_shape(s, name, &rows, &width, &e));
        CHECKF(
            rows == i.rows && width == 3, "%s: %d rows, expected %d", name, (int)rows, (int)i.rows);
        NEED(pnet_session_output(s, name, got[0], rows * width, &e));
        CHECK(memcmp(got, want[l], (size_t)rows * sizeof *got) == 0);
        NEED(pnet_points_samples(g[l], &samples, &e));
        NEED(pnet_session_output_splits(s, name, at, 3, &e));
        CHECK(at[0] == 0 && at[2] == rows);
        for (int64_t r = 0; r < rows; r++) CHECK(sample[r] == (r >= at[1]));
        from = (struct pnet_array){want[l], PNET_DTYPE_F32, rows, 3, 0};
    }
    for (int l = 0; l < 2; l++) {
        pnet_map_free(to[l]);
        pnet_points_free(g[l]);
    }
    pnet_points_free(p);
}

/* Outputs of levels have the rows of pnet_points_grid, for every purpose; generated points those of a result. */
static void test_rows(enum pnet_purpose purpose)
{
    static const char *const names[] = {"y[0]", "y[1]", "n.c"};
    struct pnet_model_options o = {
        .size = sizeof o, .purpose = purpose, .outputs = names, .output_count = 3};
    struct pnet_model *m = compile(levels_text, &o);
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_output_info i = {.size = sizeof i};
    struct pnet_value v[API_VALUES];
    static float points[2 * API_ROWS][3];
    float w[18], b[6];
    NEED(pnet_model_output(m, 1, &i, &e));
    CHECK(
        i.rows == PNET_ROWS_CELLS && i.cell == 0.4 && strcmp(i.input, "cloud") == 0 && !i.gradient);
    NEED(pnet_model_output(m, 2, &i, &e));
    CHECK(i.rows == PNET_ROWS_GENERATED && !i.input);
    CHECK(i.gradient == (purpose == PNET_PURPOSE_TRAIN));
    api_values(&cloud, v);
    NEED(pnet_session_init(s, &e));
    NEED(pnet_session_bind(s, v, 3, &e));
    if (purpose == PNET_PURPOSE_TRAIN) {
        struct pnet_value g = {"y[0]", {points, PNET_DTYPE_F32, 5, 3, 0}};
        NEED(pnet_session_forward_training(s, &e));
        REFUSED(pnet_session_backward(s, &g, 1, 1, 0, &e), PNET_USAGE, "nothing that learns");
    } else {
        NEED(pnet_session_forward(s, &e));
    }
    check_levels(s);
    NEED(pnet_session_get_weight(s, "n.c.linear.weight", w, 18, &e));
    NEED(pnet_session_get_weight(s, "n.c.linear.bias", b, 6, &e));
    NEED(pnet_session_output(s, "n.c", points[0], (int64_t)API_ROWS * 6, &e));
    for (int r = 0; r < API_ROWS; r++)
        for (int c = 0; c < 6; c++) {
            double want = (double)b[c];
            for (int k = 0; k < 3; k++) want += (double)w[3 * c + k] * (double)cloud.rgb[r][k];
            CHECK(fabs(want - (double)points[2 * r + c / 3][c % 3]) < 1e-5);
        }
    pnet_session_free(s);
    pnet_model_free(m);
}

/* An output changes no other bit: the result of a net with one beside the result without. */
static void test_beside(void)
{
    static const char *const names[] = {"small.a", "small.b"};
    struct pnet_model_options o = {.size = sizeof o, .outputs = names, .output_count = 2};
    struct pnet_model *m[] = {api_model(PNET_PURPOSE_INFER, NULL), compile(api_text, &o)};
    float *x[2];
    int64_t count = 0;
    struct pnet_value v[API_VALUES];
    api_values(&cloud, v);
    for (int i = 0; i < 2; i++) {
        struct pnet_session *s = api_session(m[i], NULL);
        NEED(pnet_session_init(s, &e));
        NEED(pnet_session_bind(s, v, API_VALUES, &e));
        x[i] = api_result(s, &count);
        pnet_session_free(s);
    }
    CHECK(memcmp(x[0], x[1], (size_t)count * sizeof *x[0]) == 0);
    for (int i = 0; i < 2; i++) {
        free(x[i]);
        pnet_model_free(m[i]);
    }
}

static void refuse_model(enum pnet_purpose purpose, const char *const *names, size_t count,
    enum pnet_status status, const char *says)
{
    struct pnet_model_options o = {
        .size = sizeof o, .purpose = purpose, .outputs = names, .output_count = count};
    struct pnet_model *m = NULL;
    REFUSED(pnet_model_compile("a", api_text, sizeof api_text - 1, &o, &m, &e), status, says);
    pnet_model_free(m);
}

static void test_refused_models(void)
{
    const char *const none[] = {NULL}, *const unknown[] = {"small.z"}, *const loss[] = {"ce"},
                      *const twice[] = {"y", "small.out"}, *const given[] = {"cloud.rgb"};
    refuse_model(PNET_PURPOSE_EVAL, none, 1, PNET_USAGE, "outputs: number 0 is NULL");
    refuse_model(PNET_PURPOSE_EVAL, NULL, 1, PNET_USAGE, "outputs: number 0 is NULL");
    refuse_model(PNET_PURPOSE_EVAL, unknown, 1, PNET_BAD_MODEL, "there is no value 'small.z'");
    refuse_model(PNET_PURPOSE_EVAL, loss, 1, PNET_BAD_MODEL, "'ce' is a loss or metric");
    refuse_model(PNET_PURPOSE_EVAL, given, 1, PNET_BAD_MODEL, "there is no value 'cloud.rgb'");
    refuse_model(PNET_PURPOSE_EVAL, twice, 2, PNET_BAD_MODEL, "'y' and 'small.out' are one value");
    refuse_model(PNET_PURPOSE_EVAL, twice, 300, PNET_USAGE, "outputs: at most 256");
    struct pnet_model_options o = {.size = sizeof o, .input_gradients = 1};
    struct pnet_model *m = NULL;
    REFUSED(pnet_model_compile("a", api_text, sizeof api_text - 1, &o, &m, &e), PNET_USAGE,
        "input_gradients: the purpose");
    CHECK(!m);
}

static void test_refused_calls(void)
{
    struct pnet_model *m = mlp_model(), *plain = api_model(PNET_PURPOSE_TRAIN, NULL);
    struct pnet_session *s = api_session(m, NULL), *t = api_session(plain, NULL);
    struct pnet_value g[2], batch[API_VALUES];
    float x[4];
    NEED(pnet_session_init(s, &e));
    draw_all(s);
    REFUSED(pnet_session_forward_training(s, &e), PNET_USAGE, "no batch");
    bind_mlp(s);
    REFUSED(pnet_session_output(s, "y", y[0], 6, &e), PNET_USAGE, "pnet_session_forward is first");
    REFUSED(pnet_session_backward(s, NULL, 0, 1, 0, &e), PNET_USAGE, "forward_training is first");
    NEED(pnet_session_forward(s, &e));
    REFUSED(pnet_session_backward(s, NULL, 0, 1, 0, &e), PNET_USAGE, "forward_training is first");
    NEED(pnet_session_forward_training(s, &e));
    REFUSED(pnet_session_output(s, "y", y[0], 7, &e), PNET_USAGE, "room for 7 numbers");
    REFUSED(pnet_session_output(s, "z", y[0], 6, &e), PNET_USAGE, "no output `z`");
    NEED(pnet_session_output(s, "y", y[0], 6, &e));
    read_outputs(s, g);
    REFUSED(pnet_session_backward(s, g, 2, 1, 1, &e), PNET_USAGE, "accumulate");
    REFUSED(pnet_session_input_gradient(s, "cloud.f", x, 4, &e), PNET_USAGE, "no gradients");
    g[0].array.rows = 2;
    REFUSED(pnet_session_backward(s, g, 2, 1, 0, &e), PNET_USAGE, "y: [2, 2], expected [3, 2]");
    g[0].name = "n.h";
    REFUSED(pnet_session_backward(s, g, 2, 1, 0, &e), PNET_USAGE, "expected [90, 5]");
    g[0] = g[1];
    REFUSED(pnet_session_backward(s, g, 2, 1, 0, &e), PNET_USAGE, "n.h is there twice");
    g[0].array.dtype = PNET_DTYPE_I32;
    REFUSED(pnet_session_backward(s, g, 1, 1, 0, &e), PNET_USAGE, "dtype 1");
    REFUSED(pnet_session_backward(s, g + 1, 1, NAN, 0, &e), PNET_USAGE, "scale nan");
    REFUSED(pnet_session_backward(s, g + 1, 1, -INFINITY, 0, &e), PNET_USAGE, "scale -inf");
    NEED(pnet_session_backward(s, g + 1, 1, 1, 0, &e)); /* nothing was lost by all that */
    REFUSED(
        pnet_session_backward(s, g + 1, 1, 1, 0, &e), PNET_USAGE, "each backward needs its own");
    REFUSED(pnet_session_input_gradient(s, "cloud.f", x, 4, &e), PNET_USAGE, "room for 4 numbers");
    REFUSED(pnet_session_input_gradient(s, "cloud.g", x, 4, &e), PNET_USAGE, "no field `cloud.g`");
    REFUSED(pnet_session_input_gradient(s, "cloud", x, 4, &e), PNET_USAGE, "no field `cloud`");
    NEED(pnet_session_init(t, &e));
    api_values(&cloud, batch);
    NEED(pnet_session_bind(t, batch, API_VALUES, &e));
    NEED(pnet_session_gradients(t, 1, 0, &e));
    REFUSED(pnet_session_input_gradient(t, "cloud.rgb", x, 4, &e), PNET_USAGE, "input_gradients");
    pnet_session_free(t);
    pnet_session_free(s);
    t = api_session(m, NULL);
    REFUSED(pnet_session_forward_training(t, &e), PNET_USAGE, "no weights");
    pnet_session_free(t);
    pnet_model_free(m);
    pnet_model_free(plain);
    m = api_model(PNET_PURPOSE_EVAL, NULL);
    s = api_session(m, NULL);
    REFUSED(pnet_session_forward_training(s, &e), PNET_USAGE, "PNET_PURPOSE_TRAIN");
    REFUSED(pnet_session_backward(s, NULL, 0, 1, 0, &e), PNET_USAGE, "PNET_PURPOSE_TRAIN");
    pnet_session_free(s);
    pnet_model_free(m);
}

/* A loss that does not count may be infinite: the step is made all the same. */
static void test_steps(void)
{
    static const char *const names[] = {"y"};
    struct pnet_model_options o = {
        .size = sizeof o, .purpose = PNET_PURPOSE_TRAIN, .outputs = names, .output_count = 1};
    struct pnet_optimizer adam = {.size = sizeof adam};
    struct pnet_step_options step = {.size = sizeof step, .learning_rate = 0.01};
    struct pnet_step_info info = {.size = sizeof info};
    struct pnet_model *m = compile(mse_net, &o);
    NEED(pnet_optimizer_default(PNET_OPTIMIZER_ADAM, &adam, &e));
    struct pnet_session *s = api_session(m, &adam);
    static float far[API_ROWS][4];
    for (int i = 0; i < API_ROWS; i++)
        for (int k = 0; k < 4; k++) far[i][k] = 1e30F;
    struct pnet_value v[] = {{"cloud.xyz", {cloud.xyz, PNET_DTYPE_F32, API_ROWS, 3, 0}},
        {"cloud.rgb", {cloud.rgb, PNET_DTYPE_F32, API_ROWS, 3, 0}},
        {"cloud.target", {far, PNET_DTYPE_F32, API_ROWS, 4, 0}}};
    double loss, first = 0, last = 0;
    NEED(pnet_session_init(s, &e));
    NEED(pnet_session_bind(s, v, 3, &e));
    for (int i = 0; i < 30; i++) {
        NEED(pnet_session_forward_training(s, &e));
        NEED(pnet_session_objective(s, "m", &loss, &e));
        CHECK(isinf(loss));
        differentiate(s, 1);
        last = mean_of_squares();
        if (!i) first = last;
        NEED(pnet_session_backward(s, &of_y, 1, 0, 0, &e));
        NEED(pnet_session_step(s, &step, &info, &e));
        CHECK(!info.skipped && info.steps == i + 1);
    }
    CHECKF(last < 0.5 * first, "%g, then %g", first, last);
    pnet_session_free(s);
    pnet_model_free(m);
}

int main(void)
{
    api_fill(&cloud, 3);
    for (int i = 0; i < API_ROWS; i++)
        for (int k = 0; k < 4; k++) target[i][k] = cloud.rgb[i][k % 3] - cloud.xyz[i][0] + (float)k;
    test_info();
    test_differences();
    test_own_loss();
    test_sum();
    test_rows(PNET_PURPOSE_INFER);
    test_rows(PNET_PURPOSE_EVAL);
    test_rows(PNET_PURPOSE_TRAIN);
    test_beside();
    test_refused_models();
    test_refused_calls();
    test_steps();
    return check_end();
}
