/* Trains in a loop of its own:  train MODEL.pnet WEIGHTS.safetensors CLOUD.bin
   Draws scenes of a floor, a wall and a ball, trains the model on them, and writes its weights, and one more scene as
   segment.c reads it. */
#include <pnet.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 60, SAMPLES = 2, POINTS = 1500, ROWS = SAMPLES * POINTS };

static struct pnet_error error;

static void check(enum pnet_status status)
{
    if (!status) return;
    fprintf(stderr, "train: %s\n", error.message);
    exit((int)status);
}

/* From 0 to 1: the linear congruence of Knuth's MMIX. */
static float draw(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(state >> 40) / 16777216;
}

/* A point of the scene: x y z r g b. Colours tell nothing. */
static int32_t draw_point(const float ball[3], float *p)
{
    int32_t label = (int32_t)(3 * draw());
    float u = 2 * draw(), v = 2 * draw(), turn = 3.14159265f * u, height = v - 1;
    const float on_floor[3] = {u, v, 0}, on_wall[3] = {u, 0, v}, round = sqrtf(1 - height * height);
    const float on_ball[3] = {ball[0] + 0.3f * round * cosf(turn),
        ball[1] + 0.3f * round * sinf(turn), ball[2] + 0.3f * height};
    const float *place = label == 0 ? on_floor : label == 1 ? on_wall : on_ball;
    for (int k = 0; k < 3; k++) {
        p[k] = place[k] + 0.005f * draw();
        p[3 + k] = draw();
    }
    return label;
}

static float cloud[ROWS][6];
static int32_t labels[ROWS];

static void draw_batch(void)
{
    float ball[3] = {0, 0, 0};
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 3 && i % POINTS == 0; k++) ball[k] = 0.5f + draw();
        labels[i] = draw_point(ball, cloud[i]);
    }
}

int main(int argc, char **argv)
{
    struct pnet_model *model;
    struct pnet_session *session;
    double loss = 0, accuracy = 0;
    if (argc != 4)
        return fprintf(stderr, "usage: train MODEL.pnet WEIGHTS.safetensors CLOUD.bin\n"), 2;

    struct pnet_model_options options = {.size = sizeof options, .purpose = PNET_PURPOSE_TRAIN};
    check(pnet_model_open(argv[1], &options, &model, &error));
    struct pnet_optimizer adamw = {.size = sizeof adamw};
    check(pnet_optimizer_default(PNET_OPTIMIZER_ADAMW, &adamw, &error));
    struct pnet_session_options with = {.size = sizeof with, .seed = 1, .optimizer = &adamw};
    check(pnet_session_new(model, &with, &session, &error));
    check(pnet_session_init(session, &error));

    int64_t splits[SAMPLES + 1];
    for (int i = 0; i <= SAMPLES; i++) splits[i] = i * POINTS;
    struct pnet_value values[] = {{"cloud", {splits, PNET_DTYPE_I64, SAMPLES + 1, 1, 0}},
        {"cloud.xyz", {cloud[0], PNET_DTYPE_F32, ROWS, 3, 6}},
        {"cloud.rgb", {cloud[0] + 3, PNET_DTYPE_F32, ROWS, 3, 6}},
        {"cloud.label", {labels, PNET_DTYPE_I32, ROWS, 1, 0}}};
    for (int step = 0; step < STEPS; step++) {
        struct pnet_step_options by = {.size = sizeof by, .learning_rate = 0.01, .clip = 1};
        draw_batch();
        check(pnet_session_bind(session, values, 4, &error));
        check(pnet_session_gradients(session, 1, 0, &error));
        check(pnet_session_objective(session, "ce", &loss, &error));
        check(pnet_session_step(session, &by, NULL, &error));
        if (step % 20 == 0) printf("step %d: loss %.3f\n", step, loss);
    }

    draw_batch(); /* which the network has not seen */
    check(pnet_session_bind(session, values, 4, &error));
    check(pnet_session_forward(session, &error));
    check(pnet_session_objective(session, "oa", &accuracy, &error));
    printf("accuracy %.3f\n", accuracy);
    check(pnet_session_save(session, argv[2], &error));
    FILE *f = fopen(argv[3], "wb");
    if (!f || fwrite(cloud, sizeof cloud[0], POINTS, f) != POINTS || fclose(f)) return 1;
    pnet_session_free(session);
    pnet_model_free(model);
    return 0;
}
