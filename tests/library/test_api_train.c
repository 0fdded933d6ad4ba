/* Training through the library: gradients by differences of the loss, steps by their formula, weights in and out. */
#include "tests/library/api.h"

#include <unistd.h>

static struct api_cloud cloud;

static struct pnet_session *trainer(const char *mode, const struct pnet_optimizer *o)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_TRAIN, mode);
    struct pnet_session *s = api_session(m, o);
    struct pnet_value v[API_VALUES];
    pnet_model_free(m);
    api_values(&cloud, v);
    NEED(pnet_session_init(s, &e));
    NEED(pnet_session_bind(s, v, API_VALUES, &e));
    return s;
}

static double loss_of(struct pnet_session *s)
{
    double loss;
    NEED(pnet_session_gradients(s, 1, 0, &e));
    NEED(pnet_session_objective(s, "ce", &loss, &e));
    return loss;
}

enum { MOST = 4096 };
static float weight[MOST], gradient[MOST], other[MOST];

/* The number of elements of a weight; its values go to `weight`, its gradient to `gradient`. */
static int64_t read_both(struct pnet_session *s, const struct pnet_weight_info *w)
{
    CHECK(w->count <= MOST);
    NEED(pnet_session_get_weight(s, w->name, weight, w->count, &e));
    if (w->trained) NEED(pnet_session_get_gradient(s, w->name, gradient, w->count, &e));
    return w->count;
}

static struct pnet_weight_info info_of(const struct pnet_model *m, size_t index)
{
    struct pnet_weight_info w = {.size = sizeof w};
    NEED(pnet_model_weight(m, index, &w, &e));
    return w;
}

static void test_gradients(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_TRAIN, NULL);
    struct pnet_session *s = trainer(NULL, NULL);
    int checked = 0;
    for (size_t i = 0; i < pnet_model_weights(m); i++) {
        struct pnet_weight_info w = info_of(m, i);
        if (!w.trained) continue;
        loss_of(s);
        int64_t n = read_both(s, &w), at = 0;
        for (int64_t k = 0; k < n; k++)
            if (fabsf(gradient[k]) > fabsf(gradient[at])) at = k;
        float exact = gradient[at], was = weight[at], step = 1e-2F;
        weight[at] = was + step;
        NEED(pnet_session_set_weight(s, w.name, weight, n, &e));
        double up = loss_of(s);
        weight[at] = was - step;
        NEED(pnet_session_set_weight(s, w.name, weight, n, &e));
        double measured = (up - loss_of(s)) / (2 * (double)step);
        weight[at] = was;
        NEED(pnet_session_set_weight(s, w.name, weight, n, &e));
        /* a convolution before a norm by the batch has no gradient of its bias */
        if (fabsf(exact) < 1e-3F) continue;
        CHECKF(fabs(measured - (double)exact) < 0.05 * fabs((double)exact),
            "%s[%d]: %g, measured %g", w.name, (int)at, (double)exact, measured);
        checked++;
    }
    CHECKF(checked > 6, "%d weights", checked);
    pnet_session_free(s);
    pnet_model_free(m);
}

static void test_accumulation(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_TRAIN, NULL);
    struct pnet_session *s = trainer(NULL, NULL);
    struct pnet_weight_info w = info_of(m, 0);
    double value;
    REFUSED(
        pnet_session_get_gradient(s, w.name, gradient, w.count, &e), PNET_USAGE, "no gradients");
    REFUSED(pnet_session_gradients(s, 1, 1, &e), PNET_USAGE, "accumulate");
    REFUSED(
        pnet_session_objective(s, "ce", &value, &e), PNET_USAGE, "pnet_session_forward is first");
    NEED(pnet_session_gradients(s, 1, 0, &e));
    REFUSED(pnet_session_objective(s, "oa", &value, &e), PNET_USAGE, "is a metric");
    int64_t n = read_both(s, &w);
    memcpy(other, gradient, (size_t)n * sizeof *other);
    NEED(pnet_session_gradients(s, 0.5F, 0, &e));
    NEED(pnet_session_gradients(s, 0.25F, 1, &e));
    NEED(pnet_session_gradients(s, 0.25F, 1, &e));
    read_both(s, &w);
    float worst = 0, most = 0;
    for (int64_t k = 0; k < n; k++) {
        worst = fmaxf(worst, fabsf(gradient[k] - other[k]));
        most = fmaxf(most, fabsf(other[k]));
    }
    CHECKF(most > 0 && worst < 1e-5F * most, "%g of %g", (double)worst, (double)most);
    REFUSED(pnet_session_get_gradient(s, w.name, gradient, n + 1, &e), PNET_USAGE, "numbers, not");
    REFUSED(
        pnet_session_get_weight(s, "nothing", gradient, n, &e), PNET_USAGE, "no weight `nothing`");
    pnet_session_free(s);
    pnet_model_free(m);
}

/* The settings that docs/formats.md names. */
static void test_defaults(void)
{
    static const enum pnet_optimizer_kind kinds[] = {
        PNET_OPTIMIZER_SGD, PNET_OPTIMIZER_ADAM, PNET_OPTIMIZER_ADAMW};
    for (int k = 0; k < 3; k++) {
        struct pnet_optimizer o = {.size = sizeof o, .momentum = -1, .nesterov = 1, .decay_all = 1};
        NEED(pnet_optimizer_default(kinds[k], &o, &e));
        CHECK(o.kind == kinds[k] && o.momentum == 0.9 && !o.nesterov && !o.decay_all);
        CHECK(o.beta1 == 0.9 && o.beta2 == 0.999 && o.eps == 1e-8);
        CHECK(o.weight_decay == (kinds[k] == PNET_OPTIMIZER_ADAMW ? 0.01 : 0));
    }
}

/* A step of SGD is what its formula says, with the norm clipped; and a loop without optimiser makes the same one. */
static void test_steps(void)
{
    struct pnet_model *m = api_model(PNET_PURPOSE_TRAIN, NULL);
    struct pnet_optimizer sgd = {.size = sizeof sgd, .kind = PNET_OPTIMIZER_SGD}, bad = sgd;
    struct pnet_session *s = trainer(NULL, &sgd), *own = trainer(NULL, NULL), *none = NULL;
    struct pnet_step_options o = {.size = sizeof o, .learning_rate = 0.5, .clip = 0.05};
    struct pnet_step_info i = {.size = sizeof i};
    double squares = 0;
    REFUSED(pnet_session_step(s, &o, &i, &e), PNET_USAGE, "no gradients");
    REFUSED(pnet_session_gradients(s, NAN, 0, &e), PNET_USAGE, "scale nan");
    REFUSED(pnet_session_gradients(s, INFINITY, 0, &e), PNET_USAGE, "scale inf");
    NEED(pnet_session_gradients(s, 1, 0, &e));
    NEED(pnet_session_gradients(own, 1, 0, &e));
    REFUSED(pnet_session_step(own, &o, &i, &e), PNET_USAGE, "no optimiser");
    for (size_t k = 0; k < pnet_model_weights(m); k++) {
        struct pnet_weight_info w = info_of(m, k);
        if (!w.trained) continue;
        read_both(own, &w);
        for (int64_t x = 0; x < w.count; x++) squares += (double)gradient[x] * (double)gradient[x];
    }
    double norm = sqrt(squares);
    NEED(pnet_session_step(s, &o, &i, &e));
    CHECKF(fabs(i.gradient_norm - norm) < 1e-6 * norm, "%g, expected %g", i.gradient_norm, norm);
    CHECK(norm > 0.05 && i.steps == 1 && !i.skipped && i.size == sizeof i);
    for (size_t k = 0; k < pnet_model_weights(m); k++) {
        struct pnet_weight_info w = info_of(m, k);
        if (!w.trained) continue;
        read_both(own, &w);
        NEED(pnet_session_get_weight(s, w.name, other, w.count, &e));
        double worst = 0;
        for (int64_t x = 0; x < w.count; x++) {
            weight[x] -= (float)(0.5 * 0.05 / norm) * gradient[x];
            worst = fmax(worst, fabs((double)(weight[x] - other[x])));
        }
        CHECKF(worst < 1e-6, "%s: %g", w.name, worst);
    }
    struct pnet_weight_info w = info_of(m, 0);
    double *const numbers[] = {&o.learning_rate, &o.clip, &o.loss_scale};
    for (int k = 0; k < 3; k++) {
        const double kept = *numbers[k], wrong[] = {NAN, INFINITY, -0.1};
        for (int x = 0; x < 3; x++) {
            *numbers[k] = wrong[x];
            REFUSED(pnet_session_step(s, &o, &i, &e), PNET_USAGE, "expected 0 or more, and finite");
        }
        *numbers[k] = kept;
    }
    for (int64_t x = 0; x < w.count; x++) gradient[x] = NAN;
    NEED(pnet_session_set_gradient(s, w.name, gradient, w.count, &e));
    NEED(pnet_session_step(s, &o, &i, &e));
    CHECK(i.skipped && i.steps == 1);
    i.size = 3;
    REFUSED(pnet_session_step(s, &o, &i, &e), PNET_USAGE, "pnet_step_info");
    bad.momentum = 2;
    struct pnet_session_options so = {.size = sizeof so, .optimizer = &bad};
    REFUSED(pnet_session_new(m, &so, &none, &e), PNET_USAGE, "momentum");
    bad.kind = (enum pnet_optimizer_kind)7;
    REFUSED(pnet_session_new(m, &so, &none, &e), PNET_USAGE, "no optimiser has the number 7");
    pnet_session_free(own);
    pnet_session_free(s);
    pnet_model_free(m);
}

static struct pnet_session *trained(const char *mode)
{
    struct pnet_optimizer adam = {.size = sizeof adam};
    struct pnet_step_options o = {.size = sizeof o, .learning_rate = 0.01};
    NEED(pnet_optimizer_default(PNET_OPTIMIZER_ADAM, &adam, &e));
    CHECK(adam.beta1 == 0.9 && adam.beta2 == 0.999 && adam.eps == 1e-8 && adam.weight_decay == 0);
    struct pnet_session *s = trainer(mode, &adam);
    double first = loss_of(s), last = first;
    for (int step = 0; step < 40; step++) {
        last = loss_of(s);
        NEED(pnet_session_step(s, &o, NULL, &e));
    }
    CHECKF(last < 0.5 * first, "%s: %g, then %g", mode, first, last);
    return s;
}

static double accuracy_of(struct pnet_session *s)
{
    double accuracy;
    NEED(pnet_session_forward(s, &e));
    NEED(pnet_session_objective(s, "oa", &accuracy, &e));
    return accuracy;
}

/* Binds the cloud and gives the share of points whose largest score is that of their label. */
static double count_hits(struct pnet_session *s)
{
    struct pnet_value v[API_VALUES];
    int64_t count, hits = 0;
    api_values(&cloud, v);
    NEED(pnet_session_bind(s, v, API_VALUES, &e));
    float *x = api_result(s, &count);
    for (int64_t i = 0; i < API_ROWS; i++) {
        const float *row = x + i * API_CLASSES;
        int best = 0;
        for (int k = 1; k < API_CLASSES; k++)
            if (row[k] > row[best]) best = k;
        hits += best == cloud.label[i];
    }
    free(x);
    return (double)hits / API_ROWS;
}

/* Weights go to a file and to other sessions, and give the same there. `trained` takes over the mode. */
static void test_weights(const char *mode)
{
    char path[] = "/tmp/pnet-weights-XXXXXX";
    int fd = mkstemp(path);
    struct pnet_session *s = trained(mode), *copy, *loaded;
    struct pnet_model *m = api_model(PNET_PURPOSE_INFER, mode), *as_trained = NULL;
    struct pnet_model_options o = {.size = sizeof o, .trained = path};
    struct pnet_value v[API_VALUES];
    int64_t count;
    close(fd);
    NEED(pnet_session_save(s, path, &e));
    NEED(pnet_model_compile("a", api_text, sizeof api_text - 1, &o, &as_trained, &e));
    double accuracy = accuracy_of(s);
    CHECKF(accuracy > 0.8, "%g", accuracy);
    copy = api_session(m, NULL);
    loaded = api_session(as_trained, NULL);
    NEED(pnet_session_copy_weights(copy, s, &e));
    NEED(pnet_session_load(loaded, path, &e));
    CHECKF(count_hits(copy) == accuracy, "%g, expected %g", count_hits(copy), accuracy);
    api_values(&cloud, v);
    NEED(pnet_session_bind(loaded, v, API_VALUES, &e));
    float *x = api_result(copy, &count), *y = api_result(loaded, &count);
    CHECK(memcmp(x, y, (size_t)count * sizeof *x) == 0);
    free(x);
    free(y);
    REFUSED(pnet_session_copy_weights(s, copy, &e), PNET_USAGE, "is folded");
    CHECK(accuracy_of(s) == accuracy); /* nothing was changed */
    pnet_session_free(copy);
    pnet_session_free(loaded);
    pnet_session_free(s);
    pnet_model_free(m);
    pnet_model_free(as_trained);
    unlink(path);
}

/* Weights of another width do not fit, from a file or a session; what is there stays. */
static void test_misfits(void)
{
    char path[] = "/tmp/pnet-weights-XXXXXX";
    int fd = mkstemp(path);
    const char *wide[] = {"c=16"};
    struct pnet_model_options o = {
        .size = sizeof o, .purpose = PNET_PURPOSE_EVAL, .params = wide, .param_count = 1};
    struct pnet_model *m = NULL;
    struct pnet_session *s = trainer(NULL, NULL), *t;
    struct pnet_weight_info w;
    close(fd);
    NEED(pnet_session_save(s, path, &e));
    NEED(pnet_model_compile("a", api_text, sizeof api_text - 1, &o, &m, &e));
    t = api_session(m, NULL);
    w = info_of(m, 0);
    REFUSED(pnet_session_get_weight(t, w.name, weight, w.count, &e), PNET_USAGE, "no weights");
    REFUSED(pnet_session_load(t, path, &e), PNET_BAD_MODEL, w.name);
    REFUSED(pnet_session_copy_weights(t, s, &e), PNET_USAGE, "in the other session");
    REFUSED(pnet_session_copy_weights(s, t, &e), PNET_USAGE, "no weights");
    REFUSED(pnet_session_forward(t, &e), PNET_USAGE, "no weights");
    CHECK(accuracy_of(s) >= 0);
    CHECK(truncate(path, 100) == 0);
    REFUSED(pnet_session_load(s, path, &e), PNET_BAD_DATA, path);
    REFUSED(pnet_session_save(s, "/no/such/folder/w", &e), PNET_FAILED, "/no/such/folder");
    pnet_session_free(t);
    pnet_session_free(s);
    pnet_model_free(m);
    unlink(path);
}

int main(void)
{
    api_fill(&cloud, 3);
    test_gradients();
    test_accumulation();
    test_defaults();
    test_steps();
    test_weights(NULL);
    test_weights("voxel");
    test_misfits();
    return check_end();
}
