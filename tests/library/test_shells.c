/* interpolate on the scenes of FlexGEMM's bench: shells of balls, R cells across, and R x R queries on the sphere that is half a
   cell smaller. Held to the formula of its grid_sample_3d, evaluated in double. */
#include "tests/library/api.h"

#include <math.h>

enum { CHANNELS = 5, MOST = 64 };
static const double pi = 3.14159265358979323846;

static const char text_of[] = "pnet 1\n"
                              "input shell { xyz : position  f : feature[5] }\n"
                              "input query { xyz : position }\n"
                              "net sampled(s: cloud, q: cloud) {\n"
                              "  x = s.f -> pool(mean, to=grid(s, 1m))\n"
                              "  return x -> interpolate(to=level(q), kind=%s)\n"
                              "}\n"
                              "y = sampled(shell, query)\n";

/* Cells, a metre wide, and their features; row -1: no cell. */
struct shell {
    int size;
    int64_t rows;
    int32_t *row_of; /* [size^3] */
    float *xyz, *f;
};

static double draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / 9007199254740992.0;
}

static struct shell shell_new(int size)
{
    struct shell s = {.size = size};
    size_t cells = (size_t)size * (size_t)size * (size_t)size;
    uint64_t state = (uint64_t)size;
    s.row_of = malloc(cells * sizeof *s.row_of);
    s.xyz = malloc(cells * 3 * sizeof *s.xyz);
    s.f = malloc(cells * CHANNELS * sizeof *s.f);
    if (!s.row_of || !s.xyz || !s.f) exit(1);
    for (size_t c = 0; c < cells; c++) {
        const size_t n = (size_t)size;
        const double at[3] = {
            (double)(c / n / n) + 0.5, (double)(c / n % n) + 0.5, (double)(c % n) + 0.5};
        double square = 0;
        for (int k = 0; k < 3; k++) square += (at[k] - size / 2.0) * (at[k] - size / 2.0);
        s.row_of[c] = -1;
        if (sqrt(square) < size / 2.0 - 1.25 || sqrt(square) > size / 2.0) continue;
        s.row_of[c] = (int32_t)s.rows;
        for (int k = 0; k < 3; k++) s.xyz[3 * s.rows + k] = (float)at[k];
        for (int k = 0; k < CHANNELS; k++)
            s.f[CHANNELS * s.rows + k] = (float)(2 * draw(&state) - 1);
        s.rows++;
    }
    return s;
}

static void shell_free(struct shell *s)
{
    free(s->row_of);
    free(s->xyz);
    free(s->f);
}

static int32_t row_at(const struct shell *s, const int64_t v[3])
{
    for (int k = 0; k < 3; k++)
        if (v[k] < 0 || v[k] >= s->size) return -1;
    return s->row_of[(v[0] * s->size + v[1]) * s->size + v[2]];
}

/* The formula: weights of the eight cells whose centres are around q, divided by the sum of those that are there. */
static void trilinear(const struct shell *s, const float q[3], double out[CHANNELS])
{
    double total = 0, sum[CHANNELS] = {0};
    for (int corner = 0; corner < 8; corner++) {
        int64_t v[3];
        double w = 1;
        for (int k = 0; k < 3; k++) {
            v[k] = (int64_t)floor((double)q[k] - 0.5) + (corner >> k & 1);
            w *= 1 - fabs((double)q[k] - (double)v[k] - 0.5);
        }
        int32_t row = row_at(s, v);
        if (row < 0) continue;
        total += w;
        for (int k = 0; k < CHANNELS; k++) sum[k] += w * (double)s->f[CHANNELS * row + k];
    }
    for (int k = 0; k < CHANNELS; k++) out[k] = sum[k] / fmax(total, 1e-12);
}

static void nearest(const struct shell *s, const float q[3], double out[CHANNELS])
{
    const int64_t v[3] = {
        (int64_t)floor((double)q[0]), (int64_t)floor((double)q[1]), (int64_t)floor((double)q[2])};
    int32_t row = row_at(s, v);
    for (int k = 0; k < CHANNELS; k++) out[k] = row < 0 ? 0 : (double)s->f[CHANNELS * row + k];
}

/* The rows of a ball, R x R: as many of latitude as of longitude. Some queries lie outside of the shell. */
static float *queries(int size)
{
    float *q = malloc((size_t)(size * size) * 3 * sizeof *q);
    if (!q) exit(1);
    for (int i = 0; i < size * size; i++) {
        double up = pi * (i / size + 0.5) / size, around = 2 * pi * (i % size) / size,
               radius = size / 2.0 - 0.5;
        if (i % 97 == 13) radius += 2.5; /* no cell is there */
        q[3 * i] = (float)(size / 2.0 + radius * sin(up) * cos(around));
        q[3 * i + 1] = (float)(size / 2.0 + radius * sin(up) * sin(around));
        q[3 * i + 2] = (float)(size / 2.0 + radius * cos(up));
    }
    return q;
}

static void test_shell(int size, const char *kind)
{
    struct shell s = shell_new(size);
    float *q = queries(size), *got = malloc((size_t)(size * size) * CHANNELS * sizeof *got);
    struct pnet_model *m;
    struct pnet_session *run;
    char text[sizeof text_of + 16];
    int length = snprintf(text, sizeof text, text_of, kind);
    int64_t rows = 0, width = 0;
    if (!got) exit(1);
    NEED(pnet_model_compile("shell.pnet", text, (size_t)length, NULL, &m, &e));
    NEED(pnet_session_new(m, NULL, &run, &e));
    NEED(pnet_session_init(run, &e));
    const struct pnet_value batch[] = {{"shell.xyz", {s.xyz, PNET_DTYPE_F32, s.rows, 3, 0}},
        {"shell.f", {s.f, PNET_DTYPE_F32, s.rows, CHANNELS, 0}},
        {"query.xyz", {q, PNET_DTYPE_F32, (int64_t)size * size, 3, 0}}};
    NEED(pnet_session_bind(run, batch, 3, &e));
    NEED(pnet_session_forward(run, &e));
    NEED(pnet_session_result_shape(run, &rows, &width, &e));
    CHECK(rows == (int64_t)size * size && width == CHANNELS);
    NEED(pnet_session_result(run, got, rows * width, &e));
    double worst = 0;
    int empty = 0;
    for (int64_t i = 0; i < rows; i++) {
        double want[CHANNELS], any = 0;
        (strcmp(kind, "nearest") ? trilinear : nearest)(&s, q + 3 * i, want);
        for (int k = 0; k < CHANNELS; k++) {
            double off = fabs((double)got[CHANNELS * i + k] - want[k]);
            if (!(off <= worst)) worst = off;
            any += fabs(want[k]);
        }
        empty += any == 0;
    }
    CHECKF(worst <= 2e-5, "%d cells, %s: off by %g", size, kind, worst);
    CHECKF(
        empty > 0 && empty < rows / 2, "%d of %lld queries have no cell", empty, (long long)rows);
    pnet_session_free(run);
    pnet_model_free(m);
    shell_free(&s);
    free(q);
    free(got);
}

int main(void)
{
    for (int size = 8; size <= MOST; size *= 2) {
        test_shell(size, "trilinear");
        test_shell(size, "nearest");
    }
    return check_end();
}
