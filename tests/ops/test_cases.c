/* Every case of every row, as a user would write it: forward against the row's reference in double,
   gradients against central differences of that reference, fusion, accumulation, poisoned memory,
   thread counts. */
#include "tests/check.h"
#include "tests/ops/case.h"
#include "tests/ops/reference.h"

#include <omp.h>

static double norm(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

/* The result of every node of the forward pass agrees with its reference. */
static void check_forward(const char *what, const struct pnet_plan *p, struct pnet_runner *s,
    struct reference *r, int tensor)
{
    void *got = fetch(s, tensor);
    size_t n = reference_elements(r, tensor);
    if (p->tensors[tensor].type.type == PNET_I32) {
        CHECKF(memcmp(got, r->values[tensor], n * sizeof(int32_t)) == 0, "%s", what);
        free(got);
        return;
    }
    const double *want = r->values[tensor];
    double *difference = calloc(n + 1, sizeof *difference);
    for (size_t i = 0; i < n; i++)
        difference[i] =
            (p->tensors[tensor].type.type == PNET_F64 ? ((const double *)got)[i]
                                                      : (double)((const float *)got)[i]) -
            want[i];
    double error = norm(difference, n), scale = norm(want, n);
    CHECKF(error <= 3e-6 * scale + 1e-7, "%s: forward is off by %g of %g", what, error, scale);
    free(difference);
    free(got);
}

/* d loss / d *x by central differences. */
static double difference_quotient(struct reference *r, double *x)
{
    double h = 1e-5, at = *x;
    *x = at + h;
    reference_run(r, true);
    double above = reference_loss(r);
    *x = at - h;
    reference_run(r, true);
    double below = reference_loss(r);
    *x = at;
    return (above - below) / (2 * h);
}

/* Some elements of one gradient. */
static void check_gradient(
    const char *what, const char *name, struct reference *r, double *x, const float *g, size_t n)
{
    enum { PROBES = 14 };
    double want[PROBES], got[PROBES], error = 0, scale = 0;
    size_t probes = n < PROBES ? n : PROBES;
    struct pnet_rand rand = {.seed = n, .purpose = PNET_DRAW_TEST, .a = 3};
    for (size_t i = 0; i < probes; i++) {
        size_t k = n <= PROBES ? i : pnet_rand_bits(&rand, i) % n;
        want[i] = difference_quotient(r, &x[k]);
        got[i] = (double)g[k];
        error += (want[i] - got[i]) * (want[i] - got[i]);
        scale += want[i] * want[i];
    }
    CHECKF(sqrt(error) <= 1e-3 * sqrt(scale) + 1e-5, "%s: gradient of %s is off by %g of %g", what,
        name, sqrt(error), sqrt(scale));
}

static void check_gradients(
    const char *what, const struct pnet_plan *p, struct pnet_runner *s, struct reference *r)
{
    float *grads = fetch_grads(s);
    for (int i = 0; i < p->param_count; i++)
        if (p->params[i].offset >= 0 && p->params[i].info.trained)
            check_gradient(what, p->params[i].name, r, r->params + p->params[i].offset,
                grads + p->params[i].offset, (size_t)p->params[i].count);
    free(grads);
    for (int t = 0; t < p->tensor_count; t++) {
        int of = p->tensors[t].of;
        if (p->tensors[t].role != PNET_ROLE_GRAD || p->tensors[of].role != PNET_ROLE_INPUT ||
            p->tensors[t].first < 0)
            continue;
        float *g = fetch(s, t);
        check_gradient(what, p->tensors[of].name, r, r->values[of], g, reference_elements(r, of));
        free(g);
    }
}

/* On which device the cases run. The reference has the geometry of the CPU. */
static struct pnet_target target;

/* Same gradients with layers fused, within rounding; same bits with any number of threads; twice as
 * much when accumulated. */
static void check_variants(const char *what, const char *expression, const char *tail,
    const struct pnet_plan *p, const float *want, const struct pnet_batch *b)
{
    struct pnet_compilation *c =
        compile(expression, tail, (struct pnet_compile_options){.purpose = PNET_FOR_TRAINING});
    const struct pnet_plan *fused = pnet_compilation_plan(c);
    CHECK(fused != NULL);
    if (!fused) return;
    struct pnet_runner *s = open_runner(fused, &target, b);
    float *first = NULL;
    int most = brief ? 1 : target.where.kind == PNET_CPU ? 3 : 2; /* on a GPU: twice the same */
    for (int threads = 1; threads <= most; threads++) {
        omp_set_num_threads(threads);
        struct pnet_runner *again = open_runner(fused, &target, b);
        run(again, 1);
        float *g = fetch_grads(again);
        if (!first)
            first = g;
        else {
            CHECKF(memcmp(first, g, (size_t)fused->trained_elements * sizeof(float)) == 0,
                "%s: other bits with %d threads", what, threads);
            free(g);
        }
        close_runner(again);
    }
    omp_set_num_threads(2);
    float *twice = NULL;
    if (!brief) {
        struct pnet_error e;
        run(s, 1);
        must(pnet_runner_forward(s, 0, true, 5, &e), &e);
        must(pnet_runner_backward(s, 0, 1, true, &e), &e);
        twice = fetch_grads(s);
    }
    double error = 0, scale = 0, doubled = 0;
    for (int i = 0; i < fused->param_count; i++) {
        int other = pnet_plan_param_find(p, fused->params[i].name);
        if (fused->params[i].offset < 0 || !fused->params[i].info.trained) continue;
        CHECK(other >= 0);
        for (int64_t k = 0; k < fused->params[i].count; k++) {
            double a = (double)first[fused->params[i].offset + k],
                   w = (double)want[p->params[other].offset + k];
            double two = twice ? (double)twice[fused->params[i].offset + k] : 2 * a;
            error += (a - w) * (a - w);
            scale += w * w;
            doubled += (two - 2 * a) * (two - 2 * a);
        }
    }
    CHECKF(sqrt(error) <= 1e-5 * sqrt(scale) + 1e-8, "%s: fusion changes the gradients by %g of %g",
        what, sqrt(error), sqrt(scale));
    CHECKF(sqrt(doubled) <= 1e-5 * sqrt(scale) + 1e-8,
        "%s: accumulated gradients are off by %g of %g", what, sqrt(doubled), sqrt(scale));
    free(first);
    free(twice);
    close_runner(s);
    pnet_compilation_free(c);
}

static void check_case(
    const struct pnet_op *op, const char *expression, const int64_t sizes[SAMPLES])
{
    char what[700], tail[256];
    snprintf(what, sizeof what, "%s, %lld+%lld+%lld+%lld points", expression, (long long)sizes[0],
        (long long)sizes[1], (long long)sizes[2], (long long)sizes[3]);
    if (!make_tail(op, expression, tail)) return;
    struct pnet_compile_options o = {.purpose = *tail ? PNET_FOR_TRAINING : PNET_FOR_INFERENCE,
        .no_fusion = true,
        .input_gradients = true};
    struct pnet_target on_cpu = {.where = {PNET_CPU, 0}};
    struct pnet_compilation *c = compile(expression, tail, o);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    CHECKF(p != NULL, "%s does not compile", expression);
    if (!p) return;
    struct pnet_batch *b = make_batch(p, sizes, 42);
    struct pnet_runner *s = open_runner(p, &target, b);
    struct pnet_runner *host = open_runner(p, &on_cpu, b);
    struct pnet_error e;
    struct reference r;
    bool training = op->class_ != PNET_METRIC; /* which training leaves out */
    must(pnet_runner_forward(s, 0, training, 5, &e), &e);
    must(pnet_runner_forward(host, 0, training, 5, &e), &e);
    reference_init(&r, host);
    /* a forward in training moves the running statistics: the reference starts from those before */
    struct pnet_runner *fresh = open_runner(p, &on_cpu, b);
    for (int64_t i = 0; i < p->param_elements; i++)
        r.params[i] = (double)pnet_runner_params(fresh)[i];
    close_runner(fresh);
    reference_run(&r, training);
    for (int i = 0; i < p->objective_count; i++)
        check_forward(what, p, s, &r, p->objectives[i].tensor);
    if (p->result >= 0) check_forward(what, p, s, &r, p->result);
    if (p->training) {
        run(s, 1);
        check_gradients(what, p, s, &r);
        if (!strstr(tail, "metric")) {
            float *g = fetch_grads(s);
            check_variants(what, expression, tail, p, g, b);
            free(g);
        }
    }
    reference_free(&r);
    close_runner(s);
    close_runner(host);
    pnet_batch_free(b);
    pnet_compilation_free(c);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[][SAMPLES] = {{60, 0, 1, 45}, {0, 0, 0, 0}, {1, 0, 0, 0}};
    struct pnet_device d = {0};
    struct pnet_error e;
    /* test_cases [cpu|cuda] [OP] */
    brief = getenv("PNET_SHORT") != NULL;
    size_t size_count = brief ? 1 : sizeof sizes / sizeof sizes[0];
    if (argc > 1 && !pnet_device_parse(argv[1], &d, &e)) {
        argc--;
        argv++;
    }
    if (pnet_device_check(d, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    target.where = d;
    omp_set_num_threads(2);
    for (int i = 0; i < pnet_op_count; i++) {
        const struct pnet_op *op = pnet_ops[i];
        if (argc > 1 && strcmp(argv[1], op->name) != 0) continue;
        CHECKF(op->cases && *op->cases, "%s has no cases", op->name);
        for (const char *line = op->cases; line && *line;) {
            size_t n = strcspn(line, "\n");
            char expression[512];
            snprintf(expression, sizeof expression, "%.*s", (int)n, line);
            for (size_t k = 0; k < size_count; k++) check_case(op, expression, sizes[k]);
            line += n + (line[n] == '\n');
        }
    }
    return check_end();
}
