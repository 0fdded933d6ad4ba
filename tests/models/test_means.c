/* The loss of an evaluation is the mean over all that it counts, whatever the batches: labelled points (by the weights of their
   classes), labelled clouds, channels of points, pairs of sets. Against sums in double over the predictions. */
#include "tests/models/objectives.h"

#include <omp.h>

/* argv[1]: "cpu" (default) or "cuda". */
static struct pnet_device device;

enum { COUNT = 7, CLASSES = 3 };

/* Two clouds have no label, one has no point. */
static const struct objectives_cloud clouds[COUNT] = {
    {50, 0.5f, 0}, {30, 0, 0}, {120, 1, 0}, {10, 0.3f, 0}, {0, 0, 0}, {80, 0.9f, 0}, {5, 0, 0}};

static const char lines[] =
    "G = grid(p, 40cm)\n"
    "loss plain    = cross_entropy(x, p.label)\n"
    "loss weighted = cross_entropy(x, p.label, weights=[1, 2.5, 0.25])\n"
    "loss smooth   = cross_entropy(x, p.label, weights=[1, 2.5, 0.25], smoothing=10%)\n"
    "loss sharp    = focal(x, p.label, weights=[3, 1, 0])\n"
    "loss tags     = cross_entropy(t, p.tag)\n"
    "loss squares  = mse(x, p.f)\n"
    "loss sum      = cross_entropy(x, p.label) * 2 + mse(x, p.f) * 0.5 - cross_entropy(t, p.tag)\n"
    "loss sets     = chamfer(x, p.xyz)\n"
    "loss sizes    = l1(x, p.f)\n"
    "loss mixed    = huber(x, p.f)\n"
    "loss cells    = cross_entropy(x -> pool(mean, to=G), p.label -> pool(to=G))\n";
enum { PLAIN, WEIGHTED, SMOOTH, SHARP, TAGS, SQUARES, SUM, SETS, SIZES, MIXED, CELLS, LOSSES };

static const double weights[] = {1, 2.5, 0.25}, focal_weights[] = {3, 1, 0};

/* Sums and counts of the first losses, in double. */
struct sums {
    double sum[SUM], count[SUM];
};

static void add(struct sums *s, int which, double weight, double value)
{
    s->sum[which] += weight * value;
    s->count[which] += weight;
}

/* log softmax(x)[c] */
static double log_share(const double x[CLASSES], int c)
{
    double total = 0;
    for (int k = 0; k < CLASSES; k++) total += exp(x[k] - x[c]);
    return -log(total);
}

static void add_point(struct sums *s, const double x[CLASSES], const float *f, int32_t label)
{
    for (int c = 0; c < 3; c++) add(s, SQUARES, 1, pow(x[c] - (double)f[c], 2));
    if (label < 0) return;
    double nll = -log_share(x, label), soft = 0;
    for (int c = 0; c < CLASSES; c++) soft -= weights[c] * log_share(x, c) / CLASSES;
    add(s, PLAIN, 1, nll);
    add(s, WEIGHTED, weights[label], nll);
    s->sum[SMOOTH] += 0.9 * weights[label] * nll + 0.1 * soft;
    s->count[SMOOTH] += weights[label];
    add(s, SHARP, focal_weights[label], pow(1 - exp(-nll), 2) * nll);
}

/* Predictions are features times the weights of the layer, plus its bias. */
static struct sums sums_of(const struct objectives *o)
{
    struct sums s = {{0}, {0}};
    struct pnet_error e;
    float *block = must(malloc((size_t)o->plan->param_elements * sizeof *block));
    need(pnet_runner_read(o->runner, PNET_BLOCK_PARAMS, 0, o->plan->param_elements, block, &e), &e,
        "weights");
    int weight = pnet_plan_param_find(o->plan, "three.out.linear.weight"),
        at = pnet_plan_param_find(o->plan, "three.out.linear.bias");
    if (weight < 0 || at < 0) exit(1);
    const float *w = block + o->plan->params[weight].offset,
                *bias = block + o->plan->params[at].offset;
    for (int k = 0; k < COUNT; k++) {
        struct pnet_batch *b = objectives_batch(o->plan, clouds, k, 1);
        const struct pnet_batch_input *p = &b->inputs[0];
        double mean[CLASSES] = {0};
        for (int64_t i = 0; i < p->rows; i++) {
            const float *f = (const float *)p->fields[1] + 3 * i;
            double x[CLASSES];
            for (int c = 0; c < CLASSES; c++) {
                x[c] = (double)bias[c];
                for (int d = 0; d < 3; d++) x[c] += (double)w[3 * c + d] * (double)f[d];
                mean[c] += x[c] / (double)p->rows;
            }
            add_point(&s, x, f, ((const int32_t *)p->fields[2])[i]);
        }
        int32_t tag = *(const int32_t *)p->fields[3];
        if (tag >= 0) add(&s, TAGS, 1, -log_share(mean, tag));
        pnet_batch_free(b);
    }
    free(block);
    return s;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6 * fmax(1, fabs(b));
}

static void test_batches(enum pnet_purpose_kind purpose)
{
    struct objectives o = objectives_open(lines, purpose, device);
    struct sums s = sums_of(&o);
    double want[SUM + 1], first[LOSSES];
    for (int i = 0; i < SUM; i++) want[i] = s.sum[i] / s.count[i];
    want[SUM] = 2 * want[PLAIN] + 0.5 * want[SQUARES] - want[TAGS];
    for (int size = 1; size <= COUNT; size++) {
        double total = 0;
        struct pnet_evaluation v = objectives_evaluate(&o, clouds, COUNT, size);
        CHECK(v.count == LOSSES);
        for (int i = 0; i < LOSSES; i++) {
            double value = v.lines[i].value;
            total += value;
            CHECKF(i > SUM || near(value, want[i]), "batches of %d: %s %.9g, not %.9g", size,
                v.lines[i].name, value, want[i]);
            if (size == 1) first[i] = value;
            CHECKF(near(value, first[i]), "batches of %d: %s %.9g, by clouds %.9g", size,
                v.lines[i].name, value, first[i]);
        }
        CHECK(fabs(v.loss - total) < 1e-9);
        pnet_evaluation_free(&v);
    }
    objectives_close(&o);
}

/* Losses of a batch as a whole, or of matches: a cloud that has nothing to count changes nothing. */
static void test_idle(void)
{
    static const struct objectives_cloud pair[2] = {{60, 0.8f, 0}, {40, 0, 100}};
    static const char *const of_pair[] = {"loss l = lovasz_softmax(x, p.label)\n",
        "loss l = dice(x, p.label)\n", "loss l = circle(x, u, M)\n",
        "loss l = hardest_contrastive(x, u, M)\n", "loss l = focal(x, p.label)\n"};
    for (size_t i = 0; i < sizeof of_pair / sizeof of_pair[0]; i++) {
        struct objectives o = objectives_open(of_pair[i], PNET_FOR_EVAL, device);
        struct pnet_evaluation one = objectives_evaluate(&o, pair, 1, 1),
                               both = objectives_evaluate(&o, pair, 2, 1),
                               none = objectives_evaluate(&o, pair + 1, 1, 1);
        CHECKF(near(both.loss, one.loss) && one.loss > 0, "%s: %g, alone %g", of_pair[i], both.loss,
            one.loss);
        CHECK(one.lines[0].counted && both.lines[0].counted && !none.lines[0].counted);
        CHECKF(isnan(none.loss) && isnan(none.lines[0].value), "%s: %g", of_pair[i], none.loss);
        pnet_evaluation_free(&one);
        pnet_evaluation_free(&both);
        pnet_evaluation_free(&none);
        objectives_close(&o);
    }
}

/* A loss that counts nothing has no part in the sum, which is that of the others. */
static void test_sum(void)
{
    static const struct objectives_cloud without = {20, 0, 0};
    struct objectives o =
        objectives_open("loss a = cross_entropy(x, p.label)\nloss b = mse(x, p.f)\n"
                        "loss c = cross_entropy(x, p.label) + mse(x, p.f)\n",
            PNET_FOR_EVAL, device);
    struct pnet_evaluation v = objectives_evaluate(&o, &without, 1, 1);
    CHECK(isnan(v.lines[0].value) && v.lines[1].value > 0);
    CHECK(v.lines[2].value == v.lines[1].value && v.loss == 2 * v.lines[1].value);
    pnet_evaluation_free(&v);
    objectives_close(&o);
}

int main(int argc, char **argv)
{
    struct pnet_error e;
    if ((argc > 1 && pnet_device_parse(argv[1], &device, &e)) || pnet_device_check(device, &e)) {
        printf("skipped: %s\n", e.message);
        return 77;
    }
    omp_set_num_threads(1); /* the clouds are small */
    test_batches(PNET_FOR_EVAL);
    test_batches(PNET_FOR_TRAINING);
    test_idle();
    test_sum();
    return check_end();
}
