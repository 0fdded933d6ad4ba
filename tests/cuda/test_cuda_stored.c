/* Every case of every row on a GPU in the precisions that store features in 16 bits, against the CPU: results, losses,
   gradients. Inputs and weights are numbers that 16 bits hold, so what differs is what was rounded on the way. */
#include "tests/ops/case.h"

/* On a CPU in float32, and on a GPU. */
struct pair {
    struct pnet_runner *cpu, *gpu;
    char what[700];
    double bound; /* relative, of a tensor's 2-norm: some roundings */
    double worst; /* of all that was compared: its share of the bound */
};

/* A tensor's numbers as doubles, to be freed. */
static double *numbers(struct pnet_runner *s, int tensor, size_t n)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    void *from = fetch(s, tensor);
    double *to = malloc(n * sizeof *to + 1);
    for (size_t i = 0; i < n; i++)
        to[i] = p->tensors[tensor].type.type == PNET_F64   ? ((const double *)from)[i]
                : p->tensors[tensor].type.type == PNET_I32 ? ((const int32_t *)from)[i]
                                                           : (double)((const float *)from)[i];
    free(from);
    return to;
}

static void check_near(struct pair *k, const char *kind, const char *name, const double *got,
    const double *want, size_t n, double bound)
{
    double error = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        scale += want[i] * want[i];
    }
    /* gradients may cancel, what was rounded before does not */
    double most = bound * fmax(sqrt(scale), 0.1) + 1e-6, share = sqrt(error) / most;
    CHECKF(
        share <= 1, "%s: %s %s is off by %g of %g", k->what, kind, name, sqrt(error), sqrt(scale));
    if (share > k->worst) k->worst = share;
}

static void check_tensor(struct pair *k, const char *kind, int tensor, double bound)
{
    const struct pnet_plan_tensor *t = &pnet_runner_plan(k->cpu)->tensors[tensor];
    int64_t rows;
    pnet_runner_tensor(k->cpu, 0, tensor, &rows);
    size_t n = (size_t)rows * (size_t)t->type.width;
    double *got = numbers(k->gpu, tensor, n), *want = numbers(k->cpu, tensor, n);
    /* scores that become equal by rounding change what a metric counts */
    double allowed = t->type.type == PNET_F64 ? 0.1 : t->type.type == PNET_I32 ? 0 : bound;
    check_near(k, kind, t->name, got, want, n, allowed);
    free(got);
    free(want);
}

static void check_gradients(struct pair *k)
{
    const struct pnet_plan *p = pnet_runner_plan(k->cpu);
    float *got = fetch_grads(k->gpu), *want = fetch_grads(k->cpu);
    for (int i = 0; i < p->param_count; i++) {
        if (p->params[i].offset < 0 || !p->params[i].info.trained) continue;
        size_t n = (size_t)p->params[i].count;
        double *a = malloc(2 * n * sizeof *a);
        for (size_t j = 0; j < n; j++) {
            a[j] = (double)got[(size_t)p->params[i].offset + j];
            a[n + j] = (double)want[(size_t)p->params[i].offset + j];
        }
        check_near(k, "gradient of", p->params[i].name, a, a + n, n, 2 * k->bound);
        free(a);
    }
    free(got);
    free(want);
    for (int t = 0; t < p->tensor_count; t++)
        if (p->tensors[t].role == PNET_ROLE_GRAD && p->tensors[t].first >= 0 &&
            p->tensors[p->tensors[t].of].role == PNET_ROLE_INPUT)
            check_tensor(k, "gradient of", t, 2 * k->bound);
}

/* Forward, and backward of a loss that is scaled. */
static void check_runners(struct pair *k, bool training)
{
    const struct pnet_plan *p = pnet_runner_plan(k->cpu);
    struct pnet_error e;
    struct pnet_runner *both[] = {k->cpu, k->gpu};
    for (int i = 0; i < 2; i++) {
        must(pnet_runner_forward(both[i], 0, training, 5, &e), &e);
        must(pnet_runner_wait(both[i], &e), &e);
    }
    /* losses square what is off */
    for (int i = 0; i < p->objective_count; i++)
        check_tensor(k, "objective", p->objectives[i].tensor, 2 * k->bound);
    if (p->result >= 0) check_tensor(k, "result", p->result, k->bound);
    if (!p->training) return;
    for (int i = 0; i < 2; i++) run(both[i], 64);
    check_gradients(k);
}

/* What was the farthest from the CPU, as a share of what is allowed. */
static double check_case(const struct pnet_op *op, const char *expression,
    const int64_t sizes[SAMPLES], enum pnet_precision precision)
{
    struct pair k = {.bound = precision == PNET_BF16 ? 0x1p-6 : 0x1p-9};
    char tail[256];
    snprintf(k.what, sizeof k.what, "%s, %lld+%lld+%lld+%lld points, %s", expression,
        (long long)sizes[0], (long long)sizes[1], (long long)sizes[2], (long long)sizes[3],
        precision == PNET_BF16 ? "bf16" : "fp16");
    if (!make_tail(op, expression, tail)) return 0;
    struct pnet_compile_options o = {
        .purpose = *tail ? PNET_FOR_TRAINING : PNET_FOR_INFERENCE, .input_gradients = true};
    struct pnet_target on_cpu = {.where = {PNET_CPU, 0}},
                       on_gpu = {.where = {PNET_CUDA, 0}, .precision = precision};
    struct pnet_compilation *c = compile(expression, tail, o);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_batch *b = make_batch(p, sizes, 42);
    k.cpu = open_runner(p, &on_cpu, b);
    k.gpu = open_runner(p, &on_gpu, b);
    check_runners(&k, op->class_ != PNET_METRIC);
    close_runner(k.cpu);
    close_runner(k.gpu);
    pnet_batch_free(b);
    pnet_compilation_free(c);
    return k.worst;
}

int main(int argc, char **argv)
{
    static const int64_t sizes[][SAMPLES] = {{60, 0, 1, 45}, {0, 0, 0, 0}, {1, 0, 0, 0}};
    struct pnet_error e;
    /* test_cuda_stored [OP] */
    brief = getenv("PNET_SHORT") != NULL;
    size_t size_count = brief ? 1 : sizeof sizes / sizeof sizes[0];
    if (pnet_device_check((struct pnet_device){PNET_CUDA, 0}, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    exact = true;
    for (int i = 0; i < pnet_op_count; i++) {
        const struct pnet_op *op = pnet_ops[i];
        double worst[2] = {0, 0};
        if (argc > 1 && strcmp(argv[1], op->name) != 0) continue;
        for (const char *line = op->cases; line && *line;) {
            size_t n = strcspn(line, "\n");
            char expression[512];
            snprintf(expression, sizeof expression, "%.*s", (int)n, line);
            for (size_t k = 0; k < 2 * size_count; k++) {
                double far =
                    check_case(op, expression, sizes[k / 2], k % 2 ? PNET_FP16 : PNET_BF16);
                if (far > worst[k % 2]) worst[k % 2] = far;
            }
            line += n + (line[n] == '\n');
        }
        printf("%-20s at most %3.0f%% (bf16) and %3.0f%% (fp16) of what is allowed\n", op->name,
            100 * worst[0], 100 * worst[1]);
    }
    return check_end();
}
