/* Positions 100 m from the origin reach the first layer that multiplies in float32, in every precision: its result, about a
   bias that takes that distance away, and gradients are those of the CPU within what the result itself is rounded by. In bf16
   such positions would be multiples of half a metre, in fp16 of 6 cm. */
#include "tests/models/batch.h"

#include <math.h>

static const struct pnet_device cpu = {PNET_CPU, 0}, gpu = {PNET_CUDA, 0};
static const float far_m = 100;

/* A layer of a model; the first three channels that it reads are positions. */
struct layer {
    const char *name, *text, *path; /* the text; NULL: of models/NAME.pnet */
};

#define MODEL(lines)                                                                               \
    "pnet 1\n"                                                                                     \
    "input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }\n"              \
    "net n(p: cloud) {\n"                                                                          \
    "  g = grid(p, 5cm)\n" lines "  return a -> gelu -> linear(12)\n"                              \
    "}\n"                                                                                          \
    "y = n(cloud)\n"                                                                               \
    "loss ce = cross_entropy(y, cloud.label)\n"

static const struct layer
    few = {"few", MODEL("  a = p.xyz -> pool(mean, to=g) -> linear(32)\n"), "n.a.linear"},
    beside = {"beside learned features",
        MODEL("  f = p.rgb -> pool(mean, to=g) -> linear(16) -> gelu\n"
              "  a = cat(p.xyz -> pool(mean, to=g), f) -> linear(32)\n"),
        "n.a.linear"},
    wide = {"wide", MODEL("  a = cat(p.xyz, p.rgb, p.xyz) -> pool(mean, to=g) -> linear(32)\n"),
        "n.a.linear"},
    flash3d = {"flash3d", NULL, "flash3d.x.linear"}, convolved = {"ptv3", NULL, "ptv3.x.conv"};

static struct pnet_compilation *compile(const struct layer *l, bool training)
{
    char file[64];
    struct pnet_compile_options o = {.purpose = training ? PNET_FOR_TRAINING : PNET_FOR_INFERENCE,
        .value = training ? NULL : l->path};
    if (l->text)
        return need_plan(pnet_compile_text(l->name, l->text, strlen(l->text), &o), l->name);
    snprintf(file, sizeof file, "models/%s.pnet", l->name);
    return need_plan(pnet_compile_file(file, &o), file);
}

/* -1: there is none of that name. */
static int find_param(const struct pnet_plan *p, const struct layer *l, const char *suffix)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", l->path, suffix);
    for (int i = 0; i < p->param_count; i++)
        if (p->params[i].offset >= 0 && strcmp(p->params[i].name, name) == 0) return i;
    return -1;
}

/* Makes the bias of a linear layer what takes the distance of all points from the origin away. */
static void centre(struct pnet_runner *s, const struct layer *l)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    int w = find_param(p, l, "weight"), b = find_param(p, l, "bias");
    struct pnet_error e;
    if (w < 0 || b < 0) return;
    int64_t count = p->params[w].count, rows = p->params[b].count, width = count / rows;
    float *weight = must(malloc((size_t)count * sizeof *weight)),
          *bias = must(malloc((size_t)rows * sizeof *bias));
    need(pnet_runner_read(s, PNET_BLOCK_PARAMS, p->params[w].offset, count, weight, &e), &e,
        l->name);
    for (int64_t o = 0; o < rows; o++) {
        bool again = width == 9; /* positions twice */
        bias[o] = 0;
        for (int64_t k = 0; k < width; k++)
            if (k < 3 || (again && k >= 6)) bias[o] -= weight[o * width + k] * far_m;
    }
    need(pnet_runner_write(s, PNET_BLOCK_PARAMS, p->params[b].offset, rows, bias, &e), &e, l->name);
    free(weight);
    free(bias);
}

/* A runner that has run forward, and in training backward. To be freed with runner_end. */
static struct pnet_runner *run(const struct layer *l, const struct pnet_plan *p,
    struct pnet_device where, enum pnet_precision precision)
{
    struct pnet_runner_options o = {.slots = 1, .seed = 3};
    struct pnet_runner *s;
    struct pnet_error e;
    struct cloud cloud = cloud_corner(5000, 2, 4);
    for (int64_t i = 0; i < 3 * cloud.n; i++) cloud.xyz[i] += far_m - 1;
    struct pnet_batch *b = batch_of(p, &cloud, 1);
    need(pnet_runner_new(need_bound(p, where, precision), &o, &s, &e), &e, l->name);
    need(pnet_runner_init_params(s, &e), &e, l->name);
    centre(s, l);
    need(pnet_runner_prepare(s, 0, b, &e), &e, l->name);
    need(pnet_runner_forward(s, 0, p->training, 0, &e), &e, l->name);
    if (p->training) need(pnet_runner_backward(s, 0, 1, false, &e), &e, l->name);
    need(pnet_runner_wait(s, &e), &e, l->name);
    pnet_batch_free(b);
    cloud_free(&cloud);
    return s;
}

static float *result_of(const struct pnet_runner *s, int64_t *count)
{
    const struct pnet_plan *p = pnet_runner_plan(s);
    void *data;
    int64_t rows;
    struct pnet_error e;
    need(pnet_runner_copy_tensor(s, 0, p->result, &data, &rows, &e), &e, "result");
    *count = rows * p->tensors[p->result].type.width;
    return data;
}

static double distance(int64_t n, const float *a, const float *b)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(error / size);
}

/* `bound`: what rounding the result may leave; 0: the result has the bits of that in fp32. */
static void test_result(const struct layer *l, enum pnet_precision precision, double bound)
{
    struct pnet_compilation *c = compile(l, false);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_runner *host = run(l, p, cpu, PNET_FP32), *wide_one = run(l, p, gpu, PNET_FP32),
                       *one = run(l, p, gpu, precision);
    int64_t n;
    float *h = result_of(host, &n), *w = result_of(wide_one, &n), *r = result_of(one, &n);
    CHECKF(
        n > 1000 && distance(n, w, h) < 1e-3, "%s: fp32 is off by %g", l->name, distance(n, w, h));
    if (bound > 0)
        CHECKF(distance(n, r, w) < bound, "%s, precision %d: off by %g", l->name, (int)precision,
            distance(n, r, w));
    else
        CHECKF(memcmp(r, w, (size_t)n * sizeof *r) == 0, "%s, precision %d: other bits, off by %g",
            l->name, (int)precision, distance(n, r, w));
    free(h);
    free(w);
    free(r);
    runner_end(host);
    runner_end(wide_one);
    runner_end(one);
    pnet_compilation_free(c);
}

/* Gradients of all weights, of the layer's weight most of all. */
static void test_gradients(const struct layer *l, enum pnet_precision precision, double bound)
{
    struct pnet_compilation *c = compile(l, true);
    const struct pnet_plan *p = pnet_compilation_plan(c);
    struct pnet_runner *host = run(l, p, cpu, PNET_FP32), *one = run(l, p, gpu, precision);
    const struct pnet_plan_param *w = &p->params[find_param(p, l, "weight")];
    int64_t n = p->trained_elements;
    float *h = must(malloc((size_t)n * sizeof *h)), *r = must(malloc((size_t)n * sizeof *r));
    struct pnet_error e;
    need(pnet_runner_read(host, PNET_BLOCK_GRADS, 0, n, h, &e), &e, "gradients");
    need(pnet_runner_read(one, PNET_BLOCK_GRADS, 0, n, r, &e), &e, "gradients");
    CHECKF(distance(n, r, h) < bound, "%s, precision %d: gradients are off by %g", l->name,
        (int)precision, distance(n, r, h));
    CHECKF(distance(w->count, r + w->offset, h + w->offset) < bound,
        "%s, precision %d: the weight's gradient is off by %g", l->name, (int)precision,
        distance(w->count, r + w->offset, h + w->offset));
    free(h);
    free(r);
    runner_end(host);
    runner_end(one);
    pnet_compilation_free(c);
}

int main(void)
{
    static const struct layer *const linear[] = {&few, &beside, &wide, &flash3d};
    /* half a unit of the last place of a 16-bit result; fp32: the order of a sum */
    static const double
        rounding[] = {[PNET_TF32] = 0, [PNET_BF16] = 0x1p-9, [PNET_FP16] = 0x1p-11},
        learning[] = {
            [PNET_FP32] = 1e-3, [PNET_TF32] = 1e-2, [PNET_BF16] = 5e-2, [PNET_FP16] = 1e-2};
    struct pnet_error e;
    if (pnet_device_check(gpu, &e)) {
        fprintf(stderr, "skipped: %s\n", e.message);
        return 77;
    }
    for (int q = PNET_TF32; q <= PNET_FP16; q++) {
        enum pnet_precision precision = (enum pnet_precision)q;
        for (size_t i = 0; i < sizeof linear / sizeof *linear; i++) {
            /* learned features are rounded to the precision on their way; a value of the net is the layer's, float32 itself */
            bool mixed = linear[i] == &beside, narrow = linear[i] == &few || linear[i] == &flash3d;
            double bound = mixed ? 0x1p-6 : narrow ? rounding[q] : 0;
            test_result(linear[i], precision, bound);
        }
        test_result(&convolved, precision, 0);
    }
    for (int q = PNET_FP32; q <= PNET_FP16; q++)
        for (size_t i = 0; i < 3; i++)
            test_gradients(linear[i], (enum pnet_precision)q, learning[q]);
    return check_end();
}
