/* Trains with a loss that the program computes itself:  own_loss
   Each point has a value that depends on its place, and noise. The network learns what nine of ten values lie below: the loss is
   that of quantiles, which no model has. It is read and differentiated here, in plain C; pnet does the rest. */
#include <pnet.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "pnet 1\n"
                           "input cloud {\n"
                           "  xyz : position\n"
                           "  one : feature[1]\n"
                           "}\n"
                           "block unit(w) {\n"
                           "  out = in -> conv(w, kernel=3) -> bn -> relu\n"
                           "}\n"
                           "net quantile(p: cloud) {\n"
                           "  g = grid(p, 10cm * [1, 2])\n"
                           "  a = p.one -> pool(mean, to=g[0]) -> unit(16)\n"
                           "  b = a -> conv(32, kernel=2, to=g[1]) -> unit(32)\n"
                           "  c = cat(b -> conv(16, kernel=2, to=g[0]), a) -> unit(16)\n"
                           "  return c -> linear(1) -> upsample(to=level(p))\n"
                           "}\n"
                           "y = quantile(cloud)\n";

enum { STEPS = 150, SAMPLES = 2, POINTS = 1000, ROWS = SAMPLES * POINTS };

static struct pnet_error error;

static void check(enum pnet_status status)
{
    if (!status) return;
    fprintf(stderr, "own_loss: %s\n", error.message);
    exit((int)status);
}

/* From 0 to 1: the linear congruence of Knuth's MMIX. */
static float draw(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(state >> 40) / 16777216;
}

static float xyz[ROWS][3], one[ROWS][1], value[ROWS], y[ROWS], gradient[ROWS];

/* Points on a floor and on a wall, which have other values. */
static void draw_batch(void)
{
    for (int i = 0; i < ROWS; i++) {
        int wall = draw() < 0.5f;
        float u = 2 * draw(), v = 2 * draw();
        const float place[3] = {u, wall ? 0 : v, wall ? v : 0};
        memcpy(xyz[i], place, sizeof place);
        one[i][0] = 1;
        value[i] = (wall ? 2.0f : -1.0f) + draw();
    }
}

/* The loss, and its gradient by each number of the output. */
static double differentiate(double *below)
{
    const float share = 0.9f;
    double loss = 0;
    *below = 0;
    for (int i = 0; i < ROWS; i++) {
        float miss = value[i] - y[i];
        loss += (double)(miss > 0 ? share * miss : (share - 1) * miss) / ROWS;
        gradient[i] = (miss > 0 ? -share : 1 - share) / ROWS;
        *below += (double)(miss <= 0) / ROWS;
    }
    return loss;
}

int main(void)
{
    struct pnet_model *model;
    struct pnet_session *session;
    const char *const outputs[] = {"y"};
    double loss = 0, below = 0;
    struct pnet_model_options options = {.size = sizeof options,
        .purpose = PNET_PURPOSE_TRAIN,
        .outputs = outputs,
        .output_count = 1};
    check(pnet_model_compile("quantile.pnet", text, strlen(text), &options, &model, &error));
    struct pnet_optimizer adam = {.size = sizeof adam};
    check(pnet_optimizer_default(PNET_OPTIMIZER_ADAM, &adam, &error));
    struct pnet_session_options with = {.size = sizeof with, .seed = 1, .optimizer = &adam};
    check(pnet_session_new(model, &with, &session, &error));
    check(pnet_session_init(session, &error));

    const int64_t splits[] = {0, POINTS, ROWS};
    struct pnet_value values[] = {{"cloud", {splits, PNET_DTYPE_I64, SAMPLES + 1, 1, 0}},
        {"cloud.xyz", {xyz, PNET_DTYPE_F32, ROWS, 3, 0}},
        {"cloud.one", {one, PNET_DTYPE_F32, ROWS, 1, 0}}};
    struct pnet_value gradients[] = {{"y", {gradient, PNET_DTYPE_F32, ROWS, 1, 0}}};
    for (int step = 0; step < STEPS; step++) {
        struct pnet_step_options by = {.size = sizeof by, .learning_rate = 0.02};
        draw_batch();
        check(pnet_session_bind(session, values, 3, &error));
        check(pnet_session_forward_training(session, &error));
        check(pnet_session_output(session, "y", y, ROWS, &error));
        loss = differentiate(&below);
        check(pnet_session_backward(session, gradients, 1, 0, 0, &error));
        check(pnet_session_step(session, &by, NULL, &error));
        if (step % 50 == 0) printf("step %d: loss %.3f\n", step, loss);
    }

    draw_batch(); /* which the network has not seen */
    check(pnet_session_bind(session, values, 3, &error));
    check(pnet_session_forward(session, &error));
    check(pnet_session_output(session, "y", y, ROWS, &error));
    loss = differentiate(&below);
    printf("loss %.3f, %.3f of the values lie below\n", loss, below);
    pnet_session_free(session);
    pnet_model_free(model);
    return 0;
}
