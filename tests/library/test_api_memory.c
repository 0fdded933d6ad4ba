/* The library under an allocator that fails: every call ends with a status, a second try works, and nothing is left. And a
   thousand batches hold memory constant. */
#include "tests/heap.h"

#if HEAP_REPLACED
#include "tests/library/api.h"

#include <omp.h>
#include <unistd.h>

static struct api_cloud cloud;
static char path[] = "/tmp/pnet-memory-XXXXXX";

/* Everything once: compile, train a step, save, load, infer. */
static enum pnet_status run_all(float *result, struct pnet_error *e)
{
    static const char *const outputs[] = {"y", "small.a"};
    static float y[API_ROWS * API_CLASSES], rgb[API_ROWS * 3];
    struct pnet_model_options train = {.size = sizeof train,
                                  .purpose = PNET_PURPOSE_TRAIN,
                                  .outputs = outputs,
                                  .output_count = 2,
                                  .input_gradients = 1},
                              infer = {.size = sizeof infer, .trained = path};
    struct pnet_optimizer adam = {.size = sizeof adam};
    struct pnet_session_options with = {.size = sizeof with, .optimizer = &adam};
    struct pnet_step_options o = {.size = sizeof o, .learning_rate = 0.01};
    struct pnet_memory_info info = {.size = sizeof info};
    struct pnet_model *m = NULL, *n = NULL;
    struct pnet_session *s = NULL, *t = NULL;
    struct pnet_value v[API_VALUES], of_y = {"y", {y, PNET_DTYPE_F32, API_ROWS, API_CLASSES, 0}};
    double value;
    size_t bytes;
    api_values(&cloud, v);
    enum pnet_status st = pnet_optimizer_default(PNET_OPTIMIZER_ADAMW, &adam, e);
    if (!st) st = pnet_model_compile("a", api_text, sizeof api_text - 1, &train, &m, e);
    if (!st) st = pnet_session_new(m, &with, &s, e);
    if (!st) st = pnet_session_init(s, e);
    if (!st) st = pnet_session_bind(s, v, API_VALUES, e);
    if (!st) st = pnet_session_gradients(s, 1, 0, e);
    if (!st) st = pnet_session_step(s, &o, NULL, e);
    if (!st) st = pnet_session_forward_training(s, e);
    if (!st) st = pnet_session_output_shape(s, "y", &of_y.array.rows, &of_y.array.width, e);
    if (!st) st = pnet_session_output(s, "y", y, of_y.array.rows * API_CLASSES, e);
    if (!st) st = pnet_session_backward(s, &of_y, 1, 1, 1, e);
    if (!st) st = pnet_session_input_gradient(s, "cloud.rgb", rgb, API_ROWS * 3, e);
    if (!st) st = pnet_session_forward(s, e);
    if (!st) st = pnet_session_objective(s, "oa", &value, e);
    if (!st) st = pnet_session_save(s, path, e);
    if (!st) st = pnet_model_compile("a", api_text, sizeof api_text - 1, &infer, &n, e);
    if (!st) st = pnet_model_peak(n, NULL, 1000, &bytes, e);
    if (!st) st = pnet_session_new(n, NULL, &t, e);
    if (!st) st = pnet_session_load(t, path, e);
    if (!st) st = pnet_session_copy_weights(t, s, e);
    if (!st) st = pnet_session_bind(t, v, API_VALUES, e);
    if (!st) st = pnet_session_memory(t, &info, e);
    if (!st) st = pnet_session_forward(t, e);
    if (!st) st = pnet_session_result(t, result, API_ROWS * API_CLASSES, e);
    pnet_session_free(s);
    pnet_session_free(t);
    pnet_model_free(m);
    pnet_model_free(n);
    return st;
}

static float expected[API_ROWS * API_CLASSES], result[API_ROWS * API_CLASSES];

/* One allocation fails, or it and all behind it. Many calls are alike, so they are taken in growing steps. */
static void test_failing(bool all_behind)
{
    struct pnet_error e;
    long failed = 0, at = 1, tries = 0;
    for (bool over = false; !over; at += 1 + at / 64, tries++) {
        heap_begin(at, all_behind);
        enum pnet_status st = run_all(result, &e);
        heap.counting = false;
        CHECKF(st == PNET_OK || st == PNET_NO_MEMORY, "allocation %ld: %d: %s", at, (int)st,
            e.message);
        CHECKF(!heap.live, "allocation %ld: %ld blocks are left", at, heap.live);
        if (!st) CHECK(memcmp(result, expected, sizeof result) == 0);
        failed += st != PNET_OK;
        over = heap.calls < at;
    }
    CHECKF(failed > 100, "%ld of %ld failed", failed, tries);
}

/* A call that failed can be made again, on the same handles. */
static void test_again(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_TRAIN, NULL);
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_value v[API_VALUES];
    struct pnet_error why;
    double loss = 0, first = 0;
    int failed = 0;
    api_values(&cloud, v);
    for (long at = 1; at < 60; at++) {
        heap_begin(at, true);
        enum pnet_status st = pnet_session_init(s, &why);
        if (!st) st = pnet_session_bind(s, v, API_VALUES, &why);
        if (!st) st = pnet_session_gradients(s, 1, 0, &why);
        heap.counting = false;
        failed += st != PNET_OK;
        CHECKF(st == PNET_OK || st == PNET_NO_MEMORY, "allocation %ld: %s", at, why.message);
        NEED(pnet_session_init(s, &e));
        NEED(pnet_session_bind(s, v, API_VALUES, &e));
        NEED(pnet_session_gradients(s, 1, 0, &e));
        NEED(pnet_session_objective(s, "ce", &loss, &e));
        if (at == 1) first = loss;
        CHECK(loss == first);
    }
    CHECKF(failed > 5, "%d failed", failed);
    pnet_session_free(s);
    pnet_model_free(m);
}

static void test_constant(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, NULL);
    struct pnet_session *s = api_session(m, NULL);
    struct pnet_value v[API_VALUES];
    api_values(&cloud, v);
    NEED(pnet_session_init(s, &e));
    for (int i = 0; i < 1000; i++) {
        if (i == 10) heap_begin(0, false);
        NEED(pnet_session_bind(s, v, API_VALUES, &e));
        NEED(pnet_session_forward(s, &e));
        NEED(pnet_session_result(s, result, API_ROWS * API_CLASSES, &e));
    }
    heap.counting = false;
    CHECKF(heap.live == 0, "%ld blocks more", heap.live);
    pnet_session_free(s);
    pnet_model_free(m);
}

int main(void)
{
    int fd = mkstemp(path);
    close(fd);
    omp_set_num_threads(1); /* the counts belong to one thread */
    api_fill(&cloud, 5);
    NEED(run_all(expected, &e));
    test_failing(false);
    test_failing(true);
    test_again();
    test_constant();
    unlink(path);
    return check_end();
}
#endif
