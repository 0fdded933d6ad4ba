/* A small model, a cloud for it, and shorthands for the tests of the library. */
#ifndef PNET_TESTS_LIBRARY_API_H
#define PNET_TESTS_LIBRARY_API_H

#include "include/pnet.h"
#include "tests/check.h"

#include <stdbool.h>

static const char api_text[] =
    "pnet 1\n"
    "param v = 20cm\n"
    "param c = 8\n"
    "input cloud {\n"
    "  xyz   : position\n"
    "  rgb   : feature[3]\n"
    "  label : class[4] per point\n"
    "}\n"
    "net small(p: cloud) {\n"
    "  g = grid(p, v * [1, 2])\n"
    "  a = p.rgb -> pool(mean, to=g[0]) -> conv(c, kernel=3) -> bn -> relu\n"
    "  b = a -> conv(2 * c, kernel=2, to=g[1]) -> bn -> relu\n"
    "  return cat(b -> conv(c, kernel=2, to=g[0]), a) -> linear(4)\n"
    "}\n"
    "y = small(cloud)\n"
    "loss   ce = cross_entropy(y, cloud.label)\n"
    "metric oa = accuracy(y, cloud.label)\n";

enum { API_ROWS = 700, API_CLASSES = 4 };

struct api_cloud {
    float xyz[API_ROWS][3], rgb[API_ROWS][3];
    int32_t label[API_ROWS];
    int64_t splits[3]; /* two samples */
};

/* Points in a box of two metres, classes by place. */
static inline void api_fill(struct api_cloud *c, uint64_t seed)
{
    uint64_t state = seed * 2 + 1;
    for (int i = 0; i < API_ROWS; i++) {
        for (int k = 0; k < 6; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            float u = (float)(state >> 40) / 16777216;
            if (k < 3)
                c->xyz[i][k] = 2 * u;
            else
                c->rgb[i][k - 3] = u;
        }
        c->label[i] = (c->xyz[i][0] > 1) + 2 * (c->xyz[i][1] > 1);
    }
    c->splits[0] = 0;
    c->splits[1] = 300;
    c->splits[2] = API_ROWS;
}

enum { API_VALUES = 4 };
static inline void api_values(const struct api_cloud *c, struct pnet_value v[API_VALUES])
{
    v[0] = (struct pnet_value){"cloud", {c->splits, PNET_DTYPE_I64, 3, 1, 0}};
    v[1] = (struct pnet_value){"cloud.xyz", {c->xyz, PNET_DTYPE_F32, API_ROWS, 3, 0}};
    v[2] = (struct pnet_value){"cloud.rgb", {c->rgb, PNET_DTYPE_F32, API_ROWS, 3, 0}};
    v[3] = (struct pnet_value){"cloud.label", {c->label, PNET_DTYPE_I32, API_ROWS, 1, 0}};
}

/* Ends the test where what it needs fails. */
static inline void api_need(enum pnet_status st, const struct pnet_error *e, const char *what)
{
    if (!st) return;
    fprintf(stderr, "%s: status %d: %s\n", what, (int)st, e->message);
    exit(1);
}
#define NEED(call)                                                                                 \
    do {                                                                                           \
        struct pnet_error e;                                                                       \
        api_need((call), &e, #call);                                                               \
    } while (0)

static inline struct pnet_model *api_model(enum pnet_purpose purpose, const char *mode)
{
    struct pnet_model_options o = {.size = sizeof o, .purpose = purpose, .mode = mode};
    struct pnet_model *m = NULL;
    NEED(pnet_model_compile("small.pnet", api_text, sizeof api_text - 1, &o, &m, &e));
    return m;
}

static inline struct pnet_session *api_session(
    const struct pnet_model *m, const struct pnet_optimizer *optimizer)
{
    struct pnet_session_options o = {.size = sizeof o, .seed = 7, .optimizer = optimizer};
    struct pnet_session *s = NULL;
    NEED(pnet_session_new(m, &o, &s, &e));
    return s;
}

/* The result of the bound batch, for the caller to free. */
static inline float *api_result(struct pnet_session *s, int64_t *count)
{
    int64_t rows, width;
    NEED(pnet_session_forward(s, &e));
    NEED(pnet_session_result_shape(s, &rows, &width, &e));
    *count = rows * width;
    float *x = malloc((size_t)*count * sizeof *x + 1);
    if (!x) exit(1);
    NEED(pnet_session_result(s, x, *count, &e));
    return x;
}

/* The call fails with this status and says this. */
#define REFUSED(call, wanted, part)                                                                \
    do {                                                                                           \
        struct pnet_error e = {PNET_OK, ""};                                                       \
        enum pnet_status got = (call);                                                             \
        CHECKF(got == (wanted) && e.status == (wanted) && strstr(e.message, part),                 \
            "%s: %d, \"%s\"", #call, (int)got, e.message);                                         \
    } while (0)

#endif
