/* Labels the points of a cloud:  segment MODEL.pnet WEIGHTS CLOUD.bin SCORES.f32
   CLOUD.bin holds six float32 a point: x y z in metres, r g b from 0 to 1. Prints how many points each class has; SCORES.f32
   gets the scores, a row of float32 a point. */
#include <pnet.h>

#include <stdio.h>
#include <stdlib.h>

static struct pnet_error error;

static void check(enum pnet_status status)
{
    if (!status) return;
    fprintf(stderr, "segment: %s\n", error.message);
    exit((int)status);
}

static float *read_floats(const char *path, int64_t *count)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) return NULL;
    *count = ftell(f) / (int64_t)sizeof(float);
    rewind(f);
    float *x = malloc((size_t)*count * sizeof *x + 1);
    if (x && fread(x, sizeof *x, (size_t)*count, f) != (size_t)*count) x = NULL;
    fclose(f);
    return x;
}

int main(int argc, char **argv)
{
    struct pnet_model *model;
    struct pnet_session *session;
    int64_t floats, rows, classes, points[256] = {0};
    float *cloud = argc == 5 ? read_floats(argv[3], &floats) : NULL;
    if (!cloud)
        return fprintf(stderr, "usage: segment MODEL.pnet WEIGHTS CLOUD.bin SCORES.f32\n"), 2;

    /* as the weights were trained: in their mode, with their params */
    struct pnet_model_options options = {.size = sizeof options, .trained = argv[2]};
    check(pnet_model_open(argv[1], &options, &model, &error));
    check(pnet_session_new(model, NULL, &session, &error));
    check(pnet_session_load(session, argv[2], &error));

    /* columns of the records, where they lie */
    struct pnet_value values[] = {{"cloud.xyz", {cloud, PNET_DTYPE_F32, floats / 6, 3, 6}},
        {"cloud.rgb", {cloud + 3, PNET_DTYPE_F32, floats / 6, 3, 6}}};
    check(pnet_session_bind(session, values, 2, &error));
    check(pnet_session_forward(session, &error));
    check(pnet_session_result_shape(session, &rows, &classes, &error));
    float *scores = classes > 256 ? NULL : malloc((size_t)(rows * classes) * sizeof *scores + 1);
    if (!scores) return 5;
    check(pnet_session_result(session, scores, rows * classes, &error));

    for (int64_t i = 0; i < rows; i++) {
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            if (scores[i * classes + c] > scores[i * classes + best]) best = c;
        points[best]++;
    }
    for (int64_t c = 0; c < classes; c++) printf("class %d: %d points\n", (int)c, (int)points[c]);
    FILE *out = fopen(argv[4], "wb");
    size_t count = (size_t)(rows * classes);
    if (!out || fwrite(scores, sizeof *scores, count, out) != count || fclose(out)) return 1;
    free(scores);
    free(cloud);
    pnet_session_free(session);
    pnet_model_free(model);
    return 0;
}
