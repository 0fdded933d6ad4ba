/* Losses between two point sets: values by hand, empty and broken samples, searches shared. Derivatives and references are
   checked by test_cases. */
#include "compiler/compile.h"
#include "runtime/run/runner.h"
#include "tests/check.h"

#include <math.h>

enum { MOST = 64 };

/* Two sets of a batch, and what a loss of them gives. */
struct pair {
    int32_t samples;
    int64_t a_splits[5], b_splits[5];
    float a[3 * MOST], b[3 * MOST];
    float loss, ga[3 * MOST], gb[3 * MOST];
};

static struct pnet_compilation *compile(const char *tail)
{
    char text[1024];
    snprintf(text, sizeof text,
        "pnet 1\ninput a { xyz : position  f : feature[3] }\ninput b { xyz : position  f : "
        "feature[3] }\n%s\n",
        tail);
    struct pnet_compile_options o = {.purpose = PNET_FOR_TRAINING, .input_gradients = true};
    struct pnet_compilation *c = pnet_compile_text("sets.pnet", text, strlen(text), &o);
    if (!pnet_compilation_plan(c)) pnet_compilation_report(c, stderr, false, false);
    return c;
}

static void must(enum pnet_status st, const struct pnet_error *e)
{
    if (!st) return;
    fprintf(stderr, "%s\n", e->message);
    exit(1);
}

static void read_gradient(struct pnet_runner *s, int input, float *to)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    struct pnet_error e;
    for (int t = 0; t < p->tensor_count; t++) {
        if (p->tensors[t].role != PNET_ROLE_GRAD || p->tensors[t].first < 0) continue;
        const struct pnet_plan_tensor *of = &p->tensors[p->tensors[t].of];
        if (of->role != PNET_ROLE_INPUT || of->input != input) continue;
        int64_t rows;
        void *g;
        must(pnet_runner_copy_tensor(s, 0, t, &g, &rows, &e), &e);
        memcpy(to, g, (size_t)rows * 3 * sizeof(float));
        free(g);
    }
}

static void run(const char *tail, struct pair *q)
{
    struct pnet_compilation *c = compile(tail);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_bound *bound;
    struct pnet_runner *s;
    struct pnet_batch *b;
    struct pnet_error e;
    const int64_t *splits[] = {q->a_splits, q->b_splits};
    must(pnet_batch_new(p->inputs, p->input_count, q->samples, splits, &b, &e), &e);
    const float *from[] = {q->a, q->b};
    for (int i = 0; i < 2; i++) {
        size_t bytes = (size_t)splits[i][q->samples] * 3 * sizeof(float);
        memset(b->inputs[i].xyz, 0, bytes);
        memcpy(b->inputs[i].fields[1], from[i], bytes);
    }
    must(pnet_bound_new(p, &(struct pnet_target){0}, &bound, &e), &e);
    must(pnet_runner_new(bound, &(struct pnet_runner_options){.slots = 1}, &s, &e), &e);
    must(pnet_runner_prepare(s, 0, b, &e), &e);
    pnet_runner_poison(s);
    must(pnet_runner_forward(s, 0, true, 0, &e), &e);
    must(pnet_runner_backward(s, 0, 1, false, &e), &e);
    must(pnet_runner_wait(s, &e), &e);
    int64_t rows;
    void *loss;
    must(pnet_runner_copy_tensor(s, 0, p->objectives[0].tensor, &loss, &rows, &e), &e);
    q->loss = *(float *)loss;
    free(loss);
    memset(q->ga, 0, sizeof q->ga);
    memset(q->gb, 0, sizeof q->gb);
    read_gradient(s, 0, q->ga);
    read_gradient(s, 1, q->gb);
    pnet_runner_free(s);
    pnet_bound_free(bound);
    pnet_batch_free(b);
    pnet_compilation_free(c);
}

static bool near(float got, double want)
{
    return fabs((double)got - want) <= 1e-6 * fmax(1, fabs(want));
}

/* x = {0, 1}, y = {0, 3} on a line: a = (0, 1), b = (0, 2). */
static void test_by_hand(void)
{
    struct pair q = {1, {0, 2}, {0, 2}, {0, 0, 0, 1, 0, 0}, {0, 0, 0, 3, 0, 0}, 0, {0}, {0}};
    run("loss l = chamfer(a.f, b.f, kind=l1)", &q);
    CHECKF(near(q.loss, 0.75), "l1: %g", (double)q.loss);
    /* of a_1: 1/4; of b_1, which lies at 3 and has x_1 nearest: -1/4 */
    CHECKF(near(q.ga[3], 0.25 - 0.25) && near(q.gb[3], 0.25), "l1: gradients %g, %g",
        (double)q.ga[3], (double)q.gb[3]);
    run("loss l = chamfer(a.f, b.f, kind=l2)", &q);
    CHECKF(near(q.loss, 0.5 + 2), "l2: %g", (double)q.loss);
    CHECKF(near(q.ga[3], 1 - 2) && near(q.ga[0], 0), "l2: gradient %g", (double)q.ga[3]);
    /* both points of x have y_0 nearest */
    run("loss l = dcd(a.f, b.f, alpha=1)", &q);
    double x = 1 - (1 + exp(-1)) / 2 / (2 + 1e-6), y = 1 - (1 + exp(-4)) / 2 / (1 + 1e-6);
    CHECKF(near(q.loss, (x + y) / 2), "dcd: %g", (double)q.loss);
    run("loss l = hypercd(a.f, b.f)", &q);
    double zero = acosh(1 + 1e-5);
    CHECKF(
        near(q.loss, (zero + acosh(2)) / 2 + (zero + acosh(5)) / 2), "hypercd: %g", (double)q.loss);
    run("loss l = infocd(a.f, b.f, tau=1, lambda=1, reduce=sum)", &q);
    double least = sqrt(1e-9), sx = exp(-least) + exp(-1) + 2e-7, sy = exp(-least) + exp(-2) + 2e-7;
    CHECKF(near(q.loss, (least + 1 + 2 * log(sx) + least + 2 + 2 * log(sy)) / 2), "infocd: %g",
        (double)q.loss);
}

static const char *const losses[] = {"chamfer(a.f, b.f, kind=l1)", "chamfer(a.f, b.f)",
    "dcd(a.f, b.f)", "hypercd(a.f, b.f)", "infocd(a.f, b.f)", "apml(a.f, b.f)"};

/* The second of two samples has points in one set alone: the loss is half of that of the first. */
static void test_empty(void)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        char tail[128];
        snprintf(tail, sizeof tail, "loss l = %s", losses[i]);
        struct pair one = {1, {0, 1}, {0, 2}, {1, 2, 3}, {1, 2, 4, 2, 2, 2}, 0, {0}, {0}},
                    two = one;
        two.samples = 2;
        two.a_splits[2] = 1;
        two.b_splits[2] = 4;
        run(tail, &one);
        run(tail, &two);
        CHECKF(near(two.loss, (double)one.loss / 2) && one.loss > 0, "%s: %g of %g", losses[i],
            (double)two.loss, (double)one.loss);
        CHECKF(
            near(two.ga[2], (double)one.ga[2] / 2) && two.gb[6] == 0, "%s: gradients", losses[i]);
        struct pair none = {1, {0, 0}, {0, 2}, {0}, {1, 2, 4, 2, 2, 2}, 0, {0}, {0}};
        run(tail, &none);
        CHECKF(none.loss == 0 && none.gb[0] == 0, "%s: of an empty set %g", losses[i],
            (double)none.loss);
    }
}

/* A coordinate that is not finite makes the loss of the batch NaN, and ends. */
static void test_broken(void)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        for (int k = 0; k < 6; k++) {
            char tail[128];
            snprintf(tail, sizeof tail, "loss l = %s", losses[i]);
            struct pair q = {1, {0, 40}, {0, 50}, {0}, {0}, 0, {0}, {0}};
            for (int n = 0; n < 3 * 50; n++) {
                if (n < 3 * 40) q.a[n] = sinf((float)n);
                q.b[n] = cosf((float)n * 1.3f);
            }
            (k % 2 ? q.a : q.b)[7] = bad[k / 2];
            run(tail, &q);
            CHECKF(
                !isfinite(q.loss), "%s: %g with %g", losses[i], (double)q.loss, (double)bad[k / 2]);
        }
}

/* Losses of the same sets search once for each direction. */
static void test_shared(void)
{
    struct pnet_compilation *c =
        compile("loss l = chamfer(a.f, b.f)\nloss k = dcd(a.f, b.f)\n"
                "loss h = hypercd(b.f, a.f)\nloss i = infocd(a.f * 2, b.f)");
    const struct pnet_plan *p = pnet_compilation_plan(c);
    int searches = 0;
    for (int n = 0; n < p->node_count; n++)
        searches += strcmp(p->nodes[n].op->name, "near") == 0 && !p->nodes[n].dead;
    CHECKF(searches == 4, "%d searches", searches);
    pnet_compilation_free(c);
}

/* Values given by name go to their arguments, in whatever order they are written. */
static void test_named(void)
{
    struct pnet_compilation *c = compile("loss l = chamfer(y=b.f, kind=l1, x=a.f)");
    const struct pnet_plan *p = pnet_compilation_plan(c);
    const struct pnet_node *n = &p->nodes[p->tensors[p->objectives[0].tensor].node];
    CHECK_STR(p->tensors[n->in[0]].name, "a.f");
    CHECK_STR(p->tensors[n->in[1]].name, "b.f");
    pnet_compilation_free(c);
}

int main(void)
{
    test_named();
    test_by_hand();
    test_empty();
    test_broken();
    test_shared();
    return check_end();
}
